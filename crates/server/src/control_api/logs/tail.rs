//! The log as it grows.

use std::time::Duration;

use api::control::LogChunk;
use axum::extract::{Path, State};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use model::Timestamp;
use model::lines::{End, Ended, OpenLines};
use model::log::{self, Chunk};
use store::LogAt;
use tokio::sync::mpsc;

use super::query::{LogQuery, lines, step_name};
use super::source::{Part, Source};
use crate::AppState;
use crate::auth::{CredentialWatch, Reader};
use crate::control_api::apps::Search;
use crate::control_api::events::{KEEP_ALIVE, position, stream_of};
use crate::error::{ApiError, ApiResult};
use crate::request::Params;

/// How long a tail waits for a wake-up before it looks by itself.
const LOOK: Duration = Duration::from_secs(2);
/// How long a tail waits for chunks that the result has announced.
const STRAGGLERS: Duration = Duration::from_secs(10);

/// The log as it grows: what is there, then what comes, without a seam; `chunk` events, then one `end` with the job's status. It takes the filters of the log; then a chunk has only the lines that are wanted.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/tail", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path), ("after" = Option<String>, Query, description = "position of the last chunk that is known"), ("pipe" = Option<String>, Query), ("step" = Option<String>, Query), ("level" = Option<String>, Query), ("since" = Option<String>, Query), ("until" = Option<String>, Query), ("grep" = Option<String>, Query), ("regex" = Option<String>, Query), ("Last-Event-ID" = Option<String>, Header)), responses((status = 200, body = LogChunk, content_type = "text/event-stream"), (status = 404, body = api::ErrorBody)))]
pub(super) async fn tail(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(search): Params<Search>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let source = Source::find(&state, &at.org, &id).await?;
    let wanted = LogQuery::parse(&search, &source.parts)?;
    let (epoch, seq) = match position(&headers, &search) {
        Some(text) => parse_position(&text)
            .ok_or_else(|| ApiError::invalid(format!("`{text}` is not a position in a log, such as `1.42`")))?,
        None => (1, begin(&state, &source, &wanted).await?),
    };
    let (send, receive) = mpsc::channel(16);
    let gate = state.gate.clone();
    gate.spawn(async move {
        let mut tail = Tail {
            watch: at.watch(),
            open: OpenLines::default(),
            last: (0, log::NO_STEP),
            rested: None,
            past: false,
            state,
            source,
            wanted,
            epoch,
            seq,
            send,
        };
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
    source: Source,
    wanted: LogQuery,
    epoch: u64,
    seq: u64,
    open: OpenLines,
    /// Time and step of the last chunk.
    last: (u64, u32),
    /// The part whose open lines were sent, since nothing more comes of it.
    rested: Option<u64>,
    /// What was printed since then is not wanted.
    past: bool,
    send: mpsc::Sender<sse::Event>,
    watch: CredentialWatch,
}

impl Tail {
    async fn run(&mut self) -> ApiResult<()> {
        let notifier = self.state.store().notifier().clone();
        let subscription = notifier.subscribe(self.source.topic());
        let mut over_since = None;
        loop {
            let woken = subscription.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !self.watch.may_go_on(&self.state).await {
                return Ok(());
            }
            self.source.look_again(&self.state).await?;
            let Some(complete) = self.forward().await? else { return Ok(()) };
            let now = self.state.conductor.now();
            // Nothing that is printed from now on is wanted.
            let late = |until: u64| now.nanos() > until + LOOK.as_nanos() as u64;
            let late = self.past || self.wanted.until.is_some_and(late);
            if late || self.source.is_over(now) {
                let since = over_since.get_or_insert_with(tokio::time::Instant::now);
                if complete || late || since.elapsed() > STRAGGLERS {
                    let end = serde_json::json!({ "status": self.source.status(), "complete": complete });
                    let _ = self.send.send(sse::Event::default().event("end").data(end.to_string())).await;
                    return Ok(());
                }
            }
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(LOOK) => {}
                () = self.state.gate.cancelled() => return Ok(()),
                () = self.send.closed() => return Ok(()),
            }
        }
    }

    /// Sends all that is there. Returns whether that is all there will be; None: nobody hears it, or may.
    async fn forward(&mut self) -> ApiResult<Option<bool>> {
        let mut complete = true;
        for at in 0..self.source.parts.len() {
            let part = &self.source.parts[at];
            if part.epoch < self.epoch {
                continue;
            }
            if part.epoch > self.epoch {
                (self.epoch, self.seq, self.open) = (part.epoch, 0, OpenLines::default());
            }
            loop {
                let chunks = self.state.store().read_log(&part.id, self.seq).await?;
                let stopped = self.send.is_closed() || self.state.gate.is_cancelled();
                if stopped || !self.watch.may_go_on(&self.state).await {
                    return Ok(None);
                }
                let Some(last) = chunks.last() else { break };
                (self.seq, self.last) = (last.seq + 1, (last.time_ns, last.step));
                for (chunk, mut ended) in self.open.block(&chunks, End::Open) {
                    if !self.tell(part, &chunk, &mut ended).await? {
                        return Ok(None);
                    }
                }
                self.past = self.wanted.until.is_some_and(|until| self.last.0 > until);
                if self.past {
                    break;
                }
            }
            let (end, (time_ns, step)) = (part.end(self.seq), self.last);
            if end != End::Open && self.rested.replace(part.epoch) != Some(part.epoch) {
                for (chunk, mut ended) in self.open.rest(self.seq, time_ns + 1, step, end) {
                    if !self.tell(part, &chunk, &mut ended).await? {
                        return Ok(None);
                    }
                }
            }
            complete = part.chunks.is_none_or(|total| self.seq >= total);
        }
        Ok(Some(complete))
    }

    /// Sends what is wanted of a chunk. False: nobody hears it.
    async fn tell(&self, part: &Part, chunk: &Chunk, ended: &mut Ended<'_>) -> ApiResult<bool> {
        match self.message(part, chunk, ended).await? {
            Some(message) => Ok(self.send.send(message).await.is_ok()),
            None => Ok(true),
        }
    }

    /// What is wanted of a chunk; None where nothing is.
    async fn message(&self, part: &Part, chunk: &Chunk, ended: &mut Ended<'_>) -> ApiResult<Option<sse::Event>> {
        if !self.wanted.takes_chunk(part, chunk) {
            return Ok(None);
        }
        let (text, gap_bytes) = match &chunk.body {
            body if self.wanted.by_line() || chunk.pipe.holds_records() => {
                let found = lines(self.state.store(), &self.wanted, part, chunk, ended, &(0..=u64::MAX)).await?;
                if found.is_empty() {
                    return Ok(None);
                }
                let (gaps, lines): (Vec<_>, Vec<_>) = found.iter().partition(|line| line.is_gap(chunk));
                let text = lines.iter().flat_map(|line| [line.shown(), "\n".to_owned()]).collect();
                (text, (!gaps.is_empty()).then(|| body.len()))
            }
            log::Body::Data(data) if data.is_empty() => return Ok(None),
            log::Body::Data(data) => (String::from_utf8_lossy(data).into_owned(), None),
            log::Body::Gap(missing) => (String::new(), Some(*missing)),
        };
        let wire = LogChunk {
            position: format!("{}.{}", part.epoch, chunk.seq),
            execution_id: part.id.clone(),
            seq: chunk.seq,
            time: Timestamp::from_micros((chunk.time_ns / 1000) as i64),
            pipe: chunk.pipe.as_str().into(),
            step: step_name(part, chunk),
            text,
            gap_bytes,
        };
        Ok(Some(sse::Event::default().id(&wire.position).event("chunk").json_data(&wire).unwrap_or_default()))
    }
}

/// The first chunk that may be wanted: nobody reads a long log for its end.
async fn begin(state: &AppState, source: &Source, wanted: &LogQuery) -> ApiResult<u64> {
    let (Some(since), [part]) = (wanted.since, &source.parts[..]) else { return Ok(0) };
    let there = state.store().log_block(&part.id, LogAt::Time(since)).await?;
    Ok(there.first().map_or(0, |chunk| chunk.seq))
}
