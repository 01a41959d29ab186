//! Jobs: list, look, cancel, settle.

use api::control::{Execution, Job, SettleJob};
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use model::{ExecutionId, JobError, JobId, JobState, JobType, StepResult, Timestamp, constants};
use store::{JobFilter, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::control_api::apps::Search;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Params};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(cancel))
        .routes(routes!(settle))
        .routes(routes!(plan))
}

pub(super) fn parse_id(text: &str) -> ApiResult<JobId> {
    Ok(JobId::parse(text).map_err(|_| StoreError::NotFound("job"))?)
}

fn nanoseconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX / 1_000_000_000).saturating_mul(1_000_000_000)
}

/// What only a look at one job shows.
#[derive(Default)]
struct Details {
    executions: Vec<Execution>,
    steps: Vec<StepResult>,
    outputs: serde_json::Map<String, serde_json::Value>,
    last: Option<ExecutionId>,
}

/// A job as the API shows it; with `full`, its executions, steps and outputs too.
pub(super) async fn wire(state: &AppState, job: store::Job, full: bool) -> ApiResult<Job> {
    let waiting_reason = state.conductor.waiting_reason(&job).await?;
    let details = if full { details(state, &job).await? } else { Details::default() };
    Ok(shown(job, waiting_reason, details, state.conductor.now()))
}

/// A job that was just queued for this runner.
pub(super) async fn wire_new(state: &AppState, queued: store::Queued, runner: &store::Runner) -> ApiResult<Job> {
    let waiting_reason = state.conductor.new_waits(&queued, runner).await?;
    Ok(shown(queued.job, waiting_reason, Details::default(), state.conductor.now()))
}

async fn details(state: &AppState, job: &store::Job) -> ApiResult<Details> {
    let mut details = Details::default();
    for row in state.store().executions_of(&job.id).await? {
        if row.epoch == job.epoch {
            details.steps = row.steps.clone();
            if let Some(result) = state.store().result(&job.org_id, &row.id).await? {
                details.outputs = result.outputs;
                details.last = Some(row.id.clone());
            }
        }
        details.executions.push(Execution {
            id: row.id,
            runner_job_id: row.job_id,
            epoch: row.epoch,
            generation: row.generation,
            status: row.state,
            status_description: row.reason,
            created_at: row.created_at,
            started_at: row.started_at,
            finished_at: row.finished_at,
        });
    }
    Ok(details)
}

fn shown(job: store::Job, waiting_reason: Option<String>, details: Details, now: Timestamp) -> Job {
    let ended = job.finished_at.or_else(|| job.started_at.map(|_| now));
    let execution_time = job.started_at.zip(ended).map(|(from, to)| to.since(from).as_nanos() as i64);
    let (owner_id, owner_type) = match &job.install_id {
        Some(install) => (install.to_string(), "installs"),
        None => (job.org_id.to_string(), "orgs"),
    };
    let description = match &waiting_reason {
        Some(reason) => reason.clone(),
        None if job.reason.is_empty() => job.state.to_string(),
        None => job.reason.clone(),
    };
    Job {
        error: job.error_code.as_ref().map(|code| JobError::new(code, job.reason.clone())),
        id: job.id,
        org_id: job.org_id,
        runner_id: job.runner_id,
        install_id: job.install_id,
        owner_id,
        owner_type: owner_type.into(),
        job_type: job.job_type,
        group: job.group,
        operation: job.operation,
        name: job.name,
        status: job.state,
        status_description: description,
        waiting_reason,
        target: job.target,
        priority: job.priority,
        log_stream_id: job.log_stream_id,
        execution_count: job.epoch,
        max_executions: job.max_executions,
        execution_timeout: nanoseconds(job.timeout_s),
        queue_timeout: nanoseconds(constants::QUEUE_TIMEOUT_S),
        execution_time,
        cancel_requested_at: job.cancel_at,
        steps: details.steps,
        outputs: details.outputs,
        executions: details.executions,
        final_runner_job_execution_id: details.last,
        created_by_id: job.created_by,
        created_at: job.created_at,
        updated_at: job.updated_at,
        started_at: job.started_at,
        finished_at: job.finished_at,
    }
}

/// The jobs of the org, newest first.
#[utoipa::path(get, path = "/v1/runner-jobs", tag = "jobs", security(("token" = ["read-only"])), params(("install" = Option<String>, Query, description = "name or id"), ("runner" = Option<String>, Query, description = "name or id"), ("status" = Option<JobState>, Query), ("type" = Option<JobType>, Query), ("without" = Option<JobType>, Query, description = "all types but this one"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [Job])))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<List<Job>> {
    let page = search.page()?;
    let install = match search.text("install") {
        Some(name) => Some(state.store().install(&at.org, name).await?.id),
        None => None,
    };
    let runner = match search.text("runner") {
        Some(name) => Some(state.store().runner(&at.org, name).await?.id),
        None => None,
    };
    let unknown =
        |what: &str, text: &str, all: String| ApiError::invalid(format!("`{text}` is no {what}; use one of {all}"));
    let status = match search.text("status") {
        Some(text) => Some(
            JobState::parse(text)
                .ok_or_else(|| unknown("status", text, JobState::ALL.map(JobState::as_str).join(", ")))?,
        ),
        None => None,
    };
    let of_type = |key: &str| {
        let Some(text) = search.text(key) else { return Ok(None) };
        let all = || JobType::ALL.map(JobType::as_str).join(", ");
        JobType::parse(text).map(Some).ok_or_else(|| unknown("type", text, all()))
    };
    let (job_type, without) = (of_type("type")?, of_type("without")?);
    let filter = JobFilter { install, runner, state: status, job_type, without };
    let mut jobs = Vec::new();
    for job in state.store().jobs(&at.org, filter, page.offset(), page.fetch()).await? {
        jobs.push(wire(&state, job, false).await?);
    }
    Ok(List::new(jobs, page))
}

/// A job with its executions, steps and outputs.
#[utoipa::path(get, path = "/v1/runner-jobs/{runner_job_id}", tag = "jobs", security(("token" = ["read-only"])), params(("runner_job_id" = String, Path)), responses((status = 200, body = Job), (status = 404, body = api::ErrorBody)))]
async fn get(State(state): State<AppState>, Reader(at): Reader, Path(id): Path<String>) -> ApiResult<Json<Job>> {
    let job = state.store().job(&at.org, &parse_id(&id)?).await?;
    Ok(Json(wire(&state, job, true).await?))
}

/// Cancels a job. One that runs ends when its runner has interrupted it; asking twice is harmless.
#[utoipa::path(post, path = "/v1/runner-jobs/{runner_job_id}/cancel", tag = "jobs", security(("token" = ["operator"])), params(("runner_job_id" = String, Path)), responses((status = 202, body = Job), (status = 404, body = api::ErrorBody)))]
async fn cancel(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
) -> ApiResult<(StatusCode, Json<Job>)> {
    let job = state.conductor.cancel_job(&at.by(), &parse_id(&id)?).await?;
    Ok((StatusCode::ACCEPTED, Json(wire(&state, job, true).await?)))
}

/// Records the outcome of a job whose result is unknown, after someone has looked. An apply is finished only if it saved its state.
#[utoipa::path(post, path = "/v1/runner-jobs/{runner_job_id}/settle", tag = "jobs", security(("token" = ["operator"])), params(("runner_job_id" = String, Path)), request_body = SettleJob, responses((status = 201, body = Job), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn settle(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
    request: Create<SettleJob>,
) -> ApiResult<(StatusCode, Json<Job>)> {
    let SettleJob { outcome, note } = request.value;
    let job = state.conductor.settle_job(&at.org, &parse_id(&id)?, outcome, &note, (at.actor(), &at.who())).await?;
    Ok((StatusCode::CREATED, Json(wire(&state, job, true).await?)))
}

/// What a job's plan would change, as text. Only jobs that plan have one.
#[utoipa::path(get, path = "/v1/runner-jobs/{runner_job_id}/plan", tag = "jobs", security(("token" = ["read-only"])), params(("runner_job_id" = String, Path)), responses((status = 200, body = String, content_type = "text/plain"), (status = 404, body = api::ErrorBody)))]
async fn plan(State(state): State<AppState>, Reader(at): Reader, Path(id): Path<String>) -> ApiResult<String> {
    let job = state.store().job(&at.org, &parse_id(&id)?).await?;
    let display = match &job.step_id {
        Some(step) => state.store().step_display(&at.org, step).await?,
        None => None,
    };
    let display = display.ok_or(StoreError::NotFound("plan"))?;
    Ok(serde_json::to_string_pretty(&display).unwrap_or_default())
}
