//! What is typed about builds, artifacts and where sources come from.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{LogOptions, name};

#[derive(Debug, Subcommand)]
pub enum Builds {
    /// List builds, newest first
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        limit: super::Limit,
    },
    /// Show a build: what it was made of, and what came out
    Get { id: String },
    /// Build a component of the active version, and show its log
    Create(CreateBuild),
    /// Show the log of a build
    Logs {
        id: String,
        #[command(flatten)]
        options: LogOptions,
    },
    /// Cancel a build that has not ended
    Cancel { id: String },
}

/// Which builds or components are meant.
#[derive(Debug, Clone, Args)]
pub struct Of {
    /// App, by name or id
    #[arg(long, short, value_parser = name)]
    pub app: Option<String>,
    /// Component, by name or id
    #[arg(long, short)]
    pub component: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct CreateBuild {
    /// Component, by name or id
    pub component: String,
    /// App, by name or id, where several have a component of that name
    #[arg(long, short, value_parser = name)]
    pub app: Option<String>,
    /// Another branch, tag or commit than the app's files name; of an image: another tag
    #[arg(long = "ref", value_name = "REF")]
    pub reference: Option<String>,
    /// Build even where the source has not moved
    #[arg(long)]
    pub anew: bool,
    /// Only start it
    #[arg(long, short)]
    pub detach: bool,
}

#[derive(Debug, Subcommand)]
pub enum Components {
    /// List components
    #[command(visible_alias = "ls")]
    List {
        /// App, by name or id
        #[arg(long, short, value_parser = name)]
        app: Option<String>,
    },
    /// Show a component and its newest build
    Get {
        /// Name or id
        component: String,
        /// App, by name or id
        #[arg(long, short, value_parser = name)]
        app: Option<String>,
    },
    /// Build a component of the active version, and show its log
    Build(CreateBuild),
}

#[derive(Debug, Subcommand)]
pub enum Artifacts {
    /// List artifacts, newest first
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        limit: super::Limit,
    },
    /// Show what an artifact consists of
    Inspect {
        /// Build by id, or component by name or id (what the active version gives)
        what: String,
        /// App, by name or id
        #[arg(long, short, value_parser = name)]
        app: Option<String>,
    },
    /// Bring an artifact here as an OCI layout: every byte is checked against its digest
    Pull {
        /// Build by id, or component by name or id (what the active version gives)
        what: String,
        /// A directory that does not exist yet
        dir: PathBuf,
        /// App, by name or id
        #[arg(long, short, value_parser = name)]
        app: Option<String>,
    },
    /// Have an install's runner copy an artifact into the install's own registry
    Sync {
        /// Build by id, or component by name or id (what the active version gives)
        what: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
        /// Repository in the install's registry, as `host/path`; without one the runner only checks that it can read the vendor's
        #[arg(long, value_name = "REPOSITORY")]
        to: Option<String>,
        /// That registry speaks HTTP without TLS
        #[arg(long)]
        plain_http: bool,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Registry {
    /// Sign docker, podman, helm, skopeo and oras in to the registry of the control plane
    Login,
    /// Sign them out
    Logout,
    /// Say where the registry is
    Info,
}

#[derive(Debug, Subcommand)]
pub enum Sources {
    /// List the logins that builds use at git hosts and registries
    #[command(visible_alias = "ls")]
    List,
    /// Keep a login; the password is read from stdin
    Login {
        /// The beginning of the addresses that it is for, as `github.com/acme` or `registry.example.com`
        prefix: String,
        #[arg(long, short)]
        username: String,
        /// It is not used after so long, as `1h`: for short-lived tokens
        #[arg(long, value_name = "DURATION", value_parser = super::duration)]
        expires_in: Option<std::time::Duration>,
    },
    /// Forget a login
    Logout { prefix: String },
}
