//! Runbooks on installs. A run is a workflow.

use std::sync::Arc;

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::{Body, Document, NewWorkflow};
use engine::WorkflowKind;
use http::StatusCode;
use model::{Digest, WorkflowId};
use serde::Deserialize;
use store::{Install, StoreError, WorkflowRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
use crate::control_api::workflows::{self, begin};
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

const KIND: &str = "runbook_run";

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(run))
        .routes(routes!(runs))
        .routes(routes!(get_run))
}

/// A runbook has no row of its own: its id follows from the app and its name.
fn runbook_id(install: &Install, name: &str) -> String {
    let digest = Digest::of(format!("{}|{name}", install.app_id).as_bytes());
    format!("rbk{}", digest.hex().get(..23).unwrap_or_default())
}

async fn document(state: &AppState, at: &InOrg, install: &Install) -> ApiResult<Arc<Document>> {
    let config = state.conductor.config_of(install).await?;
    Ok(state.conductor.document(&at.org, &install.app_id, &config.id).await?)
}

fn find<'d>(document: &'d Document, install: &Install, name_or_id: &str) -> ApiResult<&'d config::Runbook> {
    let meant = |known: &&config::Runbook| known.name == name_or_id || runbook_id(install, &known.name) == name_or_id;
    Ok(document.config.runbooks.iter().find(meant).ok_or(StoreError::NotFound("runbook"))?)
}

fn shown(install: &Install, runbook: &config::Runbook) -> wire::InstallRunbook {
    let id = runbook_id(install, &runbook.name);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let inputs = runbook.input.iter().map(|input| wire::RunbookInputConfig {
        name: input.name.clone(),
        display_name: input.display_name.clone(),
        description: input.description.clone(),
        default: if input.sensitive { String::new() } else { text(&input.default) },
        r#type: text(&input.r#type),
        required: input.required,
        sensitive: input.sensitive,
    });
    let steps = runbook.steps.iter().enumerate().map(|(n, step)| wire::RunbookStepConfig {
        name: step.name.clone(),
        r#type: step.r#type.clone(),
        idx: n as i64,
        component_name: text(&step.component_name),
        action_name: text(&step.action_name),
        command: text(&step.command),
        inline_contents: text(&step.inline_contents),
        role: text(&step.role),
    });
    let config = wire::RunbookConfig {
        id: id.clone(),
        runbook_id: id.clone(),
        readme: text(&runbook.readme),
        inputs: inputs.collect(),
        steps: steps.collect(),
    };
    wire::InstallRunbook {
        id: id.clone(),
        install_id: install.id.to_string(),
        runbook_id: id.clone(),
        status: "active".into(),
        runbook: Some(wire::Runbook {
            id,
            app_id: install.app_id.to_string(),
            name: runbook.name.clone(),
            description: text(&runbook.description),
            labels: runbook.labels.clone(),
            configs: vec![config],
        }),
        runs: Vec::new(),
    }
}

/// The runbooks that can be run on an install: those of the config that it is at.
#[utoipa::path(get, path = "/v1/installs/{install_id}/runbooks", tag = "runbooks", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallRunbook]), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::InstallRunbook>> {
    let install = state.store().install(&at.org, &install).await?;
    let document = document(&state, &at, &install).await?;
    let all = document.config.runbooks.iter().skip(page.offset() as usize).take(page.fetch() as usize);
    Ok(List::new(all.map(|runbook| shown(&install, runbook)).collect(), page))
}

/// A runbook on an install, with what it asks for, by name or id.
#[utoipa::path(get, path = "/v1/installs/{install_id}/runbooks/{runbook_id}", tag = "runbooks", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("runbook_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::InstallRunbook), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, runbook)): Path<(String, String)>,
) -> ApiResult<Json<wire::InstallRunbook>> {
    let install = state.store().install(&at.org, &install).await?;
    let document = document(&state, &at, &install).await?;
    Ok(Json(shown(&install, find(&document, &install, &runbook)?)))
}

fn run_shown(install: &Install, row: &WorkflowRow) -> wire::InstallRunbookRun {
    // One that another version wrote has only what its row says.
    let body = Body::of(row).ok();
    let name = match body.as_ref().map(|body| &body.request.kind) {
        Some(WorkflowKind::RunbookRun { runbook }) => runbook.as_str(),
        _ => "",
    };
    wire::InstallRunbookRun {
        id: row.id.to_string(),
        install_id: install.id.to_string(),
        install_runbook_id: runbook_id(install, name),
        status: row.status.clone(),
        status_description: body.as_ref().and_then(|body| body.failure.clone()).unwrap_or_default(),
        install_workflow_id: row.id.to_string(),
        created_at: row.created_at,
        created_by_id: row.created_by.to_string(),
        updated_at: row.updated_at,
        execution_time: workflows::nanoseconds(row.started_at, row.finished_at),
        steps: Vec::new(),
    }
}

/// Runs a runbook on an install.
#[utoipa::path(post, path = "/v1/installs/{install_id}/runbooks/{runbook_id}/runs", tag = "runbooks", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id"), ("runbook_id" = String, Path, description = "name or id")), request_body = wire::CreateRunbookRun, responses((status = 201, body = wire::InstallRunbookRun), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn run(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((install, runbook)): Path<(String, String)>,
    request: Create<wire::CreateRunbookRun>,
) -> ApiResult<(StatusCode, Json<wire::InstallRunbookRun>)> {
    let install = state.store().install(&at.org, &install).await?;
    let document = document(&state, &at, &install).await?;
    let name = find(&document, &install, &runbook)?.name.clone();
    let idem = request.idempotency(&at.owner.account.id);
    let mut new = NewWorkflow::new(WorkflowKind::RunbookRun { runbook: name });
    new.given.runbook_inputs = request.value.inputs;
    new.request.plan_only = request.value.plan_only;
    new.approve_all = request.value.approve_all.then(|| at.who());
    let started = begin(&state, &at, &install, new, idem).await?;
    let row = state.store().workflow(&at.org, &started.0).await?;
    Ok((StatusCode::CREATED, Json(run_shown(&install, &row))))
}

#[derive(Debug, Deserialize)]
struct RunQuery {
    runbook_id: Option<String>,
    offset: Option<u64>,
    limit: Option<u64>,
    page: Option<u64>,
}

/// Runs of runbooks on an install, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/runbook-runs", tag = "runbooks", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("runbook_id" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallRunbookRun]), (status = 404, body = api::ErrorBody)))]
async fn runs(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(wanted): Params<RunQuery>,
) -> ApiResult<List<wire::InstallRunbookRun>> {
    let install = state.store().install(&at.org, &install).await?;
    let page = Page { offset: wanted.offset, limit: wanted.limit, page: wanted.page };
    let found = state.store().workflows(&at.org, Some(&install.id), Some(KIND), page.offset(), page.fetch()).await?;
    let shown = found.iter().map(|row| run_shown(&install, row));
    let meant = |run: &wire::InstallRunbookRun| {
        wanted.runbook_id.as_ref().is_none_or(|wanted| *wanted == run.install_runbook_id)
    };
    Ok(List::new(shown.filter(meant).collect(), page))
}

/// A run of a runbook on an install.
#[utoipa::path(get, path = "/v1/installs/{install_id}/runbook-runs/{run_id}", tag = "runbooks", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("run_id" = String, Path)), responses((status = 200, body = wire::InstallRunbookRun), (status = 404, body = api::ErrorBody)))]
async fn get_run(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, run)): Path<(String, String)>,
) -> ApiResult<Json<wire::InstallRunbookRun>> {
    let install = state.store().install(&at.org, &install).await?;
    let id = WorkflowId::parse(&run).map_err(|_| StoreError::NotFound("run"))?;
    let loaded = state.conductor.workflow(&at.org, &id).await.map_err(|_| StoreError::NotFound("run"))?;
    if loaded.row.install_id != install.id || loaded.row.kind != KIND {
        return Err(StoreError::NotFound("run").into());
    }
    let steps = workflows::whole(&state, &loaded).await?.steps;
    Ok(Json(wire::InstallRunbookRun { steps, ..run_shown(&install, &loaded.row) }))
}
