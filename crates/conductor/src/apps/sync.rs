//! From sections or files to the next version: validation with the same crate as the CLI's, then one atomic commit.

use std::collections::{BTreeMap, BTreeSet};

use config::{AppConfig, Problem, Severity};
use model::{Digest, SectionId, Timestamp};
use serde_json::{Value, json};
use store::{App, Build, Commit, Config, ENTITIES_MAX, Entity, EntityKind, NewEntity, Section, StoreError};

use super::{LOCAL_SOURCES, Part, assemble, digest, parts};
use crate::error::{AppError, Error, Result};
use crate::{By, Conductor};

const KINDS: [EntityKind; 2] = [EntityKind::Component, EntityKind::Action];
/// How often a commit starts over when someone else was faster.
const TRIES: usize = 5;

/// A config with the digests of its local sources.
pub type Whole = (AppConfig, BTreeMap<String, String>);

/// A whole app, as a client sends it.
#[derive(Debug, Clone)]
pub struct WantedSync {
    pub config: Value,
    /// Digests of uploaded archives, by directory.
    pub local_sources: BTreeMap<String, String>,
    pub cli_version: String,
    /// Says what would change, and changes nothing.
    pub plan_only: bool,
}

/// What came of a sync.
#[derive(Debug, Clone)]
pub struct Synced {
    pub config: Config,
    pub unchanged: bool,
    pub changes: Vec<Value>,
    /// Components and actions that the app has, and the config does not.
    pub removed: Vec<(EntityKind, Entity)>,
    pub builds: Vec<Build>,
    pub warnings: Vec<Problem>,
}

/// How a client commits a draft that it has filled.
#[derive(Debug, Clone, Default)]
pub struct WantedCommit {
    /// All components of the version. Without the list, what the draft lacks is taken over.
    pub component_ids: Option<BTreeSet<String>>,
    pub description: String,
    pub state: Option<String>,
}

/// What changed, as the CLI draws it; a local source as a whole.
pub fn changes(from: &Whole, to: &Whole) -> Vec<Value> {
    let mut changes: Vec<Value> =
        config::diff(&from.0, &to.0).iter().filter_map(|change| serde_json::to_value(change).ok()).collect();
    for directory in from.1.keys().chain(to.1.keys()).collect::<BTreeSet<_>>() {
        let kind = match (from.1.get(directory), to.1.get(directory)) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(old), Some(new)) if old != new => "changed",
            (Some(_), Some(_)) => continue,
        };
        changes.push(json!({ "part": LOCAL_SOURCES, "name": directory, "kind": kind, "fields": [] }));
    }
    changes
}

/// A config that was read and checked.
struct Checked {
    config: AppConfig,
    local_sources: BTreeMap<String, String>,
    digest: Digest,
    warnings: Vec<Problem>,
}

/// What is no error this time.
#[derive(Default)]
struct Tolerance {
    code: Option<config::Code>,
    /// Local sources that were not uploaded: nothing is made yet.
    not_uploaded: bool,
}

/// What an incomplete draft takes over from the active version. A client that lists its components has sent everything but
/// the components that did not change; one that does not list them changes only what it sent.
fn carried(draft: &[Section], active: Vec<Section>, wanted: Option<&BTreeSet<String>>) -> Vec<Section> {
    let sent: BTreeSet<(&str, &str)> = draft.iter().map(|s| (s.kind.as_str(), s.name.as_str())).collect();
    // One that was renamed is the same all the same.
    let same: BTreeSet<&String> = draft.iter().filter_map(|s| s.entity_id.as_ref()).collect();
    let is_sent = |s: &Section| {
        sent.contains(&(s.kind.as_str(), s.name.as_str())) || s.entity_id.as_ref().is_some_and(|id| same.contains(id))
    };
    let missing = active.into_iter().filter(|s| !is_sent(s));
    match wanted {
        None => missing.collect(),
        Some(ids) => missing
            .filter(|s| s.kind == EntityKind::Component.section())
            .filter(|s| s.entity_id.as_ref().is_some_and(|id| ids.contains(id)))
            .collect(),
    }
}

impl Conductor {
    /// Syncs a whole app: validates it, and makes it the active version. Equal content makes no new one.
    pub async fn sync_app(&self, by: &By, app: &App, wanted: WantedSync) -> Result<Synced> {
        let config = AppConfig::from_json(&wanted.config).map_err(|e| AppError::NotAConfig(e.to_string()))?;
        let tolerance = Tolerance { not_uploaded: wanted.plan_only, ..Tolerance::default() };
        let named: BTreeSet<String> =
            config::local_sources(&config).into_iter().map(|source| source.directory).collect();
        let mut local_sources = wanted.local_sources;
        local_sources.retain(|directory, _| named.contains(directory));
        let checked = self.check_config(by, config, local_sources, tolerance).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            match Box::pin(self.commit_whole(by, app, &checked, &wanted.cli_version, wanted.plan_only)).await {
                Err(Error::Store(StoreError::Stale(_))) if tries < TRIES => {}
                done => return done,
            }
        }
    }

    /// Makes a draft the next version, on what is active now.
    pub async fn commit_draft(&self, by: &By, app: &App, draft: Config, wanted: WantedCommit) -> Result<Config> {
        let mut tries = 0;
        loop {
            tries += 1;
            let commit = self.prepare(by, app, &draft, &wanted).await?;
            match self.store.commit_config(draft.clone(), commit).await {
                Err(StoreError::Stale(_)) if tries < TRIES => {}
                done => {
                    let config = done?;
                    self.builds_of(by, &config).await;
                    return Ok(config);
                }
            }
        }
    }

    /// Schedules the builds of a config. A sync does not fail with them: what could not be scheduled now is scheduled later.
    async fn builds_of(&self, by: &By, config: &Config) -> Vec<Build> {
        match self.plan_builds(&by.org, config, by.actor()).await {
            Ok(builds) => builds,
            Err(error) => {
                tracing::warn!(%error, config = %config.id, "the builds can't be planned now");
                if let Err(error) = self.store.unplan(&config.id).await {
                    tracing::warn!(%error, config = %config.id, "nor later, without another sync");
                }
                Vec::new()
            }
        }
    }

    /// The very checks that the CLI makes, and what only the server knows.
    async fn check_config(
        &self,
        by: &By,
        config: AppConfig,
        local_sources: BTreeMap<String, String>,
        tolerance: Tolerance,
    ) -> Result<Checked> {
        let counts = [config.components.len(), config.actions.len(), config.inputs.len(), config.installs.len()];
        if counts.iter().any(|count| *count > ENTITIES_MAX as usize) {
            return Err(AppError::TooMany(ENTITIES_MAX).into());
        }
        let checking = config.clone();
        let checked = tokio::task::spawn_blocking(move || config::check(&checking)).await;
        let mut problems = checked.map_err(|_| AppError::CheckDied)?;
        for problem in problems.iter_mut().filter(|p| Some(p.code) == tolerance.code) {
            problem.severity = Severity::Warning;
        }
        if problems.iter().any(|p| p.severity == Severity::Error) {
            return Err(AppError::Config(problems).into());
        }
        for config::LocalSource { directory, .. } in config::local_sources(&config) {
            let digest = local_sources.get(&directory).and_then(|text| Digest::parse(text).ok());
            let uploaded = match &digest {
                Some(digest) => self.store.has_archive(&by.org, digest).await?,
                None => false,
            };
            if !uploaded && !tolerance.not_uploaded {
                return Err(AppError::SourceNotUploaded(directory).into());
            }
        }
        let digest = digest(&config, &local_sources);
        Ok(Checked { config, local_sources, digest, warnings: problems })
    }

    /// The sections of a checked config. What a client posted keeps its id and its checksum.
    fn fresh_sections(&self, by: &By, draft: &Config, checked: &Checked, posted: &[Section]) -> Vec<Section> {
        let now = self.now();
        let section = |part: Part| {
            let known = posted.iter().find(|s| s.kind == part.kind && s.name == part.name);
            let own = known.filter(|s| s.config_id == draft.id);
            let checksum = known.map(|s| s.checksum.clone()).filter(|c| !c.is_empty());
            Section {
                id: own.map_or_else(|| SectionId::new(now, self.random_u128()), |s| s.id.clone()),
                config_id: draft.id.clone(),
                checksum: checksum.unwrap_or_else(|| Digest::of(part.body.to_string().as_bytes()).hex().to_owned()),
                kind: part.kind,
                name: part.name,
                entity_id: None,
                body: part.body,
                created_by: by.account.clone(),
                created_at: own.map_or(now, |s| s.created_at),
            }
        };
        parts(&checked.config, &checked.local_sources).into_iter().map(section).collect()
    }

    /// The components and actions of a config; those that are new get these ids.
    fn entities_of(&self, config: &AppConfig, now: Timestamp) -> Vec<NewEntity> {
        let id = |kind: EntityKind| kind.new_id(now, self.random_u128());
        // Those that files name, and those that templates read.
        let mut after: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for edge in config::Graph::new(config).map(|graph| graph.dependencies).unwrap_or_default() {
            after.entry(edge.component).or_default().push(edge.on);
        }
        let components = config.components.iter().map(|component| NewEntity {
            id: id(EntityKind::Component),
            kind: EntityKind::Component,
            name: component.common.name.clone(),
            entity_type: Some(component.kind.name().to_owned()),
            var_name: component.common.var_name.clone().unwrap_or_default(),
            labels: component.common.labels.clone(),
            dependencies: after.get(&component.common.name).cloned().unwrap_or_default(),
        });
        let actions = config.actions.iter().map(|action| NewEntity {
            id: id(EntityKind::Action),
            kind: EntityKind::Action,
            name: action.name.clone(),
            entity_type: None,
            var_name: String::new(),
            labels: action.labels.clone(),
            dependencies: action.dependencies.clone(),
        });
        components.chain(actions).collect()
    }

    /// Components and actions that the app has, and this config does not.
    async fn removed_by(&self, app: &App, config: &AppConfig) -> Result<Vec<(EntityKind, Entity)>> {
        let mut removed = Vec::new();
        for kind in KINDS {
            let kept: BTreeSet<&str> = match kind {
                EntityKind::Component => config.components.iter().map(|c| c.common.name.as_str()).collect(),
                EntityKind::Action => config.actions.iter().map(|a| a.name.as_str()).collect(),
            };
            let known = self.store.all_entities(&app.org_id, &app.id, kind).await?;
            let gone = known.into_iter().filter(|entity| !kept.contains(entity.name.as_str()));
            removed.extend(gone.map(|entity| (kind, entity)));
        }
        Ok(removed)
    }

    /// Components that a client lists and neither posted nor kept: their last config, of whatever version, stands for them.
    async fn listed(&self, by: &By, ids: &BTreeSet<String>, there: &[Section]) -> Result<Vec<Section>> {
        let mut found = Vec::new();
        for id in ids.iter().filter(|id| !there.iter().any(|s| s.entity_id.as_deref() == Some(id.as_str()))) {
            found.extend(self.store.sections_of(&by.org, id, 0, 1).await?);
        }
        Ok(found)
    }

    /// The commit of a draft as it is now, on what is active now.
    async fn prepare(&self, by: &By, app: &App, draft: &Config, wanted: &WantedCommit) -> Result<Commit> {
        let mut posted = self.store.sections(&by.org, &draft.id).await?;
        let read = posted.iter().map(|section| section.id.clone()).collect();
        let active = self.store.active_config(&by.org, &app.id).await?;
        let known = match &active {
            Some(active) => self.store.sections(&by.org, &active.id).await?,
            None => Vec::new(),
        };
        if let Some(ids) = &wanted.component_ids {
            let components = self.store.all_entities(&by.org, &app.id, EntityKind::Component).await?;
            let there: BTreeSet<&String> = components.iter().map(|component| &component.id).collect();
            if let Some(stranger) = ids.iter().find(|id| !there.contains(id)) {
                let (app, component) = (app.name.clone(), stranger.clone());
                return Err(AppError::NoSuchComponent { app, component }.into());
            }
        }
        posted.extend(carried(&posted, known, wanted.component_ids.as_ref()));
        if let Some(ids) = &wanted.component_ids {
            posted.extend(self.listed(by, ids, &posted).await?);
        }
        let (config, local_sources) = assemble(posted.iter().map(|s| &s.body))?;
        // Older clients know no roles: only one that speaks of them must name all three.
        let speaks_of_roles = posted.iter().any(|s| s.kind == "permissions");
        let code = (!speaks_of_roles).then_some(config::Code::MissingRole);
        let tolerance = Tolerance { code, not_uploaded: false };
        let checked = self.check_config(by, config, local_sources, tolerance).await?;
        Ok(Commit {
            sections: self.fresh_sections(by, draft, &checked, &posted),
            entities: self.entities_of(&checked.config, self.now()),
            digest: checked.digest,
            based_on: active.map(|active| active.id),
            read,
            description: wanted.description.clone(),
            state: wanted.state.clone(),
            actor: by.account.clone(),
            now: self.now(),
        })
    }

    /// Makes a checked config the next version, on what is active now; or says what that would change.
    async fn commit_whole(
        &self,
        by: &By,
        app: &App,
        checked: &Checked,
        cli_version: &str,
        plan_only: bool,
    ) -> Result<Synced> {
        let before = self.store.active_config(&by.org, &app.id).await?;
        let known = match &before {
            Some(before) => self.app_config(&by.org, before).await?,
            None => Whole::default(),
        };
        let changes = changes(&known, &(checked.config.clone(), checked.local_sources.clone()));
        let removed = self.removed_by(app, &checked.config).await?;
        let readme = checked.config.metadata.as_ref().and_then(|m| m.readme.clone()).unwrap_or_default();
        let unchanged = before.as_ref().is_some_and(|b| b.digest.as_ref() == Some(&checked.digest));
        let draft = self.draft(by, app, readme, cli_version.to_owned());
        let config = if plan_only {
            before.unwrap_or(draft)
        } else {
            let commit = Commit {
                sections: self.fresh_sections(by, &draft, checked, &[]),
                entities: self.entities_of(&checked.config, self.now()),
                digest: checked.digest.clone(),
                based_on: before.map(|before| before.id),
                read: BTreeSet::new(),
                description: "synced".into(),
                state: None,
                actor: by.account.clone(),
                now: self.now(),
            };
            self.store.commit_config(draft, commit).await?
        };
        let builds = if plan_only { Vec::new() } else { self.builds_of(by, &config).await };
        Ok(Synced { config, unchanged, changes, removed, builds, warnings: checked.warnings.clone() })
    }
}
