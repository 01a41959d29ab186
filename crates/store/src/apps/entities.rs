//! Components and actions: what has a name in an app and keeps its id from version to version.

use std::collections::BTreeMap;

use model::{AccountId, ActionId, AppId, ComponentId, OrgId, Timestamp, id};

use crate::apps::contains;
use crate::db::{Table, Tx, params, select, table};
use crate::events::{Note, record};
use crate::{Reader, Refused, Result, Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntityKind {
    Component,
    Action,
}

impl EntityKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Action => "action",
        }
    }

    /// The kind of the sections that configure it.
    pub fn section(self) -> &'static str {
        match self {
            Self::Component => "components",
            Self::Action => "actions",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Component => ComponentId::PREFIX,
            Self::Action => ActionId::PREFIX,
        }
    }

    /// An id for a new one.
    pub fn new_id(self, now: Timestamp, random: u128) -> String {
        id::make(self.prefix(), now, random)
    }
}

table! {
    #[derive(Debug, Clone)]
    pub struct Entity from "entities" {
        pub id: String,
        pub org_id: OrgId,
        pub app_id: AppId,
        pub name: String,
        /// Of a component: once a config has said it.
        pub entity_type: Option<String> = "type",
        pub var_name: String,
        pub labels: BTreeMap<String, String>,
        pub dependencies: Vec<String>,
        pub retired_at: Option<Timestamp>,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// A component or action, as a config or a request has it.
#[derive(Debug, Clone)]
pub struct NewEntity {
    /// Its id, if it is new.
    pub id: String,
    pub kind: EntityKind,
    pub name: String,
    pub entity_type: Option<String>,
    pub var_name: String,
    pub labels: BTreeMap<String, String>,
    pub dependencies: Vec<String>,
}

/// More components, or actions, than any app may have.
pub const ENTITIES_MAX: u64 = 5_000;

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(StoreError::db)
}

/// An entity of an app of an org.
async fn insert(tx: &mut Tx<'_>, of: (&OrgId, &AppId), new: &NewEntity, by: &AccountId, now: Timestamp) -> Result<()> {
    let (org, app) = of;
    tx.exec(
        "INSERT INTO entities (id, org_id, app_id, kind, name, type, var_name, labels, dependencies, created_by, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
        params![&new.id, org, app, new.kind.as_str(), &new.name, new.entity_type.as_ref(), &new.var_name, json(&new.labels)?, json(&new.dependencies)?, by, now],
    )
    .await?;
    Ok(())
}

async fn by_name(tx: &mut Tx<'_>, app: &AppId, kind: EntityKind, name: &str) -> Result<Option<Entity>> {
    let sql = select!(Entity, "WHERE app_id = $1 AND kind = $2 AND name = $3");
    tx.get(sql, params![app, kind.as_str(), name]).await?.as_ref().map(Entity::from_row).transpose()
}

/// The entity of this name: as it is, as the config has it now, or new.
pub(crate) async fn adopt(
    tx: &mut Tx<'_>,
    org: &OrgId,
    app: &AppId,
    new: &NewEntity,
    actor: &AccountId,
    now: Timestamp,
) -> Result<Entity> {
    if let Some(known) = by_name(tx, app, new.kind, &new.name).await? {
        if let (Some(was), Some(is)) = (&known.entity_type, &new.entity_type)
            && was != is
        {
            // One that was retired has left nothing behind that its type would matter to.
            if known.retired_at.is_none() {
                let (kind, name) = (new.kind.as_str(), new.name.clone());
                return Err(Refused::OtherType { kind, name, was: was.clone(), is: is.clone() }.into());
            }
        }
        let sql = "UPDATE entities SET type = COALESCE($2, type), var_name = $3, labels = $4, dependencies = $5, retired_at = NULL, updated_at = $6 WHERE id = $1";
        tx.exec(
            sql,
            params![
                &known.id,
                new.entity_type.as_ref(),
                &new.var_name,
                json(&new.labels)?,
                json(&new.dependencies)?,
                now
            ],
        )
        .await?;
    } else {
        insert(tx, (org, app), new, actor, now).await?;
    }
    by_name(tx, app, new.kind, &new.name).await?.ok_or_else(|| StoreError::corrupt("entity"))
}

/// What of an entity a request changes.
#[derive(Debug, Clone, Default)]
pub struct EntityChange {
    pub name: Option<String>,
    pub var_name: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    pub dependencies: Option<Vec<String>>,
    pub retire: bool,
}

impl Reader {
    /// By id, or by its name in an app.
    pub async fn entity(&self, org: &OrgId, app: Option<&AppId>, kind: EntityKind, name_or_id: &str) -> Result<Entity> {
        self.main()
            .glance((org.clone(), app.cloned(), name_or_id.to_owned(), kind), |tx, (org, app, name, kind)| { Box::pin(async move {
                    let sql = if id::is_valid(kind.prefix(), name) {
                        select!(Entity, "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR app_id = $2) AND kind = $3 AND id = $4 AND retired_at IS NULL")
                    } else {
                        select!(Entity, "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR app_id = $2) AND kind = $3 AND name = $4 AND retired_at IS NULL LIMIT 20")
                    };
                    let rows = tx.query(sql, params![&org, app.as_ref(), kind.as_str(), &name]).await?;
                    crate::apps::only(kind.as_str(), name, rows.iter().map(Entity::from_row).collect::<Result<_>>()?)
                }) })
            .await
    }

    /// Those that are not retired, by name; of one app, or of all.
    pub async fn entities(
        &self,
        org: &OrgId,
        app: Option<&AppId>,
        kind: EntityKind,
        query: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Entity>> {
        self.main()
            .read((org.clone(), app.cloned(), contains(query), kind, offset, limit), |tx, (org, app, query, kind, offset, limit)| { Box::pin(async move {
                    let sql = select!(Entity,
                        "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR app_id = $2) AND kind = $3 AND LOWER(name) LIKE $4 ESCAPE '!' AND retired_at IS NULL ORDER BY name, id LIMIT $5 OFFSET $6"
                    );
                    let rows = tx.query(sql, params![&org, app.as_ref(), kind.as_str(), query, limit, offset]).await?;
                    rows.iter().map(Entity::from_row).collect()
                }) })
            .await
    }

    /// All of one app that are not retired, by name.
    pub async fn all_entities(&self, org: &OrgId, app: &AppId, kind: EntityKind) -> Result<Vec<Entity>> {
        self.entities(org, Some(app), kind, "", 0, ENTITIES_MAX).await
    }
}

impl Store {
    /// Makes a component or action that no config names yet. A retired one of that name comes back.
    pub async fn create_entity(
        &self,
        org: &OrgId,
        app: &AppId,
        new: NewEntity,
        actor: &AccountId,
        now: Timestamp,
    ) -> Result<Entity> {
        self.main()
            .write((org.clone(), app.clone(), new, actor.clone(), now), |tx, (org, app, new, actor, now)| {
                Box::pin(async move {
                    if by_name(tx, app, new.kind, &new.name).await?.is_some_and(|known| known.retired_at.is_none()) {
                        return Err(StoreError::NameTaken(new.name.clone()));
                    }
                    adopt(tx, org, app, new, actor, *now).await
                })
            })
            .await
    }

    pub async fn change_entity(
        &self,
        kind: EntityKind,
        entity: &Entity,
        change: EntityChange,
        actor: &AccountId,
        now: Timestamp,
    ) -> Result<Entity> {
        self.main()
            .write((entity.clone(), change, actor.clone(), kind, now), |tx, (entity, change, actor, kind, now)| {
                Box::pin(async move { change_entity(tx, *kind, &entity.id, change.clone(), actor, *now).await })
            })
            .await
    }
}

async fn change_entity(
    tx: &mut Tx<'_>,
    kind: EntityKind,
    id: &str,
    change: EntityChange,
    actor: &AccountId,
    now: Timestamp,
) -> Result<Entity> {
    // As it is now: it was read before this transaction.
    let row = tx.get(select!(Entity, "WHERE id = $1 AND retired_at IS NULL"), params![id]).await?;
    let mut entity = Entity::from_row(&row.ok_or(StoreError::NotFound(kind.as_str()))?)?;
    if let Some(name) = change.name.filter(|name| *name != entity.name) {
        match by_name(tx, &entity.app_id, kind, &name).await? {
            Some(other) if other.retired_at.is_some() => {
                return Err(Refused::RetiredName { kind: kind.as_str(), name }.into());
            }
            Some(_) => return Err(StoreError::NameTaken(name)),
            None => entity.name = name,
        }
    }
    if change.retire {
        let active = "SELECT 1 FROM sections s JOIN configs c ON c.id = s.config_id WHERE s.entity_id = $1 AND c.status = 'active'";
        if tx.get(active, params![&entity.id]).await?.is_some() {
            return Err(Refused::InActiveConfig { kind: kind.as_str(), name: entity.name }.into());
        }
    }
    entity.var_name = change.var_name.unwrap_or(entity.var_name);
    entity.labels = change.labels.unwrap_or(entity.labels);
    entity.dependencies = change.dependencies.unwrap_or(entity.dependencies);
    entity.retired_at = if change.retire { Some(now) } else { entity.retired_at };
    entity.updated_at = now;
    let written = "UPDATE entities SET name = $2, var_name = $3, labels = $4, dependencies = $5, retired_at = $6, updated_at = $7 WHERE id = $1";
    tx.exec(
        written,
        params![
            &entity.id,
            &entity.name,
            &entity.var_name,
            json(&entity.labels)?,
            json(&entity.dependencies)?,
            entity.retired_at,
            now
        ],
    )
    .await?;
    if change.retire {
        let data = serde_json::json!({ "app_id": entity.app_id, "name": entity.name });
        let (kind, subject) = match kind {
            EntityKind::Component => ("component.retired", ("component", entity.id.as_str())),
            EntityKind::Action => ("action.retired", ("action", entity.id.as_str())),
        };
        record(tx, Note { org: &entity.org_id, now, kind, subject, actor: actor.as_str(), data }).await?;
    }
    Ok(entity)
}
