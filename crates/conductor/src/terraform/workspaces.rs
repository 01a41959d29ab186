//! What is done to Terraform's workspaces outside of workflows: an earlier state becomes the state again.

use std::collections::BTreeMap;

use model::JobId;
use model::deploy::{Deploy, DeployOperation, job_target};
use model::spec::Work;
use model::terraform::{Module, Program, TerraformSpec};
use store::{Idempotency, Queued, Refused, Revision, Runner, StoreError, Workspace};

use crate::error::{Result, StateError};
use crate::jobs::Draft;
use crate::{By, Conductor};

impl Conductor {
    /// Has the install's runner write an earlier state, or one that was kept beside, as the next one.
    pub async fn restore_state(
        &self,
        workspace: &Workspace,
        revision: &Revision,
        actor: &str,
        idem: Option<Idempotency>,
    ) -> Result<(Queued, Runner)> {
        let over_serial = self.check_restorable(workspace, revision).await?;
        let org = &workspace.org_id;
        let install = self.store.install(org, workspace.install_id.as_str()).await?;
        let runner = self.store.runner(org, install.runner_id.as_str()).await?;
        let target = &workspace.target;
        let spec = Box::new(spec(workspace, revision, over_serial));
        let work = if target == "sandbox" { Work::SandboxTerraform(spec) } else { Work::TerraformDeploy(spec) };
        let draft = Draft {
            name: Some(format!("restore serial {} of {target}", revision.serial)),
            install: Some((install.id, install.app_id)),
            target: Some(job_target(target)),
            restores: Some(revision.clone()),
            ..Draft::new(work)
        };
        let queued = self.submit(draft, &runner, actor, idem).await?;
        Ok((queued, runner))
    }

    /// Frees the lock of a workspace, where a person holds it, or a job that is gone. That of a job that runs is not freed: two would
    /// write the state.
    pub async fn force_unlock(&self, by: &By, workspace: &Workspace) -> Result<()> {
        match self.store.force_unlock(&by.org, &workspace.id, by.actor(), self.now()).await {
            Err(StoreError::Refused(Refused::LockInUse)) => match self.holding_job(workspace).await? {
                Some(job) => Err(StateError::LockInUse { job }.into()),
                None => Err(StoreError::Refused(Refused::LockInUse).into()),
            },
            done => Ok(done?),
        }
    }

    async fn holding_job(&self, workspace: &Workspace) -> Result<Option<JobId>> {
        let Some(execution) = workspace.lock().and_then(|lock| lock.execution_id) else { return Ok(None) };
        // It may be gone with its job.
        Ok(self.store.execution_of_anyone(&execution).await.ok().map(|execution| execution.job_id))
    }

    /// Returns the serial that is there.
    async fn check_restorable(&self, workspace: &Workspace, revision: &Revision) -> Result<Option<u64>> {
        if workspace.revision_id.as_ref() == Some(&revision.id) {
            let (revision, target) = (revision.id.clone(), workspace.target.clone());
            return Err(StateError::IsCurrent { revision, target }.into());
        }
        let current = self.store.current_revision(&workspace.org_id, workspace).await?;
        match current {
            Some(current) if current.lineage != revision.lineage => Err(StateError::OtherLineage {
                revision: revision.id.clone(),
                lineage: revision.lineage.clone(),
                target: workspace.target.clone(),
                current: current.lineage,
            }
            .into()),
            current => Ok(current.map(|current| current.serial)),
        }
    }
}

fn spec(workspace: &Workspace, revision: &Revision, over_serial: Option<u64>) -> TerraformSpec {
    TerraformSpec {
        deploy: Deploy {
            workspace_id: workspace.id.clone(),
            target: workspace.target.clone(),
            operation: DeployOperation::Restore {
                revision_id: revision.id.clone(),
                file: revision.file.clone(),
                over_serial,
            },
            policies: Vec::new(),
            basis: String::new(),
        },
        program: Program::Terraform,
        version: "latest".to_owned(),
        module: Module::Nothing {},
        vars: BTreeMap::new(),
        var_files: Vec::new(),
        env: BTreeMap::new(),
    }
}
