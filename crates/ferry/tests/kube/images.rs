//! Images: built, copied to the customer's registry or pulled from the control plane's, and run.

use std::path::PathBuf;

use crash::POINTS;
use needs::needs;
use serde_json::{Value, json};
use testkit::kube::Cluster;
use testkit::lanes::Victim;
use testkit::system::{SOON, until};

use crate::stage::{Stage, ended, newest, planned};

/// A Deployment of the image of the component `web`.
const SITE: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: site
spec:
  replicas: 1
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: '{{ .nuon.components.web.outputs.image.repository }}@{{ .nuon.components.web.outputs.image.digest }}'
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
";

/// The same in a chart, with a service account of its own.
const CHART: &str = "apiVersion: v1
kind: ServiceAccount
metadata: {name: charted}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: charted}
spec:
  selector: {matchLabels: {app: charted}}
  template:
    metadata: {labels: {app: charted}}
    spec:
      serviceAccountName: charted
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: {{ .Values.image }}
";

/// What the pods of a Deployment run, and whether they are ready.
fn pods(stage: &Stage, label: &str) -> Vec<(String, bool)> {
    let all = stage.namespace.kubectl_json(&["get", "pods", "--selector", &format!("app={label}")]);
    let of = |pod: &Value| {
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        (image, pod["status"]["containerStatuses"][0]["ready"] == true)
    };
    all["items"].as_array().unwrap().iter().map(of).collect()
}

/// What the app in a pod answers.
fn answer(stage: &Stage, label: &str) -> String {
    let ask = format!("deployment/{label}");
    stage.namespace.kubectl(&["exec", &ask, "--", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/"])
}

async fn image(stage: &Stage) -> Value {
    stage.part("components/web").await["outputs"]["image"].clone()
}

#[tokio::test]
async fn an_image_is_built_copied_to_the_customers_registry_and_runs() {
    needs!(KubeNode);
    needs!(KubeOwn);
    needs!(Images);
    let mut stage = Stage::start("images").await;
    let registry = format!("{}/{}", Cluster::get().registry(), stage.namespace.name());
    stage.restart_runner_with(model::env::RUNNER_REGISTRY, &format!("http://{registry}")).await;
    stage.image("web", "1");
    stage.manifest("site", "", SITE);
    stage.sync().await;

    let done = stage.deployed("web").await;
    assert_eq!(ended(&done, "sync web"), "success");
    let first = image(&stage).await;
    assert_eq!(first["repository"], format!("{registry}/web"), "{first}");
    assert_eq!(first["pull_secret"], Value::Null, "pods need no login of ours there");
    stage.deployed("site").await;
    assert_eq!(answer(&stage, "site"), "app 1\n");
    let deployed = format!("{registry}/web@{}", first["digest"].as_str().unwrap());
    assert_eq!(pods(&stage, "site"), [(deployed, true)]);
    assert!(stage.object("secret", &pull_secret(&stage)).is_none());

    // A new version of the image: the plan of what uses it shows the change.
    stage.image("web", "2");
    stage.sync().await;
    stage.deployed("web").await;
    let id = stage.deploy("site").await;
    let (step, plan) = stage.waiting(&id, "site").await;
    let second = image(&stage).await;
    let site = planned(&plan, &format!("Deployment/{}/site", stage.namespace.name())).to_string();
    assert!(
        site.contains(second["digest"].as_str().unwrap()) && site.contains(first["digest"].as_str().unwrap()),
        "{site}"
    );
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(answer(&stage, "site"), "app 2\n");

    // Whoever dies in the middle of a copy: it is made again, and only what is missing is copied.
    for (turn, point) in ["executor.before_copy", "executor.copied"].into_iter().enumerate() {
        for victim in [Victim::Executor, Victim::RunnerAndExecutor, Victim::Server, Victim::Runner]
            .into_iter()
            .skip(turn)
            .step_by(2)
        {
            let point = POINTS.iter().find(|known| known.name == point).unwrap();
            stage.trap.set(point, 1);
            let id = stage.begin(json!({ "type": "manual_deploy", "component": "web", "approve_all": true })).await;
            stage.strike(point, victim).await;
            let done = stage.until(&id, "success").await;
            assert_eq!(ended(&done, "sync web"), "success", "{} {victim:?}", point.name);
            assert_eq!(image(&stage).await, second, "{} {victim:?}", point.name);
        }
    }
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn pods_pull_from_the_control_plane_where_the_customer_has_no_registry() {
    needs!(KubeNode);
    needs!(Images);
    let stage = Stage::start("pulls").await;
    stage.image("web", "1");
    let elsewhere = format!("a-{}", stage.namespace.name());
    let other = SITE.replace("  name: site\n", &format!("  name: other\n  namespace: {elsewhere}\n"));
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {elsewhere}}}\n");
    stage.manifest("site", "", &format!("{namespace}{SITE}{other}"));
    let image_of_web =
        "{{ .nuon.components.web.outputs.image.repository }}:{{ .nuon.components.web.outputs.image.tag }}";
    stage.chart("charted", "", &[("image", image_of_web)], &[("templates/all.yaml", CHART)]);
    stage.sync().await;

    stage.deployed("web").await;
    let found = image(&stage).await;
    assert_eq!(found["pull_secret"], pull_secret(&stage), "{found}");
    assert!(
        stage.system.runner_url.ends_with(found["repository"].as_str().unwrap().split('/').next().unwrap()),
        "{found}"
    );
    // The plan shows that pods get the name of the Secret.
    let id = stage.deploy("site").await;
    let (step, plan) = stage.waiting(&id, "site").await;
    assert!(plan.to_string().contains(&pull_secret(&stage)), "{plan}");
    assert!(stage.object("secret", &pull_secret(&stage)).is_none(), "a plan writes nothing");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(answer(&stage, "site"), "app 1\n");
    stage.deployed("charted").await;
    assert!(pods(&stage, "charted").iter().all(|(_, ready)| *ready));
    for component in ["site", "charted"] {
        assert_eq!(stage.look(component).await.status.status, "no-drift");
        let again = stage.deployed(component).await;
        assert_eq!(ended(&again, &format!("apply {component}")), "auto-skipped", "nothing is left to do");
    }

    // The login reads this install's images, and does nothing else.
    let before = login(&stage);
    let (user, password) = (before["username"].as_str().unwrap(), before["password"].as_str().unwrap());
    let http = reqwest::Client::new();
    let name = found["repository"].as_str().unwrap().split_once('/').unwrap().1;
    let ask = async |user: &str, password: &str, path: &str| {
        let url = format!("{}/v2/{path}", stage.system.runner_url);
        http.get(url).basic_auth(user, Some(password)).send().await.unwrap().status().as_u16()
    };
    assert_eq!(ask(user, password, &format!("{name}/tags/list")).await, 200);
    assert_eq!(ask("somebody", password, &format!("{name}/tags/list")).await, 401);
    assert_eq!(ask(user, &format!("{password}x"), &format!("{name}/tags/list")).await, 401);
    let other = format!("{}/other", name.rsplit_once('/').unwrap().0);
    assert_eq!(ask(user, password, &format!("{other}/tags/list")).await, 404);
    let push =
        http.post(format!("{}/v2/{name}/blobs/uploads/", stage.system.runner_url)).basic_auth(user, Some(password));
    assert_eq!(push.send().await.unwrap().status().as_u16(), 403);
    assert_eq!(stage.traces_of(password), Vec::<PathBuf>::new(), "the password is nowhere but in the cluster");

    // A clock renews it wherever it is. A namespace that is gone keeps nobody from the others.
    Cluster::get().kubectl(&["delete", "namespace", &elsewhere]);
    stage.take_tick("pulls");
    until("another login", SOON, async || {
        let now = login(&stage);
        if now["password"] == before["password"] { Err(now["username"].to_string()) } else { Ok(()) }
    })
    .await;

    // Nothing of it stays.
    let done = stage.run(json!({ "type": "deprovision" })).await;
    assert_eq!(ended(&done, "remove secrets"), "success", "{:?}", newest(&done, "remove secrets"));
    assert!(stage.object("secret", &pull_secret(&stage)).is_none());
    stage.system.until_quiet().await;
}

fn pull_secret(stage: &Stage) -> String {
    format!("ferry-registry-{}", stage.system.install.id)
}

/// The login that pods pull with.
fn login(stage: &Stage) -> Value {
    use base64::Engine as _;
    let secret = stage.object("secret", &pull_secret(stage)).unwrap();
    let content = secret["data"][".dockerconfigjson"].as_str().unwrap();
    let content = base64::engine::general_purpose::STANDARD.decode(content).unwrap();
    let content: Value = serde_json::from_slice(&content).unwrap();
    content["auths"].as_object().unwrap().values().next().unwrap().clone()
}
