//! Owns Terraform's workspaces: their locks, every revision of their state, and the plans that were made of them.
//! The conductor calls it, for people and for runners.
//! No plain state: what is in a state or a plan file is sealed with the key of the install.

pub(crate) mod revisions;
pub(crate) mod sealed;

use model::deploy::{ApprovedPlan, LockInfo, NOT_BEGUN, SealedFile};
use model::{ExecutionId, InstallId, JobId, JobState, OrgId, RevisionId, RunnerId, Timestamp, UploadId, WorkspaceId};
use serde_json::{Value as Json, json};

use crate::db::{Table, Tx, params, select, table};
use crate::events::{Note, record};
use crate::jobs::executions;
use crate::jobs::job_by_id;
use crate::{NewJob, Reader, Refused, Result, Store, StoreError};

pub use revisions::NewRevision;
pub(crate) use revisions::note_restore;
pub use sealed::{PlanRow, piece_key};

table! {
    #[derive(Debug, Clone)]
    pub struct Workspace from "workspaces" {
        pub id: WorkspaceId,
        pub org_id: OrgId,
        pub install_id: InstallId,
        /// `components/NAME` or `sandbox`.
        pub target: String,
        pub revision_id: Option<RevisionId>,
        lock_info: Option<LockInfo>,
        lock_execution: Option<ExecutionId>,
        locked_at: Option<Timestamp>,
        pub created_at: Timestamp,
    }
}

impl Workspace {
    /// Who holds it.
    pub fn lock(&self) -> Option<WorkspaceLock> {
        let (info, locked_at) = self.lock_info.clone().zip(self.locked_at)?;
        Some(WorkspaceLock { info, execution_id: self.lock_execution.clone(), locked_at })
    }
}

#[derive(Debug, Clone)]
pub struct WorkspaceLock {
    pub info: LockInfo,
    /// None: a person on the customer's side.
    pub execution_id: Option<ExecutionId>,
    pub locked_at: Timestamp,
}

table! {
    /// A state as it was written once.
    #[derive(Debug, Clone)]
    pub struct Revision from "revisions" {
        pub id: RevisionId,
        pub workspace_id: WorkspaceId,
        pub lineage: String,
        pub serial: u64,
        /// Written by an execution that had lost its lease: kept, and not the state.
        pub quarantined: bool,
        pub file: SealedFile,
        /// Addresses, types and providers of its resources.
        pub resources: Json,
        pub resource_count: u64,
        /// Why it was written, where that is not an apply.
        pub note: String,
        pub author: String,
        pub execution_id: Option<ExecutionId>,
        pub job_id: Option<JobId>,
        pub created_at: Timestamp,
    }
}

/// Who works on a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Execution {
        runner_id: RunnerId,
        id: ExecutionId,
        epoch: u64,
    },
    /// A person on the customer's side.
    Person(String),
}

/// What came of a try to take a lock.
#[derive(Debug, Clone)]
pub enum Locked {
    Taken,
    HeldBy(Box<WorkspaceLock>),
}

async fn workspace_of_install(tx: &mut Tx<'_>, install: &InstallId, id: &WorkspaceId) -> Result<Workspace> {
    let sql = select!(Workspace, "WHERE id = $1 AND install_id = $2");
    Workspace::from_row(&tx.get(sql, params![id, install]).await?.ok_or(StoreError::NotFound("workspace"))?)
}

/// The job of a holder; None where its execution is not the current one any more.
async fn current_job(tx: &mut Tx<'_>, holder: &Holder) -> Result<Option<JobId>> {
    let Holder::Execution { runner_id, id, epoch } = holder else { return Ok(None) };
    let execution = executions::by_id(tx, id).await?;
    if execution.runner_id != *runner_id {
        return Err(StoreError::NotFound("execution"));
    }
    let job = job_by_id(tx, &execution.job_id).await?;
    let runs =
        matches!(job.state, JobState::Running | JobState::Claimed) || job.state == JobState::Unknown && !job.released;
    Ok((runs && job.epoch == *epoch && execution.epoch == *epoch).then_some(job.id))
}

async fn note(
    tx: &mut Tx<'_>,
    workspace: &Workspace,
    kind: &'static str,
    actor: &str,
    data: Json,
    now: Timestamp,
) -> Result<()> {
    let subject = ("install", workspace.install_id.as_str());
    let mut data = data;
    data["workspace_id"] = json!(workspace.id);
    data["target"] = json!(workspace.target);
    record(tx, Note { org: &workspace.org_id, now, kind, subject, actor, data }).await
}

/// Whether who holds a lock is certainly gone: its execution has ended, or nobody knows how and it is known to be dead.
async fn is_dead(tx: &mut Tx<'_>, lock: &WorkspaceLock) -> Result<bool> {
    let Some(id) = &lock.execution_id else { return Ok(false) };
    match executions::by_id(tx, id).await {
        Ok(execution) => {
            let job = job_by_id(tx, &execution.job_id).await?;
            let over = execution.finished_at.is_some() || job.state.is_terminal() || job.released;
            Ok(over || job.epoch > execution.epoch)
        }
        Err(StoreError::NotFound(_)) => Ok(true),
        Err(other) => Err(other),
    }
}

const TAKE: &str =
    "UPDATE workspaces SET lock_id = $2, lock_info = $3, lock_execution = $4, locked_at = $5 WHERE id = $1";
const FREE: &str =
    "UPDATE workspaces SET lock_id = NULL, lock_info = NULL, lock_execution = NULL, locked_at = NULL WHERE id = $1";

async fn lock(
    tx: &mut Tx<'_>,
    install: &InstallId,
    id: &WorkspaceId,
    info: &LockInfo,
    holder: &Holder,
    now: Timestamp,
) -> Result<Locked> {
    let workspace = workspace_of_install(tx, install, id).await?;
    let execution = match holder {
        Holder::Execution { id, .. } => {
            current_job(tx, holder).await?.ok_or(StoreError::LeaseLost)?;
            Some(id)
        }
        Holder::Person(_) => None,
    };
    if let Some(held) = workspace.lock()
        && held.info.id != info.id
    {
        if !is_dead(tx, &held).await? {
            return Ok(Locked::HeldBy(Box::new(held.clone())));
        }
        let data = json!({ "lock": held.info, "execution_id": held.execution_id });
        note(tx, &workspace, "terraform.lock-recovered", "ferry", data, now).await?;
    }
    let text = serde_json::to_string(info).map_err(StoreError::db)?;
    tx.exec(TAKE, params![id, &info.id, text, execution, now]).await?;
    Ok(Locked::Taken)
}

impl Reader {
    pub async fn find_workspace(&self, install: &InstallId, target: &str) -> Result<Option<Workspace>> {
        self.main()
            .glance((install.clone(), target.to_owned()), |tx, (install, target)| {
                Box::pin(async move {
                    let sql = select!(Workspace, "WHERE install_id = $1 AND target = $2");
                    tx.get(sql, params![&install, &target]).await?.as_ref().map(Workspace::from_row).transpose()
                })
            })
            .await
    }

    pub async fn workspace(&self, org: &OrgId, id: &WorkspaceId) -> Result<Workspace> {
        self.main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = select!(Workspace, "WHERE org_id = $1 AND id = $2");
                    Workspace::from_row(
                        &tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("workspace"))?,
                    )
                })
            })
            .await
    }

    /// All of an install, by what they are of.
    pub async fn workspaces(&self, org: &OrgId, install: &InstallId) -> Result<Vec<Workspace>> {
        self.main()
            .read((org.clone(), install.clone()), |tx, (org, install)| {
                Box::pin(async move {
                    let sql = select!(Workspace, "WHERE org_id = $1 AND install_id = $2 ORDER BY target");
                    tx.query(sql, params![&org, &install]).await?.iter().map(Workspace::from_row).collect()
                })
            })
            .await
    }
}

impl Store {
    /// The workspace of a part of an install; it is made where there is none.
    pub async fn workspace_for(
        &self,
        org: &OrgId,
        install: &InstallId,
        target: &str,
        new: WorkspaceId,
        now: Timestamp,
    ) -> Result<Workspace> {
        let found = self.find_workspace(install, target).await?;
        if let Some(found) = found {
            return Ok(found);
        }
        self.main()
            .write((org.clone(), install.clone(), target.to_owned(), new, now), |tx, (org, install, target, new, now)| { Box::pin(async move {
                    let sql = "INSERT INTO workspaces (id, org_id, install_id, target, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (install_id, target) DO NOTHING";
                    tx.exec(sql, params![&new, &org, &install, &target, now]).await?;
                    let sql = select!(Workspace, "WHERE install_id = $1 AND target = $2");
                    Workspace::from_row(&tx.get(sql, params![&install, &target]).await?.ok_or(StoreError::NotFound("workspace"))?)
                }) })
            .await
    }

    /// Takes the lock of a workspace; one whose holder is certainly dead is taken over.
    pub async fn lock_workspace(
        &self,
        install: &InstallId,
        id: &WorkspaceId,
        info: LockInfo,
        holder: Holder,
        now: Timestamp,
    ) -> Result<Locked> {
        self.main()
            .write((install.clone(), id.clone(), info, holder, now), |tx, (install, id, info, holder, now)| {
                Box::pin(async move { lock(tx, install, id, info, holder, *now).await })
            })
            .await
    }

    /// Only who holds it frees it; freeing what is free is harmless.
    pub async fn unlock_workspace(&self, install: &InstallId, id: &WorkspaceId, lock_id: &str) -> Result<Locked> {
        self.main()
            .write((install.clone(), id.clone(), lock_id.to_owned()), |tx, (install, id, lock_id)| {
                Box::pin(async move {
                    let workspace = workspace_of_install(tx, install, id).await?;
                    match workspace.lock() {
                        Some(held) if held.info.id != *lock_id => Ok(Locked::HeldBy(Box::new(held))),
                        Some(_) => {
                            tx.exec(FREE, params![&id]).await?;
                            Ok(Locked::Taken)
                        }
                        None => Ok(Locked::Taken),
                    }
                })
            })
            .await
    }

    /// An operator frees a lock; that of a live execution only the execution itself can.
    pub async fn force_unlock(&self, org: &OrgId, id: &WorkspaceId, actor: &str, now: Timestamp) -> Result<()> {
        self.main()
            .write((org.clone(), id.clone(), actor.to_owned(), now), |tx, (org, id, actor, now)| {
                Box::pin(async move {
                    let sql = select!(Workspace, "WHERE org_id = $1 AND id = $2");
                    let workspace = Workspace::from_row(
                        &tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("workspace"))?,
                    )?;
                    let Some(lock) = workspace.lock() else { return Ok(()) };
                    if lock.execution_id.is_some() && !is_dead(tx, &lock).await? {
                        return Err(Refused::LockInUse.into());
                    }
                    tx.exec(FREE, params![&id]).await?;
                    let data = json!({ "lock": lock.info });
                    note(tx, &workspace, "terraform.unlocked", actor, data, *now).await
                })
            })
            .await
    }
}

/// Notes that something refers to these sealed files: from now on they are kept.
pub(crate) async fn name_uploads(tx: &mut Tx<'_>, uploads: Vec<UploadId>, now: Timestamp) -> Result<()> {
    for upload in uploads {
        let sql = "UPDATE uploads_sealed SET named_at = $2 WHERE id = $1 AND named_at IS NULL";
        tx.exec_later(sql, params![&upload, now]).await?;
    }
    Ok(())
}

/// The sealed files that a document refers to.
pub(crate) fn uploads_in(document: &Json) -> Vec<UploadId> {
    match document {
        Json::Object(map) => {
            let own = map.get("upload_id").and_then(Json::as_str).and_then(|id| UploadId::parse(id).ok());
            own.into_iter().chain(map.values().flat_map(uploads_in)).collect()
        }
        Json::Array(items) => items.iter().flat_map(uploads_in).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    }
}
