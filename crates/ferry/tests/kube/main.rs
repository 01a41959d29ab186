//! What needs a Kubernetes cluster: `make test-kube` runs these, `make test` does not.
//!
//! The tests share one cluster. Modules whose names begin with `last_` may break it: they run after all others, one test at a time.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod cluster;
mod last_kills;
