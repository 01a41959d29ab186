//! The Control API: what the CLI, the dashboard and integrations call.

mod apps;
mod events;
mod general;
mod health;
mod installs;
mod jobs;
mod logs;
mod pages;
mod people;
mod registry;
mod runners;
mod terraform;
mod workflows;

use axum::Router;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::config::Limits;
use crate::docs::BearerToken;
use crate::{AppState, http};

pub(crate) use general::probes;
pub(crate) use logs::numbered::LineIndexes;

#[derive(OpenApi)]
#[openapi(
    info(title = "Ferry Control API", description = "What the CLI, the dashboard and integrations call."),
    modifiers(&BearerToken),
    // It refers to itself, so it is not found by following references.
    components(schemas(api::control::ReadmeItem))
)]
struct Document;

fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(general::routes())
        .merge(people::orgs::routes())
        .merge(people::tokens::routes())
        .merge(people::members::routes())
        .merge(people::sessions::routes())
        .merge(apps::routes())
        .merge(apps::configs::routes(limits))
        .merge(apps::components::routes())
        .merge(apps::component_configs::routes(limits))
        .merge(registry::builds::routes())
        .merge(apps::action_workflows::routes(limits))
        .merge(installs::inputs::routes())
        .merge(installs::routes(limits))
        .merge(installs::install_settings::routes())
        .merge(health::routes())
        .merge(workflows::routes())
        .merge(workflows::deploys::routes())
        .merge(installs::stacks::routes())
        .merge(terraform::workspaces::routes())
        .merge(workflows::runbooks::routes())
        .merge(jobs::routes())
        .merge(runners::routes())
        .merge(logs::routes())
        .merge(events::routes())
        .merge(pages::routes())
}

/// The document that is committed as `api/openapi/control.json`.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes(&Limits::default()).split_for_parts().1
}

pub(crate) fn router(state: AppState) -> Router {
    let cursor = axum::middleware::from_fn_with_state(state.clone(), pages::with_cursor);
    http::finish(routes(&state.config.limits), state).layer(cursor)
}
