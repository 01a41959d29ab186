//! Workflows of a fleet, from a seed: the real engine, conductor and store, people who approve, deny, retry, skip and cancel, inputs
//! that change, steps that fail, servers that die, writes that break, clocks that jump. After every event what the steps say is compared
//! with what the installs' state says.

use std::collections::BTreeMap;
use std::sync::Arc;

use conductor::{Conductor, NewWorkflow, Timing};
use engine::{Ended, Event, OnError, Response, Step, StepStatus, Workflow, WorkflowKind as K, WorkflowStatus};
use model::{Clock, ConfigId, InputsId, SectionId, WorkflowId};
use serde::Serialize;
use serde_json::json;
use store::{Commit, Config, ConfigStatus, Install, InstallInputs, Section};

use crate::chance::Chance;
use crate::founding::{Founding, ready};

/// Who approves all plans of a workflow when it starts.
const BEFOREHAND: &str = "ann, beforehand";
/// Open workflows of one install; people do not start more.
const OPEN_MAX: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct FleetOptions {
    pub installs: usize,
    pub events: usize,
}

/// What happened in a fleet.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FleetReport {
    pub seed: u64,
    pub events: u64,
    /// Workflows by their end.
    pub workflows: BTreeMap<String, u64>,
    pub steps: u64,
    /// What was done to them.
    pub done: BTreeMap<String, u64>,
    pub checks: u64,
    /// The rule that was broken.
    pub broken: Option<String>,
}

struct Fleet {
    at: Founding,
    conductor: Conductor,
    installs: Vec<Install>,
    /// Of the app.
    versions: Vec<ConfigId>,
    chance: Chance,
    report: FleetReport,
}

/// The app of the fleet: every kind of component, hooks, a runbook.
fn app(terraform: &str) -> config::AppConfig {
    let repo = json!({ "repo": "a/b", "branch": "main", "directory": "." });
    let value = json!({
        "sandbox": { "terraform_version": terraform, "public_repo": repo, "vars": { "size": "{{ .nuon.inputs.inputs.size }}" } },
        "inputs": [{ "name": "size", "default": "1" }, { "name": "host", "default": "one" }],
        "components": [
            { "name": "web", "type": "kubernetes_manifest", "manifest": "{{ .nuon.components.api.outputs.url }}", "namespace": "web" },
            { "name": "api", "type": "helm_chart", "chart_name": "api-chart", "public_repo": repo, "dependencies": ["db", "img"], "values": { "host": "{{ .nuon.inputs.inputs.host }}" } },
            { "name": "db", "type": "terraform_module", "terraform_version": terraform, "public_repo": repo, "max_auto_retries": 1 },
            { "name": "queue", "type": "terraform_module", "terraform_version": terraform, "public_repo": repo },
            { "name": "img", "type": "container_image", "public": { "image_url": "x", "tag": "1" } },
        ],
        "actions": [
            { "name": "check", "triggers": [{ "type": "manual" }, { "type": "post-deploy-component", "component_name": "api" }, { "type": "pre-teardown-component", "component_name": "db" }], "steps": [{ "name": "s", "command": "true" }] },
        ],
        "runbooks": [{ "name": "book", "steps": [
            { "name": "one", "type": "component_deploy", "component_name": "db", "deploy_dependents": true },
            { "name": "two", "type": "action", "action_name": "check" },
        ] }],
    });
    config::AppConfig::from_json(&value).expect("a good app")
}

/// Runs a fleet to its end.
pub fn run_fleet(seed: u64, options: FleetOptions) -> FleetReport {
    let mut fleet = Fleet::new(seed, options);
    for _ in 0..options.events {
        fleet.event();
        if fleet.report.broken.is_some() {
            return fleet.report;
        }
    }
    fleet.finish();
    if fleet.report.broken.is_none() {
        fleet.deprovision();
    }
    fleet.report
}

impl Fleet {
    fn new(seed: u64, options: FleetOptions) -> Self {
        let mut chance = Chance::new(seed);
        let simulation = json!({ "seed": chance.next() >> 12, "step_ms": 2000, "fail_percent": chance.below(20), "unknown_percent": chance.below(10), "drift_percent": 20 });
        let at = Founding::new(Some(simulation), &mut chance).expect("a new store takes everything");
        let report = FleetReport { seed, ..FleetReport::default() };
        let mut fleet =
            Self { conductor: conductor(&at), at, installs: Vec::new(), versions: Vec::new(), chance, report };
        fleet.found(options.installs).expect("a new store takes everything");
        fleet
    }

    fn found(&mut self, installs: usize) -> store::Result<()> {
        self.commit("1.11.3")?;
        for n in 0..installs {
            self.installs.push(self.at.add_install(format!("i{n}"), &mut self.chance)?);
        }
        self.commit("1.11.4")
    }

    fn commit(&mut self, terraform: &str) -> store::Result<()> {
        let (now, config, locals) = (self.at.clock.now(), app(terraform), BTreeMap::new());
        let id = ConfigId::new(now, self.chance.u128());
        let before = self.versions.last().cloned();
        self.versions.push(id.clone());
        let parts = conductor::apps::parts(&config, &locals);
        let sections = parts.into_iter().map(|part| Section {
            id: SectionId::new(now, self.chance.u128()),
            config_id: id.clone(),
            kind: part.kind,
            name: part.name,
            entity_id: None,
            checksum: String::new(),
            body: part.body,
            created_by: self.at.account.clone(),
            created_at: now,
        });
        let commit = Commit {
            digest: conductor::apps::digest(&config, &locals),
            based_on: before,
            read: Default::default(),
            sections: sections.collect(),
            entities: Vec::new(),
            description: String::new(),
            state: None,
            actor: self.at.account.clone(),
            now,
        };
        let draft = Config {
            id,
            org_id: self.at.org.clone(),
            app_id: self.at.app.clone(),
            version: None,
            status: ConfigStatus::Draft,
            description: String::new(),
            digest: None,
            same_as: None,
            readme: String::new(),
            cli_version: String::new(),
            state: String::new(),
            created_by: self.at.account.clone(),
            created_at: now,
            updated_at: now,
        };
        ready(self.at.store.commit_config(draft, commit)).map(|_| ())
    }

    fn did(&mut self, what: &str) {
        *self.report.done.entry(what.to_owned()).or_default() += 1;
    }

    fn workflows(&self, install: &Install) -> Vec<Arc<Workflow>> {
        let rows = ready(self.at.store.workflows(&self.at.org, Some(&install.id), None, 0, 1000)).unwrap_or_default();
        let load =
            |id: &WorkflowId| ready(self.conductor.workflow(&self.at.org, id)).ok().map(|loaded| loaded.workflow);
        rows.iter().filter_map(|row| load(&row.id)).collect()
    }

    fn tell(&mut self, workflow: &WorkflowId, event: Event) -> bool {
        ready(self.conductor.tell_workflow(&self.at.org, workflow, event, "ann")).is_ok()
    }

    fn look(&mut self) {
        // A write that breaks is a look that is made again.
        let _ = ready(self.conductor.reconcile_leases());
        let _ = ready(self.conductor.reconcile_workflows());
    }

    fn event(&mut self) {
        self.report.events += 1;
        let Some(install) = self.chance.pick(&self.installs.clone()).cloned() else { return };
        match self.chance.below(100) {
            0..=9 => self.start(&install),
            10..=49 => {
                self.at.clock.pass(self.chance.spread(10, 4000));
                self.look();
            }
            50..=84 => self.person(&install),
            85..=88 => self.change_inputs(&install),
            89 => self.forget(&install),
            90..=93 => {
                self.did("server died");
                self.conductor = conductor(&self.at);
            }
            94..=97 => {
                self.did("write broke");
                let (good, committed) = (self.chance.below(4) as u32, self.chance.one_in(2));
                self.at.store.break_write(good, committed);
                self.look();
            }
            _ => {
                self.did("clock jumped");
                let off = self.chance.below(2_000_000) as i64 - 1_000_000;
                self.at.clock.set_off(off);
            }
        }
        self.check(&install);
    }

    fn start(&mut self, install: &Install) {
        let open = self.workflows(install).iter().filter(|workflow| !workflow.status().is_over()).count();
        if open >= OPEN_MAX {
            return;
        }
        let component = (*self.chance.pick(&["web", "api", "db", "queue"]).unwrap_or(&"db")).to_owned();
        let kind = match self.chance.below(12) {
            0 | 1 => K::Provision,
            2 => K::Reprovision,
            3 => K::Deprovision,
            4 | 5 => K::DeployComponents { components: Vec::new() },
            6 => K::ManualDeploy { component, dependents: self.chance.one_in(2) },
            7 => {
                let with_dependents = self.chance.one_in(2);
                K::TeardownComponent { component, with_dependents, force: !with_dependents && self.chance.one_in(2) }
            }
            8 => K::InputUpdate { inputs: vec!["host".into()] },
            9 => K::DriftRun { component },
            10 => K::RunbookRun { runbook: "book".into() },
            _ => K::ReprovisionSandbox { skip_components: self.chance.one_in(2) },
        };
        let mut new = NewWorkflow::new(kind);
        new.approve_all = self.chance.one_in(3).then(|| BEFOREHAND.to_owned());
        new.request.deployed = self.chance.one_in(10);
        if self.chance.one_in(8) {
            // The way back to the first version, or forth again.
            new.config_id = self.chance.pick(&self.versions).cloned();
            self.did("chose a version");
        }
        new.request.plan_only = self.chance.one_in(10);
        new.on_error = if self.chance.one_in(4) { OnError::Continue } else { OnError::Abort };
        if ready(self.conductor.start_workflow(install, new, &self.at.account, None)).is_ok() {
            self.did("started");
        }
        self.look();
    }

    /// Someone does something to a step.
    fn person(&mut self, install: &Install) {
        let workflows = self.workflows(install);
        let Some(workflow) = self.chance.pick(&workflows).cloned() else { return };
        let wanted = |step: &&Step| step.status == StepStatus::ApprovalAwaiting || step.status.is_failed();
        let steps: Vec<&Step> = workflow.steps.iter().filter(wanted).collect();
        let roll = self.chance.below(40);
        if roll == 0 {
            self.tell(&workflow.id, Event::Cancel { by: "ann".into() });
            return self.did("cancelled");
        }
        if roll == 1 {
            self.tell(&workflow.id, Event::ApproveAll { by: "ann".into() });
            return self.did("approved all");
        }
        let Some(step) = self.chance.pick(&steps).copied() else { return };
        let id = step.id.clone();
        let event = match (step.status, roll) {
            (StepStatus::ApprovalAwaiting, _) => {
                let response = match roll % 10 {
                    0 => Response::Deny,
                    1 => Response::DenySkip,
                    2 => Response::DenySkipDependents,
                    3 => Response::Retry,
                    _ => Response::Approve,
                };
                let other = roll == 39;
                let digest =
                    if other { Some("of another plan".into()) } else { step.plan.as_ref().map(|p| p.digest.clone()) };
                if other {
                    self.did("approved another plan");
                }
                Event::Answered { step: id, response, digest, by: "ann".into(), note: String::new() }
            }
            (_, 2..=9) => Event::Skip { step: id, by: "ann".into() },
            (StepStatus::Unknown, 10..=24) => {
                self.did("settled");
                let ended = match roll % 2 {
                    0 => Ended::Success,
                    _ => Ended::Failed("it was simulated to vanish; settled as failed".into()),
                };
                Event::Ended { step: id, ended }
            }
            _ => Event::Retry { step: id },
        };
        let refused_for_sure = matches!(&event, Event::Answered { digest: Some(d), .. } if d == "of another plan");
        if self.tell(&workflow.id, event) && refused_for_sure {
            self.report.broken = Some("an approval of another plan was taken".into());
        }
        self.did("answered");
    }

    /// An install that has no open workflow is forgotten, and another one comes; nothing of the first is found there.
    fn forget(&mut self, install: &Install) {
        if self.workflows(install).iter().any(|workflow| !workflow.status().is_over()) || !self.chance.one_in(5) {
            return;
        }
        let now = self.at.clock.now();
        if ready(self.at.store.forget_install(install, None, "ann", now)).is_err() {
            return;
        }
        self.did("forgotten");
        let name = format!("again{}", self.report.events);
        let added = self.at.add_install(name, &mut self.chance);
        self.installs.retain(|known| known.id != install.id);
        self.installs.extend(added.ok());
    }

    /// Everything is taken down again, whatever has happened: deprovision always comes to its end when people go on with it.
    fn deprovision(&mut self) {
        let mut open: Vec<(Install, WorkflowId)> = Vec::new();
        for install in self.installs.clone() {
            let mut new = NewWorkflow::new(K::Deprovision);
            new.approve_all = Some("ann".to_owned());
            if let Ok(id) = ready(self.conductor.start_workflow(&install, new, &self.at.account, None)) {
                open.push((install, id));
            }
        }
        for _ in 0..400 {
            let before = std::mem::take(&mut open);
            for (install, id) in before {
                if self.push_on(&id) {
                    open.push((install, id));
                } else if let Some(part) = self.left(&install) {
                    let text = format!("{part} of {} is still there after its deprovision", install.name);
                    self.report.broken.get_or_insert(text);
                }
            }
            if open.is_empty() {
                return;
            }
            self.at.clock.pass(1500);
            self.look();
        }
        let text = format!("the deprovision of {} has no end", open[0].0.name);
        self.report.broken.get_or_insert(text);
    }

    /// Approves what waits and tries again what has failed; false: the workflow has come to its end.
    fn push_on(&mut self, id: &WorkflowId) -> bool {
        let Ok(loaded) = ready(self.conductor.workflow(&self.at.org, id)) else { return true };
        let workflow = loaded.workflow;
        match workflow.status() {
            WorkflowStatus::Success | WorkflowStatus::FinishedWithSkips | WorkflowStatus::Cancelled => return false,
            WorkflowStatus::ApprovalAwaiting => {
                self.tell(id, Event::ApproveAll { by: "ann".into() });
            }
            WorkflowStatus::Error => {
                let failed = workflow.steps.iter().find(|step| workflow.can_retry(step) && step.status.is_failed());
                if let Some(step) = failed {
                    self.tell(id, Event::Retry { step: step.id.clone() });
                }
            }
            WorkflowStatus::Pending | WorkflowStatus::InProgress => {}
        }
        true
    }

    /// A part of an install that is still there. Images are copied, and nothing tears them down.
    fn left(&self, install: &Install) -> Option<String> {
        let (_, parts) = ready(self.at.store.install_parts(&self.at.org, &install.id, None)).ok()?;
        let counts = |name: &str| name == "sandbox" || name.starts_with("components/") && name != "components/img";
        parts.into_iter().find(|(name, part)| counts(name) && conductor::is_there(part)).map(|(name, _)| name)
    }

    fn change_inputs(&mut self, install: &Install) {
        let before = ready(self.at.store.current_inputs(&self.at.org, &install.id)).ok().flatten();
        let Some(before) = before else { return };
        let name = if self.chance.one_in(3) { "size" } else { "host" };
        let mut values = before.values;
        values.insert(name.into(), self.chance.below(3).to_string());
        let (now, version) = (self.at.clock.now(), before.version + 1);
        let id = InputsId::new(now, self.chance.u128());
        let inputs = InstallInputs { id, version, values, created_at: now, ..before };
        if ready(self.at.store.put_inputs(&self.at.org, inputs)).is_ok() {
            self.did("inputs changed");
        }
    }

    /// The rules, for one install.
    fn check(&mut self, install: &Install) {
        self.report.checks += 1;
        let workflows = self.workflows(install);
        let Ok((_, parts)) = ready(self.at.store.install_parts(&self.at.org, &install.id, None)) else { return };
        let broken = broken(&workflows, &parts);
        if let Some(rule) = broken {
            self.report.broken = Some(format!("{}: {rule}", install.name));
        }
    }

    /// When everyone approves and nothing dies any more, every workflow comes to its end.
    fn finish(&mut self) {
        for _ in 0..400 {
            let mut open = 0;
            for install in self.installs.clone() {
                for workflow in self.workflows(&install) {
                    if !workflow.status().is_over() {
                        open += 1;
                        // The last write that was to break may break this one: whoever was not heard says it again.
                        if workflow.approve_all.is_none() || workflow.status() == WorkflowStatus::ApprovalAwaiting {
                            self.tell(&workflow.id, Event::ApproveAll { by: "ann".into() });
                        }
                    }
                }
            }
            if open == 0 {
                break;
            }
            self.at.clock.pass(1500);
            self.look();
        }
        for install in self.installs.clone() {
            self.check(&install);
            for workflow in self.workflows(&install) {
                let status = workflow.status();
                *self.report.workflows.entry(status.as_str().to_owned()).or_default() += 1;
                self.report.steps += workflow.steps.len() as u64;
                if !status.is_over() && self.report.broken.is_none() {
                    let steps: Vec<String> = workflow
                        .steps
                        .iter()
                        .filter(|s| !s.status.is_done())
                        .map(|s| format!("{} is {}: {}", s.name, s.status.as_str(), s.reason))
                        .collect();
                    let text = format!(
                        "{} of {} has no end:\n{}",
                        workflow.request.kind.name(),
                        install.name,
                        steps.join("\n")
                    );
                    self.report.broken = Some(text);
                }
            }
        }
    }
}

fn conductor(at: &Founding) -> Conductor {
    let clock: Arc<dyn Clock> = at.clock.clone();
    let made = loop {
        // A write that was to break breaks here.
        if let Ok(made) = ready(Conductor::new(at.store.clone(), Arc::clone(&clock), Timing::default())) {
            break made;
        }
    };
    made.drawing(Arc::clone(&at.draw))
}

/// The rule that is broken in an install, if one is.
fn broken(workflows: &[Arc<Workflow>], parts: &BTreeMap<String, serde_json::Value>) -> Option<String> {
    let mut applied: BTreeMap<String, u64> = BTreeMap::new();
    let mut held = Vec::new();
    for workflow in workflows {
        held.extend(workflow.holds());
        for step in &workflow.steps {
            let done = step.status == StepStatus::Success;
            if !step.work.is_apply() {
                continue;
            }
            // An apply that ended badly has changed something, too.
            let halfway = step.reason.contains("it was simulated to") || step.reason == engine::SETTLED;
            *applied.entry(step.work.target()).or_default() += u64::from(done) + u64::from(halfway);
            if done || step.status == StepStatus::InProgress {
                let plan = workflow.steps.iter().find(|other| {
                    other.group == step.group && other.work.is_plan() && other.status == StepStatus::Approved
                });
                let good = plan.and_then(|plan| Some(plan.plan.as_ref()?.digest == plan.answer.as_ref()?.digest));
                if good != Some(true) {
                    return Some(format!("{} went on without an approval of its plan", step.name));
                }
            }
        }
    }
    for (n, (step, lock)) in held.iter().enumerate() {
        if let Some((other, _)) = held[n + 1..].iter().find(|(_, other)| other.conflicts(lock)) {
            return Some(format!("{} and {} are in progress at the same time", step.name, other.name));
        }
    }
    for (target, count) in applied {
        let generation = parts.get(&target).and_then(|part| part["generation"].as_u64()).unwrap_or_default();
        if generation != count {
            return Some(format!("{target} was applied {generation} times, and its steps say {count}"));
        }
    }
    workflows.iter().find_map(|workflow| dishonest(workflow))
}

/// A workflow that says better of itself than its steps, or that went on by itself where nobody knows what is there.
fn dishonest(workflow: &Workflow) -> Option<String> {
    let current: Vec<&Step> = workflow.current().into_iter().map(|at| &workflow.steps[at]).collect();
    let bad = |step: &&&Step| step.status.is_failed() || step.status.is_skipped_failure();
    if workflow.status() == WorkflowStatus::Success
        && let Some(step) = current.iter().find(bad)
    {
        return Some(format!("{} is a success, and {} is {}", workflow.id, step.name, step.status.as_str()));
    }
    let asked = |step: &&Step| step.plan.as_ref().is_some_and(|plan| plan.ask.is_some());
    let by_itself = workflow.steps.iter().filter(asked).find(|step| {
        step.answer.as_ref().is_some_and(|answer| answer.response == "auto-approve" && answer.by == BEFOREHAND)
    });
    by_itself.map(|step| format!("{} was approved by itself, and its target is unknown", step.name))
}
