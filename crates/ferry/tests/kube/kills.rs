//! Whoever dies while a manifest, a chart or a Job is planned and applied: no false success, nothing doubled, and a retry works.
//!
//! Each point is tried once, the victims take turns; `FERRY_ALL_KILLS=1` tries all at each. `FERRY_CRASH_ONLY=executor.planned` plays
//! only the cells whose name contains that.

use std::path::Path;
use std::time::Instant;

use crash::{Fate, POINTS, Point, Story};
use needs::needs;
use serde_json::json;
use testkit::kube::images;
use testkit::lanes::{Victim, copies, in_lanes};

use crate::helm::history;
use crate::stage::{Stage, config_map, ended, newest};

/// Systems that are put to death at a time.
const LANES: usize = 4;
const VICTIMS: [Victim; 4] = [Victim::Executor, Victim::Runner, Victim::RunnerAndExecutor, Victim::Server];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Manifest,
    Helm,
    Job,
}

impl Kind {
    const fn component(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Helm => "helm",
            Self::Job => "job",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    kind: Kind,
    point: &'static Point,
    victim: Victim,
}

impl Cell {
    fn name(&self) -> String {
        format!("{:?} {} {:?}", self.kind, self.point.name, self.victim)
    }

    fn fate(&self) -> Fate {
        match self.victim {
            Victim::Executor | Victim::RunnerAndExecutor | Victim::All => self.point.executor.expect("an executor"),
            Victim::Runner | Victim::RunnerAndServer => self.point.runner,
            Victim::Server => Fate::Finishes,
        }
    }
}

/// Whether a plan or an apply of this kind comes by a point.
fn comes_by(kind: Kind, point: &Point) -> bool {
    match point.story {
        Story::Plan => true,
        // There is no lock, and the state is saved by what applies.
        Story::Apply => matches!(
            point.name,
            "executor.before_apply" | "executor.applied" | "server.before_state" | "server.state_written"
        ),
        Story::Rollout => match kind {
            Kind::Manifest => point.name != "executor.helm_ended" && !point.name.starts_with("executor.job_"),
            Kind::Helm => matches!(point.name, "executor.intent_saved" | "executor.helm_ended"),
            Kind::Job => !matches!(point.name, "executor.helm_ended" | "executor.object_applied"),
        },
        Story::Action => matches!(point.name, "executor.before_result" | "executor.result_written"),
        Story::Running | Story::Join | Story::Adopt | Story::Silence | Story::Seal | Story::Copy => false,
    }
}

fn cells(kinds: &[Kind]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in kinds.iter().copied() {
        for point in POINTS.iter().filter(|point| comes_by(kind, point)) {
            cells.extend(VICTIMS.map(|victim| Cell { kind, point, victim }));
        }
    }
    if std::env::var_os("FERRY_ALL_KILLS").is_none() {
        let turns = cells.chunks(VICTIMS.len()).enumerate().map(|(turn, of_point)| of_point[turn % VICTIMS.len()]);
        cells = turns.collect();
    }
    cells
}

const CHART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: charted\ndata:\n  word: {{ .Values.word }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: charted-{{ .Values.word }}\n";

/// A system in which one cell after the other is played.
struct Lane {
    kinds: &'static [Kind],
    stage: Stage,
    played: usize,
}

impl Lane {
    async fn start(binary: &Path, kinds: &'static [Kind]) -> Self {
        let mut lane = Self { kinds, stage: Stage::start_with("kills", binary).await, played: 0 };
        lane.next_version().await;
        for kind in kinds {
            lane.stage.deployed(kind.component()).await;
        }
        lane
    }

    fn word(&self) -> String {
        format!("w{}", self.played)
    }

    /// Each version changes an object, brings one, and takes one away.
    async fn next_version(&mut self) {
        self.played += 1;
        let word = self.word();
        for kind in self.kinds {
            match kind {
                Kind::Manifest => {
                    let objects = [config_map("plain", &word), config_map(&format!("plain-{word}"), &word)].concat();
                    self.stage.manifest("manifest", "", &objects);
                }
                Kind::Helm => self.stage.chart("helm", "", &[("word", &word)], &[("templates/all.yaml", CHART)]),
                Kind::Job => {
                    self.stage.program("job", &format!("args = [\"-c\", \"echo {word}\"]"), images::SHELL);
                }
            }
        }
        self.stage.sync().await;
    }

    async fn play(&mut self, cell: &Cell) {
        self.next_version().await;
        let component = cell.kind.component();
        let pods = self.pods_made();
        let releases = self.releases();
        let (plan, apply) = (format!("sync and plan {component}"), format!("apply {component}"));
        // A result is written at the end of a plan, too: here that of the apply is meant.
        let dies_planning = cell.point.story == Story::Plan;
        if dies_planning {
            self.stage.trap.set(cell.point, 1);
        }
        let id = self.stage.deploy(component).await;
        if dies_planning {
            self.stage.strike(cell.point, cell.victim).await;
        }
        let (waiting, _) = self.stage.waits(&id, &plan).await;
        assert_eq!(self.releases(), releases, "plans change nothing");
        if !dies_planning {
            self.stage.trap.set(cell.point, 1);
        }
        self.stage.approve(&waiting).await;
        if !dies_planning {
            self.stage.strike(cell.point, cell.victim).await;
        }
        if cell.fate() == Fate::Unknown {
            let lost = self.stage.until_step(&id, &apply, "unknown").await;
            self.stage.system.until_quiet().await;
            self.stage.client().retry_step(&id, &lost.id).await.unwrap();
            let (again, _) = self.stage.waiting_after(&id, &plan, &waiting).await;
            self.stage.approve(&again).await;
        }
        let done = self.stage.until(&id, "success").await;
        assert_eq!(ended(&done, &apply), "success", "{:?}", newest(&done, &apply));
        match cell.kind {
            Kind::Job => assert_eq!(self.pods_made(), pods + 1, "it ran once"),
            Kind::Manifest | Kind::Helm => self.judge_objects(cell, releases),
        }
        let part = self.stage.part(&format!("components/{component}")).await;
        assert_eq!(part["status"], "active", "{part}");
        self.stage.system.until_quiet().await;
        assert!(self.stage.runner_is_alive(), "the runner lives");
        let again = self.stage.run(json!({ "type": "manual_deploy", "component": component })).await;
        assert_eq!(ended(&again, &apply), "auto-skipped", "nothing is left to do");
    }

    /// Pods that were ever made for Jobs.
    fn pods_made(&self) -> usize {
        let selector = "--field-selector=involvedObject.kind=Job,reason=SuccessfulCreate";
        self.stage.namespace.kubectl(&["get", "events", selector, "--output", "name"]).lines().count()
    }

    /// Revisions of the release.
    fn releases(&self) -> usize {
        match self.kinds.contains(&Kind::Helm) {
            true => history(&self.stage, "configmap", "helm-release").len(),
            false => 0,
        }
    }

    fn judge_objects(&self, cell: &Cell, releases: usize) {
        let word = self.word();
        let name = if cell.kind == Kind::Helm { "charted" } else { "plain" };
        let object = |name: &str| self.stage.object("configmap", name);
        assert_eq!(object(name).unwrap()["data"]["word"], word.as_str());
        assert!(object(&format!("{name}-{word}")).is_some());
        let maps = self.stage.namespace.kubectl(&["get", "configmaps", "--output", "name"]);
        let old = maps.lines().filter(|map| map.starts_with(&format!("configmap/{name}-"))).count();
        assert_eq!(old, 1, "what left is gone: {maps}");
        if cell.kind == Kind::Helm {
            let all = history(&self.stage, "configmap", "helm-release");
            let deployed = all.iter().filter(|(_, status)| status == "deployed").count();
            let pending = all.iter().filter(|(_, status)| status.starts_with("pending")).count();
            assert_eq!((deployed, pending), (1, 0), "{all:?}");
            // One for each time that somebody has approved.
            let approved = if cell.fate() == Fate::Unknown { 2 } else { 1 };
            assert!(all.len() <= releases + approved, "{all:?}");
        }
    }
}

fn plays(lanes: usize, kinds: &'static [Kind]) {
    let (_dir, binary) = copies(&crate::ferry());
    let cells = cells(kinds);
    let (count, begun) = (cells.len(), Instant::now());
    in_lanes(lanes, cells, Cell::name, async |cells, current| {
        let mut lane = Box::pin(Lane::start(&binary, kinds)).await;
        while let Some(cell) = cells.next(current) {
            let started = Instant::now();
            Box::pin(lane.play(&cell)).await;
            eprintln!("{}: {:?}", cell.name(), started.elapsed());
        }
    });
    eprintln!("{count} cells in {:?}", begun.elapsed());
}

#[test]
fn whoever_dies_an_approval_is_carried_out_once_at_most() {
    needs!(Kube);
    plays(LANES, &[Kind::Manifest, Kind::Helm]);
}

#[test]
fn whoever_dies_a_job_runs_once() {
    needs!(KubeNode);
    plays(LANES, &[Kind::Job]);
}
