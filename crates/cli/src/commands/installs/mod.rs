//! Owns the commands about installs, install files and drift.
//! `commands.rs` calls them.
//! No HTTP but through the client.
//!
//! Products running for customers.

pub(crate) mod drift;
mod health;
pub(crate) mod install_files;
pub(crate) mod install_views;
mod overrides;

use std::collections::BTreeMap;
use std::io::Read as _;

use api::ErrorCode;
use api::client::Client;
use api::control::{
    AddInstallLabels, Install, Location, Project, Region, RemoveInstallLabels, UpdateInstall, UpdateInstallInputs,
    Workflow,
};
use model::labels::Labels;
use serde_json::json;

use crate::args::{CreateInstall, Installs, Label, Rollback, SetInstall, Teardown};
use crate::commands::{Kind, ask, confirm, explain, workflows};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, dim, id, status, strong};

pub(crate) async fn run(client: &Client, out: &Output, command: Installs) -> Result<u8> {
    match command {
        Installs::List { app, selector } => list(client, out, app.as_deref(), selector.as_deref()).await?,
        Installs::Label { name, labels } => label(client, out, &name, labels).await?,
        Installs::Create(args) => create(client, out, args).await?,
        Installs::Sync(args) => return install_files::sync(client, out, args).await,
        Installs::Export { name } => match client.install_file(&name).await {
            Ok(text) if out.json => out.json(&json!({ "name": name, "file": text }))?,
            Ok(text) => out.stdout_bytes(text.as_bytes())?,
            Err(error) => return Err(explain(client, Kind::Install, &name, error).await),
        },
        Installs::Get { name } => match client.install(&name).await {
            Ok(install) => {
                show(client, out, &install).await?;
                if !out.json {
                    out.line("")?;
                    install_views::components(client, out, &name).await?;
                }
            }
            Err(error) => return Err(explain(client, Kind::Install, &name, error).await),
        },
        Installs::Inputs { name, set, set_file, set_stdin, no_deploy, yes } => {
            let set = given_inputs(set, set_file, set_stdin)?;
            if set.is_empty() && (no_deploy || yes.given()) {
                return Err(CliError::usage("no input is given: use `--set`, `--set-file` or `--set-stdin`"));
            }
            return inputs(client, out, &name, set, no_deploy, yes.given()).await;
        }
        Installs::Overrides(args) => return overrides::run(client, out, args).await,
        Installs::State { name, version, versions } => state(client, out, &name, version, versions).await?,
        Installs::History { name, limit } => workflows::newest(client, out, Some(&name), limit).await?,
        Installs::Components { name } => install_views::components(client, out, &name).await?,
        Installs::Secrets { name } => install_views::secrets(client, out, &name).await?,
        Installs::SyncSecrets(args) => {
            return workflows::start(client, out, &args.name, json!({ "type": "sync_secrets" }), &args.start).await;
        }
        Installs::Schedules { name } => install_views::schedules(client, out, &name).await?,
        Installs::Policies { name, limit } => install_views::policies(client, out, &name, limit).await?,
        Installs::Forget { name, force, yes } => install_views::forget(client, out, &name, force, yes).await?,
        Installs::EraseTelemetry { name, yes } => {
            let question = format!("delete the telemetry of install `{name}` permanently?");
            confirm(out, yes, &format!("deleting the telemetry of install `{name}`"), &question)?;
            let runner = client.install(&name).await?.runner_id;
            let stream = client.delete_log(&model::log::telemetry_stream(&runner)).await?;
            if out.json {
                out.json(&stream)?;
            } else {
                out.success(&format!("the telemetry of install `{name}` is deleted"));
            }
        }
        Installs::Set(args) => set(client, out, args).await?,
        Installs::Provision(args) => {
            return workflows::start(client, out, &args.name, json!({ "type": "provision" }), &args.start).await;
        }
        Installs::Deploy(args) => {
            let body = match &args.component {
                Some(component) => {
                    json!({ "type": "manual_deploy", "component": component, "dependents": args.dependents })
                }
                None => json!({ "type": "deploy_components" }),
            };
            return workflows::start(client, out, &args.name, body, &args.start).await;
        }
        Installs::Teardown(args) => return teardown(client, out, args).await,
        Installs::Deprovision(args) => {
            let body = json!({ "type": "deprovision", "continue_on_error": args.continue_on_error });
            return workflows::start(client, out, &args.name, body, &args.start).await;
        }
        Installs::Reprovision(args) => {
            let kind = if args.sandbox { "reprovision_sandbox" } else { "reprovision" };
            let body = json!({ "type": kind, "skip_components": args.skip_components });
            return workflows::start(client, out, &args.name, body, &args.start).await;
        }
        Installs::Rollback(args) => return rollback(client, out, args).await,
        Installs::Health(args) => return health::run(client, out, &args).await,
        Installs::Drift(args) => return drift::run(client, out, &args).await,
    }
    Ok(0)
}

/// Inputs from the command line, from files and from standard input. The newline that ends a file is not part of the value.
fn given_inputs(
    mut given: Vec<(String, String)>,
    files: Vec<(String, String)>,
    stdin: Option<String>,
) -> Result<Vec<(String, String)>> {
    let value = |text: String| text.strip_suffix('\n').map(str::to_owned).unwrap_or(text);
    for (name, file) in files {
        given.push((name, value(fs_err::read_to_string(&file).map_err(|e| CliError::usage(e.to_string()))?)));
    }
    if let Some(name) = stdin {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        if text.is_empty() {
            let error = CliError::usage(format!("stdin was empty, so input `{name}` was not changed"));
            return Err(error.hint(format!("to clear the input, use `--set {name}=`")));
        }
        given.push((name, value(text)));
    }
    Ok(given)
}

/// Tears down all components, or one; where others need that one, a person says what shall become of them.
async fn teardown(client: &Client, out: &Output, args: Teardown) -> Result<u8> {
    let Some(component) = &args.component else {
        let body = json!({ "type": "teardown_components", "continue_on_error": args.continue_on_error });
        return workflows::start(client, out, &args.name, body, &args.start).await;
    };
    let body = |with_dependents: bool| {
        let force = args.force;
        json!({ "type": "teardown_component", "component": component, "with_dependents": with_dependents, "force": force })
    };
    let refused = match workflows::start(client, out, &args.name, body(args.with_dependents), &args.start).await {
        Err(error) if error.code.as_deref() == Some(ErrorCode::HasDependents.as_str()) => error,
        other => return other,
    };
    let hint =
        format!("pass `--with-dependents` to tear them down first, or `--force` to tear down only `{component}`");
    // `--yes` approves plans; which components go is for the other flags to say.
    if args.start.yes.given() || !out.can_ask() {
        return Err(refused.hint(hint));
    }
    ask(out, &format!("{}. Tear them down first, then `{component}`?", refused.message))?;
    workflows::start(client, out, &args.name, body(true), &args.start).await
}

/// Deploys an earlier version of the app.
async fn rollback(client: &Client, out: &Output, args: Rollback) -> Result<u8> {
    let to = match args.to {
        Some(to) => to,
        None => {
            let done = match client.workflows(Some(&args.name), 100).await {
                Ok(found) => found,
                Err(error) => return Err(explain(client, Kind::Install, &args.name, error).await),
            };
            let deploys = [
                "provision",
                "reprovision",
                "reprovision_sandbox",
                "deploy_components",
                "manual_deploy",
                "input_update",
            ];
            // The newest deploy is the one to go back from, however it ended; what it goes back to must have succeeded.
            let deployed = |w: &&Workflow| !w.plan_only && w.config_version > 0 && deploys.contains(&w.r#type.as_str());
            let mut tried = done.iter().filter(deployed).peekable();
            // It brought no other version: there is none to go back from.
            if let Some(last) = tried.peek().filter(|w| w.r#type == "input_update" && w.status.status != "success") {
                let inputs = last.metadata.get("inputs").and_then(|inputs| inputs.as_array()).into_iter().flatten();
                let names: Vec<&str> = inputs.filter_map(|name| name.as_str()).collect();
                let message = format!(
                    "the last deploy failed and changed only inputs ({}), which a rollback does not change back",
                    names.join(", ")
                );
                let hint = format!(
                    "set them back with `ferry installs inputs {} --set NAME=VALUE`, or name a version: `--to VERSION`",
                    args.name
                );
                return Err(CliError::new(Exit::Conflict, message).hint(hint));
            }
            let now = tried.peek().map(|w| w.config_version);
            let mut versions = tried.filter(|w| w.status.status == "success").map(|w| w.config_version);
            versions.find(|version| Some(*version) < now).ok_or_else(|| {
                CliError::new(Exit::NotFound, "no earlier version was deployed to this install")
                    .hint("pass `--to VERSION`; run `ferry apps configs APP` to list versions")
            })?
        }
    };
    let body = match &args.component {
        Some(component) => json!({ "type": "manual_deploy", "component": component, "config_version": to }),
        None => json!({ "type": "deploy_components", "config_version": to }),
    };
    workflows::start(client, out, &args.name, body, &args.start).await
}

async fn set(client: &Client, out: &Output, args: SetInstall) -> Result<()> {
    let renamed = args.rename.is_some();
    let on = args.enable.into_iter().map(|name| (name, true));
    let body = UpdateInstall {
        name: args.rename.unwrap_or_default(),
        approval_option: args.approvals.unwrap_or_default(),
        component_toggles: on.chain(args.disable.into_iter().map(|name| (name, false))).collect(),
        labels: None,
        metadata: None,
        install_config: None,
    };
    match client.update_install(&args.name, &body).await {
        Ok(install) => {
            show(client, out, &install).await?;
            if renamed && !out.json {
                out.note("renaming deploys nothing; templates that read `.nuon.install.name` see the new name at the next deploy");
            }
            Ok(())
        }
        Err(error) => Err(explain(client, Kind::Install, &args.name, error).await),
    }
}

async fn state(client: &Client, out: &Output, name: &str, version: Option<u64>, versions: bool) -> Result<()> {
    if versions {
        let found = match client.install_state_versions(name, 50).await {
            Ok(found) => found,
            Err(error) => return Err(explain(client, Kind::Install, name, error).await),
        };
        let headers = ["VERSION", "CHANGED", "?WHEN", "?WORKFLOW"];
        return Ok(out.list(&found, "nothing was deployed yet", &headers, |v| {
            vec![strong(v.version), cell(v.parts.join(", ")), dim(out.time(v.created_at)), id(&v.workflow_id).dim()]
        })?);
    }
    match client.install_state(name, version).await {
        Ok(state) => Ok(out.json(&state.state)?),
        Err(error) => Err(explain(client, Kind::Install, name, error).await),
    }
}

/// Sets some labels and removes others.
async fn label(client: &Client, out: &Output, name: &str, labels: Vec<Label>) -> Result<()> {
    let (mut set, mut removed) = (Labels::new(), Vec::new());
    for label in labels {
        match label {
            Label::Set(key, value) => {
                set.insert(key, value);
            }
            Label::Remove(key) => removed.push(key),
        }
    }
    if let Some(key) = removed.iter().find(|key| set.contains_key(*key)) {
        return Err(CliError::usage(format!("label `{key}` can't be set and removed at once")));
    }
    let mut answer = None;
    if !removed.is_empty() {
        answer = Some(client.remove_install_labels(name, &RemoveInstallLabels { keys: removed }).await);
    }
    if !set.is_empty() && answer.as_ref().is_none_or(std::result::Result::is_ok) {
        answer = Some(client.add_install_labels(name, &AddInstallLabels { labels: set }).await);
    }
    match answer {
        Some(Ok(install)) => show(client, out, &install).await,
        Some(Err(error)) => Err(explain(client, Kind::Install, name, error).await),
        None => Ok(()),
    }
}

/// `env=prod, tier=gold`
fn listed(labels: &Labels) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

async fn list(client: &Client, out: &Output, app: Option<&str>, selector: Option<&str>) -> Result<()> {
    let installs = match client.select_installs(app, selector).await {
        Ok(installs) => installs,
        Err(error) => return Err(explain(client, Kind::App, app.unwrap_or_default(), error).await),
    };
    let headers = ["NAME", "ID", "?CLOUD", "RUNNER", "?LABELS", "?CREATED"];
    let none = match selector {
        Some(selector) => &format!("no installs match the labels `{selector}`"),
        None => "no installs yet; create one with `ferry installs create NAME --app APP`",
    };
    out.list(&installs, none, &headers, |install| {
        vec![
            strong(&install.name),
            id(&install.id),
            cell(place(install)),
            status(&install.runner_status),
            cell(listed(&install.labels)),
            dim(out.time(install.created_at)),
        ]
    })?;
    Ok(())
}

async fn create(client: &Client, out: &Output, args: CreateInstall) -> Result<()> {
    let gcp_account = args.gcp_project.zip(args.gcp_region).map(|(project_id, region)| Project { project_id, region });
    let body = api::control::CreateInstall {
        aws_account: args.aws_region.map(|region| Region { region }),
        azure_account: args.azure_location.map(|location| Location { location }),
        gcp_account,
        inputs: given_inputs(args.inputs, args.input_files, args.input_stdin)?.into_iter().collect(),
        labels: args.labels.into_iter().collect(),
        ..api::control::CreateInstall::local(args.name)
    };
    let install = match client.create_install(&args.app, &body).await {
        Ok(install) => install,
        Err(error) => return Err(explain(client, Kind::App, &args.app, error).await),
    };
    if !out.json {
        out.success(&format!("install `{}` is created", install.name));
    }
    show(client, out, &install).await?;
    if !out.json && !install.workflow_id.is_empty() {
        out.hint(&format!(
            "provisioning has started; run `ferry workflows watch {}` to follow it",
            install.workflow_id
        ));
    } else if !out.json && install.runner_status == "pending" {
        out.hint(&format!(
            "run `ferry runners join-command {}` to get the command that starts its runner",
            install.runner_id
        ));
    }
    Ok(())
}

async fn inputs(
    client: &Client,
    out: &Output,
    name: &str,
    set: Vec<(String, String)>,
    no_deploy: bool,
    approve_all: bool,
) -> Result<u8> {
    let changed = !set.is_empty();
    let answer = if changed {
        let body = UpdateInstallInputs {
            inputs: set.into_iter().collect(),
            component_overrides: BTreeMap::new(),
            deploy_dependents: true,
            no_deploy,
            role: String::new(),
        };
        client.update_install_inputs(name, &body).await
    } else {
        client.install_inputs(name).await
    };
    let inputs = match answer {
        Ok(inputs) => inputs,
        Err(error) => return Err(explain(client, Kind::Install, name, error).await),
    };
    if approve_all && !inputs.workflow_id.is_empty() {
        client.approve_all(&inputs.workflow_id).await?;
    }
    if out.json {
        out.json(&inputs)?;
        return Ok(0);
    }
    if changed {
        let next = if inputs.workflow_id.is_empty() { "nothing is deployed" } else { "deploying them" };
        out.success(&format!("inputs are saved as version {}; {next}", inputs.version));
    }
    let app = client.install(name).await?.app_id;
    let declared = client.declared_inputs(app.as_str()).await.map(|d| d.inputs).unwrap_or_default();
    let rows: Vec<_> = declared
        .iter()
        .map(|input| {
            let value = inputs.redacted_values.get(&input.name).cloned().unwrap_or_default();
            let marks = [(input.required, "required"), (input.sensitive, "sensitive")];
            let mut notes: Vec<&str> = marks.iter().filter(|(on, _)| *on).map(|(_, note)| *note).collect();
            if !input.sensitive && !value.is_empty() && value == input.default {
                notes.push("default");
            }
            vec![strong(&input.name), cell(value), dim(&input.input_type), dim(notes.join(", "))]
        })
        .collect();
    if rows.is_empty() {
        out.note("the app declares no inputs");
    } else {
        out.table(&["INPUT", "VALUE", "?TYPE", "?NOTE"], rows)?;
    }
    if !inputs.workflow_id.is_empty() {
        return workflows::watch(client, out, &inputs.workflow_id).await;
    }
    Ok(0)
}

pub(crate) fn place(install: &Install) -> String {
    let cloud = &install.cloud_platform;
    match (&install.aws_account, &install.azure_account, &install.gcp_account) {
        (Some(aws), _, _) => format!("{cloud} {}", aws.region),
        (_, Some(azure), _) => format!("{cloud} {}", azure.location),
        (_, _, Some(gcp)) => format!("{cloud} {}/{}", gcp.project_id, gcp.region),
        (None, None, None) => cloud.clone(),
    }
}

/// Which version of the app the next change brings.
fn versions(install: &Install) -> String {
    match (install.kept_at_version, install.latest_version) {
        (Some(kept), Some(latest)) if kept < latest => {
            format!("{kept}, kept by a rollback; run `ferry installs deploy {}` to deploy {latest}", install.name)
        }
        (Some(version), _) | (None, Some(version)) => format!("{version} (latest)"),
        (None, None) => String::new(),
    }
}

async fn show(client: &Client, out: &Output, install: &Install) -> Result<()> {
    if out.json {
        return Ok(out.json(install)?);
    }
    // People know apps by their names.
    let app = client.app(install.app_id.as_str()).await.map_or_else(|_| install.app_id.to_string(), |app| app.name);
    out.pairs(vec![
        ("name", strong(&install.name)),
        ("id", cell(&install.id)),
        ("app", cell(app)),
        ("cloud", cell(place(install))),
        ("runner", cell(&install.runner_id)),
        ("runner status", status(&install.runner_status)),
        ("sandbox", status(&install.sandbox_status)),
        ("components", status(&install.composite_component_status)),
        ("labels", cell(listed(&install.labels))),
        ("approvals", cell(install.install_config.as_ref().map_or("", |config| config.approval_option.as_str()))),
        ("managed by", cell(install.metadata.as_ref().map_or("", |metadata| metadata.managed_by.as_str()))),
        ("app version", cell(versions(install))),
        ("created", cell(out.moment(install.created_at))),
    ])?;
    if !install.undeployed_inputs.is_empty() {
        out.warn(&format!("these inputs are saved but not deployed: {}", install.undeployed_inputs.join(", ")));
        let name = &install.name;
        out.hint(&match install.kept_at_version.filter(|kept| Some(*kept) < install.latest_version) {
            Some(kept) => {
                format!("run `ferry installs rollback {name} --to {kept}` to deploy them with version {kept}")
            }
            None => format!("run `ferry installs deploy {name}` to deploy them"),
        });
    }
    Ok(())
}
