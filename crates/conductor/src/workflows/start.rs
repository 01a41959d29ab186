//! How people start workflows: what they may not ask for is refused before anything is planned.

use engine::WorkflowKind;
use model::WorkflowId;
use store::{Build, Idempotency, Install, StoreError};

use super::NewWorkflow;
use crate::error::{JobError, Result};
use crate::runbooks::runbook_inputs;
use crate::{By, Conductor, check_by_hand};

/// A deploy of a build, as somebody asks for it.
#[derive(Debug, Clone, Default)]
pub struct WantedDeploy {
    pub with_dependents: bool,
    pub plan_only: bool,
    pub role: Option<String>,
}

impl Conductor {
    /// Starts a workflow that a person asks for: an action must allow it, and a runbook must be given what it asks for.
    pub async fn start_by_hand(
        &self,
        by: &By,
        install: &Install,
        mut new: NewWorkflow,
        idem: Option<Idempotency>,
    ) -> Result<WorkflowId> {
        model::spec::check_env(&new.given.env_vars).map_err(JobError::Spec)?;
        // What is not there at all is told by the planner.
        if let Some(document) = self.document_of(install).await? {
            let config = &document.config;
            if let WorkflowKind::ActionWorkflowRun { action, .. } = &new.request.kind {
                let found = config.actions.iter().find(|known| known.name == *action);
                found.map_or(Ok(()), check_by_hand)?;
            }
            if let WorkflowKind::RunbookRun { runbook } = &new.request.kind
                && let Some(found) = config.runbooks.iter().find(|known| known.name == *runbook)
            {
                let inputs = runbook_inputs(found, &new.given.runbook_inputs);
                new.given.runbook_inputs = inputs.map_err(|wrong| JobError::Spec(wrong.join("; ")))?;
            }
        }
        self.start_workflow(install, new, &by.account, idem).await
    }

    /// Deploys a build of a component: as the config said that it was built from.
    pub async fn deploy_build(
        &self,
        by: &By,
        install: &Install,
        build: &Build,
        wanted: WantedDeploy,
        idem: Option<Idempotency>,
    ) -> Result<WorkflowId> {
        if build.app_id != install.app_id {
            return Err(StoreError::NotFound("build").into());
        }
        let component = build.component.clone();
        let mut new = NewWorkflow::new(WorkflowKind::ManualDeploy { component, dependents: wanted.with_dependents });
        new.request.plan_only = wanted.plan_only;
        new.role = wanted.role;
        // A recipe that did not change is not built again: its build is that of all versions since.
        let current = self.config_of(install).await?;
        if self.recipe_at(&current, &build.component_id).await?.as_ref() != Some(&build.recipe) {
            let config = self.store.config_version(&by.org, &install.app_id, build.config_version).await?;
            new.config_id = Some(config.id);
        }
        self.start_workflow(install, new, &by.account, idem).await
    }
}
