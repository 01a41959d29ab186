//! The contract of deployers: each makes a plan that people approve, carries out exactly that plan, and keeps a state, sealed.
//!
//! What is the same for all of them is here: the state is opened, a plan is judged, named by its digest and kept; an apply of
//! another plan, or of one that was made from another state, is refused before anything begins. A deployer brings how it plans
//! and how it applies.

mod dialect;
mod keep;
mod restore;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::terraform::{HolderRef, StateHead};
use fs_err as fs;
use model::deploy::{ApprovedPlan, Deploy, DeployOperation, STALE_PLAN};
use model::spec::JobSpec;
use model::{Digest, Outcome};
use serde_json::{Map, Value};

use super::action::StepFailure;
use super::kubernetes::state;
use super::sealed::private_dir;
use super::stages::Stages;
use super::{Done, Run};
use crate::directory::ExecutionDir;
use crate::seal::vault::{Keeper, SECRETS_MAX, Vault, VaultError};

pub(super) use keep::judge;

/// How one kind of component is planned and applied.
pub(super) trait Deployer {
    /// The stages of a plan and of an apply, as people see them; the last one keeps what came out.
    const PLAN_STAGES: &'static [&'static str];
    const APPLY_STAGES: &'static [&'static str];

    /// Where existing clients look for the diff of objects.
    const DIFF_FIELD: Option<&'static str> = None;

    fn deploy(&self) -> &Deploy;
    fn workspace(&self) -> &Workspace;

    /// Finds out what an apply would do, and changes nothing. Begins all stages but the last one.
    async fn plan(&self, run: &mut Run<'_>, stages: &mut Stages, destroy: bool) -> Result<Planned, StepFailure>;

    /// Carries out exactly this plan; returns what the control plane may know of what came out. A plan that does not fit what is
    /// there any more is `stale_plan`, before anything was changed.
    async fn apply(
        &self,
        run: &mut Run<'_>,
        stages: &mut Stages,
        plan: &ApprovedPlan,
        destroy: bool,
    ) -> Result<Map<String, Value>, StepFailure>;
}

/// A plan that was made.
pub(super) struct Planned {
    /// All that an apply needs. It is sealed.
    pub(super) file: PathBuf,
    /// What people see, masked.
    pub(super) model: terraform::Plan,
    pub(super) report: policy::Report,
    /// Why a person must look at it, whatever was approved beforehand. Masked.
    pub(super) ask: Vec<String>,
}

impl From<VaultError> for StepFailure {
    fn from(error: VaultError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A workspace at the beginning of a job.
pub(super) struct Workspace {
    pub(super) keeper: Arc<Keeper>,
    pub(super) head: Option<StateHead>,
}

/// Looks at the state; returns its secrets, which must not be seen in any log.
pub(super) async fn open(
    vault: Vault,
    dir: &ExecutionDir,
    spec: &JobSpec,
    filled: Vec<String>,
) -> Result<(Workspace, Vec<String>), Done> {
    let job = spec.work.deploy().ok_or_else(|| Done::not_attempted("bad_spec", "the job deploys nothing"))?;
    let assignment = dir.assignment().map_err(|e| Done::not_attempted("executor_error", e.to_string()))?;
    let holder = HolderRef { execution_id: assignment.execution_id, epoch: assignment.epoch };
    let secrets = spec.secrets.iter().chain(&filled).cloned().collect();
    let workspace = job.workspace_id.clone();
    let applies = matches!(job.operation, DeployOperation::Apply { .. });
    let filled = applies.then_some(filled);
    let mut keeper = Keeper { vault, workspace, holder: Some(holder), person: String::new(), secrets, filled };
    let place = private_dir(dir).join("first.json");
    let head = keeper.load(&place).await?;
    let mut secrets = Vec::new();
    if head.is_some() {
        let read = tokio::task::spawn_blocking(move || read_state(&place)).await;
        let state = read.map_err(|e| Done::not_attempted("executor_error", e.to_string()))?;
        let state = state.map_err(|e| Done::not_attempted("sealed_file", e))?;
        secrets = state.secrets.values;
        secrets.truncate(SECRETS_MAX);
        keeper.secrets.extend(secrets.iter().cloned());
    }
    Ok((Workspace { keeper: Arc::new(keeper), head }, secrets))
}

/// Reads a plain state and removes it.
pub(super) fn read_state(file: &Path) -> Result<terraform::State, String> {
    let opened = fs::File::open(file).map_err(|e| e.to_string())?;
    let read = terraform::read_state(std::io::BufReader::with_capacity(256 << 10, opened), &|text| text.to_owned());
    let _ = fs::remove_file(file);
    read.map_err(|e| format!("the state can't be read: {e}"))
}

impl Workspace {
    /// The lineage and the serial of the state; empty and 0 before there is one.
    pub(super) fn state(&self) -> (&str, u64) {
        self.head.as_ref().map_or(("", 0), |head| (head.lineage.as_str(), head.serial))
    }

    /// Brings the file of an approved plan.
    pub(super) async fn fetch_plan(&self, run: &Run<'_>, plan: &ApprovedPlan) -> Result<PathBuf, StepFailure> {
        let file = run.host.dir.work().join("approved-plan");
        self.keeper.vault.fetch(&plan.file, &file).await?;
        Ok(file)
    }
}

pub(super) async fn run<D: Deployer>(run: &mut Run<'_>, deployer: &D, spec_digest: Digest) -> Done {
    let mut stages = Stages::new(match &deployer.deploy().operation {
        DeployOperation::Plan { .. } => D::PLAN_STAGES,
        DeployOperation::Apply { .. } => D::APPLY_STAGES,
        DeployOperation::Restore { .. } => &["state"],
    });
    let done = match &deployer.deploy().operation {
        DeployOperation::Plan { destroy } => plan(run, &mut stages, deployer, *destroy, spec_digest).await,
        DeployOperation::Apply { plan, destroy } => apply(run, &mut stages, deployer, plan, *destroy).await,
        DeployOperation::Restore { file, over_serial, .. } => {
            Box::pin(restore::restore(run, &mut stages, deployer.workspace(), file, *over_serial)).await
        }
    };
    match done {
        Ok(outputs) => {
            let steps = stages.finish(run);
            Done { outcome: Outcome::Finished, error: None, steps, outputs }
        }
        Err(failure) => Done { outputs: state::left(run), ..stages.fail(run, failure) },
    }
}

async fn plan<D: Deployer>(
    run: &mut Run<'_>,
    stages: &mut Stages,
    deployer: &D,
    destroy: bool,
    spec_digest: Digest,
) -> Result<Map<String, Value>, StepFailure> {
    let planned = Box::pin(deployer.plan(run, stages, destroy)).await?;
    let keep = D::PLAN_STAGES.len() - 1;
    stages.begin(run, keep);
    keep::keep(run, keep, deployer, planned, destroy, spec_digest).await
}

async fn apply<D: Deployer>(
    run: &mut Run<'_>,
    stages: &mut Stages,
    deployer: &D,
    plan: &ApprovedPlan,
    destroy: bool,
) -> Result<Map<String, Value>, StepFailure> {
    let (lineage, serial) = deployer.workspace().state();
    if (lineage, serial) != (plan.lineage.as_str(), plan.serial) {
        let text =
            format!("the plan was made from serial {} of the state, which is at serial {serial} by now", plan.serial);
        return Err(StepFailure::new(STALE_PLAN, text));
    }
    Box::pin(deployer.apply(run, stages, plan, destroy)).await
}
