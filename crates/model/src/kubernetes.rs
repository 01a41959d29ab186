//! Kubernetes: what jobs are told of a cluster, and of the charts and manifests that are deployed to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::Repository;
use crate::deploy::Deploy;
use crate::{Digest, InstallId};

/// The cluster that a job works on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum ClusterSpec {
    /// The runner's own: the kubeconfig that it was given, or the service account of its pod.
    Runner {},
    /// The output `cluster` of the sandbox or of a component. Its texts may be placeholders.
    Output {
        /// Who has put it out, for people.
        origin: String,
        /// A whole kubeconfig; without one the other fields count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kubeconfig: Option<String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        endpoint: String,
        /// In base64.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        certificate_authority_data: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
}

/// Credentials stand in it.
impl std::fmt::Debug for ClusterSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Runner {} => f.write_str("the runner's own cluster"),
            Self::Output { origin, .. } => write!(f, "the cluster of {origin}"),
        }
    }
}

/// Where Helm keeps its releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseStorage {
    #[default]
    Configmap,
    Secret,
}

impl ReleaseStorage {
    /// As Helm names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configmap => "configmap",
            Self::Secret => "secret",
        }
    }
}

/// A job of Helm on one release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelmSpec {
    #[serde(flatten)]
    pub deploy: Deploy,
    /// The artifact that holds the chart.
    pub repository: Repository,
    pub digest: Digest,
    pub release: String,
    pub namespace: String,
    #[serde(default)]
    pub storage: ReleaseStorage,
    /// As for `helm --set`; over all files.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Texts of YAML files; later ones win.
    #[serde(default)]
    pub values_files: Vec<String>,
    /// The text of a YAML file that wins over all the others: what the install lays over the chart's values.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub values_override: String,
    #[serde(default)]
    pub take_ownership: bool,
    #[serde(default)]
    pub skip_crds: bool,
    #[serde(default)]
    pub rollout: Rollout,
}

/// A job on plain objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestSpec {
    #[serde(flatten)]
    pub deploy: Deploy,
    pub manifest: ManifestSource,
    /// Of objects that name none.
    pub namespace: String,
    #[serde(default)]
    pub rollout: Rollout,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum ManifestSource {
    Text {
        contents: String,
    },
    /// A kustomization, rendered when it was built.
    Artifact {
        repository: Repository,
        digest: Digest,
    },
}

/// A program that runs in a pod until it ends: once for each thing that it is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    #[serde(flatten)]
    pub deploy: Deploy,
    /// Of the component.
    pub name: String,
    /// It is made where it is missing.
    pub namespace: String,
    pub image: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// How often a pod that fails is followed by another one.
    pub retries: u32,
}

/// Images of the control plane's own registry, for an install that has none: pods pull them with a Secret that the runner makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulls {
    /// All repositories that this install's pods may read.
    pub repositories: Vec<String>,
    /// The Secret that pods pull with, in each namespace that needs it. Several installs may share a namespace, so each has its own.
    pub secret: String,
}

impl Pulls {
    pub fn secret_of(install: &InstallId) -> String {
        format!("ferry-registry-{install}")
    }
}

/// How objects are brought to a cluster, and when they count as there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rollout {
    /// An apply ends when everything is ready.
    pub wait: bool,
    /// An upgrade that fails goes back to what was there.
    pub rollback: bool,
    /// Fields that others may change: `spec.replicas`, `Deployment/web: spec.template.spec.containers[*].image`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl Default for Rollout {
    fn default() -> Self {
        Self { wait: true, rollback: false, ignore: Vec::new() }
    }
}
