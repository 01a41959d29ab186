//! What is typed about installs that are kept in files.

use std::path::PathBuf;

use clap::Args;

use super::{key_value, name};

#[derive(Debug, Clone, Args)]
pub struct SyncInstalls {
    /// Files of installs
    #[arg(required_unless_present = "dir")]
    pub files: Vec<PathBuf>,
    /// Directory whose TOML files are installs, or an app's directory, which has them in `installs`
    #[arg(long, short, conflicts_with = "files")]
    pub dir: Option<PathBuf>,
    /// App, by name or id
    #[arg(long, value_parser = name)]
    pub app: String,
    /// Confirm without being asked
    #[arg(long, short)]
    pub yes: bool,
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
