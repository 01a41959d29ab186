//! Configs of an app: drafts that clients fill piece by piece, versions, and the one call that syncs a whole app.

pub(crate) mod sections;
mod sync;

use conductor::apps::drafts::PostedSection;
use conductor::apps::sync::{WantedCommit, changes};
use std::collections::BTreeMap;

use api::control as wire;
use axum::Json;
use axum::extract::{DefaultBodyLimit, Path, State};
use http::StatusCode;
use model::{AppId, ConfigId, OrgId};
use serde::Deserialize;
use store::{App, Config, ConfigStatus, Entity, EntityKind, Section, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{InOrg, Operator, Reader};
use crate::config::Limits;
use crate::control_api::apps::action_workflows;
use crate::control_api::apps::component_configs;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

pub(crate) fn routes(limits: &Limits) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(get, update))
        .routes(routes!(update_installs))
        .routes(routes!(list))
        .routes(routes!(latest))
        .routes(routes!(diff))
        .routes(routes!(latest_input))
        .routes(routes!(latest_sandbox))
        .routes(routes!(latest_runner))
        .routes(routes!(latest_policies))
        .routes(routes!(list_input))
        .routes(routes!(list_sandbox))
        .routes(routes!(post_input))
        .routes(routes!(post_sandbox))
        .routes(routes!(post_runner, list_runner))
        .routes(routes!(post_stack))
        .routes(routes!(post_permissions))
        .routes(routes!(post_break_glass))
        .routes(routes!(post_policies))
        .routes(routes!(post_secrets))
        .routes(routes!(post_operation_roles))
        .routes(routes!(sync::sync))
        // As clients of an older dialect call it.
        .route("/v1/apps/{app_id}/runner-config", axum::routing::post(post_runner))
        .layer(DefaultBodyLimit::max(limits.large_body_bytes))
}

/// A config by its id, its number, or `latest`.
pub(crate) async fn find(state: &AppState, app: &App, which: &str) -> ApiResult<Config> {
    let store = state.store();
    if which == "latest" {
        if let Some(active) = store.active_config(&app.org_id, &app.id).await? {
            return Ok(active);
        }
        // Before the first version, the draft is all there is.
        let newest = store.configs(&app.org_id, &app.id, 0, 1).await?.into_iter().next();
        return Ok(newest.ok_or(StoreError::NotFound("config"))?);
    }
    if let Ok(version) = which.parse::<u64>() {
        return Ok(store.config_version(&app.org_id, &app.id, version).await?);
    }
    let id = ConfigId::parse(which).map_err(|_| StoreError::NotFound("config"))?;
    Ok(store.config(&app.org_id, &app.id, &id).await?)
}

fn stamp(config: &Config) -> wire::Stamp {
    wire::Stamp {
        id: config.id.to_string(),
        created_by_id: config.created_by.to_string(),
        created_at: config.created_at,
        updated_at: config.updated_at,
        org_id: config.org_id.to_string(),
        app_id: config.app_id.to_string(),
        app_config_id: String::new(),
    }
}

fn status(config: &Config) -> &'static str {
    match config.status {
        ConfigStatus::Draft => "pending",
        ConfigStatus::Active | ConfigStatus::Same => "active",
        ConfigStatus::Outdated => "outdated",
        ConfigStatus::Error => "error",
    }
}

/// How much of a config is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// What it is.
    Head,
    /// Its sections, without components and actions.
    Sections,
    All,
}

impl From<bool> for Detail {
    fn from(recurse: bool) -> Self {
        if recurse { Self::All } else { Self::Head }
    }
}

/// A config as the API shows it.
async fn shown(state: &AppState, config: &Config, detail: impl Into<Detail>) -> ApiResult<wire::AppConfig> {
    let detail = detail.into();
    let sections = state.store().sections(&config.org_id, &config.id).await?;
    let ids = |kind: EntityKind| {
        let of_kind = sections.iter().filter(move |s| s.kind == kind.section());
        of_kind.filter_map(|s| s.entity_id.clone()).collect()
    };
    let mut shown = wire::AppConfig {
        stamp: stamp(config),
        status: status(config).into(),
        status_description: config.description.clone(),
        version: config.version.unwrap_or_default(),
        checksum: config.digest.as_ref().map(|d| d.hex().to_owned()).unwrap_or_default(),
        readme: config.readme.clone(),
        cli_version: config.cli_version.clone(),
        state: config.state.clone(),
        component_ids: ids(EntityKind::Component),
        action_ids: ids(EntityKind::Action),
        input: None,
        sandbox: None,
        runner: None,
        stack: None,
        permissions: None,
        break_glass: None,
        policies: None,
        secrets: None,
        operation_role_config: None,
        component_config_connections: Vec::new(),
        action_workflow_configs: Vec::new(),
    };
    if detail >= Detail::Sections {
        show_sections(config, &sections, &mut shown)?;
    }
    if detail == Detail::All {
        show_entities(state, config, &sections, &mut shown).await?;
    }
    Ok(shown)
}

/// Components and actions, with what all of them need read once.
async fn show_entities(
    state: &AppState,
    config: &Config,
    sections: &[Section],
    shown: &mut wire::AppConfig,
) -> ApiResult<()> {
    let known = Known::of(state, &config.org_id, &config.app_id).await?;
    for section in sections {
        match section.kind.as_str() {
            "components" => {
                shown.component_config_connections.push(component_configs::connection(&known, config, section)?);
            }
            "actions" => shown.action_workflow_configs.push(action_workflows::config_shown(&known, section)?),
            _ => {}
        }
    }
    Ok(())
}

/// What is asked for again and again while components and actions of an app are shown.
pub(crate) struct Known {
    org: OrgId,
    app: AppId,
    components: Vec<Entity>,
    counts: BTreeMap<String, u64>,
}

impl Known {
    pub(crate) async fn of(state: &AppState, org: &OrgId, app: &AppId) -> ApiResult<Self> {
        let components = state.store().all_entities(org, app, EntityKind::Component).await?;
        let counts = state.store().section_counts(org, app).await?;
        Ok(Self { org: org.clone(), app: app.clone(), components, counts })
    }

    pub(crate) fn stamp(&self, section: &Section) -> wire::Stamp {
        sections::stamp(self.org.as_str(), self.app.as_str(), section)
    }

    /// The id of a component.
    pub(crate) fn id_of(&self, name: &str) -> Option<String> {
        self.components.iter().find(|e| e.name == name).map(|e| e.id.clone())
    }

    /// How many versions have configured a component or an action.
    pub(crate) fn versions(&self, id: &str) -> u64 {
        self.counts.get(id).copied().unwrap_or_default()
    }
}

fn show_sections(config: &Config, sections: &[Section], shown: &mut wire::AppConfig) -> ApiResult<()> {
    let (document, _) = conductor::apps::assemble(sections.iter().map(|s| &s.body))?;
    for section in sections {
        let stamp = sections::stamp(config.org_id.as_str(), config.app_id.as_str(), section);
        match section.kind.as_str() {
            "input" => shown.input = Some(sections::show_input(stamp, section, &document)),
            "sandbox" => shown.sandbox = sections::show_sandbox(stamp, &document),
            "runner" => shown.runner = sections::show_runner(stamp, &document),
            "stack" => shown.stack = sections::show_stack(stamp, &document),
            "permissions" => shown.permissions = Some(sections::show_permissions(stamp, section, &document)),
            "break_glass" => shown.break_glass = Some(sections::show_break_glass(stamp, section, &document)),
            "policies" => shown.policies = Some(sections::show_policies(stamp, section, &document)),
            "secrets" => shown.secrets = Some(sections::show_secrets(stamp, section, &document)),
            "operation_roles" => shown.operation_role_config = Some(sections::show_operation_roles(stamp, &document)),
            _ => {}
        }
    }
    Ok(())
}

/// Begins a draft. Its sections may arrive in any order; `PATCH` with the status `active` commits it.
#[utoipa::path(post, path = "/v1/apps/{app_id}/config", tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::CreateAppConfig, responses((status = 201, body = wire::AppConfig), (status = 404, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<wire::CreateAppConfig>,
) -> ApiResult<(StatusCode, Json<wire::AppConfig>)> {
    let app = state.store().app(&at.org, &app).await?;
    if request.value.plan_only {
        let text = "a draft can't be only a plan";
        return Err(ApiError::invalid(text).hint("POST /v1/apps/{app_id}/sync with `plan_only` says what would change"));
    }
    let wire::CreateAppConfig { readme, cli_version, .. } = request.value;
    let draft = state.conductor.create_draft(&at.by(), &app, readme, cli_version).await?;
    Ok((StatusCode::CREATED, Json(shown(&state, &draft, false).await?)))
}

#[derive(Debug, Default, Deserialize)]
struct Recurse {
    #[serde(default)]
    recurse: bool,
}

/// A config by its id or number; `recurse` shows its sections.
#[utoipa::path(get, path = "/v1/apps/{app_id}/config/{app_config_id}", tag = "configs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("app_config_id" = String, Path, description = "id, number, or `latest`"), ("recurse" = Option<bool>, Query)), responses((status = 200, body = wire::AppConfig), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((app, which)): Path<(String, String)>,
    Params(params): Params<Recurse>,
) -> ApiResult<Json<wire::AppConfig>> {
    let app = state.store().app(&at.org, &app).await?;
    let config = find(&state, &app, &which).await?;
    Ok(Json(shown(&state, &config, params.recurse).await?))
}

/// Commits a draft (`active`), or abandons it (`error`).
#[utoipa::path(patch, path = "/v1/apps/{app_id}/config/{app_config_id}", tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id"), ("app_config_id" = String, Path)), request_body = wire::UpdateAppConfig, responses((status = 201, body = wire::AppConfig), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn update(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((app, which)): Path<(String, String)>,
    request: Create<wire::UpdateAppConfig>,
) -> ApiResult<(StatusCode, Json<wire::AppConfig>)> {
    let app = state.store().app(&at.org, &app).await?;
    let config = find(&state, &app, &which).await?;
    let wanted = request.value;
    let changed = match wanted.status.as_deref() {
        // The answer to the first try was lost.
        Some("active") if config.version.is_some() => config,
        Some("active") => {
            let wanted = WantedCommit {
                component_ids: wanted.component_ids.map(|ids| ids.into_iter().collect()),
                description: wanted.status_description.unwrap_or_default(),
                state: wanted.state,
            };
            state.conductor.commit_draft(&at.by(), &app, config, wanted).await?
        }
        Some("error") => {
            let description = wanted.status_description.unwrap_or_default();
            state.conductor.abandon_draft(&config, &description).await?
        }
        Some("pending" | "syncing" | "outdated") | None => {
            state.conductor.describe_draft(&config, wanted.status_description, wanted.state).await?
        }
        Some(other) => return Err(ApiError::invalid(format!("`{other}` is no status; use `active` or `error`"))),
    };
    Ok((StatusCode::CREATED, Json(shown(&state, &changed, false).await?)))
}

/// Installs follow the active version by themselves; existing clients ask for it.
#[utoipa::path(post, path = "/v1/apps/{app_id}/config/{app_config_id}/update-installs", tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id"), ("app_config_id" = String, Path)), request_body = wire::UpdateAppConfigInstalls, responses((status = 200, body = wire::Empty), (status = 404, body = api::ErrorBody)))]
async fn update_installs(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((app, which)): Path<(String, String)>,
    _request: Create<wire::UpdateAppConfigInstalls>,
) -> ApiResult<Json<wire::Empty>> {
    let app = state.store().app(&at.org, &app).await?;
    find(&state, &app, &which).await?;
    Ok(Json(wire::Empty {}))
}

/// All versions and drafts, newest first.
#[utoipa::path(get, path = "/v1/apps/{app_id}/configs", tag = "configs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::AppConfig]), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(page): Params<Page>,
) -> ApiResult<List<wire::AppConfig>> {
    let app = state.store().app(&at.org, &app).await?;
    let mut configs = Vec::new();
    for config in state.store().configs(&at.org, &app.id, page.offset(), page.fetch()).await? {
        configs.push(shown(&state, &config, false).await?);
    }
    Ok(List::new(configs, page))
}

/// The active version; before the first one, the newest draft.
#[utoipa::path(get, path = "/v1/apps/{app_id}/latest-config", tag = "configs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("recurse" = Option<bool>, Query)), responses((status = 200, body = wire::AppConfig), (status = 404, body = api::ErrorBody)))]
async fn latest(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(params): Params<Recurse>,
) -> ApiResult<Json<wire::AppConfig>> {
    let app = state.store().app(&at.org, &app).await?;
    let config = find(&state, &app, "latest").await?;
    Ok(Json(shown(&state, &config, params.recurse).await?))
}

#[derive(Debug, Deserialize)]
struct Against {
    #[serde(default)]
    against: Option<String>,
}

/// What changed from another version to this one. Sensitive values are masked.
#[utoipa::path(get, path = "/v1/apps/{app_id}/config/{app_config_id}/diff", tag = "configs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("app_config_id" = String, Path, description = "id, number, or `latest`"), ("against" = String, Query, description = "id or number of the other one")), responses((status = 200, body = [Object]), (status = 404, body = api::ErrorBody)))]
async fn diff(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((app, which)): Path<(String, String)>,
    Params(params): Params<Against>,
) -> ApiResult<Json<Vec<serde_json::Value>>> {
    let app = state.store().app(&at.org, &app).await?;
    let to = find(&state, &app, &which).await?;
    let against = params.against.ok_or_else(|| ApiError::invalid("say what to compare with: `?against=`"))?;
    let from = find(&state, &app, &against).await?;
    let (from, to) =
        (state.conductor.app_config(&at.org, &from).await?, state.conductor.app_config(&at.org, &to).await?);
    Ok(Json(changes(&from, &to)))
}

/// Puts a section into a draft: the one that is named, or else the newest.
pub(crate) async fn put(
    state: &AppState,
    at: &InOrg,
    app: &App,
    config: &str,
    posted: PostedSection,
) -> ApiResult<Section> {
    let draft = match config {
        "" => None,
        id => Some(ConfigId::parse(id).map_err(|_| StoreError::NotFound("config"))?),
    };
    Ok(state.conductor.put_section(&at.by(), app, draft, posted).await?)
}

/// A handler that posts a section of a draft.
macro_rules! section {
    ($post:ident, $path:literal, $request:ident, $answer:ident, $make:path, |$stamp:ident, $section:ident, $config:ident| $show:expr) => {
        #[doc = concat!("Puts a section into a draft, in place of the one before: `", $path, "`.")]
        #[utoipa::path(post, path = $path, tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::$request, responses((status = 201, body = wire::$answer), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
        async fn $post(
            State(state): State<AppState>,
            Operator(at): Operator,
            Path(app): Path<String>,
            request: Create<wire::$request>,
        ) -> ApiResult<(StatusCode, Json<wire::$answer>)> {
            let app = state.store().app(&at.org, &app).await?;
            let draft = request.value.app_config_id.clone();
            let $section = put(&state, &at, &app, &draft, $make(request.value)).await?;
            let $config = sections::alone(&$section)?;
            let $stamp = sections::stamp(at.org.as_str(), app.id.as_str(), &$section);
            Ok((StatusCode::CREATED, Json($show)))
        }
    };
}

/// What was posted must be in what was stored.
fn there<T>(shown: Option<T>) -> ApiResult<T> {
    shown.ok_or_else(|| StoreError::NotFound("section").into())
}

section!(
    post_input,
    "/v1/apps/{app_id}/input-config",
    CreateAppInputConfig,
    AppInputConfig,
    sections::input,
    |stamp, section, config| sections::show_input(stamp, &section, &config)
);
section!(
    post_sandbox,
    "/v1/apps/{app_id}/sandbox-config",
    CreateAppSandboxConfig,
    AppSandboxConfig,
    sections::sandbox,
    |stamp, section, config| there(sections::show_sandbox(stamp, &config))?
);
section!(
    post_runner,
    "/v1/apps/{app_id}/runner-configs",
    CreateAppRunnerConfig,
    AppRunnerConfig,
    sections::runner,
    |stamp, section, config| there(sections::show_runner(stamp, &config))?
);
section!(
    post_stack,
    "/v1/apps/{app_id}/stack-configs",
    CreateAppStackConfig,
    AppStackConfig,
    sections::stack,
    |stamp, section, config| there(sections::show_stack(stamp, &config))?
);
/// Puts the roles into a draft, in place of those before; break-glass roles among them are a section of their own.
#[utoipa::path(post, path = "/v1/apps/{app_id}/permissions-configs", tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::CreateAppPermissionsConfig, responses((status = 201, body = wire::AppPermissionsConfig), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn post_permissions(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<wire::CreateAppPermissionsConfig>,
) -> ApiResult<(StatusCode, Json<wire::AppPermissionsConfig>)> {
    let app = state.store().app(&at.org, &app).await?;
    let draft = request.value.app_config_id.clone();
    let (permissions, break_glass) = sections::permissions(request.value);
    let section = put(&state, &at, &app, &draft, permissions).await?;
    if let Some(break_glass) = break_glass {
        put(&state, &at, &app, section.config_id.as_str(), break_glass).await?;
    }
    let stamp = sections::stamp(at.org.as_str(), app.id.as_str(), &section);
    let shown = sections::show_permissions(stamp, &section, &sections::alone(&section)?);
    Ok((StatusCode::CREATED, Json(shown)))
}
section!(
    post_break_glass,
    "/v1/apps/{app_id}/break-glass-configs",
    CreateAppBreakGlassConfig,
    AppBreakGlassConfig,
    sections::break_glass,
    |stamp, section, config| sections::show_break_glass(stamp, &section, &config)
);
section!(
    post_policies,
    "/v1/apps/{app_id}/policies-configs",
    CreateAppPoliciesConfig,
    AppPoliciesConfig,
    sections::policies,
    |stamp, section, config| sections::show_policies(stamp, &section, &config)
);
section!(
    post_secrets,
    "/v1/apps/{app_id}/secrets-configs",
    CreateAppSecretsConfig,
    AppSecretsConfig,
    sections::secrets,
    |stamp, section, config| sections::show_secrets(stamp, &section, &config)
);
section!(
    post_operation_roles,
    "/v1/apps/{app_id}/operation-role-configs",
    CreateAppOperationRoleConfig,
    AppOperationRoleConfig,
    sections::operation_role_rules,
    |stamp, section, config| sections::show_operation_roles(stamp, &config)
);

/// A handler for a section of the active version; before the first one, of the newest draft.
macro_rules! latest_section {
    ($name:ident, $path:literal, $answer:ident, $field:ident) => {
        #[doc = concat!("The section of the active version: `", $path, "`.")]
        #[utoipa::path(get, path = $path, tag = "configs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::$answer), (status = 404, body = api::ErrorBody)))]
        async fn $name(
            State(state): State<AppState>,
            Reader(at): Reader,
            Path(app): Path<String>,
        ) -> ApiResult<Json<wire::$answer>> {
            let app = state.store().app(&at.org, &app).await?;
            let config = find(&state, &app, "latest").await?;
            let shown = shown(&state, &config, Detail::Sections).await?;
            Ok(Json(there(shown.$field)?))
        }
    };
}

latest_section!(latest_input, "/v1/apps/{app_id}/input-latest-config", AppInputConfig, input);
latest_section!(latest_sandbox, "/v1/apps/{app_id}/sandbox-latest-config", AppSandboxConfig, sandbox);
latest_section!(latest_runner, "/v1/apps/{app_id}/runner-latest-config", AppRunnerConfig, runner);
latest_section!(latest_policies, "/v1/apps/{app_id}/latest-policies-config", AppPoliciesConfig, policies);

/// A handler for a section of all versions and drafts.
macro_rules! all_sections {
    ($name:ident, $path:literal, $answer:ident, $field:ident) => {
        #[doc = concat!("The section of all versions and drafts, newest first: `", $path, "`.")]
        #[utoipa::path(get, path = $path, tag = "configs", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::$answer]), (status = 404, body = api::ErrorBody)))]
        async fn $name(
            State(state): State<AppState>,
            Reader(at): Reader,
            Path(app): Path<String>,
            Params(page): Params<Page>,
        ) -> ApiResult<List<wire::$answer>> {
            let app = state.store().app(&at.org, &app).await?;
            let configs = state.store().configs(&at.org, &app.id, page.offset(), page.fetch()).await?;
            let more = configs.len() as u64 > page.limit();
            let mut found = Vec::new();
            for config in configs.iter().take(page.limit() as usize) {
                found.extend(shown(&state, config, Detail::Sections).await?.$field);
            }
            Ok(List::with_more(found, page, more))
        }
    };
}

all_sections!(list_input, "/v1/apps/{app_id}/input-configs", AppInputConfig, input);
all_sections!(list_sandbox, "/v1/apps/{app_id}/sandbox-configs", AppSandboxConfig, sandbox);
all_sections!(list_runner, "/v1/apps/{app_id}/runner-configs", AppRunnerConfig, runner);
