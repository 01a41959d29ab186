//! Changes to apps, their variables, their components and actions, outside of a sync.

use model::labels::Labels;
use model::{AppId, Digest, VariableId};
use store::{App, Created, Entity, EntityChange, EntityKind, Idempotency, NewEntity, Variable};

use crate::error::{AppError, Result};
use crate::{By, Conductor};

/// An app that is asked for.
#[derive(Debug, Clone, Default)]
pub struct WantedApp {
    pub name: String,
    pub display_name: String,
    pub description: String,
}

/// What is to change about an app; `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct AppChange {
    pub name: Option<String>,
    pub display_name: Option<String>,
    pub description: Option<String>,
    /// What clients keep with the app.
    pub config_repo: Option<String>,
    pub config_directory: Option<String>,
    pub label_colors: Option<Labels>,
}

/// A component or action that no config names yet.
#[derive(Debug, Clone)]
pub struct WantedEntity {
    pub kind: EntityKind,
    pub name: String,
    pub var_name: String,
    pub labels: Labels,
    /// By name or id.
    pub dependencies: Vec<String>,
}

fn check_entity_name(kind: EntityKind, name: &str) -> Result<(), AppError> {
    match kind {
        EntityKind::Component => {
            let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_{}.".contains(c);
            let is_name = !name.is_empty() && name.len() <= 128 && name.chars().all(good);
            if is_name { Ok(()) } else { Err(AppError::ComponentName(name.to_owned())) }
        }
        EntityKind::Action => {
            let is_name = !name.trim().is_empty() && name.len() <= 255 && !name.chars().any(char::is_control);
            if is_name { Ok(()) } else { Err(AppError::ActionName) }
        }
    }
}

impl Conductor {
    pub async fn create_app(&self, by: &By, wanted: WantedApp, idem: Option<Idempotency>) -> Result<App> {
        model::name::check(&wanted.name).map_err(AppError::Name)?;
        let now = self.now();
        let app = App {
            id: AppId::new(now, self.random_u128()),
            org_id: by.org.clone(),
            name: wanted.name,
            display_name: wanted.display_name,
            description: wanted.description,
            settings: store::AppSettings::default(),
            created_by: by.account.clone(),
            created_at: now,
            updated_at: now,
        };
        let Created { id, .. } = self.store.create_app(app, idem).await?;
        Ok(self.store.app(&by.org, &id).await?)
    }

    pub async fn update_app(&self, by: &By, mut app: App, change: AppChange) -> Result<App> {
        if let Some(name) = change.name.filter(|name| !name.is_empty()) {
            model::name::check(&name).map_err(AppError::Name)?;
            app.name = name;
        }
        app.display_name = change.display_name.unwrap_or(app.display_name);
        app.description = change.description.unwrap_or(app.description);
        let settings = &mut app.settings;
        change.config_repo.into_iter().for_each(|repo| settings.config_repo = repo);
        change.config_directory.into_iter().for_each(|directory| settings.config_directory = directory);
        change.label_colors.into_iter().for_each(|colors| settings.label_colors = colors);
        app.updated_at = self.now();
        Ok(self.store.update_app(app, &by.account).await?)
    }

    /// Deletes an app that has no installs, with all its versions.
    pub async fn delete_app(&self, by: &By, app: &App) -> Result<()> {
        Ok(self.store.delete_app(app, &by.account, self.now()).await?)
    }

    /// Sets a variable of an app, which templates of all its installs see.
    pub async fn set_variable(&self, by: &By, app: &App, name: String, value: String) -> Result<Variable> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > 128 || !name.chars().all(good) {
            return Err(AppError::VariableName(name).into());
        }
        let now = self.now();
        let id = VariableId::new(now, self.random_u128());
        let created_by = by.account.clone();
        let new = Variable { id, name, value, created_by, created_at: now, updated_at: now };
        Ok(self.store.set_variable(&by.org, &app.id, new).await?)
    }

    /// Deletes a variable of an app, by name or id.
    pub async fn delete_variable(&self, by: &By, app: &App, variable: &str) -> Result<()> {
        Ok(self.store.delete_variable(&by.org, &app.id, variable, by.actor(), self.now()).await?)
    }

    /// Creates a component or action that no config names yet.
    pub async fn create_entity(&self, by: &By, app: &App, wanted: WantedEntity) -> Result<Entity> {
        check_entity_name(wanted.kind, &wanted.name)?;
        let dependencies = self.component_names(by, &app.id, &wanted.dependencies).await?;
        let now = self.now();
        let new = NewEntity {
            id: wanted.kind.new_id(now, self.random_u128()),
            kind: wanted.kind,
            name: wanted.name,
            entity_type: None,
            var_name: wanted.var_name,
            labels: wanted.labels,
            dependencies,
        };
        Ok(self.store.create_entity(&by.org, &app.id, new, &by.account, now).await?)
    }

    /// Changes what is known of a component or action beside its configs.
    pub async fn update_entity(
        &self,
        by: &By,
        kind: EntityKind,
        entity: &Entity,
        change: EntityChange,
    ) -> Result<Entity> {
        if let Some(name) = &change.name {
            check_entity_name(kind, name)?;
        }
        let dependencies = match &change.dependencies {
            Some(wanted) => Some(self.component_names(by, &entity.app_id, wanted).await?),
            None => None,
        };
        let change = EntityChange { dependencies, ..change };
        Ok(self.store.change_entity(kind, entity, change, &by.account, self.now()).await?)
    }

    /// Retires a component or action, unless the active config still has it.
    pub async fn retire_entity(&self, by: &By, kind: EntityKind, entity: &Entity) -> Result<()> {
        let change = EntityChange { retire: true, ..EntityChange::default() };
        self.store.change_entity(kind, entity, change, &by.account, self.now()).await?;
        Ok(())
    }

    async fn component_names(&self, by: &By, app: &AppId, wanted: &[String]) -> Result<Vec<String>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.store.all_entities(&by.org, app, EntityKind::Component).await?;
        Ok(names(&known, wanted))
    }

    /// Keeps the archive of a local source, which has this digest.
    pub async fn put_archive(&self, by: &By, digest: &Digest, bytes: bytes::Bytes) -> Result<u64> {
        if Digest::of(&bytes) != *digest {
            return Err(AppError::OtherDigest.into());
        }
        let size_bytes = bytes.len() as u64;
        self.store.blobs().put(&store::archive_key(&by.org, digest), bytes).await?;
        self.store.add_archive(&by.org, digest, size_bytes, self.now()).await?;
        Ok(size_bytes)
    }
}

/// Components by name: an id is looked up.
pub fn names(known: &[Entity], wanted: &[String]) -> Vec<String> {
    let name = |one: &String| known.iter().find(|e| e.id == *one).map_or_else(|| one.clone(), |e| e.name.clone());
    wanted.iter().map(name).collect()
}
