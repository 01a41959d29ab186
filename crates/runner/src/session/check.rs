//! The checks of `doctor` that need the session.

use std::path::Path;
use std::time::Duration;

use model::papers::TrustedKeys;

use super::{CallError, Over, SessionClient, StateDir, Unjoined};
use crate::doctor::{Report, Status};
use crate::net;

/// Is this a Runner API, are its keys the ones we trust, is our key there, and is our session accepted?
pub async fn check_session(report: &mut Report, state: &StateDir, url: &str, ca_file: Option<&Path>) {
    if let Some(since) = state.disabled_since() {
        let hint = format!("`ferry-runner enable --state-dir {}` switches it on", state.path().display());
        report.hint("switch", Status::Warn, format!("disabled since {since}: it takes no jobs"), hint);
    }
    let http = match net::client(url, ca_file) {
        Ok(http) => http,
        Err(e) => return report.add("api", Status::Fail, net::chain(&e)),
    };
    let offered = match (Unjoined { http: &http, url: url.trim_end_matches('/') }).keys().await {
        Ok(answer) => answer.keys,
        Err(error) => {
            let hint = "is this the Runner API? the Control API and other hosts do not answer /v1/keys";
            return report.hint("api", Status::Fail, format!("no signing keys: {error}"), hint);
        }
    };
    report.add("api", Status::Ok, format!("a Runner API with {} signing keys", offered.len()));
    let (session, key) = match (state.session(), state.key()) {
        (Ok(Some(session)), Ok(Some(key))) => (session, key),
        (Ok(None), _) | (_, Ok(None)) => {
            return report.hint("session", Status::Skipped, "not joined yet", "start the runner with its join command");
        }
        (Err(e), _) | (_, Err(e)) => {
            return report.hint("session", Status::Fail, format!("{e:#}"), state.join_again());
        }
    };
    if TrustedKeys::new(session.trust.clone()).learn(&offered) == 0 {
        let hint = "is this the control plane that made the join command? then join with the right --trust-key";
        report.hint("trust", Status::Fail, "no signing key of this server is trusted", hint);
    } else {
        report.add("trust", Status::Ok, session.trust.join(", "));
    }
    let client = SessionClient::new(http, url, session.runner_id, session.generation, key);
    match client.renew(Vec::new(), Duration::from_secs(10)).await {
        Ok(_) => report.add("session", Status::Ok, format!("generation {} is accepted", session.generation)),
        Err(error) => {
            let hint = match error.over() {
                Some(Over::Fenced) => format!("stop the other runner, or {}", state.join_again()),
                Some(Over::Revoked) => format!("to run this install again, {}", state.join_again()),
                None => {
                    let hint = if let CallError::Refused(body) = &error { body.hint.clone() } else { None };
                    hint.unwrap_or_else(|| "see the checks above".into())
                }
            };
            report.hint("session", Status::Fail, error.to_string(), hint);
        }
    }
}
