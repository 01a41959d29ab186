//! What Ferry knows about each type of job, in one table.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RunnerKind;

/// A group has its own slots on a runner, so that a long deploy never holds up a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum JobGroup {
    HealthChecks,
    /// Copies of artifacts into the install's own registry.
    Sync,
    Build,
    Deploy,
    Sandbox,
    /// What is done to the runner itself, such as a job that only waits.
    Operations,
    Actions,
}

impl JobGroup {
    pub const ALL: [Self; 7] =
        [Self::HealthChecks, Self::Sync, Self::Build, Self::Deploy, Self::Sandbox, Self::Operations, Self::Actions];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HealthChecks => "health-checks",
            Self::Sync => "sync",
            Self::Build => "build",
            Self::Deploy => "deploy",
            Self::Sandbox => "sandbox",
            Self::Operations => "operations",
            Self::Actions => "actions",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|g| g.as_str() == text)
    }

    /// How many jobs of the group a new runner takes at a time; 0 = it takes none.
    pub const fn slots(self, runner: RunnerKind) -> u32 {
        match (self, runner) {
            (Self::HealthChecks | Self::Operations, _) => 1,
            (Self::Sync, _) => 2,
            (Self::Build, RunnerKind::Build) => 2,
            (Self::Deploy | Self::Actions, RunnerKind::Install) => 4,
            (Self::Sandbox, RunnerKind::Install) => 1,
            (Self::Build, RunnerKind::Install) => 0,
            (Self::Deploy | Self::Actions | Self::Sandbox, RunnerKind::Build) => 0,
        }
    }
}

impl fmt::Display for JobGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a job is tried again when its execution vanished, so that nobody knows how far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    /// It changes nothing, or adds what a second try does not add twice, like an artifact that is named by its content.
    Always,
    /// Its plans change nothing; its applies do.
    Plans,
    /// A person decides.
    Never,
}

/// What is the same for all jobs of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobFacts {
    /// In the API, the database and the log.
    pub name: &'static str,
    pub group: JobGroup,
    pub retried: Retried,
    /// How long it may run where nobody says otherwise.
    pub timeout_s: u64,
    /// From the interrupt to the kill.
    pub grace_s: u64,
}

macro_rules! job_types {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $group:ident, $retried:ident, $timeout_s:expr, $grace_s:expr;)*) => {
        /// What a job does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum JobType {
            $($(#[$doc])* $variant,)*
        }

        impl JobType {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            pub const fn facts(self) -> JobFacts {
                match self {
                    $(Self::$variant => JobFacts {
                        name: $name,
                        group: JobGroup::$group,
                        retried: Retried::$retried,
                        timeout_s: $timeout_s,
                        grace_s: $grace_s,
                    },)*
                }
            }
        }
    };
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// A script that is interrupted.
const SCRIPT: u64 = 10;
/// Terraform saves its state and frees its lock; Helm records what became of its release.
const TERRAFORM: u64 = 2 * MINUTE;

job_types! {
    // variant                = name,                       group,        retried, timeout,       grace
    /// Waits, then finishes: for tests, benches and a first look. The timeout is for the longest wait.
    Noop                      = "noop",                      Operations,   Always,  2 * HOUR,      SCRIPT;
    HealthCheck               = "health-check",              HealthChecks, Always,  5 * MINUTE,    SCRIPT;
    ActionsWorkflow           = "actions-workflow",          Actions,      Never,   5 * MINUTE,    SCRIPT;
    TerraformModuleBuild      = "terraform-module-build",    Build,        Always,  15 * MINUTE,   SCRIPT;
    HelmChartBuild            = "helm-chart-build",          Build,        Always,  5 * MINUTE,    SCRIPT;
    KubernetesManifestBuild   = "kubernetes-manifest-build", Build,        Always,  5 * MINUTE,    SCRIPT;
    DockerBuild               = "docker-build",              Build,        Always,  HOUR,          SCRIPT;
    ContainerImageBuild       = "container-image-build",     Build,        Always,  15 * MINUTE,   SCRIPT;
    OciSync                   = "oci-sync",                  Sync,         Always,  15 * MINUTE,   SCRIPT;
    TerraformDeploy           = "terraform-deploy",          Deploy,       Plans,   HOUR,          TERRAFORM;
    HelmChartDeploy           = "helm-chart-deploy",         Deploy,       Plans,   30 * MINUTE,   TERRAFORM;
    KubernetesManifestDeploy  = "kubernetes-manifest-deploy", Deploy,      Plans,   15 * MINUTE,   SCRIPT;
    /// An image that runs as a Kubernetes Job. Stopping it deletes the Job and waits for its pods.
    JobDeploy                 = "job-deploy",                Deploy,       Plans,   30 * MINUTE,   MINUTE;
    SandboxTerraform          = "sandbox-terraform",         Sandbox,      Plans,   HOUR,          TERRAFORM;
    /// Brings secrets from the customer's store to Kubernetes: what is there already is not written again.
    SandboxSyncSecrets        = "sandbox-sync-secrets",      Sync,         Always,  10 * MINUTE,   SCRIPT;
}

impl JobType {
    /// The longest that any of them takes to end once it is interrupted: what stops a runner waits at least as long.
    pub const LONGEST_GRACE_S: u64 = TERRAFORM;
    /// How often a job that may be tried again is tried.
    pub const ATTEMPTS: u32 = 3;

    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == text)
    }

    pub const fn group(self) -> JobGroup {
        self.facts().group
    }

    /// Whether an execution that vanished is followed by another one.
    pub fn may_be_retried(self, operation: &str) -> bool {
        match self.facts().retried {
            Retried::Always => true,
            Retried::Plans => operation.starts_with("create-"),
            Retried::Never => false,
        }
    }
}

impl fmt::Display for JobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_whole() {
        for job_type in JobType::ALL {
            let facts = job_type.facts();
            assert_eq!(JobType::parse(facts.name), Some(job_type));
            assert_eq!(serde_json::to_value(job_type).expect("json"), facts.name);
            assert!(facts.grace_s <= JobType::LONGEST_GRACE_S, "{job_type}");
            assert!(facts.timeout_s > facts.grace_s, "{job_type}");
            let takes = [RunnerKind::Build, RunnerKind::Install].map(|kind| facts.group.slots(kind));
            assert!(takes.iter().any(|slots| *slots > 0), "no runner takes a {job_type}");
        }
        for group in JobGroup::ALL {
            assert_eq!(JobGroup::parse(group.as_str()), Some(group));
            assert_eq!(serde_json::to_value(group).expect("json"), group.as_str());
        }
    }
}
