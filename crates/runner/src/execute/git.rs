//! Sources from git, with a configuration that comes from nowhere but here.
//!
//! What a repository has is asked first; where that is known already, nothing is fetched. Commits are kept, without their
//! history, in a bare repository of the runner's own for every address, and brought from there into the execution. A login
//! lies in a file while git works, and nowhere else: not in an argument, not in the environment, not in the repository.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use model::Digest;
use model::build::{BuiltFrom, Credentials};

use super::action::{StepFailure, base_environment};
use super::{Run, tool, watch};
use crate::confine::limits;
use crate::confine::process::{self, Child, Ended, Kept};
use crate::directory::remove_tree;

/// Repositories that were fetched before, in the state directory.
const CACHE: &str = "cache/git";
/// A larger one is not kept.
const REPOSITORY_BYTES_MAX: u64 = 2 << 30;
/// The longest unused go first.
const CACHE_BYTES_MAX: u64 = 10 << 30;
const REFERENCES_BYTES_MAX: u64 = 16 << 20;
const SHORT_COMMIT: usize = 7;
const COMMIT: usize = 40;
const LOOK: Duration = Duration::from_millis(200);

/// A repository, and what is wanted of it.
pub(super) struct Checkout<'a> {
    pub(super) url: &'a str,
    pub(super) reference: Option<&'a str>,
    pub(super) submodules: bool,
    pub(super) credentials: Option<&'a Credentials>,
}

fn bad(message: impl Into<String>) -> StepFailure {
    StepFailure::new("source_failed", message)
}

/// Brings the files of a commit into `place`, unless the commit is the known one; says which one it was.
pub(super) async fn fetch(
    run: &mut Run<'_>,
    step: usize,
    wanted: &Checkout<'_>,
    known: Option<&str>,
    place: &Path,
) -> Result<BuiltFrom, StepFailure> {
    tool::need("git", "a source from git")?;
    let (url, in_url) = split_login(wanted.url);
    check(&url, wanted.reference)?;
    let reference = wanted.reference.unwrap_or("HEAD");
    let login = Login::new(run, &url, wanted.credentials.or(in_url.as_ref()))?;
    let git = Git { url: &url, login, shown: without_password(&url) };
    run.say(Some(step), &format!("looking at {} for {reference}", git.shown));
    let commit = git.resolve(run, step, reference).await?;
    let mut from =
        BuiltFrom { revision: commit.clone(), reference: wanted.reference.map(str::to_owned), ..BuiltFrom::default() };
    if known == Some(commit.as_str()) {
        return Ok(from);
    }
    run.say(Some(step), &format!("fetching {commit}"));
    git.bring(run, step, &commit, place).await?;
    if wanted.submodules && place.join(".gitmodules").exists() {
        git.submodules(run, step, place).await?;
    }
    // Nothing that comes later may read it.
    drop(git);
    let env = base_environment(|name| std::env::var(name).ok(), &run.host.dir.work());
    let argv = ["git", "-c", "log.showSignature=false", "log", "-1", "--format=%an%n%ae%n%B"];
    if let Some(text) = tool::output(run, step, place, env, &argv, 1 << 20).await? {
        let mut lines = text.splitn(3, '\n');
        let mut next = || Some(lines.next().unwrap_or_default().trim().to_owned());
        (from.author_name, from.author_email, from.message) = (next(), next(), next());
    }
    Ok(from)
}

fn check(url: &str, reference: Option<&str>) -> Result<(), StepFailure> {
    if let Some(reference) = reference
        && (reference.is_empty()
            || reference.starts_with('-')
            || reference.contains(|c: char| c.is_whitespace() || c.is_control() || "*?[~^:\\".contains(c)))
    {
        return Err(bad(format!("`{reference}` is not a branch, tag or commit")));
    }
    // `git@host:path` is ssh as well.
    let known = ["https://", "http://", "ssh://", "file://"].iter().any(|scheme| url.starts_with(scheme));
    let short = url
        .split_once(':')
        .is_some_and(|(host, _)| host.contains('@') && !host.starts_with('-') && !host.contains('/'));
    if known || short {
        return Ok(());
    }
    Err(bad(format!("`{}` is not an https, ssh or file URL of a repository", without_password(url))))
}

/// An address without the login that may stand in it, and that login.
fn split_login(url: &str) -> (String, Option<Credentials>) {
    let parts = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "https" | "http"));
    let Some((scheme, rest)) = parts else { return (url.to_owned(), None) };
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
    let Some((login, host)) = authority.rsplit_once('@') else { return (url.to_owned(), None) };
    let (username, password) = login.split_once(':').unwrap_or((login, ""));
    let login = Credentials { username: decoded(username), password: decoded(password) };
    (format!("{scheme}://{host}/{path}"), Some(login))
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) if !user.contains('/') => format!("{scheme}://***@{rest}"),
        _ => url.to_owned(),
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes().map(|b| if plain(&b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        match hex.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_commit(text: &str) -> bool {
    text.len() == COMMIT && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A login in a file of its own, which goes with this value. For the host of the repository alone: git asks with the address
/// that it talks to, also for submodules and after a redirect.
#[derive(Default)]
struct Login {
    file: Option<PathBuf>,
    settings: Vec<String>,
    ssh: Option<String>,
}

impl Login {
    fn new(run: &Run<'_>, url: &str, credentials: Option<&Credentials>) -> Result<Self, StepFailure> {
        let Some(login) = credentials else { return Ok(Self::default()) };
        let file = run.host.dir.work().join("tmp/git-login");
        let path = file.to_string_lossy().into_owned();
        if let Some((scheme @ ("https" | "http"), rest)) = url.split_once("://") {
            let host = rest.split('/').next().unwrap_or_default();
            tool::private(
                &file,
                &format!("{scheme}://{}:{}@{host}\n", encoded(&login.username), encoded(&login.password)),
            )?;
            let helper = format!("credential.{scheme}://{host}.helper=store --file={path}");
            let settings = vec!["-c".into(), helper];
            return Ok(Self { file: Some(file), settings, ssh: None });
        }
        // A private key is the one thing that ssh takes from a file.
        if login.password.contains("PRIVATE KEY") {
            tool::private(&file, &format!("{}\n", login.password.trim()))?;
            let ssh = Some(format!("-i {path} -o IdentitiesOnly=yes"));
            return Ok(Self { file: Some(file), settings: Vec::new(), ssh });
        }
        Ok(Self::default())
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

struct Git<'a> {
    url: &'a str,
    login: Login,
    /// The address as it may be shown.
    shown: String,
}

impl Git<'_> {
    fn environment(&self, run: &Run<'_>) -> BTreeMap<String, String> {
        let mut env = base_environment(|name| std::env::var(name).ok(), &run.host.dir.work());
        // A repository from elsewhere can't name one of this machine.
        let protocols = if self.url.starts_with("file://") { "https:http:ssh:file" } else { "https:http:ssh" };
        let ssh = self.login.ssh.as_deref().unwrap_or_default();
        let ssh = format!("ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new {ssh}");
        let hermetic = [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", protocols),
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            ("GIT_SSH_COMMAND", ssh.trim()),
        ];
        env.extend(hermetic.map(|(k, v)| (k.to_owned(), v.to_owned())));
        env
    }

    fn argv(&self, arguments: &[&str]) -> Vec<String> {
        let settings = [
            "git",
            "-c",
            "protocol.ext.allow=never",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "advice.detachedHead=false",
            "-c",
            "credential.helper=",
            "-c",
            "gc.auto=0",
            "-c",
            "init.defaultBranch=main",
        ];
        let words = settings.into_iter().map(str::to_owned).chain(self.login.settings.iter().cloned());
        words.chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    /// Runs git; `also` is a directory of the runner that it may use.
    async fn run(
        &self,
        run: &mut Run<'_>,
        step: usize,
        dir: &Path,
        also: Option<&Path>,
        arguments: &[&str],
    ) -> Result<bool, StepFailure> {
        let kept = also.map_or(Kept::InSandbox, |path| Kept::InSandboxWith(vec![path.to_owned()]));
        let env = self.environment(run);
        let child = Child { kept, ..Child::new(self.argv(arguments), dir.to_owned(), env, step) };
        let ended = match also {
            // What is fetched there counts as the execution's own.
            Some(path) => {
                let quota = run.context.execution_disk_bytes;
                let (mut stop, watching) = watch::also_disk(run.stop.clone(), path.to_owned(), quota);
                let ended = process::run(&child, &run.host, &mut stop).await;
                watching.abort();
                ended?
            }
            None => process::run(&child, &run.host, &mut run.stop).await?,
        };
        match ended {
            Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
            Ended::Exited(status) => Ok(status.success()),
        }
    }

    async fn output(
        &self,
        run: &mut Run<'_>,
        step: usize,
        dir: &Path,
        arguments: &[&str],
    ) -> Result<Option<String>, StepFailure> {
        let (env, argv) = (self.environment(run), self.argv(arguments));
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        tool::output(run, step, dir, env, &argv, REFERENCES_BYTES_MAX).await
    }

    /// The commit that a branch, tag or shortened commit stands for.
    async fn resolve(&self, run: &mut Run<'_>, step: usize, reference: &str) -> Result<String, StepFailure> {
        if is_commit(reference) {
            return Ok(reference.to_ascii_lowercase());
        }
        let work = run.host.dir.work();
        let names = [
            format!("refs/heads/{reference}"),
            // What an annotated tag leads to, before the tag itself.
            format!("refs/tags/{reference}^{{}}"),
            format!("refs/tags/{reference}"),
            reference.to_owned(),
        ];
        let mut arguments = vec!["ls-remote", "--quiet", self.url];
        arguments.extend(names.iter().map(String::as_str));
        let found = self.output(run, step, &work, &arguments).await?;
        let found = found.ok_or_else(|| bad(format!("git can't read {}", self.shown)))?;
        let of = |name: &String| {
            let mut lines = found.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(_, reference)| reference == name).map(|(commit, _)| commit.to_owned())
        };
        if let Some(commit) = names.iter().find_map(of).filter(|commit| is_commit(commit)) {
            return Ok(commit);
        }
        let hexadecimal = reference.bytes().all(|b| b.is_ascii_hexdigit());
        if (SHORT_COMMIT..COMMIT).contains(&reference.len()) && hexadecimal {
            return self.lengthened(run, step, reference).await;
        }
        Err(bad(format!("{} has no branch, tag or commit `{reference}`", self.shown)))
    }

    /// A shortened commit: the whole history is looked through, without the files.
    async fn lengthened(&self, run: &mut Run<'_>, step: usize, short: &str) -> Result<String, StepFailure> {
        let work = run.host.dir.work();
        let history = work.join("tmp/history.git");
        let place = history.to_string_lossy().into_owned();
        let missing = || bad(format!("{} has no branch, tag or commit `{short}`", self.shown));
        let arguments = ["clone", "--quiet", "--bare", "--filter=tree:0", "--", self.url, &place];
        if !self.run(run, step, &work, None, &arguments).await? {
            return Err(bad(format!("git can't read {}", self.shown)));
        }
        let name = format!("{short}^{{commit}}");
        let found = self.output(run, step, &history, &["rev-parse", "--verify", "--quiet", &name]).await?;
        remove_tree(&history)?;
        found.map(|text| text.trim().to_owned()).filter(|text| is_commit(text)).ok_or_else(missing)
    }

    /// Puts a commit into the runner's own copy, where it is not there, and from there into `place`.
    async fn bring(&self, run: &mut Run<'_>, step: usize, commit: &str, place: &Path) -> Result<(), StepFailure> {
        let all = run.context.state_dir.join(CACHE);
        fs::create_dir_all(&all)?;
        let all = fs::canonicalize(&all)?;
        let repository = all.join(format!("{}.git", &Digest::of(self.url.as_bytes()).hex()[..32]));
        let _lock = lock(run, &repository).await?;
        let mut done = false;
        for again in [false, true] {
            if again {
                run.say(Some(step), "the runner's copy of the repository is unusable; fetching it again");
                remove_tree(&repository)?;
                remove_tree(place)?;
            }
            let fresh = !repository.exists();
            fs::create_dir_all(&repository)?;
            fs::create_dir_all(place)?;
            done = self.fill(run, step, commit, &repository).await?
                && self.take(run, step, commit, &repository, place).await?;
            // A new copy that fails would fail again.
            if done || fresh {
                break;
            }
        }
        let size = limits::disk_bytes(&repository, REPOSITORY_BYTES_MAX);
        if !done || size > REPOSITORY_BYTES_MAX {
            remove_tree(&repository)?;
        }
        tokio::task::spawn_blocking(move || shrink(&all, CACHE_BYTES_MAX)).await.map_err(std::io::Error::other)?;
        if done { Ok(()) } else { Err(bad(format!("git can't fetch `{commit}` of {}", self.shown))) }
    }

    async fn fill(&self, run: &mut Run<'_>, step: usize, commit: &str, repository: &Path) -> Result<bool, StepFailure> {
        let also = Some(repository);
        if !self.run(run, step, repository, also, &["init", "--quiet", "--bare"]).await? {
            return Ok(false);
        }
        let name = format!("refs/ferry/{commit}");
        // The whole of it is there, or it is fetched again.
        let whole = ["rev-list", "--quiet", "--objects", "--no-walk", &name];
        if repository.join(&name).exists() && self.run(run, step, repository, also, &whole).await? {
            return Ok(true);
        }
        let one = format!("+{commit}:{name}");
        let arguments = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", self.url, &one];
        if self.run(run, step, repository, also, &arguments).await? {
            return Ok(true);
        }
        // Some servers hand out nothing but branches and tags: then all of them are fetched.
        run.say(Some(step), "the server does not hand out a single commit; fetching all branches and tags");
        let arguments = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            self.url,
            "+refs/heads/*:refs/ferry-all/heads/*",
            "+refs/tags/*:refs/ferry-all/tags/*",
        ];
        Ok(self.run(run, step, repository, also, &arguments).await?
            && self.run(run, step, repository, also, &["update-ref", &name, commit]).await?)
    }

    async fn take(
        &self,
        run: &mut Run<'_>,
        step: usize,
        commit: &str,
        repository: &Path,
        place: &Path,
    ) -> Result<bool, StepFailure> {
        let from = format!("file://{}", repository.display());
        let name = format!("refs/ferry/{commit}");
        let also = Some(repository);
        let local = Git { url: "file://", login: Login::default(), shown: String::new() };
        let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--update-shallow", &from, &name];
        Ok(local.run(run, step, place, None, &["init", "--quiet"]).await?
            && local.run(run, step, place, None, &["remote", "add", "origin", self.url]).await?
            && local.run(run, step, place, also, &fetch).await?
            && local.run(run, step, place, None, &["checkout", "--quiet", "--force", "--detach", commit]).await?)
    }

    async fn submodules(&self, run: &mut Run<'_>, step: usize, place: &Path) -> Result<(), StepFailure> {
        run.say(Some(step), "fetching submodules");
        let all = ["submodule", "--quiet", "update", "--init", "--recursive"];
        let shallow: Vec<&str> = all.into_iter().chain(["--depth=1"]).collect();
        // A server that hands out no single commit has it in the history, perhaps.
        let done = self.run(run, step, place, None, &shallow).await? || self.run(run, step, place, None, &all).await?;
        if done { Ok(()) } else { Err(bad(format!("the submodules of {} can't be fetched", self.shown))) }
    }
}

/// One execution at a time works with a copy.
async fn lock(run: &mut Run<'_>, repository: &Path) -> Result<File, StepFailure> {
    let path = repository.with_extension("lock");
    let file = File::options().create(true).truncate(true).write(true).open(path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
        }
    }
}

/// Removes the copies that were not used for the longest time, until the rest fits.
fn shrink(all: &Path, bytes_max: u64) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<(std::time::SystemTime, PathBuf, u64)> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "git"))
        .filter_map(|path| {
            // Every use opens the lock anew.
            let used = fs::metadata(path.with_extension("lock")).and_then(|meta| meta.modified()).ok()?;
            let size = limits::disk_bytes(&path, u64::MAX);
            Some((used, path, size))
        })
        .collect();
    found.sort();
    let mut total: u64 = found.iter().map(|(_, _, size)| size).fold(0, |sum, size| sum.saturating_add(*size));
    for (_, path, size) in found {
        if total <= bytes_max {
            break;
        }
        let lock = File::options().write(true).open(path.with_extension("lock"));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok() && remove_tree(&path).is_ok()) {
            total = total.saturating_sub(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("https://u:p@host/x"), "https://***@host/x");
        assert_eq!(without_password("https://host/x@y"), "https://host/x@y");
    }

    #[test]
    fn a_login_leaves_the_address() {
        let table = [
            ("https://u:p%40x@host:8443/a/b", "https://host:8443/a/b", Some(("u", "p@x"))),
            ("https://token@host/a", "https://host/a", Some(("token", ""))),
            ("https://host/a@b", "https://host/a@b", None),
            ("ssh://git@host/a", "ssh://git@host/a", None),
            ("git@host:a", "git@host:a", None),
        ];
        for (url, want, login) in table {
            let (left, found) = split_login(url);
            let found = found.as_ref().map(|c| (c.username.as_str(), c.password.as_str()));
            assert_eq!((left.as_str(), found), (want, login), "{url}");
        }
        assert_eq!(encoded("p@:/ü"), "p%40%3A%2F%C3%BC");
        assert_eq!(decoded(&encoded("p@:/ü%")), "p@:/ü%");
    }

    #[test]
    fn odd_addresses_and_references_are_refused() {
        for url in ["ext::sh -c x", "-u", "/etc", "git://host/x", "-a@b:c", "a/b@c:d"] {
            assert!(check(url, None).is_err(), "{url}");
        }
        for url in ["https://h/x", "http://h/x", "ssh://h/x", "file:///x", "git@h:x"] {
            assert!(check(url, None).is_ok(), "{url}");
        }
        for reference in ["", "-x", "a b", "a*", "a^{}", "a:b"] {
            assert!(check("https://h/x", Some(reference)).is_err(), "{reference}");
        }
        assert!(check("https://h/x", Some("feature/a-b_1.2")).is_ok());
    }

    #[test]
    fn the_longest_unused_copies_go_first() {
        let dir = tempfile::tempdir().expect("dir");
        for (age, name) in [(3, "old"), (2, "middle"), (1, "new")] {
            let path = dir.path().join(format!("{name}.git"));
            fs::create_dir(&path).expect("dir");
            fs::write(path.join("data"), vec![1; 1 << 20]).expect("file");
            let lock = File::create(path.with_extension("lock")).expect("lock");
            lock.set_modified(std::time::SystemTime::now() - Duration::from_secs(age * 100)).expect("time");
        }
        let there = |name: &str| dir.path().join(format!("{name}.git")).exists();
        shrink(dir.path(), 5 << 20);
        assert!(there("old") && there("middle") && there("new"));
        shrink(dir.path(), (3 << 20) - 1);
        assert!(!there("old") && there("middle") && there("new"));
        let held = File::options().write(true).open(dir.path().join("middle.lock")).expect("lock");
        held.lock().expect("lock");
        shrink(dir.path(), 1 << 20);
        assert!(there("middle") && !there("new"), "one that is in use stays");
    }
}
