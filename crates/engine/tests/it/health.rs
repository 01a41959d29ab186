//! Health: what observations, checks and time add up to.

use std::collections::{BTreeMap, BTreeSet};

use engine::health::{
    Alert, Around, CHECKS_MAX, Changes, Check, FORGOTTEN_S, Gate, InstallHealth, PROGRESSING_S, Passage, SILENCE_S,
    excused, spans, uptime,
};
use model::Timestamp;
use model::health::{Observation, UnwellObject, Verdict};
use proptest::prelude::*;

const BEGIN: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// Components `web` → `api` → `db`, and a clock.
struct World {
    health: InstallHealth,
    now: Timestamp,
    needs: BTreeMap<String, Vec<String>>,
    deployed: BTreeSet<String>,
    observed: BTreeSet<String>,
    required: BTreeMap<String, BTreeSet<String>>,
    alerts: Vec<Alert>,
}

fn seen(component: &str, verdict: Verdict) -> Observation {
    Observation {
        component: component.into(),
        generation: 1,
        verdict,
        reason: format!("{component} was seen {}", verdict.as_str()),
        stuck: false,
        judged: 1,
        objects: Vec::new(),
    }
}

impl World {
    fn new() -> Self {
        let needs = [("web", vec!["api"]), ("api", vec!["db"])];
        let needs = needs.map(|(name, on)| (name.to_owned(), on.into_iter().map(str::to_owned).collect()));
        let deployed = BTreeSet::from(["web", "api", "db"].map(str::to_owned));
        let (health, observed, alerts) = (InstallHealth::default(), deployed.clone(), Vec::new());
        let required = BTreeMap::new();
        Self { health, now: BEGIN, needs: needs.into(), deployed, observed, required, alerts }
    }

    fn after(&mut self, seconds: i64) -> &mut Self {
        self.now = self.now.plus_s(seconds);
        self
    }

    fn act(&mut self, act: impl FnOnce(&mut InstallHealth, &BTreeSet<String>, &Around) -> Changes) -> Changes {
        let (needs, observed, required) = (&self.needs, &self.observed, &self.required);
        let around = Around { now: self.now, needs, observed, required, silence_s: SILENCE_S };
        let changes = act(&mut self.health, &self.deployed, &around);
        if let Some(due) = self.health.due(&around) {
            assert!(due > self.now, "what is due was done");
        }
        self.alerts.extend(changes.alerts.clone());
        changes
    }

    fn see(&mut self, observations: &[Observation]) -> Changes {
        let observations = observations.to_vec();
        self.act(|health, deployed, around| health.observe(observations, deployed, around))
    }

    fn look(&mut self) -> Changes {
        self.act(|health, deployed, around| health.look(deployed, around))
    }

    fn check(&mut self, status: Verdict, stale_after_s: u64) -> Changes {
        let check = Check { status, message: "said so".into(), at: self.now, stale_after_s, well_since: None };
        self.act(|health, _, around| health.check("db", "smoke", check, around).expect("taken"))
    }

    fn told(&self, component: &str) -> Verdict {
        self.health.0[component].told.verdict
    }

    /// Sees `db` some times, 15 s apart.
    fn times(&mut self, count: usize, verdict: Verdict) {
        for _ in 0..count {
            self.after(15).see(&[seen("db", verdict)]);
        }
    }
}

#[test]
fn three_bad_ones_make_it_bad_and_two_good_ones_well() {
    let mut world = World::new();
    world.times(1, Verdict::Healthy);
    assert_eq!(world.told("db"), Verdict::Healthy);
    world.times(2, Verdict::Unhealthy);
    assert_eq!(world.told("db"), Verdict::Healthy, "twice may be chance");
    world.times(1, Verdict::Healthy);
    world.times(2, Verdict::Unhealthy);
    assert_eq!(world.told("db"), Verdict::Healthy, "they must be in a row");
    world.times(1, Verdict::Unhealthy);
    assert_eq!(world.told("db"), Verdict::Unhealthy);
    assert_eq!(world.health.0["db"].told.reason, "db was seen unhealthy");
    // Bad is bad: how bad is told at once.
    world.times(1, Verdict::Degraded);
    assert_eq!(world.told("db"), Verdict::Degraded);
    world.times(1, Verdict::Healthy);
    assert_eq!(world.told("db"), Verdict::Degraded);
    world.times(1, Verdict::Healthy);
    assert_eq!(world.told("db"), Verdict::Healthy);
    let told: Vec<bool> = world.alerts.iter().map(|alert| alert.recovered).collect();
    assert_eq!(told, [false, true], "one alert and its recovery");
}

#[test]
fn a_rollout_that_cannot_end_is_bad_at_once() {
    let mut world = World::new();
    world.times(1, Verdict::Healthy);
    world.after(15).see(&[Observation { stuck: true, ..seen("db", Verdict::Degraded) }]);
    assert_eq!(world.told("db"), Verdict::Degraded);
}

#[test]
fn what_progresses_for_half_an_hour_is_degraded() {
    let mut world = World::new();
    world.times(1, Verdict::Progressing);
    for _ in 0..(PROGRESSING_S / 60 - 1) {
        world.after(60).see(&[seen("db", Verdict::Progressing)]);
    }
    assert_eq!(world.told("db"), Verdict::Progressing);
    // That nobody could see it for a moment does not begin it anew.
    world.see(&[seen("db", Verdict::Unknown)]);
    world.see(&[seen("db", Verdict::Progressing)]);
    world.after(60).look();
    assert_eq!(world.told("db"), Verdict::Degraded);
    assert!(world.health.0["db"].told.reason.contains("progressing since"));
}

#[test]
fn silence_is_unknown_and_alerts_nobody() {
    let mut world = World::new();
    world.times(3, Verdict::Healthy);
    world.after(SILENCE_S - 1).look();
    assert_eq!(world.told("db"), Verdict::Healthy);
    world.after(1).look();
    assert_eq!(world.told("db"), Verdict::Unknown);
    assert_eq!(world.alerts, []);
    // What was bad before the silence recovers when it is heard of again, and well.
    world.times(3, Verdict::Unhealthy);
    world.after(SILENCE_S).look();
    assert_eq!((world.told("db"), world.alerts.len()), (Verdict::Unknown, 1));
    world.times(1, Verdict::Healthy);
    assert_eq!((world.told("db"), world.alerts.len()), (Verdict::Healthy, 2));
}

#[test]
fn what_needs_something_bad_is_downstream_and_silent() {
    let mut world = World::new();
    let all = |verdict| ["web", "api", "db"].map(|name| seen(name, verdict));
    world.see(&all(Verdict::Healthy));
    for _ in 0..3 {
        world.after(15).see(&all(Verdict::Unhealthy));
    }
    let downstream = |world: &World, name: &str| world.health.0[name].told.downstream_of.clone();
    assert_eq!(downstream(&world, "db"), None);
    assert_eq!(downstream(&world, "api").as_deref(), Some("db"));
    assert_eq!(downstream(&world, "web").as_deref(), Some("db"), "the root is named");
    let loud: Vec<&str> =
        world.alerts.iter().filter(|alert| !alert.silent).map(|alert| alert.component.as_str()).collect();
    assert_eq!(loud, ["db"]);
    // The cause is well again: what stays bad speaks for itself.
    for _ in 0..2 {
        world.after(15).see(&[seen("db", Verdict::Healthy), seen("api", Verdict::Unhealthy)]);
    }
    assert_eq!(downstream(&world, "api"), None);
    let loud = world.alerts.iter().filter(|alert| !alert.silent && !alert.recovered);
    assert_eq!(loud.map(|alert| alert.component.as_str()).collect::<Vec<_>>(), ["db", "api"]);
    // What is not deployed any more recovers.
    world.deployed.clear();
    world.after(1).look();
    let open = world.alerts.iter().map(|alert| if alert.recovered { -1 } else { 1 });
    assert_eq!((open.sum::<i32>(), world.health.0.len()), (0, 0));
}

#[test]
fn checks_can_only_worsen_and_stale_ones_are_unknown() {
    let mut world = World::new();
    world.times(3, Verdict::Unhealthy);
    world.check(Verdict::Healthy, 300);
    assert_eq!(world.told("db"), Verdict::Unhealthy);
    world.times(2, Verdict::Healthy);
    assert_eq!(world.told("db"), Verdict::Healthy);
    world.check(Verdict::Degraded, 300);
    assert_eq!(world.told("db"), Verdict::Degraded);
    assert_eq!(world.health.0["db"].told.reason, "check `smoke`: said so");
    world.check(Verdict::Healthy, 60);
    assert_eq!(world.told("db"), Verdict::Healthy);
    world.times(4, Verdict::Healthy);
    assert_eq!(world.told("db"), Verdict::Unknown, "nobody has reported the check for a minute");
}

#[test]
fn a_check_does_not_make_well_what_nobody_has_observed() {
    let mut world = World::new();
    world.check(Verdict::Healthy, 300);
    assert_eq!(world.told("db"), Verdict::Unknown);
    assert_eq!(world.health.0["db"].told.reason, "nothing was observed yet");
    world.check(Verdict::Degraded, 300);
    assert_eq!(world.told("db"), Verdict::Degraded, "it can look worse");
    world.check(Verdict::Healthy, 300);
    world.times(1, Verdict::Healthy);
    assert_eq!(world.told("db"), Verdict::Healthy);
    // Where there is nothing to observe, checks are all there is.
    let mut world = World::new();
    world.observed.clear();
    world.check(Verdict::Healthy, 300);
    assert_eq!(world.told("db"), Verdict::Healthy);
}

#[test]
fn a_check_that_nobody_reports_any_more_is_forgotten() {
    let mut world = World::new();
    world.times(1, Verdict::Healthy);
    world.check(Verdict::Degraded, 60);
    let quiet = |world: &mut World, seconds: i64| world.after(seconds).see(&[seen("db", Verdict::Healthy)]);
    quiet(&mut world, 60);
    assert_eq!(world.told("db"), Verdict::Unknown, "it is stale");
    quiet(&mut world, FORGOTTEN_S - 1);
    assert_eq!(world.told("db"), Verdict::Unknown);
    quiet(&mut world, 1);
    assert_eq!((world.told("db"), world.health.0["db"].checks.len()), (Verdict::Healthy, 0));
    // One that is required stays, until somebody deletes it.
    world.required.insert("db".into(), BTreeSet::from(["smoke".to_owned()]));
    world.check(Verdict::Degraded, 60);
    quiet(&mut world, 2 * FORGOTTEN_S);
    assert_eq!(world.told("db"), Verdict::Unknown);
    world.check(Verdict::Degraded, 60);
    let open = |world: &World| world.alerts.iter().map(|alert| if alert.recovered { -1 } else { 1 }).sum::<i32>();
    assert_eq!(open(&world), 1);
    world.act(|health, _, around| health.forget_check("db", "smoke", around).expect("it is there"));
    assert_eq!((world.told("db"), open(&world)), (Verdict::Healthy, 0), "its alert ends");
    world.act(|health, _, around| {
        assert_eq!(health.forget_check("db", "smoke", around), None);
        assert_eq!(health.forget_check("nothing", "smoke", around), None);
        Changes::default()
    });
    // Old ones do not keep new ones out.
    world.required.clear();
    let push = |world: &mut World, from: usize| {
        for n in from..from + CHECKS_MAX {
            let check = Check {
                status: Verdict::Healthy,
                message: String::new(),
                at: world.now,
                stale_after_s: 60,
                well_since: None,
            };
            world.act(|health, _, around| health.check("db", &n.to_string(), check, around).expect("taken"));
        }
    };
    push(&mut world, 0);
    world.after(60 + FORGOTTEN_S);
    push(&mut world, CHECKS_MAX);
    assert_eq!(world.health.0["db"].checks.len(), CHECKS_MAX);
}

#[test]
fn a_gate_waits_for_a_whole_window() {
    let mut world = World::new();
    let gate = |required: &[&str], begun: Timestamp| Gate {
        window_s: 60,
        bound_s: 600,
        required_checks: required.iter().map(|&name| name.to_owned()).collect(),
        generation: 1,
        since: begun,
        begun,
    };
    let (checked, plain) = (gate(&["smoke"], world.now), gate(&[], world.now));
    let passage = |world: &World, gate: &Gate| gate.passage("db", world.health.0.get("db"), world.now);
    assert!(matches!(passage(&world, &plain), Passage::Waits(_)));
    world.times(4, Verdict::Healthy);
    assert!(matches!(passage(&world, &plain), Passage::Waits(_)), "{:?}", passage(&world, &plain));
    world.times(1, Verdict::Healthy);
    assert_eq!(passage(&world, &plain), Passage::Passed);
    assert!(matches!(passage(&world, &checked), Passage::Waits(why) if why.contains("was not reported")));
    world.check(Verdict::Healthy, 300);
    world.times(3, Verdict::Healthy);
    assert!(matches!(passage(&world, &checked), Passage::Waits(_)));
    world.times(1, Verdict::Healthy);
    assert_eq!(passage(&world, &checked), Passage::Passed);
    // One bad look begins the window anew; where it lasts, it fails at its end with the reason.
    world.times(2, Verdict::Unhealthy);
    assert!(matches!(passage(&world, &plain), Passage::Waits(_)), "twice may be chance");
    world.times(1, Verdict::Unhealthy);
    assert!(matches!(passage(&world, &plain), Passage::Failed(why) if why.contains("db was seen unhealthy")));
    let later = gate(&[], world.now);
    assert!(matches!(passage(&world, &later), Passage::Waits(why) if why.contains("db was seen unhealthy")));
    // An older deploy was observed.
    let next = Gate { generation: 2, ..plain };
    assert!(matches!(passage(&world, &next), Passage::Failed(_) | Passage::Waits(_)));
    world.after(600);
    assert!(matches!(passage(&world, &next), Passage::Failed(_)));
}

#[test]
fn a_gate_does_not_fail_on_what_was_seen_before_the_apply() {
    for (window_s, generation) in [(0, 2), (30, 2)] {
        let mut world = World::new();
        world.times(3, Verdict::Unhealthy);
        let (since, begun) = (world.now, world.now);
        let gate = Gate { window_s, bound_s: 600, required_checks: Vec::new(), generation, since, begun };
        let passage = |world: &World| gate.passage("db", world.health.0.get("db"), world.now);
        // The old watcher still looks at what was there before.
        world.times(1, Verdict::Unhealthy);
        let healthy = [Verdict::Healthy; 3];
        for verdict in [Verdict::Unhealthy, Verdict::Progressing].into_iter().chain(healthy) {
            assert!(!matches!(passage(&world), Passage::Failed(_)), "{:?}", passage(&world));
            world.after(15).see(&[Observation { generation, ..seen("db", verdict) }]);
        }
        assert_eq!(passage(&world), Passage::Passed);
        // What can't get better by itself is not waited for.
        world.after(15).see(&[Observation { generation, stuck: true, ..seen("db", Verdict::Degraded) }]);
        world.after(15);
        assert!(matches!(passage(&world), Passage::Failed(_)), "{:?}", passage(&world));
    }
    // A bad check that was reported since the apply counts, an older one does not.
    let mut world = World::new();
    world.check(Verdict::Degraded, 300);
    world.after(1);
    let (since, begun) = (world.now, world.now);
    let gate = Gate { window_s: 0, bound_s: 600, required_checks: Vec::new(), generation: 1, since, begun };
    world.times(2, Verdict::Healthy);
    let passage = |world: &World| gate.passage("db", world.health.0.get("db"), world.now);
    assert!(matches!(passage(&world), Passage::Waits(_)), "{:?}", passage(&world));
    world.check(Verdict::Degraded, 300);
    assert!(matches!(passage(&world), Passage::Failed(_)), "{:?}", passage(&world));
}

#[test]
fn what_a_change_explains_is_progressing_while_it_is_on_its_way() {
    let object = |name: &str, verdict, by_change| UnwellObject {
        kind: "Deployment".into(),
        namespace: None,
        name: name.into(),
        verdict,
        reason: format!("{name} is {}", verdict.as_str()),
        by_change,
    };
    let all = |objects: Vec<UnwellObject>| Observation { objects, ..seen("db", Verdict::Unhealthy) };
    let (old, limps) = (object("old", Verdict::Unhealthy, true), object("limps", Verdict::Degraded, false));
    let told = excused(all(vec![old.clone()]));
    assert_eq!((told.verdict, told.reason.as_str()), (Verdict::Progressing, "old is unhealthy"));
    let told = excused(all(vec![old, limps.clone()]));
    assert_eq!((told.verdict, told.reason.as_str()), (Verdict::Degraded, "limps is degraded; and 1 more"));
    let bad = all(vec![limps]);
    assert_eq!(excused(bad.clone()), bad, "what it does not explain stays as it is");
}

#[test]
fn a_gate_does_not_pass_on_what_was_seen_before_the_window_was_over() {
    let mut world = World::new();
    let gate = Gate {
        window_s: 180,
        bound_s: 600,
        required_checks: Vec::new(),
        generation: 1,
        since: world.now,
        begun: world.now,
    };
    let passage = |world: &World| gate.passage("db", world.health.0.get("db"), world.now);
    world.times(1, Verdict::Healthy);
    // The runner's host dies; it counts as silent only later.
    for _ in 0..(SILENCE_S / 15 - 1) {
        world.after(15).look();
        assert_eq!(world.told("db"), Verdict::Healthy);
        assert!(matches!(passage(&world), Passage::Waits(_)), "{:?}", passage(&world));
    }
    world.after(600).look();
    assert!(matches!(passage(&world), Passage::Failed(_)), "{:?}", passage(&world));
    // It is back: the window begins anew, and passes with an observation at its end.
    let gate = Gate { since: world.now, begun: world.now, ..gate };
    world.times(1, Verdict::Healthy);
    world.after(179).see(&[seen("db", Verdict::Healthy)]);
    world.after(1).look();
    let passage = |world: &World| gate.passage("db", world.health.0.get("db"), world.now);
    assert!(matches!(passage(&world), Passage::Waits(why) if why.contains("179 of 180 s")), "{:?}", passage(&world));
    world.see(&[seen("db", Verdict::Healthy)]);
    assert_eq!(passage(&world), Passage::Passed);
}

#[test]
fn uptime_leaves_out_what_nobody_knows() {
    let at = |hour: i64| BEGIN.plus_s(hour * 3600);
    let mut world = World::new();
    world.see(&[seen("db", Verdict::Healthy)]);
    let told = world.health.0["db"].told.clone();
    // Never observed before it was: ten hours of which nobody knows, ten of which it was healthy.
    let all = spans(&[(at(0), None, Verdict::Healthy)], Some(&told), at(-10), at(10));
    assert_eq!(uptime(&all), Some(1.0));
    let moves = [
        (at(1), Some(Verdict::Healthy), Verdict::Unhealthy),
        (at(2), Some(Verdict::Unhealthy), Verdict::Unknown),
        (at(8), Some(Verdict::Unknown), Verdict::Healthy),
    ];
    let all = spans(&moves, Some(&told), at(0), at(10));
    assert_eq!(uptime(&all), Some(0.75));
    assert_eq!(uptime(&spans(&[], None, at(0), at(1))), None);
}

#[derive(Debug, Clone)]
enum Move {
    See(usize, usize, bool),
    Wait(i64),
    Check(usize, u64),
    Deployed(usize, bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => (0..3usize, 0..6usize, any::<bool>()).prop_map(|(of, verdict, stuck)| Move::See(of, verdict, stuck)),
        3 => (1..120i64).prop_map(Move::Wait),
        1 => (200..4000i64).prop_map(Move::Wait),
        1 => (0..6usize, 1..600u64).prop_map(|(verdict, stale)| Move::Check(verdict, stale)),
        1 => (0..3usize, any::<bool>()).prop_map(|(of, there)| Move::Deployed(of, there)),
    ];
    prop::collection::vec(one, 1..80)
}

proptest! {
    #[test]
    fn whatever_happens_alerts_are_paired_and_nothing_looks_better_than_it_is(moves in moves()) {
        let names = ["db", "api", "web"];
        let mut world = World::new();
        let mut last: BTreeMap<String, Option<Verdict>> = BTreeMap::new();
        for one in moves {
            let changes = match one {
                Move::See(of, verdict, stuck) => {
                    let observation = Observation { stuck, ..seen(names[of], Verdict::ALL[verdict]) };
                    world.see(&[observation])
                }
                Move::Wait(seconds) => world.after(seconds).look(),
                Move::Check(verdict, stale) if world.deployed.contains("db") => world.check(Verdict::ALL[verdict], stale),
                Move::Check(..) => Changes::default(),
                Move::Deployed(of, there) => {
                    if there { world.deployed.insert(names[of].into()); } else { world.deployed.remove(names[of]); }
                    world.look()
                }
            };
            // The history has no gap: each transition begins where the one before ended.
            for moved in &changes.transitions {
                if let Some(Some(before)) = last.get(&moved.component) && world.health.0.contains_key(&moved.component) {
                    prop_assert_eq!(moved.from, Some(*before));
                }
                let gone = !world.health.0.contains_key(&moved.component);
                last.insert(moved.component.clone(), (!gone).then_some(moved.told.verdict));
            }
            for (name, component) in &world.health.0 {
                prop_assert_eq!(last[name], Some(component.told.verdict));
                if component.seen.is_none() {
                    prop_assert!(component.told.verdict >= Verdict::Unknown);
                }
                for check in component.checks.values() {
                    prop_assert!(component.told.verdict >= check.verdict(world.now));
                }
                let silent = component.seen.as_ref().is_some_and(|seen| seen.at.plus_s(SILENCE_S) <= world.now);
                if silent {
                    prop_assert!(component.told.verdict >= Verdict::Unknown);
                }
            }
        }
        for name in names {
            let mut open = None;
            for alert in world.alerts.iter().filter(|alert| alert.component == name) {
                match alert.recovered {
                    false => { prop_assert_eq!(open, None); open = Some(alert.silent); }
                    true => { prop_assert_eq!(open, Some(alert.silent)); open = None; }
                }
                if !alert.recovered { prop_assert!(alert.told.verdict.is_bad()); }
            }
            let bad = world.health.0.get(name).is_some_and(|component| component.told.verdict.is_bad());
            prop_assert!(!bad || open.is_some(), "what is bad has an alert");
        }
    }
}
