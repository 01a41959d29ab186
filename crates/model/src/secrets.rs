//! Secrets of an install: they live in the customer's account, and the runner brings them to the customer's cluster. The control
//! plane knows names, targets, lengths and times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The part of an install's state that says what is known of its secrets.
pub const SECRETS_PART: &str = "secrets";
/// Secrets that one app may have.
pub const SECRETS_MAX: usize = 1000;
/// The longest value: what one Kubernetes Secret may hold.
pub const SECRET_VALUE_BYTES_MAX: usize = 1 << 20;
/// Characters of a value that is made up, letters and digits.
pub const GENERATED_CHARS: usize = 63;

/// Brings secrets to the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsSpec {
    pub secrets: Vec<SecretSpec>,
    /// What earlier syncs have written, and is not wanted any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<SecretTarget>,
    /// Namespaces that lose their Secret for pulls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pulls_gone: Vec<String>,
    /// Namespaces whose Secret for pulls gets a new login, where it is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pulls_renewed: Vec<String>,
    /// Nothing is to stay: namespaces that go, too, where they were made for secrets and nothing else is in them. A sync names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The name of the Secret for pulls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pull_secret: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretSpec {
    pub name: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The runner makes a value up where the customer's store has none, and keeps it there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_generate: bool,
    /// There was a value: another one is not made up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
    /// What the app gives where the customer's store has nothing; it is no secret then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    #[serde(default)]
    pub format: SecretFormat,
    pub targets: Vec<SecretTarget>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretFormat {
    #[default]
    Plain,
    /// The store holds base64; what it stands for is written.
    Base64,
}

/// One key of one Kubernetes Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretTarget {
    pub namespace: String,
    pub name: String,
    pub key: String,
}

/// What is known of a secret outside of the customer's account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretOutput {
    pub name: String,
    pub exists: bool,
    /// Of what was written, in bytes.
    pub length: u64,
    /// When the value was written that is there now.
    pub timestamp: Option<Timestamp>,
    /// The value is another than before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    pub targets: Vec<SecretTarget>,
    /// Workloads that read what has changed, and go on with the old value until they are restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readers: Vec<String>,
    /// As existing templates read it: the first target.
    #[serde(default)]
    pub kubernetes_namespace: String,
    #[serde(default)]
    pub kubernetes_name: String,
    #[serde(default)]
    pub kubernetes_key: String,
}

/// What a sync of secrets puts out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretOutputs {
    pub secrets: BTreeMap<String, SecretOutput>,
    /// What was to be taken away, where the runner may not any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<SecretTarget>,
}
