//! Logs: pages by cursor, raw bytes, and a live tail. All read the same chunks.

use std::collections::BTreeMap;
use std::time::Duration;

use api::control::{LogChunk, LogRecord, LogStream};
use api::headers;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use http::HeaderMap;
use model::log::{self, Chunk, Pipe};
use model::{JobState, LogStreamId, Timestamp};
use store::{ExecutionRow, Job, StoreError, topic};
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::apps::Search;
use super::events::{KEEP_ALIVE, position, stream_of};
use crate::AppState;
use crate::auth::{Reader, TokenWatch};
use crate::error::{ApiError, ApiResult};
use crate::request::Params;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(stream)).routes(routes!(read)).routes(routes!(tail))
}

/// Records on one page.
const PAGE: usize = 100;
/// How long a tail waits for a wake-up before it looks by itself.
const LOOK: Duration = Duration::from_secs(2);
/// How long a tail waits for chunks that the result has announced.
const STRAGGLERS: Duration = Duration::from_secs(10);

async fn job_of(state: &AppState, at: &crate::auth::InOrg, id: &str) -> ApiResult<Job> {
    let stream = LogStreamId::parse(id).map_err(|_| StoreError::NotFound("log stream"))?;
    Ok(state.store().job_of_log(&at.org, &stream).await?)
}

fn is_over(job: &Job) -> bool {
    job.state.is_terminal() || job.state == JobState::Unknown
}

/// A log stream: whether more may come.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path)), responses((status = 200, body = LogStream), (status = 404, body = api::ErrorBody)))]
async fn stream(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<Json<LogStream>> {
    let job = job_of(&state, &at, &id).await?;
    Ok(Json(LogStream {
        open: !job.state.is_terminal(),
        id: job.log_stream_id,
        org_id: job.org_id,
        owner_id: job.id.to_string(),
        owner_type: "runner_jobs".into(),
        created_at: job.created_at,
    }))
}

/// Log records, 100 a page: `X-Nuon-API-Offset` says where to go on, `X-Nuon-API-Next` where the next page starts. With
/// `format=raw` the bytes themselves (of one `pipe`, or of stdout and stderr in their order), with `format=text` readable text.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/logs", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path), ("X-Nuon-API-Offset" = Option<String>, Header, description = "nanoseconds"), ("order" = Option<String>, Query, description = "asc or desc"), ("format" = Option<String>, Query, description = "json, text or raw"), ("pipe" = Option<String>, Query, description = "stdout, stderr or system")), responses((status = 200, body = [LogRecord]), (status = 404, body = api::ErrorBody)))]
async fn read(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(search): Params<Search>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let job = job_of(&state, &at, &id).await?;
    let pipe = match search.text("pipe") {
        Some(text) => Some(
            Pipe::parse(text)
                .ok_or_else(|| ApiError::invalid(format!("`{text}` is no pipe; use stdout, stderr or system")))?,
        ),
        None => None,
    };
    match search.text("format").unwrap_or("json") {
        "raw" => Ok(whole(state, job, pipe, false)),
        "text" => Ok(whole(state, job, pipe, true)),
        "json" => page(&state, &job, pipe, search.text("order") == Some("desc"), &headers).await,
        other => Err(ApiError::invalid(format!("`{other}` is no format; use json, text or raw"))),
    }
}

async fn page(
    state: &AppState,
    job: &Job,
    pipe: Option<Pipe>,
    descending: bool,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let cursor = match headers.get(headers::LOG_OFFSET).map(|v| v.to_str().unwrap_or("?")).filter(|v| !v.is_empty()) {
        Some(text) => Some(
            text.parse::<u64>().map_err(|_| ApiError::invalid("X-Nuon-API-Offset must be a number of nanoseconds"))?,
        ),
        None => None,
    };
    let mut records = Vec::new();
    'all: for execution in state.store().executions_of(&job.id).await? {
        let mut seq = 0;
        loop {
            let chunks = state.store().read_log(&execution.id, seq).await?;
            let Some(last) = chunks.last() else { break };
            seq = last.seq + 1;
            for chunk in chunks.iter().filter(|c| pipe.is_none_or(|p| p == c.pipe)) {
                let before = |r: &LogRecord| r.cursor.parse::<u64>().unwrap_or(0);
                let keep = |r: &LogRecord| match (cursor, descending) {
                    (None, _) => true,
                    (Some(c), false) => before(r) >= c,
                    (Some(c), true) => before(r) <= c,
                };
                records.extend(lines(job, &execution, chunk).into_iter().filter(keep));
            }
            if !descending && records.len() > PAGE {
                break 'all;
            }
            if descending && records.len() > 8 * PAGE {
                records.drain(..records.len() - 2 * PAGE);
            }
        }
    }
    if descending {
        records.reverse();
    }
    let mut answer = HeaderMap::new();
    let next = records.get(PAGE).map(|r| r.cursor.clone()).unwrap_or_default();
    if let Ok(value) = next.parse() {
        answer.insert(headers::LOG_NEXT, value);
    }
    records.truncate(PAGE);
    Ok((answer, Json(records)).into_response())
}

fn step_name(execution: &ExecutionRow, chunk: &Chunk) -> Option<String> {
    if chunk.step == log::NO_STEP {
        return None;
    }
    execution.steps.get(chunk.step as usize).map(|s| s.name.clone())
}

/// One record for each line of a chunk, each with a cursor of its own.
fn lines(job: &Job, execution: &ExecutionRow, chunk: &Chunk) -> Vec<LogRecord> {
    let texts: Vec<String> = match &chunk.body {
        log::Body::Gap(missing) => vec![format!("[{missing} bytes of {} are missing here]", chunk.pipe.as_str())],
        log::Body::Data(data) => {
            let text = String::from_utf8_lossy(data);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l).to_owned()).collect()
        }
    };
    let (severity_text, severity_number) = match chunk.pipe {
        Pipe::System | Pipe::Stdout => ("INFO", 9),
        Pipe::Stderr => ("ERROR", 17),
    };
    let record = |(at, body): (usize, String)| {
        let nanos = chunk.time_ns + at as u64;
        LogRecord {
            id: format!("{}.{}.{at}", execution.epoch, chunk.seq),
            timestamp: Timestamp::from_micros((nanos / 1000) as i64).to_string(),
            cursor: nanos.to_string(),
            severity_text: severity_text.into(),
            severity_number,
            service_name: "ferry-runner".into(),
            body,
            log_stream_id: job.log_stream_id.clone(),
            runner_job_id: job.id.clone(),
            runner_job_execution_id: execution.id.clone(),
            runner_job_execution_step: step_name(execution, chunk).unwrap_or_default(),
            log_attributes: BTreeMap::from([("pipe".to_owned(), chunk.pipe.as_str().to_owned())]),
        }
    };
    texts.into_iter().enumerate().map(record).collect()
}

/// The whole log as a stream of bytes, read piece by piece.
fn whole(state: AppState, job: Job, pipe: Option<Pipe>, text: bool) -> Response {
    let (send, receive) = mpsc::channel::<Result<Vec<u8>, std::io::Error>>(4);
    tokio::spawn(async move {
        let fault = |e: StoreError| std::io::Error::other(e.to_string());
        let executions = match state.store().executions_of(&job.id).await {
            Ok(executions) => executions,
            Err(e) => return drop(send.send(Err(fault(e))).await),
        };
        for execution in executions {
            let mut seq = 0;
            loop {
                let chunks = match state.store().read_log(&execution.id, seq).await {
                    Ok(chunks) => chunks,
                    Err(e) => return drop(send.send(Err(fault(e))).await),
                };
                let Some(last) = chunks.last() else { break };
                seq = last.seq + 1;
                let mut bytes = Vec::new();
                for chunk in &chunks {
                    // Raw is what the child wrote: nothing of ours in between, unless it is asked for.
                    let wanted = pipe.map_or(text || chunk.pipe != Pipe::System, |p| p == chunk.pipe);
                    match &chunk.body {
                        log::Body::Data(data) if wanted => bytes.extend_from_slice(data),
                        log::Body::Gap(n) if wanted && text => {
                            bytes.extend_from_slice(format!("\n[{n} bytes are missing here]\n").as_bytes());
                        }
                        log::Body::Data(_) | log::Body::Gap(_) => {}
                    }
                }
                if send.send(Ok(bytes)).await.is_err() {
                    return;
                }
            }
        }
    });
    let stream = futures::stream::unfold(receive, |mut r| async move { r.recv().await.map(|b| (b, r)) });
    let kind = if text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    ([(http::header::CONTENT_TYPE, kind)], Body::from_stream(stream.boxed())).into_response()
}

/// The log as it grows: what is there, then what comes, without a seam; `chunk` events, then one `end` with the job's status.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/tail", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path), ("after" = Option<String>, Query, description = "position of the last chunk that is known"), ("Last-Event-ID" = Option<String>, Header)), responses((status = 200, body = LogChunk, content_type = "text/event-stream"), (status = 404, body = api::ErrorBody)))]
async fn tail(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(search): Params<Search>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let job = job_of(&state, &at, &id).await?;
    let (epoch, seq) = match position(&headers, &search) {
        Some(text) => parse_position(&text)
            .ok_or_else(|| ApiError::invalid(format!("`{text}` is not a position in a log, such as `1.42`")))?,
        None => (1, 0),
    };
    let (send, receive) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut tail = Tail { state, job, epoch, seq, send, watch: at.watch() };
        // An error ends the stream; the client comes back with its position.
        if let Err(error) = tail.run().await {
            tracing::debug!(error = error.message, "a tail ended");
        }
    });
    Ok(Sse::new(stream_of(receive)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// `EPOCH.SEQ` of the last chunk that is known, to the next one.
fn parse_position(text: &str) -> Option<(u64, u64)> {
    let (epoch, seq) = text.split_once('.')?;
    Some((epoch.parse().ok()?, seq.parse::<u64>().ok()?.checked_add(1)?))
}

struct Tail {
    state: AppState,
    job: Job,
    epoch: u64,
    seq: u64,
    send: mpsc::Sender<sse::Event>,
    watch: TokenWatch,
}

impl Tail {
    async fn run(&mut self) -> ApiResult<()> {
        let notifier = self.state.store().notifier().clone();
        let subscription = notifier.subscribe(topic::job(&self.job.id));
        let mut over_since = None;
        loop {
            let woken = subscription.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !self.watch.may_go_on(&self.state).await {
                return Ok(());
            }
            // The state first: chunks that arrive after this look are seen in the next round.
            self.job = self.state.store().job(&self.job.org_id, &self.job.id).await?;
            let complete = self.forward().await?;
            if is_over(&self.job) {
                let since = over_since.get_or_insert_with(tokio::time::Instant::now);
                if complete || since.elapsed() > STRAGGLERS {
                    let end = serde_json::json!({ "status": self.job.state, "complete": complete });
                    let _ = self.send.send(sse::Event::default().event("end").data(end.to_string())).await;
                    return Ok(());
                }
            }
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(LOOK) => {}
                () = self.state.stop.cancelled() => return Ok(()),
                () = self.send.closed() => return Ok(()),
            }
        }
    }

    /// Sends all that is there. Returns whether that is all there will be.
    async fn forward(&mut self) -> ApiResult<bool> {
        let executions = self.state.store().executions_of(&self.job.id).await?;
        let mut complete = true;
        for execution in &executions {
            if execution.epoch < self.epoch {
                continue;
            }
            if execution.epoch > self.epoch {
                (self.epoch, self.seq) = (execution.epoch, 0);
            }
            loop {
                let chunks = self.state.store().read_log(&execution.id, self.seq).await?;
                if chunks.is_empty() {
                    break;
                }
                for chunk in &chunks {
                    self.seq = chunk.seq + 1;
                    if self.send.send(message(execution, chunk)).await.is_err() {
                        return Ok(true);
                    }
                }
            }
            complete = execution.log_chunks.is_none_or(|total| self.seq >= total);
        }
        Ok(complete)
    }
}

fn message(execution: &ExecutionRow, chunk: &Chunk) -> sse::Event {
    let (text, gap_bytes) = match &chunk.body {
        log::Body::Data(data) => (String::from_utf8_lossy(data).into_owned(), None),
        log::Body::Gap(missing) => (String::new(), Some(*missing)),
    };
    let wire = LogChunk {
        position: format!("{}.{}", execution.epoch, chunk.seq),
        execution_id: execution.id.clone(),
        seq: chunk.seq,
        time: Timestamp::from_micros((chunk.time_ns / 1000) as i64),
        pipe: chunk.pipe.as_str().into(),
        step: step_name(execution, chunk),
        text,
        gap_bytes,
    };
    sse::Event::default().id(&wire.position).event("chunk").json_data(&wire).unwrap_or_default()
}
