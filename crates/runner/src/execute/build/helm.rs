//! Helm charts: packed from a directory with their dependencies, or taken from a repository of charts.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use model::build::Credentials;
use serde_json::Value;

use super::super::action::{StepFailure, base_environment};
use super::super::{Run, source, tool};
use super::{Built, pack};

const CHART_YAML_BYTES: u64 = 1 << 20;

/// A chart of a repository.
pub(super) struct ChartRef<'a> {
    pub(super) url: &'a str,
    pub(super) chart: &'a str,
    pub(super) version: Option<&'a str>,
    pub(super) credentials: Option<&'a Credentials>,
}

/// Helm keeps nothing outside of the execution's directory.
fn environment(run: &Run<'_>) -> BTreeMap<String, String> {
    let work = run.host.dir.work();
    let mut env = base_environment(|name| std::env::var(name).ok(), &work);
    for (name, folder) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
        env.insert(name.into(), work.join("helm").join(folder).to_string_lossy().into_owned());
    }
    env
}

/// Takes a chart from a repository; returns the packed file.
pub(super) async fn pull(run: &mut Run<'_>, step: usize, wanted: &ChartRef<'_>) -> Result<PathBuf, StepFailure> {
    tool::need("helm", "a chart of a repository")?;
    let place = run.host.dir.work().join("sources/chart");
    fs_err::create_dir_all(&place)?;
    let known = ["https://", "http://", "oci://"].iter().any(|scheme| wanted.url.starts_with(scheme));
    if !known || wanted.chart.starts_with('-') || wanted.version.is_some_and(|v| v.starts_with('-')) {
        let text = format!("`{}` is no repository of charts: it starts with https:// or oci://", wanted.url);
        return Err(StepFailure::new("source_failed", text));
    }
    run.say(Some(step), &format!("fetching chart {} of {}", wanted.chart, wanted.url));
    let destination = place.to_string_lossy().into_owned();
    let mut env = environment(run);
    let mut argv: Vec<String> = vec!["helm".into(), "pull".into()];
    if let Some(registry) = wanted.url.strip_prefix("oci://") {
        argv.push(format!("oci://{}/{}", registry.trim_end_matches('/'), wanted.chart));
        if is_loopback(registry) {
            argv.push("--plain-http".into());
        }
    } else {
        argv.extend([wanted.chart.to_owned(), "--repo".into(), wanted.url.to_owned()]);
    }
    if let Some(version) = wanted.version {
        argv.extend(["--version".into(), version.to_owned()]);
    }
    argv.extend(["--destination".into(), destination]);
    if let Some(login) = wanted.credentials {
        // In a file of its own: what stands in an argument, everyone on the host can read.
        let file = registry_config(run, wanted.url, login)?;
        if wanted.url.starts_with("oci://") {
            argv.extend(["--registry-config".into(), file.to_string_lossy().into_owned()]);
        } else {
            let file = repository_config(run, wanted.url, login)?;
            env.insert("HELM_REPOSITORY_CONFIG".into(), file.to_string_lossy().into_owned());
            argv.retain(|word| word != "--repo" && word != wanted.url);
            argv[2] = format!("source/{}", wanted.chart);
            tool::run(run, step, &place, env.clone(), &["helm", "repo", "update", "source"]).await?;
        }
    }
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    tool::run(run, step, &place, env, &argv).await?;
    packed(&place)
}

fn is_loopback(registry: &str) -> bool {
    let host = registry.split(['/', ':']).next().unwrap_or_default();
    host == "localhost" || host.starts_with("127.")
}

fn registry_config(run: &Run<'_>, url: &str, login: &Credentials) -> Result<PathBuf, StepFailure> {
    use base64::Engine as _;
    let host = url.trim_start_matches("oci://").split('/').next().unwrap_or_default();
    let pair = format!("{}:{}", login.username, login.password);
    let auth = base64::engine::general_purpose::STANDARD.encode(pair);
    let text = serde_json::json!({ "auths": { host: { "auth": auth } } }).to_string();
    private(run, "helm-registry.json", &text)
}

fn repository_config(run: &Run<'_>, url: &str, login: &Credentials) -> Result<PathBuf, StepFailure> {
    // JSON is YAML.
    let entry = serde_json::json!({
        "name": "source", "url": url, "username": login.username, "password": login.password,
        "pass_credentials_all": false,
    });
    let text = serde_json::json!({ "apiVersion": "", "generated": "2020-01-01T00:00:00Z", "repositories": [entry] });
    private(run, "helm-repositories.yaml", &text.to_string())
}

fn private(run: &Run<'_>, name: &str, text: &str) -> Result<PathBuf, StepFailure> {
    let file = run.host.dir.work().join("tmp").join(name);
    tool::private(&file, text)?;
    Ok(file)
}

/// The one packed chart of a directory.
fn packed(place: &Path) -> Result<PathBuf, StepFailure> {
    let files = fs_err::read_dir(place)?.flatten().map(|entry| entry.path());
    let charts: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "tgz")).collect();
    match charts.as_slice() {
        [one] => Ok(one.clone()),
        _ => Err(StepFailure::new("build_failed", "helm made no chart")),
    }
}

/// Packs a chart directory, with the dependencies that it names. Helm's own archive holds times, so the chart is packed by us.
pub(super) async fn package(run: &mut Run<'_>, step: usize, dir: &Path, place: &Path) -> Result<Built, StepFailure> {
    let file = source::file_inside(dir, "Chart.yaml")
        .map_err(|why| StepFailure::new("build_failed", format!("Chart.yaml {why}")))?;
    let mut text = String::new();
    fs_err::File::open(file)?.take(CHART_YAML_BYTES).read_to_string(&mut text)?;
    let chart = parse(&text).map_err(|e| StepFailure::new("build_failed", format!("Chart.yaml: {e}")))?;
    let name = chart.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') || chart.get("version").is_none() {
        return Err(StepFailure::new("build_failed", "Chart.yaml must name the chart and its version"));
    }
    if chart.get("dependencies").and_then(Value::as_array).is_some_and(|all| !all.is_empty()) {
        tool::need("helm", "a chart with dependencies")?;
        let env = environment(run);
        // What the lock file says, where there is one.
        let verb = if dir.join("Chart.lock").exists() { "build" } else { "update" };
        run.say(Some(step), &format!("helm dependency {verb}"));
        tool::run(run, step, dir, env, &["helm", "dependency", verb, "."]).await?;
    }
    if let Some(link) = first_link(dir)? {
        let text = format!(
            "the chart holds the link `{}`, which helm takes for an empty file: put the file itself there",
            link.display()
        );
        return Err(StepFailure::new("build_failed", text));
    }
    // An archive of a chart has one directory, named as the chart.
    let root = place.join("chart");
    fs_err::create_dir_all(&root)?;
    fs_err::rename(dir, root.join(&name))?;
    match pack::directory(run, step, &root, place, pack::Kind::HelmChart).await? {
        Built::File { file, kind } => {
            let named = file.with_file_name("chart.tgz");
            fs_err::rename(&file, &named)?;
            Ok(Built::File { file: named, kind })
        }
        other => Ok(other),
    }
}

/// A symbolic link somewhere in a directory.
fn first_link(dir: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut left = vec![dir.to_owned()];
    while let Some(place) = left.pop() {
        for entry in fs_err::read_dir(&place)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_symlink() => {
                    return Ok(Some(entry.path().strip_prefix(dir).map_or_else(|_| entry.path(), Path::to_owned)));
                }
                kind if kind.is_dir() && entry.file_name() != ".git" => left.push(entry.path()),
                _ => {}
            }
        }
    }
    Ok(None)
}

fn parse(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str::<Value>(text).map_err(|e| e.to_string())
}

/// `Chart.yaml` of a packed chart, as JSON: the config of its artifact.
pub(super) fn metadata(file: &Path) -> Result<Value, String> {
    let text = |e: std::io::Error| e.to_string();
    let gzip = flate2::read::GzDecoder::new(fs_err::File::open(file).map_err(text)?);
    let mut archive = tar::Archive::new(gzip.take(1 << 30));
    for entry in archive.entries().map_err(text)? {
        let entry = entry.map_err(text)?;
        let path = entry.path().map_err(text)?.into_owned();
        if path.components().count() == 2 && path.ends_with("Chart.yaml") {
            let mut yaml = String::new();
            entry.take(CHART_YAML_BYTES).read_to_string(&mut yaml).map_err(text)?;
            return parse(&yaml);
        }
    }
    Err("the archive holds no Chart.yaml".into())
}
