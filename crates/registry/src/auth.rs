//! Who asks: Basic credentials, or a token of ours. A token is good for minutes, says what its owner may do and for which
//! repositories it was asked, and is signed with a key that every replica has.

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use model::OrgId;
use model::build::{Credentials, PullLogin, RegistryAccess};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::error::{Answer, Code, Refusal};
use crate::names::{Call, Repository, is_name, org_of};
use crate::{Grant, Principal, Registry, header, json_response};

const TOKEN_S: i64 = 300;
/// How long pods may pull with one login. The runner brings a new one long before.
const PULL_LOGIN_S: i64 = 24 * 3600;
const PREFIX: &str = "frt_";
const SERVICE: &str = "ferry";
/// Repositories that one token may be asked for.
const SCOPES_MAX: usize = 64;
const FORM_BYTES: usize = 64 << 10;
const CATALOG: &str = "registry:catalog:*";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Pull,
    Push,
}

/// A repository, and what a token lets one do there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Scope {
    name: String,
    pull: bool,
    push: bool,
}

impl Scope {
    /// `repository:NAME:ACTIONS`, maybe with a class: `repository(plugin):…`.
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let (name, actions) = rest.rsplit_once(':')?;
        let has = |action: &str| actions.split(',').any(|a| a == action || a == "*");
        let push = has("push") || has("delete");
        let scope = Self { name: name.to_owned(), pull: has("pull"), push };
        ((kind == "repository" || kind.starts_with("repository(")) && is_name(name)).then_some(scope)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    grants: Vec<Grant>,
    scopes: Vec<Scope>,
    catalog: bool,
    expires_s: i64,
    /// Whose password it is; it is no token then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

/// Someone who has signed in, and what the token at hand was asked for.
#[derive(Debug)]
pub(crate) struct Caller {
    principal: Principal,
    /// All that the principal may do, when absent.
    scopes: Option<Vec<Scope>>,
    catalog: bool,
}

impl Principal {
    fn grant(&self, name: &str) -> Option<&Grant> {
        let org = org_of(name)?;
        let grant = self.grants.iter().find(|g| g.org == org)?;
        let listed = |names: &Vec<String>| names.iter().any(|n| n == name);
        grant.repositories.as_ref().is_none_or(listed).then_some(grant)
    }
}

impl Caller {
    /// The repository of this name, when the caller may do this there.
    pub(crate) fn may(&self, name: &str, action: Action) -> Result<Repository, Refusal> {
        let grant = self.principal.grant(name).ok_or_else(|| Refusal::no_repository(name))?;
        if action == Action::Push && !grant.may_push {
            return Err(Refusal::new(
                Code::Denied,
                format!("these credentials may pull from `{name}`, not push to it"),
            ));
        }
        let asked = |scope: &Scope| scope.name == name && if action == Action::Push { scope.push } else { scope.pull };
        if self.scopes.as_ref().is_some_and(|scopes| !scopes.iter().any(asked)) {
            return Err(Refusal::new(Code::Unauthorized, "the token was asked for something else"));
        }
        Ok(Repository { org: grant.org.clone(), name: name.to_owned() })
    }

    /// Who was let in for certain repositories alone deletes nothing there.
    pub(crate) fn may_delete(&self, name: &str) -> Result<Repository, Refusal> {
        if self.principal.grant(name).is_some_and(|grant| grant.repositories.is_some()) {
            return Err(Refusal::new(Code::Denied, format!("these credentials delete nothing in `{name}`")));
        }
        self.may(name, Action::Push)
    }

    /// The orgs whose repositories the caller may list.
    pub(crate) fn listed(&self) -> Result<&[Grant], Refusal> {
        if self.catalog {
            return Ok(&self.principal.grants);
        }
        Err(Refusal::new(Code::Unauthorized, "the token was asked for something else"))
    }
}

/// The keys that sign tokens: the first one signs, all of them verify.
pub(crate) struct TokenKeys(Vec<hmac::Key>);

impl TokenKeys {
    pub(crate) fn new(keys: &[[u8; 32]]) -> Self {
        Self(keys.iter().map(|key| hmac::Key::new(hmac::HMAC_SHA256, key)).collect())
    }

    fn sign(&self, claims: &Claims) -> Option<String> {
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).ok()?);
        let tag = hmac::sign(self.0.first()?, text.as_bytes());
        Some(format!("{PREFIX}{text}.{}", URL_SAFE_NO_PAD.encode(tag)))
    }

    fn verify(&self, token: &str, now_s: i64) -> Option<Claims> {
        let (text, tag) = token.strip_prefix(PREFIX)?.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        self.0.iter().find(|key| hmac::verify(key, text.as_bytes(), &tag).is_ok())?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        (now_s < claims.expires_s).then_some(claims)
    }
}

/// `Basic` credentials of a request.
fn basic(parts: &Parts) -> Option<(String, String)> {
    let text = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = text.split_once(' ')?;
    let text = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    scheme.eq_ignore_ascii_case("basic").then(|| (user.to_owned(), password.to_owned()))
}

fn bearer(parts: &Parts) -> Option<&str> {
    let (scheme, value) = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| value.trim())
}

fn refused(text: &str) -> Refusal {
    Refusal::new(Code::Unauthorized, text)
}

impl Registry {
    fn now_s(&self) -> i64 {
        self.now().micros() / 1_000_000
    }

    pub(crate) async fn caller(&self, parts: &Parts) -> Result<Caller, Refusal> {
        if let Some((user, password)) = basic(parts) {
            let principal = self.sign_in(&user, &password).await?;
            return Ok(Caller { principal, scopes: None, catalog: true });
        }
        let token = bearer(parts).ok_or_else(|| refused("sign in first"))?;
        let claims = self.inner.keys.verify(token, self.now_s()).filter(|claims| claims.owner.is_none());
        let claims = claims.ok_or_else(|| refused("the token is not good, or not any more"))?;
        let principal = Principal { grants: claims.grants };
        Ok(Caller { principal, scopes: Some(claims.scopes), catalog: claims.catalog })
    }

    /// A token for someone whom the host knows otherwise: for these repositories alone.
    pub fn token_for(&self, org: OrgId, repositories: &[String], may_push: bool) -> Option<RegistryAccess> {
        let scopes = repositories.iter().map(|name| Scope { name: name.clone(), pull: true, push: may_push }).collect();
        let grant = Grant { org, may_push, repositories: Some(repositories.to_vec()) };
        let expires_s = self.now_s() + TOKEN_S;
        let claims = Claims { grants: vec![grant], scopes, catalog: false, expires_s, owner: None };
        let token = self.inner.keys.sign(&claims)?;
        Some(RegistryAccess { token, expires_in_s: TOKEN_S.unsigned_abs() })
    }

    /// A user name and a password for pods that pull these repositories.
    pub fn pull_login(&self, org: OrgId, owner: &str, repositories: &[String]) -> Option<PullLogin> {
        let grants = vec![Grant { org, may_push: false, repositories: Some(repositories.to_vec()) }];
        let expires_s = self.now_s() + PULL_LOGIN_S;
        let claims = Claims { grants, scopes: Vec::new(), catalog: false, expires_s, owner: Some(owner.to_owned()) };
        let login = Credentials { username: owner.to_owned(), password: self.inner.keys.sign(&claims)? };
        Some(PullLogin { login, expires_in_s: PULL_LOGIN_S.unsigned_abs() })
    }

    async fn sign_in(&self, user: &str, password: &str) -> Result<Principal, Refusal> {
        if let Some(claims) = self.inner.keys.verify(password, self.now_s())
            && claims.owner.as_deref() == Some(user)
            && let Some(grant) = claims.grants.first()
            && self.inner.access.may_pull(&grant.org, user).await?
        {
            return Ok(Principal { grants: claims.grants });
        }
        let found = self.inner.access.check(user, password).await?;
        found.ok_or_else(|| refused("the user name or the password is not good"))
    }

    /// Tells a client that is not signed in, or not far enough, where to get a token.
    pub(crate) fn challenge(&self, refusal: Refusal, parts: &Parts, call: &Call) -> Refusal {
        if refusal.code != Code::Unauthorized {
            return refusal;
        }
        let mut text = format!(
            "Bearer realm=\"{}/v2/token\",service=\"{SERVICE}\"",
            self.inner.settings.public_url.trim_end_matches('/')
        );
        let reads = matches!(parts.method, Method::GET | Method::HEAD) && !matches!(call, Call::Upload(..));
        match call.repository() {
            Some(name) if reads => text.push_str(&format!(",scope=\"repository:{name}:pull\"")),
            Some(name) if parts.method == Method::DELETE => {
                text.push_str(&format!(",scope=\"repository:{name}:pull,push,delete\""));
            }
            Some(name) => text.push_str(&format!(",scope=\"repository:{name}:pull,push\"")),
            None if *call == Call::Catalog => text.push_str(&format!(",scope=\"{CATALOG}\"")),
            None => {}
        }
        if bearer(parts).is_some() {
            text.push_str(",error=\"insufficient_scope\"");
        }
        refusal.with(WWW_AUTHENTICATE, header(&text))
    }

    /// The token endpoint: Basic credentials by GET, or a form by POST.
    pub(crate) async fn token(&self, parts: &Parts, body: Body) -> Answer {
        let mut pairs = crate::query(parts);
        let mut credentials = basic(parts);
        if parts.method == Method::POST {
            let too_large = |_| Refusal::new(Code::SizeInvalid, "the form is too large");
            let form = axum::body::to_bytes(body, FORM_BYTES).await.map_err(too_large)?;
            pairs.extend(form_urlencoded::parse(&form).into_owned());
            let field = |name: &str| crate::named(&pairs, name).unwrap_or_default().to_owned();
            match field("grant_type").as_str() {
                "password" => credentials = Some((field("username"), field("password"))),
                // We hand out none of our own: what a client keeps as one is an API token.
                "refresh_token" => credentials = Some((String::new(), field("refresh_token"))),
                _ => {}
            }
        } else if parts.method != Method::GET {
            return Err(crate::not_a_method(&parts.method));
        }
        let realm = || HeaderValue::from_static("Basic realm=\"ferry\"");
        let sign_in = async {
            let (user, password) = credentials.ok_or_else(|| refused("send Basic credentials"))?;
            self.sign_in(&user, &password).await
        };
        let principal = sign_in.await.map_err(|refusal| match refusal.code {
            Code::Unauthorized => refusal.with(WWW_AUTHENTICATE, realm()),
            _ => refusal,
        })?;
        let asked = pairs.iter().filter(|(key, _)| key == "scope").flat_map(|(_, value)| value.split(' '));
        let asked: Vec<&str> = asked.filter(|scope| !scope.is_empty()).take(SCOPES_MAX).collect();
        let mut scopes = Vec::new();
        for mut scope in asked.iter().filter_map(|text| Scope::parse(text)) {
            if let Some(grant) = principal.grant(&scope.name) {
                scope.push &= grant.may_push;
                scopes.push(scope);
            }
        }
        let claims = Claims {
            grants: principal.grants,
            scopes,
            catalog: asked.contains(&CATALOG),
            expires_s: self.now_s() + TOKEN_S,
            owner: None,
        };
        let token = self.inner.keys.sign(&claims).ok_or_else(|| Refusal::new(Code::Internal, "no key signs tokens"))?;
        let body = serde_json::json!({
            "token": token,
            "access_token": token,
            "expires_in": TOKEN_S,
            "issued_at": self.now(),
        });
        Ok(json_response(StatusCode::OK, &body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(expires_s: i64) -> Claims {
        Claims { grants: vec![], scopes: vec![], catalog: true, expires_s, owner: None }
    }

    #[test]
    fn a_token_is_good_for_its_time_and_its_keys() {
        let (old, new) = ([1; 32], [2; 32]);
        let keys = TokenKeys::new(&[new, old]);
        let token = TokenKeys::new(&[old]).sign(&claims(100)).expect("signed");
        assert!(keys.verify(&token, 99).is_some(), "an older key still verifies");
        assert!(keys.verify(&token, 100).is_none(), "it has expired");
        assert!(TokenKeys::new(&[[3; 32]]).verify(&token, 0).is_none(), "another key signed it");
        let forged = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims(1000)).expect("json"));
        let tag = token.split_once('.').expect("a tag").1;
        assert!(keys.verify(&format!("{PREFIX}{forged}.{tag}"), 0).is_none());
        for text in ["", "frt_", "frt_.", "frt_a.b", token.trim_start_matches(PREFIX)] {
            assert!(keys.verify(text, 0).is_none(), "{text}");
        }
    }

    #[test]
    fn scopes() {
        let scope = |name: &str, pull, push| Some(Scope { name: name.into(), pull, push });
        assert_eq!(Scope::parse("repository:a/b:pull"), scope("a/b", true, false));
        assert_eq!(Scope::parse("repository:a/b:pull,push"), scope("a/b", true, true));
        assert_eq!(Scope::parse("repository:a/b:*"), scope("a/b", true, true));
        assert_eq!(Scope::parse("repository(plugin):a:delete"), scope("a", false, true));
        for bad in ["", "repository", "repository:a", "registry:catalog:*", "repository:A:pull"] {
            assert_eq!(Scope::parse(bad), None, "{bad}");
        }
    }
}
