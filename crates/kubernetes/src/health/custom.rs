//! Kinds whose controllers do not speak in conditions, or mean something else by them.

use serde_json::Value;

use super::{Health, Verdict};
use crate::ObjectRef;
use crate::status::{condition, group};

/// Groups whose controllers report on each of their objects. Until they have, nothing is known.
const REPORTING: [&str; 28] = [
    "k8s.elastic.co",
    "ceph.rook.io",
    "cert-manager.io",
    "external-secrets.io",
    "bitnami.com",
    "kafka.strimzi.io",
    "kyverno.io",
    "onepassword.com",
    "clickhouse.altinity.com",
    "argoproj.io",
    "toolkit.fluxcd.io",
    "gateway.networking.k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "keda.sh",
    "postgresql.cnpg.io",
    "minio.min.io",
    "datadoghq.com",
    "operators.coreos.com",
    "opentelemetry.io",
    "serving.knative.dev",
    "cluster.x-k8s.io",
    "acid.zalan.do",
    "zookeeper.pravega.io",
    "rabbitmq.com",
    "mongodb.com",
    "flagger.app",
    "services.k8s.aws",
];
/// Kinds of these groups on which nobody reports.
const SILENT: [&str; 12] = [
    "AppProject",
    "AnalysisTemplate",
    "ClusterAnalysisTemplate",
    "WorkflowTemplate",
    "ClusterWorkflowTemplate",
    "TriggerAuthentication",
    "ClusterTriggerAuthentication",
    "Provider",
    "Alert",
    "ReferenceGrant",
    "MetricTemplate",
    "AlertProvider",
];

/// Whether an object without a status waits for one.
pub(super) fn reports(of: &ObjectRef) -> bool {
    let known = |known: &&str| of.group == **known || of.group.ends_with(&format!(".{known}"));
    REPORTING.iter().any(known) && !SILENT.contains(&of.kind.as_str())
}

pub(super) fn judge(object: &Value) -> Option<Health> {
    match (group(object), object["kind"].as_str().unwrap_or_default()) {
        ("argoproj.io", "Rollout") => Some(rollout(object)),
        ("elasticsearch.k8s.elastic.co", "Elasticsearch") => elastic(object),
        // They run to an end, so running is not the end.
        ("argoproj.io", "Workflow" | "AnalysisRun" | "Experiment") => match object["status"]["phase"].as_str() {
            Some("Running") => Some(waits("phase", "it runs, and has not ended yet")),
            _ => None,
        },
        ("minio.min.io", "Tenant") => Some(tenant(object)),
        ("opentelemetry.io", "OpenTelemetryCollector") => Some(collector(object)),
        ("operators.coreos.com", "Subscription") => Some(subscription(object)),
        ("postgresql.cnpg.io", "Cluster") => postgres(object),
        _ => None,
    }
}

fn waits(rule: &'static str, reason: impl Into<String>) -> Health {
    Health::new(Verdict::Progressing, rule, reason)
}

fn bad(rule: &'static str, reason: impl Into<String>) -> Health {
    Health::new(Verdict::Degraded, rule, reason)
}

/// Argo Rollouts: a Deployment whose pods are exchanged in steps.
fn rollout(object: &Value) -> Health {
    const RULE: &str = "rollout";
    let (spec, status) = (&object["spec"], &object["status"]);
    if !super::has_status(object) {
        return waits(RULE, "its controller has not reported on it yet");
    }
    let asked = &object["metadata"]["annotations"]["rollout.argoproj.io/workload-generation"];
    if let (Some(asked), Some(seen)) = (asked.as_str(), status["workloadObservedGeneration"].as_str())
        && asked != seen
    {
        return waits(RULE, "its controller has not seen the latest change of its workload yet");
    }
    let message = status["message"].as_str().unwrap_or_default();
    match status["phase"].as_str() {
        Some("Degraded") => return bad(RULE, message),
        Some("Paused") => return Health::suspended(RULE, message),
        _ => {}
    }
    let is = |name: &str, status: &str| condition(object, name).filter(|it| it.status == status);
    if let Some(invalid) = is("InvalidSpec", "True") {
        return bad(RULE, invalid.told("its spec is invalid"));
    }
    let progressing = condition(object, "Progressing");
    if let Some(stopped) = progressing
        .as_ref()
        .filter(|it| matches!(it.reason, "RolloutAborted" | "ProgressDeadlineExceeded") && it.status == "False")
    {
        return bad(RULE, stopped.told("it was aborted"));
    }
    let pauses = status["pauseConditions"].as_array().is_some_and(|all| !all.is_empty());
    if spec["paused"] == true || pauses || progressing.is_some_and(|it| it.reason == "RolloutPaused") {
        return Health::suspended(RULE, "it waits for somebody to promote it");
    }
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let (all, updated) = (number(&status["replicas"]), number(&status["updatedReplicas"]));
    if updated < wanted {
        return waits(RULE, format!("{updated} of {wanted} replicas are updated"));
    }
    if all > updated {
        return waits(RULE, format!("{} old replicas are still there", all - updated));
    }
    if number(&status["availableReplicas"]) < updated {
        return waits(RULE, format!("{} of {updated} replicas are available", number(&status["availableReplicas"])));
    }
    let current = &status["currentPodHash"];
    let served = [&status["blueGreen"]["activeSelector"], &status["activeSelector"]];
    let stable = [&status["canary"]["stableRS"], &status["stableRS"]];
    let is_other = |hash: &&Value| hash.as_str().is_some_and(|hash| !hash.is_empty() && *current != hash);
    if served.iter().chain(&stable).any(is_other) {
        return waits(RULE, "its new version does not get all of the traffic yet");
    }
    Health::healthy(RULE)
}

/// Elastic: the phase says nothing of nodes that are still missing.
fn elastic(object: &Value) -> Option<Health> {
    const RULE: &str = "elastic";
    if !super::has_status(object) {
        return Some(Health::new(Verdict::Unknown, RULE, "its operator has not reported on it"));
    }
    let sets = object["spec"]["nodeSets"].as_array().into_iter().flatten();
    let wanted: i64 = sets.filter_map(|set| set["count"].as_i64()).sum();
    let there = object["status"]["availableNodes"].as_i64().unwrap_or_default();
    let is_ready = object["status"]["phase"] == "Ready" && object["status"]["health"] == "green";
    (is_ready && there < wanted).then(|| waits(RULE, format!("{there} of {wanted} nodes are available")))
}

/// MinIO says it in sentences.
fn tenant(object: &Value) -> Health {
    const RULE: &str = "tenant";
    let Some(state) = object["status"]["currentState"].as_str().filter(|text| !text.is_empty()) else {
        return waits(RULE, "its operator has not reported on it yet");
    };
    let lower = state.to_lowercase();
    let says = |some: &[&str]| some.iter().any(|word| lower.contains(word));
    match (state == "Initialized", says(&[" not ", "already exists", "different", "mismatch", "failed", "error"])) {
        (true, _) => Health::healthy(RULE),
        (_, true) => bad(RULE, state),
        _ => waits(RULE, state),
    }
}

/// `2/3` replicas; as a sidecar it has none of its own.
fn collector(object: &Value) -> Health {
    const RULE: &str = "collector";
    let counts = object["status"]["scale"]["statusReplicas"].as_str().and_then(|text| text.split_once('/'));
    let counts = counts.and_then(|(ready, all)| Some((ready.parse::<u64>().ok()?, all.parse::<u64>().ok()?)));
    match counts {
        Some((ready, all)) if ready >= all => Health::healthy(RULE),
        Some((0, all)) => Health::new(Verdict::Unhealthy, RULE, format!("0 of {all} replicas are ready")),
        Some((ready, all)) => waits(RULE, format!("{ready} of {all} replicas are ready")),
        None if object["spec"]["mode"] == "sidecar" => Health::healthy(RULE),
        None => waits(RULE, "its operator has not reported its replicas yet"),
    }
}

/// Operator Lifecycle Manager: what is installed, and what would be.
fn subscription(object: &Value) -> Health {
    const RULE: &str = "subscription";
    let status = &object["status"];
    let is_true = |name: &str| condition(object, name).filter(|it| it.status == "True");
    for name in ["InstallPlanFailed", "ResolutionFailed", "BundleUnpackFailed", "CatalogSourcesUnhealthy"] {
        if let Some(failed) = is_true(name) {
            return bad(RULE, failed.told(name));
        }
    }
    let is_installed = status["installedCSV"].is_string();
    match is_true("InstallPlanPending") {
        Some(pending) if pending.reason == "RequiresApproval" && is_installed => {
            Health::new(Verdict::Healthy, RULE, "an upgrade waits for somebody to approve it")
        }
        Some(pending) => waits(RULE, pending.told("it is being installed")),
        None if status["state"] == "AtLatestKnown" || is_installed => Health::healthy(RULE),
        None => waits(RULE, "nothing is installed yet"),
    }
}

/// CloudNativePG: its phase is a sentence, and its condition says no more than whether it is whole.
fn postgres(object: &Value) -> Option<Health> {
    const RULE: &str = "postgres";
    let notes = &object["metadata"]["annotations"];
    let phase = object["status"]["phase"].as_str()?;
    let lower = phase.to_lowercase();
    let says = |some: &[&str]| some.iter().any(|word| lower.contains(word));
    let reason = object["status"]["phaseReason"].as_str().unwrap_or(phase);
    Some(if notes["cnpg.io/hibernation"] == "on" {
        Health::suspended(RULE, "it hibernates")
    } else if says(&["fail", "cannot", "unable", "unrecoverable", "not enough", "error", "invalid", "inconsistent"]) {
        bad(RULE, reason)
    } else if phase != "Cluster in healthy state" {
        waits(RULE, reason)
    } else if notes["cnpg.io/reconciliationLoop"] == "disabled" {
        Health::suspended(RULE, "its operator leaves it alone")
    } else {
        Health::healthy(RULE)
    })
}
