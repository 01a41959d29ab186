//! What a runner does to the executions that it holds.

use crash::crash_point;
use model::{ExecutionId, ExecutionResult, OrgId, StepResult};
use store::{PollInput, PollOutput, Result, ResultWritten};

use super::SessionOf;
use crate::Conductor;

/// What became of the leases that a runner renews.
#[derive(Debug, Clone)]
pub struct Renewed {
    pub renewed: Vec<ExecutionId>,
    pub lost: Vec<ExecutionId>,
    pub cancels: Vec<ExecutionId>,
}

impl Conductor {
    /// Claims what a runner has room for, and notes what it holds.
    pub async fn poll(&self, input: PollInput) -> Result<PollOutput> {
        self.store.poll(input).await
    }

    /// Agrees that work may begin. Nothing is spawned before this has answered.
    pub async fn start_execution(&self, session: SessionOf<'_>, id: &ExecutionId) -> Result<()> {
        crash_point!("server.before_start");
        self.store.start(session.runner, session.generation, id, self.timing.lease_s, self.now()).await?;
        crash_point!("server.started");
        Ok(())
    }

    /// Renews leases; does not depend on the work.
    pub async fn renew_leases(&self, session: SessionOf<'_>, held: Vec<(ExecutionId, u64)>) -> Result<Renewed> {
        crash_point!("server.before_renew");
        let lease_s = self.timing.lease_s;
        let done = self.store.renew(session.runner, session.generation, held, lease_s, self.now()).await?;
        crash_point!("server.renewed");
        let (renewed, lost, cancels) = done;
        Ok(Renewed { renewed, lost, cancels })
    }

    /// Notes how far the steps are.
    pub async fn note_progress(
        &self,
        session: SessionOf<'_>,
        id: &ExecutionId,
        epoch: u64,
        steps: Vec<StepResult>,
    ) -> Result<()> {
        self.store.progress(session.runner, id, epoch, steps).await
    }

    /// Writes a result: once, for the current epoch; the first one wins.
    pub async fn write_result(
        &self,
        org: &OrgId,
        session: SessionOf<'_>,
        id: &ExecutionId,
        epoch: u64,
        result: &ExecutionResult,
    ) -> Result<ResultWritten> {
        crash_point!("server.before_result");
        let by = (session.runner, session.generation);
        let written = self.store.write_result(org, by, id, epoch, result, self.now()).await?;
        crash_point!("server.result_written");
        Ok(written)
    }
}
