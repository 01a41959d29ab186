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
    assert_eq!(ended(&again, "apply web"), "auto-skipped", "there is nothing to do: {again:?}");
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

/// Run before the release is taken away, and left there.
const BYE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bye\n  annotations:\n    helm.sh/hook: pre-delete\ndata:\n  word: bye\n";
const KEPT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations:\n    helm.sh/resource-policy: keep\ndata:\n  word: stays\n";

#[tokio::test]
async fn what_helm_does_apart_from_the_release_is_in_the_plan() {
    needs!(Kube);
    let stage = Stage::start("helm").await;
    let cluster = Cluster::get();
    let namespace = stage.namespace.name().to_owned();
    let own = format!("{namespace}-own");
    let group = format!("{}.example.test", namespace.replace('-', ""));
    let schema =
        "{openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}";
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: gadgets.{group}\nspec:\n  group: {group}\n  scope: Namespaced\n  names: {{plural: gadgets, kind: Gadget}}\n  versions:\n  - {{name: v1, served: true, storage: true, schema: {schema}}}\n"
    );
    let gadget = format!("apiVersion: {group}/v1\nkind: Gadget\nmetadata:\n  name: first\nspec:\n  size: 3\n");
    let write = |word: &str, release: &str| {
        let templates = [
            ("crds/gadgets.yaml", definition.as_str()),
            ("templates/gadget.yaml", &gadget),
            ("templates/hook.yaml", HOOK),
            ("templates/bye.yaml", BYE),
            ("templates/kept.yaml", KEPT),
        ];
        stage.chart("web", "", &[("word", word)], &templates);
        let file = stage.app_file("components/web.toml");
        let text = fs_err::read_to_string(&file).unwrap();
        fs_err::write(&file, text.replace(&namespace, &own).replace("web-release", release)).unwrap();
    };
    let there = |kind: &str, name: &str| {
        let told = cluster.kubectl(&["--namespace", &own, "get", kind, name, "--ignore-not-found", "--output", "name"]);
        !told.is_empty()
    };
    let reason = |plan: &Value, address: &str| {
        let one = planned(plan, address);
        format!("{}: {}", one["action"].as_str().unwrap(), one["reason"].as_str().unwrap_or_default())
    };
    let (map, hook) = (|name: &str| format!("ConfigMap/{own}/{name}"), "web-release-hook");

    // The namespace, a definition with its first object, and a hook: all in the plan of the first install.
    write("one", "web-release");
    stage.sync().await;
    let id = stage.deploy("web").await;
    let (step, plan) = stage.waiting(&id, "web").await;
    assert_eq!(reason(&plan, &format!("Namespace/{own}")), "create: which Helm creates for the release");
    assert_eq!(reason(&plan, &map(hook)), "create: which Helm runs at pre-install");
    assert!(reason(&plan, &format!("Gadget.{group}/{own}/first")).starts_with("create"), "{plan}");
    assert!(plan.to_string().contains(&format!("gadgets.{group}")), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert!(there(&format!("gadgets.{group}"), "first") && there("configmap", hook) && there("configmap", "kept"));
    let again = stage.deployed("web").await;
    assert_eq!(ended(&again, "apply web"), "auto-skipped", "a hook that is as it was is nothing to do");
    assert_eq!(stage.look("web").await.status.status, "no-drift");

    // What others change in a custom object comes back, though Helm itself does not look at what is there.
    let size = || cluster.kubectl_json(&["--namespace", &own, "get", &format!("gadgets.{group}"), "first"]);
    let patch = json!({ "spec": { "size": 9 } }).to_string();
    cluster.kubectl(&[
        "--namespace",
        &own,
        "patch",
        &format!("gadgets.{group}"),
        "first",
        "--type=merge",
        "-p",
        &patch,
    ]);
    assert_eq!(stage.look("web").await.status.status, "drifted");
    stage.reconciled("web").await;
    assert_eq!(size()["spec"]["size"], 3);
    assert_eq!(stage.look("web").await.status.status, "no-drift");

    // Only the hook changes.
    write("two", "web-release");
    stage.sync().await;
    let id = stage.deploy("web").await;
    let (step, plan) = stage.waiting(&id, "web").await;
    assert_eq!(
        reason(&plan, &map(hook)),
        "replace_destroy_first: which Helm runs at pre-upgrade: it is deleted and created again"
    );
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    let word = cluster.kubectl_json(&["--namespace", &own, "get", "configmap", hook]);
    assert_eq!(word["data"]["word"], "two");

    // Under another name, Helm would install it once more.
    write("two", "other");
    stage.sync().await;
    let told = stage.no_plan("web").await;
    assert!(told.contains("web-release") && told.contains("a second one"), "{told}");
    write("two", "web-release");
    stage.sync().await;

    // What stays is in the plan of the teardown, and stays.
    let id = stage.teardown("web").await;
    let (step, plan) = stage.waits(&id, "plan teardown web").await;
    assert_eq!(reason(&plan, &map("bye")), "create: which Helm runs at pre-delete");
    assert_eq!(reason(&plan, &map("kept")), "forget: because the chart says `resource-policy: keep`");
    assert_eq!(reason(&plan, &map(hook)), "forget: because Helm leaves what a hook has made");
    assert!(reason(&plan, &format!("Gadget.{group}/{own}/first")).starts_with("destroy"), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert!(!there(&format!("gadgets.{group}"), "first"));
    for name in ["bye", "kept", hook] {
        assert!(there("configmap", name), "{name}");
    }
    cluster.kubectl(&["delete", "crd", &format!("gadgets.{group}")]);
    cluster.kubectl(&["delete", "namespace", &own]);
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
    stuck(&stage, "web-release", last, "pending-upgrade");
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

    // One that died while it took the release away: no record is of use any more.
    let last = history(&stage, "configmap", "web-release").last().unwrap().0;
    stuck(&stage, "web-release", last, "uninstalling");
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "web", "approve_all": true })).await;
    let (step, plan) = stage.waiting(&id, "web").await;
    assert!(plan["ask"].to_string().contains("uninstalling"), "a person is asked: {plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(history(&stage, "configmap", "web-release"), [(1, "deployed".to_owned())]);
    assert_eq!(running(), images::APP_1);
    stage.run(json!({ "type": "teardown_component", "component": "web" })).await;
    assert_eq!(stage.object("deployment", "web"), None);
    stage.system.until_quiet().await;
}

/// Leaves the record of something that has not ended, as a helm does that was killed.
fn stuck(stage: &Stage, release: &str, last: u64, status: &str) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as B64;
    use std::io::{Read as _, Write as _};
    // An upgrade has a record of its own; what is taken away says so in its last one.
    let next = if status == "uninstalling" { last } else { last + 1 };
    let name = |n| format!("sh.helm.release.v1.{release}.v{n}");
    let mut record = stage.object("configmap", &name(last)).expect("a record");
    let packed = B64.decode(record["data"]["release"].as_str().unwrap()).unwrap();
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let mut content: Value = serde_json::from_slice(&text).unwrap();
    content["info"]["status"] = json!(status);
    content["version"] = json!(next);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(content.to_string().as_bytes()).unwrap();
    record["data"]["release"] = json!(B64.encode(packer.finish().unwrap()));
    let mut labels = record["metadata"]["labels"].clone();
    labels["status"] = json!(status);
    labels["version"] = json!(next.to_string());
    record["metadata"] = json!({ "name": name(next), "labels": labels });
    if next == last {
        stage.namespace.kubectl(&["delete", "configmap", &name(last)]);
    }
    stage.namespace.apply_yaml(&record.to_string());
}
