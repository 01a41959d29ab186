//! Owns the commands about workflows, steps, actions and runbooks.
//! `commands.rs` calls them.
//! No decision about steps: the server answers what is possible.
//!
//! Workflows and their steps.

mod action_file;
pub(crate) mod actions;
mod follow;
mod plans;
pub(crate) mod runbooks;

use std::time::Duration;

use api::client::Client;
use api::control::{CreateStepApprovalResponse, Workflow, WorkflowStep};

use crate::args::{Limit, Steps, Workflows};
use crate::commands::{Kind, explain, ids, logs};
use crate::error::{CliError, Exit, Result};
use crate::output::{Cell, Output, cell, dim, id, short, status, strong};

pub(crate) use follow::{DRIFTED, start, watch};
pub(crate) use plans::summary as changes_summary;
pub(crate) use plans::{plan_lines, plan_summary, plan_title};

pub(crate) async fn run(client: &Client, out: &Output, command: Workflows) -> Result<u8> {
    match command {
        Workflows::List { install, limit } => newest(client, out, install.as_deref(), limit).await?,
        Workflows::Get { id } => show(out, &client.workflow(&ids::whole(client, &id).await?).await?)?,
        Workflows::Watch { id, yes } => {
            let id = ids::whole(client, &id).await?;
            if yes.given() {
                client.approve_all(&id).await?;
            }
            return watch(client, out, &id).await;
        }
        Workflows::Cancel { id } => {
            let id = ids::whole(client, &id).await?;
            client.cancel_workflow(&id).await?;
            if !out.json {
                out.success("cancelling the workflow");
            }
            show(out, &client.workflow(&id).await?)?;
        }
        Workflows::ApproveAll { id } => show(out, &client.approve_all(&ids::whole(client, &id).await?).await?)?,
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
    let headers = ["ID", "TYPE", "INSTALL", "STATUS", "?CREATED", "?TOOK", "?VERSION", "?WHY"];
    Ok(out.list(found, "no workflows yet; run `ferry installs deploy NAME` to start one", &headers, |w| {
        vec![
            id(&w.id),
            strong(&w.r#type),
            cell(&w.owner_name),
            status(&w.status.status),
            dim(out.time(w.created_at)),
            cell(took(w.execution_time)),
            cell(version(w.config_version)),
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

/// What a plan would change, and what there is to say about the step.
fn noted(step: &WorkflowStep, changes: String) -> String {
    let said = step.status.status_human_description.as_str();
    match (changes.as_str(), said) {
        ("", _) => said.to_owned(),
        (_, "") | ("no changes", "the plan changes nothing") => changes,
        _ => format!("{changes}; {said}"),
    }
}

fn step_row(step: &WorkflowStep) -> Vec<Cell> {
    let note = noted(step, plan_summary(step));
    vec![
        strong(&step.name),
        status(&step.status.status),
        cell(took(step.execution_time)),
        dim(note),
        id(&step.id).dim(),
    ]
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

async fn respond(client: &Client, step: &WorkflowStep, response: &str, note: &str) -> Result<()> {
    let approval = step
        .approval
        .as_ref()
        .ok_or_else(|| CliError::new(Exit::Conflict, format!("step `{}` has no plan to approve or deny", step.name)))?;
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
            plan(client, out, &find(client, &id).await?).await?;
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
            let step = find(client, &id).await?;
            client.retry_step(&step.workflow_id, &step.id).await?;
            return done(client, out, &step, "is being retried").await;
        }
        Steps::Skip { id } => {
            let step = find(client, &id).await?;
            client.skip_step(&step.workflow_id, &step.id).await?;
            return done(client, out, &step, "is skipped").await;
        }
        Steps::Logs { id, options } => return logs::of_step(client, out, &id, options).await,
    };
    let step = find(client, &id).await?;
    respond(client, &step, response, &note).await?;
    let word = if response == "approve" { "is approved" } else { "is denied" };
    done(client, out, &step, word).await
}

async fn find(client: &Client, id: &str) -> Result<WorkflowStep> {
    Ok(client.step(&ids::whole(client, id).await?).await?)
}

async fn done(client: &Client, out: &Output, step: &WorkflowStep, word: &str) -> Result<u8> {
    if out.json {
        out.json(&client.step(&step.id).await?)?;
    } else {
        out.success(&format!("`{}` {word}", step.name));
    }
    Ok(0)
}
