//! Runs a command line in a process of its own: this test binary again, told by a variable to be `ferry`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::Parser;

const ARGS: &str = "FERRY_CLI_TEST_ARGS";
/// What the test harness prints stands before this.
const MARK: &str = "\u{2}ferry\u{3}\n";

#[derive(Debug, Parser)]
#[command(name = "ferry", after_help = cli::EXIT_CODES)]
struct Whole {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: cli::Command,
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The process, not started yet; it knows nothing of this machine's contexts.
pub(crate) fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["ferry::become_ferry", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ARGS, args.join("\u{1f}")).env("FERRY_CONFIG", home.join("config.toml"));
    for name in ["FERRY_URL", "FERRY_TOKEN", "FERRY_ORG", "FERRY_CONTEXT", "FERRY_CA_FILE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn ran(output: Output) -> Ran {
    let stdout = String::from_utf8(output.stdout).expect("text");
    let stdout = stdout.split_once(MARK).map(|(_, rest)| rest.to_owned()).unwrap_or(stdout);
    Ran { code: output.status.code(), stdout, stderr: String::from_utf8(output.stderr).expect("text") }
}

/// Runs a command line to its end, away from the server's thread.
pub(crate) async fn ferry(home: &Path, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = command(home, args);
    command.envs(env.iter().copied());
    tokio::task::spawn_blocking(move || ran(command.output().expect("run"))).await.expect("join")
}

/// Not a test by itself: does nothing unless it was asked to be `ferry`.
#[test]
#[allow(clippy::exit, reason = "a command ends its process")]
fn become_ferry() {
    let Ok(args) = std::env::var(ARGS) else { return };
    let _ = rustls::crypto::ring::default_provider().install_default();
    std::io::stdout().write_all(MARK.as_bytes()).expect("stdout");
    let whole = match Whole::try_parse_from(std::iter::once("ferry").chain(args.split('\u{1f}'))) {
        Ok(whole) => whole,
        Err(error) => error.exit(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let code = runtime.block_on(cli::run(whole.global, whole.command));
    // An exit code can't be read back, only handed on: its debug form holds the number.
    let digits: String = format!("{code:?}").chars().filter(char::is_ascii_digit).collect();
    #[allow(clippy::disallowed_methods, reason = "the test harness has no other way to end with a code")]
    std::process::exit(digits.parse().expect("an exit code"));
}
