//! What needs a Kubernetes cluster: `make test-kube` runs these, `make test` does not.
//!
//! The tests share one cluster. Modules whose names begin with `last_` may break it: they run after all others, one test at a time.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod charts;
mod cluster;
mod conformance;
mod health;
mod helm;
mod images;
mod jobs;
mod journey;
mod kills;
mod last_deploys;
mod last_kills;
mod manifests;
mod secrets;
mod stage;
mod surroundings;

use std::path::PathBuf;

/// The binary under test: the one that cargo has just built, or another that the environment names.
fn ferry() -> PathBuf {
    std::env::var_os("FERRY_IT_BIN").map_or_else(|| env!("CARGO_BIN_EXE_ferry").into(), PathBuf::from)
}
