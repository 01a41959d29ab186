//! Objects that no row names, and rows whose object is missing. A crash between writing an object and its row leaves the first; so does
//! forgetting an install, whose sealed files nobody can read any more. Damage from outside leaves the second.

use futures::TryStreamExt as _;
use model::{OrgId, Timestamp, UploadId};
use object_store::ObjectStore as _;

use crate::db::{Tx, params};
use crate::registry::registry_key;
use crate::{Blobs, Reader, Result, Store, StoreError, archive_key, piece_key};

/// Objects that one transaction looks up.
const LOOK: usize = 256;
/// Where objects of each kind lie.
const LOGS: &str = "logs";
const SEALED: &str = "sealed";
const ARCHIVES: &str = "archives";
const REGISTRY: &str = "registry";

/// An object that no row names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    pub key: String,
    pub size_bytes: u64,
}

/// A row whose object is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub key: String,
    /// What has lost it.
    pub of: String,
}

impl Blobs {
    /// Objects below a prefix that were last written before a time, in portions.
    async fn each_old<F>(
        &self,
        prefix: &str,
        before: Timestamp,
        mut portion: impl FnMut(Vec<Orphan>) -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<bool>>,
    {
        let fault = |e: object_store::Error| StoreError::Blob(e.to_string());
        let root = self.path("").to_string();
        let mut found = self.store.list(Some(&self.path(prefix)));
        let mut some = Vec::new();
        loop {
            let next = found.try_next().await.map_err(fault)?;
            let is_last = next.is_none();
            if let Some(object) = next.filter(|o| o.last_modified.timestamp_micros() < before.micros()) {
                let key = object.location.as_ref().trim_start_matches(&root).trim_start_matches('/').to_owned();
                some.push(Orphan { key, size_bytes: object.size });
            }
            if is_last || some.len() == LOOK {
                let goes_on = portion(std::mem::take(&mut some)).await?;
                if is_last || !goes_on {
                    return Ok(());
                }
            }
        }
    }
}

impl Reader {
    /// Objects that no row names and that were last written before `before`: at most `limit` of each kind. Reads only.
    pub async fn orphans(&self, before: Timestamp, limit: usize) -> Result<Vec<Orphan>> {
        let mut all = Vec::new();
        for kind in [LOGS, SEALED, ARCHIVES, REGISTRY] {
            all.extend(self.orphans_of(kind, before, limit).await?);
        }
        Ok(all)
    }

    async fn orphans_of(&self, kind: &'static str, before: Timestamp, limit: usize) -> Result<Vec<Orphan>> {
        let found = std::sync::Mutex::new(Vec::new());
        let lock = || found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let look = |some: Vec<Orphan>| async {
            let orphans = self.without_row(kind, some).await?;
            let mut found = lock();
            found.extend(orphans);
            found.truncate(limit);
            Ok(found.len() < limit)
        };
        self.blobs().each_old(kind, before, look).await?;
        Ok(found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    async fn without_row(&self, kind: &'static str, objects: Vec<Orphan>) -> Result<Vec<Orphan>> {
        let db = if kind == LOGS { self.logs_db() } else { self.main() };
        db.read((objects, kind), |tx, (objects, kind)| {
            Box::pin(async move {
                let mut orphans = Vec::new();
                for object in objects {
                    if !is_named(tx, kind, &object.key).await? {
                        orphans.push(object.clone());
                    }
                }
                Ok(orphans)
            })
        })
        .await
    }

    /// Rows whose object is not there: states, plans, archives and blobs of the registry. `verify_log` looks after logs.
    pub async fn missing_objects(&self) -> Result<Vec<Missing>> {
        let mut missing = Vec::new();
        for table in [REVISIONS, PLANS, ARCHIVED, BLOBS] {
            let mut after = String::new();
            loop {
                let rows = self.objects_after(table, &after).await?;
                let Some((last, ..)) = rows.last() else { break };
                after = last.clone();
                for (id, keys) in rows {
                    for key in keys {
                        if self.blobs().size(&key).await?.is_none() {
                            missing.push(Missing { key, of: format!("{} {id}", table.what) });
                        }
                    }
                }
            }
        }
        Ok(missing)
    }

    async fn objects_after(&self, table: Table, after: &str) -> Result<Vec<(String, Vec<String>)>> {
        self.main()
            .read((after.to_owned(), table), |tx, (after, table)| {
                Box::pin(async move {
                    let rows = tx.query(table.sql, params![after, LOOK as u64]).await?;
                    rows.iter()
                        .map(|row| {
                            Ok((row.get("id")?, (table.keys)(&row.get("org_id")?, &row.get::<String>("named")?)?))
                        })
                        .collect::<Result<Vec<_>>>()
                })
            })
            .await
    }
}

impl Store {
    /// Deletes log segments and sealed files that nothing names and nothing ever will; at most `limit` of each. Returns how many.
    ///
    /// Archives are only reported: they are stored under their digest, so a new upload may be about to name one. The registry
    /// deletes its own.
    pub async fn sweep_orphans(&self, before: Timestamp, limit: usize) -> Result<usize> {
        let mut swept = 0;
        for kind in [LOGS, SEALED] {
            for orphan in self.orphans_of(kind, before, limit).await? {
                self.blobs().delete(&orphan.key).await?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Gives up sealed files that nothing has ever named: their upload was cut off, and a new try is another file. Their pieces are
    /// orphans from then on. Returns how many.
    ///
    /// Files of the first day after the upgrade are kept: a server of the version before may have named them, without a note.
    pub async fn drop_abandoned_uploads(&self, before: Timestamp, limit: u64) -> Result<u64> {
        self.main()
            .write((before, limit), |tx, (before, limit)| { Box::pin(async move {
                    let sql = "DELETE FROM uploads_sealed WHERE id IN (SELECT id FROM uploads_sealed WHERE named_at IS NULL AND created_at < $1 AND created_at > (SELECT applied_at FROM schema_versions WHERE part = 'main' AND version = 14) + $3 LIMIT $2) AND named_at IS NULL";
                    const DAY_US: i64 = 86_400_000_000;
                    tx.exec(sql, params![before, limit, DAY_US]).await
                }) })
            .await
    }
}

/// Rows that name objects: an id to go on from, the org, and what says which objects.
#[derive(Clone, Copy)]
struct Table {
    what: &'static str,
    sql: &'static str,
    keys: fn(&OrgId, &str) -> Result<Vec<String>>,
}

const REVISIONS: Table = Table {
    what: "state",
    sql: "SELECT id, org_id, file AS named FROM revisions WHERE id > $1 ORDER BY id LIMIT $2",
    keys: pieces,
};
const PLANS: Table = Table {
    what: "plan of job",
    sql: "SELECT job_id AS id, org_id, plan AS named FROM plans WHERE job_id > $1 ORDER BY job_id LIMIT $2",
    keys: |org, plan| {
        let plan: model::deploy::ApprovedPlan = serde_json::from_str(plan).map_err(|_| StoreError::corrupt("plan"))?;
        Ok(pieces_of(org, &plan.file))
    },
};
const ARCHIVED: Table = Table {
    what: "archive",
    sql: "SELECT org_id || '/' || digest AS id, org_id, digest AS named FROM archives WHERE org_id || '/' || digest > $1 ORDER BY 1 LIMIT $2",
    keys: |org, digest| {
        let digest = model::Digest::parse(digest).map_err(|_| StoreError::corrupt("digest"))?;
        Ok(vec![archive_key(org, &digest)])
    },
};
const BLOBS: Table = Table {
    what: "registry blob",
    sql: "SELECT id, org_id, id AS named FROM registry_blobs WHERE id > $1 ORDER BY id LIMIT $2",
    keys: |org, id| Ok(vec![registry_key(org, &id.parse().map_err(|_| StoreError::corrupt("blob"))?)]),
};

fn pieces(org: &OrgId, file: &str) -> Result<Vec<String>> {
    let file: model::deploy::SealedFile = serde_json::from_str(file).map_err(|_| StoreError::corrupt("sealed file"))?;
    Ok(pieces_of(org, &file))
}

fn pieces_of(org: &OrgId, file: &model::deploy::SealedFile) -> Vec<String> {
    (0..file.pieces).map(|piece| piece_key(org, &file.upload_id, piece)).collect()
}

/// Whether a row names this object, or may still come to name it. A key of a form that we don't write counts as named: it is not ours.
async fn is_named(tx: &mut Tx<'_>, kind: &str, key: &str) -> Result<bool> {
    let parts: Vec<&str> = key.split('/').collect();
    let (sql, values) = match (kind, parts.as_slice()) {
        // As long as its first batch is hot, a segment may be written again under the same key.
        (LOGS, [_, _, execution, name]) => {
            let Some(first) = name.split('-').next().and_then(|n| n.parse::<u64>().ok()) else { return Ok(true) };
            (
                "SELECT 1 FROM log_segments WHERE execution_id = $1 AND blob_key = $2 UNION ALL SELECT 1 FROM log_chunks WHERE execution_id = $1 AND first_seq = $3",
                params![*execution, key, first],
            )
        }
        (SEALED, [_, _, upload, _]) if upload.parse::<UploadId>().is_ok() => {
            ("SELECT 1 FROM uploads_sealed WHERE id = $1", params![*upload])
        }
        (ARCHIVES, [_, org, hex]) => {
            ("SELECT 1 FROM archives WHERE org_id = $1 AND digest = $2", params![*org, format!("sha256:{hex}")])
        }
        (REGISTRY, [_, _, id]) => (
            "SELECT 1 FROM registry_blobs WHERE id = $1 UNION ALL SELECT 1 FROM registry_uploads WHERE id = $1 UNION ALL SELECT 1 FROM registry_doomed WHERE object_key = $2",
            params![*id, key],
        ),
        _ => return Ok(true),
    };
    Ok(tx.get(sql, values).await?.is_some())
}
