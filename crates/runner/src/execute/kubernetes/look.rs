//! What one object would become: it is read, and applied without being kept.

use kubernetes::{Change, ObjectRef, Verb, ignore, keep, normalized, removed_since};
use model::Digest;
use serde_json::{Value, json};

use super::super::action::StepFailure;
use super::api::{Api, ApiError, Apply, Kind};
use super::compare::{Act, Around, PlannedObject, Wanted, digest, is_component, is_for_secrets, is_managed, no_kind};

/// Where an autoscaler writes.
const REPLICAS: &str = "spec.replicas";

/// What was found of an object.
pub(super) struct Found {
    pub(super) planned: PlannedObject,
    pub(super) change: Change,
    /// All that Helm changes, once it applies anything: what others may change is set back, too.
    pub(super) whole: Option<Change>,
    pub(super) conflicts: Vec<String>,
    pub(super) adopted: Option<String>,
}

impl Found {
    fn new(planned: PlannedObject, change: Change) -> Self {
        Self { planned, change, whole: None, conflicts: Vec::new(), adopted: None }
    }
}

/// An object, as it is asked for and as it is.
struct Look<'l> {
    wanted: &'l Wanted<'l>,
    of: ObjectRef,
    kind: Kind,
    object: Value,
    live: Option<Value>,
    /// Paths that others may change.
    ignored: Vec<String>,
}

pub(super) async fn one(api: &Api, wanted: &Wanted<'_>, around: &Around, object: &Value) -> Result<Found, StepFailure> {
    let of = ObjectRef::of(object).ok_or_else(|| StepFailure::new("bad_manifest", "an object has no name"))?;
    let address = of.address();
    let kind = api.kind(&of).await.map_err(|e| e.of("look up the kind of", &address))?;
    let live = api.get(&of).await.map_err(|e| e.of("read", &address))?;
    let Some(kind) = kind else {
        if !around.kinds.contains(&(of.group.clone(), of.kind.clone())) {
            return Err(no_kind(&of));
        }
        return Ok(unchecked(
            of,
            object,
            live.as_ref(),
            "its kind comes with this apply, so the cluster has not checked it",
        ));
    };
    if let Some(holders) = live.as_ref().filter(|live| live["metadata"]["deletionTimestamp"].is_string()) {
        let holders = holders["metadata"]["finalizers"].to_string();
        let text = format!(
            "{address} is being deleted, and its finalizers {holders} keep it: wait, or mend what they wait for, then plan again"
        );
        return Err(StepFailure::new("object_terminating", text));
    }
    let mut ignored: Vec<String> =
        wanted.ignore.iter().filter_map(|rule| about(rule, &of)).map(str::to_owned).collect();
    let place = (of.kind.clone(), of.namespace.clone().unwrap_or_default(), of.name.clone());
    if around.scaled.contains(&place) && object["spec"]["replicas"].is_number() {
        ignored.push(REPLICAS.to_owned());
    }
    let look = Look { wanted, of, kind, object: object.clone(), live, ignored };
    look.take(api, around).await
}

impl Look<'_> {
    fn is_release(&self) -> bool {
        self.wanted.release.is_some()
    }

    async fn take(mut self, api: &Api, around: &Around) -> Result<Found, StepFailure> {
        // Helm applies what it renders; elsewhere what others may change stays as they left it.
        if let Some(live) = self.live.as_ref().filter(|_| self.wanted.release.is_none()) {
            for path in &self.ignored {
                keep(&mut self.object, live, path);
            }
        }
        let (after, conflicts) = match self.dry_run(api).await {
            Ok(after) => after,
            Err(error) => return self.refused(api, &error, around).await,
        };
        Ok(self.changed(api, after, conflicts))
    }

    /// The object as it would be, and who loses fields.
    async fn dry_run(&self, api: &Api) -> Result<(Value, Vec<String>), ApiError> {
        let how = Apply { dry_run: true, force: false };
        match api.apply(&self.of, &self.kind, &self.object, how).await {
            Err(error) if error.code() == 409 && self.live.is_some() => {
                let causes = error.causes();
                // What an earlier helm has set is the release's own.
                let others = causes.iter().filter(|(_, message)| !self.is_release() || manager(message) != "helm");
                let address = self.of.address();
                let conflicts = others.map(|(field, message)| conflict(&address, field, message)).collect();
                let forced = api.apply(&self.of, &self.kind, &self.object, Apply { force: true, ..how }).await;
                forced.map(|after| (after, conflicts))
            }
            applied => applied.map(|after| (after, Vec::new())),
        }
    }

    fn planned(&self, act: Act) -> PlannedObject {
        let uid = self.live.as_ref().and_then(|live| live["metadata"]["uid"].as_str());
        PlannedObject {
            of: self.of.clone(),
            act,
            object: self.object.clone(),
            found: self.live.as_ref().map(|live| digest(live, &self.ignored)).unwrap_or_default(),
            uid: uid.unwrap_or_default().to_owned(),
            ignored: self.ignored.clone(),
        }
    }

    fn changed(self, api: &Api, mut after: Value, conflicts: Vec<String>) -> Found {
        let was = self.wanted.manifests_before.get(&self.of.address());
        if let Some(was) = was {
            removed_since(was, &self.object, &mut after);
        }
        let seen = |value: &Value| {
            let mut seen = normalized(value);
            self.ignored.iter().for_each(|path| ignore(&mut seen, path));
            seen
        };
        let same = self.live.as_ref().map(&seen) == Some(seen(&after));
        let rendered_anew = self.is_release() && was.is_some_and(|was| *was != self.object);
        let (verb, act) = match (&self.live, same) {
            (None, _) => (Verb::Create, Act::Apply),
            (Some(live), true) if !self.is_release() && !is_managed(api, live) => (Verb::Nothing, Act::Apply),
            (Some(_), true) if rendered_anew => (Verb::Update, Act::Apply),
            (Some(_), true) => (Verb::Nothing, Act::Keep),
            (Some(_), false) => (Verb::Update, Act::Apply),
        };
        let reason = match (verb, same, conflicts.is_empty()) {
            (Verb::Update, true, _) => Some("because the chart renders it differently".to_owned()),
            (Verb::Update, false, false) => Some(format!("which takes over {}", conflicts.join(", "))),
            _ => None,
        };
        let is_known = self.wanted.before.iter().any(|entry| entry.of.is_same(&self.of));
        let is_adopted = self.live.as_ref().is_some_and(|live| {
            !self.is_release() && !is_known && !is_managed(api, live) && !is_for_secrets(self.wanted, &self.of, live)
        });
        // Of what is new, defaults would hide what was asked for.
        let shown = |value: &Value| if verb == Verb::Create { self.object.clone() } else { seen(value) };
        let change = |before: Value, after: Value, verb: Verb, reason: Option<String>| Change {
            of: self.of.clone(),
            verb,
            before,
            after,
            reason,
            fixed: Vec::new(),
        };
        let planned = self.planned(act);
        let before = self.live.as_ref().map(&seen).unwrap_or_default();
        let mut found = Found::new(planned, change(before, shown(&after), verb, reason.clone()));
        if let Some(live) = self.live.as_ref().filter(|_| self.is_release() && !self.ignored.is_empty()) {
            let (before, after) = (normalized(live), normalized(&after));
            let back = || "which Helm sets back, since it applies the whole chart".to_owned();
            found.whole =
                (before != after).then(|| change(before, after, Verb::Update, reason.or_else(|| Some(back()))));
        }
        if verb == Verb::Update {
            found.conflicts = conflicts;
        }
        found.adopted = is_adopted.then(|| self.of.address());
        found
    }

    /// What the refusal of a dry run means.
    async fn refused(self, api: &Api, error: &ApiError, around: &Around) -> Result<Found, StepFailure> {
        let address = self.of.address();
        let namespace = self.of.namespace.as_deref().unwrap_or_default();
        if error.is_missing() && self.live.is_none() && !namespace.is_empty() {
            if around.namespaces.contains(namespace) {
                let why = "its namespace comes with this apply, so the cluster has not checked it";
                return Ok(unchecked(self.of, &self.object, None, why));
            }
            let text = format!(
                "the namespace `{namespace}` of {address} does not exist: add a Namespace to the manifest, or create it"
            );
            return Err(StepFailure::new("no_namespace", text));
        }
        let Some(fixed) = fixed_fields(error).filter(|_| self.live.is_some()) else {
            return Err(error.of("apply", &address));
        };
        let names = fixed.join(", ");
        if self.is_release() {
            let text = format!(
                "{names} of {address} can't be changed in place, and Helm does not replace objects: change the chart, or delete the object first"
            );
            return Err(StepFailure::new("immutable_field", text));
        }
        self.can_be_created(api).await?;
        let reason = format!("because {names} can't be changed: it is deleted and created again");
        let before = self.live.clone().unwrap_or_default();
        let planned = self.planned(Act::Replace);
        let change =
            Change { of: self.of, verb: Verb::Replace, before, after: self.object, reason: Some(reason), fixed };
        Ok(Found::new(planned, change))
    }

    /// Tries the object under another name: what can't be created may not cost what is there.
    async fn can_be_created(&self, api: &Api) -> Result<(), StepFailure> {
        let mut other = self.object.clone();
        let mut of = self.of.clone();
        of.name = format!("ferry-{}", &Digest::of(of.name.as_bytes()).to_string()[7..19]);
        other["metadata"]["name"] = json!(of.name);
        let Err(error) = api.apply(&of, &self.kind, &other, Apply { dry_run: true, force: true }).await else {
            return Ok(());
        };
        // What is said of the name, or of what the old one holds until it is gone, does not count.
        let causes = error.causes();
        let is_about_old =
            |(field, message): &(String, String)| field == "metadata.name" || message.contains("already allocated");
        let matters = match error.code() {
            400 | 422 => causes.is_empty() || !causes.iter().all(is_about_old),
            _ => is_admission(&error.message()),
        };
        let address = self.of.address();
        if matters { Err(error.of("create", &format!("{address} anew, as its change needs,"))) } else { Ok(()) }
    }
}

/// Whether somebody else than the API server has refused.
fn is_admission(message: &str) -> bool {
    message.starts_with("admission webhook") || message.contains("ValidatingAdmissionPolicy")
}

/// The fields that can't be changed, where nothing else was refused.
fn fixed_fields(error: &ApiError) -> Option<Vec<String>> {
    let is_fixed = |text: &str| {
        let all = [
            "immutable",
            "may not be changed",
            "may not change once set",
            "updates to statefulset spec",
            "cannot be changed",
        ];
        all.iter()
            .chain(&["can not be changed", "cannot change", "updates to parameters are forbidden"])
            .any(|known| text.contains(known))
    };
    let causes = error.causes();
    let all = error.code() == 422 && !is_admission(&error.message()) && !causes.is_empty();
    (all && causes.iter().all(|(_, message)| is_fixed(message)))
        .then(|| causes.into_iter().map(|(field, _)| field).collect())
}

/// The place that a rule names in an object, if it is about it: all objects, or those of `Deployment`, `Deployment/web`, or the whole
/// address.
fn about<'r>(rule: &'r str, of: &ObjectRef) -> Option<&'r str> {
    match rule.split_once(": ") {
        None => Some(rule),
        Some((object, path)) => {
            let is_meant = object == of.kind || object == format!("{}/{}", of.kind, of.name) || object == of.address();
            is_meant.then_some(path)
        }
    }
}

fn unchecked(of: ObjectRef, object: &Value, live: Option<&Value>, why: &str) -> Found {
    let uid = live.and_then(|live| live["metadata"]["uid"].as_str()).unwrap_or_default().to_owned();
    let planned = PlannedObject {
        of: of.clone(),
        act: Act::Apply,
        object: object.clone(),
        found: live.map(|live| digest(live, &[])).unwrap_or_default(),
        uid,
        ignored: Vec::new(),
    };
    let change = Change {
        of,
        verb: if live.is_some() { Verb::Update } else { Verb::Create },
        before: live.map(normalized).unwrap_or_default(),
        after: object.clone(),
        reason: Some(why.to_owned()),
        fixed: Vec::new(),
    };
    Found::new(planned, change)
}

/// A conflict about a field, in words.
fn conflict(address: &str, field: &str, message: &str) -> String {
    let who = manager(message);
    let who = if is_component(who) { format!("another component (`{who}`)") } else { format!("`{who}`") };
    format!("{} of {address} from {who}", field.trim_start_matches('.'))
}

/// Who a conflict is with: `conflict with "kubectl-edit" using apps/v1`.
fn manager(message: &str) -> &str {
    message.split('"').nth(1).unwrap_or("another manager")
}
