//! Owns the routes of health: of an install, of all installs, its history, and checks that others push.
//! Clients call them.
//! No rules: handlers parse, authorize and render.

use std::collections::BTreeMap;

use api::control::{
    ComponentHealth, FleetHealth, HealthCheck, HealthDay, HealthTransition, InstallHealth, PushHealthCheck,
};
use axum::Json;
use axum::extract::{Path, State};
use conductor::health::{HISTORY_DAYS, Health, WantedCheck};
use engine::health::{Span, Told, spans, uptime};
use model::Timestamp;
use model::health::Verdict;
use model::time::parse_duration;
use serde::Deserialize;
use store::Install;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::{Operator, Reader};
use crate::control_api::apps::Search;
use crate::control_api::installs::selected;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, List, Page, Params};

const DAY_S: i64 = 86_400;
/// Transitions that bars are made from.
const READ_MAX: u64 = 20_000;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(fleet))
        .routes(routes!(health))
        .routes(routes!(history))
        .routes(routes!(push, forget))
}

/// How many days of history are wanted.
#[derive(Debug, Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    days: Option<i64>,
}

/// Which part of the history is wanted.
#[derive(Debug, Default, Deserialize)]
struct Since {
    #[serde(default)]
    component: Option<String>,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    page: Option<u64>,
}

/// How many of the org's installs are how well.
#[utoipa::path(get, path = "/v1/installs/health", tag = "health", security(("token" = ["read-only"])), params(("q" = Option<String>, Query), ("labels" = Option<String>, Query, description = "a selector: `env=prod,tier!=dev,team,!old`")), responses((status = 200, body = FleetHealth)))]
async fn fleet(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(search): Params<Search>,
) -> ApiResult<Json<FleetHealth>> {
    let verdicts: BTreeMap<_, _> = {
        let all = state.store().install_verdicts(&at.org, Timestamp::from_micros(0)).await?;
        all.into_iter().map(|(install, verdict, _)| (install, verdict)).collect()
    };
    let mut told = FleetHealth {
        total: 0,
        healthy: 0,
        progressing: 0,
        degraded: 0,
        unhealthy: 0,
        unknown: 0,
        unset: 0,
        all_healthy: false,
    };
    for install in selected(&state, &at.org, &search).await? {
        told.total += 1;
        let verdict = verdicts.get(&install.id).and_then(|verdict| Verdict::parse(verdict));
        let count = match verdict {
            None | Some(Verdict::NotApplicable) => &mut told.unset,
            Some(Verdict::Healthy) => &mut told.healthy,
            Some(Verdict::Progressing) => &mut told.progressing,
            Some(Verdict::Degraded) => &mut told.degraded,
            Some(Verdict::Unhealthy) => &mut told.unhealthy,
            Some(Verdict::Unknown) => &mut told.unknown,
        };
        *count += 1;
    }
    told.all_healthy = told.total > 0 && told.healthy == told.total;
    Ok(Json(told))
}

/// How well the components of an install are.
#[utoipa::path(get, path = "/v1/installs/{install_id}/health", tag = "health", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("days" = Option<i64>, Query, description = "days of history, 90 at most and by default")), responses((status = 200, body = InstallHealth), (status = 404, body = api::ErrorBody)))]
async fn health(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(wanted): Params<Wanted>,
) -> ApiResult<Json<InstallHealth>> {
    let install = state.store().install(&at.org, &install).await?;
    let health = state.conductor.health_of(&install).await?;
    let days = wanted.days.unwrap_or(HISTORY_DAYS).clamp(0, HISTORY_DAYS);
    Ok(Json(wire(&state, &install, &health, days).await?))
}

async fn wire(state: &AppState, install: &Install, health: &Health, days: i64) -> ApiResult<InstallHealth> {
    let now = state.conductor.now();
    let today = Timestamp::from_micros(now.micros().div_euclid(DAY_S * 1_000_000) * DAY_S * 1_000_000);
    let from = today.plus_s(-(days - 1).max(0) * DAY_S);
    let mut moves: BTreeMap<String, Vec<(Timestamp, Option<Verdict>, Verdict)>> = BTreeMap::new();
    if days > 0 {
        let read = state.store().health_transitions(&install.org_id, &install.id, None, from, (0, READ_MAX)).await?;
        for it in read.into_iter().rev() {
            let was = it.was.as_deref().and_then(Verdict::parse);
            let verdict = Verdict::parse(&it.verdict).unwrap_or(Verdict::Unknown);
            moves.entry(it.component).or_default().push((it.at, was, verdict));
        }
    }
    let mut components = Vec::new();
    for (name, known) in &health.components.0 {
        let moves = moves.remove(name).unwrap_or_default();
        let all = if days > 0 { spans(&moves, Some(&known.told), from, now) } else { Vec::new() };
        let (judged, objects) =
            known.seen.as_ref().map(|it| (it.observation.judged, it.observation.objects.clone())).unwrap_or_default();
        let checks = known.checks.iter().map(|(name, check)| HealthCheck {
            name: name.clone(),
            status: check.status,
            message: check.message.clone(),
            reported_at: check.at,
            stale_after_s: check.stale_after_s,
            stale: check.is_stale(now),
        });
        let Told { verdict, reason, since, downstream_of } = known.told.clone();
        components.push(ComponentHealth {
            component: name.clone(),
            verdict,
            reason,
            since,
            downstream_of,
            observed_at: known.seen.as_ref().map(|seen| seen.at),
            judged,
            objects,
            checks: checks.collect(),
            uptime: uptime(&all),
            days: (0..days).map(|n| day(&all, from.plus_s(n * DAY_S), now)).collect(),
        });
    }
    // What was deployed and not observed yet.
    for (name, observed) in health.deployed.iter().filter(|(name, _)| !health.components.0.contains_key(*name)) {
        let (verdict, reason) = match observed {
            true => (Verdict::Unknown, "nothing was observed yet"),
            false => (Verdict::NotApplicable, ""),
        };
        components.push(ComponentHealth {
            component: name.clone(),
            verdict,
            reason: reason.to_owned(),
            since: now,
            downstream_of: None,
            observed_at: None,
            judged: 0,
            objects: Vec::new(),
            checks: Vec::new(),
            uptime: None,
            days: Vec::new(),
        });
    }
    components.sort_by(|a, b| a.component.cmp(&b.component));
    Ok(InstallHealth { install_id: install.id.to_string(), verdict: health.components.verdict(), components })
}

/// One day of a component.
fn day(all: &[Span], from: Timestamp, now: Timestamp) -> HealthDay {
    let to = from.plus_s(DAY_S).min(now);
    let cut = |span: &Span| Span { from: span.from.max(from), to: span.to.min(to), ..*span };
    let spans: Vec<Span> = all.iter().map(cut).filter(|span| span.from < span.to).collect();
    let date = from.to_string().chars().take(10).collect();
    HealthDay { date, verdict: spans.iter().filter_map(|span| span.verdict).max(), uptime: uptime(&spans) }
}

/// Verdicts that became others, the newest first. They are kept for 90 days.
#[utoipa::path(get, path = "/v1/installs/{install_id}/health/history", tag = "health", security(("token" = ["read-only"])), params(("install_id" = String, Path, description = "name or id"), ("component" = Option<String>, Query), ("from" = Option<String>, Query, description = "since when, as RFC 3339"), ("offset" = Option<u64>, Query), ("limit" = Option<u64>, Query), ("page" = Option<u64>, Query)), responses((status = 200, body = [HealthTransition]), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn history(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(install): Path<String>,
    Params(since): Params<Since>,
) -> ApiResult<List<HealthTransition>> {
    let install = state.store().install(&at.org, &install).await?;
    let page = Page { offset: since.offset, limit: since.limit, page: since.page };
    let from = match since.from.filter(|text| !text.is_empty()) {
        Some(text) => Timestamp::try_from(text).map_err(ApiError::invalid)?,
        None => Timestamp::from_micros(0),
    };
    let component = since.component.as_deref().filter(|name| !name.is_empty());
    let place = (page.offset(), page.fetch());
    let read = state.store().health_transitions(&at.org, &install.id, component, from, place).await?;
    let wire = |it: store::HealthTransition| HealthTransition {
        component: it.component,
        at: it.at,
        from: it.was,
        to: it.verdict,
        reason: it.reason,
        downstream_of: it.downstream_of,
    };
    Ok(List::new(read.into_iter().map(wire).collect(), page))
}

/// Takes what a check has found out about a component. It can only make the component look worse.
#[utoipa::path(put, path = "/v1/installs/{install_id}/components/{component}/health/checks/{name}", tag = "health", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id"), ("component" = String, Path), ("name" = String, Path)), request_body = PushHealthCheck, responses((status = 200, body = InstallHealth), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn push(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((install, component, name)): Path<(String, String, String)>,
    request: Create<PushHealthCheck>,
) -> ApiResult<Json<InstallHealth>> {
    let install = state.store().install(&at.org, &install).await?;
    let wanted = request.value;
    let stale_after = wanted.stale_after.as_deref().map(parse_duration).transpose();
    let stale_after = stale_after.map_err(|e| ApiError::invalid(format!("`stale_after`: {e}")))?;
    let check = WantedCheck {
        status: wanted.status,
        message: wanted.message,
        stale_after_s: stale_after.map(|stale_after| stale_after.as_secs()),
    };
    let health = state.conductor.push_check(&at.by(), &install, &component, &name, check).await?;
    Ok(Json(wire(&state, &install, &health, 0).await?))
}

/// Forgets a check of a component, as if it had never been pushed.
#[utoipa::path(delete, path = "/v1/installs/{install_id}/components/{component}/health/checks/{name}", tag = "health", security(("token" = ["operator"])), params(("install_id" = String, Path, description = "name or id"), ("component" = String, Path), ("name" = String, Path)), responses((status = 200, body = InstallHealth), (status = 404, body = api::ErrorBody)))]
async fn forget(
    State(state): State<AppState>,
    Operator(at): Operator,
    Path((install, component, name)): Path<(String, String, String)>,
) -> ApiResult<Json<InstallHealth>> {
    let install = state.store().install(&at.org, &install).await?;
    let health = state.conductor.forget_check(&at.by(), &install, &component, &name).await?;
    Ok(Json(wire(&state, &install, &health, 0).await?))
}
