//! What is typed about Terraform's states.

use clap::{Args, Subcommand};

use super::name;

#[derive(Debug, Subcommand)]
pub enum States {
    /// List the states of an install: of its sandbox, and of each component that is a Terraform module
    #[command(visible_alias = "ls")]
    List {
        /// Install, by name or id
        #[arg(value_parser = name)]
        install: String,
    },
    /// Show every state that a part of an install ever had, newest first
    History {
        #[command(flatten)]
        of: Part,
        #[command(flatten)]
        limit: super::Limit,
    },
    /// Show the resources of a state; values are sealed with a key that only the customer has
    Show {
        #[command(flatten)]
        of: Part,
        /// An earlier state, by the id that `history` shows
        #[arg(long, value_name = "ID")]
        revision: Option<String>,
    },
    /// Make an earlier state, or one that was kept beside, the current one again
    ///
    /// It becomes the state under the next serial. Nothing in the customer's account changes: the next plan shows what differs.
    Restore {
        #[command(flatten)]
        of: Part,
        /// The state, by the id that `history` shows
        #[arg(long, value_name = "ID")]
        revision: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Only start it; do not wait for its end
        #[arg(long, short)]
        detach: bool,
    },
    /// Free the lock of a person, or of a job that is gone
    Unlock {
        #[command(flatten)]
        of: Part,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Which state is meant; that of an install which has only one needs no name.
#[derive(Debug, Clone, Args)]
pub struct Part {
    /// Install, by name or id
    #[arg(value_parser = name)]
    pub install: String,
    /// The state of this component
    #[arg(long, short, conflicts_with = "sandbox")]
    pub component: Option<String>,
    /// The state of the sandbox
    #[arg(long)]
    pub sandbox: bool,
}
