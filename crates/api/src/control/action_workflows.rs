//! Actions of a synced app, which the dialect calls action workflows, and their runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Job;
use super::configs::{GitSource, Labels, Stamp};
use super::installs::ComponentOverride;

lean! {
    pub struct CreateActionWorkflow {
        required {}
        optional {
            name: String,
            labels: Labels,
        }
    }

    pub struct UpdateActionWorkflow {
        required {}
        optional {
            name: Option<String>,
            labels: Option<Labels>,
        }
    }

    pub struct ActionWorkflow {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            name: String,
            status: String,
        }
        optional {
            status_description: String,
            labels: Labels,
            config_count: u64,
            configs: Vec<ActionWorkflowConfig>,
        }
    }

    pub struct ActionStepRequest {
        required {
            name: String,
        }
        optional {
            command: String,
            inline_contents: String,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
            references: Vec<String>,
        }
    }

    pub struct ActionTriggerRequest {
        required {
            #[serde(rename = "type")]
            trigger_type: String,
        }
        optional {
            component_name: String,
            cron_schedule: String,
            index: i64,
        }
    }

    pub struct CreateActionWorkflowConfig {
        required {
            app_config_id: String,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            steps: Vec<ActionStepRequest>,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            triggers: Vec<ActionTriggerRequest>,
        }
        optional {
            /// Nanoseconds.
            timeout: i64,
            dependencies: Vec<String>,
            references: Vec<String>,
            break_glass_role_arn: String,
            role: String,
            enable_kube_config: Option<bool>,
            kubernetes_context: String,
        }
    }

    pub struct ActionStepConfig {
        required {
            id: String,
            name: String,
            idx: i64,
        }
        optional {
            command: String,
            inline_contents: String,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct ActionTriggerConfig {
        required {
            id: String,
            #[serde(rename = "type")]
            trigger_type: String,
            index: i64,
        }
        optional {
            component_id: String,
            cron_schedule: String,
        }
    }

    /// What configures an action in one version of the app.
    pub struct ActionWorkflowConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            action_workflow_id: String,
            /// Nanoseconds.
            timeout: i64,
        }
        optional {
            steps: Vec<ActionStepConfig>,
            triggers: Vec<ActionTriggerConfig>,
            component_dependency_ids: Vec<String>,
            role: String,
            break_glass_role_arn: String,
            kubernetes_context_name: String,
        }
    }

    pub struct CreateActionWorkflowRun {
        required {}
        optional {
            /// The action as one config has it.
            action_workflow_config_id: String,
            /// Name of the action, instead: as the config has it that the install is at.
            action: String,
            role: String,
            run_env_vars: Labels,
            /// Values that must not appear in the log, beside the sensitive ones of the install.
            secrets: Vec<String>,
        }
    }

    /// What a mutation that starts work answers.
    pub struct WorkflowStarted {
        required {
            workflow_id: String,
        }
        optional {}
    }

    /// One run of an action on an install.
    pub struct ActionRun {
        required {
            id: String,
            install_id: String,
            created_by_id: String,
            created_at: model::Timestamp,
            updated_at: model::Timestamp,
            action_workflow_config_id: String,
            status: String,
            trigger_type: String,
        }
        optional {
            install_action_workflow_id: String,
            status_description: String,
            workflow_id: String,
            /// Nanoseconds.
            execution_time: i64,
            #[cfg_attr(feature = "schema", schema(value_type = Object))]
            outputs: Map<String, Value>,
            /// The job that it is.
            job: Option<Box<Job>>,
        }
    }

    /// An action on an install, with its latest runs.
    pub struct InstallActionWorkflow {
        required {
            id: String,
            install_id: String,
            action_workflow_id: String,
            status: String,
        }
        optional {
            action_workflow: Option<ActionWorkflow>,
            runs: Vec<ActionRun>,
        }
    }

    /// The inputs of an install: what was given, and the app's defaults. Sensitive values are not shown.
    pub struct InstallInputs {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            install_id: String,
            version: u64,
        }
        optional {
            values: Labels,
            redacted_values: Labels,
            /// What the install lays over settings of its components, by the component's name.
            component_overrides: BTreeMap<String, ComponentOverride>,
            /// What deploys the change.
            workflow_id: String,
        }
    }

    pub struct UpdateInstallInputs {
        required {
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            inputs: Labels,
        }
        optional {
            /// What the install lays over settings of its components, by the component's name. What is not named stays; an empty text
            /// is removed.
            component_overrides: BTreeMap<String, ComponentOverride>,
            /// Always so: what depends on what changes is looked at, too.
            deploy_dependents: bool,
            role: String,
            /// Only changes them; nothing is deployed.
            no_deploy: bool,
        }
    }

    /// What a component or action would receive on an install. Sensitive values are masked.
    pub struct Rendered {
        required {
            name: String,
            /// `component` or `action`.
            kind: String,
            #[cfg_attr(feature = "schema", schema(value_type = Object))]
            rendered: Value,
        }
        optional {
            /// What could not be rendered yet, and why.
            problems: Vec<RenderProblem>,
        }
    }

    pub struct RenderProblem {
        required {
            /// Where in the component or action.
            path: String,
            message: String,
        }
        optional {}
    }
}
