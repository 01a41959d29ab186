//! The engine: what steps there are, and that no order of events leads astray.

mod events;
mod health;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use config::AppConfig;
use engine::{OnError, Request, Situation, Workflow, WorkflowKind};
use model::{StepId, Timestamp, WorkflowId};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

/// An app with every type of component, and a hook at every place.
pub(crate) fn app() -> AppConfig {
    let component = |name: &str, kind: &str, more: serde_json::Value| {
        let mut value = serde_json::json!({ "name": name, "type": kind });
        for (key, more) in more.as_object().expect("an object") {
            value[key] = more.clone();
        }
        value
    };
    let hook = |name: &str, triggers: &[(&str, i64, Option<&str>)]| {
        let triggers: Vec<serde_json::Value> = triggers
            .iter()
            .map(|(kind, index, component)| serde_json::json!({ "type": kind, "index": index, "component_name": component }))
            .collect();
        serde_json::json!({ "name": name, "triggers": triggers, "steps": [{ "name": "s", "command": "true" }] })
    };
    let repo = serde_json::json!({ "repo": "a/b", "branch": "main", "directory": "." });
    let value = serde_json::json!({
        "sandbox": { "terraform_version": "1.11.3", "public_repo": repo, "vars": { "size": "{{ .nuon.inputs.inputs.size }}" } },
        "inputs": [{ "name": "size" }, { "name": "host" }],
        "components": [
            component("web", "kubernetes_manifest", serde_json::json!({ "manifest": "{{ .nuon.components.api.outputs.url }}", "namespace": "web" })),
            component("api", "helm_chart", serde_json::json!({ "chart_name": "api-chart", "public_repo": repo, "dependencies": ["db", "img"], "values": { "host": "{{ .nuon.inputs.inputs.host }}" } })),
            component("db", "terraform_module", serde_json::json!({ "terraform_version": "1.11.3", "public_repo": repo, "max_auto_retries": 1 })),
            component("queue", "terraform_module", serde_json::json!({ "terraform_version": "1.11.3", "public_repo": repo })),
            component("img", "container_image", serde_json::json!({ "public": { "image_url": "x", "tag": "1" } })),
        ],
        "actions": [
            hook("first", &[("pre-deploy-component", 1, Some("api")), ("pre-provision", 0, None), ("pre-deploy-all-components", 0, None), ("manual", 0, None)]),
            hook("second", &[("pre-deploy-component", 0, Some("api")), ("post-deploy-component", 0, Some("api")), ("post-provision", 0, None)]),
            hook("third", &[("pre-teardown-component", 0, Some("db")), ("post-deprovision", 0, None), ("pre-secrets-sync", 0, None), ("post-update-inputs", 0, None), ("post-deploy-all-components", 0, None)]),
        ],
        "runbooks": [{ "name": "book", "steps": [
            { "name": "one", "type": "component_deploy", "component_name": "db", "deploy_dependents": true },
            { "name": "two", "type": "action", "action_name": "first" },
            { "name": "three", "type": "action", "command": "true" },
        ] }, { "name": "swap", "steps": [
            { "name": "out", "type": "component_tear_down", "component_name": "queue" },
            { "name": "in", "type": "component_deploy", "component_name": "db" },
            { "name": "tell", "type": "action", "command": "true" },
        ] }],
    });
    AppConfig::from_json(&value).expect("a config")
}

pub(crate) fn ids() -> impl FnMut() -> StepId {
    let mut next = 0;
    move || {
        next += 1;
        StepId::new(NOW, next)
    }
}

pub(crate) fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn workflow(kind: WorkflowKind, on_error: OnError) -> Workflow {
    let request = Request { kind, plan_only: false, deployed: false };
    let (config, disabled) = (app(), names(&[]));
    let deployed = names(&["web", "api", "db", "queue", "img"]);
    let at = Situation {
        config: &config,
        disabled: &disabled,
        deployed: &deployed,
        sandbox_deployed: true,
        overrides: &BTreeMap::new(),
        secrets_written: false,
        now: NOW,
    };
    let steps = engine::plan(&request, at, &mut ids()).expect("steps");
    let id = WorkflowId::new(NOW, 1);
    Workflow { id, request, on_error, approve_all: None, cancelled_by: None, steps: steps.into_iter().collect() }
}
