//! The parts of the cluster, killed and started again: what tests that kill them rely on.

use needs::needs;
use testkit::kube::{Cluster, images};

#[test]
fn the_api_server_and_etcd_come_back_with_all_that_was_there() {
    needs!(KubeOwn);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("kills");
    namespace.kubectl(&["create", "configmap", "kept"]);
    for part in ["apiserver", "etcd"] {
        let killed = cluster.kill(part);
        let told = namespace.try_kubectl(&["get", "configmap", "kept", "--request-timeout", "3s"]);
        assert!(!told.status.success(), "{part} is dead");
        killed.start();
        namespace.until("answer", |n| n.try_kubectl(&["get", "configmap", "kept"]).status.success());
    }
}

#[test]
fn a_pod_survives_containerd_and_the_kubelet() {
    needs!(KubeNode);
    needs!(KubeOwn);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("kills");
    let image = format!("--image={}", images::APP_1);
    namespace.kubectl(&["run", "app", &image]);
    namespace.kubectl(&["wait", "pod/app", "--for", "condition=Ready", "--timeout", "60s"]);
    for part in ["containerd", "kubelet"] {
        cluster.kill(part).start();
        let ask = ["exec", "app", "--", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/"];
        namespace.until("answer of the pod", |n| n.try_kubectl(&ask).stdout == b"app 1\n");
    }
    let pod = namespace.kubectl_json(&["get", "pod", "app"]);
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
}
