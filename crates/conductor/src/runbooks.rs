//! Runbooks: what is asked when one is started, and their scripts.

use std::collections::BTreeMap;

use config::{Action, ActionStep, Runbook, RunbookStep};
use model::spec::SECRET_BYTES_MIN;

/// Every input that a runbook asks for: as given, or its default. What is wrong is told all at once.
pub fn runbook_inputs(
    runbook: &Runbook,
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Vec<String>> {
    let mut wrong = Vec::new();
    for name in given.keys().filter(|name| !runbook.input.iter().any(|input| input.name == **name)) {
        wrong.push(format!("runbook `{}` asks for no input `{name}`", runbook.name));
    }
    let mut values = BTreeMap::new();
    for input in &runbook.input {
        let value = given.get(&input.name).filter(|value| !value.is_empty()).or(input.default.as_ref());
        let value = value.cloned().unwrap_or_default();
        if value.is_empty() && input.required {
            wrong.push(format!("input `{}` is required: {}", input.name, input.description));
        }
        if input.sensitive && !value.is_empty() && value.len() < SECRET_BYTES_MIN {
            let least =
                format!("input `{}` is sensitive: a value of fewer than {SECRET_BYTES_MIN} characters", input.name);
            wrong.push(format!("{least} can't be masked in the log"));
        }
        let typed = config::Input { r#type: input.r#type.clone(), ..config::Input::default() };
        if let Err(why) = typed.accepts(&value) {
            wrong.push(format!("input `{}`: the value {why}", input.name));
        }
        values.insert(input.name.clone(), value);
    }
    if wrong.is_empty() { Ok(values) } else { Err(wrong) }
}

/// A script of a runbook, as an action of one step.
pub(crate) fn script(step: &RunbookStep) -> Action {
    let only = ActionStep {
        name: step.name.clone(),
        env_vars: step.env_vars.clone(),
        inline_contents: step.inline_contents.clone(),
        command: step.command.clone(),
        ..ActionStep::default()
    };
    Action { name: step.name.clone(), timeout: step.timeout.clone(), steps: vec![only], ..Action::default() }
}
