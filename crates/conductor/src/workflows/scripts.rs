//! Steps that are carried out for real; here: actions of the app, and scripts of runbooks.

use std::collections::BTreeMap;

use engine::{Ended, Step, Work, Workflow};
use serde_json::json;
use store::{EntityKind, Given, StoreError};

use super::components::context_component;
use super::context::WorkflowContext;
use crate::Document;
use crate::apps::InstallTree;
use crate::error::{Error, JobError, Result};
use crate::jobs::SyncedAction;
use crate::runbooks::{runbook_inputs, script};

impl WorkflowContext<'_> {
    /// Begins the work of a step; a step that can't begin has ended.
    pub(super) async fn start(&mut self, workflow: &Workflow, step: &Step) -> Result<Option<Ended>> {
        let started = match &step.work {
            Work::Action { action, trigger, component } => {
                self.start_action(step, action, trigger, component.as_deref()).await
            }
            Work::Script { runbook, index } => self.start_script(step, runbook, *index).await,
            Work::SyncImage { .. } => self.start_image(step).await,
            Work::SyncSecrets | Work::RemoveSecrets { .. } => self.start_secrets(step).await,
            work if work.is_plan() || work.is_apply() => Box::pin(self.start_deploy(workflow, step)).await,
            _ => return Ok(None),
        };
        match started {
            Ok(()) => Ok(None),
            Err(error) if error.is_refusal() => Ok(Some(Ended::Failed(error.to_string()))),
            Err(Error::Store(StoreError::NotFound(what))) => Ok(Some(Ended::Failed(format!("the {what} is gone")))),
            Err(error) => Err(error),
        }
    }

    async fn start_action(&self, step: &Step, name: &str, trigger: &str, component: Option<&str>) -> Result<()> {
        let (org, body) = (&self.install.org_id, &self.loaded.body);
        let document = self.conductor.document(org, &self.install.app_id, &body.config_id).await?;
        let tree = self.conductor.install_tree(&self.install, &document.config, None).await?;
        let mut hook_env = BTreeMap::new();
        if let Some(component) = component {
            hook_env.insert("COMPONENT_NAME".to_owned(), component.to_owned());
            let (store, app) = (&self.conductor.store, Some(&self.install.app_id));
            if let Ok(found) = store.entity(org, app, EntityKind::Component, component).await {
                hook_env.insert("COMPONENT_ID".to_owned(), found.id);
            }
        }
        let given = self.conductor.store.workflow_given(org, &self.loaded.row.id).await?;
        self.run_action(step, name, trigger, &document, &tree, hook_env, given).await
    }

    /// An action of the app, or a script, of a runbook.
    async fn start_script(&self, step: &Step, name: &str, index: usize) -> Result<()> {
        let (conductor, org, body) = (self.conductor, &self.install.org_id, &self.loaded.body);
        let document = conductor.document(org, &self.install.app_id, &body.config_id).await?;
        let runbook = document.config.runbooks.iter().find(|runbook| runbook.name == name);
        let runbook = runbook.ok_or(StoreError::NotFound("runbook"))?;
        let own = runbook.steps.get(index).ok_or(StoreError::NotFound("step of the runbook"))?;
        let mut given = conductor.store.workflow_given(org, &self.loaded.row.id).await?;
        let asked = runbook_inputs(runbook, &given.runbook_inputs);
        let asked = asked.map_err(JobError::RunbookInputs)?;
        let mut tree = conductor.install_tree(&self.install, &document.config, None).await?;
        let sensitive = runbook.input.iter().filter(|input| input.sensitive);
        tree.sensitive.extend(sensitive.filter_map(|input| asked.get(&input.name).cloned()));
        tree.root["runbook_inputs"] = json!(asked);
        if let Some(action) = &own.action_name {
            let env = crate::render(&json!(own.env_vars), &tree.root);
            if let Some(problem) = env.problems.first() {
                let problem = tree.masked(&problem.message);
                return Err(JobError::UnrenderableEnv { step: own.name.clone(), problem }.into());
            }
            let env: BTreeMap<String, String> = serde_json::from_value(env.value).unwrap_or_default();
            given.env_vars = env.into_iter().chain(given.env_vars).collect();
            return self.run_action(step, action, "runbook", &document, &tree, BTreeMap::new(), given).await;
        }
        let synced = SyncedAction {
            id: None,
            context: None,
            action: script(own),
            local_sources: BTreeMap::new(),
            trigger_type: "runbook".to_owned(),
            run_env: given.env_vars,
            hook_env: self.flow_env(step),
            step_id: step.id.clone(),
            secrets: given.masked_values,
        };
        let runner = conductor.store.runner(org, self.install.runner_id.as_str()).await?;
        let actor = self.loaded.row.created_by.as_str();
        conductor.run_synced_action(self.install.clone(), &runner, synced, &tree, actor).await
    }

    /// What every script of a workflow is told about it.
    fn flow_env(&self, step: &Step) -> BTreeMap<String, String> {
        let id = self.loaded.row.id.to_string();
        let told = [
            ("FLOW_TYPE", Some(self.loaded.row.kind.clone())),
            ("FLOW_ID", Some(id.clone())),
            ("INSTALL_WORKFLOW_ID", Some(id)),
            (model::env::ROLE, step.role.clone()),
        ];
        told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    #[expect(clippy::too_many_arguments)]
    async fn run_action(
        &self,
        step: &Step,
        name: &str,
        trigger: &str,
        document: &Document,
        tree: &InstallTree,
        hook_env: BTreeMap<String, String>,
        given: Given,
    ) -> Result<()> {
        let (conductor, org) = (self.conductor, &self.install.org_id);
        let sections = conductor.store.sections(org, &self.loaded.body.config_id).await?;
        let of = |section: &store::Section| section.kind == EntityKind::Action.section() && section.name == name;
        let section = sections.into_iter().find(of).ok_or(StoreError::NotFound("action"))?;
        let action = document.config.actions.iter().find(|action| action.name == name).cloned();
        let context = action.as_ref().and_then(|action| action.kubernetes_context.as_deref());
        let synced = SyncedAction {
            context: context_component(&document.config, context),
            id: Some((section.entity_id.unwrap_or_default(), section.id)),
            action: action.ok_or(StoreError::NotFound("action"))?,
            local_sources: document.local_sources.clone(),
            trigger_type: trigger.to_owned(),
            run_env: given.env_vars,
            hook_env: self.flow_env(step).into_iter().chain(hook_env).collect(),
            step_id: step.id.clone(),
            secrets: given.masked_values,
        };
        let runner = conductor.store.runner(org, self.install.runner_id.as_str()).await?;
        let actor = self.loaded.row.created_by.as_str();
        conductor.run_synced_action(self.install.clone(), &runner, synced, tree, actor).await
    }
}
