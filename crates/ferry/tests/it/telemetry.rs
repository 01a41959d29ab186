//! OpenTelemetry and Prometheus: what others send is read back, what is ours arrives at a collector, and metrics are what
//! Prometheus reads.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use api::client::{Client, LogFilter};
use api::control::{CreateToken, LogRecord, Token};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use model::{JobState, LogStreamId, Role, TraceContext};
use otlp::{Encoding, Record, Signal, What};
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::{SOON, System, action, command, run, script, shown, until};

use crate::clients::python_tool;
use crate::registry_clients::tool;
use crate::workflows::Rehearsal;
use crate::{options, seconds};

/// A telemetry token of the system's install.
async fn token(system: &System, name: &str) -> Token {
    let runner_id = Some(system.runner().await.id);
    let token = CreateToken { name: name.into(), role: Role::ReadOnly, runner_id, expires_in_s: None };
    system.client.create_token(&token).await.unwrap()
}

async fn stream(system: &System) -> LogStreamId {
    model::log::telemetry_stream(&system.runner().await.id)
}

async fn records(client: &Client, stream: &LogStreamId, filter: &LogFilter) -> Vec<LogRecord> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let (page, next) = client.log_records(stream, filter, cursor.as_deref()).await.unwrap();
        all.extend(page);
        let Some(next) = next else { return all };
        cursor = Some(next);
    }
}

fn pipe(name: &str) -> LogFilter {
    LogFilter::pipe(Some(name))
}

/// Runs the exporters of Python's SDK; returns the trace that they told of.
async fn export(system: &System, token: &str, count: usize) -> String {
    let mut command = std::process::Command::new(python_tool("python"));
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/exporter.py"))
        .arg(count.to_string())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &system.runner_url)
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer {token}"));
    let output = run(command).await;
    assert!(output.status.success() && output.stderr.is_empty(), "{}", shown(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn a_real_exporter(backend: Backend) {
    const COUNT: usize = 700;
    let system = System::start(options().on(backend)).await;
    let (made, stream) = (token(&system, "till").await, stream(&system).await);
    let trace = export(&system, made.token.as_deref().unwrap(), COUNT).await;

    let logs = records(&system.client, &stream, &pipe("logs")).await;
    let sold = |n: usize| format!("sold {n}");
    let bodies: Vec<&str> = logs.iter().map(|r| r.body.as_str()).collect();
    assert_eq!(bodies.len(), COUNT + 1);
    assert!((0..COUNT).all(|n| bodies[n] == sold(n)) && bodies[COUNT] == "the card was refused: code 42");
    let (first, last) = (&logs[0], &logs[COUNT]);
    assert_eq!((first.severity_text.as_str(), first.severity_number, first.service_name.as_str()), ("INFO", 9, "till"));
    assert_eq!((last.severity_text.as_str(), last.severity_number), ("ERROR", 17));
    assert_eq!((first.log_attributes["item"].as_str(), first.trace_id.as_str()), ("i-0", trace.as_str()));
    assert_eq!(first.resource_attributes["deployment.environment"], "shop");
    assert!(first.runner_job_id.is_none() && first.runner_id == system.runner().await.id);

    // The same filters as any log.
    let only = |level: &str, grep: &str| LogFilter {
        level: Some(level.into()),
        grep: Some(grep.into()),
        ..LogFilter::default()
    };
    assert_eq!(records(&system.client, &stream, &only("error", "code 42")).await.len(), 1);
    assert_eq!(records(&system.client, &stream, &only("fatal", "code 42")).await.len(), 0);

    let spans = records(&system.client, &stream, &pipe("traces")).await;
    let of = |name: &str| {
        let found = spans.iter().find(|s| s.data.as_ref().unwrap()["span"]["name"] == name).expect(name);
        (found, found.data.as_ref().unwrap()["span"].clone())
    };
    let ((sale, _), (pay, inner)) = (of("sale"), of("pay"));
    assert_eq!((spans.len(), &sale.trace_id, &inner["parent_span_id"]), (2, &trace, &json!(sale.span_id)));
    assert_eq!((&inner["status"], &inner["events"][0]["name"]), (&json!("error"), &json!("exception")));
    assert_eq!((sale.log_attributes["customer"].as_str(), pay.severity_text.as_str()), ("c-7", "ERROR"));

    let points = records(&system.client, &stream, &pipe("metrics")).await;
    let of = |name: &str| {
        let point = points.iter().map(|p| &p.data.as_ref().unwrap()["point"]).find(|p| p["name"] == name);
        point.unwrap_or_else(|| panic!("{name}: {points:#?}")).clone()
    };
    assert_eq!((&of("sold.items")["value"], &of("sold.items")["kind"]), (&json!(COUNT), &json!("sum")));
    assert_eq!(of("sale.duration")["value"]["count"], COUNT);

    // On the command line, live too.
    let output = system.ferry(&["logs", "--install", "customer", "--pipe", "logs", "--grep", "sold 69"]).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 11, "{}", shown(&output));
    let output = system.ferry(&["logs", "--install", "customer", "--pipe", "traces"]).await;
    assert!(String::from_utf8_lossy(&output.stdout).contains(" ms error: refused"), "{}", shown(&output));
    let followed = system.root().join("followed");
    let mut follower = system.ferry_command();
    follower.args(["logs", "--install", "customer", "-f", "--grep", "code 42"]);
    let mut follower = follower.stdout(fs_err::File::create(&followed).unwrap().into_parts().0).spawn().unwrap();
    export(&system, made.token.as_deref().unwrap(), 3).await;
    until("the follower shows both", SOON, async || {
        let text = fs_err::read_to_string(&followed).unwrap();
        if text.lines().count() == 2 { Ok(()) } else { Err(text) }
    })
    .await;
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[tokio::test]
async fn what_a_real_exporter_sends_is_read_back() {
    a_real_exporter(Backend::Sqlite).await;
}

#[tokio::test]
async fn what_a_real_exporter_sends_is_read_back_on_postgresql() {
    a_real_exporter(Backend::Postgres).await;
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// One log record as JSON.
fn one_log(body: &Value) -> Value {
    json!({ "resourceLogs": [{ "scopeLogs": [{ "logRecords": [
        { "timeUnixNano": "1700000000000000001", "severityNumber": 13, "body": body,
          "traceId": "5b8efff798038103d269b633813fc60c", "attributes": [{ "key": "n", "value": { "intValue": "7" } }] },
    ] }] }] })
}

#[tokio::test]
async fn an_exporter_reaches_its_own_install_and_nothing_else() {
    let system = System::start(options()).await;
    let made = token(&system, "till").await;
    let (token, stream) = (made.token.clone().unwrap(), stream(&system).await);
    let send = async |signal: &str, token: &str, kind: &str, encoding: &str, body: Vec<u8>| {
        let request = crate::security::http().post(format!("{}/v1/{signal}", system.runner_url)).body(body);
        let request = request.bearer_auth(token).header("content-type", kind).header("content-encoding", encoding);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let json_type = "application/json";
    let hello = one_log(&json!({ "stringValue": "hello" })).to_string().into_bytes();
    let (status, answer) = send("logs", &token, json_type, "gzip", gzip(&hello)).await;
    assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (200, json!({})));
    let taken = records(&system.client, &stream, &LogFilter::default()).await;
    assert_eq!((taken.len(), taken[0].body.as_str(), taken[0].severity_text.as_str()), (1, "hello", "WARN"));
    assert_eq!(taken[0].timestamp, "2023-11-14T22:13:20.000000Z");
    assert_eq!((taken[0].log_attributes["n"].as_str(), taken[0].trace_id.len()), ("7", 32));

    // Times beyond what is counted are no error.
    let far = LogFilter { until: Some(model::Timestamp::from_micros(253_370_764_800_000_000)), ..LogFilter::default() };
    assert_eq!(records(&system.client, &stream, &far).await.len(), 1);

    // What is wrong is said, and nothing is kept of it.
    let large = one_log(&json!({ "stringValue": "x".repeat(300 << 10) })).to_string().into_bytes();
    let (status, answer) = send("logs", &token, json_type, "", large).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (status, answer["partialSuccess"]["rejectedLogRecords"].to_string().contains('1')),
        (200, true),
        "{answer}"
    );
    let bomb = gzip(&vec![b' '; 64 << 20]);
    for (signal, token, kind, encoding, body, expected) in [
        ("logs", "fry_wrong", json_type, "", hello.clone(), 401),
        ("logs", system.token(), json_type, "", hello.clone(), 401),
        ("logs", token.as_str(), "text/plain", "", hello.clone(), 415),
        ("logs", token.as_str(), json_type, "br", hello.clone(), 415),
        ("traces", token.as_str(), json_type, "", br#"{"resourceSpans":3}"#.to_vec(), 400),
        ("metrics", token.as_str(), "application/x-protobuf", "", b"\xff\xff\xff".to_vec(), 400),
        ("logs", token.as_str(), json_type, "gzip", hello.clone(), 400),
        ("logs", token.as_str(), json_type, "gzip", bomb, 413),
    ] {
        let (status, answer) = send(signal, token, kind, encoding, body).await;
        assert_eq!(status, expected, "{signal} {kind} {encoding}: {answer}");
    }
    assert_eq!(records(&system.client, &stream, &LogFilter::default()).await.len(), 1);

    // The token opens nothing else, and another org sees nothing.
    let answer = crate::security::http().get(format!("{}/v1/orgs/current/logs", system.control_url));
    let answer = answer.bearer_auth(&token).header("X-Nuon-Org-ID", system.org.id.as_str()).send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let rehearsal = Rehearsal::new(&system, &[]).await;
    assert!(rehearsal.client.log_records(&stream, &LogFilter::default(), None).await.is_err());
    let foreign =
        CreateToken { name: "x".into(), role: Role::Admin, runner_id: made.runner_id.clone(), expires_in_s: None };
    assert!(rehearsal.client.create_token(&foreign).await.is_err(), "a token for the runner of another org");
    system.client.revoke_token(&made.id).await.unwrap();
    assert_eq!(send("logs", &token, json_type, "", hello).await.0, 401);
    let output = system.ferry(&["tokens", "list"]).await;
    assert!(String::from_utf8_lossy(&output.stdout).contains("telemetry"), "{}", shown(&output));
}

#[tokio::test]
async fn an_org_without_room_refuses_records_and_says_why() {
    let system = System::start(options()).await;
    let (made, stream) = (token(&system, "till").await, stream(&system).await);
    let output = system.ferry(&["orgs", "logs", "--quota", "1KiB"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let body = one_log(&json!({ "stringValue": "y".repeat(100 << 10) })).to_string();
    let request = crate::security::http().post(format!("{}/v1/logs", system.runner_url)).body(body);
    let answer = request.bearer_auth(made.token.unwrap()).header("content-type", "application/json").send().await;
    let answer: Value = answer.unwrap().json().await.unwrap();
    assert!(answer["partialSuccess"]["errorMessage"].as_str().unwrap().contains("quota"), "{answer}");
    assert!(records(&system.client, &stream, &LogFilter::default()).await.is_empty());
}

/// A collector that keeps what it takes, and may refuse.
#[derive(Clone, Default)]
struct Collector {
    taken: Arc<Mutex<BTreeMap<Signal, Vec<Record>>>>,
    away: Arc<std::sync::atomic::AtomicBool>,
}

impl Collector {
    async fn start(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/v1/{signal}", post(take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    fn of(&self, signal: Signal) -> Vec<Record> {
        self.taken.lock().unwrap().get(&signal).cloned().unwrap_or_default()
    }

    /// The lines of a job's pipe, as the collector has them.
    fn lines(&self, job: &str, pipe: &str) -> Vec<String> {
        let of = |r: &Record| r.resource["ferry.job.id"] == job && r.attributes["log.iostream"] == pipe;
        self.of(Signal::Logs).iter().filter(|r| of(r)).map(Record::text).collect()
    }

    fn span(&self, name: &str) -> Option<Record> {
        self.of(Signal::Traces).into_iter().find(|r| matches!(&r.what, What::Span(span) if span.name == name))
    }
}

async fn take(
    State(collector): State<Collector>,
    Path(signal): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    if collector.away.load(std::sync::atomic::Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    assert_eq!(
        (&headers["x-key"], &headers["content-encoding"]),
        (&"some thing".parse().unwrap(), &"gzip".parse().unwrap())
    );
    let signal = Signal::ALL.into_iter().find(|s| s.as_str() == signal).unwrap();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).unwrap();
    let received = otlp::decode(signal, Encoding::Protobuf, &plain, 0).unwrap();
    let records = received.records.iter().map(|json| serde_json::from_slice(json).unwrap());
    collector.taken.lock().unwrap().entry(signal).or_default().extend(records);
    StatusCode::OK
}

/// What a step's programs export is a part of the job's log, without its secrets, and of what the collector gets.
#[tokio::test]
async fn what_a_step_exports_is_masked_and_in_the_log_of_its_job() {
    const CARD: &str = "4929-1234-5678-9012";
    let collector = Collector::default();
    let address = collector.start().await;
    let options = options()
        .with("FERRY_TELEMETRY__ENDPOINT", format!("http://{address}"))
        .with("FERRY_TELEMETRY__HEADERS", "x-key=some thing");
    let system = System::start(options).await;
    let _runner = system.start_runner("a").await;
    let (python, exporter) = (python_tool("python"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/exporter.py"));
    let export = format!("echo {CARD} >> $FERRY_MASK_FILE; {} {exporter} 3 {CARD}", python.display());
    let forge = "curl -sf -o /dev/null -H 'content-type: application/json' -d '{}' ${OTEL_EXPORTER_OTLP_ENDPOINT%/*/*}/0/v1/logs && exit 9; true";
    let job = system.run(vec![command("first", "echo quiet"), script("second", &export), script("third", forge)]).await;
    assert_eq!(job.status, JobState::Finished, "{}", system.text_log(&job, None).await);

    let stream = job.log_stream_id.clone();
    let logs = records(&system.client, &stream, &pipe("logs")).await;
    let said: Vec<&str> = logs.iter().map(|r| r.body.as_str()).collect();
    assert_eq!(said, ["sold 0", "sold 1", "sold 2", "paid with ***", "the card was refused: code 42"]);
    assert!(logs.iter().all(|r| r.runner_job_execution_step == "second" && r.service_name == "till"), "{logs:?}");
    assert_eq!((logs[3].severity_text.as_str(), logs[3].log_attributes["card"].as_str()), ("WARN", "***"));
    let traces = records(&system.client, &stream, &pipe("traces")).await;
    assert_eq!((traces.len(), traces[0].log_attributes["card"].as_str()), (2, "***"));
    let metrics = records(&system.client, &stream, &pipe("metrics")).await;
    assert!(metrics.iter().any(|r| r.log_attributes.get("card").is_some_and(|card| card == "***")), "{metrics:?}");
    let output = system.ferry(&["logs", job.id.as_str(), "--pipe", "logs"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("WARN  till: paid with ***") && !text.contains(CARD), "{text}");

    let span =
        until("the collector has the span", SOON, async || collector.span("pay").ok_or_else(|| "no span".into())).await;
    assert_eq!((&span.attributes["card"], &span.resource["ferry.job.id"]), (&json!("***"), &json!(job.id)));
    let passed = collector.of(Signal::Logs);
    assert_eq!(passed.iter().filter(|r| r.text() == "paid with ***" && r.service() == "till").count(), 1, "{passed:?}");
    assert!(!format!("{passed:?}").contains(CARD));
}

fn parent(record: &Record) -> &str {
    match &record.what {
        What::Span(span) => &span.parent_span_id,
        _ => panic!("no span: {record:?}"),
    }
}

#[tokio::test]
async fn a_collector_gets_logs_spans_and_metrics_and_nothing_is_lost_while_it_is_away() {
    let collector = Collector::default();
    let address = collector.start().await;
    let options = options()
        .with("FERRY_TELEMETRY__ENDPOINT", format!("http://{address}"))
        .with("FERRY_TELEMETRY__HEADERS", "x-key=some thing")
        .with("FERRY_TELEMETRY__METRICS_S", 1);
    let mut system = System::start(options).await;
    let _runner = system.start_runner("a").await;

    // From a request that is traced to the environment of a step.
    let asked = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let run = action(vec![
        command("first", "echo quiet"),
        script("second", "printf 'in '; sleep 1.5; echo pieces; echo $TRACEPARENT; echo bad >&2"),
    ]);
    let url = format!("{}/v1/installs/{}/action-runs", system.control_url, system.install.id);
    let request = crate::security::http().post(url).json(&run).header("traceparent", asked.to_string());
    let request = request.bearer_auth(system.token()).header("X-Nuon-Org-ID", system.org.id.as_str());
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let job = model::JobId::parse(answer["id"].as_str().unwrap_or_else(|| panic!("{answer}"))).unwrap();
    let job = system.until_over(&job).await;
    assert_eq!(job.status, JobState::Finished);
    let told = system.text_log(&job, Some("stdout")).await;
    let told = TraceContext::parse(told.lines().last().unwrap()).expect("a trace context");
    let spans = until("all spans are there", SOON, async || {
        let found = ["step first", "step second"].map(|name| collector.span(name));
        let [Some(first), Some(second)] = found else { return Err("no steps".into()) };
        let all = collector.of(Signal::Traces);
        let of = |id: &str| all.iter().find(|r| r.span_id == id).cloned().ok_or_else(|| format!("{id} is missing"));
        let run = of(parent(&second))?;
        Ok([of(parent(&run))?, run, first, second])
    })
    .await;
    let [request, run, first, second] = spans;
    assert!([&request, &run, &first, &second].iter().all(|r| r.trace_id == asked.trace_id()));
    assert_eq!((parent(&request), parent(&first)), (asked.span_id().as_str(), run.span_id.as_str()));
    assert_eq!((second.span_id.clone(), told.trace_id()), (told.span_id(), asked.trace_id()));
    assert!(request.attributes["http.response.status_code"] == 201 && request.service() == "ferry", "{request:?}");

    // Logs, with their step and their place in the trace.
    let id = job.id.to_string();
    let stdout = until("the log arrives", SOON, async || {
        let lines = collector.lines(&id, "stderr");
        if lines == ["bad"] { Ok(collector.lines(&id, "stdout")) } else { Err(format!("{lines:?}")) }
    })
    .await;
    assert_eq!(stdout, ["quiet".to_owned(), "in pieces".to_owned(), told.to_string()]);
    let logs = collector.of(Signal::Logs);
    let bad = logs.iter().find(|r| r.text() == "bad").unwrap();
    assert_eq!((bad.span_id.as_str(), &bad.attributes["ferry.step"]), (told.span_id().as_str(), &json!("second")));
    assert_eq!(bad.severity(), ("ERROR", 17));

    // Metrics.
    let sample = until("metrics arrive", SOON, async || {
        let all = collector.of(Signal::Metrics);
        let named =
            |r: &&Record| matches!(&r.what, What::Point { name, .. } if name == "ferry_log_received_chunks_total");
        all.iter().rfind(named).cloned().ok_or_else(|| format!("{} samples", all.len()))
    })
    .await;
    assert!(matches!(sample.what, What::Point { value, kind, .. } if value.as_f64() > Some(0.0) && kind == "sum"));

    // The collector is away, and the server dies: the log is there in the end, every line of it.
    collector.away.store(true, std::sync::atomic::Ordering::SeqCst);
    let job = system.script("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done").await;
    system.until_over(&job.id).await;
    tokio::time::sleep(seconds(2)).await;
    assert!(collector.lines(job.id.as_str(), "stdout").is_empty());
    system.kill_server();
    system.start_server().await;
    collector.away.store(false, std::sync::atomic::Ordering::SeqCst);
    let expected: Vec<String> = (1..=3000).map(|n| format!("line {n}")).collect();
    // It is at least once: who died may have had it in hand.
    until("all of it arrives", seconds(100), async || {
        let lines = collector.lines(job.id.as_str(), "stdout");
        if lines.len() >= expected.len() { Ok(()) } else { Err(format!("{} lines", lines.len())) }
    })
    .await;
    assert_eq!(collector.lines(job.id.as_str(), "stdout"), expected);

    // What nobody has told yet when the server stops.
    let quiet = asked.to_string().replace("-01", "-00");
    let ask = async |parent: &str| {
        let request = crate::security::http().get(format!("{}/v1/orgs/current/logs", system.control_url));
        let request = request.bearer_auth(system.token()).header("X-Nuon-Org-ID", system.org.id.as_str());
        assert_eq!(request.header("traceparent", parent).send().await.unwrap().status(), 200);
    };
    ask(&quiet).await;
    ask(&asked.to_string()).await;
    assert!(system.stop_server().await.0.success());
    let name = "GET /v1/orgs/current/logs";
    let spans = collector.of(Signal::Traces);
    let named = |r: &&Record| matches!(&r.what, What::Span(span) if span.name == name);
    assert_eq!(spans.iter().filter(named).count(), 1, "and what is not sampled is not told");
}

#[tokio::test]
async fn a_workflow_is_a_part_of_the_trace_of_who_started_it() {
    let collector = Collector::default();
    let address = collector.start().await;
    let endpoint = options().with("FERRY_TELEMETRY__ENDPOINT", format!("http://{address}"));
    let system = System::start(endpoint.with("FERRY_TELEMETRY__HEADERS", "x-key=some thing")).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    rehearsal.client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    let (workflow, request) = until("the span of the workflow", SOON, async || {
        let workflow = collector.span("workflow provision").ok_or("no workflow")?;
        let all = collector.of(Signal::Traces);
        let request = all.iter().find(|r| r.span_id == parent(&workflow)).cloned().ok_or("no request")?;
        Ok((workflow, request))
    })
    .await;
    assert_eq!((&workflow.trace_id, &workflow.attributes["ferry.workflow.id"]), (&request.trace_id, &json!(id)));
    assert!(request.attributes["http.route"].as_str().unwrap().contains("/installs"), "{request:?}");
}

/// With the collector that `scripts/otel-collector.sh` builds: `make soak PART=logs`.
#[tokio::test]
#[ignore = "the collector takes minutes to build"]
async fn a_real_collector_takes_what_is_ours() {
    let program = tool("otelcol", "otel-collector.sh");
    let dir = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let pipeline = json!({ "receivers": ["otlp"], "exporters": ["debug"] });
    let config = json!({
        "receivers": { "otlp": { "protocols": { "http": { "endpoint": address.to_string() } } } },
        "exporters": { "debug": { "verbosity": "detailed" } },
        "service": {
            "telemetry": { "metrics": { "level": "none" } },
            "pipelines": { "logs": pipeline, "traces": pipeline, "metrics": pipeline },
        },
    });
    let (file, said) = (dir.path().join("config.yaml"), dir.path().join("said"));
    fs_err::write(&file, config.to_string()).unwrap();
    let mut collector = std::process::Command::new(program)
        .arg("--config")
        .arg(format!("file:{}", file.display()))
        .stderr(fs_err::File::create(&said).unwrap().into_parts().0)
        .spawn()
        .unwrap();
    let endpoint = options().with("FERRY_TELEMETRY__ENDPOINT", format!("http://{address}"));
    let system = System::start(endpoint.with("FERRY_TELEMETRY__METRICS_S", 1)).await;
    let _runner = system.start_runner("a").await;
    let job = system.run(vec![script("greet", "echo hello collector")]).await;
    until("the collector has all three", SOON, async || {
        let text = fs_err::read_to_string(&said).unwrap();
        let parts =
            ["Body: Str(hello collector)", job.id.as_str(), "step greet", "ferry_jobs", "log.iostream: Str(stdout)"];
        let missing: Vec<_> = parts.into_iter().filter(|part| !text.contains(part)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?}")) }
    })
    .await;
    collector.kill().unwrap();
    collector.wait().unwrap();
}

/// The metrics of a process, as Prometheus's own checker likes them.
async fn metrics(url: &str) -> String {
    let text = crate::security::http().get(url).send().await.unwrap().text().await.unwrap();
    let mut child = std::process::Command::new(tool("promtool", "apt-tools.sh"))
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}\n{text}", shown(&output));
    text
}

#[tokio::test]
async fn both_programs_show_their_metrics_to_prometheus() {
    let system = System::start(options()).await;
    let join = system.join_command().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let with = |command: &mut std::process::Command| {
        command.args(["--metrics-listen", &listen]);
    };
    let _runner = system.start_runner_with("a", &join, with).await;
    let job = system.script("echo hello").await;
    system.until_over(&job.id).await;
    let server: Value = serde_json::from_slice(&fs_err::read(system.root().join("data/server.json")).unwrap()).unwrap();
    let url = server["metrics_url"].as_str().unwrap();
    let text = until("the runner's poll is held", SOON, async || {
        let text = metrics(url).await;
        if text.contains("ferry_polls_held 1") { Ok(text) } else { Err(text) }
    })
    .await;
    for part in [
        "ferry_http_requests_total{api=\"control\",method=\"POST\",route=\"/v1/installs/{install_id}/action-runs\",status=\"201\"} 1",
        "ferry_http_request_duration_seconds_bucket",
        "ferry_jobs{state=\"queued\"} 0",
        "ferry_log_received_chunks_total ",
        "ferry_build_info{version=",
        "process_resident_memory_bytes",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text = metrics(&format!("http://{listen}/metrics")).await;
    for part in [
        "ferry_runner_calls_total{call=\"poll\",outcome=\"ok\"}",
        "ferry_runner_results_total{outcome=\"finished\"} 1",
        "ferry_runner_log_sent_bytes_total ",
        "ferry_runner_last_answer_timestamp_seconds ",
        "process_cpu_seconds_total",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // No name of anybody stands in them.
    assert!(!text.contains(system.org.id.as_str()) && !text.contains(job.id.as_str()));
}
