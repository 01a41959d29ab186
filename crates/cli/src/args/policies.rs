//! What is typed about policies.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use policy::PolicyKind;

#[derive(Debug, Subcommand)]
pub enum Policies {
    /// Test an app's Rego policies on a plan, manifests or an image
    ///
    /// Tests are the rules `test_…` of `NAME_test.rego` beside `NAME.rego`. Ends with 1 where something is denied or a test fails.
    /// Needs no control plane.
    Test(Box<TestPolicies>),
}

#[derive(Debug, Args)]
pub struct TestPolicies {
    /// Directory of the app
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Only this policy
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Plan (`terraform show -json`), or Kubernetes objects as YAML or JSON; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Image to judge
    #[arg(long, value_name = "NAME:TAG", conflicts_with = "input")]
    pub image: Option<String>,
    /// What is known about the image, as JSON: `signed`, `sbom` and so on
    #[arg(long, value_name = "FILE", requires = "image")]
    pub metadata: Option<PathBuf>,
    /// Only policies of this type [default: all that can judge it]
    #[arg(long, value_name = "TYPE", value_parser = kind)]
    pub kind: Option<PolicyKind>,
    /// Only policies that apply to this component
    #[arg(long, value_name = "NAME")]
    pub component: Option<String>,
}

fn kind(text: &str) -> Result<PolicyKind, String> {
    PolicyKind::parse(text).filter(|kind| kind.is_rego()).ok_or_else(|| {
        let rego: Vec<&str> = PolicyKind::ALL.iter().filter(|kind| kind.is_rego()).map(|kind| kind.as_str()).collect();
        format!("there are {}", rego.join(", "))
    })
}
