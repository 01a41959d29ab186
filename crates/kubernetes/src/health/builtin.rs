//! Kinds that come with Kubernetes.

use serde_json::Value;

use super::{Health, Verdict};
use crate::status::{Status, condition, count, group, status_of};

/// Kinds that do nothing by themselves.
const INERT: [&str; 36] = [
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "Endpoints",
    "EndpointSlice",
    "StorageClass",
    "CSIDriver",
    "CSINode",
    "VolumeAttachment",
    "VolumeAttributesClass",
    "PriorityClass",
    "RuntimeClass",
    "IngressClass",
    "Lease",
    "Event",
    "PodTemplate",
    "ControllerRevision",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "ComponentStatus",
    "DeviceClass",
    "IPAddress",
    "ServiceCIDR",
];
/// Why a container does not start, where waiting alone does not help.
const NO_START: [&str; 10] = [
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// None where the kind is somebody's own.
pub(super) fn judge(object: &Value, now_s: i64) -> Option<Health> {
    let kind = object["kind"].as_str().unwrap_or_default();
    Some(match (group(object), kind) {
        ("apps" | "extensions", "Deployment") => deployment(object, now_s),
        ("apps" | "extensions", "ReplicaSet") => as_status(object, now_s, "replicas"),
        ("apps", "StatefulSet") => stateful_set(object, now_s),
        ("apps" | "extensions", "DaemonSet") => daemon_set(object, now_s),
        ("", "ReplicationController") => {
            super::counted(object).unwrap_or_else(|| waits("replicas", "it has no status yet"))
        }
        ("", "Pod") => pod(object, now_s),
        ("", "Service") => service(object),
        ("", "PersistentVolumeClaim") => as_status(object, now_s, "claim"),
        ("", "PersistentVolume" | "Namespace") => super::phase::judge(&object["status"]).map_or_else(
            || waits("phase", "it has no status yet"),
            |found| {
                if found.reason == "it says `Failed`" { Health { verdict: Verdict::Unhealthy, ..found } } else { found }
            },
        ),
        ("", "Node") => node(object),
        ("batch", "Job") => job(object),
        ("batch", "CronJob") => cron_job(object),
        ("networking.k8s.io" | "extensions", "Ingress") => match has_address(object) {
            true => Health::healthy("ingress"),
            false => waits("ingress", "no load balancer has given it an address yet"),
        },
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(object),
        ("policy", "PodDisruptionBudget") => disruption_budget(object),
        ("apiregistration.k8s.io", "APIService") => match condition(object, "Available") {
            Some(it) if it.status == "True" => Health::healthy("conditions"),
            Some(it) => waits("conditions", it.told("what serves it is not available")),
            None => waits("conditions", "it is not known yet whether it is served"),
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object, now_s),
        (group, kind) if INERT.contains(&kind) && (!group.contains('.') || group.ends_with(".k8s.io")) => {
            Health::new(Verdict::NotApplicable, "inert", "there is nothing about it that could be well or not")
        }
        _ => return None,
    })
}

fn waits(rule: &'static str, reason: impl Into<String>) -> Health {
    Health::new(Verdict::Progressing, rule, reason)
}

fn ill(rule: &'static str, reason: impl Into<String>) -> Health {
    Health::new(Verdict::Unhealthy, rule, reason)
}

/// As its readiness has it.
fn as_status(object: &Value, now_s: i64, rule: &'static str) -> Health {
    match status_of(object, now_s) {
        Status::Ready => Health::healthy(rule),
        Status::Progressing(why) | Status::Terminating(why) => waits(rule, why),
        Status::Failed(why) => ill(rule, why),
    }
}

fn deployment(object: &Value, now_s: i64) -> Health {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = count(object, "status", "availableReplicas");
    let told = |what: &str| format!("{ready} of {wanted} replicas are available{what}");
    let is_paused = object["spec"]["paused"] == true;
    if is_paused && (ready > 0 || wanted == 0) {
        return Health::suspended("deployment", "its rollout is paused");
    }
    let progressing = condition(object, "Progressing");
    let is_late = progressing.as_ref().is_some_and(|it| it.reason == "ProgressDeadlineExceeded");
    let blocked = condition(object, "ReplicaFailure").filter(|it| it.status == "True");
    if let Some(why) = blocked
        .map(|it| it.told("pods can't be created"))
        .or_else(|| is_late.then(|| told(", and its rollout makes no progress")))
    {
        let verdict = if ready == 0 && wanted > 0 { Verdict::Unhealthy } else { Verdict::Degraded };
        return Health::new(verdict, "deployment", why);
    }
    let rolled_out = progressing.as_ref().is_some_and(|it| it.reason == "NewReplicaSetAvailable");
    match as_status(object, now_s, "deployment") {
        // The rollout is over, and pods have gone since.
        found if found.verdict == Verdict::Progressing && rolled_out && ready < wanted => match ready {
            0 => ill("deployment", told("")),
            _ => Health::new(Verdict::Degraded, "deployment", told("")),
        },
        found => found,
    }
}

fn stateful_set(object: &Value, now_s: i64) -> Health {
    if !is_on_delete(object) {
        return as_status(object, now_s, "replicas");
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    match count(object, "status", "readyReplicas") {
        ready if ready >= wanted => Health::healthy("replicas"),
        ready => waits("replicas", format!("{ready} of {wanted} replicas are ready")),
    }
}

/// Its pods are replaced when somebody deletes them.
fn is_on_delete(object: &Value) -> bool {
    object["spec"]["updateStrategy"]["type"] == "OnDelete"
}

fn daemon_set(object: &Value, now_s: i64) -> Health {
    if !is_on_delete(object) {
        return as_status(object, now_s, "nodes");
    }
    let wanted = count(object, "status", "desiredNumberScheduled");
    let ready = count(object, "status", "numberAvailable");
    match ready >= wanted {
        true => Health::healthy("nodes"),
        false => waits("nodes", format!("{ready} of {wanted} nodes run it")),
    }
}

/// Whether a workload that is not being updated has no pod that is ready.
pub(super) fn is_down(object: &Value) -> bool {
    let status = |key: &str| count(object, "status", key);
    let (wanted, ready, is_updated) = match (group(object), object["kind"].as_str().unwrap_or_default()) {
        ("apps" | "extensions", "ReplicaSet") => {
            (object["spec"]["replicas"].as_i64().unwrap_or(1), status("readyReplicas"), true)
        }
        ("apps", "StatefulSet") => {
            let revision = |key: &str| &object["status"][key];
            let is_updated = revision("currentRevision") == revision("updateRevision");
            (object["spec"]["replicas"].as_i64().unwrap_or(1), status("readyReplicas"), is_updated)
        }
        ("apps" | "extensions", "DaemonSet") => {
            let wanted = status("desiredNumberScheduled");
            (wanted, status("numberReady"), status("updatedNumberScheduled") >= wanted)
        }
        _ => return false,
    };
    let is_seen = object["status"]["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64();
    is_seen && wanted > 0 && ready == 0 && (is_updated || is_on_delete(object))
}

fn pod(object: &Value, now_s: i64) -> Health {
    let status = &object["status"];
    let why = || {
        let all = ["initContainerStatuses", "containerStatuses"].into_iter();
        let mut all = all.flat_map(|list| status[list].as_array().into_iter().flatten());
        all.find_map(trouble)
    };
    match status["phase"].as_str() {
        Some("Succeeded") => Health::healthy("pod"),
        Some("Failed") => {
            let text = status["message"].as_str().or_else(|| status["reason"].as_str()).map(str::to_owned);
            ill("pod", text.or_else(why).unwrap_or_else(|| "it failed".into()))
        }
        Some("Running" | "Pending") if let Some(why) = why() => ill("pod", why),
        // One that runs to an end is not there yet.
        Some("Running") if matches!(object["spec"]["restartPolicy"].as_str(), Some("Never" | "OnFailure")) => {
            waits("pod", "it runs, and has not ended yet")
        }
        _ => as_status(object, now_s, "pod"),
    }
}

/// Why a container of a pod does not serve, where waiting alone does not help.
fn trouble(container: &Value) -> Option<String> {
    let name = container["name"].as_str().unwrap_or_default();
    let state = &container["state"];
    if let Some(reason) = state["waiting"]["reason"].as_str().filter(|reason| NO_START.contains(reason)) {
        let message = state["waiting"]["message"].as_str().map(|text| format!(": {text}")).unwrap_or_default();
        return Some(format!("container `{name}` does not start ({reason}){message}"));
    }
    let ended = &state["terminated"];
    let code = ended["exitCode"].as_i64().filter(|code| *code != 0)?;
    Some(match ended["reason"].as_str() {
        Some("OOMKilled") => format!("container `{name}` was killed: it used more memory than its limit"),
        _ => format!("container `{name}` ended with exit code {code}"),
    })
}

fn has_address(object: &Value) -> bool {
    object["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|all| !all.is_empty())
}

fn service(object: &Value) -> Health {
    match object["spec"]["type"] != "LoadBalancer" || has_address(object) {
        true => Health::healthy("service"),
        false => waits("service", "its load balancer has no address yet"),
    }
}

fn node(object: &Value) -> Health {
    let ready = condition(object, "Ready");
    if ready.as_ref().is_none_or(|it| it.status != "True") {
        let why = ready.map_or_else(|| "it has not reported yet".to_owned(), |it| it.told("it is not ready"));
        return ill("conditions", why);
    }
    super::conditions::judge(object).unwrap_or_else(|| Health::healthy("conditions"))
}

fn job(object: &Value) -> Health {
    let is = |name: &str| condition(object, name).filter(|it| it.status == "True");
    if let Some(failed) = is("Failed") {
        return ill("job", failed.told("it failed"));
    }
    if is("Complete").is_some() {
        return Health::healthy("job");
    }
    if object["spec"]["suspend"] == true || is("Suspended").is_some() {
        return Health::suspended("job", "it does not run until somebody resumes it");
    }
    let failed = count(object, "status", "failed");
    match (object["status"]["startTime"].is_null(), failed) {
        (true, _) => waits("job", "it has not started yet"),
        (false, 0) => waits("job", "it runs"),
        (false, times) => waits("job", format!("it runs again after {times} of its pods failed")),
    }
}

fn cron_job(object: &Value) -> Health {
    let time = |key: &str| object["status"][key].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    if object["spec"]["suspend"] == true {
        return Health::suspended("cron-job", "it starts no jobs until somebody resumes it");
    }
    let runs = object["status"]["active"].as_array().is_some_and(|all| !all.is_empty());
    match (time("lastScheduleTime"), time("lastSuccessfulTime")) {
        (Some(begun), Some(succeeded)) if succeeded < begun && !runs => {
            Health::new(Verdict::Degraded, "cron-job", format!("its job of {begun} has not succeeded"))
        }
        _ => Health::healthy("cron-job"),
    }
}

fn autoscaler(object: &Value) -> Health {
    const RULE: &str = "autoscaler";
    let text = object["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/conditions"].as_str();
    let noted: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    let all = object["status"]["conditions"].as_array().or_else(|| noted.as_ref().and_then(Value::as_array));
    let all: &[Value] = all.map_or(&[], Vec::as_slice);
    let bad = all.iter().find(|it| {
        let reason = it["reason"].as_str().unwrap_or_default();
        it["status"] == "False"
            && matches!(it["type"].as_str(), Some("AbleToScale" | "ScalingActive"))
            && (reason.starts_with("Failed") || reason.starts_with("Invalid"))
    });
    if let Some(bad) = bad {
        let text = |key: &str| bad[key].as_str().unwrap_or_default();
        return Health::new(Verdict::Degraded, RULE, format!("{}: {}", text("reason"), text("message")));
    }
    match all.iter().any(|it| it["type"] == "AbleToScale" && it["status"] == "True") {
        true => Health::healthy(RULE),
        false => waits(RULE, "it does not scale yet"),
    }
}

fn disruption_budget(object: &Value) -> Health {
    const RULE: &str = "disruption-budget";
    if !super::has_status(object) {
        return waits(RULE, "its controller has not reported on it yet");
    }
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    let failed = all.clone().find(|it| it["reason"] == "SyncFailed");
    let (have, want) = (count(object, "status", "currentHealthy"), count(object, "status", "desiredHealthy"));
    match failed {
        Some(failed) => {
            let message = failed["message"].as_str().filter(|text| !text.is_empty());
            Health::new(Verdict::Degraded, RULE, message.unwrap_or("its controller can't tell which pods it covers"))
        }
        None if have < want => {
            Health::new(Verdict::Degraded, RULE, format!("{have} of at least {want} pods are healthy"))
        }
        None => Health::healthy(RULE),
    }
}

fn definition(object: &Value, now_s: i64) -> Health {
    if condition(object, "Terminating").is_some_and(|it| it.status == "True") {
        return waits("definition", "it is being deleted");
    }
    if let Some(bad) = condition(object, "NonStructuralSchema").filter(|it| it.status == "True") {
        return Health::new(Verdict::Degraded, "definition", bad.told("its schema is not structural"));
    }
    as_status(object, now_s, "definition")
}
