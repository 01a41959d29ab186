//! The numbers that both sides agree on. The server's configuration can override those that it hands out.

/// Protocol that this build speaks on the Runner API; a server speaks the one before, too.
pub const PROTOCOL: u32 = 1;
/// How long the server holds a poll that has nothing to say.
pub const HOLD_S: u64 = 25;
/// How long a lease lasts without renewal.
pub const LEASE_S: u64 = 30;
/// How often a runner renews while it executes.
pub const RENEW_S: u64 = 10;
/// How long an executor works on without any word from the control plane.
pub const OFFLINE_S: u64 = 900;
/// A closed connection counts as `offline` after this long.
pub const CLOSED_OFFLINE_S: u64 = 10;
/// A silent runner counts as `offline` after this long; a server calls nobody offline in its first such period.
pub const SILENT_OFFLINE_S: u64 = 40;
/// Clock skew between runner and server that is tolerated.
pub const SKEW_S: u64 = 17 * 60;
/// Reconnects: with an execution in hand, and spread over when idle.
pub const RECONNECT_BUSY_MS: u64 = 2_000;
pub const RECONNECT_IDLE_MS: u64 = 30_000;
/// Longest time that output waits in the executor before it is in the spool.
pub const LOG_FLUSH_MS: u64 = 100;
/// Largest payload of one log chunk.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Largest batch of chunks in one upload, before compression.
pub const BATCH_BYTES: usize = 1024 * 1024;
/// How long a job may wait in the queue.
pub const QUEUE_TIMEOUT_S: u64 = 24 * 3600;
/// How far the jobs before a waiting one are counted.
pub const QUEUE_COUNTED: u64 = 100;
/// An order is good for this long after it was signed.
pub const ORDER_LIFE_S: u64 = 7 * 24 * 3600;
/// Longest timeout of an action.
pub const ACTION_TIMEOUT_MAX_S: u64 = 3600;
/// Cap on the outputs file of one step.
pub const OUTPUTS_BYTES: u64 = 1024 * 1024;
/// A spec larger than this is fetched instead of being sent with the job.
pub const SPEC_INLINE_BYTES: usize = 64 * 1024;
/// Largest spec at all.
pub const SPEC_BYTES: usize = 16 * 1024 * 1024;
/// Largest source archive that an ad-hoc action may bring along.
pub const ARCHIVE_BYTES: u64 = 64 * 1024 * 1024;
