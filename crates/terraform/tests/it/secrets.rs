//! Sensitive values are found, and appear nowhere.

use serde_json::{Value, json};
use terraform::{Limits, secrets_of_plan};

use crate::{fixture, resource};

/// Masks by value, as the caller would.
fn mask(secrets: &[String]) -> impl Fn(&str) -> String {
    move |text| secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
}

/// A document with a secret in every place; each secret begins with `SECRET`.
fn document() -> Value {
    let mut changes = vec![
        resource(
            "aws_db_instance",
            json!({
                "actions": ["delete", "create"],
                "before": {"password": "SECRET-before", "copy": "x SECRET-after x", "obj": {"k": ["SECRET-nested", "plain"]},
                    "whole": {"a": "SECRET-whole"}, "gone": {"SECRET-key": 1}, "blob": {"in": "SECRET-blob"}},
                "after": {"password": "SECRET-after", "copy": "SECRET-before", "obj": {"k": ["SECRET-nested2", "changed"]},
                    "whole": {"a": "SECRET-whole2"}, "new": "SECRET-new", "json": "{\"p\":\"SECRET-new\"}"},
                "after_unknown": {"blob": true},
                "before_sensitive": {"password": true, "obj": {"k": [true, false]}, "whole": true, "blob": {"in": true}},
                "after_sensitive": {"password": true, "obj": {"k": [true, false]}, "whole": true, "new": true},
                "replace_paths": [["tags", "SECRET-after"]],
            }),
        ),
        resource(
            "aws_vpc",
            json!({"actions": ["create"], "after": {"tags": {"SECRET-after": 1, "SECRET-new": "SECRET-output"}}}),
        ),
        resource(
            "aws_subnet",
            json!({"actions": ["no-op"], "before": {}, "after": {}, "importing": {"id": "id/SECRET-before"}}),
        ),
    ];
    changes[0]["address"] = json!("aws_db_instance.it[\"SECRET-\\\"quoted\"]");
    changes[0]["index"] = json!("SECRET-\"quoted");
    changes[1]["address"] = json!("module.m[\"SECRET-new\"].aws_vpc.it");
    changes[1]["previous_address"] = json!("aws_vpc.it[\"SECRET-before\"]");
    changes[0]["action_reason"] = json!("replace_because_cannot_update");
    json!({
        "format_version": "1.2",
        "variables": {"key": {"value": "SECRET-key"}, "quoted": {"value": ["SECRET-\"quoted"]}, "open": {"value": "public"}},
        "resource_drift": [changes[0].clone()],
        "resource_changes": changes,
        "output_changes": {
            "o": {"actions": ["update"], "before": "SECRET-output", "after": "SECRET-output2",
                "before_sensitive": true, "after_sensitive": true, "after_unknown": false},
            "nested": {"actions": ["create"], "after": {"x": "SECRET-deep", "url": "public"}, "after_sensitive": {"x": true}},
            "copied": {"actions": ["create"], "after": {"SECRET-deep": "SECRET-deep"}, "after_sensitive": false},
        },
        "configuration": {"root_module": {"variables": {
            "key": {"sensitive": true}, "quoted": {"sensitive": true}, "open": {},
        }}},
    })
}

#[test]
fn secrets_appear_nowhere() {
    let document = document().to_string();
    let secrets = secrets_of_plan(document.as_bytes()).unwrap();
    assert_eq!(
        secrets.values,
        [
            "SECRET-\"quoted",
            "SECRET-after",
            "SECRET-before",
            "SECRET-blob",
            "SECRET-deep",
            "SECRET-key",
            "SECRET-nested",
            "SECRET-nested2",
            "SECRET-new",
            "SECRET-output",
            "SECRET-output2",
            "SECRET-whole",
            "SECRET-whole2",
        ]
    );
    let mask = mask(&secrets.values);
    for value_chars in [400, 12, 3] {
        let limits = Limits { value_chars, ..Limits::default() };
        let plan = terraform::read_plan(document.as_bytes(), &mask, &limits).unwrap();
        let model = serde_json::to_string(&plan).unwrap();
        assert!(!model.contains("SECRET"), "{model}");
        let drawing: Vec<String> = terraform::draw(&plan).into_iter().map(|line| line.text).collect();
        assert!(!drawing.join("\n").contains("SECRET"), "{drawing:#?}");
    }
}

#[test]
fn what_is_marked_needs_no_mask() {
    let mut document = document();
    // What is copied to unmarked places is not found without the masks.
    document["resource_changes"].as_array_mut().unwrap().truncate(1);
    document["output_changes"].as_object_mut().unwrap().remove("copied");
    let plan = terraform::read_plan(document.to_string().as_bytes(), &|text: &str| text.to_owned(), &Limits::default())
        .unwrap();
    let model = serde_json::to_string(&plan).unwrap();
    for secret in ["SECRET-nested", "SECRET-whole", "SECRET-output", "SECRET-deep", "SECRET-blob"] {
        assert!(!model.contains(secret), "{secret} in {model}");
    }
}

#[test]
fn marks_of_another_shape_hide_everything() {
    for (value, marks) in [
        (json!("SECRET-a"), json!({"x": true})),
        (json!(["SECRET-a"]), json!({"x": true})),
        (json!({"x": "SECRET-a"}), json!([true])),
        (json!({"x": ["SECRET-a"]}), json!({"x": true})),
    ] {
        let change = json!({"actions": ["create"], "after": {"v": value}, "after_sensitive": {"v": marks}});
        let document = crate::document(json!([resource("aws_vpc", change)]));
        assert_eq!(secrets_of_plan(document.as_bytes()).unwrap().values, ["SECRET-a"]);
        let model = serde_json::to_string(&crate::read(&document)).unwrap();
        assert!(!model.contains("SECRET"), "{model}");
    }
}

#[test]
fn secrets_of_real_plans() {
    for name in ["create.json", "change.json"] {
        let secrets = secrets_of_plan(fixture(name).as_bytes()).unwrap();
        assert_eq!(secrets.values, ["hunter2-secret-default", "pw-hunter2-secret-default"], "{name}");
        let mask = mask(&secrets.values);
        let plan = terraform::read_plan(fixture(name).as_bytes(), &mask, &Limits::default()).unwrap();
        let model = serde_json::to_string(&plan).unwrap();
        assert!(!model.contains("hunter2"), "{model}");
    }
}

#[test]
fn short_texts_are_no_secrets_and_numbers_are_bounded() {
    let many: Vec<String> = (0..30_000).map(|i| format!("secret-{i}")).collect();
    let change = json!({"actions": ["create"], "after": {"a": "12345", "many": many}, "after_sensitive": true});
    let secrets = secrets_of_plan(crate::document(json!([resource("aws_vpc", change)])).as_bytes()).unwrap();
    assert_eq!((secrets.values.len(), secrets.omitted), (20_000, 10_000));
    assert!(!secrets.values.contains(&"12345".to_owned()));
}
