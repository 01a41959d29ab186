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
    /// List earlier states of a component or sandbox
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
    /// The restored state gets the next serial. Nothing in the customer's account changes. The next plan shows the differences and waits
    /// for an approval.
    Restore {
        #[command(flatten)]
        of: Part,
        /// The state, by the id that `history` shows
        #[arg(long, value_name = "ID")]
        revision: String,
        #[command(flatten)]
        yes: Yes,
        /// Return without waiting
        #[arg(long, short)]
        detach: bool,
    },
    /// Release the lock of a person or a dead job
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
