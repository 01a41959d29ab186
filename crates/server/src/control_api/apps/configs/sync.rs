//! The one call that syncs a whole app.

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::apps::sync::WantedSync;
use http::StatusCode;

use crate::AppState;
use crate::auth::Operator;
use crate::control_api::registry::builds;
use crate::error::ApiResult;
use crate::request::Create;

/// Syncs a whole app: validates it, and makes it the active version. Equal content makes no new one.
#[utoipa::path(post, path = "/v1/apps/{app_id}/sync", tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::SyncApp, responses((status = 201, body = wire::SyncedApp), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
pub(super) async fn sync(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<wire::SyncApp>,
) -> ApiResult<(StatusCode, Json<wire::SyncedApp>)> {
    let app = state.store().app(&at.org, &app).await?;
    let wire::SyncApp { config, local_sources, cli_version, plan_only, .. } = request.value;
    let wanted = WantedSync { config, local_sources, cli_version, plan_only };
    let synced = state.conductor.sync_app(&at.by(), &app, wanted).await?;
    let mut builds = Vec::with_capacity(synced.builds.len());
    for build in synced.builds {
        // The sync has succeeded, whatever can't be shown of it.
        builds.extend(builds::shown(&state, build, false).await.ok());
    }
    let removed = synced.removed.into_iter().map(|(kind, entity)| wire::RemovedEntity {
        id: entity.id,
        name: entity.name,
        kind: kind.as_str().into(),
    });
    let answer = wire::SyncedApp {
        config: super::shown(&state, &synced.config, false).await?,
        unchanged: synced.unchanged,
        changes: synced.changes,
        removed: removed.collect(),
        builds,
        warnings: synced.warnings.iter().filter_map(|problem| serde_json::to_value(problem).ok()).collect(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}
