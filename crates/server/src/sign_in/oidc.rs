//! Providers: OpenID Connect by discovery, the code flow with PKCE, and the groups read again with a refresh token.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use conductor::{Admission, Claims, Grant};
use model::Digest;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreAuthenticationFlow, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreRevocableToken,
    CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, AuthorizationCode, ClaimsVerificationError, Client, ClientId, ClientSecret, CsrfToken,
    EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenFields,
    IdTokenVerifier, IssuerUrl, Nonce, NonceVerifier, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RefreshToken, RequestTokenError, Scope, StandardErrorResponse, StandardTokenResponse,
    TokenResponse as _, UserInfoClaims,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::config;

/// How far a provider's clock may be from ours.
const SKEW: TimeDelta = TimeDelta::seconds(60);
/// What a provider has told of itself is asked again after this time; sooner when a key is missing.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
const ASK_AGAIN: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
/// The largest answer of a provider that is read.
const ANSWER_BYTES: usize = 1 << 20;

/// All claims that have no field of their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Extra {
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}
impl AdditionalClaims for Extra {}

type Fields = IdTokenFields<
    Extra,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type Tokens = StandardTokenResponse<Fields, CoreTokenType>;
type OidcClient = Client<
    Extra,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Why a provider did not vouch for somebody.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OidcError {
    #[error("{provider} can't be reached right now ({why}); try again in a minute")]
    Away { provider: String, why: String },
    #[error("the sign-in with {provider} is set up wrongly ({why}); tell the administrator of this server")]
    Setup { provider: String, why: String },
    #[error("{provider} refused: {why}")]
    Refused { provider: String, why: String },
    #[error("what {provider} sent can't be trusted: {why}")]
    Untrusted { provider: String, why: String },
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct HttpError(String);

/// Where somebody is sent, and what must come back.
pub(crate) struct Begun {
    pub(crate) url: String,
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
}

/// Whom a provider vouches for.
pub(crate) struct VouchedFor {
    pub(crate) claims: Claims,
    pub(crate) refresh: Option<String>,
}

struct Known {
    metadata: CoreProviderMetadata,
    asked: Instant,
}

/// One provider.
pub(crate) struct Provider {
    pub(crate) config: config::Provider,
    pub(crate) admission: Admission,
    redirect: String,
    http: reqwest::Client,
    known: Mutex<Option<Arc<Known>>>,
}

impl Provider {
    pub(crate) fn new(config: config::Provider, base_url: &str) -> anyhow::Result<Self> {
        let admission = Admission {
            provider: config.name.clone(),
            title: config.title().to_owned(),
            allowed_domains: config.allowed_domains.clone(),
            grants: config
                .roles
                .iter()
                .map(|it| Grant {
                    claim: it.claim.clone(),
                    value: it.value.clone(),
                    org: it.org.clone(),
                    role: it.role,
                })
                .collect(),
        };
        // A provider that redirects its answers elsewhere is not followed.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER)
            .connect_timeout(ANSWER)
            .build()?;
        Ok(Self { config, admission, redirect: format!("{base_url}/auth/callback"), http, known: Mutex::default() })
    }

    fn title(&self) -> String {
        self.config.title().to_owned()
    }

    fn away(&self, why: impl std::fmt::Display) -> OidcError {
        tracing::warn!(provider = self.config.name, issuer = self.config.issuer, %why, "a provider can't be reached");
        OidcError::Away { provider: self.title(), why: why.to_string() }
    }

    fn set_up_wrongly(&self, why: impl std::fmt::Display) -> OidcError {
        tracing::error!(provider = self.config.name, issuer = self.config.issuer, %why, "a provider is set up wrongly");
        OidcError::Setup { provider: self.title(), why: why.to_string() }
    }

    fn untrusted(&self, why: impl std::fmt::Display) -> OidcError {
        tracing::warn!(provider = self.config.name, %why, "what a provider sent is not trusted");
        OidcError::Untrusted { provider: self.title(), why: why.to_string() }
    }

    async fn fetch(http: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let fault = |e: reqwest::Error| HttpError(chain(&e.without_url()));
        let (parts, body) = request.into_parts();
        let sent = http.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body).send();
        let mut answer = sent.await.map_err(fault)?;
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(fault)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > ANSWER_BYTES {
                return Err(HttpError("its answer is too large".to_owned()));
            }
        }
        let mut response = http::Response::new(bytes);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }

    /// What the provider says of itself, with its keys. `fresh`: asked again, though not again and again.
    async fn known(&self, fresh: bool) -> Result<Arc<Known>, OidcError> {
        let mut slot = self.known.lock().await;
        let good_for = if fresh { ASK_AGAIN } else { KNOWN_FOR };
        if let Some(known) = slot.as_ref().filter(|known| known.asked.elapsed() < good_for) {
            return Ok(Arc::clone(known));
        }
        let issuer = IssuerUrl::new(self.config.issuer.clone()).map_err(|e| self.away(e))?;
        let http = self.http.clone();
        let fetch = move |request| Self::fetch(http.clone(), request);
        match CoreProviderMetadata::discover_async(issuer, &fetch).await {
            Ok(metadata) => {
                let known = Arc::new(Known { metadata, asked: Instant::now() });
                *slot = Some(Arc::clone(&known));
                Ok(known)
            }
            // Its keys of an hour ago are better than none.
            Err(error) => match slot.as_ref() {
                Some(known) if !fresh => Ok(Arc::clone(known)),
                // Its answer came, and speaks of another issuer.
                _ if matches!(error, openidconnect::DiscoveryError::Validation(_)) => {
                    Err(self.set_up_wrongly(format!("`issuer` is {}: {}", self.config.issuer, chain(&error))))
                }
                _ => Err(self.away(chain(&error))),
            },
        }
    }

    fn client(&self, known: &Known) -> Result<OidcClient, OidcError> {
        let secret = self.config.client_secret.as_ref().map(|secret| ClientSecret::new(secret.clone()));
        let redirect = RedirectUrl::new(self.redirect.clone()).map_err(|e| self.untrusted(e))?;
        let id = ClientId::new(self.config.client_id.clone());
        let client = OidcClient::from_provider_metadata(known.metadata.clone(), id, secret);
        Ok(client.set_redirect_uri(redirect))
    }

    /// Where the browser goes. Nobody is sent to a provider that does not answer: there the browser could only say that it is away.
    pub(crate) async fn begin(&self) -> Result<Begun, OidcError> {
        let known = self.known(true).await?;
        let client = self.client(&known)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let flow = CoreAuthenticationFlow::AuthorizationCode;
        let mut request = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
        for scope in &self.config.scopes {
            request = request.add_scope(Scope::new(scope.clone()));
        }
        if !self.config.roles.is_empty() && self.config.scopes.iter().any(|scope| scope == "offline_access") {
            // Some providers give a refresh token only to who was asked.
            request = request.add_prompt(CoreAuthPrompt::Consent);
        }
        let (url, state, nonce) = request.set_pkce_challenge(challenge).url();
        Ok(Begun {
            url: url.to_string(),
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
        })
    }

    /// Trades the code that came back for what the provider says of the person.
    pub(crate) async fn finish(&self, code: &str, nonce: &str, verifier: &str) -> Result<VouchedFor, OidcError> {
        let known = self.known(false).await?;
        let client = self.client(&known)?;
        let http = self.http.clone();
        let fetch = move |request| Self::fetch(http.clone(), request);
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned())).map_err(|e| self.untrusted(e))?;
        let request = request.set_pkce_verifier(PkceCodeVerifier::new(verifier.to_owned()));
        let tokens = Box::pin(request.request_async(&fetch)).await.map_err(|error| self.refusal(error))?;
        self.vouched(&tokens, Some(nonce), None).await
    }

    /// Asks for the groups again. A provider that refuses has ended the sign-in; one that is away has not.
    pub(crate) async fn renew(&self, refresh: &str, subject: &str) -> Result<VouchedFor, OidcError> {
        let known = self.known(false).await?;
        let client = self.client(&known)?;
        let http = self.http.clone();
        let fetch = move |request| Self::fetch(http.clone(), request);
        let token = RefreshToken::new(refresh.to_owned());
        let request = client.exchange_refresh_token(&token).map_err(|e| self.untrusted(e))?;
        let tokens = Box::pin(request.request_async(&fetch)).await.map_err(|error| self.refusal(error))?;
        self.vouched(&tokens, None, Some(subject)).await
    }

    fn refusal(&self, error: RequestTokenError<HttpError, StandardErrorResponse<CoreErrorResponseType>>) -> OidcError {
        match error {
            // A server that is busy, or does not know us any more, has said nothing about the person.
            RequestTokenError::ServerResponse(told) if *told.error() != CoreErrorResponseType::InvalidGrant => {
                match told.error() {
                    CoreErrorResponseType::InvalidClient | CoreErrorResponseType::UnauthorizedClient => {
                        self.set_up_wrongly(told)
                    }
                    _ => self.away(told),
                }
            }
            RequestTokenError::ServerResponse(told) => {
                tracing::info!(provider = self.config.name, error = %told, "a provider refused");
                OidcError::Refused { provider: self.title(), why: told.to_string() }
            }
            RequestTokenError::Request(error) => self.away(error),
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => self.away("its answer can't be read"),
        }
    }

    async fn vouched(
        &self,
        tokens: &Tokens,
        nonce: Option<&str>,
        subject: Option<&str>,
    ) -> Result<VouchedFor, OidcError> {
        let refresh = tokens.refresh_token().map(|token| token.secret().clone());
        let mut found = match tokens.id_token() {
            Some(token) => self.checked(token, nonce).await?,
            None if nonce.is_some() => return Err(self.untrusted("there is no ID token")),
            // After a refresh, only the user info may say who it is.
            None => Claims {
                issuer: self.config.issuer.clone(),
                subject: subject.unwrap_or_default().to_owned(),
                email: None,
                email_verified: false,
                texts: BTreeMap::new(),
            },
        };
        if subject.is_some_and(|subject| subject != found.subject) {
            return Err(self.untrusted("it speaks of somebody else"));
        }
        let lacks = |claim: &str| !found.texts.contains_key(claim);
        if found.email.is_none() || self.config.roles.iter().any(|role| lacks(&role.claim)) {
            self.add_user_info(tokens, &mut found).await?;
        }
        Ok(VouchedFor { claims: found, refresh })
    }

    /// Checks signature, issuer, audience, times and nonce. A key that is not known is asked for, once.
    async fn checked(&self, token: &IdToken, nonce: Option<&str>) -> Result<Claims, OidcError> {
        let mut fresh = false;
        loop {
            let known = self.known(fresh).await?;
            let client = self.client(&known)?;
            match token.claims(&verifier(&client), NonceIs(nonce)) {
                Ok(claims) => {
                    let texts = &claims.additional_claims().rest;
                    return Ok(Claims {
                        issuer: claims.issuer().to_string(),
                        subject: claims.subject().to_string(),
                        email: claims.email().map(|email| email.to_string()),
                        email_verified: claims.email_verified().unwrap_or(false),
                        texts: texts_of(texts),
                    });
                }
                Err(ClaimsVerificationError::SignatureVerification(_)) if !fresh => fresh = true,
                Err(error) => return Err(self.untrusted(chain(&error))),
            }
        }
    }

    async fn add_user_info(&self, tokens: &Tokens, found: &mut Claims) -> Result<(), OidcError> {
        let known = self.known(false).await?;
        let client = self.client(&known)?;
        let subject = openidconnect::SubjectIdentifier::new(found.subject.clone());
        let Ok(request) = client.user_info(tokens.access_token().clone(), Some(subject)) else { return Ok(()) };
        let http = self.http.clone();
        let fetch = move |request| Self::fetch(http.clone(), request);
        let told: Result<UserInfoClaims<Extra, CoreGenderClaim>, _> = Box::pin(request.request_async(&fetch)).await;
        let told = told.map_err(|error| self.away(chain(&error)))?;
        if found.email.is_none() {
            found.email = told.email().map(|email| email.to_string());
            found.email_verified = told.email_verified().unwrap_or(false);
        }
        for (name, values) in texts_of(&told.additional_claims().rest) {
            found.texts.entry(name).or_insert(values);
        }
        Ok(())
    }
}

type IdToken =
    openidconnect::IdToken<Extra, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

fn verifier(client: &OidcClient) -> IdTokenVerifier<'_, CoreJsonWebKey> {
    let verifier = client.id_token_verifier().set_allowed_algs([
        CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
        CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
        CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
        CoreJwsSigningAlgorithm::RsaSsaPssSha256,
        CoreJwsSigningAlgorithm::EcdsaP256Sha256,
        CoreJwsSigningAlgorithm::EcdsaP384Sha384,
        CoreJwsSigningAlgorithm::EdDsa,
    ]);
    // Their clock may be behind or ahead.
    let now = || DateTime::<Utc>::from(std::time::SystemTime::now());
    verifier.set_time_fn(move || now() - SKEW).set_issue_time_verifier_fn(move |at| {
        if at > now() + SKEW { Err("it was issued in the future; check the clocks".to_owned()) } else { Ok(()) }
    })
}

/// The nonce that was sent; a refresh has none.
struct NonceIs<'n>(Option<&'n str>);

impl NonceVerifier for NonceIs<'_> {
    fn verify(self, nonce: Option<&Nonce>) -> Result<(), String> {
        match self.0 {
            None => Ok(()),
            Some(sent) => match nonce {
                // Compared as digests: how long it takes says nothing.
                Some(told) if Digest::of(sent.as_bytes()) == Digest::of(told.secret().as_bytes()) => Ok(()),
                Some(_) => Err("the nonce is not the one that was sent".to_owned()),
                None => Err("there is no nonce".to_owned()),
            },
        }
    }
}

/// Claims that are a text or a list of texts.
fn texts_of(claims: &BTreeMap<String, Value>) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = claims.iter().filter_map(|(name, value)| {
        let values = match value {
            Value::String(one) => vec![one.clone()],
            Value::Array(many) => many.iter().filter_map(text).collect(),
            _ => return None,
        };
        Some((name.clone(), values))
    });
    texts.collect()
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
