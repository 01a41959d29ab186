//! A job that sleeps, then finishes.

use std::time::Duration;

use serde_json::Map;

use super::{Done, Run};

pub(super) async fn run(run: &mut Run<'_>, sleep_ms: u64) -> Done {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => Done::finished(Map::new()),
        stop = run.stopped() => Done::stopped(&stop),
    }
}
