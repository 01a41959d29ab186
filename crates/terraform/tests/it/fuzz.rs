//! Whatever comes in, nothing panics.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use terraform::{Limits, Progress, draw, read_plan, read_state, read_state_head, secrets_of_plan};

use crate::{fixture, unmasked};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        "[\\[{].{0,6}[\\]}]".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab.]{0,2}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn change() -> impl Strategy<Value = Value> {
    let actions = prop::sample::select(vec![
        json!(["no-op"]),
        json!(["create"]),
        json!(["update"]),
        json!(["delete"]),
        json!(["delete", "create"]),
        json!(["create", "delete"]),
        json!(["read"]),
        json!(["forget"]),
    ]);
    let replace_paths = prop_oneof![Just(Value::Null), prop::collection::vec(value(), 0..3).prop_map(Value::from)];
    (actions, value(), value(), value(), value(), value(), replace_paths).prop_map(
        |(actions, before, after, after_unknown, before_sensitive, after_sensitive, replace_paths)| {
            json!({
                "actions": actions, "before": before, "after": after, "after_unknown": after_unknown,
                "before_sensitive": before_sensitive, "after_sensitive": after_sensitive, "replace_paths": replace_paths,
            })
        },
    )
}

/// A value, which of it is sensitive, and which of it is unknown. Sensitive texts, and no others, hold `SECRET`.
fn marked() -> impl Strategy<Value = (Value, Value, Value)> {
    let leaf = prop_oneof![
        (0..9).prop_map(|i| (json!(format!("SECRET-{i}")), json!(true), json!(false))),
        (0..9).prop_map(|i| (json!({"deep": [format!("SECRET-{i}")]}), json!(true), json!({}))),
        (0..9).prop_map(|i| (json!(format!("open-{i}")), json!(false), json!(false))),
        (0..9).prop_map(|i| (json!(format!("[{i}]")), Value::Null, Value::Null)),
        Just((Value::Null, json!(false), json!(true))),
        Just((Value::Null, json!(true), json!(true))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..4).prop_map(|items| {
            let (values, (sensitive, unknown)): (Vec<_>, (Vec<_>, Vec<_>)) =
                items.into_iter().map(|(value, sensitive, unknown)| (value, (sensitive, unknown))).unzip();
            (Value::from(values), Value::from(sensitive), Value::from(unknown))
        });
        let fields = prop::collection::btree_map("[abc]", inner, 0..4).prop_map(|fields| {
            let mut all = (json!({}), json!({}), json!({}));
            for (name, (value, sensitive, unknown)) in fields {
                all.0[&name] = value;
                all.1[&name] = sensitive;
                all.2[&name] = unknown;
            }
            all
        });
        prop_oneof![items, fields]
    })
}

fn read_everything(document: &[u8]) {
    for limits in
        [Limits::default(), Limits { value_chars: 0, attributes_per_resource: 1, resources: 1, model_bytes: 99 }]
    {
        if let Ok(plan) = read_plan(document, &unmasked, &limits) {
            draw(&plan);
        }
    }
    let _ = secrets_of_plan(document);
    let _ = read_state(document, &unmasked);
    let _ = read_state_head(document);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes);
        Progress::default().line(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_change(change in change(), index in value(), output in change()) {
        let document = json!({
            "format_version": "1.2",
            "resource_changes": [{"address": "a.b", "type": "aws_s3_bucket", "index": index, "change": change}],
            "resource_drift": [{"address": "a.b", "change": change}],
            "output_changes": {"o": output},
        });
        prop_assert!(read_plan(document.to_string().as_bytes(), &unmasked, &Limits::default()).is_ok());
        read_everything(document.to_string().as_bytes());
    }

    #[test]
    fn what_is_marked_is_never_shown((before, before_sensitive, _) in marked(), (after, after_sensitive, unknown) in marked()) {
        let change = json!({
            "actions": ["update"], "before": before, "before_sensitive": before_sensitive, "after": after,
            "after_sensitive": after_sensitive, "after_unknown": unknown,
        });
        let document = json!({
            "format_version": "1.2", "resource_changes": [{"address": "a.b", "change": change}], "output_changes": {"o": change},
        });
        let plan = read_plan(document.to_string().as_bytes(), &unmasked, &Limits::default()).unwrap();
        let model = serde_json::to_string(&plan).unwrap();
        prop_assert!(!model.contains("SECRET"), "{}", model);
        let secrets = secrets_of_plan(document.to_string().as_bytes()).unwrap();
        prop_assert!(secrets.values.iter().all(|secret| secret.starts_with("SECRET")));
    }

    #[test]
    fn any_field_of_a_document(field in value(), name in prop::sample::select(vec![
        "variables", "configuration", "resource_changes", "output_changes", "deferred_changes", "outputs", "resources",
        "version", "serial", "lineage", "complete",
    ])) {
        let mut document = json!({"format_version": "1.2", "version": 4, "serial": 1, "lineage": "l", "planned_values": {}});
        document[name] = field;
        read_everything(document.to_string().as_bytes());
    }

    #[test]
    fn any_message(field in value(), other in value(), kind in prop::sample::select(vec![
        "diagnostic", "apply_start", "apply_progress", "apply_complete", "apply_errored", "provision_progress", "outputs",
        "resource_drift", "log",
    ])) {
        let mut progress = Progress::default();
        progress.line(&json!({"type": kind, "hook": field, "diagnostic": other}).to_string());
        progress.line(&json!({"type": kind, "hook": {"resource": field, "elapsed_seconds": other}, "diagnostic": {
            "summary": field, "detail": other, "range": field, "snippet": other,
        }}).to_string());
        progress.line(&json!({"type": kind, "diagnostic": {"severity": other, "range": {"filename": "f", "start": field},
            "snippet": {"code": "a\nb", "start_line": u64::MAX, "values": [field]}}}).to_string());
    }

    #[test]
    fn a_real_document_that_ends_early(end in 0_usize..12_000) {
        let document = fixture("change.json");
        read_everything(&document.as_bytes()[..end.min(document.len())]);
    }
}
