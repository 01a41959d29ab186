//! The real world of a thing: a directory of files, and a witness of what was done to it.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// What a thing's file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) size: Option<i64>,
}

/// A place where a thing is, or is not.
pub(crate) struct Place {
    world: PathBuf,
    name: String,
}

impl Place {
    pub(crate) fn new(world: &str, name: &str) -> Self {
        Self { world: PathBuf::from(world), name: name.to_owned() }
    }

    pub(crate) fn read(&self) -> io::Result<Option<Body>> {
        match fs::read(self.file()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|err| self.unreadable(&err))?)),
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// When the file was last written.
    pub(crate) fn written_at(&self) -> io::Result<OffsetDateTime> {
        Ok(fs::metadata(self.file())?.modified()?.into())
    }

    /// Fails if there is a thing of that name, as a cloud would.
    pub(crate) fn create(&self, body: &Body) -> io::Result<()> {
        let draft = self.draft(body)?;
        let linked = fs::hard_link(&draft, self.file());
        fs::remove_file(&draft)?;
        linked?;
        self.witness("create")
    }

    /// Fails if there is no thing of that name.
    pub(crate) fn update(&self, body: &Body) -> io::Result<()> {
        fs::metadata(self.file())?;
        fs::rename(self.draft(body)?, self.file())?;
        self.witness("update")
    }

    /// A thing that is gone already is no error.
    pub(crate) fn delete(&self) -> io::Result<()> {
        match fs::remove_file(self.file()) {
            Ok(()) => self.witness("delete"),
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(()),
            Err(err) => Err(err),
        }
    }

    fn file(&self) -> PathBuf {
        self.world.join(format!("{}.json", self.name))
    }

    /// The file, complete, under another name, so that nobody sees half of it.
    fn draft(&self, body: &Body) -> io::Result<PathBuf> {
        let draft = self.world.join(format!(".{}.{}", self.name, std::process::id()));
        fs::write(&draft, serde_json::to_vec(body)?)?;
        Ok(draft)
    }

    /// One write, so that lines of several processes do not mix.
    fn witness(&self, deed: &str) -> io::Result<()> {
        let log: &Path = &self.world.join("witness.log");
        let line = format!("{deed} {}\n", self.name);
        fs::OpenOptions::new().append(true).create(true).open(log)?.write_all(line.as_bytes())
    }

    fn unreadable(&self, err: &serde_json::Error) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, format!("{}: {err}", self.file().display()))
    }
}
