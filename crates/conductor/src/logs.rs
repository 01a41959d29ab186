//! Owns changes to what is kept of logs.
//! Handlers and the telemetry exporter call it.
//! No HTTP, no SQL.

use model::log::{Chunk, Pipe};
use model::{ExecutionId, OrgId, RunnerId, Timestamp};
use store::{Forwarding, Job, LogRules, topic};

use crate::error::{LogError, Result};
use crate::{By, Conductor};

/// Shortest retention: a log of today is always there.
const RETENTION_S_MIN: u64 = 86_400;

/// What is to change of an org's rules; 0 means without end.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogRulesChange {
    pub retention_s: Option<u64>,
    pub quota_bytes: Option<u64>,
}

impl Conductor {
    /// Deletes these logs for good. Those of a job that has not ended stay.
    pub async fn erase_logs(&self, job: Option<&Job>, is_over: bool, logs: &[ExecutionId]) -> Result<()> {
        if let Some(job) = job
            && !is_over
        {
            return Err(LogError::JobOpen(job.id.clone()).into());
        }
        for log in logs {
            self.store.erase_log(log, self.now()).await?;
        }
        Ok(())
    }

    pub async fn update_log_rules(&self, by: &By, change: LogRulesChange) -> Result<()> {
        let mut rules: LogRules = self.store.log_rules(&by.org).await?;
        if let Some(retention_s) = change.retention_s {
            if (1..RETENTION_S_MIN).contains(&retention_s) {
                return Err(LogError::Retention.into());
            }
            rules.retention_s = Some(retention_s).filter(|s| *s > 0);
        }
        if let Some(quota_bytes) = change.quota_bytes {
            rules.quota_bytes = Some(quota_bytes).filter(|bytes| *bytes > 0);
        }
        Ok(self.store.set_log_rules(&by.org, rules).await?)
    }

    /// Appends chunks to a log; returns which is next.
    pub async fn append_log(
        &self,
        org: &OrgId,
        execution: &ExecutionId,
        chunks: &[Chunk],
        data: Vec<u8>,
    ) -> store::Result<u64> {
        self.store.append_log(org, execution, chunks, data, self.now()).await
    }

    /// Keeps records of a runner's telemetry.
    pub async fn append_records(
        &self,
        org: &OrgId,
        runner: &RunnerId,
        pipe: Pipe,
        records: Vec<Vec<u8>>,
        now: Timestamp,
    ) -> Result<()> {
        self.store.append_records(org, runner, pipe, records, now).await?;
        self.store.notifier().wake(topic::telemetry(runner));
        Ok(())
    }

    /// Takes a log to forward it, unless another replica has it.
    pub async fn take_forwarding(&self, log: &Forwarding, until: Timestamp) -> store::Result<bool> {
        self.store.take_forwarding(log, self.now(), until).await
    }

    /// Notes how far a log was forwarded, and when it is looked at again.
    pub async fn forwarded(&self, log: &ExecutionId, next_seq: u64, look_at: Timestamp) -> store::Result<()> {
        self.store.forwarded(log, next_seq, look_at).await
    }
}
