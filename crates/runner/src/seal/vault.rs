//! The sealed files of an install, and Terraform's workspaces: they lie with the control plane, and only here can they be opened.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use api::terraform::{HolderRef, LockRequest, StateAnswer, StateRequest, WorkspaceHead};
use bytes::Bytes;
use fs_err as fs;
use model::deploy::{LockInfo, SealedFile};
use model::digest::Hasher;
use model::{InstallId, UploadId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::patience::Patience;
use crate::seal::{self, InstallKey};
use crate::session::{CallError, SessionClient, now, random_hex, random_u128};
use mask::Masks;

/// How long the control plane may be silent before a state can't be kept; Terraform waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(600);
/// Apart from the session, so that forgetting the session keeps the key.
const KEYS: &str = "keys";
const KEY_FILE: &str = "install.key";
/// Holds the fingerprint of the key that was backed up.
const BACKED_UP: &str = "backed-up";
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
    /// The way into the customer's cluster.
    pub kubeconfig: Option<PathBuf>,
    /// The customer's own registry, to which images are copied.
    pub registry: Option<String>,
    /// Where the install's secrets lie: a directory, or `vault:URL`; a directory in the state directory where nothing is said.
    pub secret_store: Option<String>,
    /// A file with the token for Vault.
    pub vault_token_file: Option<PathBuf>,
}

impl Tools {
    pub fn key_file(&self, state_dir: &Path) -> PathBuf {
        if let Some(named) = &self.install_key_file {
            return named.clone();
        }
        // Where earlier versions put it.
        let old = state_dir.join(KEY_FILE);
        if old.exists() { old } else { state_dir.join(KEYS).join(KEY_FILE) }
    }
}

/// Notes that a key was copied elsewhere.
pub fn note_backup(state_dir: &Path, fingerprint: &str) -> std::io::Result<()> {
    let keys = state_dir.join(KEYS);
    private_folder(&keys)?;
    write_whole(&keys.join(BACKED_UP), fingerprint.as_bytes())
}

/// What to tell the customer about a key in a file that nobody has copied elsewhere yet.
pub fn backup_advice(tools: &Tools, state_dir: &Path) -> Option<String> {
    let place = tools.key_file(state_dir);
    if tools.install_key_command.is_some() {
        return None;
    }
    let key = InstallKey::parse(&fs::read_to_string(&place).ok()?).ok()?.fingerprint();
    if fs::read_to_string(state_dir.join(KEYS).join(BACKED_UP)).is_ok_and(|known| known == key) {
        return None;
    }
    Some(format!(
        "the key {key} in {} seals this install's states, plans and sensitive outputs, and it has no backup. Without it they can't be opened. Copy it to a safe place: `ferry-runner key backup FILE --state-dir {}`",
        place.display(),
        state_dir.display()
    ))
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
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
    private_folder(path.parent().unwrap_or(path))?;
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

    pub fn install(&self) -> &InstallId {
        &self.install
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

    /// Seals a file and brings it to the control plane, piece by piece: this needs no room on the disk.
    pub async fn put(&self, plain: impl Into<Plain>) -> Result<SealedFile> {
        let upload = UploadId::new(now(), random_u128());
        let (sender, mut pieces) = tokio::sync::mpsc::channel::<Vec<u8>>(1);
        let (key, install, plain, id) = (self.key.clone(), self.install.clone(), plain.into(), upload.clone());
        let take = move |piece| sender.blocking_send(piece).map_err(|_| std::io::Error::other("the upload has ended"));
        let sealing = blocking(move || seal::seal(&key, &install, id, plain.open()?, take));
        let sending = async {
            // Dropped with this block: whoever seals then ends too.
            let mut pieces = std::mem::replace(&mut pieces, tokio::sync::mpsc::channel(1).1);
            let mut count = 0;
            while let Some(piece) = pieces.recv().await {
                let bytes = Bytes::from(piece);
                patiently(|| self.client.put_piece(&upload, count, bytes.clone())).await?;
                count += 1;
            }
            Ok::<(), VaultError>(())
        };
        let (sealed, sent) = tokio::join!(sealing, sending);
        sent?;
        sealed
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

/// A plain file on its way into the vault.
#[derive(Debug, Clone)]
pub enum Plain {
    File(PathBuf),
    /// Where the disk has no room for it.
    Memory(Bytes),
}

impl Plain {
    pub fn open(&self) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(fs::File::open(path)?),
            Self::Memory(bytes) => Box::new(std::io::Cursor::new(bytes.clone())),
        })
    }

    /// Whether it is a state, from its beginning to its end.
    pub fn is_state(&self) -> bool {
        let read = |source| terraform::read_state(BufReader::with_capacity(256 << 10, source), &|text| text.to_owned());
        self.open().is_ok_and(|source| read(source).is_ok())
    }
}

impl From<&Path> for Plain {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl From<&PathBuf> for Plain {
    fn from(path: &PathBuf) -> Self {
        Self::File(path.clone())
    }
}

/// Says which disk is full, in words; other errors as they are.
pub fn named(place: &Path, error: &std::io::Error) -> String {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => format!("the disk of {} is full", place.display()),
        _ => format!("{}: {error}", place.display()),
    }
}

/// Writes a file so that it is there whole or not at all, for its owner alone.
pub fn write_whole(path: &Path, mut from: impl Read) -> std::io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut write = || {
        let mut file = private_file(&new)?;
        std::io::copy(&mut from, &mut file)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        std::fs::File::open(path.parent().unwrap_or(path))?.sync_all()
    };
    let written = write();
    if written.is_err() {
        // Half of it is worth nothing, and takes room.
        let _ = fs::remove_file(&new);
    }
    written
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
async fn patiently<T, F: Future<Output = std::result::Result<T, CallError>>>(call: impl FnMut() -> F) -> Result<T> {
    let patience = Patience::time(Duration::from_millis(100), Duration::from_secs(5), PATIENCE);
    Ok(patience.keep(call, |_| ()).await?)
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
    /// Values of sensitive outputs that stand in the module's variables, or stood there before. None: it is not known which of
    /// what the state puts out is secret, so nothing of it is told.
    pub filled: Option<Vec<String>>,
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
    pub async fn save(&self, plain: impl Into<Plain>, lock_id: &str, note: &str) -> Result<StateAnswer> {
        let plain = plain.into();
        let source = plain.clone();
        let state = blocking(move || {
            let file = BufReader::with_capacity(256 << 10, source.open()?);
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
        let outputs = match &self.filled {
            Some(_) => match self.outputs(&state).await {
                Ok(told) => Some(told.document),
                // The state itself is what must not be lost.
                Err(error) => {
                    tracing::warn!(%error, "the outputs of a state are not told with it");
                    None
                }
            },
            None => None,
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
            outputs,
            note: note.to_owned(),
        };
        patiently(|| self.vault.client.write_state(&self.workspace, &request)).await
    }

    /// The same, taking the lock for the moment.
    pub async fn push(&self, plain: impl Into<Plain>, note: &str) -> Result<StateAnswer> {
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
