//! States that could not be handed over: they reach the control plane all the same, on a full disk too, and nobody is promised what
//! is not true.

use std::ffi::OsStr;
use std::process::Command;

use api::control::UpdateRunnerSettings;
use serde_json::json;
use testkit::system::{SOON, until};

use super::crashes::{revisions, slow_module, slow_stage, status_of};
use super::{STEP, Stage};
use crate::disk_full::Room;
use crate::options;

/// The workspaces of which the control plane knows that their states wait on the runner.
async fn open_rescues(stage: &Stage) -> usize {
    let runner = stage.client().runner(stage.system.install.runner_id.as_str()).await.unwrap();
    runner.report.map_or(0, |report| report.rescues_open.len())
}

#[tokio::test]
async fn a_state_that_an_executor_with_a_result_left_is_delivered_without_a_restart() {
    let (stage, id) = slow_stage(4_000).await;
    // Somebody else holds the lock when Terraform wants to save, and when its executor wants to.
    let lock = json!({ "ID": "other", "Who": "somebody" }).to_string();
    let locked =
        "UPDATE workspaces SET lock_id = 'other', lock_info = ?1, lock_execution = NULL WHERE target = 'components/it'";
    assert_eq!(stage.database().execute(locked, [lock]).unwrap(), 1);
    let step = stage.until_step(&id, "apply it", "error").await;
    let told = &step.status.status_human_description;
    assert!(told.contains("the runner uploads it as soon as it can"), "{told}");
    assert_eq!(stage.job(&step).await.error.unwrap().code, "state_waiting");
    // The control plane knew of it before it knew of the end.
    assert_eq!(open_rescues(&stage).await, 1);
    let waiting = runner::seal::rescue::waiting(&stage.system.state_dir("a"));
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert!(fs_err::metadata(&waiting[0].0).unwrap().len() > 100, "it is whole");

    let unlocked =
        "UPDATE workspaces SET lock_id = NULL, lock_info = NULL, locked_at = NULL WHERE target = 'components/it'";
    assert_eq!(stage.database().execute(unlocked, []).unwrap(), 1);
    until("the state is delivered", SOON, async || {
        let waiting = runner::seal::rescue::waiting(&stage.system.state_dir("a"));
        if waiting.is_empty() { Ok(()) } else { Err(format!("{waiting:?}")) }
    })
    .await;
    let found = revisions(&stage);
    assert!(found.iter().any(|(count, _, note)| (*count, note.as_str()) == (2, "errored.tfstate")), "{found:?}");
    until("and nothing is said to wait", SOON, async || match open_rescues(&stage).await {
        0 => Ok(()),
        open => Err(open.to_string()),
    })
    .await;
    stage.until_quiet().await;
}

/// Puts the runner's state directory on a small file system.
fn on_room(room: &Room, command: &Command) {
    let words: Vec<&OsStr> = command.get_args().collect();
    let at = words.iter().position(|word| *word == "--state-dir").unwrap();
    let state = room.path().join("state");
    fs_err::create_dir_all(&state).unwrap();
    fs_err::create_dir_all(std::path::Path::new(words[at + 1]).parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(state, words[at + 1]).unwrap();
}

#[tokio::test]
async fn a_full_disk_refuses_an_apply_before_it_begins_and_loses_no_state_after() {
    let room = Room::new(256);
    let stage = Stage::start_with(options(), |command| on_room(&room, command)).await;
    let no_floor = UpdateRunnerSettings { disk_floor_bytes: Some(0), ..Default::default() };
    stage.client().update_runner_settings(stage.system.install.runner_id.as_str(), &no_floor).await.unwrap();
    stage.plain_sandbox();
    stage.component("it", "", &[], &slow_module(&stage, 6_000));
    stage.sync().await;
    let id = stage.deploy("it").await;
    let plan = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;

    // Too little for the state: nothing is begun.
    room.fill();
    room.leave(8);
    stage.answer(&plan, "approve").await;
    let step = stage.until_step(&id, "apply it", "error").await;
    let told = &step.status.status_human_description;
    assert!(told.contains("too little room for Terraform's state: 16 MiB are needed"), "{told}");
    assert!(told.contains("runners/a") && told.contains("Nothing was changed"), "{told}");
    assert_eq!(stage.job(&step).await.error.unwrap().code, "disk_full");
    assert!(stage.done_to_world().is_empty(), "{:?}", stage.done_to_world());

    // Full while it works: the state goes through memory.
    room.make_room();
    stage.client().retry_step(&id, &step.id).await.unwrap();
    stage.approve(&id, "sync and plan it").await;
    until("the slow thing is begun", STEP, async || {
        let done = stage.done_to_world();
        if done.iter().any(|line| line == "create slow") { Ok(()) } else { Err(format!("{done:?}")) }
    })
    .await;
    room.fill();
    stage.until(&id, "success").await;
    assert_eq!(stage.done_to_world(), ["create quick", "create slow"]);
    let rescued = fs_err::read_dir(stage.system.state_dir("a").join("rescued")).into_iter().flatten().flatten().count();
    assert_eq!(rescued, 0, "nothing waits, and no empty file is left");
    room.make_room();
    let state = stage.state("it").await;
    assert_eq!(status_of(&state, "slow"), Some(&serde_json::Value::Null), "{state}");
    stage.until_quiet().await;
}
