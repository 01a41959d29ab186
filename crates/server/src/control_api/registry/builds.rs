//! Builds of components, copies of their artifacts for installs, and the logins that sources ask for.

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::WantedLogin;
use http::StatusCode;
use model::{BuildId, Timestamp};
use store::{Build, BuildFilter, BuildStatus, Job, SourceLogin, StoreError, shown_status};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Admin, Operator, Reader};
use crate::control_api::apps::Search;
use crate::control_api::apps::components::KIND;
use crate::control_api::jobs;
use crate::error::{ApiError, ApiResult};
use crate::launcher;
use crate::request::{Create, List, Params};

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(find))
        .routes(routes!(create))
        .routes(routes!(latest))
        .routes(routes!(current))
        .routes(routes!(get))
        .routes(routes!(cancel))
        .routes(routes!(build_config))
        .routes(routes!(sync))
        .routes(routes!(logins, login))
        .routes(routes!(logout))
}

fn parse_id(text: &str) -> ApiResult<BuildId> {
    Ok(BuildId::parse(text).map_err(|_| StoreError::NotFound("build"))?)
}

/// A build as the API shows it; with `full`, its job too.
pub(crate) async fn shown(state: &AppState, build: Build, full: bool) -> ApiResult<wire::Build> {
    let build = state.conductor.settled(build).await?;
    let job = match &build.job_id {
        Some(id) => Some(state.store().job(&build.org_id, id).await?),
        None => None,
    };
    let status = shown_status(&build, job.as_ref().map(|job| job.state));
    let mut description = build.description.clone();
    if let Some(job) = job.as_ref().filter(|_| build.status == BuildStatus::Open) {
        description = match state.conductor.waiting_reason(job).await? {
            Some(reason) if state.config.builds.launcher == "process" && reason.starts_with("no runner yet") => {
                match launcher::missing(&launcher::program(&state.config.builds)) {
                    Some(missing) => missing,
                    None => "the server starts the build runner".into(),
                }
            }
            Some(reason) => reason,
            None => job.reason.clone(),
        };
    }
    let is_commit = build.source.author_name.is_some();
    let revision = build.source.revision.clone();
    let duration = job.as_ref().and_then(|job| Some(duration(job.started_at?, job.finished_at?)));
    let log_stream = job.as_ref().map(|job| log_stream(job, &build));
    Ok(wire::Build {
        stamp: wire::Stamp {
            id: build.id.to_string(),
            created_by_id: build.created_by.clone(),
            created_at: build.created_at,
            updated_at: build.updated_at,
            org_id: build.org_id.to_string(),
            app_id: build.app_id.to_string(),
            app_config_id: String::new(),
        },
        component_id: build.component_id,
        component_name: build.component,
        component_config_connection_id: build.section_id.to_string(),
        component_config_version: build.config_version,
        // What the dialect's clients wait for.
        status: if status == "cancelled" { "error" } else { status }.into(),
        status_v2: Some(wire::CompositeStatus { status: status.into(), status_human_description: description.clone() }),
        status_description: description,
        git_ref: build.git_ref,
        no_op: build.same_as.is_some(),
        same_as: build.same_as.map(|id| id.to_string()).unwrap_or_default(),
        checksum: build.recipe,
        vcs_connection_commit: is_commit.then(|| wire::Commit {
            sha: revision.clone(),
            author_name: build.source.author_name.clone().unwrap_or_default(),
            author_email: build.source.author_email.clone().unwrap_or_default(),
            message: build.source.message.clone().unwrap_or_default(),
        }),
        source_ref: build.source.reference.unwrap_or_default(),
        source_digest: if is_commit { String::new() } else { revision },
        artifact: build.artifact,
        cache_hits: build.cache_hits,
        cache_steps: build.cache_steps,
        duration: duration.unwrap_or_default(),
        log_stream,
        runner_job: match job.filter(|_| full) {
            Some(job) => Some(jobs::wire(state, job, false).await?),
            None => None,
        },
    })
}

fn duration(from: Timestamp, to: Timestamp) -> i64 {
    i64::try_from(to.since(from).as_nanos()).unwrap_or(i64::MAX)
}

fn log_stream(job: &Job, build: &Build) -> wire::LogStream {
    wire::LogStream {
        id: job.log_stream_id.clone(),
        org_id: job.org_id.clone(),
        owner_id: build.id.to_string(),
        owner_type: "component_builds".into(),
        open: !job.state.is_terminal(),
        created_at: job.created_at,
        size_bytes: None,
        deleted_at: None,
        note: String::new(),
    }
}

/// Builds, newest first: of an app, of a component, or of all.
#[utoipa::path(get, path = "/v1/builds", tag = "builds", security(("token" = ["read-only"])), params(("app_id" = Option<String>, Query, description = "name or id"), ("component_id" = Option<String>, Query, description = "name or id"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [wire::Build]), (status = 404, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<List<wire::Build>> {
    let mut filter = BuildFilter::default();
    if let Some(app) = search.text("app_id") {
        filter.app = Some(state.store().app(&at.org, app).await?.id);
    }
    if let Some(component) = search.text("component_id") {
        filter.component = Some(state.store().entity(&at.org, filter.app.as_ref(), KIND, component).await?.id);
    }
    let page = search.page()?;
    let mut builds = Vec::new();
    for build in state.store().builds(&at.org, filter, page.offset(), page.fetch()).await? {
        builds.push(shown(&state, build, false).await?);
    }
    Ok(List::new(builds, page))
}

/// A build, by its id alone.
#[utoipa::path(get, path = "/v1/builds/{build_id}", tag = "builds", security(("token" = ["read-only"])), params(("build_id" = String, Path)), responses((status = 200, body = wire::Build), (status = 404, body = api::ErrorBody)))]
async fn find(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(build): Path<String>,
) -> ApiResult<Json<wire::Build>> {
    let build = state.store().build(&at.org, &parse_id(&build)?).await?;
    Ok(Json(shown(&state, build, true).await?))
}

/// Builds a component of the active config.
#[utoipa::path(post, path = "/v1/components/{component_id}/builds", tag = "builds", security(("token" = ["operator"])), params(("component_id" = String, Path, description = "name or id")), request_body = wire::CreateBuild, responses((status = 201, body = wire::Build), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn create(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(component): Path<String>,
    request: Create<wire::CreateBuild>,
) -> ApiResult<(StatusCode, Json<wire::Build>)> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let idempotency = request.idempotency(&at.owner.account.id);
    let wanted = request.value;
    let reference = Some(wanted.git_ref.trim()).filter(|reference| !reference.is_empty());
    let asked = conductor::Asked { reference: reference.map(str::to_owned), anew: wanted.anew, idempotency };
    let (conductor, org, app) = (&state.conductor, &at.org, &component.app_id);
    let build = conductor.build_component(org, app, &component.id, asked, at.actor()).await?;
    Ok((StatusCode::CREATED, Json(shown(&state, build, true).await?)))
}

/// The newest build of a component.
#[utoipa::path(get, path = "/v1/components/{component_id}/builds/latest", tag = "builds", security(("token" = ["read-only"])), params(("component_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::Build), (status = 404, body = api::ErrorBody)))]
async fn latest(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(component): Path<String>,
) -> ApiResult<Json<wire::Build>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let filter = BuildFilter { app: None, component: Some(component.id) };
    let build = state.store().builds(&at.org, filter, 0, 1).await?.pop().ok_or(StoreError::NotFound("build"))?;
    Ok(Json(shown(&state, build, true).await?))
}

/// The newest good build of a component as the active config has it: what installs get.
#[utoipa::path(get, path = "/v1/components/{component_id}/builds/current", tag = "builds", security(("token" = ["read-only"])), params(("component_id" = String, Path, description = "name or id")), responses((status = 200, body = wire::Build), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn current(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(component): Path<String>,
) -> ApiResult<Json<wire::Build>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let build = state.conductor.current_build(&at.org, &component.app_id, &component.id).await?;
    Ok(Json(shown(&state, build, true).await?))
}

/// A build of a component.
#[utoipa::path(get, path = "/v1/components/{component_id}/builds/{build_id}", tag = "builds", security(("token" = ["read-only"])), params(("component_id" = String, Path, description = "name or id"), ("build_id" = String, Path)), responses((status = 200, body = wire::Build), (status = 404, body = api::ErrorBody)))]
async fn get(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((component, build)): Path<(String, String)>,
) -> ApiResult<Json<wire::Build>> {
    let component = state.store().entity(&at.org, None, KIND, &component).await?;
    let build = state.store().build(&at.org, &parse_id(&build)?).await?;
    if build.component_id != component.id {
        return Err(StoreError::NotFound("build").into());
    }
    Ok(Json(shown(&state, build, true).await?))
}

/// Cancels a build that has not ended.
#[utoipa::path(post, path = "/v1/builds/{build_id}/cancel", tag = "builds", security(("token" = ["operator"])), params(("build_id" = String, Path)), responses((status = 200, body = wire::Build), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn cancel(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(build): Path<String>,
) -> ApiResult<Json<wire::Build>> {
    let build = state.store().build(&at.org, &parse_id(&build)?).await?;
    let build = state.conductor.cancel_build(&at.by(), build).await?;
    Ok(Json(shown(&state, build, true).await?))
}

/// Builds what a config of an app needs and was not built yet.
#[utoipa::path(post, path = "/v1/apps/{app_id}/configs/{app_config_id}/build", tag = "builds", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id"), ("app_config_id" = String, Path)), responses((status = 201, body = [wire::Build]), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn build_config(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((app, config)): Path<(String, String)>,
) -> ApiResult<(StatusCode, Json<Vec<wire::Build>>)> {
    let app = state.store().app(&at.org, &app).await?;
    let config = model::ConfigId::parse(&config).map_err(|_| StoreError::NotFound("config"))?;
    let config = state.store().config(&at.org, &app.id, &config).await?;
    let mut builds = Vec::new();
    for build in state.conductor.build_config(&at.by(), &config).await? {
        builds.push(shown(&state, build, false).await?);
    }
    Ok((StatusCode::CREATED, Json(builds)))
}

/// Copies the artifact of a build into the install's own registry, or sees that it is there to be read.
#[utoipa::path(post, path = "/v1/installs/{install_id}/artifact-syncs", tag = "builds", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id")), request_body = wire::SyncArtifact, responses((status = 201, body = wire::Job), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn sync(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(install): Path<String>,
    request: Create<wire::SyncArtifact>,
) -> ApiResult<(StatusCode, Json<wire::Job>)> {
    let install = state.store().install(&at.org, &install).await?;
    let idem = request.idempotency(&at.owner.account.id);
    let wanted = request.value;
    let build = match (wanted.build_id.as_str(), wanted.component.as_str()) {
        ("", "") => return Err(ApiError::invalid("give `build_id`, or `component` for its last good build")),
        ("", component) => {
            let component = state.store().entity(&at.org, Some(&install.app_id), KIND, component).await?;
            state.conductor.current_build(&at.org, &component.app_id, &component.id).await?
        }
        (build, _) => state.conductor.settled(state.store().build(&at.org, &parse_id(build)?).await?).await?,
    };
    if build.app_id != install.app_id {
        return Err(StoreError::NotFound("build").into());
    }
    let to = match wanted.repository.as_str() {
        "" => None,
        repository => Some(repository_of(repository, wanted.plain_http)?),
    };
    let runner = state.store().runner(&at.org, install.runner_id.as_str()).await?;
    let job = state.conductor.sync_artifact(install, &runner, &build, to, at.actor(), idem).await?;
    Ok((StatusCode::CREATED, Json(jobs::wire_new(&state, job, &runner).await?)))
}

fn repository_of(text: &str, plain_http: bool) -> ApiResult<model::build::Repository> {
    let good = |name: &str| {
        let part = |part: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
            !part.is_empty() && part.chars().all(inner) && part.starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        name.len() <= 255 && name.split('/').all(part)
    };
    let bare = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    match text.split_once('/') {
        Some((host, name)) if !host.is_empty() && host.chars().all(bare) && good(name) => {
            Ok(model::build::Repository { registry: Some(host.into()), name: name.into(), plain_http })
        }
        _ => Err(ApiError::invalid(format!("`{text}` is not `host[:port]/path` of a repository"))),
    }
}

/// The logins that builds use at git hosts and registries; passwords are never shown.
#[utoipa::path(get, path = "/v1/source-logins", tag = "builds", security(("token" = ["read-only"])), responses((status = 200, body = [wire::SourceLogin])))]
async fn logins(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<Vec<wire::SourceLogin>>> {
    let logins = state.store().source_logins(&at.org).await?;
    Ok(Json(logins.into_iter().map(shown_login).collect()))
}

fn shown_login(login: SourceLogin) -> wire::SourceLogin {
    wire::SourceLogin {
        prefix: login.prefix,
        username: login.username,
        created_by_id: login.created_by.to_string(),
        created_at: login.created_at,
        expires_at: login.expires_at,
    }
}

/// Keeps a login, in place of the one before.
#[utoipa::path(post, path = "/v1/source-logins", tag = "builds", security(("token" = ["admin"])), request_body = wire::CreateSourceLogin, responses((status = 201, body = wire::SourceLogin), (status = 400, body = api::ErrorBody)))]
async fn login(
    State(state): State<AppState>,
    Admin(at): Admin,
    request: Create<wire::CreateSourceLogin>,
) -> ApiResult<(StatusCode, Json<wire::SourceLogin>)> {
    let wire::CreateSourceLogin { prefix, username, password, expires_at } = request.value;
    let wanted = WantedLogin { prefix, username, password, expires_at };
    let login = state.conductor.put_source_login(&at.by(), wanted).await?;
    Ok((StatusCode::CREATED, Json(shown_login(login))))
}

/// Which login is forgotten.
#[derive(Debug, serde::Deserialize)]
struct Prefix {
    prefix: String,
}

/// Forgets a login.
#[utoipa::path(delete, path = "/v1/source-logins/by-prefix", tag = "builds", security(("token" = ["admin"])), params(("prefix" = String, Query)), responses((status = 200, body = bool), (status = 404, body = api::ErrorBody)))]
async fn logout(
    State(state): State<AppState>,
    Admin(at): Admin,
    Params(wanted): Params<Prefix>,
) -> ApiResult<Json<bool>> {
    state.conductor.delete_source_login(&at.by(), &wanted.prefix).await?;
    Ok(Json(true))
}
