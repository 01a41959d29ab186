//! What the plans of manifests and charts share: what was deployed before, and the plan that people see.

use kubernetes::{Change, Entry, Inventory, Verb, plan_document};
use mask::Masks;
use model::build::PolicySpec;
use policy::Subject;
use serde_json::Value;

use super::super::action::StepFailure;
use super::super::deploy::{Planned, judge};
use super::super::{Run, tool};
use super::api::Api;
use super::compare::{self, Act, By, Compared, PlannedObject};
use crate::seal::vault::SECRETS_MAX;

/// Things that are named in a sentence.
const NAMED_MAX: usize = 5;

/// The objects of before that may be spoken of: none where they are in a cluster that is not this one.
pub(crate) fn known<'i>(api: &Api, before: Option<&'i Inventory>, ask: &mut Vec<String>) -> &'i [Entry] {
    let Some(before) = before else { return &[] };
    if before.cluster.uid == api.cluster.uid {
        return &before.objects;
    }
    if !before.objects.is_empty() {
        ask.push(format!(
            "{} is another cluster than the one that was deployed to ({}, kube-system {}): nothing is known of {} there",
            api.cluster.server,
            before.cluster.server,
            before.cluster.uid,
            count(before.objects.len(), "object")
        ));
    }
    &[]
}

/// What a teardown would delete: what was deployed, the other way round. Objects of another cluster are forgotten.
pub(crate) async fn teardown(
    api: &Api,
    before: Option<&Inventory>,
    there: &[Entry],
    by: By,
) -> Result<Compared, StepFailure> {
    let mut entries: Vec<&Entry> = there.iter().collect();
    entries.sort_by_cached_key(|entry| std::cmp::Reverse(kubernetes::rank(&entry.of)));
    let (objects, changes) = compare::deletions(api, entries, by, "").await?;
    let mut compared = Compared { objects, changes, ..Compared::default() };
    for entry in before.iter().flat_map(|before| &before.objects).filter(|_| there.is_empty()) {
        compared.objects.push(PlannedObject {
            of: entry.of.clone(),
            act: Act::Forget,
            object: Value::Null,
            found: String::new(),
            uid: String::new(),
            ignored: Vec::new(),
        });
        compared.changes.push(Change {
            of: entry.of.clone(),
            verb: Verb::Forget,
            before: Value::Null,
            after: Value::Null,
            reason: Some("because the cluster that it was deployed to is not this one".into()),
            fixed: Vec::new(),
        });
    }
    Ok(compared)
}

/// Writes the plan down, judges it, and makes of it what people see.
pub(crate) async fn planned(
    run: &Run<'_>,
    stage: usize,
    content: &Value,
    changes: &[Change],
    asked: &[PolicySpec],
    objects: Vec<Value>,
    ask: Vec<String>,
) -> Result<Planned, StepFailure> {
    let file = run.host.dir.work().join("plan.json");
    let content = content.to_string();
    tool::private(&file, &content)?;
    let document = plan_document(changes).to_string();
    let bad = |e: &dyn std::fmt::Display| StepFailure::new("bad_manifest", format!("the plan can't be read: {e}"));
    let mut secrets = terraform::secrets_of_plan(document.as_bytes()).map_err(|e| bad(&e))?.values;
    secrets.extend(opened(&secrets));
    secrets.truncate(SECRETS_MAX);
    let more = Masks::new(&secrets);
    let masks = run.host.secrets.masks();
    let mask = |text: &str| more.mask_text(&masks.mask_text(text));
    let mut model =
        terraform::read_plan(document.as_bytes(), &mask, &terraform::Limits::default()).map_err(|e| bad(&e))?;
    for resource in &mut model.resources {
        let change = changes.iter().find(|change| mask(&change.of.address()) == resource.address);
        if let Some(reason) = change.and_then(|change| change.reason.as_deref()) {
            resource.reason = Some(mask(reason));
        }
    }
    let report = judge(asked, content.len() as u64, || Ok(Subject::Objects(objects))).await;
    for said in &report.verdicts {
        run.say(Some(stage), &mask(&format!("policy {}: {}: {}", said.policy, said.severity.as_str(), said.message)));
    }
    let ask = ask.iter().map(|text| mask(text)).collect();
    Ok(Planned { file, model, report: report.masked(mask), ask })
}

/// Data of secrets is in base64: what it stands for must not be seen either.
fn opened(secrets: &[String]) -> Vec<String> {
    use base64::Engine as _;
    let open = |text: &String| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        String::from_utf8(bytes).ok().filter(|text| text.len() >= model::spec::SECRET_BYTES_MIN)
    };
    secrets.iter().filter_map(open).collect()
}

/// `1 object`, `2 objects`.
pub(crate) fn count(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The first of some names, and how many more there are.
pub(crate) fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    match more {
        0 => names.join(", "),
        more => format!("{}, and {more} more", names.join(", ")),
    }
}
