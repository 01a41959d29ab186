//! What can be typed. No logic here, only shapes: a file for each room of `commands`, and `values` for the parsing of single values.

mod apps;
mod events;
mod fleet;
mod health;
mod installs;
mod jobs;
mod logs;
mod people;
mod registry;
mod runners;
mod terraform;
mod values;
mod workflows;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) use apps::{AppDir, Apps, GraphFormat, Policies, SyncApp, TestPolicies, Variables};
pub(crate) use events::Events;
pub(crate) use fleet::{ApprovalsArgs, FleetArgs};
pub(crate) use health::Health;
pub(crate) use installs::{
    CreateInstall, Drift, InstallHealth, Installs, Overrides, Rollback, SetInstall, SyncInstalls, Teardown,
};
pub(crate) use jobs::Jobs;
pub(crate) use logs::{LogOptions, Logs};
pub(crate) use people::{Auth, ContextsCommand, Members, Orgs, Tokens};
pub(crate) use registry::{Artifacts, Builds, Components, CreateBuild, Of, Registry, Sources};
pub(crate) use runners::{ManifestFormat, Runners};
pub(crate) use terraform::{Part, States};
pub(crate) use values::Label;
pub(crate) use workflows::{Actions, RunAction, Runbooks, Start, Steps, Workflows};

/// For the help of the whole command line.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure
  2  invalid command line
  3  not signed in, or not allowed
  4  not found
  5  conflict: the object's state doesn't allow it, or the name is taken
  6  can't reach the control plane
  7  the workflow was cancelled
  8  the workflow waits for an approval
  9  drift found

A command that waits for a job exits with the job's result: 0 if it finished,
the exit code of the failed step, 124 if it timed out, 125 if the result is
unknown, 130 if it was cancelled, 1 for anything else.";

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
    #[arg(long, global = true, env = model::env::CONTEXT, value_name = "NAME")]
    pub context: Option<String>,
    /// URL of the control plane
    #[arg(long, global = true, env = model::env::URL)]
    pub url: Option<String>,
    /// API token
    #[arg(long, global = true, env = model::env::TOKEN, hide_env_values = true)]
    pub token: Option<String>,
    /// Org, by name or id
    #[arg(long, global = true, env = model::env::ORG)]
    pub org: Option<String>,
    /// Print whole ids, exact times and all columns in tables
    #[arg(long, global = true)]
    pub wide: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Print lines instead of a live view
    #[arg(long, global = true)]
    pub plain: bool,
    /// PEM file with a CA certificate to trust besides those of the system
    #[arg(long, global = true, env = model::env::CA_FILE, value_name = "FILE")]
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
    /// Members: the people of an org and their roles
    #[command(subcommand, visible_alias = "member")]
    Members(Members),
    /// Apps: the products that you deploy
    #[command(subcommand, visible_alias = "app")]
    Apps(Apps),
    /// Installs: an app running for one customer
    #[command(subcommand, visible_alias = "install")]
    Installs(Installs),
    /// Fleet: all installs at a glance
    Fleet(FleetArgs),
    /// Approvals: plans that wait for a person
    Approvals(ApprovalsArgs),
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
    /// Health: how well deployed objects are
    #[command(subcommand)]
    Health(Health),
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

/// For every command that asks, and only by way of this: the same flag with the same meaning everywhere.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Yes {
    /// Go ahead without asking
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Yes {
    pub(crate) fn given(self) -> bool {
        self.yes
    }
}

/// For what starts workflows: the questions are whether to approve its plans.
#[derive(Debug, Clone, Copy, Args)]
pub struct ApproveAll {
    /// Go ahead without asking
    #[arg(long, short = 'y', visible_alias = "approve-all")]
    yes: bool,
}

impl ApproveAll {
    pub(crate) fn given(self) -> bool {
        self.yes
    }
}

/// How much of a list is shown: the newest.
#[derive(Debug, Clone, Copy, Args)]
pub struct Limit {
    /// Show at most this many
    #[arg(long = "limit", value_name = "LIMIT", default_value_t = 20, value_parser = values::at_least_one)]
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
        more.then(|| format!("more exist; pass `--limit {}` to see them", self.most.saturating_mul(10)))
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
}
