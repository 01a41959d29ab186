//! Deploys and sandbox runs. Both are views of the steps that plan: a deploy is one attempt at a component, from its plan to its apply.

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::{Loaded, WantedDeploy};
use engine::{ComponentOp, Step, StepStatus, Work};
use http::StatusCode;
use model::{BuildId, PartStatus, StepId, id};
use serde_json::{Map, Value};
use store::{EntityKind, Install, StoreError, Target};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
use crate::control_api::apps::Search;
use crate::control_api::apps::action_workflows::outputs_of;
use crate::control_api::apps::components;
use crate::control_api::jobs;
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

pub(crate) const DEPLOY: &str = "dpl";
pub(crate) const SANDBOX_RUN: &str = "sbr";
/// Among so many of the newest is the deploy that a component is shown with; looks do not count.
const RECENT: u64 = 10;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get))
        .routes(routes!(sandbox_runs))
        .routes(routes!(sandbox_run))
        .routes(routes!(install_components))
        .routes(routes!(component_outputs))
        .routes(routes!(policy_reports))
}

/// What one attempt has come to: its plan, and its apply where there is one.
struct Attempt<'a> {
    loaded: &'a Loaded,
    plan: &'a Step,
    apply: Option<&'a Step>,
}

impl<'a> Attempt<'a> {
    fn of(loaded: &'a Loaded, step: &StepId) -> ApiResult<Self> {
        let steps = &loaded.workflow.steps;
        let plan = steps.iter().find(|known| known.id == *step).ok_or(StoreError::NotFound("deploy"))?;
        // The apply that came after this plan: a later plan of the group has its own.
        let next = steps.iter().find(|s| s.group == plan.group && s.slot == plan.slot && s.attempt == plan.attempt + 1);
        let until = next.map(|next| next.created_at);
        let apply = steps
            .iter()
            .rfind(|s| s.group == plan.group && s.work.is_apply() && until.is_none_or(|until| s.created_at < until));
        Ok(Self { loaded, plan, apply })
    }

    /// The word of the dialect, and what there is to say about it.
    fn status(&self) -> (&'static str, String) {
        let over = self.loaded.workflow.status().is_over();
        let (plan, apply) = (self.plan, self.apply);
        let teardown = plan.work.is_teardown();
        let word = match (plan.status, apply.map(|apply| apply.status)) {
            (StepStatus::Pending, _) if over => "cancelled",
            (StepStatus::Pending, _) => "queued",
            (StepStatus::InProgress, _) if matches!(plan.work, Work::SyncImage { .. }) => "syncing",
            (StepStatus::InProgress, _) => "planning",
            (StepStatus::ApprovalAwaiting, _) if over => "cancelled",
            (StepStatus::ApprovalAwaiting, _) => "pending-approval",
            (StepStatus::ApprovalDenied | StepStatus::DeniedSkipped | StepStatus::ApprovalExpired, _) => {
                "approval-denied"
            }
            (StepStatus::Error, _) => "error",
            (StepStatus::Unknown, _) | (StepStatus::Approved, Some(StepStatus::Unknown)) => "unknown",
            // It had failed, and people went on without it.
            (StepStatus::UserSkipped, _) => "error",
            // A newer attempt has taken its place: it had failed, or its plan was out of date.
            (StepStatus::Discarded, _) if plan.plan.is_none() && !plan.reason.is_empty() => "error",
            (StepStatus::Discarded, Some(StepStatus::Discarded)) if apply.is_some_and(|a| !a.reason.is_empty()) => {
                "error"
            }
            (StepStatus::Cancelled | StepStatus::NotAttempted | StepStatus::Discarded, _) => "cancelled",
            // Only a look for drift finds some; a plan that was asked for alone tells what a deploy would do.
            (StepStatus::Drifted | StepStatus::NoDrift, _) if !self.loaded.row.kind.starts_with("drift_run") => {
                "planned"
            }
            (StepStatus::Drifted, _) => "drifted",
            (StepStatus::NoDrift, _) => "no-drift",
            (StepStatus::AutoSkipped, _) => "auto-skipped",
            (StepStatus::Success, _) => "active",
            (StepStatus::Approved, Some(StepStatus::InProgress)) => "executing",
            (StepStatus::Approved, Some(StepStatus::Success)) if teardown => "inactive",
            (StepStatus::Approved, Some(StepStatus::Success)) => "active",
            (StepStatus::Approved, Some(StepStatus::Error | StepStatus::UserSkipped)) => "error",
            (StepStatus::Approved, Some(StepStatus::Pending)) if !over => "queued",
            (StepStatus::Approved, _) => "cancelled",
        };
        if plan.status == StepStatus::Pending && over {
            return (word, "it was not attempted".to_owned());
        }
        let said = apply.filter(|apply| !apply.reason.is_empty()).unwrap_or(plan);
        (word, said.reason.clone())
    }

    fn updated_at(&self) -> model::Timestamp {
        let times = |step: &Step| step.finished_at.or(step.started_at).unwrap_or(step.created_at);
        self.apply.map_or_else(|| times(self.plan), |apply| times(apply).max(times(self.plan)))
    }

    fn applied_at(&self) -> Option<model::Timestamp> {
        self.apply.filter(|apply| apply.status == StepStatus::Success).and_then(|apply| apply.finished_at)
    }

    fn role(&self) -> String {
        self.apply.and_then(|apply| apply.role.clone()).or_else(|| self.plan.role.clone()).unwrap_or_default()
    }

    async fn jobs(&self, state: &AppState, at: &InOrg) -> ApiResult<Vec<wire::Job>> {
        let mut found = Vec::new();
        for step in [Some(self.plan), self.apply].into_iter().flatten() {
            if let Some(job) = state.store().job_of_step(&at.org, &step.id).await? {
                found.push(jobs::wire(state, job, false).await?);
            }
        }
        Ok(found)
    }

    async fn report(&self, state: &AppState, at: &InOrg) -> ApiResult<Vec<wire::PolicyReport>> {
        Ok(report(state, at, self.loaded, self.plan).await?.into_iter().collect())
    }
}

/// What policies said about a step.
async fn report(state: &AppState, at: &InOrg, loaded: &Loaded, step: &Step) -> ApiResult<Option<wire::PolicyReport>> {
    let Some(display) = state.store().step_display(&at.org, &step.id).await? else { return Ok(None) };
    let Some(asked) = display["policies"]["asked"].as_u64() else { return Ok(None) };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let verdicts = display["policies"]["verdicts"].as_array().into_iter().flatten();
    let violations: Vec<wire::PolicyViolation> = verdicts
        .map(|verdict| wire::PolicyViolation {
            policy_name: text(&verdict["policy"]),
            severity: text(&verdict["severity"]),
            message: text(&verdict["message"]),
            input_identity: text(&verdict["object"]),
        })
        .collect();
    let count = |severity: &str| violations.iter().filter(|said| said.severity == severity).count() as u64;
    Ok(Some(wire::PolicyReport {
        id: id::twin("prp", step.id.as_str()),
        install_id: loaded.row.install_id.to_string(),
        workflow_id: loaded.row.id.to_string(),
        step: step.title(),
        policy_count: asked,
        deny_count: count("deny"),
        warn_count: count("warn"),
        evaluated_at: step.finished_at.or(step.asked_at).unwrap_or(step.created_at),
        component_name: step.work.component().unwrap_or_default().to_owned(),
        violations,
    }))
}

async fn deploy_shown(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    attempt: &Attempt<'_>,
    full: bool,
) -> ApiResult<wire::InstallDeploy> {
    let name = attempt.plan.work.component().unwrap_or_default().to_owned();
    let component = state.store().entity(&at.org, Some(&install.app_id), EntityKind::Component, &name).await;
    let component_id = component.map(|component| component.id).unwrap_or_default();
    let (status, description) = attempt.status();
    let kind = match &attempt.plan.work {
        Work::SyncImage { .. } => "sync-image",
        Work::ComponentPlan { op: ComponentOp::Teardown, .. } => "teardown",
        _ => "apply",
    };
    let workflow_id = attempt.loaded.row.id.to_string();
    let runner_jobs = if full { attempt.jobs(state, at).await? } else { Vec::new() };
    let outputs = if full && status == "active" {
        outputs_of(state, install, &format!("components/{name}")).await?
    } else {
        Map::new()
    };
    Ok(wire::InstallDeploy {
        id: id::twin(DEPLOY, attempt.plan.id.as_str()),
        install_id: install.id.to_string(),
        install_component_id: component_id.clone(),
        component_id,
        component_name: name,
        install_deploy_type: kind.into(),
        status: status.into(),
        status_v2: Some(wire::CompositeStatus { status: status.into(), status_human_description: description.clone() }),
        status_description: description,
        created_at: attempt.plan.created_at,
        created_by_id: attempt.loaded.row.created_by.to_string(),
        updated_at: attempt.updated_at(),
        install_workflow_id: workflow_id.clone(),
        workflow_id,
        build_id: String::new(),
        component_config_version: attempt.loaded.body.config_version,
        plan_only: attempt.plan.look_only,
        role: attempt.role(),
        planned_at: attempt.plan.asked_at,
        applied_at: attempt.applied_at(),
        outputs,
        log_stream: runner_jobs.last().map(|job| wire::LogStreamRef { id: job.log_stream_id.to_string() }),
        runner_jobs,
        policy_reports: if full { attempt.report(state, at).await? } else { Vec::new() },
    })
}

async fn loaded_of(state: &AppState, at: &InOrg, workflow: &model::WorkflowId) -> ApiResult<Loaded> {
    Ok(state.conductor.workflow(&at.org, workflow).await?)
}

async fn deploys_of(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    target: Target,
    offset: u64,
    limit: u64,
) -> ApiResult<Vec<wire::InstallDeploy>> {
    let found = state.store().steps_of_target(&at.org, &install.id, target, offset, limit).await?;
    let mut shown = Vec::with_capacity(found.len());
    for (workflow, step) in found {
        let loaded = loaded_of(state, at, &workflow).await?;
        shown.push(deploy_shown(state, at, install, &Attempt::of(&loaded, &step)?, false).await?);
    }
    Ok(shown)
}

/// Deploys of an install, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/deploys", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallDeploy]), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::InstallDeploy>> {
    let install = state.store().install(&at.org, &install).await?;
    let shown = deploys_of(&state, &at, &install, Target::Components, page.offset(), page.fetch()).await?;
    Ok(List::new(shown, page))
}

/// Deploys a build of a component: as the config said that it was built from.
#[utoipa::path(post, path = "/v1/installs/{install_id}/deploys", tag = "installs", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::CreateInstallDeploy, responses((status = 201, body = wire::InstallDeploy), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::CreateInstallDeploy>,
) -> ApiResult<(StatusCode, Json<wire::InstallDeploy>)> {
    let install = state.store().install(&at.org, &install).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = request.value;
    let build = BuildId::parse(&wanted.build_id).map_err(|_| StoreError::NotFound("build"))?;
    let build = state.store().build(&at.org, &build).await?;
    let wanted = WantedDeploy {
        with_dependents: wanted.deploy_dependents,
        plan_only: wanted.plan_only,
        role: Some(wanted.role).filter(|role| !role.is_empty()),
    };
    let workflow = state.conductor.deploy_build(&at.by(), &install, &build, wanted, idem).await?;
    let loaded = loaded_of(&state, &at, &workflow).await?;
    let target = format!("components/{}", build.component);
    let step = loaded.workflow.steps.iter().find(|step| step.work.is_attempt() && step.work.target() == target);
    let step = step.map(|step| step.id.clone()).ok_or(StoreError::NotFound("deploy"))?;
    let shown = deploy_shown(&state, &at, &install, &Attempt::of(&loaded, &step)?, true).await?;
    Ok((StatusCode::CREATED, Json(wire::InstallDeploy { build_id: build.id.to_string(), ..shown })))
}

/// The step that a deploy or a sandbox run is a view of.
fn step_of(prefix: &str, text: &str, what: &'static str) -> ApiResult<StepId> {
    if !id::is_valid(prefix, text) {
        return Err(StoreError::NotFound(what).into());
    }
    Ok(StepId::parse(&id::twin(StepId::PREFIX, text)).map_err(|_| StoreError::NotFound(what))?)
}

async fn loaded_attempt(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    step: &StepId,
    what: &'static str,
) -> ApiResult<Loaded> {
    let workflow = state.store().workflow_of_step(&at.org, step).await.map_err(|_| StoreError::NotFound(what))?;
    let loaded = loaded_of(state, at, &workflow).await?;
    if loaded.row.install_id != install.id {
        return Err(StoreError::NotFound(what).into());
    }
    Ok(loaded)
}

/// A deploy.
#[utoipa::path(get, path = "/v1/installs/{install_id}/deploys/{deploy_id}", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("deploy_id" = String, Path)), responses((status = 200, body = wire::InstallDeploy), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, deploy)): Path<(String, String)>,
) -> ApiResult<Json<wire::InstallDeploy>> {
    let install = state.store().install(&at.org, &install).await?;
    let step = step_of(DEPLOY, &deploy, "deploy")?;
    let loaded = loaded_attempt(&state, &at, &install, &step, "deploy").await?;
    let attempt = Attempt::of(&loaded, &step)?;
    if attempt.plan.work.component().is_none() {
        return Err(StoreError::NotFound("deploy").into());
    }
    Ok(Json(deploy_shown(&state, &at, &install, &attempt, true).await?))
}

async fn run_shown(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    attempt: &Attempt<'_>,
    full: bool,
) -> ApiResult<wire::InstallSandboxRun> {
    let Work::SandboxPlan { op } = &attempt.plan.work else { return Err(StoreError::NotFound("sandbox run").into()) };
    let (word, description) = attempt.status();
    let status = if word == "inactive" { "deprovisioned" } else { word };
    let workflow_id = attempt.loaded.row.id.to_string();
    let runner_jobs = if full { attempt.jobs(state, at).await? } else { Vec::new() };
    let outputs = if full && status == "active" { outputs_of(state, install, "sandbox").await? } else { Map::new() };
    Ok(wire::InstallSandboxRun {
        id: id::twin(SANDBOX_RUN, attempt.plan.id.as_str()),
        install_id: install.id.to_string(),
        run_type: op.name().into(),
        status: status.into(),
        status_v2: Some(wire::CompositeStatus { status: status.into(), status_human_description: description.clone() }),
        status_description: description,
        created_at: attempt.plan.created_at,
        created_by_id: attempt.loaded.row.created_by.to_string(),
        updated_at: attempt.updated_at(),
        install_workflow_id: workflow_id.clone(),
        workflow_id,
        role: attempt.role(),
        planned_at: attempt.plan.asked_at,
        applied_at: attempt.applied_at(),
        outputs,
        log_stream: runner_jobs.last().map(|job| wire::LogStreamRef { id: job.log_stream_id.to_string() }),
        runner_jobs,
        policy_reports: if full { attempt.report(state, at).await? } else { Vec::new() },
    })
}

/// Runs of an install's sandbox, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/sandbox-runs", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallSandboxRun]), (status = 404, body = api::ErrorBody)))]
async fn sandbox_runs(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::InstallSandboxRun>> {
    let install = state.store().install(&at.org, &install).await?;
    let target = Target::Part("sandbox".to_owned());
    let found = state.store().steps_of_target(&at.org, &install.id, target, page.offset(), page.fetch()).await?;
    let mut shown = Vec::with_capacity(found.len());
    for (workflow, step) in found {
        let loaded = loaded_of(&state, &at, &workflow).await?;
        shown.push(run_shown(&state, &at, &install, &Attempt::of(&loaded, &step)?, false).await?);
    }
    Ok(List::new(shown, page))
}

/// A run of an install's sandbox.
#[utoipa::path(get, path = "/v1/installs/{install_id}/sandbox-runs/{run_id}", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("run_id" = String, Path)), responses((status = 200, body = wire::InstallSandboxRun), (status = 404, body = api::ErrorBody)))]
async fn sandbox_run(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, run)): Path<(String, String)>,
) -> ApiResult<Json<wire::InstallSandboxRun>> {
    let install = state.store().install(&at.org, &install).await?;
    let step = step_of(SANDBOX_RUN, &run, "sandbox run")?;
    let loaded = loaded_attempt(&state, &at, &install, &step, "sandbox run").await?;
    Ok(Json(run_shown(&state, &at, &install, &Attempt::of(&loaded, &step)?, true).await?))
}

/// Whether a look has found a difference, and nothing was deployed since; newest first.
fn has_drifted(deploys: &[wire::InstallDeploy]) -> bool {
    let tells = |deploy: &&wire::InstallDeploy| {
        ["drifted", "no-drift", "auto-skipped", "active", "inactive"].contains(&deploy.status.as_str())
    };
    deploys.iter().find(tells).is_some_and(|last| last.status == "drifted")
}

/// The components of an install's app, each as it is there.
#[utoipa::path(get, path = "/v1/installs/{install_id}/components", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("q" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallComponent]), (status = 404, body = api::ErrorBody)))]
async fn install_components(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(search): Params<Search>,
) -> ApiResult<List<wire::InstallComponent>> {
    let page = search.page()?;
    let install = state.store().install(&at.org, &install).await?;
    let app = Some(&install.app_id);
    let kind = EntityKind::Component;
    let found = state.store().entities(&at.org, app, kind, &search.q, page.offset(), page.fetch()).await?;
    let parts = state.conductor.parts_now(&install).await?;
    let document = state.conductor.document_of(&install).await?;
    let disabled = document.map(|document| conductor::disabled(&install, &document.config)).unwrap_or_default();
    let mut shown = Vec::with_capacity(found.len());
    for component in found {
        let target = format!("components/{}", component.name);
        let part = parts.get(&target).unwrap_or(&Value::Null);
        let mut deploys = deploys_of(&state, &at, &install, Target::Part(target.clone()), 0, RECENT).await?;
        let drifted = has_drifted(&deploys);
        deploys.retain(|deploy| !deploy.plan_only);
        deploys.truncate(1);
        shown.push(wire::InstallComponent {
            id: component.id.clone(),
            install_id: install.id.to_string(),
            component_id: component.id.clone(),
            status: PartStatus::parse(part["status"].as_str()).as_str().to_owned(),
            status_description: deploys.first().map(|last| last.status_description.clone()).unwrap_or_default(),
            created_at: component.created_at,
            updated_at: deploys.first().map_or(component.updated_at, |last| last.updated_at),
            enabled: !disabled.contains(&component.name),
            config_version: part["config_version"].as_u64().unwrap_or_default(),
            drifted,
            component: Some(components::shown(component, 0)),
            install_deploys: deploys,
        });
    }
    Ok(List::new(shown, page))
}

/// What a component has put out on an install.
#[utoipa::path(get, path = "/v1/installs/{install_id}/components/{component_id}/outputs", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("component_id" = String, Path, description = "name or id")), responses((status = 200, body = Value), (status = 404, body = api::ErrorBody)))]
async fn component_outputs(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, component)): Path<(String, String)>,
) -> ApiResult<Json<Value>> {
    let install = state.store().install(&at.org, &install).await?;
    let component = state.store().entity(&at.org, Some(&install.app_id), EntityKind::Component, &component).await?;
    let outputs = outputs_of(&state, &install, &format!("components/{}", component.name)).await?;
    Ok(Json(Value::Object(outputs)))
}

/// What policies said about the plans of an install, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/policy-reports", tag = "policies", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::PolicyReport]), (status = 404, body = api::ErrorBody)))]
async fn policy_reports(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::PolicyReport>> {
    let install = state.store().install(&at.org, &install).await?;
    let found = state.store().judged_steps(&at.org, &install.id, page.offset(), page.fetch()).await?;
    let mut shown = Vec::with_capacity(found.len());
    for (workflow, step) in found {
        let loaded = loaded_of(&state, &at, &workflow).await?;
        let step = loaded.workflow.steps.iter().find(|known| known.id == step);
        if let Some(step) = step {
            shown.extend(report(&state, &at, &loaded, step).await?);
        }
    }
    Ok(List::new(shown, page))
}
