//! Clients that we did not write: an SDK of the dialect, and a tester that makes requests from its document.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use needs::needs;
use serde_json::{Value, json};
use testkit::system::{System, shown};
use tokio::process::Command;

use crate::options;

/// A program of the Python packages that `scripts/python-tools.sh` installs.
pub(crate) fn python_tool(name: &str) -> PathBuf {
    let ferry = crate::ferry();
    let target = ferry.parent().and_then(|p| p.parent()).unwrap();
    let tool = target.join("python-tools/bin").join(name);
    assert!(tool.exists(), "{} is missing: run scripts/python-tools.sh first (`make test` does)", tool.display());
    tool
}

async fn run(mut command: Command) -> Output {
    tokio::time::timeout(Duration::from_secs(1500), command.kill_on_drop(true).output())
        .await
        .expect("in time")
        .unwrap()
}

#[tokio::test]
async fn an_sdk_that_we_did_not_write_makes_an_app_and_reads_it_back() {
    let system = System::start(options()).await;
    let mut command = Command::new(python_tool("python"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sdk.py");
    command.args([script, &system.control_url, system.token()]);
    let output = run(command).await;
    assert!(output.status.success() && output.stdout == b"ok\n", "{}", shown(&output));
}

/// Operations of the dialect that are there already.
const THERE: &str = "/v1/(apps|builds|components|action-workflows|orgs|general|installs$|installs/\\{install_id\\}$|installs/\\{install_id\\}/(action-workflows|inputs)).*";

/// No answer is a 500, and none is outside of the document, but for what every operation may answer.
#[tokio::test]
async fn no_request_of_the_dialect_is_answered_outside_of_its_document() {
    needs!(Spec);
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/spec/control-api-main.json");
    let text = fs_err::read_to_string(shared).unwrap();
    let system = System::start(options()).await;
    let dir = system.root().join("shop");
    assert!(system.ferry(&["apps", "init", dir.to_str().unwrap()]).await.status.success());
    let app = system.install.app_id.as_str();
    let synced = system.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", app, "--json", "--no-wait"]).await;
    assert!(synced.status.success(), "{}", shown(&synced));
    let synced: Value = serde_json::from_slice(&synced.stdout).unwrap();
    let action = synced["config"]["action_ids"][0].as_str().unwrap();
    let config = system.client.action_config(action).await.unwrap().stamp.id;

    let mut document: Value = serde_json::from_str(&text).unwrap();
    for operation in document["paths"].as_object_mut().unwrap().values_mut() {
        for method in operation.as_object_mut().unwrap().values_mut() {
            if let Some(responses) = method["responses"].as_object_mut() {
                for status in ["405", "409", "413", "429", "503"] {
                    responses.entry(status).or_insert(json!({ "description": "ours" }));
                }
            }
        }
    }
    fs_err::write(system.root().join("api.json"), document.to_string()).unwrap();
    // Real ids, so that requests reach what they are about.
    let settings = format!(
        "[parameters]\napp_id = \"{app}\"\napp_config_id = \"{}\"\ncomponent_id = \"{}\"\ncomponent_name_or_id = \"greeting\"\naction_workflow_id = \"{action}\"\ninstall_id = \"{}\"\naction_workflow_config_id = \"{config}\"\nbuild_id = \"{}\"\n",
        synced["config"]["id"].as_str().unwrap(),
        synced["config"]["component_ids"][0].as_str().unwrap(),
        system.install.id,
        synced["builds"][0]["id"].as_str().unwrap(),
    );
    fs_err::write(system.root().join("schemathesis.toml"), settings).unwrap();
    let examples = std::env::var("FERRY_EXAMPLES").unwrap_or_else(|_| "8".into());
    let mut command = Command::new(python_tool("schemathesis"));
    command.current_dir(system.root()).args(["--config-file", "schemathesis.toml", "run", "api.json"]);
    command.args(["--url", &system.control_url, "--no-color", "--seed", "1", "--max-examples", &examples]);
    command.args(["--phases", "coverage,fuzzing", "--include-path-regex", THERE]);
    command.args([
        "--checks",
        "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
    ]);
    command.args(["--header", &format!("Authorization: Bearer {}", system.token())]);
    command.args(["--header", &format!("X-Nuon-Org-ID: {}", system.org.id)]);
    let output = run(command).await;
    assert!(output.status.success(), "{}", shown(&output));
    eprintln!("{}", String::from_utf8_lossy(&output.stdout).lines().rev().take(12).collect::<Vec<_>>().join("\n"));
}
