//! Counters of this process, for Prometheus and for a collector. No label names an org, an install or a person.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{Method, StatusCode};
use otlp::{Family, Kind, Sample, Signal};
use prometheus::core::Collector;
use prometheus::proto::{MetricFamily, MetricType};
use prometheus::{
    Encoder as _, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::{AppState, VERSION};

/// Seconds; the longest are held polls.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    log_bytes: IntCounter,
    log_chunks: IntCounter,
    received: IntCounterVec,
    exported: IntCounterVec,
    export_failures: IntCounterVec,
    dropped: IntCounterVec,
    polls: IntGauge,
    jobs: IntGaugeVec,
    workflows: IntGaugeVec,
    runners: IntGauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self::registered().expect("names, helps and labels are constants")
    }

    fn registered() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let gauges = |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels);
        let seconds = HistogramOpts::new(
            "ferry_http_request_duration_seconds",
            "From a request's head to the head of its answer; polls are held until there is work.",
        );
        let metrics = Self {
            requests: counters(
                "ferry_http_requests_total",
                "Requests that were answered.",
                &["api", "method", "route", "status"],
            )?,
            seconds: HistogramVec::new(seconds.buckets(BUCKETS.to_vec()), &["api", "route"])?,
            log_bytes: IntCounter::new("ferry_log_received_bytes_total", "Log bytes of runners, compressed.")?,
            log_chunks: IntCounter::new("ferry_log_received_chunks_total", "Log chunks of runners.")?,
            received: counters(
                "ferry_otlp_received_records_total",
                "Records that OpenTelemetry exporters sent.",
                &["signal"],
            )?,
            exported: counters("ferry_otlp_exported_records_total", "Records that a collector took.", &["signal"])?,
            export_failures: counters(
                "ferry_otlp_export_failures_total",
                "Requests that a collector did not take.",
                &["signal"],
            )?,
            dropped: counters(
                "ferry_otlp_dropped_records_total",
                "Records that were given up because the collector was away, or refused them.",
                &["signal"],
            )?,
            polls: IntGauge::new("ferry_polls_held", "Polls of runners that are held by this server.")?,
            jobs: gauges("ferry_jobs", "Jobs that are not over.", &["state"])?,
            workflows: gauges("ferry_workflows", "Workflows that are not over.", &["status"])?,
            runners: IntGauge::new("ferry_runners", "Runners that are not revoked.")?,
            registry,
        };
        for signal in Signal::ALL {
            for counter in [&metrics.received, &metrics.exported, &metrics.export_failures, &metrics.dropped] {
                counter.with_label_values(&[signal.as_str()]);
            }
        }
        let info = IntGaugeVec::new(Opts::new("ferry_build_info", "The version of this program."), &["version"])?;
        info.with_label_values(&[VERSION]).set(1);
        let all: [Box<dyn Collector>; 13] = [
            Box::new(info),
            Box::new(metrics.requests.clone()),
            Box::new(metrics.seconds.clone()),
            Box::new(metrics.log_bytes.clone()),
            Box::new(metrics.log_chunks.clone()),
            Box::new(metrics.received.clone()),
            Box::new(metrics.exported.clone()),
            Box::new(metrics.export_failures.clone()),
            Box::new(metrics.dropped.clone()),
            Box::new(metrics.polls.clone()),
            Box::new(metrics.jobs.clone()),
            Box::new(metrics.workflows.clone()),
            Box::new(metrics.runners.clone()),
        ];
        for collector in all {
            metrics.registry.register(collector)?;
        }
        metrics.registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(metrics)
    }

    /// `route` is a path with names for its parts; None: no path of ours.
    pub(crate) fn answered(&self, api: &str, method: &Method, route: Option<&str>, status: StatusCode, took: Duration) {
        // Anyone may invent a method: only those that mean something are labels.
        let known =
            [Method::OPTIONS, Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let method = if known.contains(method) { method.as_str() } else { "other" };
        let route = route.unwrap_or("none");
        self.requests.with_label_values(&[api, method, route, status.as_str()]).inc();
        self.seconds.with_label_values(&[api, route]).observe(took.as_secs_f64());
    }

    pub(crate) fn log_received(&self, bytes: usize, chunks: usize) {
        self.log_bytes.inc_by(bytes as u64);
        self.log_chunks.inc_by(chunks as u64);
    }

    pub(crate) fn received(&self, signal: Signal, records: u64) {
        self.received.with_label_values(&[signal.as_str()]).inc_by(records);
    }

    pub(crate) fn exported(&self, signal: Signal, records: usize) {
        self.exported.with_label_values(&[signal.as_str()]).inc_by(records as u64);
    }

    pub(crate) fn export_failed(&self, signal: Signal) {
        self.export_failures.with_label_values(&[signal.as_str()]).inc();
    }

    pub(crate) fn dropped(&self, signal: Signal, records: usize) {
        self.dropped.with_label_values(&[signal.as_str()]).inc_by(records as u64);
    }

    /// Counts what the database knows, and gathers all.
    pub(crate) async fn gather(&self, state: &AppState) -> store::Result<Vec<MetricFamily>> {
        let counts = state.store().open_counts().await?;
        for (gauge, counted) in [(&self.jobs, counts.jobs), (&self.workflows, counts.workflows)] {
            for (name, count) in counted {
                gauge.with_label_values(&[name.as_str()]).set(count);
            }
        }
        self.runners.set(counts.runners);
        let polls = state.polls.lock().unwrap_or_else(std::sync::PoisonError::into_inner).len();
        self.polls.set(polls as i64);
        Ok(self.registry.gather())
    }
}

/// The listener for Prometheus.
pub(crate) fn router(state: AppState) -> Router {
    Router::new().route("/metrics", get(text)).with_state(state)
}

async fn text(State(state): State<AppState>) -> Response {
    let mut text = Vec::new();
    let families = match state.metrics.gather(&state).await {
        Ok(families) => families,
        Err(error) => {
            // What this process counts is true without the database.
            tracing::warn!(%error, "the database can't be counted");
            state.metrics.registry.gather()
        }
    };
    if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
        return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
    }
    ([(http::header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response()
}

/// The same, as a collector takes it.
pub(crate) fn families(gathered: &[MetricFamily]) -> Vec<Family> {
    let family = |family: &MetricFamily| {
        let kind = match family.get_field_type() {
            MetricType::COUNTER => Kind::Counter,
            MetricType::HISTOGRAM => Kind::Histogram,
            _ => Kind::Gauge,
        };
        let samples = family.get_metric().iter().map(|metric| {
            let labels = metric.get_label().iter().map(|l| (l.name().to_owned(), l.value().into())).collect();
            let sample = match kind {
                Kind::Counter => Sample::Number(metric.get_counter().get_value()),
                Kind::Gauge => Sample::Number(metric.get_gauge().get_value()),
                Kind::Histogram => {
                    let histogram = metric.get_histogram();
                    let (mut bounds, mut buckets, mut before) = (Vec::new(), Vec::new(), 0);
                    for bucket in histogram.get_bucket() {
                        bounds.push(bucket.upper_bound());
                        buckets.push(bucket.cumulative_count() - before);
                        before = bucket.cumulative_count();
                    }
                    let count = histogram.get_sample_count();
                    buckets.push(count.saturating_sub(before));
                    Sample::Histogram { count, sum: histogram.get_sample_sum(), bounds, buckets }
                }
            };
            (labels, sample)
        });
        Family { name: family.name().to_owned(), help: family.help().to_owned(), kind, samples: samples.collect() }
    };
    gathered.iter().map(family).collect()
}
