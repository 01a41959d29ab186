//! A log by line numbers: its outline, any lines of it, where a text is, and what comes live. Lines are counted once; every hundredth
//! is remembered, so that any place is found without reading what is before it.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use aho_corasick::AhoCorasick;
use api::control::{LogLine, LogLines, LogMatches, LogOutline, LogSection};
use axum::Json;
use axum::extract::{Path, State};
use model::lines::{End, OpenLines};
use model::log::{self, Chunk, Pipe};
use model::{ExecutionId, LogStreamId, Timestamp};
use regex::RegexBuilder;
use serde::Deserialize;
use store::{Reader as Store, StoreError};

use super::query::{LogQuery, lines, step_name};
use super::source::{Owner, Part, Source};
use crate::AppState;
use crate::auth::Reader;
use crate::error::{ApiError, ApiResult};
use crate::recent::Recent;
use crate::request::Params;

/// Logs whose lines are counted in memory; more are forgotten, and counted anew.
const INDEXES_MAX: usize = 64;
/// How many lines lie between two that are remembered.
const STRIDE: u64 = 100;
/// Gaps and failures that are listed.
const LISTED: usize = 1000;
/// Lines of one answer.
const LINES: u64 = 200;
const LINES_MAX: u64 = 2000;
/// Bytes of one line that are shown; the raw log has all.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Bytes of all lines of one answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;
const MATCHES: u64 = 10_000;
/// How long one search may take.
const SEARCH: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(crate) struct LineIndexes(Recent<LogStreamId, LineIndex>);

impl Default for LineIndexes {
    fn default() -> Self {
        Self(Recent::of(INDEXES_MAX))
    }
}

impl LineIndexes {
    /// Counts what is new, and returns how many lines there are, and how often they had to be counted anew.
    pub(crate) async fn count(&self, state: &AppState, source: &Source) -> ApiResult<(u64, u64)> {
        let slot = self.0.slot(&source.stream);
        let mut index = slot.lock().await;
        index.extend(state.store(), source).await?;
        Ok((index.lines, index.renewed))
    }
}

/// What is known of the lines of a log.
#[derive(Default)]
struct LineIndex {
    parts: Vec<PartIndex>,
    /// Of all parts.
    lines: u64,
    gaps: Vec<u64>,
    failures: Vec<u64>,
    failures_total: u64,
    /// How often all was counted anew: numbers of before are good no more.
    renewed: u64,
}

struct PartIndex {
    id: ExecutionId,
    /// Where it begins: what came before was deleted.
    first_seq: u64,
    /// The chunk that is counted next, and the lines that have begun before it.
    next_seq: u64,
    open: OpenLines,
    /// Lines of the parts before.
    before: u64,
    marks: Vec<Mark>,
    sections: Vec<Section>,
    /// Nobody adds to it any more, and what was open has ended.
    closed: bool,
}

/// A chunk, and how many lines end before it.
#[derive(Clone, Copy)]
struct Mark {
    seq: u64,
    lines: u64,
}

/// Lines of one step that come one after the other.
struct Section {
    step: u32,
    from: u64,
    to: u64,
    begin_ns: u64,
    end_ns: u64,
}

static FAILURES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = ["error", "fatal", "panic", "failed", "exception", "traceback"];
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).expect("fixed words")
});

impl LineIndex {
    /// Counts what came since it was last looked at.
    async fn extend(&mut self, store: &Store, source: &Source) -> Result<(), StoreError> {
        for (at, part) in source.parts.iter().enumerate() {
            // A log that was deleted, or whose beginning was, is counted anew; and so is one that grows where it had ended already.
            let head = store.log_state(&part.id).await?;
            let is_last = at + 1 >= self.parts.len();
            let is_other = |known: &PartIndex| {
                let grows = known.next_seq < head.next_seq && (known.closed || !is_last);
                known.id != part.id || known.next_seq > head.next_seq || known.first_seq != head.first_seq || grows
            };
            if self.parts.get(at).is_some_and(is_other) {
                *self = Self { renewed: self.renewed + 1, ..Self::default() };
                return Box::pin(self.extend(store, source)).await;
            }
            if self.parts.len() == at {
                self.parts.push(PartIndex::new(part.id.clone(), head.first_seq, self.lines));
            }
            loop {
                let from = self.parts[at].next_seq;
                let chunks = store.read_log(&part.id, from).await?;
                if chunks.is_empty() {
                    break;
                }
                self.take(at, &chunks);
                tokio::task::yield_now().await;
            }
            // While its job may come back, what is open may go on.
            if !source.is_open() || at + 1 < source.parts.len() || part.end(self.parts[at].next_seq) == End::Whole {
                self.close(at, part);
            }
        }
        Ok(())
    }

    fn take(&mut self, at: usize, chunks: &[Chunk]) {
        for chunk in chunks {
            let part = &mut self.parts[at];
            if part.marks.last().is_none_or(|last| self.lines >= last.lines + STRIDE) {
                part.marks.push(Mark { seq: chunk.seq, lines: self.lines });
            }
            let ended = part.open.pass(chunk);
            let unknown = ended.is_beginning_unknown();
            let first = self.lines + 1;
            if !chunk.pipe.holds_records() {
                for (_, text) in ended.lines() {
                    self.lines += 1;
                    if chunk.pipe != Pipe::System && FAILURES.is_match(&*text) {
                        self.failures_total += 1;
                        if self.failures.len() < LISTED {
                            self.failures.push(self.lines);
                        }
                    }
                }
                // An end whose beginning is not known here is a line too, if there is anything of it.
                if unknown && ended.lines().next().is_none() {
                    self.lines += 1;
                }
            }
            if matches!(chunk.body, log::Body::Gap(_)) {
                self.lines += 1;
                if self.gaps.len() < LISTED {
                    self.gaps.push(self.lines);
                }
            }
            part.next_seq = chunk.seq + 1;
            if self.lines >= first {
                part.note_section(chunk, first, self.lines);
            }
        }
    }

    /// What an executor that is gone has left open are lines too.
    fn close(&mut self, at: usize, part: &Part) {
        let known = &mut self.parts[at];
        let end = part.end(known.next_seq);
        if known.closed || end == End::Open {
            return;
        }
        known.closed = true;
        for (_, ended) in known.open.rest(known.next_seq, 0, log::NO_STEP, end) {
            let lines = ended.lines().count() as u64;
            self.lines += lines.max(u64::from(ended.is_beginning_unknown()));
        }
        if let Some(last) = known.sections.last_mut() {
            last.to = self.lines.max(last.to);
        }
    }

    /// Where to begin to read for a line: the part, and the chunk.
    fn find(&self, line: u64) -> Option<(usize, Mark)> {
        let at = self.parts.iter().rposition(|part| part.before < line)?;
        let part = &self.parts[at];
        let mark = part.marks.partition_point(|mark| mark.lines < line).checked_sub(1)?;
        Some((at, part.marks[mark]))
    }
}

impl PartIndex {
    fn new(id: ExecutionId, first_seq: u64, before: u64) -> Self {
        Self {
            id,
            first_seq,
            next_seq: 0,
            open: OpenLines::default(),
            before,
            marks: Vec::new(),
            sections: Vec::new(),
            closed: false,
        }
    }

    fn note_section(&mut self, chunk: &Chunk, first: u64, last: u64) {
        match self.sections.last_mut() {
            // What the executor says in between belongs to the step that it is in.
            Some(section) if section.step == chunk.step || chunk.step == log::NO_STEP => {
                (section.to, section.end_ns) = (last, chunk.time_ns);
            }
            _ => self.sections.push(Section {
                step: chunk.step,
                from: first,
                to: last,
                begin_ns: chunk.time_ns,
                end_ns: chunk.time_ns,
            }),
        }
    }
}

fn time_of(nanos: u64) -> Timestamp {
    Timestamp::from_micros((nanos / 1000) as i64)
}

/// Some lines of a log, from one on: at most `count`, and at most so many bytes.
pub(crate) async fn read_lines(
    state: &AppState,
    source: &Source,
    indexes: &LineIndexes,
    from: u64,
    count: u64,
) -> ApiResult<LogLines> {
    let slot = indexes.0.slot(&source.stream);
    let (total, place) = {
        let mut index = slot.lock().await;
        index.extend(state.store(), source).await?;
        (index.lines, index.find(from.max(1)))
    };
    let mut found = Vec::new();
    if let Some((at, mark)) = place {
        let wanted = Wanted { from: from.max(1), to: from.max(1).saturating_add(count - 1).min(total) };
        collect(state.store(), source, at, mark, &wanted, &mut found).await?;
    }
    Ok(LogLines {
        from: found.first().map_or(from, |line: &LogLine| line.n),
        lines: found,
        total,
        position: total.to_string(),
    })
}

struct Wanted {
    from: u64,
    to: u64,
}

async fn collect(
    store: &Store,
    source: &Source,
    first: usize,
    mark: Mark,
    wanted: &Wanted,
    found: &mut Vec<LogLine>,
) -> Result<(), StoreError> {
    let all = LogQuery::default();
    let (mut n, mut bytes) = (mark.lines, 0);
    for (at, part) in source.parts.iter().enumerate().skip(first) {
        let mut seq = if at == first { mark.seq } else { 0 };
        let mut open = OpenLines::default();
        loop {
            let chunks = store.log_block(&part.id, store::LogAt::From(seq)).await?;
            let Some(last) = chunks.last() else { break };
            seq = last.seq + 1;
            for (chunk, mut ended) in open.block(&chunks, part.end_of(&chunks)) {
                if chunk.pipe.holds_records() {
                    continue;
                }
                for line in lines(store, &all, part, &chunk, &mut ended, &(0..=u64::MAX)).await? {
                    n += 1;
                    if n < wanted.from {
                        continue;
                    }
                    if n > wanted.to || bytes > ANSWER_BYTES_MAX {
                        return Ok(());
                    }
                    let gap = line.is_gap(&chunk);
                    let shown = shown(n, part, &chunk, line.nanos, line.text, gap);
                    bytes += shown.text.len();
                    found.push(shown);
                }
            }
        }
    }
    Ok(())
}

fn shown(n: u64, part: &Part, chunk: &Chunk, nanos: u64, mut text: String, gap: bool) -> LogLine {
    let mut cut_bytes = 0;
    if text.len() > LINE_BYTES_MAX {
        let mut end = LINE_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        cut_bytes = (text.len() - end) as u64;
        text.truncate(end);
    }
    let missing = match chunk.body {
        log::Body::Gap(missing) => Some(missing),
        log::Body::Data(_) => None,
    };
    LogLine {
        n,
        time: time_of(nanos),
        text,
        pipe: if chunk.pipe == Pipe::Stdout { String::new() } else { chunk.pipe.as_str().to_owned() },
        step: step_name(part, chunk).unwrap_or_default(),
        gap_bytes: missing.filter(|_| gap),
        cut_bytes,
    }
}

/// What a log consists of: how many lines, its steps, gaps, and lines that look like failures.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/outline", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path)), responses((status = 200, body = LogOutline), (status = 404, body = api::ErrorBody)))]
pub(super) async fn outline(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<Json<LogOutline>> {
    let source = Source::find(&state, &at.org, &id).await?;
    let note = super::shown(&state, Source::find(&state, &at.org, &id).await?).await?.note;
    let slot = state.line_indexes.0.slot(&source.stream);
    let mut index = slot.lock().await;
    index.extend(state.store(), &source).await?;
    let mut outline = LogOutline {
        log_stream_id: source.stream.to_string(),
        lines: index.lines,
        open: source.is_open(),
        sections: sections(&source, &index),
        position: index.lines.to_string(),
        job_id: String::new(),
        job_name: String::new(),
        job_status: String::new(),
        install_id: String::new(),
        install_name: String::new(),
        workflow_id: String::new(),
        step_id: String::new(),
        gaps: index.gaps.clone(),
        failures: index.failures.clone(),
        failures_total: index.failures_total,
        note,
        started_at: None,
        finished_at: None,
        error: String::new(),
        unknown: false,
    };
    drop(index);
    if let Owner::Job(job) = &source.owner {
        outline.job_id = job.id.to_string();
        outline.job_name = job.name.clone().unwrap_or_else(|| job.job_type.to_string());
        outline.job_status = job.state.to_string();
        outline.started_at = job.started_at;
        outline.finished_at = job.finished_at;
        outline.error = if job.error_code.is_some() { job.reason.clone() } else { String::new() };
        outline.unknown = job.state == model::JobState::Unknown;
        if let Some(id) = &job.install_id {
            outline.install_id = id.to_string();
            // It may be forgotten by now.
            outline.install_name =
                state.store().install(&at.org, id.as_str()).await.map(|install| install.name).unwrap_or_default();
        }
        if let Some(step) = &job.step_id {
            outline.step_id = step.to_string();
            let workflow = state.store().workflow_of_step(&at.org, step).await;
            outline.workflow_id = workflow.map(|id| id.to_string()).unwrap_or_default();
        }
    }
    Ok(Json(outline))
}

fn sections(source: &Source, index: &LineIndex) -> Vec<LogSection> {
    let mut all = Vec::new();
    for (part, known) in source.parts.iter().zip(&index.parts) {
        for section in &known.sections {
            let step = part.steps.get(section.step as usize);
            let status = step.map(|step| match serde_json::to_value(step.status) {
                Ok(serde_json::Value::String(status)) => status,
                _ => String::new(),
            });
            all.push(LogSection {
                name: step.map(|step| step.name.clone()).unwrap_or_default(),
                from: section.from,
                to: section.to,
                epoch: part.epoch,
                status: status.unwrap_or_default(),
                started_at: Some(time_of(section.begin_ns)),
                took_ms: section.end_ns.saturating_sub(section.begin_ns) / 1_000_000,
            });
        }
    }
    all
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LinesQuery {
    from: Option<u64>,
    count: Option<u64>,
}

/// Lines of a log by their numbers, from 1.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/lines", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path), ("from" = Option<u64>, Query, description = "number of the first line; 1 when absent"), ("count" = Option<u64>, Query, description = "200 by default, 2,000 at most")), responses((status = 200, body = LogLines), (status = 404, body = api::ErrorBody)))]
pub(super) async fn numbered(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(query): Params<LinesQuery>,
) -> ApiResult<Json<LogLines>> {
    let source = Source::find(&state, &at.org, &id).await?;
    let count = query.count.unwrap_or(LINES).clamp(1, LINES_MAX);
    Ok(Json(read_lines(&state, &source, &state.line_indexes, query.from.unwrap_or(1), count).await?))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MatchQuery {
    q: String,
    regex: String,
    level: String,
}

/// The numbers of the lines that a text, or a regular expression (`regex=true`), is found in; case does not matter. `level=error` takes
/// only what was printed to stderr.
#[utoipa::path(get, path = "/v1/log-streams/{log_stream_id}/matches", tag = "logs", security(("token" = ["read-only"])), params(("log_stream_id" = String, Path), ("q" = String, Query), ("regex" = Option<bool>, Query), ("level" = Option<String>, Query, description = "`error`")), responses((status = 200, body = LogMatches), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
pub(super) async fn matches(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(query): Params<MatchQuery>,
) -> ApiResult<Json<LogMatches>> {
    let source = Source::find(&state, &at.org, &id).await?;
    let is_regex = matches!(query.regex.as_str(), "true" | "1");
    let pattern = if is_regex { query.q.clone() } else { regex::escape(&query.q) };
    let pattern = RegexBuilder::new(&pattern).case_insensitive(true).size_limit(1 << 20).build();
    let pattern = pattern.map_err(|e| ApiError::invalid(format!("the regular expression can't be used: {e}")))?;
    if !matches!(query.level.as_str(), "" | "error") {
        return Err(ApiError::invalid("`level` can only be `error`"));
    }
    let errors = query.level == "error";
    let (all, started) = (LogQuery::default(), Instant::now());
    let mut told = LogMatches { lines: Vec::new(), total: 0, more: false };
    let mut n = 0;
    'parts: for part in &source.parts {
        let (mut seq, mut open) = (0, OpenLines::default());
        loop {
            let chunks = state.store().read_log(&part.id, seq).await?;
            let Some(last) = chunks.last() else { break };
            seq = last.seq + 1;
            for (chunk, mut ended) in open.block(&chunks, part.end_of(&chunks)) {
                if chunk.pipe.holds_records() {
                    continue;
                }
                for line in lines(state.store(), &all, part, &chunk, &mut ended, &(0..=u64::MAX)).await? {
                    n += 1;
                    if errors && chunk.pipe != Pipe::Stderr || !pattern.is_match(&super::query::visible(&line.text)) {
                        continue;
                    }
                    told.total += 1;
                    if told.total <= MATCHES {
                        told.lines.push(n);
                    }
                }
            }
            if started.elapsed() > SEARCH || state.gate.is_cancelled() {
                told.more = true;
                break 'parts;
            }
        }
    }
    told.more |= told.total > MATCHES;
    Ok(Json(told))
}
