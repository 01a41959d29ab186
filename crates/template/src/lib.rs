//! Go's `text/template` with the functions of sprig that configs use, as a pure function of a text and its data.
//!
//! Owns the language: parser, evaluation, functions, and which paths a template may read. Does no I/O, reads no clock, draws no
//! randomness and sees no environment; every loop, depth and size has a bound.
//!
//! Where it departs from Go, on purpose:
//! - lists and maps print as JSON, whole floats up to 2^53 as integers; maps are always in the order of their keys;
//! - `set`, `unset` and `merge` never change data: they give a new map, and where their first argument is a variable, that variable
//!   holds it from then on (two names of one map do not see each other's changes);
//! - lists are of one type, whatever function made them, and an empty one is never `null`;
//! - `b64dec` of something else is an error; text is never cut inside a character; `printf` knows no `*` and no `[n]`.

mod exec;
mod float;
mod functions;
mod out;
mod parse;
mod printf;
mod references;
mod value;

pub use references::{Reference, Segment};

/// What is wrong, and where: line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct TemplateError {
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

/// What rendering may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Blocks, parentheses and templates inside each other, and lists and maps inside each other. Each costs stack.
    pub max_depth_levels: usize,
    /// Rounds of loops, calls, and elements or 256 bytes of text that functions go through.
    pub max_steps: u64,
    /// The result, and each text on the way to it.
    pub max_output_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { max_depth_levels: 128, max_steps: 1_000_000, max_output_bytes: 8 << 20 }
    }
}

/// More than any real data; what reads JSON stops at 128.
const MAX_DATA_LEVELS: usize = 256;

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    text: String,
    tree: parse::Tree,
}

impl Template {
    /// Reads a template; unknown functions and variables are found here.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        match parse::parse(text) {
            Ok(tree) => Ok(Template { text: text.into(), tree }),
            Err(fault) => Err(fault.at(text)),
        }
    }

    /// Renders with `data` as the dot. A missing key is an error.
    pub fn render(&self, data: &serde_json::Value, bounds: &Bounds) -> Result<String, TemplateError> {
        self.render_data(&Data::new(data)?, bounds)
    }

    /// As `render`, for many templates with the same data.
    pub fn render_data(&self, data: &Data, bounds: &Bounds) -> Result<String, TemplateError> {
        exec::render(&self.tree, &data.0, bounds).map_err(|fault| fault.at(&self.text))
    }

    /// Every path below the data that the template may read, in the order of the text.
    pub fn references(&self) -> Vec<Reference> {
        references::find(&self.text, &self.tree)
    }
}

/// Data in the form that templates read: made once, cheap to use again.
#[derive(Debug, Clone)]
pub struct Data(value::Value);

impl Data {
    pub fn new(json: &serde_json::Value) -> Result<Data, TemplateError> {
        match value::Value::from_json(json, MAX_DATA_LEVELS) {
            Ok(value) => Ok(Data(value)),
            Err(wrong) => Err(TemplateError { line: 1, column: 1, message: wrong.message, hint: wrong.hint }),
        }
    }
}

/// An error whose place is still an offset.
#[derive(Debug)]
pub(crate) struct Fault {
    pos: usize,
    message: String,
    hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(pos: usize, message: impl Into<String>) -> Self {
        Fault { pos, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn at(self, text: &str) -> TemplateError {
        let (line, column) = line_column(text, self.pos);
        TemplateError { line, column, message: self.message, hint: self.hint }
    }
}

pub(crate) fn line_column(text: &str, pos: usize) -> (usize, usize) {
    let before = text.get(..pos).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

const MAX_NAME_BYTES: usize = 100;
const MAX_NAMES: usize = 1000;

/// The one of `names` that `name` was probably meant to be.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let names = names.filter(|known| known.len() <= MAX_NAME_BYTES).take(MAX_NAMES);
    let (distance, near) = names.map(|known| (strsim::damerau_levenshtein(name, known), known)).min()?;
    (distance <= 1 + name.len() / 4 && distance < name.len()).then_some(near)
}

#[cfg(test)]
mod tests;
