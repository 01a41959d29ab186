//! The Kubernetes Job of a component: its name, what it runs, and what is there of earlier ones.

use kubernetes::ObjectRef;
use model::Digest;
use model::kubernetes::RunSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The container of the component.
pub(super) const CONTAINER: &str = "main";
/// Label of a Job: the workspace of its component.
const WORKSPACE: &str = "ferry.dev/workspace";
/// Label of a pod: its Job.
const JOB: &str = "ferry.dev/job";
/// Annotation: names what the Job runs.
const CONTENT: &str = "ferry.dev/content";
/// Annotation: the serial of the state from which the Job was planned. A later run has a higher one.
const RUN: &str = "ferry.dev/run";
/// Of the component's name; a pod's name is longer than its Job's, and all must be labels.
const NAME_CHARS_MAX: usize = 40;
const HASH_CHARS: usize = 10;

/// How far a Job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Running,
    Complete,
    Failed,
}

impl State {
    pub(super) fn of(live: &Value) -> Self {
        let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
        let is = |kind: &str| conditions.clone().any(|it| it["type"] == kind && it["status"] == "True");
        match (is("Complete"), is("Failed")) {
            (true, _) => Self::Complete,
            (_, true) => Self::Failed,
            (false, false) => Self::Running,
        }
    }
}

/// A Job of the component that is in the cluster.
pub(super) struct Live {
    pub(super) of: ObjectRef,
    pub(super) uid: String,
    pub(super) content: String,
    pub(super) run: u64,
    pub(super) state: State,
    pub(super) object: Value,
}

impl Live {
    /// None where the object is no Job.
    pub(super) fn read(mut object: Value) -> Option<Self> {
        // Lists leave out what all of their items are.
        object["apiVersion"] = json!("batch/v1");
        object["kind"] = json!("Job");
        Some(Self {
            of: ObjectRef::of(&object)?,
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            content: note(&object, CONTENT).to_owned(),
            run: run_of(&object),
            state: State::of(&object),
            object,
        })
    }
}

fn note<'o>(object: &'o Value, key: &str) -> &'o str {
    object["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

/// Which run a Job is of.
pub(super) fn run_of(object: &Value) -> u64 {
    note(object, RUN).parse().unwrap_or_default()
}

/// The Jobs of a component.
pub(super) fn selector(workspace: &str) -> Value {
    json!({ WORKSPACE: workspace })
}

/// The pods of a Job.
pub(super) fn pods(job: &str) -> Value {
    json!({ JOB: job })
}

/// Names what a component runs: when it is another one, it runs again.
pub(super) fn content(job: &RunSpec) -> String {
    let all = json!([job.namespace, job.image, job.command, job.args, job.env, job.service_account, job.retries,]);
    Digest::of(all.to_string().as_bytes()).to_string()
}

/// The name of the Job of one run. It is made of the state that the run is planned from, which no two runs have in common, and
/// of nothing secret: the control plane sees it.
pub(super) fn name(job: &RunSpec, lineage: &str, serial: u64) -> String {
    let mut name: String = job
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(NAME_CHARS_MAX)
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "job-");
    }
    let run = json!([job.deploy.workspace_id, lineage, serial]).to_string();
    let hash = Digest::of(run.as_bytes()).to_string();
    let hash = hash.rsplit(':').next().unwrap_or_default();
    format!("{}-{}", name.trim_end_matches('-'), &hash[..HASH_CHARS])
}

pub(super) fn named(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        group: "batch".into(),
        version: "v1".into(),
        kind: "Job".into(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

/// The Job as it is applied. Kubernetes ends it after `timeout_s` by itself, should no executor be left to do it.
pub(super) fn object(job: &RunSpec, name: &str, run: u64, timeout_s: u64) -> Value {
    let workspace = job.deploy.workspace_id.as_str();
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": job.namespace,
            "labels": { WORKSPACE: workspace },
            "annotations": { CONTENT: content(job), RUN: run.to_string() },
        },
        "spec": {
            "backoffLimit": job.retries, "activeDeadlineSeconds": timeout_s, "parallelism": 1, "completions": 1,
            // Never two at a time, not even while the first one is on its way out.
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": { "labels": { WORKSPACE: workspace, JOB: name } },
                "spec": pod(job),
            },
        },
    })
}

fn pod(job: &RunSpec) -> Value {
    let env: Vec<Value> = job.env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let mut container = json!({ "name": CONTAINER, "image": job.image });
    for (key, value) in [("command", json!(job.command)), ("args", json!(job.args)), ("env", json!(env))] {
        if value.as_array().is_some_and(|all| !all.is_empty()) {
            container[key] = value;
        }
    }
    let mut pod = json!({ "restartPolicy": "Never", "containers": [container] });
    if let Some(account) = &job.service_account {
        pod["serviceAccountName"] = json!(account);
    }
    pod
}

/// What people see of a Job in a plan.
pub(super) fn shown(object: &Value) -> Value {
    let spec = &object["spec"];
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    let mut shown = json!({ "image": container["image"], "retries": spec["backoffLimit"] });
    for (key, value) in [
        ("command", &container["command"]),
        ("args", &container["args"]),
        ("env", &container["env"]),
        ("service_account", &pod["serviceAccountName"]),
    ] {
        if !value.is_null() {
            shown[key] = value.clone();
        }
    }
    shown
}

/// What people see of a Job that is there. What it was given may hold secrets that were changed since, which nothing masks.
pub(super) fn shown_live(object: &Value) -> Value {
    let mut shown = shown(object);
    if let Some(shown) = shown.as_object_mut() {
        shown.retain(|key, _| !matches!(key.as_str(), "command" | "args" | "env"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::deploy::{Deploy, DeployOperation};
    use model::{Timestamp, WorkspaceId};

    use super::*;

    fn job() -> RunSpec {
        RunSpec {
            deploy: Deploy {
                workspace_id: WorkspaceId::new(Timestamp::from_micros(1), 1),
                target: "components/db_migrate".into(),
                operation: DeployOperation::Plan { destroy: false },
                policies: Vec::new(),
                basis: String::new(),
            },
            name: "db_migrate".into(),
            namespace: "shop".into(),
            image: "shop:1".into(),
            command: Vec::new(),
            args: vec!["up".into()],
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            service_account: None,
            retries: 3,
        }
    }

    #[test]
    fn whatever_runs_differently_is_other_content() {
        let same = content(&job());
        assert_eq!(content(&RunSpec { name: "other".into(), ..job() }), same);
        let others = [
            RunSpec { namespace: "b".into(), ..job() },
            RunSpec { image: "shop:2".into(), ..job() },
            RunSpec { command: vec!["up".into()], args: Vec::new(), ..job() },
            RunSpec { args: vec!["down".into()], ..job() },
            RunSpec { env: BTreeMap::new(), ..job() },
            RunSpec { service_account: Some("a".into()), ..job() },
            RunSpec { retries: 2, ..job() },
        ];
        for other in others {
            assert_ne!(content(&other), same, "{other:?}");
        }
    }

    #[test]
    fn each_run_has_a_name_of_its_own_that_is_a_label() {
        let first = name(&job(), "", 0);
        assert!(first.starts_with("db-migrate-"), "{first}");
        assert_eq!(name(&job(), "", 0), first);
        assert_ne!(name(&job(), "l", 2), first);
        assert_eq!(name(&RunSpec { env: BTreeMap::new(), ..job() }, "", 0), first, "nothing of a value is in it");
        for odd in ["9lives", "a--", "Ünï", &"x".repeat(200)] {
            let name = name(&RunSpec { name: odd.into(), ..job() }, "l", 1);
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.len() <= 57 && name.chars().all(is_plain), "{name}");
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        }
    }

    #[test]
    fn nothing_is_shown_of_what_an_earlier_job_was_given() {
        let made = object(&job(), "it", 7, 60);
        assert_eq!(shown(&made)["env"], json!([{ "name": "A", "value": "b" }]));
        assert_eq!(shown_live(&made), json!({ "image": "shop:1", "retries": 3 }));
    }

    #[test]
    fn what_is_applied_is_read_again() {
        let made = object(&job(), "it", 7, 60);
        assert!(made["spec"]["template"]["spec"]["containers"][0].get("command").is_none());
        let live = Live::read(made).expect("a Job");
        assert_eq!((live.run, live.content, live.state), (7, content(&job()), State::Running));
        let ended =
            |kind: &str| State::of(&json!({ "status": { "conditions": [{ "type": kind, "status": "True" }] } }));
        assert_eq!((ended("Complete"), ended("Failed")), (State::Complete, State::Failed));
        assert_eq!(ended("SuccessCriteriaMet"), State::Running, "its pods are still going");
    }
}
