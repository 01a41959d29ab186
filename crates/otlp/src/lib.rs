//! OpenTelemetry on the wire: what exporters send becomes records of ours, and ours become what collectors take. Pure.

mod read;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use read::{DecodeError, Received, decode};
pub use write::{Family, Kind, Sample, answer, encode_logs, encode_metrics, encode_spans};

/// The three things that exporters send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    Logs,
    Traces,
    Metrics,
}

impl Signal {
    pub const ALL: [Self; 3] = [Self::Logs, Self::Traces, Self::Metrics];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}

/// How a message is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Protobuf,
    Json,
}

impl Encoding {
    /// By the content type of a request; None: neither.
    pub fn of(content_type: &str) -> Option<Self> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-protobuf" | "application/protobuf" => Some(Self::Protobuf),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }
}

pub type Attributes = BTreeMap<String, Value>;

/// One log record, span or data point, with what it is about. Kept as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When it happened, or began, by the exporter's clock.
    pub time_ns: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource: Attributes,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
    /// Hexadecimal; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trace_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub span_id: String,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Log {
        severity_number: i64,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        severity_text: String,
        body: Value,
    },
    Span(Box<Span>),
    Point {
        name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        unit: String,
        /// `gauge`, `sum`, `histogram`, `exponential_histogram` or `summary`.
        kind: String,
        value: Value,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_span_id: String,
    /// `internal`, `server`, `client`, `producer`, `consumer`, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    pub end_ns: u64,
    /// `ok`, `error`, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub time_ns: u64,
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub trace_id: String,
    pub span_id: String,
}

impl Record {
    pub fn service(&self) -> &str {
        self.resource.get("service.name").and_then(Value::as_str).unwrap_or_default()
    }

    /// One line for people: nothing in it moves a terminal's cursor, or looks like another line.
    pub fn text(&self) -> String {
        self.said().chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect()
    }

    fn said(&self) -> String {
        match &self.what {
            What::Log { body, .. } => plain(body),
            What::Span(span) => {
                let ms = span.end_ns.saturating_sub(self.time_ns) as f64 / 1e6;
                let status = if span.status.is_empty() { String::new() } else { format!(" {}", span.status) };
                let message = if span.message.is_empty() { String::new() } else { format!(": {}", span.message) };
                format!("{} {ms:.3} ms{status}{message}", span.name)
            }
            What::Point { name, unit, value, .. } => {
                let labels: Vec<String> = self.attributes.iter().map(|(k, v)| format!("{k}={}", plain(v))).collect();
                let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
                format!("{name}{labels} {}{unit}", plain(value))
            }
        }
    }

    /// The name and number of its level; what is no log has the one of information, or of an error.
    pub fn severity(&self) -> (&str, i64) {
        match &self.what {
            What::Log { severity_number, severity_text, .. } => {
                let number = if *severity_number == 0 { 9 } else { *severity_number };
                (if severity_text.is_empty() { level(number) } else { severity_text }, number)
            }
            What::Span(span) if span.status == "error" => ("ERROR", 17),
            What::Span(_) | What::Point { .. } => ("INFO", 9),
        }
    }
}

fn level(number: i64) -> &'static str {
    match number {
        ..5 => "TRACE",
        5..9 => "DEBUG",
        9..13 => "INFO",
        13..17 => "WARN",
        17..21 => "ERROR",
        21.. => "FATAL",
    }
}

/// A string as it is, everything else as JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
