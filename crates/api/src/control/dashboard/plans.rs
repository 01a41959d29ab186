//! Plans as pages paint them: one shape for Terraform, charts, manifests, jobs and simulated parts.

use std::collections::BTreeMap;

use model::Timestamp;

use super::Can;
use crate::control::{PlanChanges, PolicyCounts};

lean! {
    /// What a step would change, masked and bounded.
    pub struct PlanView {
        required {
            step_id: String,
            workflow_id: String,
            install_id: String,
            /// What an approval names.
            digest: String,
            /// Such as `plan storefront`.
            title: String,
            /// `terraform`, `helm`, `manifest`, `job`, `image` or `simulated`.
            r#type: String,
            /// How the step that made it stands.
            status: String,
            changes: PlanChanges,
            /// Resources that hold data and would be destroyed or replaced.
            data_loss: u64,
            /// Destroyed and replaced first, then by address.
            resources: Vec<PlanResource>,
            outputs: Vec<PlanOutput>,
            /// What was changed outside of Ferry; shown only.
            drift: Vec<PlanResource>,
            can: BTreeMap<String, Can>,
        }
        optional {
            component: String,
            asked_at: Option<Timestamp>,
            expires_at: Option<Timestamp>,
            /// Why a person is asked.
            ask: String,
            policies: Option<PolicyCounts>,
            verdicts: Vec<PolicyVerdict>,
            answer: Option<crate::control::StepApprovalResponse>,
            /// Sentences that a reader must know: it ended with an error, it does not do everything.
            notes: Vec<String>,
            /// Resources that are not listed.
            omitted: u64,
            /// Nothing would change.
            noop: bool,
            terraform_version: String,
            /// Digests of earlier plans of the same part in this workflow, newest first: what `diff` takes.
            earlier: Vec<String>,
            /// The newest plan of the same part, where this one was replaced.
            replaced_by_step: String,
        }
    }

    pub struct PolicyVerdict {
        required {
            policy: String,
            /// `deny` or `warn`.
            severity: String,
            message: String,
        }
        optional {
            address: String,
        }
    }

    pub struct PlanResource {
        required {
            address: String,
            /// `create`, `update`, `replace`, `destroy`, `read`, `forget`, `import` or `move`.
            action: String,
        }
        optional {
            /// The module path, empty for the root; of an object in a cluster its namespace.
            module: String,
            /// `aws_s3_bucket`, or the kind of an object.
            r#type: String,
            name: String,
            provider: String,
            /// Why, as the end of a sentence.
            reason: String,
            previous_address: String,
            import_id: String,
            deposed: String,
            /// `destroy-first`, `create-first` or `forget`, of a replacement.
            replace: String,
            /// It would be destroyed or replaced, and usually holds data.
            holds_data: bool,
            attributes: Vec<PlanAttribute>,
            attributes_omitted: u64,
        }
    }

    pub struct PlanAttribute {
        required {
            path: String,
            before: PlanValue,
            after: PlanValue,
        }
        optional {
            /// It can't be changed in place.
            forces_replacement: bool,
            /// Of texts with several lines: what changed, line by line.
            hunks: Vec<PlanHunk>,
        }
    }

    pub struct PlanValue {
        required {
            /// `absent`, `value`, `sensitive` or `unknown` (known after apply).
            is: String,
        }
        optional {
            /// As JSON writes it.
            text: String,
            cut_chars: u64,
        }
    }

    pub struct PlanHunk {
        required {
            before_line: u64,
            after_line: u64,
            /// Each begins with ` `, `+` or `-`.
            lines: Vec<String>,
        }
        optional {}
    }

    pub struct PlanOutput {
        required {
            name: String,
            /// `create`, `update` or `destroy`.
            action: String,
        }
        optional {
            values: Vec<PlanAttribute>,
            values_omitted: u64,
        }
    }

    /// How a plan differs from another one of the same part.
    pub struct PlanDiff {
        required {
            digest: String,
            against: String,
            /// Nothing differs in what they would do.
            same: bool,
            /// Only in the newer one.
            added: Vec<PlanResource>,
            /// Only in the older one.
            removed: Vec<PlanResource>,
            /// In both, and other than it was: as the newer one has it.
            changed: Vec<PlanResource>,
        }
        optional {
            unchanged: u64,
        }
    }
}
