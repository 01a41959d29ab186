//! What is done to Terraform's workspaces outside of workflows: an earlier state becomes the state again.

use std::collections::BTreeMap;

use model::spec::Work;
use model::terraform::{Module, Program, TerraformOperation, TerraformSpec};
use store::{Idempotency, Queued, Result, Revision, Runner, StoreError, Workspace};

use crate::Conductor;
use crate::jobs::Draft;

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
            target: Some(format!("terraform/{target}")),
            ..Draft::new(work)
        };
        let queued = self.submit(draft, &runner, actor, idem).await?;
        if !queued.replayed {
            self.store.note_restore(revision, org, &queued.job.id, actor, self.now()).await?;
        }
        Ok((queued, runner))
    }

    /// Returns the serial that is there.
    async fn check_restorable(&self, workspace: &Workspace, revision: &Revision) -> Result<Option<u64>> {
        if workspace.revision_id.as_ref() == Some(&revision.id) {
            let text = format!("revision {} is the state of {} already", revision.id, workspace.target);
            return Err(StoreError::Conflict(text));
        }
        let current = self.store.current_revision(&workspace.org_id, workspace).await?;
        match current {
            Some(current) if current.lineage != revision.lineage => Err(StoreError::Conflict(format!(
                "revision {} is of lineage {}, and the state of {} of lineage {}: one can't follow the other",
                revision.id, revision.lineage, workspace.target, current.lineage
            ))),
            current => Ok(current.map(|current| current.serial)),
        }
    }
}

fn spec(workspace: &Workspace, revision: &Revision, over_serial: Option<u64>) -> TerraformSpec {
    TerraformSpec {
        workspace_id: workspace.id.clone(),
        target: workspace.target.clone(),
        program: Program::Terraform,
        version: "latest".to_owned(),
        module: Module::Nothing {},
        vars: BTreeMap::new(),
        var_files: Vec::new(),
        env: BTreeMap::new(),
        operation: TerraformOperation::Restore {
            revision_id: revision.id.clone(),
            file: revision.file.clone(),
            over_serial,
        },
        policies: Vec::new(),
        basis: String::new(),
    }
}
