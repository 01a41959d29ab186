//! Owns the wire types of pages: what a dashboard, and the CLI's live view, paint without computing.
//! The server renders them; the CLI and the dashboard read them.
//! No SQL, no rules: what may be done, and why not, comes as `Can`.

mod fleet;
mod installs;
mod logs;
mod org;
mod plans;
mod runs;

pub use fleet::*;
pub use installs::*;
pub use logs::*;
pub use org::*;
pub use plans::*;
pub use runs::*;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Whether somebody may do something now, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Can {
    pub ok: bool,
    /// A sentence, where it may not be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// What may be done, by the name of the action.
pub type Cans = BTreeMap<String, Can>;

impl Can {
    pub fn yes() -> Self {
        Self { ok: true, reason: String::new() }
    }

    pub fn no(reason: impl Into<String>) -> Self {
        Self { ok: false, reason: reason.into() }
    }
}

/// A word of the API that is also an enum of its document.
macro_rules! words {
    ($($(#[$meta:meta])* pub enum $name:ident { $($variant:ident = $word:tt),* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        pub enum $name { $(#[serde(rename = $word)] $variant),* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// A word of a newer version is none of ours.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    )*};
}

words! {
    /// How a part of an install, or all of it, stands.
    pub enum PartWord {
        Active = "active",
        Inactive = "inactive",
        Pending = "pending",
        Error = "error",
        Unknown = "unknown",
    }

    /// How a runner is.
    pub enum RunnerWord {
        Pending = "pending",
        Active = "active",
        Offline = "offline",
        Disabled = "disabled",
    }

    /// How a workflow stands.
    pub enum WorkflowWord {
        Pending = "pending",
        InProgress = "in-progress",
        ApprovalAwaiting = "approval-awaiting",
        Success = "success",
        Warning = "warning",
        Error = "error",
        Cancelled = "cancelled",
    }

    /// How a step of a workflow stands.
    pub enum StepWord {
        Pending = "pending",
        InProgress = "in-progress",
        ApprovalAwaiting = "approval-awaiting",
        Approved = "approved",
        Success = "success",
        AutoSkipped = "auto-skipped",
        UserSkipped = "user-skipped",
        Drifted = "drifted",
        NoDrift = "no-drift",
        Error = "error",
        Unknown = "unknown",
        ApprovalDenied = "approval-denied",
        ApprovalExpired = "approval-expired",
        Cancelled = "cancelled",
        NotAttempted = "not-attempted",
        Discarded = "discarded",
    }

    /// How a component is, as the runner observes it.
    pub enum HealthWord {
        Healthy = "healthy",
        Progressing = "progressing",
        Degraded = "degraded",
        Unhealthy = "unhealthy",
        Unknown = "unknown",
        NotApplicable = "not-applicable",
    }

    /// What the last look for drift found.
    pub enum DriftWord {
        None = "none",
        Drifted = "drifted",
        NeverLooked = "never-looked",
        LookFailed = "look-failed",
    }
}
