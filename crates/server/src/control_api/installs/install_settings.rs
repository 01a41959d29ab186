//! What an install says about itself: labels, approvals, who keeps it, and which components are in.
//!
//! All of it lies in `installs.settings`, and changes by `Store::change_settings` alone.

use std::collections::BTreeMap;

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use conductor::NewWorkflow;
use conductor::apps::own_labels;
use engine::WorkflowKind;
use http::{StatusCode, header};
use model::labels::{self, Labels};
use serde_json::{Value, json};
use store::{EntityKind, Install, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
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

/// Longest marker of who keeps an install.
const MANAGED_BY_BYTES_MAX: usize = 128;

/// What is to change; `None` and empty stay as they are.
#[derive(Debug, Clone, Default)]
struct Changes {
    approval_option: Option<String>,
    toggles: BTreeMap<String, bool>,
    labels: Option<Labels>,
    managed_by: Option<String>,
    name: Option<String>,
}

impl Changes {
    fn of(config: Option<wire::UpdateInstallConfig>, metadata: Option<wire::InstallMetadata>) -> ApiResult<Self> {
        let mut changes = Self { managed_by: metadata.map(|metadata| metadata.managed_by), ..Self::default() };
        if let Some(config) = config {
            let stack = [&config.vpc_nested_template_url, &config.runner_nested_template_url];
            if stack.iter().any(|url| !url.is_empty()) || !config.custom_nested_stacks.is_empty() {
                return Err(ApiError::invalid("templates of the stack for one install are not carried out yet")
                    .hint("set them for all installs of the app, in `stack.toml`"));
            }
            changes.approval_option = Some(config.approval_option);
            changes.toggles = config.component_toggles;
            changes.labels = config.labels;
        }
        changes.approval_option = changes.approval_option.filter(|option| !option.is_empty());
        Ok(changes)
    }

    /// Whether all of it may be said of an install.
    async fn check(&self, state: &AppState, install: &Install) -> ApiResult<()> {
        match self.approval_option.as_deref() {
            None | Some("prompt" | "approve-all") => {}
            Some(other) => {
                let text = format!("`{other}` is not an approval option: use prompt or approve-all");
                return Err(ApiError::invalid(text));
            }
        }
        if let Some(name) = &self.name {
            model::name::check(name).map_err(ApiError::invalid)?;
        }
        if let Some(labels) = &self.labels {
            labels::check(labels).map_err(ApiError::invalid)?;
        }
        if self
            .managed_by
            .as_ref()
            .is_some_and(|by| by.len() > MANAGED_BY_BYTES_MAX || by.chars().any(char::is_control))
        {
            return Err(ApiError::invalid(format!("`managed_by` is one line of at most {MANAGED_BY_BYTES_MAX} bytes")));
        }
        for name in self.toggles.keys() {
            toggleable(state, install, name).await?;
        }
        Ok(())
    }

    fn apply(&self, settings: &mut Value) {
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                settings[key] = value;
            }
        };
        put("approval_option", self.approval_option.as_ref().map(|option| json!(option)));
        put("labels", self.labels.as_ref().map(|labels| json!(labels)));
        put("managed_by", self.managed_by.as_ref().map(|by| json!(by)));
        for (name, on) in &self.toggles {
            settings["components"][name] = json!(on);
        }
    }
}

/// A component that may be left out.
async fn toggleable(state: &AppState, install: &Install, name: &str) -> ApiResult<()> {
    let document = state.conductor.document_of(install).await?;
    let components = document.iter().flat_map(|document| &document.config.components);
    let Some(component) = components.into_iter().find(|component| component.common.name == name) else {
        return Err(ApiError::invalid(format!("the app has no component `{name}`")));
    };
    if component.common.toggleable {
        return Ok(());
    }
    Err(ApiError::invalid(format!("component `{name}` can't be left out: it is not `toggleable`"))
        .hint("write `toggleable = true` into its file, and sync the app"))
}

async fn change(state: &AppState, at: &InOrg, install: &Install, changes: Changes) -> ApiResult<Install> {
    changes.check(state, install).await?;
    let now = state.conductor.now();
    let changed = state.store().change_settings(&at.org, &install.id, at.actor(), now, move |install| {
        changes.apply(&mut install.settings);
        if let Some(name) = &changes.name {
            install.name.clone_from(name);
        }
        Ok(())
    });
    Ok(changed.await?)
}

/// The settings of an install that is being made.
pub(crate) async fn first(state: &AppState, install: &Install, wanted: &wire::CreateInstall) -> ApiResult<Value> {
    let mut changes = Changes::of(wanted.install_config.clone(), wanted.metadata.clone())?;
    if !wanted.labels.is_empty() {
        let mut labels = changes.labels.unwrap_or_default();
        labels.extend(wanted.labels.clone());
        changes.labels = Some(labels);
    }
    changes.check(state, install).await?;
    let mut settings = json!({});
    changes.apply(&mut settings);
    Ok(settings)
}

/// What an install says about itself. There is one of it for each install, and it has the install's id.
pub(crate) fn shown(install: &Install) -> wire::InstallConfig {
    wire::InstallConfig {
        id: install.id.to_string(),
        install_id: install.id.to_string(),
        org_id: install.org_id.to_string(),
        approval_option: install.settings["approval_option"].as_str().unwrap_or("prompt").to_owned(),
        created_by_id: install.created_by.to_string(),
        created_at: install.created_at,
        updated_at: install.updated_at,
        component_toggles: serde_json::from_value(install.settings["components"].clone()).unwrap_or_default(),
        labels: own_labels(install),
    }
}

pub(crate) fn metadata(install: &Install) -> Option<wire::InstallMetadata> {
    let managed_by = install.settings["managed_by"].as_str().filter(|by| !by.is_empty())?;
    Some(wire::InstallMetadata { managed_by: managed_by.to_owned() })
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
    let mut changes = Changes::of(wanted.install_config, wanted.metadata)?;
    changes.approval_option = Some(wanted.approval_option).filter(|o| !o.is_empty()).or(changes.approval_option);
    changes.toggles.extend(wanted.component_toggles);
    changes.labels = wanted.labels.or(changes.labels);
    changes.name = Some(wanted.name).filter(|name| !name.is_empty());
    let install = change(&state, &at, &install, changes).await?;
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
    let added = request.value.labels;
    labels::check(&added).map_err(ApiError::invalid)?;
    relabel(&state, &at, &install, move |labels| labels.extend(added.clone())).await
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
    let removed = request.value.keys;
    relabel(&state, &at, &install, move |labels| labels.retain(|key, _| !removed.contains(key))).await
}

async fn relabel(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    how: impl Fn(&mut Labels) + Send + Sync + 'static,
) -> ApiResult<Json<wire::Install>> {
    let now = state.conductor.now();
    let changed = state.store().change_settings(&at.org, &install.id, at.actor(), now, move |install| {
        let settings = &mut install.settings;
        let mut labels: Labels = serde_json::from_value(settings["labels"].clone()).unwrap_or_default();
        how(&mut labels);
        labels::check(&labels).map_err(StoreError::Conflict)?;
        settings["labels"] = json!(labels);
        Ok(())
    });
    Ok(Json(installs::wire(state, changed.await?).await?))
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
    let install = change(&state, &at, &install, Changes::of(Some(request.value), None)?).await?;
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
    let install = change(&state, &at, &install, Changes::of(Some(request.value), None)?).await?;
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
    let (component, on) = (found.name, request.value.enabled);
    let changes = Changes { toggles: BTreeMap::from([(component.clone(), on)]), ..Changes::default() };
    changes.check(&state, &install).await?;

    let (_, parts) = state.store().install_parts(&at.org, &install.id, None).await?;
    let there = parts.get(&format!("components/{component}")).is_some_and(conductor::is_there);
    let work = match on {
        true if parts.values().any(conductor::is_there) => {
            Some(WorkflowKind::ManualDeploy { component, dependents: false })
        }
        false if there => Some(WorkflowKind::TeardownComponent { component, with_dependents: false, force: false }),
        _ => None,
    };
    let mut workflow_id = String::new();
    if let Some(kind) = work {
        // It begins before the switch is turned: what is refused turns nothing, and a second try finds the same workflow.
        let mut turned = install.clone();
        changes.apply(&mut turned.settings);
        let mut new = NewWorkflow::new(kind);
        new.request.plan_only = request.value.plan_only;
        let idem = request.idempotency(&at.owner.account.id);
        let started = state.conductor.start_workflow(&turned, new, &at.owner.account.id, idem).await;
        workflow_id = started.map_err(switch_those_off_first)?.to_string();
    }
    if !request.value.plan_only {
        change(&state, &at, &install, changes).await?;
    }
    Ok((StatusCode::CREATED, Json(wire::WorkflowStarted { workflow_id })))
}

fn switch_those_off_first(error: StoreError) -> ApiError {
    let hint = match &error {
        StoreError::HasDependents { dependents, .. } => Some(format!("switch off {} first", dependents.join(", "))),
        _ => None,
    };
    let error = ApiError::from(error);
    if let Some(hint) = hint { error.hint(hint) } else { error }
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
    let (hidden, inputs): (BTreeMap<_, _>, BTreeMap<_, _>) =
        given.iter().partition(|(name, _)| sensitive.contains(&name.as_str()));
    let tables = [
        ("labels", json!(config.labels)),
        ("component_toggles", json!(config.component_toggles)),
        ("inputs", json!(inputs)),
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
