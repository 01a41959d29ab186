//! Health: what observing a thousand objects costs the API server and the runner, on the cluster of `make kube-up`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fs_err as fs;
use model::health::Verdict;
use testkit::kube::{Cluster, Namespace};
use testkit::system::{Options, System, processes_of};

use crate::Figure;
use crate::terraform::ferry;

/// Half of them are Deployments without pods, half Services.
const OBJECTS: usize = 1000;
/// In which Linux counts the time of processes.
const TICKS_S: f64 = 100.0;
/// How long it is measured.
const MEASURED: Duration = Duration::from_secs(120);
/// How long it may take until everything is healthy.
const SETTLED: Duration = Duration::from_secs(300);
/// Of those that read; controllers do little else here.
const VERBS: [&str; 3] = ["GET", "LIST", "WATCH"];

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let cluster = Cluster::get();
    let namespace = cluster.namespace("health");
    let system = System::start(options).await;
    let _builder = system.start_build_runner("build", |_| {}).await;
    let join = system.join_command().await;
    let kubeconfig = cluster.kubeconfig().to_owned();
    let _runner = system
        .start_runner_with("a", &join, |command| {
            command.env(model::env::RUNNER_KUBECONFIG, &kubeconfig);
        })
        .await;
    let dir = system.root().join("objects");
    write_app(&dir, &namespace)?;
    let (app, install) = (system.install.app_id.to_string(), system.install.name.as_str());
    ferry(&system, &["apps", "sync", &dir.to_string_lossy(), "--app", &app]).await?;
    ferry(&system, &["installs", "deploy", install, "-c", "many", "-y", "--json"]).await?;
    let begun = Instant::now();
    loop {
        let health = system.client.install_health(install, Some(0)).await?;
        let found = health.components.iter().find(|it| it.component == "many");
        if found.is_some_and(|it| it.verdict == Verdict::Healthy && it.judged as usize == OBJECTS) {
            break;
        }
        ensure!(begun.elapsed() < SETTLED, "the objects are not healthy: {found:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let watcher = watcher_of(&system).context("there is no watcher")?;
    let (requests, cpu) = (requests_in(&cluster)?, cpu_s(watcher)?);
    tokio::time::sleep(MEASURED).await;
    let minutes = MEASURED.as_secs_f64() / 60.0;
    let cpu = (cpu_s(watcher)? - cpu) / minutes;
    let requests = (requests_in(&cluster)? - requests) / minutes;
    Ok(vec![
        Figure::lower("health_requests_min", requests, "1/min", 60.0),
        Figure::lower("health_cpu_s_min", cpu, "s", 1.0),
        Figure::lower("health_watcher_rss_mib", rss_mib(watcher)?, "MiB", 64.0),
    ])
}

fn watcher_of(system: &System) -> Option<i32> {
    let watches = |command: &[u8]| command.split(|b| *b == 0).nth(1) == Some(b"watch-health");
    processes_of(system.root()).into_iter().find(|p| watches(&p.command)).map(|p| p.pid)
}

/// Requests for the kinds that are observed, as the API server counts them: the whole cluster's, which is otherwise idle.
fn requests_in(cluster: &Cluster) -> anyhow::Result<f64> {
    let metrics = cluster.kubectl(&["get", "--raw", "/metrics"]);
    let of_us = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && ["deployments", "services", "pods", "events"]
                .iter()
                .any(|it| line.contains(&format!("resource=\"{it}\"")))
            && VERBS.iter().any(|verb| line.contains(&format!("verb=\"{verb}\"")))
    };
    let count = |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok());
    Ok(metrics.lines().filter(of_us).filter_map(count).sum())
}

fn cpu_s(pid: i32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(')').context("stat")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    Ok((ticks(11) + ticks(12)) / TICKS_S)
}

fn rss_mib(pid: i32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.split_whitespace().nth(1).context("VmRSS")?.parse()?;
    Ok(kib / 1024.0)
}

fn write_app(dir: &Path, namespace: &Namespace) -> anyhow::Result<()> {
    let put = |name: &str, text: &str| -> anyhow::Result<()> {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        Ok(fs::write(path, text)?)
    };
    put("metadata.toml", "version = \"v2\"\n")?;
    put("runner.toml", "runner_type = \"local\"\n")?;
    put("sandbox.toml", "terraform_version = \"latest\"\n[local]\ndirectory = \"src/base\"\n")?;
    put("src/base/main.tf", "resource \"terraform_data\" \"base\" {}\n")?;
    let head = format!("name = \"many\"\ntype = \"kubernetes_manifest\"\nnamespace = \"{}\"\n", namespace.name());
    put("components/many.toml", &format!("{head}manifest = \"../manifests/many.yaml\"\n"))?;
    let objects: Vec<String> = (0..OBJECTS / 2)
        .flat_map(|n| {
            [
                format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d{n}\nspec:\n  replicas: 0\n  selector: {{matchLabels: {{app: d{n}}}}}\n  template:\n    metadata: {{labels: {{app: d{n}}}}}\n    spec: {{containers: [{{name: main, image: ferry.test/app:1}}]}}\n"),
                format!("apiVersion: v1\nkind: Service\nmetadata:\n  name: s{n}\nspec:\n  clusterIP: None\n  selector: {{app: d{n}}}\n  ports: [{{port: 80}}]\n"),
            ]
        })
        .collect();
    put("manifests/many.yaml", &objects.join("---\n"))
}
