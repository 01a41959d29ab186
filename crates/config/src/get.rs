//! Values that are the address of a file: which they are, and where the file is looked for.

use std::sync::Arc;

use crate::diagnostic::{Findings, Said, did_you_mean, error, warning};
use crate::table::Get;
use crate::tree::{MAX_FILE_BYTES, join, parent};
use crate::{Code, Tree};

/// What a value turns out to be.
enum Address<'a> {
    /// The value itself.
    Literal,
    /// A path in the app.
    Path(&'a str),
    /// A path in the app, or else the value itself.
    Maybe(&'a str),
    /// An address of the network.
    Remote,
}

fn address(value: &str, get: Get) -> Address<'_> {
    if get == Get::No || value.starts_with("./nuon") || value.contains(['\n', '{', '}']) {
        return Address::Literal;
    }
    let word = !value.contains(char::is_whitespace);
    let local = ["file://", "file::"].iter().find_map(|scheme| value.strip_prefix(scheme));
    let remote = ["http://", "https://", "git::", "git@"].iter().any(|scheme| value.starts_with(scheme));
    let github = || value.starts_with("github.com/") && value.matches('/').count() > 2;
    match local {
        Some(path) if word => Address::Path(path),
        // Names of files may have blanks; so do commands.
        None if value.starts_with("./") || value.starts_with("../") => {
            if word {
                Address::Path(value)
            } else {
                Address::Maybe(value)
            }
        }
        None if word && get == Get::Anywhere && (remote || github()) => Address::Remote,
        _ => Address::Literal,
    }
}

/// The directory that paths in a TOML file start from; then its own directory is tried.
fn base(tree: &Tree, file: &str) -> &'static str {
    let base = match file.split('/').next().unwrap_or_default() {
        "components" => "components",
        "actions" => "actions",
        "permissions" | "permissions.toml" | "break_glass" | "break_glass.toml" => "permissions",
        "installs" => "installs",
        _ => "",
    };
    if tree.has_directory(base) { base } else { "" }
}

/// Where to look for a path, in order.
fn places(tree: &Tree, file: &str, path: &str) -> Result<Vec<String>, ()> {
    let own = parent(file);
    let first = if file.starts_with("policies/") { own } else { base(tree, file) };
    let mut found: Vec<String> = [first, own].iter().filter_map(|directory| join(directory, path)).collect();
    found.dedup();
    if found.is_empty() { Err(()) } else { Ok(found) }
}

/// The file that holds a value, with its contents; `None` where the value is meant as it is.
pub(crate) fn resolve(
    findings: &mut Findings,
    file: &str,
    value: &str,
    get: Get,
    forced: bool,
) -> Result<Option<(Arc<str>, String)>, Said> {
    let path = match (address(value, get), forced) {
        (Address::Remote, _) => {
            let missing = || {
                warning(Code::NotFetched, format!("the contents of `{value}` were not downloaded"))
                    .hint("addresses are fetched before the config is read; check the address and the network")
            };
            let found = contents(findings, value);
            if found.is_none() {
                findings.wanted.insert(value.to_owned());
            }
            return found.ok_or_else(missing)?.map(Some);
        }
        (Address::Path(path), _) => path,
        (Address::Maybe(path), false) => return Ok(local(findings, file, path).ok()),
        (Address::Maybe(path), true) => path,
        (Address::Literal, true) => value,
        (Address::Literal, false) => return Ok(None),
    };
    local(findings, file, path).map(Some)
}

/// A file of the app by its path.
pub(crate) fn local(findings: &mut Findings, file: &str, path: &str) -> Result<(Arc<str>, String), Said> {
    let tree = findings.tree;
    let Ok(places) = places(tree, file, path) else {
        return Err(error(Code::PathEscape, format!("`{path}` leads out of the app's directory"))
            .hint("copy the file into the app's directory"));
    };
    if let Some(found) = places.iter().find_map(|place| contents(findings, place)) {
        return found;
    }
    let tried = places.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(" and ");
    let known = || tree.files.keys().map(String::as_str);
    let near =
        places.iter().find_map(|place| did_you_mean(place, known().filter(|known| parent(known) == parent(place))));
    let name = path.rsplit('/').next().unwrap_or(path);
    let elsewhere = known().find(|known| known.rsplit('/').next() == Some(name));
    let hint = near.or_else(|| Some(format!("there is `{}`", elsewhere?)));
    Err(error(Code::FileNotFound, format!("there is no file `{path}`; looked for {tried}")).maybe_hint(hint))
}

fn contents(findings: &mut Findings, path: &str) -> Option<Result<(Arc<str>, String), Said>> {
    let bytes = findings.tree.bytes(path)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Some(Err(error(
            Code::FileTooLarge,
            format!("`{path}` has {} bytes; at most {MAX_FILE_BYTES} can be part of a config", bytes.len()),
        )));
    }
    Some(match std::str::from_utf8(bytes) {
        Ok(text) => findings.take(text.len()).map(|()| (path.into(), text.to_owned())),
        Err(_) => Err(error(Code::NotText, format!("`{path}` is not UTF-8 text"))),
    })
}
