//! The fleet: a page of flat rows, filtered, sorted and counted here.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use api::control::{Facet, Fleet, FleetComponent, FleetFacets, FleetRow, HealthWord, PartWord, RunnerWord};
use axum::Json;
use axum::extract::State;
use model::InstallId;
use model::labels::Selector;
use model::waiting::Presence;
use serde::Deserialize;
use store::{LastWorkflow, Summary};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Names, word};
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::error::{ApiError, ApiResult};
use crate::fleet::Snapshot;
use crate::request::Params;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 500;
/// Labels that a facet lists.
const LABELS_MAX: usize = 30;

/// Each may name several values, with commas between them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FleetQuery {
    q: String,
    labels: String,
    app: String,
    status: String,
    drift: String,
    runner: String,
    health: String,
    version: String,
    platform: String,
    sort: String,
    order: String,
    cursor: String,
    limit: String,
}

/// Installs as flat rows: filtered, sorted and counted by the server.
#[utoipa::path(get, path = "/v1/fleet", tag = "pages", security(("token" = ["read-only"])), params(
    ("q" = Option<String>, Query, description = "part of a name, or an id"),
    ("labels" = Option<String>, Query, description = "a selector: `env=prod,tier!=dev,team,!old`"),
    ("app" = Option<String>, Query, description = "names or ids, with commas between them"),
    ("status" = Option<String>, Query, description = "active, inactive, pending, error or unknown"),
    ("drift" = Option<String>, Query, description = "drifted, none, or never-looked where a look is missing or failed"),
    ("runner" = Option<String>, Query, description = "pending, active, offline or disabled"),
    ("health" = Option<String>, Query, description = "healthy, progressing, degraded, unhealthy, unknown, or unset where nothing is observed"),
    ("version" = Option<String>, Query, description = "a version of the app, `outdated`, or `none`"),
    ("platform" = Option<String>, Query, description = "aws, azure, gcp or local"),
    ("sort" = Option<String>, Query, description = "name, changed, status, version, drift, runner, health or app"),
    ("order" = Option<String>, Query, description = "asc or desc"),
    ("cursor" = Option<String>, Query, description = "`next` of the page before"),
    ("limit" = Option<u64>, Query, description = "100 by default, 500 at most"),
), responses((status = 200, body = Fleet), (status = 400, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(query): Params<FleetQuery>,
) -> ApiResult<Json<Fleet>> {
    let filter = Filter::parse(&query)?;
    let snapshot = state.fleet.snapshot(&state, &at.org).await?;
    let view = View { state: &state, snapshot: &snapshot };
    let mut facets = Facets::default();
    let mut rows: Vec<Seen<'_>> = Vec::new();
    for row in snapshot.rows.iter() {
        let seen = view.see(row);
        facets.count(&seen);
        if filter.takes(&seen) {
            rows.push(seen);
        }
    }
    let matched = rows.len();
    filter.sort(&mut rows);
    let page = rows
        .get(filter.offset.min(matched)..filter.offset.saturating_add(filter.limit).min(matched))
        .unwrap_or_default();
    let more = filter.offset.saturating_add(page.len()) < matched;
    let rows = render(&state, &at, page).await?;
    Ok(Json(Fleet {
        next: if more { filter.offset.saturating_add(rows.len()).to_string() } else { String::new() },
        rows,
        total: snapshot.rows.len() as u64,
        matched: matched as u64,
        facets: facets.render(&snapshot),
    }))
}

/// The row of one install, as the list has it.
pub(super) async fn row_of(state: &AppState, at: &InOrg, install: &store::Install) -> ApiResult<FleetRow> {
    let snapshot = state.fleet.snapshot(state, &at.org).await?;
    let summary = state.conductor.summary(install).await?;
    let view = View { state, snapshot: &snapshot };
    let seen = view.see(&summary);
    let mut rows = render(state, at, std::slice::from_ref(&seen)).await?;
    rows.pop().ok_or_else(|| store::StoreError::NotFound("install").into())
}

struct View<'a> {
    state: &'a AppState,
    snapshot: &'a Snapshot,
}

/// An install with what is not in its summary.
struct Seen<'a> {
    row: &'a Summary,
    runner: RunnerWord,
    runner_seen_at: Option<model::Timestamp>,
    health: Option<HealthWord>,
    app: &'a str,
    latest: Option<u64>,
}

impl<'a> View<'a> {
    fn see(&self, row: &'a Summary) -> Seen<'a> {
        let snapshot = self.snapshot;
        let sighting = snapshot.runners.get(&row.runner_id);
        let runner = sighting.map_or(RunnerWord::Pending, |it| match self.state.conductor.presence_at(it.sightings) {
            _ if it.revoked => RunnerWord::Disabled,
            Presence::Never => RunnerWord::Pending,
            Presence::Offline(_) | Presence::Disconnected(_) => RunnerWord::Offline,
            Presence::Online if it.disabled => RunnerWord::Disabled,
            Presence::Online => RunnerWord::Active,
        });
        let app = snapshot.apps.get(&row.app_id);
        Seen {
            row,
            runner,
            runner_seen_at: sighting.and_then(|it| it.sightings.seen_at),
            health: snapshot.verdicts.get(&row.id).and_then(|verdict| HealthWord::parse(verdict)),
            app: app.map(|app| app.name.as_str()).unwrap_or_default(),
            latest: app.and_then(|app| app.latest),
        }
    }
}

impl Seen<'_> {
    fn is_outdated(&self) -> bool {
        self.row.version.is_some() && self.row.version < self.latest
    }

    fn health_word(&self) -> &'static str {
        self.health.map_or("unset", HealthWord::as_str)
    }

    fn drift_word(&self) -> &'static str {
        match self.row {
            row if row.drifted > 0 => "drifted",
            row if row.unlooked > 0 => "never-looked",
            _ => "none",
        }
    }

    fn version_word(&self) -> String {
        self.row.version.map_or_else(|| "none".to_owned(), |version| version.to_string())
    }
}

/// What is asked for, read once.
struct Filter {
    q: String,
    labels: Selector,
    app: Vec<String>,
    status: Vec<String>,
    drift: Vec<String>,
    runner: Vec<String>,
    health: Vec<String>,
    version: Vec<String>,
    platform: Vec<String>,
    sort: Sort,
    descending: bool,
    offset: usize,
    limit: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Name,
    Changed,
    Status,
    Version,
    Drift,
    Runner,
    Health,
    App,
}

fn values(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

fn has(wanted: &[String], value: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| one == value)
}

impl Filter {
    fn parse(query: &FleetQuery) -> ApiResult<Self> {
        let known = |key: &str, wanted: &str, words: &[&str]| {
            let wanted = values(wanted);
            match wanted.iter().find(|value| !words.contains(&value.as_str())) {
                Some(value) => Err(ApiError::invalid(format!("`{key}` can't be `{value}`; use {}", words.join(", ")))),
                None => Ok(wanted),
            }
        };
        // `-changed` is the other way to ask for `order=desc`.
        let (wanted, down) = query.sort.strip_prefix('-').map_or((query.sort.as_str(), false), |sort| (sort, true));
        let sort = match wanted {
            "" | "name" => Sort::Name,
            "changed" => Sort::Changed,
            "status" => Sort::Status,
            "version" => Sort::Version,
            "drift" => Sort::Drift,
            "runner" => Sort::Runner,
            "health" => Sort::Health,
            "app" => Sort::App,
            other => {
                let text = format!(
                    "`sort` can't be `{other}`; use name, changed, status, version, drift, runner, health or app"
                );
                return Err(ApiError::invalid(text));
            }
        };
        let descending = match query.order.as_str() {
            "" if down => true,
            "" => false,
            "asc" => false,
            "desc" => true,
            other => return Err(ApiError::invalid(format!("`order` can't be `{other}`; use asc or desc"))),
        };
        let number = |key: &str, text: &str, otherwise: usize| match text {
            "" => Ok(otherwise),
            text => text.parse().map_err(|_| ApiError::invalid(format!("`{key}` must be a number"))),
        };
        Ok(Self {
            q: query.q.trim().to_lowercase(),
            labels: Selector::parse(&query.labels).map_err(ApiError::invalid)?,
            app: values(&query.app),
            status: known("status", &query.status, &["active", "inactive", "pending", "error", "unknown"])?,
            drift: known("drift", &query.drift, &["drifted", "none", "never-looked"])?,
            runner: known("runner", &query.runner, &["pending", "active", "offline", "disabled"])?,
            health: known(
                "health",
                &query.health,
                &["healthy", "progressing", "degraded", "unhealthy", "unknown", "not-applicable", "unset"],
            )?,
            version: values(&query.version),
            platform: values(&query.platform),
            sort,
            descending,
            offset: number("cursor", &query.cursor, 0)?,
            limit: number("limit", &query.limit, LIMIT)?.clamp(1, LIMIT_MAX),
        })
    }

    fn takes(&self, seen: &Seen<'_>) -> bool {
        let row = seen.row;
        let version = self.version.is_empty()
            || self
                .version
                .iter()
                .any(|wanted| if wanted == "outdated" { seen.is_outdated() } else { seen.version_word() == *wanted });
        let app = self.app.is_empty() || self.app.iter().any(|app| app == seen.app || *app == row.app_id.as_str());
        let q = self.q.is_empty() || row.name.to_lowercase().contains(&self.q) || row.id.as_str() == self.q;
        q && app
            && version
            && has(&self.status, &row.status)
            && has(&self.drift, seen.drift_word())
            && has(&self.runner, seen.runner.as_str())
            && has(&self.health, seen.health_word())
            && has(&self.platform, &row.platform)
            && self.labels.matches(&row.labels)
    }

    /// By what is asked for; equal ones by name, as they come.
    fn sort(&self, rows: &mut [Seen<'_>]) {
        let rank = |seen: &Seen<'_>| word!(PartWord, &seen.row.status, PartWord::Unknown);
        let by = |a: &Seen<'_>, b: &Seen<'_>| match self.sort {
            Sort::Name => Ordering::Equal,
            Sort::Changed => a.row.changed_at.cmp(&b.row.changed_at),
            Sort::Status => rank(a).cmp(&rank(b)),
            Sort::Version => a.row.version.cmp(&b.row.version),
            Sort::Drift => a.row.drifted.cmp(&b.row.drifted),
            Sort::Runner => a.runner.cmp(&b.runner),
            Sort::Health => a.health.cmp(&b.health),
            Sort::App => a.app.cmp(b.app),
        };
        match (self.sort, self.descending) {
            (Sort::Name, false) => {}
            (Sort::Name, true) => rows.reverse(),
            (_, false) => rows.sort_by(by),
            (_, true) => rows.sort_by(|a, b| by(b, a)),
        }
    }
}

/// Counts of every value, over all installs of the org.
#[derive(Default)]
struct Facets {
    status: BTreeMap<String, u64>,
    app: BTreeMap<String, u64>,
    version: BTreeMap<Option<u64>, u64>,
    drift: BTreeMap<&'static str, u64>,
    health: BTreeMap<&'static str, u64>,
    runner: BTreeMap<&'static str, u64>,
    platform: BTreeMap<String, u64>,
    label: HashMap<(String, String), u64>,
}

fn more<K: Ord + ToOwned + ?Sized>(counts: &mut BTreeMap<K::Owned, u64>, key: &K)
where
    K::Owned: Ord + std::borrow::Borrow<K>,
{
    match counts.get_mut(key) {
        Some(count) => *count += 1,
        None => {
            counts.insert(key.to_owned(), 1);
        }
    }
}

impl Facets {
    fn count(&mut self, seen: &Seen<'_>) {
        let row = seen.row;
        more(&mut self.status, row.status.as_str());
        more(&mut self.app, row.app_id.as_str());
        more(&mut self.platform, row.platform.as_str());
        *self.version.entry(row.version).or_default() += 1;
        *self.drift.entry(seen.drift_word()).or_default() += 1;
        *self.health.entry(seen.health_word()).or_default() += 1;
        *self.runner.entry(seen.runner.as_str()).or_default() += 1;
        for (key, value) in &row.labels {
            *self.label.entry((key.clone(), value.clone())).or_default() += 1;
        }
    }

    fn render(self, snapshot: &Snapshot) -> FleetFacets {
        let facet = |(value, count): (String, u64)| Facet { value, count, name: String::new() };
        let fixed =
            |counts: BTreeMap<&'static str, u64>| counts.into_iter().map(|(v, n)| facet((v.to_owned(), n))).collect();
        let names: HashMap<&str, &str> =
            snapshot.apps.iter().map(|(id, app)| (id.as_str(), app.name.as_str())).collect();
        let app = |(value, count): (String, u64)| {
            let name = names.get(value.as_str()).copied().unwrap_or_default().to_owned();
            Facet { value, count, name }
        };
        let version = |(version, count): (Option<u64>, u64)| {
            facet((version.map_or_else(|| "none".to_owned(), |version| version.to_string()), count))
        };
        let mut labels: Vec<((String, String), u64)> = self.label.into_iter().collect();
        labels.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        FleetFacets {
            status: self.status.into_iter().map(facet).collect(),
            app: self.app.into_iter().map(app).collect(),
            version: self.version.into_iter().rev().map(version).collect(),
            drift: fixed(self.drift),
            health: fixed(self.health),
            runner: fixed(self.runner),
            platform: self.platform.into_iter().map(facet).collect(),
            label: labels.into_iter().take(LABELS_MAX).map(|((k, v), n)| facet((format!("{k}={v}"), n))).collect(),
        }
    }
}

async fn render(state: &AppState, at: &InOrg, page: &[Seen<'_>]) -> ApiResult<Vec<FleetRow>> {
    let ids: Vec<InstallId> = page.iter().map(|seen| seen.row.id.clone()).collect();
    let last = state.store().last_workflows(&at.org, &ids).await?;
    let last: HashMap<InstallId, LastWorkflow> = last.into_iter().map(|it| (it.install_id.clone(), it)).collect();
    let names = Names::of(state, at).await?;
    Ok(page.iter().map(|seen| rendered(seen, last.get(&seen.row.id), &names)).collect())
}

fn rendered(seen: &Seen<'_>, last: Option<&LastWorkflow>, names: &Names) -> FleetRow {
    let row = seen.row;
    let part = |text: &str| word!(PartWord, text, PartWord::Unknown);
    let components = row.components.iter().map(|component| FleetComponent {
        name: component.name.clone(),
        status: part(&component.status),
        r#type: component.kind.clone(),
        drifted: component.drifted,
        disabled: component.disabled,
        version: component.version,
    });
    FleetRow {
        id: row.id.to_string(),
        name: row.name.clone(),
        app_id: row.app_id.to_string(),
        app_name: seen.app.to_owned(),
        runner_id: row.runner_id.to_string(),
        runner_status: seen.runner,
        platform: row.platform.clone(),
        status: part(&row.status),
        sandbox_status: part(&row.sandbox_status),
        components: components.collect(),
        drifted: row.drifted,
        created_at: row.created_at,
        changed_at: last.map_or(row.changed_at, |last| last.updated_at.max(row.changed_at)),
        region: row.region.clone(),
        labels: row.labels.clone(),
        runner_seen_at: seen.runner_seen_at,
        health: seen.health,
        version: row.version,
        latest_version: seen.latest,
        kept: row.kept,
        changed_by: last.map(|last| names.name(&last.created_by)).unwrap_or_default(),
        workflow_id: last.map(|last| last.id.to_string()).unwrap_or_default(),
        workflow_type: last.map(|last| last.kind.clone()).unwrap_or_default(),
        workflow_status: last.map(|last| last.status.clone()).unwrap_or_default(),
    }
}
