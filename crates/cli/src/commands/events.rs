//! What happened in an org.

use api::client::Client;
use api::control::Event;
use futures::StreamExt as _;

use crate::args::Events;
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
        let data = if event.data.is_null() { String::new() } else { event.data.to_string() };
        vec![
            dim(&event.id),
            dim(out.time(event.time)),
            strong(&event.kind),
            id(&event.subject_id),
            id(&event.actor),
            cell(data),
        ]
    })?;
    if more && !out.json {
        let limit = args.limit;
        out.hint(&match (&args.after, events.last()) {
            (Some(_), Some(last)) => format!("there are more: `--after {}` shows the next ones", last.id),
            _ => format!("there are older events: `--limit {}` shows more of them", limit * 10),
        });
    }
    Ok(0)
}
