//! Runbooks: sequences of steps that people start.

use std::collections::BTreeMap;

use api::client::Client;
use serde_json::json;

use crate::args::Runbooks;
use crate::commands::{Kind, explain, suggestion, workflows};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, dim, strong};

pub(crate) async fn run(client: &Client, out: &Output, command: Runbooks) -> Result<u8> {
    match command {
        Runbooks::List { install } => list(client, out, &install).await?,
        Runbooks::Get { name, install } => get(client, out, &install, &name).await?,
        Runbooks::Run { name, install, input, env, start } => {
            // A name that does not exist is told with a guess.
            find(client, &install, &name).await?;
            let inputs: BTreeMap<String, String> = input.into_iter().collect();
            let env: BTreeMap<String, String> = env.into_iter().collect();
            let body = json!({ "type": "runbook_run", "runbook": name, "runbook_inputs": inputs, "run_env_vars": env });
            return workflows::start(client, out, &install, body, &start).await;
        }
    }
    Ok(0)
}

async fn find(client: &Client, install: &str, name: &str) -> Result<api::control::InstallRunbook> {
    match client.runbook(install, name).await {
        Ok(found) => Ok(found),
        Err(error) if error.status() == Some(404) && error.to_string().contains("runbook") => {
            let all = client.runbooks(install).await?;
            let names: Vec<String> = all.into_iter().filter_map(|known| Some(known.runbook?.name)).collect();
            let told = CliError::new(Exit::NotFound, format!("the app of install `{install}` has no runbook `{name}`"));
            Err(match suggestion(name, &names) {
                Some(hint) => told.hint(hint),
                None => told,
            })
        }
        Err(error) => Err(explain(client, Kind::Install, install, error).await),
    }
}

async fn list(client: &Client, out: &Output, install: &str) -> Result<()> {
    let found = match client.runbooks(install).await {
        Ok(found) => found,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    out.list(&found, "the app of this install has no runbooks", &["NAME", "STEPS", "?DESCRIPTION"], |known| {
        let runbook = known.runbook.as_ref();
        let steps = runbook.and_then(|runbook| runbook.configs.first()).map_or(0, |config| config.steps.len());
        let text = |of: fn(&api::control::Runbook) -> &String| runbook.map(of).cloned().unwrap_or_default();
        vec![strong(text(|runbook| &runbook.name)), cell(steps), dim(text(|runbook| &runbook.description))]
    })?;
    Ok(())
}

async fn get(client: &Client, out: &Output, install: &str, name: &str) -> Result<()> {
    let found = find(client, install, name).await?;
    if out.json {
        return Ok(out.json(&found)?);
    }
    let Some(runbook) = found.runbook else { return Ok(()) };
    out.pairs(vec![("runbook", strong(&runbook.name)), ("description", cell(&runbook.description))])?;
    let Some(config) = runbook.configs.first() else { return Ok(()) };
    let inputs = config.inputs.iter().map(|input| {
        let marks = [(input.required, "required"), (input.sensitive, "sensitive")];
        let note: Vec<&str> = marks.iter().filter(|(on, _)| *on).map(|(_, note)| *note).collect();
        vec![strong(&input.name), cell(&input.description), cell(&input.default), dim(note.join(", "))]
    });
    if !config.inputs.is_empty() {
        out.table(&["INPUT", "WHAT FOR", "DEFAULT", "?NOTE"], inputs.collect())?;
    }
    let steps = config.steps.iter().map(|step| {
        let about = [&step.component_name, &step.action_name, &step.command];
        let about = about.into_iter().find(|text| !text.is_empty()).cloned().unwrap_or_default();
        vec![strong(&step.name), cell(&step.r#type), dim(about)]
    });
    out.table(&["STEP", "TYPE", "?ABOUT"], steps.collect())?;
    Ok(())
}
