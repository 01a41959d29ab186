//! Observes what is deployed: a process of its own beside the session, which starts it again when it dies. It holds no job and
//! changes nothing; what it is to look at comes signed from the control plane, because probes start programs.

mod board;
mod objects;
mod probes;

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use api::runner::{HealthRequest, WatchAnswer};
use kubernetes::{ObjectRef, health_of};
use mask::Masks;
use model::InstallId;
use model::health::{Verdict, Watch};
use model::kubernetes::ClusterSpec;
use model::papers::{Expected, TrustedKeys};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Instant;

use self::board::{Board, Component};
use crate::directory::{ExecutionContext, ExecutionDir};
use crate::execute::sealed::{Opened, opened, replaced};
use crate::execute::secrets::known_values;
use crate::net;
use crate::patience::Patience;
use crate::seal::vault::Vault;
use crate::session::{CallError, SessionClient, StateDir, now, random_hex};

/// Observations follow one another no faster than this, however much happens; and no slower.
const SOON: Duration = Duration::from_secs(15);
const SLOW: Duration = Duration::from_secs(60);
/// How long the first observation waits for everything to be read.
const FIRST: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_secs(1);
/// Written for `explain`: what is observed.
pub const SUMMARY: &str = "summary.json";

/// Why a watcher ends before its time.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("there is nothing to observe")]
    Nothing,
    #[error("{0}")]
    Failed(String),
}

fn failed(why: impl std::fmt::Display) -> End {
    End::Failed(why.to_string())
}

/// Observes until the session is gone, or has something else to say. Succeeds only where there is nothing to observe.
pub async fn run(dir: &Path) -> ExitCode {
    let ended = tokio::select! {
        ended = observe(dir) => ended,
        () = parent_gone() => return ExitCode::FAILURE,
    };
    match ended {
        Err(End::Nothing) => ExitCode::SUCCESS,
        Err(End::Failed(why)) => {
            tracing::error!(why, "health is not observed");
            ExitCode::FAILURE
        }
        Ok(never) => match never {},
    }
}

/// The session holds the other end of this process's standard input.
async fn parent_gone() {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().and_then(Receiver::from_owned_fd);
    let (Ok(mut stdin), mut byte) = (stdin, [0]) else { return };
    while matches!(stdin.read(&mut byte).await, Ok(1)) {}
}

async fn observe(path: &Path) -> Result<std::convert::Infallible, End> {
    let dir = ExecutionDir::open(path).map_err(failed)?;
    let context = dir.context().map_err(failed)?;
    let state = StateDir::new(&context.state_dir);
    let session = state.session().map_err(failed)?.ok_or_else(|| failed("there is no session"))?;
    let install = session.install_id.ok_or_else(|| failed("this runner is of no install"))?;
    let key = state.key().map_err(failed)?.ok_or_else(|| failed("the session has no key"))?;
    let http = net::client(&context.runner_url, context.ca_file.as_deref()).map_err(|e| failed(net::chain(&e)))?;
    let client = SessionClient::new(http, &context.runner_url, context.runner_id.clone(), context.generation, key);
    let asked = ask(&client, &context, &install).await;
    if matches!(asked, Err(End::Nothing)) {
        let _ = fs_err::remove_file(dir.path().join(SUMMARY));
    }
    let (version, watch) = asked?;
    let (watch, masks) = fill(watch, &client, &context, &install, &dir).await?;
    dir.write_json(SUMMARY, &masks.mask_value(summary(&watch))).map_err(failed)?;

    let ways: Vec<ClusterSpec> = watch.components.iter().map(|it| it.cluster.clone()).collect();
    let (board, clusters) = lay_out(watch);
    let board = Arc::new(board);
    for (at, cluster) in clusters.into_iter().enumerate() {
        let (board, given, masks) = (Arc::clone(&board), context.tools.kubeconfig.clone(), Arc::clone(&masks));
        tokio::spawn(async move { objects::observe(&board, at, &cluster, given.as_deref(), &masks).await });
    }
    for (component, probe) in board.probes() {
        let (board, context, dir) = (Arc::clone(&board), context.clone(), dir.clone());
        let cluster = ways[component.0].clone();
        tokio::spawn(async move { probes::observe(&board, component, probe, &cluster, (&context, &dir)).await });
    }
    report(&client, version, &board, &masks).await
}

/// Asks what to observe. Nothing is looked at before the answer is verified.
async fn ask(client: &SessionClient, context: &ExecutionContext, install: &InstallId) -> Result<(u64, Watch), End> {
    let nonce = random_hex::<16>();
    let answer: WatchAnswer = Patience::tries(6).keep(|| client.watch(&nonce), |_| ()).await.map_err(failed)?;
    let paper = answer.watch.ok_or(End::Nothing)?;
    let mut trusted = TrustedKeys::new(context.trust.clone());
    trusted.learn(&context.keys);
    let expected =
        Expected { runner_id: &context.runner_id, generation: context.generation, nonce: &nonce, now: now() };
    let watch = trusted.open_watch(&paper, install, &expected).map_err(failed)?;
    Ok((answer.version, watch))
}

/// Fills in what is sealed; what must not be seen in a reason becomes masks.
async fn fill(
    mut watch: Watch,
    client: &SessionClient,
    context: &ExecutionContext,
    install: &InstallId,
    dir: &ExecutionDir,
) -> Result<(Watch, Arc<Masks>), End> {
    let mut secrets = std::mem::take(&mut watch.secrets);
    if !watch.sealed.is_empty() {
        let private = dir.path().join("private");
        let vault =
            Vault::unlock(client.clone(), install.clone(), &context.tools, &context.state_dir, private.clone()).await;
        let opened = opened(&vault.map_err(failed)?, &private, &watch.sealed).await;
        let Opened { values, before } = opened.map_err(|(_, why)| failed(why))?;
        let filled = replaced(serde_json::to_value(&watch.components).map_err(failed)?, &values);
        watch.components = serde_json::from_value(filled).map_err(failed)?;
        secrets.extend(values.into_iter().map(|(_, value)| value).chain(before));
    }
    let (tools, ca_file) = (&context.tools, context.ca_file.as_deref());
    match known_values(&watch.store_secrets, tools, &context.state_dir, ca_file).await {
        Ok(values) => secrets.extend(values),
        Err(why) => tracing::warn!(why, "the app's secrets can't be read, so reasons may show them"),
    }
    Ok((watch, Arc::new(Masks::new(&secrets))))
}

/// What `ferry-runner explain` tells of it.
fn summary(watch: &Watch) -> Value {
    let components: Vec<Value> = watch
        .components
        .iter()
        .map(|it| json!({ "name": it.name, "objects": it.objects.len(), "probes": it.probes }))
        .collect();
    json!({ "components": components })
}

/// Components with their objects and probes, and the clusters that objects are in.
fn lay_out(watch: Watch) -> (Board, Vec<ClusterSpec>) {
    let (mut clusters, mut places) = (Vec::new(), BTreeMap::new());
    let mut components = Vec::new();
    for it in watch.components {
        let key = serde_json::to_string(&it.cluster).unwrap_or_default();
        let at = *places.entry(key).or_insert_with(|| {
            clusters.push(it.cluster.clone());
            clusters.len() - 1
        });
        let objects = it.objects.into_iter().filter_map(|object| serde_json::from_value::<ObjectRef>(object).ok());
        components.push(Component {
            name: it.name,
            generation: it.generation,
            objects: objects.filter(tells_something).map(|of| (at, of)).collect(),
            probes: it.probes,
            unknown: it.unknown,
        });
    }
    (Board::new(components, clusters.len()), clusters)
}

/// Kinds that do nothing by themselves are not looked at, Secrets among them.
fn tells_something(of: &ObjectRef) -> bool {
    let object = json!({ "apiVersion": of.api_version(), "kind": of.kind, "metadata": { "name": of.name } });
    health_of(&object, 0).verdict != Verdict::NotApplicable
}

/// Tells the control plane what is seen: soon after something has changed, and once a minute.
async fn report(
    client: &SessionClient,
    version: u64,
    board: &Board,
    masks: &Masks,
) -> Result<std::convert::Infallible, End> {
    let begun = Instant::now();
    let (mut last, mut again): (Option<Instant>, Duration) = (None, SLOW);
    loop {
        tokio::time::sleep(LOOK).await;
        let due = match last {
            None => board.is_read() || begun.elapsed() >= FIRST,
            Some(last) => last.elapsed() >= again || last.elapsed() >= SOON && board.has_changed(),
        };
        if !due {
            continue;
        }
        board.take_changes();
        objects::explain(board).await;
        let request = HealthRequest { version, observations: board.observations(masks) };
        last = Some(Instant::now());
        again = match client.report_health(&request).await {
            Ok(answer) => Duration::from_secs(answer.again_s).clamp(SOON, SLOW),
            Err(error) if error.over().is_some() => return Err(failed(error)),
            Err(error) => {
                tell(&error);
                SOON
            }
        };
    }
}

fn tell(error: &CallError) {
    tracing::warn!(%error, "the control plane does not take what was observed");
}
