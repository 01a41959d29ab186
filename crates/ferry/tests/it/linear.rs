//! Linearizability: fifty clients claim, start, renew, cancel and complete the same jobs at the same time, over HTTP, some of
//! them without waiting for the answer; then an order is looked for that explains everything they were told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::ErrorCode;
use api::client::Client;
use api::control::CreateInstall;
use api::runner::{Held, PollRequest};
use model::papers::Signatory;
use model::runner::{HeldState, RunnerReport};
use model::{ExecutionId, ExecutionResult, JobGroup, JobId, Outcome, Timestamp};
use runner::session::{About, CallError, SessionClient, Unjoined, random_hex};
use testkit::Backend;
use testkit::linear::{Answer, Call, Op, check};
use testkit::system::{System, action, script};

use crate::options;

const RUNNERS: usize = 10;
/// Besides the one that polls.
const CLIENTS: usize = 4;
const JOBS: usize = 3;
const CALLS: usize = 6;

/// What one runner's clients did to the jobs of a round.
struct Round {
    clock: Instant,
    ops: Arc<AtomicU64>,
    jobs: Vec<JobId>,
    calls: Mutex<BTreeMap<JobId, Vec<Call>>>,
    /// What was claimed: job, execution, token, epoch.
    claims: Mutex<Vec<(JobId, ExecutionId, String, u64)>>,
}

impl Round {
    /// Makes a call and notes it; one in eight does not wait for its answer.
    async fn call(
        &self,
        job: &JobId,
        op: Op,
        chance: u64,
        work: impl Future<Output = Option<Answer>>,
    ) -> Option<Answer> {
        let began = self.clock.elapsed().as_nanos() as u64;
        let patience = Duration::from_micros(if chance.is_multiple_of(8) { 200 + chance % 4000 } else { 60_000_000 });
        let answer = tokio::time::timeout(patience, work).await.ok().flatten();
        let ended = self.clock.elapsed().as_nanos() as u64;
        self.ops.fetch_add(1, Ordering::Relaxed);
        self.note(job, Call { began, ended, op, answer: answer.clone() });
        answer
    }

    fn note(&self, job: &JobId, call: Call) {
        self.calls.lock().unwrap().entry(job.clone()).or_default().push(call);
    }
}

fn draw() -> u64 {
    u64::from_str_radix(&random_hex::<7>(), 16).unwrap()
}

/// What an error means; none when nobody can tell.
fn refused(error: &CallError) -> Option<Answer> {
    match error.code() {
        Some(ErrorCode::LeaseLost) => Some(Answer::LeaseLost),
        Some(ErrorCode::Conflict) => Some(Answer::Conflict),
        None | Some(ErrorCode::Unavailable) => None,
        Some(other) => panic!("unexpected: {other:?}: {error}"),
    }
}

/// One look at the queue: an operation on every job of the round.
async fn poll(round: &Round, client: &SessionClient, seq: u64, held: &[usize], chance: u64) {
    let claims: Vec<_> = round.claims.lock().unwrap().clone();
    let held: Vec<_> = held.iter().filter_map(|n| claims.get(*n)).collect();
    let listed = |(_, id, _, epoch): &&(JobId, ExecutionId, String, u64)| Held {
        execution_id: id.clone(),
        epoch: *epoch,
        state: HeldState::Alive,
    };
    let request = PollRequest {
        nonce: random_hex::<16>(),
        process: 1,
        seq,
        free: BTreeMap::from([(JobGroup::Actions, 4)]),
        held: held.iter().map(listed).collect(),
        cancels_known: vec![],
        watch: None,
        settings_version: 1,
        report: RunnerReport { disk_free_bytes: u64::MAX, ..RunnerReport::default() },
        no_wait: true,
    };
    let began = round.clock.elapsed().as_nanos() as u64;
    let patience = Duration::from_micros(if chance.is_multiple_of(6) { 500 + chance % 6000 } else { 60_000_000 });
    let outcome = tokio::time::timeout(patience, client.poll(&request, 1)).await;
    let ended = round.clock.elapsed().as_nanos() as u64;
    round.ops.fetch_add(1, Ordering::Relaxed);
    let taken = match &outcome {
        Ok(Ok(answer)) => Some(Ok(&answer.jobs)),
        Ok(Err(error)) => refused(error).map(Err),
        Err(_) => None,
    };
    for job in &round.jobs {
        let listed = held.iter().filter(|c| c.0 == *job).map(|c| c.3).collect();
        let answer = taken.as_ref().map(|taken| match taken {
            Ok(jobs) => Answer::Claimed(jobs.iter().find(|a| a.job_id == *job).map(|a| a.epoch)),
            Err(answer) => answer.clone(),
        });
        round.note(job, Call { began, ended, op: Op::Poll { listed }, answer });
    }
    if let Some(Ok(jobs)) = taken {
        let claim = |a: &api::runner::Assignment| {
            (a.job_id.clone(), a.execution_id.clone(), a.execution_token.clone(), a.epoch)
        };
        round.claims.lock().unwrap().extend(jobs.iter().map(claim));
    }
}

/// One call of a client on a job that it picks.
async fn one(round: &Round, session: &SessionClient, control: &Client) {
    let chance = draw();
    let claims = round.claims.lock().unwrap().clone();
    let job = &round.jobs[(chance / 11 % JOBS as u64) as usize];
    let mine: Vec<_> = claims.iter().filter(|c| c.0 == *job).collect();
    let Some((_, id, token, epoch)) = (!mine.is_empty()).then(|| mine[(chance / 7) as usize % mine.len()]) else {
        return look(round, control, job, chance).await;
    };
    let (about, epoch) = (About { id, token }, *epoch);
    match chance / 64 % 10 {
        0..3 => {
            let work = async { session.start(about).await.map_or_else(|e| refused(&e), |_| Some(Answer::Started)) };
            round.call(job, Op::Start(epoch), chance, work).await;
        }
        3..6 => {
            let held = vec![Held { execution_id: id.clone(), epoch, state: HeldState::Alive }];
            let work = async {
                match session.renew(held, Duration::from_secs(60)).await {
                    Ok(answer) if answer.renewed.contains(id) => {
                        Some(Answer::Renewed { cancel: answer.cancels.contains(id) })
                    }
                    Ok(_) => Some(Answer::LeaseLost),
                    Err(error) => refused(&error),
                }
            };
            round.call(job, Op::Renew(epoch), chance, work).await;
        }
        6..8 => {
            let outcome = if chance.is_multiple_of(2) { Outcome::Finished } else { Outcome::Failed };
            complete(round, session, job, about, epoch, outcome, chance).await;
        }
        _ => look(round, control, job, chance).await,
    }
}

async fn complete(
    round: &Round,
    session: &SessionClient,
    job: &JobId,
    about: About<'_>,
    epoch: u64,
    outcome: Outcome,
    chance: u64,
) {
    let now = Timestamp::from_micros(1);
    let result = ExecutionResult {
        outcome,
        error: None,
        steps: vec![],
        outputs: serde_json::Map::new(),
        log_chunks: 0,
        started_at: now,
        finished_at: now,
    };
    let work = async {
        let answer = session.result(about, epoch, &result).await;
        answer.map_or_else(|e| refused(&e), |a| Some(Answer::Recorded(a.recorded)))
    };
    round.call(job, Op::Complete(epoch, outcome), chance, work).await;
}

/// Cancels, or just looks.
async fn look(round: &Round, control: &Client, job: &JobId, chance: u64) {
    let cancels = (chance / 1024).is_multiple_of(3);
    let op = if cancels { Op::Cancel } else { Op::Get };
    let work = async {
        let answer = if cancels { control.cancel_job(job).await } else { control.job(job).await };
        match answer {
            Ok(job) => Some(Answer::State(job.status)),
            Err(error) if error.code() == Some(ErrorCode::Conflict) => Some(Answer::Conflict),
            Err(_) => None,
        }
    };
    round.call(job, op, chance, work).await;
}

/// One runner with its clients, round after round.
async fn crew(system: &System, n: usize, url: String, ops: Arc<AtomicU64>, wanted: u64) -> u64 {
    let control = system.client.clone();
    let name = CreateInstall::local(format!("c{n}"));
    let app = system.install.app_id.to_string();
    let install = control.create_install(&app, &name).await.unwrap();
    let join = control.create_join_command(install.runner_id.as_str()).await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let key = Signatory::from_seed(&[n as u8 + 1; 32]);
    let joined = Unjoined { http: &http, url: &url }.join(&join.credential, &key, "linear").await.unwrap();
    let session = SessionClient::new(http, &url, joined.runner_id, joined.generation, key);
    let (clock, mut seq, mut checked) = (Instant::now(), 0, 0);
    while ops.load(Ordering::Relaxed) < wanted {
        let mut jobs = Vec::new();
        for _ in 0..JOBS {
            let made = control.create_action_run(install.id.as_str(), &action(vec![script("run", "true")])).await;
            jobs.push(made.unwrap().id);
        }
        let (calls, claims) = (Mutex::default(), Mutex::default());
        let round = Round { clock, ops: Arc::clone(&ops), jobs, calls, claims };
        let (round, session, control) = (&round, &session, &control);
        let clients = (0..CLIENTS).map(|_| async move {
            for _ in 0..CALLS {
                one(round, session, control).await;
            }
        });
        let poller = async {
            for look in 0..4u64 {
                seq += 1;
                // Now and then a claim is left out, whatever became of it.
                let count = round.claims.lock().unwrap().len();
                let held: Vec<usize> = (0..count).filter(|_| look == 0 || !draw().is_multiple_of(6)).collect();
                // The last one waits: then no earlier one can come late, and touch the next round's jobs.
                poll(round, session, seq, &held, if look == 3 { 1 } else { draw() }).await;
            }
        };
        futures::join!(poller, futures::future::join_all(clients));
        // Everything comes to its end, so that nothing is left for the next round.
        for job in &round.jobs {
            let claims: Vec<_> = round.claims.lock().unwrap().iter().filter(|c| c.0 == *job).cloned().collect();
            if let Some((_, id, token, epoch)) = claims.last() {
                complete(round, session, job, About { id, token }, *epoch, Outcome::Finished, 1).await;
            }
            look(round, control, job, 1).await;
            look(round, control, job, 1025).await;
        }
        for (job, history) in round.calls.lock().unwrap().iter() {
            checked += history.len() as u64;
            check(history).unwrap_or_else(|broken| panic!("job {job}: {broken}"));
        }
    }
    checked
}

async fn linear(backend: Backend) {
    let wanted = std::env::var("FERRY_LINEAR_OPS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    // Leases that do not end meanwhile: nothing happens but what the clients do.
    let options = options().on(backend).with("FERRY_TIMING__LEASE_S", 3600).with("FERRY_TIMING__RENEW_S", 600);
    let system = System::start(options).await;
    let (ops, started) = (Arc::default(), Instant::now());
    let crews = (0..RUNNERS).map(|n| crew(&system, n, system.runner_url.clone(), Arc::clone(&ops), wanted));
    let checked: u64 = futures::future::join_all(crews).await.into_iter().sum();
    let (ops, took) = (ops.load(Ordering::Relaxed), started.elapsed().as_secs_f64());
    eprintln!("{backend}: {ops} operations in {took:.0} s, {checked} calls explained, no anomaly");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_see_one_order_on_sqlite() {
    linear(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_see_one_order_on_postgres() {
    linear(Backend::Postgres).await;
}
