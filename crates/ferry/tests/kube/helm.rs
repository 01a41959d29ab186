//! Charts, by the real helm: installed, upgraded, brought back, repaired and uninstalled.

use std::process::Command;

use needs::needs;
use serde_json::{Value, json};
use testkit::kube::{Cluster, images};

use crate::stage::{Stage, config_map, deployment, ended, newest, planned};

/// A word from the values.
const WORD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-word\ndata:\n  word: {{ .Values.word | quote }}\n";
/// Run before each install and upgrade.
const HOOK: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-hook\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-delete-policy: before-hook-creation\ndata:\n  word: {{ .Values.word | quote }}\n";

/// The real helm, as a person runs it.
fn helm(stage: &Stage, driver: &str, words: &[&str]) -> String {
    let mut command = Command::new("helm");
    command.args(words).args(["--namespace", stage.namespace.name(), "--kubeconfig"]).arg(Cluster::get().kubeconfig());
    let output = command.env("HELM_DRIVER", driver).output().expect("helm runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn history(stage: &Stage, driver: &str, release: &str) -> Vec<(u64, String)> {
    let told = helm(stage, driver, &["history", release, "--output", "json"]);
    let told: Vec<Value> = serde_json::from_str(&told).unwrap();
    told.iter().map(|one| (one["revision"].as_u64().unwrap(), one["status"].as_str().unwrap().to_owned())).collect()
}

#[tokio::test]
async fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    needs!(Kube);
    let stage = Stage::start("helm").await;
    let word = || stage.object("configmap", "web-release-word").map(|object| object["data"]["word"].clone());
    let templates = [("templates/word.yaml", WORD), ("templates/hook.yaml", HOOK)];
    stage.chart("web", "", &[("word", "one")], &templates);
    stage.chart("kept", "storage_driver = \"secret\"", &[("word", "one")], &templates[..1]);
    stage.sync().await;

    // There is no release yet: nothing to tear down is no failure.
    let done = stage.run(json!({ "type": "teardown_component", "component": "web" })).await;
    assert_eq!(ended(&done, "teardown web"), "auto-skipped");

    let id = stage.deploy("web").await;
    let (step, plan) = stage.waiting(&id, "web").await;
    let address = format!("ConfigMap/{}/web-release-word", stage.namespace.name());
    assert_eq!(planned(&plan, &address)["action"], "create", "{plan}");
    assert_eq!(word(), None, "a plan changes nothing");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(word(), Some(json!("one")));
    assert_eq!(stage.object("configmap", "web-release-hook").unwrap()["data"]["word"], "one", "hooks run");
    assert_eq!(history(&stage, "configmap", "web-release"), [(1, "deployed".to_owned())]);
    let again = stage.deployed("web").await;
    assert_eq!(ended(&again, "apply web"), "auto-skipped", "there is nothing to do");
    assert_eq!(stage.look("web").await.status.status, "no-drift");
    stage.deployed("kept").await;
    assert_eq!(history(&stage, "secret", "kept-release"), [(1, "deployed".to_owned())]);

    // Values change, and change back.
    stage.chart("web", "", &[("word", "two")], &templates);
    stage.sync().await;
    let id = stage.begin(json!({ "type": "deploy_components", "approve_all": true })).await;
    let done = stage.until(&id, "success").await;
    assert_eq!(ended(&done, "apply web"), "success");
    assert_eq!(word(), Some(json!("two")));
    stage.ferry(&["installs", "rollback", stage.install(), "--approve-all"]).await;
    assert_eq!(word(), Some(json!("one")), "it is back at what was deployed before");
    assert_eq!(history(&stage, "configmap", "web-release").len(), 3);

    // By hand: changed, deleted.
    stage.patch("configmap", "web-release-word", &json!({ "data": { "word": "by hand" } }));
    assert_eq!(stage.look("web").await.status.status, "drifted");
    stage.reconciled("web").await;
    assert_eq!(word(), Some(json!("one")));
    stage.namespace.kubectl(&["delete", "configmap", "web-release-word"]);
    assert_eq!(stage.look("web").await.status.status, "drifted");
    stage.reconciled("web").await;
    assert_eq!(word(), Some(json!("one")));

    // Uninstalled; and once by hand before, which is no failure.
    stage.run(json!({ "type": "teardown_component", "component": "web" })).await;
    assert_eq!(word(), None);
    assert_eq!(stage.part("components/web").await["status"], "inactive");
    helm(&stage, "secret", &["uninstall", "kept-release"]);
    let done = stage.run(json!({ "type": "teardown_component", "component": "kept" })).await;
    assert_eq!(stage.part("components/kept").await["status"], "inactive", "{:?}", newest(&done, "teardown kept"));
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn what_can_not_be_approved_or_adopted_is_refused() {
    needs!(Kube);
    let stage = Stage::start("helm").await;
    let random =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: random\ndata:\n  word: {{ randAlphaNum 12 | quote }}\n";
    stage.chart(
        "random",
        "",
        &[],
        &[("templates/steady.yaml", &config_map("steady", "word")), ("templates/random.yaml", random)],
    );
    let adopted = config_map("adopted", "chart");
    stage.chart("adopt", "", &[], &[("templates/it.yaml", &adopted)]);
    stage.sync().await;
    let told = stage.no_plan("random").await;
    assert!(told.contains("random/templates/random.yaml") && told.contains("each time"), "{told}");

    // An object that is there and not of this release.
    stage.namespace.apply_yaml(&config_map("adopted", "theirs"));
    let told = stage.no_plan("adopt").await;
    assert!(told.contains("adopted") && told.contains("exists"), "{told}");
    stage.chart("adopt", "take_ownership = true", &[], &[("templates/it.yaml", &adopted)]);
    stage.sync().await;
    let id = stage.deploy("adopt").await;
    let (step, plan) = stage.waiting(&id, "adopt").await;
    assert_eq!(planned(&plan, &format!("ConfigMap/{}/adopted", stage.namespace.name()))["action"], "update", "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(stage.object("configmap", "adopted").unwrap()["data"]["word"], "chart");
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_failed_upgrade_is_explained_and_an_unfinished_one_is_repaired() {
    needs!(KubeNode);
    let stage = Stage::start("helm").await;
    let image = "{{ .Values.image }}";
    let template = deployment("web", "web", image);
    let chart = |settings: &str, image: &str| {
        stage.chart("web", settings, &[("image", image)], &[("templates/web.yaml", &template)]);
    };
    let running = || {
        let found = stage.object("deployment", "web").unwrap();
        found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    chart("", images::APP_1);
    stage.sync().await;
    stage.deployed("web").await;
    assert_eq!(stage.part("components/web").await["outputs"]["deployments"][0]["ready_replicas"], 1);

    let soon = "deploy_timeout = \"32s\"";
    chart(soon, "ferry.test/no-such-image:7");
    stage.sync().await;
    let (told, _) = stage.fails("web").await;
    assert!(told.contains("ferry.test/no-such-image:7") && told.contains("can't be pulled"), "{told}");
    assert_eq!(running(), "ferry.test/no-such-image:7", "it is as helm left it");

    // Mended, asked for, and then one that goes back by itself.
    chart("", images::APP_2);
    stage.sync().await;
    let id = stage.deploy("web").await;
    let (step, _) = stage.waiting(&id, "web").await;
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    chart(&format!("{soon}\nrollback_on_failure = true"), "ferry.test/no-such-image:8");
    stage.sync().await;
    let (told, _) = stage.fails("web").await;
    assert!(told.contains("no-such-image:8"), "{told}");
    assert_eq!(running(), images::APP_2, "it went back");

    // An upgrade that died in the middle: its record is stuck, which helm alone refuses to go past.
    let last = history(&stage, "configmap", "web-release").last().unwrap().0;
    stuck(&stage, "web-release", last);
    let told = history(&stage, "configmap", "web-release");
    assert_eq!(told.last().unwrap().1, "pending-upgrade", "{told:?}");
    chart("", images::APP_1);
    stage.sync().await;
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "web", "approve_all": true })).await;
    let (step, plan) = stage.waiting(&id, "web").await;
    assert!(plan["ask"].to_string().contains("pending-upgrade"), "a person is asked: {plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(running(), images::APP_1);
    assert_eq!(history(&stage, "configmap", "web-release").last().unwrap().1, "deployed");
    stage.run(json!({ "type": "teardown_component", "component": "web" })).await;
    assert_eq!(stage.object("deployment", "web"), None);
    stage.system.until_quiet().await;
}

/// Adds the record of an upgrade that has not ended, as a helm leaves it that was killed.
fn stuck(stage: &Stage, release: &str, last: u64) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as B64;
    use std::io::{Read as _, Write as _};
    let (name, next) = (|n| format!("sh.helm.release.v1.{release}.v{n}"), last + 1);
    let mut record = stage.object("configmap", &name(last)).expect("a record");
    let packed = B64.decode(record["data"]["release"].as_str().unwrap()).unwrap();
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let mut content: Value = serde_json::from_slice(&text).unwrap();
    content["info"]["status"] = json!("pending-upgrade");
    content["version"] = json!(next);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(content.to_string().as_bytes()).unwrap();
    record["data"]["release"] = json!(B64.encode(packer.finish().unwrap()));
    let mut labels = record["metadata"]["labels"].clone();
    labels["status"] = json!("pending-upgrade");
    labels["version"] = json!(next.to_string());
    record["metadata"] = json!({ "name": name(next), "labels": labels });
    stage.namespace.apply_yaml(&record.to_string());
}
