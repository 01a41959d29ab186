//! `ferry server` and `ferry admin`.

use std::path::PathBuf;
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
    /// The configuration file; every key can also be set by a FERRY_* variable
    #[arg(long = "config", env = "FERRY_SERVER_CONFIG")]
    config_file: Option<PathBuf>,
}

impl ConfigFile {
    fn load(&self) -> anyhow::Result<(ServerConfig, Vec<server::config::Explained>)> {
        ServerConfig::load(self.config_file.as_deref(), std::env::vars())
    }
}

#[derive(Subcommand)]
enum ServerCommand {
    /// Print every setting, its value, and where that came from
    Config,
    /// Print the API document (control or runner)
    Openapi { which: String },
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
    /// Make the first account, and print its token once
    Bootstrap {
        #[arg(long)]
        email: String,
    },
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

async fn serve(config: ServerConfig) -> anyhow::Result<ExitCode> {
    server::start_logs(&config.log);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = Server::start(config).await?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn admin(args: AdminArgs) -> anyhow::Result<ExitCode> {
    let (config, _) = args.config.load()?;
    fs_err::create_dir_all(&config.data_dir)?;
    let store = server::open_store(&config).await?;
    match args.command {
        AdminCommand::Bootstrap { email } => {
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
