//! What a real runner does: jobs through one group, cancels, and the takeover after its death.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use api::control::CreateRunnerJob;
use model::{JobGroup, JobState, JobType};
use testkit::system::{Options, SOON, System};

pub(crate) struct Work {
    pub(crate) jobs_per_s: f64,
    pub(crate) rss_mib: f64,
    pub(crate) cancel_ms: Vec<f64>,
    pub(crate) takeover_ms: f64,
}

pub(crate) async fn measure(options: Options) -> anyhow::Result<Work> {
    let system = System::start(options).await;
    let settings = crate::drone::settings(&[(JobGroup::Operations, 8), (JobGroup::Actions, 2)]);
    system.client.update_runner_settings(system.install.runner_id.as_str(), &settings).await?;
    let mut runner = system.start_runner("a").await;
    let jobs_per_s = group_jobs(&system, 1000).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let rss_mib = crate::system::rss_mib(runner.pid() as u32)?;
    let mut cancel_ms = Vec::new();
    for n in 0..100 {
        cancel_ms.push(cancel(&system, n).await?);
    }
    let mut takeovers = Vec::new();
    for n in 0..5 {
        takeovers.push(takeover(&system, &mut runner, n).await?);
    }
    Ok(Work { jobs_per_s, rss_mib, cancel_ms, takeover_ms: crate::percentile(&mut takeovers, 0.5) })
}

/// No-op jobs through one group of eight slots, each with an executor process of its own.
async fn group_jobs(system: &System, jobs: usize) -> anyhow::Result<f64> {
    let job = CreateRunnerJob { job_type: JobType::Noop, sleep_ms: 0, priority: 0 };
    let mut last = None;
    let started = Instant::now();
    for _ in 0..jobs {
        last = Some(system.client.create_runner_job(system.install.runner_id.as_str(), &job).await?);
    }
    let last = last.context("a job")?;
    loop {
        let job = system.client.job(&last.id).await?;
        if job.status.is_terminal() {
            ensure!(job.status == JobState::Finished, "{}", job.status_description);
            break;
        }
        ensure!(started.elapsed() < Duration::from_secs(120), "the jobs do not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(jobs as f64 / started.elapsed().as_secs_f64())
}

/// From the request to cancel to the signal at the child, which notes the time itself.
async fn cancel(system: &System, n: usize) -> anyhow::Result<f64> {
    let name = format!("cancel-{n}");
    let witness = system.witness(&name);
    let text = format!(
        "#!/usr/bin/env python3\nimport signal, time\ndef gone(*_):\n    open('{0}', 'a').write('%.6f\\n' % time.time())\n    raise SystemExit(1)\nsignal.signal(signal.SIGINT, gone)\nsignal.signal(signal.SIGTERM, gone)\nopen('{0}', 'a').write('begin\\n')\nwhile True:\n    time.sleep(60)\n",
        witness.display()
    );
    let job = system.script(&text).await;
    system.until_witness(&name, "begin").await;
    let asked = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    system.client.cancel_job(&job.id).await?;
    system.until_job(&job.id, "the job is cancelled", SOON, |j| j.status == JobState::Cancelled).await;
    let at: f64 = system.lines(&name).get(1).context("the signal arrived")?.parse()?;
    Ok((at - asked) * 1000.0)
}

/// From the death of the runner to the moment when its next process has delivered what the script wrote after it.
async fn takeover(system: &System, runner: &mut testkit::system::Runner, n: usize) -> anyhow::Result<f64> {
    let name = format!("takeover-{n}");
    let job = system.held(&name).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = system.raw_log(&job, Some("stdout")).await.len();
    runner.kill();
    let started = Instant::now();
    *runner = system.resume_runner("a");
    while system.raw_log(&job, Some("stdout")).await.len() <= before + 20 {
        ensure!(started.elapsed() < Duration::from_secs(20), "nobody took the execution over");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = started.elapsed().as_secs_f64() * 1000.0;
    system.open(&name);
    system.until_over(&job.id).await;
    system.assert_whole(&job, &name).await;
    Ok(took)
}
