//! The state directory: the session's key pair and generation, settings, the customer's switch, and what ran last. One
//! process at a time holds its lock.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use fs_err as fs;
use model::papers::{EndorsedKey, Signatory};
use model::runner::{RunnerKind, RunnerSettings};
use model::{InstallId, OrgId, RunnerId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::directory::{ExecutionDir, remove_tree};
use crate::doctor::{KEY_FILE, LOCK_FILE};
use crate::seal::vault::Tools;
use crate::{confine::process, seal::rescue};

const SESSION_FILE: &str = "session.json";
const DISABLED_FILE: &str = "disabled";
const HISTORY_FILE: &str = "history.jsonl";
/// Lines of history that are kept.
const HISTORY_LINES: usize = 200;

/// What a session knows of itself; readable by `explain`, `doctor` and health checks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionFile {
    pub runner_id: RunnerId,
    pub name: String,
    pub kind: RunnerKind,
    pub org_id: OrgId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<InstallId>,
    pub generation: u64,
    pub url: String,
    /// Fingerprints from the join command.
    pub trust: Vec<String>,
    /// Keys that were offered and that trust leads to.
    pub keys: Vec<EndorsedKey>,
    pub settings: RunnerSettings,
    pub timing: api::runner::Timing,
    #[serde(default)]
    pub allow_paths: Vec<PathBuf>,
    /// The customer allows no ad hoc actions.
    #[serde(default)]
    pub no_ad_hoc: bool,
    #[serde(default)]
    pub tools: Tools,
    /// The user that the runner works as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Where `/metrics` is served; nowhere when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metrics_listen: String,
    pub joined_at: Timestamp,
    /// Raised by every process that takes the session up: what it says counts more than what an earlier one said.
    #[serde(default)]
    pub process: u64,
    #[serde(default)]
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_started_at: Option<Timestamp>,
    /// When the control plane last answered a poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// Slots, what is at work, and the seconds since the group was last served.
    #[serde(default)]
    pub groups: serde_json::Value,
}

/// One line of what ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HistoryLine {
    pub time: Timestamp,
    pub job_id: String,
    pub execution_id: String,
    pub job_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub outcome: String,
}

pub struct StateDir {
    path: PathBuf,
}

/// Held while a session process lives.
pub struct StateLock {
    file: File,
}

impl StateLock {
    /// Whether the directory is still the one that was locked.
    pub fn holds(&self, state: &StateDir) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let same = |a: std::fs::Metadata, b: std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        match (std::fs::metadata(state.path.join(LOCK_FILE)), self.file.metadata()) {
            (Ok(there), Ok(held)) => same(there, held),
            (Err(error), _) => error.kind() != std::io::ErrorKind::NotFound,
            (Ok(_), Err(_)) => true,
        }
    }
}

/// Room for the switch: a runner can be disabled on a full disk, too.
const ROOM_FILE: &str = "disabled.room";
const ROOM: [u8; 64] = [b' '; 64];

impl StateDir {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How to join again, for every message that says to.
    pub fn join_again(&self) -> String {
        format!(
            "run `ferry-runner reset --state-dir {}`, which deletes the session and keeps the install's key and rescued states, then join again with `ferry runners join-command`",
            self.path.display()
        )
    }

    /// Fails where no runner has ever worked: a person has named the wrong directory.
    pub fn must_be_used(&self) -> anyhow::Result<()> {
        if self.path.join(LOCK_FILE).exists() || self.path.join(SESSION_FILE).exists() {
            return Ok(());
        }
        bail!(
            "no runner has worked with {}, so nothing was changed. Name the runner's directory with `--state-dir`",
            self.path.display()
        )
    }

    /// Makes the directory and takes its lock; fails when another process has it.
    pub fn lock(&self) -> anyhow::Result<StateLock> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .with_context(|| format!("the state directory {} can't be made", self.path.display()))?;
        let path = self.path.join(LOCK_FILE);
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut file = options.open(&path)?.into_parts().0;
        if file.try_lock().is_err() {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            bail!("{} is in use by the runner process {}", self.path.display(), holder.trim());
        }
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        if !self.path.join(ROOM_FILE).exists() {
            let _ = self.write(ROOM_FILE, &ROOM, true);
        }
        Ok(StateLock { file })
    }

    /// The pid of the process that holds the lock, if one does.
    pub fn holder(&self) -> Option<i32> {
        let path = self.path.join(LOCK_FILE);
        let file = File::open(&path).ok()?;
        if file.try_lock_shared().is_ok() {
            return None;
        }
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    pub fn session(&self) -> anyhow::Result<Option<SessionFile>> {
        match fs::read(self.path.join(SESSION_FILE)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).context("session.json can't be read")?)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub fn write_session(&self, session: &SessionFile) -> anyhow::Result<()> {
        self.write(SESSION_FILE, &serde_json::to_vec_pretty(session)?, true)
    }

    /// The session's private key, if there is one.
    pub fn key(&self) -> anyhow::Result<Option<Signatory>> {
        let text = match fs::read_to_string(self.path.join(KEY_FILE)) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let seed: [u8; 32] = hex::decode(text.trim())
            .ok()
            .and_then(|b| b.try_into().ok())
            .with_context(|| format!("{KEY_FILE} is damaged: {}", self.join_again()))?;
        Ok(Some(Signatory::from_seed(&seed)))
    }

    pub fn write_key(&self, seed: &[u8; 32]) -> anyhow::Result<()> {
        self.write(KEY_FILE, hex::encode(seed).as_bytes(), true)
    }

    /// Forgets the session, so that this runner can join again. The install's key, states that wait for the control plane, the
    /// customer's switch and the history stay. Returns how many executions were dropped.
    pub fn reset(&self) -> anyhow::Result<usize> {
        self.must_be_used()?;
        let _lock = self.lock()?;
        let (dirs, rest) = ExecutionDir::list(&self.path)?;
        if let Some(alive) = dirs.iter().find(|dir| dir.executor_alive()) {
            bail!(
                "{} is still running. Wait for it to end, or stop it with `ferry-runner disable` while the runner runs; then reset again. Nothing was deleted",
                alive.name()
            );
        }
        if let Some(left) = dirs.iter().find(|dir| process::is_left_running(dir)) {
            bail!(
                "a program that {} started is still running, though its executor is gone. Wait for it to end, or start the runner, which ends it and keeps what it leaves; then reset again. Nothing was deleted",
                left.name()
            );
        }
        for dir in &dirs {
            rescue::take(dir, &self.path).with_context(|| {
                format!("Terraform's state in {} can't be kept; nothing more was deleted", dir.path().display())
            })?;
            dir.remove()?;
        }
        rest.iter().try_for_each(|path| remove_tree(path))?;
        for name in [SESSION_FILE, KEY_FILE] {
            match fs::remove_file(self.path.join(name)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(dirs.len())
    }

    pub fn disabled_since(&self) -> Option<Timestamp> {
        let text = fs::read_to_string(self.path.join(DISABLED_FILE)).ok()?;
        // The switch counts even when what is in the file can't be read.
        Some(Timestamp::try_from(text.trim().to_owned()).unwrap_or_default())
    }

    pub fn disable(&self, now: Timestamp) -> anyhow::Result<()> {
        self.must_be_used()?;
        if self.disabled_since().is_some() {
            return Ok(());
        }
        let written = self.write(DISABLED_FILE, now.to_string().as_bytes(), true);
        written.or_else(|error| self.disable_without_room(now).map_err(|_| error))
    }

    /// On a full disk: into the room that was set aside.
    fn disable_without_room(&self, now: Timestamp) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        let room = self.path.join(ROOM_FILE);
        let file = fs::OpenOptions::new().write(true).open(&room)?.into_parts().0;
        let mut text = ROOM;
        let said = now.to_string();
        let length = said.len().min(text.len());
        text[..length].copy_from_slice(&said.as_bytes()[..length]);
        file.write_all_at(&text, 0)?;
        file.sync_all()?;
        fs::rename(room, self.path.join(DISABLED_FILE))
    }

    pub fn enable(&self) -> anyhow::Result<()> {
        self.must_be_used()?;
        match fs::remove_file(self.path.join(DISABLED_FILE)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub fn history(&self) -> Vec<HistoryLine> {
        let text = fs::read_to_string(self.path.join(HISTORY_FILE)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn add_history(&self, line: HistoryLine) -> anyhow::Result<()> {
        let mut lines = self.history();
        lines.push(line);
        let keep = lines.len().saturating_sub(HISTORY_LINES);
        let text: Vec<String> = lines[keep..].iter().filter_map(|l| serde_json::to_string(l).ok()).collect();
        self.write(HISTORY_FILE, format!("{}\n", text.join("\n")).as_bytes(), false)
    }

    /// Writes a file so that it is there whole or not at all, readable by its owner alone.
    fn write(&self, name: &str, bytes: &[u8], durable: bool) -> anyhow::Result<()> {
        let new = self.path.join(format!("{name}.new"));
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(true).write(true);
        options.options_mut().mode(0o600);
        let written = options.open(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            if durable { file.sync_all() } else { Ok(()) }
        });
        if let Err(error) = written {
            let _ = fs::remove_file(&new);
            return Err(error.into());
        }
        fs::rename(&new, self.path.join(name))?;
        if durable {
            File::open(&self.path)?.sync_all()?;
        }
        Ok(())
    }
}
