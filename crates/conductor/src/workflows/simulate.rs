//! How a simulated org plays its jobs: from a seed, so that the same rehearsal has the same course.

use engine::{Changes, Step};
use model::Digest;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Document;

/// Words in the names of components that hold data.
const HOLD_DATA: [&str; 5] = ["db", "database", "storage", "bucket", "catalog"];

/// What an org says about its simulation.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Simulation {
    seed: u64,
    /// The longest that a step takes; each takes between half of it and all of it.
    step_ms: u64,
    fail_percent: u64,
    /// How many applies end and nobody knows how.
    unknown_percent: u64,
    /// How many looks find that something has drifted.
    drift_percent: u64,
    /// How many resources each part has; 0: a few.
    resources: u64,
}

impl Default for Simulation {
    fn default() -> Self {
        Self { seed: 1, step_ms: 200, fail_percent: 0, unknown_percent: 0, drift_percent: 0, resources: 0 }
    }
}

/// What chance says about one attempt at a step.
#[derive(Debug)]
pub(super) struct Draw {
    pub(super) lasts_ms: i64,
    pub(super) fails: bool,
    pub(super) unknown: bool,
    drifts: bool,
    count: u64,
    replaces: bool,
}

impl Simulation {
    pub(super) fn of(settings: &Value) -> Self {
        serde_json::from_value(settings.clone()).unwrap_or_default()
    }

    pub(super) fn draw(&self, install: &str, step: &Step) -> Draw {
        let text = format!("{}|{install}|{}|{}", self.seed, step.name, step.attempt);
        let digest = Digest::of(text.as_bytes()).to_string();
        let hex = digest.rsplit(':').next().unwrap_or_default();
        let number =
            |at: usize| hex.get(at..at + 8).and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or_default();
        let half = self.step_ms / 2;
        Draw {
            lasts_ms: (half + number(0) % (self.step_ms - half + 1)) as i64,
            fails: number(8) % 100 < self.fail_percent,
            unknown: number(40) % 100 < self.unknown_percent,
            drifts: number(16) % 100 < self.drift_percent,
            count: if self.resources > 0 { self.resources } else { 1 + number(24) % 5 },
            replaces: number(32) % 10 == 0,
        }
    }

    /// Values for every output that the app reads.
    pub(super) fn outputs(&self, document: &Document, component: Option<&str>) -> Value {
        let mut outputs = Map::new();
        for path in document.uses.outputs.keys().filter(|(of, _)| of.as_deref() == component).map(|(_, path)| path) {
            let mut at = &mut outputs;
            for (n, key) in path.iter().enumerate() {
                if n + 1 == path.len() {
                    let text = format!("simulated-{}-{}", component.unwrap_or("sandbox"), path.join("-"));
                    at.entry(key.clone()).or_insert(Value::String(text));
                } else {
                    let next = at.entry(key.clone()).or_insert_with(|| json!({}));
                    if !next.is_object() {
                        *next = json!({});
                    }
                    let Some(next) = next.as_object_mut() else { break };
                    at = next;
                }
            }
        }
        Value::Object(outputs)
    }
}

impl Draw {
    /// What a plan finds, and what people see of it.
    pub(super) fn plan(
        &self,
        target: &str,
        deployed: bool,
        teardown: bool,
        same: bool,
        look_only: bool,
    ) -> (Changes, Value) {
        let mut changes = Changes::default();
        let action = if teardown {
            changes.destroy = if deployed { self.count } else { 0 };
            "destroy"
        } else if !deployed {
            changes.create = self.count;
            "create"
        } else if same {
            changes.update = u64::from(look_only && self.drifts);
            "update"
        } else if self.replaces {
            changes.replace = 1;
            "replace"
        } else {
            changes.update = self.count;
            "update"
        };
        let count = changes.create + changes.update + changes.replace + changes.destroy;
        let name = target.rsplit('/').next().unwrap_or(target);
        // Some hold data, so that people can see what that looks like.
        let holds_data = HOLD_DATA.iter().any(|word| name.contains(word)) && matches!(action, "destroy" | "replace");
        let resource = |n| {
            let mut resource = json!({ "address": format!("simulated.{name}[{n}]"), "action": action });
            if matches!(action, "update" | "replace") {
                resource["attributes"] = json!([{
                    "path": "size", "before": { "is": "value", "text": "1" }, "after": { "is": "value", "text": "2" },
                    "replaces": action == "replace",
                }]);
            }
            if holds_data {
                resource["stateful"] = json!(true);
            }
            resource
        };
        let resources: Vec<Value> = (0..count).map(resource).collect();
        let stateful = if holds_data { count } else { 0 };
        (changes, json!({ "simulated": true, "changes": changes, "resources": resources, "stateful": stateful }))
    }
}
