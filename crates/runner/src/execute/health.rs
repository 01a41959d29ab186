//! A health check: what `doctor` finds, and how the host is doing.

use fs_err as fs;
use model::runner::RunnerKind;
use serde_json::{Map, Value, json};

use super::{Done, Run};
use crate::confine::limits;
use crate::doctor;

pub(super) async fn run(run: &mut Run<'_>) -> Done {
    let context = run.context;
    let options = doctor::Options {
        runner_url: context.runner_url.clone(),
        state_dir: context.state_dir.clone(),
        ca_file: context.ca_file.clone(),
        disk_floor_bytes: 0,
        builds: context.kind == Some(RunnerKind::Build),
    };
    let report = tokio::select! {
        report = doctor::run(&options) => report,
        stop = run.stopped() => return Done::stopped(&stop),
    };
    for line in report.text().lines() {
        run.say(None, line);
    }
    Done::finished(outputs(run, &report))
}

fn outputs(run: &Run<'_>, report: &doctor::Report) -> Map<String, Value> {
    let state_dir = &run.context.state_dir;
    let words = |path: &str| -> Vec<f64> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().map_while(|w| w.parse().ok()).collect()
    };
    let load = words("/proc/loadavg");
    let mut outputs = Map::new();
    outputs.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    outputs.insert("healthy".into(), report.is_ok().into());
    outputs.insert("checks".into(), json!(report.checks));
    outputs.insert("load_average".into(), json!(load.get(..3)));
    outputs.insert("host_uptime_s".into(), json!(words("/proc/uptime").first().map(|s| s.trunc() as u64)));
    outputs.insert("disk_free_bytes".into(), json!(limits::disk_free_bytes(state_dir).ok()));
    // The session writes there what it knows of itself; `groups` says how long each has worked on what.
    let session: Option<Value> =
        fs::read(state_dir.join("session.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(groups) = session.and_then(|s| s.get("groups").cloned()) {
        outputs.insert("groups".into(), groups);
    }
    outputs
}
