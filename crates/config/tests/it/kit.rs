//! Small apps, and what is said about them.

use config::{Options, Severity, Tree, starter};

/// The starter with some files added or replaced.
pub(crate) fn app(files: &[(&str, &str)]) -> Tree {
    let mut tree = starter("hello");
    for (path, contents) in files {
        tree.add(*path, contents);
    }
    tree
}

/// `file:line:column severity code message | hint`, one line each.
pub(crate) fn said(tree: &Tree) -> String {
    let loaded = config::load(tree, Options::default());
    let line = |found: &config::Diagnostic| {
        let severity = if found.severity == Severity::Error { "error" } else { "warning" };
        let hint = found.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!(
            "{}:{}:{} {severity} {} {}{hint}\n",
            found.file,
            found.line,
            found.column,
            found.code.as_str(),
            found.message
        )
    };
    loaded.diagnostics.iter().map(line).collect()
}

/// Files, and the beginnings of the lines that are said.
pub(crate) type Case<'c> = (&'c [(&'c str, &'c str)], &'c [&'c str]);

#[track_caller]
pub(crate) fn check(cases: &[Case]) {
    for (files, wanted) in cases {
        let found = said(&app(files));
        let fits = found.lines().count() == wanted.len()
            && found.lines().zip(*wanted).all(|(line, wanted)| line.starts_with(wanted));
        assert!(fits, "{files:#?}\nwanted:\n{}\nfound:\n{found}", wanted.join("\n"));
    }
}

pub(crate) const MODULE: &str =
    "type = \"terraform_module\"\nterraform_version = \"1.13.5\"\n[local]\ndirectory = \"src/greeting\"\n";

pub(crate) fn module(name: &str, rest: &str) -> String {
    format!("name = \"{name}\"\n{rest}\n{MODULE}")
}
