//! `ferry dev`: the whole system on one machine, as real processes, in one data directory.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use api::client::{Client, Options};
use api::control::{CreateApp, CreateInstall, CreateOrg, Install, Org};
use clap::Args;
use rustix::process::{Pid, Signal};
use serde::Serialize;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args)]
pub(crate) struct DevArgs {
    /// Where everything lies
    #[arg(long, env = "FERRY_DEV_DIR", default_value = ".ferry")]
    data_dir: PathBuf,
    /// `sqlite:DIR` or `postgres://…`; SQLite in the data directory when absent
    #[arg(long)]
    database: Option<String>,
    /// Port of the Control API; 0 = any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Port of the Runner API; 0 = any that is free
    #[arg(long, default_value_t = 0)]
    runner_port: u16,
    #[arg(long, default_value = "demo")]
    org: String,
    #[arg(long, default_value = "hello")]
    app: String,
    #[arg(long, default_value = "local")]
    install: String,
    /// A path outside the data directory that scripts may write to; may be given more than once
    #[arg(long = "allow-path")]
    allow_paths: Vec<PathBuf>,
    /// Do not write a CLI context
    #[arg(long)]
    no_context: bool,
}

/// What other programs on this machine read.
#[derive(Debug, Clone, Default, Serialize)]
struct DevFile {
    control_url: String,
    runner_url: String,
    token: String,
    org_id: String,
    install_id: String,
    server: u32,
    build_runner: u32,
    install_runner: u32,
}

/// A child that is started again when it dies.
struct Kept {
    name: &'static str,
    child: Child,
    command: Box<dyn Fn() -> Command + Send>,
}

const PATIENCE: Duration = Duration::from_secs(20);
const RESTART: Duration = Duration::from_millis(100);

impl Kept {
    fn start(name: &'static str, command: impl Fn() -> Command + Send + 'static) -> anyhow::Result<Self> {
        let child = command().spawn().with_context(|| format!("can't start the {name}"))?;
        Ok(Self { name, child, command: Box::new(command) })
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    fn restart(&mut self) -> anyhow::Result<()> {
        self.child = (self.command)().spawn().with_context(|| format!("can't start the {}", self.name))?;
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id as i32)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Asks it to end, and waits; kills it when it takes too long.
    async fn stop(&mut self, patience: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(patience, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
    }
}

pub(crate) async fn run(args: DevArgs) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let dir = std::path::absolute(&args.data_dir)?;
    fs_err::create_dir_all(&dir)?;
    let _lock = lock(&dir)?;
    let token = token(&dir)?;
    let mut server = start_server(&args, &dir)?;
    let mut file = DevFile { token: token.clone(), server: server.pid(), ..DevFile::default() };
    let urls = wait_for_server(&dir, &mut server).await?;
    (file.control_url, file.runner_url) = urls;
    let client = Client::new(&file.control_url, Some(token.clone()), None, &Options::default())?;
    let (org, install) = ensure_install(&client, &args).await?;
    (file.org_id, file.install_id) = (org.id.to_string(), install.id.to_string());
    let client = client.with_org(Some(org.id.to_string()));
    let mut build = start_runner(&client, &dir, "build", org.build_runner_id.as_str(), &args, &file.runner_url).await?;
    let mut local = start_runner(&client, &dir, "install", install.runner_id.as_str(), &args, &file.runner_url).await?;
    (file.build_runner, file.install_runner) = (build.pid(), local.pid());
    write_file(&dir, &file)?;
    if !args.no_context {
        let context = cli::Context {
            url: file.control_url.clone(),
            token: Some(token),
            org: Some(file.org_id.clone()),
            ..Default::default()
        };
        cli::save_context("dev", context, true).map_err(|e| anyhow::anyhow!("{e}"))?;
    }
    wait_for_runners(&client, &[org.build_runner_id.as_str(), install.runner_id.as_str()]).await?;
    announce(&args, &dir, &file, started.elapsed());
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            ended = server.child.wait() => revive(&mut server, ended).await?,
            ended = build.child.wait() => revive(&mut build, ended).await?,
            ended = local.child.wait() => revive(&mut local, ended).await?,
        }
        (file.server, file.build_runner, file.install_runner) = (server.pid(), build.pid(), local.pid());
        write_file(&dir, &file)?;
    }
    eprintln!("stopping");
    tokio::join!(build.stop(Duration::from_secs(75)), local.stop(Duration::from_secs(75)));
    server.stop(Duration::from_secs(15)).await;
    let _ = fs_err::remove_file(dir.join("dev.json"));
    Ok(ExitCode::SUCCESS)
}

/// Starts a child again, soon, and every time as soon.
async fn revive(kept: &mut Kept, ended: std::io::Result<std::process::ExitStatus>) -> anyhow::Result<()> {
    let how = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
    eprintln!("the {} ended ({how}); it is started again", kept.name);
    tokio::time::sleep(RESTART).await;
    kept.restart()
}

fn lock(dir: &Path) -> anyhow::Result<std::fs::File> {
    let mut options = fs_err::OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).open(dir.join("dev.lock"))?.into_parts().0;
    if file.try_lock().is_err() {
        bail!("another `ferry dev` works in {}", dir.display());
    }
    Ok(file)
}

/// The token of the first account: made once, kept in the data directory.
fn token(dir: &Path) -> anyhow::Result<String> {
    let path = dir.join("token");
    if let Ok(text) = fs_err::read_to_string(&path) {
        return Ok(text.trim().to_owned());
    }
    let token = server::new_token();
    server::write_private(&path, &token)?;
    Ok(token)
}

fn write_file(dir: &Path, file: &DevFile) -> anyhow::Result<()> {
    server::write_private(&dir.join("dev.json"), &serde_json::to_string_pretty(file)?)
}

/// Its own process group: an interrupt from the terminal reaches us, and we end the children in order.
fn quiet(program: &Path, log: &Path) -> Command {
    let mut command = Command::new(program);
    let open =
        || std::fs::OpenOptions::new().create(true).append(true).open(log).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(open()).stderr(open()).process_group(0);
    command
}

fn start_server(args: &DevArgs, dir: &Path) -> anyhow::Result<Kept> {
    let program = std::env::current_exe()?;
    let _ = fs_err::remove_file(dir.join("server.json"));
    let (dir, log) = (dir.to_owned(), dir.join("server.log"));
    let wanted = (args.port, args.runner_port);
    // A server that is started again listens where the first one did: runners know it by that address.
    let database = args.database.clone();
    Kept::start("server", move || {
        let (port, runner_port) = known_ports(&dir).unwrap_or(wanted);
        let mut command = quiet(&program, &log);
        command
            .arg("server")
            .env("FERRY_DATA_DIR", &dir)
            .env("FERRY_CONTROL__LISTEN", format!("127.0.0.1:{port}"))
            .env("FERRY_RUNNER__LISTEN", format!("127.0.0.1:{runner_port}"))
            .env("FERRY_AUTH__BOOTSTRAP_TOKEN_FILE", dir.join("token"))
            .env("FERRY_AUTH__BOOTSTRAP_EMAIL", "dev@localhost");
        if let Some(url) = &database {
            command.env("FERRY_DATABASE__URL", url);
        }
        command
    })
}

fn known_ports(dir: &Path) -> Option<(u16, u16)> {
    let (control, runner) = addresses(dir)?;
    let port = |url: &str| url.rsplit(':').next()?.parse().ok();
    Some((port(&control)?, port(&runner)?))
}

fn addresses(dir: &Path) -> Option<(String, String)> {
    let text = fs_err::read_to_string(dir.join("server.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some((value["control_url"].as_str()?.to_owned(), value["runner_url"].as_str()?.to_owned()))
}

async fn wait_for_server(dir: &Path, server: &mut Kept) -> anyhow::Result<(String, String)> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = addresses(dir) {
            return Ok(found);
        }
        if let Some(status) = server.child.try_wait()? {
            let log = fs_err::read_to_string(dir.join("server.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(5).collect();
            bail!("the server ended ({status}):\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        if Instant::now() > until {
            bail!(
                "the server did not come up within {} s; see {}",
                PATIENCE.as_secs(),
                dir.join("server.log").display()
            );
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn ensure_install(client: &Client, args: &DevArgs) -> anyhow::Result<(Org, Install)> {
    let org = match client.orgs().await?.into_iter().find(|o| o.name == args.org) {
        Some(org) => org,
        None => client.create_org(&CreateOrg { name: args.org.clone(), use_sandbox_mode: false }).await?,
    };
    let client = client.with_org(Some(org.id.to_string()));
    let app = match client.apps().await?.into_iter().find(|a| a.name == args.app) {
        Some(app) => app,
        None => {
            let description = "made by `ferry dev`".to_owned();
            let app = CreateApp { name: args.app.clone(), display_name: String::new(), description };
            client.create_app(&app).await?
        }
    };
    let installs = client.installs(Some(app.id.as_str())).await?;
    let install = match installs.into_iter().find(|i| i.name == args.install) {
        Some(install) => install,
        None => {
            let install =
                CreateInstall { name: args.install.clone(), aws_account: None, azure_account: None, gcp_account: None };
            client.create_install(app.id.as_str(), &install).await?
        }
    };
    Ok((org, install))
}

/// Starts a runner; it joins when its state directory holds no session yet.
async fn start_runner(
    client: &Client,
    dir: &Path,
    kind: &'static str,
    runner: &str,
    args: &DevArgs,
    url: &str,
) -> anyhow::Result<Kept> {
    let program = std::env::current_exe()?.with_file_name("ferry-runner");
    if !program.exists() {
        bail!("{} is missing: `cargo build -p runner` makes it", program.display());
    }
    let state_dir = dir.join("runners").join(kind);
    let mut join = Vec::new();
    if !state_dir.join("session.json").exists() {
        let command = client.create_join_command(runner).await?;
        join =
            vec![("FERRY_RUNNER_JOIN", command.credential), ("FERRY_RUNNER_TRUST_KEY", command.trust_keys.join(","))];
    }
    let allowed: Vec<String> = args.allow_paths.iter().map(|p| p.display().to_string()).collect();
    let (log, url) = (dir.join(format!("{kind}-runner.log")), url.to_owned());
    let name = if kind == "build" { "build runner" } else { "install runner" };
    Kept::start(name, move || {
        let mut command = quiet(&program, &log);
        command.arg(kind).arg("--state-dir").arg(&state_dir).arg("--url").arg(&url);
        command.envs(join.iter().map(|(k, v)| (*k, v.as_str())));
        if !allowed.is_empty() {
            command.env("FERRY_RUNNER_ALLOW_PATHS", allowed.join(":"));
        }
        command
    })
}

async fn wait_for_runners(client: &Client, runners: &[&str]) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    for runner in runners {
        while client.runner(runner).await?.status == "pending" {
            if Instant::now() > until {
                bail!("runner {runner} did not join; see its log in the data directory");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}

fn announce(args: &DevArgs, dir: &Path, file: &DevFile, took: Duration) {
    println!("Ferry is up after {} ms", took.as_millis());
    println!();
    println!("  Control API     {}   (docs at /docs)", file.control_url);
    println!("  Runner API      {}", file.runner_url);
    println!("  org, app        {}, {}", args.org, args.app);
    println!("  install         {}   (its runner is process {})", args.install, file.install_runner);
    println!("  build runner    process {}", file.build_runner);
    println!("  data            {}   (dev.json, *.log)", dir.display());
    if !args.no_context {
        println!("  CLI context     dev, selected");
    }
    println!();
    println!("Try:  ferry actions run --install {} --command 'echo hello from $(hostname)'", args.install);
    println!("Stop: Ctrl-C");
}
