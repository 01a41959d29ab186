//! Whoever dies while Terraform works: an approval is carried out once at most, nobody is told a success that was none, nothing is
//! left running, and what was made is not forgotten.
//!
//! `FERRY_CRASH_ONLY=executor.planned` plays only the cells whose name contains that.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use api::control::{UpdateRunnerSettings, WorkflowStep};
use crash::{Fate, POINTS, Point, Process, Story};
use needs::needs;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::lanes::{Victim, copies, in_lanes};
use testkit::system::{Options, SOON, send, until};
use testkit::trap::Trap;

use super::{FIXTURE, Stage, newest};
use crate::{ferry, options, seconds};

/// Systems that are put to death at a time.
const LANES: usize = 4;
const VICTIMS: [Victim; 4] = [Victim::Executor, Victim::Runner, Victim::Server, Victim::RunnerAndServer];

pub(super) struct Cell {
    pub(super) point: &'static Point,
    pub(super) victim: Victim,
}

impl Cell {
    fn name(&self) -> String {
        format!("{} {:?}", self.point.name, self.victim)
    }

    fn fate(&self) -> Fate {
        match self.victim {
            Victim::Executor | Victim::RunnerAndExecutor | Victim::All => {
                self.point.executor.expect("there is an executor")
            }
            Victim::Runner | Victim::RunnerAndServer => self.point.runner,
            Victim::Server => Fate::Finishes,
        }
    }
}

/// Changes with every apply, and leaves a line.
const MODULE: &str = r#"
variable "witness" { type = string }
resource "terraform_data" "it" {
  triggers_replace = timestamp()
  provisioner "local-exec" {
    command = "echo applied >> ${var.witness}"
  }
}
output "id" { value = terraform_data.it.id }
"#;

/// Changes once, and leaves a line.
pub(super) const STABLE: &str = r#"
variable "witness" { type = string }
resource "terraform_data" "it" {
  input = var.witness
  provisioner "local-exec" {
    command = "echo applied >> ${var.witness}"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo destroyed >> ${self.input}"
  }
}
output "id" { value = terraform_data.it.id }
"#;

/// A system in which one cell after the other is played.
pub(super) struct Lane {
    pub(super) stage: Stage,
    pub(super) trap: Trap,
    _dir: tempfile::TempDir,
}

impl Lane {
    pub(super) async fn start(binary: &Path, backend: Backend, module: &str) -> Self {
        let dir = testkit::system::temporary();
        let trap = Trap::new(dir.path().join("crash"));
        let (name, file) = trap.variable();
        let options = Options { ferry: binary.to_owned(), ..options() }.on(backend).with(name, file.display());
        let stage = Stage::start_with(options, |command| {
            command.env(name, file);
        })
        .await;
        let witness = stage.system.witness("applied");
        stage.plain_sandbox();
        stage.component("it", "", &[("witness", witness.to_str().unwrap())], module);
        stage.sync().await;
        Self { stage, trap, _dir: dir }
    }

    fn applied(&self) -> usize {
        self.stage.system.lines("applied").len()
    }

    /// Kills whom the cell wants dead when the point is come by, and brings all back.
    pub(super) async fn strike(&mut self, cell: &Cell) {
        let stopped = self.trap.until_hit(cell.point).await;
        let system = &mut self.stage.system;
        let executors = system.executors();
        assert_eq!(executors.len(), 1, "there is one executor");
        if cell.victim.is_runner() {
            self.stage.runner.as_mut().unwrap().kill();
        }
        if cell.victim.is_server() {
            system.kill_server();
        }
        if cell.victim.is_executor() {
            send(executors[0], Signal::KILL);
        }
        if !cell.victim.is(cell.point.process) {
            self.trap.release(stopped);
        }
        if cell.victim.is_server() {
            self.stage.system.start_server().await;
        }
        if cell.victim.is_runner() {
            let (name, file) = self.trap.variable();
            self.stage.resume_runner(|command| {
                command.env(name, file);
            });
        }
    }

    async fn play(&mut self, cell: &Cell) {
        match cell.point.story {
            Story::Plan => self.plan(cell).await,
            Story::Apply => self.apply(cell).await,
            story => panic!("{story:?} is no story of Terraform"),
        }
        self.stage.until_quiet().await;
        assert!(self.stage.runner().process.is_alive(), "the runner lives");
    }

    /// A plan changes nothing: it is made, if need be again.
    async fn plan(&mut self, cell: &Cell) {
        let before = self.applied();
        self.trap.set(cell.point, 1);
        let id = self.stage.deploy("it").await;
        self.strike(cell).await;
        let plan = self.stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
        assert_eq!(self.stage.plan(&plan).await["format"], 1);
        assert_eq!(self.applied(), before, "nothing is applied without an approval");
        self.stage.client().cancel_workflow(&id).await.unwrap();
        self.stage.until(&id, "cancelled").await;
    }

    async fn apply(&mut self, cell: &Cell) {
        let before = self.applied();
        let id = self.stage.deploy("it").await;
        let plan = self.stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
        self.trap.set(cell.point, 1);
        self.stage.answer(&plan, "approve").await;
        self.strike(cell).await;
        if cell.fate() == Fate::Unknown {
            let step = self.stage.until_step(&id, "apply it", "unknown").await;
            self.stage.until_quiet().await;
            let once = self.applied() - before;
            assert!(once <= 1, "applied {once} times");
            self.retry(&id, &step).await;
        } else {
            self.stage.until(&id, "success").await;
            assert_eq!(self.applied() - before, 1, "applied once");
        }
        let state = self.stage.state("it").await;
        let resources = state["resources"].as_array().unwrap();
        assert_eq!(resources.len(), 1, "{state}");
        let instances = resources[0]["instances"].as_array().unwrap();
        assert!(instances.len() == 1 && instances[0]["status"].is_null(), "one, not tainted: {state}");
        let part = self.stage.part("components/it").await;
        assert_eq!(part["outputs"]["id"], instances[0]["attributes"]["id"], "{part}");
    }

    /// What nobody knows is planned again, shown again, and asked for again; no lock is in the way.
    async fn retry(&mut self, id: &str, step: &WorkflowStep) {
        let told = &step.status.status_human_description;
        assert!(told.contains("Started, result unknown: terraform_data.it") || told.contains("is unknown"), "{told}");
        let before = self.applied();
        self.stage.client().retry_step(id, &step.id).await.unwrap();
        let plan = self.stage.until_step(id, "sync and plan it", "approval-awaiting").await;
        assert_eq!(self.applied(), before, "a new plan needs a new approval");
        self.stage.answer(&plan, "approve").await;
        let done = self.stage.until(id, "success").await;
        assert_eq!(newest(&done, "apply it").unwrap().name, "apply it (retry 1)");
        assert_eq!(self.applied() - before, 1);
    }
}

fn cells() -> Vec<Cell> {
    let of_terraform = POINTS.iter().filter(|point| matches!(point.story, Story::Plan | Story::Apply));
    of_terraform.flat_map(|point| VICTIMS.map(|victim| Cell { point, victim })).collect()
}

fn play(backend: Backend, lanes: usize, cells: Vec<Cell>) {
    let (_dir, binary) = copies(&ferry());
    let (count, begun) = (cells.len(), Instant::now());
    in_lanes(lanes, cells, Cell::name, async |cells, current| {
        let mut lane = Box::pin(Lane::start(&binary, backend, MODULE)).await;
        while let Some(cell) = cells.next(current) {
            let started = Instant::now();
            Box::pin(lane.play(&cell)).await;
            if started.elapsed() > seconds(20) {
                eprintln!("{}: {:?}", cell.name(), started.elapsed());
            }
        }
    });
    eprintln!("{backend:?}: {count} cells in {:?}", begun.elapsed());
}

#[test]
fn whoever_dies_an_approval_is_carried_out_once_at_most() {
    play(Backend::Sqlite, LANES, cells());
}

/// Only where the database matters: the server dies at its own points.
#[test]
fn whoever_dies_an_approval_is_carried_out_once_at_most_on_postgresql() {
    let mut cells = cells();
    cells.retain(|cell| cell.point.process == Process::Server && cell.victim.is_server());
    play(Backend::Postgres, 2, cells);
}

/// Everything is done and the state is saved, but nobody was told: the next plan finds nothing to change, and what came out must be
/// known all the same.
#[tokio::test]
async fn what_was_done_before_a_death_is_known_after_a_retry() {
    let (_dir, binary) = copies(&ferry());
    let mut lane = Lane::start(&binary, Backend::Sqlite, STABLE).await;
    let point = POINTS.iter().find(|point| point.name == "executor.applied").unwrap();
    let cell = Cell { point, victim: Victim::Executor };
    for (kind, plan, apply, status) in [
        ("manual_deploy", "sync and plan it", "apply it", "active"),
        ("teardown_component", "plan teardown it", "teardown it", "inactive"),
    ] {
        let id = lane.stage.begin(json!({ "type": kind, "component": "it" })).await;
        let waiting = lane.stage.until_step(&id, plan, "approval-awaiting").await;
        lane.trap.set(point, 1);
        lane.stage.answer(&waiting, "approve").await;
        lane.strike(&cell).await;
        let lost = lane.stage.until_step(&id, apply, "unknown").await;
        lane.stage.client().retry_step(&id, &lost.id).await.unwrap();
        lane.stage.approve(&id, plan).await;
        lane.stage.until(&id, "success").await;
        let part = lane.stage.part("components/it").await;
        assert_eq!(part["status"], status, "{part}");
        assert_eq!(part["outputs"]["id"].is_string(), status == "active", "{part}");
    }
    assert_eq!(lane.stage.system.lines("applied"), ["applied", "destroyed"]);
    lane.stage.until_quiet().await;
}

/// A quick thing, and one that takes its time after it.
pub(super) fn slow_module(stage: &Stage, sleep_ms: u32) -> String {
    let world = stage.world();
    let world = world.display();
    format!(
        r#"{FIXTURE}
resource "fixture_thing" "quick" {{
  name  = "quick"
  world = "{world}"
}}
resource "fixture_thing" "slow" {{
  depends_on = [fixture_thing.quick]
  name       = "slow"
  world      = "{world}"
  sleep_ms   = {sleep_ms}
}}
output "names" {{ value = "${{fixture_thing.quick.id}} ${{fixture_thing.slow.id}}" }}
"#
    )
}

/// An apply that has come as far as the slow thing.
pub(super) async fn slow_stage(sleep_ms: u32) -> (Stage, String) {
    slow_stage_with(sleep_ms, |_| ()).await
}

async fn slow_stage_with(sleep_ms: u32, change: impl Fn(&mut Command)) -> (Stage, String) {
    let stage = Stage::start_with(options(), change).await;
    stage.plain_sandbox();
    stage.component("it", "", &[], &slow_module(&stage, sleep_ms));
    stage.sync().await;
    let id = stage.deploy("it").await;
    stage.approve(&id, "sync and plan it").await;
    until("the slow thing is begun", SOON, async || {
        let done = stage.done_to_world();
        if done.iter().any(|line| line == "create slow") { Ok(()) } else { Err(format!("{done:?}")) }
    })
    .await;
    (stage, id)
}

/// Every revision of every state: how many resources it has, whether it is quarantined, and its note.
pub(super) fn revisions(stage: &Stage) -> Vec<(i64, bool, String)> {
    let db = stage.database();
    let mut all = db.prepare("SELECT resource_count, quarantined, note FROM revisions ORDER BY id").unwrap();
    let rows = all.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? != 0, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

pub(super) fn status_of<'s>(state: &'s Value, name: &str) -> Option<&'s Value> {
    let resources = state["resources"].as_array()?;
    resources.iter().find(|resource| resource["name"] == name).map(|resource| &resource["instances"][0]["status"])
}

#[tokio::test]
async fn what_a_killed_executor_has_made_is_kept_beside_the_state() {
    let (stage, id) = slow_stage(60_000).await;
    // What is under way is told at once, not only when Terraform says something again.
    until("the slow thing is shown", seconds(5), async || {
        let workflow = stage.client().workflow(&id).await.map_err(|e| e.to_string())?;
        let job = stage.job(newest(&workflow, "apply it").ok_or("no step")?).await;
        let shown = serde_json::to_string(&job).map_err(|e| e.to_string())?;
        if shown.contains("fixture_thing.slow") { Ok(()) } else { Err(shown) }
    })
    .await;
    send(stage.system.executors()[0], Signal::KILL);
    let step = stage.until_step(&id, "apply it", "unknown").await;
    let told = &step.status.status_human_description;
    let begun = told.split_once("Started, result unknown: ").map(|(_, begun)| begun);
    assert!(begun.is_some_and(|begun| begun.contains("fixture_thing.slow")), "{told}");
    // Neither Terraform nor a provider is left.
    stage.until_quiet().await;
    let kept = until("the state that was left is kept", SOON, async || {
        let found = revisions(&stage);
        found.iter().find(|(_, quarantined, _)| *quarantined).cloned().ok_or_else(|| format!("{found:?}"))
    })
    .await;
    assert_eq!((kept.0, kept.2.as_str()), (2, "errored.tfstate"), "both things are in it");
    until("nothing waits on the runner any more", SOON, async || {
        let waiting = runner::seal::rescue::waiting(&stage.system.state_dir("a"));
        if waiting.is_empty() { Ok(()) } else { Err(format!("{waiting:?}")) }
    })
    .await;
    // The world is cleaned by hand; then the same deploy works, with a new plan and a new approval.
    for name in ["quick", "slow"] {
        let _ = fs_err::remove_file(stage.world().join(format!("{name}.json")));
    }
    stage.component("it", "", &[], &slow_module(&stage, 0));
    stage.client().retry_step(&id, &step.id).await.unwrap();
    let plan = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    assert!(plan.name.ends_with("(retry 1)"), "{}", plan.name);
    stage.client().cancel_workflow(&id).await.unwrap();
    stage.until(&id, "cancelled").await;
    stage.sync().await;
    // Whatever was approved beforehand: a person looks at the first plan after an unknown end.
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "it", "approve_all": true })).await;
    let plan = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    assert!(plan.status.status_human_description.contains("is unknown"), "{:?}", plan.status);
    stage.answer(&plan, "approve").await;
    stage.until(&id, "success").await;
    let state = stage.state("it").await;
    assert_eq!(status_of(&state, "slow"), Some(&Value::Null), "{state}");
    stage.until_quiet().await;
}

#[tokio::test]
async fn an_apply_goes_on_while_its_runner_is_dead() {
    let (mut stage, id) = slow_stage(4_000).await;
    stage.runner().kill();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(stage.system.executors().len(), 1, "it lives on");
    stage.resume_runner(|_| ());
    stage.until(&id, "success").await;
    assert_eq!(stage.done_to_world(), ["create quick", "create slow"]);
    assert_eq!(stage.part("components/it").await["outputs"]["names"], "quick slow");
    stage.until_quiet().await;
}

#[tokio::test]
async fn a_cancelled_apply_saves_what_was_done() {
    let (stage, id) = slow_stage(60_000).await;
    let asked = Instant::now();
    stage.client().cancel_workflow(&id).await.unwrap();
    stage.until_step(&id, "apply it", "cancelled").await;
    assert!(asked.elapsed() < seconds(10), "it took {:?}", asked.elapsed());
    stage.until_quiet().await;
    let state = stage.state("it").await;
    assert_eq!(status_of(&state, "quick"), Some(&Value::Null), "{state}");
    assert_eq!(status_of(&state, "slow"), Some(&Value::from("tainted")), "{state}");
    assert!(revisions(&stage).iter().all(|(_, quarantined, _)| !quarantined), "it is the state");
    let output = testkit::system::run(stage.custody(&["state", "list", "--json"])).await;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let workspace = found.as_array().unwrap().iter().find(|w| w["target"] == "components/it").unwrap();
    assert!(workspace["lock"].is_null(), "the lock is free: {workspace}");
}

/// The same command as the first process of a namespace: what it leaves behind is killed by the kernel, as in a pod.
fn as_pid_1(command: &Command) -> Command {
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]).arg(command.get_program());
    inside.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    inside
}

#[tokio::test]
async fn a_runner_that_is_pid_1_lets_terraform_end_before_it_stops() {
    needs!(Images);
    let (mut stage, id) = slow_stage_with(60_000, |command| *command = as_pid_1(command)).await;
    let settings = UpdateRunnerSettings { drain_s: Some(1), ..Default::default() };
    stage.client().update_runner_settings(stage.system.install.runner_id.as_str(), &settings).await.unwrap();
    until("the runner has the settings", SOON, async || {
        let session: Value =
            serde_json::from_slice(&fs_err::read(stage.system.state_dir("a").join("session.json")).unwrap()).unwrap();
        if session["settings"]["drain_s"] == 1 { Ok(()) } else { Err(session["settings"].to_string()) }
    })
    .await;
    let outer = stage.runner().pid();
    let children = fs_err::read_to_string(format!("/proc/{outer}/task/{outer}/children")).unwrap();
    send(children.trim().parse().expect("one child, the runner"), Signal::TERM);
    let step = stage.until_step(&id, "apply it", "cancelled").await;
    let told = &step.status.status_human_description;
    assert!(told.contains("the runner is shutting down"), "{told}");
    assert!(stage.runner().process.ended(SOON).await.success());
    stage.resume_runner(|_| ());
    let state = stage.state("it").await;
    assert_eq!(status_of(&state, "slow"), Some(&Value::from("tainted")), "{state}");
    assert!(revisions(&stage).iter().all(|(_, quarantined, _)| !quarantined), "it is the state");
    stage.until_quiet().await;
}
