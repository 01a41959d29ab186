//! Phases and states: one word for how an object is.

use serde_json::Value;

use super::conditions::words;
use super::{Health, Verdict};

/// Where controllers write it.
const PLACES: &str = "/health/status /health /ceph/health /robustness /phase /state /status /currentState /currentStatus \
    /clusterStatus /printableStatus /stageStatus /updateStatus /lastUpdate/state /applicationState/state /PostgresClusterStatus \
    /jobStatus/state";
/// Where they say yes or no.
const FLAGS: &str = "/ready /readyToUse /isReady /healthy /available";
/// Where they say what went wrong.
const ERRORS: &str = "/error /error/message /errorMessage /failureMessage /failureReason";

const WELL: &str = "ready running active healthy succeeded success successful completed complete bound available deployed initialized \
    green established online created synced installed normal ok released up valid accepted enabled provisioned reconciled applied \
    connected configured finished operational attached";
const WORKS: &str = "pending creating provisioning updating upgrading inprogress progress progressing initializing applying migrating \
    yellow deploying terminating deleting waiting starting installing scaling reconciling new scheduled restarting joining building \
    processing queued validating configuring bootstrapping stopping setting rolling restoring recovering replacing resizing planning \
    expanding";
const ILL: &str = "failed failure failing error errored invalid degraded unhealthy lost crash red rejected evicted broken not cannot \
    unrecoverable unavailable offline down exhausted conflict missing unready denied aborted blocked faulted err warn partially";
const RESTS: &str = "paused suspended hibernated stopped disabled";

/// None where the status has no such word.
pub(super) fn judge(status: &Value) -> Option<Health> {
    let text = |place| status.pointer(place)?.as_str().filter(|text| !text.is_empty());
    if let Some(error) = ERRORS.split_whitespace().find_map(text) {
        return Some(Health::new(Verdict::Degraded, "phase", error));
    }
    let found = PLACES.split_whitespace().filter_map(text).map(word).max_by_key(|health| health.verdict);
    found.or_else(|| {
        let flag = |place| Some((place, status.pointer(place)?.as_bool()?));
        let (place, ready) = FLAGS.split_whitespace().find_map(flag)?;
        Some(match ready {
            true => Health::healthy("phase"),
            false => Health::new(Verdict::Progressing, "phase", format!("its status says `{}: false`", &place[1..])),
        })
    })
}

fn word(text: &str) -> Health {
    let lower: Vec<String> = words(text).iter().map(|word| word.to_lowercase()).collect();
    let says = |some: &str| some.split_whitespace().any(|known| lower.iter().any(|word| word == known));
    let verdict = match (says(ILL), says(RESTS), says(WORKS), says(WELL)) {
        (true, ..) => Verdict::Degraded,
        (_, true, ..) => return Health::suspended("phase", text),
        (_, _, true, _) => Verdict::Progressing,
        (.., true) => Verdict::Healthy,
        _ => Verdict::Unknown,
    };
    let reason = match verdict {
        Verdict::Healthy => String::new(),
        _ => format!("it says `{text}`"),
    };
    Health::new(verdict, "phase", reason)
}
