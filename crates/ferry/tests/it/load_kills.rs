//! Under load, with kills every few seconds: nothing that was acknowledged is lost, nothing is completed twice, logs are
//! exact to the byte, and work flows again at once. Two hundred jobs a second go to simulated runners, five to real executors.
//!
//! `FERRY_SOAK_S` says for how long; `scripts/soak.sh` sets it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::control::Job;
use model::JobState;
use testkit::faults::Faults;
use testkit::load::{Gauge, Load, acknowledged, completed_once, read_log};
use testkit::system::{Options, System, action, script};
use testkit::{Backend, OwnPostgres};

use crate::{options, seconds};

const SIMULATED_PER_S: u32 = 200;
const REAL_PER_S: u32 = 5;
/// A build for debugging on a busy machine reaches less: fewer jobs are under way, so that what is measured is the recovery
/// and not how long they stand in line.
const UNDER_WAY: usize = if cfg!(debug_assertions) { 24 } else { 200 };
const LEAST_PER_S: usize = if cfg!(debug_assertions) { 2 } else { 25 };
const RUNNERS: usize = 16;
/// Two seconds are promised. A build for debugging on a busy machine stands in line for as long; it may take twice that.
const RECOVERY: Duration = Duration::from_secs(if cfg!(debug_assertions) { 4 } else { 2 });
const RECOVERY_MOST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 4 });

fn duration() -> Duration {
    let text = std::env::var("FERRY_SOAK_S").ok();
    text.map_or(seconds(10), |s| seconds(s.parse().expect("FERRY_SOAK_S is a number of seconds")))
}

/// Longer leases than other tests have: what is proven here does not depend on them, and the machine is busy.
fn busy_options() -> Options {
    options().with("FERRY_TIMING__LEASE_S", 20).with("FERRY_TIMING__RENEW_S", 5).with("FERRY_LOG__LEVEL", "warn")
}

fn draw(bound: u64) -> u64 {
    u64::from_str_radix(&runner::session::random_hex::<7>(), 16).unwrap() % bound
}

/// Scripts on real executors, five a second: each leaves a line in the witness, and a log that is known.
async fn offer_scripts(system_client: &api::client::Client, install: &str, witness: &str, until: Instant) -> Vec<Job> {
    let mut timer = tokio::time::interval(Duration::from_secs(1) / REAL_PER_S);
    let mut asked = tokio::task::JoinSet::new();
    let mut n = 0;
    while Instant::now() < until {
        timer.tick().await;
        n += 1;
        let (client, install) = (system_client.with_idempotency_key(format!("script-{n}")), install.to_owned());
        let wanted = action(vec![script("run", &format!("echo {n} >> {witness}\nseq {n} {}", n + 200))]);
        let wanted = api::control::CreateActionRun { name: Some(n.to_string()), ..wanted };
        asked.spawn(async move { acknowledged(|| client.create_action_run(&install, &wanted)).await.unwrap() });
    }
    asked.join_all().await
}

/// What real executors did: each script once, to its end, with its whole log.
async fn compare_scripts(system: &System, jobs: &[Job]) {
    for job in jobs {
        let n: u64 = job.name.as_deref().unwrap().parse().unwrap();
        let job = system.until_job(&job.id, "it is over", seconds(60), |j| j.status.is_terminal()).await;
        assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
        let started = job.executions.iter().filter(|e| e.started_at.is_some()).count();
        assert_eq!((started, job.executions.len() as u64), (1, job.execution_count), "{job:#?}");
        let log = read_log(&system.client, &job, Some("stdout")).await.unwrap();
        let expected: String = (n..=n + 200).map(|i| format!("{i}\n")).collect();
        assert!(log == expected.as_bytes(), "the log of {} is {}", job.id, String::from_utf8_lossy(&log));
    }
    let mut ran: Vec<u64> = system.lines("scripts").iter().map(|line| line.parse().unwrap()).collect();
    ran.sort_unstable();
    let all: Vec<u64> = (1..=jobs.len() as u64).collect();
    assert_eq!(ran, all, "every script ran once");
    completed_once(&system.client, &jobs.iter().map(|j| j.id.clone()).collect::<BTreeSet<_>>()).await.unwrap();
}

/// Puts the load on, lets `kills` have its way meanwhile, and compares.
async fn under_load(
    name: &str,
    mut system: System,
    kills: impl AsyncFnOnce(&mut System, Gauge, Instant) -> Vec<Duration>,
) {
    let _runner = system.start_runner("a").await;
    let mut load = Load::start(&system.client, &system.runner_url, RUNNERS).await.unwrap();
    let (client, install, witness) =
        (system.client.clone(), system.install.id.to_string(), system.witness("scripts").display().to_string());
    let (began, gauge) = (Instant::now(), load.gauge());
    let until = began + duration();
    let over = AtomicBool::new(false);
    let ((), scripts, mut recovered) = tokio::join!(
        load.offer(SIMULATED_PER_S, UNDER_WAY, &over),
        offer_scripts(&client, &install, &witness, until),
        async {
            let recovered = kills(&mut system, gauge, until).await;
            // Not before: whether work flows after the last kill is seen by the work.
            over.store(true, Ordering::Relaxed);
            recovered
        }
    );
    let (delivered, took) = (load.delivered(), began.elapsed());
    compare_scripts(&system, &scripts).await;
    let compared = load.compare(seconds(60)).await.unwrap();
    recovered.sort_unstable();
    let (median, most) = (recovered[recovered.len() / 2], recovered[recovered.len() - 1]);
    eprintln!(
        "{name}: {} kills; {} jobs ({:.0}/s) and {} scripts; {} claims went back; {} log bytes; recovery {median:.1?}, at most {most:.1?}; all in {:.0?}",
        recovered.len(),
        compared.jobs,
        delivered as f64 / took.as_secs_f64(),
        scripts.len(),
        compared.handed_back,
        compared.log_bytes,
        began.elapsed(),
    );
    assert!(recovered.len() >= duration().as_secs() as usize / 8, "too few kills: {}", recovered.len());
    assert!(compared.jobs >= duration().as_secs() as usize * LEAST_PER_S, "hardly any load: {} jobs", compared.jobs);
    // The median of a few says nothing.
    let typical = recovered.len() < 5 || median <= RECOVERY;
    assert!(typical && most <= RECOVERY_MOST, "work flowed again after {recovered:?}");
    system.until_quiet().await;
}

/// Waits one to five seconds; false when the time is up.
async fn a_while(until: Instant) -> bool {
    tokio::time::sleep(Duration::from_millis(1000 + draw(4000))).await;
    Instant::now() < until
}

async fn one_server_on_sqlite() {
    let system = System::start(busy_options()).await;
    under_load("SQLite, server killed", system, async |system, gauge, until| {
        let mut recovered = Vec::new();
        while a_while(until).await {
            system.kill_server();
            let restart = Instant::now();
            system.start_server().await;
            recovered.push(gauge.until_flows(restart, seconds(60)).await.unwrap());
        }
        recovered
    })
    .await;
}

/// The time counts from the kill: the other replica is there.
async fn two_replicas_on_postgresql() {
    let mut system = System::start(busy_options().on(Backend::Postgres)).await;
    system.add_replica().await;
    let (control, runner) = system.listeners();
    let (control, runner) = (Faults::start(control), Faults::start(runner));
    system.go_through(Some(control.address), Some(runner.address));
    under_load("PostgreSQL, one of two replicas killed", system, async |system, gauge, until| {
        let (mut recovered, mut n) = (Vec::new(), 0);
        while a_while(until).await {
            n = (n + 1) % 2;
            system.kill_replica(n);
            let killed = Instant::now();
            let (flows, ()) = tokio::join!(gauge.until_flows(killed, seconds(20)), system.start_replica(n));
            recovered.push(flows.unwrap());
        }
        recovered
    })
    .await;
}

async fn postgresql_restarted() {
    let postgres = OwnPostgres::start();
    let options = Options { database_url: Some(postgres.url.clone()), ..busy_options().on(Backend::Postgres) };
    let system = System::start(options).await;
    under_load("PostgreSQL itself restarted", system, async |_, gauge, until| {
        let mut recovered = Vec::new();
        while a_while(until).await {
            tokio::task::block_in_place(|| postgres.restart());
            recovered.push(gauge.until_flows(Instant::now(), seconds(20)).await.unwrap());
        }
        recovered
    })
    .await;
}

/// One after the other: each takes the whole machine. `FERRY_LOAD` names one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_under_load_while_servers_and_databases_die() {
    let only = std::env::var("FERRY_LOAD").ok();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    assert!(["server", "replicas", "database"].into_iter().any(wanted), "FERRY_LOAD is server, replicas or database");
    if wanted("server") {
        Box::pin(one_server_on_sqlite()).await;
    }
    if wanted("replicas") {
        Box::pin(two_replicas_on_postgresql()).await;
    }
    if wanted("database") {
        Box::pin(postgresql_restarted()).await;
    }
}
