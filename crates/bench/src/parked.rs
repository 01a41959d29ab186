//! Ten thousand parked runners: memory, CPU, requests, and the way back after a restart.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use testkit::system::{Options, System};
use testkit::tls::Certificate;

use crate::herd::{self, Herd};
use crate::system::rss_mib;
use crate::{Figure, bare, options};

const COUNT: usize = 10_000;
/// The first health check of a runner comes with its join: 256 every five seconds. Idle is what comes after them.
const FIRST_CHECKS: Duration = Duration::from_secs(200);

pub(crate) async fn figures(dist: &Path) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir()?;
    let tls = Certificate::make(dir.path(), &["127.0.0.1"]);
    let plain_kib = bare_kib(None).await?;
    let bare_tls_kib = bare_kib(Some(&tls)).await?;
    let mut figures = Vec::new();

    let mut system = System::start(options(dist)?).await;
    let (mut herd, kib) = park(&system, None).await?;
    let floor = "a bare parked handler";
    figures.push(Figure::lower("parked_kib_per_runner", kib, "KiB", 1.5 * plain_kib).over(floor, plain_kib));
    let (requests, cpu_s) = idle(&system, &mut herd).await?;
    figures.push(Figure::lower("idle_requests_per_runner_s", requests, "1/s", 0.05));
    figures.push(Figure::lower("parked_cpu_s_per_min", cpu_s, "s", 3.0));
    let back = herd::restart(&mut system, &herd).await?;
    figures.push(Figure::lower("herd_back_s", back.all_s, "s", 30.0));
    figures.push(Figure::lower("herd_peak_over_mean", back.peak_per_s / back.mean_per_s, "", 3.0));
    herd.stop().await?;
    drop(system);

    let system = System::start(tls.serve(options(dist)?)).await;
    let (herd, kib) = park(&system, Some(&tls.ca)).await?;
    let floor = "a bare parked handler with TLS";
    figures.push(Figure::lower("parked_tls_kib_per_runner", kib, "KiB", 1.5 * bare_tls_kib).over(floor, bare_tls_kib));
    herd.stop().await?;
    Ok(figures)
}

/// Parks a herd, kills the server under it, and says how it came back; fails when that is not as it should be.
pub(crate) async fn come_back(options: Options, count: usize) -> anyhow::Result<()> {
    let mut system = System::start(options).await;
    let herd = Herd::park(&system, count, None).await?;
    let back = herd::restart(&mut system, &herd).await?;
    println!("{count} runners came back: {back:?}");
    anyhow::ensure!(back.all_s <= 30.0, "not all came back within 30 s");
    anyhow::ensure!(back.peak_per_s < 3.0 * back.mean_per_s, "they came as a crowd");
    herd.stop().await
}

/// What one parked runner adds to the server's memory.
async fn park(system: &System, ca: Option<&Path>) -> anyhow::Result<(Herd, f64)> {
    let pid = system.server().pid() as u32;
    let before = rss_mib(pid)?;
    let herd = Herd::park(system, COUNT, ca).await?;
    // The first health checks are over, and so is what joining took.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let after = rss_mib(pid)?;
    Ok((herd, (after - before) * 1024.0 / COUNT as f64))
}

/// Requests per runner and second, and the server's CPU seconds, over a minute.
async fn idle(system: &System, herd: &mut Herd) -> anyhow::Result<(f64, f64)> {
    let joined = Instant::now();
    while joined.elapsed() < FIRST_CHECKS {
        herd.said().await?;
    }
    let pid = system.server().pid();
    let (first, cpu, started) = (herd.said().await?, cpu_s(pid)?, Instant::now());
    let last = loop {
        let said = herd.said().await?;
        if started.elapsed() >= Duration::from_secs(60) {
            break said;
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let requests = (last.polls - first.polls) as f64 / seconds / COUNT as f64;
    Ok((requests, (cpu_s(pid)? - cpu) * 60.0 / seconds))
}

/// User and system time of a process.
pub(crate) fn cpu_s(pid: i32) -> anyhow::Result<f64> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit(')').next().context("stat")?;
    let ticks = |at: usize| after.split_whitespace().nth(at).and_then(|w| w.parse::<f64>().ok());
    Ok((ticks(11).context("utime")? + ticks(12).context("stime")?) / 100.0)
}

async fn bare_kib(tls: Option<&Certificate>) -> anyhow::Result<f64> {
    let files = tls.map(|tls| (tls.cert.as_path(), tls.key.as_path()));
    let (mut server, address) = bare::start(files).await?;
    let pid = server.id().context("it runs")?;
    let before = rss_mib(pid)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let goal =
        bare::Goal { url: format!("{scheme}://{address}/x"), count: COUNT, ca_file: tls.map(|tls| tls.ca.clone()) };
    let herd = Herd::start("hold", &serde_json::to_string(&goal)?, &address, COUNT).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = rss_mib(pid)?;
    herd.stop().await?;
    server.kill().await?;
    Ok((after - before) * 1024.0 / COUNT as f64)
}
