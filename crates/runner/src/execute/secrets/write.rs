//! Kubernetes Secrets that are ours: fields that we set carry our name, and nothing else is touched.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use kubernetes::ObjectRef;
use model::Timestamp;
use serde_json::{Map, Value, json};

use super::super::action::StepFailure;
use super::super::kubernetes::api::{Api, Apply};
use super::super::{Run, now};

/// When each key was written that is there now.
const WRITTEN: &str = "ferry.dev/written";
/// What Kubernetes puts into every namespace by itself.
const ALWAYS: [(&str, &str); 2] = [("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")];
/// Kinds that only tell of others.
const TOLD: [&str; 3] = ["events", "endpoints", "endpointslices"];

/// The keys of one Secret.
pub(super) type Object = BTreeMap<String, Vec<u8>>;

pub(super) struct Written {
    pub(super) changed: bool,
    pub(super) at: Timestamp,
}

/// Whose the fields are: one manager for all secrets of an install.
pub(in crate::execute) fn manager(run: &Run<'_>) -> Result<String, StepFailure> {
    let spec = run.host.dir.spec()?;
    let spec: Value = serde_json::from_slice(&spec).unwrap_or_default();
    let install = spec["install_id"].as_str().unwrap_or("install");
    Ok(format!("{}secrets-{install}", super::super::kubernetes::MANAGER_PREFIX))
}

fn secret(namespace: &str, name: &str) -> ObjectRef {
    let (version, kind) = ("v1".to_owned(), "Secret".to_owned());
    ObjectRef { group: String::new(), version, kind, namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

fn namespace_of(name: &str) -> ObjectRef {
    let (version, kind) = ("v1".to_owned(), "Namespace".to_owned());
    ObjectRef { group: String::new(), version, kind, namespace: None, name: name.to_owned() }
}

/// Whether we have set a field of an object.
fn is_ours(api: &Api, live: &Value) -> bool {
    own_fields(api, live).is_some()
}

fn own_fields<'v>(api: &Api, live: &'v Value) -> Option<&'v Value> {
    let all = live["metadata"]["managedFields"].as_array()?;
    all.iter()
        .find(|one| one["manager"] == api.manager.as_str() && one["operation"] == "Apply")
        .map(|one| &one["fieldsV1"])
}

/// Writes the keys of a Secret. A key that is as it should be keeps its time.
pub(super) async fn object(
    api: &Api,
    namespace: &str,
    name: &str,
    keys: &Object,
) -> Result<BTreeMap<String, Written>, StepFailure> {
    let of = secret(namespace, name);
    let live = api.get(&of).await.map_err(|e| e.of("read", &of.address()))?;
    if live.is_none() {
        make_namespace(api, namespace).await?;
    }
    let live = live.unwrap_or_default();
    let times = &live["metadata"]["annotations"][WRITTEN];
    let times: BTreeMap<String, Timestamp> = serde_json::from_str(times.as_str().unwrap_or("{}")).unwrap_or_default();
    let (mut data, mut done) = (Map::new(), BTreeMap::new());
    let at = now();
    for (key, value) in keys {
        let packed = B64.encode(value);
        let before = live["data"][key].as_str();
        let changed = before != Some(packed.as_str());
        let since = times.get(key).copied().filter(|_| !changed).unwrap_or(at);
        done.insert(key.clone(), Written { changed, at: since });
        data.insert(key.clone(), Value::String(packed));
    }
    let same = done.values().all(|one| !one.changed) && done.keys().eq(times.keys()) && is_ours(api, &live);
    if same {
        return Ok(done);
    }
    let written: BTreeMap<&String, Timestamp> = done.iter().map(|(key, one)| (key, one.at)).collect();
    let wanted = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace, "annotations": { WRITTEN: json!(written).to_string() } },
        "data": data,
    });
    apply(api, &of, &wanted, is_ours(api, &live)).await?;
    Ok(done)
}

async fn apply(api: &Api, of: &ObjectRef, wanted: &Value, force: bool) -> Result<(), StepFailure> {
    let kind = api.kind(of).await.map_err(|e| e.of("write", &of.address()))?;
    let Some(kind) = kind else {
        return Err(StepFailure::new("cluster_refused", format!("the cluster serves no {}", of.kind)));
    };
    let applied = api.apply(of, &kind, wanted, Apply { dry_run: false, force }).await;
    applied.map(drop).map_err(|error| match error.code() {
        409 => {
            let causes = error.causes();
            let fields: Vec<&str> = causes.iter().map(|(field, _)| field.trim_start_matches('.')).collect();
            let whose = causes.first().map(|(_, why)| why.as_str()).unwrap_or_default();
            StepFailure::new(
                "secret_conflict",
                format!(
                    "{} has {} from somebody else ({whose}): nothing was overwritten. Write the secret to another name, or delete what is there",
                    of.address(),
                    fields.join(", "),
                ),
            )
        }
        _ => error.of("write", &of.address()),
    })
}

/// A namespace that is missing is made, and carries our name.
async fn make_namespace(api: &Api, name: &str) -> Result<(), StepFailure> {
    let of = namespace_of(name);
    match api.get(&of).await {
        Ok(Some(_)) => Ok(()),
        // Who may not look has to have it made.
        Err(error) if error.code() == 403 => Ok(()),
        Err(error) => Err(error.of("read", &of.address())),
        Ok(None) => {
            // A label, so that a field of it is ours.
            let labels = json!({ "app.kubernetes.io/managed-by": "ferry" });
            let wanted =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } });
            apply(api, &of, &wanted, true).await
        }
    }
}

/// Takes a Secret away, or what is ours in it. Whether there was anything.
pub(super) async fn take_away(api: &Api, namespace: &str, name: &str) -> Result<bool, StepFailure> {
    let of = secret(namespace, name);
    let Some(live) = api.get(&of).await.map_err(|e| e.of("read", &of.address()))? else { return Ok(false) };
    let Some(own) = own_fields(api, &live) else { return Ok(false) };
    let others =
        live["data"].as_object().into_iter().flatten().filter(|(key, _)| own["f:data"][format!("f:{key}")].is_null());
    if others.count() == 0 {
        let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
        api.delete(&of, uid, "Background").await.map_err(|e| e.of("delete", &of.address()))?;
        return Ok(true);
    }
    // What we set no more, the server takes away.
    let nothing = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace } });
    apply(api, &of, &nothing, true).await?;
    Ok(true)
}

/// Deletes a namespace that we have made, once nothing is in it. What is to be said of it.
pub(super) async fn remove_namespace(api: &Api, name: &str) -> Result<Option<String>, StepFailure> {
    let of = namespace_of(name);
    let live = match api.get(&of).await {
        Ok(Some(live)) if is_ours(api, &live) => live,
        Ok(_) => return Ok(None),
        Err(error) if error.code() == 403 => return Ok(None),
        Err(error) => return Err(error.of("read", &of.address())),
    };
    let kinds = api.namespaced().await.map_err(|e| e.of("list what may be in", &of.address()))?;
    for (api_version, plural) in kinds.iter().filter(|(_, plural)| !TOLD.contains(&plural.as_str())) {
        let there = match api.list(api_version, plural, name, "").await {
            Ok(there) => there,
            // Some kinds can't be listed, and hold nothing.
            Err(error) if matches!(error.code(), 404 | 405) => continue,
            Err(error) if error.code() == 403 => {
                return Ok(Some(format!("{} stays: the runner may not see whether {plural} are in it", of.address())));
            }
            Err(error) => return Err(error.of("list what is in", &of.address())),
        };
        let mut there = there.iter().filter_map(|object| object["metadata"]["name"].as_str());
        if let Some(first) = there.find(|name| !ALWAYS.contains(&(plural.as_str(), name))) {
            return Ok(Some(format!(
                "{} stays, which was made for secrets: {plural} `{first}` is in it",
                of.address()
            )));
        }
    }
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    api.delete(&of, uid, "Background").await.map_err(|e| e.of("delete", &of.address()))?;
    Ok(Some(format!("{} is deleted: it was made for secrets, and nothing is in it", of.address())))
}
