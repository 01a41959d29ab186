//! Limits of memory, processes and CPU: a cgroup per execution where one can be made (version 2, else 1), resource
//! limits of the process elsewhere. A cgroup bounds memory and processes even where the spec does not. Also measures how
//! much disk an execution uses.
//!
//! Best effort by design: a customer's host may allow nothing. `available` says what this one allows.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use model::spec::Limits;
use serde::{Deserialize, Serialize};

const ROOT: &str = "/sys/fs/cgroup";
const CPU_PERIOD_US: u64 = 100_000;
/// How many files a measurement looks at; more than that is over any quota.
const WALK_FILES_MAX: u64 = 1_000_000;
/// What a cgroup allows where the spec names no limit: enough for any honest job, and not all that the machine has.
const PROCESSES_DEFAULT: u64 = 4096;
const MEMORY_SHARE_DEFAULT: f64 = 0.8;

/// The cgroups of one execution, and what is left for resource limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroups {
    /// Directories that a child joins.
    pub dirs: Vec<PathBuf>,
    /// Limits that no cgroup enforces; the shim sets what it can by rlimit.
    pub rest: Limits,
}

impl Cgroups {
    /// Makes the cgroups of an execution. Whatever is in the one that counts processes at the end is a leftover.
    pub fn create(execution_id: &str, limits: &Limits) -> Self {
        let mut made = Self { dirs: Vec::new(), rest: Limits { disk_bytes: None, ..limits.clone() } };
        let limits = &with_defaults(limits);
        match version_2_parent() {
            Some(parent) => made.create_version_2(&parent.join(format!("ferry-{execution_id}")), limits),
            None => made.create_version_1(execution_id, limits),
        }
        made
    }

    fn create_version_2(&mut self, dir: &Path, limits: &Limits) {
        if fs::create_dir_all(dir).is_err() {
            return;
        }
        let put = |name: &str, value: String| fs::write(dir.join(name), value).is_ok();
        if limits.memory_bytes.is_some_and(|bytes| put("memory.max", bytes.to_string())) {
            put("memory.swap.max", "0".into());
            self.rest.memory_bytes = None;
        }
        if limits.processes.is_some_and(|n| put("pids.max", n.to_string())) {
            self.rest.processes = None;
        }
        if limits.cpu_millis.is_some_and(|m| put("cpu.max", format!("{} {CPU_PERIOD_US}", cpu_quota_us(m)))) {
            self.rest.cpu_millis = None;
        }
        self.dirs.push(dir.to_owned());
    }

    fn create_version_1(&mut self, execution_id: &str, limits: &Limits) {
        let make = |controller: &str| {
            let dir = version_1_parent(controller)?.join(format!("ferry-{execution_id}"));
            fs::create_dir_all(&dir).ok().map(|()| dir)
        };
        if let Some(dir) = make("pids") {
            if limits.processes.is_some_and(|n| fs::write(dir.join("pids.max"), n.to_string()).is_ok()) {
                self.rest.processes = None;
            }
            self.dirs.push(dir);
        }
        if let Some(bytes) = limits.memory_bytes
            && let Some(dir) = make("memory")
        {
            if fs::write(dir.join("memory.limit_in_bytes"), bytes.to_string()).is_ok() {
                // Absent on kernels that do not account swap.
                let _ = fs::write(dir.join("memory.memsw.limit_in_bytes"), bytes.to_string());
                self.rest.memory_bytes = None;
            }
            self.dirs.push(dir);
        }
        if let Some(millis) = limits.cpu_millis
            && let Some(dir) = make("cpu")
        {
            if fs::write(dir.join("cpu.cfs_period_us"), CPU_PERIOD_US.to_string()).is_ok()
                && fs::write(dir.join("cpu.cfs_quota_us"), cpu_quota_us(millis).to_string()).is_ok()
            {
                self.rest.cpu_millis = None;
            }
            self.dirs.push(dir);
        }
    }

    /// The limits of the spec that this host enforces in part, or not at all.
    pub fn gaps(&self) -> Vec<&'static str> {
        let Limits { memory_bytes, processes, cpu_millis, .. } = &self.rest;
        let gaps = [
            (
                memory_bytes.is_some(),
                "the runner can't create a memory cgroup on this host: the memory limit applies to each process, not to all of them together",
            ),
            (
                processes.is_some(),
                "the runner can't create a pids cgroup on this host: the process limit counts every process of the runner's user",
            ),
            (cpu_millis.is_some(), "the runner can't create a cpu cgroup on this host: the CPU limit is not enforced"),
        ];
        gaps.into_iter().filter(|(open, _)| *open).map(|(_, text)| text).collect()
    }

    /// Whether the kernel killed a process because of the memory limit.
    pub fn memory_limit_hit(&self) -> bool {
        self.dirs.iter().any(|dir| {
            ["memory.events", "memory.oom_control"].iter().any(|name| {
                let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
                text.lines().filter_map(|l| l.strip_prefix("oom_kill ")).any(|n| n.trim() != "0")
            })
        })
    }

    pub fn remove(&self) {
        for dir in &self.dirs {
            remove(dir);
        }
    }
}

fn with_defaults(limits: &Limits) -> Limits {
    let all_kib = || {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        text.lines().find_map(|l| l.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok())
    };
    Limits {
        memory_bytes: limits.memory_bytes.or_else(|| Some((all_kib()? * 1024.0 * MEMORY_SHARE_DEFAULT) as u64)),
        processes: limits.processes.or(Some(PROCESSES_DEFAULT)),
        ..limits.clone()
    }
}

/// Removes a cgroup and what a child made below it; it must be empty of processes.
pub fn remove(dir: &Path) {
    for child in fs::read_dir(dir).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|t| t.is_dir()) {
            remove(&child.path());
        }
    }
    // One that still holds a dying process is left to the next look at leftovers.
    let _ = fs::remove_dir(dir);
}

/// Processes in a cgroup and below it.
pub fn members(dir: &Path) -> Vec<i32> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let mut pids: Vec<i32> = text.lines().filter_map(|l| l.parse().ok()).collect();
    for child in fs::read_dir(dir).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|t| t.is_dir()) {
            pids.extend(members(&child.path()));
        }
    }
    pids
}

/// Lets no process in the cgroup make another, so that killing them comes to an end.
pub fn stop_forks(dir: &Path) {
    let _ = fs::write(dir.join("pids.max"), "0");
}

fn cpu_quota_us(millis: u64) -> u64 {
    // The kernel refuses less than 1 ms.
    (millis * CPU_PERIOD_US / 1000).max(1000)
}

/// Where cgroups of version 2 can be made with all three controllers.
fn version_2_parent() -> Option<PathBuf> {
    // With version 1 mounted there, the same place is an ordinary directory.
    if !Path::new(ROOT).join("cgroup.controllers").exists() {
        return None;
    }
    let own = own_path("")?;
    let own = Path::new(ROOT).join(own.trim_start_matches('/'));
    let has = |dir: &Path| {
        let text = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
        ["memory", "pids", "cpu"].iter().all(|c| text.split_whitespace().any(|w| w == *c))
    };
    // A cgroup with processes of its own can't hand controllers down, so the one above is tried as well.
    [Some(own.as_path()), own.parent().filter(|p| p.starts_with(ROOT))].into_iter().flatten().find_map(|dir| {
        if !has(dir) {
            let _ = fs::write(dir.join("cgroup.subtree_control"), "+memory +pids +cpu");
        }
        (has(dir) && writable(dir)).then(|| dir.to_owned())
    })
}

/// Where cgroups of version 1 can be made for one controller.
fn version_1_parent(controller: &str) -> Option<PathBuf> {
    let base = Path::new(ROOT).join(controller);
    let own = own_path(controller)?;
    let own = base.join(own.trim_start_matches('/'));
    // In a container the path may be that of the host, which does not exist here.
    let dir = if own.is_dir() { own } else { base };
    (dir.join("cgroup.procs").exists() && writable(&dir)).then_some(dir)
}

/// The own place in the hierarchy of a controller; the empty name is version 2.
fn own_path(controller: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        names.split(',').any(|n| n == controller).then(|| path.to_owned())
    })
}

fn writable(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
}

/// What this host allows, in a sentence, and whether that is everything.
pub fn available() -> (bool, String) {
    if let Some(parent) = version_2_parent() {
        return (true, format!("cgroup v2 below {}: memory, processes, cpu", parent.display()));
    }
    let (have, miss): (Vec<&str>, Vec<&str>) =
        ["memory", "pids", "cpu"].into_iter().partition(|c| version_1_parent(c).is_some());
    match (have.is_empty(), miss.is_empty()) {
        (_, true) => (true, "cgroup v1: memory, processes, cpu".into()),
        (true, _) => (false, "no writable cgroup: memory and processes by rlimit, cpu not at all".into()),
        (false, false) => (false, format!("cgroup v1 for {}; not for {}", have.join(", "), miss.join(", "))),
    }
}

/// Bytes that a tree takes on disk; stops counting above `enough`.
pub fn disk_bytes(root: &Path, enough: u64) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let (mut total, mut files) = (0u64, 0u64);
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            // Not followed: a link's target is not the job's.
            let Ok(meta) = entry.metadata() else { continue };
            files += 1;
            total = total.saturating_add(meta.blocks() * 512);
            if meta.is_dir() {
                folders.push(entry.path());
            }
            if total > enough || files > WALK_FILES_MAX {
                return if files > WALK_FILES_MAX { u64::MAX } else { total };
            }
        }
    }
    total
}

/// Free bytes on the file system of a path.
pub fn disk_free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_no_cgroup_enforces_are_named() {
        assert!(Cgroups::default().gaps().is_empty());
        let rest = Limits { memory_bytes: Some(1), cpu_millis: Some(1), ..Limits::default() };
        let gaps = Cgroups { dirs: Vec::new(), rest }.gaps();
        assert!(gaps.len() == 2 && gaps[0].contains("memory") && gaps[1].contains("not enforced"), "{gaps:?}");
    }

    #[test]
    fn a_tree_is_measured_and_the_count_stops_early() {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir(dir.path().join("a")).expect("dir");
        fs::write(dir.path().join("a/file"), vec![1; 1 << 20]).expect("file");
        fs::write(dir.path().join("b"), vec![1; 1 << 20]).expect("file");
        assert!(disk_bytes(dir.path(), u64::MAX) >= 2 << 20);
        assert!(disk_bytes(dir.path(), 1) < 2 << 20);
        assert!(disk_free_bytes(dir.path()).expect("free") > 0);
    }

    #[test]
    fn cgroups_come_and_go() {
        let limits = Limits { processes: Some(50), memory_bytes: Some(64 << 20), ..Limits::default() };
        let made = Cgroups::create("exetest", &limits);
        let (all, text) = available();
        assert!(!all || (made.rest == Limits::default() && !made.dirs.is_empty()), "{text}: {made:?}");
        assert!(!made.memory_limit_hit());
        made.remove();
        assert!(made.dirs.iter().all(|d| !d.exists()));
    }
}
