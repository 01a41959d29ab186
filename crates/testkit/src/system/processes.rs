//! Processes of a test: started, signalled, found again, and ended with it.

use super::*;

/// A process of a test; killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    ended: Option<ExitStatus>,
    ours: Arc<Mutex<BTreeSet<u32>>>,
}

impl Process {
    pub(super) fn spawn(command: &mut Command, ours: &Arc<Mutex<BTreeSet<u32>>>) -> Self {
        let child = command.spawn().unwrap_or_else(|e| panic!("can't start {command:?}: {e}"));
        ours.lock().unwrap_or_else(PoisonError::into_inner).insert(child.id());
        Self { child, ended: None, ours: Arc::clone(ours) }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            send(self.pid(), signal);
        }
    }

    /// SIGKILL, and the process is gone when this returns.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
        self.ours.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.child.id());
    }

    /// Waits for its end.
    pub async fn ended(&mut self, bound: Duration) -> ExitStatus {
        let until = Instant::now() + bound;
        loop {
            if let Some(status) = self.ended {
                return status;
            }
            self.ended = self.child.try_wait().expect("a child can be waited for");
            assert!(Instant::now() < until, "process {} did not end within {bound:?}", self.pid());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn is_alive(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("a child can be waited for");
        }
        self.ended.is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a process that may be gone already.
pub fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

pub(super) fn write_stderr(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Waits for the processes of a directory to end, then kills them; returns those that had to be killed.
pub fn end_all(root: &Path, patience: Duration, except: &BTreeSet<u32>) -> Vec<String> {
    let until = Instant::now() + patience;
    loop {
        let left: Vec<Seen> = processes_of(root).into_iter().filter(|p| !except.contains(&(p.pid as u32))).collect();
        if left.is_empty() {
            return Vec::new();
        }
        if Instant::now() >= until {
            // Executors first: they would call what follows an end of their own.
            left.iter().for_each(|p| send(p.pid, Signal::KILL));
            return left
                .iter()
                .map(|p| format!("{} {}", p.pid, String::from_utf8_lossy(&p.command).replace('\0', " ")))
                .collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that belongs to a directory.
#[derive(Debug)]
pub struct Seen {
    pub pid: i32,
    pub command: Vec<u8>,
    pub environ: Vec<u8>,
}

impl Seen {
    pub(super) fn is_marked(&self) -> bool {
        self.environ.split(|b| *b == 0).any(|v| v.starts_with(env::EXECUTION_ID.as_bytes()))
    }
}

/// Those that are no children of one another: what a process has just forked bears its name until it becomes another program.
pub fn without_forks(found: Vec<i32>) -> Vec<i32> {
    let is_fork = |pid: i32| parent(pid).is_some_and(|parent| found.contains(&parent));
    found.iter().copied().filter(|pid| !is_fork(*pid)).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
}

/// Every process that carries the directory in its command line or its environment.
pub fn processes_of(root: &Path) -> Vec<Seen> {
    let needle = root.as_os_str().as_bytes();
    let carries = |bytes: &[u8]| bytes.windows(needle.len()).any(|w| w == needle);
    all_pids()
        .filter(|pid| *pid != std::process::id() as i32)
        .filter_map(|pid| {
            let read = |name: &str| fs_err::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let command = read("cmdline");
            // A thread of the kernel, or what is left of a process.
            if command.is_empty() {
                return None;
            }
            let environ = read("environ");
            (carries(&command) || carries(&environ)).then_some(Seen { pid, command, environ })
        })
        .collect()
}

/// Whether a process is there and has not ended.
pub fn is_running(pid: i32) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    all_pids().filter(|child| parent(*child) == Some(pid)).collect()
}
