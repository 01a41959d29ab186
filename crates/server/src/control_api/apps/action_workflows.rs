//! Actions of a synced app, which the dialect calls action workflows, and their runs on installs.

use conductor::apps::drafts::{PostedSection, SectionSubject, element};
use conductor::apps::manage::{WantedEntity, names};
use conductor::{ActionRef, AppError, WantedActionRun};
use std::collections::BTreeSet;

use api::control as wire;
use axum::Json;
use axum::extract::{DefaultBodyLimit, Path, State};
use http::StatusCode;
use model::{ActionRunId, SectionId, WorkflowId};
use serde_json::{Map, Value};
use store::{App, ENTITIES_MAX, Entity, EntityChange, EntityKind, Install, Section, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
use crate::config::Limits;
use crate::control_api::apps::Search;
use crate::control_api::apps::components;
use crate::control_api::apps::configs::sections::{self, git, inner_id, repo, some, text};
use crate::control_api::apps::configs::{self, Known};
use crate::control_api::jobs;
use crate::control_api::workflows::Started;
use crate::error::ApiResult;
use crate::request::{Create, List, Page, Params};

const KIND: EntityKind = EntityKind::Action;
const SECOND_NS: i64 = 1_000_000_000;
/// How many runs a look at an action shows.
const RECENT: u64 = 10;

pub(crate) fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get))
        .routes(routes!(update, retire))
        .routes(routes!(post_config))
        .routes(routes!(latest_config))
        .routes(routes!(of_install))
        .routes(routes!(run))
        .routes(routes!(get_run))
        .routes(routes!(recent_runs))
        .layer(DefaultBodyLimit::max(limits.large_body_bytes))
}

async fn shown(state: &AppState, action: Entity) -> ApiResult<wire::ActionWorkflow> {
    let counts = state.store().section_counts(&action.org_id, &action.app_id).await?;
    Ok(wire::ActionWorkflow {
        config_count: counts.get(&action.id).copied().unwrap_or_default(),
        stamp: components::stamp(&action),
        name: action.name,
        status: "active".into(),
        status_description: "active".into(),
        labels: action.labels,
        configs: Vec::new(),
    })
}

/// The actions of an app, by name.
#[utoipa::path(get, path = "/v1/apps/{app_id}/action-workflows", tag = "actions", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("q" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::ActionWorkflow]), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(search): Params<Search>,
) -> ApiResult<List<wire::ActionWorkflow>> {
    let app = state.store().app(&at.org, &app).await?;
    let page = search.page()?;
    let found = state.store().entities(&at.org, Some(&app.id), KIND, &search.q, page.offset(), page.fetch()).await?;
    let mut actions = Vec::with_capacity(found.len());
    for action in found {
        actions.push(shown(&state, action).await?);
    }
    Ok(List::new(actions, page))
}

/// Makes an action that no config names yet.
#[utoipa::path(post, path = "/v1/apps/{app_id}/action-workflows", tag = "actions", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::CreateActionWorkflow, responses((status = 201, body = wire::ActionWorkflow), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<wire::CreateActionWorkflow>,
) -> ApiResult<(StatusCode, Json<wire::ActionWorkflow>)> {
    let app = state.store().app(&at.org, &app).await?;
    let wanted = WantedEntity {
        kind: KIND,
        name: request.value.name,
        var_name: String::new(),
        labels: request.value.labels,
        dependencies: Vec::new(),
    };
    let made = state.conductor.create_entity(&at.by(), &app, wanted).await?;
    Ok((StatusCode::CREATED, Json(shown(&state, made).await?)))
}

/// An action of an app, by name or id.
#[utoipa::path(get, path = "/v1/apps/{app_id}/action-workflows/{action_workflow_id}", tag = "actions", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("action_workflow_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::ActionWorkflow), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((app, action)): Path<(String, String)>,
) -> ApiResult<Json<wire::ActionWorkflow>> {
    let app = state.store().app(&at.org, &app).await?;
    let action = state.store().entity(&at.org, Some(&app.id), KIND, &action).await?;
    Ok(Json(shown(&state, action).await?))
}

/// Renames an action, or labels it.
#[utoipa::path(patch, path = "/v1/action-workflows/{action_workflow_id}", tag = "actions", security(("token" = ["operator"])), params(("action_workflow_id" = String, Path, description = "name or id")), request_body = wire::UpdateActionWorkflow, responses((status = 201, body = wire::ActionWorkflow), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(action): Path<String>,
    request: Create<wire::UpdateActionWorkflow>,
) -> ApiResult<(StatusCode, Json<wire::ActionWorkflow>)> {
    let action = state.store().entity(&at.org, None, KIND, &action).await?;
    let name = request.value.name.filter(|name| !name.is_empty());
    let change = EntityChange { name, labels: request.value.labels, ..EntityChange::default() };
    let changed = state.conductor.update_entity(&at.by(), KIND, &action, change).await?;
    Ok((StatusCode::CREATED, Json(shown(&state, changed).await?)))
}

/// Retires an action that no active config names any more.
#[utoipa::path(delete, path = "/v1/action-workflows/{action_workflow_id}", tag = "actions", security(("token" = ["operator"])), params(("action_workflow_id" = String, Path, description = "name or id")), responses((status = 200, body = bool), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn retire(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(action): Path<String>,
) -> ApiResult<Json<bool>> {
    let action = state.store().entity(&at.org, None, KIND, &action).await?;
    state.conductor.retire_entity(&at.by(), KIND, &action).await?;
    Ok(Json(true))
}

/// Configures an action in a draft.
#[utoipa::path(post, path = "/v1/action-workflows/{action_workflow_id}/configs", tag = "actions", security(("token" = ["operator"])), params(("action_workflow_id" = String, Path, description = "name or id")), request_body = wire::CreateActionWorkflowConfig, responses((status = 201, body = wire::ActionWorkflowConfig), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn post_config(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(action): Path<String>,
    request: Create<wire::CreateActionWorkflowConfig>,
) -> ApiResult<(StatusCode, Json<wire::ActionWorkflowConfig>)> {
    let entity = state.store().entity(&at.org, None, KIND, &action).await?;
    let app = state.store().app(&at.org, entity.app_id.as_str()).await?;
    let wanted = request.value;
    let draft = wanted.app_config_id.clone();
    let known = state.store().all_entities(&at.org, &app.id, EntityKind::Component).await?;
    let action = from_wire(&entity, &known, wanted);
    let subject = SectionSubject { name: entity.name, entity_id: Some(entity.id), checksum: String::new() };
    let posted = PostedSection { kind: KIND.section(), body: element(KIND, &action), subject };
    let section = configs::put(&state, &at, &app, &draft, posted).await?;
    Ok((StatusCode::CREATED, Json(config_shown(&Known::of(&state, &at.org, &app.id).await?, &section)?)))
}

fn from_wire(entity: &Entity, components: &[Entity], wanted: wire::CreateActionWorkflowConfig) -> config::Action {
    let triggers = wanted.triggers.into_iter().map(|t| config::ActionTrigger {
        r#type: t.trigger_type,
        index: t.index,
        cron_schedule: some(&t.cron_schedule),
        component_name: some(&t.component_name),
    });
    let steps = wanted.steps.into_iter().map(|s| config::ActionStep {
        name: s.name,
        env_vars: s.env_vars,
        inline_contents: some(&s.inline_contents),
        command: some(&s.command),
        public_repo: s.public_git_vcs_config.as_ref().map(repo),
        connected_repo: s.connected_github_vcs_config.as_ref().map(repo),
        local: None,
    });
    config::Action {
        name: entity.name.clone(),
        timeout: (wanted.timeout > 0).then(|| format!("{}s", (wanted.timeout / SECOND_NS).max(1))),
        triggers: triggers.collect(),
        steps: steps.collect(),
        dependencies: names(components, &wanted.dependencies),
        break_glass_role: some(&wanted.break_glass_role_arn),
        role: some(&wanted.role),
        labels: entity.labels.clone(),
        enable_kube_config: wanted.enable_kube_config,
        image: None,
        kubernetes_context: some(&wanted.kubernetes_context),
    }
}

/// What a section says about its action, as the dialect has it.
pub(crate) fn config_shown(known: &Known, section: &Section) -> ApiResult<wire::ActionWorkflowConfig> {
    let alone = sections::alone(section)?;
    let action = alone.actions.into_iter().next().ok_or(StoreError::NotFound("action"))?;
    let entity_id = section.entity_id.clone().unwrap_or_default();
    let id_of = |name: &String| known.id_of(name);
    let triggers = action.triggers.iter().enumerate().map(|(n, t)| wire::ActionTriggerConfig {
        id: inner_id("atr", section, &n.to_string()),
        trigger_type: t.r#type.clone(),
        index: t.index,
        component_id: t.component_name.as_ref().and_then(id_of).unwrap_or_default(),
        cron_schedule: text(t.cron_schedule.as_ref()),
    });
    let steps = action.steps.iter().enumerate().map(|(n, s)| wire::ActionStepConfig {
        id: inner_id("ast", section, &s.name),
        name: s.name.clone(),
        idx: n as i64,
        command: text(s.command.as_ref()),
        inline_contents: text(s.inline_contents.as_ref()),
        env_vars: s.env_vars.clone(),
        public_git_vcs_config: s.public_repo.as_ref().map(git),
        connected_github_vcs_config: s.connected_repo.as_ref().map(git),
    });
    let timeout = action.timeout.as_deref().and_then(|text| model::time::parse_duration(text).ok());
    Ok(wire::ActionWorkflowConfig {
        stamp: known.stamp(section),
        action_workflow_id: entity_id,
        timeout: timeout.map_or(model::JobType::ActionsWorkflow.facts().timeout_s, |t| t.as_secs()) as i64 * SECOND_NS,
        steps: steps.collect(),
        triggers: triggers.collect(),
        component_dependency_ids: action.dependencies.iter().filter_map(id_of).collect(),
        role: text(action.role.as_ref()),
        break_glass_role_arn: text(action.break_glass_role.as_ref()),
        kubernetes_context_name: text(action.kubernetes_context.as_ref()),
    })
}

/// The newest config of an action.
#[utoipa::path(get, path = "/v1/action-workflows/{action_workflow_id}/latest-config", tag = "actions", security(("token" = ["read-only"])), params(("action_workflow_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::ActionWorkflowConfig), (status = 404, body = api::ErrorBody)))]
async fn latest_config(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(action): Path<String>,
) -> ApiResult<Json<wire::ActionWorkflowConfig>> {
    let action = state.store().entity(&at.org, None, KIND, &action).await?;
    let section = state.store().sections_of(&at.org, &action.id, 0, 1).await?.pop();
    let section = section.ok_or(StoreError::NotFound("config"))?;
    Ok(Json(config_shown(&Known::of(&state, &at.org, &action.app_id).await?, &section)?))
}

/// What a part of an install's state has put out.
pub(crate) async fn outputs_of(state: &AppState, install: &Install, part: &str) -> ApiResult<Map<String, Value>> {
    let part = state.store().install_part(&install.org_id, &install.id, part).await?;
    Ok(part.and_then(|part| part["outputs"].as_object().cloned()).unwrap_or_default())
}

/// The app and the config that an install is at, with what its templates see.
pub(crate) struct InstallView {
    pub(crate) app: App,
    pub(crate) config: store::Config,
    pub(crate) document: config::AppConfig,
    pub(crate) tree: conductor::apps::InstallTree,
}

/// `mask` stands for every sensitive value, where what is made of them is shown to someone.
pub(crate) async fn view(
    state: &AppState,
    at: &InOrg,
    install: &Install,
    mask: Option<&str>,
) -> ApiResult<InstallView> {
    let app = state.store().app(&at.org, install.app_id.as_str()).await?;
    if install.config_id.is_none() && state.store().active_config(&at.org, &app.id).await?.is_none() {
        return Err(conductor::Error::from(AppError::NoActiveConfig(app.name)).into());
    }
    let config = state.conductor.config_of(install).await?;
    let (document, _) = state.conductor.app_config(&at.org, &config).await?;
    let tree = state.conductor.install_tree(install, &document, mask).await?;
    Ok(InstallView { app, config, document, tree })
}

/// The actions that an install can run: those of the config that it is at.
#[utoipa::path(get, path = "/v1/installs/{install_id}/action-workflows", tag = "actions", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("q" = Option<String>, Query), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::InstallActionWorkflow]), (status = 404, body = api::ErrorBody)))]
async fn of_install(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(search): Params<Search>,
) -> ApiResult<List<wire::InstallActionWorkflow>> {
    let install = state.store().install(&at.org, &install).await?;
    let page = search.page()?;
    let active = match state.conductor.config_of(&install).await {
        Ok(config) => state.store().sections(&at.org, &config.id).await?,
        Err(conductor::Error::App(AppError::NeverSynced)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let active: BTreeSet<String> = active.into_iter().filter_map(|section| section.entity_id).collect();
    let app = Some(&install.app_id);
    let found = state.store().entities(&at.org, app, KIND, &search.q, 0, ENTITIES_MAX).await?;
    let wanted = found.into_iter().filter(|action| active.contains(&action.id));
    let mut actions = Vec::new();
    for action in wanted.skip(page.offset() as usize).take(page.fetch() as usize) {
        actions.push(on_install(&state, &install, action, Page { limit: Some(1), ..Page::default() }).await?);
    }
    Ok(List::new(actions, page))
}

/// Runs an action of the app on an install. Its templates are rendered against what is known of the install now.
#[utoipa::path(post, path = "/v1/installs/{install_id}/action-workflows/runs", tag = "actions", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::CreateActionWorkflowRun, responses((status = 201, body = wire::WorkflowStarted), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn run(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::CreateActionWorkflowRun>,
) -> ApiResult<Started> {
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = request.value;
    let install = state.store().install(&at.org, &install).await?;
    let action = match wanted.action_workflow_config_id.as_str() {
        "" => ActionRef::Name(wanted.action),
        id => ActionRef::Config(SectionId::parse(id).map_err(|_| StoreError::NotFound("action config"))?),
    };
    let wanted =
        WantedActionRun { action, env_vars: wanted.run_env_vars, secrets: wanted.secrets, role: some(&wanted.role) };
    Ok(Started(state.conductor.run_app_action(&at.by(), &install, wanted, idem).await?))
}

async fn run_shown(state: &AppState, at_org: &model::OrgId, run: store::ActionRun) -> ApiResult<wire::ActionRun> {
    let job = state.store().job(at_org, &run.job_id).await?;
    let workflow_id = match &job.step_id {
        Some(step) => state.store().workflow_of_step(at_org, step).await.map(|id| id.to_string()).unwrap_or_default(),
        None => run.id.to_string(),
    };
    let job = jobs::wire(state, job, true).await?;
    Ok(wire::ActionRun {
        id: run.id.to_string(),
        install_id: run.install_id.to_string(),
        created_by_id: run.created_by,
        created_at: run.created_at,
        updated_at: job.updated_at,
        action_workflow_config_id: run.section_id.to_string(),
        status: job.status.to_string(),
        trigger_type: run.trigger_type,
        install_action_workflow_id: run.action_id,
        status_description: job.status_description.clone(),
        workflow_id,
        execution_time: job.execution_time.unwrap_or_default(),
        outputs: job.outputs.clone(),
        job: Some(Box::new(job)),
    })
}

/// A run of an action, with its job; by its own id, or by that of its workflow.
#[utoipa::path(get, path = "/v1/installs/{install_id}/action-workflows/runs/{run_id}", tag = "actions", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("run_id" = String, Path)), responses((status = 200, body = wire::ActionRun), (status = 404, body = api::ErrorBody)))]
async fn get_run(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, run)): Path<(String, String)>,
) -> ApiResult<Json<wire::ActionRun>> {
    let install = state.store().install(&at.org, &install).await?;
    let run = match (ActionRunId::parse(&run), WorkflowId::parse(&run)) {
        (Ok(run), _) => state.store().action_run(&at.org, &install.id, &run).await?,
        (_, Ok(workflow)) => {
            let run = state.store().run_of_workflow(&at.org, &install.id, &workflow, None).await?;
            run.ok_or(StoreError::NotFound("run"))?
        }
        _ => return Err(StoreError::NotFound("run").into()),
    };
    Ok(Json(run_shown(&state, &at.org, run).await?))
}

async fn on_install(
    state: &AppState,
    install: &Install,
    action: Entity,
    page: Page,
) -> ApiResult<wire::InstallActionWorkflow> {
    let (offset, limit) = (page.offset(), page.limit());
    let found = state.store().action_runs(&install.org_id, &install.id, Some(&action.id), offset, limit).await?;
    let mut runs = Vec::with_capacity(found.len());
    for run in found {
        runs.push(run_shown(state, &install.org_id, run).await?);
    }
    Ok(wire::InstallActionWorkflow {
        id: action.id.clone(),
        install_id: install.id.to_string(),
        action_workflow_id: action.id.clone(),
        status: runs.first().map_or_else(|| "active".to_owned(), |run| run.status.clone()),
        action_workflow: Some(shown(state, action).await?),
        runs,
    })
}

/// An action on an install, with its latest runs.
#[utoipa::path(get, path = "/v1/installs/{install_id}/action-workflows/{action_workflow_id}/recent-runs", tag = "actions", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("action_workflow_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = wire::InstallActionWorkflow), (status = 404, body = api::ErrorBody)))]
async fn recent_runs(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((install, action)): Path<(String, String)>,
    Params(page): Params<Page>,
) -> ApiResult<Json<wire::InstallActionWorkflow>> {
    let install = state.store().install(&at.org, &install).await?;
    let action = state.store().entity(&at.org, Some(&install.app_id), KIND, &action).await?;
    let page = Page { limit: Some(page.limit.unwrap_or(RECENT)), ..page };
    Ok(Json(on_install(&state, &install, action, page).await?))
}
