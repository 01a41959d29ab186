use serde_json::json;
use terraform::{Tone, draw};

use crate::{fixture, read, resource};

fn drawn(document: &str) -> String {
    draw(&read(document)).into_iter().map(|line| line.text + "\n").collect()
}

#[test]
fn a_real_plan() {
    // The identifiers that the real run made up are shortened.
    let text = drawn(&fixture("change.json"));
    let mut shown = String::new();
    for word in text.split_inclusive(['"', '\n']) {
        let is_id = word.len() == 37 && word.matches('-').count() == 4;
        shown.push_str(if is_id { "ID\"" } else { word });
    }
    let expected = r#"  ~ update  terraform_data.a
      ~ input.engine: "13" -> "14"
      ~ output: {"engine":"13","password":"hunter2-secret-default","tags":["x","y"]} -> (known after apply)
-/+ replace terraform_data.bytrigger  because something in its replace_triggered_by changes
      ~ id: "ID" -> (known after apply)
      ~ output: "t" -> (known after apply)
-/+ replace terraform_data.counted[0]  because it is tainted
      ~ id: "ID" -> (known after apply)
      ~ output: 0 -> (known after apply)
-/+ replace terraform_data.each["blue"]  because triggers_replace can't be changed in place
      ~ id: "ID" -> (known after apply)
      ~ output: "blue" -> (known after apply)
      ~ triggers_replace: "13" -> "14"   forces replacement
  - destroy terraform_data.each["green"]  because its key is no longer in for_each
  + create  terraform_data.each["quote\"d"]
      input: "quote\"d", triggers_replace: "14", 2 known after apply
  . forget  terraform_data.forgotten  because it is no longer in the configuration  it stays where it is, no longer managed
-/+ replace terraform_data.new  because it was requested  moved from terraform_data.old
      ~ id: "ID" -> (known after apply)
      ~ output: "stays" -> (known after apply)

Outputs:
  - engine: "ID"
  + engine2: (known after apply)
  ~ public.url: "https://example.test" -> "https://example.org"

1 to create, 1 to update, 4 to replace, 1 to destroy, 1 moved, 1 to forget, 3 outputs change
"#;
    assert_eq!(shown, expected);
}

#[test]
fn data_stands_out_at_the_top() {
    let document = json!({
        "format_version": "1.2", "errored": false, "complete": false,
        "resource_changes": [
            resource("aws_s3_bucket", json!({"actions": ["create"], "after": {"bucket": "logs"}})),
            {
                "address": "aws_db_instance.main", "type": "aws_db_instance", "action_reason": "replace_because_cannot_update",
                "change": {
                    "actions": ["delete", "create"], "replace_paths": [["engine_version"]],
                    "before": {"engine_version": "13", "password": "a"}, "after": {"engine_version": "14", "password": "b"},
                    "before_sensitive": {"password": true}, "after_sensitive": {"password": true},
                },
            },
            {"address": "data.aws_ami.x", "mode": "data", "type": "aws_ami", "change": {"actions": ["read"]}},
            {"address": "aws_vpc.x", "type": "aws_vpc", "change": {"actions": ["no-op"], "importing": {"id": "vpc-1"}}},
        ],
        "resource_drift": [
            resource("aws_vpc", json!({"actions": ["update"], "before": {"tags": {"a": "1"}}, "after": {"tags": {}}})),
            resource("aws_subnet", json!({"actions": ["delete"], "before": {"a": 1}})),
        ],
    });
    let expected = r#"Data may be lost: 1 resource that usually holds data would be replaced
  ! replace aws_db_instance.main

  + create  aws_s3_bucket.it
      bucket: "logs"
-/+ replace aws_db_instance.main  holds data  because engine_version can't be changed in place
      ~ engine_version: "13" -> "14"   forces replacement
      ~ password: (sensitive) -> (sensitive)
 <= read    data.aws_ami.x
  > import  aws_vpc.x  imported from "vpc-1"

Changed outside of terraform:
  aws_vpc.it was changed
      - tags.a: "1"
  aws_subnet.it is gone

This does not do everything: another plan is needed afterwards
1 to create, 1 to replace, 1 to import, 1 to read
"#;
    assert_eq!(drawn(&document.to_string()), expected);
    let lines = draw(&read(&document.to_string()));
    assert_eq!(lines[0].tone, Tone::Warn);
    let tones: Vec<Tone> = lines[3..=6].iter().map(|line| line.tone).collect();
    assert_eq!(tones, [Tone::Create, Tone::Create, Tone::Replace, Tone::Replace]);
}

#[test]
fn nothing_to_do() {
    assert_eq!(drawn(r#"{"format_version":"1.2","resource_changes":[]}"#), "No changes\n");
    let refresh_only = r#"{"format_version":"1.2","applyable":true}"#;
    assert_eq!(drawn(refresh_only), "Only the state is brought up to date\nNo changes\n");
}

#[test]
fn what_is_left_out_is_said() {
    let many: serde_json::Map<String, serde_json::Value> = (0..300).map(|i| (format!("a{i:03}"), json!(i))).collect();
    let document =
        crate::document(json!([resource("aws_vpc", json!({"actions": ["update"], "before": {}, "after": many}))]));
    let text = drawn(&document);
    assert!(text.contains("      … and 100 more\n"), "{text}");
    assert!(text.contains("Too large to list all of it. Not listed: 100 attributes\n"), "{text}");
}

#[test]
fn nothing_acts_on_the_terminal() {
    let document = crate::document(json!([resource(
        "aws_vpc",
        json!({"actions": ["create"], "after": {"a": "\u{1b}[2J\u{9b}31m\u{202e}x\n"}})
    )]));
    let text = drawn(&document);
    assert!(text.contains(r#"a: "\u001b[2J�31m�x\n""#), "{text}");
}
