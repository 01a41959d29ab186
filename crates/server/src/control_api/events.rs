//! Events of an org: a page of them, or a live stream that goes on where `Last-Event-ID` says.

use std::convert::Infallible;
use std::time::Duration;

use api::control::Event;
use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use http::HeaderMap;
use store::{EventCursor, KindFilter, topic};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::control_api::apps::Search;
use crate::error::{ApiError, ApiResult};
use crate::request::{List, Page, Params};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(events))
}

const BATCH: u64 = 200;
/// How long a stream waits for a wake-up before it looks by itself.
const LOOK: Duration = Duration::from_secs(5);
const LOOK_SOON: Duration = Duration::from_millis(50);
const LOOKS_SOON: i32 = 10;
/// Comments that keep proxies from closing a quiet stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

fn wire(event: store::Event) -> Event {
    Event {
        id: event.cursor.to_string(),
        time: event.time,
        kind: event.kind,
        subject_type: event.subject_type,
        subject_id: event.subject_id,
        actor: event.actor,
        data: event.data,
    }
}

/// Where to go on: the header of a reconnecting client, or the query.
pub(super) fn position(headers: &HeaderMap, search: &Search) -> Option<String> {
    let header = headers.get("last-event-id").and_then(|v| v.to_str().ok());
    header.or_else(|| search.text("after")).map(str::to_owned)
}

pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(http::header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accept.contains("text/event-stream")
}

/// Events of the org: JSON (the latest, or those after one that is known), or with `Accept: text/event-stream` live (from now on, unless told where to go on).
#[utoipa::path(get, path = "/v1/events", tag = "events", security(("token" = ["read-only"])), params(("after" = Option<String>, Query, description = "id of the last event that is known"), ("before" = Option<String>, Query, description = "the latest events before the one with this id"), ("kind" = Option<String>, Query, description = "one kind of events, like `job.state`, or a family, like `job`"), ("limit" = Option<u64>, Query), ("Last-Event-ID" = Option<String>, Header)), responses((status = 200, body = [Event])))]
async fn events(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let after = match position(&headers, &search) {
        Some(text) => Some(text.parse::<EventCursor>().map_err(|e| ApiError::invalid(e.to_string()))?),
        None => None,
    };
    let kind =
        KindFilter::parse(search.text("kind").unwrap_or_default()).map_err(|e| ApiError::invalid(e.to_string()))?;
    let before = search.text("before").map(str::parse::<EventCursor>).transpose();
    let before = before.map_err(|e| ApiError::invalid(e.to_string()))?;
    if wants_stream(&headers) {
        let after = match after {
            Some(after) => after,
            None => state.store().last_event(&at.org).await?,
        };
        let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
        return Ok(Sse::new(live(state, at, after, kind)).keep_alive(keep_alive).into_response());
    }
    let page = Page { offset: Some(0), ..search.page()? };
    if let Some(after) = after {
        let events = state.store().events_after(&at.org, after, &kind, page.fetch()).await?;
        return Ok(List::new(events.into_iter().map(wire).collect(), page).into_response());
    }
    // Oldest first: what is one too many stands at the beginning.
    let mut events = state.store().latest_events(&at.org, before, &kind, page.fetch()).await?;
    let more = events.len() as u64 > page.limit();
    if more {
        events.remove(0);
    }
    Ok(List::with_more(events.into_iter().map(wire).collect(), page, more).into_response())
}

fn live(
    state: AppState,
    at: InOrg,
    mut after: EventCursor,
    kind: KindFilter,
) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    let (send, receive) = tokio::sync::mpsc::channel(16);
    let gate = state.gate.clone();
    gate.spawn(async move {
        let org = at.org.clone();
        let subscription = state.store().notifier().subscribe(topic::org(&org));
        let mut watch = at.watch();
        // On PostgreSQL an event shows only when no older transaction is open: after a wake-up it is looked for again soon.
        let mut soon = 0;
        loop {
            let woken = subscription.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if !watch.may_go_on(&state).await {
                return;
            }
            let events = state.store().events_after(&org, after, &kind, BATCH).await.unwrap_or_default();
            if events.is_empty() {
                let pause = if soon > 0 { LOOK_SOON } else { LOOK };
                soon -= i32::from(soon > 0);
                tokio::select! {
                    () = woken => soon = LOOKS_SOON,
                    () = tokio::time::sleep(pause) => {}
                    () = state.gate.cancelled() => return,
                    () = send.closed() => return,
                }
            }
            for event in events {
                after = event.cursor;
                let event = wire(event);
                let message = sse::Event::default().id(&event.id).event(&event.kind).json_data(&event);
                if send.send(message.unwrap_or_default()).await.is_err() {
                    return;
                }
            }
        }
    });
    stream_of(receive)
}

/// The receiving end of a channel as a stream of messages.
pub(super) fn stream_of(
    receive: tokio::sync::mpsc::Receiver<sse::Event>,
) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    futures::stream::unfold(receive, |mut receive| async move { receive.recv().await.map(|e| (Ok(e), receive)) })
}
