//! What every page knows of its org: the frame, search, saved views, and the audit list.

use std::collections::HashMap;

use api::control::{
    AuditEntry, AuditPage, BuildRunnerState, Cans, CreateSavedView, OrgFrame, SavedView, SearchItem, SearchResults,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use model::{JobId, JobState, Role, SavedViewId, WorkflowId};
use serde::Deserialize;
use serde_json::Value;
use store::{BuildFilter, BuildStatus, EntityKind, EventCursor, EventFilter, KindFilter, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::approvals::WAITING_MAX;
use super::{Names, may};
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::control_api::runners;
use crate::error::{ApiError, ApiResult};
use crate::request::{Create, Params};

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(frame))
        .routes(routes!(search))
        .routes(routes!(views, save_view))
        .routes(routes!(delete_view))
        .routes(routes!(audit))
}

/// Things of each kind that a search finds.
const FOUND_MAX: usize = 8;
const BUILDS: u64 = 500;
const QUERY_BYTES_MAX: usize = 4096;
const NAME_CHARS_MAX: usize = 80;
const AUDIT: u64 = 50;
const AUDIT_MAX: u64 = 500;
/// Entries of one download.
const CSV_MAX: u64 = 10_000;

/// The frame of every page: the org, the role in it, plans that wait, the build runner.
#[utoipa::path(get, path = "/v1/frame", tag = "pages", security(("token" = ["read-only"])), responses((status = 200, body = OrgFrame)))]
async fn frame(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<OrgFrame>> {
    let org = state.store().org(&at.org).await?;
    let runner = state.store().runner(&at.org, org.build_runner_id.as_str()).await?;
    let builds = state.store().builds(&at.org, BuildFilter::default(), 0, BUILDS).await?;
    let open: Vec<_> = builds.into_iter().filter(|build| build.status == BuildStatus::Open).collect();
    let mut running = 0;
    for build in open.iter().filter_map(|build| build.job_id.as_ref()) {
        let job = state.store().job(&at.org, build).await?;
        running += u64::from(matches!(job.state, JobState::Running | JobState::Claimed));
    }
    let (status, text) =
        if org.sandbox_mode { ("active", "builds are simulated".to_owned()) } else { runners::status(&state, &runner) };
    let can = Cans::from([
        ("approve".to_owned(), may(&at, Role::Approver)),
        ("operate".to_owned(), may(&at, Role::Operator)),
        ("admin".to_owned(), may(&at, Role::Admin)),
    ]);
    Ok(Json(OrgFrame {
        org_id: org.id.to_string(),
        name: org.name,
        role: at.role,
        simulated: org.sandbox_mode,
        approvals: state.store().awaiting_plans(&at.org, WAITING_MAX).await?.len() as u64,
        build_runner: BuildRunnerState {
            id: runner.id.to_string(),
            status: status.to_owned(),
            text,
            builds_open: open.len() as u64,
            builds_running: running,
        },
        can,
        version: crate::VERSION.to_owned(),
    }))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SearchQuery {
    q: String,
}

fn found(kind: &str, id: impl ToString, name: &str) -> SearchItem {
    SearchItem {
        kind: kind.to_owned(),
        id: id.to_string(),
        name: name.to_owned(),
        of: String::new(),
        app_id: String::new(),
        install_id: String::new(),
        workflow_id: String::new(),
        status: String::new(),
    }
}

/// Things of the org by a part of their name, or by id: installs, apps, components, actions, runners, workflows, jobs.
#[utoipa::path(get, path = "/v1/search", tag = "pages", security(("token" = ["read-only"])), params(("q" = String, Query)), responses((status = 200, body = SearchResults)))]
async fn search(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(query): Params<SearchQuery>,
) -> ApiResult<Json<SearchResults>> {
    let q = query.q.trim().to_lowercase();
    if q.is_empty() || q.len() > 200 {
        return Ok(Json(SearchResults { items: Vec::new() }));
    }
    let snapshot = state.fleet.snapshot(&state, &at.org).await?;
    let mut items = by_id(&state, &at, &q).await?;
    let app = |id: &model::AppId| snapshot.apps.get(id).map(|app| app.name.clone()).unwrap_or_default();
    // Those whose names begin with it come first.
    let mut installs: Vec<_> = snapshot.rows.iter().filter(|row| row.name.to_lowercase().contains(&q)).collect();
    installs.sort_by_key(|row| (!row.name.to_lowercase().starts_with(&q), row.name.clone()));
    items.extend(installs.iter().take(FOUND_MAX).map(|row| SearchItem {
        of: app(&row.app_id),
        install_id: row.id.to_string(),
        app_id: row.app_id.to_string(),
        status: row.status.clone(),
        ..found("install", &row.id, &row.name)
    }));
    let mut apps: Vec<_> = snapshot.apps.iter().filter(|(_, app)| app.name.to_lowercase().contains(&q)).collect();
    apps.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    items.extend(
        apps.iter()
            .take(FOUND_MAX)
            .map(|(id, app)| SearchItem { app_id: id.to_string(), ..found("app", id, &app.name) }),
    );
    for (kind, entity) in [("component", EntityKind::Component), ("action", EntityKind::Action)] {
        for it in state.store().entities(&at.org, None, entity, &q, 0, FOUND_MAX as u64).await? {
            let of = app(&it.app_id);
            items.push(SearchItem { of, app_id: it.app_id.to_string(), ..found(kind, &it.id, &it.name) });
        }
    }
    Ok(Json(SearchResults { items }))
}

/// What an id names, whatever it is.
async fn by_id(state: &AppState, at: &InOrg, q: &str) -> ApiResult<Vec<SearchItem>> {
    let absent = |error: StoreError| match error {
        StoreError::NotFound(_) => Ok(Vec::new()),
        other => Err(ApiError::from(other)),
    };
    if let Ok(id) = WorkflowId::parse(q) {
        return match state.store().workflow(&at.org, &id).await {
            Ok(row) => Ok(vec![SearchItem {
                workflow_id: q.to_owned(),
                install_id: row.install_id.to_string(),
                status: row.status,
                ..found("workflow", q, &row.kind.replace('_', " "))
            }]),
            Err(error) => absent(error),
        };
    }
    if let Ok(id) = JobId::parse(q) {
        return match state.store().job(&at.org, &id).await {
            Ok(job) => {
                let name = job.name.clone().unwrap_or_else(|| job.job_type.to_string());
                Ok(vec![SearchItem { status: job.state.to_string(), ..found("job", q, &name) }])
            }
            Err(error) => absent(error),
        };
    }
    if model::RunnerId::parse(q).is_ok() {
        return match state.store().runner(&at.org, q).await {
            Ok(runner) => Ok(vec![found("runner", q, &runner.name)]),
            Err(error) => absent(error),
        };
    }
    if model::InstallId::parse(q).is_ok() {
        return match state.store().install(&at.org, q).await {
            Ok(install) => Ok(vec![SearchItem { install_id: q.to_owned(), ..found("install", q, &install.name) }]),
            Err(error) => absent(error),
        };
    }
    if let Ok(id) = model::BuildId::parse(q) {
        return match state.store().build(&at.org, &id).await {
            Ok(build) => {
                Ok(vec![SearchItem { app_id: build.app_id.to_string(), ..found("build", q, &build.component) }])
            }
            Err(error) => absent(error),
        };
    }
    Ok(Vec::new())
}

fn view_shown(at: &InOrg, names: &Names, view: store::SavedView) -> SavedView {
    SavedView {
        id: view.id.to_string(),
        name: view.name,
        query: view.query,
        shared: view.shared,
        created_by: names.name(view.account_id.as_str()),
        created_at: view.created_at,
        mine: view.account_id == at.owner.account.id,
    }
}

/// Saved filters of the fleet: one's own, and those that others share.
#[utoipa::path(get, path = "/v1/views", tag = "pages", security(("token" = ["read-only"])), responses((status = 200, body = [SavedView])))]
async fn views(State(state): State<AppState>, Reader(at): Reader) -> ApiResult<Json<Vec<SavedView>>> {
    let names = Names::of(&state, &at).await?;
    let found = state.store().saved_views(&at.org, &at.owner.account.id).await?;
    Ok(Json(found.into_iter().map(|view| view_shown(&at, &names, view)).collect()))
}

/// Saves a filter of the fleet; one of the same name is replaced. Sharing it with the org needs the role operator.
#[utoipa::path(post, path = "/v1/views", tag = "pages", security(("token" = ["read-only"])), request_body = CreateSavedView, responses((status = 201, body = SavedView), (status = 400, body = api::ErrorBody), (status = 403, body = api::ErrorBody), (status = 409, body = api::ErrorBody)))]
async fn save_view(
    State(state): State<AppState>,
    Reader(at): Reader,
    request: Create<CreateSavedView>,
) -> ApiResult<(StatusCode, Json<SavedView>)> {
    let CreateSavedView { name, query, shared } = request.value;
    let name = name.trim().to_owned();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("`name` must have 1 to {NAME_CHARS_MAX} characters")));
    }
    if query.len() > QUERY_BYTES_MAX || query.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("`query` may have {QUERY_BYTES_MAX} bytes")));
    }
    if shared && at.role < Role::Operator {
        return Err(ApiError::new(api::ErrorCode::Forbidden, "sharing a view needs the role operator"));
    }
    let view = state.conductor.save_view(&at.by(), name, query, shared).await?;
    let names = Names::of(&state, &at).await?;
    Ok((StatusCode::CREATED, Json(view_shown(&at, &names, view))))
}

/// Deletes a saved view: one's own; an admin may delete those that others share.
#[utoipa::path(delete, path = "/v1/views/{view_id}", tag = "pages", security(("token" = ["read-only"])), params(("view_id" = String, Path)), responses((status = 204), (status = 404, body = api::ErrorBody)))]
async fn delete_view(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    let id = SavedViewId::parse(&id).map_err(|_| StoreError::NotFound("view"))?;
    state.conductor.delete_view(&at.by(), &id, at.role == Role::Admin).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AuditQuery {
    install: String,
    kind: String,
    actor: String,
    q: String,
    from: String,
    to: String,
    cursor: String,
    limit: String,
    format: String,
}

/// Events of the org with names in place of ids, newest first; `format=csv` downloads them.
#[utoipa::path(get, path = "/v1/audit", tag = "pages", security(("token" = ["read-only"])), params(
    ("install" = Option<String>, Query, description = "name or id"),
    ("kind" = Option<String>, Query, description = "a kind of event, like `job.state`, or a family, like `job`"),
    ("actor" = Option<String>, Query, description = "address or id of an account"),
    ("q" = Option<String>, Query, description = "part of the event's document"),
    ("from" = Option<String>, Query, description = "RFC 3339"), ("to" = Option<String>, Query, description = "RFC 3339"),
    ("cursor" = Option<String>, Query, description = "`next` of the page before"), ("limit" = Option<u64>, Query),
    ("format" = Option<String>, Query, description = "json or csv"),
), responses((status = 200, body = AuditPage), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn audit(
    State(state): State<AppState>,
    Reader(at): Reader,
    Params(query): Params<AuditQuery>,
) -> ApiResult<Response> {
    let names = Names::of(&state, &at).await?;
    let install = match query.install.as_str() {
        "" => None,
        // A forgotten one is known by its id still.
        name => match state.store().install(&at.org, name).await {
            Ok(install) => Some(install.id),
            Err(error) => Some(model::InstallId::parse(name).map_err(|_| ApiError::from(error))?),
        },
    };
    let time = |key: &str, text: &str| match text {
        "" => Ok(None),
        text => model::Timestamp::try_from(text.to_owned())
            .map(Some)
            .map_err(|_| ApiError::invalid(format!("`{key}` must be a time like 2026-01-31T12:00:00Z"))),
    };
    let csv = query.format == "csv";
    let limit = match query.limit.as_str() {
        "" => AUDIT,
        text => text.parse().map_err(|_| ApiError::invalid("`limit` must be a number"))?,
    };
    let limit = if csv { CSV_MAX } else { limit.clamp(1, AUDIT_MAX) };
    let cursor = match query.cursor.as_str() {
        "" => None,
        text => Some(text.parse::<EventCursor>().map_err(|e| ApiError::invalid(e.to_string()))?),
    };
    let filter = EventFilter {
        kind: KindFilter::parse(&query.kind).map_err(|e| ApiError::invalid(e.to_string()))?,
        install,
        actor: Some(names.id(&query.actor)).filter(|actor| !actor.is_empty()),
        text: Some(query.q.clone()).filter(|q| !q.is_empty()),
        from: time("from", &query.from)?,
        to: time("to", &query.to)?,
        before: cursor,
    };
    let events = state.store().filtered_events(&at.org, filter, limit + 1).await?;
    let more = events.len() as u64 > limit;
    let snapshot = state.fleet.snapshot(&state, &at.org).await?;
    let installs: HashMap<&str, &str> = snapshot.rows.iter().map(|row| (row.id.as_str(), row.name.as_str())).collect();
    let entries: Vec<AuditEntry> =
        events.into_iter().take(limit as usize).map(|event| entry(event, &names, &installs)).collect();
    if csv {
        return Ok(download(&entries, more));
    }
    let next = entries.last().filter(|_| more).map(|last| last.id.clone()).unwrap_or_default();
    Ok(Json(AuditPage { entries, next }).into_response())
}

fn entry(event: store::Event, names: &Names, installs: &HashMap<&str, &str>) -> AuditEntry {
    let text = |key: &str| event.data[key].as_str().unwrap_or_default().to_owned();
    let install_id = if event.subject_type == "install" { event.subject_id.clone() } else { text("install_id") };
    let install = installs.get(install_id.as_str()).copied().unwrap_or_default();
    let name = match event.subject_type.as_str() {
        "install" if !install.is_empty() => install.to_owned(),
        _ => text("name"),
    };
    let workflow_id = if event.subject_type == "workflow" { event.subject_id.clone() } else { String::new() };
    AuditEntry {
        id: event.cursor.to_string(),
        time: event.time,
        who: names.name(&event.actor),
        text: sentence(&event, &name, install),
        kind: event.kind,
        subject_type: event.subject_type,
        subject_id: event.subject_id,
        data: event.data,
        subject_name: name,
        install_id,
        workflow_id,
    }
}

/// What happened, for people: the kind in words, what it was about, and from what to what.
fn sentence(event: &store::Event, name: &str, install: &str) -> String {
    let text = |key: &str| event.data[key].as_str().unwrap_or_default();
    let (family, what) = event.kind.split_once('.').unwrap_or((event.kind.as_str(), ""));
    let mut said = format!("{} {}", family.replace('-', " "), what.replace('-', " ")).trim().to_owned();
    if family == "job" && what == "state" {
        said = format!("job {}", text("type"));
    } else if event.kind == "workflow.step" {
        said = format!("step {}", text("name"));
    } else if event.kind == "workflow.status" {
        said = format!("workflow {}", text("type").replace('_', " "));
    } else if !name.is_empty() {
        said = format!("{said}: {name}");
    }
    if !install.is_empty() && name != install {
        said = format!("{said} of {install}");
    }
    match (text("from"), text("to")) {
        (_, "") => said,
        ("", to) => format!("{said}: {to}"),
        (from, to) => format!("{said}: {from} → {to}"),
    }
}

/// A field of a table that other programs open: none of it is a formula.
fn field(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

fn download(entries: &[AuditEntry], more: bool) -> Response {
    let mut csv = String::from("time,who,kind,what,subject_type,subject_id,install_id,data\r\n");
    for it in entries {
        let data = if it.data.is_null() { String::new() } else { Value::to_string(&it.data) };
        let row = [
            it.time.to_string(),
            it.who.clone(),
            it.kind.clone(),
            it.text.clone(),
            it.subject_type.clone(),
            it.subject_id.clone(),
            it.install_id.clone(),
            data,
        ];
        csv += &row.map(|text| field(&text)).join(",");
        csv += "\r\n";
    }
    if more {
        let text = format!("only the newest {CSV_MAX} entries are here: ask for others with `to`");
        csv += &["", "", "cut", &text, "", "", "", ""].map(field).join(",");
        csv += "\r\n";
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"audit.csv\"")),
    ];
    (headers, csv).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_a_download_is_no_formula() {
        assert_eq!(field("=cmd()"), "\"'=cmd()\"");
        assert_eq!(field("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
