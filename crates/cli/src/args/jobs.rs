//! What is typed about jobs.

use clap::Subcommand;
use model::{JobState, JobType, Outcome};

use super::values::{job_id, job_state, job_type, name, settled};
use super::{Limit, Yes};

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// List jobs, newest first; health checks only with `--type health-check`
    #[command(visible_alias = "ls")]
    List {
        /// Only jobs of this install
        #[arg(long, value_parser = name)]
        install: Option<String>,
        /// Only jobs of this runner
        #[arg(long, value_parser = name)]
        runner: Option<String>,
        /// Only jobs with this status
        #[arg(long, value_parser = job_state)]
        status: Option<JobState>,
        /// Only jobs of this type
        #[arg(long = "type", value_name = "TYPE", value_parser = job_type)]
        job_type: Option<JobType>,
        #[command(flatten)]
        limit: Limit,
    },
    /// Show a job: why it waits, its steps, outputs and executions
    Get {
        /// Job, by id
        #[arg(value_parser = job_id)]
        id: String,
    },
    /// Cancel a job
    Cancel {
        /// Job, by id
        #[arg(value_parser = job_id)]
        id: String,
        /// Wait until it has ended
        #[arg(long)]
        wait: bool,
    },
    /// Record the outcome of a job whose result is unknown
    Settle {
        /// Job, by id
        #[arg(value_parser = job_id)]
        id: String,
        /// What really happened: `finished`, `failed` or `cancelled`
        #[arg(long = "as", value_name = "OUTCOME", value_parser = settled)]
        outcome: Outcome,
        /// Note about what you found
        #[arg(long, default_value = "")]
        note: String,
    },
    /// Wait for a job to end
    Wait {
        /// Job, by id
        #[arg(value_parser = job_id)]
        id: String,
    },
    /// Delete the log of an ended job permanently
    EraseLog {
        /// Job, by id
        #[arg(value_parser = job_id)]
        id: String,
        #[command(flatten)]
        yes: Yes,
    },
}
