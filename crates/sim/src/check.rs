//! The invariants: what a witness outside the system saw, beside what the system says.

use std::collections::{BTreeMap, BTreeSet};

use api::runner::Assignment;
use model::log::Chunk;
use model::{ExecutionId, ExecutionResult, JobId, JobState, JobType, Outcome};
use store::{Event, EventCursor};

use crate::founding::ready;
use crate::machine::Dir;
use crate::server::Server;

/// A job as its events tell it.
#[derive(Debug, Clone)]
struct Seen {
    runner: usize,
    job_type: JobType,
    target: Option<String>,
    state: JobState,
    epoch: u64,
    /// Epochs whose start the server has acknowledged.
    started: BTreeSet<u64>,
    /// Epochs whose executor began to work.
    begun: Vec<u64>,
    results: BTreeMap<u64, Outcome>,
}

/// Something that works on a machine.
#[derive(Debug, Clone)]
pub(crate) struct Active {
    pub(crate) machine: usize,
    pub(crate) boot: u64,
    pub(crate) job: JobId,
    /// False: only its child is left.
    pub(crate) executor: bool,
    /// Its machine was suspended meanwhile. Whoever joins elsewhere can't know of it; its own runner must.
    pub(crate) suspended: bool,
}

#[derive(Default)]
pub(crate) struct Check {
    cursor: EventCursor,
    jobs: BTreeMap<JobId, Seen>,
    pub(crate) active: BTreeMap<ExecutionId, Active>,
    logs: BTreeMap<ExecutionId, Vec<Chunk>>,
    /// How often something was compared.
    pub(crate) checks: u64,
}

const EVENTS: u64 = 500;

/// A broken invariant: of which job, and how.
pub(crate) type Broken = (Option<JobId>, String);

impl Check {
    pub(crate) fn submitted(&mut self, job: JobId, runner: usize, reads: bool, target: Option<String>) {
        let job_type = if reads { JobType::Noop } else { JobType::ActionsWorkflow };
        self.jobs.entry(job).or_insert_with(|| Seen::new(runner, job_type, target));
    }

    pub(crate) fn jobs_in(&self, state: JobState) -> Vec<JobId> {
        self.jobs.iter().filter(|(_, seen)| seen.state == state).map(|(id, _)| id.clone()).collect()
    }

    pub(crate) fn open_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|(_, seen)| !seen.state.is_terminal()).map(|(id, _)| id.clone()).collect()
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.active.is_empty() && self.jobs.values().all(|s| s.state.is_terminal() || s.state == JobState::Unknown)
    }

    pub(crate) fn states(&self) -> BTreeMap<&'static str, u64> {
        let mut states = BTreeMap::new();
        for seen in self.jobs.values() {
            *states.entry(seen.state.as_str()).or_default() += 1;
        }
        states
    }

    /// An executor begins to work: the one moment that can't be taken back.
    pub(crate) fn begins(&mut self, machine: usize, boot: u64, a: &Assignment, now: u64) -> Result<(), String> {
        self.checks += 1;
        let Some(seen) = self.jobs.get_mut(&a.job_id) else {
            return Err(format!("at {now} ms work began on a job that was never queued"));
        };
        if !seen.started.contains(&a.epoch) {
            return Err(format!("work of epoch {} began before the server had acknowledged its start", a.epoch));
        }
        seen.begun.push(a.epoch);
        if seen.begun.len() > 1 && !seen.job_type.may_be_retried("exec") {
            return Err(format!("the side effect happened again: epochs {:?}", seen.begun));
        }
        let (runner, target) = (seen.runner, seen.target.clone());
        if target.is_some() {
            let on_target = |active: &&Active| {
                self.jobs.get(&active.job).is_some_and(|other| other.runner == runner && other.target == target)
            };
            let in_the_way =
                |active: &&Active| active.job != a.job_id && (active.machine == machine || !active.suspended);
            if let Some(other) = self.active.values().find(|active| in_the_way(active) && on_target(active)) {
                return Err(format!("it works on target {target:?} while job {} still does", other.job));
            }
        }
        let active = Active { machine, boot, job: a.job_id.clone(), executor: true, suspended: false };
        self.active.insert(a.execution_id.clone(), active);
        Ok(())
    }

    pub(crate) fn ends(&mut self, id: &ExecutionId) {
        self.active.remove(id);
    }

    pub(crate) fn wrote_result(&mut self, a: &Assignment, result: &ExecutionResult) {
        if let Some(seen) = self.jobs.get_mut(&a.job_id) {
            seen.results.insert(a.epoch, result.outcome);
        }
    }

    pub(crate) fn wrote_chunk(&mut self, id: &ExecutionId, chunk: Chunk) {
        self.logs.entry(id.clone()).or_default().push(chunk);
    }

    /// A runner throws an execution's directory away: nothing that matters may be in it.
    pub(crate) fn removed(&mut self, dir: &Dir, session_is_current: bool) -> Option<String> {
        self.checks += 1;
        let seen = self.jobs.get(&dir.assignment.job_id)?;
        if dir.alive {
            return Some("the directory of an executor at work was removed".into());
        }
        let waits = matches!(seen.state, JobState::Running | JobState::Unknown) && seen.epoch == dir.assignment.epoch;
        (dir.result.is_some() && waits && session_is_current)
            .then(|| format!("the result of epoch {} was thrown away", dir.assignment.epoch))
    }

    /// Follows what the server has recorded since the last look, and compares the jobs that changed.
    pub(crate) fn look(&mut self, server: &Server, mut tell: impl FnMut(&JobId, String)) -> Result<(), Broken> {
        loop {
            let events = ready(server.store.events_after(&server.org, self.cursor, &Default::default(), EVENTS))
                .map_err(|e| (None, format!("events can't be read: {e}")))?;
            let Some(last) = events.last() else { return Ok(()) };
            self.cursor = last.cursor;
            let mut changed = BTreeSet::new();
            for event in events.iter().filter(|e| e.kind == "job.state") {
                let Ok(job) = JobId::parse(&event.subject_id) else { continue };
                let text = |name: &str| event.data[name].as_str().unwrap_or_default().to_owned();
                tell(&job, format!("{} → {} by {}: {}", text("from"), text("to"), event.actor, text("reason")));
                self.follow(server, &job, event).map_err(|broken| (Some(job.clone()), broken))?;
                changed.insert(job);
            }
            for job in changed {
                self.compare(server, &job).map_err(|broken| (Some(job), broken))?;
            }
        }
    }

    /// One step of a job, as its event tells it.
    fn follow(&mut self, server: &Server, id: &JobId, event: &Event) -> Result<(), String> {
        self.checks += 1;
        let state = |name: &str| event.data[name].as_str().and_then(JobState::parse);
        let to = state("to").ok_or("an event names no state")?;
        let Some(from) = state("from") else {
            if !self.jobs.contains_key(id) {
                self.adopt(server, id)?;
            }
            return Ok(());
        };
        let seen = self.jobs.get_mut(id).ok_or("a job moved that was never queued")?;
        if from != seen.state || from.is_terminal() {
            return Err(format!("it went from {from:?} to {to:?}, but was {:?}", seen.state));
        }
        let epoch = event.data["epoch"].as_u64().unwrap_or_default();
        let wanted = seen.epoch + u64::from(to == JobState::Claimed);
        if epoch != wanted {
            return Err(format!("it became {to:?} with epoch {epoch} instead of {wanted}"));
        }
        (seen.state, seen.epoch) = (to, epoch);
        if to == JobState::Running {
            seen.started.insert(epoch);
        }
        if to == JobState::Unknown && event.data["reason"].as_str().unwrap_or_default().is_empty() {
            return Err("it is unknown without a reason".into());
        }
        if to.is_terminal() { seen.ended(from, to, &event.actor) } else { Ok(()) }
    }

    /// A job that the server made by itself: a health check.
    fn adopt(&mut self, server: &Server, id: &JobId) -> Result<(), String> {
        let job = server.job(id).ok_or("a queued job is not there")?;
        let runner = server.runners.iter().position(|(runner, ..)| runner.id == job.runner_id);
        self.jobs.insert(id.clone(), Seen::new(runner.unwrap_or(usize::MAX), job.job_type, job.target));
        Ok(())
    }

    /// What the store says about a job that has just changed.
    fn compare(&mut self, server: &Server, id: &JobId) -> Result<(), String> {
        self.checks += 1;
        let Some(seen) = self.jobs.get(id) else { return Ok(()) };
        let job = server.job(id).ok_or("the job is lost")?;
        if (job.state, job.epoch) != (seen.state, seen.epoch) {
            return Err(format!("it is {:?} in epoch {}, its events say otherwise", job.state, job.epoch));
        }
        let rows = ready(server.store.executions_of(id)).map_err(|e| e.to_string())?;
        let live: Vec<_> = rows.iter().filter(|e| matches!(e.state.as_str(), "pending" | "in-progress")).collect();
        let wanted = match job.state {
            JobState::Claimed => Some("pending"),
            JobState::Running => Some("in-progress"),
            JobState::Queued
            | JobState::Unknown
            | JobState::Finished
            | JobState::Failed
            | JobState::TimedOut
            | JobState::Cancelled
            | JobState::NotAttempted => None,
        };
        let held: Vec<_> = live.iter().map(|e| (e.state.as_str(), e.epoch)).collect();
        if held != wanted.map(|state| (state, job.epoch)).into_iter().collect::<Vec<_>>() {
            return Err(format!("it is {:?} in epoch {}, and its live leases are {held:?}", job.state, job.epoch));
        }
        if let (JobState::Queued, Some(conductor)) = (job.state, server.conductor()) {
            let reason = ready(conductor.waiting_reason(&job)).map_err(|e| e.to_string())?;
            if reason.is_none_or(|reason| reason.is_empty()) {
                return Err("it waits, and nobody says for what".into());
            }
        }
        Ok(())
    }

    /// When all is quiet again: every job has an end or a reason, every target is free, every log line is there.
    pub(crate) fn finish(&mut self, server: &Server) -> Result<(), Broken> {
        for (id, seen) in &self.jobs {
            self.checks += 1;
            let broken = |text: String| Err((Some(id.clone()), text));
            let Some(job) = server.job(id) else {
                // Old health checks are forgotten.
                if seen.job_type == JobType::HealthCheck {
                    continue;
                }
                return broken("the job is lost".into());
            };
            if !job.state.is_terminal() && (job.state != JobState::Unknown || job.reason.is_empty()) {
                let waits = server.conductor().and_then(|c| ready(c.waiting_reason(&job)).ok()).flatten();
                return broken(format!("at the end it is {:?}: {}", job.state, waits.unwrap_or(job.reason)));
            }
            if job.state == JobState::Unknown && !job.released {
                return broken("at the end its target is still held".into());
            }
            if job.state == JobState::Finished && !seen.begun.contains(&job.epoch) {
                return broken("it finished, and nobody ever worked on it".into());
            }
            let rows = ready(server.store.executions_of(id)).map_err(|e| (Some(id.clone()), e.to_string()))?;
            for row in rows {
                let written = self.logs.get(&row.id).map_or(&[][..], Vec::as_slice);
                let stored = ready(read_all(server, &row.id)).map_err(|e| (Some(id.clone()), e.to_string()))?;
                let whole = row.log_chunks.unwrap_or(0) as usize;
                if !written.starts_with(&stored) || stored.len() < whole {
                    let (stored, written) = (stored.len(), written.len());
                    return broken(format!("of {written} log chunks {stored} are there, {whole} were promised"));
                }
            }
        }
        Ok(())
    }
}

async fn read_all(server: &Server, id: &ExecutionId) -> store::Result<Vec<Chunk>> {
    let mut chunks: Vec<Chunk> = Vec::new();
    loop {
        let more = server.store.read_log(id, chunks.len() as u64).await?;
        if more.is_empty() {
            return Ok(chunks);
        }
        chunks.extend(more);
    }
}

impl Seen {
    fn new(runner: usize, job_type: JobType, target: Option<String>) -> Self {
        Self {
            runner,
            job_type,
            target,
            state: JobState::Queued,
            epoch: 0,
            started: BTreeSet::new(),
            begun: Vec::new(),
            results: BTreeMap::new(),
        }
    }

    /// No false success, and no false failure: an end comes from a result of the current epoch, or it says otherwise.
    fn ended(&self, from: JobState, to: JobState, actor: &str) -> Result<(), String> {
        let said = self.results.get(&self.epoch).map(|outcome| JobState::from(*outcome));
        match from {
            JobState::Running | JobState::Unknown => {
                let by_rule = actor == "operator" || (actor == "ferry" && to != JobState::Finished);
                if said != Some(to) && !by_rule {
                    return Err(format!("it is {to:?}, but the executor of epoch {} said {said:?}", self.epoch));
                }
                Ok(())
            }
            JobState::Queued | JobState::Claimed => {
                if !self.begun.is_empty() && !self.job_type.may_be_retried("exec") {
                    return Err(format!("it is {to:?} as if it had not begun, but it had: epochs {:?}", self.begun));
                }
                Ok(())
            }
            JobState::Finished
            | JobState::Failed
            | JobState::TimedOut
            | JobState::Cancelled
            | JobState::NotAttempted => Err("an end has no end".into()),
        }
    }
}
