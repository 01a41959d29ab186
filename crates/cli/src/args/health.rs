//! How well objects are.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Health {
    /// Judge Kubernetes objects read from files
    ///
    /// Shows a verdict for each object, its reason, and the rule that gave it. Files hold what `kubectl get -o yaml` or `-o json` prints.
    /// Verdicts: healthy, progressing, degraded (it works, but not as it should), unhealthy (it does not serve), unknown (no rule can
    /// judge it), not-applicable. Needs no control plane and no cluster.
    Explain {
        /// Files with objects; `-` reads stdin
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}
