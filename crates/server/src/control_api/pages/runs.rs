//! A run: a workflow as a page shows it, with bars, reasons, and what may be done.

use std::collections::HashMap;

use api::control::{Can, Cans, RunProgress, RunStep, RunView, RunningWorkflow, StepWord, WaitingReason, WorkflowWord};
use axum::Json;
use axum::extract::{Path, State};
use conductor::Loaded;
use engine::{Step, StepKind, StepStatus, Work, WorkflowStatus};
use model::deploy::ResourceStatus;
use model::{JobState, Role, Timestamp, WorkflowId};
use store::{Install, Job, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::plans::{answer, changes, plan_cans, policies};
use super::{Names, may_if, word};
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::error::ApiResult;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(run))
}

/// Resources that one step names while it works at them.
const PROGRESS_MAX: usize = 20;

/// When a plan that waits expires.
pub(super) fn expires_at(step: &Step) -> Option<Timestamp> {
    let waits = step.status == StepStatus::ApprovalAwaiting;
    step.asked_at.filter(|_| waits).map(|asked| asked.plus_s(conductor::ANSWER_S))
}

/// `deploy storefront`, as people call it.
pub(super) fn title(loaded: &Loaded) -> String {
    use engine::WorkflowKind as K;
    let request = &loaded.body.request;
    let text = match &request.kind {
        K::ManualDeploy { component, .. } => format!("deploy {component}"),
        K::TeardownComponent { component, .. } => format!("tear down {component}"),
        K::DriftRun { component } => format!("look for drift at {component}"),
        K::DriftRunReprovisionSandbox => "look for drift at the sandbox".to_owned(),
        K::ActionWorkflowRun { action, .. } => format!("run {action}"),
        K::RunbookRun { runbook } => format!("run {runbook}"),
        K::DeployComponents { components } if components.is_empty() => "deploy all components".to_owned(),
        K::DeployComponents { components } => format!("deploy {}", components.join(", ")),
        K::InputUpdate { inputs } => format!("change {}", inputs.join(", ")),
        K::TeardownComponents => "tear down all components".to_owned(),
        K::SyncSecrets => "sync secrets".to_owned(),
        kind => kind.name().replace('_', " "),
    };
    if request.plan_only { format!("{text} (plan only)") } else { text }
}

fn work(work: &Work) -> &'static str {
    match work {
        Work::SandboxPlan { .. } => "sandbox-plan",
        Work::SandboxApply { .. } => "sandbox-apply",
        Work::ComponentPlan { .. } => "plan",
        Work::ComponentApply { .. } => "apply",
        Work::Action { .. } => "action",
        Work::Script { .. } => "script",
        Work::SyncImage { .. } => "image",
        Work::VerifyHealth { .. } => "health",
        Work::SyncSecrets | Work::RemoveSecrets { .. } => "secrets",
        Work::Skipped { .. } => "skipped",
        Work::GenerateState
        | Work::RunnerServiceAccount
        | Work::GenerateStack
        | Work::AwaitStack
        | Work::UpdateStackOutputs
        | Work::AwaitRunner => "wait",
    }
}

/// What people may do with a step.
pub(super) fn step_cans(at: &InOrg, loaded: &Loaded, step: &Step) -> Cans {
    let workflow = &loaded.workflow;
    let ended = workflow.status().is_over() && workflow.cancelled_by.is_some();
    let why = if ended { "the workflow was cancelled" } else { "only a step that has failed can be" };
    let retry = may_if(at, Role::Operator, workflow.can_retry(step), &format!("{why} retried"));
    let skip = may_if(at, Role::Operator, workflow.can_skip(step), &format!("{why} skipped"));
    Cans::from([("retry".to_owned(), retry), ("skip".to_owned(), skip)])
}

/// A workflow: its steps in their order with bars and reasons, and what may be done.
#[utoipa::path(get, path = "/v1/workflows/{workflow_id}/view", tag = "pages", security(("token" = ["read-only"])), params(("workflow_id" = String, Path)), responses((status = 200, body = RunView), (status = 404, body = api::ErrorBody)))]
async fn run(State(state): State<AppState>, Reader(at): Reader, Path(id): Path<String>) -> ApiResult<Json<RunView>> {
    let id = WorkflowId::parse(&id).map_err(|_| StoreError::NotFound("workflow"))?;
    let loaded = state.conductor.workflow(&at.org, &id).await?;
    Ok(Json(view(&state, &at, &loaded).await?))
}

async fn view(state: &AppState, at: &InOrg, loaded: &Loaded) -> ApiResult<RunView> {
    let (row, workflow) = (&loaded.row, &loaded.workflow);
    let install = state.store().install(&at.org, row.install_id.as_str()).await?;
    let app = state.store().app(&at.org, install.app_id.as_str()).await?;
    let names = Names::of(state, at).await?;
    let now = state.conductor.now();
    let status = workflow.status();
    let jobs = jobs_of(state, at, &install, loaded).await?;
    let frame = Frame { at, loaded, names: &names, jobs: &jobs, begin: row.started_at.unwrap_or(row.created_at), now };
    let mut steps: Vec<&Step> = workflow.steps.iter().filter(|step| step.work.kind() != StepKind::Hidden).collect();
    steps.sort_by_key(|step| (step.slot, step.attempt));
    let current = workflow.current();
    let mut shown = Vec::with_capacity(steps.len());
    for step in &steps {
        let mut one = frame.step(step, &current);
        add_progress(state, &jobs, step, &mut one).await?;
        shown.push(one);
    }
    let newest = current.iter().map(|at| &workflow.steps[*at]).filter(|step| step.work.kind() != StepKind::Hidden);
    let newest: Vec<&Step> = newest.collect();
    let focus = focus(loaded, &newest).map(|step| step.id.to_string()).unwrap_or_default();
    let waits = shown.iter().find(|step| step.id == focus).and_then(|step| step.waits.clone());
    Ok(RunView {
        id: row.id.to_string(),
        r#type: row.kind.clone(),
        title: title(loaded),
        status: word!(WorkflowWord, status.as_str(), WorkflowWord::Error),
        install_id: install.id.to_string(),
        install_name: install.name.clone(),
        app_id: app.id.to_string(),
        app_name: app.name,
        created_by: names.name(row.created_by.as_str()),
        created_at: row.created_at,
        approval_option: if loaded.body.approve_all.is_some() { "approve-all" } else { "prompt" }.into(),
        span_ms: shown.iter().map(|step| step.offset_ms + step.took_ms).max().unwrap_or_default(),
        can: run_cans(at, loaded, jobs.values().any(|(job, _)| job.state == JobState::Unknown)),
        plan_only: loaded.body.request.plan_only,
        started_at: row.started_at,
        finished_at: row.finished_at,
        config_version: if loaded.body.request.brings_a_version() { loaded.body.config_version } else { 0 },
        trouble: workflow.trouble().filter(|_| status.is_over()).unwrap_or_default(),
        waits,
        focus,
        done: newest.iter().filter(|step| step.status.is_done()).count() as u64,
        total: newest.len() as u64,
        continue_on_error: loaded.body.on_error == engine::OnError::Continue,
        cancelled_by: loaded.body.cancelled_by.clone().unwrap_or_default(),
        approved_by: loaded.body.approve_all.clone().unwrap_or_default(),
        command: format!("ferry workflows watch {}", row.id),
        steps: shown,
    })
}

fn run_cans(at: &InOrg, loaded: &Loaded, unknown: bool) -> Cans {
    let over = loaded.workflow.status().is_over();
    let cancel = may_if(at, Role::Operator, !over, "the workflow is over");
    let all = match &loaded.body.approve_all {
        Some(by) => Can::no(format!("{by} approved all plans already")),
        None => may_if(at, Role::Approver, !over, "the workflow is over"),
    };
    let settle = may_if(at, Role::Operator, unknown, "no job has an unknown outcome");
    Cans::from([("cancel".to_owned(), cancel), ("approve_all".to_owned(), all), ("settle".to_owned(), settle)])
}

/// The step that a page opens with: what waits for a person, else what failed, else what runs, else the last.
fn focus<'a>(loaded: &Loaded, newest: &[&'a Step]) -> Option<&'a Step> {
    let over = loaded.workflow.status() == WorkflowStatus::Success;
    let with = |wanted: fn(StepStatus) -> bool| newest.iter().find(|step| wanted(step.status)).copied();
    with(|status| status == StepStatus::ApprovalAwaiting)
        .or_else(|| with(|status| status == StepStatus::Unknown))
        .or_else(|| with(|status| matches!(status, StepStatus::Error | StepStatus::ApprovalDenied)))
        .or_else(|| with(|status| status == StepStatus::InProgress))
        .or_else(|| with(|status| status == StepStatus::Pending).filter(|_| !over))
        .or_else(|| newest.iter().rev().find(|step| step.plan.is_some() || step.started_at.is_some()).copied())
        .or_else(|| newest.last().copied())
}

/// The job of each step that has one, with its reason to wait.
type Jobs = HashMap<String, (Job, Option<String>)>;

async fn jobs_of(state: &AppState, at: &InOrg, install: &Install, loaded: &Loaded) -> ApiResult<Jobs> {
    let mut found = HashMap::new();
    for job in state.store().jobs_of_workflow(&at.org, &loaded.row.id).await? {
        let reason = state.conductor.waiting_reason(&job).await?;
        if let Some(step) = job.step_id.clone() {
            found.insert(step.to_string(), (job, reason));
        }
    }
    debug_assert!(found.values().all(|(job, _)| job.install_id.as_ref() == Some(&install.id)), "jobs of the install");
    Ok(found)
}

struct Frame<'a> {
    at: &'a InOrg,
    loaded: &'a Loaded,
    names: &'a Names,
    jobs: &'a Jobs,
    begin: Timestamp,
    now: Timestamp,
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

impl Frame<'_> {
    /// A job of unknown outcome can be settled whatever became of its step.
    fn cans(&self, step: &Step, job: Option<&Job>) -> Cans {
        let mut cans = match step.plan {
            Some(_) => plan_cans(self.at, self.loaded, step),
            None => step_cans(self.at, self.loaded, step),
        };
        let unknown = job.is_some_and(|job| job.state == JobState::Unknown);
        let settle = may_if(self.at, Role::Operator, unknown, "only a job whose outcome is unknown can be settled");
        cans.insert("settle".to_owned(), settle);
        cans
    }

    fn step(&self, step: &Step, current: &[usize]) -> RunStep {
        let workflow = &self.loaded.workflow;
        let over = workflow.status().is_over();
        let status = workflow.shown(step, over);
        let job = self.jobs.get(step.id.as_str());
        let said = workflow.waiting(step, current, over);
        let reason = if status == StepStatus::Pending { String::new() } else { said.clone() };
        let waits = self.waits(step, status, &said, job);
        let plan = step.plan.as_ref();
        let until = step.finished_at.unwrap_or(self.now);
        RunStep {
            id: step.id.to_string(),
            name: step.title(),
            status: word!(StepWord, status.as_str(), StepWord::Unknown),
            kind: step.work.kind().name().to_owned(),
            idx: step.slot.into(),
            group: step.group.into(),
            attempt: step.attempt.into(),
            can: self.cans(step, job.map(|(job, _)| job)),
            component: step.work.component().unwrap_or_default().to_owned(),
            work: work(&step.work).to_owned(),
            after: step.after.iter().map(|slot| u64::from(*slot)).collect(),
            reason,
            waits,
            started_at: step.started_at,
            finished_at: step.finished_at,
            offset_ms: step.started_at.map(|at| millis(self.begin, at)).unwrap_or_default(),
            took_ms: step.started_at.map(|at| millis(at, until)).unwrap_or_default(),
            replaced: step.status == StepStatus::Discarded,
            job_id: job.map(|(job, _)| job.id.to_string()).unwrap_or_default(),
            job_status: job.map(|(job, _)| job.state.to_string()).unwrap_or_default(),
            log_stream_id: job.map(|(job, _)| job.log_stream_id.to_string()).unwrap_or_default(),
            digest: plan.map(|plan| plan.digest.clone()).unwrap_or_default(),
            changes: plan.map(|plan| changes(&plan.changes)),
            data_loss: plan.map(|plan| plan.stateful).unwrap_or_default(),
            policies: plan.and_then(|plan| policies(&plan.policies)),
            answer: answer(step, self.names),
            expires_at: expires_at(step),
            role: step.role.clone().unwrap_or_default(),
            progress: Vec::new(),
        }
    }

    /// For what a step waits, as a code, a sentence, and what it is about.
    fn waits(
        &self,
        step: &Step,
        status: StepStatus,
        said: &str,
        job: Option<&(Job, Option<String>)>,
    ) -> Option<WaitingReason> {
        let reason = |code: &str, text: String, subject: (&str, String)| {
            Some(WaitingReason {
                code: code.to_owned(),
                text,
                subject_type: subject.0.to_owned(),
                subject_id: subject.1,
            })
        };
        match status {
            StepStatus::ApprovalAwaiting => {
                let text = format!("waits for your approval of \"{}\"", step.title());
                let asks = step.plan.as_ref().and_then(|plan| plan.ask.as_ref()).map(|ask| format!(": {ask}"));
                reason("approval", text + &asks.unwrap_or_default(), ("step", step.id.to_string()))
            }
            StepStatus::Pending if !said.is_empty() => {
                let code = if said.starts_with("waits for ") { "earlier-step" } else { "target-busy" };
                reason(code, said.to_owned(), ("step", step.id.to_string()))
            }
            StepStatus::InProgress => {
                if let Some((job, Some(why))) = job {
                    return reason(code_of(why), why.clone(), ("runner", job.runner_id.to_string()));
                }
                let waiting = job.is_none_or(|(job, _)| job.state == JobState::Unknown) && !said.is_empty();
                let code = match &step.work {
                    Work::AwaitRunner => "runner-offline",
                    Work::AwaitStack | Work::GenerateStack => "stack",
                    Work::VerifyHealth { .. } => "health",
                    _ => "other",
                };
                if waiting { reason(code, said.to_owned(), ("step", step.id.to_string())) } else { None }
            }
            _ => None,
        }
    }
}

/// The kind of reason that a queued job gives.
fn code_of(why: &str) -> &'static str {
    if why.starts_with("runner offline") || why.starts_with("runner disconnected") || why.starts_with("no runner") {
        "runner-offline"
    } else if why.starts_with("disabled") || why.contains("revoked") || why.contains("draining") {
        "runner-disabled"
    } else if why.contains("is held by") {
        "target-busy"
    } else {
        "runner-busy"
    }
}

/// What an apply that runs is at.
async fn add_progress(state: &AppState, jobs: &Jobs, step: &Step, shown: &mut RunStep) -> ApiResult<()> {
    let Some((job, _)) = jobs.get(step.id.as_str()) else { return Ok(()) };
    if !matches!(job.state, JobState::Running | JobState::Unknown) || !step.work.is_apply() {
        return Ok(());
    }
    let executions = state.store().executions_of(&job.id).await?;
    let last = executions.into_iter().find(|execution| execution.epoch == job.epoch);
    let resources = last.into_iter().flat_map(|execution| execution.steps).flat_map(|step| step.resources);
    let mut resources: Vec<_> = resources.collect();
    resources.reverse();
    shown.progress = resources
        .into_iter()
        .take(PROGRESS_MAX)
        .map(|resource| RunProgress {
            address: resource.address,
            action: resource.action,
            status: match resource.status {
                ResourceStatus::Started => "started",
                ResourceStatus::Done => "done",
                ResourceStatus::Failed => "failed",
            }
            .to_owned(),
            took_s: resource.took_s.unwrap_or_default(),
        })
        .collect();
    Ok(())
}

/// A workflow that is not over, in a line.
pub(super) fn running(loaded: &Loaded, install_name: String) -> RunningWorkflow {
    let workflow = &loaded.workflow;
    let steps: Vec<&Step> = workflow.current().into_iter().map(|at| &workflow.steps[at]).collect();
    let steps: Vec<&Step> = steps.into_iter().filter(|step| step.work.kind() != StepKind::Hidden).collect();
    let now = steps.iter().find(|step| step.status == StepStatus::InProgress);
    RunningWorkflow {
        id: loaded.row.id.to_string(),
        install_id: loaded.row.install_id.to_string(),
        install_name,
        r#type: loaded.row.kind.clone(),
        status: workflow.status().as_str().to_owned(),
        done: steps.iter().filter(|step| step.status.is_done()).count() as u64,
        total: steps.len() as u64,
        started_at: loaded.row.started_at.unwrap_or(loaded.row.created_at),
        now: now.map(|step| step.title()).unwrap_or_default(),
    }
}
