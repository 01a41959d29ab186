//! Owns the commands about apps and their files.
//! `commands.rs` calls them.
//! No rules of the app format: those are in `config`.
//!
//! Products.

pub(crate) mod app_files;
pub(crate) mod modules;
pub(crate) mod policies;

use std::path::Path;

use api::client::{Client, ClientError};
use api::control::{App, AppConfig, CreateApp, CreateAppVariable, UpdateApp};

use crate::args::{Apps, Global, Variables, Yes};
use crate::commands::{Kind, confirm, connect, explain, suggestion};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, dim, id, status, strong};

pub(crate) async fn run(global: &Global, out: &Output, command: Apps) -> Result<u8> {
    match command {
        // These need no control plane, or find out by themselves.
        Apps::Init { dir } => app_files::init(out, &dir)?,
        Apps::Validate(args) => return app_files::validate(out, &args).await,
        Apps::Graph { dir, format } => return app_files::graph(out, &dir, format).await,
        Apps::Sync(args) => return app_files::sync(global, out, &args).await,
        Apps::Diff { app, from: None, to: None, with } if Path::new(&app).is_dir() => {
            return app_files::diff_directory(global, out, Path::new(&app), with).await;
        }
        other => online(&connect(global).await?, out, other).await?,
    }
    Ok(0)
}

async fn online(client: &Client, out: &Output, command: Apps) -> Result<()> {
    match command {
        Apps::Init { .. } | Apps::Validate(_) | Apps::Graph { .. } | Apps::Sync(_) => {}
        Apps::List => list(client, out).await?,
        Apps::Create { name, description } => {
            let app = client.create_app(&CreateApp { name, display_name: String::new(), description }).await?;
            if !out.json {
                out.success(&format!("app `{}` is created", app.name));
            }
            show(out, &app)?;
        }
        Apps::Get { name } => show(out, &named(client, &name, client.app(&name).await).await?)?,
        Apps::Configs { app, limit } => {
            let mut found = named(client, &app, client.app_configs(&app, limit.fetch()).await).await?;
            let more = limit.cut(&mut found);
            configs(out, &app, &found)?;
            out.more(more);
        }
        Apps::Diff { app, from, to, with: _ } => diff(client, out, &app, from, to).await?,
        Apps::Render { install, component, action } => render(client, out, &install, component, action).await?,
        Apps::Components { app } => components(client, out, &app).await?,
        Apps::Retire { app, what, yes } => retire(client, out, &app, &what, yes).await?,
        Apps::Variables(command) => variables(client, out, command).await?,
        Apps::Rename { app, to } => {
            let body = UpdateApp {
                name: Some(to),
                display_name: None,
                description: None,
                config_repo: None,
                config_directory: None,
                label_colors: None,
                slack_webhook_url: None,
            };
            let renamed = named(client, &app, client.update_app(&app, &body).await).await?;
            if !out.json {
                out.success(&format!("app `{app}` is now `{}`", renamed.name));
                out.hint("the app's directory should have the same name, or be synced with `--app`");
            }
            show(out, &renamed)?;
        }
        Apps::Delete { app, yes } => {
            let question = format!("delete app `{app}` and all its versions?");
            confirm(out, yes, &format!("deleting app `{app}`"), &question)?;
            named(client, &app, client.delete_app(&app).await).await?;
            done(out, &format!("app `{app}` is deleted"))?;
        }
    }
    Ok(())
}

/// An answer about an app; a name that does not exist gets a guess.
async fn named<T>(client: &Client, app: &str, answer: std::result::Result<T, ClientError>) -> Result<T> {
    match answer {
        Ok(value) => Ok(value),
        Err(error) => Err(explain(client, Kind::App, app, error).await),
    }
}

fn done(out: &Output, text: &str) -> Result<()> {
    if out.json {
        return Ok(out.json(&serde_json::json!({ "ok": true }))?);
    }
    out.success(text);
    Ok(())
}

async fn list(client: &Client, out: &Output) -> Result<()> {
    let apps = client.apps().await?;
    let headers = ["NAME", "ID", "?STATUS", "?CREATED", "?DESCRIPTION"];
    let nothing = "no apps yet; run `ferry apps init DIR` to write an example, then `ferry apps sync DIR`";
    out.list(&apps, nothing, &headers, |app| {
        let created = dim(out.time(app.created_at));
        vec![strong(&app.name), id(&app.id), status(&app.status), created, cell(&app.description)]
    })?;
    Ok(())
}

fn configs(out: &Output, app: &str, found: &[AppConfig]) -> Result<()> {
    let headers = ["VERSION", "ID", "STATUS", "?COMPONENTS", "?ACTIONS", "?CREATED", "?NOTE"];
    let nothing = format!("app `{app}` has no version yet; run `ferry apps sync DIR` to create one");
    out.list(found, &nothing, &headers, |config| {
        let version = if config.version == 0 { "draft".to_owned() } else { config.version.to_string() };
        vec![
            strong(version),
            id(&config.stamp.id),
            status(&config.status),
            cell(config.component_ids.len()),
            cell(config.action_ids.len()),
            dim(out.time(config.stamp.created_at)),
            cell(&config.status_description),
        ]
    })?;
    Ok(())
}

async fn diff(client: &Client, out: &Output, app: &str, from: Option<String>, to: Option<String>) -> Result<()> {
    let to = to.unwrap_or_else(|| "latest".into());
    let from = match from {
        Some(from) => from,
        None => {
            let versions = named(client, app, client.app_configs(app, 100).await).await?;
            let before = versions.iter().filter(|c| c.version > 0).nth(1);
            before.map(|c| c.version.to_string()).ok_or_else(|| {
                CliError::new(Exit::NotFound, format!("app `{app}` has no version before the active one"))
            })?
        }
    };
    let changes = named(client, app, client.app_config_diff(app, &to, &from).await).await?;
    if out.json {
        return Ok(out.json(&changes)?);
    }
    if changes.is_empty() {
        out.note("no difference");
    }
    app_files::show_changes(out, &changes)
}

async fn render(
    client: &Client,
    out: &Output,
    install: &str,
    component: Option<String>,
    action: Option<String>,
) -> Result<()> {
    let (kind, name) = match (component, action) {
        (Some(name), _) => ("component", name),
        (None, Some(name)) => ("action", name),
        (None, None) => return Err(CliError::usage("name a component, or an action with `--action`")),
    };
    let rendered = match client.render(install, kind, &name).await {
        Ok(rendered) => rendered,
        Err(error) => return Err(explain(client, Kind::Install, install, error).await),
    };
    if out.json {
        return Ok(out.json(&rendered)?);
    }
    out.json(&rendered.rendered)?;
    for problem in &rendered.problems {
        out.warn(&format!("{}: {}", problem.path, problem.message));
    }
    Ok(())
}

async fn components(client: &Client, out: &Output, app: &str) -> Result<()> {
    let found = named(client, app, client.components(app).await).await?;
    let headers = ["NAME", "TYPE", "ID", "?VERSIONS", "?AFTER"];
    out.list(&found, &format!("app `{app}` has no components"), &headers, |component| {
        vec![
            strong(&component.name),
            cell(&component.component_type),
            id(&component.stamp.id),
            cell(component.config_versions),
            cell(component.dependencies.join(", ")),
        ]
    })?;
    Ok(())
}

async fn retire(client: &Client, out: &Output, app: &str, what: &str, yes: Yes) -> Result<()> {
    let components = named(client, app, client.components(app).await).await?;
    let actions = client.actions(app).await?;
    let component = components.iter().find(|c| c.name == what || c.stamp.id == what);
    let action = actions.iter().find(|a| a.name == what || a.stamp.id == what);
    let (kind, id) = match (component, action) {
        (Some(component), None) => ("component", &component.stamp.id),
        (None, Some(action)) => ("action", &action.stamp.id),
        (Some(_), Some(_)) => {
            let text = format!("`{what}` names a component and an action of app `{app}`");
            return Err(CliError::new(Exit::Conflict, text).hint("use its id"));
        }
        (None, None) => {
            let names: Vec<String> =
                components.iter().map(|c| c.name.clone()).chain(actions.iter().map(|a| a.name.clone())).collect();
            let error = CliError::new(Exit::NotFound, format!("app `{app}` has no component or action `{what}`"));
            return Err(match suggestion(what, &names) {
                Some(hint) => error.hint(hint),
                None => error,
            });
        }
    };
    let question = format!("retire {kind} `{what}` of app `{app}`?");
    confirm(out, yes, &format!("retiring {kind} `{what}`"), &question)?;
    match kind {
        "component" => client.retire_component(id).await?,
        _ => client.retire_action(id).await?,
    };
    done(out, &format!("{kind} `{what}` is retired"))
}

async fn variables(client: &Client, out: &Output, command: Variables) -> Result<()> {
    match command {
        Variables::List { app } => {
            let found = named(client, &app, client.variables(&app).await).await?;
            out.list(&found, &format!("app `{app}` has no variables"), &["NAME", "LENGTH", "?CHANGED"], |variable| {
                let changed = dim(out.time(variable.stamp.updated_at));
                vec![strong(&variable.name), cell(variable.length), changed]
            })?;
        }
        Variables::Set { app, mut variables, stdin } => {
            if let Some(name) = stdin {
                let mut value = String::new();
                std::io::Read::read_to_string(&mut std::io::stdin(), &mut value)?;
                variables.push((name, value.trim_end_matches(['\r', '\n']).to_owned()));
            }
            let count = variables.len();
            for (name, value) in variables {
                named(client, &app, client.set_variable(&app, &CreateAppVariable { name, value }).await).await?;
            }
            done(out, &format!("{count} set; templates read them as `.nuon.app.variables.NAME`"))?;
        }
        Variables::Unset { app, name } => {
            named(client, &app, client.delete_variable(&app, &name).await).await?;
            done(out, &format!("variable `{name}` is deleted"))?;
        }
    }
    Ok(())
}

fn show(out: &Output, app: &App) -> Result<()> {
    if out.json {
        return Ok(out.json(app)?);
    }
    out.pairs(vec![
        ("name", strong(&app.name)),
        ("id", cell(&app.id)),
        ("status", status(&app.status)),
        ("description", cell(&app.description)),
        ("created", cell(out.moment(app.created_at))),
    ])?;
    Ok(())
}
