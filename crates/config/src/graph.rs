//! Which component waits for which, and why; in which order they are deployed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use template::Segment;

use crate::check::{Template, templates};
use crate::diagnostic::error;
use crate::kinds::AppConfig;
use crate::{Code, Place, Problem};

/// The components of an app, in the order of their deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Graph {
    pub components: Vec<GraphNode>,
    pub dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphNode {
    pub name: String,
    pub r#type: String,
    /// Components of a level can be deployed at the same time, after those of the levels before.
    pub level: usize,
}

/// A component that waits for another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dependency {
    pub component: String,
    pub on: String,
    pub reasons: Vec<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Reason {
    /// `explicit`, `context`, or the path that a template reads.
    pub why: String,
    /// Where in the config, as a JSON pointer.
    pub path: String,
    /// Where in the text that lies there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// Circles that are told of; each is looked for anew.
const MAX_CIRCLES: usize = 20;

type Edges = BTreeMap<String, BTreeMap<String, Vec<Reason>>>;

impl Graph {
    /// The graph of a config; where components wait for each other, those names.
    pub fn new(config: &AppConfig) -> Result<Graph, Vec<String>> {
        let value = serde_json::to_value(config).unwrap_or_default();
        let edges = edges(config, &templates(&value));
        let levels = levels(&edges).map_err(|left| circle(&edges, &left))?;
        let mut components: Vec<GraphNode> = config
            .components
            .iter()
            .map(|component| GraphNode {
                name: component.common.name.clone(),
                r#type: component.kind.name().into(),
                level: levels.get(&component.common.name).copied().unwrap_or_default(),
            })
            .collect();
        components.sort_by(|a, b| (a.level, &a.name).cmp(&(b.level, &b.name)));
        let dependencies = edges.into_iter().flat_map(|(component, on)| {
            on.into_iter().map(move |(on, reasons)| Dependency { component: component.clone(), on, reasons })
        });
        Ok(Graph { components, dependencies: dependencies.collect() })
    }

    /// Level by level, each component with what it waits for.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut level = None;
        for node in &self.components {
            if level != Some(node.level) {
                level = Some(node.level);
                let _ = writeln!(out, "{}.", node.level + 1);
            }
            let _ = writeln!(out, "  {} ({})", node.name, node.r#type);
            for dependency in self.dependencies.iter().filter(|dependency| dependency.component == node.name) {
                let why: Vec<&str> = dependency.reasons.iter().map(|reason| reason.why.as_str()).collect();
                let _ = writeln!(out, "    after {}: {}", dependency.on, why.join(", "));
            }
        }
        out
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        let mut out = String::from("digraph app {\n  rankdir = LR;\n  node [shape = box];\n");
        for node in &self.components {
            let _ = writeln!(out, "  {:?} [label = {:?}];", node.name, format!("{}\n{}", node.name, node.r#type));
        }
        for Dependency { component, on, reasons } in &self.dependencies {
            let style = if is_implicit(reasons) { " [style = dashed]" } else { "" };
            let _ = writeln!(out, "  {on:?} -> {component:?}{style};");
        }
        out + "}\n"
    }

    /// For Mermaid. Components are numbered, because their names may be words of Mermaid.
    pub fn mermaid(&self) -> String {
        let mut out = String::from("graph LR\n");
        let id = |name: &str| self.components.iter().position(|node| node.name == name).unwrap_or_default();
        for (at, node) in self.components.iter().enumerate() {
            let _ = writeln!(out, "  c{at}[\"{}<br/>{}\"]", node.name, node.r#type);
        }
        for Dependency { component, on, reasons } in &self.dependencies {
            let arrow = if is_implicit(reasons) { "-.->" } else { "-->" };
            let _ = writeln!(out, "  c{} {arrow} c{}", id(on), id(component));
        }
        out
    }
}

fn is_implicit(reasons: &[Reason]) -> bool {
    reasons.iter().all(|reason| reason.why != "explicit")
}

/// What each component waits for: those of its own that the app has.
fn edges(config: &AppConfig, templates: &[Template]) -> Edges {
    let names: BTreeSet<&str> = config.components.iter().map(|component| component.common.name.as_str()).collect();
    let mut edges: Edges = names.iter().map(|name| (name.to_string(), BTreeMap::new())).collect();
    let mut add = |component: &str, on: &str, reason: Reason| {
        if component != on
            && names.contains(on)
            && let Some(known) = edges.get_mut(component)
        {
            known.entry(on.to_owned()).or_default().push(reason);
        }
    };
    for (i, component) in config.components.iter().enumerate() {
        let common = &component.common;
        for (j, on) in common.dependencies.iter().enumerate() {
            let path = format!("/components/{i}/dependencies/{j}");
            add(&common.name, on, Reason { why: "explicit".into(), path, place: None });
        }
        let context =
            config.kubernetes_contexts.iter().find(|context| Some(&context.name) == common.kubernetes_context.as_ref());
        if let Some(context) = context {
            let path = format!("/components/{i}/kubernetes_context");
            add(&common.name, &context.component, Reason { why: "context".into(), path, place: None });
        }
    }
    for template in templates {
        let index =
            template.path.strip_prefix("/components/").and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
        let Some(component) = index.and_then(|index| config.components.get(index)) else { continue };
        for reference in template.references.iter().flatten() {
            let [Segment::Key(nuon), Segment::Key(components), Segment::Key(on), ..] = reference.path.as_slice() else {
                continue;
            };
            if nuon == "nuon" && components == "components" {
                let why = reference.path.iter().fold(String::new(), |path, segment| match segment {
                    Segment::Key(key) => path + "." + key,
                    Segment::Any => path + ".*",
                });
                let place = Some(Place { line: reference.line, column: reference.column });
                add(&component.common.name, on, Reason { why, path: template.path.clone(), place });
            }
        }
    }
    // What leads to something longer says nothing more.
    for reasons in edges.values_mut().flat_map(BTreeMap::values_mut) {
        let all: Vec<String> = reasons.iter().map(|reason| reason.why.clone()).collect();
        reasons.retain(|reason| !all.iter().any(|other| other.starts_with(&format!("{}.", reason.why))));
        reasons.sort();
        reasons.dedup_by(|one, other| one.why == other.why && one.path == other.path);
    }
    edges
}

/// The level of each component; where there is a circle, those that are on it or wait for it.
fn levels(edges: &Edges) -> Result<BTreeMap<String, usize>, BTreeSet<String>> {
    let mut left: BTreeMap<&str, usize> = edges.iter().map(|(name, on)| (name.as_str(), on.len())).collect();
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, on) in edges {
        for on in on.keys() {
            waiting.entry(on).or_default().push(name);
        }
    }
    let mut levels = BTreeMap::new();
    let mut ready: Vec<&str> = left.iter().filter(|(_, on)| **on == 0).map(|(name, _)| *name).collect();
    for level in 0.. {
        if ready.is_empty() {
            break;
        }
        let mut next = Vec::new();
        for name in ready {
            levels.insert(name.to_owned(), level);
            left.remove(name);
            for waiting in waiting.get(name).into_iter().flatten() {
                if let Some(on) = left.get_mut(waiting) {
                    *on -= 1;
                    if *on == 0 {
                        next.push(*waiting);
                    }
                }
            }
        }
        ready = next;
    }
    if left.is_empty() { Ok(levels) } else { Err(left.into_keys().map(str::to_owned).collect()) }
}

/// A circle among components that can't be ordered: each of them waits for another one of them.
fn circle(edges: &Edges, left: &BTreeSet<String>) -> Vec<String> {
    let mut way: Vec<String> = left.first().cloned().into_iter().collect();
    while let Some(last) = way.last() {
        let Some(next) = edges.get(last).and_then(|on| on.keys().find(|on| left.contains(*on))) else { break };
        if let Some(at) = way.iter().position(|name| name == next) {
            way.drain(..at);
            break;
        }
        way.push(next.clone());
    }
    let first = way.iter().enumerate().min_by_key(|(_, name)| *name).map_or(0, |(at, _)| at);
    way.rotate_left(first);
    way
}

/// The circles of a config, each once.
pub(crate) fn cycle(config: &AppConfig, templates: &[Template]) -> Vec<Problem> {
    let mut edges = edges(config, templates);
    let mut problems = Vec::new();
    while let Err(left) = levels(&edges)
        && problems.len() < MAX_CIRCLES
    {
        let circle = circle(&edges, &left);
        let (Some(first), Some(second)) = (circle.first(), circle.get(1).or_else(|| circle.first())) else { break };
        let Some(reason) = edges.get(first).and_then(|on| on.get(second)?.first()).cloned() else { break };
        let message = format!("components wait for each other: {} → {first}", circle.join(" → "));
        let hint = circle.iter().zip(circle.iter().cycle().skip(1)).map(|(one, on)| {
            let why = edges.get(one).and_then(|edges| Some(edges.get(on)?.first()?.why.as_str()));
            format!("`{one}` needs `{on}` ({})", why.unwrap_or_default())
        });
        let said = error(Code::DependencyCycle, message).hint(hint.collect::<Vec<_>>().join(", "));
        problems.push(Problem { place: reason.place, ..said.at(reason.path) });
        if let Some(on) = edges.get_mut(first) {
            on.remove(second);
        }
    }
    problems
}
