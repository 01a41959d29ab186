//! Health for runners: what one is to observe, and what it saw.

use api::ErrorBody;
use api::runner::{HealthAnswer, HealthRequest, WatchAnswer};
use axum::Json;
use axum::extract::{Path, State};

use super::session::Signed;
use super::terraform::install_of;
use crate::AppState;
use crate::error::ApiResult;
use crate::request;

/// What the runner is to observe, signed for this very request.
#[utoipa::path(get, path = "/v1/runners/{runner_id}/watch", tag = "health", params(("runner_id" = String, Path)), responses((status = 200, body = WatchAnswer), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(super) async fn watch(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<WatchAnswer>> {
    let (org, _) = install_of(&state, &signed, &runner).await?;
    let session = &signed.session;
    let (version, watch) =
        state.conductor.watch_of(&org, &session.runner_id, session.generation, &signed.nonce).await?;
    Ok(Json(WatchAnswer { version, watch }))
}

/// Takes what the runner has observed. Only the current session may say so.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/health", tag = "health", params(("runner_id" = String, Path)), request_body = HealthRequest, responses((status = 200, body = HealthAnswer), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(super) async fn report(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<HealthAnswer>> {
    let (org, install) = install_of(&state, &signed, &runner).await?;
    let told: HealthRequest = request::parse(&signed.body)?;
    let again_s = state.conductor.note_health(&org, &install, told.observations).await?;
    Ok(Json(HealthAnswer { again_s }))
}
