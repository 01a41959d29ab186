//! One's own sessions, and links that sign a browser in.

use api::control::{AccountSession, CurrentSession, OrgRole, SessionsEnded, SignInLink};
use axum::Json;
use axum::extract::{Path, State};
use conductor::PeopleError;
use http::StatusCode;
use model::AccountSessionId;
use store::{Credential, SessionKind, SignedIn, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::AppState;
use crate::auth::Caller;
use crate::error::ApiResult;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(current))
        .routes(routes!(list, end_all))
        .routes(routes!(end))
        .routes(routes!(create_link))
}

/// A token for one org, or with a lower role, has no say about the person's sessions.
fn whole(who: &SignedIn) -> ApiResult<()> {
    if who.is_whole() { Ok(()) } else { Err(conductor::Error::from(PeopleError::Narrow).into()) }
}

/// Who is signed in, with the orgs and the role in each.
#[utoipa::path(get, path = "/v1/session", tag = "people", security(("token" = ["any"])), responses((status = 200, body = CurrentSession)))]
async fn current(State(state): State<AppState>, Caller(who): Caller) -> ApiResult<Json<CurrentSession>> {
    let names = state.store().orgs_of(&who.account.id).await?;
    let named = |id: &model::OrgId| names.iter().find(|org| org.id == *id).map(|org| org.name.clone());
    let orgs = who.orgs().into_iter().filter_map(|(id, role)| Some(OrgRole { name: named(&id)?, id, role })).collect();
    let by = match &who.by {
        Credential::Token(_) => "token".to_owned(),
        Credential::Session(id) => {
            let all = state.store().account_sessions(&who.account.id, state.conductor.now()).await?;
            all.iter().find(|it| it.id == *id).map_or(SessionKind::Browser, |it| it.kind).as_str().to_owned()
        }
    };
    Ok(Json(CurrentSession { account_id: who.account.id, email: who.account.email, by, orgs }))
}

/// Where you are signed in.
#[utoipa::path(get, path = "/v1/account/sessions", tag = "people", security(("token" = ["any"])), responses((status = 200, body = [AccountSession])))]
async fn list(State(state): State<AppState>, Caller(who): Caller) -> ApiResult<Json<Vec<AccountSession>>> {
    whole(&who)?;
    let all = state.store().account_sessions(&who.account.id, state.conductor.now()).await?;
    let shown = all.into_iter().map(|it| AccountSession {
        current: who.by == Credential::Session(it.id.clone()),
        id: it.id,
        kind: it.kind.as_str().to_owned(),
        name: it.name,
        address: it.address,
        provider: it.provider,
        created_at: it.created_at,
        seen_at: it.seen_at,
        expires_at: it.expires_at,
    });
    Ok(Json(shown.collect()))
}

/// Ends all your sessions, this one too.
#[utoipa::path(delete, path = "/v1/account/sessions", tag = "people", security(("token" = ["any"])), responses((status = 200, body = SessionsEnded)))]
async fn end_all(State(state): State<AppState>, Caller(who): Caller) -> ApiResult<Json<SessionsEnded>> {
    whole(&who)?;
    let ended = state.conductor.end_sessions(&who.account.id, None, "ended everywhere by its person").await?;
    Ok(Json(SessionsEnded { ended }))
}

/// Ends one of your sessions.
#[utoipa::path(delete, path = "/v1/account/sessions/{session_id}", tag = "people", security(("token" = ["any"])), params(("session_id" = String, Path)), responses((status = 200, body = SessionsEnded), (status = 404, body = api::ErrorBody)))]
async fn end(
    State(state): State<AppState>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> ApiResult<Json<SessionsEnded>> {
    whole(&who)?;
    let id = AccountSessionId::parse(&id).map_err(|_| StoreError::NotFound("session"))?;
    let ended = state.conductor.end_sessions(&who.account.id, Some(&id), "ended by its person").await?;
    if ended == 0 {
        return Err(StoreError::NotFound("session").into());
    }
    Ok(Json(SessionsEnded { ended }))
}

/// Makes a link that signs one browser in as you, once, within an hour. A token that is good for one org alone can't make one.
#[utoipa::path(post, path = "/v1/sign-in-links", tag = "people", security(("token" = ["any"])), responses((status = 201, body = SignInLink), (status = 403, body = api::ErrorBody)))]
async fn create_link(State(state): State<AppState>, Caller(who): Caller) -> ApiResult<(StatusCode, Json<SignInLink>)> {
    let (secret, expires_at) = state.conductor.sign_in_link(&who).await?;
    let url = format!("{}/link?t={secret}", state.web.base_url);
    Ok((StatusCode::CREATED, Json(SignInLink { url, expires_at })))
}
