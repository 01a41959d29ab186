//! How a person signs this CLI in: with the browser of this machine, or with a code in any browser.

use std::time::Duration;

use api::client::{Client, ClientError};
use api::control::CliTokens;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use model::Digest;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::error::{CliError, Exit, Result};
use crate::output::Output;

/// How long a person may take with the browser.
const PATIENCE: Duration = Duration::from_secs(300);
/// Lines of a request that are read.
const HEAD_LINES: usize = 100;

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether a browser can be opened here.
pub(super) fn has_browser() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

fn random() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| CliError::failed(format!("the system gives no randomness: {e}")))?;
    Ok(B64.encode(bytes))
}

fn challenge(verifier: &str) -> String {
    let hash = hex::decode(Digest::of(verifier.as_bytes()).hex()).unwrap_or_default();
    B64.encode(hash)
}

pub(super) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Signs in with the browser of this machine: it brings the code back to a port that only this machine reaches.
pub(super) async fn with_browser(client: &Client, out: &Output, open: bool) -> Result<CliTokens> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let (state, verifier) = (random()?, random()?);
    let url = format!(
        "{}/auth/cli?port={port}&state={state}&challenge={}&host={}",
        client.url(),
        challenge(&verifier),
        encoded(&host())
    );
    out.note(&format!("To sign in, open this link in the browser of this machine:\n\n  {url}\n"));
    if open {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let quiet = || std::process::Stdio::null();
        // Where that does not work, the person has the link.
        drop(tokio::process::Command::new(program).arg(&url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn());
    }
    let waited = tokio::time::timeout(PATIENCE, code_of(&listener, &state)).await;
    let code = waited.map_err(|_| {
        CliError::new(Exit::Denied, "nobody has answered in the browser")
            .hint("run `ferry auth login` again, or with --device")
    })??;
    Ok(client.take_cli_login(&code, &verifier).await?)
}

/// Waits for the browser. Whoever else asks gets nothing.
async fn code_of(listener: &TcpListener, state: &str) -> Result<String> {
    loop {
        let (stream, _) = listener.accept().await?;
        let answered = tokio::time::timeout(Duration::from_secs(5), answer(stream, state)).await;
        if let Ok(Ok(Some(code))) = answered {
            return Ok(code);
        }
    }
}

async fn answer(mut stream: TcpStream, state: &str) -> std::io::Result<Option<String>> {
    let (read, mut write) = stream.split();
    let mut lines = BufReader::new(read).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    for _ in 0..HEAD_LINES {
        if lines.next_line().await?.is_none_or(|line| line.is_empty()) {
            break;
        }
    }
    let target = first.strip_prefix("GET /?").and_then(|rest| rest.split_once(' ')).map_or("", |(query, _)| query);
    let field = |name: &str| {
        target.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    // Our codes and states have no character that is encoded.
    let code = field("code").filter(|_| field("state") == Some(state)).map(str::to_owned);
    let (status, text) = match code {
        Some(_) => ("200 OK", "The CLI is signed in. You can close this page."),
        None => ("404 Not Found", "This is not the answer that the CLI waits for."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Ferry</title><p>{text}</p>");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n\r\n",
        page.len()
    );
    write.write_all(format!("{head}{page}").as_bytes()).await?;
    write.shutdown().await?;
    Ok(code)
}

/// Signs in with a code that the person types in any browser.
pub(super) async fn with_code(client: &Client, out: &Output) -> Result<CliTokens> {
    let started = client.begin_device_login(&host()).await?;
    out.note(&format!(
        "To sign in, open {} in any browser and type this code:\n\n  {}\n",
        started.verification_uri, started.user_code
    ));
    let until = Instant::now() + Duration::from_secs(started.expires_in);
    let mut interval = Duration::from_secs(started.interval.clamp(1, 60));
    while Instant::now() < until {
        tokio::time::sleep(interval).await;
        match client.poll_device_login(&started.device_code).await {
            Ok(tokens) => return Ok(tokens),
            Err(ClientError::Api { body, .. }) if body.error == "authorization_pending" => {}
            Err(ClientError::Api { body, .. }) if body.error == "slow_down" => interval += Duration::from_secs(5),
            Err(ClientError::Api { body, .. }) if body.error == "access_denied" => {
                return Err(CliError::new(Exit::Denied, "the sign-in was refused in the browser"));
            }
            Err(ClientError::Api { body, .. }) if body.error == "expired_token" => break,
            // The control plane may be away for a moment.
            Err(error) if error.is_transient() => interval = (interval * 2).min(Duration::from_secs(30)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(CliError::new(Exit::Denied, "nobody has typed the code in time").hint("run `ferry auth login` again"))
}
