//! What a browser carries to a provider and back: sealed, so that only our servers can read or make it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use http::HeaderMap;
use model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::AppState;
use crate::auth::cookie;

const PURPOSE: &str = "sign-in-flow";
/// How long somebody may take at the provider.
pub(super) const FLOW_S: i64 = 600;

/// A sign-in that has begun in this browser.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Flow {
    /// Empty as long as none was chosen.
    pub(super) provider: String,
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) verifier: String,
    pub(super) return_to: String,
    /// The secret of an invite that is taken with it.
    pub(super) invite: Option<String>,
    pub(super) until: i64,
}

impl Flow {
    pub(super) fn sealed(&self, state: &AppState) -> String {
        let plain = serde_json::to_vec(self).unwrap_or_default();
        B64.encode(state.store().seal_for_browser(PURPOSE, &plain))
    }

    /// The one that a browser brings, if it is still good.
    pub(super) fn of(state: &AppState, headers: &HeaderMap) -> Option<Self> {
        let sealed = B64.decode(cookie(headers, &state.web.flow_cookie)?).ok()?;
        let plain = state.store().open_from_browser(PURPOSE, &sealed)?;
        let flow: Self = serde_json::from_slice(&plain).ok()?;
        (flow.until > state.conductor.now().micros()).then_some(flow)
    }

    pub(super) fn until(now: Timestamp) -> i64 {
        now.plus_s(FLOW_S).micros()
    }
}
