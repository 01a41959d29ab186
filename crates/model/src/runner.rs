//! What a runner tells about itself, and what it is told to be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{JobGroup, JobId, Timestamp, WorkspaceId};

/// Whose jobs a runner takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunnerKind {
    /// Beside the control plane, one per org; only build work.
    Build,
    /// In the customer's account, one per install.
    Install,
}

impl RunnerKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Install => "install",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Build, Self::Install].into_iter().find(|k| k.as_str() == text)
    }

    /// The groups that it takes jobs of, each with its slots.
    pub fn default_groups(self) -> BTreeMap<JobGroup, u32> {
        JobGroup::ALL.map(|group| (group, group.slots(self))).into_iter().filter(|(_, slots)| *slots > 0).collect()
    }
}

/// How an execution stands that a runner has a directory for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HeldState {
    /// An executor works on it, or its result is on the way.
    #[default]
    Alive,
    /// The executor died without a result, and nothing of it is left.
    Dead,
    /// An earlier process took it and died before it started anything; it never will.
    Unstarted,
}

/// What the control plane sets for a runner; changes reach it without a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunnerSettings {
    /// Raised with every change.
    pub version: u64,
    /// Slots of each job group.
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, u32>))]
    #[serde(deserialize_with = "known_groups")]
    pub groups: BTreeMap<JobGroup, u32>,
    /// No job is taken with less free disk than this.
    pub disk_floor_bytes: u64,
    /// Quota of an execution's directory where its spec names none.
    pub execution_disk_bytes: u64,
    /// How much unsent log an execution may pile up before a gap is marked.
    pub spool_bytes: u64,
    /// How long SIGTERM lets executions go on.
    pub drain_s: u64,
    /// How often the server asks for a health check; 0 = never.
    pub health_check_s: u64,
}

/// Groups of a newer server mean nothing to an older runner, which has no slots for them.
fn known_groups<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<JobGroup, u32>, D::Error> {
    let all = BTreeMap::<String, u32>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|(name, slots)| Some((JobGroup::parse(&name)?, slots))).collect())
}

impl RunnerSettings {
    pub fn defaults(kind: RunnerKind) -> Self {
        Self {
            version: 1,
            groups: kind.default_groups(),
            disk_floor_bytes: 256 << 20,
            execution_disk_bytes: 10 << 30,
            spool_bytes: 256 << 20,
            drain_s: 60,
            health_check_s: 900,
        }
    }
}

/// What a runner says with every poll.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunnerReport {
    pub version: String,
    pub hostname: String,
    /// The customer switched it off, at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_since: Option<Timestamp>,
    /// It is going down and takes nothing more.
    #[serde(default)]
    pub draining: bool,
    pub disk_free_bytes: u64,
    #[serde(default)]
    pub disk_floor_bytes: u64,
    /// Jobs that each group works on.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, Vec<String>>))]
    pub busy: BTreeMap<JobGroup, Vec<JobId>>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, u32>))]
    pub slots: BTreeMap<JobGroup, u32>,
    /// Workspaces whose newest state is on the runner's disk and not yet with the control plane: a plan or an apply that
    /// starts without it would create resources twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub rescues_open: Vec<WorkspaceId>,
    /// The customer has switched ad hoc actions off: the runner refuses scripts that are not part of the app's config.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_ad_hoc: bool,
    /// The customer's own registry, `HOST/PATH` and maybe `http://` before it: images are copied there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_an_older_runner_is_read_and_an_empty_list_is_not_sent() {
        let old = r#"{"version":"0.1.0","hostname":"h","disk_free_bytes":1}"#;
        let report: RunnerReport = serde_json::from_str(old).expect("an older report");
        assert!(report.rescues_open.is_empty() && !report.no_ad_hoc);
        let text = serde_json::to_string(&report).expect("json");
        assert!(!text.contains("rescues_open") && !text.contains("no_ad_hoc"), "{text}");
        let workspace = WorkspaceId::new(Timestamp::from_micros(1), 1);
        let report = RunnerReport { rescues_open: vec![workspace], no_ad_hoc: true, ..report };
        let text = serde_json::to_string(&report).expect("json");
        assert_eq!(serde_json::from_str::<RunnerReport>(&text).expect("json"), report);
    }
}
