//! An install as its pages show it: overview, graph, drift, README, how its state changed.

use std::collections::{BTreeMap, BTreeSet};

use api::control::{
    Can, Cans, ChangeRow, ComponentGraph, ComponentRow, DriftWord, GraphEdge, GraphNode, HealthWord, InstallDrift,
    InstallOverview, PartDrift, PartWord, Readme, StateChange, StateDiff,
};
use axum::Json;
use axum::extract::{Path, State};
use conductor::{Document, Drift, drift_of, is_there};
use model::{JobState, PartStatus, Role, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};
use store::{EntityKind, Install, JobFilter, Look, StepRow, StoreError, WorkflowFilter, WorkflowRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::approvals::WAITING_MAX;
use super::fleet::row_of;
use super::readme::blocks;
use super::runs::{running, title};
use super::{Names, may, may_if, word};
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::control_api::installs::inputs::HIDDEN;
use crate::control_api::runners;
use crate::error::{ApiError, ApiResult};
use crate::request::Params;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(overview))
        .routes(routes!(graph))
        .routes(routes!(app_graph))
        .routes(routes!(drift))
        .routes(routes!(readme))
        .routes(routes!(state_diff))
        .routes(routes!(workspace_diff))
}

/// Changes that an overview lists.
const CHANGES: u64 = 10;
/// Differences of two states that are listed.
const DIFFERENCES_MAX: usize = 500;
const VALUE_CHARS: usize = 400;

/// The first page of an install: how it stands, its parts, what was done to it, and what may be done.
#[utoipa::path(get, path = "/v1/installs/{install_id}/overview", tag = "pages", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = InstallOverview), (status = 404, body = api::ErrorBody)))]
async fn overview(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<InstallOverview>> {
    let install = state.store().install(&at.org, &install).await?;
    let page = Page::read(&state, &at, &install).await?;
    let runner = state.store().runner(&at.org, install.runner_id.as_str()).await?;
    let filter = WorkflowFilter { install: Some(install.id.clone()), ..WorkflowFilter::default() };
    let rows = state.store().filtered_workflows(&at.org, filter.clone(), CHANGES).await?;
    let names = Names::of(&state, &at).await?;
    let mut changes = Vec::new();
    for row in &rows {
        changes.push(change(&state, &at, row, &names).await?);
    }
    let open = ["in-progress", "approval-awaiting", "pending"].map(str::to_owned).to_vec();
    let open = state.store().filtered_workflows(&at.org, WorkflowFilter { statuses: open, ..filter }, CHANGES).await?;
    let mut now = Vec::new();
    for row in &open {
        let loaded = state.conductor.workflow(&at.org, &row.id).await?;
        now.push(running(&loaded, install.name.clone()));
    }
    let queued = JobFilter { install: Some(install.id.clone()), state: Some(JobState::Queued), ..JobFilter::default() };
    let jobs_queued = state.store().jobs(&at.org, queued, 0, 100).await?.len() as u64;
    let kept_at_version = match &install.config_id {
        Some(id) => state.store().config(&at.org, &install.app_id, id).await?.version,
        None => None,
    };
    let document = page.document.as_deref();
    let readme = document.and_then(|document| document.config.metadata.as_ref()).and_then(|it| it.readme.as_ref());
    let outputs = page.components.iter().filter(|row| !row.outputs.is_empty());
    let outputs = outputs.map(|row| (row.name.clone(), Value::Object(row.outputs.clone()))).collect();
    let undeployed_inputs = state.conductor.undeployed_inputs(&install).await?;
    Ok(Json(InstallOverview {
        install: row_of(&state, &at, &install).await?,
        runner: runners::wire(&state, runner),
        approval_option: install.settings.approval_option.unwrap_or_default().as_str().to_owned(),
        outputs,
        changes,
        can: install_cans(&at, &page, !open.is_empty(), state.conductor.is_deployed(&install).await?),
        now,
        warnings: warnings(&page, &undeployed_inputs, kept_at_version),
        undeployed_inputs,
        kept_at_version,
        managed_by: install.settings.managed_by.clone(),
        jobs_queued,
        has_readme: readme.is_some_and(|readme| !readme.trim().is_empty()),
        sandbox: page.sandbox.clone(),
        components: page.components,
    }))
}

async fn change(state: &AppState, at: &InOrg, row: &WorkflowRow, names: &Names) -> ApiResult<ChangeRow> {
    let loaded = state.conductor.workflow(&at.org, &row.id).await?;
    Ok(ChangeRow {
        workflow_id: row.id.to_string(),
        r#type: row.kind.clone(),
        title: title(&loaded),
        status: row.status.clone(),
        by: names.name(row.created_by.as_str()),
        at: row.created_at,
        finished_at: row.finished_at,
        version: loaded.body.request.brings_a_version().then_some(loaded.body.config_version),
        plan_only: loaded.body.request.plan_only,
        trouble: loaded.body.failure.clone().unwrap_or_default(),
    })
}

fn warnings(page: &Page, undeployed: &[String], kept: Option<u64>) -> Vec<String> {
    let mut warnings = Vec::new();
    let unknown: Vec<&str> =
        page.rows().filter(|row| row.status == PartWord::Unknown).map(|row| row.name.as_str()).collect();
    if !unknown.is_empty() {
        let what = unknown.join(", ");
        warnings.push(format!("Nobody knows how the last apply of {what} ended. Look at what it did, then settle it."));
    }
    if !undeployed.is_empty() {
        warnings.push(format!("The value of {} is set and not deployed.", undeployed.join(", ")));
    }
    if let Some(version) = kept {
        warnings.push(format!("A rollback keeps this install at version {version} until everything is deployed anew."));
    }
    warnings
}

/// The parts of an install with all that is known of each.
struct Page {
    document: Option<std::sync::Arc<Document>>,
    parts: BTreeMap<String, Value>,
    looks: Vec<Look>,
    components: Vec<ComponentRow>,
    sandbox: Option<ComponentRow>,
}

fn drift_word(look: Option<&Look>, part: &Value) -> Option<DriftWord> {
    match drift_of(look, Some(part)) {
        Drift::Absent => None,
        Drift::NeverLooked => Some(DriftWord::NeverLooked),
        Drift::None => Some(DriftWord::None),
        Drift::Drifted => Some(DriftWord::Drifted),
        Drift::LookFailed => Some(DriftWord::LookFailed),
    }
}

impl Page {
    async fn read(state: &AppState, at: &InOrg, install: &Install) -> ApiResult<Self> {
        let parts = state.conductor.parts_now(install).await?;
        let document = state.conductor.document_of(install).await?;
        let looks = state.store().looks(&at.org, &install.id).await?;
        let mut page = Self { document, parts, looks, components: Vec::new(), sandbox: None };
        let health = state.conductor.health_of(install).await?;
        let workspaces = state.store().workspaces(&at.org, &install.id).await?;
        let entities = state.store().all_entities(&at.org, &install.app_id, EntityKind::Component).await?;
        let waiting = waiting(state, at, install).await?;
        let latest = state.store().active_config(&at.org, &install.app_id).await?.and_then(|config| config.version);
        let tree = match &page.document {
            Some(document) => {
                let tree = state.conductor.install_tree(install, &document.config, Some(HIDDEN)).await?;
                tree.root["nuon"].clone()
            }
            None => Value::Null,
        };
        for name in page.names() {
            let mut row = page.component(install, &name, latest);
            row.id = entities.iter().find(|it| it.name == name).map(|it| it.id.clone()).unwrap_or_default();
            let part = format!("components/{name}");
            row.workspace_id =
                workspaces.iter().find(|it| it.target == part).map(|it| it.id.to_string()).unwrap_or_default();
            if let Some(known) = health.components.0.get(&name) {
                row.health = HealthWord::parse(known.told.verdict.as_str());
                row.health_reason = known.told.reason.clone();
            }
            if let Some((workflow, step)) = waiting.get(&part) {
                row.waiting_workflow_id.clone_from(workflow);
                row.waiting_step_id.clone_from(step);
            }
            row.outputs = tree["components"][name.as_str()]["outputs"].as_object().cloned().unwrap_or_default();
            page.components.push(row);
        }
        let has_sandbox = page.document.as_ref().is_some_and(|document| document.config.sandbox.is_some());
        if has_sandbox || page.parts.get("sandbox").is_some_and(is_there) {
            let mut row = page.part("sandbox", "sandbox", latest);
            row.workspace_id =
                workspaces.iter().find(|it| it.target == "sandbox").map(|it| it.id.to_string()).unwrap_or_default();
            if let Some((workflow, step)) = waiting.get("sandbox") {
                row.waiting_workflow_id.clone_from(workflow);
                row.waiting_step_id.clone_from(step);
            }
            row.outputs = tree["sandbox"]["outputs"].as_object().cloned().unwrap_or_default();
            page.sandbox = Some(row);
        }
        Ok(page)
    }

    fn rows(&self) -> impl Iterator<Item = &ComponentRow> {
        self.sandbox.iter().chain(&self.components)
    }

    /// Components that the app has, and those that are there though it has them no longer.
    fn names(&self) -> Vec<String> {
        let config = self.document.iter().flat_map(|document| &document.config.components);
        let wanted = config.map(|component| component.common.name.clone());
        let there = self.parts.iter().filter(|(_, part)| is_there(part));
        let there = there.filter_map(|(part, _)| part.strip_prefix("components/").map(str::to_owned));
        wanted.chain(there).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What every part has.
    fn part(&self, name: &str, part: &str, latest: Option<u64>) -> ComponentRow {
        let value = self.parts.get(part).unwrap_or(&Value::Null);
        let status = PartStatus::parse(value["status"].as_str());
        let version = value["config_version"].as_u64().filter(|_| status.is_there());
        let look = self.looks.iter().find(|look| look.part == part);
        ComponentRow {
            name: name.to_owned(),
            status: word!(PartWord, status.as_str(), PartWord::Unknown),
            id: String::new(),
            r#type: String::new(),
            retired: false,
            disabled: false,
            toggleable: false,
            depends_on: Vec::new(),
            needed_by: Vec::new(),
            version,
            next_version: latest.filter(|_| version != latest),
            drift: drift_word(look, value),
            health: None,
            health_reason: String::new(),
            deployed_at: value["applied_us"].as_i64().map(Timestamp::from_micros),
            workflow_id: String::new(),
            waiting_step_id: String::new(),
            waiting_workflow_id: String::new(),
            workspace_id: String::new(),
            outputs: Map::new(),
        }
    }

    fn component(&self, install: &Install, name: &str, latest: Option<u64>) -> ComponentRow {
        let row = self.part(name, &format!("components/{name}"), latest);
        let Some(document) = &self.document else { return row };
        let known = document.config.components.iter().find(|component| component.common.name == name);
        let needs = |name: &str| document.needs.get(name).cloned().unwrap_or_default();
        let needed_by = document.needs.iter().filter(|(_, on)| on.iter().any(|on| on == name));
        ComponentRow {
            r#type: known.map(|component| component.kind.name().to_owned()).unwrap_or_default(),
            retired: known.is_none(),
            disabled: conductor::disabled(install, &document.config).contains(name),
            toggleable: known.is_some_and(|component| component.common.toggleable),
            depends_on: needs(name),
            needed_by: needed_by.map(|(name, _)| name.clone()).collect(),
            ..row
        }
    }
}

/// Plans of an install that wait, by the part that they are about: workflow and step.
async fn waiting(state: &AppState, at: &InOrg, install: &Install) -> ApiResult<BTreeMap<String, (String, String)>> {
    let open = ["approval-awaiting", "in-progress"].map(str::to_owned).to_vec();
    let filter = WorkflowFilter { install: Some(install.id.clone()), statuses: open, ..WorkflowFilter::default() };
    let mut found = BTreeMap::new();
    for row in state.store().filtered_workflows(&at.org, filter, WAITING_MAX).await? {
        let (_, steps): (_, Vec<StepRow>) = state.store().workflow_with_steps(&at.org, &row.id).await?;
        for step in steps.into_iter().filter(|step| step.status == "approval-awaiting") {
            if let Some(target) = step.target {
                found.insert(target, (row.id.to_string(), step.id.to_string()));
            }
        }
    }
    Ok(found)
}

/// What may be done to an install, and why not.
fn install_cans(at: &InOrg, page: &Page, open: bool, deployed: bool) -> Cans {
    let synced = page.document.is_some();
    let there = page.rows().any(|row| matches!(row.status, PartWord::Active | PartWord::Error | PartWord::Unknown));
    let never = "the app has no version yet: sync it with `ferry apps sync`";
    let nothing = "nothing is deployed";
    let operate = may(at, Role::Operator);
    let if_synced = may_if(at, Role::Operator, synced, never);
    let if_there = may_if(at, Role::Operator, there, nothing);
    let has = |count: usize, what: &str| {
        let text = format!("the app has no {what}");
        if synced { may_if(at, Role::Operator, count > 0, &text) } else { if_synced.clone() }
    };
    let config = page.document.as_ref().map(|document| &document.config);
    let forget = match (&operate, deployed, open) {
        (can, _, _) if !can.ok => can.clone(),
        (_, true, _) => Can::no("something is deployed: deprovision it first"),
        (_, _, true) => Can::no("a workflow is not over: wait for it or cancel it"),
        (can, false, false) => can.clone(),
    };
    [
        ("deploy", if_synced.clone()),
        ("provision", if_synced.clone()),
        ("reprovision", if_synced.clone()),
        ("inputs", if_synced.clone()),
        ("action", has(config.map_or(0, |config| config.actions.len()), "actions")),
        ("runbook", has(config.map_or(0, |config| config.runbooks.len()), "runbooks")),
        ("secrets", has(config.map_or(0, |config| config.secrets.len()), "secrets")),
        ("rollback", if_synced.clone()),
        ("toggle", if_synced.clone()),
        ("teardown", if_there.clone()),
        ("drift", if_there),
        ("restore", operate.clone()),
        ("deprovision", if_synced),
        ("settings", operate.clone()),
        ("labels", operate.clone()),
        ("forget", forget),
        ("join", may(at, Role::Admin)),
        ("drain", operate),
        ("runner_settings", may(at, Role::Admin)),
    ]
    .into_iter()
    .map(|(name, can)| (name.to_owned(), can))
    .collect()
}

/// The components of an install and what they need, laid out in columns and rows.
#[utoipa::path(get, path = "/v1/installs/{install_id}/graph", tag = "pages", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = ComponentGraph), (status = 404, body = api::ErrorBody)))]
async fn graph(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<ComponentGraph>> {
    let install = state.store().install(&at.org, &install).await?;
    let page = Page::read(&state, &at, &install).await?;
    let needs: BTreeMap<String, Vec<String>> =
        page.components.iter().map(|row| (row.name.clone(), row.depends_on.clone())).collect();
    let mut graph = laid_out(&needs);
    for node in &mut graph.nodes {
        let Some(row) = page.components.iter().find(|row| row.name == node.name) else { continue };
        node.r#type.clone_from(&row.r#type);
        node.status = Some(row.status);
        node.drift = row.drift;
        node.health = row.health;
        node.disabled = row.disabled;
    }
    Ok(Json(graph))
}

#[derive(Debug, Default, Deserialize)]
struct AtVersion {
    version: Option<u64>,
}

/// The components of an app and what they need; of its newest version, or of the one that is named.
#[utoipa::path(get, path = "/v1/apps/{app_id}/graph", tag = "pages", security(("token" = ["read-only"])), params(("app_id" = String, Path, description = "name or id"), ("version" = Option<u64>, Query)), responses((status = 200, body = ComponentGraph), (status = 404, body = api::ErrorBody)))]
async fn app_graph(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(app): Path<String>,
    Params(wanted): Params<AtVersion>,
) -> ApiResult<Json<ComponentGraph>> {
    let app = state.store().app(&at.org, &app).await?;
    let config = match wanted.version {
        Some(version) => Some(state.store().config_version(&at.org, &app.id, version).await?),
        None => state.store().active_config(&at.org, &app.id).await?,
    };
    let Some(config) = config else { return Ok(Json(laid_out(&BTreeMap::new()))) };
    let document = state.conductor.document(&at.org, &app.id, &config.id).await?;
    let names = document.config.components.iter().map(|component| component.common.name.clone());
    let needs = names.map(|name| (name.clone(), document.needs.get(&name).cloned().unwrap_or_default())).collect();
    let mut graph = laid_out(&needs);
    for node in &mut graph.nodes {
        let component = document.config.components.iter().find(|component| component.common.name == node.name);
        node.r#type = component.map(|component| component.kind.name().to_owned()).unwrap_or_default();
    }
    Ok(Json(graph))
}

/// Each node one column after the last that it needs; in a column, beside what it needs.
fn laid_out(needs: &BTreeMap<String, Vec<String>>) -> ComponentGraph {
    let mut ranks: BTreeMap<&str, u64> = needs.keys().map(|name| (name.as_str(), 0)).collect();
    // A graph has no circles; as many rounds as nodes are enough, also where one had.
    for _ in 0..needs.len() {
        let mut moved = false;
        for (name, on) in needs {
            let after = on.iter().filter_map(|on| ranks.get(on.as_str())).max().map_or(0, |rank| rank + 1);
            let after = after.min(needs.len() as u64);
            if ranks.get(name.as_str()).is_some_and(|rank| *rank < after) {
                ranks.insert(name, after);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let columns = ranks.values().max().map_or(0, |last| last + 1);
    let mut lanes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut rows = 0;
    for rank in 0..columns {
        let mut column: Vec<&str> = ranks.iter().filter(|(_, of)| **of == rank).map(|(name, _)| *name).collect();
        let middle = |name: &str| {
            let on = needs.get(name).into_iter().flatten().filter_map(|on| lanes.get(on.as_str()));
            let (sum, count) = on.fold((0, 0), |(sum, count), lane| (sum + lane * 1000, count + 1));
            u64::checked_div(sum, count).unwrap_or(u64::MAX)
        };
        column.sort_by_key(|name| (middle(name), *name));
        for (lane, name) in (0..).zip(&column) {
            lanes.insert(name, lane);
        }
        rows = rows.max(column.len() as u64);
    }
    let node = |(name, rank): (&&str, &u64)| GraphNode {
        name: (*name).to_owned(),
        rank: *rank,
        lane: lanes.get(name).copied().unwrap_or_default(),
        r#type: String::new(),
        status: None,
        drift: None,
        health: None,
        disabled: false,
    };
    let edge = |(name, on): (&String, &Vec<String>)| {
        let known = on.iter().filter(|on| needs.contains_key(*on)).cloned();
        known.map(|from| GraphEdge { from, to: name.clone() }).collect::<Vec<_>>()
    };
    ComponentGraph {
        nodes: ranks.iter().map(node).collect(),
        edges: needs.iter().flat_map(edge).collect(),
        ranks: columns,
        lanes: rows,
    }
}

/// The last look for drift at every part of an install.
#[utoipa::path(get, path = "/v1/installs/{install_id}/drift", tag = "pages", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = InstallDrift), (status = 404, body = api::ErrorBody)))]
async fn drift(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<InstallDrift>> {
    let install = state.store().install(&at.org, &install).await?;
    let page = Page::read(&state, &at, &install).await?;
    let schedules = state.store().schedules(&at.org, &install.id).await?;
    let of = |name: &str| if name == "sandbox" { String::new() } else { name.to_owned() };
    let there = page.rows().filter(|row| row.drift.is_some());
    let parts = there.map(|row| {
        let part = if row.name == "sandbox" { "sandbox".to_owned() } else { format!("components/{}", row.name) };
        let look = page.looks.iter().find(|look| look.part == part);
        let schedule = schedules.iter().find(|it| it.kind == "drift" && it.name == of(&row.name));
        // What a void look has found is not told of the part as it is.
        let told = look.filter(|_| matches!(row.drift, Some(DriftWord::Drifted | DriftWord::None)));
        let tried = look.and_then(|look| look.attempt.as_ref());
        let changes = told.and_then(|look| engine::Changes::deserialize(&look.body["changes"]).ok());
        PartDrift {
            part: row.name.clone(),
            drift: row.drift.unwrap_or(DriftWord::NeverLooked),
            looked_at: told.map(|look| look.looked_at),
            workflow_id: told.map(|look| look.workflow_id.to_string()).unwrap_or_default(),
            step_id: told.map(|look| look.step_id.to_string()).unwrap_or_default(),
            digest: told.and_then(|look| look.body["digest"].as_str()).unwrap_or_default().to_owned(),
            changes: changes.as_ref().map(super::plans::changes),
            reason: tried.and_then(|tried| tried["reason"].as_str()).unwrap_or_default().to_owned(),
            schedule: schedule.map(|it| it.cron.clone()).unwrap_or_default(),
            next_at: schedule.map(|it| it.due_at),
        }
    });
    let parts: Vec<PartDrift> = parts.collect();
    let look = may_if(&at, Role::Operator, !parts.is_empty(), "nothing is deployed, so nothing can drift");
    let drifted = parts.iter().any(|part| part.drift == DriftWord::Drifted);
    let back = may_if(&at, Role::Operator, drifted, "nothing has drifted");
    Ok(Json(InstallDrift { parts, can: Cans::from([("look".into(), look), ("reconcile".into(), back)]) }))
}

/// The README of the app with the values of this install, as blocks.
#[utoipa::path(get, path = "/v1/installs/{install_id}/readme", tag = "pages", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id")), responses((status = 200, body = Readme), (status = 404, body = api::ErrorBody)))]
async fn readme(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
) -> ApiResult<Json<Readme>> {
    let install = state.store().install(&at.org, &install).await?;
    let document = state.conductor.document_of(&install).await?;
    let text = document.as_ref().and_then(|document| document.config.metadata.as_ref()?.readme.clone());
    let (Some(document), Some(text)) = (document, text) else {
        return Ok(Json(Readme { blocks: Vec::new(), problems: Vec::new() }));
    };
    let tree = state.conductor.install_tree(&install, &document.config, Some(HIDDEN)).await?;
    let rendered = conductor::render(&Value::String(text), &tree.root);
    let problems = rendered.problems.iter().map(|problem| tree.masked(&problem.message)).collect();
    let text = tree.masked(rendered.value.as_str().unwrap_or_default());
    Ok(Json(Readme { blocks: blocks(&text), problems }))
}

#[derive(Debug, Default, Deserialize)]
struct Versions {
    from: Option<u64>,
    to: Option<u64>,
}

/// How two versions of an install's state differ; without versions, the newest from the one before.
#[utoipa::path(get, path = "/v1/installs/{install_id}/state/diff", tag = "pages", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("from" = Option<u64>, Query), ("to" = Option<u64>, Query)), responses((status = 200, body = StateDiff), (status = 404, body = api::ErrorBody)))]
async fn state_diff(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(wanted): Params<Versions>,
) -> ApiResult<Json<StateDiff>> {
    let install = state.store().install(&at.org, &install).await?;
    let (newest, _) = state.store().install_parts(&at.org, &install.id, None).await?;
    let to = wanted.to.unwrap_or(newest);
    let from = wanted.from.unwrap_or_else(|| to.saturating_sub(1));
    if to > newest || from > newest {
        return Err(StoreError::NotFound("version of the state").into());
    }
    let leaves = async |version: u64| -> ApiResult<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        if version > 0 {
            let (_, mut parts) = state.store().install_parts(&at.org, &install.id, Some(version)).await?;
            if let Some(stack) = parts.get_mut(conductor::STACK).and_then(Value::as_object_mut) {
                stack.remove("phone_home_id");
            }
            for (part, value) in parts {
                flatten(&part, &value, &mut found);
            }
        }
        Ok(found)
    };
    let (before, after) = (leaves(from).await?, leaves(to).await?);
    Ok(Json(differences(from, to, &before, &after)))
}

fn flatten(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, leaves));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(n, value)| flatten(&format!("{path}[{n}]"), value, leaves));
        }
        leaf => {
            leaves.insert(path.to_owned(), leaf.to_string().chars().take(VALUE_CHARS).collect());
        }
    }
}

fn differences(from: u64, to: u64, before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> StateDiff {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differs = |path: &&String| before.get(*path) != after.get(*path);
    let all: Vec<&String> = paths.into_iter().filter(differs).collect();
    let omitted = all.len().saturating_sub(DIFFERENCES_MAX) as u64;
    let change = |path: &String| {
        let (was, is) = (before.get(path), after.get(path));
        StateChange {
            path: path.clone(),
            change: match (was, is) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            }
            .to_owned(),
            before: was.cloned().unwrap_or_default(),
            after: is.cloned().unwrap_or_default(),
        }
    };
    StateDiff { from, to, changes: all.into_iter().take(DIFFERENCES_MAX).map(change).collect(), omitted }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgainstState {
    against: String,
}

/// Which resources one Terraform state knows and another does not. Values are sealed with the customer's key, and are not compared.
#[utoipa::path(get, path = "/v1/terraform-workspaces/{workspace_id}/states/{state_id}/diff", tag = "pages", security(("token" = ["read-only"])), params(("workspace_id" = String, Path), ("state_id" = String, Path), ("against" = Option<String>, Query, description = "id of another state; the one before when absent")), responses((status = 200, body = StateDiff), (status = 404, body = api::ErrorBody)))]
async fn workspace_diff(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path((workspace, id)): Path<(String, String)>,
    Params(wanted): Params<AgainstState>,
) -> ApiResult<Json<StateDiff>> {
    let workspace = model::WorkspaceId::parse(&workspace).map_err(|_| StoreError::NotFound("workspace"))?;
    let workspace = state.store().workspace(&at.org, &workspace).await?;
    let find = async |id: &str| -> ApiResult<store::Revision> {
        let id = model::RevisionId::parse(id).map_err(|_| StoreError::NotFound("state"))?;
        Ok(state.store().revision(&at.org, &workspace.id, &id).await?)
    };
    let newer = find(&id).await?;
    let older = if wanted.against.is_empty() {
        let all = state.store().revisions(&at.org, &workspace.id, 0, WAITING_MAX).await?;
        let before = all.into_iter().find(|other| other.serial < newer.serial && !other.quarantined);
        before.ok_or_else(|| ApiError::from(StoreError::NotFound("state")))?
    } else {
        find(&wanted.against).await?
    };
    let leaves = |revision: &store::Revision| {
        let resources = revision.resources.as_array().into_iter().flatten();
        let resources = resources.filter_map(|it| {
            let address = it["address"].as_str().or_else(|| it.as_str())?;
            Some((address.to_owned(), it["type"].as_str().unwrap_or_default().to_owned()))
        });
        resources.collect::<BTreeMap<_, _>>()
    };
    Ok(Json(differences(older.serial, newer.serial, &leaves(&older), &leaves(&newer))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stands_after_what_it_needs() {
        let needs = |pairs: &[(&str, &[&str])]| {
            let owned = |on: &[&str]| on.iter().map(|on| (*on).to_owned()).collect();
            pairs.iter().map(|(name, on)| ((*name).to_owned(), owned(on))).collect::<BTreeMap<String, Vec<String>>>()
        };
        let graph = laid_out(&needs(&[("db", &[]), ("api", &["db", "net"]), ("net", &[]), ("web", &["api"])]));
        let rank = |name: &str| graph.nodes.iter().find(|node| node.name == name).map(|node| node.rank);
        assert_eq!([rank("db"), rank("net"), rank("api"), rank("web")], [Some(0), Some(0), Some(1), Some(2)]);
        assert_eq!((graph.ranks, graph.lanes, graph.edges.len()), (3, 2, 3));
        // What is needed and not there is no edge, and a circle ends.
        let graph = laid_out(&needs(&[("a", &["b"]), ("b", &["a"]), ("c", &["gone"])]));
        assert_eq!(graph.edges.len(), 2);
        assert!(laid_out(&BTreeMap::new()).nodes.is_empty());
    }

    #[test]
    fn states_are_compared_leaf_by_leaf() {
        let leaves = |value: Value| {
            let mut found = BTreeMap::new();
            flatten("sandbox", &value, &mut found);
            found
        };
        let before = leaves(serde_json::json!({ "a": 1, "b": ["x"], "c": {} }));
        let after = leaves(serde_json::json!({ "a": 2, "b": ["x", "y"] }));
        let diff = differences(1, 2, &before, &after);
        let told: Vec<(&str, &str)> = diff.changes.iter().map(|it| (it.path.as_str(), it.change.as_str())).collect();
        assert_eq!(told, [("sandbox.a", "changed"), ("sandbox.b[1]", "added"), ("sandbox.c", "removed")]);
    }
}
