//! The dashboard: what the server takes for a page of a fleet of 10,000, and what a real Chromium shows when.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use api::client::Client;
use api::control::{CreateApp, CreateInstall, CreateOrg};
use futures::StreamExt as _;
use serde_json::Value;
use testkit::system::{Options, System, script, shown};

use crate::{Figure, percentile};

/// Installs of the fleet whose page is measured.
const FLEET: usize = 10_000;
/// Those that a browser shows.
const SHOWN: usize = 1_000;
const AT_ONCE: usize = 16;
const ROUNDS: usize = 100;
/// Lines of the log that a browser jumps about in.
const LINES: usize = 1_000_000;

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) async fn figures(options: Options) -> anyhow::Result<Vec<Figure>> {
    let system = System::start(options).await;
    let small = org(&system, "small", SHOWN).await?;
    let large = org(&system, "large", FLEET).await?;
    let (fleet_ms, floor_ms) = page_ms(&system, &large).await?;
    let mut figures = vec![Figure::lower("fleet_page_ms", fleet_ms, "ms", 20.0).over("GET /livez", floor_ms)];
    let _runner = system.start_runner("local").await;
    let text = format!("i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo \"line $i\"; done; exit 0");
    let job = system.run(vec![script("print", &text)]).await;
    let shown = browser(&system, &small, job.log_stream_id.as_str()).await?;
    let figure = |name: &str| shown[name].as_f64().with_context(|| format!("no {name} in {shown}"));
    figures.push(Figure::lower("ui_first_load_kib", figure("ui_first_load_kib")?, "KiB", 250.0));
    figures.push(Figure::lower("interaction_p95_ms", figure("interaction_p95_ms")?, "ms", 100.0));
    figures.push(Figure::lower("event_to_pixel_p95_ms", figure("event_to_pixel_p95_ms")?, "ms", 200.0));
    figures.push(Figure::lower("log_jump_p95_ms", figure("log_jump_p95_ms")?, "ms", 300.0));
    Ok(figures)
}

/// A simulated org with so many installs of an app with components; returns its id. They are made before the app has a version: none of
/// them deploys.
async fn org(system: &System, name: &str, installs: usize) -> anyhow::Result<String> {
    let org = CreateOrg { name: name.into(), use_sandbox_mode: true, simulation: None };
    let org = system.client.create_org(&org).await?.id.to_string();
    let client: Client = system.client.with_org(Some(org.clone()));
    let app = CreateApp { name: "shop".into(), display_name: String::new(), description: String::new() };
    client.create_app(&app).await?;
    let made = futures::stream::iter(0..installs).map(|n| {
        let client = client.clone();
        async move {
            let mut install = CreateInstall::local(format!("customer-{n:05}"));
            let env = if n % 3 == 0 { "dev" } else { "prod" };
            install.labels = [("env".to_owned(), env.to_owned())].into();
            client.create_install("shop", &install).await.map(drop)
        }
    });
    let made: Vec<_> = made.buffer_unordered(AT_ONCE).collect().await;
    made.into_iter().collect::<Result<Vec<_>, _>>()?;
    let dir = repo().join("examples/shop");
    let dir = dir.to_str().context("a path")?;
    let synced = system.ferry(&["--org", &org, "apps", "sync", dir, "--app", "shop", "--no-wait"]).await;
    ensure!(synced.status.success(), "{}", shown(&synced));
    Ok(org)
}

/// The median of a filtered page, and of an answer without anything in it.
async fn page_ms(system: &System, org: &str) -> anyhow::Result<(f64, f64)> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let time = async |path: &str| -> anyhow::Result<f64> {
        let started = Instant::now();
        let call = http.get(format!("{}{path}", system.control_url)).bearer_auth(system.token());
        let answer = call.header(api::headers::ORG, org).send().await?.error_for_status()?;
        answer.bytes().await?;
        Ok(started.elapsed().as_secs_f64() * 1000.0)
    };
    let path = "/v1/fleet?labels=env%3Dprod&sort=-changed&limit=100";
    // Summaries are put together in the background; the first page reads them all.
    let started = Instant::now();
    loop {
        let call = http.get(format!("{}/v1/fleet?limit=1", system.control_url)).bearer_auth(system.token());
        let fleet: Value = call.header(api::headers::ORG, org).send().await?.error_for_status()?.json().await?;
        if fleet["total"].as_u64() == Some(FLEET as u64) {
            break;
        }
        ensure!(started.elapsed().as_secs() < 300, "summaries are missing: {}", fleet["total"]);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let (mut pages, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        pages.push(time(path).await?);
        floors.push(time("/livez").await?);
    }
    Ok((percentile(&mut pages, 0.5), percentile(&mut floors, 0.5)))
}

async fn browser(system: &System, org: &str, log: &str) -> anyhow::Result<Value> {
    let tools = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repo().join("target"), PathBuf::from);
    let node = tools.join("idp-tools/node");
    let mut command = tokio::process::Command::new(node);
    command.arg(repo().join("ui/e2e/speed.mjs")).current_dir(repo()).kill_on_drop(true);
    command.env("CONTROL", &system.control_url).env("TOKEN", system.token()).env("ORG", org);
    command.env("REAL_ORG", system.org.id.as_str()).env("JOB_LOG", log).env("FLEET_N", SHOWN.to_string());
    let out = command.output().await?;
    let text = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "speed.mjs: {text}\n{}", String::from_utf8_lossy(&out.stderr));
    let last = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    last.context("speed.mjs prints its figures")
}
