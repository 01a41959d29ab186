//! What an execution reports at its end.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;
use crate::deploy::ResourceProgress;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Finished,
    Failed,
    TimedOut,
    Cancelled,
    NotAttempted,
}

/// Why a job did not finish: a stable code and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobError {
    pub code: String,
    pub message: String,
}

impl JobError {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepStatus {
    Pending,
    InProgress,
    Finished,
    Error,
    TimedOut,
    Cancelled,
    NotAttempted,
}

/// One step of an action, while it runs and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepResult {
    pub name: String,
    pub status: StepStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What Terraform has begun with, those that last first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceProgress>,
}

impl StepResult {
    pub fn pending(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            status: StepStatus::Pending,
            exit_code: None,
            started_at: None,
            finished_at: None,
            error: None,
            resources: Vec::new(),
        }
    }
}

/// The one result record of an execution. It is written once; the first one wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExecutionResult {
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepResult>,
    /// Merged outputs of all steps, and `steps.<step>` with each step's own.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub outputs: Map<String, Value>,
    /// How many log chunks the execution wrote: the log is whole when all of them have arrived.
    #[serde(default)]
    pub log_chunks: u64,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
}

impl ExecutionResult {
    /// A result for an execution that ended before its work began.
    pub fn without_work(outcome: Outcome, error: JobError, now: Timestamp) -> Self {
        Self {
            outcome,
            error: Some(error),
            steps: Vec::new(),
            outputs: Map::new(),
            log_chunks: 0,
            started_at: now,
            finished_at: now,
        }
    }
}
