//! The exact version of Terraform or OpenTofu: from PATH, or from a cache that is filled once, checked by its checksum.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use model::terraform::Program;
use sha2::Digest as _;

use super::super::action::StepFailure;
use super::super::{Run, tool};
use crate::net;

const LATEST: &str = "latest";
const FETCH: Duration = Duration::from_secs(600);
const ARCHIVE_BYTES_MAX: u64 = 512 << 20;

/// Where a cache of ours is.
pub(super) fn cache(run: &Run<'_>) -> PathBuf {
    run.context.state_dir.join("cache")
}

/// The program to run.
pub(super) async fn find(run: &Run<'_>, step: usize, program: Program, version: &str) -> Result<PathBuf, StepFailure> {
    let command = program.command();
    let on_path = tool::find(command);
    let mut there = String::new();
    if let Some(path) = &on_path {
        if version == LATEST {
            return Ok(path.clone());
        }
        there = version_of(run, path).await?;
        if there == version {
            return Ok(path.clone());
        }
    }
    if version == LATEST {
        let text =
            format!("`{command}` is not on the runner's PATH: put it there, or name a version instead of `latest`");
        return Err(StepFailure::new("tool_missing", text));
    }
    let cached = cache(run).join(format!("{command}/{version}/{command}"));
    if cached.exists() {
        return Ok(cached);
    }
    let has = if there.is_empty() { "it has none".to_owned() } else { format!("it has {there}") };
    let Some(mirror) = &run.context.tools.terraform_mirror else {
        let text = format!(
            "{command} {version} is not on the runner's PATH ({has}): put it there, or name a place to fetch it from with --terraform-mirror"
        );
        return Err(StepFailure::new("tool_missing", text));
    };
    run.say(Some(step), &format!("fetching {command} {version} from {mirror}"));
    fetch(run, mirror, command, version, &cached)
        .await
        .map_err(|e| StepFailure::new("tool_missing", format!("{command} {version} can't be fetched: {e}; {has}")))?;
    Ok(cached)
}

/// Asked once for each file: its size and its times tell whether it is the same.
async fn version_of(run: &Run<'_>, program: &Path) -> Result<String, StepFailure> {
    let meta = fs::metadata(program)?;
    let known = format!("{}|{}|{}|{}", program.display(), meta.len(), meta.mtime_nsec(), meta.mtime());
    let place = cache(run).join("versions").join(model::Digest::of(known.as_bytes()).hex());
    if let Ok(version) = fs::read_to_string(&place) {
        return Ok(version);
    }
    let asked = tokio::process::Command::new(program)
        .args(["version", "-json"])
        .env_clear()
        .env("CHECKPOINT_DISABLE", "1")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(60), asked).await;
    let output =
        output.map_err(|_| StepFailure::new("tool_missing", format!("{} does not answer", program.display())))??;
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let version = told.get("terraform_version").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    if version.is_empty() {
        return Err(StepFailure::new("tool_missing", format!("{} does not tell its version", program.display())));
    }
    // Worth a try: it saves a moment.
    let _ = fs::create_dir_all(cache(run).join("versions")).and_then(|()| fs::write(&place, &version));
    Ok(version)
}

/// Brings a version into the cache. Whoever comes at the same time waits for the lock, and finds it there.
async fn fetch(run: &Run<'_>, mirror: &str, command: &str, version: &str, to: &Path) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let dir = to.parent().ok_or("no place for it")?.to_owned();
    fs::create_dir_all(&dir).map_err(text)?;
    let lock = std::fs::File::create(dir.join("lock")).map_err(text)?;
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
    let _lock = lock.map_err(|e| e.to_string())?.map_err(text)?;
    if to.exists() {
        return Ok(());
    }
    let (os, arch) = ("linux", if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    let base = format!("{}/{command}/{version}/{command}_{version}", mirror.trim_end_matches('/'));
    let http = net::registry_client(mirror, run.context.ca_file.as_deref()).map_err(|e| net::chain(&e))?;
    let get = async |url: &str| -> Result<bytes::Bytes, String> {
        let answer = http.get(url).timeout(FETCH).send().await.map_err(|e| net::chain(&e))?;
        if !answer.status().is_success() {
            return Err(format!("{url} answers {}", answer.status()));
        }
        if answer.content_length().is_some_and(|length| length > ARCHIVE_BYTES_MAX) {
            return Err(format!("{url} is too large"));
        }
        answer.bytes().await.map_err(|e| net::chain(&e))
    };
    let sums = get(&format!("{base}_SHA256SUMS")).await?;
    let name = format!("{command}_{version}_{os}_{arch}.zip");
    let sums = String::from_utf8_lossy(&sums).into_owned();
    let wanted = sums.lines().find_map(|line| line.strip_suffix(name.as_str()).map(|sum| sum.trim().to_owned()));
    let wanted = wanted.ok_or_else(|| format!("the list of checksums does not name {name}"))?;
    let archive = get(&format!("{base}_{os}_{arch}.zip")).await?;
    if hex::encode(sha2::Sha256::digest(&archive)) != wanted {
        return Err(format!("{name} has another checksum than the list says"));
    }
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(archive)).map_err(|e| e.to_string())?;
    let mut program = Vec::new();
    zip.by_name(command).map_err(|e| e.to_string())?.take(ARCHIVE_BYTES_MAX).read_to_end(&mut program).map_err(text)?;
    let new = to.with_extension("new");
    fs::write(&new, program).map_err(text)?;
    fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).map_err(text)?;
    fs::rename(&new, to).map_err(text)
}
