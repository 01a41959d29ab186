//! What the customer holds: the key, and the states, with Ferry's jobs or without them.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use runner::seal::InstallKey;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::system::{SOON, run, send, shown, until};

use super::{FIXTURE, Stage, newest, put, tools};
use crate::options;

const MODULE: &str = "resource \"terraform_data\" \"it\" {\n  input = timestamp()\n}\noutput \"id\" {\n  value = terraform_data.it.id\n}\n";

async fn good(command: Command) -> String {
    let output = run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
    String::from_utf8(output.stdout).unwrap()
}

async fn refused(command: Command) -> String {
    let output = run(command).await;
    assert!(!output.status.success(), "{}", shown(&output));
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn an_install_whose_key_is_gone_waits_for_that_key() {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    stage.component("it", "", &[], MODULE);
    stage.sync().await;
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    let (key, saved) = (stage.system.state_dir("a").join("keys/install.key"), stage.system.root().join("saved.key"));
    let told: Value = serde_json::from_str(&good(stage.custody(&["key", "show", "--json"])).await).unwrap();
    let fingerprint = told["fingerprint"].as_str().unwrap().to_owned();
    good(stage.custody(&["key", "backup", saved.to_str().unwrap()])).await;
    let again = refused(stage.custody(&["key", "backup", saved.to_str().unwrap()])).await;
    assert!(again.contains("nothing is written over it"), "{again}");

    // Gone: the job is refused, and no new key is made.
    fs_err::remove_file(&key).unwrap();
    let told = refused_deploy(&stage).await;
    assert!(told.contains(&fingerprint) && told.contains("ferry-runner key restore"), "{told}");
    assert!(!key.exists(), "no new key is made");

    // Another one is no help, and is not brought in its place.
    let other = InstallKey::new();
    fs_err::write(&key, other.text().as_bytes()).unwrap();
    let told = refused_deploy(&stage).await;
    assert!(told.contains(&fingerprint) && told.contains(&other.fingerprint()), "{told}");
    let wrong = stage.system.root().join("wrong.key");
    fs_err::write(&wrong, other.text().as_bytes()).unwrap();
    let told = refused(stage.custody(&["key", "restore", wrong.to_str().unwrap()])).await;
    assert!(told.contains(&fingerprint) && told.contains("nothing is changed"), "{told}");

    // The right one is; what stood in its place is kept.
    let told = good(stage.custody(&["key", "restore", saved.to_str().unwrap()])).await;
    let beside = fs_err::read_dir(stage.system.state_dir("a").join("keys")).unwrap().flatten();
    let beside = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with("install.key."));
    let beside: Vec<_> = beside.map(|entry| fs_err::read_to_string(entry.path()).unwrap()).collect();
    assert_eq!(beside, [other.text().to_string()]);
    assert!(told.contains(&fingerprint), "{told}");
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
}

/// A secret store of the customer's, here a file, and the command that asks it.
#[tokio::test]
async fn a_key_may_come_from_a_command() {
    let mut stage = Stage::start(options()).await;
    let store = stage.system.root().join("store/key");
    put(&store, "");
    fs_err::remove_file(&store).unwrap();
    stage.runner().kill();
    stage.resume_runner(|command| {
        command.env("FERRY_RUNNER_INSTALL_KEY_COMMAND", format!("cat {}", store.display()));
    });
    stage.plain_sandbox();
    stage.component("it", "", &[], MODULE);
    stage.sync().await;
    let told = refused_deploy(&stage).await;
    assert!(told.contains("ferry-runner key new"), "{told}");
    fs_err::write(&store, good(stage.system.runner_command(&["key", "new"])).await).unwrap();
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    assert!(!stage.system.state_dir("a").join("keys/install.key").exists(), "it lies nowhere else");
}

/// A deploy that the runner refuses for its key; returns why.
async fn refused_deploy(stage: &Stage) -> String {
    let id = stage.deploy("it").await;
    let failed = stage.until_step(&id, "sync and plan it", "error").await;
    let error = stage.job(&failed).await.error.expect("an error");
    assert_eq!(error.code, "install_key", "{}", error.message);
    failed.status.status_human_description.clone()
}

/// A plain Terraform in a directory of the customer's.
struct Plain {
    dir: PathBuf,
}

impl Plain {
    fn new(dir: PathBuf, module: &str) -> Self {
        put(&dir.join("main.tf"), module);
        Self { dir }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(super::program());
        command.args(words).current_dir(&self.dir).env("TF_CLI_CONFIG_FILE", tools().join("tfrc"));
        command.env("HOME", &self.dir).env("TF_IN_AUTOMATION", "1").env("CHECKPOINT_DISABLE", "1");
        command
    }

    async fn run(&self, words: &[&str]) -> String {
        good(self.command(words)).await
    }

    async fn output(&self, words: &[&str]) -> Output {
        run(self.command(words)).await
    }
}

/// `ferry-runner state serve`, until it is dropped.
struct Served {
    child: Child,
    config: String,
    /// It stays open: who writes to a closed one ends.
    _stdout: std::io::Lines<BufReader<ChildStdout>>,
}

impl Served {
    fn start(stage: &Stage, component: &str) -> Self {
        let mut command = stage.custody(&["state", "serve", "-c", component]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut config = String::new();
        while !config.contains("retry_max") {
            config += &format!("{}\n", lines.next().expect("more lines").unwrap());
        }
        Self { child, config, _stdout: lines }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        send(self.child.id() as i32, Signal::INT);
        let _ = self.child.wait();
    }
}

fn without_serial(state: &Value) -> Value {
    let mut state = state.clone();
    state.as_object_mut().unwrap().remove("serial");
    state
}

#[tokio::test]
async fn a_plain_terraform_works_on_a_state_that_is_served() {
    let stage = Stage::start(options()).await;
    stage.plain_sandbox();
    stage.component("it", "", &[], MODULE);
    stage.sync().await;
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    let served = Served::start(&stage, "it");
    let gate = stage.system.witness("gate");
    // The same module, and something of the customer's own beside it, which takes its time.
    let more = format!(
        "terraform {{\n  backend \"http\" {{}}\n}}\nresource \"terraform_data\" \"own\" {{\n  provisioner \"local-exec\" {{\n    command = \"touch {0}.here; while [ ! -e {0} ]; do sleep 0.1; done\"\n  }}\n}}\n",
        gate.display()
    );
    let plain = Plain::new(stage.system.root().join("plain"), &format!("{MODULE}{more}"));
    put(&plain.dir.join("backend.hcl"), &served.config);
    plain.run(&["init", "-no-color", "-reconfigure", "-backend-config=backend.hcl"]).await;
    assert_eq!(plain.run(&["state", "list"]).await, "terraform_data.it\n");
    let seen: Value = serde_json::from_str(&plain.run(&["state", "pull"]).await).unwrap();
    assert_eq!(seen, stage.state("it").await, "what is exported is what Terraform sees");

    // It holds the lock: a job of Ferry waits for it, for a minute, and everybody is told who has it.
    let mut apply = plain.command(&["apply", "-no-color", "-input=false", "-auto-approve"]);
    let mut apply = apply.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until(
        "it works",
        SOON,
        async || {
            if gate.with_extension("here").exists() { Ok(()) } else { Err("not yet".to_owned()) }
        },
    )
    .await;
    let told = good(stage.custody(&["state", "list"])).await;
    assert!(told.contains("components/it: serial") && told.contains("locked by "), "{told}");
    let holder = told.split("locked by ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let file = stage.system.root().join("next.tfstate");
    let mut next = seen.clone();
    next["serial"] = json!(seen["serial"].as_u64().unwrap() + 1);
    fs_err::write(&file, next.to_string()).unwrap();
    let told = refused(stage.custody(&["state", "import", "-c", "it", file.to_str().unwrap()])).await;
    assert!(told.contains(&format!("locked by {holder}")), "{told}");
    let id = stage.deploy("it").await;
    let failed = stage.until_step(&id, "sync and plan it", "error").await;
    let told = &failed.status.status_human_description;
    assert!(told.contains(&format!("the state is locked by {holder} (OperationTypeApply")), "{told}");
    fs_err::write(&gate, "").unwrap();
    let status = apply.wait().unwrap();
    assert!(status.success(), "{status}");
    stage.client().retry_step(&id, &failed.id).await.unwrap();
    let plan = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    assert_eq!(stage.plan(&plan).await["changes"]["destroy"], 1, "Ferry's module has nothing of the customer's own");
    let after = stage.state("it").await;
    assert_eq!(after["resources"].as_array().unwrap().len(), 2, "what Terraform did is the state: {after}");
    drop(served);
    let lost = plain.output(&["state", "list"]).await;
    assert!(!lost.status.success(), "nothing is served any more");
    stage.client().cancel_workflow(&id).await.unwrap();
}

#[tokio::test]
async fn a_state_that_was_there_before_is_taken_over() {
    let stage = Stage::start(options()).await;
    let module = format!(
        "{FIXTURE}resource \"fixture_thing\" \"it\" {{\n  name  = \"old\"\n  world = \"{}\"\n  size  = 4\n}}\noutput \"id\" {{\n  value = fixture_thing.it.id\n}}\n",
        stage.world().display()
    );
    // Made long ago, by hand.
    let plain = Plain::new(stage.system.root().join("plain"), &module);
    plain.run(&["init", "-no-color"]).await;
    plain.run(&["apply", "-no-color", "-input=false", "-auto-approve"]).await;
    assert_eq!(stage.done_to_world(), ["create old"]);
    let file = plain.dir.join("terraform.tfstate");
    let before: Value = serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap();

    stage.plain_sandbox();
    stage.component("it", "", &[], &module);
    stage.sync().await;
    let told = good(stage.custody(&["state", "import", "-c", "it", file.to_str().unwrap()])).await;
    assert!(told.contains("components/it"), "{told}");
    assert_eq!(without_serial(&stage.state("it").await), without_serial(&before));
    let done = stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    let shown = stage.plan(newest(&done, "sync and plan it").unwrap()).await;
    let changes = ["create", "update", "replace", "destroy"].map(|kind| shown["changes"][kind].as_u64());
    assert_eq!(changes, [Some(0); 4], "the plan changes nothing: {shown}");
    assert_eq!(stage.done_to_world(), ["create old"], "nothing is made twice");
    // It is the component's from now on: what comes out is known, and it can be torn down.
    let part = stage.part("components/it").await;
    assert_eq!((&part["status"], &part["outputs"]["id"]), (&json!("active"), &json!("old")), "{part}");
    // The same state again does not follow itself, and one of another lineage is another's.
    let told = refused(stage.custody(&["state", "import", "-c", "it", file.to_str().unwrap()])).await;
    assert!(told.contains("has a state already"), "{told}");
    let told = refused(stage.custody(&["state", "import", "-c", "no", file.to_str().unwrap()])).await;
    assert!(told.contains("component"), "{told}");
    stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    assert_eq!(stage.done_to_world(), ["create old", "delete old"]);
}

/// A machine is replaced between a plan and its approval: with the key, the next one carries out that very plan.
#[tokio::test]
async fn a_plan_outlives_the_machine_that_made_it() {
    let mut stage = Stage::start(options()).await;
    stage.plain_sandbox();
    stage.component("it", "", &[], MODULE);
    stage.sync().await;
    stage.run(json!({ "type": "manual_deploy", "component": "it" })).await;
    let saved = stage.system.root().join("saved.key");
    good(stage.custody(&["key", "backup", saved.to_str().unwrap()])).await;
    let id = stage.deploy("it").await;
    let waiting = stage.until_step(&id, "sync and plan it", "approval-awaiting").await;
    stage.runner().kill();
    fs_err::remove_dir_all(stage.system.state_dir("a")).unwrap();
    fs_err::create_dir(stage.system.state_dir("a")).unwrap();
    good(stage.custody(&["key", "restore", saved.to_str().unwrap()])).await;
    stage.resume_runner(|_| ());
    stage.answer(&waiting, "approve").await;
    let done = stage.until(&id, "success").await;
    assert_eq!(newest(&done, "apply it").unwrap().name, "apply it", "the first attempt");
}
