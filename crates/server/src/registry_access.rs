//! The registry on the Control listener: its users are those of the API, and an API token is their password.

use axum::Router;
use futures::future::BoxFuture;
use model::{OrgId, Role};
use registry::{Access, Grant, Principal, Registry, Settings};
use std::sync::Arc;
use store::StoreError;
use tower_http::catch_panic::CatchPanicLayer;

use crate::auth::identify_bearer;
use crate::{AppState, docs};

struct ApiTokens(AppState);

impl Access for ApiTokens {
    /// Any user name will do: the token says who it is. Who may look may pull, who may run things may push.
    fn check<'a>(&'a self, _user: &'a str, password: &'a str) -> BoxFuture<'a, Result<Option<Principal>, StoreError>> {
        Box::pin(async move {
            let owner = match identify_bearer(&self.0, password.trim()).await {
                Ok(owner) => owner,
                Err(StoreError::NotFound(_)) => return Ok(None),
                Err(other) => return Err(other),
            };
            let grant = |(org, role)| Grant { org, may_push: role >= Role::Operator, repositories: None };
            Ok(Some(Principal { grants: owner.orgs().into_iter().map(grant).collect() }))
        })
    }
}

/// On the Runner listener no person signs in: an execution asks for its token with a signed request, and pods of an install have the
/// login that its runner was given.
struct InstallPulls(AppState);

impl Access for InstallPulls {
    fn check<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Option<Principal>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// An install that was forgotten pulls nothing any more.
    fn may_pull<'a>(&'a self, org: &'a OrgId, owner: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            match self.0.store().install(org, owner).await {
                Ok(_) => Ok(true),
                Err(StoreError::NotFound(_)) => Ok(false),
                Err(other) => Err(other),
            }
        })
    }
}

fn registry(state: &AppState, access: impl Access, public_url: &str) -> Registry {
    let settings = Settings {
        public_url: public_url.to_owned(),
        quota_bytes: state.config.registry.quota_bytes,
        stall: std::time::Duration::from_secs(state.config.limits.stall_s),
    };
    Registry::new(state.conductor.store_of_registry(), access, Arc::clone(&state.conductor.clock), settings)
}

fn guarded(registry: Registry) -> Router {
    registry.router().layer(CatchPanicLayer::custom(docs::panicked))
}

/// For people and their tools.
pub(crate) fn control_router(state: &AppState, control_url: &str) -> Router {
    guarded(registry(state, ApiTokens(state.clone()), control_url))
}

/// For executions; and what signs their tokens.
pub(crate) fn runner_router(state: &AppState) -> Router {
    guarded(for_executions(state))
}

pub(crate) fn for_executions(state: &AppState) -> Registry {
    registry(state, InstallPulls(state.clone()), &state.runner_url)
}
