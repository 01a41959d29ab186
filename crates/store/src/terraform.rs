//! Terraform's workspaces: their locks, every revision of their state, and the plans that were made of them. What is in a state
//! or in a plan file nobody can read here: it is sealed with the key of the install.

use model::terraform::{ApprovedPlan, LockInfo, NOT_BEGUN, SealedFile};
use model::{ExecutionId, InstallId, JobId, JobState, OrgId, RevisionId, RunnerId, Timestamp, UploadId, WorkspaceId};
use serde_json::{Value as Json, json};

use crate::db::{Table, Tx, params, select, table};
use crate::events::{Note, record};
use crate::jobs::executions;
use crate::jobs::job_by_id;
use crate::{NewJob, Reader, Refused, Result, Store, StoreError};

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

/// A state that is to be written.
#[derive(Debug, Clone)]
pub struct NewRevision {
    pub id: RevisionId,
    pub workspace_id: WorkspaceId,
    pub install_id: InstallId,
    pub holder: Holder,
    pub lock_id: String,
    pub lineage: String,
    pub serial: u64,
    pub file: SealedFile,
    pub resources: Json,
    pub resource_count: u64,
    /// What the state puts out, as the job that wrote it would tell.
    pub outputs: Option<Json>,
    pub note: String,
    pub now: Timestamp,
}

/// What came of a try to take a lock.
#[derive(Debug, Clone)]
pub enum Locked {
    Taken,
    HeldBy(Box<WorkspaceLock>),
}

/// A plan, as the job that made it has told it.
#[derive(Debug, Clone)]
pub struct PlanRow {
    pub plan: ApprovedPlan,
    pub changes: Json,
    pub judged: Json,
}

async fn workspace_of_install(tx: &mut Tx<'_>, install: &InstallId, id: &WorkspaceId) -> Result<Workspace> {
    let sql = select!(Workspace, "WHERE id = $1 AND install_id = $2");
    Workspace::from_row(&tx.get(sql, params![id, install]).await?.ok_or(StoreError::NotFound("workspace"))?)
}

async fn revision_by_id(tx: &mut Tx<'_>, id: &RevisionId) -> Result<Revision> {
    let sql = select!(Revision, "WHERE id = $1");
    Revision::from_row(&tx.get(sql, params![id]).await?.ok_or(StoreError::NotFound("revision"))?)
}

/// How people know an account; its id where it is gone.
async fn email_of(tx: &mut Tx<'_>, account: String) -> Result<String> {
    let row = tx.get("SELECT email FROM accounts WHERE id = $1", params![&account]).await?;
    row.map_or(Ok(account), |row| row.get("email"))
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

/// Writes a state: as the next one, or beside them where who writes has lost its lease.
async fn write(tx: &mut Tx<'_>, new: NewRevision, outputs: Option<Vec<u8>>) -> Result<Revision> {
    let workspace = workspace_of_install(tx, &new.install_id, &new.workspace_id).await?;
    name_uploads(tx, vec![new.file.upload_id.clone()], new.now).await?;
    name_uploads(tx, new.outputs.as_ref().map(uploads_in).unwrap_or_default(), new.now).await?;
    let (job_id, execution_id, author, lost) = match &new.holder {
        Holder::Execution { id, .. } => {
            let current = current_job(tx, &new.holder).await?;
            let job = executions::by_id(tx, id).await?.job_id;
            let job = job_by_id(tx, &job).await?;
            // Outside of workflows, a state is restored because somebody wants it.
            let author = if job.step_id.is_some() { "ferry".to_owned() } else { email_of(tx, job.created_by).await? };
            (Some(job.id), Some(id.clone()), author, current.is_none())
        }
        Holder::Person(name) => (None, None, name.clone(), false),
    };
    let before = match &workspace.revision_id {
        Some(id) => Some(revision_by_id(tx, id).await?),
        None => None,
    };
    // Told twice, because the first answer was lost.
    if let Some(before) = before.as_ref().filter(|before| before.file == new.file) {
        return Ok(before.clone());
    }
    if !lost {
        let mine = workspace
            .lock()
            .as_ref()
            .is_some_and(|lock| lock.info.id == new.lock_id && lock.execution_id == execution_id);
        if !mine {
            let holder = workspace.lock().as_ref().map_or_else(|| "nobody".to_owned(), |lock| lock.info.who.clone());
            return Err(Refused::StateNotLocked(holder).into());
        }
        if let Some(before) = &before
            && (before.lineage != new.lineage || before.serial >= new.serial)
        {
            return Err(Refused::StateDoesNotFollow {
                serial: before.serial,
                lineage: before.lineage.clone(),
                new_serial: new.serial,
                new_lineage: new.lineage.clone(),
            }
            .into());
        }
    }
    let revision = Revision {
        id: new.id,
        workspace_id: new.workspace_id,
        lineage: new.lineage,
        serial: new.serial,
        quarantined: lost,
        file: new.file,
        resources: new.resources,
        resource_count: new.resource_count,
        note: new.note,
        author,
        execution_id,
        job_id,
        created_at: new.now,
    };
    let file = serde_json::to_string(&revision.file).map_err(StoreError::db)?;
    tx.exec(
        "INSERT INTO revisions (id, workspace_id, org_id, lineage, serial, quarantined, file, bytes, resources, resource_count, note, author, execution_id, job_id, created_at, outputs) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
        params![&revision.id, &revision.workspace_id, &workspace.org_id, &revision.lineage, revision.serial, u64::from(lost), file, revision.file.bytes, revision.resources.to_string(), revision.resource_count, &revision.note, &revision.author, revision.execution_id.as_ref(), revision.job_id.as_ref(), revision.created_at, outputs],
    )
    .await?;
    if lost {
        let data =
            json!({ "revision_id": revision.id, "serial": revision.serial, "execution_id": revision.execution_id });
        note(tx, &workspace, "terraform.state-quarantined", "ferry", data, revision.created_at).await?;
    } else {
        tx.exec("UPDATE workspaces SET revision_id = $2 WHERE id = $1", params![&workspace.id, &revision.id]).await?;
    }
    Ok(revision)
}

fn outputs_place(revision: &RevisionId) -> String {
    format!("revisions|{revision}|outputs")
}

fn display_place(job: &JobId) -> String {
    format!("plans|{job}|display")
}

/// Notes who has asked for an earlier state.
pub(crate) async fn note_restore(tx: &mut Tx<'_>, revision: &Revision, new: &NewJob) -> Result<()> {
    let sql = select!(Workspace, "WHERE org_id = $1 AND id = $2");
    let row = tx.get(sql, params![&new.org_id, &revision.workspace_id]).await?;
    let workspace = Workspace::from_row(&row.ok_or(StoreError::NotFound("workspace"))?)?;
    let data = json!({ "revision_id": revision.id, "serial": revision.serial, "job_id": new.id });
    note(tx, &workspace, "terraform.restore", &new.created_by, data, new.now).await
}

impl Reader {
    /// A piece of a sealed file.
    pub async fn sealed_piece(&self, org: &OrgId, upload: &UploadId, piece: u32) -> Result<bytes::Bytes> {
        self.blobs().get(&piece_key(org, upload, piece)).await
    }

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

    /// The state as it is; none before the first one.
    pub async fn current_revision(&self, org: &OrgId, workspace: &Workspace) -> Result<Option<Revision>> {
        match &workspace.revision_id {
            Some(id) => self.revision(org, &workspace.id, id).await.map(Some),
            None => Ok(None),
        }
    }

    pub async fn revision(&self, org: &OrgId, workspace: &WorkspaceId, id: &RevisionId) -> Result<Revision> {
        self.main()
            .glance((org.clone(), workspace.clone(), id.clone()), |tx, (org, workspace, id)| {
                Box::pin(async move {
                    let sql = select!(Revision, "WHERE org_id = $1 AND workspace_id = $2 AND id = $3");
                    let row = tx.get(sql, params![&org, &workspace, &id]).await?;
                    Revision::from_row(&row.ok_or(StoreError::NotFound("revision"))?)
                })
            })
            .await
    }

    /// Newest first.
    pub async fn revisions(
        &self,
        org: &OrgId,
        workspace: &WorkspaceId,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Revision>> {
        self.main()
            .read((org.clone(), workspace.clone(), offset, limit), |tx, (org, workspace, offset, limit)| {
                Box::pin(async move {
                    let sql = select!(
                        Revision,
                        "WHERE org_id = $1 AND workspace_id = $2 ORDER BY id DESC LIMIT $3 OFFSET $4"
                    );
                    let rows = tx.query(sql, params![&org, &workspace, limit, offset]).await?;
                    rows.iter().map(Revision::from_row).collect()
                })
            })
            .await
    }

    /// How many states of a workspace were kept beside.
    pub async fn quarantined_revisions(&self, org: &OrgId, workspace: &WorkspaceId) -> Result<u64> {
        self.main()
            .glance((org.clone(), workspace.clone()), |tx, (org, workspace)| {
                Box::pin(async move {
                    let sql =
                        "SELECT COUNT(*) AS count FROM revisions WHERE org_id = $1 AND workspace_id = $2 AND quarantined = 1";
                    tx.get(sql, params![&org, &workspace]).await?.map_or(Ok(0), |row| row.get("count"))
                })
            })
            .await
    }

    /// What a state puts out, where it was told with it.
    pub async fn revision_outputs(&self, org: &OrgId, id: &RevisionId) -> Result<Option<Json>> {
        let sealed: Option<Vec<u8>> = self
            .main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "SELECT outputs FROM revisions WHERE org_id = $1 AND id = $2";
                    tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("revision"))?.get("outputs")
                })
            })
            .await?;
        let Some(sealed) = sealed else { return Ok(None) };
        let plain = self.open_sealed(org, &outputs_place(id), &sealed).await?;
        serde_json::from_slice(&plain).map(Some).map_err(|_| StoreError::corrupt("output"))
    }

    /// The newest state of a workspace, whether it is the current one or was kept beside.
    pub async fn newest_revision(&self, org: &OrgId, workspace: &WorkspaceId) -> Result<Option<Revision>> {
        Ok(self.revisions(org, workspace, 0, 1).await?.into_iter().next())
    }

    /// The newest state that was kept beside.
    pub async fn newest_quarantined(&self, org: &OrgId, workspace: &WorkspaceId) -> Result<Option<Revision>> {
        self.main()
            .glance((org.clone(), workspace.clone()), |tx, (org, workspace)| {
                Box::pin(async move {
                    let sql = select!(
                        Revision,
                        "WHERE org_id = $1 AND workspace_id = $2 AND quarantined = 1 ORDER BY id DESC LIMIT 1"
                    );
                    tx.get(sql, params![&org, &workspace]).await?.as_ref().map(Revision::from_row).transpose()
                })
            })
            .await
    }

    /// The newest state that a job wrote.
    pub async fn last_saved(&self, org: &OrgId, workspace: &WorkspaceId, job: &JobId) -> Result<Option<Revision>> {
        self.main()
            .glance((org.clone(), workspace.clone(), job.clone()), |tx, (org, workspace, job)| {
                Box::pin(async move {
                    let sql = select!(
                        Revision,
                        "WHERE org_id = $1 AND workspace_id = $2 AND job_id = $3 ORDER BY id DESC LIMIT 1"
                    );
                    tx.get(sql, params![&org, &workspace, &job]).await?.as_ref().map(Revision::from_row).transpose()
                })
            })
            .await
    }

    /// The job that worked on a part last and may have changed it.
    pub async fn last_apply(&self, org: &OrgId, install: &InstallId, target: &str) -> Result<Option<JobId>> {
        self.main()
            .glance((org.clone(), install.clone(), target.to_owned()), |tx, (org, install, target)| { Box::pin(async move {
                    let sql = "SELECT id FROM jobs WHERE (org_id || '') = $1 AND install_id = $2 AND target = $3 AND operation = 'apply-plan' AND started_at IS NOT NULL AND state <> 'not-attempted' AND COALESCE(error_code, '') NOT IN ($4, $5) ORDER BY id DESC LIMIT 1";
                    let [stale, full] = NOT_BEGUN;
                    tx.get(sql, params![&org, &install, &target, stale, full]).await?.map(|row| row.get("id")).transpose()
                }) })
            .await
    }

    pub async fn sealed_is_of(&self, install: &InstallId, upload: &UploadId) -> Result<bool> {
        self.main()
            .glance((install.clone(), upload.clone()), |tx, (install, upload)| {
                Box::pin(async move { sealed_of(tx, install, upload).await })
            })
            .await
    }

    /// What a plan job has made, and the masked model, compressed.
    pub async fn plan_of_job(&self, org: &OrgId, job: &JobId) -> Result<Option<(PlanRow, Vec<u8>)>> {
        let found = self
            .main()
            .glance((org.clone(), job.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "SELECT plan, changes, judged, display FROM plans WHERE org_id = $1 AND job_id = $2";
                    let Some(row) = tx.get(sql, params![&org, &id]).await? else { return Ok(None) };
                    let plan =
                        PlanRow { plan: row.get("plan")?, changes: row.get("changes")?, judged: row.get("judged")? };
                    Ok(Some((plan, row.get::<Vec<u8>>("display")?)))
                })
            })
            .await?;
        match found {
            Some((row, sealed)) => Ok(Some((row, self.open_sealed(org, &display_place(job), &sealed).await?))),
            None => Ok(None),
        }
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

    pub async fn write_revision(&self, org: &OrgId, new: NewRevision) -> Result<Revision> {
        let outputs = match &new.outputs {
            Some(outputs) => {
                Some(self.org_keys(org).await?.seal(&outputs_place(&new.id), outputs.to_string().as_bytes()))
            }
            None => None,
        };
        self.main().write((new, outputs), |tx, (new, outputs)| Box::pin(write(tx, new.clone(), outputs.clone()))).await
    }

    /// Notes that a sealed file belongs to an install; false where it is another one's.
    pub async fn claim_sealed(
        &self,
        org: &OrgId,
        install: &InstallId,
        upload: &UploadId,
        now: Timestamp,
    ) -> Result<bool> {
        self.main()
            .write((org.clone(), install.clone(), upload.clone(), now), |tx, (org, install, upload, now)| { Box::pin(async move {
                    let sql = "INSERT INTO uploads_sealed (id, org_id, install_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING";
                    tx.exec(sql, params![&upload, &org, &install, now]).await?;
                    sealed_of(tx, install, upload).await
                }) })
            .await
    }

    /// The key that an install seals with: the one that stands, which is this one where there was none.
    pub async fn claim_install_key(
        &self,
        org: &OrgId,
        install: &InstallId,
        fingerprint: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<String>> {
        self.main()
            .write((org.clone(), install.clone(), fingerprint.map(str::to_owned), now), |tx, (org, install, fingerprint, now)| { Box::pin(async move {
                    if let Some(fingerprint) = &fingerprint {
                        let sql = "INSERT INTO install_keys (install_id, org_id, fingerprint, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (install_id) DO NOTHING";
                        tx.exec(sql, params![&install, &org, fingerprint, now]).await?;
                    }
                    let sql = "SELECT fingerprint FROM install_keys WHERE install_id = $1";
                    tx.get(sql, params![&install]).await?.map(|row| row.get("fingerprint")).transpose()
                }) })
            .await
    }

    /// Keeps what a plan job has made; told twice it is the same.
    pub async fn put_plan(
        &self,
        org: &OrgId,
        execution: &ExecutionId,
        row: PlanRow,
        display: Vec<u8>,
        now: Timestamp,
    ) -> Result<()> {
        let sealed = self.org_keys(org).await?.seal(&display_place(&row.plan.job_id), &display);
        self.main()
            .write((org.clone(), execution.clone(), row, sealed, now), |tx, (org, execution, row, sealed, now)| { Box::pin(async move {
                    let current = executions::by_id(tx, execution).await?;
                    let job = job_by_id(tx, &row.plan.job_id).await?;
                    if job.epoch != current.epoch || job.id != current.job_id || job.state.is_terminal() {
                        return Err(StoreError::LeaseLost);
                    }
                    name_uploads(tx, vec![row.plan.file.upload_id.clone()], *now).await?;
                    tx.exec("DELETE FROM plans WHERE job_id = $1", params![&job.id]).await?;
                    let plan = serde_json::to_string(&row.plan).map_err(StoreError::db)?;
                    let sql = "INSERT INTO plans (job_id, org_id, execution_id, plan, changes, judged, display, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
                    tx.exec(sql, params![&job.id, &org, &execution, plan, row.changes.to_string(), row.judged.to_string(), sealed, now]).await?;
                    Ok(())
                }) })
            .await
    }
}

async fn sealed_of(tx: &mut Tx<'_>, install: &InstallId, upload: &UploadId) -> Result<bool> {
    let sql = "SELECT 1 FROM uploads_sealed WHERE id = $1 AND install_id = $2";
    Ok(tx.get(sql, params![upload, install]).await?.is_some())
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

/// Where a piece of a sealed file lies.
pub fn piece_key(org: &OrgId, upload: &UploadId, piece: u32) -> String {
    format!("sealed/{org}/{upload}/{piece:06}")
}
