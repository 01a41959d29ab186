//! How well an object is: a verdict, its reason, and the rule that gave it.
//!
//! Rules on generations, conditions and phases judge every kind; kinds that come with Kubernetes, and a few whose controllers speak
//! another language, have rules of their own. What no rule can judge is `unknown`, and never guessed.

mod builtin;
mod conditions;
mod custom;
mod phase;

pub use model::health::Verdict;
use serde::Serialize;
use serde_json::Value;

use crate::ObjectRef;

/// A verdict on one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    pub verdict: Verdict,
    /// Empty where there is nothing to say.
    pub reason: String,
    /// What the verdict goes by, for people who wonder about it.
    pub rule: &'static str,
}

impl Health {
    fn new(verdict: Verdict, rule: &'static str, reason: impl Into<String>) -> Self {
        Self { verdict, reason: reason.into(), rule }
    }

    fn healthy(rule: &'static str) -> Self {
        Self::new(Verdict::Healthy, rule, "")
    }

    fn suspended(rule: &'static str, what: &str) -> Self {
        Self::new(Verdict::Healthy, rule, format!("suspended: {what}"))
    }
}

/// Custom objects that were created less than this ago may still be without a status.
const FRESH_S: i64 = 300;

/// Judges an object as it is. `now_s` is in seconds since 1970.
pub fn health_of(object: &Value, now_s: i64) -> Health {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        let holders: Vec<&str> =
            metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let reason = match holders.is_empty() {
            true => "it is being deleted".to_owned(),
            false => format!("its deletion waits for the finalizers {}", holders.join(", ")),
        };
        return Health::new(Verdict::Progressing, "deletion", reason);
    }
    if let Some(stale) = stale_generation(object) {
        return stale;
    }
    if let Some(health) = builtin::judge(object, now_s) {
        return health;
    }
    if let Some(health) = custom::judge(object) {
        return health;
    }
    by_status(object, now_s)
}

/// As `health_of`, for whoever looks again and again: a workload of which no pod is ready, and that nothing changes, is not on its
/// way. Other tools, which look once, call it progressing; the second value says that this is where they differ.
pub fn observed_health_of(object: &Value, now_s: i64) -> (Health, bool) {
    let found = health_of(object, now_s);
    let is_there = object["metadata"]["deletionTimestamp"].is_null();
    match found.verdict == Verdict::Progressing && is_there && builtin::is_down(object) {
        true => (Health { verdict: Verdict::Unhealthy, ..found }, true),
        false => (found, false),
    }
}

/// A controller that has not seen the latest change says nothing of it.
fn stale_generation(object: &Value) -> Option<Health> {
    let asked = object["metadata"]["generation"].as_i64()?;
    let seen = &object["status"]["observedGeneration"];
    let seen = seen.as_i64().or_else(|| seen.as_str()?.parse().ok())?;
    // Some controllers count from -1 until they have begun.
    (0..asked).contains(&seen).then(|| {
        let reason = format!("its controller has not seen the latest change yet (generation {asked}, seen {seen})");
        Health::new(Verdict::Progressing, "generation", reason)
    })
}

/// Whether an object has a status that says something.
fn has_status(object: &Value) -> bool {
    object["status"].as_object().is_some_and(|status| !status.is_empty())
}

fn by_status(object: &Value, now_s: i64) -> Health {
    if !has_status(object) {
        return without_status(object, now_s);
    }
    let suspended = object["spec"]["suspend"] == true || object["spec"]["paused"] == true;
    let conditions = conditions::judge(object);
    let phase = phase::judge(&object["status"]);
    let found = match (conditions, phase) {
        (Some(conditions), Some(phase)) if phase.verdict > conditions.verdict && phase.verdict != Verdict::Unknown => {
            phase
        }
        (Some(conditions), _) => conditions,
        (None, Some(phase)) => phase,
        (None, None) => {
            counted(object).unwrap_or_else(|| Health::new(Verdict::Healthy, "status", "its status reports no problem"))
        }
    };
    match suspended && matches!(found.verdict, Verdict::Healthy | Verdict::Progressing | Verdict::Unknown) {
        true => Health::suspended("suspended", "its spec says so"),
        false => found,
    }
}

fn without_status(object: &Value, now_s: i64) -> Health {
    let Some(of) = ObjectRef::of(object) else {
        return Health::new(Verdict::Unknown, "no-status", "it has no kind or no name");
    };
    let waits = |reason: &str| Health::new(Verdict::Progressing, "no-status", reason);
    if custom::reports(&of) {
        return waits("its controller has not reported on it yet");
    }
    let created =
        object["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    match created {
        Some(at) if of.is_custom() && now_s - at.as_second() < FRESH_S => waits("nobody has reported on it yet"),
        _ => Health::new(Verdict::Healthy, "no-status", "it is there; nobody reports more on it"),
    }
}

/// Replicas, as many custom objects count them.
fn counted(object: &Value) -> Option<Health> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let wanted = spec["replicas"].as_i64().or_else(|| status["replicas"].as_i64())?;
    let ready = status["readyReplicas"].as_i64().or_else(|| status["availableReplicas"].as_i64())?;
    let told = format!("{ready} of {wanted} replicas are ready");
    Some(match (ready >= wanted, ready) {
        (true, _) => Health::healthy("replicas"),
        (false, 0) => Health::new(Verdict::Unhealthy, "replicas", told),
        (false, _) => Health::new(Verdict::Degraded, "replicas", told),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    fn judged(api_version: &str, kind: &str, status: Value) -> (Verdict, String) {
        let metadata = json!({ "name": "it", "generation": 2 });
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status });
        let health = health_of(&object, NOW_S);
        (health.verdict, health.reason)
    }

    #[test]
    fn kinds_that_no_rule_names_are_judged_by_what_they_say() {
        let one = |name: &str, status: &str, reason: &str| json!({ "conditions": [{ "type": name, "status": status, "reason": reason }] });
        for (status, verdict) in [
            (one("Ready", "True", ""), Verdict::Healthy),
            (one("Ready", "Unknown", ""), Verdict::Progressing),
            (one("Ready", "False", "CreateFailed"), Verdict::Degraded),
            (one("Ready", "False", "Creating"), Verdict::Progressing),
            (one("AllReplicasReady", "False", "NotAllPodsReady"), Verdict::Degraded),
            (one("ClusterAvailable", "True", ""), Verdict::Healthy),
            (one("HasErrors", "True", ""), Verdict::Degraded),
            (one("NoErrors", "True", ""), Verdict::Healthy),
            (one("DiskPressure", "True", ""), Verdict::Degraded),
            (one("Succeeded", "Unknown", "Running"), Verdict::Progressing),
            (one("Succeeded", "False", "Failed"), Verdict::Degraded),
            (one("Paused", "True", ""), Verdict::Healthy),
            (json!({ "observedGeneration": 1, "phase": "Ready" }), Verdict::Progressing),
            (json!({ "phase": "Running" }), Verdict::Healthy),
            (json!({ "phase": "PartiallyFailed" }), Verdict::Degraded),
            (json!({ "state": "error" }), Verdict::Degraded),
            (json!({ "phase": "Blue" }), Verdict::Unknown),
            (json!({ "ceph": { "health": "HEALTH_WARN" } }), Verdict::Degraded),
            (json!({ "readyToUse": false }), Verdict::Progressing),
            (json!({ "error": { "message": "no space" } }), Verdict::Degraded),
            (json!({ "replicas": 3, "readyReplicas": 1 }), Verdict::Degraded),
            (json!({ "replicas": 3, "readyReplicas": 0 }), Verdict::Unhealthy),
            (json!({}), Verdict::Healthy),
        ] {
            let (found, reason) = judged("example.com/v1", "Thing", status.clone());
            assert_eq!(found, verdict, "{status}: {reason}");
        }
        // A condition of an older generation says nothing of the latest one.
        let old = json!({ "conditions": [{ "type": "Ready", "status": "False", "observedGeneration": 1 }] });
        assert_eq!(judged("example.com/v1", "Thing", old).0, Verdict::Progressing);
        assert_eq!(judged("cert-manager.io/v1", "Certificate", json!({})).0, Verdict::Progressing);
        assert_eq!(judged("v1", "ConfigMap", json!(null)).0, Verdict::NotApplicable);
    }

    #[test]
    fn a_workload_that_lost_its_pods_is_no_rollout() {
        let deployment = |ready: i64| {
            let status = json!({
                "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": ready, "availableReplicas": ready,
                "conditions": [{ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
                    { "type": "Available", "status": if ready > 1 { "True" } else { "False" } }],
            });
            let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "generation": 2 },
                "spec": { "replicas": 3 }, "status": status });
            let health = health_of(&object, NOW_S);
            (health.verdict, health.reason)
        };
        assert_eq!(deployment(3).0, Verdict::Healthy);
        assert_eq!(deployment(2), (Verdict::Degraded, "2 of 3 replicas are available".into()));
        assert_eq!(deployment(0), (Verdict::Unhealthy, "0 of 3 replicas are available".into()));
    }

    #[test]
    fn a_workload_without_a_ready_pod_is_down_unless_it_is_being_updated() {
        let verdicts = |kind: &str, strategy: &str, status: Value| {
            let mut status = status;
            status["observedGeneration"] = json!(2);
            let object = json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "db", "generation": 2 },
                "spec": { "replicas": 3, "updateStrategy": { "type": strategy } }, "status": status });
            (health_of(&object, NOW_S).verdict, observed_health_of(&object, NOW_S).0.verdict)
        };
        let set = |ready: i64, current: &str| {
            json!({ "replicas": 3, "readyReplicas": ready, "currentReplicas": 3,
            "currentRevision": current, "updateRevision": "b" })
        };
        let daemon = |ready: i64, updated: i64| {
            json!({ "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
            "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": ready })
        };
        let (well, waits, down) = (
            (Verdict::Healthy, Verdict::Healthy),
            (Verdict::Progressing, Verdict::Progressing),
            (Verdict::Progressing, Verdict::Unhealthy),
        );
        for (kind, strategy, status, expected) in [
            ("StatefulSet", "RollingUpdate", set(3, "b"), well),
            ("StatefulSet", "RollingUpdate", set(1, "b"), waits),
            ("StatefulSet", "RollingUpdate", set(0, "a"), waits),
            ("StatefulSet", "RollingUpdate", set(0, "b"), down),
            ("StatefulSet", "OnDelete", set(3, "a"), well),
            ("StatefulSet", "OnDelete", set(1, "a"), waits),
            ("StatefulSet", "OnDelete", set(0, "a"), down),
            ("DaemonSet", "RollingUpdate", daemon(0, 2), waits),
            ("DaemonSet", "RollingUpdate", daemon(0, 3), down),
            ("DaemonSet", "OnDelete", daemon(3, 0), well),
            ("DaemonSet", "OnDelete", daemon(0, 0), down),
            ("ReplicaSet", "", json!({ "replicas": 3, "readyReplicas": 0 }), down),
        ] {
            assert_eq!(verdicts(kind, strategy, status.clone()), expected, "{kind} {strategy} {status}");
        }
    }

    #[test]
    fn a_pod_says_why_it_does_not_serve() {
        let pod = |state: Value| {
            let status = json!({ "phase": "Running", "containerStatuses": [{ "name": "main", "state": state }] });
            judged("v1", "Pod", status)
        };
        for (state, told) in [
            (json!({ "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } }), "no such image"),
            (json!({ "terminated": { "reason": "OOMKilled", "exitCode": 137 } }), "more memory than its limit"),
            (json!({ "terminated": { "reason": "Error", "exitCode": 3 } }), "exit code 3"),
        ] {
            let (verdict, reason) = pod(state);
            assert!(verdict == Verdict::Unhealthy && reason.contains(told), "{reason}");
        }
    }
}
