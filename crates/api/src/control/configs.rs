//! Configs of an app: drafts, their sections, and versions. Names and shapes follow `control-api.md`.

use std::collections::BTreeMap;

use model::Timestamp;
use serde_json::Value;

/// Free keys with text.
pub type Labels = BTreeMap<String, String>;

lean! {
    /// What everything that was made once has.
    pub struct Stamp {
        required {
            id: String,
            created_by_id: String,
            created_at: Timestamp,
            updated_at: Timestamp,
        }
        optional {
            org_id: String,
            app_id: String,
            app_config_id: String,
        }
    }

    /// Fields that are absent stay as they are.
    pub struct UpdateApp {
        required {}
        optional {
            name: Option<String>,
            display_name: Option<String>,
            description: Option<String>,
            config_repo: Option<String>,
            config_directory: Option<String>,
            label_colors: Option<Labels>,
            slack_webhook_url: Option<String>,
        }
    }

    /// Begins a draft.
    pub struct CreateAppConfig {
        required {}
        optional {
            readme: String,
            cli_version: String,
            app_branch_id: String,
            intermediate_config_json: String,
            plan_only: bool,
            skip_notification: bool,
        }
    }

    /// `active` commits the draft, `error` abandons it.
    pub struct UpdateAppConfig {
        required {}
        optional {
            status: Option<String>,
            status_description: Option<String>,
            state: Option<String>,
            component_ids: Option<Vec<String>>,
        }
    }

    /// A whole app at once: what its files say, as `ferry apps validate` reads them, and the digests of the archives of its
    /// local sources, by directory.
    pub struct SyncApp {
        required {
            #[cfg_attr(feature = "schema", schema(value_type = Object))]
            config: Value,
        }
        optional {
            local_sources: Labels,
            cli_version: String,
            /// Only say what would change.
            plan_only: bool,
        }
    }

    /// What a sync did, or would do.
    pub struct SyncedApp {
        required {
            config: AppConfig,
            /// The active version was this one already.
            unchanged: bool,
        }
        optional {
            #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
            changes: Vec<Value>,
            /// Components and actions that the app has, and this config does not.
            removed: Vec<RemovedEntity>,
            /// One for each component: made now, or before.
            builds: Vec<super::Build>,
            #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
            warnings: Vec<Value>,
        }
    }

    /// A component or action that no file names any more.
    pub struct RemovedEntity {
        required {
            id: String,
            name: String,
            /// `component` or `action`.
            kind: String,
        }
        optional {}
    }

    pub struct UpdateAppConfigInstalls {
        required {}
        optional {
            #[serde(alias = "updateAll")]
            update_all: bool,
            #[serde(alias = "installIDs")]
            install_ids: Vec<String>,
        }
    }

    pub struct Empty {
        required {}
        optional {}
    }

    /// One version of an app, or a draft of one.
    pub struct AppConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            /// `pending`, `active`, `outdated` or `error`.
            status: String,
        }
        optional {
            status_description: String,
            version: u64,
            /// SHA-256 of its content.
            checksum: String,
            readme: String,
            cli_version: String,
            state: String,
            component_ids: Vec<String>,
            action_ids: Vec<String>,
            input: Option<AppInputConfig>,
            sandbox: Option<AppSandboxConfig>,
            runner: Option<AppRunnerConfig>,
            stack: Option<AppStackConfig>,
            permissions: Option<AppPermissionsConfig>,
            break_glass: Option<AppBreakGlassConfig>,
            policies: Option<AppPoliciesConfig>,
            secrets: Option<AppSecretsConfig>,
            operation_role_config: Option<AppOperationRoleConfig>,
            component_config_connections: Vec<super::ComponentConfigConnection>,
            action_workflow_configs: Vec<super::ActionWorkflowConfig>,
        }
    }

    pub struct AppGroupRequest {
        required {
            description: String,
            display_name: String,
        }
        optional {
            /// Place in the display; by name where all are equal.
            index: i64,
        }
    }

    pub struct AppInputRequest {
        required {
            description: String,
            display_name: String,
            group: String,
        }
        optional {
            index: i64,
            default: String,
            required: bool,
            sensitive: bool,
            /// `vendor` or `customer`.
            source: String,
            #[serde(rename = "type")]
            input_type: String,
        }
    }

    pub struct CreateAppInputConfig {
        required {
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            groups: BTreeMap<String, AppGroupRequest>,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            inputs: BTreeMap<String, AppInputRequest>,
        }
        optional {
            app_config_id: String,
        }
    }

    pub struct AppInputConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            input_groups: Vec<AppInputGroup>,
            inputs: Vec<AppInput>,
        }
    }

    pub struct AppInputGroup {
        required {
            id: String,
            name: String,
            index: i64,
        }
        optional {
            display_name: String,
            description: String,
        }
    }

    pub struct AppInput {
        required {
            id: String,
            name: String,
            index: i64,
            required: bool,
            sensitive: bool,
        }
        optional {
            display_name: String,
            description: String,
            group_id: String,
            group: Option<AppInputGroup>,
            /// Not shown where the input is sensitive.
            default: String,
            #[serde(rename = "type")]
            input_type: String,
            internal: bool,
            source: String,
            /// The values that it takes, where those are listed.
            options: Vec<String>,
            /// Bounds of a number.
            min: String,
            max: String,
            /// A regular expression that the whole value matches.
            pattern: String,
        }
    }

    /// A directory of a git repository.
    pub struct GitSource {
        required {
            repo: String,
            directory: String,
        }
        optional {
            branch: String,
            #[serde(rename = "gitRef")]
            git_ref: String,
            #[serde(rename = "pathFilter")]
            path_filter: String,
        }
    }

    pub struct CreateAppSandboxConfig {
        required {}
        optional {
            /// Older clients call them `sandbox_inputs`.
            #[serde(alias = "sandbox_inputs")]
            variables: Labels,
            env_vars: Labels,
            app_config_id: String,
            #[serde(rename = "type")]
            sandbox_type: String,
            terraform_version: String,
            runtime: String,
            pulumi_version: String,
            pulumi_config: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
            variables_files: Vec<String>,
            drift_schedule: String,
            operation_roles: Labels,
            max_auto_retries: i64,
            skip_noops: bool,
            auto_approve_on_policies_passing: bool,
            references: Vec<String>,
        }
    }

    pub struct AppSandboxConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            cloud_platform: String,
            #[serde(rename = "type")]
            sandbox_type: String,
            terraform_version: String,
            runtime: String,
            pulumi_version: String,
            pulumi_config: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
            variables: Labels,
            variables_files: Vec<String>,
            env_vars: Labels,
            drift_schedule: String,
            operation_roles: Labels,
            max_auto_retries: i64,
            skip_noops: bool,
            auto_approve_on_policies_passing: bool,
        }
    }

    pub struct CreateAppRunnerConfig {
        required {
            #[serde(rename = "type")]
            runner_type: String,
        }
        optional {
            app_config_id: String,
            env_vars: Labels,
            helm_driver: String,
            init_script_url: String,
            instance_type: String,
            public_api_url: String,
            runner_api_url: String,
        }
    }

    pub struct AppRunnerConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            app_runner_type: String,
        }
        optional {
            cloud_platform: String,
            env_vars: Labels,
            helm_driver: String,
            init_script: String,
            instance_type: String,
        }
    }

    pub struct CustomNestedStack {
        required {}
        optional {
            name: String,
            template_url: String,
            index: i64,
            parameters: Labels,
        }
    }

    pub struct CreateAppStackConfig {
        required {
            app_config_id: String,
            name: String,
            description: String,
            #[serde(rename = "type")]
            stack_type: String,
        }
        optional {
            vpc_nested_template_url: String,
            runner_nested_template_url: String,
            custom_nested_stacks: Vec<CustomNestedStack>,
        }
    }

    pub struct AppStackConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            name: String,
            description: String,
            #[serde(rename = "type")]
            stack_type: String,
        }
        optional {
            vpc_nested_template_url: String,
            runner_nested_template_url: String,
            custom_nested_stacks: Vec<CustomNestedStack>,
        }
    }

    pub struct RolePolicyConfig {
        required {}
        optional {
            name: String,
            managed_policy_name: String,
            contents: String,
            gcp_predefined_role: String,
            gcp_permissions: Vec<String>,
            azure_built_in_roles: Vec<String>,
            azure_actions: Vec<String>,
        }
    }

    pub struct RoleRequest {
        required {
            name: String,
            description: String,
            display_name: String,
        }
        optional {
            cloud_platform: String,
            enabled_in_stack: Option<bool>,
            permissions_boundary: String,
            policies: Vec<RolePolicyConfig>,
        }
    }

    /// A role of the customer's account. The name of the type is the dialect's; the role may be of any cloud.
    pub struct RoleConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            name: String,
        }
        optional {
            #[serde(rename = "type")]
            role_type: String,
            description: String,
            display_name: String,
            cloud_platform: String,
            permissions_boundary: String,
            policies: Vec<RolePolicyConfig>,
        }
    }

    pub struct CreateAppPermissionsConfig {
        required {
            app_config_id: String,
            provision_role: RoleRequest,
            maintenance_role: RoleRequest,
            deprovision_role: RoleRequest,
        }
        optional {
            custom_roles: Vec<RoleRequest>,
            break_glass_roles: Vec<RoleRequest>,
        }
    }

    pub struct AppPermissionsConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            aws_iam_roles: Vec<RoleConfig>,
            provision_aws_iam_role: Option<RoleConfig>,
            maintenance_aws_iam_role: Option<RoleConfig>,
            deprovision_aws_iam_role: Option<RoleConfig>,
            custom_aws_iam_roles: Vec<RoleConfig>,
        }
    }

    pub struct CreateAppBreakGlassConfig {
        required {
            app_config_id: String,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            roles: Vec<RoleRequest>,
        }
        optional {}
    }

    pub struct AppBreakGlassConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            aws_iam_roles: Vec<RoleConfig>,
        }
    }

    pub struct PolicyRequest {
        required {
            contents: String,
            #[serde(rename = "type")]
            policy_type: String,
        }
        optional {
            name: String,
            description: String,
            engine: String,
            components: Vec<String>,
        }
    }

    pub struct CreateAppPoliciesConfig {
        required {
            app_config_id: String,
        }
        optional {
            policies: Vec<PolicyRequest>,
        }
    }

    pub struct PolicyConfig {
        required {
            id: String,
            contents: String,
            #[serde(rename = "type")]
            policy_type: String,
        }
        optional {
            name: String,
            engine: String,
            components: Vec<String>,
        }
    }

    pub struct AppPoliciesConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            policies: Vec<PolicyConfig>,
        }
    }

    pub struct SyncTarget {
        required {
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            namespaces: Vec<String>,
            name: String,
            key: String,
        }
        optional {}
    }

    pub struct SecretRequest {
        required {
            name: String,
            display_name: String,
            description: String,
        }
        optional {
            required: bool,
            auto_generate: bool,
            format: String,
            default: String,
            kubernetes_sync: Option<bool>,
            kubernetes_secret_namespace: String,
            kubernetes_secret_name: String,
            kubernetes_sync_targets: Vec<SyncTarget>,
        }
    }

    pub struct CreateAppSecretsConfig {
        required {
            app_config_id: String,
        }
        optional {
            secrets: Vec<SecretRequest>,
        }
    }

    /// A secret of the customer's account; its default is never shown.
    pub struct SecretConfig {
        required {
            id: String,
            name: String,
        }
        optional {
            display_name: String,
            description: String,
            required: bool,
            auto_generate: bool,
            format: String,
            kubernetes_sync: bool,
            kubernetes_secret_namespace: String,
            kubernetes_secret_name: String,
            kubernetes_sync_targets: Vec<SyncTarget>,
        }
    }

    pub struct AppSecretsConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            secrets: Vec<SecretConfig>,
        }
    }

    pub struct OperationRoleRule {
        required {
            principal_type: String,
            operation: String,
            role: String,
        }
        optional {
            principal_name: String,
        }
    }

    pub struct OperationRoleRuleRequest {
        required {
            /// `nuon::sandbox`, `nuon::component:NAME` or `nuon::action:NAME`.
            principal: String,
            operation: String,
            role: String,
        }
        optional {}
    }

    pub struct CreateAppOperationRoleConfig {
        required {
            app_config_id: String,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            rules: Vec<OperationRoleRuleRequest>,
        }
        optional {}
    }

    pub struct AppOperationRoleConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
        }
        optional {
            rules: Vec<OperationRoleRule>,
        }
    }

    /// A value that all installs of an app see; the value itself is never shown.
    pub struct AppVariable {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            name: String,
            length: u64,
        }
        optional {}
    }

    pub struct CreateAppVariable {
        required {
            name: String,
            value: String,
        }
        optional {}
    }
}
