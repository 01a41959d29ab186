//! Who asks: an API token, the org that the request is about, and the role in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use api::{ErrorCode, headers};
use axum::extract::FromRequestParts;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::request::Parts;
use model::{OrgId, Role, Timestamp, TokenId, env};
use store::{StoreError, TokenOwner};

use crate::AppState;
use crate::error::ApiError;

/// When tokens were last used; written in batches.
pub(crate) type TokenUses = Arc<Mutex<HashMap<TokenId, Timestamp>>>;

/// The token of an `Authorization` header.
pub(crate) fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub(crate) fn note_use(state: &AppState, token: TokenId, now: Timestamp) {
    state.token_uses.lock().unwrap_or_else(PoisonError::into_inner).insert(token, now);
}

/// A signed-in account, in no org yet.
pub(crate) struct Caller(pub(crate) TokenOwner);

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let refused = |text: &str| {
            ApiError::new(ErrorCode::Unauthenticated, text)
                .hint("send `Authorization: Bearer TOKEN`; `ferry auth login` stores one for the CLI")
        };
        let header = parts.headers.get(AUTHORIZATION).ok_or_else(|| refused("no token was sent"))?;
        let token = bearer(header).ok_or_else(|| refused("the Authorization header is not `Bearer TOKEN`"))?;
        let now = state.conductor.now();
        match state.store().authenticate(token, now).await {
            Ok(owner) => {
                note_use(state, owner.token_id.clone(), now);
                Ok(Self(owner))
            }
            Err(StoreError::NotFound(_)) => Err(refused("the token is unknown, expired or revoked")),
            Err(other) => Err(other.into()),
        }
    }
}

/// An account in an org.
#[derive(Debug, Clone)]
pub(crate) struct InOrg {
    pub(crate) org: OrgId,
    pub(crate) owner: TokenOwner,
    pub(crate) role: Role,
}

impl InOrg {
    pub(crate) fn watch(&self) -> TokenWatch {
        TokenWatch { token: self.owner.token_id.clone(), looked: tokio::time::Instant::now() }
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
        let TokenOwner { account, token_name, .. } = &self.owner;
        if token_name.is_empty() { account.email.clone() } else { format!("{} (token {token_name})", account.email) }
    }
}

/// Looks now and then whether a token that a stream was opened with is still good.
pub(crate) struct TokenWatch {
    token: TokenId,
    looked: tokio::time::Instant,
}

const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(5);

impl TokenWatch {
    pub(crate) async fn may_go_on(&mut self, state: &AppState) -> bool {
        if self.looked.elapsed() < LOOK_AGAIN {
            return true;
        }
        self.looked = tokio::time::Instant::now();
        // A database that does not answer is no reason to end a stream.
        state.store().token_is_good(&self.token, state.conductor.now()).await.unwrap_or(true)
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
                    let text = format!("this needs the role {}, and the token has {}", $role.as_str(), found.role.as_str());
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
    /// May run and change things.
    Operator, Role::Operator;
    /// May manage tokens and runners.
    Admin, Role::Admin;
}
