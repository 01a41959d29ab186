//! The stack that the customer applies, what it tells when it was applied, and the end of an install.

use std::collections::BTreeMap;

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::{PhoneHome, STACK};
use http::StatusCode;
use model::{InstallId, Role, id};
use serde_json::{Map, Value, json};
use store::StoreError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page};

/// Words in what a stack tells that are about the call, not about the stack.
const ABOUT_THE_CALL: [&str; 3] = ["request_type", "phone_home_type", "install_inputs"];

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(get))
        .routes(routes!(phone_home))
        .routes(routes!(forget))
        .routes(routes!(schedules))
}

/// The stack of an install, every version of it, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/stack", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::InstallStack), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<wire::InstallStack>> {
    let install = state.store().install(&at.org, &install).await?;
    let versions = state.store().part_versions(&at.org, &install.id, STACK).await?;
    let newest = versions.first().and_then(|stack| stack["generation"].as_u64()).unwrap_or_default();
    let outputs = versions.first().and_then(|stack| stack["outputs"].as_object().cloned()).unwrap_or_default();
    let mut shown: Vec<wire::InstallStackVersion> = Vec::new();
    for stack in &versions {
        let generation = stack["generation"].as_u64().unwrap_or_default();
        let stack_id = stack_version_id(install.id.as_str(), generation);
        // A version is written again when it was applied: its last word counts.
        if shown.iter().any(|known| known.id == stack_id) {
            continue;
        }
        let status = if generation == newest { stack["status"].as_str().unwrap_or_default() } else { "outdated" };
        // Whoever knows it is the stack: it is not for those who may only look.
        let own = stack["phone_home_id"].as_str().filter(|_| at.role >= Role::Operator && generation == newest);
        let phone_home_id = own.unwrap_or_default().to_owned();
        let base = &state.config.control.public_url;
        let url = own.map(|id| format!("{base}/v1/installs/{}/phone-home/{id}", install.id)).unwrap_or_default();
        let local = install.platform == "local";
        shown.push(wire::InstallStackVersion {
            id: stack_id,
            install_id: install.id.to_string(),
            composite_status: wire::CompositeStatus { status: status.into(), status_human_description: String::new() },
            created_at: serde_json::from_value(stack["created_at"].clone()).unwrap_or(install.created_at),
            app_config_id: stack["config_id"].as_str().unwrap_or_default().to_owned(),
            // The command itself holds a credential, which is shown once, to whoever asks for it.
            contents: if local { format!("ferry runners join-command {}", install.name) } else { String::new() },
            phone_home_id,
            phone_home_url: url,
        });
    }
    let stack_id = id::twin("ins", install.id.as_str());
    Ok(Json(wire::InstallStack {
        id: stack_id.clone(),
        install_id: install.id.to_string(),
        versions: shown,
        install_stack_outputs: Some(wire::InstallStackOutputs { id: stack_id, data_contents: outputs })
            .filter(|outputs| !outputs.data_contents.is_empty()),
    }))
}

/// Each version has an id that says which it is.
fn stack_version_id(install: &str, generation: u64) -> String {
    let tail = format!("{generation:05}");
    let head = id::twin("isv", install);
    format!("{}{tail}", &head[..head.len() - tail.len().min(head.len())])
}

/// A stack tells that it was applied, and what came of it. Its unguessable id is the proof.
#[utoipa::path(post, path = "/v1/installs/{install_id}/phone-home/{phone_home_id}", tag = "installs", params(("install_id" = String, Path), ("phone_home_id" = String, Path)), request_body = Value, responses((status = 201, body = Value), (status = 200, description = "a deleted stack needs nothing", body = Value), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn phone_home(
    State(state): State<AppState>,
    Path((install, phone_home_id)): Path<(String, String)>,
    request: Create<Map<String, Value>>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    let install = InstallId::parse(&install).map_err(|_| StoreError::NotFound("stack"))?;
    let mut told = request.value;
    let kind = told.get("request_type").and_then(Value::as_str).unwrap_or("Create").to_owned();
    let inputs = match told.get("install_inputs") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(given) => serde_json::from_value(given.clone())
            .map_err(|_| ApiError::invalid("`install_inputs` is not an object of texts"))?,
    };
    told.retain(|name, _| !ABOUT_THE_CALL.contains(&name.as_str()));
    if kind == "Delete" {
        return Ok((StatusCode::OK, Json(json!({}))));
    }
    let told = PhoneHome { outputs: told, inputs };
    let hidden = |error| match error {
        conductor::Error::Store(StoreError::NotFound(_)) => StoreError::NotFound("stack").into(),
        other => other,
    };
    let workflow = state.conductor.phone_home(&install, &phone_home_id, told).await.map_err(hidden)?;
    Ok((StatusCode::CREATED, Json(workflow.map_or_else(|| json!({}), |id| json!({ "workflow_id": id })))))
}

/// Forgets an install: it is removed here, and its runner can't connect any more. What it has made in the customer's account stays there.
#[utoipa::path(post, path = "/v1/installs/{install_id}/forget", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::ForgetInstall, responses((status = 200, body = Value), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn forget(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::ForgetInstall>,
) -> ApiResult<Json<Value>> {
    let install = state.store().install(&at.org, &install).await?;
    state.conductor.forget_install(&at.by(), &install, request.value.force).await?;
    Ok(Json(json!({})))
}

/// What an install does by the clock, and what became of the last ticks.
#[utoipa::path(get, path = "/v1/installs/{install_id}/schedules", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = [wire::InstallSchedule]), (status = 404, body = api::ErrorBody)))]
async fn schedules(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<List<wire::InstallSchedule>> {
    let install = state.store().install(&at.org, &install).await?;
    let found = state.store().schedules(&at.org, &install.id).await?;
    let shown = found.into_iter().map(|schedule| wire::InstallSchedule {
        kind: schedule.kind,
        name: schedule.name,
        cron: schedule.cron,
        next_at: schedule.due_at,
        last_at: schedule.last_at,
        note: schedule.note,
        workflow_id: schedule.workflow_id.map(|id| id.to_string()).unwrap_or_default(),
    });
    // There are few: as many as the app has actions and components.
    Ok(List::new(shown.collect(), Page { limit: Some(u64::MAX), ..Page::default() }))
}
