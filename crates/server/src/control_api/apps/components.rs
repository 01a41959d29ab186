//! Components of an app.

use conductor::apps::manage::WantedEntity;
use std::collections::BTreeMap;

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use model::AppId;
use store::{App, Entity, EntityChange, EntityKind, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
use crate::control_api::apps::Search;
use crate::control_api::apps::component_configs;
use crate::control_api::apps::configs::Known;
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

pub(crate) const KIND: EntityKind = EntityKind::Component;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_of_app, create))
        .routes(routes!(of_app))
        .routes(routes!(list))
        .routes(routes!(get, update, retire))
        .routes(routes!(latest_config))
        .routes(routes!(configs_of))
}

/// The dialect's word for a type.
pub(crate) fn wire_type(kind: &str) -> &str {
    match kind {
        "container_image" => "external_image",
        other => other,
    }
}

/// Of a component or an action.
pub(crate) fn stamp(entity: &Entity) -> wire::Stamp {
    wire::Stamp {
        id: entity.id.clone(),
        created_by_id: entity.created_by.to_string(),
        created_at: entity.created_at,
        updated_at: entity.updated_at,
        org_id: entity.org_id.to_string(),
        app_id: entity.app_id.to_string(),
        app_config_id: String::new(),
    }
}

pub(crate) fn shown(component: Entity, versions: u64) -> wire::Component {
    let resolved = if component.var_name.is_empty() { component.name.clone() } else { component.var_name.clone() };
    wire::Component {
        stamp: stamp(&component),
        name: component.name,
        status: "active".into(),
        component_type: wire_type(component.entity_type.as_deref().unwrap_or("unknown")).into(),
        resolved_var_name: resolved,
        status_description: "active".into(),
        var_name: component.var_name,
        labels: component.labels,
        dependencies: component.dependencies,
        config_versions: versions,
    }
}

async fn shown_with_count(state: &AppState, component: Entity) -> ApiResult<wire::Component> {
    let known = Known::of(state, &component.org_id, &component.app_id).await?;
    let versions = known.versions(&component.id);
    Ok(shown(component, versions))
}

async fn listed(state: &AppState, at: &InOrg, app: Option<&App>, search: &Search) -> ApiResult<List<wire::Component>> {
    let page = search.page()?;
    let app_id = app.map(|a| &a.id);
    let found = state.store().entities(&at.org, app_id, KIND, &search.q, page.offset(), page.fetch()).await?;
    let mut known: BTreeMap<AppId, Known> = BTreeMap::new();
    let mut components = Vec::with_capacity(found.len());
    for component in found {
        if !known.contains_key(&component.app_id) {
            known.insert(component.app_id.clone(), Known::of(state, &at.org, &component.app_id).await?);
        }
        let versions = known.get(&component.app_id).map_or(0, |known| known.versions(&component.id));
        components.push(shown(component, versions));
    }
    Ok(List::new(components, page))
}

/// The components of an app, by name.
#[utoipa::path(get, path = "/v1/apps/{app_id}/components", tag = "components", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("q" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::Component]), (status = 404, body = api::ErrorBody)))]
async fn list_of_app(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(search): Params<Search>,
) -> ApiResult<List<wire::Component>> {
    let app = state.store().app(&at.org, &app).await?;
    listed(&state, &at, Some(&app), &search).await
}

/// The components of all apps of the org, by name.
#[utoipa::path(get, path = "/v1/components", tag = "components", security(("token" = ["read-only"])), params(("q" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::Component])))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<List<wire::Component>> {
    listed(&state, &at, None, &search).await
}

/// Makes a component that no config names yet.
#[utoipa::path(post, path = "/v1/apps/{app_id}/components", tag = "components", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::CreateComponent, responses((status = 201, body = wire::Component), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<wire::CreateComponent>,
) -> ApiResult<(StatusCode, Json<wire::Component>)> {
    let app = state.store().app(&at.org, &app).await?;
    let wanted = request.value;
    let wanted = WantedEntity {
        kind: KIND,
        name: wanted.name,
        var_name: wanted.var_name,
        labels: wanted.labels,
        dependencies: wanted.dependencies,
    };
    let made = state.conductor.create_entity(&at.by(), &app, wanted).await?;
    Ok((StatusCode::CREATED, Json(shown(made, 0))))
}

/// A component of an app, by name or id.
#[utoipa::path(get, path = "/v1/apps/{app_id}/component/{component_name_or_id}", tag = "components", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("component_name_or_id" = String, Path)), responses((status = 200, body = wire::Component), (status = 404, body = api::ErrorBody)))]
async fn of_app(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((app, component)): Path<(String, String)>,
) -> ApiResult<Json<wire::Component>> {
    let app = state.store().app(&at.org, &app).await?;
    let component = state.store().entity(&at.org, Some(&app.id), KIND, &component).await?;
    Ok(Json(shown_with_count(&state, component).await?))
}

/// A component, by id, or by a name that only one app has.
#[utoipa::path(get, path = "/v1/components/{component_id}", tag = "components", security(("token" = ["read-only"])), params(("component_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::Component), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(component): Path<String>,
) -> ApiResult<Json<wire::Component>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    Ok(Json(shown_with_count(&state, component).await?))
}

/// Changes what is known of a component beside its configs.
#[utoipa::path(patch, path = "/v1/components/{component_id}", tag = "components", security(("token" = ["operator"])), params(("component_id" = String, Path, description = "name or id")), request_body = wire::UpdateComponent, responses((status = 200, body = wire::Component), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(component): Path<String>,
    request: Create<wire::UpdateComponent>,
) -> ApiResult<Json<wire::Component>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let wanted = request.value;
    let change = EntityChange {
        name: Some(wanted.name),
        var_name: wanted.var_name,
        labels: wanted.labels,
        dependencies: wanted.dependencies,
        retire: false,
    };
    let changed = state.conductor.update_entity(&at.by(), KIND, &component, change).await?;
    Ok(Json(shown_with_count(&state, changed).await?))
}

/// Retires a component that no active config names any more.
#[utoipa::path(delete, path = "/v1/components/{component_id}", tag = "components", security(("token" = ["operator"])), params(("component_id" = String, Path, description = "name or id")), responses((status = 200, body = bool), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn retire(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(component): Path<String>,
) -> ApiResult<Json<bool>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    state.conductor.retire_entity(&at.by(), KIND, &component).await?;
    Ok(Json(true))
}

/// The newest config of a component.
#[utoipa::path(get, path = "/v1/components/{component_id}/configs/latest", tag = "components", security(("token" = ["read-only"])), params(("component_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::ComponentConfigConnection), (status = 404, body = api::ErrorBody)))]
async fn latest_config(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(component): Path<String>,
) -> ApiResult<Json<wire::ComponentConfigConnection>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let section = state.store().sections_of(&at.org, &component.id, 0, 1).await?.pop();
    let section = section.ok_or(StoreError::NotFound("config"))?;
    let config = state.store().config(&at.org, &component.app_id, &section.config_id).await?;
    let known = Known::of(&state, &at.org, &component.app_id).await?;
    Ok(Json(component_configs::connection(&known, &config, &section)?))
}

/// The configs of a component, newest first.
#[utoipa::path(get, path = "/v1/components/{component_id}/configs", tag = "components", security(("token" = ["read-only"])), params(("component_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::ComponentConfigConnection]), (status = 404, body = api::ErrorBody)))]
async fn configs_of(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(component): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::ComponentConfigConnection>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let known = Known::of(&state, &at.org, &component.app_id).await?;
    let mut found = Vec::new();
    for section in state.store().sections_of(&at.org, &component.id, page.offset(), page.fetch()).await? {
        let config = state.store().config(&at.org, &component.app_id, &section.config_id).await?;
        found.push(component_configs::connection(&known, &config, &section)?);
    }
    Ok(List::new(found, page))
}
