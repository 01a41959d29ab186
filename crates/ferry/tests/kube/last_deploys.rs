//! Deploys while parts of the cluster die, or the cluster is another one all at once.

use std::time::{Duration, Instant};

use needs::needs;
use serde_json::json;
use testkit::kube::{Cluster, images};

use crate::stage::{Stage, config_map, deployment, ended};

/// An API server that is upgraded is away for seconds: an apply that has begun goes on when it is back.
#[tokio::test]
async fn an_apply_outlives_its_api_server() {
    needs!(Kube);
    needs!(KubeOwn);
    let stage = Stage::start("apiserver").await;
    let many = |word: &str| (0..300).map(|n| config_map(&format!("m{n:03}"), word)).collect::<String>();
    stage.manifest("it", "", &many("one"));
    stage.sync().await;
    let id = stage.deploy("it").await;
    let (step, _) = stage.waiting(&id, "it").await;
    let stopped = stage.stop_at("executor.object_applied", &step).await;
    let killed = Cluster::get().kill("apiserver");
    stage.trap.release(stopped);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let workflow = stage.client().workflow(&id).await.unwrap();
    assert_eq!(ended(&workflow, "apply it"), "in-progress", "nobody knows yet");
    killed.start();
    stage.until(&id, "success").await;
    let there = stage.namespace.kubectl(&["get", "configmaps", "--output", "name"]);
    assert_eq!(there.lines().filter(|line| line.starts_with("configmap/m")).count(), 300);
    assert_eq!(stage.look("it").await.status.status, "no-drift");

    // The same for a release, whose helm can't wait that long: what came of it is told, and a retry works.
    let chart = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: charted\ndata:\n  word: one\n";
    stage.chart("chart", "", &[], &[("templates/it.yaml", chart)]);
    stage.sync().await;
    let id = stage.deploy("chart").await;
    let (step, _) = stage.waiting(&id, "chart").await;
    let stopped = stage.stop_at("executor.intent_saved", &step).await;
    let killed = Cluster::get().kill("apiserver");
    stage.trap.release(stopped);
    let failed = stage.until_step(&id, "apply chart", "error").await;
    killed.start();
    assert!(!failed.status.status_human_description.is_empty());
    assert_eq!(stage.part("components/chart").await["status"], "error");
    stage.client().retry_step(&id, &failed.id).await.unwrap();
    let (step, _) = stage.waiting_again(&id, "chart", &step).await;
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(stage.object("configmap", "charted").unwrap()["data"]["word"], "one");
    stage.system.until_quiet().await;
}

/// The node's containers don't start for a while: the apply waits, says for what, and goes on.
#[tokio::test]
async fn an_apply_waits_for_containerd() {
    needs!(KubeNode);
    needs!(KubeOwn);
    let stage = Stage::start("containerd").await;
    let web = deployment("web", "web", images::APP_1).replace("---\n", "");
    stage.chart("chart", "deploy_timeout = \"3m\"", &[], &[("templates/web.yaml", &web)]);
    stage.sync().await;
    let killed = Cluster::get().kill("containerd");
    let id = stage.deploy("chart").await;
    let (step, _) = stage.waiting(&id, "chart").await;
    let begun = Instant::now();
    stage.approve(&step).await;
    let step = stage.until_step(&id, "apply chart", "in-progress").await;
    let address = format!("Deployment/{}/web", stage.namespace.name());
    testkit::system::until("what it waits for is shown", Duration::from_secs(60), async || {
        let shown = json!(stage.job(&step).await).to_string();
        if shown.contains(&address) { Ok(()) } else { Err(shown) }
    })
    .await;
    killed.start();
    stage.until(&id, "success").await;
    assert_eq!(stage.object("deployment", "web").unwrap()["status"]["readyReplicas"], 1, "after {:?}", begun.elapsed());
    stage.run(json!({ "type": "teardown_component", "component": "chart" })).await;
    stage.system.until_quiet().await;
}

/// The address is the same, the cluster is not: nothing that is in the new one is taken for what was deployed.
#[tokio::test]
async fn another_cluster_at_the_same_address_is_noticed() {
    needs!(Kube);
    needs!(KubeOwn);
    let stage = Stage::start("replaced").await;
    let name = stage.namespace.name().to_owned();
    let chart = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: charted\ndata:\n  word: one\n";
    let write = |word: &str| {
        stage.manifest("it", "", &config_map("it", word));
        stage.chart("chart", "", &[], &[("templates/it.yaml", &chart.replace("one", word))]);
    };
    write("one");
    stage.sync().await;
    stage.deployed("it").await;
    stage.deployed("chart").await;
    // A plan that was made for the old one waits.
    write("two");
    stage.sync().await;
    let waiting = stage.deploy("it").await;
    let (old, _) = stage.waiting(&waiting, "it").await;

    let cluster = Cluster::get();
    cluster.replace();
    fs_err::copy(cluster.kubeconfig(), stage.kubeconfig()).unwrap();
    cluster.kubectl(&["create", "namespace", &name]);
    // Somebody else's, under the name of ours.
    cluster.apply_yaml(&config_map("it", "theirs").replace("  name: it", &format!("  name: it\n  namespace: {name}")));

    stage.approve(&old).await;
    let (again, _) = stage.waiting_again(&waiting, "it", &old).await;
    let told = &again.status.status_human_description;
    assert!(told.contains("another cluster"), "{told}");
    stage.cancel(&waiting).await;
    for component in ["it", "chart"] {
        let id =
            stage.begin(json!({ "type": "teardown_component", "component": component, "approve_all": true })).await;
        let plan = format!("plan teardown {component}");
        let shown = stage.until_teardown_plan(&id, &plan).await;
        assert!(shown.contains("not this one"), "{component}: {shown}");
        stage.until(&id, "success").await;
    }
    assert_eq!(stage.object("configmap", "it").unwrap()["data"]["word"], "theirs", "nothing of theirs was deleted");
    // From now on the new cluster is the one that is known.
    stage.namespace.kubectl(&["delete", "configmap", "it"]);
    for component in ["it", "chart"] {
        let id = stage.deploy(component).await;
        let (step, _) = stage.waiting(&id, component).await;
        stage.approve(&step).await;
        stage.until(&id, "success").await;
        assert_eq!(stage.look(component).await.status.status, "no-drift");
    }
    assert_eq!(stage.object("configmap", "it").unwrap()["data"]["word"], "two");
    stage.system.until_quiet().await;
}
