//! Apps.

use api::control::{App, CreateApp};
use axum::Json;
use axum::extract::{Path, State};
use conductor::random_u128;
use http::StatusCode;
use model::AppId;
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get))
}

/// A page of things whose name contains `q`.
#[derive(Debug, Deserialize)]
pub(super) struct Search {
    #[serde(default)]
    pub(super) q: String,
    #[serde(flatten)]
    raw: std::collections::BTreeMap<String, String>,
}

impl Search {
    /// `serde(flatten)` hands numbers over as text, so they are read here.
    pub(super) fn page(&self) -> ApiResult<Page> {
        let number = |key: &str| {
            let Some(text) = self.raw.get(key) else { return Ok(None) };
            text.parse().map(Some).map_err(|_| ApiError::invalid(format!("`{key}` must be a number")))
        };
        Ok(Page { offset: number("offset")?, limit: number("limit")?, page: number("page")? })
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.raw.get(key).map(String::as_str).filter(|t| !t.is_empty())
    }
}

fn wire(app: store::App) -> App {
    App {
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
    model::name::check(&request.value.name).map_err(ApiError::invalid)?;
    let now = state.conductor.now();
    let idem = request.idempotency(&at.owner.account.id);
    let app = store::App {
        id: AppId::new(now, random_u128()),
        org_id: at.org.clone(),
        name: request.value.name,
        display_name: request.value.display_name,
        description: request.value.description,
        created_by: at.owner.account.id.clone(),
        created_at: now,
        updated_at: now,
    };
    let created = state.store().create_app(app, idem).await?;
    Ok((StatusCode::CREATED, Json(wire(state.store().app(&at.org, &created.id).await?))))
}

/// An app, by name or id.
#[utoipa::path(get, path = "/v1/apps/{app_id}", tag = "apps", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id")), responses((status = 200, body = App), (status = 404, body = api::ErrorBody)))]
async fn get(State(state): State<AppState>, Reader(at): Reader, Path(app): Path<String>) -> ApiResult<Json<App>> {
    Ok(Json(wire(state.store().app(&at.org, &app).await?)))
}
