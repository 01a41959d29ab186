use std::time::{Duration, Instant};

use sim::{FleetOptions, run_fleet};

/// As many seeds as fit into the time; `FERRY_FLEET_SEEDS` asks for a number of them.
#[test]
fn workflows_of_fleets_keep_their_rules() {
    let wanted = std::env::var("FERRY_FLEET_SEEDS").ok().and_then(|text| text.parse::<u64>().ok());
    let (started, bound) = (Instant::now(), Duration::from_secs(40));
    let options = FleetOptions { installs: 8, events: 500 };
    let (mut seed, mut steps, mut workflows) = (0, 0, 0);
    while wanted.map_or_else(|| started.elapsed() < bound, |wanted| seed < wanted) {
        seed += 1;
        let report = run_fleet(seed, options);
        assert!(report.broken.is_none(), "seed {seed}: {}\n{report:?}", report.broken.as_deref().unwrap_or_default());
        assert!(report.workflows.get("success").is_some_and(|n| *n > 0), "{report:?}");
        steps += report.steps;
        workflows += report.workflows.values().sum::<u64>();
    }
    assert!(seed > 1 && steps > 300, "only {seed} seeds, {steps} steps");
    println!("{seed} seeds, {workflows} workflows, {steps} steps");
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let options = FleetOptions { installs: 5, events: 200 };
    let (one, other) = (run_fleet(7, options), run_fleet(7, options));
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}
