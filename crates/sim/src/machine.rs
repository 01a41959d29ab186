//! A runner's machine: its state directory, its process with the real session logic, and what that logic asks for.
//!
//! This is the driver of `runner::session` without files and sockets. What lies in `StateDir` outlives the process.

use std::collections::BTreeMap;

use api::runner::{Assignment, JoinAnswer, JoinRequest, Timing, join_proof};
use model::papers::{EndorsedKey, Expected, Signatory, TrustedKeys};
use model::runner::{RunnerReport, RunnerSettings};
use model::{ExecutionId, ExecutionResult, JobError, Outcome, Timestamp};
use runner::papers::check_papers;
use runner::session::{Core, Effect, Ending, Event, Found, Over};

use crate::Fault;
use crate::deliver::Delivery;
use crate::founding::at;
use crate::network::{Reply, Request};
use crate::world::World;

pub(crate) struct Machine {
    /// Whose machine it is: an index of the server's runners.
    pub(crate) runner: usize,
    pub(crate) on: bool,
    pub(crate) boot: u64,
    pub(crate) wall_ms: i64,
    pub(crate) cut_until: u64,
    /// Suspended until then: nothing on it happens.
    pub(crate) frozen_until: u64,
    /// Its disk is full until then.
    pub(crate) full_until: u64,
    /// A newer session took its place: nobody starts it any more.
    pub(crate) retired: bool,
    /// The seed of its key: written before the join, so it may be there without a session.
    key: Option<[u8; 32]>,
    pub(crate) state: Option<StateDir>,
    pub(crate) process: Option<u64>,
}

/// What a process leaves to the next.
pub(crate) struct StateDir {
    pub(crate) generation: u64,
    trust: Vec<String>,
    keys: Vec<EndorsedKey>,
    settings: RunnerSettings,
    timing: Timing,
    process: u64,
    pub(crate) disabled: Option<Timestamp>,
    pub(crate) dirs: BTreeMap<ExecutionId, Dir>,
}

/// An execution's directory.
pub(crate) struct Dir {
    pub(crate) assignment: Assignment,
    pub(crate) nonce: String,
    pub(crate) boot: u64,
    pub(crate) started: bool,
    /// An executor took the lock, or somebody who made sure that none will.
    pub(crate) used: bool,
    pub(crate) alive: bool,
    pub(crate) cancel: Option<&'static str>,
    /// When the executor last heard that its lease is good.
    pub(crate) renewed_at: u64,
    /// When its start was marked.
    pub(crate) started_at: u64,
    pub(crate) result: Option<ExecutionResult>,
    /// Log frames, each a chunk.
    pub(crate) spool: Vec<Vec<u8>>,
}

pub(crate) struct Process {
    pub(crate) machine: usize,
    core: Option<Core>,
    started_at: u64,
    trusted: TrustedKeys,
    poll: Option<u64>,
    /// When it looks by itself next.
    due_at: u64,
    pub(crate) deliveries: BTreeMap<ExecutionId, Delivery>,
    refused: BTreeMap<ExecutionId, (Assignment, JobError)>,
    /// Dies after so many more effects.
    pub(crate) dies_after: Option<u64>,
}

const DISK: u64 = 100 << 30;
const TICK_MS: u64 = 2_000;
const CALL_MS: u64 = 20_000;
pub(crate) const UPLOAD_MS: u64 = 60_000;
const HOLD_SLACK_MS: u64 = 10_000;
const LEFTOVER_GRACE_MS: u64 = 10_000;

impl StateDir {
    pub(crate) fn trusted(&self) -> TrustedKeys {
        let mut trusted = TrustedKeys::new(self.trust.clone());
        trusted.learn(&self.keys);
        trusted
    }
}

impl World {
    pub(crate) fn add_machine(&mut self, runner: usize) {
        let machine = self.machines.len();
        self.machines.push(Machine {
            runner,
            on: false,
            boot: 0,
            wall_ms: 0,
            cut_until: 0,
            frozen_until: 0,
            full_until: 0,
            retired: false,
            key: None,
            state: None,
            process: None,
        });
        self.power_on(machine);
    }

    /// How long a machine is still suspended.
    pub(crate) fn frozen_ms(&self, machine: usize) -> Option<u64> {
        self.machines[machine].frozen_until.checked_sub(self.now).filter(|ms| *ms > 0)
    }

    fn disk_free(&self, machine: usize) -> u64 {
        if self.machines[machine].full_until > self.now { 0 } else { DISK }
    }

    pub(crate) fn wall(&self, machine: usize) -> Timestamp {
        at(self.now, self.machines[machine].wall_ms)
    }

    pub(crate) fn power_on(&mut self, machine: usize) {
        let m = &mut self.machines[machine];
        if m.on || m.retired {
            return;
        }
        m.on = true;
        m.boot += 1;
        let pause = self.chance.between(0, 2_000);
        self.after(pause, move |w| w.start_process(machine));
    }

    pub(crate) fn power_off(&mut self, machine: usize, keeps_state: bool) {
        self.say(None, || {
            format!(
                "machine {machine} goes down, its state directory {}",
                if keeps_state { "stays" } else { "is lost" }
            )
        });
        let m = &mut self.machines[machine];
        m.on = false;
        if let Some(process) = m.process.take() {
            self.processes.remove(&process);
        }
        if !keeps_state {
            m.key = None;
        }
        let Some(state) = &mut m.state else { return };
        for (id, dir) in &mut state.dirs {
            dir.alive = false;
            self.check.ends(id);
            // What was written a moment ago may not have reached the disk.
            if dir.started && dir.result.is_none() && self.chance.one_in(4) {
                dir.started = false;
            }
        }
        if !keeps_state {
            m.state = None;
        }
    }

    pub(crate) fn kill_process(&mut self, process: u64) {
        let Some(gone) = self.processes.remove(&process) else { return };
        self.count("runners killed");
        let machine = gone.machine;
        self.say(None, || format!("the runner's process on machine {machine} dies"));
        self.machines[machine].process = None;
        if let Some(poll) = gone.poll {
            self.abort(poll);
        }
        let pause = self.chance.spread(50, 20_000);
        self.after(pause, move |w| w.start_process(machine));
    }

    pub(crate) fn start_process(&mut self, machine: usize) {
        let m = &self.machines[machine];
        if !m.on || m.retired || m.process.is_some() {
            return;
        }
        let uid = self.fresh();
        let process = Process {
            machine,
            core: None,
            started_at: self.now,
            trusted: TrustedKeys::default(),
            poll: None,
            due_at: u64::MAX,
            deliveries: BTreeMap::new(),
            refused: BTreeMap::new(),
            dies_after: None,
        };
        self.processes.insert(uid, process);
        self.machines[machine].process = Some(uid);
        if self.machines[machine].state.is_some() {
            self.begin(uid);
        } else {
            let wanted = self.draw_join(machine);
            self.join(uid, wanted);
        }
    }

    fn draw_join(&mut self, machine: usize) -> JoinRequest {
        let seed = self.machines[machine].key.unwrap_or_else(|| {
            let mut seed = [0; 32];
            self.chance.fill(&mut seed);
            seed
        });
        self.machines[machine].key = Some(seed);
        let key = Signatory::from_seed(&seed);
        let public_key = key.public();
        JoinRequest {
            credential: self.server.runners[self.machines[machine].runner].2.clone(),
            proof: key.request(&join_proof(&public_key).text()),
            public_key,
            version: "sim".into(),
            hostname: format!("m{machine}"),
        }
    }

    fn join(&mut self, uid: u64, wanted: JoinRequest) {
        let again = wanted.clone();
        self.send(uid, Request::Join(wanted), CALL_MS, move |w, uid, outcome| match outcome {
            Ok(Reply::Join(answer)) => w.joined(uid, *answer),
            Ok(_) => {}
            Err(error) if error.is_transient() => w.after(1_000, move |w| w.join(uid, again)),
            // Another has joined since: this one is told, and gives up.
            Err(error) if error.over().is_some() => w.exit(uid, Ending::Over(Over::Fenced)),
            Err(error) => w.violated(format!("a good join was refused: {error}"), None),
        });
    }

    fn joined(&mut self, uid: u64, answer: JoinAnswer) {
        let Some(machine) = self.processes.get(&uid).map(|p| p.machine) else { return };
        self.say(None, || format!("machine {machine} has joined as {}, generation {}", answer.name, answer.generation));
        self.machines[machine].state = Some(StateDir {
            generation: answer.generation,
            trust: vec![self.server.fingerprint.clone()],
            keys: answer.keys,
            settings: answer.settings,
            timing: answer.timing,
            process: 0,
            disabled: None,
            dirs: BTreeMap::new(),
        });
        self.begin(uid);
    }

    /// The session begins, with whatever an earlier process left.
    fn begin(&mut self, uid: u64) {
        let seed = self.chance.next();
        let Some(process) = self.processes.get_mut(&uid) else { return };
        let machine = process.machine;
        let m = &mut self.machines[machine];
        let Some(state) = &mut m.state else { return };
        state.process += 1;
        process.trusted = state.trusted();
        let report = RunnerReport {
            version: "sim".into(),
            hostname: format!("m{machine}"),
            disabled_since: state.disabled,
            disk_free_bytes: if m.full_until > self.now { 0 } else { DISK },
            ..RunnerReport::default()
        };
        let mut core = Core::new(state.timing.clone(), state.settings.clone(), report, state.process, seed);
        let mut adopted = Vec::new();
        for (id, dir) in &mut state.dirs {
            let found = find(dir, m.boot);
            core.adopt(&dir.assignment, found);
            if found != Found::Unstarted {
                process.deliveries.insert(id.clone(), Delivery::adopted());
            }
            adopted.push((id.clone(), dir.assignment.job_id.clone(), found));
        }
        process.core = Some(core);
        process.started_at = self.now;
        for (id, job, found) in adopted {
            self.say(Some(&job), || format!("machine {machine} takes {id} over: {found:?}"));
            match found {
                Found::Dead => self.reap(uid, id),
                Found::Running | Found::WithResult => self.deliver(uid, &id),
                Found::Unstarted => {}
            }
        }
        self.tick(uid);
    }

    /// Looks at the switch and the disk, every two seconds.
    fn tick(&mut self, uid: u64) {
        let Some(machine) = self.processes.get(&uid).map(|p| p.machine) else { return };
        let disabled = self.machines[machine].state.as_ref().and_then(|s| s.disabled);
        self.tell(uid, Event::Disabled(disabled));
        self.tell(uid, Event::Tick { disk_free_bytes: self.disk_free(machine) });
        self.after(TICK_MS, move |w| w.tick(uid));
    }

    /// Tells the session, and does what it asks for.
    pub(crate) fn tell(&mut self, uid: u64, event: Event) {
        let Some(machine) = self.processes.get(&uid).map(|p| p.machine) else { return };
        if let Some(ms) = self.frozen_ms(machine) {
            return self.after(ms, move |w| w.tell(uid, event));
        }
        if matches!(event, Event::Prepared(_) | Event::Started(_)) {
            // The runner looks at the switch before it starts anything.
            let disabled = self.machines[machine].state.as_ref().and_then(|s| s.disabled);
            self.tell_now(uid, Event::Disabled(disabled));
        }
        self.tell_now(uid, event);
    }

    fn tell_now(&mut self, uid: u64, event: Event) {
        let now = self.now;
        let Some(process) = self.processes.get_mut(&uid) else { return };
        let Some(core) = &mut process.core else { return };
        let effects = core.handle(event, now - process.started_at);
        for effect in effects {
            let Some(process) = self.processes.get_mut(&uid) else { return };
            match &mut process.dies_after {
                Some(0) => return self.kill_process(uid),
                Some(n) => *n -= 1,
                None => {}
            }
            self.perform(uid, effect);
        }
        let Some(process) = self.processes.get_mut(&uid) else { return };
        let due = process.core.as_ref().and_then(Core::next_due_ms).map(|ms| (process.started_at + ms).max(now + 1));
        if let Some(at) = due.filter(|at| *at < process.due_at || process.due_at <= now) {
            process.due_at = at;
            self.after(at - now, move |w| {
                let Some(machine) = w.processes.get(&uid).map(|p| p.machine) else { return };
                w.tell(uid, Event::Tick { disk_free_bytes: w.disk_free(machine) });
            });
        }
    }

    pub(crate) fn state_of(&mut self, uid: u64) -> Option<&mut StateDir> {
        let machine = self.processes.get(&uid)?.machine;
        self.machines[machine].state.as_mut()
    }

    pub(crate) fn dir(&mut self, uid: u64, id: &ExecutionId) -> Option<&mut Dir> {
        self.state_of(uid)?.dirs.get_mut(id)
    }

    fn perform(&mut self, uid: u64, effect: Effect) {
        match effect {
            Effect::Poll(mut request) => {
                request.nonce = format!("{:032x}", self.chance.u128());
                self.send_poll(uid, Request::Poll(request));
            }
            Effect::Prepare { nonce, assignment } => {
                let pause = self.chance.spread(1, 2_000);
                self.after(pause, move |w| w.prepare(uid, nonce, *assignment));
            }
            Effect::Refuse(id) => self.refuse(uid, &id),
            // Server and runner are of one version here.
            Effect::RefuseUnreadable(_) => {}
            Effect::Start(id) => self.ask_start(uid, id),
            Effect::Spawn(id) => self.spawn(uid, id),
            Effect::Cancel { id, reason } => self.ask_cancel(uid, &id, reason),
            Effect::Renew(held) => {
                let bound = self.server.timing.lease_s * 1000 / 3;
                self.send(uid, Request::Renew(held), bound, |w, uid, outcome| match outcome {
                    Ok(Reply::Renew(answer)) => w.tell(uid, Event::Renewed(Box::new(answer))),
                    Ok(_) => {}
                    Err(error) => w.tell(uid, Event::RenewFailed { over: error.over() }),
                });
            }
            Effect::Touch(ids) => {
                let now = self.now;
                for id in ids {
                    if let Some(dir) = self.dir(uid, &id) {
                        dir.renewed_at = now;
                    }
                }
            }
            Effect::Finish(id) => self.delivery_ended(uid, &id),
            Effect::Remove(id) => self.remove(uid, &id),
            Effect::Keep(settings) => {
                if let Some(state) = self.state_of(uid) {
                    state.settings = *settings;
                }
            }
            Effect::Learn(keys) => {
                if let Some(process) = self.processes.get_mut(&uid) {
                    process.trusted.learn(&keys);
                }
                if let Some(state) = self.state_of(uid) {
                    state.keys = keys;
                }
            }
            Effect::Observe(_) => {}
            Effect::Exit(ending) => self.exit(uid, ending),
        }
    }

    fn send_poll(&mut self, uid: u64, request: Request) {
        if let Some(older) = self.processes.get_mut(&uid).and_then(|p| p.poll.take()) {
            self.abort(older);
        }
        let Request::Poll(wanted) = &request else { return };
        let (seq, nonce) = (wanted.seq, wanted.nonce.clone());
        let bound = self.server.timing.hold_s * 1000 + HOLD_SLACK_MS;
        let call = self.send(uid, request, bound, move |w, uid, outcome| match outcome {
            Ok(Reply::Poll(answer)) => w.tell(uid, Event::PollAnswered { seq, nonce, answer }),
            Ok(_) => {}
            Err(error) => w.tell(uid, Event::PollFailed { seq, over: error.over() }),
        });
        if let Some(process) = self.processes.get_mut(&uid) {
            process.poll = Some(call);
        }
    }

    /// Checks both papers and makes a directory.
    fn prepare(&mut self, uid: u64, nonce: String, assignment: Assignment) {
        let Some(process) = self.processes.get(&uid) else { return };
        let (machine, id) = (process.machine, assignment.execution_id.clone());
        let expected = Expected {
            runner_id: &self.server.runners[self.machines[machine].runner].0.id,
            generation: self.machines[machine].state.as_ref().map_or(0, |s| s.generation),
            nonce: &nonce,
            now: self.wall(machine),
        };
        let spec = assignment.spec.clone().unwrap_or_default();
        if let Err(error) = check_papers(&process.trusted, &expected, &assignment, spec.as_bytes()) {
            self.say(Some(&assignment.job_id), || format!("the papers of {id} are refused: {}", error.message));
            if let Some(process) = self.processes.get_mut(&uid) {
                process.refused.insert(id.clone(), (assignment, error));
            }
            return self.tell(uid, Event::Refused(id));
        }
        if self.disk_free(machine) == 0 {
            return self.tell(uid, Event::NotPrepared(id));
        }
        let boot = self.machines[machine].boot;
        if let Some(state) = self.state_of(uid) {
            let dir = Dir {
                assignment,
                nonce,
                boot,
                started: false,
                used: false,
                alive: false,
                cancel: None,
                renewed_at: 0,
                started_at: 0,
                result: None,
                spool: Vec::new(),
            };
            state.dirs.insert(id.clone(), dir);
        }
        let pause = self.chance.between(0, 20);
        self.after(pause, move |w| w.tell(uid, Event::Prepared(id)));
    }

    fn refuse(&mut self, uid: u64, id: &ExecutionId) {
        let now = self.processes.get(&uid).map(|p| self.wall(p.machine));
        let taken = self.processes.get_mut(&uid).and_then(|p| p.refused.remove(id));
        let (Some(now), Some((assignment, error))) = (now, taken) else { return };
        let result = ExecutionResult::without_work(Outcome::NotAttempted, error, now);
        self.check.wrote_result(&assignment, &result);
        self.send_result(uid, assignment.execution_id, assignment.execution_token, assignment.epoch, result, 200);
    }

    fn ask_start(&mut self, uid: u64, id: ExecutionId) {
        let Some(token) = self.dir(uid, &id).map(|dir| dir.assignment.execution_token.clone()) else {
            return self.tell(uid, Event::NotPrepared(id));
        };
        if self.may(Fault::People) && self.chance.one_in(40) {
            self.switch_off(uid);
        }
        self.send(uid, Request::Start { id: id.clone(), token }, CALL_MS, move |w, uid, outcome| {
            let event = match outcome {
                Ok(_) => Event::Started(id),
                Err(error) if error.is_transient() => Event::StartFailed(id),
                Err(_) => Event::StartRefused(id),
            };
            w.tell(uid, event);
        });
    }

    fn spawn(&mut self, uid: u64, id: ExecutionId) {
        if self.state_of(uid).is_some_and(|state| state.disabled.is_some()) {
            return self.violated(format!("{id} is started although the customer has switched the runner off"), None);
        }
        let now = self.now;
        let Some(dir) = self.dir(uid, &id) else { return };
        (dir.started, dir.started_at) = (true, now);
        if let Some(process) = self.processes.get_mut(&uid) {
            process.deliveries.insert(id.clone(), Delivery::fresh());
            let machine = process.machine;
            let boot = self.machines[machine].boot;
            // It may die between the mark and the executor.
            if self.processes.get(&uid).is_some_and(|p| p.dies_after == Some(0)) {
                return self.kill_process(uid);
            }
            let pause = self.chance.spread(1, 200);
            self.after(pause, move |w| w.executor_begins(machine, boot, id));
        }
    }

    /// What a dead executor left is ended; then its death is told.
    pub(crate) fn reap(&mut self, uid: u64, id: ExecutionId) {
        let pause = self.chance.between(0, LEFTOVER_GRACE_MS);
        self.after(pause, move |w| {
            if w.processes.contains_key(&uid) {
                w.check.ends(&id);
                w.tell(uid, Event::Ended { id, has_result: false });
            }
        });
    }

    fn remove(&mut self, uid: u64, id: &ExecutionId) {
        if let Some(process) = self.processes.get_mut(&uid) {
            process.deliveries.remove(id);
        }
        let Some(state) = self.state_of(uid) else { return };
        let generation = state.generation;
        let Some(dir) = state.dirs.remove(id) else { return };
        let machine = self.processes.get(&uid).map_or(0, |p| p.machine);
        let current = self.current_generation(self.machines[machine].runner) == generation;
        if let Some(broken) = self.check.removed(&dir, current) {
            self.violated(broken, Some(dir.assignment.job_id));
        }
    }

    fn exit(&mut self, uid: u64, ending: Ending) {
        if !matches!(ending, Ending::Over(_)) {
            self.send(uid, Request::Leave, 2_000, |_, _, _| {});
        }
        let Some(gone) = self.processes.remove(&uid) else { return };
        let machine = gone.machine;
        self.say(None, || format!("the runner's process on machine {machine} exits: {ending:?}"));
        if let Some(poll) = gone.poll {
            self.abort(poll);
        }
        self.machines[machine].process = None;
        if matches!(ending, Ending::Over(_)) {
            self.machines[machine].retired = true;
            return;
        }
        let pause = self.chance.spread(100, 20_000);
        self.after(pause, move |w| w.start_process(machine));
    }

    /// Reports the result until it is taken, or will never be.
    pub(crate) fn send_result(
        &mut self,
        uid: u64,
        id: ExecutionId,
        token: String,
        epoch: u64,
        result: ExecutionResult,
        pause: u64,
    ) {
        let request = Request::Result { id: id.clone(), token: token.clone(), epoch, result: Box::new(result.clone()) };
        self.send(uid, request, UPLOAD_MS, move |w, uid, outcome| match outcome {
            Err(error) if error.is_transient() => w.after(pause, move |w| {
                if w.processes.contains_key(&uid) {
                    w.send_result(uid, id, token, epoch, result, (pause * 2).min(2_000));
                }
            }),
            Ok(_) | Err(_) => w.tell(uid, Event::Delivered(id)),
        });
    }
}

/// How a process finds an execution: the same look as the runner's own `find`.
fn find(dir: &mut Dir, boot: u64) -> Found {
    let same_boot = dir.boot == boot;
    if !dir.started {
        return if same_boot { Found::Unstarted } else { Found::Dead };
    }
    if dir.alive {
        return Found::Running;
    }
    if dir.result.is_some() {
        return Found::WithResult;
    }
    if same_boot && !dir.used {
        dir.used = true;
        dir.started = false;
        return Found::Unstarted;
    }
    Found::Dead
}
