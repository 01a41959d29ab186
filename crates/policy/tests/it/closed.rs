//! Everything that can't be evaluated denies, names the policy, and says why.

use std::time::{Duration, Instant};

use policy::{Limits, Policy, PolicyKind, Report, Severity, Subject, evaluate};
use serde_json::json;

use crate::{judge, lines, policy};

#[track_caller]
fn closed(report: &Report, part: &str) {
    assert_eq!(report.verdicts.len(), 1, "{report:?}");
    let verdict = &report.verdicts[0];
    assert_eq!(verdict.severity, Severity::Deny);
    let start = "denied, because the policy `p` could not be evaluated: ";
    assert!(verdict.message.starts_with(start) && verdict.message.contains(part), "{}", verdict.message);
}

#[test]
fn what_can_t_be_evaluated_denies() {
    let table = [
        ("", "it can't be read: line 1, column"),
        ("package nuon\ndeny contains", "it can't be read: line 2, column"),
        ("package nuon\ndeny[msg] { msg := }", "it can't be read: line 2, column"),
        ("package other\ndeny contains \"x\"", "the package is `other`: Ferry reads only rules of `package nuon`"),
        ("package nuon", "it has neither a rule `deny` nor a rule `warn`"),
        ("package nuon\nallow := true", "it has neither a rule `deny` nor a rule `warn`"),
        ("package nuon\ndeny contains msg if true", "var msg is unsafe"),
        ("package nuon\ndeny contains x if x := startswith(1, \"a\")", "it can't be evaluated: line 2, column"),
        ("package nuon\ndeny contains x if x := 1 / 0", "it can't be evaluated"),
        ("package nuon\ndeny contains x if x := to_number(\"x\")", "it can't be evaluated"),
        ("package nuon\na := 1 if true\na := 2 if true\ndeny contains \"x\" if a == 3", "it can't be evaluated"),
        ("package nuon\ndeny contains deny", "recursion"),
        ("package nuon\nf(x) := f(x + 1)\ndeny contains f(1)", "line 2, column 1: the function `f` calls itself"),
        ("package nuon\nf(x) := g(x)\ng(x) := data.nuon.f(x)\ndeny contains f(1)", "calls itself"),
        ("package nuon\nh(x) := x\nf(x) := y if { y := h(x) with h as f }\ndeny contains f(1)", "calls itself"),
        ("package nuon\ndeny contains lib.f(1)", "there is no function `lib.f`"),
        ("package nuon\nimport data.lib\ndeny contains \"x\" if lib.bad", "there is no `data.lib` here"),
        ("package nuon\ndeny contains \"x\" if data.lib.bad", "there is no `data.lib` here"),
        ("package nuon\ndeny contains \"x\" if data[\"lib\"].bad", "there is no `data.lib` here"),
        ("package nuon\ndeny := 7", "`deny` is not a set of messages"),
        ("package nuon\ndeny := {\"a\": 1}", "`deny` is not a set of messages"),
        ("package nuon\ndeny contains x if x := numbers.range(1, 1000000000000)", "numbers.range makes at most"),
    ];
    for (contents, part) in table {
        closed(&judge(contents, &Subject::Plan(json!({}))), part);
    }
}

/// Also where no rule comes across them.
#[test]
fn policies_have_no_network_no_clock_and_no_randomness() {
    let calls = [
        "http.send({\"method\": \"get\", \"url\": \"http://127.0.0.1\"})",
        "net.lookup_ip_addr(\"localhost\")",
        "opa.runtime()",
        "time.now_ns()",
        "rand.intn(\"x\", 10)",
        "uuid.rfc4122(\"x\")",
    ];
    for call in calls {
        let name = call.split('(').next().expect("a name");
        let part = format!("there is no function `{name}`: policies have no network, no clock and no randomness");
        for rules in [
            format!("deny contains x if x := {call}"),
            format!("deny contains \"x\" if {{ false; {call} }}"),
            format!("deny contains \"x\" if {{ some y in [1]; y == [z | z := {call}] }}"),
            format!("f(x) := {call}\ndeny contains \"x\" if f(1)"),
            format!("deny[x] {{ x := {call} }}"),
        ] {
            closed(&judge(&format!("package nuon\n{rules}"), &Subject::Plan(json!({}))), &part);
        }
    }
    let smuggled = "package nuon\nf(x, y) := 1\ndeny contains x if x := f(\"a\", 2) with f as rand.intn";
    closed(&judge(smuggled, &Subject::Plan(json!({}))), "there is no function `rand.intn`");
}

#[test]
fn an_input_above_the_bound_denies() {
    let plan = Subject::Plan(json!({ "a": "x".repeat(1000) }));
    let policies = [policy(PolicyKind::TerraformModule, "package nuon\nwarn contains \"fine\"")];
    let limits = Limits { input_bytes_max: 1000, ..Limits::default() };
    let report = evaluate(&policies, &plan, limits);
    closed(&report, "what is to be judged is larger than 1000 bytes");
    assert_eq!(report.evaluated, 0);
    assert!(!evaluate(&policies, &plan, Limits { input_bytes_max: 1100, ..limits }).is_denied());
    assert_eq!(evaluate(&[], &plan, limits), Report::default());
}

#[test]
fn a_policy_that_does_not_end_denies_in_time() {
    let endless = "package nuon
deny contains x if { some x in numbers.range(1, 90000); some y in numbers.range(1, 90000); x * y == 7 }";
    let limits = Limits { time_max: Duration::from_millis(200), ..Limits::default() };
    let start = Instant::now();
    let objects =
        Subject::Objects((0..50).map(|n| json!({ "kind": "Pod", "metadata": { "name": n.to_string() } })).collect());
    let report = evaluate(&[policy(PolicyKind::HelmChart, endless)], &objects, limits);
    closed(&report, "it took longer than 200ms");
    assert_eq!(report.evaluated, 0);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_policy_of_another_kind_denies() {
    let table = [
        (PolicyKind::HelmChart, Subject::Plan(json!({})), "policies of type `helm_chart` can't judge a plan"),
        (PolicyKind::TerraformModule, Subject::Objects(vec![]), "can't judge Kubernetes objects"),
        (PolicyKind::KubernetesCluster, Subject::Objects(vec![]), "policies of type `kubernetes_cluster` can't judge"),
        (
            PolicyKind::Sandbox,
            Subject::Image { image: "a".into(), tag: "b".into(), metadata: json!({}) },
            "can't judge an image",
        ),
    ];
    for (kind, subject, part) in table {
        closed(&evaluate(&[policy(kind, "package nuon\nwarn contains 1")], &subject, Limits::default()), part);
    }
}

/// One object, or one policy, that breaks leaves the verdicts on the others.
#[test]
fn a_failure_hides_nothing_else() {
    let named = |name: &str, contents: &str| Policy { name: name.into(), ..policy(PolicyKind::HelmChart, contents) };
    let policies = [
        named("broken", "package nuon\ndeny contains"),
        named("names", "package nuon\ndeny contains \"bad\" if startswith(input.review.object.metadata.name, \"bad\")"),
    ];
    let objects =
        [json!("bad-1"), json!(7), json!("bad-2")].map(|name| json!({ "kind": "Pod", "metadata": { "name": name } }));
    let report = evaluate(&policies, &Subject::Objects(objects.into()), Limits::default());
    let lines = lines(&report);
    assert_eq!(report.evaluated, 2);
    assert!(lines[0].starts_with("deny -: denied, because the policy `broken` could not be evaluated"), "{lines:?}");
    assert_eq!((lines[1].as_str(), lines[3].as_str()), ("deny Pod/bad-1: bad", "deny Pod/bad-2: bad"));
    assert!(lines[2].starts_with("deny Pod: denied, because the policy `names`"), "{lines:?}");
}

#[test]
fn a_policy_that_fails_to_be_read_says_nothing_of_its_own() {
    // Not even a rule that would hold.
    closed(
        &judge("package nuon\nwarn contains \"x\"\ndeny contains http.send({})", &Subject::Plan(json!({}))),
        "http.send",
    );
}
