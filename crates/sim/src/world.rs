//! The simulated world: one thread, one clock, one source of chance. Everything happens in the order of its time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use conductor::Timing;
use model::papers::TrustedKeys;
use model::{JobId, Outcome};
use store::RunnerChange;

use crate::chance::Chance;
use crate::check::Check;
use crate::founding::ready;
use crate::machine::{Machine, Process};
use crate::network::Call;
use crate::server::{Server, WantedJob};
use crate::{Fault, Line, Options, Report, Violation};

type Act = Box<dyn FnOnce(&mut World)>;

/// What happens next, by time, then by the order in which it was planned.
struct Planned {
    at: Reverse<(u64, u64)>,
    act: Act,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}
impl Eq for Planned {}
impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) now: u64,
    pub(crate) chance: Chance,
    pub(crate) server: Server,
    pub(crate) machines: Vec<Machine>,
    pub(crate) processes: BTreeMap<u64, Process>,
    pub(crate) calls: BTreeMap<u64, Call>,
    pub(crate) check: Check,
    pub(crate) injected: BTreeMap<&'static str, u64>,
    pub(crate) requests: u64,
    /// Faults are over.
    pub(crate) quiet: bool,
    /// The server did something since it was last looked at.
    pub(crate) touched: bool,
    plan: BinaryHeap<Planned>,
    numbers: u64,
    events: u64,
    story: Vec<Line>,
    broken: Option<Violation>,
    /// When all jobs had an end; the last checks come a while later.
    settled_at: Option<u64>,
    over: bool,
}

/// How long faults go on, and how long it may take to come to rest after them.
const FAULTS_MS: u64 = 10 * 60_000;
const REST_MS: u64 = 3 * 3_600_000;
/// The reconcilers look every so often; a lost look costs latency only.
const RECONCILE_MS: u64 = 4_000;
const TARGETS: u64 = 3;

impl World {
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        let mut chance = Chance::new(seed);
        let timing = Timing { offline_s: 300, ..Timing::default() };
        let server = Server::new(options.runners, timing, &mut chance);
        Self {
            options,
            now: 0,
            chance,
            server,
            machines: Vec::new(),
            processes: BTreeMap::new(),
            calls: BTreeMap::new(),
            check: Check::default(),
            injected: BTreeMap::new(),
            requests: 0,
            quiet: false,
            touched: true,
            plan: BinaryHeap::new(),
            numbers: 0,
            events: 0,
            story: Vec::new(),
            broken: None,
            settled_at: None,
            over: false,
        }
    }

    pub(crate) fn fresh(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn after(&mut self, pause_ms: u64, act: impl FnOnce(&mut World) + 'static) {
        let at = Reverse((self.now + pause_ms, self.fresh()));
        self.plan.push(Planned { at, act: Box::new(act) });
    }

    pub(crate) fn say(&mut self, job: Option<&JobId>, text: impl FnOnce() -> String) {
        self.story.push(Line { at_ms: self.now, job: job.cloned(), text: text() });
    }

    pub(crate) fn violated(&mut self, what: String, job: Option<JobId>) {
        if self.broken.is_none() {
            let at_ms = self.now;
            self.broken = Some(Violation { at_ms, job, what });
        }
    }

    pub(crate) fn run(mut self, seed: u64) -> Report {
        for runner in 0..self.options.runners {
            self.add_machine(runner);
        }
        for n in 0..self.options.jobs {
            let at = self.chance.below(FAULTS_MS * 9 / 10);
            self.after(at, move |w| w.wish(n));
        }
        self.after(0, |w| w.reconcile(0));
        self.after(1_000, World::misfortune);
        self.after(FAULTS_MS, World::heal);
        while let Some(Planned { at: Reverse((at, _)), act }) = self.plan.pop() {
            self.now = at;
            self.server.pass(at);
            act(&mut self);
            self.events += 1;
            self.wake_held();
            self.look_around();
            if self.broken.is_some() || self.over {
                break;
            }
        }
        self.report(seed)
    }

    /// Compares what the server recorded with what may be.
    fn look_around(&mut self) {
        if !std::mem::take(&mut self.touched) || self.broken.is_some() {
            return;
        }
        let (now, mut lines) = (self.now, Vec::new());
        let outcome = self.check.look(&self.server, |job, text| {
            lines.push(Line { at_ms: now, job: Some(job.clone()), text });
        });
        self.story.extend(lines);
        if let Err((job, what)) = outcome {
            self.violated(what, job);
        }
    }

    /// A user wants a job, and asks again until there is an answer.
    fn wish(&mut self, n: usize) {
        let runner = self.chance.below(self.options.runners as u64) as usize;
        let reads = self.chance.one_in(4);
        let target = (!reads && !self.chance.one_in(3)).then(|| format!("t{}", self.chance.below(TARGETS)));
        let wanted = WantedJob { key: format!("k{n}"), reads, target, priority: self.chance.below(2) as i64 };
        self.ask(runner, wanted);
    }

    fn ask(&mut self, runner: usize, wanted: WantedJob) {
        self.touched = true;
        let answer = self.server.submit(runner, &wanted);
        if let Some(job) = &answer {
            self.check.submitted(job.clone(), runner, wanted.reads, wanted.target.clone());
        }
        // The answer may be lost: then the same request comes again, with the same key.
        if answer.is_none() || (self.may(Fault::Network) && self.chance.one_in(20)) {
            let pause = self.chance.spread(200, 5_000);
            self.after(pause, move |w| w.ask(runner, wanted));
        }
    }

    pub(crate) fn cancel(&mut self, job: &JobId) {
        self.touched = true;
        self.say(Some(job), || "a user asks to cancel it".into());
        self.server.cancel(job);
    }

    pub(crate) fn settle(&mut self, job: &JobId, outcome: Outcome) {
        self.touched = true;
        self.server.settle(job, outcome);
    }

    /// An operator's request; at the end it is made again until it is answered.
    pub(crate) fn change_runner(&mut self, runner: usize, change: RunnerChange) {
        self.touched = true;
        if !self.server.change_runner(runner, change.clone()) && self.quiet {
            self.after(1_000, move |w| w.change_runner(runner, change));
        }
    }

    pub(crate) fn current_generation(&self, runner: usize) -> u64 {
        let id = &self.server.runners[runner].0.id;
        ready(self.server.store.runner(&self.server.org, id.as_str())).map_or(0, |r| r.generation)
    }

    /// The keys that an executor on this machine trusts.
    pub(crate) fn trusted(&self, machine: usize) -> Option<TrustedKeys> {
        self.machines[machine].state.as_ref().map(crate::machine::StateDir::trusted)
    }

    fn reconcile(&mut self, round: u64) {
        self.touched = true;
        if let Err(error) = self.server.reconcile(round, !self.quiet)
            && !error.is_transient()
        {
            self.violated(format!("a reconciler failed: {error}"), None);
        }
        let pause = self.chance.between(RECONCILE_MS / 2, RECONCILE_MS * 3 / 2);
        self.after(pause, move |w| w.reconcile(round + 1));
    }

    /// Everything is mended; from now on nothing goes wrong.
    fn heal(&mut self) {
        self.quiet = true;
        self.say(None, || "nothing goes wrong any more".into());
        self.server_up();
        self.server.set_clock(0);
        for runner in 0..self.options.runners {
            self.drain(runner, false);
        }
        for machine in 0..self.machines.len() {
            let m = &mut self.machines[machine];
            (m.cut_until, m.wall_ms, m.full_until) = (0, 0, 0);
            self.switch(machine, false);
            self.power_on(machine);
            self.start_process(machine);
        }
        self.after(5_000, World::rest);
    }

    /// Waits until every job has its end, then as long as an unknown one may hold its target.
    fn rest(&mut self) {
        for runner in 0..self.options.runners {
            // A late join of a machine that is gone may have fenced the last one: somebody sees it, and joins another.
            if self.machines.iter().all(|m| m.runner != runner || m.retired) {
                self.add_machine(runner);
            }
        }
        let left = self.machines.iter().filter(|m| !m.retired).filter_map(|m| m.state.as_ref());
        let settled = self.check.is_settled() && left.map(|s| s.dirs.len()).sum::<usize>() == 0;
        match self.settled_at {
            _ if self.now > FAULTS_MS + REST_MS => {
                if let Err((job, what)) = self.check.finish(&self.server) {
                    return self.violated(what, job);
                }
                self.violated("it never came to rest".into(), None);
            }
            Some(at) if settled => {
                let timing = &self.server.timing;
                if self.now > at + (timing.offline_s + 2 * timing.lease_s + 60) * 1000 {
                    self.over = true;
                    if let Err((job, what)) = self.check.finish(&self.server) {
                        self.violated(what, job);
                    }
                }
            }
            _ => self.settled_at = settled.then_some(self.now),
        }
        self.after(5_000, World::rest);
    }

    fn report(self, seed: u64) -> Report {
        Report {
            seed,
            events: self.events,
            requests: self.requests,
            virtual_ms: self.now,
            checks: self.check.checks,
            jobs: self.check.states().into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            faults: self.injected.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
            violation: self.broken,
            story: self.story,
        }
    }
}
