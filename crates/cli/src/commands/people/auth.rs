//! Signing in and out.

use std::io::{BufRead as _, IsTerminal as _};

use api::control::Account;
use serde_json::json;

use crate::args::{Auth, Global};
use crate::commands::{people::orgs, sign_in, target};
use crate::context::{self, Context, DEFAULT_NAME, Target};
use crate::error::{CliError, Result};
use crate::output::{Output, cell, strong};

pub(crate) async fn run(global: &Global, out: &Output, command: Auth) -> Result<u8> {
    match command {
        Auth::Login => login(global, out).await,
        Auth::Whoami => whoami(&target(global)?, out).await,
        Auth::Logout => logout(global, out),
    }
}

async fn login(global: &Global, out: &Output) -> Result<u8> {
    let contexts = context::load()?;
    let name = global.context.clone().or_else(|| contexts.current.clone().filter(|_| global.url.is_none()));
    let name = name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    // The name may be new, so it is not looked up as a context that must exist.
    let known = contexts.contexts.get(&name);
    let given = Global { context: known.map(|_| name.clone()), ..global.clone() };
    let mut target = Target::resolve(&given, &contexts)?;
    target.url()?;
    target.token = Some(match &global.token {
        Some(token) => token.clone(),
        None => token_from_stdin()?,
    });
    let client = sign_in(&target)?;
    let account = client.current_user().await?;
    let org = match &target.org {
        Some(org) => Some(orgs::find(&client, org).await?.id.to_string()),
        None => account.org_ids.first().filter(|_| account.org_ids.len() == 1).map(ToString::to_string),
    };
    let saved = Context {
        url: client.url().to_owned(),
        token: target.token.clone(),
        org: org.clone(),
        ca_file: target.ca_file.as_ref().map(std::path::absolute).transpose()?,
    };
    context::save_context(&name, saved, true)?;
    if out.json {
        out.json(&json!({ "context": name, "url": client.url(), "org": org, "account": account }))?;
    } else {
        out.success(&format!("signed in to {} as {} (context `{name}`)", client.url(), account.email));
        if org.is_none() && !account.org_ids.is_empty() {
            out.hint("select an org with `ferry orgs select NAME`");
        }
    }
    Ok(0)
}

fn token_from_stdin() -> Result<String> {
    let stdin = std::io::stdin();
    let missing = || {
        CliError::usage("no token given").hint(
            "`ferry auth login --url URL --token TOKEN`, or pipe the token into it to keep it out of the process list",
        )
    };
    if stdin.is_terminal() {
        return Err(missing());
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line)?;
    let token = line.trim();
    if token.is_empty() { Err(missing()) } else { Ok(token.to_owned()) }
}

async fn whoami(target: &Target, out: &Output) -> Result<u8> {
    let client = sign_in(target)?;
    let account: Account = client.current_user().await?;
    if out.json {
        out.json(&json!({ "context": target.context, "url": client.url(), "org": target.org, "account": account }))?;
        return Ok(0);
    }
    // Names are for people; without them the ids are shown.
    let orgs = client.orgs().await.unwrap_or_default();
    let named = |id: &str| match orgs.iter().find(|org| org.id.as_str() == id) {
        Some(org) => format!("{} ({id})", org.name),
        None => id.to_owned(),
    };
    let permissions: Vec<String> =
        account.permissions.iter().map(|(org, what)| format!("{}: {what}", named(org))).collect();
    out.pairs(vec![
        ("account", strong(&account.email)),
        ("id", cell(&account.id)),
        ("type", cell(&account.account_type)),
        ("url", cell(client.url())),
        ("context", cell(target.context.as_deref().unwrap_or("-"))),
        ("org", cell(target.org.as_deref().map_or_else(|| "-".to_owned(), named))),
        ("permissions", cell(permissions.join("\n"))),
    ])?;
    Ok(0)
}

fn logout(global: &Global, out: &Output) -> Result<u8> {
    let contexts = context::load()?;
    let name = global.context.clone().or_else(|| contexts.current.clone());
    let name = name.ok_or_else(|| CliError::usage("there is no context to sign out of"))?;
    if !contexts.contexts.contains_key(&name) {
        return Err(context::unknown_context(&name, &contexts));
    }
    context::update(&context::config_path()?, |contexts| {
        if let Some(context) = contexts.contexts.get_mut(&name) {
            context.token = None;
        }
    })?;
    if out.json {
        out.json(&json!({ "context": name }))?;
    } else {
        out.success(&format!(
            "deleted the token from context `{name}`; it stays valid until you run `ferry tokens revoke`"
        ));
    }
    Ok(0)
}
