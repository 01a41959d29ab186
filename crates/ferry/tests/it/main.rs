//! The whole system, as real processes. Each module proves one side of it; witnesses lie outside the system.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod actions;
mod apps;
mod authorization;
mod bad_networks;
mod builds;
mod clients;
mod clocks;
mod control;
mod crash_matrix;
mod crashes;
mod customer;
mod dashboard;
mod dev;
mod disk_full;
mod docs_blocks;
mod herd;
mod hostile;
mod hosting;
mod install_files;
mod installs;
mod linear;
mod live;
mod load_kills;
mod log_kills;
mod logs;
mod manners;
mod net;
mod pages;
mod registry;
mod registry_clients;
mod scale;
mod security;
mod sign_in;
mod states;
mod telemetry;
mod terraform;
mod vault;
mod versions;
mod workflows;

use std::path::PathBuf;
use std::time::Duration;

use testkit::system::Options;

/// The binary under test: the one that cargo has just built, or another that the environment names.
fn ferry() -> PathBuf {
    std::env::var_os("FERRY_IT_BIN").map_or_else(|| env!("CARGO_BIN_EXE_ferry").into(), PathBuf::from)
}

/// The system under test, with its defaults.
fn options() -> Options {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Options::new(ferry())
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}
