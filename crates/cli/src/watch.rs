//! Waits for a job: says why it waits, shows its log as it grows, and passes Ctrl-C on.
//!
//! Two sources are read at once, the live tail and the job itself, because either may be late or gone: the tail says that
//! the log is whole, the job says how it ended. A control plane that restarts is waited for.

use std::pin::Pin;
use std::time::{Duration, Instant};

use api::client::{Client, ClientError, Tail};
use api::control::{Job, LogChunk};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use model::{ExecutionId, JobState, StepStatus};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::Result;
use crate::output::Output;
use crate::progress::{Progress, TICK_MS};

/// How often a job is looked at: at once after a change, then less and less.
const LOOK_MS_MIN: u64 = 50;
const LOOK_MS_MAX: u64 = 1_000;
const FIRST_LOOK_MS: u64 = 200;
/// How long the rest of the log is waited for once the job has ended.
const LOG_WAIT: Duration = Duration::from_secs(10);
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);
/// How long a control plane may be away.
const AWAY_MAX: Duration = Duration::from_secs(300);

/// What is done with the log meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    Show,
    /// Only wait until it is whole.
    Await,
    Ignore,
}

#[derive(Debug)]
pub(crate) enum Watched {
    /// It has ended, or nobody can say how.
    Ended(Box<Job>),
    /// The person left.
    Left,
}

type Asked = Pin<Box<dyn Future<Output = std::result::Result<Job, ClientError>> + Send>>;

pub(crate) async fn watch(client: &Client, out: &Output, job: Job, log: Log) -> Result<Watched> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MS));
    let mut tail: Option<BoxStream<'static, _>> = match log {
        Log::Show | Log::Await => Some(client.tail(&job.log_stream_id, None)),
        Log::Ignore => None,
    };
    let mut printer = Printer::new(out);
    let mut progress = Progress::new(out);
    let mut pace_ms = LOOK_MS_MIN;
    // A job that is taken at once needs no word about why it waits.
    let mut look = look_again(client, &job, if log == Log::Ignore { LOOK_MS_MIN } else { FIRST_LOOK_MS });
    let mut cancel: Option<Asked> = None;
    let mut interrupted = false;
    let mut away_since: Option<Instant> = None;
    let mut ended_at: Option<Instant> = None;
    let mut job = job;

    loop {
        tokio::select! {
            item = next(&mut tail) => match item {
                Some(Ok(Tail::Chunk(chunk))) => {
                    if log == Log::Show {
                        progress.clear();
                        printer.chunk(&chunk)?;
                    }
                }
                Some(Ok(Tail::End { .. })) | None => {
                    tail = None;
                    look = look_again(client, &job, 0);
                    pace_ms = LOOK_MS_MIN;
                }
                Some(Err(error)) => {
                    progress.clear();
                    out.warn(&format!("the log can't be followed any more: {error}"));
                    out.hint(&format!("`ferry logs {}` shows it", job.id));
                    tail = None;
                }
            },
            answer = &mut look => {
                match answer {
                    Ok(now) => {
                        if now.status != job.status {
                            pace_ms = LOOK_MS_MIN;
                        }
                        if away_since.take().is_some() {
                            out.note("the control plane is back");
                        }
                        job = now;
                        say_where_it_stands(&job, &mut progress, out, printer.used);
                    }
                    Err(error) if error.is_transient() => {
                        let since = *away_since.get_or_insert_with(|| {
                            progress.clear();
                            out.warn(&format!("{error}; the job goes on, still trying"));
                            Instant::now()
                        });
                        if since.elapsed() > AWAY_MAX {
                            return Err(error.into());
                        }
                    }
                    Err(error) => return Err(error.into()),
                }
                if away_since.is_none() && has_ended(&job) {
                    let since = *ended_at.get_or_insert_with(Instant::now);
                    let patience = if job.status == JobState::Unknown { UNKNOWN_WAIT } else { LOG_WAIT };
                    let late = since.elapsed() > patience;
                    if tail.is_none() || late {
                        if late && job.status != JobState::Unknown {
                            out.warn("the end of the log has not arrived yet");
                            out.hint(&format!("`ferry logs {}` shows it when it has", job.id));
                        }
                        progress.clear();
                        printer.finish()?;
                        return Ok(Watched::Ended(Box::new(job)));
                    }
                } else {
                    ended_at = None;
                }
                look = look_again(client, &job, pace_ms);
                pace_ms = (pace_ms * 2).min(LOOK_MS_MAX);
            }
            answer = asked(&mut cancel) => {
                cancel = None;
                match answer {
                    Ok(now) => job = now,
                    // It ended by itself meanwhile.
                    Err(error) if error.status() == Some(409) => {}
                    Err(error) => out.warn(&format!("can't cancel: {error}")),
                }
                look = look_again(client, &job, 0);
                pace_ms = LOOK_MS_MIN;
            }
            _ = interrupts.recv() => {
                progress.clear();
                if interrupted {
                    out.note(&leaving(&job, cancel.is_some()));
                    return Ok(Watched::Left);
                }
                interrupted = true;
                out.note("cancelling; Ctrl-C again leaves without waiting");
                let (client, id) = (client.clone(), job.id.clone());
                cancel = Some(Box::pin(async move { client.cancel_job(&id).await }));
            }
            _ = ticks.tick() => progress.tick(),
        }
    }
}

/// The exit code of a command that waited for this job.
pub(crate) fn job_exit(job: &Job) -> u8 {
    match job.status {
        JobState::Finished => 0,
        JobState::Failed => {
            let failed = job.steps.iter().find(|s| s.status == StepStatus::Error);
            let code = failed.and_then(|s| s.exit_code).and_then(|c| u8::try_from(c).ok());
            code.filter(|&c| c != 0).unwrap_or(1)
        }
        JobState::TimedOut => 124,
        JobState::Unknown => 125,
        JobState::Cancelled => 130,
        JobState::Queued | JobState::Claimed | JobState::Running | JobState::NotAttempted => 1,
    }
}

/// Prints chunks so that each pipe gets its own bytes, and what Ferry says starts on a line of its own.
#[derive(Debug)]
pub(crate) struct Printer<'a> {
    out: &'a Output,
    mid_line: bool,
    used: bool,
    /// The execution whose death was told last: both of its pipes tell it.
    died: Option<ExecutionId>,
}

impl<'a> Printer<'a> {
    pub(crate) const fn new(out: &'a Output) -> Self {
        Self { out, mid_line: false, used: false, died: None }
    }

    pub(crate) fn chunk(&mut self, chunk: &LogChunk) -> Result<()> {
        self.used = true;
        match chunk.pipe.as_str() {
            "system" => {
                self.finish()?;
                self.out.system_text(&chunk.text);
            }
            "stderr" => self.out.stderr_bytes(chunk.text.as_bytes()),
            _ => self.out.stdout_bytes(chunk.text.as_bytes())?,
        }
        self.mid_line = if chunk.text.is_empty() { self.mid_line } else { !chunk.text.ends_with('\n') };
        match chunk.gap_bytes {
            Some(model::log::UNKNOWN) if self.died.as_ref() == Some(&chunk.execution_id) => {}
            Some(model::log::UNKNOWN) => {
                self.died = Some(chunk.execution_id.clone());
                self.finish()?;
                self.out.warn(&model::log::describe_gap(model::log::UNKNOWN, None));
            }
            Some(missing) => {
                self.finish()?;
                self.out.warn(&model::log::describe_gap(missing, Some(&chunk.pipe)));
            }
            None => {}
        }
        Ok(())
    }

    /// Ends a line that was left open, where a person would see the next one glued to it.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if std::mem::take(&mut self.mid_line) && self.out.stdout_terminal && self.out.stderr_terminal {
            self.out.stderr_bytes(b"\n");
        }
        Ok(())
    }
}

fn look_again(client: &Client, job: &Job, after_ms: u64) -> Asked {
    let (client, id) = (client.clone(), job.id.clone());
    Box::pin(async move {
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        client.job(&id).await
    })
}

async fn next<T>(stream: &mut Option<BoxStream<'static, T>>) -> Option<T> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

async fn asked(cancel: &mut Option<Asked>) -> std::result::Result<Job, ClientError> {
    match cancel {
        Some(cancel) => cancel.await,
        None => std::future::pending().await,
    }
}

fn has_ended(job: &Job) -> bool {
    job.status.is_terminal() || job.status == JobState::Unknown
}

fn say_where_it_stands(job: &Job, progress: &mut Progress<'_>, out: &Output, log_seen: bool) {
    match (&job.waiting_reason, job.status) {
        (Some(reason), JobState::Queued | JobState::Claimed) => progress.set(&format!("waiting: {reason}")),
        (_, JobState::Running) if out.stderr_terminal && !log_seen => progress.set("running"),
        _ => progress.clear(),
    }
}

fn leaving(job: &Job, asking: bool) -> String {
    let id = &job.id;
    if job.cancel_requested_at.is_some() {
        format!("left; the cancellation of job {id} is under way, `ferry jobs get {id}` shows how it ends")
    } else if asking {
        format!("left; job {id} may go on, the cancellation is not confirmed: see `ferry jobs get {id}`")
    } else {
        format!("left; job {id} goes on: `ferry jobs wait {id}` waits for it, `ferry jobs cancel {id}` ends it")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use model::StepResult;
    use serde_json::json;

    use super::*;

    /// A job as the server writes it.
    pub(crate) fn job(status: JobState) -> Job {
        let id = |prefix: &str| format!("{prefix}0123456789abcdefghijklm");
        serde_json::from_value(json!({
            "id": id("job"), "org_id": id("org"), "runner_id": id("run"), "owner_id": id("ins"),
            "owner_type": "installs", "type": "actions-workflow", "group": "actions", "operation": "exec",
            "status": status, "status_description": "", "priority": 0, "log_stream_id": id("log"),
            "execution_count": 1, "max_executions": 1, "execution_timeout": 1, "queue_timeout": 1,
            "created_by_id": id("acc"), "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z",
        }))
        .expect("a job")
    }

    #[test]
    fn a_command_ends_as_its_job_did() {
        let table = [
            (JobState::Finished, 0),
            (JobState::TimedOut, 124),
            (JobState::Unknown, 125),
            (JobState::Cancelled, 130),
            (JobState::NotAttempted, 1),
            (JobState::Failed, 1),
            (JobState::Queued, 1),
        ];
        for (state, code) in table {
            assert_eq!(job_exit(&job(state)), code, "{state}");
        }
        for (exit_code, expected) in [(Some(42), 42), (Some(0), 1), (None, 1), (Some(-9), 1), (Some(300), 1)] {
            let failed = StepResult { status: StepStatus::Error, exit_code, ..StepResult::pending("b") };
            let done = StepResult { status: StepStatus::Finished, exit_code: Some(0), ..StepResult::pending("a") };
            let job = Job { steps: vec![done, failed], ..job(JobState::Failed) };
            assert_eq!(job_exit(&job), expected, "{exit_code:?}");
        }
    }

    #[test]
    fn leaving_says_what_becomes_of_the_job() {
        let mut job = job(JobState::Running);
        assert!(leaving(&job, false).contains("goes on"));
        assert!(leaving(&job, true).contains("not confirmed"));
        job.cancel_requested_at = Some(job.created_at);
        assert!(leaving(&job, false).contains("under way"));
    }
}
