//! What policies said.

use serde::{Deserialize, Serialize};

use crate::MESSAGE_BYTES_MAX;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// In the order of the policies, then of what was judged; denials before warnings, then by their messages.
    pub verdicts: Vec<Verdict>,
    /// How many evaluations came to their end: one for each policy and object.
    pub evaluated: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the policy.
    pub policy: String,
    pub severity: Severity,
    pub message: String,
    /// What it is about: kind, namespace and name of an object, the address of a resource, an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It must not be deployed.
    Deny,
    /// It is shown to a person.
    Warn,
}

impl Severity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
        }
    }
}

impl Report {
    pub fn is_denied(&self) -> bool {
        self.verdicts.iter().any(|verdict| verdict.severity == Severity::Deny)
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.severity == severity).count()
    }

    /// As it may leave the machine: masked, and after that cut, so that no secret is cut in two before it is found.
    #[must_use]
    pub fn masked(mut self, mask: impl Fn(&str) -> String) -> Self {
        for verdict in &mut self.verdicts {
            verdict.message = cut(mask(&verdict.message));
            verdict.object = verdict.object.take().map(|object| cut(mask(&object)));
        }
        self
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
        text.push('…');
    }
    text
}
