//! Inputs of installs: whether they are what the app declares, and what follows from a change.

use std::collections::BTreeMap;

use config::AppConfig;
use engine::WorkflowKind;
use model::overrides::PREFIX;
use model::{InputsId, WorkflowId};
use store::{Install, InstallInputs};

use crate::apps::effective_inputs;
use crate::error::{InstallError, Result};
use crate::installs::overrides;
use crate::{By, Conductor, NewWorkflow};

/// How many mistakes, and names, are told at once.
const TOLD: usize = 20;

/// Whether the inputs that an install gives are what its app declares; every message says what to do.
fn check(config: &AppConfig, given: &BTreeMap<String, String>, complete: bool) -> Result<(), InstallError> {
    let mut wrong = Vec::new();
    for (name, value) in given {
        if name.starts_with(PREFIX) {
            wrong.extend(overrides::wrong(config, name, value));
            continue;
        }
        match config.inputs.iter().find(|input| input.name == *name) {
            None => wrong.push(format!("the app declares no input `{name}`")),
            Some(input) if !value.is_empty() => {
                if let Err(why) = input.accepts(value) {
                    wrong.push(format!("input `{name}`: the value {why}"));
                }
            }
            Some(input) if input.required && !input.user_configurable && input.default.is_none() && !complete => {
                wrong.push(format!("input `{name}` is required, and has no default to take"));
            }
            Some(_) => {}
        }
    }
    if complete {
        let effective = effective_inputs(config, given);
        let missing = |input: &&config::Input| {
            let empty = effective.get(&input.name).is_none_or(String::is_empty);
            input.required && !input.user_configurable && empty
        };
        let missing = config.inputs.iter().filter(missing);
        wrong.extend(missing.map(|input| format!("input `{}` is required: {}", input.name, input.description)));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let more = wrong.len().saturating_sub(TOLD);
    wrong.truncate(TOLD);
    if more > 0 {
        wrong.push(format!("and {more} more"));
    }
    let known = config.inputs.iter().map(|input| input.name.clone()).take(TOLD).collect();
    Err(InstallError::Inputs { wrong, known })
}

impl Conductor {
    /// The config that an install is at; an app that was never synced declares nothing.
    pub async fn declared(&self, install: &Install) -> Result<AppConfig> {
        let document = self.document_of(install).await?;
        Ok(document.map(|document| document.config.clone()).unwrap_or_default())
    }

    /// The inputs of an install that is being created.
    pub(super) async fn first_inputs(
        &self,
        install: &Install,
        given: BTreeMap<String, String>,
    ) -> Result<InstallInputs> {
        check(&self.declared(install).await?, &given, true)?;
        let id = InputsId::new(install.created_at, self.random_u128());
        Ok(InstallInputs::first(id, install, given))
    }

    /// Changes inputs of an install: those that are named, the others stay. An empty value takes the app's default again. With
    /// `deploy`, what reads those that changed is deployed.
    pub async fn update_inputs(
        &self,
        by: &By,
        install: &Install,
        given: BTreeMap<String, String>,
        deploy: bool,
    ) -> Result<(InstallInputs, Option<WorkflowId>)> {
        check(&self.declared(install).await?, &given, false)?;
        let before = self.store.current_inputs(&by.org, &install.id).await?;
        let version = before.as_ref().map_or(0, |b| b.version) + 1;
        let mut values = before.map(|b| b.values).unwrap_or_default();
        let changed = given.iter().filter(|(name, value)| values.get(*name).map_or("", String::as_str) != *value);
        let changed: Vec<String> = changed.map(|(name, _)| name.clone()).collect();
        values.extend(given);
        values.retain(|_, value| !value.is_empty());
        let now = self.now();
        let inputs = InstallInputs {
            id: InputsId::new(now, self.random_u128()),
            install_id: install.id.clone(),
            version,
            values,
            created_by: by.account.clone(),
            created_at: now,
        };
        let changed = if deploy { changed } else { Vec::new() };
        let workflow = self.write_inputs(install, inputs.clone(), changed).await?;
        Ok((inputs, workflow))
    }

    /// Writes inputs, and together with them the workflow that deploys what reads those that changed. What was never deployed
    /// needs none.
    pub(super) async fn write_inputs(
        &self,
        install: &Install,
        inputs: InstallInputs,
        changed: Vec<String>,
    ) -> Result<Option<WorkflowId>> {
        if changed.is_empty() || !self.is_deployed(install).await? {
            self.store.put_inputs(&install.org_id, inputs).await?;
            return Ok(None);
        }
        let actor = inputs.created_by.clone();
        let mut new = NewWorkflow::new(WorkflowKind::InputUpdate { inputs: changed });
        new.inputs = Some(inputs);
        self.start_workflow(install, new, &actor, None).await.map(Some)
    }
}
