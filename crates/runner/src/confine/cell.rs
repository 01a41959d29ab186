//! A cell: namespaces of its own for a build whose author nobody knows.
//!
//! A process in a cell sees the host's programs (read-only), what was bound in for it, and nothing else: not the runner's
//! state directory, no home, no process of the host. It has no network but its own loopback, or one that leads outward and
//! never to this host. Its root is a user that owns nothing on the host.
//!
//! Landlock forbids mounts, so a cell stands in for it. It is made in four steps, each a call of this binary, because
//! namespaces are entered by util-linux' `unshare`, and that runs a program:
//!
//! 1. `watch` stays outside: maps the users, starts the network, hears the output, and ends the cell when it is told to.
//! 2. `furnish` has a mount namespace: puts the new root together and moves into it.
//! 3. `enter` is the first process of all other namespaces: says that it is there, and waits for users and network.
//! 4. `settle` is their root: mounts `/proc`, closes the ways to the host, and becomes the program.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fs_err as fs;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::signal::unix::{SignalKind, signal};

use crate::execute::tool;

/// Where the users of cells begin on a host whose runner is root: far from all that a distribution gives out.
const FIRST_USER: u32 = 0x7700_0000;
/// So many runners of a host have users of their own, or nearly so: they are chosen by chance.
const RANGES: u32 = 1000;
const USERS: u32 = 65536;
/// What is there without being asked for, read-only.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];
const SETTINGS: [&str; 10] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// The network of a cell: a range that is for benches, so that no host stands in it.
const NETWORK: &str = "198.18.240.0/24";
const RESOLVER: &str = "198.18.240.3";
/// Where clouds tell a machine who it is.
const LINK_LOCAL: &str = "169.254.0.0/16";
const SMALL: &str = "size=64m";
/// In the cell: what its last two steps are told, and this binary.
const TOLD: &str = "/.ferry/cell.json";
const BINARY: &str = "/.ferry/runner";
/// Where programs are in a cell, whatever the runner's own path says.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const UNMADE: &str = "namespaces for the build can't be made";
const START: Duration = Duration::from_secs(20);
/// Longest line of the output that is looked at.
const LINE_BYTES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Only a loopback.
    None,
    /// Outward, never to this host.
    Outward,
    /// The host's: for programs that run nothing of a stranger.
    Host,
}

impl Network {
    /// Outward where the host has what makes it.
    pub fn of_host() -> Self {
        use rustix::fs::{Access, access};
        let has = |name: &str| tool::find(name).is_some() || Path::new("/usr/sbin").join(name).exists();
        let may = access("/dev/net/tun", Access::READ_OK | Access::WRITE_OK).is_ok();
        if may && has("slirp4netns") && has("ip") { Self::Outward } else { Self::None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    pub from: PathBuf,
    /// Where it is in the cell.
    pub to: PathBuf,
    pub writable: bool,
}

/// What a cell is made of, in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Who its root is on the host. None: the runner's user, which is not root there.
    pub first_user: Option<u32>,
    /// An empty directory, where the new root is put together.
    pub root: PathBuf,
    pub binds: Vec<Bind>,
    /// Small files of the cell itself.
    pub files: BTreeMap<PathBuf, String>,
    pub network: Network,
    /// Where `Report` is written.
    pub report: PathBuf,
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
}

/// What was heard of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub steps: u64,
    pub cache_hits: u64,
    /// The last line that says so.
    pub error: Option<String>,
    /// The last line of all.
    #[serde(skip)]
    last: String,
}

/// Who the root of a runner's cells is on the host. None where the runner is not root: then it is the runner's own user, and the
/// others come from `/etc/subuid`.
pub fn first_user(state_dir: &Path) -> Option<u32> {
    let text = state_dir.to_string_lossy();
    let number = model::Digest::of(text.as_bytes()).hex()[..8].to_owned();
    let range = u32::from_str_radix(&number, 16).unwrap_or_default() % RANGES;
    rustix::process::geteuid().is_root().then_some(FIRST_USER + range * USERS)
}

/// What `watch` is started with.
pub fn command(file: &Path) -> Vec<String> {
    vec!["/proc/self/exe".into(), "cell".into(), "watch".into(), file.to_string_lossy().into_owned()]
}

// --- outside ---

/// Makes the cell, and stays until its program has ended.
pub async fn watch(file: &Path) -> ExitCode {
    let told = fs::read(file).and_then(|bytes| Ok(serde_json::from_slice::<Cell>(&bytes)?));
    let cell = match told {
        Ok(cell) => cell,
        Err(error) => return fail(&error),
    };
    let report = cell.report.clone();
    match Box::pin(hold(file, cell)).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let error = io::Error::other(format!("{UNMADE}: {error}"));
            let told = Report { error: Some(error.to_string()), ..Report::default() };
            let _ = serde_json::to_vec(&told).map(|bytes| fs::write(report, bytes));
            fail(&error)
        }
    }
}

fn fail(error: &io::Error) -> ExitCode {
    // Standard error is the build's own log.
    let _ = writeln!(io::stderr(), "ferry: {error}");
    ExitCode::from(126)
}

async fn hold(file: &Path, cell: Cell) -> io::Result<u8> {
    let mut term = signal(SignalKind::terminate())?;
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(START))?;
    // The running binary itself, also after its file was replaced by an update; other users can't follow this link from
    // their namespace.
    let own = if cell.first_user.is_some() {
        format!("/proc/{}/exe", std::process::id()).into()
    } else {
        std::env::current_exe()?
    };
    let mut unshare = tokio::process::Command::new("unshare");
    unshare.arg("--mount");
    if cell.first_user.is_none() {
        unshare.args(["--user", "--map-root-user", "--map-auto"]);
    }
    let mut process = unshare
        .arg("--")
        .arg(own)
        .args(["cell", "furnish"])
        .arg(file)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("`unshare` of util-linux: {e}")))?;
    // The command holds the other end too; without it an early end is seen as one.
    drop(unshare);
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let heard = tokio::spawn(async move { tokio::join!(hear(stdout, io::stdout()), hear(stderr, io::stderr())) });
    let prepared = tokio::task::spawn_blocking(move || prepare(&mut ours, &cell).map(|network| (network, cell)));
    let (network, cell) = tokio::select! {
        prepared = prepared => match prepared.map_err(io::Error::other)? {
            Ok(prepared) => prepared,
            // What it said itself says more.
            Err(error) => {
                let _ = process.kill().await;
                let said = heard.await.map(|(_, err)| err.last).unwrap_or_default();
                return Err(if said.is_empty() { error } else { io::Error::other(format!("{error}: {said}")) });
            }
        },
        _ = term.recv() => return Ok(143),
    };
    let status = tokio::select! {
        status = process.wait() => status?,
        _ = term.recv() => {
            let _ = process.kill().await;
            process.wait().await?
        }
    };
    drop(network);
    let (out, err) = heard.await.map_err(io::Error::other)?;
    let report = Report {
        steps: out.steps + err.steps,
        cache_hits: out.cache_hits + err.cache_hits,
        error: err.error.or(out.error),
        last: err.last,
    };
    fs::write(&cell.report, serde_json::to_vec(&report)?)?;
    Ok(status.code().or_else(|| Some(128 + status.signal()?)).and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// A network that goes with the cell.
struct Outward(std::process::Child);

impl Drop for Outward {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the first process of the cell, gives it its users and its network, and lets it go on.
fn prepare(line: &mut UnixStream, cell: &Cell) -> io::Result<Option<Outward>> {
    let mut bytes = [0; 64];
    let length = line.read(&mut bytes)?;
    let pid = std::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let pid = pid.ok_or_else(|| io::Error::other("the namespaces could not be entered"))?;
    if let Some(first) = cell.first_user {
        let map = format!("0 {first} {USERS}");
        fs::write(format!("/proc/{pid}/uid_map"), &map)?;
        fs::write(format!("/proc/{pid}/gid_map"), &map)?;
    }
    let network = match cell.network {
        Network::Outward => Some(lead_outward(pid)?),
        Network::None | Network::Host => None,
    };
    let closed = if network.is_some() { own_addresses() } else { Vec::new() };
    line.write_all(format!("{}\n", closed.join(" ")).as_bytes())?;
    Ok(network)
}

fn lead_outward(pid: u32) -> io::Result<Outward> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("slirp4netns");
    command
        .args(["--configure", "--mtu=65520", "--disable-host-loopback", "--enable-sandbox", "--enable-seccomp"])
        .args(["--cidr", NETWORK, "--ready-fd=0", &pid.to_string(), "tap0"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let outward = Outward(command.spawn().map_err(|e| io::Error::new(e.kind(), format!("`slirp4netns`: {e}")))?);
    drop(command);
    ours.set_read_timeout(Some(START))?;
    match ours.read(&mut [0; 1]) {
        Ok(1) => Ok(outward),
        Ok(_) | Err(_) => Err(io::Error::other("`slirp4netns` does not bring up a network")),
    }
}

/// Addresses of this host, as the kernel's table of routes has them.
fn own_addresses() -> Vec<String> {
    addresses_in(&fs::read_to_string("/proc/net/fib_trie").unwrap_or_default())
}

fn addresses_in(table: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut last = "";
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address;
        } else if line == "/32 host LOCAL" && !last.starts_with("127.") && !found.iter().any(|known| known == last) {
            found.push(last.to_owned());
        }
    }
    found
}

/// Hands on what the program says, and counts what it says about its steps.
async fn hear(pipe: Option<impl AsyncRead + Unpin>, mut to: impl io::Write) -> Report {
    let mut report = Report::default();
    let Some(mut pipe) = pipe else { return report };
    let (mut buffer, mut line) = (vec![0; 64 << 10], Vec::new());
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        let _ = to.write_all(&buffer[..length]).and_then(|()| to.flush());
        for byte in &buffer[..length] {
            match byte {
                b'\n' => {
                    report.note(&String::from_utf8_lossy(&line));
                    line.clear();
                }
                byte if line.len() < LINE_BYTES => line.push(*byte),
                _ => {}
            }
        }
    }
    report.note(&String::from_utf8_lossy(&line));
    report
}

impl Report {
    fn note(&mut self, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            line.clone_into(&mut self.last);
        }
        // `STEP 2/5: …`, and `[1/2] STEP 2/5: …` where there are several stages.
        let step = if line.starts_with('[') { line.split_once("] ").map_or(line, |(_, rest)| rest) } else { line };
        if step.strip_prefix("STEP ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            self.steps += 1;
        } else if line.starts_with("--> Using cache ") {
            self.cache_hits += 1;
        } else if let Some(error) = line.strip_prefix("Error: ") {
            self.error = Some(error.to_owned());
        }
    }
}

// --- on the way in ---

/// Puts the new root together, moves into it, and goes on to the other namespaces. Returns only when that fails.
pub fn furnish(file: &Path) -> ExitCode {
    match furnish_and_go_on(file) {
        Ok(never) => match never {},
        Err(error) => fail(&error),
    }
}

fn furnish_and_go_on(file: &Path) -> io::Result<std::convert::Infallible> {
    let cell: Cell = serde_json::from_slice(&fs::read(file)?)?;
    let root = &cell.root;
    let owner = cell.first_user.unwrap_or(0);
    let at = |path: &str| root.join(path.trim_start_matches('/'));
    memory(root, &format!("mode=755,{SMALL}"))?;
    for path in SYSTEM.iter().chain(&SETTINGS) {
        let path = Path::new(path);
        match fs::symlink_metadata(path) {
            // `/bin` is a link to `usr/bin` nearly everywhere.
            Ok(meta) if meta.is_symlink() && path.parent() == Some(Path::new("/")) => {
                std::os::unix::fs::symlink(fs::read_link(path)?, at(&path.to_string_lossy()))?;
            }
            Ok(_) => bind(&Bind { from: path.to_owned(), to: path.to_owned(), writable: false }, root)?,
            Err(_) => {}
        }
    }
    for name in ["proc", "sys", "root", "dev/shm", "var", "old", ".ferry"] {
        fs::create_dir_all(root.join(name))?;
    }
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        bind(&Bind { from: path.clone(), to: path, writable: true }, root)?;
    }
    for (name, to) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        std::os::unix::fs::symlink(format!("/proc/self/{to}"), root.join("dev").join(name))?;
    }
    memory(&root.join("dev/shm"), &format!("mode=1777,{SMALL}"))?;
    fs::create_dir_all(root.join("run"))?;
    memory(&root.join("run"), &format!("mode=755,uid={owner},gid={owner},{SMALL}"))?;
    // The host's, until the cell has its own: what the first process is called there, only that can say.
    rustix::mount::mount_bind_recursive("/proc", root.join("proc"))?;
    for one in &cell.binds {
        bind(one, root)?;
    }
    for (path, text) in &cell.files {
        let path = at(&path.to_string_lossy());
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, text)?;
    }
    fs::write(at(TOLD), serde_json::to_vec(&cell)?)?;
    let own = Bind { from: fs::read_link("/proc/self/exe")?, to: BINARY.into(), writable: false };
    if bind(&own, root).is_err() {
        // It was replaced by an update, and lives only as long as we do.
        fs::copy("/proc/self/exe", at(BINARY))?;
    }
    std::env::set_current_dir(root)?;
    rustix::process::pivot_root(".", "old")?;
    std::env::set_current_dir("/")?;
    rustix::mount::unmount("/old", UnmountFlags::DETACH)?;
    fs::remove_dir("/old")?;
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--ipc", "--uts", "--cgroup", "--pid", "--fork", "--kill-child"]);
    if cell.first_user.is_some() {
        unshare.args(["--user", "--keep-caps"]);
    }
    if cell.network != Network::Host {
        unshare.arg("--net");
    }
    let error = unshare.args(["--", BINARY, "cell", "enter", TOLD]).env("PATH", PATH).exec();
    Err(io::Error::new(error.kind(), format!("`unshare` in {PATH}: {error}")))
}

fn memory(at: &Path, options: &str) -> io::Result<()> {
    fs::create_dir_all(at)?;
    let options = CString::new(options).map_err(io::Error::other)?;
    // Without flags: inside they could not be lifted, and whoever binds a part of it anew would have to name them.
    rustix::mount::mount("tmpfs", at, "tmpfs", MountFlags::empty(), options.as_c_str())
        .map_err(|e| named("a tmpfs", at, e.into()))
}

fn bind(one: &Bind, root: &Path) -> io::Result<()> {
    let at = root.join(one.to.strip_prefix("/").unwrap_or(&one.to));
    let mount = || -> io::Result<()> {
        if fs::metadata(&one.from)?.is_dir() {
            fs::create_dir_all(&at)?;
        } else {
            fs::create_dir_all(at.parent().unwrap_or(root))?;
            fs::write(&at, "")?;
        }
        rustix::mount::mount_bind_recursive(&one.from, &at)?;
        if !one.writable {
            read_only(&at)?;
        }
        Ok(())
    };
    mount().map_err(|e| named("a mount", &one.to, e))
}

/// Makes a mount read-only; flags that it has already must be named again where another namespace has set them.
fn read_only(at: &Path) -> io::Result<()> {
    let has = rustix::fs::statvfs(at)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (flag, theirs) in [
        (MountFlags::NOSUID, rustix::fs::StatVfsMountFlags::NOSUID),
        (MountFlags::NODEV, rustix::fs::StatVfsMountFlags::NODEV),
        (MountFlags::NOEXEC, rustix::fs::StatVfsMountFlags::NOEXEC),
        (MountFlags::NOATIME, rustix::fs::StatVfsMountFlags::NOATIME),
        (MountFlags::NODIRATIME, rustix::fs::StatVfsMountFlags::NODIRATIME),
        (MountFlags::RELATIME, rustix::fs::StatVfsMountFlags::RELATIME),
    ] {
        if has.contains(theirs) {
            flags |= flag;
        }
    }
    Ok(rustix::mount::mount_remount(at, flags, "")?)
}

fn named(what: &str, at: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what} at {}: {error}", at.display()))
}

// --- inside ---

/// The first process: says what it is called on the host, and waits until users and network are there.
pub fn enter(file: &Path) -> ExitCode {
    match enter_and_go_on(file) {
        Ok(never) => match never {},
        Err(error) => fail(&error),
    }
}

fn enter_and_go_on(file: &Path) -> io::Result<std::convert::Infallible> {
    let pid = fs::read_link("/proc/self")?;
    let line = rustix::stdio::stdin();
    rustix::io::write(line, pid.to_string_lossy().as_bytes())?;
    let mut bytes = vec![0; 64 << 10];
    let length = rustix::io::read(line, &mut bytes)?;
    let told = String::from_utf8_lossy(&bytes[..length]).into_owned();
    if !told.ends_with('\n') {
        return Err(io::Error::other("whoever makes it has gone"));
    }
    // As root of the cell, which comes with all rights there, and none outside.
    let closed: Vec<OsString> = told.split_whitespace().map(OsString::from).collect();
    Err(Command::new(BINARY).args(["cell", "settle"]).arg(file).args(closed).stdin(Stdio::null()).uid(0).gid(0).exec())
}

/// Finishes the cell and becomes its program.
pub fn settle(file: &Path, closed: &[String]) -> ExitCode {
    match settle_and_become(file, closed) {
        Ok(never) => match never {},
        Err(error) => fail(&error),
    }
}

fn settle_and_become(file: &Path, closed: &[String]) -> io::Result<std::convert::Infallible> {
    // A change of the user has lifted what `unshare` had set.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let cell: Cell = serde_json::from_slice(&fs::read(file)?)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, None)
        .map_err(|e| named("a mount", Path::new("/proc"), e.into()))?;
    if cell.network == Network::Outward {
        close(closed)?;
    }
    let (program, arguments) = cell.argv.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    // The user is the same; naming it drops the groups of the host.
    command.args(arguments).env_clear().envs(&cell.env).current_dir(&cell.cwd).stdin(Stdio::null()).uid(0).gid(0);
    let error = command.exec();
    Err(io::Error::new(error.kind(), format!("`{program}` in {PATH}: {error}")))
}

/// No way leads to the host's own addresses, nor to where a cloud tells a machine who it is.
fn close(addresses: &[String]) -> io::Result<()> {
    for address in addresses.iter().map(String::as_str).chain([LINK_LOCAL]) {
        let done = Command::new("ip").args(["route", "add", "unreachable", address]).env("PATH", PATH).status();
        let done = done.map_err(|e| io::Error::new(e.kind(), format!("`ip` of iproute2: {e}")))?;
        if !done.success() {
            return Err(io::Error::other(format!("the way to {address} can't be closed")));
        }
    }
    Ok(())
}

/// Who answers for names in a cell with a network.
pub fn resolver(network: Network) -> Option<String> {
    match network {
        Network::Outward => Some(format!("nameserver {RESOLVER}\n")),
        Network::Host => fs::read_to_string("/etc/resolv.conf").ok(),
        Network::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_hits_are_counted() {
        let mut report = Report::default();
        let lines = [
            "STEP 1/2: FROM scratch",
            "[1/2] STEP 2/3: COPY a b",
            "--> Using cache 3ff532cecff2",
            "--> 3ff532cecff",
            "STEP by step",
            "[x] STEP 1/1: RUN y",
            "Error: building at STEP \"RUN false\": exit status 1",
        ];
        lines.iter().for_each(|line| report.note(line));
        assert_eq!((report.steps, report.cache_hits), (3, 1));
        assert_eq!(report.error.as_deref(), Some("building at STEP \"RUN false\": exit status 1"));
    }

    #[test]
    fn addresses_of_the_host_are_found() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 172.16.0.2\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 172.16.0.3\n        /32 link BROADCAST\nLocal:\n     |-- 172.16.0.2\n        /32 host LOCAL\n";
        assert_eq!(addresses_in(table), ["172.16.0.2"]);
    }
}
