//! Units of work.

use std::time::Duration;

use api::client::{Client, JobFilter};
use api::control::{Job, SettleJob};
use model::{JobState, JobType, StepResult};
use serde_json::{Map, Value};

use crate::args::Jobs;
use crate::commands::{confirm, ids};
use crate::error::Result;
use crate::output::{Cell, Output, cell, dim, id, short, status, strong};
use crate::watch::{Log, Watched, job_exit, watch};

pub(super) async fn run(client: &Client, out: &Output, command: Jobs) -> Result<u8> {
    match command {
        Jobs::List { install, runner, status, job_type, limit } => {
            // Health checks come every few minutes and would hide what people did; `--type health-check` shows them.
            let without = job_type.is_none().then_some(JobType::HealthCheck);
            let filter = JobFilter { install, runner, status, job_type, without };
            let mut found = client.jobs(&filter, limit.fetch()).await?;
            let more = limit.cut(&mut found);
            list(out, &found)?;
            out.more(more);
            Ok(0)
        }
        Jobs::Get { id } => {
            show(out, &client.job(&ids::job(client, &id).await?).await?)?;
            Ok(0)
        }
        Jobs::EraseLog { id, yes } => {
            let id = ids::job(client, &id).await?;
            confirm(
                out,
                yes,
                &format!("deleting the log of job {id}"),
                &format!("delete the log of job {id} permanently?"),
            )?;
            let stream = client.job(&id).await?.log_stream_id;
            let stream = client.delete_log(&stream).await?;
            if out.json {
                out.json(&stream)?;
            } else {
                out.success(&format!("the log of job {id} is deleted"));
            }
            Ok(0)
        }
        Jobs::Cancel { id, wait } => {
            let id = ids::job(client, &id).await?;
            let job = client.cancel_job(&id).await?;
            if wait {
                return wait_for(client, out, job).await;
            }
            if out.json {
                out.json(&job)?;
            } else if job.status.is_terminal() {
                out.success(&format!("job {id} is {}", job.status));
            } else {
                out.success(&format!("cancelling job {id}; it is {} now", job.status));
            }
            Ok(0)
        }
        Jobs::Settle { id, outcome, note } => {
            let id = ids::job(client, &id).await?;
            let job = client.settle_job(&id, &SettleJob { outcome, note }).await?;
            if out.json {
                out.json(&job)?;
            } else {
                out.success(&format!("job {id} is settled as {}", job.status));
            }
            Ok(0)
        }
        Jobs::Wait { id } => {
            let job = client.job(&ids::job(client, &id).await?).await?;
            wait_for(client, out, job).await
        }
    }
}

/// Waits without the log, and ends as the job did.
pub(super) async fn wait_for(client: &Client, out: &Output, job: Job) -> Result<u8> {
    match Box::pin(watch(client, out, job, Log::Ignore)).await? {
        Watched::Left => Ok(130),
        Watched::Ended(job) => {
            if out.json {
                out.json(&job)?;
            } else {
                summary(out, &job)?;
            }
            Ok(job_exit(&job))
        }
    }
}

/// How a job ended, after its log: steps for the person, outputs as data.
pub(super) fn summary(out: &Output, job: &Job) -> Result<()> {
    if !job.steps.is_empty() {
        out.stderr_bytes(b"\n");
        out.side_table(&STEP_HEADERS, job.steps.iter().map(step_row).collect());
    }
    if job.outputs.keys().any(|key| key != "steps") {
        out.heading("Outputs")?;
        out.pairs(output_pairs(&job.outputs))?;
    }
    let took = run_time(job).map(|t| format!(" in {}", short(t))).unwrap_or_default();
    match job.status {
        JobState::Finished => out.success(&format!("job {} finished{took}", job.id)),
        other => {
            let how = match other {
                JobState::Failed => "failed".to_owned(),
                JobState::TimedOut => "timed out".to_owned(),
                JobState::Cancelled => "was cancelled".to_owned(),
                JobState::Unknown => "has an unknown result".to_owned(),
                _ => format!("is {other}"),
            };
            let why = Some(&job.status_description).filter(|d| !d.is_empty());
            let why = why.map(|d| format!(": {d}")).unwrap_or_default();
            out.failure(&format!("job {} {how}{took}{why}", job.id));
            if other == JobState::Unknown {
                out.hint(&format!(
                    "check what it did, then record the outcome with `ferry jobs settle {} --as OUTCOME`",
                    job.id
                ));
            }
        }
    }
    Ok(())
}

fn list(out: &Output, jobs: &[Job]) -> Result<()> {
    let headers = ["ID", "?TYPE", "?NAME", "STATUS", "?CREATED", "?TOOK", "WHY"];
    out.list(jobs, "no jobs", &headers, |job| {
        let why = match job.status {
            JobState::Finished | JobState::Running => "",
            _ => job.waiting_reason.as_deref().unwrap_or(&job.status_description),
        };
        vec![
            id(&job.id).strong(),
            cell(job.job_type),
            cell(job.name.as_deref().unwrap_or("-")),
            status(job.status),
            dim(out.time(job.created_at)),
            cell(run_time(job).map_or_else(|| "-".to_owned(), short)),
            cell(why),
        ]
    })?;
    Ok(())
}

fn show(out: &Output, job: &Job) -> Result<()> {
    if out.json {
        return Ok(out.json(job)?);
    }
    let mut pairs = vec![
        ("id", strong(&job.id)),
        ("name", cell(job.name.as_deref().unwrap_or("-"))),
        ("type", cell(format!("{} (group {})", job.job_type, job.group))),
        ("status", status(job.status)),
    ];
    match &job.waiting_reason {
        Some(reason) => pairs.push(("waits", cell(reason))),
        None if !job.status_description.is_empty() => pairs.push(("why", cell(&job.status_description))),
        None => {}
    }
    if let Some(error) = &job.error {
        pairs.push(("error", cell(format!("{} [{}]", error.message, error.code))));
    }
    if let Some(at) = job.cancel_requested_at {
        pairs.push(("cancel asked", cell(out.moment(at))));
    }
    if let Some(target) = &job.target {
        pairs.push(("target", cell(model::deploy::part_of(target).unwrap_or(target))));
    }
    if let Some(install) = &job.install_id {
        pairs.push(("install", cell(install)));
    }
    pairs.extend([
        ("runner", cell(&job.runner_id)),
        ("priority", cell(job.priority)),
        ("timeout", cell(short(Duration::from_nanos(job.execution_timeout.max(0) as u64)))),
        ("created", cell(out.moment(job.created_at))),
        ("started", cell(out.moment_or_dash(job.started_at))),
        ("finished", cell(out.moment_or_dash(job.finished_at))),
        ("log", cell(&job.log_stream_id)),
    ]);
    out.pairs(pairs)?;
    if !job.steps.is_empty() {
        out.heading("Steps")?;
        out.table(&STEP_HEADERS, job.steps.iter().map(step_row).collect())?;
    }
    if !job.outputs.is_empty() {
        out.heading("Outputs")?;
        out.pairs(output_pairs(&job.outputs))?;
    }
    if !job.executions.is_empty() {
        out.heading("Executions")?;
        let rows = job.executions.iter().map(|e| {
            let ended = out.time_or_dash(e.finished_at);
            vec![
                id(&e.id),
                cell(e.epoch),
                cell(e.generation),
                status(&e.status),
                dim(ended),
                cell(&e.status_description),
            ]
        });
        out.table(&["ID", "EPOCH", "?GENERATION", "STATUS", "?ENDED", "WHY"], rows.collect())?;
    }
    Ok(())
}

const STEP_HEADERS: [&str; 5] = ["STEP", "STATUS", "EXIT", "TOOK", "ERROR"];

fn step_row(step: &StepResult) -> Vec<Cell> {
    let name = serde_json::to_value(step.status).ok();
    let took = step.started_at.zip(step.finished_at).map(|(start, end)| short(end.since(start)));
    vec![
        strong(&step.name),
        status(name.as_ref().and_then(Value::as_str).unwrap_or("-")),
        cell(step.exit_code.map_or_else(|| "-".to_owned(), |c| c.to_string())),
        cell(took.as_deref().unwrap_or("-")),
        cell(step.error.as_deref().unwrap_or_default()),
    ]
}

/// Outputs as keys and values; those of single steps are already among them.
pub(super) fn output_pairs(outputs: &Map<String, Value>) -> Vec<(&str, Cell)> {
    let shown = outputs.iter().filter(|(key, _)| outputs.len() == 1 || *key != "steps");
    shown.map(|(key, value)| (key.as_str(), cell(plain(value)))).collect()
}

/// A value without quotes where it needs none.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn run_time(job: &Job) -> Option<Duration> {
    Some(job.finished_at?.since(job.started_at?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_shown_once() {
        let outputs = json!({ "url": "http://x", "count": 3, "steps": { "a": { "url": "http://x" } } });
        let pairs = output_pairs(outputs.as_object().expect("object"));
        assert_eq!(pairs.iter().map(|p| p.0).collect::<Vec<_>>(), ["count", "url"]);
        assert_eq!(pairs[1].1, cell("http://x"));
    }
}
