//! Whether anything grows with what is over: the same operations on a small database and on one with ten thousand installs
//! and a million finished jobs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use api::client::JobFilter;
use api::control::CreateRunnerJob;
use api::runner::PollRequest;
use model::runner::RunnerReport;
use model::{InstallId, JobGroup, JobId, JobType, LogStreamId, RunnerId, Timestamp};
use runner::session::{now, random_hex};
use rusqlite::Connection;
use testkit::drone::{Drone, about, finished};
use testkit::system::{Options, System};

use crate::drone;

const ROUNDS: usize = 400;

/// The median of each operation in milliseconds.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) claim: f64,
    pub(crate) list: f64,
    pub(crate) list_of_install: f64,
    pub(crate) get: f64,
}

impl Costs {
    /// The worst growth of any operation.
    pub(crate) fn ratio(&self, small: &Self) -> f64 {
        let pairs = [
            (self.claim, small.claim),
            (self.list, small.list),
            (self.list_of_install, small.list_of_install),
            (self.get, small.get),
        ];
        pairs.iter().map(|(large, small)| large / small).fold(0.0, f64::max)
    }
}

pub(crate) async fn costs(options: Options, installs: usize, jobs: usize) -> anyhow::Result<Costs> {
    let mut system = System::start(options).await;
    let https = drone::clients(1, None)?;
    let drone = drone::join(&system.client, &system.runner_url, &https, "grown", 1).await?.remove(0);
    let mut seq = 1;
    let (_, job) = claim(&system, &drone, &mut seq).await?;
    let stopped = system.stop_server().await;
    ensure!(stopped.0.success(), "the server did not stop");
    let (database, template) = (database(system.root())?, job.to_string());
    tokio::task::spawn_blocking(move || fill(&database, &template, installs, jobs)).await??;
    system.start_server().await;
    let mut all = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let (took, job) = claim(&system, &drone, &mut seq).await?;
        all[0].push(took);
        let at = Instant::now();
        system.client.jobs(&JobFilter::default(), 10).await?;
        all[1].push(ms(at));
        let of = JobFilter { install: Some(system.install.id.to_string()), ..JobFilter::default() };
        let at = Instant::now();
        system.client.jobs(&of, 10).await?;
        all[2].push(ms(at));
        let at = Instant::now();
        system.client.job(&job).await?;
        all[3].push(ms(at));
    }
    let [claim, list, list_of_install, get] = all.map(|mut times| crate::percentile(&mut times, 0.5));
    Ok(Costs { claim, list, list_of_install, get })
}

fn ms(at: Instant) -> f64 {
    at.elapsed().as_secs_f64() * 1000.0
}

/// Queues a job, and measures the poll that claims it; then finishes it.
async fn claim(system: &System, drone: &Drone, seq: &mut u64) -> anyhow::Result<(f64, JobId)> {
    let job = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
    let job = system.client.create_runner_job(drone.joined.runner_id.as_str(), &job).await?;
    *seq += 1;
    let request = PollRequest {
        nonce: random_hex::<16>(),
        process: 1,
        seq: *seq,
        free: [(JobGroup::Operations, 1)].into(),
        held: Vec::new(),
        cancels_known: Vec::new(),
        watch: None,
        settings_version: drone.joined.settings.version,
        report: RunnerReport { disk_free_bytes: 1 << 40, ..RunnerReport::default() },
        no_wait: true,
    };
    let at = Instant::now();
    let answer = drone.client.poll(&request, 1).await?;
    let took = ms(at);
    let given = answer.jobs.first().context("the job is claimed")?;
    drone.client.start(about(given)).await?;
    drone.client.result(about(given), given.epoch, &finished(0)).await?;
    Ok((took, job.id))
}

pub(crate) fn database(root: &Path) -> anyhow::Result<PathBuf> {
    let mut dirs = vec![root.join("data")];
    while let Some(dir) = dirs.pop() {
        for entry in fs_err::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.file_name().is_some_and(|name| name == "ferry.db") {
                return Ok(path);
            }
        }
    }
    anyhow::bail!("there is no ferry.db under {}", root.display())
}

/// Copies one finished job, with its execution, event, install and runner, as often as asked.
fn fill(path: &Path, template: &str, installs: usize, jobs: usize) -> anyhow::Result<()> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "synchronous", "OFF")?;
    db.execute_batch("BEGIN")?;
    let time = Timestamp::from_micros(now().micros() - 86_400_000_000);
    let mut runners = Vec::with_capacity(installs);
    let copy_install = copy_row(&db, "installs", &["id", "name", "runner_id"])?;
    let copy_runner = copy_row(&db, "runners", &["id", "name", "install_id"])?;
    let template_install: String =
        db.query_row("SELECT install_id FROM jobs WHERE id = ?1", [template], |row| row.get(0))?;
    let template_runner: String =
        db.query_row("SELECT runner_id FROM jobs WHERE id = ?1", [template], |row| row.get(0))?;
    for n in 0..installs {
        let (install, runner) = (InstallId::new(time, n as u128), RunnerId::new(time, n as u128));
        let name = format!("copy-{n}");
        db.prepare_cached(&copy_install)?.execute((&template_install, install.as_str(), &name, runner.as_str()))?;
        db.prepare_cached(&copy_runner)?.execute((&template_runner, runner.as_str(), &name, install.as_str()))?;
        runners.push((runner.to_string(), install.to_string()));
    }
    let copy_job = copy_row(&db, "jobs", &["id", "log_stream_id", "runner_id", "install_id"])?;
    let copy_execution = copy_row(&db, "executions", &["id", "job_id", "runner_id"])?;
    let execution: String =
        db.query_row("SELECT id FROM executions WHERE job_id = ?1", [template], |row| row.get(0))?;
    for n in 0..jobs {
        let id = JobId::new(time, n as u128);
        let (runner, install) = &runners[n % installs];
        let log = LogStreamId::new(time, n as u128);
        db.prepare_cached(&copy_job)?.execute((template, id.as_str(), log.as_str(), runner, install))?;
        let made = model::ExecutionId::new(time, n as u128);
        db.prepare_cached(&copy_execution)?.execute((&execution, made.as_str(), id.as_str(), runner))?;
    }
    let events = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2) INSERT INTO events (xid, org_id, time, kind, subject_type, subject_id, actor, data) SELECT xid, org_id, time, kind, subject_type, subject_id, actor, data FROM n, (SELECT * FROM events WHERE subject_id = ?1 LIMIT 1)";
    db.execute(events, (template, jobs as i64))?;
    db.execute_batch("COMMIT")?;
    Ok(())
}

/// A statement that copies the row whose id is `?1`, with these columns replaced by `?2`, `?3`, …
fn copy_row(db: &Connection, table: &str, replaced: &[&str]) -> anyhow::Result<String> {
    copy(db, table, "id", |column| replaced.iter().position(|r| *r == column).map(|at| format!("?{}", at + 2)))
}

/// A statement that copies the rows whose `key` is `?1`; some columns have another value there.
pub(crate) fn copy(
    db: &Connection,
    table: &str,
    key: &str,
    other: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<String> {
    let mut statement = db.prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
    let columns: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let values = columns.iter().map(|column| other(column).unwrap_or_else(|| column.clone()));
    let values = values.collect::<Vec<_>>().join(", ");
    Ok(format!("INSERT INTO {table} ({}) SELECT {values} FROM {table} WHERE {key} = ?1", columns.join(", ")))
}
