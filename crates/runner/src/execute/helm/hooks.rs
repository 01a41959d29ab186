//! Hooks: objects that Helm creates at moments of its own, past the post-renderer, and that are no part of the release.

use std::collections::BTreeMap;

use kubernetes::{Change, ObjectRef, Verb};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::action::StepFailure;
use super::super::kubernetes::api::Api;
use super::release;

/// An object that Helm creates at a moment of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Hook {
    #[serde(default)]
    pub(super) path: String,
    #[serde(default)]
    pub(super) manifest: String,
    #[serde(default)]
    pub(super) events: Vec<String>,
}

/// Hooks as Helm writes them in a record and in a dry run.
pub(super) fn read(told: &Value) -> Result<Vec<Hook>, StepFailure> {
    if told.is_null() {
        return Ok(Vec::new());
    }
    let bad = |e: serde_json::Error| {
        StepFailure::new("helm_failed", format!("the hooks of the chart can't be read: line {}", e.line()))
    };
    Vec::deserialize(told).map_err(bad)
}

/// What is done to a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Install,
    Upgrade,
    Uninstall,
}

impl Moment {
    const fn events(self) -> [&'static str; 2] {
        match self {
            Self::Install => ["pre-install", "post-install"],
            Self::Upgrade => ["pre-upgrade", "post-upgrade"],
            Self::Uninstall => ["pre-delete", "post-delete"],
        }
    }
}

/// A hook with what it would create.
pub(super) struct Parsed {
    pub(super) hook: Hook,
    pub(super) objects: Vec<Value>,
}

impl Parsed {
    /// Whether Helm deletes what has its name before it creates it.
    fn replaces(object: &Value) -> bool {
        let policy = object["metadata"]["annotations"]["helm.sh/hook-delete-policy"].as_str();
        let is_crd = ObjectRef::of(object).is_some_and(|of| of.is_crd());
        !is_crd && policy.is_none_or(|text| text.split(',').any(|one| one.trim() == "before-hook-creation"))
    }

    /// Tests run only when a person asks Helm for them.
    pub(super) fn is_test(&self) -> bool {
        self.hook.events.iter().all(|event| event.starts_with("test"))
    }

    fn runs_at(&self, moment: Moment) -> Vec<&'static str> {
        moment.events().into_iter().filter(|event| self.hook.events.iter().any(|known| known == event)).collect()
    }

    /// Whether it may run some day after an upgrade.
    fn may_run_later(&self) -> bool {
        self.hook.events.iter().any(|event| !event.ends_with("-install") && !event.starts_with("test"))
    }
}

/// What hooks delete that is there already: it is replaced. What was never a hook of this release is named.
pub(super) async fn replaced(
    api: &Api,
    changes: &mut [Change],
    now: &[Parsed],
    before: &[Parsed],
) -> Result<Vec<String>, StepFailure> {
    let mut foreign = Vec::new();
    let all = || now.iter().chain(before).flat_map(|hook| &hook.objects);
    for change in changes.iter_mut().filter(|change| change.verb != Verb::Forget) {
        let is_this = |object: &&Value| ObjectRef::of(object).is_some_and(|of| of.is_same(&change.of));
        if !all().find(is_this).is_some_and(Parsed::replaces) {
            continue;
        }
        let live = api.get(&change.of).await.map_err(|e| e.of("read", &change.of.address()))?;
        let Some(live) = live else { continue };
        change.verb = Verb::Replace;
        change.before = live;
        change.reason = change.reason.take().map(|reason| format!("{reason}: it is deleted and created again"));
        if !before.iter().flat_map(|hook| &hook.objects).any(|object| is_this(&object)) {
            foreign.push(change.of.address());
        }
    }
    Ok(foreign)
}

/// The hook that an install or an upgrade has run as something else than was approved.
pub(super) fn differing(approved: &[Hook], ran: &[Hook]) -> Result<Option<String>, StepFailure> {
    let sorted = |hooks: &[Hook]| -> Result<Vec<String>, StepFailure> {
        let mut all = Vec::new();
        for hook in hooks {
            all.extend(release::objects(&hook.manifest)?.iter().map(Value::to_string));
        }
        all.sort();
        Ok(all)
    };
    if sorted(approved)? == sorted(ran)? {
        return Ok(None);
    }
    let other = ran.iter().find(|hook| !approved.contains(hook));
    Ok(Some(other.map_or_else(|| "of a hook".to_owned(), |hook| hook.path.clone())))
}

/// What a plan says of hooks. One that is as it was before runs again only because something else changes.
pub(super) fn changes(moment: Moment, before: &[Parsed], now: &[Parsed], something_else: bool) -> Vec<Change> {
    let texts: BTreeMap<ObjectRef, &Value> = before
        .iter()
        .flat_map(|hook| &hook.objects)
        .filter_map(|object| Some((ObjectRef::of(object)?, object)))
        .collect();
    let is_new = |hook: &Parsed| !before.iter().any(|was| was.hook == hook.hook);
    let matters = |hook: &Parsed| hook.may_run_later() && is_new(hook);
    let any = something_else || moment != Moment::Upgrade || now.iter().any(matters);
    let mut found = Vec::new();
    for hook in now.iter().filter(|hook| !hook.is_test()) {
        let events = hook.runs_at(moment);
        let reason = match (events.is_empty(), moment == Moment::Upgrade && matters(hook)) {
            (false, _) if any => format!("which Helm runs at {}", events.join(" and ")),
            (true, true) => format!("which Helm runs at {}", hook.hook.events.join(" and ")),
            _ => continue,
        };
        for object in &hook.objects {
            let Some(of) = ObjectRef::of(object) else { continue };
            let was = texts.get(&of).copied().filter(|was| *was != object && moment == Moment::Upgrade);
            found.push(Change {
                of,
                verb: if was.is_some() { Verb::Update } else { Verb::Create },
                before: was.cloned().unwrap_or_default(),
                after: object.clone(),
                reason: Some(reason.clone()),
                fixed: Vec::new(),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook(name: &str, word: &str, events: &[&str]) -> Parsed {
        let object =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "word": word } });
        let events = events.iter().map(|event| (*event).to_owned()).collect();
        let hook = Hook { path: name.into(), manifest: object.to_string(), events };
        Parsed { hook, objects: vec![object] }
    }

    #[test]
    fn a_plan_says_which_hooks_run_and_why() {
        let told = |moment, before: &[Parsed], now: &[Parsed], more| -> Vec<(String, Verb, String)> {
            let found = changes(moment, before, now, more);
            found.into_iter().map(|it| (it.of.name, it.verb, it.reason.unwrap_or_default())).collect()
        };
        let row = |name: &str, verb, at: &str| (name.to_owned(), verb, format!("which Helm runs at {at}"));
        let both = || hook("migrate", "one", &["pre-install", "pre-upgrade"]);
        let all = [both(), hook("clean", "one", &["pre-delete"]), hook("check", "one", &["test"])];
        let install = told(Moment::Install, &[], &all, true);
        assert_eq!(install, [row("migrate", Verb::Create, "pre-install")]);
        assert_eq!(told(Moment::Upgrade, &all, &all, false), [], "nothing else changes");
        assert_eq!(told(Moment::Upgrade, &all, &all, true), [row("migrate", Verb::Create, "pre-upgrade")]);
        let changed = [hook("migrate", "two", &["pre-install", "pre-upgrade"])];
        assert_eq!(told(Moment::Upgrade, &all, &changed, false), [row("migrate", Verb::Update, "pre-upgrade")]);
        let late = [both(), hook("clean", "two", &["pre-delete"])];
        let rows = [row("migrate", Verb::Create, "pre-upgrade"), row("clean", Verb::Update, "pre-delete")];
        assert_eq!(told(Moment::Upgrade, &all, &late, false), rows);
        assert_eq!(told(Moment::Uninstall, &[], &all, true), [row("clean", Verb::Create, "pre-delete")]);
    }

    #[test]
    fn hooks_that_can_not_be_read_are_no_empty_list() {
        assert_eq!(read(&Value::Null).ok().map(|all| all.len()), Some(0));
        assert!(read(&json!([{ "path": 7 }])).is_err());
    }
}
