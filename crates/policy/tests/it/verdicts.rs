use policy::{Limits, Policy, PolicyKind, Report, Severity, Subject, Verdict, evaluate};
use serde_json::{Value, json};

use crate::{judge, lines, policy};

fn plan() -> Subject {
    Subject::Plan(json!({ "resource_changes": [
        { "address": "aws_instance.web", "type": "aws_instance", "change": { "actions": ["delete"], "after": null } },
        { "address": "aws_eip.ip", "type": "aws_eip", "change": { "actions": ["create"], "after": { "n": 1 } } },
    ] }))
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "namespace": namespace, "name": name } })
}

/// Every way of writing a rule that is in use says the same.
#[test]
fn all_forms_of_rules_are_understood() {
    let table = [
        ("deny[msg] { input.plan; msg := \"no\" }", "deny -: no"),
        ("deny[\"no\"] { input.plan }", "deny -: no"),
        ("deny contains msg if { input.plan; msg := \"no\" }", "deny -: no"),
        ("deny contains \"no\" if input.plan", "deny -: no"),
        ("import rego.v1\ndeny contains msg if { input.plan; msg := \"no\" }", "deny -: no"),
        (
            "import future.keywords.contains\nimport future.keywords.if\ndeny contains msg if { msg := \"no\" }",
            "deny -: no",
        ),
        (
            "import future.keywords.in\ndeny[msg] { some c in input.plan.resource_changes; msg := c.type; c.type == \"aws_eip\" }",
            "deny -: aws_eip",
        ),
        ("deny[msg] if { input.plan; msg := \"no\" }", "deny -: no"),
        ("deny[{\"msg\": msg}] { msg := \"no\" }", "deny -: no"),
        ("deny contains {\"msg\": \"no\", \"details\": {}}", "deny -: no"),
        ("deny contains {\"message\": \"no\", \"address\": \"aws_eip.ip\"}", "deny aws_eip.ip: no"),
        ("deny contains {\"code\": 7}", "deny -: {\"code\":7}"),
        ("deny := {\"no\"}", "deny -: no"),
        ("deny := [\"no\"]", "deny -: no"),
        ("deny := \"no\"", "deny -: no"),
        ("deny if input.plan", "deny -: `deny` holds"),
        ("default deny := false\ndeny if input.plan", "deny -: `deny` holds"),
        ("warn[msg] { msg := \"careful\" }", "warn -: careful"),
        ("warn contains 7", "warn -: 7"),
    ];
    for (rules, expected) in table {
        for package in policy::PACKAGES {
            let report = judge(&format!("package {package}\n{rules}"), &plan());
            assert_eq!((lines(&report), report.evaluated), (vec![expected.to_owned()], 1), "{rules}");
        }
    }
    for quiet in [
        "deny[msg] { input.nothing; msg := \"x\" }",
        "default deny := false",
        "deny := set()",
        "deny := []",
        "deny := null",
    ] {
        let report = judge(&format!("package nuon\n{quiet}"), &plan());
        assert_eq!((lines(&report), report.evaluated), (vec![], 1), "{quiet}");
        assert!(!report.is_denied());
    }
}

#[test]
fn a_plan_is_seen_as_terraform_shows_it() {
    let rules = "package nuon
deny contains {\"msg\": sprintf(\"%s is deleted\", [c.address]), \"address\": c.address} if {
    some c in input.plan.resource_changes
    \"delete\" in c.change.actions
}
warn contains count(input.plan.resource_changes)";
    assert_eq!(lines(&judge(rules, &plan())), ["deny aws_instance.web: aws_instance.web is deleted", "warn -: 2"]);
    let all = policy(PolicyKind::Sandbox, "package nuon\nwarn contains input");
    let report = evaluate(&[all], &Subject::Plan(json!({ "a": [1, 2.5, "x", null, true] })), Limits::default());
    assert_eq!(lines(&report), ["warn -: {\"plan\":{\"a\":[1,2.5,\"x\",null,true]}}"]);
}

#[test]
fn objects_are_seen_one_at_a_time_with_their_kind() {
    let subject = Subject::Objects(vec![
        deployment("shop", "web"),
        Value::Null,
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }),
    ]);
    let report = judge(
        "package nuon\nwarn contains input.review.kind\ndeny contains \"no\" if input.review.kind.kind == \"Namespace\"",
        &subject,
    );
    assert_eq!(
        lines(&report),
        [
            "warn Deployment/shop/web: {\"group\":\"apps\",\"kind\":\"Deployment\",\"version\":\"v1\"}",
            "deny Namespace/shop: no",
            "warn Namespace/shop: {\"group\":\"\",\"kind\":\"Namespace\",\"version\":\"v1\"}",
        ]
    );
    assert_eq!(report.evaluated, 2);
    let report = judge(
        "package nuon\nwarn contains key if some key, _ in input.review",
        &Subject::Objects(vec![deployment("", "x")]),
    );
    assert_eq!(lines(&report), ["warn Deployment/x: kind", "warn Deployment/x: object"]);
}

#[test]
fn what_stands_in_lists_is_not_hidden() {
    let inner = json!({ "apiVersion": "v1", "kind": "List", "items": [deployment("b", "two")] });
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [deployment("a", "one"), inner] });
    let typed = json!({ "apiVersion": "v1", "kind": "PodList", "items": [{ "metadata": { "name": "bare" } }] });
    let report = judge("package nuon\ndeny contains input.review.kind.kind", &Subject::Objects(vec![list, typed]));
    assert_eq!(
        lines(&report),
        [
            "deny Deployment/a/one: Deployment",
            "deny Deployment/b/two: Deployment",
            "deny Pod/bare: Pod",
            "deny PodList: PodList"
        ]
    );
}

#[test]
fn an_image_is_seen_with_its_tag_and_metadata() {
    let subject = Subject::Image {
        image: "ghcr.io/acme/web".into(),
        tag: "latest".into(),
        metadata: json!({ "signed": false, "sbom": { "present": true } }),
    };
    let rules = "package nuon
deny[msg] { not input.metadata.signed; msg := \"not signed\" }
deny[msg] { input.tag == \"latest\"; msg := sprintf(\"%s has no fixed tag\", [input.image]) }
warn[msg] { input.metadata.sbom.present; msg := \"has an SBOM\" }";
    let about = "ghcr.io/acme/web:latest";
    assert_eq!(
        lines(&judge(rules, &subject)),
        [
            format!("deny {about}: ghcr.io/acme/web has no fixed tag"),
            format!("deny {about}: not signed"),
            format!("warn {about}: has an SBOM")
        ]
    );
}

#[test]
fn equal_input_gives_equal_reports() {
    let rules = "package nuon
deny contains sprintf(\"%v %v\", [i, k]) if { some i in numbers.range(1, 30); some k, _ in input.review.object.metadata }
warn contains {\"msg\": k} if some k, _ in {\"z\": 1, \"y\": 2, \"x\": 3}";
    let subject = Subject::Objects((0..20).map(|n| deployment("ns", &format!("d{n}"))).collect());
    let policies: Vec<Policy> = ["b", "a", "c"]
        .iter()
        .map(|name| Policy { name: (*name).into(), ..policy(PolicyKind::HelmChart, rules) })
        .collect();
    let first = evaluate(&policies, &subject, Limits::default());
    assert_eq!(first.evaluated, 60);
    let order: Vec<&str> = first.verdicts.iter().map(|v| v.policy.as_str()).collect::<Vec<_>>();
    assert!(order.is_sorted_by_key(|name| ["b", "a", "c"].iter().position(|n| n == name)));
    for _ in 0..5 {
        assert_eq!(evaluate(&policies, &subject, Limits::default()), first);
    }
}

#[test]
fn a_flood_of_verdicts_is_cut_and_still_denies() {
    let rules = "package nuon\nwarn contains i if some i in numbers.range(1, 400)\ndeny contains \"no\" if input.review.object.metadata.name == \"b\"";
    let report = judge(rules, &Subject::Objects(vec![deployment("", "a"), deployment("", "b"), deployment("", "b")]));
    assert_eq!(report.verdicts.len(), policy::VERDICTS_MAX + 1);
    let last = report.verdicts.last().expect("there are some");
    assert_eq!(
        (last.severity, last.message.as_str()),
        (Severity::Deny, "702 more verdicts of this policy are not shown")
    );
}

#[test]
fn masking_comes_before_cutting() {
    let secret = "s3cret";
    let message = format!("{}{secret} in the clear", "x".repeat(policy::MESSAGE_BYTES_MAX - 3));
    let verdict = |message: &str, object: &str| Verdict {
        policy: "p".into(),
        severity: Severity::Deny,
        message: message.into(),
        object: Some(object.into()),
    };
    let report = Report { verdicts: vec![verdict(&message, "a/s3cret"), verdict("s3cret", "b")], evaluated: 2 };
    let masked = report.masked(|text| text.replace(secret, "***"));
    assert!(masked.verdicts.iter().all(|v| !v.message.contains("s3c") && !format!("{:?}", v.object).contains("s3c")));
    assert!(masked.verdicts[0].message.ends_with('…'));
    assert_eq!((masked.verdicts[1].message.as_str(), masked.evaluated), ("***", 2));
}

/// What stands in a job's spec and in its result.
#[test]
fn the_wire_forms_stay() {
    let policy = policy(PolicyKind::TerraformModule, "package nuon");
    assert_eq!(json!(policy), json!({ "name": "p", "kind": "terraform_module", "contents": "package nuon" }));
    let report = judge("package nuon\ndeny contains \"no\"", &Subject::Objects(vec![deployment("n", "d")]));
    let expected = json!({
        "verdicts": [{ "policy": "p", "severity": "deny", "message": "no", "object": "Deployment/n/d" }],
        "evaluated": 1,
    });
    assert_eq!(json!(report), expected);
    assert_eq!(serde_json::from_value::<Report>(expected).expect("the same"), report);
    for kind in PolicyKind::ALL {
        assert_eq!((json!(kind), PolicyKind::parse(kind.as_str())), (json!(kind.as_str()), Some(kind)));
    }
}

#[test]
fn kyverno_is_left_to_the_cluster() {
    let rego: Vec<&str> = PolicyKind::ALL.into_iter().filter(|kind| kind.is_rego()).map(PolicyKind::as_str).collect();
    assert_eq!(
        rego,
        [
            "terraform_module",
            "helm_chart",
            "kubernetes_manifest",
            "docker_build",
            "container_image",
            "pulumi",
            "sandbox"
        ]
    );
    assert!(policy::is_rego("sandbox", None) && policy::is_rego("sandbox", Some("opa")));
    assert!(
        !policy::is_rego("sandbox", Some("kyverno"))
            && !policy::is_rego("kubernetes_cluster", None)
            && !policy::is_rego("x", None)
    );
}
