//! `ferry sim`: a whole fleet on a virtual clock, for a person to look at.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use model::JobId;
use sim::{Faults, Options, Report};

#[derive(Args)]
pub(crate) struct SimArgs {
    /// The first seed; the same seed tells the same story
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds to run
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    seeds: u64,
    /// Number of runners
    #[arg(long, default_value_t = 100)]
    runners: usize,
    /// Number of jobs
    #[arg(long, default_value_t = 1000)]
    jobs: usize,
    /// What may go wrong: all, none, or a list of crash, executor, machine, server, storage, network, duplicate, wakeup,
    /// clock, rival, people
    #[arg(long, default_value = "all")]
    faults: Faults,
    /// Tell the story of one job: this one, or the one with most to tell
    #[arg(long, value_name = "JOB", num_args = 0..=1, default_missing_value = "")]
    trace: Option<String>,
}

pub(crate) fn run(args: &SimArgs, json: bool) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.runners > 0, "a fleet needs a runner");
    let options = Options { runners: args.runners, jobs: args.jobs, faults: args.faults.clone() };
    let started = Instant::now();
    let (sum, broken) = if args.seeds == 1 {
        let report = sim::run(args.seed, &options);
        let broken = report.violation.is_some().then(|| report.clone());
        (report, broken)
    } else {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        sim::run_many(args.seed..args.seed.saturating_add(args.seeds), &options, threads)
    };
    let seconds = started.elapsed().as_secs_f64();
    if json {
        let told = serde_json::json!({ "summary": sum, "seconds": seconds, "broken": broken });
        println!("{told:#}");
    } else {
        summarize(args, &sum, seconds);
    }
    if let Some(job) = &args.trace {
        trace(broken.as_ref().unwrap_or(&sum), job)?;
    }
    let Some(complaint) = broken.as_ref().and_then(Report::complaint) else { return Ok(ExitCode::SUCCESS) };
    eprintln!("error: an invariant is broken\n{complaint}");
    Ok(ExitCode::FAILURE)
}

fn summarize(args: &SimArgs, sum: &Report, seconds: f64) {
    let list = |counts: &BTreeMap<String, u64>| {
        let texts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let last = args.seed + args.seeds - 1;
    let seeds = if args.seeds == 1 { args.seed.to_string() } else { format!("{} to {last}", args.seed) };
    println!("seed            {seeds}: {} runners, {} jobs", args.runners, args.jobs);
    println!("virtual time    {:.1} h", sum.virtual_ms as f64 / 3_600_000.0);
    println!("events          {} ({} requests reached the server)", sum.events, sum.requests);
    println!("jobs            {}", list(&sum.jobs));
    println!("faults          {}", list(&sum.faults));
    println!(
        "invariants      checked {} times, {}",
        sum.checks,
        if sum.violation.is_none() { "all hold" } else { "broken" }
    );
    println!("took            {seconds:.1} s, {:.0} events/s", sum.events as f64 / seconds.max(0.001));
}

fn trace(report: &Report, wanted: &str) -> anyhow::Result<()> {
    anyhow::ensure!(!report.story.is_empty(), "a story is told of one seed: leave out --seeds");
    let job = if wanted.is_empty() {
        let mut lines: BTreeMap<&JobId, usize> = BTreeMap::new();
        for job in report.story.iter().filter_map(|line| line.job.as_ref()) {
            *lines.entry(job).or_default() += 1;
        }
        let most = lines.into_iter().max_by_key(|(_, count)| *count).map(|(job, _)| job.clone());
        most.ok_or_else(|| anyhow::anyhow!("no job was ever queued"))?
    } else {
        JobId::parse(wanted)?
    };
    println!("\njob {job}");
    report.story.iter().filter(|line| line.job.as_ref() == Some(&job)).for_each(|line| println!("{line}"));
    Ok(())
}
