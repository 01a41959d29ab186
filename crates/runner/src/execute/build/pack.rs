//! Packs what was built into one file: the same content gives the same bytes, wherever and whenever it is packed.

use std::collections::BTreeMap;
use std::path::Path;

use model::build::media;

use super::super::action::{StepFailure, base_environment};
use super::super::{Run, tool};
use super::Built;

/// Largest directory that is packed.
const PACKED_BYTES_MAX: u64 = 8 << 30;
/// Where vendored providers lie in a module.
pub(in crate::execute) const PROVIDERS: &str = ".ferry/providers";

/// What a packed file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    TerraformModule,
    Manifest,
    HelmChart,
}

impl Kind {
    pub(super) const fn layer(self) -> &'static str {
        match self {
            Self::TerraformModule | Self::Manifest => media::LAYER,
            Self::HelmChart => media::CHART_LAYER,
        }
    }

    /// The annotation that says what lies in the layer.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TerraformModule => "terraform_module",
            Self::Manifest => "kubernetes_manifest",
            Self::HelmChart => "helm_chart",
        }
    }
}

/// What tools keep in a module for themselves. The lock file is the author's.
/// What no install could plan is not built.
fn check_module(dir: &Path) -> Result<(), StepFailure> {
    let mut module = None;
    for entry in fs_err::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !terraform::is_module_file(&name) {
            continue;
        }
        let text = fs_err::read_to_string(entry.path())?;
        let read = module.get_or_insert_with(terraform::Module::default).read(&name, &text);
        read.map_err(|wrong| StepFailure::new("build_failed", format!("{name}, {wrong}")))?;
    }
    match module {
        Some(_) => Ok(()),
        None => Err(StepFailure::new("build_failed", "the directory holds no Terraform file (*.tf, *.tf.json)")),
    }
}

fn belongs_to_tools(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == ".git" || name == ".terraform" || name.ends_with(".tfstate") || name.contains(".tfstate.")
}

pub(super) async fn directory(
    run: &mut Run<'_>,
    step: usize,
    dir: &Path,
    place: &Path,
    kind: Kind,
) -> Result<Built, StepFailure> {
    if kind == Kind::TerraformModule {
        check_module(dir)?;
        if !dir.join(".terraform.lock.hcl").exists() {
            run.say(Some(step), "no .terraform.lock.hcl: each install chooses its provider versions; `terraform providers lock` makes one");
        }
    }
    let (from, file) = (dir.to_owned(), place.join("artifact.tar.gz"));
    let to = file.clone();
    let packed =
        tokio::task::spawn_blocking(move || archive::pack_gzip(&from, &to, belongs_to_tools, PACKED_BYTES_MAX));
    let packed = tokio::select! {
        packed = packed => packed.map_err(std::io::Error::other)?,
        stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
    };
    let size = packed.map_err(|e| StepFailure::new("build_failed", e.to_string()))?;
    run.say(Some(step), &format!("packed {size} bytes"));
    Ok(Built::File { file, kind })
}

/// Kubernetes objects as one file.
pub(super) async fn manifest(run: &mut Run<'_>, step: usize, text: &str, place: &Path) -> Result<Built, StepFailure> {
    if text.trim().is_empty() {
        return Err(StepFailure::new("build_failed", "there are no objects"));
    }
    let dir = place.join("manifest");
    fs_err::create_dir_all(&dir)?;
    fs_err::write(dir.join("manifest.yaml"), text)?;
    directory(run, step, &dir, place, Kind::Manifest).await
}

/// Brings the providers of a module into it, for installs that reach no provider registry.
pub(super) async fn vendor_providers(run: &mut Run<'_>, step: usize, dir: &Path) -> Result<(), StepFailure> {
    let program = ["terraform", "tofu"].into_iter().find(|name| tool::find(name).is_some());
    let program = program.ok_or_else(|| {
        StepFailure::new("tool_missing", "vendoring providers needs `terraform` or `tofu` on the build runner's PATH")
    })?;
    let mut env: BTreeMap<String, String> = base_environment(|name| std::env::var(name).ok(), &run.host.dir.work());
    env.insert(model::env::CHECKPOINT_DISABLE.into(), "1".into());
    let Some(config) = run.context.tools.terraform_config.clone() else {
        // Modules of the module have providers too.
        tool::run(run, step, dir, env.clone(), &[program, "get"]).await?;
        let platforms = ["-platform=linux_amd64", "-platform=linux_arm64"];
        return tool::run(
            run,
            step,
            dir,
            env,
            &[program, "providers", "mirror", platforms[0], platforms[1], PROVIDERS],
        )
        .await;
    };
    // `providers mirror` asks only the registries themselves; `init` goes where the configuration says, for one platform.
    let copied = run.host.dir.work().join("terraform.tfrc");
    tool::private(&copied, &fs_err::read_to_string(config)?)?;
    env.insert(model::env::TF_CLI_CONFIG_FILE.into(), copied.to_string_lossy().into_owned());
    tool::run(run, step, dir, env, &[program, "init", "-backend=false", "-input=false", "-no-color"]).await?;
    let (from, to) = (dir.join(".terraform/providers"), dir.join(PROVIDERS));
    let copied = tokio::task::spawn_blocking(move || if from.is_dir() { copy_all(&from, &to) } else { Ok(()) });
    copied.await.map_err(std::io::Error::other)??;
    run.say(Some(step), "the providers come from the configured mirror, for the build runner's platform alone");
    Ok(())
}

/// Copies a directory; what links lead to is copied, not the links.
fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_all(&path, &to)?;
        } else {
            fs_err::copy(path, to)?;
        }
    }
    Ok(())
}
