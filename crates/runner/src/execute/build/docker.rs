//! Images from Dockerfiles: made by buildah, or by podman where there is no buildah, in a cell (`crate::confine::cell`).
//!
//! The whole of buildah lives in the cell, not only the commands of the Dockerfile: it fetches what the Dockerfile names, and
//! its author chooses that. It needs no credentials: what it makes is an OCI layout, which the executor pushes.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use model::Digest;
use model::JobError;

use super::super::action::StepFailure;
use super::super::{Run, source, tool, watch};
use super::{Built, Cache, dockerfile};
use crate::confine::cell::{self, Bind, Cell, Network, Report};
use crate::confine::limits;
use crate::confine::process::{self, Child, Ended, Kept};
use crate::directory::remove_tree;
use crate::oci::stored_credentials;

/// The layers of earlier builds, beside the executions: a build runner works for one org alone.
const STORAGE: &str = "cache/containers";
/// More than that is thrown away when nobody builds.
const STORAGE_BYTES_MAX: u64 = 30 << 30;
const DOCKERFILE_BYTES_MAX: u64 = 1 << 20;
const INDEX_BYTES_MAX: u64 = 1 << 20;
/// Files of an image that was built.
const BLOBS_MAX: usize = 10_000;
/// How often someone who waits for the storage looks.
const LOOK: Duration = Duration::from_secs(1);
const POLICY: &str = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;
const REGISTRIES: &str = "unqualified-search-registries = [\"docker.io\"]\nshort-name-mode = \"disabled\"\n";
const PROXIES: [&str; 8] =
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"];

pub(super) struct ImageBuild<'a> {
    pub(super) dockerfile: &'a str,
    pub(super) target: Option<&'a str>,
    pub(super) args: &'a BTreeMap<String, String>,
    pub(super) secrets: &'a BTreeMap<String, String>,
    /// How much disk the build may take.
    pub(super) disk_bytes: u64,
}

/// Refuses what the Dockerfile does not have, and names that would be read as something else.
fn check(wanted: &ImageBuild<'_>, parsed: &dockerfile::Dockerfile) -> Result<(), StepFailure> {
    if let Some(target) = wanted.target.filter(|target| !parsed.has_stage(target)) {
        let names: Vec<&str> = parsed.stages.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let has = if names.is_empty() { "names no stage".into() } else { format!("has {}", names.join(", ")) };
        return Err(bad(format!("`{}` has no stage `{target}`: it {has}", wanted.dockerfile)));
    }
    let odd = |name: &String| name.is_empty() || name.starts_with(['-', '.']) || name.contains(['=', ',', '/', '\0']);
    if let Some(name) = wanted.args.keys().chain(wanted.secrets.keys()).find(|name| odd(name)) {
        return Err(bad(format!("`{name}` is no name of a build argument or secret")));
    }
    Ok(())
}

/// The command of a build but for its secrets and its context, and the tag that it gives.
fn build_words(
    run: &Run<'_>,
    work: &BuildDirs,
    wanted: &ImageBuild<'_>,
    inner: &Path,
    network: Network,
) -> (Vec<String>, String) {
    let mut argv = work.tool();
    argv.push(if work.podman { "build".into() } else { "bud".into() });
    argv.extend(
        ["--isolation", "chroot", "--network", "host", "--layers", "--timestamp", "0", "--format", "oci", "--force-rm"]
            .map(str::to_owned),
    );
    if !work.podman {
        argv.extend(["--disable-compression=false", "--identity-label=false"].map(str::to_owned));
    }
    let tag = if work.podman { format!("localhost/ferry:{}", run.host.dir.name()) } else { LAYOUT.to_owned() };
    argv.push(if network == Network::Outward { "--pull".into() } else { "--pull=false".into() });
    argv.extend(["--file".into(), inner.to_string_lossy().into_owned(), "--tag".into(), tag.clone()]);
    if let Some(target) = wanted.target {
        argv.push(format!("--target={target}"));
    }
    argv.extend(wanted.args.iter().map(|(name, value)| format!("--build-arg={name}={value}")));
    (argv, tag)
}

pub(super) async fn build(
    run: &mut Run<'_>,
    step: usize,
    source: &Path,
    place: &Path,
    wanted: &ImageBuild<'_>,
) -> Result<Built, StepFailure> {
    need_tools(run)?;
    let file = source::file_inside(source, wanted.dockerfile)
        .map_err(|why| bad(format!("the Dockerfile `{}` {why}", wanted.dockerfile)))?;
    let text = read_bounded(&file, DOCKERFILE_BYTES_MAX)?;
    let parsed = dockerfile::read(&text, wanted.args);
    check(wanted, &parsed)?;

    let work = BuildDirs::make(run, place)?;
    let _lock = work.lock_storage(run, step).await?;
    for image in &parsed.images {
        if let Some(entry) = run.context.base_registries.iter().find(|entry| serves(entry, image)).cloned() {
            work.pull(run, step, image, &entry).await?;
        }
    }

    let network = Network::of_host();
    run.say(
        Some(step),
        match network {
            Network::Outward => "the build has a network that leads outward, not to this host",
            Network::None | Network::Host => {
                "the build has no network: it needs slirp4netns, iproute2 and /dev/net/tun on the build runner's host"
            }
        },
    );
    give(source, work.owner)?;
    let context = std::fs::canonicalize(source)?;
    let inner = Path::new("/context").join(file.strip_prefix(&context).unwrap_or(&file));
    let out = Bind { from: work.out.clone(), to: "/out".into(), writable: true };
    let mut binds = vec![Bind { from: context, to: "/context".into(), writable: false }, out.clone()];
    let (mut argv, tag) = build_words(run, &work, wanted, &inner, network);
    let secrets = work.dir.join("secrets");
    fs_err::create_dir_all(&secrets)?;
    for (name, value) in wanted.secrets {
        let from = secrets.join(name);
        work.private(&from, value)?;
        let to = Path::new("/secrets").join(name);
        argv.push(format!("--secret=id={name},src={}", to.display()));
        binds.push(Bind { from, to, writable: false });
    }
    argv.push("/context".into());
    let mut ended = work.run(run, step, &argv, binds, network, wanted.disk_bytes).await;
    if work.podman
        && let Ok((0, report)) = ended
    {
        // Podman knows no layout as a tag.
        let mut argv = work.tool();
        argv.extend(["push", "--quiet", tag.as_str(), LAYOUT].map(str::to_owned));
        let pushed = work.run(run, step, &argv, vec![out], Network::None, wanted.disk_bytes).await;
        ended = pushed.map(|(code, pushed)| (code, if code == 0 { report } else { pushed }));
    }
    // Whatever came of it.
    let _ = fs_err::remove_dir_all(&secrets);
    if !matches!(ended, Ok((0, _))) && !wanted.secrets.is_empty() {
        work.forget_secrets();
    }
    work.clear(run, step, &[&work.dir.join("tmp"), &work.dir.join("var-tmp")]).await?;
    let (code, report) = ended?;
    if code != 0 {
        return Err(failed(run, code, &report, network));
    }
    let image = work.out.join("image");
    let root = check_layout(&image)?;
    let cache = Cache { hits: report.cache_hits, steps: report.steps };
    run.say(Some(step), &format!("{} of {} steps were in the cache", cache.hits, cache.steps));
    Ok(Built::Layout { dir: image, root, cache })
}

fn bad(message: impl Into<String>) -> StepFailure {
    StepFailure::new("build_failed", message)
}

/// Whether podman builds: where that is what the host has, or what it is told to use.
fn uses_podman() -> bool {
    match std::env::var(model::env::RUNNER_BUILDER).as_deref() {
        Ok("podman") => true,
        Ok("buildah") => false,
        _ => tool::find("buildah").is_none() && tool::find("podman").is_some(),
    }
}

fn need_tools(run: &Run<'_>) -> Result<(), StepFailure> {
    tool::need(if uses_podman() { "podman" } else { "buildah" }, "an image build")?;
    tool::need("unshare", "an image build, which runs in namespaces of its own,")?;
    if cell::first_user(&run.context.state_dir).is_none() {
        tool::need("newuidmap", "an image build of a runner that is not root")?;
    }
    Ok(())
}

fn failed(run: &Run<'_>, code: i32, report: &Report, network: Network) -> StepFailure {
    let mut message = report.error.clone().unwrap_or_else(|| format!("the build ended with exit code {code}"));
    if network == Network::None && ["dial tcp", "lookup ", "unreachable"].iter().any(|word| message.contains(word)) {
        message.push_str("; builds have no network on this host: it needs slirp4netns and iproute2");
    }
    if run.host.cgroups.memory_limit_hit() {
        message.push_str("; it went over its memory limit");
    }
    StepFailure::Failed { error: JobError::new("build_failed", message), exit_code: Some(code) }
}

/// Whether an image is of a registry on the list (`host:port`, `http://host:port`).
fn serves(entry: &str, image: &str) -> bool {
    let host = entry.trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/');
    !host.is_empty() && image.split_once('/').is_some_and(|(registry, _)| registry == host)
}

fn read_bounded(path: &Path, bytes_max: u64) -> Result<String, StepFailure> {
    use std::io::Read as _;
    let mut text = String::new();
    fs_err::File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(bad(format!("{} has more than {bytes_max} bytes", path.display())));
    }
    Ok(text)
}

/// Makes a tree the cell's own.
fn give(path: &Path, owner: Option<u32>) -> std::io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    let mut paths = vec![path.to_owned()];
    while let Some(path) = paths.pop() {
        lchown(&path, Some(owner), Some(owner))?;
        if fs_err::symlink_metadata(&path)?.is_dir() {
            for entry in fs_err::read_dir(&path)? {
                paths.push(entry?.path());
            }
        }
    }
    Ok(())
}

/// The layout that a build has left: plain files and nothing else, since we read them with more rights than it had.
fn check_layout(dir: &Path) -> Result<Digest, StepFailure> {
    let odd = || bad("the build left something else than an image");
    let (mut folders, mut files) = (vec![dir.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        if !fs_err::symlink_metadata(&folder).map_err(|_| odd())?.is_dir() {
            return Err(odd());
        }
        for entry in fs_err::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            files += 1;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if !kind.is_file() || files > BLOBS_MAX {
                return Err(odd());
            }
        }
    }
    let index = read_bounded(&dir.join("index.json"), INDEX_BYTES_MAX)?;
    let index: serde_json::Value = serde_json::from_str(&index).map_err(|_| odd())?;
    let digest = index.pointer("/manifests/0/digest").and_then(|digest| digest.as_str()).ok_or_else(odd)?;
    Digest::parse(digest).map_err(|_| odd())
}

/// Where the image comes out, as the cell sees it.
const LAYOUT: &str = "oci:/out/image";

/// Where a build happens.
struct BuildDirs {
    dir: PathBuf,
    out: PathBuf,
    storage: PathBuf,
    /// Who the cell's root is outside; None: the runner itself.
    owner: Option<u32>,
    podman: bool,
}

impl BuildDirs {
    /// What buildah copied for a step that was interrupted. What another build's step has mounted stays mounted.
    fn forget_secrets(&self) {
        let containers = fs_err::read_dir(self.storage.join("overlay-containers")).into_iter().flatten().flatten();
        for container in containers {
            let _ = fs_err::remove_dir_all(container.path().join("userdata/secrets"));
        }
    }

    fn make(run: &Run<'_>, place: &Path) -> Result<Self, StepFailure> {
        let owner = cell::first_user(&run.context.state_dir);
        let dir = place.join("cell");
        let podman = uses_podman();
        let place = Self { out: dir.join("out"), storage: run.context.state_dir.join(STORAGE), dir, owner, podman };
        for folder in ["root", "tmp", "var-tmp", "out"] {
            fs_err::create_dir_all(place.dir.join(folder))?;
            give(&place.dir.join(folder), owner)?;
        }
        place.make_storage()?;
        Ok(place)
    }

    fn make_storage(&self) -> std::io::Result<()> {
        let Some(owner) = self.owner else { return fs_err::create_dir_all(&self.storage) };
        // In a state directory that was moved it belongs to others, and is of no use.
        if fs_err::metadata(&self.storage).is_ok_and(|meta| meta.uid() != owner) {
            remove_tree(&self.storage)?;
        }
        fs_err::create_dir_all(&self.storage)?;
        fs_err::set_permissions(&self.storage, std::fs::Permissions::from_mode(0o700))?;
        lchown(&self.storage, Some(owner), Some(owner))
    }

    fn private(&self, file: &Path, text: &str) -> Result<(), StepFailure> {
        tool::private(file, text)?;
        give(file, self.owner)?;
        Ok(())
    }

    /// Builds go on beside each other; who finds the storage unused clears it up first.
    async fn lock_storage(&self, run: &mut Run<'_>, step: usize) -> Result<std::fs::File, StepFailure> {
        let path = self.storage.with_extension("lock");
        let lock = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        if lock.try_lock().is_ok() {
            let storage = self.storage.clone();
            let bytes = tokio::task::spawn_blocking(move || limits::disk_bytes(&storage, STORAGE_BYTES_MAX)).await;
            if bytes.map_err(std::io::Error::other)? > STORAGE_BYTES_MAX {
                run.say(Some(step), "the layers of earlier builds take too much room: they are thrown away");
                self.clear(run, step, &[&self.storage]).await?;
                self.make_storage()?;
            }
            // What a build left that was killed.
            let left = fs_err::read_to_string(self.storage.join("overlay-containers/containers.json"));
            if left.is_ok_and(|text| text.contains("\"id\"")) {
                let mut argv = self.tool();
                argv.extend(["rm", "--all"].map(str::to_owned));
                self.run(run, step, &argv, Vec::new(), Network::None, u64::MAX).await?;
            }
            lock.unlock()?;
        }
        loop {
            if lock.try_lock_shared().is_ok() {
                return Ok(lock);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                stop = run.stopped() => return Err(StepFailure::Stopped(stop)),
            }
        }
    }

    /// Removes what a cell has left. Where its users are not root's to remove, they are entered once more for it.
    async fn clear(&self, run: &mut Run<'_>, step: usize, paths: &[&Path]) -> Result<(), StepFailure> {
        if self.owner.is_some() {
            return Ok(paths.iter().try_for_each(|path| remove_tree(path))?);
        }
        let words = ["unshare", "--user", "--map-root-user", "--map-auto", "--", "rm", "-rf", "--"];
        let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
        let argv = words.into_iter().map(str::to_owned).chain(paths).collect();
        let env = BTreeMap::from([("PATH".to_owned(), cell::PATH.to_owned())]);
        let child = Child { kept: Kept::InCell, ..Child::new(argv, self.dir.clone(), env, step) };
        match process::run(&child, &run.host, &mut run.stop).await? {
            Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
            Ended::Exited(_) => Ok(()),
        }
    }

    /// Buildah or podman, on the storage of the cell.
    fn tool(&self) -> Vec<String> {
        let program = if self.podman { "podman" } else { "buildah" };
        let mut argv: Vec<String> =
            [program, "--root", "/storage", "--runroot", "/run/containers", "--storage-driver", "overlay"]
                .map(str::to_owned)
                .to_vec();
        if self.podman {
            argv.extend(["--cgroup-manager=cgroupfs", "--events-backend=none"].map(str::to_owned));
        }
        argv
    }

    /// Fetches an image for the build, from a registry that it does not reach itself.
    async fn pull(&self, run: &mut Run<'_>, step: usize, image: &str, entry: &str) -> Result<(), StepFailure> {
        run.say(Some(step), &format!("fetching {image}"));
        let mut argv = self.tool();
        argv.extend(["pull", "--quiet"].map(str::to_owned));
        if !self.podman {
            // Podman's always looks.
            argv.extend(["--policy", "always"].map(str::to_owned));
        }
        if entry.starts_with("http://") {
            argv.push("--tls-verify=false".into());
        }
        let mut binds = Vec::new();
        let host = image.split('/').next().unwrap_or_default();
        let auth = self.dir.join("auth.json");
        if let Some(login) = stored_credentials(host).await {
            let pair = format!("{}:{}", login.username, login.password);
            let pair = base64::engine::general_purpose::STANDARD.encode(pair);
            self.private(&auth, &serde_json::json!({ "auths": { host: { "auth": pair } } }).to_string())?;
            binds.push(Bind { from: auth.clone(), to: "/auth.json".into(), writable: false });
            argv.push("--authfile=/auth.json".into());
        }
        argv.push(format!("docker://{image}"));
        let ended = self.run(run, step, &argv, binds, Network::Host, u64::MAX).await;
        let _ = fs_err::remove_file(&auth);
        match ended? {
            (0, _) => Ok(()),
            (code, report) => Err(failed(run, code, &report, Network::Host)),
        }
    }

    async fn run(
        &self,
        run: &mut Run<'_>,
        step: usize,
        argv: &[String],
        mut binds: Vec<Bind>,
        network: Network,
        disk_bytes: u64,
    ) -> Result<(i32, Report), StepFailure> {
        use std::os::unix::process::ExitStatusExt as _;
        binds.extend([
            Bind { from: self.storage.clone(), to: "/storage".into(), writable: true },
            Bind { from: self.dir.join("tmp"), to: "/tmp".into(), writable: true },
            Bind { from: self.dir.join("var-tmp"), to: "/var/tmp".into(), writable: true },
        ]);
        let mut files: BTreeMap<PathBuf, String> = [
            ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            ("/etc/group", "root:x:0:\n"),
            ("/etc/hosts", "127.0.0.1 localhost\n"),
            ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
            ("/etc/containers/policy.json", POLICY),
            ("/etc/containers/registries.conf", REGISTRIES),
        ]
        .map(|(path, text)| (path.into(), text.to_owned()))
        .into();
        files.extend(cell::resolver(network).map(|text| ("/etc/resolv.conf".into(), text)));
        let mut env: BTreeMap<String, String> =
            [("PATH", cell::PATH), ("HOME", "/tmp"), ("TMPDIR", "/var/tmp")].map(|(k, v)| (k.into(), v.into())).into();
        if network != Network::None {
            env.extend(PROXIES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))));
        }
        // Beside `work`, which the build's own files lie in.
        let file = run.host.dir.path().join("cell.json");
        let report = run.host.dir.path().join("cell-report.json");
        let _ = fs_err::remove_file(&report);
        let cell = Cell {
            first_user: self.owner,
            root: self.dir.join("root"),
            binds,
            files,
            network,
            report: report.clone(),
            argv: argv.to_vec(),
            env,
            cwd: "/".into(),
        };
        run.host.dir.write_json("cell.json", &cell)?;
        let base = super::super::action::base_environment(|name| std::env::var(name).ok(), &self.dir);
        let env = base.into_iter().filter(|(name, _)| name == "PATH").collect();
        let child = Child { kept: Kept::InCell, ..Child::new(cell::command(&file), self.dir.clone(), env, step) };
        let (mut stop, watching) = watch::also_disk(run.stop.clone(), self.storage.clone(), disk_bytes);
        let ended = process::run(&child, &run.host, &mut stop).await;
        watching.abort();
        let _ = fs_err::remove_file(&file);
        match ended? {
            Ended::Stopped(stop) => Err(StepFailure::Stopped(stop)),
            Ended::Exited(status) => {
                let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
                let report = fs_err::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                Ok((code, report.unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_of_listed_registries_are_fetched() {
        let table = [
            ("10.0.0.1:5000", "10.0.0.1:5000/base", true),
            ("http://10.0.0.1:5000/", "10.0.0.1:5000/a/b:1", true),
            ("10.0.0.1:5000", "10.0.0.1:50001/base", false),
            ("10.0.0.1", "10.0.0.1.example/base", false),
            ("", "base", false),
            ("base", "base", false),
        ];
        for (entry, image, yes) in table {
            assert_eq!(serves(entry, image), yes, "{entry} {image}");
        }
    }

    #[test]
    fn a_layout_with_links_is_refused() {
        let dir = tempfile::tempdir().expect("dir");
        let digest = format!("sha256:{}", "a".repeat(64));
        let index = serde_json::json!({ "manifests": [{ "digest": digest }] }).to_string();
        fs_err::write(dir.path().join("index.json"), index).expect("file");
        assert_eq!(check_layout(dir.path()).ok().map(|d| d.to_string()), Some(digest));
        fs_err::create_dir(dir.path().join("blobs")).expect("dir");
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("blobs/x")).expect("link");
        assert!(check_layout(dir.path()).is_err());
    }
}
