//! What becomes of a plan: it is judged, shown masked, named by its digest, and kept sealed.

use api::terraform::PlanRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use crash::crash_point;
use model::Digest;
use model::build::PolicySpec;
use model::deploy::{ApprovedPlan, DISPLAY_BYTES, STALE_PLAN};
use policy::{Limits, Policy, PolicyKind, Severity, Subject, Verdict};
use serde_json::{Map, Value, json};

use super::super::Run;
use super::super::action::StepFailure;
use super::{Deployer, Planned, dialect};
use crate::session::About;

pub(super) async fn keep<D: Deployer>(
    run: &mut Run<'_>,
    stage: usize,
    deployer: &D,
    planned: Planned,
    destroy: bool,
    spec_digest: Digest,
) -> Result<Map<String, Value>, StepFailure> {
    let Planned { file, model, report, ask } = planned;
    let asked = if destroy { &[][..] } else { &deployer.deploy().policies };
    let mut display = json!(model);
    let verdicts = if asked.is_empty() { String::new() } else { json!(report.verdicts).to_string() };
    if !asked.is_empty() {
        display["policies"] = json!({ "asked": asked.len(), "verdicts": report.verdicts });
    }
    if !ask.is_empty() {
        display["ask"] = json!(ask);
    }
    if let Some(field) = D::DIFF_FIELD {
        display["op"] = json!(if destroy { "delete" } else { "apply" });
        display["plan"] = json!(terraform::summary(&model.changes));
        display[field] = json!(dialect::content_diff(&model));
    }
    let display = display.to_string();
    let workspace = deployer.workspace();
    let head = &workspace.head;
    if workspace.keeper.head().await?.state.map(|state| state.revision_id)
        != head.as_ref().map(|head| head.revision_id.clone())
    {
        return Err(StepFailure::new(STALE_PLAN, "the state was changed while the plan was made"));
    }
    let vault = &workspace.keeper.vault;
    let assignment = run.host.dir.assignment()?;
    let (lineage, serial) = workspace.state();
    let plan = ApprovedPlan {
        job_id: assignment.job_id.clone(),
        file: vault.put(&file).await?,
        model_digest: Digest::of(display.as_bytes()),
        verdicts,
        lineage: lineage.to_owned(),
        serial,
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
    run.say(Some(stage), &terraform::summary(&model.changes));
    Ok(Map::from_iter([("changes".to_owned(), json!(model.changes))]))
}

/// Has the policies judge what is planned, unmasked. What can't be judged is denied.
pub(in super::super) async fn judge(
    asked: &[PolicySpec],
    size: u64,
    subject: impl FnOnce() -> Result<Subject, String>,
) -> policy::Report {
    let denied = |policy: &str, why: String| {
        let message = format!("denied, because the policy could not be evaluated: {why}");
        let verdict = Verdict { policy: policy.to_owned(), severity: Severity::Deny, message, object: None };
        policy::Report { verdicts: vec![verdict], evaluated: 0 }
    };
    let Some(first) = asked.first().map(|policy| policy.name.clone()) else { return policy::Report::default() };
    let mut policies = Vec::new();
    for known in asked {
        let Some(kind) = PolicyKind::parse(&known.kind) else {
            return denied(&known.name, format!("this runner does not know its type `{}`", known.kind));
        };
        policies.push(Policy { name: known.name.clone(), kind, contents: known.contents.clone() });
    }
    let limits = Limits::default();
    if size > limits.input_bytes_max {
        return denied(
            &first,
            format!("the plan has {size} bytes, and at most {} can be judged", limits.input_bytes_max),
        );
    }
    let subject = match subject() {
        Ok(subject) => subject,
        Err(why) => return denied(&first, why),
    };
    let judged = tokio::task::spawn_blocking(move || policy::evaluate(&policies, &subject, limits)).await;
    judged.unwrap_or_else(|error| denied(&first, error.to_string()))
}
