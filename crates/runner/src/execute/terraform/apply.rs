//! Carries out exactly the plan that was approved, and tells what came out.

use crash::crash_point;
use fs_err as fs;
use model::terraform::{ApprovedPlan, SealedFile};
use serde_json::{Map, Value, json};

use super::super::action::StepFailure;
use super::super::sealed::private_dir;
use super::super::stages::Stages;
use super::super::{Run, tool};
use super::{KEEP, LOCK_TIMEOUT, Ready, Site, WORK, failed, read_state};
use crate::process::Child;
use crate::rescue::{self, ERRORED};
use mask::Masks;

pub(super) async fn carry_out(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    plan: &ApprovedPlan,
    destroy: bool,
) -> Result<Map<String, Value>, StepFailure> {
    let head = &site.workspace.head;
    let (lineage, serial) = head.as_ref().map_or(("", 0), |head| (head.lineage.as_str(), head.serial));
    if (lineage, serial) != (plan.lineage.as_str(), plan.serial) {
        let text =
            format!("the plan was made from serial {} of the state, which is at serial {serial} by now", plan.serial);
        return Err(StepFailure::new("stale_plan", text));
    }
    let ready = site.prepare(run, stages).await?;
    stages.begin(run, WORK);
    let file = run.host.dir.work().join("tfplan");
    site.workspace.keeper.vault.fetch(&plan.file, &file).await?;
    let kind = if destroy { "destroy" } else { "apply" };
    hook(run, &ready, &format!("pre-{kind}")).await?;
    crash_point!("executor.before_apply");
    let place = file.to_string_lossy().into_owned();
    let words = ["apply", "-json", "-input=false", LOCK_TIMEOUT, &place];
    let followed = site.follow(run, stages, &ready, &words).await;
    crash_point!("executor.applied");
    let left = rescued(run, site, &ready).await;
    let outcome = match followed {
        Ok((0, _)) => Ok(()),
        Ok((code, progress)) => {
            let told = ready.why(&progress).unwrap_or_else(|| "`apply` failed; the log says why".into());
            if told.contains("Saved plan is stale") {
                return Err(StepFailure::new("stale_plan", told));
            }
            Err(failed(code, told))
        }
        Err(failure) => Err(failure),
    };
    if let Err(failure) = outcome {
        // What it says is in the log; it can't make things better.
        let _ = hook(run, &ready, &format!("error-{kind}")).await;
        return Err(failure);
    }
    if let Some(why) = left {
        return Err(StepFailure::new("terraform_failed", why));
    }
    hook(run, &ready, &format!("post-{kind}")).await?;
    stages.begin(run, KEEP);
    outputs(run, site).await
}

/// A state that Terraform could not hand over lies beside the module: it is kept. Returns why it was not handed over.
async fn rescued(run: &Run<'_>, site: &Site<'_>, ready: &Ready) -> Option<String> {
    // A write that is on its way ends first.
    let last = ready.backend.last().await;
    let errored = ready.dir.join(ERRORED);
    if !errored.exists() {
        return match last {
            Some((super::backend::Saved::Failed(why), _)) => Some(format!("the state could not be kept: {why}")),
            Some((super::backend::Saved::Quarantined, _)) => {
                Some("the lease was lost: the state was kept beside the others".into())
            }
            Some((super::backend::Saved::Kept, _)) | None => None,
        };
    }
    let kept = site.workspace.keeper.push(&errored, ERRORED).await;
    let text = match kept {
        Ok(answer) if answer.quarantined => {
            format!("the state of {ERRORED} was kept beside the others as revision {}", answer.revision_id)
        }
        Ok(answer) => format!("the state of {ERRORED} was kept as revision {}", answer.revision_id),
        Err(error) => match rescue::take(run.host.dir, &run.context.state_dir) {
            Ok(Some(_)) => format!(
                "the state can't be brought to the control plane ({error}); it waits on the runner and is brought there later"
            ),
            Ok(None) => format!("the state is lost: {error}"),
            Err(disk) => format!("the state is lost: {error}; {disk}"),
        },
    };
    run.say(Some(WORK), &text);
    Some(text)
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

/// Values of before that are remembered for masking.
const FILLED_MAX: usize = 1_000;

/// What the module puts out: values that anybody may see, and a sealed file with the others.
async fn outputs(run: &Run<'_>, site: &Site<'_>) -> Result<Map<String, Value>, StepFailure> {
    let keeper = &site.workspace.keeper;
    let private = private_dir(run.host.dir);
    let place = private.join("last.json");
    let Some(head) = keeper.load(&place).await? else { return Ok(Map::new()) };
    let read = tokio::task::spawn_blocking(move || read_state(&place)).await;
    let state = read.map_err(std::io::Error::other)?.map_err(|e| StepFailure::new("sealed_file", e))?;
    let (mut public, mut values, mut shapes) = (Map::new(), Map::new(), Map::new());
    // What holds a secret is one, whatever it is called: of `***` nobody could make use.
    let (of_state, of_job) = (Masks::new(&state.secrets.values), run.host.secrets.masks());
    for (name, output) in state.outputs {
        let masked = of_job.mask_value(of_state.mask_value(output.value.clone()));
        if masked == output.value {
            public.insert(name, masked);
            continue;
        }
        run.say(Some(WORK), &format!("the output `{name}` holds a secret: it is kept as a sensitive one"));
        shapes.insert(name.clone(), shape(&output.kind));
        values.insert(name, output.value);
    }
    for (name, output) in state.sensitive_outputs {
        shapes.insert(name.clone(), shape(&output.kind));
        values.insert(name, output.value);
    }
    let seal = async |what: &Value| -> Result<SealedFile, StepFailure> {
        let file = private.join("sealed.json");
        serde_json::to_writer(crate::vault::private_file(&file)?, what).map_err(std::io::Error::other)?;
        let sealed = keeper.vault.put(&file).await?;
        let _ = fs::remove_file(&file);
        Ok(sealed)
    };
    let mut sealed = Map::new();
    if !values.is_empty() {
        sealed.insert("file".into(), json!(seal(&Value::Object(values)).await?));
        sealed.insert("shapes".into(), Value::Object(shapes));
    }
    // The next plan shows what was there before: these must not be seen in it, also when others took their place.
    let mut filled = site.workspace.filled.clone();
    filled.sort();
    filled.dedup();
    filled.truncate(FILLED_MAX);
    if !filled.is_empty() {
        sealed.insert("known".into(), json!(seal(&json!(filled)).await?));
    }
    let mut told = Map::new();
    if !sealed.is_empty() {
        told.insert("sealed".into(), Value::Object(sealed));
    }
    told.insert("outputs".into(), Value::Object(public));
    told.insert("serial".into(), json!(head.serial));
    told.insert("lineage".into(), json!(head.lineage));
    Ok(told)
}

/// The names of what is in a sensitive output, as far as its type has names: an object's attributes; the rest is one value.
fn shape(kind: &Value) -> Value {
    match (kind.get(0).and_then(Value::as_str), kind.get(1).and_then(Value::as_object)) {
        (Some("object"), Some(fields)) => {
            Value::Object(fields.iter().map(|(name, kind)| (name.clone(), shape(kind))).collect())
        }
        _ => Value::Null,
    }
}
