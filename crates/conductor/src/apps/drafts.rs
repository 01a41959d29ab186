//! Drafts of an app's next version: clients fill them section by section, in any order, and commit them.

use model::{ConfigId, SectionId};
use serde_json::{Value, json};
use store::{App, Config, ConfigStatus, EntityKind, Section};

use crate::error::{AppError, Result};
use crate::{By, Conductor};

/// A part of a config that a client has posted.
#[derive(Debug, Clone)]
pub struct PostedSection {
    pub kind: &'static str,
    pub body: Value,
    pub subject: SectionSubject,
}

/// What a section is about, where it is a component or an action.
#[derive(Debug, Clone, Default)]
pub struct SectionSubject {
    pub name: String,
    pub entity_id: Option<String>,
    pub checksum: String,
}

/// A part of a config that holds one component or action.
pub fn element<T: serde::Serialize>(kind: EntityKind, value: &T) -> Value {
    json!({ kind.section(): [value] })
}

/// Only what says something.
fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl Conductor {
    pub(super) fn draft(&self, by: &By, app: &App, readme: String, cli_version: String) -> Config {
        let now = self.now();
        Config {
            id: ConfigId::new(now, self.random_u128()),
            org_id: by.org.clone(),
            app_id: app.id.clone(),
            version: None,
            status: ConfigStatus::Draft,
            description: "takes sections until it is committed".into(),
            digest: None,
            same_as: None,
            readme,
            cli_version,
            state: String::new(),
            created_by: by.account.clone(),
            created_at: now,
            updated_at: now,
        }
    }

    /// A draft and its first section: the dialect has none for what people read about the app.
    fn new_draft(&self, by: &By, app: &App, readme: String, cli_version: String) -> (Config, Section) {
        let metadata = config::Metadata {
            version: "v2".into(),
            readme: some(&readme),
            display_name: some(&app.display_name),
            description: some(&app.description),
            ..config::Metadata::default()
        };
        let draft = self.draft(by, app, readme, cli_version);
        let body = json!({ "metadata": metadata });
        let posted = PostedSection { kind: "metadata", body, subject: SectionSubject::default() };
        let first = self.new_section(by, draft.id.clone(), posted);
        (draft, first)
    }

    fn new_section(&self, by: &By, config_id: ConfigId, posted: PostedSection) -> Section {
        let now = self.now();
        let PostedSection { kind, body, subject } = posted;
        Section {
            id: SectionId::new(now, self.random_u128()),
            config_id,
            kind: kind.into(),
            name: subject.name,
            entity_id: subject.entity_id,
            checksum: subject.checksum,
            body,
            created_by: by.account.clone(),
            created_at: now,
        }
    }

    pub async fn create_draft(&self, by: &By, app: &App, readme: String, cli_version: String) -> Result<Config> {
        let (draft, first) = self.new_draft(by, app, readme, cli_version);
        self.store.create_draft(draft.clone(), first).await?;
        Ok(draft)
    }

    /// Puts a section into a draft, in place of the one before. Where no draft is named, the caller's newest one is meant, or a new
    /// one: older clients know no drafts.
    pub async fn put_section(
        &self,
        by: &By,
        app: &App,
        draft: Option<ConfigId>,
        posted: PostedSection,
    ) -> Result<Section> {
        let config_id = match draft {
            Some(id) => id,
            None => {
                let (draft, first) = self.new_draft(by, app, String::new(), String::new());
                self.store.draft_of(draft, first).await?.id
            }
        };
        let section = self.new_section(by, config_id, posted);
        // What can't be a part of any config is refused here, where the client knows what it sent.
        let (alone, _) = super::assemble([&section.body])?;
        let mut problems = config::check(&alone);
        problems.retain(|p| p.severity == config::Severity::Error && p.code == config::Code::BadValue);
        if !problems.is_empty() {
            return Err(AppError::Config(problems).into());
        }
        self.store.put_section(&by.org, &app.id, section.clone()).await?;
        Ok(section)
    }

    pub async fn abandon_draft(&self, draft: &Config, description: &str) -> Result<Config> {
        Ok(self.store.abandon_draft(draft, description, self.now()).await?)
    }

    /// Notes what a client says about a draft.
    pub async fn describe_draft(
        &self,
        draft: &Config,
        description: Option<String>,
        state: Option<String>,
    ) -> Result<Config> {
        Ok(self.store.describe_draft(draft, description, state, self.now()).await?)
    }
}
