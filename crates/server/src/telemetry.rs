//! What this control plane tells a collector: the logs of jobs, spans of what was asked and done, and its metrics.
//!
//! Logs are durable: how far each one was passed on is written down, and they go on after a crash. Spans are told as things end, and
//! those that a collector does not take in time are given up and counted.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::extract::Request;
use conductor::Conductor;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use model::lines::{Ended, OpenLines};
use model::log::{Body, Chunk, describe_gap};
use model::spec::JobSpec;
use model::{Clock as _, ExecutionId, JobId, JobState, OrgId, StepStatus, Timestamp, TraceContext, WorkflowId};
use otlp::{Attributes, Record, Signal, Span, What};
use serde_json::json;
use store::{Forwarding, Reader, StoreError};
use tokio::sync::mpsc;

use crate::config::Telemetry;
use crate::metrics::Metrics;
use crate::{AppState, VERSION, metrics};

/// Spans, and ends of things, that wait to be told.
const WAITING: usize = 10_000;
const BATCH: usize = 512;
/// What the lines of a log in one request take, about.
const LOG_BYTES: usize = 1 << 20;
const PAUSE: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long spans are offered to a collector that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Logs that nobody has written to for so long are not passed on any more.
const BACKLOG_S: i64 = 86_400;
/// Who has taken a log in hand has so long.
const TURN_S: i64 = 20;
/// Logs that are looked at at once.
const LOGS: u64 = 64;

/// `NAME=VALUE,NAME=VALUE`, as OpenTelemetry writes it.
pub(crate) fn headers(text: &str) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else { bail!("telemetry.headers: give NAME=VALUE,NAME=VALUE") };
        let name = HeaderName::try_from(name.trim()).context("telemetry.headers: a name is no name of a header")?;
        let value = HeaderValue::try_from(value.trim()).context("telemetry.headers: a value can't be sent")?;
        headers.insert(name, value);
    }
    Ok(headers)
}

enum Told {
    Span(Record),
    Job(OrgId, JobId, ExecutionId),
}

/// Where spans go; nowhere by default.
#[derive(Clone, Default)]
pub(crate) struct Spans(Option<(mpsc::Sender<Told>, Metrics)>);

/// A request that is being answered.
pub(crate) struct Asked {
    /// Itself.
    context: Option<TraceContext>,
    /// Who asked, where that is traced.
    parent: Option<TraceContext>,
    at: Timestamp,
}

impl Asked {
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.context.clone()
    }
}

impl Spans {
    /// The place of a request in a trace: the caller's, or one of its own where spans are told.
    pub(crate) fn request(&self, request: &Request) -> Asked {
        let parent = request.headers().get("traceparent").and_then(|v| v.to_str().ok()).and_then(TraceContext::parse);
        let random = conductor::random_u128();
        let context = match &parent {
            Some(parent) => Some(parent.span(random as u64)),
            None => self.0.is_some().then(|| TraceContext::new(random, conductor::random_u128() as u64)),
        };
        Asked { context, parent, at: conductor::SystemClock.now() }
    }

    pub(crate) fn answered(&self, asked: Asked, method: &Method, route: Option<&str>, status: StatusCode, id: &str) {
        let (Some(_), Some(context)) = (&self.0, asked.context.filter(TraceContext::is_sampled)) else { return };
        let attributes = BTreeMap::from([
            ("http.request.method".to_owned(), json!(method.as_str())),
            ("http.route".to_owned(), json!(route.unwrap_or_default())),
            ("http.response.status_code".to_owned(), json!(status.as_u16())),
            ("ferry.request.id".to_owned(), json!(id)),
        ]);
        let name = format!("{method} {}", route.unwrap_or_default());
        let failed = status.is_server_error().then(String::new);
        let (from, to) = (asked.at, conductor::SystemClock.now());
        let mut span = span(&context, asked.parent.as_ref(), name.trim_end(), (from, to), failed, attributes);
        if let What::Span(span) = &mut span.what {
            span.kind = "server".into();
        }
        self.tell(Told::Span(span));
    }

    pub(crate) fn job_ended(&self, org: &OrgId, job: &JobId, execution: &ExecutionId) {
        self.tell(Told::Job(org.clone(), job.clone(), execution.clone()));
    }

    fn tell(&self, told: Told) {
        // Full: the collector is away.
        if let Some((send, metrics)) = &self.0
            && send.try_send(told).is_err()
        {
            metrics.dropped(Signal::Traces, 1);
        }
    }
}

/// A span without its resource. `failed`: why, where it did.
fn span(
    context: &TraceContext,
    parent: Option<&TraceContext>,
    name: &str,
    (from, to): (Timestamp, Timestamp),
    failed: Option<String>,
    attributes: Attributes,
) -> Record {
    Record {
        time_ns: from.nanos(),
        resource: Attributes::new(),
        scope: "ferry".into(),
        attributes,
        trace_id: context.trace_id(),
        span_id: context.span_id(),
        what: What::Span(Box::new(Span {
            name: name.to_owned(),
            parent_span_id: parent.map(TraceContext::span_id).unwrap_or_default(),
            kind: "internal".into(),
            end_ns: to.max(from).nanos(),
            status: if failed.is_some() { "error".into() } else { String::new() },
            message: failed.unwrap_or_default(),
            ..Span::default()
        })),
    }
}

/// What tells a collector, where there is one.
pub(crate) struct Exporter {
    collector: Collector,
    told: mpsc::Receiver<Told>,
    ended: mpsc::Receiver<(OrgId, WorkflowId)>,
}

struct Collector {
    config: Telemetry,
    headers: HeaderMap,
    http: reqwest::Client,
    /// Who tells it all.
    resource: Attributes,
}

/// The exporter that the configuration asks for, and the ends of its channels.
pub(crate) fn prepare(
    conductor: Conductor,
    config: &Telemetry,
    metrics: &Metrics,
) -> anyhow::Result<(Conductor, Spans, Option<Exporter>)> {
    if config.endpoint.is_empty() {
        return Ok((conductor, Spans::default(), None));
    }
    // The second call finds it installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut http = reqwest::Client::builder()
        .user_agent(concat!("ferry/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(TIMEOUT)
        .timeout(TIMEOUT);
    if config.endpoint.starts_with("http:") {
        http = http.tls_certs_only([]).no_proxy();
    }
    let (send, told) = mpsc::channel(WAITING);
    let (send_ended, ended) = mpsc::channel(WAITING);
    let resource = BTreeMap::from([
        ("service.name".to_owned(), json!(config.service_name)),
        ("service.version".to_owned(), json!(VERSION)),
        ("service.instance.id".to_owned(), json!(format!("{:016x}", conductor::random_u128() as u64))),
    ]);
    let collector = Collector {
        headers: headers(config.headers.as_deref().unwrap_or_default())?,
        config: config.clone(),
        http: http.build()?,
        resource,
    };
    let exporter = Exporter { collector, told, ended };
    if !config.traces {
        return Ok((conductor, Spans::default(), Some(exporter)));
    }
    Ok((conductor.telling(send_ended), Spans(Some((send, metrics.clone()))), Some(exporter)))
}

/// A collector did not take a message.
struct Refused {
    /// Later it may.
    transient: bool,
    why: String,
}

impl Exporter {
    pub(crate) async fn run(self, state: AppState) {
        let Self { collector, told, ended } = self;
        let others = async { tokio::join!(collector.tell_metrics(&state), collector.tell_logs(&state)) };
        let ended_others = async {
            tokio::select! {
                _ = others => {}
                () = state.gate.cancelled() => {}
            }
        };
        tokio::join!(collector.tell_spans(&state, told, ended), ended_others);
    }
}

impl Collector {
    async fn send(&self, state: &AppState, signal: Signal, records: usize, message: Vec<u8>) -> Result<(), Refused> {
        let outcome = self.post(signal, message).await;
        match &outcome {
            Ok(()) => state.metrics.exported(signal, records),
            Err(refused) => {
                state.metrics.export_failed(signal);
                tracing::warn!(signal = signal.as_str(), why = refused.why, "the collector did not take a message");
            }
        }
        outcome
    }

    async fn post(&self, signal: Signal, message: Vec<u8>) -> Result<(), Refused> {
        use std::io::Write as _;
        let failed = |why: String| Refused { transient: true, why };
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        let packed = packer.write_all(&message).and_then(|()| packer.finish()).map_err(|e| failed(e.to_string()))?;
        let url = format!("{}/v1/{}", self.config.endpoint.trim_end_matches('/'), signal.as_str());
        let request = self.http.post(url).headers(self.headers.clone());
        let request = request.header("content-type", "application/x-protobuf").header("content-encoding", "gzip");
        let answer = request.body(packed).send().await.map_err(|e| failed(e.without_url().to_string()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        // Only what is wrong with the message itself stays wrong: a key may be set, a path mended.
        let transient = !matches!(status.as_u16(), 400 | 413 | 415 | 422);
        Err(Refused { transient, why: format!("it answered {status}") })
    }

    async fn tell_spans(
        &self,
        state: &AppState,
        mut told: mpsc::Receiver<Told>,
        mut ended: mpsc::Receiver<(OrgId, WorkflowId)>,
    ) {
        if !self.config.traces {
            return;
        }
        loop {
            let mut spans = Vec::new();
            // What ends while the server stops is told too.
            let last = state.gate.is_cancelled();
            let mut pause = std::pin::pin!(tokio::time::sleep(if last { PAUSE / 5 } else { PAUSE }));
            while spans.len() < BATCH {
                let more = tokio::select! {
                    Some(told) = told.recv() => match told {
                        Told::Span(span) => Ok(vec![span]),
                        Told::Job(org, job, execution) => job_spans(state, &org, &job, &execution).await.map_err(Into::into),
                    },
                    Some((org, workflow)) = ended.recv() => workflow_span(state, &org, &workflow).await,
                    () = &mut pause => break,
                    () = state.gate.cancelled(), if !last => break,
                };
                match more {
                    Ok(more) => spans.extend(more),
                    Err(error) => tracing::debug!(%error, "a span can't be made"),
                }
            }
            if !spans.is_empty() {
                self.offer_spans(state, &spans).await;
            }
            if last && spans.len() < BATCH {
                return;
            }
        }
    }

    async fn offer_spans(&self, state: &AppState, spans: &[Record]) {
        let (began, mut pause) = (tokio::time::Instant::now(), PAUSE);
        loop {
            let Err(refused) =
                self.send(state, Signal::Traces, spans.len(), otlp::encode_spans(&self.resource, spans)).await
            else {
                return;
            };
            if !refused.transient || began.elapsed() > PATIENCE || state.gate.is_cancelled() {
                state.metrics.dropped(Signal::Traces, spans.len());
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Once more, then.
                () = state.gate.cancelled() => {}
            }
            pause *= 2;
        }
    }

    async fn tell_metrics(&self, state: &AppState) {
        if !self.config.metrics {
            return;
        }
        let started = conductor::SystemClock.now().nanos();
        loop {
            tokio::time::sleep(Duration::from_secs(self.config.metrics_s)).await;
            let Ok(gathered) = state.metrics.gather(state).await else { continue };
            let families = metrics::families(&gathered);
            let samples = families.iter().map(|family| family.samples.len()).sum();
            let now = conductor::SystemClock.now().nanos();
            let message = otlp::encode_metrics(&self.resource, families, started, now);
            if self.send(state, Signal::Metrics, samples, message).await.is_err() {
                // The next one says all of it anew.
                state.metrics.dropped(Signal::Metrics, samples);
            }
        }
    }

    async fn tell_logs(&self, state: &AppState) {
        if !self.config.logs {
            return;
        }
        loop {
            let now = state.conductor.now();
            let some = state.store().forwardable(now.plus_s(-BACKLOG_S), now, LOGS).await.unwrap_or_default();
            let mut all_taken = true;
            for log in &some {
                match self.forward(state, log).await {
                    Ok(taken) => all_taken &= taken,
                    Err(error) => {
                        tracing::warn!(%error, log = %log.log, "a log is passed on later");
                        all_taken = false;
                    }
                }
            }
            if some.is_empty() || !all_taken {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Passes on what is new of a log; false: the collector did not take it.
    async fn forward(&self, state: &AppState, log: &Forwarding) -> store::Result<bool> {
        let store = state.store();
        let now = state.conductor.now();
        if !state.conductor.take_forwarding(log, now.plus_s(TURN_S)).await? {
            return Ok(true);
        }
        let about = match About::of(store, log, &self.resource).await {
            Ok(about) => about,
            Err(StoreError::NotFound(_)) => {
                // Its job is gone, and the log will be soon.
                state.conductor.forwarded(&log.log, i64::MAX as u64, now).await?;
                return Ok(true);
            }
            Err(other) => return Err(other),
        };
        let chunks = store.read_log(&log.log, log.from_seq).await?;
        if chunks.is_empty() {
            // A head that promises more than there is: looked at again when the turn is over.
            return Ok(false);
        }
        let (mut records, mut spans, mut size, mut next) = (Vec::new(), Vec::new(), 0, log.from_seq);
        let mut open = OpenLines::default();
        for chunk in &chunks {
            let before = records.len();
            let mut ended = open.pass(chunk);
            if ended.is_beginning_unknown() {
                ended.begin(store.beginning_of_line(&log.log, chunk).await?);
            }
            match exported(chunk) {
                Some(record) => {
                    size += chunk.body.len() as usize;
                    add_exported(record, &mut records, &mut spans);
                }
                None => {
                    about.records(chunk, &ended, &mut records);
                    size += records[before..].iter().map(weight).sum::<usize>();
                }
            }
            next = chunk.seq + 1;
            if size >= LOG_BYTES {
                break;
            }
        }
        let messages = [
            (Signal::Logs, records.len(), otlp::encode_logs(&about.resource, &records)),
            (Signal::Traces, spans.len(), otlp::encode_spans(&about.resource, &spans)),
        ];
        for (signal, count, message) in messages {
            if count == 0 || signal == Signal::Traces && !self.config.traces {
                continue;
            }
            match self.send(state, signal, count, message).await {
                Err(Refused { transient: true, .. }) => {
                    state.conductor.forwarded(&log.log, log.from_seq, now.plus_s(PAUSE.as_secs() as i64)).await?;
                    return Ok(false);
                }
                Err(_) => state.metrics.dropped(signal, count),
                Ok(()) => {}
            }
        }
        state.conductor.forwarded(&log.log, next, now).await?;
        Ok(true)
    }
}

/// The record that a program of the job exported, where the chunk is one.
fn exported(chunk: &Chunk) -> Option<Record> {
    match &chunk.body {
        Body::Data(data) if chunk.pipe.holds_records() => serde_json::from_slice(data).ok(),
        Body::Data(_) | Body::Gap(_) => None,
    }
}

/// Passes on what a program exported. Metrics stay in the job's log: their points lack what a collector needs to add them up.
fn add_exported(record: Record, logs: &mut Vec<Record>, spans: &mut Vec<Record>) {
    match &record.what {
        What::Log { .. } => logs.push(record),
        What::Span(_) => spans.push(record),
        What::Point { .. } => {}
    }
}

fn weight(record: &Record) -> usize {
    match &record.what {
        What::Log { body, .. } => body.as_str().map_or(0, str::len) + 200,
        What::Span(_) | What::Point { .. } => 0,
    }
}

/// What a log belongs to.
struct About {
    resource: Attributes,
    execution: ExecutionId,
    steps: Vec<String>,
    /// The job's span, where it is traced.
    trace: Option<TraceContext>,
}

impl About {
    async fn of(store: &Reader, log: &Forwarding, resource: &Attributes) -> store::Result<Self> {
        let execution = store.execution_of_anyone(&log.log).await?;
        let job = store.job(&log.org, &execution.job_id).await?;
        let trace = parent_of(store, &log.org, &job.id).await?.map(|parent| parent.span_of(job.id.as_str()));
        let mut resource = resource.clone();
        resource.extend([
            ("ferry.org.id".to_owned(), json!(log.org)),
            ("ferry.runner.id".to_owned(), json!(job.runner_id)),
            ("ferry.install.id".to_owned(), json!(job.install_id)),
            ("ferry.job.id".to_owned(), json!(job.id)),
            ("ferry.job.type".to_owned(), json!(job.job_type)),
            ("ferry.execution.id".to_owned(), json!(execution.id)),
        ]);
        resource.retain(|_, value| !value.is_null());
        let steps = execution.steps.into_iter().map(|step| step.name).collect();
        Ok(Self { resource, execution: execution.id, steps, trace })
    }

    /// A record for each line that a chunk ends, and one for a gap.
    fn records(&self, chunk: &Chunk, ended: &Ended, into: &mut Vec<Record>) {
        let gap = match &chunk.body {
            Body::Data(_) => None,
            Body::Gap(missing) => Some((1, format!("[{}]", describe_gap(*missing, Some(chunk.pipe.as_str()))))),
        };
        let lines = ended.lines().map(|(at, line)| (at, String::from_utf8_lossy(&line).into_owned()));
        let step = self.steps.get(chunk.step as usize);
        let mut attributes = BTreeMap::from([("log.iostream".to_owned(), json!(chunk.pipe.as_str()))]);
        if let Some(step) = step {
            attributes.insert("ferry.step".into(), json!(step));
        }
        let context = self.trace.as_ref().map(|trace| match step {
            Some(_) => trace.step(self.execution.as_str(), chunk.step as usize),
            None => trace.clone(),
        });
        let (severity_text, severity_number) = chunk.pipe.severity();
        for (at, line) in lines.chain(gap) {
            into.push(Record {
                time_ns: chunk.time_ns + at as u64,
                resource: Attributes::new(),
                scope: "ferry".into(),
                attributes: attributes.clone(),
                trace_id: context.as_ref().map(TraceContext::trace_id).unwrap_or_default(),
                span_id: context.as_ref().map(TraceContext::span_id).unwrap_or_default(),
                what: What::Log { severity_number, severity_text: severity_text.into(), body: json!(line) },
            });
        }
    }
}

/// What a job is a part of, where it is traced.
async fn parent_of(store: &Reader, org: &OrgId, job: &JobId) -> store::Result<Option<TraceContext>> {
    let spec = store.spec(org, job).await?;
    Ok(serde_json::from_slice::<JobSpec>(&spec).ok().and_then(|spec| spec.trace))
}

/// The spans of a job that has ended, and of its steps.
async fn job_spans(state: &AppState, org: &OrgId, id: &JobId, execution: &ExecutionId) -> store::Result<Vec<Record>> {
    let store = state.store();
    let parent = parent_of(store, org, id).await?.filter(TraceContext::is_sampled);
    let Some(parent) = parent else { return Ok(Vec::new()) };
    let (job, execution) = (store.job(org, id).await?, store.execution_of_anyone(execution).await?);
    let context = parent.span_of(id.as_str());
    let mut attributes = BTreeMap::from([
        ("ferry.org.id".to_owned(), json!(org)),
        ("ferry.job.id".to_owned(), json!(id)),
        ("ferry.execution.id".to_owned(), json!(execution.id)),
        ("ferry.runner.id".to_owned(), json!(job.runner_id)),
    ]);
    if let Some(install) = &job.install_id {
        attributes.insert("ferry.install.id".into(), json!(install));
    }
    let end = job.finished_at.unwrap_or(job.updated_at);
    let failed = (job.state != JobState::Finished).then(|| job.reason.clone());
    let name = format!("job {}", job.name.as_deref().unwrap_or(job.job_type.as_str()));
    let mut spans = vec![span(&context, Some(&parent), &name, (job.created_at, end), failed, attributes)];
    for (at, step) in execution.steps.iter().enumerate() {
        let Some(started) = step.started_at else { continue };
        let own = context.step(execution.id.as_str(), at);
        let failed = (step.status != StepStatus::Finished).then(|| step.error.clone().unwrap_or_default());
        let attributes = BTreeMap::from([("ferry.job.id".to_owned(), json!(id))]);
        let times = (started, step.finished_at.unwrap_or(end));
        spans.push(span(&own, Some(&context), &format!("step {}", step.name), times, failed, attributes));
    }
    Ok(spans)
}

/// The span of a workflow that has ended.
async fn workflow_span(state: &AppState, org: &OrgId, id: &WorkflowId) -> conductor::Result<Vec<Record>> {
    let loaded = state.conductor.workflow(org, id).await?;
    let Some(parent) = loaded.body.trace.as_ref().filter(|trace| trace.is_sampled()) else { return Ok(Vec::new()) };
    let attributes = BTreeMap::from([
        ("ferry.org.id".to_owned(), json!(org)),
        ("ferry.workflow.id".to_owned(), json!(id)),
        ("ferry.install.id".to_owned(), json!(loaded.row.install_id)),
    ]);
    let row = &loaded.row;
    let times = (row.created_at, row.finished_at.unwrap_or(row.updated_at));
    let failed = (row.status != "success").then(|| loaded.body.failure.clone().unwrap_or_else(|| row.status.clone()));
    let (context, name) = (parent.span_of(id.as_str()), format!("workflow {}", row.kind));
    Ok(vec![span(&context, Some(parent), &name, times, failed, attributes)])
}
