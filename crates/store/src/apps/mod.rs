//! Owns apps, their versions as sealed sections, components and other entities that keep their id, installs and inputs.
//! The conductor and the handlers of apps and installs call it.
//! No rules of the app format: those are in `config`.
//!
//! Apps and installs.

pub(crate) mod configs;
pub(crate) mod entities;
pub(crate) mod inputs;
pub(crate) mod settings;

use model::{AccountId, AppId, ConfigId, InstallId, OrgId, RunnerId, Timestamp, WorkflowId, id};
use serde_json::Value as Json;

use crate::apps::inputs::{InstallInputs, insert_inputs};
use crate::apps::settings::{AppSettings, InstallSettings};
use crate::db::{Table, Tx, params, select, table};
use crate::events::{Note, record};
use crate::idempotency::{Created, Idempotency, idempotent, remember};
use crate::pages::summaries;
use crate::runners::{NewRunner, RunnerChange, apply_change, insert_runner};
use crate::workflows::{PlannedWorkflow, insert_workflow};
use crate::{Reader, Refused, Result, Store, StoreError, workflows};

table! {
    #[derive(Debug, Clone)]
    pub struct App from "apps" {
        pub id: AppId,
        pub org_id: OrgId,
        pub name: String,
        pub display_name: String,
        pub description: String,
        pub settings: AppSettings,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

pub type NewApp = App;

table! {
    #[derive(Debug, Clone)]
    pub struct Install from "installs" {
        pub id: InstallId,
        pub org_id: OrgId,
        pub app_id: AppId,
        pub name: String,
        /// `aws`, `azure`, `gcp` or `local`.
        pub platform: String,
        /// Region and the like, as the API has it.
        pub cloud: Json,
        pub runner_id: RunnerId,
        /// The version of the app that it is at; none: the newest.
        pub config_id: Option<ConfigId>,
        pub settings: InstallSettings,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

pub type NewInstall = Install;

async fn find_app(tx: &mut Tx<'_>, org: &OrgId, name_or_id: &str) -> Result<App> {
    let sql = if id::is_valid(AppId::PREFIX, name_or_id) {
        select!(App, "WHERE org_id = $1 AND id = $2")
    } else {
        select!(App, "WHERE org_id = $1 AND name = $2")
    };
    App::from_row(&tx.get(sql, params![org, name_or_id]).await?.ok_or(StoreError::NotFound("app"))?)
}

/// A pattern for LIKE: the text anywhere, in any case. Wildcards in it mean themselves.
pub(crate) fn contains(text: &str) -> String {
    let escaped = text.to_lowercase().replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{escaped}%")
}

/// The single row that a name stands for.
pub(crate) fn only<T>(what: &'static str, name: &str, mut found: Vec<T>) -> Result<T> {
    match found.len() {
        0 => Err(StoreError::NotFound(what)),
        1 => Ok(found.remove(0)),
        count => Err(StoreError::Ambiguous { what, name: name.to_owned(), count }),
    }
}

impl Reader {
    pub async fn app(&self, org: &OrgId, name_or_id: &str) -> Result<App> {
        self.main()
            .glance((org.clone(), name_or_id.to_owned()), |tx, (org, name)| {
                Box::pin(async move { find_app(tx, org, name).await })
            })
            .await
    }

    pub async fn apps(&self, org: &OrgId, query: &str, offset: u64, limit: u64) -> Result<Vec<App>> {
        self.main()
            .read((org.clone(), contains(query), offset, limit), |tx, (org, query, offset, limit)| {
                Box::pin(async move {
                    let sql = select!(
                        App,
                        "WHERE org_id = $1 AND LOWER(name) LIKE $2 ESCAPE '!' ORDER BY id DESC LIMIT $3 OFFSET $4"
                    );
                    tx.query(sql, params![&org, query, limit, offset]).await?.iter().map(App::from_row).collect()
                })
            })
            .await
    }

    /// An install by its id alone, for those who know nothing else: whoever asks must prove more.
    pub async fn install_of_anyone(&self, id: &InstallId) -> Result<Install> {
        self.main()
            .glance(id.clone(), |tx, id| {
                Box::pin(async move {
                    let row = tx.get(select!(Install, "WHERE id = $1"), params![&id]).await?;
                    Install::from_row(&row.ok_or(StoreError::NotFound("install"))?)
                })
            })
            .await
    }

    pub async fn install(&self, org: &OrgId, name_or_id: &str) -> Result<Install> {
        self.main()
            .glance((org.clone(), name_or_id.to_owned()), |tx, (org, name)| {
                Box::pin(async move {
                    let sql = if id::is_valid(InstallId::PREFIX, name) {
                        select!(Install, "WHERE org_id = $1 AND id = $2")
                    } else {
                        select!(Install, "WHERE org_id = $1 AND name = $2 LIMIT 20")
                    };
                    let rows = tx.query(sql, params![&org, &name]).await?;
                    only("install", name, rows.iter().map(Install::from_row).collect::<Result<_>>()?)
                })
            })
            .await
    }

    /// All installs of the org, or of one app.
    pub async fn installs(
        &self,
        org: &OrgId,
        app: Option<&AppId>,
        query: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Install>> {
        self.main()
            .read((org.clone(), app.cloned(), contains(query), offset, limit), |tx, (org, app, query, offset, limit)| { Box::pin(async move {
                    let sql = select!(Install,
                        "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR app_id = $2) AND LOWER(name) LIKE $3 ESCAPE '!' ORDER BY id DESC LIMIT $4 OFFSET $5"
                    );
                    let rows = tx.query(sql, params![&org, app.as_ref(), query, limit, offset]).await?;
                    rows.iter().map(Install::from_row).collect()
                }) })
            .await
    }
}

impl Store {
    pub async fn create_app(&self, app: NewApp, idem: Option<Idempotency>) -> Result<Created> {
        self.main()
            .write((app, idem), |tx, (app, idem)| { Box::pin(async move {
                    if let Some(found) = idempotent(tx, idem.as_ref()).await? {
                        return Ok(Created { id: found, replayed: true });
                    }
                    let taken = "SELECT id FROM apps WHERE org_id = $1 AND name = $2";
                    if tx.get(taken, params![&app.org_id, &app.name]).await?.is_some() {
                        return Err(StoreError::NameTaken(app.name.clone()));
                    }
                    tx.exec(
                        "INSERT INTO apps (id, org_id, name, display_name, description, created_by, created_at, updated_at, settings) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)",
                        params![&app.id, &app.org_id, &app.name, &app.display_name, &app.description, &app.created_by, app.created_at, &app.settings],
                    )
                    .await?;
                    let note = Note {
                        org: &app.org_id,
                        now: app.created_at,
                        kind: "app.created",
                        subject: ("app", app.id.as_str()),
                        actor: app.created_by.as_str(),
                        data: serde_json::json!({ "name": app.name }),
                    };
                    record(tx, note).await?;
                    remember(tx, idem.as_ref(), app.id.as_str(), app.created_at).await?;
                    Ok(Created { id: app.id.to_string(), replayed: false })
                }) })
            .await
    }

    /// Writes an app as it shall be: a new name, description, or settings.
    pub async fn update_app(&self, app: App, actor: &AccountId) -> Result<App> {
        self.main()
            .write((app, actor.clone()), |tx, (app, actor)| { Box::pin(async move {
                    let taken = "SELECT id FROM apps WHERE org_id = $1 AND name = $2 AND id <> $3";
                    if tx.get(taken, params![&app.org_id, &app.name, &app.id]).await?.is_some() {
                        return Err(StoreError::NameTaken(app.name.clone()));
                    }
                    let changed = tx
                        .exec(
                            "UPDATE apps SET name = $3, display_name = $4, description = $5, settings = $6, updated_at = $7 WHERE org_id = $1 AND id = $2",
                            params![&app.org_id, &app.id, &app.name, &app.display_name, &app.description, &app.settings, app.updated_at],
                        )
                        .await?;
                    if changed == 0 {
                        return Err(StoreError::NotFound("app"));
                    }
                    let data = serde_json::json!({ "name": app.name });
                    let (now, subject) = (app.updated_at, ("app", app.id.as_str()));
                    let note = Note { org: &app.org_id, now, kind: "app.updated", subject, actor: actor.as_str(), data };
                    record(tx, note).await?;
                    Ok(app.clone())
                }) })
            .await
    }

    /// Deletes an app that has no installs, with all its versions.
    pub async fn delete_app(&self, app: &App, actor: &AccountId, now: Timestamp) -> Result<()> {
        self.main()
            .write((app.clone(), actor.clone(), now), |tx, (app, actor, now)| {
                Box::pin(async move {
                    let count = "SELECT COUNT(*) AS count FROM installs WHERE app_id = $1";
                    let row = tx.get(count, params![&app.id]).await?.ok_or_else(|| StoreError::corrupt("count"))?;
                    let installs: u64 = row.get("count")?;
                    if installs > 0 {
                        return Err(Refused::AppHasInstalls { app: app.name.clone(), installs }.into());
                    }
                    for table in [
                        "DELETE FROM sections WHERE app_id = $1",
                        "DELETE FROM entities WHERE app_id = $1",
                        "DELETE FROM configs WHERE app_id = $1",
                        "DELETE FROM variables WHERE app_id = $1",
                        "DELETE FROM apps WHERE id = $1",
                    ] {
                        tx.exec(table, params![&app.id]).await?;
                    }
                    let data = serde_json::json!({ "name": app.name });
                    let subject = ("app", app.id.as_str());
                    let note =
                        Note { org: &app.org_id, now: *now, kind: "app.deleted", subject, actor: actor.as_str(), data };
                    record(tx, note).await
                })
            })
            .await
    }

    /// Makes an install with its runner and its inputs.
    pub async fn create_install(
        &self,
        install: NewInstall,
        runner: NewRunner,
        inputs: InstallInputs,
        first: Option<PlannedWorkflow>,
        idem: Option<Idempotency>,
    ) -> Result<Created> {
        let org = install.org_id.clone();
        let inputs = self.seal_inputs(&org, inputs).await?;
        let first = match first {
            Some(first) => Some(self.seal_workflow(first).await?),
            None => None,
        };
        let created = self
            .main()
            .write((install, runner, inputs, idem, first), |tx, (install, runner, inputs, idem, first)| { Box::pin(async move {
                    if let Some(found) = idempotent(tx, idem.as_ref()).await? {
                        return Ok(Created { id: found, replayed: true });
                    }
                    find_app(tx, &install.org_id, install.app_id.as_str()).await?;
                    let taken = "SELECT id FROM installs WHERE app_id = $1 AND name = $2";
                    if tx.get(taken, params![&install.app_id, &install.name]).await?.is_some() {
                        return Err(StoreError::NameTaken(install.name.clone()));
                    }
                    let now = install.created_at;
                    tx.exec(
                        "INSERT INTO installs (id, org_id, app_id, name, platform, cloud, runner_id, created_by, created_at, updated_at, config_id, settings) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11)",
                        params![&install.id, &install.org_id, &install.app_id, &install.name, &install.platform, install.cloud.to_string(), &install.runner_id, &install.created_by, now, install.config_id.as_ref(), &install.settings],
                    )
                    .await?;
                    insert_runner(tx, runner, now).await?;
                    insert_inputs(tx, &install.org_id, inputs).await?;
                    let note = Note {
                        org: &install.org_id,
                        now,
                        kind: "install.created",
                        subject: ("install", install.id.as_str()),
                        actor: install.created_by.as_str(),
                        data: serde_json::json!({ "name": install.name, "app_id": install.app_id }),
                    };
                    record(tx, note).await?;
                    if let Some(first) = first {
                        insert_workflow(tx, first).await?;
                    }
                    remember(tx, idem.as_ref(), install.id.as_str(), now).await?;
                    Ok(Created { id: install.id.to_string(), replayed: false })
                }) })
            .await?;
        self.wake_workflows(&org);
        Ok(created)
    }

    /// Removes an install with its inputs, its state, its health, its schedules and its workflows, and revokes its runner. Its jobs, their logs
    /// and the events stay: what happened has happened. With `moves`, only if nothing was set moving since that count was read, and
    /// no workflow is open. False: something was, and whoever asks must look again.
    pub async fn forget_install(
        &self,
        install: &Install,
        moves: Option<i64>,
        actor: &str,
        now: Timestamp,
    ) -> Result<bool> {
        self.main()
            .write((install.clone(), actor.to_owned(), moves, now), |tx, (install, actor, moves, now)| { Box::pin(async move {
                    let sql = "UPDATE installs SET moves = moves + 1 WHERE id = $1 AND (CAST($2 AS BIGINT) IS NULL OR moves = $2)";
                    if tx.exec(sql, params![&install.id, moves]).await? != 1 {
                        return Ok(false);
                    }
                    let open = "SELECT id FROM workflows WHERE install_id = $1 AND status IN ('pending', 'in-progress', 'approval-awaiting') LIMIT 1";
                    if moves.is_some() && let Some(open) = tx.get(open, params![&install.id]).await? {
                        let workflow = open.get::<WorkflowId>("id")?;
                        return Err(Refused::WorkflowOpen { workflow, install: install.name.clone() }.into());
                    }
                    apply_change(tx, &install.runner_id, &RunnerChange::Revoke, *now).await?;
                    for table in [
                        "DELETE FROM schedules WHERE install_id = $1",
                        "DELETE FROM health_transitions WHERE install_id = $1",
                        "DELETE FROM install_health WHERE install_id = $1",
                        "DELETE FROM summaries WHERE install_id = $1",
                        "DELETE FROM looks WHERE install_id = $1",
                        "DELETE FROM revisions WHERE workspace_id IN (SELECT id FROM workspaces WHERE install_id = $1)",
                        "DELETE FROM workspaces WHERE install_id = $1",
                        "DELETE FROM plans WHERE job_id IN (SELECT j.id FROM jobs j JOIN installs i ON i.runner_id = j.runner_id WHERE i.id = $1)",
                        "DELETE FROM uploads_sealed WHERE install_id = $1",
                        "DELETE FROM install_keys WHERE install_id = $1",
                        "DELETE FROM install_parts WHERE install_id = $1",
                        "DELETE FROM install_inputs WHERE install_id = $1",
                        "DELETE FROM workflow_steps WHERE install_id = $1",
                        "DELETE FROM workflows WHERE install_id = $1",
                        "DELETE FROM tokens WHERE runner_id IN (SELECT runner_id FROM installs WHERE id = $1)",
                        "DELETE FROM installs WHERE id = $1",
                    ] {
                        tx.exec(table, params![&install.id]).await?;
                    }
                    let data = serde_json::json!({ "name": install.name, "app_id": install.app_id });
                    let subject = ("install", install.id.as_str());
                    record(
                        tx,
                        Note { org: &install.org_id, now: *now, kind: "install.forgotten", subject, actor, data },
                    )
                    .await?;
                    Ok(true)
                }) })
            .await
    }

    /// Changes the name or the settings of an install, within one transaction: two changes at a time are both kept. `change` may be
    /// called more than once; where it changes nothing, nothing is written.
    pub async fn change_install<F>(
        &self,
        org: &OrgId,
        id: &InstallId,
        actor: &str,
        now: Timestamp,
        change: F,
    ) -> Result<Install>
    where
        F: Fn(&mut Install) -> Result<()> + Send + Sync + 'static,
    {
        let install = self
            .main()
            .write((org.clone(), id.clone(), actor.to_owned(), change, now), |tx, (org, id, actor, change, now)| {
                Box::pin(change_install(tx, org, id, actor, *now, change))
            })
            .await?;
        self.wake_workflows(org);
        Ok(install)
    }
}

pub(crate) async fn change_install(
    tx: &mut Tx<'_>,
    org: &OrgId,
    id: &InstallId,
    actor: &str,
    now: Timestamp,
    change: &(impl Fn(&mut Install) -> Result<()> + Sync),
) -> Result<Install> {
    let sql = select!(Install, "WHERE org_id = $1 AND id = $2");
    let row = tx.get(sql, params![org, id]).await?.ok_or(StoreError::NotFound("install"))?;
    let mut install = Install::from_row(&row)?;
    let before = (install.settings.clone(), install.name.clone());
    change(&mut install)?;
    if (&install.settings, &install.name) == (&before.0, &before.1) {
        return Ok(install);
    }
    install.updated_at = now;
    if install.name != before.1 {
        let taken = "SELECT id FROM installs WHERE app_id = $1 AND name = $2";
        if tx.get(taken, params![&install.app_id, &install.name]).await?.is_some() {
            return Err(StoreError::NameTaken(install.name));
        }
        // Its runner is known by the same name.
        let sql = "UPDATE runners SET name = $2 WHERE id = $1";
        tx.exec(sql, params![&install.runner_id, &install.name]).await?;
    }
    let sql = "UPDATE installs SET settings = $3, name = $4, updated_at = $5 WHERE org_id = $1 AND id = $2";
    tx.exec(sql, params![org, id, &install.settings, &install.name, now]).await?;
    summaries::outdate(tx, id).await?;
    workflows::wake_install(tx, id, now).await?;
    let data = serde_json::json!({ "settings": install.settings, "name": install.name });
    let subject = ("install", id.as_str());
    record(tx, Note { org, now, kind: "install.updated", subject, actor, data }).await?;
    Ok(install)
}
