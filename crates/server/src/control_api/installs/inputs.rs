//! Inputs of installs, and what templates make of them.

use std::collections::BTreeMap;

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::apps::effective_inputs;
use conductor::{as_inputs, overrides};
use config::AppConfig;
use model::overrides::of_input;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Install, InstallInputs, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::control_api::apps::action_workflows::view;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, update)).routes(routes!(current)).routes(routes!(render))
}

pub(crate) const HIDDEN: &str = "***";
fn shown(config: &AppConfig, install: &Install, inputs: InstallInputs) -> wire::InstallInputs {
    let values = effective_inputs(config, &inputs.values);
    let hide = |(name, value): (&String, &String)| {
        let hidden = config.inputs.iter().any(|i| i.name == *name && i.sensitive) && !value.is_empty();
        (name.clone(), if hidden { HIDDEN.to_owned() } else { value.clone() })
    };
    let mut redacted: wire::Labels = values.iter().map(hide).collect();
    // As the dialect has them.
    redacted
        .extend(inputs.values.iter().filter(|(name, _)| of_input(name).is_some()).map(|(n, v)| (n.clone(), v.clone())));
    let laid = |over: config::ComponentOverride| wire::ComponentOverride {
        helm_values: over.helm_values,
        tf_vars: over.tf_vars,
    };
    let component_overrides = overrides(&inputs.values).into_iter().map(|(name, over)| (name, laid(over))).collect();
    wire::InstallInputs {
        stamp: wire::Stamp {
            id: inputs.id.to_string(),
            created_by_id: inputs.created_by.to_string(),
            created_at: inputs.created_at,
            updated_at: inputs.created_at,
            org_id: install.org_id.to_string(),
            app_id: String::new(),
            app_config_id: String::new(),
        },
        install_id: inputs.install_id.to_string(),
        version: inputs.version,
        // Nobody gets a sensitive value back, under whichever name.
        values: redacted.clone(),
        redacted_values: redacted,
        component_overrides,
        workflow_id: String::new(),
    }
}

/// The inputs of a request, with what it lays over components.
pub(crate) fn with_overrides(
    mut inputs: BTreeMap<String, String>,
    component_overrides: BTreeMap<String, wire::ComponentOverride>,
) -> BTreeMap<String, String> {
    let laid = |over: wire::ComponentOverride| config::ComponentOverride {
        helm_values: over.helm_values,
        tf_vars: over.tf_vars,
    };
    inputs.extend(as_inputs(&component_overrides.into_iter().map(|(name, over)| (name, laid(over))).collect()));
    inputs
}

/// The versions of an install's inputs, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/inputs", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallInputs]), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::InstallInputs>> {
    let install = state.store().install(&at.org, &install).await?;
    let config = state.conductor.declared(&install).await?;
    let found = state.store().inputs(&at.org, &install.id, page.offset(), page.fetch()).await?;
    Ok(List::new(found.into_iter().map(|inputs| shown(&config, &install, inputs)).collect(), page))
}

/// The inputs of an install as they are now.
#[utoipa::path(get, path = "/v1/installs/{install_id}/inputs/current", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::InstallInputs), (status = 404, body = api::ErrorBody)))]
async fn current(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<wire::InstallInputs>> {
    let install = state.store().install(&at.org, &install).await?;
    let inputs = state.store().current_inputs(&at.org, &install.id).await?.ok_or(StoreError::NotFound("inputs"))?;
    Ok(Json(shown(&state.conductor.declared(&install).await?, &install, inputs)))
}

/// Changes inputs of an install: those that are named, the others stay. An empty value takes the app's default again.
#[utoipa::path(patch, path = "/v1/installs/{install_id}/inputs", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::UpdateInstallInputs, responses((status = 200, body = wire::InstallInputs), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::UpdateInstallInputs>,
) -> ApiResult<Json<wire::InstallInputs>> {
    let install = state.store().install(&at.org, &install).await?;
    let config = state.conductor.declared(&install).await?;
    let wire::UpdateInstallInputs { inputs, component_overrides, no_deploy, .. } = request.value;
    let inputs = with_overrides(inputs, component_overrides);
    let (inputs, workflow) = state.conductor.update_inputs(&at.by(), &install, inputs, !no_deploy).await?;
    let workflow_id = workflow.map(|id| id.to_string()).unwrap_or_default();
    Ok(Json(wire::InstallInputs { workflow_id, ..shown(&config, &install, inputs) }))
}

#[derive(Debug, Deserialize)]
struct What {
    component: Option<String>,
    action: Option<String>,
}

/// What a component or an action would receive on an install. Sensitive values are masked.
#[utoipa::path(get, path = "/v1/installs/{install_id}/render", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("component" = Option<String>, Query, description = "name of a component"), ("action" = Option<String>, Query, description = "name of an action")), responses((status = 200, body = wire::Rendered), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn render(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(what): Params<What>,
) -> ApiResult<Json<wire::Rendered>> {
    let install = state.store().install(&at.org, &install).await?;
    // Whatever a template makes of a sensitive value, it is made of this.
    let view = view(&state, &at, &install, Some(HIDDEN)).await?;
    let (kind, name, value) = match (what.component, what.action) {
        (Some(name), None) => {
            let found = view.document.components.iter().find(|c| c.common.name == name);
            ("component", name, found.and_then(|c| serde_json::to_value(c).ok()))
        }
        (None, Some(name)) => {
            let found = view.document.actions.iter().find(|a| a.name == name);
            ("action", name, found.and_then(|a| serde_json::to_value(a).ok()))
        }
        _ => return Err(ApiError::invalid("name one `component` or one `action`")),
    };
    let value = value.ok_or_else(|| {
        let text =
            format!("app `{}`, version {}, has no {kind} `{name}`", view.app.name, view.config.version.unwrap_or(0));
        ApiError::new(api::ErrorCode::NotFound, text)
    })?;
    let mut value = value;
    if kind == "component"
        && let Some(inputs) = state.store().current_inputs(&at.org, &install.id).await?
        && let Some(over) = overrides(&inputs.values).remove(&name)
    {
        value["overrides"] = json!(over);
    }
    let rendering = conductor::render(&value, &view.tree.root);
    let problems = rendering
        .problems
        .into_iter()
        .map(|p| wire::RenderProblem { path: p.path, message: view.tree.masked(&p.message) })
        .collect();
    let rendered = masked(rendering.value, &view.tree);
    Ok(Json(wire::Rendered { name, kind: kind.into(), rendered, problems }))
}

fn masked(value: Value, tree: &conductor::apps::InstallTree) -> Value {
    match value {
        Value::String(text) => Value::String(tree.masked(&text)),
        Value::Array(items) => items.into_iter().map(|item| masked(item, tree)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, field)| (key, masked(field, tree))).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}
