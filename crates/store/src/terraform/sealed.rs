//! What runners have sealed: pieces of files, the key of an install, and plans.

use super::*;

/// A plan, as the job that made it has told it.
#[derive(Debug, Clone)]
pub struct PlanRow {
    pub plan: ApprovedPlan,
    pub changes: Json,
    pub judged: Json,
}

fn display_place(job: &JobId) -> String {
    format!("plans|{job}|display")
}

async fn sealed_of(tx: &mut Tx<'_>, install: &InstallId, upload: &UploadId) -> Result<bool> {
    let sql = "SELECT 1 FROM uploads_sealed WHERE id = $1 AND install_id = $2";
    Ok(tx.get(sql, params![upload, install]).await?.is_some())
}

/// Where a piece of a sealed file lies.
pub fn piece_key(org: &OrgId, upload: &UploadId, piece: u32) -> String {
    format!("sealed/{org}/{upload}/{piece:06}")
}

impl Reader {
    /// A piece of a sealed file.
    pub async fn sealed_piece(&self, org: &OrgId, upload: &UploadId, piece: u32) -> Result<bytes::Bytes> {
        self.blobs().get(&piece_key(org, upload, piece)).await
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
