//! Brings the files of a step: from git, with a configuration that comes from nowhere but here, or from an archive.

use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use model::build::BuiltFrom;
use model::spec::Source;

use super::action::{StepFailure, base_environment};
use super::{Run, archive};
use crate::process::{self, Child, Ended};

/// Puts the source into `place` and returns the directory to run in.
pub(super) async fn prepare(
    run: &mut Run<'_>,
    step: usize,
    source: &Source,
    place: &Path,
    disk_bytes: u64,
) -> Result<PathBuf, StepFailure> {
    fs::create_dir_all(place)?;
    let directory = match source {
        Source::Git { url, reference, directory, .. } => {
            clone(run, step, url, reference.as_deref(), place).await?;
            directory
        }
        Source::Archive { digest, directory } => {
            archive::unpack(run, digest, place, disk_bytes).await?;
            directory
        }
    };
    inside(place, directory.as_deref().unwrap_or("."))
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
    let Source::Git { reference, directory, .. } = source else {
        return Err(StepFailure::new("bad_spec", "the source is no repository"));
    };
    let _ = known;
    prepare(run, step, source, place, u64::MAX).await?;
    let mut from = BuiltFrom { reference: reference.clone(), ..BuiltFrom::default() };
    let env = base_environment(|name| std::env::var(name).ok(), &run.host.dir.work());
    let argv = ["git", "log", "-1", "--format=%H%n%an%n%ae%n%B"];
    if let Some(text) = super::tool::output(run, step, place, env, &argv, 1 << 20).await? {
        let mut lines = text.splitn(4, '\n');
        let mut next = || lines.next().unwrap_or_default().trim().to_owned();
        from.revision = next();
        (from.author_name, from.author_email, from.message) = (Some(next()), Some(next()), Some(next()));
    }
    Ok((from, inside(place, directory.as_deref().unwrap_or("."))?))
}

/// The named directory, which must lie in the source, also after following links.
fn inside(place: &Path, directory: &str) -> Result<PathBuf, StepFailure> {
    let bad = |why: &str| StepFailure::new("source_failed", format!("directory `{directory}` {why}"));
    let asked = Path::new(directory);
    if asked.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
        return Err(bad("must lie inside the source"));
    }
    let place = fs::canonicalize(place)?;
    let found = fs::canonicalize(place.join(asked)).map_err(|_| bad("is not in the source"))?;
    if !found.starts_with(&place) {
        return Err(bad("leads out of the source"));
    }
    if found.is_dir() { Ok(found) } else { Err(bad("is not a directory")) }
}

/// A file that must lie in the source, also after following links; or what is wrong with it.
pub(super) fn file_inside(source: &Path, file: &str) -> Result<PathBuf, &'static str> {
    let asked = Path::new(file);
    if asked.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
        return Err("must lie inside the source");
    }
    let source = fs::canonicalize(source).map_err(|_| "is not in the source")?;
    let found = fs::canonicalize(source.join(asked)).map_err(|_| "is not in the source")?;
    match (found.starts_with(&source), found.is_file()) {
        (true, true) => Ok(found),
        (true, false) => Err("is not a file"),
        (false, _) => Err("leads out of the source"),
    }
}

async fn clone(
    run: &mut Run<'_>,
    step: usize,
    url: &str,
    reference: Option<&str>,
    place: &Path,
) -> Result<(), StepFailure> {
    let bad = |message: String| StepFailure::new("source_failed", message);
    let reference = reference.unwrap_or("HEAD");
    if reference.is_empty() || reference.starts_with('-') || reference.contains(char::is_whitespace) {
        return Err(bad(format!("`{reference}` is not a branch, tag or commit")));
    }
    // `git@host:path` is ssh as well.
    let known = ["https://", "http://", "ssh://", "file://"].iter().any(|scheme| url.starts_with(scheme));
    if !known && !url.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.starts_with('-')) {
        return Err(bad(format!("`{}` is not an https, ssh or file URL of a repository", without_password(url))));
    }
    run.say(Some(step), &format!("fetching {} at {reference}", without_password(url)));
    let failed = || bad(format!("git can't fetch `{reference}` of {}", without_password(url)));
    if !git(run, step, place, &["init", "--quiet"]).await? {
        return Err(failed());
    }
    // A commit that no branch points to may be refused by itself, and so is a shortened one: then everything is fetched.
    if git(run, step, place, &["fetch", "--quiet", "--depth=1", "--no-tags", url, reference]).await? {
        return match git(run, step, place, &["checkout", "--quiet", "--detach", "FETCH_HEAD"]).await? {
            true => Ok(()),
            false => Err(failed()),
        };
    }
    let hexadecimal = reference.len() >= 7 && reference.chars().all(|c| c.is_ascii_hexdigit());
    if hexadecimal
        && git(run, step, place, &["fetch", "--quiet", url, "+refs/heads/*:refs/remotes/origin/*"]).await?
        && git(run, step, place, &["checkout", "--quiet", "--detach", reference]).await?
    {
        return Ok(());
    }
    Err(failed())
}

async fn git(run: &mut Run<'_>, step: usize, place: &Path, arguments: &[&str]) -> Result<bool, StepFailure> {
    let mut env = base_environment(|name| std::env::var(name).ok(), &run.host.dir.work());
    let hermetic = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ALLOW_PROTOCOL", "https:http:ssh:file"),
        ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new"),
    ];
    env.extend(hermetic.map(|(k, v)| (k.to_owned(), v.to_owned())));
    let settings =
        ["-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false"];
    let argv = ["git"].iter().chain(&settings).chain(arguments).map(|word| (*word).to_owned()).collect();
    let child = Child { argv, cwd: place.to_owned(), env, step, in_cell: false };
    match process::run(&child, &run.host, &mut run.stop).await? {
        Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
        Ended::Exited(status) => Ok(status.success()),
    }
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) if !user.contains('/') => format!("{scheme}://***@{rest}"),
        _ => url.to_owned(),
    }
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

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("https://u:p@host/x"), "https://***@host/x");
        assert_eq!(without_password("https://host/x@y"), "https://host/x@y");
    }
}
