//! `ferry dev`: the whole system on one machine, as real processes, in one data directory.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use api::client::{Client, Options};
use api::control::{CreateApp, CreateInstall, CreateOrg, Install, Org};
use clap::Args;
use model::env;
use rustix::process::{Pid, Signal};
use serde::Serialize;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args)]
pub(crate) struct DevArgs {
    /// Directory for all data
    #[arg(long, env = env::DEV_DIR, default_value = ".ferry")]
    data_dir: PathBuf,
    /// `sqlite:DIR` or `postgres://…` [default: SQLite in the data directory]
    #[arg(long)]
    database: Option<String>,
    /// Port of the Control API; 0 takes any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Port of the Runner API; 0 takes any free port
    #[arg(long, default_value_t = 0)]
    runner_port: u16,
    /// Name of the org to create
    #[arg(long, default_value = "demo")]
    org: String,
    /// Name of the app to create
    #[arg(long, default_value = "hello")]
    app: String,
    /// Name of the install to create
    #[arg(long, default_value = "local")]
    install: String,
    /// Path outside the data directory that scripts may write to; repeatable
    #[arg(long = "allow-path")]
    allow_paths: Vec<PathBuf>,
    /// Don't write a CLI context
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
    log: PathBuf,
    /// Where the log ended when the child was started: what lies behind it, it has written.
    log_from: u64,
}

/// All of them, in the order of their start.
#[derive(Default)]
struct Children {
    server: Option<Kept>,
    build: Option<Kept>,
    install: Option<Kept>,
}

const PATIENCE: Duration = Duration::from_secs(20);
const RESTART: Duration = Duration::from_millis(50);
/// How long what an earlier, killed `ferry dev` left behind may take to end.
const LEFTOVERS: Duration = Duration::from_secs(3);
/// So often a runner may end before it has connected.
const TRIES: u32 = 3;

impl Kept {
    fn start(name: &'static str, log: PathBuf, command: impl Fn() -> Command + Send + 'static) -> anyhow::Result<Self> {
        let log_from = length(&log);
        let child = command().spawn().with_context(|| format!("can't start the {name}"))?;
        Ok(Self { name, child, command: Box::new(command), log, log_from })
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap_or(0)
    }

    fn restart(&mut self) -> anyhow::Result<()> {
        self.log_from = length(&self.log);
        self.child = (self.command)().spawn().with_context(|| format!("can't start the {}", self.name))?;
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Asks it to end, and waits; kills it when it takes too long.
    async fn stop(&mut self, patience: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(patience, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
    }

    /// The last line that it has written, for a person; empty when it has written none.
    fn last_words(&self) -> String {
        let bytes = fs_err::read(&self.log).unwrap_or_default();
        let own = bytes.get(usize::try_from(self.log_from).unwrap_or(0)..).unwrap_or_default();
        String::from_utf8_lossy(own).lines().rev().find(|l| !l.trim().is_empty()).map(readable).unwrap_or_default()
    }

    /// How it ended: the status, and its last words, which say nothing when it was killed.
    fn ending(&self, status: ExitStatus) -> String {
        match self.last_words() {
            words if words.is_empty() || status.signal() == Some(Signal::KILL.as_raw()) => {
                format!("the {} ended ({status})", self.name)
            }
            words => format!("the {} ended ({status}); its log ends with: {words}", self.name),
        }
    }
}

impl Children {
    /// Runners first: they hand in what they have.
    async fn stop(mut self) {
        let drain = Duration::from_secs(75);
        let stop = async |kept: Option<&mut Kept>, patience| {
            if let Some(kept) = kept {
                kept.stop(patience).await;
            }
        };
        tokio::join!(stop(self.build.as_mut(), drain), stop(self.install.as_mut(), drain));
        stop(self.server.as_mut(), Duration::from_secs(15)).await;
    }
}

fn length(path: &Path) -> u64 {
    fs_err::metadata(path).map_or(0, |m| m.len())
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// A line of a log: its message and its error when it is JSON, else the line itself.
fn readable(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let part = |key: &str| value["fields"][key].as_str().filter(|text| !text.is_empty());
    match (part("message"), part("error")) {
        (Some(message), Some(error)) => format!("{message}: {error}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => line.trim().to_owned(),
    }
}

pub(crate) async fn run(args: DevArgs) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let runner = std::env::current_exe()?.with_file_name("ferry-runner");
    if !runner.exists() {
        bail!("{} is missing: `cargo build -p runner` makes it", runner.display());
    }
    let allowed = allowed_paths(&args.allow_paths)?;
    let dir = std::path::absolute(&args.data_dir)?;
    store::private_dir(&dir)?;
    let _lock = lock(&dir)?;
    // When the set-up fails, the children go with this: each is killed when it is dropped.
    let mut children = Children::default();
    let up = tokio::select! {
        up = Box::pin(set_up(&args, &dir, &runner, &allowed, &mut children)) => Some(up?),
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
    };
    if let (Some(file), Children { server: Some(server), build: Some(build), install: Some(install) }) =
        (up, &mut children)
    {
        announce(&args, &dir, &file, started.elapsed()).await;
        let mut file = file;
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                ended = server.child.wait() => revive(server, ended?).await?,
                ended = build.child.wait() => revive(build, ended?).await?,
                ended = install.child.wait() => revive(install, ended?).await?,
            }
            (file.server, file.build_runner, file.install_runner) = (server.pid(), build.pid(), install.pid());
            write_file(&dir, &file)?;
        }
    }
    eprintln!("stopping");
    children.stop().await;
    let _ = fs_err::remove_file(dir.join("dev.json"));
    Ok(ExitCode::SUCCESS)
}

/// Starts everything, and returns when both runners are connected.
async fn set_up(
    args: &DevArgs,
    dir: &Path,
    runner: &Path,
    allowed: &OsStr,
    children: &mut Children,
) -> anyhow::Result<DevFile> {
    end_leftovers(dir).await?;
    let since = server::now();
    let token = token(dir)?;
    let (server, (control_url, runner_url)) = start_server(args, dir, &mut children.server).await?;
    let client = Client::new(&control_url, Some(token.clone()), None, &Options::default())?;
    let (org, install) = ensure_install(&client, args).await?;
    let client = client.with_org(Some(org.id.to_string()));
    let ids = [org.build_runner_id.as_str(), install.runner_id.as_str()];
    let start = async |kind, id| start_runner(&client, dir, kind, id, runner, allowed, &runner_url).await;
    let build = children.build.insert(start("build", ids[0]).await?);
    let local = children.install.insert(start("install", ids[1]).await?);
    wait_for_runner(&client, ids[0], since, build).await?;
    wait_for_runner(&client, ids[1], since, local).await?;
    let file = DevFile {
        control_url,
        runner_url,
        token: token.clone(),
        org_id: org.id.to_string(),
        install_id: install.id.to_string(),
        server,
        build_runner: build.pid(),
        install_runner: local.pid(),
    };
    write_file(dir, &file)?;
    if !args.no_context {
        let context = cli::Context {
            url: file.control_url.clone(),
            token: Some(token),
            org: Some(file.org_id.clone()),
            ..Default::default()
        };
        cli::save_context("dev", context, true).map_err(|e| anyhow::anyhow!("{e}"))?;
    }
    Ok(file)
}

/// Starts a child again, soon, and every time as soon.
async fn revive(kept: &mut Kept, ended: ExitStatus) -> anyhow::Result<()> {
    eprintln!("{}; it is started again", kept.ending(ended));
    tokio::time::sleep(RESTART).await;
    kept.restart()
}

/// As the runners read them from their environment.
fn allowed_paths(paths: &[PathBuf]) -> anyhow::Result<OsString> {
    if let Some(path) = paths.iter().find(|p| p.as_os_str().as_bytes().contains(&b':')) {
        bail!("--allow-path {}: a path with a `:` in it can't be allowed", path.display());
    }
    let whole: Vec<PathBuf> = paths.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    Ok(whole.iter().map(|p| p.as_os_str()).collect::<Vec<_>>().join(OsStr::new(":")))
}

/// Ends what a killed `ferry dev` of this directory left: the server, and the runners, which hand over. Executors go on.
async fn end_leftovers(dir: &Path) -> anyhow::Result<()> {
    let path = dir.join("dev.json");
    let old: serde_json::Value =
        fs_err::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let listed = ["server", "build_runner", "install_runner"].map(|key| old[key].as_u64().unwrap_or(0));
    let left = || -> Vec<(u32, Signal)> {
        let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| Some((pid, leftover(pid, dir, listed.contains(&u64::from(pid)))?))).collect()
    };
    let until = Instant::now() + LEFTOVERS;
    let mut told = Vec::new();
    loop {
        let now = left();
        if now.is_empty() {
            break;
        }
        let late = Instant::now() > until + LEFTOVERS;
        for (pid, signal) in now {
            if late {
                bail!("process {pid} of an earlier `ferry dev` in {} does not end", dir.display());
            } else if Instant::now() > until {
                send(pid, Signal::KILL);
            } else if !told.contains(&pid) {
                send(pid, signal);
                told.push(pid);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    if path.exists() {
        fs_err::remove_file(path)?;
    }
    Ok(())
}

/// Whether a process is a child of an earlier `ferry dev` in this directory, and the signal that ends it.
fn leftover(pid: u32, dir: &Path, listed: bool) -> Option<Signal> {
    let words = |name: &str| -> Vec<Vec<u8>> {
        let bytes = fs_err::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        bytes.split(|b| *b == 0).map(<[u8]>::to_vec).collect()
    };
    let command = words("cmdline");
    let kind = command.get(1).map(Vec::as_slice).filter(|k| matches!(*k, b"server" | b"install" | b"build"))?;
    let environment = words("environ");
    let variable = |name: &str| environment.iter().find_map(|v| v.strip_prefix(format!("{name}=").as_bytes()));
    if !listed && variable(env::PARENT_DEATH).is_none() {
        return None;
    }
    let is = |found: &[u8], path: &Path| {
        let found = Path::new(OsStr::from_bytes(found));
        found == path || fs_err::canonicalize(found).is_ok_and(|f| fs_err::canonicalize(path).is_ok_and(|p| f == p))
    };
    if kind == b"server" {
        return variable(env::DATA_DIR).is_some_and(|d| is(d, dir)).then_some(Signal::TERM);
    }
    let state_dir = dir.join("runners").join(OsStr::from_bytes(kind));
    let given = command.iter().position(|w| w == b"--state-dir").and_then(|at| command.get(at + 1));
    given.is_some_and(|d| is(d, &state_dir)).then_some(Signal::HUP)
}

/// One `ferry dev` in a directory; the file names its process.
fn lock(dir: &Path) -> anyhow::Result<std::fs::File> {
    let path = dir.join("dev.lock");
    let mut options = fs_err::OpenOptions::new();
    let mut file = options.create(true).truncate(false).write(true).open(&path)?.into_parts().0;
    if file.try_lock().is_err() {
        let holder = fs_err::read_to_string(&path).unwrap_or_default();
        bail!("another `ferry dev` works in {} (process {})", dir.display(), holder.trim());
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
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

/// Its own process group: an interrupt from the terminal reaches us, and we end the children in order. When we can't, because
/// we were killed, they end by themselves.
fn quiet(program: &Path, log: &Path) -> Command {
    let mut command = Command::new(program);
    let open =
        || std::fs::OpenOptions::new().create(true).append(true).open(log).map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(open()).stderr(open()).process_group(0).kill_on_drop(true);
    command.env(env::PARENT_DEATH, std::process::id().to_string());
    command
}

/// Starts the server where it listened last time, so that join commands stay good; elsewhere when those ports are taken.
/// Returns its process id and its addresses.
async fn start_server(args: &DevArgs, dir: &Path, slot: &mut Option<Kept>) -> anyhow::Result<(u32, (String, String))> {
    let wanted = (args.port, args.runner_port);
    let last = known_ports(dir).unwrap_or_default();
    let pick = |wanted: u16, last: u16| if wanted == 0 && is_free(last) { last } else { wanted };
    let first = (pick(wanted.0, last.0), pick(wanted.1, last.1));
    let server = slot.insert(spawn_server(args, dir, first)?);
    let mut urls = wait_for_server(dir, server).await;
    if urls.is_err() && first != wanted {
        // Somebody was faster.
        *server = spawn_server(args, dir, wanted)?;
        urls = wait_for_server(dir, server).await;
    }
    Ok((server.pid(), urls?))
}

fn is_free(port: u16) -> bool {
    port != 0 && std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn spawn_server(args: &DevArgs, dir: &Path, ports: (u16, u16)) -> anyhow::Result<Kept> {
    let program = std::env::current_exe()?;
    let _ = fs_err::remove_file(dir.join("server.json"));
    let (dir, log) = (dir.to_owned(), dir.join("server.log"));
    let database = args.database.clone();
    Kept::start("server", log.clone(), move || {
        // A server that is started again listens where the first one did: runners know it by that address.
        let (port, runner_port) = known_ports(&dir).unwrap_or(ports);
        let mut command = quiet(&program, &log);
        command
            .arg("server")
            .env(env::DATA_DIR, &dir)
            .env(env::setting("control.listen"), format!("127.0.0.1:{port}"))
            .env(env::setting("runner.listen"), format!("127.0.0.1:{runner_port}"))
            .env(env::setting("metrics.listen"), "127.0.0.1:0")
            .env(env::setting("auth.bootstrap_token_file"), dir.join("token"))
            .env(env::setting("auth.bootstrap_email"), "dev@localhost");
        if let Some(url) = &database {
            command.env(env::setting("database.url"), url);
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
            bail!("{}", server.ending(status));
        }
        if Instant::now() > until {
            bail!("the server did not come up within {} s; see {}", PATIENCE.as_secs(), server.log.display());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn ensure_install(client: &Client, args: &DevArgs) -> anyhow::Result<(Org, Install)> {
    let org = match client.orgs().await?.into_iter().find(|o| o.name == args.org) {
        Some(org) => org,
        None => {
            client.create_org(&CreateOrg { name: args.org.clone(), use_sandbox_mode: false, simulation: None }).await?
        }
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
            let install = CreateInstall::local(args.install.clone());
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
    program: &Path,
    allowed: &OsStr,
    url: &str,
) -> anyhow::Result<Kept> {
    let state_dir = dir.join("runners").join(kind);
    let mut join = Vec::new();
    if !state_dir.join("session.json").exists() {
        let command = client.create_join_command(runner).await?;
        join = vec![(env::RUNNER_JOIN, command.credential), (env::RUNNER_TRUST_KEY, command.trust_keys.join(","))];
    }
    let (log, url) = (dir.join(format!("{kind}-runner.log")), url.to_owned());
    let name = if kind == "build" { "build runner" } else { "install runner" };
    let (program, allowed) = (program.to_owned(), allowed.to_owned());
    Kept::start(name, log.clone(), move || {
        let mut command = quiet(&program, &log);
        command.arg(kind).arg("--state-dir").arg(&state_dir).arg("--url").arg(&url);
        command.envs(join.iter().map(|(k, v)| (*k, v.as_str())));
        if !allowed.is_empty() {
            command.env(env::RUNNER_ALLOW_PATHS, &allowed);
        }
        command
    })
}

/// Returns when the runner polls: the server has heard of it, and its report, since we started.
async fn wait_for_runner(
    client: &Client,
    runner: &str,
    since: model::Timestamp,
    kept: &mut Kept,
) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut ends = 0;
    loop {
        let found = client.runner(runner).await?;
        // `disabled` by the customer is connected too.
        let connected = matches!(found.status.as_str(), "active" | "disabled") && found.report.is_some();
        if connected && found.last_seen_at.is_some_and(|seen| seen >= since) {
            return Ok(());
        }
        if let Some(status) = kept.child.try_wait()? {
            ends += 1;
            if ends == TRIES {
                bail!("{}", kept.ending(status));
            }
            revive(kept, status).await?;
        }
        if Instant::now() > until {
            bail!("the {} did not connect within {} s; see {}", kept.name, PATIENCE.as_secs(), kept.log.display());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn announce(args: &DevArgs, dir: &Path, file: &DevFile, took: Duration) {
    let link = sign_in_link(file).await;
    println!("Ferry is up after {} ms", took.as_millis());
    println!();
    println!("  Control API     {}   (docs at /docs)", file.control_url);
    if let Some(link) = &link {
        println!("  Browser         {link}   (signs you in, once)");
    }
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
    if let Some(link) = link
        && std::io::stdout().is_terminal()
        && std::env::var_os("DISPLAY").or_else(|| std::env::var_os("WAYLAND_DISPLAY")).is_some_and(|it| !it.is_empty())
    {
        // A page that only its owner can read leads there: what a program is started with, everybody can. Where that does not work,
        // the link is printed.
        let page = dir.join("sign-in.html");
        let _ = server::write_private(&page, &format!("<meta http-equiv=refresh content=\"0;url={link}\">"));
        let quiet = || Stdio::null();
        drop(Command::new("xdg-open").arg(page).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn());
    }
}

async fn sign_in_link(file: &DevFile) -> Option<String> {
    let client = Client::new(&file.control_url, Some(file.token.clone()), None, &Options::default()).ok()?;
    client.create_sign_in_link().await.ok().map(|link| link.url)
}

#[cfg(test)]
mod tests {
    use super::{allowed_paths, readable};

    #[test]
    fn lines_of_logs_are_shown_as_text() {
        let cases = [
            (r#"{"level":"INFO","fields":{"message":"joined","generation":1}}"#, "joined"),
            (r#"{"fields":{"message":"no listener","error":"in use"}}"#, "no listener: in use"),
            (r#"{"fields":{"error":"in use"}}"#, "in use"),
            (r#"{"other":1}"#, r#"{"other":1}"#),
            ("error: it is in use ", "error: it is in use"),
        ];
        for (line, shown) in cases {
            assert_eq!(readable(line), shown);
        }
    }

    #[test]
    fn allowed_paths_are_joined() {
        assert_eq!(allowed_paths(&["/a".into(), "/b c".into()]).expect("good"), "/a:/b c");
        assert!(allowed_paths(&["/a:b".into()]).is_err());
        assert!(allowed_paths(&[]).expect("good").is_empty());
    }
}
