//! Room on the disk that is set aside before an apply: if the disk fills up meanwhile, it is released, and what was made can still be
//! written down.

use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::confine::limits;
use crate::directory::ExecutionDir;
use crate::seal::vault::private_file;

/// What is set aside whatever the size of the state.
const LEAST_BYTES: u64 = 16 << 20;
const FILE: &str = "reserve";

fn place(dir: &ExecutionDir) -> PathBuf {
    dir.path().join(FILE)
}

/// Sets room aside for a state that is about `state_bytes` large now: as it grows, it is written more than once. The error says how
/// much is missing, and where.
pub fn take(dir: &ExecutionDir, state_dir: &Path, state_bytes: u64) -> Result<(), String> {
    let bytes = LEAST_BYTES + 4 * state_bytes;
    allocate(&place(dir), bytes).map_err(|error| {
        release(dir);
        let free = limits::disk_free_bytes(dir.path()).unwrap_or(0);
        format!(
            "the disk of {} has too little room for Terraform's state: {} MiB are needed, {} MiB are free ({error}). Nothing was changed; free disk space on the runner, then retry the step",
            state_dir.display(),
            bytes.div_ceil(1 << 20),
            free >> 20
        )
    })
}

fn allocate(path: &Path, bytes: u64) -> std::io::Result<()> {
    let mut file = private_file(path)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        // A file system that can't reserve: it is written to.
        Err(Errno::OPNOTSUPP) => {
            std::io::copy(&mut std::io::Read::take(std::io::repeat(0), bytes), &mut file).map(drop)
        }
        done => Ok(done?),
    }
}

/// Gives the room back; there need not be any.
pub fn release(dir: &ExecutionDir) {
    let _ = fs_err::remove_file(place(dir));
}
