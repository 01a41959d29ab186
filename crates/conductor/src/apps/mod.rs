//! Owns what a config means for an install: its sections, what templates see, and rendering them.
//! Handlers and workflows call it.
//! No SQL, and no plain sensitive value.
//!
//! What an app is made of: sections to a config and back, and the tree that templates see.

pub mod drafts;
pub mod manage;
pub(crate) mod render;
pub(crate) mod sealed;
pub mod sync;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use config::{AppConfig, ComponentOverride, Graph, InputUse, Uses};
use model::deploy::SealedValue;
use model::labels::Labels;
use model::overrides::{OverrideKind, input_name, shown};
use model::spec::SECRET_BYTES_MIN;
use model::waiting::Presence;
use model::{AppId, ConfigId, Digest, OrgId, PartStatus};
use serde_json::{Map, Value, json};
use store::{Config, EntityKind, Install};
use tokio::sync::OnceCell;

use crate::Conductor;
use crate::error::{AppError, Result};
use crate::installs::overrides::{input_uses, overrides};

/// Which keys of a config each section holds. Components and actions have sections of their own, one for each.
const SECTIONS: &[(&str, &[&str])] = &[
    ("metadata", &["metadata"]),
    ("input", &["input_groups", "inputs"]),
    ("secrets", &["secrets"]),
    ("sandbox", &["sandbox"]),
    ("runner", &["runner"]),
    ("stack", &["stack"]),
    ("permissions", &["roles", "named_policies"]),
    ("break_glass", &["break_glass"]),
    ("policies", &["policies"]),
    ("operation_roles", &["operation_roles"]),
];
/// Keys that no section of the dialect has.
const MORE: &str = "more";
/// Stands for a sensitive value that somebody else looks at.
const MASK: &str = "***";
/// Versions of inputs among which that of a deploy is looked for.
const INPUT_VERSIONS_MAX: u64 = 200;
/// Digests of local sources by directory: not a key of the config, and part of its content.
pub const LOCAL_SOURCES: &str = "local_sources";

/// A part of a config: kind, name, and the keys of the config that it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub kind: String,
    pub name: String,
    pub body: Value,
}

/// Takes a config apart.
pub fn parts(config: &AppConfig, local_sources: &BTreeMap<String, String>) -> Vec<Part> {
    let Ok(Value::Object(document)) = serde_json::to_value(config) else { return Vec::new() };
    let mut whole: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut parts = Vec::new();
    for (key, value) in document {
        let own = [EntityKind::Component, EntityKind::Action].into_iter().find(|kind| kind.section() == key);
        if own.is_some() {
            for element in value.as_array().into_iter().flatten() {
                let name = element.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                parts.push(Part { kind: key.clone(), name, body: json!({ key.as_str(): [element] }) });
            }
            continue;
        }
        let section = SECTIONS.iter().find(|(_, keys)| keys.contains(&key.as_str())).map_or(MORE, |(kind, _)| kind);
        whole.entry(section).or_default().insert(key, value);
    }
    if !local_sources.is_empty() {
        whole.insert(LOCAL_SOURCES, Map::from_iter([(LOCAL_SOURCES.to_owned(), json!(local_sources))]));
    }
    let whole = whole.into_iter().map(|(kind, body)| Part {
        kind: kind.to_owned(),
        name: String::new(),
        body: Value::Object(body),
    });
    parts.extend(whole);
    parts
}

/// Puts a config together, and the digests of its local sources.
pub fn assemble<'a>(bodies: impl IntoIterator<Item = &'a Value>) -> Result<(AppConfig, BTreeMap<String, String>)> {
    let mut document = Map::new();
    let mut local_sources = BTreeMap::new();
    for (key, value) in bodies.into_iter().filter_map(Value::as_object).flatten() {
        match (document.get_mut(key), value) {
            _ if key == LOCAL_SOURCES => {
                local_sources = serde_json::from_value(value.clone()).unwrap_or_default();
            }
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.iter().cloned()),
            _ => {
                document.insert(key.clone(), value.clone());
            }
        }
    }
    let config = AppConfig::from_json(&Value::Object(document)).map_err(|e| AppError::NotAConfig(e.to_string()))?;
    Ok((config, local_sources))
}

/// What tells two configs apart: everything that the files say, and what the local sources hold.
pub fn digest(config: &AppConfig, local_sources: &BTreeMap<String, String>) -> Digest {
    let locals = serde_json::to_string(local_sources).unwrap_or_default();
    Digest::of(&[config.canonical_json().as_slice(), b"\n", locals.as_bytes()].concat())
}

/// The tree that templates of an install see, and the values in it that must not be shown.
#[derive(Debug, Clone)]
pub struct InstallTree {
    pub root: Value,
    pub sensitive: BTreeSet<String>,
    /// Placeholders in it that only the executor can fill in.
    pub sealed: Vec<SealedValue>,
}

impl InstallTree {
    /// The sensitive values that can be masked.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.sensitive.iter().filter(|value| value.len() >= SECRET_BYTES_MIN).cloned().collect()
    }

    /// A text with all sensitive values masked.
    pub fn masked(&self, text: &str) -> String {
        // Longer ones first: one may contain another.
        let mut values = self.secrets();
        values.sort_by_key(|v| std::cmp::Reverse(v.len()));
        values.into_iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), "***"))
    }
}

/// A config with what is known about it. It never changes.
#[derive(Debug)]
pub struct Document {
    pub config: AppConfig,
    /// Digests of the app's local sources, by directory.
    pub local_sources: BTreeMap<String, String>,
    pub uses: Uses,
    /// What each component needs, directly.
    pub needs: BTreeMap<String, Vec<String>>,
    /// Names of recipes by the ids of components, once somebody has asked for one.
    pub(crate) recipes: OnceCell<BTreeMap<String, String>>,
}

/// Configs that are kept in memory.
const DOCUMENTS: usize = 32;

#[derive(Default)]
pub(crate) struct Documents(Mutex<HashMap<ConfigId, Arc<Document>>>);

impl Conductor {
    /// A config of an app, read once.
    pub async fn document(&self, org: &OrgId, app: &AppId, id: &ConfigId) -> Result<Arc<Document>> {
        // Whose config it is must be known each time.
        let config = self.store.config(org, app, id).await?;
        let known = self.documents.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(document) = known {
            return Ok(document);
        }
        let (config, local_sources) = self.app_config(org, &config).await?;
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for dependency in Graph::new(&config).map(|graph| graph.dependencies).unwrap_or_default() {
            needs.entry(dependency.component).or_default().push(dependency.on);
        }
        let document =
            Arc::new(Document { uses: Uses::new(&config), config, local_sources, needs, recipes: OnceCell::new() });
        let mut documents = self.documents.0.lock().unwrap_or_else(PoisonError::into_inner);
        if documents.len() >= DOCUMENTS {
            documents.clear();
        }
        documents.insert(id.clone(), Arc::clone(&document));
        Ok(document)
    }

    /// The config as a whole, and the digests of its local sources.
    pub async fn app_config(&self, org: &OrgId, config: &Config) -> Result<(AppConfig, BTreeMap<String, String>)> {
        let sections = self.store.sections(org, &config.id).await?;
        assemble(sections.iter().map(|s| &s.body))
    }

    /// What templates of an install see: org, app, install, inputs, and what actions have put out. For eyes other than the
    /// install's, `mask` stands for every sensitive value.
    pub async fn install_tree(&self, install: &Install, config: &AppConfig, mask: Option<&str>) -> Result<InstallTree> {
        let (org_id, store) = (&install.org_id, &self.store);
        let (org, app) = (store.org(org_id).await?, store.app(org_id, install.app_id.as_str()).await?);
        let runner = store.runner(org_id, install.runner_id.as_str()).await?;
        let given = store.current_inputs(org_id, &install.id).await?.map(|i| i.values).unwrap_or_default();
        let mut variables = store.variables(org_id, &install.app_id).await?;
        let mut inputs = effective_inputs(config, &given);
        let hidden = config.inputs.iter().filter(|i| i.sensitive).filter_map(|i| inputs.get(&i.name).cloned());
        let sensitive = hidden.chain(variables.iter().map(|v| v.value.clone())).collect();
        if let Some(mask) = mask {
            for input in config.inputs.iter().filter(|input| input.sensitive) {
                inputs.insert(input.name.clone(), mask.to_owned());
            }
            variables.iter_mut().for_each(|variable| mask.clone_into(&mut variable.value));
        }
        let variables: BTreeMap<&str, &str> = variables.iter().map(|v| (v.name.as_str(), v.value.as_str())).collect();
        let workflows = self.action_states(install, config).await?;
        let (_, parts) = store.install_parts(org_id, &install.id, None).await?;
        let mut sealed = Vec::new();
        let sandbox = deployed(parts.get("sandbox"), mask, &mut sealed);
        let stack = deployed(parts.get(crate::STACK), mask, &mut sealed);
        let components = components(config, &parts, mask, &mut sealed);
        let nuon = json!({
            "id": install.id,
            "name": install.name,
            "org": { "populated": true, "id": org.id, "name": org.name, "status": "active" },
            "app": { "populated": true, "id": app.id, "name": app.name, "status": "active", "variables": variables },
            "install": { "populated": true, "id": install.id, "name": install.name, "inputs": inputs },
            "inputs": { "populated": true, "inputs": inputs },
            "sandbox": sandbox,
            "install_stack": stack,
            "components": components,
            "secrets": parts.get(model::secrets::SECRETS_PART).map_or_else(|| json!({}), |part| part["outputs"].clone()),
            "actions": { "populated": !workflows.is_empty(), "workflows": workflows },
            "runner": { "populated": true, "id": runner.id, "status": if matches!(self.presence(&runner), Presence::Online) { "active" } else { "offline" } },
            "cloud_account": cloud_account(&install.cloud),
        });
        let mut root = json!({ "nuon": nuon });
        root["nuon"]["labels"] = crate::render(&json!(labels(install, config)), &root).value;
        Ok(InstallTree { root, sensitive, sealed })
    }

    /// The labels of an install as others see them: templates in them are rendered, sensitive values masked.
    pub async fn install_labels(&self, install: &Install) -> Result<Labels> {
        match self.document_of(install).await? {
            Some(document) => self.rendered_labels(install, &document.config).await,
            None => Ok(own_labels(install)),
        }
    }

    /// The same, where the config of the install is known.
    pub async fn rendered_labels(&self, install: &Install, config: &AppConfig) -> Result<Labels> {
        let labels = labels(install, config);
        if !labels.values().any(|value| config::is_template(value)) {
            return Ok(labels);
        }
        let mut tree = self.install_tree(install, config, Some(MASK)).await?;
        Ok(serde_json::from_value(tree.root["nuon"]["labels"].take()).unwrap_or(labels))
    }

    /// The config that an install is at; none where its app was never synced.
    pub async fn document_of(&self, install: &Install) -> Result<Option<Arc<Document>>> {
        let (org, app) = (&install.org_id, &install.app_id);
        let id = match &install.config_id {
            Some(id) => Some(id.clone()),
            None => self.store.active_config(org, app).await?.map(|config| config.id),
        };
        match id {
            Some(id) => Ok(Some(self.document(org, app, &id).await?)),
            None => Ok(None),
        }
    }

    /// The parts of an install as they stand: one whose apply is silent is `unknown`, whatever it was before.
    pub async fn parts_now(&self, install: &Install) -> Result<BTreeMap<String, Value>> {
        let (_, mut parts) = self.store.install_parts(&install.org_id, &install.id, None).await?;
        for target in self.store.silent_targets(&install.org_id, &install.id).await? {
            let part = target.strip_prefix("terraform/").unwrap_or(&target).to_owned();
            let part = parts.entry(part).or_insert_with(|| json!({ "outputs": {} }));
            part["status"] = json!(PartStatus::Unknown.as_str());
        }
        Ok(parts)
    }

    /// Inputs whose value is not what was deployed: they were changed, and the deploy was denied, failed, or has not come yet.
    pub async fn undeployed_inputs(&self, install: &Install) -> Result<Vec<String>> {
        let Some(document) = self.document_of(install).await? else { return Ok(Vec::new()) };
        let Some(now) = self.store.current_inputs(&install.org_id, &install.id).await? else { return Ok(Vec::new()) };
        let (_, parts) = self.store.install_parts(&install.org_id, &install.id, None).await?;
        let versions = self.store.inputs(&install.org_id, &install.id, 0, INPUT_VERSIONS_MAX).await?;
        let values = |given: &BTreeMap<String, String>| effective_inputs(&document.config, given);
        let current = values(&now.values);
        let (laid, laid_use) = (overrides(&now.values), input_uses(&now.values));
        let mut found = BTreeSet::new();
        for (part, state) in parts.iter().filter(|(_, state)| crate::is_there(state)) {
            let uses = match part.strip_prefix("components/") {
                Some(name) => document.uses.components.get(name),
                None if part == "sandbox" => Some(&document.uses.sandbox),
                None => None,
            };
            let then = versions.iter().find(|version| Some(version.version) == state["inputs_version"].as_u64());
            let Some(then) = then else { continue };
            let name = part.strip_prefix("components/").unwrap_or_default();
            let before = overrides(&then.values);
            let texts = |over: Option<&ComponentOverride>| -> BTreeMap<OverrideKind, String> {
                over.into_iter().flat_map(|over| over.texts()).map(|(kind, text)| (kind, text.to_owned())).collect()
            };
            let (is, was) = (texts(laid.get(name)), texts(before.get(name)));
            let other = OverrideKind::ALL.into_iter().filter(|kind| is.get(kind) != was.get(kind));
            found.extend(other.map(|kind| shown(&input_name(name, kind))));
            let uses: Vec<&InputUse> = uses.into_iter().chain(laid_use.get(name)).collect();
            let then = values(&then.values);
            let read =
                current.iter().filter(|(name, _)| uses.iter().any(|uses| uses.any || uses.names.contains(*name)));
            found.extend(read.filter(|(name, value)| then.get(*name) != Some(*value)).map(|(name, _)| name.clone()));
        }
        Ok(found.into_iter().collect())
    }

    /// Every action of the app: how its last run went, and what the last one that finished has put out.
    async fn action_states(&self, install: &Install, config: &AppConfig) -> Result<Map<String, Value>> {
        let (org, store) = (&install.org_id, &self.store);
        let never = || json!({ "populated": false, "status": "", "outputs": { "steps": {} } });
        let mut workflows: Map<String, Value> = config.actions.iter().map(|a| (a.name.clone(), never())).collect();
        for finished in [false, true] {
            for run in store.last_runs(install, finished).await? {
                let Ok(action) = store.entity(org, None, EntityKind::Action, &run.action_id).await else { continue };
                let job = store.job(org, &run.job_id).await?;
                let state = workflows.entry(action.name).or_insert_with(never);
                if finished {
                    state["outputs"] = Value::Object(self.outputs(&job).await?);
                } else {
                    state["populated"] = json!(true);
                    state["status"] = json!(job.state.as_str());
                    state["id"] = json!(run.action_id);
                }
            }
        }
        Ok(workflows)
    }

    /// What the current execution of a job has put out.
    pub async fn outputs(&self, job: &store::Job) -> Result<Map<String, Value>> {
        for execution in self.store.executions_of(&job.id).await? {
            if execution.epoch == job.epoch
                && let Some(result) = self.store.result(&job.org_id, &execution.id).await?
            {
                return Ok(result.outputs);
            }
        }
        Ok(Map::new())
    }
}

/// Every input that the app declares: as given, or its default, or empty.
pub fn effective_inputs(config: &AppConfig, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let of = |input: &config::Input| {
        let given = given.get(&input.name).filter(|value| !value.is_empty()).cloned();
        given.or_else(|| input.default.clone()).unwrap_or_default()
    };
    config.inputs.iter().map(|input| (input.name.clone(), of(input))).collect()
}

/// The labels that an install was given.
pub fn own_labels(install: &Install) -> Labels {
    install.settings.labels.clone()
}

/// Those of the app, and the install's own over them; templates as they were written.
fn labels(install: &Install, config: &AppConfig) -> Labels {
    let mut labels = config.metadata.as_ref().map(|metadata| metadata.default_labels.clone()).unwrap_or_default();
    labels.extend(own_labels(install));
    labels
}

/// Components that were never deployed have put nothing out.
fn components(
    config: &AppConfig,
    parts: &BTreeMap<String, Value>,
    mask: Option<&str>,
    sealed: &mut Vec<SealedValue>,
) -> Map<String, Value> {
    let mut component = |c: &config::Component| {
        let mut state = deployed(parts.get(&format!("components/{}", c.common.name)), mask, sealed);
        state["name"] = json!(c.common.name);
        (c.common.name.clone(), state)
    };
    config.components.iter().map(&mut component).collect()
}

/// What templates see of a part of the install's state.
fn deployed(part: Option<&Value>, mask: Option<&str>, sealed: &mut Vec<SealedValue>) -> Value {
    match part {
        Some(part) => {
            let mut outputs = part["outputs"].clone();
            crate::apps::sealed::lay(part, &mut outputs, mask, sealed);
            json!({ "populated": true, "status": part["status"], "outputs": outputs })
        }
        None => json!({ "populated": false, "status": "", "outputs": {} }),
    }
}

/// `aws_account {region}` of an install is `aws {region}` in templates.
fn cloud_account(cloud: &Value) -> Value {
    let accounts = cloud.as_object().into_iter().flatten();
    accounts
        .map(|(key, account)| (key.trim_end_matches("_account").to_owned(), account.clone()))
        .collect::<Map<_, _>>()
        .into()
}
