//! The binary `ferry`: hands over to the control plane, the local system, or the client.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the edge that talks to a person")]

mod dev;
mod serve;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

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
        Top::Server(args) => serve::server(args, global.json),
        Top::Admin(args) => on_runtime(serve::admin(args)),
        Top::Dev(args) => on_runtime(Box::pin(dev::run(args))),
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
