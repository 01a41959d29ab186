//! Brings the files of a step: from git, or from an archive.

use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use model::build::BuiltFrom;
use model::spec::Source;

use super::action::StepFailure;
use super::{Run, archive, git};

/// Puts the source into `place` and returns the directory to run in.
pub(super) async fn prepare(
    run: &mut Run<'_>,
    step: usize,
    source: &Source,
    place: &Path,
    disk_bytes: u64,
) -> Result<PathBuf, StepFailure> {
    fs::create_dir_all(place)?;
    match source {
        Source::Git { .. } => Ok(fetch_git(run, step, source, None, place).await?.1),
        Source::Archive { digest, directory } => {
            archive::unpack(run, digest, place, disk_bytes).await?;
            inside(place, directory.as_deref().unwrap_or("."))
        }
    }
}

/// Brings a directory of a repository; returns the commit that was found. The files are not there where the commit is the
/// known one.
pub(super) async fn fetch_git(
    run: &mut Run<'_>,
    step: usize,
    source: &Source,
    known: Option<&str>,
    place: &Path,
) -> Result<(BuiltFrom, PathBuf), StepFailure> {
    let Source::Git { url, reference, directory, submodules, credentials } = source else {
        return Err(StepFailure::new("bad_spec", "the source is no repository"));
    };
    let (reference, credentials) = (reference.as_deref(), credentials.as_ref());
    let wanted = git::Checkout { url, reference, submodules: *submodules, credentials };
    let from = Box::pin(git::fetch(run, step, &wanted, known, place)).await?;
    if known == Some(from.revision.as_str()) {
        return Ok((from, place.to_owned()));
    }
    Ok((from, inside(place, directory.as_deref().unwrap_or("."))?))
}

/// The named directory, which must lie in the source, also after following links.
fn inside(place: &Path, directory: &str) -> Result<PathBuf, StepFailure> {
    let bad = |why: &str| StepFailure::new("source_failed", format!("directory `{directory}` {why}"));
    let found = followed(place, directory).map_err(bad)?;
    if found.is_dir() { Ok(found) } else { Err(bad("is not a directory")) }
}

/// A file that must lie in the source, also after following links; or what is wrong with it.
pub(super) fn file_inside(source: &Path, file: &str) -> Result<PathBuf, &'static str> {
    let found = followed(source, file)?;
    if found.is_file() { Ok(found) } else { Err("is not a file") }
}

/// Where a path of the source leads in the end.
fn followed(source: &Path, path: &str) -> Result<PathBuf, &'static str> {
    let asked = Path::new(path);
    if asked.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
        return Err("must lie inside the source");
    }
    let source = fs::canonicalize(source).map_err(|_| "is not in the source")?;
    let found = fs::canonicalize(source.join(asked)).map_err(|_| "is not in the source")?;
    if found.starts_with(&source) { Ok(found) } else { Err("leads out of the source") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_never_leaves_its_source() {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir_all(dir.path().join("a/b")).expect("dir");
        std::os::unix::fs::symlink("/etc", dir.path().join("out")).expect("link");
        std::os::unix::fs::symlink("a/b", dir.path().join("in")).expect("link");
        for (directory, ok) in [(".", true), ("a/b", true), ("in", true), ("out", false), ("..", false), ("/", false)] {
            assert_eq!(inside(dir.path(), directory).is_ok(), ok, "{directory}");
        }
    }
}
