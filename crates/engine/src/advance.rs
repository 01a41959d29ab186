//! What happens to a workflow next. One function, [`Workflow::advance`], makes every change after the first plan.

use std::collections::BTreeSet;

use model::{StepId, Timestamp};

use crate::workflow::{Answer, Lock, OnError, Plan, Step, StepStatus, Work, Workflow, WorkflowStatus};

/// A plan is made anew at most so often because its basis moved.
const ATTEMPTS: u32 = 50;
/// Said of a step whose success somebody has recorded.
pub const SETTLED: &str = "its outcome was unknown, and was settled as finished";
/// Names of steps that a reason lists.
const NAMED: usize = 3;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Time has passed, or something was set free.
    Look,
    Ended {
        step: StepId,
        ended: Ended,
    },
    Answered {
        step: StepId,
        response: Response,
        digest: Option<String>,
        by: String,
        note: String,
    },
    /// From now on plans need no answer.
    ApproveAll {
        by: String,
    },
    Retry {
        step: StepId,
    },
    Skip {
        step: StepId,
        by: String,
    },
    Cancel {
        by: String,
    },
}

/// How the work of a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Success,
    Planned(Plan),
    /// Policies do not let the plan pass.
    Denied(Plan, String),
    Failed(String),
    /// Nobody can say how it ended; what may be there is named.
    Unknown(String),
    Cancelled(String),
    /// What the plan was made of has changed; nothing was applied.
    Stale(String),
}

/// What people say about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    Approve,
    Deny,
    DenySkip,
    DenySkipDependents,
    Retry,
}

impl Response {
    pub const ALL: [Self; 5] = [Self::Approve, Self::Deny, Self::DenySkip, Self::DenySkipDependents, Self::Retry];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::DenySkip => "deny-skip-current",
            Self::DenySkipDependents => "deny-skip-current-and-dependents",
            Self::Retry => "retry",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|response| response.as_str() == text)
    }
}

/// A lock that another workflow of the install holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub lock: Lock,
    /// Who holds it, for people.
    pub by: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub now: Timestamp,
    pub held: &'a [Held],
    /// Steps that may be in progress at once.
    pub limit: usize,
    /// How long a plan waits for an answer.
    pub answer_s: i64,
    /// The install wants no questions.
    pub approve_all: bool,
}

/// Why something that a person asked for is not done. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the workflow has no such step")]
    NoStep,
    #[error("the workflow has already ended; its status is `{0}`")]
    Over(&'static str),
    #[error("the step does not wait for an approval; its status is `{0}`")]
    NotAwaiting(&'static str),
    #[error("this plan is out of date: a newer plan is waiting. Review it with `ferry steps plan`")]
    OtherPlan,
    #[error("this step was retried; the newer attempt is {0}")]
    Superseded(StepId),
    #[error("the step can't be retried; its status is `{0}`")]
    NotRetryable(&'static str),
    #[error("the step can't be skipped; its status is `{0}`")]
    NotSkippable(&'static str),
    #[error("a step of this kind can't be {0}")]
    Never(&'static str),
}

impl Workflow {
    /// Applies an event and starts what can be started. An event that comes twice, or too late, changes nothing.
    pub fn advance(&mut self, event: Event, cx: &Context, id: &mut dyn FnMut() -> StepId) -> Result<(), Refused> {
        match event {
            Event::Look => {}
            Event::Ended { step, ended } => self.ended(&step, ended, cx.now, id),
            Event::Answered { step, response, digest, by, note } => {
                let at = self.find(&step)?;
                self.answered(at, response, digest.as_deref(), &by, &note, cx.now, id)?;
            }
            // It may have ended a moment ago: that is no mistake, and nobody who retries later has agreed to it.
            Event::ApproveAll { .. } if self.status().is_over() => return Ok(()),
            Event::ApproveAll { by } => {
                self.approve_all = Some(by);
                // Whoever says so now has seen the plans that wait, and why they wait.
                for at in self.current() {
                    if self.steps[at].status == StepStatus::ApprovalAwaiting {
                        self.steps[at].ask = false;
                    }
                }
            }
            Event::Retry { step } => self.retry(&step, cx.now, id)?,
            Event::Skip { step, by } => self.skip(&step, &by, cx.now)?,
            Event::Cancel { by } => self.cancel(by, cx.now)?,
        }
        self.settle_approvals(cx);
        self.start(cx);
        Ok(())
    }

    /// When to look again though nothing happens: an approval expires.
    pub fn due(&self, cx: &Context) -> Option<Timestamp> {
        if self.status().is_over() {
            return None;
        }
        let waiting = self.steps.iter().filter(|step| step.status == StepStatus::ApprovalAwaiting);
        waiting.filter_map(|step| step.asked_at).map(|at| at.plus_s(cx.answer_s)).min()
    }

    /// For what a step waits, or why it ended as it did. `current` and `over` are those of the workflow.
    pub fn waiting(&self, step: &Step, current: &[usize], over: bool) -> String {
        if over && step.status == StepStatus::Pending {
            return String::new();
        }
        if over && step.status == StepStatus::ApprovalAwaiting {
            return "the workflow is over".into();
        }
        if step.status != StepStatus::Pending || !step.reason.is_empty() {
            return step.reason.clone();
        }
        let before = step.after.iter().map(|slot| &self.steps[current[*slot as usize]]);
        let open: Vec<String> = before.filter(|before| !before.status.is_done()).map(Step::title).collect();
        match open.len() {
            0 => String::new(),
            count if count > NAMED => format!("waits for {} and {} more", open[..NAMED].join(", "), count - NAMED),
            _ => format!("waits for {}", open.join(", ")),
        }
    }

    /// The current attempt that an id names.
    fn find(&self, id: &StepId) -> Result<usize, Refused> {
        let at = self.steps.iter().position(|step| step.id == *id).ok_or(Refused::NoStep)?;
        if self.steps[at].status == StepStatus::Discarded {
            let slot = self.steps[at].slot;
            let newest = self.steps.iter().rfind(|step| step.slot == slot);
            return Err(Refused::Superseded(newest.map_or_else(|| id.clone(), |step| step.id.clone())));
        }
        Ok(at)
    }

    fn end(&mut self, at: usize, status: StepStatus, reason: impl Into<String>, now: Timestamp) {
        let step = &mut self.steps[at];
        step.status = status;
        step.reason = reason.into();
        step.finished_at = Some(now);
    }

    fn ended(&mut self, id: &StepId, ended: Ended, now: Timestamp, ids: &mut dyn FnMut() -> StepId) {
        let Ok(at) = self.find(id) else { return };
        let step = &self.steps[at];
        // A person has looked and said how it ended.
        let settled = step.status == StepStatus::Unknown;
        if step.status != StepStatus::InProgress && !settled {
            return;
        }
        if settled && self.cancelled_by.is_none() {
            self.reopen();
        }
        let step = &self.steps[at];
        match ended {
            Ended::Success if settled => self.end(at, StepStatus::Success, SETTLED, now),
            Ended::Success => self.end(at, StepStatus::Success, "", now),
            // The same plan would be denied again.
            Ended::Denied(plan, reason) if !step.look_only => {
                self.steps[at].plan = Some(plan);
                self.end(at, StepStatus::Error, reason, now);
            }
            Ended::Planned(plan) | Ended::Denied(plan, _) => {
                let (noop, look_only) = (plan.changes.is_noop(), step.look_only);
                self.steps[at].plan = Some(plan);
                match (look_only, noop) {
                    (true, true) => self.end(at, StepStatus::NoDrift, "no differences", now),
                    (true, false) => self.end(at, StepStatus::Drifted, "", now),
                    (false, true) => {
                        self.end(at, StepStatus::AutoSkipped, "the plan changes nothing", now);
                        self.skip_rest(at, "the plan changes nothing", now);
                    }
                    (false, false) => {
                        let ask = self.steps[at].plan.as_ref().and_then(|plan| plan.ask.clone());
                        let reason = match &ask {
                            Some(why) => format!("waits for a person's approval: {why}"),
                            None => "waits for an approval".to_owned(),
                        };
                        self.end(at, StepStatus::ApprovalAwaiting, reason, now);
                        self.steps[at].ask |= ask.is_some();
                        self.steps[at].finished_at = None;
                        self.steps[at].asked_at = Some(now);
                    }
                }
            }
            Ended::Failed(reason) => {
                let again = (step.work.is_attempt() || step.work.is_apply())
                    && step.auto_retries > 0
                    && !settled
                    && self.cancelled_by.is_none();
                self.end(at, StepStatus::Error, reason, now);
                if again {
                    self.again(at, true, now, ids);
                }
            }
            // Never by itself: somebody looks, and a new plan tells what is there.
            Ended::Unknown(reason) => self.end(at, StepStatus::Unknown, reason, now),
            Ended::Cancelled(reason) => self.end(at, StepStatus::Cancelled, reason, now),
            Ended::Stale(reason) => {
                let again = step.attempt < ATTEMPTS && self.cancelled_by.is_none();
                if again {
                    self.end(at, StepStatus::Error, format!("{reason}; a new plan is made"), now);
                    self.again(at, false, now, ids);
                } else {
                    self.end(at, StepStatus::Error, reason, now);
                }
            }
        }
    }

    /// A new attempt: of an apply, together with its plan; what was approved is gone.
    fn again(&mut self, at: usize, automatic: bool, now: Timestamp, ids: &mut dyn FnMut() -> StepId) {
        self.reopen();
        let unknown = self.steps[at].status == StepStatus::Unknown;
        let (group, slot, apply) = (self.steps[at].group, self.steps[at].slot, self.steps[at].work.is_apply());
        for other in self.current() {
            let step = &self.steps[other];
            if step.group != group {
                continue;
            }
            if step.slot == slot || apply && step.work.is_plan() && step.slot < slot {
                let new = Step {
                    id: ids(),
                    attempt: step.attempt + 1,
                    status: StepStatus::Pending,
                    reason: String::new(),
                    asked_at: None,
                    plan: None,
                    answer: None,
                    role: None,
                    ask: step.ask || unknown,
                    auto_retries: step.auto_retries.saturating_sub(u32::from(automatic)),
                    created_at: now,
                    started_at: None,
                    finished_at: None,
                    ..step.clone()
                };
                let old = &mut self.steps[other];
                if old.status == StepStatus::ApprovalAwaiting {
                    old.reason = "there is a newer attempt".into();
                }
                old.status = StepStatus::Discarded;
                old.finished_at.get_or_insert(now);
                self.steps.push(new);
            } else if step.slot > slot && step.status == StepStatus::AutoSkipped {
                let step = &mut self.steps[other];
                (step.status, step.finished_at) = (StepStatus::Pending, None);
                step.reason.clear();
            }
        }
    }

    /// What was not attempted because something failed may be attempted again.
    fn reopen(&mut self) {
        for at in self.current() {
            if self.steps[at].status == StepStatus::NotAttempted {
                let step = &mut self.steps[at];
                (step.status, step.finished_at) = (StepStatus::Pending, None);
                step.reason.clear();
            }
        }
    }

    /// What comes after a step in its group is not done.
    fn skip_rest(&mut self, at: usize, reason: &str, now: Timestamp) {
        let (group, slot) = (self.steps[at].group, self.steps[at].slot);
        for other in self.current() {
            let step = &self.steps[other];
            if step.group == group && step.slot > slot && step.status == StepStatus::Pending {
                self.end(other, StepStatus::AutoSkipped, reason, now);
            }
        }
    }

    /// What was to be torn down stays, and so does all that it stands on: the components that it needs, and the sandbox. What a
    /// runbook does besides goes on.
    fn keep_below(&mut self, at: usize, reason: &str, now: Timestamp) {
        // A cluster that goes takes along what was left in it.
        let work = &self.steps[at].work;
        if !work.is_teardown() || matches!(work, Work::RemoveSecrets { cluster: Some(_) }) {
            return;
        }
        let mut kept = BTreeSet::from([self.steps[at].slot]);
        let current = self.current();
        for &other in &current {
            let step = &self.steps[other];
            if step.slot > self.steps[at].slot && step.after.iter().any(|slot| kept.contains(slot)) {
                kept.insert(step.slot);
                if step.status == StepStatus::Pending && (step.work.is_teardown() || step.work.is_hook_of_teardown()) {
                    self.end(other, StepStatus::AutoSkipped, reason, now);
                }
            }
        }
    }

    /// Nor what depends on its group.
    fn skip_dependents(&mut self, at: usize, reason: &str, now: Timestamp) {
        let whole = self.steps[at].work.component().is_none();
        let mut skipped = BTreeSet::from([self.steps[at].group]);
        let current = self.current();
        for &other in &current {
            let step = &self.steps[other];
            let follows = step.after.iter().any(|slot| skipped.contains(&self.steps[current[*slot as usize]].group));
            if step.slot > self.steps[at].slot && follows && (whole || step.work.component().is_some()) {
                skipped.insert(step.group);
            }
            if step.status == StepStatus::Pending && skipped.contains(&step.group) {
                self.end(other, StepStatus::AutoSkipped, reason, now);
            }
        }
    }

    #[expect(clippy::too_many_arguments)]
    fn answered(
        &mut self,
        at: usize,
        response: Response,
        digest: Option<&str>,
        by: &str,
        note: &str,
        now: Timestamp,
        ids: &mut dyn FnMut() -> StepId,
    ) -> Result<(), Refused> {
        let step = &self.steps[at];
        let Some(plan) = &step.plan else { return Err(Refused::NotAwaiting(step.status.as_str())) };
        if digest.is_some_and(|digest| digest != plan.digest) {
            return Err(Refused::OtherPlan);
        }
        // Approving twice is harmless.
        if step.status == StepStatus::Approved && response == Response::Approve {
            return Ok(());
        }
        if step.status != StepStatus::ApprovalAwaiting {
            return Err(Refused::NotAwaiting(step.status.as_str()));
        }
        let status = self.status();
        if status.is_over() {
            return Err(Refused::Over(status.as_str()));
        }
        let said = Answer {
            response: response.as_str().into(),
            by: by.to_owned(),
            note: note.to_owned(),
            at: now,
            digest: plan.digest.clone(),
        };
        let name = step.title();
        let denied = if note.is_empty() { format!("denied by {by}") } else { format!("denied by {by}: {note}") };
        self.steps[at].answer = Some(said);
        match response {
            Response::Approve => self.end(at, StepStatus::Approved, "", now),
            Response::Deny => self.end(at, StepStatus::ApprovalDenied, denied, now),
            Response::DenySkip | Response::DenySkipDependents => {
                self.end(at, StepStatus::DeniedSkipped, denied, now);
                let reason = format!("{name} was denied by {by}");
                self.skip_rest(at, &reason, now);
                self.keep_below(at, &format!("{reason}: what it needs is kept"), now);
                if response == Response::DenySkipDependents {
                    self.skip_dependents(at, &reason, now);
                }
            }
            Response::Retry => {
                self.end(at, StepStatus::Error, format!("{by} asked for a new plan"), now);
                self.again(at, false, now, ids);
            }
        }
        Ok(())
    }

    fn retry(&mut self, id: &StepId, now: Timestamp, ids: &mut dyn FnMut() -> StepId) -> Result<(), Refused> {
        let at = self.find(id)?;
        let step = &self.steps[at];
        if self.cancelled_by.is_some() {
            return Err(Refused::Over(WorkflowStatus::Cancelled.as_str()));
        }
        if !step.work.is_retryable() {
            return Err(Refused::Never("retried"));
        }
        if !self.can_retry(step) {
            return Err(Refused::NotRetryable(step.status.as_str()));
        }
        self.again(at, false, now, ids);
        Ok(())
    }

    fn skip(&mut self, id: &StepId, by: &str, now: Timestamp) -> Result<(), Refused> {
        let at = self.find(id)?;
        let step = &self.steps[at];
        if self.cancelled_by.is_some() {
            return Err(Refused::Over(WorkflowStatus::Cancelled.as_str()));
        }
        if !step.work.is_skippable() {
            return Err(Refused::Never("skipped"));
        }
        if step.status == StepStatus::UserSkipped {
            return Ok(());
        }
        if !self.can_skip(step) {
            return Err(Refused::NotSkippable(step.status.as_str()));
        }
        // What comes after a part that was not deployed has nothing to follow.
        let whole = step.work.is_attempt() || step.work.is_apply();
        let skipped = format!("skipped by {by}");
        let reason = if step.reason.is_empty() { skipped.clone() } else { format!("{}; {skipped}", step.reason) };
        let (title, ended) = (step.title(), step.finished_at);
        self.end(at, StepStatus::UserSkipped, reason, now);
        // How long it took stays what it was.
        self.steps[at].finished_at = ended.or(Some(now));
        self.reopen();
        if whole {
            self.skip_rest(at, &format!("{title} was {skipped}"), now);
            self.keep_below(at, &format!("{title} was {skipped}: what it needs is kept"), now);
        }
        Ok(())
    }

    fn cancel(&mut self, by: String, now: Timestamp) -> Result<(), Refused> {
        let status = self.status();
        if self.cancelled_by.is_some() {
            return Ok(());
        }
        if status.is_over() {
            return Err(Refused::Over(status.as_str()));
        }
        let reason = format!("cancelled by {by}");
        self.cancelled_by = Some(by);
        for at in self.current() {
            let step = &self.steps[at];
            let waits = step.status == StepStatus::InProgress && step.work.is_wait();
            if waits || step.status == StepStatus::ApprovalAwaiting {
                self.end(at, StepStatus::Cancelled, reason.clone(), now);
            }
        }
        Ok(())
    }

    fn settle_approvals(&mut self, cx: &Context) {
        if self.status().is_over() {
            return;
        }
        for at in self.current() {
            let step = &self.steps[at];
            if step.status != StepStatus::ApprovalAwaiting {
                continue;
            }
            let Some(plan) = &step.plan else { continue };
            let why = if step.ask {
                None
            } else if let Some(by) = &self.approve_all {
                Some((by.clone(), "auto-approved"))
            } else if cx.approve_all {
                Some(("the install".to_owned(), "auto-approved"))
            } else if step.auto_approve_on_policies && plan.policies.is_passed() {
                Some(("policies".to_owned(), "all policies let it pass"))
            } else {
                None
            };
            if let Some((by, why)) = why {
                let (response, digest) = ("auto-approve".to_owned(), plan.digest.clone());
                let note = why.to_owned();
                self.steps[at].answer = Some(Answer { response, by, note, at: cx.now, digest });
                self.end(at, StepStatus::Approved, why, cx.now);
            } else if step.asked_at.is_some_and(|asked| asked.plus_s(cx.answer_s) <= cx.now) {
                self.end(at, StepStatus::ApprovalExpired, "nobody approved it in time", cx.now);
            }
        }
    }

    /// Starts every step whose turn has come. Slots only wait for slots before them, so one pass is enough.
    fn start(&mut self, cx: &Context) {
        let current = self.current();
        let failed = current.iter().any(|at| self.steps[*at].status.is_failed());
        if self.cancelled_by.is_some() || failed && self.on_error == OnError::Abort {
            return;
        }
        let mut running: Vec<usize> =
            current.iter().copied().filter(|at| self.steps[*at].status == StepStatus::InProgress).collect();
        for &at in &current {
            if self.steps[at].status != StepStatus::Pending {
                continue;
            }
            let before = || self.steps[at].after.iter().map(|slot| &self.steps[current[*slot as usize]]);
            // What needs something that failed is not attempted; what does not goes on.
            let broken = before().find(|step| step.status.is_failed());
            if let Some(broken) = broken {
                let reason = format!("{} did not succeed", broken.title());
                self.end(at, StepStatus::NotAttempted, reason, cx.now);
                continue;
            }
            if !before().all(|step| step.status.is_done()) {
                continue;
            }
            let step = &self.steps[at];
            if step.work.is_instant() {
                let skipped = matches!(step.work, Work::Skipped { .. });
                self.steps[at].started_at = Some(cx.now);
                let status = if skipped { StepStatus::AutoSkipped } else { StepStatus::Success };
                self.end(at, status, "", cx.now);
                continue;
            }
            if let Some(reason) = self.blocked(at, &running, cx) {
                if self.steps[at].reason != reason {
                    self.steps[at].reason = reason;
                }
                continue;
            }
            let step = &mut self.steps[at];
            step.status = StepStatus::InProgress;
            step.started_at = Some(cx.now);
            step.reason.clear();
            running.push(at);
        }
    }

    /// Why a step whose turn has come can't begin now.
    fn blocked(&self, at: usize, running: &[usize], cx: &Context) -> Option<String> {
        let step = &self.steps[at];
        if let Some(lock) = step.lock() {
            let own = running
                .iter()
                .map(|at| &self.steps[*at])
                .find(|other| !other.look_only && other.lock().is_some_and(|held| held.conflicts(&lock)));
            if let Some(other) = own {
                return Some(format!("waits for {}", other.title()));
            }
            if let Some(held) = cx.held.iter().find(|held| held.lock.conflicts(&lock)) {
                return Some(format!("waits for {}", held.by));
            }
        }
        (running.len() >= cx.limit).then(|| format!("waits for a place: {} steps are in progress", running.len()))
    }

    /// What this workflow keeps others from.
    pub fn holds(&self) -> impl Iterator<Item = (&Step, Lock)> {
        self.steps.iter().filter_map(|step| step.held().map(|lock| (step, lock)))
    }
}
