//! Makes the artifact of a component: fetches its source, builds it, and pushes what came out.
//!
//! Where the source has not moved since the last good build of the same recipe, there is nothing to do, and that is said.

mod docker;
mod dockerfile;
mod helm;
mod image;
mod kustomize;
mod pack;
mod policies;
mod push;

use std::path::{Path, PathBuf};

use model::build::{BuildOutputs, BuildSpec, BuiltFrom, ChartSource, Recipe};
use model::spec::Source;
use model::{Digest, Outcome};
use serde_json::{Map, Value};

use super::action::StepFailure;
use super::stages::Stages;
use super::{Done, Run, source};
use crate::oci::{Manifest, Remote};

pub(super) use pack::PROVIDERS;
pub(super) use push::{own_registry, remote, sync};

const SOURCE: usize = 0;
const BUILD: usize = 1;
const PUSH: usize = 2;

/// The source of a build, as it was found.
enum Found {
    /// A directory of files; not there where the source has not moved.
    Files(PathBuf),
    Text(String),
    /// A packed chart.
    Chart(PathBuf),
    Image(Box<Remote>, Box<Manifest>),
}

/// What a recipe has come to, before it is in a registry.
enum Built {
    /// One file, and what says what it is.
    File { file: PathBuf, kind: pack::Kind },
    /// An OCI layout, and its root.
    Layout { dir: PathBuf, root: Digest, cache: Cache },
    /// An image of another registry.
    Image(Box<Remote>, Box<Manifest>),
}

/// Steps of a build that an earlier one had done, of how many.
#[derive(Debug, Clone, Copy, Default)]
struct Cache {
    hits: u64,
    steps: u64,
}

pub(super) async fn run(run: &mut Run<'_>, spec: &BuildSpec, disk_bytes: u64) -> Done {
    let mut stages = Stages::new(&["source", "build", "push"]);
    match Box::pin(make(run, &mut stages, spec, disk_bytes)).await {
        Ok(outputs) => {
            let steps = stages.finish(run);
            Done { outcome: Outcome::Finished, error: None, steps, outputs: as_map(&outputs) }
        }
        Err(failure) => stages.fail(run, failure),
    }
}

fn as_map(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        Ok(_) | Err(_) => Map::new(),
    }
}

async fn make(
    run: &mut Run<'_>,
    stages: &mut Stages,
    spec: &BuildSpec,
    disk_bytes: u64,
) -> Result<BuildOutputs, StepFailure> {
    stages.begin(run, SOURCE);
    let work = run.host.dir.work();
    for folder in ["root", "tmp", "sources", "build"] {
        fs_err::create_dir_all(work.join(folder))?;
    }
    let (from, found) = fetch(run, spec, disk_bytes).await?;
    if let Some(known) = spec.known.as_ref().filter(|known| known.revision == from.revision) {
        run.say(Some(SOURCE), &format!("{} has not moved since build {}", from.revision, known.build_id));
        return Ok(BuildOutputs { same_as: Some(known.build_id.clone()), source: from, ..BuildOutputs::default() });
    }
    stages.begin(run, BUILD);
    // Tools that read what the source names: a kustomization, a chart, a module.
    run.narrow();
    let built = build(run, spec, found, &work.join("build"), disk_bytes).await?;
    if !spec.policies.is_empty() {
        policies::judge(run, spec, &from, &built).await?;
    }
    stages.begin(run, PUSH);
    let (image, cache) = push::put(run, PUSH, spec, built).await?;
    run.say(Some(PUSH), &format!("pushed {}, {} bytes", image.reference, image.size));
    Ok(BuildOutputs {
        image: Some(image),
        same_as: None,
        source: from,
        cache_hits: cache.hits,
        cache_steps: cache.steps,
    })
}

async fn fetch(run: &mut Run<'_>, spec: &BuildSpec, disk_bytes: u64) -> Result<(BuiltFrom, Found), StepFailure> {
    let known = spec.known.as_ref().map(|known| known.revision.as_str());
    let place = run.host.dir.work().join("sources/0");
    let named = |revision: String| BuiltFrom { revision, ..BuiltFrom::default() };
    match spec.recipe.source() {
        Some(source @ Source::Git { .. }) => {
            let (from, dir) = source::fetch_git(run, SOURCE, source, known, &place).await?;
            return Ok((from, Found::Files(dir)));
        }
        Some(source @ Source::Archive { digest, .. }) => {
            let dir = source::prepare(run, SOURCE, source, &place, disk_bytes).await?;
            return Ok((named(digest.to_string()), Found::Files(dir)));
        }
        None => {}
    }
    match &spec.recipe {
        Recipe::Manifest { contents } => {
            Ok((named(Digest::of(contents.as_bytes()).to_string()), Found::Text(contents.clone())))
        }
        Recipe::HelmChart { chart: ChartSource::Repository { url, chart, version, credentials } } => {
            let wanted = helm::ChartRef { url, chart, version: version.as_deref(), credentials: credentials.as_ref() };
            run.narrow();
            let file = helm::pull(run, SOURCE, &wanted).await?;
            let revision = hash(&file).await?.to_string();
            let reference = version.clone();
            Ok((BuiltFrom { reference, ..named(revision) }, Found::Chart(file)))
        }
        Recipe::ContainerImage { .. } => image::resolve(run, SOURCE, &spec.recipe).await,
        Recipe::TerraformModule { .. }
        | Recipe::HelmChart { .. }
        | Recipe::Kustomization { .. }
        | Recipe::DockerImage { .. } => Err(StepFailure::new("bad_spec", "the recipe names no source")),
    }
}

async fn build(
    run: &mut Run<'_>,
    spec: &BuildSpec,
    found: Found,
    place: &Path,
    disk_bytes: u64,
) -> Result<Built, StepFailure> {
    match (&spec.recipe, found) {
        (Recipe::TerraformModule { vendor_providers, .. }, Found::Files(dir)) => {
            if *vendor_providers {
                pack::vendor_providers(run, BUILD, &dir).await?;
            }
            pack::directory(run, BUILD, &dir, place, pack::Kind::TerraformModule).await
        }
        (Recipe::HelmChart { .. }, Found::Chart(file)) => Ok(Built::File { file, kind: pack::Kind::HelmChart }),
        (Recipe::HelmChart { .. }, Found::Files(dir)) => helm::package(run, BUILD, &dir, place).await,
        (Recipe::Manifest { .. }, Found::Text(contents)) => pack::manifest(run, BUILD, &contents, place).await,
        (Recipe::Kustomization { path, patches, enable_helm, unrestricted, .. }, Found::Files(dir)) => {
            let wanted =
                kustomize::Kustomization { path, patches, enable_helm: *enable_helm, unrestricted: *unrestricted };
            let text = kustomize::render(run, BUILD, &dir, &wanted).await?;
            pack::manifest(run, BUILD, &text, place).await
        }
        (Recipe::DockerImage { dockerfile, target, args, secrets, .. }, Found::Files(dir)) => {
            let wanted =
                docker::ImageBuild { dockerfile, target: target.as_deref(), args, secrets: &secrets.0, disk_bytes };
            docker::build(run, BUILD, &dir, place, &wanted).await
        }
        (Recipe::ContainerImage { .. }, Found::Image(from, root)) => Ok(Built::Image(from, root)),
        _ => Err(StepFailure::new("bad_spec", "the recipe and its source do not fit together")),
    }
}

async fn hash(file: &Path) -> Result<Digest, StepFailure> {
    let file = file.to_owned();
    let hashed = tokio::task::spawn_blocking(move || crate::oci::hash_file(&file)).await;
    Ok(hashed.map_err(std::io::Error::other)??)
}
