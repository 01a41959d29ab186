//! Terraform: what a job is told, what it tells, and what names a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::{PolicySpec, Repository};
use crate::spec::Source;
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

/// The programs that carry out a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    Terraform,
    Tofu,
}

impl Program {
    pub const fn command(self) -> &'static str {
        match self {
            Self::Terraform => "terraform",
            Self::Tofu => "tofu",
        }
    }

    /// The program and its version as an app names them: `1.13.5`, or `tofu-1.12.6` (`opentofu-…`).
    pub fn parse(text: &str) -> (Self, String) {
        let text = text.trim();
        let tofu = text.strip_prefix("opentofu-").or_else(|| text.strip_prefix("tofu-"));
        match tofu {
            Some(version) => (Self::Tofu, version.trim_start_matches('v').to_owned()),
            None => (Self::Terraform, text.trim_start_matches('v').to_owned()),
        }
    }
}

/// A job of Terraform on one workspace of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerraformSpec {
    pub workspace_id: WorkspaceId,
    /// `components/NAME` or `sandbox`.
    pub target: String,
    pub program: Program,
    /// The exact version, or `latest`: whatever the runner has.
    pub version: String,
    pub module: Module,
    /// Values of variables, as texts; Terraform converts them.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// Texts of files of variables; later ones win, and all of them over `vars`.
    #[serde(default)]
    pub var_files: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub operation: TerraformOperation,
    /// What must let a plan pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicySpec>,
    /// Names what the spec was rendered from, for the control plane.
    #[serde(default)]
    pub basis: String,
}

/// Where the files of the module are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Module {
    /// The artifact of a build.
    Artifact {
        repository: Repository,
        digest: Digest,
    },
    Source {
        source: Source,
    },
    /// None is needed.
    Nothing {},
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum TerraformOperation {
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

impl TerraformOperation {
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

/// A resource that Terraform has begun with.
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
    fn programs_are_named_with_their_version() {
        let cases = [
            ("1.13.5", Program::Terraform, "1.13.5"),
            ("v1.11.4", Program::Terraform, "1.11.4"),
            ("latest", Program::Terraform, "latest"),
            ("tofu-1.12.6", Program::Tofu, "1.12.6"),
            ("opentofu-v1.12.6", Program::Tofu, "1.12.6"),
        ];
        for (text, program, version) in cases {
            assert_eq!(Program::parse(text), (program, version.to_owned()));
        }
    }

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
