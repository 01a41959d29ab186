//! The files between a session process and an executor: one directory per execution, under `<state>/executions/`.
//!
//! | file | written by | holds |
//! |---|---|---|
//! | `assignment.json`, `spec.json`, `context.json` | session, before the executor starts | papers and token, the spec's exact bytes, what the executor must know |
//! | `started` | session | when the server acknowledged the start, in milliseconds since boot |
//! | `cancel` | session | the reason to stop |
//! | `renewed` | session | a counter that changes with every successful renewal |
//! | `executor.lock` | executor | its pid; locked while it lives |
//! | `group` | executor | process groups and cgroups of its children, so that a later process can end what is left |
//! | `steps.json`, `spool/` | executor | progress and log |
//! | `result.json` | executor | the result: the last thing it does |
//! | `work/` | executor, children | everything the job itself may touch |

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::confine::process;
use crate::seal::vault::Tools;
use api::runner::Assignment;
use model::papers::EndorsedKey;
use model::runner::RunnerKind;
use model::{ExecutionResult, RunnerId, StepResult};

const EXECUTIONS: &str = "executions";
/// Suffix of a directory that is being made or removed.
const UNFINISHED: &str = "tmp";

/// What an executor must know besides the assignment; it asks nobody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionContext {
    pub runner_id: RunnerId,
    pub generation: u64,
    /// The nonce of the poll that brought the assignment.
    pub nonce: String,
    /// Fingerprints from the join command.
    pub trust: Vec<String>,
    /// Keys that the server offered; good only if `trust` leads to them.
    pub keys: Vec<EndorsedKey>,
    pub runner_url: String,
    pub state_dir: PathBuf,
    pub spool_bytes: u64,
    pub execution_disk_bytes: u64,
    pub offline_s: u64,
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Paths that scripts may use although they lie beside the state directory.
    #[serde(default)]
    pub allow_paths: Vec<PathBuf>,
    /// The customer allows no ad hoc actions.
    #[serde(default)]
    pub no_ad_hoc: bool,
    /// What the runner is for; None in a directory of an older runner.
    #[serde(default)]
    pub kind: Option<RunnerKind>,
    /// Registries whose images are fetched for builds, from outside of their cell.
    #[serde(default)]
    pub base_registries: Vec<String>,
    #[serde(default)]
    pub tools: Tools,
    /// Hidden from children instead of the state directory, which lies in it.
    #[serde(default)]
    pub hide: Option<PathBuf>,
    /// The run of the machine in which the directory was made.
    #[serde(default)]
    pub boot_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionDir {
    path: PathBuf,
}

/// Held by an executor for its whole life.
#[derive(Debug)]
pub struct ExecutorLock {
    _file: File,
}

impl ExecutionDir {
    /// Makes the directory with all its papers; it appears whole or not at all.
    pub fn create(
        state_dir: &Path,
        assignment: &Assignment,
        spec: &[u8],
        context: &ExecutionContext,
    ) -> io::Result<Self> {
        let path = state_dir.join(EXECUTIONS).join(assignment.execution_id.as_str());
        let unfinished = Self { path: path.with_extension(UNFINISHED) };
        remove_tree(&unfinished.path)?;
        let made = unfinished.fill(assignment, spec, context).and_then(|()| fs::rename(&unfinished.path, &path));
        if let Err(error) = made {
            // On a full disk half a directory would take room for ever.
            let _ = remove_tree(&unfinished.path);
            return Err(error);
        }
        Ok(Self { path })
    }

    fn fill(&self, assignment: &Assignment, spec: &[u8], context: &ExecutionContext) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        for folder in ["spool", "work"] {
            std::fs::DirBuilder::new().mode(0o700).create(self.path.join(folder))?;
        }
        self.write_json("assignment.json", assignment)?;
        self.write_json("context.json", context)?;
        self.write_file("spec.json", spec)?;
        self.touch_renewed(0)
    }

    pub fn open(path: &Path) -> io::Result<Self> {
        // Absolute, because children run in directories of their own.
        Ok(Self { path: fs::canonicalize(path)? })
    }

    /// Every execution that has a directory, oldest first, and what was being made or removed: nobody needs that.
    pub fn list(state_dir: &Path) -> io::Result<(Vec<Self>, Vec<PathBuf>)> {
        let entries = match fs::read_dir(state_dir.join(EXECUTIONS)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            Err(e) => return Err(e),
        };
        let (mut found, mut rest) = (Vec::new(), Vec::new());
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == UNFINISHED) {
                rest.push(path);
            } else {
                found.push(Self { path });
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((found, rest))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the directory: the execution's id.
    pub fn name(&self) -> &str {
        self.path.file_name().and_then(|n| n.to_str()).unwrap_or_default()
    }

    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }

    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    pub fn assignment(&self) -> io::Result<Assignment> {
        self.read_json("assignment.json")
    }

    pub fn context(&self) -> io::Result<ExecutionContext> {
        self.read_json("context.json")
    }

    pub fn spec(&self) -> io::Result<Vec<u8>> {
        fs::read(self.path.join("spec.json"))
    }

    pub fn is_started(&self) -> bool {
        self.path.join("started").exists()
    }

    /// Says that the server has acknowledged the start.
    pub fn mark_started(&self) -> io::Result<()> {
        self.write_file("started", process::since_boot().as_millis().to_string().as_bytes())
    }

    /// When that was, on the clock of `process::since_boot`.
    pub fn started_at(&self) -> Option<Duration> {
        let text = fs::read_to_string(self.path.join("started")).ok()?;
        text.parse().ok().map(Duration::from_millis)
    }

    /// The reason to stop, if someone asked for it.
    pub fn cancel_reason(&self) -> Option<String> {
        fs::read_to_string(self.path.join("cancel")).ok()
    }

    /// Asks the executor to stop. The first reason stands; the signal only saves it a look at the file.
    pub fn request_cancel(&self, reason: &str) -> io::Result<()> {
        // The signal goes out even where the disk is too full for the reason.
        let noted = if self.cancel_reason().is_none() { self.write_file("cancel", reason.as_bytes()) } else { Ok(()) };
        if self.executor_alive()
            && let Some(pid) = self.executor_pid()
        {
            // It may end between the look and the signal.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        noted
    }

    pub fn renewed(&self) -> Vec<u8> {
        fs::read(self.path.join("renewed")).unwrap_or_default()
    }

    /// Tells the executor that the lease was renewed; `n` differs from the one before. Written over that one, which needs no
    /// room: a full disk must not look like silence.
    pub fn touch_renewed(&self, n: u64) -> io::Result<()> {
        let path = self.path.join("renewed");
        let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        file.write_all_at(format!("{n:020}").as_bytes(), 0)
    }

    /// Takes the executor's lock. Fails when an executor lives here, and when one ever did: an execution is carried
    /// out once.
    pub fn lock(&self) -> io::Result<ExecutorLock> {
        let path = self.path.join("executor.lock");
        let mut file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        // Someone who only looks whether an executor lives holds the lock for a moment.
        let mut tries_left = 50;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tries_left > 0 => {
                    tries_left -= 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => return Err(io::Error::other("another executor works here")),
                Err(TryLockError::Error(e)) => return Err(e),
            }
        }
        if file.metadata()?.len() > 0 {
            return Err(io::Error::other("an earlier executor worked here and died"));
        }
        file.write_all(std::process::id().to_string().as_bytes())?;
        Ok(ExecutorLock { _file: file })
    }

    /// Whether an executor holds the lock. One that was started a moment ago may not have taken it yet.
    pub fn executor_alive(&self) -> bool {
        match File::open(self.path.join("executor.lock")) {
            Ok(file) => matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
            Err(_) => false,
        }
    }

    /// Makes sure that no executor works here any more: none lives, and one that was started a moment ago and has not
    /// taken the lock yet will find it used. False when one lives after all.
    pub fn close(&self) -> bool {
        self.lock().is_ok() || !self.executor_alive()
    }

    /// Takes a start back that no executor has followed: true when none ever worked here, and none ever will.
    pub fn take_back(&self) -> bool {
        let never_used = self.lock().is_ok();
        if never_used {
            // Else a later look would find a used lock, and call it dead.
            let _ = fs::remove_file(self.path.join("started"));
        }
        never_used
    }

    pub fn executor_pid(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.path.join("executor.lock")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    /// Notes a process group or cgroup of a child, one line each; see `process::reap_leftovers`.
    pub fn note_group(&self, line: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.path.join("group"))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    pub fn groups(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path.join("group")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn steps(&self) -> Vec<StepResult> {
        self.read_json("steps.json").unwrap_or_default()
    }

    pub fn write_steps(&self, steps: &[StepResult]) -> io::Result<()> {
        self.write_json("steps.json", steps)
    }

    /// The result, once there is one.
    pub fn result(&self) -> io::Result<Option<ExecutionResult>> {
        match self.read_json("result.json") {
            Ok(result) => Ok(Some(result)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes the result so that it is there, whole, even if the machine stops the moment after.
    pub fn write_result(&self, result: &ExecutionResult) -> io::Result<()> {
        self.write_durable("result.json", &to_json(result)?, true)
    }

    /// Removes everything, also what the job made unreadable.
    pub fn remove(&self) -> io::Result<()> {
        remove_tree(&self.set_aside()?)
    }

    /// Renames it: half a directory must not look like an execution. What is at the new place is for `remove_tree`.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let unfinished = self.path.with_extension(UNFINISHED);
        match fs::rename(&self.path, &unfinished) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(unfinished),
        }
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> io::Result<T> {
        let path = self.path.join(name);
        serde_json::from_slice(&fs::read(&path)?)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", path.display())))
    }

    pub(crate) fn write_json<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> io::Result<()> {
        self.write_file(name, &to_json(value)?)
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_durable(name, bytes, false)
    }

    /// Replaces a file in one go: a reader sees the old content or the new.
    fn write_durable(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        let unfinished = self.path.join(format!("{name}.{UNFINISHED}"));
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(bytes)?;
        if sync {
            file.sync_all()?;
        }
        fs::rename(&unfinished, self.path.join(name))?;
        if sync {
            File::open(&self.path)?.sync_all()?;
        }
        Ok(())
    }
}

fn to_json<T: Serialize + ?Sized>(value: &T) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::other)
}

/// Removes a tree; directories that were made read-only are opened first. It need not exist.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            let mut folders = vec![path.to_owned()];
            while let Some(folder) = folders.pop() {
                // What can't be changed shows up in the removal itself.
                let _ = fs::set_permissions(&folder, PermissionsExt::from_mode(0o700));
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                folders.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
            }
            fs::remove_dir_all(path)
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(path: &Path) -> ExecutionDir {
        let path = path.join(EXECUTIONS).join("exe1");
        fs::create_dir_all(path.join("work")).expect("dir");
        ExecutionDir { path }
    }

    #[test]
    fn an_execution_is_carried_out_once() {
        let state = tempfile::tempdir().expect("dir");
        let dir = bare(state.path());
        assert!(!dir.executor_alive());
        let lock = dir.lock().expect("the first one");
        assert!(dir.executor_alive());
        assert_eq!(dir.executor_pid().map(|p| p.as_raw_pid() as u32), Some(std::process::id()));
        assert!(dir.lock().is_err(), "a second one beside it");
        drop(lock);
        assert!(!dir.executor_alive());
        assert!(dir.lock().is_err(), "a second one after it");
        assert!(dir.close());
        let late = ExecutionDir { path: state.path().join(EXECUTIONS).join("exe2") };
        fs::create_dir_all(&late.path).expect("dir");
        assert!(late.close() && !late.executor_alive());
        assert!(late.lock().is_err(), "one that comes after the look");
        assert!(!late.take_back() && !dir.take_back(), "nobody can tell that none worked here");
        let unused = ExecutionDir { path: state.path().join(EXECUTIONS).join("exe3") };
        fs::create_dir_all(&unused.path).expect("dir");
        unused.mark_started().expect("started");
        assert!(unused.take_back() && !unused.is_started());
        assert!(unused.lock().is_err(), "one that comes late");
    }

    #[test]
    fn files_read_back_and_everything_goes_in_the_end() {
        let state = tempfile::tempdir().expect("dir");
        assert_eq!(ExecutionDir::list(state.path()).expect("list"), (vec![], vec![]));
        let dir = bare(state.path());
        assert!(!dir.is_started() && dir.result().expect("result").is_none() && dir.steps().is_empty());
        dir.mark_started().expect("started");
        dir.request_cancel("first").expect("cancel");
        dir.request_cancel("second").expect("cancel");
        assert_eq!(dir.cancel_reason().as_deref(), Some("first"));
        dir.touch_renewed(1).expect("renewed");
        let before = dir.renewed();
        dir.touch_renewed(2).expect("renewed");
        assert_ne!(dir.renewed(), before);
        dir.write_steps(&[StepResult::pending("a")]).expect("steps");
        assert_eq!(dir.steps().len(), 1);
        let error = model::JobError::new("code", "text");
        let now = model::Timestamp::from_micros(1);
        let result = ExecutionResult::without_work(model::Outcome::Failed, error, now);
        dir.write_result(&result).expect("result");
        assert_eq!(dir.result().expect("result"), Some(result));
        assert_eq!(ExecutionDir::list(state.path()).expect("list"), (vec![dir.clone()], vec![]));

        let sealed = dir.work().join("sealed");
        fs::create_dir(&sealed).expect("dir");
        fs::write(sealed.join("file"), "x").expect("file");
        fs::set_permissions(&sealed, PermissionsExt::from_mode(0o000)).expect("mode");
        let aside = dir.set_aside().expect("aside");
        assert_eq!(ExecutionDir::list(state.path()).expect("list"), (vec![], vec![aside.clone()]));
        remove_tree(&aside).expect("remove");
        dir.remove().expect("again");
        assert_eq!(fs::read_dir(state.path().join(EXECUTIONS)).expect("list").count(), 0);
    }
}
