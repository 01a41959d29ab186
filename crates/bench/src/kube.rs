//! Kubernetes: a manifest of 200 objects beside `kubectl`, a chart beside `helm`, on the cluster of `make kube-up`.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use fs_err as fs;
use testkit::kube::{Cluster, Namespace};
use testkit::system::{Options, System};

use crate::terraform::{ferry, step_ms};
use crate::{Figure, percentile};

const ROUNDS: usize = 5;
const OBJECTS: usize = 200;
const CHART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-one\ndata:\n  word: {{ .Values.word | quote }}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  selector: {app: it}\n  ports: [{port: 80}]\n";

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let cluster = Cluster::get();
    let (namespace, beside) = (cluster.namespace("bench"), cluster.namespace("beside"));
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
    let (mut plan, mut apply, mut kubectl) = (Vec::new(), Vec::new(), Vec::new());
    let (mut chart, mut helm) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        write_app(&dir, &namespace, round)?;
        let app = system.install.app_id.to_string();
        ferry(&system, &["apps", "sync", &dir.to_string_lossy(), "--app", &app]).await?;
        deploy(&system, "maps").await?;
        let (planned, applied) = (step_ms(&system, "plan maps").await?, step_ms(&system, "apply maps").await?);
        let bare = bare_kubectl(&beside, &dir)?;
        deploy(&system, "chart").await?;
        let upgraded = step_ms(&system, "apply chart").await?;
        let bare_helm = bare_helm(&cluster, &beside, &dir, round)?;
        // The first one finds nothing in any cache.
        if round > 0 {
            plan.push(planned + applied);
            apply.push(applied);
            kubectl.push(bare);
            chart.push(upgraded);
            helm.push(bare_helm);
        }
    }
    let seconds = |values: &mut [f64]| percentile(values, 0.5) / 1000.0;
    let (bare, bare_helm) = (seconds(&mut kubectl), seconds(&mut helm));
    let (server_side, upgrade) = ("kubectl apply --server-side", "helm upgrade --install");
    let manifest = Figure::lower("manifest_apply_200_s", seconds(&mut apply), "s", 0.6 * bare).over(server_side, bare);
    let both = Figure::lower("manifest_plan_and_apply_200_s", seconds(&mut plan), "s", bare).over(server_side, bare);
    let chart = Figure::lower("helm_apply_s", seconds(&mut chart), "s", bare_helm + 0.15).over(upgrade, bare_helm);
    Ok(vec![manifest, both, chart])
}

async fn deploy(system: &System, component: &str) -> anyhow::Result<()> {
    let install = system.install.name.as_str();
    ferry(system, &["installs", "deploy", install, "-c", component, "-y", "--json"]).await.map(drop)
}

fn bare_kubectl(namespace: &Namespace, dir: &Path) -> anyhow::Result<f64> {
    let text = fs::read_to_string(dir.join("manifests/maps.yaml"))?;
    let file = dir.join("beside.yaml");
    fs::write(&file, text)?;
    let begun = Instant::now();
    namespace.kubectl(&["apply", "--server-side", "--filename", &file.to_string_lossy()]);
    Ok(begun.elapsed().as_secs_f64() * 1000.0)
}

fn bare_helm(cluster: &Cluster, namespace: &Namespace, dir: &Path, round: usize) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let mut command = Command::new("helm");
    command.args(["upgrade", "--install", "it"]).arg(dir.join("src/chart")).args(["--namespace", namespace.name()]);
    command.arg("--kubeconfig").arg(cluster.kubeconfig()).arg("--set").arg(format!("word=w{round}")).arg("--wait");
    let output = command.env("HELM_DRIVER", "configmap").output().context("helm")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(begun.elapsed().as_secs_f64() * 1000.0)
}

fn write_app(dir: &Path, namespace: &Namespace, round: usize) -> anyhow::Result<()> {
    let put = |name: &str, text: &str| -> anyhow::Result<()> {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        Ok(fs::write(path, text)?)
    };
    let namespace = namespace.name();
    put("metadata.toml", "version = \"v2\"\n")?;
    put("runner.toml", "runner_type = \"local\"\n")?;
    put("sandbox.toml", "terraform_version = \"latest\"\n[local]\ndirectory = \"src/base\"\n")?;
    put("src/base/main.tf", "resource \"terraform_data\" \"base\" {}\n")?;
    let maps = format!("name = \"maps\"\ntype = \"kubernetes_manifest\"\nnamespace = \"{namespace}\"\n");
    put("components/maps.toml", &format!("{maps}manifest = \"../manifests/maps.yaml\"\n"))?;
    let objects: Vec<String> = (0..OBJECTS)
        .map(|n| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{n}\ndata:\n  word: w{round}\n"))
        .collect();
    put("manifests/maps.yaml", &objects.join("---\n"))?;
    let chart = format!("name = \"chart\"\ntype = \"helm_chart\"\nchart_name = \"it\"\nnamespace = \"{namespace}\"\n");
    put(
        "components/chart.toml",
        &format!("{chart}[local]\ndirectory = \"src/chart\"\n[values]\nword = \"w{round}\"\n"),
    )?;
    put("src/chart/Chart.yaml", "apiVersion: v2\nname: it\nversion: 0.1.0\n")?;
    put("src/chart/values.yaml", "{}\n")?;
    put("src/chart/templates/all.yaml", CHART)
}
