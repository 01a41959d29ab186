//! Orgs.

use api::control::{CreateOrg, Org};
use axum::Json;
use axum::extract::State;
use conductor::random_u128;
use http::StatusCode;
use model::runner::RunnerKind;
use model::{OrgId, RunnerId};
use store::NewRunner;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Caller, Reader};
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

/// What can be said about a simulation.
const SIMULATION: [&str; 4] = ["seed", "step_ms", "fail_percent", "drift_percent"];

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
    if owner.org_id.is_some() {
        let text = "this token is good for one org only; use one of the account itself";
        return Err(ApiError::new(api::ErrorCode::Forbidden, text));
    }
    model::name::check(&request.value.name).map_err(ApiError::invalid)?;
    let settings = request.value.simulation.iter().flatten();
    if let Some((name, _)) = settings.into_iter().find(|(name, _)| !SIMULATION.contains(&name.as_str())) {
        return Err(ApiError::invalid(format!("a simulation has no `{name}`: it has {}", SIMULATION.join(", "))));
    }
    for (name, value) in request.value.simulation.iter().flatten() {
        let most = if name.ends_with("percent") {
            100
        } else if name == "step_ms" {
            3_600_000
        } else {
            u64::MAX
        };
        if *value > most {
            return Err(ApiError::invalid(format!("`{name}` of a simulation is at most {most}")));
        }
    }
    let now = state.conductor.now();
    let id = OrgId::new(now, random_u128());
    let runner = NewRunner {
        id: RunnerId::new(now, random_u128()),
        org_id: id.clone(),
        name: "build".into(),
        kind: RunnerKind::Build,
        install_id: None,
    };
    let org = store::Org {
        id,
        name: request.value.name.clone(),
        sandbox_mode: request.value.use_sandbox_mode,
        simulation: serde_json::json!(request.value.simulation.clone().unwrap_or_default()),
        build_runner_id: runner.id.clone(),
        created_by: owner.account.id.clone(),
        created_at: now,
        updated_at: now,
    };
    let idem = request.idempotency(&owner.account.id);
    let created = state.store().create_org(org, runner, idem).await?;
    let id = OrgId::parse(&created.id).map_err(|e| ApiError::invalid(e.to_string()))?;
    Ok((StatusCode::CREATED, Json(wire(state.store().org(&id).await?))))
}

/// The org that the request names.
#[utoipa::path(get, path = "/v1/orgs/current", tag = "orgs", security(("token" = ["read-only"])), responses((status = 200, body = Org)))]
async fn current(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<Org>> {
    Ok(Json(wire(state.store().org(&at.org).await?)))
}
