//! The log of a job.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use api::client::{Client, LogFilter, LogFormat, Tail};
use api::control::LogRecord;
use futures::StreamExt as _;
use model::log::telemetry_stream;
use model::{BuildId, JobId, LogStreamId, StepId, Timestamp};

use crate::args::{LogOptions, Logs};
use crate::commands::{ids, registry::builds};
use crate::error::{CliError, Exit, Result};
use crate::output::Output;
use crate::watch::Printer;

/// How far back telemetry is followed from.
const RECENT: Duration = Duration::from_secs(600);

pub(super) async fn run(client: &Client, out: &Output, args: Logs) -> Result<u8> {
    let Logs { id, install, mut options } = args;
    if let Some(install) = install {
        let runner = client.install(&install).await?.runner_id;
        // What is followed has no beginning that anybody wants to see.
        if options.follow && options.since.is_none() {
            options.since = Some(Timestamp::from_system(SystemTime::now() - RECENT));
        }
        return show(client, out, &telemetry_stream(&runner), options).await;
    }
    let id = ids::whole(client, &id.unwrap_or_default()).await?;
    if let Ok(stream) = LogStreamId::parse(&id) {
        return show(client, out, &stream, options).await;
    }
    if let Ok(job) = JobId::parse(&id) {
        return of_job(client, out, &job, options).await;
    }
    if BuildId::parse(&id).is_ok() {
        return of_job(client, out, &builds::job(&client.build(&id).await?)?, options).await;
    }
    if StepId::parse(&id).is_err() {
        let text = format!("`{id}` is not the id of a job, a build, a workflow step or a log stream");
        return Err(CliError::new(Exit::NotFound, text));
    }
    of_step(client, out, &id, options).await
}

pub(super) async fn of_step(client: &Client, out: &Output, id: &str, options: LogOptions) -> Result<u8> {
    let step = client.step(&ids::whole(client, id).await?).await?;
    let job = step
        .runner_job_id
        .parse()
        .map_err(|_| CliError::new(Exit::NotFound, format!("step `{}` has no job, so there is no log", step.name)))?;
    of_job(client, out, &job, options).await
}

pub(super) async fn of_job(client: &Client, out: &Output, job: &JobId, options: LogOptions) -> Result<u8> {
    show(client, out, &client.job(job).await?.log_stream_id, options).await
}

async fn show(client: &Client, out: &Output, stream: &LogStreamId, options: LogOptions) -> Result<u8> {
    let (grep, regex) = if options.regex { (None, options.grep) } else { (options.grep, None) };
    let filter = LogFilter {
        pipe: options.pipe,
        step: options.step,
        level: options.level,
        since: options.since,
        until: options.until,
        grep,
        regex,
    };
    // What was deleted must not look like nothing.
    let note = client.log_stream(stream).await?.note;
    if !note.is_empty() {
        out.warn(&note);
    }
    if options.follow {
        return follow(client, out, stream, &filter).await;
    }
    if let Some(file) = &options.output {
        return save(client, out, stream, &filter, options.raw, file).await;
    }
    if out.json {
        let mut records: Vec<LogRecord> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let (page, next) = client.log_records(stream, &filter, cursor.as_deref()).await?;
            records.extend(page);
            if next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        out.json(&records)?;
        return Ok(0);
    }
    let format = if options.raw { LogFormat::Raw } else { LogFormat::Text };
    let mut chunks = client.log_bytes(stream, format, &filter, false).await?;
    let mut plain = Plain::new(out.stdout_terminal || options.raw);
    while let Some(chunk) = chunks.next().await {
        out.stdout_bytes(&plain.strip(&chunk?))?;
    }
    Ok(0)
}

/// Colours and the like are for terminals.
struct Plain {
    keep: bool,
    state: anstream::adapter::StripBytes,
}

impl Plain {
    fn new(keep: bool) -> Self {
        Self { keep, state: anstream::adapter::StripBytes::new() }
    }

    fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.keep { bytes.to_vec() } else { self.state.strip_next(bytes).collect::<Vec<_>>().concat() }
    }
}

async fn save(
    client: &Client,
    out: &Output,
    stream: &LogStreamId,
    filter: &LogFilter,
    raw: bool,
    path: &Path,
) -> Result<u8> {
    let name = path.to_string_lossy();
    let (name, gzip) = name.strip_suffix(".gz").map_or_else(|| (name.as_ref(), false), |name| (name, true));
    let format = match raw {
        true => LogFormat::Raw,
        false if name.ends_with(".ndjson") => LogFormat::Ndjson,
        false => LogFormat::Text,
    };
    let (mut chunks, mut size) = (client.log_bytes(stream, format, filter, gzip).await?, 0u64);
    // Beside it until it is whole: what is there already is not lost to a log that can't be read.
    let part = std::path::PathBuf::from(format!("{}.part", path.display()));
    let mut file = fs_err::File::create(&part)?;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        size += chunk.len() as u64;
        file.write_all(&chunk)?;
    }
    file.sync_all()?;
    fs_err::rename(&part, path)?;
    out.success(&format!("saved the log to {} ({size} bytes)", path.display()));
    Ok(0)
}

async fn follow(client: &Client, out: &Output, stream: &LogStreamId, filter: &LogFilter) -> Result<u8> {
    let mut tail = client.tail_of(stream, filter, None);
    let (mut printer, mut plain) = (Printer::new(out), Plain::new(out.stdout_terminal));
    while let Some(item) = tail.next().await {
        match item? {
            Tail::Chunk(mut chunk) => {
                if out.json {
                    out.json_line(&chunk)?;
                } else if filter.pipe.is_some() {
                    // What was asked for by name is data.
                    out.stdout_bytes(&plain.strip(chunk.text.as_bytes()))?;
                    if let Some(missing) = chunk.gap_bytes {
                        out.warn(&model::log::describe_gap(missing, Some(&chunk.pipe)));
                    }
                } else {
                    chunk.text = String::from_utf8_lossy(&plain.strip(chunk.text.as_bytes())).into_owned();
                    printer.chunk(&chunk)?;
                }
            }
            Tail::End { .. } => break,
        }
    }
    printer.finish()?;
    Ok(0)
}
