//! The binary `ferry-runner`: reads the command line and hands over.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "ferry-runner", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Carry out one execution; started by the runner only.
    #[command(hide = true)]
    Execute { dir: PathBuf },
    /// Confine and start one child; started by an executor only.
    #[command(hide = true)]
    Shim { file: PathBuf },
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.command {
        Command::Execute { dir } => {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
            runtime.block_on(runner::execute::execute(&dir))
        }
        Command::Shim { file } => runner::shim::run(&file),
    }
}
