//! Owns what a step prints on its way out: masking, and the spool of numbered chunks.
//! Executors write; the session delivers.
//! Nothing unmasked on disk.

pub mod secrets;
pub mod spool;
