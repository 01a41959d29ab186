//! What is typed about components, builds, artifacts and where sources come from.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{duration, name};
use super::{Limit, LogOptions};

#[derive(Debug, Subcommand)]
pub enum Builds {
    /// List builds, newest first
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a build
    Get {
        /// Build, by id
        id: String,
    },
    /// Build a component of the active version, and show its log
    Create(CreateBuild),
    /// Show the log of a build
    Logs {
        /// Build, by id
        id: String,
        #[command(flatten)]
        options: LogOptions,
    },
    /// Cancel a build that has not ended
    Cancel {
        /// Build, by id
        id: String,
    },
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
    /// Branch, tag or commit to build instead of the one in the app's files; for an image, the tag
    #[arg(long = "ref", value_name = "REF")]
    pub reference: Option<String>,
    /// Build even if the source has not changed
    #[arg(long)]
    pub anew: bool,
    /// Return without waiting
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
        limit: Limit,
    },
    /// Show the contents of an artifact
    Inspect {
        /// Build id, or component name or id (its build in the active version)
        what: String,
        /// App, by name or id
        #[arg(long, short, value_parser = name)]
        app: Option<String>,
    },
    /// Download an artifact as an OCI layout
    Pull {
        /// Build id, or component name or id (its build in the active version)
        what: String,
        /// A directory that does not exist yet
        dir: PathBuf,
        /// App, by name or id
        #[arg(long, short, value_parser = name)]
        app: Option<String>,
    },
    /// Copy an artifact into an install's own registry
    Sync {
        /// Build id, or component name or id (its build in the active version)
        what: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
        /// Repository in the install's registry, as `host/path`; without it, the runner only checks that it can read the artifact
        #[arg(long, value_name = "REPOSITORY")]
        to: Option<String>,
        /// The registry uses HTTP without TLS
        #[arg(long)]
        plain_http: bool,
    },
}

#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Registry {
    /// Sign docker, podman, helm, skopeo and oras in
    Login,
    /// Sign these tools out
    Logout,
    /// Show the registry's address
    Info,
}

#[derive(Debug, Subcommand)]
pub enum Sources {
    /// List the logins that builds use at git hosts and registries
    #[command(visible_alias = "ls")]
    List,
    /// Store a login; the password is read from stdin
    Login {
        /// Address prefix that the login is for, like `github.com/acme` or `registry.example.com`
        prefix: String,
        /// User name
        #[arg(long, short)]
        username: String,
        /// Stop using the login after this long, like `1h`
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        expires_in: Option<std::time::Duration>,
    },
    /// Delete a login
    Logout {
        /// Address prefix of the login
        prefix: String,
    },
}
