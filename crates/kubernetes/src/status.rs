//! Whether an object has become what it was asked to be.

use serde_json::Value;

/// How far the cluster is with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Ready,
    /// Not yet, and this is what is missing.
    Progressing(String),
    /// It will not get there by waiting.
    Failed(String),
    /// It is being deleted.
    Terminating(String),
}

/// A pod may be without a node for this long before that is called a failure.
const SCHEDULING_S: i64 = 15;

/// Judges an object by its generations and conditions, and by its counts where its kind has some. `now_s` is in seconds since 1970.
pub fn status_of(object: &Value, now_s: i64) -> Status {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        let holders: Vec<&str> =
            metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        return Status::Terminating(match holders.is_empty() {
            true => "it is being deleted".to_owned(),
            false => format!("its deletion waits for the finalizers {}", holders.join(", ")),
        });
    }
    if let (Some(asked), Some(seen)) =
        (metadata["generation"].as_i64(), object["status"]["observedGeneration"].as_i64())
        && asked > seen
    {
        return Status::Progressing("its controller has not seen the latest change yet".to_owned());
    }
    let found = of_conditions(object);
    if found != Status::Ready {
        return found;
    }
    match (group(object), object["kind"].as_str().unwrap_or_default()) {
        ("apps" | "extensions", "Deployment") => deployment(object),
        ("apps" | "extensions", "ReplicaSet") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => daemon_set(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Pod") => pod(object, now_s),
        ("", "Service") => service(object),
        ("batch", "Job") => job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        _ => match condition(object, "Ready") {
            Some(ready) if ready.status == "False" || ready.status == "Unknown" => {
                Status::Progressing(ready.told("it is not ready"))
            }
            _ => Status::Ready,
        },
    }
}

pub(crate) fn group(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|text| text.split_once('/')).map_or("", |(group, _)| group)
}

pub(crate) struct Condition<'o> {
    pub(crate) status: &'o str,
    pub(crate) reason: &'o str,
    message: &'o str,
    since: Option<&'o str>,
}

impl Condition<'_> {
    pub(crate) fn told(&self, otherwise: &str) -> String {
        match (self.reason, self.message) {
            ("", "") => otherwise.to_owned(),
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

pub(crate) fn condition<'o>(object: &'o Value, kind: &str) -> Option<Condition<'o>> {
    let all = object["status"]["conditions"].as_array()?;
    let found = all.iter().find(|known| known["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap_or_default();
    Some(Condition {
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        since: found["lastTransitionTime"].as_str(),
    })
}

/// Conditions that mean the same for every kind.
fn of_conditions(object: &Value) -> Status {
    if let Some(stalled) = condition(object, "Stalled").filter(|it| it.status == "True") {
        return Status::Failed(stalled.told("it is stalled"));
    }
    if let Some(working) = condition(object, "Reconciling").filter(|it| it.status == "True") {
        return Status::Progressing(working.told("its controller works on it"));
    }
    Status::Ready
}

pub(crate) fn count(object: &Value, of: &str, key: &str) -> i64 {
    object[of][key].as_i64().unwrap_or_default()
}

/// The first count that is below what is wanted.
fn below(counts: &[(i64, &str)], wanted: i64) -> Option<Status> {
    let (have, what) = counts.iter().find(|(have, _)| *have < wanted)?;
    Some(Status::Progressing(format!("{have} of {wanted} replicas are {what}")))
}

fn deployment(object: &Value) -> Status {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let progressing = condition(object, "Progressing");
    if let Some(late) = progressing.as_ref().filter(|it| it.reason == "ProgressDeadlineExceeded") {
        return Status::Failed(late.told("it makes no progress"));
    }
    let status = |key| count(object, "status", key);
    let (all, updated) = (status("replicas"), status("updatedReplicas"));
    if let Some(missing) = below(&[(all, "there"), (updated, "updated")], wanted) {
        return missing;
    }
    if all > wanted {
        return Status::Progressing(format!("{} old replicas are still there", all - wanted));
    }
    if status("availableReplicas") < updated {
        return Status::Progressing(format!("{} of {updated} replicas are available", status("availableReplicas")));
    }
    if let Some(missing) = below(&[(status("readyReplicas"), "ready")], wanted) {
        return missing;
    }
    let bounded = object["spec"]["progressDeadlineSeconds"].as_i64().is_some_and(|limit| limit != i64::from(i32::MAX));
    let rolled_out =
        progressing.as_ref().is_some_and(|it| it.status == "True" && it.reason == "NewReplicaSetAvailable");
    if bounded && !rolled_out {
        return Status::Progressing("its new replica set is not available".to_owned());
    }
    match condition(object, "Available") {
        Some(it) if it.status == "True" => Status::Ready,
        _ => Status::Progressing("it is not available".to_owned()),
    }
}

fn replica_set(object: &Value) -> Status {
    if let Some(failed) = condition(object, "ReplicaFailure").filter(|it| it.status == "True") {
        return Status::Progressing(failed.told("pods can't be created"));
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = |key| count(object, "status", key);
    let counts = [
        (status("fullyLabeledReplicas"), "labelled"),
        (status("availableReplicas"), "available"),
        (status("readyReplicas"), "ready"),
    ];
    if let Some(missing) = below(&counts, wanted) {
        return missing;
    }
    match status("replicas") - wanted {
        extra if extra > 0 => Status::Progressing(format!("{extra} replicas too many are still there")),
        _ => Status::Ready,
    }
}

fn stateful_set(object: &Value) -> Status {
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Status::Ready;
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = |key| count(object, "status", key);
    if let Some(missing) = below(&[(status("replicas"), "there"), (status("readyReplicas"), "ready")], wanted) {
        return missing;
    }
    if status("replicas") > wanted {
        return Status::Progressing(format!("{} replicas too many are still there", status("replicas") - wanted));
    }
    if let Some(from) = object["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_i64().filter(|from| *from > 0)
    {
        return below(&[(status("updatedReplicas"), "updated")], wanted - from).unwrap_or(Status::Ready);
    }
    if let Some(missing) = below(&[(status("currentReplicas"), "current")], wanted) {
        return missing;
    }
    match object["status"]["currentRevision"] == object["status"]["updateRevision"] {
        true => Status::Ready,
        false => Status::Progressing("it is being updated".to_owned()),
    }
}

fn daemon_set(object: &Value) -> Status {
    if object["status"]["observedGeneration"].is_null() {
        return Status::Progressing("its controller has not seen it yet".to_owned());
    }
    let Some(wanted) = object["status"]["desiredNumberScheduled"].as_i64() else {
        return Status::Progressing("it is not known yet how many nodes it runs on".to_owned());
    };
    let status = |key| count(object, "status", key);
    let counts = [
        (status("currentNumberScheduled"), "scheduled"),
        (status("updatedNumberScheduled"), "updated"),
        (status("numberAvailable"), "available"),
        (status("numberReady"), "ready"),
    ];
    below(&counts, wanted).unwrap_or(Status::Ready)
}

fn claim(object: &Value) -> Status {
    match object["status"]["phase"].as_str() {
        Some("Bound") => Status::Ready,
        Some("Lost") => Status::Failed("the volume that it was bound to is gone".to_owned()),
        _ => Status::Progressing("no volume is bound to it yet".to_owned()),
    }
}

fn pod(object: &Value, now_s: i64) -> Status {
    match object["status"]["phase"].as_str() {
        Some("Succeeded" | "Failed") => Status::Ready,
        Some("Running") => match crash_loop(object) {
            Some(why) => Status::Failed(why),
            None => match condition(object, "Ready").filter(|it| it.status == "True") {
                Some(_) => Status::Ready,
                None => Status::Progressing(
                    condition(object, "Ready").map_or_else(String::new, |it| it.told("it is not ready")),
                ),
            },
        },
        Some("Pending") => match condition(object, "PodScheduled")
            .filter(|it| it.status == "False" && it.reason == "Unschedulable")
        {
            Some(it) => {
                let since = it.since.or_else(|| object["metadata"]["creationTimestamp"].as_str());
                let since_s =
                    since.and_then(|text| text.parse::<jiff::Timestamp>().ok()).map_or(0, jiff::Timestamp::as_second);
                match now_s - since_s < SCHEDULING_S {
                    true => Status::Progressing("it waits for a node".to_owned()),
                    false => Status::Failed(it.told("no node can take it")),
                }
            }
            None => match crash_loop(object) {
                Some(why) => Status::Failed(why),
                None => Status::Progressing("it is pending".to_owned()),
            },
        },
        _ => Status::Progressing("the node has not taken it yet".to_owned()),
    }
}

/// Why a container of a pod does not come up, where waiting does not help.
fn crash_loop(object: &Value) -> Option<String> {
    let all = ["initContainerStatuses", "containerStatuses"];
    let mut containers = all.iter().flat_map(|of| object["status"][of].as_array().into_iter().flatten());
    containers.find_map(|container| {
        let waiting = &container["state"]["waiting"];
        let name = container["name"].as_str().unwrap_or_default();
        (waiting["reason"] == "CrashLoopBackOff").then(|| format!("container `{name}` crashes again and again"))
    })
}

fn service(object: &Value) -> Status {
    let spec = &object["spec"];
    let addresses = object["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|all| !all.is_empty());
    // On a cluster that hands out no load balancers it would wait for ever: inside of the cluster it answers.
    let inside = spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty());
    if spec["type"] == "LoadBalancer" && !addresses && !inside {
        return Status::Progressing("its load balancer has no address yet".to_owned());
    }
    Status::Ready
}

fn job(object: &Value) -> Status {
    if let Some(failed) = condition(object, "Failed").filter(|it| it.status == "True") {
        return Status::Failed(failed.told("it failed"));
    }
    let is_done = condition(object, "Complete").is_some_and(|it| it.status == "True");
    if is_done || object["status"]["startTime"].is_string() {
        return Status::Ready;
    }
    Status::Progressing("it has not started yet".to_owned())
}

fn definition(object: &Value) -> Status {
    if let Some(refused) = condition(object, "NamesAccepted").filter(|it| it.status == "False") {
        return Status::Failed(refused.told("its names are taken"));
    }
    match condition(object, "Established") {
        Some(it) if it.status == "True" => Status::Ready,
        Some(it) if it.reason != "Installing" && it.status == "False" => Status::Failed(it.told("it was not accepted")),
        _ => Status::Progressing("it is being installed".to_owned()),
    }
}
