//! The whole system as real processes: a control plane, runners, and the witnesses that scripts leave behind.
//!
//! Everything lies in one directory, which every process of a test carries in its command line or its environment: that is
//! how a test finds what it left running, and it fails for it. The directory is kept when a test fails.

mod jobs;
mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api::client::{Client, Options as ClientOptions};
use api::control::{
    CreateActionRun, CreateApp, CreateInstall, CreateOrg, Install, Job, JoinCommand, Org, UpdateRunnerSettings,
};
use model::spec::{Limits, StepSpec};
use model::{JobId, JobState, env};
use rustix::process::{Pid, Signal};

use crate::Backend;

pub use jobs::{action, command, script};
pub(crate) use processes::children_of;
use processes::write_stderr;
pub use processes::{Process, Seen, end_all, is_running, processes_of, send, without_forks};

/// Longest wait for something that should take no time.
pub const SOON: Duration = Duration::from_secs(60);
/// Between two looks.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(150);
/// How long processes may take to go after the last of ours was killed.
const SETTLE: Duration = Duration::from_secs(5);
const TOKEN: &str = "fry_0123456789abcdefghijklmnopqrstuv0123456789abcdef";
/// What a child must not get from the machine that the tests run on.
const FOREIGN: [&str; 8] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// How a system is started. The timings are short, so that leases end while a test waits.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary `ferry`; `ferry-runner` lies beside it.
    pub ferry: PathBuf,
    pub backend: Backend,
    /// Where the database is, when it is not one of the PostgreSQL that all tests share.
    pub database_url: Option<String>,
    /// Settings of the server, as its variables have them.
    pub server: BTreeMap<String, String>,
    /// The certificate that clients trust besides those of the system.
    pub ca_file: Option<PathBuf>,
}

impl Options {
    pub fn new(ferry: impl Into<PathBuf>) -> Self {
        let server = [
            ("timing.lease_s", "3"),
            ("timing.renew_s", "1"),
            ("timing.hold_s", "2"),
            ("timing.offline_s", "30"),
            ("timing.closed_offline_s", "2"),
            ("timing.silent_offline_s", "6"),
            // Most tests bring their own build runner, or wait for none.
            ("builds.launcher", "none"),
        ];
        Self {
            ferry: ferry.into(),
            backend: Backend::Sqlite,
            database_url: None,
            server: server.map(|(key, value)| (env::setting(key), value.to_owned())).into(),
            ca_file: None,
        }
    }

    #[must_use]
    pub fn on(self, backend: Backend) -> Self {
        Self { backend, ..self }
    }

    /// One more setting of the server.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.server.insert(name.to_owned(), value.to_string());
        self
    }
}

/// Looks again and again until there is a value; fails with what was seen last.
pub async fn until<T>(what: &str, bound: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    // Soon at first, then ever less often: a look costs both sides, and many tests look at a time.
    let mut pause = FIRST_PAUSE;
    loop {
        let last = match look().await {
            Ok(value) => return value,
            Err(last) => last,
        };
        assert!(started.elapsed() < bound, "waited {bound:?} for: {what}\nlast seen: {last}");
        tokio::time::sleep(pause).await;
        pause = (pause * 5 / 4).min(LONGEST_PAUSE);
    }
}

/// A runner process and where it keeps its things.
#[derive(Debug)]
pub struct Runner {
    pub process: Process,
    pub state_dir: PathBuf,
    log: PathBuf,
}

impl Runner {
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// What it wrote on stderr, all its processes together.
    pub fn log(&self) -> String {
        fs_err::read_to_string(&self.log).unwrap_or_default()
    }
}

/// A server, or where one was: it is started again at the same ports.
struct Server {
    process: Option<Process>,
    data: String,
    control_url: String,
    runner_url: String,
}

/// A control plane with one org, app and install, ready for runners.
pub struct System {
    dir: Option<tempfile::TempDir>,
    root: PathBuf,
    options: Options,
    database_url: Option<String>,
    ours: Arc<Mutex<BTreeSet<u32>>>,
    /// The first, and its replicas, where a test has started some.
    servers: Vec<Server>,
    pub control_url: String,
    pub runner_url: String,
    /// In the org of the install, as its admin.
    pub client: Client,
    pub org: Org,
    pub install: Install,
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("root", &self.root).finish_non_exhaustive()
    }
}

impl System {
    /// Starts a control plane and makes an org, an app and an install.
    pub async fn start(options: Options) -> Self {
        let runner = runner_binary(&options.ferry);
        assert!(runner.exists(), "{} is missing: `cargo build -p runner` makes it", runner.display());
        let dir = temporary();
        let ours = Arc::default();
        let root = fs_err::canonicalize(dir.path()).expect("a path");
        for folder in ["data", "runners", "witness", "home"] {
            fs_err::create_dir(root.join(folder)).expect("a directory");
        }
        fs_err::write(root.join("token"), TOKEN).expect("a file");
        let shared = || (options.backend == Backend::Postgres).then(crate::database);
        let database_url = options.database_url.clone().or_else(shared);
        let mut process = server_command(&root, "data", &options, database_url.as_deref(), (0, 0));
        let mut process = Process::spawn(&mut process, &ours);
        let (control_url, runner_url) = addresses(&root.join("data"), &mut process).await;
        let server = Server {
            process: Some(process),
            data: "data".into(),
            control_url: control_url.clone(),
            runner_url: runner_url.clone(),
        };
        let client = client(&control_url, &options);
        let org = client
            .create_org(&CreateOrg { name: "acme".into(), use_sandbox_mode: false, simulation: None })
            .await
            .expect("an org");
        let client = client.with_org(Some(org.id.to_string()));
        let install = make_install(&client).await;
        for runner in [&install.runner_id, &org.build_runner_id] {
            without_health_checks(&client, runner.as_str()).await;
        }
        Self {
            dir: Some(dir),
            root,
            options,
            database_url,
            ours,
            servers: vec![server],
            control_url,
            runner_url,
            client,
            org,
            install,
        }
    }

    /// The directory of this system.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn token(&self) -> &'static str {
        TOKEN
    }

    // --- the server ---

    pub fn server(&self) -> &Process {
        self.servers[0].process.as_ref().expect("the server runs")
    }

    /// A setting of the next server.
    pub fn set(&mut self, name: &str, value: &str) {
        self.options.server.insert(name.into(), value.into());
    }

    pub fn kill_server(&mut self) {
        self.kill_replica(0);
    }

    /// Starts the server again, where it was.
    pub async fn start_server(&mut self) {
        self.start_replica(0).await;
    }

    /// Starts the server again, where it was, and does not wait for it.
    pub fn spawn_server(&mut self) {
        let server = &mut self.servers[0];
        let ports = (port(&server.control_url), port(&server.runner_url));
        let mut command = server_command(&self.root, &server.data, &self.options, self.database_url.as_deref(), ports);
        server.process = Some(Process::spawn(&mut command, &self.ours));
    }

    /// False when it was killed, or has ended by itself.
    pub fn server_lives(&mut self) -> bool {
        self.servers[0].process.as_mut().is_some_and(Process::is_alive)
    }

    /// One more server on the same database and blobs.
    pub async fn add_replica(&mut self) {
        let data = format!("data{}", self.servers.len());
        fs_err::create_dir(self.root.join(&data)).expect("a directory");
        let free = || "http://127.0.0.1:0".to_owned();
        self.servers.push(Server { process: None, data, control_url: free(), runner_url: free() });
        self.start_replica(self.servers.len() - 1).await;
    }

    pub fn kill_replica(&mut self, n: usize) {
        self.servers[n].process = None;
    }

    pub async fn start_replica(&mut self, n: usize) {
        let server = &mut self.servers[n];
        let ports = (port(&server.control_url), port(&server.runner_url));
        let mut command = server_command(&self.root, &server.data, &self.options, self.database_url.as_deref(), ports);
        let mut process = Process::spawn(&mut command, &self.ours);
        (server.control_url, server.runner_url) = addresses(&self.root.join(&server.data), &mut process).await;
        server.process = Some(process);
    }

    /// Where the servers listen: Control APIs, and Runner APIs.
    pub fn listeners(&self) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let address = |url: &str| SocketAddr::from(([127, 0, 0, 1], port(url)));
        self.servers.iter().map(|s| (address(&s.control_url), address(&s.runner_url))).unzip()
    }

    /// Clients and runners go another way from now on.
    pub fn go_through(&mut self, control: Option<SocketAddr>, runner: Option<SocketAddr>) {
        let through = |url: &str, to: SocketAddr| format!("{}://{to}", url.split(':').next().unwrap_or_default());
        if let Some(to) = control {
            self.control_url = through(&self.control_url, to);
            self.client = client(&self.control_url, &self.options).with_org(Some(self.org.id.to_string()));
        }
        if let Some(to) = runner {
            self.runner_url = through(&self.runner_url, to);
        }
    }

    /// Asks the server to end; says how it did, and how long it took.
    pub async fn stop_server(&mut self) -> (ExitStatus, Duration) {
        let mut server = self.servers[0].process.take().expect("the server runs");
        let started = Instant::now();
        server.signal(Signal::TERM);
        (server.ended(SOON).await, started.elapsed())
    }

    // --- runners ---

    pub async fn join_command(&self) -> JoinCommand {
        self.client.create_join_command(self.install.runner_id.as_str()).await.expect("a join command")
    }

    pub fn state_dir(&self, name: &str) -> PathBuf {
        self.root.join("runners").join(name)
    }

    /// A `ferry-runner` command in a clean environment.
    pub fn runner_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(runner_binary(&self.options.ferry));
        clean(&mut command, &self.root);
        command.args(arguments).env(env::IT_DIR, &self.root);
        command
    }

    /// `ferry-runner install` on a state directory that has joined.
    pub fn resume_command(&self, name: &str) -> Command {
        let mut command = self.runner_command(&["install", "--url", &self.runner_url, "--allow-path"]);
        command.arg(self.root.join("witness")).arg("--state-dir").arg(self.state_dir(name));
        if let Some(file) = &self.options.ca_file {
            command.arg("--ca-file").arg(file);
        }
        command
    }

    pub fn spawn_runner(&self, name: &str, command: &mut Command) -> Runner {
        let log = self.root.join("runners").join(format!("{name}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log file");
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a handle")).stderr(file);
        Runner { process: Process::spawn(command, &self.ours), state_dir: self.state_dir(name), log }
    }

    /// Starts a runner that joins, and waits until the control plane sees it.
    pub async fn start_runner(&self, name: &str) -> Runner {
        let join = self.join_command().await;
        self.start_runner_with(name, &join, |_| ()).await
    }

    pub async fn start_runner_with(&self, name: &str, join: &JoinCommand, change: impl Fn(&mut Command)) -> Runner {
        let mut command = self.resume_command(name);
        command.env(env::RUNNER_JOIN, &join.credential).env(env::RUNNER_TRUST_KEY, join.trust_keys.join(","));
        change(&mut command);
        let runner = self.spawn_runner(name, &mut command);
        // It counts as there when it has joined; the session is on its disk before it polls.
        let joined = || runner.state_dir.join("session.json").exists();
        self.until_runner("the runner is there", SOON, |r| r.status == "active" && r.report.is_some() && joined())
            .await;
        runner
    }

    /// `ferry-runner build` on a state directory of that name.
    pub fn build_runner_command(&self, name: &str) -> Command {
        let mut command = self.runner_command(&["build", "--url", &self.runner_url, "--state-dir"]);
        command.arg(self.state_dir(name));
        command
    }

    /// Starts the org's build runner, and waits until it polls.
    pub async fn start_build_runner(&self, name: &str, change: impl Fn(&mut Command)) -> Runner {
        let id = self.org.build_runner_id.as_str();
        let join = self.client.create_join_command(id).await.expect("a join command");
        let mut command = self.build_runner_command(name);
        command.env(env::RUNNER_JOIN, &join.credential).env(env::RUNNER_TRUST_KEY, join.trust_keys.join(","));
        change(&mut command);
        let runner = self.spawn_runner(name, &mut command);
        until("the build runner is there", SOON, async || match self.client.runner(id).await {
            Ok(found) if found.status == "active" && found.report.is_some() => Ok(()),
            Ok(found) => Err(format!("{found:?}")),
            Err(error) => Err(error.to_string()),
        })
        .await;
        runner
    }

    /// Waits until the runner has done a first job, nothing goes on, and it holds its poll.
    pub async fn until_idle(&self) {
        assert_eq!(self.run(vec![script("first", "true")]).await.status, JobState::Finished);
        self.until_quiet().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    /// The next process on the same state directory.
    pub fn resume_runner(&self, name: &str) -> Runner {
        self.spawn_runner(name, &mut self.resume_command(name))
    }

    pub async fn runner(&self) -> api::control::Runner {
        self.client.runner(self.install.runner_id.as_str()).await.expect("the runner")
    }

    pub async fn until_runner(
        &self,
        what: &str,
        bound: Duration,
        good: impl Fn(&api::control::Runner) -> bool,
    ) -> api::control::Runner {
        until(what, bound, async || match self.client.runner(self.install.runner_id.as_str()).await {
            Ok(runner) if good(&runner) => Ok(runner),
            Ok(runner) => Err(format!("{runner:?}")),
            Err(error) => Err(error.to_string()),
        })
        .await
    }

    // --- the command line ---

    /// `ferry` with these words, as a person of this org.
    pub async fn ferry(&self, words: &[&str]) -> Output {
        let mut command = self.ferry_command();
        command.args(words);
        run(command).await
    }

    pub fn ferry_command(&self) -> Command {
        let mut command = Command::new(&self.options.ferry);
        clean(&mut command, &self.root);
        command
            .env(env::URL, &self.control_url)
            .env(env::TOKEN, TOKEN)
            .env(env::ORG, self.org.id.as_str())
            .env(env::IT_DIR, &self.root);
        if let Some(file) = &self.options.ca_file {
            command.env(env::CA_FILE, file);
        }
        command
    }

    /// `ferry admin …` on the store of the server.
    pub async fn admin(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.options.ferry);
        clean(&mut command, &self.root);
        set_store(&mut command, &self.root, "data", self.database_url.as_deref());
        command.arg("admin").args(words).envs(&self.options.server);
        run(command).await
    }

    // --- processes ---

    /// Executors of this system, without those of health checks, which come and go by themselves.
    pub fn executors(&self) -> Vec<i32> {
        let executes = |p: &Seen| {
            let mut words = p.command.split(|b| *b == 0).skip(1);
            words.next() == Some(b"execute") && words.next().is_some_and(|dir| !is_health_check(dir))
        };
        without_forks(processes_of(&self.root).into_iter().filter(executes).map(|p| p.pid).collect())
    }

    /// What executors have started: everything that carries the mark of an execution.
    pub fn children(&self) -> Vec<i32> {
        processes_of(&self.root).into_iter().filter(Seen::is_marked).map(|p| p.pid).collect()
    }

    /// Fails when something of an execution is left running.
    pub async fn until_quiet(&self) {
        until("no executor and no script is left", SOON, async || {
            let left: Vec<i32> = self.executors().into_iter().chain(self.children()).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.servers.clear();
        let ours = std::mem::take(&mut *self.ours.lock().unwrap_or_else(PoisonError::into_inner));
        ours.iter().for_each(|pid| send(*pid as i32, Signal::KILL));
        let failed = std::thread::panicking();
        let left = end_all(&self.root, if failed { Duration::ZERO } else { SETTLE }, &ours);
        if (failed || !left.is_empty())
            && let Some(dir) = self.dir.take()
        {
            write_stderr(&format!("kept for a look: {}", dir.keep().display()));
        }
        assert!(failed || left.is_empty(), "processes were left running: {left:#?}");
    }
}

pub fn runner_binary(ferry: &Path) -> PathBuf {
    ferry.with_file_name("ferry-runner")
}

/// A directory that goes with the test.
pub fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("ferry-it-").tempdir().expect("a temporary directory")
}

/// Runs a command to its end beside the test, which fails when that takes too long.
pub async fn run(mut command: Command) -> Output {
    command.stdin(Stdio::null());
    let shown = format!("{command:?}");
    let mut command = tokio::process::Command::from(command);
    let output = tokio::time::timeout(3 * SOON, command.kill_on_drop(true).output());
    output.await.unwrap_or_else(|_| panic!("{shown} takes too long")).unwrap_or_else(|e| panic!("{shown}: {e}"))
}

/// What a command wrote, for messages.
pub fn shown(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub(crate) fn clean(command: &mut Command, root: &Path) {
    for name in FOREIGN {
        command.env_remove(name);
    }
    // No variable of the person who runs the tests reaches a process of theirs.
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(env::PREFIX.as_bytes()) {
            command.env_remove(name);
        }
    }
    command.env("HOME", root.join("home")).env("XDG_CONFIG_HOME", root.join("home"));
}

/// Whether this execution's directory is that of a health check.
fn is_health_check(dir: &[u8]) -> bool {
    let spec = Path::new(std::ffi::OsStr::from_bytes(dir)).join("spec.json");
    fs_err::read_to_string(spec).is_ok_and(|text| text.contains(r#""type":"health-check""#))
}

fn client(url: &str, options: &Options) -> Client {
    let client_options = ClientOptions { ca_file: options.ca_file.clone(), ..ClientOptions::default() };
    Client::new(url, Some(TOKEN.into()), None, &client_options).expect("a client")
}

/// A server with a data directory of its own; the first one's holds what replicas share.
fn server_command(root: &Path, data: &str, options: &Options, database: Option<&str>, ports: (u16, u16)) -> Command {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(root.join("server.log")).expect("a log");
    let _ = fs_err::remove_file(root.join(data).join("server.json"));
    let (control, runner) = ports;
    let mut command = Command::new(&options.ferry);
    clean(&mut command, root);
    command
        .arg("server")
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a handle"))
        .stderr(log)
        .env(env::setting("control.listen"), format!("127.0.0.1:{control}"))
        .env(env::setting("runner.listen"), format!("127.0.0.1:{runner}"))
        .env(env::setting("metrics.listen"), "127.0.0.1:0")
        .env(env::setting("auth.bootstrap_token_file"), root.join("token"));
    set_store(&mut command, root, data, database);
    command.envs(&options.server);
    command
}

/// Where the store lies; what the settings of a test say comes first.
fn set_store(command: &mut Command, root: &Path, data: &str, database: Option<&str>) {
    command
        .env(env::DATA_DIR, root.join(data))
        .env(env::setting("blobs.url"), root.join("data/blobs"))
        .env(env::setting("secrets.master_key_file"), root.join("data/master.key"));
    if let Some(url) = database {
        command.env(env::setting("database.url"), url);
    }
}

async fn addresses(data: &Path, server: &mut Process) -> (String, String) {
    until("the server listens", SOON, async || {
        let log = || fs_err::read_to_string(data.with_file_name("server.log")).unwrap_or_default();
        assert!(server.is_alive(), "the server ended:\n{}", log());
        let text = fs_err::read(data.join("server.json")).map_err(|e| e.to_string())?;
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
        let url = |key: &str| value[key].as_str().map(str::to_owned).ok_or_else(|| value.to_string());
        Ok((url("control_url")?, url("runner_url")?))
    })
    .await
}

fn port(url: &str) -> u16 {
    url.rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port")
}

async fn make_install(client: &Client) -> Install {
    let app = CreateApp { name: "shop".into(), display_name: String::new(), description: String::new() };
    let app = client.create_app(&app).await.expect("an app");
    let install = CreateInstall::local("customer");
    client.create_install(app.id.as_str(), &install).await.expect("an install")
}

/// A runner does what a test asks of it and nothing else: no executor of a health check comes and goes meanwhile.
pub async fn without_health_checks(client: &Client, runner: &str) {
    let settings = UpdateRunnerSettings { health_check_s: Some(0), ..Default::default() };
    client.update_runner_settings(runner, &settings).await.expect("settings");
}
