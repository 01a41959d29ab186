//! Keeps a sign-in going: a token that has run out is renewed, once, whoever runs at the same time.

use std::sync::Arc;

use api::client::{Client, ClientError, Options, Renew};

use crate::context::{self, Contexts};
use crate::error::Result;

/// Renews the token of a context when it is refused.
pub(crate) fn renewal(context: String, options: Options) -> Renew {
    Arc::new(move |refused| {
        let (context, options) = (context.clone(), options.clone());
        Box::pin(async move { renewed(&context, &refused, &options).await.ok().flatten() })
    })
}

async fn renewed(name: &str, refused: &str, options: &Options) -> Result<Option<String>> {
    let path = context::config_path()?;
    let locked = path.clone();
    // Another command may be about to do the same.
    let _lock = tokio::task::spawn_blocking(move || context::lock(&locked)).await.map_err(std::io::Error::other)??;
    let contexts = context::load_from(&path)?;
    let Some(found) = contexts.contexts.get(name) else { return Ok(None) };
    if let Some(token) = found.token.as_ref().filter(|token| *token != refused) {
        return Ok(Some(token.clone()));
    }
    let Some(refresh) = &found.refresh else { return Ok(None) };
    let keep = |token: Option<String>, refresh: Option<String>| {
        context::update_locked(&path, |contexts: &mut Contexts| {
            if let Some(context) = contexts.contexts.get_mut(name) {
                (context.token, context.refresh) = (token, refresh);
            }
        })
    };
    let client = Client::new(&found.url, None, None, options)?;
    match client.refresh_cli_login(refresh).await {
        Ok(tokens) => {
            keep(Some(tokens.access_token.clone()), Some(tokens.refresh_token))?;
            Ok(Some(tokens.access_token))
        }
        Err(ClientError::Api { status: 401, .. }) => {
            // It is over: the next command says how to sign in.
            keep(None, None)?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
