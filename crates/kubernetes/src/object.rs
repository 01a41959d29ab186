//! What names an object, and in which order objects are applied.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names one object of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    pub version: String,
    pub kind: String,
    /// None for objects of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

impl ObjectRef {
    /// None where the object lacks its version, kind or name.
    pub fn of(object: &Value) -> Option<Self> {
        let api_version = object["apiVersion"].as_str().filter(|text| !text.is_empty())?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(&object["kind"])?,
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"])?,
        })
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether the kind comes from a definition of somebody's own, and not with Kubernetes.
    pub fn is_custom(&self) -> bool {
        self.group.contains('.') && !self.group.ends_with(".k8s.io")
    }

    /// As people read it: `Deployment/shop/web`, `Certificate.cert-manager.io/shop/web`, `Namespace/shop`.
    pub fn address(&self) -> String {
        let kind = if self.is_custom() { format!("{}.{}", self.kind, self.group) } else { self.kind.clone() };
        match &self.namespace {
            Some(namespace) => format!("{kind}/{namespace}/{}", self.name),
            None => format!("{kind}/{}", self.name),
        }
    }

    /// Whether two names are of the same object, whatever version of its API they speak of.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.namespace, &self.name)
            == (&other.group, &other.kind, &other.namespace, &other.name)
    }

    pub fn is_crd(&self) -> bool {
        self.kind == "CustomResourceDefinition" && self.group == "apiextensions.k8s.io"
    }

    pub fn is_namespace(&self) -> bool {
        self.kind == "Namespace" && self.group.is_empty()
    }
}

/// Kinds that others need, in the order they are applied. What is in neither list comes in between.
const FIRST: [&str; 19] = [
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "RuntimeClass",
    "IngressClass",
    "StorageClass",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "NetworkPolicy",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
];
/// A webhook that is there before what answers for it would refuse everything else.
const LAST: [&str; 6] = [
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
];

/// The place of an object in the order of an apply; a teardown goes the other way. Custom kinds come after workloads: the operator
/// that works on them must be there longer than they are.
pub fn rank(of: &ObjectRef) -> usize {
    let at = |kinds: &[&str]| kinds.iter().position(|known| *known == of.kind);
    match (of.is_custom(), at(&FIRST), at(&LAST)) {
        (true, ..) => FIRST.len() + 1,
        (false, Some(at), _) => at,
        (false, None, Some(at)) => FIRST.len() + 2 + at,
        (false, None, None) => FIRST.len(),
    }
}

/// Whether Helm runs the object as a hook, and not as a part of the release.
pub fn is_hook(object: &Value) -> bool {
    object["metadata"]["annotations"].get("helm.sh/hook").is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_name_the_group_of_custom_kinds_only() {
        for (object, address) in [
            (json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }), "Namespace/shop"),
            (
                json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "shop" } }),
                "Deployment/shop/web",
            ),
            (
                json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "web", "namespace": "shop" } }),
                "Ingress/shop/web",
            ),
            (
                json!({ "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": { "name": "web", "namespace": "shop" } }),
                "Certificate.cert-manager.io/shop/web",
            ),
        ] {
            assert_eq!(ObjectRef::of(&object).map(|of| of.address()).as_deref(), Some(address));
        }
        assert_eq!(ObjectRef::of(&json!({ "kind": "Pod", "metadata": { "name": "x" } })), None);
    }

    #[test]
    fn what_others_need_comes_first() {
        let of = |(group, kind): (&str, &str)| ObjectRef {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: None,
            name: "it".into(),
        };
        let mut all = [
            ("example.com", "Service"),
            ("apps", "Deployment"),
            ("", "Service"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("", "Namespace"),
            ("", "Secret"),
        ]
        .map(of);
        all.sort_by_key(rank);
        let order: Vec<String> = all.iter().map(ObjectRef::address).collect();
        let expected =
            ["Namespace", "Secret", "Service", "Deployment", "Service.example.com", "ValidatingWebhookConfiguration"];
        assert_eq!(order, expected.map(|kind| format!("{kind}/it")));
    }
}
