//! What every page and every form begins with: who asks is let in, a form is one of our own, and a person is signed in.
//!
//! `Welcome` and `Sent` are for anybody, `Person` and `SentBy` for who is signed in; anybody else signs in first, and comes back.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse as _, Redirect, Response};
use conductor::Visitor;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use serde::de::DeserializeOwned;
use store::SignedIn;

use super::From;
use super::is_own_form;
use super::limiter::Tried;
use super::pages::{escape, page, trouble};
use super::routes::{LOGIN, encoded, failed};
use crate::AppState;
use crate::auth::identify_browser;

/// Who asks for a page. Refused are those who ask too often, and browsers where none may sign in.
pub(super) struct Welcome(pub(super) Visitor);

/// Who asks for a page of their own.
pub(super) struct Person(pub(super) SignedIn);

/// A form that was sent by one of our pages.
pub(super) struct Sent<T> {
    pub(super) from: Visitor,
    pub(super) headers: HeaderMap,
    pub(super) form: T,
}

/// A form of a person who is signed in.
pub(super) struct SentBy<T> {
    pub(super) from: Visitor,
    pub(super) who: SignedIn,
    pub(super) form: T,
}

impl FromRequestParts<AppState> for Welcome {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        let From(from) =
            From::from_request_parts(parts, state).await.map_err(axum::response::IntoResponse::into_response)?;
        if let Some(why) = &state.web.refused {
            let body = format!("<p role=alert>{}</p>", escape(why));
            return Err(page(StatusCode::FORBIDDEN, "Not over this connection", &body));
        }
        state.limits.pass(Tried::Asking, &from.address).map_err(|error| failed(error, LOGIN))?;
        Ok(Self(from))
    }
}

/// Who is signed in; anybody else is sent to sign in, and comes back to the page.
async fn person(state: &AppState, headers: &HeaderMap, method: &Method, uri: &Uri) -> Result<SignedIn, Response> {
    let back = match (method, uri.path()) {
        (&Method::GET, path) => uri.path_and_query().map_or(path, |whole| whole.as_str()),
        (_, "/device") => "/device",
        // What a form leads to is no page.
        _ => "/account",
    };
    match identify_browser(state, headers).await {
        Ok(Some(who)) => Ok(who),
        Ok(None) => Err(Redirect::to(&format!("/login?return_to={}", encoded(back))).into_response()),
        Err(error) => Err(failed(error, LOGIN)),
    }
}

impl FromRequestParts<AppState> for Person {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Response> {
        Welcome::from_request_parts(parts, state).await?;
        person(state, &parts.headers, &parts.method, &parts.uri).await.map(Self)
    }
}

impl<T: DeserializeOwned + Send> FromRequest<AppState> for Sent<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let Welcome(from) = Welcome::from_request_parts(&mut parts, state).await?;
        let headers = parts.headers.clone();
        let body = Bytes::from_request(Request::from_parts(parts, body), state).await;
        let form = form(state, &headers, &body.map_err(axum::response::IntoResponse::into_response)?)?;
        Ok(Self { from, headers, form })
    }
}

impl<T: DeserializeOwned + Send> FromRequest<AppState> for SentBy<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Response> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let Sent { from, headers, form } = Sent::from_request(request, state).await?;
        let who = person(state, &headers, &method, &uri).await?;
        Ok(Self { from, who, form })
    }
}

/// The fields of a form that was sent by one of our pages.
#[expect(clippy::result_large_err, reason = "the answer of a page, made once a request")]
pub(super) fn form<T: DeserializeOwned>(state: &AppState, headers: &HeaderMap, body: &Bytes) -> Result<T, Response> {
    if !is_own_form(state, headers) {
        let text = "this was not sent by a page of this server; open the page again and use its button";
        return Err(trouble(StatusCode::FORBIDDEN, text, LOGIN));
    }
    let pairs: serde_json::Map<String, serde_json::Value> = form_urlencoded::parse(body)
        .map(|(name, value)| (name.into_owned(), serde_json::Value::String(value.into_owned())))
        .collect();
    serde_json::from_value(serde_json::Value::Object(pairs))
        .map_err(|_| trouble(StatusCode::BAD_REQUEST, "the form lacks a field; open the page again", LOGIN))
}
