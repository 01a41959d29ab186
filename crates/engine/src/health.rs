//! How well the components of an install are: what follows from observations, checks and time.
//!
//! Pure: the time and what a component needs are arguments. The worst observation wins. A component turns bad after three bad
//! observations in a row, and good after two good ones. What nobody hears of for five minutes is unknown, and never alerts.

use std::collections::{BTreeMap, BTreeSet};

use model::Timestamp;
use model::health::{Observation, Verdict};
use serde::{Deserialize, Serialize};

/// Bad observations in a row until a component counts as bad.
pub const BAD_IN_A_ROW: u32 = 3;
/// Good observations in a row until it counts as well again.
pub const GOOD_IN_A_ROW: u32 = 2;
/// What nobody hears of for so long is unknown.
pub const SILENCE_S: i64 = 300;
/// What is on its way for longer is degraded.
pub const PROGRESSING_S: i64 = 1800;
/// The longest that a check stays fresh, and how long it does where nothing is said.
pub const STALE_MAX_S: u64 = 3600;
pub const STALE_S: u64 = 300;
/// A check that nobody requires is forgotten when it has been stale for so long.
pub const FORGOTTEN_S: i64 = 86_400;
/// Checks of one component.
pub const CHECKS_MAX: usize = 50;

/// A check that somebody has pushed. It can only make a component look worse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub status: Verdict,
    pub message: String,
    pub at: Timestamp,
    pub stale_after_s: u64,
    /// Since when each report said that it is healthy, without a gap.
    pub well_since: Option<Timestamp>,
}

impl Check {
    fn stale_at(&self) -> Timestamp {
        self.at.plus_s(self.stale_after_s as i64)
    }

    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.stale_at() <= now
    }

    fn forgotten_at(&self) -> Timestamp {
        self.stale_at().plus_s(FORGOTTEN_S)
    }

    /// What it says now; a stale one says nothing.
    pub fn verdict(&self, now: Timestamp) -> Verdict {
        if self.is_stale(now) { Verdict::Unknown } else { self.status }
    }
}

/// The last observation, and when it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub at: Timestamp,
    pub observation: Observation,
}

/// What people are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub verdict: Verdict,
    pub reason: String,
    pub since: Timestamp,
    /// The component that it needs and that is bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downstream_of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentHealth {
    pub told: Told,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Its first verdict is in the history.
    #[serde(default)]
    announced: bool,
    /// What observations add up to.
    settled: Verdict,
    /// Observations in a row that speak against it.
    #[serde(default)]
    against: u32,
    /// Bad observations in a row, all of one deploy.
    #[serde(default)]
    bad: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progressing_since: Option<Timestamp>,
    /// Since when every observation, taken by itself, was good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    well_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, Check>,
    /// An alert that waits for its recovery, and whether it is silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alert: Option<bool>,
}

/// A component's verdict became another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub component: String,
    pub from: Option<Verdict>,
    pub told: Told,
}

/// Something that people are told of. Each `Bad` is followed by one `Recovered`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    pub component: String,
    pub recovered: bool,
    /// Another component is the cause, and its alert says it.
    pub silent: bool,
    pub told: Told,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub transitions: Vec<Transition>,
    pub alerts: Vec<Alert>,
}

/// What the rules need to know beside what is stored.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    pub now: Timestamp,
    /// What each component needs, directly.
    pub needs: &'a BTreeMap<String, Vec<String>>,
    /// Components that a runner observes: without an observation nobody knows how they are.
    pub observed: &'a BTreeSet<String>,
    /// Checks that each component requires: they are not forgotten.
    pub required: &'a BTreeMap<String, BTreeSet<String>>,
    pub silence_s: i64,
}

/// All components of an install.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstallHealth(pub BTreeMap<String, ComponentHealth>);

/// What was seen of a component while a deploy or a teardown of it was on its way: what that explains is progressing.
pub fn excused(mut observation: Observation) -> Observation {
    if !observation.objects.iter().any(|object| object.by_change) {
        return observation;
    }
    for object in observation.objects.iter_mut().filter(|object| object.by_change) {
        object.verdict = Verdict::Progressing;
    }
    // What is beyond the list is looked at when the change is over.
    observation.objects.sort_by_key(|object| std::cmp::Reverse(object.verdict));
    if let Some(worst) = observation.objects.first() {
        observation.verdict = worst.verdict;
        observation.reason = match observation.objects.len() - 1 {
            0 => worst.reason.clone(),
            more => format!("{}; and {more} more", worst.reason),
        };
    }
    observation
}

/// Why a check is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("component `{0}` has {CHECKS_MAX} checks already")]
    TooMany(String),
}

impl Around<'_> {
    fn requires(&self, component: &str, check: &str) -> bool {
        self.required.get(component).is_some_and(|required| required.contains(check))
    }
}

impl ComponentHealth {
    fn new(now: Timestamp) -> Self {
        let reason = "nothing was observed yet".to_owned();
        Self {
            told: Told { verdict: Verdict::Unknown, reason, since: now, downstream_of: None },
            seen: None,
            announced: false,
            settled: Verdict::Unknown,
            against: 0,
            bad: 0,
            progressing_since: None,
            well_since: None,
            checks: BTreeMap::new(),
            alert: None,
        }
    }

    fn observe(&mut self, observation: Observation, around: &Around) {
        if self.is_silent(around) {
            self.fall_silent();
        }
        let (now, found) = (around.now, observation.verdict);
        self.progressing_since = match found {
            Verdict::Progressing => self.progressing_since.or(Some(now)),
            // Who can't see it for a while does not know that it is over.
            Verdict::Unknown => self.progressing_since,
            Verdict::NotApplicable | Verdict::Healthy | Verdict::Degraded | Verdict::Unhealthy => None,
        };
        self.well_since = if found.is_good() { self.well_since.or(Some(now)) } else { None };
        let is_same = self.seen.as_ref().is_some_and(|seen| seen.observation.generation == observation.generation);
        self.bad = if found.is_bad() { if is_same { self.bad.saturating_add(1) } else { 1 } } else { 0 };
        let against = found.is_bad() != self.settled.is_bad();
        self.against = if against { self.against + 1 } else { 0 };
        let enough = if found.is_bad() { BAD_IN_A_ROW } else { GOOD_IN_A_ROW };
        if !against || observation.stuck && found.is_bad() || self.against >= enough {
            (self.settled, self.against) = (found, 0);
        }
        self.seen = Some(Seen { at: now, observation });
    }

    fn is_silent(&self, around: &Around) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.at.plus_s(around.silence_s) <= around.now)
    }

    /// What was seen before says nothing of what is there now.
    fn fall_silent(&mut self) {
        (self.settled, self.against) = (Verdict::Unknown, 0);
        (self.progressing_since, self.well_since) = (None, None);
    }

    /// Whether observations do not agree yet: the next one should come soon.
    pub const fn is_undecided(&self) -> bool {
        self.against > 0
    }

    /// The last observation by itself, whatever came before.
    fn is_seen_bad(&self, around: &Around) -> bool {
        !self.is_silent(around) && self.seen.as_ref().is_some_and(|seen| seen.observation.verdict.is_bad())
    }

    /// What is to be told now, and why.
    fn judged(&self, name: &str, around: &Around) -> (Verdict, String) {
        let now = around.now;
        let (mut verdict, mut reason) = match &self.seen {
            None if around.observed.contains(name) => (Verdict::Unknown, "nothing was observed yet".to_owned()),
            None => (Verdict::NotApplicable, String::new()),
            Some(seen) if self.is_silent(around) => {
                (Verdict::Unknown, format!("the runner has reported nothing since {}", seen.at))
            }
            Some(seen) => {
                let told = &seen.observation;
                // What is not settled yet has the reason that it had.
                let settled = if told.verdict.is_bad() == self.settled.is_bad() {
                    told.reason.clone()
                } else if self.told.verdict == self.settled {
                    self.told.reason.clone()
                } else {
                    String::new()
                };
                (self.settled, settled)
            }
        };
        if verdict == Verdict::Progressing
            && let Some(since) = self.progressing_since.filter(|since| since.plus_s(PROGRESSING_S) <= now)
        {
            verdict = Verdict::Degraded;
            reason = format!("it has been progressing since {since}: {reason}");
        }
        for (name, check) in &self.checks {
            let found = check.verdict(now);
            if found > verdict {
                verdict = found;
                reason = match (check.is_stale(now), check.message.is_empty()) {
                    (true, _) => format!("check `{name}` is stale: it was last reported at {}", check.at),
                    (false, true) => format!("check `{name}` is {}", found.as_str()),
                    (false, false) => format!("check `{name}`: {}", check.message),
                };
            }
        }
        (verdict, reason)
    }

    /// Checks that nobody reports any more go.
    fn forget_stale(&mut self, name: &str, around: &Around) {
        self.checks.retain(|check, known| around.requires(name, check) || known.forgotten_at() > around.now);
    }

    /// When time alone changes something.
    fn due(&self, name: &str, around: &Around) -> Option<Timestamp> {
        let silence = self.seen.iter().map(|seen| seen.at.plus_s(around.silence_s));
        let overdue = self.progressing_since.iter().map(|since| since.plus_s(PROGRESSING_S));
        let stale = self.checks.values().map(Check::stale_at);
        let passing = self.checks.iter().filter(|(check, _)| !around.requires(name, check));
        let forgotten = passing.map(|(_, check)| check.forgotten_at());
        silence.chain(overdue).chain(stale).chain(forgotten).filter(|at| *at > around.now).min()
    }
}

impl InstallHealth {
    /// The worst of all components; None where there is none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.0.values().map(|component| component.told.verdict).max()
    }

    /// Takes what a runner saw. Only components that are deployed count.
    pub fn observe(&mut self, observations: Vec<Observation>, deployed: &BTreeSet<String>, around: &Around) -> Changes {
        let mut before = self.kept(deployed, around);
        for observation in observations.into_iter().filter(|it| deployed.contains(&it.component)) {
            let known = self.0.entry(observation.component.clone()).or_insert_with(|| ComponentHealth::new(around.now));
            known.observe(observation, around);
        }
        self.settle(&mut before, around);
        before
    }

    /// Takes a check.
    pub fn check(&mut self, component: &str, name: &str, check: Check, around: &Around) -> Result<Changes, CheckError> {
        let known = self.0.entry(component.to_owned()).or_insert_with(|| ComponentHealth::new(around.now));
        known.forget_stale(component, around);
        let before = known.checks.get(name);
        if before.is_none() && known.checks.len() >= CHECKS_MAX {
            return Err(CheckError::TooMany(component.to_owned()));
        }
        let went_on = before.filter(|before| !before.is_stale(around.now)).and_then(|before| before.well_since);
        let well_since = check.status.is_good().then(|| went_on.unwrap_or(around.now));
        known.checks.insert(name.to_owned(), Check { well_since, ..check });
        let mut changes = Changes::default();
        self.settle(&mut changes, around);
        Ok(changes)
    }

    /// Forgets a check; None where there is none of this name.
    pub fn forget_check(&mut self, component: &str, name: &str, around: &Around) -> Option<Changes> {
        self.0.get_mut(component)?.checks.remove(name)?;
        let mut changes = Changes::default();
        self.settle(&mut changes, around);
        Some(changes)
    }

    /// Time has passed, or what is deployed has changed.
    pub fn look(&mut self, deployed: &BTreeSet<String>, around: &Around) -> Changes {
        let mut changes = self.kept(deployed, around);
        self.settle(&mut changes, around);
        changes
    }

    /// When to look again though nothing comes.
    pub fn due(&self, around: &Around) -> Option<Timestamp> {
        self.0.iter().filter_map(|(name, component)| component.due(name, around)).min()
    }

    /// What is not deployed any more is forgotten; its alert ends.
    fn kept(&mut self, deployed: &BTreeSet<String>, around: &Around) -> Changes {
        let mut changes = Changes::default();
        self.0.retain(|name, component| {
            let stays = deployed.contains(name);
            if !stays {
                let reason = "it is not deployed any more".to_owned();
                let told = Told { verdict: Verdict::NotApplicable, reason, since: around.now, downstream_of: None };
                if let Some(silent) = component.alert {
                    let (component, told) = (name.clone(), told.clone());
                    changes.alerts.push(Alert { component, recovered: true, silent, told });
                }
                let from = Some(component.told.verdict);
                changes.transitions.push(Transition { component: name.clone(), from, told });
            }
            stays
        });
        changes
    }

    fn settle(&mut self, changes: &mut Changes, around: &Around) {
        self.0.iter_mut().for_each(|(name, component)| component.forget_stale(name, around));
        let judged: BTreeMap<String, (Verdict, String)> =
            self.0.iter().map(|(name, component)| (name.clone(), component.judged(name, around))).collect();
        let troubled: BTreeSet<&str> = self
            .0
            .iter()
            .filter(|(name, component)| judged[*name].0.is_bad() || component.is_seen_bad(around))
            .map(|(name, _)| name.as_str())
            .collect();
        let causes: BTreeMap<String, String> = self
            .0
            .keys()
            .filter_map(|name| Some((name.clone(), cause(name, &troubled, around.needs)?.to_owned())))
            .collect();
        for (name, component) in &mut self.0 {
            let (verdict, reason) = judged.get(name).cloned().unwrap_or((Verdict::Unknown, String::new()));
            let downstream_of = causes.get(name).filter(|_| verdict.is_bad()).cloned();
            let from = component.told.verdict;
            let is_new = !component.announced;
            component.announced = true;
            let since = if from == verdict { component.told.since } else { around.now };
            component.told = Told { verdict, reason, since, downstream_of };
            let told = component.told.clone();
            if from != verdict || is_new {
                let from = (!is_new).then_some(from);
                changes.transitions.push(Transition { component: name.clone(), from, told: told.clone() });
            }
            component.alerts(name, &told, &mut changes.alerts);
        }
    }
}

impl ComponentHealth {
    fn alerts(&mut self, name: &str, told: &Told, alerts: &mut Vec<Alert>) {
        let mut say = |recovered, silent| {
            alerts.push(Alert { component: name.to_owned(), recovered, silent, told: told.clone() });
        };
        let silent = told.downstream_of.is_some();
        match self.alert {
            None if told.verdict.is_bad() => {
                say(false, silent);
                self.alert = Some(silent);
            }
            // Its cause is well again, and it is not: now it is its own.
            Some(true) if told.verdict.is_bad() && !silent => {
                say(true, true);
                say(false, false);
                self.alert = Some(false);
            }
            Some(was_silent) if told.verdict.is_good() => {
                say(true, was_silent);
                self.alert = None;
            }
            _ => {}
        }
    }
}

/// The component that this one needs, also through others, and that is bad: the farthest one, where the trouble begins.
fn cause<'t>(name: &str, troubled: &BTreeSet<&'t str>, needs: &BTreeMap<String, Vec<String>>) -> Option<&'t str> {
    let (mut seen, mut look) = (BTreeSet::from([name.to_owned()]), vec![name.to_owned()]);
    let mut found = None;
    while !look.is_empty() {
        let next = look.iter().flat_map(|at| needs.get(at).into_iter().flatten().cloned());
        look = next.filter(|need| seen.insert(need.clone())).collect();
        found = look.iter().find_map(|need| troubled.get(need.as_str()).copied()).or(found);
    }
    found
}

/// What a deploy waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub window_s: i64,
    /// How long it waits at most.
    pub bound_s: i64,
    pub required_checks: Vec<String>,
    /// Which deploy it is about.
    pub generation: u64,
    /// When that ended: what was seen and reported before does not count.
    pub since: Timestamp,
    /// When the waiting began.
    pub begun: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    Passed,
    /// For what it waits.
    Waits(String),
    Failed(String),
}

impl Gate {
    /// Whether a component has been well for long enough.
    pub fn passage(&self, name: &str, health: Option<&ComponentHealth>, now: Timestamp) -> Passage {
        let (well, trouble) = self.state(name, health, now);
        // What nobody has looked at since says nothing of how it is now.
        if let Some((since, seen_at)) = well
            && since.plus_s(self.window_s) <= seen_at
        {
            return Passage::Passed;
        }
        let bad = health.is_some_and(|health| self.is_bad(health, now));
        if bad && self.begun.plus_s(self.window_s) <= now {
            return Passage::Failed(format!("{name} is not healthy: {trouble}"));
        }
        if self.begun.plus_s(self.bound_s) <= now {
            return Passage::Failed(format!("{name} did not stay healthy for {} s in time: {trouble}", self.window_s));
        }
        Passage::Waits(match well {
            Some((since, seen_at)) => {
                let lasted = seen_at.since(since).as_secs().min(self.window_s as u64);
                format!("{name} was seen healthy for {lasted} of {} s", self.window_s)
            }
            None => format!("waits for {name}: {trouble}"),
        })
    }

    /// The last observation, if it is of what was applied.
    fn seen<'h>(&self, health: &'h ComponentHealth) -> Option<&'h Seen> {
        let is_of_this = |seen: &&Seen| seen.at >= self.since && seen.observation.generation >= self.generation;
        health.seen.as_ref().filter(is_of_this)
    }

    /// Whether a component is bad since the apply: what was observed before, or once or twice only, does not say so.
    fn is_bad(&self, health: &ComponentHealth, now: Timestamp) -> bool {
        let seen = self.seen(health).map(|seen| &seen.observation).filter(|seen| seen.verdict.is_bad());
        seen.is_some_and(|seen| seen.stuck || health.bad >= BAD_IN_A_ROW)
            || health.checks.values().any(|check| check.at >= self.since && check.verdict(now).is_bad())
    }

    /// Since when everything is well, and when that was seen last; else what is not. And what stands in the way.
    fn state(
        &self,
        name: &str,
        health: Option<&ComponentHealth>,
        now: Timestamp,
    ) -> (Option<(Timestamp, Timestamp)>, String) {
        let unseen = || (None, "nothing was observed since the apply".to_owned());
        let Some(health) = health else { return unseen() };
        let mut since = self.since;
        let Some(seen) = self.seen(health) else { return unseen() };
        match health.well_since {
            Some(at) => since = since.max(at),
            None => {
                let told = &seen.observation;
                return (None, format!("{} is {}: {}", name, told.verdict.as_str(), told.reason));
            }
        }
        for required in &self.required_checks {
            let Some(check) = health.checks.get(required).filter(|check| check.at >= self.since) else {
                return (None, format!("check `{required}` was not reported since the apply"));
            };
            match check.well_since.filter(|_| check.verdict(now).is_good()) {
                Some(at) => since = since.max(at),
                None if check.is_stale(now) => return (None, format!("check `{required}` is stale")),
                None => return (None, format!("check `{required}` is {}: {}", check.status.as_str(), check.message)),
            }
        }
        if !health.told.verdict.is_good() {
            return (None, health.told.reason.clone());
        }
        let since = since.max(health.told.since.min(now));
        (Some((since, seen.at)), format!("it was last observed at {}", seen.at))
    }
}

/// A verdict that held from one time to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub verdict: Option<Verdict>,
    pub from: Timestamp,
    pub to: Timestamp,
}

/// The verdicts between two times: of transitions, oldest first, each with what was told before; and of what is told now.
pub fn spans(
    transitions: &[(Timestamp, Option<Verdict>, Verdict)],
    current: Option<&Told>,
    from: Timestamp,
    to: Timestamp,
) -> Vec<Span> {
    let mut spans = Vec::with_capacity(transitions.len() + 1);
    let mut at = from;
    for (time, before, _) in transitions.iter().filter(|(time, _, _)| *time > from && *time <= to) {
        spans.push(Span { verdict: *before, from: at, to: *time });
        at = *time;
    }
    let last = transitions.last().map(|(_, _, verdict)| *verdict).or_else(|| current.map(|told| told.verdict));
    let begun = current.map_or(at, |told| told.since);
    if transitions.is_empty() && begun > at {
        spans.push(Span { verdict: None, from: at, to: begun.min(to) });
        at = begun.min(to);
    }
    spans.push(Span { verdict: last, from: at, to });
    spans.retain(|span| span.to > span.from);
    spans
}

/// The part of the known time in which something served; None where nothing is known.
pub fn uptime(spans: &[Span]) -> Option<f64> {
    let (mut up, mut known) = (0.0, 0.0);
    for span in spans {
        let lasted = span.to.since(span.from).as_secs_f64();
        match span.verdict {
            None | Some(Verdict::Unknown | Verdict::NotApplicable) => {}
            Some(Verdict::Unhealthy) => known += lasted,
            Some(Verdict::Healthy | Verdict::Progressing | Verdict::Degraded) => {
                known += lasted;
                up += lasted;
            }
        }
    }
    (known > 0.0).then(|| up / known)
}
