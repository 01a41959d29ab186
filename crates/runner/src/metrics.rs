//! Counters of the runner's process, for a Prometheus in the customer's account. Nothing is served unless an address is given.

use std::convert::Infallible;
use std::net::SocketAddr;

use gate::Gate;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use model::{Outcome, Timestamp};
use prometheus::core::Collector;
use prometheus::{Encoder as _, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use tokio::net::TcpListener;

#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    calls: IntCounterVec,
    last_answer: IntGauge,
    log_bytes: IntCounter,
    results: IntCounterVec,
    executions: IntGauge,
    disk_free: IntGauge,
    disabled: IntGauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::registered().expect("names, helps and labels are constants")
    }
}

impl Metrics {
    fn registered() -> prometheus::Result<Self> {
        let metrics = Self {
            registry: Registry::new(),
            calls: IntCounterVec::new(
                Opts::new("ferry_runner_calls_total", "Requests to the control plane, by how they ended."),
                &["call", "outcome"],
            )?,
            last_answer: IntGauge::new(
                "ferry_runner_last_answer_timestamp_seconds",
                "When the control plane last answered; 0 = never.",
            )?,
            log_bytes: IntCounter::new(
                "ferry_runner_log_sent_bytes_total",
                "Log bytes that the control plane took, compressed.",
            )?,
            results: IntCounterVec::new(
                Opts::new("ferry_runner_results_total", "Executions whose result the control plane took."),
                &["outcome"],
            )?,
            executions: IntGauge::new("ferry_runner_executions", "Executions at this moment.")?,
            disk_free: IntGauge::new("ferry_runner_disk_free_bytes", "Free room for executions.")?,
            disabled: IntGauge::new("ferry_runner_disabled", "1 while the runner is switched off.")?,
        };
        let info = IntGaugeVec::new(Opts::new("ferry_build_info", "The version of this program."), &["version"])?;
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let all: [Box<dyn Collector>; 8] = [
            Box::new(info),
            Box::new(metrics.calls.clone()),
            Box::new(metrics.last_answer.clone()),
            Box::new(metrics.log_bytes.clone()),
            Box::new(metrics.results.clone()),
            Box::new(metrics.executions.clone()),
            Box::new(metrics.disk_free.clone()),
            Box::new(metrics.disabled.clone()),
        ];
        for collector in all {
            metrics.registry.register(collector)?;
        }
        metrics.registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(metrics)
    }

    /// `outcome`: `ok`, `refused`, or `failed` where nobody has answered.
    pub(crate) fn called(&self, call: &str, outcome: &str, now: Timestamp) {
        self.calls.with_label_values(&[call, outcome]).inc();
        if outcome != "failed" {
            self.last_answer.set(now.micros() / 1_000_000);
        }
    }

    pub(crate) fn log_sent(&self, bytes: usize) {
        self.log_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn result_taken(&self, outcome: Outcome) {
        let name = match outcome {
            Outcome::Finished => "finished",
            Outcome::Failed => "failed",
            Outcome::TimedOut => "timed-out",
            Outcome::Cancelled => "cancelled",
            Outcome::NotAttempted => "not-attempted",
        };
        self.results.with_label_values(&[name]).inc();
    }

    pub(crate) fn stand(&self, executions: usize, disk_free_bytes: u64, disabled: bool) {
        self.executions.set(executions as i64);
        self.disk_free.set(disk_free_bytes as i64);
        self.disabled.set(i64::from(disabled));
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let plain = |status: StatusCode, text: Vec<u8>| {
            let mut response = Response::new(Full::new(Bytes::from(text)));
            *response.status_mut() = status;
            let kind = hyper::header::HeaderValue::from_static(prometheus::TEXT_FORMAT);
            response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
            response
        };
        if request.uri().path() != "/metrics" || request.method() != Method::GET {
            return plain(StatusCode::NOT_FOUND, b"there is only GET /metrics\n".to_vec());
        }
        let mut text = Vec::new();
        match TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            Ok(()) => plain(StatusCode::OK, text),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into_bytes()),
        }
    }

    /// Serves `/metrics` until the gate closes.
    pub(crate) async fn serve(self, listen: &str, gate: &Gate) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let connections = gate.clone();
        gate.spawn_until_stopped(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                };
                let metrics = self.clone();
                connections.spawn_until_stopped(async move {
                    let service = service_fn(|request| {
                        let answer = metrics.answer(&request);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    let _ = tokio::time::timeout(std::time::Duration::from_secs(30), served).await;
                });
            }
        });
        Ok(address)
    }
}
