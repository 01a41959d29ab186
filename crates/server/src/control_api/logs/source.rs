//! Where a log stream comes from: the executions of a job, one after the other, or the exporters that speak for a runner.

use std::time::Duration;

use model::lines::End;
use model::log::{Chunk, telemetry_log, telemetry_runner};
use model::{ExecutionId, JobState, LogStreamId, OrgId, StepResult, Timestamp};
use store::{ExecutionRow, Job, Runner, StoreError, topic};

use crate::AppState;
use crate::error::ApiResult;

/// How long a job is unknown before nothing more of its log is waited for.
const UNKNOWN: Duration = Duration::from_secs(5);

pub(crate) struct Source {
    pub(crate) org: OrgId,
    pub(crate) stream: LogStreamId,
    pub(crate) owner: Owner,
    pub(crate) parts: Vec<Part>,
}

pub(crate) enum Owner {
    Job(Job),
    Runner(Runner),
}

/// A run of chunks that are numbered from 0.
pub(crate) struct Part {
    pub(crate) id: ExecutionId,
    pub(crate) epoch: u64,
    pub(crate) steps: Vec<StepResult>,
    /// How many chunks there will be, once that is known.
    pub(crate) chunks: Option<u64>,
    /// Its executor has not said so.
    torn: bool,
}

impl From<ExecutionRow> for Part {
    fn from(row: ExecutionRow) -> Self {
        Self { id: row.id, epoch: row.epoch, steps: row.steps, chunks: row.log_chunks, torn: false }
    }
}

impl Part {
    /// What comes after the chunk before this number.
    pub(crate) fn end(&self, next_seq: u64) -> End {
        match self.torn {
            _ if self.chunks != Some(next_seq) => End::Open,
            true => End::Torn,
            false => End::Whole,
        }
    }

    /// What comes after these chunks.
    pub(crate) fn end_of(&self, chunks: &[Chunk]) -> End {
        chunks.last().map_or(End::Open, |last| self.end(last.seq + 1))
    }
}

impl Source {
    pub(crate) async fn find(state: &AppState, org: &OrgId, id: &str) -> ApiResult<Self> {
        let unknown = StoreError::NotFound("log stream");
        let Ok(stream) = LogStreamId::parse(id) else { return Err(unknown.into()) };
        let owner = match state.store().job_of_log(org, &stream).await {
            Ok(job) => Owner::Job(job),
            Err(StoreError::NotFound(_)) => match state.store().runner(org, telemetry_runner(&stream).as_str()).await {
                Ok(runner) => Owner::Runner(runner),
                Err(StoreError::NotFound(_)) => return Err(unknown.into()),
                Err(other) => return Err(other.into()),
            },
            Err(other) => return Err(other.into()),
        };
        let mut source = Self { org: org.clone(), stream, owner, parts: Vec::new() };
        source.look_again(state).await?;
        Ok(source)
    }

    /// What may have changed meanwhile. The state of a job comes first: chunks that arrive after this look are seen in the next.
    pub(crate) async fn look_again(&mut self, state: &AppState) -> ApiResult<()> {
        self.parts = match &mut self.owner {
            Owner::Job(job) => {
                *job = state.store().job(&self.org, &job.id).await?;
                state.store().executions_of(&job.id).await?.into_iter().map(Part::from).collect()
            }
            Owner::Runner(runner) => {
                vec![Part { id: telemetry_log(&runner.id), epoch: 1, steps: Vec::new(), chunks: None, torn: false }]
            }
        };
        // What ended without a result ends where it is.
        let (over, count) = (self.is_over(state.conductor.now()), self.parts.len());
        for (at, part) in self.parts.iter_mut().enumerate() {
            if part.chunks.is_none() && (over || at + 1 < count) {
                (part.chunks, part.torn) = (Some(state.store().log_head(&part.id).await?), true);
            }
        }
        Ok(())
    }

    /// More may come.
    pub(crate) fn is_open(&self) -> bool {
        match &self.owner {
            Owner::Job(job) => !job.state.is_terminal(),
            Owner::Runner(_) => true,
        }
    }

    /// Nothing more is expected. Of a job that has just become unknown, what its runner still has may be on its way.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        let settled = |job: &Job| job.state == JobState::Unknown && now.since(job.updated_at) > UNKNOWN;
        !self.is_open() || matches!(&self.owner, Owner::Job(job) if settled(job))
    }

    /// What is woken when it has more.
    pub(crate) fn topic(&self) -> String {
        match &self.owner {
            Owner::Job(job) => topic::job(&job.id),
            Owner::Runner(runner) => topic::telemetry(&runner.id),
        }
    }

    pub(crate) fn status(&self) -> serde_json::Value {
        match &self.owner {
            Owner::Job(job) => serde_json::json!(job.state),
            Owner::Runner(_) => serde_json::Value::Null,
        }
    }
}
