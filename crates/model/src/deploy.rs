//! Deploys of any kind: what a job is told, what it tells, and what names a plan.

use serde::{Deserialize, Serialize};

use crate::build::PolicySpec;
use crate::{Digest, JobId, RevisionId, Timestamp, UploadId, WorkspaceId};

/// Plain bytes that go into one sealed piece.
pub const PIECE_BYTES: usize = 4 << 20;
/// What sealing adds to a piece.
pub const PIECE_OVERHEAD_BYTES: usize = 40;
/// Pieces of one file: a bound on what is ever sent, 64 GiB.
pub const PIECES_MAX: u32 = 16_384;
/// The masked model of a plan, compressed.
pub const DISPLAY_BYTES: usize = 16 << 20;
/// The same when it is opened.
pub const DISPLAY_OPEN_BYTES: usize = 64 << 20;

/// The error of an apply whose state the runner could not hand over: it waits on the runner.
pub const STATE_WAITING: &str = "state_waiting";
/// The error of an apply whose state is nowhere.
pub const STATE_LOST: &str = "state_lost";
/// The note of a state that somebody has restored.
pub const RESTORED: &str = "restored";

/// Errors of an apply that was refused before Terraform began: nothing has changed.
pub const NOT_BEGUN: [&str; 2] = [STALE_PLAN, DISK_FULL];
/// What the plan was made of has changed.
pub const STALE_PLAN: &str = "stale_plan";
/// The runner's disk has too little room for the state.
pub const DISK_FULL: &str = "disk_full";

/// What a job is about, as the queue knows it: one at a time for each part of an install. Its first word is that of the first deployer.
pub fn job_target(part: &str) -> String {
    format!("terraform/{part}")
}

/// The part that a job is about.
pub fn part_of(job_target: &str) -> Option<&str> {
    job_target.strip_prefix("terraform/")
}

/// What every job is told that plans or applies a part of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deploy {
    /// Keeps the state of the part.
    pub workspace_id: WorkspaceId,
    /// `components/NAME` or `sandbox`.
    pub target: String,
    pub operation: DeployOperation,
    /// What must let a plan pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicySpec>,
    /// Names what the spec was rendered from, for the control plane.
    #[serde(default)]
    pub basis: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum DeployOperation {
    Plan {
        #[serde(default)]
        destroy: bool,
    },
    /// Carries out exactly this plan.
    Apply {
        plan: Box<ApprovedPlan>,
        #[serde(default)]
        destroy: bool,
    },
    /// Makes an earlier revision the state again, under a new serial.
    Restore {
        revision_id: RevisionId,
        file: SealedFile,
        /// The serial that is there; another one by then, and nothing is restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        over_serial: Option<u64>,
    },
}

impl DeployOperation {
    /// As orders and jobs name it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plan { destroy: false } => "create-apply-plan",
            Self::Plan { destroy: true } => "create-teardown-plan",
            Self::Apply { .. } => "apply-plan",
            Self::Restore { .. } => "restore-state",
        }
    }
}

/// A file that was compressed, cut into pieces, and sealed with the install's key; the control plane can't open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SealedFile {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub upload_id: UploadId,
    pub pieces: u32,
    /// Of the plain file.
    pub bytes: u64,
    /// Over the sealed pieces, one after the other.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub digest: Digest,
}

/// Everything that a plan digest covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovedPlan {
    /// The job that made it.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub job_id: JobId,
    pub file: SealedFile,
    /// Of the masked model that was shown.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub model_digest: Digest,
    /// What policies said, as JSON; empty where none was asked.
    pub verdicts: String,
    /// Of the state that it was made from; empty and 0 before there is one.
    pub lineage: String,
    pub serial: u64,
    /// Of the plan job.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub spec_digest: Digest,
}

impl ApprovedPlan {
    /// Each part with its length before it, so that no two plans have the same text.
    pub fn digest(&self) -> Digest {
        let serial = if self.lineage.is_empty() { String::new() } else { self.serial.to_string() };
        let parts = [
            self.file.digest.as_str(),
            self.model_digest.as_str(),
            &self.verdicts,
            &self.lineage,
            &serial,
            self.spec_digest.as_str(),
        ];
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Digest::of(&bytes)
    }
}

/// A value that the executor fills in: in the spec stands a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedValue {
    pub placeholder: String,
    /// The sealed outputs that it lies in, and where.
    pub file: SealedFile,
    pub path: Vec<String>,
}

/// Who holds the lock of a workspace, as Terraform writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LockInfo {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "Operation", default)]
    pub operation: String,
    #[serde(rename = "Info", default)]
    pub info: String,
    #[serde(rename = "Who", default)]
    pub who: String,
    #[serde(rename = "Version", default)]
    pub version: String,
    #[serde(rename = "Created", default)]
    pub created: String,
    #[serde(rename = "Path", default)]
    pub path: String,
}

/// A resource that an apply has begun with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ResourceProgress {
    pub address: String,
    pub action: String,
    pub status: ResourceStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_s: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ResourceStatus {
    Started,
    Done,
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_plan_is_in_its_digest() {
        let file = SealedFile {
            upload_id: UploadId::new(Timestamp::from_micros(1), 1),
            pieces: 1,
            bytes: 1,
            digest: Digest::of(b"file"),
        };
        let plan = ApprovedPlan {
            job_id: JobId::new(Timestamp::from_micros(1), 1),
            file: file.clone(),
            model_digest: Digest::of(b"model"),
            verdicts: "[]".into(),
            lineage: "l".into(),
            serial: 1,
            spec_digest: Digest::of(b"spec"),
        };
        let others = [
            ApprovedPlan { file: SealedFile { digest: Digest::of(b"other"), ..file }, ..plan.clone() },
            ApprovedPlan { model_digest: Digest::of(b"other"), ..plan.clone() },
            ApprovedPlan { verdicts: "[1]".into(), ..plan.clone() },
            ApprovedPlan { lineage: "m".into(), ..plan.clone() },
            ApprovedPlan { serial: 2, ..plan.clone() },
            ApprovedPlan { spec_digest: Digest::of(b"other"), ..plan.clone() },
            // What one part loses the next one must not win.
            ApprovedPlan { verdicts: "[".into(), lineage: "]l".into(), ..plan.clone() },
        ];
        for other in others {
            assert_ne!(other.digest(), plan.digest(), "{other:?}");
        }
    }
}
