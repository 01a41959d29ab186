//! What objects would become: each is read, and applied without being kept, so that defaults and webhooks have their say.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use kubernetes::{Change, Entry, ObjectRef, Verb, ignore, normalized, rank};
use model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::action::StepFailure;
use super::AT_ONCE;
use super::api::{Api, ApiError};
use super::look;

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
    /// Paths that others may change meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<String>,
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
    /// Objects that were there already, and of nobody that we know.
    pub(crate) adopted: Vec<String>,
}

impl Compared {
    /// What a person must agree to, whatever was approved beforehand.
    pub(crate) fn ask(&mut self, ask: &mut Vec<String>) {
        let (conflicts, adopted) = (std::mem::take(&mut self.conflicts), std::mem::take(&mut self.adopted));
        if !conflicts.is_empty() {
            ask.push(format!("it takes over {}", super::plan::named(conflicts)));
        }
        if !adopted.is_empty() {
            ask.push(format!(
                "it takes over what was there already and was not deployed by this component: {}. A teardown deletes it",
                super::plan::named(adopted)
            ));
        }
    }
}

/// Who deletes objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// We delete what we have deployed.
    Us,
    /// Helm deletes what its release names, whoever has created it since, but for what says that it is kept.
    Upgrade,
    /// The same, where only the chart says what is kept.
    Uninstall,
}

/// What is compared.
pub(crate) struct Wanted<'w> {
    pub(crate) objects: Vec<Value>,
    /// Of the last deploy; those that are not wanted any more are deleted.
    pub(crate) before: &'w [Entry],
    /// As they were applied last, by address, where the server does not know that itself.
    pub(crate) manifests_before: BTreeMap<String, Value>,
    pub(crate) ignore: &'w [String],
    /// Who makes namespaces for this install's secrets, where it matters whose an object is.
    pub(crate) secrets_manager: Option<String>,
    /// The marks by which an object is known as ours: by its field manager or by its annotations.
    pub(crate) release: Option<(&'w str, &'w str)>,
}

/// Objects in the order they are applied.
pub(crate) fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_cached_key(|object| ObjectRef::of(object).map(|of| rank(&of)));
    objects
}

/// Gives each object its namespace, or takes it away, as its kind wants it. Kinds that come with the same manifest are known by
/// their definition.
pub(crate) async fn placed(api: &Api, objects: &mut [Value], namespace: &str) -> Result<(), StepFailure> {
    let definitions: BTreeMap<(String, String), bool> = objects.iter().filter_map(defined).collect();
    for object in objects {
        let Some(of) = ObjectRef::of(object) else { continue };
        let known = api.served(&of).await.map_err(|e| e.of("look up the kind of", &of.address()))?;
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

pub(super) fn no_kind(of: &ObjectRef) -> StepFailure {
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
    let looks = wanted.objects.iter().map(|object| look::one(api, wanted, &around, object));
    let found: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).collect().await;
    let found: Vec<look::Found> = found.into_iter().collect::<Result<_, _>>()?;
    let mut gone: Vec<&Entry> =
        wanted.before.iter().filter(|entry| !names.iter().any(|of| of.is_same(&entry.of))).collect();
    gone.sort_by_cached_key(|entry| std::cmp::Reverse(rank(&entry.of)));
    let by = if wanted.release.is_some() { By::Upgrade } else { By::Us };
    let (objects, changes) = deletions(api, gone, by, "because it is no longer in the configuration").await?;
    // Helm applies a chart as a whole, or not at all.
    let upgrades = wanted.release.is_some()
        && found.iter().map(|one| &one.change).chain(&changes).any(|change| change.verb != Verb::Nothing);
    let mut compared = Compared::default();
    for one in found {
        compared.objects.push(one.planned);
        compared.changes.push(one.whole.filter(|_| upgrades).unwrap_or(one.change));
        compared.conflicts.extend(one.conflicts);
        compared.adopted.extend(one.adopted);
    }
    compared.objects.extend(objects);
    compared.changes.extend(changes);
    Ok(compared)
}

/// What would be deleted of these objects.
pub(crate) async fn deletions(
    api: &Api,
    entries: Vec<&Entry>,
    by: By,
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
        let kept = by != By::Uninstall && live["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        let ours = by != By::Us || uid == entry.uid || is_managed(api, &live);
        let shared = by == By::Us && managers(&live).any(|name| name != api.manager && is_component(name));
        let (act, verb, reason) = match (kept, ours, shared) {
            (true, ..) => (Act::Forget, Verb::Forget, "because it says `helm.sh/resource-policy: keep`"),
            (false, true, false) => (Act::Delete, Verb::Delete, why),
            (false, true, true) => (Act::Forget, Verb::Forget, "because another component deploys it, too"),
            (false, false, _) => (
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
        let planned = PlannedObject {
            of: entry.of.clone(),
            act,
            object: Value::Null,
            found: digest(&live, &[]),
            uid: uid.to_owned(),
            ignored: Vec::new(),
        };
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

/// Those who have applied an object.
fn managers(live: &Value) -> impl Iterator<Item = &str> {
    let fields = live["metadata"]["managedFields"].as_array().into_iter().flatten();
    fields.filter(|one| one["operation"] == "Apply").filter_map(|one| one["manager"].as_str())
}

/// Whether a manager is a component that Ferry deploys.
pub(super) fn is_component(manager: &str) -> bool {
    manager.starts_with(super::MANAGER_PREFIX)
}

pub(super) fn is_managed(api: &Api, live: &Value) -> bool {
    managers(live).any(|name| name == api.manager)
}

/// Whether a sync of this install's secrets has made a namespace: it is no stranger's.
pub(super) fn is_for_secrets(wanted: &Wanted<'_>, of: &ObjectRef, live: &Value) -> bool {
    of.kind == "Namespace"
        && of.group.is_empty()
        && managers(live).any(|name| Some(name) == wanted.secrets_manager.as_deref())
}

/// What else matters for an object.
pub(super) struct Around {
    /// Kinds that the same apply brings.
    pub(super) kinds: BTreeSet<(String, String)>,
    pub(super) namespaces: BTreeSet<String>,
    /// Workloads whose replicas an autoscaler sets.
    pub(super) scaled: BTreeSet<(String, String, String)>,
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

/// Names what an object says, whatever its status is and others may change.
pub(crate) fn digest(live: &Value, ignored: &[String]) -> String {
    let mut seen = normalized(live);
    ignored.iter().for_each(|path| ignore(&mut seen, path));
    Digest::of(seen.to_string().as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_for_the_secrets_of_another_install_is_a_strangers() {
        let live = |manager: &str| {
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": { "name": "shop", "managedFields": [{ "manager": manager, "operation": "Apply" }] },
            })
        };
        let of = ObjectRef::of(&live("x")).expect("a name");
        let mut wanted = Wanted {
            objects: Vec::new(),
            before: &[],
            manifests_before: BTreeMap::new(),
            ignore: &[],
            secrets_manager: Some("ferry-secrets-one".into()),
            release: None,
        };
        assert!(is_for_secrets(&wanted, &of, &live("ferry-secrets-one")));
        assert!(!is_for_secrets(&wanted, &of, &live("ferry-secrets-two")));
        wanted.secrets_manager = None;
        assert!(!is_for_secrets(&wanted, &of, &live("ferry-secrets-one")));
    }
}
