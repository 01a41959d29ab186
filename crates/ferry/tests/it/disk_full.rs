//! Full disks, on the runner and on the server: small file systems of their own that a test fills. Errors are clear, nothing is
//! corrupted, and work goes on by itself when there is room again.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use api::ErrorCode;
use api::client::{LogFilter, LogFormat};
use api::control::UpdateRunnerSettings;
use futures::StreamExt as _;
use model::JobState;
use needs::needs;
use testkit::system::{System, action, run, script, shown};

use crate::{options, seconds};

/// A file system of a few MiB: a mount, or, in a container that can't mount, what is left of its small `/dev/shm` beside a
/// ballast. Gone when it is dropped.
pub(crate) struct Room {
    dir: tempfile::TempDir,
    is_mount: bool,
    /// There is one `/dev/shm`.
    _alone: Option<MutexGuard<'static, ()>>,
}

static SHM: Mutex<()> = Mutex::new(());

impl Room {
    /// A test that calls it says `needs!(SmallDisk)`.
    pub(crate) fn new(mib: u32) -> Self {
        let dir = testkit::system::temporary();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]).arg(dir.path());
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Self { dir, is_mount: true, _alone: None };
        }
        let alone = SHM.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::Builder::new().prefix("ferry-it-").tempdir_in("/dev/shm").unwrap();
        let disk = rustix::fs::statvfs(dir.path()).unwrap();
        let ballast = (disk.f_bavail * disk.f_frsize).checked_sub(u64::from(mib) << 20).expect("a larger /dev/shm");
        let mut file = fs_err::File::create(dir.path().join("ballast")).unwrap();
        std::io::copy(&mut std::io::repeat(7).take(ballast), &mut file).unwrap();
        Self { dir, is_mount: false, _alone: Some(alone) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Takes every byte that is left.
    pub(crate) fn fill(&self) {
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(self.filler()).unwrap();
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
    }

    /// Gives so much back.
    pub(crate) fn leave(&self, mib: u64) {
        let file = fs_err::OpenOptions::new().write(true).open(self.filler()).unwrap();
        file.set_len(file.metadata().unwrap().len() - (mib << 20)).unwrap();
    }

    pub(crate) fn make_room(&self) {
        fs_err::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.is_mount {
            let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
        }
    }
}

/// A script that writes lines to its log and to a witness elsewhere, until its gate opens.
fn lines_script(system: &System, name: &str) -> String {
    let path = |suffix: &str| system.witness(&format!("{name}{suffix}")).display().to_string();
    format!(
        "echo begin >> {0}\nwhile [ ! -e {1} ]; do i=$((i+1)); echo \"line $i\" | tee -a {2}; sleep 0.05; done\necho end >> {0}",
        path(""),
        path(".go"),
        path(".out"),
    )
}

#[tokio::test]
async fn a_full_disk_on_the_runner_is_named_and_loses_no_job() {
    needs!(SmallDisk);
    let room = Room::new(32);
    // Short, to see that a full disk is not taken for silence.
    let system = System::start(options().with("FERRY_TIMING__OFFLINE_S", 5)).await;
    fs_err::create_dir(room.path().join("state")).unwrap();
    std::os::unix::fs::symlink(room.path().join("state"), system.state_dir("a")).unwrap();
    let runner_id = system.install.runner_id.as_str();
    let floor: UpdateRunnerSettings = serde_json::from_value(serde_json::json!({"disk_floor_bytes": 8 << 20})).unwrap();
    system.client.update_runner_settings(runner_id, &floor).await.unwrap();
    let runner = system.start_runner("a").await;
    let running = system.script(&lines_script(&system, "running")).await;
    let cancelled = system.script("trap 'exit 3' TERM; while :; do sleep 0.05; done").await;
    system.until_witness("running", "begin").await;
    system.until_state(&cancelled.id, JobState::Running, seconds(10)).await;
    room.fill();
    let witness = system.witness("waiting").display().to_string();
    let waiting = system.script(&format!("echo ran >> {witness}")).await;
    system.until_waiting(&waiting.id, "too little disk on the runner: 0 MiB free, 8 MiB needed").await;
    let state = runner.state_dir.display().to_string();
    let output = run(system.runner_command(&["doctor", "--state-dir", &state])).await;
    assert!(shown(&output).contains("make room"), "{}", shown(&output));
    // Longer than `offline_s`: the server is there, and so is the lease.
    tokio::time::sleep(seconds(7)).await;
    assert_eq!(system.job(&running.id).await.status, JobState::Running, "the script goes on");
    system.client.cancel_job(&cancelled.id).await.unwrap();
    fs_err::write(system.witness("running.go"), "").unwrap();
    system.until_witness("running", "end").await;
    tokio::time::sleep(seconds(2)).await;
    room.make_room();
    let freed = Instant::now();
    assert_eq!(system.until_over(&cancelled.id).await.status, JobState::Cancelled, "a full disk stops no cancel");
    let running = system.until_over(&running.id).await;
    assert_eq!(running.status, JobState::Finished, "{}", running.status_description);
    assert_eq!(system.lines("running"), ["begin", "end"]);
    assert_eq!(system.until_over(&waiting.id).await.status, JobState::Finished, "and work goes on by itself");
    assert_eq!(system.lines("waiting"), ["ran"]);
    let went_on = freed.elapsed();
    let (there, missing) = log_and_gaps(&system, &running).await;
    let written = fs_err::read(system.witness("running.out")).unwrap();
    assert_eq!(there.len() as u64 + missing, written.len() as u64, "what is missing is marked, to the byte");
    assert!(written.starts_with(&there[..there.len().min(100)]), "and what is there is what was written");
    eprintln!("went on {went_on:.1?} after there was room; {} bytes of log, {missing} in marked gaps", there.len());
    assert!(missing > 0, "the disk was full: something must be missing");
    system.until_quiet().await;
}

/// The bytes of stdout, and how many a gap says are missing.
async fn log_and_gaps(system: &System, job: &api::control::Job) -> (Vec<u8>, u64) {
    let there = system.raw_log(job, Some("stdout")).await;
    let mut text = Vec::new();
    let mut pieces = system
        .client
        .log_bytes(&job.log_stream_id, LogFormat::Text, &LogFilter::pipe(Some("stdout")), false)
        .await
        .unwrap();
    while let Some(piece) = pieces.next().await {
        text.extend_from_slice(&piece.unwrap());
    }
    let text = String::from_utf8(text).unwrap();
    let gaps =
        text.lines().filter_map(|l| l.strip_prefix('[')?.strip_suffix(" bytes are missing here]")?.parse::<u64>().ok());
    (there, gaps.sum())
}

#[tokio::test]
async fn a_full_disk_on_the_server_is_named_and_corrupts_nothing() {
    needs!(SmallDisk);
    let room = Room::new(32);
    let database = room.path().join("db");
    let options = options()
        .with("FERRY_DATABASE__URL", format!("sqlite:{}", database.display()))
        .with("FERRY_BLOBS__URL", room.path().join("blobs").display())
        .with("FERRY_LOGS__SEAL_QUIET_S", 1);
    let mut system = System::start(options).await;
    let _runner = system.start_runner("a").await;
    let running = system.held("running").await;
    room.fill();
    // The write-ahead log may have some room of its own.
    let mut taken = Vec::new();
    let padding = "#".repeat(20_000);
    let error = loop {
        let wanted =
            action(vec![script("run", &format!("echo ran >> {}\n{padding}", system.witness("taken").display()))]);
        match system.client.create_action_run(system.install.id.as_str(), &wanted).await {
            Ok(job) => taken.push(job),
            Err(error) => break error,
        }
        assert!(taken.len() < 1000, "a full disk takes everything");
    };
    assert_eq!(error.code(), Some(ErrorCode::Unavailable), "{error}");
    assert!(error.to_string().contains("the control plane's disk is full"), "{error}");
    // Longer than a lease.
    tokio::time::sleep(seconds(5)).await;
    system.open("running");
    system.until_witness("running", "end").await;
    assert!(system.client.job(&running.id).await.is_ok(), "what is there can be read");
    room.make_room();
    let freed = Instant::now();
    let running = system.until_over(&running.id).await;
    let went_on = freed.elapsed();
    assert_eq!(running.status, JobState::Finished, "{}", running.status_description);
    system.assert_whole(&running, "running").await;
    for job in &taken {
        assert_eq!(system.until_over(&job.id).await.status, JobState::Finished, "{}", job.id);
    }
    assert_eq!(system.lines("taken").len(), taken.len(), "what was acknowledged ran once");
    assert_eq!(system.run(vec![script("next", "true")]).await.status, JobState::Finished);
    eprintln!("went on {went_on:.1?} after there was room; {} jobs were taken on the full disk", taken.len());
    system.until_quiet().await;
    system.stop_server().await;
    for file in ["ferry.db", "logs.db"] {
        let connection = rusqlite::Connection::open(database.join(file)).unwrap();
        let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok", "{file}");
    }
}
