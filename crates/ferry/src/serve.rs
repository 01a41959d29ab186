//! `ferry server` and `ferry admin`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use server::Server;
use server::config::ServerConfig;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    config: ConfigFile,
    #[command(subcommand)]
    command: Option<ServerCommand>,
}

#[derive(Args)]
struct ConfigFile {
    /// Configuration file; a FERRY_* variable can set each key, too
    #[arg(long = "config", env = model::env::SERVER_CONFIG)]
    config_file: Option<PathBuf>,
}

impl ConfigFile {
    fn load(&self) -> anyhow::Result<(ServerConfig, Vec<server::config::Explained>)> {
        ServerConfig::load(self.config_file.as_deref(), std::env::vars())
    }
}

#[derive(Subcommand)]
enum ServerCommand {
    /// Print every setting, its value and its origin
    Config,
    /// Print the API document (control or runner)
    Openapi {
        /// `control` or `runner`
        which: String,
    },
}

#[derive(Args)]
pub(crate) struct AdminArgs {
    #[command(flatten)]
    config: ConfigFile,
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Create the first account and print its token once
    Bootstrap {
        /// E-mail address of the account
        #[arg(long)]
        email: String,
    },
    /// Print a one-time link that signs a browser in
    ///
    /// For somebody who can't sign in any more, and where no identity provider is configured.
    SignInLink {
        /// E-mail address or id of the account
        #[arg(long)]
        email: String,
    },
    /// Back up the databases and blobs of embedded storage
    ///
    /// The server can keep running. The backup does not contain the master key.
    Backup {
        /// File to write
        file: PathBuf,
    },
    /// Restore a backup into an empty data directory
    ///
    /// Needs the same master key.
    Restore {
        /// Backup to read
        file: PathBuf,
    },
    /// Create a new master key and encrypt all keys with it
    ///
    /// The file keeps the older master keys for servers that are still running.
    RotateMasterKey,
    /// Check that logs, rows and stored objects are complete
    ///
    /// Changes nothing.
    #[command(alias = "verify-logs")]
    Verify,
    /// Create a new signing key
    ///
    /// The previous key signs it. Running servers use it within a minute.
    RotateSigningKey,
}

pub(crate) fn server(args: ServerArgs, json: bool) -> anyhow::Result<ExitCode> {
    let (config, explained) = args.config.load()?;
    match args.command {
        Some(ServerCommand::Config) => {
            print_config(&explained, json);
            Ok(ExitCode::SUCCESS)
        }
        Some(ServerCommand::Openapi { which }) => {
            let document = match which.as_str() {
                "control" => server::control_openapi(),
                "runner" => server::runner_openapi(),
                other => bail!("there is no API `{other}`; use `control` or `runner`"),
            };
            println!("{}", serde_json::to_string_pretty(&document)?);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(serve(config))
        }
    }
}

fn print_config(explained: &[server::config::Explained], json: bool) {
    if json {
        let all: Vec<_> = explained
            .iter()
            .map(|e| serde_json::json!({ "key": e.key, "value": e.value, "origin": e.origin.to_string() }))
            .collect();
        println!("{}", serde_json::Value::Array(all));
        return;
    }
    let (keys, values) = (width(explained, |e| e.key.len()), width(explained, |e| e.value.len()));
    for e in explained {
        println!("{:<keys$}  {:<values$}  {}", e.key, e.value, e.origin);
    }
}

fn width(explained: &[server::config::Explained], of: impl Fn(&server::config::Explained) -> usize) -> usize {
    explained.iter().map(of).max().unwrap_or(0).min(60)
}

/// Every parked runner holds a connection: as many files as the system lets us have.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Where that is not allowed, the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

async fn serve(config: ServerConfig) -> anyhow::Result<ExitCode> {
    server::start_logs(&config.log);
    raise_file_limit();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = Server::start(config).await?;
    if let Some(link) = &server.first_link {
        eprintln!(
            "There is no account yet. This link creates the first one in a browser; it is good for an hour, once:\n\n  {link}\n"
        );
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn admin(args: AdminArgs) -> anyhow::Result<ExitCode> {
    let (config, _) = args.config.load()?;
    if matches!(args.command, AdminCommand::Bootstrap { .. } | AdminCommand::Restore { .. }) {
        store::private_dir(&config.data_dir)?;
    } else {
        must_exist(&config)?;
    }
    match args.command {
        AdminCommand::SignInLink { email } => {
            let store = server::open_store(&config).await?;
            println!("{}", server::link_for(&store, &config, &email).await?);
            eprintln!("it is good for an hour, once");
        }
        AdminCommand::Backup { file } => {
            let (databases, blobs) = embedded(&config)?;
            let new = file.with_extension("new");
            let size = store::backup(&databases, &blobs, std::io::BufWriter::new(store::private_file(&new, true)?))?;
            fs_err::File::open(&new)?.sync_all()?;
            fs_err::rename(&new, &file)?;
            println!("{}: {} files, {} bytes", file.display(), size.files, size.bytes);
            eprintln!("the master key ({}) is not in it: keep it too, apart", config.master_key_file().display());
        }
        AdminCommand::Restore { file } => {
            let (databases, blobs) = embedded(&config)?;
            let size = store::restore(&databases, &blobs, std::io::BufReader::new(fs_err::File::open(&file)?))?;
            server::open_store(&config).await?;
            println!("restored {} files, {} bytes into {}", size.files, size.bytes, config.data_dir.display());
        }
        AdminCommand::RotateMasterKey => rotate_master_key(&config).await?,
        AdminCommand::Verify => return verify(&server::open_store(&config).await?, config.storage.orphans_s).await,
        AdminCommand::RotateSigningKey => {
            let store = server::open_store(&config).await?;
            let keys = store.rotate_signing_key(server::now()).await?;
            println!("{}", keys.fingerprint());
            eprintln!("new join commands carry this key; runners that trust the old one learn it with their next poll");
        }
        AdminCommand::Bootstrap { email } => {
            let store = server::open_store(&config).await?;
            let token = server::new_token();
            if !server::first_account(&store, &email, token.clone()).await? {
                bail!("there is an account already; make tokens with `ferry tokens create`");
            }
            println!("{token}");
            eprintln!("account {email} was made; the token above is shown this once");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A database that is not there is not one in which all is well.
fn must_exist(config: &ServerConfig) -> anyhow::Result<()> {
    let url = config.database_url();
    if let Some(dir) = url.strip_prefix("sqlite:").map(Path::new)
        && !dir.join("ferry.db").exists()
    {
        bail!(
            "there is no database in {}: name the server's configuration (`ferry admin --config FILE …`, or {})",
            dir.display(),
            model::env::DATA_DIR
        );
    }
    Ok(())
}

/// Logs that are read at once.
const LOGS: u64 = 500;

/// Orphans of each kind that are named one by one.
const ORPHANS: usize = 1000;

async fn verify(store: &store::Store, grace_s: u64) -> anyhow::Result<ExitCode> {
    let whole = verify_logs(store).await?;
    let missing = store.missing_objects().await?;
    for lost in &missing {
        println!("missing: {} ({})", lost.key, lost.of);
    }
    // Younger ones may be of a write that is not over.
    let orphans = store.orphans(server::now().plus_s(-(grace_s as i64)), ORPHANS).await?;
    for orphan in &orphans {
        println!("orphan: {} ({} bytes)", orphan.key, orphan.size_bytes);
    }
    let bytes: u64 = orphans.iter().map(|o| o.size_bytes).sum();
    eprintln!("{} objects are missing; {} objects with {bytes} bytes have no row", missing.len(), orphans.len());
    if !missing.is_empty() {
        eprintln!("copy the missing objects back from a backup of the blob store; see docs/operations.md");
    }
    Ok(if whole && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads every log from its first chunk to its last; whether all are whole.
async fn verify_logs(store: &store::Store) -> anyhow::Result<bool> {
    let (mut logs, mut chunks, mut bad, mut after) = (0, 0, 0, String::new());
    loop {
        let some = store.logs_after(&after, LOGS).await?;
        let Some((_, last)) = some.last() else { break };
        after = last.as_str().to_owned();
        for (org, execution) in some {
            logs += 1;
            match store.verify_log(&execution).await? {
                Ok(count) => chunks += count,
                // Deleted while it was read.
                Err(_) if store.log_state(&execution).await?.deleted_at.is_some() => {}
                Err(wrong) => {
                    bad += 1;
                    println!("{org} {execution}: {wrong}");
                }
            }
        }
    }
    eprintln!("{logs} logs with {chunks} chunks were read; {bad} are not whole");
    Ok(bad == 0)
}

/// Where an embedded store lies; others are backed up with their own tools.
fn embedded(config: &ServerConfig) -> anyhow::Result<(PathBuf, PathBuf)> {
    let database = config.database_url();
    let Some(databases) = database.strip_prefix("sqlite:") else {
        bail!(
            "the database is PostgreSQL: back it up with pg_dump, and the blobs with the tools of their store; see docs/operations.md"
        );
    };
    let blobs = config.blobs_url();
    if blobs.starts_with("s3://") {
        bail!("the blobs lie in S3: back them up there; see docs/operations.md");
    }
    Ok((PathBuf::from(databases), PathBuf::from(blobs.strip_prefix("file://").unwrap_or(&blobs))))
}

async fn rotate_master_key(config: &ServerConfig) -> anyhow::Result<()> {
    if config.secrets.master_key.is_some() {
        bail!(
            "the master key comes from the environment: put a new line `ID:KEY` first there, then run this again with a file"
        );
    }
    let path = config.master_key_file();
    let old = fs_err::read_to_string(&path)?;
    let line = store::MasterKeys::parse(&old)?.new_line();
    server::write_private(&path, &format!("{line}{old}"))?;
    let changed = server::open_store(config).await?.rewrap().await?;
    println!("{changed} keys are wrapped under the new master key, the first line of {}", path.display());
    eprintln!("restart running servers; then the older lines may be removed");
    Ok(())
}
