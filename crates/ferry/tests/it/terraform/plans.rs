//! Exactly that plan: what was approved is carried out, or nothing.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::system::{run, shown};

use super::{Stage, newest, step};
use crate::options;

/// Changes with every apply, and leaves a line.
const MODULE: &str = r#"
variable "witness" { type = string }
resource "terraform_data" "it" {
  triggers_replace = timestamp()
  provisioner "local-exec" {
    command = "echo applied >> ${var.witness}"
  }
}
"#;

async fn stage() -> Stage {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    let witness = stage.system.witness("applied");
    stage.component("it", "", &[("witness", witness.to_str().unwrap())], MODULE);
    stage.sync().await;
    stage
}

fn applied(stage: &Stage) -> usize {
    stage.system.lines("applied").len()
}

/// The plan of the newest plan job, as the database has it.
fn plan_row(stage: &Stage) -> Value {
    let text: String =
        stage.database().query_row("SELECT plan FROM plans ORDER BY created_at DESC", [], |row| row.get(0)).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_plan_of_a_state_that_has_changed_is_made_anew() {
    let stage = stage().await;
    let first = stage.deploy("it").await;
    let waiting = stage.until_step(&first, "sync and plan it", "approval-awaiting").await;
    // Another one is faster.
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    assert_eq!(applied(&stage), 1);
    stage.answer(&waiting, "approve").await;
    let anew = stage.until_step(&first, "sync and plan it", "approval-awaiting").await;
    assert_eq!(anew.name, "sync and plan it (retry 1)");
    assert_eq!(applied(&stage), 1, "what was approved is not carried out any more");

    // The state is changed on the customer's side, of which the control plane's own notes know nothing.
    let state = stage.state("it").await;
    let file = stage.system.root().join("changed.tfstate");
    let mut changed = state.clone();
    changed["serial"] = json!(state["serial"].as_u64().unwrap() + 1);
    fs_err::write(&file, changed.to_string()).unwrap();
    let output = run(stage.custody(&["state", "import", "-c", "it", file.to_str().unwrap()])).await;
    assert!(output.status.success(), "{}", shown(&output));
    stage.answer(&anew, "approve").await;
    let anew = stage.until_step(&first, "sync and plan it (retry 2)", "approval-awaiting").await;
    assert_eq!(applied(&stage), 1);
    stage.answer(&anew, "approve").await;
    let done = stage.until(&first, "success").await;
    let refused = step(&done, "apply it (retry 1)");
    let told = &refused.status.status_human_description;
    assert!(told.contains("the plan was made from serial"), "{told}");
    assert_eq!(applied(&stage), 2);
}

#[tokio::test]
async fn a_plan_that_was_tampered_with_is_refused() {
    let stage = stage().await;
    // The sealed file is another one than was approved.
    let id = stage.deploy("it").await;
    let waiting = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    let row = plan_row(&stage);
    let upload = row["file"]["upload_id"].as_str().unwrap();
    let piece: PathBuf =
        stage.system.root().join("data/blobs/sealed").join(stage.system.org.id.as_str()).join(upload).join("000000");
    let mut bytes = fs_err::read(&piece).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(&piece, &bytes).unwrap();
    stage.answer(&waiting, "approve").await;
    let refused = stage.until_step(&id, "apply it", "error").await;
    let told = &refused.status.status_human_description;
    assert!(told.contains("another file than it was asked for"), "{told}");
    assert_eq!(applied(&stage), 0);

    // The control plane names another plan than was approved.
    let id = stage.deploy("it").await;
    let waiting = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    let mut row = plan_row(&stage);
    row["model_digest"] = json!(format!("sha256:{}", "0".repeat(64)));
    let job = row["job_id"].as_str().unwrap().to_owned();
    stage.database().execute("UPDATE plans SET plan = ?1 WHERE job_id = ?2", [row.to_string(), job]).unwrap();
    stage.answer(&waiting, "approve").await;
    let refused = stage.until_step(&id, "apply it", "error").await;
    let told = &refused.status.status_human_description;
    assert!(told.contains("not the one that was approved"), "{told}");
    assert_eq!(applied(&stage), 0);
    // A retry makes an honest plan.
    stage.client().retry_step(&id, &refused.id).await.unwrap();
    stage.approve(&id, "sync and plan it").await;
    let done = stage.until(&id, "success").await;
    assert_eq!(newest(&done, "apply it").unwrap().status.status, "success");
    assert_eq!(applied(&stage), 1);
}
