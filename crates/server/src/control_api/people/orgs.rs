//! Orgs.

use api::control::{CreateOrg, Org};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Caller, Reader};
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(current))
}

fn wire(org: store::Org) -> Org {
    Org {
        id: org.id,
        name: org.name,
        status: "active".into(),
        status_description: "active".into(),
        sandbox_mode: org.sandbox_mode,
        created_by_id: org.created_by,
        created_at: org.created_at,
        updated_at: org.updated_at,
        build_runner_id: org.build_runner_id,
    }
}

/// The orgs of this account.
#[utoipa::path(get, path = "/v1/orgs", tag = "orgs", security(("token" = ["any"])), params(("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [Org])))]
async fn list(
    State(state): State<AppState>,
    Caller(owner): Caller,
    Params(page): Params<Page>,
) -> ApiResult<List<Org>> {
    let orgs = state.store().orgs_of(&owner.account.id).await?;
    let reachable = orgs.into_iter().filter(|o| owner.role_in(&o.id).is_some());
    let window = reachable.skip(page.offset() as usize).take(page.fetch() as usize);
    Ok(List::new(window.map(wire).collect(), page))
}

/// Makes an org, with its build runner; the account becomes its admin.
#[utoipa::path(post, path = "/v1/orgs", tag = "orgs", security(("token" = ["any"])), request_body = CreateOrg, responses((status = 201, body = Org), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Caller(owner): Caller,
    request: Create<CreateOrg>,
) -> ApiResult<(StatusCode, Json<Org>)> {
    let idem = request.idempotency(&owner.account.id);
    let wanted = conductor::WantedOrg {
        name: request.value.name,
        simulated: request.value.use_sandbox_mode,
        simulation: request.value.simulation.unwrap_or_default(),
    };
    let org = state.conductor.create_org(&owner, wanted, idem).await?;
    Ok((StatusCode::CREATED, Json(wire(org))))
}

/// The org that the request names.
#[utoipa::path(get, path = "/v1/orgs/current", tag = "orgs", security(("token" = ["read-only"])), responses((status = 200, body = Org)))]
async fn current(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<Org>> {
    Ok(Json(wire(state.store().org(&at.org).await?)))
}
