//! The policies of real apps, of a directory beside the repository (or of `FERRY_CORPUS`).

use std::path::PathBuf;

use needs::needs;
use policy::{Subject, check};
use serde_json::json;

use crate::judge;

/// The files. A test that uses them says `needs!(Corpus)`.
fn files() -> Vec<(PathBuf, String)> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let directory = std::env::var("FERRY_CORPUS").unwrap_or_else(|_| beside.into());
    let (mut waiting, mut found) = (vec![PathBuf::from(&directory)], Vec::new());
    while let Some(directory) = waiting.pop() {
        for entry in fs_err::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rego") {
                let text = fs_err::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 20, "only {} policies in {directory}", found.len());
    found
}

#[test]
fn policies_of_real_apps_are_read() {
    needs!(Corpus);
    for (path, contents) in files() {
        let info = check(&contents).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(info.package, "nuon", "{}", path.display());
        // One that has no rules denies: whoever wrote it meant something.
        let report = judge(&contents, &Subject::Plan(json!({ "resource_changes": [] })));
        assert_eq!(report.is_denied(), !info.denies && !info.warns, "{}: {report:?}", path.display());
    }
}
