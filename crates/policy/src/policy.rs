//! What a policy is.

use serde::{Deserialize, Serialize};

use crate::Subject;

/// The packages whose rules are looked at: the dialect's, and our own.
pub const PACKAGES: [&str; 2] = ["nuon", "ferry"];

/// A policy as it stands in a job's spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub name: String,
    pub kind: PolicyKind,
    /// Rego.
    pub contents: String,
}

/// What a policy looks at; the `type` of an app's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    KubernetesCluster,
    TerraformModule,
    HelmChart,
    KubernetesManifest,
    DockerBuild,
    ContainerImage,
    Pulumi,
    Sandbox,
    RunnerJobTerraformDeploy,
    RunnerJobHelmDeploy,
    RunnerJobActionWorkflow,
}

impl PolicyKind {
    pub const ALL: [Self; 11] = [
        Self::KubernetesCluster,
        Self::TerraformModule,
        Self::HelmChart,
        Self::KubernetesManifest,
        Self::DockerBuild,
        Self::ContainerImage,
        Self::Pulumi,
        Self::Sandbox,
        Self::RunnerJobTerraformDeploy,
        Self::RunnerJobHelmDeploy,
        Self::RunnerJobActionWorkflow,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KubernetesCluster => "kubernetes_cluster",
            Self::TerraformModule => "terraform_module",
            Self::HelmChart => "helm_chart",
            Self::KubernetesManifest => "kubernetes_manifest",
            Self::DockerBuild => "docker_build",
            Self::ContainerImage => "container_image",
            Self::Pulumi => "pulumi",
            Self::Sandbox => "sandbox",
            Self::RunnerJobTerraformDeploy => "runner_job_terraform_deploy",
            Self::RunnerJobHelmDeploy => "runner_job_helm_deploy",
            Self::RunnerJobActionWorkflow => "runner_job_action_workflow",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether its policies are Rego and evaluated here; the others are Kyverno's, which the cluster enforces.
    pub const fn is_rego(self) -> bool {
        !matches!(
            self,
            Self::KubernetesCluster
                | Self::RunnerJobTerraformDeploy
                | Self::RunnerJobHelmDeploy
                | Self::RunnerJobActionWorkflow
        )
    }

    /// Whether the policy is one of a component, so that `components` says which.
    pub const fn is_of_components(self) -> bool {
        self.is_rego() && !matches!(self, Self::Sandbox)
    }

    /// Whether such a policy can judge this.
    pub const fn judges(self, subject: &Subject) -> bool {
        match self {
            Self::TerraformModule | Self::Pulumi | Self::Sandbox => matches!(subject, Subject::Plan(_)),
            Self::HelmChart | Self::KubernetesManifest => matches!(subject, Subject::Objects(_)),
            Self::DockerBuild | Self::ContainerImage => matches!(subject, Subject::Image { .. }),
            Self::KubernetesCluster
            | Self::RunnerJobTerraformDeploy
            | Self::RunnerJobHelmDeploy
            | Self::RunnerJobActionWorkflow => false,
        }
    }
}

/// Whether a policy of an app's files is evaluated here, by its `type` and `engine`. Where the engine is not said, the type
/// decides.
pub fn is_rego(kind: &str, engine: Option<&str>) -> bool {
    PolicyKind::parse(kind).is_some_and(PolicyKind::is_rego) && engine.is_none_or(|engine| engine == "opa")
}
