//! Executors, as the runner's are: each takes its lock once, verifies the papers again, works for a while, and writes one
//! result. They know nothing of the runner's process, and go on without it.

use model::log::{Body, Chunk, NO_STEP, Pipe};
use model::papers::Expected;
use model::{ExecutionId, ExecutionResult, JobError, JobId, JobType, Outcome};
use runner::papers::check_papers;
use runner::session::Event;

use crate::machine::Dir;
use crate::world::World;

/// The cancel file is looked at this often.
const LOOK_MS: u64 = 250;
/// What a killed executor leaves behind ends by itself after this long at most.
const LEFTOVER_MS: u64 = 60_000;

impl World {
    /// The directory of an executor that is where it was begun: same machine, not rebooted.
    fn workplace(&mut self, machine: usize, boot: u64, id: &ExecutionId) -> Option<&mut Dir> {
        let m = self.machines.get_mut(machine)?;
        if !m.on || m.boot != boot { None } else { m.state.as_mut()?.dirs.get_mut(id) }
    }

    pub(crate) fn executor_begins(&mut self, machine: usize, boot: u64, id: ExecutionId) {
        if let Some(ms) = self.frozen_ms(machine) {
            return self.after(ms, move |w| w.executor_begins(machine, boot, id));
        }
        let (now, wall) = (self.now, self.wall(machine));
        let runner_id = self.server.runners[self.machines[machine].runner].0.id.clone();
        let Some(trusted) = self.trusted(machine) else { return };
        let generation = self.machines[machine].state.as_ref().map_or(0, |s| s.generation);
        let offline_ms = self.server.timing.offline_s * 1000;
        let Some(dir) = self.workplace(machine, boot, &id) else { return };
        if dir.used || !dir.started {
            return;
        }
        (dir.used, dir.alive, dir.renewed_at) = (true, true, dir.renewed_at.max(dir.started_at));
        let (assignment, started_at) = (dir.assignment.clone(), dir.started_at);
        let expected = Expected { runner_id: &runner_id, generation, nonce: &dir.nonce, now: wall };
        let spec = assignment.spec.clone().unwrap_or_default();
        let papers = check_papers(&trusted, &expected, &assignment, spec.as_bytes());
        let job = assignment.job_id.clone();
        if let Err(error) = papers {
            let result = ExecutionResult::without_work(Outcome::NotAttempted, error, wall);
            return self.executor_ends(machine, boot, id, result);
        }
        if now >= started_at + offline_ms {
            let error = JobError::new("offline", "nobody renewed the lease since the start");
            let result = ExecutionResult::without_work(Outcome::Cancelled, error, wall);
            return self.executor_ends(machine, boot, id, result);
        }
        self.say(Some(&job), || format!("epoch {}: the executor works on machine {machine}", assignment.epoch));
        if let Err(broken) = self.check.begins(machine, boot, &assignment, now) {
            return self.violated(broken, Some(job));
        }
        let longest = if self.chance.one_in(6) { 400_000 } else { 60_000 };
        let takes = self.chance.spread(50, longest);
        let chunks = self.chance.below(8);
        for n in 0..chunks {
            let (at, id) = (takes * (n + 1) / (chunks + 1), id.clone());
            self.after(at, move |w| w.executor_writes(machine, boot, &id));
        }
        let outcome = match self.chance.below(12) {
            0 => Outcome::Failed,
            1 => Outcome::TimedOut,
            _ => Outcome::Finished,
        };
        self.watch_silence(machine, boot, id.clone());
        self.after(takes, move |w| w.executor_done(machine, boot, id, outcome, "said so itself"));
    }

    fn executor_writes(&mut self, machine: usize, boot: u64, id: &ExecutionId) {
        if let Some(ms) = self.frozen_ms(machine) {
            let id = id.clone();
            return self.after(ms, move |w| w.executor_writes(machine, boot, &id));
        }
        let Some(dir) = self.workplace(machine, boot, id).filter(|dir| dir.alive) else { return };
        let seq = dir.spool.len() as u64;
        let text = format!("line {seq} of {id}\n").into_bytes();
        let offset = seq * 64;
        let chunk =
            Chunk { seq, time_ns: seq * 1_000, pipe: Pipe::Stdout, step: NO_STEP, offset, body: Body::Data(text) };
        let mut frame = Vec::new();
        chunk.encode(&mut frame);
        dir.spool.push(frame);
        self.check.wrote_chunk(id, chunk);
        if let Some(process) = self.machines[machine].process {
            self.deliver(process, id);
        }
    }

    /// Ends its work by itself when nobody has renewed the lease for too long.
    fn watch_silence(&mut self, machine: usize, boot: u64, id: ExecutionId) {
        if let Some(ms) = self.frozen_ms(machine) {
            return self.after(ms + LOOK_MS, move |w| w.watch_silence(machine, boot, id));
        }
        let (now, offline_ms) = (self.now, self.server.timing.offline_s * 1000);
        let Some(dir) = self.workplace(machine, boot, &id).filter(|dir| dir.alive) else { return };
        let until = dir.renewed_at + offline_ms;
        if now >= until {
            self.interrupt(machine, boot, id, "nobody renewed the lease");
        } else {
            self.after(until - now + LOOK_MS, move |w| w.watch_silence(machine, boot, id));
        }
    }

    pub(crate) fn ask_cancel(&mut self, uid: u64, id: &ExecutionId, reason: &'static str) {
        let Some(dir) = self.dir(uid, id) else { return };
        dir.cancel = Some(reason);
        let Some(machine) = self.processes.get(&uid).map(|p| p.machine) else { return };
        let (boot, id, pause) = (self.machines[machine].boot, id.clone(), self.chance.between(0, LOOK_MS));
        self.after(pause, move |w| w.interrupt(machine, boot, id, reason));
    }

    /// The child has its grace, and is gone at its end.
    fn interrupt(&mut self, machine: usize, boot: u64, id: ExecutionId, reason: &'static str) {
        if let Some(ms) = self.frozen_ms(machine) {
            return self.after(ms, move |w| w.interrupt(machine, boot, id, reason));
        }
        if self.workplace(machine, boot, &id).is_some_and(|dir| dir.alive) {
            let pause = self.chance.between(0, JobType::ActionsWorkflow.facts().grace_s * 1000);
            self.after(pause, move |w| w.executor_done(machine, boot, id, Outcome::Cancelled, reason));
        }
    }

    fn executor_done(&mut self, machine: usize, boot: u64, id: ExecutionId, outcome: Outcome, reason: &'static str) {
        // What it had left to do when its machine was suspended, it does after; a result that does not fit on the disk is
        // tried again every second.
        let full_ms = self.machines[machine].full_until.checked_sub(self.now).filter(|ms| *ms > 0);
        let left_ms = if outcome == Outcome::Cancelled { 0 } else { self.chance.between(0, 30_000) };
        let frozen_ms = self.frozen_ms(machine).map(|ms| ms + left_ms);
        if let Some(ms) = frozen_ms.or_else(|| full_ms.map(|ms| ms + 1_000)) {
            return self.after(ms, move |w| w.executor_done(machine, boot, id, outcome, reason));
        }
        let wall = self.wall(machine);
        let Some(dir) = self.workplace(machine, boot, &id).filter(|dir| dir.alive) else { return };
        let log_chunks = dir.spool.len() as u64;
        let error = (outcome != Outcome::Finished).then(|| JobError::new("ended", reason));
        let result = ExecutionResult {
            outcome,
            error,
            steps: Vec::new(),
            outputs: serde_json::Map::new(),
            log_chunks,
            started_at: wall,
            finished_at: wall,
        };
        self.executor_ends(machine, boot, id, result);
    }

    fn executor_ends(&mut self, machine: usize, boot: u64, id: ExecutionId, result: ExecutionResult) {
        let Some(dir) = self.workplace(machine, boot, &id) else { return };
        dir.alive = false;
        let (assignment, outcome) = (dir.assignment.clone(), result.outcome);
        dir.result = Some(result.clone());
        self.check.ends(&id);
        self.check.wrote_result(&assignment, &result);
        self.say(Some(&assignment.job_id), || format!("epoch {}: the executor ends: {outcome:?}", assignment.epoch));
        let pause = self.chance.between(0, 100);
        self.after(pause, move |w| {
            let Some(process) = w.machines[machine].process else { return };
            w.tell(process, Event::Ended { id, has_result: true });
        });
    }

    /// Killed: no result, and perhaps a child that goes on until somebody ends it.
    pub(crate) fn executor_dies(&mut self, id: &ExecutionId) {
        let Some(active) = self.check.active.get_mut(id) else { return };
        active.executor = false;
        let (machine, boot, job): (usize, u64, JobId) = (active.machine, active.boot, active.job.clone());
        let Some(dir) = self.workplace(machine, boot, id) else { return };
        dir.alive = false;
        self.say(Some(&job), || "the executor is killed".into());
        let (left, gone) = (self.chance.between(0, LEFTOVER_MS), id.clone());
        self.after(left, move |w| w.check.ends(&gone));
        let (pause, id) = (self.chance.between(0, 100), id.clone());
        self.after(pause, move |w| {
            if let Some(process) = w.machines[machine].process {
                w.reap(process, id);
            }
        });
    }
}
