//! The Control API: what the CLI, the dashboard and integrations call.

mod action_workflows;
mod apps;
mod builds;
mod component_configs;
mod components;
mod configs;
mod deploys;
mod events;
mod general;
mod inputs;
mod install_settings;
mod installs;
mod jobs;
mod logs;
mod orgs;
mod runbooks;
mod runners;
mod stacks;
mod tokens;
mod workflows;
mod workspaces;

use axum::Router;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::config::Limits;
use crate::docs::BearerToken;
use crate::{AppState, http};

pub(crate) use general::probes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Ferry Control API", description = "What the CLI, the dashboard and integrations call."),
    modifiers(&BearerToken)
)]
struct Document;

fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(general::routes())
        .merge(orgs::routes())
        .merge(tokens::routes())
        .merge(apps::routes())
        .merge(configs::routes(limits))
        .merge(components::routes())
        .merge(component_configs::routes(limits))
        .merge(builds::routes())
        .merge(action_workflows::routes(limits))
        .merge(inputs::routes())
        .merge(installs::routes(limits))
        .merge(install_settings::routes())
        .merge(workflows::routes())
        .merge(deploys::routes())
        .merge(stacks::routes())
        .merge(workspaces::routes())
        .merge(runbooks::routes())
        .merge(jobs::routes())
        .merge(runners::routes())
        .merge(logs::routes())
        .merge(events::routes())
}

/// The document that is committed as `api/openapi/control.json`.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes(&Limits::default()).split_for_parts().1
}

pub(crate) fn router(state: AppState) -> Router {
    http::finish(routes(&state.config.limits), state)
}
