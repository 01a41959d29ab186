//! The idle part of a runner: one process that holds one request, starts executors, and delivers what they leave.
//!
//! `core` decides, this module performs. Everything that must outlive the process lies in the state directory.

mod artifacts;
mod check;
mod client;
mod core;
mod deliver;
mod executions;
mod join;
mod observing;
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
pub use self::observing::HEALTH_DIR;
use self::observing::Observer;
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
const EVENTS: usize = 1024;
/// How often a state that waits is offered anew.
/// How long what runs beside the loop is waited for at the end; all of it may be cut off.
const ASIDE: Duration = Duration::from_secs(2);
const RESCUE: Duration = Duration::from_secs(2);

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
    let (mut session, key) = join::open_session(&options, &state, &http).await?;
    session.metrics_listen.clone_from(&options.metrics_listen);
    let client = SessionClient::new(http, &session.url, session.runner_id.clone(), session.generation, key)
        .with_hold(session.timing.hold_s);
    Driver::new(options, (state, lock), session, (client.counted_by(metrics), gate))?.run().await
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
    observer: Observer,
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
            registry: options.tools.registry.clone(),
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
            observer: Observer::default(),
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
        self.observe(disabled.is_some());
        Event::Tick { disk_free_bytes }
    }

    /// Sees to it that what is deployed is observed.
    fn observe(&mut self, disabled: bool) {
        let mut observer = std::mem::take(&mut self.observer);
        observer.look(self.state.path(), disabled, || self.context(""));
        self.observer = observer;
    }

    async fn leave(mut self, ending: Ending) -> Ending {
        self.observer.stop().await;
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
            Effect::Observe(version) => {
                self.observer.want(version);
                self.observe(self.state.disabled_since().is_some());
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
