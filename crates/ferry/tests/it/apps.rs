//! Apps from a directory of files to a running action, as a vendor goes about it; and piece by piece, as existing clients do.

use std::path::{Path, PathBuf};
use std::process::Output;

use api::control::{CreateActionWorkflowRun, SyncApp};
use model::JobState;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::{System, shown};

use crate::options;
use crate::security::http;

/// A directory with a first app in it, of this name.
async fn first_app(system: &System, name: &str) -> PathBuf {
    let dir = system.root().join(name);
    good(&system.ferry(&["apps", "init", dir.to_str().unwrap()]).await);
    dir
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", shown(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", shown(output)))
}

fn edit(dir: &Path, file: &str, from: &str, to: &str) {
    let path = dir.join(file);
    let text = fs_err::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs_err::write(path, text.replace(from, to)).unwrap();
}

async fn sync(system: &System, dir: &Path) -> Value {
    let app = system.install.app_id.as_str();
    let output = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", app, "--json", "--no-wait"]).await;
    good(&output);
    document(&output)
}

#[test]
fn a_first_app_is_synced_and_its_action_runs() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let system = System::start(options().on(backend)).await;
            let _runner = system.start_runner("a").await;
            let dir = first_app(&system, "hello").await;
            let first = sync(&system, &dir).await;
            assert_eq!((&first["config"]["version"], &first["unchanged"]), (&json!(1), &json!(false)));
            assert!(first["changes"].as_array().unwrap().iter().any(|c| c["part"] == "actions" && c["kind"] == "added"));
            let again = sync(&system, &dir).await;
            assert_eq!((&again["config"]["version"], &again["unchanged"]), (&json!(1), &json!(true)));

            let run = ["actions", "run", "greet", "--install", system.install.name.as_str()];
            assert!(good(&system.ferry(&run).await).contains("hello, world"));
            good(&system.ferry(&["installs", "inputs", &system.install.name, "--set", "who=Ada"]).await);
            assert!(good(&system.ferry(&run).await).contains("hello, Ada"));

            // What a run has put out is there for the templates of the next one.
            let action = "name = \"repeat\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"say\"\ncommand = \"echo again: $TEXT\"\n[steps.env_vars]\nTEXT = \"{{ .nuon.actions.workflows.greet.outputs.steps.greet.greeting }}\"\n";
            fs_err::write(dir.join("actions/repeat.toml"), action).unwrap();
            let second = sync(&system, &dir).await;
            assert_eq!(second["config"]["version"], json!(2));
            let repeat = ["actions", "run", "repeat", "--install", system.install.name.as_str()];
            assert!(good(&system.ferry(&repeat).await).contains("again: hello, Ada"));
        });
    }
}

#[tokio::test]
async fn mistakes_are_told_with_their_place_and_nothing_is_synced() {
    let system = System::start(options()).await;
    let dir = first_app(&system, "hello").await;
    edit(&dir, "actions/greet.toml", "inputs.who", "inputs.hwo");
    edit(&dir, "components/greeting.toml", "terraform_version", "teraform_version");
    let path = dir.to_str().unwrap();
    let output = system.ferry(&["apps", "validate", path, "--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let told = document(&output);
    assert_eq!(told["ok"], json!(false));
    let found: Vec<(&str, &str, i64)> = told["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| (d["code"].as_str().unwrap(), d["file"].as_str().unwrap(), d["line"].as_i64().unwrap()))
        .collect();
    assert!(found.contains(&("unknown_input", "actions/greet.toml", 21)), "{found:?}");
    assert!(found.iter().any(|(code, file, _)| (*code, *file) == ("missing_key", "components/greeting.toml")));
    let drawn = system.ferry(&["apps", "validate", path]).await;
    let text = String::from_utf8_lossy(&drawn.stderr).into_owned();
    for part in ["actions/greet.toml:21:", "did you mean `who`?", "^^^", "2 errors, 1 warning"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let refused = system.ferry(&["apps", "sync", path]).await;
    assert_eq!(refused.status.code(), Some(1), "{}", shown(&refused));
    assert_eq!(system.client.app("hello").await.unwrap_err().status(), Some(404), "nothing was made");

    // Who sends it all the same is refused by the same rules.
    let mut tree = config::Tree::new("hello");
    for (file, contents) in &config::starter("hello").files {
        tree.files.insert(file.clone(), contents.clone());
    }
    let mut config = config::load(&tree, config::Options::default()).config.unwrap();
    config.components[0].common.dependencies.push("nothing".into());
    let body = SyncApp {
        config: serde_json::to_value(&config).unwrap(),
        local_sources: Default::default(),
        cli_version: String::new(),
        plan_only: false,
    };
    let error = system.client.sync_app(system.install.app_id.as_str(), &body).await.unwrap_err();
    assert_eq!(error.code(), Some(api::ErrorCode::InvalidConfig), "{error}");
    assert!(error.to_string().contains("/components/0/dependencies/0"), "{error}");
}

#[tokio::test]
async fn what_vanishes_from_the_files_is_listed_and_can_be_retired() {
    let system = System::start(options()).await;
    let dir = first_app(&system, "hello").await;
    sync(&system, &dir).await;
    let app = system.install.app_id.as_str();
    let retire = ["apps", "retire", app, "greet", "--yes"];
    assert_eq!(system.ferry(&retire).await.status.code(), Some(5), "the active config still has it");
    fs_err::remove_file(dir.join("actions/greet.toml")).unwrap();
    let synced = sync(&system, &dir).await;
    let removed: Vec<&str> =
        synced["removed"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(removed, ["greet"]);
    good(&system.ferry(&retire).await);
    assert!(sync(&system, &dir).await["removed"].is_null());
    // What is left behind does not hold up the app's other names.
    let gone = ["actions", "run", "greet", "--install", system.install.name.as_str()];
    assert_eq!(system.ferry(&gone).await.status.code(), Some(4));
    let diff = good(&system.ferry(&["apps", "diff", app, "1", "2"]).await);
    assert!(diff.contains("- actions greet"), "{diff}");
    let renamed = system.ferry(&["apps", "rename", app, "shop"]).await;
    good(&renamed);
    assert_eq!(system.client.app("shop").await.unwrap().id.as_str(), app);
    assert_eq!(system.ferry(&["apps", "delete", "shop", "--yes"]).await.status.code(), Some(5), "it has an install");
}

#[tokio::test]
async fn sensitive_values_are_masked_everywhere() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let dir = first_app(&system, "hello").await;
    let input = "\n[[input]]\nname = \"password\"\ndisplay_name = \"Password\"\ndescription = \"d\"\ngroup = \"greeting\"\nsensitive = true\n";
    let inputs = fs_err::read_to_string(dir.join("inputs.toml")).unwrap();
    fs_err::write(dir.join("inputs.toml"), inputs + input).unwrap();
    edit(
        &dir,
        "actions/greet.toml",
        "{{ .nuon.inputs.inputs.who }}",
        "{{ .nuon.inputs.inputs.password }} {{ .nuon.app.variables.key }}",
    );
    sync(&system, &dir).await;
    let name = system.install.name.as_str();
    let app = system.install.app_id.as_str();
    good(&system.ferry(&["installs", "inputs", name, "--set", "password=hunter2-secret"]).await);
    good(&system.ferry(&["apps", "variables", "set", app, "key=variable-secret"]).await);
    let run = system.ferry(&["actions", "run", "greet", "--install", name]).await;
    assert!(good(&run).contains("hello, *** ***"), "{}", shown(&run));
    for words in [
        vec!["installs", "inputs", name, "--json"],
        vec!["apps", "render", "--install", name, "--action", "greet", "--json"],
        vec!["apps", "variables", "list", app, "--json"],
        vec!["events", "--json"],
        vec!["jobs", "list", "--json"],
    ] {
        let output = system.ferry(&words).await;
        let text = good(&output);
        assert!(!text.contains("-secret"), "{words:?} shows a secret: {text}");
    }
    let render = good(&system.ferry(&["apps", "render", "--install", name, "--action", "greet"]).await);
    assert!(render.contains("hello, *** ***"), "{render}");
    // Whatever a template makes of a secret, nobody is shown.
    edit(
        &dir,
        "actions/greet.toml",
        "{{ .nuon.inputs.inputs.password }}",
        "{{ .nuon.inputs.inputs.password | b64enc }}",
    );
    sync(&system, &dir).await;
    let render = good(&system.ferry(&["apps", "render", "--install", name, "--action", "greet"]).await);
    assert!(!render.contains("aHVudGVyMi1zZWNyZXQ"), "{render}");
    // Nor what an error would tell.
    edit(
        &dir,
        "actions/greet.toml",
        "{{ .nuon.inputs.inputs.password | b64enc }}",
        "{{ fail .nuon.inputs.inputs.password }}",
    );
    sync(&system, &dir).await;
    let failed = system.ferry(&["actions", "run", "greet", "--install", name]).await;
    assert!(!failed.status.success() && !shown(&failed).contains("hunter2"), "{}", shown(&failed));
    // What does not fit the app is told, all at once.
    let wrong = system.ferry(&["installs", "inputs", name, "--set", "pasword=x"]).await;
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("pasword"), "{}", shown(&wrong));
}

#[tokio::test]
async fn a_secret_given_to_a_synced_action_is_masked() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let dir = first_app(&system, "hello").await;
    edit(&dir, "actions/greet.toml", "echo \"$GREETING\"", "echo \"$GREETING $EXTRA\"");
    sync(&system, &dir).await;
    let run = ["actions", "run", "greet", "--install", &system.install.name, "--secret-env", "EXTRA=hush-hush-hush"];
    let output = system.ferry(&run).await;
    assert!(good(&output).contains("hello, world ***"), "{}", shown(&output));
    let refused =
        system.ferry(&["actions", "run", "greet", "--install", &system.install.name, "--memory", "1GiB"]).await;
    assert_eq!(refused.status.code(), Some(2), "a flag that would do nothing is refused");
    let short =
        system.ferry(&["actions", "run", "greet", "--install", &system.install.name, "--secret-env", "A=1"]).await;
    assert!(!short.status.success(), "a secret that can't be masked is refused");
}

#[tokio::test]
async fn editors_get_the_schema_of_every_kind_of_file() {
    let system = System::start(options()).await;
    for kind in config::SCHEMAS.iter().copied().chain(["terraform_module", "kubernetes_manifest", "full"]) {
        // Editors send no token.
        let url = format!("{}/v1/general/config-schema?type={kind}", system.control_url);
        let answer = http().get(url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{kind}");
        let schema: Value = answer.json().await.unwrap();
        assert_eq!(Some(&schema), config::schema(kind).as_ref(), "{kind}");
        assert!(
            schema["properties"].is_object() || schema["oneOf"].is_array() || schema["anyOf"].is_array(),
            "{kind}: {schema}"
        );
    }
    let (status, answer) = ask(&system, "GET", "/general/config-schema?type=helmet", Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(answer["hint"].as_str().unwrap().contains("helm"), "{answer}");
}

/// What clients of other languages write, and what they repeat.
#[tokio::test]
async fn nulls_repeats_and_abandoned_drafts_do_no_harm() {
    let system = System::start(options()).await;
    let dir = first_app(&system, "hello").await;
    sync(&system, &dir).await;
    let app = format!("/apps/{}", system.install.app_id);
    let component =
        made(&system, &format!("{app}/components"), json!({ "name": "web", "dependencies": null, "labels": null }))
            .await;
    let id = component["id"].as_str().unwrap();
    let draft =
        made(&system, &format!("{app}/config"), json!({ "readme": null })).await["id"].as_str().unwrap().to_owned();
    let repo = json!({ "repo": "acme/web", "directory": ".", "branch": "main", "gitRef": null });
    let chart = json!({ "app_config_id": draft, "chart_name": "web-chart", "values": null, "values_files": null, "dependencies": null, "references": null, "operation_roles": null, "checksum": "x", "public_git_vcs_config": repo });
    made(&system, &format!("/components/{id}/configs/helm"), chart).await;
    // An abandoned draft leaves nothing behind that a client could take for its last sync.
    let greet = system.client.action(system.install.app_id.as_str(), "greet").await.unwrap().stamp.id;
    let before = system.client.action_config(&greet).await.unwrap().stamp.id;
    let steps = json!({ "app_config_id": draft, "triggers": [{ "type": "manual" }], "steps": [{ "name": "a", "command": "true", "env_vars": null }] });
    made(&system, &format!("/action-workflows/{greet}/configs"), steps).await;
    assert_eq!(system.client.action_config(&greet).await.unwrap().stamp.id, before, "a draft is no version");
    let (status, _) = ask(&system, "PATCH", &format!("{app}/config/{draft}"), json!({ "status": "error" })).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(
        ask(&system, "GET", &format!("/components/{id}/configs/latest"), Value::Null).await.0,
        StatusCode::NOT_FOUND
    );

    // A component that is renamed is still one component.
    let draft = made(&system, &format!("{app}/config"), json!({})).await["id"].as_str().unwrap().to_owned();
    let (_, active) = ask(&system, "GET", &format!("{app}/latest-config"), Value::Null).await;
    let greeting = active["component_ids"][0].as_str().unwrap().to_owned();
    let (status, _) = ask(&system, "PATCH", &format!("/components/{greeting}"), json!({ "name": "welcome" })).await;
    assert_eq!(status, StatusCode::OK);
    let module = json!({ "app_config_id": draft, "version": "1.11.4", "variables": {}, "env_vars": {}, "public_git_vcs_config": repo });
    made(&system, &format!("/components/{greeting}/configs/terraform-module"), module).await;
    let action = json!({ "app_config_id": draft, "triggers": [{ "type": "manual" }], "steps": [{ "name": "a", "command": "true" }] });
    made(&system, &format!("/action-workflows/{greet}/configs"), action).await;
    let commit = json!({ "status": "active" });
    let (status, first) = ask(&system, "PATCH", &format!("{app}/config/{draft}"), commit.clone()).await;
    assert_eq!((status, &first["version"]), (StatusCode::CREATED, &json!(2)), "{first}");
    assert_eq!(first["component_ids"], json!([greeting]));
    // The answer was lost, and the client asks again.
    let (status, again) = ask(&system, "PATCH", &format!("{app}/config/{draft}"), commit).await;
    assert_eq!((status, &again["version"]), (StatusCode::CREATED, &json!(2)), "{again}");
    // Ids of nobody are not passed over in silence.
    let draft = made(&system, &format!("{app}/config"), json!({})).await["id"].as_str().unwrap().to_owned();
    let commit = json!({ "status": "active", "component_ids": ["cmp00000000000000000000000"] });
    let (status, answer) = ask(&system, "PATCH", &format!("{app}/config/{draft}"), commit).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
}

async fn ask(system: &System, method: &str, path: &str, body: Value) -> (StatusCode, Value) {
    let request = http()
        .request(method.parse().unwrap(), format!("{}/v1{path}", system.control_url))
        .bearer_auth(system.token())
        .header("X-Nuon-Org-ID", system.org.id.as_str());
    let request = if body.is_null() { request } else { request.json(&body) };
    let answer = request.send().await.unwrap();
    (answer.status(), answer.json().await.unwrap_or_default())
}

async fn made(system: &System, path: &str, body: Value) -> Value {
    let (status, answer) = ask(system, "POST", path, body).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {answer}");
    answer
}

/// As an existing client syncs: sections at once, components one by one, then the commit.
#[tokio::test]
async fn a_client_can_sync_piece_by_piece() {
    let system = System::start(options()).await;
    let app = format!("/apps/{}", system.install.app_id);
    assert_eq!(ask(&system, "GET", &format!("{app}/latest-config"), Value::Null).await.0, StatusCode::NOT_FOUND);
    let config = made(&system, &format!("{app}/config"), json!({ "readme": "# hi", "cli_version": "1" })).await;
    let id = config["id"].as_str().unwrap().to_owned();
    let repo = json!({ "repo": "acme/infra", "directory": ".", "branch": "main" });
    let role = |name: &str| json!({ "name": name, "description": "d", "display_name": name, "policies": [{ "managed_policy_name": "AdministratorAccess" }] });
    let sections = [
        (
            "input-config",
            json!({ "app_config_id": id, "groups": { "g": { "description": "d", "display_name": "G", "index": 0 } }, "inputs": { "size": { "description": "d", "display_name": "Size", "group": "g", "index": 0, "default": "3" } } }),
        ),
        (
            "sandbox-config",
            json!({ "app_config_id": id, "terraform_version": "1.11.4", "variables": {}, "env_vars": {}, "public_git_vcs_config": repo }),
        ),
        ("runner-configs", json!({ "app_config_id": id, "type": "aws" })),
        ("operation-role-configs", json!({ "app_config_id": id, "rules": [] })),
        (
            "permissions-configs",
            json!({ "app_config_id": id, "provision_role": role("p"), "maintenance_role": role("m"), "deprovision_role": role("d") }),
        ),
        (
            "stack-configs",
            json!({ "app_config_id": id, "type": "aws-cloudformation", "name": "s", "description": "d", "vpc_nested_template_url": "https://b.s3.amazonaws.com/vpc.yaml", "runner_nested_template_url": "https://b.s3.amazonaws.com/runner.yaml" }),
        ),
    ];
    let posts = sections.iter().map(|(path, body)| {
        let (system, path) = (&system, format!("{app}/{path}"));
        async move { made(system, &path, body.clone()).await }
    });
    futures::future::join_all(posts).await;
    let component = made(&system, &format!("{app}/components"), json!({ "name": "network" })).await;
    let component_id = component["id"].as_str().unwrap().to_owned();
    let module = json!({ "app_config_id": id, "checksum": "one", "version": "1.11.4", "variables": { "size": "{{.nuon.inputs.inputs.siez}}" }, "env_vars": {}, "public_git_vcs_config": repo });
    made(&system, &format!("/components/{component_id}/configs/terraform-module"), module.clone()).await;
    let action = made(&system, &format!("{app}/action-workflows"), json!({ "name": "check" })).await;
    let action_id = action["id"].as_str().unwrap();
    let steps = json!({ "app_config_id": id, "timeout": 60_000_000_000_i64, "triggers": [{ "type": "manual" }], "steps": [{ "name": "run", "command": "true" }] });
    made(&system, &format!("/action-workflows/{action_id}/configs"), steps).await;

    // The commit validates the whole, and an error leaves the draft open.
    let commit = json!({ "status": "active", "state": "{\"opaque\":1}", "component_ids": [component_id] });
    let path = format!("{app}/config/{id}");
    let (status, answer) = ask(&system, "PATCH", &path, commit.clone()).await;
    assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_config")), "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("siez"), "{answer}");
    let mut right = module;
    right["variables"]["size"] = json!("{{.nuon.inputs.inputs.size}}");
    made(&system, &format!("/components/{component_id}/configs/terraform-module"), right).await;
    let (status, active) = ask(&system, "PATCH", &path, commit).await;
    assert_eq!(
        (status, &active["status"], &active["version"]),
        (StatusCode::CREATED, &json!("active"), &json!(1)),
        "{active}"
    );
    let (_, latest) = ask(&system, "GET", &format!("{app}/latest-config?recurse=true"), Value::Null).await;
    assert_eq!(latest["state"], json!("{\"opaque\":1}"));
    assert_eq!(latest["input"]["inputs"][0]["name"], json!("size"));
    assert_eq!(latest["permissions"]["provision_aws_iam_role"]["type"], json!("runner_provision"));
    assert_eq!(latest["component_config_connections"][0]["terraform_module"]["version"], json!("1.11.4"));
    assert_eq!(latest["action_workflow_configs"][0]["timeout"], json!(60_000_000_000_i64));

    // The next sync posts what changed; a component with the same checksum is only listed.
    let second = made(&system, &format!("{app}/config"), json!({})).await["id"].as_str().unwrap().to_owned();
    for (path, body) in &sections {
        let mut body = body.clone();
        body["app_config_id"] = json!(second);
        made(&system, &format!("{app}/{path}"), body).await;
    }
    let (_, known) = ask(&system, "GET", &format!("/components/{component_id}/configs/latest"), Value::Null).await;
    assert_eq!(known["checksum"], json!("one"));
    let commit = json!({ "status": "active", "component_ids": [component_id] });
    let (_, active) = ask(&system, "PATCH", &format!("{app}/config/{second}"), commit).await;
    assert_eq!(active["version"], json!(2), "the action is gone: {active}");
    assert_eq!(active["component_ids"], json!([component_id]));
    assert!(active["action_ids"].is_null());
    let (_, build) = ask(&system, "GET", &format!("/components/{component_id}/builds/latest"), Value::Null).await;
    assert_eq!(build["status"], json!("planning"), "it waits for a build runner: {build}");
    assert_eq!(build["component_config_version"], json!(1), "a recipe that did not change is not built again: {build}");
    // A version takes nothing more.
    let mut late = sections[2].1.clone();
    late["app_config_id"] = json!(id);
    let (status, answer) = ask(&system, "POST", &format!("{app}/runner-configs"), late).await;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
}

#[tokio::test]
async fn only_an_active_manual_action_can_be_started() {
    let system = System::start(options()).await;
    let _runner = system.start_runner("a").await;
    let dir = first_app(&system, "hello").await;
    sync(&system, &dir).await;
    let app = system.install.app_id.as_str();
    let old = system.client.action_config(&system.client.action(app, "greet").await.unwrap().stamp.id).await.unwrap();
    edit(&dir, "actions/greet.toml", "type = \"manual\"", "type = \"post-provision\"");
    sync(&system, &dir).await;
    let run = |config: String| {
        let body = CreateActionWorkflowRun {
            action_workflow_config_id: config,
            action: String::new(),
            role: String::new(),
            run_env_vars: Default::default(),
            secrets: Vec::new(),
        };
        let client = system.client.clone();
        let install = system.install.id.to_string();
        async move { client.run_action(&install, &body).await }
    };
    assert_eq!(run(old.stamp.id).await.unwrap_err().status(), Some(404), "of a version that is not active");
    let now = system.client.action_config(&system.client.action(app, "greet").await.unwrap().stamp.id).await.unwrap();
    let refused = run(now.stamp.id).await.unwrap_err();
    assert_eq!((refused.status(), refused.to_string().contains("manual")), (Some(409), true), "{refused}");
    assert!(system.client.jobs(&Default::default(), 10).await.unwrap().iter().all(|j| j.status != JobState::Failed));
}
