//! An OCI distribution registry over the store: pull, push, mounts, lists, referrers, deletion, and the token endpoint that
//! clients sign in with.
//!
//! A repository's name begins with the id of its org. Another org's repository is answered like one that does not exist.

mod auth;
mod error;
mod manifests;
mod names;
mod uploads;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use futures::future::BoxFuture;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderName, RANGE};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use model::{Clock, Digest, OrgId};
use serde::{Deserialize, Serialize};
use store::{Store, StoreError};

use crate::auth::{Action, Caller};
use crate::error::{Answer, Code, Refusal};
use crate::names::{Call, Repository};
use crate::usage::Usage;

const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Who may do what: the host of the registry knows.
pub trait Access: Send + Sync + 'static {
    /// Whom these credentials belong to; `None` when they are not good.
    fn check<'a>(&'a self, user: &'a str, password: &'a str) -> BoxFuture<'a, Result<Option<Principal>, StoreError>>;

    /// Whether a login of [`Registry::pull_login`] still counts.
    fn may_pull<'a>(&'a self, _org: &'a OrgId, _owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async { Ok(false) })
    }
}

/// Someone who has signed in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Principal {
    pub grants: Vec<Grant>,
}

/// What someone may do in one org.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Grant {
    pub org: OrgId,
    pub may_push: bool,
    /// Only these repositories, by their whole names; all of the org when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repositories: Option<Vec<String>>,
}

/// How a registry is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What clients call it by. Never what a client sends as `Host`: that would let anybody send our users elsewhere with their tokens.
    pub public_url: String,
    /// Bytes that an org may keep; 0 = any number.
    pub quota_bytes: u64,
    /// A client that brings nothing of a body for so long is dropped.
    pub stall: Duration,
}

/// A registry: cheap to clone.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    access: Box<dyn Access>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    keys: auth::TokenKeys,
    usage: Usage,
}

impl Registry {
    pub fn new(store: Store, access: impl Access, clock: Arc<dyn Clock>, settings: Settings) -> Self {
        let keys = auth::TokenKeys::new(&store.registry_token_keys());
        let usage = Usage::new(settings.quota_bytes);
        Self { inner: Arc::new(Inner { store, access: Box::new(access), clock, settings, keys, usage }) }
    }

    /// All routes, below `/v2`. Bodies have no bound but the quota; time between two pieces of one has.
    pub fn router(self) -> Router {
        Router::new()
            .route("/v2", any(handle))
            .route("/v2/", any(handle))
            .route("/v2/{*rest}", any(handle))
            .with_state(self)
    }

    fn store(&self) -> &Store {
        &self.inner.store
    }

    fn now(&self) -> model::Timestamp {
        self.inner.clock.now()
    }
}

async fn handle(State(registry): State<Registry>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut body = Some(body);
    let answer = registry.answer(&parts, &mut body).await;
    let mut response = match answer {
        Ok(response) => response,
        Err(refusal) => {
            if let Some(body) = body {
                uploads::drain(body).await;
            }
            refusal.log(&parts);
            refusal.into_response()
        }
    };
    response.headers_mut().insert(API_VERSION, HeaderValue::from_static("registry/2.0"));
    response
}

impl Registry {
    /// Who takes the body takes it out; what is left of it is read when the request is refused, so that the answer arrives.
    async fn answer(&self, parts: &Parts, body: &mut Option<Body>) -> Answer {
        let call = Call::parse(parts.uri.path())?;
        if let Call::Token = call {
            return self.token(parts, body.take().unwrap_or_default()).await;
        }
        let caller = self.caller(parts).await.map_err(|refusal| self.challenge(refusal, parts, &call))?;
        Box::pin(self.perform(&call, &caller, parts, body))
            .await
            .map_err(|refusal| self.challenge(refusal, parts, &call))
    }

    async fn perform(&self, call: &Call, caller: &Caller, parts: &Parts, body: &mut Option<Body>) -> Answer {
        let method = &parts.method;
        let action = if matches!(*method, Method::GET | Method::HEAD) { Action::Pull } else { Action::Push };
        let may = |name: &str| {
            if *method == Method::DELETE { caller.may_delete(name) } else { caller.may(name, action) }
        };
        match call {
            Call::Base if action == Action::Pull => Ok(json_response(StatusCode::OK, &serde_json::json!({}))),
            Call::Catalog if *method == Method::GET => self.catalog(caller, parts).await,
            Call::Tags(name) if *method == Method::GET => self.tags(&may(name)?, parts).await,
            Call::Referrers(name, digest) if *method == Method::GET => {
                self.referrers(&may(name)?, &digest_of(digest)?, parts).await
            }
            Call::Manifest(name, reference) => {
                let repository = may(name)?;
                match *method {
                    Method::GET | Method::HEAD => self.get_manifest(&repository, reference).await,
                    Method::PUT => self.put_manifest(&repository, reference, parts, body).await,
                    Method::DELETE => self.delete_manifest(&repository, reference).await,
                    _ => Err(not_a_method(method)),
                }
            }
            Call::Blob(name, digest) => {
                let (repository, digest) = (may(name)?, digest_of(digest)?);
                match *method {
                    Method::GET => self.get_blob(&repository, &digest, parts).await,
                    Method::HEAD => self.head_blob(&repository, &digest).await,
                    Method::DELETE => self.delete_blob(&repository, &digest).await,
                    _ => Err(not_a_method(method)),
                }
            }
            Call::Uploads(name) if *method == Method::POST => self.begin_upload(caller, &may(name)?, parts, body).await,
            Call::Upload(name, id) => {
                // An upload is a matter of pushing, whatever is done with it.
                let repository = caller.may(name, Action::Push)?;
                match *method {
                    Method::GET => self.upload_status(&repository, id).await,
                    Method::PATCH => self.patch_upload(&repository, id, parts, body).await,
                    Method::PUT => self.put_upload(&repository, id, parts, body).await,
                    Method::DELETE => self.cancel_upload(&repository, id).await,
                    _ => Err(not_a_method(method)),
                }
            }
            Call::Base | Call::Token | Call::Catalog | Call::Tags(_) | Call::Referrers(..) | Call::Uploads(_) => {
                Err(not_a_method(method))
            }
        }
    }

    async fn get_blob(&self, at: &Repository, digest: &Digest, parts: &Parts) -> Answer {
        let blob = self.find_blob(at, digest).await?;
        let size = blob.size_bytes;
        let wanted = match parts.headers.get(RANGE).and_then(|h| h.to_str().ok()) {
            Some(text) => names::byte_range(text, size)?,
            None => None,
        };
        let range = wanted.clone().unwrap_or(0..size);
        let length = range.end - range.start;
        let bytes = self.store().blobs().read(&blob.key, size, range.clone()).await?;
        let mut response = Response::new(Body::from_stream(bytes));
        blob_headers(&mut response, digest, length);
        if wanted.is_some() {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let text = format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1));
            response.headers_mut().insert(CONTENT_RANGE, header(&text));
        }
        Ok(response)
    }

    async fn head_blob(&self, at: &Repository, digest: &Digest) -> Answer {
        let blob = self.find_blob(at, digest).await?;
        // Who hears that it is there does not bring it: a damaged one is not there, so that the next push makes it whole.
        if !self.store().is_whole(&blob).await? {
            tracing::error!(%digest, repository = at.name, "a blob is damaged in the blob store; pushing it again replaces it");
            return Err(Refusal::new(Code::BlobUnknown, "the blob is damaged; push it again"));
        }
        let mut response = Response::new(Body::empty());
        blob_headers(&mut response, digest, blob.size_bytes);
        Ok(response)
    }

    async fn find_blob(&self, at: &Repository, digest: &Digest) -> Result<store::RegistryBlob, Refusal> {
        let found = self.store().registry_blob(&at.org, &at.name, digest, self.now()).await?;
        match found {
            Some(blob) => Ok(blob),
            None => Err(self.unknown(at, Code::BlobUnknown, format!("`{}` has no blob {digest}", at.name)).await),
        }
    }

    async fn delete_blob(&self, at: &Repository, digest: &Digest) -> Answer {
        match self.store().unlink_blob(&at.org, &at.name, digest).await {
            Ok(()) => Ok(StatusCode::ACCEPTED.into_response()),
            Err(StoreError::Refused(why)) => Err(Refusal::new(Code::Unsupported, why.to_string())),
            Err(StoreError::NotFound(_)) => {
                Err(self.unknown(at, Code::BlobUnknown, format!("`{}` has no blob {digest}", at.name)).await)
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Something is not there: it, or its whole repository.
    async fn unknown(&self, at: &Repository, code: Code, text: String) -> Refusal {
        match self.store().has_repository(&at.org, &at.name).await {
            Ok(true) => Refusal::new(code, text),
            Ok(false) => Refusal::no_repository(&at.name),
            Err(error) => error.into(),
        }
    }
}

fn blob_headers(response: &mut Response, digest: &Digest, length: u64) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, length.into());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(http::header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_DIGEST, header(digest.as_str()));
}

fn digest_of(text: &str) -> Result<Digest, Refusal> {
    Digest::parse(text).map_err(|why| Refusal::new(Code::DigestInvalid, format!("`{text}` is no digest: {why}")))
}

fn not_a_method(method: &Method) -> Refusal {
    Refusal::new(Code::Unsupported, format!("{method} is not a method of this path"))
}

/// A header of checked text.
fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn json_response(status: StatusCode, value: &serde_json::Value) -> Response {
    let mut response = (status, value.to_string()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The pairs of a query.
fn query(parts: &Parts) -> Vec<(String, String)> {
    form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect()
}

fn named<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}
