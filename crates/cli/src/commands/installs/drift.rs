//! Looks whether an install differs from what was deployed: all its parts at once, and the way back.

use std::time::Duration;

use api::ErrorCode;
use api::client::Client;
use api::control::{CreateWorkflow, PlanChanges, Workflow};
use serde::Serialize;
use serde_json::json;

use crate::args::{Drift, Start};
use crate::commands::{Kind, explain, workflows};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, id, status, strong};
use crate::progress::{Progress, TICK_MS};

/// How often the looks are asked about.
const ASK: Duration = Duration::from_millis(400);

/// A look at one part.
#[derive(Debug, Serialize)]
struct Look {
    /// `sandbox`, or the name of a component.
    part: String,
    /// None: the sandbox.
    #[serde(skip)]
    component: Option<String>,
    /// The last deploy of it did not succeed, so that differences may come from that.
    last_deploy_failed: bool,
    workflow_id: String,
    /// `in-progress`, `drifted`, `no-drift` or `failed`.
    status: &'static str,
    /// What would change, or why it failed.
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<PlanChanges>,
    /// The step that has the plan.
    #[serde(skip_serializing_if = "String::is_empty")]
    step_id: String,
}

pub(crate) async fn run(client: &Client, out: &Output, args: &Drift) -> Result<u8> {
    let parts = parts(client, args).await?;
    if parts.is_empty() && !out.json {
        out.note("nothing is deployed, so nothing can drift");
    }
    let mut looks = Vec::with_capacity(parts.len());
    for part in parts {
        looks.push(begin(client, args, part).await?);
    }
    if !args.detach {
        wait(client, out, &mut looks).await?;
    }
    show(out, args, &looks)?;
    let failed = looks.iter().any(|look| look.status == "failed");
    let drifted: Vec<&Look> = looks.iter().filter(|look| look.status == "drifted").collect();
    let code = match (failed, drifted.is_empty()) {
        (true, _) => Exit::Failed.code(),
        (false, false) => workflows::DRIFTED,
        (false, true) => 0,
    };
    if drifted.is_empty() || !args.reconcile {
        return Ok(code);
    }
    let reconciled = reconcile(client, out, args, &drifted).await?;
    Ok(if failed && reconciled == 0 { code } else { reconciled })
}

/// What is looked at.
struct Part {
    /// None: the sandbox.
    component: Option<String>,
    /// Its last deploy failed, or nobody knows how it ended.
    failed: bool,
}

/// What is named, or all that is deployed.
async fn parts(client: &Client, args: &Drift) -> Result<Vec<Part>> {
    let install = match client.install(&args.name).await {
        Ok(install) => install,
        Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
    };
    let there = |status: &str| matches!(status, "active" | "error" | "unknown");
    let named = args.component.is_some() || args.sandbox;
    let mut parts = Vec::new();
    if args.sandbox || !named && there(&install.sandbox_status) {
        parts.push(Part { component: None, failed: install.sandbox_status != "active" });
    }
    for known in client.install_components(&args.name).await? {
        let Some(component) = known.component else { continue };
        // An image is copied as it is: there is no plan of it.
        let image = matches!(component.component_type.as_str(), "external_image" | "container_image" | "docker_build");
        let wanted = match &args.component {
            Some(name) => *name == component.name,
            None => !named && !image && known.enabled && there(&known.status),
        };
        if wanted {
            parts.push(Part {
                component: Some(component.name),
                failed: matches!(known.status.as_str(), "error" | "unknown"),
            });
        }
    }
    if let Some(name) = args.component.as_ref().filter(|_| parts.is_empty()) {
        // The server says what is wrong with it.
        parts.push(Part { component: Some(name.clone()), failed: false });
    }
    Ok(parts)
}

async fn begin(client: &Client, args: &Drift, part: Part) -> Result<Look> {
    let Part { component, failed: last_deploy_failed } = part;
    let body = match &component {
        Some(component) => json!({ "type": "drift_run", "component": component }),
        None => json!({ "type": "drift_run_reprovision_sandbox" }),
    };
    let body: CreateWorkflow = serde_json::from_value(body).map_err(|e| CliError::failed(e.to_string()))?;
    let (workflow_id, status, summary) = match client.start_workflow(&args.name, &body).await {
        Ok(started) => (started.workflow_id, "in-progress", String::new()),
        // One part that can't be looked at (the app has it no longer) keeps nobody from seeing the others.
        Err(error) if component.is_some() && args.component.is_none() && error.code() == Some(ErrorCode::Conflict) => {
            (String::new(), "failed", error.to_string())
        }
        Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
    };
    let part = component.clone().unwrap_or_else(|| "sandbox".to_owned());
    let (changes, step_id) = (None, String::new());
    Ok(Look { part, component, last_deploy_failed, workflow_id, status, summary, changes, step_id })
}

/// Waits until all looks are over.
async fn wait(client: &Client, out: &Output, looks: &mut [Look]) -> Result<()> {
    let mut progress = Progress::new(out);
    loop {
        for look in looks.iter_mut().filter(|look| look.status == "in-progress") {
            let workflow = client.workflow(&look.workflow_id).await?;
            if workflow.finished && workflow.status.status != "in-progress" {
                look.end(&workflow);
            }
        }
        let open: Vec<&str> =
            looks.iter().filter(|look| look.status == "in-progress").map(|look| look.part.as_str()).collect();
        if open.is_empty() {
            progress.clear();
            return Ok(());
        }
        if out.stderr_terminal {
            progress.set(&format!("comparing {}", open.join(", ")));
        }
        for _ in 0..ASK.as_millis() as u64 / TICK_MS {
            tokio::time::sleep(Duration::from_millis(TICK_MS)).await;
            progress.tick();
        }
    }
}

impl Look {
    fn end(&mut self, workflow: &Workflow) {
        let found = |status: &str| workflow.steps.iter().find(|step| step.status.status == status);
        if workflow.status.status != "success" {
            self.status = "failed";
            self.summary.clone_from(&workflow.status.status_human_description);
        } else if let Some(step) = found("drifted") {
            self.status = "drifted";
            self.summary = workflows::plan_summary(step);
            self.changes.clone_from(&step.changes);
            self.step_id.clone_from(&step.id);
        } else {
            self.status = "no-drift";
        }
    }
}

fn show(out: &Output, args: &Drift, looks: &[Look]) -> Result<()> {
    if out.json && args.reconcile {
        // What follows is a stream of documents.
        return Ok(out.json_line(&looks)?);
    }
    if out.json {
        return Ok(out.json(&looks)?);
    }
    let row =
        |look: &Look| vec![strong(&look.part), status(look.status), cell(&look.summary), id(&look.workflow_id).dim()];
    if !looks.is_empty() {
        out.table(&["PART", "STATUS", "WHAT WOULD CHANGE", "WORKFLOW"], looks.iter().map(row).collect())?;
    }
    if let Some(look) = looks.iter().find(|look| look.status == "drifted") {
        out.hint(&format!("run `ferry steps plan {}` to see how {} differs", look.step_id, look.part));
    }
    let drifted = || looks.iter().filter(|look| look.status == "drifted");
    for look in drifted().filter(|look| look.last_deploy_failed) {
        out.hint(&format!(
            "the last deploy of {} failed, which may explain the drift. See `ferry installs history {name}`, then run `ferry steps retry STEP` or `ferry installs rollback {name}`",
            look.part,
            name = args.name
        ));
    }
    if !args.reconcile && drifted().any(|look| !look.last_deploy_failed) {
        let only = match (&args.component, args.sandbox) {
            (Some(component), _) => format!(" --component {component}"),
            (None, true) => " --sandbox".to_owned(),
            (None, false) => String::new(),
        };
        out.hint(&format!(
            "run `ferry installs drift {}{only} --reconcile` to deploy the same version again",
            args.name
        ));
    }
    if args.detach && !looks.is_empty() {
        out.hint("run `ferry workflows watch ID` to follow one of them");
    }
    Ok(())
}

/// Deploys what has drifted, and ends as the deploy does. What stands on the sandbox comes after it.
async fn reconcile(client: &Client, out: &Output, args: &Drift, drifted: &[&Look]) -> Result<u8> {
    let start = Start { plan_only: false, yes: args.yes, role: None, detach: false };
    if drifted.iter().any(|look| look.component.is_none()) {
        let body = json!({ "type": "reprovision_sandbox", "skip_components": true, "deployed": true });
        let code = workflows::start(client, out, &args.name, body, &start).await?;
        if code != 0 {
            return Ok(code);
        }
    }
    let components: Vec<&String> = drifted.iter().filter_map(|look| look.component.as_ref()).collect();
    if components.is_empty() {
        return Ok(0);
    }
    let body = json!({ "type": "deploy_components", "components": components, "deployed": true });
    workflows::start(client, out, &args.name, body, &start).await
}
