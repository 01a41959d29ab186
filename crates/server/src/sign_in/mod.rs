//! Owns how people sign in: pages without script, providers, one-time links, and CLIs that ask to be let in.
//! Browsers and CLIs call it, on the Control listener, before they are anybody.
//! No rules about who may come in: they are the conductor's.

mod asked;
mod cli;
mod devices;
mod flow;
mod groups;
pub(crate) mod limiter;
mod oidc;
mod pages;
mod routes;

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Redirect, Response};
use conductor::{SignedInBrowser, Visitor};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ORIGIN, REFERRER_POLICY, SET_COOKIE, USER_AGENT, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::AppState;
use crate::config::ServerConfig;
use crate::error::ApiError;
use crate::http::Peer;

pub(crate) use groups::run as read_groups;
pub(crate) use routes::router;

/// How browsers reach this server.
#[derive(Default)]
pub(crate) struct Web {
    /// Without a `/` at its end.
    pub(crate) base_url: String,
    origins: Vec<String>,
    /// Name of the cookie of a session.
    pub(crate) cookie: String,
    /// Of the one that a sign-in at a provider carries.
    flow_cookie: String,
    is_secure: bool,
    /// Why no browser may sign in here.
    pub(crate) refused: Option<String>,
    providers: Vec<oidc::Provider>,
    trust_forwarded_for: bool,
}

/// Scheme, host and port of a URL.
fn origin_of(url: &str) -> Option<(String, String, Option<u16>)> {
    let uri: http::Uri = url.parse().ok()?;
    Some((uri.scheme_str()?.to_owned(), uri.host()?.to_owned(), uri.port_u16()))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl Web {
    pub(crate) fn new(config: &ServerConfig, base_url: &str) -> anyhow::Result<Self> {
        let base_url = base_url.trim_end_matches('/').to_owned();
        let (scheme, host, port) = origin_of(&base_url).unwrap_or_default();
        let is_secure = scheme == "https";
        let port_text = port.map(|port| format!(":{port}")).unwrap_or_default();
        // As browsers write it.
        let own = reqwest::Url::parse(&base_url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        let mut origins = vec![own];
        if is_loopback(&host) {
            origins.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{scheme}://{name}{port_text}")));
        }
        let refused = (!is_secure && !is_loopback(&host)).then(|| {
            format!("a browser may sign in over https only, and this server is {base_url}; give it a certificate (tls.cert_file, tls.key_file), or put it behind a proxy with TLS, set control.public_url to its https URL, and auth.trust_forwarded_for = true if the proxy writes X-Forwarded-For")
        });
        let of_port = port.unwrap_or(80);
        let named = |secure: &str, plain: &str| match is_secure {
            true => format!("__Host-{secure}"),
            false => format!("{plain}-{of_port}"),
        };
        let providers = config.auth.providers.iter().map(|it| oidc::Provider::new(it.clone(), &base_url));
        Ok(Self {
            origins,
            cookie: named("ferry", "ferry-dev"),
            flow_cookie: named("ferry-flow", "ferry-flow"),
            is_secure,
            refused,
            providers: providers.collect::<anyhow::Result<_>>()?,
            trust_forwarded_for: config.auth.trust_forwarded_for,
            base_url,
        })
    }

    pub(crate) fn is_own(&self, origin: &str) -> bool {
        self.origins.iter().any(|own| own == origin)
    }

    /// Whether a browser of this machine came by another name than our own.
    fn is_elsewhere(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(http::header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let own = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let name = |authority: &str| authority.rsplit_once(':').map_or(authority, |(name, _)| name).to_owned();
        !host.is_empty() && host != own && is_loopback(&name(host)) && is_loopback(&name(own))
    }

    fn provider(&self, name: &str) -> Option<&oidc::Provider> {
        self.providers.iter().find(|provider| provider.config.name == name)
    }

    /// A cookie for this server alone, which no script can read.
    fn set_cookie(&self, name: &str, value: &str, max_age_s: i64) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age_s}{secure}");
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// The session's cookie, and what was carried before goes.
    fn signed_in(&self, state: &AppState, to: &str, browser: &SignedInBrowser) -> Response {
        let for_s = (browser.expires_at.micros() - state.conductor.now().micros()) / 1_000_000;
        let mut response = Redirect::to(to).into_response();
        let headers = response.headers_mut();
        headers.append(SET_COOKIE, self.set_cookie(&self.cookie, &browser.secret, for_s.max(1)));
        headers.append(SET_COOKIE, self.set_cookie(&self.flow_cookie, "", 0));
        response
    }

    fn sign_out(&self, response: &mut Response) {
        response.headers_mut().append(SET_COOKIE, self.set_cookie(&self.cookie, "", 0));
    }
}

/// Where a browser goes that has signed in.
fn home() -> &'static str {
    if crate::web_ui::is_there() { "/" } else { "/account" }
}

/// A place on this server where somebody wanted to go; anything else leads to the dashboard.
fn local_path(wanted: &str) -> String {
    let is_local = wanted.starts_with('/') && !wanted.starts_with("//") && !wanted.starts_with("/\\");
    let is_plain = wanted.chars().all(|c| !c.is_control() && c != '\\' && c.is_ascii());
    let is_page = wanted != "/login" && !wanted.starts_with("/login?") && !wanted.starts_with("/auth/login");
    if is_local && is_plain && is_page && wanted.len() <= 2000 { wanted.to_owned() } else { home().to_owned() }
}

/// The address that a request comes from, and the name of its browser.
pub(crate) struct From(pub(crate) Visitor);

impl FromRequestParts<AppState> for From {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.to_string()).unwrap_or_default();
        let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        // The last line is the proxy's own; those before it may be anybody's.
        let forwarded = parts.headers.get_all(HeaderName::from_static("x-forwarded-for")).iter().next_back();
        let forwarded = forwarded
            .and_then(|value| value.to_str().ok())
            .filter(|_| state.web.trust_forwarded_for)
            .and_then(|all| all.rsplit(',').next())
            .and_then(|last| last.trim().parse::<IpAddr>().ok());
        let address = forwarded.map_or(peer, |ip| ip.to_string());
        let name = text(USER_AGENT).map(browser_name).unwrap_or_default();
        Ok(Self(Visitor { name, address }))
    }
}

/// What people call a browser.
fn browser_name(agent: &str) -> String {
    let has = |word: &str| agent.contains(word);
    let browser = match () {
        () if has("Edg/") => "Edge",
        () if has("OPR/") => "Opera",
        () if has("Firefox/") => "Firefox",
        () if has("Chrome/") => "Chrome",
        () if has("Safari/") => "Safari",
        () => return agent.chars().take(60).collect(),
    };
    let system = match () {
        () if has("Windows") => " on Windows",
        () if has("Android") => " on Android",
        () if has("iPhone") || has("iPad") => " on iOS",
        () if has("Mac OS") => " on macOS",
        () if has("Linux") => " on Linux",
        () => "",
    };
    format!("{browser}{system}")
}

/// Whether a form was sent by one of our pages. They tell nobody where they were, so browsers may send them without an origin; then
/// the browser itself says whose page it was, in a header that no page can set.
fn is_own_form(state: &AppState, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match text(ORIGIN) {
        Some("null") | None => text(HeaderName::from_static("sec-fetch-site")) == Some("same-origin"),
        Some(origin) => state.web.is_own(origin),
    }
}

/// Pages are for one person, in no frame, without script, and tell nobody where they were.
fn guarded(mut response: Response, form_targets: &str) -> Response {
    let policy = format!(
        "default-src 'none'; style-src '{}'; img-src data:; form-action 'self'{form_targets}; base-uri 'none'; frame-ancestors 'none'",
        pages::style_hash()
    );
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}
