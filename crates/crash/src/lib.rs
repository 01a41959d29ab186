//! Crash points: named places in the code where a test stops a process to kill it, or another one, at that very moment.
//!
//! `crash_point!("runner.start_acked");` is nothing at all unless the feature `crash-points` is on. With it, and with
//! `FERRY_CRASH_FILE` in the environment, the process looks into that file at each point: if it holds the point's name (or
//! `name:n`, for the n-th time that this process comes by), the file is renamed to `….hit`, holding the process's id, and
//! the process stops itself with SIGSTOP. So a file stops one process once. The test then kills whom it wants with SIGKILL,
//! removes `….hit`, and lets the rest go on. What stands still can't flush, answer or clean up: it dies exactly there.
//!
//! With the same feature the runner's clock can be wrong: `FERRY_SKEW_FILE` holds the seconds to add.

/// Which process comes by a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Process {
    Runner,
    Executor,
    Server,
}

/// What becomes of a job that must not be run twice when somebody dies at a point, and comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It finishes, having run once.
    Finishes,
    /// Nobody can tell how far it came: `unknown`, and never run again.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub name: &'static str,
    pub process: Process,
    /// What is under way when the point is come by; the test makes it so.
    pub story: Story,
    /// When the runner dies here. The death of the server alone never costs a job.
    pub runner: Fate,
    /// When the executor dies here; None where there is none.
    pub executor: Option<Fate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// An action is run.
    Action,
    /// An action runs already.
    Running,
    /// A runner joins, then an action is run.
    Join,
    /// A runner finds the execution that an earlier process left.
    Adopt,
    /// A runner is silent for longer than its lease.
    Silence,
    /// The log of an action is folded, after its end.
    Seal,
    /// Terraform makes a plan, which changes nothing and is made again.
    Plan,
    /// Terraform carries a plan out.
    Apply,
    /// A manifest or a chart is applied, in the tests that need a cluster.
    Rollout,
    /// An image or secrets are copied, in the tests that need a cluster. What is there already is not copied again.
    Copy,
}

const fn runner(name: &'static str, runner: Fate, executor: Option<Fate>) -> Point {
    Point { name, process: Process::Runner, story: Story::Action, runner, executor }
}

const fn executor(name: &'static str, own: Fate) -> Point {
    Point { name, process: Process::Executor, story: Story::Action, runner: Fate::Finishes, executor: Some(own) }
}

const fn server(name: &'static str, executor: Option<Fate>) -> Point {
    Point { name, process: Process::Server, story: Story::Action, runner: Fate::Finishes, executor }
}

const fn during(story: Story, point: Point) -> Point {
    Point { story, ..point }
}

use Fate::{Finishes, Unknown};

/// Every point that there is. A unit test compares it with the code; the crash matrix goes through it.
pub const POINTS: &[Point] = &[
    // The session, in the order of a job's way.
    during(Story::Join, runner("runner.key_written", Finishes, None)),
    during(Story::Join, runner("runner.joined", Finishes, None)),
    runner("runner.poll_answered", Finishes, None),
    runner("runner.prepared", Finishes, None),
    runner("runner.before_start", Finishes, None),
    runner("runner.start_acked", Finishes, None),
    runner("runner.started_marked", Finishes, None),
    runner("runner.spawned", Finishes, None),
    during(Story::Running, runner("runner.before_renew", Finishes, Some(Unknown))),
    during(Story::Running, runner("runner.renewed", Finishes, Some(Unknown))),
    during(Story::Running, runner("runner.before_log", Finishes, Some(Unknown))),
    during(Story::Running, runner("runner.log_acked", Finishes, Some(Unknown))),
    runner("runner.before_result", Finishes, None),
    runner("runner.result_acked", Finishes, None),
    runner("runner.before_remove", Finishes, None),
    during(Story::Adopt, runner("runner.adopt", Finishes, Some(Unknown))),
    // The executor.
    executor("executor.locked", Unknown),
    executor("executor.verified", Unknown),
    executor("executor.before_child", Unknown),
    executor("executor.child_spawned", Unknown),
    executor("executor.child_noted", Unknown),
    executor("executor.child_ended", Unknown),
    executor("executor.between_steps", Unknown),
    executor("executor.before_result", Unknown),
    executor("executor.result_written", Finishes),
    during(Story::Plan, executor("executor.before_plan", Finishes)),
    during(Story::Plan, executor("executor.planned", Finishes)),
    during(Story::Plan, executor("executor.before_plan_kept", Finishes)),
    during(Story::Plan, executor("executor.plan_kept", Finishes)),
    during(Story::Apply, executor("executor.before_apply", Unknown)),
    during(Story::Apply, executor("executor.state_locked", Unknown)),
    during(Story::Apply, executor("executor.before_state", Unknown)),
    during(Story::Apply, executor("executor.state_saved", Unknown)),
    during(Story::Apply, executor("executor.before_state_unlock", Unknown)),
    during(Story::Apply, executor("executor.applied", Unknown)),
    during(Story::Rollout, executor("executor.intent_saved", Unknown)),
    during(Story::Rollout, executor("executor.object_applied", Unknown)),
    during(Story::Rollout, executor("executor.object_deleted", Unknown)),
    during(Story::Rollout, executor("executor.helm_ended", Unknown)),
    during(Story::Copy, executor("executor.before_copy", Finishes)),
    during(Story::Copy, executor("executor.copied", Finishes)),
    during(Story::Copy, executor("executor.before_secrets", Finishes)),
    during(Story::Copy, executor("executor.secret_written", Finishes)),
    during(Story::Rollout, executor("executor.job_started", Unknown)),
    during(Story::Rollout, executor("executor.job_pod_seen", Unknown)),
    during(Story::Rollout, executor("executor.job_ended", Unknown)),
    // The server.
    during(Story::Join, server("server.before_join", None)),
    during(Story::Join, server("server.joined", None)),
    server("server.enqueued", None),
    server("server.before_claim", None),
    server("server.claimed", None),
    server("server.before_start", None),
    server("server.started", None),
    during(Story::Running, server("server.before_renew", Some(Unknown))),
    during(Story::Running, server("server.renewed", Some(Unknown))),
    during(Story::Running, server("server.before_log", Some(Unknown))),
    during(Story::Running, server("server.log_stored", Some(Unknown))),
    server("server.before_result", None),
    server("server.result_written", None),
    during(Story::Silence, server("server.leases_ended", Some(Unknown))),
    during(Story::Seal, server("server.segment_put", None)),
    during(Story::Seal, server("server.segment_noted", None)),
    during(Story::Plan, server("server.before_plan", Some(Finishes))),
    during(Story::Plan, server("server.plan_kept", Some(Finishes))),
    during(Story::Apply, server("server.before_state_lock", Some(Unknown))),
    during(Story::Apply, server("server.state_locked", Some(Unknown))),
    during(Story::Apply, server("server.before_state", Some(Unknown))),
    during(Story::Apply, server("server.state_written", Some(Unknown))),
];

/// A place where a test may stop this process.
#[cfg(feature = "crash-points")]
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {
        $crate::reach($name)
    };
}

/// A place where a test may stop this process; nothing in this build.
#[cfg(not(feature = "crash-points"))]
#[macro_export]
macro_rules! crash_point {
    ($name:literal) => {};
}

#[cfg(feature = "crash-points")]
pub use armed::{reach, wall_clock};

/// The time of day, as this machine has it.
#[cfg(not(feature = "crash-points"))]
pub fn wall_clock() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// Whether a rule is broken on purpose: `if !broken!("result_epoch") && …`. A test breaks one to see that the simulator
/// notices; without the feature no rule is ever broken.
#[cfg(feature = "crash-points")]
#[macro_export]
macro_rules! broken {
    ($rule:literal) => {
        $crate::is_broken($rule)
    };
}

/// Whether a rule is broken on purpose; never in this build.
#[cfg(not(feature = "crash-points"))]
#[macro_export]
macro_rules! broken {
    ($rule:literal) => {
        false
    };
}

#[cfg(feature = "crash-points")]
thread_local! {
    static BROKEN: std::cell::Cell<&'static str> = const { std::cell::Cell::new("") };
}

#[cfg(feature = "crash-points")]
pub fn is_broken(rule: &str) -> bool {
    BROKEN.get() == rule
}

/// Breaks a rule in this thread, and no other.
#[cfg(feature = "crash-points")]
pub fn break_rule(rule: &'static str) {
    BROKEN.set(rule);
}

#[cfg(feature = "crash-points")]
mod armed {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::{Duration, SystemTime};

    static FILE: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os(model::env::CRASH_FILE).map(PathBuf::from));
    /// How often this process has come by the point that the file names.
    static SEEN: Mutex<BTreeMap<&str, u32>> = Mutex::new(BTreeMap::new());

    /// The time of day, as far off as a file says.
    pub fn wall_clock() -> SystemTime {
        static SKEW: LazyLock<Option<PathBuf>> =
            LazyLock::new(|| std::env::var_os(model::env::SKEW_FILE).map(PathBuf::from));
        let skew_s =
            SKEW.as_ref().and_then(|file| fs_err::read_to_string(file).ok()?.trim().parse().ok()).unwrap_or(0i64);
        let (now, by) = (SystemTime::now(), Duration::from_secs(skew_s.unsigned_abs()));
        if skew_s < 0 { now - by } else { now + by }
    }

    /// Stops this process if the file says so.
    pub fn reach(name: &'static str) {
        let Some(file) = &*FILE else { return };
        let Ok(wanted) = fs_err::read_to_string(file) else { return };
        let wanted = wanted.trim();
        let (point, time) = wanted.split_once(':').unwrap_or((wanted, "1"));
        if point != name {
            return;
        }
        {
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            let count = seen.entry(name).or_default();
            *count += 1;
            if *count != time.parse().unwrap_or(1) {
                return;
            }
            // The next file counts anew.
            seen.clear();
        }
        let (taken, hit) = (file.with_extension("taken"), file.with_extension("hit"));
        // Whoever renames it is the one to stop.
        if fs_err::rename(file, &taken).is_ok()
            && fs_err::write(&taken, format!("{name} {}", std::process::id())).is_ok()
            && fs_err::rename(&taken, &hit).is_ok()
        {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
            // Another thread may take the signal, and this one would go on for a moment.
            while hit.exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
}

/// The protocol of the Runner API that this process speaks: ours, unless a test says otherwise.
pub fn protocol(ours: u32) -> u32 {
    #[cfg(feature = "crash-points")]
    if let Some(other) = std::env::var(model::env::TEST_PROTOCOL).ok().and_then(|text| text.parse().ok()) {
        return other;
    }
    ours
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;

    fn used(folder: &Path, found: &mut BTreeMap<String, usize>) {
        for entry in fs_err::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
            if entry.is_dir() {
                used(&entry, found);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                let text = fs_err::read_to_string(&entry).expect("text");
                for rest in text.split("crash_point!(\"").skip(1) {
                    let name = rest.split('"').next().expect("a name").to_owned();
                    *found.entry(name).or_default() += 1;
                }
            }
        }
    }

    #[test]
    fn every_point_in_the_code_is_in_the_table_and_the_other_way_round() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
        let mut found = BTreeMap::new();
        for entry in fs_err::read_dir(crates).expect("crates").map(|e| e.expect("an entry").path()) {
            let source = entry.join("src");
            if source.is_dir() && !entry.ends_with("crash") {
                used(&source, &mut found);
            }
        }
        let expected: BTreeSet<&str> = POINTS.iter().map(|p| p.name).collect();
        assert_eq!(POINTS.len(), expected.len(), "no name twice");
        let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, expected, "left: in the code; right: in the table");
        // Each deployer comes by the points of a plan and of an apply in code of its own.
        let shared = |name: &str| {
            POINTS
                .iter()
                .any(|p| p.name == name && matches!(p.story, Story::Plan | Story::Apply | Story::Rollout | Story::Copy))
        };
        for (name, count) in &found {
            assert!(*count == 1 || shared(name), "{name} is in the code {count} times");
        }
        for point in POINTS {
            let prefix = format!("{:?}.", point.process).to_lowercase();
            assert!(point.name.starts_with(&prefix), "{} is a point of the {prefix}", point.name);
        }
    }
}
