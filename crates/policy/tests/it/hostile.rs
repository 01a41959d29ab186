//! Nothing that a policy or an input says takes the process down.

use std::time::{Duration, Instant};

use policy::{Limits, PolicyKind, Subject, check, evaluate, unit_tests};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{judge, policy};

/// What would make trees deep, values large or analyses long.
#[test]
fn bombs_are_refused_or_end_soon() {
    let many = |part: &str, count: usize| part.repeat(count);
    let doubling: String = (1..40).map(|n| format!("a{n} := concat(\"\", [a{0}, a{0}])\n", n - 1)).collect();
    let bombs = [
        format!("deny contains x if x := 1{}", many("\n+1", 15_000)),
        format!("deny contains x if x := 1{}", many("\n-1", 15_000)),
        format!("deny contains x if x := {}1{}", many("[", 500), many("]", 500)),
        format!("deny contains x if x := {}1{}", many("\n[", 15_000), many("\n]", 15_000)),
        format!("deny contains x if x := {}1{}", many("\n(1+", 15_000), many("\n)", 15_000)),
        format!("deny contains x if x := input{}", many("\n.a", 15_000)),
        format!("deny contains x if x := input{}", many("\n[0]", 15_000)),
        format!("deny contains x if x := input{}", many("\n[input]", 15_000)),
        format!("deny contains x if {}x == 1", many("\nnot ", 15_000)),
        format!("deny contains x if x := {}1", many("\n- ", 15_000)),
        format!("deny contains x if x := 1{}", many("\nin [1]", 15_000)),
        format!("deny contains x if x := 1{}", many("\n== 1", 15_000)),
        format!("deny contains x if x{}", many("\n:= x", 15_000)),
        format!("deny contains x if x := {{1}}{}", many("\n| {f({})}", 15_000)),
        format!("deny contains x if {}true{}", many("\nevery i in [1] {", 15_000), many("\n}", 15_000)),
        format!("deny contains \"x\" if {}", many("\n{", 15_000)),
        format!("deny contains \"x\" if false{}", many("\nelse if false", 9_000)),
        format!("deny contains \"x\" if true{}", many("\nwith input as 1", 9_000)),
        format!("deny contains x if {{ x := 1{} }}", many("\nx == 1", 9_000)),
        format!("deny contains x if {{ x := [1{}] }}", many(",\n1", 15_000)),
        "deny contains x if x := 1e999999999".into(),
        "deny contains x if x := 1e99999999 * 1e99999999".into(),
        "deny contains x if x := bits.lsh(1, 100000000000)".into(),
        "deny contains x if x := numbers.range(0, 9223372036854775807)".into(),
        "deny contains x if x := numbers.range(-9223372036854775808, 9223372036854775807)".into(),
        "deny contains x if x := net.cidr_expand(\"::/0\")".into(),
        "deny contains x if x := regex.match(\"(a{1000}){1000}\", \"a\")".into(),
        format!("deny contains x if x := \"{}\"", many("\u{1f600}", 1_000)),
        "deny contains x if x := sprintf(\"%0999999d\", [1])".into(),
        "deny contains x if x := substring(\"a\", 0, 9223372036854775807)".into(),
        "deny contains x if x := array.slice([1], -9223372036854775808, 9223372036854775807)".into(),
        "deny contains x if x := format_int(1e300, 2)".into(),
        "deny contains x if x := [0][99999999999999999999]".into(),
    ];
    for rules in bombs.iter().chain([&format!("a0 := 1\n{doubling}deny contains a1")]) {
        let start = Instant::now();
        let limits = Limits { time_max: Duration::from_secs(1), ..Limits::default() };
        let contents = format!("package nuon\n{rules}");
        let _ = check(&contents);
        let _ = evaluate(&[policy(PolicyKind::Sandbox, &contents)], &Subject::Plan(json!({})), limits);
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}: {}", &rules[..rules.len().min(60)]);
    }
    // What people write is far from the bounds.
    let sum = format!("package nuon\nwarn contains x if x := 1{}", "+1".repeat(100));
    assert_eq!(judge(&sum, &Subject::Plan(json!({}))).verdicts[0].message, "101");
    let body: String = (0..300).map(|n| format!("  input.plan.a.b.c[_].d != {n}\n")).collect();
    assert!(check(&format!("package nuon\ndeny contains \"x\" if {{\n{body}}}")).is_ok());
}

#[test]
fn deep_inputs_are_judged() {
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let walked = "package nuon\nwarn contains count(p) if { walk(input, [p, 1]) }";
    assert_eq!(judge(walked, &Subject::Plan(deep)).verdicts[0].message, "121");
}

/// Pieces of Rego, so that chance comes past the first token.
fn rego() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "package nuon\n",
        "import rego.v1\n",
        "import data.x\n",
        "deny",
        "warn",
        " contains ",
        "[msg]",
        " if ",
        " { ",
        " } ",
        "msg",
        " := ",
        " = ",
        " == ",
        "\"x\"",
        "1",
        "-1",
        "1e9",
        "input",
        ".",
        "plan",
        "[",
        "]",
        "(",
        ")",
        "_",
        "some ",
        " in ",
        "every ",
        "not ",
        "else",
        " with ",
        " as ",
        "default ",
        "f(x)",
        "count(",
        "sprintf(\"%d %s\", [1])",
        "walk(input, [p, v])",
        " | ",
        " & ",
        " + ",
        " / ",
        " % ",
        ";",
        ",",
        "\n",
        "{\"msg\": 1}",
        "`raw`",
        "# c\n",
        "null",
        "true",
        "false",
        "data",
        "nuon",
        ":",
        "\u{e9}",
        "regex.match(",
        "object.get(",
        "json.unmarshal(",
        "numbers.range(1, 9)",
        "to_number(",
        "\\",
        "\"",
        "\t",
        "set()",
        "print(",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!({ "$serde_json::private::Number": "7" })),
        Just(json!({ "kind": "PodList", "items": [{ "metadata": 7 }, null] })),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key =
            prop_oneof!["[a-z]{1,4}", Just("items".to_owned()), Just("kind".to_owned()), Just("metadata".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn hostile_rego_never_panics(text in prop_oneof![rego(), "\\PC{0,200}"], whole in any::<bool>()) {
        let contents = if whole { text } else { format!("package nuon\ndeny contains msg if {{ msg := \"x\"\n{text}\n}}") };
        let limits = Limits { time_max: Duration::from_millis(200), ..Limits::default() };
        let checked = check(&contents);
        let report = evaluate(&[policy(PolicyKind::Sandbox, &contents)], &Subject::Plan(json!({ "a": [1] })), limits);
        // What can't be read is denied, never passed.
        if checked.is_err() {
            prop_assert!(report.is_denied(), "{contents}: {report:?}");
        }
        prop_assert!(!report.verdicts.iter().any(|v| v.message.contains("the engine broke off")), "{contents}: {report:?}");
        let _ = unit_tests(&contents, &contents, limits.time_max);
    }

    #[test]
    fn hostile_inputs_never_panic(values in prop::collection::vec(json_value(), 0..4)) {
        let rules = "package nuon\nwarn contains x if walk(input, [_, x])\ndeny contains \"x\" if input.review.object.metadata.name == 7";
        let objects = Subject::Objects(values.clone());
        prop_assert_eq!(judge(rules, &objects), judge(rules, &objects));
        let _ = judge(rules, &Subject::Plan(Value::from(values)));
    }
}
