//! Logins that the host keeps for docker and its relatives: in `config.json`, or with a helper.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine as _;
use fs_err as fs;
use model::build::Credentials;
use serde_json::Value;

/// A helper that does not answer has no login.
const HELPER: std::time::Duration = std::time::Duration::from_secs(30);

/// The login for a registry, where the host has one, looked up beside whatever else goes on.
pub async fn stored(host: &str) -> Option<Credentials> {
    let host = host.to_owned();
    let found = tokio::task::spawn_blocking(move || look_up(&host));
    tokio::time::timeout(HELPER, found).await.ok()?.ok()?
}

/// The login for a registry, where the host has one. The file is `$REGISTRY_AUTH_FILE`, `$DOCKER_CONFIG/config.json` or
/// `~/.docker/config.json`; a helper (`credHelpers`, `credsStore`) is asked as docker asks it.
fn look_up(host: &str) -> Option<Credentials> {
    let text = fs::read_to_string(file()?).ok()?;
    let config: Value = serde_json::from_str(&text).ok()?;
    let names: Vec<&str> = match host {
        "registry-1.docker.io" => vec!["https://index.docker.io/v1/", "docker.io", "index.docker.io"],
        host => vec![host],
    };
    for name in names {
        let helper = config.pointer(&format!("/credHelpers/{}", name.replace('~', "~0").replace('/', "~1")));
        let helper = helper.or_else(|| config.get("credsStore")).and_then(Value::as_str);
        let found = helper.and_then(|helper| ask(helper, name)).or_else(|| written(config.get("auths")?, name));
        if found.is_some() {
            return found;
        }
    }
    None
}

fn file() -> Option<PathBuf> {
    if let Some(file) = std::env::var_os("REGISTRY_AUTH_FILE") {
        return Some(file.into());
    }
    if let Some(dir) = std::env::var_os("DOCKER_CONFIG") {
        return Some(PathBuf::from(dir).join("config.json"));
    }
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker/config.json"))
}

fn written(auths: &Value, name: &str) -> Option<Credentials> {
    let entry = auths.get(name).or_else(|| auths.get(format!("https://{name}")))?;
    let pair = base64::engine::general_purpose::STANDARD.decode(entry.get("auth")?.as_str()?).ok()?;
    let pair = String::from_utf8(pair).ok()?;
    let (username, password) = pair.split_once(':')?;
    Some(Credentials { username: username.to_owned(), password: password.to_owned() })
}

/// `docker-credential-NAME get`, with the registry on its standard input.
fn ask(helper: &str, name: &str) -> Option<Credentials> {
    if helper.is_empty() || !helper.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return None;
    }
    let mut child = Command::new(format!("docker-credential-{helper}"))
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(name.as_bytes()).ok()?;
    let answer = child.wait_with_output().ok().filter(|output| output.status.success())?;
    let answer: Value = serde_json::from_slice(&answer.stdout).ok()?;
    let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Credentials { username: text("Username")?, password: text("Secret")? })
}
