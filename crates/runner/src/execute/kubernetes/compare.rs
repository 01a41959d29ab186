//! What objects would become: each is read, and applied without being kept, so that defaults and webhooks have their say.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use kubernetes::{Change, Entry, ObjectRef, Verb, ignore, keep, normalized, rank, removed_since};
use model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::action::StepFailure;
use super::api::{Api, ApiError, Apply};
use super::{AT_ONCE, MANAGER};

/// One object of an approved plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlannedObject {
    pub(crate) of: ObjectRef,
    pub(crate) act: Act,
    /// As it is applied; null where it is deleted.
    pub(crate) object: Value,
    /// The object that was there, by its content; empty where there was none.
    pub(crate) found: String,
    #[serde(default)]
    pub(crate) uid: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    Apply,
    /// Deleted and created.
    Replace,
    Delete,
    /// It is as it should be.
    Keep,
    /// Left alone, and no longer known.
    Forget,
}

/// What a comparison has found.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) objects: Vec<PlannedObject>,
    pub(crate) changes: Vec<Change>,
    /// Fields that others manage and that would be taken over.
    pub(crate) conflicts: Vec<String>,
}

/// What is compared.
pub(crate) struct Wanted<'w> {
    pub(crate) objects: Vec<Value>,
    /// Of the last deploy; those that are not wanted any more are deleted.
    pub(crate) before: &'w [Entry],
    /// As they were applied last, by address, where the server does not know that itself.
    pub(crate) manifests_before: BTreeMap<String, Value>,
    pub(crate) ignore: &'w [String],
    /// The marks by which an object is known as ours: by its field manager or by its annotations.
    pub(crate) release: Option<(&'w str, &'w str)>,
}

/// Objects in the order they are applied.
pub(crate) fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(|object| rank(object["kind"].as_str().unwrap_or_default()));
    objects
}

/// Gives each object its namespace, or takes it away, as its kind wants it. Kinds that come with the same manifest are known by
/// their definition.
pub(crate) async fn placed(api: &Api, objects: &mut [Value], namespace: &str) -> Result<(), StepFailure> {
    let definitions: BTreeMap<(String, String), bool> = objects.iter().filter_map(defined).collect();
    for object in objects {
        let Some(of) = ObjectRef::of(object) else { continue };
        let known = api.kind(&of).await.map_err(|e| e.of("look up the kind of", &of.address()))?;
        let namespaced = match known {
            Some(kind) => kind.namespaced,
            None => *definitions.get(&(of.group.clone(), of.kind.clone())).ok_or_else(|| no_kind(&of))?,
        };
        let Some(metadata) = object["metadata"].as_object_mut() else { continue };
        match namespaced {
            true => drop(metadata.entry("namespace").or_insert_with(|| json!(namespace))),
            false => drop(metadata.remove("namespace")),
        }
    }
    Ok(())
}

fn no_kind(of: &ObjectRef) -> StepFailure {
    let text = format!(
        "the cluster knows no kind `{}` of {}, which {} needs: is its CustomResourceDefinition installed?",
        of.kind,
        of.api_version(),
        of.address()
    );
    StepFailure::new("unknown_kind", text)
}

/// The group and kind that a definition brings, and whether it has namespaces.
fn defined(object: &Value) -> Option<((String, String), bool)> {
    let spec = ObjectRef::of(object).filter(ObjectRef::is_crd).map(|_| &object["spec"])?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(((text(&spec["group"])?, text(&spec["names"]["kind"])?), spec["scope"] != "Cluster"))
}

/// Compares what is wanted with what is there.
pub(crate) async fn compare(api: &Api, wanted: &Wanted<'_>) -> Result<Compared, StepFailure> {
    let names: Vec<ObjectRef> = wanted.objects.iter().filter_map(ObjectRef::of).collect();
    let around = Around {
        kinds: wanted.objects.iter().filter_map(defined).map(|(kind, _)| kind).collect(),
        // Helm creates the namespace of a release.
        namespaces: names
            .iter()
            .filter(|of| of.is_namespace())
            .map(|of| of.name.clone())
            .chain(wanted.release.map(|(_, namespace)| namespace.to_owned()))
            .collect(),
        scaled: scaled(api, &wanted.objects).await?,
    };
    let looks = wanted.objects.iter().map(|object| one(api, wanted, &around, object));
    let found: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).collect().await;
    let mut compared = Compared::default();
    for found in found {
        let (planned, change, conflicts) = found?;
        compared.objects.push(planned);
        compared.changes.push(change);
        compared.conflicts.extend(conflicts);
    }
    let mut gone: Vec<&Entry> =
        wanted.before.iter().filter(|entry| !names.iter().any(|of| of.is_same(&entry.of))).collect();
    gone.sort_by_cached_key(|entry| std::cmp::Reverse(rank(&entry.of.kind)));
    let (objects, changes) =
        deletions(api, gone, wanted.release, "because it is no longer in the configuration").await?;
    compared.objects.extend(objects);
    compared.changes.extend(changes);
    Ok(compared)
}

/// What would be deleted of these objects.
pub(crate) async fn deletions(
    api: &Api,
    entries: Vec<&Entry>,
    release: Option<(&str, &str)>,
    why: &str,
) -> Result<(Vec<PlannedObject>, Vec<Change>), StepFailure> {
    let looks = entries.into_iter().map(|entry| async move {
        let live = api.get(&entry.of).await.map_err(|e| e.of("read", &entry.of.address()))?;
        Ok::<_, StepFailure>((entry, live))
    });
    let found: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).collect().await;
    let (mut objects, mut changes) = (Vec::new(), Vec::new());
    for found in found {
        let (entry, live) = found?;
        let Some(live) = live else { continue };
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        let kept = live["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        // Helm deletes what its release names, whoever has created it since.
        let ours = release.is_some() || uid == entry.uid || is_managed(&live);
        let (act, verb, reason) = match (kept, ours) {
            (true, _) => (Act::Forget, Verb::Forget, "because the chart says `resource-policy: keep`"),
            (false, true) => (Act::Delete, Verb::Delete, why),
            (false, false) => (
                Act::Forget,
                Verb::Forget,
                "because it is not the object that was deployed: somebody has created another one",
            ),
        };
        let reason = match (verb, entry.of.is_namespace(), entry.of.is_crd()) {
            (Verb::Delete, true, _) => format!("{reason}, with everything in it"),
            (Verb::Delete, _, true) => format!("{reason}, with every object of its kind"),
            _ => reason.to_owned(),
        };
        let planned =
            PlannedObject { of: entry.of.clone(), act, object: Value::Null, found: digest(&live), uid: uid.to_owned() };
        objects.push(planned);
        changes.push(Change {
            of: entry.of.clone(),
            verb,
            before: live,
            after: Value::Null,
            reason: Some(reason).filter(|reason| !reason.is_empty()),
            fixed: Vec::new(),
        });
    }
    Ok((objects, changes))
}

fn is_managed(live: &Value) -> bool {
    let fields = live["metadata"]["managedFields"].as_array();
    fields.is_some_and(|all| all.iter().any(|one| one["manager"] == MANAGER && one["operation"] == "Apply"))
}

/// What else matters for an object.
struct Around {
    /// Kinds that the same apply brings.
    kinds: BTreeSet<(String, String)>,
    namespaces: BTreeSet<String>,
    /// Workloads whose replicas an autoscaler sets.
    scaled: BTreeSet<(String, String, String)>,
}

/// Workloads that a HorizontalPodAutoscaler scales, there or wanted: kind, namespace, name.
async fn scaled(api: &Api, objects: &[Value]) -> Result<BTreeSet<(String, String, String)>, StepFailure> {
    let is_scalable = |object: &&Value| object["spec"]["replicas"].is_number();
    let namespaces: BTreeSet<&str> =
        objects.iter().filter(is_scalable).filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    let mut scalers: Vec<Value> =
        objects.iter().filter(|object| object["kind"] == "HorizontalPodAutoscaler").cloned().collect();
    for namespace in namespaces {
        let found = api.list("autoscaling/v2", "horizontalpodautoscalers", namespace, "").await;
        match found {
            Ok(found) => scalers.extend(found),
            // Who may not read them has none that matter here; a drift of replicas is shown then.
            Err(ApiError::Refused(status)) if status.code == 403 => {}
            Err(error) => return Err(error.of("list", "HorizontalPodAutoscalers")),
        }
    }
    let of = |scaler: &Value| {
        let target = &scaler["spec"]["scaleTargetRef"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some((text(&target["kind"])?, text(&scaler["metadata"]["namespace"])?, text(&target["name"])?))
    };
    Ok(scalers.iter().filter_map(of).collect())
}

type Found = (PlannedObject, Change, Vec<String>);

async fn one(api: &Api, wanted: &Wanted<'_>, around: &Around, object: &Value) -> Result<Found, StepFailure> {
    let of = ObjectRef::of(object).ok_or_else(|| StepFailure::new("bad_manifest", "an object has no name"))?;
    let address = of.address();
    let kind = api.kind(&of).await.map_err(|e| e.of("look up the kind of", &address))?;
    let Some(kind) = kind else {
        if !around.kinds.contains(&(of.group.clone(), of.kind.clone())) {
            return Err(no_kind(&of));
        }
        return Ok(unchecked(of, object, "its kind comes with this apply, so the cluster has not checked it"));
    };
    let live = api.get(&of).await.map_err(|e| e.of("read", &address))?;
    let mut object = object.clone();
    if let Some(live) = &live {
        let scaled =
            around.scaled.contains(&(of.kind.clone(), of.namespace.clone().unwrap_or_default(), of.name.clone()));
        if scaled && live["spec"]["replicas"].is_number() && object["spec"]["replicas"].is_number() {
            object["spec"]["replicas"] = live["spec"]["replicas"].clone();
        }
        // Helm applies what it renders; elsewhere what others may change stays as they left it.
        for rule in wanted.ignore.iter().filter(|_| wanted.release.is_none()) {
            if let Some(path) = about(rule, &of) {
                keep(&mut object, live, path);
            }
        }
        if live["metadata"]["deletionTimestamp"].is_string() {
            let holders = live["metadata"]["finalizers"].to_string();
            let text = format!(
                "{address} is being deleted, and its finalizers {holders} keep it: wait, or mend what they wait for, then plan again"
            );
            return Err(StepFailure::new("object_terminating", text));
        }
    }
    let how = Apply { dry_run: true, force: false };
    let (mut conflicts, mut applied) = (Vec::new(), api.apply(&of, &kind, &object, how).await);
    if let Err(error) = &applied
        && error.code() == 409
        && live.is_some()
    {
        let causes = error.causes();
        // What an earlier helm has set is the release's own.
        let others = causes.iter().filter(|(_, message)| wanted.release.is_none() || manager(message) != "helm");
        conflicts = others.map(|(field, message)| conflict(&address, field, message)).collect();
        applied = api.apply(&of, &kind, &object, Apply { force: true, ..how }).await;
    }
    let after = match applied {
        Ok(after) => after,
        Err(error) => match refused(&of, &error, live.as_ref(), around) {
            Refused::Unchecked(why) => return Ok(unchecked(of, &object, why)),
            Refused::Fixed(fixed) if wanted.release.is_some() => {
                let names = if fixed.is_empty() { "a field".to_owned() } else { fixed.join(", ") };
                let text = format!(
                    "{names} of {address} can't be changed in place, and Helm does not replace objects: change the chart, or delete the object first"
                );
                return Err(StepFailure::new("immutable_field", text));
            }
            Refused::Fixed(fixed) => return Ok(replaced(of, object, live.unwrap_or_default(), fixed)),
            Refused::Error(failure) => return Err(failure),
        },
    };
    Ok(changed(wanted, of, object, live, after, conflicts))
}

fn changed(
    wanted: &Wanted<'_>,
    of: ObjectRef,
    object: Value,
    live: Option<Value>,
    mut after: Value,
    conflicts: Vec<String>,
) -> Found {
    if let Some(was) = wanted.manifests_before.get(&of.address()) {
        removed_since(was, &object, &mut after);
    }
    let seen = |value: &Value| {
        let mut seen = normalized(value);
        for path in wanted.ignore.iter().filter_map(|rule| about(rule, &of)) {
            ignore(&mut seen, path);
        }
        seen
    };
    let (before_seen, after_seen) = (live.as_ref().map(&seen), seen(&after));
    let same = before_seen.as_ref() == Some(&after_seen);
    let (verb, act) = match (&live, same) {
        (None, _) => (Verb::Create, Act::Apply),
        (Some(live), true) if wanted.release.is_none() && !is_managed(live) => (Verb::Nothing, Act::Apply),
        (Some(_), true) => (Verb::Nothing, Act::Keep),
        (Some(_), false) => (Verb::Update, Act::Apply),
    };
    let reason =
        (!conflicts.is_empty() && verb == Verb::Update).then(|| format!("which takes over {}", conflicts.join(", ")));
    let conflicts = if verb == Verb::Update { conflicts } else { Vec::new() };
    let asked = if verb == Verb::Create { object.clone() } else { Value::Null };
    let planned = PlannedObject {
        act,
        found: live.as_ref().map(digest).unwrap_or_default(),
        uid: live.as_ref().and_then(|live| live["metadata"]["uid"].as_str()).unwrap_or_default().to_owned(),
        object,
        of: of.clone(),
    };
    let change = Change {
        of,
        verb,
        before: before_seen.unwrap_or_default(),
        // Of what is new, defaults would hide what was asked for.
        after: if verb == Verb::Create { asked } else { after_seen },
        reason,
        fixed: Vec::new(),
    };
    (planned, change, conflicts)
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

fn unchecked(of: ObjectRef, object: &Value, why: &str) -> Found {
    let planned = PlannedObject {
        of: of.clone(),
        act: Act::Apply,
        object: object.clone(),
        found: String::new(),
        uid: String::new(),
    };
    let change = Change {
        of,
        verb: Verb::Create,
        before: Value::Null,
        after: object.clone(),
        reason: Some(why.to_owned()),
        fixed: Vec::new(),
    };
    (planned, change, Vec::new())
}

fn replaced(of: ObjectRef, object: Value, live: Value, fixed: Vec<String>) -> Found {
    let planned = PlannedObject {
        of: of.clone(),
        act: Act::Replace,
        found: digest(&live),
        uid: live["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
        object: object.clone(),
    };
    let names = if fixed.is_empty() { "one of its fields".to_owned() } else { fixed.join(", ") };
    let reason = format!("because {names} can't be changed: it is deleted and created again");
    let change = Change { of, verb: Verb::Replace, before: live, after: object, reason: Some(reason), fixed };
    (planned, change, Vec::new())
}

enum Refused {
    Unchecked(&'static str),
    Fixed(Vec<String>),
    Error(StepFailure),
}

/// What the refusal of a dry run means.
fn refused(of: &ObjectRef, error: &ApiError, live: Option<&Value>, around: &Around) -> Refused {
    let message = error.message();
    let namespace = of.namespace.as_deref().unwrap_or_default();
    if error.is_missing() && live.is_none() && !namespace.is_empty() {
        if around.namespaces.contains(namespace) {
            return Refused::Unchecked("its namespace comes with this apply, so the cluster has not checked it");
        }
        let text = format!(
            "the namespace `{namespace}` of {} does not exist: add a Namespace to the manifest, or create it",
            of.address()
        );
        return Refused::Error(StepFailure::new("no_namespace", text));
    }
    let is_fixed = |text: &str| {
        [
            "immutable",
            "may not be changed",
            "may not change once set",
            "updates to statefulset spec",
            "cannot be changed",
            "can not be changed",
        ]
        .iter()
        .any(|known| text.contains(known))
    };
    if live.is_some() && matches!(error.code(), 422 | 403 | 400) && is_fixed(&message) {
        let causes = error.causes().into_iter().filter(|(_, message)| is_fixed(message));
        return Refused::Fixed(causes.map(|(field, _)| field).collect());
    }
    Refused::Error(error.of("apply", &of.address()))
}

/// A conflict about a field, in words.
fn conflict(address: &str, field: &str, message: &str) -> String {
    let who = manager(message);
    format!("{} of {address} from `{who}`", field.trim_start_matches('.'))
}

/// Names what an object says, whatever its status is.
pub(crate) fn digest(live: &Value) -> String {
    Digest::of(normalized(live).to_string().as_bytes()).to_string()
}

/// Who a conflict is with: `conflict with "kubectl-edit" using apps/v1`.
fn manager(message: &str) -> &str {
    message.split('"').nth(1).unwrap_or("another manager")
}
