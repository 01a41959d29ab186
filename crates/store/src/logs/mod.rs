//! Owns log chunks, their segments, retention and quotas, and what exporters send.
//! The Runner API appends; the handlers of logs read; a reconciler folds chunks into segments.
//! No unmasked text: masking happens in the executor.
//!
//! Logs at rest: numbered batches in a hot table, folded into segments in the blob store. Both hold the same frames.

pub(crate) mod forwarding;
pub(crate) mod log_keeping;
pub(crate) mod telemetry;

use std::io::Read as _;

use bytes::Bytes;
use model::lines::{Backward, FRAME_BYTES};
use model::log::{Body, Chunk};
use model::{ExecutionId, OrgId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::db::{Row, Tx, params};
use crate::{Reader, Refused, Result, Store, StoreError};

/// A run of chunks, still compressed: from the hot table, or a segment in the blob store.
enum LogPiece {
    Hot(Vec<u8>),
    /// The key of its blob.
    Segment(String),
}

/// A place in the log of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogAt {
    /// This chunk, and what follows.
    From(u64),
    /// What comes before this chunk.
    Before(u64),
    /// Where this time falls, in nanoseconds: chunks of before may come along.
    Time(u64),
}

/// A part of a segment that is compressed by itself: its first chunk, that one's time, and where in the blob it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Block(u64, u64, u64);

/// When hot batches are folded.
#[derive(Debug, Clone, Copy)]
pub struct SealInput {
    /// An execution with so many hot bytes is folded at once.
    pub full_bytes: u64,
    /// One that has been quiet since then is folded whatever it has.
    pub quiet_since: Timestamp,
}

/// Largest batch after decompression.
const BATCH_PLAIN: usize = 4 << 20;
/// What one segment, or one read, may hold after decompression (and one batch more): zeros compress a thousandfold.
const PIECE_PLAIN: u64 = 16 << 20;
/// Blocks of a segment have about this size before compression: what one page of a log reads.
const BLOCK_PLAIN: usize = 512 << 10;
const BLOCK_LEVEL: i32 = 3;
/// Pieces that one read takes from the hot table.
const HOT_ROWS: u64 = 16;
/// Pieces of the hot table that are read as one block.
const BLOCK_ROWS: u64 = 64;
/// Rows that one segment takes at most.
const SEAL_ROWS: u64 = 4096;

/// Decompresses a batch as a runner sends it; bounded.
pub fn unpack_batch(data: &[u8]) -> Result<Vec<Chunk>> {
    let plain = zstd::bulk::decompress(data, BATCH_PLAIN).map_err(|_| Refused::UnreadableBatch)?;
    Chunk::decode_all(&plain).map_err(|_| Refused::UnreadableBatch.into())
}

/// Decompresses frames that were put one after the other; bounded, as they were when they were put there.
fn unpack_segment(data: &[u8]) -> Result<Vec<Chunk>> {
    let bound = PIECE_PLAIN + 2 * BATCH_PLAIN as u64;
    let mut plain = Vec::new();
    let mut decoder = zstd::stream::Decoder::new(data).map_err(StoreError::db)?.take(bound + 1);
    decoder.read_to_end(&mut plain).map_err(StoreError::db)?;
    if plain.len() as u64 > bound {
        return Err(StoreError::corrupt("log segment"));
    }
    Chunk::decode_all(&plain).map_err(StoreError::db)
}

impl Reader {
    /// How many chunks of an execution are here.
    pub async fn log_head(&self, execution: &ExecutionId) -> Result<u64> {
        Ok(self.log_state(execution).await?.next_seq)
    }

    /// The next chunks from `from_seq` on: one segment, or a few hot batches. Empty at the end.
    pub async fn read_log(&self, execution: &ExecutionId, from_seq: u64) -> Result<Vec<Chunk>> {
        let mut chunks = Vec::new();
        for piece in self.log_pieces(execution, from_seq).await? {
            match piece {
                LogPiece::Hot(data) => chunks.extend(unpack_batch(&data)?),
                LogPiece::Segment(blob_key) => chunks.extend(unpack_segment(&self.blobs().get(&blob_key).await?)?),
            }
        }
        chunks.retain(|c| c.seq >= from_seq);
        Ok(chunks)
    }

    /// What was printed of the line that a chunk goes on with, before that chunk.
    pub async fn beginning_of_line(&self, execution: &ExecutionId, chunk: &Chunk) -> Result<Vec<u8>> {
        let (mut backward, mut seq, mut found) = (Backward::new(chunk.pipe), chunk.seq, false);
        while !found {
            let block = self.log_block(execution, LogAt::Before(seq)).await?;
            let Some(first) = block.first() else { break };
            seq = first.seq;
            found = block.iter().rev().any(|before| backward.pass(before));
        }
        Ok(backward.text())
    }

    /// A few chunks at a place, in their order; empty where there are none. It costs the same wherever the place is.
    pub async fn log_block(&self, execution: &ExecutionId, at: LogAt) -> Result<Vec<Chunk>> {
        let found = self
            .logs_db()
            .read((execution.clone(), at), |tx, (id, at)| Box::pin(async move { find_block(tx, id, *at).await }))
            .await?;
        let mut chunks = match found {
            None => return Ok(Vec::new()),
            Some(Found::Hot(batches)) => {
                let mut chunks = Vec::new();
                for batch in batches {
                    chunks.extend(unpack_batch(&batch)?);
                }
                chunks
            }
            Some(Found::Segment { key, blocks, size }) => {
                let at_or_before = |place: u64, of: fn(&Block) -> u64| {
                    blocks.partition_point(|block| of(block) <= place).saturating_sub(1)
                };
                let index = match at {
                    LogAt::From(seq) => at_or_before(seq, |block| block.0),
                    LogAt::Before(seq) => at_or_before(seq.saturating_sub(1), |block| block.0),
                    LogAt::Time(ns) => at_or_before(ns, |block| block.1),
                };
                // A segment of before there were blocks is read as a whole.
                let from = blocks.get(index).map_or(0, |block| block.2);
                let to = blocks.get(index + 1).map_or(size, |block| block.2);
                unpack_segment(&self.blobs().get_range(&key, from..to).await?)?
            }
        };
        match at {
            LogAt::From(seq) => chunks.retain(|c| c.seq >= seq),
            LogAt::Before(seq) => chunks.retain(|c| c.seq < seq),
            LogAt::Time(_) => {}
        }
        Ok(chunks)
    }

    async fn log_pieces(&self, execution: &ExecutionId, from_seq: u64) -> Result<Vec<LogPiece>> {
        self.logs_db()
            .read((execution.clone(), from_seq), |tx, (execution, from_seq)| { Box::pin(async move {
                    let segment = tx
                        .get(
                            "SELECT blob_key FROM log_segments WHERE execution_id = $1 AND next_seq > $2 ORDER BY first_seq LIMIT 1",
                            params![&execution, from_seq],
                        )
                        .await?;
                    if let Some(row) = segment {
                        return Ok(vec![LogPiece::Segment(row.get("blob_key")?)]);
                    }
                    let rows = tx
                        .query(
                            "SELECT data, plain_bytes FROM log_chunks WHERE execution_id = $1 AND next_seq > $2 ORDER BY first_seq LIMIT $3",
                            params![&execution, from_seq, HOT_ROWS],
                        )
                        .await?;
                    let (mut pieces, mut plain) = (Vec::new(), 0);
                    for row in rows {
                        pieces.push(LogPiece::Hot(row.get("data")?));
                        plain += row.get::<u64>("plain_bytes")?;
                        if plain >= PIECE_PLAIN {
                            break;
                        }
                    }
                    Ok(pieces)
                }) })
            .await
    }

    /// Executions whose hot batches are to be folded.
    pub async fn sealable(&self, input: SealInput, limit: u64) -> Result<Vec<(OrgId, ExecutionId)>> {
        self.logs_db()
            .read((input, limit), |tx, (input, limit)| { Box::pin(async move {
                    let rows = tx
                        .query(
                            "SELECT org_id, execution_id FROM log_heads WHERE hot_bytes > 0 AND (hot_bytes >= $1 OR updated_at < $2) ORDER BY updated_at LIMIT $3",
                            params![input.full_bytes, input.quiet_since, limit],
                        )
                        .await?;
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("execution_id")?))).collect()
                }) })
            .await
    }

    pub async fn has_archive(&self, org: &OrgId, digest: &model::Digest) -> Result<bool> {
        Ok(self.archive_size(org, digest).await?.is_some())
    }

    /// The bytes of an archive.
    pub async fn archive(&self, org: &OrgId, digest: &model::Digest) -> Result<bytes::Bytes> {
        self.blobs().get(&archive_key(org, digest)).await
    }

    /// How many bytes an archive has, where it is here.
    pub async fn archive_size(&self, org: &OrgId, digest: &model::Digest) -> Result<Option<u64>> {
        self.main()
            .read((org.clone(), digest.clone()), |tx, (org, digest)| {
                Box::pin(async move {
                    let sql = "SELECT size_bytes FROM archives WHERE org_id = $1 AND digest = $2";
                    tx.get(sql, params![&org, digest.as_str()]).await?.map(|row| row.get("size_bytes")).transpose()
                })
            })
            .await
    }
}

impl Store {
    /// Appends a batch (`data`, which unpacks to `chunks`) if it is the next one; a log that was deleted goes on from there. Returns the number that is wanted next: a
    /// batch that is already there changes nothing, one that would leave a hole is refused.
    pub async fn append_log(
        &self,
        org: &OrgId,
        execution: &ExecutionId,
        chunks: &[Chunk],
        data: Vec<u8>,
        now: Timestamp,
    ) -> Result<u64> {
        let Some(first_seq) = chunks.first().map(|c| c.seq) else { return self.log_head(execution).await };
        let next_seq = first_seq + chunks.len() as u64;
        let first_ns = chunks.first().map_or(0, |c| c.time_ns);
        let plain: u64 = chunks.iter().map(plain_bytes).sum();
        self.logs_db()
            .write((org.clone(), execution.clone(), data, now, first_seq, next_seq, first_ns, plain), |tx, (org, execution, data, now, first_seq, next_seq, first_ns, plain)| { Box::pin(async move {
                    let head = tx
                        .get("SELECT next_seq FROM log_heads WHERE execution_id = $1", params![&execution])
                        .await?
                        .map(|row| row.get::<u64>("next_seq"))
                        .transpose()?;
                    let expected = head.unwrap_or(0);
                    if *next_seq <= expected {
                        return Ok(expected);
                    }
                    if *first_seq != expected {
                        return Err(StoreError::LogOutOfOrder { next_seq: expected });
                    }
                    let size = data.len() as i64;
                    tx.exec(
                        "INSERT INTO log_chunks (execution_id, first_seq, next_seq, first_ns, plain_bytes, data) VALUES ($1, $2, $3, $4, $5, $6)",
                        params![&execution, first_seq, next_seq, first_ns, plain, data],
                    )
                    .await?;
                    tx.exec(
                        "INSERT INTO log_heads (execution_id, org_id, next_seq, size_bytes, hot_bytes, updated_at) VALUES ($1, $2, $3, $4, $4, $5) ON CONFLICT (execution_id) DO UPDATE SET next_seq = $3, size_bytes = log_heads.size_bytes + $4, hot_bytes = log_heads.hot_bytes + $4, updated_at = $5, deleted_at = NULL",
                        params![&execution, &org, next_seq, size, now],
                    )
                    .await?;
                    Ok(*next_seq)
                }) })
            .await
    }

    /// Folds the hot batches of an execution into one segment: the blob first, then, in one transaction, the row that names
    /// it in place of the batches. A crash in between leaves a blob that the next try writes again.
    pub async fn seal_log(&self, org: &OrgId, execution: &ExecutionId, target_bytes: u64) -> Result<u64> {
        let _id = execution.clone();
        let rows = self
            .logs_db()
            .read((execution.clone(), target_bytes), |tx, (id, target_bytes)| { Box::pin(async move {
                    // Sizes first: only what one segment takes is read.
                    let sizes = "SELECT first_seq, next_seq, length(data) AS size, plain_bytes FROM log_chunks WHERE execution_id = $1 ORDER BY first_seq LIMIT $2";
                    let (mut end, mut size, mut plain) = (0, 0, 0);
                    for row in tx.query(sizes, params![&id, SEAL_ROWS]).await? {
                        end = row.get::<u64>("next_seq")?;
                        size += row.get::<u64>("size")?;
                        plain += row.get::<u64>("plain_bytes")?;
                        if size >= *target_bytes || plain >= PIECE_PLAIN {
                            break;
                        }
                    }
                    let sql = "SELECT first_seq, next_seq, data FROM log_chunks WHERE execution_id = $1 AND next_seq <= $2 ORDER BY first_seq";
                    let rows = tx.query(sql, params![&id, end]).await?;
                    rows.iter()
                        .map(|r| Ok((r.get::<u64>("first_seq")?, r.get::<u64>("next_seq")?, r.get::<Vec<u8>>("data")?)))
                        .collect::<Result<Vec<_>>>()
                }) })
            .await?;
        let (Some(first_seq), Some(next_seq)) = (rows.first().map(|r| r.0), rows.last().map(|r| r.1)) else {
            return Ok(0);
        };
        let batches = rows.len() as u64;
        let size: u64 = rows.iter().map(|r| r.2.len() as u64).sum();
        let (segment, blocks) = blocks_of(rows.into_iter().map(|r| r.2)).await?;
        let (stored, first_ns) = (segment.len() as u64, blocks.first().map_or(0, |block| block.1));
        let key = format!("logs/{org}/{execution}/{first_seq:012}-{next_seq:012}.zst");
        self.blobs().put(&key, Bytes::from(segment)).await?;
        crash::crash_point!("server.segment_put");
        let blocks = serde_json::to_string(&blocks).map_err(StoreError::db)?;
        let folded = self
            .logs_db()
            .write((execution.clone(), key.clone(), blocks, (first_seq, next_seq), size, batches, stored, first_ns), |tx, (id, key, blocks, (first_seq, next_seq), size, batches, stored, first_ns)| { Box::pin(async move {
                    // The head first: writers change it too, and whoever holds it is not overtaken by them.
                    let held = tx
                        .exec(
                            "UPDATE log_heads SET hot_bytes = hot_bytes - $4, size_bytes = size_bytes - $4 + $6 WHERE execution_id = $1 AND $5 = (SELECT COUNT(*) FROM log_chunks WHERE execution_id = $1 AND first_seq >= $2 AND next_seq <= $3)",
                            params![&id, first_seq, next_seq, size, batches, stored],
                        )
                        .await?;
                    if held == 0 {
                        let sql = "SELECT 1 FROM log_segments WHERE execution_id = $1 AND blob_key = $2";
                        let named = tx.get(sql, params![&id, key]).await?.is_some();
                        return Ok(if named { Folded::ByAnother } else { Folded::Gone });
                    }
                    tx.exec(
                        "DELETE FROM log_chunks WHERE execution_id = $1 AND first_seq >= $2 AND next_seq <= $3",
                        params![&id, first_seq, next_seq],
                    )
                    .await?;
                    tx.exec(
                        "INSERT INTO log_segments (execution_id, first_seq, next_seq, first_ns, blob_key, size_bytes, blocks) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                        params![&id, first_seq, next_seq, first_ns, key, stored, blocks],
                    )
                    .await?;
                    Ok(Folded::ByUs)
                }) })
            .await?;
        match folded {
            Folded::ByUs => Ok(size),
            Folded::ByAnother => Ok(0),
            Folded::Gone => {
                // Nothing names this blob, and nothing will: batches never come back.
                self.blobs().delete(&key).await?;
                Ok(0)
            }
        }
    }

    /// Deletes a log: with a time, that it was deleted then stays known. Blobs go before the rows, so that a crash leaves rows that
    /// lead to them; a segment that was made meanwhile goes after them.
    pub(crate) async fn delete_log(&self, execution: &ExecutionId, known_since: Option<Timestamp>) -> Result<()> {
        let there = self.logs_db().read(execution.clone(), |tx, id| Box::pin(segment_keys(tx, id)));
        for key in there.await? {
            self.blobs().delete(&key).await?;
        }
        let gone = self.logs_db().write((execution.clone(), known_since), |tx, (id, known_since)| { Box::pin(async move {
                let keys = segment_keys(tx, id).await?;
                tx.exec("DELETE FROM log_segments WHERE execution_id = $1", params![&id]).await?;
                tx.exec("DELETE FROM log_chunks WHERE execution_id = $1", params![&id]).await?;
                match known_since {
                    None => tx.exec("DELETE FROM log_heads WHERE execution_id = $1", params![&id]).await?,
                    Some(at) => {
                        let sql = "UPDATE log_heads SET size_bytes = 0, hot_bytes = 0, first_seq = next_seq, deleted_at = $2 WHERE execution_id = $1";
                        tx.exec(sql, params![&id, at]).await?
                    }
                };
                Ok(keys)
            }) });
        for key in gone.await? {
            self.blobs().delete(&key).await?;
        }
        Ok(())
    }

    /// Notes that an archive lies in the blob store.
    pub async fn add_archive(&self, org: &OrgId, digest: &model::Digest, size: u64, now: Timestamp) -> Result<()> {
        self.main()
            .write((org.clone(), digest.clone(), size, now), |tx, (org, digest, size, now)| { Box::pin(async move {
                    tx.exec(
                        "INSERT INTO archives (org_id, digest, size_bytes, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, digest) DO NOTHING",
                        params![&org, digest.as_str(), size, now],
                    )
                    .await?;
                    Ok(())
                }) })
            .await
    }
}

/// What became of batches that were to be a segment.
enum Folded {
    ByUs,
    /// Another replica was faster, with the same segment.
    ByAnother,
    /// They were deleted, or are in other segments.
    Gone,
}

enum Found {
    /// Batches in their order.
    Hot(Vec<Vec<u8>>),
    Segment {
        key: String,
        blocks: Vec<Block>,
        size: u64,
    },
}

async fn segment_keys(tx: &mut Tx<'_>, id: &ExecutionId) -> Result<Vec<String>> {
    let rows = tx.query("SELECT blob_key FROM log_segments WHERE execution_id = $1", params![id]).await?;
    rows.iter().map(|row| row.get("blob_key")).collect()
}

async fn find_block(tx: &mut Tx<'_>, id: &ExecutionId, at: LogAt) -> Result<Option<Found>> {
    let segment = |row: Row| -> Result<Found> {
        let blocks: String = row.get("blocks")?;
        let blocks =
            if blocks.is_empty() { Vec::new() } else { serde_json::from_str(&blocks).map_err(StoreError::db)? };
        Ok(Found::Segment { key: row.get("blob_key")?, blocks, size: row.get("size_bytes")? })
    };
    match at {
        LogAt::From(seq) => {
            let sql = "SELECT first_ns, blob_key, size_bytes, blocks FROM log_segments WHERE execution_id = $1 AND next_seq > $2 ORDER BY first_seq LIMIT 1";
            if let Some(row) = tx.get(sql, params![id, seq]).await? {
                return segment(row).map(Some);
            }
            let sql = "SELECT first_seq, next_seq, plain_bytes FROM log_chunks WHERE execution_id = $1 AND next_seq > $2 ORDER BY first_seq LIMIT $3";
            hot_block(tx, id, sql, seq).await
        }
        LogAt::Before(seq) => {
            let sql = "SELECT first_seq, next_seq, plain_bytes FROM log_chunks WHERE execution_id = $1 AND first_seq < $2 ORDER BY first_seq DESC LIMIT $3";
            if let Some(found) = hot_block(tx, id, sql, seq).await? {
                return Ok(Some(found));
            }
            let sql = "SELECT first_ns, blob_key, size_bytes, blocks FROM log_segments WHERE execution_id = $1 AND first_seq < $2 ORDER BY first_seq DESC LIMIT 1";
            tx.get(sql, params![id, seq]).await?.map(segment).transpose()
        }
        LogAt::Time(ns) => {
            let known = |row: &Row| row.get::<u64>("first_ns").is_ok_and(|first| first > 0);
            let sql = "SELECT first_ns, first_seq FROM log_chunks WHERE execution_id = $1 AND first_ns <= $2 ORDER BY first_seq DESC LIMIT 1";
            if let Some(row) = tx.get(sql, params![id, ns]).await?.filter(known) {
                return Box::pin(find_block(tx, id, LogAt::From(row.get("first_seq")?))).await;
            }
            let sql = "SELECT first_ns, blob_key, size_bytes, blocks FROM log_segments WHERE execution_id = $1 AND first_ns <= $2 ORDER BY first_seq DESC LIMIT 1";
            if let Some(row) = tx.get(sql, params![id, ns]).await?.filter(known) {
                return segment(row).map(Some);
            }
            // Before all of it, or its times are not known: from its beginning.
            Box::pin(find_block(tx, id, LogAt::From(0))).await
        }
    }
}

/// Batches from a place on, or back from it, until they are about a block: a slow log has many small ones.
async fn hot_block(tx: &mut Tx<'_>, id: &ExecutionId, sizes: &'static str, seq: u64) -> Result<Option<Found>> {
    let (mut first, mut next, mut plain) = (u64::MAX, 0u64, 0u64);
    for row in tx.query(sizes, params![id, seq, BLOCK_ROWS]).await? {
        first = first.min(row.get("first_seq")?);
        next = next.max(row.get("next_seq")?);
        plain += row.get::<u64>("plain_bytes")?;
        if plain >= BLOCK_PLAIN as u64 {
            break;
        }
    }
    if next == 0 {
        return Ok(None);
    }
    let sql =
        "SELECT data FROM log_chunks WHERE execution_id = $1 AND first_seq >= $2 AND next_seq <= $3 ORDER BY first_seq";
    let rows = tx.query(sql, params![id, first, next]).await?;
    Ok(Some(Found::Hot(rows.iter().map(|row| row.get("data")).collect::<Result<_>>()?)))
}

/// Lets others go on: compressing takes milliseconds.
async fn breathe() {
    let mut done = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut done, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// One segment of many batches: small ones are put together, so that a page needs few of them and they take little room.
async fn blocks_of(batches: impl Iterator<Item = Vec<u8>>) -> Result<(Vec<u8>, Vec<Block>)> {
    fn add(segment: &mut Vec<u8>, blocks: &mut Vec<Block>, plain: &[u8], packed: &[u8]) -> Result<()> {
        let first = Chunk::decode(plain).map_err(StoreError::db)?.ok_or_else(|| StoreError::corrupt("log batch"))?.0;
        blocks.push(Block(first.seq, first.time_ns, segment.len() as u64));
        segment.extend_from_slice(packed);
        Ok(())
    }
    let pack = |plain: &[u8]| zstd::bulk::compress(plain, BLOCK_LEVEL).map_err(StoreError::db);
    let (mut segment, mut blocks, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for batch in batches {
        let plain = zstd::bulk::decompress(&batch, BATCH_PLAIN).map_err(StoreError::db)?;
        let large = plain.len() >= BLOCK_PLAIN / 2;
        if !open.is_empty() && (large || open.len() + plain.len() > BLOCK_PLAIN) {
            add(&mut segment, &mut blocks, &open, &pack(&open)?)?;
            open.clear();
            breathe().await;
        }
        if large {
            add(&mut segment, &mut blocks, &plain, &batch)?;
        } else {
            open.extend_from_slice(&plain);
        }
    }
    if !open.is_empty() {
        add(&mut segment, &mut blocks, &open, &pack(&open)?)?;
    }
    Ok((segment, blocks))
}

/// What a chunk takes in memory and in a frame, about.
fn plain_bytes(chunk: &Chunk) -> u64 {
    FRAME_BYTES + if let Body::Data(data) = &chunk.body { data.len() as u64 } else { 8 }
}

/// Where an org's archive lies in the blob store.
pub fn archive_key(org: &OrgId, digest: &model::Digest) -> String {
    format!("archives/{org}/{}", digest.hex())
}
