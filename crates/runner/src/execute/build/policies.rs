//! Policies over the image that a build has made or found. They run here, before anything is pushed.

use model::build::{BuildSpec, BuiltFrom, Recipe};
use policy::{Limits, Policy, PolicyKind, Severity, Subject};
use serde_json::json;

use super::super::Run;
use super::super::action::StepFailure;
use super::{BUILD, Built};

/// Has the policies of the spec judge an image. What they warn of is in the log; what they deny is not pushed.
pub(super) async fn judge(run: &Run<'_>, spec: &BuildSpec, from: &BuiltFrom, built: &Built) -> Result<(), StepFailure> {
    let subject = match (&spec.recipe, built) {
        (_, Built::File { .. }) => return Ok(()),
        (Recipe::ContainerImage { image, tag, .. }, Built::Image(_, manifest)) => Subject::Image {
            image: image.clone(),
            tag: from.reference.clone().or_else(|| tag.clone()).unwrap_or_default(),
            metadata: json!({ "digest": manifest.digest, "media_type": manifest.media_type, "signed": false }),
        },
        (_, Built::Layout { root, .. }) => Subject::Image {
            image: spec.component.clone(),
            tag: spec.tag.clone(),
            metadata: json!({ "digest": root, "revision": from.revision, "signed": false }),
        },
        (_, Built::Image(_, manifest)) => Subject::Image {
            image: spec.component.clone(),
            tag: spec.tag.clone(),
            metadata: json!({ "digest": manifest.digest, "signed": false }),
        },
    };
    let mut policies = Vec::new();
    for known in &spec.policies {
        // One of a type that this runner does not know can't be asked, and what can't be asked denies.
        let kind = PolicyKind::parse(&known.kind).ok_or_else(|| {
            let text = format!("policy `{}` has a type that this runner does not know: `{}`", known.name, known.kind);
            StepFailure::new("policy_denied", text)
        })?;
        policies.push(Policy { name: known.name.clone(), kind, contents: known.contents.clone() });
    }
    let judged = tokio::task::spawn_blocking(move || policy::evaluate(&policies, &subject, Limits::default())).await;
    let report = judged.map_err(|e| StepFailure::new("policy_denied", format!("policies can't be evaluated: {e}")))?;
    for said in &report.verdicts {
        run.say(Some(BUILD), &format!("policy {}: {}: {}", said.policy, said.severity.as_str(), said.message));
    }
    match report.verdicts.iter().find(|said| said.severity == Severity::Deny) {
        Some(said) => {
            let text = format!("policy `{}` denies it: {}", said.policy, said.message);
            Err(StepFailure::new("policy_denied", text))
        }
        None => Ok(()),
    }
}
