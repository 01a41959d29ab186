use serde_json::json;
use terraform::{Progress, Status};

use crate::fixture;

fn follow(name: &str) -> (Progress, Vec<String>) {
    let mut progress = Progress::default();
    let lines = fixture(name).lines().filter_map(|line| progress.line(line)).collect();
    (progress, lines)
}

#[test]
fn a_real_apply() {
    let (progress, lines) = follow("apply.jsonl");
    for expected in [
        "Terraform 1.11.4",
        "terraform_data.a: creating",
        "terraform_data.a (local-exec): hello from the script",
        "terraform_data.a: created in 0 s",
        "terraform_data.each[\"blue\"]: created in 0 s",
        "Apply complete! Resources: 8 added, 0 changed, 0 destroyed.",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains("hunter2") || line.contains("example.test")), "{lines:#?}");
    assert_eq!(progress.resources().len(), 8);
    assert!(progress.resources().iter().all(|one| one.status == Status::Done && one.took_s == Some(0)));
    assert_eq!((progress.unfinished().count(), progress.first_error()), (0, None));
}

#[test]
fn a_replacement_is_a_destruction_and_a_creation() {
    let (progress, lines) = follow("change.jsonl");
    let of_blue: Vec<&str> = progress
        .resources()
        .iter()
        .filter(|one| one.address == "terraform_data.each[\"blue\"]")
        .map(|one| one.action.as_str())
        .collect();
    assert_eq!(of_blue, ["delete", "create"]);
    assert!(lines.contains(&"terraform_data.a: updated in 0 s".to_owned()), "{lines:#?}");
}

#[test]
fn a_real_failure() {
    let (progress, lines) = follow("failed.jsonl");
    assert_eq!(
        progress.first_error().unwrap(),
        "local-exec provisioner error: Error running command 'echo before; exit 3': exit status 3. Output: before \
         (main.tf:7)"
    );
    let failed: Vec<&str> = progress
        .resources()
        .iter()
        .filter(|one| one.status == Status::Failed)
        .map(|one| one.address.as_str())
        .collect();
    assert_eq!(failed, ["terraform_data.fails"]);
    let text = lines.join("\n");
    for expected in [
        "terraform_data.fails (local-exec): before",
        "terraform_data.fails: creating failed after 0 s",
        "error: local-exec provisioner error\n  Error running command 'echo before; exit 3': exit status 3. Output: \
         before\n  at main.tf:7, in resource \"terraform_data\" \"fails\", with terraform_data.fails\n    7:   provisioner",
        "warning: Check block assertion failed\n  not so\n",
        "    terraform_data.cbd.id is \"29a8bc20-be66-ce37-b6c6-c3d199cef562\"",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn errors_of_the_configuration() {
    let (progress, lines) = follow("errors.jsonl");
    assert_eq!(progress.errors().len(), 4);
    let expected = "error: Missing newline after argument\n  An argument definition must end with a newline.\n  at \
                    main.tf:41, in output \"engine2\"\n    41: sensitive = true }";
    assert_eq!(lines[1], expected);
}

#[test]
fn lines_one_by_one() {
    let hook = |kind: &str, more: serde_json::Value| {
        let mut hook = json!({"resource": {"addr": "t.a"}, "action": "create"});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": kind, "@message": "m", "hook": hook}).to_string()
    };
    let mut progress = Progress::default();
    for (line, expected) in [
        (hook("apply_start", json!({})), Some("t.a: creating")),
        (hook("apply_progress", json!({"elapsed_seconds": 10})), Some("t.a: still creating after 10 s")),
        (hook("apply_complete", json!({"elapsed_seconds": 12})), Some("t.a: created in 12 s")),
        (hook("apply_start", json!({"action": "delete"})), Some("t.a: destroying")),
        (hook("apply_start", json!({"action": "sing"})), Some("t.a: working")),
        (hook("provision_errored", json!({"provisioner": "remote-exec"})), Some("t.a (remote-exec): failed")),
        (hook("refresh_start", json!({})), None),
        (hook("planned_change", json!({})), None),
        (hook("ephemeral_op_start", json!({})), None),
        (json!({"type": "outputs", "@message": "Outputs: 1", "outputs": {"x": {"value": 1}}}).to_string(), None),
        (
            json!({"type": "resource_drift", "change": {"resource": {"addr": "t.b"}}}).to_string(),
            Some("t.b: changed outside of terraform"),
        ),
        (json!({"type": "log", "@message": "text"}).to_string(), Some("text")),
        (json!({"type": "new_thing", "@message": "text"}).to_string(), Some("text")),
        ("{\"other\": 1}".to_owned(), Some("{\"other\": 1}")),
        ("not json".to_owned(), Some("not json")),
        ("[1]".to_owned(), Some("[1]")),
        (String::new(), Some("")),
    ] {
        assert_eq!(progress.line(&line).as_deref(), expected, "{line}");
    }
    let unfinished: Vec<&str> = progress.unfinished().map(|one| one.action.as_str()).collect();
    assert_eq!(unfinished, ["delete", "sing"]);
}

#[test]
fn what_is_kept_is_bounded() {
    let mut progress = Progress::default();
    for i in 0..51_000 {
        progress.line(&format!(
            r#"{{"type":"apply_start","hook":{{"resource":{{"addr":"t.a[{i}]"}},"action":"create"}}}}"#
        ));
    }
    for _ in 0..100 {
        progress.line(r#"{"type":"diagnostic","diagnostic":{"severity":"error","summary":"s"}}"#);
    }
    assert_eq!((progress.resources().len(), progress.errors().len()), (50_000, 50));
}
