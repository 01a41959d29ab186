//! What is typed about accounts, contexts, orgs and tokens.

use std::time::Duration;

use clap::Subcommand;
use model::Role;

use super::Yes;
use super::values::{duration, key_number, name, role, size};

#[derive(Debug, Subcommand)]
pub enum Auth {
    /// Check a token and store it in a context
    ///
    /// Takes `--url`, `--token`, `--org` and, for the name, `--context`. Without `--token` it is read from stdin.
    Login,
    /// Show who is signed in
    Whoami,
    /// Delete the context's token
    Logout,
}

#[derive(Debug, Subcommand)]
pub enum ContextsCommand {
    /// List contexts
    #[command(visible_alias = "ls")]
    List,
    /// Select a context
    Use {
        /// Context
        name: String,
    },
    /// Show a context
    Show {
        /// Context [default: the current one]
        name: Option<String>,
    },
    /// Delete a context
    Remove {
        /// Context
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Orgs {
    /// List orgs
    #[command(visible_alias = "ls")]
    List,
    /// Create an org and select it in the context
    Create {
        /// Name of the new org
        #[arg(value_parser = name)]
        name: String,
        /// Don't select the new org in the context
        #[arg(long)]
        no_select: bool,
        /// Simulate all jobs: a rehearsal without a cloud
        #[arg(long)]
        simulated: bool,
        /// Simulation setting: `seed`, `step_ms`, `fail_percent`, `drift_percent`; repeatable
        #[arg(long, value_name = "NAME=NUMBER", value_parser = key_number, requires = "simulated")]
        simulation: Vec<(String, u64)>,
    },
    /// Show an org
    Get {
        /// Name or id [default: the selected org]
        name: Option<String>,
    },
    /// Select an org in the context
    Select {
        /// Name or id
        name: String,
    },
    /// Show or change the log retention of the selected org
    Logs {
        /// Delete logs this long after their last line, like `30d`; `0` keeps them
        #[arg(long, value_name = "TIME", value_parser = duration)]
        retention: Option<Duration>,
        /// Limit on all compressed logs, like `20GiB`; `0` means no limit. Beyond it, jobs continue and the log shows gaps
        #[arg(long, value_name = "SIZE", value_parser = size)]
        quota: Option<u64>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// List tokens
    #[command(visible_alias = "ls")]
    List,
    /// Create a token; it is shown once
    Create {
        /// Name of the new token
        #[arg(value_parser = name)]
        name: String,
        /// read-only, operator or admin
        #[arg(long, value_parser = role, required_unless_present = "telemetry")]
        role: Option<Role>,
        /// Create a token for this install's OpenTelemetry exporters, which can only send telemetry to the Runner API
        #[arg(long, value_name = "INSTALL", conflicts_with = "role")]
        telemetry: Option<String>,
        /// Lifetime of the token, like `30d` [default: unlimited]
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires: Option<Duration>,
    },
    /// Revoke a token
    Revoke {
        /// Name or id
        id: String,
        #[command(flatten)]
        yes: Yes,
    },
}
