//! Where the parts of a config come from: a tree beside the decoded one, with the place of each value.

use std::borrow::Cow;
use std::ops::Range;

use crate::Tree;
use crate::diagnostic::{Place, offset, place};

/// The place of a value, and of its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spot {
    /// Path of the file; empty for what no file says.
    pub(crate) file: std::sync::Arc<str>,
    pub(crate) span: Range<usize>,
    /// The file whose contents the value is.
    pub(crate) content: Option<std::sync::Arc<str>>,
    /// By key; elements of lists have none.
    pub(crate) parts: Vec<(Cow<'static, str>, Spot)>,
}

impl Spot {
    pub(crate) fn part(&self, segment: &str) -> Option<&Spot> {
        let by_key = self.parts.iter().find(|(key, _)| !key.is_empty() && key == segment);
        by_key
            .or_else(|| self.parts.get(segment.parse::<usize>().ok()?).filter(|(key, _)| key.is_empty()))
            .map(|(_, spot)| spot)
    }
}

/// The places of a config.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub(crate) root: Spot,
}

/// Where something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: String,
    pub span: Range<usize>,
    pub line: usize,
    pub column: usize,
}

impl Sources {
    /// The place of a part of the config, or of the nearest thing around it; with `within`, a place in the text that lies there.
    pub fn locate(&self, tree: &Tree, path: &str, within: Option<Place>) -> Location {
        let mut spot = &self.root;
        let mut exact = true;
        for (depth, segment) in path.split('/').skip(1).enumerate() {
            match spot.part(&unescape(segment)) {
                Some(part) => spot = part,
                None if depth == 0 => return nowhere(segment),
                None => {
                    exact = false;
                    break;
                }
            }
        }
        let within = within.filter(|_| exact);
        let (file, span) = match (&spot.content, within) {
            (Some(content), Some(within)) => {
                let start = tree.text(content).map_or(0, |text| offset(text, within));
                (content, start..start)
            }
            (_, Some(within)) => (&spot.file, inside(tree.text(&spot.file).unwrap_or_default(), &spot.span, within)),
            (_, None) => (&spot.file, spot.span.clone()),
        };
        let Place { line, column } = place(tree.text(file).unwrap_or_default(), span.start);
        Location { file: file.to_string(), span, line, column }
    }
}

/// What no file says: the file that should.
fn nowhere(key: &str) -> Location {
    Location { file: crate::layout::file_of(key).to_string(), span: 0..0, line: 1, column: 1 }
}

/// A place in a text that stands in TOML: exact where the text is written without escapes, else its line, else its start.
fn inside(text: &str, span: &Range<usize>, within: Place) -> Range<usize> {
    let Some(raw) = text.get(span.clone()) else { return span.clone() };
    let (quotes, multi) = match raw {
        _ if raw.starts_with("\"\"\"") || raw.starts_with("'''") => (3, true),
        _ => (1, false),
    };
    let mut start = quotes.min(raw.len());
    if multi {
        start += if raw[start..].starts_with("\r\n") { 2 } else { usize::from(raw[start..].starts_with('\n')) };
    }
    let body = &raw[start..];
    let escaped = !raw.starts_with('\'') && body.contains('\\');
    if within.line > 1 && !multi || escaped && within.line == 1 {
        return span.clone();
    }
    let column = if escaped && body.lines().nth(within.line - 1).is_some_and(|line| line.contains('\\')) {
        1
    } else {
        within.column
    };
    let at = span.start + start + offset(body, Place { line: within.line, column });
    at..at
}

/// A key as a segment of a JSON pointer.
pub(crate) fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}

fn unescape(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') { segment.replace("~1", "/").replace("~0", "~").into() } else { segment.into() }
}
