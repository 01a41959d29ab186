use sim::{Options, run, run_many};

#[test]
fn a_seed_tells_the_same_story_twice() {
    let options = Options::default();
    let (first, second) = (run(7, &options), run(7, &options));
    assert!(first.story.len() > 100, "{} lines", first.story.len());
    if let Some((one, other)) = first.story.iter().zip(&second.story).find(|(one, other)| one != other) {
        panic!("they part here:\n{one}\n{other}");
    }
    assert_eq!((first.events, first.checks), (second.events, second.checks));
}

#[test]
fn no_invariant_breaks() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let (from, count) = (number("FERRY_SIM_FROM").unwrap_or(1), number("FERRY_SIM_SEEDS").unwrap_or(120));
    let (sum, broken) = run_many(from..from + count, &Options::default(), 2);
    if let Some(broken) = broken {
        panic!("{}", broken.complaint().unwrap_or_default());
    }
    println!("{count} seeds: {sum:?}");
}

/// A simulator that finds nothing proves nothing: each rule is broken in turn, and must be missed within so many seeds.
#[cfg(feature = "crash-points")]
#[test]
fn a_broken_rule_is_found() {
    const SEEDS: u64 = 60;
    let all = "all";
    let rules = [
        ("start_unacknowledged", all, "before the server had acknowledged"),
        ("result_epoch", "network,executor", "but the executor of epoch"),
        ("fenced_goes_back", all, "the side effect happened again"),
        ("early_release", "network", "it works on target"),
        ("clock_set", "clock,network", "target"),
        ("occupied_targets", "suspend", "it works on target"),
        ("start_while_disabled", "people", "although the customer has switched the runner off"),
    ];
    for (rule, faults, expected) in rules {
        crash::break_rule(rule);
        let options = Options { runners: 2, jobs: 40, faults: faults.parse().expect("faults") };
        let found = (1..=SEEDS).find_map(|seed| run(seed, &options).violation.map(|v| (seed, v.what)));
        crash::break_rule("");
        match found {
            Some((seed, what)) if what.contains(expected) => println!("{rule}: seed {seed}: {what}"),
            other => panic!("`{rule}` was broken, and {other:?} was found"),
        }
    }
}
