//! Terraform's workspaces for runners: states come and go in sealed pieces, under the lock of who works on them.

use api::ErrorBody;
use api::terraform::{
    HolderRef, InstallKeyAnswer, InstallKeyRequest, LockAnswer, LockRequest, PlanRequest, StateAnswer, StateHead,
    StateRequest, UnlockRequest, WorkspaceHead, WorkspaceRequest, WorkspacesAnswer,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use conductor::{NewPlan, NewState, check_piece};
use model::{InstallId, OrgId, UploadId, WorkspaceId};
use serde_json::json;
use store::{Holder, Locked, StoreError, Workspace};

use super::executions::current_job;
use super::session::{OnExecution, Signed};
use crate::AppState;
use crate::error::{ApiError, ApiResult};
use crate::request;

/// The install of the runner that speaks; its session must not be over.
pub(super) async fn install_of(state: &AppState, signed: &Signed, runner: &str) -> ApiResult<(OrgId, InstallId)> {
    install_of_any(state, signed, runner, false).await
}

/// The same, where the session may be `over`: what it brings may be all that is left of what was made.
async fn install_of_any(state: &AppState, signed: &Signed, runner: &str, over: bool) -> ApiResult<(OrgId, InstallId)> {
    let session = &signed.session;
    if runner != session.runner_id.as_str() {
        return Err(StoreError::NotFound("runner").into());
    }
    let runner = state.store().runner(&session.org_id, runner).await?;
    if runner.revoked_at.is_some() {
        return Err(StoreError::Revoked.into());
    }
    if !over && runner.generation != session.generation {
        return Err(StoreError::Fenced.into());
    }
    let install = runner.install_id.ok_or(StoreError::NotFound("install of this runner"))?;
    Ok((session.org_id.clone(), install))
}

fn workspace_id(text: &str) -> ApiResult<WorkspaceId> {
    WorkspaceId::parse(text).map_err(|_| StoreError::NotFound("workspace").into())
}

fn upload_id(text: &str) -> ApiResult<UploadId> {
    UploadId::parse(text).map_err(|_| StoreError::NotFound("sealed file").into())
}

/// The install's own workspace; that of another one does not exist.
async fn workspace(state: &AppState, org: &OrgId, install: &InstallId, id: &str) -> ApiResult<Workspace> {
    let found = state.store().workspace(org, &workspace_id(id)?).await?;
    if found.install_id == *install { Ok(found) } else { Err(StoreError::NotFound("workspace").into()) }
}

async fn head(state: &AppState, workspace: Workspace) -> ApiResult<WorkspaceHead> {
    let revision = state.store().current_revision(&workspace.org_id, &workspace).await?;
    Ok(WorkspaceHead {
        lock: workspace.lock().map(|lock| lock.info),
        workspace_id: workspace.id,
        target: workspace.target,
        state: revision.map(|revision| StateHead {
            revision_id: revision.id,
            lineage: revision.lineage,
            serial: revision.serial,
            file: revision.file,
        }),
    })
}

fn holder(signed: &Signed, holder: Option<HolderRef>, person: &str) -> Holder {
    match holder {
        Some(HolderRef { execution_id, epoch }) => {
            Holder::Execution { runner_id: signed.session.runner_id.clone(), id: execution_id, epoch }
        }
        None => Holder::Person(person.chars().take(200).collect()),
    }
}

/// The workspaces of the runner's install.
#[utoipa::path(get, path = "/v1/runners/{runner_id}/workspaces", tag = "terraform", params(("runner_id" = String, Path)), responses((status = 200, body = WorkspacesAnswer), (status = 404, body = ErrorBody)))]
pub(super) async fn workspaces(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<WorkspacesAnswer>> {
    let (org, install) = install_of(&state, &signed, &runner).await?;
    let mut workspaces = Vec::new();
    for found in state.store().workspaces(&org, &install).await? {
        workspaces.push(head(&state, found).await?);
    }
    Ok(Json(WorkspacesAnswer { workspaces }))
}

/// The workspace of a component, or of the sandbox; it is made where there is none.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/workspaces", tag = "terraform", params(("runner_id" = String, Path)), request_body = WorkspaceRequest, responses((status = 200, body = WorkspaceHead), (status = 404, body = ErrorBody)))]
pub(super) async fn open_workspace(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<WorkspaceHead>> {
    let (org, install) = install_of(&state, &signed, &runner).await?;
    let wanted: WorkspaceRequest = request::parse(&signed.body)?;
    let found = state.conductor.open_workspace(&org, &install, &wanted.target).await?;
    head(&state, found).await.map(Json)
}

/// A workspace as it is now: who holds it, and where its state is.
#[utoipa::path(get, path = "/v1/runners/{runner_id}/workspaces/{workspace_id}", tag = "terraform", params(("runner_id" = String, Path), ("workspace_id" = String, Path)), responses((status = 200, body = WorkspaceHead), (status = 404, body = ErrorBody)))]
pub(super) async fn workspace_head(
    State(state): State<AppState>,
    Path((runner, id)): Path<(String, String)>,
    signed: Signed,
) -> ApiResult<Json<WorkspaceHead>> {
    let (org, install) = install_of(&state, &signed, &runner).await?;
    let found = workspace(&state, &org, &install, &id).await?;
    head(&state, found).await.map(Json)
}

/// Takes the lock of a workspace. One whose holder is certainly dead is taken over; else the holder is named.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/workspaces/{workspace_id}/lock", tag = "terraform", params(("runner_id" = String, Path), ("workspace_id" = String, Path)), request_body = LockRequest, responses((status = 200, body = LockAnswer), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(super) async fn lock(
    State(state): State<AppState>,
    Path((runner, id)): Path<(String, String)>,
    signed: Signed,
) -> ApiResult<Json<LockAnswer>> {
    let (_, install) = install_of(&state, &signed, &runner).await?;
    let wanted: LockRequest = request::parse(&signed.body)?;
    let holder = holder(&signed, wanted.holder, &wanted.info.who);
    let locked = state.conductor.lock_workspace(&install, &workspace_id(&id)?, wanted.info, holder).await?;
    Ok(Json(answer(locked)))
}

/// Frees the lock of a workspace; only who holds it can.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/workspaces/{workspace_id}/unlock", tag = "terraform", params(("runner_id" = String, Path), ("workspace_id" = String, Path)), request_body = UnlockRequest, responses((status = 200, body = LockAnswer), (status = 404, body = ErrorBody)))]
pub(super) async fn unlock(
    State(state): State<AppState>,
    Path((runner, id)): Path<(String, String)>,
    signed: Signed,
) -> ApiResult<Json<LockAnswer>> {
    let (_, install) = install_of(&state, &signed, &runner).await?;
    let wanted: UnlockRequest = request::parse(&signed.body)?;
    let freed = state.conductor.unlock_workspace(&install, &workspace_id(&id)?, &wanted.lock_id).await?;
    Ok(Json(answer(freed)))
}

fn answer(locked: Locked) -> LockAnswer {
    match locked {
        Locked::Taken => LockAnswer { done: true, held_by: None },
        Locked::HeldBy(lock) => LockAnswer { done: false, held_by: Some(lock.info) },
    }
}

/// Makes a state whose pieces were sent the next one. Of an execution that has lost its lease it is kept beside them.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/workspaces/{workspace_id}/states", tag = "terraform", params(("runner_id" = String, Path), ("workspace_id" = String, Path)), request_body = StateRequest, responses((status = 200, body = StateAnswer), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(super) async fn write_state(
    State(state): State<AppState>,
    Path((runner, id)): Path<(String, String)>,
    signed: Signed,
) -> ApiResult<Json<StateAnswer>> {
    let wanted: ApiResult<StateRequest> = request::parse(&signed.body);
    let by_execution = wanted.as_ref().is_ok_and(|wanted| wanted.holder.is_some());
    let (org, install) = install_of_any(&state, &signed, &runner, by_execution).await?;
    let wanted = wanted?;
    let new = NewState {
        workspace_id: workspace_id(&id)?,
        holder: holder(&signed, wanted.holder, &wanted.person),
        lock_id: wanted.lock_id,
        lineage: wanted.lineage,
        serial: wanted.serial,
        file: wanted.file,
        resources: json!(wanted.resources),
        resource_count: wanted.resource_count,
        outputs: wanted.outputs.map(serde_json::Value::Object),
        note: wanted.note,
    };
    let revision = state.conductor.write_state(&org, &install, new).await?;
    Ok(Json(StateAnswer { revision_id: revision.id, quarantined: revision.quarantined }))
}

/// Takes a piece of a file that the runner has sealed. The same piece again replaces it.
#[utoipa::path(put, path = "/v1/runners/{runner_id}/sealed/{upload_id}/{piece}", tag = "terraform", params(("runner_id" = String, Path), ("upload_id" = String, Path), ("piece" = u32, Path)), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 200, description = "kept"), (status = 404, body = ErrorBody)))]
pub(super) async fn put_piece(
    State(state): State<AppState>,
    Path((runner, upload, number)): Path<(String, String, u32)>,
    signed: Signed,
) -> ApiResult<&'static str> {
    let (org, install) = install_of_any(&state, &signed, &runner, true).await?;
    state.conductor.put_piece(&org, &install, &upload_id(&upload)?, number, signed.body).await?;
    Ok("kept")
}

/// Gives a piece of a sealed file of the install.
#[utoipa::path(get, path = "/v1/runners/{runner_id}/sealed/{upload_id}/{piece}", tag = "terraform", params(("runner_id" = String, Path), ("upload_id" = String, Path), ("piece" = u32, Path)), responses((status = 200, description = "the piece", body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = ErrorBody)))]
pub(super) async fn get_piece(
    State(state): State<AppState>,
    Path((runner, upload, number)): Path<(String, String, u32)>,
    signed: Signed,
) -> ApiResult<Bytes> {
    let (org, install) = install_of(&state, &signed, &runner).await?;
    let upload = upload_id(&upload)?;
    if !state.store().sealed_is_of(&install, &upload).await? {
        return Err(StoreError::NotFound("sealed file").into());
    }
    let number = check_piece(number).map_err(conductor::Error::from)?;
    Ok(state.store().sealed_piece(&org, &upload, number).await?)
}

/// Which key the install seals with. The first one that is named stands.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/install-key", tag = "terraform", params(("runner_id" = String, Path)), request_body = InstallKeyRequest, responses((status = 200, body = InstallKeyAnswer), (status = 404, body = ErrorBody)))]
pub(super) async fn install_key(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<InstallKeyAnswer>> {
    let (org, install) = install_of(&state, &signed, &runner).await?;
    let wanted: InstallKeyRequest = request::parse(&signed.body)?;
    let fingerprint = state.conductor.claim_install_key(&org, &install, wanted.fingerprint.as_deref()).await?;
    Ok(Json(InstallKeyAnswer { fingerprint }))
}

/// Keeps what a plan job has made: which sealed file it is, and the masked model that people see.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/plan", tag = "terraform", params(("execution_id" = String, Path)), request_body = PlanRequest, responses((status = 200, description = "kept"), (status = 409, body = ErrorBody)))]
pub(super) async fn plan(State(state): State<AppState>, on: OnExecution) -> ApiResult<&'static str> {
    let job = current_job(&state, &on).await?;
    let wanted: PlanRequest = request::parse(&on.signed.body)?;
    let display = B64.decode(&wanted.display).map_err(|_| ApiError::invalid("`display` is not Base64"))?;
    let new = NewPlan { plan: wanted.plan, changes: wanted.changes, judged: wanted.judged, display };
    state.conductor.keep_plan(&job, &on.execution.id, new).await?;
    Ok("kept")
}
