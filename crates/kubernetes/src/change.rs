//! What would change: objects as they are beside objects as they would be.

use serde_json::{Map, Value, json};

use crate::ObjectRef;

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Create,
    Update,
    /// Deleted and created: one of its fields can't be changed.
    Replace,
    Delete,
    /// Left where it is, and no longer known.
    Forget,
    Nothing,
}

impl Verb {
    const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Create => &["create"],
            Self::Update => &["update"],
            Self::Replace => &["delete", "create"],
            Self::Delete => &["delete"],
            Self::Forget => &["forget"],
            Self::Nothing => &["no-op"],
        }
    }
}

/// One object of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub of: ObjectRef,
    pub verb: Verb,
    /// Null where there is none.
    pub before: Value,
    pub after: Value,
    /// Why, as the end of a sentence.
    pub reason: Option<String>,
    /// Paths of fields that force a replacement: `spec.selector`.
    pub fixed: Vec<String>,
}

/// What the server sets, and nobody asks for.
const SERVER_SET: [&str; 6] =
    ["creationTimestamp", "resourceVersion", "generation", "uid", "managedFields", "selfLink"];
const NOTES: [&str; 3] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
];

/// An object without what the server sets by itself.
pub fn normalized(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    fields.remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !SERVER_SET.contains(&name.as_str()));
        if let Some(notes) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            notes.retain(|name, _| !NOTES.contains(&name.as_str()));
        }
        metadata.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    }
    object
}

/// Takes the places that a pattern names out of an object. `spec.replicas`, `data`, `spec.template.spec.containers[*].image`,
/// `metadata.annotations["example.com/hash"]`.
pub fn ignore(object: &mut Value, path: &str) {
    let steps = steps(path);
    remove(object, &steps);
}

/// Puts what stands at the places of a pattern in `live` into an object that has something there too.
pub fn keep(object: &mut Value, live: &Value, path: &str) {
    copy(object, live, &steps(path));
}

fn copy(value: &mut Value, live: &Value, steps: &[String]) {
    let Some((first, rest)) = steps.split_first() else {
        if !live.is_null() {
            *value = live.clone();
        }
        return;
    };
    match value {
        Value::Object(fields) => {
            let all = first == "*";
            let meant = fields.iter_mut().filter(|(name, _)| all || *name == first);
            meant.for_each(|(name, field)| copy(field, &live[name.as_str()], rest));
        }
        Value::Array(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                let name = item["name"].as_str();
                let meant = first == "*" || first.parse() == Ok(n) || name == Some(first.as_str());
                let other = match name {
                    Some(name) => live.as_array().into_iter().flatten().find(|other| other["name"] == name),
                    None => live.get(n),
                };
                if let (true, Some(other)) = (meant, other) {
                    copy(item, other, rest);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        rest = rest.trim_start_matches('.');
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((key, after)) = inner.split_once(']') else { break };
            steps.push(key.trim_matches(['"', '\'']).to_owned());
            rest = after;
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        steps.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    steps
}

fn remove(value: &mut Value, steps: &[String]) {
    let Some((first, rest)) = steps.split_first() else { return };
    match value {
        Value::Object(fields) if rest.is_empty() => match first.as_str() {
            "*" => fields.clear(),
            name => drop(fields.remove(name)),
        },
        Value::Object(fields) => {
            let all = first == "*";
            fields.iter_mut().filter(|(name, _)| all || *name == first).for_each(|(_, field)| remove(field, rest));
        }
        Value::Array(items) => {
            let index = first.parse::<usize>().ok();
            let meant = |(n, item): &(usize, &mut Value)| {
                first == "*" || index == Some(*n) || item["name"].as_str() == Some(first.as_str())
            };
            if rest.is_empty() {
                let gone: Vec<usize> = items.iter_mut().enumerate().filter(meant).map(|(n, _)| n).collect();
                for n in gone.into_iter().rev() {
                    items.remove(n);
                }
            } else {
                items.iter_mut().enumerate().filter(meant).for_each(|(_, item)| remove(item, rest));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Takes out of `after` what stood in the manifest before and does not stand in it now: whoever applies it deletes that.
pub fn removed_since(before: &Value, now: &Value, after: &mut Value) {
    match (before, now, after) {
        (Value::Object(before), Value::Object(now), Value::Object(after)) => {
            // What was null asked for nothing.
            for (name, was) in before.iter().filter(|(_, was)| !was.is_null()) {
                match (now.get(name), after.get_mut(name)) {
                    (None | Some(Value::Null), Some(_)) => drop(after.remove(name)),
                    (Some(now), Some(after)) => removed_since(was, now, after),
                    (_, None) => {}
                }
            }
        }
        (Value::Array(before), Value::Array(now), Value::Array(after)) => {
            if [before, now, after].iter().all(|items| have_names(items)) {
                let find = |items: &[Value], name: &Value| items.iter().find(|item| item["name"] == *name).cloned();
                after.retain(|item| find(now, &item["name"]).is_some() || find(before, &item["name"]).is_none());
                for item in after {
                    if let (Some(was), Some(is)) = (find(before, &item["name"]), find(now, &item["name"])) {
                        removed_since(&was, &is, item);
                    }
                }
            } else {
                let gone = before.iter().filter(|was| !now.iter().any(|is| says_all_of(is, was)));
                for was in gone {
                    // An item that is asked for now stays, whatever it has in common with what is gone.
                    let at = after
                        .iter()
                        .position(|item| says_all_of(item, was) && !now.iter().any(|is| says_all_of(item, is)));
                    at.map(|at| after.remove(at));
                }
            }
        }
        _ => {}
    }
}

/// Whether each item of a list has a name of its own.
fn have_names(items: &[Value]) -> bool {
    let names: std::collections::BTreeSet<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    names.len() == items.len()
}

/// Whether a value says all that another one says, and perhaps more: defaults are added to what was asked for.
fn says_all_of(value: &Value, asked: &Value) -> bool {
    match (value, asked) {
        (Value::Object(fields), Value::Object(asked)) => asked
            .iter()
            .all(|(name, asked)| asked.is_null() || fields.get(name).is_some_and(|field| says_all_of(field, asked))),
        _ => value == asked,
    }
}

/// The changes as a plan of the shape that Terraform shows. Data of secrets is marked as sensitive.
pub fn plan_document(changes: &[Change]) -> Value {
    let resources: Vec<Value> = changes.iter().map(resource).collect();
    json!({ "format_version": "1.2", "resource_changes": resources })
}

fn resource(change: &Change) -> Value {
    let secret = change.of.kind == "Secret" && change.of.group.is_empty();
    let shown = |object: &Value| if object.is_null() { Value::Null } else { keyed(readable(object)) };
    let marks = if secret { json!({ "data": true, "stringData": true }) } else { json!({}) };
    let fixed: Vec<Value> = change.fixed.iter().map(|path| json!(steps(path))).collect();
    let namespace = change.of.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    json!({
        "address": change.of.address(), "mode": "managed", "type": change.of.kind,
        "name": format!("{namespace}{}", change.of.name), "provider_name": "kubernetes",
        "change": {
            "actions": change.verb.actions(), "before": shown(&change.before), "after": shown(&change.after),
            "after_unknown": {}, "before_sensitive": marks, "after_sensitive": marks, "replace_paths": fixed,
        },
    })
}

/// Without what the address says already.
fn readable(object: &Value) -> Value {
    let mut shown = normalized(object);
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("name");
            metadata.remove("namespace");
        }
        fields.retain(|name, field| name != "metadata" || !field.as_object().is_some_and(Map::is_empty));
    }
    shown
}

/// Lists whose items have names become tables by name, so that an item that moves is no change, and each is shown by its name.
fn keyed(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, keyed(field))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => {
            if items.is_empty() || !have_names(&items) {
                return Value::Array(items.into_iter().map(keyed).collect());
            }
            let named = items.into_iter().map(|mut item| {
                let name = item.as_object_mut().and_then(|fields| fields.remove("name"));
                (name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default(), keyed(item))
            });
            named.collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_sets_is_no_difference() {
        let asked = json!({ "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "v" } });
        let live = json!({
            "kind": "ConfigMap", "data": { "k": "v" }, "status": {},
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "1", "managedFields": [], "creationTimestamp": "t",
                "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
        });
        assert_eq!(normalized(&live), asked);
    }

    #[test]
    fn ignored_places_are_taken_out() {
        let object = || {
            json!({ "metadata": { "annotations": { "a.b/c": "1", "d": "2" } }, "spec": { "replicas": 3,
                "containers": [{ "name": "x", "image": "1" }, { "name": "y", "image": "2" }] } })
        };
        for (path, left) in [
            ("spec.replicas", json!({ "containers": object()["spec"]["containers"] })),
            ("spec.containers[*].image", json!({ "replicas": 3, "containers": [{ "name": "x" }, { "name": "y" }] })),
            (
                "spec.containers[y].image",
                json!({ "replicas": 3, "containers": [{ "name": "x", "image": "1" }, { "name": "y" }] }),
            ),
            ("spec.containers[0]", json!({ "replicas": 3, "containers": [{ "name": "y", "image": "2" }] })),
            ("spec.nothing.here", object()["spec"].clone()),
        ] {
            let mut object = object();
            ignore(&mut object, path);
            assert_eq!(object["spec"], left, "{path}");
        }
        let mut object = object();
        ignore(&mut object, r#"metadata.annotations["a.b/c"]"#);
        assert_eq!(object["metadata"]["annotations"], json!({ "d": "2" }));
    }

    #[test]
    fn what_others_may_change_is_kept() {
        let mut object =
            json!({ "spec": { "replicas": 1, "c": [{ "name": "x", "image": "1" }, { "name": "y", "image": "1" }] } });
        let live = json!({ "spec": { "replicas": 5, "c": [{ "name": "y", "image": "2" }, { "name": "x", "image": "3" }], "z": 1 } });
        keep(&mut object, &live, "spec.replicas");
        keep(&mut object, &live, "spec.c[*].image");
        keep(&mut object, &live, "spec.z");
        assert_eq!(
            object,
            json!({ "spec": { "replicas": 5, "c": [{ "name": "x", "image": "3" }, { "name": "y", "image": "2" }] } })
        );
    }

    #[test]
    fn what_left_the_manifest_leaves_the_object() {
        let was = json!({ "data": { "a": "1", "b": "2", "other": null }, "c": [{ "name": "x", "image": "1", "tty": true }, { "name": "y" }] });
        let now = json!({ "data": { "a": "1" }, "c": [{ "name": "x", "image": "1" }] });
        let mut live = json!({ "data": { "a": "1", "b": "2", "other": "3" },
            "c": [{ "name": "x", "image": "1", "tty": true, "default": 1 }, { "name": "y" }, { "name": "injected" }] });
        removed_since(&was, &now, &mut live);
        assert_eq!(
            live,
            json!({ "data": { "a": "1", "other": "3" }, "c": [{ "name": "x", "image": "1", "default": 1 }, { "name": "injected" }] })
        );
    }

    #[test]
    fn items_that_share_a_name_or_have_none_leave_too() {
        let mount = |path: &str| json!({ "name": "v", "mountPath": path });
        let was =
            json!({ "mounts": [mount("/a"), mount("/b")], "ports": [{ "containerPort": 80 }], "args": ["x", "y"] });
        let now = json!({ "mounts": [mount("/a")], "ports": [{ "containerPort": 81 }], "args": ["y"] });
        let mut after = json!({ "mounts": [mount("/a"), mount("/b")], "args": ["y"],
            "ports": [{ "containerPort": 80, "protocol": "TCP" }, { "containerPort": 81, "protocol": "TCP" }] });
        removed_since(&was, &now, &mut after);
        assert_eq!(
            after,
            json!({ "mounts": [mount("/a")], "args": ["y"], "ports": [{ "containerPort": 81, "protocol": "TCP" }] })
        );
    }

    #[test]
    fn items_are_shown_by_their_names() {
        let list = json!({ "containers": [{ "name": "web", "image": "1", "args": ["a", "b"] }] });
        assert_eq!(keyed(list), json!({ "containers": { "web": { "image": "1", "args": ["a", "b"] } } }));
    }
}
