//! What happened in an org.

use api::client::Client;
use api::control::Event;
use futures::StreamExt as _;
use serde_json::Value;

use crate::args::Events;
use crate::commands::jobs::plain;
use crate::error::Result;
use crate::output::{Output, cell, clean, dim, id, strong};

pub(super) async fn run(client: &Client, out: &Output, args: Events) -> Result<u8> {
    if args.follow {
        let mut events = client.watch_events(args.after, args.kind);
        while let Some(event) = events.next().await {
            let event = event?;
            if out.json {
                out.json_line(&event)?;
            } else {
                let Event { time, kind, subject_id, actor, data, .. } = &event;
                out.line(clean(&format!("{time}  {kind}  {subject_id}  {actor}  {data}")))?;
            }
        }
        return Ok(0);
    }
    let (events, more) = client.events(args.after.as_deref(), args.kind.as_deref(), args.limit).await?;
    out.list(&events, "no events", &["?ID", "TIME", "KIND", "SUBJECT", "?ACTOR", "?DATA"], |event| {
        vec![
            dim(&event.id),
            dim(out.time(event.time)),
            strong(&event.kind),
            id(&event.subject_id),
            id(&event.actor),
            cell(data(out, &event.data)),
        ]
    })?;
    if more && !out.json {
        let limit = args.limit;
        out.hint(&match (&args.after, events.last()) {
            (Some(_), Some(last)) => format!("there are more: pass `--after {}` to see the next ones", last.id),
            _ => format!("there are older events: pass `--limit {}` to see more", limit * 10),
        });
    }
    Ok(0)
}

/// `from=queued to=available job_id=job…fghijklm`; with `--wide`, the JSON itself.
fn data(out: &Output, data: &Value) -> String {
    let fields = match data {
        Value::Null => return String::new(),
        Value::Object(fields) if !out.wide => fields,
        other => return other.to_string(),
    };
    let said = fields.iter().map(|(key, value)| (key, plain(value)));
    let said = said.filter(|(_, value)| !matches!(value.as_str(), "" | "null" | "[]" | "{}"));
    let mut said: Vec<(&String, String)> = said.collect();
    // Ids last: they are what can be cut.
    said.sort_by_key(|(_, value)| out.id(value) != *value);
    said.iter().map(|(key, value)| format!("{key}={}", out.id(value))).collect::<Vec<_>>().join(" ")
}
