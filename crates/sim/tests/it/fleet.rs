use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sim::{FleetOptions, FleetReport, run_fleet};

/// A number that the environment names.
fn wanted(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// As many seeds as fit into the time; `FERRY_FLEET_SEEDS` asks for a number of them, `FERRY_FLEET_INSTALLS` and
/// `FERRY_FLEET_EVENTS` for other fleets: how many installs, and what happens to each of them on average.
#[test]
fn workflows_of_fleets_keep_their_rules() {
    let seeds = wanted("FERRY_FLEET_SEEDS");
    let installs = wanted("FERRY_FLEET_INSTALLS").unwrap_or(8) as usize;
    let events = wanted("FERRY_FLEET_EVENTS").unwrap_or(60) as usize;
    let (started, bound) = (Instant::now(), Duration::from_secs(40));
    let options = FleetOptions { installs, events: events * installs };
    let (next, over, reports) = (AtomicU64::new(1), AtomicBool::new(false), Mutex::new(Vec::new()));
    let run = || {
        while !over.load(Ordering::Relaxed) && (seeds.is_some() || started.elapsed() < bound) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seeds.is_some_and(|seeds| seed > seeds) {
                return;
            }
            let report = run_fleet(seed, options);
            let good = report.broken.is_none() && report.workflows.get("success").is_some_and(|n| *n > 0);
            over.fetch_or(!good, Ordering::Relaxed);
            if seed.is_multiple_of(50) {
                println!("seed {seed} after {:.0} s", started.elapsed().as_secs_f64());
            }
            reports.lock().unwrap_or_else(PoisonError::into_inner).push((good, report));
        }
    };
    // Beside other tests one thread is enough.
    let threads = if seeds.is_some() { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    let reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (good, report) in &reports {
        assert!(good, "seed {}: {}\n{report:?}", report.seed, report.broken.as_deref().unwrap_or("nothing succeeded"));
    }
    let sum = |of: fn(&FleetReport) -> u64| reports.iter().map(|(_, report)| of(report)).sum::<u64>();
    let (events, checks, steps) = (sum(|r| r.events), sum(|r| r.checks), sum(|r| r.steps));
    let workflows = sum(|r| r.workflows.values().sum());
    assert!(reports.len() > 1 && steps > 300, "only {} seeds, {steps} steps", reports.len());
    println!(
        "{} seeds of {installs} installs: {events} events, {workflows} workflows, {steps} steps, {checks} checks, {:.0} s",
        reports.len(),
        started.elapsed().as_secs_f64()
    );
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let options = FleetOptions { installs: 5, events: 200 };
    let (one, other) = (run_fleet(7, options), run_fleet(7, options));
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}
