//! What the documentation tells people to type, typed: each page in its own shell, beside a system of its own.

use std::path::{Path, PathBuf};

use testkit::pages::{self, Page};

use crate::ferry;

fn repository() -> PathBuf {
    fs_err::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

fn run(name: &str) {
    let repository = repository();
    let text = fs_err::read_to_string(repository.join(name)).unwrap();
    pages::run(&ferry(), &repository, &Page::parse(name, &text));
}

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        const RUN: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                run($page);
            }
        )*
    };
}

// Every page with a block that is no illustration.
pages! {
    readme: "README.md",
    apps: "docs/apps.md",
    builds: "docs/builds.md",
    dashboard: "docs/dashboard.md",
    installs: "docs/installs.md",
    logs: "docs/logs.md",
    operations: "docs/operations.md",
    policies: "docs/policies.md",
    terraform: "docs/terraform.md",
    tour: "docs/tour.md",
    workflows: "docs/workflows.md",
}

#[test]
fn every_block_is_run_or_says_why_not() {
    let mut wrong = Vec::new();
    for page in pages::all(&repository()) {
        let listed = RUN.contains(&page.name.as_str());
        if page.is_run() && !listed {
            wrong.push(format!(
                "{}:{}: no test runs this block: add the page to `pages!` in crates/ferry/tests/it/docs_blocks.rs, or write `<!-- illustration: WHY -->` above the block",
                page.name, page.items[0].line
            ));
        } else if listed && !page.is_run() {
            wrong.push(format!("{}: has no block that is run: take it out of `pages!`", page.name));
        }
        wrong.extend(page.problems);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
