//! Workflows, from the files of an app to an install that is torn down: simulated ones with every kind of component, and real
//! ones with actions, while servers die.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use api::client::Client;
use api::control::{
    CreateApp, CreateInstall, CreateOrg, CreateStepApprovalResponse, CreateWorkflow, Workflow, WorkflowStep,
};
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::{SOON, System, shown, until};

use crate::{options, seconds};

const FILES: &[(&str, &str)] = &[
    ("metadata.toml", "version = \"v2\"\n"),
    ("runner.toml", "runner_type = \"local\"\n"),
    (
        "inputs.toml",
        "[[group]]\nname = \"main\"\ndescription = \"d\"\ndisplay_name = \"d\"\n[[input]]\nname = \"host\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\ndefault = \"one\"\n[[input]]\nname = \"size\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\ndefault = \"1\"\n",
    ),
    (
        "sandbox.toml",
        "terraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n[vars]\nsize = \"{{ .nuon.inputs.inputs.size }}\"\n",
    ),
    ("src/main.tf", "\n"),
    (
        "components/img.toml",
        "name = \"img\"\ntype = \"container_image\"\n[public]\nimage_url = \"example.com/x\"\ntag = \"1\"\n",
    ),
    (
        "components/db.toml",
        "name = \"db\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n",
    ),
    (
        "components/queue.toml",
        "name = \"queue\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n",
    ),
    (
        "components/api.toml",
        "name = \"api\"\ntype = \"helm_chart\"\nchart_name = \"api-chart\"\ndependencies = [\"db\", \"img\"]\n[local]\ndirectory = \"src\"\n[values]\nhost = \"{{ .nuon.inputs.inputs.host }}\"\n",
    ),
    (
        "components/web.toml",
        "name = \"web\"\ntype = \"kubernetes_manifest\"\nnamespace = \"web\"\nmanifest = \"url: {{ .nuon.components.api.outputs.url }}\"\n",
    ),
    (
        "actions/check.toml",
        "name = \"check\"\n[[triggers]]\ntype = \"manual\"\n[[triggers]]\ntype = \"post-deploy-component\"\ncomponent_name = \"api\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
    ),
];

fn write_app(dir: &Path, more: &[(&str, &str)]) {
    for (file, text) in FILES.iter().chain(more) {
        let path = dir.join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
}

/// A simulated org with an app.
pub(crate) struct Rehearsal {
    pub(crate) client: Client,
    pub(crate) org: String,
    app: String,
}

impl Rehearsal {
    pub(crate) async fn new(system: &System, simulation: &[(&str, u64)]) -> Self {
        let simulation = simulation.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let org = CreateOrg { name: "rehearsal".into(), use_sandbox_mode: true, simulation: Some(simulation) };
        let org = system.client.create_org(&org).await.unwrap().id.to_string();
        let client = system.client.with_org(Some(org.clone()));
        let app = CreateApp { name: "shop".into(), display_name: String::new(), description: String::new() };
        client.create_app(&app).await.unwrap();
        let rehearsal = Self { client, org, app: "shop".into() };
        rehearsal.sync(system, &[]).await;
        rehearsal
    }

    pub(crate) async fn sync(&self, system: &System, more: &[(&str, &str)]) {
        let dir = system.root().join("app");
        write_app(&dir, more);
        let words = ["--org", &self.org, "apps", "sync", dir.to_str().unwrap(), "--app", &self.app, "--no-wait"];
        let output = system.ferry(&words).await;
        assert!(output.status.success(), "{}", shown(&output));
    }

    pub(crate) async fn install(&self, name: &str) {
        self.client.create_install(&self.app, &CreateInstall::local(name)).await.unwrap();
    }

    pub(crate) async fn newest(&self, install: &str) -> String {
        self.client.workflows(Some(install), 1).await.unwrap().remove(0).id
    }

    pub(crate) async fn start(&self, install: &str, body: Value) -> String {
        let body: CreateWorkflow = serde_json::from_value(body).unwrap();
        self.client.start_workflow(install, &body).await.unwrap().workflow_id
    }

    pub(crate) async fn until(&self, id: &str, status: &str) -> Workflow {
        until_status(&self.client, id, status).await
    }

    /// Starts a workflow, lets all its plans pass, and waits until it has ended well.
    pub(crate) async fn done(&self, install: &str, mut body: Value) -> Workflow {
        body["approve_all"] = json!(true);
        let id = self.start(install, body).await;
        self.until(&id, "success").await
    }

    async fn generations(&self, install: &str, version: Option<u64>) -> BTreeMap<String, u64> {
        let newest = self.client.install_state_versions(install, 1).await.unwrap()[0].version;
        let state = self.client.install_state(install, Some(version.unwrap_or(newest))).await.unwrap().state;
        let parts = state.as_object().unwrap().iter();
        let deployed = parts.filter(|(part, _)| *part != "stack");
        deployed.map(|(part, value)| (part.clone(), value["generation"].as_u64().unwrap())).collect()
    }
}

pub(crate) async fn until_status(client: &Client, id: &str, status: &str) -> Workflow {
    until(&format!("workflow {id} is {status}"), seconds(60), async || {
        let workflow = client.workflow(id).await.map_err(|e| e.to_string())?;
        let now = workflow.status.status.clone();
        if now == status {
            return Ok(workflow);
        }
        let steps = workflow
            .steps
            .iter()
            .map(|s| format!("{} {} {}", s.name, s.status.status, s.status.status_human_description));
        Err(format!("{now} {}\n{}", workflow.status.status_human_description, steps.collect::<Vec<_>>().join("\n")))
    })
    .await
}

pub(crate) fn step<'w>(workflow: &'w Workflow, name: &str) -> &'w WorkflowStep {
    workflow.steps.iter().rev().find(|step| step.name == name).unwrap_or_else(|| panic!("no step `{name}`"))
}

fn with_status<'w>(workflow: &'w Workflow, status: &str) -> BTreeSet<&'w str> {
    workflow.steps.iter().filter(|step| step.status.status == status).map(|step| step.name.as_str()).collect()
}

async fn answer(client: &Client, step: &WorkflowStep, response: &str) -> Result<(), String> {
    let body = CreateStepApprovalResponse { response_type: response.into(), note: "a note".into() };
    let approval = &step.approval.as_ref().unwrap().id;
    client.answer_step(&step.workflow_id, &step.id, approval, &body).await.map(|_| ()).map_err(|e| e.to_string())
}

async fn a_whole_life(backend: Backend) {
    let system = System::start(options().on(backend)).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 20)]).await;
    let client = &rehearsal.client;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    let waiting = rehearsal.until(&id, "approval-awaiting").await;
    assert_eq!(waiting.r#type, "provision");
    let plan = step(&waiting, "provision sandbox plan");
    assert_eq!(
        step(&waiting, "provision sandbox apply plan").status.status_human_description,
        "waits for provision sandbox plan"
    );
    let contents = client.step_plan(&id, &plan.id, &plan.approval.as_ref().unwrap().id).await.unwrap();
    assert!(contents["resources"].as_array().is_some_and(|resources| !resources.is_empty()), "{contents}");
    answer(client, plan, "approve").await.unwrap();
    answer(client, plan, "approve").await.unwrap();
    // Components that need nothing are planned side by side, and wait for their own approvals.
    let waiting = rehearsal.until(&id, "approval-awaiting").await;
    assert_eq!(with_status(&waiting, "approval-awaiting"), BTreeSet::from(["sync and plan db", "sync and plan queue"]));
    let said = step(&waiting, "provision sandbox plan").approval.as_ref().unwrap().response.clone().unwrap();
    assert_eq!((said.r#type.as_str(), said.note.as_str()), ("approve", "a note"));
    client.approve_all(&id).await.unwrap();
    let done = rehearsal.until(&id, "success").await;
    assert!(step(&done, "apply db").finished_at <= step(&done, "sync and plan api").started_at);
    assert!(step(&done, "sync img").finished_at <= step(&done, "sync and plan api").started_at);
    assert!(step(&done, "post-deploy-component api: check").finished_at <= step(&done, "sync and plan web").started_at);
    let first = rehearsal.generations("one", None).await;
    assert_eq!(first.values().copied().collect::<Vec<_>>(), [1; 6], "{first:?}");

    // Nothing has changed: nothing is applied, and no hook runs.
    let again = rehearsal.done("one", json!({ "type": "deploy_components" })).await;
    assert!(with_status(&again, "auto-skipped").is_superset(&BTreeSet::from([
        "apply db",
        "apply api",
        "apply web",
        "post-deploy-component api: check"
    ])));
    // An input moves what reads it, and what depends on that.
    let body = json!({ "inputs": { "host": "two" } });
    let inputs = client.update_install_inputs("one", &serde_json::from_value(body).unwrap()).await.unwrap();
    client.approve_all(&inputs.workflow_id).await.unwrap();
    let updated = rehearsal.until(&inputs.workflow_id, "success").await;
    let moved: BTreeSet<&str> =
        updated.steps.iter().map(|step| step.name.as_str()).filter(|name| name.starts_with("apply")).collect();
    assert_eq!(moved, BTreeSet::from(["apply api", "apply web"]));
    let generations = rehearsal.generations("one", None).await;
    assert_eq!((generations["components/api"], generations["components/web"], generations["components/db"]), (2, 2, 1));

    // A new version changes one component; going back changes it back.
    let other = "name = \"queue\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n[vars]\na = \"b\"\n";
    rehearsal.sync(&system, &[("components/queue.toml", other)]).await;
    rehearsal.done("one", json!({ "type": "deploy_components" })).await;
    assert_eq!(rehearsal.generations("one", None).await["components/queue"], 2);
    let back = system.ferry(&["--org", &rehearsal.org, "installs", "rollback", "one", "--approve-all"]).await;
    assert!(back.status.success(), "{}", shown(&back));
    let back = client.workflow(&rehearsal.newest("one").await).await.unwrap();
    assert_eq!((back.config_version, back.status.status.as_str()), (1, "success"));
    let generations = rehearsal.generations("one", None).await;
    assert_eq!((generations["components/queue"], generations["components/db"]), (3, 1), "only what differs moves");

    // An install that never had version 1 goes back to it, and works with it: also what the rollback did not touch.
    rehearsal.install("two").await;
    let id = rehearsal.newest("two").await;
    client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    rehearsal.done("two", json!({ "type": "deploy_components", "config_version": 1 })).await;
    let moved = rehearsal.done("two", json!({ "type": "manual_deploy", "component": "db" })).await;
    assert_eq!(moved.config_version, 1);
    rehearsal.done("two", json!({ "type": "reprovision_sandbox", "skip_components": true })).await;

    // A look changes nothing.
    let look = rehearsal.done("one", json!({ "type": "drift_run", "component": "db" })).await;
    assert_eq!(step(&look, "sync and plan db").status.status, "no-drift");
    assert_eq!(rehearsal.generations("one", None).await, generations);

    let over = rehearsal.done("one", json!({ "type": "deprovision" })).await;
    assert!(step(&over, "teardown api").finished_at <= step(&over, "plan teardown db").started_at);
    let newest = client.install_state_versions("one", 1).await.unwrap()[0].version;
    let state = client.install_state("one", Some(newest)).await.unwrap().state;
    let active: Vec<&String> =
        state.as_object().unwrap().iter().filter(|(_, v)| v["status"] == "active").map(|(p, _)| p).collect();
    assert_eq!(active, ["components/img", "stack"], "an image is not torn down, and the stack is the customer's");
}

#[tokio::test]
async fn a_whole_life_on_sqlite() {
    a_whole_life(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_whole_life_on_postgresql() {
    a_whole_life(Backend::Postgres).await;
}

#[tokio::test]
async fn people_deny_retry_skip_and_cancel() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 20)]).await;
    let client = &rehearsal.client;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    // Denied with all that depends on it: the rest is deployed.
    let waiting = rehearsal.until(&id, "approval-awaiting").await;
    answer(client, step(&waiting, "provision sandbox plan"), "approve").await.unwrap();
    let waiting = until("both plans wait", SOON, async || {
        let workflow = client.workflow(&id).await.map_err(|e| e.to_string())?;
        if with_status(&workflow, "approval-awaiting").len() == 2 { Ok(workflow) } else { Err("not yet".into()) }
    })
    .await;
    let db = step(&waiting, "sync and plan db");
    answer(client, db, "deny-skip-current-and-dependents").await.unwrap();
    answer(client, step(&waiting, "sync and plan queue"), "approve").await.unwrap();
    let done = rehearsal.until(&id, "warning").await;
    assert!(done.status.status_human_description.contains("finished without sync and plan db"), "{:?}", done.status);
    assert_eq!(step(&done, "sync and plan db").status.status, "approval-denied");
    let skipped = with_status(&done, "auto-skipped");
    assert!(skipped.is_superset(&BTreeSet::from(["apply db", "sync and plan api", "apply web"])), "{skipped:?}");
    let refused = answer(client, db, "approve").await.unwrap_err();
    assert!(refused.contains("does not wait for an approval"), "{refused}");

    // A plan that waits is made anew, and the approval of the old one is worth nothing.
    let id = rehearsal.start("one", json!({ "type": "manual_deploy", "component": "db" })).await;
    let waiting = rehearsal.until(&id, "approval-awaiting").await;
    let old = step(&waiting, "sync and plan db").clone();
    answer(client, &old, "retry").await.unwrap();
    let waiting = until("the new plan waits", SOON, async || {
        let workflow = client.workflow(&id).await.map_err(|e| e.to_string())?;
        let new = workflow.steps.iter().find(|step| step.name == "sync and plan db (retry 1)").cloned();
        new.filter(|step| step.status.status == "approval-awaiting").ok_or_else(|| "not yet".to_owned())
    })
    .await;
    let refused = answer(client, &old, "approve").await.unwrap_err();
    assert!(refused.contains("newer attempt"), "{refused}");
    // Meanwhile another workflow changes what the plan was made of: it is planned anew, and asks anew.
    rehearsal.done("one", json!({ "type": "manual_deploy", "component": "db" })).await;
    answer(client, &waiting, "approve").await.unwrap();
    let again = rehearsal.until(&id, "success").await;
    assert_eq!(step(&again, "sync and plan db (retry 2)").status.status, "auto-skipped", "it was deployed meanwhile");
    assert_eq!(rehearsal.generations("one", None).await["components/db"], 1, "applied once");

    // Cancelled while it waits.
    let id = rehearsal.start("one", json!({ "type": "teardown_component", "component": "db" })).await;
    rehearsal.until(&id, "approval-awaiting").await;
    let output = system.ferry(&["--org", &rehearsal.org, "workflows", "cancel", &id]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let over = rehearsal.until(&id, "cancelled").await;
    assert_eq!(step(&over, "teardown db").status.status, "not-attempted");
    assert_eq!(rehearsal.generations("one", None).await["components/db"], 1);
    let code = system.ferry(&["--org", &rehearsal.org, "workflows", "watch", &id]).await.status.code();
    assert_eq!(code, Some(7), "a script can tell");
}

#[tokio::test]
async fn failures_stop_a_workflow_until_someone_decides() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 10), ("fail_percent", 60), ("seed", 3)]).await;
    let client = &rehearsal.client;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    client.approve_all(&id).await.unwrap();
    // Every failure is tried again until all is there: chance is drawn anew for each attempt.
    let (mut retries, mut skips) = (0, 0);
    loop {
        let over = until("it is over", seconds(30), async || {
            let workflow = client.workflow(&id).await.map_err(|e| e.to_string())?;
            if workflow.finished { Ok(workflow) } else { Err(workflow.status.status) }
        })
        .await;
        // What was skipped is no success.
        if over.status.status == if skips > 0 { "warning" } else { "success" } {
            break;
        }
        assert_eq!(over.status.status, "error");
        assert!(over.status.status_human_description.contains("simulated to fail"));
        let failed: Vec<&WorkflowStep> = over.steps.iter().filter(|step| step.status.status == "error").collect();
        for step in failed {
            if step.name.starts_with("post-deploy-component") {
                client.skip_step(&id, &step.id).await.unwrap();
                skips += 1;
            } else {
                client.retry_step(&id, &step.id).await.unwrap();
                retries += 1;
            }
        }
        assert!(retries < 200, "chance is not that bad");
    }
    assert!(retries > 3, "{retries} retries, {skips} skips");
    let generations = rehearsal.generations("one", None).await;
    assert!(generations.len() == 6 && generations.values().all(|n| *n >= 1), "failed applies count: {generations:?}");
    assert_eq!(client.install("one").await.unwrap().composite_component_status, "active");
}

#[tokio::test]
async fn a_server_that_dies_midway_goes_on() {
    let mut system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 150)]).await;
    for n in 0..5 {
        rehearsal.install(&format!("i{n}")).await;
        rehearsal.client.approve_all(&rehearsal.newest(&format!("i{n}")).await).await.unwrap();
    }
    for _ in 0..4 {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        system.kill_server();
        system.start_server().await;
    }
    let client = system.client.with_org(Some(rehearsal.org.clone()));
    let rehearsal = Rehearsal { client, ..rehearsal };
    for n in 0..5 {
        let name = format!("i{n}");
        rehearsal.until(&rehearsal.newest(&name).await, "success").await;
        let generations = rehearsal.generations(&name, None).await;
        assert_eq!(generations.values().copied().collect::<Vec<_>>(), [1; 6], "each was applied once: {generations:?}");
    }
}

#[tokio::test]
async fn one_of_two_replicas_dies_and_nothing_is_done_twice() {
    let mut system = System::start(options().on(Backend::Postgres)).await;
    system.add_replica().await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 100)]).await;
    let names: Vec<String> = (0..8).map(|n| format!("i{n}")).collect();
    for name in &names {
        rehearsal.install(name).await;
        rehearsal.client.approve_all(&rehearsal.newest(name).await).await.unwrap();
    }
    // A second workflow of the same install at the same time: locks keep them apart.
    for name in &names {
        rehearsal.start(name, json!({ "type": "deploy_components", "approve_all": true })).await;
    }
    for _ in 0..3 {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        system.kill_replica(1);
        system.start_replica(1).await;
    }
    for name in &names {
        for workflow in rehearsal.client.workflows(Some(name), 10).await.unwrap() {
            rehearsal.until(&workflow.id, "success").await;
        }
        let generations = rehearsal.generations(name, None).await;
        assert_eq!(generations.values().copied().collect::<Vec<_>>(), [1; 6], "{generations:?}");
    }
}

/// The starter app, whose action greets, in an org that is not simulated.
async fn real_app(system: &System, script: &str) {
    let dir = system.root().join("real");
    let app = system.install.app_id.as_str();
    if !dir.exists() {
        let output = system.ferry(&["apps", "init", dir.to_str().unwrap()]).await;
        assert!(output.status.success(), "{}", shown(&output));
    }
    let action = format!(
        "name = \"task\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = '''\n{script}'''\n"
    );
    fs_err::write(dir.join("actions/task.toml"), action).unwrap();
    let output = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", app, "--no-wait"]).await;
    assert!(output.status.success(), "{}", shown(&output));
}

#[tokio::test]
async fn real_actions_run_as_steps() {
    let mut system = System::start(options()).await;
    let witness = system.witness("runs");
    // Fails the first time.
    let script = format!(
        "echo run >> {0}\necho \"$FLOW_TYPE $INSTALL_WORKFLOW_ID\"\ntest $(wc -l < {0}) -gt 1\n",
        witness.display()
    );
    real_app(&system, &script).await;
    let (client, install) = (system.client.clone(), system.install.name.clone());
    let body = json!({ "type": "action_workflow_run", "action": "task" });
    let body: CreateWorkflow = serde_json::from_value(body).unwrap();
    let id = client.start_workflow(&install, &body).await.unwrap().workflow_id;
    // Without a runner it says for what it waits, and goes on as soon as one has joined.
    let waiting = until("it waits for the runner", SOON, async || {
        let workflow = client.workflow(&id).await.map_err(|e| e.to_string())?;
        let waits = step(&workflow, "task manual action workflow run").status.status_human_description.clone();
        if waits.contains("runner") { Ok(workflow) } else { Err(waits) }
    })
    .await;
    assert_eq!(waiting.status.status, "in-progress");
    let runner = system.start_runner("a").await;
    let failed = until_status(&client, &id, "error").await;
    let task = step(&failed, "task manual action workflow run").clone();
    assert_eq!(task.status.status, "error");
    let task = client.step(&task.id).await.unwrap();
    let log = system.ferry(&["steps", "logs", &task.id]).await;
    assert!(shown(&log).contains(&format!("action_workflow_run {id}")), "{}", shown(&log));
    client.retry_step(&id, &task.id).await.unwrap();
    let done = until_status(&client, &id, "success").await;
    assert_eq!(step(&done, "task manual action workflow run (retry 1)").group_retry_idx, 1);
    assert_eq!(system.lines("runs").len(), 2);

    // Cancelled while it runs: the script is interrupted, and the server may die meanwhile.
    real_app(&system, &format!("echo long >> {}\nsleep 60\n", witness.display())).await;
    let id = client.start_workflow(&install, &body).await.unwrap().workflow_id;
    until(
        "the script runs",
        seconds(20),
        async || {
            if system.lines("runs").len() == 3 { Ok(()) } else { Err("not yet".into()) }
        },
    )
    .await;
    client.cancel_workflow(&id).await.unwrap();
    system.kill_server();
    system.start_server().await;
    let over = until_status(&system.client, &id, "cancelled").await;
    assert_eq!(step(&over, "task manual action workflow run").status.status, "cancelled");
    drop(runner);
}

#[tokio::test]
async fn what_changes_meanwhile_is_not_lost() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 300)]).await;
    let client = &rehearsal.client;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    client
        .update_install("one", &serde_json::from_value(json!({ "approval_option": "approve-all" })).unwrap())
        .await
        .unwrap();
    let set = async |host: &str| {
        let body = json!({ "inputs": { "host": host } });
        client.update_install_inputs("one", &serde_json::from_value(body).unwrap()).await.unwrap().workflow_id
    };
    // An input changes again while its last change is being applied.
    let first = set("two").await;
    until("it is applied", SOON, async || {
        let workflow = client.workflow(&first).await.map_err(|e| e.to_string())?;
        let now = step(&workflow, "apply api").status.status.clone();
        if now == "in-progress" { Ok(()) } else { Err(now) }
    })
    .await;
    let second = set("three").await;
    rehearsal.until(&first, "success").await;
    let second = rehearsal.until(&second, "success").await;
    assert_eq!(step(&second, "apply api").status.status, "success");
    assert_eq!(rehearsal.generations("one", None).await["components/api"], 3);

    // A source changes, and nothing else.
    rehearsal.sync(&system, &[("src/main.tf", "# new\n")]).await;
    rehearsal.done("one", json!({ "type": "deploy_components" })).await;
    assert_eq!(rehearsal.generations("one", None).await["components/queue"], 2);

    // Who goes back stays there.
    rehearsal.done("one", json!({ "type": "deploy_components", "config_version": 1 })).await;
    let update = set("four").await;
    assert_eq!(rehearsal.until(&update, "success").await.config_version, 1);
    let newest = rehearsal.done("one", json!({ "type": "deploy_components" })).await;
    assert_eq!(newest.config_version, 2);
    assert_eq!(client.install("one").await.unwrap().kept_at_version, None, "who deploys everything stays no longer");
    let update = set("five").await;
    assert_eq!(rehearsal.until(&update, "success").await.config_version, 2);

    // What the app does not have any more is torn down all the same.
    fs_err::remove_file(system.root().join("app/components/queue.toml")).unwrap();
    let words = [
        "--org",
        &rehearsal.org,
        "apps",
        "sync",
        system.root().join("app").to_str().unwrap(),
        "--app",
        "shop",
        "--no-wait",
    ]
    .map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = system.ferry(&words).await;
    assert!(output.status.success(), "{}", shown(&output));
    let over = rehearsal.done("one", json!({ "type": "deprovision" })).await;
    assert_eq!(step(&over, "teardown queue").status.status, "success");
    assert_eq!(set("six").await, "", "nothing is there to be updated");
}
