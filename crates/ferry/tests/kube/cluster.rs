//! The cluster itself: what the other tests rely on.

use needs::needs;
use testkit::kube::{Cluster, images};

#[test]
fn the_api_server_keeps_what_it_is_given() {
    needs!(Kube);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("smoke");
    namespace.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}, data: {word: ferry}}");
    let kept = namespace.kubectl_json(&["get", "configmap", "kept", "--show-managed-fields"]);
    assert_eq!(kept["data"]["word"], "ferry");
    assert_eq!(kept["metadata"]["managedFields"][0]["manager"], "test");
}

#[test]
fn a_pod_runs_behind_a_service_and_answers() {
    needs!(KubeNode);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("smoke");
    namespace.apply_yaml(&format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: app, labels: {{app: app}}}}
spec:
  containers:
  - name: app
    image: {}
    readinessProbe: {{httpGet: {{path: /healthz, port: 8080}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: app}}
spec: {{selector: {{app: app}}, ports: [{{port: 80, targetPort: 8080}}]}}
",
        images::APP_1
    ));
    namespace.kubectl(&["wait", "pod/app", "--for", "condition=Ready", "--timeout", "60s"]);
    assert!(namespace.kubectl(&["logs", "app"]).contains("app 1 listens on port 8080"));
    let own = namespace.kubectl(&["exec", "app", "--", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/"]);
    assert_eq!(own, "app 1\n");
    // kube-proxy learns of the pod a moment after it is ready.
    let address = namespace.kubectl_json(&["get", "service", "app"])["spec"]["clusterIP"].as_str().unwrap().to_owned();
    let url = format!("http://{address}/");
    let ask = ["exec", "app", "--", "wget", "-q", "-O", "-", &url];
    namespace.until("answer of the service", |n| n.try_kubectl(&ask).stdout == b"app 1\n");
}

#[test]
fn a_crash_and_an_unready_pod_look_as_they_should() {
    needs!(KubeNode);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("smoke");
    let crash = format!("--image={}", images::CRASH);
    namespace.kubectl(&["run", "crash", &crash, "--restart=Never"]);
    let unready = images::UNREADY;
    namespace.apply_yaml(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: unready}}, spec: {{containers: [{{name: app, image: '{unready}',
        readinessProbe: {{httpGet: {{path: /healthz, port: 8080}}, periodSeconds: 1}}}}]}}}}"
    ));
    namespace.until("failed pod", |n| n.kubectl_json(&["get", "pod", "crash"])["status"]["phase"] == "Failed");
    let last = b"fatal: the database at db:5432 does not answer\n";
    namespace.until("last line", |n| n.try_kubectl(&["logs", "crash"]).stdout.ends_with(last));
    let pod = namespace.kubectl_json(&["get", "pod", "crash"]);
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    namespace.until("failed probe", |n| n.kubectl(&["get", "events"]).contains("Readiness probe failed"));
    let pod = namespace.kubectl_json(&["get", "pod", "unready"]);
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], false);
}

#[test]
fn a_pod_pulls_its_image_from_the_registry() {
    needs!(KubeNode);
    needs!(KubeOwn);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("smoke");
    let image = format!("--image={}", cluster.image_in_registry());
    namespace.kubectl(&["run", "pulled", &image]);
    namespace.kubectl(&["wait", "pod/pulled", "--for", "condition=Ready", "--timeout", "60s"]);
}

/// With the token of its service account, through the Service `kubernetes`.
#[test]
fn a_pod_reaches_the_api_server() {
    needs!(KubeNode);
    let cluster = Cluster::get();
    let namespace = cluster.namespace("smoke");
    let image = format!("--image={}", images::SHELL);
    let command = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && \
                   test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo reached";
    namespace.kubectl(&["run", "caller", &image, "--restart=Never", "--", "-c", command]);
    namespace.until("log line", |n| n.try_kubectl(&["logs", "caller"]).stdout.ends_with(b"reached\n"));
}
