//! Which logs a collector has yet to get, and who passes them on.

use model::{ExecutionId, OrgId, Timestamp};

use crate::db::{Row, params};
use crate::jobs::executions::{self, ExecutionRow};
use crate::{Reader, Result, Store};

/// A log that is to be forwarded from some chunk on.
#[derive(Debug, Clone)]
pub struct Forwarding {
    pub log: ExecutionId,
    pub org: OrgId,
    pub from_seq: u64,
}

impl Reader {
    /// Logs with something that no collector has yet, which somebody wrote to since then.
    pub async fn forwardable(&self, since: Timestamp, now: Timestamp, limit: u64) -> Result<Vec<Forwarding>> {
        self.logs_db()
            .read((since, now, limit), |tx, (since, now, limit)| { Box::pin(async move {
                    let sql = "SELECT execution_id, org_id, forwarded_seq FROM log_heads WHERE forwarded_seq < next_seq AND updated_at >= $1 AND forward_until <= $2 AND deleted_at IS NULL AND rolling = 0 ORDER BY updated_at LIMIT $3";
                    let rows = tx.query(sql, params![since, now, limit]).await?;
                    let of = |row: &Row| {
                        Ok(Forwarding { log: row.get("execution_id")?, org: row.get("org_id")?, from_seq: row.get("forwarded_seq")? })
                    };
                    rows.iter().map(of).collect()
                }) })
            .await
    }

    /// An execution by its id alone, for those who look after all of them.
    pub async fn execution_of_anyone(&self, id: &ExecutionId) -> Result<ExecutionRow> {
        self.main().glance(id.clone(), |tx, id| Box::pin(async move { executions::by_id(tx, id).await })).await
    }
}

impl Store {
    /// Takes a log in hand, so that nobody else forwards it until then; false: somebody does, or has.
    pub async fn take_forwarding(&self, of: &Forwarding, now: Timestamp, until: Timestamp) -> Result<bool> {
        self.logs_db()
            .write((of.clone(), now, until), |tx, (of, now, until)| { Box::pin(async move {
                    let sql = "UPDATE log_heads SET forward_until = $4 WHERE execution_id = $1 AND forwarded_seq = $2 AND forward_until <= $3";
                    Ok(tx.exec(sql, params![&of.log, of.from_seq, now, until]).await? == 1)
                }) })
            .await
    }

    /// Notes how far a log was forwarded; it may go on `after` that time.
    pub async fn forwarded(&self, log: &ExecutionId, next_seq: u64, after: Timestamp) -> Result<()> {
        self.logs_db()
            .write((log.clone(), next_seq, after), |tx, (log, next_seq, after)| { Box::pin(async move {
                    let sql = "UPDATE log_heads SET forwarded_seq = $2, forward_until = $3 WHERE execution_id = $1 AND forwarded_seq <= $2";
                    tx.exec(sql, params![&log, next_seq, after]).await
                }) })
            .await?;
        Ok(())
    }
}
