//! Policies of an app's directory, tried on files. No control plane is asked.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ferry::{Ran, ferry};

/// The starter's app with policies of each kind.
async fn app(home: &Path) -> PathBuf {
    let dir = home.join("shop");
    let text = dir.to_string_lossy().into_owned();
    assert_eq!(ferry(home, &[], &["apps", "init", &text]).await.code, Some(0));
    let files = [
        (
            "policies/no-deletes.toml",
            "type = \"terraform_module\"\ncomponents = [\"greeting\"]\ncontents = \"./no-deletes.rego\"\n",
        ),
        (
            "policies/no-deletes.rego",
            "package nuon\ndeny[msg] {\n  c := input.plan.resource_changes[_]\n  c.change.actions[_] == \"delete\"\n  msg := sprintf(\"%s goes\", [c.address])\n}\n",
        ),
        (
            "policies/base.toml",
            "type = \"sandbox\"\ncontents = \"package nuon\\nwarn contains \\\"the sandbox is planned\\\"\"\n",
        ),
        (
            "policies/tags.toml",
            "type = \"kubernetes_manifest\"\ncomponents = [\"*\"]\ncontents = \"\"\"\npackage ferry\ndeny contains \"no label\" if not input.review.object.metadata.labels\n\"\"\"\n",
        ),
        (
            "policies/signed.toml",
            "type = \"container_image\"\ncomponents = [\"*\"]\ncontents = \"package nuon\\ndeny contains \\\"not signed\\\" if not input.metadata.signed\"\n",
        ),
    ];
    fs_err::create_dir_all(dir.join("policies")).expect("a directory");
    for (path, contents) in files {
        fs_err::write(dir.join(path), contents).expect("a file");
    }
    dir
}

async fn test(home: &Path, dir: &Path, more: &[&str]) -> Ran {
    let dir = dir.to_string_lossy();
    ferry(home, &[], &[&["policies", "test", dir.as_ref()], more].concat()).await
}

fn plan(home: &Path, action: &str) -> String {
    let file = home.join(format!("{action}.json"));
    let plan = json!({ "resource_changes": [{ "address": "null_resource.a", "change": { "actions": [action] } }] });
    fs_err::write(&file, plan.to_string()).expect("a file");
    file.to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_shown_and_a_denial_is_an_exit_code() {
    let home = tempfile::tempdir().expect("home");
    let home = home.path();
    let dir = app(home).await;
    let (delete, create) = (plan(home, "delete"), plan(home, "create"));

    let ran = test(home, &dir, &["--input", &delete]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let words: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["POLICY", "VERDICT", "OBJECT", "MESSAGE"]);
    assert!(words.contains(&vec!["no-deletes", "deny", "-", "null_resource.a", "goes"]), "{ran:?}");
    assert!(words.contains(&vec!["base", "warn", "-", "the", "sandbox", "is", "planned"]), "{ran:?}");
    assert!(ran.stderr.contains("2 policies, 2 evaluations, 1 denial, 1 warning"), "{ran:?}");

    let ran = test(home, &dir, &["--input", &create, "--component", "greeting", "--json"]).await;
    let document: Value = serde_json::from_str(&ran.stdout).expect("json");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected = json!({
        "ok": true, "policies": ["no-deletes"], "report": { "verdicts": [], "evaluated": 1 }, "tests": [],
    });
    assert_eq!(document, expected);

    let ran = test(home, &dir, &["--input", &delete, "--kind", "sandbox"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = test(home, &dir, &["--input", &delete, "--policy", "base"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let objects = home.join("objects.yaml");
    let yaml = "kind: Pod\nmetadata: {name: a, namespace: n, labels: {x: y}}\n---\nkind: List\nitems:\n- kind: Pod\n  metadata: {name: b}\n";
    fs_err::write(&objects, yaml).expect("a file");
    let ran = test(home, &dir, &["--input", &objects.to_string_lossy()]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("Pod/b") && !ran.stdout.contains("Pod/n/a"), "{ran:?}");

    let metadata = home.join("metadata.json");
    fs_err::write(&metadata, "{\"signed\": true}").expect("a file");
    assert_eq!(test(home, &dir, &["--image", "nginx:1"]).await.code, Some(1));
    assert_eq!(
        test(home, &dir, &["--image", "nginx:1", "--metadata", &metadata.to_string_lossy()]).await.code,
        Some(0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_has_its_exit_code_and_a_hint() {
    let home = tempfile::tempdir().expect("home");
    let home = home.path();
    let dir = app(home).await;
    let plan = plan(home, "create");
    let table: [(&[&str], i32, &str); 5] = [
        (&["--input", &plan, "--policy", "no-delete"], 4, "hint: did you mean `no-deletes`?"),
        (&["--input", &plan, "--policy", "tags"], 4, "policy `tags` does not apply to this"),
        (&["--input", &plan, "--component", "greetings"], 4, "hint: did you mean `greeting`?"),
        (&["--input", &plan, "--kind", "helm_chart"], 2, "policies of type `helm_chart` can't evaluate this input"),
        (&["--input", "/nowhere.json"], 1, "/nowhere.json"),
    ];
    for (args, code, told) in table {
        let ran = test(home, &dir, args).await;
        assert_eq!(ran.code, Some(code), "{args:?} {ran:?}");
        assert!(ran.stderr.contains(told), "{args:?} {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_beside_policies_run() {
    let home = tempfile::tempdir().expect("home");
    let home = home.path();
    let dir = app(home).await;
    let given = "with input as {\"plan\": {\"resource_changes\": [{\"address\": \"a\", \"change\": {\"actions\": [\"delete\"]}}]}}";
    let file = dir.join("policies/no-deletes_test.rego");
    let good = format!("package nuon\ntest_told if deny == {{\"a goes\"}} {given}\n");
    fs_err::write(&file, &good).expect("a file");
    let ran = test(home, &dir, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("test_told") && ran.stderr.contains("1 test, 0 failed"), "{ran:?}");

    fs_err::write(&file, format!("{good}test_wrong if count(deny) == 7 {given}\n")).expect("a file");
    let ran = test(home, &dir, &["--json"]).await;
    let document: Value = serde_json::from_str(&ran.stdout).expect("json");
    assert_eq!((ran.code, &document["ok"], &document["report"]), (Some(1), &json!(false), &Value::Null));
    let tests = json!([{ "name": "test_told", "outcome": "passed" }, { "name": "test_wrong", "outcome": "failed" }]);
    assert_eq!(document["tests"][0]["tests"], tests);
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_points_at_what_is_wrong_in_rego() {
    let home = tempfile::tempdir().expect("home");
    let home = home.path();
    let dir = app(home).await;
    let text = dir.to_string_lossy().into_owned();
    assert_eq!(ferry(home, &[], &["apps", "validate", &text]).await.code, Some(0));

    fs_err::write(
        dir.join("policies/no-deletes.rego"),
        "package nuon\ndeny contains x if {\n  x := http.send({})\n}\n",
    )
    .expect("a file");
    fs_err::write(dir.join("policies/base.toml"), "type = \"sandbox\"\ncontents = \"package nuon\"\n").expect("a file");
    let ran = ferry(home, &[], &["apps", "validate", &text, "--json"]).await;
    let document: Value = serde_json::from_str(&ran.stdout).expect("json");
    let found = document["diagnostics"].as_array().expect("diagnostics");
    let brief: Vec<String> =
        found.iter().map(|d| format!("{} {} {}:{}", d["severity"], d["code"], d["file"], d["line"])).collect();
    let expected = [
        "\"warning\" \"bad_policy\" \"policies/base.toml\":2",
        "\"error\" \"bad_policy\" \"policies/no-deletes.rego\":3",
    ];
    assert_eq!((ran.code, brief), (Some(1), expected.map(str::to_owned).to_vec()));
    let ran = ferry(home, &[], &["apps", "validate", &text]).await;
    assert!(
        ran.stderr.contains("there is no function `http.send`") && ran.stderr.contains("no-deletes.rego:3"),
        "{ran:?}"
    );
}
