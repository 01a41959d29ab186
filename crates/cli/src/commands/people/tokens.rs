//! API tokens.

use std::time::SystemTime;

use api::client::Client;
use api::control::{CreateToken, Token};
use model::{Role, Timestamp, TokenId};

use crate::args::Tokens;
use crate::commands::{confirm, ids, suggestion};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, dim, id, status, strong};

pub(crate) async fn run(client: &Client, out: &Output, command: Tokens) -> Result<u8> {
    match command {
        Tokens::List => {
            let tokens = client.tokens().await?;
            let now = Timestamp::from_system(SystemTime::now());
            let headers = ["NAME", "ID", "ROLE", "STATUS", "?EXPIRES", "?USED", "?CREATED", "?TOKEN"];
            out.list(&tokens, "no tokens", &headers, |token| {
                vec![
                    strong(&token.name),
                    id(&token.id),
                    cell(reach(token)),
                    status(state(token, now)),
                    cell(token.expires_at.map_or_else(|| "never".to_owned(), |t| out.time(t))),
                    dim(out.time_or_dash(token.last_used_at)),
                    dim(out.time(token.created_at)),
                    dim(format!("{}…", token.hint)),
                ]
            })?;
        }
        Tokens::Create { name, role, telemetry, expires } => {
            let runner_id = match &telemetry {
                Some(install) => Some(client.install(install).await?.runner_id),
                None => None,
            };
            let role = role.unwrap_or(Role::ReadOnly);
            let body = CreateToken { name, role, runner_id, expires_in_s: expires.map(|e| e.as_secs()) };
            let token = client.create_token(&body).await?;
            if out.json {
                out.json(&token)?;
            } else {
                out.success(&format!("token `{}` ({}) is created; it is shown only once", token.name, reach(&token)));
                out.line(token.token.as_deref().unwrap_or("-"))?;
                if token.runner_id.is_none() && token.role != role {
                    out.hint(&format!(
                        "you are {}, so the token is, too; it was to be {}",
                        token.role.as_str(),
                        role.as_str()
                    ));
                }
                if let (Some(endpoint), Some(token)) = (&token.otlp_endpoint, &token.token) {
                    out.note("set these variables for the exporter:");
                    out.note(&format!("  export OTEL_EXPORTER_OTLP_ENDPOINT={endpoint}"));
                    out.note("  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf");
                    out.note(&format!("  export OTEL_EXPORTER_OTLP_HEADERS=\"authorization=Bearer%20{token}\""));
                }
            }
        }
        Tokens::Revoke { id, yes } => {
            confirm(out, yes, &format!("revoking token `{id}`"), &format!("revoke token `{id}`?"))?;
            let id = match TokenId::parse(&id) {
                Ok(id) => id,
                Err(_) => by_name(client, &id).await?,
            };
            let token = client.revoke_token(&id).await?;
            if out.json {
                out.json(&token)?;
            } else {
                out.success(&format!("token `{}` is revoked", token.name));
            }
        }
    }
    Ok(0)
}

async fn by_name(client: &Client, name: &str) -> Result<TokenId> {
    let live: Vec<Token> = client.tokens().await?.into_iter().filter(|t| t.revoked_at.is_none()).collect();
    let named: Vec<&Token> = live.iter().filter(|t| t.name == name || ids::stands_for(name, t.id.as_str())).collect();
    match named.as_slice() {
        [token] => Ok(token.id.clone()),
        [] => {
            let names: Vec<String> = live.iter().map(|t| t.name.clone()).collect();
            let error = CliError::new(Exit::NotFound, format!("there is no token `{name}`"));
            Err(match suggestion(name, &names) {
                Some(hint) => error.hint(hint),
                None => error,
            })
        }
        [_, _, ..] => Err(CliError::usage(format!("{} tokens are named `{name}`", named.len()))
            .hint("pass the id; run `ferry tokens list` to see it")),
    }
}

/// What it may do.
fn reach(token: &Token) -> &'static str {
    if token.runner_id.is_some() { "telemetry" } else { token.role.as_str() }
}

fn state(token: &Token, now: Timestamp) -> &'static str {
    if token.revoked_at.is_some() {
        "revoked"
    } else if token.expires_at.is_some_and(|t| t <= now) {
        "expired"
    } else {
        "active"
    }
}
