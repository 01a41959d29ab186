//! How long logs are kept and how much of them; deleting them; and whether what is kept is whole.

use model::log::Body;
use model::{ExecutionId, OrgId, Timestamp};

use crate::db::params;
use crate::logs::{LogAt, unpack_batch};
use crate::{Reader, Result, Store, StoreError};

/// What an org wants kept of its logs; None: all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogRules {
    pub retention_s: Option<u64>,
    pub quota_bytes: Option<u64>,
}

/// What the logs of an org take, compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogUsage {
    pub executions: u64,
    pub size_bytes: u64,
}

/// The log of an execution, as it is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogHead {
    /// The first chunk that is here; 0 but in logs without an end, which lose their oldest.
    pub first_seq: u64,
    pub next_seq: u64,
    pub size_bytes: u64,
    pub deleted_at: Option<Timestamp>,
}

impl Reader {
    pub async fn log_rules(&self, org: &OrgId) -> Result<LogRules> {
        self.logs_db()
            .read(org.clone(), |tx, org| {
                Box::pin(async move {
                    let sql = "SELECT retention_s, quota_bytes FROM log_rules WHERE org_id = $1";
                    let Some(row) = tx.get(sql, params![&org]).await? else { return Ok(LogRules::default()) };
                    Ok(LogRules { retention_s: row.get("retention_s")?, quota_bytes: row.get("quota_bytes")? })
                })
            })
            .await
    }

    pub async fn log_usage(&self, org: &OrgId) -> Result<LogUsage> {
        self.logs_db()
            .read(org.clone(), |tx, org| { Box::pin(async move {
                    let sql = "SELECT COUNT(*) AS count, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS size_bytes FROM log_heads WHERE org_id = $1 AND deleted_at IS NULL";
                    let row = tx.get(sql, params![&org]).await?.ok_or_else(|| StoreError::corrupt("count"))?;
                    Ok(LogUsage { executions: row.get("count")?, size_bytes: row.get("size_bytes")? })
                }) })
            .await
    }

    /// The log of an execution: how much there is, and whether it was deleted.
    pub async fn log_state(&self, execution: &ExecutionId) -> Result<LogHead> {
        self.logs_db()
            .read(execution.clone(), |tx, id| {
                Box::pin(async move {
                    let sql =
                        "SELECT next_seq, size_bytes, deleted_at, first_seq FROM log_heads WHERE execution_id = $1";
                    let Some(row) = tx.get(sql, params![&id]).await? else { return Ok(LogHead::default()) };
                    Ok(LogHead {
                        next_seq: row.get("next_seq")?,
                        size_bytes: row.get("size_bytes")?,
                        deleted_at: row.get("deleted_at")?,
                        first_seq: row.get("first_seq")?,
                    })
                })
            })
            .await
    }

    /// Executions that have a log, from the one after `after` on.
    pub async fn logs_after(&self, after: &str, limit: u64) -> Result<Vec<(OrgId, ExecutionId)>> {
        self.logs_db()
            .read((after.to_owned(), limit), |tx, (after, limit)| { Box::pin(async move {
                    let sql = "SELECT org_id, execution_id FROM log_heads WHERE execution_id > $1 AND deleted_at IS NULL ORDER BY execution_id LIMIT $2";
                    let rows = tx.query(sql, params![after, limit]).await?;
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("execution_id")?))).collect()
                }) })
            .await
    }

    /// Reads a log from its first chunk to its last: every number once, every checksum right, every pipe without a hole that is
    /// not marked. Returns how many chunks there are, or what is wrong.
    pub async fn verify_log(&self, execution: &ExecutionId) -> Result<std::result::Result<u64, String>> {
        let head = self.log_state(execution).await?;
        let mut next = head.first_seq;
        let mut ends = std::collections::BTreeMap::new();
        loop {
            let chunks = match self.log_block(execution, LogAt::From(next)).await {
                Ok(chunks) => chunks,
                Err(StoreError::NotFound(_)) => {
                    return Ok(Err(format!("the segment with chunk {next} is not in the blob store")));
                }
                Err(error @ (StoreError::Refused(_) | StoreError::Db { transient: false, .. })) => {
                    return Ok(Err(format!("chunk {next} can't be read: {error}")));
                }
                Err(error) => return Err(error),
            };
            if chunks.is_empty() {
                break;
            }
            for chunk in chunks {
                if chunk.seq != next {
                    return Ok(Err(format!("after chunk {next} comes {}", chunk.seq)));
                }
                next += 1;
                if chunk.pipe.holds_records() {
                    continue;
                }
                // What came before the first one that is here was deleted.
                let end = ends.entry(chunk.pipe).or_insert(if head.first_seq == 0 { 0 } else { chunk.offset });
                if chunk.offset != *end {
                    let pipe = chunk.pipe.as_str();
                    return Ok(Err(format!(
                        "chunk {} begins at byte {} of {pipe}, not at {end}",
                        chunk.seq, chunk.offset
                    )));
                }
                *end += chunk.body.len();
            }
        }
        let whole = next >= head.next_seq;
        Ok(if whole { Ok(next) } else { Err(format!("it ends after {next} chunks, and {} were taken", head.next_seq)) })
    }
}

impl Store {
    pub async fn set_log_rules(&self, org: &OrgId, rules: LogRules) -> Result<()> {
        self.logs_db()
            .write((org.clone(), rules), |tx, (org, rules)| { Box::pin(async move {
                    tx.exec(
                        "INSERT INTO log_rules (org_id, retention_s, quota_bytes) VALUES ($1, $2, $3) ON CONFLICT (org_id) DO UPDATE SET retention_s = $2, quota_bytes = $3",
                        params![&org, rules.retention_s, rules.quota_bytes],
                    )
                    .await?;
                    Ok(())
                }) })
            .await
    }

    /// Deletes logs that have been quiet for longer than their org wants them kept; returns how many.
    pub async fn expire_logs(&self, now: Timestamp, limit: u64) -> Result<usize> {
        let old: Vec<ExecutionId> = self
            .logs_db()
            .read((now, limit), |tx, (now, limit)| { Box::pin(async move {
                    let sql = "SELECT org_id, retention_s FROM log_rules WHERE retention_s IS NOT NULL";
                    let rules = tx.query(sql, params![]).await?;
                    let mut old = Vec::new();
                    for row in rules {
                        let (org, kept): (OrgId, u64) = (row.get("org_id")?, row.get("retention_s")?);
                        let before = now.plus_s(-i64::try_from(kept).unwrap_or(i64::MAX / 2_000_000));
                        let sql = "SELECT execution_id FROM log_heads WHERE org_id = $1 AND deleted_at IS NULL AND updated_at < $2 ORDER BY updated_at LIMIT $3";
                        for row in tx.query(sql, params![&org, before, limit]).await? {
                            old.push(row.get("execution_id")?);
                        }
                    }
                    Ok(old)
                }) })
            .await?;
        let (mut erased, mut failed) = (0, None);
        for execution in &old {
            // One that can't be deleted does not keep the others.
            match self.erase_log(execution, now).await {
                Ok(()) => erased += 1,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(erased), Err)
    }

    /// Deletes a log for good; that it was deleted stays known.
    pub async fn erase_log(&self, execution: &ExecutionId, now: Timestamp) -> Result<()> {
        self.delete_log(execution, Some(now)).await
    }
}

/// The same batch with nothing but marks for what was printed: each says how much there was. What Ferry itself says stays.
pub fn without_output(batch: &[u8]) -> Result<(Vec<model::log::Chunk>, Vec<u8>)> {
    let mut chunks = unpack_batch(batch)?;
    let mut plain = Vec::new();
    for chunk in &mut chunks {
        let printed = chunk.pipe != model::log::Pipe::System;
        if let Body::Data(data) = &chunk.body
            && printed
            && !data.is_empty()
        {
            chunk.body = Body::Gap(data.len() as u64);
        }
        chunk.encode(&mut plain);
    }
    let packed = zstd::bulk::compress(&plain, 1).map_err(StoreError::db)?;
    Ok((chunks, packed))
}
