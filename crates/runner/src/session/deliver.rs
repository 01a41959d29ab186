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
use crate::patience::Patience;

/// How often the spool is looked at while nothing new is there.
const LOOK: Duration = Duration::from_millis(40);
/// What was printed and what came out is sent until it is taken, or refused for good.
const UNTIL_TAKEN: Patience = Patience::endless(Duration::from_millis(200), Duration::from_secs(2));
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
        let asked = UNTIL_TAKEN.keep(|| self.client.append_log(self.about(), Bytes::new()), note).await;
        match asked {
            Ok(answer) => {
                reader.seek(answer.next_seq);
                true
            }
            Err(error) => {
                tracing::warn!(execution = %self.id, %error, "the log is not taken");
                false
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
        let send = || async {
            crash_point!("runner.before_log");
            self.client.append_log(self.about(), packed.clone()).await
        };
        match UNTIL_TAKEN.keep(send, note).await {
            Ok(answer) => {
                crash_point!("runner.log_acked");
                if answer.next_seq != batch.next_seq {
                    reader.seek(answer.next_seq);
                }
                if let Err(error) = reader.ack(answer.next_seq) {
                    tracing::debug!(%error, "sent spool files stay for now");
                }
                Sent::Some
            }
            Err(error) => {
                tracing::warn!(execution = %self.id, %error, "the log is not taken");
                Sent::Given
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
        let send = || async {
            crash_point!("runner.before_result");
            self.client.result(self.about(), self.epoch, result).await
        };
        let Err(error) = UNTIL_TAKEN.keep(send, note).await else {
            crash_point!("runner.result_acked");
            return;
        };
        let too_late = [ErrorCode::LeaseLost, ErrorCode::SessionFenced, ErrorCode::RunnerRevoked];
        if error.code().is_some_and(|code| too_late.contains(&code)) {
            tracing::warn!(execution = %self.id, %error, "the result came too late");
            return;
        }
        // A result that can't be read must not be repeated for ever; this one can.
        tracing::error!(execution = %self.id, %error, "the result is not taken");
        let small = ExecutionResult::without_work(
            Outcome::Failed,
            JobError::new("result_refused", format!("the control plane did not take the result: {error}")),
            now(),
        );
        let _ = self.client.result(self.about(), self.epoch, &small).await;
    }

    /// Tells the server that the papers were refused; nothing was started.
    pub(super) async fn refuse(client: &SessionClient, about: About<'_>, epoch: u64, error: JobError) {
        let result = ExecutionResult::without_work(Outcome::NotAttempted, error, now());
        let _ = UNTIL_TAKEN.keep(|| client.result(about, epoch, &result), note).await;
    }
}

fn note(error: &CallError) {
    tracing::debug!(%error, "will be sent again");
}
