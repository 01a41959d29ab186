//! What is wrong with an app, and where.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Serialize;

use crate::tree::MAX_CONFIG_BYTES;
use crate::{Code, Options, Tree};

/// A problem with its place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    /// Relative to the app's directory.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
    /// The bytes of the file that it is about.
    #[serde(skip)]
    pub span: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

impl Diagnostic {
    fn order(&self) -> (&str, usize, usize, Severity, Code) {
        (&self.file, self.line, self.column, self.severity, self.code)
    }
}

/// A problem of a config, whatever files it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub severity: Severity,
    pub code: Code,
    /// Where in the config, as a JSON pointer: `/components/2/dependencies/0`.
    pub path: String,
    /// Where in the text that lies there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Another place in the config that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A place in a text: line and column from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// Gathers what is found, up to a bound.
pub(crate) struct Findings<'a> {
    pub(crate) tree: &'a Tree,
    options: Options,
    found: Vec<Diagnostic>,
    /// What has become part of the config.
    pub(crate) taken_bytes: usize,
    /// Remote addresses whose contents are not at hand.
    pub(crate) wanted: BTreeSet<String>,
}

/// More than anyone reads.
const MAX_DIAGNOSTICS: usize = 1000;

/// What is said, apart from where.
pub(crate) struct Said {
    pub(crate) severity: Severity,
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

pub(crate) fn error(code: Code, message: impl Into<String>) -> Said {
    Said { severity: Severity::Error, code, message: message.into(), hint: None }
}

pub(crate) fn warning(code: Code, message: impl Into<String>) -> Said {
    Said { severity: Severity::Warning, ..error(code, message) }
}

impl Said {
    pub(crate) fn hint(self, hint: impl Into<String>) -> Said {
        Said { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> Said {
        Said { hint, ..self }
    }

    pub(crate) fn at(self, path: impl Into<String>) -> Problem {
        let Said { severity, code, message, hint } = self;
        Problem { severity, code, path: path.into(), place: None, other: None, message, hint }
    }
}

impl<'a> Findings<'a> {
    pub(crate) fn new(tree: &'a Tree, options: Options) -> Self {
        Findings { tree, options, found: Vec::new(), taken_bytes: 0, wanted: BTreeSet::new() }
    }

    /// Counts what becomes part of the config.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Said> {
        self.taken_bytes += bytes;
        if self.taken_bytes <= MAX_CONFIG_BYTES {
            return Ok(());
        }
        Err(error(Code::FileTooLarge, format!("the config as a whole has more than {MAX_CONFIG_BYTES} bytes")))
    }

    /// Nothing more is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() > MAX_DIAGNOSTICS
    }

    pub(crate) fn say(&mut self, said: Said, file: &str, span: Range<usize>) {
        if self.is_full() {
            return;
        }
        let Said { mut severity, code, message, hint } = said;
        let strict = self.options.strict && matches!(code, Code::UnknownKey | Code::MisplacedKey);
        if strict || self.options.complete && code == Code::NotFetched {
            severity = Severity::Error;
        }
        let Place { line, column } =
            self.tree.text(file).map_or(Place { line: 1, column: 1 }, |text| place(text, span.start));
        self.found.push(Diagnostic { severity, code, file: file.into(), line, column, message, hint, span });
    }

    /// In the order of files and lines.
    pub(crate) fn done(mut self) -> Vec<Diagnostic> {
        let more = self.is_full();
        self.found.sort_by(|a, b| a.order().cmp(&b.order()));
        self.found.dedup();
        if more {
            self.found.truncate(MAX_DIAGNOSTICS);
            let said = error(Code::TooManyProblems, format!("only the first {MAX_DIAGNOSTICS} problems are shown"));
            let file = self.found.first().map(|first| first.file.clone()).unwrap_or_default();
            self.found.push(Diagnostic {
                severity: said.severity,
                code: said.code,
                file,
                line: 1,
                column: 1,
                message: said.message,
                hint: None,
                span: 0..0,
            });
        }
        self.found
    }
}

/// The place of a byte.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Place { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
}

/// The byte at a place.
pub(crate) fn offset(text: &str, place: Place) -> usize {
    let line: usize = text.split_inclusive('\n').take(place.line - 1).map(str::len).sum();
    let rest = &text[line..];
    line + rest.char_indices().nth(place.column - 1).map_or(rest.len(), |(at, _)| at)
}

/// "did you mean": the nearest of the known names, or those that the name is a part of.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = known.collect();
    let part = |known: &&&str| known.ends_with(&format!("_{name}")) || known.starts_with(&format!("{name}_"));
    if let Some(near) = template::nearest(name, known.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let parts: Vec<String> = known.iter().filter(part).map(|known| format!("`{known}`")).collect();
    (1..=2).contains(&parts.len()).then(|| format!("did you mean {}?", parts.join(" or ")))
}
