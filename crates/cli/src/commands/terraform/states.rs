//! Terraform's states: their history, their resources, the way back, and locks.

use api::client::{Client, ClientError};
use api::control::{Job, TerraformLock, TerraformState, TerraformWorkspace};
use serde_json::json;

use crate::args::{Part, States, Yes};
use crate::commands::{Kind, confirm, explain, ids, is_brief, jobs, suggestion, workflows::actions};
use crate::error::{CliError, Exit, Result};
use crate::output::{Cell, Output, bytes, cell, dim, id, status, strong};
use crate::watch::{Log, Watched, job_exit, watch};

/// How many states a shortened id is looked up in.
const STATES_LOOKED_AT: usize = 500;

pub(crate) async fn run(client: &Client, out: &Output, command: States) -> Result<u8> {
    match command {
        States::List { install } => list(out, &workspaces(client, &install).await?)?,
        States::History { of, limit } => {
            let workspace = workspace(client, &of).await?;
            let mut found = client.states(&workspace.id, limit.fetch()).await?;
            let more = limit.cut(&mut found);
            history(out, &workspace, &found)?;
            out.more(more);
        }
        States::Show { of, revision } => {
            let workspace = workspace(client, &of).await?;
            let id = revision.unwrap_or_else(|| workspace.state_id.clone());
            if id.is_empty() {
                return Err(CliError::new(Exit::NotFound, format!("{} has no state yet", workspace.target)));
            }
            show(out, &state(client, &workspace, &id).await?)?;
        }
        States::Restore { of, revision, yes, detach } => {
            let workspace = workspace(client, &of).await?;
            let state = state(client, &workspace, &revision).await?;
            return restore(client, out, &of.install, &workspace, &state, yes, detach).await;
        }
        States::Unlock { of, yes } => {
            let workspace = workspace(client, &of).await?;
            unlock(client, out, &workspace, yes).await?;
        }
    }
    Ok(0)
}

async fn workspaces(client: &Client, install: &str) -> Result<Vec<TerraformWorkspace>> {
    match client.workspaces(install).await {
        Ok(found) => Ok(found),
        Err(error) => Err(explain(client, Kind::Install, install, error).await),
    }
}

/// The workspace that is meant.
async fn workspace(client: &Client, of: &Part) -> Result<TerraformWorkspace> {
    let mut all = workspaces(client, &of.install).await?;
    let wanted = match &of.component {
        Some(component) => Some(format!("components/{component}")),
        None => of.sandbox.then(|| "sandbox".to_owned()),
    };
    let targets: Vec<String> = all.iter().map(|known| known.target.clone()).collect();
    match wanted {
        Some(wanted) => match all.into_iter().find(|known| known.target == wanted) {
            Some(found) => Ok(found),
            None => Err(missing(of, &wanted, &targets)),
        },
        None if all.len() == 1 => Ok(all.remove(0)),
        None if all.is_empty() => Err(missing(of, "", &targets)),
        None => Err(CliError::usage(format!("install `{}` has several states", of.install))
            .hint(format!("name one with `--component NAME` or `--sandbox`; there are: {}", targets.join(", ")))),
    }
}

fn missing(of: &Part, wanted: &str, targets: &[String]) -> CliError {
    let install = &of.install;
    if targets.is_empty() {
        let text = format!("install `{install}` has no Terraform state yet");
        return CliError::new(Exit::NotFound, text)
            .hint(format!("run `ferry installs deploy {install}` to create one"));
    }
    let error = CliError::new(Exit::NotFound, format!("install `{install}` has no Terraform state of {wanted}"));
    match suggestion(wanted, targets) {
        Some(hint) => error.hint(hint),
        None => error.hint(format!("run `ferry states list {install}` to list them")),
    }
}

async fn state(client: &Client, workspace: &TerraformWorkspace, id: &str) -> Result<TerraformState> {
    let known = match is_brief(id) {
        true => client.states(&workspace.id, STATES_LOOKED_AT).await?,
        false => Vec::new(),
    };
    let id = &ids::pick(id, known.iter().map(|state| state.id.as_str()))?;
    client.state(&workspace.id, id).await.map_err(|error: ClientError| {
        let unknown = error.status() == Some(404);
        let error = CliError::from(error);
        if unknown { error.hint("run `ferry states history` to list the ids") } else { error }
    })
}

fn list(out: &Output, found: &[TerraformWorkspace]) -> Result<()> {
    let headers = ["PART", "SERIAL", "RESOURCES", "?SIZE", "?CHANGED", "LOCK", "?NOTE"];
    Ok(out.list(found, "no Terraform states yet; deploying a Terraform module creates one", &headers, |known| {
        let none = known.state_id.is_empty();
        let unless_none = |text: String| if none { dim("-") } else { cell(text) };
        let note = match known.quarantined {
            0 => String::new(),
            kept => format!("{kept} quarantined"),
        };
        vec![
            strong(&known.target),
            unless_none(known.serial.to_string()),
            unless_none(known.resource_count.to_string()),
            unless_none(bytes(known.bytes)),
            if none { dim("-") } else { dim(out.time(known.updated_at)) },
            known.lock.as_ref().map_or_else(|| dim("-"), |lock| cell(holder(lock, |id| out.id(id)))),
            dim(note),
        ]
    })?)
}

/// `ann@laptop (OperationTypeApply)`
fn holder(lock: &TerraformLock, id: impl Fn(&str) -> String) -> String {
    let who = if lock.job_id.is_empty() { lock.who.clone() } else { format!("job {}", id(&lock.job_id)) };
    if lock.operation.is_empty() { who } else { format!("{who} ({})", lock.operation) }
}

/// What is to be known of a state at a glance.
fn mark(state: &TerraformState) -> Cell {
    match (state.current, state.quarantined) {
        (true, _) => status("active"),
        (_, true) => status("quarantined"),
        (false, false) => dim("earlier"),
    }
}

fn history(out: &Output, workspace: &TerraformWorkspace, found: &[TerraformState]) -> Result<()> {
    let headers = ["ID", "SERIAL", "STATUS", "RESOURCES", "?WHEN", "?BY", "?SIZE", "?NOTE", "?JOB"];
    let empty = format!("{} has no state yet", workspace.target);
    Ok(out.list(found, &empty, &headers, |state| {
        vec![
            id(&state.id).strong(),
            cell(state.serial),
            mark(state),
            cell(state.resource_count),
            dim(out.time(state.created_at)),
            cell(&state.author),
            cell(bytes(state.bytes)),
            dim(&state.note),
            id(&state.job_id).dim(),
        ]
    })?)
}

fn show(out: &Output, state: &TerraformState) -> Result<()> {
    if out.json {
        return Ok(out.json(state)?);
    }
    let target = state.terraform_workspace.as_ref().map_or("", |workspace| workspace.target.as_str());
    let pairs = vec![
        ("part", strong(target)),
        ("id", cell(&state.id)),
        ("status", mark(state)),
        ("serial", cell(state.serial)),
        ("lineage", cell(&state.lineage)),
        ("size", cell(bytes(state.bytes))),
        ("sealed digest", cell(&state.digest)),
        ("by", cell(&state.author)),
        ("job", cell(&state.job_id)),
        ("written", cell(out.moment(state.created_at))),
        ("note", cell(&state.note)),
    ];
    out.pairs(pairs)?;
    if state.resources.is_empty() {
        out.note("the state has no resources");
        return Ok(());
    }
    let row = |resource: &api::control::TerraformResource| {
        vec![strong(&resource.address), cell(&resource.r#type), dim(&resource.provider), status(&resource.status)]
    };
    out.table(&["ADDRESS", "?TYPE", "?PROVIDER", "STATUS"], state.resources.iter().map(row).collect())?;
    let more = state.resource_count.saturating_sub(state.resources.len() as u64);
    if more > 0 {
        out.note(&format!("and {more} more that the control plane has no record of"));
    }
    Ok(())
}

async fn restore(
    client: &Client,
    out: &Output,
    install: &str,
    workspace: &TerraformWorkspace,
    state: &TerraformState,
    yes: Yes,
    detach: bool,
) -> Result<u8> {
    let what = format!(
        "this replaces the state of {}, serial {} ({} resources), with {} serial {} ({} resources)",
        workspace.target,
        workspace.serial,
        workspace.resource_count,
        if state.quarantined { "the quarantined" } else { "the earlier" },
        state.serial,
        state.resource_count
    );
    let question = format!("{what}; nothing else changes. Restore it?");
    confirm(out, yes, &format!("restoring the state of {}", workspace.target), &question)?;
    let job = client.restore_state(&workspace.id, &state.id).await?;
    if detach {
        return actions::detached(out, &job);
    }
    if !out.json {
        out.note(&format!("job {}", job.id));
    }
    let log = if out.json { Log::Ignore } else { Log::Show };
    match Box::pin(watch(client, out, job, log)).await? {
        Watched::Left => Ok(130),
        Watched::Ended(job) => {
            restored(out, install, workspace, &job)?;
            Ok(job_exit(&job))
        }
    }
}

fn restored(out: &Output, install: &str, workspace: &TerraformWorkspace, job: &Job) -> Result<()> {
    if out.json {
        return Ok(out.json(job)?);
    }
    jobs::summary(out, job)?;
    if job_exit(job) == 0 {
        let plan = match workspace.component.as_str() {
            "" => format!("ferry installs reprovision {install} --sandbox --skip-components --plan-only"),
            component => format!("ferry installs deploy {install} --component {component} --plan-only"),
        };
        out.hint(&format!("run `{plan}` to see what differs from it"));
    }
    Ok(())
}

async fn unlock(client: &Client, out: &Output, workspace: &TerraformWorkspace, yes: Yes) -> Result<()> {
    let Some(lock) = &workspace.lock else {
        if out.json {
            out.json(&json!({ "unlocked": false, "workspace": workspace }))?;
        } else {
            out.note(&format!("the state of {} is not locked", workspace.target));
        }
        return Ok(());
    };
    let who = holder(lock, str::to_owned);
    let what = format!("{who} has held the lock on the state of {} since {}", workspace.target, lock.created);
    let question = format!("{what}. If it is still in use, its next write is refused. Release the lock?");
    confirm(out, yes, &format!("releasing the lock that {who} holds on {}", workspace.target), &question)?;
    let freed = client.unlock_workspace(&workspace.id).await?;
    if out.json {
        out.json(&json!({ "unlocked": true, "lock": lock, "workspace": freed }))?;
    } else {
        out.success(&format!("released the lock of {who} on the state of {}", workspace.target));
    }
    Ok(())
}
