//! What is typed about apps, their variables and policies.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use policy::PolicyKind;

use super::values::{key_value, name};
use super::{Limit, Yes};

#[derive(Debug, Subcommand)]
pub enum Apps {
    /// List apps
    #[command(visible_alias = "ls")]
    List,
    /// Create an app
    Create {
        /// Name of the new app
        #[arg(value_parser = name)]
        name: String,
        /// Description of the app
        #[arg(long, default_value = "")]
        description: String,
    },
    /// Show an app
    Get {
        /// Name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Create a commented example app in a new directory
    Init {
        /// Directory to create; its name becomes the app's name
        dir: PathBuf,
    },
    /// Check an app's files and report every problem
    Validate(AppDir),
    /// Check an app's files, show the changes, and activate them
    ///
    /// The directory's name is the app's name. Creates the app if it does not exist yet.
    Sync(SyncApp),
    /// Show the dependency graph of the components
    Graph {
        #[command(flatten)]
        dir: AppDir,
        /// Output format
        #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
        format: GraphFormat,
    },
    /// List the versions of an app, newest first
    Configs {
        /// Name or id
        #[arg(value_parser = name)]
        app: String,
        #[command(flatten)]
        limit: Limit,
    },
    /// Compare two versions, or a directory with the active version
    Diff {
        /// App, by name or id, or its directory
        app: String,
        /// The older version [default: the one before]
        from: Option<String>,
        /// The newer version [default: the active one]
        to: Option<String>,
        /// App to compare a directory with [default: the directory's name]
        #[arg(long = "app", value_name = "APP", value_parser = name)]
        with: Option<String>,
    },
    /// Render a component or action for an install; secrets are masked
    Render {
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
        /// Name of the component
        #[arg(required_unless_present = "action", conflicts_with = "action")]
        component: Option<String>,
        /// Name of an action instead
        #[arg(long)]
        action: Option<String>,
    },
    /// List the components of an app
    Components {
        /// Name or id
        #[arg(value_parser = name)]
        app: String,
    },
    /// Retire a component or action that was removed from the app's files
    Retire {
        /// App, by name or id
        #[arg(value_parser = name)]
        app: String,
        /// Name of the component or action
        what: String,
        #[command(flatten)]
        yes: Yes,
    },
    /// Variables of an app, which all its installs see
    #[command(subcommand, visible_alias = "variable")]
    Variables(Variables),
    /// Rename an app
    Rename {
        /// Name or id
        #[arg(value_parser = name)]
        app: String,
        /// New name
        #[arg(value_parser = name)]
        to: String,
    },
    /// Delete an app that has no installs, with all its versions
    Delete {
        /// Name or id
        #[arg(value_parser = name)]
        app: String,
        #[command(flatten)]
        yes: Yes,
    },
}

#[derive(Debug, Clone, Args)]
pub struct AppDir {
    /// Directory of the app
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Treat unknown keys as errors
    #[arg(long)]
    pub strict: bool,
    /// Fetch remote files again and update their pins
    #[arg(long)]
    pub update_lock: bool,
}

#[derive(Debug, Clone, Args)]
pub struct SyncApp {
    #[command(flatten)]
    pub dir: AppDir,
    /// App name [default: the directory's name]
    #[arg(long, value_parser = name)]
    pub app: Option<String>,
    /// Only show what would change
    #[arg(long)]
    pub plan: bool,
    /// Return without waiting for the builds
    #[arg(long)]
    pub no_wait: bool,
    /// Check on every save, and sync if there is no error
    #[arg(long, conflicts_with = "plan")]
    pub watch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    Text,
    Dot,
    Mermaid,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Variables {
    /// List the variables of an app, without their values
    #[command(visible_alias = "ls")]
    List {
        /// App, by name or id
        #[arg(value_parser = name)]
        app: String,
    },
    /// Set variables
    Set {
        /// App, by name or id
        #[arg(value_parser = name)]
        app: String,
        /// Variables to set
        #[arg(value_name = "NAME=VALUE", required_unless_present = "stdin", value_parser = key_value)]
        variables: Vec<(String, String)>,
        /// Read this variable from stdin, so that a secret never appears in the process list
        #[arg(long, value_name = "NAME")]
        stdin: Option<String>,
    },
    /// Delete a variable
    Unset {
        /// App, by name or id
        #[arg(value_parser = name)]
        app: String,
        /// Name of the variable
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Policies {
    /// Test an app's Rego policies on a plan, manifests or an image
    ///
    /// Runs the rules `test_…` in `NAME_test.rego` beside `NAME.rego`. Exits with 1 if a policy denies the input or a test fails.
    /// Needs no control plane.
    Test(Box<TestPolicies>),
}

#[derive(Debug, Args)]
pub struct TestPolicies {
    /// Directory of the app
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Only this policy
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Plan (`terraform show -json`), or Kubernetes objects as YAML or JSON; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Image to evaluate
    #[arg(long, value_name = "NAME:TAG", conflicts_with = "input")]
    pub image: Option<String>,
    /// Image metadata as JSON, like `signed` and `sbom`
    #[arg(long, value_name = "FILE", requires = "image")]
    pub metadata: Option<PathBuf>,
    /// Only policies of this type [default: all that apply to the input]
    #[arg(long, value_name = "TYPE", value_parser = kind)]
    pub kind: Option<PolicyKind>,
    /// Only policies that apply to this component
    #[arg(long, value_name = "NAME")]
    pub component: Option<String>,
}

fn kind(text: &str) -> Result<PolicyKind, String> {
    PolicyKind::parse(text).filter(|kind| kind.is_rego()).ok_or_else(|| {
        let rego: Vec<&str> = PolicyKind::ALL.iter().filter(|kind| kind.is_rego()).map(|kind| kind.as_str()).collect();
        format!("expected one of {}", rego.join(", "))
    })
}
