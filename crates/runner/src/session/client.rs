//! The runner's side of the Runner API: every request is signed, and every request has a bound.

use std::time::Duration;

use api::runner::{
    Assignment, Held, JoinAnswer, JoinRequest, KeysAnswer, LogAnswer, PollAnswer, PollRequest, ProgressRequest,
    RenewAnswer, RenewRequest, ResultAnswer, ResultRequest, StartAnswer, UnreadableJob, join_proof,
};
use api::{ErrorBody, ErrorCode, headers};
use bytes::Bytes;
use model::build::{PullLogin, RegistryAccess};
use model::papers::{RequestText, Signatory};
use model::{Digest, ExecutionId, ExecutionResult, RunnerId, StepResult, Timestamp, constants};
use reqwest::Method;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;

use super::core::Over;
use crate::metrics::Metrics;
use crate::net;
use crate::patience::Transient;

/// How a request may go wrong.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the control plane can't be reached: {0}")]
    Transport(String),
    #[error("{}", told(.0))]
    Refused(Box<ErrorBody>),
    #[error("the control plane's answer can't be read: {0}")]
    Unreadable(String),
}

fn told(body: &ErrorBody) -> String {
    match body.hint.as_deref() {
        Some(hint) if !hint.is_empty() => format!("{}; {hint}", body.error),
        Some(_) | None => body.error.clone(),
    }
}

impl Transient for CallError {
    fn is_transient(&self) -> bool {
        CallError::is_transient(self)
    }
}

impl CallError {
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(body) => ErrorCode::parse(&body.code),
            Self::Transport(_) | Self::Unreadable(_) => None,
        }
    }

    /// Why the session is over, where the server said that it is.
    pub fn over(&self) -> Option<Over> {
        match self.code()? {
            ErrorCode::SessionFenced => Some(Over::Fenced),
            ErrorCode::RunnerRevoked => Some(Over::Revoked),
            _ => None,
        }
    }

    /// Whether the same request may be answered otherwise later.
    pub fn is_transient(&self) -> bool {
        self.code().is_none_or(ErrorCode::is_transient)
    }
}

pub fn now() -> Timestamp {
    Timestamp::from_system(crash::wall_clock())
}

pub fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    hex::encode(bytes)
}

pub fn random_u128() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u128::from_be_bytes(bytes)
}

/// Bounds of requests that no session makes, and of those that fetch what may be large.
pub(super) const CALL: Duration = Duration::from_secs(20);
pub(super) const FETCH: Duration = Duration::from_secs(60);
const ARTIFACT: Duration = Duration::from_secs(300);
/// However short a hold is, an ordinary request may take this long.
const PATIENCE_LEAST: Duration = Duration::from_secs(4);

/// Asks for the server's signing keys and opens a session; nothing is signed yet.
pub struct Unjoined<'a> {
    pub http: &'a reqwest::Client,
    pub url: &'a str,
}

impl Unjoined<'_> {
    pub async fn keys(&self) -> Result<KeysAnswer, CallError> {
        let request = self.http.get(format!("{}/v1/keys", self.url)).timeout(CALL);
        read(request.header(headers::PROTOCOL, crash::protocol(constants::PROTOCOL))).await
    }

    pub async fn join(&self, credential: &str, key: &Signatory, hostname: &str) -> Result<JoinAnswer, CallError> {
        let public_key = key.public();
        let proof = key.request(&join_proof(&public_key).text());
        let body = JoinRequest {
            credential: credential.to_owned(),
            public_key,
            proof,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hostname: hostname.to_owned(),
        };
        let request = self.http.post(format!("{}/v1/join", self.url)).timeout(CALL).json(&body);
        read(request.header(headers::PROTOCOL, crash::protocol(constants::PROTOCOL))).await
    }
}

/// The session's signed client; cheap to clone.
#[derive(Clone)]
pub struct SessionClient {
    http: reqwest::Client,
    url: String,
    runner: RunnerId,
    generation: u64,
    key: Signatory,
    /// Bound of an ordinary request. One that carries much has half as much again; a poll has half of it on top of its hold: what
    /// a dead connection swallows is sent again, and taken, within two holds.
    patience: Duration,
    metrics: Metrics,
}

/// Which execution a request is about: its id and its token.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    pub id: &'a ExecutionId,
    pub token: &'a str,
}

impl SessionClient {
    pub fn new(http: reqwest::Client, url: &str, runner: RunnerId, generation: u64, key: Signatory) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        let metrics = Metrics::default();
        Self { http, url, runner, generation, key, patience: patience(constants::HOLD_S), metrics }
    }

    /// The same client for a server that holds polls for so long.
    #[must_use]
    pub fn with_hold(self, hold_s: u64) -> Self {
        Self { patience: patience(hold_s), ..self }
    }

    /// The same client, counted by others.
    #[must_use]
    pub fn counted_by(self, metrics: Metrics) -> Self {
        Self { metrics, ..self }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn counted<T>(&self, call: &str, answer: Result<T, CallError>) -> Result<T, CallError> {
        let outcome = match &answer {
            Ok(_) => "ok",
            Err(CallError::Refused(_)) => "refused",
            Err(_) => "failed",
        };
        self.metrics.called(call, outcome, now());
        answer
    }

    fn upload(&self) -> Duration {
        self.patience * 3 / 2
    }

    pub(super) fn runner(&self) -> &RunnerId {
        &self.runner
    }

    pub(super) fn request(
        &self,
        method: Method,
        path: &str,
        nonce: &str,
        body: Bytes,
        bound: Duration,
    ) -> reqwest::RequestBuilder {
        let time = now().to_string();
        let url = format!("{}{path}", self.url);
        // A server may live under a prefix; the signature covers what it will see.
        let target = reqwest::Url::parse(&url).map_or_else(|_| path.to_owned(), |u| u.path().to_owned());
        let text = RequestText {
            method: method.as_str(),
            path_and_query: &target,
            runner: self.runner.as_str(),
            generation: self.generation,
            time: &time,
            nonce,
            body: &body,
        };
        let signature = self.key.request(&text.text());
        self.http
            .request(method, url)
            .timeout(bound)
            .header(headers::PROTOCOL, crash::protocol(constants::PROTOCOL))
            .header(headers::RUNNER, self.runner.as_str())
            .header(headers::GENERATION, self.generation)
            .header(headers::TIME, time)
            .header(headers::NONCE, nonce)
            .header(headers::SIGNATURE, signature)
            .body(body)
    }

    pub(super) fn on(
        &self,
        method: Method,
        about: About<'_>,
        rest: &str,
        body: Bytes,
        bound: Duration,
    ) -> reqwest::RequestBuilder {
        let path = format!("/v1/executions/{}/{rest}", about.id);
        self.request(method, &path, &random_hex::<8>(), body, bound).header(headers::EXECUTION_TOKEN, about.token)
    }

    pub async fn poll(&self, request: &PollRequest, hold_s: u64) -> Result<PollAnswer, CallError> {
        let path = format!("/v1/runners/{}/poll", self.runner);
        let bound = Duration::from_secs(hold_s) + self.patience / 2;
        let answer = raw(self.request(Method::POST, &path, &request.nonce, json(request)?, bound)).await;
        let body = self.counted("poll", answer)?;
        parse_answer(&body).map_err(|e| CallError::Unreadable(e.to_string()))
    }

    pub async fn renew(&self, executions: Vec<Held>, bound: Duration) -> Result<RenewAnswer, CallError> {
        let path = format!("/v1/runners/{}/renew", self.runner);
        let body = json(&RenewRequest { executions })?;
        self.counted("renew", read(self.request(Method::POST, &path, &random_hex::<8>(), body, bound)).await)
    }

    pub async fn leave(&self) -> Result<(), CallError> {
        let path = format!("/v1/runners/{}/leave", self.runner);
        let request = self.request(Method::POST, &path, &random_hex::<8>(), Bytes::new(), Duration::from_secs(2));
        raw(request).await.map(|_| ())
    }

    pub async fn start(&self, about: About<'_>) -> Result<StartAnswer, CallError> {
        read(self.on(Method::POST, about, "start", Bytes::new(), self.patience)).await
    }

    pub async fn spec(&self, about: About<'_>) -> Result<Bytes, CallError> {
        raw(self.on(Method::GET, about, "spec", Bytes::new(), FETCH)).await
    }

    pub async fn artifact(&self, about: About<'_>, digest: &Digest) -> Result<Bytes, CallError> {
        let path = format!("artifacts/{digest}");
        raw(self.on(Method::GET, about, &path, Bytes::new(), ARTIFACT)).await
    }

    pub async fn registry_token(&self, about: About<'_>) -> Result<RegistryAccess, CallError> {
        read(self.on(Method::POST, about, "registry-token", Bytes::new(), CALL)).await
    }

    pub async fn pull_login(&self, about: About<'_>) -> Result<PullLogin, CallError> {
        read(self.on(Method::POST, about, "pull-login", Bytes::new(), CALL)).await
    }

    pub async fn progress(&self, about: About<'_>, epoch: u64, steps: Vec<StepResult>) -> Result<(), CallError> {
        let body = json(&ProgressRequest { epoch, steps })?;
        raw(self.on(Method::POST, about, "progress", body, self.patience)).await.map(|_| ())
    }

    pub async fn append_log(&self, about: About<'_>, batch: Bytes) -> Result<LogAnswer, CallError> {
        let bytes = batch.len();
        let answer = self.counted("logs", read(self.on(Method::POST, about, "logs", batch, self.upload())).await)?;
        self.metrics.log_sent(bytes);
        Ok(answer)
    }

    pub async fn result(
        &self,
        about: About<'_>,
        epoch: u64,
        result: &ExecutionResult,
    ) -> Result<ResultAnswer, CallError> {
        let body = json(&ResultRequest { epoch, result: result.clone() })?;
        let answer = self.counted("result", read(self.on(Method::POST, about, "result", body, self.upload())).await)?;
        self.metrics.result_taken(result.outcome);
        Ok(answer)
    }
}

/// An answer whose jobs can be read one by one: one of a type that this runner does not know must not hide the others.
fn parse_answer(body: &[u8]) -> serde_json::Result<PollAnswer> {
    serde_json::from_slice(body).or_else(|_| {
        let mut value: serde_json::Value = serde_json::from_slice(body)?;
        let jobs = value.get_mut("jobs").map(serde_json::Value::take).unwrap_or_default();
        value["jobs"] = serde_json::Value::Array(Vec::new());
        let mut answer: PollAnswer = serde_json::from_value(value)?;
        for job in jobs.as_array().into_iter().flatten() {
            match Assignment::deserialize(job) {
                Ok(assignment) => answer.jobs.push(assignment),
                Err(_) => answer.unreadable.push(UnreadableJob::deserialize(job)?),
            }
        }
        Ok(answer)
    })
}

/// Four fifths of a hold.
fn patience(hold_s: u64) -> Duration {
    (Duration::from_secs(hold_s) * 4 / 5).max(PATIENCE_LEAST)
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<Bytes, CallError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|e| CallError::Unreadable(e.to_string()))
}

pub(super) async fn raw(request: reqwest::RequestBuilder) -> Result<Bytes, CallError> {
    let transport = |e: reqwest::Error| CallError::Transport(net::chain(&e));
    let response = request.header("content-type", "application/json").send().await.map_err(transport)?;
    let status = response.status();
    let body = response.bytes().await.map_err(transport)?;
    if status.is_success() {
        return Ok(body);
    }
    match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(error) => Err(CallError::Refused(Box::new(error))),
        // A proxy or a load balancer answered, not the control plane.
        Err(_) => Err(CallError::Transport(format!("something on the way answered {status}"))),
    }
}

pub(super) async fn read<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, CallError> {
    let body = raw(request).await?;
    serde_json::from_slice(&body).map_err(|e| CallError::Unreadable(e.to_string()))
}
