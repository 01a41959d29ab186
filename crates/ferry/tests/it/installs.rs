//! What there is on an install beside its workflows: policies, roles, runbooks, schedules, deploys, the stack, and its end.

use serde_json::{Value, json};
use testkit::system::{SOON, System, shown, until};

use crate::options;
use crate::security::http;
use crate::workflows::{Rehearsal, step, until_status};

async fn ask(system: &System, rehearsal: &Rehearsal, method: &str, path: &str, body: Value) -> (u16, Value) {
    let request = http().request(method.parse().unwrap(), format!("{}{path}", system.control_url));
    let request = request.bearer_auth(system.token()).header("x-nuon-org-id", &rehearsal.org).json(&body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

/// A policy on every Terraform module, and what it says.
const POLICY: &str = r#"
[[policy]]
type = "terraform_module"
engine = "opa"
name = "few"
components = ["*"]
contents = """
package nuon
warn contains msg if {
    some change in input.plan.resource_changes
    msg := sprintf("%s is new", [change.address])
}
deny contains msg if {
    some change in input.plan.resource_changes
    startswith(change.address, "simulated.queue")
    msg := "no queues here"
}
"""
"#;

#[tokio::test]
async fn policies_judge_every_plan() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    rehearsal.sync(&system, &[("policies.toml", POLICY)]).await;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    rehearsal.client.approve_all(&id).await.unwrap();
    let failed = rehearsal.until(&id, "error").await;
    let denied = step(&failed, "sync and plan queue");
    assert_eq!(denied.status.status, "error");
    assert!(denied.status.status_human_description.contains("policy `few` denies it: no queues here"), "{denied:?}");
    assert!(failed.status.status_human_description.contains("no queues here"), "the list says why too");
    let counts = denied.policies.as_ref().unwrap();
    assert!((counts.asked, counts.denied) == (1, 1) && counts.warned > 0, "{counts:?}");
    let reports = rehearsal.client.policy_reports("one", 50).await.unwrap();
    assert_eq!(reports.iter().map(|report| report.deny_count).sum::<u64>(), 1, "{reports:?}");
    let output = system.ferry(&["--org", &rehearsal.org, "installs", "policies", "one"]).await;
    assert!(shown(&output).contains("no queues here"), "{}", shown(&output));
    // Nobody can let it pass: an approval is for a plan that waits.
    let approval = &denied.approval.as_ref().unwrap().id;
    let path = format!("/v1/workflows/{id}/steps/{}/approvals/{approval}/response", denied.id);
    let (status, told) = ask(&system, &rehearsal, "POST", &path, json!({ "response_type": "approve" })).await;
    assert_eq!(status, 409, "{told}");

    // A policy that lets pass what it warns of no more, and a component that needs no person then.
    let lets = POLICY.replace("simulated.queue", "simulated.nothing").replace("warn contains", "other contains");
    let queue = "name = \"queue\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nauto_approve_on_policies_passing = true\n[local]\ndirectory = \"src\"\n";
    rehearsal.sync(&system, &[("policies.toml", &lets), ("components/queue.toml", queue)]).await;
    let id = rehearsal.start("one", json!({ "type": "manual_deploy", "component": "queue" })).await;
    let done = rehearsal.until(&id, "success").await;
    let answer = step(&done, "sync and plan queue").approval.clone().unwrap().response.unwrap();
    assert_eq!((answer.r#type.as_str(), answer.created_by_id.as_str()), ("auto-approve", "policies"));

    // One that can't be evaluated denies.
    let broken = POLICY.replace("no queues here\"", "no queues here\" + 1");
    rehearsal.sync(&system, &[("policies.toml", &broken), ("src/main.tf", "# moved\n")]).await;
    let id = rehearsal.start("one", json!({ "type": "manual_deploy", "component": "queue" })).await;
    let failed = rehearsal.until(&id, "error").await;
    assert!(failed.status.status_human_description.contains("could not be evaluated"), "{failed:?}");
}

const ROLES: &str = r#"
[provision_role]
name = "{{ .nuon.install.id }}-provision"
description = "d"
display_name = "d"
[[provision_role.policies]]
managed_policy_name = "AdministratorAccess"
[maintenance_role]
name = "{{ .nuon.install.id }}-maintenance"
description = "d"
display_name = "d"
[[maintenance_role.policies]]
managed_policy_name = "AdministratorAccess"
[deprovision_role]
name = "{{ .nuon.install.id }}-deprovision"
description = "d"
display_name = "d"
[[deprovision_role.policies]]
managed_policy_name = "AdministratorAccess"
"#;

const GLASS: &str = "[[role]]\nname = \"{{ .nuon.install.id }}-glass\"\ndescription = \"d\"\ndisplay_name = \"d\"\n[[role.policies]]\nmanaged_policy_name = \"AdministratorAccess\"\n";

#[tokio::test]
async fn roles_fail_closed() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    let action = "name = \"fix\"\nrole = \"{{.nuon.install.id}}-glass\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n";
    let files = [("permissions.toml", ROLES), ("break_glass.toml", GLASS), ("actions/fix.toml", action)];
    rehearsal.sync(&system, &files).await;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    rehearsal.client.approve_all(&id).await.unwrap();
    let done = rehearsal.until(&id, "success").await;
    let install = rehearsal.client.install("one").await.unwrap().id;
    let role = |name: &str| step(&done, name).role.clone();
    assert_eq!(role("provision sandbox plan"), format!("{install}-provision"));
    assert_eq!(role("apply api"), format!("{install}-maintenance"));

    // One that the customer has not switched on is never replaced by another.
    let run = json!({ "type": "action_workflow_run", "action": "fix" });
    let id = rehearsal.start("one", run.clone()).await;
    let failed = rehearsal.until(&id, "error").await;
    assert!(failed.status.status_human_description.contains("is switched off"), "{failed:?}");
    let other = json!({ "type": "action_workflow_run", "action": "fix", "role": "other" });
    let id = rehearsal.start("one", other).await;
    let failed = rehearsal.until(&id, "error").await;
    assert!(failed.status.status_human_description.contains("is not a role of the app"), "{failed:?}");

    // The customer switches it on: the stack tells.
    let (_, stack) = ask(&system, &rehearsal, "GET", "/v1/installs/one/stack", json!({})).await;
    let home = stack["versions"][0]["phone_home_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/installs/{install}/phone-home/{home}");
    let told = json!({ "request_type": "Update", "break_glass_role_arns": { (format!("{install}-glass")): "arn" } });
    let anyone = |path: String, body: Value| {
        let url = format!("{}{path}", system.control_url);
        async move { http().post(url).json(&body).send().await.unwrap().status().as_u16() }
    };
    assert_eq!(anyone(format!("/v1/installs/{install}/phone-home/{home}x"), told.clone()).await, 404);
    assert_eq!(anyone(format!("/v1/installs/one/phone-home/{home}"), told.clone()).await, 404);
    assert_eq!(anyone(path.clone(), json!({ "request_type": "Delete" })).await, 200);
    assert_eq!(anyone(path, told).await, 201);
    let id = rehearsal.start("one", run).await;
    let done = rehearsal.until(&id, "success").await;
    assert_eq!(step(&done, "fix manual action workflow run").role, format!("{install}-glass"));
}

#[tokio::test]
async fn a_local_install_has_no_roles() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let dir = system.root().join("real");
    let output = system.ferry(&["apps", "init", dir.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", shown(&output));
    fs_err::write(dir.join("break_glass.toml"), GLASS).unwrap();
    let action = "name = \"fix\"\nrole = \"{{.nuon.install.id}}-glass\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n";
    fs_err::write(dir.join("actions/fix.toml"), action).unwrap();
    let app = system.install.app_id.as_str();
    let output = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", app, "--no-wait"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let output = system.ferry(&["actions", "run", "--install", &system.install.name, "fix"]).await;
    assert!(!output.status.success() && shown(&output).contains("a local install has no roles"), "{}", shown(&output));
}

#[tokio::test]
async fn deploys_and_sandbox_runs_are_views_of_steps() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    rehearsal.until(&id, "approval-awaiting").await;
    let get = async |path: &str| ask(&system, &rehearsal, "GET", path, json!({})).await;
    let (_, runs) = get("/v1/installs/one/sandbox-runs").await;
    assert_eq!(
        (runs[0]["run_type"].as_str(), runs[0]["status"].as_str()),
        (Some("provision"), Some("pending-approval"))
    );
    rehearsal.client.approve_all(&id).await.unwrap();
    let done = rehearsal.until(&id, "success").await;
    let (_, run) = get(&format!("/v1/installs/one/sandbox-runs/{}", runs[0]["id"].as_str().unwrap())).await;
    assert_eq!(run["status"], "active", "{run}");
    let (_, deploys) = get("/v1/installs/one/deploys?limit=100").await;
    let of = |name: &str| {
        let found = deploys.as_array().unwrap().iter().find(|deploy| deploy["component_name"] == name);
        found.unwrap_or_else(|| panic!("no deploy of {name}")).clone()
    };
    assert_eq!(of("img")["install_deploy_type"], "sync-image");
    assert_eq!((&of("api")["install_deploy_type"], &of("api")["status"]), (&json!("apply"), &json!("active")));
    assert_eq!(step(&done, "apply api").step_target_id, of("api")["id"].as_str().unwrap());
    let (status, deploy) = get(&format!("/v1/installs/one/deploys/{}", of("api")["id"].as_str().unwrap())).await;
    assert_eq!((status, &deploy["outputs"]["url"]), (200, &json!("simulated-api-url")));
    let (status, _) = get(&format!("/v1/installs/one/deploys/{}", runs[0]["id"].as_str().unwrap())).await;
    assert_eq!(status, 404, "a sandbox run is no deploy");
    let (_, components) = get("/v1/installs/one/components?limit=100").await;
    assert_eq!(components.as_array().unwrap().len(), 5);
    assert!(components.as_array().unwrap().iter().all(|component| component["status"] == "active"), "{components}");
    let (_, outputs) = get("/v1/installs/one/components/api/outputs").await;
    assert_eq!(outputs["url"], "simulated-api-url");
    let output = system.ferry(&["--org", &rehearsal.org, "installs", "components", "one"]).await;
    assert!(output.status.success() && shown(&output).contains("queue"), "{}", shown(&output));
    let (status, _) = get("/v1/runner-jobs/jobhonothing00000000000000/plan").await;
    assert_eq!(status, 404);
    // A build of a recipe that has not changed is deployed as the version has it that the install is at.
    let (_, builds) = get("/v1/builds?limit=100").await;
    let build = builds.as_array().unwrap().iter().find(|build| build["component_name"] == "db").unwrap().clone();
    let more = [(
        "actions/check.toml",
        "name = \"check\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"false\"\n",
    )];
    rehearsal.sync(&system, &more).await;
    let deploy = async |build: &Value| {
        let body = json!({ "build_id": build["id"] });
        let (status, deploy) = ask(&system, &rehearsal, "POST", "/v1/installs/one/deploys", body).await;
        assert_eq!((status, deploy["component_name"].as_str()), (201, Some("db")), "{deploy}");
        deploy["component_config_version"].clone()
    };
    assert_eq!(deploy(&build).await, 2);
    // One of another recipe is an earlier version's.
    let db =
        "name = \"db\"\ntype = \"terraform_module\"\nterraform_version = \"1.12.0\"\n[local]\ndirectory = \"src\"\n";
    rehearsal.sync(&system, &[more[0], ("components/db.toml", db)]).await;
    assert_eq!(deploy(&build).await, 1);
}

#[tokio::test]
async fn a_plan_is_made_anew_when_anything_that_it_reads_has_changed() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    let web = "name = \"web\"\ntype = \"kubernetes_manifest\"\nnamespace = \"web\"\nmanifest = \"env: {{ .nuon.labels.env }}\"\n";
    let queue = "name = \"queue\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n[vars]\nsubnet = \"{{ .nuon.install_stack.outputs.subnet }}\"\n";
    rehearsal.sync(&system, &[("components/web.toml", web), ("components/queue.toml", queue)]).await;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    rehearsal.client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    let label = async |value: &str| {
        let words = ["--org", &rehearsal.org, "installs", "label", "one", &format!("env={value}")];
        let output = system.ferry(&words).await;
        assert!(output.status.success(), "{}", shown(&output));
        output
    };
    let told = shown(&label("dev").await);
    assert!(told.contains("active"), "it says how the install stands: {told}");
    let deploy = json!({ "type": "manual_deploy", "component": "web" });
    let id = rehearsal.start("one", deploy).await;
    let waiting = rehearsal.until(&id, "approval-awaiting").await;
    let plan = step(&waiting, "sync and plan web").clone();
    label("prod").await;
    let path = format!("/v1/workflows/{id}/steps/{}/approvals/{}/response", plan.id, plan.approval.unwrap().id);
    let (status, told) = ask(&system, &rehearsal, "POST", &path, json!({ "response_type": "approve" })).await;
    assert_eq!(status, 201, "{told}");
    let again = rehearsal.until(&id, "approval-awaiting").await;
    assert_eq!(step(&again, "sync and plan web").status.status, "discarded");
    assert_eq!(step(&again, "sync and plan web (retry 1)").status.status, "approval-awaiting");
    rehearsal.client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    // What its stack tells is something that it reads, too; the stack's id is not for those who may only look.
    let install = rehearsal.client.install("one").await.unwrap().id;
    let (_, stack) = ask(&system, &rehearsal, "GET", "/v1/installs/one/stack", json!({})).await;
    let home = stack["versions"][0]["phone_home_id"].as_str().unwrap().to_owned();
    let reader = json!({ "name": "reader", "role": "read-only" });
    let (_, reader) = ask(&system, &rehearsal, "POST", "/v1/tokens", reader).await;
    for path in ["/v1/installs/one/stack", "/v1/installs/one/state?version=1"] {
        let url = format!("{}{path}", system.control_url);
        let request = http().get(url).bearer_auth(reader["token"].as_str().unwrap());
        let told = request.header("x-nuon-org-id", &rehearsal.org).send().await.unwrap().text().await.unwrap();
        assert!(told.contains("generation") || told.contains("versions"), "{told}");
        assert!(!told.contains(&home), "{told}");
    }
    let wrong = json!({ "subnet": "half", "install_inputs": { "nope": "1" } });
    let path = format!("/v1/installs/{install}/phone-home/{home}");
    assert_eq!(ask(&system, &rehearsal, "POST", &path, wrong).await.0, 409);
    let state = rehearsal.client.install_state("one", None).await.unwrap().state;
    assert_ne!(state["install_stack"]["outputs"]["subnet"], "half", "all or nothing");
    assert_eq!(ask(&system, &rehearsal, "POST", &path, json!({ "subnet": "a" })).await.0, 201);
    let done = rehearsal.done("one", json!({ "type": "manual_deploy", "component": "queue" })).await;
    assert_eq!(step(&done, "apply queue").status.status, "success", "not `no changes`");
}

#[tokio::test]
async fn only_what_may_be_started_by_hand_is() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    let hidden =
        "name = \"hidden\"\n[[triggers]]\ntype = \"post-provision\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n";
    // Nothing is left of the manifest, so there is nothing that a policy could let pass.
    let web = "name = \"web\"\ntype = \"kubernetes_manifest\"\nnamespace = \"web\"\nauto_approve_on_policies_passing = true\nmanifest = \"{{ if eq .nuon.inputs.inputs.host \\\"never\\\" }}a: b{{ end }}\"\n";
    let policy = "[[policy]]\ntype = \"kubernetes_manifest\"\nengine = \"opa\"\nname = \"never\"\ncomponents = [\"*\"]\ncontents = \"\"\"\npackage nuon\ndeny contains \"never\" if { true }\n\"\"\"\n";
    let files = [("actions/hidden.toml", hidden), ("components/web.toml", web), ("policies.toml", policy)];
    rehearsal.sync(&system, &files).await;
    rehearsal.install("one").await;
    let id = rehearsal.newest("one").await;
    rehearsal.client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    let body = json!({ "type": "action_workflow_run", "action": "hidden" });
    let (status, told) = ask(&system, &rehearsal, "POST", "/v1/installs/one/workflows", body).await;
    assert_eq!((status, told["error"].as_str().unwrap().contains("manual")), (409, true), "{told}");
    rehearsal.sync(&system, &[("components/web.toml", &web.replace("never", "ever"))]).await;
    let id = rehearsal.start("one", json!({ "type": "manual_deploy", "component": "web" })).await;
    rehearsal.until(&id, "approval-awaiting").await;
    // A workflow that is open keeps an install; once it is forgotten by force, nothing of it is left to stumble over.
    let install = rehearsal.client.install("one").await.unwrap();
    let forget = async |force: bool| {
        let body = json!({ "force": force });
        ask(&system, &rehearsal, "POST", "/v1/installs/one/forget", body).await.0
    };
    assert_eq!(forget(false).await, 409);
    assert_eq!(forget(true).await, 200);
    assert!(rehearsal.client.workflows(None, 10).await.unwrap().is_empty());
    let path = format!("/v1/runners/{}/join-commands", install.runner_id);
    let (status, told) = ask(&system, &rehearsal, "POST", &path, json!({})).await;
    assert_eq!((status, told["error"].as_str().unwrap().contains("was deleted")), (409, true), "{told}");
}

#[tokio::test]
async fn an_install_is_forgotten_when_nothing_is_left() {
    let system = System::start(options()).await;
    let rehearsal = Rehearsal::new(&system, &[("step_ms", 0)]).await;
    rehearsal.install("one").await;
    let forget = async |more: &[&str]| {
        let words = ["--org", &rehearsal.org, "installs", "forget", "one", "--yes"];
        system.ferry(&[&words[..], more].concat()).await
    };
    let id = rehearsal.newest("one").await;
    let output = forget(&[]).await;
    assert!(!output.status.success() && shown(&output).contains("is not over"), "{}", shown(&output));
    rehearsal.client.approve_all(&id).await.unwrap();
    rehearsal.until(&id, "success").await;
    let output = forget(&[]).await;
    assert!(!output.status.success() && shown(&output).contains("still deployed"), "{}", shown(&output));
    rehearsal.done("one", json!({ "type": "deprovision" })).await;
    let output = forget(&[]).await;
    assert!(output.status.success(), "{}", shown(&output));
    assert!(rehearsal.client.install("one").await.is_err());
    assert!(rehearsal.client.workflow(&id).await.is_err());
    // Its name is free again.
    rehearsal.install("one").await;
    let output = forget(&["--force"]).await;
    assert!(output.status.success(), "{}", shown(&output));
}

#[tokio::test]
async fn a_runbook_runs_scripts_and_actions() {
    let system = System::start(options()).await;
    let witness = system.witness("book");
    let dir = system.root().join("real");
    let output = system.ferry(&["apps", "init", dir.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let at = witness.display();
    let action = format!(
        "name = \"task\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 3 * * *\"\n[[steps]]\nname = \"s\"\ninline_contents = '''\necho action $WHERE $WHO >> {at}\n'''\n"
    );
    fs_err::write(dir.join("actions/task.toml"), action).unwrap();
    let book = format!(
        "name = \"book\"\ndescription = \"d\"\n[[input]]\nname = \"where\"\ndisplay_name = \"d\"\ndescription = \"which place\"\nrequired = true\n[[input]]\nname = \"count\"\ndisplay_name = \"d\"\ndescription = \"d\"\ntype = \"number\"\ndefault = \"2\"\n[[steps]]\nname = \"first\"\ntype = \"action\"\ninline_contents = '''\necho script {{{{ .runbook_inputs.where }}}} {{{{ .runbook_inputs.count }}}} $WHO >> {at}\n'''\n[[steps]]\nname = \"second\"\ntype = \"action\"\naction_name = \"task\"\n[steps.env_vars]\nWHERE = \"{{{{ .runbook_inputs.where }}}}\"\n"
    );
    fs_err::create_dir_all(dir.join("runbooks")).unwrap();
    fs_err::write(dir.join("runbooks/book.toml"), book).unwrap();
    let app = system.install.app_id.as_str();
    let output = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", app, "--no-wait"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let install = system.install.name.as_str();
    let run = async |more: &[&str]| system.ferry(&[&["runbooks", "run", "book", "-i", install], more].concat()).await;
    let output = run(&[]).await;
    assert!(shown(&output).contains("input `where` is required: which place"), "{}", shown(&output));
    let output = run(&["--input", "where=x", "--input", "count=many", "--input", "other=1"]).await;
    let told = shown(&output);
    assert!(told.contains("is not a number") && told.contains("asks for no input `other`"), "{told}");
    // It waits for the runner, says so, and goes on as soon as one has joined.
    let output = run(&["--input", "where=north", "--env", "WHO=ann", "--detach", "--json"]).await;
    let started: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = started["workflow_id"].as_str().unwrap();
    until("it waits for the runner", SOON, async || {
        let workflow = system.client.workflow(id).await.map_err(|e| e.to_string())?;
        let waits = step(&workflow, "await runner healthy").status.status_human_description.clone();
        if waits.contains("not connected") { Ok(()) } else { Err(waits) }
    })
    .await;
    let _runner = system.start_runner("a").await;
    until_status(&system.client, id, "success").await;
    assert_eq!(system.lines("book"), ["script north 2 ann", "action north ann"]);
    let runs = system.client.workflows(Some(install), 5).await.unwrap();
    assert_eq!(runs[0].r#type, "runbook_run");
    let output = system.ferry(&["runbooks", "get", "book", "-i", install]).await;
    assert!(shown(&output).contains("which place"), "{}", shown(&output));
    let output = system.ferry(&["runbooks", "get", "bok", "-i", install]).await;
    assert!(shown(&output).contains("did you mean `book`?"), "{}", shown(&output));
    // What is done by the clock is shown.
    until("the schedule is there", SOON, async || {
        let output = system.ferry(&["installs", "schedules", install]).await;
        let told = shown(&output);
        if told.contains("action task") && told.contains("0 3 * * *") { Ok(()) } else { Err(told) }
    })
    .await;
}

#[tokio::test]
async fn an_action_that_is_run_by_hand_is_part_of_the_history() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let dir = system.root().join("real");
    let output = system.ferry(&["apps", "init", dir.to_str().unwrap()]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let action = "name = \"task\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = '''\necho hello $WHO $HUSH\n'''\n";
    fs_err::write(dir.join("actions/task.toml"), action).unwrap();
    let app = system.install.app_id.as_str();
    let output = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", app, "--no-wait"]).await;
    assert!(output.status.success(), "{}", shown(&output));
    let install = system.install.name.as_str();
    let words = ["actions", "run", "-i", install, "task", "--env", "WHO=ann", "--secret-env", "HUSH=quietplease"];
    let output = system.ferry(&words).await;
    let told = shown(&output);
    assert!(output.status.success() && told.contains("hello ann ***") && !told.contains("quietplease"), "{told}");
    let history = system.client.workflows(Some(install), 5).await.unwrap();
    assert_eq!(history.len(), 1);
    let done = until_status(&system.client, &history[0].id, "success").await;
    let ran = step(&done, "task manual action workflow run");
    let ran = system.client.step(&ran.id).await.unwrap();
    let run = system.client.action_run(install, &done.id).await.unwrap();
    assert_eq!((run.workflow_id.as_str(), run.id.as_str()), (done.id.as_str(), ran.step_target_id.as_str()));
}
