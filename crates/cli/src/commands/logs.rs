//! The log of a job.

use api::client::{Client, LogFormat, Tail};
use api::control::LogRecord;
use futures::StreamExt as _;

use crate::args::Logs;
use crate::error::Result;
use crate::output::Output;
use crate::watch::Printer;

/// Most pages of records that one command reads.
const PAGES_MAX: usize = 100_000;

pub(super) async fn run(client: &Client, out: &Output, args: Logs) -> Result<u8> {
    let stream = client.job(&args.id).await?.log_stream_id;
    let pipe = args.pipe.as_deref();
    if args.follow {
        let mut tail = client.tail(&stream, None);
        let mut printer = Printer::new(out);
        while let Some(item) = tail.next().await {
            match item? {
                Tail::Chunk(chunk) if pipe.is_some_and(|p| p != chunk.pipe) => {}
                Tail::Chunk(chunk) if out.json => out.json_line(&chunk)?,
                // What was asked for by name is data.
                Tail::Chunk(chunk) if pipe.is_some() => out.stdout_bytes(chunk.text.as_bytes())?,
                Tail::Chunk(chunk) => printer.chunk(&chunk)?,
                Tail::End { .. } => break,
            }
        }
        printer.finish()?;
        return Ok(0);
    }
    if out.json {
        let mut records: Vec<LogRecord> = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let (page, next) = client.log_records(&stream, pipe, cursor.as_deref()).await?;
            let done = page.is_empty() || next.is_none() || next == cursor;
            records.extend(page);
            cursor = next;
            if done {
                break;
            }
        }
        out.json(&records)?;
        return Ok(0);
    }
    let format = if args.raw { LogFormat::Raw } else { LogFormat::Text };
    let mut chunks = client.log_bytes(&stream, format, pipe).await?;
    while let Some(chunk) = chunks.next().await {
        out.stdout_bytes(&chunk?)?;
    }
    Ok(0)
}
