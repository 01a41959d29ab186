//! What exporters send in the name of a runner: records in a log that belongs to the runner, not to an execution.

use model::log::{Body, Chunk, NO_STEP, Pipe, telemetry_log};
use model::{ExecutionId, OrgId, RunnerId, Timestamp, TokenId};

use crate::db::{Tx, params};
use crate::people::accounts::telemetry_hash;
use crate::{Reader, Result, Store, StoreError};

/// Largest batch before compression: what a batch of a runner may be.
const BATCH_BYTES: usize = 2 << 20;

/// How long telemetry is kept where the org has no rule, and how much of it a runner may have.
const TELEMETRY_S: u64 = 30 * 86_400;
const TELEMETRY_BYTES_MAX: u64 = 1 << 30;

impl Reader {
    /// The runner that a telemetry token speaks for, and its org.
    pub async fn authenticate_telemetry(&self, token: &str, now: Timestamp) -> Result<(TokenId, OrgId, RunnerId)> {
        self.main()
            .glance((telemetry_hash(token), now), |tx, (hash, now)| { Box::pin(async move {
                    let sql = "SELECT t.id AS token_id, r.org_id, r.id AS runner_id FROM tokens t JOIN runners r ON r.id = t.runner_id WHERE t.hash = $1 AND t.revoked_at IS NULL AND r.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2)";
                    let row = tx.get(sql, params![hash, now]).await?.ok_or(StoreError::NotFound("token"))?;
                    Ok((row.get("token_id")?, row.get("org_id")?, row.get("runner_id")?))
                }) })
            .await
    }
}

impl Store {
    /// Appends records to a runner's telemetry, in the order in which they are given; all of them or none.
    pub async fn append_records(
        &self,
        org: &OrgId,
        runner: &RunnerId,
        pipe: Pipe,
        records: Vec<Vec<u8>>,
        now: Timestamp,
    ) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.logs_db()
            .write((org.clone(), telemetry_log(runner), std::sync::Arc::new(records), pipe, now), |tx, (org, log, records, pipe, now)| { Box::pin(async move {
                    // The head first: who holds it is the only one that gives numbers.
                    let sql = "INSERT INTO log_heads (execution_id, org_id, next_seq, size_bytes, hot_bytes, updated_at, rolling) VALUES ($1, $2, $3, 0, 0, $4, 1) ON CONFLICT (execution_id) DO UPDATE SET next_seq = log_heads.next_seq + $3, updated_at = $4, deleted_at = NULL";
                    tx.exec(sql, params![&log, &org, records.len() as u64, now]).await?;
                    let sql = "SELECT next_seq FROM log_heads WHERE execution_id = $1";
                    let row = tx.get(sql, params![&log]).await?.ok_or_else(|| StoreError::corrupt("log head"))?;
                    let first = row.get::<u64>("next_seq")? - records.len() as u64;
                    let time = next_ns(tx, log, *now).await?;
                    let mut size = 0;
                    let mut chunks = records.iter().enumerate().map(|(at, record)| Chunk {
                        seq: first + at as u64,
                        time_ns: time + at as u64,
                        pipe: *pipe,
                        step: NO_STEP,
                        offset: 0,
                        body: Body::Data(record.clone()),
                    });
                    let mut open: Option<(Chunk, Vec<u8>)> = None;
                    loop {
                        let next = chunks.next();
                        let full = open.as_ref().is_some_and(|(_, plain)| plain.len() >= BATCH_BYTES);
                        if (full || next.is_none()) && let Some((first, plain)) = open.take() {
                            let end = next.as_ref().map_or(row.get("next_seq")?, |chunk| chunk.seq);
                            size += insert(tx, log, &first, end, &plain).await?;
                        }
                        let Some(chunk) = next else { break };
                        let (_, plain) = open.get_or_insert_with(|| (chunk.clone(), Vec::new()));
                        chunk.encode(plain);
                    }
                    let sql = "UPDATE log_heads SET size_bytes = size_bytes + $2, hot_bytes = hot_bytes + $2 WHERE execution_id = $1";
                    tx.exec(sql, params![&log, size]).await?;
                    Ok(())
                }) })
            .await
    }
}

/// The oldest segment of a log without an end.
struct Oldest {
    next_seq: u64,
    blob_key: String,
    size_bytes: u64,
    /// When what follows it began.
    until_ns: u64,
}

impl Reader {
    async fn oldest_segment(&self, log: &ExecutionId) -> Result<Option<Oldest>> {
        self.logs_db()
            .read(log.clone(), |tx, log| { Box::pin(async move {
                    let sql = "SELECT first_ns, next_seq, blob_key, size_bytes FROM log_segments WHERE execution_id = $1 ORDER BY first_seq LIMIT 2";
                    let segments = tx.query(sql, params![&log]).await?;
                    let Some(oldest) = segments.first() else { return Ok(None) };
                    let until_ns = match segments.get(1) {
                        Some(next) => next.get("first_ns")?,
                        None => {
                            let sql = "SELECT first_ns FROM log_chunks WHERE execution_id = $1 ORDER BY first_seq LIMIT 1";
                            match tx.get(sql, params![&log]).await? {
                                Some(hot) => hot.get("first_ns")?,
                                None => {
                                    let sql = "SELECT updated_at FROM log_heads WHERE execution_id = $1";
                                    let head = tx.get(sql, params![&log]).await?;
                                    let head = head.ok_or_else(|| StoreError::corrupt("log head"))?;
                                    head.get::<Timestamp>("updated_at")?.nanos()
                                }
                            }
                        }
                    };
                    Ok(Some(Oldest { next_seq: oldest.get("next_seq")?, blob_key: oldest.get("blob_key")?, size_bytes: oldest.get("size_bytes")?, until_ns }))
                }) })
            .await
    }
}

impl Store {
    /// Deletes the oldest segments of logs without an end: those that are older than the org wants, and those that are too many.
    /// Returns how many.
    pub async fn trim_rolling_logs(&self, now: Timestamp, limit: usize) -> Result<usize> {
        let logs: Vec<(ExecutionId, OrgId, u64)> = self
            .logs_db()
            .read((), |tx, ()| { Box::pin(async move {
                    let sql = "SELECT execution_id, org_id, size_bytes FROM log_heads WHERE rolling = 1 AND deleted_at IS NULL";
                    let rows = tx.query(sql, params![]).await?;
                    rows.iter().map(|row| Ok((row.get("execution_id")?, row.get("org_id")?, row.get("size_bytes")?))).collect()
                }) })
            .await?;
        let mut trimmed = 0;
        for (log, org, mut size) in logs {
            let kept_s = self.log_rules(&org).await?.retention_s.unwrap_or(TELEMETRY_S);
            let before = now.plus_s(-i64::try_from(kept_s).unwrap_or(i64::MAX / 2_000_000));
            let before_ns = before.nanos();
            while trimmed < limit {
                let Some(oldest) = self.oldest_segment(&log).await? else { break };
                if oldest.until_ns >= before_ns && size <= TELEMETRY_BYTES_MAX {
                    break;
                }
                size = size.saturating_sub(oldest.size_bytes);
                // The blob goes first: a crash leaves a row that leads here again.
                self.blobs().delete(&oldest.blob_key).await?;
                self.logs_db()
                    .write((log.clone(), oldest.next_seq, oldest.size_bytes), |tx, (id, next_seq, size_bytes)| { Box::pin(async move {
                            let sql = "UPDATE log_heads SET first_seq = $2, size_bytes = size_bytes - $3 WHERE execution_id = $1 AND first_seq < $2";
                            tx.exec(sql, params![id, next_seq, size_bytes]).await?;
                            let sql = "DELETE FROM log_segments WHERE execution_id = $1 AND next_seq <= $2";
                            tx.exec(sql, params![id, next_seq]).await
                        }) })
                    .await?;
                trimmed += 1;
            }
        }
        Ok(trimmed)
    }
}

/// The time of the next record: now, and after all that are there.
async fn next_ns(tx: &mut Tx<'_>, log: &ExecutionId, now: Timestamp) -> Result<u64> {
    let mut time = now.nanos();
    for sql in [
        "SELECT first_ns, next_seq - first_seq AS count FROM log_chunks WHERE execution_id = $1 ORDER BY first_seq DESC LIMIT 1",
        "SELECT first_ns, next_seq - first_seq AS count FROM log_segments WHERE execution_id = $1 ORDER BY first_seq DESC LIMIT 1",
    ] {
        if let Some(row) = tx.get(sql, params![log]).await? {
            time = time.max(row.get::<u64>("first_ns")? + row.get::<u64>("count")?);
        }
    }
    Ok(time)
}

async fn insert(tx: &mut Tx<'_>, log: &ExecutionId, first: &Chunk, end: u64, plain: &[u8]) -> Result<u64> {
    let data = zstd::bulk::compress(plain, 1).map_err(StoreError::db)?;
    let size = data.len() as u64;
    tx.exec(
        "INSERT INTO log_chunks (execution_id, first_seq, next_seq, first_ns, plain_bytes, data) VALUES ($1, $2, $3, $4, $5, $6)",
        params![log, first.seq, end, first.time_ns, plain.len() as u64, data],
    )
    .await?;
    Ok(size)
}
