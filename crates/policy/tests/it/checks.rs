use std::time::Duration;

use policy::{Info, Outcome, Syntax, check, unit_tests};

#[test]
fn what_is_in_a_policy_is_told() {
    let info = |package: &str, syntax, denies, warns| Info { package: package.into(), syntax, denies, warns };
    let table = [
        ("package nuon", info("nuon", Syntax::V1, false, false)),
        ("package nuon # ours\n\ndeny[msg] { msg := \"x\" }", info("nuon", Syntax::V0, true, false)),
        ("package ferry\nwarn contains \"x\"", info("ferry", Syntax::V1, false, true)),
        ("package nuon\ndeny.sub contains \"x\"\nwarn := set()", info("nuon", Syntax::V1, false, true)),
        ("package nuon\ndefault deny := false", info("nuon", Syntax::V1, true, false)),
        (
            "package nuon\nimport data.nuon\ndeny contains \"x\" if nuon.a\na if true",
            info("nuon", Syntax::V1, true, false),
        ),
        (
            "package nuon\ndeny contains msg if { print(input); walk(input, [p, v]); msg := v }",
            info("nuon", Syntax::V1, true, false),
        ),
    ];
    for (contents, expected) in table {
        assert_eq!(check(contents), Ok(expected), "{contents}");
    }
}

#[test]
fn errors_have_their_place() {
    let table = [
        ("deny contains 1", 1, 1),
        ("package nuon\n\ndeny contains msg if {\n  msg := \"a\" ++ \"b\"\n}", 4, 7),
        ("package nuon\ndeny[msg] {\n  msg := \n}", 2, 11),
        ("package nuon\ndeny contains \"unclosed", 2, 15),
        ("\n\npackage other\n", 3, 1),
        ("package nuon\ndeny contains x if {\n  y == 1\n  x := 1\n}", 3, 3),
        ("package nuon\ndeny contains x if {\n  x := frobnicate(1)\n}", 3, 18),
        ("package nuon\nf(x) := g(x)\ng(x) := f(x)\ndeny contains f(1)", 2, 1),
    ];
    for (contents, line, column) in table {
        let error = check(contents).expect_err(contents);
        assert_eq!((error.line, error.column), (line, column), "{contents}\n{error}");
        assert!(!error.message.is_empty() && !error.message.contains("-->"), "{error}");
    }
}

const POLICY: &str = "package nuon
deny contains msg if { input.review.object.spec.replicas > limit; msg := \"too many\" }
limit := 3
double(x) := 2 * x";

#[test]
fn tests_beside_policies_run() {
    let tests = "package nuon_test
import data.nuon

test_many if { nuon.deny[\"too many\"] with input as {\"review\": {\"object\": {\"spec\": {\"replicas\": 4}}}} }
test_few if { count(nuon.deny) == 0 with input as {\"review\": {\"object\": {\"spec\": {\"replicas\": 3}}}} }
test_wrong if { nuon.limit == 4 }
test_function if { data.nuon.double(2) == 4 }
test_broken if { data.nuon.double(\"a\") == 4 }
helper if true";
    let ran = unit_tests(POLICY, tests, Duration::from_secs(5)).expect("tests");
    let told: Vec<String> = ran.iter().map(|t| format!("{} {:?}", t.name, t.outcome)).collect();
    assert_eq!(&told[..4], ["test_many Passed", "test_few Passed", "test_wrong Failed", "test_function Passed"]);
    assert!(told.len() == 5 && told[4].starts_with("test_broken Broken(\"line 4, column"), "{told:?}");
    let same_package = "package nuon\ntest_limit { limit == 3 }";
    let ran = unit_tests(POLICY, same_package, Duration::from_secs(5)).expect("tests");
    assert_eq!((ran[0].name.as_str(), &ran[0].outcome), ("test_limit", &Outcome::Passed));
    let told = unit_tests(POLICY, "package t\nimport data.nuon\ntest_x if nuon.double(2) == 4", Duration::from_secs(5));
    assert_eq!(
        told.expect_err("by its whole name").message,
        "write `data.nuon.double`: a function is called by its whole name"
    );
    assert!(unit_tests(POLICY, "package nuon_test\ntest_x if time.now_ns() > 0", Duration::from_secs(5)).is_err());
}
