//! The life of an install: provisioned plan by plan, changed, watched, brought back, and destroyed.

use std::collections::BTreeSet;

use api::control::Workflow;
use serde_json::json;
use testkit::Backend;
use testkit::system::shown;

use super::{FIXTURE, Stage, newest, step};
use crate::options;

/// A module with one thing. Its command meets that of another module: both must run at a time.
fn thing(me: &str, other: &str) -> String {
    format!(
        r#"{FIXTURE}
variable "world" {{ type = string }}
variable "witness" {{ type = string }}
variable "network" {{ type = string }}
variable "size" {{ type = number }}
resource "fixture_thing" "it" {{
  name  = "{me}"
  world = var.world
  size  = var.size
}}
resource "terraform_data" "meet" {{
  depends_on = [fixture_thing.it]
  input      = {{ witness = var.witness, network = var.network }}
  provisioner "local-exec" {{
    command = "echo {me} >> ${{var.witness}}/order; touch ${{var.witness}}/{me}.here; i=0; while [ ! -e ${{var.witness}}/{other}.here ]; do i=$((i+1)); [ $i -lt 300 ] || exit 1; sleep 0.1; done"
  }}
  provisioner "local-exec" {{
    when    = destroy
    command = "echo gone {me} >> ${{self.input.witness}}/order"
  }}
}}
output "address" {{ value = "{me}-${{fixture_thing.it.size}}.${{var.network}}" }}
"#
    )
}

const TOP: &str = r#"
variable "left" { type = string }
variable "right" { type = string }
variable "witness" { type = string }
resource "terraform_data" "it" {
  input = { both = "${var.left} ${var.right}", witness = var.witness }
  provisioner "local-exec" {
    command = "echo top ${var.left} ${var.right} >> ${var.witness}/order"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo gone top >> ${self.input.witness}/order"
  }
}
output "both" { value = terraform_data.it.output.both }
"#;

const SANDBOX: &str = r#"
variable "witness" { type = string }
resource "terraform_data" "base" {
  input = var.witness
  provisioner "local-exec" {
    command = "echo sandbox >> ${var.witness}/order"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo gone sandbox >> ${self.input}/order"
  }
}
output "network" { value = "net" }
"#;

fn write_app(stage: &Stage, right_size: &str) {
    let (world, witness) = (stage.world(), stage.system.root().join("witness"));
    let (world, witness) = (world.to_str().unwrap(), witness.to_str().unwrap());
    stage.inputs(&[("size", "1")]);
    stage.sandbox(&[("witness", witness)], SANDBOX);
    let network = ("network", "{{ .nuon.sandbox.outputs.network }}");
    let vars = |size| [("world", world), ("witness", witness), network, ("size", size)];
    stage.component("left", "", &vars("{{ .nuon.inputs.inputs.size }}"), &thing("left", "right"));
    stage.component("right", "", &vars(right_size), &thing("right", "left"));
    let outputs = [
        ("left", "{{ .nuon.components.left.outputs.address }}"),
        ("right", "{{ .nuon.components.right.outputs.address }}"),
        ("witness", witness),
    ];
    stage.component("top", "", &outputs, TOP);
}

fn applied(workflow: &Workflow) -> BTreeSet<&str> {
    let good = workflow.steps.iter().filter(|step| step.status.status == "success");
    good.map(|step| step.name.as_str()).filter(|name| name.starts_with("apply")).collect()
}

async fn a_whole_life(backend: Backend) {
    let stage = Stage::start(options().on(backend)).await;
    write_app(&stage, "7");
    stage.sync().await;
    let order = || stage.system.lines("order");

    // Plan by plan: nothing is applied before its approval.
    let id = stage.begin(json!({ "type": "provision" })).await;
    let waiting = stage.until_step(&id, "provision sandbox plan", "approval-awaiting").await;
    let shown_plan = stage.plan(&waiting).await;
    assert_eq!(shown_plan["format"], 1, "{shown_plan}");
    assert_eq!(shown_plan["changes"]["create"], 1, "{shown_plan}");
    assert_eq!(shown_plan["resources"][0]["address"], "terraform_data.base", "{shown_plan}");
    assert_eq!(order(), [""; 0]);
    stage.answer(&waiting, "approve").await;
    let left = stage.until_step(&id, "sync and plan left", "approval-awaiting").await;
    let right = stage.until_step(&id, "sync and plan right", "approval-awaiting").await;
    assert_eq!(order(), ["sandbox"]);
    assert_eq!(stage.done_to_world(), [""; 0]);
    // Each waits for the other inside of its apply.
    stage.answer(&left, "approve").await;
    stage.answer(&right, "approve").await;
    stage.approve(&id, "sync and plan top").await;
    let done = stage.until(&id, "success").await;
    assert!(step(&done, "apply left").finished_at <= step(&done, "sync and plan top").started_at);
    assert!(step(&done, "apply right").finished_at <= step(&done, "sync and plan top").started_at);
    let told = order();
    assert_eq!(BTreeSet::from([&*told[1], &*told[2]]), BTreeSet::from(["left", "right"]), "{told:?}");
    assert_eq!(told[3..], ["top left-1.net right-7.net"], "what came out of them went in");
    assert_eq!(stage.part("components/top").await["outputs"]["both"], "left-1.net right-7.net");

    // Right after an apply nothing has drifted, and there is nothing to do.
    let look = stage.run(json!({ "type": "drift_run", "component": "left" })).await;
    assert_eq!(step(&look, "sync and plan left").status.status, "no-drift");
    let again = stage.run(json!({ "type": "manual_deploy", "component": "left" })).await;
    assert_eq!(newest(&again, "apply left").unwrap().status.status, "auto-skipped");

    // An input moves what reads it, and what depends on that.
    let body = serde_json::from_value(json!({ "inputs": { "size": "2" } })).unwrap();
    let id = stage.client().update_install_inputs(stage.install(), &body).await.unwrap().workflow_id;
    stage.client().approve_all(&id).await.unwrap();
    let moved = stage.until(&id, "success").await;
    assert_eq!(applied(&moved), BTreeSet::from(["apply left", "apply top"]));
    assert_eq!(stage.part("components/top").await["outputs"]["both"], "left-2.net right-7.net");

    // What somebody changes by hand, or removes, is seen, and put right.
    let file = stage.world().join("left.json");
    let made = fs_err::read_to_string(&file).unwrap();
    for by_hand in [Some("{\"size\":99}"), None] {
        match by_hand {
            Some(text) => fs_err::write(&file, text).unwrap(),
            None => fs_err::remove_file(&file).unwrap(),
        }
        let look = stage.run(json!({ "type": "drift_run", "component": "left" })).await;
        assert_eq!(step(&look, "sync and plan left").status.status, "drifted", "{by_hand:?}");
        assert_eq!(fs_err::read_to_string(&file).ok().as_deref(), by_hand, "a look changes nothing");
        stage.run(json!({ "type": "manual_deploy", "component": "left" })).await;
        assert_eq!(fs_err::read_to_string(&file).unwrap(), made, "{by_hand:?}");
    }
    let look = stage.run(json!({ "type": "drift_run", "component": "left" })).await;
    assert_eq!(step(&look, "sync and plan left").status.status, "no-drift");

    // A new version, and back to the one before.
    write_app(&stage, "8");
    stage.sync().await;
    stage.run(json!({ "type": "deploy_components" })).await;
    let size = || fs_err::read_to_string(stage.world().join("right.json")).unwrap();
    assert_eq!(size(), "{\"size\":8}");
    let back = stage.system.ferry(&["installs", "rollback", stage.install(), "--approve-all"]).await;
    assert!(back.status.success(), "{}", shown(&back));
    assert_eq!(size(), "{\"size\":7}");

    // In the end everything goes, what stands on others first, the sandbox last.
    let before = order().len();
    stage.run(json!({ "type": "deprovision" })).await;
    let gone = order().split_off(before);
    assert_eq!(gone[0], "gone top", "{gone:?}");
    assert_eq!(BTreeSet::from([&*gone[1], &*gone[2]]), BTreeSet::from(["gone left", "gone right"]), "{gone:?}");
    assert_eq!(gone[3..], ["gone sandbox"]);
    let left: Vec<_> = fs_err::read_dir(stage.world()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["witness.log"]);
    stage.until_quiet().await;
}

#[tokio::test]
async fn an_install_lives_on_sqlite() {
    a_whole_life(Backend::Sqlite).await;
}

#[tokio::test]
async fn an_install_lives_on_postgresql() {
    a_whole_life(Backend::Postgres).await;
}
