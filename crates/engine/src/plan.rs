//! Which steps a workflow has, for every type of workflow.

use std::collections::{BTreeMap, BTreeSet};

use config::{AppConfig, Graph, InputUse, Uses};
use model::overrides::of_input;
use model::{StepId, Timestamp};

use crate::workflow::{ComponentOp, Request, SandboxOp, Step, StepStatus, Work, WorkflowKind};

/// What the steps depend on beside the request.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub config: &'a AppConfig,
    /// Components that this install leaves out.
    pub disabled: &'a BTreeSet<String>,
    /// Components that were deployed and not torn down since; also those that the app does not have any more.
    pub deployed: &'a BTreeSet<String>,
    pub sandbox_deployed: bool,
    /// Inputs that the install's overrides of components read.
    pub overrides: &'a BTreeMap<String, InputUse>,
    /// Syncs of secrets, or of images, have left something in a cluster.
    pub secrets_written: bool,
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("components wait for each other: {0}")]
    Cycle(String),
    #[error("the app has no {what} `{name}`")]
    Missing { what: &'static str, name: String },
    #[error("component `{0}` is switched off in this install; switch it on first")]
    Disabled(String),
    #[error("`{component}` is needed by {}", dependents.join(", "))]
    Needed { component: String, dependents: Vec<String> },
    #[error("{0} is not deployed: there is nothing to compare with")]
    NotDeployed(String),
    #[error("a {0} has no plan: it can't be asked for as `plan_only`")]
    NotPlanned(&'static str),
    #[error("runbook `{runbook}`, step `{step}`: {why}")]
    Runbook { runbook: String, step: String, why: String },
}

/// The components of an app, in the order of their deployment.
struct Order<'a> {
    components: BTreeMap<&'a str, &'a config::Component>,
    names: Vec<String>,
    needs: BTreeMap<String, BTreeSet<String>>,
    needed_by: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Order<'a> {
    fn new(config: &'a AppConfig) -> Result<Self, PlanError> {
        let graph = Graph::new(config).map_err(|circle| PlanError::Cycle(circle.join(" → ")))?;
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut needed_by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for dependency in graph.dependencies {
            needed_by.entry(dependency.on.clone()).or_default().insert(dependency.component.clone());
            needs.entry(dependency.component).or_default().insert(dependency.on);
        }
        let mut nodes = graph.components;
        let count = |name: &str| needs.get(name).map_or(0, BTreeSet::len);
        nodes.sort_by(|a, b| {
            let key = |n: &config::GraphNode| (n.level, count(&n.name), rank(&n.r#type));
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        let names = nodes.into_iter().map(|node| node.name).collect();
        let components =
            config.components.iter().map(|component| (component.common.name.as_str(), component)).collect();
        Ok(Self { components, names, needs, needed_by })
    }

    fn component(&self, name: &str) -> Result<&'a config::Component, PlanError> {
        let found = self.components.get(name).copied();
        found.ok_or_else(|| PlanError::Missing { what: "component", name: name.to_owned() })
    }

    /// Those of `set` that a component waits for, also through others that are not in it.
    fn waits_for(&self, name: &str, set: &BTreeSet<String>, reverse: bool) -> BTreeSet<String> {
        let edges = if reverse { &self.needed_by } else { &self.needs };
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut look: Vec<&String> = edges.get(name).into_iter().flatten().collect();
        while let Some(on) = look.pop() {
            if set.contains(on) {
                found.insert(on.clone());
            } else if seen.insert(on) {
                look.extend(edges.get(on).into_iter().flatten());
            }
        }
        found
    }

    /// A component and all that depend on it.
    fn with_dependents(&self, names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut look: Vec<String> = names.into_iter().collect();
        while let Some(name) = look.pop() {
            if !found.contains(&name) {
                look.extend(self.needed_by.get(&name).into_iter().flatten().cloned());
                found.insert(name);
            }
        }
        found
    }
}

fn rank(kind: &str) -> usize {
    let order =
        ["container_image", "docker_build", "terraform_module", "pulumi", "helm_chart", "kubernetes_manifest", "job"];
    order.iter().position(|known| *known == kind).unwrap_or(order.len())
}

struct Builder<'a> {
    at: Situation<'a>,
    order: Order<'a>,
    plan_only: bool,
    steps: Vec<Step>,
    group: u32,
    /// What the next step waits for.
    last: Vec<u32>,
    id: &'a mut dyn FnMut() -> StepId,
}

/// The steps of a workflow; ids are drawn by the caller.
pub fn plan(request: &Request, at: Situation, id: &mut dyn FnMut() -> StepId) -> Result<Vec<Step>, PlanError> {
    let order = Order::new(at.config)?;
    let mut b = Builder { at, order, plan_only: request.plan_only, steps: Vec::new(), group: 0, last: Vec::new(), id };
    let acts = matches!(
        request.kind,
        WorkflowKind::ActionWorkflowRun { .. } | WorkflowKind::RunbookRun { .. } | WorkflowKind::SyncSecrets
    );
    if request.plan_only && acts {
        return Err(PlanError::NotPlanned(request.kind.name()));
    }
    b.build(&request.kind)?;
    Ok(b.steps)
}

impl Builder<'_> {
    fn build(&mut self, kind: &WorkflowKind) -> Result<(), PlanError> {
        match kind {
            WorkflowKind::Provision => self.provision(SandboxOp::Provision)?,
            WorkflowKind::Reprovision => self.provision(SandboxOp::Reprovision)?,
            WorkflowKind::ReprovisionSandbox { skip_components } => {
                self.begin();
                self.hooks("pre-reprovision-sandbox");
                self.sandbox(SandboxOp::Reprovision);
                if !self.plan_only {
                    self.secrets();
                    if !skip_components {
                        self.deploy(&self.enabled())?;
                    }
                    self.hooks("post-reprovision-sandbox");
                }
            }
            WorkflowKind::Deprovision => {
                self.begin();
                self.hooks("pre-deprovision");
                self.teardown_all(true)?;
                self.remove_secrets();
                self.sandbox(SandboxOp::Deprovision);
                self.hooks("post-deprovision");
            }
            WorkflowKind::DeprovisionSandbox => {
                self.begin();
                self.hooks("pre-deprovision-sandbox");
                self.sandbox(SandboxOp::Deprovision);
                self.hooks("post-deprovision-sandbox");
            }
            WorkflowKind::DeployComponents { components } => {
                self.begin();
                let chosen = if components.is_empty() { self.enabled() } else { self.chosen(components)? };
                self.deploy(&chosen)?;
            }
            WorkflowKind::ManualDeploy { component, dependents } => {
                self.begin();
                let mut chosen = self.chosen(std::slice::from_ref(component))?;
                if *dependents {
                    chosen = self.order.with_dependents(chosen);
                    chosen.retain(|name| !self.at.disabled.contains(name));
                }
                self.components(&chosen)?;
            }
            WorkflowKind::DriftRun { component } => {
                self.begin();
                let chosen = self.chosen(std::slice::from_ref(component))?;
                if !self.at.deployed.contains(component) {
                    return Err(PlanError::NotDeployed(format!("component `{component}`")));
                }
                self.plan_only = true;
                self.components(&chosen)?;
            }
            WorkflowKind::DriftRunReprovisionSandbox if !self.at.sandbox_deployed => {
                return Err(PlanError::NotDeployed("the sandbox".into()));
            }
            WorkflowKind::DriftRunReprovisionSandbox => {
                self.begin();
                self.plan_only = true;
                self.sandbox(SandboxOp::Reprovision);
            }
            WorkflowKind::TeardownComponent { component, with_dependents, force } => {
                self.teardown_component(component, *with_dependents, *force)?;
            }
            WorkflowKind::TeardownComponents => {
                self.begin();
                self.teardown_all(false)?;
            }
            WorkflowKind::InputUpdate { inputs } => self.input_update(inputs)?,
            WorkflowKind::ActionWorkflowRun { action, trigger } => {
                let known = self.at.config.actions.iter().any(|known| known.name == *action);
                if !known {
                    return Err(PlanError::Missing { what: "action", name: action.clone() });
                }
                // It is queued at once, and the job says that it waits for the runner.
                self.next("generate install state", Work::GenerateState);
                let work = Work::Action { action: action.clone(), trigger: trigger.clone(), component: None };
                self.next_group(format!("{action} {trigger} action workflow run"), work);
            }
            WorkflowKind::SyncSecrets => {
                self.begin();
                self.secrets();
            }
            WorkflowKind::RunbookRun { runbook } => self.runbook(runbook)?,
        }
        Ok(())
    }

    fn teardown_component(&mut self, component: &String, with_dependents: bool, force: bool) -> Result<(), PlanError> {
        if !self.at.deployed.contains(component) {
            self.order.component(component)?;
        }
        let mut all = self.order.with_dependents([component.clone()]);
        all.retain(|name| name == component || self.at.deployed.contains(name));
        // Those that are switched off are on their way out: they go first.
        let stays = |name: &&String| *name != component && !self.at.disabled.contains(*name);
        let dependents: Vec<String> = all.iter().filter(stays).cloned().collect();
        if !dependents.is_empty() && !with_dependents && !force {
            return Err(PlanError::Needed { component: component.clone(), dependents });
        }
        self.begin();
        if !force && all.len() > 1 {
            self.side_by_side(&all, true, |b, name| {
                b.teardown(name);
                Ok(())
            })?;
        } else {
            self.group += 1;
            self.teardown(component);
        }
        Ok(())
    }

    fn input_update(&mut self, inputs: &[String]) -> Result<(), PlanError> {
        // What is laid over a component is kept among the inputs.
        let over = |name: &String| of_input(name).is_some();
        let declared = |name: &&String| over(name) || self.at.config.inputs.iter().any(|input| input.name == **name);
        if let Some(name) = inputs.iter().find(|name| !declared(name)) {
            return Err(PlanError::Missing { what: "input", name: name.clone() });
        }
        // No template reads those that are laid over something.
        let (over, inputs): (Vec<_>, Vec<_>) = inputs.iter().cloned().partition(over);
        let over = over.iter().filter_map(|name| of_input(name)).map(|(component, _)| component);
        self.begin();
        self.hooks("pre-update-inputs");
        let uses = Uses::new(self.at.config);
        if uses.sandbox.reads(&inputs) && self.at.sandbox_deployed {
            self.sandbox(SandboxOp::Reprovision);
            self.secrets();
            self.deploy(&self.enabled())?;
        } else {
            let reading = uses.components.iter().chain(self.at.overrides).filter(|(_, uses)| uses.reads(&inputs));
            let reading = reading.map(|(name, _)| name.clone()).chain(over);
            let mut chosen = self.order.with_dependents(reading);
            chosen.retain(|name| self.at.deployed.contains(name) && !self.at.disabled.contains(name));
            self.components(&chosen)?;
        }
        self.hooks("post-update-inputs");
        Ok(())
    }

    // ---- building blocks ----

    fn push(&mut self, name: impl Into<String>, work: Work, after: Vec<u32>) -> u32 {
        let slot = self.steps.len() as u32;
        let (retries, auto_approve) = match &work {
            Work::SandboxPlan { .. } | Work::SandboxApply { .. } => {
                let sandbox = self.at.config.sandbox.as_ref();
                sandbox.map_or((0, false), |s| (s.max_auto_retries, s.auto_approve_on_policies_passing))
            }
            Work::ComponentPlan { component, .. }
            | Work::ComponentApply { component, .. }
            | Work::SyncImage { component } => {
                let found = self.order.component(component);
                found.map_or((0, false), |component| component.kind.retries_and_approval())
            }
            Work::GenerateState
            | Work::RunnerServiceAccount
            | Work::GenerateStack
            | Work::AwaitStack
            | Work::UpdateStackOutputs
            | Work::AwaitRunner
            | Work::SyncSecrets
            | Work::RemoveSecrets { .. }
            | Work::Action { .. }
            | Work::Script { .. }
            | Work::VerifyHealth { .. }
            | Work::Skipped { .. } => (0, false),
        };
        self.steps.push(Step {
            id: (self.id)(),
            slot,
            attempt: 0,
            group: self.group,
            name: name.into(),
            work,
            after,
            look_only: self.plan_only,
            status: StepStatus::Pending,
            reason: String::new(),
            asked_at: None,
            plan: None,
            answer: None,
            auto_retries: retries.max(0) as u32,
            auto_approve_on_policies: auto_approve,
            ask: false,
            role: None,
            created_at: self.at.now,
            started_at: None,
            finished_at: None,
        });
        slot
    }

    /// The next step in line.
    fn next(&mut self, name: impl Into<String>, work: Work) {
        let after = std::mem::take(&mut self.last);
        self.last = vec![self.push(name, work, after)];
    }

    /// The same, in a group of its own.
    fn next_group(&mut self, name: impl Into<String>, work: Work) {
        self.group += 1;
        self.next(name, work);
    }

    fn begin(&mut self) {
        self.next("generate install state", Work::GenerateState);
        self.next_group("await runner healthy", Work::AwaitRunner);
    }

    /// Actions that are started by `trigger`, in their order. Who only looks starts nothing.
    fn triggered(&self, trigger: &str, component: Option<&str>) -> Vec<String> {
        if self.plan_only {
            return Vec::new();
        }
        let mut found: Vec<(i64, String)> = Vec::new();
        for action in &self.at.config.actions {
            for known in &action.triggers {
                if known.r#type == trigger && (component.is_none() || known.component_name.as_deref() == component) {
                    found.push((known.index, action.name.clone()));
                }
            }
        }
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    fn hooks(&mut self, trigger: &str) {
        for action in self.triggered(trigger, None) {
            let work = Work::Action { action: action.clone(), trigger: trigger.to_owned(), component: None };
            self.next_group(format!("{trigger}: {action}"), work);
        }
    }

    fn component_hooks(&mut self, trigger: &str, component: &str) {
        for action in self.triggered(trigger, Some(component)) {
            let work = Work::Action {
                action: action.clone(),
                trigger: trigger.to_owned(),
                component: Some(component.to_owned()),
            };
            self.next(format!("{trigger} {component}: {action}"), work);
        }
    }

    fn secrets(&mut self) {
        if self.plan_only {
            return;
        }
        self.hooks("pre-secrets-sync");
        self.next_group("sync secrets", Work::SyncSecrets);
        self.hooks("post-secrets-sync");
    }

    /// Whether syncs may have left something in a cluster that may outlive the install.
    fn leaves_secrets(&self) -> bool {
        let config = self.at.config;
        let may = !config.secrets.is_empty() || config.components.iter().any(|component| component.kind.is_image());
        (may || self.at.secrets_written) && !self.plan_only
    }

    fn remove_secrets(&mut self) {
        if self.leaves_secrets() {
            self.next_group("remove secrets", Work::RemoveSecrets { cluster: None });
        }
    }

    /// A cluster that a component puts out is cleaned up while there is a way into it.
    fn remove_secrets_of(&mut self, component: &str) {
        let is_cluster = self.at.config.kubernetes_contexts.iter().any(|context| context.component == component);
        if is_cluster && self.at.deployed.contains(component) && self.leaves_secrets() {
            let cluster = Some(component.to_owned());
            self.next(format!("remove secrets from the cluster of {component}"), Work::RemoveSecrets { cluster });
        }
    }

    fn sandbox(&mut self, op: SandboxOp) {
        // What was deployed is torn down, whether the app still has it or not.
        let left = op == SandboxOp::Deprovision && self.at.sandbox_deployed;
        if self.at.config.sandbox.is_none() && !left {
            return;
        }
        let name = op.name();
        self.next_group(format!("{name} sandbox plan"), Work::SandboxPlan { op });
        if !self.plan_only {
            self.next(format!("{name} sandbox apply plan"), Work::SandboxApply { op });
        }
        if op == SandboxOp::Provision {
            self.hooks("post-provision-sandbox");
        }
    }

    fn provision(&mut self, op: SandboxOp) -> Result<(), PlanError> {
        let name = op.name();
        self.next("generate install state", Work::GenerateState);
        self.next_group(format!("{name} runner service account"), Work::RunnerServiceAccount);
        self.next_group("generate install stack", Work::GenerateStack);
        self.next("await install stack", Work::AwaitStack);
        self.next("update install stack outputs", Work::UpdateStackOutputs);
        self.next_group("await runner healthy", Work::AwaitRunner);
        self.hooks(&format!("pre-{name}"));
        self.sandbox(op);
        if self.plan_only {
            return Ok(());
        }
        self.secrets();
        self.deploy(&self.enabled())?;
        self.hooks(&format!("post-{name}"));
        Ok(())
    }

    fn enabled(&self) -> BTreeSet<String> {
        self.order.names.iter().filter(|name| !self.at.disabled.contains(*name)).cloned().collect()
    }

    fn chosen(&self, names: &[String]) -> Result<BTreeSet<String>, PlanError> {
        for name in names {
            self.order.component(name)?;
            if self.at.disabled.contains(name) {
                return Err(PlanError::Disabled(name.clone()));
            }
        }
        Ok(names.iter().cloned().collect())
    }

    fn deploy(&mut self, chosen: &BTreeSet<String>) -> Result<(), PlanError> {
        self.hooks("pre-deploy-all-components");
        self.components(chosen)?;
        self.hooks("post-deploy-all-components");
        Ok(())
    }

    /// Deploys components: each waits for those that it needs, and for nothing else.
    fn components(&mut self, chosen: &BTreeSet<String>) -> Result<(), PlanError> {
        self.side_by_side(chosen, false, |b, name| {
            let component = b.order.component(name)?;
            let (image, owned) = (component.kind.is_image(), name.to_owned());
            let gated = component.kind.health().is_some_and(|it| it.block_deploy && it.enabled.unwrap_or(true));
            b.component_hooks("pre-deploy-component", name);
            if image {
                if !b.plan_only {
                    b.next(format!("sync {name}"), Work::SyncImage { component: owned });
                }
            } else {
                let op = ComponentOp::Deploy;
                let work = Work::ComponentPlan { component: owned.clone(), op };
                b.next(format!("sync and plan {name}"), work);
                if !b.plan_only {
                    b.next(format!("apply {name}"), Work::ComponentApply { component: owned, op });
                }
            }
            b.component_hooks("post-deploy-component", name);
            // After the hooks: one of them may report a check that is required.
            if gated && !b.plan_only {
                b.next(format!("verify health {name}"), Work::VerifyHealth { component: name.to_owned() });
            }
            Ok(())
        })
    }

    /// One group for each component, all of them after what came before; the next step waits for all.
    fn side_by_side(
        &mut self,
        chosen: &BTreeSet<String>,
        reverse: bool,
        group: impl Fn(&mut Self, &str) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let base = std::mem::take(&mut self.last);
        let mut ends: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut names: Vec<String> = self.order.names.iter().filter(|name| chosen.contains(*name)).cloned().collect();
        if reverse {
            names.reverse();
        }
        for name in names {
            self.group += 1;
            let on = self.order.waits_for(&name, chosen, reverse);
            let waits = on.iter().filter_map(|on| ends.get(on)).flatten().copied();
            let waits: Vec<u32> = waits.collect();
            self.last = if waits.is_empty() { base.clone() } else { waits };
            group(self, &name)?;
            ends.insert(name, std::mem::take(&mut self.last));
        }
        let all: BTreeSet<u32> = ends.into_values().flatten().collect();
        self.last = if all.is_empty() { base } else { all.into_iter().collect() };
        Ok(())
    }

    fn teardown_all(&mut self, for_good: bool) -> Result<(), PlanError> {
        self.hooks("pre-teardown-all-components");
        // What the app does not have any more goes first: nothing that it has needs it.
        let gone: Vec<&String> = self.at.deployed.iter().filter(|name| self.order.component(name).is_err()).collect();
        let base = self.last.clone();
        let mut ends = BTreeSet::new();
        for name in gone {
            self.group += 1;
            self.last.clone_from(&base);
            self.teardown(name);
            ends.extend(self.last.iter().copied());
        }
        self.last = if ends.is_empty() { base } else { ends.into_iter().collect() };
        let all: BTreeSet<String> = self.order.names.iter().cloned().collect();
        self.side_by_side(&all, true, |b, name| {
            if for_good {
                b.remove_secrets_of(name);
            }
            // One that was never deployed has an empty plan, which skips itself.
            b.teardown(name);
            Ok(())
        })?;
        self.hooks("post-teardown-all-components");
        Ok(())
    }

    fn teardown(&mut self, name: &str) {
        let image = self.order.component(name).is_ok_and(|component| component.kind.is_image());
        if image {
            return self.next(format!("skipped teardown {name}"), Work::Skipped { component: name.to_owned() });
        }
        let (op, component) = (ComponentOp::Teardown, name.to_owned());
        self.component_hooks("pre-teardown-component", name);
        self.next(format!("plan teardown {name}"), Work::ComponentPlan { component: component.clone(), op });
        if !self.plan_only {
            self.next(format!("teardown {name}"), Work::ComponentApply { component, op });
        }
        self.component_hooks("post-teardown-component", name);
    }

    fn runbook(&mut self, name: &str) -> Result<(), PlanError> {
        let found = self.at.config.runbooks.iter().find(|runbook| runbook.name == name);
        let runbook = found.ok_or_else(|| PlanError::Missing { what: "runbook", name: name.to_owned() })?;
        self.begin();
        for (index, step) in runbook.steps.iter().enumerate() {
            let wrong = |why: &str| PlanError::Runbook {
                runbook: name.to_owned(),
                step: step.name.clone(),
                why: why.to_owned(),
            };
            let component = || step.component_name.clone().ok_or_else(|| wrong("`component_name` is missing"));
            let plan_only = self.plan_only;
            self.plan_only |= step.plan_only;
            match step.r#type.as_str() {
                "component_deploy" => {
                    let mut chosen = self.chosen(&[component()?])?;
                    if step.deploy_dependents {
                        chosen = self.order.with_dependents(chosen);
                        chosen.retain(|name| !self.at.disabled.contains(name));
                    }
                    self.components(&chosen)?;
                }
                "component_tear_down" => {
                    let component = component()?;
                    self.order.component(&component)?;
                    let chosen = if step.tear_down_dependents {
                        self.order.with_dependents([component])
                    } else {
                        BTreeSet::from([component])
                    };
                    self.side_by_side(&chosen, true, |b, name| {
                        b.teardown(name);
                        Ok(())
                    })?;
                }
                "sandbox_reprovision" => {
                    self.sandbox(SandboxOp::Reprovision);
                    if !step.skip_component_deploys && !self.plan_only {
                        self.deploy(&self.enabled())?;
                    }
                }
                "sandbox_deprovision" => self.sandbox(SandboxOp::Deprovision),
                "action" if self.plan_only => {}
                "action" => match &step.action_name {
                    Some(action) if !self.at.config.actions.iter().any(|known| known.name == *action) => {
                        return Err(wrong(&format!("the app has no action `{action}`")));
                    }
                    _ => self.next_group(step.name.clone(), Work::Script { runbook: name.to_owned(), index }),
                },
                other => return Err(wrong(&format!("`{other}` is not supported yet"))),
            }
            self.plan_only = plan_only;
        }
        Ok(())
    }
}
