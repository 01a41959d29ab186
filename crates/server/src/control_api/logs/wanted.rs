//! What of a log is asked for, and what a line of it is.

use std::collections::BTreeMap;

use api::control::LogRecord;
use model::Timestamp;
use model::log::{self, Chunk, Pipe};
use regex::{Regex, RegexBuilder};
use store::{ExecutionRow, Job};

use super::super::apps::Search;
use crate::error::{ApiError, ApiResult};

/// What a pattern may take, compiled.
const REGEX_BYTES_MAX: usize = 1 << 20;
/// Levels and the numbers that OpenTelemetry gives them.
const LEVELS: [(&str, i64); 6] = [("trace", 1), ("debug", 5), ("info", 9), ("warn", 13), ("error", 17), ("fatal", 21)];

#[derive(Debug, Default)]
pub(super) struct Wanted {
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

impl Wanted {
    pub(super) fn parse(search: &Search, executions: &[ExecutionRow]) -> ApiResult<Self> {
        let time = |key: &str| -> ApiResult<Option<u64>> {
            let parse =
                |text: &str| Timestamp::try_from(text.to_owned()).map_err(|e| ApiError::invalid(format!("{key}: {e}")));
            Ok(search.text(key).map(parse).transpose()?.map(|t| t.micros().max(0) as u64 * 1_000))
        };
        let pipe = |text: &str| {
            Pipe::parse(text)
                .ok_or_else(|| ApiError::invalid(format!("`{text}` is no pipe; use stdout, stderr or system")))
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
        wanted.check_step(executions)?;
        Ok(wanted)
    }

    /// A step that nobody has, where steps are known, is a mistake.
    fn check_step(&self, executions: &[ExecutionRow]) -> ApiResult<()> {
        let Some(step) = &self.step else { return Ok(()) };
        let mut names: Vec<&str> = executions.iter().flat_map(|e| &e.steps).map(|s| s.name.as_str()).collect();
        names.dedup();
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

    pub(super) fn takes_chunk(&self, execution: &ExecutionRow, chunk: &Chunk) -> bool {
        self.pipe.is_none_or(|pipe| pipe == chunk.pipe)
            && self.severity.is_none_or(|least| severity(chunk.pipe).1 >= least)
            && self.step.as_ref().is_none_or(|step| step_name(execution, chunk).as_ref() == Some(step))
            && self.from.is_none_or(|from| (execution.epoch, chunk.seq) >= from)
    }

    pub(super) fn takes(&self, nanos: u64, line: &str) -> bool {
        self.since.is_none_or(|since| nanos >= since)
            && self.until.is_none_or(|until| nanos <= until)
            && self.text.as_ref().is_none_or(|text| line.contains(text.as_str()))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(line))
    }
}

fn severity(pipe: Pipe) -> (&'static str, i64) {
    match pipe {
        Pipe::System | Pipe::Stdout => ("INFO", 9),
        Pipe::Stderr => ("ERROR", 17),
    }
}

pub(super) fn step_name(execution: &ExecutionRow, chunk: &Chunk) -> Option<String> {
    if chunk.step == log::NO_STEP {
        return None;
    }
    execution.steps.get(chunk.step as usize).map(|s| s.name.clone())
}

/// The lines of a chunk that are wanted, each with its number and its time, which is its cursor too.
pub(super) fn lines(wanted: &Wanted, execution: &ExecutionRow, chunk: &Chunk) -> Vec<(usize, u64, String)> {
    if !wanted.takes_chunk(execution, chunk) {
        return Vec::new();
    }
    let of = |(at, line): (usize, &str)| {
        let nanos = chunk.time_ns + at as u64;
        wanted.takes(nanos, line).then(|| (at, nanos, line.to_owned()))
    };
    match &chunk.body {
        log::Body::Gap(missing) => {
            of((0, &format!("[{missing} bytes of {} are missing here]", chunk.pipe.as_str()))).into_iter().collect()
        }
        log::Body::Data(data) => {
            let text = String::from_utf8_lossy(data);
            let text = text.strip_suffix('\n').unwrap_or(&text);
            text.split('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).enumerate().filter_map(of).collect()
        }
    }
}

pub(super) fn record(
    job: &Job,
    execution: &ExecutionRow,
    chunk: &Chunk,
    (at, nanos, body): (usize, u64, String),
) -> LogRecord {
    let (severity_text, severity_number) = severity(chunk.pipe);
    let mut log_attributes = BTreeMap::from([("pipe".to_owned(), chunk.pipe.as_str().to_owned())]);
    if body.contains('\u{FFFD}') {
        log_attributes.insert("lossy".into(), "true".into());
    }
    LogRecord {
        id: format!("{}.{}.{at}", execution.epoch, chunk.seq),
        timestamp: Timestamp::from_micros((nanos / 1000) as i64).to_string(),
        cursor: nanos.to_string(),
        severity_text: severity_text.into(),
        severity_number,
        service_name: "ferry-runner".into(),
        body,
        log_stream_id: job.log_stream_id.clone(),
        runner_job_id: job.id.clone(),
        runner_job_execution_id: execution.id.clone(),
        runner_job_execution_step: step_name(execution, chunk).unwrap_or_default(),
        log_attributes,
    }
}
