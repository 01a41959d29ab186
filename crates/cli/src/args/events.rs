//! What is typed about events.

use clap::Args;

use super::values::at_least_one;

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
    /// Show at most this many
    #[arg(long, default_value_t = 100, value_parser = at_least_one, conflicts_with = "follow")]
    pub limit: usize,
}
