//! The Runner API: what runners call. Every request but the join is signed with the session's key.

mod executions;
mod health;
mod in_process;
mod join;
mod otlp;
mod poll;
mod session;
mod terraform;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::config::Limits;
use crate::control_api::probes;
use crate::{AppState, http};

pub use in_process::{Caller, RunnerApi};
pub(crate) use session::{SessionCache, SubjectCache, protocols};

#[derive(OpenApi)]
#[openapi(info(
    title = "Ferry Runner API",
    description = "What runners call. Every request but the join carries x-ferry-runner, x-ferry-generation, x-ferry-time, x-ferry-nonce and x-ferry-signature; those of an execution also x-ferry-execution-token."
))]
struct Document;

fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    let logs = OpenApiRouter::new()
        .routes(routes!(executions::append_log))
        .routes(routes!(otlp::logs))
        .routes(routes!(otlp::traces))
        .routes(routes!(otlp::metrics))
        .layer(DefaultBodyLimit::max(limits.log_body_bytes));
    let results = OpenApiRouter::new()
        .routes(routes!(executions::result))
        .routes(routes!(health::report))
        .routes(routes!(terraform::plan))
        .routes(routes!(terraform::write_state))
        .routes(routes!(terraform::put_piece, terraform::get_piece))
        .layer(DefaultBodyLimit::max(limits.large_body_bytes));
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(probes())
        .routes(routes!(join::keys))
        .routes(routes!(join::join))
        .routes(routes!(poll::poll))
        .routes(routes!(executions::renew))
        .routes(routes!(executions::leave))
        .routes(routes!(executions::start))
        .routes(routes!(executions::spec))
        .routes(routes!(executions::artifact))
        .routes(routes!(executions::registry_token))
        .routes(routes!(executions::pull_login))
        .routes(routes!(executions::progress))
        .routes(routes!(terraform::workspaces, terraform::open_workspace))
        .routes(routes!(terraform::workspace_head))
        .routes(routes!(terraform::lock))
        .routes(routes!(terraform::unlock))
        .routes(routes!(terraform::install_key))
        .routes(routes!(health::watch))
        .merge(results)
        .merge(logs)
}

/// The document that is committed as `api/openapi/runner.json`.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes(&Limits::default()).split_for_parts().1
}

pub(crate) fn router(state: AppState) -> Router {
    http::finish(routes(&state.config.limits), state)
}
