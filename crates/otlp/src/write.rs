//! Writes what collectors take, and the answers that exporters wait for.

use opentelemetry_proto::tonic::collector::{logs, metrics, trace};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1 as metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as spans;
use prost::Message as _;
use serde_json::Value;

use crate::{Attributes, Encoding, Record, Signal, What};

/// A metric of ours with its samples.
pub struct Family {
    pub name: String,
    pub help: String,
    pub kind: Kind,
    pub samples: Vec<(Attributes, Sample)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from the start of the process.
    Counter,
    Gauge,
    Histogram,
}

pub enum Sample {
    Number(f64),
    /// `buckets` has one more than `bounds`, and they are not added up.
    Histogram {
        count: u64,
        sum: f64,
        bounds: Vec<f64>,
        buckets: Vec<u64>,
    },
}

/// The answer to an exporter: all was taken, or `refused` records were not.
pub fn answer(signal: Signal, encoding: Encoding, refused: usize, why: &str) -> Vec<u8> {
    let (refused, why) = (refused as i64, why.to_owned());
    let partial = refused > 0 || !why.is_empty();
    macro_rules! answer {
        ($of:ident, $response:ident, $partial:ident, $field:ident) => {{
            let partial_success = partial.then(|| $of::v1::$partial { $field: refused, error_message: why });
            let message = $of::v1::$response { partial_success };
            match encoding {
                Encoding::Protobuf => message.encode_to_vec(),
                // Nothing at all, not a null: some exporters read that as something.
                Encoding::Json if !partial => b"{}".to_vec(),
                Encoding::Json => serde_json::to_vec(&message).unwrap_or_default(),
            }
        }};
    }
    match signal {
        Signal::Logs => answer!(logs, ExportLogsServiceResponse, ExportLogsPartialSuccess, rejected_log_records),
        Signal::Traces => answer!(trace, ExportTraceServiceResponse, ExportTracePartialSuccess, rejected_spans),
        Signal::Metrics => {
            answer!(metrics, ExportMetricsServiceResponse, ExportMetricsPartialSuccess, rejected_data_points)
        }
    }
}

/// Runs of records with the same resource, to which `shared` is added, and the same scope.
fn runs<'r>(
    shared: &'r Attributes,
    records: &'r [Record],
) -> impl Iterator<Item = (Resource, InstrumentationScope, &'r [Record])> {
    records.chunk_by(|a, b| a.resource == b.resource && a.scope == b.scope).map(|run| {
        let scope = InstrumentationScope { name: run[0].scope.clone(), ..InstrumentationScope::default() };
        // A name stands once: what the record says of itself wins.
        let mut about = shared.clone();
        about.extend(run[0].resource.clone());
        (resource(&about), scope, run)
    })
}

fn resource(attributes: &Attributes) -> Resource {
    Resource { attributes: pairs(attributes), ..Resource::default() }
}

/// `shared` is said of all of them: a resource that many records have is not kept with each.
pub fn encode_logs(shared: &Attributes, records: &[Record]) -> Vec<u8> {
    let log = |record: &Record| {
        let What::Log { severity_number, severity_text, body } = &record.what else { return None };
        Some(LogRecord {
            time_unix_nano: record.time_ns,
            observed_time_unix_nano: record.time_ns,
            severity_number: i32::try_from(*severity_number).unwrap_or(0),
            severity_text: severity_text.clone(),
            body: Some(any(body)),
            attributes: pairs(&record.attributes),
            trace_id: bytes(&record.trace_id),
            span_id: bytes(&record.span_id),
            ..LogRecord::default()
        })
    };
    let resource_logs = runs(shared, records).map(|(resource, scope, run)| ResourceLogs {
        resource: Some(resource),
        scope_logs: vec![ScopeLogs {
            scope: Some(scope),
            log_records: run.iter().filter_map(log).collect(),
            schema_url: String::new(),
        }],
        schema_url: String::new(),
    });
    logs::v1::ExportLogsServiceRequest { resource_logs: resource_logs.collect() }.encode_to_vec()
}

/// See [`encode_logs`].
pub fn encode_spans(shared: &Attributes, records: &[Record]) -> Vec<u8> {
    let span = |record: &Record| {
        let What::Span(span) = &record.what else { return None };
        let kind = match span.kind.as_str() {
            "internal" => 1,
            "server" => 2,
            "client" => 3,
            "producer" => 4,
            "consumer" => 5,
            _ => 0,
        };
        let code = match span.status.as_str() {
            "ok" => 1,
            "error" => 2,
            _ => 0,
        };
        let event = |event: &crate::Event| spans::span::Event {
            time_unix_nano: event.time_ns,
            name: event.name.clone(),
            attributes: pairs(&event.attributes),
            ..spans::span::Event::default()
        };
        let link = |link: &crate::Link| spans::span::Link {
            trace_id: bytes(&link.trace_id),
            span_id: bytes(&link.span_id),
            ..spans::span::Link::default()
        };
        Some(spans::Span {
            trace_id: bytes(&record.trace_id),
            span_id: bytes(&record.span_id),
            parent_span_id: bytes(&span.parent_span_id),
            name: span.name.clone(),
            kind,
            start_time_unix_nano: record.time_ns,
            end_time_unix_nano: span.end_ns,
            attributes: pairs(&record.attributes),
            events: span.events.iter().map(event).collect(),
            links: span.links.iter().map(link).collect(),
            status: Some(spans::Status { message: span.message.clone(), code }),
            ..spans::Span::default()
        })
    };
    let resource_spans = runs(shared, records).map(|(resource, scope, run)| spans::ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![spans::ScopeSpans {
            scope: Some(scope),
            spans: run.iter().filter_map(span).collect(),
            schema_url: String::new(),
        }],
        schema_url: String::new(),
    });
    trace::v1::ExportTraceServiceRequest { resource_spans: resource_spans.collect() }.encode_to_vec()
}

/// Metrics as they stand at `now_ns`; what grows has grown since `start_ns`.
pub fn encode_metrics(about: &Attributes, families: Vec<Family>, start_ns: u64, now_ns: u64) -> Vec<u8> {
    let cumulative = metric::AggregationTemporality::Cumulative as i32;
    let metrics = families.into_iter().map(|family| {
        let (mut numbers, mut histograms) = (Vec::new(), Vec::new());
        for (attributes, sample) in family.samples {
            let attributes = pairs(&attributes);
            match sample {
                Sample::Number(number) => numbers.push(metric::NumberDataPoint {
                    attributes,
                    start_time_unix_nano: start_ns,
                    time_unix_nano: now_ns,
                    value: Some(metric::number_data_point::Value::AsDouble(number)),
                    ..metric::NumberDataPoint::default()
                }),
                Sample::Histogram { count, sum, bounds, buckets } => histograms.push(metric::HistogramDataPoint {
                    attributes,
                    start_time_unix_nano: start_ns,
                    time_unix_nano: now_ns,
                    count,
                    sum: Some(sum),
                    bucket_counts: buckets,
                    explicit_bounds: bounds,
                    ..metric::HistogramDataPoint::default()
                }),
            }
        }
        let data = match family.kind {
            Kind::Counter => metric::metric::Data::Sum(metric::Sum {
                data_points: numbers,
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
            Kind::Gauge => metric::metric::Data::Gauge(metric::Gauge { data_points: numbers }),
            Kind::Histogram => metric::metric::Data::Histogram(metric::Histogram {
                data_points: histograms,
                aggregation_temporality: cumulative,
            }),
        };
        metric::Metric { name: family.name, description: family.help, data: Some(data), ..metric::Metric::default() }
    });
    let scope = InstrumentationScope { name: "ferry".into(), ..InstrumentationScope::default() };
    let scope_metrics =
        metric::ScopeMetrics { scope: Some(scope), metrics: metrics.collect(), schema_url: String::new() };
    let resource_metrics = metric::ResourceMetrics {
        resource: Some(resource(about)),
        scope_metrics: vec![scope_metrics],
        schema_url: String::new(),
    };
    metrics::v1::ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec()
}

fn pairs(attributes: &Attributes) -> Vec<KeyValue> {
    let pair =
        |(key, value): (&String, &Value)| KeyValue { key: key.clone(), value: Some(any(value)), ..KeyValue::default() };
    attributes.iter().map(pair).collect()
}

fn any(value: &Value) -> AnyValue {
    let value = match value {
        Value::Null => None,
        Value::Bool(is) => Some(Any::BoolValue(*is)),
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => Any::IntValue(whole),
            None => Any::DoubleValue(number.as_f64().unwrap_or_default()),
        }),
        Value::String(text) => Some(Any::StringValue(text.clone())),
        Value::Array(list) => Some(Any::ArrayValue(ArrayValue { values: list.iter().map(any).collect() })),
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| KeyValue {
                key: key.clone(),
                value: Some(any(value)),
                ..KeyValue::default()
            };
            Some(Any::KvlistValue(KeyValueList { values: map.iter().map(pair).collect() }))
        }
    };
    AnyValue { value }
}

/// Bytes of a hexadecimal id; none of what is none.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Option<Vec<u8>> =
        hex.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect();
    digits.unwrap_or_default()
}
