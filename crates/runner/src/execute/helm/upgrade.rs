//! Carries out an approved plan: helm does it, what it leaves behind is taken away, and what happens meanwhile is told.

use std::cell::RefCell;
use std::time::Instant;

use crash::crash_point;
use kubernetes::Entry;
use model::deploy::ResourceStatus;
use model::kubernetes::HelmSpec;

use super::super::Run;
use super::super::action::StepFailure;
use super::super::kubernetes::api::{Api, ApiError, Apply};
use super::super::kubernetes::compare::{Act, PlannedObject, digest};
use super::super::kubernetes::plan;
use super::super::kubernetes::rollout::{self, Progress};
use super::super::stages::Stages;
use super::cli::Helm;
use super::{APPLY, PlanFile, hooks, records, release};

pub(super) struct Work<'w> {
    pub(super) api: &'w Api,
    pub(super) helm: &'w Helm,
    pub(super) job: &'w HelmSpec,
    pub(super) file: &'w PlanFile,
    pub(super) until: Instant,
}

impl Work<'_> {
    pub(super) async fn upgrade(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        entries: &[Entry],
    ) -> Result<(), StepFailure> {
        for stuck in records::stuck(&self.file.records) {
            run.say(Some(APPLY), &format!("taking away revision {}, which was left unfinished", stuck.revision));
            let removed = self.api.delete(&stuck.of, &stuck.uid, "Background").await;
            removed.map_err(|e| e.of("delete", &stuck.of.address()))?;
        }
        let mut progress = Progress::new(stages, APPLY);
        for entry in entries {
            progress.set(run, &entry.of.address(), "apply", ResourceStatus::Started);
        }
        progress.tell(run);
        let stop = run.stop.clone();
        let watched: &Run<'_> = run;
        let seen = RefCell::new(Vec::new());
        let ended = {
            let upgrade = self.helm.upgrade(watched, self.job, &self.file.rendered, APPLY, self.until, stop);
            let watch = release::watch(watched, self.api, entries, &mut progress, APPLY, (&seen, self.until));
            tokio::select! {
                ended = upgrade => ended,
                () = watch => unreachable!("it never ends"),
            }
        };
        crash_point!("executor.helm_ended");
        let outcome = match ended {
            Ok(()) => self.finish(watched, entries, &mut progress).await,
            Err(StepFailure::Failed { error, exit_code }) => {
                let mut why = release::not_ready(self.api, entries).await;
                // After a rollback, what is there now is not what failed.
                if self.job.rollout.rollback {
                    why = seen.take();
                }
                let why = if why.is_empty() { String::new() } else { format!(". {}", why.join("; ")) };
                let message = format!("{}{why}", error.message);
                Err(StepFailure::Failed { error: model::JobError { message, ..error }, exit_code })
            }
            Err(stopped @ StepFailure::Stopped(_)) => Err(stopped),
        };
        progress.tell(run);
        stages.set_resources(APPLY, progress.shown());
        outcome
    }

    /// After helm: what crashes right after its start is found, and what only a failed upgrade knew of is taken away.
    async fn finish(&self, run: &Run<'_>, entries: &[Entry], progress: &mut Progress) -> Result<(), StepFailure> {
        if self.job.rollout.wait {
            // Helm takes a container for ready that crashes right after its start.
            let workloads: Vec<Entry> =
                entries.iter().filter(|entry| rollout::keeps_running(&entry.of)).cloned().collect();
            rollout::wait_ready(run, self.api, &workloads, progress, APPLY, self.until).await?;
        }
        self.hooks_were_approved().await?;
        self.settle_custom(run).await?;
        entries.iter().for_each(|entry| progress.set(run, &entry.of.address(), "apply", ResourceStatus::Done));
        let left = self.left().await?;
        rollout::delete(run, self.api, &left, progress, self.until).await
    }

    /// Hooks pass no gate, and the first install of definitions renders them in another way than its plan could.
    async fn hooks_were_approved(&self) -> Result<(), StepFailure> {
        if self.file.rendered.hooks.is_empty() {
            return Ok(());
        }
        let all = records::of(self.api, self.job).await?;
        let ran = all.last().map(records::Record::hooks).transpose()?.unwrap_or_default();
        match hooks::differing(&self.file.rendered.hooks, &ran)? {
            None => Ok(()),
            Some(template) => Err(StepFailure::new(
                "chart_not_stable",
                format!("Helm has run the hook {template}, which rendered something else than was approved"),
            )),
        }
    }

    /// Helm compares custom objects with what it applied before, and not with what is there: what others have changed would stay.
    async fn settle_custom(&self, run: &Run<'_>) -> Result<(), StepFailure> {
        let updated = self.file.objects.iter().filter(|it| it.act == Act::Apply && !it.found.is_empty());
        for planned in updated.filter(|it| it.of.is_custom()) {
            let address = planned.of.address();
            let read = |e: ApiError| e.of("read", &address);
            let apply = |e: ApiError| e.of("apply", &address);
            let (Some(kind), Some(live)) =
                (self.api.kind(&planned.of).await.map_err(read)?, self.api.get(&planned.of).await.map_err(read)?)
            else {
                continue;
            };
            let how = Apply { dry_run: true, force: true };
            let after = self.api.apply(&planned.of, &kind, &planned.object, how).await.map_err(apply)?;
            if digest(&after, &planned.ignored) != digest(&live, &planned.ignored) {
                run.say(Some(APPLY), &format!("{address} is not as the chart says after the upgrade: applying it"));
                let how = Apply { dry_run: false, ..how };
                self.api.apply(&planned.of, &kind, &planned.object, how).await.map_err(apply)?;
            }
        }
        Ok(())
    }

    pub(super) async fn uninstall(&self, run: &mut Run<'_>, stages: &mut Stages) -> Result<(), StepFailure> {
        if !self.file.records.is_empty() {
            let ended = self.helm.uninstall(run, self.job, APPLY, self.until).await;
            if let Err(StepFailure::Failed { error, exit_code }) = ended {
                let message = match self.still_there().await {
                    told if told.is_empty() => error.message,
                    told => format!("{}. {}", error.message, plan::named(told)),
                };
                return Err(StepFailure::Failed { error: model::JobError { message, ..error }, exit_code });
            }
            ended?;
        }
        let left = self.left().await?;
        let mut progress = Progress::new(stages, APPLY);
        let deleted = rollout::delete(run, self.api, &left, &mut progress, self.until).await;
        stages.set_resources(APPLY, progress.shown());
        deleted
    }

    /// What the plan deletes and is still there.
    async fn left(&self) -> Result<Vec<&PlannedObject>, StepFailure> {
        let mut left = Vec::new();
        for planned in self.file.objects.iter().filter(|it| it.act == Act::Delete) {
            let live = self.api.get(&planned.of).await.map_err(|e| e.of("read", &planned.of.address()))?;
            if live.is_some_and(|live| live["metadata"]["uid"] == planned.uid.as_str()) {
                left.push(planned);
            }
        }
        Ok(left)
    }

    /// What did not go away, and what keeps it.
    async fn still_there(&self) -> Vec<String> {
        let mut told = Vec::new();
        for planned in self.file.objects.iter().filter(|it| it.act == Act::Delete) {
            let Ok(Some(live)) = self.api.get(&planned.of).await else { continue };
            if live["metadata"]["uid"] == planned.uid.as_str() {
                told.push(rollout::still_there(&planned.of, &live));
            }
        }
        told
    }
}
