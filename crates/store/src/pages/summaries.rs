//! What lists show of installs, put together ahead of time. Whatever changes an install raises its count; whoever puts the summary
//! together notes the count that it saw.

use model::labels::Labels;
use model::{AppId, InstallId, OrgId, RunnerId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use crate::db::{Sql, Tx, params};
use crate::{Reader, Result, Store, StoreError};

/// An install as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub id: InstallId,
    pub name: String,
    pub app_id: AppId,
    pub runner_id: RunnerId,
    pub platform: String,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub labels: Labels,
    /// The worst of the sandbox and the components.
    pub status: String,
    pub sandbox_status: String,
    #[serde(default)]
    pub components: Vec<SummaryPart>,
    /// Parts that differ from what was deployed.
    #[serde(default)]
    pub drifted: u64,
    /// Parts of which nobody knows whether they do.
    #[serde(default)]
    pub unlooked: u64,
    /// The oldest version of the app that something of it was deployed from.
    #[serde(default)]
    pub version: Option<u64>,
    /// A rollback keeps it at its version.
    #[serde(default)]
    pub kept: bool,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummaryPart {
    pub name: String,
    #[serde(default)]
    pub kind: String,
    pub status: String,
    #[serde(default)]
    pub drifted: bool,
    #[serde(default)]
    pub disabled: bool,
    #[serde(default)]
    pub version: Option<u64>,
}

/// When the runner of an install was heard of, and what it says.
#[derive(Debug, Clone)]
pub struct Sighting {
    pub runner_id: RunnerId,
    pub sightings: model::waiting::Sightings,
    pub revoked: bool,
    /// The customer has switched it off.
    pub disabled: bool,
}

/// What was done last to an install.
#[derive(Debug, Clone)]
pub struct LastWorkflow {
    pub id: WorkflowId,
    pub install_id: InstallId,
    pub kind: String,
    pub status: String,
    pub created_by: String,
    pub updated_at: Timestamp,
}

/// The summary of an install is out of date.
pub(crate) async fn outdate(tx: &mut Tx<'_>, install: &InstallId) -> Result<()> {
    tx.exec_later("UPDATE installs SET summary_wanted = summary_wanted + 1 WHERE id = $1", params![install]).await
}

/// Those of all installs of an app are.
pub(crate) async fn outdate_app(tx: &mut Tx<'_>, app: &AppId) -> Result<()> {
    tx.exec_later("UPDATE installs SET summary_wanted = summary_wanted + 1 WHERE app_id = $1", params![app]).await
}

const SIGHTINGS: Sql = Sql {
    sqlite: "SELECT id, seen_at, closed_at, revoked_at, (report ->> 'disabled_since') IS NOT NULL AS disabled FROM runners WHERE org_id = $1 AND install_id IS NOT NULL",
    postgres: "SELECT id, seen_at, closed_at, revoked_at, CASE WHEN report::jsonb ->> 'disabled_since' IS NOT NULL THEN 1::bigint ELSE 0::bigint END AS disabled FROM runners WHERE org_id = $1 AND install_id IS NOT NULL",
};

const SUMMARIES: Sql = Sql {
    sqlite: "SELECT s.body, s.made_at FROM json_each($2) i JOIN summaries s ON s.install_id = i.value WHERE s.org_id = $1",
    postgres: "SELECT s.body, s.made_at FROM jsonb_array_elements_text($2::text::jsonb) AS i(value) JOIN summaries s ON s.install_id = i.value WHERE s.org_id = $1",
};

const LAST: Sql = Sql {
    sqlite: "SELECT w.id, w.install_id, w.type, w.status, w.created_by, w.updated_at FROM json_each($2) i JOIN workflows w ON w.id = (SELECT MAX(id) FROM workflows WHERE install_id = i.value AND type NOT LIKE 'drift_run%') WHERE w.org_id = $1",
    postgres: "SELECT w.id, w.install_id, w.type, w.status, w.created_by, w.updated_at FROM jsonb_array_elements_text($2::text::jsonb) AS i(value) JOIN workflows w ON w.id = (SELECT MAX(id) FROM workflows WHERE install_id = i.value AND type NOT LIKE 'drift_run%') WHERE w.org_id = $1",
};

impl Reader {
    /// Installs whose summary is out of date, each with the count that was seen; of one org, or of all.
    pub async fn unsummarized(
        &self,
        org: Option<&OrgId>,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<(OrgId, InstallId, u64)>> {
        self.main()
            .read((org.cloned(), offset, limit), |tx, (org, offset, limit)| {
                Box::pin(async move {
                    let rows = match org {
                        Some(org) => {
                            let sql = "SELECT org_id, id, summary_wanted FROM installs WHERE org_id = $1 AND summary_wanted > summary_made ORDER BY id LIMIT $2 OFFSET $3";
                            tx.query(sql, params![org, limit, offset]).await?
                        }
                        None => {
                            let sql = "SELECT org_id, id, summary_wanted FROM installs WHERE summary_wanted > summary_made ORDER BY org_id, id LIMIT $1 OFFSET $2";
                            tx.query(sql, params![limit, offset]).await?
                        }
                    };
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("id")?, row.get("summary_wanted")?))).collect()
                })
            })
            .await
    }

    /// Which summaries of an org were made since a time, and when each was.
    pub async fn summary_stamps(&self, org: &OrgId, since: Timestamp) -> Result<Vec<(InstallId, Timestamp)>> {
        let sql = "SELECT install_id, made_at FROM summaries WHERE org_id = $1 AND made_at >= $2";
        let rows = self.main().query(sql, params![org, since]).await?;
        rows.iter().map(|row| Ok((row.get("install_id")?, row.get("made_at")?))).collect()
    }

    /// The summaries of some installs, each with when it was made.
    pub async fn summaries(&self, org: &OrgId, installs: &[InstallId]) -> Result<Vec<(Timestamp, Summary)>> {
        let ids = serde_json::to_string(installs).map_err(StoreError::db)?;
        let rows = self.main().query(SUMMARIES, params![org, ids]).await?;
        let read = |row: &crate::Row| {
            let body: String = row.get("body")?;
            let summary = serde_json::from_str(&body).map_err(|_| StoreError::corrupt("summary"))?;
            Ok((row.get("made_at")?, summary))
        };
        rows.iter().map(read).collect()
    }

    /// The apps of an org: id, name, and the newest version.
    pub async fn app_heads(&self, org: &OrgId) -> Result<Vec<(AppId, String, Option<u64>)>> {
        let sql = "SELECT id, name, (SELECT MAX(c.version) FROM configs c WHERE c.app_id = apps.id AND c.status = 'active') AS version FROM apps WHERE org_id = $1";
        let rows = self.main().query(sql, params![org]).await?;
        rows.iter().map(|row| Ok((row.get("id")?, row.get("name")?, row.get("version")?))).collect()
    }

    /// How many installs of an org have a summary.
    pub async fn count_summaries(&self, org: &OrgId) -> Result<u64> {
        let sql = "SELECT COUNT(*) AS count FROM summaries WHERE org_id = $1";
        let rows = self.main().query(sql, params![org]).await?;
        rows.first().map_or(Ok(0), |row| row.get("count"))
    }

    /// The runners of all installs of an org.
    pub async fn install_sightings(&self, org: &OrgId) -> Result<Vec<Sighting>> {
        let rows = self.main().query(SIGHTINGS, params![org]).await?;
        let read = |row: &crate::Row| {
            Ok(Sighting {
                runner_id: row.get("id")?,
                sightings: model::waiting::Sightings { seen_at: row.get("seen_at")?, closed_at: row.get("closed_at")? },
                revoked: row.get::<Option<Timestamp>>("revoked_at")?.is_some(),
                disabled: row.get("disabled")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// The newest workflow of each of some installs; looks for drift change nothing, and do not count.
    pub async fn last_workflows(&self, org: &OrgId, installs: &[InstallId]) -> Result<Vec<LastWorkflow>> {
        let ids = serde_json::to_string(installs).map_err(StoreError::db)?;
        let rows = self.main().query(LAST, params![org, ids]).await?;
        let read = |row: &crate::Row| {
            Ok(LastWorkflow {
                id: row.get("id")?,
                install_id: row.get("install_id")?,
                kind: row.get("type")?,
                status: row.get("status")?,
                created_by: row.get("created_by")?,
                updated_at: row.get("updated_at")?,
            })
        };
        rows.iter().map(read).collect()
    }
}

impl Store {
    /// Writes the summary that was put together at a count. Who looked at an older one, or at an install that is gone, has nothing to say.
    pub async fn put_summary(&self, org: &OrgId, seen: u64, summary: Summary, now: Timestamp) -> Result<()> {
        self.main()
            .write((org.clone(), summary, seen, now), |tx, (org, summary, seen, now)| {
                Box::pin(async move {
                    let made = "UPDATE installs SET summary_made = $2 WHERE id = $1 AND summary_made < $2";
                    if tx.exec(made, params![&summary.id, seen]).await? != 1 {
                        return Ok(());
                    }
                    let body = serde_json::to_string(summary).map_err(StoreError::db)?;
                    let sql = "INSERT INTO summaries (install_id, org_id, body, made_at) VALUES ($1, $2, $3, $4) ON CONFLICT (install_id) DO UPDATE SET body = excluded.body, made_at = excluded.made_at";
                    tx.exec_later(sql, params![&summary.id, org, body, now]).await
                })
            })
            .await
    }
}
