//! Terraform for real: the real program, the control plane and the runner as processes, and witnesses in the world that it changes.

mod crashes;
mod custody;
mod day_two;
mod life;
mod modules;
mod overrides;
mod plans;
mod rescues;
mod secrets;

use std::path::{Path, PathBuf};
use std::process::Command;

use api::client::Client;
use api::control::{CreateStepApprovalResponse, CreateWorkflow, Job, JoinCommand, Workflow, WorkflowStep};
use model::JobId;
use serde_json::{Value, json};
use testkit::system::{Options, Runner, SOON, System, shown, until};
pub(crate) use testkit::terraform::{program, version};

use crate::seconds;
use crate::workflows::{step, until_status};

/// Longest wait for a step of Terraform: it may wait a minute for a lock, and on busy cores each of its commands takes a second or two.
const STEP: std::time::Duration = seconds(90);

fn tools() -> PathBuf {
    testkit::terraform::tools(&crate::ferry())
}

/// Providers for a module, and a world for things.
const FIXTURE: &str =
    "terraform {\n  required_providers {\n    fixture = { source = \"example.test/ferry/fixture\" }\n  }\n}\n";

/// An install whose app is made of Terraform modules, and a runner with the real Terraform.
struct Stage {
    system: System,
    join: JoinCommand,
    runner: Option<Runner>,
    _builder: Runner,
    /// The app's files.
    app: PathBuf,
}

impl Stage {
    async fn start(options: Options) -> Self {
        Self::start_with(options, |_| ()).await
    }

    async fn start_with(options: Options, change: impl Fn(&mut Command)) -> Self {
        let config = tools().join("tfrc");
        let system = System::start(options).await;
        let builder = system
            .start_build_runner("build", |command| {
                // A build reads nothing of its host but what it is allowed to.
                let mirror = fs_err::canonicalize(tools()).unwrap();
                command.env("FERRY_RUNNER_TERRAFORM_CONFIG", &config).env("FERRY_RUNNER_ALLOW_PATHS", mirror);
            })
            .await;
        let join = system.join_command().await;
        let runner = system
            .start_runner_with("a", &join, |command| {
                command.env("FERRY_RUNNER_TERRAFORM_CONFIG", &config).env_remove("TF_CLI_CONFIG_FILE");
                change(command);
            })
            .await;
        let app = system.root().join("app");
        let stage = Self { system, join, runner: Some(runner), _builder: builder, app };
        fs_err::create_dir_all(stage.world()).unwrap();
        stage.file("metadata.toml", "version = \"v2\"\n");
        stage.file("runner.toml", "runner_type = \"local\"\n");
        stage
    }

    /// Where things of the fixture provider are.
    fn world(&self) -> PathBuf {
        self.system.witness("world")
    }

    /// What the fixture provider has done to the world.
    fn done_to_world(&self) -> Vec<String> {
        self.system.lines("world/witness.log")
    }

    fn client(&self) -> &Client {
        &self.system.client
    }

    fn install(&self) -> &str {
        &self.system.install.name
    }

    fn runner(&mut self) -> &mut Runner {
        self.runner.as_mut().expect("the runner runs")
    }

    /// The next runner process on the same state directory.
    fn resume_runner(&mut self, change: impl Fn(&mut Command)) {
        let mut command = self.system.resume_command("a");
        command.env("FERRY_RUNNER_TERRAFORM_CONFIG", tools().join("tfrc")).env_remove("TF_CLI_CONFIG_FILE");
        command.env("FERRY_RUNNER_JOIN", &self.join.credential);
        command.env("FERRY_RUNNER_TRUST_KEY", self.join.trust_keys.join(","));
        change(&mut command);
        self.runner = Some(self.system.spawn_runner("a", &mut command));
    }

    // --- the app ---

    fn file(&self, path: &str, text: &str) {
        put(&self.app.join(path), text);
    }

    fn sandbox(&self, vars: &[(&str, &str)], module: &str) {
        let version = version();
        let head = format!("terraform_version = \"{version}\"\n[local]\ndirectory = \"src/sandbox\"\n[vars]\n");
        self.file("sandbox.toml", &format!("{head}{}", lines(vars)));
        self.file("src/sandbox/main.tf", module);
    }

    /// A sandbox that is there at once.
    fn plain_sandbox(&self) {
        self.sandbox(&[], "output \"network\" {\n  value = \"net\"\n}\n");
    }

    fn component(&self, name: &str, settings: &str, vars: &[(&str, &str)], module: &str) {
        let version = version();
        let head =
            format!("name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"{version}\"\n{settings}\n");
        let text = format!("{head}[local]\ndirectory = \"src/{name}\"\n[vars]\n{}", lines(vars));
        self.file(&format!("components/{name}.toml"), &text);
        self.file(&format!("src/{name}/main.tf"), module);
    }

    /// Inputs with their defaults.
    fn inputs(&self, all: &[(&str, &str)]) {
        let mut text = "[[group]]\nname = \"main\"\ndescription = \"d\"\ndisplay_name = \"d\"\n".to_owned();
        for (name, default) in all {
            text += &format!(
                "[[input]]\nname = \"{name}\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\ndefault = \"{default}\"\n"
            );
        }
        self.file("inputs.toml", &text);
    }

    /// Syncs the app and waits for its builds.
    async fn sync(&self) {
        let (app, dir) = (self.system.install.app_id.as_str(), self.app.to_str().unwrap());
        let output = self.system.ferry(&["apps", "sync", dir, "--app", app]).await;
        assert!(output.status.success(), "{}", shown(&output));
    }

    // --- workflows ---

    async fn begin(&self, body: Value) -> String {
        let body: CreateWorkflow = serde_json::from_value(body).unwrap();
        self.client().start_workflow(self.install(), &body).await.unwrap().workflow_id
    }

    async fn deploy(&self, component: &str) -> String {
        self.begin(json!({ "type": "manual_deploy", "component": component })).await
    }

    async fn until(&self, id: &str, status: &str) -> Workflow {
        until_status(self.client(), id, status).await
    }

    /// Runs a workflow whose plans all pass.
    async fn run(&self, mut body: Value) -> Workflow {
        body["approve_all"] = json!(true);
        let id = self.begin(body).await;
        self.until(&id, "success").await
    }

    /// Waits until the newest attempt at a step is so.
    async fn until_step(&self, id: &str, name: &str, status: &str) -> WorkflowStep {
        until(&format!("`{name}` is {status}"), STEP, async || {
            let workflow = self.client().workflow(id).await.map_err(|e| e.to_string())?;
            let told =
                |s: &WorkflowStep| format!("{} {}: {}", s.name, s.status.status, s.status.status_human_description);
            let newest = newest(&workflow, name).ok_or("no such step")?;
            if newest.status.status == status {
                return Ok(newest.clone());
            }
            Err(workflow.steps.iter().map(told).collect::<Vec<_>>().join("\n"))
        })
        .await
    }

    /// Approves a plan as soon as it waits.
    async fn approve(&self, id: &str, name: &str) -> WorkflowStep {
        let waiting = self.until_step(id, name, "approval-awaiting").await;
        self.answer(&waiting, "approve").await;
        waiting
    }

    async fn answer(&self, step: &WorkflowStep, response: &str) {
        let body = CreateStepApprovalResponse { response_type: response.into(), note: String::new() };
        let approval = &step.approval.as_ref().unwrap().id;
        self.client().answer_step(&step.workflow_id, &step.id, approval, &body).await.unwrap();
    }

    /// The plan that a step shows.
    async fn plan(&self, step: &WorkflowStep) -> Value {
        let approval = &step.approval.as_ref().unwrap().id;
        self.client().step_plan(&step.workflow_id, &step.id, approval).await.unwrap()
    }

    /// The job of a step.
    async fn job(&self, step: &WorkflowStep) -> Job {
        let step = self.client().step(&step.id).await.unwrap();
        self.client().job(&JobId::parse(&step.runner_job_id).unwrap()).await.unwrap()
    }

    /// A part of what is known of the install.
    async fn part(&self, part: &str) -> Value {
        let newest = self.client().install_state_versions(self.install(), 1).await.unwrap()[0].version;
        let state = self.client().install_state(self.install(), Some(newest)).await.unwrap().state;
        state[part].clone()
    }

    /// The control plane's own notes, on SQLite.
    fn database(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.system.root().join("data/db/ferry.db")).unwrap();
        db.busy_timeout(seconds(10)).unwrap();
        db
    }

    // --- the customer's side ---

    /// `ferry-runner` with these words, on the runner's state directory.
    fn custody(&self, words: &[&str]) -> Command {
        let mut command = self.system.runner_command(words);
        command.arg("--state-dir").arg(self.system.state_dir("a"));
        command
    }

    /// The opened state of a component.
    async fn state(&self, component: &str) -> Value {
        let file = self.system.root().join(format!("{component}.tfstate"));
        let _ = fs_err::remove_file(&file);
        let output = testkit::system::run(self.custody(&["state", "export", "-c", component, file.to_str().unwrap()]));
        let output = output.await;
        assert!(output.status.success(), "{}", shown(&output));
        serde_json::from_slice(&fs_err::read(&file).unwrap()).unwrap()
    }

    /// Nothing of an execution runs, and no plugin of Terraform.
    async fn until_quiet(&self) {
        self.system.until_quiet().await;
        until("no directory of an execution is left", SOON, async || {
            let place = self.system.state_dir("a").join("executions");
            let left: Vec<_> = fs_err::read_dir(place).into_iter().flatten().flatten().map(|e| e.path()).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }
}

/// The newest attempt at a step; a later one bears a number.
fn newest<'w>(workflow: &'w Workflow, name: &str) -> Option<&'w WorkflowStep> {
    let of = |step: &&WorkflowStep| step.name == name || step.name.starts_with(&format!("{name} (retry "));
    workflow.steps.iter().rev().find(of)
}

fn put(path: &Path, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn lines(vars: &[(&str, &str)]) -> String {
    vars.iter().map(|(name, value)| format!("{name} = {}\n", json!(value))).collect()
}
