//! A job's complete input: rendered, immutable, named by its digest. The runner makes no choice that it leaves open.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::{BuildSpec, Credentials, SyncSpec};
use crate::deploy::{Deploy, DeployOperation, SealedValue};
use crate::kubernetes::{ClusterSpec, HelmSpec, ManifestSource, ManifestSpec, Pulls, RunSpec};
use crate::secrets::SecretsSpec;
use crate::terraform::{Module, TerraformSpec};
use crate::{AppId, Digest, InstallId, JobId, JobType, OrgId, TraceContext, constants};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    pub org_id: OrgId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<InstallId>,
    pub job_id: JobId,
    pub timeout_s: u64,
    /// From the interrupt to the kill.
    pub grace_s: u64,
    #[serde(default)]
    pub limits: Limits,
    /// Values that must not appear in the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Values that stand as placeholders in `work`: they are sealed with the install's key, and only the executor can fill them in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<SealedValue>,
    /// The cluster that the job works on, or that its programs may reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSpec>,
    /// The app's secrets in the customer's store: their values must not be seen in the log, nor in what failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub store_secrets: Vec<String>,
    /// What pods of the job may pull from the control plane's registry, where the install has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulls: Option<Pulls>,
    /// What the job is a part of, where it is traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    pub work: Work,
}

/// Its name alone: secrets stand in it, in more than one place.
impl std::fmt::Debug for JobSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobSpec({})", self.job_id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Work {
    /// Sleeps, then finishes: for tests, benches and a first look.
    Noop {
        #[serde(default)]
        sleep_ms: u64,
    },
    HealthCheck {},
    ActionsWorkflow(ActionSpec),
    Build(Box<BuildSpec>),
    OciSync(SyncSpec),
    TerraformDeploy(Box<TerraformSpec>),
    HelmChartDeploy(Box<HelmSpec>),
    KubernetesManifestDeploy(Box<ManifestSpec>),
    JobDeploy(Box<RunSpec>),
    SandboxTerraform(Box<TerraformSpec>),
    SandboxSyncSecrets(Box<SecretsSpec>),
}

impl Work {
    pub const fn job_type(&self) -> JobType {
        match self {
            Self::Noop { .. } => JobType::Noop,
            Self::HealthCheck {} => JobType::HealthCheck,
            Self::ActionsWorkflow(_) => JobType::ActionsWorkflow,
            Self::Build(build) => build.recipe.job_type(),
            Self::OciSync(_) => JobType::OciSync,
            Self::TerraformDeploy(_) => JobType::TerraformDeploy,
            Self::HelmChartDeploy(_) => JobType::HelmChartDeploy,
            Self::KubernetesManifestDeploy(_) => JobType::KubernetesManifestDeploy,
            Self::JobDeploy(_) => JobType::JobDeploy,
            Self::SandboxTerraform(_) => JobType::SandboxTerraform,
            Self::SandboxSyncSecrets(_) => JobType::SandboxSyncSecrets,
        }
    }

    /// What the jobs of all deployers have in common; None for other work.
    pub const fn deploy(&self) -> Option<&Deploy> {
        match self {
            Self::TerraformDeploy(job) | Self::SandboxTerraform(job) => Some(&job.deploy),
            Self::HelmChartDeploy(job) => Some(&job.deploy),
            Self::KubernetesManifestDeploy(job) => Some(&job.deploy),
            Self::JobDeploy(job) => Some(&job.deploy),
            Self::Noop { .. }
            | Self::HealthCheck {}
            | Self::ActionsWorkflow(_)
            | Self::Build(_)
            | Self::OciSync(_)
            | Self::SandboxSyncSecrets(_) => None,
        }
    }

    pub const fn deploy_mut(&mut self) -> Option<&mut Deploy> {
        match self {
            Self::TerraformDeploy(job) | Self::SandboxTerraform(job) => Some(&mut job.deploy),
            Self::HelmChartDeploy(job) => Some(&mut job.deploy),
            Self::KubernetesManifestDeploy(job) => Some(&mut job.deploy),
            Self::JobDeploy(job) => Some(&mut job.deploy),
            Self::Noop { .. }
            | Self::HealthCheck {}
            | Self::ActionsWorkflow(_)
            | Self::Build(_)
            | Self::OciSync(_)
            | Self::SandboxSyncSecrets(_) => None,
        }
    }

    /// The namespace that objects of the job are in where they name none.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::HelmChartDeploy(job) => Some(&job.namespace),
            Self::KubernetesManifestDeploy(job) => Some(&job.namespace),
            Self::JobDeploy(job) => Some(&job.namespace),
            Self::Noop { .. }
            | Self::HealthCheck {}
            | Self::ActionsWorkflow(_)
            | Self::Build(_)
            | Self::OciSync(_)
            | Self::TerraformDeploy(_)
            | Self::SandboxTerraform(_)
            | Self::SandboxSyncSecrets(_) => None,
        }
    }

    /// What is done, as the order and the job name it.
    pub const fn operation(&self) -> &'static str {
        match self.deploy() {
            Some(deploy) => deploy.operation.name(),
            None => "exec",
        }
    }

    /// The plan that was approved, where one is carried out.
    pub fn plan_digest(&self) -> Option<Digest> {
        match &self.deploy()?.operation {
            DeployOperation::Apply { plan, .. } => Some(plan.digest()),
            DeployOperation::Plan { .. } | DeployOperation::Restore { .. } => None,
        }
    }

    /// How long it takes at least: a timeout must be longer.
    pub fn waits_ms(&self) -> u64 {
        match self {
            Self::Noop { sleep_ms } => *sleep_ms,
            Self::HealthCheck {}
            | Self::ActionsWorkflow(_)
            | Self::Build(_)
            | Self::OciSync(_)
            | Self::TerraformDeploy(_)
            | Self::HelmChartDeploy(_)
            | Self::KubernetesManifestDeploy(_)
            | Self::JobDeploy(_)
            | Self::SandboxTerraform(_)
            | Self::SandboxSyncSecrets(_) => 0,
        }
    }

    /// Digests of what the executor will fetch; the order names them.
    pub fn artifacts(&self) -> Vec<Digest> {
        match self {
            Self::Noop { .. } | Self::HealthCheck {} | Self::JobDeploy(_) | Self::SandboxSyncSecrets(_) => Vec::new(),
            Self::ActionsWorkflow(action) => action
                .steps
                .iter()
                .filter_map(|step| match &step.source {
                    Some(Source::Archive { digest, .. }) => Some(digest.clone()),
                    Some(Source::Git { .. }) | None => None,
                })
                .collect(),
            Self::Build(build) => match build.recipe.source() {
                Some(Source::Archive { digest, .. }) => vec![digest.clone()],
                Some(Source::Git { .. }) | None => Vec::new(),
            },
            Self::OciSync(sync) => vec![sync.digest.clone()],
            Self::TerraformDeploy(job) | Self::SandboxTerraform(job) => match &job.module {
                Module::Artifact { digest, .. } | Module::Source { source: Source::Archive { digest, .. } } => {
                    vec![digest.clone()]
                }
                Module::Source { source: Source::Git { .. } } | Module::Nothing {} => Vec::new(),
            },
            Self::HelmChartDeploy(job) => vec![job.digest.clone()],
            Self::KubernetesManifestDeploy(job) => match &job.manifest {
                ManifestSource::Artifact { digest, .. } => vec![digest.clone()],
                ManifestSource::Text { .. } => Vec::new(),
            },
        }
    }
}

/// Environment, from the lowest precedence to the highest: inherited, `builtin_env`, what the executor adds, `run_env`,
/// the step's `env`, `override_env`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionSpec {
    pub steps: Vec<StepSpec>,
    #[serde(default)]
    pub builtin_env: BTreeMap<String, String>,
    #[serde(default)]
    pub run_env: BTreeMap<String, String>,
    #[serde(default)]
    pub override_env: BTreeMap<String, String>,
}

/// What says why an action runs, in the environment of its steps.
pub const TRIGGER_TYPE: &str = "TRIGGER_TYPE";
/// Its value for an action whose script came with the request, and not from the app's config.
pub const AD_HOC: &str = "adhoc";

impl ActionSpec {
    /// Whether its script came with the request, and not from the app's config.
    pub fn is_ad_hoc(&self) -> bool {
        self.builtin_env.get(TRIGGER_TYPE).is_some_and(|kind| kind == AD_HOC)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepSpec {
    /// Unique in the action; the key of its outputs.
    pub name: String,
    /// A script: written to a file and executed; `#!/bin/sh` when it names no interpreter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_contents: Option<String>,
    /// A command line for `sh -c`, in the directory of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Where the files of a step come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// `reference` is a branch, a tag or a commit.
    Git {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
        /// Its submodules are fetched too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        submodules: bool,
        /// Where the host's own ones (an ssh key) are not the ones to use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credentials: Option<Credentials>,
    },
    /// A tar archive that was uploaded before, named by its digest.
    Archive {
        digest: Digest,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
    },
}

/// What a child may use. None means no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Thousandths of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_millis: Option<u64>,
    /// Quota of the execution's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// Checks the steps of an action; every message says what to do.
pub fn check_steps(steps: &[StepSpec]) -> Result<(), String> {
    if steps.is_empty() {
        return Err("an action needs at least one step: give `command` or `inline_contents`".into());
    }
    let mut seen = std::collections::BTreeSet::new();
    for step in steps {
        let name = &step.name;
        if name.trim().is_empty() || name.len() > 128 || name.chars().any(char::is_control) {
            return Err(format!("step name {name:?} must be 1 to 128 printable characters"));
        }
        if !seen.insert(name) {
            return Err(format!("two steps are named `{name}`: outputs are kept by step name, so give each its own"));
        }
        match (&step.inline_contents, &step.command, &step.source) {
            (None, None, _) => {
                return Err(format!("step `{name}` has nothing to run: give `command` or `inline_contents`"));
            }
            (Some(_), Some(_), _) => {
                return Err(format!("step `{name}` has both `command` and `inline_contents`: give one"));
            }
            (Some(_), None, Some(_)) => {
                return Err(format!("step `{name}` has `inline_contents` and a source: use `command` with a source"));
            }
            (Some(text), None, None) | (None, Some(text), _) if text.trim().is_empty() => {
                return Err(format!("step `{name}` is empty"));
            }
            (Some(_), None, None) | (None, Some(_), _) => {}
        }
        check_env(&step.env).map_err(|e| format!("step `{name}`: {e}"))?;
    }
    Ok(())
}

/// Checks names and values of environment variables.
pub fn check_env(env: &BTreeMap<String, String>) -> Result<(), String> {
    for (key, value) in env {
        if key.is_empty() || key.contains(['=', '\0']) {
            return Err(format!("{key:?} is not a name of an environment variable"));
        }
        if value.contains('\0') {
            return Err(format!("the value of `{key}` contains a NUL byte"));
        }
    }
    Ok(())
}

/// Shorter values can't be masked without masking half the log.
pub const SECRET_BYTES_MIN: usize = 6;

/// Checks that secrets can be masked.
pub fn check_secrets(secrets: &[String]) -> Result<(), String> {
    match secrets.iter().find(|s| s.len() < SECRET_BYTES_MIN) {
        None => Ok(()),
        Some(s) => Err(format!(
            "a secret has {} characters; fewer than {SECRET_BYTES_MIN} can't be masked in the log, so it is refused",
            s.len()
        )),
    }
}

/// Checks a timeout in seconds.
pub fn check_timeout(timeout_s: u64) -> Result<(), String> {
    if (1..=constants::ACTION_TIMEOUT_MAX_S).contains(&timeout_s) {
        Ok(())
    } else {
        Err(format!("a timeout of {timeout_s} s is out of range: 1 to {} s", constants::ACTION_TIMEOUT_MAX_S))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str) -> StepSpec {
        StepSpec {
            name: name.into(),
            inline_contents: None,
            command: Some("true".into()),
            source: None,
            env: BTreeMap::new(),
        }
    }

    #[test]
    fn steps_are_checked_with_a_reason() {
        assert_eq!(check_steps(&[step("a"), step("b")]), Ok(()));
        let cases: [(Vec<StepSpec>, &str); 5] = [
            (vec![], "at least one step"),
            (vec![step("a"), step("a")], "two steps are named"),
            (vec![StepSpec { command: None, ..step("a") }], "nothing to run"),
            (vec![StepSpec { inline_contents: Some("x".into()), ..step("a") }], "has both"),
            (vec![StepSpec { command: Some("  ".into()), ..step("a") }], "is empty"),
        ];
        for (steps, part) in cases {
            let error = check_steps(&steps).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
        let env = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert!(check_steps(&[StepSpec { env, ..step("a") }]).is_err());
    }
}
