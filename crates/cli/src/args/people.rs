//! What is typed about accounts, contexts, orgs and tokens.

use std::time::Duration;

use clap::Subcommand;
use model::Role;

use super::Yes;
use super::values::{duration, key_number, name, role, size};

#[derive(Debug, Subcommand)]
pub enum Auth {
    /// Sign in with a browser, a code or a token
    ///
    /// Opens the browser of this machine; without one, shows a code that you type in any browser. `--token`, or a token on stdin,
    /// signs in without a person. Takes `--url`, `--org` and, for the name, `--context`.
    Login {
        /// Show a code to type in a browser on another machine
        #[arg(long)]
        device: bool,
        /// Print the link, but don't open it in a browser
        #[arg(long, conflicts_with = "device")]
        no_open: bool,
    },
    /// Show who is signed in
    Whoami,
    /// List where you are signed in
    Sessions {
        /// End this session, by id
        #[arg(long, value_name = "ID")]
        end: Option<String>,
        /// End all of them, this one too
        #[arg(long, conflicts_with = "end")]
        all: bool,
    },
    /// Print a one-time link that signs a browser in as you
    Link {
        /// Page to open, such as `/o/acme/approvals`
        #[arg(long, value_name = "PATH")]
        to: Option<String>,
    },
    /// Sign out, and delete the context's token
    Logout {
        /// Sign out everywhere: all browsers and CLIs
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Members {
    /// List the people of the org
    #[command(visible_alias = "ls")]
    List,
    /// Change a member's role
    Role {
        /// E-mail address or id
        member: String,
        /// read-only, approver, operator or admin
        #[arg(value_parser = role)]
        role: Role,
    },
    /// Remove a member, and sign the person out everywhere
    Remove {
        /// E-mail address or id
        member: String,
        #[command(flatten)]
        yes: Yes,
    },
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
        /// Simulation setting: `seed`, `step_ms`, `fail_percent`, `drift_percent`, `unknown_percent`, `resources`; repeatable
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
    /// Invite somebody to the selected org
    Invite {
        /// E-mail address
        email: String,
        /// read-only, approver, operator or admin
        #[arg(long, value_parser = role, default_value = "read-only")]
        role: Role,
    },
    /// List the invites of the selected org
    Invites,
    /// Revoke an invite
    RevokeInvite {
        /// E-mail address or id
        invite: String,
        #[command(flatten)]
        yes: Yes,
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
        /// read-only, approver, operator or admin
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
