//! What an install says about itself: labels, approvals, who keeps it, and which components are in.
//!
//! All of it lies in `installs.settings`, and changes by `Store::change_settings` alone.

use conductor::{SettingsChange, Toggle, overrides};
use std::collections::BTreeMap;

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use conductor::apps::own_labels;
use http::{StatusCode, header};
use model::overrides::of_input;
use serde_json::json;
use store::{EntityKind, Install, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::control_api::installs;
use crate::error::{ApiError, ApiResult};
use crate::request::Create;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(update))
        .routes(routes!(add_labels, remove_labels))
        .routes(routes!(create_config))
        .routes(routes!(update_config))
        .routes(routes!(toggle))
        .routes(routes!(file))
}

/// What a client asks for.
fn change_of(
    config: Option<wire::UpdateInstallConfig>,
    metadata: Option<wire::InstallMetadata>,
) -> ApiResult<SettingsChange> {
    let mut change = SettingsChange { managed_by: metadata.map(|metadata| metadata.managed_by), ..Default::default() };
    if let Some(config) = config {
        let stack = [&config.vpc_nested_template_url, &config.runner_nested_template_url];
        if stack.iter().any(|url| !url.is_empty()) || !config.custom_nested_stacks.is_empty() {
            return Err(ApiError::invalid("templates of the stack for one install are not supported yet")
                .hint("set them for all installs of the app, in `stack.toml`"));
        }
        change.approval_option = Some(config.approval_option).filter(|option| !option.is_empty());
        change.toggles = config.component_toggles;
        change.labels = config.labels;
    }
    Ok(change)
}

/// The settings of an install that is being created.
pub(crate) fn first(wanted: &wire::CreateInstall) -> ApiResult<SettingsChange> {
    let mut change = change_of(wanted.install_config.clone(), wanted.metadata.clone())?;
    if !wanted.labels.is_empty() {
        let mut labels = change.labels.unwrap_or_default();
        labels.extend(wanted.labels.clone());
        change.labels = Some(labels);
    }
    Ok(change)
}

/// What an install says about itself. There is one of it for each install, and it has the install's id.
pub(crate) fn shown(install: &Install) -> wire::InstallConfig {
    wire::InstallConfig {
        id: install.id.to_string(),
        install_id: install.id.to_string(),
        org_id: install.org_id.to_string(),
        approval_option: install.settings.approval_option.unwrap_or_default().as_str().to_owned(),
        created_by_id: install.created_by.to_string(),
        created_at: install.created_at,
        updated_at: install.updated_at,
        component_toggles: install.settings.components.clone(),
        labels: own_labels(install),
    }
}

pub(crate) fn metadata(install: &Install) -> Option<wire::InstallMetadata> {
    let managed_by = install.settings.managed_by.clone();
    (!managed_by.is_empty()).then_some(wire::InstallMetadata { managed_by })
}

/// Changes the name of an install, its approvals, its labels, who keeps it, and components that may be left out.
#[utoipa::path(patch, path = "/v1/installs/{install_id}", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::UpdateInstall, responses((status = 200, body = wire::Install), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::UpdateInstall>,
) -> ApiResult<Json<wire::Install>> {
    let install = state.store().install(&at.org, &install).await?;
    let wanted = request.value;
    let mut changes = change_of(wanted.install_config, wanted.metadata)?;
    changes.approval_option = Some(wanted.approval_option).filter(|o| !o.is_empty()).or(changes.approval_option);
    changes.toggles.extend(wanted.component_toggles);
    changes.labels = wanted.labels.or(changes.labels);
    changes.name = Some(wanted.name).filter(|name| !name.is_empty());
    let install = state.conductor.update_install(&at.by(), &install, changes).await?;
    Ok(Json(installs::wire(&state, install).await?))
}

/// Adds labels to an install; those that it has already get the new value.
#[utoipa::path(post, path = "/v1/installs/{install_id}/labels", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::AddInstallLabels, responses((status = 200, body = wire::Install), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn add_labels(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::AddInstallLabels>,
) -> ApiResult<Json<wire::Install>> {
    let install = state.store().install(&at.org, &install).await?;
    let install = state.conductor.add_labels(&at.by(), &install, request.value.labels).await?;
    Ok(Json(installs::wire(&state, install).await?))
}

/// Removes labels of an install's own. Those of the app stay; what is not there is gone already.
#[utoipa::path(delete, path = "/v1/installs/{install_id}/labels", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::RemoveInstallLabels, responses((status = 200, body = wire::Install), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn remove_labels(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::RemoveInstallLabels>,
) -> ApiResult<Json<wire::Install>> {
    let install = state.store().install(&at.org, &install).await?;
    let install = state.conductor.remove_labels(&at.by(), &install, request.value.keys).await?;
    Ok(Json(installs::wire(&state, install).await?))
}

/// Says what an install shall say about itself. It is there already; what is absent stays.
#[utoipa::path(post, path = "/v1/installs/{install_id}/configs", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::UpdateInstallConfig, responses((status = 201, body = wire::InstallConfig), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn create_config(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::UpdateInstallConfig>,
) -> ApiResult<(StatusCode, Json<wire::InstallConfig>)> {
    let install = state.store().install(&at.org, &install).await?;
    let change = change_of(Some(request.value), None)?;
    let install = state.conductor.update_install(&at.by(), &install, change).await?;
    Ok((StatusCode::CREATED, Json(shown(&install))))
}

/// Changes what an install says about itself.
#[utoipa::path(patch, path = "/v1/installs/{install_id}/configs/{config_id}", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id"), ("config_id" = String, Path)), request_body = wire::UpdateInstallConfig, responses((status = 201, body = wire::InstallConfig), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn update_config(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((install, config)): Path<(String, String)>,
    request: Create<wire::UpdateInstallConfig>,
) -> ApiResult<(StatusCode, Json<wire::InstallConfig>)> {
    let install = state.store().install(&at.org, &install).await?;
    if install.id.as_str() != config {
        return Err(StoreError::NotFound("config of the install").into());
    }
    let change = change_of(Some(request.value), None)?;
    let install = state.conductor.update_install(&at.by(), &install, change).await?;
    Ok((StatusCode::CREATED, Json(shown(&install))))
}

/// Switches a component of an install on or off, and starts what deploys it or tears it down. The workflow's id is empty where
/// there is nothing to do yet.
#[utoipa::path(post, path = "/v1/installs/{install_id}/components/{component_id}/toggle", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id"), ("component_id" = String, Path, description = "name or id")), request_body = wire::ToggleInstallComponent, responses((status = 201, body = wire::WorkflowStarted), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn toggle(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((install, component)): Path<(String, String)>,
    request: Create<wire::ToggleInstallComponent>,
) -> ApiResult<(StatusCode, Json<wire::WorkflowStarted>)> {
    let install = state.store().install(&at.org, &install).await?;
    let found = state.store().entity(&at.org, Some(&install.app_id), EntityKind::Component, &component).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let toggle = Toggle { component: found.name, on: request.value.enabled, plan_only: request.value.plan_only };
    let started = state.conductor.toggle_component(&at.by(), &install, toggle, idem).await?;
    let workflow_id = started.map(|id| id.to_string()).unwrap_or_default();
    Ok((StatusCode::CREATED, Json(wire::WorkflowStarted { workflow_id })))
}

/// An install as a file, which `ferry installs sync` takes. Sensitive inputs are left out.
#[utoipa::path(get, path = "/v1/installs/{install_id}/generate-cli-install-config", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404, body = api::ErrorBody)))]
async fn file(State(state): State<AppState>, Reader(at): Reader, Path(install): Path<String>) -> ApiResult<Response> {
    let install = state.store().install(&at.org, &install).await?;
    let given = state.store().current_inputs(&at.org, &install.id).await?.map(|i| i.values).unwrap_or_default();
    let document = state.conductor.document_of(&install).await?;
    let sensitive = document.iter().flat_map(|d| &d.config.inputs).filter(|input| input.sensitive);
    let sensitive: Vec<&str> = sensitive.map(|input| input.name.as_str()).collect();
    let text = as_file(&install, &given, &sensitive)?;
    let name = format!("attachment; filename=\"{}.toml\"", install.name);
    let headers = [(header::CONTENT_TYPE, "application/octet-stream".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, text).into_response())
}

fn as_file(install: &Install, given: &BTreeMap<String, String>, sensitive: &[&str]) -> ApiResult<String> {
    let config = shown(install);
    let mut document = json!({ "name": install.name, "approval_option": config.approval_option });
    for (account, value) in install.cloud.as_object().into_iter().flatten() {
        document[account] = value.clone();
    }
    let laid = overrides(given);
    let given = given.iter().filter(|(name, _)| of_input(name).is_none());
    let (hidden, inputs): (BTreeMap<_, _>, BTreeMap<_, _>) =
        given.partition(|(name, _)| sensitive.contains(&name.as_str()));
    let tables = [
        ("labels", json!(config.labels)),
        ("component_toggles", json!(config.component_toggles)),
        ("inputs", json!(inputs)),
        ("components", json!(laid)),
    ];
    for (key, table) in tables {
        if table.as_object().is_some_and(|table| !table.is_empty()) {
            document[key] = table;
        }
    }
    let text = toml::to_string(&document).map_err(|e| ApiError {
        internal: Some(e.to_string()),
        ..ApiError::new(api::ErrorCode::Internal, "the file can't be written")
    })?;
    if hidden.is_empty() {
        return Ok(text);
    }
    let names: Vec<&str> = hidden.keys().map(|name| name.as_str()).collect();
    Ok(format!("# Sensitive, so not in this file: {}\n{text}", names.join(", ")))
}
