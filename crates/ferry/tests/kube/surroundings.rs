//! What stands around an app in its cluster: webhooks, autoscalers, versions that are converted, other clusters, policies.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use needs::needs;
use serde_json::{Value, json};
use testkit::kube::{Cluster, images};
use testkit::tls::Certificate;

use crate::stage::{Stage, config_map, deployment, ended, newest, planned};

/// A webhook that the API server reaches on this machine's loopback.
struct Webhook {
    process: Child,
    port: u16,
    authority: String,
}

impl Webhook {
    fn start(stage: &Stage) -> Self {
        let dir = stage.system.root().join("webhook");
        fs_err::create_dir_all(&dir).unwrap();
        let certificate = Certificate::make(&dir, &["127.0.0.1"]);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kube/webhook.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(port.to_string()).arg(&certificate.cert).arg(&certificate.key);
        let process = command.stdin(Stdio::null()).spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, port, authority: B64.encode(fs_err::read(&certificate.ca).unwrap()) }
    }

    fn config(&self, path: &str) -> Value {
        json!({ "url": format!("https://127.0.0.1:{}/{path}", self.port), "caBundle": self.authority })
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An object of the whole cluster, which goes with the test.
struct ForAll(&'static str, String);

impl ForAll {
    fn apply(kind: &'static str, object: &Value) -> Self {
        Cluster::get().apply_yaml(&object.to_string());
        Self(kind, object["metadata"]["name"].as_str().unwrap().to_owned())
    }
}

impl Drop for ForAll {
    fn drop(&mut self) {
        let _ = Cluster::get().try_kubectl(&["delete", self.0, &self.1, "--wait=false", "--ignore-not-found"]);
    }
}

#[tokio::test]
async fn what_webhooks_autoscalers_and_others_may_change_is_no_drift() {
    needs!(Kube);
    needs!(KubeOwn);
    let stage = Stage::start("around").await;
    let namespace = stage.namespace.name().to_owned();
    let webhook = Webhook::start(&stage);
    let _mutating = ForAll::apply(
        "mutatingwebhookconfiguration",
        &json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": format!("{namespace}-labels") },
            "webhooks": [{
                "name": "labels.ferry.test", "clientConfig": webhook.config("mutate"), "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "reinvocationPolicy": "IfNeeded",
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "rules": [{ "operations": ["CREATE", "UPDATE"], "apiGroups": ["", "apps"], "apiVersions": ["v1"],
                    "resources": ["configmaps", "deployments"] }],
            }],
        }),
    );
    let scaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: scaled\nspec:\n  minReplicas: 2\n  maxReplicas: 4\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}\n  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]\n";
    let ours =
        |word: &str| [config_map("plain", word), deployment("scaled", "scaled", images::SLEEP), scaler.into()].concat();
    let settings = "wait = false\nignore_changes = [\"ConfigMap/plain: data.counter\"]";
    stage.manifest("it", settings, &ours("one"));
    let charted = [config_map("charted", "one"), deployment("free", "free", images::SLEEP)].concat();
    let settings = "wait = false\nignore_changes = [\"Deployment/free: spec.replicas\"]";
    stage.chart("chart", settings, &[], &[("templates/all.yaml", &charted)]);
    stage.sync().await;
    stage.deployed("it").await;
    stage.deployed("chart").await;
    for name in ["plain", "charted"] {
        assert_eq!(
            stage.object("configmap", name).unwrap()["metadata"]["labels"]["injected"],
            "yes",
            "the webhook works"
        );
    }
    stage
        .namespace
        .until("two replicas", |n| n.kubectl_json(&["get", "deployment", "scaled"])["spec"]["replicas"] == 2);
    stage.patch("configmap", "plain", &json!({ "data": { "counter": "17" } }));
    stage.namespace.kubectl(&["scale", "deployment", "free", "--replicas", "3"]);
    for component in ["it", "chart"] {
        let step = stage.look(component).await;
        assert_eq!(step.status.status, "no-drift", "{component}: {}", step.status.status_human_description);
        let again = stage.deployed(component).await;
        assert_eq!(ended(&again, &format!("apply {component}")), "auto-skipped", "nothing is left to do");
    }

    // A deploy leaves alone what others set, and changes what the app says.
    stage.manifest("it", "wait = false\nignore_changes = [\"ConfigMap/plain: data.counter\"]", &ours("two"));
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    assert_eq!((&plan["changes"]["update"], &plan["changes"]["create"]), (&json!(1), &json!(0)), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    let plain = stage.object("configmap", "plain").unwrap();
    assert_eq!((&plain["data"]["word"], &plain["data"]["counter"]), (&json!("two"), &json!("17")));
    assert_eq!(stage.object("deployment", "scaled").unwrap()["spec"]["replicas"], 2, "the autoscaler's number stays");

    // Helm applies a chart as a whole, so its plan shows what it sets back on the way.
    let charted = [config_map("charted", "two"), deployment("free", "free", images::SLEEP)].concat();
    stage.chart("chart", settings, &[], &[("templates/all.yaml", &charted)]);
    stage.sync().await;
    let id = stage.deploy("chart").await;
    let (step, plan) = stage.waiting(&id, "chart").await;
    let back = planned(&plan, &format!("Deployment/{namespace}/free"));
    assert!(back["reason"].as_str().unwrap_or_default().contains("sets back"), "{back}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(stage.object("deployment", "free").unwrap()["spec"]["replicas"], 1);

    // What nobody may change is found, each by its name.
    stage.patch("configmap", "plain", &json!({ "data": { "word": "by hand" } }));
    let step = stage.look("it").await;
    assert_eq!(step.status.status, "drifted");
    stage.namespace.kubectl(&["scale", "deployment", "free", "--replicas", "1"]);
    stage.patch("configmap", "charted", &json!({ "data": { "word": "by hand" } }));
    assert_eq!(stage.look("chart").await.status.status, "drifted");
}

#[tokio::test]
async fn versions_of_a_kind_are_converted() {
    needs!(Kube);
    needs!(KubeOwn);
    let stage = Stage::start("versions").await;
    let webhook = Webhook::start(&stage);
    let group = format!("{}.ferry.test", stage.namespace.name());
    let version = |name: &str, field: &str, stored: bool| {
        let text = json!({ "type": "object", "properties": { (field): { "type": "string" } } });
        json!({ "name": name, "served": true, "storage": stored,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": text } } } })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("greetings.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "plural": "greetings", "singular": "greeting", "kind": "Greeting" },
            "versions": [version("v1alpha1", "text", false), version("v1", "words", true)],
            "conversion": { "strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": webhook.config("convert") } },
        },
    });
    let greeting = |version: &str, field: &str, words: &str| json!({ "apiVersion": format!("{group}/{version}"), "kind": "Greeting", "metadata": { "name": "hello" }, "spec": { (field): words } });
    let resource = format!("greetings.{group}");
    let there = || stage.object(&resource, "hello").map(|object| object["spec"]["words"].clone());
    let write = |greeting: &Value| stage.manifest("it", "", &format!("{definition}\n---\n{greeting}\n"));

    // The kind and its first object come in one apply, in the version that is not stored.
    write(&greeting("v1alpha1", "text", "good morning"));
    stage.sync().await;
    stage.deployed("it").await;
    assert_eq!(there(), Some(json!("good morning")));
    assert_eq!(stage.look("it").await.status.status, "no-drift");

    // The same in the other version is the same object: it is not deleted, and says the same.
    write(&greeting("v1", "words", "good morning"));
    stage.sync().await;
    let uid = stage.object(&resource, "hello").unwrap()["metadata"]["uid"].clone();
    stage.deployed("it").await;
    assert_eq!(stage.object(&resource, "hello").unwrap()["metadata"]["uid"], uid, "it is the same object");
    write(&greeting("v1", "words", "good evening"));
    stage.sync().await;
    stage.deployed("it").await;
    assert_eq!(there(), Some(json!("good evening")));
    assert_eq!(stage.look("it").await.status.status, "no-drift");
    stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    let gone = Cluster::get().kubectl(&["get", "crd", &resource, "--ignore-not-found"]);
    assert_eq!(gone, "");
}

#[tokio::test]
async fn another_cluster_is_reached_by_its_context() {
    needs!(Kube);
    let mut stage = Stage::start("contexts").await;
    let known = Cluster::get().kubectl_json(&["config", "view", "--raw", "--minify", "--flatten"]);
    // The runner itself is let into none.
    stage.restart_without_cluster();
    let module = format!(
        "output \"cluster\" {{\n  sensitive = true\n  value = {{ kubeconfig = {} }}\n}}\n",
        json!(known.to_string())
    );
    stage.module("other", &module);
    stage.file("kubernetes_contexts.toml", "[[kubernetes_context]]\nname = \"there\"\ncomponent = \"other\"\n");
    stage.manifest("lost", "", &config_map("lost", "one"));
    stage.manifest("it", "kubernetes_context = \"there\"", &config_map("it", "one"));
    stage.chart(
        "chart",
        "kubernetes_context = \"there\"",
        &[],
        &[("templates/it.yaml", &config_map("charted", "one"))],
    );
    let namespace = stage.namespace.name().to_owned();
    stage.file(
        "actions/look.toml",
        &format!(
            "name = \"look\"\nkubernetes_context = \"there\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"look\"\ninline_contents = \"\"\"\nkubectl get configmap it -n {namespace} -o jsonpath={{.data.word}} > {}\n\"\"\"\n",
            stage.system.witness("looked").display()
        ),
    );
    stage.sync().await;
    let told = stage.no_plan("lost").await;
    assert!(told.contains("--kubeconfig") && told.contains("`cluster`"), "{told}");
    stage.deployed("other").await;
    stage.deployed("it").await;
    stage.deployed("chart").await;
    for name in ["it", "charted"] {
        assert_eq!(stage.object("configmap", name).unwrap()["data"]["word"], "one");
    }
    stage.ferry(&["actions", "run", "look", "--install", stage.install()]).await;
    assert_eq!(stage.system.lines("looked"), ["one"]);
    // The credentials came from a sealed output: the control plane never saw them.
    let token = known["users"][0]["user"]["token"].as_str().unwrap_or("no token");
    for table in ["revisions", "plans", "events", "workflow_steps", "install_parts", "executions", "jobs"] {
        assert!(!stage.table(table).contains(token), "{table}");
    }
}

#[tokio::test]
async fn policies_judge_objects_and_charts_before_anyone_approves() {
    needs!(Kube);
    let stage = Stage::start("policies").await;
    let rego = "package nuon\n\ndeny contains msg if {\n  input.review.object.data.word == \"forbidden\"\n  msg := sprintf(\"%s says a forbidden word\", [input.review.object.metadata.name])\n}\n\nwarn contains msg if {\n  input.review.kind.kind == \"ConfigMap\"\n  msg := \"a ConfigMap\"\n}\n";
    let policy = |name: &str, kind: &str| {
        format!(
            "[[policy]]\nname = \"{name}\"\ntype = \"{kind}\"\nengine = \"opa\"\ncomponents = [\"*\"]\ncontents = \"./policies/words.rego\"\n"
        )
    };
    stage.file("policies/words.rego", rego);
    stage.file("policies.toml", &(policy("words", "kubernetes_manifest") + &policy("chart-words", "helm_chart")));
    for word in ["forbidden", "fine"] {
        stage.manifest("it", "", &config_map("it", word));
        stage.chart("chart", "", &[], &[("templates/it.yaml", &config_map("charted", word))]);
        stage.sync().await;
        for (component, object) in [("it", "it"), ("chart", "charted")] {
            if word == "forbidden" {
                let told = stage.no_plan(component).await;
                assert!(told.contains(&format!("{object} says a forbidden word")), "{told}");
                assert_eq!(stage.object("configmap", object), None);
            } else {
                let id = stage.deploy(component).await;
                let (step, plan) = stage.waiting(&id, component).await;
                assert!(plan["policies"].to_string().contains("a ConfigMap"), "{plan}");
                stage.approve(&step).await;
                stage.until(&id, "success").await;
            }
        }
    }
}

#[tokio::test]
async fn values_files_and_kustomizations_are_taken_in_their_own_order() {
    needs!(Kube);
    let stage = Stage::start("sources").await;
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ordered\ndata:\n{{ toYaml .Values.all | indent 2 }}\n";
    let files =
        "[[values_file]]\ncontents = \"../values/first.yaml\"\n[[values_file]]\ncontents = \"../values/second.yaml\"";
    stage.chart(
        "ordered",
        "",
        &[("all.d", "values"), ("all.e", "install {{.nuon.install.id}}")],
        &[("templates/it.yaml", template)],
    );
    let written = fs_err::read_to_string(stage.app_file("components/ordered.toml")).unwrap();
    stage.file("components/ordered.toml", &format!("{written}{files}\n"));
    stage.file("src/ordered/values.yaml", "all: {a: chart, b: chart, c: chart, d: chart}\n");
    stage.file("values/first.yaml", "all: {b: first, c: first, d: first}\n");
    stage.file("values/second.yaml", "all: {c: second, d: second}\n");

    let namespace = stage.namespace.name().to_owned();
    stage.file(
        "components/kustomized.toml",
        &format!(
            "name = \"kustomized\"\ntype = \"kubernetes_manifest\"\nnamespace = \"{namespace}\"\n[kustomize]\npath = \"over\"\npatches = [\"patch.yaml\"]\n[local]\ndirectory = \"src/kustomized\"\n"
        ),
    );
    stage.file("src/kustomized/base/kustomization.yaml", "resources: [map.yaml]\n");
    stage.file("src/kustomized/base/map.yaml", &config_map("map", "base"));
    stage.file("src/kustomized/over/kustomization.yaml", "resources: [../base]\nnamePrefix: pre-\n");
    stage.file(
        "src/kustomized/patch.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {word: patched, more: patch}\n",
    );
    stage.sync().await;
    stage.deployed("ordered").await;
    let data = stage.object("configmap", "ordered").unwrap()["data"].clone();
    let id = stage.system.install.id.as_str();
    assert_eq!(data, json!({ "a": "chart", "b": "first", "c": "second", "d": "values", "e": format!("install {id}") }));
    stage.deployed("kustomized").await;
    assert_eq!(stage.object("configmap", "pre-map").unwrap()["data"], json!({ "word": "patched", "more": "patch" }));
    assert_eq!(stage.look("kustomized").await.status.status, "no-drift");
    let done = stage.run(json!({ "type": "teardown_component", "component": "kustomized" })).await;
    assert_eq!(ended(&done, "teardown kustomized"), "success", "{:?}", newest(&done, "teardown kustomized"));
    assert_eq!(stage.object("configmap", "pre-map"), None);
}

#[tokio::test]
async fn an_install_lays_its_own_values_over_a_chart() {
    needs!(Kube);
    let stage = Stage::start("over").await;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: over\ndata:\n{{- range $key, $value := .Values.all }}\n  {{ $key }}: {{ $value | toString | quote }}\n{{- end }}\n";
    let values = [("all.c", "values"), ("all.d", "values"), ("all.big", "12345678901"), ("all.small", "12345678902")];
    stage.chart("over", "", &values, &[("templates/it.yaml", template)]);
    let written = fs_err::read_to_string(stage.app_file("components/over.toml")).unwrap();
    stage.file("components/over.toml", &format!("{written}[[values_file]]\ncontents = \"../values/one.yaml\"\n"));
    stage.file("src/over/values.yaml", "all: {a: chart, b: chart, c: chart, d: chart, gone: chart}\n");
    stage.file("values/one.yaml", "all: {b: file, c: file, d: file}\n");
    stage.sync().await;
    stage.deployed("over").await;
    let data = async || stage.object("configmap", "over").unwrap()["data"].clone();
    let app = json!({ "a": "chart", "b": "file", "c": "values", "d": "values", "gone": "chart", "big": "12345678901", "small": "12345678902" });
    assert_eq!(data().await, app);

    // It wins over all the others, also over a number that helm is given apart from files, and is no no-op.
    let file = stage.app_file("over.yaml");
    stage.file("over.yaml", "all:\n  d: over {{ .nuon.install.name }}\n  big: text\n  gone: null\n");
    let set = format!("over={}", file.display());
    stage.ferry(&["installs", "overrides", stage.install(), "--set", &set, "--approve-all"]).await;
    let name = stage.install();
    let over = json!({ "a": "chart", "b": "file", "c": "values", "d": format!("over {name}"), "big": "text", "small": "12345678902" });
    assert_eq!(data().await, over);
    assert_eq!(stage.look("over").await.status.status, "no-drift");

    // Drift is a difference from what was deployed, with what was laid over it then.
    stage.file("over.yaml", "all: {d: later}\n");
    stage.ferry(&["installs", "overrides", stage.install(), "--set", &set, "--no-deploy"]).await;
    assert_eq!(stage.look("over").await.status.status, "no-drift");
    stage.patch("configmap", "over", &json!({ "data": { "d": "by hand" } }));
    assert_eq!(stage.look("over").await.status.status, "drifted");
    stage.reconciled("over").await;
    assert_eq!(data().await, over);
    let id = stage.deploy("over").await;
    let (step, plan) = stage.waiting(&id, "over").await;
    assert!(plan.to_string().contains("later"), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(data().await["d"], "later");
    assert_eq!(data().await["big"], "12345678901");

    stage.ferry(&["installs", "overrides", stage.install(), "--unset", "over", "--approve-all"]).await;
    assert_eq!(data().await, app);
    stage.run(json!({ "type": "teardown_component", "component": "over" })).await;
    assert_eq!(stage.object("configmap", "over"), None);
}
