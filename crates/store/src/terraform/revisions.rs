//! Every state that was written to a workspace.

use super::*;

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

async fn revision_by_id(tx: &mut Tx<'_>, id: &RevisionId) -> Result<Revision> {
    let sql = select!(Revision, "WHERE id = $1");
    Revision::from_row(&tx.get(sql, params![id]).await?.ok_or(StoreError::NotFound("revision"))?)
}

/// How people know an account; its id where it is gone.
async fn email_of(tx: &mut Tx<'_>, account: String) -> Result<String> {
    let row = tx.get("SELECT email FROM accounts WHERE id = $1", params![&account]).await?;
    row.map_or(Ok(account), |row| row.get("email"))
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

/// Notes who has asked for an earlier state.
pub(crate) async fn note_restore(tx: &mut Tx<'_>, revision: &Revision, new: &NewJob) -> Result<()> {
    let sql = select!(Workspace, "WHERE org_id = $1 AND id = $2");
    let row = tx.get(sql, params![&new.org_id, &revision.workspace_id]).await?;
    let workspace = Workspace::from_row(&row.ok_or(StoreError::NotFound("workspace"))?)?;
    let data = json!({ "revision_id": revision.id, "serial": revision.serial, "job_id": new.id });
    note(tx, &workspace, "terraform.restore", &new.created_by, data, new.now).await
}

impl Reader {
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
}

impl Store {
    pub async fn write_revision(&self, org: &OrgId, new: NewRevision) -> Result<Revision> {
        let outputs = match &new.outputs {
            Some(outputs) => {
                Some(self.org_keys(org).await?.seal(&outputs_place(&new.id), outputs.to_string().as_bytes()))
            }
            None => None,
        };
        self.main().write((new, outputs), |tx, (new, outputs)| Box::pin(write(tx, new.clone(), outputs.clone()))).await
    }
}
