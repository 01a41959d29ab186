//! Joining: a credential opens a new session generation, which fences the one before.

use api::ErrorCode;
use api::runner::{JoinAnswer, JoinRequest, KeysAnswer, Timing, join_proof};
use axum::Json;
use axum::extract::{Request, State};
use crash::crash_point;
use http::StatusCode;

use super::session::check_protocol;
use crate::AppState;
use crate::error::{ApiError, ApiResult};
use crate::request;

impl AppState {
    pub(super) fn wire_timing(&self) -> Timing {
        let t = &self.conductor.timing;
        Timing { hold_s: t.hold_s, lease_s: t.lease_s, renew_s: t.renew_s, offline_s: t.offline_s }
    }
}

/// The keys that sign orders and grants. A runner trusts them by fingerprint, never because they are listed here.
#[utoipa::path(get, path = "/v1/keys", tag = "sessions", responses((status = 200, body = KeysAnswer)))]
pub(super) async fn keys(State(state): State<AppState>) -> Json<KeysAnswer> {
    Json(KeysAnswer { keys: state.conductor.signing_keys().public })
}

/// Opens a session.
#[utoipa::path(post, path = "/v1/join", tag = "sessions", request_body = JoinRequest, responses((status = 201, body = JoinAnswer), (status = 401, body = api::ErrorBody)))]
pub(super) async fn join(State(state): State<AppState>, request: Request) -> ApiResult<(StatusCode, Json<JoinAnswer>)> {
    check_protocol(request.headers())?;
    let body = request::bytes(request, &state).await?;
    let answer = open_session(&state, &request::parse(&body)?).await?;
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(super) async fn open_session(state: &AppState, wanted: &JoinRequest) -> ApiResult<JoinAnswer> {
    if !join_proof(&wanted.public_key).verify(&wanted.public_key, &wanted.proof) {
        return Err(ApiError::new(ErrorCode::BadSignature, "the proof does not match the public key"));
    }
    let now = state.conductor.now();
    crash_point!("server.before_join");
    let JoinRequest { credential, public_key, version, hostname, .. } = wanted;
    let joined = state.conductor.join(credential, public_key, version, hostname).await?;
    crash_point!("server.joined");
    tracing::info!(runner = %joined.runner.id, generation = joined.generation, "a runner joined");
    Ok(JoinAnswer {
        runner_id: joined.runner.id,
        name: joined.runner.name,
        kind: joined.runner.kind,
        org_id: joined.runner.org_id,
        install_id: joined.runner.install_id,
        generation: joined.generation,
        keys: state.conductor.signing_keys().public,
        settings: joined.runner.settings,
        timing: state.wire_timing(),
        server_time: now,
    })
}
