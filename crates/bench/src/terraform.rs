//! Terraform: what the system adds to a plan and an apply, beside the bare program in the same run; and what keeping a state costs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use api::control::Workflow;
use fs_err as fs;
use runner::seal::custody::Custodian;
use runner::seal::vault::Tools;
use serde_json::json;
use testkit::system::{Options, System, shown};

use crate::{Figure, percentile};

const ROUNDS: usize = 5;
const RESOURCES: usize = 50;
const SOON: Duration = Duration::from_secs(120);

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let system = System::start(options).await;
    let _builder = system.start_build_runner("build", |_| {}).await;
    let runner = system.start_runner("a").await;
    let dir = system.root().join("modules");
    write_app(&dir)?;
    let app = system.install.app_id.to_string();
    let mut figures = Vec::new();

    let (mut around, mut bare, mut three, mut bare_three) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        ferry(&system, &["apps", "sync", &dir.to_string_lossy(), "--app", &app]).await?;
        let install = system.install.name.as_str();
        let one = deploy(&system, &["installs", "deploy", install, "-c", "fifty", "-y", "--json"]).await?;
        let alone = plain(&dir.join("src/fifty"), system.root())?;
        let begun = Instant::now();
        ferry(&system, &["installs", "deploy", install, "-y", "--json"]).await?;
        let all = begun.elapsed().as_secs_f64();
        let mut sum = 0.0;
        for name in ["left", "right", "top"] {
            sum += plain(&dir.join("src").join(name), system.root())?;
        }
        ferry(&system, &["installs", "teardown", install, "-y", "--json"]).await?;
        // The first one finds nothing in any cache.
        if round > 0 {
            around.push(one - alone);
            bare.push(alone);
            three.push(all);
            bare_three.push(sum / 1000.0);
        }
    }
    let bare_ms = percentile(&mut bare, 0.5);
    let overhead = Figure::lower("tf_overhead_ms", percentile(&mut around, 0.5), "ms", 250.0);
    figures.push(overhead.over("bare init, plan and apply", bare_ms));
    let floor = percentile(&mut bare_three, 0.5);
    let deploy3 = Figure::lower("deploy3_terraform_s", percentile(&mut three, 0.5), "s", 2.0 * floor);
    figures.push(deploy3.over("the three bare runs, one after the other", floor));

    let custodian = Custodian::open(&runner.state_dir, Tools::default())?;
    for (mib, rounds, aim_ms) in [(1, 10, 50.0), (100, 3, 3000.0)] {
        let (ours, file) = state_write_ms(&custodian, system.root(), mib, rounds).await?;
        let name = if mib == 1 { "state_write_1mib_ms" } else { "state_write_100mib_ms" };
        figures.push(Figure::lower(name, ours, "ms", aim_ms).over("the same bytes to a file, durably", file));
    }
    Ok(figures)
}

pub(crate) async fn ferry(system: &System, words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = system.ferry(words).await;
    ensure!(output.status.success(), "{}", shown(&output));
    Ok(output.stdout)
}

/// How long plan and apply of a deploy took, in milliseconds, each from its beginning to its end.
async fn deploy(system: &System, words: &[&str]) -> anyhow::Result<f64> {
    ferry(system, words).await?;
    Ok(step_ms(system, "plan fifty").await? + step_ms(system, "apply fifty").await?)
}

/// How long a step of the newest workflow took, in milliseconds, once that is over.
pub(crate) async fn step_ms(system: &System, name: &str) -> anyhow::Result<f64> {
    let newest = system.client.workflows(Some(system.install.id.as_str()), 1).await?;
    let id = &newest.first().context("a workflow")?.id;
    let begun = Instant::now();
    let workflow: Workflow = loop {
        let workflow = system.client.workflow(id).await?;
        if workflow.finished {
            break workflow;
        }
        ensure!(begun.elapsed() < SOON, "the deploy does not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let step =
        workflow.steps.iter().find(|step| step.name.ends_with(name)).with_context(|| format!("no step {name}"))?;
    let (from, to) = (step.started_at.context("not started")?, step.finished_at.context("not finished")?);
    Ok(to.since(from).as_secs_f64() * 1000.0)
}

/// The same with the program alone: init, plan, apply, with a state in a file; milliseconds.
fn plain(module: &Path, root: &Path) -> anyhow::Result<f64> {
    let dir = root.join("bare").join(module.file_name().unwrap_or_default());
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    for entry in fs::read_dir(module)? {
        let path = entry?.path();
        fs::copy(&path, dir.join(path.file_name().unwrap_or_default()))?;
    }
    let begun = Instant::now();
    for words in
        [&["init", "-input=false"][..], &["plan", "-input=false", "-out=tfplan"], &["apply", "-input=false", "tfplan"]]
    {
        let output = std::process::Command::new("terraform")
            .args(words)
            .current_dir(&dir)
            .env_remove("TF_CLI_CONFIG_FILE")
            .env("CHECKPOINT_DISABLE", "1")
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(begun.elapsed().as_secs_f64() * 1000.0)
}

fn write_app(dir: &Path) -> anyhow::Result<()> {
    let put = |name: &str, text: String| -> anyhow::Result<()> {
        let path: PathBuf = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        Ok(fs::write(path, text)?)
    };
    put("metadata.toml", "version = \"v2\"\n".into())?;
    put("runner.toml", "runner_type = \"local\"\n".into())?;
    put("sandbox.toml", "terraform_version = \"latest\"\n[local]\ndirectory = \"src/base\"\n".into())?;
    put("src/base/main.tf", "resource \"terraform_data\" \"base\" {}\n".into())?;
    for (name, count, needs) in [
        ("fifty", RESOURCES, ""),
        ("left", 5, ""),
        ("right", 5, ""),
        ("top", 5, "dependencies = [\"left\", \"right\"]\n"),
    ] {
        let head = format!("name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"latest\"\n{needs}");
        put(&format!("components/{name}.toml"), format!("{head}[local]\ndirectory = \"src/{name}\"\n"))?;
        let text = format!("resource \"terraform_data\" \"thing\" {{\n  count = {count}\n  input = count.index\n}}\n");
        put(&format!("src/{name}/main.tf"), text)?;
    }
    Ok(())
}

/// The median time to seal a state and have it kept, and to write the same bytes to a file.
async fn state_write_ms(custodian: &Custodian, root: &Path, mib: usize, rounds: usize) -> anyhow::Result<(f64, f64)> {
    let (mut ours, mut file) = (Vec::new(), Vec::new());
    let (place, target) = (root.join("state.json"), if mib == 1 { "components/left" } else { "components/right" });
    // What is there already is followed.
    custodian.export(target, &place).await?;
    let there: serde_json::Value = serde_json::from_slice(&fs::read(&place)?)?;
    let lineage = there["lineage"].as_str().context("a lineage")?.to_owned();
    for n in 0..rounds {
        let state = state(mib, n as u64 + 1, &lineage);
        let begun = Instant::now();
        let written = fs::File::create(&place)?;
        std::io::Write::write_all(&mut &written, &state)?;
        written.sync_all()?;
        file.push(begun.elapsed().as_secs_f64() * 1000.0);
        let begun = Instant::now();
        custodian.import(target, &place).await?;
        ours.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    Ok((percentile(&mut ours, 0.5), percentile(&mut file, 0.5)))
}

/// A state of so many megabytes: resources with attributes that do not repeat.
fn state(mib: usize, serial: u64, lineage: &str) -> Vec<u8> {
    let mut instances = Vec::new();
    let mut bytes = 0;
    while bytes < mib << 20 {
        let n = instances.len();
        let noise = model::Digest::of(format!("{serial}|{n}").as_bytes()).hex().repeat(4);
        instances.push(json!({ "index_key": n, "schema_version": 0, "attributes": { "id": noise, "input": noise } }));
        bytes += 620;
    }
    let resource = json!({ "mode": "managed", "type": "terraform_data", "name": "thing",
        "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": instances });
    json!({ "version": 4, "terraform_version": "1.11.4", "serial": 1000 + serial, "lineage": lineage,
        "outputs": {}, "resources": [resource] })
    .to_string()
    .into_bytes()
}
