//! Runs one child of an executor to its end, and leaves no process behind.
//!
//! The child leads a process group of its own. An interrupt is SIGTERM to the group (a shell hands SIGINT on to nobody
//! in the background), then the grace, then SIGKILL. The executor is a sub-reaper, so whatever outlives the child comes
//! back to it; group, cgroup, parent and the mark in the environment find the rest, whatever it did to hide.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use crash::crash_point;
use fs_err as fs;
use mask::Masker;
use model::constants::{CHUNK_BYTES, LOG_FLUSH_MS};
use model::log::Pipe;
use model::{JobError, Outcome, StepStatus, TraceContext};
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::confine::limits::{self, Cgroups};
use crate::confine::shim::{Sandbox, ShimFile};
use crate::directory::ExecutionDir;
use crate::logs::secrets::Secrets;
use crate::logs::spool::{SpoolWriter, whole_characters};

/// In the environment of every child; how leftovers are found.
pub const MARK: &str = model::env::EXECUTION_ID;
/// Complete lines wait this long for more, so that a chatty child makes few chunks; a partial line waits longer, but
/// both together stay within the flush time.
const LINES_WAIT: Duration = Duration::from_millis(LOG_FLUSH_MS / 5);
const PARTIAL_WAIT: Duration = Duration::from_millis(LOG_FLUSH_MS - LOG_FLUSH_MS / 5);
/// After this long without output who listens is told that there is none; longer than progress waits to be told.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest grace of what a child left running.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// How long the pipes may go on after nobody is left who should hold them.
const DRAIN: Duration = Duration::from_secs(1);
/// How often leftovers are killed before they are given up (only the kernel can hold them then).
const KILL_ROUNDS_MAX: u32 = 500;

/// Why a child is interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    Cancelled(String),
    /// Nobody renewed the lease for so many seconds.
    Offline(u64),
    TimedOut(u64),
    DiskQuota(u64),
}

impl Stop {
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Cancelled(_) => Outcome::Cancelled,
            Self::TimedOut(_) => Outcome::TimedOut,
            Self::Offline(_) | Self::DiskQuota(_) => Outcome::Failed,
        }
    }

    pub fn step_status(&self) -> StepStatus {
        match self {
            Self::Cancelled(_) => StepStatus::Cancelled,
            Self::TimedOut(_) => StepStatus::TimedOut,
            Self::Offline(_) | Self::DiskQuota(_) => StepStatus::Error,
        }
    }

    pub fn error(&self) -> JobError {
        match self {
            Self::Cancelled(reason) => JobError::new("cancelled", format!("cancelled: {reason}")),
            Self::Offline(s) => JobError::new("offline", format!("the lease was not renewed for {s} s; interrupted")),
            Self::TimedOut(s) => JobError::new("timed_out", format!("it did not end within its timeout of {s} s")),
            Self::DiskQuota(bytes) => {
                let mib = bytes >> 20;
                JobError::new(
                    "disk_quota",
                    format!("its directory grew over the quota of {mib} MiB, or holds a million files"),
                )
            }
        }
    }
}

/// What a child runs under; the same for all children of an execution.
#[derive(Debug)]
pub struct Host<'a> {
    pub dir: &'a ExecutionDir,
    pub log: &'a RefCell<SpoolWriter>,
    pub secrets: &'a Secrets,
    pub cgroups: Cgroups,
    /// None where the kernel has no landlock.
    pub sandbox: Option<Sandbox>,
    pub grace: Duration,
    /// The job, where it is traced.
    pub trace: Option<TraceContext>,
    /// Where programs export their telemetry to, without the number of the step.
    pub otlp_endpoint: Option<String>,
}

/// Listens to a pipe of a child, and says what goes to the log instead.
pub trait Hear {
    fn hear(&mut self, bytes: &[u8]) -> Vec<u8>;
    /// Nothing has come for a moment.
    fn pause(&mut self) {}
    /// The pipe has ended.
    fn end(&mut self) -> Vec<u8>;
}

pub struct Child<'a> {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub step: usize,
    pub kept: Kept,
    pub interrupt: Interrupt,
    pub hear: Option<&'a RefCell<dyn Hear + 'a>>,
    /// The same for standard error.
    pub hear_errors: Option<&'a RefCell<dyn Hear + 'a>>,
}

impl Child<'_> {
    /// A child in the sandbox, whose output goes to the log as it is.
    pub fn new(argv: Vec<String>, cwd: PathBuf, env: BTreeMap<String, String>, step: usize) -> Self {
        Self { argv, cwd, env, step, kept: Kept::InSandbox, interrupt: Interrupt::Group, hear: None, hear_errors: None }
    }
}

/// Who is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Everybody in the group, with SIGTERM.
    Group,
    /// The child alone, with SIGINT: it ends what it started itself, in its order.
    Leader,
}

/// How a child is kept from the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    InSandbox,
    /// It may use directories of the runner's own.
    InSandboxWith(Vec<PathBuf>),
    /// It makes a cell (`crate::confine::cell`) for itself, which the sandbox would not let it.
    InCell,
}

#[derive(Debug)]
pub enum Ended {
    Exited(ExitStatus),
    Stopped(Stop),
}

/// What the shim is told of a child.
fn shim_file(child: &Child<'_>, host: &Host<'_>) -> ShimFile {
    let mut env = child.env.clone();
    if let Some(job) = &host.trace {
        // What the child exports itself becomes a part of its step.
        let step = job.step(host.dir.name(), child.step);
        env.entry("TRACEPARENT".into()).or_insert_with(|| step.to_string());
    }
    if let Some(endpoint) = &host.otlp_endpoint {
        export_to(&mut env, &format!("{endpoint}/{}", child.step));
    }
    ShimFile {
        argv: child.argv.clone(),
        env,
        cgroups: host.cgroups.clone(),
        sandbox: match &child.kept {
            Kept::InSandbox => host.sandbox.clone(),
            Kept::InSandboxWith(paths) => host.sandbox.clone().map(|mut sandbox| {
                sandbox.allow_paths.extend(paths.iter().cloned());
                sandbox
            }),
            Kept::InCell => None,
        },
        parent: None,
    }
}

/// Runs a child until it and everything it started has ended.
pub async fn run(child: &Child<'_>, host: &Host<'_>, stop: &mut watch::Receiver<Option<Stop>>) -> io::Result<Ended> {
    if let Some(stop) = stop.borrow().clone() {
        return Ok(Ended::Stopped(stop));
    }
    host.dir.write_json("shim.json", &shim_file(child, host))?;
    for dir in &host.cgroups.dirs {
        host.dir.note_group(&format!("cgroup {}", dir.display()))?;
    }
    crash_point!("executor.before_child");
    let (stdout, told_stdout) = io::pipe()?;
    let (stderr, told_stderr) = io::pipe()?;
    // Who ends in an order of its own must not die of a write when nobody listens any more: it holds the other end of its pipes itself.
    let held = match child.interrupt {
        Interrupt::Leader => vec![inherited(&stdout)?, inherited(&stderr)?],
        Interrupt::Group => Vec::new(),
    };
    // The running binary itself, also after its file was replaced by an update.
    let mut process = tokio::process::Command::new("/proc/self/exe")
        .arg0("ferry-runner")
        .arg("shim")
        .arg(host.dir.path().join("shim.json"))
        .env_clear()
        .env(MARK, host.dir.name())
        .current_dir(&child.cwd)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::from(told_stdout))
        .stderr(Stdio::from(told_stderr))
        .spawn()?;
    drop(held);
    crash_point!("executor.child_spawned");
    let pid = process.id().and_then(|id| Pid::from_raw(id as i32)).ok_or_else(|| io::Error::other("no process id"))?;
    if let Err(error) = note(child, host, pid) {
        // Nobody could find it after this executor's death: it must not live.
        signal(pid, Signal::KILL);
        let _ = process.wait().await;
        Leftovers::of(host.dir, true).end(Duration::ZERO).await;
        let why = crate::seal::vault::named(host.dir.path(), &error);
        return Err(io::Error::new(error.kind(), format!("a process was ended because it can't be noted: {why}")));
    }
    crash_point!("executor.child_noted");

    let step = child.step as u32;
    let (stdout, stderr) = (Receiver::from_owned_fd(stdout.into())?, Receiver::from_owned_fd(stderr.into())?);
    let mut stdout = Pump::new(Some(stdout), Pipe::Stdout, step, host, child.hear);
    let mut stderr = Pump::new(Some(stderr), Pipe::Stderr, step, host, child.hear_errors);
    let mut pumps = Box::pin(async { tokio::join!(stdout.run(), stderr.run()) });
    let mut drained = false;
    let mut stopped: Option<Stop> = None;
    let mut kill_at: Option<Instant> = None;
    let mut reap = tokio::time::interval_at(Instant::now() + Duration::from_secs(1), Duration::from_secs(1));
    let status = loop {
        tokio::select! {
            status = process.wait() => break status?,
            _ = &mut pumps, if !drained => drained = true,
            Ok(()) = stop.changed(), if stopped.is_none() => {
                stopped = stop.borrow().clone();
                match child.interrupt {
                    Interrupt::Group => signal(pid, Signal::TERM),
                    Interrupt::Leader => drop(rustix::process::kill_process(pid, Signal::INT)),
                }
                kill_at = Some(Instant::now() + host.grace);
            }
            () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                signal(pid, Signal::KILL);
                kill_at = None;
            }
            _ = reap.tick() => reap_orphans(Some(pid.as_raw_pid())),
        }
    };
    crash_point!("executor.child_ended");
    let left = Leftovers::of(host.dir, true);
    if left.end(host.grace.min(LEFTOVER_GRACE)).await > 0 {
        host.log.borrow_mut().system(Some(child.step), "a process that can't be killed is left behind");
    }
    if !drained {
        let _ = timeout(DRAIN, &mut pumps).await;
    }
    drop(pumps);
    stdout.finish();
    stderr.finish();
    Ok(stopped.map_or(Ended::Exited(status), Ended::Stopped))
}

/// Has OpenTelemetry's exporters send to `endpoint`, unless the environment names another one.
fn export_to(env: &mut BTreeMap<String, String>, endpoint: &str) {
    if env.keys().any(|name| name.starts_with("OTEL_EXPORTER_OTLP_")) {
        return;
    }
    env.insert("OTEL_EXPORTER_OTLP_ENDPOINT".into(), endpoint.to_owned());
    env.insert("OTEL_EXPORTER_OTLP_PROTOCOL".into(), "http/protobuf".into());
    let proxied = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].iter().any(|name| env.contains_key(*name));
    if proxied {
        for name in ["NO_PROXY", "no_proxy"] {
            let hosts = env.entry(name.into()).or_default();
            let comma = if hosts.is_empty() { "" } else { "," };
            hosts.push_str(comma);
            hosts.push_str("127.0.0.1");
        }
    }
}

/// Notes a child on the disk, where whoever ends it finds it.
fn note(child: &Child<'_>, host: &Host<'_>, pid: Pid) -> io::Result<()> {
    let (pid, boot) = (pid.as_raw_pid(), boot_id());
    let started = look(pid).map_or(0, |seen| seen.started);
    host.dir.note_group(&format!("group {pid} {started} {boot}"))?;
    if child.interrupt == Interrupt::Leader {
        host.dir.note_group(&format!("leader {pid} {started} {boot} {}", host.grace.as_secs()))?;
    }
    Ok(())
}

/// Ends what a dead executor left running; returns how many processes could not be ended.
pub async fn reap_leftovers(dir: &ExecutionDir, grace: Duration) -> usize {
    let left = Leftovers::of(dir, false);
    left.ask_leaders().await;
    let alive = left.end(grace).await;
    for cgroup in &left.cgroups {
        limits::remove(cgroup);
    }
    alive
}

/// Whether something that a dead executor started still runs.
pub fn is_left_running(dir: &ExecutionDir) -> bool {
    let left = Leftovers::of(dir, false);
    !left.leaders.is_empty() || !left.find().is_empty()
}

/// Another handle of a pipe's end, which a child gets too.
fn inherited(end: &io::PipeReader) -> io::Result<io::PipeReader> {
    let copy = end.try_clone()?;
    rustix::io::fcntl_setfd(&copy, rustix::io::FdFlags::empty())?;
    Ok(copy)
}

fn signal(leader: Pid, signal: Signal) {
    // A second interrupt would cut the first one's grace short, so the leader gets one of its own only where it has no group yet.
    if rustix::process::kill_process_group(leader, signal).is_err() {
        let _ = rustix::process::kill_process(leader, signal);
    }
}

/// Collects children that ended and that nobody waits for: what came to the sub-reaper.
fn reap_orphans(except: Option<i32>) {
    for seen in processes().filter(|p| p.ended && p.parent == own_pid() && Some(p.pid) != except) {
        let _ = rustix::process::waitpid(Pid::from_raw(seen.pid), WaitOptions::NOHANG);
    }
}

/// One pipe of a child, on its way through the masker into the spool.
struct Pump<'a, 'h, R> {
    reader: Option<R>,
    pipe: Pipe,
    step: u32,
    log: &'a RefCell<SpoolWriter>,
    secrets: &'a Secrets,
    masker: Masker,
    pending: Vec<u8>,
    hear: Option<&'h RefCell<dyn Hear + 'h>>,
}

impl<'a, 'h, R: AsyncRead + Unpin> Pump<'a, 'h, R> {
    fn new(
        reader: Option<R>,
        pipe: Pipe,
        step: u32,
        host: &Host<'a>,
        hear: Option<&'h RefCell<dyn Hear + 'h>>,
    ) -> Self {
        let (log, secrets) = (host.log, host.secrets);
        Self { reader, pipe, step, log, secrets, masker: Masker::default(), pending: Vec::new(), hear }
    }

    async fn run(&mut self) {
        let Some(mut reader) = self.reader.take() else { return };
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut waits_since: Option<Instant> = None;
        let mut silent = true;
        loop {
            let wait = if self.pending.contains(&b'\n') { LINES_WAIT } else { PARTIAL_WAIT };
            let due = waits_since.unwrap_or_else(Instant::now) + wait;
            tokio::select! {
                read = reader.read(&mut buffer) => {
                    let Ok(n @ 1..) = read else { return };
                    silent = false;
                    // After the read: what was registered before it was printed is known now.
                    let masks = self.secrets.masks();
                    match self.hear {
                        Some(hear) => self.masker.push(&masks, &hear.borrow_mut().hear(&buffer[..n]), &mut self.pending),
                        None => self.masker.push(&masks, &buffer[..n], &mut self.pending),
                    }
                    while self.pending.len() >= CHUNK_BYTES {
                        self.write_lines(CHUNK_BYTES);
                        waits_since = None;
                    }
                }
                () = sleep_until(due), if waits_since.is_some() => {
                    self.write_lines(self.pending.len());
                    waits_since = None;
                }
                () = tokio::time::sleep(PAUSE), if !silent => {
                    silent = true;
                    if let Some(hear) = self.hear {
                        hear.borrow_mut().pause();
                    }
                }
            }
            // The beginning of a character waits for its end, however long.
            if waits_since.is_none() && whole_characters(&self.pending, self.pending.len()) > 0 {
                waits_since = Some(Instant::now());
            }
        }
    }

    /// Writes up to the last line end in the first `length` bytes; where there is none, all of them that are whole characters.
    fn write_lines(&mut self, length: usize) {
        let end = self.pending[..length].iter().rposition(|b| *b == b'\n');
        let cut = end.map_or_else(|| whole_characters(&self.pending, length), |at| at + 1);
        self.log.borrow_mut().write(self.pipe, self.step, &self.pending[..cut]);
        self.pending.drain(..cut);
    }

    fn finish(&mut self) {
        let masks = self.secrets.masks();
        if let Some(hear) = self.hear {
            self.masker.push(&masks, &hear.borrow_mut().end(), &mut self.pending);
        }
        self.masker.flush(&masks, &mut self.pending);
        let mut log = self.log.borrow_mut();
        log.write(self.pipe, self.step, &self.pending);
        log.end_line(self.pipe);
        self.pending.clear();
    }
}

/// Where processes of an execution can be found after its child has ended.
struct Leftovers {
    mark: Vec<u8>,
    groups: Vec<i32>,
    /// Children that end what they started themselves, and how long that may take.
    leaders: Vec<(i32, Duration)>,
    cgroups: Vec<PathBuf>,
    /// As a sub-reaper every child of this process is one.
    own_children: bool,
}

impl Leftovers {
    fn of(dir: &ExecutionDir, own_children: bool) -> Self {
        let mut left = Self {
            mark: format!("{MARK}={}", dir.name()).into_bytes(),
            groups: Vec::new(),
            leaders: Vec::new(),
            cgroups: Vec::new(),
            own_children,
        };
        let boot = boot_id();
        for line in dir.groups() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["cgroup", path] => left.cgroups.push(path.into()),
                ["group", pid, started, noted_boot] if noted_boot == boot => {
                    let (Ok(pid), Ok(started)) = (pid.parse::<i32>(), started.parse::<u64>()) else { continue };
                    // A number is not given out again while its group has members; a leader that began at another
                    // time leads another group.
                    if look(pid).is_none_or(|leader| leader.started == started) {
                        left.groups.push(pid);
                    }
                }
                ["leader", pid, started, noted_boot, grace_s] if noted_boot == boot => {
                    let (Ok(pid), Ok(grace_s)) = (pid.parse::<i32>(), grace_s.parse()) else { continue };
                    if look(pid).is_some_and(|seen| !seen.ended && seen.started.to_string() == started) {
                        left.leaders.push((pid, Duration::from_secs(grace_s)));
                    }
                }
                _ => {}
            }
        }
        left.cgroups.dedup();
        left
    }

    /// Interrupts the leaders, once, and waits for them.
    async fn ask_leaders(&self) {
        for (pid, _) in &self.leaders {
            send(&BTreeSet::from([*pid]), Signal::INT);
        }
        for (pid, grace) in &self.leaders {
            let until = Instant::now() + *grace;
            while look(*pid).is_some_and(|seen| !seen.ended) && Instant::now() < until {
                sleep(Duration::from_millis(10)).await;
            }
        }
    }

    fn find(&self) -> BTreeSet<i32> {
        let own = own_pid();
        let mut found: BTreeSet<i32> = self.cgroups.iter().flat_map(|dir| limits::members(dir)).collect();
        found.retain(|pid| look(*pid).is_some_and(|seen| !seen.ended));
        found.extend(
            processes()
                .filter(|seen| {
                    !seen.ended
                        && (self.groups.contains(&seen.group)
                            || (self.own_children && seen.parent == own)
                            || has_mark(seen.pid, &self.mark))
                })
                .map(|seen| seen.pid),
        );
        found.remove(&own);
        found
    }

    /// Interrupts, gives the grace, kills; returns how many are left all the same.
    async fn end(&self, grace: Duration) -> usize {
        let mut found = self.find();
        send(&found, Signal::TERM);
        let grace_ends = Instant::now() + grace;
        while !found.is_empty() && Instant::now() < grace_ends {
            sleep(Duration::from_millis(10)).await;
            found.retain(|pid| look(*pid).is_some_and(|seen| !seen.ended));
            if found.is_empty() {
                found = self.find();
            }
        }
        for dir in self.cgroups.iter().filter(|_| !found.is_empty()) {
            limits::stop_forks(dir);
        }
        for _ in 0..KILL_ROUNDS_MAX {
            if found.is_empty() {
                break;
            }
            send(&found, Signal::KILL);
            sleep(Duration::from_millis(10)).await;
            found = self.find();
        }
        if self.own_children {
            reap_orphans(None);
        }
        found.len()
    }
}

fn send(pids: &BTreeSet<i32>, signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // It may have ended since it was seen.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// A process as `/proc` shows it.
struct Seen {
    pid: i32,
    ended: bool,
    parent: i32,
    group: i32,
    /// Ticks after boot.
    started: u64,
}

fn look(pid: i32) -> Option<Seen> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain anything, so count from its end.
    let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
    Some(Seen {
        pid,
        ended: matches!(fields.first(), Some(&("Z" | "X"))),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

fn processes() -> impl Iterator<Item = Seen> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(look)
}

fn has_mark(pid: i32, mark: &[u8]) -> bool {
    let environ = fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).unwrap_or_default();
    environ.split(|b| *b == 0).any(|variable| variable == mark)
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

/// A clock that goes on while the machine is suspended: the control plane counts that time too.
pub fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Tells one run of the machine from the next.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
