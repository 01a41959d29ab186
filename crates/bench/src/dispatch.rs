//! Dispatch: from the acknowledged enqueue to the moment a parked runner holds the job. The runners here are the real
//! session client without executors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use api::control::{CreateApp, CreateInstall, CreateRunnerJob};
use api::runner::{Held, PollRequest};
use model::papers::Signatory;
use model::runner::RunnerReport;
use model::{ExecutionResult, JobGroup, JobType, Outcome};
use runner::session::{About, Door, SessionClient, now, random_hex};
use tokio::sync::mpsc;

use crate::system::System;

/// A runner that was parked when a job came: which job, and when it held it.
struct Received {
    job: String,
    at: Instant,
}

pub(crate) async fn dispatch_ms(system: &System, parked: usize, jobs: usize) -> anyhow::Result<Vec<f64>> {
    let http = runner::net::client(&system.runner_url, None)?;
    let (send, mut receive) = mpsc::channel(1024);
    let mut runners = Vec::new();
    let app = CreateApp { name: "bench".into(), display_name: String::new(), description: String::new() };
    let app = system.client.create_app(&app).await?;
    for n in 0..parked {
        let install =
            CreateInstall { name: format!("bench-{n}"), aws_account: None, azure_account: None, gcp_account: None };
        let install = system.client.create_install(app.id.as_str(), &install).await?;
        let command = system.client.create_join_command(install.runner_id.as_str()).await?;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&(n as u64 + 1).to_be_bytes());
        let key = Signatory::from_seed(&seed);
        let door = Door { http: &http, url: &system.runner_url };
        let joined = door.join(&command.credential, &key, "bench").await?;
        let client =
            SessionClient::new(http.clone(), &system.runner_url, joined.runner_id.clone(), joined.generation, key);
        let version = joined.settings.version;
        tokio::spawn(park(client, version, send.clone()));
        runners.push(install.runner_id);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let client = Arc::new(system.client.clone());
    let mut times = Vec::with_capacity(jobs);
    for n in 0..jobs {
        let runner = runners[(n * 37) % runners.len()].clone();
        let job = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
        let made = client.create_runner_job(runner.as_str(), &job).await?;
        let acknowledged = Instant::now();
        let got = tokio::time::timeout(Duration::from_secs(10), receive.recv()).await?.context("no runner is left")?;
        anyhow::ensure!(got.job == made.id.to_string(), "another job arrived");
        // The runner may hold it before the answer to the enqueue was read.
        times.push(got.at.saturating_duration_since(acknowledged).as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(times)
}

/// Polls, and finishes at once whatever comes.
async fn park(client: SessionClient, settings_version: u64, send: mpsc::Sender<Received>) {
    let mut held: Vec<Held> = Vec::new();
    let mut seq = 0;
    loop {
        seq += 1;
        let request = PollRequest {
            nonce: random_hex::<16>(),
            process: 1,
            seq,
            free: BTreeMap::from([(JobGroup::Operations, 1)]),
            held: std::mem::take(&mut held),
            cancels_known: Vec::new(),
            settings_version,
            report: RunnerReport { disk_free_bytes: 1 << 40, ..RunnerReport::default() },
            no_wait: false,
        };
        let Ok(answer) = client.poll(&request, 25).await else { return };
        let at = Instant::now();
        for job in answer.jobs {
            if send.send(Received { job: job.job_id.to_string(), at }).await.is_err() {
                return;
            }
            let about = About { id: &job.execution_id, token: &job.execution_token };
            let time = now();
            let result = ExecutionResult {
                outcome: Outcome::Finished,
                error: None,
                steps: Vec::new(),
                outputs: serde_json::Map::new(),
                log_chunks: 0,
                started_at: time,
                finished_at: time,
            };
            if client.start(about).await.is_err() || client.result(about, job.epoch, &result).await.is_err() {
                return;
            }
        }
    }
}
