//! The control plane of a simulation: the real store in memory, the real conductor, and the real handlers, with a clock that
//! the simulation moves. What a server's death costs is what lies in `api` and `held`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use api::ErrorBody;
use api::runner::{PollAnswer, PollRequest};
use conductor::{Conductor, Draw, Keep, NewAction, NewRunnerJob, Pace, Timing};
use model::runner::{RunnerKind, RunnerSettings};
use model::spec::{Limits, StepSpec, Work};
use model::{AccountId, Clock, CredentialId, JobId, OrgId, Outcome};
use server::{Caller, RunnerApi};
use store::{Idempotency, Install, Job, Runner, RunnerChange, Store};

use crate::chance::Chance;
use crate::founding::{Founding, ServerClock, ready};

type Holding = Pin<Box<dyn Future<Output = Result<PollAnswer, Box<ErrorBody>>>>>;

/// A poll that lies on the server.
pub(crate) struct Held {
    future: Holding,
    over: Arc<AtomicBool>,
    /// Who waits for the answer, if anybody still does.
    pub(crate) call: Option<u64>,
    pub(crate) machine: usize,
}

/// Rings when a held poll is to be looked at.
struct Bell {
    held: u64,
    rung: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner).push(self.held);
    }
}

pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) api: Option<RunnerApi>,
    pub(crate) held: BTreeMap<u64, Held>,
    pub(crate) org: OrgId,
    pub(crate) timing: Timing,
    /// Each with its install and its join credential.
    pub(crate) runners: Vec<(Runner, Install, String)>,
    /// What join commands carry.
    pub(crate) fingerprint: String,
    account: AccountId,
    clock: Arc<ServerClock>,
    draw: Arc<Draw>,
    rung: Arc<Mutex<Vec<u64>>>,
}

impl Server {
    /// An org with so many installs, each with its runner and a join credential.
    pub(crate) fn new(runners: usize, timing: Timing, chance: &mut Chance) -> Self {
        let founding = Founding::new(None, chance).expect("a new store takes everything");
        let added = (0..runners).map(|n| add_runner(&founding, format!("r{n}"), chance)).collect::<store::Result<_>>();
        let runners = added.expect("a new store takes everything");
        let Founding { store, clock, draw, account, org, .. } = founding;
        let mut server = Self {
            store,
            api: None,
            held: BTreeMap::new(),
            org,
            timing,
            runners,
            fingerprint: String::new(),
            account,
            clock,
            draw,
            rung: Arc::default(),
        };
        server.up().expect("a store that answers");
        server.fingerprint = server.conductor().map(|c| c.signing_keys().fingerprint().to_owned()).unwrap_or_default();
        server
    }

    /// A server starts on what the one before has committed.
    pub(crate) fn up(&mut self) -> conductor::Result<()> {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let conductor = ready(Conductor::new(self.store.clone(), clock, self.timing))?.drawing(Arc::clone(&self.draw));
        self.api = Some(RunnerApi::new(conductor));
        Ok(())
    }

    pub(crate) fn pass(&self, now_ms: u64) {
        self.clock.stand_at(now_ms);
    }

    pub(crate) fn set_clock(&self, off_ms: i64) {
        self.clock.set_off(off_ms);
    }

    pub(crate) fn conductor(&self) -> Option<&Conductor> {
        self.api.as_ref().map(RunnerApi::conductor)
    }

    /// Begins to hold a poll; it is not looked at yet.
    pub(crate) fn hold(&mut self, id: u64, caller: Caller, wanted: PollRequest, call: Option<u64>, machine: usize) {
        let Some(api) = self.api.clone() else { return };
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let hold_over =
            std::future::poll_fn(move |_| if flag.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending });
        let future = Box::pin(async move { api.poll(&caller, &wanted, hold_over).await });
        self.held.insert(id, Held { future, over, call, machine });
    }

    /// Looks at a held poll; it goes when it is answered.
    pub(crate) fn look(&mut self, id: u64, over: bool) -> Option<(Held, Result<PollAnswer, Box<ErrorBody>>)> {
        let held = self.held.get_mut(&id)?;
        if over {
            held.over.store(true, Ordering::Relaxed);
        }
        let waker = Waker::from(Arc::new(Bell { held: id, rung: Arc::clone(&self.rung) }));
        match held.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => self.held.remove(&id).map(|held| (held, answer)),
            Poll::Pending => None,
        }
    }

    /// The held polls that were woken since the last time.
    pub(crate) fn rung(&self) -> Vec<u64> {
        std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the reconcilers do, each at its own pace.
    pub(crate) fn reconcile(&self, round: u64, health: bool) -> conductor::Result<()> {
        let Some(api) = &self.api else { return Ok(()) };
        ready(api.flush())?;
        let conductor = api.conductor();
        ready(conductor.reconcile_leases())?;
        if round.is_multiple_of(8) {
            ready(conductor.reconcile_logs(Pace::default()))?;
        }
        if health && round.is_multiple_of(8) {
            ready(conductor.reconcile_health())?;
        }
        if round.is_multiple_of(64) {
            ready(conductor.reconcile_cleanup(Keep::default()))?;
        }
        Ok(())
    }

    /// A user's request, perhaps repeated with the same key.
    pub(crate) fn submit(&self, runner: usize, wanted: &WantedJob) -> Option<JobId> {
        let conductor = self.conductor()?;
        let (runner, install, _) = &self.runners[runner];
        let idem = Idempotency {
            scope: self.account.clone(),
            key: wanted.key.clone(),
            request_digest: model::Digest::of(wanted.key.as_bytes()),
        };
        let queued = if wanted.reads {
            let job = NewRunnerJob { work: Work::Noop { sleep_ms: 1 }, priority: 0 };
            ready(conductor.submit_runner_job(runner, job, "user", Some(idem)))
        } else {
            let step = StepSpec {
                name: "run".into(),
                inline_contents: None,
                command: Some("true".into()),
                source: None,
                env: BTreeMap::new(),
            };
            let action = NewAction {
                name: None,
                steps: vec![step],
                run_env: BTreeMap::new(),
                timeout_s: 300,
                secrets: Vec::new(),
                limits: Limits::default(),
                target: wanted.target.clone(),
                priority: wanted.priority,
            };
            ready(conductor.submit_action(install.clone(), runner, action, "user", Some(idem)))
        };
        Some(queued.ok()?.job.id)
    }

    pub(crate) fn job(&self, id: &JobId) -> Option<Job> {
        ready(self.store.job(&self.org, id)).ok()
    }

    pub(crate) fn cancel(&self, id: &JobId) -> Option<Job> {
        let now = self.conductor()?.now();
        ready(self.store.cancel(&self.org, id, "user", now)).ok()
    }

    pub(crate) fn settle(&self, id: &JobId, outcome: Outcome) {
        if let Some(conductor) = self.conductor() {
            let _ = ready(self.store.settle(&self.org, id, outcome, "looked", "operator", conductor.now()));
        }
    }

    pub(crate) fn change_runner(&self, runner: usize, change: RunnerChange) -> bool {
        let Some(conductor) = self.conductor() else { return false };
        let id = &self.runners[runner].0.id;
        ready(self.store.change_runner(&self.org, id, change, "operator", conductor.now())).is_ok()
    }
}

fn add_runner(founding: &Founding, name: String, chance: &mut Chance) -> store::Result<(Runner, Install, String)> {
    let install = founding.add_install(name, chance)?;
    let (now, store, org, runner) = (founding.clock.now(), &founding.store, &founding.org, &install.runner_id);
    let credential = format!("fjc_{:032x}", chance.u128());
    let id = CredentialId::new(now, chance.u128());
    ready(store.add_credential(org, runner, id, &credential, "operator", now))?;
    // More of what a server does by itself than a fleet would ask for.
    let settings = RunnerSettings { health_check_s: 300, ..RunnerSettings::defaults(RunnerKind::Install) };
    let changed = ready(store.change_runner(org, runner, RunnerChange::Settings(settings), "operator", now))?;
    Ok((changed, install, credential))
}

/// A job that a user wants.
#[derive(Debug, Clone)]
pub(crate) struct WantedJob {
    pub(crate) key: String,
    /// It changes nothing, so it may be tried again.
    pub(crate) reads: bool,
    pub(crate) target: Option<String>,
    pub(crate) priority: i64,
}
