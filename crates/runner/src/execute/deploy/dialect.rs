//! The diff of objects as existing clients of the API read it, beside our own model of the plan.

use serde_json::{Value, json};
use terraform::{Action, AttributeChange, Plan, ResourceChange, Shown};

/// How the dialect numbers what happens to an object or to a field.
const REMOVED: u8 = 1;
const ADDED: u8 = 2;
const MODIFIED: u8 = 3;

/// The objects that would change, each with its fields. The dialect has no word for an object that is left where it is.
pub(super) fn content_diff(plan: &Plan) -> Vec<Value> {
    plan.resources.iter().filter(|change| change.action != Action::Forget).map(object).collect()
}

fn object(change: &ResourceChange) -> Value {
    let (kind, op) = match change.action {
        Action::Create => (ADDED, "create"),
        Action::Destroy => (REMOVED, "delete"),
        Action::Update
        | Action::ReplaceDestroyFirst
        | Action::ReplaceCreateFirst
        | Action::ReplaceForget
        | Action::Forget
        | Action::Read
        | Action::Noop => (MODIFIED, "update"),
    };
    let mut parts = change.address.split('/').skip(1);
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let (namespace, name) = second.map_or(("", first), |name| (first, name));
    let entries: Vec<Value> = change.attributes.iter().map(entry).collect();
    json!({
        "_version": "1", "name": name, "namespace": namespace, "kind": change.kind, "resource": change.address, "op": op,
        "type": kind, "dry_run": true, "entries": entries,
    })
}

fn entry(change: &AttributeChange) -> Value {
    let kind = match (&change.before, &change.after) {
        (Shown::Absent, _) => ADDED,
        (_, Shown::Absent) => REMOVED,
        _ => MODIFIED,
    };
    json!({ "path": change.path, "original": text(&change.before), "applied": text(&change.after), "type": kind })
}

fn text(shown: &Shown) -> String {
    match shown {
        Shown::Absent => String::new(),
        Shown::Value { text, .. } => text.clone(),
        Shown::Sensitive => "(sensitive)".into(),
        Shown::Unknown => "(known after apply)".into(),
    }
}
