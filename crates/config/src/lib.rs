//! The format of apps: reads a tree of TOML files, says exactly what is wrong with it, and gives the config that is stored.
//!
//! Owns the format: its tables, its rules, its JSON Schemas. Does no I/O, reads no clock and draws no randomness: who has the files gives
//! them as a [`Tree`], remote contents included. Every size and count has a bound.

mod check;
mod codes;
mod cron;
mod decode;
mod diagnostic;
mod diff;
mod draw;
mod get;
mod graph;
mod json;
mod kinds;
mod layout;
mod local;
mod overrides;
mod schema;
mod source;
mod starter;
mod table;
mod tree;
mod uses;
mod walk;

pub use check::{check, is_template};
pub use codes::Code;
pub use cron::next_tick;
pub use diagnostic::{Diagnostic, Place, Problem, Severity};
pub use diff::{Change, ChangeKind, FieldChange, MASK, diff};
pub use draw::draw;
pub use graph::{Dependency, Graph, GraphNode, Reason};
pub use kinds::*;
pub use local::{LocalSource, local_sources};
pub use overrides::{OverrideUse, override_misfit, wrong_override, wrong_override_of};
pub use schema::{SCHEMAS, schema};
pub use source::{Location, Sources};
pub use starter::starter;
pub use tree::{MAX_CONFIG_BYTES, MAX_FILE_BYTES, MAX_TOML_BYTES, MAX_TOML_FILES, Tree};
pub use uses::{InputUse, Reader, Uses};

use diagnostic::{Findings, Said};
use layout::Layout;

/// How strictly to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Keys that mean nothing are errors.
    pub strict: bool,
    /// Contents of remote files that are not at hand are an error; without, a warning.
    pub complete: bool,
}

/// What was read.
#[derive(Debug)]
pub struct Loaded {
    /// The config, where there is no error.
    pub config: Option<AppConfig>,
    pub diagnostics: Vec<Diagnostic>,
    pub sources: Sources,
}

/// Reads an app: decodes its files, puts the contents of others in their place, and checks the result.
pub fn load(tree: &Tree, options: Options) -> Loaded {
    read(tree, options, |_| true)
}

/// What files of installs say about their app, which only who knows the app can judge.
const OF_THE_APP: &[Code] = &[
    Code::UnknownInput,
    Code::UnknownComponent,
    Code::UnknownAction,
    Code::UnknownSecret,
    Code::UnknownName,
    Code::TemplateScope,
];

/// Reads files of installs without their app. They lie in `installs/`; nothing else is looked at.
pub fn load_installs(tree: &Tree, options: Options) -> Loaded {
    read(tree, options, |problem| problem.path.starts_with("/installs/") && !OF_THE_APP.contains(&problem.code))
}

fn read(tree: &Tree, options: Options, counts: impl Fn(&Problem) -> bool) -> Loaded {
    let mut findings = Findings::new(tree, options);
    let (value, root, broken) = Layout::new(&mut findings).read();
    let sources = Sources { root };
    let config = AppConfig::from_json(&value).unwrap_or_else(|wrong| {
        findings.say(diagnostic::error(Code::WrongType, wrong.to_string()), "metadata.toml", 0..0);
        AppConfig::default()
    });
    // What a file says that can't be read is missing everywhere else.
    if !broken {
        let problems = check::check_value(&config, &value).into_iter().chain(local::missing(tree, &config));
        for problem in problems.filter(&counts) {
            let Problem { severity, code, path, place, other, message, hint } = problem;
            let other = other
                .map(|other| sources.locate(tree, &other, None))
                .map(|other| format!("the first is in {}:{}", other.file, other.line));
            let at = sources.locate(tree, &path, place);
            findings.say(Said { severity, code, message, hint: other.or(hint) }, &at.file, at.span);
        }
    }
    let mut diagnostics = findings.done();
    point_at_misspellings(&mut diagnostics);
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Loaded { config: (!failed).then_some(config), diagnostics, sources }
}

/// A key that is missing because it is misspelt is missing there, not at the top of its table.
fn point_at_misspellings(diagnostics: &mut [Diagnostic]) {
    let misspelt: Vec<Diagnostic> = diagnostics.iter().filter(|d| d.code == Code::UnknownKey).cloned().collect();
    for missing in diagnostics.iter_mut().filter(|d| d.code == Code::MissingKey) {
        let Some(key) = missing.message.strip_suffix(" is missing") else { continue };
        let meant = format!("did you mean {key}?");
        let here =
            |d: &&Diagnostic| d.file == missing.file && d.line >= missing.line && d.hint.as_ref() == Some(&meant);
        if let Some(found) = misspelt.iter().find(here) {
            (missing.line, missing.column, missing.span) = (found.line, found.column, found.span.clone());
            missing.hint = Some(format!("it is misspelt here: write {key}"));
        }
    }
}

/// The remote addresses that an app's files name and whose contents are not at hand: they belong into [`Tree::fetched`] before [`load`].
pub fn wanted(tree: &Tree) -> Vec<String> {
    let mut findings = Findings::new(tree, Options::default());
    Layout::new(&mut findings).read();
    findings.wanted.into_iter().collect()
}
