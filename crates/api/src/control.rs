//! Wire types of the Control API. Names and shapes follow `control-api.md`; what it lacks is ours.

use std::collections::BTreeMap;

use model::runner::{RunnerReport, RunnerSettings};
use model::spec::{Limits, StepSpec};
use model::{
    AccountId, AppId, CredentialId, ExecutionId, InstallId, JobError, JobGroup, JobId, JobState, JobType, LogStreamId,
    OrgId, Role, RunnerId, StepResult, Timestamp, TokenId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! wire {
    ($($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* pub $field:ident : $ty:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub struct $name { $($(#[$fmeta])* pub $field: $ty,)* }
    )*};
}
pub(crate) use wire;

/// What is empty means the same as what is absent, and is left out.
pub(crate) trait Absent {
    fn is_absent(&self) -> bool;
}

macro_rules! absent {
    ($([$($generic:tt)*] $ty:ty, $how:expr;)*) => {$(
        impl<$($generic)*> Absent for $ty {
            fn is_absent(&self) -> bool {
                let how: fn(&Self) -> bool = $how;
                how(self)
            }
        }
    )*};
}

absent! {
    [T] Option<T>, Option::is_none;
    [T] Vec<T>, Vec::is_empty;
    [K, V] BTreeMap<K, V>, BTreeMap::is_empty;
    [] Map<String, Value>, Map::is_empty;
    [] String, String::is_empty;
    [] bool, |on| !on;
    [] i64, |n| *n == 0;
    [] u64, |n| *n == 0;
}

/// Clients of some languages write `null` for an empty list: it means the same as nothing.
pub(crate) fn null_is_nothing<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A wire type of which most fields may be absent, and are not sent when they are.
macro_rules! lean {
    ($($(#[$meta:meta])* pub struct $name:ident {
        required { $($(#[$rmeta:meta])* $rfield:ident : $rty:ty,)* }
        optional { $($(#[$ometa:meta])* $ofield:ident : $oty:ty,)* }
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub struct $name {
            $($(#[$rmeta])* pub $rfield: $rty,)*
            $($(#[$ometa])* #[serde(default, deserialize_with = "crate::control::null_is_nothing", skip_serializing_if = "crate::control::Absent::is_absent")] pub $ofield: $oty,)*
        }
    )*};
}

mod action_workflows;
mod builds;
mod components;
mod configs;
mod dashboard;
mod deploys;
mod health;
mod installs;
mod people;
mod workflows;
mod workspaces;

pub use action_workflows::*;
pub use builds::*;
pub use components::*;
pub use configs::*;
pub use dashboard::*;
pub use deploys::*;
pub use health::*;
pub use installs::*;
pub use people::*;
pub use workflows::*;
pub use workspaces::*;

wire! {
    /// Who asks.
    pub struct Account {
        pub id: AccountId,
        pub email: String,
        /// Always `service`: all clients know it.
        pub account_type: String,
        pub org_ids: Vec<OrgId>,
        /// Org id to `all` or `read`.
        pub permissions: BTreeMap<String, String>,
        pub created_at: Timestamp,
    }

    pub struct CliConfig {
        pub root_domain: String,
        pub dashboard_url: String,
        pub nuon_auth_enabled: bool,
    }

    pub struct Version {
        pub version: String,
        pub git_ref: String,
        /// Protocols of the Runner API that this server speaks, oldest and newest.
        pub protocol_min: u32,
        pub protocol_max: u32,
    }

    pub struct Org {
        pub id: OrgId,
        pub name: String,
        pub status: String,
        pub status_description: String,
        pub sandbox_mode: bool,
        pub created_by_id: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        /// The org's build runner.
        pub build_runner_id: RunnerId,
    }

    pub struct CreateOrg {
        pub name: String,
        #[serde(default)]
        pub use_sandbox_mode: bool,
        /// How jobs of a simulated org are played: `seed`, `step_ms`, `fail_percent`, `drift_percent`, `unknown_percent`, `resources`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub simulation: Option<BTreeMap<String, u64>>,
    }

    pub struct Token {
        pub id: TokenId,
        pub name: String,
        pub role: Role,
        /// First characters of the token, to recognise it by.
        pub hint: String,
        pub created_by_id: AccountId,
        pub created_at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub revoked_at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_used_at: Option<Timestamp>,
        /// It sends telemetry in the name of this runner, and does nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner_id: Option<RunnerId>,
        /// Where it sends telemetry to: only in the answer that creates it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub otlp_endpoint: Option<String>,
        /// The token itself: only in the answer that creates it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub token: Option<String>,
    }

    pub struct CreateToken {
        pub name: String,
        pub role: Role,
        /// The token sends telemetry in the name of this runner, and does nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner_id: Option<RunnerId>,
        /// Never when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub expires_in_s: Option<u64>,
    }

    pub struct App {
        pub id: AppId,
        pub org_id: OrgId,
        pub name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub display_name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub description: String,
        pub status: String,
        pub status_description: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub config_repo: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub config_directory: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub label_colors: BTreeMap<String, String>,
        pub created_by_id: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    pub struct CreateApp {
        pub name: String,
        #[serde(default)]
        pub display_name: String,
        #[serde(default)]
        pub description: String,
    }

    pub struct Region {
        pub region: String,
    }

    pub struct Location {
        pub location: String,
    }

    pub struct Project {
        pub project_id: String,
        pub region: String,
    }

    pub struct Install {
        pub id: InstallId,
        pub org_id: OrgId,
        pub app_id: AppId,
        pub name: String,
        pub runner_id: RunnerId,
        /// `pending`, `active`, `offline` or `disabled`.
        pub runner_status: String,
        pub sandbox_status: String,
        pub composite_component_status: String,
        /// What brings it up, where it was just made.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub workflow_id: String,
        /// Inputs whose value is not deployed: their deploy was denied, failed, or has not come yet. Lists do not tell it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub undeployed_inputs: Vec<String>,
        /// The version of the app that a rollback keeps it at; none: the next deploy brings the latest version. Lists do not tell it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub kept_at_version: Option<u64>,
        /// The latest version of the app. Lists do not tell it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub latest_version: Option<u64>,
        /// `aws`, `azure`, `gcp` or `local`.
        pub cloud_platform: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub aws_account: Option<Region>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub azure_account: Option<Location>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gcp_account: Option<Project>,
        /// Those of the app, and the install's own over them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<InstallMetadata>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub install_config: Option<InstallConfig>,
        pub created_by_id: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    /// Names no cloud: the install is local.
    pub struct CreateInstall {
        pub name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub aws_account: Option<Region>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub azure_account: Option<Location>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gcp_account: Option<Project>,
        /// Inputs of the app that this install gives.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub inputs: BTreeMap<String, String>,
        /// What this install lays over settings of its components, by the component's name.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub component_overrides: BTreeMap<String, ComponentOverride>,
        #[serde(default, deserialize_with = "null_is_nothing", skip_serializing_if = "BTreeMap::is_empty")]
        pub labels: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub metadata: Option<InstallMetadata>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub install_config: Option<UpdateInstallConfig>,
    }

    pub struct Runner {
        pub id: RunnerId,
        pub org_id: OrgId,
        pub name: String,
        /// `build` or `install`.
        pub kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub install_id: Option<InstallId>,
        /// `pending`, `active`, `offline` or `disabled`.
        pub status: String,
        pub status_description: String,
        /// Raised each time a new runner process joins without an earlier key.
        pub generation: u64,
        /// Draining by request of an operator.
        pub draining: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub last_seen_at: Option<Timestamp>,
        pub settings: RunnerSettings,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub report: Option<RunnerReport>,
        /// Outputs of the last health check that finished.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub health: Option<Health>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }

    pub struct Health {
        pub checked_at: Timestamp,
        #[cfg_attr(feature = "schema", schema(value_type = Object))]
        pub outputs: Map<String, Value>,
    }

    /// Fields that are absent stay as they are.
    #[derive(Default)]
    pub struct UpdateRunnerSettings {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schema(value_type = Option<BTreeMap<String, u32>>))]
        pub groups: Option<BTreeMap<JobGroup, u32>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub disk_floor_bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub execution_disk_bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spool_bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub drain_s: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub health_check_s: Option<u64>,
    }

    /// How to bring a runner up. The credential is shown once.
    pub struct JoinCommand {
        pub credential_id: CredentialId,
        pub runner_id: RunnerId,
        pub runner_url: String,
        pub credential: String,
        pub trust_keys: Vec<String>,
        /// The whole command line.
        pub command: String,
    }

    /// An action that carries its steps in the request; it needs no app config.
    pub struct CreateActionRun {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        pub steps: Vec<StepSpec>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub run_env_vars: BTreeMap<String, String>,
        /// 1 to 3600 seconds; 300 when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub timeout_s: Option<u64>,
        /// Values that are masked in the log.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub secrets: Vec<String>,
        #[serde(default)]
        pub limits: Limits,
        /// Jobs that name the same target never run at the same time on an install.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub target: Option<String>,
        /// Higher goes first.
        #[serde(default)]
        pub priority: i64,
    }

    /// A job that does nothing, or a health check, for a runner.
    pub struct CreateRunnerJob {
        #[serde(rename = "type")]
        pub job_type: JobType,
        #[serde(default)]
        pub sleep_ms: u64,
        #[serde(default)]
        pub priority: i64,
    }

    pub struct Job {
        pub id: JobId,
        pub org_id: OrgId,
        pub runner_id: RunnerId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub install_id: Option<InstallId>,
        pub owner_id: String,
        pub owner_type: String,
        #[serde(rename = "type")]
        pub job_type: JobType,
        pub group: JobGroup,
        pub operation: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        pub status: JobState,
        /// A sentence: the error of a failed job, the reason of an unknown one, why a queued one waits.
        pub status_description: String,
        /// Only while it waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub waiting_reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub target: Option<String>,
        pub priority: i64,
        pub log_stream_id: LogStreamId,
        pub execution_count: u64,
        pub max_executions: u64,
        /// Nanoseconds.
        pub execution_timeout: i64,
        pub queue_timeout: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub execution_time: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cancel_requested_at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<JobError>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub steps: Vec<StepResult>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        #[cfg_attr(feature = "schema", schema(value_type = Object))]
        pub outputs: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub executions: Vec<Execution>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub final_runner_job_execution_id: Option<ExecutionId>,
        pub created_by_id: String,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub started_at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub finished_at: Option<Timestamp>,
    }

    pub struct Execution {
        pub id: ExecutionId,
        pub runner_job_id: JobId,
        pub epoch: u64,
        pub generation: u64,
        /// `pending`, `in-progress`, `unknown`, or how it ended.
        pub status: String,
        pub status_description: String,
        pub created_at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub started_at: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub finished_at: Option<Timestamp>,
    }

    /// How an unknown job ended, as someone saw by looking.
    pub struct SettleJob {
        /// `finished`, `failed` or `cancelled`.
        pub outcome: model::Outcome,
        #[serde(default)]
        pub note: String,
    }

    pub struct LogStream {
        pub id: LogStreamId,
        pub org_id: OrgId,
        pub owner_id: String,
        pub owner_type: String,
        /// More may come.
        pub open: bool,
        pub created_at: Timestamp,
        /// What it takes, compressed; where the stream itself was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size_bytes: Option<u64>,
        /// When it was deleted: by its org's retention, or by someone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub deleted_at: Option<Timestamp>,
        /// What a reader should know: that it was deleted, or that the org's quota is used up.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub note: String,
    }

    /// What an org keeps of its logs.
    pub struct LogKeeping {
        /// How long a log is kept after its last line; without end where it is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub retention_s: Option<u64>,
        /// How much all logs may take, compressed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub quota_bytes: Option<u64>,
        /// What they take now.
        pub size_bytes: u64,
        /// How many there are, one for each execution of a job.
        pub logs: u64,
    }

    pub struct UpdateLogKeeping {
        /// At least a day; 0: without end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub retention_s: Option<u64>,
        /// 0: without bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub quota_bytes: Option<u64>,
    }

    /// One line (or the piece of a line that lay in one chunk).
    pub struct LogRecord {
        pub id: String,
        pub timestamp: String,
        /// Nanoseconds; the cursor of this record.
        pub cursor: String,
        pub severity_text: String,
        pub severity_number: i64,
        pub service_name: String,
        pub body: String,
        pub log_stream_id: LogStreamId,
        pub runner_id: RunnerId,
        /// None of what exporters send.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner_job_id: Option<JobId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub runner_job_execution_id: Option<ExecutionId>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub runner_job_execution_step: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub log_attributes: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub resource_attributes: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub scope_name: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub trace_id: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub span_id: String,
        /// All of a log record, a span or a data point that an exporter sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub data: Option<serde_json::Value>,
    }

    /// One chunk of a live tail. `text` is lossy UTF-8; the raw endpoint has the bytes.
    pub struct LogChunk {
        /// Position in the stream: the SSE id, and what `after` takes.
        pub position: String,
        pub execution_id: ExecutionId,
        pub seq: u64,
        pub time: Timestamp,
        /// `stdout`, `stderr` or `system`.
        pub pipe: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub step: Option<String>,
        pub text: String,
        /// So many bytes are missing here; 0 where the executor died, and nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gap_bytes: Option<u64>,
    }

    /// Something that happened in an org.
    pub struct Event {
        /// What `Last-Event-ID` takes.
        pub id: String,
        pub time: Timestamp,
        /// For example `job.state`, `runner.joined`, `install.created`.
        pub kind: String,
        pub subject_type: String,
        pub subject_id: String,
        pub actor: String,
        #[cfg_attr(feature = "schema", schema(value_type = Object))]
        pub data: Value,
    }

    /// A source archive that lies ready for a step to name it.
    pub struct Archive {
        pub digest: model::Digest,
        pub size_bytes: u64,
    }
}

impl CreateInstall {
    /// An install on the machine that its runner is started on.
    pub fn local(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            aws_account: None,
            azure_account: None,
            gcp_account: None,
            inputs: BTreeMap::new(),
            component_overrides: BTreeMap::new(),
            labels: BTreeMap::new(),
            metadata: None,
            install_config: None,
        }
    }
}
