//! Brings an execution's log and result to the control plane: the log in order as it grows, the result when all of it is in.

use std::time::Duration;

use api::ErrorCode;
use bytes::Bytes;
use crash::crash_point;
use model::{ExecutionResult, JobError, Outcome, StepResult};
use tokio::sync::watch;

use super::client::{About, CallError, SessionClient, now};
use crate::directory::ExecutionDir;
use crate::logs::spool::{SpoolError, SpoolReader};

/// How often the spool is looked at while nothing new is there.
const LOOK: Duration = Duration::from_millis(40);
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_LAST: Duration = Duration::from_secs(2);
const ZSTD_LEVEL: i32 = 1;

pub(super) struct Delivery {
    client: SessionClient,
    dir: ExecutionDir,
    id: model::ExecutionId,
    epoch: u64,
    token: String,
    steps: Vec<StepResult>,
}

/// Whether the log can go on.
enum Sent {
    Some,
    Nothing,
    /// The server will not take it; the result still goes.
    Given,
}

impl Delivery {
    pub(super) fn new(client: SessionClient, dir: ExecutionDir) -> anyhow::Result<Self> {
        let assignment = dir.assignment()?;
        Ok(Self {
            client,
            dir,
            id: assignment.execution_id,
            epoch: assignment.epoch,
            token: assignment.execution_token,
            steps: Vec::new(),
        })
    }

    fn about(&self) -> About<'_> {
        About { id: &self.id, token: &self.token }
    }

    /// Runs until the executor has `ended` and everything of it is delivered. Of a `fresh` execution nothing was sent before.
    pub(super) async fn run(mut self, fresh: bool, mut ended: watch::Receiver<bool>) {
        let mut reader = SpoolReader::new(&self.dir.spool(), 0);
        let mut open = fresh || self.find_place(&mut reader).await;
        loop {
            // Asked before looking, so that what the executor wrote last is not missed.
            let over = *ended.borrow();
            let sent = if open { self.send_batch(&mut reader, over).await } else { Sent::Nothing };
            match sent {
                Sent::Some => continue,
                Sent::Given => open = false,
                Sent::Nothing if over => break,
                Sent::Nothing => {}
            }
            self.send_steps().await;
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = ended.changed() => {}
            }
        }
        // No result: the executor died, and the session has told the server.
        if let Ok(Some(result)) = self.dir.result() {
            self.send_result(&result).await;
        }
    }

    /// Asks the server which chunk it wants next: an earlier process may have sent some.
    async fn find_place(&self, reader: &mut SpoolReader) -> bool {
        let mut pause = RETRY_FIRST;
        loop {
            match self.client.append_log(self.about(), Bytes::new()).await {
                Ok(answer) => {
                    reader.seek(answer.next_seq);
                    return true;
                }
                Err(error) if error.is_transient() => retry(&mut pause, &error).await,
                Err(error) => {
                    tracing::warn!(execution = %self.id, %error, "the log is not taken");
                    return false;
                }
            }
        }
    }

    async fn send_batch(&self, reader: &mut SpoolReader, over: bool) -> Sent {
        let batch = match reader.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => return Sent::Nothing,
            Err(SpoolError::Damaged { .. }) if over => return Sent::Nothing,
            Err(error) => {
                tracing::warn!(execution = %self.id, %error, "the spool can't be read");
                return if over { Sent::Given } else { Sent::Nothing };
            }
        };
        let packed = match zstd::bulk::compress(&batch.bytes, ZSTD_LEVEL) {
            Ok(packed) => Bytes::from(packed),
            Err(error) => {
                tracing::warn!(%error, "a batch can't be compressed");
                return Sent::Given;
            }
        };
        let mut pause = RETRY_FIRST;
        loop {
            crash_point!("runner.before_log");
            match self.client.append_log(self.about(), packed.clone()).await {
                Ok(answer) => {
                    crash_point!("runner.log_acked");
                    if answer.next_seq != batch.next_seq {
                        reader.seek(answer.next_seq);
                    }
                    if let Err(error) = reader.ack(answer.next_seq) {
                        tracing::debug!(%error, "sent spool files stay for now");
                    }
                    return Sent::Some;
                }
                Err(error) if error.is_transient() => retry(&mut pause, &error).await,
                Err(error) => {
                    tracing::warn!(execution = %self.id, %error, "the log is not taken");
                    return Sent::Given;
                }
            }
        }
    }

    /// How far the steps are: for show, so a failure is not repeated.
    async fn send_steps(&mut self) {
        let steps = self.dir.steps();
        if steps != self.steps && self.client.progress(self.about(), self.epoch, steps.clone()).await.is_ok() {
            self.steps = steps;
        }
    }

    async fn send_result(&self, result: &ExecutionResult) {
        let mut pause = RETRY_FIRST;
        loop {
            crash_point!("runner.before_result");
            match self.client.result(self.about(), self.epoch, result).await {
                Ok(_) => {
                    crash_point!("runner.result_acked");
                    return;
                }
                Err(error) if error.is_transient() => retry(&mut pause, &error).await,
                Err(error)
                    if matches!(
                        error.code(),
                        Some(ErrorCode::LeaseLost | ErrorCode::SessionFenced | ErrorCode::RunnerRevoked)
                    ) =>
                {
                    tracing::warn!(execution = %self.id, %error, "the result came too late");
                    return;
                }
                Err(error) => {
                    // A result that can't be read must not be repeated for ever; this one can.
                    tracing::error!(execution = %self.id, %error, "the result is not taken");
                    let small = ExecutionResult::without_work(
                        Outcome::Failed,
                        JobError::new("result_refused", format!("the control plane did not take the result: {error}")),
                        now(),
                    );
                    let _ = self.client.result(self.about(), self.epoch, &small).await;
                    return;
                }
            }
        }
    }

    /// Tells the server that the papers were refused; nothing was started.
    pub(super) async fn refuse(client: &SessionClient, about: About<'_>, epoch: u64, error: JobError) {
        let result = ExecutionResult::without_work(Outcome::NotAttempted, error, now());
        let mut pause = RETRY_FIRST;
        loop {
            match client.result(about, epoch, &result).await {
                Err(error) if error.is_transient() => retry(&mut pause, &error).await,
                Ok(_) | Err(_) => return,
            }
        }
    }
}

async fn retry(pause: &mut Duration, error: &CallError) {
    tracing::debug!(%error, "will be sent again");
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(RETRY_LAST);
}
