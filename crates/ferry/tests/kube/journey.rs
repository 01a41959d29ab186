//! One app from its source to its teardown, as a vendor's engineer brings it through a year.

use needs::needs;
use serde_json::{Value, json};
use testkit::kube::Cluster;
use testkit::system::{SOON, until};

use crate::stage::{Stage, ended, newest};

const CHART: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: site}
spec:
  replicas: 1
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: {{ .Values.image }}
        args: [\"{{ .Values.mode }}\"]
        env:
        - {name: TOKEN, valueFrom: {secretKeyRef: {name: site, key: token}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
";
const IMAGE: &str =
    "{{ .nuon.components.web.outputs.image.repository }}@{{ .nuon.components.web.outputs.image.digest }}";

/// The chart, serving or with a server that ends at once.
fn site(stage: &Stage, mode: &str) {
    let settings = "rollback_on_failure = true\ndeploy_timeout = \"60s\"";
    stage.chart("site", settings, &[("image", IMAGE), ("mode", mode)], &[("templates/all.yaml", CHART)]);
}

fn answer(stage: &Stage) -> String {
    stage.namespace.kubectl(&["exec", "deployment/site", "--", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/"])
}

fn count(stage: &Stage, kind: &str) -> usize {
    stage.namespace.kubectl(&["get", kind, "--output", "name"]).lines().count()
}

async fn until_healthy(stage: &Stage) {
    until("the site is healthy", SOON * 3, async || {
        let told = stage.ferry(&["installs", "health", stage.install(), "--json"]).await;
        let told: Value = serde_json::from_str(&told).map_err(|e| e.to_string())?;
        let all = told["components"].as_array().ok_or("no components")?;
        let site = all.iter().find(|it| it["component"] == "site").ok_or("no site")?;
        if site["verdict"] == "healthy" { Ok(()) } else { Err(site.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn an_app_goes_from_its_source_to_its_teardown() {
    needs!(KubeNode);
    needs!(KubeOwn);
    needs!(Images);
    let mut stage = Stage::start("journey").await;
    let namespace = stage.namespace.name().to_owned();
    let registry = format!("http://{}/{namespace}", Cluster::get().registry());
    stage.restart_runner_with(model::env::RUNNER_REGISTRY, &registry).await;
    stage.image("web", "1");
    let dockerfile = fs_err::read_to_string(stage.app_file("src/web/Dockerfile")).unwrap();
    let with_mode =
        |version: &str| dockerfile.replace("\", \"serve\"]", "\"]").replace("VERSION=1", &format!("VERSION={version}"));
    stage.file("src/web/Dockerfile", &with_mode("1"));
    site(&stage, "serve");
    stage.file(
        "secrets.toml",
        &format!("[[secret]]\nname = \"token\"\ndisplay_name = \"Token\"\ndescription = \"of a test\"\nauto_generate = true\n[[secret.kubernetes_sync_targets]]\nnamespaces = [\"{namespace}\"]\nname = \"site\"\nkey = \"token\"\n"),
    );
    let job = "name = \"announce\"\ntype = \"job\"\nimage_url = \"{{ .nuon.components.web.outputs.image.repository }}\"\ntag = \"{{ .nuon.components.web.outputs.image.digest }}\"\ncmd = [\"/bin/echo\", \"version\"]\ndependencies = [\"site\"]\nretries = 0\n";
    stage.file("components/announce.toml", &format!("{job}namespace = \"{namespace}\"\n"));
    stage.sync().await;

    // From the Dockerfile to a pod that answers, in one go.
    let done = stage.run(json!({ "type": "reprovision" })).await;
    for step in ["sync secrets", "sync web", "apply site", "apply announce"] {
        assert_eq!(ended(&done, step), "success", "{step}: {:?}", newest(&done, step));
    }
    assert_eq!(answer(&stage), "app 1\n");
    assert_eq!(count(&stage, "jobs"), 1);
    until_healthy(&stage).await;

    // An upgrade: the diff, a person's yes, and the new version.
    stage.file("src/web/Dockerfile", &with_mode("2"));
    stage.sync().await;
    stage.deployed("web").await;
    let id = stage.deploy("site").await;
    let (step, plan) = stage.waiting(&id, "site").await;
    assert_eq!((&plan["changes"]["update"], &plan["changes"]["create"]), (&json!(1), &json!(0)), "{plan}");
    assert_eq!(answer(&stage), "app 1\n", "a plan changes nothing");
    stage.approve(&step).await;
    stage.until(&id, "success").await;
    assert_eq!(answer(&stage), "app 2\n");

    // An upgrade that fails is explained, and what was there before is there again.
    site(&stage, "crash");
    stage.sync().await;
    let (why, _) = stage.fails("site").await;
    assert!(why.contains("exit code 3") && why.contains("db:5432 does not answer"), "{why}");
    until("the release before", SOON * 3, async || {
        let told = stage.object("deployment", "site").unwrap();
        if told["status"]["readyReplicas"] == 1 { Ok(()) } else { Err(told["status"].to_string()) }
    })
    .await;
    assert_eq!(answer(&stage), "app 2\n");
    site(&stage, "serve");
    stage.sync().await;
    stage.deployed("site").await;

    // A secret is rotated, and who still has the old one is named.
    let file = stage.system.state_dir("a").join("secrets/token");
    fs_err::write(&file, "a token of the customer's own").unwrap();
    stage.run(json!({ "type": "sync_secrets" })).await;
    let secrets = stage.part("secrets").await;
    assert_eq!(secrets["outputs"]["token"]["readers"], json!([format!("Deployment/{namespace}/site")]), "{secrets}");

    // The job has run once for each image.
    stage.deployed("announce").await;
    let again = stage.deployed("announce").await;
    assert_eq!(ended(&again, "apply announce"), "auto-skipped", "it has run");
    assert_eq!(count(&stage, "jobs"), 1, "the earlier one is gone");

    // Drift by hand.
    stage.namespace.kubectl(&["scale", "deployment/site", "--replicas", "2"]);
    assert_eq!(stage.look("site").await.status.status, "drifted");
    stage.reconciled("site").await;
    assert_eq!(stage.object("deployment", "site").unwrap()["spec"]["replicas"], 1);

    // Nothing is left of it.
    stage.run(json!({ "type": "deprovision" })).await;
    for kind in ["deployments", "jobs", "secrets"] {
        assert_eq!(count(&stage, kind), 0, "{kind}");
    }
    stage.system.until_quiet().await;
}
