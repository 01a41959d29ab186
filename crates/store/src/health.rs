//! Owns the health of installs: what the rules remember of each, and the history of verdicts.
//! The conductor calls it; a change is written only at the version that was read.
//! No rule: what follows from an observation is in `engine`.

use model::{InstallId, OrgId, Timestamp};
use serde_json::Value as Json;

use crate::db::{Table, params, select, table};
use crate::events::{Note, record};
use crate::{Reader, Result, Store};

table! {
    /// The health of an install.
    #[derive(Debug, Clone, PartialEq)]
    pub struct HealthRow from "install_health" {
        pub install_id: InstallId,
        pub org_id: OrgId,
        /// The worst of all components; empty where there is none.
        pub verdict: String,
        pub body: Json,
        pub version: i64,
        /// When to look again though nobody reports.
        pub due_at: Option<Timestamp>,
        pub updated_at: Timestamp,
    }
}

table! {
    /// A verdict that became another one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HealthTransition from "health_transitions" {
        pub component: String,
        pub at: Timestamp,
        /// None where there was no verdict before.
        pub was: Option<String>,
        pub verdict: String,
        pub reason: String,
        pub downstream_of: Option<String>,
    }
}

/// A row's next version, with what is to be remembered of it.
#[derive(Debug, Clone)]
pub struct HealthChange {
    /// Its `version` is the one that was read; 0 where there was no row.
    pub row: HealthRow,
    pub transitions: Vec<HealthTransition>,
    pub events: Vec<(&'static str, Json)>,
    pub actor: String,
}

const UPDATE: &str = "UPDATE install_health SET verdict = $3, body = $4, version = version + 1, due_at = $5, updated_at = $6 WHERE install_id = $1 AND version = $2";
const INSERT: &str = "INSERT INTO install_health (install_id, org_id, verdict, body, version, due_at, updated_at) SELECT id, org_id, $2, $3, 1, CAST($4 AS BIGINT), CAST($5 AS BIGINT) FROM installs WHERE id = $1 ON CONFLICT DO NOTHING";
const TRANSITION: &str = "INSERT INTO health_transitions (install_id, version, component, org_id, at, was, verdict, reason, downstream_of) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

impl Reader {
    pub async fn install_health(&self, org: &OrgId, install: &InstallId) -> Result<Option<HealthRow>> {
        self.main()
            .glance((org.clone(), install.clone()), |tx, (org, install)| {
                Box::pin(async move {
                    let sql = select!(HealthRow, "WHERE org_id = $1 AND install_id = $2");
                    tx.get(sql, params![&org, &install]).await?.map(|row| HealthRow::from_row(&row)).transpose()
                })
            })
            .await
    }

    /// The verdicts of an org's installs that were written since a time.
    pub async fn install_verdicts(&self, org: &OrgId, since: Timestamp) -> Result<Vec<(InstallId, String, Timestamp)>> {
        self.main()
            .read((org.clone(), since), |tx, (org, since)| { Box::pin(async move {
                    let sql = "SELECT install_id, verdict, updated_at FROM install_health WHERE org_id = $1 AND updated_at >= $2";
                    let rows = tx.query(sql, params![org, since]).await?;
                    rows.iter().map(|row| Ok((row.get("install_id")?, row.get("verdict")?, row.get("updated_at")?))).collect()
                }) })
            .await
    }

    /// Transitions of an install since a time, newest first.
    pub async fn health_transitions(
        &self,
        org: &OrgId,
        install: &InstallId,
        component: Option<&str>,
        from: Timestamp,
        (offset, limit): (u64, u64),
    ) -> Result<Vec<HealthTransition>> {
        let asked = (org.clone(), install.clone(), component.map(str::to_owned), from, offset, limit);
        self.main()
            .read(asked, |tx, (org, install, component, from, offset, limit)| {
                Box::pin(async move {
                    let sql = select!(
                        HealthTransition,
                        "WHERE org_id = $1 AND install_id = $2 AND (CAST($3 AS TEXT) IS NULL OR component = $3) AND at >= $4 ORDER BY version DESC, component LIMIT $5 OFFSET $6"
                    );
                    let params = params![&org, &install, component.as_ref(), from, limit, offset];
                    tx.query(sql, params).await?.iter().map(HealthTransition::from_row).collect()
                })
            })
            .await
    }

    /// Installs of which time alone may have changed something.
    pub async fn due_health(&self, now: Timestamp, limit: u64) -> Result<Vec<(OrgId, InstallId)>> {
        self.main()
            .read((now, limit), |tx, (now, limit)| {
                Box::pin(async move {
                    let sql =
                        "SELECT org_id, install_id FROM install_health WHERE due_at <= $1 ORDER BY due_at LIMIT $2";
                    let rows = tx.query(sql, params![now, limit]).await?;
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("install_id")?))).collect()
                })
            })
            .await
    }
}

impl Store {
    /// Writes the next version of an install's health. False: somebody else has, or the install is gone.
    pub async fn write_health(&self, change: HealthChange) -> Result<bool> {
        self.main()
            .write(change, |tx, change| {
                Box::pin(async move {
                    let HealthChange { row, transitions, events, actor } = change;
                    let (now, body) = (row.updated_at, row.body.to_string());
                    let written = match row.version {
                        0 => tx.exec(INSERT, params![&row.install_id, &row.verdict, body, row.due_at, now]).await?,
                        version => {
                            let params = params![&row.install_id, version, &row.verdict, body, row.due_at, now];
                            tx.exec(UPDATE, params).await?
                        }
                    };
                    if written != 1 {
                        return Ok(false);
                    }
                    for it in transitions.iter() {
                        let params = params![
                            &row.install_id,
                            row.version + 1,
                            &it.component,
                            &row.org_id,
                            it.at,
                            it.was.as_ref(),
                            &it.verdict,
                            &it.reason,
                            it.downstream_of.as_ref()
                        ];
                        tx.exec_later(TRANSITION, params).await?;
                    }
                    for (kind, data) in events.iter() {
                        let subject = ("install", row.install_id.as_str());
                        let note = Note { org: &row.org_id, now, kind, subject, actor, data: data.clone() };
                        record(tx, note).await?;
                    }
                    Ok(true)
                })
            })
            .await
    }

    /// Deletes transitions of before a time, at most `limit`; returns how many.
    pub async fn prune_health_transitions(&self, before: Timestamp, limit: u64) -> Result<usize> {
        self.main()
            .write((before, limit), |tx, (before, limit)| { Box::pin(async move {
                    let sql = "DELETE FROM health_transitions WHERE (install_id, version, component) IN (SELECT install_id, version, component FROM health_transitions WHERE at < $1 ORDER BY at LIMIT $2)";
                    Ok(tx.exec(sql, params![before, limit]).await? as usize)
                }) })
            .await
    }
}
