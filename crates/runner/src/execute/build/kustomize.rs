//! Kustomizations: rendered when they are built, so that installs get plain objects.

use std::io::Read as _;
use std::path::{Component, Path};

use super::super::action::{StepFailure, base_environment};
use super::super::{Run, source, tool};

/// Largest set of rendered objects.
const OBJECTS_BYTES: u64 = 64 << 20;

pub(super) struct Kustomization<'a> {
    pub(super) path: &'a str,
    pub(super) patches: &'a [String],
    pub(super) enable_helm: bool,
    pub(super) unrestricted: bool,
}

pub(super) async fn render(
    run: &mut Run<'_>,
    step: usize,
    place: &Path,
    wanted: &Kustomization<'_>,
) -> Result<String, StepFailure> {
    let bad = |text: String| StepFailure::new("build_failed", text);
    let leads_out =
        |path: &str| Path::new(path).components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir));
    if leads_out(wanted.path) || wanted.patches.iter().any(|patch| leads_out(patch)) {
        return Err(bad("the kustomization and its patches must lie inside the source".into()));
    }
    let dir = place.join(wanted.path);
    let files = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    if !files.iter().any(|name| dir.join(name).is_file()) {
        return Err(bad(format!("`{}` holds no kustomization.yaml", wanted.path)));
    }
    let program = if tool::find("kustomize").is_some() { "kustomize" } else { "kubectl" };
    tool::need(program, "a kustomization")?;
    let mut target = dir.clone();
    if !wanted.patches.is_empty() {
        target = overlay(place, wanted)?;
    }
    let target = target.to_string_lossy().into_owned();
    let mut argv = vec![program];
    argv.push(if program == "kustomize" { "build" } else { "kustomize" });
    argv.push(&target);
    if wanted.unrestricted {
        argv.extend(["--load-restrictor", "LoadRestrictionsNone"]);
    }
    if wanted.enable_helm {
        tool::need("helm", "a kustomization with charts")?;
        argv.push("--enable-helm");
    }
    let mut env = base_environment(|name| std::env::var(name).ok(), &run.host.dir.work());
    env.insert("KUBECONFIG".into(), "/dev/null".into());
    run.say(Some(step), &argv.join(" "));
    let rendered = tool::output(run, step, place, env, &argv, OBJECTS_BYTES).await?;
    rendered.ok_or_else(|| bad(format!("`{program}` can't render `{}`", wanted.path)))
}

/// A kustomization over the one that is asked for, with the patches in it; beside the source, which must not lie in itself.
fn overlay(source: &Path, wanted: &Kustomization<'_>) -> Result<std::path::PathBuf, StepFailure> {
    let bad = |text: String| StepFailure::new("build_failed", text);
    let source = fs_err::canonicalize(source)?;
    let dir =
        source.parent().map(|parent| parent.join("overlay")).ok_or_else(|| bad("the source has no place".into()))?;
    fs_err::create_dir_all(&dir)?;
    let mut patches = Vec::new();
    for path in wanted.patches {
        let file = source::file_inside(&source, path).map_err(|why| bad(format!("patch `{path}` {why}")))?;
        let mut text = String::new();
        fs_err::File::open(file)?.take(OBJECTS_BYTES).read_to_string(&mut text)?;
        patches.push(serde_json::json!({ "patch": text }));
    }
    let name = source.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = serde_json::json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [format!("../{name}/{}", wanted.path)], "patches": patches,
    });
    fs_err::write(dir.join("kustomization.yaml"), text.to_string())?;
    Ok(dir)
}
