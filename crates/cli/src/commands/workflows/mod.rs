//! Owns the commands about workflows, steps, actions and runbooks.
//! `commands.rs` calls them.
//! No decision about steps: the server answers what is possible.
//!
//! Workflows and their steps.

pub(crate) mod actions;
pub(crate) mod runbooks;

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::time::{Duration, Instant};

use api::client::Client;
use api::control::{CreateStepApprovalResponse, CreateWorkflow, PlanChanges, Workflow, WorkflowStep};
use serde_json::{Value, json};

use crate::args::{Limit, Start, Steps, Workflows};
use crate::commands::{Kind, explain, logs};
use crate::error::{CliError, Exit, Result};
use crate::live::{self, Seen};
use crate::output::{Cell, Output, cell, clean, dim, one_line, short, status, strong};
use crate::progress::{Progress, TICK_MS};

/// How often a workflow is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(200);
/// How long a control plane may be away, and how often it is asked meanwhile.
const AWAY_MAX: Duration = Duration::from_secs(300);
const AWAY_LOOK: Duration = Duration::from_secs(1);
/// Lines of a plan that are shown.
const PLAN_LINES_MAX: usize = 20_000;
/// Ended as people wanted it, not as it was meant to.
const CANCELLED: u8 = 7;
/// A look has found a difference.
pub(crate) const DRIFTED: u8 = 9;
/// It waits for an approval, and nobody is here to give it.
const WAITS: u8 = 8;

pub(crate) async fn run(client: &Client, out: &Output, command: Workflows) -> Result<u8> {
    match command {
        Workflows::List { install, limit } => newest(client, out, install.as_deref(), limit).await?,
        Workflows::Get { id } => show(out, &client.workflow(&id).await?)?,
        Workflows::Watch { id } => return watch(client, out, &id).await,
        Workflows::Cancel { id } => {
            client.cancel_workflow(&id).await?;
            if !out.json {
                out.success("it is being cancelled");
            }
            show(out, &client.workflow(&id).await?)?;
        }
        Workflows::ApproveAll { id } => show(out, &client.approve_all(&id).await?)?,
    }
    Ok(0)
}

/// The newest of an install, or of all.
pub(crate) async fn newest(client: &Client, out: &Output, install: Option<&str>, limit: Limit) -> Result<()> {
    let mut found = match client.workflows(install, limit.fetch()).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, install.unwrap_or_default(), error).await),
    };
    let more = limit.cut(&mut found);
    list(out, &found)?;
    out.more(more);
    Ok(())
}

fn list(out: &Output, found: &[Workflow]) -> Result<()> {
    let headers = ["ID", "TYPE", "INSTALL", "STATUS", "?TOOK", "?VERSION", "?CREATED", "?WHY"];
    Ok(out.list(found, "no workflows yet; `ferry installs deploy NAME` starts one", &headers, |w| {
        vec![
            cell(&w.id),
            strong(&w.r#type),
            cell(&w.owner_name),
            status(&w.status.status),
            cell(took(w.execution_time)),
            cell(version(w.config_version)),
            dim(out.time(w.created_at)),
            dim(&w.status.status_human_description),
        ]
    })?)
}

/// Nothing for a workflow that works with what was deployed before.
fn version(number: u64) -> String {
    if number > 0 { number.to_string() } else { String::new() }
}

fn took(nanoseconds: i64) -> String {
    if nanoseconds > 0 { short(Duration::from_nanos(nanoseconds as u64)) } else { String::new() }
}

/// `2 to create, 1 to destroy` of a step's plan, or nothing.
pub(crate) fn plan_summary(step: &WorkflowStep) -> String {
    summary(step.changes.as_ref())
}

/// The lines of a plan, each with the sign of what it is about; what has another form than we know is shown as it is.
pub(crate) fn plan_lines(contents: &Value) -> Vec<(char, String)> {
    // What policies say comes first: nobody should approve past it.
    let verdict = |said: &Value| {
        let text = |key: &str| said[key].as_str().unwrap_or_default();
        let sign = if text("severity") == "deny" { '!' } else { '~' };
        (sign, one_line(&format!("{sign} policy {}: {}: {}", text("policy"), text("severity"), text("message"))))
    };
    let verdicts = contents["policies"]["verdicts"].as_array().into_iter().flatten().map(verdict);
    let format = u64::from(terraform::FORMAT);
    if contents["format"].as_u64() == Some(format)
        && let Ok(plan) = serde_json::from_value::<terraform::Plan>(contents.clone())
    {
        let drawn = terraform::draw(&plan).into_iter().map(|line| (sign_of(line.tone), clean(&line.text)));
        return verdicts.chain(drawn).collect();
    }
    let Some(resources) = contents["resources"].as_array() else {
        let text = serde_json::to_string_pretty(contents).unwrap_or_default();
        return text.lines().take(PLAN_LINES_MAX).map(|line| (' ', clean(line))).collect();
    };
    let line = |resource: &Value| {
        let action = resource["action"].as_str().unwrap_or_default();
        let sign = match action {
            "create" => '+',
            "destroy" => '-',
            _ => '~',
        };
        (sign, one_line(&format!("{sign} {} ({action})", resource["address"].as_str().unwrap_or_default())))
    };
    let lines: Vec<(char, String)> = verdicts.chain(resources.iter().map(line)).take(PLAN_LINES_MAX).collect();
    if lines.is_empty() { vec![(' ', "nothing changes".to_owned())] } else { lines }
}

fn sign_of(tone: terraform::Tone) -> char {
    match tone {
        terraform::Tone::Create => '+',
        terraform::Tone::Destroy => '-',
        terraform::Tone::Update | terraform::Tone::Replace => '~',
        terraform::Tone::Warn => '!',
        terraform::Tone::Note | terraform::Tone::Plain => ' ',
    }
}

pub(crate) fn plan_title(step: &WorkflowStep) -> String {
    format!("{}: {}", step.name, plan_summary(step))
}

fn summary(changes: Option<&PlanChanges>) -> String {
    let Some(changes) = changes else { return String::new() };
    let parts = [
        (changes.create, "to create"),
        (changes.update, "to change"),
        (changes.replace, "to replace"),
        (changes.destroy, "to destroy"),
        (changes.import, "to import"),
        (changes.moved, "to move"),
        (changes.forget, "to forget"),
        (changes.outputs, "outputs"),
        (changes.other, "other"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if parts.is_empty() && changes.recorded > 0 {
        return "updates only what Ferry has recorded".into();
    }
    if parts.is_empty() { "no changes".into() } else { parts.join(", ") }
}

fn step_row(step: &WorkflowStep) -> Vec<Cell> {
    let mut note = step.status.status_human_description.clone();
    let changes = summary(step.changes.as_ref());
    if !changes.is_empty() {
        note = if note.is_empty() { changes } else { format!("{changes}; {note}") };
    }
    vec![strong(&step.name), status(&step.status.status), cell(took(step.execution_time)), dim(note), dim(&step.id)]
}

fn show(out: &Output, workflow: &Workflow) -> Result<()> {
    if out.json {
        return Ok(out.json(workflow)?);
    }
    out.pairs(vec![
        ("workflow", strong(&workflow.r#type)),
        ("id", cell(&workflow.id)),
        ("install", cell(&workflow.owner_name)),
        ("status", status(&workflow.status.status)),
        ("why", cell(&workflow.status.status_human_description)),
        ("app version", cell(version(workflow.config_version))),
        ("approvals", cell(&workflow.approval_option)),
        ("took", cell(took(workflow.execution_time))),
    ])?;
    let rows = workflow.steps.iter().filter(|step| step.execution_type != "hidden").map(step_row);
    out.table(&["STEP", "STATUS", "?TOOK", "NOTE", "?ID"], rows.collect())?;
    Ok(())
}

/// Starts a workflow and, unless told otherwise, follows it.
pub(crate) async fn start(client: &Client, out: &Output, install: &str, body: Value, start: &Start) -> Result<u8> {
    let mut body = body;
    body["plan_only"] = json!(start.plan_only);
    body["approve_all"] = json!(start.approve_all);
    body["role"] = json!(start.role);
    let body: CreateWorkflow = serde_json::from_value(body).map_err(|e| CliError::failed(e.to_string()))?;
    let started = match client.start_workflow(install, &body).await {
        Ok(started) => started,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    if start.detach {
        if out.json {
            out.json(&started)?;
        } else {
            out.success(&format!("{} is started: {}", body.r#type.replace('_', " "), started.workflow_id));
            out.hint(&format!("`ferry workflows watch {}` follows it", started.workflow_id));
        }
        return Ok(0);
    }
    if !out.json {
        out.note(&format!("workflow {}", started.workflow_id));
    }
    watch(client, out, &started.workflow_id).await
}

/// Follows a workflow, and ends as it does: in a live view where a person sits, else line by line.
pub(crate) async fn watch(client: &Client, out: &Output, id: &str) -> Result<u8> {
    if out.live { watch_live(client, out, id).await } else { watch_lines(client, out, id).await }
}

/// What was seen stays on the terminal as lines.
async fn watch_live(client: &Client, out: &Output, id: &str) -> Result<u8> {
    let (workflow, over) = match live::watch(client, out, id).await? {
        Seen::Over(workflow) => (Some(workflow), true),
        Seen::Left(workflow) => (workflow, false),
    };
    let quiet = ["pending", "not-attempted"];
    let steps = workflow.iter().flat_map(|workflow| &workflow.steps).filter(|step| step.execution_type != "hidden");
    for step in steps.filter(|step| !quiet.contains(&step.status.status.as_str())) {
        line(out, step)?;
    }
    match workflow {
        Some(workflow) if over => end(out, &workflow),
        Some(workflow) if workflow.status.status == "approval-awaiting" => {
            out.note("left; the workflow waits for an approval");
            out.hint(&format!("`ferry workflows watch {id}` goes on"));
            Ok(WAITS)
        }
        _ => {
            let hint = format!("`ferry workflows watch {id}` follows it again, `ferry workflows cancel {id}` ends it");
            Err(CliError::new(Exit::Failed, "left; the workflow goes on").hint(hint))
        }
    }
}

/// A line for every step that moves.
async fn watch_lines(client: &Client, out: &Output, id: &str) -> Result<u8> {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    let mut away_since: Option<Instant> = None;
    let mut progress = Progress::new(out);
    let keyboard = std::io::stdin().is_terminal() && out.stderr_terminal && !out.json;
    loop {
        let workflow = match client.workflow(id).await {
            Ok(workflow) => workflow,
            Err(error) if error.is_transient() => {
                if away_since.is_none() {
                    progress.clear();
                    out.warn(&format!("{error}; the workflow goes on, still trying"));
                }
                if away_since.get_or_insert_with(Instant::now).elapsed() > AWAY_MAX {
                    return Err(error.into());
                }
                tokio::time::sleep(AWAY_LOOK).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if away_since.take().is_some() {
            out.note("the control plane is back");
        }
        for step in workflow.steps.iter().filter(|step| step.execution_type != "hidden") {
            let now = &step.status.status;
            if now == "pending" || now == "not-attempted" || told.get(&step.id) == Some(now) {
                continue;
            }
            told.insert(step.id.clone(), now.clone());
            progress.clear();
            if out.json {
                out.json_line(step)?;
            } else {
                line(out, step)?;
            }
        }
        let state = workflow.status.status.as_str();
        if workflow.finished && state != "in-progress" {
            progress.clear();
            return end(out, &workflow);
        }
        if let Some(step) = workflow.steps.iter().find(|step| step.status.status == "approval-awaiting") {
            if keyboard {
                progress.clear();
                ask(client, out, &workflow, step).await?;
                continue;
            }
            if state == "approval-awaiting" && !out.json {
                progress.clear();
                for step in workflow.steps.iter().filter(|step| step.status.status == "approval-awaiting") {
                    out.hint(&format!(
                        "{}: `ferry steps plan {1}` shows the plan, `ferry steps approve {1}` lets it pass",
                        step.name, step.id
                    ));
                }
            }
            if state == "approval-awaiting" {
                return Ok(WAITS);
            }
        }
        let open = workflow.steps.iter().filter(|step| step.status.status == "in-progress");
        let names: Vec<String> = open
            .map(|step| match step.status.status_human_description.as_str() {
                "" => step.name.clone(),
                why => format!("{} ({why})", step.name),
            })
            .collect();
        if out.stderr_terminal && !names.is_empty() {
            progress.set(&names.join(", "));
        }
        let ticks = LOOK.as_millis() as u64 / TICK_MS;
        for _ in 0..ticks.max(1) {
            tokio::time::sleep(Duration::from_millis(TICK_MS)).await;
            progress.tick();
        }
    }
}

fn line(out: &Output, step: &WorkflowStep) -> Result<()> {
    let note =
        [summary(step.changes.as_ref()), step.status.status_human_description.clone(), took(step.execution_time)];
    let note: Vec<&str> = note.iter().map(String::as_str).filter(|note| !note.is_empty()).collect();
    let note = if note.is_empty() { String::new() } else { format!("  ({})", note.join("; ")) };
    Ok(out.line(format!("{:<18} {}{note}", step.status.status, step.name))?)
}

fn end(out: &Output, workflow: &Workflow) -> Result<u8> {
    let (kind, why) = (&workflow.r#type.replace('_', " "), &workflow.status.status_human_description);
    if out.json {
        out.json_line(workflow)?;
    }
    match workflow.status.status.as_str() {
        "success" if workflow.plan_only => {
            if !out.json {
                out.success(&format!("{kind} of `{}` is planned; nothing was changed", workflow.owner_name));
                if let Some(step) = workflow.steps.iter().find(|step| step.status.status == "drifted") {
                    out.hint(&format!("`ferry steps plan {}` shows the plan of `{}`", step.id, step.name));
                }
            }
            Ok(0)
        }
        "success" => {
            if !out.json {
                let within = match took(workflow.execution_time) {
                    took if took.is_empty() => String::new(),
                    took => format!(" in {took}"),
                };
                out.success(&format!("{kind} of `{}` is done{within}", workflow.owner_name));
            }
            let drifted = workflow.steps.iter().find(|step| step.status.status == "drifted");
            if let Some(step) = drifted.filter(|_| workflow.r#type.starts_with("drift_run")) {
                if !out.json {
                    out.warn(&format!("it has drifted; `ferry steps plan {}` shows how", step.id));
                }
                return Ok(DRIFTED);
            }
            Ok(0)
        }
        "warning" => {
            if !out.json {
                out.warn(&format!("{kind} of `{}` is not complete: {why}", workflow.owner_name));
                let name = &workflow.owner_name;
                match workflow.r#type.as_str() {
                    // The newest version may be another one.
                    "deploy_components" | "manual_deploy" | "input_update" if workflow.config_version > 0 => {
                        let version = workflow.config_version;
                        out.hint(&format!(
                            "`ferry installs deploy {name}` deploys the latest version; `ferry installs rollback {name} --to {version}` deploys what is missing of version {version} and stays there"
                        ));
                    }
                    "provision"
                    | "reprovision"
                    | "reprovision_sandbox"
                    | "deploy_components"
                    | "manual_deploy"
                    | "input_update" => out.hint(&format!("`ferry installs deploy {name}` deploys what is missing")),
                    "deprovision" => out.hint(&format!("`ferry installs deprovision {name}` tears down what is left")),
                    "teardown_component" | "teardown_components" => {
                        out.hint(&format!("`ferry installs components {name}` shows what is left"));
                    }
                    _ => {}
                }
            }
            Ok(Exit::Failed.code())
        }
        "cancelled" => {
            if !out.json {
                out.warn(&format!("{kind} of `{}` was cancelled", workflow.owner_name));
            }
            Ok(CANCELLED)
        }
        _ => {
            if !out.json {
                out.failure(&format!("{kind} of `{}` failed: {why}", workflow.owner_name));
                let failed = workflow.steps.iter().find(|step| step.retryable);
                if let Some(step) = failed {
                    let skips = match step.name.contains("teardown") || step.name.starts_with("deprovision") {
                        true => "keeps it and what it stands on, and goes on with the rest",
                        false => "goes on without it",
                    };
                    out.hint(&format!("`ferry steps retry {0}` tries again, `ferry steps skip {0}` {skips}", step.id));
                }
            }
            Ok(Exit::Failed.code())
        }
    }
}

/// Asks a person on the terminal what shall become of a plan.
async fn ask(client: &Client, out: &Output, workflow: &Workflow, step: &WorkflowStep) -> Result<()> {
    plan(client, out, step).await?;
    out.stderr_bytes(b"approve? [y]es, yes to [a]ll, [n]o, [s]kip, [r]e-plan, [q]uit: ");
    let answer = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        std::io::stdin().lock().read_line(&mut text).map(|_| text)
    });
    let answer = answer.await.map_err(|e| CliError::failed(e.to_string()))??;
    let response = match answer.trim() {
        "y" | "yes" => "approve",
        "n" | "no" => "deny",
        "s" | "skip" => "deny-skip-current",
        "r" => "retry",
        "a" | "all" => {
            client.approve_all(&workflow.id).await?;
            return Ok(());
        }
        "q" | "" => return Err(CliError::new(Exit::Failed, "left; the workflow still waits for an approval")),
        other => {
            out.warn(&format!("`{other}` is not an answer"));
            return Ok(());
        }
    };
    // It may have been answered meanwhile; then the next look tells.
    match respond(client, step, response, "").await {
        Err(error) if error.exit == Exit::Conflict => out.warn(&error.message),
        other => other?,
    }
    Ok(())
}

async fn respond(client: &Client, step: &WorkflowStep, response: &str, note: &str) -> Result<()> {
    let approval = step
        .approval
        .as_ref()
        .ok_or_else(|| CliError::new(Exit::Conflict, format!("step `{}` has no plan to answer to", step.name)))?;
    let body = CreateStepApprovalResponse { response_type: response.into(), note: note.into() };
    client.answer_step(&step.workflow_id, &step.id, &approval.id, &body).await?;
    Ok(())
}

async fn plan(client: &Client, out: &Output, step: &WorkflowStep) -> Result<()> {
    let approval = step
        .approval
        .as_ref()
        .ok_or_else(|| CliError::new(Exit::NotFound, format!("step `{}` has no plan", step.name)))?;
    let contents = client.step_plan(&step.workflow_id, &step.id, &approval.id).await?;
    if out.json {
        return Ok(out.json(&contents)?);
    }
    out.heading(&plan_title(step))?;
    for (sign, line) in plan_lines(&contents) {
        out.signed(sign, &line)?;
    }
    Ok(())
}

pub(crate) async fn steps(client: &Client, out: &Output, command: Steps) -> Result<u8> {
    let (id, response, note) = match command {
        Steps::Plan { id } => {
            plan(client, out, &client.step(&id).await?).await?;
            return Ok(0);
        }
        Steps::Approve { id, note } => (id, "approve", note),
        Steps::Deny { id, note, skip, dependents } => {
            let response = match (skip, dependents) {
                (false, _) => "deny",
                (true, false) => "deny-skip-current",
                (true, true) => "deny-skip-current-and-dependents",
            };
            (id, response, note)
        }
        Steps::Retry { id } => {
            let step = client.step(&id).await?;
            client.retry_step(&step.workflow_id, &id).await?;
            return done(client, out, &step, "is tried again").await;
        }
        Steps::Skip { id } => {
            let step = client.step(&id).await?;
            client.skip_step(&step.workflow_id, &id).await?;
            return done(client, out, &step, "is skipped").await;
        }
        Steps::Logs { id, options } => return logs::of_step(client, out, &id, options).await,
    };
    let step = client.step(&id).await?;
    respond(client, &step, response, &note).await?;
    let word = if response == "approve" { "is approved" } else { "is denied" };
    done(client, out, &step, word).await
}

async fn done(client: &Client, out: &Output, step: &WorkflowStep, word: &str) -> Result<u8> {
    if out.json {
        out.json(&client.step(&step.id).await?)?;
    } else {
        out.success(&format!("`{}` {word}", step.name));
    }
    Ok(0)
}
