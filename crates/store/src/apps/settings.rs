//! The documents that apps and installs keep in a column, decoded once.

use std::collections::BTreeMap;

use model::labels::Labels;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// What clients keep with an app.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppSettings {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub config_repo: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub config_directory: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub label_colors: BTreeMap<String, String>,
    /// What a newer version of Ferry keeps there.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

/// Whether plans of an install wait for an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalOption {
    #[default]
    Prompt,
    ApproveAll,
}

impl ApprovalOption {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::ApproveAll => "approve-all",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Prompt, Self::ApproveAll].into_iter().find(|option| option.as_str() == text)
    }
}

/// What an install says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_option: Option<ApprovalOption>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Labels,
    /// Which components are in, where somebody has said so.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, bool>,
    /// Who keeps it: a tool, or a file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub managed_by: String,
    /// What a newer version of Ferry keeps there.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}
