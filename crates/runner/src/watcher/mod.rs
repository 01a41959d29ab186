//! Observes what is deployed: a process of its own beside the session, which starts it again when it dies. It holds no job and
//! changes nothing; what it is to look at comes signed from the control plane, because probes start programs.

mod board;
mod hidden;
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
use model::InstallId;
use model::health::{Verdict, Watch};
use model::kubernetes::ClusterSpec;
use model::papers::{Expected, TrustedKeys};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::board::{Board, Component};
use self::hidden::{Hidden, withhold};
use crate::directory::{ExecutionContext, ExecutionDir};
use crate::execute::sealed::{Opened, opened, replaced};
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
    let (watch, hidden) = fill(watch, &client, &context, &install, &dir).await?;
    dir.write_json(SUMMARY, &hidden.masks.mask_value(summary(&watch))).map_err(failed)?;

    let ways: Vec<ClusterSpec> = watch.components.iter().map(|it| it.cluster.clone()).collect();
    let (board, clusters) = lay_out(watch);
    let board = Arc::new(board);
    for (component, probe) in board.probes() {
        let (board, context, dir) = (Arc::clone(&board), context.clone(), dir.clone());
        let cluster = ways[component.0].clone();
        tokio::spawn(async move { probes::observe(&board, component, probe, &cluster, (&context, &dir)).await });
    }
    let looking = JoinSet::new();
    let mut watcher = Watcher { client, version, context, board, clusters, hidden, looking };
    watcher.look().await;
    watcher.report().await
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

/// Fills in what is sealed, and learns what must not be seen in a reason.
async fn fill(
    mut watch: Watch,
    client: &SessionClient,
    context: &ExecutionContext,
    install: &InstallId,
    dir: &ExecutionDir,
) -> Result<(Watch, Hidden), End> {
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
    let mut hidden = Hidden::new(secrets, std::mem::take(&mut watch.store_secrets));
    hidden.read(context).await;
    Ok((watch, hidden))
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
        let (objects, masked): (Vec<ObjectRef>, Vec<ObjectRef>) = it
            .objects
            .into_iter()
            .filter_map(|object| serde_json::from_value(object).ok())
            .filter(tells_something)
            .partition(|of| !is_masked(of));
        let nameless = masked.first().map(|of| {
            format!("{} can't be observed: its name has a value in it that is masked, so nobody knows it", of.address())
        });
        components.push(Component {
            name: it.name,
            generation: it.generation,
            objects: objects.into_iter().map(|of| (at, of)).collect(),
            probes: it.probes,
            unknown: if it.unknown.is_empty() { nameless.unwrap_or_default() } else { it.unknown },
        });
    }
    (Board::new(components, clusters.len()), clusters)
}

/// Whether the control plane was told the name with a part left out.
fn is_masked(of: &ObjectRef) -> bool {
    of.name.contains("***") || of.namespace.as_ref().is_some_and(|namespace| namespace.contains("***"))
}

/// Kinds that do nothing by themselves are not looked at, Secrets among them.
fn tells_something(of: &ObjectRef) -> bool {
    let object = json!({ "apiVersion": of.api_version(), "kind": of.kind, "metadata": { "name": of.name } });
    health_of(&object, 0).verdict != Verdict::NotApplicable
}

/// Who looks at the objects of the clusters, and tells of them.
struct Watcher {
    client: SessionClient,
    version: u64,
    context: ExecutionContext,
    board: Arc<Board>,
    clusters: Vec<ClusterSpec>,
    hidden: Hidden,
    /// One for each cluster.
    looking: JoinSet<()>,
}

impl Watcher {
    /// Looks at the objects of each cluster from now on, with what must not be seen as it is known now.
    async fn look(&mut self) {
        self.looking.shutdown().await;
        for (at, cluster) in self.clusters.iter().cloned().enumerate() {
            self.board.set_way(at, None);
            let (board, given) = (Arc::clone(&self.board), self.context.tools.kubeconfig.clone());
            let masks = self.hidden.of_logs();
            self.looking.spawn(async move { objects::observe(&board, at, &cluster, given.as_deref(), &masks).await });
        }
    }

    /// Tells the control plane what is seen: soon after something has changed, and once a minute.
    async fn report(&mut self) -> Result<std::convert::Infallible, End> {
        let begun = Instant::now();
        let (mut last, mut again): (Option<Instant>, Duration) = (None, SLOW);
        let mut read_at = begun;
        loop {
            tokio::time::sleep(LOOK).await;
            let due = match last {
                None => self.board.is_read() || begun.elapsed() >= FIRST,
                Some(last) => last.elapsed() >= again || last.elapsed() >= SOON && self.board.has_changed(),
            };
            if !due {
                continue;
            }
            if read_at.elapsed() >= if self.hidden.is_blind() { SOON } else { SLOW } {
                if self.hidden.read(&self.context).await {
                    self.look().await;
                }
                read_at = Instant::now();
            }
            self.board.take_changes();
            objects::explain(&self.board).await;
            let mut observations = self.board.observations(&self.hidden.masks);
            if self.hidden.is_blind() {
                observations.iter_mut().for_each(withhold);
            }
            let request = HealthRequest { version: self.version, observations };
            last = Some(Instant::now());
            again = match self.client.report_health(&request).await {
                Ok(answer) => Duration::from_secs(answer.again_s).clamp(SOON, SLOW),
                Err(error) if error.over().is_some() => return Err(failed(error)),
                Err(error) => {
                    tell(&error);
                    SOON
                }
            };
        }
    }
}

fn tell(error: &CallError) {
    tracing::warn!(%error, "the control plane does not take what was observed");
}

#[cfg(test)]
mod tests {
    use mask::Masks;
    use model::health::WatchedComponent;

    use super::*;

    #[test]
    fn an_object_whose_name_is_masked_is_unknown_and_not_missed() {
        let named = |name: &str| json!({ "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": name });
        let component = WatchedComponent {
            name: "web".into(),
            generation: 1,
            cluster: ClusterSpec::Runner {},
            objects: vec![named("web"), named("***-db")],
            probes: Vec::new(),
            unknown: String::new(),
        };
        let watch = Watch {
            runner_id: model::RunnerId::new(now(), 0),
            install_id: InstallId::new(now(), 0),
            generation: 1,
            nonce: String::new(),
            components: vec![component],
            sealed: Vec::new(),
            secrets: Vec::new(),
            store_secrets: Vec::new(),
        };
        let (board, _) = lay_out(watch);
        assert_eq!(board.objects_in(0).len(), 1);
        let told = &board.observations(&Masks::new(&[]))[0];
        assert_eq!(told.verdict, Verdict::Unknown);
        assert!(
            told.objects.iter().any(|it| it.reason.contains("Deployment/shop/***-db can't be observed")),
            "{told:?}"
        );
    }
}
