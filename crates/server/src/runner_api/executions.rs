//! What happens to an execution: start, renew, progress, log, result.

use api::ErrorCode;
use api::runner::{LogAnswer, ProgressRequest, RenewAnswer, RenewRequest, ResultAnswer, ResultRequest, StartAnswer};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use conductor::Renewed;
use crash::crash_point;
use model::Digest;
use model::build::{PullLogin, RegistryAccess};
use model::kubernetes::ManifestSource;
use model::papers::Order;
use model::spec::{JobSpec, Work};
use model::terraform::Module;
use store::{StoreError, topic, unpack_batch};

use super::session::{OnExecution, Signed};
use crate::AppState;
use crate::error::{ApiError, ApiResult};
use crate::request;

/// Renews the leases of a runner's executions; does not depend on their work.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/renew", tag = "sessions", params(("runner_id" = String, Path)), request_body = RenewRequest, responses((status = 200, body = RenewAnswer), (status = 409, body = api::ErrorBody)))]
pub(super) async fn renew(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<RenewAnswer>> {
    let session = &signed.session;
    if runner != session.runner_id.as_str() {
        return Err(StoreError::NotFound("runner").into());
    }
    let wanted: RenewRequest = request::parse(&signed.body)?;
    let held = wanted.executions.into_iter().map(|h| (h.execution_id, h.epoch)).collect();
    let (lease_s, now) = (state.conductor.timing.lease_s, state.conductor.now());
    state.presence.seen(&session.runner_id, None, now);
    let Renewed { renewed, lost, cancels } = state.conductor.renew_leases(session.of(), held).await?;
    Ok(Json(RenewAnswer { renewed, lost, cancels, lease_s, server_time: now }))
}

/// A runner says that it goes.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/leave", tag = "sessions", params(("runner_id" = String, Path)), responses((status = 200, description = "noted")))]
pub(super) async fn leave(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<&'static str> {
    if runner != signed.session.runner_id.as_str() {
        return Err(StoreError::NotFound("runner").into());
    }
    state.presence.closed(&signed.session.runner_id, state.conductor.now());
    Ok("noted")
}

/// Agrees that work may begin. Nothing is spawned before this has answered.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/start", tag = "executions", params(("execution_id" = String, Path)), responses((status = 200, body = StartAnswer), (status = 409, body = api::ErrorBody)))]
pub(super) async fn start(State(state): State<AppState>, on: OnExecution) -> ApiResult<Json<StartAnswer>> {
    state.conductor.start_execution(on.signed.session.of(), &on.execution.id).await?;
    Ok(Json(StartAnswer { lease_s: state.conductor.timing.lease_s }))
}

/// The exact bytes of the spec.
#[utoipa::path(get, path = "/v1/executions/{execution_id}/spec", tag = "executions", params(("execution_id" = String, Path)), responses((status = 200, description = "the spec", body = Vec<u8>, content_type = "application/json"), (status = 404, body = api::ErrorBody)))]
pub(super) async fn spec(State(state): State<AppState>, on: OnExecution) -> ApiResult<Vec<u8>> {
    let job = current_job(&state, &on).await?;
    Ok(state.store().spec(&on.execution.org_id, &job.id).await?)
}

/// The job of an execution whose epoch is current.
pub(super) async fn current_job(state: &AppState, on: &OnExecution) -> ApiResult<store::Job> {
    let job = state.store().job(&on.execution.org_id, &on.execution.job_id).await?;
    if job.epoch != on.execution.epoch || job.state.is_terminal() {
        return Err(StoreError::LeaseLost.into());
    }
    Ok(job)
}

/// An artifact that the order names.
#[utoipa::path(get, path = "/v1/executions/{execution_id}/artifacts/{digest}", tag = "executions", params(("execution_id" = String, Path), ("digest" = String, Path)), responses((status = 200, description = "the artifact", body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = api::ErrorBody)))]
pub(super) async fn artifact(State(state): State<AppState>, on: OnExecution) -> ApiResult<Bytes> {
    let job = current_job(&state, &on).await?;
    let digest = Digest::parse(on.rest.as_deref().unwrap_or_default()).map_err(ApiError::invalid)?;
    let order = state.store().order(&job.org_id, &job.id).await?;
    let order: Order = serde_json::from_str(&order.payload).map_err(|_| StoreError::corrupt("order"))?;
    if !order.artifact_digests.contains(&digest) {
        return Err(StoreError::NotFound("artifact of this order").into());
    }
    Ok(state.store().archive(&job.org_id, &digest).await?)
}

/// Lets an execution into Ferry's registry for a short while: a build may push to the repository of its component, a sync may
/// read the one that it copies from; neither deletes anything.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/registry-token", tag = "executions", params(("execution_id" = String, Path)), responses((status = 200, body = RegistryAccess), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
pub(super) async fn registry_token(State(state): State<AppState>, on: OnExecution) -> ApiResult<Json<RegistryAccess>> {
    let job = current_job(&state, &on).await?;
    let spec = state.store().spec(&job.org_id, &job.id).await?;
    let spec: JobSpec = serde_json::from_slice(&spec).map_err(|_| StoreError::corrupt("spec"))?;
    let (repository, may_push) = match &spec.work {
        Work::Build(build) => (&build.to, true),
        Work::OciSync(sync) => (&sync.from, false),
        Work::TerraformDeploy(job) | Work::SandboxTerraform(job) => match &job.module {
            Module::Artifact { repository, .. } => (repository, false),
            Module::Source { .. } | Module::Nothing {} => {
                return Err(StoreError::NotFound("registry for this job").into());
            }
        },
        Work::HelmChartDeploy(job) => (&job.repository, false),
        Work::KubernetesManifestDeploy(job) => match &job.manifest {
            ManifestSource::Artifact { repository, .. } => (repository, false),
            ManifestSource::Text { .. } => return Err(StoreError::NotFound("registry for this job").into()),
        },
        Work::Noop { .. }
        | Work::HealthCheck {}
        | Work::ActionsWorkflow(_)
        | Work::JobDeploy(_)
        | Work::SandboxSyncSecrets(_) => {
            return Err(StoreError::NotFound("registry for this job").into());
        }
    };
    if repository.registry.is_some() {
        return Err(StoreError::NotFound("artifact in this registry").into());
    }
    let registry = crate::registry_access::for_executions(&state);
    let access = registry.token_for(job.org_id, std::slice::from_ref(&repository.name), may_push);
    access.map(Json).ok_or_else(|| ApiError::new(ErrorCode::Internal, "no key signs tokens"))
}

/// A login for pods of the execution's job: they may pull the repositories that its order names, and nothing else.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/pull-login", tag = "executions", params(("execution_id" = String, Path)), responses((status = 200, body = PullLogin), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
pub(super) async fn pull_login(State(state): State<AppState>, on: OnExecution) -> ApiResult<Json<PullLogin>> {
    let job = current_job(&state, &on).await?;
    let spec = state.store().spec(&job.org_id, &job.id).await?;
    let spec: JobSpec = serde_json::from_slice(&spec).map_err(|_| StoreError::corrupt("spec"))?;
    let (Some(pulls), Some(install)) = (spec.pulls, spec.install_id) else {
        return Err(StoreError::NotFound("image for this job").into());
    };
    let registry = crate::registry_access::for_executions(&state);
    let login = registry.pull_login(job.org_id, install.as_str(), &pulls.repositories);
    login.map(Json).ok_or_else(|| ApiError::new(ErrorCode::Internal, "no key signs logins"))
}

/// How far the steps are.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/progress", tag = "executions", params(("execution_id" = String, Path)), request_body = ProgressRequest, responses((status = 200, description = "noted")))]
pub(super) async fn progress(State(state): State<AppState>, on: OnExecution) -> ApiResult<&'static str> {
    let wanted: ProgressRequest = request::parse(&on.signed.body)?;
    let session = on.signed.session.of();
    state.conductor.note_progress(session, &on.execution.id, wanted.epoch, wanted.steps).await?;
    Ok("noted")
}

/// Appends log chunks: frames, zstd-compressed, the next in order. An empty body asks which is next. Chunks of a stale epoch
/// belong to their execution and are kept all the same.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/logs", tag = "executions", params(("execution_id" = String, Path)), request_body(content = Vec<u8>, content_type = "application/zstd"), responses((status = 200, body = LogAnswer), (status = 409, body = api::ErrorBody)))]
pub(super) async fn append_log(State(state): State<AppState>, on: OnExecution) -> ApiResult<Json<LogAnswer>> {
    let id = &on.execution.id;
    if on.signed.body.is_empty() {
        return Ok(Json(LogAnswer { next_seq: state.store().log_head(id).await? }));
    }
    let chunks = unpack_batch(&on.signed.body).map_err(|e| ApiError::invalid(e.to_string()))?;
    let first_seq =
        chunks.first().map(|c| c.seq).ok_or_else(|| ApiError::invalid("a batch holds at least one chunk"))?;
    if chunks.iter().zip(first_seq..).any(|(c, seq)| c.seq != seq) {
        return Err(ApiError::new(ErrorCode::InvalidRequest, "the chunks of a batch are not in order"));
    }
    let (mut chunks, mut data) = (chunks, on.signed.body.to_vec());
    if !state.log_quotas.has_room(state.store(), &on.execution.org_id, data.len() as u64).await? {
        (chunks, data) = store::without_output(&data)?;
    }
    state.metrics.log_received(data.len(), chunks.len());
    crash_point!("server.before_log");
    let outcome = state.conductor.append_log(&on.execution.org_id, id, &chunks, data).await;
    crash_point!("server.log_stored");
    let next_seq = match outcome {
        Err(StoreError::LogOutOfOrder { next_seq }) => next_seq,
        other => other?,
    };
    state.store().notifier().wake(topic::job(&on.execution.job_id));
    Ok(Json(LogAnswer { next_seq }))
}

/// The result record: written once, for the current epoch; the first one wins.
#[utoipa::path(post, path = "/v1/executions/{execution_id}/result", tag = "executions", params(("execution_id" = String, Path)), request_body = ResultRequest, responses((status = 200, body = ResultAnswer), (status = 409, body = api::ErrorBody)))]
pub(super) async fn result(State(state): State<AppState>, on: OnExecution) -> ApiResult<Json<ResultAnswer>> {
    let wanted: ResultRequest = request::parse(&on.signed.body)?;
    let (session, execution) = (on.signed.session.of(), &on.execution);
    let ResultRequest { epoch, result, .. } = &wanted;
    let written = state.conductor.write_result(&execution.org_id, session, &execution.id, *epoch, result).await?;
    state.subjects.forget(&execution.id);
    if written.recorded {
        state.spans.job_ended(&execution.org_id, &execution.job_id, &execution.id);
    }
    Ok(Json(ResultAnswer { recorded: written.recorded }))
}
