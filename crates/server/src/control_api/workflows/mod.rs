//! Owns the routes of workflows, deploys and runbooks.
//! Clients call them.
//! No decision about steps: that is `engine`.
//!
//! Workflows: starting them, looking at them, and saying what shall become of their steps.

pub(crate) mod deploys;
pub(crate) mod runbooks;

use std::collections::HashMap;

use api::{control as wire, headers};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use conductor::{Answer, Body, Document, Loaded, NewWorkflow};
use config::ComponentKind;
use engine::{Event, OnError, Response, Step, Work, WorkflowKind, WorkflowStatus};
use http::StatusCode;
use model::{AccountId, StepId, Timestamp, WorkflowId, id};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{Install, StoreError, WorkflowFilter, WorkflowRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Approver, InOrg, Operator, Reader};
use crate::control_api::apps::action_workflows::view;
use crate::control_api::installs::inputs::HIDDEN;
use crate::control_api::workflows::deploys::{DEPLOY, SANDBOX_RUN};
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(of_install, create))
        .routes(routes!(deploy_all))
        .routes(routes!(reprovision))
        .routes(routes!(deprovision))
        .routes(routes!(teardown_all))
        .routes(routes!(teardown))
        .routes(routes!(reprovision_sandbox))
        .routes(routes!(deprovision_sandbox))
        .routes(routes!(get, update))
        .routes(routes!(cancel))
        .routes(routes!(steps))
        .routes(routes!(step))
        .routes(routes!(find_step))
        .routes(routes!(contents))
        .routes(routes!(answer))
        .routes(routes!(retry))
        .routes(routes!(skip))
        .routes(routes!(state))
        .routes(routes!(state_versions))
}

/// The answer of whatever starts a workflow; the header is for clients that look there.
pub(crate) struct Started(pub(crate) WorkflowId);

impl IntoResponse for Started {
    fn into_response(self) -> axum::response::Response {
        let id = self.0.to_string();
        let header = [(headers::WORKFLOW, id.clone())];
        (StatusCode::CREATED, header, Json(wire::WorkflowStarted { workflow_id: id })).into_response()
    }
}

fn workflow_id(text: &str) -> ApiResult<WorkflowId> {
    Ok(WorkflowId::parse(text).map_err(|_| StoreError::NotFound("workflow"))?)
}

fn step_id(text: &str) -> ApiResult<StepId> {
    Ok(StepId::parse(text).map_err(|_| StoreError::NotFound("step"))?)
}

pub(crate) fn nanoseconds(from: Option<Timestamp>, to: Option<Timestamp>) -> i64 {
    let lasted = from.zip(to).map(|(from, to)| to.since(from).as_nanos());
    lasted.map_or(0, |lasted| i64::try_from(lasted).unwrap_or(i64::MAX))
}

/// A workflow as lists show it.
fn head(row: &WorkflowRow, owner_name: String) -> wire::Workflow {
    // One that another version wrote has only what its row says.
    let body = Body::of(row).ok();
    let body = body.as_ref();
    let request = body.map(|body| &body.request);
    let all = body.is_some_and(|body| body.approve_all.is_some());
    let version = body.filter(|body| body.request.brings_a_version()).map(|body| body.config_version);
    let kind = request.and_then(|request| serde_json::to_value(&request.kind).ok());
    wire::Workflow {
        id: row.id.to_string(),
        r#type: row.kind.clone(),
        status: wire::CompositeStatus {
            status: row.status.clone(),
            status_human_description: body.and_then(|body| body.failure.clone()).unwrap_or_default(),
        },
        owner_id: row.install_id.to_string(),
        owner_type: "installs".into(),
        name: row.kind.replace('_', " "),
        created_by_id: row.created_by.to_string(),
        created_at: row.created_at,
        updated_at: row.updated_at,
        approval_option: if all { "approve-all" } else { "prompt" }.into(),
        owner_name,
        plan_only: request.is_some_and(|request| request.plan_only),
        finished: row.finished_at.is_some(),
        started_at: row.started_at,
        finished_at: row.finished_at,
        execution_time: nanoseconds(row.started_at, row.finished_at),
        step_error_behavior: body.map(|body| body.on_error.as_str().to_owned()).unwrap_or_default(),
        config_version: version.unwrap_or_default(),
        metadata: kind.and_then(|kind| kind.as_object().cloned()).unwrap_or_default(),
        steps: Vec::new(),
    }
}

pub(crate) async fn whole(state: &AppState, loaded: &Loaded) -> ApiResult<wire::Workflow> {
    let install = state.store().install(&loaded.row.org_id, loaded.row.install_id.as_str()).await?;
    let mut shown = head(&loaded.row, install.name);
    shown.steps = steps_shown(state, loaded, &install.app_id, 0, usize::MAX).await?;
    Ok(shown)
}

/// Every attempt in the order of the steps, from one to another of them: a page of a long workflow costs no more than it shows.
async fn steps_shown(
    state: &AppState,
    loaded: &Loaded,
    app: &model::AppId,
    offset: usize,
    limit: usize,
) -> ApiResult<Vec<wire::WorkflowStep>> {
    let document = state.conductor.document(&loaded.row.org_id, app, &loaded.body.config_id).await?;
    let view = View::new(loaded, &document);
    let mut all: Vec<&Step> = loaded.workflow.steps.iter().collect();
    all.sort_by_key(|step| (step.slot, step.attempt));
    let mut shown: Vec<wire::WorkflowStep> =
        all.into_iter().skip(offset).take(limit).map(|step| view.step(step)).collect();
    for step in shown.iter_mut().filter(|step| step.status.status == "in-progress") {
        add_job(state, &loaded.row.org_id, step).await?;
    }
    Ok(shown)
}

/// The job of a step, and for what that waits.
async fn add_job(state: &AppState, org: &model::OrgId, step: &mut wire::WorkflowStep) -> ApiResult<()> {
    let Some(job) = state.store().job_of_step(org, &step_id(&step.id)?).await? else { return Ok(()) };
    step.runner_job_id = job.id.to_string();
    if step.status.status_human_description.is_empty()
        && let Some(reason) = state.conductor.waiting_reason(&job).await?
    {
        step.status.status_human_description = reason;
    }
    Ok(())
}

/// What the steps of a workflow are shown with.
struct View<'a> {
    loaded: &'a Loaded,
    current: Vec<usize>,
    over: bool,
    /// The newest plan of every group.
    plans: HashMap<u32, &'a Step>,
    /// What the dialect calls the plan of a component.
    approvals: HashMap<&'a str, &'static str>,
}

impl<'a> View<'a> {
    fn new(loaded: &'a Loaded, document: &'a Document) -> Self {
        let workflow = &loaded.workflow;
        let approval = |component: &'a config::Component| {
            let kind = match &component.kind {
                ComponentKind::HelmChart(_) => "helm_approval",
                ComponentKind::KubernetesManifest(_) => "kubernetes_manifest_approval",
                ComponentKind::Pulumi(_) => "pulumi_plan",
                _ => "terraform_plan",
            };
            (component.common.name.as_str(), kind)
        };
        Self {
            loaded,
            current: workflow.current(),
            over: workflow.status().is_over(),
            plans: workflow.steps.iter().filter(|step| step.work.is_attempt()).map(|step| (step.group, step)).collect(),
            approvals: document.config.components.iter().map(approval).collect(),
        }
    }

    fn step(&self, step: &Step) -> wire::WorkflowStep {
        let (loaded, workflow, current, over) = (self.loaded, &self.loaded.workflow, &self.current, self.over);
        let status = workflow.shown(step, over);
        let plan = if step.work.is_attempt() { Some(step) } else { self.plans.get(&step.group).copied() };
        let twin = |prefix| plan.map(|plan| id::twin(prefix, plan.id.as_str())).unwrap_or_default();
        let (target_type, target) = match &step.work {
            Work::SandboxPlan { .. } | Work::SandboxApply { .. } => ("install_sandbox_runs", twin(SANDBOX_RUN)),
            Work::ComponentPlan { .. } | Work::ComponentApply { .. } | Work::SyncImage { .. } => {
                ("install_deploys", twin(DEPLOY))
            }
            Work::Action { .. } | Work::Script { .. } => ("install_action_workflow_runs", String::new()),
            _ => ("", String::new()),
        };
        let kind = step.work.component().and_then(|name| self.approvals.get(name)).copied().unwrap_or("terraform_plan");
        wire::WorkflowStep {
            id: step.id.to_string(),
            workflow_id: workflow.id.to_string(),
            name: step.title(),
            idx: step.slot.into(),
            group_idx: step.group.into(),
            group_retry_idx: step.attempt.into(),
            execution_type: step.work.kind().name().into(),
            status: wire::CompositeStatus {
                status: status.as_str().into(),
                status_human_description: workflow.waiting(step, current, over),
            },
            created_at: step.created_at,
            after: step.after.iter().map(|slot| u64::from(*slot)).collect(),
            retryable: workflow.can_retry(step),
            skippable: workflow.can_skip(step),
            retried: step.status == engine::StepStatus::Discarded,
            finished: step.finished_at.is_some(),
            started_at: step.started_at,
            finished_at: step.finished_at,
            execution_time: nanoseconds(step.started_at, step.finished_at),
            step_target_type: target_type.into(),
            step_target_id: target,
            owner_id: loaded.row.install_id.to_string(),
            owner_type: "installs".into(),
            runner_job_id: String::new(),
            approval: step.plan.as_ref().map(|plan| wire::StepApproval {
                id: plan.digest.clone(),
                workflow_step_id: step.id.to_string(),
                r#type: kind.into(),
                created_at: step.asked_at,
                response: step.answer.as_ref().map(|answer| wire::StepApprovalResponse {
                    id: step.id.to_string(),
                    r#type: answer.response.clone(),
                    note: answer.note.clone(),
                    created_by_id: answer.by.clone(),
                    created_at: Some(answer.at),
                }),
            }),
            changes: step.plan.as_ref().map(|plan| wire::PlanChanges {
                create: plan.changes.create,
                update: plan.changes.update,
                replace: plan.changes.replace,
                destroy: plan.changes.destroy,
                outputs: plan.changes.outputs,
                import: plan.changes.import,
                moved: plan.changes.moved,
                forget: plan.changes.forget,
                other: plan.changes.other,
                recorded: plan.changes.recorded,
            }),
            policies: step.plan.as_ref().filter(|plan| plan.policies.asked > 0).map(|plan| wire::PolicyCounts {
                asked: plan.policies.asked,
                denied: plan.policies.denied,
                warned: plan.policies.warned,
            }),
            role: step.role.clone().unwrap_or_default(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct WorkflowQuery {
    r#type: Option<String>,
    /// Words, with commas between them.
    status: Option<String>,
    install: Option<String>,
    actor: Option<String>,
    /// The workflows before this one.
    cursor: Option<String>,
    offset: Option<u64>,
    limit: Option<u64>,
    page: Option<u64>,
}

impl WorkflowQuery {
    fn page(&self) -> Page {
        Page { offset: self.offset, limit: self.limit, page: self.page }
    }

    /// What is asked for beside a page of the newest; such a list goes on with `cursor`.
    async fn filter(&self, state: &AppState, at: &InOrg) -> ApiResult<Option<WorkflowFilter>> {
        let given = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
        let (status, install, actor) = (given(&self.status), given(&self.install), given(&self.actor));
        let cursor = given(&self.cursor);
        if status.is_none() && install.is_none() && actor.is_none() && cursor.is_none() {
            return Ok(None);
        }
        let statuses: Vec<String> =
            status.iter().flat_map(|text| text.split(',')).map(|word| word.trim().to_owned()).collect();
        if let Some(word) = statuses.iter().find(|word| WorkflowStatus::parse(word).is_none()) {
            let known = WorkflowStatus::ALL.map(WorkflowStatus::as_str).join(", ");
            return Err(ApiError::invalid(format!("`status` can't be `{word}`; use {known}")));
        }
        let install = match install {
            Some(name) => Some(state.store().install(&at.org, &name).await?.id),
            None => None,
        };
        let actor = match actor {
            Some(actor) => {
                let members = state.store().members(&at.org).await?;
                let known = members.into_iter().find(|it| it.email.eq_ignore_ascii_case(&actor));
                let id = known.map_or_else(|| AccountId::parse(&actor), |known| Ok(known.account_id));
                Some(id.map_err(|_| ApiError::invalid(format!("`{actor}` is no member of the org")))?)
            }
            None => None,
        };
        let before = cursor.map(|text| workflow_id(&text)).transpose()?;
        Ok(Some(WorkflowFilter { install, kind: given(&self.r#type), statuses, actor, before }))
    }
}

/// Workflows of the org, newest first; with `cursor`, those that are older than the one that it names.
#[utoipa::path(get, path = "/v1/workflows", tag = "workflows", security(("token" = ["read-only"])), params(("type" = Option<String>, Query), ("status" = Option<String>, Query, description = "words, with commas between them"), ("install" = Option<String>, Query, description = "name or id"), ("actor" = Option<String>, Query, description = "id or address of the account that started it"), ("cursor" = Option<String>, Query, description = "id of the last workflow that is known"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::Workflow]), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(wanted): Params<WorkflowQuery>,
) -> ApiResult<List<wire::Workflow>> {
    let page = wanted.page();
    let found = match wanted.filter(&state, &at).await? {
        Some(filter) => state.store().filtered_workflows(&at.org, filter, page.fetch()).await?,
        None => state.store().workflows(&at.org, None, wanted.r#type.as_deref(), page.offset(), page.fetch()).await?,
    };
    let mut names: HashMap<String, String> = HashMap::new();
    let mut shown = Vec::with_capacity(found.len());
    for row in found {
        let id = row.install_id.as_str();
        if !names.contains_key(id) {
            // It may be forgotten by now.
            let install = state.store().install(&at.org, id).await;
            names.insert(id.to_owned(), install.map(|install| install.name).unwrap_or_default());
        }
        shown.push(head(&row, names.get(id).cloned().unwrap_or_default()));
    }
    Ok(List::new(shown, page))
}

/// Workflows of an install, newest first.
#[utoipa::path(get, path = "/v1/installs/{install_id}/workflows", tag = "workflows", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("type" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::Workflow]), (status = 404, body = api::ErrorBody)))]
async fn of_install(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(wanted): Params<WorkflowQuery>,
) -> ApiResult<List<wire::Workflow>> {
    let install = state.store().install(&at.org, &install).await?;
    let (page, kind) = (wanted.page(), wanted.r#type.as_deref());
    let found = state.store().workflows(&at.org, Some(&install.id), kind, page.offset(), page.fetch()).await?;
    let shown = found.iter().map(|row| head(row, install.name.clone()));
    Ok(List::new(shown.collect(), page))
}

fn kind(body: &wire::CreateWorkflow) -> ApiResult<WorkflowKind> {
    let need = |what: &str, value: &str| {
        if value.is_empty() {
            Err(ApiError::invalid(format!("`{}` needs `{what}`", body.r#type)))
        } else {
            Ok(value.to_owned())
        }
    };
    let component = || need("component", &body.component);
    Ok(match body.r#type.as_str() {
        "provision" => WorkflowKind::Provision,
        "reprovision" => WorkflowKind::Reprovision,
        "reprovision_sandbox" => WorkflowKind::ReprovisionSandbox { skip_components: body.skip_components },
        "deprovision" => WorkflowKind::Deprovision,
        "deprovision_sandbox" => WorkflowKind::DeprovisionSandbox,
        "deploy_components" => WorkflowKind::DeployComponents { components: body.components.clone() },
        "manual_deploy" => WorkflowKind::ManualDeploy { component: component()?, dependents: body.dependents },
        "teardown_component" => WorkflowKind::TeardownComponent {
            component: component()?,
            with_dependents: body.with_dependents,
            force: body.force,
        },
        "teardown_components" => WorkflowKind::TeardownComponents,
        "input_update" => WorkflowKind::InputUpdate { inputs: body.inputs.clone() },
        "action_workflow_run" => {
            WorkflowKind::ActionWorkflowRun { action: need("action", &body.action)?, trigger: "manual".to_owned() }
        }
        "runbook_run" => WorkflowKind::RunbookRun { runbook: need("runbook", &body.runbook)? },
        "sync_secrets" => WorkflowKind::SyncSecrets,
        "drift_run" => WorkflowKind::DriftRun { component: component()? },
        "drift_run_reprovision_sandbox" => WorkflowKind::DriftRunReprovisionSandbox,
        other => return Err(ApiError::invalid(format!("there is no type of workflow `{other}`"))),
    })
}

async fn start(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    body: &wire::CreateWorkflow,
    idem: Option<store::Idempotency>,
) -> ApiResult<Started> {
    let mut new = NewWorkflow::new(kind(body)?);
    new.request.plan_only = body.plan_only;
    new.request.deployed = body.deployed;
    new.approve_all = body.approve_all.then(|| at.who());
    new.given.env_vars = body.run_env_vars.clone();
    new.given.runbook_inputs = body.runbook_inputs.clone();
    new.role = Some(body.role.clone()).filter(|role| !role.is_empty());
    if body.continue_on_error {
        new.on_error = OnError::Continue;
    }
    if let Some(version) = body.config_version {
        new.config_id = Some(state.store().config_version(&at.org, &install.app_id, version).await?.id);
    }
    begin(state, at, install, new, idem).await
}

/// Starts a workflow that a person asks for.
pub(crate) async fn begin(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    new: NewWorkflow,
    idem: Option<store::Idempotency>,
) -> ApiResult<Started> {
    Ok(Started(state.conductor.start_by_hand(&at.by(), install, new, idem).await?))
}

/// Starts a workflow on an install.
#[utoipa::path(post, path = "/v1/installs/{install_id}/workflows", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::CreateWorkflow, responses((status = 201, body = wire::WorkflowStarted), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::CreateWorkflow>,
) -> ApiResult<Started> {
    let install = state.store().install(&at.org, &install).await?;
    let idem = request.idempotency(&at.owner.account.id);
    start(&state, &at, &install, &request.value, idem).await
}

/// The operations of the dialect that are about a whole install.
async fn start_whole(
    state: &AppState,
    at: &InOrg,
    install: &str,
    request: Create<wire::DeployAll>,
    kind: WorkflowKind,
) -> ApiResult<Started> {
    let install = state.store().install(&at.org, install).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let mut new = NewWorkflow::new(kind);
    new.request.plan_only = request.value.plan_only;
    new.role = Some(request.value.role).filter(|role| !role.is_empty());
    begin(state, at, &install, new, idem).await
}

/// Deploys all components of an install.
#[utoipa::path(post, path = "/v1/installs/{install_id}/components/deploy-all", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn deploy_all(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    start_whole(&state, &at, &install, request, WorkflowKind::DeployComponents { components: Vec::new() }).await
}

/// Provisions an install anew: stack, sandbox, components.
#[utoipa::path(post, path = "/v1/installs/{install_id}/reprovision", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn reprovision(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    start_whole(&state, &at, &install, request, WorkflowKind::Reprovision).await
}

/// Tears everything of an install down, components first.
#[utoipa::path(post, path = "/v1/installs/{install_id}/deprovision", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn deprovision(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    start_whole(&state, &at, &install, request, WorkflowKind::Deprovision).await
}

/// Tears all components of an install down; the sandbox stays.
#[utoipa::path(post, path = "/v1/installs/{install_id}/components/teardown-all", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn teardown_all(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    start_whole(&state, &at, &install, request, WorkflowKind::TeardownComponents).await
}

/// Tears one component of an install down.
#[utoipa::path(post, path = "/v1/installs/{install_id}/components/{component_id}/teardown", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id"), ("component_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn teardown(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((install, component)): Path<(String, String)>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    let app = state.store().install(&at.org, &install).await?.app_id;
    let component = state.store().entity(&at.org, Some(&app), store::EntityKind::Component, &component).await?.name;
    let wire::DeployAll { with_dependents, force, .. } = request.value;
    let kind = WorkflowKind::TeardownComponent { component, with_dependents, force };
    start_whole(&state, &at, &install, request, kind).await
}

/// Plans and applies an install's sandbox anew, then all components.
#[utoipa::path(post, path = "/v1/installs/{install_id}/reprovision-sandbox", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn reprovision_sandbox(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    let kind = WorkflowKind::ReprovisionSandbox { skip_components: request.value.skip_components };
    start_whole(&state, &at, &install, request, kind).await
}

/// Tears an install's sandbox down.
#[utoipa::path(post, path = "/v1/installs/{install_id}/deprovision-sandbox", tag = "workflows", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::DeployAll, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn deprovision_sandbox(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::DeployAll>,
) -> ApiResult<Started> {
    start_whole(&state, &at, &install, request, WorkflowKind::DeprovisionSandbox).await
}

/// A workflow with every attempt at its steps.
#[utoipa::path(get, path = "/v1/workflows/{workflow_id}", tag = "workflows", security(("token" = ["read-only"])), params(("workflow_id" = String, Path)), responses((status = 200, body = wire::Workflow), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<Json<wire::Workflow>> {
    let loaded = state.conductor.workflow(&at.org, &workflow_id(&id)?).await?;
    Ok(Json(whole(&state, &loaded).await?))
}

/// Lets all plans of a workflow pass from now on.
#[utoipa::path(patch, path = "/v1/workflows/{workflow_id}", tag = "workflows", security(("token" = ["approver"])), params(("workflow_id" = String, Path)), request_body = wire::UpdateWorkflow, responses((status = 200, body = wire::Workflow), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Approver(at): Approver,
    Path(id): Path<String>,
    request: Create<wire::UpdateWorkflow>,
) -> ApiResult<Json<wire::Workflow>> {
    if request.value.approval_option != "approve-all" {
        return Err(ApiError::invalid("`approval_option` of a workflow can only become `approve-all`"));
    }
    let event = Event::ApproveAll { by: at.who() };
    let loaded = state.conductor.tell_workflow(&at.org, &workflow_id(&id)?, event, at.actor()).await?;
    Ok(Json(whole(&state, &loaded).await?))
}

/// Cancels a workflow: nothing new begins, what runs is interrupted.
#[utoipa::path(post, path = "/v1/workflows/{workflow_id}/cancel", tag = "workflows", security(("token" = ["operator"])), params(("workflow_id" = String, Path)), responses((status = 202, body = Value), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn cancel(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(id): Path<String>,
) -> ApiResult<(StatusCode, Json<Value>)> {
    let event = Event::Cancel { by: at.who() };
    state.conductor.tell_workflow(&at.org, &workflow_id(&id)?, event, at.actor()).await?;
    Ok((StatusCode::ACCEPTED, Json(Value::Object(Map::new()))))
}

/// The steps of a workflow, every attempt, in their order.
#[utoipa::path(get, path = "/v1/workflows/{workflow_id}/steps", tag = "workflows", security(("token" = ["read-only"])), params(("workflow_id" = String, Path), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::WorkflowStep]), (status = 404, body = api::ErrorBody)))]
async fn steps(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::WorkflowStep>> {
    let loaded = state.conductor.workflow(&at.org, &workflow_id(&id)?).await?;
    let app = state.store().install(&at.org, loaded.row.install_id.as_str()).await?.app_id;
    let (offset, limit) = (page.offset() as usize, page.fetch() as usize);
    Ok(List::new(steps_shown(&state, &loaded, &app, offset, limit).await?, page))
}

async fn one_step(state: &AppState, at: &InOrg, workflow: &WorkflowId, step: &StepId) -> ApiResult<wire::WorkflowStep> {
    let loaded = state.conductor.workflow(&at.org, workflow).await?;
    let found = loaded.workflow.steps.iter().find(|known| known.id == *step).ok_or(StoreError::NotFound("step"))?;
    let install = state.store().install(&at.org, loaded.row.install_id.as_str()).await?;
    let document = state.conductor.document(&at.org, &install.app_id, &loaded.body.config_id).await?;
    let mut shown = View::new(&loaded, &document).step(found);
    add_job(state, &at.org, &mut shown).await?;
    if matches!(found.work, Work::Action { .. } | Work::Script { .. }) {
        let run = state.store().run_of_workflow(&at.org, &install.id, workflow, Some(step)).await?;
        shown.step_target_id = run.map(|run| run.id.to_string()).unwrap_or_default();
    }
    Ok(shown)
}

/// A step of a workflow.
#[utoipa::path(get, path = "/v1/workflows/{workflow_id}/steps/{step_id}", tag = "workflows", security(("token" = ["read-only"])), params(("workflow_id" = String, Path), ("step_id" = String, Path)), responses((status = 200, body = wire::WorkflowStep), (status = 404, body = api::ErrorBody)))]
async fn step(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((workflow, step)): Path<(String, String)>,
) -> ApiResult<Json<wire::WorkflowStep>> {
    Ok(Json(one_step(&state, &at, &workflow_id(&workflow)?, &step_id(&step)?).await?))
}

/// A step, by its id alone.
#[utoipa::path(get, path = "/v1/workflow-steps/{step_id}", tag = "workflows", security(("token" = ["read-only"])), params(("step_id" = String, Path)), responses((status = 200, body = wire::WorkflowStep), (status = 404, body = api::ErrorBody)))]
async fn find_step(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(step): Path<String>,
) -> ApiResult<Json<wire::WorkflowStep>> {
    let step = step_id(&step)?;
    let workflow = state.store().workflow_of_step(&at.org, &step).await?;
    Ok(Json(one_step(&state, &at, &workflow, &step).await?))
}

/// What a plan would change.
#[utoipa::path(get, path = "/v1/workflows/{workflow_id}/steps/{step_id}/approvals/{approval_id}/contents", tag = "workflows", security(("token" = ["read-only"])), params(("workflow_id" = String, Path), ("step_id" = String, Path), ("approval_id" = String, Path)), responses((status = 200, body = Value), (status = 404, body = api::ErrorBody)))]
async fn contents(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((workflow, step, approval)): Path<(String, String, String)>,
) -> ApiResult<Json<Value>> {
    let step = step_id(&step)?;
    let shown = one_step(&state, &at, &workflow_id(&workflow)?, &step).await?;
    if shown.approval.is_none_or(|known| known.id != approval) {
        return Err(StoreError::NotFound("approval").into());
    }
    let display = state.store().step_display(&at.org, &step).await?.ok_or(StoreError::NotFound("plan"))?;
    Ok(Json(display))
}

/// Says what shall become of a plan. The approval's id is the digest of the plan: another plan is refused.
#[utoipa::path(post, path = "/v1/workflows/{workflow_id}/steps/{step_id}/approvals/{approval_id}/response", tag = "workflows", security(("token" = ["approver"])), params(("workflow_id" = String, Path), ("step_id" = String, Path), ("approval_id" = String, Path)), request_body = wire::CreateStepApprovalResponse, responses((status = 201, body = wire::StepApprovalResponse), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn answer(
    State(state): State<AppState>,
    Approver(at): Approver,
    Path((workflow, step, approval)): Path<(String, String, String)>,
    request: Create<wire::CreateStepApprovalResponse>,
) -> ApiResult<(StatusCode, Json<wire::StepApprovalResponse>)> {
    let said = request.value;
    let response = Response::parse(&said.response_type).ok_or_else(|| {
        let known: Vec<&str> = Response::ALL.iter().map(|known| known.as_str()).collect();
        ApiError::invalid(format!("there is no response `{}`; use {}", said.response_type, known.join(", ")))
    })?;
    let step = step_id(&step)?;
    let said_so = Answer { step: step.clone(), response, digest: approval, by: at.who(), note: said.note.clone() };
    state.conductor.answer_step(&at.org, &workflow_id(&workflow)?, at.role, said_so, at.actor()).await?;
    let answer = wire::StepApprovalResponse {
        id: step.to_string(),
        r#type: said.response_type,
        note: said.note,
        created_by_id: at.who(),
        created_at: Some(state.conductor.now()),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Tries a step again that has failed. An apply is planned anew.
#[utoipa::path(post, path = "/v1/workflows/{workflow_id}/steps/{step_id}/retry", tag = "workflows", security(("token" = ["operator"])), params(("workflow_id" = String, Path), ("step_id" = String, Path)), responses((status = 201, body = wire::StepRetried), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn retry(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((workflow, step)): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<wire::StepRetried>)> {
    let event = Event::Retry { step: step_id(&step)? };
    state.conductor.tell_workflow(&at.org, &workflow_id(&workflow)?, event, at.actor()).await?;
    Ok((StatusCode::CREATED, Json(wire::StepRetried { workflow_id: workflow, retryable: true })))
}

/// Goes on without a step that has failed.
#[utoipa::path(post, path = "/v1/workflows/{workflow_id}/steps/{step_id}/skip", tag = "workflows", security(("token" = ["operator"])), params(("workflow_id" = String, Path), ("step_id" = String, Path)), responses((status = 201, body = wire::StepRetried), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn skip(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((workflow, step)): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<wire::StepRetried>)> {
    let event = Event::Skip { step: step_id(&step)?, by: at.who() };
    state.conductor.tell_workflow(&at.org, &workflow_id(&workflow)?, event, at.actor()).await?;
    Ok((StatusCode::CREATED, Json(wire::StepRetried { workflow_id: workflow, retryable: false })))
}

#[derive(Debug, Deserialize)]
struct AtVersion {
    version: Option<u64>,
}

/// The state of an install, as its templates see it; with `version`, what was deployed then.
#[utoipa::path(get, path = "/v1/installs/{install_id}/state", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("version" = Option<u64>, Query)), responses((status = 200, body = wire::InstallState), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn state(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(wanted): Params<AtVersion>,
) -> ApiResult<Json<wire::InstallState>> {
    let install = state.store().install(&at.org, &install).await?;
    let (version, mut parts) = state.store().install_parts(&at.org, &install.id, wanted.version).await?;
    if let Some(stack) = parts.get_mut(conductor::STACK).and_then(Value::as_object_mut) {
        stack.remove("phone_home_id");
    }
    if wanted.version.is_some_and(|wanted| wanted != version) {
        return Err(StoreError::NotFound("version of the state").into());
    }
    let document = match wanted.version {
        Some(_) => json!(parts),
        None => view(&state, &at, &install, Some(HIDDEN)).await?.tree.root["nuon"].take(),
    };
    Ok(Json(wire::InstallState { version, state: document }))
}

/// The versions of an install's state, newest first, each with what changed.
#[utoipa::path(get, path = "/v1/installs/{install_id}/state/versions", tag = "installs", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallStateVersion]), (status = 404, body = api::ErrorBody)))]
async fn state_versions(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::InstallStateVersion>> {
    let install = state.store().install(&at.org, &install).await?;
    let found = state.store().state_versions(&at.org, &install.id, page.offset(), page.fetch()).await?;
    let shown = found.into_iter().map(|version| wire::InstallStateVersion {
        version: version.version,
        parts: version.parts,
        created_at: version.created_at,
        workflow_id: version.workflow_id.map(|id| id.to_string()).unwrap_or_default(),
    });
    Ok(List::new(shown.collect(), page))
}
