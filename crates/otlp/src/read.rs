//! Reads what exporters send.

use opentelemetry_proto::tonic::collector::{logs, metrics, trace};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as spans;
use prost::Message;
use serde_json::{Value, json};

use crate::{Attributes, Encoding, Event, Link, Record, Signal, Span, What};

/// Most records of one message.
const RECORDS_MAX: usize = 20_000;
/// Largest record, as JSON, and what all records of a message may take: each repeats its resource.
const RECORD_BYTES_MAX: usize = 256 << 10;
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug, thiserror::Error)]
#[error("the message is no {} export request: {why}", .signal.as_str())]
pub struct DecodeError {
    signal: Signal,
    why: String,
}

/// What a message held: records as JSON, and how many were left out because they are too large or too many.
#[derive(Debug, Default)]
pub struct Received {
    pub records: Vec<Vec<u8>>,
    pub refused: usize,
    bytes: usize,
}

impl Received {
    fn take(&mut self, record: &Record) {
        let json = serde_json::to_vec(record).unwrap_or_default();
        let full = self.records.len() >= RECORDS_MAX || self.bytes + json.len() > BYTES_MAX;
        if json.is_empty() || json.len() > RECORD_BYTES_MAX || full {
            self.refused += 1;
        } else {
            self.bytes += json.len();
            self.records.push(json);
        }
    }
}

/// Reads a message. `now_ns` is the time of a record that has none.
pub fn decode(signal: Signal, encoding: Encoding, bytes: &[u8], now_ns: u64) -> Result<Received, DecodeError> {
    let mut out = Received::default();
    match signal {
        Signal::Logs => {
            let request: logs::v1::ExportLogsServiceRequest = message(signal, encoding, bytes)?;
            for of in request.resource_logs {
                let resource = resource_of(of.resource);
                for of in of.scope_logs {
                    let scope = scope_of(of.scope);
                    for log in of.log_records {
                        let time_ns = first_set([log.time_unix_nano, log.observed_time_unix_nano, now_ns]);
                        let mut attributes = attributes_of(log.attributes);
                        if !log.event_name.is_empty() {
                            attributes.insert("event.name".into(), log.event_name.into());
                        }
                        out.take(&Record {
                            time_ns,
                            resource: resource.clone(),
                            scope: scope.clone(),
                            attributes,
                            trace_id: hex(&log.trace_id),
                            span_id: hex(&log.span_id),
                            what: What::Log {
                                severity_number: i64::from(log.severity_number),
                                severity_text: log.severity_text,
                                body: value_of(log.body),
                            },
                        });
                    }
                }
            }
        }
        Signal::Traces => {
            let request: trace::v1::ExportTraceServiceRequest = message(signal, encoding, bytes)?;
            for of in request.resource_spans {
                let resource = resource_of(of.resource);
                for of in of.scope_spans {
                    let scope = scope_of(of.scope);
                    for span in of.spans {
                        out.take(&span_of(span, &resource, &scope, now_ns));
                    }
                }
            }
        }
        Signal::Metrics => {
            let request: metrics::v1::ExportMetricsServiceRequest = message(signal, encoding, bytes)?;
            for of in request.resource_metrics {
                let resource = resource_of(of.resource);
                for of in of.scope_metrics {
                    let scope = scope_of(of.scope);
                    for metric in of.metrics {
                        points(metric, |time, attributes, what| {
                            out.take(&Record {
                                time_ns: first_set([time, now_ns]),
                                resource: resource.clone(),
                                scope: scope.clone(),
                                attributes: attributes_of(attributes),
                                trace_id: String::new(),
                                span_id: String::new(),
                                what,
                            });
                        });
                    }
                }
            }
        }
    }
    Ok(out)
}

fn message<M: Message + Default + serde::de::DeserializeOwned>(
    signal: Signal,
    encoding: Encoding,
    bytes: &[u8],
) -> Result<M, DecodeError> {
    let failed = |why: String| DecodeError { signal, why };
    match encoding {
        Encoding::Protobuf => M::decode(bytes).map_err(|e| failed(e.to_string())),
        Encoding::Json => serde_json::from_slice(bytes).map_err(|e| failed(e.to_string())),
    }
}

fn first_set<const N: usize>(times: [u64; N]) -> u64 {
    times.into_iter().find(|t| *t > 0).unwrap_or(0)
}

fn resource_of(resource: Option<Resource>) -> Attributes {
    resource.map(|r| attributes_of(r.attributes)).unwrap_or_default()
}

fn scope_of(scope: Option<InstrumentationScope>) -> String {
    let Some(scope) = scope else { return String::new() };
    if scope.version.is_empty() { scope.name } else { format!("{}@{}", scope.name, scope.version) }
}

fn attributes_of(pairs: Vec<KeyValue>) -> Attributes {
    pairs.into_iter().map(|pair| (pair.key, value_of(pair.value))).collect()
}

fn value_of(value: Option<AnyValue>) -> Value {
    match value.and_then(|v| v.value) {
        None => Value::Null,
        Some(Any::StringValue(text)) => text.into(),
        Some(Any::BoolValue(is)) => is.into(),
        Some(Any::IntValue(number)) => number.into(),
        Some(Any::DoubleValue(number)) => number.into(),
        Some(Any::ArrayValue(list)) => list.values.into_iter().map(|v| value_of(Some(v))).collect(),
        Some(Any::KvlistValue(list)) => {
            Value::Object(list.values.into_iter().map(|pair| (pair.key, value_of(pair.value))).collect())
        }
        Some(Any::BytesValue(bytes)) => hex(&bytes).into(),
        // Only profiles refer to strings by their place in a table.
        Some(Any::StringValueStrindex(index)) => index.into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn span_of(span: spans::Span, resource: &Attributes, scope: &str, now_ns: u64) -> Record {
    let status = span.status.unwrap_or_default();
    let kind = ["", "internal", "server", "client", "producer", "consumer"];
    let events = span.events.into_iter().map(|event| Event {
        time_ns: event.time_unix_nano,
        name: event.name,
        attributes: attributes_of(event.attributes),
    });
    let links = span.links.iter().map(|link| Link { trace_id: hex(&link.trace_id), span_id: hex(&link.span_id) });
    let time_ns = first_set([span.start_time_unix_nano, now_ns]);
    Record {
        time_ns,
        resource: resource.clone(),
        scope: scope.to_owned(),
        attributes: attributes_of(span.attributes),
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        what: What::Span(Box::new(Span {
            name: span.name,
            parent_span_id: hex(&span.parent_span_id),
            kind: usize::try_from(span.kind).ok().and_then(|k| kind.get(k)).copied().unwrap_or_default().to_owned(),
            end_ns: first_set([span.end_time_unix_nano, time_ns]),
            status: ["", "ok", "error"].get(status.code as usize).copied().unwrap_or_default().to_owned(),
            message: status.message,
            events: events.collect(),
            links: links.collect(),
        })),
    }
}

/// Every data point of a metric: its time, its attributes, and what it is.
fn points(metric: Metric, mut each: impl FnMut(u64, Vec<KeyValue>, What)) {
    let (name, unit) = (metric.name, metric.unit);
    let mut point = |kind: &str, time: u64, attributes: Vec<KeyValue>, value: Value| {
        let (name, unit, kind) = (name.clone(), unit.clone(), kind.to_owned());
        each(time, attributes, What::Point { name, unit, kind, value });
    };
    let number = |p: &NumberDataPoint| match p.value {
        Some(number_data_point::Value::AsDouble(n)) => Value::from(n),
        Some(number_data_point::Value::AsInt(n)) => Value::from(n),
        None => Value::Null,
    };
    match metric.data {
        Some(Data::Gauge(gauge)) => {
            for p in gauge.data_points {
                let value = number(&p);
                point("gauge", p.time_unix_nano, p.attributes, value);
            }
        }
        Some(Data::Sum(sum)) => {
            for p in sum.data_points {
                let value = number(&p);
                point("sum", p.time_unix_nano, p.attributes, value);
            }
        }
        Some(Data::Histogram(histogram)) => {
            for p in histogram.data_points {
                let value = json!({ "count": p.count, "sum": p.sum, "min": p.min, "max": p.max, "bounds": p.explicit_bounds, "buckets": p.bucket_counts });
                point("histogram", p.time_unix_nano, p.attributes, value);
            }
        }
        Some(Data::ExponentialHistogram(histogram)) => {
            for p in histogram.data_points {
                let buckets =
                    |b: Option<opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets>| {
                        b.map(|b| json!({ "offset": b.offset, "counts": b.bucket_counts }))
                    };
                let value = json!({ "count": p.count, "sum": p.sum, "min": p.min, "max": p.max, "scale": p.scale, "zeros": p.zero_count, "positive": buckets(p.positive), "negative": buckets(p.negative) });
                point("exponential_histogram", p.time_unix_nano, p.attributes, value);
            }
        }
        Some(Data::Summary(summary)) => {
            for p in summary.data_points {
                let quantiles: Vec<Value> =
                    p.quantile_values.iter().map(|q| json!({ "quantile": q.quantile, "value": q.value })).collect();
                let value = json!({ "count": p.count, "sum": p.sum, "quantiles": quantiles });
                point("summary", p.time_unix_nano, p.attributes, value);
            }
        }
        None => {}
    }
}
