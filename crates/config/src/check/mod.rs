//! The rules of the format, on a config and not on files: the server runs the very same ones on what arrives by its API.

mod access;
mod parts;
mod shape;
mod templates;
mod values;
mod variables;
mod work;

use serde_json::Value;

use crate::diagnostic::{Said, did_you_mean, error};
use crate::{AppConfig, Code, Problem, graph, local};

pub(crate) use templates::{Template, templates};

/// Checks a config.
pub fn check(config: &AppConfig) -> Vec<Problem> {
    let value = serde_json::to_value(config).unwrap_or_default();
    check_value(config, &value)
}

/// Checks a config together with its untyped form, which may hold what the types can't.
pub(crate) fn check_value(config: &AppConfig, value: &Value) -> Vec<Problem> {
    let templates = templates(value);
    let mut checker = Checker { config, problems: shape::check(value) };
    parts::check(&mut checker);
    access::check(&mut checker);
    work::check(&mut checker);
    templates::check(&mut checker, &templates);
    checker.problems.extend(graph::cycle(config, &templates));
    checker.problems.extend(local::outside(config));
    checker.problems
}

pub(crate) struct Checker<'a> {
    config: &'a AppConfig,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn say(&mut self, said: Said, path: impl Into<String>) {
        self.problems.push(said.at(path));
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
        if name.is_empty() || names.contains(&name) {
            return;
        }
        let hint = did_you_mean(name, names.iter().copied()).or_else(|| listed(&names));
        self.say(error(code, format!("there is no {what} `{name}`")).maybe_hint(hint), path);
    }

    fn component(&mut self, name: &str, path: impl Into<String>) {
        let names: Vec<&str> = self.config.components.iter().map(|component| component.common.name.as_str()).collect();
        self.known(Code::UnknownComponent, "component", name, names.into_iter(), path);
    }

    fn action(&mut self, name: &str, path: impl Into<String>) {
        let names: Vec<&str> = self.config.actions.iter().map(|action| action.name.as_str()).collect();
        self.known(Code::UnknownAction, "action", name, names.into_iter(), path);
    }

    /// Each of these is there once; the paths are those of the lists' elements.
    fn once<'n>(&mut self, code: Code, what: &str, named: impl Iterator<Item = (&'n str, String)>) {
        let mut seen: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
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
