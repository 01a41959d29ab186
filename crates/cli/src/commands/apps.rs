//! Products.

use api::client::Client;
use api::control::{App, CreateApp};

use crate::args::Apps;
use crate::commands::{Kind, explain};
use crate::error::Result;
use crate::output::{Output, cell, dim, status, strong};

pub(super) async fn run(client: &Client, out: &Output, command: Apps) -> Result<u8> {
    match command {
        Apps::List => {
            let apps = client.apps().await?;
            let headers = ["NAME", "ID", "?STATUS", "?CREATED", "?DESCRIPTION"];
            out.list(&apps, "no apps yet; `ferry apps create NAME` makes one", &headers, |app| {
                let created = dim(out.time(app.created_at));
                vec![strong(&app.name), cell(&app.id), status(&app.status), created, cell(&app.description)]
            })?;
        }
        Apps::Create { name, description } => {
            let app = client.create_app(&CreateApp { name, display_name: String::new(), description }).await?;
            if !out.json {
                out.success(&format!("app `{}` is created", app.name));
            }
            show(out, &app)?;
        }
        Apps::Get { name } => match client.app(&name).await {
            Ok(app) => show(out, &app)?,
            Err(error) => return Err(explain(client, Kind::App, &name, error).await),
        },
    }
    Ok(0)
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
        ("created", cell(out.time(app.created_at))),
    ])?;
    Ok(())
}
