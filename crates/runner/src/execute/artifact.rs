//! The one layer of an artifact that a build made: a chart, a module, what a kustomization rendered.

use std::path::{Path, PathBuf};

use fs_err as fs;
use model::Digest;
use model::build::Repository;

use super::action::StepFailure;
use super::build::remote;
use super::{Run, archive};
use crate::oci::Descriptor;

/// Brings the layer, and unpacks it into a directory that is made for it.
pub(super) async fn unpacked(
    run: &mut Run<'_>,
    repository: &Repository,
    digest: &Digest,
    place: &Path,
    disk_bytes: u64,
) -> Result<(), StepFailure> {
    let (file, layer) = layer(run, repository, digest).await?;
    fs::create_dir_all(place)?;
    archive::unpack_file(file, layer.digest, place.to_owned(), disk_bytes).await
}

/// Brings the layer as a file, `sources/artifact.tgz` of the job's work.
pub(super) async fn layer(
    run: &mut Run<'_>,
    repository: &Repository,
    digest: &Digest,
) -> Result<(PathBuf, Descriptor), StepFailure> {
    let work = run.host.dir.work();
    for folder in ["tmp", "sources"] {
        fs::create_dir_all(work.join(folder))?;
    }
    let from = remote(run, repository).await?;
    let manifest = from.manifest(digest.as_str()).await?.value()?;
    let layer: Option<Descriptor> = serde_json::from_value(manifest["layers"][0].clone()).ok();
    let layer = layer.ok_or_else(|| StepFailure::new("source_failed", "the artifact has no layer"))?;
    let file = work.join("sources/artifact.tgz");
    tokio::select! {
        fetched = from.fetch_blob(&layer, &file) => fetched?,
        stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
    }
    Ok((file, layer))
}
