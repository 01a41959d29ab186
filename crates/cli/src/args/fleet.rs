//! The fleet and its approvals: the models that the dashboard paints too.

use clap::Args;

#[derive(Debug, Args)]
pub struct FleetArgs {
    /// Part of a name
    pub q: Option<String>,
    /// Selector of labels: `env=prod,tier!=dev`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub labels: Option<String>,
    /// App
    #[arg(long)]
    pub app: Option<String>,
    /// `active`, `inactive`, `pending`, `error` or `unknown`; several with commas
    #[arg(long)]
    pub status: Option<String>,
    /// `drifted` or `none`
    #[arg(long)]
    pub drift: Option<String>,
    /// `pending`, `active`, `offline` or `disabled`
    #[arg(long)]
    pub runner: Option<String>,
    /// `healthy`, `progressing`, `degraded`, `unhealthy`, `unknown` or `unset`
    #[arg(long)]
    pub health: Option<String>,
    /// Version of the app, or `outdated`
    #[arg(long)]
    pub version: Option<String>,
    /// `name`, `changed`, `status`, `version`, `drift`, `runner`, `health` or `app`; `-changed` is the other way round
    #[arg(long, allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Most installs to show
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=500))]
    pub limit: u64,
    /// Show what needs a person instead
    #[arg(long)]
    pub attention: bool,
}

#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    /// App
    #[arg(long)]
    pub app: Option<String>,
    /// Install
    #[arg(long)]
    pub install: Option<String>,
    /// Selector of labels: `env=prod,tier!=dev`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub labels: Option<String>,
    /// Show plans that were answered
    #[arg(long)]
    pub answered: bool,
    /// Most plans to show
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=500))]
    pub limit: u64,
}
