//! Copies an artifact with all that it names from one place to another: what is there already stays, what does not match its
//! digest is refused.

use std::path::Path;

use fs_err as fs;
use futures::{StreamExt as _, TryStreamExt as _};
use model::Digest;
use model::build::{Artifact, Platform};
use serde_json::Value;

use super::{Descriptor, Manifest, OciError, Remote, Result};
use crate::patience::Transient as _;

/// Blobs that are copied at a time.
const PARALLEL: usize = 4;
/// Manifests that one artifact may be made of.
const MANIFESTS_MAX: usize = 1000;

/// Where an artifact comes from.
pub enum From<'a> {
    Registry(&'a Remote),
    /// An OCI layout on disk.
    Layout(&'a Path),
}

impl From<'_> {
    async fn manifest(&self, digest: &Digest) -> Result<Manifest> {
        match self {
            Self::Registry(remote) => remote.manifest(digest.as_str()).await,
            Self::Layout(dir) => {
                let bytes = fs::read(dir.join("blobs/sha256").join(digest.hex()))?;
                let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let kind = value.get("mediaType").and_then(Value::as_str);
                let found = Manifest::new(kind.unwrap_or(model::build::media::MANIFEST), bytes);
                if found.digest == *digest {
                    Ok(found)
                } else {
                    Err(OciError::Bad(format!("the layout's {digest} is something else")))
                }
            }
        }
    }
}

/// What a copy came to.
#[derive(Debug, Clone, Default)]
pub struct Copied {
    /// Of all that the artifact is made of.
    pub size: u64,
    pub blobs: u64,
    /// Blobs that were there.
    pub present: u64,
}

/// Copies what `root` names, then `root` itself, under its digest and as `tag`. `scratch` is a directory for blobs on the way.
pub async fn copy(from: From<'_>, to: &Remote, root: &Manifest, tag: &str, scratch: &Path) -> Result<Copied> {
    fs::create_dir_all(scratch)?;
    let mut copied = Copied::default();
    // Children come after their parents here, and before them there.
    let mut manifests = vec![root.clone()];
    let mut next = 0;
    while next < manifests.len() {
        for child in descriptors(&manifests[next].value()?, "manifests")? {
            if manifests.iter().all(|known| known.digest != child.digest) {
                if manifests.len() >= MANIFESTS_MAX {
                    return Err(OciError::Bad(format!("{} names more than {MANIFESTS_MAX} manifests", root.digest)));
                }
                manifests.push(from.manifest(&child.digest).await?);
            }
        }
        next += 1;
    }
    let mut blobs: Vec<Descriptor> = Vec::new();
    for manifest in &manifests {
        let value = manifest.value()?;
        copied.size += manifest.bytes.len() as u64;
        for blob in descriptors(&value, "layers")?.into_iter().chain(descriptor(value.get("config"))?) {
            if blobs.iter().all(|known| known.digest != blob.digest) {
                blobs.push(blob);
            }
        }
    }
    copied.blobs = blobs.len() as u64;
    copied.size = blobs.iter().fold(copied.size, |sum, blob| sum.saturating_add(blob.size));
    let from = &from;
    let one = |blob: Descriptor| async move { copy_blob(from, to, &blob, scratch).await };
    let moved: Vec<bool> = futures::stream::iter(blobs).map(one).buffer_unordered(PARALLEL).try_collect().await?;
    copied.present = moved.iter().filter(|moved| !**moved).count() as u64;
    for manifest in manifests.iter().rev() {
        to.put_manifest(manifest.digest.as_str(), manifest).await?;
    }
    to.put_manifest(tag, root).await?;
    Ok(copied)
}

/// False where it was there.
async fn copy_blob(from: &From<'_>, to: &Remote, blob: &Descriptor, scratch: &Path) -> Result<bool> {
    match from {
        From::Layout(dir) => to.push_blob(blob, &dir.join("blobs/sha256").join(blob.digest.hex())).await,
        From::Registry(remote) => {
            if to.has_blob(&blob.digest).await? {
                return Ok(false);
            }
            if remote.host() == to.host() && to.mount(&blob.digest, &remote.name).await? {
                return Ok(true);
            }
            match to.pass_blob(blob, remote).await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, blob = %blob.digest, "brought there by way of a file");
                }
                passed => return passed.map(|()| true),
            }
            let file = scratch.join(blob.digest.hex());
            remote.fetch_blob(blob, &file).await?;
            let pushed = to.push_blob(blob, &file).await;
            let _ = fs::remove_file(&file);
            pushed
        }
    }
}

fn descriptors(manifest: &Value, key: &str) -> Result<Vec<Descriptor>> {
    let found = manifest.get(key).and_then(Value::as_array).into_iter().flatten();
    found.map(|one| descriptor(Some(one)).map(|d| d.into_iter())).try_fold(Vec::new(), |mut all, one| {
        all.extend(one?);
        Ok(all)
    })
}

/// None for what lies elsewhere: layers that no registry may hand on.
fn descriptor(value: Option<&Value>) -> Result<Option<Descriptor>> {
    let Some(value) = value else { return Ok(None) };
    if value.get("urls").and_then(Value::as_array).is_some_and(|urls| !urls.is_empty()) {
        return Ok(None);
    }
    let found = serde_json::from_value(value.clone());
    found.map(Some).map_err(|e| OciError::Bad(format!("a manifest names something unreadable: {e}")))
}

/// An artifact as a build's or a sync's outputs have it. `repository` is how it is called from where it is used.
pub fn artifact(repository: &str, tag: &str, manifest: &Manifest, size: u64) -> Artifact {
    let value = manifest.value().unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let annotations = value.get("annotations").and_then(|a| serde_json::from_value(a.clone()).ok());
    Artifact {
        repository: repository.to_owned(),
        tag: tag.to_owned(),
        digest: manifest.digest.to_string(),
        reference: format!("{repository}@{}", manifest.digest),
        media_type: manifest.media_type.clone(),
        artifact_type: text("artifactType"),
        size,
        annotations: annotations.unwrap_or_default(),
        platform: Platform::default(),
        urls: Vec::new(),
    }
}
