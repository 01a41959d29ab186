//! Jobs: an image that runs until it ends, once for each content. The Kubernetes Job stays as the record of the run.
//!
//! Nothing runs twice: each run has a Job with a name of its own, which is in the state before the Job is created. Whoever plans
//! after a crash finds it there, running or ended, and no other one is started.

mod follow;
mod object;
mod plan;
mod tail;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crash::crash_point;
use fs_err as fs;
use kubernetes::{Cluster, Deployed, Entry, Inventory, ObjectRef, Output};
use model::JobError;
use model::deploy::{ApprovedPlan, Deploy, ResourceStatus, STALE_PLAN};
use model::kubernetes::{ClusterSpec, Pulls, RunSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Run;
use super::action::StepFailure;
use super::deploy::{Deployer, Planned, Workspace};
use super::kubernetes::api::{Api, Apply};
use super::kubernetes::pulls::ImagePulls;
use super::kubernetes::rollout::{self, Progress};
use super::kubernetes::state::{self, States};
use super::manifest::{connect, unless_stopped, work_s};
use super::stages::Stages;
use crate::confine::process::Stop;
use object::{Live, State};
use watch::{Over, Ran, Watch};

const LOOK: usize = 0;
const START: usize = 1;
const RUN: usize = 2;
const OUTPUTS: usize = 3;
/// How long a Job that is deleted may take to go, with its pods.
const GONE: Duration = Duration::from_secs(90);
/// The same when the execution is out of time.
const GONE_AT_THE_END: Duration = Duration::from_secs(15);
/// How long a Job that was asked for may take to appear.
const ON_ITS_WAY: Duration = Duration::from_secs(3);
/// What is kept of the grace to say how it went.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What a job on a Job works with.
pub(super) struct Program<'j> {
    pub(super) job: &'j RunSpec,
    pub(super) workspace: Workspace,
    pub(super) cluster: Option<&'j ClusterSpec>,
    pub(super) pulls: Option<&'j Pulls>,
    pub(super) timeout_s: u64,
}

/// All that an apply carries out.
#[derive(Serialize, Deserialize)]
struct PlanFile {
    cluster: Cluster,
    act: Act,
    /// Jobs that were there.
    found: Vec<Found>,
    creates_namespace: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Act {
    /// Creates the Job, and waits until it is over.
    Run {
        of: ObjectRef,
        object: Box<Value>,
    },
    /// An earlier apply has created it: waits until it is over.
    Wait {
        of: ObjectRef,
        uid: String,
    },
    /// It has run.
    Ran {
        ran: Box<Ran>,
    },
    Teardown {},
}

/// A Job of the component, when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Found {
    of: ObjectRef,
    uid: String,
    state: State,
}

impl Found {
    fn entry(&self) -> Entry {
        Entry { of: self.of.clone(), uid: self.uid.clone() }
    }
}

impl Deployer for Program<'_> {
    const PLAN_STAGES: &'static [&'static str] = &["look", "plan", "keep"];
    const APPLY_STAGES: &'static [&'static str] = &["look", "start", "run", "outputs"];

    const DIFF_FIELD: Option<&'static str> = Some("k8s_content_diff");

    fn deploy(&self) -> &Deploy {
        &self.job.deploy
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    async fn plan(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure> {
        let stop = run.stop.clone();
        unless_stopped(stop, plan::make(self, run, stages, destroy)).await
    }

    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
        _: bool,
    ) -> Result<Map<String, Value>, StepFailure> {
        let until = Instant::now() + Duration::from_secs(work_s(self.timeout_s));
        let stop = run.stop.clone();
        let (api, file, before) = unless_stopped(stop.clone(), self.begin(run, stages, approved)).await?;
        let apply = Applying { program: self, run, api, before, until };
        if let Act::Run { of, .. } | Act::Wait { of, .. } = &file.act {
            let (of, mut stop) = (of.clone(), stop);
            return tokio::select! {
                done = apply.carry_out(stages, file) => done,
                stop = super::watch::stopped(&mut stop) => Err(apply.stopped(&of, stop).await),
            };
        }
        unless_stopped(stop, apply.carry_out(stages, file)).await
    }
}

impl Program<'_> {
    /// Finds out whether the plan fits what is there.
    async fn begin(
        &self,
        run: &Run<'_>,
        stages: &mut Stages,
        approved: &ApprovedPlan,
    ) -> Result<(Arc<Api>, PlanFile, Option<Inventory>), StepFailure> {
        stages.begin(run, LOOK);
        let (_, api) = connect(run, self.cluster, &self.job.deploy).await?;
        let file = self.workspace.fetch_plan(run, approved).await?;
        let bad = |e: serde_json::Error| StepFailure::new("sealed_file", format!("the plan can't be read: {e}"));
        let file: PlanFile = serde_json::from_slice(&fs::read(&file)?).map_err(bad)?;
        if file.cluster.uid != api.cluster.uid {
            return Err(StepFailure::new(STALE_PLAN, "the cluster was replaced since the plan was made"));
        }
        let before = state::open(run, &self.workspace).await?;
        let there = plan::there(&api, self.job, before.as_ref()).await?;
        let stale = |of: &ObjectRef, what: &str| {
            StepFailure::new(STALE_PLAN, format!("{} was {what} since the plan was made", of.address()))
        };
        if let Some(new) = there.iter().find(|live| !file.found.iter().any(|known| known.uid == live.uid)) {
            return Err(stale(&new.of, "created"));
        }
        if let Act::Wait { of, uid } = &file.act
            && !there.iter().any(|live| live.uid == *uid)
        {
            return Err(stale(of, "deleted"));
        }
        Ok((Arc::new(api), file, before))
    }
}

/// An apply on its way.
struct Applying<'a> {
    program: &'a Program<'a>,
    run: &'a Run<'a>,
    api: Arc<Api>,
    before: Option<Inventory>,
    until: Instant,
}

impl Applying<'_> {
    async fn carry_out(&self, stages: &mut Stages, file: PlanFile) -> Result<Map<String, Value>, StepFailure> {
        let (run, workspace) = (self.run, &self.program.workspace);
        stages.begin(run, START);
        crash_point!("executor.before_apply");
        // Until another run has begun, the last good one counts.
        let before = self.before.as_ref().filter(|before| before.cluster.uid == self.api.cluster.uid);
        let Deployed { ran, begun, .. } = before.map(|before| before.deployed.clone()).unwrap_or_default();
        let begun = match &file.act {
            Act::Run { object, .. } => Some(object::run_of(object)),
            Act::Wait { .. } | Act::Ran { .. } | Act::Teardown {} => begun,
        };
        let namespace = self.program.job.namespace.clone();
        let deployed = Deployed { namespace, ran, begun, ..Deployed::default() };
        let mut states = States::new(self.before.as_ref(), &self.api.cluster, deployed);
        let PlanFile { act, found, creates_namespace, .. } = file;
        let mut known: Vec<Entry> = found.iter().map(Found::entry).collect();
        let (of, object) = match act {
            Act::Ran { ran } => return self.finish(stages, states, &found, *ran).await,
            Act::Teardown {} => {
                states.save(run, workspace, known, Vec::new()).await?;
                crash_point!("executor.intent_saved");
                self.delete(START, &found.iter().collect::<Vec<_>>()).await?;
                crash_point!("executor.applied");
                stages.begin(run, OUTPUTS);
                // What is deployed anew runs again.
                states.ran(Value::Null);
                return states.save(run, workspace, Vec::new(), Vec::new()).await;
            }
            Act::Run { of, object } => (of, Some(object)),
            Act::Wait { of, .. } => (of, None),
        };
        // What is not known to have ended well has no uid in the state.
        match known.iter_mut().find(|entry| entry.of.is_same(&of)) {
            Some(entry) => entry.uid.clear(),
            None => known.push(Entry { of: of.clone(), uid: String::new() }),
        }
        states.save(run, workspace, known, Vec::new()).await?;
        crash_point!("executor.intent_saved");
        let others: Vec<&Found> = found.iter().filter(|it| !it.of.is_same(&of)).collect();
        let uid = match object {
            // The record of the last good run goes when there is another one.
            Some(object) => {
                let left: Vec<&Found> = others.iter().copied().filter(|it| it.state != State::Complete).collect();
                self.delete(START, &left).await?;
                self.start(&of, &object, creates_namespace).await?
            }
            None => found.iter().find(|it| it.of.is_same(&of)).map(|it| it.uid.clone()).unwrap_or_default(),
        };
        stages.begin(run, RUN);
        let (mut progress, address) = (Progress::new(stages, RUN), of.address());
        progress.set(run, &address, "run", ResourceStatus::Started);
        progress.tell(run);
        let watched = self.watch(&of, &uid).await;
        let status = if watched.is_ok() { ResourceStatus::Done } else { ResourceStatus::Failed };
        progress.set(run, &address, "run", status);
        stages.set_resources(RUN, progress.shown());
        match watched {
            Ok(live) => self.finish(stages, states, &found, Ran::of(&live)).await,
            Err(failure) => {
                // It ended, so it is known what is there: whether it went well does not depend on this.
                states.ran(Value::Null);
                if !matches!(failure, StepFailure::Stopped(_)) {
                    let entries = others.iter().filter(|it| it.state == State::Complete).map(|it| it.entry());
                    let entries = entries.chain([Entry { of, uid }]).collect();
                    drop(states.save(run, workspace, entries, Vec::new()).await);
                }
                Err(failure)
            }
        }
    }

    /// Creates the Job; returns its uid.
    async fn start(&self, of: &ObjectRef, object: &Value, creates_namespace: bool) -> Result<String, StepFailure> {
        let how = Apply { dry_run: false, force: true };
        let address = of.address();
        if creates_namespace {
            let namespace = plan::namespace(&self.program.job.namespace);
            let kind =
                self.api.kind(&namespace).await.map_err(|e| e.of("look up the kind of", &namespace.address()))?;
            if let Some(kind) = kind {
                let object = plan::namespace_object(&namespace.name);
                let made = self.api.apply(&namespace, &kind, &object, how).await;
                made.map_err(|e| e.of("create", &namespace.address()))?;
            }
        }
        if let Some(pulls) = ImagePulls::of(self.run, self.program.pulls)?
            && let Some(bringing) = pulls.bring(self.run, &self.api, pulls.namespaces([object])).await?
        {
            bringing.finish().await?;
        }
        let kind = self.api.kind(of).await.map_err(|e| e.of("look up the kind of", &address))?;
        let kind = kind.ok_or_else(|| {
            StepFailure::new("unknown_kind", format!("the cluster does not serve the kind of {address}"))
        })?;
        let made = self.api.apply(of, &kind, object, how).await.map_err(|e| e.of("create", &address))?;
        crash_point!("executor.job_started");
        self.run.say(Some(START), &format!("{address} is created"));
        Ok(made["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
    }

    async fn watch(&self, of: &ObjectRef, uid: &str) -> Result<Live, StepFailure> {
        let (api, timeout_s) = (Arc::clone(&self.api), work_s(self.program.timeout_s));
        let watch = Watch { run: self.run, api, of, uid, stage: RUN, until: self.until, timeout_s };
        match watch.until_over().await {
            Ok(live) => {
                crash_point!("executor.job_ended");
                Ok(live)
            }
            Err(Over::Failed(failure)) => {
                crash_point!("executor.job_ended");
                Err(failure)
            }
            Err(Over::Unseen(failure)) => Err(failure),
            Err(Over::GivenUp(failure)) => {
                let told = self.remove(of, uid, GONE_AT_THE_END).await;
                self.run.say(Some(RUN), &told);
                Err(also(failure, &told))
            }
        }
    }

    /// It ran well: earlier Jobs go, and what came out is kept.
    async fn finish(
        &self,
        stages: &mut Stages,
        mut states: States,
        found: &[Found],
        ran: Ran,
    ) -> Result<Map<String, Value>, StepFailure> {
        stages.begin(self.run, OUTPUTS);
        let others: Vec<&Found> = found.iter().filter(|it| !it.of.is_same(&ran.of)).collect();
        let mut entries = vec![Entry { of: ran.of.clone(), uid: ran.uid.clone() }];
        if let Err(failure) = self.delete(OUTPUTS, &others).await {
            // It is tried again by the next deploy, or by the teardown.
            let StepFailure::Failed { error, .. } = &failure else { return Err(failure) };
            self.run.say(Some(OUTPUTS), &format!("an earlier Job is still there: {}", error.message));
            entries.extend(others.iter().map(|it| it.entry()));
        }
        crash_point!("executor.applied");
        let outputs: Vec<(String, Output)> = watch::outputs(&ran);
        states.ran(json!(ran));
        states.save(self.run, &self.program.workspace, entries, outputs).await
    }

    async fn delete(&self, stage: usize, jobs: &[&Found]) -> Result<(), StepFailure> {
        for job in jobs {
            let address = job.of.address();
            let removed = self.api.delete(&job.of, &job.uid, "Foreground").await;
            removed.map_err(|e| e.of("delete", &address))?;
            crash_point!("executor.object_deleted");
            rollout::wait_gone(&self.api, &job.of, &job.uid, self.until.min(Instant::now() + GONE)).await?;
            self.run.say(Some(stage), &format!("{address} is deleted"));
        }
        Ok(())
    }

    /// Deletes the Job and its pods; says how that went.
    async fn remove(&self, of: &ObjectRef, uid: &str, within: Duration) -> String {
        let (address, until) = (of.address(), Instant::now() + within);
        let gone = async {
            self.api.delete(of, uid, "Foreground").await.map_err(|e| e.of("delete", &address))?;
            rollout::wait_gone(&self.api, of, uid, until).await
        };
        match tokio::time::timeout(within + Duration::from_secs(1), gone).await {
            Ok(Ok(())) => format!("{address} is deleted, with its pods"),
            Ok(Err(StepFailure::Failed { error, .. })) => format!("{address} may still run: {}", error.message),
            Ok(Err(StepFailure::Stopped(_))) | Err(_) => {
                format!("{address} may still run: the cluster does not answer")
            }
        }
    }

    /// Deletes a Job that may still be on its way to the cluster: a webhook may have held it up.
    async fn remove_when_there(&self, of: &ObjectRef, within: Duration) -> String {
        let until = Instant::now() + within.min(ON_ITS_WAY);
        while matches!(self.api.get(of).await, Ok(None)) {
            if Instant::now() >= until {
                return format!("{} was not created; should it still appear, the next deploy stops it", of.address());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.remove(of, "", within).await
    }

    /// The job is stopped: its Job is deleted, or left to whoever comes next.
    async fn stopped(&self, of: &ObjectRef, stop: Stop) -> StepFailure {
        if is_left(&stop, self.run.host.dir.cancel_reason().as_deref()) {
            self.run.say(Some(RUN), &format!("{} goes on; the next deploy waits for it", of.address()));
            return StepFailure::Stopped(stop);
        }
        let within = self.run.host.grace.saturating_sub(LAST_WORDS).max(Duration::from_secs(1));
        let told = self.remove_when_there(of, within).await;
        self.run.say(Some(RUN), &told);
        StepFailure::Stopped(stop)
    }
}

/// A failure, and what became of the Job.
fn also(failure: StepFailure, told: &str) -> StepFailure {
    match failure {
        StepFailure::Failed { error, exit_code } => {
            let message = format!("{}. {told}", error.message.trim_end_matches('.'));
            StepFailure::Failed { error: JobError { message, ..error }, exit_code }
        }
        stopped => stopped,
    }
}

/// Whether the Job of an apply that is stopped goes on. `asked` is what the session wrote down: nothing where it is the host
/// that goes down, or where the disk is full.
fn is_left(stop: &Stop, asked: Option<&str>) -> bool {
    match stop {
        Stop::Offline(_) => true,
        Stop::Cancelled(_) => asked.is_none_or(|reason| reason.starts_with("lease_lost")),
        Stop::TimedOut(_) | Stop::DiskQuota(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_to_cancel_ends_a_job_that_runs() {
        let told = Stop::Cancelled("the executor was told to stop".into());
        assert!(is_left(&told, None), "the host goes down");
        assert!(is_left(&Stop::Cancelled("lease_lost".into()), Some("lease_lost: another execution has it")));
        assert!(is_left(&Stop::Offline(300), None));
        assert!(!is_left(&Stop::Cancelled("cancelled by me".into()), Some("cancelled by me")));
        assert!(!is_left(&Stop::TimedOut(60), None));
    }

    #[test]
    fn a_failure_says_what_became_of_the_job() {
        let failure = StepFailure::new("timed_out", "it did not end.");
        assert_eq!(also(failure, "Job/shop/it may still run").sentence(), "it did not end. Job/shop/it may still run");
    }
}
