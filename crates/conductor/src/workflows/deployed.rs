//! What was deployed last: the module, its variables and its environment, exactly as the last apply had them. Drift is a difference
//! from that, and what is torn down is just that, whatever was synced or set since.

use crate::error::{Result, WorkflowError};
use engine::{Ended, Plan, Step};
use model::deploy::job_target;
use model::spec::JobSpec;
use model::{JobId, JobState, PartStatus};
use serde_json::{Value, json};

use super::context::WorkflowContext;

pub(super) fn status_of(part: &Value) -> PartStatus {
    PartStatus::parse(part["status"].as_str())
}

impl WorkflowContext<'_> {
    /// Whether a step works with what was deployed, and not with what the workflow's config says.
    pub(super) fn is_about_deployed(&self, step: &Step) -> bool {
        self.loaded.body.request.is_about_deployed(&step.work)
    }

    /// What was applied last, for a step that works with it; None before the first apply.
    pub(super) async fn applied_last(&self, step: &Step) -> Result<Option<JobSpec>> {
        if !self.is_about_deployed(step) {
            return Ok(None);
        }
        let (store, org) = (&self.conductor.store, &self.install.org_id);
        let target = job_target(&step.work.target());
        let Some(job) = store.last_apply(org, &self.install.id, &target).await? else { return Ok(None) };
        let spec: JobSpec = serde_json::from_slice(&store.spec(org, &job).await?)
            .map_err(|_| WorkflowError::SpecUnreadable(job.clone()))?;
        Ok(Some(spec).filter(|spec| spec.work.deploy().is_some()))
    }

    /// Ends the plan of a teardown of what is not there: nothing was ever applied, or it is gone, and no state knows a resource.
    pub(super) async fn nothing_there(&mut self, step: &Step) -> Result<Option<Ended>> {
        if !step.work.is_plan() || !step.work.is_teardown() {
            return Ok(None);
        }
        let target = step.work.target();
        if status_of(&self.part(&target).await?).is_there() {
            return Ok(None);
        }
        let (store, org) = (&self.conductor.store, &self.install.org_id);
        if let Some(workspace) = store.find_workspace(&self.install.id, &target).await?
            && let Some(state) = store.newest_revision(org, &workspace.id).await?
            && state.resource_count > 0
        {
            return Ok(None);
        }
        let (basis, _) = self.basis(step).await?;
        self.outbox_display(step, json!({ "resources": [] }));
        let plan = Plan { digest: basis.clone(), basis, ..Plan::default() };
        Ok(Some(Ended::Planned(plan)))
    }

    /// Why a plan of this part needs a person, whatever was approved beforehand: what is there may not be what the state says.
    pub(super) async fn uncertain(&self, step: &Step) -> Result<Option<String>> {
        let target = step.work.target();
        let part = self.part(&target).await?;
        let mut why = Vec::new();
        match part["unsettled"].as_str().map(JobId::parse) {
            Some(Ok(id)) => {
                let job = self.conductor.store.job(&self.install.org_id, &id).await?;
                why.push(match job.state {
                    JobState::Unknown => format!("the outcome of job {id}, the last apply of {target}, is unknown"),
                    state => {
                        format!("job {id}, the last apply of {target}, is {state} and may have left something behind")
                    }
                });
            }
            _ if status_of(&part) == PartStatus::Unknown => {
                why.push(format!("the outcome of the last apply of {target} is unknown"));
            }
            _ => {}
        }
        if !self.simulated {
            why.extend(self.state_elsewhere(step, &target, &part).await?);
        }
        Ok((!why.is_empty()).then(|| why.join("; ")))
    }

    /// The state is not the one that the last apply wrote: somebody has restored it, or there is a newer one elsewhere.
    async fn state_elsewhere(&self, step: &Step, target: &str, part: &Value) -> Result<Option<String>> {
        let (store, org) = (&self.conductor.store, &self.install.org_id);
        let Some(workspace) = store.find_workspace(&self.install.id, target).await? else { return Ok(None) };
        let runner = store.runner(org, self.install.runner_id.as_str()).await?;
        if runner.report.is_some_and(|report| report.rescues_open.contains(&workspace.id)) {
            return Ok(Some(format!("the runner still holds a state of {target} that it could not deliver")));
        }
        // Whoever applied something since then has approved a plan that was made with it.
        let since = part["applied_us"].as_i64().unwrap_or_default();
        let current = store.current_revision(org, &workspace).await?;
        if let Some(now) = &current
            && now.note == model::deploy::RESTORED
            && now.created_at.micros() > since
        {
            let who = &now.author;
            return Ok(Some(format!(
                "{who} restored an earlier state of {target}: the apply would create again what that state does not know"
            )));
        }
        let Some(kept) = store.newest_quarantined(org, &workspace.id).await? else { return Ok(None) };
        let follows = current.is_none_or(|now| {
            now.lineage == kept.lineage && now.serial < kept.serial && now.created_at < kept.created_at
        });
        if kept.created_at.micros() <= since || !follows {
            return Ok(None);
        }
        let of = step.work.component().map_or_else(|| "--sandbox".to_owned(), |name| format!("--component {name}"));
        Ok(Some(format!(
            "a newer state of {target} is quarantined: deny this plan, restore the state with `ferry states restore {} {of} --revision {}`, and plan again",
            self.install.name, kept.id
        )))
    }
}
