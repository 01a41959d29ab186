//! Installs by labels, and installs that are kept in files.

use std::path::Path;

use api::client::Client;
use api::control::{CreateApp, CreateInstall, CreateOrg, ToggleInstallComponent};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::system::{System, shown, until};

use crate::{options, seconds};

const FILES: &[(&str, &str)] = &[
    ("metadata.toml", "version = \"v2\"\n[default_labels]\nvendor = \"us\"\nwhere = \"{{ .nuon.install.name }}-x\"\n"),
    ("runner.toml", "runner_type = \"local\"\n"),
    (
        "inputs.toml",
        "[[group]]\nname = \"main\"\ndescription = \"d\"\ndisplay_name = \"d\"\n[[input]]\nname = \"host\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\ndefault = \"one\"\n[[input]]\nname = \"size\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\ndefault = \"1\"\n[[input]]\nname = \"password\"\ndescription = \"d\"\ndisplay_name = \"d\"\ngroup = \"main\"\nsensitive = true\nrequired = true\n",
    ),
    ("sandbox.toml", "terraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n"),
    ("src/main.tf", "\n"),
    (
        "components/api.toml",
        "name = \"api\"\ntype = \"kubernetes_manifest\"\nnamespace = \"a\"\nmanifest = \"host: {{ .nuon.inputs.inputs.host }}, vendor: {{ .nuon.labels.vendor }}\"\n",
    ),
    (
        "components/extra.toml",
        "name = \"extra\"\ntype = \"kubernetes_manifest\"\nnamespace = \"a\"\nmanifest = \"a: b\"\ntoggleable = true\n",
    ),
];

/// A simulated org with a synced app `shop`.
pub(crate) struct Shop {
    pub(crate) system: System,
    pub(crate) client: Client,
    pub(crate) org: String,
}

impl Shop {
    pub(crate) async fn new() -> Self {
        let system = System::start(options()).await;
        let simulation = Some([("step_ms".to_owned(), 20)].into());
        let org = CreateOrg { name: "rehearsal".into(), use_sandbox_mode: true, simulation };
        let org = system.client.create_org(&org).await.unwrap().id.to_string();
        let client = system.client.with_org(Some(org.clone()));
        let app = CreateApp { name: "shop".into(), display_name: String::new(), description: String::new() };
        client.create_app(&app).await.unwrap();
        let shop = Self { system, client, org };
        let dir = shop.system.root().join("app");
        for (file, text) in FILES {
            write(&dir.join(file), text);
        }
        shop.ferry(&["apps", "sync", dir.to_str().unwrap(), "--app", "shop", "--no-wait"], 0).await;
        shop
    }

    /// Runs a command that must end with this code; gives both of its outputs.
    async fn ferry(&self, words: &[&str], code: i32) -> (String, String) {
        let output = self.system.ferry(&[&["--org", &self.org], words].concat()).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", shown(&output));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    pub(crate) async fn install(&self, name: &str, more: Value) {
        let mut body = json!({ "name": name, "inputs": { "password": "secret-1" } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body: CreateInstall = serde_json::from_value(body).unwrap();
        self.client.create_install("shop", &body).await.unwrap();
    }

    async fn names(&self, selector: &str) -> Vec<String> {
        let (out, _) = self.ferry(&["installs", "list", "-l", selector, "--json"], 0).await;
        let found: Vec<Value> = serde_json::from_str(&out).unwrap();
        let mut names: Vec<String> = found.iter().map(|i| i["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    async fn provisioned(&self, install: &str) {
        let id = self.client.workflows(Some(install), 1).await.unwrap().remove(0).id;
        self.client.approve_all(&id).await.unwrap();
        self.over(&id, "success").await;
    }

    async fn over(&self, id: &str, status: &str) {
        until(&format!("workflow {id} is {status}"), seconds(60), async || {
            let now = self.client.workflow(id).await.map_err(|e| e.to_string())?.status.status;
            if now == status { Ok(()) } else { Err(now) }
        })
        .await;
    }
}

fn body<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn write(path: &Path, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

#[tokio::test]
async fn labels_come_from_the_app_and_the_install_and_select() {
    let shop = Shop::new().await;
    shop.install("one", json!({ "labels": { "env": "prod", "vendor": "them" } })).await;
    shop.install("two", json!({ "install_config": { "labels": { "env": "dev" } } })).await;
    shop.install("three", json!({})).await;

    let one = shop.client.install("one").await.unwrap();
    let expected = [("env", "prod"), ("vendor", "them"), ("where", "one-x")];
    assert_eq!(one.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(), expected);
    assert_eq!(one.install_config.unwrap().labels.len(), 2, "its own");
    for (selector, expected) in [
        ("env=prod", vec!["one"]),
        ("env!=prod", vec!["three", "two"]),
        ("!env", vec!["three"]),
        ("vendor=us,env", vec!["two"]),
        ("where=three-x", vec!["three"]),
        ("env=none", vec![]),
    ] {
        assert_eq!(shop.names(selector).await, expected, "{selector}");
    }
    shop.ferry(&["installs", "list", "-l", "=x"], 2).await;

    let (out, _) = shop.ferry(&["installs", "label", "one", "env-", "tier=gold", "--json"], 0).await;
    let install: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(install["labels"], json!({ "tier": "gold", "vendor": "them", "where": "one-x" }));
    shop.ferry(&["installs", "label", "one", "a=1", "a-"], 2).await;
    shop.ferry(&["installs", "label", "one", "vendor-"], 0).await;
    let (out, _) = shop.ferry(&["installs", "get", "one"], 0).await;
    assert!(out.contains("tier=gold, vendor=us, where=one-x"), "{out}");

    // Many at a time: none is lost, and templates see them all.
    let calls = (0..10).map(|n| {
        let client = shop.client.clone();
        async move {
            let body = json!({ "labels": { format!("k{n}"): "v" } });
            client.add_install_labels("two", &serde_json::from_value(body).unwrap()).await.unwrap();
        }
    });
    futures::future::join_all(calls).await;
    let two = shop.client.install("two").await.unwrap();
    assert_eq!(two.labels.len(), 13, "{:?}", two.labels);
    let state = shop.client.install_state("two", None).await.unwrap().state;
    let rendered = shop.client.render("one", "component", "api").await.unwrap();
    assert_eq!(rendered.rendered["manifest"], "host: one, vendor: us");
    assert_eq!((&state["labels"]["env"], &state["labels"]["where"]), (&json!("dev"), &json!("two-x")));

    // A page at a time.
    let page = shop.client.select_installs(Some("shop"), Some("where")).await.unwrap();
    assert_eq!(page.len(), 3);
    let wrong = shop.client.select_installs(None, Some("a b=c")).await.unwrap_err();
    assert_eq!(wrong.status(), Some(400));
}

#[tokio::test]
async fn an_install_says_what_it_is_and_gives_itself_as_a_file() {
    let shop = Shop::new().await;
    let client = &shop.client;
    shop.install("one", json!({ "labels": { "env": "prod" }, "install_config": { "approval_option": "approve-all" } }))
        .await;
    let file = client.install_file("one").await.unwrap();
    assert!(file.contains("# Sensitive, so not in this file: password") && !file.contains("secret-1"), "{file}");
    assert!(file.contains("approval_option = \"approve-all\"") && file.contains("env = \"prod\""), "{file}");
    let id = client.install("one").await.unwrap().id;

    let prompt = body(json!({ "approval_option": "prompt" }));
    let changed = client.update_install_config("one", id.as_str(), &prompt).await.unwrap();
    assert_eq!((changed.approval_option.as_str(), changed.labels["env"].as_str()), ("prompt", "prod"));
    let made = client.create_install_config("one", &body(json!({ "approval_option": "approve-all" }))).await.unwrap();
    assert_eq!(made.approval_option, "approve-all");
    let foreign = client.update_install_config("one", "other", &body(json!({}))).await.unwrap_err();
    assert_eq!(foreign.status(), Some(404));
    for wrong in [
        json!({ "approval_option": "auto" }),
        json!({ "component_toggles": { "api": false } }),
        json!({ "component_toggles": { "none": false } }),
        json!({ "vpc_nested_template_url": "https://example.com" }),
        json!({ "labels": { "a b": "c" } }),
    ] {
        let error = client.create_install_config("one", &body(wrong.clone())).await.unwrap_err();
        assert_eq!(error.status(), Some(400), "{wrong}");
    }

    // A component that may be left out comes and goes with its switch.
    shop.provisioned("one").await;
    let turn = async |enabled: bool, plan_only: bool| {
        let body = ToggleInstallComponent { enabled, plan_only };
        client.toggle_component("one", "extra", &body).await.unwrap().workflow_id
    };
    assert_eq!(turn(false, false).await, "", "it was never there");
    let planned = turn(true, true).await;
    shop.over(&planned, "success").await;
    assert_eq!(
        client.install("one").await.unwrap().install_config.unwrap().component_toggles.get("extra"),
        Some(&false)
    );
    let on = turn(true, false).await;
    shop.over(&on, "success").await;
    let state = client.install_state("one", None).await.unwrap().state;
    assert_eq!(state["components"]["extra"]["status"], "active");
    let off = turn(false, false).await;
    shop.over(&off, "success").await;
    let state = client.install_state("one", None).await.unwrap().state;
    assert_ne!(state["components"]["extra"]["status"], "active");
    let fixed = client.toggle_component("one", "api", &body(json!({ "enabled": false }))).await.unwrap_err();
    assert_eq!(fixed.status(), Some(400));
}

#[tokio::test]
async fn installs_are_kept_in_files() {
    let shop = Shop::new().await;
    let dir = shop.system.root().join("files");
    let (one, two) = (dir.join("one.toml"), dir.join("deep/two.toml"));
    write(
        &one,
        "name = \"one\"\napproval_option = \"approve-all\"\n[labels]\nenv = \"prod\"\n[inputs]\nhost = \"a\"\n",
    );
    write(&two, "name = \"two\"\n[labels]\nenv = \"dev\"\n[component_toggles]\nextra = true\n");
    let at = dir.to_str().unwrap();
    let sync = |more: &[&'static str]| {
        let words = ["installs", "sync", "-d", at, "--app", "shop"].into_iter().chain(more.iter().copied());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let run = async |more: &[&'static str], code: i32| {
        let words = sync(more);
        shop.ferry(&words.iter().map(String::as_str).collect::<Vec<_>>(), code).await
    };

    // Looking changes nothing, and what is sensitive is masked.
    let secret = "--input=password=secret-1";
    let (out, _) = run(&["--plan", secret], 0).await;
    assert!(
        out.contains("+ install one") && out.contains("inputs.password: \"***\"") && !out.contains("secret-1"),
        "{out}"
    );
    assert!(shop.client.installs(None).await.unwrap().is_empty());
    let (_, error) = run(&[secret], 2).await;
    assert!(error.contains("--yes"), "nobody is there to ask: {error}");
    let (_, error) = run(&["--yes"], 1).await;
    assert!(error.contains("input `password` is required"), "{error}");

    // The first one passes by itself, the second one waits for an approval that nobody can give here.
    let (_, error) = run(&["--yes", "--wait", secret], 8).await;
    assert!(error.contains("2 created"), "{error}");
    let installs = shop.client.installs(Some("shop")).await.unwrap();
    let one_there = installs.iter().find(|install| install.name == "one").unwrap();
    assert_eq!(one_there.metadata.as_ref().unwrap().managed_by, "nuon/cli/install-config");
    assert_eq!(shop.client.install("one").await.unwrap().composite_component_status, "active");
    shop.provisioned("two").await;
    let state = shop.client.install_state("two", None).await.unwrap().state;
    assert_eq!(state["components"]["extra"]["status"], "active", "the switch was on from the start");

    let (out, error) = run(&["--yes"], 0).await;
    assert!(out.is_empty() && error.contains("nothing changed: 2 installs"), "{out}{error}");

    // What a file does not say any more goes back to the default; switches and approvals follow, and their workflows are waited for.
    write(&one, "name = \"one\"\napproval_option = \"approve-all\"\n[labels]\ntier = \"gold\"\n");
    write(
        &two,
        "name = \"two\"\napproval_option = \"approve-all\"\n[labels]\nenv = \"dev\"\n[inputs]\nhost = \"b\"\n[component_toggles]\nextra = false\n",
    );
    let (out, _) = run(&["--yes", "--wait"], 0).await;
    for part in [
        "~ install one",
        "+   labels.tier: \"gold\"",
        "-   labels.env: \"prod\"",
        "~   inputs.host: \"a\" → \"one\"",
        "~   approval_option: \"prompt\" → \"approve-all\"",
        "~   component_toggles.extra: \"on\" → \"off\"",
        "~   inputs.host: \"one\" → \"b\"",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let inputs = shop.client.install_inputs("two").await.unwrap();
    assert_eq!((inputs.values["host"].as_str(), inputs.values["password"].as_str()), ("b", "***"));
    let state = shop.client.install_state("two", None).await.unwrap().state;
    assert_ne!(state["components"]["extra"]["status"], "active");
    let (out, _) = run(&["--json", "--yes"], 0).await;
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&document["applied"], &document["installs"][0]["action"]), (&json!(false), &json!("none")));

    // What the server says is a file that changes nothing.
    let (file, _) = shop.ferry(&["installs", "export", "two"], 0).await;
    write(&two, &file);
    let (_, error) = run(&["--yes"], 0).await;
    assert!(error.contains("nothing changed"), "{error}");

    // Whatever can't be done is said at once, and nothing is done.
    let metadata = json!({ "metadata": { "managed_by": "nuon/dashboard" } });
    shop.client.update_install("one", &body(metadata)).await.unwrap();
    write(&two, "name = \"two\"\n[inputs]\npassword = \"p\"\nhots = \"x\"\n[components.api]\nhelm_values = \"a: b\"\n");
    let (_, error) = run(&["--yes"], 2).await;
    for part in ["managed by `nuon/dashboard`", "is sensitive", "did you mean `host`", "`helm_values` is for charts"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    write(&two, "name = \"two\"\nlabel = 1\n[aws_account]\n");
    let (_, error) = run(&["--yes"], 1).await;
    assert!(error.contains("two.toml") && error.contains("missing_key"), "{error}");
    fs_err::remove_file(&two).unwrap();
    run(&["--yes", "--take-over"], 0).await;
    let kept = shop.client.install("one").await.unwrap().metadata.unwrap();
    assert_eq!(kept.managed_by, "nuon/cli/install-config");
    shop.ferry(&["installs", "sync", one.to_str().unwrap(), "--app", "none", "--plan"], 4).await;
}
