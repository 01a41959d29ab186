//! The last step before a child: confines the process it runs in, then becomes the child (`exec`).
//!
//! It joins the execution's cgroups, sets resource limits, lowers the priority and, where the kernel has landlock, hides
//! the runner from the child:
//!
//! - The runner's state directory (keys, tokens, other executions) can't be read or written, except this execution's
//!   `work/`. Names in it can be listed.
//! - `/proc` and `/sys` are read-only, and of `/dev` only what every script needs is there. Landlock also shuts off
//!   tracing, and with it `/proc/<pid>/environ`, of every process outside, and signals to them.
//! - A script of root loses the capabilities that go around all this (`LOST`); mounting is not possible either.
//! - Everything else is as the user's rights have it. As nothing can gain rights in a sandbox, `sudo` does not work.
//!
//! Landlock only allows, and it binds to what exists: so every entry beside the path to the state directory is allowed,
//! and no file can be made directly in a parent of the state directory. A state directory like `/var/lib/ferry-runner`
//! has parents that nobody needs to write to; elsewhere, `allow_paths` names what scripts need. Scripts get `TMPDIR`
//! in `work/`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use fs_err as fs;
use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use crate::confine::limits::Cgroups;

/// What a child can't do is decided for this version of landlock; older kernels enforce what they know.
const LANDLOCK: ABI = ABI::V6;
const OOM_SCORE: &str = "500";
const NICE: i32 = 5;
/// How many entries beside the state directory's path get a rule.
const RULES_PER_LEVEL_MAX: usize = 10_000;
const DEVICES: [&str; 11] =
    ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "console"];

/// Ways around the sandbox for a script of root: the first two open `/proc/<pid>/environ` whatever landlock says.
const LOST: [CapabilitySet; 4] =
    [CapabilitySet::PERFMON, CapabilitySet::SYS_ADMIN, CapabilitySet::SYS_MODULE, CapabilitySet::BPF];

/// What the shim is told, in a file. The child's environment is in it too: the shim itself must not run under one that a
/// script's author has chosen, because it is not confined yet (`LD_PRELOAD`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimFile {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cgroups: Cgroups,
    /// None leaves landlock out.
    pub sandbox: Option<Sandbox>,
    /// The process without which the child must not go on, where there is one.
    #[serde(default)]
    pub parent: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Hidden.
    pub state_dir: PathBuf,
    /// Open although it lies in the state directory.
    pub work_dir: PathBuf,
    pub allow_paths: Vec<PathBuf>,
    /// Of everything else only programs and what they need: for a tool that reads what a stranger's files name.
    #[serde(default)]
    pub narrow: bool,
}

/// Confines this process and becomes the child; returns only when that fails.
pub fn run(file: &Path) -> ExitCode {
    let error = match confine_and_exec(file) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    // Standard error is the step's own: the person who wrote the step reads it.
    let _ = writeln!(std::io::stderr(), "ferry: the command can't be started: {error}");
    ExitCode::from(code)
}

fn confine_and_exec(file: &Path) -> std::io::Result<std::convert::Infallible> {
    let told: ShimFile = serde_json::from_slice(&fs::read(file)?)?;
    if let Some(parent) = told.parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // It may have ended before that.
        if std::os::unix::process::parent_id() != parent {
            return Err(std::io::Error::other("the process that wanted it has ended"));
        }
    }
    let own_pid = std::process::id().to_string();
    for dir in &told.cgroups.dirs {
        fs::write(dir.join("cgroup.procs"), &own_pid)?;
    }
    let limit = |resource, value: Option<u64>| match value {
        Some(value) => rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }),
        None => Ok(()),
    };
    limit(Resource::Core, Some(0))?;
    limit(Resource::As, told.cgroups.rest.memory_bytes)?;
    limit(Resource::Nproc, told.cgroups.rest.processes)?;
    // The runner, which renews the lease, goes first; when memory runs out, it goes last.
    let _ = rustix::process::nice(NICE);
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    if let Some(sandbox) = &told.sandbox {
        hide_runner(sandbox, told.env.get("PATH").map_or("", String::as_str)).map_err(std::io::Error::other)?;
    }
    let (program, arguments) =
        told.argv.split_first().ok_or_else(|| std::io::Error::other("there is no command to start"))?;
    Err(Command::new(program).args(arguments).envs(&told.env).exec())
}

fn hide_runner(sandbox: &Sandbox, path: &str) -> Result<(), landlock::RulesetError> {
    let all = AccessFs::from_all(LANDLOCK);
    // A device file made by root would open the disk itself.
    let usual = all & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let read = AccessFs::from_read(LANDLOCK);
    let mut open = if sandbox.narrow { Vec::new() } else { beside(&sandbox.state_dir) };
    let programs = if sandbox.narrow { programs(path) } else { Vec::new() };
    let named = sandbox.allow_paths.iter().filter_map(|path| fs::canonicalize(path).ok());
    let devices = DEVICES.iter().map(|name| Path::new("/dev").join(name));
    // Whatever someone names: nothing that holds the state directory is opened.
    open.extend(named.chain(devices).filter(|path| !sandbox.state_dir.starts_with(path)));
    open.push(sandbox.work_dir.clone());
    Ruleset::default()
        .handle_access(all)?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(open, usual))?
        .add_rules(path_beneath_rules(["/proc", "/sys"], read))?
        .add_rules(path_beneath_rules(programs, read))?
        .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
        .restrict_self()?;
    for capability in LOST {
        // Who may not give them up does not have them.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    Ok(())
}

/// Programs of the host, their libraries, and what they look up: names, certificates.
fn programs(path: &str) -> Vec<PathBuf> {
    let etc = ["ssl", "ca-certificates", "pki", "resolv.conf", "hosts", "nsswitch.conf", "alternatives", "localtime"];
    let system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/run/systemd/resolve"];
    let mut found: Vec<PathBuf> = system.map(PathBuf::from).to_vec();
    found.extend(etc.map(|name| Path::new("/etc").join(name)));
    // A program may lie elsewhere, in a directory of its own with its libraries.
    for dir in std::env::split_paths(path) {
        let Ok(dir) = fs::canonicalize(dir) else { continue };
        if let Some(parent) = dir.parent() {
            found.extend([parent.join("lib"), parent.join("pyvenv.cfg")]);
        }
        found.push(dir);
    }
    found.into_iter().filter_map(|path| fs::canonicalize(path).ok()).filter(|path| *path != Path::new("/")).collect()
}

/// Everything that lies beside the path from the root to `hidden`.
fn beside(hidden: &Path) -> Vec<PathBuf> {
    let special = ["/proc", "/sys", "/dev"].map(Path::new);
    let mut found = Vec::new();
    for level in hidden.ancestors().skip(1).filter(|level| !special.iter().any(|s| level.starts_with(s))) {
        let entries = fs::read_dir(level).into_iter().flatten().flatten().take(RULES_PER_LEVEL_MAX);
        found.extend(entries.filter_map(|entry| {
            let path = entry.path();
            // A link may lead to a parent of the state directory; what it leads to has a rule of its own.
            let is_link = entry.file_type().map_or(true, |t| t.is_symlink());
            (!is_link && !hidden.starts_with(&path) && !special.contains(&path.as_path())).then_some(path)
        }));
    }
    found
}

/// Whether this kernel has landlock.
pub fn landlock_available() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_beside_the_path_is_open() {
        let dir = tempfile::tempdir().expect("dir");
        let root = fs::canonicalize(dir.path()).expect("path");
        for name in ["parent/state/keys", "parent/sibling", "other"] {
            fs::create_dir_all(root.join(name)).expect("dir");
        }
        std::os::unix::fs::symlink("/", root.join("link")).expect("link");
        let state = root.join("parent/state");
        let open = beside(&state);
        for name in ["parent/sibling", "other"] {
            assert!(open.contains(&root.join(name)), "{name}");
        }
        assert!(open.iter().all(|path| !state.starts_with(path) && !path.starts_with(&state)));
        assert!(!open.contains(&root.join("link")));
        assert!(!open.iter().any(|path| path == Path::new("/proc")));
    }
}
