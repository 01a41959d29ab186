//! The install state: a document of parts, each with its versions. A change writes one row, whatever the size of the document.

use std::collections::BTreeMap;

use model::secrets::SECRETS_PART;
use model::{InstallId, OrgId, Timestamp, WorkflowId};
use serde_json::Value as Json;

use crate::crypto::OrgKeys;
use crate::db::{Tx, params};
use crate::events::{Note, record};
use crate::workflows::wake_install;
use crate::{Install, Reader, Result, Store, StoreError};

/// Versions of a part that are read at once.
const VERSIONS_MAX: u64 = 100;

/// A part that is about to be written.
#[derive(Debug, Clone)]
pub(crate) struct SealedPart {
    part: String,
    value: Vec<u8>,
}

fn place(install: &InstallId, part: &str) -> String {
    format!("install_parts|{install}|{part}|value")
}

impl SealedPart {
    pub(crate) fn new(keys: &OrgKeys, install: &InstallId, part: &str, value: &Json) -> Self {
        let value = keys.seal(&place(install, part), value.to_string().as_bytes());
        Self { part: part.to_owned(), value }
    }
}

/// The newest of every part up to a version. It goes from name to name, and to the end of each: how much was there before does not matter.
const PARTS_AT: &str = "WITH RECURSIVE names (part) AS (SELECT MIN(part) FROM install_parts WHERE install_id = $2 UNION ALL SELECT (SELECT MIN(n.part) FROM install_parts n WHERE n.install_id = $2 AND n.part > names.part) FROM names WHERE names.part IS NOT NULL) SELECT p.part, p.version, p.value FROM names JOIN install_parts p ON p.install_id = $2 AND p.part = names.part AND p.version = (SELECT MAX(v.version) FROM install_parts v WHERE v.install_id = $2 AND v.part = names.part AND v.version <= $3) WHERE p.org_id = $1";

/// Writes parts as the next version of the document.
pub(crate) async fn insert_parts(
    tx: &mut Tx<'_>,
    org: &OrgId,
    install: &InstallId,
    parts: &[SealedPart],
    workflow: Option<&WorkflowId>,
    now: Timestamp,
) -> Result<()> {
    if parts.is_empty() {
        return Ok(());
    }
    // The runner may have something else to observe, or to mask.
    let is_seen = |part: &str| part.starts_with("components/") || part == "sandbox" || part == SECRETS_PART;
    if parts.iter().any(|part| is_seen(&part.part)) {
        let sql = "UPDATE runners SET watch = watch + 1 WHERE id = (SELECT runner_id FROM installs WHERE id = $1)";
        tx.exec_later(sql, params![install]).await?;
    }
    // Two that write at the same time must not both make the same version: one of them is told to try again.
    let sql = "UPDATE installs SET moves = moves + 1, summary_wanted = summary_wanted + 1 WHERE id = $1";
    tx.exec(sql, params![install]).await?;
    let last = "SELECT COALESCE(MAX(version), 0) AS last_version FROM install_parts WHERE install_id = $1";
    let row = tx.get(last, params![install]).await?.ok_or_else(|| StoreError::corrupt("count"))?;
    let version = row.get::<u64>("last_version")? + 1;
    for part in parts {
        tx.exec_later(
            "INSERT INTO install_parts (install_id, part, version, org_id, value, workflow_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            params![install, &part.part, version, org, part.value.clone(), workflow, now],
        )
        .await?;
    }
    Ok(())
}

/// A version of an install's state, and what changed with it.
#[derive(Debug, Clone)]
pub struct StateVersion {
    pub version: u64,
    pub parts: Vec<String>,
    pub workflow_id: Option<WorkflowId>,
    pub created_at: Timestamp,
}

impl Reader {
    /// The parts of an install's state, opened; as they were at a version, or as they are.
    pub async fn install_parts(
        &self,
        org: &OrgId,
        install: &InstallId,
        version: Option<u64>,
    ) -> Result<(u64, BTreeMap<String, Json>)> {
        let rows = self
            .main()
            .read((org.clone(), install.clone(), version), |tx, (org, install, version)| {
                Box::pin(async move {
                    tx.query(PARTS_AT, params![&org, &install, version.unwrap_or(i64::MAX as u64)]).await
                })
            })
            .await?;
        let (mut newest, mut parts) = (0, BTreeMap::new());
        for row in rows {
            let part: String = row.get("part")?;
            newest = newest.max(row.get("version")?);
            let text = self.open_sealed(org, &place(install, &part), &row.get::<Vec<u8>>("value")?).await?;
            parts.insert(part, serde_json::from_slice(&text).map_err(|_| StoreError::corrupt("state"))?);
        }
        Ok((newest, parts))
    }

    /// One part of an install's state, as it is.
    pub async fn install_part(&self, org: &OrgId, install: &InstallId, part: &str) -> Result<Option<Json>> {
        let sealed: Option<Vec<u8>> = self
            .main()
            .glance((org.clone(), install.clone(), part.to_owned()), |tx, (org, install, part)| { Box::pin(async move {
                    let sql = "SELECT value FROM install_parts WHERE org_id = $1 AND install_id = $2 AND part = $3 ORDER BY version DESC LIMIT 1";
                    tx.get(sql, params![&org, &install, part]).await?.map(|row| row.get("value")).transpose()
                }) })
            .await?;
        let Some(sealed) = sealed else { return Ok(None) };
        let text = self.open_sealed(org, &place(install, part), &sealed).await?;
        serde_json::from_slice(&text).map(Some).map_err(|_| StoreError::corrupt("state"))
    }

    /// Every version of one part of an install's state, newest first; as many as anybody will read.
    pub async fn part_versions(&self, org: &OrgId, install: &InstallId, part: &str) -> Result<Vec<Json>> {
        let rows = self
            .main()
            .read((org.clone(), install.clone(), part.to_owned()), |tx, (org, install, part)| { Box::pin(async move {
                    let sql = "SELECT value FROM install_parts WHERE org_id = $1 AND install_id = $2 AND part = $3 ORDER BY version DESC LIMIT $4";
                    tx.query(sql, params![&org, &install, part, VERSIONS_MAX]).await
                }) })
            .await?;
        let mut versions = Vec::with_capacity(rows.len());
        for row in rows {
            let text = self.open_sealed(org, &place(install, part), &row.get::<Vec<u8>>("value")?).await?;
            versions.push(serde_json::from_slice(&text).map_err(|_| StoreError::corrupt("state"))?);
        }
        Ok(versions)
    }

    /// How often something was set moving in an install.
    pub async fn install_moves(&self, install: &InstallId) -> Result<i64> {
        self.main()
            .glance(install.clone(), |tx, install| {
                Box::pin(async move {
                    let row = tx.get("SELECT moves FROM installs WHERE id = $1", params![&install]).await?;
                    row.ok_or(StoreError::NotFound("install"))?.get("moves")
                })
            })
            .await
    }

    /// The versions of an install's state, newest first.
    pub async fn state_versions(
        &self,
        org: &OrgId,
        install: &InstallId,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<StateVersion>> {
        self.main()
            .read((org.clone(), install.clone(), offset, limit), |tx, (org, install, offset, limit)| { Box::pin(async move {
                    let sql = "SELECT version, part, workflow_id, created_at FROM install_parts WHERE org_id = $1 AND install_id = $2 AND version IN (SELECT DISTINCT version FROM install_parts WHERE install_id = $2 ORDER BY version DESC LIMIT $3 OFFSET $4) ORDER BY version DESC, part";
                    let mut versions: Vec<StateVersion> = Vec::new();
                    for row in tx.query(sql, params![&org, &install, limit, offset]).await? {
                        let (version, part): (u64, String) = (row.get("version")?, row.get("part")?);
                        match versions.last_mut() {
                            Some(last) if last.version == version => last.parts.push(part),
                            _ => versions.push(StateVersion { version, parts: vec![part], workflow_id: row.get("workflow_id")?, created_at: row.get("created_at")? }),
                        }
                    }
                    Ok(versions)
                }) })
            .await
    }
}

impl Store {
    /// Writes a part that no workflow has made, if nothing was set moving since `moves` was read; workflows that are open are woken.
    pub async fn put_install_part(
        &self,
        install: &Install,
        moves: i64,
        (part, value): (&str, &Json),
        (actor, now): (&str, Timestamp),
    ) -> Result<bool> {
        let part = SealedPart::new(&self.org_keys(&install.org_id).await?, &install.id, part, value);
        let written = self
            .main()
            .write(
                (install.org_id.clone(), install.id.clone(), part, actor.to_owned(), moves, now),
                |tx, (org, id, part, actor, moves, now)| {
                    Box::pin(async move {
                        let sql = "UPDATE installs SET moves = moves + 1 WHERE id = $1 AND moves = $2";
                        if tx.exec(sql, params![&id, moves]).await? != 1 {
                            return Ok(false);
                        }
                        let data = serde_json::json!({ "part": part.part });
                        insert_parts(tx, org, id, std::slice::from_ref(part), None, *now).await?;
                        wake_install(tx, id, *now).await?;
                        let subject = ("install", id.as_str());
                        record(tx, Note { org, now: *now, kind: "install.state", subject, actor, data }).await?;
                        Ok(true)
                    })
                },
            )
            .await?;
        self.wake_workflows(&install.org_id);
        Ok(written)
    }
}
