//! Extractors with our own errors: JSON bodies, query strings, paging, and creates with an idempotency key.

use std::time::Duration;

use api::{ErrorCode, headers};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, request::Parts};
use model::{AccountId, Digest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::Idempotency;

use crate::error::ApiError;

/// How long a body may take to arrive; the largest ones are archives.
const BODY: Duration = Duration::from_secs(600);

/// The body as it came.
pub(crate) async fn bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(BODY, Bytes::from_request(request, state)).await;
    let late =
        |_| ApiError::new(ErrorCode::Unavailable, format!("the body did not arrive within {} s", BODY.as_secs()));
    read.map_err(late)?.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(ErrorCode::TooLarge, "the body is larger than this route takes"),
        _ => ApiError::invalid(rejection.body_text()),
    })
}

pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() { b"{}" } else { body };
    model::json::from_slice(body).map_err(|error| ApiError::invalid(format!("the body can't be used: {error}")))
}

/// A JSON body; the key that makes repeating it safe; and a digest of the whole request.
pub(crate) struct Create<T> {
    pub(crate) value: T,
    key: Option<String>,
    digest: Digest,
}

impl<T> Create<T> {
    pub(crate) fn idempotency(&self, account: &AccountId) -> Option<Idempotency> {
        let key = self.key.clone()?;
        Some(Idempotency { scope: account.clone(), key, request_digest: self.digest.clone() })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Create<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let key = match request.headers().get(headers::IDEMPOTENCY_KEY) {
            None => None,
            Some(value) => Some(
                value
                    .to_str()
                    .ok()
                    .filter(|k| (1..=255).contains(&k.len()))
                    .ok_or_else(|| ApiError::invalid("Idempotency-Key must be 1 to 255 ASCII characters"))?
                    .to_owned(),
            ),
        };
        let target = format!("{} {}\n", request.method(), request.uri().path());
        let org = request.headers().get(headers::ORG).map(|v| v.as_bytes().to_vec()).unwrap_or_default();
        let body = bytes(request, state).await?;
        let digest = Digest::of(&[target.as_bytes(), &org, b"\n", &body].concat());
        Ok(Self { value: parse(&body)?, key, digest })
    }
}

/// A query string.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|e| ApiError::invalid(e.body_text()))
    }
}

/// `offset`, `limit` (10, at most 100) and `page`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Page {
    #[serde(default)]
    pub(crate) offset: Option<u64>,
    #[serde(default)]
    pub(crate) limit: Option<u64>,
    #[serde(default)]
    pub(crate) page: Option<u64>,
}

impl Page {
    pub(crate) fn limit(self) -> u64 {
        self.limit.unwrap_or(10).clamp(1, 100)
    }

    pub(crate) fn offset(self) -> u64 {
        self.offset.unwrap_or_else(|| self.page.unwrap_or(0).saturating_mul(self.limit())).min(i64::MAX as u64)
    }

    /// One more than the page has: its presence says that there is a next page.
    pub(crate) fn fetch(self) -> u64 {
        self.limit() + 1
    }
}

/// A bare array with the paging headers.
pub(crate) struct List<T> {
    items: Vec<T>,
    page: Page,
    more: bool,
}

impl<T> List<T> {
    /// `items` were fetched with `page.fetch()`.
    pub(crate) fn new(mut items: Vec<T>, page: Page) -> Self {
        let more = items.len() as u64 > page.limit();
        items.truncate(page.limit() as usize);
        Self { items, page, more }
    }
}

impl<T> List<T> {
    /// Items of this page, where not everything that was fetched is one.
    pub(crate) fn with_more(items: Vec<T>, page: Page, more: bool) -> Self {
        Self { items, page, more }
    }
}

impl<T: serde::Serialize> IntoResponse for List<T> {
    fn into_response(self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(headers::PAGE_NEXT, HeaderValue::from_static(if self.more { "true" } else { "false" }));
        headers.insert(headers::PAGE_OFFSET, HeaderValue::from(self.page.offset()));
        headers.insert(headers::PAGE_LIMIT, HeaderValue::from(self.page.limit()));
        (headers, axum::Json(self.items)).into_response()
    }
}
