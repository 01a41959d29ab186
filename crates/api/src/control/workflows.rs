//! Workflows: what is done to an install, step by step.

use std::collections::BTreeMap;

use model::Timestamp;
use serde_json::{Map, Value};

use super::builds::CompositeStatus;
use super::installs::{InstallMetadata, UpdateInstallConfig};

lean! {
    /// Starts a workflow on an install.
    pub struct CreateWorkflow {
        required {
            /// `provision`, `reprovision`, `reprovision_sandbox`, `deprovision`, `deprovision_sandbox`, `deploy_components`,
            /// `manual_deploy`, `teardown_component`, `teardown_components`, `input_update`, `action_workflow_run`,
            /// `runbook_run`, `sync_secrets`, `drift_run` or `drift_run_reprovision_sandbox`.
            r#type: String,
        }
        optional {
            /// The component that it is about.
            component: String,
            /// All that depends on the component, too.
            dependents: bool,
            /// `teardown_component`: those that need the component are torn down first.
            with_dependents: bool,
            /// `teardown_component`: the component goes alone, though others need it.
            force: bool,
            /// Deploys again what was deployed last, whatever was synced or set since: the way back from drift.
            deployed: bool,
            /// Only these, for `deploy_components`; all where none is named.
            components: Vec<String>,
            /// Inputs that have changed, for `input_update`.
            inputs: Vec<String>,
            action: String,
            runbook: String,
            /// Only the sandbox.
            skip_components: bool,
            /// Only shows what would change.
            plan_only: bool,
            /// Plans need no person's approval.
            approve_all: bool,
            /// What does not need the part that failed goes on.
            continue_on_error: bool,
            /// Another version of the app than the install is at: a rollback, where it is an older one.
            config_version: Option<u64>,
            /// Environment of an action.
            run_env_vars: BTreeMap<String, String>,
            /// What a runbook asks for.
            runbook_inputs: BTreeMap<String, String>,
            /// The role that its steps are carried out with, instead of the one that the app says.
            role: String,
        }
    }

    pub struct Workflow {
        required {
            id: String,
            r#type: String,
            /// Derived from the steps: it can't say `success` in the middle.
            status: CompositeStatus,
            owner_id: String,
            owner_type: String,
            name: String,
            created_by_id: String,
            created_at: Timestamp,
            updated_at: Timestamp,
            /// `prompt` or `approve-all`.
            approval_option: String,
        }
        optional {
            owner_name: String,
            plan_only: bool,
            finished: bool,
            started_at: Option<Timestamp>,
            finished_at: Option<Timestamp>,
            /// Nanoseconds.
            execution_time: i64,
            /// `abort` or `continue`.
            step_error_behavior: String,
            /// The version of the app that it deploys; 0 where it works with what was deployed before (drift, teardown).
            config_version: u64,
            metadata: Map<String, Value>,
            steps: Vec<WorkflowStep>,
        }
    }

    /// One attempt at a step.
    pub struct WorkflowStep {
        required {
            id: String,
            workflow_id: String,
            name: String,
            idx: u64,
            group_idx: u64,
            group_retry_idx: u64,
            /// `system`, `user`, `approval`, `skipped` or `hidden`.
            execution_type: String,
            status: CompositeStatus,
            created_at: Timestamp,
        }
        optional {
            /// Steps that must be done before, by `idx`.
            after: Vec<u64>,
            retryable: bool,
            skippable: bool,
            retried: bool,
            finished: bool,
            started_at: Option<Timestamp>,
            finished_at: Option<Timestamp>,
            /// Nanoseconds.
            execution_time: i64,
            step_target_type: String,
            step_target_id: String,
            owner_id: String,
            owner_type: String,
            runner_job_id: String,
            approval: Option<StepApproval>,
            /// What a plan would change.
            changes: Option<PlanChanges>,
            /// What policies said about it, in numbers.
            policies: Option<PolicyCounts>,
            /// The role that it is carried out with.
            role: String,
        }
    }

    pub struct PolicyCounts {
        required {
            asked: u64,
            denied: u64,
            warned: u64,
        }
        optional {}
    }

    pub struct PlanChanges {
        required {
            create: u64,
            update: u64,
            replace: u64,
            destroy: u64,
            outputs: u64,
        }
        optional {
            import: u64,
            moved: u64,
            forget: u64,
            other: u64,
            /// 1 where nothing changes in the customer's account, and only what is recorded here does.
            recorded: u64,
        }
    }

    /// A plan that waits, or waited, for an approval. Its id is the digest of the plan.
    pub struct StepApproval {
        required {
            id: String,
            workflow_step_id: String,
            r#type: String,
        }
        optional {
            created_at: Option<Timestamp>,
            response: Option<StepApprovalResponse>,
        }
    }

    pub struct StepApprovalResponse {
        required {
            id: String,
            r#type: String,
        }
        optional {
            note: String,
            created_by_id: String,
            created_at: Option<Timestamp>,
        }
    }

    pub struct CreateStepApprovalResponse {
        required {
            /// `approve`, `deny`, `deny-skip-current`, `deny-skip-current-and-dependents` or `retry`.
            response_type: String,
        }
        optional {
            note: String,
        }
    }

    pub struct UpdateWorkflow {
        required {
            /// `approve-all`: plans need no person's approval from now on.
            approval_option: String,
        }
        optional {}
    }

    pub struct StepRetried {
        required {
            workflow_id: String,
            retryable: bool,
        }
        optional {}
    }

    /// The state of an install, as templates see it.
    pub struct InstallState {
        required {
            version: u64,
            /// Sensitive values are masked.
            state: Value,
        }
        optional {}
    }

    /// A version of an install's state.
    pub struct InstallStateVersion {
        required {
            version: u64,
            /// What changed with it.
            parts: Vec<String>,
            created_at: Timestamp,
        }
        optional {
            workflow_id: String,
        }
    }

    pub struct DeployAll {
        required {}
        optional {
            plan_only: bool,
            role: String,
            /// Only the sandbox.
            skip_components: bool,
            /// Teardown of one component: those that need it are torn down first.
            with_dependents: bool,
            /// Teardown of one component: it goes alone, though others need it.
            force: bool,
        }
    }

    /// What an install says about itself.
    pub struct UpdateInstall {
        required {}
        optional {
            /// Another name.
            name: String,
            /// `prompt` or `approve-all`.
            approval_option: String,
            /// Components that are switched on or off.
            component_toggles: BTreeMap<String, bool>,
            /// All labels of the install's own.
            labels: Option<BTreeMap<String, String>>,
            metadata: Option<InstallMetadata>,
            /// The same, as the dialect has it.
            install_config: Option<UpdateInstallConfig>,
        }
    }
}
