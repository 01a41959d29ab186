//! What is known outside of a workflow: whether a runner is there, how jobs ended, what a plan was made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{InputUse, OverrideUse};
use engine::{Changes, Ended, Event, Judged, Plan, Step, StepStatus, Work, Workflow};
use model::waiting::Presence;
use model::{Digest, JobId, JobState, PartStatus, StepId, Timestamp};
use serde_json::{Value, json};
use store::{Install, Job, Runner, StoreError};

use super::deployed::status_of;
use super::deploys::contents_of;
use super::simulate::Simulation;
use super::{CLAIM_S, Loaded, WAIT_S, policies};
use crate::apps::{InstallTree, effective_inputs};
use crate::error::Result;
use crate::installs::overrides::{Overrides, overrides};
use crate::installs::stack::STACK;
use crate::roles::{self, Operation};
use crate::{Conductor, Document};

/// What templates read beside inputs and outputs of other parts.
const UNVERSIONED: [&str; 6] = ["labels", "variables", "install_stack", "actions", "secrets", "cloud_account"];

#[expect(clippy::large_enum_variant, reason = "one at a time, for a moment")]
pub(super) enum Known {
    Nothing,
    /// It goes on, and this is what people should know.
    Reason(String),
    Ended(Ended),
}

/// What is written together with the next state.
#[derive(Default)]
pub(super) struct Outbox {
    pub(super) parts: BTreeMap<String, Value>,
    pub(super) displays: Vec<(StepId, Value)>,
}

/// What is known of the world while one workflow is advanced: its install, config, inputs and jobs, each loaded once.
pub(super) struct WorkflowContext<'a> {
    pub(super) conductor: &'a Conductor,
    pub(super) install: Install,
    pub(super) simulated: bool,
    simulation: Simulation,
    pub(super) loaded: &'a Loaded,
    runner: Option<Runner>,
    document: Option<Arc<Document>>,
    /// As they were given; what is laid over components is among them.
    inputs: Option<BTreeMap<String, String>>,
    tree: Option<Arc<InstallTree>>,
    /// Steps in progress whose job is not there yet.
    pub(super) jobless: Vec<StepId>,
    /// A step waits for something that wakes nobody.
    pub(super) waits: bool,
    /// Jobs of a cancelled workflow.
    pub(super) interrupts: Vec<JobId>,
    outbox: Outbox,
}

impl<'a> WorkflowContext<'a> {
    pub(super) async fn new(conductor: &'a Conductor, install: Install, loaded: &'a Loaded) -> Result<Self> {
        let org = conductor.store.org(&install.org_id).await?;
        Ok(Self {
            conductor,
            install,
            simulated: org.sandbox_mode,
            simulation: Simulation::of(&org.simulation),
            loaded,
            runner: None,
            document: None,
            inputs: None,
            tree: None,
            jobless: Vec::new(),
            waits: false,
            interrupts: Vec::new(),
            outbox: Outbox::default(),
        })
    }

    pub(super) fn outbox(self: &mut WorkflowContext<'a>) -> Outbox {
        std::mem::take(&mut self.outbox)
    }

    async fn runner(&mut self) -> Result<&Runner> {
        if self.runner.is_none() {
            let id = self.install.runner_id.as_str();
            self.runner = Some(self.conductor.store.runner(&self.install.org_id, id).await?);
        }
        Ok(self.runner.as_ref().ok_or(StoreError::NotFound("runner"))?)
    }

    pub(super) async fn document(&mut self) -> Result<Arc<Document>> {
        if let Some(document) = &self.document {
            return Ok(Arc::clone(document));
        }
        let (org, app) = (&self.install.org_id, &self.install.app_id);
        let document = self.conductor.document(org, app, &self.loaded.body.config_id).await?;
        self.document = Some(Arc::clone(&document));
        Ok(document)
    }

    /// What templates see, as it was when first asked for.
    pub(super) async fn tree(&mut self) -> Result<Arc<InstallTree>> {
        if let Some(tree) = &self.tree {
            return Ok(Arc::clone(tree));
        }
        let document = self.document().await?;
        let tree = Arc::new(self.conductor.install_tree(&self.install, &document.config, None).await?);
        self.tree = Some(Arc::clone(&tree));
        Ok(tree)
    }

    /// A part of the install's state, as it will be after this change.
    pub(super) async fn part(&self, part: &str) -> Result<Value> {
        if let Some(changed) = self.outbox.parts.get(part) {
            return Ok(changed.clone());
        }
        let found = self.conductor.store.install_part(&self.install.org_id, &self.install.id, part).await?;
        Ok(found.unwrap_or_default())
    }

    pub(super) fn note_part(&mut self, part: String, value: Value) {
        self.outbox.parts.insert(part, value);
    }

    pub(super) fn outbox_display(&mut self, step: &Step, display: Value) {
        self.outbox.displays.push((step.id.clone(), display));
    }

    /// What is known about a step that is in progress.
    pub(super) async fn known(&mut self, workflow: &Workflow, step: &Step, now: Timestamp) -> Result<Known> {
        match step.work {
            // The stack of a local install is the command that starts its runner, which anybody can ask for at any time.
            Work::GenerateStack if self.simulated || self.install.platform == "local" => {
                let before = self.part(STACK).await?;
                let stack = self.conductor.new_stack(&before, self.simulated, &self.loaded.body.config_id, now);
                self.outbox.parts.insert(STACK.to_owned(), stack);
                return Ok(Known::Ended(Ended::Success));
            }
            Work::GenerateStack => return Ok(fails(&format!("a stack for {}", self.install.platform))),
            Work::AwaitStack => return self.await_stack().await,
            Work::AwaitRunner => return self.await_runner().await,
            _ => {}
        }
        // What waited for long must not bring an older version back by itself.
        let deploys = step.work.is_plan() && !self.is_about_deployed(step) && !step.look_only;
        let stays_here = self.install.config_id.as_ref() == Some(&self.loaded.body.config_id);
        if deploys && !self.loaded.body.chosen && !stays_here {
            let there = self.part(&step.work.target()).await?["config_version"].as_u64().unwrap_or_default();
            if there > self.loaded.body.config_version {
                let mine = self.loaded.body.config_version;
                let reason =
                    format!("version {there} was deployed meanwhile, and this would bring version {mine} back");
                return Ok(Known::Ended(Ended::Failed(reason)));
            }
        }
        // An apply is for the plan that was approved: what that was made of must be the same still.
        let fresh = step.started_at == Some(now);
        if step.work.is_apply() && fresh {
            let plan = plan_of(workflow, step);
            let (basis, _) = self.basis(step).await?;
            if plan.is_none_or(|plan| plan.basis != basis) {
                let reason = "the config, an input or a state that the plan was made from has changed".to_owned();
                return Ok(Known::Ended(Ended::Stale(reason)));
            }
        }
        if self.simulated {
            return self.simulate(workflow, step, now).await;
        }
        if let Some(ended) = self.nothing_there(step).await? {
            return Ok(Known::Ended(ended));
        }
        match &step.work {
            Work::Action { .. } | Work::Script { .. } => self.job(workflow, step).await,
            Work::SyncSecrets | Work::RemoveSecrets { .. } => self.secrets(workflow, step).await,
            Work::SyncImage { .. } => self.image(workflow, step).await,
            Work::VerifyHealth { component } => self.verify_health(workflow, step, component, now).await,
            Work::SandboxPlan { .. }
            | Work::SandboxApply { .. }
            | Work::ComponentPlan { .. }
            | Work::ComponentApply { .. } => Box::pin(self.deploy(workflow, step)).await,
            _ => {
                let name = step.work.component().unwrap_or_default();
                let document = self.document().await?;
                let kind = document.config.components.iter().find(|component| component.common.name == name);
                Ok(fails(&format!("deploying a {}", kind.map_or("component", |c| c.kind.name()))))
            }
        }
    }

    async fn await_stack(&mut self) -> Result<Known> {
        let mut stack = self.part(STACK).await?;
        let joined = self.simulated || self.runner().await?.generation > 0;
        if !joined && stack["status"] != "active" {
            let name = &self.install.name;
            let reason = format!("waits for the runner to join: run what `ferry runners join-command {name}` prints");
            return Ok(Known::Reason(reason));
        }
        if stack["status"] != "active" {
            stack["status"] = json!("active");
            self.outbox.parts.insert(STACK.to_owned(), stack);
        }
        Ok(Known::Ended(Ended::Success))
    }

    async fn await_runner(&mut self) -> Result<Known> {
        let (conductor, simulated) = (self.conductor, self.simulated);
        let runner = self.runner().await?;
        let online = simulated || matches!(conductor.presence(runner), Presence::Online);
        if let Some(since) = runner.report.as_ref().and_then(|report| report.disabled_since).filter(|_| online) {
            return Ok(Known::Reason(format!("waits for the runner: the customer has disabled it since {since}")));
        }
        let name = &self.install.name;
        let reason = format!(
            "waits for the runner: it is not connected; start it, or bring one up with `ferry runners join-command {name}`"
        );
        Ok(if online { Known::Ended(Ended::Success) } else { Known::Reason(reason) })
    }

    async fn job(&mut self, workflow: &Workflow, step: &Step) -> Result<Known> {
        Ok(match self.conductor.store.job_of_step(&self.install.org_id, &step.id).await? {
            Some(job) => self.with_job(workflow, job),
            None => self.without_job(workflow, step),
        })
    }

    pub(super) fn without_job(&mut self, workflow: &Workflow, step: &Step) -> Known {
        if workflow.cancelled_by.is_some() {
            return Known::Ended(Ended::Cancelled("cancelled before it started".into()));
        }
        self.jobless.push(step.id.clone());
        Known::Nothing
    }

    pub(super) fn with_job(&mut self, workflow: &Workflow, job: Job) -> Known {
        if workflow.cancelled_by.is_some() && job.cancel_at.is_none() && !job.state.is_terminal() {
            self.interrupts.push(job.id.clone());
        }
        match job.state {
            JobState::Finished => Known::Ended(Ended::Success),
            JobState::Failed | JobState::TimedOut | JobState::NotAttempted => {
                let reason = if job.reason.is_empty() { job.state.to_string() } else { job.reason };
                Known::Ended(Ended::Failed(reason))
            }
            JobState::Cancelled => Known::Ended(Ended::Cancelled(job.reason)),
            JobState::Unknown if !job.released => Known::Reason(format!(
                "the runner was not heard of, so the outcome of job {} is unknown. Nothing else starts here until the runner is back or its time is over; `ferry jobs settle {}` records an outcome",
                job.id, job.id
            )),
            JobState::Unknown => Known::Reason(format!(
                "the outcome of job {} is unknown: look at what it did, then record it with `ferry jobs settle {} --as OUTCOME`",
                job.id, job.id
            )),
            JobState::Queued | JobState::Claimed | JobState::Running => Known::Reason(String::new()),
        }
    }

    async fn given(&mut self) -> Result<&BTreeMap<String, String>> {
        if self.inputs.is_none() {
            let given = self.conductor.store.current_inputs(&self.install.org_id, &self.install.id).await?;
            self.inputs = Some(given.map(|given| given.values).unwrap_or_default());
        }
        Ok(self.inputs.get_or_insert_default())
    }

    /// What the install lays over its components.
    pub(super) async fn overrides(&mut self) -> Result<Overrides> {
        Ok(overrides(self.given().await?))
    }

    /// What a plan is made of: what the config says, the inputs it reads, the state of what it needs; and how often its target was
    /// changed before. The first part alone tells whether there is anything to do.
    pub(super) async fn basis(&mut self, step: &Step) -> Result<(String, String)> {
        if self.is_about_deployed(step) {
            let part = self.part(&step.work.target()).await?;
            let content = part["content"].as_str().unwrap_or_default().to_owned();
            return Ok((format!("{content}@{}", part["generation"].as_u64().unwrap_or_default()), content));
        }
        let document = self.document().await?;
        let config = &document.config;
        let inputs = effective_inputs(config, self.given().await?);
        let over = match step.work.component() {
            Some(name) => self.overrides().await?.remove(name),
            None => None,
        };
        let laid: Vec<OverrideUse> =
            over.iter().flat_map(|over| over.texts()).map(|(_, text)| OverrideUse::of(text)).collect();
        let (own, uses, needs, target) = match step.work.component() {
            Some(name) => {
                let own = config.components.iter().find(|component| component.common.name == name);
                let needs = document.needs.get(name).cloned().unwrap_or_default();
                let source = own.and_then(|own| document.local_sources.get(&own.kind.local()?.path()?));
                let own = match &over {
                    Some(over) => json!([own, source, over]),
                    None => json!([own, source]),
                };
                (own, document.uses.components.get(name), needs, format!("components/{name}"))
            }
            None => {
                let own = config.sandbox.as_ref();
                let source = own.and_then(|own| document.local_sources.get(&own.local.as_ref()?.path()?));
                (json!([own, source]), Some(&document.uses.sandbox), Vec::new(), "sandbox".to_owned())
            }
        };
        let uses: Vec<&InputUse> = uses.into_iter().chain(laid.iter().map(|laid| &laid.inputs)).collect();
        let read = inputs.iter().filter(|(name, _)| uses.iter().any(|uses| uses.any || uses.names.contains(*name)));
        let read: BTreeMap<&String, &String> = read.collect();
        let mut state = Vec::new();
        if target != "sandbox" {
            state.push(self.part("sandbox").await?["generation"].clone());
        }
        for need in needs {
            state.push(self.part(&format!("components/{need}")).await?["generation"].clone());
        }
        let generation = self.part(&target).await?["generation"].as_u64().unwrap_or_default();
        // What else templates may read has no version of its own: there, what comes out of them counts.
        let text = own.to_string();
        let more = if UNVERSIONED.iter().any(|name| text.contains(name)) {
            let tree = self.tree().await?;
            Digest::of(crate::render(&own, &tree.root).value.to_string().as_bytes()).to_string()
        } else {
            String::new()
        };
        let more = if self.simulated { more } else { more + &Box::pin(self.artifact_of(step)).await? };
        let content = if more.is_empty() { json!([own, read, state]) } else { json!([own, read, state, more]) };
        let content = Digest::of(content.to_string().as_bytes()).to_string();
        Ok((format!("{content}@{generation}"), content))
    }

    async fn simulate(&mut self, workflow: &Workflow, step: &Step, now: Timestamp) -> Result<Known> {
        if workflow.cancelled_by.is_some() {
            return Ok(Known::Ended(Ended::Cancelled("cancelled".into())));
        }
        let draw = self.simulation.draw(&self.install.name, step);
        // A clock that was set back must not make it last for ever.
        if step.started_at.is_some_and(|at| at <= now && at.plus_ms(draw.lasts_ms) > now) {
            return Ok(Known::Nothing);
        }
        if draw.unknown && step.work.is_apply() {
            self.changed_halfway(step, PartStatus::Unknown, None, None).await?;
            let text = "it was simulated to vanish: its outcome is unknown; a retry plans again, and asks".to_owned();
            return Ok(Known::Ended(Ended::Unknown(text)));
        }
        if draw.fails {
            if step.work.is_apply() {
                self.changed_halfway(step, PartStatus::Error, None, None).await?;
            }
            return Ok(Known::Ended(Ended::Failed("it was simulated to fail".into())));
        }
        Ok(Known::Ended(match &step.work {
            Work::SandboxPlan { .. } | Work::ComponentPlan { .. } => {
                let target = step.work.target();
                let (basis, content) = self.basis(step).await?;
                let part = self.part(&target).await?;
                let deployed = status_of(&part).is_there();
                let teardown = step.work.is_teardown();
                let (changes, mut display) =
                    draw.plan(&target, deployed, teardown, part["content"] == json!(content), step.look_only);
                let (policies, denied) =
                    if teardown { Default::default() } else { self.judge(step, &mut display).await? };
                let digest = Digest::of(json!([basis, display, step.id]).to_string().as_bytes()).to_string();
                let (stateful, contents) = (display["stateful"].as_u64().unwrap_or_default(), contents_of(&display));
                self.outbox.displays.push((step.id.clone(), display));
                let ask = self.uncertain(step).await?;
                self.note_inputs(step, &changes).await?;
                let plan = Plan { digest, changes, basis, policies, ask, stateful, contents };
                match denied {
                    Some(reason) => Ended::Denied(plan, reason),
                    None => Ended::Planned(plan),
                }
            }
            Work::SyncImage { .. } => {
                let mut display = json!({ "simulated": true });
                let (policies, denied) = self.judge(step, &mut display).await?;
                if policies.asked > 0 {
                    self.outbox.displays.push((step.id.clone(), display));
                }
                match denied {
                    Some(reason) => Ended::Failed(reason),
                    None => {
                        self.applied(workflow, step).await?;
                        Ended::Success
                    }
                }
            }
            Work::SandboxApply { .. } | Work::ComponentApply { .. } => {
                self.applied(workflow, step).await?;
                Ended::Success
            }
            _ => Ended::Success,
        }))
    }

    /// In a simulated org there is no job to settle: whoever says that an apply of unknown outcome has succeeded settles its step.
    pub(super) async fn rehearse(&mut self, workflow: &Workflow, event: &Event) -> Result<()> {
        let Event::Ended { step, ended: Ended::Success } = event else { return Ok(()) };
        let step = workflow.steps.iter().find(|known| known.id == *step && known.status == StepStatus::Unknown);
        match step {
            Some(step) if self.simulated => self.applied(workflow, step).await,
            _ => Ok(()),
        }
    }

    /// What policies say about a step; all of it is shown with the plan.
    async fn judge(&mut self, step: &Step, display: &mut Value) -> Result<(Judged, Option<String>)> {
        let document = self.document().await?;
        let asked = policies::asked(&document.config, step);
        if asked.is_empty() {
            return Ok(Default::default());
        }
        let (count, tree) = (asked.len(), self.tree().await?);
        let resources = display["resources"].as_array().cloned().unwrap_or_default();
        let report = policies::judge(asked, &document.config, step, &resources, &tree).await?;
        display["policies"] = json!({ "asked": count, "verdicts": report.verdicts });
        Ok((policies::judged(count, &report), policies::reason(&report)))
    }

    /// The role that a step is carried out with, or why there is none. Only simulated orgs and clouds have roles.
    pub(super) async fn role(&mut self, step: &Step) -> Result<std::result::Result<Option<String>, String>> {
        let document = self.document().await?;
        let config = &document.config;
        let operation = match &step.work {
            Work::SandboxPlan { op } | Work::SandboxApply { op } => Operation::Sandbox(op.name()),
            Work::ComponentPlan { component, op } | Work::ComponentApply { component, op } => {
                Operation::Component(component, op.name())
            }
            Work::SyncImage { component } => Operation::Component(component, "deploy"),
            Work::Action { action, .. } => Operation::Action(action, None),
            Work::Script { runbook, index } => {
                let found = config.runbooks.iter().find(|known| known.name == *runbook);
                let step = found.and_then(|found| found.steps.get(*index));
                let action = step.and_then(|step| step.action_name.as_deref()).unwrap_or_default();
                Operation::Action(action, step.and_then(|step| step.role.as_deref()))
            }
            Work::SyncSecrets => Operation::Secrets,
            _ => return Ok(Ok(None)),
        };
        let Some(chosen) = roles::choose(config, operation, self.loaded.body.role.as_deref()) else {
            return Ok(Ok(None));
        };
        let local = !self.simulated && self.install.platform == "local";
        if local {
            // Nobody has asked for it: scripts of a local install run as the runner does.
            let reason = format!(
                "role `{}`, which {} names, can't be taken: a local install has no roles",
                chosen.role, chosen.by
            );
            return Ok(if chosen.by == roles::DEFAULT { Ok(None) } else { Err(reason) });
        }
        let names: Vec<&str> = roles::declared(config).map(|(role, _)| role.name.as_str()).collect();
        let texts = json!([chosen.role, names]);
        let rendered = if config::is_template(&texts.to_string()) {
            let tree = self.tree().await?;
            let rendering = crate::render(&texts, &tree.root);
            if let Some(problem) = rendering.problems.first() {
                return Ok(Err(format!("role `{}` can't be rendered: {}", chosen.role, tree.masked(&problem.message))));
            }
            rendering.value
        } else {
            texts
        };
        let role = rendered[0].as_str().unwrap_or_default().to_owned();
        let found = roles::declared(config).zip(rendered[1].as_array().into_iter().flatten());
        let enabled = found.into_iter().find(|(_, name)| **name == json!(role)).map(|((_, enabled), _)| enabled);
        let stack = self.part(STACK).await?;
        let told = ["break_glass_role_arns", "custom_role_arns"];
        let switched_on = told.iter().any(|of| stack["outputs"][of].get(&role).is_some());
        Ok(match enabled {
            None => Err(format!("role `{role}`, which {} names, is not a role of the app", chosen.by)),
            Some(false) if !switched_on => Err(format!(
                "role `{role}`, which {} names, is switched off; the customer can switch it on in the stack",
                chosen.by
            )),
            Some(_) => Ok(Some(role)),
        })
    }

    /// Notes in the install's state that something was applied.
    async fn applied(&mut self, workflow: &Workflow, step: &Step) -> Result<()> {
        let target = step.work.target();
        // What was applied is what was planned, whatever has changed meanwhile.
        let content = match plan_of(workflow, step).filter(|_| step.work.is_apply()) {
            Some(plan) => plan.basis.split('@').next().unwrap_or_default().to_owned(),
            None => self.basis(step).await?.1,
        };
        let part = self.part(&target).await?;
        // The same image again is nothing new to those that use it.
        let same = status_of(&part) == PartStatus::Active && part["content"] == json!(content);
        if same && matches!(step.work, Work::SyncImage { .. }) {
            return Ok(());
        }
        let generation = part["generation"].as_u64().unwrap_or_default() + 1;
        let value = if step.work.is_teardown() {
            json!({ "status": PartStatus::Inactive.as_str(), "generation": generation, "outputs": {} })
        } else {
            let document = self.document().await?;
            let outputs = self.simulation.outputs(&document, step.work.component());
            let version = if self.is_about_deployed(step) {
                part["config_version"].clone()
            } else {
                json!(self.loaded.body.config_version)
            };
            json!({
                "status": PartStatus::Active.as_str(), "generation": generation, "content": content, "outputs": outputs,
                "config_version": version, "inputs_version": self.inputs_version(&part, step).await?,
            })
        };
        self.outbox.parts.insert(target, value);
        Ok(())
    }

    /// A plan that changes nothing says that the part is as today's inputs want it.
    pub(super) async fn note_inputs(&mut self, step: &Step, changes: &Changes) -> Result<()> {
        if !changes.is_noop() || step.look_only || self.is_about_deployed(step) {
            return Ok(());
        }
        let target = step.work.target();
        let mut part = self.part(&target).await?;
        let version = self.inputs_version(&part, step).await?;
        let config = json!(self.loaded.body.config_version);
        // Nothing to do is a deploy of this version, too.
        let same = part["inputs_version"] == version && part["config_version"] == config;
        if status_of(&part) == PartStatus::Active && !same {
            part["inputs_version"] = version;
            part["config_version"] = config;
            part["config_id"] = json!(self.loaded.body.config_id);
            self.note_part(target, part);
        }
        Ok(())
    }

    /// The version of the inputs that a part is deployed with. An apply is begun only if those that it reads are as they were planned.
    pub(super) async fn inputs_version(&self, part: &Value, step: &Step) -> Result<Value> {
        if self.is_about_deployed(step) {
            let tried = &part[TRIED_INPUTS];
            return Ok(if tried.is_null() { part["inputs_version"].clone() } else { tried.clone() });
        }
        let now = self.conductor.store.current_inputs(&self.install.org_id, &self.install.id).await?;
        Ok(json!(now.map(|now| now.version)))
    }

    /// When to look again though nothing happens.
    pub(super) fn due(&self, engine: Option<Timestamp>, workflow: &Workflow) -> Option<Timestamp> {
        let now = self.conductor.now();
        let running = workflow.steps.iter().filter(|step| step.status == StepStatus::InProgress);
        let of = |step: &Step| {
            let plays = self.simulated && matches!(step.work, Work::VerifyHealth { .. });
            if step.work.is_wait() && !plays {
                Some(now.plus_s(WAIT_S))
            } else if self.simulated {
                let lasts_ms = self.simulation.draw(&self.install.name, step).lasts_ms;
                step.started_at.map(|at| at.plus_ms(lasts_ms))
            } else {
                let pause_s = if self.waits { Some(1) } else { self.jobless.contains(&step.id).then_some(CLAIM_S) };
                pause_s.map(|pause_s| now.plus_s(pause_s))
            }
        };
        running.filter_map(of).chain(engine).min()
    }
}

/// In a part whose last apply did not succeed: the version of the inputs that it was tried with.
pub(super) const TRIED_INPUTS: &str = "tried_inputs_version";

pub(super) fn unsupported(what: &str) -> String {
    format!("{what} is not supported yet; an org made with `ferry orgs create NAME --simulated` plays it")
}

fn fails(what: &str) -> Known {
    Known::Ended(Ended::Failed(unsupported(what)))
}

/// The plan that an apply carries out.
pub(super) fn plan_of<'w>(workflow: &'w Workflow, apply: &Step) -> Option<&'w Plan> {
    plan_step_of(workflow, apply).and_then(|step| step.plan.as_ref())
}

/// The step that has made it.
pub(super) fn plan_step_of<'w>(workflow: &'w Workflow, apply: &Step) -> Option<&'w Step> {
    let of_group =
        |step: &&Step| step.group == apply.group && step.work.is_plan() && step.status == StepStatus::Approved;
    workflow.steps.iter().rev().find(of_group)
}
