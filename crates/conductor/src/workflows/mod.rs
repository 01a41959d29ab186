//! Performs workflows: reads one, lets the engine decide, writes the next state if nobody else has, and only then does what was
//! decided. Whatever dies in between, the next look finds it where it was.

mod components;
mod context;
mod deployed;
mod deploys;
mod health;
mod images;
mod policies;
mod scripts;
mod secrets;
mod simulate;
pub(crate) mod start;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{
    Context, Ended, Event, Held, Lock, OnError, Refused, Request, Response, Situation, Step, StepStatus, Workflow,
    WorkflowStatus,
};
use model::secrets::SECRETS_PART;
use model::{AccountId, ConfigId, OrgId, Role, StepId, Timestamp, TraceContext, WorkflowId};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use store::{
    ApprovalOption, Given, Idempotency, Install, InstallInputs, Look, LookChange, Pin, PlannedWorkflow, StepRow,
    StoreError, WorkflowChange, WorkflowRow, topic,
};
use tokio_util::sync::CancellationToken;

use crate::error::{AppError, Error, Result, WorkflowError};
use crate::installs::overrides::input_uses;
use crate::reconcile::go_on;
use crate::{Conductor, trace};
pub(crate) use components::context_component;
use context::{Known, WorkflowContext};
use images::PULLS;
use secrets::NAMESPACES;

/// Steps of one workflow that may be in progress at once.
const PARALLEL: usize = 16;
/// How long a plan waits for an answer.
pub const ANSWER_S: i64 = 30 * 86_400;
/// Who took a workflow and died leaves it to others after this.
const CLAIM_S: i64 = 10;
/// What waits for something outside is looked at this often, though it is woken too.
const WAIT_S: i64 = 5;
const BATCH: u64 = 64;
/// How often a write that met another one is tried anew.
const TRIES: usize = 50;
/// Steps of workflows that are kept in memory, all together.
const CACHED_STEPS: usize = 100_000;

/// What a workflow keeps beside its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Body {
    pub request: Request,
    pub on_error: OnError,
    /// Who lets all plans pass.
    pub approve_all: Option<String>,
    #[serde(default)]
    pub cancelled_by: Option<String>,
    pub config_id: ConfigId,
    pub config_version: u64,
    /// The version was chosen by a person: it may be older than what is deployed.
    #[serde(default)]
    pub chosen: bool,
    /// Where the install stays from the first thing on that this workflow applies. `null` says something else than a missing field: the
    /// install follows the newest version again.
    #[serde(default, deserialize_with = "written_pin", skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
    /// The role that its steps are carried out with, where who started it has named one.
    #[serde(default)]
    pub role: Option<String>,
    /// Why it failed, or what it was finished without, for lists.
    #[serde(default)]
    pub failure: Option<String>,
    /// The request that started it, where that is traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

/// A pin that was written, also one to no version, which is `null`.
fn written_pin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Pin>, D::Error> {
    Pin::deserialize(deserializer).map(Some)
}

impl Body {
    /// Refused where another version of Ferry wrote it.
    pub fn of(row: &WorkflowRow) -> Result<Self> {
        Self::deserialize(&row.body).map_err(corrupt)
    }
}

/// A workflow to be started.
#[derive(Debug, Clone)]
pub struct NewWorkflow {
    pub request: Request,
    pub on_error: OnError,
    pub approve_all: Option<String>,
    /// A version of the app other than the one that the install is at.
    pub config_id: Option<ConfigId>,
    /// What its steps are given.
    pub given: Given,
    /// Inputs that are written together with it.
    pub inputs: Option<InstallInputs>,
    /// Components that are switched on or off together with it.
    pub toggles: BTreeMap<String, bool>,
    pub role: Option<String>,
}

impl NewWorkflow {
    pub fn new(kind: engine::WorkflowKind) -> Self {
        let request = Request { kind, plan_only: false, deployed: false };
        Self {
            request,
            on_error: OnError::Abort,
            approve_all: None,
            config_id: None,
            given: Given::default(),
            inputs: None,
            toggles: BTreeMap::new(),
            role: None,
        }
    }
}

/// A workflow as it was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub row: WorkflowRow,
    pub body: Body,
    pub workflow: Arc<Workflow>,
}

/// Workflows by id, each with the version of its row.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    workflows: HashMap<WorkflowId, (i64, Arc<Workflow>)>,
    /// Of all workflows together.
    steps: usize,
}

impl Cache {
    fn get(&self, id: &WorkflowId, version: i64) -> Option<Arc<Workflow>> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.workflows.get(id).filter(|(known, _)| *known == version).map(|(_, workflow)| Arc::clone(workflow))
    }

    fn put(&self, version: i64, workflow: Arc<Workflow>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, old)) = cached.workflows.remove(&workflow.id) {
            cached.steps -= old.steps.len();
        }
        if cached.steps + workflow.steps.len() > CACHED_STEPS {
            *cached = Cached::default();
        }
        cached.steps += workflow.steps.len();
        cached.workflows.insert(workflow.id.clone(), (version, workflow));
    }
}

fn corrupt(_: impl std::fmt::Display) -> Error {
    WorkflowError::Unreadable.into()
}

fn refused(refused: Refused) -> Error {
    match refused {
        Refused::NoStep => StoreError::NotFound("step").into(),
        other => WorkflowError::Refused(other).into(),
    }
}

fn step_row(step: &Step) -> Result<StepRow> {
    Ok(StepRow {
        id: step.id.clone(),
        slot: step.slot,
        attempt: step.attempt,
        name: step.title(),
        status: step.status.as_str().to_owned(),
        target: step.work.is_attempt().then(|| step.work.target()),
        locks: step.held().map(|lock| serde_json::to_string(&lock)).transpose().map_err(corrupt)?,
        body: serde_json::to_value(step).map_err(corrupt)?,
    })
}

/// What a person says to a plan.
#[derive(Debug, Clone)]
pub struct Answer {
    pub step: StepId,
    pub response: Response,
    /// Of the plan that the person has seen.
    pub digest: String,
    pub by: String,
    pub note: String,
}

impl Conductor {
    fn step_ids(&self, now: Timestamp) -> impl FnMut() -> StepId + Send + '_ {
        move || StepId::new(now, self.random_u128())
    }

    /// The config that an install is at: its own, or the newest of its app.
    pub async fn config_of(&self, install: &Install) -> Result<store::Config> {
        match &install.config_id {
            Some(id) => Ok(self.store.config(&install.org_id, &install.app_id, id).await?),
            None => {
                let active = self.store.active_config(&install.org_id, &install.app_id).await?;
                Ok(active.ok_or(AppError::NeverSynced)?)
            }
        }
    }

    /// Plans a workflow and writes it; it begins at once.
    pub async fn start_workflow(
        &self,
        install: &Install,
        new: NewWorkflow,
        actor: &AccountId,
        idem: Option<Idempotency>,
    ) -> Result<WorkflowId> {
        let (_, parts) = self.store.install_parts(&install.org_id, &install.id, None).await?;
        let planned = self.plan_workflow(install, new, &parts, actor).await?;
        let created = self.store.create_workflow(planned, idem).await?;
        WorkflowId::parse(&created.id).map_err(corrupt)
    }

    /// A workflow and its steps, ready to be written.
    pub(crate) async fn plan_workflow(
        &self,
        install: &Install,
        new: NewWorkflow,
        parts: &BTreeMap<String, serde_json::Value>,
        actor: &AccountId,
    ) -> Result<PlannedWorkflow> {
        let now = self.now();
        // Whoever deploys everything means the newest version, unless another one is named; all else is about the one that is there.
        let whole = !new.request.deployed
            && match &new.request.kind {
                engine::WorkflowKind::Provision | engine::WorkflowKind::Reprovision => true,
                engine::WorkflowKind::DeployComponents { components } => components.is_empty(),
                _ => false,
            };
        let config = match &new.config_id {
            Some(id) => self.store.config(&install.org_id, &install.app_id, id).await?,
            None if whole => self.config_of(&Install { config_id: None, ..install.clone() }).await?,
            None => self.config_of(install).await?,
        };
        let chosen = new.config_id.is_some();
        let document = self.document(&install.org_id, &install.app_id, &config.id).await?;
        let deployed: BTreeSet<String> = parts
            .iter()
            .filter(|(_, value)| is_there(value))
            .filter_map(|(part, _)| part.strip_prefix("components/").map(str::to_owned))
            .collect();
        let disabled = disabled(install, &document.config);
        let sandbox_deployed = parts.get("sandbox").is_some_and(is_there);
        let (config_of, deployed) = (&document.config, &deployed);
        let left =
            |part: &serde_json::Value| is_there(part) || part[NAMESPACES].as_array().is_some_and(|it| !it.is_empty());
        let secrets_written =
            parts.get(SECRETS_PART).is_some_and(left) || parts.values().any(|part| part[PULLS].is_array());
        // Those that come with the workflow count already.
        let given = match &new.inputs {
            Some(inputs) => inputs.values.clone(),
            None => {
                let inputs = self.store.current_inputs(&install.org_id, &install.id).await?;
                inputs.map(|inputs| inputs.values).unwrap_or_default()
            }
        };
        let overrides = &input_uses(&given);
        let at = Situation {
            config: config_of,
            disabled: &disabled,
            deployed,
            sandbox_deployed,
            overrides,
            secrets_written,
            now,
        };
        let steps = engine::plan(&new.request, at, &mut self.step_ids(now));
        let steps = steps.map_err(|error| match error {
            engine::PlanError::Needed { component, dependents } => {
                Error::from(StoreError::HasDependents { component, dependents })
            }
            other => WorkflowError::Plan(other).into(),
        })?;
        let mut body = Body {
            request: new.request,
            on_error: new.on_error,
            approve_all: new.approve_all,
            cancelled_by: None,
            config_id: config.id.clone(),
            config_version: config.version.unwrap_or_default(),
            chosen,
            pin: None,
            role: new.role,
            failure: None,
            trace: trace::current(),
        };
        // An install that goes back stays there, until everything is deployed anew.
        let stays = chosen.then(|| config.id.clone());
        body.pin = (whole && !body.request.plan_only).then_some(Pin(stays));
        let row = WorkflowRow {
            id: WorkflowId::new(now, self.random_u128()),
            org_id: install.org_id.clone(),
            install_id: install.id.clone(),
            kind: body.request.kind.name().to_owned(),
            status: WorkflowStatus::Pending.as_str().to_owned(),
            body: serde_json::to_value(&body).map_err(corrupt)?,
            created_by: actor.clone(),
            created_at: now,
            updated_at: now,
            started_at: None,
            finished_at: None,
            version: 1,
            dirty: 0,
        };
        let steps = steps.iter().map(step_row).collect::<Result<Vec<_>>>()?;
        Ok(PlannedWorkflow { row, steps, given: new.given, inputs: new.inputs, toggles: new.toggles })
    }

    pub async fn workflow(&self, org: &OrgId, id: &WorkflowId) -> Result<Loaded> {
        let row = self.store.workflow(org, id).await?;
        if let Some(workflow) = self.workflows.get(id, row.version) {
            let body = serde_json::from_value(row.body.clone()).map_err(corrupt)?;
            return Ok(Loaded { row, body, workflow });
        }
        let (row, steps) = self.store.workflow_with_steps(org, id).await?;
        let body: Body = serde_json::from_value(row.body.clone()).map_err(corrupt)?;
        let steps = steps.into_iter().map(|step| serde_json::from_value::<Step>(step.body).map_err(corrupt));
        let workflow = Arc::new(Workflow {
            id: row.id.clone(),
            request: body.request.clone(),
            on_error: body.on_error,
            approve_all: body.approve_all.clone(),
            cancelled_by: body.cancelled_by.clone(),
            steps: steps.collect::<Result<_>>()?,
        });
        self.workflows.put(row.version, Arc::clone(&workflow));
        Ok(Loaded { row, body, workflow })
    }

    /// Says what shall become of a plan. Trying again and going on without a step are work, not approval.
    pub async fn answer_step(
        &self,
        org: &OrgId,
        id: &WorkflowId,
        role: Role,
        answer: Answer,
        actor: &str,
    ) -> Result<Loaded> {
        let Answer { step, response, digest, by, note } = answer;
        if role < Role::Operator && !matches!(response, Response::Approve | Response::Deny) {
            return Err(WorkflowError::ApproverMay.into());
        }
        self.tell_workflow(org, id, Event::Answered { step, response, digest: Some(digest), by, note }, actor).await
    }

    /// Tells a workflow what happened; lets the engine decide, again and again until nothing more is known, and writes what came
    /// out in one transaction. What is refused changes nothing.
    pub async fn tell_workflow(&self, org: &OrgId, id: &WorkflowId, event: Event, actor: &str) -> Result<Loaded> {
        let mut events = vec![event];
        for _ in 0..TRIES {
            let loaded = self.workflow(org, id).await?;
            let install = self.store.install(org, loaded.row.install_id.as_str()).await?;
            let mut scene = WorkflowContext::new(self, install, &loaded).await?;
            let now = self.now();
            let (moves, held) = self.held(&loaded).await?;
            let approve_all = scene.install.settings.approval_option == Some(ApprovalOption::ApproveAll);
            let cx = Context { now, held: &held, limit: PARALLEL, answer_s: ANSWER_S, approve_all };
            let mut workflow = (*loaded.workflow).clone();
            for event in &events {
                scene.rehearse(&workflow, event).await?;
                workflow.advance(event.clone(), &cx, &mut self.step_ids(now)).map_err(refused)?;
            }
            let mut seen = BTreeSet::new();
            let open = |s: &Step| matches!(s.status, StepStatus::InProgress | StepStatus::Unknown);
            while let Some(at) = workflow.steps.iter().position(|s| open(s) && !seen.contains(&s.id)) {
                let mut step = workflow.steps[at].clone();
                seen.insert(step.id.clone());
                if step.status == StepStatus::Unknown {
                    if let Some(ended) = scene.settled(&workflow, &step).await? {
                        let event = Event::Ended { step: step.id, ended };
                        workflow.advance(event, &cx, &mut self.step_ids(now)).map_err(refused)?;
                    }
                    continue;
                }
                if step.started_at == Some(now) && step.role.is_none() {
                    match scene.role(&step).await? {
                        Ok(role) => step.role = role,
                        Err(reason) => {
                            let event = Event::Ended { step: step.id, ended: Ended::Failed(reason) };
                            workflow.advance(event, &cx, &mut self.step_ids(now)).map_err(refused)?;
                            continue;
                        }
                    }
                    workflow.steps[at].role.clone_from(&step.role);
                }
                match scene.known(&workflow, &step, now).await? {
                    Known::Nothing => {}
                    Known::Reason(reason) if reason == step.reason => {}
                    Known::Reason(reason) => workflow.steps[at].reason = reason,
                    Known::Ended(ended) => {
                        let event = Event::Ended { step: step.id, ended };
                        workflow.advance(event, &cx, &mut self.step_ids(now)).map_err(refused)?;
                    }
                }
            }
            scene.settle_passed_by(&workflow).await?;
            let due_at = scene.due(workflow.due(&cx), &workflow);
            let change = change(&loaded, &workflow, scene.outbox(), due_at, moves, actor, now)?;
            let changes_parts = !change.parts.is_empty();
            let row = WorkflowRow { version: loaded.row.version + 1, ..change.row.clone() };
            match self.store.change_workflow(change).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => return Err(error.into()),
            }
            if changes_parts {
                self.store.wake_runner(&scene.install.runner_id);
            }
            let workflow = Arc::new(workflow);
            self.workflows.put(row.version, Arc::clone(&workflow));
            if let (Some(ended), true, None) = (&self.ended, row.finished_at.is_some(), loaded.row.finished_at) {
                let _ = ended.try_send((row.org_id.clone(), row.id.clone()));
            }
            let context = loaded.body.trace.as_ref().map(|trace| trace.span_of(row.id.as_str()));
            let performed = Box::pin(self.perform(&mut scene, &workflow, actor));
            events = trace::within(context, performed).await?;
            if events.is_empty() {
                let body = serde_json::from_value(row.body.clone()).map_err(corrupt)?;
                return Ok(Loaded { row, body, workflow });
            }
        }
        Err(WorkflowError::Busy.into())
    }

    async fn held(&self, loaded: &Loaded) -> Result<(i64, Vec<Held>)> {
        let (moves, held) = self.store.held_locks(&loaded.row.install_id, &loaded.row.id).await?;
        let held = held.into_iter().filter_map(|held| {
            let lock: Lock = serde_json::from_str(&held.lock).ok()?;
            Some(Held { lock, by: format!("{} of {} {}", held.step, held.kind, held.workflow_id) })
        });
        Ok((moves, held.collect()))
    }

    /// Does what follows from the steps in progress, also for a server that died before it could: those without a job get one, and
    /// jobs of a cancelled workflow are interrupted. What could not be begun has ended.
    async fn perform(&self, scene: &mut WorkflowContext<'_>, workflow: &Workflow, actor: &str) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for id in std::mem::take(&mut scene.jobless) {
            let step = workflow.steps.iter().find(|step| step.id == id && step.status == StepStatus::InProgress);
            let Some(step) = step else { continue };
            if let Some(ended) = scene.start(workflow, step).await? {
                events.push(Event::Ended { step: id, ended });
            }
        }
        for job in &scene.interrupts {
            go_on("interrupt", self.store.cancel(&scene.install.org_id, job, actor, self.now()).await);
        }
        Ok(events)
    }

    /// Advances every workflow that is due.
    pub async fn reconcile_workflows(&self) -> Result<()> {
        loop {
            let now = self.now();
            let due = self.store.due_workflows(now, now.plus_s(CLAIM_S), BATCH).await?;
            let full = due.len() as u64 == BATCH;
            let looks = due.iter().map(|(org, id)| async move {
                go_on("workflow", self.tell_workflow(org, id, Event::Look, "ferry").await);
            });
            futures::future::join_all(looks).await;
            if !full {
                return Ok(());
            }
        }
    }

    /// Advances workflows until told to stop: when woken, and every `period` too.
    pub(crate) async fn run_workflows(&self, period: Duration, stop: &CancellationToken) {
        let subscription = self.store.notifier().subscribe(topic::workflows());
        loop {
            let woken = subscription.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Err(error) = self.reconcile_workflows().await {
                tracing::warn!(reconciler = "workflows", %error, "will look again");
            }
            let due = self.store.next_due().await.ok().flatten();
            let pause = due.map_or(period, |due| due.since(self.now()).clamp(Duration::from_millis(1), period));
            tokio::select! {
                () = stop.cancelled() => return,
                () = woken => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

/// What has changed, as the store writes it.
fn change(
    loaded: &Loaded,
    workflow: &Workflow,
    outbox: context::Outbox,
    due_at: Option<Timestamp>,
    moves: i64,
    actor: &str,
    now: Timestamp,
) -> Result<WorkflowChange> {
    let before = &loaded.workflow;
    let (mut steps, mut events, mut took, mut freed) = (Vec::new(), Vec::new(), false, false);
    for (old, step) in workflow.steps.changed(&before.steps) {
        let row = step_row(step)?;
        let held = old.is_some_and(|old| old.held().is_some());
        took |= row.locks.is_some() && !held;
        freed |= held && row.locks.is_none();
        if old.is_none_or(|old| old.status != step.status) {
            let from = old.map(|old| old.status.as_str());
            events.push((
                "workflow.step",
                json!({ "step_id": step.id, "name": step.title(), "from": from, "to": step.status.as_str(), "reason": step.reason, "install_id": loaded.row.install_id }),
            ));
        }
        steps.push(row);
    }
    let status = workflow.status();
    if status.as_str() != loaded.row.status {
        let data = json!({ "from": loaded.row.status, "to": status.as_str(), "type": loaded.row.kind, "install_id": loaded.row.install_id });
        events.push(("workflow.status", data));
    }
    let looks = looks(loaded, workflow, now);
    let mut body = Body {
        approve_all: workflow.approve_all.clone(),
        cancelled_by: workflow.cancelled_by.clone(),
        failure: workflow.trouble(),
        ..loaded.body.clone()
    };
    // Whoever denies all of its plans stays where the install was.
    let applies =
        |step: &Step| step.started_at.is_some() && step.work.is_deploy() && step.status != StepStatus::Discarded;
    let goes_over = status == WorkflowStatus::Success || workflow.steps.iter().any(applies);
    let pin = body.pin.take_if(|_| goes_over);
    let begun = workflow.steps.iter().any(|step| step.status != StepStatus::Pending);
    let row = WorkflowRow {
        status: status.as_str().to_owned(),
        body: serde_json::to_value(&body).map_err(corrupt)?,
        updated_at: now,
        started_at: loaded.row.started_at.or_else(|| begun.then_some(now)),
        finished_at: if status.is_over() { loaded.row.finished_at.or(Some(now)) } else { None },
        ..loaded.row.clone()
    };
    // What a stack tells about itself may come at the same time.
    let counts = took || outbox.parts.contains_key(crate::STACK);
    Ok(WorkflowChange {
        row,
        steps,
        displays: outbox.displays,
        parts: outbox.parts.into_iter().collect(),
        pin,
        due_at,
        moves: counts.then_some(moves),
        freed,
        events,
        looks,
        actor: actor.to_owned(),
        now,
    })
}

/// What the change tells of drift: how looks ended, and plans of deploys that found nothing to do.
fn looks(loaded: &Loaded, workflow: &Workflow, now: Timestamp) -> Vec<LookChange> {
    let is_look = loaded.row.kind.starts_with("drift_run");
    let mut found = Vec::new();
    for (old, step) in workflow.steps.changed(&loaded.workflow.steps) {
        if old.is_some_and(|old| old.status == step.status) || !step.work.is_plan() || step.work.is_teardown() {
            continue;
        }
        let plan = step.plan.as_ref();
        // What a plan is made of ends with how often its target had been changed.
        let generation = plan.and_then(|plan| plan.basis.rsplit_once('@')).and_then(|(_, n)| n.parse().ok());
        let look = |status: &str, body: serde_json::Value| Look {
            part: step.work.target(),
            workflow_id: workflow.id.clone(),
            step_id: step.id.clone(),
            status: status.to_owned(),
            body,
            looked_at: now,
            generation: generation.unwrap_or_default(),
            attempt: None,
        };
        let told = |plan: Option<&engine::Plan>| json!({ "digest": plan.map(|plan| plan.digest.as_str()), "changes": plan.map(|plan| plan.changes) });
        let is_noop = plan.is_some_and(|plan| plan.changes.is_noop());
        match step.status {
            StepStatus::Drifted | StepStatus::NoDrift if is_look && generation.is_some() => {
                found.push(LookChange::Found(look(step.status.as_str(), told(plan))));
            }
            // A deploy that found everything as it should be has looked, too.
            StepStatus::AutoSkipped if is_noop && generation.is_some() => {
                found.push(LookChange::Found(look(StepStatus::NoDrift.as_str(), told(plan))));
            }
            status if is_look && status.is_failed() && step.started_at.is_some() => {
                let body = json!({ "step_id": step.id, "workflow_id": workflow.id, "status": status.as_str(), "reason": step.reason, "at": now });
                found.push(LookChange::Failed(look("look-failed", body)));
            }
            _ => {}
        }
    }
    found
}

/// Whether there is something of a part: it was deployed, or an apply of it ended badly.
pub fn is_there(part: &serde_json::Value) -> bool {
    deployed::status_of(part).is_there()
}

/// Components that an install leaves out.
pub fn disabled(install: &Install, config: &config::AppConfig) -> BTreeSet<String> {
    let toggles = &install.settings.components;
    let off = config.components.iter().filter(|component| {
        let common = &component.common;
        common.toggleable && !toggles.get(&common.name).copied().unwrap_or(common.default_enabled)
    });
    off.map(|component| component.common.name.clone()).collect()
}
