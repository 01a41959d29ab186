//! Terraform and OpenTofu: what their jobs are told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::build::Repository;
use crate::deploy::Deploy;
use crate::spec::Source;

/// The programs that carry out a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    Terraform,
    Tofu,
}

impl Program {
    pub const fn command(self) -> &'static str {
        match self {
            Self::Terraform => "terraform",
            Self::Tofu => "tofu",
        }
    }

    /// The program and its version as an app names them: `1.13.5`, or `tofu-1.12.6` (`opentofu-…`).
    pub fn parse(text: &str) -> (Self, String) {
        let text = text.trim();
        let tofu = text.strip_prefix("opentofu-").or_else(|| text.strip_prefix("tofu-"));
        match tofu {
            Some(version) => (Self::Tofu, version.trim_start_matches('v').to_owned()),
            None => (Self::Terraform, text.trim_start_matches('v').to_owned()),
        }
    }
}

/// A job of Terraform on one workspace of an install.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerraformSpec {
    #[serde(flatten)]
    pub deploy: Deploy,
    pub program: Program,
    /// The exact version, or `latest`: whatever the runner has.
    pub version: String,
    pub module: Module,
    /// Values of variables, as texts; Terraform converts them.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// Texts of files of variables; later ones win, and all of them over `vars`.
    #[serde(default)]
    pub var_files: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Where the files of the module are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Module {
    /// The artifact of a build.
    Artifact {
        repository: Repository,
        digest: Digest,
    },
    Source {
        source: Source,
    },
    /// None is needed.
    Nothing {},
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_with_their_version() {
        let cases = [
            ("1.13.5", Program::Terraform, "1.13.5"),
            ("v1.11.4", Program::Terraform, "1.11.4"),
            ("latest", Program::Terraform, "latest"),
            ("tofu-1.12.6", Program::Tofu, "1.12.6"),
            ("opentofu-v1.12.6", Program::Tofu, "1.12.6"),
        ];
        for (text, program, version) in cases {
            assert_eq!(Program::parse(text), (program, version.to_owned()));
        }
    }
}
