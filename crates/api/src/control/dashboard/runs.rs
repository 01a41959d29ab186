//! A run: a workflow as a page shows it.

use std::collections::BTreeMap;

use model::Timestamp;

use super::{Can, StepWord, WorkflowWord};
use crate::control::{PlanChanges, PolicyCounts, StepApprovalResponse};

lean! {
    /// A workflow, its steps in their order, and what may be done.
    pub struct RunView {
        required {
            id: String,
            r#type: String,
            /// Such as `provision` or `deploy storefront`.
            title: String,
            status: WorkflowWord,
            install_id: String,
            install_name: String,
            app_id: String,
            app_name: String,
            created_by: String,
            created_at: Timestamp,
            /// `prompt` or `approve-all`.
            approval_option: String,
            steps: Vec<RunStep>,
            /// What the slowest line of steps took, for the scale of bars.
            span_ms: u64,
            can: BTreeMap<String, Can>,
        }
        optional {
            plan_only: bool,
            started_at: Option<Timestamp>,
            finished_at: Option<Timestamp>,
            config_version: u64,
            /// Why it did not succeed, or what it went on without.
            trouble: String,
            /// For what it waits now.
            waits: Option<WaitingReason>,
            /// The step that a page opens with.
            focus: String,
            done: u64,
            total: u64,
            continue_on_error: bool,
            cancelled_by: String,
            approved_by: String,
            /// The command that shows it.
            command: String,
        }
    }

    /// Why something waits: a code, a sentence, and what it is about.
    pub struct WaitingReason {
        required {
            /// `approval`, `runner-offline`, `runner-busy`, `runner-disabled`, `target-busy`, `earlier-step`, `stack`, `health`, `build` or `other`.
            code: String,
            text: String,
        }
        optional {
            subject_type: String,
            subject_id: String,
        }
    }

    pub struct RunStep {
        required {
            id: String,
            name: String,
            status: StepWord,
            /// `system`, `user`, `approval` or `skipped`.
            kind: String,
            idx: u64,
            group: u64,
            attempt: u64,
            can: BTreeMap<String, Can>,
        }
        optional {
            component: String,
            /// `plan`, `apply`, `sandbox-plan`, `sandbox-apply`, `action`, `script`, `image`, `health`, `secrets`, `wait` or `skipped`.
            work: String,
            /// Steps that must be done before, by `idx`.
            after: Vec<u64>,
            /// Why it ended as it did.
            reason: String,
            waits: Option<WaitingReason>,
            started_at: Option<Timestamp>,
            finished_at: Option<Timestamp>,
            /// Where its bar begins, and how long it is.
            offset_ms: u64,
            took_ms: u64,
            /// There is a newer attempt.
            replaced: bool,
            job_id: String,
            job_status: String,
            log_stream_id: String,
            /// The digest of its plan.
            digest: String,
            changes: Option<PlanChanges>,
            data_loss: u64,
            policies: Option<PolicyCounts>,
            answer: Option<StepApprovalResponse>,
            expires_at: Option<Timestamp>,
            role: String,
            /// Resources that an apply works at, the latest first; at most 20.
            progress: Vec<RunProgress>,
        }
    }

    pub struct RunProgress {
        required {
            address: String,
            action: String,
            status: String,
        }
        optional {
            took_s: u64,
        }
    }
}
