//! Which parts of an app read which inputs of an install.

use std::collections::{BTreeMap, BTreeSet};

use template::Segment;

use crate::Place;
use crate::check::templates;
use crate::kinds::AppConfig;

/// Inputs that something reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputUse {
    pub names: BTreeSet<String>,
    /// It reads them by names that are known only when it is rendered.
    pub any: bool,
}

impl InputUse {
    pub fn reads(&self, inputs: &[String]) -> bool {
        self.any && !inputs.is_empty() || inputs.iter().any(|input| self.names.contains(input))
    }

    /// Notes what a template reads, where that is an input; `whole`: all that lies there.
    pub(crate) fn note(&mut self, path: &[Segment], whole: bool) {
        let names: Vec<Option<&str>> =
            path.iter().map(|s| if let Segment::Key(key) = s { Some(key.as_str()) } else { None }).collect();
        let key = |at: usize| names.get(at).copied().flatten();
        let holds = matches!(key(1), Some("inputs" | "install"));
        match (names.len(), key(0)) {
            (_, Some("nuon")) if holds && key(2) == Some("inputs") && names.len() > 3 => match key(3) {
                Some(name) => drop(self.names.insert(name.to_owned())),
                None => self.any = true,
            },
            // The whole of what holds them.
            (1, Some("nuon")) => self.any |= whole,
            (2, Some("nuon")) if holds => self.any |= whole,
            (3, Some("nuon")) if holds && key(2) == Some("inputs") => self.any |= whole,
            _ => {}
        }
    }
}

/// Who reads which inputs: the sandbox, and every component that reads one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    pub sandbox: InputUse,
    pub components: BTreeMap<String, InputUse>,
    /// Outputs that are read, of a component or of the sandbox, and where that is.
    pub outputs: BTreeMap<(Option<String>, Vec<String>), Reader>,
}

/// A template that reads an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    /// Where in the config it is, and where in its text the output stands.
    pub path: String,
    pub place: Place,
    /// It is a text for people: what is missing stops nothing.
    pub page: bool,
}

impl Uses {
    pub fn new(config: &AppConfig) -> Self {
        let value = serde_json::to_value(config).unwrap_or_default();
        let mut uses = Self::default();
        for template in templates(&value) {
            for reference in template.references.iter().flatten() {
                let Some(read) = output(&reference.path) else { continue };
                let place = Place { line: reference.line, column: reference.column };
                let reader = Reader { path: template.path.clone(), place, page: template.page };
                // One that stops something is told of first.
                let first = uses.outputs.entry(read).or_insert_with(|| reader.clone());
                if first.page && !reader.page {
                    *first = reader;
                }
            }
            let mut part = template.path.split('/').skip(1);
            let user = match (part.next(), part.next()) {
                (Some("sandbox"), _) => &mut uses.sandbox,
                (Some("components"), Some(index)) => {
                    let component = index.parse::<usize>().ok().and_then(|index| config.components.get(index));
                    let Some(component) = component else { continue };
                    uses.components.entry(component.common.name.clone()).or_default()
                }
                _ => continue,
            };
            for reference in template.references.iter().flatten() {
                user.note(&reference.path, reference.whole);
            }
        }
        uses
    }
}

/// The output that a path reads, as far as its keys stand in the template.
fn output(path: &[Segment]) -> Option<(Option<String>, Vec<String>)> {
    let keys = path.iter().map_while(|s| if let Segment::Key(key) = s { Some(key.as_str()) } else { None });
    let keys: Vec<&str> = keys.collect();
    let (of, rest) = match keys.as_slice() {
        ["nuon", "components", of, "outputs", rest @ ..] => (Some((*of).to_owned()), rest),
        ["nuon", "sandbox", "outputs", rest @ ..] => (None, rest),
        _ => return None,
    };
    (!rest.is_empty()).then(|| (of, rest.iter().map(|key| (*key).to_owned()).collect()))
}
