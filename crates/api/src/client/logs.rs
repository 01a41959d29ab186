//! Logs: records, bytes, and what comes as it is printed.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use model::{LogStreamId, Timestamp};
use reqwest::Method;

use super::{Call, Client, Result, decode, next_chunk, parse};
use crate::control::{LogChunk, LogKeeping, LogRecord, LogStream, UpdateLogKeeping};
use crate::headers;

/// How the whole log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// The bytes, as they were written.
    Raw,
    Text,
    /// A record on each line.
    Ndjson,
}

impl LogFormat {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Text => "text",
            Self::Ndjson => "ndjson",
        }
    }
}

/// What of a log is wanted; the default is all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// `stdout`, `stderr` or `system`; of telemetry `logs`, `traces` or `metrics`.
    pub pipe: Option<String>,
    /// Name of a step.
    pub step: Option<String>,
    /// At least this.
    pub level: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only lines with this text.
    pub grep: Option<String>,
    /// Only lines that match.
    pub regex: Option<String>,
}

impl LogFilter {
    pub fn pipe(pipe: Option<&str>) -> Self {
        Self { pipe: pipe.map(str::to_owned), ..Self::default() }
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let time = |time: Option<Timestamp>| time.map(|t| t.to_string());
        let all = [
            ("pipe", self.pipe.clone()),
            ("step", self.step.clone()),
            ("level", self.level.clone()),
            ("grep", self.grep.clone()),
            ("regex", self.regex.clone()),
            ("since", time(self.since)),
            ("until", time(self.until)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// What a live tail brings.
#[derive(Debug, Clone, PartialEq)]
pub enum Tail {
    Chunk(LogChunk),
    /// Nothing more will come: the job has ended so.
    End {
        status: String,
    },
}

impl Client {
    pub async fn log_stream(&self, id: &LogStreamId) -> Result<LogStream> {
        self.json(self.get(format!("/v1/log-streams/{id}"))).await
    }

    /// One page of records from `cursor` on, and the cursor of the next page.
    pub async fn log_records(
        &self,
        id: &LogStreamId,
        filter: &LogFilter,
        cursor: Option<&str>,
    ) -> Result<(Vec<LogRecord>, Option<String>)> {
        let call = self.log_call(id, filter);
        let cursor = cursor.map(|c| (headers::LOG_OFFSET, c));
        let (answered, bytes) = self.answer_with(&call, cursor).await?;
        let next = answered.get(headers::LOG_NEXT).and_then(|v| v.to_str().ok()).filter(|n| !n.is_empty());
        Ok((decode(&call, &bytes)?, next.map(str::to_owned)))
    }

    /// Deletes the log of a job that has ended.
    pub async fn delete_log(&self, id: &LogStreamId) -> Result<LogStream> {
        self.json(self.call(Method::DELETE, format!("/v1/log-streams/{id}"))).await
    }

    pub async fn log_keeping(&self) -> Result<LogKeeping> {
        self.json(self.get("/v1/orgs/current/logs")).await
    }

    pub async fn update_log_keeping(&self, body: &UpdateLogKeeping) -> Result<LogKeeping> {
        self.json(self.patch("/v1/orgs/current/logs", body)?).await
    }

    fn log_call(&self, id: &LogStreamId, filter: &LogFilter) -> Call {
        let mut call = self.get(format!("/v1/log-streams/{id}/logs"));
        call.query = filter.query();
        call
    }

    /// The log so far, as bytes that arrive while they are read; compressed where that is asked for.
    pub async fn log_bytes(
        &self,
        id: &LogStreamId,
        format: LogFormat,
        filter: &LogFilter,
        gzip: bool,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let mut call = self.log_call(id, filter);
        call.push("format", Some(format.as_str().to_owned()));
        call.push("gzip", gzip.then(|| "true".to_owned()));
        let response = self.open(&call, None).await?;
        let url = self.base.clone();
        let chunks = stream::unfold(Some((response, url)), |state| async move {
            let (mut response, url) = state?;
            match next_chunk(&mut response, &url).await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some((response, url)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(chunks.boxed())
    }

    /// The log as it grows, until the job has ended; connections that break are taken up again where they broke.
    pub fn tail(&self, id: &LogStreamId, after: Option<String>) -> BoxStream<'static, Result<Tail>> {
        self.tail_of(id, &LogFilter::default(), after)
    }

    /// The same, of some of it.
    pub fn tail_of(
        &self,
        id: &LogStreamId,
        filter: &LogFilter,
        after: Option<String>,
    ) -> BoxStream<'static, Result<Tail>> {
        let path = format!("/v1/log-streams/{id}/tail");
        let events = self.subscribe(path.clone(), filter.query(), after, Some("end"));
        events
            .filter_map(move |event| {
                let item = match event {
                    Ok(event) if event.event == "chunk" => Some(parse(&path, &event.data).map(Tail::Chunk)),
                    Ok(event) if event.event == "end" => {
                        let status = serde_json::from_str::<serde_json::Value>(&event.data).ok();
                        let status = status.as_ref().and_then(|v| v["status"].as_str()).unwrap_or_default().to_owned();
                        Some(Ok(Tail::End { status }))
                    }
                    // A newer server may say more.
                    Ok(_) => None,
                    Err(error) => Some(Err(error)),
                };
                std::future::ready(item)
            })
            .boxed()
    }
}
