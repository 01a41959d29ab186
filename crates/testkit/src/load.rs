//! A load of drones. A job's work is to send a log that its id determines, and a result.
//!
//! Everything that the control plane acknowledged is kept in a ledger, which is compared with what it says in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use api::client::{Client, ClientError, JobFilter, LogFilter, LogFormat};
use api::control::{CreateApp, CreateInstall, CreateRunnerJob, Job, UpdateRunnerSettings};
use api::runner::Assignment;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use model::log::{Body, Chunk, NO_STEP, Pipe};
use model::{ExecutionId, JobGroup, JobId, JobState, JobType, RunnerId};
use runner::session::{CallError, Ending, SessionClient, now, random_hex};
use tokio::task::JoinSet;

use crate::drone::{Drone, RETRY, Work, about, patiently};

/// Slots of a simulated runner.
const SLOTS: u32 = 16;
/// Requests at a time when everything is compared.
const READS: usize = 16;

/// What was acknowledged.
#[derive(Debug, Default)]
struct Book {
    created: BTreeSet<JobId>,
    /// Starts that were granted.
    started: BTreeMap<JobId, BTreeSet<ExecutionId>>,
    /// Results that were taken.
    delivered: BTreeMap<JobId, ExecutionId>,
    /// What must not happen to a runner that lives.
    refused: Vec<String>,
    last_create: Option<Instant>,
    last_result: Option<Instant>,
}

#[derive(Debug, Clone, Default)]
struct Ledger(Arc<Mutex<Book>>);

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Simulated runners under load; they end when this is dropped.
#[derive(Debug)]
pub struct Load {
    client: Client,
    runners: Vec<RunnerId>,
    ledger: Ledger,
    tasks: JoinSet<()>,
    asked: usize,
}

/// What was compared in the end.
#[derive(Debug, Clone, Copy)]
pub struct Compared {
    pub jobs: usize,
    pub log_bytes: usize,
    /// Claims that never started: their answer was lost, and they went back.
    pub handed_back: usize,
}

impl Load {
    /// Makes an app, and so many installs whose runners join and poll.
    pub async fn start(client: &Client, runner_url: &str, runners: usize) -> anyhow::Result<Self> {
        let http = runner::net::client(runner_url, None)?;
        let app = CreateApp { name: "load".into(), display_name: String::new(), description: String::new() };
        let app = client.create_app(&app).await?;
        let mut load = Self {
            client: client.clone(),
            runners: Vec::new(),
            ledger: Ledger::default(),
            tasks: JoinSet::new(),
            asked: 0,
        };
        for n in 0..runners {
            let name = format!("load-{n}");
            let install = CreateInstall::local(name);
            let install = client.create_install(app.id.as_str(), &install).await?;
            let groups = Some(BTreeMap::from([(JobGroup::Operations, SLOTS)]));
            let settings = UpdateRunnerSettings { groups, ..Default::default() };
            client.update_runner_settings(install.runner_id.as_str(), &settings).await?;
            let drone = Drone::join(client, &http, runner_url, &install.runner_id).await?;
            load.tasks.spawn(drone.fly(load.ledger.clone()));
            load.runners.push(install.runner_id);
        }
        Ok(load)
    }

    /// Creates jobs at this rate, or as fast as they are done, until it is over. One that is not acknowledged is asked for again, under its own key.
    /// With `under_way` jobs not over yet, no more are offered.
    pub async fn offer(&mut self, per_second: u32, under_way: usize, over: &AtomicBool) {
        let mut timer = tokio::time::interval(Duration::from_secs(1) / per_second);
        while !over.load(Ordering::Relaxed) {
            timer.tick().await;
            if self.asked - self.delivered() >= under_way {
                continue;
            }
            self.asked += 1;
            let runner = self.runners[self.asked % self.runners.len()].clone();
            let (client, ledger) = (self.client.clone(), self.ledger.clone());
            self.tasks.spawn(async move {
                let job = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
                let client = client.with_idempotency_key(random_hex::<16>());
                match acknowledged(|| client.create_runner_job(runner.as_str(), &job)).await {
                    Ok(job) => {
                        let mut book = ledger.book();
                        book.created.insert(job.id);
                        book.last_create = Some(Instant::now());
                    }
                    Err(error) => ledger.book().refused.push(format!("a create: {error}")),
                }
            });
        }
    }

    /// What `until_flows` looks at; it works while jobs are offered.
    pub fn gauge(&self) -> Gauge {
        Gauge(self.ledger.clone())
    }

    /// How many results were acknowledged so far.
    pub fn delivered(&self) -> usize {
        self.ledger.book().delivered.len()
    }

    /// Waits until everything that was acknowledged is over, and compares it with what the control plane says.
    pub async fn compare(self, bound: Duration) -> anyhow::Result<Compared> {
        let until = Instant::now() + bound;
        loop {
            let (created, missing) = {
                let book = self.ledger.book();
                ensure!(book.refused.is_empty(), "refused: {:#?}", book.refused);
                let missing = book.created.iter().find(|job| !book.delivered.contains_key(*job)).cloned();
                (book.created.len(), missing)
            };
            match missing {
                None if created == self.asked => break,
                Some(job) if Instant::now() >= until => bail!("a job was lost: {:?}", self.client.job(&job).await),
                None if Instant::now() >= until => bail!("{created} of {} were acknowledged", self.asked),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        let created = self.ledger.book().created.clone();
        let mut there = BTreeSet::new();
        for runner in &self.runners {
            let job_type = Some(JobType::Noop);
            let filter = JobFilter { runner: Some(runner.to_string()), job_type, ..JobFilter::default() };
            there.extend(self.client.jobs(&filter, usize::MAX).await?.into_iter().map(|job| job.id));
        }
        ensure!(there == created, "{} jobs are there, {} were acknowledged", there.len(), created.len());
        completed_once(&self.client, &created).await?;
        let mut sum = Compared { jobs: created.len(), log_bytes: 0, handed_back: 0 };
        let looks = created.iter().map(|job| self.look(job));
        let mut looks = stream::iter(looks).buffer_unordered(READS);
        while let Some(seen) = looks.next().await {
            let (log_bytes, handed_back) = seen?;
            sum.log_bytes += log_bytes;
            sum.handed_back += handed_back;
        }
        Ok(sum)
    }

    /// One job as the control plane has it: finished by the one execution that was started, with its log byte for byte.
    async fn look(&self, id: &JobId) -> anyhow::Result<(usize, usize)> {
        let job = self.client.job(id).await?;
        let (started, delivered) = {
            let book = self.ledger.book();
            (book.started.get(id).cloned().unwrap_or_default(), book.delivered.get(id).cloned())
        };
        let shown = || format!("{job:#?}\nstarted {started:?}\ndelivered {delivered:?}");
        ensure!(job.status == JobState::Finished, "not finished: {}", shown());
        ensure!(job.execution_count == job.executions.len() as u64, "the count is wrong: {}", shown());
        let ran: BTreeSet<_> = job.executions.iter().filter(|e| e.started_at.is_some()).map(|e| e.id.clone()).collect();
        ensure!(ran.len() == 1 && ran == started, "started otherwise: {}", shown());
        ensure!(job.final_runner_job_execution_id == delivered, "finished by another: {}", shown());
        let back = job.executions.iter().filter(|e| !ran.contains(&e.id));
        ensure!(back.clone().all(|e| e.status == "handed-back"), "what did not start went back: {}", shown());
        let log = read_log(&self.client, &job, Some("stdout")).await?;
        ensure!(log == log_of(id), "the log is not what was sent: {} bytes, {}", log.len(), shown());
        Ok((log.len(), back.count()))
    }
}

/// Asks until there is an answer. Under one key, so that what was made before an answer got lost is found again.
pub async fn acknowledged<F>(create: impl Fn() -> F) -> Result<Job, ClientError>
where
    F: Future<Output = Result<Job, ClientError>>,
{
    loop {
        match create().await {
            Err(error) if error.is_transient() => tokio::time::sleep(RETRY).await,
            answer => return answer,
        }
    }
}

/// The log of a job, byte for byte.
pub async fn read_log(client: &Client, job: &Job, pipe: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut chunks = client.log_bytes(&job.log_stream_id, LogFormat::Raw, &LogFilter::pipe(pipe), false).await?;
    let mut log = Vec::new();
    while let Some(chunk) = chunks.next().await {
        log.extend_from_slice(&chunk?);
    }
    Ok(log)
}

/// The events say of each of these jobs that it came to an end, once.
pub async fn completed_once(client: &Client, jobs: &BTreeSet<JobId>) -> anyhow::Result<()> {
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    let mut after = "0-0".to_owned();
    let mut looks = 0;
    loop {
        let (events, _) = client.events(Some(&after), None, 100).await?;
        for event in events.iter().filter(|e| e.kind == "job.state") {
            let to = event.data["to"].as_str().and_then(JobState::parse).context("a state")?;
            if to.is_terminal() {
                *ends.entry(event.subject_id.clone()).or_default() += 1;
            }
        }
        if let Some(last) = events.last() {
            after.clone_from(&last.id);
            continue;
        }
        let wrong = jobs.iter().find(|job| ends.get(job.as_str()) != Some(&1));
        let Some(job) = wrong else { return Ok(()) };
        // On PostgreSQL the latest show when no older transaction is open, of whomever.
        looks += 1;
        ensure!(looks < 50, "{job} ended {:?} times", ends.get(job.as_str()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Tells when work flows.
#[derive(Debug, Clone)]
pub struct Gauge(Ledger);

impl Gauge {
    /// How long after this moment a create and a result were acknowledged again.
    pub async fn until_flows(&self, since: Instant, bound: Duration) -> anyhow::Result<Duration> {
        loop {
            let (create, result) = {
                let book = self.0.book();
                (book.last_create, book.last_result)
            };
            if create.is_some_and(|t| t > since) && result.is_some_and(|t| t > since) {
                return Ok(since.elapsed());
            }
            ensure!(since.elapsed() < bound, "no work flows {bound:?} after the restart");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Work for Ledger {
    fn started(&self, work: &Assignment) {
        self.book().started.entry(work.job_id.clone()).or_default().insert(work.execution_id.clone());
    }

    /// Sends the log in two batches, each until it is taken.
    async fn carry_out(&self, client: &SessionClient, work: &Assignment) -> Result<u64, CallError> {
        let chunks = chunks_of(&work.job_id);
        let (first, second) = chunks.split_at(chunks.len() / 2);
        for batch in [first, second] {
            let mut frames = Vec::new();
            batch.iter().for_each(|chunk| chunk.encode(&mut frames));
            let packed = Bytes::from(zstd::bulk::compress(&frames, 1).expect("it fits in memory"));
            patiently(|| client.append_log(about(work), packed.clone())).await?;
        }
        Ok(chunks.len() as u64)
    }

    fn delivered(&self, work: &Assignment, outcome: Result<(), CallError>) {
        let mut book = self.book();
        match outcome {
            Err(error) => book.refused.push(format!("{}: {error}", work.job_id)),
            // A health check, which nobody here has asked for.
            Ok(()) if work.job_type != JobType::Noop => {}
            Ok(()) => {
                book.delivered.insert(work.job_id.clone(), work.execution_id.clone());
                book.last_result = Some(Instant::now());
            }
        }
    }

    fn ended(&self, ending: Ending) {
        self.book().refused.push(format!("a runner ended: {ending:?}"));
    }
}

/// The log of a simulated job: bytes of all kinds that follow from its id.
pub fn log_of(job: &JobId) -> Vec<u8> {
    let mut seed =
        job.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
            | 1;
    let mut draw = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let length = 64 + draw() % 1024;
    (0..length).map(|_| draw() as u8).collect()
}

fn chunks_of(job: &JobId) -> Vec<Chunk> {
    let log = log_of(job);
    let piece = log.len().div_ceil(4);
    let cut = log.chunks(piece).zip(0u64..).map(|(bytes, seq)| Chunk {
        seq,
        time_ns: (now().micros() as u64) * 1000 + seq * 100_000,
        pipe: Pipe::Stdout,
        step: NO_STEP,
        offset: seq * piece as u64,
        body: Body::Data(bytes.to_vec()),
    });
    cut.collect()
}
