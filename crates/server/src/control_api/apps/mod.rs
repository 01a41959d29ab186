//! Owns the routes of apps, their versions, components and actions.
//! Clients call them.
//! No rules of the app format: those are in `config`.
//!
//! Apps.

pub(crate) mod action_workflows;
pub(crate) mod component_configs;
pub(crate) mod components;
pub(crate) mod configs;

use api::control::{App, AppVariable, CreateApp, CreateAppVariable, Stamp, UpdateApp};
use axum::Json;
use axum::extract::{Path, State};
use conductor::apps::manage::{AppChange, WantedApp};
use http::StatusCode;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Admin, InOrg, Operator, Reader};
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(variables))
        .routes(routes!(set_variable))
        .routes(routes!(delete_variable))
}

/// A page of things whose name contains `q`.
#[derive(Debug, Deserialize)]
pub(crate) struct Search {
    #[serde(default)]
    pub(crate) q: String,
    #[serde(flatten)]
    raw: std::collections::BTreeMap<String, String>,
}

impl Search {
    /// `serde(flatten)` hands numbers over as text, so they are read here.
    pub(crate) fn page(&self) -> ApiResult<Page> {
        let number = |key: &str| {
            let Some(text) = self.raw.get(key) else { return Ok(None) };
            text.parse().map(Some).map_err(|_| ApiError::invalid(format!("`{key}` must be a number")))
        };
        Ok(Page { offset: number("offset")?, limit: number("limit")?, page: number("page")? })
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.raw.get(key).map(String::as_str).filter(|t| !t.is_empty())
    }
}

fn wire(app: store::App) -> App {
    App {
        config_repo: app.settings.config_repo,
        config_directory: app.settings.config_directory,
        label_colors: app.settings.label_colors,
        id: app.id,
        org_id: app.org_id,
        name: app.name,
        display_name: app.display_name,
        description: app.description,
        status: "active".into(),
        status_description: "active".into(),
        created_by_id: app.created_by,
        created_at: app.created_at,
        updated_at: app.updated_at,
    }
}

/// The apps of the org.
#[utoipa::path(get, path = "/v1/apps", tag = "apps", security(("token" = ["read-only"])), params(("q" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [App])))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<List<App>> {
    let page = search.page()?;
    let apps = state.store().apps(&at.org, &search.q, page.offset(), page.fetch()).await?;
    Ok(List::new(apps.into_iter().map(wire).collect(), page))
}

/// Makes an app.
#[utoipa::path(post, path = "/v1/apps", tag = "apps", security(("token" = ["operator"])), request_body = CreateApp, responses((status = 201, body = App), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    request: Create<CreateApp>,
) -> ApiResult<(StatusCode, Json<App>)> {
    let idem = request.idempotency(&at.owner.account.id);
    let CreateApp { name, display_name, description, .. } = request.value;
    let app = state.conductor.create_app(&at.by(), WantedApp { name, display_name, description }, idem).await?;
    Ok((StatusCode::CREATED, Json(wire(app))))
}

/// An app, by name or id.
#[utoipa::path(get, path = "/v1/apps/{app_id}", tag = "apps", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id")), responses((status = 200, body = App), (status = 404, body = api::ErrorBody)))]
async fn get(State(state): State<AppState>, Reader(at): Reader, Path(app): Path<String>) -> ApiResult<Json<App>> {
    Ok(Json(wire(state.store().app(&at.org, &app).await?)))
}

/// Changes an app: its name, what people read about it, and what clients keep with it.
#[utoipa::path(patch, path = "/v1/apps/{app_id}", tag = "apps", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = UpdateApp, responses((status = 200, body = App), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<UpdateApp>,
) -> ApiResult<Json<App>> {
    let app = state.store().app(&at.org, &app).await?;
    let wanted = request.value;
    let change = AppChange {
        name: wanted.name,
        display_name: wanted.display_name,
        description: wanted.description,
        config_repo: wanted.config_repo,
        config_directory: wanted.config_directory,
        label_colors: wanted.label_colors,
    };
    Ok(Json(wire(state.conductor.update_app(&at.by(), app, change).await?)))
}

/// Deletes an app that has no installs, with all its versions.
#[utoipa::path(delete, path = "/v1/apps/{app_id}", tag = "apps", security(("token" = ["admin"])), params(("app_id" = String, Path, description = "name or id")), responses((status = 200, body = bool), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn delete(State(state): State<AppState>, Admin(at): Admin, Path(app): Path<String>) -> ApiResult<Json<bool>> {
    let app = state.store().app(&at.org, &app).await?;
    state.conductor.delete_app(&at.by(), &app).await?;
    Ok(Json(true))
}

fn variable(at: &InOrg, app: &store::App, variable: store::Variable) -> AppVariable {
    AppVariable {
        stamp: Stamp {
            id: variable.id.to_string(),
            created_by_id: variable.created_by.to_string(),
            created_at: variable.created_at,
            updated_at: variable.updated_at,
            org_id: at.org.to_string(),
            app_id: app.id.to_string(),
            app_config_id: String::new(),
        },
        name: variable.name,
        length: variable.value.chars().count() as u64,
    }
}

/// The variables of an app, without their values. The dialect calls them secrets.
#[utoipa::path(get, path = "/v1/apps/{app_id}/secrets", tag = "apps", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [AppVariable]), (status = 404, body = api::ErrorBody)))]
async fn variables(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<AppVariable>> {
    let app = state.store().app(&at.org, &app).await?;
    let all = state.store().variables(&at.org, &app.id).await?.into_iter();
    let wanted = all.skip(page.offset() as usize).take(page.fetch() as usize);
    Ok(List::new(wanted.map(|v| variable(&at, &app, v)).collect(), page))
}

/// Sets a variable of an app: templates of all installs see it as `.nuon.app.variables.NAME`.
#[utoipa::path(post, path = "/v1/apps/{app_id}/secret", tag = "apps", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = CreateAppVariable, responses((status = 201, body = AppVariable), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn set_variable(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<CreateAppVariable>,
) -> ApiResult<(StatusCode, Json<AppVariable>)> {
    let app = state.store().app(&at.org, &app).await?;
    let CreateAppVariable { name, value } = request.value;
    let set = state.conductor.set_variable(&at.by(), &app, name, value).await?;
    Ok((StatusCode::CREATED, Json(variable(&at, &app, set))))
}

/// Deletes a variable of an app, by name or id.
#[utoipa::path(delete, path = "/v1/apps/{app_id}/secret/{secret_id}", tag = "apps", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id"), ("secret_id" = String, Path, description = "name or id")), responses((status = 200, body = bool), (status = 404, body = api::ErrorBody)))]
async fn delete_variable(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((app, variable)): Path<(String, String)>,
) -> ApiResult<Json<bool>> {
    let app = state.store().app(&at.org, &app).await?;
    state.conductor.delete_variable(&at.by(), &app, &variable).await?;
    Ok(Json(true))
}
