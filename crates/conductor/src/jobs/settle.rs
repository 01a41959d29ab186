//! Recording the outcome of a job whose result never came. A person says it after looking; what a finished apply has put out comes
//! from the state that it saved, and without one it can't be called finished.

use model::deploy::{DISPLAY_OPEN_BYTES, DeployOperation, part_of};
use model::spec::JobSpec;
use model::{JobId, JobState, OrgId, Outcome};
use serde_json::{Map, Value};
use store::{Job, Revision};

use crate::Conductor;
use crate::error::Result;

/// Why a job is not settled as finished.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    #[error("the outcome of a job is `finished`, `failed` or `cancelled`")]
    Outcome,
    #[error("job {job} can't be settled as finished: it saved no state of {target}, so its outputs are not known")]
    NoState { job: JobId, target: String },
    #[error("job {job} can't be settled as finished: its last state of {target} is quarantined as revision {revision}")]
    Quarantined { job: JobId, target: String, revision: String },
    #[error(
        "job {job} can't be settled as finished: the runner still holds a state of {target} that it could not upload"
    )]
    OnRunner { job: JobId, target: String },
    #[error("job {job} can't be settled as finished: the state of {target} that it saved still has {count} resources")]
    StillThere { job: JobId, target: String, count: u64 },
    #[error("job {job} can't be settled as finished: the state of {target} that it saved has no output {}", missing.join(", "))]
    MissingOutputs { job: JobId, target: String, missing: Vec<String> },
    #[error(
        "job {job} can't be settled as finished: in the state of {target} that it saved, {} did not finish",
        resources.join(", ")
    )]
    Unfinished { job: JobId, target: String, resources: Vec<String> },
}

impl SettleError {
    /// What to do instead.
    pub fn hint(&self) -> Option<String> {
        let again = "settle the job as failed, then retry its step: it makes a new plan and asks for an approval";
        match self {
            Self::NoState { .. } => Some(format!(
                "check what exists in the customer's account. Import or delete what the job created, or a retry creates it again (docs/errors/state_lost.md). Then {again}"
            )),
            Self::MissingOutputs { .. } | Self::StillThere { .. } | Self::Unfinished { .. } => Some(again.to_owned()),
            Self::Quarantined { target, revision, .. } => {
                let of = target
                    .strip_prefix("components/")
                    .map_or_else(|| "--sandbox".to_owned(), |n| format!("--component {n}"));
                Some(format!("restore it with `ferry states restore INSTALL {of} --revision {revision}`, then {again}"))
            }
            Self::OnRunner { .. } => Some("wait until the runner has uploaded it, then try again".to_owned()),
            Self::Outcome => None,
        }
    }
}

impl Conductor {
    /// Records how an unknown job ended, as someone saw by looking.
    pub async fn settle_job(
        &self,
        org: &OrgId,
        id: &JobId,
        outcome: Outcome,
        note: &str,
        (actor, who): (&str, &str),
    ) -> Result<Job> {
        if !matches!(outcome, Outcome::Finished | Outcome::Failed | Outcome::Cancelled) {
            return Err(SettleError::Outcome.into());
        }
        let job = self.store.job(org, id).await?;
        if outcome == Outcome::Finished && job.state == JobState::Unknown {
            self.check_saved(&job).await?;
        }
        let reason = match note {
            "" => format!("settled as {} by {who}", JobState::from(outcome)),
            note => format!("settled as {} by {who}: {note}", JobState::from(outcome)),
        };
        Ok(self.store.settle(org, id, outcome, &reason, actor, self.now()).await?)
    }

    /// What a finished apply has put out: as its result tells, or, where somebody settled it, as the state tells that it saved.
    pub(crate) async fn apply_outputs(&self, job: &Job) -> Result<Map<String, Value>> {
        let told = self.outputs(job).await?;
        if !told.is_empty() || job.error_code.as_deref() != Some(store::SETTLED) {
            return Ok(told);
        }
        let Some((_, Some(saved))) = self.saved_by(job).await? else { return Ok(told) };
        match self.store.revision_outputs(&job.org_id, &saved.id).await? {
            Some(Value::Object(outputs)) => Ok(outputs),
            _ => Ok(told),
        }
    }

    /// The part that an apply works on, and the last state of it that the apply saved.
    async fn saved_by(&self, job: &Job) -> Result<Option<(String, Option<Revision>)>> {
        let target = job.target.as_deref().and_then(part_of);
        let (Some(target), Some(install)) = (target, &job.install_id) else { return Ok(None) };
        let Some(workspace) = self.store.find_workspace(install, target).await? else {
            return Ok(Some((target.to_owned(), None)));
        };
        Ok(Some((target.to_owned(), self.store.last_saved(&job.org_id, &workspace.id, &job.id).await?)))
    }

    async fn check_saved(&self, job: &Job) -> Result<()> {
        let spec: Option<JobSpec> = serde_json::from_slice(&self.store.spec(&job.org_id, &job.id).await?).ok();
        let Some(work) = spec.as_ref().and_then(|spec| spec.work.deploy()) else { return Ok(()) };
        let DeployOperation::Apply { plan, destroy } = &work.operation else { return Ok(()) };
        let (id, target) = (job.id.clone(), work.target.clone());
        let runner = self.store.runner(&job.org_id, job.runner_id.as_str()).await?;
        if runner.report.is_some_and(|report| report.rescues_open.contains(&work.workspace_id)) {
            return Err(SettleError::OnRunner { job: id, target }.into());
        }
        let Some((_, Some(saved))) = self.saved_by(job).await? else {
            return Err(SettleError::NoState { job: id, target }.into());
        };
        if saved.quarantined {
            return Err(SettleError::Quarantined { job: id, target, revision: saved.id.to_string() }.into());
        }
        if *destroy {
            let count = saved.resource_count;
            return if count == 0 { Ok(()) } else { Err(SettleError::StillThere { job: id, target, count }.into()) };
        }
        let resources = unfinished(&saved.resources);
        if !resources.is_empty() {
            return Err(SettleError::Unfinished { job: id, target, resources }.into());
        }
        let outputs = self.store.revision_outputs(&job.org_id, &saved.id).await?;
        let outputs = outputs.ok_or_else(|| SettleError::NoState { job: id.clone(), target: target.clone() })?;
        let missing =
            self.planned_outputs(&job.org_id, &plan.job_id).await?.into_iter().filter(|name| {
                outputs["outputs"].get(name).is_none() && outputs["sealed"]["shapes"].get(name).is_none()
            });
        let missing: Vec<String> = missing.collect();
        if missing.is_empty() { Ok(()) } else { Err(SettleError::MissingOutputs { job: id, target, missing }.into()) }
    }

    /// The outputs that a plan said there would be anew, or with another value.
    async fn planned_outputs(&self, org: &OrgId, plan_job: &JobId) -> Result<Vec<String>> {
        let Some((_, packed)) = self.store.plan_of_job(org, plan_job).await? else { return Ok(Vec::new()) };
        let display = zstd::bulk::decompress(&packed, DISPLAY_OPEN_BYTES).unwrap_or_default();
        let display: Value = serde_json::from_slice(&display).unwrap_or_default();
        let changed = display["outputs"].as_array().into_iter().flatten();
        let stays = changed.filter(|output| !matches!(output["action"].as_str(), Some("delete" | "destroy")));
        Ok(stays.filter_map(|output| output["name"].as_str().map(str::to_owned)).collect())
    }
}

/// Resources of a state that Terraform has begun and not ended with: the next apply replaces or destroys them.
fn unfinished(resources: &Value) -> Vec<String> {
    let all = resources.as_array().into_iter().flatten();
    let bad = all.filter(|resource| matches!(resource["status"].as_str(), Some("tainted" | "deposed")));
    bad.filter_map(|resource| resource["address"].as_str().map(str::to_owned)).collect()
}
