//! How a CLI signs in: by a code that a person types (RFC 8628), or by a browser on the same machine; and how it goes on.

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use conductor::{CliSecrets, Visitor};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use store::DevicePoll;

use super::From;
use super::limiter::Tried;
use crate::AppState;
use crate::error::{ApiError, ApiResult};
use crate::request::parse;

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/auth/device", post(begin))
        .route("/auth/device/token", post(poll))
        .route("/auth/cli/token", post(take))
        .route("/auth/refresh", post(refresh))
}

#[derive(Debug, Deserialize)]
struct Begin {
    /// What the person is shown.
    #[serde(default)]
    host: String,
}

async fn begin(State(state): State<AppState>, From(from): From, body: Bytes) -> ApiResult<Json<Value>> {
    state.limits.pass(Tried::Asking, &from.address)?;
    if let Some(why) = &state.web.refused {
        return Err(ApiError::new(api::ErrorCode::Forbidden, why.clone()));
    }
    let Begin { host } = parse(&body)?;
    let started = state.conductor.begin_device(&Visitor { name: host, address: from.address }).await?;
    Ok(Json(json!({
        "device_code": started.secret,
        "user_code": started.user_code,
        "verification_uri": format!("{}/device", state.web.base_url),
        "expires_in": started.expires_in_s,
        "interval": started.interval_s,
    })))
}

fn secrets(state: &AppState, secrets: &CliSecrets) -> Response {
    let left_s = (secrets.access_until.micros() - state.conductor.now().micros()) / 1_000_000;
    let body = json!({
        "access_token": secrets.access,
        "refresh_token": secrets.refresh,
        "token_type": "Bearer",
        "expires_in": left_s.max(1),
    });
    ([(http::header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// As RFC 8628 words it.
fn not_yet(error: &str, description: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error, "error_description": description }))).into_response()
}

#[derive(Debug, Deserialize)]
struct Poll {
    device_code: String,
}

async fn poll(State(state): State<AppState>, From(from): From, body: Bytes) -> ApiResult<Response> {
    state.limits.pass(Tried::Polling, &from.address)?;
    let Poll { device_code } = parse(&body)?;
    let (poll, given) = state.conductor.poll_device(&device_code, None, &from).await?;
    Ok(match (poll, given) {
        (DevicePoll::Approved(_), Some(given)) => secrets(&state, &given),
        (DevicePoll::Pending, _) => not_yet("authorization_pending", "the person has not answered yet"),
        (DevicePoll::SlowDown(s), _) => not_yet("slow_down", &format!("ask every {s} s at most")),
        (DevicePoll::Denied, _) => not_yet("access_denied", "the person refused"),
        (DevicePoll::Expired | DevicePoll::Approved(_), _) => {
            not_yet("expired_token", "the code is not good any more; run `ferry auth login` again")
        }
    })
}

#[derive(Debug, Deserialize)]
struct Take {
    code: String,
    verifier: String,
}

async fn take(State(state): State<AppState>, From(from): From, body: Bytes) -> ApiResult<Response> {
    state.limits.pass(Tried::Asking, &from.address)?;
    state.limits.check(Tried::Guessing, &from.address)?;
    let Take { code, verifier } = parse(&body)?;
    match state.conductor.poll_device(&code, Some(&verifier), &from).await? {
        (DevicePoll::Approved(_), Some(given)) => Ok(secrets(&state, &given)),
        _ => {
            state.limits.count(Tried::Guessing, &from.address);
            Ok(not_yet("expired_token", "the code is not good any more; run `ferry auth login` again"))
        }
    }
}

#[derive(Debug, Deserialize)]
struct Refresh {
    refresh_token: String,
}

async fn refresh(State(state): State<AppState>, From(from): From, body: Bytes) -> ApiResult<Response> {
    state.limits.pass(Tried::Polling, &from.address)?;
    let Refresh { refresh_token } = parse(&body)?;
    match state.conductor.refresh_cli(&refresh_token).await? {
        Some(given) => Ok(secrets(&state, &given)),
        None => {
            let text = "this sign-in has ended";
            Err(ApiError::new(api::ErrorCode::Unauthenticated, text).hint("sign in again with `ferry auth login`"))
        }
    }
}
