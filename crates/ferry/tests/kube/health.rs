//! Health of what is deployed: observed, explained, alerted, and waited for.

use std::time::{Duration, Instant};

use api::control::{ComponentHealth, Event, PushHealthCheck};
use model::health::Verdict;
use needs::needs;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::kube::{Cluster, images};
use testkit::system::{processes_of, send, until};

use crate::stage::{Stage, deployment, ended, newest};

/// What has changed is said within a minute; busy cores may need another one.
const SAID: Duration = Duration::from_secs(120);

impl Stage {
    async fn health(&self, component: &str) -> Result<ComponentHealth, String> {
        let health = self.client().install_health(self.install(), Some(90)).await.map_err(|e| e.to_string())?;
        let found = health.components.into_iter().find(|it| it.component == component);
        found.ok_or_else(|| format!("nothing is said of {component}"))
    }

    async fn until_health(&self, component: &str, is_so: impl Fn(&ComponentHealth) -> bool) -> ComponentHealth {
        until(&format!("the health of {component} is so"), SAID, async || {
            let health = self.health(component).await?;
            if is_so(&health) { Ok(health) } else { Err(format!("{health:?}").chars().take(2000).collect()) }
        })
        .await
    }

    async fn alerts(&self) -> Vec<Event> {
        self.client().events(None, Some("health"), 50).await.unwrap().0
    }

    fn watchers(&self) -> Vec<i32> {
        let watches = |command: &[u8]| command.split(|b| *b == 0).nth(1) == Some(b"watch-health");
        processes_of(self.system.root()).into_iter().filter(|p| watches(&p.command)).map(|p| p.pid).collect()
    }
}

/// A deployment whose container has more to it.
fn with(name: &str, image: &str, more: &Value) -> String {
    let mut container = json!({ "name": "main", "image": image });
    container.as_object_mut().unwrap().extend(more["container"].as_object().cloned().unwrap_or_default());
    let mut pod = json!({ "terminationGracePeriodSeconds": 0, "containers": [container] });
    pod.as_object_mut().unwrap().extend(more["pod"].as_object().cloned().unwrap_or_default());
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": 1, "strategy": { "type": "Recreate" }, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod },
        },
    });
    format!("---\n{object}\n")
}

#[tokio::test]
async fn what_turns_unhealthy_is_said_and_recovers() {
    needs!(KubeNode);
    let stage = Stage::start("health").await;
    let object = format!("Deployment/{}/web", stage.namespace.name());
    stage.manifest("web", "", &with("web", images::APP_1, &json!({})));
    stage.sync().await;
    stage.deployed("web").await;
    let well = stage.until_health("web", |it| it.verdict == Verdict::Healthy).await;
    assert_eq!((well.judged, well.objects.len()), (1, 0));

    // Its pods can't run any more.
    let image = |image: &str| {
        let container = json!({ "name": "main", "image": image });
        stage.patch("deployment", "web", &json!({ "spec": { "template": { "spec": { "containers": [container] } } } }));
    };
    let begun = Instant::now();
    image("ferry.test/no-such-image:7");
    let bad = stage.until_health("web", |it| it.verdict.is_bad() && it.reason.contains("can't be pulled")).await;
    eprintln!("said after {:?}: {}", begun.elapsed(), bad.reason);
    assert!(begun.elapsed() < Duration::from_secs(75), "{:?}", begun.elapsed());
    assert!(bad.reason.contains(&object) && bad.reason.contains("ferry.test/no-such-image:7"), "{}", bad.reason);
    assert_eq!((bad.objects[0].kind.as_str(), bad.objects[0].name.as_str()), ("Deployment", "web"));
    let shown = stage.ferry(&["installs", "health", stage.install()]).await;
    assert!(shown.contains("web") && shown.contains("no-such-image"), "{shown}");

    // Whoever kills the watcher finds another one, which goes on.
    let before = stage.watchers();
    assert_eq!(before.len(), 1, "{before:?}");
    send(before[0], Signal::KILL);
    image(images::APP_1);
    stage.until_health("web", |it| it.verdict == Verdict::Healthy).await;
    let after = stage.watchers();
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");

    let alerts = stage.alerts().await;
    let kinds: Vec<&str> = alerts.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["health.bad", "health.recovered"], "{alerts:?}");
    assert_eq!(alerts[0].data["component"], "web");
    let (history, _) = stage.client().health_history(stage.install(), Some("web"), 50).await.unwrap();
    assert!(history.windows(2).all(|pair| pair[0].from.as_deref() == Some(pair[1].to.as_str())), "{history:?}");
    let days = stage.health("web").await.unwrap().days;
    assert_eq!((days.len(), days[89].verdict.is_some()), (90, true));

    // An object that is gone is said by its name. With the component, its health goes.
    stage.namespace.kubectl(&["delete", "deployment", "web"]);
    stage.until_health("web", |it| it.verdict == Verdict::Unhealthy && it.reason.contains("is not there")).await;
    stage.run(json!({ "type": "teardown_component", "component": "web" })).await;
    until("nothing is observed", SAID, async || {
        let left = stage.client().install_health(stage.install(), Some(1)).await.map_err(|e| e.to_string())?.components;
        let gone = left.iter().all(|it| it.component != "web") && stage.watchers().is_empty();
        if gone { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    let alerts = stage.alerts().await;
    assert_eq!(alerts.iter().filter(|it| it.kind == "health.bad").count() * 2, alerts.len(), "{alerts:?}");
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn a_stateful_set_without_a_ready_pod_is_unhealthy() {
    needs!(KubeNode);
    let stage = Stage::start("down").await;
    let probe = json!({ "exec": { "command": ["/bin/sh", "-c", "test ! -e /tmp/ill"] }, "periodSeconds": 1, "failureThreshold": 1 });
    let container = json!({
        "name": "main", "image": images::SHELL, "command": ["/bin/sh", "-c", "sleep 3600"], "readinessProbe": probe,
    });
    let object = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db" },
        "spec": {
            "replicas": 1, "serviceName": "db", "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "labels": { "app": "db" } },
                "spec": { "terminationGracePeriodSeconds": 0, "containers": [container] },
            },
        },
    });
    stage.manifest("db", "", &format!("---\n{object}\n"));
    stage.sync().await;
    stage.deployed("db").await;
    stage.until_health("db", |it| it.verdict == Verdict::Healthy).await;
    stage.namespace.kubectl(&["exec", "db-0", "--", "touch", "/tmp/ill"]);
    let bad = stage.until_health("db", |it| it.verdict == Verdict::Unhealthy).await;
    assert!(bad.reason.contains(&format!("StatefulSet/{}/db", stage.namespace.name())), "{}", bad.reason);
    stage.namespace.kubectl(&["exec", "db-0", "--", "rm", "/tmp/ill"]);
    stage.until_health("db", |it| it.verdict == Verdict::Healthy).await;
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn every_reason_names_the_object_and_what_to_do() {
    needs!(KubeNode);
    let stage = Stage::start("reasons").await;
    let script = |text: &str| json!({ "command": ["/bin/sh", "-c", text] });
    let memory = json!({ "command": ["/bin/sh", "-c", "x=0123456789abcdef; while true; do x=$x$x; done"], "resources": { "limits": { "memory": "24Mi" } } });
    let probe = json!({ "readinessProbe": { "httpGet": { "path": "/healthz", "port": 8080 }, "periodSeconds": 1 } });
    let mount =
        json!({ "command": ["/programs/foreign"], "volumeMounts": [{ "name": "p", "mountPath": "/programs" }] });
    let volume = json!({ "volumes": [{ "name": "p", "configMap": { "name": "foreign", "defaultMode": 493 } }] });
    let foreign = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "foreign" }, "binaryData": { "foreign": "f0VMRgIBAQAAAAAAAAAAAAIA8wABAAAA" } });
    let all = [
        with("missing", "ferry.test/no-such-image:7", &json!({})),
        with("crash", images::SHELL, &json!({ "container": script("echo out of luck >&2; exit 3") })),
        with("greedy", images::SHELL, &json!({ "container": memory })),
        with("nowhere", images::APP_1, &json!({ "pod": { "nodeSelector": { "no": "such-node" } } })),
        with("never", images::UNREADY, &json!({ "container": probe })),
        with("foreign", images::SHELL, &json!({ "container": mount, "pod": volume })),
        format!("---\n{foreign}\n"),
    ];
    stage.manifest("all", "wait = false", &all.concat());
    stage.sync().await;
    stage.deployed("all").await;
    for (name, parts) in [
        ("missing", &["ferry.test/no-such-image:7", "can't be pulled", "check its name"][..]),
        ("crash", &["exit code 3", "out of luck"]),
        ("greedy", &["more memory than its limit", "resources.limits.memory"]),
        ("nowhere", &["no node can take the pod", "add a node"]),
        ("never", &["runs and is not ready", "Readiness probe failed"]),
        ("foreign", &["exec format error", "another architecture"]),
    ] {
        let told = stage.until_health("all", |it| {
            let object = it.objects.iter().find(|object| object.name == name);
            object.is_some_and(|object| parts.iter().all(|part| object.reason.contains(part)))
        });
        let told = told.await;
        let object = told.objects.iter().find(|object| object.name == name).unwrap();
        assert!(object.reason.contains(&format!("Deployment/{}/{name}", stage.namespace.name())), "{}", object.reason);
        eprintln!("{}", object.reason);
    }
    assert!(stage.health("all").await.unwrap().verdict.is_bad());
    stage.run(json!({ "type": "teardown_component", "component": "all" })).await;
    stage.system.until_quiet().await;
}

#[tokio::test]
async fn what_may_not_be_read_is_unknown_and_probes_are_tried() {
    needs!(KubeNode);
    let stage = Stage::start("unread").await;
    let namespace = stage.namespace.name().to_owned();
    let good = "[[health.probes]]\ntype = \"exec\"\nname = \"sum\"\ncommand = [\"/bin/sh\", \"-c\", \"test $((1 + 1)) = 2\"]\n";
    let bad = "[[health.probes]]\ntype = \"exec\"\nname = \"peek\"\ncommand = [\"/bin/sh\", \"-c\", \"cat STATE/session.key\"]\n";
    let state = stage.system.state_dir("a");
    stage.manifest("web", good, &deployment("web", "web", images::APP_1));
    stage.manifest("peek", &bad.replace("STATE", state.to_str().unwrap()), &deployment("peek", "peek", images::APP_1));
    stage.sync().await;
    stage.deployed("web").await;
    stage.deployed("peek").await;
    let well = stage.until_health("web", |it| it.verdict == Verdict::Healthy).await;
    assert_eq!(well.judged, 2, "an object and a probe");
    // A probe is confined as a script is: what the runner keeps is not there for it.
    let told = stage.until_health("peek", |it| it.verdict == Verdict::Unhealthy).await;
    assert!(told.reason.contains("probe `peek`") && told.reason.contains("ermission denied"), "{}", told.reason);

    // From now on the runner may read next to nothing.
    stage.namespace.kubectl(&["create", "serviceaccount", "blind"]);
    let known = format!("{namespace}-blind");
    let cluster = Cluster::get();
    cluster.kubectl(&["create", "clusterrole", &known, "--verb=get", "--resource=namespaces"]);
    let account = format!("--serviceaccount={namespace}:blind");
    cluster.kubectl(&["create", "clusterrolebinding", &known, &format!("--clusterrole={known}"), &account]);
    let token = stage.namespace.kubectl(&["create", "token", "blind"]);
    let file = stage.kubeconfig();
    for words in [
        &["set-credentials", "blind", &format!("--token={}", token.trim())][..],
        &["set-context", "--current", "--user=blind"],
    ] {
        let config = ["--kubeconfig", file.to_str().unwrap(), "config"];
        let done = std::process::Command::new("kubectl").args(config).args(words).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let watchers = stage.watchers();
    assert_eq!(watchers.len(), 1);
    send(watchers[0], Signal::KILL);
    let told = stage.until_health("web", |it| it.verdict == Verdict::Unknown).await;
    assert!(told.reason.contains("may not watch") && told.reason.contains("Deployment"), "{}", told.reason);
    assert!(stage.alerts().await.iter().all(|event| event.data["component"] != "web"), "nobody is alerted of it");
    cluster.kubectl(&["delete", "clusterrole,clusterrolebinding", &known]);
}

#[tokio::test]
async fn a_deploy_waits_until_it_stays_healthy() {
    needs!(KubeNode);
    let stage = Stage::start("gate").await;
    let gate = "[health]\nblock_deploy = true\nstabilization_window = \"10s\"\n";
    let checked = format!("{gate}required_checks = [\"smoke\"]\n");
    let broken = deployment("broken", "broken", "ferry.test/no-such-image:7");
    stage.manifest("good", &checked, &deployment("good", "good", images::APP_1));
    stage.manifest("broken", &format!("wait = false\n{gate}"), &broken);
    stage.sync().await;
    let id = stage.begin(json!({ "type": "manual_deploy", "component": "good", "approve_all": true })).await;
    let waits = until("it waits for the check", SAID, async || {
        let workflow = stage.client().workflow(&id).await.map_err(|e| e.to_string())?;
        let step = newest(&workflow, "verify health good").ok_or("no step")?;
        let told = step.status.status_human_description.clone();
        if told.contains("`smoke` was not reported") { Ok(step.clone()) } else { Err(told) }
    });
    assert_eq!(waits.await.status.status, "in-progress");
    let check = |status| PushHealthCheck { status, message: "from the test".into(), stale_after: Some("10m".into()) };
    let push = |status| {
        let (client, install) = (stage.client(), stage.install());
        async move { client.push_health_check(install, "good", "smoke", &check(status)).await.unwrap() }
    };
    let told = push(Verdict::Healthy).await;
    assert_eq!(told.components[0].checks[0].name, "smoke");
    let done = stage.until(&id, "success").await;
    assert_eq!(ended(&done, "verify health good"), "success");

    let id = stage.begin(json!({ "type": "manual_deploy", "component": "broken", "approve_all": true })).await;
    let failed = stage.until_step(&id, "verify health broken", "error").await;
    let why = &failed.status.status_human_description;
    assert!(why.contains("no-such-image") && why.contains("broken is not healthy"), "{why}");
    // People may go on without it.
    stage.ferry(&["steps", "skip", &failed.id]).await;
    stage.until(&id, "warning").await;
}
