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
    /// Role in the customer's account that its steps are carried out with, instead of the app's
    #[arg(long)]
    pub role: Option<String>,
    /// Only start it; do not wait for its end
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
    /// Show a runbook: what it asks for, and its steps
    Get {
        name: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
    },
    /// Run a runbook on an install, and wait for its end
    Run {
        name: String,
        /// Install, by name or id
        #[arg(long, short, value_parser = name)]
        install: String,
        /// What the runbook asks for; without `=` its value is taken from the environment here
        #[arg(long, value_name = "INPUT=VALUE", value_parser = variable)]
        input: Vec<(String, String)>,
        /// Environment variable of its scripts; without `=` its value is taken from here
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
    /// All that depends on the component, too
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
    /// Tear it down alone, though others need it
    #[arg(long, requires = "component", conflicts_with = "with_dependents")]
    pub force: bool,
    /// Go on with what does not need a part that failed
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
    /// Go on with what does not need a part that failed
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
    /// Only the sandbox and what stands on it; no new stack
    #[arg(long)]
    pub sandbox: bool,
    /// Leave the components as they are
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
    /// Version of the app; the one before where none is named
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
    /// Deploy again what was deployed there: plan, approve, apply; the sandbox first
    #[arg(long)]
    pub reconcile: bool,
    /// Approve the plans of `--reconcile` without asking
    #[arg(long, short = 'y', requires = "reconcile")]
    pub approve_all: bool,
    /// Only start to look; do not wait for the end
    #[arg(long, short, conflicts_with = "reconcile")]
    pub detach: bool,
}

#[derive(Debug, Clone, Args)]
pub struct SetInstall {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub name: String,
    /// Give the install another name
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub rename: Option<String>,
    /// Whether plans wait for a person
    #[arg(long, value_parser = ["prompt", "approve-all"])]
    pub approvals: Option<String>,
    /// Switch a component on; give it several times for several
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
    /// Cancel a workflow: nothing new begins, what runs is interrupted
    Cancel { id: String },
    /// Approve all plans of a workflow, those to come too
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
        /// Go on without what it would have changed
        #[arg(long)]
        skip: bool,
        /// Without what depends on that, too; needs `--skip`
        #[arg(long, requires = "skip")]
        dependents: bool,
    },
    /// Try a step again that has failed; an apply is planned anew
    Retry { id: String },
    /// Go on without a step that has failed
    Skip { id: String },
    /// Show the log of a step
    Logs {
        id: String,
        #[command(flatten)]
        options: LogOptions,
    },
}
