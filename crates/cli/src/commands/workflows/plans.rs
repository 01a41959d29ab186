//! A plan in words: one line for the whole, and a line for each resource.

use api::control::{PlanChanges, WorkflowStep};
use serde_json::Value;

use crate::output::{clean, one_line};

/// Lines of a plan that are shown.
const PLAN_LINES_MAX: usize = 20_000;

/// `2 to create, 1 to destroy` of a step's plan, or nothing.
pub(crate) fn plan_summary(step: &WorkflowStep) -> String {
    summary(step.changes.as_ref())
}

/// The lines of a plan, each with the sign of what it is about; what has another form than we know is shown as it is.
pub(crate) fn plan_lines(contents: &Value) -> Vec<(char, String)> {
    // What policies say comes first: nobody should approve past it.
    let verdict = |said: &Value| {
        let text = |key: &str| said[key].as_str().unwrap_or_default();
        let sign = if text("severity") == "deny" { '!' } else { '~' };
        (sign, one_line(&format!("{sign} policy {}: {}: {}", text("policy"), text("severity"), text("message"))))
    };
    let verdicts = contents["policies"]["verdicts"].as_array().into_iter().flatten().map(verdict);
    let format = u64::from(terraform::FORMAT);
    if contents["format"].as_u64() == Some(format)
        && let Ok(plan) = serde_json::from_value::<terraform::Plan>(contents.clone())
    {
        let drawn = terraform::draw(&plan).into_iter().map(|line| (sign_of(line.tone), clean(&line.text)));
        return verdicts.chain(drawn).collect();
    }
    let Some(resources) = contents["resources"].as_array() else {
        let text = serde_json::to_string_pretty(contents).unwrap_or_default();
        return text.lines().take(PLAN_LINES_MAX).map(|line| (' ', clean(line))).collect();
    };
    let line = |resource: &Value| {
        let action = resource["action"].as_str().unwrap_or_default();
        let sign = match action {
            "create" => '+',
            "destroy" => '-',
            _ => '~',
        };
        (sign, one_line(&format!("{sign} {} ({action})", resource["address"].as_str().unwrap_or_default())))
    };
    let lines: Vec<(char, String)> = verdicts.chain(resources.iter().map(line)).take(PLAN_LINES_MAX).collect();
    if lines.is_empty() { vec![(' ', "nothing changes".to_owned())] } else { lines }
}

fn sign_of(tone: terraform::Tone) -> char {
    match tone {
        terraform::Tone::Create => '+',
        terraform::Tone::Destroy => '-',
        terraform::Tone::Update | terraform::Tone::Replace => '~',
        terraform::Tone::Warn => '!',
        terraform::Tone::Note | terraform::Tone::Plain => ' ',
    }
}

pub(crate) fn plan_title(step: &WorkflowStep) -> String {
    format!("{}: {}", step.name, plan_summary(step))
}

pub(crate) fn summary(changes: Option<&PlanChanges>) -> String {
    let Some(changes) = changes else { return String::new() };
    let parts = [
        (changes.create, "to create"),
        (changes.update, "to change"),
        (changes.replace, "to replace"),
        (changes.destroy, "to destroy"),
        (changes.import, "to import"),
        (changes.moved, "to move"),
        (changes.forget, "to forget"),
        (changes.outputs, if changes.outputs == 1 { "output" } else { "outputs" }),
        (changes.other, "other"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if parts.is_empty() && changes.recorded > 0 {
        return "updates only what Ferry has recorded".into();
    }
    if parts.is_empty() { "no changes".into() } else { parts.join(", ") }
}
