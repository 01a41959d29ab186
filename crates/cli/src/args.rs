//! What can be typed. No logic here, only shapes and the parsing of single values.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use model::{JobGroup, JobId, JobState, JobType, Outcome, Role, Timestamp};

/// For the help of the whole command line.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  it worked
  1  it failed
  2  the command line is wrong
  3  not signed in, or not allowed
  4  there is no such thing
  5  the state of the thing does not allow it, or the name is taken
  6  the control plane can't be reached
  7  the workflow was cancelled
  8  the workflow waits for an approval
  9  something has drifted

A command that waits for a job ends as the job did: 0 finished, the exit
code of the failed step, 124 timed out, 125 unknown, 130 cancelled,
1 anything else.";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    pub json: bool,
    /// Context to use instead of the current one
    #[arg(long, global = true, env = "FERRY_CONTEXT", value_name = "NAME")]
    pub context: Option<String>,
    /// URL of the control plane
    #[arg(long, global = true, env = "FERRY_URL")]
    pub url: Option<String>,
    /// API token
    #[arg(long, global = true, env = "FERRY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Org, by name or id
    #[arg(long, global = true, env = "FERRY_ORG")]
    pub org: Option<String>,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Print lines instead of a live view
    #[arg(long, global = true)]
    pub plain: bool,
    /// PEM file with a CA certificate to trust besides those of the system
    #[arg(long, global = true, env = "FERRY_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

impl std::fmt::Debug for Global {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Global").field("url", &self.url).field("context", &self.context).finish_non_exhaustive()
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sign in and out
    #[command(subcommand)]
    Auth(Auth),
    /// Manage connections to control planes
    #[command(subcommand, visible_alias = "context")]
    Contexts(ContextsCommand),
    /// Orgs: the vendors on this control plane
    #[command(subcommand, visible_alias = "org")]
    Orgs(Orgs),
    /// Apps: the products that you deploy
    #[command(subcommand, visible_alias = "app")]
    Apps(Apps),
    /// Installs: an app running for one customer
    #[command(subcommand, visible_alias = "install")]
    Installs(Installs),
    /// Workflows: deploys and other changes of installs
    #[command(subcommand, visible_alias = "workflow")]
    Workflows(Workflows),
    /// Workflow steps: approve plans, retry failures
    #[command(subcommand, visible_alias = "step")]
    Steps(Steps),
    /// Terraform states: history, restore, locks
    #[command(subcommand, visible_alias = "state")]
    States(States),
    /// Components: the deployable parts of an app
    #[command(subcommand, visible_alias = "component")]
    Components(Components),
    /// Component builds
    #[command(subcommand, visible_alias = "build")]
    Builds(Builds),
    /// Artifacts that builds pushed to the registry
    #[command(subcommand, visible_alias = "artifact")]
    Artifacts(Artifacts),
    /// The control plane's OCI registry
    #[command(subcommand)]
    Registry(Registry),
    /// Logins for git hosts and registries that builds use
    #[command(subcommand, visible_alias = "source")]
    Sources(Sources),
    /// Policies: rules about what may be deployed
    #[command(subcommand, visible_alias = "policy")]
    Policies(Policies),
    /// Actions: scripts that run in an install
    #[command(subcommand, visible_alias = "action")]
    Actions(Actions),
    /// Runbooks: sequences of steps started by a person
    #[command(subcommand, visible_alias = "runbook")]
    Runbooks(Runbooks),
    /// Jobs: the units of work that runners carry out
    #[command(subcommand, visible_alias = "job")]
    Jobs(Jobs),
    /// Show logs
    Logs(Logs),
    /// Runners: the processes that carry out jobs
    #[command(subcommand, visible_alias = "runner")]
    Runners(Runners),
    /// API tokens
    #[command(subcommand, visible_alias = "token")]
    Tokens(Tokens),
    /// List or follow an org's events
    Events(Events),
    /// Show the versions of the CLI and the control plane
    Version,
}

/// The binary wires this: completions need the whole command line.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArgs {
    /// Shell to write completions for
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

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
    Use { name: String },
    /// Show a context
    Show { name: Option<String> },
    /// Delete a context
    Remove { name: String },
}

#[derive(Debug, Subcommand)]
pub enum Orgs {
    /// List orgs
    #[command(visible_alias = "ls")]
    List,
    /// Create an org and select it in the context
    Create {
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
    /// Show an org; the selected one by default
    Get { name: Option<String> },
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

mod apps;
mod builds;
mod installs;
mod policies;
mod states;
mod workflows;

pub(crate) use apps::{AppDir, Apps, GraphFormat, SyncApp, Variables};
pub(crate) use builds::{Artifacts, Builds, Components, CreateBuild, Of, Registry, Sources};
pub(crate) use installs::SyncInstalls;
pub(crate) use policies::{Policies, TestPolicies};
pub(crate) use states::{Part, States};
pub(crate) use workflows::{
    Deploy, Deprovision, Drift, Provision, Reprovision, Rollback, Runbooks, SetInstall, Start, Steps, Teardown,
    Workflows,
};

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
    /// Show or change the inputs of an install; an empty value restores the default
    Inputs {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        #[arg(long = "set", value_name = "INPUT=VALUE", value_parser = key_value)]
        set: Vec<(String, String)>,
        /// Read an input from a file, so that a secret never appears in the process list
        #[arg(long = "set-file", value_name = "INPUT=FILE", value_parser = key_value)]
        set_file: Vec<(String, String)>,
        /// Read this input from standard input
        #[arg(long = "set-stdin", value_name = "INPUT")]
        set_stdin: Option<String>,
        /// Save the inputs without deploying
        #[arg(long)]
        no_deploy: bool,
        /// Approve all plans of the deploy without asking
        #[arg(short = 'y', long, conflicts_with = "no_deploy")]
        approve_all: bool,
    },
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
    /// Change an install's approvals, components or name
    Set(SetInstall),
    /// Change the labels of an install: `env=prod` sets one, `env-` removes one
    Label {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
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
        /// Confirm without being asked
        #[arg(long)]
        yes: bool,
    },
    /// Delete an install's records; nothing in the customer's account changes
    Forget {
        /// Install, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// Even if something is deployed or a workflow is running
        #[arg(long)]
        force: bool,
        /// Confirm without being asked
        #[arg(long)]
        yes: bool,
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
pub struct CreateInstall {
    #[arg(value_parser = name)]
    pub name: String,
    /// App, by name or id
    #[arg(long, value_parser = name)]
    pub app: String,
    #[arg(long, value_name = "REGION", group = "cloud")]
    pub aws_region: Option<String>,
    #[arg(long, value_name = "LOCATION", group = "cloud")]
    pub azure_location: Option<String>,
    #[arg(long, value_name = "PROJECT", group = "cloud", requires = "gcp_region")]
    pub gcp_project: Option<String>,
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

/// A label that is set, or one that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Label {
    Set(String, String),
    Remove(String),
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
    /// An action of the synced app by its name, or anything else that the flags say. Ends with the exit code of the step that
    /// failed. Ctrl-C cancels the job; a second Ctrl-C leaves without waiting.
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
    /// Action of several steps, as TOML; `-` reads stdin
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
    /// Do not wait
    #[arg(long, short)]
    pub detach: bool,
}

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// List jobs, newest first; health checks only with `--type health-check`
    #[command(visible_alias = "ls")]
    List {
        #[arg(long, value_parser = name)]
        install: Option<String>,
        #[arg(long, value_parser = name)]
        runner: Option<String>,
        #[arg(long, value_parser = job_state)]
        status: Option<JobState>,
        #[arg(long = "type", value_name = "TYPE", value_parser = job_type)]
        job_type: Option<JobType>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a job: why it waits, its steps, outputs and executions
    Get { id: JobId },
    /// Cancel a job
    Cancel {
        id: JobId,
        /// Wait until it has ended
        #[arg(long)]
        wait: bool,
    },
    /// Record the outcome of a job whose result is unknown
    Settle {
        id: JobId,
        #[arg(long = "as", value_name = "OUTCOME", value_parser = settled)]
        outcome: Outcome,
        /// Note about what you found
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Wait for a job to end
    Wait { id: JobId },
    /// Delete the log of an ended job permanently
    EraseLog {
        /// Job
        id: JobId,
        /// Confirm without being asked
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct Logs {
    /// Job, step of a workflow, build or log stream
    #[arg(required_unless_present = "install")]
    pub id: Option<String>,
    /// Show what OpenTelemetry exporters sent for this install (see `ferry tokens create --telemetry`)
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    pub install: Option<String>,
    #[command(flatten)]
    pub options: LogOptions,
}

/// What of a log is shown, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct LogOptions {
    /// Follow the log until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// From this time on: a duration back from now (`10m`), or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Up to this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Timestamp>,
    /// Only this step of the job
    #[arg(long)]
    pub step: Option<String>,
    /// Only this pipe; telemetry has logs, traces and metrics
    #[arg(long, value_parser = ["stdout", "stderr", "system", "logs", "traces", "metrics"])]
    pub pipe: Option<String>,
    /// At least this level; what is written to stderr is an error
    #[arg(long, value_parser = ["trace", "debug", "info", "warn", "error", "fatal"])]
    pub level: Option<String>,
    /// Only lines with this text
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Treat the text as a regular expression
    #[arg(long, short = 'E', requires = "grep")]
    pub regex: bool,
    /// Print the raw bytes
    #[arg(long, conflicts_with_all = ["follow", "json", "since", "until", "step", "level", "grep"])]
    pub raw: bool,
    /// Save to a file: text, or records if it ends in `.ndjson`; `.gz` compresses it
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["follow", "json"])]
    pub output: Option<std::path::PathBuf>,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(back) = model::time::parse_duration(text) {
        return Ok(Timestamp::from_system(std::time::SystemTime::now() - back));
    }
    Timestamp::try_from(text.to_owned())
        .map_err(|_| format!("`{text}` is no time: write `10m`, or `2026-01-31T12:00:00Z`"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManifestFormat {
    Systemd,
    Kubernetes,
    /// For a machine that has neither
    Script,
}

#[derive(Debug, Subcommand)]
pub enum Runners {
    /// List runners
    #[command(visible_alias = "ls")]
    List {
        #[arg(long, value_parser = name)]
        install: Option<String>,
    },
    /// Show a runner: its state, groups, disk and last health check
    Get {
        #[arg(value_parser = name)]
        name: String,
    },
    /// Print the command that starts a runner
    JoinCommand {
        #[arg(value_parser = name)]
        name: String,
    },
    /// Write a systemd unit, a Deployment or a script for a runner
    Manifest {
        #[arg(value_parser = name)]
        name: String,
        #[arg(long, value_enum)]
        format: ManifestFormat,
        /// Image of the runner, for Kubernetes
        #[arg(long, default_value = "ferry-runner:latest")]
        image: String,
    },
    /// Stop giving jobs to a runner
    Drain {
        #[arg(value_parser = name)]
        name: String,
    },
    /// Let a drained runner take jobs again
    Resume {
        #[arg(value_parser = name)]
        name: String,
    },
    /// Revoke a runner's session and credentials
    Revoke {
        #[arg(value_parser = name)]
        name: String,
        /// Confirm without being asked
        #[arg(long)]
        yes: bool,
    },
    /// Show or change the settings of a runner
    Settings {
        #[arg(value_parser = name)]
        name: String,
        /// Slots of a job group
        #[arg(long, value_name = "GROUP=SLOTS", value_parser = group_slots)]
        group: Vec<(JobGroup, u32)>,
        /// Take no jobs if less disk space than this is free
        #[arg(long, value_name = "SIZE", value_parser = size)]
        disk_floor: Option<u64>,
        /// Disk quota of one job
        #[arg(long, value_name = "SIZE", value_parser = size)]
        execution_disk: Option<u64>,
        /// Limit on unsent logs on the runner's disk
        #[arg(long, value_name = "SIZE", value_parser = size)]
        spool: Option<u64>,
        /// How long a stopping runner waits for its jobs
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        drain: Option<Duration>,
        /// Interval of health checks; 0 disables them
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        health_check: Option<Duration>,
    },
    /// Check the health of a runner now
    HealthCheck {
        #[arg(value_parser = name)]
        name: String,
        /// Do not wait
        #[arg(long, short)]
        detach: bool,
    },
    /// Run a job that only waits
    Noop {
        #[arg(value_parser = name)]
        name: String,
        #[arg(long, default_value = "0s", value_parser = duration)]
        sleep: Duration,
        /// Do not wait
        #[arg(long, short)]
        detach: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// List tokens
    #[command(visible_alias = "ls")]
    List,
    /// Create a token; it is shown once
    Create {
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
        /// Confirm without being asked
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub struct Events {
    /// Keep printing new events
    #[arg(long, short)]
    pub follow: bool,
    /// Only events after the one with this id
    #[arg(long, value_name = "ID")]
    pub after: Option<String>,
    /// Only this kind, like `job.state`, or a family of kinds, like `job`
    #[arg(long)]
    pub kind: Option<String>,
    /// Most events to list
    #[arg(long, default_value_t = 100, value_parser = at_least_one, conflicts_with = "follow")]
    pub limit: usize,
}

/// A name, or an id, which has the form of a name too.
fn name(text: &str) -> Result<String, String> {
    model::name::check(text).map(|()| text.to_owned())
}

fn key_number(text: &str) -> Result<(String, u64), String> {
    let (key, value) = key_value(text)?;
    Ok((key, value.parse().map_err(|_| format!("`{value}` is not a number"))?))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it as NAME=VALUE".into()),
    }
}

fn label(text: &str) -> Result<Label, String> {
    let label = match (text.split_once('='), text.strip_suffix('-')) {
        (Some((key, value)), _) => Label::Set(key.to_owned(), value.to_owned()),
        (None, Some(key)) => Label::Remove(key.to_owned()),
        (None, None) => return Err("write it as KEY=VALUE, or as KEY- to remove it".into()),
    };
    let (Label::Set(key, _) | Label::Remove(key)) = &label;
    model::labels::check_key(key).map(|()| label)
}

fn selector(text: &str) -> Result<String, String> {
    model::labels::Selector::parse(text).map(|selector| selector.to_string())
}

fn variable(text: &str) -> Result<(String, String), String> {
    if text.contains('=') {
        return key_value(text);
    }
    match std::env::var(text) {
        Ok(value) => Ok((text.to_owned(), value)),
        Err(_) => Err(format!("`{text}` is not set here; write it as KEY=VALUE")),
    }
}

/// A Go duration, or days and weeks.
fn duration(text: &str) -> Result<Duration, String> {
    for (suffix, day_count) in [('d', 1), ('w', 7)] {
        if let Some(count) = text.strip_suffix(suffix).and_then(|n| n.parse::<u32>().ok()) {
            return Ok(Duration::from_secs(u64::from(count) * day_count * 86_400));
        }
    }
    model::time::parse_duration(text)
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(format!("`{unit}` is not a unit; write the size like `512MiB` or `1GiB`")),
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value * scale as f64) as u64),
        Ok(_) | Err(_) => Err("write the size like `512MiB` or `1GiB`".into()),
    }
}

fn cpu_millis(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(cores) if (0.001..=100_000.0).contains(&cores) => Ok((cores * 1000.0).round() as u64),
        Ok(_) | Err(_) => Err("write the number of cores like `0.5` or `2`".into()),
    }
}

fn group_slots(text: &str) -> Result<(JobGroup, u32), String> {
    let (group, slots) = key_value(text).map_err(|_| "write it as GROUP=SLOTS, like `actions=8`")?;
    let known = || JobGroup::ALL.map(JobGroup::as_str).join(", ");
    let group =
        JobGroup::parse(&group).ok_or_else(|| format!("`{group}` is not a job group; there are {}", known()))?;
    Ok((group, slots.parse().map_err(|_| format!("`{slots}` is not a number of slots"))?))
}

fn job_state(text: &str) -> Result<JobState, String> {
    JobState::parse(text).ok_or_else(|| format!("there are {}", JobState::ALL.map(JobState::as_str).join(", ")))
}

fn job_type(text: &str) -> Result<JobType, String> {
    JobType::parse(text).ok_or_else(|| format!("there are {}", JobType::ALL.map(JobType::as_str).join(", ")))
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "there are read-only, operator, admin".into())
}

fn settled(text: &str) -> Result<Outcome, String> {
    match text {
        "finished" => Ok(Outcome::Finished),
        "failed" => Ok(Outcome::Failed),
        "cancelled" => Ok(Outcome::Cancelled),
        _ => Err("there are finished, failed, cancelled".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "ferry")]
    struct Whole {
        #[command(flatten)]
        global: Global,
        #[command(subcommand)]
        command: Command,
    }

    #[test]
    fn the_command_line_is_sound() {
        <Whole as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn what_is_accepted_and_what_not() {
        let good = [
            "actions run --install a --command true",
            "actions run -i a --step one=true --step two=false --json",
            "actions run -i a --script - --env A=1 --secret-env B=2 --timeout 90s --memory 512MiB --cpus 0.5",
            "actions run -i a -c make --git https://x/y --git-ref main --git-dir d --priority -3",
            "--json jobs list --status in-progress --type noop",
            "jobs settle job0123456789abcdefghijklm --as failed",
            "runners settings r --group actions=8 --disk-floor 1GiB --drain 2m --health-check 0",
            "tokens create ci --role read-only --expires 30d",
            "installs create x --app a --gcp-project p --gcp-region r",
            "installs create x --app a --label env=prod",
            "installs list -l env=prod,tier!=dev,team,!old",
            "installs label x env=prod tier-",
            "installs sync a.toml b.toml --app a --yes --wait",
            "installs sync -d dir --app a --plan",
            "logs job0123456789abcdefghijklm -f --pipe stderr",
            "policies test shop --input plan.json --kind terraform_module --component web --policy p --json",
            "policy test --image nginx:1 --metadata m.json",
        ];
        for line in good {
            let parsed = Whole::try_parse_from(std::iter::once("ferry").chain(line.split(' ')));
            assert!(parsed.is_ok(), "{line}: {}", parsed.expect_err("checked"));
        }
        let bad = [
            "actions run --install a",
            "actions run --install a --command x --script y",
            "actions run --install a --command x --source-dir d --git u",
            "actions run --install a --command x --git-ref r",
            "actions run --install a/b --command x",
            "jobs get 17",
            "jobs settle job0123456789abcdefghijklm --as timed-out",
            "installs create x --app a --aws-region r --azure-location l",
            "installs create x --app a --gcp-project p",
            "installs list --selector =x",
            "installs label x",
            "installs label x env",
            "installs sync --app a",
            "installs sync a.toml",
            "installs sync a.toml -d dir --app a",
            "installs sync a.toml --app a --plan --yes",
            "logs job0123456789abcdefghijklm -f --raw",
            "tokens create ci --role root",
            "policies test --input a --image b",
            "policies test --metadata m.json",
            "policies test --kind kubernetes_cluster",
        ];
        for line in bad {
            let parsed = Whole::try_parse_from(std::iter::once("ferry").chain(line.split(' ')));
            assert!(parsed.is_err(), "{line}");
        }
    }

    #[test]
    fn single_values() {
        for (text, expected) in
            [("1", 1), ("1k", 1024), ("512MiB", 512 << 20), ("1.5 GiB", 3 << 29), ("2GB", 2_000_000_000)]
        {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        assert!(size("1 parsec").is_err() && size("big").is_err() && size("").is_err());
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!((cpu_millis("0.5"), cpu_millis("2")), (Ok(500), Ok(2000)));
        assert!(cpu_millis("0").is_err() && cpu_millis("NaN").is_err());
        assert_eq!(group_slots("actions=8"), Ok((JobGroup::Actions, 8)));
        assert!(group_slots("cooking=1").is_err_and(|e| e.contains("health-checks")));
        assert_eq!(key_value("a=b=c"), Ok(("a".into(), "b=c".into())));
    }
}

/// How much of a list is shown: the newest.
#[derive(Debug, Clone, Copy, Args)]
pub struct Limit {
    /// Most to list
    #[arg(long = "limit", value_name = "LIMIT", default_value_t = 20, value_parser = at_least_one)]
    most: usize,
}

impl Limit {
    /// One more than is shown, which tells whether there is more.
    pub(crate) fn fetch(self) -> usize {
        self.most.saturating_add(1)
    }

    /// Leaves what is to be shown; the answer, if any, is what to say below the list.
    pub(crate) fn cut<T>(self, found: &mut Vec<T>) -> Option<String> {
        let more = found.len() > self.most;
        found.truncate(self.most);
        more.then(|| format!("there is more: `--limit {}` shows it", self.most.saturating_mul(10)))
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number from 1 on".to_owned()),
        Ok(n) => Ok(n),
    }
}
