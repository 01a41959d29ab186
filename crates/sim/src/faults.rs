//! What may go wrong, and when.

use std::collections::BTreeSet;
use std::str::FromStr;

use model::{JobState, Outcome};
use store::RunnerChange;

use crate::world::World;
use runner::session::Event;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A runner's process dies, is told to hand over, to drain or to stop, and comes back.
    Crash,
    /// An executor dies without a word.
    Executor,
    /// A machine goes down, with or without its state directory.
    Machine,
    /// A machine is suspended, and wakes up as if nothing had happened.
    Suspend,
    /// A runner's disk is full for a while.
    Disk,
    /// The control plane dies, or is stopped, and comes back.
    Server,
    /// A write to the database fails, committed or not.
    Storage,
    /// Requests and answers are lost or late; a runner is cut off for a while.
    Network,
    /// Requests arrive twice.
    Duplicate,
    /// A held request is not woken.
    Wakeup,
    /// Clocks are set, on either side.
    Clock,
    /// A second runner joins with the same credential.
    Rival,
    /// Users cancel and settle, operators drain, customers switch their runner off.
    People,
}

impl Fault {
    pub const ALL: [(&'static str, Self); 13] = [
        ("crash", Self::Crash),
        ("executor", Self::Executor),
        ("machine", Self::Machine),
        ("suspend", Self::Suspend),
        ("disk", Self::Disk),
        ("server", Self::Server),
        ("storage", Self::Storage),
        ("network", Self::Network),
        ("duplicate", Self::Duplicate),
        ("wakeup", Self::Wakeup),
        ("clock", Self::Clock),
        ("rival", Self::Rival),
        ("people", Self::People),
    ];
}

/// The faults of a simulation: `all`, `none`, or a list like `crash,network`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(BTreeSet<Fault>);

impl Faults {
    pub fn all() -> Self {
        Self(Fault::ALL.iter().map(|(_, fault)| *fault).collect())
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::all()),
            "none" => return Ok(Self(BTreeSet::new())),
            _ => {}
        }
        let one = |name: &str| {
            let known = Fault::ALL.iter().find(|(known, _)| *known == name.trim()).map(|(_, fault)| *fault);
            known.ok_or_else(|| {
                let names: Vec<_> = Fault::ALL.iter().map(|(name, _)| *name).collect();
                format!("there is no fault `{name}`: use all, none, or some of {}", names.join(", "))
            })
        };
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }
}

const MINUTE: u64 = 60_000;

impl World {
    /// Whether something of this kind may go wrong now.
    pub(crate) fn may(&self, fault: Fault) -> bool {
        !self.quiet && self.options.faults.has(fault)
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.injected.entry(what).or_default() += 1;
    }

    /// Lets one thing go wrong, and then, after a while, the next.
    pub(crate) fn misfortune(&mut self) {
        if self.quiet {
            return;
        }
        let kinds: Vec<Fault> = Fault::ALL.iter().map(|(_, f)| *f).filter(|f| self.may(*f)).collect();
        if let Some(kind) = self.chance.pick(&kinds).copied() {
            match kind {
                Fault::Crash => self.fault_process(),
                Fault::Executor => self.fault_executor(),
                Fault::Machine => self.fault_machine(),
                Fault::Suspend => self.fault_suspend(),
                Fault::Disk => self.fault_disk(),
                Fault::Server => self.fault_server(),
                Fault::Storage => self.fault_storage(),
                Fault::Network => self.fault_cut(),
                Fault::Clock => self.fault_clock(),
                Fault::Rival => self.fault_rival(),
                Fault::People => self.fault_people(),
                // These go wrong by themselves, with every request and every wake-up.
                Fault::Duplicate | Fault::Wakeup => {}
            }
        }
        // About three a minute for each runner.
        let pause = self.chance.spread(200, 40_000) / self.options.runners.clamp(1, 40) as u64;
        self.after(pause, World::misfortune);
    }

    fn some_process(&mut self) -> Option<u64> {
        let all: Vec<u64> = self.processes.keys().copied().collect();
        self.chance.pick(&all).copied()
    }

    fn some_machine(&mut self) -> Option<usize> {
        let all: Vec<usize> = (0..self.machines.len()).filter(|m| !self.machines[*m].retired).collect();
        self.chance.pick(&all).copied()
    }

    fn fault_process(&mut self) {
        let Some(process) = self.some_process() else { return };
        match self.chance.below(8) {
            0 => {
                self.count("hand-overs");
                self.tell(process, Event::HandOver);
            }
            1 => {
                self.count("drains by signal");
                self.tell(process, Event::Drain);
            }
            2 => {
                self.count("stops");
                self.tell(process, Event::Stop);
            }
            // Somewhere among what it does next.
            3..6 => {
                let effects = self.chance.below(6);
                if let Some(process) = self.processes.get_mut(&process) {
                    process.dies_after = Some(effects);
                }
            }
            _ => self.kill_process(process),
        }
    }

    fn fault_executor(&mut self) {
        let all: Vec<_> = self.check.active.iter().filter(|(_, a)| a.executor).map(|(id, _)| id.clone()).collect();
        if let Some(id) = self.chance.pick(&all).cloned() {
            self.count("executors killed");
            self.executor_dies(&id);
        }
    }

    fn fault_machine(&mut self) {
        let Some(machine) = self.some_machine() else { return };
        if !self.machines[machine].on {
            return;
        }
        let keeps = self.chance.below(5) < 3;
        self.count(if keeps { "machines down" } else { "machines lost" });
        self.power_off(machine, keeps);
        let back = self.chance.spread(1_000, 10 * MINUTE);
        self.after(back, move |w| w.power_on(machine));
    }

    /// Sometimes for longer than its jobs are waited for.
    fn fault_suspend(&mut self) {
        let Some(machine) = self.some_machine().filter(|m| self.machines[*m].on && self.frozen_ms(*m).is_none()) else {
            return;
        };
        self.count("machines suspended");
        let long = self.chance.one_in(4);
        let takes =
            if long { self.chance.between(6 * MINUTE, 9 * MINUTE) } else { self.chance.spread(1_000, 6 * MINUTE) };
        let until = self.now + takes;
        self.say(None, || format!("machine {machine} is suspended until {until} ms"));
        self.machines[machine].frozen_until = until;
        let here = self.check.active.values_mut().filter(|active| active.machine == machine);
        here.for_each(|active| active.suspended = true);
    }

    fn fault_disk(&mut self) {
        let Some(machine) = self.some_machine() else { return };
        self.count("disks full");
        let until = self.now + self.chance.spread(1_000, 3 * MINUTE);
        self.say(None, || format!("the disk of machine {machine} is full until {until} ms"));
        self.machines[machine].full_until = until;
    }

    fn fault_server(&mut self) {
        if self.server.api.is_none() {
            return;
        }
        let in_order = self.chance.one_in(3);
        self.count(if in_order { "server stops" } else { "server crashes" });
        self.server_down(in_order);
        let back = self.chance.spread(100, 2 * MINUTE);
        self.after(back, World::server_up);
    }

    fn fault_storage(&mut self) {
        self.count("writes broken");
        let (good, committed) = (self.chance.below(6) as u32, self.chance.one_in(2));
        self.server.store.break_write(good, committed);
    }

    fn fault_cut(&mut self) {
        let Some(machine) = self.some_machine() else { return };
        self.count("runners cut off");
        let until = self.now + self.chance.spread(500, 15 * MINUTE);
        self.say(None, || format!("machine {machine} is cut off until {until} ms"));
        self.machines[machine].cut_until = until;
    }

    fn fault_clock(&mut self) {
        self.count("clocks set");
        let by = self.chance.spread(100, 30 * MINUTE) as i64;
        let by = if self.chance.one_in(2) { by } else { -by };
        if self.chance.one_in(3) {
            self.say(None, || format!("the server's clock is set by {by} ms"));
            self.server.set_clock(by);
        } else if let Some(machine) = self.some_machine() {
            self.say(None, || format!("the clock of machine {machine} is off by {by} ms"));
            self.machines[machine].wall_ms = by;
        }
    }

    fn fault_rival(&mut self) {
        let Some(machine) = self.some_machine() else { return };
        if self.machines.len() < self.options.runners * 2 {
            self.count("rivals");
            let runner = self.machines[machine].runner;
            self.add_machine(runner);
        }
    }

    fn fault_people(&mut self) {
        match self.chance.below(10) {
            0 => {
                let (runner, on) = (self.chance.below(self.options.runners as u64) as usize, self.chance.one_in(2));
                self.count("drains by request");
                self.drain(runner, on);
                let back = self.chance.spread(1_000, 3 * MINUTE);
                self.after(back, move |w| w.drain(runner, false));
            }
            1 => {
                let Some(machine) = self.some_machine() else { return };
                self.switch_for_a_while(machine);
            }
            2 => self.settle_one(),
            _ => {
                let open: Vec<_> = self.check.open_jobs();
                if let Some(job) = self.chance.pick(&open).cloned() {
                    self.count("cancels");
                    self.cancel(&job);
                }
            }
        }
    }

    /// The customer turns the switch while a start is on its way.
    pub(crate) fn switch_off(&mut self, process: u64) {
        if let Some(machine) = self.processes.get(&process).map(|p| p.machine) {
            self.switch_for_a_while(machine);
        }
    }

    fn switch_for_a_while(&mut self, machine: usize) {
        self.count("switched off");
        self.switch(machine, true);
        let back = self.chance.spread(1_000, 3 * MINUTE);
        self.after(back, move |w| w.switch(machine, false));
    }

    fn settle_one(&mut self) {
        let unknown: Vec<_> = self.check.jobs_in(JobState::Unknown);
        let Some(job) = self.chance.pick(&unknown).cloned() else { return };
        // By looking: only what nobody works on any more.
        if self.server.job(&job).is_some_and(|job| job.released) {
            self.count("settled");
            self.settle(&job, Outcome::Failed);
        }
    }

    pub(crate) fn drain(&mut self, runner: usize, on: bool) {
        self.change_runner(runner, RunnerChange::Drain(on));
    }

    /// The customer's switch; a process sees it with its next look.
    pub(crate) fn switch(&mut self, machine: usize, off: bool) {
        let since = off.then(|| self.wall(machine));
        if let Some(state) = &mut self.machines[machine].state {
            state.disabled = since;
        }
    }
}
