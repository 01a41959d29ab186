//! What is typed about workflows, their steps, and what starts them.

use clap::{Args, Subcommand};

use super::{LogOptions, name, variable};

/// How a workflow is started.
#[derive(Debug, Clone, Args)]
pub struct Start {
    /// Only show what would change
    #[arg(long)]
    pub plan_only: bool,
    /// Approve all its plans without asking
    #[arg(long, short = 'y')]
    pub approve_all: bool,
    /// Role in the customer's account for its steps, instead of the app's
    #[arg(long)]
    pub role: Option<String>,
    /// Start it and return at once
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
        name: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
    },
    /// Run a runbook on an install
    Run {
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
pub struct Provision {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
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
    /// Deploy the same version again where something drifted: plan, approve, apply
    #[arg(long)]
    pub reconcile: bool,
    /// Approve the plans of `--reconcile` without asking
    #[arg(long, short = 'y', requires = "reconcile")]
    pub approve_all: bool,
    /// Start the drift run and return at once
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
    /// Switch a component on; repeatable
    #[arg(long, value_name = "COMPONENT")]
    pub enable: Vec<String>,
    /// Switch a component off
    #[arg(long, value_name = "COMPONENT")]
    pub disable: Vec<String>,
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
        limit: super::Limit,
    },
    /// Show a workflow and its steps
    Get { id: String },
    /// Follow a workflow to its end; on a terminal, approve from the keyboard
    Watch { id: String },
    /// Cancel a workflow and interrupt its running jobs
    Cancel { id: String },
    /// Approve all plans of a workflow, also later ones
    ApproveAll { id: String },
}

#[derive(Debug, Subcommand)]
pub enum Steps {
    /// Show what a plan would change
    Plan { id: String },
    /// Approve a plan
    Approve {
        id: String,
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Deny a plan
    Deny {
        id: String,
        #[arg(long, default_value = "")]
        note: String,
        /// Deny the plan, skip it, and continue the workflow
        #[arg(long)]
        skip: bool,
        /// Also skip everything that depends on it; needs `--skip`
        #[arg(long, requires = "skip")]
        dependents: bool,
    },
    /// Retry a failed step; an apply gets a new plan
    Retry { id: String },
    /// Skip a failed step
    Skip { id: String },
    /// Show the log of a step
    Logs {
        id: String,
        #[command(flatten)]
        options: LogOptions,
    },
}
