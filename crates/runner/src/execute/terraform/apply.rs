//! Carries out exactly the plan that was approved, and tells what came out.

use crash::crash_point;
use fs_err as fs;
use model::deploy::{ApprovedPlan, DISK_FULL, STALE_PLAN, STATE_LOST, STATE_WAITING};
use serde_json::{Map, Value};

use super::super::action::StepFailure;
use super::super::deploy::read_state;
use super::super::sealed::private_dir;
use super::super::stages::Stages;
use super::super::{Run, tool};
use super::backend::Saved;
use super::{KEEP, LOCK_TIMEOUT, Ready, Site, WORK, failed};
use crate::confine::process::Child;
use crate::seal::rescue::{self, ERRORED, Rescued};
use crate::seal::reserve;
use crate::seal::vault::{Plain, named, write_whole};

pub(super) async fn carry_out(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    plan: &ApprovedPlan,
    destroy: bool,
) -> Result<Map<String, Value>, StepFailure> {
    let ready = site.prepare(run, stages).await?;
    stages.begin(run, WORK);
    let file = site.workspace.fetch_plan(run, plan).await?;
    let kind = if destroy { "destroy" } else { "apply" };
    hook(run, &ready, &format!("pre-{kind}")).await?;
    let state_bytes = site.workspace.head.as_ref().map_or(0, |head| head.file.bytes);
    reserve::take(run.host.dir, &run.context.state_dir, state_bytes).map_err(|e| StepFailure::new(DISK_FULL, e))?;
    crash_point!("executor.before_apply");
    let place = file.to_string_lossy().into_owned();
    let words = ["apply", "-json", "-input=false", LOCK_TIMEOUT, &place];
    let followed = site.follow(run, stages, &ready, &words).await;
    crash_point!("executor.applied");
    let left = rescued(run, site, &ready).await;
    reserve::release(run.host.dir);
    let outcome = match followed {
        Ok((0, _)) => Ok(()),
        Ok((code, progress)) => {
            let told = ready.why(&progress).unwrap_or_else(|| "`apply` failed; the log says why".into());
            if told.contains("Saved plan is stale") {
                return Err(StepFailure::new(STALE_PLAN, told));
            }
            Err(failed(code, told))
        }
        Err(failure) => Err(failure),
    };
    if let Err(failure) = outcome {
        // What it says is in the log; it can't make things better.
        let _ = hook(run, &ready, &format!("error-{kind}")).await;
        // That the state waits matters more than why Terraform failed, which is in the log.
        return Err(match (failure, left) {
            (_, Some(left @ (Left::Waits(_) | Left::Lost(_)))) => left.failure(),
            (failure, _) => failure,
        });
    }
    if let Some(left) = left {
        return Err(left.failure());
    }
    hook(run, &ready, &format!("post-{kind}")).await?;
    stages.begin(run, KEEP);
    outputs(run, site).await
}

/// What became of a state that Terraform could not hand over.
enum Left {
    /// The control plane has it.
    Kept(String),
    /// It is on the runner's disk, and the session brings it to the control plane.
    Waits(String),
    Lost(String),
}

impl Left {
    fn failure(self) -> StepFailure {
        match self {
            Self::Kept(text) => StepFailure::new("terraform_failed", text),
            Self::Waits(text) => StepFailure::new(STATE_WAITING, text),
            Self::Lost(text) => StepFailure::new(STATE_LOST, text),
        }
    }
}

/// Brings a state that Terraform could not hand over to the control plane, or puts it where it waits for that. None where there
/// is none.
async fn rescued(run: &Run<'_>, site: &Site<'_>, ready: &Ready) -> Option<Left> {
    // A write that is on its way ends first.
    let last = ready.backend.last().await;
    if let Some(full) = ready.backend.full() {
        run.say(Some(WORK), &format!("{full}: the state was uploaded from memory. Free disk space on the runner"));
    }
    let errored = ready.dir.join(ERRORED);
    let beside = Plain::File(errored.clone());
    let state = match (errored.exists() && beside.is_state(), last) {
        (true, _) => beside,
        // Terraform could not leave it beside its module either. If this executor dies, it is found there.
        (false, Some((Saved::Failed(_), plain))) => {
            reserve::release(run.host.dir);
            let written = plain.open().and_then(|plain| write_whole(&errored, plain));
            if written.is_ok() { beside } else { plain }
        }
        (false, Some((Saved::Quarantined, _))) => {
            return Some(Left::Kept("this execution lost its lease: the state is quarantined".into()));
        }
        (false, Some((Saved::Kept, _)) | None) if !errored.exists() => return None,
        (false, Some((Saved::Kept, _)) | None) => {
            let text = format!("{} is not whole, and Terraform wrote no other state", errored.display());
            run.say(Some(WORK), &text);
            return Some(Left::Lost(text));
        }
    };
    let left = keep(run, site, state).await;
    if matches!(left, Left::Kept(_)) {
        // The control plane has it: nobody needs to bring it there again.
        let _ = fs::remove_file(&errored);
    }
    let (Left::Kept(text) | Left::Waits(text) | Left::Lost(text)) = &left;
    run.say(Some(WORK), text);
    Some(left)
}

/// How often a state that nobody takes is offered again, once a second.
const TRIES_MAX: u32 = 3_600;

/// Tries both the control plane and the disk until one of them has the state: it may be the only trace of what was made.
async fn keep(run: &Run<'_>, site: &Site<'_>, mut state: Plain) -> Left {
    let (keeper, state_dir) = (&site.workspace.keeper, &run.context.state_dir);
    for tries in 0.. {
        let error = match keeper.push(state.clone(), ERRORED).await {
            Ok(kept) if kept.quarantined => {
                return Left::Kept(format!("the state in {ERRORED} is quarantined as revision {}", kept.revision_id));
            }
            Ok(kept) => return Left::Kept(format!("the state of {ERRORED} was kept as revision {}", kept.revision_id)),
            Err(error) => error,
        };
        let about = about(run, site);
        let disk = match about.and_then(|about| rescue::keep(state_dir, &about, &state)) {
            Ok(place) => {
                return Left::Waits(format!(
                    "the state can't be uploaded ({error}). It is safe on the runner, in {}; the runner uploads it as soon as it can",
                    place.display()
                ));
            }
            Err(disk) => named(&rescue::place(state_dir), &disk),
        };
        if tries == TRIES_MAX {
            return Left::Lost(format!(
                "the state is lost: it can't be uploaded ({error}), nor written to the disk ({disk})"
            ));
        }
        if tries == 0 {
            run.say(Some(WORK), &format!("the state can't be uploaded ({error}), nor written to the disk ({disk}). It is in memory, and both are tried again every second: free disk space on the runner, and don't stop it"));
            // A file that vanishes must not take the state along.
            if let Plain::File(path) = &state
                && let Ok(bytes) = fs::read(path)
            {
                state = Plain::Memory(bytes.into());
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    unreachable!("the loop ends after TRIES_MAX")
}

fn about(run: &Run<'_>, site: &Site<'_>) -> std::io::Result<Rescued> {
    let assignment = run.host.dir.assignment()?;
    Ok(Rescued {
        install_id: site.workspace.keeper.vault.install().clone(),
        workspace_id: site.workspace.keeper.workspace.clone(),
        execution_id: assignment.execution_id,
        epoch: assignment.epoch,
    })
}

/// Runs a script of the module, where it has one of this name.
async fn hook(run: &mut Run<'_>, ready: &Ready, name: &str) -> Result<(), StepFailure> {
    use std::os::unix::fs::PermissionsExt as _;
    let file = ready.dir.join(name);
    let runs = fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    if !runs {
        return Ok(());
    }
    run.say(Some(WORK), &format!("{name} of the module"));
    let argv = vec![file.to_string_lossy().into_owned()];
    let child = Child { kept: ready.kept.clone(), ..Child::new(argv, ready.dir.clone(), ready.env.clone(), WORK) };
    match tool::exit_code(run, &child).await? {
        0 => Ok(()),
        code => Err(failed(code, format!("{name} of the module failed with exit code {code}"))),
    }
}

/// What the module puts out: values that anybody may see, and a sealed file with the others.
async fn outputs(run: &Run<'_>, site: &Site<'_>) -> Result<Map<String, Value>, StepFailure> {
    let keeper = &site.workspace.keeper;
    let place = private_dir(run.host.dir).join("last.json");
    if keeper.load(&place).await?.is_none() {
        return Ok(Map::new());
    }
    let read = tokio::task::spawn_blocking(move || read_state(&place)).await;
    let state = read.map_err(std::io::Error::other)?.map_err(|e| StepFailure::new("sealed_file", e))?;
    let told = keeper.outputs(&state).await?;
    for name in &told.hidden {
        run.say(Some(WORK), &format!("the output `{name}` holds a secret: it is kept as a sensitive one"));
    }
    Ok(told.document)
}
