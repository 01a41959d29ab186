//! Real apps, of a directory beside the repository (or of `FERRY_CORPUS`).

use std::collections::BTreeMap;
use std::path::Path;

use config::{Options, Severity, Tree};
use needs::needs;

/// The apps. A test that uses them says `needs!(Corpus)`.
pub(crate) fn apps() -> Vec<Tree> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let directory = std::env::var("FERRY_CORPUS").unwrap_or_else(|_| beside.into());
    let mut apps: Vec<Tree> = fs_err::read_dir(&directory).unwrap().map(|entry| read(&entry.unwrap().path())).collect();
    apps.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(apps.len() >= 30, "only {} apps in {directory}", apps.len());
    apps
}

fn read(root: &Path) -> Tree {
    let mut tree = Tree::new(root.file_name().unwrap().to_string_lossy());
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs_err::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let relative = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                tree.add(relative, fs_err::read(&path).unwrap());
            }
        }
    }
    tree
}

#[test]
fn real_apps_load_with_no_error_and_with_the_warnings_that_are_true() {
    needs!(Corpus);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut errors = Vec::new();
    for app in apps() {
        let loaded = config::load(&app, Options::default());
        for found in &loaded.diagnostics {
            let line = format!(
                "{}/{}:{}:{} {} {} {:?}",
                app.name,
                found.file,
                found.line,
                found.column,
                found.code.as_str(),
                found.message,
                found.hint
            );
            println!("{line}");
            *counts.entry(found.code.as_str()).or_default() += 1;
            if found.severity == Severity::Error {
                errors.push(line);
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    // Each of these was looked at and is true; a change of the numbers is to be looked at, too.
    let known = [
        ("deprecated_key", 15),
        ("misplaced_key", 4),
        ("not_fetched", 1),
        ("template_dot", 16),
        ("template_syntax", 1),
        ("unknown_key", 42),
    ];
    if std::env::var_os("FERRY_CORPUS").is_none() && !counts.is_empty() {
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), known);
    }
}
