//! Measures Ferry as it is shipped, beside the floor of the same run, because absolute times on shared machines mean little.
//!
//! `bench DIST_DIR OUT.json`: `DIST_DIR` holds `ferry` and `ferry-runner`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

mod dispatch;
mod floor;
mod system;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

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

    fn over(mut self, floor_name: &'static str, floor: f64) -> Self {
        (self.floor, self.floor_name) = (Some(floor), Some(floor_name));
        self
    }

    fn good(&self) -> bool {
        self.value <= self.aim
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
    let mut args = std::env::args().skip(1).map(PathBuf::from);
    let dist = args.next().context("usage: bench DIST_DIR OUT.json")?;
    let out = args.next().context("usage: bench DIST_DIR OUT.json")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(measure(&dist))?;
    print(&figures);
    fs_err::write(&out, serde_json::to_string_pretty(&figures)?)?;
    println!("\nwritten to {}", out.display());
    Ok(())
}

async fn measure(dist: &Path) -> anyhow::Result<Vec<Figure>> {
    let (ferry, runner) = (dist.join("ferry"), dist.join("ferry-runner"));
    let round_trip_ms = floor::round_trip_ms().await?;
    let commit_ms = floor::commit_ms()?;
    let floor_ms = round_trip_ms + commit_ms;
    eprintln!("floors: HTTP round trip {round_trip_ms:.3} ms, durable commit {commit_ms:.3} ms");

    let mut system = system::System::start(&ferry, &runner).await?;
    let up_ms = system.up_ms;
    let (server_rss, runner_rss) = system.idle_rss_mib().await?;
    let first_poll_ms = system.first_poll_ms(&runner).await?;
    let mut times = dispatch::dispatch_ms(&system, 100, 400).await?;
    system.stop().await?;
    let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));

    let sum = "HTTP round trip + durable commit";
    Ok(vec![
        Figure::lower("dispatch_p50_ms", p50, "ms", 2.0 * floor_ms).over(sum, floor_ms),
        Figure::lower("dispatch_p99_ms", p99, "ms", 10.0).over(sum, floor_ms),
        Figure::lower("runner_idle_rss_mib", runner_rss, "MiB", 8.0),
        Figure::lower("server_idle_rss_mib", server_rss, "MiB", 60.0),
        Figure::lower("runner_binary_mib", mib(&runner)?, "MiB", 15.0),
        Figure::lower("server_binary_mib", mib(&ferry)?, "MiB", 60.0),
        Figure::lower("runner_first_poll_ms", first_poll_ms, "ms", 500.0).over("HTTP round trip", round_trip_ms),
        Figure::lower("dev_up_ms", up_ms, "ms", 2000.0),
    ])
}

fn print(figures: &[Figure]) {
    println!("{:<24} {:>10} {:<5} {:>10} {:>10}  floor is", "name", "value", "unit", "floor", "aim");
    for f in figures {
        let floor = f.floor.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
        let mark = if f.good() { "" } else { "  MISSED" };
        println!(
            "{:<24} {:>10.3} {:<5} {:>10} {:>10.3}  {}{mark}",
            f.name,
            f.value,
            f.unit,
            floor,
            f.aim,
            f.floor_name.unwrap_or("-")
        );
    }
}
