//! An image of 1 GiB from the control plane's registry to the customer's, beside `skopeo copy` of the same image in the same run. Both
//! write to a fresh `docker-registry`; who goes first changes.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use fs_err as fs;
use model::Digest;
use serde_json::{Value, json};
use testkit::system::{Options, Runner, System};
use tokio::process::Command;

use crate::registry::{DockerRegistry, LAYER_BYTES, LAYERS, blobs};
use crate::terraform::{ferry, step_ms};
use crate::{Figure, percentile};

const ROUNDS: usize = 3;

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let system = System::start(options).await;
    let builder = system.start_build_runner("build", |_| {}).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let dir = system.root().join("images");
    let mut runner: Option<Runner> = None;
    for round in 0..ROUNDS {
        let source = DockerRegistry::start().await?;
        put_image(&source, round as u64).await?;
        write_app(&dir, &source.url)?;
        let app = system.install.app_id.to_string();
        ferry(&system, &["apps", "sync", &dir.to_string_lossy(), "--app", &app]).await?;
        drop(source);
        let (customers, beside) = (DockerRegistry::start().await?, DockerRegistry::start().await?);
        runner = Some(start_runner(&system, runner.take(), &customers.url).await?);
        let (mut us, mut them) = (0.0, 0.0);
        for turn in 0..2 {
            if (turn + round) % 2 == 0 {
                let install = system.install.name.as_str();
                ferry(&system, &["installs", "deploy", install, "-c", "web", "-y", "--json"]).await?;
                us = step_ms(&system, "sync web").await? / 1000.0;
            } else {
                them = skopeo(&system, &beside).await?;
            }
        }
        eprintln!("ours {us:.2} s, skopeo {them:.2} s");
        ours.push(us);
        theirs.push(them);
    }
    drop((runner, builder));
    let (us, them) = (percentile(&mut ours, 0.5), percentile(&mut theirs, 0.5));
    Ok(vec![Figure::lower("image_sync_1gib_s", us, "s", them).over("skopeo copy", them)])
}

/// The install's runner, on its state directory, with a registry of the customer's.
async fn start_runner(system: &System, before: Option<Runner>, registry: &str) -> anyhow::Result<Runner> {
    let join = system.join_command().await;
    if let Some(mut before) = before {
        before.kill();
    }
    let mut command = system.resume_command("a");
    command.env(model::env::RUNNER_JOIN, &join.credential).env(model::env::RUNNER_TRUST_KEY, join.trust_keys.join(","));
    command.env(model::env::RUNNER_REGISTRY, format!("{registry}/customer"));
    let runner = system.spawn_runner("a", &mut command);
    let there = |r: &api::control::Runner| r.status == "active" && r.report.is_some();
    system.until_runner("the runner is there", testkit::system::SOON, there).await;
    Ok(runner)
}

/// Ten layers that no one has pushed before.
async fn put_image(registry: &DockerRegistry, round: u64) -> anyhow::Result<()> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let put = async |bytes: Vec<u8>| -> anyhow::Result<Value> {
        let digest = Digest::of(&bytes);
        let size = bytes.len();
        let begun = http.post(format!("{}/v2/it/blobs/uploads/", registry.url)).send().await?.error_for_status()?;
        let place = begun.headers().get("location").context("no Location")?.to_str()?.to_owned();
        let place = format!("{place}{}digest={digest}", if place.contains('?') { '&' } else { '?' });
        http.put(place).body(bytes).send().await?.error_for_status()?;
        Ok(json!({ "digest": digest, "size": size }))
    };
    let mut layers = Vec::new();
    let mut ids = Vec::new();
    for (bytes, digest) in blobs(round * 1000 + 7, LAYERS, LAYER_BYTES) {
        let mut layer = put(bytes.to_vec()).await?;
        layer["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar");
        layers.push(layer);
        ids.push(digest);
    }
    let config = json!({ "architecture": "amd64", "os": "linux", "config": {}, "rootfs": { "type": "layers", "diff_ids": ids } });
    let mut config = put(config.to_string().into_bytes()).await?;
    config["mediaType"] = json!("application/vnd.oci.image.config.v1+json");
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers });
    let call = http.put(format!("{}/v2/it/manifests/1", registry.url)).header("content-type", kind);
    call.body(manifest.to_string()).send().await?.error_for_status()?;
    Ok(())
}

fn write_app(dir: &Path, source: &str) -> anyhow::Result<()> {
    let put = |name: &str, text: &str| -> anyhow::Result<()> {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        Ok(fs::write(path, text)?)
    };
    put("metadata.toml", "version = \"v2\"\n")?;
    put("runner.toml", "runner_type = \"local\"\n")?;
    put("sandbox.toml", "terraform_version = \"latest\"\n[local]\ndirectory = \"src/base\"\n")?;
    put("src/base/main.tf", "resource \"terraform_data\" \"base\" {}\n")?;
    // Another text each time, since the tag stays: it is looked at anew.
    let image =
        format!("name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"{source}/it\"\ntag = \"1\"\n");
    put("components/web.toml", &image)
}

/// Seconds that skopeo takes for the newest image of the component.
async fn skopeo(system: &System, to: &DockerRegistry) -> anyhow::Result<f64> {
    let app = system.install.app_id.to_string();
    let builds = system.client.builds(Some(&app), None, 1).await?;
    let build = builds.first().context("no build")?;
    let digest = &build.artifact.as_ref().context("no artifact")?.digest;
    let host = system.control_url.split_once("://").context("no address")?.1;
    let from = format!("docker://{host}/{}/{app}/{}@{digest}", system.org.id, build.component_id);
    let home = tempfile::tempdir()?;
    let begun = Instant::now();
    let to = to.url.split_once("://").context("no address")?.1;
    let output = Command::new("skopeo")
        .args(["copy", "--quiet", "--src-tls-verify=false", "--dest-tls-verify=false"])
        .arg(format!("--src-creds=any:{}", system.token()))
        .arg(from)
        .arg(format!("docker://{to}/beside:1"))
        // No memory of what lies where.
        .env("HOME", home.path())
        .env("XDG_DATA_HOME", home.path())
        .output()
        .await
        .context("skopeo is missing: run scripts/apt-tools.sh")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(begun.elapsed().as_secs_f64())
}
