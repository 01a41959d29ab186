//! What changes between two configs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::kinds::AppConfig;

/// A thing that is not the same in two configs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The part of the config: `components`, `sandbox`.
    pub part: String,
    /// Which of the things in that part; empty where there is one.
    pub name: String,
    pub kind: ChangeKind,
    /// What is different in a thing that changed.
    pub fields: Vec<FieldChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

/// A value that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// `vars.region`, `steps[1].command`.
    pub path: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

/// What stands for a value that is not shown.
pub const MASK: &str = "(sensitive)";

/// What has to happen to `old` to become `new`, in the order of the config's parts. Sensitive values are not shown.
pub fn diff(old: &AppConfig, new: &AppConfig) -> Vec<Change> {
    let values = (to_value(old), to_value(new));
    let sensitive =
        old.inputs.iter().chain(&new.inputs).filter(|input| input.sensitive).map(|input| input.name.clone()).collect();
    let mut differ = Differ { sensitive, changes: Vec::new() };
    for field in AppConfig::TABLE.fields() {
        differ.part(field.key, values.0.get(field.key), values.1.get(field.key));
    }
    differ.changes
}

fn to_value(config: &AppConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

struct Differ {
    /// Names of inputs whose values are not shown.
    sensitive: BTreeSet<String>,
    changes: Vec<Change>,
}

impl Differ {
    fn part(&mut self, part: &str, old: Option<&Value>, new: Option<&Value>) {
        let list = old.or(new).is_some_and(Value::is_array);
        if !list {
            return self.thing(part, "", old, new);
        }
        let (old, new) = (items(old), items(new));
        let by_key =
            |things: &'_ [Value]| things.iter().map(|thing| (key(thing), thing.clone())).collect::<BTreeMap<_, _>>();
        let (before, now) = (by_key(old), by_key(new));
        for thing in old {
            self.thing(part, name(thing), Some(thing), now.get(&key(thing)));
        }
        for thing in new.iter().filter(|thing| !before.contains_key(&key(thing))) {
            self.thing(part, name(thing), None, Some(thing));
        }
        self.order(part, old, new);
    }

    /// The order of inputs is that of their display.
    fn order(&mut self, part: &str, old: &[Value], new: &[Value]) {
        let both = |here: &[Value], there: &[Value]| -> Vec<String> {
            let there: BTreeSet<&str> = there.iter().map(name).collect();
            here.iter().map(name).filter(|known| there.contains(known)).map(str::to_owned).collect()
        };
        let (before, after) = (both(old, new), both(new, old));
        if before != after {
            let field = FieldChange { path: "order".into(), old: Some(before.join(", ")), new: Some(after.join(", ")) };
            self.changes.push(Change {
                part: part.into(),
                name: String::new(),
                kind: ChangeKind::Changed,
                fields: vec![field],
            });
        }
    }

    fn thing(&mut self, part: &str, name: &str, old: Option<&Value>, new: Option<&Value>) {
        let kind = match (old, new) {
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
            (Some(old), Some(new)) if old != new => ChangeKind::Changed,
            _ => return,
        };
        let mut fields = Vec::new();
        if let (ChangeKind::Changed, Some(old), Some(new)) = (kind, old, new) {
            let hidden = |path: &str| self.is_hidden(part, path, old, new);
            compare("", Some(old), Some(new), &hidden, &mut fields);
        }
        self.changes.push(Change { part: part.into(), name: name.into(), kind, fields });
    }

    fn is_hidden(&self, part: &str, path: &str, old: &Value, new: &Value) -> bool {
        let marked = |value: &Value| value.get("sensitive") == Some(&Value::Bool(true));
        match part {
            "secrets" => path == "default",
            "inputs" => path == "default" && (marked(old) || marked(new)),
            "installs" => path.strip_prefix("inputs.").is_some_and(|name| self.sensitive.contains(name)),
            "runbooks" => path.starts_with("input[") && path.ends_with(".default"),
            _ => false,
        }
    }
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(thing: &Value) -> &str {
    thing.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// What a thing is known by. Policies of different types may share a name.
fn key(thing: &Value) -> (String, String) {
    let kind = thing.get("type").and_then(Value::as_str).filter(|_| thing.get("contents").is_some());
    (name(thing).to_owned(), kind.unwrap_or_default().to_owned())
}

fn compare(
    path: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    hidden: &dyn Fn(&str) -> bool,
    out: &mut Vec<FieldChange>,
) {
    match (old, new) {
        (old, new) if old == new => {}
        // Down to the leaves, also where one side has nothing: only a leaf is known to be hidden.
        (Some(Value::Object(_)) | None, Some(Value::Object(_)) | None) => {
            let fields = |side: Option<&Value>| side.and_then(Value::as_object).cloned().unwrap_or_default();
            let (old, new) = (fields(old), fields(new));
            for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, old.get(key), new.get(key), hidden, out);
            }
        }
        (Some(Value::Array(_)) | None, Some(Value::Array(_)) | None)
            if items(old).iter().chain(items(new)).any(Value::is_object) =>
        {
            let (old, new) = (items(old), items(new));
            for index in 0..old.len().max(new.len()) {
                compare(&format!("{path}[{index}]"), old.get(index), new.get(index), hidden, out);
            }
        }
        (old, new) => {
            let shown = |value: Option<&Value>| {
                value.map(|value| match value {
                    _ if hidden(path) => MASK.to_owned(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            };
            out.push(FieldChange { path: path.into(), old: shown(old), new: shown(new) });
        }
    }
}
