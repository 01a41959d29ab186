//! Workflows: what the system adds to a deploy, how soon an approval moves something, how many steps a server makes, and what a
//! fleet costs. But for the first, steps are played by a simulated org: no runner, and the same course every time.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use api::client::Client;
use api::control::{CreateStepApprovalResponse, CreateWorkflow, Event, Job, Workflow, WorkflowStep};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use model::{JobId, Timestamp};
use runner::session::now;
use rusqlite::Connection;
use serde_json::json;
use testkit::Backend;
use testkit::rehearsal::Rehearsal;
use testkit::system::{Options, System, shown};

use crate::parked::cpu_s;
use crate::{Figure, growth, percentile};

const DEPLOYS: usize = 20;
/// Components of the simulated app, none of which needs another.
const COMPONENTS: usize = 10;
const APPROVERS: usize = 20;
const ENGINE_INSTALLS: usize = 100;
const FLEET: usize = 1000;
const FEW: usize = 10;
const MANY: usize = 10_000;
/// Deploys and teardowns of each of the few installs.
const ROUNDS: usize = 60;
const QUARTERS: usize = 4;
const AT_A_TIME: usize = 16;
const SOON: Duration = Duration::from_secs(120);

/// The least that the work could cost at this moment.
pub(crate) struct Floors {
    pub(crate) round_trip_ms: f64,
    pub(crate) commit_ms: f64,
    /// Rows in groups, each group a commit.
    pub(crate) rows_s: f64,
}

pub(crate) async fn figures(options: &Options, floors: &Floors) -> anyhow::Result<Vec<Figure>> {
    let (trip, commit) = (floors.round_trip_ms, floors.commit_ms);
    let mut figures = Vec::new();

    let idle_ms = deploy_idle_ms(options.clone()).await?;
    // Queued, claimed, started, ended.
    let floor = 3.0 * (3.0 * trip + 4.0 * commit);
    let idle = Figure::lower("deploy3_idle_ms", idle_ms, "ms", 100.0);
    figures.push(idle.over("three jobs: 3 round trips, 4 commits each", floor));

    let mut times = approvals_ms(options.clone()).await?;
    eprintln!("{} approvals, p50 {:.2} ms", times.len(), percentile(&mut times, 0.5));
    let p99 = Figure::lower("approve_to_start_p99_ms", percentile(&mut times, 0.99), "ms", 50.0);
    figures.push(p99.over("HTTP round trip + durable commit", trip + commit));

    let rows = "bare group commits, a row a step";
    let sqlite = engine_steps_s(options.clone().on(Backend::Sqlite)).await?;
    figures.push(Figure::higher("engine_steps_sqlite_s", sqlite, "1/s", 2000.0).over(rows, floors.rows_s));
    let postgres = engine_steps_s(options.clone().on(Backend::Postgres)).await?;
    figures.push(Figure::higher("engine_steps_postgres_s", postgres, "1/s", 1000.0).over(rows, floors.rows_s));

    let (wall_s, server_s, steps) = fleet(options.clone()).await?;
    eprintln!("{FLEET} installs: {steps} steps in {wall_s:.1} s, {server_s:.1} s of the server's CPU");
    let floor = steps / floors.rows_s;
    figures.push(Figure::lower("fleet1000_s", wall_s, "s", 60.0).over(rows, floor));
    figures.push(Figure::lower("fleet1000_cpu_s", server_s, "s", 60.0).over(rows, floor));
    Ok(figures)
}

/// What a deploy costs in an org of many installs, beside one of few.
pub(crate) async fn growth(options: &Options) -> anyhow::Result<[Figure; 2]> {
    let (small, later) = deploy_costs(options.clone(), FEW).await?;
    let (large, _) = deploy_costs(options.clone(), MANY).await?;
    eprintln!(
        "CPU of a deploy with {FEW} installs {small:.2} ms, {later:.2} after many others; with {MANY} {large:.2}"
    );
    let installs = Figure::lower("growth_installs_ratio", large / small, "", 1.2);
    let history = Figure::lower("growth_history_ratio", later / small, "", 1.2);
    Ok([installs.over("no growth", 1.0), history.over("no growth", 1.0)])
}

/// Lets a call run for every number, some at a time.
async fn each<T>(count: usize, call: impl AsyncFn(usize) -> anyhow::Result<T>) -> anyhow::Result<Vec<T>> {
    futures::stream::iter((0..count).map(|n| call(n))).buffered(AT_A_TIME).try_collect().await
}

fn ms(from: Timestamp, to: Timestamp) -> f64 {
    (to.micros() - from.micros()) as f64 / 1000.0
}

// --- a deploy of three jobs ---

/// A real runner carries out three actions that hang on a deploy, one after the other: the time from the request to the end, without
/// the time that their scripts took.
async fn deploy_idle_ms(options: Options) -> anyhow::Result<f64> {
    let system = System::start(options).await;
    sync_hooks(&system).await?;
    let _runner = system.start_runner("a").await;
    let install = system.install.id.as_str();
    let body: CreateWorkflow = serde_json::from_value(json!({ "type": "deploy_components" }))?;
    let (mut idle, mut whole) = (Vec::new(), Vec::new());
    for round in 0..=DEPLOYS {
        let asked = now();
        let id = system.client.start_workflow(install, &body).await?.workflow_id;
        let workflow = until_over(&system.client, &id).await?;
        let all = ms(asked, workflow.finished_at.context("it is over")?);
        let jobs = jobs_of(&system.client, &workflow).await?;
        ensure!(jobs.len() == 3, "{} jobs instead of three", jobs.len());
        // The first one finds nothing in any cache.
        if round > 0 {
            whole.push(all);
            idle.push(all - jobs.iter().flat_map(script_ms).sum::<f64>());
        }
    }
    let (all, idle) = (percentile(&mut whole, 0.5), percentile(&mut idle, 0.5));
    eprintln!("a deploy of three jobs: {all:.1} ms, of which nobody worked {idle:.1} ms");
    Ok(idle)
}

/// An app whose deploys have three actions and nothing else.
async fn sync_hooks(system: &System) -> anyhow::Result<()> {
    let dir = system.root().join("hooks");
    testkit::rehearsal::write_app(&dir, 0, 1)?;
    fs_err::create_dir_all(dir.join("actions"))?;
    for n in 0..3 {
        let text = format!(
            "name = \"hook_{n}\"\n[[triggers]]\ntype = \"pre-deploy-all-components\"\nindex = {n}\n[[steps]]\nname = \"nothing\"\ncommand = \"true\"\n"
        );
        fs_err::write(dir.join(format!("actions/hook_{n}.toml")), text)?;
    }
    let (dir, app) = (dir.to_string_lossy().into_owned(), system.install.app_id.as_str());
    let synced = system.ferry(&["apps", "sync", &dir, "--app", app, "--no-wait"]).await;
    ensure!(synced.status.success(), "{}", shown(&synced));
    Ok(())
}

async fn until_over(client: &Client, id: &str) -> anyhow::Result<Workflow> {
    let started = Instant::now();
    loop {
        let workflow = client.workflow(id).await?;
        if workflow.finished {
            ensure!(workflow.status.status == "success", "{:?}", workflow.status);
            return Ok(workflow);
        }
        ensure!(started.elapsed() < SOON, "workflow {id} does not end: {:?}", workflow.status);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn jobs_of(client: &Client, workflow: &Workflow) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for step in &workflow.steps {
        let job = client.step(&step.id).await?.runner_job_id;
        if !job.is_empty() {
            jobs.push(client.job(&JobId::parse(&job)?).await?);
        }
    }
    Ok(jobs)
}

/// How long each script of a job ran.
fn script_ms(job: &Job) -> Vec<f64> {
    job.steps.iter().filter_map(|step| Some(ms(step.started_at?, step.finished_at?))).collect()
}

// --- approvals ---

/// From the moment when an approval is sent to the moment when someone who watches the org's events sees its apply in progress.
async fn approvals_ms(options: Options) -> anyhow::Result<Vec<f64>> {
    let system = System::start(options).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 100)], COMPONENTS, COMPONENTS).await?;
    let last = rehearsal.client.events(None, None, 1).await?.0.pop().context("an org begins with events")?;
    let mut events = rehearsal.client.watch_events(Some(last.id), None);
    let mut times = Vec::new();
    for n in 0..APPROVERS {
        let id = rehearsal.install(&format!("i{n}")).await?.workflow_id;
        for wanted in [1, COMPONENTS] {
            for step in awaiting(&rehearsal.client, &id, wanted).await? {
                times.push(approve(&rehearsal.client, &step, &mut events).await?);
            }
        }
        rehearsal.until(&id, "success", SOON).await?;
    }
    Ok(times)
}

/// Waits until so many steps of a workflow wait for an approval.
async fn awaiting(client: &Client, workflow: &str, wanted: usize) -> anyhow::Result<Vec<WorkflowStep>> {
    let started = Instant::now();
    loop {
        let steps = client.workflow(workflow).await?.steps;
        let waiting: Vec<_> = steps.into_iter().filter(|step| step.status.status == "approval-awaiting").collect();
        if waiting.len() == wanted {
            return Ok(waiting);
        }
        ensure!(started.elapsed() < SOON, "{} of {wanted} plans wait for an approval", waiting.len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn approve(
    client: &Client,
    step: &WorkflowStep,
    events: &mut BoxStream<'static, api::client::Result<Event>>,
) -> anyhow::Result<f64> {
    let body = CreateStepApprovalResponse { response_type: "approve".into(), note: String::new() };
    let approval = &step.approval.as_ref().context("a plan")?.id;
    let apply = match step.name.strip_prefix("sync and plan ") {
        Some(component) => format!("apply {component}"),
        None => "provision sandbox apply plan".to_owned(),
    };
    let is_begun = |event: &Event| {
        event.subject_id == step.workflow_id && event.data["name"] == json!(apply) && event.data["to"] == "in-progress"
    };
    // What happened before is read before.
    while let Ok(Some(_)) = tokio::time::timeout(Duration::from_millis(2), events.next()).await {}
    let sent = Instant::now();
    let begun = async {
        while let Some(event) = events.next().await {
            if is_begun(&event?) {
                return Ok(sent.elapsed());
            }
        }
        anyhow::bail!("the events have ended")
    };
    let answered = async { anyhow::Ok(client.answer_step(&step.workflow_id, &step.id, approval, &body).await?) };
    let both = async { tokio::try_join!(begun, answered) };
    let (begun, _) = tokio::time::timeout(SOON, both).await.context("nothing was begun")??;
    Ok(begun.as_secs_f64() * 1000.0)
}

// --- steps ---

/// Makes installs, and brings them all up.
async fn provisioned(rehearsal: &Rehearsal, count: usize) -> anyhow::Result<Vec<Workflow>> {
    let begin = async |n: usize| {
        let id = rehearsal.install(&format!("i{n}")).await?.workflow_id;
        rehearsal.client.approve_all(&id).await?;
        anyhow::Ok(id)
    };
    let mut up = Vec::with_capacity(count);
    for id in each(count, begin).await? {
        up.push(rehearsal.until(&id, "success", SOON).await?);
    }
    Ok(up)
}

/// Tears all installs down and brings them up again; says how many steps that were.
async fn round(rehearsal: &Rehearsal, installs: usize) -> anyhow::Result<usize> {
    let mut steps = 0;
    for kind in ["deprovision", "provision"] {
        let start = async |n: usize| rehearsal.start(&format!("i{n}"), kind).await;
        for id in each(installs, start).await? {
            steps += rehearsal.until(&id, "success", SOON).await?.steps.len();
        }
    }
    Ok(steps)
}

/// Steps per second that one server brings to their end, of installs that move side by side; the steps themselves take no time.
async fn engine_steps_s(options: Options) -> anyhow::Result<f64> {
    let backend = options.backend;
    let system = System::start(options).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)], COMPONENTS, COMPONENTS).await?;
    provisioned(&rehearsal, ENGINE_INSTALLS).await?;
    let pid = system.server().pid();
    let (at, cpu, mut steps) = (Instant::now(), cpu_s(pid)?, 0);
    // One round may be over in a moment.
    while at.elapsed() < Duration::from_secs(5) {
        steps += round(&rehearsal, ENGINE_INSTALLS).await?;
    }
    let (wall, cpu) = (at.elapsed().as_secs_f64(), cpu_s(pid)? - cpu);
    eprintln!("{backend}: {steps} steps in {wall:.1} s, {cpu:.1} s of the server's CPU");
    Ok(steps as f64 / wall)
}

/// A thousand installs from nothing to the end of their provisioning: seconds, the server's CPU seconds, and steps.
async fn fleet(options: Options) -> anyhow::Result<(f64, f64, f64)> {
    let system = System::start(options).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 20)], COMPONENTS, COMPONENTS / 2).await?;
    let pid = system.server().pid();
    let (at, cpu) = (Instant::now(), cpu_s(pid)?);
    let all = provisioned(&rehearsal, FLEET).await?;
    let steps: usize = all.iter().map(|workflow| workflow.steps.len()).sum();
    Ok((at.elapsed().as_secs_f64(), cpu_s(pid)? - cpu, steps as f64))
}

// --- growth ---

/// What deploys and teardowns of a few installs cost, in an org that has `installs` of them, all of which were brought up once: at
/// first, and after some hundreds of each; milliseconds of the server's CPU.
async fn deploy_costs(options: Options, installs: usize) -> anyhow::Result<(f64, f64)> {
    let mut system = System::start(options).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)], COMPONENTS, COMPONENTS).await?;
    provisioned(&rehearsal, FEW).await?;
    // Both are started anew, so that both begin with empty caches.
    let stopped = system.stop_server().await;
    ensure!(stopped.0.success(), "the server did not stop");
    let database = growth::database(system.root())?;
    tokio::task::spawn_blocking(move || copy_installs(&database, installs - FEW)).await??;
    system.start_server().await;
    // What a cache takes once is not the cost of a deploy.
    for _ in 0..ROUNDS / 4 {
        round(&rehearsal, FEW).await?;
    }
    let pid = system.server().pid();
    let mut costs = Vec::new();
    for _ in 0..QUARTERS {
        let before = cpu_s(pid)?;
        for _ in 0..ROUNDS {
            round(&rehearsal, FEW).await?;
        }
        costs.push((cpu_s(pid)? - before) * 1000.0 / (2 * ROUNDS * FEW) as f64);
    }
    Ok((costs[0], costs[QUARTERS - 1]))
}

/// Copies an install as often as asked, with its runner, inputs, state and workflow.
fn copy_installs(path: &std::path::Path, count: usize) -> anyhow::Result<()> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "synchronous", "OFF")?;
    db.execute_batch("BEGIN")?;
    let (install, runner): (String, String) =
        db.query_row("SELECT id, runner_id FROM installs WHERE name = 'i0'", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let workflow: String =
        db.query_row("SELECT id FROM workflows WHERE install_id = ?1", [&install], |row| row.get(0))?;
    let tables: [(&str, &str, &String, &[&str]); 6] = [
        ("installs", "id", &install, &["id", "name", "runner_id"]),
        ("runners", "id", &runner, &["id", "name", "install_id"]),
        ("install_inputs", "install_id", &install, &["id", "install_id"]),
        ("install_parts", "install_id", &install, &["install_id", "workflow_id"]),
        ("workflows", "install_id", &install, &["id", "install_id"]),
        ("workflow_steps", "workflow_id", &workflow, &["id", "install_id", "workflow_id"]),
    ];
    for (table, key, value, replaced) in tables {
        let sql = growth::copy(&db, table, key, |column| {
            // The last characters of an id are chance: the number of the copy stands there as well.
            replaced.contains(&column).then(|| match column {
                "name" => "'copy-' || ?2".to_owned(),
                id => format!("substr({id}, 1, 21) || printf('%05d', ?2)"),
            })
        })?;
        for n in 0..count {
            db.prepare_cached(&sql)?.execute((value, n as i64))?;
        }
    }
    db.execute_batch("COMMIT")?;
    Ok(())
}
