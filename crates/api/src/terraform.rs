//! Wire types of the Runner API that are about Terraform: workspaces, their locks and states, plans, and the install's key.

use model::deploy::{ApprovedPlan, LockInfo, SealedFile};
use model::{ExecutionId, RevisionId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::control::wire;

wire! {
    /// A workspace as it is now.
    pub struct WorkspaceHead {
        pub workspace_id: WorkspaceId,
        /// `components/NAME` or `sandbox`.
        pub target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lock: Option<LockInfo>,
        /// None before the first state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub state: Option<StateHead>,
    }

    pub struct StateHead {
        pub revision_id: RevisionId,
        pub lineage: String,
        pub serial: u64,
        pub file: SealedFile,
    }

    pub struct WorkspacesAnswer {
        pub workspaces: Vec<WorkspaceHead>,
    }

    /// The part of an install whose workspace is wanted.
    pub struct WorkspaceRequest {
        /// `components/NAME` or `sandbox`.
        pub target: String,
    }

    /// The execution that works on a workspace; without one it is a person on the customer's side.
    pub struct HolderRef {
        pub execution_id: ExecutionId,
        pub epoch: u64,
    }

    pub struct LockRequest {
        pub info: LockInfo,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub holder: Option<HolderRef>,
    }

    pub struct UnlockRequest {
        pub lock_id: String,
    }

    pub struct LockAnswer {
        /// False where another one holds it.
        pub done: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub held_by: Option<LockInfo>,
    }

    /// A state whose pieces have been sent.
    pub struct StateRequest {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub holder: Option<HolderRef>,
        /// Who it is, where it is no execution.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub person: String,
        pub lock_id: String,
        pub lineage: String,
        pub serial: u64,
        pub file: SealedFile,
        /// Addresses, types and providers; no values.
        #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
        pub resources: Vec<serde_json::Value>,
        pub resource_count: u64,
        /// What the state puts out, as the result of an apply would tell it: an apply whose result never comes is settled with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
        pub outputs: Option<serde_json::Map<String, serde_json::Value>>,
        /// Why it was written, where that is not an apply.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub note: String,
    }

    pub struct StateAnswer {
        pub revision_id: RevisionId,
        /// It was kept, and is not the state: who wrote it had lost its lease.
        pub quarantined: bool,
    }

    pub struct InstallKeyRequest {
        /// Of the key that the runner has or would make; without one it only asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fingerprint: Option<String>,
    }

    pub struct InstallKeyAnswer {
        /// The key that the install seals with; none before the first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fingerprint: Option<String>,
    }

    /// What a plan job has made.
    pub struct PlanRequest {
        pub plan: ApprovedPlan,
        #[cfg_attr(feature = "schema", schema(value_type = Object))]
        pub changes: serde_json::Value,
        /// How policies judged it, in numbers.
        #[cfg_attr(feature = "schema", schema(value_type = Object))]
        pub judged: serde_json::Value,
        /// The masked model: JSON, zstd, base64.
        pub display: String,
    }
}
