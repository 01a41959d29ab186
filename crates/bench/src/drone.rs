//! Drones: runners without executors. The session is the real state machine with the real client; what it is given it
//! finishes at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use api::client::Client;
use api::control::{CreateApp, CreateInstall};
use api::runner::{Assignment, JoinAnswer};
use futures::{StreamExt as _, TryStreamExt as _};
use model::papers::Signatory;
use model::runner::RunnerReport;
use model::{ExecutionId, ExecutionResult, Outcome, RunnerId};
use runner::session::{About, Door, SessionClient, now, random_hex};
use runner::session::{Core, Effect, Event};
use tokio::sync::mpsc;

/// What all drones did together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) polls: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) results: AtomicU64,
}

/// A drone that has joined.
pub(crate) struct Drone {
    pub(crate) client: SessionClient,
    pub(crate) joined: JoinAnswer,
    pub(crate) seed: u64,
}

impl Drone {
    pub(crate) fn runner(&self) -> &RunnerId {
        &self.joined.runner_id
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
            let install = CreateInstall { name, aws_account: None, azure_account: None, gcp_account: None };
            let install = control.create_install(&app_id, &install).await?;
            let command = control.create_join_command(install.runner_id.as_str()).await?;
            let mut seed = [7; 32];
            seed[..8].copy_from_slice(&(n as u64 + 1).to_be_bytes());
            let key = Signatory::from_seed(&seed);
            let joined = Door { http, url: runner_url }.join(&command.credential, &key, "drone").await?;
            let client = SessionClient::new(http.clone(), runner_url, joined.runner_id.clone(), joined.generation, key);
            anyhow::Ok(Drone { client, joined, seed: n as u64 + 1 })
        }
    };
    futures::stream::iter((0..count).map(one)).buffered(32).try_collect().await
}

/// Flies one drone for ever. `held` hears of every job the moment it is held.
pub(crate) async fn fly(drone: Drone, tally: Arc<Tally>, held: Option<mpsc::UnboundedSender<(String, Instant)>>) {
    let report = RunnerReport { disk_free_bytes: 1 << 40, ..RunnerReport::default() };
    let (timing, settings) = (drone.joined.timing.clone(), drone.joined.settings.clone());
    let hold_s = timing.hold_s;
    let mut core = Core::new(timing, settings, report, 1, drone.seed);
    let (events, mut inbox) = mpsc::channel::<Event>(64);
    let mut assignments: BTreeMap<ExecutionId, Assignment> = BTreeMap::new();
    let started = Instant::now();
    let mut event = Event::Tick { disk_free_bytes: 1 << 40 };
    loop {
        let now_ms = started.elapsed().as_millis() as u64;
        for effect in core.handle(event, now_ms) {
            let (client, events, tally) = (drone.client.clone(), events.clone(), Arc::clone(&tally));
            match effect {
                Effect::Poll(mut request) => {
                    request.nonce = random_hex::<16>();
                    tokio::spawn(async move {
                        tally.polls.fetch_add(1, Ordering::Relaxed);
                        let seq = request.seq;
                        let event = match client.poll(&request, hold_s).await {
                            Ok(answer) => Event::PollAnswered { seq, nonce: request.nonce, answer: Box::new(answer) },
                            Err(error) => {
                                tally.failures.fetch_add(1, Ordering::Relaxed);
                                Event::PollFailed { seq, fenced: error.is_fenced() }
                            }
                        };
                        let _ = events.send(event).await;
                    });
                }
                Effect::Prepare { assignment, .. } => {
                    if let Some(held) = &held {
                        let _ = held.send((assignment.job_id.to_string(), Instant::now()));
                    }
                    let id = assignment.execution_id.clone();
                    assignments.insert(id.clone(), *assignment);
                    let _ = events.try_send(Event::Prepared(id));
                }
                Effect::Start(id) => {
                    let Some(a) = assignments.get(&id) else { continue };
                    let token = a.execution_token.clone();
                    tokio::spawn(async move {
                        let event = match client.start(About { id: &id, token: &token }).await {
                            Ok(_) => Event::Started(id),
                            Err(error) if error.is_transient() => Event::StartFailed(id),
                            Err(_) => Event::StartRefused(id),
                        };
                        let _ = events.send(event).await;
                    });
                }
                Effect::Spawn(id) => {
                    let Some(a) = assignments.get(&id).cloned() else { continue };
                    let _ = events.try_send(Event::Ended { id: id.clone(), has_result: true });
                    tokio::spawn(async move {
                        let about = About { id: &id, token: &a.execution_token };
                        while let Err(error) = client.result(about, a.epoch, &nothing()).await {
                            if !error.is_transient() {
                                break;
                            }
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                        tally.results.fetch_add(1, Ordering::Relaxed);
                        let _ = events.send(Event::Delivered(id)).await;
                    });
                }
                Effect::Remove(id) => {
                    assignments.remove(&id);
                }
                Effect::Exit(_) => return,
                Effect::Renew(held) => {
                    tokio::spawn(async move {
                        let event = match client.renew(held, Duration::from_secs(10)).await {
                            Ok(answer) => Event::Renewed(Box::new(answer)),
                            Err(error) => Event::RenewFailed { fenced: error.is_fenced() },
                        };
                        let _ = events.send(event).await;
                    });
                }
                Effect::Refuse(_)
                | Effect::RefuseStrange(_)
                | Effect::Cancel { .. }
                | Effect::Touch(_)
                | Effect::Finish(_)
                | Effect::Keep(_)
                | Effect::Learn(_) => {}
            }
        }
        let due = core.next_due_ms().unwrap_or(u64::MAX).saturating_sub(now_ms).min(3_600_000);
        event = tokio::select! {
            event = inbox.recv() => match event { Some(event) => event, None => return },
            () = tokio::time::sleep(Duration::from_millis(due)) => Event::Tick { disk_free_bytes: 1 << 40 },
        };
    }
}

/// The result of a job that did nothing.
pub(crate) fn nothing() -> ExecutionResult {
    let time = now();
    ExecutionResult {
        outcome: Outcome::Finished,
        error: None,
        steps: Vec::new(),
        outputs: serde_json::Map::new(),
        log_chunks: 0,
        started_at: time,
        finished_at: time,
    }
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
pub(crate) fn settings(groups: &[(model::JobGroup, u32)]) -> api::control::UpdateRunnerSettings {
    api::control::UpdateRunnerSettings {
        groups: Some(groups.iter().copied().collect()),
        disk_floor_bytes: None,
        execution_disk_bytes: None,
        spool_bytes: None,
        drain_s: None,
        health_check_s: Some(0),
    }
}
