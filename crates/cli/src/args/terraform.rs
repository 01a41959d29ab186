//! What is typed about Terraform's states.

use clap::{Args, Subcommand};

use super::values::name;
use super::{Limit, Yes};

#[derive(Debug, Subcommand)]
pub enum States {
    /// List the Terraform states of an install
    #[command(visible_alias = "ls")]
    List {
        /// Install, by name or id
        #[arg(value_parser = name)]
        install: String,
    },
    /// List all states that a component or sandbox had, newest first
    History {
        #[command(flatten)]
        of: Part,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show the resources of a state, without their values
    Show {
        #[command(flatten)]
        of: Part,
        /// An earlier state, by the id that `history` shows
        #[arg(long, value_name = "ID")]
        revision: Option<String>,
    },
    /// Restore an earlier or quarantined state
    ///
    /// It becomes the current state under the next serial. Nothing in the customer's account changes; the next plan shows the differences and waits for a person.
    Restore {
        #[command(flatten)]
        of: Part,
        /// The state, by the id that `history` shows
        #[arg(long, value_name = "ID")]
        revision: String,
        #[command(flatten)]
        yes: Yes,
        /// Start it and return at once
        #[arg(long, short)]
        detach: bool,
    },
    /// Release a lock that a person or a dead job holds
    Unlock {
        #[command(flatten)]
        of: Part,
        #[command(flatten)]
        yes: Yes,
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
