//! How well objects are, judged on this machine by the rules that runners use.

use std::path::Path;

use kubernetes::health_of;
use model::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::args::Health;
use crate::error::{CliError, Result};
use crate::output::{Output, cell, dim, now, status, strong};

/// The verdict on one object of a file.
#[derive(Serialize)]
struct Row {
    file: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    verdict: &'static str,
    reason: String,
    rule: &'static str,
}

pub(super) fn run(out: &Output, command: Health) -> Result<u8> {
    let Health::Explain { files } = command;
    let now = now();
    let mut rows = Vec::new();
    for file in &files {
        let bad = |why: &dyn std::fmt::Display| CliError::failed(format!("{}: {why}", file.display()));
        let text = super::apps::policies::read(file).map_err(|e| bad(&e))?;
        let objects = kubernetes::read_objects(&text).map_err(|e| bad(&e))?;
        rows.extend(objects.iter().map(|object| row(file, object, now)));
    }
    out.list(
        &rows,
        "no objects found in these files",
        &["FILE", "KIND", "NAME", "VERDICT", "REASON", "RULE"],
        |row| {
            vec![
                dim(&row.file),
                cell(&row.kind),
                strong(&row.name),
                status(row.verdict),
                cell(&row.reason),
                dim(row.rule),
            ]
        },
    )?;
    Ok(0)
}

fn row(file: &Path, object: &Value, now: Timestamp) -> Row {
    let health = health_of(object, now.micros() / 1_000_000);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Row {
        file: file.display().to_string(),
        kind: text(&object["kind"]),
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
        verdict: health.verdict.as_str(),
        reason: health.reason,
        rule: health.rule,
    }
}
