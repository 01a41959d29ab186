//! Runners: look, bring up, drain, revoke, set.

use api::control::{CreateRunnerJob, Health, Job, JoinCommand, Runner, UpdateRunnerSettings};
use axum::Json;
use axum::extract::{Path, State};
use conductor::NewRunnerJob;
use http::StatusCode;
use model::JobType;
use model::runner::RunnerSettings;
use model::spec::Work;
use model::waiting::Presence;
use store::RunnerChange;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Admin, InOrg, Operator, Reader};
use crate::control_api::apps::Search;
use crate::control_api::jobs;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Params};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(settings, update_settings))
        .routes(routes!(join_command))
        .routes(routes!(drain))
        .routes(routes!(resume))
        .routes(routes!(revoke))
        .routes(routes!(create_job))
}

/// The status of a runner, and a sentence about it.
pub(super) fn status(state: &AppState, runner: &store::Runner) -> (&'static str, String) {
    if runner.revoked_at.is_some() {
        return ("disabled", "its credentials are revoked".into());
    }
    let presence = state.conductor.presence(runner);
    let disabled = runner.report.as_ref().and_then(|r| r.disabled_since);
    match (presence, disabled) {
        (Presence::Never, _) => (presence.as_str(), "no runner has joined yet".into()),
        (Presence::Offline(since), _) => (presence.as_str(), format!("offline since {since}")),
        (Presence::Disconnected(since), _) => (presence.as_str(), format!("disconnected at {since}")),
        (Presence::Online, Some(since)) => ("disabled", format!("disabled by the customer since {since}")),
        (Presence::Online, None) if runner.draining => (presence.as_str(), "draining by request".into()),
        (Presence::Online, None) => (presence.as_str(), "connected".into()),
    }
}

pub(super) fn wire(state: &AppState, runner: store::Runner) -> Runner {
    let (status, status_description) = status(state, &runner);
    let last_seen_at = runner.sightings().seen_at;
    let health = runner.health().map(|(checked_at, outputs)| Health { checked_at, outputs });
    Runner {
        id: runner.id,
        org_id: runner.org_id,
        name: runner.name,
        kind: runner.kind.as_str().into(),
        install_id: runner.install_id,
        status: status.into(),
        status_description,
        generation: runner.generation,
        draining: runner.draining,
        last_seen_at,
        settings: runner.settings,
        report: runner.report,
        health,
        created_at: runner.created_at,
        updated_at: runner.updated_at,
    }
}

/// The runners of the org, or of one install.
#[utoipa::path(get, path = "/v1/runners", tag = "runners", security(("token" = ["read-only"])), params(("install" = Option<String>, Query, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [Runner])))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<List<Runner>> {
    let page = search.page()?;
    let install = match search.text("install") {
        Some(name) => Some(state.store().install(&at.org, name).await?.id),
        None => None,
    };
    let runners = state.store().runners(&at.org, install.as_ref(), page.offset(), page.fetch()).await?;
    Ok(List::new(runners.into_iter().map(|r| wire(&state, r)).collect(), page))
}

/// A runner, by name or id.
#[utoipa::path(get, path = "/v1/runners/{runner_id}", tag = "runners", security(("token" = ["read-only"])), params(("runner_id" = String, Path, description = "name or id")), responses((status = 200, body = Runner), (status = 404, body = api::ErrorBody)))]
async fn get(State(state): State<AppState>, Reader(at): Reader, Path(id): Path<String>) -> ApiResult<Json<Runner>> {
    let runner = state.store().runner(&at.org, &id).await?;
    Ok(Json(wire(&state, runner)))
}

/// What a runner is set to.
#[utoipa::path(get, path = "/v1/runners/{runner_id}/settings", tag = "runners", security(("token" = ["read-only"])), params(("runner_id" = String, Path, description = "name or id")), responses((status = 200, body = RunnerSettings), (status = 404, body = api::ErrorBody)))]
async fn settings(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<Json<RunnerSettings>> {
    Ok(Json(state.store().runner(&at.org, &id).await?.settings))
}

/// Changes settings; the runner has them with its next answer, without a restart.
#[utoipa::path(patch, path = "/v1/runners/{runner_id}/settings", tag = "runners", security(("token" = ["admin"])), params(("runner_id" = String, Path, description = "name or id")), request_body = UpdateRunnerSettings, responses((status = 200, body = Runner), (status = 404, body = api::ErrorBody)))]
async fn update_settings(
    State(state): State<AppState>,
    Admin(at): Admin,
    Path(id): Path<String>,
    request: Create<UpdateRunnerSettings>,
) -> ApiResult<Json<Runner>> {
    let runner = state.store().runner(&at.org, &id).await?;
    let (mut settings, wanted) = (runner.settings, request.value);
    settings.version += 1;
    for (group, slots) in wanted.groups.unwrap_or_default() {
        if slots > 64 {
            return Err(ApiError::invalid(format!("group {group} can't have {slots} slots; at most 64")));
        }
        settings.groups.insert(group, slots);
    }
    const PIB: u64 = 1 << 50;
    const DAY_S: u64 = 86_400;
    for (key, value, range) in [
        ("disk_floor_bytes", wanted.disk_floor_bytes, 0..=PIB),
        ("execution_disk_bytes", wanted.execution_disk_bytes, 1 << 20..=PIB),
        ("spool_bytes", wanted.spool_bytes, 64 << 10..=PIB),
        ("drain_s", wanted.drain_s, 0..=DAY_S),
        ("health_check_s", wanted.health_check_s, 0..=365 * DAY_S),
    ] {
        if let Some(value) = value.filter(|v| !range.contains(v)) {
            let text = format!("{key} can't be {value}; use {} to {}", range.start(), range.end());
            return Err(ApiError::invalid(text));
        }
    }
    settings.disk_floor_bytes = wanted.disk_floor_bytes.unwrap_or(settings.disk_floor_bytes);
    settings.execution_disk_bytes = wanted.execution_disk_bytes.unwrap_or(settings.execution_disk_bytes);
    settings.spool_bytes = wanted.spool_bytes.unwrap_or(settings.spool_bytes);
    settings.drain_s = wanted.drain_s.unwrap_or(settings.drain_s);
    settings.health_check_s = wanted.health_check_s.unwrap_or(settings.health_check_s);
    change(&state, &at, &runner.id, RunnerChange::Settings(settings)).await
}

/// Makes a join credential, and the command that brings a runner up with it. The credential is shown once.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/join-commands", tag = "runners", security(("token" = ["admin"])), params(("runner_id" = String, Path, description = "name or id")), responses((status = 201, body = JoinCommand), (status = 404, body = api::ErrorBody)))]
async fn join_command(
    State(state): State<AppState>,
    Admin(at): Admin,
    Path(id): Path<String>,
) -> ApiResult<(StatusCode, Json<JoinCommand>)> {
    let runner = state.store().runner(&at.org, &id).await?;
    let (credential_id, credential) = state.conductor.join_credential(&at.org, &runner.id, at.actor()).await?;
    let trust_key = state.conductor.signing_keys().fingerprint().to_owned();
    let (kind, url) = (runner.kind.as_str(), &state.runner_url);
    let join = model::env::RUNNER_JOIN;
    let command = format!("{join}={credential} ferry-runner {kind} --url {url} --trust-key {trust_key}");
    let answer = JoinCommand {
        credential_id,
        runner_id: runner.id,
        runner_url: url.to_string(),
        credential,
        trust_keys: vec![trust_key],
        command,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

async fn change(
    state: &AppState,
    at: &InOrg,
    runner: &model::RunnerId,
    change: RunnerChange,
) -> ApiResult<Json<Runner>> {
    let runner = state.conductor.change_runner(&at.by(), runner, change).await?;
    Ok(Json(wire(state, runner)))
}

/// Lets a runner finish what it has and take nothing more.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/drain", tag = "runners", security(("token" = ["operator"])), params(("runner_id" = String, Path, description = "name or id")), responses((status = 200, body = Runner), (status = 404, body = api::ErrorBody)))]
async fn drain(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
) -> ApiResult<Json<Runner>> {
    let runner = state.store().runner(&at.org, &id).await?;
    change(&state, &at, &runner.id, RunnerChange::Drain(true)).await
}

/// Lets a drained runner take jobs again.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/resume", tag = "runners", security(("token" = ["operator"])), params(("runner_id" = String, Path, description = "name or id")), responses((status = 200, body = Runner), (status = 404, body = api::ErrorBody)))]
async fn resume(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
) -> ApiResult<Json<Runner>> {
    let runner = state.store().runner(&at.org, &id).await?;
    change(&state, &at, &runner.id, RunnerChange::Drain(false)).await
}

/// Ends a runner's session and all its join credentials.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/revoke", tag = "runners", security(("token" = ["admin"])), params(("runner_id" = String, Path, description = "name or id")), responses((status = 200, body = Runner), (status = 404, body = api::ErrorBody)))]
async fn revoke(State(state): State<AppState>, Admin(at): Admin, Path(id): Path<String>) -> ApiResult<Json<Runner>> {
    let runner = state.store().runner(&at.org, &id).await?;
    change(&state, &at, &runner.id, RunnerChange::Revoke).await
}

/// Gives a runner a job that does nothing, or a health check.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/jobs", tag = "runners", security(("token" = ["operator"])), params(("runner_id" = String, Path, description = "name or id")), request_body = CreateRunnerJob, responses((status = 201, body = Job), (status = 404, body = api::ErrorBody)))]
async fn create_job(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
    request: Create<CreateRunnerJob>,
) -> ApiResult<(StatusCode, Json<Job>)> {
    let runner = state.store().runner(&at.org, &id).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let work = match request.value.job_type {
        JobType::Noop => Work::Noop { sleep_ms: request.value.sleep_ms.min(3_600_000) },
        JobType::HealthCheck => Work::HealthCheck {},
        JobType::ActionsWorkflow => {
            return Err(ApiError::invalid("actions are run with POST /v1/installs/{install_id}/action-runs"));
        }
        JobType::TerraformModuleBuild
        | JobType::HelmChartBuild
        | JobType::KubernetesManifestBuild
        | JobType::DockerBuild
        | JobType::ContainerImageBuild => {
            return Err(ApiError::invalid("builds are made with POST /v1/components/{component_id}/builds"));
        }
        JobType::TerraformDeploy
        | JobType::HelmChartDeploy
        | JobType::KubernetesManifestDeploy
        | JobType::JobDeploy
        | JobType::SandboxSyncSecrets
        | JobType::SandboxTerraform => {
            return Err(ApiError::invalid("deploys run in workflows: POST /v1/installs/{install_id}/workflows"));
        }
        JobType::OciSync => {
            return Err(ApiError::invalid("artifacts are synced with POST /v1/installs/{install_id}/artifact-syncs"));
        }
    };
    let job = NewRunnerJob { work, priority: request.value.priority };
    let job = state.conductor.submit_runner_job(&runner, job, at.actor(), idem).await?;
    Ok((StatusCode::CREATED, Json(jobs::wire_new(&state, job, &runner).await?)))
}
