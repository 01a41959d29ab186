//! How an executor gets what its order names: from the control plane, with the session's key.

use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{About, SessionClient, StateDir};
use crate::directory::ExecutionDir;
use crate::net;

/// Fetches artifacts for an executor, with the session's key.
pub struct SessionFetcher;

impl crate::execute::ArtifactFetcher for SessionFetcher {
    fn fetch<'a>(
        &'a self,
        dir: &'a ExecutionDir,
        digest: &'a model::Digest,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let fault = |e: &dyn std::fmt::Display| e.to_string();
            let context = dir.context().map_err(|e| fault(&e))?;
            let assignment = dir.assignment().map_err(|e| fault(&e))?;
            let key =
                StateDir::new(&context.state_dir).key().map_err(|e| fault(&e))?.ok_or("the session has no key")?;
            let http = net::client(&context.runner_url, context.ca_file.as_deref()).map_err(|e| net::chain(&e))?;
            let client =
                SessionClient::new(http, &context.runner_url, context.runner_id.clone(), context.generation, key);
            let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
            let mut pause = Duration::from_millis(250);
            for attempt in 1.. {
                match client.artifact(about, digest).await {
                    Ok(bytes) => {
                        fs_err::write(to, &bytes).map_err(|e| fault(&e))?;
                        break;
                    }
                    Err(error) if error.is_transient() && attempt < 6 => {
                        tokio::time::sleep(pause).await;
                        pause *= 2;
                    }
                    Err(error) => return Err(fault(&error)),
                }
            }
            Ok(())
        })
    }
}
