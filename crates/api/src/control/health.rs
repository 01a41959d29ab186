//! How well what is deployed is.

use model::Timestamp;
use model::health::{UnwellObject, Verdict};
use serde::{Deserialize, Serialize};

wire! {
    /// The health of an install: the worst of its components, and each of them.
    pub struct InstallHealth {
        pub install_id: String,
        /// Absent until something was observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub verdict: Option<Verdict>,
        pub components: Vec<ComponentHealth>,
    }

    pub struct ComponentHealth {
        pub component: String,
        pub verdict: Verdict,
        pub reason: String,
        pub since: Timestamp,
        /// The component that it needs and that is the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub downstream_of: Option<String>,
        /// When the runner observed it last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub observed_at: Option<Timestamp>,
        /// Objects and probes that were judged.
        pub judged: u64,
        /// Those that are not healthy, the worst first; at most 20.
        pub objects: Vec<UnwellObject>,
        pub checks: Vec<HealthCheck>,
        /// The part of the time in which it served, between 0 and 1; time of which nothing is known does not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub uptime: Option<f64>,
        /// One for each day, the oldest first.
        pub days: Vec<HealthDay>,
    }

    /// A check that somebody has pushed.
    pub struct HealthCheck {
        pub name: String,
        pub status: Verdict,
        pub message: String,
        pub reported_at: Timestamp,
        /// In seconds.
        pub stale_after_s: u64,
        /// It was not reported in time: it counts as unknown.
        pub stale: bool,
    }

    pub struct HealthDay {
        /// In UTC.
        pub date: String,
        /// The worst of the day; absent where nothing is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub verdict: Option<Verdict>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub uptime: Option<f64>,
    }

    /// A verdict that became another one.
    pub struct HealthTransition {
        pub component: String,
        pub at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub from: Option<String>,
        pub to: String,
        pub reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub downstream_of: Option<String>,
    }

    /// What a check has found. It can only make a component look worse.
    pub struct PushHealthCheck {
        pub status: Verdict,
        #[serde(default)]
        pub message: String,
        /// Such as `10m`: after this it counts as unknown. At most 60m; 5m by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stale_after: Option<String>,
    }

    /// How many installs are how well.
    pub struct FleetHealth {
        pub total: u64,
        pub healthy: u64,
        pub progressing: u64,
        pub degraded: u64,
        pub unhealthy: u64,
        pub unknown: u64,
        /// Nothing is observed in them.
        pub unset: u64,
        pub all_healthy: bool,
    }
}
