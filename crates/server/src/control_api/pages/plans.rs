//! Plans as pages paint them, and how a plan differs from an earlier one of the same part.

use std::collections::BTreeMap;

use api::control::{
    Can, Cans, PlanAttribute, PlanChanges, PlanDiff, PlanHunk, PlanOutput, PlanResource, PlanValue, PlanView,
    PolicyCounts, PolicyVerdict, StepApprovalResponse,
};
use axum::Json;
use axum::extract::{Path, State};
use config::ComponentKind;
use engine::{Step, StepStatus, Work};
use model::{Role, StepId, id};
use serde::Deserialize;
use serde_json::Value;
use store::StoreError;
use terraform::{Action, AttributeChange, OutputAction, ResourceChange, Shown};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::{expires_at, step_cans};
use super::{Names, may};
use crate::AppState;
use crate::auth::{InOrg, Reader};
use crate::error::{ApiError, ApiResult};
use crate::request::Params;
use conductor::Loaded;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(plan)).routes(routes!(diff))
}

/// A step with the workflow that it belongs to.
pub(super) struct Found {
    pub(super) loaded: Loaded,
    pub(super) step: Step,
}

impl Found {
    pub(super) async fn of(state: &AppState, at: &InOrg, step: &str) -> ApiResult<Self> {
        let id = StepId::parse(step).map_err(|_| StoreError::NotFound("step"))?;
        let workflow = state.store().workflow_of_step(&at.org, &id).await?;
        let loaded = state.conductor.workflow(&at.org, &workflow).await?;
        let step = loaded.workflow.steps.iter().find(|known| known.id == id).ok_or(StoreError::NotFound("step"))?;
        Ok(Self { step: step.clone(), loaded })
    }
}

pub(super) fn changes(of: &engine::Changes) -> PlanChanges {
    PlanChanges {
        create: of.create,
        update: of.update,
        replace: of.replace,
        destroy: of.destroy,
        outputs: of.outputs,
        import: of.import,
        moved: of.moved,
        forget: of.forget,
        other: of.other,
        recorded: of.recorded,
    }
}

pub(super) fn policies(of: &engine::Judged) -> Option<PolicyCounts> {
    (of.asked > 0).then_some(PolicyCounts { asked: of.asked, denied: of.denied, warned: of.warned })
}

pub(super) fn answer(step: &Step, names: &Names) -> Option<StepApprovalResponse> {
    step.answer.as_ref().map(|answer| StepApprovalResponse {
        id: step.id.to_string(),
        r#type: answer.response.clone(),
        note: answer.note.clone(),
        created_by_id: names.name(&answer.by),
        created_at: Some(answer.at),
    })
}

/// What a step would change: typed, masked, the worst first.
#[utoipa::path(get, path = "/v1/workflow-steps/{step_id}/plan", tag = "pages", security(("token" = ["read-only"])), params(("step_id" = String, Path)), responses((status = 200, body = PlanView), (status = 404, body = api::ErrorBody)))]
async fn plan(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(step): Path<String>,
) -> ApiResult<Json<PlanView>> {
    let found = Found::of(&state, &at, &step).await?;
    Ok(Json(view(&state, &at, &found).await?))
}

async fn view(state: &AppState, at: &InOrg, found: &Found) -> ApiResult<PlanView> {
    let Found { loaded, step } = found;
    let plan = step.plan.as_ref().ok_or(StoreError::NotFound("plan"))?;
    let display = state.store().step_display(&at.org, &step.id).await?.ok_or(StoreError::NotFound("plan"))?;
    let names = Names::of(state, at).await?;
    let contents = Contents::read(&display);
    let steps = &loaded.workflow.steps;
    let same_slot = |other: &&Step| other.slot == step.slot && other.id != step.id;
    let earlier = steps.iter().rev().filter(same_slot).filter(|other| other.attempt < step.attempt);
    let newer = steps.iter().filter(same_slot).rfind(|other| other.attempt > step.attempt);
    Ok(PlanView {
        step_id: step.id.to_string(),
        workflow_id: loaded.row.id.to_string(),
        install_id: loaded.row.install_id.to_string(),
        digest: plan.digest.clone(),
        title: step.title(),
        r#type: kind(state, at, found, &display).await?.to_owned(),
        status: loaded.workflow.shown(step, loaded.workflow.status().is_over()).as_str().to_owned(),
        changes: changes(&plan.changes),
        data_loss: plan.stateful.max(contents.stateful),
        noop: plan.changes.is_noop(),
        can: plan_cans(at, loaded, step),
        component: step.work.component().unwrap_or_default().to_owned(),
        asked_at: step.asked_at,
        expires_at: expires_at(step),
        ask: plan.ask.clone().unwrap_or_default(),
        policies: policies(&plan.policies),
        verdicts: contents.verdicts,
        answer: answer(step, &names),
        notes: contents.notes,
        omitted: contents.omitted,
        terraform_version: contents.terraform_version,
        resources: contents.resources,
        outputs: contents.outputs,
        drift: contents.drift,
        earlier: earlier.filter_map(|other| other.plan.as_ref()).map(|plan| plan.digest.clone()).collect(),
        replaced_by_step: newer.map(|newer| newer.id.to_string()).unwrap_or_default(),
    })
}

/// What made the plan, for the words of the page.
async fn kind(state: &AppState, at: &InOrg, found: &Found, display: &Value) -> ApiResult<&'static str> {
    if display["simulated"] == true {
        return Ok("simulated");
    }
    let name = match &found.step.work {
        Work::SyncImage { .. } => return Ok("image"),
        work => work.component().unwrap_or_default(),
    };
    let install = state.store().install(&at.org, found.loaded.row.install_id.as_str()).await?;
    let document = state.conductor.document(&at.org, &install.app_id, &found.loaded.body.config_id).await?;
    let component = document.config.components.iter().find(|component| component.common.name == name);
    Ok(match component.map(|component| &component.kind) {
        Some(ComponentKind::HelmChart(_)) => "helm",
        Some(ComponentKind::KubernetesManifest(_)) => "manifest",
        Some(ComponentKind::Job(_)) => "job",
        _ => "terraform",
    })
}

/// What may be done with a plan. An approver may answer; what goes on without it, or plans again, is an operator's.
pub(super) fn plan_cans(at: &InOrg, loaded: &Loaded, step: &Step) -> Cans {
    let waits = step.status == StepStatus::ApprovalAwaiting && !loaded.workflow.status().is_over();
    let why = match step.status {
        StepStatus::ApprovalAwaiting => "the workflow is over",
        StepStatus::Approved => "the plan is approved already",
        StepStatus::Discarded => "a newer plan has taken its place",
        StepStatus::ApprovalDenied | StepStatus::DeniedSkipped => "the plan was denied",
        StepStatus::ApprovalExpired => "the plan has expired; retry the step for a new one",
        StepStatus::Drifted | StepStatus::NoDrift => "this plan only shows what differs; nothing is applied from it",
        _ => "the plan does not wait for an answer",
    };
    let when = |needed| if waits { may(at, needed) } else { Can::no(why) };
    let mut cans = step_cans(at, loaded, step);
    cans.insert("approve".into(), when(Role::Approver));
    cans.insert("deny".into(), when(Role::Approver));
    for response in ["deny-skip-current", "deny-skip-current-and-dependents"] {
        cans.insert(response.into(), when(Role::Operator));
    }
    cans
}

/// The parts of a plan's document that pages show.
#[derive(Default)]
struct Contents {
    stateful: u64,
    resources: Vec<PlanResource>,
    outputs: Vec<PlanOutput>,
    drift: Vec<PlanResource>,
    verdicts: Vec<PolicyVerdict>,
    notes: Vec<String>,
    omitted: u64,
    terraform_version: String,
}

impl Contents {
    fn read(display: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let verdicts = display["policies"]["verdicts"].as_array().into_iter().flatten();
        let verdicts = verdicts.map(|said| PolicyVerdict {
            policy: text(&said["policy"]),
            severity: text(&said["severity"]),
            message: text(&said["message"]),
            address: text(&said["object"]),
        });
        let mut verdicts: Vec<PolicyVerdict> = verdicts.collect();
        verdicts.sort_by_key(|said| said.severity != "deny");
        let known = display["format"].as_u64() == Some(u64::from(terraform::FORMAT));
        let plan = known.then(|| terraform::Plan::deserialize(display).ok()).flatten();
        let mut contents = match plan {
            Some(plan) => Self::of_plan(plan),
            None => Self::of_simulated(display),
        };
        contents.resources.sort_by(|a, b| (weight(&a.action), &a.address).cmp(&(weight(&b.action), &b.address)));
        Self { verdicts, ..contents }
    }

    /// Whether a value or an attribute is not shown whole.
    fn is_cut(&self) -> bool {
        let cut = |it: &PlanAttribute| it.before.cut_chars > 0 || it.after.cut_chars > 0;
        self.resources.iter().any(|it| it.attributes_omitted > 0 || it.attributes.iter().any(cut))
    }

    fn of_plan(plan: terraform::Plan) -> Self {
        let mut notes = Vec::new();
        if plan.errored == Some(true) {
            notes.push("The plan ended with an error: it does not show everything.".to_owned());
        }
        if plan.changes.is_noop() && !plan.is_noop() && plan.errored != Some(true) {
            notes.push("Only the state is brought up to date.".to_owned());
        }
        if plan.complete == Some(false) && plan.errored != Some(true) {
            notes.push("This does not do everything: another plan is needed afterwards.".to_owned());
        }
        Self {
            stateful: plan.stateful,
            omitted: plan.omitted.resources,
            terraform_version: plan.terraform_version.unwrap_or_default(),
            resources: plan.resources.into_iter().map(resource).collect(),
            drift: plan.drift.into_iter().map(resource).collect(),
            outputs: plan
                .outputs
                .into_iter()
                .map(|output| PlanOutput {
                    name: output.name,
                    action: match output.action {
                        OutputAction::Create => "create",
                        OutputAction::Update => "update",
                        OutputAction::Destroy => "destroy",
                    }
                    .to_owned(),
                    values: output.values.into_iter().map(attribute).collect(),
                    values_omitted: output.values_omitted,
                })
                .collect(),
            notes,
            verdicts: Vec::new(),
        }
    }

    /// Of a simulated part, or of a plan without anything in it.
    fn of_simulated(display: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resources = display["resources"].as_array().into_iter().flatten().map(|it| {
            let attributes = it["attributes"].as_array().into_iter().flatten();
            let attributes = attributes.filter_map(|one| AttributeChange::deserialize(one).ok()).map(attribute);
            PlanResource {
                name: text(&it["address"]),
                attributes: attributes.collect(),
                holds_data: it["stateful"] == true,
                r#type: "simulated".into(),
                ..empty(text(&it["address"]), text(&it["action"]))
            }
        });
        Self {
            resources: resources.collect(),
            stateful: display["stateful"].as_u64().unwrap_or_default(),
            ..Self::default()
        }
    }
}

fn weight(action: &str) -> u8 {
    match action {
        "destroy" => 0,
        "replace" => 1,
        "update" => 2,
        "create" => 3,
        _ => 4,
    }
}

fn empty(address: String, action: String) -> PlanResource {
    PlanResource {
        address,
        action,
        module: String::new(),
        r#type: String::new(),
        name: String::new(),
        provider: String::new(),
        reason: String::new(),
        previous_address: String::new(),
        import_id: String::new(),
        deposed: String::new(),
        replace: String::new(),
        holds_data: false,
        attributes: Vec::new(),
        attributes_omitted: 0,
    }
}

/// `module.a.module.b` of an address, and what is left.
fn split(address: &str) -> (String, String) {
    let mut rest = address;
    let mut end = 0;
    while let Some(after) = rest.strip_prefix("module.") {
        // A key in brackets may hold dots.
        let mut depth = 0_u32;
        let at = after.find(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == '.' && depth == 0
        });
        let Some(at) = at else { break };
        end += "module.".len() + at + 1;
        rest = &address[end..];
    }
    (address[..end].trim_end_matches('.').to_owned(), rest.to_owned())
}

fn resource(change: ResourceChange) -> PlanResource {
    let (module, name) = split(&change.address);
    let (action, replace) = match change.action {
        Action::Create => ("create", ""),
        Action::Update => ("update", ""),
        Action::ReplaceDestroyFirst => ("replace", "destroy-first"),
        Action::ReplaceCreateFirst => ("replace", "create-first"),
        Action::ReplaceForget => ("replace", "forget"),
        Action::Destroy => ("destroy", ""),
        Action::Read => ("read", ""),
        Action::Forget => ("forget", ""),
        Action::Noop if change.import_id.is_some() => ("import", ""),
        Action::Noop => ("move", ""),
    };
    PlanResource {
        module,
        name,
        r#type: change.kind,
        provider: change.provider,
        reason: change.reason.unwrap_or_default(),
        previous_address: change.previous_address.unwrap_or_default(),
        import_id: change.import_id.unwrap_or_default(),
        deposed: change.deposed.unwrap_or_default(),
        replace: replace.to_owned(),
        holds_data: change.stateful,
        attributes: change.attributes.into_iter().map(attribute).collect(),
        attributes_omitted: change.attributes_omitted,
        ..empty(change.address, action.to_owned())
    }
}

fn attribute(change: AttributeChange) -> PlanAttribute {
    let hunks = match (&change.before, &change.after) {
        (Shown::Value { text: before, .. }, Shown::Value { text: after, .. }) => hunks(before, after),
        _ => Vec::new(),
    };
    PlanAttribute {
        path: change.path,
        before: shown(change.before),
        after: shown(change.after),
        forces_replacement: change.replaces,
        hunks,
    }
}

fn shown(value: Shown) -> PlanValue {
    let of = |is: &str| PlanValue { is: is.to_owned(), text: String::new(), cut_chars: 0 };
    match value {
        Shown::Absent => of("absent"),
        Shown::Sensitive => of("sensitive"),
        Shown::Unknown => of("unknown"),
        Shown::Value { text, cut_chars } => PlanValue { text, cut_chars, ..of("value") },
    }
}

/// Lines around a change that are shown.
const AROUND: usize = 2;

/// What changed in a text of several lines: the lines between the first and the last that differ, and a few around them.
fn hunks(before: &str, after: &str) -> Vec<PlanHunk> {
    let text = |json: &str| serde_json::from_str::<String>(json).ok();
    let (Some(before), Some(after)) = (text(before), text(after)) else { return Vec::new() };
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    if old.len() < 2 && new.len() < 2 {
        return Vec::new();
    }
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - same;
    let same_end = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(AROUND);
    let mut lines: Vec<String> = old[from..same].iter().map(|line| format!(" {line}")).collect();
    lines.extend(old[same..old.len() - same_end].iter().map(|line| format!("-{line}")));
    lines.extend(new[same..new.len() - same_end].iter().map(|line| format!("+{line}")));
    lines.extend(new[new.len() - same_end..].iter().take(AROUND).map(|line| format!(" {line}")));
    vec![PlanHunk { before_line: from as u64 + 1, after_line: from as u64 + 1, lines }]
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Against {
    against: String,
}

/// How the plan of a step differs from an earlier plan of the same part, by that one's digest.
#[utoipa::path(get, path = "/v1/workflow-steps/{step_id}/plan/diff", tag = "pages", security(("token" = ["read-only"])), params(("step_id" = String, Path), ("against" = String, Query, description = "digest of an earlier plan of the same part")), responses((status = 200, body = PlanDiff), (status = 400, body = api::ErrorBody), (status = 404, body = api::ErrorBody)))]
async fn diff(
    State(state): State<AppState>,
    Reader(at): Reader,
    Path(step): Path<String>,
    Params(query): Params<Against>,
) -> ApiResult<Json<PlanDiff>> {
    let found = Found::of(&state, &at, &step).await?;
    if query.against.is_empty() {
        return Err(ApiError::invalid("`against` is missing: name the digest of an earlier plan"));
    }
    let digest_of = |step: &Step| step.plan.as_ref().map(|plan| plan.digest.clone()).unwrap_or_default();
    let other =
        found.loaded.workflow.steps.iter().find(|other| {
            other.slot == found.step.slot && digest_of(other) == query.against && !query.against.is_empty()
        });
    let other = other.ok_or(StoreError::NotFound("plan"))?;
    let read = async |id: &StepId| -> ApiResult<Contents> {
        let display = state.store().step_display(&at.org, id).await?.ok_or(StoreError::NotFound("plan"))?;
        Ok(Contents::read(&display))
    };
    let (new, old) = (read(&found.step.id).await?, read(&other.id).await?);
    // What is not listed may differ.
    let whole = new.omitted == 0 && old.omitted == 0 && !new.is_cut() && !old.is_cut();
    let beside = new.outputs == old.outputs && new.stateful == old.stateful && new.verdicts == old.verdicts;
    let key = |resource: &PlanResource| (resource.address.clone(), resource.deposed.clone());
    let mut before: BTreeMap<(String, String), PlanResource> =
        old.resources.into_iter().map(|resource| (key(&resource), resource)).collect();
    let (mut added, mut changed, mut unchanged) = (Vec::new(), Vec::new(), 0);
    for resource in new.resources {
        match before.remove(&key(&resource)) {
            None => added.push(resource),
            Some(was) if was == resource => unchanged += 1,
            Some(_) => changed.push(resource),
        }
    }
    let removed: Vec<PlanResource> = before.into_values().collect();
    Ok(Json(PlanDiff {
        digest: digest_of(&found.step),
        against: id_text(&query.against),
        same: whole && beside && added.is_empty() && changed.is_empty() && removed.is_empty(),
        added,
        removed,
        changed,
        unchanged,
    }))
}

fn id_text(text: &str) -> String {
    text.chars().take(4 * id::ID_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_split_at_its_modules() {
        for (address, module, name) in [
            ("aws_s3_bucket.b", "", "aws_s3_bucket.b"),
            ("module.a.aws_s3_bucket.b[0]", "module.a", "aws_s3_bucket.b[0]"),
            (r#"module.a["x.y"].module.b.null_resource.c"#, r#"module.a["x.y"].module.b"#, "null_resource.c"),
            ("module.", "", "module."),
        ] {
            assert_eq!(split(address), (module.to_owned(), name.to_owned()), "{address}");
        }
    }

    #[test]
    fn texts_of_several_lines_show_the_lines_that_differ() {
        let json = |text: &str| serde_json::to_string(text).expect("json");
        let made = hunks(&json("a\nb\nc\nd\ne\nf"), &json("a\nb\nc\nX\ne\nf"));
        assert_eq!(made[0].lines, [" b", " c", "-d", "+X", " e", " f"]);
        assert_eq!(made[0].before_line, 2);
        assert!(hunks(&json("one"), &json("two")).is_empty(), "one line is no text of several");
        assert!(hunks("1", "2").is_empty());
        // What repeats at both ends is not counted twice.
        let made = hunks(&json("a\na"), &json("a\na\na"));
        assert_eq!(made[0].lines, [" a", " a", "+a"]);
    }
}
