//! The session as a state machine without I/O: events and the time go in, effects come out. The driver performs them; the
//! simulator can perform others.

use std::collections::BTreeMap;

use api::runner::{Assignment, Held, PollAnswer, PollRequest, RenewAnswer, Strange, Timing};
use model::runner::{HeldState, RunnerReport, RunnerSettings};
use model::{ExecutionId, JobGroup, JobId, Timestamp, constants};

/// What the driver tells.
#[derive(Debug)]
pub enum Event {
    /// Time passes; also says how much disk is free.
    Tick {
        disk_free_bytes: u64,
    },
    /// `seq` is the poll's own: an answer that was overtaken by a newer poll says nothing any more.
    PollAnswered {
        seq: u64,
        nonce: String,
        answer: Box<PollAnswer>,
    },
    PollFailed {
        seq: u64,
        fenced: bool,
    },
    /// Papers and spec are verified and lie in the execution's directory.
    Prepared(ExecutionId),
    /// They could not be had: the claim goes back.
    NotPrepared(ExecutionId),
    /// They are wrong: nothing is spawned, and the server is told.
    Refused(ExecutionId),
    Started(ExecutionId),
    /// The server did not agree, for good.
    StartRefused(ExecutionId),
    /// No answer: ask again.
    StartFailed(ExecutionId),
    /// The executor is gone, with or without a result.
    Ended {
        id: ExecutionId,
        has_result: bool,
    },
    Renewed(Box<RenewAnswer>),
    RenewFailed {
        fenced: bool,
    },
    /// Log and result are in, or will never be taken.
    Delivered(ExecutionId),
    /// The customer's switch.
    Disabled(Option<Timestamp>),
    /// Finish what there is, take nothing more, then exit.
    Drain,
    /// Interrupt what there is, then exit.
    Stop,
    /// Exit at once and leave the executors to the next process.
    HandOver,
}

/// What the driver does.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Ends the held poll, if there is one, and sends this one. The driver fills in the nonce.
    Poll(Box<PollRequest>),
    Prepare {
        nonce: String,
        assignment: Box<Assignment>,
    },
    /// Tells the server that the papers were refused, then forgets.
    Refuse(ExecutionId),
    /// Tells the server that this runner does not know such jobs, then forgets.
    RefuseStrange(Box<Strange>),
    Start(ExecutionId),
    /// Marks it started, spawns the executor, and begins to deliver its log.
    Spawn(ExecutionId),
    Cancel {
        id: ExecutionId,
        reason: &'static str,
    },
    Renew(Vec<Held>),
    /// The leases of these are good again: their executors may go on.
    Touch(Vec<ExecutionId>),
    /// There is no more to come from this executor: deliver the rest of its log.
    Finish(ExecutionId),
    /// Removes the directory.
    Remove(ExecutionId),
    /// New settings, to be kept.
    Keep(Box<RunnerSettings>),
    /// Keys that the server offers; good only if trust leads to them.
    Learn(Vec<model::papers::EndorsedKey>),
    Exit(Ending),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Asked to, and nothing is left behind.
    Done,
    /// Executors go on; the next process takes them over.
    HandedOver,
    /// A newer session has taken this runner's place.
    Fenced,
}

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    Draining { until_ms: u64 },
    Stopping { until_ms: u64 },
}

/// How an execution stands when a process finds it in the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Running,
    WithResult,
    Dead,
    /// Prepared, and nothing was started: it goes back.
    Unstarted,
}

pub struct Core {
    timing: Timing,
    settings: RunnerSettings,
    report: RunnerReport,
    executions: BTreeMap<ExecutionId, Execution>,
    /// When the next poll is due; `None` while one is held.
    poll_at_ms: Option<u64>,
    failures: u32,
    reconnect_ms: u64,
    renew_at_ms: u64,
    renewing: bool,
    leaving: Leaving,
    fenced: bool,
    exited: bool,
    /// Whether the held poll offered free slots.
    offered: bool,
    random: u64,
    process: u64,
    polls: u64,
}

/// After the drain and the grace, how long results may take to arrive.
const LAST_WORDS_MS: u64 = 15_000;
const START_RETRY_MS: u64 = 500;
/// Returns that are tried before the pauses grow: a server that restarts is back by then.
const PATIENT_TRIES: u32 = 3;

impl Core {
    /// `process` counts the processes that had this session; `seed` makes the jitter; executions come from `adopt`.
    pub fn new(timing: Timing, settings: RunnerSettings, report: RunnerReport, process: u64, seed: u64) -> Self {
        Self {
            timing,
            settings,
            report,
            executions: BTreeMap::new(),
            poll_at_ms: Some(0),
            failures: 0,
            reconnect_ms: 500,
            renew_at_ms: 0,
            renewing: false,
            leaving: Leaving::No,
            fenced: false,
            exited: false,
            offered: false,
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
    }

    fn insert(&mut self, a: &Assignment, phase: Phase) {
        let execution = Execution {
            job: Some(a.job_id.clone()),
            group: a.group,
            epoch: a.epoch,
            phase,
            cancelled: false,
            start_at_ms: None,
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
            Event::PollFailed { seq, fenced } if seq == self.polls || fenced => self.poll_failed(fenced, now_ms),
            Event::PollAnswered { .. } | Event::PollFailed { .. } => {}
            // Given up meanwhile: whatever was made of it goes.
            Event::Prepared(id) | Event::Refused(id) | Event::Started(id) if !self.executions.contains_key(&id) => {
                out.push(Effect::Remove(id));
            }
            Event::Prepared(id) if crash::broken!("start_unacknowledged") => {
                self.set_phase(&id, Phase::Running);
                out.push(Effect::Spawn(id));
            }
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
            Event::RenewFailed { fenced } => {
                self.renewing = false;
                self.fenced |= fenced;
                self.renew_at_ms = now_ms + 200 + self.draw(800);
            }
            Event::Delivered(id) => self.forget(&id, now_ms, &mut out),
            Event::Disabled(since) => {
                if self.report.disabled_since != since {
                    self.report.disabled_since = since;
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
        for (id, execution) in &mut self.executions {
            if execution.start_at_ms.is_some_and(|at| at <= now_ms) {
                execution.start_at_ms = None;
                out.push(Effect::Start(id.clone()));
            }
        }
        if self.is_over(now_ms) {
            let ending = match (self.fenced, self.executions.is_empty()) {
                (true, _) => Ending::Fenced,
                (false, true) => Ending::Done,
                (false, false) => Ending::HandedOver,
            };
            return self.exit(ending, out);
        }
        if self.fenced {
            return;
        }
        if self.must_renew() && !self.renewing && self.renew_at_ms <= now_ms {
            self.renewing = true;
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

    fn cancel_what_must_end(&mut self, out: &mut Vec<Effect>) {
        let reason = if self.fenced {
            "lease_lost: a newer session has taken this runner's place"
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
        self.leaving = Leaving::Stopping { until_ms: now_ms + constants::SCRIPT_GRACE_S * 1000 + LAST_WORDS_MS };
    }

    fn is_over(&self, now_ms: u64) -> bool {
        let busy = self.executions.values().any(|e| e.phase.takes_slot());
        match self.leaving {
            _ if self.fenced => !busy,
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
            report,
            no_wait: false,
        }
    }

    fn poll_answered(&mut self, nonce: &str, answer: PollAnswer, now_ms: u64, out: &mut Vec<Effect>) {
        self.failures = 0;
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
        for id in answer.lost {
            self.lost(&id, now_ms, out);
        }
        for assignment in answer.jobs {
            if !self.executions.contains_key(&assignment.execution_id) {
                self.insert(&assignment, Phase::Preparing);
                out.push(Effect::Prepare { nonce: nonce.to_owned(), assignment: Box::new(assignment) });
            }
        }
        for strange in answer.strange {
            // Held until the server has heard: a claim that is missing from the list would come again and again.
            let execution = Execution {
                job: None,
                group: JobGroup::Operations,
                epoch: strange.epoch,
                phase: Phase::Delivering,
                cancelled: false,
                start_at_ms: None,
            };
            if self.executions.insert(strange.execution_id.clone(), execution).is_none() {
                out.push(Effect::RefuseStrange(Box::new(strange)));
            }
        }
        let pause = if answer.restarting { 100 + self.draw(self.spread_ms()) } else { 0 };
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

    fn poll_failed(&mut self, fenced: bool, now_ms: u64) {
        self.fenced |= fenced;
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
        } else {
            execution.phase = Phase::Dead;
            self.poll_at_ms = Some(now_ms);
        }
    }

    fn renewed(&mut self, answer: RenewAnswer, now_ms: u64, out: &mut Vec<Effect>) {
        self.renewing = false;
        self.renew_at_ms = now_ms + self.timing.renew_s * 1000;
        out.push(Effect::Touch(answer.renewed));
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
mod tests {
    use model::papers::Signed;
    use model::runner::RunnerKind;
    use model::{JobType, LogStreamId};

    use super::*;

    fn core() -> Core {
        let timing = Timing { hold_s: 25, lease_s: 30, renew_s: 10, offline_s: 900 };
        let report = RunnerReport { disk_free_bytes: u64::MAX, ..RunnerReport::default() };
        Core::new(timing, RunnerSettings::defaults(RunnerKind::Install), report, 1, 7)
    }

    fn assignment(n: u128) -> Assignment {
        let t = Timestamp::from_micros(1);
        let paper = Signed { payload: String::new(), key: String::new(), signature: String::new() };
        Assignment {
            job_id: JobId::new(t, n),
            job_type: JobType::ActionsWorkflow,
            group: JobGroup::Actions,
            name: None,
            execution_id: ExecutionId::new(t, n),
            epoch: 1,
            log_stream_id: LogStreamId::new(t, n),
            order: paper.clone(),
            grant: paper,
            execution_token: String::new(),
            spec: None,
        }
    }

    fn answer() -> PollAnswer {
        PollAnswer {
            jobs: vec![],
            cancels: vec![],
            lost: vec![],
            settings: None,
            keys: vec![],
            restarting: false,
            reconnect_ms: 500,
            server_time: Timestamp::from_micros(1),
            strange: vec![],
        }
    }

    /// The answer to the latest poll.
    fn answered(core: &Core, answer: PollAnswer) -> Event {
        Event::PollAnswered { seq: core.polls, nonce: "n".into(), answer: Box::new(answer) }
    }

    fn answer_to(core: &mut Core, answer: PollAnswer, now_ms: u64) -> Vec<Effect> {
        let event = answered(core, answer);
        core.handle(event, now_ms)
    }

    fn tick() -> Event {
        Event::Tick { disk_free_bytes: u64::MAX }
    }

    fn poll(effects: &[Effect]) -> Option<&PollRequest> {
        effects.iter().find_map(|e| if let Effect::Poll(p) = e { Some(&**p) } else { None })
    }

    fn renewed(id: &ExecutionId) -> Event {
        Event::Renewed(Box::new(RenewAnswer {
            renewed: vec![id.clone()],
            lost: vec![],
            cancels: vec![],
            lease_s: 30,
            server_time: Timestamp::from_micros(1),
        }))
    }

    /// Brings an execution to the point where its executor runs and its lease was renewed once.
    fn running(core: &mut Core, n: u128) -> ExecutionId {
        let a = assignment(n);
        let id = a.execution_id.clone();
        answer_to(core, PollAnswer { jobs: vec![a], ..answer() }, 0);
        assert_eq!(core.handle(Event::Prepared(id.clone()), 0)[0], Effect::Start(id.clone()));
        assert_eq!(core.handle(Event::Started(id.clone()), 0)[0], Effect::Spawn(id.clone()));
        core.handle(renewed(&id), 0);
        id
    }

    #[test]
    fn nothing_is_spawned_before_the_start_is_acknowledged() {
        let mut core = core();
        let a = assignment(1);
        let id = a.execution_id.clone();
        let effects = answer_to(&mut core, PollAnswer { jobs: vec![a], ..answer() }, 0);
        assert!(effects.iter().any(|e| matches!(e, Effect::Prepare { .. })));
        assert_eq!(poll(&effects).expect("polls on").held.len(), 1, "the claim is in the next list");
        assert_eq!(core.handle(Event::Prepared(id.clone()), 1)[0], Effect::Start(id.clone()));
        assert!(core.handle(Event::StartFailed(id.clone()), 2).is_empty());
        assert!(core.handle(tick(), 1000).contains(&Effect::Start(id.clone())), "asks again");
        let effects = core.handle(Event::StartRefused(id.clone()), 1001);
        assert!(effects.contains(&Effect::Remove(id)), "and never spawns");
    }

    #[test]
    fn a_cancel_is_passed_on_once_and_then_known() {
        let mut core = core();
        let id = running(&mut core, 1);
        let effects = answer_to(&mut core, PollAnswer { cancels: vec![id.clone()], ..answer() }, 5);
        assert!(effects.contains(&Effect::Cancel { id: id.clone(), reason: "by request" }));
        assert_eq!(poll(&effects).expect("poll").cancels_known, vec![id.clone()]);
        let effects = answer_to(&mut core, PollAnswer { cancels: vec![id], ..answer() }, 6);
        assert!(!effects.iter().any(|e| matches!(e, Effect::Cancel { .. })));
    }

    #[test]
    fn leases_are_renewed_until_the_result_is_in() {
        let mut core = core();
        let id = running(&mut core, 1);
        let renew = |effects: &[Effect]| effects.iter().any(|e| matches!(e, Effect::Renew(_)));
        let renewed = || {
            let answer = RenewAnswer {
                renewed: vec![id.clone()],
                lost: vec![],
                cancels: vec![],
                lease_s: 30,
                server_time: Timestamp::from_micros(1),
            };
            Event::Renewed(Box::new(answer))
        };
        // The first renewal went out with the start.
        assert!(core.handle(renewed(), 0).contains(&Effect::Touch(vec![id.clone()])));
        let mut at = 0;
        let mut seen = 0;
        for _ in 0..40 {
            at += 1000;
            if renew(&core.handle(tick(), at)) {
                seen += 1;
                assert!(core.handle(renewed(), at).contains(&Effect::Touch(vec![id.clone()])));
            }
        }
        assert!((3..=5).contains(&seen), "{seen} renewals in 40 s");
        core.handle(Event::Ended { id: id.clone(), has_result: true }, at);
        assert!(core.handle(Event::Delivered(id.clone()), at).contains(&Effect::Remove(id)));
        assert!(!renew(&core.handle(tick(), at + 20_000)));
    }

    #[test]
    fn a_dead_executor_is_told_at_once_and_its_log_still_delivered() {
        let mut core = core();
        let id = running(&mut core, 1);
        let effects = core.handle(Event::Ended { id: id.clone(), has_result: false }, 10);
        assert!(poll(&effects).expect("a fresh poll").held[0].state == HeldState::Dead);
        let effects = answer_to(&mut core, answer(), 11);
        assert!(effects.contains(&Effect::Finish(id)));
        assert_eq!(poll(&effects).expect("the next poll").held[0].state, HeldState::Dead, "and stays dead");
        assert!(!core.handle(tick(), 60_000).iter().any(|e| matches!(e, Effect::Renew(_))), "nothing revives it");
    }

    #[test]
    fn an_executor_found_dead_is_told_when_nothing_of_it_is_left() {
        let mut core = core();
        let a = assignment(1);
        core.adopt(&a, Found::Dead);
        let effects = core.handle(tick(), 0);
        assert_eq!(poll(&effects).expect("polls").held[0].state, HeldState::Alive, "not yet");
        assert!(!effects.iter().any(|e| matches!(e, Effect::Renew(_))), "and nothing revives it");
        let effects = core.handle(Event::Ended { id: a.execution_id.clone(), has_result: false }, 10);
        assert!(poll(&effects).expect("a fresh poll").held[0].state == HeldState::Dead);
        assert!(answer_to(&mut core, answer(), 11).contains(&Effect::Finish(a.execution_id)));
    }

    #[test]
    fn what_an_earlier_process_never_started_is_given_back_and_never_started() {
        let mut core = core();
        let a = assignment(1);
        core.adopt(&a, Found::Unstarted);
        let effects = core.handle(tick(), 0);
        assert_eq!(poll(&effects).expect("polls").held[0].state, HeldState::Unstarted);
        assert!(!effects.iter().any(|e| matches!(e, Effect::Start(_) | Effect::Spawn(_) | Effect::Renew(_))));
        let effects = answer_to(&mut core, answer(), 1);
        assert!(effects.contains(&Effect::Remove(a.execution_id)), "only when the server has heard of it");
    }

    #[test]
    fn an_execution_that_is_given_up_while_it_is_prepared_leaves_nothing() {
        let mut core = core();
        let a = assignment(1);
        let id = a.execution_id.clone();
        answer_to(&mut core, PollAnswer { jobs: vec![a], ..answer() }, 0);
        answer_to(&mut core, PollAnswer { lost: vec![id.clone()], ..answer() }, 1);
        let effects = core.handle(Event::Prepared(id.clone()), 2);
        assert_eq!(effects, [Effect::Remove(id.clone())], "it was made after it had been given up");
        assert_eq!(core.handle(Event::Started(id.clone()), 3), [Effect::Remove(id)], "and never spawned");
    }

    #[test]
    fn an_answer_that_was_overtaken_says_nothing() {
        let mut core = core();
        let id = running(&mut core, 1);
        let old = answered(&core, answer());
        core.handle(Event::Ended { id: id.clone(), has_result: false }, 10);
        assert!(core.handle(old, 11).is_empty(), "the server has not heard of the death yet");
        assert!(answer_to(&mut core, answer(), 12).contains(&Effect::Finish(id)));
    }

    #[test]
    fn draining_takes_nothing_waits_and_then_interrupts() {
        let mut core = core();
        let id = running(&mut core, 1);
        let effects = core.handle(Event::Drain, 100);
        let request = poll(&effects).expect("the server is told at once");
        assert!(request.free.is_empty() && request.report.draining);
        assert!(!effects.iter().any(|e| matches!(e, Effect::Cancel { .. })));
        let effects = core.handle(tick(), 100 + 60_000);
        assert!(effects.contains(&Effect::Cancel { id: id.clone(), reason: "the runner is shutting down" }));
        core.handle(Event::Ended { id: id.clone(), has_result: true }, 61_000);
        assert!(core.handle(Event::Delivered(id), 61_001).contains(&Effect::Exit(Ending::Done)));
    }

    #[test]
    fn the_customers_switch_interrupts_and_lasts() {
        let mut core = core();
        let id = running(&mut core, 1);
        let since = Some(Timestamp::from_micros(9));
        let effects = core.handle(Event::Disabled(since), 10);
        assert!(effects.contains(&Effect::Cancel { id, reason: "the customer has disabled the runner" }));
        let request = poll(&effects).expect("told at once");
        assert!(request.free.is_empty());
        assert_eq!(request.report.disabled_since, since);
        assert!(!poll(&core.handle(Event::Disabled(None), 20)).expect("told").free.is_empty());
    }

    #[test]
    fn a_fenced_session_interrupts_everything_and_exits() {
        let mut core = core();
        let id = running(&mut core, 1);
        let effects = core.handle(Event::PollFailed { seq: core.polls, fenced: true }, 10);
        assert!(matches!(&effects[0], Effect::Cancel { id: c, .. } if *c == id));
        assert!(poll(&effects).is_none());
        let effects = core.handle(Event::Ended { id, has_result: true }, 20);
        assert!(effects.contains(&Effect::Exit(Ending::Fenced)));
    }

    #[test]
    fn a_full_disk_offers_nothing_until_there_is_room() {
        let mut core = core();
        let effects = core.handle(Event::Tick { disk_free_bytes: 0 }, 0);
        assert!(poll(&effects).expect("polls all the same").free.is_empty());
        assert!(poll(&core.handle(Event::Tick { disk_free_bytes: 0 }, 5)).is_none());
        assert!(!poll(&core.handle(tick(), 10)).expect("a fresh poll").free.is_empty());
    }

    #[test]
    fn failures_back_off_with_jitter_and_stay_short_with_work_in_hand() {
        let mut idle = core();
        for n in 0..12u64 {
            idle.handle(Event::PollFailed { seq: idle.polls, fenced: false }, n);
            assert!(idle.next_due_ms().expect("due") - n <= 12_500, "half a hold");
        }
        let mut busy = core();
        running(&mut busy, 1);
        for n in 0..12u64 {
            busy.handle(Event::PollFailed { seq: busy.polls, fenced: false }, n);
            assert!(busy.poll_at_ms.expect("due") - n <= 2_000);
        }
    }

    #[test]
    fn slots_are_counted_by_group() {
        let mut core = core();
        for n in 1..=4 {
            running(&mut core, n);
        }
        let effects = answer_to(&mut core, answer(), 1);
        let request = poll(&effects).expect("poll");
        assert_eq!(request.free.get(&JobGroup::Actions), None);
        assert_eq!(request.free.get(&JobGroup::Deploy), Some(&4));
        assert_eq!(request.report.busy[&JobGroup::Actions].len(), 4);
    }
}
