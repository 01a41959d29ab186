//! Owns the routes that pages are painted from: fleet, attention, approvals, runs, plans, installs, search, saved views, audit, live.
//! The dashboard and the CLI call them.
//! No rules: handlers read, put together and render; what may be done comes from the same functions that refuse it.

mod approvals;
mod attention;
mod fleet;
mod installs;
mod live;
mod org;
mod plans;
mod readme;
mod runs;

use std::collections::HashMap;

use api::control::Can;
use api::headers;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderValue, Method};
use model::Role;
use utoipa_axum::router::OpenApiRouter;

use crate::AppState;
use crate::auth::InOrg;
use crate::error::ApiResult;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(fleet::routes())
        .merge(attention::routes())
        .merge(approvals::routes())
        .merge(installs::routes())
        .merge(org::routes())
        .merge(live::routes())
        .merge(plans::routes())
        .merge(runs::routes())
}

/// Tells a page which events its answer knows of: it ignores those, and a late answer never overwrites a newer one.
pub(super) async fn with_cursor(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let wanted = request.method() == Method::GET && request.headers().contains_key(headers::BROWSER);
    let (mut parts, body) = request.into_parts();
    // Only who belongs to the org is told. Before the answer is made: what happens meanwhile may or may not be in it.
    let at = if wanted { InOrg::from_request_parts(&mut parts, &state).await.ok() } else { None };
    let known = match at {
        Some(at) => state.store().last_event(&at.org).await.ok(),
        None => None,
    };
    let request = Request::from_parts(parts, body);
    let mut response = next.run(request).await;
    let cursor = known.filter(|_| response.status().is_success()).map(|known| known.to_string());
    if let Some(value) = cursor.and_then(|cursor| HeaderValue::from_str(&cursor).ok()) {
        response.headers_mut().insert(headers::CURSOR, value);
    }
    response
}

/// What people are called.
pub(super) struct Names(HashMap<String, String>);

impl Names {
    pub(super) async fn of(state: &AppState, at: &InOrg) -> ApiResult<Self> {
        let members = state.store().members(&at.org).await?;
        Ok(Self(members.into_iter().map(|it| (it.account_id.to_string(), it.email)).collect()))
    }

    /// The account of an address; what is no address of the org is what it is.
    pub(super) fn id(&self, name: &str) -> String {
        let known = self.0.iter().find(|(_, email)| email.eq_ignore_ascii_case(name));
        known.map_or_else(|| name.to_owned(), |(id, _)| id.clone())
    }

    /// The address of an account; what is no account of the org is called what it is.
    pub(super) fn name(&self, actor: &str) -> String {
        self.0.get(actor).cloned().unwrap_or_else(|| actor.to_owned())
    }
}

/// Whether a role is enough, and what is missing.
pub(super) fn may(at: &InOrg, needed: Role) -> Can {
    if at.role >= needed {
        return Can::yes();
    }
    Can::no(format!("this needs the role {}, and you have {}", needed.as_str(), at.role.as_str()))
}

/// The same, where the state of things has a word to say too.
pub(super) fn may_if(at: &InOrg, needed: Role, allowed: bool, otherwise: &str) -> Can {
    match may(at, needed) {
        can if !can.ok => can,
        _ if !allowed => Can::no(otherwise),
        can => can,
    }
}

/// A word as the enum of the document has it; what a newer version wrote is `unknown`.
macro_rules! word {
    ($enum:ty, $text:expr, $otherwise:expr) => {
        <$enum>::parse($text).unwrap_or($otherwise)
    };
}
pub(super) use word;
