//! One stream for a page: what has changed in the org, and the lines of one log. A page that comes back says where it was.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use api::control::LiveNote;
use axum::extract::State;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use http::HeaderMap;
use model::waiting::Presence;
use model::{InstallId, RunnerId, WorkflowId};
use serde::Deserialize;
use store::{EventCursor, KindFilter, WorkflowFilter, topic};
use tokio::sync::mpsc;
use tokio::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{CredentialWatch, InOrg, Reader};
use crate::control_api::events::stream_of;
use crate::control_api::logs::numbered::read_lines;
use crate::control_api::logs::source::Source;
use crate::error::{ApiError, ApiResult};
use crate::request::Params;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(live))
}

const BATCH: u64 = 200;
/// Who is further behind than this reads everything anew.
const BEHIND_MAX: usize = 2_000;
/// Comments don't reach scripts: a page knows by this that the stream is alive.
const BEAT: Duration = Duration::from_secs(10);
/// How long the stream waits for a wake-up before it looks by itself.
const LOOK: Duration = Duration::from_secs(2);
/// After a wake-up PostgreSQL may show an event a moment later.
const LOOK_SOON: Duration = Duration::from_millis(50);
const LOOKS_SOON: u32 = 10;
/// Lines of a log that one message has; a page asks for others by their numbers.
const LINES: u64 = 200;
/// How often it is looked at which runners have come or gone.
const PRESENCE: Duration = Duration::from_secs(2);
const PRESENCE_MAX: usize = 50;
/// Running workflows that are watched.
const WORKFLOWS_MAX: u64 = 20;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LiveQuery {
    after: String,
    log: String,
    log_after: Option<u64>,
}

/// What has changed in the org (`note`), new lines of one log (`log`), and every 10 s a `beat`; `reset` says that too much was missed to tell it.
/// Ids are positions: a client that comes back with `Last-Event-ID` misses nothing.
#[utoipa::path(get, path = "/v1/live", tag = "pages", security(("token" = ["read-only"])), params(("org_id" = Option<String>, Query, description = "the org, where no header can be sent"), ("after" = Option<String>, Query, description = "id of the last event that is known"), ("log" = Option<String>, Query, description = "a log stream"), ("log_after" = Option<u64>, Query, description = "number of its last line that is known"), ("Last-Event-ID" = Option<String>, Header)), responses((status = 200, body = LiveNote, content_type = "text/event-stream"), (status = 404, body = api::ErrorBody)))]
async fn live(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(query): Params<LiveQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (events, line) = last.split_once('~').unwrap_or((last, ""));
    let after = if events.is_empty() { query.after.as_str() } else { events };
    let after = match after {
        "" => state.store().last_event(&at.org).await?,
        text => text.parse::<EventCursor>().map_err(|e| ApiError::invalid(e.to_string()))?,
    };
    let log = match query.log.as_str() {
        "" => None,
        id => Some(Source::find(&state, &at.org, id).await?),
    };
    let lines = line.parse().ok().or(query.log_after).unwrap_or_default();
    Ok(Sse::new(stream(state, at, after, log, lines)).into_response())
}

fn stream(
    state: AppState,
    at: InOrg,
    after: EventCursor,
    log: Option<Source>,
    lines: u64,
) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    let (send, receive) = mpsc::channel(64);
    let gate = state.gate.clone();
    gate.spawn(async move {
        let watch = at.watch();
        let mut live = Live {
            state,
            at,
            watch,
            after,
            log,
            lines,
            renewed: None,
            send,
            beaten: Instant::now(),
            present: None,
            installs: HashMap::new(),
            at_work: HashMap::new(),
            present_at: Instant::now(),
        };
        // Nobody hears it any more, or nobody may.
        if let Err(error) = live.run().await {
            tracing::debug!(error = error.message, "a live stream ended");
        }
    });
    stream_of(receive)
}

struct Live {
    state: AppState,
    at: InOrg,
    watch: CredentialWatch,
    after: EventCursor,
    log: Option<Source>,
    /// Lines of the log that were sent.
    lines: u64,
    /// How often they were counted anew.
    renewed: Option<u64>,
    send: mpsc::Sender<sse::Event>,
    beaten: Instant,
    /// Which runners were there when it was looked last.
    present: Option<HashMap<RunnerId, &'static str>>,
    installs: HashMap<RunnerId, InstallId>,
    /// What running workflows wait for and work at.
    at_work: HashMap<WorkflowId, String>,
    present_at: Instant,
}

impl Live {
    async fn run(&mut self) -> ApiResult<()> {
        let notifier = self.state.store().notifier().clone();
        let of_org = notifier.subscribe(topic::org(&self.at.org));
        let log_topic = self.log.as_ref().map_or_else(|| topic::org(&self.at.org), Source::topic);
        let of_log = notifier.subscribe(log_topic);
        if !self.tell("beat", &serde_json::json!({})).await {
            return Ok(());
        }
        let (mut soon, mut look_at_log) = (0, true);
        loop {
            let (org, log) = (of_org.notified(), of_log.notified());
            tokio::pin!(org, log);
            org.as_mut().enable();
            log.as_mut().enable();
            if !self.watch.may_go_on(&self.state).await {
                return Ok(());
            }
            let heard = self.events().await? && (!look_at_log || self.new_lines().await?);
            if !(heard && self.changes_without_event().await? && self.beat().await) {
                return Ok(());
            }
            look_at_log = false;
            let pause = if soon > 0 { LOOK_SOON } else { LOOK };
            soon = u32::saturating_sub(soon, 1);
            tokio::select! {
                () = org => soon = LOOKS_SOON,
                () = log => look_at_log = true,
                () = tokio::time::sleep(pause) => look_at_log = soon == 0,
                () = self.state.gate.cancelled() => return Ok(()),
                () = self.send.closed() => return Ok(()),
            }
        }
    }

    /// Sends one message under the place where the stream is. False: nobody hears it.
    async fn tell<T: serde::Serialize>(&self, kind: &str, data: &T) -> bool {
        let id = format!("{}~{}", self.after, self.lines);
        let message = sse::Event::default().id(id).event(kind).json_data(data).unwrap_or_default();
        self.send.send(message).await.is_ok()
    }

    async fn beat(&mut self) -> bool {
        if self.beaten.elapsed() < BEAT {
            return true;
        }
        self.beaten = Instant::now();
        self.tell("beat", &serde_json::json!({})).await
    }

    async fn events(&mut self) -> ApiResult<bool> {
        let mut sent = 0;
        loop {
            let events =
                self.state.store().events_after(&self.at.org, self.after, &KindFilter::default(), BATCH).await?;
            let full = events.len() as u64 == BATCH;
            sent += events.len();
            if sent > BEHIND_MAX {
                self.after = self.state.store().last_event(&self.at.org).await?;
                return Ok(self.tell("reset", &serde_json::json!({})).await);
            }
            for event in events {
                self.after = event.cursor;
                let mut note = note(&event);
                if note.install_id.is_empty()
                    && let Some(install) = RunnerId::parse(&note.runner_id).ok().and_then(|id| self.installs.get(&id))
                {
                    note.install_id = install.to_string();
                }
                if !self.tell("note", &note).await {
                    return Ok(false);
                }
            }
            if !full {
                return Ok(true);
            }
        }
    }

    async fn new_lines(&mut self) -> ApiResult<bool> {
        let Some(source) = &mut self.log else { return Ok(true) };
        let was_open = source.is_open();
        source.look_again(&self.state).await?;
        let over = was_open && !source.is_open();
        let indexes = self.state.line_indexes.clone();
        let (total, renewed) = indexes.count(&self.state, source).await?;
        let is_renewed = self.renewed.replace(renewed).is_some_and(|before| before != renewed);
        if is_renewed || total < self.lines {
            // Its numbers begin anew: it was deleted, or an execution that had ended went on.
            self.lines = total;
            return Ok(self.tell("reset", &serde_json::json!({})).await);
        }
        if total > self.lines || over {
            // The newest of them; a page that shows what lies before asks for it.
            let from = (self.lines + 1).max((total + 1).saturating_sub(LINES));
            let lines = read_lines(&self.state, source, &indexes, from, LINES).await?;
            self.lines = lines.lines.last().map_or(total, |last| last.n.max(self.lines));
            return Ok(self.tell("log", &lines).await);
        }
        Ok(true)
    }

    /// What no event tells: who is silent, what a queued job waits for, what an apply is at.
    async fn changes_without_event(&mut self) -> ApiResult<bool> {
        if self.present.is_some() && self.present_at.elapsed() < PRESENCE {
            return Ok(true);
        }
        self.present_at = Instant::now();
        Ok(self.presence().await? && self.work().await?)
    }

    async fn presence(&mut self) -> ApiResult<bool> {
        let (state, org) = (&self.state, &self.at.org);
        let snapshot = state.fleet.snapshot(state, org).await?;
        let word = |sighting: &store::Sighting| match state.conductor.presence_at(sighting.sightings) {
            _ if sighting.revoked => "disabled",
            Presence::Online if sighting.disabled => "disabled",
            presence => presence.as_str(),
        };
        let mut now: HashMap<RunnerId, &'static str> =
            snapshot.runners.iter().map(|(id, sighting)| (id.clone(), word(sighting))).collect();
        let org = state.store().org(org).await?;
        let builder = state.store().runner(&org.id, org.build_runner_id.as_str()).await?;
        now.insert(builder.id.clone(), state.conductor.presence(&builder).as_str());
        if self.installs.len() != snapshot.rows.len() {
            self.installs = snapshot.rows.iter().map(|row| (row.runner_id.clone(), row.id.clone())).collect();
        }
        let Some(before) = self.present.take() else {
            self.present = Some(now);
            return Ok(true);
        };
        let moved = |(id, word): &(&RunnerId, &&str)| before.get(*id).is_some_and(|was| was != *word);
        let moved: Vec<(RunnerId, &str)> = now.iter().filter(moved).map(|(id, word)| (id.clone(), *word)).collect();
        self.present = Some(now);
        let many = moved.len() > PRESENCE_MAX;
        for (id, word) in moved.into_iter().take(if many { 1 } else { PRESENCE_MAX }) {
            let note = LiveNote {
                runner_id: id.to_string(),
                install_id: self.installs.get(&id).map(ToString::to_string).unwrap_or_default(),
                status: word.to_owned(),
                at: Some(self.state.conductor.now()),
                ..empty("runner.presence", "runner", id.as_str())
            };
            if !self.tell("note", &note).await {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Workflows whose jobs wait for something else now, or work at something else.
    async fn work(&mut self) -> ApiResult<bool> {
        let filter = WorkflowFilter { statuses: vec!["in-progress".into()], ..WorkflowFilter::default() };
        let mut now = HashMap::new();
        for row in self.state.store().filtered_workflows(&self.at.org, filter, WORKFLOWS_MAX).await? {
            let mut told = String::new();
            for job in self.state.store().jobs_of_workflow(&self.at.org, &row.id).await? {
                if job.state.is_terminal() {
                    continue;
                }
                told += &self.state.conductor.waiting_reason(&job).await?.unwrap_or_default();
                for execution in self.state.store().executions_of(&job.id).await? {
                    let resources = execution.steps.iter().flat_map(|step| &step.resources);
                    told += &format!("{}:", resources.clone().count());
                    told += &resources.filter(|it| it.took_s.is_some()).count().to_string();
                }
            }
            now.insert(row.id.clone(), (row.install_id.clone(), told));
        }
        for (id, (install, told)) in &now {
            if self.at_work.get(id).is_some_and(|before| before != told) {
                let note = LiveNote {
                    workflow_id: id.to_string(),
                    install_id: install.to_string(),
                    at: Some(self.state.conductor.now()),
                    ..empty("step.waiting", "workflow", id.as_str())
                };
                if !self.tell("note", &note).await {
                    return Ok(false);
                }
            }
        }
        self.at_work = now.into_iter().map(|(id, (_, told))| (id, told)).collect();
        Ok(true)
    }
}

fn empty(kind: &str, subject_type: &str, subject_id: &str) -> LiveNote {
    LiveNote {
        kind: kind.to_owned(),
        subject_type: subject_type.to_owned(),
        subject_id: subject_id.to_owned(),
        install_id: String::new(),
        workflow_id: String::new(),
        step_id: String::new(),
        runner_id: String::new(),
        app_id: String::new(),
        status: String::new(),
        actor: String::new(),
        at: None,
    }
}

fn note(event: &store::Event) -> LiveNote {
    let text = |key: &str| event.data[key].as_str().unwrap_or_default().to_owned();
    let subject = |kind: &str, key: &str| {
        if event.subject_type == kind { event.subject_id.clone() } else { text(key) }
    };
    LiveNote {
        install_id: subject("install", "install_id"),
        workflow_id: subject("workflow", "workflow_id"),
        step_id: text("step_id"),
        runner_id: subject("runner", "runner_id"),
        app_id: subject("app", "app_id"),
        status: text("to"),
        actor: event.actor.clone(),
        at: Some(event.time),
        ..empty(&event.kind, &event.subject_type, &event.subject_id)
    }
}
