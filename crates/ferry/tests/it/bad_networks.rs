//! Bad networks between a real runner and a real server, over TLS: while one lasts every request comes to an end, and after it
//! work goes on within two hold periods, with nothing done twice, no byte of a log missing, and nothing left open.
//!
//! `FERRY_SOAK_S` says how long each fault lasts; `scripts/soak.sh` sets it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use api::control::Job;
use model::JobState;
use testkit::faults::{Faults, Mode};
use testkit::system::{Options, Runner, System, action, script, until};

use crate::{net, seconds};

const HOLD_S: u64 = 5;
/// How long the server keeps a connection that brings nothing.
const IDLE_S: u64 = 8;
/// After the fault: two hold periods, and what a script itself takes on a busy machine.
const RECOVERY: Duration = Duration::from_secs(2 * HOLD_S + 2);
/// What a process may grow by meanwhile; a leak of every try would be more.
const GROWTH_KIB: u64 = 32 << 10;

fn net_options(dir: &std::path::Path) -> Options {
    net::with_tls(dir, "ferry.test")
        .with("FERRY_TIMING__HOLD_S", HOLD_S)
        .with("FERRY_TIMING__OFFLINE_S", 900)
        .with("FERRY_LIMITS__IDLE_S", IDLE_S)
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Holds {
    sockets: usize,
    rss_kib: u64,
}

fn holds(pid: i32) -> Holds {
    let fds = fs_err::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let is_socket = |path: PathBuf| fs_err::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let rss = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    let rss_kib = rss.trim().trim_end_matches(" kB").parse().unwrap();
    Holds { sockets: fds.filter(|fd| is_socket(fd.path())).count(), rss_kib }
}

/// Waits until a process holds hardly more than before.
async fn until_let_go(what: &str, pid: i32, before: Holds, fault: Duration) -> Holds {
    // The backlog of a longer fault is delivered at once; the allocator keeps what that took.
    let growth_kib = GROWTH_KIB + (fault.as_secs() << 10);
    until(&format!("{what} lets connections and memory go"), seconds(IDLE_S + HOLD_S + 15), async || {
        let after = holds(pid);
        let fits = after.sockets <= before.sockets + 2 && after.rss_kib <= before.rss_kib + growth_kib;
        if fits { Ok(after) } else { Err(format!("{before:?}, then {after:?}")) }
    })
    .await
}

/// A script that writes what nobody can compress, in its log and in a witness, until its gate opens.
async fn noisy(system: &System) -> Job {
    let path = |name: &str| system.witness(name).display().to_string();
    let job = system
        .script(&format!(
            "echo begin >> {0}\nwhile [ ! -e {1} ]; do head -c 6000 /dev/urandom | base64 | tee -a {2}; sleep 0.1; done\necho end >> {0}",
            path("noisy"),
            path("noisy.go"),
            path("noise"),
        ))
        .await;
    system.until_witness("noisy", "begin").await;
    job
}

/// The job ran once, to its end.
async fn finished_once(system: &System, job: &Job, bound: Duration) -> Job {
    let job = system.until_job(&job.id, "it is over", bound, |j| j.status.is_terminal()).await;
    assert_eq!(job.status, JobState::Finished, "{}", job.status_description);
    assert_eq!(job.executions.iter().filter(|e| e.started_at.is_some()).count(), 1, "{:#?}", job.executions);
    job
}

struct World {
    _dir: tempfile::TempDir,
    system: System,
    proxy: Faults,
    runner: Runner,
}

async fn world() -> World {
    let dir = testkit::system::temporary();
    let mut system = System::start(net_options(dir.path())).await;
    let proxy = Faults::start(system.listeners().1);
    system.go_through(None, Some(proxy.address));
    let runner = system.start_runner("a").await;
    World { _dir: dir, system, proxy, runner }
}

/// Lives through one fault with a script at work and another one waiting.
async fn survives(mode: Mode, fault: Duration) {
    let fault = std::env::var("FERRY_SOAK_S").map_or(fault, |s| seconds(s.parse().expect("seconds")));
    let World { system, proxy, runner, _dir } = world().await;
    let running = noisy(&system).await;
    assert_eq!(system.run(vec![script("warm", "true")]).await.status, JobState::Finished);
    let (server_before, runner_before) = (holds(system.server().pid()), holds(runner.pid()));
    proxy.set(mode);
    let (began, connections) = (Instant::now(), proxy.taken());
    let waiting = system
        .submit(&action(vec![script("run", &format!("echo ran >> {}", system.witness("waiting").display()))]))
        .await;
    if matches!(mode, Mode::Delay(_)) {
        finished_once(&system, &waiting, seconds(20)).await;
    }
    tokio::time::sleep(fault.saturating_sub(began.elapsed())).await;
    let tries = proxy.taken() - connections;
    assert!(matches!(mode, Mode::Delay(_)) || tries > 0, "no request came to an end within {fault:?}");
    proxy.set(Mode::Pass);
    let over = Instant::now();
    fs_err::write(system.witness("noisy.go"), "").unwrap();
    finished_once(&system, &waiting, RECOVERY).await;
    let first = over.elapsed();
    let running = finished_once(&system, &running, RECOVERY.saturating_sub(first).max(seconds(1))).await;
    let recovered = over.elapsed();
    assert!(recovered <= RECOVERY, "work went on after {recovered:?}");
    assert_eq!((system.lines("noisy").len(), system.lines("waiting").len()), (2, 1), "each ran once");
    let log = system.raw_log(&running, Some("stdout")).await;
    assert!(log == fs_err::read(system.witness("noise")).unwrap(), "the log is not what the script wrote");
    let server = until_let_go("the server", system.server().pid(), server_before, fault).await;
    let holder = until_let_go("the runner", runner.pid(), runner_before, fault).await;
    eprintln!(
        "{mode:?} for {fault:.0?}: {tries} connections meanwhile; a new job after {first:.1?}, all after {recovered:.1?}; {} bytes of log; server {server_before:?} {server:?}; runner {runner_before:?} {holder:?}",
        log.len()
    );
    system.until_quiet().await;
}

#[tokio::test]
async fn connections_that_are_cut() {
    survives(Mode::Cut, seconds(4)).await;
}

#[tokio::test]
async fn everything_takes_longer() {
    survives(Mode::Delay(Duration::from_millis(400)), seconds(4)).await;
}

#[tokio::test]
async fn answers_that_never_arrive() {
    survives(Mode::HalfOpen, seconds(9)).await;
}

#[tokio::test]
async fn a_black_hole() {
    survives(Mode::BlackHole, seconds(9)).await;
}

#[tokio::test]
async fn a_trickle_of_one_byte_a_second() {
    survives(Mode::Trickle, seconds(9)).await;
}

#[tokio::test]
async fn tls_that_is_cut_in_the_middle_of_a_body() {
    survives(Mode::CutAfter(9_000), seconds(5)).await;
}
