//! The held request: brings jobs the moment they exist, cancellations until the result is in, and settings that changed.

use std::collections::BTreeSet;

use api::ErrorCode;
use api::runner::{Assignment, PollAnswer, PollRequest};
use axum::Json;
use axum::extract::{Path, State};
use crash::crash_point;
use model::papers::Grant;
use model::{Digest, ExecutionId, RunnerId, constants};
use store::{Assigned, PollInput, PollOutput, Session, StoreError, topic};

use super::session::{Signed, Subject};
use crate::AppState;
use crate::error::{ApiError, ApiResult};
use crate::presence::OpenPoll;
use crate::request;

/// Holds a runner's request until there is something to say, or the hold is over.
#[utoipa::path(post, path = "/v1/runners/{runner_id}/poll", tag = "sessions", params(("runner_id" = String, Path)), request_body = PollRequest, responses((status = 200, body = PollAnswer), (status = 409, body = api::ErrorBody)))]
pub(super) async fn poll(
    State(state): State<AppState>,
    Path(runner): Path<String>,
    signed: Signed,
) -> ApiResult<Json<PollAnswer>> {
    let session = &signed.session;
    if runner != session.runner_id.as_str() {
        return Err(StoreError::NotFound("runner").into());
    }
    let wanted: PollRequest = request::parse(&signed.body)?;
    if wanted.nonce != signed.nonce {
        return Err(ApiError::new(ErrorCode::BadSignature, "the nonce in the body is not the one of the request"));
    }
    let seconds = if wanted.no_wait { 0 } else { state.conductor.timing.hold_s };
    let over = tokio::time::sleep(std::time::Duration::from_secs(seconds));
    answer_poll(&state, session, &wanted, over).await.map(Json)
}

/// Answers when there is something to say, or when the time to hold it is `over`.
pub(super) async fn answer_poll(
    state: &AppState,
    session: &Session,
    wanted: &PollRequest,
    over: impl Future<Output = ()>,
) -> ApiResult<PollAnswer> {
    let mut open = OpenPoll::new(state, &session.runner_id);
    let answer = hold(state, &open, session.generation, wanted, over).await;
    open.answered = true;
    answer
}

async fn hold(
    state: &AppState,
    open: &OpenPoll,
    generation: u64,
    wanted: &PollRequest,
    over: impl Future<Output = ()>,
) -> ApiResult<PollAnswer> {
    let runner = &open.runner;
    tokio::pin!(over);
    let changed = state.store().notifier().subscribe(topic::runner(runner));
    let queued = state.store().notifier().subscribe(topic::queued(runner));
    state.presence.seen(runner, Some(wanted.report.clone()), state.conductor.now());
    if wanted.no_wait && !wanted.report.rescues_open.is_empty() {
        // The runner sends a result after this answer, and what follows from it must see the states that wait.
        crate::presence::flush(state).await?;
    }
    let mut was_queued = false;
    loop {
        let (changed, queued) = (changed.notified(), queued.notified());
        tokio::pin!(changed, queued);
        changed.as_mut().enable();
        queued.as_mut().enable();
        let mut input = PollInput {
            runner_id: runner.clone(),
            generation,
            order: (wanted.process, wanted.seq),
            free: wanted.free.clone(),
            held: wanted.held.iter().map(|h| (h.execution_id.clone(), h.epoch, h.state)).collect(),
            lease_s: state.conductor.timing.lease_s,
            now: state.conductor.now(),
            fresh: Vec::new(),
        };
        crash_point!("server.before_claim");
        // What was only queued can't be seen without a write.
        let quiet = if was_queued { None } else { state.store().look(&input).await? };
        let mut tokens = Vec::new();
        let found = match quiet {
            Some(found) => found,
            None => {
                (input.fresh, tokens) = fresh(state, input.most());
                state.conductor.poll(input).await?
            }
        };
        if !found.claimed.is_empty() {
            crash_point!("server.claimed");
        }
        // Who waits for nothing is told what was done, though a poll that was sent before arrives meanwhile.
        if is_news(wanted, &found) || wanted.no_wait {
            return answer(state, runner, generation, wanted, found, &tokens).await;
        }
        tokio::select! {
            biased;
            () = open.superseded.cancelled() => {
                return Err(ApiError::new(ErrorCode::Conflict, "a newer poll of this runner took its place"));
            }
            () = state.gate.cancelled() => {
                let mut answer = answer(state, runner, generation, wanted, found, &tokens).await?;
                answer.restarting = true;
                return Ok(answer);
            }
            () = &mut over => {
                return answer(state, runner, generation, wanted, found, &tokens).await;
            }
            () = queued => was_queued = true,
            () = changed => was_queued = false,
        }
    }
}

/// Ids and tokens for what may be claimed: drawn before, because a transaction draws no randomness.
fn fresh(state: &AppState, count: usize) -> (Vec<(ExecutionId, String)>, Vec<String>) {
    let tokens: Vec<String> = (0..count).map(|_| state.conductor.secret("fxt")).collect();
    let now = state.conductor.now();
    let id = || ExecutionId::new(now, state.conductor.random_u128());
    (tokens.iter().map(|token| (id(), hashed(token))).collect(), tokens)
}

fn hashed(token: &str) -> String {
    Digest::of(token.as_bytes()).hex().to_owned()
}

/// Whether there is something that the runner does not know yet.
fn is_news(wanted: &PollRequest, found: &PollOutput) -> bool {
    let known: BTreeSet<_> = wanted.cancels_known.iter().collect();
    !found.claimed.is_empty()
        || !found.lost.is_empty()
        || found.cancels.iter().any(|c| !known.contains(c))
        || found.settings.version != wanted.settings_version
        || wanted.watch.is_some_and(|known| known != found.watch)
}

async fn answer(
    state: &AppState,
    runner: &RunnerId,
    generation: u64,
    wanted: &PollRequest,
    found: PollOutput,
    tokens: &[String],
) -> ApiResult<PollAnswer> {
    let (keys, now) = (state.conductor.signing_keys(), state.conductor.now());
    let mut jobs = Vec::with_capacity(found.claimed.len());
    for assigned in found.claimed {
        let grant = Grant {
            order_digest: assigned.order.digest(),
            runner_id: runner.clone(),
            generation,
            execution_id: assigned.execution_id.clone(),
            epoch: assigned.job.epoch,
            lease_s: state.conductor.timing.lease_s,
            offline_s: state.conductor.timing.offline_s,
            nonce: wanted.nonce.clone(),
        };
        // A spec that can't be opened is fetched, fails there, and goes back: it does not hold up the others.
        let spec = inline_spec(state, &assigned).await.unwrap_or_else(|error| {
            tracing::error!(job = %assigned.job.id, error = error.internal, "a spec can't be opened");
            None
        });
        let token = &tokens[assigned.fresh];
        let subject = Subject {
            id: assigned.execution_id.clone(),
            org_id: assigned.job.org_id.clone(),
            job_id: assigned.job.id.clone(),
            runner_id: runner.clone(),
            epoch: assigned.job.epoch,
            token_hash: hashed(token),
        };
        state.subjects.put(subject, now);
        jobs.push(Assignment {
            job_id: assigned.job.id,
            job_type: assigned.job.job_type,
            group: assigned.job.group,
            name: assigned.job.name,
            execution_id: assigned.execution_id,
            epoch: assigned.job.epoch,
            log_stream_id: assigned.job.log_stream_id,
            order: assigned.order,
            grant: keys.signatory.grant(&grant),
            execution_token: token.clone(),
            spec,
        });
    }
    Ok(PollAnswer {
        jobs,
        cancels: found.cancels,
        lost: found.lost,
        settings: (found.settings.version != wanted.settings_version).then_some(found.settings),
        watch: found.watch,
        keys: keys.public,
        restarting: false,
        reconnect_ms: reconnect_ms(state),
        server_time: state.conductor.now(),
        unreadable: Vec::new(),
    })
}

/// Over how long runners spread their return after an outage: the more there are, the longer.
fn reconnect_ms(state: &AppState) -> u64 {
    let connected = state.polls.lock().map_or(0, |polls| polls.len() as u64);
    (connected * 2).clamp(500, constants::RECONNECT_IDLE_MS)
}

async fn inline_spec(state: &AppState, assigned: &Assigned) -> ApiResult<Option<String>> {
    if assigned.spec.len() > constants::SPEC_INLINE_BYTES {
        return Ok(None);
    }
    let spec = state.store().open_spec(assigned).await?;
    Ok(String::from_utf8(spec).ok())
}
