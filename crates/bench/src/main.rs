//! Measures Ferry as it is shipped, beside the floor of the same run, because absolute times on shared machines mean little.
//!
//! `bench DIST_DIR OUT.json [PART…]`: `DIST_DIR` holds `ferry` and `ferry-runner`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

mod apps;
mod auth;
mod bare;
mod dispatch;
mod drone;
mod floor;
mod growth;
mod health;
mod herd;
mod images;
mod kube;
mod logs;
mod parked;
mod registry;
mod system;
mod terraform;
mod throughput;
mod ui;
mod work;
mod workflows;

use std::path::{Path, PathBuf};

use serde::Serialize;
use testkit::Backend;
use testkit::system::Options;

/// As `ferry` has it: the bare handlers that ours are compared with must not lose by it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One row: ours, the floor of the same run, and the aim.
#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    floor: Option<f64>,
    floor_name: Option<&'static str>,
    aim: f64,
    /// `lower` or `higher`.
    better: &'static str,
}

impl Figure {
    fn lower(name: &'static str, value: f64, unit: &'static str, aim: f64) -> Self {
        Self { name, value, unit, floor: None, floor_name: None, aim, better: "lower" }
    }

    fn higher(name: &'static str, value: f64, unit: &'static str, aim: f64) -> Self {
        Self { better: "higher", ..Self::lower(name, value, unit, aim) }
    }

    fn over(mut self, floor_name: &'static str, floor: f64) -> Self {
        (self.floor, self.floor_name) = (Some(floor), Some(floor_name));
        self
    }

    fn good(&self) -> bool {
        if self.better == "lower" { self.value <= self.aim } else { self.value >= self.aim }
    }
}

/// The value that `share` of all values do not exceed.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1));
    values.get(at - 1).copied().unwrap_or(f64::NAN)
}

fn mib(path: &Path) -> anyhow::Result<f64> {
    Ok(fs_err::metadata(path)?.len() as f64 / f64::from(1 << 20))
}

fn main() -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    runtime.block_on(async {
        match words.as_slice() {
            // The processes that this one starts beside itself.
            ["herd", goal] => herd::run(serde_json::from_str(goal)?).await,
            ["hold", goal] => bare::hold(serde_json::from_str(goal)?).await,
            ["bare"] => bare::serve(None).await,
            ["bare", cert, key] => bare::serve(Some(((*cert).to_owned(), (*key).to_owned()))).await,
            ["return", dist, count] => parked::come_back(options(Path::new(dist))?, count.parse()?).await,
            // A pool of four connections: no parked runner holds one.
            ["return-postgres", dist, count] => {
                let options = options(Path::new(dist))?
                    .on(Backend::Postgres)
                    .with(&model::env::setting("database.connections"), 4);
                parked::come_back(options, count.parse()?).await
            }
            [dist, out, only @ ..] => {
                let figures = measure(Path::new(dist), only).await?;
                print(&figures);
                fs_err::write(out, serde_json::to_string_pretty(&figures)?)?;
                println!("\nwritten to {out}");
                Ok(())
            }
            [] | [_] => anyhow::bail!("usage: bench DIST_DIR OUT.json [PART…]"),
        }
    })
}

/// The shipped server as it comes: no timing of the tests.
fn options(dist: &Path) -> anyhow::Result<Options> {
    let ferry = fs_err::canonicalize(dist.join("ferry"))?;
    let mut options = Options::new(ferry).with(&model::env::setting("log.level"), "warn");
    options.server.retain(|name, _| !name.starts_with(&model::env::setting("timing")));
    Ok(options)
}

const PARTS: [&str; 17] = [
    "idle",
    "apps",
    "auth",
    "dispatch",
    "throughput",
    "work",
    "workflows",
    "installs",
    "terraform",
    "kube",
    "health",
    "logs",
    "registry",
    "images",
    "parked",
    "growth",
    "ui",
];

/// Measures these parts; all of them when none is named.
async fn measure(dist: &Path, only: &[&str]) -> anyhow::Result<Vec<Figure>> {
    for part in only {
        anyhow::ensure!(PARTS.contains(part), "there is no part `{part}`: use {}", PARTS.join(", "));
    }
    let wanted = |part: &str| only.is_empty() || only.contains(&part);
    let mut figures = Vec::new();
    let round_trip_ms = floor::round_trip_ms().await?;
    let commit_ms = floor::commit_ms()?;
    eprintln!("floors: HTTP round trip {round_trip_ms:.3} ms, durable commit {commit_ms:.3} ms");
    if wanted("idle") {
        eprintln!("idle …");
        figures.extend(idle(dist, round_trip_ms).await?);
    }
    if wanted("apps") {
        eprintln!("apps …");
        figures.extend(apps::figures(options(dist)?).await?);
    }
    if wanted("auth") {
        eprintln!("auth …");
        figures.extend(auth::figures(options(dist)?).await?);
    }
    if wanted("dispatch") {
        eprintln!("dispatch …");
        let system = testkit::system::System::start(options(dist)?).await;
        let mut times = dispatch::dispatch_ms(&system.client, &system.runner_url, 1000, 1000).await?;
        let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        let (sum, floor_ms) = ("HTTP round trip + durable commit", round_trip_ms + commit_ms);
        figures.push(Figure::lower("dispatch_p50_ms", p50, "ms", 2.0 * floor_ms).over(sum, floor_ms));
        figures.push(Figure::lower("dispatch_p99_ms", p99, "ms", 10.0).over(sum, floor_ms));
    }
    if wanted("throughput") {
        eprintln!("throughput …");
        let group = "bare group commits, four a job";
        let floor = floor::group_commit_jobs_s()?;
        let sqlite = throughput::jobs_per_s(options(dist)?, Backend::Sqlite, 20_000).await?;
        figures.push(Figure::higher("throughput_sqlite_jobs_s", sqlite, "1/s", 3000.0).over(group, floor));
        let postgres = throughput::jobs_per_s(options(dist)?, Backend::Postgres, 6_000).await?;
        figures.push(Figure::higher("throughput_postgres_jobs_s", postgres, "1/s", 1000.0).over(group, floor));
    }
    if wanted("work") {
        eprintln!("a runner at work …");
        let mut work = work::measure(options(dist)?).await?;
        let cancel_p99 = percentile(&mut work.cancel_ms, 0.99);
        figures.push(Figure::higher("runner_group_jobs_s", work.jobs_per_s, "1/s", 50.0));
        figures.push(Figure::lower("runner_rss_after_1000_jobs_mib", work.rss_mib, "MiB", 8.0));
        figures.push(Figure::lower("cancel_p99_ms", cancel_p99, "ms", 50.0));
        figures.push(Figure::lower("takeover_ms", work.takeover_ms, "ms", 1500.0));
    }
    if wanted("workflows") {
        eprintln!("workflows …");
        let rows_s = 4.0 * floor::group_commit_jobs_s()?;
        let floors = workflows::Floors { round_trip_ms, commit_ms, rows_s };
        figures.extend(workflows::figures(&options(dist)?, &floors).await?);
    }
    if wanted("installs") {
        eprintln!("installs …");
        figures.extend(workflows::growth(&options(dist)?).await?);
    }
    if wanted("terraform") {
        eprintln!("terraform …");
        figures.extend(terraform::figures(options(dist)?).await?);
    }
    if wanted("kube") {
        eprintln!("kubernetes …");
        figures.extend(kube::figures(options(dist)?).await?);
    }
    if wanted("health") {
        eprintln!("health …");
        figures.extend(health::figures(options(dist)?).await?);
    }
    if wanted("logs") {
        eprintln!("logs …");
        figures.extend(logs::figures(options(dist)?, round_trip_ms).await?);
    }
    if wanted("registry") {
        eprintln!("registry …");
        figures.extend(registry::figures(options(dist)?).await?);
    }
    if wanted("images") {
        eprintln!("images …");
        figures.extend(images::figures(options(dist)?).await?);
    }
    if wanted("parked") {
        eprintln!("ten thousand parked …");
        figures.extend(parked::figures(dist).await?);
    }
    if wanted("growth") {
        eprintln!("growth …");
        let small = growth::costs(options(dist)?, 10, 1_000).await?;
        let large = growth::costs(options(dist)?, 10_000, 1_000_000).await?;
        eprintln!("small {small:?}\nlarge {large:?}");
        figures.push(Figure::lower("growth_10k_ratio", large.ratio(&small), "", 1.2));
    }
    if wanted("ui") {
        eprintln!("the dashboard …");
        figures.extend(ui::figures(options(dist)?).await?);
    }
    Ok(figures)
}

async fn idle(dist: &Path, round_trip_ms: f64) -> anyhow::Result<Vec<Figure>> {
    let (ferry, runner): (PathBuf, PathBuf) = (dist.join("ferry"), dist.join("ferry-runner"));
    let mut system = system::System::start(&ferry, &runner).await?;
    let up_ms = system.up_ms;
    let idle = system.idle_mib().await?;
    let first_poll_ms = system.first_poll_ms(&runner).await?;
    system.stop().await?;
    Ok(vec![
        Figure::lower("runner_idle_rss_mib", idle.runner_rss, "MiB", 10.0),
        Figure::lower("runner_idle_anon_mib", idle.runner_anon, "MiB", 2.0),
        Figure::lower("server_idle_rss_mib", idle.server_rss, "MiB", 60.0),
        Figure::lower("runner_binary_mib", mib(&runner)?, "MiB", 15.0),
        Figure::lower("server_binary_mib", mib(&ferry)?, "MiB", 30.0),
        Figure::lower("runner_first_poll_ms", first_poll_ms, "ms", 500.0).over("HTTP round trip", round_trip_ms),
        Figure::lower("dev_up_ms", up_ms, "ms", 2000.0),
    ])
}

fn print(figures: &[Figure]) {
    println!("{:<32} {:>10} {:<5} {:>10} {:>10}  floor is", "name", "value", "unit", "floor", "aim");
    for f in figures {
        let floor = f.floor.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
        let mark = if f.good() { "" } else { "  MISSED" };
        println!(
            "{:<32} {:>10.3} {:<5} {:>10} {:>10.3}  {}{mark}",
            f.name,
            f.value,
            f.unit,
            floor,
            f.aim,
            f.floor_name.unwrap_or("-")
        );
    }
}
