//! Owns runners, their sessions and credentials, and the keys that sign orders.
//! The Runner API and the handlers of runners call it.
//! No verdict about presence: that depends on the clock and is in `model`.
//!
//! Runners, their join credentials and their sessions.

pub(crate) mod signing;

use model::runner::{RunnerKind, RunnerReport, RunnerSettings};
use model::waiting::Sightings;
use model::{AppId, CredentialId, InstallId, OrgId, RunnerId, Timestamp, id};
use serde_json::{Map, Value as Json};

use crate::apps::only;
use crate::db::{Table, Tx, params, select, table};
use crate::events::notify::topic;
use crate::events::{Note, record};
use crate::jobs::executions::fence_executions;
use crate::people::accounts::hash;
use crate::{Reader, Refused, Result, Store, StoreError, workflows};

table! {
    #[derive(Debug, Clone)]
    pub struct Runner from "runners" {
        pub id: RunnerId,
        pub org_id: OrgId,
        pub name: String,
        pub kind: RunnerKind,
        pub install_id: Option<InstallId>,
        /// The app of its install.
        pub app_id: Option<AppId> = "(SELECT app_id FROM installs WHERE installs.id = runners.install_id)",
        /// 0 until the first join.
        pub generation: u64,
        pub draining: bool,
        pub revoked_at: Option<Timestamp>,
        pub settings: RunnerSettings,
        pub report: Option<RunnerReport>,
        /// How often what it is to observe has changed.
        pub watch: u64,
        seen_at: Option<Timestamp>,
        closed_at: Option<Timestamp>,
        health: Option<Json>,
        health_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Runner {
    /// When it was seen last, and when it left.
    pub fn sightings(&self) -> Sightings {
        Sightings { seen_at: self.seen_at, closed_at: self.closed_at }
    }

    /// When its last health check ended, and what that found.
    pub fn health(&self) -> Option<(Timestamp, Map<String, Json>)> {
        let outputs = self.health.as_ref()?.as_object()?.clone();
        Some((self.health_at?, outputs))
    }
}

#[derive(Debug, Clone)]
pub struct NewRunner {
    pub id: RunnerId,
    pub org_id: OrgId,
    pub name: String,
    pub kind: RunnerKind,
    pub install_id: Option<InstallId>,
}

/// The public half of a session's key.
#[derive(Debug, Clone)]
pub struct Session {
    pub runner_id: RunnerId,
    pub org_id: OrgId,
    pub generation: u64,
    pub public_key: String,
    /// A newer generation has taken its place, or the runner was revoked.
    pub ended: bool,
}

#[derive(Debug, Clone)]
pub struct Joined {
    pub runner: Runner,
    pub generation: u64,
}

pub(crate) async fn insert_runner(tx: &mut Tx<'_>, runner: &NewRunner, now: Timestamp) -> Result<()> {
    let settings = serde_json::to_string(&RunnerSettings::defaults(runner.kind)).map_err(StoreError::db)?;
    tx.exec(
        "INSERT INTO runners (id, org_id, name, kind, install_id, generation, draining, settings, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, 0, 0, $6, $7, $7)",
        params![&runner.id, &runner.org_id, &runner.name, runner.kind.as_str(), runner.install_id.as_ref(), settings, now],
    )
    .await?;
    Ok(())
}

pub(crate) async fn runner_by_id(tx: &mut Tx<'_>, id: &RunnerId) -> Result<Runner> {
    let sql = select!(Runner, "WHERE id = $1");
    Runner::from_row(&tx.get(sql, params![id]).await?.ok_or(StoreError::NotFound("runner"))?)
}

async fn find_runner(tx: &mut Tx<'_>, org: &OrgId, name_or_id: &str) -> Result<Runner> {
    let sql = if id::is_valid(RunnerId::PREFIX, name_or_id) {
        select!(Runner, "WHERE org_id = $1 AND id = $2")
    } else {
        select!(Runner, "WHERE org_id = $1 AND name = $2 LIMIT 20")
    };
    let rows = tx.query(sql, params![org, name_or_id]).await?;
    only("runner", name_or_id, rows.iter().map(Runner::from_row).collect::<Result<_>>()?)
}

/// The actor of the credentials that servers make for runners they host.
pub const SERVER: &str = "ferry";

/// Nobody else hosts it, and nobody but a server has joined it: what others have joined is theirs.
const HOST: &str = "UPDATE runners SET host = $2, host_until = $3 WHERE id = $1 AND (host IS NULL OR host = $2 OR host_until < $4) AND COALESCE((SELECT created_by FROM join_credentials WHERE runner_id = $1 AND revoked_at IS NULL AND last_used_at IS NOT NULL ORDER BY last_used_at DESC LIMIT 1), $5) = $5";

/// What an operator changes about a runner.
#[derive(Debug, Clone)]
pub enum RunnerChange {
    Drain(bool),
    /// Credentials and session end; nothing can join any more with what was handed out.
    Revoke,
    Settings(RunnerSettings),
}

impl Reader {
    pub async fn runner(&self, org: &OrgId, name_or_id: &str) -> Result<Runner> {
        self.main()
            .glance((org.clone(), name_or_id.to_owned()), |tx, (org, name)| {
                Box::pin(async move { find_runner(tx, org, name).await })
            })
            .await
    }

    pub async fn runners(
        &self,
        org: &OrgId,
        install: Option<&InstallId>,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Runner>> {
        self.main()
            .read((org.clone(), install.cloned(), offset, limit), |tx, (org, install, offset, limit)| { Box::pin(async move {
                    let sql = select!(Runner,
                        "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR install_id = $2) AND (install_id IS NULL OR EXISTS (SELECT 1 FROM installs i WHERE i.id = runners.install_id)) ORDER BY id DESC LIMIT $3 OFFSET $4"
                    );
                    let rows = tx.query(sql, params![&org, install.as_ref(), limit, offset]).await?;
                    rows.iter().map(Runner::from_row).collect()
                }) })
            .await
    }

    /// The session that a signed request names.
    pub async fn session(&self, runner: &RunnerId, generation: u64) -> Result<Session> {
        self.main()
            .glance((runner.clone(), generation), |tx, (runner, generation)| { Box::pin(async move {
                    let row = tx
                        .get(
                            "SELECT org_id, public_key, ended_at FROM sessions WHERE runner_id = $1 AND generation = $2",
                            params![&runner, generation],
                        )
                        .await?
                        .ok_or(StoreError::NotFound("session"))?;
                    Ok(Session {
                        org_id: row.get("org_id")?,
                        generation: *generation,
                        public_key: row.get("public_key")?,
                        ended: row.get::<Option<Timestamp>>("ended_at")?.is_some(),
                        runner_id: runner.clone(),
                    })
                }) })
            .await
    }
}

impl Store {
    /// Stores the hash of a new join credential.
    pub async fn add_credential(
        &self,
        org: &OrgId,
        runner: &RunnerId,
        id: CredentialId,
        credential: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        self.main()
            .write((org.clone(), runner.clone(), id, hash(credential), actor.to_owned(), now), |tx, (org, runner, id, hash, actor, now)| { Box::pin(async move {
                    let found = find_runner(tx, org, runner.as_str()).await?;
                    if let Some(install) = &found.install_id {
                        let there = tx.get("SELECT id FROM installs WHERE id = $1", params![install]).await?;
                        there.ok_or(Refused::InstallDeleted)?;
                    }
                    tx.exec(
                        "INSERT INTO join_credentials (id, org_id, runner_id, hash, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
                        params![&id, &org, &runner, hash, &actor, now],
                    )
                    .await?;
                    // A new credential is also how a revoked runner comes back.
                    tx.exec("UPDATE runners SET revoked_at = NULL WHERE id = $1", params![&runner]).await?;
                    let note = Note {
                        org,
                        now: *now,
                        kind: "runner.credential-created",
                        subject: ("runner", runner.as_str()),
                        actor,
                        data: serde_json::json!({ "credential_id": id }),
                    };
                    record(tx, note).await
                }) })
            .await
    }

    /// Opens a new session generation: the one before is fenced, and its executions end.
    pub async fn join(
        &self,
        credential: &str,
        public_key: &str,
        version: &str,
        hostname: &str,
        now: Timestamp,
    ) -> Result<Joined> {
        let joined = self
            .main()
            .write((hash(credential), public_key.to_owned(), version.to_owned(), hostname.to_owned(), now), |tx, (hash, public_key, version, hostname, now)| { Box::pin(async move {
                    let row = tx
                        .get(
                            "SELECT id, runner_id FROM join_credentials WHERE hash = $1 AND revoked_at IS NULL",
                            params![hash],
                        )
                        .await?
                        .ok_or(StoreError::CredentialRefused)?;
                    let (credential, runner_id): (CredentialId, RunnerId) = (row.get("id")?, row.get("runner_id")?);
                    let mut runner = runner_by_id(tx, &runner_id).await?;
                    // The same request again: its answer was lost, or it comes late. It must not fence its own session,
                    // nor the one that has taken its place since.
                    let again = "SELECT ended_at FROM sessions WHERE runner_id = $1 AND public_key = $2";
                    if let Some(row) = tx.get(again, params![&runner_id, &public_key]).await? {
                        let ended = row.get::<Option<Timestamp>>("ended_at")?.is_some();
                        let generation = runner.generation;
                        return if ended { Err(StoreError::Fenced) } else { Ok(Joined { runner, generation }) };
                    }
                    let generation = runner.generation + 1;
                    tx.exec_later(
                        "UPDATE join_credentials SET last_used_at = $2 WHERE id = $1",
                        params![&credential, now],
                    )
                    .await?;
                    tx.exec_later(
                        "UPDATE sessions SET ended_at = $2 WHERE runner_id = $1 AND ended_at IS NULL",
                        params![&runner_id, now],
                    )
                    .await?;
                    tx.exec_later(
                        "INSERT INTO sessions (runner_id, generation, org_id, public_key, version, hostname, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                        params![&runner_id, generation, &runner.org_id, public_key, &version, &hostname, now],
                    )
                    .await?;
                    tx.exec_later(
                        "UPDATE runners SET generation = $2, poll_process = 0, poll_seq = 0, seen_at = $3, closed_at = NULL, updated_at = $3 WHERE id = $1",
                        params![&runner_id, generation, now],
                    )
                    .await?;
                    fence_executions(tx, &runner_id, "a new session of the runner took its place", *now).await?;
                    if let Some(install) = &runner.install_id {
                        workflows::wake_install(tx, install, *now).await?;
                    }
                    let note = Note {
                        org: &runner.org_id,
                        now: *now,
                        kind: "runner.joined",
                        subject: ("runner", runner_id.as_str()),
                        actor: runner_id.as_str(),
                        data: serde_json::json!({ "generation": generation, "version": version, "hostname": hostname }),
                    };
                    record(tx, note).await?;
                    runner.generation = generation;
                    Ok(Joined { runner, generation })
                }) })
            .await?;
        self.notifier().wake(topic::runner(&joined.runner.id));
        self.notifier().wake(topic::org(&joined.runner.org_id));
        self.notifier().wake(topic::workflows());
        Ok(joined)
    }

    /// Whether this server may host the runner from now until then; no other may meanwhile.
    pub async fn host_runner(&self, runner: &RunnerId, host: &str, now: Timestamp, until: Timestamp) -> Result<bool> {
        self.main()
            .write((runner.clone(), host.to_owned(), now, until), |tx, (runner, host, now, until)| {
                Box::pin(async move { Ok(tx.exec(HOST, params![&runner, host, until, now, SERVER]).await? == 1) })
            })
            .await
    }

    pub async fn change_runner(
        &self,
        org: &OrgId,
        runner: &RunnerId,
        change: RunnerChange,
        actor: &str,
        now: Timestamp,
    ) -> Result<Runner> {
        let changed = self
            .main()
            .write(
                (org.clone(), runner.clone(), change, actor.to_owned(), now),
                |tx, (org, runner, change, actor, now)| {
                    Box::pin(async move {
                        find_runner(tx, org, runner.as_str()).await?;
                        let (kind, data) = apply_change(tx, runner, change, *now).await?;
                        let note = Note { org, now: *now, kind, subject: ("runner", runner.as_str()), actor, data };
                        record(tx, note).await?;
                        find_runner(tx, org, runner.as_str()).await
                    })
                },
            )
            .await?;
        self.notifier().wake(topic::runner(runner));
        self.notifier().wake(topic::org(org));
        Ok(changed)
    }

    /// Notes when runners were seen, and when connections closed; called in batches.
    pub async fn note_sightings(&self, seen: Vec<(RunnerId, Sightings, Option<RunnerReport>)>) -> Result<()> {
        self.main()
            .write(seen, |tx, seen| { Box::pin(async move {
                    for (runner, sightings, report) in seen {
                        if let Some(report) = &report {
                            note_switch(tx, runner, report, sightings.seen_at).await?;
                        }
                        tx.exec_later(
                            "UPDATE runners SET seen_at = COALESCE($2, seen_at), closed_at = $3, report = COALESCE($4, report) WHERE id = $1",
                            params![&runner, sightings.seen_at, sightings.closed_at, report],
                        )
                        .await?;
                    }
                    Ok(())
                }) })
            .await
    }

    /// Runners that are due for a health check: seen lately, and not asked for as long as their settings say.
    pub async fn due_health_checks(&self, seen_after: Timestamp, now: Timestamp, limit: u64) -> Result<Vec<Runner>> {
        self.main()
            .write((seen_after, now, limit), |tx, (seen_after, now, limit)| { Box::pin(async move {
                    let sql = select!(Runner,
                        "WHERE seen_at > $1 AND revoked_at IS NULL AND (closed_at IS NULL OR closed_at < seen_at) AND COALESCE(health_due_at, 0) <= $2 ORDER BY COALESCE(health_due_at, 0), id LIMIT $3"
                    );
                    let mut due = Vec::new();
                    for row in tx.query(sql, params![seen_after, now, limit]).await? {
                        let runner = Runner::from_row(&row)?;
                        // Never: far away, so that it does not stand before the others; new settings start over.
                        let every = Some(runner.settings.health_check_s).filter(|s| *s > 0);
                        let next = every.map_or(Timestamp::from_micros(i64::MAX), |s| now.plus_s(s as i64));
                        tx.exec_later("UPDATE runners SET health_due_at = $2 WHERE id = $1", params![&runner.id, next])
                            .await?;
                        if every.is_some() {
                            due.push(runner);
                        }
                    }
                    Ok(due)
                }) })
            .await
    }
}

/// The customer's switch is an event of its own: both sides see when it was turned.
async fn note_switch(
    tx: &mut Tx<'_>,
    runner: &RunnerId,
    report: &RunnerReport,
    seen_at: Option<Timestamp>,
) -> Result<()> {
    let known = "SELECT org_id, report, updated_at FROM runners WHERE id = $1";
    let Some(known) = tx.get(known, params![runner]).await? else { return Ok(()) };
    let before = known.get::<Option<RunnerReport>>("report")?.and_then(|r| r.disabled_since);
    let kind = match (before.is_some(), report.disabled_since.is_some()) {
        (false, true) => "runner.disabled",
        (true, false) => "runner.enabled",
        (true, true) | (false, false) => return Ok(()),
    };
    let now = seen_at.map_or_else(|| known.get("updated_at"), Ok)?;
    let org: OrgId = known.get("org_id")?;
    let data = serde_json::json!({ "by": "customer", "since": report.disabled_since });
    let subject = ("runner", runner.as_str());
    record(tx, Note { org: &org, now, kind, subject, actor: runner.as_str(), data }).await
}

pub(crate) async fn apply_change(
    tx: &mut Tx<'_>,
    runner: &RunnerId,
    change: &RunnerChange,
    now: Timestamp,
) -> Result<(&'static str, Json)> {
    match change {
        RunnerChange::Drain(on) => {
            tx.exec("UPDATE runners SET draining = $2, updated_at = $3 WHERE id = $1", params![runner, *on, now])
                .await?;
            Ok((if *on { "runner.draining" } else { "runner.resumed" }, serde_json::json!({})))
        }
        RunnerChange::Revoke => {
            // The session that ends here stays ended, also after a new credential has let the runner in again.
            let sql = "UPDATE runners SET revoked_at = $2, updated_at = $2, generation = CASE WHEN generation > 0 THEN generation + 1 ELSE 0 END WHERE id = $1";
            tx.exec(sql, params![runner, now]).await?;
            let credentials = "UPDATE join_credentials SET revoked_at = $2 WHERE runner_id = $1 AND revoked_at IS NULL";
            tx.exec(credentials, params![runner, now]).await?;
            let sessions = "UPDATE sessions SET ended_at = $2 WHERE runner_id = $1 AND ended_at IS NULL";
            tx.exec(sessions, params![runner, now]).await?;
            fence_executions(tx, runner, "the runner's credentials were revoked", now).await?;
            Ok(("runner.revoked", serde_json::json!({})))
        }
        RunnerChange::Settings(settings) => {
            let text = serde_json::to_string(settings).map_err(StoreError::db)?;
            tx.exec(
                "UPDATE runners SET settings = $2, updated_at = $3, health_due_at = NULL WHERE id = $1",
                params![runner, text, now],
            )
            .await?;
            Ok(("runner.settings-changed", serde_json::json!({ "version": settings.version })))
        }
    }
}
