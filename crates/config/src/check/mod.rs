//! The rules of the format, on a config and not on files: the server runs the very same ones on what arrives by its API.

mod access;
mod parts;
mod shape;
mod templates;
mod values;
mod variables;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::diagnostic::{Said, did_you_mean, error};
use crate::{AppConfig, Code, Problem, graph, local};

pub use templates::is_template;
pub(crate) use templates::{Template, templates};

/// Checks a config.
pub fn check(config: &AppConfig) -> Vec<Problem> {
    let value = serde_json::to_value(config).unwrap_or_default();
    check_value(config, &value)
}

/// Checks a config together with its untyped form, which may hold what the types can't.
pub(crate) fn check_value(config: &AppConfig, value: &Value) -> Vec<Problem> {
    let templates = templates(value);
    let mut checker = Checker { config, names: Names::of(config), problems: shape::check(value) };
    parts::check(&mut checker);
    access::check(&mut checker);
    work::check(&mut checker);
    templates::check(&mut checker, &templates);
    checker.problems.extend(graph::cycle(config, &templates));
    checker.problems.extend(local::outside(config));
    // Behind so many warnings an error could hide.
    if checker.is_full() {
        let said = error(Code::TooManyProblems, "there are more problems than are looked for; mend these first");
        checker.problems.push(said.at(""));
    }
    checker.problems
}

/// More than anyone reads; the work to find more is spared.
const MAX_PROBLEMS: usize = 1001;

pub(crate) struct Checker<'a> {
    config: &'a AppConfig,
    names: Names<'a>,
    problems: Vec<Problem>,
}

/// Names that are looked up often.
struct Names<'a> {
    components: BTreeSet<&'a str>,
    inputs: BTreeSet<&'a str>,
    /// With their index.
    actions: BTreeMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn of(config: &'a AppConfig) -> Names<'a> {
        Names {
            components: config.components.iter().map(|component| component.common.name.as_str()).collect(),
            inputs: config.inputs.iter().map(|input| input.name.as_str()).collect(),
            actions: config.actions.iter().enumerate().map(|(index, action)| (action.name.as_str(), index)).collect(),
        }
    }
}

impl Checker<'_> {
    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    fn say(&mut self, said: Said, path: impl Into<String>) {
        if !self.is_full() {
            self.problems.push(said.at(path));
        }
    }

    fn say_also(&mut self, said: Said, path: impl Into<String>, other: impl Into<String>) {
        self.problems.push(Problem { other: Some(other.into()), ..said.at(path) });
    }

    /// A name that must be one of those that are known.
    fn known<'n>(
        &mut self,
        code: Code,
        what: &str,
        name: &str,
        names: impl Iterator<Item = &'n str>,
        path: impl Into<String>,
    ) {
        let names: Vec<&str> = names.collect();
        if name.is_empty() || names.contains(&name) || self.is_full() {
            return;
        }
        let hint = did_you_mean(name, names.iter().copied()).or_else(|| listed(&names));
        self.say(error(code, format!("there is no {what} `{name}`")).maybe_hint(hint), path);
    }

    fn component(&mut self, name: &str, path: impl Into<String>) {
        if !self.names.components.contains(name) {
            let names: Vec<&str> = self.names.components.iter().copied().collect();
            self.known(Code::UnknownComponent, "component", name, names.into_iter(), path);
        }
    }

    fn action(&mut self, name: &str, path: impl Into<String>) {
        if !self.names.actions.contains_key(name) {
            let names: Vec<&str> = self.names.actions.keys().copied().collect();
            self.known(Code::UnknownAction, "action", name, names.into_iter(), path);
        }
    }

    /// The things of a list have different names.
    fn unique<'n>(&mut self, what: &str, list: &str, names: impl Iterator<Item = &'n str>) {
        self.once(Code::DuplicateName, what, names.enumerate().map(|(i, name)| (name, format!("{list}/{i}/name"))));
    }

    /// Each of these is there once; the paths are those of the lists' elements.
    fn once<'n>(&mut self, code: Code, what: &str, named: impl Iterator<Item = (&'n str, String)>) {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (name, path) in named.filter(|(name, _)| !name.is_empty()) {
            let key = without_blanks(name);
            match seen.get(&key) {
                Some(first) => {
                    let first = first.clone();
                    self.say_also(error(code, format!("{what} `{name}` is there twice")), path, first);
                }
                None => {
                    seen.insert(key, path);
                }
            }
        }
    }
}

/// A few names are listed, many are not.
fn listed(names: &[&str]) -> Option<String> {
    match names {
        [] => None,
        names if names.len() <= 8 => {
            Some(format!("there are: {}", names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")))
        }
        _ => None,
    }
}

/// Names are compared as templates, in which blanks mean nothing.
fn without_blanks(name: &str) -> String {
    name.split_whitespace().collect()
}
