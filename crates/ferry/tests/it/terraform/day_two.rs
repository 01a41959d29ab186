//! The second day: people settle, tear down, roll back and look for drift, and whatever they do, what they are told is true.

use api::ErrorCode;
use api::control::SettleJob;
use crash::{POINTS, Point};
use model::{JobId, Outcome};
use serde_json::json;
use testkit::Backend;
use testkit::lanes::{Victim, copies};
use testkit::system::shown;

use super::crashes::{Cell, Lane, STABLE};
use super::{Stage, newest};
use crate::{ferry, options};

fn point(name: &str) -> &'static Point {
    POINTS.iter().find(|point| point.name == name).unwrap()
}

/// Puts out what it is given, and what others gave it.
const ECHO: &str = r#"
variable "word" { type = string }
resource "terraform_data" "it" {
  input = var.word
}
output "word" { value = terraform_data.it.output }
"#;

/// Deploys `it` and kills its executor at a point of the apply; returns the workflow and the job whose outcome is unknown then.
async fn lose_apply(lane: &mut Lane, at: &str) -> (String, JobId) {
    let id = lane.stage.deploy("it").await;
    let waiting = lane.stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    lane.trap.set(point(at), 1);
    lane.stage.answer(&waiting, "approve").await;
    lane.strike(&Cell { point: point(at), victim: Victim::Executor }).await;
    let step = lane.stage.until_step(&id, "apply it", "unknown").await;
    (id, lane.stage.job(&step).await.id)
}

async fn settling_an_apply_keeps_the_outputs_of_its_state(backend: Backend) {
    let (_dir, binary) = copies(&ferry());
    let mut lane = Lane::start(&binary, backend, STABLE).await;
    lane.stage.component("user", "", &[("word", "{{ .nuon.components.it.outputs.id }}")], ECHO);
    lane.stage.sync().await;
    let (id, job) = lose_apply(&mut lane, "executor.applied").await;
    let stage = &lane.stage;
    assert_eq!(stage.client().install(stage.install()).await.unwrap().composite_component_status, "unknown");
    let output = stage.system.ferry(&["jobs", "settle", job.as_str(), "--as", "finished", "--note", "looked"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    // The step goes on from where it was, with what the state says.
    stage.until(&id, "success").await;
    let part = stage.part("components/it").await;
    let state = stage.state("it").await;
    assert_eq!(part["status"], "active", "{part}");
    assert_eq!(part["outputs"]["id"], state["resources"][0]["instances"][0]["attributes"]["id"], "{part}");
    // What needs the outputs finds them, and all of it can be taken down again.
    stage.run(json!({ "type": "manual_deploy", "component": "user" })).await;
    assert_eq!(stage.part("components/user").await["outputs"]["word"], part["outputs"]["id"]);
    stage.run(json!({ "type": "deprovision" })).await;
    assert_eq!(stage.system.lines("applied"), ["applied", "destroyed"]);
    stage.until_quiet().await;
}

#[tokio::test]
async fn settling_an_apply_keeps_the_outputs_of_its_state_on_sqlite() {
    settling_an_apply_keeps_the_outputs_of_its_state(Backend::Sqlite).await;
}

#[tokio::test]
async fn settling_an_apply_keeps_the_outputs_of_its_state_on_postgresql() {
    settling_an_apply_keeps_the_outputs_of_its_state(Backend::Postgres).await;
}

/// Somebody goes on without the step first, and says only then how it ended.
#[tokio::test]
async fn an_apply_that_was_skipped_and_settled_later_keeps_its_outputs() {
    let (_dir, binary) = copies(&ferry());
    let mut lane = Lane::start(&binary, Backend::Sqlite, STABLE).await;
    let (id, job) = lose_apply(&mut lane, "executor.applied").await;
    let stage = &lane.stage;
    let step = stage.until_step(&id, "apply it", "unknown").await;
    stage.client().skip_step(&id, &step.id).await.unwrap();
    let done = stage.until(&id, "warning").await;
    assert!(done.status.status_human_description.contains("apply it"), "{:?}", done.status);
    assert_eq!(stage.part("components/it").await["status"], "unknown");
    stage.client().settle_job(&job, &SettleJob { outcome: Outcome::Finished, note: String::new() }).await.unwrap();
    testkit::system::until("the component is known", testkit::system::SOON, async || {
        let part = stage.part("components/it").await;
        if part["status"] == "active" && part["outputs"]["id"].is_string() { Ok(()) } else { Err(part.to_string()) }
    })
    .await;
    assert_eq!(stage.client().workflow(&id).await.unwrap().status.status, "warning", "the skip stays a skip");
    stage.until_quiet().await;
}

/// No state was saved: it can't be called finished, and nothing is applied on that target before a person has looked at a plan.
#[tokio::test]
async fn an_apply_without_a_state_is_not_settled_as_finished_and_holds_the_line() {
    let (_dir, binary) = copies(&ferry());
    let mut lane = Lane::start(&binary, Backend::Sqlite, STABLE).await;
    let (id, job) = lose_apply(&mut lane, "executor.before_apply").await;
    let stage = &lane.stage;
    let settle = |outcome| SettleJob { outcome, note: String::new() };
    let refused = stage.client().settle_job(&job, &settle(Outcome::Finished)).await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Conflict));
    assert!(refused.to_string().contains("saved no state of components/it"), "{refused}");
    assert!(refused.hint().unwrap_or_default().contains("Import or delete what the job created"), "{refused:?}");
    // Another workflow, and all of its plans are approved beforehand.
    let other = stage.begin(json!({ "type": "manual_deploy", "component": "it", "approve_all": true })).await;
    let waiting = stage.until_step(&other, "sync and plan it", "approval-awaiting").await;
    let told = &waiting.status.status_human_description;
    assert!(told.contains("a person's approval") && told.contains(job.as_str()), "{told}");
    stage.client().cancel_workflow(&other).await.unwrap();
    stage.until(&other, "cancelled").await;
    stage.client().settle_job(&job, &settle(Outcome::Failed)).await.unwrap();
    let step = stage.until_step(&id, "apply it", "error").await;
    assert_eq!(stage.part("components/it").await["status"], "error", "that is what was said");
    stage.client().approve_all(&id).await.unwrap();
    stage.client().retry_step(&id, &step.id).await.unwrap();
    let plan = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    assert!(plan.name.ends_with("(retry 1)"), "{}", plan.name);
    assert!(stage.system.lines("applied").is_empty(), "nothing went on by itself");
    stage.answer(&plan, "approve").await;
    stage.until(&id, "success").await;
    assert_eq!(stage.part("components/it").await["status"], "active");
    stage.until_quiet().await;
}

/// What others need goes only when it is said what shall become of them; and then everything comes down, whatever was set since.
#[tokio::test]
async fn a_dependency_is_torn_down_on_purpose_and_deprovision_gets_through() {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    stage.inputs(&[("word", "hello")]);
    stage.component("base", "", &[("word", "{{ .nuon.inputs.inputs.word }}")], ECHO);
    stage.component("user", "", &[("word", "{{ .nuon.components.base.outputs.word }}")], ECHO);
    stage.sync().await;
    stage.run(json!({ "type": "provision" })).await;
    let install = stage.install().to_owned();

    let bare = serde_json::from_value(json!({ "type": "teardown_component", "component": "base" })).unwrap();
    let bare = stage.client().start_workflow(&install, &bare).await.unwrap_err();
    assert_eq!((bare.code(), bare.status()), (Some(ErrorCode::HasDependents), Some(409)), "{bare}");
    assert!(bare.to_string().contains("user"), "{bare}");
    let output = stage.system.ferry(&["installs", "teardown", &install, "--component", "base"]).await;
    let text = shown(&output);
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(text.contains("--with-dependents") && text.contains("user"), "{text}");

    // Alone, though `user` reads what it puts out.
    stage.run(json!({ "type": "teardown_component", "component": "base", "force": true })).await;
    assert_eq!(stage.part("components/base").await["status"], "inactive");
    assert_eq!(stage.client().install(&install).await.unwrap().composite_component_status, "inactive");
    // Even the config has moved on: the module is another one, and what its variable reads is gone.
    stage.component("user", "", &[("other", "{{ .nuon.components.base.outputs.word }}")], "variable \"other\" {}\n");
    stage.sync().await;
    let done = stage.run(json!({ "type": "deprovision" })).await;
    assert_eq!(newest(&done, "plan teardown base").unwrap().status.status, "auto-skipped", "it is gone already");
    assert_eq!(stage.part("components/user").await["status"], "inactive");
    stage.until_quiet().await;
}

/// Drift is a difference from what was deployed; the way back leads there, and not to what was synced since.
#[tokio::test]
async fn drift_is_compared_with_what_was_deployed_and_a_rollback_stays() {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    let world = stage.world();
    let module = |size: u32| {
        format!(
            "{}\nresource \"fixture_thing\" \"it\" {{\n  name  = \"thing\"\n  world = \"{}\"\n  size  = {size}\n}}\n",
            super::FIXTURE,
            world.display()
        )
    };
    stage.component("it", "", &[], &module(1));
    stage.sync().await;
    stage.run(json!({ "type": "provision" })).await;
    stage.component("it", "", &[], &module(2));
    stage.sync().await;
    // A newer version that nobody deployed is no drift.
    let look = stage.begin(json!({ "type": "drift_run", "component": "it" })).await;
    let done = stage.until(&look, "success").await;
    assert_eq!(newest(&done, "sync and plan it").unwrap().status.status, "no-drift");
    stage.run(json!({ "type": "deploy_components" })).await;
    stage.run(json!({ "type": "deploy_components", "config_version": 1 })).await;
    assert_eq!(stage.part("components/it").await["config_version"], 1);
    // Somebody changes the thing by hand.
    let file = world.join("thing.json");
    let thing = fs_err::read_to_string(&file).unwrap();
    fs_err::write(&file, thing.replace("\"size\":1", "\"size\":7").replace("\"size\": 1", "\"size\": 7")).unwrap();
    let output =
        stage.system.ferry(&["installs", "drift", stage.install(), "-c", "it", "--reconcile", "--approve-all"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let thing = fs_err::read_to_string(&file).unwrap();
    assert!(thing.contains("\"size\":1") || thing.contains("\"size\": 1"), "as it was deployed: {thing}");
    assert_eq!(stage.part("components/it").await["config_version"], 1, "the rollback was not undone");
    stage.until_quiet().await;
}
