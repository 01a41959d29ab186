//! Configs: immutable, numbered versions of an app's files, kept as sealed sections. A draft takes sections until it is
//! committed; the commit is one transaction.

use std::collections::{BTreeMap, BTreeSet};

use model::{AccountId, AppId, ConfigId, Digest, OrgId, SectionId, Timestamp};
use serde_json::Value as Json;

use crate::apps::entities::{self, NewEntity};
use crate::db::{Table, Tx, params, select, table, text_values};
use crate::events::notify::topic;
use crate::events::{Note, record};
use crate::{Reader, Refused, Result, Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigStatus {
    /// Takes sections.
    Draft,
    Active,
    /// A newer one is active.
    Outdated,
    /// Abandoned or refused.
    Error,
    /// Its content was that of the active version, which stands for it.
    Same,
}

impl ConfigStatus {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Draft, "draft"),
        (Self::Active, "active"),
        (Self::Outdated, "outdated"),
        (Self::Error, "error"),
        (Self::Same, "same"),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(status, _)| *status == self).map_or("", |(_, text)| text)
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == text).map(|(status, _)| *status)
    }
}

text_values!(ConfigStatus);

table! {
    #[derive(Debug, Clone)]
    pub struct Config from "configs" {
        pub id: ConfigId,
        pub org_id: OrgId,
        pub app_id: AppId,
        /// None while it is a draft.
        pub version: Option<u64>,
        pub status: ConfigStatus,
        pub description: String,
        pub digest: Option<Digest>,
        pub same_as: Option<ConfigId>,
        pub readme: String,
        pub cli_version: String,
        /// Opaque: what the client that synced it wants to find again.
        pub state: String,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// A part of a config: a key of its document, or one element of it.
#[derive(Debug, Clone)]
pub struct Section {
    pub id: SectionId,
    pub config_id: ConfigId,
    /// The key in the document: `inputs`, `components`, …
    pub kind: String,
    /// Of the element; empty where the key has no elements.
    pub name: String,
    /// The component or action that it configures.
    pub entity_id: Option<String>,
    /// As the client that posted it counts changes.
    pub checksum: String,
    pub body: Json,
    pub created_by: AccountId,
    pub created_at: Timestamp,
}

/// A whole config to be made active.
#[derive(Debug, Clone)]
pub struct Commit {
    pub digest: Digest,
    /// The version that it was made from; none before the first one.
    pub based_on: Option<ConfigId>,
    /// The sections of the draft that it was made from.
    pub read: BTreeSet<SectionId>,
    pub sections: Vec<Section>,
    /// What its components and actions are, by kind and name; those that the app does not have yet get these ids. The ids of
    /// their sections are filled in by the store.
    pub entities: Vec<NewEntity>,
    pub description: String,
    pub state: Option<String>,
    pub actor: AccountId,
    pub now: Timestamp,
}

table! {
    /// A section as it lies in the database.
    struct SealedSection from "sections" {
        id: SectionId,
        config_id: ConfigId,
        kind: String,
        name: String,
        entity_id: Option<String>,
        checksum: String,
        body: Vec<u8>,
        created_by: AccountId,
        created_at: Timestamp,
    }
}

fn section_place(id: &SectionId) -> String {
    format!("sections|{id}|body")
}

async fn config_of(tx: &mut Tx<'_>, org: &OrgId, app: &AppId, id: &ConfigId) -> Result<Config> {
    let sql = select!(Config, "WHERE org_id = $1 AND app_id = $2 AND id = $3");
    let found = Config::from_row(&tx.get(sql, params![org, app, id]).await?.ok_or(StoreError::NotFound("config"))?)?;
    let Some(same) = &found.same_as else { return Ok(found) };
    Config::from_row(&tx.get(sql, params![org, app, same]).await?.ok_or(StoreError::NotFound("config"))?)
}

async fn active(tx: &mut Tx<'_>, org: &OrgId, app: &AppId) -> Result<Option<Config>> {
    let sql = select!(Config, "WHERE org_id = $1 AND app_id = $2 AND status = 'active' ORDER BY version DESC LIMIT 1");
    tx.get(sql, params![org, app]).await?.as_ref().map(Config::from_row).transpose()
}

async fn insert(tx: &mut Tx<'_>, config: &Config) -> Result<()> {
    tx.exec(
        "INSERT INTO configs (id, org_id, app_id, version, status, description, digest, readme, cli_version, state, created_by, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)",
        params![&config.id, &config.org_id, &config.app_id, config.version, config.status.as_str(), &config.description, config.digest.as_ref().map(Digest::as_str), &config.readme, &config.cli_version, &config.state, &config.created_by, config.created_at],
    )
    .await?;
    Ok(())
}

async fn put(tx: &mut Tx<'_>, org: &OrgId, app: &AppId, section: &Section, sealed: &[u8]) -> Result<()> {
    tx.exec(
        "DELETE FROM sections WHERE config_id = $1 AND kind = $2 AND name = $3",
        params![&section.config_id, &section.kind, &section.name],
    )
    .await?;
    tx.exec(
        "INSERT INTO sections (id, org_id, app_id, config_id, kind, name, entity_id, checksum, body, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        params![&section.id, org, app, &section.config_id, &section.kind, &section.name, section.entity_id.as_ref(), &section.checksum, sealed.to_vec(), &section.created_by, section.created_at],
    )
    .await?;
    Ok(())
}

/// Fills in which component or action a section configures, and makes those that are new.
async fn place_entities(tx: &mut Tx<'_>, config: &Config, commit: &Commit) -> Result<Vec<Section>> {
    let mut ids = BTreeMap::new();
    for new in &commit.entities {
        let entity = entities::adopt(tx, &config.org_id, &config.app_id, new, &commit.actor, commit.now).await?;
        ids.insert((new.kind.section(), entity.name), entity.id);
    }
    let mut sections = commit.sections.clone();
    for section in &mut sections {
        section.config_id = config.id.clone();
        section.entity_id = ids.get(&(section.kind.as_str(), section.name.clone())).cloned();
    }
    Ok(sections)
}

impl Reader {
    async fn seal_section(&self, org: &OrgId, section: &Section) -> Result<Vec<u8>> {
        let body = serde_json::to_vec(&section.body).map_err(StoreError::db)?;
        Ok(self.org_keys(org).await?.seal(&section_place(&section.id), &body))
    }

    async fn open_sections(&self, org: &OrgId, sealed: Vec<SealedSection>) -> Result<Vec<Section>> {
        let mut sections = Vec::with_capacity(sealed.len());
        for one in sealed {
            let SealedSection { id, config_id, kind, name, entity_id, checksum, body, created_by, created_at } = one;
            let body = self.open_sealed(org, &section_place(&id), &body).await?;
            let body = serde_json::from_slice(&body).map_err(|_| StoreError::corrupt("section"))?;
            sections.push(Section { id, config_id, kind, name, entity_id, checksum, body, created_by, created_at });
        }
        Ok(sections)
    }

    pub async fn config(&self, org: &OrgId, app: &AppId, id: &ConfigId) -> Result<Config> {
        self.main()
            .glance((org.clone(), app.clone(), id.clone()), |tx, (org, app, id)| {
                Box::pin(async move { config_of(tx, org, app, id).await })
            })
            .await
    }

    /// The version that is active.
    pub async fn active_config(&self, org: &OrgId, app: &AppId) -> Result<Option<Config>> {
        self.main()
            .glance((org.clone(), app.clone()), |tx, (org, app)| Box::pin(async move { active(tx, org, app).await }))
            .await
    }

    /// Drafts, then versions, newest first.
    pub async fn configs(&self, org: &OrgId, app: &AppId, offset: u64, limit: u64) -> Result<Vec<Config>> {
        self.main()
            .read((org.clone(), app.clone(), offset, limit), |tx, (org, app, offset, limit)| { Box::pin(async move {
                    let sql = select!(Config,
                        "WHERE org_id = $1 AND app_id = $2 AND status <> 'same' ORDER BY CASE WHEN version IS NULL THEN 0 ELSE 1 END, version DESC, id DESC LIMIT $3 OFFSET $4"
                    );
                    tx.query(sql, params![&org, &app, limit, offset]).await?.iter().map(Config::from_row).collect()
                }) })
            .await
    }

    /// A version by its number.
    pub async fn config_version(&self, org: &OrgId, app: &AppId, version: u64) -> Result<Config> {
        self.main()
            .glance((org.clone(), app.clone(), version), |tx, (org, app, version)| {
                Box::pin(async move {
                    let sql = select!(Config, "WHERE org_id = $1 AND app_id = $2 AND version = $3");
                    let row = tx.get(sql, params![&org, &app, version]).await?;
                    Config::from_row(&row.ok_or(StoreError::NotFound("config"))?)
                })
            })
            .await
    }

    /// The sections of a config, by kind and name, opened.
    pub async fn sections(&self, org: &OrgId, config: &ConfigId) -> Result<Vec<Section>> {
        let sealed: Vec<SealedSection> = self
            .main()
            .read((org.clone(), config.clone()), |tx, (org, config)| {
                Box::pin(async move {
                    let sql = select!(SealedSection, "WHERE org_id = $1 AND config_id = $2 ORDER BY kind, name");
                    tx.query(sql, params![&org, &config]).await?.iter().map(SealedSection::from_row).collect()
                })
            })
            .await?;
        self.open_sections(org, sealed).await
    }

    /// The sections that configured a component or an action, newest first: those of versions, then those of open drafts.
    pub async fn sections_of(&self, org: &OrgId, entity: &str, offset: u64, limit: u64) -> Result<Vec<Section>> {
        let sealed: Vec<SealedSection> = self
            .main()
            .read((org.clone(), entity.to_owned(), offset, limit), |tx, (org, entity, offset, limit)| { Box::pin(async move {
                    let sql = "SELECT s.id, s.config_id, s.kind, s.name, s.entity_id, s.checksum, s.created_by, s.created_at, s.body FROM sections s JOIN configs c ON c.id = s.config_id WHERE s.org_id = $1 AND s.entity_id = $2 AND c.status <> 'error' ORDER BY CASE WHEN c.status = 'draft' THEN 1 ELSE 0 END, s.id DESC LIMIT $3 OFFSET $4";
                    tx.query(sql, params![&org, entity, limit, offset]).await?.iter().map(SealedSection::from_row).collect()
                }) })
            .await?;
        self.open_sections(org, sealed).await
    }

    /// How many versions have configured each component and action of an app.
    pub async fn section_counts(&self, org: &OrgId, app: &AppId) -> Result<BTreeMap<String, u64>> {
        self.main()
            .read((org.clone(), app.clone()), |tx, (org, app)| { Box::pin(async move {
                    let sql = "SELECT s.entity_id, COUNT(*) AS count FROM sections s JOIN configs c ON c.id = s.config_id WHERE s.org_id = $1 AND s.app_id = $2 AND s.entity_id IS NOT NULL AND c.status IN ('active', 'outdated') GROUP BY s.entity_id";
                    tx.query(sql, params![&org, &app]).await?.iter().map(|row| Ok((row.get("entity_id")?, row.get("count")?))).collect()
                }) })
            .await
    }
}

impl Store {
    /// Begins a draft, with its first section.
    pub async fn create_draft(&self, config: Config, first: Section) -> Result<()> {
        let sealed = self.seal_section(&config.org_id, &first).await?;
        self.main()
            .write((config, first, sealed), |tx, (config, first, sealed)| {
                Box::pin(async move {
                    insert(tx, config).await?;
                    put(tx, &config.org_id, &config.app_id, first, sealed).await
                })
            })
            .await
    }

    /// Puts a section into a draft, in place of the one before.
    pub async fn put_section(&self, org: &OrgId, app: &AppId, section: Section) -> Result<()> {
        let sealed = self.seal_section(org, &section).await?;
        self.main()
            .write((org.clone(), app.clone(), section, sealed), |tx, (org, app, section, sealed)| {
                Box::pin(async move {
                    let config = config_of(tx, org, app, &section.config_id).await?;
                    // A write, so that a commit at the same time sees it, or is seen.
                    let touch = "UPDATE configs SET updated_at = $2 WHERE id = $1 AND status = 'draft'";
                    if tx.exec(touch, params![&config.id, section.created_at]).await? == 0 {
                        return Err(not_a_draft(&config).into());
                    }
                    put(tx, org, app, section, sealed).await
                })
            })
            .await
    }

    /// Makes a config active, as the next version: a draft of the app, or one that was never a draft. Content equal to that
    /// of the active version makes no new one: that one is returned.
    pub async fn commit_config(&self, config: Config, commit: Commit) -> Result<Config> {
        let mut sealed = BTreeMap::new();
        for section in &commit.sections {
            sealed.insert(section.id.clone(), self.seal_section(&config.org_id, section).await?);
        }
        let org = config.org_id.clone();
        let active = self
            .main()
            .write((config, commit, sealed), |tx, (config, commit, sealed)| {
                Box::pin(async move { activate(tx, config.clone(), commit, sealed).await })
            })
            .await?;
        self.notifier().wake(topic::org(&org));
        Ok(active)
    }

    /// A draft that will not be committed.
    pub async fn abandon_draft(&self, config: &Config, description: &str, now: Timestamp) -> Result<Config> {
        self.main()
            .write((config.clone(), description.to_owned(), now), |tx, (config, description, now)| { Box::pin(async move {
                    let changed = tx
                        .exec(
                            "UPDATE configs SET status = 'error', description = $2, updated_at = $3 WHERE id = $1 AND status IN ('draft', 'error')",
                            params![&config.id, &description, now],
                        )
                        .await?;
                    if changed == 0 {
                        return Err(not_a_draft(config).into());
                    }
                    config_of(tx, &config.org_id, &config.app_id, &config.id).await
                }) })
            .await
    }

    /// What a client notes about a draft; what it does not say stays.
    pub async fn describe_draft(
        &self,
        config: &Config,
        description: Option<String>,
        state: Option<String>,
        now: Timestamp,
    ) -> Result<Config> {
        self.main()
            .write((config.clone(), description, state, now), |tx, (config, description, state, now)| { Box::pin(async move {
                    let note = "UPDATE configs SET description = COALESCE($2, description), state = COALESCE($3, state), updated_at = $4 WHERE id = $1 AND status = 'draft'";
                    if tx.exec(note, params![&config.id, description, state, now]).await? == 0 {
                        return Err(not_a_draft(config).into());
                    }
                    config_of(tx, &config.org_id, &config.app_id, &config.id).await
                }) })
            .await
    }

    /// The newest draft of an account, or this new one with its first section.
    pub async fn draft_of(&self, new: Config, first: Section) -> Result<Config> {
        let sealed = self.seal_section(&new.org_id, &first).await?;
        self.main()
            .write((new, first, sealed), |tx, (new, first, sealed)| { Box::pin(async move {
                    let sql = select!(Config,
                        "WHERE org_id = $1 AND app_id = $2 AND created_by = $3 AND status = 'draft' ORDER BY id DESC LIMIT 1"
                    );
                    if let Some(row) = tx.get(sql, params![&new.org_id, &new.app_id, &new.created_by]).await? {
                        return Config::from_row(&row);
                    }
                    insert(tx, new).await?;
                    put(tx, &new.org_id, &new.app_id, first, sealed).await?;
                    Ok(new.clone())
                }) })
            .await
    }

    /// Deletes drafts that nobody has committed since, and what was abandoned.
    pub async fn prune_drafts(&self, before: Timestamp) -> Result<u64> {
        self.main()
            .write(before, |tx, before| { Box::pin(async move {
                    let of = "DELETE FROM sections WHERE config_id IN (SELECT id FROM configs WHERE version IS NULL AND updated_at < $1)";
                    tx.exec(of, params![before]).await?;
                    tx.exec("DELETE FROM configs WHERE version IS NULL AND updated_at < $1", params![before]).await
                }) })
            .await
    }
}

fn not_a_draft(config: &Config) -> Refused {
    let id = config.id.clone();
    match (config.version, config.status) {
        (Some(version), _) => Refused::ConfigIsVersion { config: id, version },
        (None, ConfigStatus::Error) => Refused::ConfigAbandoned(id),
        (None, _) => Refused::ConfigNotDraft(id),
    }
}

async fn activate(
    tx: &mut Tx<'_>,
    mut config: Config,
    commit: &Commit,
    sealed: &BTreeMap<SectionId, Vec<u8>>,
) -> Result<Config> {
    let (org, app) = (config.org_id.clone(), config.app_id.clone());
    let drafts = tx.get("SELECT status FROM configs WHERE id = $1", params![&config.id]).await?;
    if let Some(row) = &drafts
        && row.get::<String>("status")? != ConfigStatus::Draft.as_str()
    {
        return Err(not_a_draft(&config).into());
    }
    if tx.get("SELECT 1 FROM apps WHERE org_id = $1 AND id = $2", params![&org, &app]).await?.is_none() {
        return Err(StoreError::NotFound("app"));
    }
    let before = active(tx, &org, &app).await?;
    if before.as_ref().map(|b| &b.id) != commit.based_on.as_ref() {
        return Err(StoreError::Stale("another version became active meanwhile"));
    }
    let there = tx.query("SELECT id FROM sections WHERE config_id = $1", params![&config.id]).await?;
    let there: BTreeSet<SectionId> = there.iter().map(|row| row.get("id")).collect::<Result<_>>()?;
    if there != commit.read {
        return Err(StoreError::Stale("the draft has got another section meanwhile"));
    }
    if let Some(before) = before.as_ref().filter(|b| b.digest.as_ref() == Some(&commit.digest)) {
        if drafts.is_some() {
            let same = "UPDATE configs SET status = 'same', same_as = $2, updated_at = $3 WHERE id = $1";
            tx.exec(same, params![&config.id, &before.id, commit.now]).await?;
            tx.exec("DELETE FROM sections WHERE config_id = $1", params![&config.id]).await?;
        }
        let mut same = before.clone();
        if let Some(state) = &commit.state {
            tx.exec("UPDATE configs SET state = $2 WHERE id = $1", params![&before.id, state]).await?;
            same.state = state.clone();
        }
        return Ok(same);
    }
    config.version = Some(before.as_ref().and_then(|b| b.version).unwrap_or(0) + 1);
    config.status = ConfigStatus::Active;
    config.digest = Some(commit.digest.clone());
    config.description = commit.description.clone();
    config.state = commit.state.clone().unwrap_or(config.state);
    config.updated_at = commit.now;
    // The one before first: both can't be seen as active, and two commits at once meet here.
    let outdated =
        "UPDATE configs SET status = 'outdated', updated_at = $3 WHERE app_id = $1 AND status = 'active' AND id <> $2";
    tx.exec(outdated, params![&app, &config.id, commit.now]).await?;
    // What installs do by the clock may have changed with it.
    let moved = "UPDATE installs SET schedules_wanted = schedules_wanted + 1, summary_wanted = summary_wanted + 1 WHERE app_id = $1";
    tx.exec(moved, params![&app]).await?;
    if drafts.is_some() {
        tx.exec(
            "UPDATE configs SET version = $2, status = 'active', digest = $3, description = $4, state = $5, updated_at = $6 WHERE id = $1",
            params![&config.id, config.version, commit.digest.as_str(), &config.description, &config.state, commit.now],
        )
        .await?;
        tx.exec("DELETE FROM sections WHERE config_id = $1", params![&config.id]).await?;
    } else {
        insert(tx, &config).await?;
    }
    for section in place_entities(tx, &config, commit).await? {
        put(tx, &org, &app, &section, &sealed[&section.id]).await?;
    }
    let note = Note {
        org: &org,
        now: commit.now,
        kind: "config.active",
        subject: ("config", config.id.as_str()),
        actor: commit.actor.as_str(),
        data: serde_json::json!({ "app_id": app, "version": config.version, "digest": commit.digest.as_str() }),
    };
    record(tx, note).await?;
    Ok(config)
}
