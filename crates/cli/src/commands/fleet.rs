//! The fleet, what needs a person, and plans that wait: the server puts them together, for the dashboard as for these tables.

use api::client::Client;
use api::control::{ApprovalItem, AttentionItem, FleetRow};

use crate::args::{ApprovalsArgs, FleetArgs};
use crate::commands::workflows::changes_summary;
use crate::error::Result;
use crate::output::{Cell, Output, cell, count, dim, id, status, strong};

pub(super) async fn fleet(client: &Client, out: &Output, args: FleetArgs) -> Result<u8> {
    if args.attention {
        return attention(client, out).await;
    }
    let wanted = [
        ("q", args.q),
        ("labels", args.labels),
        ("app", args.app),
        ("status", args.status),
        ("drift", args.drift),
        ("runner", args.runner),
        ("health", args.health),
        ("version", args.version),
        ("sort", args.sort),
        ("limit", Some(args.limit.to_string())),
    ];
    let fleet = client.fleet(&wanted).await?;
    if out.json {
        return Ok(out.json(&fleet).map(|()| 0)?);
    }
    let headers = ["INSTALL", "?APP", "STATUS", "?RUNNER", "?VERSION", "?DRIFT", "?HEALTH", "COMPONENTS", "?CHANGED"];
    let empty = match fleet.total {
        0 => "no installs yet; run `ferry installs create NAME --app APP` to create one",
        _ => "no install matches",
    };
    out.list(&fleet.rows, empty, &headers, |row| {
        vec![
            strong(&row.name),
            cell(&row.app_name),
            status(row.status.as_str()),
            status(row.runner_status.as_str()),
            cell(version(row)),
            drift(row),
            row.health.map_or_else(|| cell(""), |health| status(health.as_str())),
            cell(components(row)),
            dim(format!("{} {}", out.time(row.changed_at), row.changed_by)),
        ]
    })?;
    let shown = fleet.rows.len() as u64;
    if shown < fleet.matched {
        out.hint(&format!(
            "{} of {} are shown; pass `--limit` to see more",
            shown,
            count(fleet.matched as usize, "install", "installs")
        ));
    }
    Ok(0)
}

/// `11 < 12` where a newer one is there.
fn version(row: &FleetRow) -> String {
    match (row.version, row.latest_version) {
        (Some(version), Some(latest)) if version < latest => format!("{version} < {latest}"),
        (Some(version), _) => version.to_string(),
        (None, _) => String::new(),
    }
}

fn drift(row: &FleetRow) -> Cell {
    if row.drifted > 0 { status("drifted") } else { cell("") }
}

/// Those that are well are counted, the others named.
fn components(row: &FleetRow) -> String {
    let is_there = |status: &str| !matches!(status, "inactive" | "pending");
    let wanted = row.components.iter().filter(|it| !it.disabled || is_there(it.status.as_str()));
    let well = wanted.clone().filter(|component| component.status.as_str() == "active").count() as u64;
    let mut said: Vec<String> = wanted
        .filter(|component| component.status.as_str() != "active")
        .map(|component| format!("{} {}", component.name, component.status.as_str()))
        .collect();
    if well > 0 {
        said.insert(0, format!("{well} active"));
    }
    said.join(", ")
}

async fn attention(client: &Client, out: &Output) -> Result<u8> {
    let found = client.attention().await?;
    if out.json {
        return Ok(out.json(&found).map(|()| 0)?);
    }
    out.list(&found.items, "nothing needs you", &["SINCE", "INSTALL", "WHAT", "?RUN"], |item: &AttentionItem| {
        let run = [&item.workflow_id, &item.job_id, &item.build_id, &item.runner_id];
        let run = run.iter().find(|id| !id.is_empty()).map(|id| id.as_str()).unwrap_or_default();
        vec![dim(out.time(item.since)), strong(&item.install_name), cell(&item.text), id(run)]
    })?;
    let left = found.total.saturating_sub(found.items.len() as u64);
    if left > 0 {
        out.hint(&format!("{left} more are not shown"));
    }
    Ok(0)
}

pub(super) async fn approvals(client: &Client, out: &Output, args: ApprovalsArgs) -> Result<u8> {
    let wanted = [
        ("app", args.app),
        ("install", args.install),
        ("labels", args.labels),
        ("answered", args.answered.then(|| "true".to_owned())),
        ("limit", Some(args.limit.to_string())),
    ];
    let found = client.approvals(&wanted).await?;
    if out.json {
        return Ok(out.json(&found).map(|()| 0)?);
    }
    let empty = if args.answered { "no plan was answered yet" } else { "no plan waits for an approval" };
    let headers = ["WAITS", "INSTALL", "WHAT", "CHANGES", "?RISK", "?EXPIRES", "?ANSWER", "STEP"];
    out.list(&found.items, empty, &headers, |item| {
        vec![
            dim(out.time(item.asked_at)),
            strong(&item.install_name),
            cell(&item.title),
            cell(changes_summary(Some(&item.changes))),
            risk(item),
            dim(item.expires_at.map(|at| out.time(at)).unwrap_or_default()),
            cell(answer(item)),
            id(&item.step_id),
        ]
    })?;
    if !args.answered && !found.items.is_empty() {
        out.hint(
            "see a plan with `ferry steps plan STEP`, then run `ferry steps approve STEP` or `ferry steps deny STEP`",
        );
    }
    let left = found.total.saturating_sub(found.items.len() as u64);
    if left > 0 && !args.answered {
        out.hint(&format!("{left} more wait; pass `--limit` to see them"));
    }
    Ok(0)
}

fn risk(item: &ApprovalItem) -> Cell {
    let denied = item.policies.as_ref().map_or(0, |policies| policies.denied);
    let warned = item.policies.as_ref().map_or(0, |policies| policies.warned);
    let mut said = Vec::new();
    if item.data_loss > 0 {
        said.push(format!("{} with data destroyed", count(item.data_loss as usize, "resource", "resources")));
    }
    if denied > 0 {
        said.push(format!("{denied} denied"));
    }
    if warned > 0 {
        said.push(count(warned as usize, "warning", "warnings"));
    }
    if !item.ask.is_empty() {
        said.push(item.ask.clone());
    }
    cell(said.join(", "))
}

fn answer(item: &ApprovalItem) -> String {
    match (item.answer.as_str(), item.answered_by.as_str()) {
        ("", _) => String::new(),
        (answer, "") => answer.to_owned(),
        (answer, by) => format!("{answer} by {by}"),
    }
}
