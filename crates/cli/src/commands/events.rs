//! What happened in an org.

use api::client::Client;
use api::control::Event;
use futures::StreamExt as _;

use crate::args::Events;
use crate::error::Result;
use crate::output::{Output, cell, clean, dim, strong};

pub(super) async fn run(client: &Client, out: &Output, args: Events) -> Result<u8> {
    let kind = args.kind.as_deref();
    if args.follow {
        let mut events = client.watch_events(args.after);
        while let Some(event) = events.next().await {
            let event = event?;
            if !wanted(&event.kind, kind) {
                continue;
            }
            if out.json {
                out.json_line(&event)?;
            } else {
                let Event { time, kind, subject_id, actor, data, .. } = &event;
                out.line(clean(&format!("{time}  {kind}  {subject_id}  {actor}  {data}")))?;
            }
        }
        return Ok(0);
    }
    let mut events = client.events(args.after.as_deref(), args.limit).await?;
    events.retain(|event| wanted(&event.kind, kind));
    out.list(&events, "no events", &["?ID", "TIME", "KIND", "SUBJECT", "?ACTOR", "?DATA"], |event| {
        let data = if event.data.is_null() { String::new() } else { event.data.to_string() };
        vec![
            dim(&event.id),
            dim(out.time(event.time)),
            strong(&event.kind),
            cell(&event.subject_id),
            cell(&event.actor),
            cell(data),
        ]
    })?;
    Ok(0)
}

/// A kind itself, or one of its family.
fn wanted(kind: &str, filter: Option<&str>) -> bool {
    let Some(filter) = filter else { return true };
    let family = filter.trim_end_matches('*').trim_end_matches('.');
    kind.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_filter_takes_a_kind_or_a_family() {
        let table = [
            ("job.state", None, true),
            ("job.state", Some("job.state"), true),
            ("job.state", Some("job"), true),
            ("job.state", Some("job.*"), true),
            ("jobs.state", Some("job"), false),
            ("runner.joined", Some("job"), false),
        ];
        for (kind, filter, expected) in table {
            assert_eq!(super::wanted(kind, filter), expected, "{kind} {filter:?}");
        }
    }
}
