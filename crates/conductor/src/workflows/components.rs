//! What each type of component brings to a deploy: its settings, the texts in them that are rendered, and the work that comes of both.

use std::collections::BTreeMap;

use config::{ComponentKind, HelmChart, Job, KubernetesManifest, TerraformModule};
use engine::Step;
use model::build::{Repository, SyncSpec};
use model::deploy::{Deploy, DeployOperation, SealedValue};
use model::kubernetes::{ClusterSpec, HelmSpec, ManifestSource, ManifestSpec, ReleaseStorage, Rollout, RunSpec};
use model::spec::Source;
use model::terraform::{Module, Program, TerraformSpec};
use model::time::parse_duration;
use model::{ConfigId, Digest, JobType, Timestamp, WorkspaceId};
use serde_json::{Value, json};
use store::{Build, BuildStatus, EntityKind};

use super::context::{WorkflowContext, unsupported};
use super::deploys::NotYet;
use crate::Document;
use crate::error::{Result, WorkflowError};
use crate::jobs::{git, local_archive};

/// What a part is deployed with, before it is rendered.
pub(super) struct Settings {
    what: What,
    pub(super) timeout_s: u64,
}

enum What {
    Sandbox(Terraform),
    Terraform(Terraform),
    Helm { repository: Repository, digest: Digest, chart: Box<HelmChart>, over: String },
    Manifest { source: ManifestSource, kind: Box<KubernetesManifest> },
    Image(Box<SyncSpec>),
    Job(Box<Job>),
}

/// How often a pod of a Job that fails is followed by another one.
const JOB_RETRIES: u32 = 3;

struct Terraform {
    version: String,
    module: Module,
    vars: BTreeMap<String, String>,
    var_files: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn artifact(&self) -> Option<Digest> {
        match &self.what {
            What::Sandbox(_) => None,
            What::Terraform(module) => match &module.module {
                Module::Artifact { digest, .. } => Some(digest.clone()),
                Module::Source { .. } | Module::Nothing {} => None,
            },
            What::Helm { digest, .. } | What::Manifest { source: ManifestSource::Artifact { digest, .. }, .. } => {
                Some(digest.clone())
            }
            What::Image(sync) => Some(sync.digest.clone()),
            What::Manifest { source: ManifestSource::Text { .. }, .. } | What::Job(_) => None,
        }
    }

    /// The texts that templates may stand in.
    pub(super) fn texts(&self) -> Value {
        match &self.what {
            What::Sandbox(module) | What::Terraform(module) => {
                json!({ "vars": module.vars, "var_files": module.var_files, "env": module.env })
            }
            What::Helm { chart, over, .. } => {
                let files: Vec<&str> = chart.values_file.iter().map(|file| file.contents.as_str()).collect();
                json!({
                    "release": chart.chart_name, "storage": chart.storage_driver, "values": chart.values,
                    "values_files": files, "values_override": over,
                    "namespace": chart.namespace.as_deref().unwrap_or("{{ .nuon.install.id }}"),
                })
            }
            What::Manifest { source, kind } => {
                let text = match source {
                    ManifestSource::Text { contents } => contents.as_str(),
                    ManifestSource::Artifact { .. } => "",
                };
                json!({ "namespace": kind.namespace, "manifest": text })
            }
            What::Image(_) => json!({}),
            What::Job(job) => json!({
                "image_url": job.image_url, "tag": job.tag, "command": job.cmd, "args": job.args, "env": job.env_vars,
                "namespace": job.namespace.as_deref().unwrap_or("{{ .nuon.install.id }}"),
                "service_account": job.service_account,
            }),
        }
    }

    /// The work of a job, from the rendered texts.
    pub(super) fn work(self, target: &str, rendered: Value) -> Result<model::spec::Work> {
        let deploy = later(target);
        let text = |key: &str| rendered[key].as_str().unwrap_or_default().to_owned();
        Ok(match self.what {
            What::Sandbox(module) => {
                model::spec::Work::SandboxTerraform(Box::new(module.spec(deploy, target, &rendered)?))
            }
            What::Terraform(module) => {
                model::spec::Work::TerraformDeploy(Box::new(module.spec(deploy, target, &rendered)?))
            }
            What::Helm { repository, digest, chart, .. } => model::spec::Work::HelmChartDeploy(Box::new(HelmSpec {
                deploy,
                repository,
                digest,
                release: text("release"),
                namespace: text("namespace"),
                storage: storage(&text("storage")).map_err(WorkflowError::NoModule)?,
                values: texts(target, &rendered["values"])?,
                values_files: texts(target, &rendered["values_files"])?,
                values_override: text("values_override"),
                take_ownership: chart.take_ownership,
                skip_crds: chart.skip_crds,
                rollout: Rollout {
                    wait: chart.wait.unwrap_or(true),
                    rollback: chart.rollback_on_failure,
                    ignore: chart.ignore_changes,
                },
            })),
            What::Manifest { source, kind } => model::spec::Work::KubernetesManifestDeploy(Box::new(ManifestSpec {
                deploy,
                manifest: match source {
                    ManifestSource::Text { .. } => ManifestSource::Text { contents: text("manifest") },
                    artifact @ ManifestSource::Artifact { .. } => artifact,
                },
                namespace: text("namespace"),
                rollout: Rollout { wait: kind.wait.unwrap_or(true), rollback: false, ignore: kind.ignore_changes },
            })),
            What::Image(sync) => model::spec::Work::OciSync(*sync),
            What::Job(job) => model::spec::Work::JobDeploy(Box::new(RunSpec {
                deploy,
                name: target.trim_start_matches("components/").to_owned(),
                namespace: text("namespace"),
                image: image(&text("image_url"), &text("tag")),
                command: texts(target, &rendered["command"])?,
                args: texts(target, &rendered["args"])?,
                env: texts(target, &rendered["env"])?,
                service_account: rendered["service_account"].as_str().map(str::to_owned),
                retries: job.retries.and_then(|retries| u32::try_from(retries).ok()).unwrap_or(JOB_RETRIES),
            })),
        })
    }
}

impl What {
    /// Takes what the install lays over the app's settings. A text for another type of component, which the app may have changed
    /// since, says nothing.
    fn lay_over(&mut self, laid: &config::ComponentOverride) {
        match self {
            Self::Helm { over, .. } => *over = laid.helm_values.clone().unwrap_or_default(),
            // Later files win.
            Self::Terraform(module) => module.var_files.extend(laid.tf_vars.clone()),
            Self::Sandbox(_) | Self::Manifest { .. } | Self::Image(_) | Self::Job(_) => {}
        }
    }
}

/// Stands until the job is made.
fn later(target: &str) -> Deploy {
    Deploy {
        workspace_id: WorkspaceId::new(Timestamp::from_micros(0), 0),
        target: target.to_owned(),
        operation: DeployOperation::Plan { destroy: false },
        policies: Vec::new(),
        basis: String::new(),
    }
}

/// `nuon`, the dialect's own driver, keeps releases in the control plane; here they stay in the cluster.
fn storage(text: &str) -> std::result::Result<ReleaseStorage, String> {
    match text {
        "" | "configmap" | "configmaps" => Ok(ReleaseStorage::Configmap),
        "secret" | "secrets" | "nuon" => Ok(ReleaseStorage::Secret),
        other => Err(format!("`storage_driver` is `{other}`: use `configmap` or `secret`")),
    }
}

/// An image by its tag, or by its digest where the tag is one.
fn image(url: &str, tag: &str) -> String {
    match tag.starts_with("sha256:") {
        true => format!("{url}@{tag}"),
        false => format!("{url}:{tag}"),
    }
}

fn texts<T: serde::de::DeserializeOwned>(target: &str, value: &Value) -> Result<T> {
    Ok(serde_json::from_value(value.clone()).map_err(|_| WorkflowError::NotText(target.to_owned()))?)
}

impl Terraform {
    fn spec(self, deploy: Deploy, target: &str, rendered: &Value) -> Result<TerraformSpec> {
        let (program, version) = Program::parse(&self.version);
        Ok(TerraformSpec {
            deploy,
            program,
            version,
            module: self.module,
            vars: texts(target, &rendered["vars"])?,
            var_files: texts(target, &rendered["var_files"])?,
            env: texts(target, &rendered["env"])?,
        })
    }
}

type Found = std::result::Result<Settings, NotYet>;

impl WorkflowContext<'_> {
    /// What the config says of the part that a step is about, if that can be deployed by now.
    pub(super) async fn settings_of(&mut self, step: &Step) -> Result<Found> {
        let (config_id, document) = self.config_for(step).await?;
        let Some(name) = step.work.component() else { return Ok(sandbox_settings(&document)) };
        let mut found = self.component_settings(&config_id, &document, name).await?;
        if let Ok(settings) = &mut found
            && let Some(over) = self.overrides().await?.get(name)
        {
            settings.what.lay_over(over);
        }
        Ok(found)
    }

    async fn component_settings(&self, config_id: &ConfigId, document: &Document, name: &str) -> Result<Found> {
        let Some(component) = document.config.components.iter().find(|known| known.common.name == name) else {
            return Ok(Err(NotYet::Fails(format!("the app has no component `{name}`"))));
        };
        let (what, job_type) = match &component.kind {
            ComponentKind::TerraformModule(kind) => match self.built(config_id, name).await? {
                Ok((repository, digest)) => {
                    let module = Module::Artifact { repository, digest };
                    (What::Terraform(Terraform::of(kind, module)), JobType::TerraformDeploy)
                }
                Err(not_yet) => return Ok(Err(not_yet)),
            },
            ComponentKind::HelmChart(chart) => match self.built(config_id, name).await? {
                Ok((repository, digest)) => {
                    let chart = Box::new(chart.clone());
                    (What::Helm { repository, digest, chart, over: String::new() }, JobType::HelmChartDeploy)
                }
                Err(not_yet) => return Ok(Err(not_yet)),
            },
            ComponentKind::KubernetesManifest(kind) => {
                let source = match &kind.manifest {
                    Some(contents) => ManifestSource::Text { contents: contents.clone() },
                    None => match self.built(config_id, name).await? {
                        Ok((repository, digest)) => ManifestSource::Artifact { repository, digest },
                        Err(not_yet) => return Ok(Err(not_yet)),
                    },
                };
                (What::Manifest { source, kind: Box::new(kind.clone()) }, JobType::KubernetesManifestDeploy)
            }
            ComponentKind::DockerBuild(_) | ComponentKind::ContainerImage(_) => {
                match self.image_settings(config_id, name).await? {
                    Ok(sync) => (What::Image(Box::new(sync)), JobType::OciSync),
                    Err(not_yet) => return Ok(Err(not_yet)),
                }
            }
            ComponentKind::Job(job) => (What::Job(Box::new(job.clone())), JobType::JobDeploy),
            ComponentKind::Pulumi(_) | ComponentKind::Unknown => {
                let text = unsupported(&format!("deploying a {}", component.kind.name()));
                return Ok(Err(NotYet::Fails(text)));
            }
        };
        let timeout = component.common.deploy_timeout.as_deref().and_then(|text| parse_duration(text).ok());
        let timeout_s = timeout.map_or_else(|| job_type.facts().timeout_s, |timeout| timeout.as_secs().max(1));
        Ok(Ok(Settings { what, timeout_s }))
    }

    /// The artifact of a component at a config.
    async fn built(
        &self,
        config_id: &ConfigId,
        name: &str,
    ) -> Result<std::result::Result<(Repository, Digest), NotYet>> {
        let found = self.build_of(config_id, name).await?;
        Ok(found.map(|(build, digest)| {
            let repository = self.conductor.repository(&build.org_id, &build.app_id, &build.component_id);
            (repository, digest)
        }))
    }

    /// The good build of a component at a config, and the digest of what it made.
    pub(super) async fn build_of(
        &self,
        config_id: &ConfigId,
        name: &str,
    ) -> Result<std::result::Result<(Build, Digest), NotYet>> {
        let (conductor, org) = (self.conductor, &self.install.org_id);
        let config = conductor.store.config(org, &self.install.app_id, config_id).await?;
        let entity = conductor.store.entity(org, Some(&self.install.app_id), EntityKind::Component, name).await?;
        let build = match conductor.build_at(&config, &entity.id).await? {
            Some(build) => build,
            None => return Ok(Err(NotYet::Fails(format!("`{name}` was never built: `ferry builds create {name}`")))),
        };
        let artifact = build.artifact.as_ref().and_then(|artifact| Digest::parse(&artifact.digest).ok());
        Ok(match (build.status, artifact) {
            (BuildStatus::Open, _) => Err(NotYet::Waits(format!("waits for build {} of {name}", build.id))),
            (BuildStatus::Active, Some(digest)) => Ok((build, digest)),
            _ => {
                let text = format!("build {} of {name} did not succeed: {}", build.id, build.description);
                Err(NotYet::Fails(text))
            }
        })
    }

    /// The cluster that a step works on, with what is sealed in it.
    pub(super) async fn cluster_of(&mut self, step: &Step) -> Result<(ClusterSpec, Vec<SealedValue>)> {
        let (_, document) = self.config_for(step).await?;
        let name = step.work.component().unwrap_or_default();
        let component = document.config.components.iter().find(|known| known.common.name == name);
        let context = component.and_then(|component| component.common.kubernetes_context.as_deref());
        let tree = self.tree().await?;
        Ok(tree.cluster(context_component(&document.config, context).as_deref()))
    }
}

/// The component that puts the cluster of a context out.
pub(crate) fn context_component(config: &config::AppConfig, context: Option<&str>) -> Option<String> {
    let name = context?;
    let found = config.kubernetes_contexts.iter().find(|known| known.name == name);
    found.map(|context| context.component.clone())
}

impl Terraform {
    fn of(kind: &TerraformModule, module: Module) -> Self {
        Self {
            version: kind.terraform_version.clone(),
            module,
            vars: kind.vars.clone(),
            var_files: kind.var_file.iter().map(|file| file.contents.clone()).collect(),
            env: kind.env_vars.clone(),
        }
    }
}

fn sandbox_settings(document: &Document) -> Found {
    let Some(sandbox) = &document.config.sandbox else {
        return Err(NotYet::Fails("the app has no sandbox".into()));
    };
    if sandbox.r#type.as_deref().is_some_and(|kind| kind != "terraform") {
        return Err(NotYet::Fails("a sandbox of Pulumi is not supported yet".into()));
    }
    let source: Source = match &sandbox.local {
        Some(local) => local_archive(local, &document.local_sources).map_err(|e| NotYet::Fails(e.to_string()))?,
        None => {
            let repo = sandbox.public_repo.as_ref().or(sandbox.connected_repo.as_ref());
            git(repo.ok_or_else(|| NotYet::Fails("the sandbox names no source".into()))?, true)
        }
    };
    let module = Terraform {
        version: sandbox.terraform_version.clone().unwrap_or_else(|| "latest".into()),
        module: Module::Source { source },
        vars: sandbox.vars.clone(),
        var_files: sandbox.var_file.iter().map(|file| file.contents.clone()).collect(),
        env: sandbox.env_vars.clone(),
    };
    Ok(Settings { what: What::Sandbox(module), timeout_s: JobType::SandboxTerraform.facts().timeout_s })
}
