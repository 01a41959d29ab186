//! What is typed about runners.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use model::JobGroup;

use super::Yes;
use super::values::{duration, group_slots, name, size};

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
        /// Only the runner of this install
        #[arg(long, value_parser = name)]
        install: Option<String>,
    },
    /// Show a runner: its state, groups, disk and last health check
    Get {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Print the command that starts a runner
    JoinCommand {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Write a systemd unit, a Deployment or a script for a runner
    Manifest {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// What to write
        #[arg(long, value_enum)]
        format: ManifestFormat,
        /// Image of the runner, for Kubernetes
        #[arg(long, default_value = "ferry-runner:latest")]
        image: String,
    },
    /// Stop giving jobs to a runner
    Drain {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Let a drained runner take jobs again
    Resume {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
    },
    /// Revoke a runner's session and credentials
    Revoke {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
        #[command(flatten)]
        yes: Yes,
    },
    /// Show or change the settings of a runner
    Settings {
        /// Runner, by name or id
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
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// Return without waiting
        #[arg(long, short)]
        detach: bool,
    },
    /// Run a job that only waits
    Noop {
        /// Runner, by name or id
        #[arg(value_parser = name)]
        name: String,
        /// How long the job waits
        #[arg(long, default_value = "0s", value_parser = duration)]
        sleep: Duration,
        /// Return without waiting
        #[arg(long, short)]
        detach: bool,
    },
}
