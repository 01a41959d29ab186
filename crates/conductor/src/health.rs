//! Owns the health of what is deployed: what a runner is to observe, what follows from what it saw and from checks that others push.
//! Both APIs and a reconciler call it.
//! No rules: those are in `engine::health`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::{AppConfig, ComponentKind};
use engine::health::{
    Alert, Around, Changes, Check, InstallHealth, SILENCE_S, STALE_MAX_S, STALE_S, Transition, excused,
};
use model::deploy::{SealedValue, job_target};
use model::health::{COMPONENTS_MAX, OBJECTS_MAX, Observation, Probe, ProbeKind, REASON_CHARS_MAX, Verdict};
use model::health::{Watch, WatchedComponent};
use model::papers::Signed;
use model::{ConfigId, InstallId, OrgId, RunnerId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{HealthChange, HealthRow, HealthTransition, Install, Runner, StoreError};

use crate::apps::InstallTree;
use crate::apps::sealed::remembered;
use crate::error::{InstallError, Result};
use crate::workflows::context_component;
use crate::{By, Conductor, Document, is_there};

/// How often a write that met another one is tried anew.
const TRIES: usize = 20;
/// How soon an observation is followed by the next one: while they do not agree, and else.
const SOON_S: u64 = 15;
const SLOW_S: u64 = 60;
/// Installs that one look goes through.
const BATCH: u64 = 256;
/// History is kept for so long.
pub const HISTORY_DAYS: i64 = 90;

/// What is stored of an install's health.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// The runner's count that `deployed`, `needs` and `required` are of.
    watch: Option<u64>,
    /// Components that are deployed, each with whether a runner observes it.
    pub deployed: BTreeMap<String, bool>,
    needs: BTreeMap<String, Vec<String>>,
    /// Checks that a component requires.
    required: BTreeMap<String, BTreeSet<String>>,
    pub components: InstallHealth,
}

impl Health {
    fn of(row: &HealthRow) -> Self {
        // What another version of Ferry wrote is observed anew.
        Self::deserialize(&row.body).unwrap_or_default()
    }

    fn names(&self) -> BTreeSet<String> {
        self.deployed.keys().cloned().collect()
    }

    fn observed(&self) -> BTreeSet<String> {
        self.deployed.iter().filter(|(_, observed)| **observed).map(|(name, _)| name.clone()).collect()
    }
}

/// A check as somebody pushes it.
#[derive(Debug, Clone)]
pub struct WantedCheck {
    pub status: Verdict,
    pub message: String,
    pub stale_after_s: Option<u64>,
}

/// What is asked of the health of a component.
pub(crate) struct Wanted<'c> {
    health: Option<&'c config::Health>,
    /// Its deploys say which objects there are.
    has_objects: bool,
    /// It ran, and is over: whether it ran well is what its deploy says.
    is_run: bool,
}

/// The table `health` of a component.
pub(crate) fn wanted<'c>(config: &'c AppConfig, name: &str) -> Wanted<'c> {
    let component = config.components.iter().find(|known| known.common.name == name);
    let objects =
        |kind: &ComponentKind| matches!(kind, ComponentKind::HelmChart(_) | ComponentKind::KubernetesManifest(_));
    Wanted {
        health: component.and_then(|component| component.kind.health()),
        has_objects: component.is_some_and(|component| objects(&component.kind)),
        is_run: component.is_some_and(|component| matches!(component.kind, ComponentKind::Job(_))),
    }
}

impl Wanted<'_> {
    fn is_on(&self) -> bool {
        !self.is_run && self.health.and_then(|health| health.enabled).unwrap_or(true)
    }

    /// The probes as the app names them; templates may stand in them.
    fn probes(&self) -> Vec<Probe> {
        let probes = self.health.map(|health| health.probes.as_slice()).unwrap_or_default();
        let named = |(at, probe): (usize, &config::Probe)| {
            let name = probe.name.clone().unwrap_or_else(|| format!("{} {}", probe.r#type, at + 1));
            let (url, command) = (probe.url.clone().unwrap_or_default(), probe.command.clone());
            let how = match probe.r#type.as_str() {
                "http" => ProbeKind::Http { url },
                "tcp" => ProbeKind::Tcp { url },
                _ => ProbeKind::Exec { command },
            };
            Probe { name, how }
        };
        probes.iter().enumerate().map(named).collect()
    }
}

/// A config with what templates see of the install at it.
type Scene = (Arc<Document>, InstallTree);

impl Conductor {
    /// What a runner is to observe now, signed for the request with this nonce; and the count that it is of.
    pub async fn watch_of(
        &self,
        org: &OrgId,
        runner: &RunnerId,
        generation: u64,
        nonce: &str,
    ) -> Result<(u64, Option<Signed>)> {
        let runner = self.store.runner(org, runner.as_str()).await?;
        let install_id = runner.install_id.clone().ok_or(StoreError::NotFound("install of this runner"))?;
        let install = self.store.install(org, install_id.as_str()).await?;
        // What is not deployed any more is forgotten now, and not when nobody hears of it.
        self.change_health(org, &install_id, "ferry", |health, around| {
            let names = health.names();
            Ok(health.components.look(&names, around))
        })
        .await?;
        let (components, sealed, secrets) = self.watched(&install).await?;
        if components.is_empty() {
            return Ok((runner.watch, None));
        }
        let watch = Watch {
            runner_id: runner.id,
            install_id,
            generation,
            nonce: nonce.to_owned(),
            components,
            sealed,
            secrets: secrets.into_iter().collect(),
            store_secrets: self.store_secrets(&install).await?,
        };
        Ok((runner.watch, Some(self.signing_keys().signatory.watch(&watch))))
    }

    async fn scene<'s>(
        &self,
        install: &Install,
        part: &Value,
        scenes: &'s mut BTreeMap<Option<String>, Option<Scene>>,
    ) -> Result<Option<&'s Scene>> {
        let key = part["config_id"].as_str().map(str::to_owned);
        if !scenes.contains_key(&key) {
            let document = match key.as_deref().map(ConfigId::parse) {
                Some(Ok(id)) => self.document(&install.org_id, &install.app_id, &id).await.ok(),
                _ => None,
            };
            let document = match document {
                Some(document) => Some(document),
                None => self.document_of(install).await?,
            };
            let scene = match document {
                Some(document) => {
                    let tree = self.install_tree(install, &document.config, None).await?;
                    Some((document, tree))
                }
                None => None,
            };
            scenes.insert(key.clone(), scene);
        }
        Ok(scenes.get(&key).and_then(Option::as_ref))
    }

    async fn watched(&self, install: &Install) -> Result<(Vec<WatchedComponent>, Vec<SealedValue>, BTreeSet<String>)> {
        let (_, parts) = self.store.install_parts(&install.org_id, &install.id, None).await?;
        let (mut scenes, mut components) = (BTreeMap::new(), Vec::new());
        let (mut sealed, mut secrets): (BTreeMap<String, SealedValue>, BTreeSet<String>) = Default::default();
        for (part, value) in parts.iter().filter(|(_, value)| is_there(value)) {
            let Some(name) = part.strip_prefix("components/") else { continue };
            let Some((document, tree)) = self.scene(install, value, &mut scenes).await? else { continue };
            let wanted = wanted(&document.config, name);
            if !is_observed(value, &wanted) {
                continue;
            }
            let mut unknown = if value[OBJECTS].is_array() || !wanted.has_objects {
                String::new()
            } else {
                "its objects are not known, because no deploy of it has succeeded lately: deploy it once more"
                    .to_owned()
            };
            let (rendering, mut used) = tree.render(&json!(wanted.probes()));
            let probes = match rendering.problems.first() {
                Some(problem) => {
                    unknown = format!("its probes can't be rendered: {}", tree.masked(&problem.message));
                    Vec::new()
                }
                None => serde_json::from_value(rendering.value).unwrap_or_default(),
            };
            let component = document.config.components.iter().find(|known| known.common.name == name);
            let context = component.and_then(|component| component.common.kubernetes_context.as_deref());
            let (cluster, more) = tree.cluster(context_component(&document.config, context).as_deref());
            used.extend(more);
            used.extend(remembered(value));
            sealed.extend(
                used.into_iter().map(|value| (json!([value.placeholder, value.file.upload_id]).to_string(), value)),
            );
            secrets.extend(tree.secrets());
            components.push(WatchedComponent {
                name: name.to_owned(),
                generation: value["generation"].as_u64().unwrap_or_default(),
                cluster,
                objects: value[OBJECTS].as_array().cloned().unwrap_or_default(),
                probes,
                unknown,
            });
        }
        components.truncate(COMPONENTS_MAX);
        Ok((components, sealed.into_values().collect(), secrets))
    }

    /// Takes what a runner has observed; says in how many seconds it should look again.
    pub async fn note_health(&self, org: &OrgId, install: &InstallId, observations: Vec<Observation>) -> Result<u64> {
        let mut observations: Vec<Observation> = observations.into_iter().take(COMPONENTS_MAX).map(bounded).collect();
        if observations.iter().flat_map(|it| &it.objects).any(|object| object.by_change) {
            observations = self.excused(org, install, observations).await?;
        }
        let health = self
            .change_health(org, install, "runner", |health, around| {
                let names = health.names();
                Ok(health.components.observe(observations.clone(), &names, around))
            })
            .await?;
        let soon = health.components.0.values().any(|component| {
            component.is_undecided() || component.seen.as_ref().is_some_and(|seen| !seen.observation.verdict.is_good())
        });
        Ok(if soon { SOON_S } else { SLOW_S })
    }

    /// What is being deployed or torn down is changing. So is what has changed since the runner learned what to observe.
    async fn excused(
        &self,
        org: &OrgId,
        install: &InstallId,
        observations: Vec<Observation>,
    ) -> Result<Vec<Observation>> {
        let (_, parts) = self.store.install_parts(org, install, None).await?;
        let changing = self.store.applied_targets(org, install).await?;
        let is_changing = |it: &Observation| {
            let part = format!("components/{}", it.component);
            let generation = parts.get(&part).and_then(|value| value["generation"].as_u64());
            generation.is_some_and(|generation| generation > it.generation) || changing.contains(&job_target(&part))
        };
        let each = observations.into_iter();
        Ok(each.map(|it| if is_changing(&it) { excused(it) } else { it }).collect())
    }

    /// Takes a check that somebody pushes.
    pub async fn push_check(
        &self,
        by: &By,
        install: &Install,
        component: &str,
        name: &str,
        wanted: WantedCheck,
    ) -> Result<Health> {
        let stale_after_s = wanted.stale_after_s.unwrap_or(STALE_S);
        if !(1..=STALE_MAX_S).contains(&stale_after_s) {
            return Err(InstallError::StaleAfter(STALE_MAX_S / 60).into());
        }
        if name.is_empty() || name.len() > 100 || wanted.message.chars().count() > REASON_CHARS_MAX {
            return Err(InstallError::CheckText(REASON_CHARS_MAX).into());
        }
        let part = self.store.install_part(&by.org, &install.id, &format!("components/{component}")).await?;
        let is_there = part.as_ref().is_some_and(is_there);
        self.change_health(&by.org, &install.id, by.actor(), |health, around| {
            if !health.deployed.contains_key(component) {
                let name = component.to_owned();
                return Err(
                    if is_there { InstallError::NotObserved(name) } else { InstallError::NotDeployed(name) }.into()
                );
            }
            let check = Check {
                status: wanted.status,
                message: wanted.message.clone(),
                at: around.now,
                stale_after_s,
                well_since: None,
            };
            Ok(health.components.check(component, name, check, around).map_err(InstallError::Check)?)
        })
        .await
    }

    /// Forgets a check that somebody has pushed.
    pub async fn forget_check(&self, by: &By, install: &Install, component: &str, name: &str) -> Result<Health> {
        self.change_health(&by.org, &install.id, by.actor(), |health, around| {
            let forgotten = health.components.forget_check(component, name, around);
            Ok(forgotten.ok_or(StoreError::NotFound("check of this component"))?)
        })
        .await
    }

    /// Looks at installs of which time alone may have changed something: silence, stale checks, rollouts that never end.
    pub async fn reconcile_component_health(&self) -> Result<()> {
        for (org, install) in self.store.due_health(self.now(), BATCH).await? {
            let looked = self.change_health(&org, &install, "ferry", |health, around| {
                let names = health.names();
                Ok(health.components.look(&names, around))
            });
            crate::reconcile::go_on("component health", looked.await);
        }
        Ok(())
    }

    /// The health of an install as it is stored.
    pub async fn health_of(&self, install: &Install) -> Result<Health> {
        let row = self.store.install_health(&install.org_id, &install.id).await?;
        Ok(row.map(|row| Health::of(&row)).unwrap_or_default())
    }

    async fn change_health(
        &self,
        org: &OrgId,
        install: &InstallId,
        actor: &str,
        act: impl Fn(&mut Health, &Around) -> Result<Changes>,
    ) -> Result<Health> {
        for _ in 0..TRIES {
            let row = self.store.install_health(org, install).await?;
            let mut health = row.as_ref().map(Health::of).unwrap_or_default();
            self.refresh(org, install, &mut health).await?;
            let (now, needs, required) = (self.now(), health.needs.clone(), health.required.clone());
            let (observed, silence_s) = (health.observed(), SILENCE_S);
            let around = Around { now, needs: &needs, observed: &observed, required: &required, silence_s };
            let Changes { transitions, alerts } = act(&mut health, &around)?;
            let verdict = health.components.verdict().map(Verdict::as_str).unwrap_or_default().to_owned();
            let new = HealthRow {
                install_id: install.clone(),
                org_id: org.clone(),
                verdict,
                body: json!(health),
                version: row.as_ref().map_or(0, |row| row.version),
                due_at: health.components.due(&around),
                updated_at: now,
            };
            let same = |row: &HealthRow| row.body == new.body && row.due_at == new.due_at;
            if row.as_ref().is_some_and(same) || row.is_none() && health == Health::default() {
                return Ok(health);
            }
            let change = HealthChange {
                row: new,
                transitions: transitions.into_iter().map(transition).collect(),
                events: alerts.into_iter().map(|alert| event(install, alert)).collect(),
                actor: actor.to_owned(),
            };
            if self.store.write_health(change).await? {
                return Ok(health);
            }
        }
        Err(InstallError::Busy.into())
    }

    /// Learns what is deployed, where that has changed since it was noted.
    async fn refresh(&self, org: &OrgId, install: &InstallId, health: &mut Health) -> Result<()> {
        let install = self.store.install(org, install.as_str()).await?;
        let Runner { watch, .. } = self.store.runner(org, install.runner_id.as_str()).await?;
        if health.watch == Some(watch) {
            return Ok(());
        }
        let (_, parts) = self.store.install_parts(org, &install.id, None).await?;
        let document = self.document_of(&install).await?;
        health.deployed.clear();
        health.required.clear();
        for (part, value) in parts.iter().filter(|(_, value)| is_there(value)) {
            let Some(name) = part.strip_prefix("components/") else { continue };
            let wanted = document.as_ref().map_or(NOTHING, |known| wanted(&known.config, name));
            if wanted.is_on() {
                health.deployed.insert(name.to_owned(), is_observed(value, &wanted));
                let required = wanted.health.map(|health| health.required_checks.iter().cloned().collect());
                health
                    .required
                    .extend(required.filter(|it: &BTreeSet<_>| !it.is_empty()).map(|it| (name.to_owned(), it)));
            }
        }
        health.needs = document.map(|document| document.needs.clone()).unwrap_or_default();
        health.watch = Some(watch);
        Ok(())
    }
}

const NOTHING: Wanted<'static> = Wanted { health: None, has_objects: false, is_run: false };
/// What a part keeps of the objects that were deployed.
pub(crate) const OBJECTS: &str = "objects";

fn is_observed(part: &Value, wanted: &Wanted) -> bool {
    let objects = part[OBJECTS].as_array().is_some_and(|objects| !objects.is_empty());
    wanted.is_on() && (objects || wanted.has_objects || wanted.health.is_some_and(|health| !health.probes.is_empty()))
}

fn shortened(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}

/// Whatever a runner sends, what is kept of it is bounded.
fn bounded(mut observation: Observation) -> Observation {
    observation.reason = shortened(&observation.reason);
    observation.objects.truncate(OBJECTS_MAX);
    for object in &mut observation.objects {
        object.reason = shortened(&object.reason);
    }
    observation
}

fn transition(Transition { component, from, told }: Transition) -> HealthTransition {
    HealthTransition {
        component,
        at: told.since,
        was: from.map(|verdict| verdict.as_str().to_owned()),
        verdict: told.verdict.as_str().to_owned(),
        reason: told.reason,
        downstream_of: told.downstream_of,
    }
}

fn event(install: &InstallId, alert: Alert) -> (&'static str, Value) {
    let Alert { component, recovered, silent, told } = alert;
    let data = json!({
        "install_id": install, "component": component, "verdict": told.verdict, "reason": told.reason, "silent": silent,
        "downstream_of": told.downstream_of,
    });
    (if recovered { "health.recovered" } else { "health.bad" }, data)
}
