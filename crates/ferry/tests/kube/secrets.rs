//! Secrets: from the customer's store to the cluster, and nowhere else.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use crash::POINTS;
use needs::needs;
use serde_json::{Value, json};
use testkit::kube::images;
use testkit::lanes::Victim;
use testkit::system::shown;

use crate::stage::{Stage, ended, newest};

/// Name, settings, and the Secrets and keys that it is written to.
type Declared<'d> = (&'d str, &'d str, &'d [(&'d str, &'d str)]);

/// Writes the secrets of the app.
fn secrets(stage: &Stage, all: &[Declared<'_>]) {
    let namespace = stage.namespace.name();
    let mut text = String::new();
    for (name, settings, targets) in all {
        text += &format!(
            "[[secret]]\nname = \"{name}\"\ndisplay_name = \"{name}\"\ndescription = \"of a test\"\n{settings}\n"
        );
        for (object, key) in *targets {
            text += "[[secret.kubernetes_sync_targets]]\n";
            text += &format!("namespaces = [\"{namespace}\"]\nname = \"{object}\"\nkey = \"{key}\"\n");
        }
    }
    stage.file("secrets.toml", &text);
}

/// `ferry-runner secrets set`, as the customer does it.
async fn put(stage: &Stage, name: &str, value: &str) {
    let file = stage.app_file("value");
    fs_err::write(&file, value).unwrap();
    let mut command = stage.system.runner_command(&["secrets", "set", name, "--file"]);
    command.arg(&file).arg("--state-dir").arg(stage.system.state_dir("a"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", shown(&output));
    fs_err::remove_file(&file).unwrap();
}

/// What the cluster holds.
fn held(stage: &Stage, object: &str, key: &str) -> Option<String> {
    let secret = stage.object("secret", object)?;
    let value = B64.decode(secret["data"][key].as_str()?).unwrap();
    Some(String::from_utf8(value).unwrap())
}

async fn synced(stage: &Stage) -> Value {
    let done = stage.run(json!({ "type": "sync_secrets" })).await;
    assert_eq!(ended(&done, "sync secrets"), "success", "{:?}", newest(&done, "sync secrets"));
    stage.part("secrets").await
}

/// What a sync fails with.
async fn refused(stage: &Stage) -> String {
    let id = stage.begin(json!({ "type": "sync_secrets" })).await;
    let step = stage.until_step(&id, "sync secrets", "error").await;
    step.status.status_human_description
}

#[tokio::test]
async fn secrets_reach_the_cluster_and_nobody_else() {
    needs!(Kube);
    let stage = Stage::start("secrets").await;
    let (password, encoded) = ("correct-horse-battery-staple", B64.encode("from base64 to the pod"));
    secrets(
        &stage,
        &[
            ("password", "required = true", &[("shop", "password"), ("billing", "db")]),
            ("certificate", "format = \"base64\"", &[("shop", "certificate")]),
            ("made_up", "auto_generate = true", &[("shop", "token")]),
            ("greeting", "default = \"hello\"", &[("shop", "greeting")]),
            ("absent", "", &[("shop", "absent")]),
        ],
    );
    stage.sync().await;

    // One that is required and not there is an error that says where to put it; nothing is written.
    let why = refused(&stage).await;
    assert!(why.contains("`password`") && why.contains("secrets/password"), "{why}");
    assert!(stage.object("secret", "shop").is_none());
    put(&stage, "password", &format!("{password}\n")).await;
    put(&stage, "certificate", "not base64!").await;
    let why = refused(&stage).await;
    assert!(why.contains("`certificate`") && why.contains("base64"), "{why}");
    put(&stage, "certificate", &encoded).await;

    let part = synced(&stage).await;
    let value = |object: &str, key: &str| held(&stage, object, key);
    assert_eq!(value("shop", "password").as_deref(), Some(password));
    assert_eq!(value("billing", "db").as_deref(), Some(password));
    assert_eq!(value("shop", "certificate").as_deref(), Some("from base64 to the pod"));
    assert_eq!(value("shop", "greeting").as_deref(), Some("hello"));
    assert_eq!(value("shop", "absent"), None);
    let made_up = value("shop", "token").unwrap();
    assert_eq!(made_up.len(), 63);
    let known = &part["outputs"]["password"];
    assert_eq!((&known["exists"], &known["length"]), (&json!(true), &json!(password.len())), "{part}");
    assert_eq!(part["outputs"]["absent"]["exists"], false);

    // The same once more changes nothing, not even a time.
    let version = || stage.object("secret", "shop").unwrap()["metadata"]["resourceVersion"].clone();
    let before = version();
    assert_eq!(synced(&stage).await["outputs"]["password"]["timestamp"], known["timestamp"]);
    assert_eq!(version(), before);

    // A rotated one: who still has the old value is named.
    stage.namespace.apply_yaml(&format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: reader}}\nspec: {{replicas: 0, selector: {{matchLabels: {{app: r}}}}, template: {{metadata: {{labels: {{app: r}}}}, spec: {{containers: [{{name: main, image: '{}', env: [{{name: P, valueFrom: {{secretKeyRef: {{name: shop, key: password}}}}}}]}}]}}}}}}\n",
        images::SLEEP
    ));
    // A pod of it that runs, as a kubelet would say.
    stage.namespace.apply_yaml(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: reader-1, labels: {{app: r}}}}\nspec: {{schedulerName: nobody, containers: [{{name: main, image: '{}'}}]}}\n",
        images::SLEEP
    ));
    let running = |at: &str| {
        let state = json!({ "running": { "startedAt": at } });
        let container =
            json!({ "name": "main", "image": "i", "imageID": "i", "ready": true, "restartCount": 0, "state": state });
        let status = json!({ "status": { "phase": "Running", "containerStatuses": [container] } }).to_string();
        stage.namespace.kubectl(&["patch", "pod", "reader-1", "--subresource=status", "-p", &status]);
    };
    running("2026-01-01T00:00:00Z");
    put(&stage, "password", "another-horse-another-battery").await;
    let part = synced(&stage).await;
    assert_eq!(value("shop", "password").as_deref(), Some("another-horse-another-battery"));
    assert_eq!(value("shop", "token"), Some(made_up.clone()), "what was made up stays");
    let reader = format!("Deployment/{}/reader", stage.namespace.name());
    assert_eq!(part["outputs"]["password"]["readers"], json!([reader]), "{part}");
    let shown = stage.ferry(&["installs", "secrets", stage.install(), "--wide"]).await;
    assert!(shown.contains("password") && shown.contains("29 bytes") && shown.contains("reader"), "{shown}");
    // It is named until it is started again, however often is synced.
    assert_eq!(synced(&stage).await["outputs"]["password"]["readers"], json!([reader]));
    running("2100-01-01T00:00:00Z");
    assert!(synced(&stage).await["outputs"]["password"]["readers"].is_null());

    // No value is anywhere but in the customer's store.
    let stores = stage.system.state_dir("a").join("secrets");
    for value in [password, "another-horse-another-battery", encoded.as_str(), "from base64 to the pod", &made_up] {
        let mut traces: Vec<PathBuf> = stage.traces_of(value);
        traces.retain(|path| !path.starts_with(&stores));
        assert_eq!(traces, Vec::<PathBuf>::new(), "{value}");
    }

    // What the app does not want any more goes; an object of somebody else is not overwritten.
    stage.namespace.kubectl(&["create", "secret", "generic", "theirs", "--from-literal=key=theirs"]);
    secrets(&stage, &[("password", "required = true", &[("shop", "password"), ("theirs", "key")])]);
    stage.sync().await;
    let why = refused(&stage).await;
    assert!(why.contains("theirs") && why.contains("nothing was overwritten"), "{why}");
    assert_eq!(value("theirs", "key").as_deref(), Some("theirs"));
    secrets(&stage, &[("password", "required = true", &[("shop", "password")])]);
    stage.sync().await;
    synced(&stage).await;
    assert_eq!((value("shop", "token"), value("shop", "greeting")), (None, None));
    assert!(stage.object("secret", "billing").is_none());
    assert_eq!(value("theirs", "key").as_deref(), Some("theirs"), "what a failed sync did not write is not ours");

    // Nothing stays after a deprovision.
    let done = stage.run(json!({ "type": "deprovision" })).await;
    assert_eq!(ended(&done, "remove secrets"), "success", "{:?}", newest(&done, "remove secrets"));
    assert!(stage.object("secret", "shop").is_none());
    assert!(stage.object("secret", "theirs").is_some());
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn whoever_dies_while_secrets_are_written_they_are_all_there_once() {
    needs!(Kube);
    let mut stage = Stage::start("secret-kills").await;
    secrets(
        &stage,
        &[
            ("one", "required = true", &[("one", "key"), ("two", "key")]),
            ("made_up", "auto_generate = true", &[("one", "token")]),
        ],
    );
    stage.sync().await;
    put(&stage, "one", "value 0").await;
    synced(&stage).await;
    let made_up = held(&stage, "one", "token");
    let victims = [Victim::Executor, Victim::RunnerAndExecutor, Victim::Server, Victim::Runner];
    let points =
        POINTS.iter().filter(|point| matches!(point.name, "executor.before_secrets" | "executor.secret_written"));
    for (turn, point) in points.enumerate() {
        for victim in victims.into_iter().skip(turn).step_by(2) {
            let value = format!("value of {} {victim:?}", point.name);
            put(&stage, "one", &value).await;
            stage.trap.set(point, 1);
            let id = stage.begin(json!({ "type": "sync_secrets" })).await;
            stage.strike(point, victim).await;
            stage.until(&id, "success").await;
            assert_eq!((held(&stage, "one", "key"), held(&stage, "two", "key")), (Some(value.clone()), Some(value)));
            assert_eq!(held(&stage, "one", "token"), made_up, "nothing is made up twice");
        }
    }
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn what_pods_print_of_a_secret_is_masked() {
    needs!(KubeNode);
    let stage = Stage::start("leaks").await;
    let password = "correct-horse-battery-staple-again";
    secrets(&stage, &[("password", "required = true", &[("shop", "password")])]);
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: leaky}\nspec: {replicas: 1, selector: {matchLabels: {app: l}}, template: {metadata: {labels: {app: l}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: 'IMAGE', command: [/bin/sh, -c, 'echo the password is $P; exit 3'], env: [{name: P, valueFrom: {secretKeyRef: {name: shop, key: password}}}]}]}}}\n";
    stage.manifest("leaky", "deploy_timeout = \"45s\"", &pods.replace("IMAGE", images::SHELL));
    stage.sync().await;
    put(&stage, "password", password).await;
    synced(&stage).await;
    let (why, _) = stage.fails("leaky").await;
    assert!(why.contains("exit code 3") && why.contains("the password is"), "{why}");
    assert!(!why.contains("battery"), "{why}");
    let stores = stage.system.state_dir("a").join("secrets");
    let mut traces = stage.traces_of(password);
    traces.retain(|path| !path.starts_with(&stores));
    assert_eq!(traces, Vec::<PathBuf>::new());
}
