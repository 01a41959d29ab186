//! Starts workflows and follows them to their end: in a live view where a person sits, else line by line.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::time::{Duration, Instant};

use api::client::Client;
use api::control::{CreateWorkflow, Workflow, WorkflowStep};
use serde_json::{Value, json};

use super::plans::summary;
use super::{noted, plan, respond, took};
use crate::args::Start;
use crate::commands::{Kind, explain};
use crate::error::{CliError, Exit, Result};
use crate::live::{self, Seen};
use crate::output::Output;
use crate::progress::{Progress, TICK_MS};

/// How often a workflow is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(200);
/// How long a control plane may be away, and how often it is asked meanwhile.
const AWAY_MAX: Duration = Duration::from_secs(300);
const AWAY_LOOK: Duration = Duration::from_secs(1);
/// Ended as people wanted it, not as it was meant to.
const CANCELLED: u8 = 7;
/// A look has found a difference.
pub(crate) const DRIFTED: u8 = 9;
/// It waits for an approval, and nobody is here to give it.
const WAITS: u8 = 8;

/// Starts a workflow and, unless told otherwise, follows it.
pub(crate) async fn start(client: &Client, out: &Output, install: &str, body: Value, start: &Start) -> Result<u8> {
    let mut body = body;
    body["plan_only"] = json!(start.plan_only);
    body["approve_all"] = json!(start.yes.given());
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
            out.hint(&format!("run `ferry workflows watch {}` to follow it", started.workflow_id));
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
            out.note("stopped watching; the workflow waits for an approval");
            out.hint(&format!("run `ferry workflows watch {id}` to continue"));
            Ok(WAITS)
        }
        _ => {
            let hint = format!(
                "run `ferry workflows watch {id}` to follow it again, or `ferry workflows cancel {id}` to cancel it"
            );
            Err(CliError::new(Exit::Failed, "stopped watching; the workflow continues").hint(hint))
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
                    out.warn(&format!("{error}; the workflow continues, retrying"));
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
                        "{}: review the plan with `ferry steps plan {1}`, then run `ferry steps approve {1}`",
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
    let note = [noted(step, summary(step.changes.as_ref())), took(step.execution_time)];
    let note: Vec<&str> = note.iter().map(String::as_str).filter(|note| !note.is_empty()).collect();
    let note = if note.is_empty() { String::new() } else { format!("  ({})", note.join("; ")) };
    Ok(out.line(format!("{:<18} {}{note}", step.status.status, step.name))?)
}

fn end(out: &Output, workflow: &Workflow) -> Result<u8> {
    if out.json {
        out.json_line(workflow)?;
    } else {
        tell_end(out, workflow);
    }
    Ok(match workflow.status.status.as_str() {
        "success" if !workflow.plan_only && drifted(workflow).is_some() => DRIFTED,
        "success" => 0,
        "cancelled" => CANCELLED,
        _ => Exit::Failed.code(),
    })
}

/// The step of a drift run that has found a difference.
fn drifted(workflow: &Workflow) -> Option<&WorkflowStep> {
    let found = workflow.steps.iter().find(|step| step.status.status == "drifted");
    found.filter(|_| workflow.r#type.starts_with("drift_run"))
}

fn tell_end(out: &Output, workflow: &Workflow) {
    let (kind, name) = (workflow.r#type.replace('_', " "), &workflow.owner_name);
    let why = &workflow.status.status_human_description;
    match workflow.status.status.as_str() {
        "success" if workflow.plan_only => {
            out.success(&format!("{kind} of `{name}` is planned; nothing was changed"));
            if let Some(step) = workflow.steps.iter().find(|step| step.status.status == "drifted") {
                out.hint(&format!("run `ferry steps plan {}` to see the plan of `{}`", step.id, step.name));
            }
        }
        "success" => {
            let within = match took(workflow.execution_time) {
                took if took.is_empty() => String::new(),
                took => format!(" in {took}"),
            };
            out.success(&format!("{kind} of `{name}` is done{within}"));
            if let Some(step) = drifted(workflow) {
                out.warn(&format!("drift found; run `ferry steps plan {}` to see it", step.id));
            }
        }
        "warning" => {
            out.warn(&format!("{kind} of `{name}` is not complete: {why}"));
            if let Some(hint) = rest_of(workflow) {
                out.hint(&hint);
            }
        }
        "cancelled" => out.warn(&format!("{kind} of `{name}` was cancelled")),
        _ => {
            out.failure(&format!("{kind} of `{name}` failed: {why}"));
            if let Some(step) = to_retry(&workflow.steps) {
                let skips = match step.name.contains("teardown") || step.name.starts_with("deprovision") {
                    true => "keep it and what it depends on, and continue with the rest",
                    false => "continue without it",
                };
                out.hint(&format!(
                    "run `ferry steps retry {0}` to retry, or `ferry steps skip {0}` to {skips}",
                    step.id
                ));
            }
        }
    }
}

/// The step that a person would retry: one that failed, before a plan that only waited when the workflow ended.
fn to_retry(steps: &[WorkflowStep]) -> Option<&WorkflowStep> {
    let failed = |step: &&WorkflowStep| step.retryable && step.status.status != "not-attempted";
    steps.iter().find(failed).or_else(|| steps.iter().find(|step| step.retryable))
}

/// How to do what an incomplete workflow has left.
fn rest_of(workflow: &Workflow) -> Option<String> {
    let (name, version) = (&workflow.owner_name, workflow.config_version);
    match workflow.r#type.as_str() {
        // The newest version may be another one.
        "deploy_components" | "manual_deploy" | "input_update" if version > 0 => Some(format!(
            "run `ferry installs deploy {name}` to deploy the latest version, or `ferry installs rollback {name} --to {version}` to deploy the rest of version {version} and stay there"
        )),
        "provision"
        | "reprovision"
        | "reprovision_sandbox"
        | "deploy_components"
        | "manual_deploy"
        | "input_update" => Some(format!("run `ferry installs deploy {name}` to deploy the rest")),
        "deprovision" => Some(format!("run `ferry installs deprovision {name}` to tear down the rest")),
        "teardown_component" | "teardown_components" => {
            Some(format!("run `ferry installs components {name}` to see what is left"))
        }
        _ => None,
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
        "q" | "" => {
            return Err(CliError::new(Exit::Failed, "stopped watching; the workflow still waits for an approval"));
        }
        other => {
            out.warn(&format!("`{other}` is not one of the answers"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_step_that_failed() {
        let step = |id: &str, status: &str| {
            serde_json::from_value::<WorkflowStep>(json!({
                "id": id, "workflow_id": "wfl1", "name": id, "idx": 0, "group_idx": 0, "group_retry_idx": 0,
                "execution_type": "approval", "status": { "status": status }, "created_at": "2026-11-18T00:00:00Z",
                "retryable": true,
            }))
            .unwrap()
        };
        let steps = [step("stp1", "not-attempted"), step("stp2", "error")];
        assert_eq!(to_retry(&steps).unwrap().id, "stp2", "the first is a plan that nobody answered before the end");
        assert_eq!(to_retry(&steps[..1]).unwrap().id, "stp1");
    }
}
