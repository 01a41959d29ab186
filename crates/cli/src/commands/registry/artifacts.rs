//! Artifacts: look at them, bring them here, have an install copy them; and the logins that go with them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use api::client::Client;
use api::control::{Build, CreateSourceLogin, SyncArtifact};
use base64::Engine as _;
use futures::StreamExt as _;
use model::{BuildId, Digest, Timestamp};
use serde_json::{Value, json};

use crate::args::{Artifacts, Global, Registry, Sources};
use crate::commands::{Kind, connect, explain, ids, is_brief, registry::builds, target};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, bytes, cell, dim, id, strong};
use crate::progress::Progress;
use crate::watch::{Log, Watched, job_exit, watch};

pub(crate) async fn run(client: &Client, out: &Output, command: Artifacts) -> Result<u8> {
    match command {
        Artifacts::List { of, limit } => {
            let mut found = builds::list(client, &of, limit.fetch()).await?;
            let more = limit.cut(&mut found);
            found.retain(|build| build.artifact.is_some() && !build.no_op);
            let headers = ["COMPONENT", "BUILD", "DIGEST", "?SIZE", "?TYPE", "?CREATED"];
            out.list(&found, "no artifacts yet; run `ferry apps sync DIR` to build an app", &headers, |build| {
                let artifact = build.artifact.clone().unwrap_or_default();
                let kind = if artifact.artifact_type.is_empty() { artifact.media_type } else { artifact.artifact_type };
                vec![
                    strong(&build.component_name),
                    id(&build.stamp.id),
                    id(&artifact.digest),
                    cell(bytes(artifact.size)),
                    dim(kind),
                    dim(out.time(build.stamp.created_at)),
                ]
            })?;
            out.more(more);
            Ok(0)
        }
        Artifacts::Inspect { what, app } => inspect(client, out, &build(client, app.as_deref(), &what).await?).await,
        Artifacts::Pull { what, dir, app } => {
            pull(client, out, &build(client, app.as_deref(), &what).await?, &dir).await
        }
        Artifacts::Sync { what, install, to, plain_http } => sync(client, out, &what, &install, to, plain_http).await,
    }
}

/// A build by its id, or the newest good one of a component.
async fn build(client: &Client, app: Option<&str>, what: &str) -> Result<Build> {
    let build = if BuildId::parse(what).is_ok() || is_brief(what) {
        builds::one(client, what).await?
    } else {
        let component = builds::find(client, app, what).await?;
        client.current_build(&component.stamp.id).await?
    };
    match &build.artifact {
        Some(_) => Ok(build),
        None => {
            Err(CliError::new(Exit::NotFound, format!("build {what} has no artifact: {}", build.status_description)))
        }
    }
}

/// The path of the build's repository, without the registry's host.
fn repository(build: &Build) -> String {
    let Some(artifact) = &build.artifact else { return String::new() };
    let org = build.stamp.org_id.as_str();
    artifact.repository.find(org).map_or_else(|| artifact.repository.clone(), |at| artifact.repository[at..].to_owned())
}

async fn inspect(client: &Client, out: &Output, build: &Build) -> Result<u8> {
    let artifact = build.artifact.clone().unwrap_or_default();
    let manifest = manifest(client, build, &artifact.digest).await?;
    if out.json {
        out.json(&json!({ "build": build, "manifest": manifest }))?;
        return Ok(0);
    }
    out.pairs(vec![
        ("component", strong(&build.component_name)),
        ("build", cell(&build.stamp.id)),
        ("ref", cell(builds::whole(client, build, &artifact.reference))),
        ("media type", cell(&artifact.media_type)),
        ("artifact type", cell(&artifact.artifact_type)),
        ("size", cell(bytes(artifact.size))),
    ])?;
    let parts: Vec<&Value> = [manifest.get("config").map(std::slice::from_ref), None]
        .into_iter()
        .flatten()
        .chain([list(&manifest, "layers"), list(&manifest, "manifests")])
        .flatten()
        .collect();
    out.heading("Parts")?;
    let text = |part: &Value, key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let platform = |part: &Value| {
        part.get("platform").map(|p| format!("{}/{}", text(p, "os"), text(p, "architecture"))).unwrap_or_default()
    };
    let rows = parts.iter().map(|part| {
        let size = part.get("size").and_then(Value::as_u64).unwrap_or_default();
        vec![id(text(part, "digest")), cell(bytes(size)), cell(text(part, "mediaType")), cell(platform(part))]
    });
    out.table(&["DIGEST", "SIZE", "?TYPE", "?PLATFORM"], rows.collect())?;
    Ok(0)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A manifest whose bytes are what its digest says.
async fn raw_manifest(client: &Client, build: &Build, digest: &str) -> Result<Vec<u8>> {
    let found = client.manifest(&repository(build), digest).await?;
    if Digest::of(&found).as_str() != digest {
        return Err(CliError::failed(format!("the registry's manifest does not match its digest {digest}")));
    }
    Ok(found.to_vec())
}

async fn manifest(client: &Client, build: &Build, digest: &str) -> Result<Value> {
    let found = raw_manifest(client, build, digest).await?;
    serde_json::from_slice(&found).map_err(|e| CliError::failed(format!("the manifest can't be read: {e}")))
}

/// Writes an OCI layout: what every tool for images can read.
async fn pull(client: &Client, out: &Output, build: &Build, dir: &Path) -> Result<u8> {
    if dir.exists() {
        return Err(CliError::new(Exit::Conflict, format!("{} exists already", dir.display()))
            .hint("name a directory that does not exist yet"));
    }
    let artifact = build.artifact.clone().unwrap_or_default();
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unfinished = dir.with_file_name(format!("{name}.unfinished-{}", std::process::id()));
    let blobs = unfinished.join("blobs/sha256");
    fs_err::create_dir_all(&blobs)?;
    let mut progress = Progress::new(out);
    let mut left = vec![(artifact.digest.clone(), true)];
    let mut size = 0;
    while let Some((digest, is_manifest)) = left.pop() {
        let parsed =
            Digest::parse(&digest).map_err(|e| CliError::failed(format!("a manifest names `{digest}`: {e}")))?;
        let file = blobs.join(parsed.hex());
        if file.exists() {
            continue;
        }
        if is_manifest {
            let found = raw_manifest(client, build, &digest).await?;
            let value: Value = serde_json::from_slice(&found)
                .map_err(|e| CliError::failed(format!("the manifest can't be read: {e}")))?;
            // What lies elsewhere is not ours to bring.
            let here = |part: &Value| part.get("urls").and_then(Value::as_array).is_none_or(Vec::is_empty);
            let named =
                |part: &Value| part.get("digest").filter(|_| here(part)).and_then(Value::as_str).map(str::to_owned);
            left.extend(list(&value, "manifests").iter().filter_map(named).map(|d| (d, true)));
            left.extend(list(&value, "layers").iter().chain(value.get("config")).filter_map(named).map(|d| (d, false)));
            size += found.len() as u64;
            fs_err::write(&file, found)?;
        } else {
            if out.stderr_terminal {
                progress.set(&format!("fetching {digest} ({} so far)", bytes(size)));
            }
            size += blob(client, build, &digest, &file).await?;
        }
    }
    progress.clear();
    fs_err::write(unfinished.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}")?;
    let root = fs_err::metadata(blobs.join(artifact.digest.trim_start_matches("sha256:")))?.len();
    let index = json!({ "schemaVersion": 2, "manifests": [{
        "mediaType": artifact.media_type, "digest": artifact.digest, "size": root,
        "annotations": { "org.opencontainers.image.ref.name": artifact.tag },
    }] });
    fs_err::write(unfinished.join("index.json"), index.to_string())?;
    fs_err::rename(&unfinished, dir)?;
    if out.json {
        out.json(&json!({ "digest": artifact.digest, "dir": dir, "size": size }))?;
    } else {
        out.success(&format!("{} is in {} ({})", artifact.digest, dir.display(), bytes(size)));
    }
    Ok(0)
}

/// Brings one blob into a file, checked as it comes.
async fn blob(client: &Client, build: &Build, digest: &str, file: &Path) -> Result<u64> {
    let mut hasher = model::digest::Hasher::default();
    let unfinished = file.with_extension("part");
    let mut to = fs_err::File::create(&unfinished)?;
    let (mut pieces, mut size) = (client.blob(&repository(build), digest).await?, 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        hasher.update(&piece);
        to.write_all(&piece)?;
        size += piece.len() as u64;
    }
    if hasher.finish().as_str() != digest {
        return Err(CliError::failed(format!("the downloaded blob does not match its digest {digest}")));
    }
    fs_err::rename(unfinished, file)?;
    Ok(size)
}

async fn sync(
    client: &Client,
    out: &Output,
    what: &str,
    install: &str,
    to: Option<String>,
    plain_http: bool,
) -> Result<u8> {
    let what = ids::whole(client, what).await?;
    let is_build = BuildId::parse(&what).is_ok();
    let body = SyncArtifact {
        build_id: if is_build { what.clone() } else { String::new() },
        component: if is_build { String::new() } else { what },
        repository: to.unwrap_or_default(),
        plain_http,
    };
    let job = match client.sync_artifact(install, &body).await {
        Ok(job) => job,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    match watch(client, out, job, if out.json { Log::Await } else { Log::Show }).await? {
        Watched::Left => Ok(130),
        Watched::Ended(job) => {
            if out.json {
                out.json(&job)?;
            } else if let Some(image) = job.outputs.get("image").and_then(|i| i.get("ref")).and_then(Value::as_str) {
                out.success(&format!("{image} is available to the install"));
            } else {
                out.failure(&job.status_description);
            }
            Ok(job_exit(&job))
        }
    }
}

/// Where docker and its relatives keep their logins.
fn auth_file() -> Result<PathBuf> {
    if let Some(file) = std::env::var_os("REGISTRY_AUTH_FILE") {
        return Ok(file.into());
    }
    if let Some(dir) = std::env::var_os("DOCKER_CONFIG") {
        return Ok(PathBuf::from(dir).join("config.json"));
    }
    let home = std::env::var_os("HOME").ok_or_else(|| CliError::failed("HOME is not set"))?;
    Ok(PathBuf::from(home).join(".docker/config.json"))
}

pub(crate) async fn registry(global: &Global, out: &Output, command: Registry) -> Result<u8> {
    let target = target(global)?;
    let url = target.url()?.trim_end_matches('/').to_owned();
    let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest).to_owned();
    let plain = url.starts_with("http://");
    if matches!(command, Registry::Info) {
        let client = connect(global).await?;
        let org = client.current_org().await?;
        let prefix = format!("{host}/{}", org.id);
        if out.json {
            out.json(&json!({ "host": host, "prefix": prefix, "plain_http": plain }))?;
        } else {
            out.pairs(vec![
                ("host", strong(&host)),
                ("repositories", cell(format!("{prefix}/…"))),
                ("login", cell("any user name, with an API token as password; or run `ferry registry login`")),
            ])?;
            if plain {
                out.hint(
                    "this registry uses plain HTTP: pass `--tls-verify=false` to podman and skopeo, `--plain-http` to helm and oras",
                );
            }
        }
        return Ok(0);
    }
    let file = auth_file()?;
    let mut config: Value = match fs_err::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|e| CliError::failed(format!("{} can't be read: {e}", file.display())))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(error.into()),
    };
    if !config.is_object() {
        return Err(CliError::failed(format!("{} is not a docker config file", file.display())));
    }
    match command {
        Registry::Login => {
            // Says so now if the token is no good.
            connect(global).await?.current_org().await?;
            let pair = base64::engine::general_purpose::STANDARD.encode(format!("ferry:{}", target.token()?));
            if config.get("credsStore").is_some() {
                out.warn("this file sets `credsStore`, so docker does not use the login in it");
            }
            if !config.get("auths").is_some_and(Value::is_object) {
                config["auths"] = json!({});
            }
            config["auths"][&host] = json!({ "auth": pair });
        }
        Registry::Logout => {
            if let Some(auths) = config.get_mut("auths").and_then(Value::as_object_mut) {
                auths.remove(&host);
            }
        }
        Registry::Info => {}
    }
    write_private(&file, &serde_json::to_vec_pretty(&config).map_err(|e| CliError::failed(e.to_string()))?)?;
    if out.json {
        out.json(&json!({ "host": host, "file": file }))?;
    } else {
        let done = if matches!(command, Registry::Login) { "signed in to" } else { "signed out of" };
        out.success(&format!("{done} {host} (in {})", file.display()));
    }
    Ok(0)
}

/// In one go, and for nobody else's eyes.
fn write_private(file: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(dir) = file.parent() {
        fs_err::create_dir_all(dir)?;
    }
    let unfinished = file.with_extension("new");
    let _ = fs_err::remove_file(&unfinished);
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create_new(true);
    fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut to = options.open(&unfinished)?;
    to.write_all(bytes)?;
    to.sync_all()?;
    fs_err::rename(&unfinished, file)?;
    Ok(())
}

pub(crate) async fn sources(client: &Client, out: &Output, command: Sources) -> Result<u8> {
    match command {
        Sources::List => {
            let found = client.source_logins().await?;
            let nothing = "no logins; builds can read public sources only";
            out.list(&found, nothing, &["FOR", "USER", "EXPIRES", "?CREATED"], |login| {
                let expires = login.expires_at.map_or_else(|| dim("never"), |at| cell(out.time(at)));
                vec![strong(&login.prefix), cell(&login.username), expires, dim(out.time(login.created_at))]
            })?;
        }
        Sources::Login { prefix, username, expires_in } => {
            if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
                out.note("type the password or token, then Enter (it is shown while you type; pipe it in to hide it):");
            }
            let mut password = String::new();
            std::io::stdin().read_line(&mut password)?;
            let now = Timestamp::from_system(std::time::SystemTime::now());
            let body = CreateSourceLogin {
                prefix,
                username,
                password: password.trim_end_matches(['\r', '\n']).to_owned(),
                expires_at: expires_in
                    .map(|after| now.plus_s(i64::try_from(after.as_secs()).unwrap_or(i64::MAX / 2_000_000))),
            };
            let login = client.create_source_login(&body).await?;
            if out.json {
                out.json(&login)?;
            } else {
                out.success(&format!("builds sign in to {} as {}", login.prefix, login.username));
            }
        }
        Sources::Logout { prefix } => {
            client.delete_source_login(&prefix).await?;
            if out.json {
                out.json(&json!({ "ok": true }))?;
            } else {
                out.success(&format!("deleted the login for {prefix}"));
            }
        }
    }
    Ok(0)
}
