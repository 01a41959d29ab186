//! Steps that a deployer carries out on the customer's side: what their jobs are told, and what came of them. What each type of
//! component brings is in `components.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{Changes, ComponentOp, Ended, Judged, Plan, SandboxOp, Step, StepStatus, Work, Workflow};
use model::build::PolicySpec;
use model::deploy::{
    DISPLAY_OPEN_BYTES, Deploy, DeployOperation, NOT_BEGUN, ResourceProgress, ResourceStatus, STALE_PLAN, STATE_LOST,
    STATE_WAITING, SealedValue, job_target,
};
use model::kubernetes::ClusterSpec;
use model::spec::JobSpec;
use model::{ConfigId, Digest, JobId, JobState, JobType, PartStatus, WorkspaceId, constants};
use serde_json::{Map, Value, json};
use store::{Job, StoreError};

use super::components::Settings;
use super::context::{Known, TRIED_INPUTS, WorkflowContext, plan_of, plan_step_of};
use super::deployed::status_of;
use super::images::PULLS;
use super::policies;
use crate::Document;
use crate::apps::sealed::{SEALED, remembered};
use crate::error::{Error, Result, WorkflowError};
use crate::health::OBJECTS;
use crate::jobs::Draft;
use crate::registry::recipes::policy_spec;

/// How a deployer begins to say that an apply takes fields from another manager.
const TAKES_OVER: &str = "it takes over ";
/// Unfinished resources that are named.
const NAMED_MAX: usize = 5;

/// What a job is given.
pub(super) struct Prepared {
    /// Its `deploy` is filled in at the end.
    pub(super) work: model::spec::Work,
    pub(super) cluster: Option<ClusterSpec>,
    pub(super) secrets: Vec<String>,
    pub(super) sealed: Vec<SealedValue>,
    pub(super) timeout_s: u64,
}

/// What keeps a step from beginning.
pub(super) enum NotYet {
    Waits(String),
    Fails(String),
}

impl WorkflowContext<'_> {
    /// What is known of a step of a deployer.
    pub(super) async fn deploy(&mut self, workflow: &Workflow, step: &Step) -> Result<Known> {
        let Some(job) = self.conductor.store.job_of_step(&self.install.org_id, &step.id).await? else {
            let known = self.without_job(workflow, step);
            // It is made when what it needs is there. What was deployed once is there.
            let applied = match self.applied_last(step).await {
                Err(error) if error.is_refusal() => return Ok(Known::Ended(Ended::Failed(error.to_string()))),
                applied => applied?,
            };
            if matches!(known, Known::Nothing)
                && applied.is_none()
                && let Err(not_yet) = self.settings_of(step).await?
            {
                self.jobless.retain(|id| *id != step.id);
                return Ok(self.not_yet(not_yet));
            }
            return Ok(known);
        };
        match (job.state, step.work.is_apply()) {
            (JobState::Finished, false) => self.planned(step, &job).await,
            (JobState::Finished, true) => {
                let told = self.conductor.apply_outputs(&job).await?;
                self.applied_for_real(workflow, step, &told).await?;
                Ok(Known::Ended(Ended::Success))
            }
            (JobState::Unknown, true) if job.released => {
                self.changed_halfway(step, PartStatus::Unknown, Some(&job.id), None).await?;
                Ok(Known::Ended(Ended::Unknown(self.unknown(step, &job).await?)))
            }
            (JobState::Failed, _) if job.error_code.as_deref() == Some(STALE_PLAN) => {
                Ok(Known::Ended(Ended::Stale(job.reason)))
            }
            (JobState::Failed | JobState::TimedOut | JobState::Cancelled, true) if has_begun(&job) => {
                let (status, certain) = halfway(&job);
                let told = self.conductor.outputs(&job).await?;
                let unsettled = Some(&job.id).filter(|_| !certain);
                self.changed_halfway(step, status, unsettled, told.get(OBJECTS)).await?;
                Ok(self.with_job(workflow, job))
            }
            _ => Ok(self.with_job(workflow, job)),
        }
    }

    /// How a step ended whose outcome was unknown: somebody has looked, or the runner has told after all.
    pub(super) async fn settled(&mut self, workflow: &Workflow, step: &Step) -> Result<Option<Ended>> {
        if self.simulated || !step.work.is_apply() {
            return Ok(None);
        }
        let Some(job) = self.conductor.store.job_of_step(&self.install.org_id, &step.id).await? else {
            return Ok(None);
        };
        if !job.state.is_terminal() {
            return Ok(None);
        }
        // Somebody may have gone on meanwhile: then the part is what they made of it.
        let part = self.part(&step.work.target()).await?;
        let untouched = part["unsettled"].as_str() == Some(job.id.as_str());
        if job.state == JobState::Finished && untouched {
            let told = self.conductor.apply_outputs(&job).await?;
            self.applied_for_real(workflow, step, &told).await?;
        } else if untouched {
            let mut part = part;
            part["status"] = json!(PartStatus::Error.as_str());
            self.note_part(step.work.target(), part);
        }
        Ok(match self.with_job(workflow, job) {
            Known::Ended(ended) => Some(ended),
            Known::Nothing | Known::Reason(_) => None,
        })
    }

    /// An apply that people went past while its outcome was unknown, and whose outcome is known by now: its part says so, unless
    /// somebody has worked on it since.
    pub(super) async fn settle_passed_by(&mut self, workflow: &Workflow) -> Result<()> {
        if self.simulated {
            return Ok(());
        }
        let passed = |step: &&Step| matches!(step.status, StepStatus::UserSkipped | StepStatus::Discarded);
        for step in workflow.steps.iter().filter(|step| step.work.is_apply()).filter(passed) {
            let part = self.part(&step.work.target()).await?;
            let Some(unsettled) = part["unsettled"].as_str() else { continue };
            let job = self.conductor.store.job_of_step(&self.install.org_id, &step.id).await?;
            let Some(job) = job.filter(|job| job.id.as_str() == unsettled && job.state.is_terminal()) else {
                continue;
            };
            if job.state != JobState::Finished {
                // What it left behind is not certain: every plan still asks.
                if status_of(&part) == PartStatus::Unknown {
                    let mut part = part;
                    part["status"] = json!(PartStatus::Error.as_str());
                    self.note_part(step.work.target(), part);
                }
                continue;
            }
            let told = self.conductor.apply_outputs(&job).await?;
            self.applied_for_real(workflow, step, &told).await?;
        }
        Ok(())
    }

    async fn planned(&mut self, step: &Step, job: &Job) -> Result<Known> {
        let org = &self.install.org_id;
        let Some((row, packed)) = self.conductor.store.plan_of_job(org, &job.id).await? else {
            return Ok(Known::Ended(Ended::Failed("the job ended and brought no plan".into())));
        };
        let display = zstd::bulk::decompress(&packed, DISPLAY_OPEN_BYTES)
            .map_err(|_| WorkflowError::PlanUnreadable(job.id.clone()))?;
        let display: Value = serde_json::from_slice(&display).unwrap_or_default();
        let spec = self.conductor.store.spec(org, &job.id).await?;
        let spec: JobSpec = serde_json::from_slice(&spec).map_err(|_| WorkflowError::SpecUnreadable(job.id.clone()))?;
        let basis = spec.work.deploy().map(|deploy| deploy.basis.clone()).unwrap_or_default();
        let judged: Judged = serde_json::from_value(row.judged).unwrap_or_default();
        let count = |key: &str| row.changes[key].as_u64().unwrap_or_default();
        let mut changes = Changes {
            create: count("create"),
            update: count("update"),
            replace: count("replace"),
            destroy: count("destroy"),
            outputs: count("outputs"),
            import: count("import"),
            moved: count("moved"),
            forget: count("forget"),
            other: count("deferred") + count("invoke"),
            recorded: 0,
        };
        if changes.is_noop() && !step.look_only && !self.is_noted(step).await? {
            changes.recorded = 1;
        }
        let denied = display["policies"]["verdicts"].as_array().and_then(|said| policies::denied_by(said));
        // Fields that others manage are taken back where that is what was asked for.
        let told = display["ask"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let told = told.filter(|why| !(why.starts_with(TAKES_OVER) && self.is_about_deployed(step)));
        let told: Vec<String> = told.map(str::to_owned).collect();
        let stateful = display["stateful"].as_u64().unwrap_or_default();
        let contents = contents_of(&display);
        self.outbox_display(step, display);
        let why: Vec<String> = self.uncertain(step).await?.into_iter().chain(told).collect();
        let ask = (!why.is_empty()).then(|| why.join("; "));
        self.note_inputs(step, &changes).await?;
        let digest = row.plan.digest().to_string();
        let plan = Plan { digest, changes, basis, policies: judged, ask, stateful, contents };
        Ok(Known::Ended(match denied {
            Some(reason) => Ended::Denied(plan, reason),
            None => Ended::Planned(plan),
        }))
    }

    /// Whether it is noted here that the target is as the step wants it. After an apply of which nobody knows how it ended, or
    /// of a state that was taken over, there may be nothing left to change: then an apply that changes nothing tells what is there.
    async fn is_noted(&self, step: &Step) -> Result<bool> {
        let status = status_of(&self.part(&step.work.target()).await?);
        Ok(match step.work.is_teardown() {
            true => !status.is_there(),
            false => status == PartStatus::Active,
        })
    }

    /// Notes what was applied, and what came out.
    async fn applied_for_real(&mut self, workflow: &Workflow, step: &Step, told: &Map<String, Value>) -> Result<()> {
        let target = step.work.target();
        let part = self.part(&target).await?;
        let generation = part["generation"].as_u64().unwrap_or_default() + 1;
        let plan = plan_of(workflow, step);
        let content = plan.and_then(|plan| plan.basis.split('@').next()).unwrap_or_default().to_owned();
        let mut value = if step.work.is_teardown() {
            json!({ "status": PartStatus::Inactive.as_str(), "generation": generation, "outputs": {} })
        } else {
            let (version, id) = match self.is_about_deployed(step) {
                true => (part["config_version"].clone(), part["config_id"].clone()),
                false => (json!(self.loaded.body.config_version), json!(self.loaded.body.config_id)),
            };
            let mut value = json!({
                "status": PartStatus::Active.as_str(), "generation": generation, "content": content,
                "outputs": told.get("outputs").cloned().unwrap_or_else(|| json!({})),
                "config_version": version, "config_id": id, "inputs_version": self.inputs_version(&part, step).await?,
                "applied_us": self.conductor.now().micros(),
            });
            for known in [SEALED, OBJECTS] {
                if let Some(told) = told.get(known) {
                    value[known] = told.clone();
                }
            }
            value
        };
        // A teardown leaves the Secrets for pulls: the last step of a deprovision takes them away.
        value[PULLS] = self.pulls_of(step, &part, &value).await?;
        self.note_part(target, value);
        Ok(())
    }

    /// An apply that did not end well may have changed anything: what was planned before is not good any more, and there is
    /// something to tear down.
    ///
    /// With `job`, what is there is not certain: until another apply succeeds, every plan of the part asks. `objects` may be there.
    pub(super) async fn changed_halfway(
        &mut self,
        step: &Step,
        status: PartStatus,
        job: Option<&JobId>,
        objects: Option<&Value>,
    ) -> Result<()> {
        let target = step.work.target();
        let mut part = self.part(&target).await?;
        if !part.is_object() {
            part = json!({ "outputs": {} });
        }
        part["generation"] = json!(part["generation"].as_u64().unwrap_or_default() + 1);
        part["status"] = json!(status.as_str());
        part["unsettled"] = json!(job);
        part["content"] = Value::Null;
        if let Some(objects) = objects {
            part[OBJECTS] = objects.clone();
        }
        if !self.is_about_deployed(step) {
            part["config_version"] = json!(self.loaded.body.config_version);
            part["config_id"] = json!(self.loaded.body.config_id);
            part[TRIED_INPUTS] = self.inputs_version(&part, step).await?;
        }
        if !self.simulated {
            part[PULLS] = self.pulls_halfway(step, &part).await?;
        }
        self.note_part(target, part);
        Ok(())
    }

    /// What an apply whose outcome is unknown may have left, and what to do about it.
    async fn unknown(&self, step: &Step, job: &Job) -> Result<String> {
        let (store, org) = (&self.conductor.store, &self.install.org_id);
        let executions = store.executions_of(&job.id).await?;
        let last = executions.into_iter().find(|execution| execution.epoch == job.epoch);
        let progress: Vec<ResourceProgress> =
            last.into_iter().flat_map(|execution| execution.steps).flat_map(|step| step.resources).collect();
        if job.job_type == JobType::JobDeploy {
            return Ok(format!(
                "the outcome of job {} is unknown: its Kubernetes Job may still run. Run `ferry steps retry {}`: the new plan finds the Job, waits for it or takes what it did, and starts no second one",
                job.id, step.id
            ));
        }
        let target = step.work.target();
        let saved = match store.find_workspace(&self.install.id, &target).await? {
            Some(workspace) => store.last_saved(org, &workspace.id, &job.id).await?,
            None => None,
        };
        let known = saved.as_ref().map(|saved| addresses(&saved.resources)).unwrap_or_default();
        let with = |status: ResourceStatus| {
            let of = progress.iter().filter(move |resource| resource.status == status);
            of.map(|resource| resource.address.clone())
        };
        let done: Vec<String> = match step.work.is_teardown() {
            true => with(ResourceStatus::Done).filter(|address| known.contains(address)).collect(),
            false => with(ResourceStatus::Done).filter(|address| !known.contains(address)).collect(),
        };
        let begun: Vec<String> = with(ResourceStatus::Started).collect();
        let mut told = vec![match &saved {
            Some(_) => format!("the outcome of job {} is unknown, and its last saved state may be incomplete", job.id),
            None => format!("the outcome of job {} is unknown, and it saved no state", job.id),
        }];
        if !done.is_empty() {
            told.push(match step.work.is_teardown() {
                true => format!("Destroyed, but still in the saved state: {}", named(done)),
                false => format!("Done, but not in the saved state: {}", named(done)),
            });
        }
        if !begun.is_empty() {
            told.push(format!("Started, result unknown: {}", named(begun)));
        }
        let of = step.work.component().map_or_else(|| "--sandbox".to_owned(), |name| format!("--component {name}"));
        let install = &self.install.name;
        told.push(match step.work.is_teardown() {
            true => "Some resources may be destroyed already. A retry makes a new plan and asks for an approval".to_owned(),
            false => format!(
                "If `ferry states history {install} {of}` lists a quarantined state, restore it. Import or delete resources that exist and are in no state, or a retry creates them again. Then run `ferry jobs settle {}` to record the outcome, or `ferry steps retry {}` to make a new plan",
                job.id, step.id
            ),
        });
        Ok(told.join(". "))
    }

    /// The config that a step is about: what is torn down is torn down as it was deployed.
    pub(super) async fn config_for(&mut self, step: &Step) -> Result<(ConfigId, Arc<Document>)> {
        if self.is_about_deployed(step) {
            let part = self.part(&step.work.target()).await?;
            if let Some(id) = part["config_id"].as_str().and_then(|id| ConfigId::parse(id).ok()) {
                match self.conductor.document(&self.install.org_id, &self.install.app_id, &id).await {
                    Err(Error::Store(StoreError::NotFound(_))) => {}
                    found => return Ok((id, found?)),
                }
            }
        }
        Ok((self.loaded.body.config_id.clone(), self.document().await?))
    }

    /// Names the artifact that a step would deploy: part of what its plan is made of.
    pub(super) async fn artifact_of(&mut self, step: &Step) -> Result<String> {
        let settings = self.settings_of(step).await?.ok();
        Ok(settings.and_then(|settings| settings.artifact()).map(|digest| digest.to_string()).unwrap_or_default())
    }

    /// Makes the job of a step.
    pub(super) async fn start_deploy(&mut self, workflow: &Workflow, step: &Step) -> Result<()> {
        let target = step.work.target();
        let prepared = match self.applied_last(step).await? {
            Some(applied) => self.as_applied(step, applied).await?,
            None => match self.settings_of(step).await? {
                Ok(settings) => self.as_configured(&target, settings).await?,
                Err(NotYet::Fails(reason)) => return Err(WorkflowError::NoModule(reason).into()),
                // Looked at again.
                Err(NotYet::Waits(_)) => return Ok(()),
            },
        };
        let Prepared { mut work, mut cluster, secrets, mut sealed, timeout_s } = prepared;
        if step.work.component().is_some() {
            let (now, more) = self.cluster_of(step).await?;
            // The cluster's way in may have changed since.
            if !matches!((&cluster, &now), (Some(ClusterSpec::Output { .. }), ClusterSpec::Runner {})) {
                cluster = Some(now);
            }
            sealed.extend(more);
        }
        let (basis, _) = self.basis(step).await?;
        let (_, document) = self.config_for(step).await?;
        let conductor = self.conductor;
        let (org, now) = (&self.install.org_id, conductor.now());
        let new = WorkspaceId::new(now, conductor.random_u128());
        let workspace = conductor.store.workspace_for(org, &self.install.id, &target, new, now).await?;
        let operation = self.operation(workflow, step).await?;
        if let Some(deploy) = work.deploy_mut() {
            *deploy = Deploy {
                workspace_id: workspace.id,
                target: target.clone(),
                operation,
                policies: asked(&document, step),
                basis,
            };
        }
        let draft = Draft {
            name: Some(step.title()),
            install: Some((self.install.id.clone(), self.install.app_id.clone())),
            target: Some(job_target(&target)),
            secrets,
            sealed,
            cluster,
            pulls: self.pulls(&document).await?,
            store_secrets: document.config.secrets.iter().map(|secret| secret.name.clone()).collect(),
            role: step.role.clone(),
            step_id: Some(step.id.clone()),
            timeout_s: timeout_s.min(constants::ACTION_TIMEOUT_MAX_S),
            ..Draft::new(work)
        };
        let runner = conductor.store.runner(org, self.install.runner_id.as_str()).await?;
        conductor.submit(draft, &runner, self.loaded.row.created_by.as_str(), None).await.map(drop)
    }

    /// What a job is given, as the last apply of its target had it.
    async fn as_applied(&mut self, step: &Step, applied: JobSpec) -> Result<Prepared> {
        let mut sealed = applied.sealed;
        // What is remembered now holds what was remembered then.
        sealed.retain(|value| !value.placeholder.is_empty());
        sealed.extend(remembered(&self.part(&step.work.target()).await?));
        Ok(Prepared {
            work: applied.work,
            cluster: applied.cluster,
            secrets: applied.secrets,
            sealed,
            timeout_s: applied.timeout_s,
        })
    }

    /// What a job is given, rendered from the config and what is known of the install now.
    async fn as_configured(&mut self, target: &str, settings: Settings) -> Result<Prepared> {
        let tree = self.tree().await?;
        let (rendering, mut sealed) = tree.render(&settings.texts());
        sealed.extend(remembered(&self.part(target).await?));
        if let Some(problem) = rendering.problems.first() {
            let place = problem.path.trim_start_matches('/').replace('/', ".");
            let (target, problem) = (target.to_owned(), tree.masked(&problem.message));
            return Err(WorkflowError::Unrenderable { target, place, problem }.into());
        }
        let timeout_s = settings.timeout_s;
        let work = settings.work(target, rendering.value)?;
        Ok(Prepared { work, cluster: None, secrets: tree.secrets(), sealed, timeout_s })
    }

    /// Plans, or applies exactly the plan that was approved.
    async fn operation(&self, workflow: &Workflow, step: &Step) -> Result<DeployOperation> {
        let destroy = step.work.is_teardown();
        if !step.work.is_apply() {
            return Ok(DeployOperation::Plan { destroy });
        }
        let (store, org) = (&self.conductor.store, &self.install.org_id);
        let plan_job = match plan_step_of(workflow, step) {
            Some(plan) => store.job_of_step(org, &plan.id).await?,
            None => None,
        };
        let plan_job = plan_job.ok_or(StoreError::NotFound("plan of the step"))?;
        let found = store.plan_of_job(org, &plan_job.id).await?;
        let (row, _) = found.ok_or(StoreError::NotFound("plan of the step"))?;
        let approved = plan_of(workflow, step).map(|plan| plan.digest.clone());
        if approved != Some(row.plan.digest().to_string()) {
            return Err(WorkflowError::OtherPlan.into());
        }
        Ok(DeployOperation::Apply { plan: Box::new(row.plan), destroy })
    }
}

/// Whether an apply may have changed anything.
fn has_begun(job: &Job) -> bool {
    job.started_at.is_some() && !job.error_code.as_deref().is_some_and(|code| NOT_BEGUN.contains(&code))
}

/// What an apply that did not succeed leaves, and whether the saved state tells what is there.
fn halfway(job: &Job) -> (PartStatus, bool) {
    match job.error_code.as_deref() {
        Some(STATE_WAITING | STATE_LOST) => (PartStatus::Unknown, false),
        // A person said so; no runner told.
        Some(store::SETTLED) => (PartStatus::Error, false),
        _ => (PartStatus::Error, true),
    }
}

fn asked(document: &Document, step: &Step) -> Vec<PolicySpec> {
    // An apply carries out what was judged.
    let plan = match &step.work {
        Work::ComponentPlan { op: ComponentOp::Deploy, .. } => true,
        Work::SandboxPlan { op } => !matches!(op, SandboxOp::Deprovision),
        _ => false,
    };
    if !plan {
        return Vec::new();
    }
    policies::asked(&document.config, step).into_iter().map(|(policy, _)| policy_spec(policy)).collect()
}

/// The first of some names, and how many more there are.
fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    match more {
        0 => names.join(", "),
        more => format!("{}, and {more} more", names.join(", ")),
    }
}

/// Addresses of the resources that a state knows.
fn addresses(resources: &Value) -> BTreeSet<String> {
    let all = resources.as_array().into_iter().flatten();
    all.filter_map(|resource| resource["address"].as_str().map(str::to_owned)).collect()
}

/// Names what a plan would do, whatever it was made of. Nothing where not all of it is shown: what is left out may differ.
pub(super) fn contents_of(display: &Value) -> String {
    let resources = display["resources"].as_array().into_iter().flatten();
    let attributes = resources.flat_map(|it| it["attributes"].as_array().into_iter().flatten());
    let cut = |value: &Value| value["cut_chars"].as_u64().unwrap_or_default() > 0;
    let mut texts = attributes.filter(|it| cut(&it["before"]) || cut(&it["after"]));
    let omitted = display["omitted"].as_object().is_some_and(|omitted| omitted.values().any(|n| n.as_u64() != Some(0)));
    if omitted || texts.next().is_some() {
        return String::new();
    }
    Digest::of(json!([display["resources"], display["outputs"], display["omitted"]]).to_string().as_bytes()).to_string()
}
