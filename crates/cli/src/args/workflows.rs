//! What is typed about workflows, their steps, actions and runbooks.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::{cpu_millis, duration, key_value, name, size, variable};
use super::{ApproveAll, Limit, LogOptions};

/// How a workflow is started.
#[derive(Debug, Clone, Args)]
pub struct Start {
    /// Only show what would change
    #[arg(long)]
    pub plan_only: bool,
    #[command(flatten)]
    pub yes: ApproveAll,
    /// Role in the customer's account for its steps, instead of the app's
    #[arg(long)]
    pub role: Option<String>,
    /// Return without waiting
    #[arg(long, short)]
    pub detach: bool,
}

#[derive(Debug, Subcommand)]
pub enum Workflows {
    /// List workflows, newest first
    #[command(visible_alias = "ls")]
    List {
        /// Only those of this install
        #[arg(long, short, value_parser = name)]
        install: Option<String>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a workflow and its steps
    Get {
        /// Workflow, by id
        id: String,
    },
    /// Follow a workflow and approve its plans
    Watch {
        /// Workflow, by id
        id: String,
        #[command(flatten)]
        yes: ApproveAll,
    },
    /// Cancel a workflow and interrupt its running jobs
    Cancel {
        /// Workflow, by id
        id: String,
    },
    /// Approve all current and future plans
    ApproveAll {
        /// Workflow, by id
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum Steps {
    /// Show what a plan would change
    Plan {
        /// Step, by id
        id: String,
    },
    /// Approve a plan
    Approve {
        /// Step, by id
        id: String,
        /// Note about the decision
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Deny a plan
    Deny {
        /// Step, by id
        id: String,
        /// Note about the decision
        #[arg(long, default_value = "")]
        note: String,
        /// Continue the workflow without the step
        #[arg(long)]
        skip: bool,
        /// With `--skip`: also skip everything that depends on the step
        #[arg(long, requires = "skip")]
        dependents: bool,
    },
    /// Retry a failed step; an apply is planned again
    Retry {
        /// Step, by id
        id: String,
    },
    /// Skip a failed step
    Skip {
        /// Step, by id
        id: String,
    },
    /// Show the log of a step
    Logs {
        /// Step, by id
        id: String,
        #[command(flatten)]
        options: LogOptions,
    },
}

#[derive(Debug, Subcommand)]
pub enum Actions {
    /// List the actions of an install's app, each with its last run
    #[command(visible_alias = "ls")]
    List {
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
    },
    /// Run an action in an install
    ///
    /// Runs an action of the synced app by name, or a command, script or file that you pass. Exits with the exit code of the failed
    /// step. Ctrl-C cancels the job; a second Ctrl-C exits without waiting.
    Run(Box<RunAction>),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false))]
pub struct RunAction {
    /// Install, by name or id
    #[arg(long, short, value_parser = name)]
    pub install: String,
    /// Action of the synced app, by name
    #[arg(group = "what")]
    pub action: Option<String>,
    /// Command line for `sh -c`
    #[arg(long, short, group = "what")]
    pub command: Option<String>,
    /// Script with any shebang; `-` reads stdin
    #[arg(long, value_name = "FILE", group = "what")]
    pub script: Option<PathBuf>,
    /// Action file, with the keys of an app's action; `-` reads stdin
    #[arg(long, short, value_name = "ACTION.toml", group = "what")]
    pub file: Option<PathBuf>,
    /// Run this command as a step; repeatable
    #[arg(long, value_name = "NAME=COMMAND", group = "what", value_parser = key_value)]
    pub step: Vec<(String, String)>,
    /// Name of the action in lists
    #[arg(long, conflicts_with = "action")]
    pub name: Option<String>,
    /// Environment variable; without `=`, the value comes from this shell
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Environment variable whose value is masked in the log
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable)]
    pub secret_env: Vec<(String, String)>,
    /// Role in the customer's account, instead of the app's
    #[arg(long, requires = "action")]
    pub role: Option<String>,
    /// Time limit of the action [default: 5m]
    #[arg(long, value_parser = duration, conflicts_with = "action")]
    pub timeout: Option<Duration>,
    /// Directory to upload (without `.git`); commands run in it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["git", "action"])]
    pub source_dir: Option<PathBuf>,
    /// Git repository that the runner clones; commands run in it
    #[arg(long, value_name = "URL", conflicts_with = "action")]
    pub git: Option<String>,
    /// Branch, tag or commit
    #[arg(long, value_name = "REF", requires = "git")]
    pub git_ref: Option<String>,
    /// Directory inside the repository
    #[arg(long, value_name = "DIR", requires = "git")]
    pub git_dir: Option<String>,
    /// Jobs of the same target never run at the same time
    #[arg(long, conflicts_with = "action")]
    pub target: Option<String>,
    /// Jobs with a higher priority run first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, conflicts_with = "action")]
    pub priority: i64,
    /// Memory limit, like `512MiB`
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "action")]
    pub memory: Option<u64>,
    /// Limit on processes
    #[arg(long, value_name = "N", conflicts_with = "action")]
    pub processes: Option<u64>,
    /// Cores, like `0.5`
    #[arg(long, value_name = "CORES", value_parser = cpu_millis, conflicts_with = "action")]
    pub cpus: Option<u64>,
    /// Limit on files that the action writes, like `1GiB`
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "action")]
    pub disk: Option<u64>,
    /// Return without waiting
    #[arg(long, short)]
    pub detach: bool,
}

#[derive(Debug, Subcommand)]
pub enum Runbooks {
    /// List the runbooks of an install's app
    #[command(visible_alias = "ls")]
    List {
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
    },
    /// Show a runbook's inputs and steps
    Get {
        /// Name of the runbook
        name: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
    },
    /// Run a runbook on an install
    Run {
        /// Name of the runbook
        name: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
        /// Input of the runbook; without `=`, the value comes from this shell
        #[arg(long, value_name = "INPUT=VALUE", value_parser = variable)]
        input: Vec<(String, String)>,
        /// Environment variable for its scripts; without `=`, the value comes from this shell
        #[arg(long, short, value_name = "KEY=VALUE", value_parser = variable)]
        env: Vec<(String, String)>,
        #[command(flatten)]
        start: Start,
    },
}
