//! Reads the groups of people who are signed in again, so that a group that was taken away takes its role with it.

use std::time::Duration;

use super::oidc::OidcError;
use crate::AppState;

const LOOK: Duration = Duration::from_secs(20);
const AT_ONCE: u64 = 5;

pub(crate) async fn run(state: AppState) {
    let names = |with_roles: bool| -> Vec<String> {
        let providers = state.web.providers.iter().map(|provider| &provider.config);
        providers.filter(|it| !with_roles || !it.roles.is_empty()).map(|it| it.name.clone()).collect()
    };
    // What providers have vouched for that are not configured any more is over.
    if let Err(error) = state.conductor.forget_other_providers(names(false), names(true)).await {
        tracing::warn!(%error, "roles and sessions of providers that are gone stay until the next start");
    }
    loop {
        let pause = LOOK.min(Duration::from_secs(state.config.auth.groups_s));
        tokio::select! {
            () = state.gate.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if let Err(error) = look(&state).await {
            tracing::warn!(%error, "groups are read again later");
        }
    }
}

async fn look(state: &AppState) -> conductor::Result<()> {
    loop {
        let due = state.conductor.due_groups(AT_ONCE).await?;
        for one in &due {
            // A provider that is no longer configured vouches for nobody, and one that gave no refresh token can't be asked.
            let (Some(provider), Some(refresh)) = (state.web.provider(&one.provider), &one.refresh) else {
                state.conductor.groups_refused(one).await?;
                continue;
            };
            match provider.renew(refresh, &one.subject).await {
                Ok(told) => {
                    let refresh = told.refresh.as_deref();
                    state.conductor.groups_read(one, &provider.admission, &told.claims, refresh).await?;
                }
                Err(OidcError::Refused { .. }) => state.conductor.groups_refused(one).await?,
                // Asked again in a few minutes.
                Err(OidcError::Away { .. } | OidcError::Setup { .. } | OidcError::Untrusted { .. }) => {}
            }
        }
        if due.len() < AT_ONCE as usize {
            return Ok(());
        }
    }
}
