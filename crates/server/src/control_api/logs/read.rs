//! Reads a log from any place in either direction: a page of it, or all of it as a stream.

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use api::control::LogRecord;
use api::headers;
use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use http::HeaderMap;
use model::lines::{End, Ended, OpenLines};
use model::log::{self, Chunk, Pipe};
use store::{LogAt, StoreError};
use tokio::sync::mpsc;

use super::query::{Line, LogQuery, lines, record};
use super::source::{Part, Source};
use crate::AppState;
use crate::error::ApiResult;

/// Records on one page.
const PAGE: usize = 100;
/// What one page of a search looks at, at most; the next one goes on there.
const SCAN_BYTES: usize = 64 << 20;
const SCAN: Duration = Duration::from_secs(3);
/// After every chunk; the databases count with a sign.
const END: u64 = i64::MAX as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Text,
    Ndjson,
}

pub(super) struct Reader {
    pub(super) state: AppState,
    pub(super) source: Source,
    pub(super) wanted: LogQuery,
}

/// Where a walk through the parts of a log stands.
struct Walk {
    /// Index of the part.
    part: usize,
    at: LogAt,
    /// Where it begins in a part that it comes to.
    begin: LogAt,
    descending: bool,
    /// Lines of the part that go on in the next chunks.
    open: OpenLines,
}

impl Walk {
    /// Nothing more is wanted of this part.
    fn pass_part(&mut self) {
        self.part = if self.descending { self.part.wrapping_sub(1) } else { self.part + 1 };
        self.at = self.begin;
        self.open = OpenLines::default();
    }
}

impl Reader {
    fn walk(&self, place: Option<u64>, descending: bool) -> Walk {
        let begin = match place {
            Some(nanos) => LogAt::Time(nanos),
            None if descending => LogAt::Before(END),
            None => LogAt::From(0),
        };
        let parts = &self.source.parts;
        let part = if descending { parts.len().wrapping_sub(1) } else { 0 };
        let walk = Walk { part, at: begin, begin, descending, open: OpenLines::default() };
        match self.wanted.from {
            // Straight to the chunk that is named; parts after that one begin at their first.
            Some((epoch, seq)) if place.is_none() && !descending => {
                let part = parts.partition_point(|p| p.epoch < epoch);
                let there = parts.get(part).is_some_and(|p| p.epoch == epoch);
                Walk { part, at: LogAt::From(if there { seq } else { 0 }), ..walk }
            }
            _ => walk,
        }
    }

    /// The next chunks of a walk, in the log's order, and the part that they are of.
    async fn next(&self, walk: &mut Walk) -> Result<Option<(&Part, Vec<Chunk>)>, StoreError> {
        while let Some(part) = self.source.parts.get(walk.part) {
            let chunks = self.state.store().log_block(&part.id, walk.at).await?;
            let Some((first, last)) = chunks.first().zip(chunks.last()) else {
                walk.pass_part();
                continue;
            };
            if walk.descending {
                (walk.at, walk.open) = (LogAt::Before(first.seq), OpenLines::default());
            } else {
                walk.at = LogAt::From(last.seq + 1);
            }
            return Ok(Some((part, chunks)));
        }
        Ok(None)
    }

    async fn lines(
        &self,
        part: &Part,
        chunk: &Chunk,
        ended: &mut Ended<'_>,
        bounds: &RangeInclusive<u64>,
    ) -> Result<Vec<Line>, StoreError> {
        lines(self.state.store(), &self.wanted, part, chunk, ended, bounds).await
    }

    pub(super) async fn page(&self, cursor: Option<u64>, descending: bool) -> ApiResult<Response> {
        let edge = if descending { self.wanted.until } else { self.wanted.since };
        let mut walk = self.walk(cursor.or(edge), descending);
        let (mut records, mut next, mut scanned): (Vec<LogRecord>, _, _) = (Vec::new(), None, 0);
        let bounds = match cursor {
            Some(cursor) if descending => 0..=cursor,
            Some(cursor) => cursor..=u64::MAX,
            None => 0..=u64::MAX,
        };
        let started = Instant::now();
        'pages: while let Some((part, chunks)) = self.next(&mut walk).await? {
            let mut block = walk.open.block(&chunks, part.end_of(&chunks));
            if descending {
                block.reverse();
            }
            for (chunk, ended) in &mut block {
                let mut found = self.lines(part, chunk, ended, &bounds).await?;
                if descending {
                    found.reverse();
                }
                for line in found {
                    if records.len() == PAGE {
                        next = Some(line.nanos);
                        break 'pages;
                    }
                    records.push(record(&self.source, part, chunk, line));
                }
                scanned += size(chunk);
            }
            let Some(last) = (if descending { chunks.first() } else { chunks.last() }) else { break };
            let past = match (descending, self.wanted.since, self.wanted.until) {
                (false, _, Some(until)) => last.time_ns > until,
                (true, Some(since), _) => last.time_ns < since,
                _ => false,
            };
            if past {
                walk.pass_part();
                continue;
            }
            // Where a part has ended there is no place in it to go on from.
            let more = descending || part.end_of(&chunks) == End::Open;
            if more && (scanned > SCAN_BYTES || started.elapsed() > SCAN) {
                // The first place that was not looked at; where there is none, the next page is empty.
                next = Some(if descending { last.time_ns.saturating_sub(1) } else { last.time_ns + last.lines() });
                break;
            }
        }
        let mut answer = HeaderMap::new();
        if let Ok(value) = next.map(|n| n.to_string()).unwrap_or_default().parse() {
            answer.insert(headers::LOG_NEXT, value);
        }
        Ok((answer, Json(records)).into_response())
    }

    /// The whole log as a stream of bytes, read piece by piece.
    pub(super) fn whole(self, format: Format, gzip: bool) -> Response {
        let (send, receive) = mpsc::channel::<Result<Vec<u8>, std::io::Error>>(4);
        let gate = self.state.gate.clone();
        gate.spawn(async move {
            if let Err(error) = self.stream(format, gzip, &send).await {
                let _ = send.send(Err(std::io::Error::other(error.to_string()))).await;
            }
        });
        let stream = futures::stream::unfold(receive, |mut r| async move { r.recv().await.map(|b| (b, r)) });
        let kind = match format {
            _ if gzip => "application/gzip",
            Format::Raw => "application/octet-stream",
            Format::Text => "text/plain; charset=utf-8",
            Format::Ndjson => "application/x-ndjson",
        };
        ([(http::header::CONTENT_TYPE, kind)], Body::from_stream(stream.boxed())).into_response()
    }

    async fn stream(
        &self,
        format: Format,
        gzip: bool,
        send: &mpsc::Sender<Result<Vec<u8>, std::io::Error>>,
    ) -> Result<(), StoreError> {
        let mut packer = gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        let mut walk = self.walk(self.wanted.since, false);
        while let Some((part, chunks)) = self.next(&mut walk).await? {
            // A search may send nothing for long: whoever has left must not be searched for.
            if send.is_closed() || self.state.gate.is_cancelled() {
                return Ok(());
            }
            let mut bytes = Vec::new();
            for (chunk, mut ended) in walk.open.block(&chunks, part.end_of(&chunks)) {
                self.print(format, part, &chunk, &mut ended, &mut bytes).await?;
            }
            if let Some(packer) = &mut packer {
                packer.write_all(&bytes).map_err(|e| StoreError::Blob(e.to_string()))?;
                bytes = std::mem::take(packer.get_mut());
            }
            if !bytes.is_empty() && send.send(Ok(bytes)).await.is_err() {
                return Ok(());
            }
            let past = |until: u64| chunks.last().is_some_and(|last| last.time_ns > until);
            if self.wanted.until.is_some_and(past) {
                walk.pass_part();
            }
        }
        if let Some(packer) = packer {
            let end = packer.finish().map_err(|e| StoreError::Blob(e.to_string()))?;
            let _ = send.send(Ok(end)).await;
        }
        Ok(())
    }

    async fn print(
        &self,
        format: Format,
        part: &Part,
        chunk: &Chunk,
        ended: &mut Ended<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let by_line = self.wanted.by_line() || chunk.pipe.holds_records();
        match (format, &chunk.body) {
            (Format::Ndjson, _) => {
                for line in self.lines(part, chunk, ended, &(0..=u64::MAX)).await? {
                    let _ = serde_json::to_writer(&mut *out, &record(&self.source, part, chunk, line));
                    out.push(b'\n');
                }
            }
            (Format::Text, _) if by_line => {
                for line in self.lines(part, chunk, ended, &(0..=u64::MAX)).await? {
                    out.extend_from_slice(line.shown().as_bytes());
                    out.push(b'\n');
                }
            }
            (Format::Text | Format::Raw, body) => {
                let text = format == Format::Text;
                // Raw is what the child wrote: nothing of ours in between, unless it is asked for.
                let wanted = self.wanted.pipe.map_or(text || chunk.pipe != Pipe::System, |p| p == chunk.pipe);
                match body {
                    log::Body::Data(data) if wanted => {
                        out.extend_from_slice(data);
                        if chunk.pipe.holds_records() {
                            out.push(b'\n');
                        }
                    }
                    log::Body::Gap(n) if wanted && text => {
                        let said = format!("\n[{}]\n", log::describe_gap(*n, None));
                        // Where an executor died, both of its pipes end so, one after the other: that is said once.
                        if !(*n == log::UNKNOWN && out.ends_with(said.as_bytes())) {
                            out.extend_from_slice(said.as_bytes());
                        }
                    }
                    log::Body::Data(_) | log::Body::Gap(_) => {}
                }
            }
        }
        Ok(())
    }
}

fn size(chunk: &Chunk) -> usize {
    match &chunk.body {
        log::Body::Data(data) => data.len(),
        log::Body::Gap(_) => 0,
    }
}
