//! Finds out what keeps this runner from working, hop by hop, in a report that can be pasted.
//!
//! A report holds no secret: it says which file has a problem, never what is in it.

use std::path::PathBuf;
use std::time::Duration;

use fs_err as fs;
use model::Timestamp;
use model::constants::{PROTOCOL, SKEW_S};
use serde::{Deserialize, Serialize};

use crate::confine::cell::Network;
use crate::execute::tool;
use crate::{confine::limits, confine::shim, net};

/// Files of the state directory that the session keeps.
pub const LOCK_FILE: &str = "lock";
pub const KEY_FILE: &str = "session.key";
const HOP_TIMEOUT: Duration = Duration::from_secs(10);
/// What a build runner uses, any of them, and what it can't do without.
const BUILD_TOOLS: [(&str, &[&str], &str); 5] = [
    ("images", &["buildah", "podman"], "builds of images (docker_build)"),
    ("cells", &["unshare"], "builds of images (docker_build)"),
    ("charts", &["helm"], "charts of a repository or with dependencies (helm_chart)"),
    ("kustomize", &["kustomize", "kubectl"], "kustomizations (kubernetes_manifest)"),
    ("providers", &["terraform", "tofu"], "vendored providers (terraform_module)"),
];

#[derive(Debug, Clone)]
pub struct Options {
    pub runner_url: String,
    pub state_dir: PathBuf,
    pub ca_file: Option<PathBuf>,
    /// 0 = unknown.
    pub disk_floor_bytes: u64,
    /// It is a build runner.
    pub builds: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub status: Status,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub version: String,
    pub checks: Vec<Check>,
}

impl Report {
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|c| c.status != Status::Fail)
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = format!("ferry-runner {}\n", self.version);
        for check in &self.checks {
            let mark = match check.status {
                Status::Ok => "ok  ",
                Status::Warn => "warn",
                Status::Fail => "FAIL",
                Status::Skipped => "skip",
            };
            text.push_str(&format!("{mark}  {:<10} {}\n", check.name, check.detail));
            if let Some(hint) = &check.hint {
                text.push_str(&format!("      {:<10} -> {hint}\n", ""));
            }
        }
        let failed: Vec<&str> =
            self.checks.iter().filter(|c| c.status == Status::Fail).map(|c| c.name.as_str()).collect();
        text.push_str(&match failed.first() {
            None => "all hops work\n".to_owned(),
            Some(first) => format!("the first failing hop: {first}\n"),
        });
        text
    }

    pub fn add(&mut self, name: &str, status: Status, detail: impl Into<String>) {
        self.checks.push(Check { name: name.into(), status, detail: detail.into(), hint: None });
    }

    pub fn hint(&mut self, name: &str, status: Status, detail: impl Into<String>, hint: impl Into<String>) {
        self.checks.push(Check { name: name.into(), status, detail: detail.into(), hint: Some(hint.into()) });
    }

    fn skip_rest(&mut self, names: &[&str], because: &str) {
        for name in names {
            self.add(name, Status::Skipped, format!("because {because} failed"));
        }
    }
}

/// Looks at everything; takes at most half a minute.
pub async fn run(options: &Options) -> Report {
    let mut report = Report { version: env!("CARGO_PKG_VERSION").into(), checks: Vec::new() };
    check_state(options, &mut report);
    check_host(&mut report);
    if options.builds {
        check_builds(&mut report);
    }
    check_network(options, &mut report).await;
    report
}

fn check_state(options: &Options, report: &mut Report) {
    let dir = &options.state_dir;
    let shown = dir.display();
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    match fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)) {
        Ok(()) => report.add("state", Status::Ok, format!("{shown} can be written")),
        Err(e) => report.hint(
            "state",
            Status::Fail,
            e.to_string(),
            "give the runner's user a directory it owns with `--state-dir`",
        ),
    }
    match std::fs::File::open(dir.join(LOCK_FILE)).map(|f| f.try_lock().is_err()) {
        Ok(true) => report.add("lock", Status::Ok, "held: a runner works with this directory"),
        Ok(false) => report.add("lock", Status::Ok, "free: no runner works with this directory now"),
        Err(_) => report.add("lock", Status::Ok, "no runner has worked with this directory yet"),
    }
    match fs::metadata(dir.join(KEY_FILE)) {
        Ok(meta) => {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = meta.permissions().mode() & 0o777;
            if mode & 0o077 == 0 {
                report.add("key", Status::Ok, "the session's key is there, for its owner only");
            } else {
                let hint = format!("chmod 600 {}", dir.join(KEY_FILE).display());
                report.hint("key", Status::Warn, format!("others may read the session's key (mode {mode:o})"), hint);
            }
        }
        Err(_) => report.add("key", Status::Warn, "no session key yet: this runner has not joined"),
    }
    match limits::disk_free_bytes(dir) {
        Ok(free) => {
            let (free_mib, floor_mib) = (free >> 20, options.disk_floor_bytes >> 20);
            if free < options.disk_floor_bytes {
                let detail = format!("{free_mib} MiB free, {floor_mib} MiB needed: no job is taken");
                report.hint("disk", Status::Fail, detail, "make room, or lower the runner's disk floor");
            } else {
                report.add("disk", Status::Ok, format!("{free_mib} MiB free"));
            }
        }
        Err(e) => report.add("disk", Status::Fail, e.to_string()),
    }
}

fn check_host(report: &mut Report) {
    let (complete, detail) = limits::available();
    report.add("cgroup", if complete { Status::Ok } else { Status::Warn }, detail);
    if shim::landlock_available() {
        report.add("landlock", Status::Ok, "scripts are kept from the runner's files");
    } else {
        let hint = "Linux 5.13 or later with landlock among its security modules";
        report.hint("landlock", Status::Warn, "missing: scripts can read what the runner's user can", hint);
    }
    if tool::find("git").is_some() {
        report.add("git", Status::Ok, "found on PATH");
    } else {
        report.hint("git", Status::Warn, "not on PATH: what has a git source fails", "install git");
    }
}

/// Which builds are possible here. None is needed by all, so that a missing tool is no fault.
fn check_builds(report: &mut Report) {
    for (name, programs, what) in BUILD_TOOLS {
        let (all, found) = (programs.join("` or `"), programs.iter().find(|program| tool::find(program).is_some()));
        match found {
            Some(found) => report.add(name, Status::Ok, format!("`{found}` is there")),
            None => report.hint(
                name,
                Status::Warn,
                format!("no `{all}` on PATH: no {what}"),
                format!("install `{all}` on this host"),
            ),
        }
    }
    if Network::of_host() == Network::None {
        let hint = "install slirp4netns and iproute2, and let the runner use /dev/net/tun";
        report.hint("outward", Status::Warn, "images are built without a network", hint);
    }
}

async fn check_network(options: &Options, report: &mut Report) {
    let url: reqwest::Url = match options.runner_url.parse() {
        Ok(url) => url,
        Err(e) => {
            report.add("url", Status::Fail, format!("`{}` is not a URL: {e}", options.runner_url));
            return report.skip_rest(&["proxy", "dns", "tcp", "tls", "http", "protocol", "clock"], "url");
        }
    };
    let proxy = net::proxy_for(&url, |name| std::env::var(name).ok());
    let first_hop = match &proxy {
        None => {
            report.add("proxy", Status::Ok, "none for this URL");
            Some(url.clone())
        }
        Some(text) => {
            let parsed = text.parse().or_else(|_| format!("http://{text}").parse::<reqwest::Url>());
            match parsed {
                Ok(proxy) => {
                    let shown = format!("{}:{}", proxy.host_str().unwrap_or("?"), port(&proxy));
                    report.add("proxy", Status::Ok, format!("goes through {shown}; the next hops are the proxy's"));
                    Some(proxy)
                }
                Err(_) => {
                    let hint = "write it like http://host:port";
                    report.hint("proxy", Status::Fail, "the proxy variable is not a URL", hint);
                    None
                }
            }
        }
    };
    let Some(hop) = first_hop else {
        return report.skip_rest(&["dns", "tcp", "tls", "http", "protocol", "clock"], "proxy");
    };
    if let Err(failed) = reach(&hop, report).await {
        let names = ["dns", "tcp", "tls", "http", "protocol", "clock"];
        let after = names.iter().position(|n| *n == failed).map_or(0, |at| at + 1);
        return report.skip_rest(&names[after..], failed);
    }
    check_http(options, &url, report).await;
}

fn port(url: &reqwest::Url) -> u16 {
    url.port_or_known_default().unwrap_or(80)
}

/// Resolves and connects; names the hop that fails.
async fn reach(url: &reqwest::Url, report: &mut Report) -> Result<(), &'static str> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = port(url);
    let looked_up = tokio::time::timeout(HOP_TIMEOUT, tokio::net::lookup_host((host.as_str(), port))).await;
    let addresses: Vec<_> = match looked_up {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(e)) => {
            report.hint("dns", Status::Fail, format!("{host}: {e}"), "check the name and this host's resolver");
            return Err("dns");
        }
        Err(_) => {
            report.add("dns", Status::Fail, format!("{host}: no answer within {} s", HOP_TIMEOUT.as_secs()));
            return Err("dns");
        }
    };
    let shown: Vec<String> = addresses.iter().map(|a| a.ip().to_string()).collect();
    report.add("dns", Status::Ok, format!("{host} is {}", shown.join(", ")));
    let connected = tokio::time::timeout(HOP_TIMEOUT, tokio::net::TcpStream::connect(&addresses[..])).await;
    let problem = match connected {
        Ok(Ok(_)) => {
            report.add("tcp", Status::Ok, format!("port {port} answers"));
            return Ok(());
        }
        Ok(Err(e)) => e.to_string(),
        Err(_) => format!("no answer within {} s", HOP_TIMEOUT.as_secs()),
    };
    let hint = "open outgoing connections to it in firewall and security group, or set a proxy";
    report.hint("tcp", Status::Fail, format!("{host}:{port}: {problem}"), hint);
    Err("tcp")
}

async fn check_http(options: &Options, url: &reqwest::Url, report: &mut Report) {
    let after_tls = ["http", "protocol", "clock"];
    let secure = url.scheme() == "https";
    let client = match net::client(&options.runner_url, options.ca_file.as_deref()) {
        Ok(client) => client,
        Err(e) => {
            report.add("tls", Status::Fail, net::chain(&e));
            return report.skip_rest(&after_tls, "tls");
        }
    };
    let base = options.runner_url.trim_end_matches('/');
    let asked_at = crash::wall_clock();
    let answer = match client.get(format!("{base}/livez")).timeout(HOP_TIMEOUT).send().await {
        Ok(answer) => answer,
        Err(e) if secure && is_tls(&e) => {
            let hint = "behind a proxy that opens TLS, give its certificate with `--ca-file`";
            report.hint("tls", Status::Fail, net::chain(&e), hint);
            return report.skip_rest(&after_tls, "tls");
        }
        Err(e) => {
            report.add("http", Status::Fail, net::chain(&e));
            return report.skip_rest(&["protocol", "clock"], "http");
        }
    };
    if secure {
        report.add("tls", Status::Ok, "the server's certificate is trusted");
    } else {
        report.add("tls", Status::Warn, "not used: the URL is http");
    }
    if answer.status().is_success() {
        report.add("http", Status::Ok, format!("{base}/livez answers"));
    } else {
        let hint = "is this the URL of the Runner API, and does the proxy let it through?";
        report.hint("http", Status::Fail, format!("{base}/livez answers {}", answer.status()), hint);
    }
    let date = answer.headers().get(reqwest::header::DATE).and_then(|d| d.to_str().ok()).and_then(parse_http_date);
    check_clock(Timestamp::from_system(asked_at), date, report);
    check_protocol(&client, base, report).await;
}

/// Whether TLS is what failed: somewhere in the chain is an error of rustls.
fn is_tls(error: &reqwest::Error) -> bool {
    // An error of I/O hides what it wraps: its source is the source of that.
    fn within(error: &(dyn std::error::Error + 'static)) -> bool {
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        error.is::<rustls::Error>() || wrapped.is_some_and(|e| within(e)) || error.source().is_some_and(within)
    }
    within(error)
}

fn check_clock(here: Timestamp, server: Option<Timestamp>, report: &mut Report) {
    let Some(server) = server else {
        return report.add("clock", Status::Skipped, "the server's answer has no date");
    };
    // A date on the wire has whole seconds, so a second says nothing.
    let ahead_s = (here.micros() - server.micros()) / 1_000_000;
    let detail = format!("{} s {} the server's", ahead_s.abs(), if ahead_s < 0 { "behind" } else { "ahead of" });
    let hint = "set the clock, and keep it set with NTP";
    match ahead_s.unsigned_abs() {
        s if s > SKEW_S => report.hint("clock", Status::Fail, format!("{detail}; {SKEW_S} s are tolerated"), hint),
        s if s > 60 => report.hint("clock", Status::Warn, detail, hint),
        _ => report.add("clock", Status::Ok, detail),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that servers send.
fn parse_http_date(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, month, year, time, "GMT"] = words[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|m| *m == month)? + 1;
    Timestamp::try_from(format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

async fn check_protocol(client: &reqwest::Client, base: &str, report: &mut Report) {
    #[derive(Deserialize)]
    struct Version {
        version: String,
        protocol_min: u32,
        protocol_max: u32,
    }
    let asked = async {
        let answer = client.get(format!("{base}/version")).timeout(HOP_TIMEOUT).send().await?;
        answer.error_for_status()?.json::<Version>().await
    };
    let ours = crash::protocol(PROTOCOL);
    match asked.await {
        Ok(v) if (v.protocol_min..=v.protocol_max).contains(&ours) => {
            report.add("protocol", Status::Ok, format!("server {} speaks protocol {ours}", v.version));
        }
        Ok(v) => {
            let detail =
                format!("server {} speaks {} to {}, this runner {ours}", v.version, v.protocol_min, v.protocol_max);
            report.hint("protocol", Status::Fail, detail, "update whichever is older");
        }
        Err(e) => report.add("protocol", Status::Fail, net::chain(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_skew() {
        let date = parse_http_date("Sun, 15 Nov 2026 09:46:40 GMT").expect("date");
        assert_eq!(date.to_string(), "2026-11-15T09:46:40.000000Z");
        assert_eq!(parse_http_date("yesterday"), None);
        for (skew_s, status) in [(1, Status::Ok), (-90, Status::Warn), (3600, Status::Fail)] {
            let mut report = Report::default();
            check_clock(date.plus_s(skew_s), Some(date), &mut report);
            assert_eq!(report.checks[0].status, status, "{skew_s}");
        }
    }

    #[tokio::test]
    async fn the_failing_hop_is_named() {
        let dir = tempfile::tempdir().expect("dir");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address");
        let cases = [
            ("http://no-such-host.invalid".to_owned(), "dns"),
            (format!("http://{free}"), "tcp"),
            ("nonsense".to_owned(), "url"),
        ];
        for (runner_url, hop) in cases {
            let options = Options {
                runner_url,
                state_dir: dir.path().to_owned(),
                ca_file: None,
                disk_floor_bytes: 0,
                builds: true,
            };
            let report = run(&options).await;
            assert!(!report.is_ok());
            assert!(BUILD_TOOLS.iter().all(|(name, ..)| report.checks.iter().any(|c| c.name == *name)), "{report:?}");
            assert!(report.text().contains(&format!("the first failing hop: {hop}")), "{}", report.text());
        }
    }
}
