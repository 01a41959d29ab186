//! Workloads that go on with the old value of a secret until they are restarted.

use std::collections::{BTreeMap, BTreeSet};

use model::secrets::SecretTarget;
use serde_json::Value;

use super::super::Run;
use super::super::kubernetes::api::Api;
use super::RESTART;
use super::write::Written;

const WORKLOADS: [(&str, &str, &str); 3] = [
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("apps/v1", "daemonsets", "DaemonSet"),
];

/// For each Secret that had another value before, who has read it at its start.
pub(super) async fn of(
    run: &Run<'_>,
    api: &Api,
    written: &BTreeMap<SecretTarget, Written>,
) -> BTreeMap<(String, String), Vec<String>> {
    let changed = written.iter().filter(|(_, one)| one.changed && one.was_there);
    let changed: BTreeSet<(String, String)> =
        changed.map(|(target, _)| (target.namespace.clone(), target.name.clone())).collect();
    let namespaces: BTreeSet<&String> = changed.iter().map(|(namespace, _)| namespace).collect();
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for namespace in namespaces {
        for (api_version, plural, kind) in WORKLOADS {
            let workloads = match api.list(api_version, plural, namespace, "").await {
                Ok(workloads) => workloads,
                Err(error) => {
                    let why = error.message();
                    run.say(
                        Some(RESTART),
                        &format!("{kind}s in {namespace} that read a changed secret are not known: {why}"),
                    );
                    continue;
                }
            };
            for workload in &workloads {
                let name = workload["metadata"]["name"].as_str().unwrap_or_default();
                for secret in fixed_at_start(&workload["spec"]["template"]["spec"]) {
                    let of = (namespace.clone(), secret);
                    if changed.contains(&of) {
                        found.entry(of).or_default().push(format!("{kind}/{namespace}/{name}"));
                    }
                }
            }
        }
    }
    found
}

/// Secrets whose values a pod takes at its start and keeps: in its environment, or mounted by a path into a volume. A whole
/// volume follows the Secret by itself.
fn fixed_at_start(pod: &Value) -> BTreeSet<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut found = BTreeSet::new();
    let containers = [list(&pod["containers"]), list(&pod["initContainers"])].concat();
    let volumes: BTreeMap<String, Value> =
        list(&pod["volumes"]).into_iter().filter_map(|volume| Some((text(&volume["name"])?, volume))).collect();
    for container in &containers {
        found.extend(list(&container["env"]).iter().filter_map(|one| text(&one["valueFrom"]["secretKeyRef"]["name"])));
        found.extend(list(&container["envFrom"]).iter().filter_map(|one| text(&one["secretRef"]["name"])));
        for mount in list(&container["volumeMounts"]) {
            if mount["subPath"].is_null() && mount["subPathExpr"].is_null() {
                continue;
            }
            let Some(volume) = mount["name"].as_str().and_then(|name| volumes.get(name)) else { continue };
            found.extend(text(&volume["secret"]["secretName"]));
            found.extend(list(&volume["projected"]["sources"]).iter().filter_map(|one| text(&one["secret"]["name"])));
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
        assert_eq!(fixed_at_start(&pod).into_iter().collect::<Vec<_>>(), ["all", "env", "mixed", "part"]);
        assert!(fixed_at_start(&Value::Null).is_empty());
    }
}
