//! Real files against the schemas of their kinds: what a schema refuses is what loading calls unknown.

use config::{Code, Options, Tree, schema, starter};
use needs::needs;
use serde_json::Value;

use crate::corpus::apps;

/// The part of JSON Schema that ours use. Says what does not fit.
fn refused(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut out = Vec::new();
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let definition = root.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name} is not defined"));
        return refused(root, definition, value, path);
    }
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    match schema.get("type") {
        Some(Value::String(kind)) if !is(kind) => out.push(format!("{path}: no {kind}")),
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| is(kind.as_str().unwrap())) => {
            out.push(format!("{path}: none of {kinds:?}"))
        }
        _ => {}
    }
    if schema.get("enum").is_some() && !list("enum").any(|known| known == value) {
        out.push(format!("{path}: not one of the values"));
    }
    for (key, bad) in [
        ("minimum", value.as_i64() < schema["minimum"].as_i64()),
        ("maximum", value.as_i64() > schema["maximum"].as_i64()),
    ] {
        if schema.get(key).is_some() && bad {
            out.push(format!("{path}: {key}"));
        }
    }
    let fits = |inner: &Value| refused(root, inner, value, path).is_empty();
    out.extend(list("allOf").flat_map(|inner| refused(root, inner, value, path)));
    if schema.get("anyOf").is_some() && !list("anyOf").any(fits)
        || schema.get("oneOf").is_some() && list("oneOf").filter(|inner| fits(inner)).count() != 1
    {
        out.push(format!("{path}: no choice fits"));
    }
    if schema.get("not").is_some_and(fits) {
        out.push(format!("{path}: not allowed"));
    }
    if let Value::Object(object) = value {
        out.extend(
            list("required")
                .filter_map(Value::as_str)
                .filter(|key| !object.contains_key(*key))
                .map(|key| format!("{path}: {key} is missing")),
        );
        for (key, inner) in object {
            let path = format!("{path}/{key}");
            match (schema["properties"].get(key), schema.get("additionalProperties")) {
                (Some(known), _) => out.extend(refused(root, known, inner, &path)),
                (None, Some(Value::Bool(false))) => out.push(format!("{path}: unknown")),
                (None, Some(rest)) => out.extend(refused(root, rest, inner, &path)),
                (None, None) => {}
            }
        }
    }
    if let (Value::Array(items), Some(inner)) = (value, schema.get("items")) {
        out.extend(items.iter().enumerate().flat_map(|(at, item)| refused(root, inner, item, &format!("{path}/{at}"))));
    }
    out
}

fn kind_of(file: &str, toml: &Value) -> Option<String> {
    Some(match file.split('/').next()? {
        "components" => toml["type"].as_str()?.to_owned(),
        "permissions" => "permission".into(),
        "policies" | "secrets" | "actions" | "inputs" | "installs" | "runbooks" | "input_groups" => {
            match file.split('/').next()? {
                "policies" => "policy".into(),
                group => group.trim_end_matches('s').to_owned(),
            }
        }
        "installs.toml" => "installs-config".into(),
        single => single.strip_suffix(".toml")?.to_owned(),
    })
}

#[test]
fn schemas_refuse_what_loading_calls_unknown() {
    agree_with_loading(vec![starter("hello")]);
}

#[test]
fn schemas_refuse_what_loading_calls_unknown_in_real_apps() {
    needs!(Corpus);
    agree_with_loading(apps());
}

fn agree_with_loading(apps: Vec<Tree>) {
    let mut files = 0;
    for app in apps {
        let found = config::load(&app, Options::default()).diagnostics;
        for (file, contents) in app.files.iter().filter(|(file, _)| file.ends_with(".toml")) {
            let toml: toml::Table = std::str::from_utf8(contents).unwrap().parse().unwrap();
            let value = serde_json::to_value(toml).unwrap();
            let Some(schema) = kind_of(file, &value).and_then(|kind| schema(&kind)) else { continue };
            let unknown = |code| matches!(code, Code::UnknownKey | Code::MisplacedKey);
            let said = found.iter().filter(|found| found.file == *file && unknown(found.code)).count();
            let refused = refused(&schema, &schema, &value, "");
            assert_eq!(refused.len(), said, "{}/{file}: {refused:?}", app.name);
            files += 1;
        }
    }
    assert!(files > 0);
}
