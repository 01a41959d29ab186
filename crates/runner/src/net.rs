//! The one HTTP client of the runner: TLS by rustls with `ring`, proxies from the environment, extra certificates.

use std::path::Path;
use std::time::Duration;

use fs_err as fs;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error("the file of extra certificates can't be read")]
    CaFile(#[source] std::io::Error),
    #[error("the file of extra certificates holds no certificate in PEM form")]
    CaFormat,
    #[error("the HTTP client can't be made")]
    Client(#[source] reqwest::Error),
}

/// A client with a bound on connecting; every request sets its own bound on the whole.
pub fn client(url: &str, ca_file: Option<&Path>) -> Result<reqwest::Client, NetError> {
    // A redirect would carry a signed request to a host that nobody named.
    build(url, ca_file, reqwest::redirect::Policy::none())
}

/// A client for an OCI registry, which may keep its blobs elsewhere.
pub fn registry_client(url: &str, ca_file: Option<&Path>) -> Result<reqwest::Client, NetError> {
    build(url, ca_file, reqwest::redirect::Policy::limited(5))
}

fn build(url: &str, ca_file: Option<&Path>, redirects: reqwest::redirect::Policy) -> Result<reqwest::Client, NetError> {
    // The second call finds it installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("ferry-runner/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEPALIVE)
        .redirect(redirects);
    if url.starts_with("http:") {
        // A host without any CA certificates can still speak plain HTTP.
        builder = builder.tls_certs_only([]);
    } else if let Some(file) = ca_file {
        let pem = fs::read(file).map_err(NetError::CaFile)?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|_| NetError::CaFormat)?;
        if certificates.is_empty() {
            return Err(NetError::CaFormat);
        }
        builder = builder.tls_certs_merge(certificates);
    }
    if reqwest::Url::parse(url).is_ok_and(|url| is_loopback(&url)) {
        // A proxy would look for the control plane on its own machine.
        builder = builder.no_proxy();
    }
    builder.build().map_err(NetError::Client)
}

fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The proxy that the environment names for a URL, for reports; the client itself reads the same variables.
pub fn proxy_for(url: &reqwest::Url, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let get = |name: &str| {
        variable(&name.to_ascii_lowercase()).or_else(|| variable(&name.to_ascii_uppercase())).filter(|v| !v.is_empty())
    };
    let proxy = get(&format!("{}_proxy", url.scheme())).or_else(|| get("all_proxy"))?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let direct = get("no_proxy").unwrap_or_default().split(',').map(str::trim).any(|entry| {
        let entry = entry.trim_start_matches('.');
        entry == "*" || (!entry.is_empty() && (host == entry || host.ends_with(&format!(".{entry}"))))
    });
    (!direct && !is_loopback(url)).then_some(proxy)
}

/// An error with everything that caused it, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_is_chosen_as_by_everyone_else() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
        let cases: [Case<'_>; 7] = [
            (&[("all_proxy", "http://p:1")], "http://127.0.0.1:1", None),
            (&[], "https://a.example", None),
            (&[("https_proxy", "http://p:1")], "https://a.example", Some("http://p:1")),
            (&[("HTTPS_PROXY", "http://p:1")], "http://a.example", None),
            (&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", "b.example, a.example")], "http://a.example", None),
            (&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", ".example")], "http://a.example", None),
            (&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", "ample")], "http://a.example", Some("http://p:1")),
        ];
        for (variables, url, want) in cases {
            let url = url.parse().expect("url");
            let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(proxy_for(&url, get).as_deref(), want, "{variables:?}");
        }
    }
}
