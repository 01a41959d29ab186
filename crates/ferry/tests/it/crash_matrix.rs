//! The crash matrix: at every crash point of the code, each of runner, executor, server, runner and server together, and
//! all three is killed. Whatever dies, nothing runs twice, nothing is called finished that was not, nothing is left, and work goes on.
//!
//! `FERRY_CRASH_ONLY=runner.before_log` runs only the cells whose name contains that.

use std::path::Path;
use std::time::{Duration, Instant};

use api::client::{Client, ClientError, JobFilter};
use api::control::{CreateActionRun, CreateRunnerJob, Job, JoinCommand};
use crash::{Fate, POINTS, Point, Process, Story};
use model::{JobState, JobType};
use rustix::process::Signal;
use testkit::Backend;
use testkit::lanes::{Victim, copies, in_lanes};
use testkit::system::{Options, Runner, SOON, System, action, script, send, temporary, until};
use testkit::trap::Trap;

use crate::{ferry, options, seconds};

/// Systems that are put to death at a time; most of the time each of them waits.
const LANES: usize = 6;

const EACH: [Victim; 5] = [Victim::Runner, Victim::Server, Victim::RunnerAndServer, Victim::Executor, Victim::All];

/// What is run while someone dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Two steps, each of which leaves a line in the witness.
    Action,
    /// A job that only reads: it may be tried again.
    Noop,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    point: &'static Point,
    /// The how manieth time that a process comes by.
    time: u32,
    victim: Victim,
    work: Work,
}

impl Cell {
    fn name(&self) -> String {
        let Self { point, time, victim, work } = self;
        format!("{}:{time} {victim:?} {work:?}", point.name)
    }

    fn fate(&self) -> Fate {
        match (self.work, self.victim) {
            (Work::Noop, _) | (_, Victim::Server) => Fate::Finishes,
            (_, Victim::Executor | Victim::RunnerAndExecutor | Victim::All) => {
                self.point.executor.expect("there is an executor")
            }
            (_, Victim::Runner | Victim::RunnerAndServer) => self.point.runner,
        }
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    // What happens to Terraform, and to a cluster, is in matrices of their own.
    let elsewhere = |story| matches!(story, Story::Plan | Story::Apply | Story::Rollout | Story::Copy);
    for point in POINTS.iter().filter(|point| !elsewhere(point.story)) {
        for victim in EACH {
            if !victim.is_executor() || point.executor.is_some() {
                cells.push(Cell { point, time: 1, victim, work: Work::Action });
            }
        }
    }
    let at = |name: &str| POINTS.iter().find(|p| p.name == name).expect("a point");
    for name in ["executor.child_spawned", "executor.child_ended"] {
        cells.push(Cell { point: at(name), time: 2, victim: Victim::Executor, work: Work::Action });
    }
    let noops = [
        ("runner.started_marked", Victim::Runner),
        ("executor.locked", Victim::Executor),
        ("executor.before_result", Victim::Executor),
        ("executor.before_result", Victim::RunnerAndServer),
        ("server.claimed", Victim::Server),
        ("server.result_written", Victim::RunnerAndServer),
    ];
    cells.extend(noops.map(|(name, victim)| Cell { point: at(name), time: 1, victim, work: Work::Noop }));
    cells
}

/// A system in which one cell after the other is played.
struct Lane {
    system: System,
    runner: Runner,
    join: JoinCommand,
    _dir: tempfile::TempDir,
    trap: Trap,
    played: usize,
}

impl Lane {
    async fn start(binary: &Path, backend: Backend) -> Self {
        let dir = temporary();
        let trap = Trap::new(dir.path().join("crash"));
        let (name, file) = trap.variable();
        let options = Options { ferry: binary.to_owned(), ..options() }.with("FERRY_TIMING__LEASE_S", "8");
        let options = options.on(backend).with(name, file.display()).with("FERRY_LOGS__SEAL_QUIET_S", 1);
        let system = System::start(options).await;
        let join = system.join_command().await;
        let runner = system
            .start_runner_with("a", &join, |c| {
                c.env(name, file);
            })
            .await;
        Self { system, runner, join, _dir: dir, trap, played: 0 }
    }

    fn start_runner(&mut self) {
        let mut command = self.system.resume_command("a");
        let (name, file) = self.trap.variable();
        command.env(name, file).env("FERRY_RUNNER_JOIN", &self.join.credential);
        command.env("FERRY_RUNNER_TRUST_KEY", self.join.trust_keys.join(","));
        self.runner = self.system.spawn_runner("a", &mut command);
    }

    async fn play(&mut self, cell: &Cell) {
        self.played += 1;
        let name = format!("c{}", self.played);
        let story = cell.point.story;
        let held = matches!(story, Story::Running | Story::Adopt | Story::Silence | Story::Seal);
        if story == Story::Join {
            self.runner.kill();
            fs_err::remove_dir_all(self.system.state_dir("a")).expect("no state directory");
        }
        if !held {
            self.system.open(&name);
            self.trap.set(cell.point, cell.time);
        }
        let submit = tokio::spawn(submit(self.submission(cell, &name)));
        match story {
            Story::Join => self.start_runner(),
            Story::Action | Story::Plan | Story::Apply | Story::Rollout | Story::Copy => {}
            Story::Running | Story::Adopt | Story::Silence | Story::Seal => {
                self.system.until_witness(&name, "one").await;
                if story == Story::Adopt {
                    self.runner.kill();
                }
                self.trap.set(cell.point, cell.time);
                match story {
                    Story::Adopt => self.start_runner(),
                    Story::Silence => self.runner.signal(Signal::STOP),
                    Story::Seal => self.system.open(&name),
                    _ => {}
                }
            }
        }
        let stopped = self.trap.until_hit(cell.point).await;
        let executors = self.system.executors();
        assert!(!cell.victim.is_executor() || executors.len() == 1, "there is an executor to kill: {executors:?}");
        // The runner first: where all die, nobody may see the others go.
        if cell.victim.is_runner() {
            self.runner.kill();
        }
        if cell.victim.is_server() {
            self.system.kill_server();
        }
        if cell.victim.is_executor() {
            send(executors[0], Signal::KILL);
        }
        if !cell.victim.is(cell.point.process) {
            self.trap.release(stopped);
        }
        if story == Story::Silence {
            self.runner.signal(Signal::CONT);
        }
        if cell.victim.is_server() {
            self.system.start_server().await;
        }
        if cell.victim.is_runner() {
            self.start_runner();
        }
        self.system.open(&name);
        let job = submit.await.expect("the job is there");
        self.judge(cell, &name, &job).await;
    }

    fn submission(&self, cell: &Cell, name: &str) -> Submission {
        let (witness, gate) = (self.system.witness(name), self.system.witness(&format!("{name}.go")));
        let first = format!("echo one >> {}\nfor i in 1 2 3; do echo \"line $i\"; done", witness.display());
        let second = format!(
            "i=3\nwhile :; do i=$((i+1)); echo \"line $i\"; [ -e {} ] && break; sleep 0.05; done\necho two >> {}\necho \"last $i\"",
            gate.display(),
            witness.display()
        );
        let mut wanted = action(vec![script("first", &first), script("second", &second)]);
        wanted.name = Some(name.to_owned());
        Submission {
            client: self.system.client.clone(),
            install: self.system.install.id.to_string(),
            runner: self.system.install.runner_id.to_string(),
            action: (cell.work == Work::Action).then_some(wanted),
        }
    }

    async fn judge(&mut self, cell: &Cell, name: &str, job: &Job) {
        let system = &self.system;
        let settled = |j: &Job| match cell.fate() {
            // A lease may end before those who died are back: then it is unknown for a while.
            Fate::Finishes => j.status.is_terminal(),
            Fate::Unknown => j.status.is_terminal() || j.status == JobState::Unknown,
        };
        system.until_job(&job.id, "the job is settled", SOON, settled).await;
        system.until_quiet().await;
        let executions = system.state_dir("a").join("executions");
        until("no execution directory is left", SOON, async || {
            let left: Vec<_> =
                fs_err::read_dir(&executions).into_iter().flatten().flatten().map(|e| e.path()).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        let job = system.job(&job.id).await;
        let told = format!("{} ({}), executions {:?}", job.status, job.status_description, job.executions);
        match (cell.fate(), job.status) {
            (Fate::Finishes, JobState::Finished) | (Fate::Unknown, JobState::Unknown) => {}
            (fate, _) => panic!("should be {fate:?}, is {told}"),
        }
        if cell.work == Work::Action {
            let lines = system.lines(name);
            if job.status == JobState::Finished {
                assert_eq!(lines, ["one", "two"], "each step ran once; {told}");
                let log = system.text_log(&job, Some("stdout")).await;
                let lines: Vec<&str> = log.lines().collect();
                let (last, numbered) = lines.split_last().expect("a log");
                let expected: Vec<String> = (1..=numbered.len()).map(|n| format!("line {n}")).collect();
                assert_eq!(numbered, expected, "every line once, in order");
                assert_eq!(*last, format!("last {}", numbered.len()), "and the log is whole");
            } else {
                assert!(["one", "two"].starts_with(&lines.iter().map(String::as_str).collect::<Vec<_>>()), "{lines:?}");
                assert!(!job.status_description.is_empty(), "it says why it is unknown");
            }
        }
        let next = system.run(vec![script("next", "true")]).await;
        assert_eq!(next.status, JobState::Finished, "work goes on: {}", next.status_description);
        let all = system.client.jobs(&JobFilter::default(), 1000).await.expect("jobs");
        assert_eq!(all.iter().filter(|j| j.name.as_deref() == Some(name)).count(), usize::from(job.name.is_some()));
        assert!(self.runner.process.is_alive(), "the runner lives");
    }
}

struct Submission {
    client: Client,
    install: String,
    runner: String,
    /// None: a noop.
    action: Option<CreateActionRun>,
}

/// Queues the job, if need be again and again: the server may be dead.
async fn submit(wanted: Submission) -> Job {
    let started = Instant::now();
    loop {
        let made = match &wanted.action {
            Some(action) => wanted.client.create_action_run(&wanted.install, action).await,
            None => {
                let noop = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 50, priority: 0 };
                wanted.client.create_runner_job(&wanted.runner, &noop).await
            }
        };
        match made {
            Ok(job) => return job,
            Err(ClientError::Transport { .. }) if started.elapsed() < SOON => {}
            Err(error) => panic!("the job can't be queued: {error}"),
        }
        // The client has given up, but its request may have been heard.
        let name = wanted.action.as_ref().and_then(|a| a.name.clone());
        let there = wanted.client.jobs(&JobFilter::default(), 1000).await.unwrap_or_default();
        if let Some(job) = there.into_iter().find(|j| name.is_some() && j.name == name) {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn play(backend: Backend, cells: Vec<Cell>) {
    let (_dir, binary) = copies(&ferry());
    let (count, begun) = (cells.len(), Instant::now());
    in_lanes(LANES, cells, Cell::name, async |cells, current| {
        let mut lane = Lane::start(&binary, backend).await;
        while let Some(cell) = cells.next(current) {
            let started = Instant::now();
            Box::pin(lane.play(&cell)).await;
            if started.elapsed() > seconds(8) {
                eprintln!("{}: {:?}", cell.name(), started.elapsed());
            }
        }
    });
    eprintln!("{backend:?}: {} points, {count} cells in {:?}", POINTS.len(), begun.elapsed());
}

#[test]
fn crash_matrix() {
    play(Backend::Sqlite, cells());
}

/// Only where the database matters: the server dies at its own points.
#[test]
fn crash_matrix_on_postgresql() {
    let mut cells = cells();
    cells.retain(|c| c.point.process == Process::Server && c.victim.is_server() && !c.victim.is_executor());
    play(Backend::Postgres, cells);
}
