//! The binary `ferry`: hands over to the control plane, the local system, or the client.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the edge that talks to a person")]

mod dev;
mod serve;
mod simulate;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// The system's gives memory back and asks for it again all the time when many requests are under way: a quarter of the
/// throughput, measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "ferry", version, about = "Runs a vendor's software inside its customers' own clouds", after_help = cli::EXIT_CODES)]
struct Ferry {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: Top,
}

#[derive(Subcommand)]
enum Top {
    #[command(flatten)]
    Client(cli::Command),
    /// Run the control plane
    Server(serve::ServerArgs),
    /// Bring up the whole system on this machine: control plane, build runner and one install runner
    Dev(dev::DevArgs),
    /// Work on the control plane's own data, beside it
    Admin(serve::AdminArgs),
    /// Simulate a fleet in which everything goes wrong, and check that the invariants hold
    Sim(simulate::SimArgs),
    /// Write shell completions
    Completions(cli::CompletionsArgs),
}

fn main() -> ExitCode {
    // Once, before anything speaks TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Ferry { global, command } = Ferry::parse();
    let outcome = match command {
        Top::Client(command) => return on_runtime(Box::pin(cli::run(global, command))),
        Top::Completions(args) => return cli::completions(args.shell, Ferry::command()),
        Top::Server(args) => follow_parent().and_then(|()| serve::server(args, global.json)),
        Top::Sim(args) => simulate::run(&args, global.json),
        Top::Admin(args) => on_runtime(serve::admin(args)),
        Top::Dev(args) => on_runtime(Box::pin(dev::run(args))),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// A server of `ferry dev` stops when that is gone, however it went.
fn follow_parent() -> anyhow::Result<()> {
    let Ok(parent) = std::env::var(model::env::PARENT_DEATH) else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_pid().to_string());
    anyhow::ensure!(now == Some(parent), "the `ferry dev` that started this server is gone");
    Ok(())
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(future)
}

#[cfg(test)]
mod generated {
    use std::fmt::Write as _;

    use clap::CommandFactory as _;

    fn describe(command: &mut clap::Command, path: &str, out: &mut String) {
        let help = command.clone().term_width(100).render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = write!(out, "## `{path}`\n\n```text\n{}\n```\n\n", help.join("\n").trim_end());
        let names: Vec<String> = command
            .get_subcommands()
            .filter(|c| c.get_name() != "help" && !c.is_hide_set())
            .map(|c| c.get_name().to_owned())
            .collect();
        for name in names {
            if let Some(inner) = command.find_subcommand_mut(&name) {
                describe(inner, &format!("{path} {name}"), out);
            }
        }
    }

    /// The committed reference is what the binary says. `make generate` writes it anew.
    #[test]
    fn the_cli_reference_is_current() {
        let mut command = super::Ferry::command();
        command.build();
        let mut text = String::from("# The `ferry` command\n\nGenerated from the binary by `make generate`.\n\n");
        describe(&mut command, "ferry", &mut text);
        let path = format!("{}/../../docs/cli.md", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            fs_err::write(&path, text).expect("written");
        } else {
            let committed = fs_err::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "docs/cli.md is old: run `make generate`");
        }
    }
}
