//! What needs a person, the worst first, and what runs now.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use api::control::{Attention, AttentionItem};
use axum::Json;
use axum::extract::State;
use model::waiting::Presence;
use model::{JobState, Timestamp};
use store::{BuildFilter, JobFilter, StoreError, Summary, WorkflowFilter};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Names;
use super::approvals::{Installs, Plans, WAITING_MAX};
use super::runs::running;
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::error::ApiResult;
use crate::fleet::Snapshot;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Items that are listed.
const ITEMS_MAX: usize = 50;
/// Of each kind, so many are looked for.
const LOOKED_AT: u64 = 1000;
const RUNNING_MAX: u64 = 20;
/// Builds among which a failed one counts, if it is the newest of its component.
const BUILDS: u64 = 500;

/// The kinds, the worst first.
const RANKS: [&str; 11] = [
    "unknown",
    "data-loss",
    "failed",
    "unhealthy",
    "build-runner",
    "build-failed",
    "approval",
    "offline",
    "drifted",
    "degraded",
    "disabled",
];

fn item(kind: &str, text: String, since: Timestamp) -> AttentionItem {
    let rank = RANKS.iter().position(|known| *known == kind).unwrap_or(RANKS.len()) as u64;
    AttentionItem {
        kind: kind.to_owned(),
        rank,
        text,
        since,
        install_id: String::new(),
        install_name: String::new(),
        component: String::new(),
        workflow_id: String::new(),
        step_id: String::new(),
        job_id: String::new(),
        runner_id: String::new(),
        build_id: String::new(),
        app_id: String::new(),
        action: String::new(),
    }
}

fn of(install: &Summary, kind: &str, text: String, since: Timestamp, action: &str) -> AttentionItem {
    AttentionItem {
        install_id: install.id.to_string(),
        install_name: install.name.clone(),
        app_id: install.app_id.to_string(),
        action: action.to_owned(),
        ..item(kind, text, since)
    }
}

/// What needs a person, the worst first: unknown outcomes, plans that wait, failures, runners that are away, drift, ill health, failed builds.
#[utoipa::path(get, path = "/v1/attention", tag = "pages", security(("token" = ["read-only"])), responses((status = 200, body = Attention)))]
async fn list(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<Attention>> {
    let snapshot = state.fleet.snapshot(&state, &at.org).await?;
    let installs = Installs::of(&snapshot);
    let look = Look { state: &state, at: &at, snapshot: &snapshot, installs: &installs };
    let mut items = look.unknown_jobs().await?;
    let failed = look.failed_workflows().await?;
    let known: BTreeSet<String> = failed.iter().chain(&items).map(|item| item.install_id.clone()).collect();
    items.extend(failed);
    items.extend(look.rows(&known).await?);
    let plans = look.plans().await?;
    let approvals = plans.len() as u64;
    items.extend(plans);
    items.extend(look.builds().await?);
    items.sort_by(|a, b| (a.rank, a.since, &a.install_name).cmp(&(b.rank, b.since, &b.install_name)));
    let total = items.len() as u64;
    items.truncate(ITEMS_MAX);
    Ok(Json(Attention { running: look.running().await?, more: total >= LOOKED_AT, items, total, approvals }))
}

struct Look<'a> {
    state: &'a AppState,
    at: &'a InOrg,
    snapshot: &'a Snapshot,
    installs: &'a Installs<'a>,
}

impl Look<'_> {
    async fn unknown_jobs(&self) -> ApiResult<Vec<AttentionItem>> {
        let filter = JobFilter { state: Some(JobState::Unknown), ..JobFilter::default() };
        let jobs = self.state.store().jobs(&self.at.org, filter, 0, LOOKED_AT).await?;
        let mut items = Vec::new();
        for job in jobs {
            let install = job.install_id.as_ref().and_then(|id| self.installs.get(id));
            // Of an install that is forgotten nobody has to know.
            let Some(install) = install else { continue };
            let what = job.name.clone().unwrap_or_else(|| job.job_type.to_string());
            let text = format!("nobody knows how {what} ended: look at what it did, then record the outcome");
            let workflow = match &job.step_id {
                Some(step) => match self.state.store().workflow_of_step(&self.at.org, step).await {
                    Ok(workflow) => workflow.to_string(),
                    Err(StoreError::NotFound(_)) => String::new(),
                    Err(other) => return Err(other.into()),
                },
                None => String::new(),
            };
            items.push(AttentionItem {
                job_id: job.id.to_string(),
                workflow_id: workflow,
                step_id: job.step_id.as_ref().map(ToString::to_string).unwrap_or_default(),
                ..of(install, "unknown", text, job.updated_at, "Settle")
            });
        }
        Ok(items)
    }

    async fn plans(&self) -> ApiResult<Vec<AttentionItem>> {
        let names = Names::of(self.state, self.at).await?;
        let plans = Plans { state: self.state, at: self.at, installs: self.installs, names: &names };
        let mut items = Vec::new();
        for (workflow, step) in self.state.store().awaiting_plans(&self.at.org, WAITING_MAX).await? {
            let Some(plan) = plans.item(&workflow, &step, &|_| true).await? else { continue };
            let (kind, text) = match plan.data_loss {
                0 => ("approval", format!("{} waits for approval", plan.title)),
                _ => ("data-loss", format!("{} waits for approval, and destroys data", plan.title)),
            };
            items.push(AttentionItem {
                install_id: plan.install_id,
                install_name: plan.install_name,
                app_id: plan.app_id,
                component: plan.component,
                workflow_id: plan.workflow_id,
                step_id: plan.step_id,
                action: "Review".into(),
                ..item(kind, text, plan.asked_at)
            });
        }
        Ok(items)
    }

    /// Workflows that failed, where nothing was done to their install since.
    async fn failed_workflows(&self) -> ApiResult<Vec<AttentionItem>> {
        let filter = WorkflowFilter { statuses: vec!["error".into()], ..WorkflowFilter::default() };
        let failed = self.state.store().filtered_workflows(&self.at.org, filter, LOOKED_AT).await?;
        let ids: Vec<_> = failed.iter().map(|row| row.install_id.clone()).collect();
        let last = self.state.store().last_workflows(&self.at.org, &ids).await?;
        let last: HashMap<_, _> = last.into_iter().map(|it| (it.install_id, it.id)).collect();
        let mut items = Vec::new();
        for row in failed.iter().filter(|row| last.get(&row.install_id) == Some(&row.id)) {
            let Some(install) = self.installs.get(&row.install_id) else { continue };
            let why = conductor::Body::of(row).ok().and_then(|body| body.failure).unwrap_or_default();
            let text = format!("{} failed: {why}", row.kind.replace('_', " "));
            let text = text.trim_end_matches([':', ' ']).to_owned();
            items.push(AttentionItem {
                workflow_id: row.id.to_string(),
                ..of(install, "failed", text, row.finished_at.unwrap_or(row.updated_at), "Look")
            });
        }
        Ok(items)
    }

    /// What the rows of the fleet say; `known` have a failed workflow already.
    async fn rows(&self, known: &BTreeSet<String>) -> ApiResult<Vec<AttentionItem>> {
        let mut items = Vec::new();
        for row in self.snapshot.rows.iter() {
            let since = row.changed_at;
            if row.status == "unknown" && !known.contains(row.id.as_str()) {
                let text = "nobody knows how the last apply ended".to_owned();
                items.push(of(row, "unknown", text, since, "Look"));
            }
            if row.status == "error" && !known.contains(row.id.as_str()) {
                let failed = row.components.iter().filter(|part| part.status == "error").map(|part| part.name.as_str());
                let failed: Vec<&str> = failed.collect();
                let what = if failed.is_empty() { "the sandbox".to_owned() } else { failed.join(", ") };
                items.push(of(row, "failed", format!("the last apply of {what} failed"), since, "Look"));
            }
            match self.snapshot.verdicts.get(&row.id).map(String::as_str) {
                Some("unhealthy") => {
                    items.push(of(row, "unhealthy", "something that is deployed does not serve".into(), since, "Look"));
                }
                Some("degraded") => {
                    let text = "something that is deployed does not work as it should".into();
                    items.push(of(row, "degraded", text, since, "Look"));
                }
                _ => {}
            }
            if row.drifted > 0 {
                let parts =
                    if row.drifted == 1 { "1 part differs".into() } else { format!("{} parts differ", row.drifted) };
                items.push(of(row, "drifted", format!("{parts} from what was deployed"), since, "Drift"));
            }
            self.runner(row, &mut items);
        }
        Ok(items)
    }

    fn runner(&self, row: &Summary, items: &mut Vec<AttentionItem>) {
        let Some(sighting) = self.snapshot.runners.get(&row.runner_id) else { return };
        let mut tell = |kind: &str, text: &str, since: Timestamp| {
            let runner_id = row.runner_id.to_string();
            items.push(AttentionItem { runner_id, ..of(row, kind, text.to_owned(), since, "Runner") });
        };
        match self.state.conductor.presence_at(sighting.sightings) {
            _ if sighting.revoked => {}
            Presence::Offline(since) => tell("offline", "the runner is offline", since),
            Presence::Online if sighting.disabled => {
                let since = sighting.sightings.seen_at.unwrap_or(row.created_at);
                tell("disabled", "the customer has switched the runner off", since);
            }
            Presence::Online | Presence::Never | Presence::Disconnected(_) => {}
        }
    }

    /// Components whose newest build failed, and a build runner that is away while builds wait.
    async fn builds(&self) -> ApiResult<Vec<AttentionItem>> {
        let builds = self.state.store().builds(&self.at.org, BuildFilter::default(), 0, BUILDS).await?;
        let (mut newest, mut waiting) = (BTreeMap::new(), None);
        for build in builds {
            if build.status == store::BuildStatus::Open {
                waiting = Some(build.created_at);
            }
            newest.entry(build.component_id.clone()).or_insert(build);
        }
        let mut items = Vec::new();
        for build in newest.into_values().filter(|build| build.status == store::BuildStatus::Error) {
            let text = format!("the build of {} failed: {}", build.component, build.description);
            items.push(AttentionItem {
                build_id: build.id.to_string(),
                app_id: build.app_id.to_string(),
                component: build.component.clone(),
                action: "Look".into(),
                ..item("build-failed", text.trim_end_matches([':', ' ']).to_owned(), build.updated_at)
            });
        }
        if let Some(since) = waiting {
            let org = self.state.store().org(&self.at.org).await?;
            let runner = self.state.store().runner(&self.at.org, org.build_runner_id.as_str()).await?;
            if !matches!(self.state.conductor.presence(&runner), Presence::Online) && !org.sandbox_mode {
                let text = "builds wait, and the build runner is not connected".to_owned();
                let runner_id = runner.id.to_string();
                items.push(AttentionItem { runner_id, action: "Runner".into(), ..item("build-runner", text, since) });
            }
        }
        Ok(items)
    }

    async fn running(&self) -> ApiResult<Vec<api::control::RunningWorkflow>> {
        let statuses = vec!["in-progress".into(), "pending".into()];
        let filter = WorkflowFilter { statuses, ..WorkflowFilter::default() };
        let mut found = Vec::new();
        for row in self.state.store().filtered_workflows(&self.at.org, filter, RUNNING_MAX).await? {
            let Some(install) = self.installs.get(&row.install_id) else { continue };
            let loaded = self.state.conductor.workflow(&self.at.org, &row.id).await?;
            found.push(running(&loaded, install.name.clone()));
        }
        Ok(found)
    }
}
