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
    let mut cancel: Option<Asked> = None;
    let mut interrupted = false;
    let mut watch = Watch::new(client, out, job, log);
    loop {
        tokio::select! {
            item = next(&mut watch.tail) => watch.heard(item)?,
            answer = &mut watch.look => {
                watch.seen(answer)?;
                if watch.is_over() {
                    watch.finish()?;
                    return Ok(Watched::Ended(Box::new(watch.job)));
                }
                watch.look_later();
            }
            answer = asked(&mut cancel) => {
                cancel = None;
                match answer {
                    Ok(now) => watch.job = now,
                    // It ended by itself meanwhile.
                    Err(error) if error.status() == Some(409) => {}
                    Err(error) => out.warn(&format!("can't cancel: {error}")),
                }
                watch.look_now();
            }
            _ = interrupts.recv() => {
                watch.progress.clear();
                if interrupted {
                    out.note(&leaving(&watch.job, cancel.is_some()));
                    return Ok(Watched::Left);
                }
                interrupted = true;
                out.note("cancelling; press Ctrl-C again to exit without waiting");
                let (client, id) = (client.clone(), watch.job.id.clone());
                cancel = Some(Box::pin(async move { client.cancel_job(&id).await }));
            }
            _ = ticks.tick() => watch.progress.tick(),
        }
    }
}

/// What is known while a job is waited for.
struct Watch<'a> {
    client: &'a Client,
    out: &'a Output,
    job: Job,
    log: Log,
    tail: Option<BoxStream<'static, std::result::Result<Tail, ClientError>>>,
    printer: Printer<'a>,
    progress: Progress<'a>,
    look: Asked,
    pace_ms: u64,
    /// Since when the control plane is away.
    away_since: Option<Instant>,
    /// Since when the job has ended.
    ended_at: Option<Instant>,
}

impl<'a> Watch<'a> {
    fn new(client: &'a Client, out: &'a Output, job: Job, log: Log) -> Self {
        // A job that is taken at once needs no word about why it waits.
        let first_look_ms = if log == Log::Ignore { LOOK_MS_MIN } else { FIRST_LOOK_MS };
        Self {
            client,
            out,
            log,
            tail: (log != Log::Ignore).then(|| client.tail(&job.log_stream_id, None)),
            printer: Printer::new(out),
            progress: Progress::new(out),
            look: look_again(client, &job, first_look_ms),
            pace_ms: LOOK_MS_MIN,
            away_since: None,
            ended_at: None,
            job,
        }
    }

    fn look_now(&mut self) {
        self.look = look_again(self.client, &self.job, 0);
        self.pace_ms = LOOK_MS_MIN;
    }

    fn look_later(&mut self) {
        self.look = look_again(self.client, &self.job, self.pace_ms);
        self.pace_ms = (self.pace_ms * 2).min(LOOK_MS_MAX);
    }

    /// Takes what the log says next.
    fn heard(&mut self, item: Option<std::result::Result<Tail, ClientError>>) -> Result<()> {
        match item {
            Some(Ok(Tail::Chunk(chunk))) => {
                if self.log == Log::Show {
                    self.progress.clear();
                    self.printer.chunk(&chunk)?;
                }
            }
            Some(Ok(Tail::End { .. })) | None => {
                self.tail = None;
                self.look_now();
            }
            Some(Err(error)) => {
                self.progress.clear();
                self.out.warn(&format!("can't follow the log any more: {error}"));
                self.out.hint(&format!("run `ferry logs {}` to see it", self.job.id));
                self.tail = None;
            }
        }
        Ok(())
    }

    /// Takes the job as it is now. A control plane that is away is an error only after a while.
    fn seen(&mut self, answer: std::result::Result<Job, ClientError>) -> Result<()> {
        match answer {
            Ok(now) => {
                if now.status != self.job.status {
                    self.pace_ms = LOOK_MS_MIN;
                }
                if self.away_since.take().is_some() {
                    self.out.note("the control plane is back");
                }
                self.job = now;
                say_where_it_stands(&self.job, &mut self.progress, self.out, self.printer.used);
                Ok(())
            }
            Err(error) if error.is_transient() => {
                if self.away_since.is_none() {
                    self.progress.clear();
                    self.out.warn(&format!("{error}; the job continues, retrying"));
                }
                if self.away_since.get_or_insert_with(Instant::now).elapsed() > AWAY_MAX {
                    return Err(error.into());
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the job has ended and its log is whole, or has been waited for long enough.
    fn is_over(&mut self) -> bool {
        if self.away_since.is_some() || !has_ended(&self.job) {
            self.ended_at = None;
            return false;
        }
        let since = *self.ended_at.get_or_insert_with(Instant::now);
        let unknown = self.job.status == JobState::Unknown;
        let late = since.elapsed() > if unknown { UNKNOWN_WAIT } else { LOG_WAIT };
        if late && !unknown {
            self.out.warn("the end of the log has not arrived yet");
            self.out.hint(&format!("run `ferry logs {}` in a while to see all of it", self.job.id));
        }
        late || self.tail.is_none()
    }

    fn finish(&mut self) -> Result<()> {
        self.progress.clear();
        self.printer.finish()
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
        format!("stopped waiting; job {id} is being cancelled. Run `ferry jobs get {id}` to see how it ends")
    } else if asking {
        format!("stopped waiting; the cancellation of job {id} is not confirmed. Run `ferry jobs get {id}` to check")
    } else {
        format!(
            "stopped waiting; job {id} continues. Run `ferry jobs wait {id}` to wait, or `ferry jobs cancel {id}` to cancel it"
        )
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
        assert!(leaving(&job, false).contains("continues"));
        assert!(leaving(&job, true).contains("not confirmed"));
        job.cancel_requested_at = Some(job.created_at);
        assert!(leaving(&job, false).contains("is being cancelled"));
    }
}
