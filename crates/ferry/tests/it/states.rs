//! Terraform's states as the vendor sees them: their history, the way back, locks, and drift; with the real Terraform.

use std::path::PathBuf;
use std::process::Output;

use api::control::{TerraformState, TerraformWorkspace};
use api::headers;
use api::terraform::{HolderRef, LockRequest, StateRequest};
use model::WorkspaceId;
use model::deploy::LockInfo;
use runner::session::{SessionClient, StateDir};
use serde_json::{Value, json};
use testkit::system::{Runner, System, shown, until};

use crate::security::http;
use crate::terraform::version;
use crate::workflows::{step, until_status};
use crate::{options, seconds};

const INPUTS: &str = r#"
[[group]]
name = "main"
description = "d"
display_name = "d"
[[input]]
name = "size"
description = "d"
display_name = "d"
group = "main"
default = "1"
[[input]]
name = "gate"
description = "d"
display_name = "d"
group = "main"
default = ""
"#;

/// As many shards as it is told; with a gate, the apply waits until that file is there.
const DB: &str = r#"
variable "size" {
  type = number
}

variable "gate" {
  type = string
}

resource "terraform_data" "shard" {
  count = var.size
  input = count.index
}

resource "terraform_data" "gate" {
  count = var.gate == "" ? 0 : 1

  provisioner "local-exec" {
    command = "until test -e ${var.gate}; do sleep 0.1; done"
  }
}
"#;

/// Holds what a file outside says.
const READER: &str = r#"
variable "file" {
  type = string
}

resource "terraform_data" "text" {
  input = trimspace(file(var.file))
}
"#;

/// A system with an app of Terraform modules, which is provisioned.
struct Shop {
    system: System,
    runner: Runner,
    _builder: Runner,
}

impl Shop {
    async fn new() -> Self {
        let system = System::start(options()).await;
        let builder = system.start_build_runner("build", |_| {}).await;
        let runner = system.start_runner("a").await;
        let shop = Self { system, runner, _builder: builder };
        shop.say("base", "one");
        shop.say("web", "one");
        let dir = shop.write_app();
        shop.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", "shop"], 0).await;
        shop.ferry(&["installs", "set", "customer", "--approvals", "approve-all"], 0).await;
        shop.ferry(&["installs", "provision", "customer"], 0).await;
        shop
    }

    fn write_app(&self) -> PathBuf {
        let dir = self.system.root().join("app");
        let reader = |name: &str| format!("[vars]\nfile = \"{}\"\n", self.file(name).display());
        let version = version();
        let module = |name: &str, vars: &str| {
            format!(
                "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"{version}\"\n[local]\ndirectory = \"src/{name}\"\n{vars}"
            )
        };
        let vars = "[vars]\nsize = \"{{ .nuon.inputs.inputs.size }}\"\ngate = \"{{ .nuon.inputs.inputs.gate }}\"\n";
        let sandbox =
            format!("terraform_version = \"{version}\"\n[local]\ndirectory = \"src/base\"\n{}", reader("base"));
        let files = [
            ("metadata.toml", "version = \"v2\"\n".to_owned()),
            ("runner.toml", "runner_type = \"local\"\n".to_owned()),
            ("inputs.toml", INPUTS.to_owned()),
            ("sandbox.toml", sandbox),
            ("components/db.toml", module("db", vars)),
            ("components/web.toml", module("web", &reader("web"))),
            ("src/base/main.tf", READER.to_owned()),
            ("src/db/main.tf", DB.to_owned()),
            ("src/web/main.tf", READER.to_owned()),
        ];
        for (file, text) in files {
            let path = dir.join(file);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        dir
    }

    /// A file on the customer's side, beside all that Terraform made.
    fn file(&self, name: &str) -> PathBuf {
        self.system.root().join("witness").join(name)
    }

    fn say(&self, name: &str, text: &str) {
        fs_err::write(self.file(name), text).unwrap();
    }

    async fn ferry(&self, words: &[&str], code: i32) -> Output {
        let mut command = self.system.ferry_command();
        command.args(words);
        let mut command = tokio::process::Command::from(command);
        let output = tokio::time::timeout(seconds(120), command.kill_on_drop(true).output()).await;
        let output = output.unwrap_or_else(|_| panic!("{words:?} takes more than two minutes")).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", shown(&output));
        output
    }

    async fn json(&self, words: &[&str], code: i32) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let output = self.ferry(&words, code).await;
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", shown(&output)))
    }

    async fn size(&self, size: &str) {
        self.ferry(&["installs", "inputs", "customer", "--set", &format!("size={size}")], 0).await;
    }

    async fn workspace(&self, target: &str) -> TerraformWorkspace {
        let all = self.system.client.workspaces("customer").await.unwrap();
        let targets: Vec<&str> = all.iter().map(|known| known.target.as_str()).collect();
        assert_eq!(targets, ["components/db", "components/web", "sandbox"]);
        all.into_iter().find(|known| known.target == target).unwrap()
    }

    async fn history(&self) -> Vec<TerraformState> {
        let found = self.json(&["states", "history", "customer", "--component", "db"], 0).await;
        serde_json::from_value(found).unwrap()
    }

    /// What the runner of the install calls with.
    fn session(&self) -> SessionClient {
        let dir = StateDir::new(&self.runner.state_dir);
        let (session, key) = (dir.session().unwrap().unwrap(), dir.key().unwrap().unwrap());
        SessionClient::new(http(), &self.system.runner_url, session.runner_id, session.generation, key)
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn an_earlier_state_comes_back_under_a_new_serial() {
    let shop = Shop::new().await;
    let client = &shop.system.client;
    let first = shop.history().await.remove(0);
    assert_eq!((first.resource_count, first.current), (1, true));
    shop.size("2").await;
    shop.size("3").await;

    // Every state that was ever written, newest first; one of them is the state.
    let before = shop.workspace("components/db").await;
    let history = shop.history().await;
    assert!(history.len() >= 3, "{history:?}");
    assert!(history.is_sorted_by(|a, b| a.serial > b.serial), "{history:?}");
    assert_eq!(history.iter().filter(|state| state.current).count(), 1);
    assert!(history[0].current && history[0].id == before.state_id && history[0].author == "ferry");
    assert!(client.job(&history[0].job_id.parse().unwrap()).await.is_ok());
    assert!(history.iter().all(|state| state.lineage == first.lineage && !state.quarantined));
    assert_eq!((before.resource_count, before.component.as_str(), before.lock), (3, "db", None));

    // What is in them is known by name, and nothing by value.
    let shown = stdout(&shop.ferry(&["states", "show", "customer", "--component", "db"], 0).await);
    for part in ["terraform_data.shard[2]", "PROVIDER", "ready", "active"] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let old = shop.json(&["states", "show", "customer", "-c", "db", "--revision", &first.id], 0).await;
    assert_eq!(old["resources"].as_array().unwrap().len(), 1);
    assert_eq!(old["resources"][0]["type"], "terraform_data");
    let document = client.state_json(&before.id, &first.id).await.unwrap();
    let resource = &document["values"]["root_module"]["resources"][0];
    assert_eq!((&resource["address"], &resource["mode"]), (&json!("terraform_data.shard[0]"), &json!("managed")));
    assert_eq!(resource.get("values"), None);

    // What can't be meant is refused with a word about it.
    let several = shop.ferry(&["states", "history", "customer"], 2).await;
    assert!(stderr(&several).contains("components/web"), "{}", stderr(&several));
    let typo = shop.ferry(&["states", "show", "customer", "-c", "bd"], 4).await;
    assert!(stderr(&typo).contains("did you mean `components/db`"), "{}", stderr(&typo));
    let restore = |id: &str| ["states", "restore", "customer", "-c", "db", "--revision", id].map(str::to_owned);
    let words = restore(&first.id);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(stderr(&shop.ferry(&words, 2).await).contains("needs confirmation; pass `--yes`"));
    let current = restore(&before.state_id);
    let current: Vec<&str> = current.iter().map(String::as_str).chain(["--yes"]).collect();
    assert!(stderr(&shop.ferry(&current, 5).await).contains("is already the active state of components/db"));
    let foreign = shop.workspace("components/web").await.state_id;
    let foreign = restore(&foreign);
    let foreign: Vec<&str> = foreign.iter().map(String::as_str).chain(["--yes"]).collect();
    assert!(stderr(&shop.ferry(&foreign, 4).await).contains("states history"));

    let done = shop.ferry(&[words.as_slice(), &["--yes"]].concat(), 0).await;
    assert!(stderr(&done).contains("to see what differs from it"), "{}", stderr(&done));
    let after = shop.workspace("components/db").await;
    assert_eq!((after.serial, after.resource_count), (before.serial + 1, 1));
    assert_eq!((after.lineage.as_str(), after.lock), (first.lineage.as_str(), None));
    let newest = shop.history().await.remove(0);
    assert!(newest.current && newest.note == "restored", "{newest:?}");
    assert!(newest.author.contains('@'), "who restored it: {newest:?}");
    let events = client.events(None, None, 1000).await.unwrap().0;
    let event = events.iter().find(|event| event.kind == "terraform.restore").unwrap();
    assert_eq!((&event.data["revision_id"], &event.data["target"]), (&json!(first.id), &json!("components/db")));

    // Terraform believes it now.
    let body = json!({ "type": "manual_deploy", "component": "db", "plan_only": true });
    let plan = client.start_workflow("customer", &serde_json::from_value(body).unwrap()).await.unwrap();
    let plan = until_status(client, &plan.workflow_id, "success").await;
    let plan = step(&plan, "sync and plan db");
    assert_eq!(plan.changes.as_ref().unwrap().create, 2, "{plan:?}");

    // What it would make again may exist: a person looks at the plan, whatever was approved beforehand.
    let body = json!({ "type": "manual_deploy", "component": "db", "approve_all": true });
    let deploy = client.start_workflow("customer", &serde_json::from_value(body).unwrap()).await.unwrap();
    let asked = until_status(client, &deploy.workflow_id, "approval-awaiting").await;
    let asked = step(&asked, "sync and plan db");
    assert!(asked.status.status_human_description.contains("restored an earlier state"), "{asked:?}");
    shop.ferry(&["workflows", "cancel", &deploy.workflow_id], 0).await;
    until_status(client, &deploy.workflow_id, "cancelled").await;

    // Asked twice with one key, it is one job.
    let url =
        format!("{}/v1/terraform-workspaces/{}/states/{}/restore", shop.system.control_url, before.id, history[0].id);
    let ask = async || {
        let request =
            http().post(&url).bearer_auth(shop.system.token()).header(headers::ORG, shop.system.org.id.as_str());
        let answer = request.header(headers::IDEMPOTENCY_KEY, "once").send().await.unwrap();
        assert_eq!(answer.status(), 201);
        answer.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let job = ask().await;
    shop.ferry(&["jobs", "wait", &job], 0).await;
    assert_eq!(ask().await, job);
    assert_eq!(shop.workspace("components/db").await.resource_count, 3);
}

#[tokio::test]
async fn a_state_that_was_kept_beside_is_recovered() {
    let shop = Shop::new().await;
    let client = &shop.system.client;
    let (session, before) = (shop.session(), shop.workspace("components/db").await);
    let id = WorkspaceId::parse(&before.id).unwrap();
    let first = session.workspace(&id).await.unwrap().state.unwrap();
    let job = shop.history().await.remove(0).job_id;
    shop.size("2").await;

    // An execution that is over brings a state: it may be the only trace of what it has made.
    let execution = client.job(&job.parse().unwrap()).await.unwrap().executions.remove(0);
    let late = StateRequest {
        holder: Some(HolderRef { execution_id: execution.id, epoch: execution.epoch }),
        person: String::new(),
        lock_id: "gone".to_owned(),
        lineage: first.lineage,
        serial: 40,
        file: first.file,
        resources: vec![json!({ "address": "terraform_data.shard[0]" })],
        resource_count: 1,
        outputs: None,
        note: String::new(),
    };
    assert!(session.write_state(&id, &late).await.unwrap().quarantined);
    let now = shop.workspace("components/db").await;
    assert_eq!((now.quarantined, now.resource_count), (1, 2), "it is not the state");
    let kept = shop.history().await.remove(0);
    assert!(kept.quarantined && !kept.current && kept.serial == 40, "{kept:?}");
    let listed = stdout(&shop.ferry(&["states", "list", "customer"], 0).await);
    assert!(listed.contains("1 quarantined"), "{listed}");

    shop.ferry(&["states", "restore", "customer", "-c", "db", "--revision", &kept.id, "--yes"], 0).await;
    let after = shop.workspace("components/db").await;
    assert_eq!((after.serial, after.resource_count), (now.serial + 1, 1), "the next serial of what stood");
}

#[tokio::test]
async fn a_persons_lock_is_freed_and_a_jobs_is_not() {
    let shop = Shop::new().await;
    let client = &shop.system.client;
    let nobody = shop.ferry(&["states", "unlock", "customer", "-c", "db"], 0).await;
    assert!(stderr(&nobody).contains("is not locked"), "{}", stderr(&nobody));

    let workspace = shop.workspace("components/db").await;
    let id = WorkspaceId::parse(&workspace.id).unwrap();
    let text = |text: &str| text.to_owned();
    let info = LockInfo {
        id: text("lock-1"),
        operation: text("OperationTypeApply"),
        info: String::new(),
        who: text("ann@laptop"),
        version: text("1.11.4"),
        created: String::new(),
        path: String::new(),
    };
    assert!(shop.session().lock_workspace(&id, &LockRequest { info, holder: None }).await.unwrap().done);
    let lock = shop.workspace("components/db").await.lock.unwrap();
    assert_eq!((lock.id.as_str(), lock.who.as_str(), lock.execution_id.as_str()), ("lock-1", "ann@laptop", ""));
    let listed = stdout(&shop.ferry(&["states", "list", "customer"], 0).await);
    assert!(listed.contains("ann@laptop (OperationTypeApply)"), "{listed}");
    let asks = shop.ferry(&["states", "unlock", "customer", "-c", "db"], 2).await;
    assert!(stderr(&asks).contains("ann@laptop"), "{}", stderr(&asks));
    let freed = shop.json(&["states", "unlock", "customer", "-c", "db", "--yes"], 0).await;
    assert_eq!((&freed["unlocked"], &freed["lock"]["who"]), (&json!(true), &json!("ann@laptop")));
    assert_eq!(shop.workspace("components/db").await.lock, None);
    assert!(client.events(None, None, 1000).await.unwrap().0.iter().any(|event| event.kind == "terraform.unlocked"));

    // An apply that runs keeps what it holds.
    let gate = shop.file("gate");
    let set = format!("gate={}", gate.display());
    let answer = shop.json(&["installs", "inputs", "customer", "--set", &set, "--no-deploy"], 0).await;
    assert_eq!(answer["workflow_id"], Value::Null);
    let body = json!({ "type": "manual_deploy", "component": "db" });
    let deploy = client.start_workflow("customer", &serde_json::from_value(body).unwrap()).await.unwrap().workflow_id;
    let lock = until("the apply holds the lock", seconds(60), async || {
        let found = shop.workspace("components/db").await.lock;
        found.filter(|lock| lock.operation == "OperationTypeApply").ok_or_else(|| "no lock".to_owned())
    })
    .await;
    assert!(!lock.job_id.is_empty() && !lock.execution_id.is_empty(), "{lock:?}");
    let refused = shop.ferry(&["states", "unlock", "customer", "-c", "db", "--yes"], 5).await;
    for part in ["a running job holds the lock", &format!("ferry jobs cancel {}", lock.job_id)] {
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }
    assert_eq!(shop.workspace("components/db").await.lock.unwrap().id, lock.id);
    shop.say("gate", "");
    until_status(client, &deploy, "success").await;
    assert_eq!(shop.workspace("components/db").await.lock, None);
}

/// Part, status and summary of every look.
fn looks(told: &Value) -> Vec<(&str, &str, &str)> {
    fn text<'v>(look: &'v Value, key: &str) -> &'v str {
        look[key].as_str().unwrap()
    }
    let looks = told.as_array().unwrap().iter();
    looks.map(|look| (text(look, "part"), text(look, "status"), text(look, "summary"))).collect()
}

#[tokio::test]
async fn drift_is_found_in_every_part_and_reconciled() {
    let shop = Shop::new().await;
    let client = &shop.system.client;
    let drifted = async || -> Vec<String> {
        let found = client.install_components("customer").await.unwrap();
        found.into_iter().filter(|known| known.drifted).map(|known| known.component.unwrap().name).collect()
    };
    let calm = shop.json(&["installs", "drift", "customer"], 0).await;
    assert_eq!(looks(&calm), [("sandbox", "no-drift", ""), ("db", "no-drift", ""), ("web", "no-drift", "")]);

    shop.say("web", "two");
    let found = shop.ferry(&["installs", "drift", "customer"], 9).await;
    let table = stdout(&found);
    let line = |part: &str| table.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{table}"));
    assert!(line("web").contains("drifted") && line("web").contains("1 to change"), "{table}");
    assert!(line("db").contains("no-drift") && line("sandbox").contains("no-drift"), "{table}");
    assert!(stderr(&found).contains("--reconcile"), "{}", stderr(&found));
    assert_eq!(drifted().await, ["web"]);
    let components = stdout(&shop.ferry(&["installs", "components", "customer"], 0).await);
    assert!(components.lines().any(|line| line.contains("web") && line.contains("drifted")), "{components}");

    shop.say("base", "two");
    let sandbox = shop.json(&["installs", "drift", "customer", "--sandbox"], 9).await;
    assert_eq!(looks(&sandbox), [("sandbox", "drifted", "1 to change")]);
    assert_eq!(looks(&shop.json(&["installs", "drift", "customer", "-c", "db"], 0).await), [("db", "no-drift", "")]);

    // The sandbox comes first, then all components in one deploy.
    shop.ferry(&["installs", "drift", "customer", "--reconcile", "-y"], 0).await;
    let done = client.workflows(Some("customer"), 2).await.unwrap();
    let kinds: Vec<&str> = done.iter().map(|workflow| workflow.r#type.as_str()).collect();
    assert_eq!(kinds, ["deploy_components", "reprovision_sandbox"]);
    let deploy = client.workflow(&done[0].id).await.unwrap();
    assert!(deploy.steps.iter().all(|step| !step.name.contains("db")), "{deploy:?}");
    assert!(drifted().await.is_empty());
    let calm = shop.json(&["installs", "drift", "customer"], 0).await;
    assert_eq!(looks(&calm).iter().filter(|look| look.1 == "no-drift").count(), 3);

    // A look that fails is no look that has found nothing.
    fs_err::remove_file(shop.file("web")).unwrap();
    let failed = shop.json(&["installs", "drift", "customer"], 1).await;
    let web = looks(&failed).into_iter().find(|look| look.0 == "web").unwrap();
    assert!(web.1 == "failed" && !web.2.is_empty(), "{web:?}");
}
