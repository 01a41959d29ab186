//! Terraform in tests: which program, and the providers that it finds without a registry.

use std::path::{Path, PathBuf};

/// Providers in a mirror on disk, as `scripts/terraform-tools.sh` makes it; tests reach no registry.
pub fn tools(ferry: &Path) -> PathBuf {
    let target = ferry.parent().and_then(|p| p.parent()).expect("target/debug/ferry");
    let place = target.join("terraform-tools");
    let config = place.join("tfrc");
    assert!(
        config.exists(),
        "{} is missing: run scripts/terraform-tools.sh first (`make test` does)",
        config.display()
    );
    place
}

/// The program that the tests are run with: `FERRY_TEST_PROGRAM=tofu` has them all run with OpenTofu.
pub fn program() -> &'static str {
    static PROGRAM: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var(model::env::TEST_PROGRAM).unwrap_or_else(|_| "terraform".into()));
    &PROGRAM
}

/// It as an app names it.
pub fn version() -> &'static str {
    match program() {
        "terraform" => "latest",
        "tofu" => "tofu-latest",
        other => panic!("{} is {other}: use terraform or tofu", model::env::TEST_PROGRAM),
    }
}
