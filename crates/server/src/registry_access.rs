//! The registry on the Control listener: its users are those of the API, and an API token is their password.

use axum::Router;
use futures::future::BoxFuture;
use model::Role;
use registry::{Access, Grant, Principal, Registry, Settings};
use std::sync::{Arc, PoisonError};
use store::StoreError;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{AppState, docs};

struct ApiTokens(AppState);

impl Access for ApiTokens {
    /// Any user name will do: the token says who it is. Who may look may pull, who may run things may push.
    fn check<'a>(&'a self, _user: &'a str, password: &'a str) -> BoxFuture<'a, Result<Option<Principal>, StoreError>> {
        Box::pin(async move {
            let now = self.0.conductor.now();
            let owner = match self.0.store().authenticate(password.trim(), now).await {
                Ok(owner) => owner,
                Err(StoreError::NotFound(_)) => return Ok(None),
                Err(other) => return Err(other),
            };
            let mut uses = self.0.token_uses.lock().unwrap_or_else(PoisonError::into_inner);
            uses.insert(owner.token_id.clone(), now);
            let grant = |org: &model::OrgId| {
                let role = owner.role_in(org)?;
                Some(Grant { org: org.clone(), may_push: role >= Role::Operator, repositories: None })
            };
            Ok(Some(Principal { grants: owner.members.iter().filter_map(|m| grant(&m.org_id)).collect() }))
        })
    }
}

pub(crate) fn router(state: &AppState, https: bool) -> Router {
    let settings = Settings {
        public_url: state.config.control.public_url.clone(),
        https,
        quota_bytes: state.config.registry.quota_bytes,
        stall: std::time::Duration::from_secs(state.config.limits.stall_s),
    };
    let clock = Arc::clone(&state.conductor.clock);
    let registry = Registry::new(state.store().clone(), ApiTokens(state.clone()), clock, settings);
    registry.router().layer(CatchPanicLayer::custom(docs::panicked))
}
