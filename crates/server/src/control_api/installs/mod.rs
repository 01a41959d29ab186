//! Owns the routes of installs, their inputs, settings and stacks.
//! Clients call them.
//! No rules: handlers parse, authorize and render.
//!
//! Installs, ad-hoc action runs on them, and the archives that such runs may bring along.

pub(crate) mod inputs;
pub(crate) mod install_settings;
pub(crate) mod stacks;

use conductor::WantedInstall;
use std::collections::BTreeMap;
use std::sync::Arc;

use api::ErrorCode;
use api::control::{Archive, CreateActionRun, CreateInstall, Install, Job};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use conductor::apps::own_labels;
use conductor::{Document, NewAction};
use http::StatusCode;
use model::labels::{Labels, Selector};
use model::{AppId, ConfigId, Digest, JobType, OrgId};
use serde_json::json;
use store::StoreError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::config::Limits;
use crate::control_api::apps::Search;
use crate::control_api::jobs;
use crate::control_api::runners;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Params};

pub(crate) fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    let uploads = OpenApiRouter::new()
        .routes(routes!(put_archive, get_archive))
        .layer(DefaultBodyLimit::max(limits.archive_bytes));
    let scripts =
        OpenApiRouter::new().routes(routes!(run_action)).layer(DefaultBodyLimit::max(limits.large_body_bytes));
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(list_of_app, create))
        .routes(routes!(get))
        .merge(scripts)
        .merge(uploads)
}

pub(crate) async fn wire(state: &AppState, install: store::Install) -> ApiResult<Install> {
    let labels = state.conductor.install_labels(&install).await?;
    labelled(state, install, labels).await
}

async fn labelled(state: &AppState, install: store::Install, labels: Labels) -> ApiResult<Install> {
    let runner = state.store().runner(&install.org_id, install.runner_id.as_str()).await?;
    let (metadata, config) = (install_settings::metadata(&install), install_settings::shown(&install));
    let cloud = |key: &str| install.cloud.get(key).cloned();
    let status = state.conductor.install_status(&install).await?;
    Ok(Install {
        id: install.id,
        org_id: install.org_id,
        app_id: install.app_id,
        name: install.name,
        runner_id: install.runner_id,
        runner_status: runners::status(state, &runner).0.to_owned(),
        sandbox_status: status.sandbox.as_str().to_owned(),
        composite_component_status: status.components.as_str().to_owned(),
        workflow_id: String::new(),
        undeployed_inputs: Vec::new(),
        kept_at_version: None,
        latest_version: None,
        cloud_platform: install.platform,
        aws_account: cloud("aws_account").and_then(|v| serde_json::from_value(v).ok()),
        azure_account: cloud("azure_account").and_then(|v| serde_json::from_value(v).ok()),
        gcp_account: cloud("gcp_account").and_then(|v| serde_json::from_value(v).ok()),
        labels,
        metadata,
        install_config: Some(config),
        created_by_id: install.created_by,
        created_at: install.created_at,
        updated_at: install.updated_at,
    })
}

/// How many installs are looked at at once where a selector chooses.
const LOOK: u64 = 500;

/// A page of installs. Labels come from the app too, and may be templates: where a selector chooses, it is not the database
/// that does.
async fn page_of(state: &AppState, org: &OrgId, app: Option<&AppId>, search: &Search) -> ApiResult<List<Install>> {
    let page = search.page()?;
    let selector = Selector::parse(search.text("labels").unwrap_or_default()).map_err(ApiError::invalid)?;
    let mut shown = Vec::new();
    if selector.is_empty() {
        for install in state.store().installs(org, app, &search.q, page.offset(), page.fetch()).await? {
            shown.push(wire(state, install).await?);
        }
        return Ok(List::new(shown, page));
    }
    let mut known = LabelsOf::default();
    let (mut from, mut passed) = (0, 0);
    loop {
        let installs = state.store().installs(org, app, &search.q, from, LOOK).await?;
        let last = (installs.len() as u64) < LOOK;
        from += LOOK;
        for install in installs {
            let labels = known.of(state, &install).await?;
            if !selector.matches(&labels) {
                continue;
            }
            if passed < page.offset() {
                passed += 1;
                continue;
            }
            shown.push(labelled(state, install, labels).await?);
            if shown.len() as u64 == page.fetch() {
                return Ok(List::new(shown, page));
            }
        }
        if last {
            return Ok(List::new(shown, page));
        }
    }
}

/// All installs of the org that a search takes.
pub(crate) async fn selected(state: &AppState, org: &OrgId, search: &Search) -> ApiResult<Vec<store::Install>> {
    let selector = Selector::parse(search.text("labels").unwrap_or_default()).map_err(ApiError::invalid)?;
    let (mut found, mut labels) = (Vec::new(), LabelsOf::default());
    for from in (0..).step_by(LOOK as usize) {
        let installs = state.store().installs(org, None, &search.q, from, LOOK).await?;
        let last = (installs.len() as u64) < LOOK;
        for install in installs {
            if selector.is_empty() || selector.matches(&labels.of(state, &install).await?) {
                found.push(install);
            }
        }
        if last {
            break;
        }
    }
    Ok(found)
}

/// Labels of installs, some of which come from the config that they are at; each config is read once.
#[derive(Default)]
struct LabelsOf(BTreeMap<(AppId, Option<ConfigId>), Option<Arc<Document>>>);

impl LabelsOf {
    async fn of(&mut self, state: &AppState, install: &store::Install) -> ApiResult<Labels> {
        let key = (install.app_id.clone(), install.config_id.clone());
        if !self.0.contains_key(&key) {
            self.0.insert(key.clone(), state.conductor.document_of(install).await?);
        }
        Ok(match self.0.get(&key).and_then(Option::as_ref) {
            Some(document) => state.conductor.rendered_labels(install, &document.config).await?,
            None => own_labels(install),
        })
    }
}

/// The installs of the org.
#[utoipa::path(get, path = "/v1/installs", tag = "installs", security(("token" = ["read-only"])), params(("q" = Option<String>, Query), ("labels" = Option<String>, Query, description = "a selector: `env=prod,tier!=dev,team,!old`"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [Install])))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<List<Install>> {
    page_of(&state, &at.org, None, &search).await
}

/// The installs of an app.
#[utoipa::path(get, path = "/v1/apps/{app_id}/installs", tag = "installs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("q" = Option<String>, Query), ("labels" = Option<String>, Query, description = "a selector: `env=prod,tier!=dev,team,!old`"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [Install]), (status = 404, body = api::ErrorBody)))]
async fn list_of_app(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(search): Params<Search>,
) -> ApiResult<List<Install>> {
    let app = state.store().app(&at.org, &app).await?;
    page_of(&state, &at.org, Some(&app.id), &search).await
}

/// Makes an install of an app, with its runner.
#[utoipa::path(post, path = "/v1/apps/{app_id}/installs", tag = "installs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = CreateInstall, responses((status = 201, body = Install), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<CreateInstall>,
) -> ApiResult<(StatusCode, Json<Install>)> {
    let app = state.store().app(&at.org, &app).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = request.value;
    let (platform, cloud) = match (&wanted.aws_account, &wanted.azure_account, &wanted.gcp_account) {
        (None, None, None) => ("local", json!({})),
        (Some(aws), None, None) => ("aws", json!({ "aws_account": aws })),
        (None, Some(azure), None) => ("azure", json!({ "azure_account": azure })),
        (None, None, Some(gcp)) => ("gcp", json!({ "gcp_account": gcp })),
        _ => return Err(ApiError::invalid("an install lies in one cloud: give one account")),
    };
    let settings = install_settings::first(&wanted)?;
    let inputs = inputs::with_overrides(wanted.inputs, wanted.component_overrides);
    let wanted = WantedInstall { name: wanted.name, platform, cloud, settings, inputs };
    let (install, first) = state.conductor.create_install(&at.by(), &app, wanted, idem).await?;
    let workflow_id = first.map(|id| id.to_string()).unwrap_or_default();
    Ok((StatusCode::CREATED, Json(Install { workflow_id, ..wire(&state, install).await? })))
}

/// An install, by name or id.
#[utoipa::path(get, path = "/v1/installs/{install_id}", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = Install), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<Install>> {
    let install = state.store().install(&at.org, &install).await?;
    let undeployed_inputs = state.conductor.undeployed_inputs(&install).await?;
    let latest_version = state.store().active_config(&at.org, &install.app_id).await?.and_then(|config| config.version);
    let kept_at_version = match &install.config_id {
        Some(id) => state.store().config(&at.org, &install.app_id, id).await?.version,
        None => None,
    };
    Ok(Json(Install { undeployed_inputs, kept_at_version, latest_version, ..wire(&state, install).await? }))
}

/// Runs an action that carries its steps in the request.
#[utoipa::path(post, path = "/v1/installs/{install_id}/action-runs", tag = "actions", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = CreateActionRun, responses((status = 201, body = Job), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn run_action(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<CreateActionRun>,
) -> ApiResult<(StatusCode, Json<Job>)> {
    let install = state.store().install(&at.org, &install).await?;
    let runner = state.store().runner(&at.org, install.runner_id.as_str()).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = request.value;
    let timeout_s = wanted.timeout_s.unwrap_or(JobType::ActionsWorkflow.facts().timeout_s);
    let action = NewAction {
        name: wanted.name,
        steps: wanted.steps,
        run_env: wanted.run_env_vars,
        timeout_s,
        secrets: wanted.secrets,
        limits: wanted.limits,
        target: wanted.target,
        priority: wanted.priority,
    };
    let job = state.conductor.submit_action(install, &runner, action, at.actor(), idem).await?;
    crash::crash_point!("server.enqueued");
    Ok((StatusCode::CREATED, Json(jobs::wire_new(&state, job, &runner).await?)))
}

/// Uploads a source archive (tar), named by its SHA-256.
#[utoipa::path(put, path = "/v1/archives/{digest}", tag = "actions", security(("token" = ["operator"])), params(("digest" = String, Path, description = "`sha256:` and 64 hexadecimal characters")), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 201, body = Archive), (status = 400, body = api::ErrorBody)))]
async fn put_archive(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(digest): Path<String>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> ApiResult<(StatusCode, Json<Archive>)> {
    let limit = state.config.limits.archive_bytes >> 20;
    let body = body.map_err(|_| ApiError::new(ErrorCode::TooLarge, format!("an archive may have {limit} MiB")))?;
    let digest = Digest::parse(&digest).map_err(ApiError::invalid)?;
    let size_bytes = state.conductor.put_archive(&at.by(), &digest, body).await?;
    Ok((StatusCode::CREATED, Json(Archive { digest, size_bytes })))
}

/// Whether an archive is here, so that it need not be uploaded again.
#[utoipa::path(get, path = "/v1/archives/{digest}", tag = "actions", security(("token" = ["read-only"])), params(("digest" = String, Path, description = "`sha256:` and 64 hexadecimal characters")), responses((status = 200, body = Archive), (status = 404, body = api::ErrorBody)))]
async fn get_archive(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(digest): Path<String>,
) -> ApiResult<Json<Archive>> {
    let digest = Digest::parse(&digest).map_err(ApiError::invalid)?;
    let size_bytes = state.store().archive_size(&at.org, &digest).await?.ok_or(StoreError::NotFound("archive"))?;
    Ok(Json(Archive { digest, size_bytes }))
}
