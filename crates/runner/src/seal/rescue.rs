//! States that nobody has taken: Terraform leaves one beside its module where its backend is gone. They may be the only trace of
//! what was made, so they wait in the state directory until the control plane has them, sealed.

use std::path::{Path, PathBuf};

use api::terraform::HolderRef;
use fs_err as fs;
use model::spec::JobSpec;
use model::{ExecutionId, InstallId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::directory::ExecutionDir;
use crate::seal::reserve;
use crate::seal::vault::{Keeper, Plain, Tools, Vault, write_whole};
use crate::session::SessionClient;

/// What Terraform calls the state that it could not hand over.
pub const ERRORED: &str = "errored.tfstate";
/// How deep below the work directory a module may lie.
const DEPTH_MAX: usize = 12;

/// Whose state it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Rescued {
    pub install_id: InstallId,
    pub workspace_id: WorkspaceId,
    pub execution_id: ExecutionId,
    pub epoch: u64,
}

pub fn place(state_dir: &Path) -> PathBuf {
    state_dir.join("rescued")
}

/// Takes the state that a dead execution has left, if it has left one.
pub fn take(dir: &ExecutionDir, state_dir: &Path) -> std::io::Result<Option<PathBuf>> {
    let spec = dir.spec().and_then(|bytes| Ok(serde_json::from_slice::<JobSpec>(&bytes)?));
    // The work of others may be huge. A spec that can't be read matters only where there is a state.
    if spec.as_ref().is_ok_and(|spec| spec.work.deploy().is_none()) {
        return Ok(None);
    }
    let Some(found) = find(&dir.work(), DEPTH_MAX) else { return Ok(None) };
    let spec = spec?;
    let Some(deploy) = spec.work.deploy() else { return Ok(None) };
    let Some(install_id) = spec.install_id.clone() else { return Ok(None) };
    let assignment = dir.assignment()?;
    let about = Rescued {
        install_id,
        workspace_id: deploy.workspace_id.clone(),
        execution_id: assignment.execution_id,
        epoch: assignment.epoch,
    };
    // What was kept for this very moment.
    reserve::release(dir);
    let to = place(state_dir).join(format!("{}.tfstate", about.execution_id));
    if !Plain::from(&found).is_state() {
        // Half of a state is no state: it must neither replace a whole one nor wait for ever. It is kept for people.
        let aside = to.with_extension("damaged");
        tracing::error!(execution = %about.execution_id, place = %aside.display(), "the state that was left is not whole");
        fs::create_dir_all(place(state_dir))?;
        fs::rename(&found, aside)?;
        return Ok(None);
    }
    if Plain::from(&to).is_state() {
        return Ok(None);
    }
    keep(state_dir, &about, &Plain::File(found)).map(Some)
}

/// Puts a state where it waits. One that lies on the same disk is moved, which takes no room.
pub fn keep(state_dir: &Path, about: &Rescued, state: &Plain) -> std::io::Result<PathBuf> {
    let place = place(state_dir);
    fs::create_dir_all(&place)?;
    let to = place.join(format!("{}.tfstate", about.execution_id));
    // The note first: it counts only beside a state, which appears whole or not at all.
    write_whole(&to.with_extension("json"), serde_json::to_vec(about)?.as_slice())?;
    match state {
        Plain::File(path) if fs::rename(path, &to).is_ok() => std::fs::File::open(&to)?.sync_all()?,
        Plain::File(_) | Plain::Memory(_) => write_whole(&to, state.open()?)?,
    }
    std::fs::File::open(&place)?.sync_all()?;
    Ok(to)
}

/// The workspaces whose states wait.
pub fn open(state_dir: &Path) -> Vec<WorkspaceId> {
    let mut open: Vec<_> = waiting(state_dir).into_iter().map(|(_, about)| about.workspace_id).collect();
    open.sort();
    open.dedup();
    open
}

fn find(dir: &Path, depth: usize) -> Option<PathBuf> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let kind = entry.file_type().ok()?;
        if kind.is_file() && entry.file_name() == ERRORED {
            return Some(entry.path());
        }
        if kind.is_dir() && entry.file_name() != ".terraform" {
            folders.push(entry.path());
        }
    }
    let deeper = depth.checked_sub(1)?;
    folders.into_iter().find_map(|folder| find(&folder, deeper))
}

/// Those that wait.
pub fn waiting(state_dir: &Path) -> Vec<(PathBuf, Rescued)> {
    let entries = fs::read_dir(place(state_dir)).into_iter().flatten().flatten();
    let read = |path: PathBuf| {
        let (state, about) = (path.with_extension("tfstate"), serde_json::from_slice(&fs::read(&path).ok()?).ok()?);
        state.exists().then_some((state, about))
    };
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .filter_map(read)
        .collect()
}

/// Brings those that wait to the control plane; returns how many are left.
pub async fn deliver(client: &SessionClient, tools: &Tools, state_dir: &Path) -> usize {
    let mut left = 0;
    for (file, about) in waiting(state_dir) {
        let scratch = place(state_dir).join("scratch");
        let vault = Vault::unlock(client.clone(), about.install_id.clone(), tools, state_dir, scratch).await;
        let pushed = match vault {
            Ok(vault) => {
                let holder = HolderRef { execution_id: about.execution_id.clone(), epoch: about.epoch };
                let (workspace, person) = (about.workspace_id.clone(), String::new());
                Keeper { vault, workspace, holder: Some(holder), person, secrets: Vec::new(), filled: None }
                    .push(&file, ERRORED)
                    .await
            }
            Err(error) => Err(error),
        };
        match pushed {
            Ok(kept) => {
                tracing::info!(execution = %about.execution_id, revision = %kept.revision_id, "a state that was left is kept");
                let _ = fs::remove_file(&file).and_then(|()| fs::remove_file(file.with_extension("json")));
                let _ = fs::remove_dir_all(place(state_dir).join("scratch"));
            }
            Err(error) => {
                tracing::warn!(execution = %about.execution_id, %error, "a state that was left can't be delivered yet");
                left += 1;
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_wherever_the_module_lies() {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir_all(dir.path().join("module/a/.terraform")).expect("dir");
        fs::write(dir.path().join("module/a/.terraform").join(ERRORED), "not this").expect("file");
        assert_eq!(find(dir.path(), DEPTH_MAX), None);
        let state = dir.path().join("module/a").join(ERRORED);
        fs::write(&state, "{}").expect("file");
        assert_eq!(find(dir.path(), DEPTH_MAX), Some(state));
        assert_eq!(find(dir.path(), 1), None);
    }

    #[test]
    fn a_state_that_waits_is_whole_or_not_there() {
        let dir = tempfile::tempdir().expect("dir");
        let at = model::Timestamp::from_micros(1);
        let about = |n| Rescued {
            install_id: InstallId::new(at, n),
            workspace_id: WorkspaceId::new(at, n),
            execution_id: ExecutionId::new(at, n),
            epoch: 1,
        };
        let gone = Plain::File(dir.path().join("nowhere"));
        assert!(keep(dir.path(), &about(1), &gone).is_err());
        assert!(waiting(dir.path()).is_empty() && open(dir.path()).is_empty(), "nothing is promised");
        let left = dir.path().join(ERRORED);
        fs::write(&left, "the state").expect("file");
        let moved = keep(dir.path(), &about(1), &Plain::File(left.clone())).expect("kept");
        let written = keep(dir.path(), &about(2), &Plain::Memory(bytes::Bytes::from_static(b"another"))).expect("kept");
        assert_eq!(fs::read(moved).expect("file"), b"the state");
        assert_eq!(fs::read(written).expect("file"), b"another");
        assert!(!left.exists(), "it was moved: a copy would need room");
        assert_eq!(open(dir.path()), [about(1).workspace_id, about(2).workspace_id]);
        let names = fs::read_dir(place(dir.path())).expect("dir").flatten().map(|e| e.file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().ends_with(".new")).count(), 0);
    }
}
