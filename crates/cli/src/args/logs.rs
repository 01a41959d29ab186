//! What is typed about logs.

use clap::Args;
use model::Timestamp;

use super::values::moment;

#[derive(Debug, Args)]
pub struct Logs {
    /// Job, step of a workflow, build or log stream
    #[arg(required_unless_present = "install")]
    pub id: Option<String>,
    /// Show what OpenTelemetry exporters sent for this install (see `ferry tokens create --telemetry`)
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    pub install: Option<String>,
    #[command(flatten)]
    pub options: LogOptions,
}

/// What of a log is shown, and how.
#[derive(Debug, Clone, Default, Args)]
pub struct LogOptions {
    /// Follow the log until the job ends
    #[arg(long, short)]
    pub follow: bool,
    /// Only lines after this time: `10m` for ten minutes ago, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Only lines before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub until: Option<Timestamp>,
    /// Only this step of the job
    #[arg(long)]
    pub step: Option<String>,
    /// Only this stream; telemetry has `logs`, `traces` and `metrics`
    #[arg(long, value_parser = ["stdout", "stderr", "system", "logs", "traces", "metrics"])]
    pub pipe: Option<String>,
    /// Only lines of this level or higher; stderr counts as `error`
    #[arg(long, value_parser = ["trace", "debug", "info", "warn", "error", "fatal"])]
    pub level: Option<String>,
    /// Only lines with this text
    #[arg(long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// Treat the text as a regular expression
    #[arg(long, short = 'E', requires = "grep")]
    pub regex: bool,
    /// Print the raw bytes
    #[arg(long, conflicts_with_all = ["follow", "json", "since", "until", "step", "level", "grep"])]
    pub raw: bool,
    /// Save to a file: text, or records if it ends in `.ndjson`; `.gz` compresses it
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["follow", "json"])]
    pub output: Option<std::path::PathBuf>,
}
