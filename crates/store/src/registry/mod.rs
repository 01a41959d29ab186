//! Owns blobs, manifests and uploads of the OCI registry, and builds with their artifacts.
//! The registry and the conductor call it.
//! No HTTP, and no names of other orgs.
//!
//! The registry's tables: repositories, blobs and which repositories show them, manifests, tags, uploads.
//!
//! What do we store? The bytes of blobs lie in the blob store, each under a key of its own (`registry_key`); the row of an org
//! and a digest says which. Blobs are shared by the repositories of an org, never between orgs. Manifests are small and lie
//! here whole. A blob to which no manifest refers knows since when (`idle_since`), and is swept when that was long ago.
//!
//! Why no sweep races a push: a manifest that refers to a blob writes to the blob's row, and so do the deletion of a manifest and
//! the sweep, in transactions that look first. Of two at a time the database lets one through, and the other looks again.

pub(crate) mod blobs;
pub(crate) mod builds;
pub(crate) mod uploads;

use std::collections::BTreeMap;

use model::{BlobId, Digest, OrgId, Timestamp};

use crate::db::{Row, Tx, params};
use crate::{Reader, Refused, Result, Store, StoreError};

/// Uploads of an org that may be open at a time.
pub const UPLOADS_MAX: u64 = 1000;
/// A look at an idle blob is written down when the last one was so long ago.
const LOOK_AGAIN_S: i64 = 30;

/// Where the bytes of an upload, and of the blob that it becomes, lie.
pub fn registry_key(org: &OrgId, id: &BlobId) -> String {
    format!("registry/{org}/{id}")
}

#[derive(Debug, Clone)]
pub struct RegistryUpload {
    pub id: BlobId,
    pub org_id: OrgId,
    pub repository: String,
    /// What the blob store gave when the last request ended.
    pub progress: Option<String>,
}

impl RegistryUpload {
    pub fn key(&self) -> String {
        registry_key(&self.org_id, &self.id)
    }
}

#[derive(Debug, Clone)]
pub struct RegistryBlob {
    pub key: String,
    pub size_bytes: u64,
}

#[derive(Debug, Clone)]
pub struct NewManifest {
    pub org_id: OrgId,
    pub repository: String,
    pub digest: Digest,
    pub media_type: String,
    pub body: Vec<u8>,
    pub subject: Option<Digest>,
    pub artifact_type: Option<String>,
    /// As JSON.
    pub annotations: Option<String>,
    /// Blobs and manifests that the repository must have.
    pub blobs: Vec<Digest>,
    pub manifests: Vec<Digest>,
    /// Blobs that may lie elsewhere.
    pub foreign: Vec<Digest>,
    /// What it says of their sizes; none is checked where it says nothing.
    pub sizes: BTreeMap<Digest, u64>,
    pub tag: Option<String>,
    pub now: Timestamp,
}

impl NewManifest {
    fn check_size(&self, digest: &Digest, has: u64) -> Result<()> {
        match self.sizes.get(digest) {
            Some(said) if *said != has => {
                Err(StoreError::SizeMismatch { digest: digest.to_string(), said: *said, has })
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestHead {
    pub digest: Digest,
    pub media_type: String,
    pub size_bytes: u64,
}

#[derive(Debug, Clone)]
pub struct Manifest {
    pub head: ManifestHead,
    pub body: Vec<u8>,
}

/// A manifest that says something about another.
#[derive(Debug, Clone)]
pub struct Referrer {
    pub head: ManifestHead,
    pub artifact_type: Option<String>,
    /// As JSON.
    pub annotations: Option<String>,
}

fn head_from(row: &Row) -> Result<ManifestHead> {
    Ok(ManifestHead {
        digest: row.get("digest")?,
        media_type: row.get("media_type")?,
        size_bytes: row.get("size_bytes")?,
    })
}

async fn add_repository(tx: &mut Tx<'_>, org: &OrgId, name: &str, now: Timestamp) -> Result<()> {
    let there = "SELECT 1 FROM registry_repositories WHERE org_id = $1 AND name = $2";
    if tx.get(there, params![org, name]).await?.is_none() {
        tx.exec(
            "INSERT INTO registry_repositories (org_id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (org_id, name) DO NOTHING",
            params![org, name, now],
        )
        .await?;
    }
    Ok(())
}

async fn link(tx: &mut Tx<'_>, org: &OrgId, repository: &str, digest: &Digest, now: Timestamp) -> Result<()> {
    add_repository(tx, org, repository, now).await?;
    tx.exec(
        "INSERT INTO registry_links (org_id, repository, digest) VALUES ($1, $2, $3) ON CONFLICT (org_id, repository, digest) DO NOTHING",
        params![org, repository, digest.as_str()],
    )
    .await?;
    Ok(())
}

async fn doom(tx: &mut Tx<'_>, key: &str, progress: Option<&str>, now: Timestamp) -> Result<()> {
    tx.exec(
        "INSERT INTO registry_doomed (object_key, multipart, doomed_at) VALUES ($1, $2, $3) ON CONFLICT (object_key) DO NOTHING",
        params![key, progress, now],
    )
    .await?;
    Ok(())
}

/// Begins the time of an idle blob anew: someone was told that it is there.
async fn touch(tx: &mut Tx<'_>, org: &OrgId, digest: &Digest, now: Timestamp) -> Result<()> {
    tx.exec(
        "UPDATE registry_blobs SET idle_since = $3 WHERE org_id = $1 AND digest = $2 AND idle_since IS NOT NULL",
        params![org, digest.as_str(), now],
    )
    .await?;
    Ok(())
}

const LINKED: &str = "SELECT b.id, b.size_bytes, b.idle_since FROM registry_links l JOIN registry_blobs b ON b.org_id = l.org_id AND b.digest = l.digest WHERE l.org_id = $1 AND l.repository = $2 AND l.digest = $3";

impl Reader {
    /// Keys that sign the registry's tokens: the first one signs, all of them verify.
    pub fn registry_token_keys(&self) -> Vec<[u8; 32]> {
        self.masters().derive("ferry registry tokens")
    }

    /// Bytes that an org keeps in its registry.
    pub async fn registry_usage(&self, org: &OrgId) -> Result<u64> {
        self.main()
            .read(org.clone(), |tx, org| {
                Box::pin(async move {
                    let mut sum = 0;
                    for sql in [
                        "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS size_bytes FROM registry_blobs WHERE org_id = $1",
                        "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS size_bytes FROM registry_manifests WHERE org_id = $1",
                    ] {
                        let row = tx.get(sql, params![&org]).await?.ok_or_else(|| StoreError::corrupt("sum"))?;
                        sum += row.get::<u64>("size_bytes")?;
                    }
                    Ok(sum)
                })
            })
            .await
    }

    pub async fn registry_upload(&self, org: &OrgId, repository: &str, id: &BlobId) -> Result<RegistryUpload> {
        self.main()
            .glance((org.clone(), repository.to_owned(), id.clone()), |tx, (org, repository, id)| {
                Box::pin(async move {
                    let sql = "SELECT progress FROM registry_uploads WHERE id = $1 AND org_id = $2 AND repository = $3";
                    let row = tx.get(sql, params![&id, &org, &repository]).await?;
                    let progress = row.ok_or(StoreError::NotFound("upload"))?.get("progress")?;
                    Ok(RegistryUpload { id: id.clone(), org_id: org.clone(), repository: repository.clone(), progress })
                })
            })
            .await
    }

    /// The blob of a digest, wherever it is shown.
    async fn blob_of(&self, org: &OrgId, digest: &Digest) -> Result<Option<RegistryBlob>> {
        self.main()
            .glance((org.clone(), digest.clone()), |tx, (org, digest)| {
                Box::pin(async move {
                    let sql = "SELECT id, size_bytes FROM registry_blobs WHERE org_id = $1 AND digest = $2";
                    let row = tx.get(sql, params![&org, digest.as_str()]).await?;
                    let blob = |row: Row| {
                        Ok(RegistryBlob { key: registry_key(org, &row.get("id")?), size_bytes: row.get("size_bytes")? })
                    };
                    row.map(blob).transpose()
                })
            })
            .await
    }

    /// Whether the bytes of a blob are there, as many as there should be.
    pub async fn is_whole(&self, blob: &RegistryBlob) -> Result<bool> {
        Ok(self.blobs().size(&blob.key).await? == Some(blob.size_bytes))
    }

    /// A manifest by its digest or by a tag.
    pub async fn registry_manifest(&self, org: &OrgId, repository: &str, reference: &str) -> Result<Option<Manifest>> {
        self.main()
            .glance((org.clone(), repository.to_owned(), reference.to_owned()), |tx, (org, repository, reference)| {
                Box::pin(async move {
                    let sql = if reference.contains(':') {
                        "SELECT digest, media_type, size_bytes, body FROM registry_manifests WHERE org_id = $1 AND repository = $2 AND digest = $3"
                    } else {
                        "SELECT m.digest, m.media_type, m.size_bytes, m.body FROM registry_tags t JOIN registry_manifests m ON m.org_id = t.org_id AND m.repository = t.repository AND m.digest = t.digest WHERE t.org_id = $1 AND t.repository = $2 AND t.name = $3"
                    };
                    let row = tx.get(sql, params![&org, &repository, &reference]).await?;
                    row.map(|row| Ok(Manifest { head: head_from(&row)?, body: row.get("body")? })).transpose()
                })
            })
            .await
    }

    /// Tags in order, after this one; `None` when there is no such repository.
    pub async fn registry_tags(
        &self,
        org: &OrgId,
        repository: &str,
        after: &str,
        limit: u64,
    ) -> Result<Option<Vec<String>>> {
        self.main()
            .read((org.clone(), repository.to_owned(), after.to_owned(), limit), |tx, (org, repository, after, limit)| {
                Box::pin(async move {
                    let there = "SELECT 1 FROM registry_repositories WHERE org_id = $1 AND name = $2";
                    if tx.get(there, params![&org, &repository]).await?.is_none() {
                        return Ok(None);
                    }
                    let sql = "SELECT name FROM registry_tags WHERE org_id = $1 AND repository = $2 AND name > $3 ORDER BY name LIMIT $4";
                    let rows = tx.query(sql, params![&org, &repository, &after, limit]).await?;
                    rows.iter().map(|row| row.get("name")).collect::<Result<_>>().map(Some)
                })
            })
            .await
    }

    pub async fn has_repository(&self, org: &OrgId, repository: &str) -> Result<bool> {
        Ok(self.registry_tags(org, repository, "", 0).await?.is_some())
    }

    /// Repositories in order, after this one.
    pub async fn registry_repositories(&self, org: &OrgId, after: &str, limit: u64) -> Result<Vec<String>> {
        self.main()
            .read((org.clone(), after.to_owned(), limit), |tx, (org, after, limit)| {
                Box::pin(async move {
                    let sql =
                        "SELECT name FROM registry_repositories WHERE org_id = $1 AND name > $2 ORDER BY name LIMIT $3";
                    let rows = tx.query(sql, params![&org, &after, limit]).await?;
                    rows.iter().map(|row| row.get("name")).collect()
                })
            })
            .await
    }

    /// What says something about a manifest, in order of digests, after this one.
    pub async fn referrers(
        &self,
        org: &OrgId,
        repository: &str,
        subject: &Digest,
        artifact_type: Option<&str>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Referrer>> {
        self.main()
            .read((org.clone(), repository.to_owned(), subject.clone(), artifact_type.map(str::to_owned), after.to_owned(), limit), |tx, (org, repository, subject, artifact_type, after, limit)| {
                Box::pin(async move {
                    let sql = "SELECT digest, media_type, size_bytes, artifact_type, annotations FROM registry_manifests WHERE org_id = $1 AND repository = $2 AND subject = $3 AND digest > $4 AND (CAST($5 AS TEXT) IS NULL OR artifact_type = $5) ORDER BY digest LIMIT $6";
                    let at = params![&org, &repository, subject.as_str(), &after, artifact_type, limit];
                    let referrer = |row: &Row| {
                        Ok(Referrer { head: head_from(row)?, artifact_type: row.get("artifact_type")?, annotations: row.get("annotations")? })
                    };
                    tx.query(sql, at).await?.iter().map(referrer).collect()
                })
            })
            .await
    }

    /// Objects that are doomed, oldest first, with what is known of their parts.
    pub async fn doomed(&self, limit: u64) -> Result<Vec<(String, Option<String>)>> {
        self.main()
            .read(limit, |tx, limit| {
                Box::pin(async move {
                    let sql = "SELECT object_key, multipart FROM registry_doomed ORDER BY doomed_at LIMIT $1";
                    tx.query(sql, params![limit])
                        .await?
                        .iter()
                        .map(|row| Ok((row.get("object_key")?, row.get("multipart")?)))
                        .collect()
                })
            })
            .await
    }
}

impl Store {
    // --- uploads ---

    pub async fn begin_upload(&self, org: &OrgId, repository: &str, id: &BlobId, now: Timestamp) -> Result<()> {
        self.main()
            .write((org.clone(), repository.to_owned(), id.clone(), now), |tx, (org, repository, id, now)| { Box::pin(async move {
                    let count = "SELECT COUNT(*) AS count FROM registry_uploads WHERE org_id = $1";
                    let row = tx.get(count, params![&org]).await?.ok_or_else(|| StoreError::corrupt("count"))?;
                    if row.get::<u64>("count")? >= UPLOADS_MAX {
                        return Err(Refused::TooManyUploads(UPLOADS_MAX).into());
                    }
                    tx.exec(
                        "INSERT INTO registry_uploads (id, org_id, repository, busy_until, created_at) VALUES ($1, $2, $3, 0, $4)",
                        params![&id, &org, &repository, now],
                    )
                    .await?;
                    Ok(())
                }) })
            .await
    }

    /// Takes an upload for one request, until then at most; one that is taken is a conflict. Returns it as it is now.
    pub async fn claim_upload(
        &self,
        upload: &RegistryUpload,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<RegistryUpload> {
        self.main()
            .write((upload.clone(), now, until), |tx, (upload, now, until)| {
                Box::pin(async move {
                    let sql = "SELECT progress, busy_until FROM registry_uploads WHERE id = $1 AND org_id = $2";
                    let row = tx.get(sql, params![&upload.id, &upload.org_id]).await?;
                    let row = row.ok_or(StoreError::NotFound("upload"))?;
                    if row.get::<Timestamp>("busy_until")? > *now {
                        return Err(Refused::UploadBusy.into());
                    }
                    let sql = "UPDATE registry_uploads SET busy_until = $3 WHERE id = $1 AND org_id = $2";
                    tx.exec(sql, params![&upload.id, &upload.org_id, until]).await?;
                    Ok(RegistryUpload { progress: row.get("progress")?, ..upload.clone() })
                })
            })
            .await
    }

    /// Holds a taken upload for longer.
    pub async fn hold_upload(&self, upload: &RegistryUpload, until: Timestamp) -> Result<()> {
        self.main()
            .write((upload.clone(), until), |tx, (upload, until)| {
                Box::pin(async move {
                    let sql = "UPDATE registry_uploads SET busy_until = $3 WHERE id = $1 AND org_id = $2";
                    match tx.exec(sql, params![&upload.id, &upload.org_id, until]).await? {
                        0 => Err(StoreError::NotFound("upload")),
                        _ => Ok(()),
                    }
                })
            })
            .await
    }

    /// Keeps what is there of an upload, and lets others write to it.
    pub async fn pause_upload(&self, upload: &RegistryUpload, progress: &str) -> Result<()> {
        self.main()
            .write((upload.clone(), progress.to_owned()), |tx, (upload, progress)| {
                Box::pin(async move {
                    let sql = "UPDATE registry_uploads SET progress = $3, busy_until = 0 WHERE id = $1 AND org_id = $2";
                    match tx.exec(sql, params![&upload.id, &upload.org_id, progress]).await? {
                        0 => Err(StoreError::NotFound("upload")),
                        _ => Ok(()),
                    }
                })
            })
            .await
    }

    /// Makes a blob of an upload whose bytes are durable, and shows it in the upload's repository. Where the org has these bytes
    /// already they stay as they are; then the object of the upload is doomed, and this is false. What was there and is damaged
    /// is replaced.
    pub async fn finish_upload(
        &self,
        upload: &RegistryUpload,
        digest: &Digest,
        size_bytes: u64,
        now: Timestamp,
    ) -> Result<bool> {
        self.main()
            .write((upload.clone(), digest.clone(), match self.blob_of(&upload.org_id, digest).await? {
            Some(blob) if !self.is_whole(&blob).await? => Some(blob.key),
            _ => None,
        }, size_bytes, now), |tx, (upload, digest, damaged, size_bytes, now)| { Box::pin(async move {
                    let (org, repository) = (&upload.org_id, &upload.repository);
                    let sql = "DELETE FROM registry_uploads WHERE id = $1 AND org_id = $2 AND repository = $3";
                    if tx.exec(sql, params![&upload.id, org, repository]).await? == 0 {
                        return Err(StoreError::NotFound("upload"));
                    }
                    let there = "SELECT id FROM registry_blobs WHERE org_id = $1 AND digest = $2";
                    let there = tx.get(there, params![org, digest.as_str()]).await?;
                    let there = there.map(|row| row.get("id").map(|id| registry_key(org, &id))).transpose()?;
                    let mut fresh = there.is_none();
                    if let Some(old) = there.filter(|old| damaged.as_ref() == Some(old)) {
                        tx.exec(
                            "UPDATE registry_blobs SET id = $3, size_bytes = $4 WHERE org_id = $1 AND digest = $2",
                            params![org, digest.as_str(), &upload.id, size_bytes],
                        )
                        .await?;
                        touch(tx, org, digest, *now).await?;
                        doom(tx, &old, None, *now).await?;
                        fresh = true;
                    } else if fresh {
                        // A conflict with one that is not seen here makes PostgreSQL run this again, and then it is seen.
                        tx.exec(
                            "INSERT INTO registry_blobs (id, org_id, digest, size_bytes, idle_since, created_at) VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (org_id, digest) DO NOTHING",
                            params![&upload.id, org, digest.as_str(), size_bytes, now],
                        )
                        .await?;
                    } else {
                        touch(tx, org, digest, *now).await?;
                        doom(tx, &upload.key(), upload.progress.as_deref(), *now).await?;
                    }
                    link(tx, org, repository, digest, *now).await?;
                    Ok(fresh)
                }) })
            .await
    }

    /// Ends an upload; its object is doomed.
    pub async fn cancel_upload(&self, upload: &RegistryUpload, now: Timestamp) -> Result<()> {
        self.main()
            .write((upload.clone(), now), |tx, (upload, now)| {
                Box::pin(async move { end_upload(tx, upload, *now).await })
            })
            .await
    }

    /// Ends uploads that began before then; returns how many.
    pub async fn expire_uploads(&self, before: Timestamp, limit: u64, now: Timestamp) -> Result<usize> {
        self.main()
            .write((before, limit, now), |tx, (before, limit, now)| { Box::pin(async move {
                    let sql = "SELECT id, org_id, repository, progress FROM registry_uploads WHERE created_at < $1 AND busy_until <= $3 ORDER BY created_at LIMIT $2";
                    let rows = tx.query(sql, params![before, limit, now]).await?;
                    for row in &rows {
                        let upload = RegistryUpload {
                            id: row.get("id")?,
                            org_id: row.get("org_id")?,
                            repository: row.get("repository")?,
                            progress: row.get("progress")?,
                        };
                        end_upload(tx, &upload, *now).await?;
                    }
                    Ok(rows.len())
                }) })
            .await
    }

    // --- blobs ---

    /// A blob that a repository shows. Whoever is told that it is there has the whole grace to refer to it.
    pub async fn registry_blob(
        &self,
        org: &OrgId,
        repository: &str,
        digest: &Digest,
        now: Timestamp,
    ) -> Result<Option<RegistryBlob>> {
        let found = self.main().find(LINKED, params![org, repository, digest]).await?;
        let Some(row) = found else { return Ok(None) };
        let key = registry_key(org, &row.get("id")?);
        let blob = RegistryBlob { key, size_bytes: row.get("size_bytes")? };
        let looked: Option<Timestamp> = row.get("idle_since")?;
        if looked.is_some_and(|at| at < now.plus_s(-LOOK_AGAIN_S)) && !self.touch_blob(org, digest, now).await? {
            return Ok(None);
        }
        Ok(Some(blob))
    }

    /// False when it was swept a moment ago.
    async fn touch_blob(&self, org: &OrgId, digest: &Digest, now: Timestamp) -> Result<bool> {
        self.main()
            .write((org.clone(), digest.clone(), now), |tx, (org, digest, now)| {
                Box::pin(async move {
                    touch(tx, org, digest, *now).await?;
                    let there = "SELECT 1 FROM registry_blobs WHERE org_id = $1 AND digest = $2";
                    Ok(tx.get(there, params![&org, digest.as_str()]).await?.is_some())
                })
            })
            .await
    }

    /// Shows a blob of one repository in another one of the org; false when the first has none.
    pub async fn mount_blob(&self, org: &OrgId, from: &str, to: &str, digest: &Digest, now: Timestamp) -> Result<bool> {
        self.main()
            .write(
                (org.clone(), from.to_owned(), to.to_owned(), digest.clone(), now),
                |tx, (org, from, to, digest, now)| {
                    Box::pin(async move {
                        if tx.get(LINKED, params![&org, &from, digest.as_str()]).await?.is_none() {
                            return Ok(false);
                        }
                        touch(tx, org, digest, *now).await?;
                        link(tx, org, to, digest, *now).await?;
                        Ok(true)
                    })
                },
            )
            .await
    }

    /// Shows a blob no longer. One that a manifest of the repository needs stays: that is a conflict.
    pub async fn unlink_blob(&self, org: &OrgId, repository: &str, digest: &Digest) -> Result<()> {
        self.main()
            .write((org.clone(), repository.to_owned(), digest.clone()), |tx, (org, repository, digest)| {
                Box::pin(async move {
                    let at = params![&org, &repository, digest.as_str()];
                    let sql = "DELETE FROM registry_links WHERE org_id = $1 AND repository = $2 AND digest = $3";
                    if tx.exec(sql, at.clone()).await? == 0 {
                        return Err(StoreError::NotFound("blob"));
                    }
                    let needed = "SELECT manifest FROM registry_references WHERE org_id = $1 AND repository = $2 AND digest = $3 LIMIT 1";
                    if let Some(row) = tx.get(needed, at).await? {
                        return Err(Refused::BlobNeeded(row.get("manifest")?).into());
                    }
                    Ok(())
                })
            })
            .await
    }

    // --- manifests and tags ---

    /// Stores a manifest, and its tag where it has one. What it needs must be there (`ContentMissing`), and is not idle from
    /// now on.
    pub async fn put_manifest(&self, new: NewManifest) -> Result<()> {
        self.main().write(new, |tx, new| Box::pin(async move { insert_manifest(tx, new).await })).await
    }

    /// Deletes a manifest with its tags, or a tag alone.
    pub async fn delete_manifest(&self, org: &OrgId, repository: &str, reference: &str, now: Timestamp) -> Result<()> {
        self.main()
            .write((org.clone(), repository.to_owned(), reference.to_owned(), now), |tx, (org, repository, reference, now)| {
                Box::pin(async move {
                    let at = || params![&org, &repository, &reference];
                    if !reference.contains(':') {
                        let sql = "DELETE FROM registry_tags WHERE org_id = $1 AND repository = $2 AND name = $3";
                        let deleted = tx.exec(sql, at()).await?;
                        return if deleted == 0 { Err(StoreError::NotFound("tag")) } else { Ok(()) };
                    }
                    let sql = "DELETE FROM registry_manifests WHERE org_id = $1 AND repository = $2 AND digest = $3";
                    if tx.exec(sql, at()).await? == 0 {
                        return Err(StoreError::NotFound("manifest"));
                    }
                    let sql = "DELETE FROM registry_tags WHERE org_id = $1 AND repository = $2 AND digest = $3";
                    tx.exec(sql, at()).await?;
                    let needed = "SELECT digest FROM registry_references WHERE org_id = $1 AND repository = $2 AND manifest = $3";
                    let needed = tx.query(needed, at()).await?;
                    let sql = "DELETE FROM registry_references WHERE org_id = $1 AND repository = $2 AND manifest = $3";
                    tx.exec(sql, at()).await?;
                    for row in needed {
                        // Always written: of two deletions at a time, one must see the other.
                        tx.exec(
                            "UPDATE registry_blobs SET idle_since = CASE WHEN EXISTS (SELECT 1 FROM registry_references r WHERE r.org_id = $1 AND r.digest = $2) THEN NULL ELSE CAST($3 AS BIGINT) END WHERE org_id = $1 AND digest = $2",
                            params![&org, row.get::<String>("digest")?, now],
                        )
                        .await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    // --- the sweep ---

    /// Forgets blobs that have been idle since before then; their objects are doomed. Returns how many it looked at.
    pub async fn sweep_blobs(&self, idle_before: Timestamp, limit: u64, now: Timestamp) -> Result<usize> {
        self.main()
            .write((idle_before, limit, now), |tx, (idle_before, limit, now)| { Box::pin(async move {
                    let sql = "SELECT id, org_id, digest FROM registry_blobs WHERE idle_since < $1 ORDER BY idle_since LIMIT $2";
                    let rows = tx.query(sql, params![idle_before, limit]).await?;
                    for row in &rows {
                        let (id, org): (BlobId, OrgId) = (row.get("id")?, row.get("org_id")?);
                        let digest: String = row.get("digest")?;
                        let at = || params![&org, &digest];
                        let needed = "SELECT 1 FROM registry_references WHERE org_id = $1 AND digest = $2 LIMIT 1";
                        if tx.get(needed, at()).await?.is_some() {
                            let sql = "UPDATE registry_blobs SET idle_since = NULL WHERE org_id = $1 AND digest = $2";
                            tx.exec(sql, at()).await?;
                            continue;
                        }
                        tx.exec("DELETE FROM registry_links WHERE org_id = $1 AND digest = $2", at()).await?;
                        tx.exec("DELETE FROM registry_blobs WHERE org_id = $1 AND digest = $2", at()).await?;
                        doom(tx, &registry_key(&org, &id), None, *now).await?;
                    }
                    Ok(rows.len())
                }) })
            .await
    }

    /// Deletes one object that is doomed.
    pub async fn bury(&self, key: &str, progress: Option<&str>) -> Result<()> {
        self.blobs().remove_upload(key, progress).await?;
        self.main()
            .write(key.to_owned(), |tx, key| {
                Box::pin(async move {
                    tx.exec("DELETE FROM registry_doomed WHERE object_key = $1", params![&key]).await?;
                    Ok(())
                })
            })
            .await
    }
}

async fn end_upload(tx: &mut Tx<'_>, upload: &RegistryUpload, now: Timestamp) -> Result<()> {
    let sql = "DELETE FROM registry_uploads WHERE id = $1 AND org_id = $2 AND repository = $3";
    if tx.exec(sql, params![&upload.id, &upload.org_id, &upload.repository]).await? == 0 {
        return Err(StoreError::NotFound("upload"));
    }
    doom(tx, &upload.key(), upload.progress.as_deref(), now).await
}

async fn insert_manifest(tx: &mut Tx<'_>, new: &NewManifest) -> Result<()> {
    let (org, repository, digest) = (&new.org_id, &new.repository, new.digest.as_str());
    for blob in &new.blobs {
        if tx.get(LINKED, params![org, repository, blob.as_str()]).await?.is_none() {
            return Err(StoreError::ContentMissing(blob.to_string()));
        }
        // Written even when it is not idle: it may become so, and be swept, beside this transaction.
        let sql = "UPDATE registry_blobs SET idle_since = NULL WHERE org_id = $1 AND digest = $2 RETURNING size_bytes";
        if let Some(row) = tx.get(sql, params![org, blob.as_str()]).await? {
            new.check_size(blob, row.get("size_bytes")?)?;
        }
    }
    for manifest in &new.manifests {
        let there = "SELECT size_bytes FROM registry_manifests WHERE org_id = $1 AND repository = $2 AND digest = $3";
        let Some(row) = tx.get(there, params![org, repository, manifest.as_str()]).await? else {
            return Err(StoreError::ContentMissing(manifest.to_string()));
        };
        new.check_size(manifest, row.get("size_bytes")?)?;
    }
    add_repository(tx, org, repository, new.now).await?;
    let subject = new.subject.as_ref().map(Digest::as_str);
    tx.exec(
        "INSERT INTO registry_manifests (org_id, repository, digest, media_type, size_bytes, body, subject, artifact_type, annotations, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (org_id, repository, digest) DO UPDATE SET media_type = excluded.media_type",
        params![org, repository, digest, &new.media_type, new.body.len() as u64, new.body.clone(), subject, new.artifact_type.as_ref(), new.annotations.as_ref(), new.now],
    )
    .await?;
    for needed in new.blobs.iter().chain(&new.manifests).chain(&new.foreign) {
        tx.exec(
            "INSERT INTO registry_references (org_id, repository, manifest, digest) VALUES ($1, $2, $3, $4) ON CONFLICT (org_id, repository, manifest, digest) DO NOTHING",
            params![org, repository, digest, needed.as_str()],
        )
        .await?;
    }
    if let Some(tag) = &new.tag {
        tx.exec(
            "INSERT INTO registry_tags (org_id, repository, name, digest, updated_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (org_id, repository, name) DO UPDATE SET digest = excluded.digest, updated_at = excluded.updated_at",
            params![org, repository, tag, digest, new.now],
        )
        .await?;
    }
    Ok(())
}
