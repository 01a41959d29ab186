//! The executor: carries out one execution from the files in its directory, and writes one result at the end.
//!
//! It trusts nobody: order and grant are verified again here, from the same files. It lives apart from the session (own
//! process session, no pipe between them), so it goes on when the session dies, and stops by itself when nobody renews
//! the lease for too long. SIGTERM means: look at the `cancel` file.

mod action;
mod archive;
mod artifact;
mod build;
mod deploy;
mod git;
mod health;
mod helm;
mod job;
pub(crate) mod kubernetes;
mod manifest;
mod noop;
mod outputs;
pub(crate) mod sealed;
pub(crate) mod secrets;
mod source;
mod stages;
mod telemetry;
pub(crate) mod terraform;
#[cfg(feature = "crash-points")]
mod test_deployer;
pub(crate) mod tool;
mod watch;

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crash::crash_point;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mask::Masks;
use model::build::{PullLogin, RegistryAccess};
use model::papers::{Expected, Grant, TrustedKeys};
use model::runner::RunnerKind;
use model::spec::{JobSpec, Work};
use model::{Digest, ExecutionResult, JobError, Outcome, StepResult, StepStatus, Timestamp};
use serde_json::{Map, Value};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::confine::limits::Cgroups;
use crate::confine::process::{self, Host, Stop};
use crate::confine::shim::{self, Sandbox};
use crate::directory::{ExecutionContext, ExecutionDir, remove_tree};
use crate::logs::secrets::Secrets;
use crate::logs::spool::SpoolWriter;
use crate::oci::RegistryTokens;
use crate::papers::{PAPERS_REFUSED, check_papers};
use crate::session::SessionClient;

/// How often a result that does not fit on the disk is tried again, once a second.
const RESULT_TRIES_MAX: u32 = 3600;
/// Whatever a spec says: an execution ends within a week, and a kill comes within an hour of the interrupt.
const TIMEOUT_MAX_S: u64 = 7 * 24 * 3600;
const GRACE_MAX_S: u64 = 3600;

/// Brings an artifact of the execution's job into a file. The caller checks its digest.
pub trait ArtifactFetcher {
    fn fetch<'a>(
        &'a self,
        dir: &'a ExecutionDir,
        digest: &'a Digest,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Speaks to the control plane with the session's key.
    fn client(&self, dir: &ExecutionDir) -> Result<SessionClient, String>;

    /// What pods of the execution's job pull with.
    fn pull_login<'a>(&'a self, dir: &'a ExecutionDir) -> BoxFuture<'a, Result<PullLogin, String>>;

    /// What lets an execution into Ferry's own registry.
    fn pass(&self, dir: &ExecutionDir) -> Box<dyn RegistryTokens>;
}

/// How the work ended; the rest of the result is the same for all work.
#[derive(Debug)]
struct Done {
    outcome: Outcome,
    error: Option<JobError>,
    steps: Vec<StepResult>,
    outputs: Map<String, Value>,
}

impl Done {
    fn finished(outputs: Map<String, Value>) -> Self {
        Self { outcome: Outcome::Finished, error: None, steps: Vec::new(), outputs }
    }

    fn not_attempted(code: &str, message: impl Into<String>) -> Self {
        Self { outcome: Outcome::NotAttempted, error: Some(JobError::new(code, message)), ..Self::finished(Map::new()) }
    }

    fn stopped(stop: &Stop) -> Self {
        Self { outcome: stop.outcome(), error: Some(stop.error()), ..Self::finished(Map::new()) }
    }
}

/// What the kinds of work share.
struct Run<'a> {
    host: Host<'a>,
    context: &'a ExecutionContext,
    fetcher: &'a dyn ArtifactFetcher,
    stop: tokio::sync::watch::Receiver<Option<Stop>>,
}

impl Run<'_> {
    /// Waits for a reason to stop.
    async fn stopped(&mut self) -> Stop {
        watch::stopped(&mut self.stop).await
    }

    /// From now on children see programs and the execution's own files, and nothing else of the host.
    fn narrow(&mut self) {
        if let Some(sandbox) = &mut self.host.sandbox {
            sandbox.narrow = true;
        }
    }

    fn say(&self, step: Option<usize>, line: &str) {
        self.host.log.borrow_mut().system(step, &self.host.secrets.masks().mask_text(line));
    }
}

/// Fetches nothing: for executions whose job has no artifacts.
struct NoArtifacts;

impl ArtifactFetcher for NoArtifacts {
    fn fetch<'a>(&'a self, _: &'a ExecutionDir, _: &'a Digest, _: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err("this executor has no way to fetch artifacts".into()) })
    }

    fn client(&self, _: &ExecutionDir) -> Result<SessionClient, String> {
        Err("this executor has no session".into())
    }

    fn pull_login<'a>(&'a self, _: &'a ExecutionDir) -> BoxFuture<'a, Result<PullLogin, String>> {
        Box::pin(async { Err("this executor has no way into the registry".into()) })
    }

    fn pass(&self, _: &ExecutionDir) -> Box<dyn RegistryTokens> {
        Box::new(NoPass)
    }
}

struct NoPass;

impl RegistryTokens for NoPass {
    fn token(&self) -> BoxFuture<'_, Result<RegistryAccess, String>> {
        Box::pin(async { Err("this executor has no way into the registry".into()) })
    }
}

/// Like `execute_with`, without artifacts.
pub async fn execute(dir: &Path) -> ExitCode {
    execute_with(dir, &NoArtifacts).await
}

/// The whole life of an executor. Fails only when there is nothing to report to: no directory, no right to work in it.
pub async fn execute_with(dir: &Path, fetcher: &dyn ArtifactFetcher) -> ExitCode {
    match live(dir, fetcher).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(dir = %dir.display(), %error, "the executor gives up");
            ExitCode::FAILURE
        }
    }
}

async fn live(path: &Path, fetcher: &dyn ArtifactFetcher) -> std::io::Result<()> {
    // Before the lock, which tells the session where to send signals. Taking a signal over also means not dying of it.
    let term = signal(SignalKind::terminate())?;
    let _ignored = (signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    let dir = ExecutionDir::open(path)?;
    let _lock = dir.lock()?;
    crash_point!("executor.locked");
    // Fails when it already leads one, which is as good.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if !dir.is_started() {
        return Err(std::io::Error::other("the server has not acknowledged the start"));
    }
    let context = dir.context()?;
    let started_at = now();
    let log = RefCell::new(SpoolWriter::new(&dir.spool(), context.spool_bytes));
    let work = AssertUnwindSafe(Box::pin(verify_and_work(&dir, &context, &log, fetcher, term)));
    let done = match work.catch_unwind().await {
        Ok(done) => done,
        Err(_) => after_panic(&dir).await,
    };
    clear_work(&dir, &context);
    for tries in 0.. {
        if !log.borrow_mut().finish() {
            tracing::warn!("the log's last gap can't be written");
        }
        let result = ExecutionResult {
            outcome: done.outcome,
            error: done.error.clone(),
            steps: done.steps.clone(),
            outputs: done.outputs.clone(),
            log_chunks: log.borrow().chunks(),
            started_at,
            finished_at: now(),
        };
        crash_point!("executor.before_result");
        match dir.write_result(&result) {
            Ok(()) => {
                crash_point!("executor.result_written");
                break;
            }
            Err(error) if tries == RESULT_TRIES_MAX => return Err(error),
            Err(error) => tracing::warn!(%error, "the result can't be written; trying again"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Makes room for the result. Nothing in the work directory is needed any more, except a state that nobody has taken.
fn clear_work(dir: &ExecutionDir, context: &ExecutionContext) {
    crate::seal::reserve::release(dir);
    let cleared = crate::seal::rescue::take(dir, &context.state_dir).and_then(|_| remove_tree(&dir.work()));
    if let Err(error) = cleared {
        tracing::warn!(%error, "the work directory can't be removed yet");
    }
}

/// A bug of ours: nothing may be left running, and the job must not look finished.
async fn after_panic(dir: &ExecutionDir) -> Done {
    process::reap_leftovers(dir, Duration::from_secs(1)).await;
    let error = JobError::new("executor_error", "the executor failed; this is a bug, its log has the details");
    let mut steps = dir.steps();
    for step in &mut steps {
        step.status = match step.status {
            StepStatus::InProgress => StepStatus::Error,
            StepStatus::Pending => StepStatus::NotAttempted,
            settled => settled,
        };
    }
    Done { outcome: Outcome::Failed, error: Some(error), steps, outputs: Map::new() }
}

async fn verify_and_work(
    dir: &ExecutionDir,
    context: &ExecutionContext,
    log: &RefCell<SpoolWriter>,
    fetcher: &dyn ArtifactFetcher,
    term: Signal,
) -> Done {
    let (mut spec, spec_digest, grant) = match verify(dir, context) {
        Ok(verified) => verified,
        Err(done) => return *done,
    };
    if let Some(refused) = not_for(context.kind, &spec.work) {
        return Done::not_attempted("wrong_runner", refused);
    }
    if let Work::ActionsWorkflow(action) = &spec.work
        && context.no_ad_hoc
        && action.is_ad_hoc()
    {
        let text = "the customer has switched ad hoc actions off on this runner: run an action of the app instead (`ferry actions run NAME`)";
        return Done::not_attempted("ad_hoc_refused", text);
    }
    crash_point!("executor.verified");
    let mut secrets = spec.secrets.clone();
    let workspace = match open_sealed(dir, context, fetcher, &mut spec, &mut secrets).await {
        Ok(workspace) => workspace,
        Err(done) => return masked(&Masks::new(&secrets), done),
    };
    let secrets = Secrets::new(&secrets, dir.work().join(action::MASK_FILE));
    let disk_bytes = spec.limits.disk_bytes.unwrap_or(u64::MAX).min(context.execution_disk_bytes);
    let bounds = watch::Bounds {
        timeout_s: spec.timeout_s.min(TIMEOUT_MAX_S),
        offline_s: grant.offline_s.min(context.offline_s),
        disk_bytes,
    };
    // The machine may have been suspended since the start was granted: by now another may work on the target.
    let since_start = dir.started_at().map_or(Duration::ZERO, |at| process::since_boot().saturating_sub(at));
    if since_start >= Duration::from_secs(bounds.offline_s) {
        return Done::stopped(&Stop::Offline(since_start.as_secs()));
    }
    let stop = watch::start(dir.clone(), bounds, term);
    let state_dir = context.state_dir.canonicalize().unwrap_or_else(|_| context.state_dir.clone());
    let hide = context.hide.clone().filter(|hide| state_dir.starts_with(hide));
    let sandbox = shim::landlock_available().then(|| Sandbox {
        state_dir: hide.unwrap_or(state_dir),
        work_dir: dir.work(),
        allow_paths: context.allow_paths.clone(),
        narrow: false,
    });
    let cgroups =
        if starts_programs(&spec.work) { Cgroups::create(dir.name(), &spec.limits) } else { Cgroups::default() };
    let grace = Duration::from_secs(spec.grace_s.min(GRACE_MAX_S));
    let trace = spec.trace.as_ref().map(|parent| parent.span_of(spec.job_id.as_str()));
    let mut telemetry = match receives_telemetry(&spec.work) {
        true => {
            telemetry::Telemetry::start().await.inspect_err(|e| tracing::warn!(%e, "exporters have no address")).ok()
        }
        false => None,
    };
    let otlp_endpoint = telemetry.as_ref().map(|t| t.endpoint().to_owned());
    let host = Host { dir, log, secrets: &secrets, cgroups, sandbox, grace, trace, otlp_endpoint };
    let mut run = Run { host, context, fetcher, stop };
    say_gaps(&run, &spec.work);
    secrets::hide(&run, &spec.store_secrets).await;
    let exported = async {
        match &mut telemetry {
            Some(telemetry) => telemetry.write_to(log, &secrets).await,
            None => std::future::pending().await,
        }
    };
    let mut stops = run.stop.clone();
    let done = tokio::select! {
        done = carry_out(&mut run, &spec, workspace, spec_digest, disk_bytes) => done,
        // What starts no program may end anywhere, so nobody there needs to look. The others bring their programs to an end.
        stop = watch::stopped(&mut stops), if !starts_programs(&spec.work) => Done::stopped(&stop),
        () = exported => unreachable!("it never ends"),
    };
    run.host.cgroups.remove();
    masked(&secrets.masks(), done)
}

async fn carry_out(
    run: &mut Run<'_>,
    spec: &JobSpec,
    workspace: Option<deploy::Workspace>,
    spec_digest: Digest,
    disk_bytes: u64,
) -> Done {
    match &spec.work {
        Work::Noop { sleep_ms } => noop::run(*sleep_ms).await,
        Work::HealthCheck {} => health::run(run).await,
        Work::ActionsWorkflow(action) => action::run(run, action, spec.cluster.as_ref(), disk_bytes).await,
        Work::Build(build) => build::run(run, build, disk_bytes).await,
        Work::OciSync(sync) => build::sync(run, sync, spec.pulls.as_ref()).await,
        Work::SandboxSyncSecrets(sync) => secrets::run(run, sync, spec).await,
        work => match workspace {
            Some(workspace) => Box::pin(carry_out_deploy(run, spec, work, workspace, spec_digest, disk_bytes)).await,
            None => Done::not_attempted("bad_spec", "the job has no workspace"),
        },
    }
}

/// The deployer of each type of component.
async fn carry_out_deploy(
    run: &mut Run<'_>,
    spec: &JobSpec,
    work: &Work,
    workspace: deploy::Workspace,
    spec_digest: Digest,
    disk_bytes: u64,
) -> Done {
    match work {
        Work::TerraformDeploy(job) | Work::SandboxTerraform(job) => {
            let cluster = spec.cluster.as_ref();
            let site = terraform::Site { job, workspace, disk_bytes, cluster };
            deploy::run(run, &site, spec_digest).await
        }
        Work::HelmChartDeploy(job) => {
            let (cluster, pulls) = (spec.cluster.as_ref(), spec.pulls.as_ref());
            let release = helm::Release { job, workspace, cluster, pulls, timeout_s: spec.timeout_s };
            deploy::run(run, &release, spec_digest).await
        }
        #[cfg(feature = "crash-points")]
        Work::KubernetesManifestDeploy(job) if test_deployer::is_meant(job) => {
            deploy::run(run, &test_deployer::OneFile { job, workspace }, spec_digest).await
        }
        Work::KubernetesManifestDeploy(job) => {
            let (cluster, pulls) = (spec.cluster.as_ref(), spec.pulls.as_ref());
            let objects = manifest::Objects { job, workspace, cluster, pulls, timeout_s: spec.timeout_s, disk_bytes };
            deploy::run(run, &objects, spec_digest).await
        }
        Work::JobDeploy(job) => {
            let (cluster, timeout_s) = (spec.cluster.as_ref(), spec.timeout_s);
            let program = job::Program { job, workspace, cluster, pulls: spec.pulls.as_ref(), timeout_s };
            deploy::run(run, &program, spec_digest).await
        }
        Work::Noop { .. }
        | Work::HealthCheck {}
        | Work::ActionsWorkflow(_)
        | Work::Build(_)
        | Work::OciSync(_)
        | Work::SandboxSyncSecrets(_) => Done::not_attempted("bad_spec", "the job deploys nothing"),
    }
}

/// Whether a job starts programs, which must be brought to an end when it is stopped.
fn starts_programs(work: &Work) -> bool {
    match work {
        Work::ActionsWorkflow(_)
        | Work::Build(_)
        | Work::OciSync(_)
        | Work::TerraformDeploy(_)
        | Work::HelmChartDeploy(_)
        | Work::KubernetesManifestDeploy(_)
        | Work::JobDeploy(_)
        | Work::SandboxTerraform(_) => true,
        Work::SandboxSyncSecrets(_) | Work::Noop { .. } | Work::HealthCheck {} => false,
    }
}

/// Whether programs of the job can reach an address on loopback: those of builds run in a network of their own.
fn receives_telemetry(work: &Work) -> bool {
    match work {
        Work::ActionsWorkflow(_)
        | Work::TerraformDeploy(_)
        | Work::HelmChartDeploy(_)
        | Work::KubernetesManifestDeploy(_)
        | Work::SandboxTerraform(_) => true,
        Work::Build(_)
        | Work::OciSync(_)
        | Work::JobDeploy(_)
        | Work::SandboxSyncSecrets(_)
        | Work::Noop { .. }
        | Work::HealthCheck {} => false,
    }
}

/// Says in the log of the first step what this host does not enforce.
fn say_gaps(run: &Run<'_>, work: &Work) {
    if !starts_programs(work) {
        return;
    }
    if run.host.sandbox.is_none() {
        run.say(Some(0), "this kernel has no landlock: scripts are not kept from the runner's files");
    }
    for gap in run.host.cgroups.gaps() {
        run.say(Some(0), gap);
    }
}

/// Opens what only the customer's side can: fills placeholders in, and looks at the state that a deploy will work on.
async fn open_sealed(
    dir: &ExecutionDir,
    context: &ExecutionContext,
    fetcher: &dyn ArtifactFetcher,
    spec: &mut JobSpec,
    secrets: &mut Vec<String>,
) -> Result<Option<deploy::Workspace>, Done> {
    let Some(vault) = sealed::vault(dir, context, fetcher, spec).await? else { return Ok(None) };
    let filled = sealed::fill(&vault, dir, spec).await?;
    secrets.extend(filled.iter().cloned());
    if spec.work.deploy().is_none() {
        return Ok(None);
    }
    let (workspace, known) = deploy::open(vault, dir, spec, filled).await?;
    secrets.extend(known);
    Ok(Some(workspace))
}

/// Why work is not for a runner of this kind: whatever is signed, a build runner touches no install, and nothing is built in a
/// customer's account.
fn not_for(kind: Option<RunnerKind>, work: &Work) -> Option<&'static str> {
    match (kind?, work) {
        (RunnerKind::Build, Work::ActionsWorkflow(_) | Work::SandboxSyncSecrets(_)) => {
            Some("this is a build runner: it only builds and copies artifacts")
        }
        (RunnerKind::Build, work) if work.deploy().is_some() => {
            Some("this is a build runner: it only builds and copies artifacts")
        }
        (RunnerKind::Install, Work::Build(_)) => Some("this is the runner of an install: it builds nothing"),
        (RunnerKind::Build | RunnerKind::Install, _) => None,
    }
}

fn masked(masks: &Masks, mut done: Done) -> Done {
    if let Some(error) = &mut done.error {
        error.message = masks.mask_text(&error.message);
    }
    for step in &mut done.steps {
        step.error = step.error.take().map(|text| masks.mask_text(&text));
    }
    if let Value::Object(outputs) = masks.mask_value(Value::Object(std::mem::take(&mut done.outputs))) {
        done.outputs = outputs;
    }
    done
}

/// Checks papers and spec; nothing has been started when they are refused.
fn verify(dir: &ExecutionDir, context: &ExecutionContext) -> Result<(JobSpec, Digest, Grant), Box<Done>> {
    let refuse = |code: &str, message: String| Box::new(Done::not_attempted(code, message));
    let unreadable = |e: std::io::Error| refuse("executor_error", format!("the execution's files can't be read: {e}"));
    let assignment = dir.assignment().map_err(unreadable)?;
    let spec_bytes = dir.spec().map_err(unreadable)?;
    let mut keys = TrustedKeys::new(context.trust.clone());
    keys.learn(&context.keys);
    let expected =
        Expected { runner_id: &context.runner_id, generation: context.generation, nonce: &context.nonce, now: now() };
    let (order, grant) = check_papers(&keys, &expected, &assignment, &spec_bytes)
        .map_err(|error| Box::new(Done::not_attempted(&error.code, error.message)))?;
    if grant.execution_id.as_str() != dir.name() {
        return Err(refuse(PAPERS_REFUSED, "the grant is for another execution".into()));
    }
    let spec = parse_spec(&spec_bytes).map_err(|(code, message)| refuse(code, message))?;
    let same = spec.job_id == order.job_id
        && spec.org_id == order.org_id
        && spec.install_id == order.install_id
        && spec.work.job_type() == order.job_type
        && spec.work.operation() == order.operation
        && spec.work.plan_digest() == order.plan_digest
        && sorted(spec.work.artifacts()) == sorted(order.artifact_digests);
    if same {
        Ok((spec, order.spec_digest, grant))
    } else {
        Err(refuse(PAPERS_REFUSED, "the spec is not what the order names".into()))
    }
}

fn sorted(mut digests: Vec<Digest>) -> Vec<Digest> {
    digests.sort();
    digests.dedup();
    digests
}

fn parse_spec(bytes: &[u8]) -> Result<JobSpec, (&'static str, String)> {
    let error = match serde_json::from_slice::<JobSpec>(bytes) {
        Ok(spec) => return Ok(spec),
        Err(error) => error,
    };
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let kind = value.pointer("/work/type").and_then(Value::as_str).unwrap_or_default();
    // Builds of all types are one kind of work.
    if model::JobType::parse(kind).is_some() || kind == "build" {
        Err(("bad_spec", format!("the spec can't be read: {error}")))
    } else {
        Err(("unsupported_job", format!("this runner does not know jobs of type `{kind}`; update it")))
    }
}

fn now() -> Timestamp {
    Timestamp::from_system(crash::wall_clock())
}
