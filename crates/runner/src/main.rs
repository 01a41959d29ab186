//! The binary `ferry-runner`: reads the command line and hands over.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the edge that talks to a person")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};
use model::runner::RunnerKind;
use runner::session::{self, Ending, Options, SessionFetcher, StateDir};
use runner::{cell, doctor, execute, explain, net, shim};

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
    /// Print the version
    Version,
    #[command(hide = true)]
    Execute { dir: PathBuf },
    #[command(hide = true)]
    Shim { file: PathBuf },
    #[command(hide = true, subcommand)]
    Cell(CellStep),
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
    #[arg(long, env = "FERRY_RUNNER_URL", default_value = "")]
    url: String,
    /// A file with the join credential (or FERRY_RUNNER_JOIN holds it); used when the state directory holds no session
    #[arg(long)]
    join_file: Option<PathBuf>,
    /// Fingerprint of a key whose signatures are trusted; may be given more than once
    #[arg(long = "trust-key", env = "FERRY_RUNNER_TRUST_KEY", value_delimiter = ',')]
    trust_keys: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// More root certificates, in PEM
    #[arg(long, env = "FERRY_RUNNER_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// A path that scripts may write to although it lies beside the state directory
    #[arg(long = "allow-path", env = "FERRY_RUNNER_ALLOW_PATHS", value_delimiter = ':')]
    allow_paths: Vec<PathBuf>,
    /// A registry of base images on a network that builds don't reach (`host:port`, or `http://host:port`); may be given more than once
    #[arg(long = "base-registry", env = "FERRY_RUNNER_BASE_REGISTRIES", value_delimiter = ',')]
    base_registries: Vec<String>,
}

#[derive(Args)]
struct Place {
    /// Where the runner keeps its key, its executions and its switch
    #[arg(long, env = "FERRY_RUNNER_STATE_DIR", default_value = "/var/lib/ferry-runner")]
    state_dir: PathBuf,
}

#[derive(Args)]
struct Look {
    #[command(flatten)]
    place: Place,
    /// Check this Runner API instead of the one the runner has joined (doctor only)
    #[arg(long, env = "FERRY_RUNNER_URL", default_value = "")]
    url: String,
    #[arg(long, env = "FERRY_RUNNER_CA_FILE")]
    ca_file: Option<PathBuf>,
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct RunLocal {
    /// The Control API
    #[arg(long, env = "FERRY_URL")]
    control_url: String,
    #[arg(long, env = "FERRY_ORG")]
    org: String,
    /// Name or id of the install
    #[arg(long)]
    install: String,
    /// Where the runner keeps its state; a directory in the temporary one when absent
    #[arg(long)]
    state_dir: Option<PathBuf>,
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
        Command::Version => {
            println!("ferry-runner {} (protocol {})", env!("CARGO_PKG_VERSION"), model::constants::PROTOCOL);
            return ExitCode::SUCCESS;
        }
        Command::Install(session) => serve(RunnerKind::Install, session),
        Command::Build(session) => serve(RunnerKind::Build, session),
        Command::RunLocal(local) => run_local(local),
        Command::Doctor(look) => check(&look),
        Command::Explain(look) => describe(&look),
        Command::Disable(look) => switch(&look, false),
        Command::Enable(look) => switch(&look, true),
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
        base_registries: session.base_registries,
    };
    start(options)
}

/// The credential from a file or the environment, never from the command line: that, everyone on the host can read.
fn credential(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let text = match file {
        Some(path) => Some(fs_err::read_to_string(path)?),
        None => std::env::var("FERRY_RUNNER_JOIN").ok(),
    };
    Ok(text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()))
}

fn start(options: Options) -> anyhow::Result<ExitCode> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("FERRY_RUNNER_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    follow_parent()?;
    let ending = on_runtime(Box::pin(session::run(options)))?;
    match ending {
        Ending::Done | Ending::HandedOver => Ok(ExitCode::SUCCESS),
        Ending::Fenced => bail!(
            "a newer session has taken this runner's place; if this one is meant to work, stop the other, remove the state directory and join again"
        ),
    }
}

/// A runner of `ferry dev` hands over when that is gone, however it went: it ends at once, and its executors go on.
fn follow_parent() -> anyhow::Result<()> {
    let Ok(parent) = std::env::var("FERRY_PARENT_DEATH") else { return Ok(()) };
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
        base_registries: Vec::new(),
    };
    start(options)
}

async fn join_command(local: &RunLocal) -> anyhow::Result<serde_json::Value> {
    let token = std::env::var("FERRY_TOKEN").context("set FERRY_TOKEN to a token of an admin")?;
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
    let running =
        if pid.is_some() { "the running process is told" } else { "no process runs; it counts from the next start" };
    match on {
        true => println!("enabled: jobs are taken again ({running})"),
        false => println!("disabled: no jobs are taken, running ones are interrupted ({running})"),
    }
    Ok(ExitCode::SUCCESS)
}
