//! Owns the commands about runners.
//! `commands.rs` calls them.
//! No HTTP but through the client.
//!
//! What carries out jobs.

pub(crate) mod manifest;

use std::collections::BTreeMap;
use std::time::Duration;

use api::client::{Client, ClientError};
use api::control::{CreateRunnerJob, Runner, UpdateRunnerSettings};
use model::runner::RunnerSettings;
use model::{JobGroup, JobType};
use serde_json::Value;

use crate::args::Runners;
use crate::commands::jobs::{plain, wait_for};
use crate::commands::{Kind, confirm, explain, workflows::actions};
use crate::error::Result;
use crate::output::{Cell, Output, bytes, cell, dim, id, short, status, strong};

pub(crate) async fn run(client: &Client, out: &Output, command: Runners) -> Result<u8> {
    match command {
        Runners::List { install } => list(client, out, install.as_deref()).await?,
        Runners::Get { name } => {
            let runner = found(client, &name, client.runner(&name).await).await?;
            show(out, &runner)?;
        }
        Runners::JoinCommand { name } => {
            let join = found(client, &name, client.create_join_command(&name).await).await?;
            if out.json {
                out.json(&join)?;
            } else {
                out.line(&join.command)?;
                out.hint("this contains a credential that is shown only once; run `ferry runners revoke` to revoke it");
            }
        }
        Runners::Manifest { name, format, image } => {
            let runner = found(client, &name, client.runner(&name).await).await?;
            let join = found(client, &name, client.create_join_command(&name).await).await?;
            let text = manifest::text(format, &runner, &join, &image);
            if out.json {
                out.json(&serde_json::json!({ "credential_id": join.credential_id, "manifest": text }))?;
            } else {
                out.stdout_bytes(text.as_bytes())?;
                out.hint("this contains a credential that is shown only once; run `ferry runners revoke` to revoke it");
            }
        }
        Runners::Drain { name } => {
            let runner = found(client, &name, client.drain_runner(&name).await).await?;
            changed(out, &runner, "takes no new jobs; run `ferry runners resume` to undo this")?;
        }
        Runners::Resume { name } => {
            let runner = found(client, &name, client.resume_runner(&name).await).await?;
            changed(out, &runner, "takes jobs again")?;
        }
        Runners::Revoke { name, yes } => {
            let question = format!("revoke all credentials of runner `{name}`?");
            confirm(out, yes, &format!("revoking runner `{name}`"), &question)?;
            let runner = found(client, &name, client.revoke_runner(&name).await).await?;
            changed(out, &runner, "is revoked; run `ferry runners join-command` for a new credential")?;
        }
        Runners::Settings { name, group, disk_floor, execution_disk, spool, drain, health_check } => {
            let body = UpdateRunnerSettings {
                groups: (!group.is_empty()).then(|| group.into_iter().collect::<BTreeMap<JobGroup, u32>>()),
                disk_floor_bytes: disk_floor,
                execution_disk_bytes: execution_disk,
                spool_bytes: spool,
                drain_s: drain.map(|d| d.as_secs()),
                health_check_s: health_check.map(|d| d.as_secs()),
            };
            settings(client, out, &name, body).await?;
        }
        Runners::HealthCheck { name, detach } => {
            let body = CreateRunnerJob { job_type: JobType::HealthCheck, sleep_ms: 0, priority: 0 };
            return job(client, out, &name, body, detach).await;
        }
        Runners::Noop { name, sleep, detach } => {
            let sleep_ms = u64::try_from(sleep.as_millis()).unwrap_or(u64::MAX);
            let body = CreateRunnerJob { job_type: JobType::Noop, sleep_ms, priority: 0 };
            return job(client, out, &name, body, detach).await;
        }
    }
    Ok(0)
}

async fn found<T>(client: &Client, name: &str, answer: std::result::Result<T, ClientError>) -> Result<T> {
    match answer {
        Ok(value) => Ok(value),
        Err(error) => Err(explain(client, Kind::Runner, name, error).await),
    }
}

async fn job(client: &Client, out: &Output, name: &str, body: CreateRunnerJob, detach: bool) -> Result<u8> {
    let job = found(client, name, client.create_runner_job(name, &body).await).await?;
    if detach { actions::detached(out, &job) } else { wait_for(client, out, job).await }
}

async fn list(client: &Client, out: &Output, install: Option<&str>) -> Result<()> {
    let runners = match client.runners(install).await {
        Ok(runners) => runners,
        Err(error) => return Err(explain(client, Kind::Install, install.unwrap_or_default(), error).await),
    };
    let headers = ["NAME", "ID", "?KIND", "STATUS", "?BUSY", "?VERSION", "?SEEN"];
    out.list(&runners, "no runners", &headers, |runner| {
        let report = runner.report.as_ref();
        let busy: usize = report.map_or(0, |r| r.busy.values().map(Vec::len).sum());
        vec![
            strong(&runner.name),
            id(&runner.id),
            cell(&runner.kind),
            shown_status(runner),
            cell(busy),
            cell(report.map_or("-", |r| r.version.as_str())),
            dim(out.time_or_dash(runner.last_seen_at)),
        ]
    })?;
    Ok(())
}

async fn settings(client: &Client, out: &Output, name: &str, body: UpdateRunnerSettings) -> Result<()> {
    let change = serde_json::to_value(&body).is_ok_and(|v| v.as_object().is_some_and(|fields| !fields.is_empty()));
    let runner = if change {
        found(client, name, client.update_runner_settings(name, &body).await).await?
    } else {
        found(client, name, client.runner(name).await).await?
    };
    if out.json {
        return Ok(out.json(&runner.settings)?);
    }
    if change {
        out.success(&format!("changed the settings of runner `{}`; it needs no restart", runner.name));
    }
    out.pairs(setting_pairs(&runner.settings))?;
    Ok(())
}

fn changed(out: &Output, runner: &Runner, what: &str) -> Result<()> {
    if out.json {
        out.json(runner)?;
    } else {
        out.success(&format!("runner `{}` {what}", runner.name));
    }
    Ok(())
}

fn shown_status(runner: &Runner) -> Cell {
    if runner.draining && runner.status == "active" { status("draining") } else { status(&runner.status) }
}

fn show(out: &Output, runner: &Runner) -> Result<()> {
    if out.json {
        return Ok(out.json(runner)?);
    }
    let mut pairs = vec![
        ("name", strong(&runner.name)),
        ("id", cell(&runner.id)),
        ("kind", cell(&runner.kind)),
        ("status", shown_status(runner)),
    ];
    if !runner.status_description.is_empty() {
        pairs.push(("why", cell(&runner.status_description)));
    }
    if let Some(install) = &runner.install_id {
        pairs.push(("install", cell(install)));
    }
    pairs.push(("generation", cell(runner.generation)));
    pairs.push(("last seen", cell(out.moment_or_dash(runner.last_seen_at))));
    if let Some(report) = &runner.report {
        let disk = format!("{} free, {} needed", bytes(report.disk_free_bytes), bytes(report.disk_floor_bytes));
        pairs.extend([("version", cell(&report.version)), ("host", cell(&report.hostname)), ("disk", cell(disk))]);
        if let Some(since) = report.disabled_since {
            pairs.push(("disabled", cell(format!("by the customer, {}", out.moment(since)))));
        }
        if report.no_ad_hoc {
            pairs.push(("ad hoc actions", cell("switched off by the customer")));
        }
        if let Some(registry) = &report.registry {
            pairs.push(("registry", cell(registry)));
        }
        for workspace in &report.rescues_open {
            pairs.push(("state not uploaded", cell(workspace)));
        }
    }
    out.pairs(pairs)?;

    out.heading("Groups")?;
    let busy = |group: &JobGroup| runner.report.as_ref().and_then(|r| r.busy.get(group)).map_or(&[][..], Vec::as_slice);
    let rows = runner.settings.groups.iter().map(|(group, slots)| {
        let held = busy(group);
        let jobs: Vec<&str> = held.iter().map(|job| job.as_str()).collect();
        vec![strong(group), cell(format!("{}/{slots}", held.len())), cell(jobs.join("\n"))]
    });
    out.table(&["GROUP", "BUSY", "JOBS"], rows.collect())?;

    out.heading("Settings")?;
    out.pairs(setting_pairs(&runner.settings))?;

    match &runner.health {
        Some(health) => {
            out.heading(&format!("Health, checked {}", out.moment(health.checked_at)))?;
            show_health(out, &health.outputs)?;
        }
        None => out.note("\nno health check yet; run `ferry runners health-check`"),
    }
    Ok(())
}

fn setting_pairs(settings: &RunnerSettings) -> Vec<(&'static str, Cell)> {
    let every = match settings.health_check_s {
        0 => "never".to_owned(),
        s => format!("every {}", short(Duration::from_secs(s))),
    };
    let groups: Vec<String> = settings.groups.iter().map(|(group, slots)| format!("{group}={slots}")).collect();
    vec![
        ("version", cell(settings.version)),
        ("slots", cell(groups.join(" "))),
        ("disk floor", cell(bytes(settings.disk_floor_bytes))),
        ("execution disk", cell(bytes(settings.execution_disk_bytes))),
        ("spool", cell(bytes(settings.spool_bytes))),
        ("drain", cell(short(Duration::from_secs(settings.drain_s)))),
        ("health check", cell(every)),
    ]
}

/// The checks of a health check as a table, and the figures that came with them.
fn show_health(out: &Output, outputs: &serde_json::Map<String, Value>) -> Result<()> {
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let checks = outputs.get("checks").and_then(Value::as_array).into_iter().flatten();
    let rows = checks.map(|check| {
        let hint = check["hint"].as_str().map(|h| format!(" ({h})")).unwrap_or_default();
        vec![
            strong(text(check, "name")),
            status(text(check, "status")),
            cell(format!("{}{hint}", text(check, "detail"))),
        ]
    });
    out.table(&["CHECK", "RESULT", "DETAIL"], rows.collect())?;
    let mut pairs = Vec::new();
    let load: Vec<String> =
        outputs.get("load_average").and_then(Value::as_array).into_iter().flatten().map(plain).collect();
    if !load.is_empty() {
        pairs.push(("load average", cell(load.join(" "))));
    }
    if let Some(uptime) = outputs.get("host_uptime_s").and_then(Value::as_u64) {
        pairs.push(("host is up", cell(short(Duration::from_secs(uptime)))));
    }
    // Each group is served by the same loop: how long ago it last heard of the control plane.
    let ages = outputs.get("groups").and_then(Value::as_object).into_iter().flatten();
    let ages: Vec<String> = ages.filter_map(|(group, g)| Some(format!("{group} {}s", g["age_s"].as_u64()?))).collect();
    if !ages.is_empty() {
        pairs.push(("groups served", cell(format!("{} ago", ages.join(", ")))));
    }
    out.pairs(pairs)?;
    Ok(())
}
