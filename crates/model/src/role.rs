//! What an account may do in an org.

use serde::{Deserialize, Serialize};

/// Ordered: a later role may do all that an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sees everything of the org, changes nothing.
    ReadOnly,
    /// Also approves plans and denies them; starts nothing.
    Approver,
    /// Runs and cancels work, creates apps and installs.
    Operator,
    /// Also manages tokens, runners and the org itself.
    Admin,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Approver, Self::Operator, Self::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }
}
