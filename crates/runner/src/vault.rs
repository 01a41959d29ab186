//! The sealed files of an install, and Terraform's workspaces: they lie with the control plane, and only here can they be opened.

use std::io::BufReader;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::terraform::{HolderRef, LockRequest, StateAnswer, StateRequest, WorkspaceHead};
use bytes::Bytes;
use fs_err as fs;
use model::digest::Hasher;
use model::terraform::{LockInfo, SealedFile};
use model::{InstallId, UploadId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::seal::{self, InstallKey};
use crate::session::{CallError, SessionClient, now, random_hex, random_u128};
use mask::Masks;

/// How long the control plane may be silent before a state can't be kept; Terraform waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(600);
const KEY_FILE: &str = "install.key";
/// Resources of a state that are told by name.
const RESOURCES_MAX: usize = 5_000;
/// Secrets of a state that are masked by value: more would make the search slow.
pub const SECRETS_MAX: usize = 2_000;
const COMMAND: Duration = Duration::from_secs(30);

/// Where tools and keys come from on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// The install's key; a file in the state directory where nothing is said.
    pub install_key_file: Option<PathBuf>,
    /// A command that prints the install's key: it lies elsewhere in the customer's account.
    pub install_key_command: Option<String>,
    /// Where versions of Terraform and OpenTofu are fetched from that are not on PATH.
    pub terraform_mirror: Option<String>,
    /// Configuration of Terraform's command line, as for a mirror of providers.
    pub terraform_config: Option<PathBuf>,
}

impl Tools {
    pub fn key_file(&self, state_dir: &Path) -> PathBuf {
        self.install_key_file.clone().unwrap_or_else(|| state_dir.join(KEY_FILE))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("{0}")]
    Key(String),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("{0}")]
    Bad(String),
}

impl VaultError {
    /// A stable code for results.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Key(_) => "install_key",
            Self::Call(_) => "control_plane",
            Self::File(_) => "executor_error",
            Self::Bad(_) => "sealed_file",
        }
    }
}

pub type Result<T> = std::result::Result<T, VaultError>;

/// Reads the key; None where there is none.
pub async fn read_key(tools: &Tools, state_dir: &Path) -> Result<Option<InstallKey>> {
    if let Some(command) = &tools.install_key_command {
        let run = tokio::process::Command::new("/bin/sh").args(["-c", command]).kill_on_drop(true).output();
        let ran = tokio::time::timeout(COMMAND, run).await;
        let output =
            ran.map_err(|_| VaultError::Key("the command that prints the install's key does not end".into()))??;
        if !output.status.success() {
            return Err(VaultError::Key(format!(
                "the command that prints the install's key failed ({}): `ferry-runner key new` makes a first key to put where the command finds it",
                output.status
            )));
        }
        let text = zeroize::Zeroizing::new(String::from_utf8_lossy(&output.stdout).into_owned());
        return InstallKey::parse(&text).map(Some).map_err(VaultError::Key);
    }
    let path = tools.key_file(state_dir);
    match fs::read_to_string(&path) {
        Ok(text) => InstallKey::parse(&text).map(Some).map_err(|e| VaultError::Key(format!("{}: {e}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Puts a key where it is kept, whole or not at all; what is there stays.
pub fn keep_key(path: &Path, key: &InstallKey) -> std::io::Result<()> {
    use std::io::Write as _;
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = private_file(&new)?;
    file.write_all(key.text().as_bytes())?;
    file.sync_all()?;
    let kept = fs::hard_link(&new, path);
    let _ = fs::remove_file(&new);
    kept?;
    std::fs::File::open(path.parent().unwrap_or(path))?.sync_all()
}

pub struct Vault {
    client: SessionClient,
    key: InstallKey,
    install: InstallId,
    /// Where sealed files stand for a moment.
    scratch: PathBuf,
}

impl Vault {
    /// Opens the vault with the install's key. A first key is made where the install has none; one that is missing is never
    /// replaced.
    pub async fn unlock(
        client: SessionClient,
        install: InstallId,
        tools: &Tools,
        state_dir: &Path,
        scratch: PathBuf,
    ) -> Result<Self> {
        let found = read_key(tools, state_dir).await?;
        let named = found.as_ref().map(InstallKey::fingerprint);
        let stands = patiently(|| client.install_key(named.clone())).await?.fingerprint;
        let key = match (found, stands) {
            (Some(key), Some(stands)) if key.fingerprint() == stands => key,
            (Some(key), Some(stands)) => {
                return Err(VaultError::Key(format!(
                    "this install seals with the key {stands}, and the runner has {}: bring the right one with `ferry-runner key restore FILE`",
                    key.fingerprint()
                )));
            }
            (None, Some(stands)) => {
                let place = tools.key_file(state_dir);
                return Err(VaultError::Key(format!(
                    "the install's key {stands} is missing ({}): bring it back with `ferry-runner key restore FILE`; what it sealed can't be opened without it, so no new one is made",
                    place.display()
                )));
            }
            (Some(_), None) => {
                return Err(VaultError::Bad("the control plane knows no key after it was told one".into()));
            }
            (None, None) => Self::first_key(&client, tools, state_dir).await?,
        };
        fs::create_dir_all(&scratch)?;
        Ok(Self { client, key, install, scratch })
    }

    async fn first_key(client: &SessionClient, tools: &Tools, state_dir: &Path) -> Result<InstallKey> {
        if tools.install_key_command.is_some() {
            return Err(VaultError::Key("the command that prints the install's key printed none".into()));
        }
        let path = tools.key_file(state_dir);
        match keep_key(&path, &InstallKey::new()) {
            Ok(()) => {}
            // Another executor was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        let key = read_key(tools, state_dir).await?;
        let key = key.ok_or_else(|| VaultError::Key(format!("{} is gone", path.display())))?;
        let stands = patiently(|| client.install_key(Some(key.fingerprint()))).await?.fingerprint;
        if stands.as_deref() == Some(key.fingerprint().as_str()) {
            return Ok(key);
        }
        Err(VaultError::Key(format!(
            "another runner of this install has made the key {} first: copy it here with `ferry-runner key restore FILE`",
            stands.unwrap_or_default()
        )))
    }

    /// A secret that comes from the install's key.
    pub fn derive(&self, purpose: &str) -> String {
        self.key.derive(purpose)
    }

    /// Asks the control plane, again while that may help.
    pub async fn patiently<T>(
        &self,
        call: impl AsyncFn(&SessionClient) -> std::result::Result<T, CallError>,
    ) -> Result<T> {
        patiently(|| call(&self.client)).await
    }

    fn scratch_file(&self, upload: &UploadId) -> PathBuf {
        self.scratch.join(format!("{upload}.sealed"))
    }

    /// Seals a file and brings it to the control plane.
    pub async fn put(&self, plain: &Path) -> Result<SealedFile> {
        let upload = UploadId::new(now(), random_u128());
        let place = self.scratch_file(&upload);
        let (key, install, plain, to) = (self.key.clone(), self.install.clone(), plain.to_owned(), place.clone());
        let sealed = blocking(move || seal::seal(&key, &install, upload, fs::File::open(&plain)?, &to)).await?;
        let sent = self.send(&sealed, &place).await;
        let _ = fs::remove_file(&place);
        sent.map(|()| sealed)
    }

    async fn send(&self, file: &SealedFile, place: &Path) -> Result<()> {
        let source = std::fs::File::open(place)?;
        let size = seal::sealed_piece_bytes() as u64;
        let length = source.metadata()?.len();
        for piece in 0..file.pieces {
            let from = u64::from(piece) * size;
            let mut bytes = vec![0; (length - from).min(size) as usize];
            source.read_exact_at(&mut bytes, from)?;
            let bytes = Bytes::from(bytes);
            patiently(|| self.client.put_piece(&file.upload_id, piece, bytes.clone())).await?;
        }
        Ok(())
    }

    /// Brings a sealed file and opens it.
    pub async fn fetch(&self, file: &SealedFile, to: &Path) -> Result<()> {
        use std::io::Write as _;
        let place = self.scratch_file(&file.upload_id);
        let mut sealed = std::fs::File::create(&place)?;
        let mut hash = Hasher::default();
        for piece in 0..file.pieces {
            let bytes = patiently(|| self.client.piece(&file.upload_id, piece)).await?;
            hash.update(&bytes);
            sealed.write_all(&bytes)?;
        }
        drop(sealed);
        if hash.finish() != file.digest {
            return Err(VaultError::Bad("the control plane gave another file than it was asked for".into()));
        }
        let (key, install, file, to) = (self.key.clone(), self.install.clone(), file.clone(), to.to_owned());
        let opened = blocking(move || {
            let mut plain = seal::open(&key, &install, &file, &place)?;
            let mut target = private_file(&to)?;
            let copied = std::io::copy(&mut plain, &mut target);
            let _ = fs::remove_file(&place);
            copied
        });
        opened.await.map(drop).map_err(|e| match e {
            VaultError::File(error) => VaultError::Bad(format!("a sealed file can't be opened: {error}")),
            other => other,
        })
    }
}

/// A file that its owner alone may read.
pub fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let _ = fs::remove_file(path);
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)??)
}

/// Asks again while that may help.
async fn patiently<T, F: Future<Output = std::result::Result<T, CallError>>>(call: impl Fn() -> F) -> Result<T> {
    let until = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(100);
    loop {
        match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.is_transient() && Instant::now() + pause < until => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// What a lock holds, or who held it already.
#[derive(Debug)]
pub enum Lock {
    Taken,
    HeldBy(Option<LockInfo>),
}

/// One workspace, for who works on it.
pub struct Keeper {
    pub vault: Vault,
    pub workspace: WorkspaceId,
    /// None: a person.
    pub holder: Option<HolderRef>,
    pub person: String,
    /// What must not be told of a state, besides what is sensitive in it.
    pub secrets: Vec<String>,
}

impl Keeper {
    pub async fn head(&self) -> Result<WorkspaceHead> {
        patiently(|| self.vault.client.workspace(&self.workspace)).await
    }

    pub async fn lock(&self, info: LockInfo) -> Result<Lock> {
        let request = LockRequest { info, holder: self.holder.clone() };
        let answer = patiently(|| self.vault.client.lock_workspace(&self.workspace, &request)).await?;
        Ok(if answer.done { Lock::Taken } else { Lock::HeldBy(answer.held_by) })
    }

    pub async fn unlock(&self, lock_id: &str) -> Result<Lock> {
        let answer = patiently(|| self.vault.client.unlock_workspace(&self.workspace, lock_id)).await?;
        Ok(if answer.done { Lock::Taken } else { Lock::HeldBy(answer.held_by) })
    }

    /// The state as it is, in a file; None before the first one.
    pub async fn load(&self, to: &Path) -> Result<Option<api::terraform::StateHead>> {
        let Some(state) = self.head().await?.state else { return Ok(None) };
        self.vault.fetch(&state.file, to).await?;
        Ok(Some(state))
    }

    /// Makes a file the next state, under a lock that is held.
    pub async fn save(&self, plain: &Path, lock_id: &str, note: &str) -> Result<StateAnswer> {
        let path = plain.to_owned();
        let state = blocking(move || {
            let file = BufReader::with_capacity(256 << 10, fs::File::open(&path)?);
            terraform::read_state(file, &|text| text.to_owned()).map_err(std::io::Error::other)
        });
        let state = state.await?;
        let file = self.vault.put(plain).await?;
        // A key of `for_each` may be anything.
        let known = state.secrets.values.len().min(SECRETS_MAX);
        let masks = Masks::new(&[&state.secrets.values[..known], &self.secrets].concat());
        let masked = |resource: &terraform::StateResource| {
            json!(terraform::StateResource { address: masks.mask_text(&resource.address), ..resource.clone() })
        };
        let shown = state.resources.iter().take(RESOURCES_MAX).map(masked).collect();
        let request = StateRequest {
            holder: self.holder.clone(),
            person: self.person.clone(),
            lock_id: lock_id.to_owned(),
            lineage: state.head.lineage,
            serial: state.head.serial,
            file,
            resource_count: state.resources.len() as u64 + state.resources_omitted,
            resources: shown,
            note: note.to_owned(),
        };
        patiently(|| self.vault.client.write_state(&self.workspace, &request)).await
    }

    /// The same, taking the lock for the moment.
    pub async fn push(&self, plain: &Path, note: &str) -> Result<StateAnswer> {
        let info = LockInfo {
            id: random_hex::<16>(),
            operation: note.to_owned(),
            info: String::new(),
            who: if self.person.is_empty() { "ferry".into() } else { self.person.clone() },
            version: String::new(),
            created: now().to_string(),
            path: String::new(),
        };
        let lock_id = info.id.clone();
        match self.lock(info).await {
            Ok(Lock::Taken) => {}
            Ok(Lock::HeldBy(holder)) => {
                let who = holder.map(|holder| holder.who).unwrap_or_default();
                return Err(VaultError::Bad(format!("the state is locked by {who}")));
            }
            // Who has lost the lease gets no lock, and what it brings is kept all the same.
            Err(VaultError::Call(error)) if error.code() == Some(api::ErrorCode::LeaseLost) => {}
            Err(other) => return Err(other),
        }
        let saved = self.save(plain, &lock_id, note).await;
        let _ = self.unlock(&lock_id).await;
        saved
    }
}
