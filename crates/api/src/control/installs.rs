//! What an install says about itself: labels, approvals, and which components are in.

use std::collections::BTreeMap;

use model::Timestamp;

use super::configs::Labels;

lean! {
    pub struct InstallMetadata {
        required {}
        optional {
            /// Who keeps the install: `nuon/cli/install-config` for one that is kept in a file, `nuon/dashboard`, or nobody.
            managed_by: String,
        }
    }

    /// What an install says about itself.
    pub struct InstallConfig {
        required {
            id: String,
            install_id: String,
            org_id: String,
            /// `prompt` or `approve-all`.
            approval_option: String,
            created_by_id: String,
            created_at: Timestamp,
            updated_at: Timestamp,
        }
        optional {
            /// Components that were switched on or off; the others are as the app says.
            component_toggles: BTreeMap<String, bool>,
            /// The install's own labels, without those of the app.
            labels: Labels,
        }
    }

    /// What is absent stays as it is.
    pub struct UpdateInstallConfig {
        required {}
        optional {
            /// `prompt` or `approve-all`.
            approval_option: String,
            component_toggles: BTreeMap<String, bool>,
            /// All labels of the install's own.
            labels: Option<Labels>,
            /// Not carried out yet, and refused.
            vpc_nested_template_url: String,
            /// Not carried out yet, and refused.
            runner_nested_template_url: String,
            /// Not carried out yet, and refused.
            custom_nested_stacks: Vec<serde_json::Value>,
        }
    }

    /// What an install lays over the settings of one component. Templates are rendered.
    pub struct ComponentOverride {
        required {}
        optional {
            /// YAML over the values of a chart.
            helm_values: Option<String>,
            /// HCL, or a JSON object, over the variables of a Terraform module.
            tf_vars: Option<String>,
        }
    }

    /// Labels to add, or to change.
    pub struct AddInstallLabels {
        required {
            labels: Labels,
        }
        optional {}
    }

    pub struct RemoveInstallLabels {
        required {
            keys: Vec<String>,
        }
        optional {}
    }

    pub struct ToggleInstallComponent {
        required {
            enabled: bool,
        }
        optional {
            /// Only shows what would change.
            plan_only: bool,
        }
    }
}
