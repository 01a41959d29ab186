//! Terraform's workspaces: every state that was written, who holds them, and the way back to an earlier state.
//!
//! States are sealed with a key that only the customer's side has. What is shown is what the runner tells beside them: numbers, and
//! the addresses, types and providers of resources.

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use model::{RevisionId, WorkspaceId};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use store::{Install, Revision, StoreError, Workspace, WorkspaceLock};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
use crate::control_api::jobs;
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(states))
        .routes(routes!(state_of))
        .routes(routes!(state_json))
        .routes(routes!(restore))
        .routes(routes!(unlock))
}

async fn found(state: &AppState, at: &InOrg, id: &str) -> ApiResult<Workspace> {
    let id = WorkspaceId::parse(id).map_err(|_| StoreError::NotFound("workspace"))?;
    Ok(state.store().workspace(&at.org, &id).await?)
}

async fn found_state(state: &AppState, at: &InOrg, workspace: &Workspace, id: &str) -> ApiResult<Revision> {
    let id = RevisionId::parse(id).map_err(|_| StoreError::NotFound("state"))?;
    let revision = state.store().revision(&at.org, &workspace.id, &id).await;
    Ok(revision.map_err(|error| match error {
        StoreError::NotFound(_) => StoreError::NotFound("state"),
        other => other,
    })?)
}

async fn lock_shown(state: &AppState, install: &Install, lock: &WorkspaceLock) -> wire::TerraformLock {
    let mut job_id = String::new();
    if let Some(id) = &lock.execution_id {
        // It may be gone with its job.
        let execution = state.store().execution(&install.runner_id, id).await;
        job_id = execution.map(|execution| execution.job_id.to_string()).unwrap_or_default();
    }
    wire::TerraformLock {
        id: lock.info.id.clone(),
        who: lock.info.who.clone(),
        operation: lock.info.operation.clone(),
        created: lock.locked_at,
        info: lock.info.info.clone(),
        version: lock.info.version.clone(),
        execution_id: lock.execution_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        job_id,
    }
}

async fn shown(state: &AppState, install: &Install, workspace: &Workspace) -> ApiResult<wire::TerraformWorkspace> {
    let store = state.store();
    let current = store.current_revision(&workspace.org_id, workspace).await?;
    let lock = match &workspace.lock() {
        Some(lock) => Some(lock_shown(state, install, lock).await),
        None => None,
    };
    let component = workspace.target.strip_prefix("components/").unwrap_or_default().to_owned();
    Ok(wire::TerraformWorkspace {
        id: workspace.id.to_string(),
        org_id: workspace.org_id.to_string(),
        install_id: workspace.install_id.to_string(),
        target: workspace.target.clone(),
        owner_id: workspace.install_id.to_string(),
        owner_type: "installs".to_owned(),
        created_at: workspace.created_at,
        updated_at: current.as_ref().map_or(workspace.created_at, |current| current.created_at),
        sandbox: component.is_empty(),
        component,
        state_id: current.as_ref().map(|current| current.id.to_string()).unwrap_or_default(),
        serial: current.as_ref().map(|current| current.serial).unwrap_or_default(),
        lineage: current.as_ref().map(|current| current.lineage.clone()).unwrap_or_default(),
        resource_count: current.as_ref().map(|current| current.resource_count).unwrap_or_default(),
        bytes: current.as_ref().map(|current| current.file.bytes).unwrap_or_default(),
        lock,
        quarantined: store.quarantined_revisions(&workspace.org_id, &workspace.id).await?,
    })
}

async fn one_shown(state: &AppState, at: &InOrg, workspace: &Workspace) -> ApiResult<wire::TerraformWorkspace> {
    let install = state.store().install(&at.org, workspace.install_id.as_str()).await?;
    shown(state, &install, workspace).await
}

fn state_shown(workspace: &Workspace, revision: &Revision) -> wire::TerraformState {
    let job = revision.job_id.as_ref().map(ToString::to_string).unwrap_or_default();
    wire::TerraformState {
        id: revision.id.to_string(),
        org_id: workspace.org_id.to_string(),
        terraform_workspace_id: workspace.id.to_string(),
        serial: revision.serial,
        revision: revision.serial,
        lineage: revision.lineage.clone(),
        bytes: revision.file.bytes,
        digest: revision.file.digest.to_string(),
        resource_count: revision.resource_count,
        author: revision.author.clone(),
        created_by_id: revision.author.clone(),
        created_at: revision.created_at,
        updated_at: revision.created_at,
        current: workspace.revision_id.as_ref() == Some(&revision.id),
        quarantined: revision.quarantined,
        note: revision.note.clone(),
        job_id: job.clone(),
        runner_job_id: job,
        resources: Vec::new(),
        terraform_workspace: None,
    }
}

/// What the runner has told of the resources, which are never more than it counts.
fn resources(revision: &Revision) -> Vec<wire::TerraformResource> {
    let told = revision.resources.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    told.map(|resource| wire::TerraformResource {
        address: text(&resource["address"]),
        r#type: text(&resource["kind"]),
        provider: text(&resource["provider"]),
        mode: text(&resource["mode"]),
        status: text(&resource["status"]),
    })
    .collect()
}

/// Terraform's workspaces of an install: the sandbox's and one for each component that is a Terraform module.
#[utoipa::path(get, path = "/v1/installs/{install_id}/terraform-workspaces", tag = "terraform", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = [wire::TerraformWorkspace]), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<Vec<wire::TerraformWorkspace>>> {
    let install = state.store().install(&at.org, &install).await?;
    let mut all = Vec::new();
    for workspace in state.store().workspaces(&at.org, &install.id).await? {
        all.push(shown(&state, &install, &workspace).await?);
    }
    Ok(Json(all))
}

/// A workspace of Terraform: where its state is, and who holds it.
#[utoipa::path(get, path = "/v1/terraform-workspaces/{workspace_id}", tag = "terraform", security(("token" = ["read-only"])), params(("workspace_id" = String, Path)), responses((status = 200, body = wire::TerraformWorkspace), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<Json<wire::TerraformWorkspace>> {
    let workspace = found(&state, &at, &id).await?;
    Ok(Json(one_shown(&state, &at, &workspace).await?))
}

/// Every state that was written to a workspace, newest first.
#[utoipa::path(get, path = "/v1/terraform-workspaces/{workspace_id}/states", tag = "terraform", security(("token" = ["read-only"])), params(("workspace_id" = String, Path), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::TerraformState]), (status = 404, body = api::ErrorBody)))]
async fn states(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::TerraformState>> {
    let workspace = found(&state, &at, &id).await?;
    let revisions = state.store().revisions(&at.org, &workspace.id, page.offset(), page.fetch()).await?;
    let all = revisions.iter().map(|revision| state_shown(&workspace, revision));
    Ok(List::new(all.collect(), page))
}

/// A state of a workspace, with its resources. What is in it is sealed with the customer's key, so `contents` is never given.
#[utoipa::path(get, path = "/v1/terraform-workspaces/{workspace_id}/states/{state_id}", tag = "terraform", security(("token" = ["read-only"])), params(("workspace_id" = String, Path), ("state_id" = String, Path)), responses((status = 200, body = wire::TerraformState), (status = 404, body = api::ErrorBody)))]
async fn state_of(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((id, state_id)): Path<(String, String)>,
) -> ApiResult<Json<wire::TerraformState>> {
    let workspace = found(&state, &at, &id).await?;
    let revision = found_state(&state, &at, &workspace, &state_id).await?;
    Ok(Json(wire::TerraformState {
        resources: resources(&revision),
        terraform_workspace: Some(one_shown(&state, &at, &workspace).await?),
        ..state_shown(&workspace, &revision)
    }))
}

/// A state in the form of `terraform show -json`, without values and outputs: those are sealed with the customer's key. Resources of
/// all modules stand in the root module, under their full addresses.
#[utoipa::path(get, path = "/v1/terraform-workspaces/{workspace_id}/state-json/{state_id}", tag = "terraform", security(("token" = ["read-only"])), params(("workspace_id" = String, Path), ("state_id" = String, Path)), responses((status = 200, body = Value), (status = 404, body = api::ErrorBody)))]
async fn state_json(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((id, state_id)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let workspace = found(&state, &at, &id).await?;
    let revision = found_state(&state, &at, &workspace, &state_id).await?;
    let resource = |resource: wire::TerraformResource| {
        let mut shown = json!({
            "address": resource.address, "mode": resource.mode, "type": resource.r#type,
            "provider_name": resource.provider,
        });
        if resource.status == "tainted" {
            shown["tainted"] = json!(true);
        }
        shown
    };
    let resources: Vec<Value> = resources(&revision).into_iter().map(resource).collect();
    Ok(Json(json!({
        "format_version": "1.0", "sealed": true, "serial": revision.serial, "lineage": revision.lineage,
        "resource_count": revision.resource_count, "values": { "root_module": { "resources": resources } },
    })))
}

/// Makes a state the current one again, under the next serial: the install's runner writes it, as the job that is answered. So is
/// a state recovered that was kept beside. It changes what Terraform believes, and nothing else.
#[utoipa::path(post, path = "/v1/terraform-workspaces/{workspace_id}/states/{state_id}/restore", tag = "terraform", security(("token" = ["operator"])), params(("workspace_id" = String, Path), ("state_id" = String, Path)), responses((status = 201, body = wire::Job), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn restore(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((id, state_id)): Path<(String, String)>,
    request: Create<IgnoredAny>,
) -> ApiResult<(StatusCode, Json<wire::Job>)> {
    let workspace = found(&state, &at, &id).await?;
    let revision = found_state(&state, &at, &workspace, &state_id).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let (queued, runner) = state.conductor.restore_state(&workspace, &revision, at.actor(), idem).await?;
    Ok((StatusCode::CREATED, Json(jobs::wire_new(&state, queued, &runner).await?)))
}

/// Frees the lock of a workspace, where a person holds it, or a job that is gone. That of a job that runs is not freed: two
/// would write the state.
#[utoipa::path(post, path = "/v1/terraform-workspaces/{workspace_id}/unlock", tag = "terraform", security(("token" = ["operator"])), params(("workspace_id" = String, Path)), responses((status = 200, body = wire::TerraformWorkspace), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn unlock(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
) -> ApiResult<Json<wire::TerraformWorkspace>> {
    let workspace = found(&state, &at, &id).await?;
    state.conductor.force_unlock(&at.by(), &workspace).await?;
    let workspace = found(&state, &at, &id).await?;
    Ok(Json(one_shown(&state, &at, &workspace).await?))
}
