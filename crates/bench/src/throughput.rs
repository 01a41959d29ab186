//! No-op jobs through their whole life over HTTP: queued, claimed, started, finished. The generator shares the cores with the
//! server, and is the runner: no process is spawned.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use api::control::CreateRunnerJob;
use model::{JobGroup, JobType};
use testkit::Backend;
use testkit::system::{Options, System};

use crate::drone::{self, Tally};

const RUNNERS: usize = 16;
const SLOTS: u32 = 16;
const CREATORS: usize = 64;

/// Jobs per second.
pub(crate) async fn jobs_per_s(options: Options, backend: Backend, jobs: usize) -> anyhow::Result<f64> {
    let system = System::start(options.on(backend)).await;
    let https = drone::clients(4, None)?;
    let drones = drone::join(&system.client, &system.runner_url, &https, "load", RUNNERS).await?;
    let tally = Tally::default();
    let runners: Vec<String> = drones.iter().map(|d| d.joined.runner_id.to_string()).collect();
    for runner in &runners {
        let settings = drone::settings(&[(JobGroup::Operations, SLOTS)]);
        system.client.update_runner_settings(runner, &settings).await?;
    }
    for drone in drones {
        tokio::spawn(drone.fly(tally.clone()));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    let create = || async {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= jobs {
                return anyhow::Ok(());
            }
            let job = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
            system.client.create_runner_job(&runners[n % RUNNERS], &job).await?;
        }
    };
    futures::future::try_join_all((0..CREATORS).map(|_| create())).await?;
    while (tally.results.load(Ordering::Relaxed) as usize) < jobs {
        ensure!(started.elapsed() < Duration::from_secs(120), "the jobs do not end");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (seconds, polls) = (started.elapsed().as_secs_f64(), tally.polls.load(Ordering::Relaxed));
    eprintln!("{backend}: {jobs} jobs, {polls} polls, {seconds:.1} s");
    Ok(jobs as f64 / seconds)
}
