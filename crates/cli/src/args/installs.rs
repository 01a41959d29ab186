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
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Wait for the end of the workflows that this starts
    #[arg(long, short)]
    pub wait: bool,
    /// Only show what would change
    #[arg(long, conflicts_with_all = ["yes", "wait"])]
    pub plan: bool,
    /// Sensitive input of installs that are created: its value does not belong into a file
    #[arg(long = "input", value_name = "INPUT=VALUE", value_parser = key_value)]
    pub inputs: Vec<(String, String)>,
    /// Take over installs that something else keeps
    #[arg(long)]
    pub take_over: bool,
}
