//! Owns the routes that pages are painted from: fleet, attention, approvals, runs, plans, installs, search, saved views, audit, live.
//! The dashboard and the CLI call them.
//! No rules: handlers read, put together and render; what may be done comes from the same functions that refuse it.

mod fleet;

use std::collections::HashMap;

use api::control::Can;
use model::Role;
use utoipa_axum::router::OpenApiRouter;

use crate::AppState;
use crate::auth::InOrg;
use crate::error::ApiResult;

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().merge(fleet::routes())
}

/// What people are called.
pub(super) struct Names(HashMap<String, String>);

impl Names {
    pub(super) async fn of(state: &AppState, at: &InOrg) -> ApiResult<Self> {
        let members = state.store().members(&at.org).await?;
        Ok(Self(members.into_iter().map(|it| (it.account_id.to_string(), it.email)).collect()))
    }

    /// The address of an account; what is no account of the org is called what it is.
    pub(super) fn name(&self, actor: &str) -> String {
        self.0.get(actor).cloned().unwrap_or_else(|| actor.to_owned())
    }
}

/// Whether a role is enough, and what is missing.
pub(super) fn may(at: &InOrg, needed: Role) -> Can {
    if at.role >= needed {
        return Can::yes();
    }
    Can::no(format!("this needs the role {}, and you have {}", needed.as_str(), at.role.as_str()))
}

/// The same, where the state of things has a word to say too.
pub(super) fn may_if(at: &InOrg, needed: Role, allowed: bool, otherwise: &str) -> Can {
    match may(at, needed) {
        can if !can.ok => can,
        _ if !allowed => Can::no(otherwise),
        can => can,
    }
}

/// A word as the enum of the document has it; what a newer version wrote is `unknown`.
macro_rules! word {
    ($enum:ty, $text:expr, $otherwise:expr) => {
        <$enum>::parse($text).unwrap_or($otherwise)
    };
}
pub(super) use word;
