//! A plan: made, judged by policies, shown masked, and kept sealed.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use api::terraform::PlanRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use crash::crash_point;
use fs_err as fs;
use model::Digest;
use model::build::PolicySpec;
use model::terraform::{ApprovedPlan, DISPLAY_BYTES, STALE_PLAN};
use policy::{Limits, Policy, PolicyKind, Severity, Subject, Verdict};
use serde_json::{Map, Value, json};

use super::super::action::StepFailure;
use super::super::stages::Stages;
use super::super::{Run, tool};
use super::{KEEP, LOCK_TIMEOUT, Ready, Site, WORK, failed, variables};
use crate::confine::process::Child;
use crate::seal::vault::SECRETS_MAX;
use crate::session::About;
use mask::Masks;

pub(super) async fn make(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    destroy: bool,
    spec_digest: Digest,
) -> Result<Map<String, Value>, StepFailure> {
    let ready = site.prepare(run, stages).await?;
    stages.begin(run, WORK);
    crash_point!("executor.before_plan");
    let file = run.host.dir.work().join("tfplan");
    plan(run, stages, site, &ready, &file, destroy).await?;
    crash_point!("executor.planned");
    stages.begin(run, KEEP);
    let shown = show(run, &ready, &file).await?;
    let asked = if destroy { &[][..] } else { &site.job.policies };
    let (model, report) = read(run, shown, asked).await?;
    let mut display = json!(model);
    let verdicts = if asked.is_empty() { String::new() } else { json!(report.verdicts).to_string() };
    if !asked.is_empty() {
        display["policies"] = json!({ "asked": asked.len(), "verdicts": report.verdicts });
    }
    let display = display.to_string();
    let head = &site.workspace.head;
    if site.workspace.keeper.head().await?.state.map(|state| state.revision_id)
        != head.as_ref().map(|head| head.revision_id.clone())
    {
        return Err(StepFailure::new(STALE_PLAN, "the state was changed while the plan was made"));
    }
    let vault = &site.workspace.keeper.vault;
    let assignment = run.host.dir.assignment()?;
    let plan = ApprovedPlan {
        job_id: assignment.job_id.clone(),
        file: vault.put(&file).await?,
        model_digest: Digest::of(display.as_bytes()),
        verdicts,
        lineage: head.as_ref().map(|head| head.lineage.clone()).unwrap_or_default(),
        serial: head.as_ref().map_or(0, |head| head.serial),
        spec_digest,
    };
    let packed = zstd::bulk::compress(display.as_bytes(), 3)?;
    if packed.len() > DISPLAY_BYTES {
        return Err(StepFailure::new("plan_too_large", "what would be shown of the plan is too large"));
    }
    let count = |severity| report.verdicts.iter().filter(|said| said.severity == severity).count();
    let judged = json!({
        "asked": asked.len(), "evaluated": report.evaluated, "denied": count(Severity::Deny), "warned": count(Severity::Warn),
    });
    let mut changes = json!(model.changes);
    // There is something to apply though nothing is counted: the state itself is brought up to date.
    if model.changes.is_noop() && !model.is_noop() {
        changes["deferred"] = json!(1);
    }
    let request = PlanRequest { plan, changes, judged, display: B64.encode(packed) };
    crash_point!("executor.before_plan_kept");
    let about = About { id: &assignment.execution_id, token: &assignment.execution_token };
    vault.patiently(async |client| client.plan(about, &request).await).await?;
    crash_point!("executor.plan_kept");
    run.say(Some(KEEP), &terraform::summary(&model.changes));
    Ok(Map::from_iter([("changes".to_owned(), json!(model.changes))]))
}

async fn plan(
    run: &mut Run<'_>,
    stages: &mut Stages,
    site: &Site<'_>,
    ready: &Ready,
    file: &Path,
    destroy: bool,
) -> Result<(), StepFailure> {
    let out = format!("-out={}", file.display());
    let mut words = vec!["plan".to_owned(), "-json".into(), "-input=false".into(), LOCK_TIMEOUT.into(), out];
    if destroy {
        words.push("-destroy".into());
    }
    for (n, text) in variables::files(&ready.dir, site.job)?.into_iter().enumerate() {
        let name = if n == 0 { "variables.tfvars.json".to_owned() } else { format!("variables-{n}.tfvars") };
        let place = run.host.dir.work().join(name);
        tool::private(&place, &text)?;
        words.push(format!("-var-file={}", place.display()));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, progress) = site.follow(run, stages, ready, &words).await?;
    match code {
        0 => Ok(()),
        code => Err(failed(code, ready.why(&progress).unwrap_or_else(|| "`plan` failed; the log says why".into()))),
    }
}

/// The plan as JSON, in a file: it may be large.
async fn show(run: &mut Run<'_>, ready: &Ready, plan: &Path) -> Result<PathBuf, StepFailure> {
    let place = run.host.dir.work().join("tmp/plan.json");
    let (to, plan) = (place.to_string_lossy().into_owned(), plan.to_string_lossy().into_owned());
    let mut argv: Vec<String> =
        ["/bin/sh", "-c", "out=$1; shift; umask 077; exec \"$@\" >\"$out\"", "sh", &to].map(str::to_owned).into();
    argv.extend(ready.argv(&["show", "-json", "-no-color", &plan]));
    let child = Child { kept: ready.kept.clone(), ..Child::new(argv, ready.dir.clone(), ready.env.clone(), KEEP) };
    match tool::exit_code(run, &child).await? {
        0 => Ok(place),
        code => Err(failed(code, "`show` failed; the log says why")),
    }
}

/// Reads the plan: its secrets, then the model, a resource at a time; and as a whole for policies, which bound its size.
async fn read(
    run: &Run<'_>,
    file: PathBuf,
    asked: &[PolicySpec],
) -> Result<(terraform::Plan, policy::Report), StepFailure> {
    let open = |file: &Path| fs::File::open(file).map(|file| BufReader::with_capacity(256 << 10, file));
    let bad = |e: &dyn std::fmt::Display| StepFailure::new("terraform_failed", format!("the plan can't be read: {e}"));
    let mut secrets = terraform::secrets_of_plan(open(&file)?).map_err(|e| bad(&e))?.values;
    if secrets.len() > SECRETS_MAX {
        let text = format!(
            "the plan has {} sensitive values: they are hidden where they are marked, and {SECRETS_MAX} of them everywhere else",
            secrets.len()
        );
        run.host.log.borrow_mut().system(None, &text);
    }
    secrets.truncate(SECRETS_MAX);
    let more = Masks::new(&secrets);
    let masks = run.host.secrets.masks();
    let mask = |text: &str| more.mask_text(&masks.mask_text(text));
    let model = terraform::read_plan(open(&file)?, &mask, &terraform::Limits::default()).map_err(|e| bad(&e))?;
    let report = if asked.is_empty() { policy::Report::default() } else { judge(&file, asked).await };
    let _ = fs::remove_file(&file);
    for said in &report.verdicts {
        run.say(Some(KEEP), &mask(&format!("policy {}: {}: {}", said.policy, said.severity.as_str(), said.message)));
    }
    Ok((model, report.masked(mask)))
}

/// Has the policies judge the whole plan, unmasked. What can't be judged is denied.
async fn judge(file: &Path, asked: &[PolicySpec]) -> policy::Report {
    let denied = |policy: &str, why: String| {
        let message = format!("denied, because the policy could not be evaluated: {why}");
        let verdict = Verdict { policy: policy.to_owned(), severity: Severity::Deny, message, object: None };
        policy::Report { verdicts: vec![verdict], evaluated: 0 }
    };
    let mut policies = Vec::new();
    for known in asked {
        let Some(kind) = PolicyKind::parse(&known.kind) else {
            return denied(&known.name, format!("this runner does not know its type `{}`", known.kind));
        };
        policies.push(Policy { name: known.name.clone(), kind, contents: known.contents.clone() });
    }
    let first = policies.first().map(|policy| policy.name.clone()).unwrap_or_default();
    let limits = Limits::default();
    let size = fs::metadata(file).map_or(u64::MAX, |meta| meta.len());
    if size > limits.input_bytes_max {
        return denied(
            &first,
            format!("the plan has {size} bytes, and at most {} can be judged", limits.input_bytes_max),
        );
    }
    let plan: Value = match fs::read(file)
        .map_err(|e| e.to_string())
        .and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string()))
    {
        Ok(plan) => plan,
        Err(why) => return denied(&first, why),
    };
    let judged = tokio::task::spawn_blocking(move || policy::evaluate(&policies, &Subject::Plan(plan), limits)).await;
    judged.unwrap_or_else(|error| denied(&first, error.to_string()))
}
