//! A simulated org: the real server plays every step of its workflows. Apps of any size, from files.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use api::client::Client;
use api::control::{CreateApp, CreateInstall, CreateOrg, CreateWorkflow, Install, Workflow};
use serde_json::json;

use crate::system::{System, shown};

const APP: &str = "large";

/// A simulated org with an app.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    pub client: Client,
    pub org: String,
}

impl Rehearsal {
    /// Makes an org that plays its steps like this, and an app of so many components; see [`write_app`].
    pub async fn new(
        system: &System,
        simulation: &[(&str, u64)],
        components: usize,
        width: usize,
    ) -> anyhow::Result<Self> {
        let simulation = simulation.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let org = CreateOrg { name: "rehearsal".into(), use_sandbox_mode: true, simulation: Some(simulation) };
        let org = system.client.create_org(&org).await?.id.to_string();
        let client = system.client.with_org(Some(org.clone()));
        let app = CreateApp { name: APP.into(), display_name: String::new(), description: String::new() };
        client.create_app(&app).await?;
        let dir = system.root().join(APP);
        write_app(&dir, components, width)?;
        let rehearsal = Self { client, org };
        rehearsal.sync(system, &dir).await?;
        Ok(rehearsal)
    }

    pub async fn sync(&self, system: &System, dir: &Path) -> anyhow::Result<()> {
        let dir = dir.to_str().context("a path in UTF-8")?;
        let synced = system.ferry(&["--org", &self.org, "apps", "sync", dir, "--app", APP, "--no-wait"]).await;
        ensure!(synced.status.success(), "{}", shown(&synced));
        Ok(())
    }

    /// Makes an install, which begins to be provisioned.
    pub async fn install(&self, name: &str) -> anyhow::Result<Install> {
        let made = self.client.create_install(APP, &CreateInstall::local(name)).await?;
        ensure!(!made.workflow_id.is_empty(), "install {name} is not being provisioned");
        Ok(made)
    }

    /// Starts a workflow whose plans all pass.
    pub async fn start(&self, install: &str, kind: &str) -> anyhow::Result<String> {
        let body: CreateWorkflow = serde_json::from_value(json!({ "type": kind, "approve_all": true }))?;
        Ok(self.client.start_workflow(install, &body).await?.workflow_id)
    }

    /// Waits until a workflow has this status.
    pub async fn until(&self, id: &str, status: &str, bound: Duration) -> anyhow::Result<Workflow> {
        let started = Instant::now();
        loop {
            let workflow = self.client.workflow(id).await?;
            let now = &workflow.status;
            if now.status == status {
                return Ok(workflow);
            }
            let why = &now.status_human_description;
            ensure!(!workflow.finished, "workflow {id} is {}: {why}", now.status);
            ensure!(started.elapsed() < bound, "workflow {id} is still {} after {bound:?}: {why}", now.status);
            // Looking costs the server something: the longer it takes, the rarer.
            let pause = started.elapsed() / 10;
            tokio::time::sleep(pause.clamp(Duration::from_millis(5), Duration::from_millis(500))).await;
        }
    }
}

/// Writes an app of so many components in rows of `width`, of which each needs two of the row before; with a `width` of all of them
/// none needs another.
pub fn write_app(dir: &Path, components: usize, width: usize) -> anyhow::Result<()> {
    let files = [
        ("metadata.toml", "version = \"v2\"\n"),
        ("runner.toml", "runner_type = \"local\"\n"),
        ("sandbox.toml", "terraform_version = \"1.11.3\"\n[local]\ndirectory = \"src\"\n"),
        ("src/main.tf", "\n"),
    ];
    fs_err::create_dir_all(dir.join("src"))?;
    fs_err::create_dir_all(dir.join("components"))?;
    for (file, text) in files {
        fs_err::write(dir.join(file), text)?;
    }
    for n in 0..components {
        let row = n / width * width;
        let needs = |at: usize| row.checked_sub(width).map(|before| format!("\"{}\"", component(before + at % width)));
        let needs: Vec<String> = [needs(n), needs(n + 1)].into_iter().flatten().collect();
        let text = format!(
            "name = \"{}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\ndependencies = [{}]\n[local]\ndirectory = \"src\"\n",
            component(n),
            needs.join(", ")
        );
        fs_err::write(dir.join("components").join(format!("{}.toml", component(n))), text)?;
    }
    Ok(())
}

/// The name of a component of [`write_app`].
pub fn component(n: usize) -> String {
    format!("part_{n:04}")
}
