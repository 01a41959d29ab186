//! An app's directory: its files in memory, and what its files name elsewhere, fetched and pinned by a lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use config::{MAX_FILE_BYTES, Tree};
use model::Digest;

use crate::error::{CliError, Result};

/// Where the digests of remote contents are kept, beside the app's files.
pub(crate) const LOCK: &str = "ferry.lock";
/// Directories that hold nothing of an app.
pub(crate) const SKIPPED: [&str; 3] = [".git", ".terraform", "node_modules"];
const FILES_MAX: usize = 50_000;
const BYTES_MAX: usize = 512 << 20;
/// For one remote file.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads an app's directory. Links to files are followed, links to directories are not.
pub(crate) fn read(dir: &Path) -> Result<Tree> {
    let root =
        fs_err::canonicalize(dir).map_err(|_| CliError::usage(format!("there is no directory {}", dir.display())))?;
    if !root.is_dir() {
        return Err(CliError::usage(format!("{} is not a directory", dir.display())));
    }
    let name = root.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut reader = Reader { tree: Tree::new(name), bytes: 0, large: vec![0; MAX_FILE_BYTES + 1].into() };
    reader.walk(&root, "")?;
    if !reader.tree.files.keys().any(|path| path.ends_with(".toml")) {
        return Err(CliError::usage(format!("no TOML files in {}, so it is not an app", dir.display()))
            .hint("run `ferry apps init DIR` to write an example app"));
    }
    Ok(reader.tree)
}

struct Reader {
    tree: Tree,
    bytes: usize,
    /// Stands for every file that is too large to be part of a config.
    large: Arc<[u8]>,
}

impl Reader {
    fn walk(&mut self, dir: &Path, prefix: &str) -> Result<()> {
        let mut entries = fs_err::read_dir(dir)?.collect::<std::io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs_err::DirEntry::file_name);
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    self.walk(&entry.path(), &path)?;
                }
                continue;
            }
            // A link that leads nowhere, or in a circle, is no file.
            let Ok(metadata) = fs_err::metadata(entry.path()) else { continue };
            if metadata.is_file() {
                self.file(&entry.path(), path, metadata.len())?;
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &Path, path: String, size: u64) -> Result<()> {
        if self.tree.files.len() >= FILES_MAX || self.bytes > BYTES_MAX {
            let text = format!("the directory contains more than {FILES_MAX} files or {} MiB", BYTES_MAX >> 20);
            return Err(CliError::failed(text).hint("keep build output and data out of an app's directory"));
        }
        let contents = if size > MAX_FILE_BYTES as u64 {
            Arc::clone(&self.large)
        } else {
            let contents: Arc<[u8]> = fs_err::read(file)?.into();
            self.bytes += contents.len();
            contents
        };
        self.tree.files.insert(path, contents);
        Ok(())
    }
}

/// What a fetch did.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// How many files came from the network.
    pub(crate) files: usize,
    /// What could not be had.
    pub(crate) failures: Vec<CliError>,
}

/// Fetches what the app's files name elsewhere. What the lock file knows must be the same as then, unless `update` says
/// that it may have changed.
pub(crate) async fn fetch(dir: &Path, tree: &mut Tree, update: bool) -> Result<Fetched> {
    let mut lock = read_lock(dir)?;
    let before = lock.clone();
    let mut done = Fetched::default();
    let mut tried = BTreeSet::new();
    // What was fetched may name more.
    for _ in 0..8 {
        let wanted: Vec<String> = config::wanted(tree).into_iter().filter(|w| tried.insert(w.clone())).collect();
        if wanted.is_empty() {
            break;
        }
        for address in wanted {
            let known = lock.get(&address).filter(|_| !update).cloned();
            let contents = match known.as_ref().and_then(cached) {
                Some(contents) => contents,
                None => match download(&address).await {
                    Ok(contents) => {
                        done.files += 1;
                        contents
                    }
                    Err(error) => {
                        done.failures.push(error);
                        continue;
                    }
                },
            };
            let digest = Digest::of(&contents);
            if let Some(known) = known.filter(|known| *known != digest) {
                let text = format!("`{address}` has changed: {LOCK} pins {known}, but the content is now {digest}");
                return Err(CliError::failed(text).hint("review the change, then accept it with `--update-lock`"));
            }
            keep(&digest, &contents);
            lock.insert(address.clone(), digest);
            tree.fetched.insert(address, contents.into());
        }
    }
    lock.retain(|address, _| tried.contains(address));
    if lock != before {
        write_lock(dir, &lock)?;
    }
    Ok(done)
}

type Lock = BTreeMap<String, Digest>;

fn read_lock(dir: &Path) -> Result<Lock> {
    let path = dir.join(LOCK);
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Lock::new()),
        Err(error) => return Err(error.into()),
    };
    let parsed: BTreeMap<String, String> =
        toml::from_str(&text).map_err(|e| CliError::failed(format!("{} can't be read: {e}", path.display())))?;
    let entry = |(address, digest): (String, String)| match Digest::parse(&digest) {
        Ok(digest) => Ok((address, digest)),
        Err(error) => Err(CliError::failed(format!("{}: `{address}`: {error}", path.display()))),
    };
    parsed.into_iter().map(entry).collect()
}

fn write_lock(dir: &Path, lock: &Lock) -> Result<()> {
    let path = dir.join(LOCK);
    if lock.is_empty() {
        return Ok(fs_err::remove_file(&path)?);
    }
    let mut text =
        String::from("# Digests of the remote files that this app names. Written by `ferry apps`; keep it in git.\n");
    for (address, digest) in lock {
        text.push_str(&format!("{} = \"{digest}\"\n", toml::Value::String(address.clone())));
    }
    Ok(fs_err::write(path, text)?)
}

fn cache_file(digest: &Digest) -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(base.join("ferry/remote").join(digest.hex()))
}

fn cached(digest: &Digest) -> Option<Vec<u8>> {
    let contents = fs_err::read(cache_file(digest)?).ok()?;
    (Digest::of(&contents) == *digest).then_some(contents)
}

/// Not being able to keep it costs another fetch, nothing else.
fn keep(digest: &Digest, contents: &[u8]) {
    let Some(path) = cache_file(digest) else { return };
    let Some(parent) = path.parent() else { return };
    if fs_err::create_dir_all(parent).is_ok() {
        let _ = fs_err::write(path, contents);
    }
}

async fn download(address: &str) -> Result<Vec<u8>> {
    let failed = |reason: String| {
        CliError::failed(format!("`{address}` can't be fetched: {reason}"))
            .hint("check the address and the network, or copy the file into the app's directory")
    };
    let got = tokio::time::timeout(FETCH_TIMEOUT, async {
        match git_address(address) {
            Some(Ok(git)) => from_git(&git).await,
            Some(Err(reason)) => Err(reason),
            None => from_web(address).await,
        }
    });
    match got.await {
        Ok(Ok(contents)) => Ok(contents),
        Ok(Err(reason)) => Err(failed(reason)),
        Err(_) => Err(failed(format!("no answer within {} s", FETCH_TIMEOUT.as_secs()))),
    }
}

/// What lies at the bottom of an error: `connection refused`, rather than `error sending request`.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

async fn from_web(address: &str) -> std::result::Result<Vec<u8>, String> {
    let http = reqwest::Client::builder().user_agent(concat!("ferry/", env!("CARGO_PKG_VERSION")));
    let http = http.build().map_err(|e| e.to_string())?;
    let mut answer = http.get(address).send().await.map_err(|e| root_cause(&e))?;
    if !answer.status().is_success() {
        return Err(format!("the answer is {}", answer.status()));
    }
    let mut contents = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|e| root_cause(&e))? {
        contents.extend_from_slice(&chunk);
        if contents.len() > MAX_FILE_BYTES {
            return Err(format!("it has more than {} MiB", MAX_FILE_BYTES >> 20));
        }
    }
    Ok(contents)
}

#[derive(Debug, PartialEq, Eq)]
struct GitFile {
    url: String,
    reference: Option<String>,
    path: String,
}

/// `git::https://host/org/repo//path?ref=x`, or `github.com/org/repo//path?ref=x`; `None` where it is no such address.
fn git_address(address: &str) -> Option<std::result::Result<GitFile, String>> {
    let (rest, github) = match address.strip_prefix("git::") {
        Some(rest) => (rest, false),
        None if address.starts_with("github.com/") => (address, true),
        None => return None,
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let scheme_end = rest.find("://").map_or(0, |at| at + 3);
    let Some(at) = rest[scheme_end..].find("//").map(|at| at + scheme_end) else {
        return Some(Err("the address has no `//` before the path in the repository".into()));
    };
    let (url, path) = (&rest[..at], rest[at + 2..].trim_matches('/'));
    if path.is_empty() || path.split('/').any(|part| part == ".." || part.is_empty()) {
        return Some(Err("the path in the repository is missing or leaves it".into()));
    }
    let reference = query.split('&').find_map(|pair| pair.strip_prefix("ref=")).map(str::to_owned);
    let url = if github { format!("https://{url}.git") } else { url.to_owned() };
    Some(Ok(GitFile { url, reference, path: path.to_owned() }))
}

/// One file of one commit.
async fn from_git(file: &GitFile) -> std::result::Result<Vec<u8>, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let git = |args: Vec<String>| {
        let mut command = tokio::process::Command::new("git");
        command.arg("-C").arg(dir.path()).args(args).env("GIT_TERMINAL_PROMPT", "0");
        command.stdin(Stdio::null()).kill_on_drop(true);
        async move {
            let done = command.output().await.map_err(|e| format!("git can't be run: {e}"))?;
            if done.status.success() {
                return Ok(done.stdout);
            }
            Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
        }
    };
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let reference = file.reference.as_deref().unwrap_or("HEAD");
    if reference.starts_with('-') || file.url.starts_with('-') {
        return Err("an address does not begin with `-`".into());
    }
    git(words(&["init", "--quiet"])).await?;
    git(words(&["fetch", "--quiet", "--depth=1", &file.url, reference])).await?;
    let contents = git(words(&["show", &format!("FETCH_HEAD:{}", file.path)])).await?;
    if contents.len() > MAX_FILE_BYTES {
        return Err(format!("it has more than {} MiB", MAX_FILE_BYTES >> 20));
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_to_files_are_followed_and_links_to_directories_are_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let app = dir.path().join("my-app");
        fs_err::create_dir_all(app.join("components/sub")).expect("directories");
        fs_err::create_dir_all(dir.path().join("shared/actions")).expect("directories");
        fs_err::create_dir_all(app.join("node_modules")).expect("directories");
        fs_err::write(dir.path().join("shared/actions/a.toml"), "name = 'a'").expect("a file");
        fs_err::write(app.join("metadata.toml"), "version = 'v2'").expect("a file");
        fs_err::write(app.join("node_modules/x.toml"), "").expect("a file");
        fs_err::write(app.join("components/sub/large.bin"), vec![1; MAX_FILE_BYTES + 10]).expect("a file");
        symlink("../shared/actions/a.toml", app.join("linked.toml")).expect("a link");
        symlink("../shared", app.join("shared")).expect("a link");
        symlink("loop", app.join("loop")).expect("a link");
        let tree = read(&app).expect("a tree");
        let paths: Vec<&str> = tree.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["components/sub/large.bin", "linked.toml", "metadata.toml"]);
        assert_eq!(tree.name, "my-app");
        assert!(tree.files["components/sub/large.bin"].len() > MAX_FILE_BYTES);
    }

    #[test]
    fn addresses_of_git_are_read() {
        let file = |url: &str, reference: Option<&str>, path: &str| GitFile {
            url: url.into(),
            reference: reference.map(str::to_owned),
            path: path.into(),
        };
        let good = |address: &str| git_address(address).expect("git").expect("good");
        assert_eq!(good("git::https://h/o/r//a/b.yaml?ref=v1"), file("https://h/o/r", Some("v1"), "a/b.yaml"));
        assert_eq!(good("git::file:///srv/r//b"), file("file:///srv/r", None, "b"));
        assert_eq!(good("github.com/o/r//b?ref=main"), file("https://github.com/o/r.git", Some("main"), "b"));
        assert!(git_address("git::https://h/o/r").expect("git").is_err());
        assert!(git_address("git::https://h/o/r//../x").expect("git").is_err());
        assert_eq!(git_address("https://h/x"), None);
    }

    #[tokio::test]
    async fn what_the_lock_file_knows_must_not_change() {
        let dir = tempfile::tempdir().expect("a directory");
        let repo = dir.path().join("repo");
        let run = |args: &[&str]| {
            let done = std::process::Command::new("git").arg("-C").arg(&repo).args(args).output().expect("git");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        fs_err::create_dir_all(&repo).expect("a directory");
        run(&["init", "--quiet", "-b", "main"]);
        let commit = |text: &str| {
            fs_err::write(repo.join("policy.rego"), text).expect("a file");
            run(&["add", "."]);
            run(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "x"]);
        };
        commit("package nuon\n");
        let app = dir.path().join("app");
        fs_err::create_dir_all(&app).expect("a directory");
        let address = format!("git::file://{}//policy.rego?ref=main", repo.display());
        let policies = format!("[[policy]]\ntype = \"sandbox\"\nengine = \"opa\"\ncontents = \"{address}\"\n");
        fs_err::write(app.join("policies.toml"), policies).expect("a file");
        let mut tree = read(&app).expect("a tree");
        assert_eq!(fetch(&app, &mut tree, false).await.expect("fetched").files, 1);
        assert_eq!(&*tree.fetched[&address], b"package nuon\n");
        let lock = fs_err::read_to_string(app.join(LOCK)).expect("a lock file");
        assert!(lock.contains(&Digest::of(b"package nuon\n").to_string()), "{lock}");

        commit("package other\n");
        // Kept from the first time, so the network is not asked.
        let mut again = read(&app).expect("a tree");
        assert_eq!(fetch(&app, &mut again, false).await.expect("kept").files, 0);
        assert_eq!(&*again.fetched[&address], b"package nuon\n");
        // Not kept: then it must be what it was.
        fs_err::remove_file(cache_file(&Digest::of(b"package nuon\n")).expect("a place")).expect("removed");
        let mut third = read(&app).expect("a tree");
        let told = fetch(&app, &mut third, false).await.expect_err("it has changed");
        assert!(told.message.contains("has changed"), "{told}");
        assert_eq!(fetch(&app, &mut third, true).await.expect("taken").files, 1);
        assert_eq!(&*third.fetched[&address], b"package other\n");
        // Out of reach: told, and what the lock file knows stays.
        fs_err::remove_dir_all(&repo).expect("removed");
        fs_err::remove_file(cache_file(&Digest::of(b"package other\n")).expect("a place")).expect("removed");
        let mut last = read(&app).expect("a tree");
        let done = fetch(&app, &mut last, false).await.expect("nothing is wrong with the lock file");
        assert_eq!((done.files, done.failures.len()), (0, 1));
        assert!(fs_err::read_to_string(app.join(LOCK)).expect("a lock file").contains("policy.rego"));
    }
}
