//! Who asks: an API token, a CLI or a browser that is signed in; the org that the request is about; and the role in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::{ErrorCode, headers};
use axum::extract::FromRequestParts;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use model::{Digest, OrgId, Role, Timestamp, env};
use store::{Credential, SessionKind, SignedIn, StoreError};
use tokio::time::Instant;

use crate::AppState;
use crate::error::ApiError;

/// When tokens and sessions were last used; written in batches.
pub(crate) type CredentialUses = Arc<Mutex<HashMap<Credential, Timestamp>>>;

/// The token of an `Authorization` header.
pub(crate) fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What a request shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shown {
    Token,
    Session(SessionKind),
}

/// Who holds a secret, as of a moment ago.
struct Known {
    who: SignedIn,
    /// Of all people, when it was read.
    changes: u64,
    read_at: Instant,
}

/// Looked up at most once a second for each secret, whatever the traffic; whenever anything changes about people, anew. While changes
/// of other replicas are not heard of, every check reads.
#[derive(Clone, Default)]
pub(crate) struct AuthCache(Arc<Mutex<HashMap<Digest, Slot>>>);

/// Whoever reads holds the lock; the others wait for what is found.
type Slot = Arc<tokio::sync::Mutex<Option<Known>>>;

const GOOD_FOR: Duration = Duration::from_secs(1);
/// Secrets that are remembered; more are forgotten.
const SECRETS_MAX: usize = 20_000;

impl AuthCache {
    fn slot(&self, key: &Digest) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(key) {
            return Arc::clone(slot);
        }
        if slots.len() >= SECRETS_MAX {
            slots.clear();
        }
        Arc::clone(slots.entry(key.clone()).or_default())
    }

    fn forget(&self, key: &Digest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

async fn read(state: &AppState, shown: Shown, secret: &str, now: Timestamp) -> Result<SignedIn, StoreError> {
    match shown {
        Shown::Token => state.store().authenticate(secret, now).await,
        Shown::Session(kind) => state.store().authenticate_session(kind, secret, now).await,
    }
}

/// Finds who holds a secret.
async fn identify(state: &AppState, shown: Shown, secret: &str) -> Result<SignedIn, StoreError> {
    let now = state.conductor.now();
    let Some(changes) = state.store().notifier().people_changes() else {
        return read(state, shown, secret, now).await;
    };
    let key = Digest::of(format!("{shown:?} {secret}").as_bytes());
    let slot = state.auth_cache.slot(&key);
    let mut known = slot.lock().await;
    if let Some(known) = known.as_ref().filter(|it| it.changes >= changes && it.read_at.elapsed() < GOOD_FOR) {
        return Ok(known.who.clone());
    }
    match read(state, shown, secret, now).await {
        Ok(who) => {
            *known = Some(Known { who: who.clone(), changes, read_at: Instant::now() });
            Ok(who)
        }
        Err(error) => {
            *known = None;
            drop(known);
            state.auth_cache.forget(&key);
            Err(error)
        }
    }
}

/// Who sends a token or what a CLI has as one; notes that it was used.
pub(crate) async fn identify_bearer(state: &AppState, secret: &str) -> Result<SignedIn, StoreError> {
    let shown = if secret.starts_with("fra_") { Shown::Session(SessionKind::Cli) } else { Shown::Token };
    let who = identify(state, shown, secret).await?;
    note_use(state, who.by.clone());
    Ok(who)
}

/// Who is signed in with the cookie of these headers.
pub(crate) async fn identify_browser(state: &AppState, headers: &HeaderMap) -> Result<Option<SignedIn>, StoreError> {
    let Some(secret) = cookie(headers, &state.web.cookie) else { return Ok(None) };
    match identify(state, Shown::Session(SessionKind::Browser), secret).await {
        Ok(who) => {
            note_use(state, who.by.clone());
            Ok(Some(who))
        }
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// A cookie by its name.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

pub(crate) fn note_use(state: &AppState, by: Credential) {
    let now = state.conductor.now();
    state.credential_uses.lock().unwrap_or_else(PoisonError::into_inner).insert(by, now);
}

/// A browser sends its cookie whoever made it send the request: what changes something must come from our own pages.
fn own_pages_only(state: &AppState, parts: &Parts) -> Result<(), ApiError> {
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(&parts.method) {
        return Ok(());
    }
    let text = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let refused = |text: &str| {
        Err(ApiError::new(ErrorCode::CrossSite, text).hint("programs send an API token in place of the cookie"))
    };
    if !text(ORIGIN).is_some_and(|origin| state.web.is_own(origin)) {
        return refused("a browser sent this from another site");
    }
    if parts.headers.get(headers::BROWSER).is_none_or(|value| value != "1") {
        return refused("the request lacks the header `X-Ferry-Request: 1`");
    }
    let is_form = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"].contains(&kind.as_str())
    };
    if text(CONTENT_TYPE).is_some_and(is_form) {
        return refused("a form can't be sent here: send JSON");
    }
    Ok(())
}

/// A signed-in account, in no org yet.
pub(crate) struct Caller(pub(crate) SignedIn);

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let refused = |text: &str| {
            ApiError::new(ErrorCode::Unauthenticated, text)
                .hint("sign in with `ferry auth login`, or in the browser; programs send `Authorization: Bearer TOKEN`")
        };
        let Some(header) = parts.headers.get(AUTHORIZATION) else {
            let Some(who) = identify_browser(state, &parts.headers).await? else {
                let text = match cookie(&parts.headers, &state.web.cookie) {
                    Some(_) => "the session has ended; sign in again",
                    None => "no token was sent",
                };
                return Err(refused(text));
            };
            own_pages_only(state, parts)?;
            return Ok(Self(who));
        };
        let token = bearer(header).ok_or_else(|| refused("the Authorization header is not `Bearer TOKEN`"))?;
        match identify_bearer(state, token).await {
            Ok(who) => Ok(Self(who)),
            Err(StoreError::NotFound(_)) if token.starts_with("fra_") => Err(refused("this sign-in has ended")),
            Err(StoreError::NotFound(_)) => Err(refused("the token is unknown, expired or revoked")),
            Err(other) => Err(other.into()),
        }
    }
}

/// An account in an org.
#[derive(Debug, Clone)]
pub(crate) struct InOrg {
    pub(crate) org: OrgId,
    pub(crate) owner: SignedIn,
    pub(crate) role: Role,
}

impl InOrg {
    pub(crate) fn watch(&self) -> CredentialWatch {
        CredentialWatch { by: self.owner.by.clone(), org: self.org.clone(), looked: Instant::now() }
    }

    pub(crate) fn actor(&self) -> &str {
        self.owner.account.id.as_str()
    }

    /// Who asks for a change.
    pub(crate) fn by(&self) -> conductor::By {
        conductor::By { org: self.org.clone(), account: self.owner.account.id.clone(), who: self.who() }
    }

    /// Who it is, for people: several may use one account, each with a token of their own.
    pub(crate) fn who(&self) -> String {
        let SignedIn { account, token_name, .. } = &self.owner;
        if token_name.is_empty() { account.email.clone() } else { format!("{} (token {token_name})", account.email) }
    }
}

/// Looks now and then whether what a stream was opened with is still good.
pub(crate) struct CredentialWatch {
    by: Credential,
    org: OrgId,
    looked: Instant,
}

const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl CredentialWatch {
    pub(crate) async fn may_go_on(&mut self, state: &AppState) -> bool {
        if self.looked.elapsed() < LOOK_AGAIN {
            return true;
        }
        self.looked = Instant::now();
        // A database that does not answer is no reason to end a stream.
        state.store().credential_is_good(&self.by, &self.org, state.conductor.now()).await.unwrap_or(true)
    }
}

fn named_org(parts: &Parts) -> Option<String> {
    if let Some(header) = parts.headers.get(headers::ORG) {
        return header.to_str().ok().map(str::to_owned);
    }
    let query = parts.uri.query()?;
    query.split('&').find_map(|pair| pair.strip_prefix("org_id=")).map(str::to_owned)
}

impl FromRequestParts<AppState> for InOrg {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Caller(owner) = Caller::from_request_parts(parts, state).await?;
        let unknown = || ApiError::new(ErrorCode::UnknownOrg, "this account has no such org");
        let org = match named_org(parts) {
            Some(text) => OrgId::parse(&text).map_err(|_| unknown())?,
            // A token that is good for one org says it all.
            None => owner.org_id.clone().ok_or_else(|| {
                ApiError::new(ErrorCode::OrgMissing, "the request names no org").hint(format!(
                    "send `X-Nuon-Org-ID: ORG`; the CLI takes `--org`, {} or `ferry orgs select`",
                    env::ORG
                ))
            })?,
        };
        let role = owner.role_in(&org).ok_or_else(unknown)?;
        Ok(Self { org, owner, role })
    }
}

macro_rules! at_least {
    ($($(#[$doc:meta])* $name:ident, $role:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name(pub(crate) InOrg);

        impl FromRequestParts<AppState> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
                let found = InOrg::from_request_parts(parts, state).await?;
                if found.role < $role {
                    let text = format!("this needs the role {}, and you have {}", $role.as_str(), found.role.as_str());
                    return Err(ApiError::new(ErrorCode::Forbidden, text));
                }
                Ok(Self(found))
            }
        }
    )*};
}

at_least! {
    /// May look.
    Reader, Role::ReadOnly;
    /// May approve plans and deny them.
    Approver, Role::Approver;
    /// May run and change things.
    Operator, Role::Operator;
    /// May manage tokens and runners.
    Admin, Role::Admin;
}
