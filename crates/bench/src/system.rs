//! The shipped system, up and idle: `ferry dev` in a directory of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

pub(crate) struct System {
    dev: Child,
    dir: tempfile::TempDir,
    pub(crate) up_ms: f64,
    server: u32,
    install_runner: u32,
}

impl System {
    pub(crate) async fn start(ferry: &Path, runner: &Path) -> anyhow::Result<Self> {
        if ferry.parent() != runner.parent() {
            bail!("both binaries must lie in one directory");
        }
        let dir = tempfile::tempdir()?;
        let at = Instant::now();
        let dev = Command::new(ferry)
            .args(["dev", "--no-context", "--data-dir"])
            .arg(dir.path().join("data"))
            .env(model::env::setting("log.level"), "warn")
            .stdout(std::process::Stdio::null())
            .spawn()?;
        let value = loop {
            let text = fs_err::read_to_string(dir.path().join("data/dev.json")).unwrap_or_default();
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                break value;
            }
            if at.elapsed() > Duration::from_secs(30) {
                bail!("ferry dev did not come up");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        let up_ms = at.elapsed().as_secs_f64() * 1000.0;
        let pid = |key: &str| value[key].as_u64().unwrap_or(0) as u32;
        let (server, install_runner) = (pid("server"), pid("install_runner"));
        Ok(Self { dev, up_ms, server, install_runner, dir })
    }

    /// Server and install runner, five seconds after they came up and had their first health check.
    pub(crate) async fn idle_mib(&self) -> anyhow::Result<Idle> {
        tokio::time::sleep(Duration::from_secs(8)).await;
        let runner = self.install_runner;
        Ok(Idle { server_rss: rss_mib(self.server)?, runner_rss: rss_mib(runner)?, runner_anon: anon_mib(runner)? })
    }

    /// From the start of a runner process that has a session to its first poll, as a bare socket sees it.
    pub(crate) async fn first_poll_ms(&self, runner: &Path) -> anyhow::Result<f64> {
        let state: PathBuf = self.dir.path().join("copy");
        fs_err::create_dir_all(&state)?;
        for file in ["session.json", "session.key"] {
            fs_err::copy(self.dir.path().join("data/runners/install").join(file), state.join(file))?;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut times = Vec::new();
        for _ in 0..10 {
            let at = Instant::now();
            let mut child = Command::new(runner)
                .args(["install", "--url", &url, "--state-dir"])
                .arg(&state)
                .stderr(std::process::Stdio::null())
                .spawn()?;
            let (mut stream, _) = tokio::time::timeout(Duration::from_secs(10), listener.accept()).await??;
            let mut first = [0; 16];
            stream.read_exact(&mut first).await?;
            times.push(at.elapsed().as_secs_f64() * 1000.0);
            child.kill().await?;
        }
        Ok(crate::percentile(&mut times, 0.5))
    }

    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        let pid = self.dev.id().context("ferry dev has ended")?;
        Command::new("kill").arg(pid.to_string()).status().await?;
        self.dev.wait().await?;
        Ok(())
    }
}

/// Memory of idle processes, in MiB.
pub(crate) struct Idle {
    pub(crate) server_rss: f64,
    pub(crate) runner_rss: f64,
    /// Without the pages of files, which the kernel shares and drops as it likes.
    pub(crate) runner_anon: f64,
}

pub(crate) fn rss_mib(pid: u32) -> anyhow::Result<f64> {
    line_mib(&format!("/proc/{pid}/status"), "VmRSS:")
}

fn anon_mib(pid: u32) -> anyhow::Result<f64> {
    line_mib(&format!("/proc/{pid}/smaps_rollup"), "Anonymous:")
}

fn line_mib(file: &str, name: &str) -> anyhow::Result<f64> {
    let text = fs_err::read_to_string(file)?;
    let line = text.lines().find_map(|l| l.strip_prefix(name)).with_context(|| format!("no {name} in {file}"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}
