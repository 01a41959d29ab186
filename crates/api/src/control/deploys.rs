//! What is deployed to an install: its components, their deploys, its sandbox, its stack, and what it does by the clock.

use std::collections::BTreeMap;

use model::Timestamp;
use serde_json::{Map, Value};

use super::builds::CompositeStatus;
use super::components::Component;
use super::{Job, WorkflowStep};

lean! {
    /// Deploys a build of a component.
    pub struct CreateInstallDeploy {
        required {}
        optional {
            build_id: String,
            /// All that depends on the component, too.
            deploy_dependents: bool,
            /// Only shows what would change.
            plan_only: bool,
            /// The role that it is carried out with.
            role: String,
        }
    }

    /// One plan of a component, and what became of it.
    pub struct InstallDeploy {
        required {
            id: String,
            install_id: String,
            component_id: String,
            component_name: String,
            /// `sync-image`, `apply` or `teardown`.
            install_deploy_type: String,
            /// `queued`, `planning`, `pending-approval`, `executing`, `active`, `inactive`, `error`, and the like.
            status: String,
            created_at: Timestamp,
            created_by_id: String,
            updated_at: Timestamp,
            workflow_id: String,
        }
        optional {
            install_component_id: String,
            install_workflow_id: String,
            status_description: String,
            status_v2: Option<CompositeStatus>,
            build_id: String,
            component_config_version: u64,
            plan_only: bool,
            role: String,
            planned_at: Option<Timestamp>,
            applied_at: Option<Timestamp>,
            outputs: Map<String, Value>,
            runner_jobs: Vec<Job>,
            log_stream: Option<LogStreamRef>,
            policy_reports: Vec<PolicyReport>,
        }
    }

    pub struct LogStreamRef {
        required {
            id: String,
        }
        optional {}
    }

    /// One plan of the sandbox, and what became of it.
    pub struct InstallSandboxRun {
        required {
            id: String,
            install_id: String,
            /// `provision`, `reprovision` or `deprovision`.
            run_type: String,
            status: String,
            created_at: Timestamp,
            created_by_id: String,
            updated_at: Timestamp,
            workflow_id: String,
        }
        optional {
            install_workflow_id: String,
            status_description: String,
            status_v2: Option<CompositeStatus>,
            role: String,
            planned_at: Option<Timestamp>,
            applied_at: Option<Timestamp>,
            outputs: Map<String, Value>,
            runner_jobs: Vec<Job>,
            log_stream: Option<LogStreamRef>,
            policy_reports: Vec<PolicyReport>,
        }
    }

    /// A component as it is on an install.
    pub struct InstallComponent {
        required {
            id: String,
            install_id: String,
            component_id: String,
            /// `active`, `inactive`, or `pending` where it was never deployed.
            status: String,
            created_at: Timestamp,
            updated_at: Timestamp,
        }
        optional {
            status_description: String,
            /// Whether the install leaves it in.
            enabled: bool,
            /// The version of the app that is deployed.
            config_version: u64,
            /// The last look has found a difference, and nothing was deployed since.
            drifted: bool,
            component: Option<Component>,
            /// The newest.
            install_deploys: Vec<InstallDeploy>,
        }
    }

    /// What policies said about a step.
    pub struct PolicyReport {
        required {
            id: String,
            install_id: String,
            workflow_id: String,
            /// Name of the step.
            step: String,
            /// How many policies were asked.
            policy_count: u64,
            deny_count: u64,
            warn_count: u64,
            evaluated_at: Timestamp,
        }
        optional {
            component_name: String,
            violations: Vec<PolicyViolation>,
        }
    }

    pub struct PolicyViolation {
        required {
            policy_name: String,
            /// `deny` or `warn`.
            severity: String,
            message: String,
        }
        optional {
            /// What it is about.
            input_identity: String,
        }
    }

    /// The stack that the customer applies.
    pub struct InstallStack {
        required {
            id: String,
            install_id: String,
        }
        optional {
            /// Newest first.
            versions: Vec<InstallStackVersion>,
            install_stack_outputs: Option<InstallStackOutputs>,
        }
    }

    pub struct InstallStackVersion {
        required {
            id: String,
            install_id: String,
            composite_status: CompositeStatus,
            created_at: Timestamp,
        }
        optional {
            app_config_id: String,
            /// What the customer applies; of a local install, the command that starts its runner.
            contents: String,
            phone_home_id: String,
            phone_home_url: String,
        }
    }

    pub struct InstallStackOutputs {
        required {
            id: String,
        }
        optional {
            data_contents: Map<String, Value>,
        }
    }

    pub struct ForgetInstall {
        required {}
        optional {
            /// Though something is deployed, or a workflow is not over.
            force: bool,
        }
    }

    /// Something that an install does by the clock.
    pub struct InstallSchedule {
        required {
            /// `action` or `drift`.
            kind: String,
            cron: String,
            next_at: Timestamp,
        }
        optional {
            /// Of the action or the component; empty: the sandbox.
            name: String,
            last_at: Option<Timestamp>,
            /// What became of the last tick, where it started nothing.
            note: String,
            workflow_id: String,
        }
    }

    pub struct Runbook {
        required {
            id: String,
            app_id: String,
            name: String,
        }
        optional {
            description: String,
            labels: BTreeMap<String, String>,
            configs: Vec<RunbookConfig>,
        }
    }

    pub struct RunbookConfig {
        required {
            id: String,
            runbook_id: String,
        }
        optional {
            readme: String,
            inputs: Vec<RunbookInputConfig>,
            steps: Vec<RunbookStepConfig>,
        }
    }

    pub struct RunbookInputConfig {
        required {
            name: String,
        }
        optional {
            display_name: String,
            description: String,
            default: String,
            r#type: String,
            required: bool,
            sensitive: bool,
        }
    }

    pub struct RunbookStepConfig {
        required {
            name: String,
            r#type: String,
            idx: i64,
        }
        optional {
            component_name: String,
            action_name: String,
            command: String,
            inline_contents: String,
            role: String,
        }
    }

    /// A runbook that can be run on an install.
    pub struct InstallRunbook {
        required {
            id: String,
            install_id: String,
            runbook_id: String,
        }
        optional {
            status: String,
            runbook: Option<Runbook>,
            /// The newest.
            runs: Vec<InstallRunbookRun>,
        }
    }

    pub struct CreateRunbookRun {
        required {}
        optional {
            inputs: BTreeMap<String, String>,
            /// Plans need no person's approval.
            approve_all: bool,
            /// Only shows what would change.
            plan_only: bool,
        }
    }

    pub struct InstallRunbookRun {
        required {
            id: String,
            install_id: String,
            install_runbook_id: String,
            status: String,
            install_workflow_id: String,
            created_at: Timestamp,
            created_by_id: String,
            updated_at: Timestamp,
        }
        optional {
            status_description: String,
            /// Nanoseconds.
            execution_time: i64,
            steps: Vec<WorkflowStep>,
        }
    }
}
