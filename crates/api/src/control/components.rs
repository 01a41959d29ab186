//! Components and their configs. Names and shapes follow `control-api.md`.

use super::configs::{GitSource, Labels, Stamp};

lean! {
    pub struct CreateComponent {
        required {
            name: String,
        }
        optional {
            var_name: String,
            labels: Labels,
            dependencies: Vec<String>,
        }
    }

    pub struct UpdateComponent {
        required {
            name: String,
        }
        optional {
            var_name: Option<String>,
            labels: Option<Labels>,
            dependencies: Option<Vec<String>>,
        }
    }

    pub struct Component {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            name: String,
            status: String,
            #[serde(rename = "type")]
            component_type: String,
            resolved_var_name: String,
        }
        optional {
            status_description: String,
            var_name: String,
            labels: Labels,
            dependencies: Vec<String>,
            config_versions: u64,
        }
    }

    /// What the requests of all types of components have.
    pub struct ComponentConfigBase {
        required {}
        optional {
            app_config_id: String,
            checksum: String,
            dependencies: Vec<String>,
            references: Vec<String>,
            build_timeout: String,
            deploy_timeout: String,
            drift_schedule: String,
            kubernetes_context: String,
            max_auto_retries: i64,
            skip_noops: bool,
            auto_approve_on_policies_passing: bool,
            toggleable: bool,
            default_enabled: bool,
            operation_roles: Labels,
        }
    }

    pub struct CreateTerraformModule {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            variables: Labels,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            env_vars: Labels,
        }
        optional {
            version: String,
            variables_files: Vec<String>,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct TerraformModule {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
        }
        optional {
            version: String,
            variables: Labels,
            variables_files: Vec<String>,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct HelmRepo {
        required {
            chart: String,
            repo_url: String,
        }
        optional {
            version: String,
        }
    }

    pub struct CreateHelmChart {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
            chart_name: String,
            #[serde(deserialize_with = "crate::control::null_is_nothing")]
            values: Labels,
        }
        optional {
            namespace: String,
            storage_driver: String,
            values_files: Vec<String>,
            helm_repo_config: Option<HelmRepo>,
            take_ownership: bool,
            skip_crds: bool,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    /// What the dialect keeps of a chart in one more place.
    pub struct HelmConfig {
        required {
            chart_name: String,
        }
        optional {
            helm_repo_config: Option<HelmRepo>,
            namespace: String,
            storage_driver: String,
            values: Labels,
            values_files: Vec<String>,
            take_ownership: bool,
            skip_crds: bool,
        }
    }

    pub struct HelmChart {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
            chart_name: String,
        }
        optional {
            namespace: String,
            storage_driver: String,
            values: Labels,
            values_files: Vec<String>,
            take_ownership: bool,
            skip_crds: bool,
            helm_config_json: Option<HelmConfig>,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct Kustomize {
        required {}
        optional {
            path: String,
            patches: Vec<String>,
            enable_helm: bool,
            load_restrictor: String,
        }
    }

    pub struct CreateKubernetesManifest {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
        }
        optional {
            manifest: String,
            kustomize: Option<Kustomize>,
            namespace: String,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct KubernetesManifest {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
        }
        optional {
            manifest: String,
            kustomize: Option<Kustomize>,
            namespace: String,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct CreateDockerBuild {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
            dockerfile: String,
        }
        optional {
            target: String,
            build_args: Vec<String>,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct DockerBuild {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
            dockerfile: String,
        }
        optional {
            target: String,
            build_args: Vec<String>,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct EcrImage {
        required {}
        optional {
            aws_region: String,
            iam_role_arn: String,
        }
    }

    pub struct GarImage {
        required {}
        optional {
            gcp_project_id: String,
            gcp_region: String,
            service_account_email: String,
            workload_identity_provider: String,
        }
    }

    pub struct AcrImage {
        required {}
        optional {
            registry_url: String,
            tenant_id: String,
            client_id: String,
        }
    }

    pub struct CreateExternalImage {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
            image_url: String,
        }
        optional {
            tag: String,
            update_policy: String,
            aws_ecr_image_config: Option<EcrImage>,
            gcp_gar_image_config: Option<GarImage>,
            azure_acr_image_config: Option<AcrImage>,
        }
    }

    pub struct ExternalImage {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
            image_url: String,
        }
        optional {
            tag: String,
            update_policy: String,
            aws_ecr_image_config: Option<EcrImage>,
            gcp_gar_image_config: Option<GarImage>,
            azure_acr_image_config: Option<AcrImage>,
        }
    }

    pub struct CreateJob {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
            image_url: String,
            tag: String,
        }
        optional {
            cmd: Vec<String>,
            args: Vec<String>,
            env_vars: Labels,
        }
    }

    pub struct JobConfig {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
            image_url: String,
            tag: String,
        }
        optional {
            cmd: Vec<String>,
            args: Vec<String>,
            env_vars: Labels,
        }
    }

    pub struct CreatePulumi {
        required {
            #[serde(flatten)]
            base: ComponentConfigBase,
            runtime: String,
        }
        optional {
            version: String,
            config: Labels,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    pub struct Pulumi {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_config_connection_id: String,
            runtime: String,
        }
        optional {
            version: String,
            config: Labels,
            env_vars: Labels,
            public_git_vcs_config: Option<GitSource>,
            connected_github_vcs_config: Option<GitSource>,
        }
    }

    /// What configures a component in one version of the app.
    pub struct ComponentConfigConnection {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_id: String,
            component_name: String,
            #[serde(rename = "type")]
            component_type: String,
            version: u64,
        }
        optional {
            app_config_version: u64,
            checksum: String,
            component_dependency_ids: Vec<String>,
            references: Vec<String>,
            build_timeout: String,
            deploy_timeout: String,
            drift_schedule: String,
            kubernetes_context_name: String,
            max_auto_retries: i64,
            skip_noops: bool,
            auto_approve_on_policies_passing: bool,
            toggleable: bool,
            default_enabled: bool,
            operation_roles: Labels,
            terraform_module: Option<TerraformModule>,
            helm: Option<HelmChart>,
            kubernetes_manifest: Option<KubernetesManifest>,
            docker_build: Option<DockerBuild>,
            external_image: Option<ExternalImage>,
            job: Option<JobConfig>,
            pulumi: Option<Pulumi>,
        }
    }
}
