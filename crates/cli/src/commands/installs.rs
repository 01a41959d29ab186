//! Products running for customers.

use api::client::Client;
use api::control::{Install, Location, Project, Region, UpdateInstallInputs};

use crate::args::{CreateInstall, Installs};
use crate::commands::{Kind, explain};
use crate::error::Result;
use crate::output::{Output, cell, dim, status, strong};

pub(super) async fn run(client: &Client, out: &Output, command: Installs) -> Result<u8> {
    match command {
        Installs::List { app } => list(client, out, app.as_deref()).await?,
        Installs::Create(args) => create(client, out, args).await?,
        Installs::Get { name } => match client.install(&name).await {
            Ok(install) => show(out, &install)?,
            Err(error) => return Err(explain(client, Kind::Install, &name, error).await),
        },
        Installs::Inputs { name, set } => inputs(client, out, &name, set).await?,
    }
    Ok(0)
}

async fn list(client: &Client, out: &Output, app: Option<&str>) -> Result<()> {
    let installs = match client.installs(app).await {
        Ok(installs) => installs,
        Err(error) => return Err(explain(client, Kind::App, app.unwrap_or_default(), error).await),
    };
    let headers = ["NAME", "ID", "?CLOUD", "RUNNER", "?CREATED"];
    out.list(&installs, "no installs yet; `ferry installs create NAME --app APP` makes one", &headers, |install| {
        let created = dim(out.time(install.created_at));
        vec![strong(&install.name), cell(&install.id), cell(place(install)), status(&install.runner_status), created]
    })?;
    Ok(())
}

async fn create(client: &Client, out: &Output, args: CreateInstall) -> Result<()> {
    let gcp_account = args.gcp_project.zip(args.gcp_region).map(|(project_id, region)| Project { project_id, region });
    let body = api::control::CreateInstall {
        name: args.name,
        aws_account: args.aws_region.map(|region| Region { region }),
        azure_account: args.azure_location.map(|location| Location { location }),
        gcp_account,
        inputs: args.inputs.into_iter().collect(),
    };
    let install = match client.create_install(&args.app, &body).await {
        Ok(install) => install,
        Err(error) => return Err(explain(client, Kind::App, &args.app, error).await),
    };
    if !out.json {
        out.success(&format!("install `{}` is created", install.name));
    }
    show(out, &install)?;
    if !out.json && install.runner_status == "pending" {
        out.hint(&format!(
            "`ferry runners join-command {}` makes the command that starts its runner",
            install.runner_id
        ));
    }
    Ok(())
}

async fn inputs(client: &Client, out: &Output, name: &str, set: Vec<(String, String)>) -> Result<()> {
    let changed = !set.is_empty();
    let answer = if changed {
        let body =
            UpdateInstallInputs { inputs: set.into_iter().collect(), deploy_dependents: false, role: String::new() };
        client.update_install_inputs(name, &body).await
    } else {
        client.install_inputs(name).await
    };
    let inputs = match answer {
        Ok(inputs) => inputs,
        Err(error) => return Err(explain(client, Kind::Install, name, error).await),
    };
    if out.json {
        return Ok(out.json(&inputs)?);
    }
    if changed {
        out.success(&format!("version {} of the inputs is in force", inputs.version));
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
    Ok(())
}

fn place(install: &Install) -> String {
    let cloud = &install.cloud_platform;
    match (&install.aws_account, &install.azure_account, &install.gcp_account) {
        (Some(aws), _, _) => format!("{cloud} {}", aws.region),
        (_, Some(azure), _) => format!("{cloud} {}", azure.location),
        (_, _, Some(gcp)) => format!("{cloud} {}/{}", gcp.project_id, gcp.region),
        (None, None, None) => cloud.clone(),
    }
}

fn show(out: &Output, install: &Install) -> Result<()> {
    if out.json {
        return Ok(out.json(install)?);
    }
    out.pairs(vec![
        ("name", strong(&install.name)),
        ("id", cell(&install.id)),
        ("app", cell(&install.app_id)),
        ("cloud", cell(place(install))),
        ("runner", cell(&install.runner_id)),
        ("runner status", status(&install.runner_status)),
        ("created", cell(out.time(install.created_at))),
    ])?;
    Ok(())
}
