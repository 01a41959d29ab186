//! Health of what is deployed: verdicts, what runners observe, and the signed paper that tells a runner what to observe.

use serde::{Deserialize, Serialize};

use crate::deploy::SealedValue;
use crate::kubernetes::ClusterSpec;
use crate::{InstallId, RunnerId};

/// From the best to the worst: of several, the last one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There is nothing to be well or not.
    NotApplicable,
    Healthy,
    Progressing,
    /// It can't be judged.
    Unknown,
    /// It works, and not as it should.
    Degraded,
    /// It does not serve.
    Unhealthy,
}

impl Verdict {
    pub const ALL: [Self; 6] =
        [Self::NotApplicable, Self::Healthy, Self::Progressing, Self::Unknown, Self::Degraded, Self::Unhealthy];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "not-applicable",
            Self::Healthy => "healthy",
            Self::Progressing => "progressing",
            Self::Unknown => "unknown",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == text)
    }

    /// Something must be done about it.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Degraded | Self::Unhealthy)
    }

    /// All is as it should be.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::NotApplicable | Self::Healthy)
    }
}

/// Objects, probes and characters of one message; what is beyond is left out.
pub const OBJECTS_MAX: usize = 20;
pub const COMPONENTS_MAX: usize = 1_000;
pub const REASON_CHARS_MAX: usize = 1_000;

/// An object or a probe that is not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnwellObject {
    /// Of the object; `probe` for a probe.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
    pub verdict: Verdict,
    pub reason: String,
    /// A deploy or a teardown that is on its way explains it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_change: bool,
}

/// What a runner saw of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Observation {
    pub component: String,
    /// Of the component's deploy that was observed.
    pub generation: u64,
    /// The worst of all objects and probes.
    pub verdict: Verdict,
    #[serde(default)]
    pub reason: String,
    /// A rollout that can't end by itself: nobody waits for a second look.
    #[serde(default)]
    pub stuck: bool,
    /// Objects and probes that were judged.
    pub judged: u64,
    /// Those that are not healthy, the worst first.
    #[serde(default)]
    pub objects: Vec<UnwellObject>,
}

/// What a runner is to observe. It is signed, because probes start programs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    pub runner_id: RunnerId,
    pub install_id: InstallId,
    pub generation: u64,
    /// The nonce of the request that this answers.
    pub nonce: String,
    pub components: Vec<WatchedComponent>,
    /// Values that stand as placeholders in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<SealedValue>,
    /// Values that must not appear in a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The app's secrets in the customer's store: their values must not be seen in a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub store_secrets: Vec<String>,
}

/// Its place alone: secrets stand in it.
impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({}, {} components)", self.install_id, self.components.len())
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedComponent {
    pub name: String,
    pub generation: u64,
    pub cluster: ClusterSpec,
    /// References as the deployer has told them.
    pub objects: Vec<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// Why it can't be observed; empty where it can.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unknown: String,
}

/// A check of the app's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub name: String,
    #[serde(flatten)]
    pub how: ProbeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ProbeKind {
    Http {
        url: String,
    },
    /// `HOST:PORT`, with `tcp://` before it or not.
    Tcp {
        url: String,
    },
    Exec {
        command: Vec<String>,
    },
}
