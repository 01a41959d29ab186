//! An install on the cluster: the control plane and the runner as processes, and an app whose files a test writes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use api::client::Client;
use api::control::{CreateStepApprovalResponse, CreateWorkflow, Job, JoinCommand, Workflow, WorkflowStep};
use crash::{POINTS, Point};
use model::{JobId, env};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::kube::{Cluster, Namespace};
use testkit::lanes::Victim;
use testkit::system::{Options, Runner, SOON, System, send, shown, temporary, until};
use testkit::terraform;
use testkit::trap::Trap;

/// Longest wait for a step: pods may take a while to start on busy cores.
const STEP: Duration = Duration::from_secs(120);

pub(crate) struct Stage {
    pub(crate) system: System,
    pub(crate) trap: Trap,
    join: JoinCommand,
    runner: Option<Runner>,
    _builder: Runner,
    app: PathBuf,
    pub(crate) namespace: Namespace,
    runner_env: Vec<(&'static str, String)>,
    _crashes: tempfile::TempDir,
}

impl Stage {
    /// Everything that it deploys belongs into a namespace of its own, named after `prefix`.
    pub(crate) async fn start(prefix: &str) -> Self {
        Self::start_with(prefix, &crate::ferry()).await
    }

    /// The same with other binaries.
    pub(crate) async fn start_with(prefix: &str, ferry: &Path) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cluster = Cluster::get();
        let crashes = temporary();
        let trap = Trap::new(crashes.path().join("crash"));
        let (name, file) = trap.variable();
        let system = System::start(Options::new(ferry.to_owned()).with(name, file.display())).await;
        fs_err::copy(cluster.kubeconfig(), system.root().join("kubeconfig")).unwrap();
        let tools = terraform::tools(&crate::ferry());
        let builder = system
            .start_build_runner("build", |command| {
                let mirror = fs_err::canonicalize(&tools).unwrap();
                command.env(env::RUNNER_TERRAFORM_CONFIG, tools.join("tfrc")).env(env::RUNNER_ALLOW_PATHS, mirror);
            })
            .await;
        let join = system.join_command().await;
        let app = system.root().join("app");
        let namespace = cluster.namespace(prefix);
        let runner_env = Vec::new();
        let mut stage =
            Self { system, trap, join, runner: None, _builder: builder, app, namespace, runner_env, _crashes: crashes };
        stage.start_runner(true);
        let there = |r: &api::control::Runner| r.status == "active" && r.report.is_some();
        stage.system.until_runner("the runner is there", SOON, there).await;
        stage.file("metadata.toml", "version = \"v2\"\n");
        stage.file("runner.toml", "runner_type = \"local\"\n");
        let version = terraform::version();
        stage.file(
            "sandbox.toml",
            &format!("terraform_version = \"{version}\"\n[local]\ndirectory = \"src/sandbox\"\n"),
        );
        stage.file("src/sandbox/main.tf", "output \"network\" {\n  value = \"net\"\n}\n");
        stage
    }

    /// The runner's kubeconfig: a copy, which a test may change.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.system.root().join("kubeconfig")
    }

    fn start_runner(&mut self, with_cluster: bool) {
        let mut command = self.system.resume_command("a");
        let (name, file) = self.trap.variable();
        command.env(name, file).env_remove("KUBECONFIG").env_remove("TF_CLI_CONFIG_FILE");
        command.env(env::RUNNER_TERRAFORM_CONFIG, terraform::tools(&crate::ferry()).join("tfrc"));
        if with_cluster {
            command.env(env::RUNNER_KUBECONFIG, self.kubeconfig());
        }
        command.envs(self.runner_env.iter().map(|(name, value)| (name, value)));
        command.env(env::RUNNER_JOIN, &self.join.credential).env(env::RUNNER_TRUST_KEY, self.join.trust_keys.join(","));
        self.runner = Some(self.system.spawn_runner("a", &mut command));
    }

    /// The runner again, which has no cluster of its own now.
    pub(crate) fn restart_without_cluster(&mut self) {
        self.runner.as_mut().unwrap().kill();
        self.start_runner(false);
    }

    /// The runner again, with more in its environment.
    pub(crate) async fn restart_runner_with(&mut self, name: &'static str, value: &str) {
        self.runner_env.push((name, value.to_owned()));
        self.restart_runner().await;
    }

    /// The runner is killed and started again; it is there when this returns.
    pub(crate) async fn restart_runner(&mut self) {
        self.runner.as_mut().unwrap().kill();
        self.start_runner(true);
        let back = |r: &api::control::Runner| r.status == "active" && r.report.is_some();
        self.system.until_runner("the runner is back", SOON, back).await;
    }

    pub(crate) fn client(&self) -> &Client {
        &self.system.client
    }

    pub(crate) fn install(&self) -> &str {
        &self.system.install.name
    }

    // --- the app ---

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.app.join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(crate) fn app_file(&self, path: &str) -> PathBuf {
        self.app.join(path)
    }

    /// The app has this component no more.
    pub(crate) fn drop_component(&self, name: &str) {
        fs_err::remove_file(self.app.join(format!("components/{name}.toml"))).unwrap();
    }

    /// A component of plain objects, in the namespace of the test.
    pub(crate) fn manifest(&self, name: &str, settings: &str, objects: &str) {
        let namespace = self.namespace.name();
        let head = format!("name = \"{name}\"\ntype = \"kubernetes_manifest\"\nnamespace = \"{namespace}\"\n");
        let manifest = format!("manifest = \"../manifests/{name}.yaml\"\n{settings}\n");
        self.file(&format!("components/{name}.toml"), &format!("{head}{manifest}"));
        self.file(&format!("manifests/{name}.yaml"), objects);
    }

    /// A component of an image that is built: it answers on port 8080 with `app VERSION`.
    pub(crate) fn image(&self, name: &str, version: &str) {
        let head = format!("name = \"{name}\"\ntype = \"docker_build\"\ndockerfile = \"Dockerfile\"\n");
        self.file(&format!("components/{name}.toml"), &format!("{head}[local]\ndirectory = \"src/{name}\"\n"));
        let programs = Cluster::get().kubeconfig().with_file_name("images/root/bin");
        if !self.app_file(&format!("src/{name}/bin")).exists() {
            self.copy(&programs, &format!("src/{name}/bin"));
        }
        let lines = ["FROM scratch", "COPY bin /bin", "ENTRYPOINT [\"/bin/app\", \"serve\"]"];
        let env = format!("ENV PATH=/bin VERSION={version}");
        self.file(&format!("src/{name}/Dockerfile"), &format!("{}\n{env}\n", lines.join("\n")));
    }

    /// A component that runs an image as a Job, in the namespace of the test unless its settings name another one.
    pub(crate) fn program(&self, name: &str, settings: &str, image: &str) {
        let (image, tag) = image.rsplit_once(':').unwrap();
        let mut text = format!("name = \"{name}\"\ntype = \"job\"\nimage_url = \"{image}\"\ntag = \"{tag}\"\n");
        if !settings.contains("namespace = ") {
            text += &format!("namespace = \"{}\"\n", self.namespace.name());
        }
        self.file(&format!("components/{name}.toml"), &format!("{text}{settings}\n"));
    }

    /// A component of a chart whose release is named `NAME-release`. Templates are files of the chart.
    pub(crate) fn chart(&self, name: &str, settings: &str, values: &[(&str, &str)], templates: &[(&str, &str)]) {
        let place = format!("src/{name}");
        self.chart_at(name, settings, values, &place);
        let head = "apiVersion: v2\nversion: 0.1.0\nname: ";
        self.file(&format!("{place}/Chart.yaml"), &format!("{head}{name}\n"));
        self.file(&format!("{place}/values.yaml"), "{}\n");
        let folder = self.app.join(&place).join("templates");
        let _ = fs_err::remove_dir_all(&folder);
        for (file, text) in templates {
            self.file(&format!("{place}/{file}"), text);
        }
    }

    /// A component of a chart that is in the app already.
    pub(crate) fn chart_at(&self, name: &str, settings: &str, values: &[(&str, &str)], place: &str) {
        let namespace = self.namespace.name();
        let release = name.replace('_', "-");
        let mut text = format!(
            "name = \"{name}\"\ntype = \"helm_chart\"\nchart_name = \"{release}-release\"\nnamespace = \"{namespace}\"\n{settings}\n[local]\ndirectory = \"{place}\"\n[values]\n"
        );
        for (key, value) in values {
            text += &format!("{} = {}\n", json!(key), json!(value));
        }
        self.file(&format!("components/{name}.toml"), &text);
    }

    /// A component of Terraform.
    pub(crate) fn module(&self, name: &str, module: &str) {
        let version = terraform::version();
        let head = format!("name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"{version}\"\n");
        self.file(&format!("components/{name}.toml"), &format!("{head}[local]\ndirectory = \"src/{name}\"\n"));
        self.file(&format!("src/{name}/main.tf"), module);
    }

    /// Copies a folder into the app.
    pub(crate) fn copy(&self, from: &Path, place: &str) {
        let to = self.app.join(place);
        fs_err::create_dir_all(to.parent().unwrap()).unwrap();
        let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(&to).status().unwrap();
        assert!(copied.success(), "{}", from.display());
    }

    /// Syncs the app and waits for its builds.
    pub(crate) async fn sync(&self) {
        let (app, dir) = (self.system.install.app_id.as_str(), self.app.to_str().unwrap());
        let output = self.system.ferry(&["apps", "sync", dir, "--app", app]).await;
        assert!(output.status.success(), "{}", shown(&output));
    }

    // --- workflows ---

    pub(crate) async fn begin(&self, body: Value) -> String {
        let body: CreateWorkflow = serde_json::from_value(body).unwrap();
        self.client().start_workflow(self.install(), &body).await.unwrap().workflow_id
    }

    pub(crate) async fn deploy(&self, component: &str) -> String {
        self.begin(json!({ "type": "manual_deploy", "component": component })).await
    }

    pub(crate) async fn until(&self, id: &str, status: &str) -> Workflow {
        let mut failed: Option<Instant> = None;
        until(&format!("workflow {id} is {status}"), STEP, async || {
            let workflow = self.client().workflow(id).await.map_err(|e| e.to_string())?;
            let now = &workflow.status.status;
            // A retry, or an outcome that a person has recorded, takes a moment to be seen.
            failed = if now == "error" { failed.or_else(|| Some(Instant::now())) } else { None };
            assert!(failed.is_none_or(|since| since.elapsed() < Duration::from_secs(10)), "{}", told(&workflow));
            if now == status { Ok(workflow) } else { Err(told(&workflow)) }
        })
        .await
    }

    /// Runs a workflow whose plans are all approved beforehand.
    pub(crate) async fn run(&self, mut body: Value) -> Workflow {
        body["approve_all"] = json!(true);
        let id = self.begin(body).await;
        self.until(&id, "success").await
    }

    /// Deploys a component, whatever its plan says.
    pub(crate) async fn deployed(&self, component: &str) -> Workflow {
        self.run(json!({ "type": "manual_deploy", "component": component })).await
    }

    /// Deploys a component, and returns what its apply fails with.
    pub(crate) async fn fails(&self, component: &str) -> (String, WorkflowStep) {
        let id = self.begin(json!({ "type": "manual_deploy", "component": component, "approve_all": true })).await;
        let step = self.until_step(&id, &format!("apply {component}"), "error").await;
        (step.status.status_human_description.clone(), step)
    }

    /// Plans a component, and returns what that fails with.
    pub(crate) async fn no_plan(&self, component: &str) -> String {
        let id = self.begin(json!({ "type": "manual_deploy", "component": component, "approve_all": true })).await;
        let step = self.until_step(&id, &format!("sync and plan {component}"), "error").await;
        step.status.status_human_description
    }

    /// Looks for drift; returns how the look ended: `drifted` or `no-drift`.
    pub(crate) async fn look(&self, component: &str) -> WorkflowStep {
        let done = self.run(json!({ "type": "drift_run", "component": component })).await;
        newest(&done, &format!("sync and plan {component}")).unwrap().clone()
    }

    /// Brings a component back to what was deployed.
    pub(crate) async fn reconciled(&self, component: &str) {
        self.ferry(&["installs", "drift", self.install(), "-c", component, "--reconcile", "--approve-all"]).await;
    }

    /// Runs `ferry` to a good end.
    pub(crate) async fn ferry(&self, words: &[&str]) -> String {
        let output = self.system.ferry(words).await;
        assert!(output.status.success(), "{}", shown(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) async fn teardown(&self, component: &str) -> String {
        self.begin(json!({ "type": "teardown_component", "component": component })).await
    }

    /// Waits until the newest attempt at a step is so.
    pub(crate) async fn until_step(&self, id: &str, name: &str, status: &str) -> WorkflowStep {
        until(&format!("`{name}` is {status}"), STEP, async || {
            let workflow = self.client().workflow(id).await.map_err(|e| e.to_string())?;
            let newest = newest(&workflow, name).ok_or("no such step")?;
            if newest.status.status == status { Ok(newest.clone()) } else { Err(told(&workflow)) }
        })
        .await
    }

    /// The plan of a component's deploy, as soon as it waits for an approval.
    pub(crate) async fn waiting(&self, id: &str, component: &str) -> (WorkflowStep, Value) {
        self.waits(id, &format!("sync and plan {component}")).await
    }

    /// A plan, as soon as it waits for an approval.
    pub(crate) async fn waits(&self, id: &str, name: &str) -> (WorkflowStep, Value) {
        let step = self.until_step(id, name, "approval-awaiting").await;
        let approval = &step.approval.as_ref().unwrap().id;
        let plan = self.client().step_plan(&step.workflow_id, &step.id, approval).await.unwrap();
        (step, plan)
    }

    /// The plan that is made after another one, as soon as it waits.
    pub(crate) async fn waiting_after(&self, id: &str, name: &str, old: &WorkflowStep) -> (WorkflowStep, Value) {
        until(&format!("another `{name}`"), STEP, async || {
            let workflow = self.client().workflow(id).await.map_err(|e| e.to_string())?;
            let newer = newest(&workflow, name).is_some_and(|step| step.id != old.id);
            if newer { Ok(()) } else { Err(told(&workflow)) }
        })
        .await;
        self.waits(id, name).await
    }

    pub(crate) async fn waiting_again(&self, id: &str, component: &str, old: &WorkflowStep) -> (WorkflowStep, Value) {
        self.waiting_after(id, &format!("sync and plan {component}"), old).await
    }

    /// What the plan of a teardown says, whether or not it waits for an approval.
    pub(crate) async fn until_teardown_plan(&self, id: &str, name: &str) -> String {
        until(&format!("the plan of `{name}`"), STEP, async || {
            let workflow = self.client().workflow(id).await.map_err(|e| e.to_string())?;
            let step = newest(&workflow, name).ok_or("no such step")?;
            let approval = step.approval.as_ref().ok_or_else(|| told(&workflow))?;
            if step.status.status == "approval-awaiting" {
                self.approve(step).await;
            }
            let plan = self.client().step_plan(&step.workflow_id, &step.id, &approval.id).await;
            plan.map(|plan| plan.to_string()).map_err(|e| e.to_string())
        })
        .await
    }

    pub(crate) async fn approve(&self, step: &WorkflowStep) {
        let body = CreateStepApprovalResponse { response_type: "approve".into(), note: String::new() };
        let approval = &step.approval.as_ref().unwrap().id;
        self.client().answer_step(&step.workflow_id, &step.id, approval, &body).await.unwrap();
    }

    pub(crate) async fn cancel(&self, id: &str) {
        self.client().cancel_workflow(id).await.unwrap();
        self.until(id, "cancelled").await;
    }

    /// The job of a step.
    pub(crate) async fn job(&self, step: &WorkflowStep) -> Job {
        let step = self.client().step(&step.id).await.unwrap();
        self.client().job(&JobId::parse(&step.runner_job_id).unwrap()).await.unwrap()
    }

    /// A part of what is known of the install.
    pub(crate) async fn part(&self, part: &str) -> Value {
        let newest = self.client().install_state_versions(self.install(), 1).await.unwrap()[0].version;
        let state = self.client().install_state(self.install(), Some(newest)).await.unwrap().state;
        state[part].clone()
    }

    fn database(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.system.root().join("data/db/ferry.db")).unwrap();
        db.busy_timeout(Duration::from_secs(10)).unwrap();
        db
    }

    /// The plan that was made last, as the database has it.
    fn newest_plan(&self) -> Value {
        let newest = "SELECT plan FROM plans ORDER BY created_at DESC";
        let text: String = self.database().query_row(newest, [], |row| row.get(0)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The sealed file of the newest plan becomes another one.
    pub(crate) fn swap_plan_file(&self) {
        let plan = self.newest_plan();
        let sealed = self.system.root().join("data/blobs/sealed").join(self.system.org.id.as_str());
        let piece = sealed.join(plan["file"]["upload_id"].as_str().unwrap()).join("000000");
        let mut bytes = fs_err::read(&piece).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs_err::write(&piece, &bytes).unwrap();
    }

    /// The control plane says of another plan that it is the newest one.
    pub(crate) fn swap_plan_digest(&self) {
        let mut plan = self.newest_plan();
        plan["model_digest"] = json!(format!("sha256:{}", "0".repeat(64)));
        let job = plan["job_id"].as_str().unwrap().to_owned();
        self.database().execute("UPDATE plans SET plan = ?1 WHERE job_id = ?2", [plan.to_string(), job]).unwrap();
    }

    /// All that a table of the control plane holds, as text.
    pub(crate) fn table(&self, name: &str) -> String {
        use rusqlite::types::Value as Cell;
        let db = self.database();
        let mut statement = db.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut text = String::new();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                text += &match row.get::<_, Cell>(column).unwrap() {
                    Cell::Text(text) => text,
                    Cell::Blob(bytes) => {
                        let opened = zstd::decode_all(bytes.as_slice()).unwrap_or(bytes);
                        String::from_utf8_lossy(&opened).into_owned()
                    }
                    other => format!("{other:?}"),
                };
                text.push(' ');
            }
        }
        text
    }

    /// A schedule of this kind is due now.
    pub(crate) fn take_tick(&self, kind: &str) {
        let changed = self.database().execute("UPDATE schedules SET due_at = 0 WHERE kind = ?1", [kind]).unwrap();
        assert_eq!(changed, 1, "there is one schedule of {kind}");
    }

    /// Where a text stands that nobody may keep: files of the control plane and of runners, opened where they are compressed.
    pub(crate) fn traces_of(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.system.root().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs_err::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let Ok(kind) = path.symlink_metadata() else { continue };
                if kind.is_dir() {
                    dirs.push(path);
                } else if let Some(bytes) = kind.is_file().then(|| fs_err::read(&path).ok()).flatten() {
                    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
                    let opened = zstd::decode_all(bytes.as_slice()).unwrap_or_default();
                    if has(&bytes) || has(&opened) {
                        found.push(path);
                    }
                }
            }
        }
        found
    }

    // --- deaths ---

    /// Approves a plan and waits until its apply stands still at a point.
    pub(crate) async fn stop_at(&self, point: &'static str, plan: &WorkflowStep) -> i32 {
        let point: &Point = POINTS.iter().find(|known| known.name == point).expect("a point");
        self.trap.set(point, 1);
        self.approve(plan).await;
        self.trap.until_hit(point).await
    }

    /// Approves a plan and kills the executor of its apply at a point.
    pub(crate) async fn kill_at(&self, point: &'static str, plan: &WorkflowStep) {
        self.stop_at(point, plan).await;
        let executors = self.system.executors();
        assert_eq!(executors.len(), 1, "there is one executor");
        send(executors[0], Signal::KILL);
    }

    /// Waits until a process comes by a point, kills whom the test wants dead, and brings all back.
    pub(crate) async fn strike(&mut self, point: &Point, victim: Victim) {
        let stopped = self.trap.until_hit(point).await;
        let executors = self.system.executors();
        assert_eq!(executors.len(), 1, "there is one executor");
        if victim.is_runner() {
            self.runner.as_mut().unwrap().kill();
        }
        if victim.is_server() {
            self.system.kill_server();
        }
        if victim.is_executor() {
            send(executors[0], Signal::KILL);
        }
        if !victim.is(point.process) {
            self.trap.release(stopped);
        }
        if victim.is_server() {
            self.system.start_server().await;
        }
        if victim.is_runner() {
            self.start_runner(true);
        }
    }

    pub(crate) fn runner_is_alive(&mut self) -> bool {
        self.runner.as_mut().unwrap().process.is_alive()
    }

    // --- the cluster ---

    /// What an object says, or None where it is not there.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Option<Value> {
        let output = self.namespace.try_kubectl(&["get", kind, name, "--ignore-not-found", "--output", "json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).ok()
    }

    pub(crate) fn patch(&self, kind: &str, name: &str, patch: &Value) {
        self.namespace.kubectl(&["patch", kind, name, "--type", "merge", "--patch", &patch.to_string()]);
    }
}

/// The newest attempt at a step; a later one bears a number.
pub(crate) fn newest<'w>(workflow: &'w Workflow, name: &str) -> Option<&'w WorkflowStep> {
    let of = |step: &&WorkflowStep| step.name == name || step.name.starts_with(&format!("{name} (retry "));
    workflow.steps.iter().rev().find(of)
}

/// How the newest attempt at a step ended.
pub(crate) fn ended<'w>(workflow: &'w Workflow, name: &str) -> &'w str {
    &newest(workflow, name).unwrap_or_else(|| panic!("no step `{name}`")).status.status
}

/// One object of a plan.
pub(crate) fn planned<'p>(plan: &'p Value, address: &str) -> &'p Value {
    let all = plan["resources"].as_array().unwrap();
    all.iter().find(|one| one["address"] == address).unwrap_or_else(|| panic!("no {address} in {plan}"))
}

fn told(workflow: &Workflow) -> String {
    let steps = workflow.steps.iter();
    let lines = steps.map(|s| format!("{} {}: {}", s.name, s.status.status, s.status.status_human_description));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn config_map(name: &str, word: &str) -> String {
    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  word: {word}\n")
}

pub(crate) fn deployment(name: &str, label: &str, image: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: 1\n  selector:\n    matchLabels:\n      app: {label}\n  template:\n    metadata:\n      labels:\n        app: {label}\n    spec:\n      terminationGracePeriodSeconds: 0\n      containers:\n      - name: main\n        image: {image}\n"
    )
}
