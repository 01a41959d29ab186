//! Plans that wait for a person, and those that were answered.

use std::collections::HashMap;
use std::sync::Arc;

use api::control::{ApprovalItem, Approvals};
use axum::Json;
use axum::extract::State;
use conductor::Loaded;
use engine::Step;
use model::labels::Selector;
use model::{AppId, InstallId, StepId, WorkflowId};
use serde::Deserialize;
use store::Summary;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Names;
use super::plans::{changes, plan_cans, policies};
use super::runs::expires_at;
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::error::{ApiError, ApiResult};
use crate::fleet::{AppHead, Snapshot};
use crate::request::Params;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Waiting plans that are looked at, most.
pub(super) const WAITING_MAX: u64 = 1000;
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 500;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ApprovalQuery {
    app: String,
    labels: String,
    install: String,
    answered: String,
    cursor: String,
    limit: String,
}

/// Plans that wait for an answer, those that have waited longest first; with `answered`, those that were answered, newest first.
#[utoipa::path(get, path = "/v1/approvals", tag = "pages", security(("token" = ["read-only"])), params(("app" = Option<String>, Query, description = "name or id"), ("labels" = Option<String>, Query, description = "a selector of installs: `env=prod,tier!=dev`"), ("install" = Option<String>, Query, description = "name or id"), ("answered" = Option<bool>, Query), ("cursor" = Option<String>, Query, description = "`next` of the page before"), ("limit" = Option<u64>, Query, description = "100 by default, 500 at most")), responses((status = 200, body = Approvals), (status = 400, body = api::ErrorBody)))]
async fn list(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(query): Params<ApprovalQuery>,
) -> ApiResult<Json<Approvals>> {
    let limit = match query.limit.as_str() {
        "" => LIMIT,
        text => text.parse().map_err(|_| ApiError::invalid("`limit` must be a number"))?,
    };
    let limit = limit.clamp(1, LIMIT_MAX);
    let labels = Selector::parse(&query.labels).map_err(ApiError::invalid)?;
    let snapshot = state.fleet.snapshot(&state, &at.org).await?;
    let installs = Installs::of(&snapshot);
    let takes = |row: &Summary| {
        let app = snapshot.apps.get(&row.app_id).map(|app| app.name.as_str());
        let is = |wanted: &str, name: Option<&str>, id: &str| wanted.is_empty() || name == Some(wanted) || id == wanted;
        is(&query.app, app, row.app_id.as_str())
            && is(&query.install, Some(&row.name), row.id.as_str())
            && labels.matches(&row.labels)
    };
    let answered = matches!(query.answered.as_str(), "true" | "1");
    let (found, offset) = if answered {
        let before = match query.cursor.as_str() {
            "" => None,
            text => Some(StepId::parse(text).map_err(|_| ApiError::invalid("`cursor` is not one of this list"))?),
        };
        (state.store().answered_plans(&at.org, before.as_ref(), limit as u64 + 1).await?, 0)
    } else {
        let offset = match query.cursor.as_str() {
            "" => 0,
            text => text.parse().map_err(|_| ApiError::invalid("`cursor` is not one of this list"))?,
        };
        (state.store().awaiting_plans(&at.org, WAITING_MAX).await?, offset)
    };
    let plans = Plans { state: &state, at: &at, installs: &installs, names: &Names::of(&state, &at).await? };
    let (mut items, mut total, mut next) = (Vec::new(), 0, String::new());
    let more = answered && found.len() > limit;
    let last = found.get(limit.wrapping_sub(1)).map(|(_, step)| step.to_string());
    for (workflow, step) in found.into_iter().take(if answered { limit } else { WAITING_MAX as usize }) {
        let Some(item) = plans.item(&workflow, &step, &takes).await? else { continue };
        total += 1;
        if answered || (total > offset && items.len() < limit) {
            items.push(item);
        }
    }
    if more {
        next = last.unwrap_or_default();
    } else if !answered && offset + items.len() < total {
        next = (offset + items.len()).to_string();
    }
    Ok(Json(Approvals { items, total: total as u64, next }))
}

/// Installs by id, as their summaries have them.
pub(super) struct Installs<'s> {
    by_id: HashMap<&'s InstallId, &'s Arc<Summary>>,
    apps: &'s HashMap<AppId, AppHead>,
}

impl<'s> Installs<'s> {
    pub(super) fn of(snapshot: &'s Snapshot) -> Self {
        Self { by_id: snapshot.rows.iter().map(|row| (&row.id, row)).collect(), apps: &snapshot.apps }
    }

    pub(super) fn get(&self, id: &InstallId) -> Option<&'s Summary> {
        self.by_id.get(id).map(|row| &***row)
    }
}

/// What plans are shown with.
pub(super) struct Plans<'a> {
    pub(super) state: &'a AppState,
    pub(super) at: &'a InOrg,
    pub(super) installs: &'a Installs<'a>,
    pub(super) names: &'a Names,
}

impl Plans<'_> {
    /// A plan, where its install is one that is wanted.
    pub(super) async fn item(
        &self,
        workflow: &WorkflowId,
        step: &StepId,
        takes: &impl Fn(&Summary) -> bool,
    ) -> ApiResult<Option<ApprovalItem>> {
        let loaded = match self.state.conductor.workflow(&self.at.org, workflow).await {
            Ok(loaded) => loaded,
            // Forgotten meanwhile.
            Err(conductor::Error::Store(store::StoreError::NotFound(_))) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let Some(install) = self.installs.get(&loaded.row.install_id).filter(|row| takes(row)) else {
            return Ok(None);
        };
        let Some(step) = loaded.workflow.steps.iter().find(|known| known.id == *step) else { return Ok(None) };
        Ok(self.shown(&loaded, step, install))
    }

    fn shown(&self, loaded: &Loaded, step: &Step, install: &Summary) -> Option<ApprovalItem> {
        let plan = step.plan.as_ref()?;
        let can = plan_cans(self.at, loaded, step);
        let answer = step.answer.as_ref();
        Some(ApprovalItem {
            workflow_id: loaded.row.id.to_string(),
            workflow_type: loaded.row.kind.clone(),
            step_id: step.id.to_string(),
            digest: plan.digest.clone(),
            install_id: install.id.to_string(),
            install_name: install.name.clone(),
            app_id: install.app_id.to_string(),
            app_name: self.installs.apps.get(&install.app_id).map(|app| app.name.clone()).unwrap_or_default(),
            title: step.title(),
            changes: changes(&plan.changes),
            data_loss: plan.stateful,
            asked_at: step.asked_at.unwrap_or(step.created_at),
            // What a person must look at by itself is equal to nothing.
            contents: match plan.contents.as_str() {
                contents if !contents.is_empty() && plan.ask.is_none() && plan.policies.warned == 0 => {
                    contents.to_owned()
                }
                _ => plan.digest.clone(),
            },
            can_approve: can.get("approve").cloned()?,
            component: step.work.component().unwrap_or_default().to_owned(),
            labels: install.labels.clone(),
            expires_at: expires_at(step),
            policies: policies(&plan.policies),
            ask: plan.ask.clone().unwrap_or_default(),
            answer: match (answer, step.status) {
                (Some(answer), _) => answer.response.clone(),
                (None, engine::StepStatus::ApprovalAwaiting) => String::new(),
                (None, status) => status.as_str().to_owned(),
            },
            answered_by: answer.map(|answer| self.names.name(&answer.by)).unwrap_or_default(),
            answered_at: answer.map(|answer| answer.at).or(step.finished_at),
            note: answer.map(|answer| answer.note.clone()).unwrap_or_default(),
            drift: None,
        })
    }
}
