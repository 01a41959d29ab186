//! Workflows of a fleet, from a seed: the real engine, conductor and store, people who approve, deny, retry, skip and cancel, inputs
//! that change, steps that fail, servers that die, writes that break, clocks that jump. After every event what the steps say is compared
//! with what the installs' state says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conductor::{Conductor, Draw, NewWorkflow, Timing};
use engine::{Event, OnError, Response, Step, StepStatus, Workflow, WorkflowKind as K};
use model::runner::RunnerKind;
use model::{
    AccountId, AppId, Clock, ConfigId, InputsId, InstallId, OrgId, Role, RunnerId, SectionId, Timestamp, TokenId,
    WorkflowId,
};
use serde::Serialize;
use serde_json::json;
use store::{
    App, Commit, Config, ConfigStatus, Install, InstallInputs, MasterKeys, NewRunner, NewToken, Org, S3Options,
    Section, Store, StoreConfig,
};

use crate::chance::Chance;
use crate::server::ready;

const START_US: i64 = 1_800_000_000_000_000;
const MASTER: &str = "m1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
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

struct FleetClock {
    passed_ms: AtomicI64,
    off_ms: AtomicI64,
}

impl Clock for FleetClock {
    fn now(&self) -> Timestamp {
        let ms = self.passed_ms.load(Ordering::Relaxed) + self.off_ms.load(Ordering::Relaxed);
        Timestamp::from_micros(START_US).plus_ms(ms)
    }

    fn steady(&self) -> Duration {
        Duration::from_millis(self.passed_ms.load(Ordering::Relaxed) as u64)
    }
}

struct Fleet {
    store: Store,
    clock: Arc<FleetClock>,
    draw: Arc<Draw>,
    conductor: Conductor,
    account: AccountId,
    org: OrgId,
    installs: Vec<Install>,
    chance: Chance,
    report: FleetReport,
}

/// The app of the fleet: every kind of component, hooks, a runbook.
fn app() -> config::AppConfig {
    let repo = json!({ "repo": "a/b", "branch": "main", "directory": "." });
    let value = json!({
        "sandbox": { "terraform_version": "1.11.3", "public_repo": repo, "vars": { "size": "{{ .nuon.inputs.inputs.size }}" } },
        "inputs": [{ "name": "size", "default": "1" }, { "name": "host", "default": "one" }],
        "components": [
            { "name": "web", "type": "kubernetes_manifest", "manifest": "{{ .nuon.components.api.outputs.url }}", "namespace": "web" },
            { "name": "api", "type": "helm_chart", "chart_name": "api-chart", "public_repo": repo, "dependencies": ["db", "img"], "values": { "host": "{{ .nuon.inputs.inputs.host }}" } },
            { "name": "db", "type": "terraform_module", "terraform_version": "1.11.3", "public_repo": repo, "max_auto_retries": 1 },
            { "name": "queue", "type": "terraform_module", "terraform_version": "1.11.3", "public_repo": repo },
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
    fleet.report
}

impl Fleet {
    fn new(seed: u64, options: FleetOptions) -> Self {
        let mut chance = Chance::new(seed);
        let clock = Arc::new(FleetClock { passed_ms: AtomicI64::new(0), off_ms: AtomicI64::new(0) });
        let config = StoreConfig {
            database_url: "memory:".into(),
            blobs_url: "memory:".into(),
            pg_connections: 0,
            s3: S3Options::default(),
        };
        let masters = MasterKeys::parse(MASTER).expect("a good key");
        let store = ready(Store::open(&config, masters, clock.now())).expect("a store in memory");
        let dice = Mutex::new(Chance::new(chance.next()));
        let draw: Arc<Draw> =
            Arc::new(move |bytes: &mut [u8]| dice.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes));
        let (account, org) = (AccountId::new(clock.now(), chance.u128()), OrgId::new(clock.now(), chance.u128()));
        let conductor = conductor(&store, &clock, &draw);
        let report = FleetReport { seed, ..FleetReport::default() };
        let mut fleet = Self { store, clock, draw, conductor, account, org, installs: Vec::new(), chance, report };
        fleet.found(options.installs).expect("a new store takes everything");
        fleet
    }

    fn found(&mut self, installs: usize) -> store::Result<()> {
        let (now, store, chance) = (self.clock.now(), &self.store, &mut self.chance);
        let token = NewToken {
            id: TokenId::new(now, chance.u128()),
            account_id: self.account.clone(),
            org_id: None,
            role: Role::Admin,
            name: "first".into(),
            token: "fry_simulated".into(),
            expires_at: None,
        };
        ready(store.bootstrap(self.account.clone(), "someone@example.com", token, now))?;
        let build = RunnerId::new(now, chance.u128());
        let simulation = json!({ "seed": chance.next() >> 12, "step_ms": 2000, "fail_percent": chance.below(20), "drift_percent": 20 });
        let org = Org {
            id: self.org.clone(),
            name: "acme".into(),
            sandbox_mode: true,
            simulation,
            build_runner_id: build.clone(),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        let (name, kind, org_id) = ("build".to_owned(), RunnerKind::Build, self.org.clone());
        ready(store.create_org(org, NewRunner { id: build, org_id, name, kind, install_id: None }, None))?;
        let app_id = AppId::new(now, chance.u128());
        let new = App {
            id: app_id.clone(),
            org_id: self.org.clone(),
            name: "web".into(),
            display_name: "web".into(),
            description: String::new(),
            settings: json!({}),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        ready(store.create_app(new, None))?;
        self.commit(&app_id)?;
        for n in 0..installs {
            let (id, runner) = (InstallId::new(now, self.chance.u128()), RunnerId::new(now, self.chance.u128()));
            let name = format!("i{n}");
            let install = Install {
                id: id.clone(),
                org_id: self.org.clone(),
                app_id: app_id.clone(),
                name: name.clone(),
                platform: "local".into(),
                cloud: json!({}),
                runner_id: runner.clone(),
                config_id: None,
                settings: json!({}),
                created_by: self.account.clone(),
                created_at: now,
                updated_at: now,
            };
            let (org_id, kind) = (self.org.clone(), RunnerKind::Install);
            let new = NewRunner { id: runner, org_id, name, kind, install_id: Some(id) };
            let inputs = InstallInputs::first(InputsId::new(now, self.chance.u128()), &install, BTreeMap::new());
            ready(self.store.create_install(install.clone(), new, inputs, None))?;
            self.installs.push(install);
        }
        Ok(())
    }

    fn commit(&mut self, app_id: &AppId) -> store::Result<()> {
        let (now, config, locals) = (self.clock.now(), app(), BTreeMap::new());
        let id = ConfigId::new(now, self.chance.u128());
        let parts = conductor::app::parts(&config, &locals);
        let sections = parts.into_iter().map(|part| Section {
            id: SectionId::new(now, self.chance.u128()),
            config_id: id.clone(),
            kind: part.kind,
            name: part.name,
            entity_id: None,
            checksum: String::new(),
            body: part.body,
            created_by: self.account.clone(),
            created_at: now,
        });
        let commit = Commit {
            digest: conductor::app::digest(&config, &locals),
            based_on: None,
            read: Default::default(),
            sections: sections.collect(),
            entities: Vec::new(),
            description: String::new(),
            state: None,
            actor: self.account.clone(),
            now,
        };
        let draft = Config {
            id,
            org_id: self.org.clone(),
            app_id: app_id.clone(),
            version: None,
            status: ConfigStatus::Draft,
            description: String::new(),
            digest: None,
            same_as: None,
            readme: String::new(),
            cli_version: String::new(),
            state: String::new(),
            created_by: self.account.clone(),
            created_at: now,
            updated_at: now,
        };
        ready(self.store.commit_config(draft, commit)).map(|_| ())
    }

    fn did(&mut self, what: &str) {
        *self.report.done.entry(what.to_owned()).or_default() += 1;
    }

    fn workflows(&self, install: &Install) -> Vec<Arc<Workflow>> {
        let rows = ready(self.store.workflows(&self.org, Some(&install.id), None, 0, 1000)).unwrap_or_default();
        let load = |id: &WorkflowId| ready(self.conductor.workflow(&self.org, id)).ok().map(|loaded| loaded.workflow);
        rows.iter().filter_map(|row| load(&row.id)).collect()
    }

    fn tell(&mut self, workflow: &WorkflowId, event: Event) -> bool {
        ready(self.conductor.tell_workflow(&self.org, workflow, event, "ann")).is_ok()
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
                let ms = self.chance.spread(10, 4000) as i64;
                self.clock.passed_ms.fetch_add(ms, Ordering::Relaxed);
                self.look();
            }
            50..=84 => self.person(&install),
            85..=89 => self.change_inputs(&install),
            90..=93 => {
                self.did("server died");
                self.conductor = conductor(&self.store, &self.clock, &self.draw);
            }
            94..=97 => {
                self.did("write broke");
                let (good, committed) = (self.chance.below(4) as u32, self.chance.one_in(2));
                self.store.break_write(good, committed);
                self.look();
            }
            _ => {
                self.did("clock jumped");
                let off = self.chance.below(2_000_000) as i64 - 1_000_000;
                self.clock.off_ms.store(off, Ordering::Relaxed);
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
            7 => K::TeardownComponent { component },
            8 => K::InputUpdate { inputs: vec!["host".into()] },
            9 => K::DriftRun { component },
            10 => K::RunbookRun { runbook: "book".into() },
            _ => K::ReprovisionSandbox { skip_components: self.chance.one_in(2) },
        };
        let mut new = NewWorkflow::new(kind);
        new.approve_all = self.chance.one_in(3).then(|| "ann".to_owned());
        new.request.plan_only = self.chance.one_in(10);
        new.on_error = if self.chance.one_in(4) { OnError::Continue } else { OnError::Abort };
        if ready(self.conductor.start_workflow(install, new, &self.account, None)).is_ok() {
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
            _ => Event::Retry { step: id },
        };
        let refused_for_sure = matches!(&event, Event::Answered { digest: Some(d), .. } if d == "of another plan");
        if self.tell(&workflow.id, event) && refused_for_sure {
            self.report.broken = Some("an approval of another plan was taken".into());
        }
        self.did("answered");
    }

    fn change_inputs(&mut self, install: &Install) {
        let before = ready(self.store.current_inputs(&self.org, &install.id)).ok().flatten();
        let Some(before) = before else { return };
        let name = if self.chance.one_in(3) { "size" } else { "host" };
        let mut values = before.values;
        values.insert(name.into(), self.chance.below(3).to_string());
        let (now, version) = (self.clock.now(), before.version + 1);
        let id = InputsId::new(now, self.chance.u128());
        let inputs = InstallInputs { id, version, values, created_at: now, ..before };
        if ready(self.store.put_inputs(&self.org, inputs)).is_ok() {
            self.did("inputs changed");
        }
    }

    /// The rules, for one install.
    fn check(&mut self, install: &Install) {
        self.report.checks += 1;
        let workflows = self.workflows(install);
        let Ok((_, parts)) = ready(self.store.install_parts(&self.org, &install.id, None)) else { return };
        let broken = broken(&workflows, &parts);
        if let Some(rule) = broken {
            self.report.broken = Some(format!("{}: {rule}", install.name));
        }
    }

    /// When everyone approves and nothing dies any more, every workflow comes to its end.
    fn finish(&mut self) {
        for round in 0..400 {
            let mut open = 0;
            for install in self.installs.clone() {
                for workflow in self.workflows(&install) {
                    if !workflow.status().is_over() {
                        open += 1;
                        if round == 0 {
                            self.tell(&workflow.id, Event::ApproveAll { by: "ann".into() });
                        }
                    }
                }
            }
            if open == 0 {
                break;
            }
            self.clock.passed_ms.fetch_add(1500, Ordering::Relaxed);
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

fn conductor(store: &Store, clock: &Arc<FleetClock>, draw: &Arc<Draw>) -> Conductor {
    let clock: Arc<dyn Clock> = clock.clone();
    let made = loop {
        // A write that was to break breaks here.
        if let Ok(made) = ready(Conductor::new(store.clone(), Arc::clone(&clock), Timing::default())) {
            break made;
        }
    };
    made.drawing(Arc::clone(draw))
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
            *applied.entry(step.work.target()).or_default() += u64::from(done);
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
    None
}
