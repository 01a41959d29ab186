//! What OpenTelemetry exporters send: logs, traces and metrics, in the name of one runner.

use std::io::Read as _;

use api::{ErrorCode, headers};
use axum::extract::{FromRequest as _, Request, State};
use axum::response::{IntoResponse as _, Response};
use flate2::read::MultiGzDecoder;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use model::log::Pipe;
use model::{OrgId, RunnerId};
use otlp::{Encoding, Signal};
use store::StoreError;

use super::session::Signed;
use crate::error::{ApiError, ApiResult};
use crate::{AppState, auth, request};

/// What a message may hold after decompression: in memory it takes a few times as much.
const PLAIN_BYTES_MAX: u64 = 16 << 20;
/// Why records are refused.
const TOO_LARGE: &str = "records of more than 256 KiB, and those beyond 20,000 or 16 MiB of one request, are not taken";
const QUOTA: &str = "the logs of the org take all of its quota (`ferry orgs logs`)";

/// Log records of any OpenTelemetry exporter (OTLP over HTTP; protobuf or JSON, gzip). They appear in the telemetry of the runner that the
/// token was made for, `/v1/log-streams/…`, within that runner's install alone.
#[utoipa::path(post, path = "/v1/logs", tag = "telemetry", security(("telemetry-token" = [])), request_body(content = Vec<u8>, content_type = "application/x-protobuf"), responses((status = 200, description = "taken, or partly refused", body = Vec<u8>, content_type = "application/x-protobuf"), (status = 400, body = api::ErrorBody), (status = 401, body = api::ErrorBody), (status = 415, body = api::ErrorBody)))]
pub(super) async fn logs(State(state): State<AppState>, request: Request) -> ApiResult<Response> {
    take(state, Signal::Logs, request).await
}

/// Spans of any OpenTelemetry exporter; see `/v1/logs`.
#[utoipa::path(post, path = "/v1/traces", tag = "telemetry", security(("telemetry-token" = [])), request_body(content = Vec<u8>, content_type = "application/x-protobuf"), responses((status = 200, description = "taken, or partly refused", body = Vec<u8>, content_type = "application/x-protobuf"), (status = 400, body = api::ErrorBody), (status = 401, body = api::ErrorBody), (status = 415, body = api::ErrorBody)))]
pub(super) async fn traces(State(state): State<AppState>, request: Request) -> ApiResult<Response> {
    take(state, Signal::Traces, request).await
}

/// Metrics of any OpenTelemetry exporter, a record for each data point; see `/v1/logs`.
#[utoipa::path(post, path = "/v1/metrics", tag = "telemetry", security(("telemetry-token" = [])), request_body(content = Vec<u8>, content_type = "application/x-protobuf"), responses((status = 200, description = "taken, or partly refused", body = Vec<u8>, content_type = "application/x-protobuf"), (status = 400, body = api::ErrorBody), (status = 401, body = api::ErrorBody), (status = 415, body = api::ErrorBody)))]
pub(super) async fn metrics(State(state): State<AppState>, request: Request) -> ApiResult<Response> {
    take(state, Signal::Metrics, request).await
}

async fn take(state: AppState, signal: Signal, request: Request) -> ApiResult<Response> {
    let headers = request.headers().clone();
    let content_type = text(&headers, &CONTENT_TYPE);
    let encoding = Encoding::of(content_type).ok_or_else(|| {
        ApiError::new(ErrorCode::UnsupportedMediaType, format!("`{content_type}` is no encoding of OTLP"))
            .hint("send application/x-protobuf or application/json")
    })?;
    // Who may not is told so before anything is read.
    let (org, runner, body) = if headers.contains_key(headers::SIGNATURE) {
        let Signed { session, body, .. } = Signed::from_request(request, &state).await?;
        if state.store().session(&session.runner_id, session.generation).await?.ended {
            return Err(ApiError::new(ErrorCode::SessionFenced, "a newer session has taken this runner's place"));
        }
        (session.org_id.clone(), session.runner_id.clone(), body)
    } else {
        let (org, runner) = bearer(&state, &headers).await?;
        (org, runner, request::bytes(request, &state).await?)
    };
    // Few are unpacked at once: a message takes several times its size.
    let _turn = state.otlp_turns.acquire().await.map_err(|_| ApiError::new(ErrorCode::Unavailable, "closing"))?;
    let now = state.conductor.now();
    let read = tokio::task::spawn_blocking(move || {
        let body = unpack(&headers, body)?;
        otlp::decode(signal, encoding, &body, now.nanos()).map_err(|error| ApiError::invalid(error.to_string()))
    });
    let received = read.await.map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))??;
    let (count, size) = (received.records.len(), received.records.iter().map(Vec::len).sum::<usize>());
    let (mut refused, mut why) = (received.refused, if received.refused > 0 { TOO_LARGE } else { "" });
    // Compressed, records of one kind take about a tenth.
    if state.log_quotas.has_room(state.store(), &org, size as u64 / 10).await? {
        state.conductor.append_records(&org, &runner, pipe(signal), received.records, now).await?;
        state.metrics.received(signal, count as u64);
    } else {
        (refused, why) = (refused + count, QUOTA);
    }
    let answer = otlp::answer(signal, encoding, refused, why);
    Ok(([(CONTENT_TYPE, encoding.content_type())], answer).into_response())
}

fn pipe(signal: Signal) -> Pipe {
    match signal {
        Signal::Logs => Pipe::Logs,
        Signal::Traces => Pipe::Traces,
        Signal::Metrics => Pipe::Metrics,
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

async fn bearer(state: &AppState, headers: &HeaderMap) -> ApiResult<(OrgId, RunnerId)> {
    let refused = |text: &str| {
        ApiError::new(ErrorCode::Unauthenticated, text)
            .hint("send `Authorization: Bearer TOKEN` with one of `ferry tokens create NAME --telemetry INSTALL`")
    };
    let token = headers.get(AUTHORIZATION).and_then(auth::bearer);
    let token = token.ok_or_else(|| refused("no telemetry token was sent"))?;
    let now = state.conductor.now();
    match state.store().authenticate_telemetry(token, now).await {
        Ok((id, org, runner)) => {
            auth::note_use(state, store::Credential::Token(id));
            Ok((org, runner))
        }
        Err(StoreError::NotFound(_)) => Err(refused("the token is no telemetry token, or is expired or revoked")),
        Err(other) => Err(other.into()),
    }
}

fn unpack(headers: &HeaderMap, body: bytes::Bytes) -> ApiResult<bytes::Bytes> {
    match text(headers, &CONTENT_ENCODING) {
        "" | "identity" => Ok(body),
        "gzip" => {
            let mut plain = Vec::new();
            let read = MultiGzDecoder::new(&body[..]).take(PLAIN_BYTES_MAX + 1).read_to_end(&mut plain);
            read.map_err(|error| ApiError::invalid(format!("the body is not gzip: {error}")))?;
            if plain.len() as u64 > PLAIN_BYTES_MAX {
                let text = format!("the body holds more than {PLAIN_BYTES_MAX} bytes, unpacked");
                return Err(ApiError::new(ErrorCode::TooLarge, text).hint("export smaller batches"));
            }
            Ok(plain.into())
        }
        other => {
            let text = format!("`{other}` is no encoding that is taken here");
            Err(ApiError::new(ErrorCode::UnsupportedMediaType, text).hint("send it uncompressed, or with gzip"))
        }
    }
}
