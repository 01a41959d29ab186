//! How an executor gets what its order names, and its way into the registry: from the control plane, with the session's key.

use std::path::Path;

use api::runner::Assignment;
use futures::future::BoxFuture;
use model::build::{PullLogin, RegistryAccess};

use super::client::CallError;
use super::{About, SessionClient, StateDir};
use crate::directory::ExecutionDir;
use crate::net;
use crate::oci::RegistryTokens;
use crate::patience::Patience;

const TRIES: u32 = 6;

/// Asks for an executor, with the session's key.
pub struct SessionFetcher;

/// A client for the directory's execution.
fn connect(dir: &ExecutionDir) -> Result<(SessionClient, Assignment), String> {
    let fault = |e: &dyn std::fmt::Display| e.to_string();
    let context = dir.context().map_err(|e| fault(&e))?;
    let assignment = dir.assignment().map_err(|e| fault(&e))?;
    let key = StateDir::new(&context.state_dir).key().map_err(|e| fault(&e))?.ok_or("the session has no key")?;
    let http = net::client(&context.runner_url, context.ca_file.as_deref()).map_err(|e| net::chain(&e))?;
    let client = SessionClient::new(http, &context.runner_url, context.runner_id.clone(), context.generation, key);
    Ok((client, assignment))
}

/// Asks again where that may help.
async fn patiently<T, F: Future<Output = Result<T, CallError>>>(call: impl FnMut() -> F) -> Result<T, String> {
    Patience::tries(TRIES).keep(call, |_| ()).await.map_err(|error| error.to_string())
}

impl crate::execute::ArtifactFetcher for SessionFetcher {
    fn fetch<'a>(
        &'a self,
        dir: &'a ExecutionDir,
        digest: &'a model::Digest,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (client, assignment) = connect(dir)?;
            let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
            let bytes = patiently(|| client.artifact(about, digest)).await?;
            fs_err::write(to, &bytes).map_err(|e| e.to_string())
        })
    }

    fn client(&self, dir: &ExecutionDir) -> Result<SessionClient, String> {
        connect(dir).map(|(client, _)| client)
    }

    fn pull_login<'a>(&'a self, dir: &'a ExecutionDir) -> BoxFuture<'a, Result<PullLogin, String>> {
        Box::pin(async move {
            let (client, assignment) = connect(dir)?;
            let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
            patiently(|| client.pull_login(about)).await
        })
    }

    fn pass(&self, dir: &ExecutionDir) -> Box<dyn RegistryTokens> {
        Box::new(SessionPass(dir.clone()))
    }
}

struct SessionPass(ExecutionDir);

impl RegistryTokens for SessionPass {
    fn token(&self) -> BoxFuture<'_, Result<RegistryAccess, String>> {
        Box::pin(async move {
            let (client, assignment) = connect(&self.0)?;
            let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
            patiently(|| client.registry_token(about)).await
        })
    }
}
