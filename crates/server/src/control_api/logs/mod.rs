//! Logs: pages by cursor, raw bytes, searches, and a live tail. All read the same chunks.

pub(crate) mod numbered;
mod query;
mod read;
pub(crate) mod source;
mod tail;

use api::control::{LogKeeping, LogRecord, LogStream, UpdateLogKeeping};
use api::headers;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use conductor::LogRulesChange;
use http::HeaderMap;
use model::OrgId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::query::LogQuery;
use self::source::{Owner, Source};
use crate::AppState;
use crate::auth::{Admin, Reader};
use crate::control_api::apps::Search;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, Params};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(stream, erase))
        .routes(routes!(keeping, update_keeping))
        .routes(routes!(read))
        .routes(routes!(tail::tail))
        .routes(routes!(numbered::outline))
        .routes(routes!(numbered::numbered))
        .routes(routes!(numbered::matches))
}

/// A log stream: whether more may come.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path)), responses((status = 200, body = LogStream), (status = 404, body = api::ErrorBody)))]
async fn stream(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<Json<LogStream>> {
    let source = Source::find(&state, &at.org, &id).await?;
    Ok(Json(shown(&state, source).await?))
}

async fn shown(state: &AppState, source: Source) -> ApiResult<LogStream> {
    let (mut size_bytes, mut deleted_at, mut begins_later) = (0, None, false);
    for part in &source.parts {
        let head = state.store().log_state(&part.id).await?;
        size_bytes += head.size_bytes;
        deleted_at = deleted_at.max(head.deleted_at);
        begins_later |= head.first_seq > 0;
    }
    let open = source.is_open();
    let note = match deleted_at {
        Some(at) => format!("the log was deleted at {at}"),
        None if begins_later && matches!(source.owner, Owner::Job(_)) => {
            "the beginning of the log was deleted: this is what came later".to_owned()
        }
        None if open && !state.log_quotas.has_room(state.store(), &source.org, 0).await? => QUOTA.to_owned(),
        None => String::new(),
    };
    let (owner_id, owner_type, created_at) = match &source.owner {
        Owner::Job(job) => (job.id.to_string(), "runner_jobs", job.created_at),
        Owner::Runner(runner) => (runner.id.to_string(), "runners", runner.created_at),
    };
    Ok(LogStream {
        open,
        id: source.stream,
        org_id: source.org,
        owner_id,
        owner_type: owner_type.into(),
        created_at,
        size_bytes: Some(size_bytes),
        deleted_at,
        note,
    })
}

/// What a reader of a log with gaps should know.
const QUOTA: &str = "the logs of the org take all of its quota: what jobs print is left out, and gaps say how much, until there is room (`ferry orgs logs`)";

/// Deletes the log of a job that has ended, or the telemetry of a runner, for good.
#[utoipa::path(delete, path = "/v1/log-streams/{log_stream_id}", tag = "logs", security(("token" = ["admin"])), params(("log_stream_id" = String, Path)), responses((status = 200, body = LogStream), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn erase(State(state): State<AppState>, Admin(at): Admin, Path(id): Path<String>) -> ApiResult<Json<LogStream>> {
    let source = Source::find(&state, &at.org, &id).await?;
    let job = match &source.owner {
        Owner::Job(job) => Some(job),
        Owner::Runner(_) => None,
    };
    let logs: Vec<_> = source.parts.iter().map(|part| part.id.clone()).collect();
    state.conductor.erase_logs(job, source.is_over(state.conductor.now()), &logs).await?;
    Ok(Json(shown(&state, source).await?))
}

/// What the org keeps of its logs, and what they take.
#[utoipa::path(get, path = "/v1/orgs/current/logs", tag = "logs", security(("token" = ["read-only"])), responses((status = 200, body = LogKeeping)))]
async fn keeping(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<LogKeeping>> {
    Ok(Json(kept(&state, &at.org).await?))
}

async fn kept(state: &AppState, org: &OrgId) -> ApiResult<LogKeeping> {
    let (rules, usage) = (state.store().log_rules(org).await?, state.store().log_usage(org).await?);
    Ok(LogKeeping {
        retention_s: rules.retention_s,
        quota_bytes: rules.quota_bytes,
        size_bytes: usage.size_bytes,
        logs: usage.executions,
    })
}

/// Changes what the org keeps of its logs. What is older is deleted within a minute, for good.
#[utoipa::path(patch, path = "/v1/orgs/current/logs", tag = "logs", security(("token" = ["admin"])), request_body = UpdateLogKeeping, responses((status = 200, body = LogKeeping), (status = 400, body = api::ErrorBody)))]
async fn update_keeping(
    State(state): State<AppState>,
    Admin(at): Admin,
    request: Create<UpdateLogKeeping>,
) -> ApiResult<Json<LogKeeping>> {
    let UpdateLogKeeping { retention_s, quota_bytes } = request.value;
    state.conductor.update_log_rules(&at.by(), LogRulesChange { retention_s, quota_bytes }).await?;
    state.log_quotas.forget(&at.org);
    Ok(Json(kept(&state, &at.org).await?))
}

/// Log records, 100 a page: `X-Nuon-API-Offset` says where to go on, `X-Nuon-API-Next` where the next page starts; a page of a search may
/// hold fewer, or none, and still have a next one. `format=ndjson` is all records in one answer, `format=text` readable text, `format=raw`
/// the bytes themselves (of one `pipe`, or of stdout and stderr in their order). Records and text are lossy UTF-8; only raw is exact.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/logs", tag = "logs", security(("token" = ["read-only"])), params(
    ("log_stream_id" = String, Path),
    ("X-Nuon-API-Offset" = Option<String>, Header, description = "nanoseconds"),
    ("order" = Option<String>, Query, description = "asc or desc"),
    ("format" = Option<String>, Query, description = "json, ndjson, text or raw"),
    ("gzip" = Option<bool>, Query, description = "compress what is downloaded; for ndjson, text and raw"),
    ("pipe" = Option<String>, Query, description = "stdout, stderr or system; of telemetry logs, traces or metrics"),
    ("step" = Option<String>, Query, description = "name of a step"),
    ("level" = Option<String>, Query, description = "at least this: trace, debug, info, warn, error or fatal"),
    ("since" = Option<String>, Query, description = "RFC 3339"),
    ("until" = Option<String>, Query, description = "RFC 3339"),
    ("from" = Option<String>, Query, description = "position of a chunk, as the tail tells it (`1.42`)"),
    ("grep" = Option<String>, Query, description = "only lines with this text"),
    ("regex" = Option<String>, Query, description = "only lines that match"),
), responses((status = 200, body = [LogRecord]), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn read(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(search): Params<Search>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let source = Source::find(&state, &at.org, &id).await?;
    let cursor = match headers.get(headers::LOG_OFFSET).map(|v| v.to_str().unwrap_or("?")).filter(|v| !v.is_empty()) {
        Some(text) => Some(
            text.parse::<u64>().map_err(|_| ApiError::invalid("X-Nuon-API-Offset must be a number of nanoseconds"))?,
        ),
        None => None,
    };
    let wanted = LogQuery::parse(&search, &source.parts)?;
    let reader = read::Reader { state, source, wanted };
    let gzip = matches!(search.text("gzip"), Some("true" | "1"));
    match search.text("format").unwrap_or("json") {
        "json" => reader.page(cursor, search.text("order") == Some("desc")).await,
        "ndjson" => Ok(reader.whole(read::Format::Ndjson, gzip)),
        "text" => Ok(reader.whole(read::Format::Text, gzip)),
        "raw" if reader.wanted.by_line() => {
            Err(ApiError::invalid("raw bytes are not cut into lines: of the filters they take only `pipe`"))
        }
        "raw" => Ok(reader.whole(read::Format::Raw, gzip)),
        other => Err(ApiError::invalid(format!("`{other}` is no format; use json, ndjson, text or raw"))),
    }
}
