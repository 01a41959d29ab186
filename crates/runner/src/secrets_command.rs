//! `ferry-runner secrets`: the directory of secrets on this machine.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use model::secrets::SECRET_VALUE_BYTES_MAX;
use runner::secret_store::{Directory, folder};
use runner::session::StateDir;

use crate::{StateDirArg, absolute};

#[derive(Subcommand)]
pub(crate) enum SecretsCommand {
    /// Write a secret, from standard input or a file; it takes the place of an older value
    ///
    /// `ferry installs sync-secrets` brings it to the cluster, as do provisioning and reprovisioning; a deploy does not.
    Set {
        name: String,
        /// Read the value from this file
        #[arg(long)]
        file: Option<PathBuf>,
        #[command(flatten)]
        place: StateDirArg,
    },
    /// List the names of the secrets that have a value
    List {
        #[command(flatten)]
        place: StateDirArg,
        #[arg(long)]
        json: bool,
    },
    /// Delete a secret from the directory
    ///
    /// The next sync takes it out of the cluster, unless the app requires it or the runner has made it up: then the sync fails.
    Remove {
        name: String,
        #[command(flatten)]
        place: StateDirArg,
    },
}

pub(crate) fn run(command: SecretsCommand) -> anyhow::Result<ExitCode> {
    match command {
        SecretsCommand::Set { name, file, place } => {
            let store = directory(&place)?;
            let value = value(file)?;
            if value.trim_ascii().is_empty() {
                bail!("the value is empty: nothing was written");
            }
            if value.len() > SECRET_VALUE_BYTES_MAX {
                bail!("the value has {} bytes; a Kubernetes Secret holds at most 1 MiB", value.len());
            }
            let place = store.set(&name, &value)?;
            println!(
                "{name} is in {}; if the app declares it, the vendor's `ferry installs sync-secrets INSTALL` brings it to the cluster",
                place.display()
            );
        }
        SecretsCommand::List { place, json } => {
            let names = directory(&place)?.names()?;
            if json {
                println!("{}", serde_json::to_string(&names)?);
            } else if names.is_empty() {
                println!("no secrets yet: write one with `ferry-runner secrets set NAME`");
            } else {
                println!("{}", names.join("\n"));
            }
        }
        SecretsCommand::Remove { name, place } => {
            if !directory(&place)?.remove(&name)? {
                bail!("there is no secret `{name}`");
            }
            println!(
                "{name} is removed; the next sync takes it out of the cluster, or fails if the app requires it or the runner has made it up"
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The directory that the runner reads.
fn directory(place: &StateDirArg) -> anyhow::Result<Directory> {
    let state_dir = absolute(&place.state_dir)?;
    let named = StateDir::new(&state_dir).session()?.and_then(|session| session.tools.secret_store);
    match named {
        Some(store) if store.starts_with("vault:") => bail!("this runner's secrets lie in {store}: change them there"),
        Some(directory) => Ok(Directory::named(directory.into())),
        None => Ok(Directory::new(folder(&state_dir))),
    }
}

fn value(file: Option<PathBuf>) -> anyhow::Result<Vec<u8>> {
    if let Some(file) = file {
        return fs_err::read(&file).context("the value");
    }
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        eprintln!("Type the value, then Ctrl-D:");
    }
    let mut bytes = Vec::new();
    stdin.by_ref().take(SECRET_VALUE_BYTES_MAX as u64 + 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}
