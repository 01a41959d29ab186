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
    let (from, count) = (number("FERRY_SIM_FROM").unwrap_or(1), number("FERRY_SIM_SEEDS").unwrap_or(400));
    let (sum, broken) = run_many(from..from + count, &Options::default(), 2);
    if let Some(broken) = broken {
        panic!("{}", broken.complaint().unwrap_or_default());
    }
    println!("{count} seeds: {sum:?}");
}
