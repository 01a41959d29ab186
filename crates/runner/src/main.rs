//! The binary `ferry-runner`: reads the command line and hands over.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the edge that talks to a person")]

mod secrets_command;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};
use model::env;
use model::runner::RunnerKind;
use runner::seal::custody::{self, Custodian};
use runner::seal::vault::Tools;
use runner::session::{self, Ending, Options, Over, SessionFetcher, StateDir};
use runner::{confine::cell, confine::shim, doctor, execute, explain, net, watcher};

#[derive(Parser)]
#[command(name = "ferry-runner", version, about = "Carries out jobs in the customer's account. Dials out only.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run as the runner of an install
    Install(Session),
    /// Run as the build runner of an org
    Build(Session),
    /// Run as the runner of an install of a control plane on this machine, joining by itself (FERRY_TOKEN holds a token)
    RunLocal(RunLocal),
    /// Check every hop to the control plane, and this host; prints a report to paste
    Doctor(Look),
    /// Say, without any network, whom this runner trusts, whom it talks to, and what it ran
    Explain(Look),
    /// Switch the runner off: takes no jobs and interrupts running ones, until `enable`
    Disable(Look),
    /// Switch the runner on again
    Enable(Look),
    /// Delete the session so that the runner can join again
    ///
    /// Keeps the install's key, rescued Terraform states, the switch and the history. Deletes the session, its key pair and what
    /// is left of past executions. Refuses while the runner or one of its executions is running.
    Reset(Look),
    /// The key that seals this install's states, plans and sensitive outputs
    #[command(subcommand)]
    Key(KeyCommand),
    /// Secrets of this install, where they lie in a directory on this machine
    #[command(subcommand)]
    Secrets(secrets_command::SecretsCommand),
    /// Terraform's states of this install, opened on this machine
    #[command(subcommand)]
    State(StateCommand),
    /// Print the version
    Version,
    #[command(hide = true)]
    Execute { dir: PathBuf },
    #[command(hide = true)]
    WatchHealth { dir: PathBuf },
    #[command(hide = true)]
    Shim { file: PathBuf },
    #[command(hide = true, subcommand)]
    Cell(CellStep),
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Print a new key, to be put where --install-key-command finds it
    New,
    /// Say which key there is, by its fingerprint
    Show(Custody),
    /// Copy the key to a file: without it nothing that it sealed can be opened
    Backup {
        file: PathBuf,
        #[command(flatten)]
        custody: Custody,
    },
    /// Put a key back that was saved
    Restore {
        file: PathBuf,
        #[command(flatten)]
        custody: Custody,
    },
}

#[derive(Subcommand)]
enum StateCommand {
    /// List what has a state, and who holds its lock
    List(Custody),
    /// Write a state to a file, opened
    Export {
        #[command(flatten)]
        of: Target,
        file: PathBuf,
        #[command(flatten)]
        custody: Custody,
    },
    /// Take an existing state over
    Import {
        #[command(flatten)]
        of: Target,
        file: PathBuf,
        #[command(flatten)]
        custody: Custody,
    },
    /// Serve a state to a plain Terraform on this machine, until Ctrl-C
    Serve {
        #[command(flatten)]
        of: Target,
        #[command(flatten)]
        custody: Custody,
    },
}

/// Where the runner is whose key and states they are.
#[derive(Args)]
struct Custody {
    #[command(flatten)]
    place: StateDirArg,
    #[command(flatten)]
    tools: ToolArgs,
    #[arg(long)]
    json: bool,
}

/// The part of the install.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// A component
    #[arg(long, short)]
    component: Option<String>,
    /// The sandbox
    #[arg(long)]
    sandbox: bool,
}

impl Target {
    fn text(&self) -> String {
        self.component.as_ref().map_or_else(|| "sandbox".to_owned(), |name| format!("components/{name}"))
    }
}

/// The steps into a cell.
#[derive(Subcommand)]
enum CellStep {
    Watch { file: PathBuf },
    Furnish { file: PathBuf },
    Enter { file: PathBuf },
    Settle { file: PathBuf, closed: Vec<String> },
}

#[derive(Args)]
struct Session {
    /// Where the control plane's Runner API is
    #[arg(long, env = env::RUNNER_URL, default_value = "")]
    url: String,
    /// A file with the join credential (or FERRY_RUNNER_JOIN holds it); used when the state directory holds no session
    #[arg(long)]
    join_file: Option<PathBuf>,
    /// Fingerprint of a key whose signatures are trusted; may be given more than once
    #[arg(long = "trust-key", env = env::RUNNER_TRUST_KEY, value_delimiter = ',')]
    trust_keys: Vec<String>,
    #[command(flatten)]
    place: StateDirArg,
    /// More root certificates, in PEM
    #[arg(long, env = env::RUNNER_CA_FILE)]
    ca_file: Option<PathBuf>,
    /// A path that scripts may write to although it lies beside the state directory
    #[arg(long = "allow-path", env = env::RUNNER_ALLOW_PATHS, value_delimiter = ':')]
    allow_paths: Vec<PathBuf>,
    /// Refuse ad hoc actions: only scripts that are part of the app's config are run
    #[arg(long, env = env::RUNNER_NO_AD_HOC)]
    no_ad_hoc: bool,
    /// A registry of base images on a network that builds don't reach (`host:port`, or `http://host:port`); may be given more than once
    #[arg(long = "base-registry", env = env::RUNNER_BASE_REGISTRIES, value_delimiter = ',')]
    base_registries: Vec<String>,
    /// Serve counters for Prometheus at http://ADDRESS/metrics; nothing listens when absent
    #[arg(long, env = env::RUNNER_METRICS_LISTEN, default_value = "")]
    metrics_listen: String,
    #[command(flatten)]
    tools: ToolArgs,
}

/// Where tools and the install's key come from.
#[derive(Args, Clone)]
struct ToolArgs {
    /// The file with the install's key, which seals states, plans and sensitive outputs; keys/install.key in the state directory by default
    #[arg(long, env = env::RUNNER_INSTALL_KEY_FILE)]
    install_key_file: Option<PathBuf>,
    /// A command that prints the install's key, where it lies elsewhere in the account
    #[arg(long, env = env::RUNNER_INSTALL_KEY_COMMAND, conflicts_with = "install_key_file")]
    install_key_command: Option<String>,
    /// Where versions of Terraform (or OpenTofu) that are not on PATH are fetched from, laid out as its releases are
    #[arg(long, env = env::RUNNER_TERRAFORM_MIRROR)]
    terraform_mirror: Option<String>,
    /// Terraform's CLI configuration, as for a mirror of providers
    #[arg(long, env = env::RUNNER_TERRAFORM_CONFIG)]
    terraform_config: Option<PathBuf>,
    /// The kubeconfig of the customer's cluster; in a pod, its service account by default
    #[arg(long, env = env::RUNNER_KUBECONFIG)]
    kubeconfig: Option<PathBuf>,
    /// The customer's own registry, `HOST/PATH` (`http://HOST/PATH` without TLS): images are copied there, with the login that the host
    /// keeps for it in docker's `config.json`; without one, pods pull images from the control plane's registry
    #[arg(long, env = env::RUNNER_REGISTRY)]
    registry: Option<String>,
    /// Where the install's secrets lie: a directory with a file for each, or `vault:https://HOST:8200/MOUNT/FOLDER` (KV version 2);
    /// `secrets` in the state directory by default
    #[arg(long, env = env::RUNNER_SECRET_STORE)]
    secret_store: Option<String>,
    /// A file with the token for Vault; it is read anew for each request
    #[arg(long, env = env::RUNNER_VAULT_TOKEN_FILE)]
    vault_token_file: Option<PathBuf>,
}

impl From<ToolArgs> for Tools {
    fn from(args: ToolArgs) -> Self {
        Self {
            install_key_file: args.install_key_file,
            install_key_command: args.install_key_command,
            terraform_mirror: args.terraform_mirror,
            terraform_config: args.terraform_config,
            kubeconfig: args.kubeconfig,
            registry: args.registry,
            secret_store: args.secret_store,
            vault_token_file: args.vault_token_file,
        }
    }
}

#[derive(Args)]
struct StateDirArg {
    /// Where the runner keeps its key, its executions and its switch
    #[arg(long, env = env::RUNNER_STATE_DIR, default_value = "/var/lib/ferry-runner")]
    state_dir: PathBuf,
}

#[derive(Args)]
struct Look {
    #[command(flatten)]
    place: StateDirArg,
    /// Check this Runner API instead of the one the runner has joined (doctor only)
    #[arg(long, env = env::RUNNER_URL, default_value = "")]
    url: String,
    #[arg(long, env = env::RUNNER_CA_FILE)]
    ca_file: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct RunLocal {
    /// The Control API
    #[arg(long, env = env::URL)]
    control_url: String,
    #[arg(long, env = env::ORG)]
    org: String,
    /// Name or id of the install
    #[arg(long)]
    install: String,
    /// Where the runner keeps its state; a directory in the temporary one when absent
    #[arg(long)]
    state_dir: Option<PathBuf>,
    #[command(flatten)]
    tools: ToolArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Shim { file } => return shim::run(&file),
        Command::Cell(step) => {
            return match step {
                CellStep::Watch { file } => on_runtime(cell::watch(&file)),
                CellStep::Furnish { file } => cell::furnish(&file),
                CellStep::Enter { file } => cell::enter(&file),
                CellStep::Settle { file, closed } => cell::settle(&file, &closed),
            };
        }
        Command::Execute { dir } => return on_runtime(execute::execute_with(&dir, &SessionFetcher)),
        Command::WatchHealth { dir } => return on_runtime(watcher::run(&dir)),
        Command::Version => {
            println!("ferry-runner {} (protocol {})", env!("CARGO_PKG_VERSION"), model::constants::PROTOCOL);
            return ExitCode::SUCCESS;
        }
        Command::Install(session) => serve(RunnerKind::Install, session),
        Command::Build(session) => serve(RunnerKind::Build, session),
        Command::RunLocal(local) => run_local(local),
        Command::Doctor(look) => check(&look),
        Command::Explain(look) => describe(&look),
        Command::Key(command) => keys(command),
        Command::State(command) => states(command),
        Command::Secrets(command) => secrets_command::run(command),
        Command::Disable(look) => switch(&look, false),
        Command::Enable(look) => switch(&look, true),
        Command::Reset(look) => reset(&look),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(future)
}

fn serve(kind: RunnerKind, session: Session) -> anyhow::Result<ExitCode> {
    if !session.url.is_empty() {
        let parsed = reqwest::Url::parse(&session.url).ok().filter(|u| matches!(u.scheme(), "http" | "https"));
        parsed.with_context(|| {
            format!("`{}` is no URL of a Runner API: it starts with https:// or http://", session.url)
        })?;
    }
    let options = Options {
        kind,
        url: session.url,
        join: credential(session.join_file.as_deref())?,
        trust_keys: session.trust_keys,
        state_dir: absolute(&session.place.state_dir)?,
        ca_file: session.ca_file,
        allow_paths: session.allow_paths,
        no_ad_hoc: session.no_ad_hoc,
        base_registries: session.base_registries,
        tools: session.tools.into(),
        metrics_listen: session.metrics_listen,
    };
    start(options)
}

/// The credential from a file or the environment, never from the command line: that, everyone on the host can read.
fn credential(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let text = match file {
        Some(path) => Some(fs_err::read_to_string(path)?),
        None => std::env::var(env::RUNNER_JOIN).ok(),
    };
    Ok(text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()))
}

fn start(options: Options) -> anyhow::Result<ExitCode> {
    let filter = tracing_subscriber::EnvFilter::try_from_env(env::RUNNER_LOG)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    follow_parent()?;
    let state = StateDir::new(&options.state_dir);
    let ending = on_runtime(Box::pin(session::run(options)))?;
    match ending {
        Ending::Done | Ending::HandedOver => Ok(ExitCode::SUCCESS),
        Ending::Over(over @ Over::Fenced) => bail!(
            "{}. If this runner is the one that should work, stop the other one, then {}",
            over.as_str(),
            state.join_again()
        ),
        Ending::Over(over @ Over::Revoked) => bail!(
            "{}. The runner stops and starts no more jobs. Whatever is still deployed stays, and the install's key stays in the state directory. To run this install again, {}",
            over.as_str(),
            state.join_again()
        ),
    }
}

/// A runner of `ferry dev` hands over when that is gone, however it went: it ends at once, and its executors go on.
fn follow_parent() -> anyhow::Result<()> {
    let Ok(parent) = std::env::var(env::PARENT_DEATH) else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::HUP))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_pid().to_string());
    anyhow::ensure!(now == Some(parent), "the `ferry dev` that started this runner is gone");
    Ok(())
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// Asks the control plane on this machine for a join command, and runs as it says.
fn run_local(local: RunLocal) -> anyhow::Result<ExitCode> {
    let state_dir = match &local.state_dir {
        Some(dir) => absolute(dir)?,
        None => std::env::temp_dir().join(format!("ferry-runner-{}", local.install.replace('/', "-"))),
    };
    let joined = StateDir::new(&state_dir).session()?.is_some();
    let command = if joined { None } else { Some(on_runtime(join_command(&local))?) };
    let text = |key: &str| command.as_ref().and_then(|c| c[key].as_str()).unwrap_or_default().to_owned();
    let trust_keys = command.as_ref().and_then(|c| serde_json::from_value(c["trust_keys"].clone()).ok());
    let options = Options {
        kind: RunnerKind::Install,
        url: text("runner_url"),
        join: command.as_ref().map(|_| text("credential")),
        trust_keys: trust_keys.unwrap_or_default(),
        state_dir,
        ca_file: None,
        allow_paths: Vec::new(),
        no_ad_hoc: false,
        base_registries: Vec::new(),
        tools: local.tools.into(),
        metrics_listen: String::new(),
    };
    start(options)
}

async fn join_command(local: &RunLocal) -> anyhow::Result<serde_json::Value> {
    let token = std::env::var(env::TOKEN).with_context(|| format!("set {} to a token of an admin", env::TOKEN))?;
    let http = net::client(&local.control_url, None)?;
    let base = local.control_url.trim_end_matches('/');
    let call = |method: reqwest::Method, path: String| {
        http.request(method, format!("{base}{path}"))
            .bearer_auth(&token)
            .header(api::headers::ORG, &local.org)
            .timeout(std::time::Duration::from_secs(20))
    };
    let read = async |request: reqwest::RequestBuilder| -> anyhow::Result<serde_json::Value> {
        let answer = request.send().await?;
        let good = answer.status().is_success();
        let body: serde_json::Value = answer.json().await?;
        if !good {
            bail!("{}", body["error"].as_str().unwrap_or("the control plane refused"));
        }
        Ok(body)
    };
    let install = read(call(reqwest::Method::GET, format!("/v1/installs/{}", local.install))).await?;
    let runner = install["runner_id"].as_str().context("the install has no runner")?.to_owned();
    read(call(reqwest::Method::POST, format!("/v1/runners/{runner}/join-commands"))).await
}

fn check(look: &Look) -> anyhow::Result<ExitCode> {
    let state = StateDir::new(&absolute(&look.place.state_dir)?);
    let session = state.session()?;
    let known = session.as_ref().map(|s| s.url.clone()).unwrap_or_default();
    let runner_url = if look.url.is_empty() { known } else { look.url.clone() };
    if runner_url.is_empty() {
        bail!("this runner has not joined yet: pass --url to check a control plane");
    }
    let ca_file = look.ca_file.clone().or_else(|| session.as_ref().and_then(|s| s.ca_file.clone()));
    let options = doctor::Options {
        runner_url,
        state_dir: state.path().to_owned(),
        ca_file: ca_file.clone(),
        disk_floor_bytes: session.as_ref().map_or(0, |s| s.settings.disk_floor_bytes),
        builds: session.as_ref().is_some_and(|s| s.kind == RunnerKind::Build),
    };
    let report = on_runtime(async {
        let mut report = doctor::run(&options).await;
        session::check_session(&mut report, &state, &options.runner_url, ca_file.as_deref()).await;
        report
    });
    if look.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.text());
    }
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(look: &Look) -> anyhow::Result<ExitCode> {
    let value = explain::explain(&StateDir::new(&absolute(&look.place.state_dir)?))?;
    if look.json {
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print!("{}", explain::text(&value));
    }
    Ok(ExitCode::SUCCESS)
}

fn keys(command: KeyCommand) -> anyhow::Result<ExitCode> {
    let (custody, file) = match &command {
        KeyCommand::New => {
            println!("{}", runner::seal::InstallKey::new().text().trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        KeyCommand::Show(custody) => (custody, None),
        KeyCommand::Backup { file, custody } | KeyCommand::Restore { file, custody } => (custody, Some(file.clone())),
    };
    let (tools, state_dir) = (custody.tools.clone().into(), absolute(&custody.place.state_dir)?);
    let fingerprint = match (&command, file) {
        (KeyCommand::Backup { .. }, Some(file)) => Some(on_runtime(custody::backup_key(&tools, &state_dir, &file))?),
        (KeyCommand::Restore { .. }, Some(file)) => Some(on_runtime(custody::restore_key(&tools, &state_dir, &file))?),
        _ => on_runtime(custody::fingerprint(&tools, &state_dir))?,
    };
    if custody.json {
        println!("{}", serde_json::json!({ "fingerprint": fingerprint }));
        return Ok(ExitCode::SUCCESS);
    }
    let place = tools.key_file(&state_dir);
    match (&command, &fingerprint) {
        (_, None) => println!("no key yet: the first job that seals something makes it, in {}", place.display()),
        (KeyCommand::New | KeyCommand::Show(_), Some(key)) => println!("{key} in {}", place.display()),
        (KeyCommand::Backup { file, .. }, Some(key)) => {
            println!("{key} is copied to {}: keep it where this machine's end does not reach it", file.display());
        }
        (KeyCommand::Restore { .. }, Some(key)) => println!("{key} is in its place, {}", place.display()),
    }
    Ok(ExitCode::SUCCESS)
}

fn states(command: StateCommand) -> anyhow::Result<ExitCode> {
    let custody = match &command {
        StateCommand::List(custody)
        | StateCommand::Export { custody, .. }
        | StateCommand::Import { custody, .. }
        | StateCommand::Serve { custody, .. } => custody,
    };
    let (tools, state_dir) = (custody.tools.clone().into(), absolute(&custody.place.state_dir)?);
    let json = custody.json;
    on_runtime(async {
        let custodian = Custodian::open(&state_dir, tools)?;
        match &command {
            StateCommand::List(_) => list_states(&custodian, json).await?,
            StateCommand::Export { file, .. } if file.exists() => {
                anyhow::bail!("{} is there already: nothing is written over it", file.display());
            }
            StateCommand::Export { of, file, .. } => {
                let serial = custodian.export(&of.text(), file).await?;
                println!("serial {serial} of {} is in {}: it holds secrets", of.text(), file.display());
            }
            StateCommand::Import { of, file, .. } => {
                let serial = custodian.import(&of.text(), file).await?;
                println!("serial {serial} is the state of {} now; the next plan shows what differs", of.text());
            }
            StateCommand::Serve { of, .. } => serve_state(&custodian, &of.text()).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list_states(custodian: &Custodian, json: bool) -> anyhow::Result<()> {
    let workspaces = custodian.workspaces().await?;
    if json {
        println!("{}", serde_json::to_string_pretty(&workspaces)?);
        return Ok(());
    }
    for found in workspaces {
        let state = found.state.map_or_else(|| "no state yet".to_owned(), |state| format!("serial {}", state.serial));
        let lock = found.lock.map_or_else(String::new, |lock| format!(", locked by {}", lock.who));
        println!("{}: {state}{lock}", found.target);
    }
    Ok(())
}

async fn serve_state(custodian: &Custodian, target: &str) -> anyhow::Result<()> {
    let (_served, config) = custodian.serve(target).await?;
    println!("# The state of {target}. Save this as backend.hcl, give the module `backend \"http\" {{}}`, and run");
    println!("#   terraform init -reconfigure -backend-config=backend.hcl");
    println!("# It is served until Ctrl-C; while Terraform holds the lock, no job of Ferry works on it.");
    println!("{config}");
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

fn reset(look: &Look) -> anyhow::Result<ExitCode> {
    let state_dir = absolute(&look.place.state_dir)?;
    let state = StateDir::new(&state_dir);
    let tools = state.session().ok().flatten().map(|session| session.tools).unwrap_or_default();
    let dropped = state.reset()?;
    println!("deleted the session and {dropped} past executions in {}", state_dir.display());
    let key = tools.key_file(&state_dir);
    match key.exists() {
        true => println!("kept the install's key ({}) and rescued states", key.display()),
        false => println!("kept rescued states; there was no install's key in {}", key.display()),
    }
    println!("join again with the command that `ferry runners join-command` prints");
    Ok(ExitCode::SUCCESS)
}

fn switch(look: &Look, on: bool) -> anyhow::Result<ExitCode> {
    let state = StateDir::new(&absolute(&look.place.state_dir)?);
    if on {
        state.enable()?
    } else {
        state.disable(session::now())?
    }
    // A running process looks at once; without this it would within two seconds.
    let pid = state.holder();
    if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
        rustix::process::kill_process(pid, rustix::process::Signal::USR1)?;
    }
    match (on, pid.is_some()) {
        (true, true) => println!("enabled: the runner takes jobs again"),
        (true, false) => println!("enabled: the runner will take jobs when it is started (no process is running)"),
        (false, true) => println!("disabled: the runner interrupts its jobs and takes no new ones"),
        (false, false) => println!("disabled: the runner will take no jobs when it is started (no process is running)"),
    }
    Ok(ExitCode::SUCCESS)
}
