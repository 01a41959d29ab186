//! From what was built to an artifact in a registry; and from the vendor's registry to the install's.

use std::collections::BTreeMap;

use crash::crash_point;
use model::build::{Artifact, BuildSpec, Repository, SyncSpec, media};
use model::kubernetes::Pulls;
use model::{Outcome, StepStatus};
use serde_json::{Value, json};

use super::super::action::StepFailure;
use super::super::stages::Stages;
use super::super::{Done, Run};
use super::{Built, Cache, as_map, pack};
use crate::oci::copy::{self, From};
use crate::oci::{Auth, Descriptor, Manifest, OciError, Remote, stored_credentials};

const EMPTY: &[u8] = b"{}";
/// Says what lies in the layer of one of our artifacts.
const KIND: &str = "dev.ferry.kind";

impl std::convert::From<OciError> for StepFailure {
    fn from(error: OciError) -> Self {
        Self::new("registry_failed", error.to_string())
    }
}

/// A repository, as this runner reaches it.
pub(in crate::execute) async fn remote(run: &Run<'_>, repository: &Repository) -> Result<Remote, StepFailure> {
    let ca_file = run.context.ca_file.as_deref();
    let Some(host) = &repository.registry else {
        let pass = run.fetcher.pass(run.host.dir);
        return Ok(Remote::new(&run.context.runner_url, &repository.name, Auth::RegistryTokens(pass), ca_file)?);
    };
    let scheme = if repository.plain_http { "http" } else { "https" };
    let login = stored_credentials(host).await;
    Ok(Remote::new(&format!("{scheme}://{host}"), &repository.name, Auth::Login(login), ca_file)?)
}

/// The control plane's registry, as pods name it: the host of the Runner API.
pub(in crate::execute) fn own_registry(runner_url: &str) -> Result<String, StepFailure> {
    let url = reqwest::Url::parse(runner_url).ok();
    let host = url.as_ref().filter(|url| url.path() == "/").and_then(|url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    });
    host.ok_or_else(|| {
        let text = "the Runner API is below a path, where no registry can be: start the runner with `--registry HOST/PATH`, so that images are copied there";
        StepFailure::new("no_registry", text)
    })
}

/// How an artifact is called: our own registry has no one name, so its path alone is said.
fn called(repository: &Repository) -> String {
    match &repository.registry {
        Some(host) => format!("{host}/{}", repository.name),
        None => repository.name.clone(),
    }
}

/// Pushes what was built. A reason to stop ends it: nothing is there under its tag before all of it is there.
pub(super) async fn put(
    run: &mut Run<'_>,
    step: usize,
    spec: &BuildSpec,
    built: Built,
) -> Result<(Artifact, Cache), StepFailure> {
    let to = remote(run, &spec.to).await?;
    let scratch = run.host.dir.work().join("tmp");
    let (name, tag) = (called(&spec.to), spec.tag.as_str());
    let push = async {
        match built {
            Built::File { file, kind } => {
                let (manifest, size) = push_file(&to, spec, &file, kind).await?;
                to.put_manifest(tag, &manifest).await?;
                Ok((copy::artifact(&name, tag, &manifest, size), Cache::default(), None))
            }
            Built::Layout { dir, root, cache } => {
                let bytes = fs_err::read(dir.join("blobs/sha256").join(root.hex()))?;
                let kind = serde_json::from_slice::<serde_json::Value>(&bytes).unwrap_or_default();
                let kind = kind.get("mediaType").and_then(|k| k.as_str()).unwrap_or(media::MANIFEST).to_owned();
                let manifest = Manifest::new(&kind, bytes);
                let copied = copy::copy(From::Layout(&dir), &to, &manifest, tag, &scratch).await?;
                let artifact = copy::artifact(&name, tag, &manifest, copied.size);
                Ok((artifact, cache, Some(copied)))
            }
            Built::Image(from, root) => {
                let copied = copy::copy(From::Registry(&from), &to, &root, tag, &scratch).await?;
                let artifact = copy::artifact(&name, tag, &root, copied.size);
                Ok((artifact, Cache::default(), Some(copied)))
            }
        }
    };
    let pushed: Result<_, OciError> = tokio::select! {
        pushed = push => pushed,
        stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
    };
    let (artifact, cache, copied) = pushed?;
    if let Some(copied) = copied {
        run.say(Some(step), &format!("{} blobs, {} of them were there", copied.blobs, copied.present));
    }
    Ok((artifact, cache))
}

async fn push_file(
    to: &Remote,
    spec: &BuildSpec,
    file: &std::path::Path,
    kind: pack::Kind,
) -> Result<(Manifest, u64), OciError> {
    let path = file.to_owned();
    let digest = tokio::task::spawn_blocking(move || crate::oci::hash_file(&path)).await;
    let digest = digest.map_err(std::io::Error::other)??;
    let layer = Descriptor { media_type: kind.layer().into(), digest, size: fs_err::metadata(file)?.len() };
    to.push_blob(&layer, file).await?;
    let mut annotations = BTreeMap::from([(KIND.to_owned(), kind.name().to_owned())]);
    let (config, artifact_type) = if kind == pack::Kind::HelmChart {
        let path = file.to_owned();
        let chart = tokio::task::spawn_blocking(move || super::helm::metadata(&path)).await;
        let chart = chart.map_err(std::io::Error::other)?.map_err(OciError::Bad)?;
        for (ours, theirs) in
            [("org.opencontainers.image.title", "name"), ("org.opencontainers.image.version", "version")]
        {
            if let Some(text) = chart.get(theirs).and_then(|v| v.as_str()) {
                annotations.insert(ours.into(), text.into());
            }
        }
        (to.push_bytes(media::CHART_CONFIG, chart.to_string().as_bytes()).await?, None)
    } else {
        annotations.insert("dev.ferry.component".into(), spec.component.clone());
        (to.push_bytes(media::EMPTY, EMPTY).await?, Some(media::ARTIFACT))
    };
    let mut manifest = json!({
        "schemaVersion": 2, "mediaType": media::MANIFEST, "config": config, "layers": [layer],
        "annotations": annotations,
    });
    if let Some(artifact_type) = artifact_type {
        manifest["artifactType"] = json!(artifact_type);
    }
    let manifest = Manifest::new(media::MANIFEST, manifest.to_string().into_bytes());
    let size = manifest.bytes.len() as u64 + config.size + layer.size;
    to.put_manifest(manifest.digest.as_str(), &manifest).await?;
    Ok((manifest, size))
}

/// Copies an artifact of the vendor into the install's own registry, or sees that it can be read.
pub(in super::super) async fn sync(run: &mut Run<'_>, spec: &SyncSpec, pulls: Option<&Pulls>) -> Done {
    let mut stages = Stages::new(&["sync"]);
    stages.begin(run, 0);
    match copy_to_install(run, spec).await {
        Ok(image) => {
            let steps = stages.finish(run);
            debug_assert!(steps.iter().all(|step| step.status == StepStatus::Finished));
            Done { outcome: Outcome::Finished, error: None, steps, outputs: as_map(&outputs(spec, &image, pulls)) }
        }
        Err(failure) => stages.fail(run, failure),
    }
}

/// The outputs of a copy: the image as pods name it, and the Secret that they need for it.
fn outputs(spec: &SyncSpec, image: &Artifact, pulls: Option<&Pulls>) -> Value {
    let mut outputs = json!({ "image": image });
    if let (None, None, Some(pulls)) = (&spec.to, &spec.from.registry, pulls) {
        outputs["image"]["pull_secret"] = json!(pulls.secret);
    }
    outputs
}

async fn copy_to_install(run: &mut Run<'_>, spec: &SyncSpec) -> Result<Artifact, StepFailure> {
    let from = remote(run, &spec.from).await?;
    let to = match &spec.to {
        Some(to) => Some(remote(run, to).await?),
        None => None,
    };
    let scratch = run.host.dir.work().join("tmp");
    let work = async {
        let root = from.manifest(spec.digest.as_str()).await?;
        let Some(to) = &to else {
            return Ok::<_, OciError>((root, None));
        };
        crash_point!("executor.before_copy");
        let copied = copy::copy(From::Registry(&from), to, &root, &spec.tag, &scratch).await?;
        crash_point!("executor.copied");
        Ok((root, Some(copied)))
    };
    let (root, copied) = tokio::select! {
        done = work => done?,
        stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
    };
    let size = copied.as_ref().map_or(root.bytes.len() as u64, |copied| copied.size);
    match &copied {
        Some(copied) => {
            run.say(
                Some(0),
                &format!("{}: {} blobs, {} of them were there", spec.component, copied.blobs, copied.present),
            );
        }
        None => {
            run.say(Some(0), &format!("{}: {} can be read from the vendor's registry", spec.component, root.digest))
        }
    }
    let repository = match (&spec.to, &spec.from.registry) {
        (None, None) => format!("{}/{}", own_registry(&run.context.runner_url)?, spec.from.name),
        (to, _) => called(to.as_ref().unwrap_or(&spec.from)),
    };
    Ok(copy::artifact(&repository, &spec.tag, &root, size))
}
