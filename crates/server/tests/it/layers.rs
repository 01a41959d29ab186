//! Who may change what: read from the sources, beside what the types already forbid.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn read(folder: &str) -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates.join(folder), &mut files);
    let name = |file: &Path| file.strip_prefix(&crates).expect("below").display().to_string();
    files.into_iter().map(|file| (name(&file), fs_err::read_to_string(&file).expect("a source file"))).collect()
}

/// The bodies of `impl NAME { … }`.
fn impls<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let head = format!("\nimpl {name} {{\n");
    text.match_indices(&head).map(|(at, _)| &text[at..at + text[at..].find("\n}\n").unwrap_or_default()]).collect()
}

#[test]
fn a_reader_changes_nothing() {
    let mut seen = 0;
    for (name, text) in read("store/src") {
        for body in impls(&text, "Reader") {
            seen += 1;
            for change in [".write(", ".write_announced(", ".put(", ".put_once(", ".delete("] {
                assert!(!body.contains(change), "{name}: `impl Reader` calls `{change}…`: it belongs to `impl Store`");
            }
        }
    }
    assert!(seen > 15, "{seen} blocks were read");
}

/// `AppState::store` gives a `Reader`; the registry, an application of its own, is the one that gets more.
#[test]
fn only_the_registry_of_the_server_has_the_whole_store() {
    let mut allowed = 0;
    for (name, text) in read("server/src") {
        match name.as_str() {
            "server/src/registry_access.rs" => allowed += text.matches("store_of_registry()").count(),
            _ => assert!(!text.contains("store_of_registry"), "{name}: changes are functions of the conductor"),
        }
    }
    assert_eq!(allowed, 1);
}
