//! Terraform's states and plans as runners bring them: in sealed pieces, under the lock of who works on them.

use bytes::Bytes;
use crash::crash_point;
use model::deploy::{ApprovedPlan, DISPLAY_BYTES, DISPLAY_OPEN_BYTES, LockInfo, PIECES_MAX, SealedFile};
use model::papers::Order;
use model::{Digest, ExecutionId, InstallId, OrgId, RevisionId, UploadId, WorkspaceId};
use serde_json::Value;
use store::{EntityKind, Holder, Job, Locked, NewRevision, PlanRow, Revision, StoreError, Workspace, piece_key};

use crate::Conductor;
use crate::error::{Result, RunnerError, StateError};

/// A state whose pieces were sent.
#[derive(Debug, Clone)]
pub struct NewState {
    pub workspace_id: WorkspaceId,
    pub holder: Holder,
    pub lock_id: String,
    pub lineage: String,
    pub serial: u64,
    pub file: SealedFile,
    pub resources: Value,
    pub resource_count: u64,
    pub outputs: Option<Value>,
    pub note: String,
}

/// What a plan job has made.
#[derive(Debug, Clone)]
pub struct NewPlan {
    pub plan: ApprovedPlan,
    pub changes: Value,
    pub judged: Value,
    /// The masked model that people see, compressed.
    pub display: Vec<u8>,
}

/// Whether a sealed file may have this piece.
pub fn check_piece(number: u32) -> Result<u32, RunnerError> {
    if number < PIECES_MAX { Ok(number) } else { Err(RunnerError::Pieces(PIECES_MAX)) }
}

impl Conductor {
    /// The workspace of a component, or of the sandbox; it is created where there is none.
    pub async fn open_workspace(&self, org: &OrgId, install: &InstallId, target: &str) -> Result<Workspace> {
        let app = self.store.install(org, install.as_str()).await?.app_id;
        match target.strip_prefix("components/") {
            Some(name) => {
                self.store.entity(org, Some(&app), EntityKind::Component, name).await?;
            }
            None if target == "sandbox" => {}
            None => return Err(RunnerError::Target.into()),
        }
        let now = self.now();
        let new = WorkspaceId::new(now, self.random_u128());
        Ok(self.store.workspace_for(org, install, target, new, now).await?)
    }

    /// Takes the lock of a workspace. One whose holder is certainly dead is taken over; else the holder is named.
    pub async fn lock_workspace(
        &self,
        install: &InstallId,
        id: &WorkspaceId,
        info: LockInfo,
        holder: Holder,
    ) -> Result<Locked> {
        crash_point!("server.before_state_lock");
        let locked = self.store.lock_workspace(install, id, info, holder, self.now()).await?;
        crash_point!("server.state_locked");
        Ok(locked)
    }

    /// Frees the lock of a workspace; only who holds it can.
    pub async fn unlock_workspace(&self, install: &InstallId, id: &WorkspaceId, lock_id: &str) -> Result<Locked> {
        Ok(self.store.unlock_workspace(install, id, lock_id).await?)
    }

    /// Makes a state whose pieces were sent the next one. Of an execution that has lost its lease it is kept beside them.
    pub async fn write_state(&self, org: &OrgId, install: &InstallId, new: NewState) -> Result<Revision> {
        self.check_pieces(org, install, &new.file).await?;
        let now = self.now();
        let new = NewRevision {
            id: RevisionId::new(now, self.random_u128()),
            workspace_id: new.workspace_id,
            install_id: install.clone(),
            holder: new.holder,
            lock_id: new.lock_id,
            lineage: new.lineage,
            serial: new.serial,
            file: new.file,
            resources: new.resources,
            resource_count: new.resource_count,
            outputs: new.outputs,
            note: new.note,
            now,
        };
        crash_point!("server.before_state");
        let revision = self.store.write_revision(org, new).await?;
        crash_point!("server.state_written");
        Ok(revision)
    }

    /// All pieces are there: a state that can't be read again must not become the state.
    async fn check_pieces(&self, org: &OrgId, install: &InstallId, file: &SealedFile) -> Result<()> {
        let known = self.store.sealed_is_of(install, &file.upload_id).await?;
        if !known || file.pieces == 0 || file.pieces > PIECES_MAX {
            return Err(StoreError::NotFound("sealed file").into());
        }
        for piece in 0..file.pieces {
            let size = self.store.blobs().size(&piece_key(org, &file.upload_id, piece)).await?;
            size.ok_or(StoreError::NotFound("piece of the sealed file"))?;
        }
        Ok(())
    }

    /// Takes a piece of a file that a runner has sealed.
    pub async fn put_piece(
        &self,
        org: &OrgId,
        install: &InstallId,
        upload: &UploadId,
        number: u32,
        bytes: Bytes,
    ) -> Result<()> {
        check_piece(number)?;
        let own = if number == 0 {
            self.store.claim_sealed(org, install, upload, self.now()).await?
        } else {
            self.store.sealed_is_of(install, upload).await?
        };
        if !own {
            return Err(StoreError::NotFound("sealed file").into());
        }
        // What a revision names stays what it was: a piece is written once.
        if !self.store.blobs().put_once(&piece_key(org, upload, number), bytes).await? {
            return Err(StateError::OtherBytes.into());
        }
        Ok(())
    }

    /// Which key an install seals with. The first one that is named stands.
    pub async fn claim_install_key(
        &self,
        org: &OrgId,
        install: &InstallId,
        fingerprint: Option<&str>,
    ) -> Result<Option<String>> {
        if fingerprint.is_some_and(|text| text.len() > 100) {
            return Err(RunnerError::Fingerprint.into());
        }
        Ok(self.store.claim_install_key(org, install, fingerprint, self.now()).await?)
    }

    /// Keeps what a plan job has made: which sealed file it is, and the masked model that people see.
    pub async fn keep_plan(&self, job: &Job, execution: &ExecutionId, new: NewPlan) -> Result<()> {
        let install = job.install_id.clone().ok_or(StoreError::NotFound("install"))?;
        let order = self.store.order(&job.org_id, &job.id).await?;
        let order: Order = serde_json::from_str(&order.payload).map_err(|_| StoreError::corrupt("order"))?;
        if new.display.len() > DISPLAY_BYTES {
            return Err(RunnerError::TooLarge.into());
        }
        let opened = zstd::bulk::decompress(&new.display, DISPLAY_OPEN_BYTES).map_err(|_| RunnerError::OtherPlan)?;
        let named = new.plan.job_id == job.id
            && new.plan.spec_digest == order.spec_digest
            && new.plan.model_digest == Digest::of(&opened);
        if !named || serde_json::from_slice::<serde::de::IgnoredAny>(&opened).is_err() {
            return Err(RunnerError::OtherPlan.into());
        }
        self.check_pieces(&job.org_id, &install, &new.plan.file).await?;
        let row = PlanRow { plan: new.plan, changes: new.changes, judged: new.judged };
        crash_point!("server.before_plan");
        self.store.put_plan(&job.org_id, execution, row, new.display, self.now()).await?;
        crash_point!("server.plan_kept");
        Ok(())
    }
}
