//! The session as a state machine without I/O: events and the time go in, effects come out. The driver performs them; the
//! simulator can perform others.

#![warn(clippy::wildcard_enum_match_arm)]

mod talk;

use std::collections::BTreeMap;

use api::runner::{Assignment, Held, PollAnswer, PollRequest, RenewAnswer, Timing};
use model::runner::{HeldState, RunnerReport, RunnerSettings};
use model::{ExecutionId, JobGroup, JobId, WorkspaceId, constants};

pub use self::talk::{Effect, Ending, Event, Found, Over};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    Starting,
    Running,
    /// The executor is gone, and what it left is being ended.
    Reaping,
    /// The executor is gone without a result; the server has not heard of it yet.
    Dead,
    /// Dead, and the server has heard of it: only the rest of its log is to be delivered. Never renewed, which would
    /// call the job back to life.
    Buried,
    /// An earlier process took it and started nothing; the server has not heard of it yet.
    Unstarted,
    /// Only its log and result are still to be delivered.
    Delivering,
}

#[derive(Debug)]
struct Execution {
    /// None for one that is only refused.
    job: Option<JobId>,
    group: JobGroup,
    epoch: u64,
    phase: Phase,
    cancelled: bool,
    /// When to ask for the start again.
    start_at_ms: Option<u64>,
    /// How long its child may take to end once it is interrupted.
    grace_s: u64,
    /// Its result is sent when the control plane knows of the states that wait here: what follows from a result must not
    /// begin without them.
    held_back: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    Draining { until_ms: u64 },
    Stopping { until_ms: u64 },
}

pub struct Core {
    timing: Timing,
    settings: RunnerSettings,
    /// Which list of what to observe is known.
    watch: u64,
    report: RunnerReport,
    executions: BTreeMap<ExecutionId, Execution>,
    /// When the next poll is due; `None` while one is held.
    poll_at_ms: Option<u64>,
    failures: u32,
    reconnect_ms: u64,
    renew_at_ms: u64,
    renewing: bool,
    renew_sent_ms: u64,
    leaving: Leaving,
    over: Option<Over>,
    exited: bool,
    /// Whether the held poll offered free slots.
    offered: bool,
    /// What the latest poll said of states that wait, and what the control plane has acknowledged.
    rescues_said: Vec<WorkspaceId>,
    rescues_known: Vec<WorkspaceId>,
    random: u64,
    process: u64,
    polls: u64,
}

/// After the drain and the grace, how long results may take to arrive.
const LAST_WORDS_MS: u64 = 15_000;
const START_RETRY_MS: u64 = 500;
/// Before the next poll, while executions that are lost have their grace.
const LOST_AGAIN_MS: u64 = 250;
/// Returns that are tried before the pauses grow: a server that restarts is back by then.
const PATIENT_TRIES: u32 = 3;

impl Core {
    /// `process` counts the processes that had this session; `seed` makes the jitter; executions come from `adopt`.
    pub fn new(timing: Timing, settings: RunnerSettings, report: RunnerReport, process: u64, seed: u64) -> Self {
        Self {
            timing,
            settings,
            watch: 0,
            report,
            executions: BTreeMap::new(),
            poll_at_ms: Some(0),
            failures: 0,
            reconnect_ms: 500,
            renew_at_ms: 0,
            renewing: false,
            renew_sent_ms: 0,
            leaving: Leaving::No,
            over: None,
            exited: false,
            offered: false,
            rescues_said: Vec::new(),
            rescues_known: Vec::new(),
            random: seed | 1,
            process,
            polls: 0,
        }
    }

    /// Takes over an execution of an earlier process.
    pub fn adopt(&mut self, assignment: &Assignment, found: Found) {
        let phase = match found {
            Found::Running => Phase::Running,
            Found::WithResult => Phase::Delivering,
            // Its death is told when nothing of it is left: then others may work on its target.
            Found::Dead => Phase::Reaping,
            Found::Unstarted => Phase::Unstarted,
        };
        self.insert(assignment, phase);
        if let Some(execution) = self.executions.get_mut(&assignment.execution_id) {
            execution.held_back = found == Found::WithResult;
        }
    }

    fn insert(&mut self, a: &Assignment, phase: Phase) {
        let execution = Execution {
            job: Some(a.job_id.clone()),
            group: a.group,
            epoch: a.epoch,
            phase,
            cancelled: false,
            start_at_ms: None,
            grace_s: a.job_type.facts().grace_s,
            held_back: false,
        };
        self.executions.insert(a.execution_id.clone(), execution);
    }

    pub fn settings(&self) -> &RunnerSettings {
        &self.settings
    }

    /// What each group works on.
    pub fn busy(&self) -> BTreeMap<JobGroup, Vec<JobId>> {
        let mut busy: BTreeMap<JobGroup, Vec<JobId>> = BTreeMap::new();
        for execution in self.executions.values().filter(|e| e.phase.takes_slot()) {
            busy.entry(execution.group).or_default().extend(execution.job.clone());
        }
        busy
    }

    /// The one entry: `now_ms` is monotonic.
    pub fn handle(&mut self, event: Event, now_ms: u64) -> Vec<Effect> {
        let mut out = Vec::new();
        match event {
            Event::Tick { disk_free_bytes } => self.report.disk_free_bytes = disk_free_bytes,
            Event::PollAnswered { seq, nonce, answer } if seq == self.polls => {
                self.poll_answered(&nonce, *answer, now_ms, &mut out);
            }
            Event::PollFailed { seq, over } if seq == self.polls || over.is_some() => self.poll_failed(over, now_ms),
            Event::PollAnswered { .. } | Event::PollFailed { .. } => {}
            // Given up meanwhile: whatever was made of it goes.
            Event::Prepared(id) | Event::Refused(id) | Event::Started(id) if !self.executions.contains_key(&id) => {
                out.push(Effect::Remove(id));
            }
            Event::Prepared(id) if crash::broken!("start_unacknowledged") => {
                self.set_phase(&id, Phase::Running);
                out.push(Effect::Spawn(id));
            }
            Event::Prepared(id) | Event::Started(id) if self.starts_nothing() => self.give_back(&id, now_ms, &mut out),
            Event::Prepared(id) => {
                self.set_phase(&id, Phase::Starting);
                out.push(Effect::Start(id));
            }
            Event::NotPrepared(id) | Event::StartRefused(id) => self.forget(&id, now_ms, &mut out),
            Event::Refused(id) => {
                self.set_phase(&id, Phase::Delivering);
                out.push(Effect::Refuse(id));
            }
            Event::Started(id) => {
                self.set_phase(&id, Phase::Running);
                out.push(Effect::Spawn(id));
            }
            Event::StartFailed(id) => {
                if let Some(execution) = self.executions.get_mut(&id) {
                    execution.start_at_ms = Some(now_ms + START_RETRY_MS);
                }
            }
            Event::Ended { id, has_result } => self.ended(&id, has_result, now_ms),
            Event::Renewed(answer) => self.renewed(*answer, now_ms, &mut out),
            Event::RenewFailed { over } => {
                self.renewing = false;
                self.over = self.over.or(over);
                self.renew_at_ms = now_ms + 200 + self.draw(800);
            }
            Event::Delivered(id) => self.forget(&id, now_ms, &mut out),
            Event::Disabled(since) => {
                if self.report.disabled_since != since {
                    self.report.disabled_since = since;
                    self.poll_at_ms = Some(now_ms);
                }
            }
            Event::Rescues(open) => {
                if self.report.rescues_open != open {
                    self.report.rescues_open = open;
                    self.poll_at_ms = Some(now_ms);
                }
            }
            Event::Drain => {
                if self.leaving == Leaving::No {
                    self.leaving = Leaving::Draining { until_ms: now_ms + self.settings.drain_s * 1000 };
                    self.poll_at_ms = Some(now_ms);
                }
            }
            Event::Stop => {
                if !matches!(self.leaving, Leaving::Stopping { .. }) {
                    self.begin_stop(now_ms);
                    self.poll_at_ms = Some(now_ms);
                }
            }
            Event::HandOver => self.exit(Ending::HandedOver, &mut out),
        }
        self.consider(now_ms, &mut out);
        out
    }

    /// When something is due again, whatever happens.
    pub fn next_due_ms(&self) -> Option<u64> {
        if self.over.is_some() || self.exited {
            // Nothing is asked of the control plane any more: what still happens comes as an event.
            return None;
        }
        let starts = self.executions.values().filter_map(|e| e.start_at_ms);
        let renew = (self.must_renew() && !self.renewing).then_some(self.renew_at_ms);
        let leave = match self.leaving {
            Leaving::No => None,
            Leaving::Draining { until_ms } | Leaving::Stopping { until_ms } => Some(until_ms),
        };
        starts.chain(self.poll_at_ms).chain(renew).chain(leave).min()
    }

    fn set_phase(&mut self, id: &ExecutionId, phase: Phase) {
        if let Some(execution) = self.executions.get_mut(id) {
            execution.phase = phase;
            execution.start_at_ms = None;
        }
    }

    /// Everything that follows from the state alone.
    fn consider(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        if self.exited {
            return;
        }
        if let Leaving::Draining { until_ms } = self.leaving
            && now_ms >= until_ms
        {
            self.begin_stop(now_ms);
        }
        self.cancel_what_must_end(out);
        self.ask_again_for_starts(now_ms, out);
        self.let_results_go(out);
        if self.is_over(now_ms) {
            let ending = match (self.over, self.executions.is_empty()) {
                (Some(over), _) => Ending::Over(over),
                (None, true) => Ending::Done,
                (None, false) => Ending::HandedOver,
            };
            return self.exit(ending, out);
        }
        if self.over.is_some() {
            return;
        }
        if self.must_renew() && !self.renewing && self.renew_at_ms <= now_ms {
            self.renewing = true;
            self.renew_sent_ms = now_ms;
            out.push(Effect::Renew(self.held(|e| e.phase.renews())));
        }
        // A held poll that offered no slots is made anew when there are some again: disk freed, or enabled.
        if self.poll_at_ms.is_none() && !self.offered && self.offers() {
            self.poll_at_ms = Some(now_ms);
        }
        if self.poll_at_ms.is_some_and(|at| at <= now_ms) {
            self.poll_at_ms = None;
            out.push(Effect::Poll(Box::new(self.poll_request())));
        }
    }

    /// Whether nothing may be started now: switched off, fenced, or on the way out.
    fn starts_nothing(&self) -> bool {
        let disabled = self.report.disabled_since.is_some() && !crash::broken!("start_while_disabled");
        self.over.is_some() || disabled || matches!(self.leaving, Leaving::Stopping { .. })
    }

    /// Nothing was started, and nothing will be: the server hears so, and queues the job again.
    fn give_back(&mut self, id: &ExecutionId, now_ms: u64, out: &mut Vec<Effect>) {
        if self.over.is_some() {
            // Nobody listens to this session any more; the server has given the execution up itself.
            return self.forget(id, now_ms, out);
        }
        self.set_phase(id, Phase::Unstarted);
        self.poll_at_ms = Some(now_ms);
    }

    fn ask_again_for_starts(&mut self, now_ms: u64, out: &mut Vec<Effect>) {
        let starts_nothing = self.starts_nothing();
        let due = |e: &Execution| e.start_at_ms.is_some_and(|at| at <= now_ms || starts_nothing);
        let due: Vec<_> = self.executions.iter().filter(|(_, e)| due(e)).map(|(id, _)| id.clone()).collect();
        for id in due {
            if starts_nothing {
                self.give_back(&id, now_ms, out);
                continue;
            }
            if let Some(execution) = self.executions.get_mut(&id) {
                execution.start_at_ms = None;
            }
            out.push(Effect::Start(id));
        }
    }

    /// Results go out once the control plane knows which states wait here; to a fenced session nobody listens anyway.
    fn let_results_go(&mut self, out: &mut Vec<Effect>) {
        if self.over.is_none() && self.rescues_known != self.report.rescues_open {
            return;
        }
        for (id, execution) in self.executions.iter_mut().filter(|(_, e)| e.held_back) {
            execution.held_back = false;
            out.push(Effect::Finish(id.clone()));
        }
    }

    fn cancel_what_must_end(&mut self, out: &mut Vec<Effect>) {
        let reason = if let Some(over) = self.over {
            match over {
                Over::Fenced => "lease_lost: a newer session has taken this runner's place",
                Over::Revoked => "lease_lost: the vendor revoked this runner, or deleted its install",
            }
        } else if self.report.disabled_since.is_some() {
            "the customer has disabled the runner"
        } else if matches!(self.leaving, Leaving::Stopping { .. }) {
            "the runner is shutting down"
        } else {
            return;
        };
        for (id, execution) in &mut self.executions {
            if execution.phase == Phase::Running && !execution.cancelled {
                execution.cancelled = true;
                out.push(Effect::Cancel { id: id.clone(), reason });
            }
        }
    }

    fn begin_stop(&mut self, now_ms: u64) {
        let busy = self.executions.values().filter(|e| e.phase.takes_slot());
        let grace_s = busy.map(|e| e.grace_s).max().unwrap_or(0);
        self.leaving = Leaving::Stopping { until_ms: now_ms + grace_s * 1000 + LAST_WORDS_MS };
    }

    fn is_over(&self, now_ms: u64) -> bool {
        let busy = self.executions.values().any(|e| e.phase.takes_slot());
        match self.leaving {
            _ if self.over.is_some() => !busy,
            Leaving::No => false,
            Leaving::Draining { .. } => self.executions.is_empty(),
            Leaving::Stopping { until_ms } => self.executions.is_empty() || now_ms >= until_ms,
        }
    }

    fn exit(&mut self, ending: Ending, out: &mut Vec<Effect>) {
        if !self.exited {
            self.exited = true;
            out.push(Effect::Exit(ending));
        }
    }

    fn must_renew(&self) -> bool {
        self.executions.values().any(|e| e.phase.renews())
    }

    fn held(&self, wanted: impl Fn(&Execution) -> bool) -> Vec<Held> {
        self.executions
            .iter()
            .filter(|(_, e)| wanted(e))
            .map(|(id, e)| Held { execution_id: id.clone(), epoch: e.epoch, state: e.phase.held() })
            .collect()
    }

    fn takes_jobs(&self) -> bool {
        self.leaving == Leaving::No
            && self.report.disabled_since.is_none()
            && self.report.disk_free_bytes >= self.settings.disk_floor_bytes
    }

    fn free(&self) -> BTreeMap<JobGroup, u32> {
        if !self.takes_jobs() {
            return BTreeMap::new();
        }
        let busy = self.busy();
        let used = |group: &JobGroup| busy.get(group).map_or(0, Vec::len) as u32;
        self.settings
            .groups
            .iter()
            .map(|(g, slots)| (*g, slots.saturating_sub(used(g))))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    fn offers(&self) -> bool {
        !self.free().is_empty()
    }

    fn poll_request(&mut self) -> PollRequest {
        self.polls += 1;
        let free = self.free();
        self.offered = !free.is_empty();
        self.rescues_said.clone_from(&self.report.rescues_open);
        let report = RunnerReport {
            draining: self.leaving != Leaving::No,
            disk_floor_bytes: self.settings.disk_floor_bytes,
            busy: self.busy(),
            slots: self.settings.groups.clone(),
            ..self.report.clone()
        };
        let known = self.executions.iter().filter(|(_, e)| e.cancelled).map(|(id, _)| id.clone()).collect();
        PollRequest {
            nonce: String::new(),
            process: self.process,
            seq: self.polls,
            free,
            held: self.held(|_| true),
            cancels_known: known,
            settings_version: self.settings.version,
            watch: Some(self.watch),
            report,
            // Results wait for this one.
            no_wait: self.rescues_said != self.rescues_known,
        }
    }

    fn poll_answered(&mut self, nonce: &str, answer: PollAnswer, now_ms: u64, out: &mut Vec<Effect>) {
        self.failures = 0;
        self.rescues_known.clone_from(&self.rescues_said);
        if answer.reconnect_ms > 0 {
            self.reconnect_ms = answer.reconnect_ms;
        }
        if !answer.keys.is_empty() {
            out.push(Effect::Learn(answer.keys));
        }
        if let Some(settings) = answer.settings {
            out.push(Effect::Keep(Box::new(settings.clone())));
            self.settings = settings;
        }
        if answer.watch != self.watch {
            self.watch = answer.watch;
            out.push(Effect::Observe(answer.watch));
        }
        // The server has heard of the dead: what is left of them is their log.
        for (id, execution) in &mut self.executions {
            if execution.phase == Phase::Dead {
                execution.phase = Phase::Buried;
                out.push(Effect::Finish(id.clone()));
            }
        }
        let unstarted = self.executions.iter().filter(|(_, e)| e.phase == Phase::Unstarted).map(|(id, _)| id.clone());
        for id in unstarted.collect::<Vec<_>>() {
            self.forget(&id, now_ms, out);
        }
        for id in answer.cancels {
            self.cancel(&id, "by request", out);
        }
        // What was told before is told again until it is gone: nothing is gained by asking at once.
        let known = |id: &ExecutionId| self.executions.get(id).is_some_and(|e| e.cancelled);
        let stale = answer.jobs.is_empty() && !answer.lost.is_empty() && answer.lost.iter().all(known);
        for id in answer.lost {
            self.lost(&id, now_ms, out);
        }
        for assignment in answer.jobs {
            if !self.executions.contains_key(&assignment.execution_id) {
                self.insert(&assignment, Phase::Preparing);
                out.push(Effect::Prepare { nonce: nonce.to_owned(), assignment: Box::new(assignment) });
            }
        }
        for unreadable in answer.unreadable {
            // Held until the server has heard: a claim that is missing from the list would come again and again.
            let execution = Execution {
                job: None,
                group: JobGroup::Operations,
                epoch: unreadable.epoch,
                phase: Phase::Delivering,
                cancelled: false,
                start_at_ms: None,
                grace_s: 0,
                held_back: false,
            };
            if self.executions.insert(unreadable.execution_id.clone(), execution).is_none() {
                out.push(Effect::RefuseUnreadable(Box::new(unreadable)));
            }
        }
        let pause = match (answer.restarting, stale) {
            (true, _) => 100 + self.draw(self.spread_ms()),
            (false, true) => LOST_AGAIN_MS,
            (false, false) => 0,
        };
        self.poll_at_ms = Some(now_ms + pause);
    }

    fn cancel(&mut self, id: &ExecutionId, reason: &'static str, out: &mut Vec<Effect>) {
        let Some(execution) = self.executions.get_mut(id) else { return };
        if execution.phase == Phase::Running && !execution.cancelled {
            execution.cancelled = true;
            out.push(Effect::Cancel { id: id.clone(), reason });
        }
    }

    /// The epoch of an execution is no longer current.
    fn lost(&mut self, id: &ExecutionId, now_ms: u64, out: &mut Vec<Effect>) {
        let Some(execution) = self.executions.get(id) else { return };
        match execution.phase {
            Phase::Preparing | Phase::Starting | Phase::Unstarted => self.forget(id, now_ms, out),
            Phase::Running => self.cancel(id, "lease_lost: the control plane has given this job up", out),
            // It may be lost because its result is in; the delivery will find out.
            Phase::Delivering | Phase::Reaping | Phase::Dead | Phase::Buried => {}
        }
    }

    fn forget(&mut self, id: &ExecutionId, now_ms: u64, out: &mut Vec<Effect>) {
        out.push(Effect::Remove(id.clone()));
        if self.executions.remove(id).is_some() {
            // The server answers a held poll when a result is in; if it offered nothing, there is something now.
            if !self.offered && self.poll_at_ms.is_none() {
                self.poll_at_ms = Some(now_ms);
            }
        }
    }

    fn poll_failed(&mut self, over: Option<Over>, now_ms: u64) {
        self.over = self.over.or(over);
        self.failures = (self.failures + 1).min(16);
        let pause = self.draw(self.spread_ms());
        self.poll_at_ms = Some(now_ms + pause);
    }

    /// Over how long to spread the return: short with work in hand, else by what the server said, doubling after some tries.
    fn spread_ms(&self) -> u64 {
        if !self.executions.is_empty() || self.leaving != Leaving::No {
            return constants::RECONNECT_BUSY_MS.min(200 << self.failures.min(8));
        }
        // Half a hold at most, unless there are so many: who comes back late keeps jobs waiting.
        let most_ms = self.reconnect_ms.max(self.timing.hold_s * 500).min(constants::RECONNECT_IDLE_MS);
        (self.reconnect_ms << self.failures.saturating_sub(PATIENT_TRIES).min(8)).min(most_ms)
    }

    fn ended(&mut self, id: &ExecutionId, has_result: bool, now_ms: u64) {
        let Some(execution) = self.executions.get_mut(id) else { return };
        if has_result {
            execution.phase = Phase::Delivering;
            execution.held_back = true;
        } else {
            execution.phase = Phase::Dead;
            self.poll_at_ms = Some(now_ms);
        }
    }

    fn renewed(&mut self, answer: RenewAnswer, now_ms: u64, out: &mut Vec<Effect>) {
        self.renewing = false;
        // An answer that lay on a suspended machine says nothing of the leases now.
        if now_ms.saturating_sub(self.renew_sent_ms) < self.timing.lease_s * 1000 || crash::broken!("stale_renewal") {
            self.renew_at_ms = now_ms + self.timing.renew_s * 1000;
            out.push(Effect::Touch(answer.renewed));
        } else {
            self.renew_at_ms = now_ms;
        }
        for id in answer.cancels {
            self.cancel(&id, "by request", out);
        }
        for id in answer.lost {
            self.lost(&id, now_ms, out);
        }
    }

    /// A number below `bound`, from a small generator: jitter needs no more.
    fn draw(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound.max(1)
    }
}

impl Phase {
    /// Whether an executor may be at work.
    const fn takes_slot(self) -> bool {
        match self {
            Self::Preparing | Self::Starting | Self::Running | Self::Reaping => true,
            Self::Dead | Self::Buried | Self::Unstarted | Self::Delivering => false,
        }
    }

    const fn held(self) -> HeldState {
        match self {
            Self::Preparing | Self::Starting | Self::Running | Self::Reaping | Self::Delivering => HeldState::Alive,
            Self::Dead | Self::Buried => HeldState::Dead,
            Self::Unstarted => HeldState::Unstarted,
        }
    }

    /// Whether its lease is worth keeping.
    const fn renews(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Delivering => true,
            Self::Preparing | Self::Reaping | Self::Dead | Self::Buried | Self::Unstarted => false,
        }
    }
}

#[cfg(test)]
mod tests;
