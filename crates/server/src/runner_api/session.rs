//! Who speaks: a runner's session, proven by a signature over the whole request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::{ErrorCode, headers};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use http::HeaderMap;
use model::papers::{PublicKey, RequestText};
use model::{Digest, ExecutionId, JobId, OrgId, RunnerId, Timestamp, constants};
use store::{ExecutionRow, Session, StoreError};

use crate::AppState;
use crate::error::{ApiError, ApiResult};
use crate::request;

/// Public keys of sessions that were seen lately. A session's key never changes, so an entry is never wrong; whether the
/// session was fenced is asked of the database, in the transaction that matters.
#[derive(Clone, Default)]
pub(crate) struct SessionCache {
    entries: Arc<Mutex<Sessions>>,
}

/// By runner and generation.
type Sessions = HashMap<(RunnerId, u64), Arc<Known>>;

const CACHED: usize = 50_000;

impl Known {
    pub(super) fn of(&self) -> conductor::SessionOf<'_> {
        conductor::SessionOf { runner: &self.session.runner_id, generation: self.session.generation }
    }
}

/// A session, with its key parsed.
#[derive(Debug)]
pub(crate) struct Known {
    session: Session,
    key: PublicKey,
}

impl std::ops::Deref for Known {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl SessionCache {
    pub(super) async fn get(&self, state: &AppState, runner: &RunnerId, generation: u64) -> ApiResult<Arc<Known>> {
        let key = (runner.clone(), generation);
        let cached = self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(session) = cached {
            return Ok(session);
        }
        let found = state.store().session(runner, generation).await;
        let session = match found {
            Ok(session) => session,
            Err(StoreError::NotFound(_)) => {
                let text = "this session is not known here";
                return Err(ApiError::new(ErrorCode::BadSignature, text)
                    .hint("join again with a fresh join command and an empty state directory"));
            }
            Err(other) => return Err(other.into()),
        };
        let parsed =
            PublicKey::parse(&session.public_key).map_err(|e| ApiError::new(ErrorCode::BadSignature, e.to_string()))?;
        let known = Arc::new(Known { session, key: parsed });
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CACHED {
            entries.clear();
        }
        entries.insert(key, Arc::clone(&known));
        Ok(known)
    }
}

/// What never changes about an execution.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(super) id: ExecutionId,
    pub(super) org_id: OrgId,
    pub(super) job_id: JobId,
    pub(super) runner_id: RunnerId,
    pub(super) epoch: u64,
    pub(super) token_hash: String,
}

/// Executions that were claimed or spoken of lately. What is kept of one never changes; whether it is current is asked of the
/// database, in the transaction that matters. One is forgotten after a while: the execution may be gone.
#[derive(Clone, Default)]
pub(crate) struct SubjectCache {
    entries: Arc<Mutex<Subjects>>,
}

/// With the time when each was learned.
type Subjects = HashMap<ExecutionId, (Timestamp, Arc<Subject>)>;

const SUBJECTS: usize = 20_000;
const SUBJECT_S: u64 = 60;

impl SubjectCache {
    pub(super) fn put(&self, subject: Subject, now: Timestamp) -> Arc<Subject> {
        let subject = Arc::new(subject);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= SUBJECTS {
            entries.retain(|_, (at, _)| is_fresh(*at, now));
        }
        if entries.len() >= SUBJECTS {
            entries.clear();
        }
        entries.insert(subject.id.clone(), (now, Arc::clone(&subject)));
        subject
    }

    async fn get(&self, state: &AppState, runner: &RunnerId, id: &ExecutionId) -> ApiResult<Arc<Subject>> {
        let now = state.conductor.now();
        let cached = self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some((at, subject)) = cached
            && is_fresh(at, now)
            && subject.runner_id == *runner
        {
            return Ok(subject);
        }
        let ExecutionRow { id, org_id, job_id, runner_id, epoch, token_hash, .. } =
            state.store().execution(runner, id).await?;
        Ok(self.put(Subject { id, org_id, job_id, runner_id, epoch, token_hash }, now))
    }

    /// It is over: nobody will speak of it much.
    pub(super) fn forget(&self, id: &ExecutionId) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn is_fresh(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.since(at) < Duration::from_secs(SUBJECT_S)
}

/// The protocols that this server speaks: its own, and the one before.
pub(crate) fn protocols() -> (u32, u32) {
    let newest = crash::protocol(constants::PROTOCOL);
    (newest.saturating_sub(1).max(1), newest)
}

/// The protocol that the caller speaks: ours or the one before.
pub(super) fn check_protocol(headers: &HeaderMap) -> ApiResult<()> {
    let spoken = headers.get(headers::PROTOCOL).and_then(|v| v.to_str().ok()).unwrap_or("none");
    let (oldest, newest) = protocols();
    match spoken.parse::<u32>() {
        Ok(version) if (oldest..=newest).contains(&version) => Ok(()),
        Ok(version) => {
            let who = if version > newest { "upgrade the control plane" } else { "upgrade the runner" };
            let text = format!("the runner speaks protocol {version}; this server speaks {oldest} to {newest}");
            Err(ApiError::new(ErrorCode::ProtocolUnsupported, text).hint(who))
        }
        Err(_) => Err(ApiError::new(
            ErrorCode::ProtocolUnsupported,
            format!("the request names no protocol; this server speaks {oldest} to {newest}"),
        )),
    }
}

/// A request whose signature was good.
pub(crate) struct Signed {
    pub(super) session: Arc<Known>,
    pub(super) nonce: String,
    pub(super) body: Bytes,
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> ApiResult<&'h str> {
    headers
        .get(name)
        .and_then(|v| v.to_str().ok())
        .ok_or_else(|| ApiError::new(ErrorCode::BadSignature, format!("the request has no {name}")))
}

/// The runner's clock may be wrong by `SKEW_S`; beyond that the skew is named.
pub(super) fn check_time(text: &str, now: Timestamp) -> ApiResult<()> {
    let time = Timestamp::try_from(text.to_owned()).map_err(ApiError::invalid)?;
    let skew = now.since(time).max(time.since(now));
    if skew <= Duration::from_secs(constants::SKEW_S) {
        return Ok(());
    }
    let direction = if time > now { "ahead" } else { "behind" };
    let text = format!("the runner's clock is {} s {direction}: it says {time}, the server {now}", skew.as_secs());
    Err(ApiError::new(ErrorCode::ClockSkew, text).hint("set the runner's clock, for example with chrony"))
}

impl FromRequest<AppState> for Signed {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        check_protocol(request.headers())?;
        let headers = request.headers();
        let refused = |text: &str| ApiError::new(ErrorCode::BadSignature, text);
        let runner = RunnerId::parse(header(headers, headers::RUNNER)?).map_err(|e| refused(&e.to_string()))?;
        let generation: u64 =
            header(headers, headers::GENERATION)?.parse().map_err(|_| refused("the generation is not a number"))?;
        let time = header(headers, headers::TIME)?.to_owned();
        let nonce = header(headers, headers::NONCE)?.to_owned();
        let signature = header(headers, headers::SIGNATURE)?.to_owned();
        let method = request.method().as_str().to_owned();
        let target = request.uri().path_and_query().map(|p| p.as_str().to_owned()).unwrap_or_default();
        let session = state.sessions.get(state, &runner, generation).await?;
        let body = request::bytes(request, state).await?;
        let text = RequestText {
            method: &method,
            path_and_query: &target,
            runner: runner.as_str(),
            generation,
            time: &time,
            nonce: &nonce,
            body: &body,
        };
        if !text.verify_with(&session.key, &signature) {
            return Err(refused("the signature does not match the session's key"));
        }
        check_time(&time, state.conductor.now())?;
        Ok(Self { session, nonce, body })
    }
}

/// A signed request about an execution of this very runner, with the execution's own token.
pub(crate) struct OnExecution {
    pub(super) signed: Signed,
    pub(super) execution: Arc<Subject>,
    /// What follows the execution's id in the path, where something does.
    pub(super) rest: Option<String>,
}

impl FromRequest<AppState> for OnExecution {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let Path(names) = Path::<HashMap<String, String>>::from_request_parts(&mut parts, state)
            .await
            .map_err(|e| ApiError::invalid(e.body_text()))?;
        let token = header(&parts.headers, headers::EXECUTION_TOKEN).map(str::to_owned);
        let signed = Signed::from_request(Request::from_parts(parts, body), state).await?;
        let id = names.get("execution_id").map(String::as_str).unwrap_or_default();
        let id = ExecutionId::parse(id).map_err(|_| StoreError::NotFound("execution"))?;
        Self::find(state, signed, &id, &token?, names.get("digest").cloned()).await
    }
}

impl OnExecution {
    pub(super) async fn find(
        state: &AppState,
        signed: Signed,
        id: &ExecutionId,
        token: &str,
        rest: Option<String>,
    ) -> ApiResult<Self> {
        let execution = state.subjects.get(state, &signed.session.runner_id, id).await?;
        // Compared as hashes of 256-bit secrets: nothing can be learned from how long it takes.
        if Digest::of(token.as_bytes()).hex() != execution.token_hash {
            return Err(ApiError::new(ErrorCode::BadSignature, "the execution token is not this execution's"));
        }
        Ok(Self { signed, execution, rest })
    }
}
