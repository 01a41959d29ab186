//! The pages, and where their forms lead. A page changes nothing; what changes something is a form of our own.

use std::fmt::Write as _;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use model::{AccountSessionId, Timestamp};
use serde::Deserialize;
use store::{Credential, SessionKind, SignedIn, StoreError};

use super::asked::{Person, Sent, SentBy, Welcome, form};
use super::flow::{FLOW_S, Flow};
use super::limiter::Tried;
use super::oidc::OidcError;
use super::pages::{button, escape, page, trouble};
use super::{cli, devices, home, local_path};
use crate::AppState;
use crate::auth::{identify_bearer, identify_browser};
use crate::error::ApiError;

/// Forms are small.
const FORM_BYTES: usize = 64 << 10;

pub(crate) fn router(state: AppState) -> Router {
    Router::new()
        .route("/login", get(login))
        .route("/auth/login", get(begin))
        .route("/auth/callback", get(callback))
        .route("/auth/session", post(token_form))
        .route("/auth/logout", post(logout))
        .route("/link", get(link).post(use_link))
        .route("/invite", get(invite).post(take_invite))
        .merge(devices::routes())
        .route("/account", get(account))
        .route("/account/sessions", post(end_sessions))
        .merge(cli::routes())
        .layer(axum::extract::DefaultBodyLimit::max(FORM_BYTES))
        .with_state(state)
}

/// What went wrong, as a page.
pub(super) fn failed(error: impl Into<ApiError>, next: (&str, &str)) -> Response {
    let error: ApiError = error.into();
    if let Some(internal) = &error.internal {
        tracing::error!(internal, "a page failed");
    }
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    trouble(status, &error.message, next)
}

pub(super) const LOGIN: (&str, &str) = ("/login", "Sign in");

pub(super) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

pub(super) fn shown_time(at: Timestamp) -> String {
    // To the minute, in UTC: a page without script does not know where its reader lives.
    let text = at.to_string();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}

#[derive(Debug, Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    return_to: String,
    #[serde(default)]
    provider: String,
}

async fn login(
    State(state): State<AppState>,
    Welcome(_): Welcome,
    headers: HeaderMap,
    Query(wanted): Query<Wanted>,
) -> Response {
    let to = local_path(&wanted.return_to);
    // Cookies belong to a host: a sign-in that begins at another name of this machine would not come back to it.
    if state.web.is_elsewhere(&headers) {
        return Redirect::to(&format!("{}/login?return_to={}", state.web.base_url, encoded(&to))).into_response();
    }
    let mut body = String::new();
    match identify_browser(&state, &headers).await {
        Ok(Some(_)) => return Redirect::to(&to).into_response(),
        Ok(None) => {}
        Err(error) => return failed(error, LOGIN),
    }
    if let Some(invite) = Flow::of(&state, &headers).and_then(|flow| flow.invite)
        && let Ok((invite, org)) = state.store().invite_of_link(&invite, state.conductor.now()).await
    {
        let _ = write!(body, "<p>Sign in as <b>{}</b> to join <b>{}</b>.</p>", escape(&invite.email), escape(&org));
    }
    for provider in &state.web.providers {
        let href = format!("/auth/login?provider={}&return_to={}", encoded(&provider.config.name), encoded(&to));
        let _ =
            write!(body, "<a class=b href=\"{}\">Sign in with {}</a>", escape(&href), escape(provider.config.title()));
    }
    if state.web.providers.is_empty() {
        body.push_str("<p class=dim>No identity provider is configured here. Use an API token or a one-time link: <code>ferry auth link</code> prints one where the CLI is signed in, <code>ferry admin sign-in-link</code> on the server's machine.</p>");
    }
    let _ = write!(
        body,
        "<h2>With an API token</h2><form method=post action=/auth/session><input type=hidden name=return_to value=\"{}\"><label for=token>Token</label><input id=token name=token type=password autocomplete=off required><button>Sign in</button></form>",
        escape(&to)
    );
    page(StatusCode::OK, "Sign in to Ferry", &body)
}

/// Sends the browser to a provider.
async fn begin(
    State(state): State<AppState>,
    Welcome(_): Welcome,
    headers: HeaderMap,
    Query(wanted): Query<Wanted>,
) -> Response {
    let Some(provider) = state.web.provider(&wanted.provider) else {
        return trouble(StatusCode::NOT_FOUND, "there is no such provider", LOGIN);
    };
    let begun = match provider.begin().await {
        Ok(begun) => begun,
        Err(error) => return trouble(StatusCode::SERVICE_UNAVAILABLE, &error.to_string(), LOGIN),
    };
    let flow = Flow {
        provider: wanted.provider,
        state: begun.state,
        nonce: begun.nonce,
        verifier: begun.verifier,
        return_to: local_path(&wanted.return_to),
        invite: Flow::of(&state, &headers).and_then(|flow| flow.invite),
        until: Flow::until(state.conductor.now()),
    };
    let mut response = Redirect::to(&begun.url).into_response();
    let cookie = state.web.set_cookie(&state.web.flow_cookie, &flow.sealed(&state), FLOW_S);
    response.headers_mut().append(SET_COOKIE, cookie);
    super::guarded(response, "")
}

#[derive(Debug, Deserialize)]
struct Returned {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// The browser comes back from a provider.
async fn callback(
    State(state): State<AppState>,
    Welcome(from): Welcome,
    headers: HeaderMap,
    Query(returned): Query<Returned>,
) -> Response {
    let refuse = |status, text: &str| {
        tracing::info!(address = from.address, why = text, "a sign-in was refused");
        let mut response = trouble(status, text, ("/login", "Try again"));
        response.headers_mut().append(SET_COOKIE, state.web.set_cookie(&state.web.flow_cookie, "", 0));
        response
    };
    let Some(flow) = Flow::of(&state, &headers).filter(|flow| !flow.provider.is_empty()) else {
        let text = format!(
            "this sign-in did not begin in this browser, or took too long; begin at {}/login",
            state.web.base_url
        );
        return refuse(StatusCode::BAD_REQUEST, &text);
    };
    // Also when two providers are mixed up: each flow has a state of its own.
    if returned.state.as_deref() != Some(flow.state.as_str()) {
        state.limits.count(Tried::Guessing, &from.address);
        return refuse(StatusCode::BAD_REQUEST, "the provider's answer belongs to another sign-in; begin again");
    }
    let Some(provider) = state.web.provider(&flow.provider) else {
        return refuse(StatusCode::NOT_FOUND, "the provider is not configured any more");
    };
    let (Some(code), None) = (&returned.code, &returned.error) else {
        let why = returned.error_description.or(returned.error).unwrap_or_else(|| "it sent no code".to_owned());
        let why: String = why.chars().take(200).collect();
        return refuse(StatusCode::FORBIDDEN, &format!("{} refused: {why}", provider.config.title()));
    };
    let vouched = match provider.finish(code, &flow.nonce, &flow.verifier).await {
        Ok(vouched) => vouched,
        Err(error @ (OidcError::Away { .. } | OidcError::Setup { .. })) => {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
        }
        Err(error) => return refuse(StatusCode::FORBIDDEN, &error.to_string()),
    };
    let invite = flow.invite.as_deref();
    let signed_in = state.conductor.sign_in(&provider.admission, &vouched.claims, vouched.refresh, invite, &from).await;
    match signed_in {
        Ok(browser) => state.web.signed_in(&state, &flow.return_to, &browser),
        Err(error) => {
            let error: ApiError = error.into();
            refuse(StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::FORBIDDEN), &error.message)
        }
    }
}

#[derive(Debug, Deserialize)]
struct TokenForm {
    token: String,
    #[serde(default)]
    return_to: String,
}

/// A session in place of a token.
async fn token_form(State(state): State<AppState>, Sent { from, form: sent, .. }: Sent<TokenForm>) -> Response {
    if let Err(error) = state.limits.check(Tried::Guessing, &from.address) {
        return failed(error, LOGIN);
    }
    let signed_in = async {
        let who = identify_bearer(&state, sent.token.trim()).await?;
        Ok::<_, ApiError>(state.conductor.trade_token(&who, &from).await?)
    };
    match signed_in.await {
        Ok(browser) => state.web.signed_in(&state, &local_path(&sent.return_to), &browser),
        Err(error) if error.code == api::ErrorCode::NotFound => {
            state.limits.count(Tried::Guessing, &from.address);
            trouble(StatusCode::UNAUTHORIZED, "the token is unknown, expired or revoked", LOGIN)
        }
        Err(error) => failed(error, LOGIN),
    }
}

/// Ends the session of this browser, or of the CLI whose token is sent.
async fn logout(State(state): State<AppState>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(token) = headers.get(http::header::AUTHORIZATION).and_then(crate::auth::bearer) {
        return match identify_bearer(&state, token).await {
            Ok(who) => match &who.by {
                Credential::Session(id) => {
                    match state.conductor.end_sessions(&who.account.id, Some(id), "signed out").await {
                        Ok(_) => StatusCode::NO_CONTENT.into_response(),
                        Err(error) => ApiError::from(error).into_response(),
                    }
                }
                Credential::Token(_) => {
                    ApiError::invalid("an API token is ended with `ferry tokens revoke`").into_response()
                }
            },
            // A CLI whose access token has run out renews it and asks again; one whose session is over can't.
            Err(StoreError::NotFound(_)) => {
                ApiError::new(api::ErrorCode::Unauthenticated, "the token is unknown or has run out").into_response()
            }
            Err(error) => ApiError::from(error).into_response(),
        };
    }
    if let Err(refused) = form::<serde_json::Value>(&state, &headers, &body) {
        return refused;
    }
    let ended = match identify_browser(&state, &headers).await {
        Ok(Some(SignedIn { by: Credential::Session(id), account, .. })) => {
            state.conductor.end_sessions(&account.id, Some(&id), "signed out").await.map(drop).map_err(ApiError::from)
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    };
    let mut response = match ended {
        Ok(()) => Redirect::to("/login").into_response(),
        Err(error) => return failed(error, ("/account", "Back")),
    };
    state.web.sign_out(&mut response);
    super::guarded(response, "")
}

#[derive(Debug, Deserialize)]
struct Secret {
    #[serde(default)]
    t: String,
    #[serde(default)]
    email: String,
    /// A place on this server to go to.
    #[serde(default)]
    to: String,
}

const LINK_OVER: &str = "this link was used already, has expired, or is not complete; ask for another one";

async fn link(State(state): State<AppState>, Welcome(from): Welcome, Query(secret): Query<Secret>) -> Response {
    if let Err(error) = state.limits.check(Tried::Guessing, &from.address) {
        return failed(error, LOGIN);
    }
    match state.store().sign_in_link(&secret.t, state.conductor.now()).await {
        Ok(true) => {
            let body = format!(
                "<p>This server has no account yet. The first one is its admin.</p><form method=post action=/link><input type=hidden name=t value=\"{}\"><label for=email>Your e-mail address</label><input id=email name=email type=email required autocomplete=email><button class=main>Create the first account</button></form>",
                escape(&secret.t)
            );
            page(StatusCode::OK, "Welcome to Ferry", &body)
        }
        Ok(false) => {
            let body = button("/link", &[("t", &secret.t), ("to", &secret.to)], "Sign in", "main");
            page(StatusCode::OK, "Sign in to Ferry", &format!("<p>This link signs this browser in, once.</p>{body}"))
        }
        Err(StoreError::NotFound(_)) => {
            state.limits.count(Tried::Guessing, &from.address);
            trouble(StatusCode::NOT_FOUND, LINK_OVER, LOGIN)
        }
        Err(error) => failed(error, LOGIN),
    }
}

async fn use_link(State(state): State<AppState>, Sent { from, form: sent, .. }: Sent<Secret>) -> Response {
    let email = if sent.email.is_empty() { state.config.auth.bootstrap_email.clone() } else { sent.email };
    match state.conductor.use_link(&sent.t, &email, &from).await {
        Ok(browser) => state.web.signed_in(&state, &local_path(&sent.to), &browser),
        Err(conductor::Error::Store(StoreError::NotFound(_))) => {
            state.limits.count(Tried::Guessing, &from.address);
            trouble(StatusCode::NOT_FOUND, LINK_OVER, LOGIN)
        }
        Err(error) => failed(error, LOGIN),
    }
}

/// The page of an invite changes nothing: mail programs open links before people do.
async fn invite(State(state): State<AppState>, Welcome(from): Welcome, Query(secret): Query<Secret>) -> Response {
    if let Err(error) = state.limits.check(Tried::Guessing, &from.address) {
        return failed(error, LOGIN);
    }
    match state.store().invite_of_link(&secret.t, state.conductor.now()).await {
        Ok((invite, org)) => {
            let body = format!(
                "<p><b>{}</b> is invited to join <b>{}</b> with the role <b>{}</b>.</p><p class=dim>Good until {}.</p>{}",
                escape(&invite.email),
                escape(&org),
                invite.role.as_str(),
                shown_time(invite.expires_at),
                button("/invite", &[("t", &secret.t)], "Accept", "main")
            );
            page(StatusCode::OK, &format!("Join {org}"), &body)
        }
        Err(StoreError::NotFound(_)) => {
            state.limits.count(Tried::Guessing, &from.address);
            trouble(
                StatusCode::NOT_FOUND,
                "this invite was accepted or revoked, or has expired; ask for another one",
                LOGIN,
            )
        }
        Err(error) => failed(error, LOGIN),
    }
}

async fn take_invite(State(state): State<AppState>, Sent { from, headers, form: sent }: Sent<Secret>) -> Response {
    let who = match identify_browser(&state, &headers).await {
        Ok(who) => who,
        Err(error) => return failed(error, LOGIN),
    };
    if let Some(who) = who {
        return match state.conductor.accept_invite(&who, &sent.t).await {
            Ok(()) => Redirect::to(home()).into_response(),
            Err(error) => failed(error, ("/account", "Your account")),
        };
    }
    if state.web.providers.is_empty() {
        return match state.conductor.accept_invite_without_provider(&sent.t, &from).await {
            Ok(browser) => state.web.signed_in(&state, home(), &browser),
            Err(error) => failed(error, LOGIN),
        };
    }
    let until = Flow::until(state.conductor.now());
    let flow = Flow { invite: Some(sent.t), until, ..Flow::default() };
    let mut response = Redirect::to("/login").into_response();
    let cookie = state.web.set_cookie(&state.web.flow_cookie, &flow.sealed(&state), FLOW_S);
    response.headers_mut().append(SET_COOKIE, cookie);
    super::guarded(response, "")
}

async fn account(State(state): State<AppState>, Person(who): Person) -> Response {
    let now = state.conductor.now();
    let read = async {
        let mut sessions = state.store().account_sessions(&who.account.id, now).await?;
        // A session for a narrow token has no say about the others.
        sessions.retain(|it| who.is_whole() || who.by == Credential::Session(it.id.clone()));
        Ok::<_, StoreError>((sessions, state.store().orgs_of(&who.account.id).await?))
    };
    let (sessions, orgs) = match read.await {
        Ok(read) => read,
        Err(error) => return failed(error, LOGIN),
    };
    let mut body = format!("<p>Signed in as <b>{}</b>.</p><h2>Orgs</h2>", escape(&who.account.email));
    if who.orgs().is_empty() {
        body.push_str("<p class=dim>You belong to no org. Ask an admin for an invite, or create one with <code>ferry orgs create</code>.</p>");
    } else {
        let _ = write!(body, "<p>{}</p>", escape(&roles(&who, &orgs)));
    }
    body.push_str("<h2>Where you are signed in</h2><table><thead><tr><th>What<th>Last used<th></thead><tbody>");
    for session in &sessions {
        let what = match session.kind {
            SessionKind::Browser => session.name.clone(),
            SessionKind::Cli => format!("CLI on {}", session.name),
        };
        let here = who.by == Credential::Session(session.id.clone());
        let end = button("/account/sessions", &[("id", session.id.as_str())], "End", "");
        let _ = write!(
            body,
            "<tr><td>{}{}<br><span class=dim>{}</span><td>{}<td>{end}",
            escape(&what),
            if here { " (this one)" } else { "" },
            escape(&session.address),
            shown_time(session.seen_at),
        );
    }
    body.push_str("</tbody></table>");
    body.push_str(&button("/auth/logout", &[], "Sign out", ""));
    if who.is_whole() {
        body.push_str(&button("/account/sessions", &[("all", "1")], "Sign out everywhere", ""));
    }
    page(StatusCode::OK, "Your account", &body)
}

#[derive(Debug, Deserialize)]
struct EndForm {
    #[serde(default)]
    id: String,
    #[serde(default)]
    all: String,
}

async fn end_sessions(State(state): State<AppState>, SentBy { who, form: sent, .. }: SentBy<EndForm>) -> Response {
    let is_this = |id: &AccountSessionId| who.by == Credential::Session(id.clone());
    if !who.is_whole() && !AccountSessionId::parse(&sent.id).is_ok_and(|id| is_this(&id)) {
        return failed(conductor::Error::from(conductor::PeopleError::Narrow), ("/account", "Back"));
    }
    let ended = match (sent.all.as_str(), AccountSessionId::parse(&sent.id)) {
        ("", Ok(id)) => state.conductor.end_sessions(&who.account.id, Some(&id), "ended by its person").await,
        ("", Err(_)) => return trouble(StatusCode::NOT_FOUND, "there is no such session", ("/account", "Back")),
        (_, _) => state.conductor.end_sessions(&who.account.id, None, "ended everywhere by its person").await,
    };
    match ended {
        Ok(_) => Redirect::to("/account").into_response(),
        Err(error) => failed(error, ("/account", "Back")),
    }
}

/// What a person gives away: their roles.
pub(super) fn roles(who: &SignedIn, names: &[store::Org]) -> String {
    let name = |id: &model::OrgId| {
        names.iter().find(|org| org.id == *id).map_or_else(|| id.to_string(), |org| org.name.clone())
    };
    let list: Vec<String> =
        who.orgs().iter().map(|(org, role)| format!("{} in {}", role.as_str(), name(org))).collect();
    if list.is_empty() { "no role in any org".to_owned() } else { list.join(", ") }
}
