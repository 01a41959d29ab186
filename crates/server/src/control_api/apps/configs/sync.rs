//! From sections or files to the next version: validation with the same crate as the CLI's, then one atomic commit.

use std::collections::{BTreeMap, BTreeSet};

use api::control as wire;
use axum::Json;
use axum::extract::{Path, State};
use conductor::apps::{self as app, Part};
use config::{AppConfig, Severity};
use model::{Digest, SectionId, Timestamp};
use serde_json::{Value, json};
use store::{App, Commit, Config, ENTITIES_MAX, Entity, EntityKind, NewEntity, Section};

use super::sections;
use crate::AppState;
use crate::auth::{InOrg, Operator};
use crate::error::{ApiError, ApiResult};
use crate::request::Create;

const KINDS: [EntityKind; 2] = [EntityKind::Component, EntityKind::Action];

/// A config with the digests of its local sources.
pub(super) type Whole = (AppConfig, BTreeMap<String, String>);

/// What changed, as the CLI draws it; a local source as a whole.
pub(super) fn changes(from: &Whole, to: &Whole) -> Vec<Value> {
    let mut changes: Vec<Value> =
        config::diff(&from.0, &to.0).iter().filter_map(|change| serde_json::to_value(change).ok()).collect();
    for directory in from.1.keys().chain(to.1.keys()).collect::<BTreeSet<_>>() {
        let kind = match (from.1.get(directory), to.1.get(directory)) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(old), Some(new)) if old != new => "changed",
            (Some(_), Some(_)) => continue,
        };
        changes.push(json!({ "part": app::LOCAL_SOURCES, "name": directory, "kind": kind, "fields": [] }));
    }
    changes
}

/// Components and actions that the app has, and this config does not.
async fn removed(state: &AppState, app: &App, config: &AppConfig) -> ApiResult<Vec<wire::RemovedEntity>> {
    let mut removed = Vec::new();
    for kind in KINDS {
        let kept: BTreeSet<&str> = match kind {
            EntityKind::Component => config.components.iter().map(|c| c.common.name.as_str()).collect(),
            EntityKind::Action => config.actions.iter().map(|a| a.name.as_str()).collect(),
        };
        let known = state.store().all_entities(&app.org_id, &app.id, kind).await?;
        let gone = known.into_iter().filter(|entity| !kept.contains(entity.name.as_str()));
        removed.extend(gone.map(|entity| wire::RemovedEntity {
            id: entity.id,
            name: entity.name,
            kind: kind.as_str().into(),
        }));
    }
    Ok(removed)
}

/// The components and actions of a config; those that are new get these ids.
fn entities(state: &AppState, config: &AppConfig, now: Timestamp) -> Vec<NewEntity> {
    let id = |kind: EntityKind| kind.new_id(now, state.conductor.random_u128());
    // Those that files name, and those that templates read.
    let mut after: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for edge in config::Graph::new(config).map(|graph| graph.dependencies).unwrap_or_default() {
        after.entry(edge.component).or_default().push(edge.on);
    }
    let components = config.components.iter().map(|component| NewEntity {
        id: id(EntityKind::Component),
        kind: EntityKind::Component,
        name: component.common.name.clone(),
        entity_type: Some(component.kind.name().to_owned()),
        var_name: component.common.var_name.clone().unwrap_or_default(),
        labels: component.common.labels.clone(),
        dependencies: after.get(&component.common.name).cloned().unwrap_or_default(),
    });
    let actions = config.actions.iter().map(|action| NewEntity {
        id: id(EntityKind::Action),
        kind: EntityKind::Action,
        name: action.name.clone(),
        entity_type: None,
        var_name: String::new(),
        labels: action.labels.clone(),
        dependencies: action.dependencies.clone(),
    });
    components.chain(actions).collect()
}

/// A config that was read and checked.
struct Checked {
    config: AppConfig,
    local_sources: BTreeMap<String, String>,
    digest: Digest,
    warnings: Vec<Value>,
}

/// What is no error this time.
#[derive(Default)]
struct Tolerance {
    code: Option<config::Code>,
    /// Local sources that were not uploaded: nothing is made yet.
    not_uploaded: bool,
}

/// The very checks that the CLI makes, and what only the server knows.
async fn check(
    state: &AppState,
    at: &InOrg,
    config: AppConfig,
    local_sources: BTreeMap<String, String>,
    tolerance: Tolerance,
) -> ApiResult<Checked> {
    let most = ENTITIES_MAX as usize;
    let counts = [config.components.len(), config.actions.len(), config.inputs.len(), config.installs.len()];
    if counts.iter().any(|count| *count > most) {
        return Err(ApiError::invalid(format!("an app may have {most} components, actions, inputs and installs each")));
    }
    let checking = config.clone();
    let checked = tokio::task::spawn_blocking(move || config::check(&checking)).await;
    let mut problems = checked.map_err(|e| ApiError::new(api::ErrorCode::Internal, e.to_string()))?;
    for problem in problems.iter_mut().filter(|p| Some(p.code) == tolerance.code) {
        problem.severity = Severity::Warning;
    }
    if problems.iter().any(|p| p.severity == Severity::Error) {
        return Err(sections::refused(&problems));
    }
    for config::LocalSource { directory, .. } in config::local_sources(&config) {
        let digest = local_sources.get(&directory).and_then(|text| Digest::parse(text).ok());
        let uploaded = match &digest {
            Some(digest) => state.store().has_archive(&at.org, digest).await?,
            None => false,
        };
        if !uploaded && !tolerance.not_uploaded {
            let text = format!("the local source `{directory}` was not uploaded");
            return Err(ApiError::invalid(text).hint("`ferry apps sync` packs and uploads it"));
        }
    }
    let digest = app::digest(&config, &local_sources);
    let warnings = problems.iter().filter_map(|p| serde_json::to_value(p).ok()).collect();
    Ok(Checked { config, local_sources, digest, warnings })
}

/// The sections of a checked config. What a client posted keeps its id and its checksum.
fn fresh_sections(state: &AppState, at: &InOrg, draft: &Config, checked: &Checked, posted: &[Section]) -> Vec<Section> {
    let now = state.conductor.now();
    let section = |part: Part| {
        let known = posted.iter().find(|s| s.kind == part.kind && s.name == part.name);
        let own = known.filter(|s| s.config_id == draft.id);
        let checksum = known.map(|s| s.checksum.clone()).filter(|c| !c.is_empty());
        Section {
            id: own.map_or_else(|| SectionId::new(now, state.conductor.random_u128()), |s| s.id.clone()),
            config_id: draft.id.clone(),
            checksum: checksum.unwrap_or_else(|| Digest::of(part.body.to_string().as_bytes()).hex().to_owned()),
            kind: part.kind,
            name: part.name,
            entity_id: None,
            body: part.body,
            created_by: at.owner.account.id.clone(),
            created_at: own.map_or(now, |s| s.created_at),
        }
    };
    app::parts(&checked.config, &checked.local_sources).into_iter().map(section).collect()
}

/// What an incomplete draft takes over from the active version. A client that lists its components has sent everything but
/// the components that did not change; one that does not list them changes only what it sent.
fn carried(draft: &[Section], active: Vec<Section>, wanted: Option<&BTreeSet<String>>) -> Vec<Section> {
    let sent: BTreeSet<(&str, &str)> = draft.iter().map(|s| (s.kind.as_str(), s.name.as_str())).collect();
    // One that was renamed is the same all the same.
    let same: BTreeSet<&String> = draft.iter().filter_map(|s| s.entity_id.as_ref()).collect();
    let is_sent = |s: &Section| {
        sent.contains(&(s.kind.as_str(), s.name.as_str())) || s.entity_id.as_ref().is_some_and(|id| same.contains(id))
    };
    let missing = active.into_iter().filter(|s| !is_sent(s));
    match wanted {
        None => missing.collect(),
        Some(ids) => missing
            .filter(|s| s.kind == EntityKind::Component.section())
            .filter(|s| s.entity_id.as_ref().is_some_and(|id| ids.contains(id)))
            .collect(),
    }
}

/// Components that a client lists and neither posted nor kept: their last config, of whatever version, stands for them.
async fn listed(state: &AppState, at: &InOrg, ids: &BTreeSet<String>, there: &[Section]) -> ApiResult<Vec<Section>> {
    let mut found = Vec::new();
    for id in ids.iter().filter(|id| !there.iter().any(|s| s.entity_id.as_deref() == Some(id.as_str()))) {
        found.extend(state.store().sections_of(&at.org, id, 0, 1).await?);
    }
    Ok(found)
}

/// How often a commit starts over when someone else was faster.
const TRIES: usize = 5;

pub(super) async fn commit_draft(
    state: &AppState,
    at: &InOrg,
    app: &App,
    draft: Config,
    wanted: wire::UpdateAppConfig,
) -> ApiResult<Config> {
    let mut tries = 0;
    loop {
        tries += 1;
        let commit = prepare(state, at, app, &draft, wanted.clone()).await?;
        match state.store().commit_config(draft.clone(), commit).await.map_err(ApiError::from) {
            Err(error) if error.stale && tries < TRIES => {}
            done => {
                let config = done?;
                plan_builds(state, at, &config).await;
                return Ok(config);
            }
        }
    }
}

/// Schedules the builds of a config. A sync does not fail with them: what could not be scheduled now is scheduled later.
async fn plan_builds(state: &AppState, at: &InOrg, config: &Config) -> Vec<store::Build> {
    match state.conductor.plan_builds(&at.org, config, at.actor()).await {
        Ok(builds) => builds,
        Err(error) => {
            tracing::warn!(%error, config = %config.id, "the builds can't be planned now");
            if let Err(error) = state.store().unplan(&config.id).await {
                tracing::warn!(%error, config = %config.id, "nor later, without another sync");
            }
            Vec::new()
        }
    }
}

/// The commit of a draft as it is now, on what is active now.
async fn prepare(
    state: &AppState,
    at: &InOrg,
    app: &App,
    draft: &Config,
    wanted: wire::UpdateAppConfig,
) -> ApiResult<Commit> {
    let mut posted = state.store().sections(&at.org, &draft.id).await?;
    let read = posted.iter().map(|section| section.id.clone()).collect();
    let active = state.store().active_config(&at.org, &app.id).await?;
    let known = match &active {
        Some(active) => state.store().sections(&at.org, &active.id).await?,
        None => Vec::new(),
    };
    let ids: Option<BTreeSet<String>> = wanted.component_ids.map(|ids| ids.into_iter().collect());
    if let Some(ids) = &ids {
        let components = state.store().all_entities(&at.org, &app.id, EntityKind::Component).await?;
        let there: BTreeSet<&String> = components.iter().map(|component| &component.id).collect();
        if let Some(stranger) = ids.iter().find(|id| !there.contains(id)) {
            return Err(ApiError::invalid(format!("app `{}` has no component `{stranger}`", app.name)));
        }
    }
    posted.extend(carried(&posted, known, ids.as_ref()));
    if let Some(ids) = &ids {
        posted.extend(listed(state, at, ids, &posted).await?);
    }
    let (config, local_sources) = app::assemble(posted.iter().map(|s| &s.body))?;
    // Older clients know no roles: only one that speaks of them must name all three.
    let speaks_of_roles = posted.iter().any(|s| s.kind == "permissions");
    let code = (!speaks_of_roles).then_some(config::Code::MissingRole);
    let checked = check(state, at, config, local_sources, Tolerance { code, not_uploaded: false }).await?;
    Ok(Commit {
        sections: fresh_sections(state, at, draft, &checked, &posted),
        entities: entities(state, &checked.config, state.conductor.now()),
        digest: checked.digest,
        based_on: active.map(|active| active.id),
        read,
        description: wanted.status_description.unwrap_or_default(),
        state: wanted.state,
        actor: at.owner.account.id.clone(),
        now: state.conductor.now(),
    })
}

/// Syncs a whole app: validates it, and makes it the active version. Equal content makes no new one.
#[utoipa::path(post, path = "/v1/apps/{app_id}/sync", tag = "configs", security(("token" = ["operator"])), params(("app_id" = String, Path, description = "name or id")), request_body = wire::SyncApp, responses((status = 201, body = wire::SyncedApp), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
pub(super) async fn sync(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path(app): Path<String>,
    request: Create<wire::SyncApp>,
) -> ApiResult<(http::StatusCode, Json<wire::SyncedApp>)> {
    let app = state.store().app(&at.org, &app).await?;
    let wanted = request.value;
    let config = AppConfig::from_json(&wanted.config)
        .map_err(|e| ApiError::invalid(format!("`config` is not a config: {e}")))?;
    let tolerance = Tolerance { not_uploaded: wanted.plan_only, ..Tolerance::default() };
    let named: BTreeSet<String> = config::local_sources(&config).into_iter().map(|source| source.directory).collect();
    let local_sources = wanted.local_sources.into_iter().filter(|(directory, _)| named.contains(directory)).collect();
    let checked = check(&state, &at, config, local_sources, tolerance).await?;
    let mut tries = 0;
    loop {
        tries += 1;
        match Box::pin(commit_whole(&state, &at, &app, &checked, &wanted.cli_version, wanted.plan_only)).await {
            Err(error) if error.stale && tries < TRIES => {}
            done => return Ok((http::StatusCode::CREATED, Json(done?))),
        }
    }
}

/// Makes a checked config the next version, on what is active now; or says what that would change.
async fn commit_whole(
    state: &AppState,
    at: &InOrg,
    app: &App,
    checked: &Checked,
    cli_version: &str,
    plan_only: bool,
) -> ApiResult<wire::SyncedApp> {
    let before = state.store().active_config(&at.org, &app.id).await?;
    let known = match &before {
        Some(before) => state.conductor.app_config(&at.org, before).await?,
        None => Whole::default(),
    };
    let changes = changes(&known, &(checked.config.clone(), checked.local_sources.clone()));
    let removed = removed(state, app, &checked.config).await?;
    let readme = checked.config.metadata.as_ref().and_then(|m| m.readme.clone()).unwrap_or_default();
    let unchanged = before.as_ref().is_some_and(|b| b.digest.as_ref() == Some(&checked.digest));
    let draft = super::draft(state, at, app, readme, cli_version.to_owned());
    let active = if plan_only {
        before.unwrap_or(draft)
    } else {
        let commit = Commit {
            sections: fresh_sections(state, at, &draft, checked, &[]),
            entities: entities(state, &checked.config, state.conductor.now()),
            digest: checked.digest.clone(),
            based_on: before.map(|before| before.id),
            read: BTreeSet::new(),
            description: "synced".into(),
            state: None,
            actor: at.owner.account.id.clone(),
            now: state.conductor.now(),
        };
        state.store().commit_config(draft, commit).await?
    };
    let planned = if plan_only { Vec::new() } else { plan_builds(state, at, &active).await };
    let mut builds = Vec::with_capacity(planned.len());
    for build in planned {
        // The sync has succeeded, whatever can't be shown of it.
        builds.extend(crate::control_api::registry::builds::shown(state, build, false).await.ok());
    }
    let config = super::shown(state, &active, false).await?;
    Ok(wire::SyncedApp { config, unchanged, changes, removed, builds, warnings: checked.warnings.clone() })
}

/// Who a component or action depends on, by name: an id is looked up.
pub(crate) fn names(known: &[Entity], wanted: &[String]) -> Vec<String> {
    let name = |one: &String| known.iter().find(|e| e.id == *one).map_or_else(|| one.clone(), |e| e.name.clone());
    wanted.iter().map(name).collect()
}

/// A part of a config that holds one component or action.
pub(crate) fn element<T: serde::Serialize>(kind: EntityKind, value: &T) -> Value {
    json!({ kind.section(): [value] })
}
