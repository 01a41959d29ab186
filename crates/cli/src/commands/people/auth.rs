//! Signing in and out.

use std::io::{BufRead as _, IsTerminal as _};

use api::client::{Client, ClientError, Options};
use api::control::Account;
use serde_json::json;

use super::login;
use crate::args::{Auth, Global};
use crate::commands::{REQUEST_TIMEOUT, ids, people::orgs, sign_in, target};
use crate::context::{self, Context, DEFAULT_NAME, Target};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, dim, id, strong};

pub(crate) async fn run(global: &Global, out: &Output, command: Auth) -> Result<u8> {
    match command {
        Auth::Login { device, no_open } => login(global, out, device, no_open).await,
        Auth::Whoami => whoami(&target(global)?, out).await,
        Auth::Sessions { all: true, .. } => logout(global, out, true).await,
        Auth::Sessions { end, all: false } => sessions(&sign_in(&target(global)?)?, out, end.as_deref()).await,
        Auth::Link { to } => link(&sign_in(&target(global)?)?, out, to.as_deref()).await,
        Auth::Logout { all } => logout(global, out, all).await,
    }
}

async fn login(global: &Global, out: &Output, device: bool, no_open: bool) -> Result<u8> {
    let contexts = context::load()?;
    let name = global.context.clone().or_else(|| contexts.current.clone().filter(|_| global.url.is_none()));
    let name = name.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    // The name may be new, so it is not looked up as a context that must exist.
    let known = contexts.contexts.get(&name);
    let given = Global { context: known.map(|_| name.clone()), ..global.clone() };
    let mut target = Target::resolve(&given, &contexts)?;
    let options = Options { ca_file: target.ca_file.clone(), timeout: REQUEST_TIMEOUT };
    let unsigned = Client::new(target.url()?, None, None, &options)?;
    let is_asked = device || no_open;
    let mut refresh = None;
    target.renews = None;
    // Who asks for a person's sign-in does not mean the token of a variable.
    target.token = Some(match global.token.as_ref().filter(|_| !is_asked) {
        Some(token) => token.clone(),
        None if !is_asked && !std::io::stdin().is_terminal() => token_from_stdin()?,
        None => {
            let tokens = if device || !(no_open || login::has_browser()) {
                login::with_code(&unsigned, out).await?
            } else {
                login::with_browser(&unsigned, out, !no_open).await?
            };
            refresh = Some(tokens.refresh_token);
            tokens.access_token
        }
    });
    let client = sign_in(&target)?;
    let account = client.current_user().await?;
    let given = global.org.as_deref().is_some_and(|org| !org.trim().is_empty());
    let org = match &target.org {
        Some(org) if given => Some(orgs::find(&client, org).await?.id.to_string()),
        // The org of the context may be one that this account does not belong to.
        Some(org) if account.org_ids.iter().any(|id| id.as_str() == org) => Some(org.clone()),
        Some(_) | None => account.org_ids.first().filter(|_| account.org_ids.len() == 1).map(ToString::to_string),
    };
    // Who signs in again leaves no session behind that nobody uses.
    let before =
        known.filter(|known| known.refresh.is_some() && known.url == client.url()).and_then(|it| it.token.clone());
    let saved = Context {
        url: client.url().to_owned(),
        token: target.token.clone(),
        refresh,
        org: org.clone(),
        ca_file: target.ca_file.as_ref().map(std::path::absolute).transpose()?,
    };
    context::save_context(&name, saved, true)?;
    if let Some(token) = before {
        let earlier = Client::new(client.url(), Some(token), None, &options)?;
        // It may be over already.
        drop(earlier.sign_out().await);
    }
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
            "`ferry auth login --device` signs a person in; a program passes `--token TOKEN`, or pipes the token into it",
        )
    };
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
    let session = client.session().await?;
    let org = target.org.as_deref().map(|wanted| {
        let found = session.orgs.iter().find(|org| org.id.as_str() == wanted || org.name == wanted);
        found.map_or_else(|| wanted.to_owned(), |org| format!("{} ({})", org.name, org.id))
    });
    let roles: Vec<String> = session.orgs.iter().map(|org| format!("{} in {}", org.role.as_str(), org.name)).collect();
    out.pairs(vec![
        ("account", strong(&account.email)),
        ("id", cell(&account.id)),
        ("signed in by", cell(&session.by)),
        ("url", cell(client.url())),
        ("context", cell(target.context.as_deref().unwrap_or("-"))),
        ("org", cell(org.as_deref().unwrap_or("-"))),
        ("roles", cell(if roles.is_empty() { "none".to_owned() } else { roles.join("\n") })),
    ])?;
    Ok(0)
}

async fn sessions(client: &Client, out: &Output, end: Option<&str>) -> Result<u8> {
    let sessions = client.sessions().await?;
    if let Some(wanted) = end {
        let is = |id: &str| id == wanted || ids::stands_for(wanted, id);
        let found = sessions.iter().find(|session| is(session.id.as_str()));
        let found = found.ok_or_else(|| {
            CliError::new(Exit::NotFound, format!("there is no session `{wanted}`")).hint("run `ferry auth sessions`")
        })?;
        let ended = client.end_session(found.id.as_str()).await?;
        if out.json {
            out.json(&ended)?;
        } else {
            out.success(&format!("the {} session of {} has ended", found.kind, found.name));
        }
        return Ok(0);
    }
    let headers = ["WHAT", "NAME", "ID", "ADDRESS", "USED", "?EXPIRES", "?BY"];
    out.list(&sessions, "no browser and no CLI is signed in; this is an API token", &headers, |session| {
        let mark = if session.current { " (this one)" } else { "" };
        vec![
            strong(format!("{}{mark}", session.kind)),
            cell(&session.name),
            id(&session.id),
            cell(&session.address),
            dim(out.time(session.seen_at)),
            cell(out.time(session.expires_at)),
            cell(&session.provider),
        ]
    })?;
    Ok(0)
}

async fn link(client: &Client, out: &Output, to: Option<&str>) -> Result<u8> {
    let mut link = client.create_sign_in_link().await?;
    if let Some(to) = to {
        link.url = format!("{}&to={}", link.url, login::encoded(to));
    }
    if out.json {
        out.json(&link)?;
    } else {
        out.line(&link.url)?;
        out.note("it signs one browser in as you, once, within an hour");
    }
    Ok(0)
}

async fn logout(global: &Global, out: &Output, all: bool) -> Result<u8> {
    let contexts = context::load()?;
    let name = global.context.clone().or_else(|| contexts.current.clone());
    let name = name.ok_or_else(|| CliError::usage("there is no context to sign out of"))?;
    let Some(known) = contexts.contexts.get(&name) else {
        return Err(context::unknown_context(&name, &contexts));
    };
    let is_session = known.refresh.is_some();
    if known.token.is_none() && !all {
        return Err(CliError::new(Exit::Denied, format!("context `{name}` is not signed in")));
    }
    if all || is_session {
        let client = sign_in(&target(global)?)?;
        let ended = if all { client.end_all_sessions().await.map(drop) } else { client.sign_out().await };
        match ended {
            Ok(()) => {}
            // It was over already.
            Err(ClientError::Api { status: 401, .. }) if !all => {}
            Err(error) => return Err(error.into()),
        }
    }
    context::update(&context::config_path()?, |contexts| {
        if let Some(context) = contexts.contexts.get_mut(&name) {
            (context.token, context.refresh) = (None, None);
        }
    })?;
    if out.json {
        out.json(&json!({ "context": name }))?;
    } else if all {
        out.success(&format!("signed out everywhere; context `{name}` has no token any more"));
    } else if is_session {
        out.success(&format!("signed out of context `{name}`"));
    } else {
        out.success(&format!(
            "deleted the token from context `{name}`; it stays valid until you run `ferry tokens revoke`"
        ));
    }
    Ok(0)
}
