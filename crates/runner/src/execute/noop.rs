//! A job that sleeps, then finishes.

use std::time::Duration;

use serde_json::Map;

use super::Done;

pub(super) async fn run(sleep_ms: u64) -> Done {
    tokio::time::sleep(Duration::from_millis(sleep_ms)).await;
    Done::finished(Map::new())
}
