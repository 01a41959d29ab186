//! The server's configuration: defaults, then one TOML file, then `FERRY_*` variables. Every value knows where it came from.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use conductor::Timing;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Where everything lies that has no place of its own.
    pub data_dir: PathBuf,
    pub control: Listener,
    pub runner: Listener,
    pub tls: Tls,
    pub database: Database,
    pub blobs: BlobStore,
    pub secrets: Secrets,
    pub auth: Auth,
    pub mail: Mail,
    pub log: Log,
    pub logs: Logs,
    pub limits: Limits,
    pub registry: Registry,
    pub storage: Storage,
    pub metrics: Metrics,
    pub telemetry: Telemetry,
    pub builds: Builds,
    pub timing: Timing,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    pub listen: String,
    /// What others call it by, when that differs from where it listens.
    pub public_url: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `sqlite:DIRECTORY` or `postgres://…`; empty = SQLite in the data directory.
    pub url: String,
    /// Connections to PostgreSQL.
    pub connections: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobStore {
    /// A directory or `s3://bucket/prefix`; empty = files in the data directory.
    pub url: String,
    /// For an S3-compatible store; what is empty comes from the usual `AWS_*` variables.
    pub s3_endpoint: String,
    pub s3_region: String,
    pub s3_access_key_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_secret_access_key: Option<String>,
    /// Plain HTTP to the endpoint is allowed.
    pub s3_allow_http: bool,
}

impl BlobStore {
    pub fn s3(&self) -> store::S3Options {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        store::S3Options {
            endpoint: given(&self.s3_endpoint),
            region: given(&self.s3_region),
            access_key_id: given(&self.s3_access_key_id),
            secret_access_key: self.s3_secret_access_key.clone(),
            allow_http: self.s3_allow_http.then_some(true),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Lines `ID:BASE64`; empty = `master.key` in the data directory, made on the first start.
    pub master_key_file: PathBuf,
    /// The same text from the environment (`FERRY_SECRETS__MASTER_KEY`), where a file is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master_key: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_token_file: Option<PathBuf>,
    pub bootstrap_email: String,
    /// A browser that does nothing for this long is signed out.
    pub browser_idle_s: u64,
    /// A browser signs in again after this time.
    pub browser_s: u64,
    /// A CLI renews its sign-in after this time, without a question.
    pub cli_access_s: u64,
    /// Groups that give roles are read again this often.
    pub groups_s: u64,
    /// The address of a client is the last one in `X-Forwarded-For`: only behind a proxy that writes it.
    pub trust_forwarded_for: bool,
    /// OpenID providers that people sign in with.
    #[serde(default)]
    pub providers: Vec<Provider>,
}

/// How invites are mailed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// `smtps://USER:PASSWORD@HOST` (TLS), `smtp://HOST?tls=required` (STARTTLS), or `smtp://HOST` (plain, for a relay on this
    /// machine); empty = nothing is mailed.
    pub smtp_url: String,
    /// The sender's address.
    pub from: String,
}

/// An OpenID provider.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Short and stable: roles that its groups give are kept under this name.
    pub name: String,
    /// For people; the name when empty.
    #[serde(default)]
    pub title: String,
    /// Where `/.well-known/openid-configuration` is found.
    pub issuer: String,
    pub client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret_file: Option<PathBuf>,
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// Whoever has a verified address there may come in; empty: only who is invited, or whom a group gives a role.
    #[serde(default)]
    pub allowed_domains: Vec<String>,
    /// Groups that give roles.
    #[serde(default)]
    pub roles: Vec<GroupRole>,
}

/// Whoever has this value in this claim has this role in this org.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRole {
    #[serde(default = "groups")]
    pub claim: String,
    pub value: String,
    /// Name or id.
    pub org: String,
    pub role: model::Role,
}

fn scopes() -> Vec<String> {
    ["email", "profile"].map(str::to_owned).to_vec()
}

fn groups() -> String {
    "groups".to_owned()
}

impl Provider {
    pub fn title(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }

    fn check(&self) -> anyhow::Result<()> {
        let of = format!("auth.providers: `{}`", self.name);
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 40 || !self.name.chars().all(good) {
            bail!("{of}: a name has lower-case letters, digits and `-`");
        }
        let loopback = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
        if !self.issuer.starts_with("https://") && !loopback.iter().any(|start| self.issuer.starts_with(start)) {
            bail!("{of}: the issuer `{}` must be an https URL", self.issuer);
        }
        if let Some(domain) = self.allowed_domains.iter().find(|it| it.is_empty() || it.contains(['@', '*', ' ', '/']))
        {
            bail!("{of}: allowed_domains has `{domain}`; give whole domains, such as `example.com`");
        }
        if self.client_secret.is_some() && self.client_secret_file.is_some() {
            bail!("{of}: give client_secret or client_secret_file, not both");
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,store=debug`.
    pub level: String,
    /// `json` or `text`.
    pub format: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logs {
    /// A job's log that has been quiet for this long is folded into a segment.
    pub seal_quiet_s: u64,
    pub segment_bytes: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bodies of ordinary requests.
    pub body_bytes: usize,
    /// Bodies that carry scripts or results.
    pub large_body_bytes: usize,
    pub archive_bytes: usize,
    pub log_body_bytes: usize,
    /// How long a connection may bring no request, or half of its head. Longer than clients and load balancers keep one.
    pub idle_s: u64,
    /// How long a client may bring nothing of a blob, or take nothing of an answer.
    pub stall_s: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// What an org may keep in the registry; 0 = any number of bytes.
    pub quota_bytes: u64,
    /// A blob that no manifest refers to is deleted after this time, an upload that was not finished too.
    pub grace_s: u64,
    /// How often the registry looks for such.
    pub sweep_s: u64,
    /// `host[:port]/path` of another registry (ECR, ACR, GAR, any of OCI) that artifacts are kept in instead of ours; build
    /// runners sign in there with their host's docker login.
    pub external: String,
    /// That one speaks HTTP without TLS.
    pub external_plain_http: bool,
}

/// How long the control plane keeps what nobody asked it to keep.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Events are deleted after so many days; 0 = never.
    pub events_days: u64,
    /// Health checks and their logs are deleted this long after their end.
    pub health_checks_s: u64,
    /// Objects that no row names are deleted when they are this old.
    pub orphans_s: u64,
    /// How often the server looks for such objects.
    pub sweep_s: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Builds {
    /// Who starts the build runners: `process` (this server, each as a process of its own, but none that you have joined) or
    /// `none` (you do).
    pub launcher: String,
    /// The program; `ferry-runner` beside this one when empty.
    pub runner_program: String,
    /// A runner that had nothing to build for so long is stopped.
    pub idle_s: u64,
    /// Each org's runner gets a user of its own, from this number on; 0 = the server's user. Needs root.
    pub users_from: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Where `/metrics` is served for Prometheus, without a token; empty = nowhere.
    pub listen: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    /// Of an OpenTelemetry collector, such as `http://127.0.0.1:4318` (OTLP over HTTP); empty = nothing is sent.
    pub endpoint: String,
    /// Sent with every request: `NAME=VALUE,NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<String>,
    /// The logs of jobs.
    pub logs: bool,
    /// Spans of requests, workflows, jobs and their steps.
    pub traces: bool,
    /// What `/metrics` shows.
    pub metrics: bool,
    /// How often metrics are sent.
    pub metrics_s: u64,
    pub service_name: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        use model::constants as c;
        Self {
            data_dir: PathBuf::from("ferry-data"),
            control: Listener { listen: "127.0.0.1:8081".into(), public_url: String::new() },
            runner: Listener { listen: "127.0.0.1:8083".into(), public_url: String::new() },
            tls: Tls { cert_file: PathBuf::new(), key_file: PathBuf::new() },
            database: Database { url: String::new(), connections: 16 },
            blobs: BlobStore {
                url: String::new(),
                s3_endpoint: String::new(),
                s3_region: String::new(),
                s3_access_key_id: String::new(),
                s3_secret_access_key: None,
                s3_allow_http: false,
            },
            secrets: Secrets { master_key_file: PathBuf::new(), master_key: None },
            auth: Auth {
                bootstrap_token_file: None,
                bootstrap_email: "admin@localhost".into(),
                browser_idle_s: 12 * 3600,
                browser_s: 7 * 86_400,
                cli_access_s: 3600,
                groups_s: 2700,
                trust_forwarded_for: false,
                providers: Vec::new(),
            },
            mail: Mail::default(),
            log: Log { level: "info".into(), format: "json".into() },
            logs: Logs { seal_quiet_s: 60, segment_bytes: 4 << 20 },
            limits: Limits {
                body_bytes: 1 << 20,
                large_body_bytes: 20 << 20,
                archive_bytes: c::ARCHIVE_BYTES as usize,
                log_body_bytes: 4 << 20,
                idle_s: 120,
                stall_s: 60,
            },
            builds: Builds { launcher: "process".into(), runner_program: String::new(), idle_s: 900, users_from: 0 },
            registry: Registry {
                quota_bytes: 50 << 30,
                grace_s: 86_400,
                sweep_s: 60,
                external: String::new(),
                external_plain_http: false,
            },
            storage: Storage { events_days: 400, health_checks_s: 3600, orphans_s: 86_400, sweep_s: 3600 },
            metrics: Metrics { listen: "127.0.0.1:8085".into() },
            telemetry: Telemetry {
                endpoint: String::new(),
                headers: None,
                logs: true,
                traces: true,
                metrics: true,
                metrics_s: 15,
                service_name: "ferry".into(),
            },
            timing: Timing::default(),
        }
    }
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File,
    Environment(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::Environment(name) => write!(f, "environment ({name})"),
        }
    }
}

/// One value with its dotted name.
#[derive(Debug, Clone)]
pub struct Explained {
    pub key: String,
    pub value: String,
    pub origin: Origin,
}

/// Keys that have no default.
const OPTIONAL: [&str; 4] =
    ["secrets.master_key", "auth.bootstrap_token_file", "blobs.s3_secret_access_key", "telemetry.headers"];
const SECRET: [&str; 4] = ["secrets.master_key", "blobs.s3_secret_access_key", "telemetry.headers", "mail.smtp_url"];

/// What a number may be: beyond these a setting is a mistake, and would show much later.
const RANGES: [(&str, i64, i64); 29] = [
    ("auth.browser_idle_s", 1, 30 * DAY_S),
    ("auth.browser_s", 1, 90 * DAY_S),
    ("auth.cli_access_s", 1, DAY_S),
    ("auth.groups_s", 1, 3600),
    ("database.connections", 1, 1000),
    ("logs.seal_quiet_s", 0, DAY_S),
    ("logs.segment_bytes", 1024, 1 << 30),
    ("limits.body_bytes", 1024, 1 << 30),
    ("limits.large_body_bytes", 1024, 4 << 30),
    ("limits.archive_bytes", 1024, 64 << 30),
    ("limits.log_body_bytes", 1024, 1 << 30),
    ("limits.idle_s", 1, DAY_S),
    ("limits.stall_s", 1, DAY_S),
    ("registry.quota_bytes", 0, 1 << 60),
    ("registry.grace_s", 1, 3650 * DAY_S),
    ("registry.sweep_s", 1, DAY_S),
    ("storage.events_days", 0, 36_500),
    ("storage.health_checks_s", 1, 3650 * DAY_S),
    ("storage.orphans_s", 600, 3650 * DAY_S),
    ("storage.sweep_s", 1, 30 * DAY_S),
    ("telemetry.metrics_s", 1, DAY_S),
    ("builds.idle_s", 1, 30 * DAY_S),
    ("builds.users_from", 0, 4_000_000_000),
    ("timing.hold_s", 1, 3600),
    ("timing.lease_s", 1, DAY_S),
    ("timing.renew_s", 1, DAY_S),
    ("timing.offline_s", 1, 365 * DAY_S),
    ("timing.closed_offline_s", 0, 365 * DAY_S),
    ("timing.silent_offline_s", 1, 365 * DAY_S),
];
const DAY_S: i64 = 86_400;

fn check_range(key: &str, value: &Value) -> anyhow::Result<()> {
    let Some((_, min, max)) = RANGES.iter().find(|(name, ..)| *name == key) else { return Ok(()) };
    match value {
        Value::Integer(n) if !(min..=max).contains(&n) => bail!("{key} is {n}; use {min} to {max}"),
        _ => Ok(()),
    }
}

fn leaves(prefix: &str, table: &Table, out: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) => leaves(&name, inner, out),
            other => out.push((name, other.clone())),
        }
    }
}

fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = table.entry(head.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Reads an environment variable as the type that the default has.
fn typed(key: &str, text: &str, like: Option<&Value>) -> anyhow::Result<Value> {
    match like {
        Some(Value::Integer(_)) => {
            let number =
                text.parse().with_context(|| format!("{} must be a whole number", model::env::setting(key)))?;
            Ok(Value::Integer(number))
        }
        Some(Value::Boolean(_)) => Ok(Value::Boolean(
            text.parse().with_context(|| format!("{} must be true or false", model::env::setting(key)))?,
        )),
        Some(Value::Array(_)) => {
            let of = || format!("{} must be a TOML array, such as [{{ name = \"…\", … }}]", model::env::setting(key));
            let table: Table = format!("it = {text}").parse().with_context(of)?;
            table.get("it").filter(|it| it.is_array()).cloned().with_context(of)
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// A value as it may be shown: without secrets in tables, and without the password that a URL may hold.
fn shown(value: &Value) -> String {
    if let Value::Array(items) = value {
        let hidden = |item: &Value| match item {
            Value::Table(table) => {
                let mut table = table.clone();
                if let Some(secret) = table.get_mut("client_secret") {
                    *secret = Value::String("(secret)".into());
                }
                Value::Table(table)
            }
            other => other.clone(),
        };
        return Value::Array(items.iter().map(hidden).collect()).to_string();
    }
    let text = value.to_string();
    match (text.find("://"), text.rfind('@')) {
        (Some(start), Some(end)) if start < end => match text[start + 3..end].find(':') {
            Some(colon) => format!("{}:(secret){}", &text[..start + 3 + colon], &text[end..]),
            None => text,
        },
        _ => text,
    }
}

impl ServerConfig {
    /// Puts the layers together. `env` is the whole environment.
    pub fn load(
        file: Option<&Path>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> anyhow::Result<(Self, Vec<Explained>)> {
        let mut table = Table::try_from(Self::default()).context("the defaults are plain data")?;
        let mut defaults = Vec::new();
        leaves("", &table, &mut defaults);
        let mut names: Vec<String> = defaults.iter().map(|(key, _)| key.clone()).collect();
        names.extend(OPTIONAL.iter().map(|k| (*k).to_owned()));
        let mut origins = std::collections::BTreeMap::new();
        if let Some(path) = file {
            let text = fs_err::read_to_string(path)?;
            let from_file: Table = text.parse().with_context(|| path.display().to_string())?;
            let mut found = Vec::new();
            leaves("", &from_file, &mut found);
            for (key, value) in found {
                if !names.contains(&key) {
                    bail!("{}: unknown key `{key}`; `ferry server config` lists all keys", path.display());
                }
                set(&mut table, &key, value);
                origins.insert(key, Origin::File);
            }
        }
        for (name, text) in env {
            if !name.starts_with(model::env::PREFIX) || !(name.contains("__") || name == model::env::DATA_DIR) {
                continue;
            }
            let Some(key) = names.iter().find(|key| model::env::setting(key) == name) else {
                bail!("{name} names no setting of the server; `ferry server config` lists all of them");
            };
            let like = defaults.iter().find(|(k, _)| k == key).map(|(_, v)| v);
            set(&mut table, key, typed(key, &text, like)?);
            origins.insert(key.clone(), Origin::Environment(name));
        }
        let mut all = Vec::new();
        leaves("", &table, &mut all);
        all.iter().try_for_each(|(key, value)| check_range(key, value))?;
        let explained = all
            .into_iter()
            .map(|(key, value)| Explained {
                value: if SECRET.contains(&key.as_str()) { "(secret)".into() } else { shown(&value) },
                origin: origins.get(&key).cloned().unwrap_or(Origin::Default),
                key,
            })
            .collect();
        let mut config: Self = table.try_into()?;
        config.check()?;
        for provider in &mut config.auth.providers {
            if let Some(file) = &provider.client_secret_file {
                let of = || format!("auth.providers: client_secret_file of `{}`", provider.name);
                provider.client_secret = Some(fs_err::read_to_string(file).with_context(of)?.trim().to_owned());
            }
        }
        Ok((config, explained))
    }

    fn check(&self) -> anyhow::Result<()> {
        let t = &self.timing;
        if t.renew_s * 2 > t.lease_s {
            bail!("timing.renew_s is {}; use at most half of timing.lease_s, which is {}", t.renew_s, t.lease_s);
        }
        if self.tls.cert_file.as_os_str().is_empty() != self.tls.key_file.as_os_str().is_empty() {
            bail!("tls: give both cert_file and key_file, or neither");
        }
        for (key, url) in [("control", &self.control.public_url), ("runner", &self.runner.public_url)] {
            if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                bail!("{key}.public_url is `{url}`; give a URL such as https://ferry.example.com");
            }
        }
        if !matches!(self.builds.launcher.as_str(), "process" | "none") {
            bail!("builds.launcher is `{}`; use `process` or `none`", self.builds.launcher);
        }
        if self.registry.external.contains("://") || self.registry.external.ends_with('/') {
            bail!("registry.external is `{}`; give `host[:port]/path`", self.registry.external);
        }
        let endpoint = &self.telemetry.endpoint;
        if !endpoint.is_empty() && !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            bail!("telemetry.endpoint is `{endpoint}`; give a URL such as http://127.0.0.1:4318");
        }
        self.auth.providers.iter().try_for_each(Provider::check)?;
        if self.mail.smtp_url.is_empty() != self.mail.from.is_empty() {
            bail!("mail: give both smtp_url and from, or neither");
        }
        let mut names: Vec<&str> = self.auth.providers.iter().map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("auth.providers: two are named `{}`", twice[0]);
        }
        crate::telemetry::headers(self.telemetry.headers.as_deref().unwrap_or_default())?;
        if !matches!(self.log.format.as_str(), "json" | "text") {
            bail!("log.format is `{}`; use `json` or `text`", self.log.format);
        }
        Ok(())
    }

    pub fn database_url(&self) -> String {
        match self.database.url.as_str() {
            "" => format!("sqlite:{}", self.data_dir.join("db").display()),
            url => url.to_owned(),
        }
    }

    pub fn blobs_url(&self) -> String {
        match self.blobs.url.as_str() {
            "" => self.data_dir.join("blobs").display().to_string(),
            url => url.to_owned(),
        }
    }

    pub fn master_key_file(&self) -> PathBuf {
        if self.secrets.master_key_file.as_os_str().is_empty() {
            self.data_dir.join("master.key")
        } else {
            self.secrets.master_key_file.clone()
        }
    }
}
