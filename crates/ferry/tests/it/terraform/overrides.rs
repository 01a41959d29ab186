//! What an install lays over the variables of a module: set by file and by command, deployed, compared with, and taken away again.

use api::control::{ComponentOverride, UpdateInstallInputs};
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::shown;

use super::{Stage, newest, put};
use crate::options;

const ECHO: &str = r#"
variable "word" { type = string }
resource "terraform_data" "it" {
  input = var.word
}
output "word" { value = terraform_data.it.output }
"#;

impl Stage {
    async fn ferry(&self, words: &[&str], code: i32) -> String {
        let output = self.system.ferry(words).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", shown(&output));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    async fn word(&self) -> Value {
        self.part("components/it").await["outputs"]["word"].clone()
    }
}

async fn an_install_lays_its_own_over_a_module(backend: Backend) {
    let stage = Stage::start(options().on(backend)).await;
    stage.plain_sandbox();
    stage.inputs(&[("host", "one")]);
    stage.component("it", "", &[("word", "app")], ECHO);
    stage.sync().await;
    stage.run(json!({ "type": "provision" })).await;
    assert_eq!(stage.word().await, "app");
    let (client, install) = (stage.client(), stage.install());

    // By command; what the text reads is read of the install.
    let file = stage.system.root().join("it.tfvars");
    let of_file = format!("it={}", file.display());
    put(&file, "word = \"over {{ .nuon.inputs.inputs.host }}\"\n");
    let set = ["installs", "overrides", install, "--set", &of_file, "--approve-all"];
    stage.ferry(&set, 0).await;
    assert_eq!(stage.word().await, "over one");
    assert!(stage.ferry(&set[..5], 0).await.contains("nothing is deployed"), "it is the same");
    let shown = stage.ferry(&["installs", "overrides", install, "it"], 0).await;
    assert_eq!(shown, "word = \"over {{ .nuon.inputs.inputs.host }}\"\n");
    let input = format!("{install} --set host=two --approve-all");
    stage.ferry(&[&["installs", "inputs"], &*input.split(' ').collect::<Vec<_>>()].concat(), 0).await;
    assert_eq!(stage.word().await, "over two", "what it reads has changed");

    // Saved and not deployed: a look compares with what was deployed, and says what is not.
    put(&file, "word = \"later\"\n");
    stage.ferry(&["installs", "overrides", install, "--set", &of_file, "--no-deploy"], 0).await;
    let found = client.install(install).await.unwrap();
    assert_eq!(found.undeployed_inputs, ["components.it.tf_vars"]);
    let look = stage.run(json!({ "type": "drift_run", "component": "it" })).await;
    assert_eq!(newest(&look, "sync and plan it").unwrap().status.status, "no-drift");
    let id = stage.deploy("it").await;
    stage.approve(&id, "sync and plan it").await;
    stage.until(&id, "success").await;
    assert_eq!(stage.word().await, "later");
    assert_eq!(client.install(install).await.unwrap().undeployed_inputs, [""; 0]);

    // By file, in the other form; the install gives itself as the same file.
    let at = stage.system.root().join("installs/it.toml");
    let head = format!("name = \"{install}\"\napproval_option = \"approve-all\"\n[inputs]\nhost = \"two\"\n");
    let text = "{\"word\": \"json\"}";
    put(&at, &format!("{head}[components.it]\ntf_vars = '{text}'\n"));
    let app = stage.system.install.app_id.as_str();
    let words = ["installs", "sync", at.to_str().unwrap(), "--app", app];
    let planned = stage.ferry(&[&words[..], &["--plan"]].concat(), 0).await;
    assert!(planned.contains("components.it.tf_vars") && planned.contains("json"), "{planned}");
    assert_eq!(stage.word().await, "later", "looking changes nothing");
    stage.ferry(&[&words[..], &["--yes", "--wait"]].concat(), 0).await;
    assert_eq!(stage.word().await, "json");
    let exported = client.install_file(install).await.unwrap();
    assert!(exported.contains("[components.it]") && !exported.contains("nuon_component"), "{exported}");
    put(&at, &exported);
    assert!(stage.ferry(&[&words[..], &["--plan"]].concat(), 0).await.contains("nothing changed"));

    // What can't be laid over anything is said, and changes nothing.
    let before = client.install_inputs(install).await.unwrap();
    for (component, over, told) in [
        ("none", json!({ "tf_vars": "a = 1" }), "no component `none`"),
        ("it", json!({ "helm_values": "a: 1" }), "`helm_values` is for charts"),
        ("it", json!({ "tf_vars": "a = " }), "is not HCL"),
        ("it", json!({ "tf_vars": "{\"a\": }" }), "is not JSON"),
        ("it", json!({ "tf_vars": "resource \"x\" \"y\" {}" }), "has the block `resource`"),
        ("it", json!({ "tf_vars": "a = \"{{ .nuon.components.other.outputs.x }}\"" }), "doesn't depend on"),
    ] {
        let over: ComponentOverride = serde_json::from_value(over).unwrap();
        let body = json!({ "inputs": {}, "component_overrides": { component: over } });
        let body: UpdateInstallInputs = serde_json::from_value(body).unwrap();
        let error = client.update_install_inputs(install, &body).await.unwrap_err();
        assert_eq!(error.status(), Some(400));
        assert!(error.to_string().contains(told), "{told}: {error}");
    }
    assert_eq!(client.install_inputs(install).await.unwrap().version, before.version);
    put(&at, &format!("{head}[components.none]\ntf_vars = 'a = 1'\n[components.it]\nhelm_values = 'a: 1'\n"));
    let told = stage.ferry(&[&words[..], &["--yes"]].concat(), 2).await;
    assert!(told.contains("no component `none`") && told.contains("`helm_values` is for charts"), "{told}");

    // What a file does not lay over is not laid over any more.
    put(&at, &head);
    stage.ferry(&[&words[..], &["--yes", "--wait"]].concat(), 0).await;
    assert_eq!(stage.word().await, "app");

    // What the dialect calls an input.
    let name = model::overrides::input_name("it", model::overrides::OverrideKind::TfVars);
    let body: UpdateInstallInputs =
        serde_json::from_value(json!({ "inputs": { &name: "word = \"dialect\"" } })).unwrap();
    let changed = client.update_install_inputs(install, &body).await.unwrap();
    assert_eq!(changed.values[&name], "word = \"dialect\"");
    stage.until(&changed.workflow_id, "success").await;
    assert_eq!(stage.word().await, "dialect");

    // Taken down as it was deployed, though the override is another one by now.
    put(&file, "word = [\"no text\"]\n");
    stage.ferry(&["installs", "overrides", install, "--set", &of_file, "--no-deploy"], 0).await;
    stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    assert_eq!(stage.part("components/it").await["status"], "inactive");
}

#[tokio::test]
async fn an_install_lays_its_own_over_a_module_on_sqlite() {
    an_install_lays_its_own_over_a_module(Backend::Sqlite).await;
}

#[tokio::test]
async fn an_install_lays_its_own_over_a_module_on_postgresql() {
    an_install_lays_its_own_over_a_module(Backend::Postgres).await;
}
