//! What of a log is asked for, and what a line of it is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use api::control::LogRecord;
use model::Timestamp;
use model::lines::Ended;
use model::log::{self, Chunk, Pipe};
use otlp::Record;
use regex::{Regex, RegexBuilder};
use store::StoreError;

use super::source::{Owner, Part, Source};
use crate::control_api::apps::Search;
use crate::error::{ApiError, ApiResult};

/// What a pattern may take, compiled.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Levels and the numbers that OpenTelemetry gives them.
const LEVELS: [(&str, i64); 6] = [("trace", 1), ("debug", 5), ("info", 9), ("warn", 13), ("error", 17), ("fatal", 21)];

/// The number of a gap among the lines of its chunk: it comes after the line that it ends.
const GAP_AT: usize = 1;

#[derive(Debug, Default)]
pub(super) struct LogQuery {
    pub(super) pipe: Option<Pipe>,
    step: Option<String>,
    severity: Option<i64>,
    /// Nanoseconds.
    pub(super) since: Option<u64>,
    pub(super) until: Option<u64>,
    /// Epoch and number of the first chunk.
    pub(super) from: Option<(u64, u64)>,
    text: Option<String>,
    regex: Option<Regex>,
}

impl LogQuery {
    pub(super) fn parse(search: &Search, parts: &[Part]) -> ApiResult<Self> {
        let time = |key: &str| -> ApiResult<Option<u64>> {
            let parse =
                |text: &str| Timestamp::try_from(text.to_owned()).map_err(|e| ApiError::invalid(format!("{key}: {e}")));
            Ok(search.text(key).map(parse).transpose()?.map(Timestamp::nanos))
        };
        let pipe = |text: &str| {
            Pipe::parse(text).ok_or_else(|| {
                ApiError::invalid(format!(
                    "`{text}` is no pipe; use stdout, stderr or system (of telemetry: logs, traces or metrics)"
                ))
            })
        };
        let level = |text: &str| {
            let found = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number);
            found.ok_or_else(|| {
                ApiError::invalid(format!("`{text}` is no level; use trace, debug, info, warn, error or fatal"))
            })
        };
        let regex = |text: &str| {
            let built = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
            built.map_err(|e| ApiError::invalid(format!("the regular expression can't be used: {e}")))
        };
        let from = |text: &str| {
            let parsed = text.split_once('.').and_then(|(epoch, seq)| Some((epoch.parse().ok()?, seq.parse().ok()?)));
            parsed.ok_or_else(|| ApiError::invalid(format!("`{text}` is not a position in a log, such as `1.42`")))
        };
        let wanted = Self {
            pipe: search.text("pipe").map(pipe).transpose()?,
            step: search.text("step").map(str::to_owned),
            severity: search.text("level").map(level).transpose()?,
            since: time("since")?,
            until: time("until")?,
            from: search.text("from").map(from).transpose()?,
            text: search.text("grep").map(str::to_owned),
            regex: search.text("regex").map(regex).transpose()?,
        };
        wanted.check_step(parts)?;
        Ok(wanted)
    }

    /// A step that nobody has, where steps are known, is a mistake.
    fn check_step(&self, parts: &[Part]) -> ApiResult<()> {
        let Some(step) = &self.step else { return Ok(()) };
        // Those of the newest execution: the others had the same.
        let names: Vec<&str> = parts.last().iter().flat_map(|p| &p.steps).map(|s| s.name.as_str()).collect();
        if names.is_empty() || names.contains(&step.as_str()) {
            return Ok(());
        }
        Err(ApiError::invalid(format!("the job has no step `{step}`; it has {}", names.join(", "))))
    }

    /// Whether single lines are asked for, not all of a pipe.
    pub(super) fn by_line(&self) -> bool {
        self.step.is_some()
            || self.severity.is_some()
            || self.since.is_some()
            || self.until.is_some()
            || self.from.is_some()
            || self.text.is_some()
            || self.regex.is_some()
    }

    pub(super) fn takes_chunk(&self, part: &Part, chunk: &Chunk) -> bool {
        self.pipe.is_none_or(|pipe| pipe == chunk.pipe)
            && self.step.as_ref().is_none_or(|step| step_name(part, chunk).as_ref() == Some(step))
            && self.from.is_none_or(|from| (part.epoch, chunk.seq) >= from)
    }

    fn takes(&self, line: &Line) -> bool {
        self.severity.is_none_or(|least| line.severity.1 >= least)
            && self.since.is_none_or(|since| line.nanos >= since)
            && self.until.is_none_or(|until| line.nanos <= until)
            && self.finds(&line.text)
    }

    /// Whether what is searched for is there, as people see it: without colours.
    fn finds(&self, line: &str) -> bool {
        let line = visible(line);
        self.text.as_ref().is_none_or(|text| line.contains(text.as_str()))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(&line))
    }
}

/// A line as people see it: without colours.
pub(super) fn visible(line: &str) -> Cow<'_, str> {
    match line.contains('\u{1b}') {
        true => anstream::adapter::strip_str(line).to_string().into(),
        false => line.into(),
    }
}

pub(super) fn step_name(part: &Part, chunk: &Chunk) -> Option<String> {
    if chunk.step == log::NO_STEP {
        return None;
    }
    part.steps.get(chunk.step as usize).map(|s| s.name.clone())
}

/// A line of a chunk, or the record that the chunk is.
pub(super) struct Line {
    /// Its number in the chunk.
    at: usize,
    /// Its time, which is its cursor too.
    pub(super) nanos: u64,
    pub(super) text: String,
    severity: (Cow<'static, str>, i64),
    record: Option<Record>,
}

impl Line {
    fn new(chunk: &Chunk, at: usize, text: String) -> Self {
        let (name, number) = chunk.pipe.severity();
        let severity = (Cow::Borrowed(name), number);
        Self { at, nanos: chunk.time_ns + at as u64, text, severity, record: None }
    }

    fn of_record(chunk: &Chunk, record: Record) -> Self {
        let (name, number) = record.severity();
        let severity = (Cow::Owned(name.to_owned()), number);
        Self { at: 0, nanos: chunk.time_ns, text: record.text(), severity, record: Some(record) }
    }

    pub(super) fn is_gap(&self, chunk: &Chunk) -> bool {
        self.at == GAP_AT && matches!(chunk.body, log::Body::Gap(_))
    }

    /// As text for people: a record with its time, level and service.
    pub(super) fn shown(&self) -> String {
        let Some(record) = &self.record else { return self.text.clone() };
        let time = Timestamp::from_micros((record.time_ns / 1000) as i64);
        format!("{time} {:<5} {}: {}", self.severity.0, record.service(), self.text)
    }
}

/// The record that a chunk of telemetry is.
fn record_of(chunk: &Chunk) -> Option<Record> {
    match &chunk.body {
        log::Body::Data(data) if chunk.pipe.holds_records() => serde_json::from_slice(data).ok(),
        log::Body::Data(_) | log::Body::Gap(_) => None,
    }
}

/// The lines that end in a chunk and are wanted, with cursors within some bounds; the others of a long chunk cost little.
pub(super) async fn lines(
    store: &store::Reader,
    wanted: &LogQuery,
    part: &Part,
    chunk: &Chunk,
    ended: &mut Ended<'_>,
    bounds: &RangeInclusive<u64>,
) -> Result<Vec<Line>, StoreError> {
    if !wanted.takes_chunk(part, chunk) {
        return Ok(Vec::new());
    }
    if ended.is_beginning_unknown() && bounds.contains(&chunk.time_ns) {
        ended.begin(store.beginning_of_line(&part.id, chunk).await?);
    }
    let mut lines: Vec<Line> = match record_of(chunk) {
        Some(record) => vec![Line::of_record(chunk, record)],
        None => {
            let within = ended.lines().filter(|(at, _)| bounds.contains(&(chunk.time_ns + *at as u64)));
            within.map(|(at, text)| Line::new(chunk, at, String::from_utf8_lossy(&text).into_owned())).collect()
        }
    };
    if let log::Body::Gap(missing) = chunk.body {
        let text = format!("[{}]", log::describe_gap(missing, Some(chunk.pipe.as_str())));
        lines.push(Line::new(chunk, GAP_AT, text));
    }
    lines.retain(|line| bounds.contains(&line.nanos) && wanted.takes(line));
    Ok(lines)
}

pub(super) fn record(source: &Source, part: &Part, chunk: &Chunk, line: Line) -> LogRecord {
    let mut log_attributes = BTreeMap::from([("pipe".to_owned(), chunk.pipe.as_str().to_owned())]);
    if line.text.contains('\u{FFFD}') {
        log_attributes.insert("lossy".into(), "true".into());
    }
    let (job, runner) = match &source.owner {
        Owner::Job(job) => (Some((job.id.clone(), part.id.clone())), job.runner_id.clone()),
        Owner::Runner(runner) => (None, runner.id.clone()),
    };
    let (runner_job_id, runner_job_execution_id) = job.unzip();
    let mut wire = LogRecord {
        id: format!("{}.{}.{}", part.epoch, chunk.seq, line.at),
        timestamp: Timestamp::from_micros((line.nanos / 1000) as i64).to_string(),
        cursor: line.nanos.to_string(),
        severity_text: line.severity.0.into_owned(),
        severity_number: line.severity.1,
        service_name: "ferry-runner".into(),
        body: line.text,
        log_stream_id: source.stream.clone(),
        runner_id: runner,
        runner_job_id,
        runner_job_execution_id,
        runner_job_execution_step: step_name(part, chunk).unwrap_or_default(),
        log_attributes,
        resource_attributes: BTreeMap::new(),
        scope_name: String::new(),
        trace_id: String::new(),
        span_id: String::new(),
        data: None,
    };
    if let Some(record) = line.record {
        let texts = |of: &otlp::Attributes| of.iter().map(|(k, v)| (k.clone(), otlp::plain(v))).collect::<Vec<_>>();
        // The exporter's own time; the cursor is the order in which records arrived.
        wire.timestamp = Timestamp::from_micros((record.time_ns / 1000) as i64).to_string();
        wire.service_name = record.service().to_owned();
        // What Ferry says stands.
        for (name, text) in texts(&record.attributes) {
            wire.log_attributes.entry(name).or_insert(text);
        }
        wire.resource_attributes.extend(texts(&record.resource));
        wire.scope_name = record.scope;
        wire.trace_id = record.trace_id;
        wire.span_id = record.span_id;
        wire.data = serde_json::to_value(record.what).ok();
    }
    wire
}
