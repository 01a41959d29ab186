//! Secrets: the install's runner reads them in the customer's store and writes them to the customer's cluster. What is known of
//! them here are names, lengths and times.

use std::collections::{BTreeMap, BTreeSet};

use config::AppConfig;
use engine::{Ended, Step, Work, Workflow};
use model::deploy::SealedValue;
use model::kubernetes::Pulls;
use model::secrets::{SECRETS_PART, SecretFormat, SecretOutputs, SecretSpec, SecretTarget, SecretsSpec};
use model::spec::JobSpec;
use model::{JobState, PartStatus};
use serde_json::{Map, Value, json};
use store::Job;

use super::context::{Known, WorkflowContext};
use crate::error::{Result, WorkflowError};
use crate::is_there;
use crate::jobs::Draft;

/// The key of the secrets' part under which the namespaces are known that syncs have written to.
pub(super) const NAMESPACES: &str = "namespaces";
/// The key of a Kubernetes Secret where the app names none.
const KEY: &str = "value";

impl WorkflowContext<'_> {
    /// What is known of a sync of secrets, or of their removal.
    pub(super) async fn secrets(&mut self, workflow: &Workflow, step: &Step) -> Result<Known> {
        let job = self.conductor.store.job_of_step(&self.install.org_id, &step.id).await?;
        let Some(job) = job else {
            if workflow.cancelled_by.is_none() {
                match self.secrets_spec(step).await {
                    Ok(None) => return Ok(Known::Ended(Ended::Success)),
                    Err(error) if error.is_refusal() => return Ok(Known::Ended(Ended::Failed(error.to_string()))),
                    spec => drop(spec?),
                }
            }
            return Ok(self.without_job(workflow, step));
        };
        // The app's own secrets are in one cluster.
        if job.state.is_terminal() && cluster_of(step).is_none() {
            self.note_secrets(step, &job).await?;
        }
        Ok(self.with_job(workflow, job))
    }

    /// Notes what a sync has written, or may have written before it failed.
    async fn note_secrets(&mut self, step: &Step, job: &Job) -> Result<()> {
        let part = self.part(SECRETS_PART).await?;
        let told = match job.state {
            JobState::Finished => self.conductor.outputs(job).await?,
            _ => Map::new(),
        };
        let told: SecretOutputs = serde_json::from_value(Value::Object(told)).unwrap_or_default();
        let spec: JobSpec = serde_json::from_slice(&self.conductor.store.spec(&self.install.org_id, &job.id).await?)
            .map_err(|_| WorkflowError::SpecUnreadable(job.id.clone()))?;
        let model::spec::Work::SandboxSyncSecrets(spec) = spec.work else { return Ok(()) };
        let mut namespaces: BTreeSet<String> = serde_json::from_value(part[NAMESPACES].clone()).unwrap_or_default();
        let targets = spec.secrets.iter().flat_map(|secret| &secret.targets).chain(&spec.gone);
        namespaces.extend(targets.map(|target| target.namespace.clone()));
        // A person who settles a sync knows nothing of its values.
        if job.state == JobState::Finished && (spec.secrets.is_empty() || !told.secrets.is_empty()) {
            if matches!(step.work, Work::RemoveSecrets { .. }) {
                namespaces.clear();
            }
            let there = told.secrets.values().any(|secret| secret.exists) || !told.left.is_empty();
            let status = if there { PartStatus::Active } else { PartStatus::Inactive };
            let value = json!({
                "status": status.as_str(), "generation": part["generation"].as_u64().unwrap_or_default() + 1,
                "outputs": told.secrets, "attempted": told.left, NAMESPACES: namespaces,
                "applied_us": self.conductor.now().micros(),
            });
            self.note_part(SECRETS_PART.to_owned(), value);
            return Ok(());
        }
        if job.state == JobState::NotAttempted {
            return Ok(());
        }
        let mut attempted: BTreeSet<SecretTarget> =
            serde_json::from_value(part["attempted"].clone()).unwrap_or_default();
        attempted.extend(spec.secrets.into_iter().flat_map(|secret| secret.targets));
        let mut value = if part.is_object() { part.clone() } else { json!({ "generation": 0, "outputs": {} }) };
        let status = if job.state == JobState::Unknown { PartStatus::Unknown } else { PartStatus::Error };
        value["status"] = json!(status.as_str());
        value["attempted"] = json!(attempted);
        value[NAMESPACES] = json!(namespaces);
        // It is looked at again and again while the outcome is unknown.
        if value != part {
            self.note_part(SECRETS_PART.to_owned(), value);
        }
        Ok(())
    }

    /// Makes the job that writes the secrets, or removes them.
    pub(super) async fn start_secrets(&mut self, step: &Step) -> Result<()> {
        let Some((spec, secrets, mut sealed)) = self.secrets_spec(step).await? else { return Ok(()) };
        let (cluster, more) = self.tree().await?.cluster(cluster_of(step));
        sealed.extend(more);
        let draft = Draft {
            name: Some(step.title()),
            install: Some((self.install.id.clone(), self.install.app_id.clone())),
            secrets,
            sealed,
            cluster: Some(cluster),
            role: step.role.clone(),
            step_id: Some(step.id.clone()),
            ..Draft::new(model::spec::Work::SandboxSyncSecrets(Box::new(spec)))
        };
        let runner = self.conductor.store.runner(&self.install.org_id, self.install.runner_id.as_str()).await?;
        self.conductor.submit(draft, &runner, self.loaded.row.created_by.as_str(), None).await.map(drop)
    }

    /// What a step has to do, with what its texts are made of; None where there is nothing.
    async fn secrets_spec(&mut self, step: &Step) -> Result<Option<(SecretsSpec, Vec<String>, Vec<SealedValue>)>> {
        let written = self.written().await?;
        if let Work::RemoveSecrets { cluster } = &step.work {
            let spec = self.removal(cluster.as_deref(), written).await?;
            return Ok(spec.map(|spec| (spec, Vec::new(), Vec::new())));
        }
        let document = self.document().await?;
        let texts = texts(&document.config);
        if texts.as_array().is_none_or(Vec::is_empty) && written.is_empty() {
            return Ok(None);
        }
        let tree = self.tree().await?;
        let (rendering, sealed) = tree.render(&texts);
        if let Some(problem) = rendering.problems.first() {
            let (target, problem_at, problem) =
                (SECRETS_PART.to_owned(), problem.path.clone(), tree.masked(&problem.message));
            let at = problem_at.trim_start_matches('/').split('/').next().and_then(|at| at.parse::<usize>().ok());
            let place = at.and_then(|at| texts[at]["name"].as_str()).unwrap_or("the targets").to_owned();
            return Err(WorkflowError::Unrenderable { target, place, problem }.into());
        }
        let mut secrets: Vec<SecretSpec> =
            serde_json::from_value(rendering.value).map_err(|_| WorkflowError::NotText(SECRETS_PART.to_owned()))?;
        let part = self.part(SECRETS_PART).await?;
        for secret in &mut secrets {
            secret.known = part["outputs"][&secret.name]["exists"] == true;
        }
        let wanted: BTreeSet<&SecretTarget> = secrets.iter().flat_map(|secret| &secret.targets).collect();
        let gone = written.into_iter().filter(|target| !wanted.contains(target)).collect();
        let spec = SecretsSpec { secrets, gone, ..SecretsSpec::default() };
        Ok(Some((spec, tree.secrets(), sealed)))
    }

    /// What earlier syncs have written, or may have written before they failed.
    async fn written(&self) -> Result<Vec<SecretTarget>> {
        let part = self.part(SECRETS_PART).await?;
        let known: BTreeMap<String, Value> = serde_json::from_value(part["outputs"].clone()).unwrap_or_default();
        let targets = known.values().filter(|secret| secret["exists"] == true).map(|secret| secret["targets"].clone());
        let mut written: BTreeSet<SecretTarget> =
            targets.filter_map(|targets| serde_json::from_value::<Vec<SecretTarget>>(targets).ok()).flatten().collect();
        written.extend(serde_json::from_value::<Vec<SecretTarget>>(part["attempted"].clone()).unwrap_or_default());
        Ok(written.into_iter().collect())
    }

    /// What is taken away from a cluster, which a component has put out or not; None where there is nothing, or no such cluster any more.
    async fn removal(&self, cluster: Option<&str>, written: Vec<SecretTarget>) -> Result<Option<SecretsSpec>> {
        let (gone, mut namespaces): (Vec<SecretTarget>, BTreeSet<String>) = match cluster {
            Some(component) if !is_there(&self.part(&format!("components/{component}")).await?) => return Ok(None),
            Some(_) => Default::default(),
            None => {
                let known = self.part(SECRETS_PART).await?[NAMESPACES].clone();
                (written, serde_json::from_value(known).unwrap_or_default())
            }
        };
        namespaces.extend(gone.iter().map(|target| target.namespace.clone()));
        let left = self.conductor.pulls_left(&self.install).await?.into_values();
        let left = left.filter(|left| left.cluster.as_deref() == cluster);
        let pulls: BTreeSet<String> = left.flat_map(|left| left.namespaces).collect();
        namespaces.extend(pulls.iter().cloned());
        Ok((!namespaces.is_empty()).then(|| SecretsSpec {
            gone,
            pulls_gone: pulls.into_iter().collect(),
            pull_secret: Pulls::secret_of(&self.install.id),
            namespaces: namespaces.into_iter().collect(),
            ..SecretsSpec::default()
        }))
    }
}

/// The component whose cluster a step is about; None: the cluster that secrets are synced to.
fn cluster_of(step: &Step) -> Option<&str> {
    match &step.work {
        Work::RemoveSecrets { cluster } => cluster.as_deref(),
        _ => None,
    }
}

/// The secrets that are brought to a cluster, before they are rendered.
fn texts(config: &AppConfig) -> Value {
    let synced = config.secrets.iter().filter_map(|secret| {
        let targets = targets(secret);
        (!targets.is_empty()).then(|| SecretSpec {
            name: secret.name.clone(),
            required: secret.required,
            auto_generate: secret.auto_generate,
            known: false,
            default: secret.default.clone(),
            format: match secret.format.as_deref() {
                Some("base64") => SecretFormat::Base64,
                _ => SecretFormat::Plain,
            },
            targets,
        })
    });
    json!(synced.collect::<Vec<_>>())
}

fn targets(secret: &config::Secret) -> Vec<SecretTarget> {
    if !secret.kubernetes_sync_targets.is_empty() {
        let of = |target: &config::SyncTarget| {
            let one = |namespace: &String| SecretTarget {
                namespace: namespace.clone(),
                name: target.name.clone(),
                key: target.key.clone(),
            };
            target.namespaces.iter().map(one).collect::<Vec<_>>()
        };
        return secret.kubernetes_sync_targets.iter().flat_map(of).collect();
    }
    match (&secret.kubernetes_secret_namespace, &secret.kubernetes_secret_name) {
        (Some(namespace), Some(name)) if secret.kubernetes_sync == Some(true) => {
            vec![SecretTarget { namespace: namespace.clone(), name: name.clone(), key: KEY.to_owned() }]
        }
        _ => Vec::new(),
    }
}
