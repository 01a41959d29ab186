//! Vendors.

use api::client::Client;
use api::control::{CreateOrg, Org, UpdateLogKeeping};

use crate::args::{Global, Orgs};
use crate::commands::people::members;
use crate::commands::{connect, sign_in, suggestion, target};
use crate::context::{self, Target};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, bytes, cell, dim, id, status, strong};

pub(crate) async fn run(global: &Global, out: &Output, command: Orgs) -> Result<u8> {
    let target = target(global)?;
    let client = sign_in(&target)?;
    match command {
        Orgs::List => {
            let orgs = client.orgs().await?;
            let selected = |org: &Org| [org.id.as_str(), &org.name].map(Some).contains(&target.org.as_deref());
            out.list(
                &orgs,
                "no orgs yet; create one with `ferry orgs create NAME`",
                &["", "NAME", "ID", "?CREATED"],
                |org| {
                    let mark = if selected(org) { "*" } else { "" };
                    vec![cell(mark), strong(&org.name), id(&org.id), dim(out.time(org.created_at))]
                },
            )?;
        }
        Orgs::Create { name, no_select, simulated, simulation } => {
            let simulation = simulated.then(|| simulation.into_iter().collect());
            let org = client.create_org(&CreateOrg { name, use_sandbox_mode: simulated, simulation }).await?;
            let selected = if no_select { None } else { select(&target, &org)? };
            if out.json {
                out.json(&org)?;
            } else {
                out.success(&format!("org `{}` is created", org.name));
                tell_selected(out, &org, selected.as_deref());
                show(out, &org)?;
            }
        }
        Orgs::Get { name } => {
            let org = match name {
                Some(name) => find(&client, &name).await?,
                None => connect(global).await?.current_org().await?,
            };
            if out.json {
                out.json(&org)?;
            } else {
                show(out, &org)?;
            }
        }
        Orgs::Invite { email, role } => return members::invite(&connect(global).await?, out, email, role).await,
        Orgs::Invites => return members::invites(&connect(global).await?, out).await,
        Orgs::RevokeInvite { invite, yes } => return members::revoke(&connect(global).await?, out, &invite, yes).await,
        Orgs::Logs { retention, quota } => {
            let client = connect(global).await?;
            let wanted = UpdateLogKeeping { retention_s: retention.map(|r| r.as_secs()), quota_bytes: quota };
            let kept = if retention.is_some() || quota.is_some() {
                client.update_log_keeping(&wanted).await?
            } else {
                client.log_keeping().await?
            };
            if out.json {
                out.json(&kept)?;
            } else {
                let days = |s: u64| format!("{:.1} days after the last line", s as f64 / 86_400.0);
                let quota = kept.quota_bytes.map_or_else(|| "none".to_owned(), bytes);
                out.pairs(vec![
                    ("logs", cell(kept.logs)),
                    ("size", cell(bytes(kept.size_bytes))),
                    ("quota", cell(quota)),
                    ("retention", cell(kept.retention_s.map_or_else(|| "unlimited".to_owned(), days))),
                ])?;
            }
        }
        Orgs::Select { name } => {
            let org = find(&client, &name).await?;
            let selected = select(&target, &org)?.ok_or_else(|| {
                CliError::usage("there is no context to save the choice in")
                    .hint(format!("sign in with `ferry auth login`, or set {}", model::env::ORG))
            })?;
            if out.json {
                out.json(&org)?;
            } else {
                tell_selected(out, &org, Some(&selected));
            }
        }
    }
    Ok(0)
}

/// The org with this name or id, of those that the account can see.
pub(crate) async fn find(client: &Client, wanted: &str) -> Result<Org> {
    let orgs = client.orgs().await?;
    let names: Vec<String> = orgs.iter().map(|o| o.name.clone()).collect();
    orgs.into_iter().find(|o| o.name == wanted || o.id.as_str() == wanted).ok_or_else(|| {
        let error = CliError::new(Exit::NotFound, format!("org `{wanted}` not found, or this account is not a member"));
        match suggestion(wanted, &names) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })
}

/// Keeps the org in the context that the command went through; returns the context's name.
fn select(target: &Target, org: &Org) -> Result<Option<String>> {
    let Some(name) = target.context.as_ref().filter(|_| target.from_context) else { return Ok(None) };
    context::update(&context::config_path()?, |contexts| {
        if let Some(context) = contexts.contexts.get_mut(name) {
            context.org = Some(org.id.to_string());
        }
    })?;
    Ok(Some(name.clone()))
}

fn tell_selected(out: &Output, org: &Org, context: Option<&str>) {
    match context {
        Some(context) => out.success(&format!("`{}` is selected in context `{context}`", org.name)),
        None => out.hint(&format!("select it with `--org {0}` or {1}={0}", org.id, model::env::ORG)),
    }
}

fn show(out: &Output, org: &Org) -> Result<()> {
    out.pairs(vec![
        ("name", strong(&org.name)),
        ("id", cell(&org.id)),
        ("status", status(&org.status)),
        ("build runner", cell(&org.build_runner_id)),
        ("created", cell(out.moment(org.created_at))),
    ])?;
    Ok(())
}
