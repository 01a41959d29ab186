//! What the tables themselves say: what is needed, what excludes what, and which values a key takes.

use serde_json::{Map, Value};

use crate::diagnostic::error;
use crate::kinds::AppConfig;
use crate::table::{Field, OneOf, Shape, Table, is_set};
use crate::walk::{Path, Seen, fields, walk};
use crate::{Code, Problem};

pub(super) fn check(config: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(config, &mut |path, seen| match seen {
        Seen::Table(table, object) => {
            needed(table, object, path, &mut problems);
            for choice in table.choices {
                one_of(choice, object, path, &mut problems);
            }
        }
        Seen::Leaf(field, shape, Value::String(text)) if !text.is_empty() => {
            let problem = super::values::check(field.key, shape, text);
            problems.extend(problem.map(|(said, place)| Problem { place, ..said.at(path.pointer()) }));
        }
        Seen::Leaf(field, Shape::Int { min, max }, Value::Number(number)) => {
            if number.as_i64().is_none_or(|number| number < *min || number > *max) {
                let said =
                    error(Code::OutOfRange, format!("`{}` must be from {min} to {max}, not {number}", field.key));
                problems.push(said.at(path.pointer()));
            }
        }
        Seen::Leaf(..) => {}
    });
    problems
}

fn needed(table: &'static Table, object: &Map<String, Value>, path: &Path, problems: &mut Vec<Problem>) {
    for field in fields(table).filter(|field| field.required && !is_set(object.get(field.key))) {
        let root = path.pointer().is_empty();
        let (code, what) = if root {
            (Code::MissingFile, format!("{}.toml", field.key))
        } else {
            (Code::MissingKey, field.key.to_owned())
        };
        let how = if object.contains_key(field.key) { "empty" } else { "missing" };
        let said = error(code, format!("`{what}` is {how}")).hint(hint(table, field, object));
        problems.push(said.at(if root || object.contains_key(field.key) {
            path.key(field.key).pointer()
        } else {
            path.pointer()
        }));
    }
}

/// What the key is for, or that it stands further down, in a table that swallowed it.
fn hint(table: &'static Table, field: &Field, object: &Map<String, Value>) -> String {
    let swallowed = table.fields().find(|other| {
        let entries = object.get(other.key);
        let last = entries.and_then(Value::as_array).and_then(|items| items.last());
        entries
            .and_then(Value::as_object)
            .or_else(|| last?.as_object())
            .is_some_and(|entries| entries.contains_key(field.key))
            && matches!(other.shape, Shape::Map(_) | Shape::Vars | Shape::HelmValues | Shape::InputValues)
    });
    let known = |values: &[&str]| values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    let doc = format!("`{}`: {}", field.key, field.doc.trim());
    match (swallowed, &field.shape) {
        (Some(other), _) => {
            format!("`{}` is below `[{}]`, so it is part of that table; move it above", field.key, other.key)
        }
        (None, Shape::Choice(values) | Shape::Renamed(values, _)) => format!("{doc} One of {}", known(values)),
        (None, Shape::Tables(_)) => format!("{doc} Write `[[{}]]`", field.key),
        (None, Shape::Table(_)) if table.name == AppConfig::TABLE.name => {
            "`ferry apps init` writes one with comments".into()
        }
        _ => doc,
    }
}

fn one_of(choice: &OneOf, object: &Map<String, Value>, path: &Path, problems: &mut Vec<Problem>) {
    let set: Vec<&str> = choice.keys.iter().copied().filter(|key| is_set(object.get(*key))).collect();
    let all = || choice.keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    match set.as_slice() {
        [] if choice.required => {
            let said = error(Code::MissingKey, format!("one of {} is missing", all()));
            problems.push(said.at(path.pointer()));
        }
        [first, second, ..] if choice.exclusive => {
            let said = error(Code::ExclusiveKeys, format!("`{first}` and `{second}` exclude each other"))
                .hint("delete one of them");
            problems.push(said.at(path.key(second).pointer()));
        }
        _ => {}
    }
}
