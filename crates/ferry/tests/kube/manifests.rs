//! Plain objects: planned by the cluster's own dry run, applied exactly, watched until they are ready, and deleted.

use needs::needs;
use serde_json::json;
use testkit::kube::{Cluster, images};

use crate::stage::{Stage, config_map, deployment, ended, newest, planned};

#[tokio::test]
async fn objects_are_created_changed_pruned_and_torn_down() {
    needs!(Kube);
    let stage = Stage::start("objects").await;
    let of = |name: &str| format!("ConfigMap/{}/{name}", stage.namespace.name());
    let word = |name: &str| stage.object("configmap", name).map(|object| object["data"]["word"].clone());

    stage.manifest("it", "", &[config_map("a", "one"), config_map("b", "one")].concat());
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    assert_eq!(plan["changes"]["create"], 2, "{plan}");
    assert_eq!(planned(&plan, &of("a"))["action"], "create");
    assert_eq!(word("a"), None, "a plan changes nothing");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!((word("a"), word("b")), (Some(json!("one")), Some(json!("one"))));
    let part = stage.part("components/it").await;
    assert_eq!(part["status"], "active");
    assert_eq!(part["outputs"]["resources"].as_array().unwrap().len(), 2, "{part}");

    let again = stage.deployed("it").await;
    assert_eq!(ended(&again, "apply it"), "auto-skipped", "there is nothing to do");
    assert_eq!(stage.look("it").await.status.status, "no-drift");

    // One is changed, one is dropped, one is new.
    stage.manifest("it", "", &[config_map("a", "two"), config_map("c", "two")].concat());
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    let changes = &plan["changes"];
    assert_eq!(
        (&changes["create"], &changes["update"], &changes["destroy"]),
        (&json!(1), &json!(1), &json!(1)),
        "{plan}"
    );
    assert_eq!(planned(&plan, &of("b"))["reason"], "because it is no longer in the configuration");
    let changed = planned(&plan, &of("a"))["attributes"].as_array().unwrap();
    assert_eq!(changed.len(), 1, "nothing but what was changed is shown: {plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!((word("a"), word("b"), word("c")), (Some(json!("two")), None, Some(json!("two"))));

    // Drift: changed by hand, deleted by hand.
    stage.patch("configmap", "a", &json!({ "data": { "word": "three" } }));
    assert_eq!(stage.look("it").await.status.status, "drifted");
    stage.reconciled("it").await;
    assert_eq!(word("a"), Some(json!("two")));
    stage.namespace.kubectl(&["delete", "configmap", "a"]);
    assert_eq!(stage.look("it").await.status.status, "drifted");
    stage.reconciled("it").await;
    assert_eq!(word("a"), Some(json!("two")));

    // The object was changed between the plan and its approval: nothing is applied, and what is planned anew asks anew.
    stage.manifest("it", "", &[config_map("a", "four"), config_map("c", "four")].concat());
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, _) = stage.waiting(&id, "it").await;
    stage.patch("configmap", "a", &json!({ "data": { "word": "by hand" } }));
    stage.approve(&step).await;
    let (again, _) = stage.waiting_again(&id, "it", &step).await;
    assert_eq!((word("a"), word("c")), (Some(json!("by hand")), Some(json!("two"))), "nothing was applied");
    stage.approve(&again).await;
    stage.until(&id, "success").await;
    assert_eq!((word("a"), word("c")), (Some(json!("four")), Some(json!("four"))));

    // One that is gone already is no obstacle to a teardown, nor is one that was created again by somebody else.
    stage.namespace.kubectl(&["delete", "configmap", "a", "c"]);
    stage.namespace.apply_yaml(&config_map("c", "theirs"));
    let done = stage.run(json!({ "type": "teardown_component", "component": "it" })).await;
    assert_eq!(ended(&done, "teardown it"), "success", "{:?}", newest(&done, "teardown it"));
    assert_eq!(word("c"), Some(json!("theirs")), "it was not ours");
    assert_eq!(stage.part("components/it").await["status"], "inactive");
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn what_others_manage_what_is_secret_and_what_is_fixed() {
    needs!(Kube);
    let stage = Stage::start("fields").await;
    let namespace = stage.namespace.name().to_owned();

    // A field of another manager: the plan names it, and a person is asked, whatever was approved beforehand.
    let theirs = config_map("shared", "theirs");
    Cluster::get().with_input(
        &["--namespace", &namespace, "apply", "--server-side", "--field-manager", "their-operator", "--filename", "-"],
        &theirs,
    );
    stage.manifest("shared", "", &config_map("shared", "ours"));
    // Data of a Secret, in both spellings.
    let secret = |word: &str| {
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("encoded-{word}"));
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keys\nstringData:\n  plain: {word}\ndata:\n  encoded: {encoded}\n"
        )
    };
    stage.manifest("keys", "", &secret("hunter2-first"));
    stage.manifest("fixed", "wait = false", &deployment("fixed", "one", images::SLEEP));
    stage.sync().await;

    let id = stage.begin(json!({ "type": "manual_deploy", "component": "shared", "approve_all": true })).await;
    let (step, plan) = stage.waiting(&id, "shared").await;
    let told = plan.to_string();
    assert!(told.contains("their-operator") && told.contains("data.word"), "{told}");
    let why = &step.status.status_human_description;
    assert!(why.contains("their-operator"), "a person reads why: {why}");
    assert_eq!(stage.object("configmap", "shared").unwrap()["data"]["word"], "theirs");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(stage.object("configmap", "shared").unwrap()["data"]["word"], "ours");

    for word in ["hunter2-first", "hunter2-second"] {
        stage.manifest("keys", "", &secret(word));
        stage.sync().await;
        let id = stage.deploy("keys").await;
        let (step, plan) = stage.waiting(&id, "keys").await;
        stage.approve(&step).await;
        let done = stage.until(&id, "success").await;
        let job = stage.job(newest(&done, "apply keys").unwrap()).await;
        let plan_job = stage.job(&step).await;
        let log = stage.system.text_log(&job, None).await + &stage.system.text_log(&plan_job, None).await;
        for seen in [plan.to_string(), log, stage.part("components/keys").await.to_string()] {
            assert!(!seen.contains("hunter2"), "{seen}");
            assert!(!seen.contains("aHVudGVyMi") && !seen.contains("ZW5jb2RlZC"), "{seen}");
        }
    }
    let told = stage.object("secret", "keys").unwrap()["data"]["plain"].as_str().unwrap().to_owned();
    assert_eq!(told, base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "hunter2-second"));
    // A config is the vendor's own text, and stays one; what a runner made of it is sealed.
    for table in ["revisions", "plans", "events", "workflow_steps", "install_parts", "executions"] {
        let text = stage.table(table);
        assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMi"), "{table}: {text}");
    }

    // A field that can't be changed is said before anybody approves.
    stage.deployed("fixed").await;
    let uid = stage.object("deployment", "fixed").unwrap()["metadata"]["uid"].clone();
    stage.manifest("fixed", "wait = false", &deployment("fixed", "two", images::SLEEP));
    stage.sync().await;
    let id = stage.deploy("fixed").await;
    let (step, plan) = stage.waiting(&id, "fixed").await;
    let one = planned(&plan, &format!("Deployment/{namespace}/fixed"));
    assert_eq!(plan["changes"]["replace"], 1, "{plan}");
    assert_eq!(one["action"], "replace_destroy_first", "{one}");
    assert!(one["reason"].as_str().unwrap().contains("spec.selector can't be changed"), "{one}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    let now = stage.object("deployment", "fixed").unwrap();
    assert_eq!(now["spec"]["selector"]["matchLabels"]["app"], "two");
    assert_ne!(now["metadata"]["uid"], uid);
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn definitions_namespaces_and_claims() {
    needs!(Kube);
    let stage = Stage::start("whole").await;
    let namespace = stage.namespace.name().to_owned();
    let group = format!("{}.example.test", namespace.replace('-', ""));
    let inner = format!("{namespace}-inner");

    // A definition and its first object, a namespace and what is in it: in one apply, in whatever order they are written.
    let objects = format!(
        "apiVersion: {group}/v1
kind: Widget
metadata:
  name: first
  namespace: {inner}
spec:
  size: 3
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: files
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: none
  resources:
    requests:
      storage: 1Mi
---
apiVersion: v1
kind: Namespace
metadata:
  name: {inner}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.{group}
spec:
  group: {group}
  scope: Namespaced
  names:
    plural: widgets
    kind: Widget
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size:
                type: integer
"
    );
    stage.manifest("it", "wait = false\ndeploy_timeout = \"34s\"", &objects);
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    let widget = format!("Widget.{group}/{inner}/first");
    assert!(planned(&plan, &widget)["reason"].as_str().unwrap().contains("comes with this apply"), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    let cluster = Cluster::get();
    let made = cluster.kubectl_json(&["--namespace", &inner, "get", &format!("widgets.{group}"), "first"]);
    assert_eq!(made["spec"]["size"], 3);
    let again = stage.deployed("it").await;
    assert_eq!(ended(&again, "apply it"), "auto-skipped");

    // The plan of the teardown says which objects hold data. A namespace that does not go away fails it, and its holder is named.
    let held = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "held", "namespace": inner, "finalizers": ["example.test/hold"] } });
    cluster.apply_yaml(&held.to_string());
    let id = stage.teardown("it").await;
    let (step, plan) = stage.waits(&id, "plan teardown it").await;
    assert_eq!(planned(&plan, &format!("PersistentVolumeClaim/{namespace}/files"))["stateful"], true, "{plan}");
    assert!(plan["stateful"].as_u64().unwrap() >= 1, "{plan}");
    let reason = planned(&plan, &format!("Namespace/{inner}"))["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("everything in it"), "{plan}");
    stage.approve(&step).await;
    let failed = stage.until_step(&id, "teardown it", "error").await;
    let told = &failed.status.status_human_description;
    assert!(told.contains(&format!("Namespace/{inner}")) && told.contains("example.test/hold"), "{told}");
    assert_ne!(stage.part("components/it").await["status"], "inactive", "it is not gone");
    let free = json!({ "metadata": { "finalizers": [] } }).to_string();
    cluster.kubectl(&["--namespace", &inner, "patch", "configmap", "held", "--type", "merge", "--patch", &free]);
    stage.client().retry_step(&id, &failed.id).await.unwrap();
    let (step, _) = stage.waiting_after(&id, "plan teardown it", &step).await;
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert!(!cluster.try_kubectl(&["get", "namespace", &inner]).status.success());
    assert!(!cluster.try_kubectl(&["get", "crd", &format!("widgets.{group}")]).status.success());
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn what_others_have_is_not_taken_or_deleted_in_silence() {
    needs!(Kube);
    let stage = Stage::start("others").await;
    let namespace = stage.namespace.name().to_owned();
    stage.namespace.apply_yaml(&config_map("theirs", "one"));
    let web = |label: &str| deployment("web", label, images::SLEEP);
    stage.manifest(
        "it",
        "wait = false",
        &[config_map("theirs", "one"), config_map("shared", "one"), web("web")].concat(),
    );
    stage.sync().await;

    // An object that is there already says the same; a person is asked all the same, whatever was approved beforehand.
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "it", "approve_all": true })).await;
    let (step, plan) = stage.waiting(&id, "it").await;
    let ask = plan["ask"].to_string();
    assert!(ask.contains("there already") && ask.contains(&format!("ConfigMap/{namespace}/theirs")), "{plan}");
    assert!(!ask.contains("shared"), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;

    // A component takes over what the other one loses: it stays.
    stage.manifest("other", "", &config_map("shared", "two"));
    stage.sync().await;
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "other", "approve_all": true })).await;
    let (step, plan) = stage.waiting(&id, "other").await;
    assert!(plan["ask"].to_string().contains("another component"), "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    stage.manifest("it", "wait = false", &[config_map("theirs", "one"), web("web")].concat());
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, plan) = stage.waiting(&id, "it").await;
    assert_eq!(planned(&plan, &format!("ConfigMap/{namespace}/shared"))["action"], "forget", "{plan}");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(stage.object("configmap", "shared").unwrap()["data"]["word"], "two");

    // A replacement that can't be created is refused before anything is deleted.
    let selector = "selector:\n    matchLabels:\n      app: ";
    let broken = web("web").replace(&format!("{selector}web"), &format!("{selector}other"));
    stage.manifest("it", "wait = false", &[config_map("theirs", "one"), broken].concat());
    stage.sync().await;
    let told = stage.no_plan("it").await;
    assert!(told.contains("selector"), "{told}");
    assert!(stage.object("deployment", "web").is_some());
    stage.manifest("it", "wait = false", &[config_map("theirs", "one"), web("new")].concat());
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (_, plan) = stage.waiting(&id, "it").await;
    assert_eq!(planned(&plan, &format!("Deployment/{namespace}/web"))["action"], "replace_destroy_first", "{plan}");
    stage.cancel(&id).await;
}

#[tokio::test]
async fn what_may_not_be_read_is_an_error_and_not_absent() {
    needs!(Kube);
    let stage = Stage::start("rbac").await;
    let namespace = stage.namespace.name().to_owned();
    let rules = format!(
        "apiVersion: v1
kind: ServiceAccount
metadata: {{name: narrow}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: narrow}}
rules:
- {{apiGroups: [''], resources: [configmaps], verbs: [get, create, patch, delete]}}
- {{apiGroups: [''], resources: [secrets], verbs: [create, patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: narrow}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: narrow}}
subjects:
- {{kind: ServiceAccount, name: narrow, namespace: {namespace}}}
"
    );
    stage.namespace.apply_yaml(&rules);
    let cluster = Cluster::get();
    // It is told from others by its kube-system, which everybody may read here who has a token.
    let known = format!("{namespace}-known");
    cluster.kubectl(&[
        "create",
        "clusterrole",
        &known,
        "--verb=get",
        "--resource=namespaces",
        "--resource-name=kube-system",
    ]);
    let account = format!("--serviceaccount={namespace}:narrow");
    cluster.kubectl(&["create", "clusterrolebinding", &known, &format!("--clusterrole={known}"), &account]);
    let token = stage.namespace.kubectl(&["create", "token", "narrow"]);
    let config = stage.kubeconfig();
    let file = config.to_str().unwrap();
    let kubectl = |words: &[&str]| {
        let done =
            std::process::Command::new("kubectl").args(["--kubeconfig", file, "config"]).args(words).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    kubectl(&["set-credentials", "narrow", &format!("--token={}", token.trim())]);
    kubectl(&["set-context", "--current", "--user=narrow"]);

    stage.manifest("open", "", &config_map("open", "word"));
    stage.manifest("closed", "", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: closed\nstringData:\n  key: word\n");
    stage.sync().await;
    stage.deployed("open").await;
    assert_eq!(stage.look("open").await.status.status, "no-drift");
    let told = stage.no_plan("closed").await;
    assert!(told.contains(&format!("Secret/{namespace}/closed")) && told.contains("may not read"), "{told}");
    assert_eq!(stage.object("secret", "closed"), None);
    // What was deployed, and may not be read any more, has not vanished.
    stage.namespace.kubectl(&["delete", "rolebinding", "narrow"]);
    let id = stage.begin(json!({ "type": "drift_run", "component": "open" })).await;
    let step = stage.until_step(&id, "sync and plan open", "error").await;
    assert!(step.status.status_human_description.contains("may not read"), "{:?}", step.status);
    let id = stage.teardown("open").await;
    let step = stage.until_step(&id, "plan teardown open", "error").await;
    assert!(step.status.status_human_description.contains("may not read"), "{:?}", step.status);
    assert!(stage.object("configmap", "open").is_some());
    cluster.kubectl(&["delete", "clusterrole,clusterrolebinding", &known]);
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn what_does_not_become_ready_is_reported_with_the_reason() {
    needs!(KubeNode);
    let stage = Stage::start("ready").await;
    let soon = "deploy_timeout = \"32s\"";
    stage.manifest("good", "", &deployment("good", "good", images::APP_1));
    stage.manifest("missing", soon, &deployment("missing", "missing", "ferry.test/no-such-image:7"));
    stage.manifest("crash", soon, &deployment("crash", "crash", images::CRASH));
    stage.sync().await;
    stage.deployed("good").await;
    assert_eq!(
        stage.object("deployment", "good").unwrap()["status"]["readyReplicas"],
        1,
        "it waits until that is ready"
    );
    for (name, parts) in [
        ("missing", ["ferry.test/no-such-image:7", "can't be pulled"]),
        ("crash", ["exit code 3", "fatal: the database at db:5432 does not answer"]),
    ] {
        let (told, step) = stage.fails(name).await;
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        assert!(told.contains(&format!("Deployment/{}/{name}", stage.namespace.name())), "{told}");
        assert_eq!(stage.job(&step).await.error.unwrap().code, "not_ready");
        assert_eq!(stage.part(&format!("components/{name}")).await["status"], "error");
    }
    // Mended, and deployed again.
    stage.manifest("missing", "", &deployment("missing", "missing", images::APP_2));
    stage.sync().await;
    let id = stage.deploy("missing").await;
    let (step, _) = stage.waiting(&id, "missing").await;
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    // What was deployed and failed goes, too.
    stage.run(json!({ "type": "teardown_component", "component": "crash" })).await;
    assert_eq!(stage.object("deployment", "crash"), None);
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_thousand_objects_and_a_large_one() {
    needs!(Kube);
    let stage = Stage::start("many").await;
    let many: String = (0..1000).map(|n| config_map(&format!("m{n:04}"), "word")).collect();
    stage.manifest("many", "", &many);
    // The limit of the API server is 1 MiB of data.
    let large = "0123456789abcdef".repeat(65_530);
    stage.manifest("large", "", &config_map("large", &large));
    stage.sync().await;
    let id = stage.deploy("many").await;
    let (step, plan) = stage.waiting(&id, "many").await;
    assert_eq!(plan["changes"]["create"], 1000);
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    let there = stage.namespace.kubectl(&["get", "configmaps", "--output", "name"]);
    assert_eq!(there.lines().filter(|line| line.starts_with("configmap/m")).count(), 1000);
    assert_eq!(stage.look("many").await.status.status, "no-drift");
    stage.deployed("large").await;
    assert_eq!(stage.object("configmap", "large").unwrap()["data"]["word"].as_str().unwrap().len(), large.len());
    assert_eq!(stage.look("large").await.status.status, "no-drift");
    stage.run(json!({ "type": "teardown_component", "component": "many" })).await;
    let there = stage.namespace.kubectl(&["get", "configmaps", "--output", "name"]);
    assert!(!there.contains("configmap/m0"), "{there}");
    stage.system.until_quiet().await;
}
