//! What a customer can do with the install's key and with Terraform's states, on their own side and without the vendor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use api::terraform::WorkspaceHead;
use fs_err as fs;
use model::InstallId;
use tokio::net::TcpListener;

use crate::execute::terraform::backend::Backend;
use crate::net;
use crate::seal::InstallKey;
use crate::seal::vault::{self, Keeper, Tools, Vault, private_file};
use crate::session::{SessionClient, StateDir, hostname, random_hex};

/// The runner whose states they are.
pub struct Custodian {
    state: StateDir,
    tools: Tools,
    client: SessionClient,
    install: InstallId,
}

impl Custodian {
    /// Speaks with the key of the runner that works in this state directory; it may be running.
    pub fn open(state_dir: &Path, tools: Tools) -> anyhow::Result<Self> {
        let state = StateDir::new(state_dir);
        let session = state
            .session()?
            .with_context(|| format!("no runner has joined with the state directory {}", state_dir.display()))?;
        let install = session.install_id.context("this runner is of no install")?;
        let key = state.key()?.context("the session has no key")?;
        let http =
            net::client(&session.url, session.ca_file.as_deref()).map_err(|e| anyhow::anyhow!(net::chain(&e)))?;
        let client = SessionClient::new(http, &session.url, session.runner_id, session.generation, key);
        Ok(Self { state, tools, client, install })
    }

    pub async fn workspaces(&self) -> anyhow::Result<Vec<WorkspaceHead>> {
        Ok(self.client.workspaces().await?.workspaces)
    }

    fn scratch(&self) -> PathBuf {
        self.state.path().join("custody")
    }

    async fn keeper(&self, target: &str) -> anyhow::Result<Keeper> {
        let workspace = self.client.open_workspace(target).await?.workspace_id;
        let vault =
            Vault::unlock(self.client.clone(), self.install.clone(), &self.tools, self.state.path(), self.scratch());
        let user = std::env::var("USER").unwrap_or_else(|_| "somebody".into());
        Ok(Keeper {
            vault: vault.await?,
            workspace,
            holder: None,
            person: format!("{user}@{}", hostname()),
            secrets: Vec::new(),
            filled: None,
        })
    }

    /// Writes the state, opened, to a file.
    pub async fn export(&self, target: &str, to: &Path) -> anyhow::Result<u64> {
        let head = self.keeper(target).await?.load(to).await?;
        Ok(head.with_context(|| format!("{target} has no state yet"))?.serial)
    }

    /// Makes a file the state: where there is none yet, or as the next one of the same lineage.
    pub async fn import(&self, target: &str, from: &Path) -> anyhow::Result<u64> {
        let told = terraform::read_state_head(std::io::BufReader::new(fs::File::open(from)?))
            .with_context(|| format!("{} is no state of Terraform", from.display()))?;
        let keeper = self.keeper(target).await?;
        if let Some(now) = keeper.head().await?.state
            && (now.lineage != told.lineage || now.serial >= told.serial)
        {
            bail!(
                "{target} has a state already: serial {} of lineage {}. The file has serial {} of lineage {}; only a later serial of the same lineage follows it",
                now.serial,
                now.lineage,
                told.serial,
                told.lineage
            );
        }
        keeper.push(from, "imported").await?;
        Ok(told.serial)
    }

    /// Serves a state to a plain Terraform on this machine, until it is dropped. The text is for `-backend-config`.
    pub async fn serve(&self, target: &str) -> anyhow::Result<(Served, String)> {
        let keeper = Arc::new(self.keeper(target).await?);
        let place = tempfile_in(&self.scratch())?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let backend = Backend::start(keeper, &place, listener, random_hex::<24>())?;
        let config = backend.config();
        Ok((Served { _backend: backend, place }, config))
    }
}

/// A state that is being served; plain copies go when it ends.
pub struct Served {
    _backend: Backend,
    place: PathBuf,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn tempfile_in(dir: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt as _;
    let place = dir.join(random_hex::<8>());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
    Ok(place)
}

/// The fingerprint of the install's key, where there is one.
pub async fn fingerprint(tools: &Tools, state_dir: &Path) -> anyhow::Result<Option<String>> {
    Ok(vault::read_key(tools, state_dir).await?.map(|key| key.fingerprint()))
}

/// Copies the install's key to a file that is not there yet.
pub async fn backup_key(tools: &Tools, state_dir: &Path, to: &Path) -> anyhow::Result<String> {
    use std::io::Write as _;
    let key = vault::read_key(tools, state_dir).await?;
    let key = key.with_context(|| {
        format!("there is no key in {}; the first job that needs it makes it", tools.key_file(state_dir).display())
    })?;
    if to.exists() {
        bail!("{} is there already, and nothing is written over it", to.display());
    }
    let mut file = private_file(to)?;
    file.write_all(key.text().as_bytes())?;
    file.sync_all()?;
    // The copy is what counts.
    if let Err(error) = vault::note_backup(state_dir, &key.fingerprint()) {
        tracing::warn!(%error, "that there is a backup can't be noted");
    }
    Ok(key.fingerprint())
}

/// Puts a key that was saved back to its place. One that the install does not seal with is refused, where the control plane can say so;
/// one that was in the wrong place is kept beside it.
pub async fn restore_key(tools: &Tools, state_dir: &Path, from: &Path) -> anyhow::Result<String> {
    let key = InstallKey::parse(&fs::read_to_string(from)?).map_err(anyhow::Error::msg)?;
    let (fingerprint, place) = (key.fingerprint(), tools.key_file(state_dir));
    if tools.install_key_command.is_some() {
        bail!("the key comes from a command here: put it where the command finds it");
    }
    let wanted = match Custodian::open(state_dir, tools.clone()) {
        Ok(custodian) => custodian.client.install_key(None).await.ok().and_then(|answer| answer.fingerprint),
        // It has not joined yet, or not for an install.
        Err(_) => None,
    };
    if let Some(wanted) = wanted.as_ref().filter(|wanted| **wanted != fingerprint) {
        bail!(
            "this install seals with the key {wanted}, and {} holds {fingerprint}: nothing is changed",
            from.display()
        );
    }
    if let Ok(text) = fs::read_to_string(&place) {
        let there = InstallKey::parse(&text).map(|key| key.fingerprint()).unwrap_or_else(|_| "something else".into());
        if there == fingerprint {
            return Ok(there);
        }
        if wanted.is_none() {
            bail!(
                "{} holds the key {there}, and the control plane can't be asked which key this install uses. Nothing was changed. If {there} is not needed, rename the file (don't delete it: what it sealed can't be opened without it), then restore again",
                place.display()
            );
        }
        let mut aside = place.clone().into_os_string();
        aside.push(format!(".{}", random_hex::<4>()));
        fs::rename(&place, &aside)?;
    }
    fs::create_dir_all(place.parent().unwrap_or(state_dir))?;
    vault::keep_key(&place, &key)?;
    Ok(fingerprint)
}
