//! Drones that do nothing, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use api::client::Client;
use api::control::{CreateApp, CreateInstall, UpdateRunnerSettings};
use api::runner::Assignment;
use futures::{StreamExt as _, TryStreamExt as _};
use model::JobGroup;
use runner::session::CallError;
use testkit::drone::{Drone, Work};
use tokio::sync::mpsc;

/// What all drones did together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) polls: Arc<AtomicU64>,
    pub(crate) results: Arc<AtomicU64>,
    /// Hears of every job the moment it is held.
    pub(crate) held: Option<mpsc::UnboundedSender<(String, Instant)>>,
}

impl Work for Tally {
    fn polls(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    fn held(&self, work: &Assignment) {
        if let Some(held) = &self.held {
            let _ = held.send((work.job_id.to_string(), Instant::now()));
        }
    }

    fn delivered(&self, _work: &Assignment, outcome: Result<(), CallError>) {
        self.results.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
    }
}

/// Makes installs, and lets a drone join for each of them. `https` are clients of several source addresses.
pub(crate) async fn join(
    control: &Client,
    runner_url: &str,
    https: &[reqwest::Client],
    app: &str,
    count: usize,
) -> anyhow::Result<Vec<Drone>> {
    let made = CreateApp { name: app.into(), display_name: String::new(), description: String::new() };
    let app_id = control.create_app(&made).await?.id.to_string();
    let one = |n: usize| {
        let (app_id, http) = (app_id.clone(), &https[n % https.len()]);
        async move {
            let name = format!("{app}-{n}");
            let install = CreateInstall::local(name);
            let install = control.create_install(&app_id, &install).await?;
            Drone::join(control, http, runner_url, &install.runner_id).await
        }
    };
    futures::stream::iter((0..count).map(one)).buffered(32).try_collect().await
}

/// HTTP clients of the runner's own kind, from several loopback addresses.
pub(crate) fn clients(addresses: u8, ca_file: Option<&std::path::Path>) -> anyhow::Result<Vec<reqwest::Client>> {
    let one = |n: u8| {
        let mut builder = reqwest::Client::builder()
            .local_address(std::net::IpAddr::from([127, 0, 0, n + 1]))
            .connect_timeout(Duration::from_secs(10))
            .no_proxy();
        builder = match ca_file {
            Some(file) => {
                let pem = fs_err::read(file)?;
                builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            }
            None => builder.tls_certs_only([]),
        };
        builder.build().context("an HTTP client")
    };
    (0..addresses).map(one).collect()
}

/// Settings of a runner with these slots, which is asked for no health check.
pub(crate) fn settings(groups: &[(JobGroup, u32)]) -> UpdateRunnerSettings {
    UpdateRunnerSettings {
        groups: Some(groups.iter().copied().collect()),
        health_check_s: Some(0),
        ..Default::default()
    }
}
