//! The idle part of a runner: one process that holds one request, starts executors, and delivers what they leave.
//!
//! `core` decides, this module performs. Everything that must outlive the process lies in the state directory.

mod artifacts;
mod check;
mod client;
mod core;
mod deliver;
mod state;
mod sweep;
mod workspaces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use api::runner::{Assignment, PollRequest, UnreadableJob};
use bytes::Bytes;
use crash::crash_point;
use gate::Gate;
use model::papers::{Expected, Signatory, TrustedKeys};
use model::runner::{RunnerKind, RunnerReport};
use model::{ExecutionId, ExecutionResult, JobError, Outcome, env};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

pub use self::artifacts::SessionFetcher;
pub use self::check::check_session;
pub use self::client::{About, CallError, SessionClient, Unjoined, now, random_hex, random_u128};
pub use self::core::{Core, Effect, Ending, Event, Found, Over};
use self::deliver::Delivery;
use self::state::StateLock;
pub use self::state::{HistoryLine, SessionFile, StateDir};
use self::sweep::Sweeper;
use crate::directory::{ExecutionContext, ExecutionDir};
use crate::metrics::Metrics;
use crate::papers::{PAPERS_REFUSED, check_papers};
use crate::patience::Patience;
use crate::seal::vault::Tools;
use crate::{confine::limits, confine::process, logs::spool, net, seal::rescue, seal::vault};

/// How a session is started.
#[derive(Debug, Clone)]
pub struct Options {
    pub kind: RunnerKind,
    pub url: String,
    pub join: Option<String>,
    pub trust_keys: Vec<String>,
    pub state_dir: PathBuf,
    pub ca_file: Option<PathBuf>,
    pub allow_paths: Vec<PathBuf>,
    /// Refuse scripts that are not part of the app's config.
    pub no_ad_hoc: bool,
    /// Registries whose images are fetched for builds, from outside of their cell.
    pub base_registries: Vec<String>,
    pub tools: Tools,
    /// Where `/metrics` is served; nowhere when empty.
    pub metrics_listen: String,
}

/// How often disk and switch are looked at.
const TICK: Duration = Duration::from_secs(2);
/// How often the end of an executor that is not our child is looked for.
const WATCH: Duration = Duration::from_millis(100);
const EVENTS: usize = 1024;
/// How often a state that waits is offered anew.
/// How long what runs beside the loop is waited for at the end; all of it may be cut off.
const ASIDE: Duration = Duration::from_secs(2);
const RESCUE: Duration = Duration::from_secs(2);
/// How often a state is moved to where it waits.
const RESCUE_TRIES_MAX: u32 = 30;
const LEFTOVER_GRACE: Duration = Duration::from_secs(10);

pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Runs a session to its end.
pub async fn run(options: Options) -> anyhow::Result<Ending> {
    let state = StateDir::new(&options.state_dir);
    let lock = state.lock()?;
    let url = match state.session()? {
        Some(session) if options.url.is_empty() => session.url,
        Some(_) | None => options.url.clone(),
    };
    let http = net::client(&url, options.ca_file.as_deref()).map_err(|e| anyhow::anyhow!(net::chain(&e)))?;
    // Before it joins, which would end the session of another: an address that is taken must not.
    let (metrics, gate) = (Metrics::default(), Gate::default());
    if !options.metrics_listen.is_empty() {
        let listen = &options.metrics_listen;
        let address = metrics.clone().serve(listen, &gate).await;
        let address = address.with_context(|| format!("can't listen on {listen}"))?;
        tracing::info!(%address, "serves /metrics");
    }
    let (mut session, key) = open_session(&options, &state, &http).await?;
    session.metrics_listen.clone_from(&options.metrics_listen);
    let client = SessionClient::new(http, &session.url, session.runner_id.clone(), session.generation, key)
        .with_hold(session.timing.hold_s);
    Driver::new(options, (state, lock), session, (client.counted_by(metrics), gate))?.run().await
}

/// Resumes the session in the state directory, or joins and opens a new one.
async fn open_session(
    options: &Options,
    state: &StateDir,
    http: &reqwest::Client,
) -> anyhow::Result<(SessionFile, Signatory)> {
    if let (Some(mut session), Some(key)) = (state.session()?, state.key()?) {
        if session.kind != options.kind {
            bail!("{} holds a {} runner", state.path().display(), session.kind.as_str());
        }
        if !options.trust_keys.is_empty() {
            session.trust.clone_from(&options.trust_keys);
        }
        if !options.url.is_empty() {
            session.url.clone_from(&options.url);
        }
        session.allow_paths.clone_from(&options.allow_paths);
        session.no_ad_hoc = options.no_ad_hoc;
        session.tools.clone_from(&options.tools);
        session.ca_file.clone_from(&options.ca_file);
        tracing::info!(runner = %session.runner_id, generation = session.generation, "resumes its session");
        return Ok((session, key));
    }
    if options.trust_keys.is_empty() {
        bail!(
            "no key is trusted: pass --trust-key as the join command has it; a server can't vouch for itself, so without one nothing is run"
        );
    }
    let Some(credential) = options.join.clone() else {
        bail!(
            "this runner has not joined yet: set {} as `ferry runners join-command` prints it, or pass --join-file",
            env::RUNNER_JOIN
        );
    };
    join(options, state, http, &credential).await
}

async fn join(
    options: &Options,
    state: &StateDir,
    http: &reqwest::Client,
    credential: &str,
) -> anyhow::Result<(SessionFile, Signatory)> {
    let door = Unjoined { http, url: options.url.trim_end_matches('/') };
    let offered = patiently("ask for the server's keys", || door.keys()).await?;
    let mut trusted = TrustedKeys::new(options.trust_keys.clone());
    if trusted.learn(&offered.keys) == 0 {
        bail!(
            "the server's signing keys are not the ones that this runner trusts ({}); this is not the control plane that made the join command, or its key was replaced",
            options.trust_keys.join(", ")
        );
    }
    let key = own_key(state)?;
    let hostname = hostname();
    let answer = patiently("join", || door.join(credential, &key, &hostname)).await?;
    if answer.kind != options.kind {
        bail!("this join command is for a {} runner", answer.kind.as_str());
    }
    crash_point!("runner.joined");
    let session = SessionFile {
        metrics_listen: String::new(),
        runner_id: answer.runner_id,
        name: answer.name,
        kind: answer.kind,
        org_id: answer.org_id,
        install_id: answer.install_id,
        generation: answer.generation,
        url: options.url.trim_end_matches('/').to_owned(),
        trust: options.trust_keys.clone(),
        keys: answer.keys,
        settings: answer.settings,
        timing: answer.timing,
        allow_paths: options.allow_paths.clone(),
        no_ad_hoc: options.no_ad_hoc,
        tools: options.tools.clone(),
        user_id: None,
        ca_file: options.ca_file.clone(),
        joined_at: now(),
        process: 0,
        pid: 0,
        process_started_at: None,
        answered_at: None,
        groups: serde_json::Value::Null,
    };
    state.write_session(&session)?;
    tracing::info!(runner = %session.runner_id, generation = session.generation, "joined");
    Ok((session, key))
}

/// The key of the session, written before the join: a process that dies in between leaves it to the next, whose join is
/// then the same one again and not a rival's.
fn own_key(state: &StateDir) -> anyhow::Result<Signatory> {
    if let Some(key) = state.key()? {
        return Ok(key);
    }
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| anyhow::anyhow!("no randomness: {e}"))?;
    state.write_key(&seed)?;
    crash_point!("runner.key_written");
    Ok(Signatory::from_seed(&seed))
}

/// Tries for as long as the control plane can't be reached; a refusal ends it.
async fn patiently<T, F>(what: &str, call: impl FnMut() -> F) -> anyhow::Result<T>
where
    F: Future<Output = Result<T, CallError>>,
{
    let patience = Patience::endless(Duration::from_millis(250), Duration::from_secs(10));
    let tried = patience.keep(call, |error| tracing::warn!(%error, "can't {what}, will try again")).await;
    tried.map_err(|error| anyhow::anyhow!("can't {what}: {error}"))
}

/// What is under way for one execution.
struct Watched {
    dir: ExecutionDir,
    assignment: Assignment,
    ended: watch::Sender<bool>,
}

struct Driver {
    options: Options,
    state: StateDir,
    lock: StateLock,
    session: SessionFile,
    client: SessionClient,
    trusted: TrustedKeys,
    core: Core,
    events: mpsc::Sender<Event>,
    inbox: mpsc::Receiver<Event>,
    poll: Option<JoinHandle<()>>,
    watched: BTreeMap<ExecutionId, Watched>,
    /// Assignments that have no directory.
    refused: Arc<Mutex<BTreeMap<ExecutionId, (Assignment, JobError)>>>,
    /// Told when a state waits to be brought to the control plane.
    rescued: Arc<Notify>,
    /// Everything that runs beside the loop.
    gate: Gate,
    sweeper: Sweeper,
    /// The customer was told to back the key up.
    advised: bool,
    renewals: u64,
    started: Duration,
    exit: Option<Ending>,
}

impl Driver {
    fn new(
        options: Options,
        (state, lock): (StateDir, StateLock),
        mut session: SessionFile,
        (client, gate): (SessionClient, Gate),
    ) -> anyhow::Result<Self> {
        session.user_id = Some(rustix::process::geteuid().as_raw());
        session.pid = std::process::id();
        session.process += 1;
        session.process_started_at = Some(now());
        let mut trusted = TrustedKeys::new(session.trust.clone());
        trusted.learn(&session.keys);
        let report = RunnerReport {
            version: env!("CARGO_PKG_VERSION").into(),
            hostname: hostname(),
            disabled_since: state.disabled_since(),
            disk_free_bytes: limits::disk_free_bytes(state.path()).unwrap_or(0),
            rescues_open: rescue::open(state.path()),
            no_ad_hoc: options.no_ad_hoc,
            ..RunnerReport::default()
        };
        let seed = u64::from_str_radix(&random_hex::<8>(), 16).unwrap_or(1);
        let core = Core::new(session.timing.clone(), session.settings.clone(), report, session.process, seed);
        let (events, inbox) = mpsc::channel(EVENTS);
        let rescued = Arc::new(Notify::new());
        let told = Arc::clone(&rescued);
        let sweeper = Sweeper::start(state.path().to_owned(), move || told.notify_one());
        let mut driver = Self {
            options,
            state,
            lock,
            session,
            client,
            trusted,
            core,
            events,
            inbox,
            poll: None,
            watched: BTreeMap::new(),
            refused: Arc::default(),
            rescued,
            sweeper,
            gate,
            advised: false,
            renewals: 0,
            started: process::since_boot(),
            exit: None,
        };
        driver.advise_backup();
        driver.deliver_rescued();
        driver.adopt()?;
        // Before the first poll: it carries this process's number.
        driver.describe();
        driver.state.write_session(&driver.session)?;
        Ok(driver)
    }

    /// Brings states that dead executions have left to the control plane, again and again until it has them.
    fn deliver_rescued(&self) {
        let (client, tools) = (self.client.clone(), self.options.tools.clone());
        let (state_dir, rescued) = (self.state.path().to_owned(), Arc::clone(&self.rescued));
        let events = self.events.clone();
        self.gate.spawn_until_stopped(async move {
            loop {
                let left = rescue::deliver(&client, &tools, &state_dir).await;
                let _ = events.send(Event::Rescues(rescue::open(&state_dir))).await;
                let pause = if left > 0 { RESCUE } else { Duration::MAX };
                let _ = tokio::time::timeout(pause, rescued.notified()).await;
            }
        });
    }

    /// Takes over what an earlier process left: executors that run, results that are not delivered, and the dead.
    fn adopt(&mut self) -> anyhow::Result<()> {
        let (dirs, rest) = ExecutionDir::list(self.state.path())?;
        rest.into_iter().for_each(|path| self.sweeper.tree(path));
        for dir in dirs {
            let Ok(assignment) = dir.assignment() else {
                // Not even whole: missing from our list, the claim goes back to the queue.
                self.sweeper.tree(dir.set_aside()?);
                continue;
            };
            let found = find(&dir);
            tracing::info!(execution = %assignment.execution_id, ?found, "takes an execution over");
            crash_point!("runner.adopt");
            self.core.adopt(&assignment, found);
            if found == Found::Unstarted {
                // The server may have granted the start. Nothing was begun, and nothing will be: it is told so.
                let (ended, _) = watch::channel(false);
                self.watched.insert(assignment.execution_id.clone(), Watched { dir, assignment, ended });
            } else {
                self.watch(dir, assignment, None, found);
            }
        }
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        // A suspended machine's leases go on: this clock does too.
        process::since_boot().saturating_sub(self.started).as_millis() as u64
    }

    async fn run(mut self) -> anyhow::Result<Ending> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut look = signal(SignalKind::user_defined1())?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut interrupts = 0;
        loop {
            let due = self.core.next_due_ms().unwrap_or(u64::MAX).saturating_sub(self.now_ms()).min(3_600_000);
            let event = tokio::select! {
                event = self.inbox.recv() => event.context("the runner's own channel closed")?,
                _ = tick.tick() => self.tick(),
                () = tokio::time::sleep(Duration::from_millis(due)) => self.tick(),
                _ = look.recv() => Event::Disabled(self.state.disabled_since()),
                _ = terminate.recv() => Event::Drain,
                // With the first process of a container everything in it ends: there is nobody to hand over to.
                _ = hangup.recv() => if std::process::id() == 1 { Event::Drain } else { Event::HandOver },
                _ = interrupt.recv() => {
                    interrupts += 1;
                    if interrupts == 1 { Event::Drain } else { Event::Stop }
                }
            };
            if !self.lock.holds(&self.state) {
                bail!(
                    "the state directory {} was deleted or replaced while the runner was running. The runner stops; what it had started can't report any more. If there is a backup, restore the directory and start the runner again; else join again with `ferry runners join-command`",
                    self.state.path().display()
                );
            }
            self.handle(event);
            if let Some(ending) = self.exit {
                return Ok(self.leave(ending).await);
            }
        }
    }

    fn tick(&mut self) -> Event {
        let disabled = self.state.disabled_since();
        self.handle(Event::Disabled(disabled));
        let disk_free_bytes = limits::disk_free_bytes(self.state.path()).unwrap_or(0);
        self.client.metrics().stand(self.watched.len(), disk_free_bytes, disabled.is_some());
        Event::Tick { disk_free_bytes }
    }

    async fn leave(mut self, ending: Ending) -> Ending {
        if let Some(poll) = self.poll.take() {
            poll.abort();
        }
        if !matches!(ending, Ending::Over(_)) {
            let _ = self.client.leave().await;
        }
        self.gate.close(ASIDE).await;
        self.write_session();
        ending
    }

    fn handle(&mut self, event: Event) {
        if matches!(event, Event::Prepared(_) | Event::Started(_)) {
            // Nothing is started after the switch was turned, not even within the two seconds until the next look.
            let disabled = Event::Disabled(self.state.disabled_since());
            self.perform_all(disabled);
        }
        if let Event::Ended { .. } = &event {
            self.advise_backup();
        }
        if let Event::PollAnswered { .. } = &event {
            self.session.answered_at = Some(now());
        }
        self.perform_all(event);
    }

    /// Says once in each process that the install's key has no backup: when it starts, and when a job has made the key.
    fn advise_backup(&mut self) {
        if self.advised {
            return;
        }
        if let Some(advice) = vault::backup_advice(&self.options.tools, self.state.path()) {
            self.advised = true;
            tracing::warn!("{advice}");
        }
    }

    fn perform_all(&mut self, event: Event) {
        let effects = self.core.handle(event, self.now_ms());
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Poll(request) => self.send_poll(*request),
            Effect::Prepare { nonce, assignment } => self.prepare(nonce, *assignment),
            Effect::Refuse(id) => self.refuse(id),
            Effect::RefuseUnreadable(unreadable) => self.refuse_unreadable(*unreadable),
            Effect::Start(id) => self.start(id),
            Effect::Spawn(id) => self.spawn(&id),
            Effect::Cancel { id, reason } => {
                if let Some(watched) = self.watched.get(&id)
                    && let Err(error) = watched.dir.request_cancel(reason)
                {
                    tracing::error!(execution = %id, %error, "can't ask for the cancel");
                }
            }
            Effect::Renew(held) => self.renew(held),
            Effect::Touch(ids) => self.touch(&ids),
            Effect::Finish(id) => {
                if let Some(watched) = self.watched.get(&id) {
                    watched.ended.send_replace(true);
                }
            }
            Effect::Remove(id) => self.remove(&id),
            Effect::Keep(settings) => {
                tracing::info!(version = settings.version, "new settings");
                self.session.settings = *settings;
                self.write_session();
            }
            Effect::Learn(keys) => {
                if keys != self.session.keys && self.trusted.learn(&keys) > 0 {
                    self.session.keys = keys;
                    self.write_session();
                }
            }
            Effect::Exit(ending) => self.exit = Some(ending),
        }
    }

    /// Runs a future beside the loop and turns what it returns into an event.
    fn aside(&self, work: impl Future<Output = Event> + Send + 'static) -> JoinHandle<()> {
        let events = self.events.clone();
        self.gate.spawn_until_stopped(async move {
            let event = work.await;
            let _ = events.send(event).await;
        })
    }

    fn send_poll(&mut self, mut request: PollRequest) {
        if let Some(older) = self.poll.take() {
            older.abort();
        }
        request.nonce = random_hex::<16>();
        let (client, hold_s) = (self.client.clone(), self.session.timing.hold_s);
        self.poll = Some(self.aside(async move {
            match client.poll(&request, hold_s).await {
                Ok(answer) => Event::PollAnswered { seq: request.seq, nonce: request.nonce, answer: Box::new(answer) },
                Err(error) => {
                    let over = error.over();
                    if over.is_some() {
                        tracing::error!(%error, "this session is over");
                    } else {
                        tracing::warn!(%error, "the poll failed");
                    }
                    Event::PollFailed { seq: request.seq, over }
                }
            }
        }));
    }

    /// Gets the spec, checks both papers, and writes everything into a directory.
    fn prepare(&mut self, nonce: String, assignment: Assignment) {
        crash_point!("runner.poll_answered");
        let (client, trusted, context) = (self.client.clone(), self.trusted.clone(), self.context(&nonce));
        let refused = Arc::clone(&self.refused);
        self.aside(async move {
            let id = assignment.execution_id.clone();
            let about = About { id: &id, token: &assignment.execution_token };
            let spec = match &assignment.spec {
                Some(text) => Bytes::copy_from_slice(text.as_bytes()),
                None => match client.spec(about).await {
                    Ok(spec) => spec,
                    Err(error) => {
                        tracing::warn!(execution = %id, %error, "the spec can't be had");
                        return Event::NotPrepared(id);
                    }
                },
            };
            match make_dir(&trusted, &context, &assignment, &spec) {
                Ok(_) => {
                    crash_point!("runner.prepared");
                    Event::Prepared(id)
                }
                Err(error) if error.code == PAPERS_REFUSED => {
                    tracing::error!(execution = %id, error = error.message, "the papers are refused; nothing is run");
                    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                    refused.insert(id.clone(), (assignment, error));
                    Event::Refused(id)
                }
                Err(error) => {
                    tracing::error!(execution = %id, error = error.message, "the execution can't be prepared");
                    Event::NotPrepared(id)
                }
            }
        });
    }

    fn context(&self, nonce: &str) -> ExecutionContext {
        ExecutionContext {
            runner_id: self.session.runner_id.clone(),
            generation: self.session.generation,
            nonce: nonce.to_owned(),
            trust: self.session.trust.clone(),
            keys: self.session.keys.clone(),
            runner_url: self.session.url.clone(),
            state_dir: self.state.path().to_owned(),
            spool_bytes: self.session.settings.spool_bytes,
            execution_disk_bytes: self.session.settings.execution_disk_bytes,
            offline_s: self.session.timing.offline_s,
            ca_file: self.options.ca_file.clone(),
            allow_paths: self.options.allow_paths.clone(),
            no_ad_hoc: self.options.no_ad_hoc,
            kind: Some(self.options.kind),
            base_registries: self.options.base_registries.clone(),
            tools: self.options.tools.clone(),
            hide: std::env::var_os(env::RUNNER_HIDE).map(PathBuf::from),
            boot_id: process::boot_id(),
        }
    }

    fn refuse(&mut self, id: ExecutionId) {
        let taken = self.refused.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        let Some((assignment, error)) = taken else { return };
        let client = self.client.clone();
        self.aside(async move {
            let about = About { id: &id, token: &assignment.execution_token };
            Delivery::refuse(&client, about, assignment.epoch, error).await;
            Event::Delivered(id)
        });
    }

    fn refuse_unreadable(&self, unreadable: UnreadableJob) {
        tracing::error!(execution = %unreadable.execution_id, job_type = unreadable.job_type, "a job of an unknown type is refused");
        let text = format!(
            "runner {} does not know jobs of type `{}`: update the runner",
            env!("CARGO_PKG_VERSION"),
            unreadable.job_type
        );
        let client = self.client.clone();
        self.aside(async move {
            let about = About { id: &unreadable.execution_id, token: &unreadable.execution_token };
            Delivery::refuse(&client, about, unreadable.epoch, JobError::new("unknown_job_type", text)).await;
            Event::Delivered(unreadable.execution_id)
        });
    }

    fn start(&mut self, id: ExecutionId) {
        // It was prepared beside the loop: its directory is found here.
        if !self.watched.contains_key(&id)
            && let Ok(dir) = ExecutionDir::open(&self.state.path().join("executions").join(id.as_str()))
            && let Ok(assignment) = dir.assignment()
        {
            let (ended, _) = watch::channel(false);
            self.watched.insert(id.clone(), Watched { dir, assignment, ended });
        }
        let Some(watched) = self.watched.get(&id) else { return self.handle(Event::NotPrepared(id)) };
        let (client, token) = (self.client.clone(), watched.assignment.execution_token.clone());
        self.aside(async move {
            crash_point!("runner.before_start");
            match client.start(About { id: &id, token: &token }).await {
                Ok(_) => {
                    crash_point!("runner.start_acked");
                    Event::Started(id)
                }
                Err(error) if error.is_transient() => Event::StartFailed(id),
                Err(error) => {
                    tracing::warn!(execution = %id, %error, "the start was not granted");
                    Event::StartRefused(id)
                }
            }
        });
    }

    fn spawn(&mut self, id: &ExecutionId) {
        // Nothing in between: a process that dies here leaves a job that the server calls started and nobody began.
        let Some(watched) = self.watched.remove(id) else { return };
        let Watched { dir, assignment, .. } = watched;
        let spawned = dir.mark_started().map_err(anyhow::Error::from).and_then(|()| {
            crash_point!("runner.started_marked");
            spawn_executor(&dir)
        });
        crash_point!("runner.spawned");
        let child = match spawned {
            Ok(child) => Some(child),
            Err(error) => {
                tracing::error!(execution = %id, %error, "the executor can't be started");
                // Nothing ran, and that is certain: a result, not a riddle.
                let error = JobError::new("executor_error", format!("the executor can't be started: {error}"));
                let _ = dir.write_result(&ExecutionResult::without_work(Outcome::Failed, error, now()));
                None
            }
        };
        self.watch(dir, assignment, child, Found::Running);
        self.write_session();
    }

    /// Watches an executor to its end, and delivers its log meanwhile.
    fn watch(&mut self, dir: ExecutionDir, assignment: Assignment, child: Option<tokio::process::Child>, found: Found) {
        let id = assignment.execution_id.clone();
        let (ended, watching) = watch::channel(false);
        match Delivery::new(self.client.clone(), dir.clone()) {
            Ok(delivery) => {
                let (id, fresh) = (id.clone(), child.is_some());
                self.aside(async move {
                    delivery.run(fresh, watching).await;
                    Event::Delivered(id)
                });
            }
            Err(error) => tracing::error!(execution = %id, %error, "an execution directory can't be read"),
        }
        if found != Found::WithResult {
            let (id, dir, events) = (id.clone(), dir.clone(), self.events.clone());
            let (state_dir, rescued) = (self.state.path().to_owned(), Arc::clone(&self.rescued));
            self.aside(async move {
                await_executor(&dir, child).await;
                let has_result = matches!(dir.result(), Ok(Some(_)));
                if !has_result {
                    tracing::error!(execution = %id, "the executor died without a result");
                    let left = process::reap_leftovers(&dir, LEFTOVER_GRACE).await;
                    if left > 0 {
                        tracing::error!(execution = %id, left, "processes of a dead executor can't be killed");
                    }
                    if let Err(error) = spool::mark_death(&dir.spool()) {
                        tracing::error!(execution = %id, %error, "the log can't say that its end may be missing");
                    }
                    take_rescued(&id, &dir, &state_dir).await;
                }
                // With or without a result, a state may wait now: the control plane hears of it before it hears of the end.
                let _ = events.send(Event::Rescues(rescue::open(&state_dir))).await;
                rescued.notify_one();
                Event::Ended { id, has_result }
            });
        }
        self.watched.insert(id, Watched { dir, assignment, ended });
    }

    fn renew(&self, held: Vec<api::runner::Held>) {
        let client = self.client.clone();
        let bound = Duration::from_secs((self.session.timing.lease_s / 3).max(1));
        self.aside(async move {
            crash_point!("runner.before_renew");
            match client.renew(held, bound).await {
                Ok(answer) => {
                    crash_point!("runner.renewed");
                    Event::Renewed(Box::new(answer))
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease was not renewed");
                    Event::RenewFailed { over: error.over() }
                }
            }
        });
    }

    fn touch(&mut self, ids: &[ExecutionId]) {
        self.renewals += 1;
        // Unlike any number that an earlier process wrote.
        let mark = u64::from(std::process::id()) << 32 | self.renewals;
        for watched in ids.iter().filter_map(|id| self.watched.get(id)) {
            if let Err(error) = watched.dir.touch_renewed(mark) {
                tracing::warn!(%error, "a renewal can't be noted");
            }
        }
    }

    fn remove(&mut self, id: &ExecutionId) {
        let Some(watched) = self.watched.remove(id) else {
            // Prepared beside the loop, and given up before it was seen here.
            let left = ExecutionDir::open(&self.state.path().join("executions").join(id.as_str()));
            if let Ok(dir) = left {
                self.sweep(id, dir);
            }
            return;
        };
        if watched.dir.is_started() {
            let outcome = match watched.dir.result() {
                Ok(Some(result)) => serde_json::to_value(result.outcome).ok(),
                Ok(None) | Err(_) => None,
            };
            let outcome = outcome.and_then(|o| o.as_str().map(str::to_owned)).unwrap_or_else(|| "unknown".into());
            let a = &watched.assignment;
            let line = HistoryLine {
                time: now(),
                job_id: a.job_id.to_string(),
                execution_id: id.to_string(),
                job_type: a.job_type.to_string(),
                name: a.name.clone(),
                outcome,
            };
            if let Err(error) = self.state.add_history(line) {
                tracing::warn!(%error, "the history can't be written");
            }
        }
        crash_point!("runner.before_remove");
        self.sweep(id, watched.dir);
    }

    fn sweep(&self, id: &ExecutionId, dir: ExecutionDir) {
        if let Err(error) = self.sweeper.execution(dir, self.state.path()) {
            tracing::error!(execution = %id, %error, "an execution directory can't be removed yet");
        }
    }

    fn write_session(&mut self) {
        self.describe();
        if let Err(error) = self.state.write_session(&self.session) {
            tracing::error!(%error, "session.json can't be written");
        }
    }

    /// Notes what each group works on.
    fn describe(&mut self) {
        let busy = self.core.busy();
        let age_s = self.session.answered_at.map(|t| now().since(t).as_secs());
        let groups = self.core.settings().groups.iter().map(|(group, slots)| {
            let busy = busy.get(group).cloned().unwrap_or_default();
            (group.to_string(), serde_json::json!({ "slots": slots, "busy": busy, "age_s": age_s }))
        });
        self.session.groups = serde_json::Value::Object(groups.collect());
    }
}

/// How an execution stands that an earlier process left.
fn find(dir: &ExecutionDir) -> Found {
    // What was written last may be missing after the machine went down: then its absence proves nothing.
    let same_boot = dir.context().is_ok_and(|context| context.boot_id == process::boot_id());
    if !dir.is_started() {
        return if same_boot { Found::Unstarted } else { Found::Dead };
    }
    // Life first: the result is the last thing that an executor writes.
    match (dir.executor_alive(), dir.result()) {
        (true, _) => Found::Running,
        (false, Ok(Some(_))) => Found::WithResult,
        // The earlier process died before its executor took the lock; one that comes late finds it used.
        (false, Ok(None)) if same_boot && dir.take_back() => Found::Unstarted,
        (false, _) if dir.executor_alive() => Found::Running,
        (false, _) => Found::Dead,
    }
}

/// Checks the papers; only then is a directory made.
fn make_dir(
    trusted: &TrustedKeys,
    context: &ExecutionContext,
    assignment: &Assignment,
    spec: &[u8],
) -> Result<ExecutionDir, JobError> {
    let expected =
        Expected { runner_id: &context.runner_id, generation: context.generation, nonce: &context.nonce, now: now() };
    check_papers(trusted, &expected, assignment, spec)?;
    ExecutionDir::create(&context.state_dir, assignment, spec, context)
        .map_err(|e| JobError::new("no_directory", e.to_string()))
}

/// Starts an executor that outlives this process: no kill on drop, output into a file.
fn spawn_executor(dir: &ExecutionDir) -> anyhow::Result<tokio::process::Child> {
    let log = fs_err::File::create(dir.path().join("executor.log"))?.into_parts().0;
    let child = tokio::process::Command::new("/proc/self/exe")
        .arg("execute")
        .arg(dir.path())
        .arg0("ferry-runner")
        .env_remove(env::RUNNER_JOIN)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(false)
        .spawn()?;
    Ok(child)
}

/// Puts a state that a dead executor left where it waits. On a full disk this is tried again for a while; after that the state stays
/// in the execution's directory, which is not removed with it.
async fn take_rescued(id: &ExecutionId, dir: &ExecutionDir, state_dir: &Path) {
    for tries in 0..RESCUE_TRIES_MAX {
        match rescue::take(dir, state_dir) {
            Ok(_) => return,
            Err(error) if tries == 0 => {
                let why = vault::named(&rescue::place(state_dir), &error);
                tracing::error!(execution = %id, why, "Terraform's state that this execution left can't be kept yet: free disk space");
            }
            Err(_) => {}
        }
        tokio::time::sleep(RESCUE).await;
    }
}

/// Returns when the executor is gone, and none can come any more.
async fn await_executor(dir: &ExecutionDir, child: Option<tokio::process::Child>) {
    if let Some(mut child) = child {
        let _ = child.wait().await;
    }
    while dir.executor_alive() || !dir.close() {
        tokio::time::sleep(WATCH).await;
    }
}
