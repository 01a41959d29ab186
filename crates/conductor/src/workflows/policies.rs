//! Policies over the plans of simulated orgs. Those of real ones are judged where the plan is made, on the customer's side.

use crate::error::Result;
use config::{AppConfig, Component, ComponentKind};
use engine::{Judged, Step, Work};
use policy::{Limits, Policy, PolicyKind, Report, Severity, Subject};
use serde_json::{Value, json};

use crate::apps::InstallTree;

/// What is judged here is small; a policy that takes long must not keep a server.
const TIME_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// The policies that are about a step.
pub(super) fn asked<'c>(config: &'c AppConfig, step: &Step) -> Vec<(&'c config::Policy, PolicyKind)> {
    let component = component(config, step);
    let of = |policy: &&'c config::Policy| {
        let kind = PolicyKind::parse(&policy.r#type)?;
        let about = match (kind, component) {
            _ if !policy::is_rego(&policy.r#type, policy.engine.as_deref()) => false,
            (PolicyKind::Sandbox, None) => matches!(step.work, Work::SandboxPlan { .. }),
            (_, Some(component)) => policy.is_about(component),
            (_, None) => false,
        };
        about.then_some(kind)
    };
    config.policies.iter().filter_map(|policy| Some((policy, of(&policy)?))).collect()
}

/// The component that is planned or synced.
fn component<'c>(config: &'c AppConfig, step: &Step) -> Option<&'c Component> {
    let (Work::ComponentPlan { component, .. } | Work::SyncImage { component }) = &step.work else { return None };
    config.components.iter().find(|known| known.common.name == *component)
}

/// Has the policies judge what a step would do. What can't be rendered is denied.
pub(super) async fn judge(
    asked: Vec<(&config::Policy, PolicyKind)>,
    config: &AppConfig,
    step: &Step,
    resources: &[Value],
    tree: &InstallTree,
) -> Result<Report> {
    // Rego is taken as it stands: an input that is put into a rule could change the rule.
    let policies = asked.into_iter().map(|(policy, kind)| Policy {
        name: policy.name.clone(),
        kind,
        contents: policy.contents.clone(),
    });
    let policies: Vec<Policy> = policies.collect();
    let subject = match component(config, step).map(|component| &component.kind) {
        Some(ComponentKind::KubernetesManifest(kind)) if kind.manifest.is_some() => {
            match manifest(kind.manifest.as_deref().unwrap_or_default(), tree) {
                Ok(objects) => Subject::Objects(objects),
                Err(reason) => return Ok(denied(&policies[0].name, &reason)),
            }
        }
        Some(ComponentKind::KubernetesManifest(_) | ComponentKind::HelmChart(_)) => {
            Subject::Objects(resources.iter().map(object).collect())
        }
        Some(kind @ (ComponentKind::ContainerImage(_) | ComponentKind::DockerBuild(_))) => image(kind, step),
        _ => Subject::Plan(terraform(resources)),
    };
    let limits = Limits { time_max: TIME_MAX, ..Limits::default() };
    let judged = tokio::task::spawn_blocking(move || policy::evaluate(&policies, &subject, limits)).await;
    let report = judged.unwrap_or_else(|error| denied("policies", &error.to_string()));
    Ok(report.masked(|text| tree.masked(text)))
}

fn denied(policy: &str, reason: &str) -> Report {
    let message = format!("denied, because the policy `{policy}` could not be evaluated: {reason}");
    let verdict = policy::Verdict { policy: policy.to_owned(), severity: Severity::Deny, message, object: None };
    Report { verdicts: vec![verdict], evaluated: 0 }
}

fn rendered(text: &str, tree: &InstallTree) -> std::result::Result<String, String> {
    let rendering = crate::render(&json!(text), &tree.root);
    match rendering.problems.first() {
        Some(problem) => Err(tree.masked(&problem.message)),
        None => Ok(rendering.value.as_str().unwrap_or_default().to_owned()),
    }
}

fn manifest(text: &str, tree: &InstallTree) -> std::result::Result<Vec<Value>, String> {
    let text = rendered(text, tree)?;
    serde_saphyr::from_multiple(&text).map_err(|error| format!("the manifest can't be read: {error}"))
}

/// A plan as Terraform shows it.
fn terraform(resources: &[Value]) -> Value {
    let change = |resource: &Value| {
        let address = resource["address"].as_str().unwrap_or_default();
        let actions = match resource["action"].as_str().unwrap_or_default() {
            "destroy" => json!(["delete"]),
            "replace" => json!(["delete", "create"]),
            other => json!([other]),
        };
        let (kind, name) = address.split_once('.').unwrap_or(("simulated", address));
        json!({ "address": address, "mode": "managed", "type": kind, "name": name, "change": { "actions": actions } })
    };
    json!({ "format_version": "1.2", "resource_changes": resources.iter().map(change).collect::<Vec<_>>() })
}

fn object(resource: &Value) -> Value {
    json!({ "apiVersion": "simulated/v1", "kind": "Simulated", "metadata": { "name": resource["address"] } })
}

fn image(kind: &ComponentKind, step: &Step) -> Subject {
    let source = match kind {
        ComponentKind::ContainerImage(image) => serde_json::to_value(image).unwrap_or_default(),
        _ => Value::Null,
    };
    let sources = source.as_object().into_iter().flat_map(|fields| fields.values());
    let text = |key: &str| sources.clone().find_map(|source| source[key].as_str()).map(str::to_owned);
    Subject::Image {
        image: text("image_url").or_else(|| step.work.component().map(str::to_owned)).unwrap_or_default(),
        tag: text("tag").unwrap_or_default(),
        metadata: json!({ "simulated": true }),
    }
}

/// A report in numbers.
pub(super) fn judged(asked: usize, report: &Report) -> Judged {
    let count = |severity| report.count(severity) as u64;
    Judged {
        asked: asked as u64,
        evaluated: report.evaluated as u64,
        denied: count(Severity::Deny),
        warned: count(Severity::Warn),
    }
}

/// Why a report does not let something pass, in one line.
pub(super) fn reason(report: &Report) -> Option<String> {
    let first = report.verdicts.iter().find(|verdict| verdict.severity == Severity::Deny)?;
    let more = report.count(Severity::Deny) - 1;
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("policy `{}` denies it: {}{more}", first.policy, first.message))
}

/// The same, of verdicts as JSON.
pub(super) fn denied_by(verdicts: &[Value]) -> Option<String> {
    let verdicts = verdicts.iter().filter_map(|said| serde_json::from_value(said.clone()).ok()).collect();
    reason(&Report { verdicts, evaluated: 0 })
}
