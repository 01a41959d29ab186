//! Images of components: the install's runner copies them into the install's own registry, or sees that its pods can pull them from
//! the control plane's.

use std::collections::{BTreeMap, BTreeSet};

use config::ComponentKind;
use engine::{Ended, Step, Workflow};
use model::build::{Repository, SyncSpec};
use model::deploy::job_target;
use model::kubernetes::Pulls;
use model::secrets::SecretsSpec;
use model::spec::{JobSpec, Work};
use model::{ConfigId, JobId, JobState, PartStatus};
use serde_json::{Map, Value, json};
use store::{EntityKind, Idempotency, Install};

use super::context::{Known, WorkflowContext};
use super::deployed::status_of;
use super::deploys::NotYet;
use crate::apps::InstallTree;
use crate::error::{Result, WorkflowError};
use crate::health::OBJECTS;
use crate::jobs::Draft;
use crate::{Conductor, Document, is_there};

/// The key of a part under which the namespaces are known that may have a Secret for pulls.
pub(super) const PULLS: &str = "pulls";
/// Where a sandbox says which registry it has made.
const REGISTRY_OUTPUT: &str = "registry";

impl WorkflowContext<'_> {
    /// What is known of the sync of an image.
    pub(super) async fn image(&mut self, workflow: &Workflow, step: &Step) -> Result<Known> {
        let Some(job) = self.conductor.store.job_of_step(&self.install.org_id, &step.id).await? else {
            let known = self.without_job(workflow, step);
            if matches!(known, Known::Nothing)
                && let Err(not_yet) = self.settings_of(step).await?
            {
                self.jobless.retain(|id| *id != step.id);
                return Ok(self.not_yet(not_yet));
            }
            return Ok(known);
        };
        if job.state == JobState::Finished {
            let told = self.conductor.outputs(&job).await?;
            self.image_is_there(step, told).await?;
        }
        Ok(self.with_job(workflow, job))
    }

    /// Makes the job that copies an image.
    pub(super) async fn start_image(&mut self, step: &Step) -> Result<()> {
        let target = step.work.target();
        let settings = match self.settings_of(step).await? {
            Ok(settings) => settings,
            Err(NotYet::Fails(reason)) => return Err(WorkflowError::NoModule(reason).into()),
            // Looked at again.
            Err(NotYet::Waits(_)) => return Ok(()),
        };
        let timeout_s = settings.timeout_s;
        let (_, document) = self.config_for(step).await?;
        let draft = Draft {
            pulls: self.pulls(&document).await?,
            name: Some(step.title()),
            install: Some((self.install.id.clone(), self.install.app_id.clone())),
            role: step.role.clone(),
            step_id: Some(step.id.clone()),
            timeout_s,
            ..Draft::new(settings.work(&target, Value::Null)?)
        };
        let runner = self.conductor.store.runner(&self.install.org_id, self.install.runner_id.as_str()).await?;
        self.conductor.submit(draft, &runner, self.loaded.row.created_by.as_str(), None).await.map(drop)
    }

    /// Notes the image. The same one again is nothing new to those that use it.
    async fn image_is_there(&mut self, step: &Step, outputs: Map<String, Value>) -> Result<()> {
        let target = step.work.target();
        let part = self.part(&target).await?;
        let (_, content) = self.basis(step).await?;
        let same = status_of(&part) == PartStatus::Active && part["outputs"] == json!(outputs);
        let generation = part["generation"].as_u64().unwrap_or_default() + u64::from(!same);
        let value = json!({
            "status": PartStatus::Active.as_str(), "generation": generation, "content": content, "outputs": outputs,
            "config_version": self.loaded.body.config_version, "config_id": self.loaded.body.config_id,
            "inputs_version": self.inputs_version(&part, step).await?, "applied_us": self.conductor.now().micros(),
        });
        self.note_part(target, value);
        Ok(())
    }

    /// The copy of the image of a component.
    pub(super) async fn image_settings(
        &self,
        config_id: &ConfigId,
        name: &str,
    ) -> Result<std::result::Result<SyncSpec, NotYet>> {
        let (build, digest) = match self.build_of(config_id, name).await? {
            Ok(found) => found,
            Err(not_yet) => return Ok(Err(not_yet)),
        };
        let to = match self.own_registry().await? {
            Some(registry) => match repository(&registry, name) {
                Some(to) => Some(to),
                None => {
                    let text =
                        format!("`{registry}` is not a registry: write `HOST/PATH`, or `http://HOST/PATH` without TLS");
                    return Ok(Err(NotYet::Fails(text)));
                }
            },
            None => None,
        };
        Ok(Ok(self.conductor.sync_spec(&build, digest, to)))
    }

    /// The install's own registry: the one that its sandbox has made, or the one that the customer has started the runner with.
    async fn own_registry(&self) -> Result<Option<String>> {
        if let Some(made) = self.part("sandbox").await?["outputs"][REGISTRY_OUTPUT].as_str() {
            return Ok(Some(made.to_owned()));
        }
        let runner = self.conductor.store.runner(&self.install.org_id, self.install.runner_id.as_str()).await?;
        Ok(runner.report.and_then(|report| report.registry))
    }

    /// What pods of the install may pull from the control plane's registry; None where it has a registry of its own, or no images.
    pub(super) async fn pulls(&self, document: &Document) -> Result<Option<Pulls>> {
        if self.own_registry().await?.is_some() {
            return Ok(None);
        }
        let repositories = self.conductor.own_images(&self.install, document).await?;
        let secret = Pulls::secret_of(&self.install.id);
        Ok((!repositories.is_empty()).then_some(Pulls { repositories, secret }))
    }

    /// The namespaces in which a component may have a Secret for pulls, after a deploy.
    pub(super) async fn pulls_of(&mut self, step: &Step, before: &Value, now: &Value) -> Result<Value> {
        let mut namespaces = namespaces(before);
        let (_, document) = self.config_for(step).await?;
        if self.pulls(&document).await?.is_some() {
            let objects = now[OBJECTS].as_array().into_iter().flatten();
            namespaces.extend(objects.filter_map(|object| object["namespace"].as_str()).map(str::to_owned));
        }
        Ok(if namespaces.is_empty() { Value::Null } else { json!(namespaces) })
    }

    /// The same after an apply that did not succeed: its state names what it may have begun.
    pub(super) async fn pulls_halfway(&mut self, step: &Step, before: &Value) -> Result<Value> {
        let (_, document) = self.config_for(step).await?;
        let of =
            document.config.components.iter().find(|known| Some(known.common.name.as_str()) == step.work.component());
        let has_objects =
            |kind: &ComponentKind| matches!(kind, ComponentKind::HelmChart(_) | ComponentKind::KubernetesManifest(_));
        let (store, target) = (&self.conductor.store, step.work.target());
        let workspace = store.find_workspace(&self.install.id, &target).await?;
        let Some(workspace) = workspace.filter(|_| of.is_some_and(|component| has_objects(&component.kind))) else {
            return Ok(before[PULLS].clone());
        };
        let saved = store.newest_revision(&self.install.org_id, &workspace.id).await?;
        let resources = saved.map(|saved| saved.resources).unwrap_or_default();
        let begun: Vec<Value> = resources.as_array().into_iter().flatten().filter_map(namespaced).collect();
        self.pulls_of(step, before, &json!({ OBJECTS: begun })).await
    }

    pub(super) fn not_yet(&mut self, not_yet: NotYet) -> Known {
        match not_yet {
            NotYet::Waits(reason) => {
                self.waits = true;
                Known::Reason(reason)
            }
            NotYet::Fails(reason) => Known::Ended(Ended::Failed(reason)),
        }
    }
}

impl Conductor {
    /// Repositories of the app's images that are in the control plane's registry.
    async fn own_images(&self, install: &Install, document: &Document) -> Result<Vec<String>> {
        let mut repositories = Vec::new();
        for component in document.config.components.iter().filter(|component| component.kind.is_image()) {
            let (org, app) = (&install.org_id, &install.app_id);
            let entity = self.store.entity(org, Some(app), EntityKind::Component, &component.common.name).await?;
            let repository = self.repository(org, app, &entity.id);
            if repository.registry.is_none() {
                repositories.push(repository.name);
            }
        }
        Ok(repositories)
    }

    /// For each component, the namespaces in which a runner may have left a Secret for pulls, and the repositories that its pods read.
    pub(crate) async fn pulls_left(&self, install: &Install) -> Result<BTreeMap<String, PullsLeft>> {
        let (_, parts) = self.store.install_parts(&install.org_id, &install.id, None).await?;
        let mut left = BTreeMap::new();
        for (part, value) in &parts {
            let Some(component) = part.strip_prefix("components/") else { continue };
            let mut found =
                PullsLeft { is_there: is_there(value), namespaces: namespaces(value), ..PullsLeft::default() };
            // An apply that failed has written it, too.
            if let Some(job) = self.store.last_apply(&install.org_id, &install.id, &job_target(part)).await? {
                let spec: JobSpec = serde_json::from_slice(&self.store.spec(&install.org_id, &job).await?)
                    .map_err(|_| WorkflowError::SpecUnreadable(job.clone()))?;
                found.cluster = spec.cluster.as_ref().and_then(InstallTree::component_of).map(str::to_owned);
                if let Some(pulls) = spec.pulls {
                    found.namespaces.extend(spec.work.namespace().map(str::to_owned));
                    found.repositories.extend(pulls.repositories);
                }
            }
            if !found.namespaces.is_empty() {
                left.insert(component.to_owned(), found);
            }
        }
        Ok(left)
    }

    /// Brings new logins for pulls to the clusters of an install, one job for each.
    pub(crate) async fn renew_pulls(&self, install: &Install, idem: &Idempotency) -> Result<Vec<JobId>> {
        let left = self.pulls_left(install).await?;
        let Some(document) = self.document_of(install).await?.filter(|_| !left.is_empty()) else {
            return Ok(Vec::new());
        };
        let runner = self.store.runner(&install.org_id, install.runner_id.as_str()).await?;
        let tree = self.install_tree(install, &document.config, None).await?;
        let mut repositories: BTreeSet<String> = self.own_images(install, &document).await?.into_iter().collect();
        repositories.extend(left.values().flat_map(|it| it.repositories.iter().cloned()));
        let (repositories, secret) = (repositories.into_iter().collect(), Pulls::secret_of(&install.id));
        let pulls = Pulls { repositories, secret: secret.clone() };
        let mut clusters: BTreeMap<Option<String>, BTreeSet<String>> = BTreeMap::new();
        for left in left.into_values().filter(|left| left.is_there) {
            clusters.entry(left.cluster).or_default().extend(left.namespaces);
        }
        let mut jobs = Vec::new();
        for (of, namespaces) in clusters {
            let (cluster, sealed) = tree.cluster(of.as_deref());
            let pulls_renewed = namespaces.into_iter().collect();
            let spec = SecretsSpec { pulls_renewed, pull_secret: secret.clone(), ..SecretsSpec::default() };
            let draft = Draft {
                name: Some("renew image pull secrets".into()),
                install: Some((install.id.clone(), install.app_id.clone())),
                secrets: tree.secrets(),
                sealed,
                cluster: Some(cluster),
                pulls: Some(pulls.clone()),
                ..Draft::new(Work::SandboxSyncSecrets(Box::new(spec)))
            };
            let key = Idempotency { key: format!("{}|{}", idem.key, of.unwrap_or_default()), ..idem.clone() };
            jobs.push(self.submit(draft, &runner, install.created_by.as_str(), Some(key)).await?.job.id);
        }
        Ok(jobs)
    }
}

/// What a component may have left in a cluster for its pulls.
#[derive(Default)]
pub(crate) struct PullsLeft {
    is_there: bool,
    /// The component that has put the cluster out, if it was one.
    pub(crate) cluster: Option<String>,
    pub(crate) namespaces: BTreeSet<String>,
    repositories: BTreeSet<String>,
}

fn namespaces(part: &Value) -> BTreeSet<String> {
    let all = part[PULLS].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The namespace in the address `Kind/NAMESPACE/NAME` of a resource.
fn namespaced(resource: &Value) -> Option<Value> {
    let (_, rest) = resource["address"].as_str()?.split_once('/')?;
    rest.split_once('/').map(|(namespace, _)| json!({ "namespace": namespace }))
}

/// `HOST/PATH`, maybe with a scheme, and a component in it.
fn repository(registry: &str, component: &str) -> Option<Repository> {
    let plain_http = registry.starts_with("http://");
    let rest = registry.trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/');
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let good = !host.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:/".contains(c));
    let name = if path.is_empty() { component.to_owned() } else { format!("{path}/{component}") };
    good.then(|| Repository { registry: Some(host.to_owned()), name: name.to_lowercase(), plain_http })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_namespace_or_none() {
        let of = |address: &str| namespaced(&json!({ "address": address }));
        assert_eq!(of("Widget.example.com/shop/a"), Some(json!({ "namespace": "shop" })));
        assert_eq!((of("Namespace/shop"), of("")), (None, None));
    }

    #[test]
    fn a_registry_is_a_host_and_a_path() {
        let of =
            |text: &str| repository(text, "web").map(|it| (it.registry.unwrap_or_default(), it.name, it.plain_http));
        assert_eq!(of("r.example:5000/shop/"), Some(("r.example:5000".into(), "shop/web".into(), false)));
        assert_eq!(of("http://127.0.0.1:5000"), Some(("127.0.0.1:5000".into(), "web".into(), true)));
        assert_eq!(of("https://r.example/a/b"), Some(("r.example".into(), "a/b/web".into(), false)));
        assert_eq!((of(""), of("a b/c")), (None, None));
    }
}
