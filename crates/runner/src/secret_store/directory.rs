//! Files in a directory, one for each secret: on a local runner, or where something mounts them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use fs_err as fs;
use futures::future::BoxFuture;
use model::secrets::SECRET_VALUE_BYTES_MAX;

use super::{SecretStore, StoreError, checked};

#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Whoever has named it has made it: where it is not there, it is not mounted, and nothing is known of what is in it.
    is_named: bool,
}

impl Directory {
    /// The runner's own folder, which is made when something is put there.
    pub fn new(path: PathBuf) -> Self {
        Self { path, is_named: false }
    }

    /// A directory of the customer's.
    pub fn named(path: PathBuf) -> Self {
        Self { path, is_named: true }
    }

    fn file(&self, name: &str) -> Result<PathBuf, StoreError> {
        Ok(self.path.join(checked(name)?))
    }

    /// Without the line break that editors and `echo` put at the end.
    fn look(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let place = self.file(name)?;
        let unreadable =
            |e: std::io::Error| StoreError::Unreadable { place: place.display().to_string(), why: e.to_string() };
        let file = match std::fs::File::open(&place) {
            Ok(file) => file,
            // A link that leads nowhere is no word about the secret: what it leads to may not be mounted.
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && std::fs::symlink_metadata(&place).is_err()
                    && (!self.is_named || self.path.is_dir()) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(error)),
        };
        let mut bytes = Vec::new();
        file.take(SECRET_VALUE_BYTES_MAX as u64 * 2).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
        }
        Ok(Some(bytes))
    }

    fn make_folder(&self) -> std::io::Result<()> {
        if self.is_named {
            return Ok(());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }

    /// A file that only its owner can read, whole or not at all.
    fn write(&self, name: &str, value: &[u8], replace: bool) -> Result<bool, StoreError> {
        let place = self.file(name)?;
        let unwritable =
            |e: std::io::Error| StoreError::Unwritable { place: place.display().to_string(), why: e.to_string() };
        let mut tail = [0_u8; 8];
        getrandom::fill(&mut tail).map_err(|e| unwritable(std::io::Error::other(e.to_string())))?;
        let unfinished = self.path.join(format!(".{name}.{}", hex::encode(tail)));
        let write = || {
            self.make_folder()?;
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
            file.write_all(value)?;
            file.sync_all()?;
            if replace {
                fs::rename(&unfinished, &place)?;
                return Ok(true);
            }
            match fs::hard_link(&unfinished, &place) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        };
        let written = write();
        let _ = fs::remove_file(&unfinished);
        written.map_err(unwritable)
    }

    /// What a person gives takes the place of what was there.
    pub fn set(&self, name: &str, value: &[u8]) -> Result<PathBuf, StoreError> {
        self.write(name, value, true)?;
        self.file(name)
    }

    pub fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let place = self.file(name)?;
        match fs::remove_file(&place) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::Unwritable { place: place.display().to_string(), why: error.to_string() }),
        }
    }

    /// The names that have a file, sorted.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let unreadable =
            |e: std::io::Error| StoreError::Unreadable { place: self.path.display().to_string(), why: e.to_string() };
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
            if checked(&name).is_ok() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

impl SecretStore for Directory {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move { self.look(name) })
    }

    fn keep<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.write(name, value.as_bytes(), false) })
    }

    fn place(&self, name: &str) -> String {
        format!("the file {}", self.path.join(name).display())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_hold_secrets_and_nobody_else_reads_them() {
        let dir = tempfile::tempdir().expect("dir");
        let store = Directory::new(dir.path().join("secrets"));
        assert_eq!(store.look("a").expect("no folder yet"), None);
        assert!(store.write("a", b"one", false).expect("kept"));
        assert!(!store.write("a", b"two", false).expect("there is one"));
        assert_eq!(store.look("a").expect("read"), Some(b"one".to_vec()));
        store.set("a", b"three\n").expect("set");
        assert_eq!(store.look("a").expect("read"), Some(b"three".to_vec()), "without its line break");
        assert_eq!(store.names().expect("names"), ["a"]);
        let mode = fs::metadata(dir.path().join("secrets/a")).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::create_dir(dir.path().join("secrets/b")).expect("a folder");
        let error = store.look("b").expect_err("a folder is no secret").to_string();
        assert!(error.contains("secrets/b"), "{error}");
        assert!(store.remove("a").expect("removed") && !store.remove("a").expect("gone already"));

        // A directory that somebody has named and that is not mounted says nothing, and is not made up.
        let away = Directory::named(dir.path().join("mount"));
        assert!(away.look("a").is_err() && away.write("a", b"one", false).is_err());
        fs::create_dir(dir.path().join("mount")).expect("mounted");
        assert_eq!(away.look("a").expect("it is there"), None);
        std::os::unix::fs::symlink(dir.path().join("nowhere"), dir.path().join("mount/a")).expect("a link");
        assert!(away.look("a").is_err(), "a link that leads nowhere says nothing");
    }
}
