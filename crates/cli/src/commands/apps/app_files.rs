//! Commands that work on an app's directory: first files, validation, sync, graph, differences.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use api::client::Client;
use api::control::{CreateApp, SyncedApp};
use config::{AppConfig, Diagnostic, Graph, Loaded, Options, Severity, Sources, Tree};
use serde_json::{Value, json};

use crate::args::{AppDir, Global, GraphFormat, SyncApp};
use crate::commands::{apps::modules, apps::policies, registry::builds};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, bytes};
use crate::progress::Progress;
use crate::{app_dir, archive};

/// How often a watched directory is looked at.
const LOOK: Duration = Duration::from_millis(300);

pub(crate) fn init(out: &Output, dir: &Path) -> Result<()> {
    let whole = std::path::absolute(dir)?;
    let name = whole.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    model::name::check(&name).map_err(|e| CliError::usage(format!("the directory's name is the app's name: {e}")))?;
    if fs_err::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(CliError::new(Exit::Conflict, format!("{} is not empty", dir.display()))
            .hint("name a directory that does not exist yet"));
    }
    let tree = config::starter(&name);
    for (path, contents) in &tree.files {
        let file = dir.join(path);
        if let Some(parent) = file.parent() {
            fs_err::create_dir_all(parent)?;
        }
        fs_err::write(file, contents)?;
    }
    if out.json {
        return Ok(out.json(&json!({ "app": name, "files": tree.files.keys().collect::<Vec<_>>() }))?);
    }
    for path in tree.files.keys() {
        out.line(dir.join(path).display().to_string())?;
    }
    out.success(&format!("app `{name}` is written"));
    let dir = dir.display();
    out.hint(&format!("run `ferry apps validate {dir}` to check it, `ferry apps sync {dir}` to sync it"));
    Ok(())
}

/// An app's directory, read.
struct Read {
    tree: Tree,
    loaded: Loaded,
}

/// Reads a directory. Without `complete`, remote files that can't be had are only missed, not an error.
async fn read(out: &Output, args: &AppDir, complete: bool) -> Result<Read> {
    let mut tree = app_dir::read(&args.dir)?;
    let mut progress = Progress::new(out);
    if out.stderr_terminal && !config::wanted(&tree).is_empty() {
        progress.set("fetching remote files");
    }
    let complete = complete || args.strict || args.update_lock;
    let fetched = app_dir::fetch(&args.dir, &mut tree, args.update_lock).await?;
    progress.clear();
    if let Some(failure) = fetched.failures.into_iter().next().filter(|_| complete) {
        return Err(failure);
    }
    let mut loaded = config::load(&tree, Options { strict: args.strict, complete });
    policies::diagnose(&tree, &mut loaded);
    modules::diagnose(&args.dir, &tree, &mut loaded);
    Ok(Read { tree, loaded })
}

fn counts(diagnostics: &[Diagnostic]) -> (usize, usize) {
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    (errors, diagnostics.len() - errors)
}

fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Draws all problems, and says how many there are.
fn report(out: &Output, read: &Read) {
    for found in &read.loaded.diagnostics {
        let mut text = config::draw(found, &read.tree, out.color_stderr);
        text.push_str("\n\n");
        out.stderr_bytes(text.as_bytes());
    }
    let (errors, warnings) = counts(&read.loaded.diagnostics);
    let warned = if warnings > 0 { format!(", {}", number(warnings, "warning")) } else { String::new() };
    if errors > 0 {
        out.failure(&format!("{}{warned}", number(errors, "error")));
        if let Some(first) = read.loaded.diagnostics.iter().find(|d| d.severity == Severity::Error) {
            out.hint(&format!("see docs/errors/{}.md about `{0}`", first.code.as_str()));
        }
    }
}

pub(crate) async fn validate(out: &Output, args: &AppDir) -> Result<u8> {
    let read = read(out, args, false).await?;
    let (errors, warnings) = counts(&read.loaded.diagnostics);
    if out.json {
        out.json(&json!({ "ok": errors == 0, "diagnostics": read.loaded.diagnostics }))?;
    } else {
        report(out, &read);
        if errors == 0 {
            let warned = if warnings > 0 { format!(" with {}", number(warnings, "warning")) } else { String::new() };
            out.success(&format!("app `{}` is valid{warned}: {}", read.tree.name, summary(&read.loaded)));
        }
    }
    Ok(u8::from(errors > 0))
}

fn summary(loaded: &Loaded) -> String {
    let Some(config) = &loaded.config else { return String::new() };
    let counts = [
        (config.components.len(), "component"),
        (config.actions.len(), "action"),
        (config.inputs.len(), "input"),
        (config.secrets.len(), "secret"),
        (config.runbooks.len(), "runbook"),
    ];
    counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| number(*n, what)).collect::<Vec<_>>().join(", ")
}

/// An app's directory without errors.
pub(crate) struct App {
    pub(crate) tree: Tree,
    pub(crate) config: AppConfig,
    pub(crate) sources: Sources,
}

/// The app of a directory that has no errors; otherwise they are shown.
pub(crate) async fn valid(out: &Output, args: &AppDir, complete: bool) -> Result<std::result::Result<App, u8>> {
    let read = read(out, args, complete).await?;
    match read.loaded.config.clone() {
        Some(config) => {
            if !out.json {
                report(out, &read);
            }
            Ok(Ok(App { tree: read.tree, config, sources: read.loaded.sources }))
        }
        None => {
            if out.json {
                out.json(&json!({ "ok": false, "diagnostics": read.loaded.diagnostics }))?;
            } else {
                report(out, &read);
            }
            Ok(Err(1))
        }
    }
}

pub(crate) async fn graph(out: &Output, args: &AppDir, format: GraphFormat) -> Result<u8> {
    let App { config, .. } = match valid(out, args, false).await? {
        Ok(read) => read,
        Err(code) => return Ok(code),
    };
    let graph = Graph::new(&config)
        .map_err(|circle| CliError::failed(format!("components wait for each other: {}", circle.join(" → "))))?;
    match format {
        GraphFormat::Json => out.json(&graph)?,
        _ if out.json => out.json(&graph)?,
        GraphFormat::Text => out.stdout_bytes(graph.text().as_bytes())?,
        GraphFormat::Dot => out.stdout_bytes(graph.dot().as_bytes())?,
        GraphFormat::Mermaid => out.stdout_bytes(graph.mermaid().as_bytes())?,
    }
    Ok(0)
}

/// Packs the app's local sources; uploads those that the server does not have, unless this is only a plan.
async fn upload(
    client: &Client,
    out: &Output,
    dir: &Path,
    config: &AppConfig,
    plan: bool,
) -> Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for source in config::local_sources(config) {
        if digests.contains_key(&source.directory) {
            continue;
        }
        let (digest, tar) = archive::pack(&dir.join(&source.directory))?;
        if !plan && client.archive(&digest).await.is_err() {
            let mut progress = Progress::new(out);
            if out.stderr_terminal {
                progress.set(&format!("uploading `{}` ({})", source.directory, bytes(tar.len() as u64)));
            }
            client.put_archive(&digest, tar.into()).await?;
        }
        digests.insert(source.directory, digest.to_string());
    }
    Ok(digests)
}

/// What a sync came to.
enum Synced {
    /// The app is not there yet, and this was only a plan.
    New(Vec<config::Change>),
    /// By the name of the app.
    Done(String, Box<SyncedApp>),
}

/// Syncs a directory once.
async fn sync_once(client: &Client, out: &Output, args: &SyncApp) -> Result<std::result::Result<Synced, u8>> {
    let App { tree, config, .. } = match valid(out, &args.dir, true).await? {
        Ok(read) => read,
        Err(code) => return Ok(Err(code)),
    };
    let app = args.app.clone().unwrap_or_else(|| tree.name.clone());
    let is_new = match client.app(&app).await {
        Ok(_) => false,
        Err(error) if error.status() == Some(404) => true,
        Err(error) => return Err(error.into()),
    };
    if is_new && args.plan {
        return Ok(Ok(Synced::New(config::diff(&AppConfig::default(), &config))));
    }
    // First what can fail: an app is created when its files are there.
    let local_sources = upload(client, out, &args.dir.dir, &config, args.plan).await?;
    if is_new {
        let (display_name, description) =
            config.metadata.as_ref().map_or((None, None), |m| (m.display_name.clone(), m.description.clone()));
        let new = CreateApp {
            name: app.clone(),
            display_name: display_name.unwrap_or_default(),
            description: description.unwrap_or_default(),
        };
        client.create_app(&new).await?;
        if !out.json {
            out.note(&format!("app `{app}` is created"));
        }
    }
    let request = api::control::SyncApp {
        config: serde_json::to_value(&config).map_err(|e| CliError::failed(e.to_string()))?,
        local_sources,
        cli_version: env!("CARGO_PKG_VERSION").into(),
        plan_only: args.plan,
    };
    let synced = match client.sync_app(&app, &request).await {
        Ok(synced) => synced,
        Err(error) => {
            // Refused for good: no empty app is left. After any other error the sync may have happened.
            if is_new && matches!(error.status(), Some(400 | 413 | 422)) && client.delete_app(&app).await.is_ok() {
                out.note(&format!("app `{app}` was not synced and is deleted again"));
            }
            return Err(error.into());
        }
    };
    Ok(Ok(Synced::Done(app, Box::new(synced))))
}

pub(crate) async fn sync(global: &Global, out: &Output, args: &SyncApp) -> Result<u8> {
    let client = crate::commands::connect(global).await?;
    if args.watch {
        return watch(&client, out, args).await;
    }
    match sync_once(&client, out, args).await? {
        Err(code) => Ok(code),
        Ok(synced) => finish(&client, out, args, synced).await,
    }
}

/// Shows what a sync came to, and waits for its builds.
async fn finish(client: &Client, out: &Output, args: &SyncApp, synced: Synced) -> Result<u8> {
    let Synced::Done(app, mut done) = synced else {
        show_synced(out, args, &synced)?;
        return Ok(0);
    };
    if args.plan || args.no_wait {
        let open: Vec<String> =
            done.builds.iter().filter(|b| !builds::ended(b)).map(|b| b.component_name.clone()).collect();
        show_synced(out, args, &Synced::Done(app, done))?;
        if !open.is_empty() && !out.json {
            out.note(&format!("building {}; run `ferry builds list` to see the status", open.join(", ")));
        }
        return Ok(0);
    }
    if out.json {
        let (code, builds) = builds::wait(client, out, &done.builds).await?;
        done.builds = builds;
        show_synced(out, args, &Synced::Done(app, done))?;
        return Ok(code);
    }
    let planned = done.builds.clone();
    show_synced(out, args, &Synced::Done(app, done))?;
    Ok(builds::wait(client, out, &planned).await?.0)
}

fn show_synced(out: &Output, args: &SyncApp, synced: &Synced) -> Result<()> {
    let (app, synced) = match synced {
        Synced::Done(app, synced) => (app, synced),
        Synced::New(changes) => {
            let changes: Vec<Value> = changes.iter().filter_map(|c| serde_json::to_value(c).ok()).collect();
            if out.json {
                return Ok(out.json(&json!({ "unchanged": false, "changes": changes }))?);
            }
            show_changes(out, &changes)?;
            out.note("the app does not exist yet; this would be its first version");
            return Ok(());
        }
    };
    if out.json {
        return Ok(out.json(synced)?);
    }
    show_changes(out, &synced.changes)?;
    for removed in &synced.removed {
        out.warn(&format!("{} `{}` is still in the app, but in no file any more", removed.kind, removed.name));
        if !args.plan {
            out.hint(&format!("run `ferry apps retire {app} {} --yes` to retire it", removed.name));
        }
    }
    let version = synced.config.version;
    match (args.plan, synced.unchanged) {
        (_, true) => out.success(&format!("nothing changed: version {version} is active")),
        (true, false) if version == 0 => out.note("this would be the first version"),
        (true, false) => out.note(&format!("version {version} is active; this would be the next one")),
        (false, false) => out.success(&format!("version {version} is active")),
    }
    Ok(())
}

/// What changed, a line for each thing and one for each of its fields.
pub(crate) fn show_changes(out: &Output, changes: &[Value]) -> Result<()> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for change in changes {
        let (part, name, kind) = (text(change, "part"), text(change, "name"), text(change, "kind"));
        let sign = match kind.as_str() {
            "added" => '+',
            "removed" => '-',
            _ => '~',
        };
        let name = if name.is_empty() { part } else { format!("{part} {name}") };
        out.change(sign, &name)?;
        for field in change.get("fields").and_then(Value::as_array).into_iter().flatten() {
            let side = |key: &str| field.get(key).and_then(Value::as_str);
            let path = text(field, "path");
            let (old, new) = brief(side("old"), side("new"));
            match (old, new) {
                (Some(old), Some(new)) => out.change('~', &format!("  {path}: {old} → {new}"))?,
                (Some(old), None) => out.change('-', &format!("  {path}: {old}"))?,
                (None, Some(new)) => out.change('+', &format!("  {path}: {new}"))?,
                (None, None) => out.change('~', &format!("  {path}"))?,
            }
        }
    }
    Ok(())
}

/// The first line of two values that is not the same, cut where it is long.
fn brief(old: Option<&str>, new: Option<&str>) -> (Option<String>, Option<String>) {
    let line = |value: &str, n: usize| value.lines().nth(n).unwrap_or_default().to_owned();
    let differs = |n: &usize| old.map(|v| line(v, *n)) != new.map(|v| line(v, *n));
    let lines = old.into_iter().chain(new).map(|v| v.lines().count()).max().unwrap_or_default();
    let first = (0..lines).find(differs).unwrap_or_default();
    let cut = |value: &str| {
        let line = line(value, first);
        let cut: String = line.chars().take(60).collect();
        let (before, after) = (
            if first > 0 { "…" } else { "" },
            if cut.len() < line.len() || value.lines().count() > first + 1 { "…" } else { "" },
        );
        format!("\"{before}{cut}{after}\"")
    };
    (old.map(cut), new.map(cut))
}

/// Shows what a directory would change.
pub(crate) async fn diff_directory(global: &Global, out: &Output, dir: &Path, app: Option<String>) -> Result<u8> {
    let dir = AppDir { dir: dir.to_owned(), strict: false, update_lock: false };
    sync(global, out, &SyncApp { dir, app, plan: true, no_wait: true, watch: false }).await
}

/// Syncs on every save, until it is interrupted.
async fn watch(client: &Client, out: &Output, args: &SyncApp) -> Result<u8> {
    let mut seen = None;
    loop {
        let now = times(&args.dir.dir);
        if seen.as_ref() != Some(&now) {
            seen = Some(now);
            match sync_once(client, out, args).await {
                Ok(Ok(synced)) => {
                    finish(client, out, args, synced).await?;
                }
                Ok(Err(_)) => {}
                // A server that is away, or a file that is half written, is no reason to stop.
                Err(error) => out.error(&error),
            }
            if !out.json {
                out.note("waiting for changes; press Ctrl-C to stop");
            }
        }
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(0),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// When each file was changed.
fn times(dir: &Path) -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
    let mut times = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs_err::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                if !app_dir::SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                    left.push(entry.path());
                }
            } else if entry.file_name() != app_dir::LOCK
                && let Ok(metadata) = fs_err::metadata(entry.path())
            {
                times.insert(entry.path(), (metadata.modified().ok(), metadata.len()));
            }
        }
    }
    times
}
