//! What is typed about installs, their files, and what changes them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{Label, key_value, label, name, selector};
use super::{ApproveAll, Limit, Start, Yes};

#[derive(Debug, Subcommand)]
pub enum Installs {
    /// List installs
    #[command(visible_alias = "ls")]
    List {
        /// Only those of this app
        #[arg(long, value_parser = name)]
        app: Option<String>,
        /// Only installs with matching labels, like `env=prod,tier!=dev,team,!old`
        #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = selector)]
        selector: Option<String>,
    },
    /// Create an install
    Create(CreateInstall),
    /// Create and update installs from files
    ///
    /// Shows the changes, asks, and applies them. Syncing the same files again changes nothing.
    Sync(SyncInstalls),
    /// Write an install as a file for `sync`, without sensitive inputs
    Export {
        /// Name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Show an install
    Get {
        /// Name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Show or change the inputs of an install
    ///
    /// An empty value restores the default. Saving inputs deploys the components that read them.
    Inputs {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// Set an input; repeatable
        #[arg(long = "set", value_name = "INPUT=VALUE", value_parser = key_value)]
        set: Vec<(String, String)>,
        /// Read an input from a file, so that a secret never appears in the process list
        #[arg(long = "set-file", value_name = "INPUT=FILE", value_parser = key_value)]
        set_file: Vec<(String, String)>,
        /// Read this input from standard input
        #[arg(long = "set-stdin", value_name = "INPUT")]
        set_stdin: Option<String>,
        /// Save the inputs without deploying
        #[arg(long, conflicts_with = "yes")]
        no_deploy: bool,
        #[command(flatten)]
        yes: ApproveAll,
    },
    /// Show or change what an install lays over settings of its components
    ///
    /// A file is YAML over the values of a chart, or HCL or JSON over the variables of a Terraform module. It wins over everything
    /// that the app sets. Saving overrides deploys their components.
    Overrides(Overrides),
    /// Provision an install: stack, sandbox, components
    Provision(Provision),
    /// Deploy one or all components of an install
    Deploy(Deploy),
    /// Tear down one or all components of an install
    Teardown(Teardown),
    /// Provision an install again
    Reprovision(Reprovision),
    /// Deprovision an install: components, then the sandbox
    Deprovision(Deprovision),
    /// Roll back to an earlier version of the app
    Rollback(Rollback),
    /// Compare an install with what was deployed
    ///
    /// Changes nothing unless `--reconcile` is given. Exits with 9 if something has drifted.
    Drift(Drift),
    /// Show how well the components of an install are
    ///
    /// Verdicts: healthy, progressing, degraded (it works, but not as it should), unhealthy (it does not serve), unknown (nobody can
    /// tell), not-applicable. Uptime is that of the last 90 days; time of which nothing is known does not count.
    Health(InstallHealth),
    /// Change an install's approvals, components or name
    Set(SetInstall),
    /// Change the labels of an install
    ///
    /// `env=prod` sets a label, `env-` removes it.
    Label {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// Labels to set or remove
        #[arg(required = true, value_name = "KEY=VALUE|KEY-", value_parser = label)]
        labels: Vec<Label>,
    },
    /// Show the state of an install, as its templates see it
    State {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// Show this version of the state
        #[arg(long)]
        version: Option<u64>,
        /// List the versions, newest first, with their changes
        #[arg(long, conflicts_with = "version")]
        versions: bool,
    },
    /// List the components of an install with their last deploy
    Components {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// List the secrets of an install, and where they were written
    Secrets {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Copy the customer's secrets of an install to its cluster
    SyncSecrets(SyncSecrets),
    /// List the schedules of an install and their last runs
    Schedules {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// List policy reports of an install, newest first
    Policies {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        #[command(flatten)]
        limit: Limit,
    },
    /// Delete an install's telemetry permanently
    EraseTelemetry {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        #[command(flatten)]
        yes: Yes,
    },
    /// Delete an install's records
    ///
    /// Nothing in the customer's account changes.
    Forget {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// Delete them even if something is deployed or a workflow is running
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        yes: Yes,
    },
    /// List the workflows of an install, newest first
    History {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        #[command(flatten)]
        limit: Limit,
    },
}

#[derive(Debug, Args)]
pub struct Overrides {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Print what is laid over this component
    #[arg(value_parser = name, conflicts_with_all = ["set", "unset"])]
    pub component: Option<String>,
    /// Lay a file over a component's settings, in place of the one before; `-` reads standard input; repeatable
    #[arg(long = "set", value_name = "COMPONENT=FILE", value_parser = key_value)]
    pub set: Vec<(String, String)>,
    /// Remove what is laid over this component; repeatable
    #[arg(long = "unset", value_name = "COMPONENT", value_parser = name)]
    pub unset: Vec<String>,
    /// Save the overrides without deploying
    #[arg(long, conflicts_with = "yes")]
    pub no_deploy: bool,
    #[command(flatten)]
    pub yes: ApproveAll,
}

#[derive(Debug, Args)]
pub struct CreateInstall {
    /// Name of the new install
    #[arg(value_parser = name)]
    pub name: String,
    /// App, by name or id
    #[arg(long, value_parser = name)]
    pub app: String,
    /// Run in this AWS region
    #[arg(long, value_name = "REGION", group = "cloud")]
    pub aws_region: Option<String>,
    /// Run in this Azure location
    #[arg(long, value_name = "LOCATION", group = "cloud")]
    pub azure_location: Option<String>,
    /// Run in this GCP project; needs `--gcp-region`
    #[arg(long, value_name = "PROJECT", group = "cloud", requires = "gcp_region")]
    pub gcp_project: Option<String>,
    /// Region of the GCP project
    #[arg(long, value_name = "REGION", requires = "gcp_project")]
    pub gcp_region: Option<String>,
    /// Input of the app; repeatable
    #[arg(long = "input", value_name = "INPUT=VALUE", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
    /// Read an input from a file, so that a secret never appears in the process list
    #[arg(long = "input-file", value_name = "INPUT=FILE", value_parser = key_value)]
    pub input_files: Vec<(String, String)>,
    /// Read this input from standard input
    #[arg(long = "input-stdin", value_name = "INPUT")]
    pub input_stdin: Option<String>,
    /// Label; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, Args)]
pub struct SyncInstalls {
    /// Install files
    #[arg(required_unless_present = "dir")]
    pub files: Vec<PathBuf>,
    /// Directory of install files, or an app's directory with an `installs` directory in it
    #[arg(long, short, conflicts_with = "files")]
    pub dir: Option<PathBuf>,
    /// App, by name or id
    #[arg(long, value_parser = name)]
    pub app: String,
    #[command(flatten)]
    pub yes: Yes,
    /// Wait for the workflows to end
    #[arg(long, short)]
    pub wait: bool,
    /// Only show what would change
    #[arg(long, conflicts_with_all = ["yes", "wait"])]
    pub plan: bool,
    /// Sensitive input for new installs, since sensitive values can't be stored in install files
    #[arg(long = "input", value_name = "INPUT=VALUE", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
    /// Take over installs that another tool manages
    #[arg(long)]
    pub take_over: bool,
}

#[derive(Debug, Clone, Args)]
pub struct Provision {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct Deploy {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Only this component
    #[arg(long, short)]
    pub component: Option<String>,
    /// Also everything that depends on the component
    #[arg(long, requires = "component")]
    pub dependents: bool,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct Teardown {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Only this component
    #[arg(long, short)]
    pub component: Option<String>,
    /// Tear down the components that need it first
    #[arg(long, requires = "component")]
    pub with_dependents: bool,
    /// Tear it down even though other components need it
    #[arg(long, requires = "component", conflicts_with = "with_dependents")]
    pub force: bool,
    /// Continue with components that don't depend on a failed one
    #[arg(long, conflicts_with = "component")]
    pub continue_on_error: bool,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct Reprovision {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Only the sandbox and the components, without the stack
    #[arg(long)]
    pub sandbox: bool,
    /// Don't deploy the components
    #[arg(long, requires = "sandbox")]
    pub skip_components: bool,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct SyncSecrets {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct Deprovision {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Continue with components that don't depend on a failed one
    #[arg(long)]
    pub continue_on_error: bool,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct Rollback {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Version of the app [default: the previous one that succeeded]
    #[arg(long, value_name = "VERSION")]
    pub to: Option<u64>,
    /// Only this component
    #[arg(long, short)]
    pub component: Option<String>,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Debug, Clone, Args)]
pub struct Drift {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Only this component
    #[arg(long, short, conflicts_with = "sandbox")]
    pub component: Option<String>,
    /// Only the sandbox
    #[arg(long)]
    pub sandbox: bool,
    /// Deploy the same version again where something has drifted
    #[arg(long)]
    pub reconcile: bool,
    #[command(flatten)]
    pub yes: ApproveAll,
    /// Return without waiting
    #[arg(long, short, conflicts_with = "reconcile")]
    pub detach: bool,
}

#[derive(Debug, Clone, Args)]
pub struct SetInstall {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Rename the install
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub rename: Option<String>,
    /// Whether plans wait for an approval
    #[arg(long, value_parser = ["prompt", "approve-all"])]
    pub approvals: Option<String>,
    /// Turn on a component; repeatable
    #[arg(long, value_name = "COMPONENT")]
    pub enable: Vec<String>,
    /// Turn off a component; repeatable
    #[arg(long, value_name = "COMPONENT")]
    pub disable: Vec<String>,
}

#[derive(Debug, Args)]
pub struct InstallHealth {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Show changes as they happen
    #[arg(long, conflicts_with = "history")]
    pub watch: bool,
    /// Show how verdicts have changed, newest first
    #[arg(long)]
    pub history: bool,
    /// Only the history of this component
    #[arg(long, short, value_parser = name, requires = "history")]
    pub component: Option<String>,
    /// Most lines of history
    #[arg(long, default_value_t = 30, requires = "history")]
    pub limit: usize,
}
