//! Templates: that they can be read, and that what they read is there.

use std::collections::BTreeMap;

use serde_json::Value;
use template::{Reference, Segment, TemplateError};

use super::Checker;
use super::variables::{NUON, Node, Step, Sure, step};
use crate::diagnostic::{Said, did_you_mean, error, warning};
use crate::table::Rendered;
use crate::walk::{Seen, walk};
use crate::{Code, Place, Problem, Severity};

/// A text of the config that is rendered.
pub(crate) struct Template {
    /// Where it is.
    pub(crate) path: String,
    /// What it may read.
    pub(crate) references: Result<Vec<Reference>, TemplateError>,
    /// For people: what is missing stops nothing.
    pub(crate) page: bool,
    /// Where `{{nuon.` stands, which is no template.
    dotless: Option<Place>,
}

/// Whether a text is rendered: it speaks of `.nuon`, or of what a runbook asks for, between braces. Other braces are those of other
/// tools, and stay as they are.
pub fn is_template(text: &str) -> bool {
    acts_on(text, ".nuon") || acts_on(text, ".runbook_inputs")
}

fn acts_on(text: &str, what: &str) -> bool {
    text.split("{{").skip(1).any(|rest| rest.split("}}").next().is_some_and(|action| action.contains(what)))
}

/// The templates of a config.
pub(crate) fn templates(config: &Value) -> Vec<Template> {
    let mut found = Vec::new();
    walk(config, &mut |path, seen| {
        let Seen::Leaf(field, _, Value::String(text)) = seen else { return };
        if field.rendered == Rendered::No {
            return;
        }
        let is_template = is_template(text) || acts_on(text, ".runbook_") && path.pointer().starts_with("/runbooks/");
        let dotless =
            if is_template { None } else { ["{{nuon.", "{{ nuon."].iter().find_map(|wrong| text.find(wrong)) };
        if is_template || dotless.is_some() {
            let references = if is_template {
                template::Template::parse(text).map(|template| template.references())
            } else {
                Ok(Vec::new())
            };
            let dotless = dotless.map(|at| crate::diagnostic::place(text, at));
            found.push(Template { path: path.pointer(), references, page: field.rendered == Rendered::Page, dotless });
        }
    });
    found
}

/// Names that may be missing and are compared with all others.
const MAX_COMPARED: usize = 5000;

pub(super) fn check(checker: &mut Checker, templates: &[Template]) {
    let mut compared = 0;
    for template in templates {
        if checker.is_full() {
            break;
        }
        if let Some(place) = template.dotless {
            let said = warning(Code::TemplateDot, "`{{nuon.` is not a template; Ferry leaves it as it is")
                .hint("write `{{.nuon.`, with a dot");
            checker.problems.push(Problem { place: Some(place), ..said.at(&template.path) });
        }
        match &template.references {
            Err(wrong) => {
                let said = error(Code::TemplateSyntax, format!("the template can't be read: {}", wrong.message))
                    .maybe_hint(wrong.hint.clone());
                push(checker, template, said, Place { line: wrong.line, column: wrong.column });
            }
            Ok(references) => {
                // A value that is looked up and then printed is read twice; it is wrong once.
                let mut found = BTreeMap::new();
                for reference in references {
                    if let Some(said) = look_up(checker, template, reference, &mut compared) {
                        let place = Place { line: reference.line, column: reference.column };
                        found.insert((reference.line, said.message.clone()), (said, place));
                    }
                }
                for (said, place) in found.into_values() {
                    push(checker, template, said, place);
                }
            }
        }
    }
}

fn push(checker: &mut Checker, template: &Template, mut said: Said, place: Place) {
    if template.page {
        said.severity = Severity::Warning;
    }
    checker.problems.push(Problem { place: Some(place), ..said.at(&template.path) });
}

fn look_up(checker: &Checker, template: &Template, reference: &Reference, compared: &mut usize) -> Option<Said> {
    let keys: Vec<&str> = reference
        .path
        .iter()
        .map_while(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Any => None,
        })
        .collect();
    let (root, rest) = keys.split_first()?;
    match *root {
        "nuon" => {}
        "runbook_inputs" | "runbook_outputs" if template.path.starts_with("/runbooks/") => {
            return runbook_input(checker, template, root, rest);
        }
        _ => {
            let said = error(Code::TemplatePath, format!("templates know `.nuon`, not `.{root}`"));
            return (!reference.optional).then(|| {
                said.maybe_hint(
                    did_you_mean(root, ["nuon"].into_iter()).map(|_| format!("write `.nuon.{}`", rest.join("."))),
                )
            });
        }
    }
    if let Some(said) = too_early(&template.path, rest) {
        return Some(said);
    }
    let mut node = NUON;
    for (depth, key) in rest.iter().enumerate() {
        match step(checker, node, key) {
            Step::To(Node::Never) => {
                let said = warning(Code::TemplatePath, "`.nuon.install.secrets` does not exist");
                return Some(said.hint("what is known of a secret is `.nuon.secrets.NAME`; its value never is"));
            }
            Step::To(next) => node = next,
            Step::Unknown { .. } if reference.optional && (template.page || *compared > MAX_COMPARED) => return None,
            Step::Unknown { code, what, known, sure } => {
                *compared += usize::from(reference.optional);
                let near = wrong_level(checker, &rest[..=depth])
                    .or_else(|| did_you_mean(key, known.iter().map(String::as_str)));
                if reference.optional && near.is_none() {
                    return None;
                }
                let place = [&["nuon"], &rest[..depth]].concat().join(".");
                let message = format!("there is no {what} `{key}` (in `.{place}`)");
                let certain = !reference.optional && (sure == Sure::Yes || sure == Sure::IfNear && near.is_some());
                let said = if certain { error(code, message) } else { warning(code, message) };
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Some(said.maybe_hint(near.or_else(|| super::listed(&known))));
            }
        }
    }
    None
}

/// Paths that lack a level.
fn wrong_level(checker: &Checker, keys: &[&str]) -> Option<String> {
    match keys {
        ["inputs", name] if checker.names.inputs.contains(name) => Some(format!("write `.nuon.inputs.inputs.{name}`")),
        ["actions", name] if checker.names.actions.contains_key(name) => {
            Some(format!("write `.nuon.actions.workflows.{name}`"))
        }
        ["components", name, "image"] => Some(format!("write `.nuon.components.{name}.outputs.image`")),
        _ => None,
    }
}

/// The stack is made before the sandbox, the sandbox before components and actions.
fn too_early(path: &str, keys: &[&str]) -> Option<Said> {
    let part = path.split('/').nth(1)?;
    let later = match keys {
        ["components", ..] | ["actions", ..] => 2,
        ["sandbox", ..] | ["install", "sandbox", ..] | ["install_stack", "outputs", ..] => 1,
        _ => 0,
    };
    let (from, what, sure) = match part {
        "stack" => (1, "the stack is made", true),
        "sandbox" => (2, "the sandbox is made", true),
        "roles" | "break_glass" | "named_policies" => (1, "the stack makes the roles", false),
        _ => return None,
    };
    if later < from {
        return None;
    }
    let message = format!("`.nuon.{}` is not there yet when {what}", keys.join("."));
    Some(if sure { error(Code::TemplateScope, message) } else { warning(Code::TemplateScope, message) })
}

fn runbook_input(checker: &Checker, template: &Template, root: &str, rest: &[&str]) -> Option<Said> {
    let index: usize = template.path.split('/').nth(2)?.parse().ok()?;
    let runbook = checker.config.runbooks.get(index)?;
    let name = rest.first().filter(|_| root == "runbook_inputs")?;
    let known = || runbook.input.iter().map(|input| input.name.as_str());
    if known().any(|known| known == *name) {
        return None;
    }
    let names: Vec<&str> = known().collect();
    Some(
        error(Code::UnknownInput, format!("the runbook has no input `{name}`"))
            .maybe_hint(did_you_mean(name, known()).or_else(|| super::listed(&names))),
    )
}
