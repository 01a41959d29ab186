use serde_json::{Value, json};
use terraform::{Action, Changes, Limits, Plan, PlanError, Shown};

use crate::{document, fixture, plan_of, read, resource, unmasked};

fn headlines(plan: &Plan) -> Vec<String> {
    plan.resources
        .iter()
        .map(|change| {
            let notes = [&change.reason, &change.previous_address, &change.import_id].map(|note| note.clone());
            let notes: Vec<String> = notes.into_iter().flatten().collect();
            format!("{:?} {} {}", change.action, change.address, notes.join(" | ")).trim_end().to_owned()
        })
        .collect()
}

/// Each changed leaf as one line: `path: before -> after`, with a `!` if it forces a replacement.
fn leaves(plan: &Plan) -> Vec<String> {
    let text = |shown: &Shown| match shown {
        Shown::Absent => "absent".to_owned(),
        Shown::Value { text, .. } => text.clone(),
        Shown::Sensitive => "sensitive".to_owned(),
        Shown::Unknown => "unknown".to_owned(),
    };
    let attributes = plan.resources.iter().flat_map(|change| &change.attributes);
    attributes
        .chain(plan.outputs.iter().flat_map(|output| &output.values))
        .map(|one| {
            let mark = if one.replaces { " !" } else { "" };
            format!("{}: {} -> {}{mark}", one.path, text(&one.before), text(&one.after))
        })
        .collect()
}

#[test]
fn a_real_plan_that_changes_everything() {
    let plan = read(&fixture("change.json"));
    let expected =
        Changes { create: 1, update: 1, replace: 4, destroy: 1, moved: 1, forget: 1, outputs: 3, ..Changes::default() };
    assert_eq!(plan.changes, expected);
    assert_eq!((plan.complete, plan.errored, plan.applyable), (Some(true), Some(false), Some(true)));
    assert_eq!(
        headlines(&plan),
        [
            "Update terraform_data.a",
            "ReplaceDestroyFirst terraform_data.bytrigger because something in its replace_triggered_by changes",
            "ReplaceDestroyFirst terraform_data.counted[0] because it is tainted",
            "ReplaceDestroyFirst terraform_data.each[\"blue\"] because triggers_replace can't be changed in place",
            "Destroy terraform_data.each[\"green\"] because its key is no longer in for_each",
            "Create terraform_data.each[\"quote\\\"d\"]",
            "Forget terraform_data.forgotten because it is no longer in the configuration",
            "ReplaceDestroyFirst terraform_data.new because it was requested | terraform_data.old",
        ]
    );
    let blue = &plan.resources[3];
    assert_eq!(blue.provider, "terraform");
    let replacing: Vec<&str> = blue.attributes.iter().filter(|one| one.replaces).map(|one| one.path.as_str()).collect();
    assert_eq!(replacing, ["triggers_replace"]);
    let outputs: Vec<&str> = plan.outputs.iter().map(|output| output.name.as_str()).collect();
    assert_eq!(outputs, ["engine", "engine2", "public"]);
}

#[test]
fn other_real_plans() {
    let create = read(&fixture("create.json"));
    assert_eq!(create.changes, Changes { create: 8, outputs: 3, ..Changes::default() });
    let destroy = read(&fixture("destroy.json"));
    assert_eq!(destroy.changes.destroy, 7);
    let import = read(&fixture("import.json"));
    assert_eq!(import.changes, Changes { import: 1, ..Changes::default() });
    assert_eq!(headlines(&import), ["Noop terraform_data.imported some-existing-id"]);
    assert!(!import.is_noop());
    let noop = read(&fixture("noop.json"));
    assert!(noop.is_noop() && noop.resources.is_empty());
    let errored = read(&fixture("errored.json"));
    assert_eq!((errored.errored, errored.applyable, errored.is_noop()), (Some(true), Some(false), false));
    let deposed = read(&fixture("deposed.json"));
    assert_eq!(deposed.resources[1].deposed.as_deref(), Some("e1796672"));
    let tainted = read(&fixture("tainted.json"));
    assert_eq!(
        headlines(&tainted),
        [
            "ReplaceCreateFirst terraform_data.cbd because triggers_replace can't be changed in place",
            "ReplaceDestroyFirst terraform_data.fails because it is tainted",
        ]
    );
}

#[test]
fn what_is_a_change() {
    let change = |actions: Value| json!({"actions": actions, "before": {"a": 1}, "after": {"a": 1}});
    let with = |fields: Value| {
        let mut document = json!({"format_version": "1.2", "resource_changes": []});
        document.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        read(&document.to_string()).is_noop()
    };
    let one = |change: Value| with(json!({"resource_changes": [resource("aws_vpc", change)]}));
    let mut moved = resource("aws_vpc", change(json!(["no-op"])));
    moved["previous_address"] = json!("aws_vpc.old");
    let mut stayed = moved.clone();
    stayed["previous_address"] = moved["address"].clone();
    for (is_noop, expected, what) in [
        (with(json!({})), true, "nothing"),
        (with(json!({"resource_changes": null})), true, "null"),
        (with(json!({"applyable": false, "errored": false})), true, "not to be applied"),
        (with(json!({"applyable": true})), false, "refresh only"),
        (with(json!({"errored": true})), false, "errored"),
        (one(change(json!(["no-op"]))), true, "no-op"),
        (one(change(json!(["read"]))), true, "read"),
        (one(change(json!(["create"]))), false, "create"),
        (one(change(json!(["update"]))), false, "update"),
        (one(change(json!(["delete"]))), false, "delete"),
        (one(change(json!(["forget"]))), false, "forget"),
        (one(change(json!(["delete", "create"]))), false, "replace"),
        (one(change(json!(["create", "delete"]))), false, "replace"),
        (one(change(json!(["create", "forget"]))), false, "replace and forget"),
        (one(json!({"actions": ["no-op"], "importing": {"id": "x"}})), false, "import"),
        (one(json!({"actions": ["no-op"], "importing": {"unknown": true}})), false, "import of an unknown id"),
        (with(json!({"resource_changes": [moved]})), false, "moved"),
        (with(json!({"resource_changes": [stayed]})), true, "not moved"),
        (with(json!({"output_changes": {"o": {"actions": ["update"], "before": 1, "after": 2}}})), false, "output"),
        (with(json!({"output_changes": {"o": {"actions": ["no-op"]}}})), true, "same output"),
        (with(json!({"deferred_changes": [{"reason": "provider_config_unknown"}]})), false, "deferred"),
        (with(json!({"action_invocations": [{"address": "action.x.y"}]})), false, "invocation"),
        (with(json!({"resource_drift": [resource("aws_vpc", change(json!(["update"])))]})), true, "drift"),
    ] {
        assert_eq!(is_noop, expected, "{what}");
    }
}

#[test]
fn the_leaves_that_change() {
    let update = |before: Value, after: Value, more: Value| {
        let mut change = json!({"actions": ["update"], "before": before, "after": after});
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        leaves(&plan_of("aws_vpc", change))
    };
    let none = || json!({});
    for (found, expected) in [
        (update(json!({"a": 1, "b": "x"}), json!({"a": 2, "b": "x"}), none()), vec!["a: 1 -> 2"]),
        (
            update(json!({"tags": {"Name": "x"}}), json!({"tags": {"Name": "y", "k8s.io/a": "z"}}), none()),
            vec!["tags.Name: \"x\" -> \"y\"", "tags[\"k8s.io/a\"]: absent -> \"z\""],
        ),
        (update(json!({"l": ["a", "b", "c"]}), json!({"l": ["a", "c"]}), none()), vec!["l[1]: \"b\" -> absent"]),
        (
            update(json!({"l": [{"p": 1}, {"p": 2}]}), json!({"l": [{"p": 0}, {"p": 1}, {"p": 2}]}), none()),
            vec!["l[0].p: absent -> 0"],
        ),
        (update(json!({"l": [1, 2]}), json!({"l": [1, 3]}), none()), vec!["l[1]: 2 -> 3"]),
        (update(json!({"l": []}), json!({"l": null}), none()), vec!["l: [] -> absent"]),
        (update(json!({"a": null}), json!({"a": null, "b": null}), none()), vec![]),
        (update(json!({"a": {"b": 1}}), json!({"a": "b"}), none()), vec!["a: {\"b\":1} -> \"b\""]),
        (
            update(json!({"a": {"b": 1}, "c": 1}), json!({"c": 1}), json!({"after_unknown": {"a": true}})),
            vec!["a: {\"b\":1} -> unknown"],
        ),
        (
            update(json!({"l": [{"id": "x"}]}), json!({"l": [{}]}), json!({"after_unknown": {"l": [{"id": true}]}})),
            vec!["l[0].id: \"x\" -> unknown"],
        ),
        (
            update(json!({"p": "{\"S\":[{\"A\":1}]}"}), json!({"p": "{\"S\": [{\"A\": 2}]}"}), none()),
            vec!["p.S[0].A: 1 -> 2"],
        ),
        (update(json!({"p": "[1]"}), json!({"p": "[ 1 ]"}), none()), vec!["p: \"[1]\" -> \"[ 1 ]\""]),
        (
            update(
                json!({"a": "old", "b": "x", "c": 1}),
                json!({"a": "new", "b": "x", "c": 1}),
                json!({"before_sensitive": {"a": true, "b": true}, "after_sensitive": {"a": true, "b": true, "c": true}}),
            ),
            vec!["a: sensitive -> sensitive", "c: sensitive -> sensitive"],
        ),
        (
            update(json!({"d": [{"s": 1}]}), json!({"d": [{"s": 2}]}), json!({"replace_paths": [["d", 0, "s"]]})),
            vec!["d[0].s: 1 -> 2 !"],
        ),
        (
            update(json!({"d": [1], "e": 1}), json!({"d": [2], "e": 2}), json!({"replace_paths": [["d"]]})),
            vec!["d[0]: 1 -> 2 !", "e: 1 -> 2"],
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn created_things_are_flattened() {
    let plan = plan_of(
        "aws_vpc",
        json!({
            "actions": ["create"], "before": null, "before_sensitive": false,
            "after": {"name": "n", "none": null, "nested": [{"a": true, "none": null}], "empty": []},
            "after_unknown": {"id": true, "nested": [{}], "arn": false},
            "after_sensitive": {"nested": [{"a": true}]},
        }),
    );
    assert_eq!(
        leaves(&plan),
        ["empty: absent -> []", "id: absent -> unknown", "name: absent -> \"n\"", "nested[0].a: absent -> sensitive"]
    );
}

#[test]
fn limits_leave_things_out_and_count_them() {
    let mut changes: Vec<Value> = (0..30)
        .map(|i| {
            let mut change =
                resource("aws_vpc", json!({"actions": ["create"], "after": {"a": i, "b": "x".repeat(90)}}));
            change["address"] = json!(format!("aws_vpc.it[{i}]"));
            change
        })
        .collect();
    changes.push(resource("aws_db_instance", json!({"actions": ["delete"], "before": {"a": 1, "b": 2, "c": 3}})));
    let limits = Limits { value_chars: 10, attributes_per_resource: 2, resources: 3, ..Limits::default() };
    let plan = terraform::read_plan(document(json!(changes)).as_bytes(), &unmasked, &limits).unwrap();
    assert_eq!((plan.changes.create, plan.changes.destroy), (30, 1));
    let addresses: Vec<&str> = plan.resources.iter().map(|change| change.address.as_str()).collect();
    assert_eq!(addresses, ["aws_vpc.it[0]", "aws_vpc.it[1]", "aws_db_instance.it"]);
    assert_eq!((plan.omitted.resources, plan.omitted.attributes), (28, 1));
    assert!(plan.resources[2].stateful);
    let cut = Shown::Value { text: format!("\"{}…", "x".repeat(9)), cut_chars: 82 };
    assert_eq!(plan.resources[0].attributes[1].after, cut);

    let small = Limits { model_bytes: 4_000, ..Limits::default() };
    let plan = terraform::read_plan(document(json!(changes)).as_bytes(), &unmasked, &small).unwrap();
    assert_eq!(plan.resources.len() as u64 + plan.omitted.resources, 31);
    assert!(plan.resources.iter().any(|change| change.stateful && !change.attributes.is_empty()));
    let bytes = serde_json::to_string(&plan).unwrap().len();
    assert!(bytes <= 4_000, "{bytes}");
}

#[test]
fn the_model_survives_its_journey() {
    for name in ["create.json", "change.json", "destroy.json", "import.json", "tainted.json"] {
        let plan = read(&fixture(name));
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{name}");
    }
}

#[test]
fn deposed_objects_and_data_at_risk() {
    let mut raw = resource("aws_db_instance", json!({"actions": ["delete"], "before": {"a": 1}}));
    raw["deposed"] = json!("abc123");
    let plan = read(&document(json!([raw])));
    assert_eq!(plan.resources[0].deposed.as_deref(), Some("abc123"));
    assert_eq!(plan.data_at_risk().count(), 1);
    for (kind, actions, expected) in [
        ("aws_db_instance", json!(["delete", "create"]), 1),
        ("aws_db_instance", json!(["update"]), 0),
        ("aws_db_instance", json!(["forget"]), 0),
        ("aws_db_instance", json!(["create", "forget"]), 0),
        ("aws_vpc", json!(["delete"]), 0),
    ] {
        let plan = plan_of(kind, json!({"actions": actions, "before": {"a": 1}, "after": {"a": 2}}));
        assert_eq!(plan.data_at_risk().count(), expected, "{kind} {actions}");
    }
    let drift = json!({
        "format_version": "1.2", "resource_changes": [],
        "resource_drift": [resource("aws_db_instance", json!({"actions": ["delete"], "before": {"a": 1}}))],
    });
    let plan = read(&drift.to_string());
    assert_eq!((plan.drift.len(), plan.data_at_risk().count()), (1, 0));
    assert_eq!(plan.drift[0].action, Action::Destroy);
}

/// What the document holds is not in an error: it may be secret.
#[test]
fn errors_hold_nothing_of_the_document() {
    let error = |document: &str| {
        let error = terraform::read_plan(document.as_bytes(), &unmasked, &Limits::default()).unwrap_err();
        format!("{error}: {}", std::error::Error::source(&error).unwrap())
    };
    let odd = r#"{"format_version":"1.2","complete":"SECRET"}"#;
    assert_eq!(error(odd), "the plan can't be read: it is not the JSON that is expected, at line 1, column 43");
    assert_eq!(error("{"), "the plan can't be read: it ends too early");
}

#[test]
fn documents_that_are_not_plans() {
    let error = |document: &str| {
        terraform::read_plan(document.as_bytes(), &unmasked, &Limits::default()).unwrap_err().to_string()
    };
    for (document, expected) in [
        ("", "the plan can't be read"),
        ("[]", "the plan can't be read"),
        ("{\"resource_changes\":", "the plan can't be read"),
        ("{}", "this is not a terraform plan: it has no format_version"),
        (r#"{"format_version":"1.0","values":{}}"#, "this is not a terraform plan: it has no resource_changes"),
        (
            r#"{"format_version":"2.0","resource_changes":[]}"#,
            "the plan has the format version 2.0; only versions 0.x and 1.x are read",
        ),
        (
            r#"{"format_version":"1.2","resource_changes":[{"change":{"actions":["explode"]}}]}"#,
            "the plan has an action that is not known: explode",
        ),
    ] {
        assert_eq!(error(document), expected, "{document}");
    }
    assert!(matches!(
        terraform::read_plan(fixture("state.json").as_bytes(), &unmasked, &Limits::default()),
        Err(PlanError::NotAPlan(_))
    ));
}
