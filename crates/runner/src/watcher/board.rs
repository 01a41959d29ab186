//! What is known of each object and probe. No more of an object is kept than its verdict and a sentence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kubernetes::ObjectRef;
use mask::Masks;
use model::health::{OBJECTS_MAX, Observation, Probe, REASON_CHARS_MAX, UnwellObject, Verdict};
use tokio::time::Instant;

use crate::execute::kubernetes::api::Api;

/// A component that is observed.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) generation: u64,
    /// Each with the cluster that it is in.
    pub(super) objects: Vec<(usize, ObjectRef)>,
    pub(super) probes: Vec<Probe>,
    /// Why it can't be observed.
    pub(super) unknown: String,
}

/// What was seen of an object or a probe.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    /// The verdict by the object alone, before it was looked into why it is so.
    pub(super) judged: Verdict,
    /// It does not get better by waiting.
    pub(super) stuck: bool,
    /// A deploy or a teardown that is on its way explains it.
    pub(super) by_change: bool,
    /// When it was looked into why it is so.
    pub(super) explained_at: Option<Instant>,
    /// Something has happened to it since.
    pub(super) asks: bool,
}

impl Look {
    pub(super) fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        let (stuck, by_change, asks) = (false, false, false);
        Self { verdict, reason: reason.into(), judged: verdict, stuck, by_change, explained_at: None, asks }
    }
}

pub(super) type Place = (usize, ObjectRef);

pub(super) struct Board {
    components: Vec<Component>,
    objects: Mutex<BTreeMap<Place, Option<Look>>>,
    probes: Mutex<BTreeMap<(usize, usize), Look>>,
    /// The way into each cluster, once there is one.
    ways: Mutex<Vec<Option<Arc<Api>>>>,
    changed: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub(super) fn new(components: Vec<Component>, clusters: usize) -> Self {
        let places = components.iter().flat_map(|it| it.objects.iter().cloned()).map(|place| (place, None));
        let objects = Mutex::new(places.collect());
        let ways = Mutex::new(vec![None; clusters]);
        Self { components, objects, probes: Mutex::default(), ways, changed: AtomicBool::new(false) }
    }

    /// The objects of a cluster.
    pub(super) fn objects_in(&self, cluster: usize) -> Vec<ObjectRef> {
        locked(&self.objects).keys().filter(|(at, _)| *at == cluster).map(|(_, of)| of.clone()).collect()
    }

    /// Every probe, with its component and its place there.
    pub(super) fn probes(&self) -> Vec<((usize, usize), Probe)> {
        let each = self.components.iter().enumerate();
        each.flat_map(|(at, it)| it.probes.iter().enumerate().map(move |(n, probe)| ((at, n), probe.clone()))).collect()
    }

    pub(super) fn set_way(&self, cluster: usize, api: Option<Arc<Api>>) {
        locked(&self.ways)[cluster] = api;
    }

    pub(super) fn way(&self, cluster: usize) -> Option<Arc<Api>> {
        locked(&self.ways)[cluster].clone()
    }

    /// Notes what was seen of an object; what was found out about it before goes on to count while its verdict stays as it was.
    pub(super) fn see(&self, place: &Place, mut look: Look) {
        let mut objects = locked(&self.objects);
        let Some(known) = objects.get_mut(place) else { return };
        if let Some(before) = known.as_ref()
            && before.explained_at.is_some()
            && look.explained_at.is_none()
            && before.judged == look.judged
        {
            // What explains it is asked again when the next observation is made.
            look = Look { asks: true, ..before.clone() };
        }
        let same = known.as_ref().is_some_and(|known| known.verdict == look.verdict && known.reason == look.reason);
        let asks = look.asks;
        *known = Some(look);
        if !same || asks {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn see_probe(&self, place: (usize, usize), look: Look) {
        let before = locked(&self.probes).insert(place, look.clone());
        if before.is_none_or(|before| before.verdict != look.verdict) {
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    /// Objects that are not as they should be: first those that were never looked into, then those of longest ago.
    pub(super) fn unwell(&self) -> Vec<(Place, Look)> {
        let objects = locked(&self.objects);
        let mut found: Vec<(Place, Look)> = objects
            .iter()
            .filter_map(|(place, look)| Some((place.clone(), look.clone()?)))
            .filter(|(_, look)| !look.verdict.is_good() && look.verdict != Verdict::Unknown)
            .collect();
        found.sort_by_key(|(_, look)| (look.explained_at, std::cmp::Reverse(look.verdict)));
        found
    }

    /// Everything was looked at once.
    pub(super) fn is_read(&self) -> bool {
        let probes = self.components.iter().map(|it| it.probes.len()).sum::<usize>();
        locked(&self.objects).values().all(Option::is_some) && locked(&self.probes).len() == probes
    }

    pub(super) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub(super) fn take_changes(&self) {
        self.changed.store(false, Ordering::Relaxed);
    }

    pub(super) fn observations(&self, masks: &Masks) -> Vec<Observation> {
        self.components.iter().enumerate().map(|(at, it)| self.observation(at, it, masks)).collect()
    }

    fn observation(&self, at: usize, component: &Component, masks: &Masks) -> Observation {
        let mut looks: Vec<(UnwellObject, bool)> = Vec::new();
        if !component.unknown.is_empty() {
            let look = Look::new(Verdict::Unknown, component.unknown.clone());
            looks.push((unwell("component", None, &component.name, &look), false));
        }
        let objects = locked(&self.objects);
        for place in &component.objects {
            let (of, look) = (&place.1, objects.get(place).and_then(Option::as_ref));
            let unread = Look::new(Verdict::Unknown, format!("{} was not read yet", of.address()));
            let look = look.unwrap_or(&unread);
            looks.push((unwell(&of.kind, of.namespace.as_deref(), &of.name, look), look.stuck));
        }
        drop(objects);
        let probes = locked(&self.probes);
        for (n, probe) in component.probes.iter().enumerate() {
            let unread = Look::new(Verdict::Unknown, format!("probe `{}` was not tried yet", probe.name));
            let look = probes.get(&(at, n)).unwrap_or(&unread);
            looks.push((unwell("probe", None, &probe.name, look), false));
        }
        drop(probes);
        let judged = looks.len() as u64;
        let verdict = looks.iter().map(|(it, _)| it.verdict).max().unwrap_or(Verdict::NotApplicable);
        let stuck = looks.iter().any(|(it, stuck)| *stuck && it.verdict.is_bad());
        looks.retain(|(it, _)| !it.verdict.is_good());
        // Among equals the one that can't get better by itself is the one to tell of.
        looks.sort_by_key(|(it, stuck)| std::cmp::Reverse((it.verdict, *stuck)));
        let more = looks.len().saturating_sub(1);
        let reason = looks.first().map(|(it, _)| match more {
            0 => it.reason.clone(),
            more => format!("{}; and {more} more", it.reason),
        });
        let shortened = |text: &str| masks.mask_text(text).chars().take(REASON_CHARS_MAX).collect::<String>();
        let objects = looks.into_iter().take(OBJECTS_MAX).map(|(it, _)| UnwellObject {
            name: masks.mask_text(&it.name),
            reason: shortened(&it.reason),
            ..it
        });
        Observation {
            component: component.name.clone(),
            generation: component.generation,
            verdict,
            reason: shortened(&reason.unwrap_or_default()),
            stuck,
            judged,
            objects: objects.collect(),
        }
    }
}

fn unwell(kind: &str, namespace: Option<&str>, name: &str, look: &Look) -> UnwellObject {
    UnwellObject {
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        verdict: look.verdict,
        reason: look.reason.clone(),
        by_change: look.by_change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> ObjectRef {
        ObjectRef {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            namespace: Some("shop".into()),
            name: name.into(),
        }
    }

    fn board(names: &[&str]) -> Board {
        let component = Component {
            name: "web".into(),
            generation: 3,
            objects: names.iter().map(|name| (0, of(name))).collect(),
            probes: Vec::new(),
            unknown: String::new(),
        };
        Board::new(vec![component], 1)
    }

    #[test]
    fn an_explanation_counts_while_the_verdict_is_the_same() {
        let board = board(&["a"]);
        let place = (0, of("a"));
        let now = || board.unwell().remove(0).1;
        board.see(&place, Look::new(Verdict::Progressing, "0 of 1"));
        let why = Look { verdict: Verdict::Degraded, stuck: true, explained_at: Some(Instant::now()), ..now() };
        board.see(&place, Look { reason: "no such image".into(), ..why });
        for _ in 0..2 {
            board.see(&place, Look::new(Verdict::Progressing, "still 0 of 1"));
            let known = now();
            assert_eq!((known.verdict, known.reason.as_str(), known.asks), (Verdict::Degraded, "no such image", true));
        }
        board.see(&place, Look::new(Verdict::Unhealthy, "0 are left"));
        let known = now();
        assert_eq!((known.verdict, known.reason.as_str(), known.stuck), (Verdict::Unhealthy, "0 are left", false));
        assert!(known.explained_at.is_none(), "the first to be looked into");
    }

    #[test]
    fn the_worst_is_told_and_secrets_are_not() {
        let board = board(&["a", "b", "c"]);
        let masks = Masks::new(&["hunter2-secret".to_owned()]);
        assert!(!board.is_read());
        board.see(&(0, of("a")), Look::new(Verdict::Healthy, ""));
        board.see(&(0, of("b")), Look::new(Verdict::Degraded, "b limps"));
        let told = &board.observations(&masks)[0];
        assert_eq!(
            (told.verdict, told.judged),
            (Verdict::Degraded, 3),
            "what was not read is unknown, which is better"
        );
        board.see(&(0, of("c")), Look::new(Verdict::Unhealthy, "c says hunter2-secret"));
        assert!(board.is_read() && board.has_changed());
        let told = &board.observations(&masks)[0];
        assert_eq!((told.verdict, told.generation), (Verdict::Unhealthy, 3));
        assert!(told.reason.starts_with("c says ") && told.reason.ends_with("; and 1 more"), "{}", told.reason);
        assert!(!serde_json::to_string(told).expect("text").contains("hunter2"), "{told:?}");
        board.take_changes();
        board.see(&(0, of("a")), Look::new(Verdict::Healthy, ""));
        assert!(!board.has_changed(), "the same again is no news");
    }
}
