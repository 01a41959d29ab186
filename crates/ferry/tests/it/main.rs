//! The whole system, as real processes. Each module proves one side of it; witnesses lie outside the system.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod actions;
mod control;
mod crashes;
mod dev;
mod net;
mod security;

use std::time::Duration;

use testkit::system::Options;

/// The system under test, with its defaults.
fn options() -> Options {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Options::new(env!("CARGO_BIN_EXE_ferry"))
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}
