//! A whole fleet in one thread, from a seed: the real store in memory, the real conductor and handlers, and the runner's real
//! session logic, on a virtual clock. Networks, disks, processes and people are simulated, and go wrong as the seed says.
//! After every event the invariants are checked. The same seed gives the same story.

mod chance;
mod check;
mod deliver;
mod executor;
mod faults;
mod fleet;
mod founding;
mod machine;
mod network;
mod server;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use model::JobId;
use serde::Serialize;

pub use faults::{Fault, Faults};
pub use fleet::{FleetOptions, FleetReport, run_fleet};

use crate::world::World;

#[derive(Debug, Clone)]
pub struct Options {
    pub runners: usize,
    pub jobs: usize,
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self { runners: 4, jobs: 24, faults: Faults::all() }
    }
}

/// One line of what happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub at_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    pub text: String,
}

/// An invariant that broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub at_ms: u64,
    pub job: Option<JobId>,
    pub what: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub seed: u64,
    pub events: u64,
    /// Requests that reached the server.
    pub requests: u64,
    pub virtual_ms: u64,
    /// How often an invariant was checked.
    pub checks: u64,
    pub jobs: BTreeMap<String, u64>,
    pub faults: BTreeMap<String, u64>,
    pub violation: Option<Violation>,
    #[serde(skip)]
    pub story: Vec<Line>,
}

impl Report {
    /// What happened to a job, and around it.
    pub fn story_of(&self, job: &JobId) -> Vec<&Line> {
        let begin = self.story.iter().position(|line| line.job.as_ref() == Some(job)).unwrap_or(0);
        self.story[begin..].iter().filter(|line| line.job.as_ref().is_none_or(|j| j == job)).collect()
    }

    /// The broken invariant, with the seed and the story of its job.
    pub fn complaint(&self) -> Option<String> {
        let broken = self.violation.as_ref()?;
        let job = broken.job.as_ref().map(|job| format!("job {job}: ")).unwrap_or_default();
        let mut text = format!("seed {}: at {} ms: {job}{}\n", self.seed, broken.at_ms, broken.what);
        let lines = match &broken.job {
            Some(job) => self.story_of(job),
            None => self.story.iter().collect(),
        };
        for line in &lines[lines.len().saturating_sub(STORY_LINES)..] {
            text.push_str(&format!("{line}\n"));
        }
        Some(text)
    }
}

/// The end of a story is what tells why.
const STORY_LINES: usize = 80;

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { at_ms, job, text } = self;
        let mark = if job.is_some() { "job" } else { "" };
        write!(f, "{:>9}.{:03} s  {mark:<3}  {text}", at_ms / 1000, at_ms % 1000)
    }
}

/// Runs one simulation to its end.
pub fn run(seed: u64, options: &Options) -> Report {
    World::new(seed, options.clone()).run(seed)
}

/// Runs many, on all cores; stops at the first that breaks. Returns what they add up to, and the one that broke.
pub fn run_many(seeds: std::ops::Range<u64>, options: &Options, threads: usize) -> (Report, Option<Report>) {
    let next = AtomicU64::new(seeds.start);
    let nothing = Report {
        seed: seeds.start,
        events: 0,
        requests: 0,
        virtual_ms: 0,
        checks: 0,
        jobs: BTreeMap::new(),
        faults: BTreeMap::new(),
        violation: None,
        story: Vec::new(),
    };
    let sum = Mutex::new((nothing, None::<Report>));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let lock = || sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if seed >= seeds.end || lock().1.is_some() {
                return;
            }
            let report = run(seed, options);
            let mut sum = lock();
            sum.0.add(&report);
            if report.violation.is_some() && sum.1.as_ref().is_none_or(|other| report.seed < other.seed) {
                sum.1 = Some(report);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Report {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.requests += other.requests;
        self.virtual_ms += other.virtual_ms;
        self.checks += other.checks;
        for (mine, theirs) in [(&mut self.jobs, &other.jobs), (&mut self.faults, &other.faults)] {
            for (name, count) in theirs {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
    }
}
