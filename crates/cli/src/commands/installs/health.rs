//! How well what is deployed in an install is.

use std::time::Duration;

use api::client::Client;
use api::control::{ComponentHealth, InstallHealth};

use crate::args::InstallHealth as Args;
use crate::commands::{Kind, explain};
use crate::error::{CliError, Result};
use crate::output::{Output, cell, dim, status, strong};

/// How often a change is looked for.
const LOOK: Duration = Duration::from_secs(2);

pub(super) async fn run(client: &Client, out: &Output, args: &Args) -> Result<u8> {
    if args.history {
        return history(client, out, args).await;
    }
    let mut shown: Option<Vec<u8>> = None;
    loop {
        let health = match client.install_health(&args.name, None).await {
            Ok(health) => health,
            Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
        };
        let told = serde_json::to_vec(&told(&health)).map_err(|e| CliError::failed(e.to_string()))?;
        if shown.as_ref() != Some(&told) {
            match (args.watch, out.json) {
                (true, true) => out.json_line(&health)?,
                (false, true) => out.json(&health)?,
                _ => show(out, &health, shown.is_some())?,
            }
            shown = Some(told);
        }
        if !args.watch {
            return Ok(0);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What makes a change worth showing: times alone do not.
fn told(health: &InstallHealth) -> Vec<(&str, &str, &str)> {
    let each = health.components.iter();
    each.map(|it| (it.component.as_str(), it.verdict.as_str(), it.reason.as_str())).collect()
}

fn show(out: &Output, health: &InstallHealth, again: bool) -> Result<()> {
    if health.components.is_empty() {
        out.note("nothing is deployed, so nothing is observed");
        return Ok(());
    }
    if again {
        out.line("")?;
    }
    let rows = health.components.iter().map(|it| {
        let (since, uptime) = match (&it.observed_at, it.checks.is_empty()) {
            (None, true) => (String::new(), String::new()),
            _ => (out.time(it.since), it.uptime.map(|part| format!("{:.2}%", part * 100.0)).unwrap_or_default()),
        };
        vec![strong(&it.component), status(it.verdict.as_str()), dim(since), dim(uptime), cell(reason(it))]
    });
    out.table(&["COMPONENT", "VERDICT", "SINCE", "UPTIME", "REASON"], rows.collect())?;
    Ok(())
}

fn reason(it: &ComponentHealth) -> String {
    match &it.downstream_of {
        Some(cause) => format!("downstream of {cause}: {}", it.reason),
        None => it.reason.clone(),
    }
}

async fn history(client: &Client, out: &Output, args: &Args) -> Result<u8> {
    let (history, more) = match client.health_history(&args.name, args.component.as_deref(), args.limit).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
    };
    out.list(&history, "no verdict has changed", &["TIME", "COMPONENT", "FROM", "TO", "REASON"], |it| {
        vec![
            dim(out.time(it.at)),
            strong(&it.component),
            status(it.from.as_deref().unwrap_or("-")),
            status(&it.to),
            cell(&it.reason),
        ]
    })?;
    if more && !out.json {
        out.hint(&format!("there are older ones: pass `--limit {}` to see more", args.limit * 10));
    }
    Ok(0)
}
