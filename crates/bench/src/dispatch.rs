//! Dispatch: from the acknowledged enqueue to the moment a parked runner holds the job.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use api::client::Client;
use api::control::CreateRunnerJob;
use model::{JobGroup, JobType};
use tokio::sync::mpsc;

use crate::drone::{self, Tally};

pub(crate) async fn dispatch_ms(
    client: &Client,
    runner_url: &str,
    parked: usize,
    jobs: usize,
) -> anyhow::Result<Vec<f64>> {
    let https = drone::clients(4, None)?;
    let drones = drone::join(client, runner_url, &https, "dispatch", parked).await?;
    let runners: Vec<String> = drones.iter().map(|d| d.joined.runner_id.to_string()).collect();
    let settings = drone::settings(&[(JobGroup::Operations, 1)]);
    for runner in &runners {
        client.update_runner_settings(runner, &settings).await?;
    }
    let (send, mut receive) = mpsc::unbounded_channel();
    let tally = Tally { held: Some(send), ..Tally::default() };
    for drone in drones {
        tokio::spawn(drone.fly(tally.clone()));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut times = Vec::with_capacity(jobs);
    for n in 0..jobs {
        let runner = &runners[(n * 37) % runners.len()];
        let job = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
        let made = client.create_runner_job(runner, &job).await?;
        let acknowledged = Instant::now();
        let got = tokio::time::timeout(Duration::from_secs(10), receive.recv()).await?;
        let (got, at) = got.context("no runner is left")?;
        anyhow::ensure!(got == made.id.to_string(), "another job arrived");
        // The runner may hold it before the answer to the enqueue was read.
        times.push(at.saturating_duration_since(acknowledged).as_secs_f64() * 1000.0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(times)
}
