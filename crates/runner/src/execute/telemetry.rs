//! Receives what the programs of a job export by OTLP, on loopback, and writes it to the job's log, masked.
//!
//! Each step gets its own address in `OTEL_EXPORTER_OTLP_ENDPOINT`. The address holds a random token, so that no other program on
//! the machine writes into the log. An exporter gets its answer after its records are in the spool.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mask::Masks;
use model::constants::CHUNK_BYTES;
use model::log::Pipe;
use otlp::{Attributes, Encoding, Record, Signal, What};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::now;
use tokio::task::JoinSet;

use crate::logs::secrets::Secrets;
use crate::logs::spool::SpoolWriter;

/// Largest message, compressed and not.
const BODY_BYTES_MAX: u64 = 16 << 20;
const CONNECTIONS_MAX: usize = 16;
/// How long a connection may take to send the head of a request.
const HEAD_WAIT: Duration = Duration::from_secs(10);
const TOO_LARGE: &str = "records over 64 KiB, over 20,000 in a message, or beyond the log's room are refused";

/// Listens for exporters while an execution lasts.
pub(super) struct Telemetry {
    endpoint: String,
    messages: mpsc::Receiver<Message>,
    task: JoinHandle<()>,
}

/// What one request brought.
struct Message {
    step: u32,
    pipe: Pipe,
    records: Vec<Vec<u8>>,
    /// Takes how many of the records were refused.
    refused: oneshot::Sender<usize>,
}

impl Telemetry {
    pub(super) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let token = hex::encode(random);
        let endpoint = format!("http://{}/{token}", listener.local_addr()?);
        let (sender, messages) = mpsc::channel(1);
        let task = tokio::spawn(serve(listener, token, sender));
        Ok(Self { endpoint, messages, task })
    }

    /// Where the programs of all steps export to, without the number of the step.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Writes what comes in to the log; never ends.
    pub(super) async fn write_to(&mut self, log: &RefCell<SpoolWriter>, secrets: &Secrets) {
        while let Some(Message { step, pipe, records, refused }) = self.messages.recv().await {
            let masks = secrets.masks();
            let mut lost = 0;
            for record in records {
                let taken = masked(&masks, &record).is_some_and(|json| log.borrow_mut().write_chunk(pipe, step, &json));
                lost += usize::from(!taken);
            }
            let _ = refused.send(lost);
        }
        std::future::pending().await
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The record without secrets, as JSON; None where it is too large.
fn masked(masks: &Masks, json: &[u8]) -> Option<Vec<u8>> {
    let record: Record = serde_json::from_slice(json).ok()?;
    let attributes = |of: Attributes| -> Attributes {
        of.into_iter().map(|(name, value)| (masks.mask_text(&name), masks.mask_value(value))).collect()
    };
    let text = |of: String| masks.mask_text(&of);
    let what = match record.what {
        What::Log { severity_number, severity_text, body } => {
            What::Log { severity_number, severity_text: text(severity_text), body: masks.mask_value(body) }
        }
        What::Span(mut span) => {
            span.name = text(span.name);
            span.message = text(span.message);
            for event in &mut span.events {
                event.name = masks.mask_text(&event.name);
                event.attributes = attributes(std::mem::take(&mut event.attributes));
            }
            What::Span(span)
        }
        What::Point { name, unit, kind, value } => {
            What::Point { name: text(name), unit: text(unit), kind, value: masks.mask_value(value) }
        }
    };
    let clean = Record {
        time_ns: record.time_ns,
        resource: attributes(record.resource),
        scope: text(record.scope),
        attributes: attributes(record.attributes),
        trace_id: record.trace_id,
        span_id: record.span_id,
        what,
    };
    serde_json::to_vec(&clean).ok().filter(|json| json.len() <= CHUNK_BYTES)
}

async fn serve(listener: TcpListener, token: String, sender: mpsc::Sender<Message>) {
    let token: Arc<str> = token.into();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (token, sender) = (Arc::clone(&token), sender.clone());
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            let _permit = permit;
            let service = service_fn(|request| {
                let (token, sender) = (Arc::clone(&token), sender.clone());
                async move { Ok::<_, Infallible>(answer(&token, &sender, request).await) }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT);
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

async fn answer(token: &str, sender: &mpsc::Sender<Message>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let Some((step, signal)) = place(token, request.uri().path()).filter(|_| request.method() == Method::POST) else {
        return text(StatusCode::NOT_FOUND, "export to the address in OTEL_EXPORTER_OTLP_ENDPOINT");
    };
    let header = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some(encoding) = Encoding::of(header(&CONTENT_TYPE).unwrap_or_default()) else {
        return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/x-protobuf or application/json");
    };
    let packed = match header(&CONTENT_ENCODING).unwrap_or_default() {
        "" | "identity" => false,
        "gzip" => true,
        _ => return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send it uncompressed, or with gzip"),
    };
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX as usize).collect().await;
    let Ok(body) = body.map(http_body_util::Collected::to_bytes) else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "export smaller batches");
    };
    let body = match if packed { unpack(&body) } else { Ok(body) } {
        Ok(body) => body,
        Err(status) => return text(status, "the body can't be unpacked: export smaller batches, with gzip or without"),
    };
    let received = match otlp::decode(signal, encoding, &body, now().nanos()) {
        Ok(received) => received,
        Err(error) => return text(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let pipe = match signal {
        Signal::Logs => Pipe::Logs,
        Signal::Traces => Pipe::Traces,
        Signal::Metrics => Pipe::Metrics,
    };
    let (refused, written) = oneshot::channel();
    let sent = sender.send(Message { step, pipe, records: received.records, refused }).await;
    let Some(lost) = (match sent {
        Ok(()) => written.await.ok(),
        Err(_) => None,
    }) else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "the execution is ending");
    };
    let refused = received.refused + lost;
    let answer = otlp::answer(signal, encoding, refused, if refused > 0 { TOO_LARGE } else { "" });
    let mut response = text(StatusCode::OK, answer);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
    response
}

/// The step and the signal of `/TOKEN/STEP/v1/SIGNAL`.
fn place(token: &str, path: &str) -> Option<(u32, Signal)> {
    let rest = path.strip_prefix('/')?.strip_prefix(token)?.strip_prefix('/')?;
    let (step, signal) = rest.split_once("/v1/")?;
    Some((step.parse().ok()?, Signal::ALL.into_iter().find(|s| s.as_str() == signal)?))
}

fn unpack(body: &[u8]) -> Result<Bytes, StatusCode> {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(body).take(BODY_BYTES_MAX + 1).read_to_end(&mut plain);
    match read {
        Ok(size) if size as u64 <= BODY_BYTES_MAX => Ok(plain.into()),
        Ok(_) => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::BAD_REQUEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_step_and_its_signal() {
        let cases = [
            ("/abc/0/v1/logs", Some((0, Signal::Logs))),
            ("/abc/12/v1/traces", Some((12, Signal::Traces))),
            ("/abc/0/v1/profiles", None),
            ("/abd/0/v1/logs", None),
            ("/abc/x/v1/logs", None),
            ("/v1/logs", None),
        ];
        for (path, want) in cases {
            assert_eq!(place("abc", path), want, "{path}");
        }
    }

    #[test]
    fn no_text_of_a_record_keeps_a_secret() {
        let secret = "hunter2-hunter2";
        let masks = Masks::new(&[secret.to_owned()]);
        let json = serde_json::json!({
            "time_ns": 1, "scope": secret, "resource": {"r": secret}, "attributes": {secret: [secret, {"deep": secret}]},
            "what": {"span": {"name": secret, "end_ns": 2, "message": secret, "status": "error",
                "events": [{"time_ns": 1, "name": secret, "attributes": {"e": secret}}]}},
        });
        let clean = masked(&masks, json.to_string().as_bytes()).expect("a record");
        let clean = String::from_utf8(clean).expect("text");
        assert!(!clean.contains(secret) && clean.matches("***").count() == 9, "{clean}");
        let log = serde_json::json!({"time_ns": 1, "what": {"log": {"severity_number": 9, "severity_text": secret, "body": secret}}});
        let clean = String::from_utf8(masked(&masks, log.to_string().as_bytes()).expect("a record")).expect("text");
        assert!(!clean.contains(secret), "{clean}");
    }
}
