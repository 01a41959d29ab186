//! Workloads that go on with the old value of a secret until they are restarted.

use std::collections::{BTreeMap, BTreeSet};

use model::Timestamp;
use model::secrets::SecretTarget;
use serde_json::Value;

use super::super::Run;
use super::super::kubernetes::api::{Api, selector};
use super::RESTART;
use super::write::Written;

const WORKLOADS: [(&str, &str, &str); 3] = [
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("apps/v1", "daemonsets", "DaemonSet"),
];

/// For each key of a Secret, who has containers that were started before its value was written, and go on with the one before.
pub(super) async fn of(
    run: &Run<'_>,
    api: &Api,
    written: &BTreeMap<SecretTarget, Written>,
) -> BTreeMap<SecretTarget, BTreeSet<String>> {
    let namespaces: BTreeSet<&String> = written.keys().map(|target| &target.namespace).collect();
    let mut found: BTreeMap<SecretTarget, BTreeSet<String>> = BTreeMap::new();
    for namespace in namespaces {
        let here: Vec<(&SecretTarget, &Written)> =
            written.iter().filter(|(target, _)| target.namespace == *namespace).collect();
        for (api_version, plural, kind) in WORKLOADS {
            let unknown = |why: &str| {
                run.say(
                    Some(RESTART),
                    &format!("{kind}s in {namespace} that read a changed secret are not known: {why}"),
                );
            };
            let workloads = match api.list(api_version, plural, namespace, "").await {
                Ok(workloads) => workloads,
                Err(error) => {
                    unknown(&error.message());
                    continue;
                }
            };
            for workload in &workloads {
                let fixed = fixed_at_start(&workload["spec"]["template"]["spec"]);
                let read: Vec<&(&SecretTarget, &Written)> =
                    here.iter().filter(|(target, _)| is_in(&fixed, target)).collect();
                let selected = selector(&workload["spec"]["selector"]["matchLabels"]);
                let Some(query) = selected.filter(|_| !read.is_empty()) else { continue };
                let pods = match api.list("v1", "pods", namespace, &query).await {
                    Ok(pods) => pods,
                    Err(error) => {
                        unknown(&error.message());
                        break;
                    }
                };
                let name = workload["metadata"]["name"].as_str().unwrap_or_default();
                for (target, _) in read.into_iter().filter(|(_, one)| pods.iter().any(|pod| is_older(pod, one.at))) {
                    found.entry((*target).clone()).or_default().insert(format!("{kind}/{namespace}/{name}"));
                }
            }
        }
    }
    found
}

/// Whether a container of a pod runs since before a value was written. The cluster knows no more than the second.
fn is_older(pod: &Value, written: Timestamp) -> bool {
    let containers = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let started = containers.filter_map(|it| it["state"]["running"]["startedAt"].as_str());
    let mut started = started.filter_map(|text| Timestamp::try_from(text.to_owned()).ok());
    started.any(|started| started <= written)
}

fn is_in(fixed: &BTreeSet<Fixed>, target: &SecretTarget) -> bool {
    fixed.iter().any(|(name, key)| *name == target.name && key.as_ref().is_none_or(|key| *key == target.key))
}

/// A Secret, and the key of it that is read; all keys where none is named.
type Fixed = (String, Option<String>);

/// Secrets whose values a pod takes at its start and keeps: in its environment, or mounted by a path into a volume. A whole
/// volume follows the Secret by itself.
fn fixed_at_start(pod: &Value) -> BTreeSet<Fixed> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut found = BTreeSet::new();
    let containers = [list(&pod["containers"]), list(&pod["initContainers"])].concat();
    let volumes: BTreeMap<String, Value> =
        list(&pod["volumes"]).into_iter().filter_map(|volume| Some((text(&volume["name"])?, volume))).collect();
    for container in &containers {
        let keys = list(&container["env"]).into_iter().map(|one| one["valueFrom"]["secretKeyRef"].clone());
        found.extend(keys.filter_map(|of| Some((text(&of["name"])?, text(&of["key"])))));
        let all = |name: &Value| Some((text(name)?, None));
        found.extend(list(&container["envFrom"]).iter().filter_map(|one| all(&one["secretRef"]["name"])));
        for mount in list(&container["volumeMounts"]) {
            if mount["subPath"].is_null() && mount["subPathExpr"].is_null() {
                continue;
            }
            let Some(volume) = mount["name"].as_str().and_then(|name| volumes.get(name)) else { continue };
            found.extend(all(&volume["secret"]["secretName"]));
            found.extend(list(&volume["projected"]["sources"]).iter().filter_map(|one| all(&one["secret"]["name"])));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_reads_at_the_start_is_told_from_who_follows() {
        let pod = json!({
            "volumes": [
                { "name": "whole", "secret": { "secretName": "whole" } },
                { "name": "part", "secret": { "secretName": "part" } },
                { "name": "mixed", "projected": { "sources": [{ "secret": { "name": "mixed" } }, { "configMap": {} }] } },
            ],
            "containers": [{
                "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "env", "key": "a" } } }, { "name": "B", "value": "b" }],
                "volumeMounts": [
                    { "name": "whole", "mountPath": "/a" },
                    { "name": "part", "mountPath": "/b", "subPath": "b" },
                    { "name": "mixed", "mountPath": "/c", "subPath": "c" },
                ],
            }],
            "initContainers": [{ "envFrom": [{ "secretRef": { "name": "all" } }, { "configMapRef": { "name": "x" } }] }],
        });
        let fixed = fixed_at_start(&pod);
        assert_eq!(fixed.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["all", "env", "mixed", "part"]);
        let reads = |name: &str, key: &str| {
            is_in(&fixed, &SecretTarget { namespace: "shop".into(), name: name.into(), key: key.into() })
        };
        assert!(reads("env", "a") && !reads("env", "b") && reads("all", "b") && !reads("whole", "a"));
        assert!(fixed_at_start(&Value::Null).is_empty());
    }

    #[test]
    fn a_container_keeps_the_value_of_before_its_start() {
        let written = Timestamp::try_from("2026-01-02T03:04:05.5Z".to_owned()).expect("a time");
        let pod = |state: Value| json!({ "status": { "containerStatuses": [{ "state": state }] } });
        let running = |at: &str| pod(json!({ "running": { "startedAt": at } }));
        assert!(is_older(&running("2026-01-02T03:04:05Z"), written));
        assert!(!is_older(&running("2026-01-02T03:04:06Z"), written), "it was started again");
        assert!(!is_older(&pod(json!({ "waiting": { "reason": "CreateContainerConfigError" } })), written));
        assert!(!is_older(&json!({}), written));
    }
}
