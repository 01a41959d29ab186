//! What exporters send in the name of a runner: records in a log that belongs to the runner, not to an execution.

use std::collections::BTreeMap;

use model::log::{Body, Chunk, NO_STEP, Pipe};
use model::{ExecutionId, LogStreamId, OrgId, RunnerId, Timestamp, TokenId, id};

use crate::accounts::telemetry_hash;
use crate::db::{Tx, params};
use crate::{Result, Store, StoreError};

/// Largest batch before compression: what a batch of a runner may be.
const BATCH_BYTES: usize = 2 << 20;

/// How long telemetry is kept where the org has no rule, and how much of it a runner may have.
const TELEMETRY_S: u64 = 30 * 86_400;
const TELEMETRY_BYTES_MAX: u64 = 1 << 30;

/// The names of a runner's telemetry among log streams and logs: other views of the same runner.
pub fn telemetry_stream(runner: &RunnerId) -> LogStreamId {
    twin(LogStreamId::PREFIX, runner.as_str(), LogStreamId::parse)
}

pub fn telemetry_log(runner: &RunnerId) -> ExecutionId {
    twin(ExecutionId::PREFIX, runner.as_str(), ExecutionId::parse)
}

/// The runner whose telemetry a log stream is, if it is one.
pub fn telemetry_runner(stream: &LogStreamId) -> RunnerId {
    twin(RunnerId::PREFIX, stream.as_str(), RunnerId::parse)
}

fn twin<T>(prefix: &'static str, of: &str, parse: fn(&str) -> std::result::Result<T, id::InvalidId>) -> T {
    parse(&id::twin(prefix, of)).expect("a twin of an id is one")
}

impl Store {
    /// The runner that a telemetry token speaks for, and its org.
    pub async fn authenticate_telemetry(&self, token: &str, now: Timestamp) -> Result<(TokenId, OrgId, RunnerId)> {
        let hash = telemetry_hash(token);
        self.main()
            .glance(move |tx| {
                let hash = hash.clone();
                Box::pin(async move {
                    let sql = "SELECT t.id, r.org_id, r.id FROM tokens t JOIN runners r ON r.id = t.runner_id WHERE t.hash = $1 AND t.revoked_at IS NULL AND r.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2)";
                    let row = tx.get(sql, params![hash, now]).await?.ok_or(StoreError::NotFound("token"))?;
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                })
            })
            .await
    }

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
        let (org, log) = (org.clone(), telemetry_log(runner));
        let records = std::sync::Arc::new(records);
        self.logs_db()
            .write(move |tx| {
                let (org, log, records) = (org.clone(), log.clone(), records.clone());
                Box::pin(async move {
                    // The head first: who holds it is the only one that gives numbers.
                    let sql = "INSERT INTO log_heads (execution_id, org_id, next_seq, size_bytes, hot_bytes, updated_at, rolling) VALUES ($1, $2, $3, 0, 0, $4, 1) ON CONFLICT (execution_id) DO UPDATE SET next_seq = log_heads.next_seq + $3, updated_at = $4, deleted_at = NULL";
                    tx.exec(sql, params![&log, &org, records.len() as u64, now]).await?;
                    let sql = "SELECT next_seq FROM log_heads WHERE execution_id = $1";
                    let row = tx.get(sql, params![&log]).await?.ok_or_else(|| StoreError::corrupt("log head"))?;
                    let first = row.get::<u64>(0)? - records.len() as u64;
                    let time = next_ns(tx, &log, now).await?;
                    let mut size = 0;
                    let mut chunks = records.iter().enumerate().map(|(at, record)| Chunk {
                        seq: first + at as u64,
                        time_ns: time + at as u64,
                        pipe,
                        step: NO_STEP,
                        offset: 0,
                        body: Body::Data(record.clone()),
                    });
                    let mut open: Option<(Chunk, Vec<u8>)> = None;
                    loop {
                        let next = chunks.next();
                        let full = open.as_ref().is_some_and(|(_, plain)| plain.len() >= BATCH_BYTES);
                        if (full || next.is_none()) && let Some((first, plain)) = open.take() {
                            let end = next.as_ref().map_or(row.get(0)?, |chunk| chunk.seq);
                            size += insert(tx, &log, &first, end, &plain).await?;
                        }
                        let Some(chunk) = next else { break };
                        let (_, plain) = open.get_or_insert_with(|| (chunk.clone(), Vec::new()));
                        chunk.encode(plain);
                    }
                    let sql = "UPDATE log_heads SET size_bytes = size_bytes + $2, hot_bytes = hot_bytes + $2 WHERE execution_id = $1";
                    tx.exec(sql, params![&log, size]).await?;
                    Ok(())
                })
            })
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

impl Store {
    /// Deletes the oldest segments of logs without an end: those that are older than the org wants, and those that are too many.
    /// Returns how many.
    pub async fn trim_rolling_logs(&self, now: Timestamp, limit: usize) -> Result<usize> {
        let logs: Vec<(ExecutionId, OrgId, u64)> = self
            .logs_db()
            .read(move |tx| {
                Box::pin(async move {
                    let sql = "SELECT execution_id, org_id, size_bytes FROM log_heads WHERE rolling = 1 AND deleted_at IS NULL";
                    let rows = tx.query(sql, params![]).await?;
                    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).collect()
                })
            })
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
                let id = log.clone();
                self.logs_db()
                    .write(move |tx| {
                        let id = id.clone();
                        Box::pin(async move {
                            let sql = "UPDATE log_heads SET first_seq = $2, size_bytes = size_bytes - $3 WHERE execution_id = $1 AND first_seq < $2";
                            tx.exec(sql, params![&id, oldest.next_seq, oldest.size_bytes]).await?;
                            let sql = "DELETE FROM log_segments WHERE execution_id = $1 AND next_seq <= $2";
                            tx.exec(sql, params![&id, oldest.next_seq]).await
                        })
                    })
                    .await?;
                trimmed += 1;
            }
        }
        Ok(trimmed)
    }

    async fn oldest_segment(&self, log: &ExecutionId) -> Result<Option<Oldest>> {
        let log = log.clone();
        self.logs_db()
            .read(move |tx| {
                let log = log.clone();
                Box::pin(async move {
                    let sql = "SELECT first_ns, next_seq, blob_key, size_bytes FROM log_segments WHERE execution_id = $1 ORDER BY first_seq LIMIT 2";
                    let segments = tx.query(sql, params![&log]).await?;
                    let Some(oldest) = segments.first() else { return Ok(None) };
                    let until_ns = match segments.get(1) {
                        Some(next) => next.get(0)?,
                        None => {
                            let sql = "SELECT first_ns FROM log_chunks WHERE execution_id = $1 ORDER BY first_seq LIMIT 1";
                            match tx.get(sql, params![&log]).await? {
                                Some(hot) => hot.get(0)?,
                                None => {
                                    let sql = "SELECT updated_at FROM log_heads WHERE execution_id = $1";
                                    let head = tx.get(sql, params![&log]).await?;
                                    let head = head.ok_or_else(|| StoreError::corrupt("log head"))?;
                                    head.get::<Timestamp>(0)?.nanos()
                                }
                            }
                        }
                    };
                    Ok(Some(Oldest { next_seq: oldest.get(1)?, blob_key: oldest.get(2)?, size_bytes: oldest.get(3)?, until_ns }))
                })
            })
            .await
    }
}

/// The time of the next record: now, and after all that are there.
async fn next_ns(tx: &mut Tx<'_>, log: &ExecutionId, now: Timestamp) -> Result<u64> {
    let mut time = now.nanos();
    for sql in [
        "SELECT first_ns, next_seq - first_seq FROM log_chunks WHERE execution_id = $1 ORDER BY first_seq DESC LIMIT 1",
        "SELECT first_ns, next_seq - first_seq FROM log_segments WHERE execution_id = $1 ORDER BY first_seq DESC LIMIT 1",
    ] {
        if let Some(row) = tx.get(sql, params![log]).await? {
            time = time.max(row.get::<u64>(0)? + row.get::<u64>(1)?);
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

/// How much is going on, over all orgs.
#[derive(Debug, Default)]
pub struct OpenCounts {
    /// By state.
    pub jobs: BTreeMap<String, i64>,
    /// By status.
    pub workflows: BTreeMap<String, i64>,
    pub runners: i64,
}

/// The conditions of partial indexes, letter by letter: finished ones are not looked at.
const QUEUED: &str = "SELECT 'queued', COUNT(*) FROM jobs WHERE state = 'queued'";
const LIVE: &str =
    "SELECT state, COUNT(*) FROM jobs WHERE state IN ('available', 'in-progress', 'unknown') GROUP BY state";
const OPEN: &str = "SELECT status, COUNT(*) FROM workflows WHERE status IN ('pending', 'in-progress', 'approval-awaiting') GROUP BY status";

impl Store {
    pub async fn open_counts(&self) -> Result<OpenCounts> {
        self.main()
            .read(move |tx| {
                Box::pin(async move {
                    let mut counts = OpenCounts {
                        jobs: ["queued", "available", "in-progress", "unknown"].map(|state| (state.into(), 0)).into(),
                        workflows: ["pending", "in-progress", "approval-awaiting"].map(|s| (s.into(), 0)).into(),
                        runners: 0,
                    };
                    for sql in [QUEUED, LIVE] {
                        for row in tx.query(sql, params![]).await? {
                            counts.jobs.insert(row.get(0)?, row.get(1)?);
                        }
                    }
                    for row in tx.query(OPEN, params![]).await? {
                        counts.workflows.insert(row.get(0)?, row.get(1)?);
                    }
                    let row = tx.get("SELECT COUNT(*) FROM runners WHERE revoked_at IS NULL", params![]).await?;
                    counts.runners = row.map_or(Ok(0), |row| row.get(0))?;
                    Ok(counts)
                })
            })
            .await
    }

    /// Logs with something that no collector has yet, which somebody wrote to since then.
    pub async fn forwardable(&self, since: Timestamp, now: Timestamp, limit: u64) -> Result<Vec<Forwarding>> {
        self.logs_db()
            .read(move |tx| {
                Box::pin(async move {
                    let sql = "SELECT execution_id, org_id, forwarded_seq FROM log_heads WHERE forwarded_seq < next_seq AND updated_at >= $1 AND forward_until <= $2 AND deleted_at IS NULL AND rolling = 0 ORDER BY updated_at LIMIT $3";
                    let rows = tx.query(sql, params![since, now, limit]).await?;
                    let of = |row: &crate::db::Row| {
                        Ok(Forwarding { log: row.get(0)?, org: row.get(1)?, from_seq: row.get(2)? })
                    };
                    rows.iter().map(of).collect()
                })
            })
            .await
    }

    /// Takes a log in hand, so that nobody else forwards it until then; false: somebody does, or has.
    pub async fn take_forwarding(&self, of: &Forwarding, now: Timestamp, until: Timestamp) -> Result<bool> {
        let of = of.clone();
        self.logs_db()
            .write(move |tx| {
                let of = of.clone();
                Box::pin(async move {
                    let sql = "UPDATE log_heads SET forward_until = $4 WHERE execution_id = $1 AND forwarded_seq = $2 AND forward_until <= $3";
                    Ok(tx.exec(sql, params![&of.log, of.from_seq, now, until]).await? == 1)
                })
            })
            .await
    }

    /// Notes how far a log was forwarded; it may go on `after` that time.
    pub async fn forwarded(&self, log: &ExecutionId, next_seq: u64, after: Timestamp) -> Result<()> {
        let log = log.clone();
        self.logs_db()
            .write(move |tx| {
                let log = log.clone();
                Box::pin(async move {
                    let sql = "UPDATE log_heads SET forwarded_seq = $2, forward_until = $3 WHERE execution_id = $1 AND forwarded_seq <= $2";
                    tx.exec(sql, params![&log, next_seq, after]).await
                })
            })
            .await?;
        Ok(())
    }

    /// An execution by its id alone, for those who look after all of them.
    pub async fn execution_of_anyone(&self, id: &ExecutionId) -> Result<crate::ExecutionRow> {
        let id = id.clone();
        self.main()
            .glance(move |tx| {
                let id = id.clone();
                Box::pin(async move { crate::executions::by_id(tx, &id).await })
            })
            .await
    }
}

/// A log that is to be forwarded from some chunk on.
#[derive(Debug, Clone)]
pub struct Forwarding {
    pub log: ExecutionId,
    pub org: OrgId,
    pub from_seq: u64,
}
