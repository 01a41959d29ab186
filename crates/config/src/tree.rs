//! The files of an app, in memory. Who reads them from disk follows links to files, not links to directories.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of an app.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Name of the directory, which is the name of the app.
    pub name: String,
    /// Contents by path from the app's root, with `/`.
    pub files: BTreeMap<String, Arc<[u8]>>,
    /// Contents of remote files by address, as the config writes it.
    pub fetched: BTreeMap<String, Arc<[u8]>>,
}

/// A file that becomes part of a config.
pub const MAX_FILE_BYTES: usize = 4 << 20;
/// A TOML file; in memory it takes some hundred times that.
pub const MAX_TOML_BYTES: usize = 1 << 20;
/// TOML files of an app.
pub const MAX_TOML_FILES: usize = 12_000;
/// All that becomes part of a config together; a file that two values name counts twice.
pub const MAX_CONFIG_BYTES: usize = 32 << 20;

impl Tree {
    pub fn new(name: impl Into<String>) -> Tree {
        Tree { name: name.into(), ..Tree::default() }
    }

    pub fn add(&mut self, path: impl Into<String>, contents: impl AsRef<[u8]>) -> &mut Tree {
        self.files.insert(path.into(), contents.as_ref().into());
        self
    }

    pub(crate) fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).or_else(|| self.fetched.get(path)).map(|bytes| bytes.as_ref())
    }

    /// The text of a file that is not too large.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        let bytes = self.bytes(path).filter(|bytes| bytes.len() <= MAX_FILE_BYTES)?;
        std::str::from_utf8(bytes).ok()
    }

    pub(crate) fn has_directory(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.files.range(prefix.clone()..).next().is_some_and(|(file, _)| file.starts_with(&prefix))
    }
}

/// Joins a path onto a directory; `None` where it leads out of the root.
pub(crate) fn join(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    if path.starts_with('/') || path.contains('\\') {
        return None;
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The directory of a file.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
