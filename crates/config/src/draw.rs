//! Problems for people, drawn as compilers do.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Place, place};
use crate::{Diagnostic, Severity, Tree};

/// Lines that are longer are shown from the place on.
const MAX_LINE_BYTES: usize = 400;

/// Draws a problem with the line that it is about.
pub fn draw(found: &Diagnostic, tree: &Tree, colour: bool) -> String {
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(found.message.as_str()).id(found.code.as_str());
    let mut group = match tree.text(&found.file).filter(|text| !text.is_empty()) {
        Some(text) => title.element(snippet(text, found)),
        None => title.element(Origin::path(found.file.as_str()).line(found.line).char_column(found.column)),
    };
    if let Some(hint) = &found.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

fn snippet<'t>(text: &'t str, found: &'t Diagnostic) -> Snippet<'t, annotate_snippets::Annotation<'t>> {
    let at = found.span.start.min(text.len());
    let mut start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    if at - start > MAX_LINE_BYTES {
        start = at;
    }
    let mut end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if end - at > MAX_LINE_BYTES {
        end = text.floor_char_boundary(at + MAX_LINE_BYTES);
    }
    // A problem in a text has a place and no length: it is drawn to the end of the word.
    let word = text[at..end]
        .find(|c: char| c.is_whitespace() || matches!(c, '}' | ')' | '|'))
        .map_or(end, |length| at + length);
    let stop = if found.span.is_empty() { word } else { found.span.end.clamp(at, end) };
    let Place { line, .. } = place(text, at);
    Snippet::source(&text[start..end])
        .line_start(line)
        .path(found.file.as_str())
        .annotation(AnnotationKind::Primary.span(at - start..stop - start))
}
