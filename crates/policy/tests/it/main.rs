//! Policies against subjects: what they see, what they may say, and that everything else denies.

mod checks;
mod closed;
mod corpus;
mod hostile;
mod large;
mod verdicts;

use policy::{Limits, Policy, PolicyKind, Report, Subject, evaluate};

pub(crate) fn policy(kind: PolicyKind, contents: &str) -> Policy {
    Policy { name: "p".into(), kind, contents: contents.into() }
}

pub(crate) fn kind_for(subject: &Subject) -> PolicyKind {
    match subject {
        Subject::Plan(_) => PolicyKind::TerraformModule,
        Subject::Objects(_) => PolicyKind::KubernetesManifest,
        Subject::Image { .. } => PolicyKind::ContainerImage,
    }
}

/// One policy over a subject.
pub(crate) fn judge(contents: &str, subject: &Subject) -> Report {
    evaluate(&[policy(kind_for(subject), contents)], subject, Limits::default())
}

/// `deny object: message`, line by line.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    let line =
        |v: &policy::Verdict| format!("{} {}: {}", v.severity.as_str(), v.object.as_deref().unwrap_or("-"), v.message);
    report.verdicts.iter().map(line).collect()
}
