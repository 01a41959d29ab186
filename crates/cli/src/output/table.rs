//! Tables: which columns there are, how ids are shortened, and how a row fits the width.

use std::collections::BTreeMap;

use comfy_table::{Attribute, ColumnConstraint, ContentArrangement, Table, presets};

use super::words::clean;

/// From this width on, ids are never broken.
const ID_WHOLE_WIDTH: usize = 50;
/// Longer text is wrapped or cut before a column is left out for it.
const FOLDED_WIDTH: usize = 18;
/// Blanks between two columns.
const GAP: usize = 2;
/// Characters at the end of an id that are shown: they are random, while its beginning is the time.
const ID_TAIL: usize = 8;
const DIGEST_HEAD: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
    Busy,
    Dim,
    Strong,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
    /// An id or a digest: shortened in tables, never wrapped.
    is_id: bool,
}

impl Cell {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn strong(self) -> Self {
        Self { tone: Tone::Strong, ..self }
    }

    pub(crate) fn dim(self) -> Self {
        Self { tone: Tone::Dim, ..self }
    }
}

pub(crate) fn cell(text: impl ToString) -> Cell {
    Cell { text: clean(&text.to_string()), tone: Tone::Plain, is_id: false }
}

pub(crate) fn strong(text: impl ToString) -> Cell {
    cell(text).strong()
}

pub(crate) fn dim(text: impl ToString) -> Cell {
    cell(text).dim()
}

/// An id or a digest.
pub(crate) fn id(text: impl ToString) -> Cell {
    Cell { is_id: true, ..cell(text) }
}

/// A status in the colour of its kind.
pub(crate) fn status(text: impl ToString) -> Cell {
    let cell = cell(text);
    Cell { tone: tone(&cell.text), ..cell }
}

/// How good a status is.
pub(crate) fn tone(status: &str) -> Tone {
    match status {
        "finished" | "active" | "ok" | "success" | "approved" | "no-drift" | "healthy" => Tone::Good,
        "failed" | "error" | "deny" | "timed-out" | "unknown" | "offline" | "revoked" | "disabled" | "drifted"
        | "approval-denied" | "approval-expired" | "warning" | "unhealthy" | "degraded" => Tone::Bad,
        "in-progress" | "planning" | "building" | "available" | "queued" | "pending" | "draining" | "cancelled"
        | "approval-awaiting" | "warn" | "progressing" => Tone::Busy,
        "not-attempted" | "expired" | "auto-skipped" | "user-skipped" | "discarded" | "not-applicable" => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// `job…fghijklm`, `sha256:0123456789ab…`; what is neither an id nor a digest stays whole.
pub(crate) fn brief_id(text: &str) -> String {
    let is_id =
        text.len() == model::id::ID_LENGTH && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase());
    if is_id {
        return format!("{}…{}", &text[..3], &text[text.len() - ID_TAIL..]);
    }
    match text.strip_prefix("sha256:") {
        Some(hex) if hex.len() == 64 && hex.is_ascii() => format!("sha256:{}…", &hex[..DIGEST_HEAD]),
        _ => text.to_owned(),
    }
}

/// What becomes of text that is too long for the width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// It takes more lines: on a terminal.
    Wrap,
    /// It ends with `…`: a row is a line.
    Cut,
    /// Nothing: a row is a line, however long.
    Flow,
}

/// How a table is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub fit: Fit,
    pub width: usize,
    pub color: bool,
    /// Ids are whole.
    pub wide: bool,
}

/// Draws a table. A header that starts with `?` may be left out where the table is too wide.
pub(super) fn draw(form: Form, headers: &[&str], mut rows: Vec<Vec<Cell>>) -> String {
    let mut headers = headers.to_vec();
    if !form.wide {
        shorten(&mut rows);
    }
    if form.fit != Fit::Flow {
        while let Some(column) = dispensable(&headers, &rows, form.width) {
            headers.remove(column);
            for row in &mut rows {
                row.remove(column);
            }
        }
    }
    if form.fit == Fit::Cut {
        cut(&headers, &mut rows, form.width);
    }
    let ids: Vec<bool> = (0..columns(&headers, &rows)).map(|column| is_id(&rows, column)).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    if form.fit == Fit::Wrap {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(form.width).unwrap_or(u16::MAX));
    }
    if form.color {
        table.enforce_styling();
    }
    if !headers.is_empty() {
        let bold = |text: &&str| comfy_table::Cell::new(title(text)).add_attribute(Attribute::Bold);
        table.set_header(headers.iter().map(bold).collect::<Vec<_>>());
    }
    for row in rows {
        table.add_row(row.into_iter().map(toned).collect::<Vec<_>>());
    }
    let last = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
        // An id in two pieces can't be copied.
        if form.fit == Fit::Wrap && ids.get(index) == Some(&true) && form.width >= ID_WHOLE_WIDTH {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

fn title<'h>(header: &&'h str) -> &'h str {
    header.trim_start_matches('?')
}

fn columns(headers: &[&str], rows: &[Vec<Cell>]) -> usize {
    headers.len().max(rows.first().map_or(0, Vec::len))
}

fn is_id(rows: &[Vec<Cell>], column: usize) -> bool {
    rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.is_id))
}

/// Shortens ids. Two that would look the same stay whole.
fn shorten(rows: &mut [Vec<Cell>]) {
    let mut meant: BTreeMap<String, Option<String>> = BTreeMap::new();
    for cell in rows.iter().flatten().filter(|cell| cell.is_id) {
        let known = meant.entry(brief_id(&cell.text)).or_insert_with(|| Some(cell.text.clone()));
        if known.as_ref() != Some(&cell.text) {
            *known = None;
        }
    }
    for cell in rows.iter_mut().flatten().filter(|cell| cell.is_id) {
        let brief = brief_id(&cell.text);
        if meant.get(&brief).is_some_and(Option::is_some) {
            cell.text = brief;
        }
    }
}

/// How wide a column is where nothing is folded.
fn natural(headers: &[&str], rows: &[Vec<Cell>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column)).flat_map(|cell| cell.text.lines());
    let widest = cells.map(|line| line.chars().count()).max().unwrap_or(0);
    widest.max(headers.get(column).map_or(0, |header| title(header).len()))
}

/// The column to leave out next, the last of those that may be, where the table is too wide.
fn dispensable(headers: &[&str], rows: &[Vec<Cell>], width: usize) -> Option<usize> {
    let folded = |column: usize| {
        let whole = natural(headers, rows, column);
        if is_id(rows, column) { whole } else { whole.min(FOLDED_WIDTH) }
    };
    let wanted: usize = (0..headers.len()).map(|column| folded(column) + GAP).sum();
    if wanted <= width + GAP {
        return None;
    }
    headers.iter().rposition(|header| header.starts_with('?'))
}

/// Cuts the longest texts until every row fits in a line.
fn cut(headers: &[&str], rows: &mut [Vec<Cell>], width: usize) {
    for cell in rows.iter_mut().flatten() {
        cell.text = cell.text.replace('\n', " ");
    }
    let mut widths: Vec<usize> = (0..headers.len()).map(|column| natural(headers, rows, column)).collect();
    let room = width.saturating_sub(GAP * headers.len().saturating_sub(1));
    let text: Vec<usize> = (0..headers.len()).filter(|column| !is_id(rows, *column)).collect();
    while widths.iter().sum::<usize>() > room {
        let too_much = widths.iter().sum::<usize>() - room;
        let mut longest: Vec<usize> = text.clone();
        longest.sort_by_key(|column| std::cmp::Reverse(widths[*column]));
        let Some(&first) = longest.first() else { break };
        // Down to the next longest, or as far as is needed.
        let next = longest.get(1).map_or(0, |column| widths[*column]);
        let shorter = widths[first].saturating_sub(too_much).max(next.min(widths[first] - 1));
        if shorter < title(&headers[first]).len().max(1) {
            break;
        }
        widths[first] = shorter;
    }
    for row in rows {
        for (cell, width) in row.iter_mut().zip(&widths) {
            if cell.text.chars().count() > *width {
                cell.text = cell.text.chars().take(width.saturating_sub(1)).collect::<String>() + "…";
            }
        }
    }
}

fn toned(cell: Cell) -> comfy_table::Cell {
    let drawn = comfy_table::Cell::new_owned(cell.text);
    match cell.tone {
        Tone::Plain => drawn,
        Tone::Good => drawn.fg(comfy_table::Color::Green),
        Tone::Bad => drawn.fg(comfy_table::Color::Red),
        Tone::Busy => drawn.fg(comfy_table::Color::Yellow),
        Tone::Dim => drawn.add_attribute(Attribute::Dim),
        Tone::Strong => drawn.add_attribute(Attribute::Bold),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "job0123456789abcdefghijklm";
    const OTHER: &str = "job0123456789abcdefghijkln";

    fn form(fit: Fit, width: usize) -> Form {
        Form { fit, width, color: false, wide: false }
    }

    #[test]
    fn a_table_fits_the_width() {
        let text = "group actions is busy with another job that takes its time (4 of 4 slots taken), as it often does";
        let rows = || {
            vec![
                vec![id(ID).strong(), status("queued"), cell(text)],
                vec![id(OTHER).strong(), status("finished"), cell("")],
            ]
        };
        let headers = ["ID", "STATUS", "WHY"];
        for width in [40, 60, 100] {
            for (fit, color) in [(Fit::Wrap, false), (Fit::Wrap, true), (Fit::Cut, false)] {
                let drawn = draw(Form { color, ..form(fit, width) }, &headers, rows());
                for line in drawn.lines() {
                    let plain: String = strip(line);
                    assert!(plain.chars().count() <= width, "{width}: {plain:?}");
                }
                assert!(fit == Fit::Wrap || drawn.lines().count() == 3, "a row is a line: {drawn}");
            }
        }
        let cut = draw(form(Fit::Cut, 60), &headers, rows());
        let expected = "ID            STATUS    WHY\n\
            job…fghijklm  queued    group actions is busy with another …\n\
            job…fghijkln  finished\n";
        assert_eq!(cut, expected);
        let wide = draw(Form { wide: true, ..form(Fit::Flow, 60) }, &headers, rows());
        assert_eq!(wide, format!("ID{:26}STATUS    WHY\n{ID}  queued    {text}\n{OTHER}  finished\n", ""));
    }

    #[test]
    fn ids_and_digests_are_shortened_where_they_stay_distinct() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        for (text, brief) in [
            (ID, "job…fghijklm"),
            (digest.as_str(), "sha256:0123456789ab…"),
            ("", ""),
            ("-", "-"),
            ("local", "local"),
            ("a-name-of-26-characters-xy", "a-name-of-26-characters-xy"),
        ] {
            assert_eq!(brief_id(text), brief);
        }
        let twin = "wfl0123456789abcdefghijklm";
        let same_tail = "job9999999999abcdefghijklm";
        let drawn = draw(form(Fit::Flow, 100), &["A", "B"], vec![vec![id(ID), id(twin)], vec![id(same_tail), id(ID)]]);
        let expected = format!("A{:27}B\n{ID}  wfl…fghijklm\n{same_tail}  {ID}\n", "");
        assert_eq!(drawn, expected, "two that would look the same are whole");
    }

    fn strip(line: &str) -> String {
        let mut out = String::new();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            if c == '\u{1b}' {
                for c in chars.by_ref() {
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
            } else {
                out.push(c);
            }
        }
        out
    }

    #[test]
    fn a_narrow_terminal_loses_columns_before_ids() {
        let headers = ["ID", "?TYPE", "STATUS", "?CREATED", "WHY"];
        let row =
            || vec![id(ID).strong(), cell("actions-workflow"), status("queued"), dim("3 s ago"), cell("no runner yet")];
        let names = |text: String| text.lines().next().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "));
        for (fit, width, expected) in [
            (Fit::Flow, 10, "ID TYPE STATUS CREATED WHY"),
            (Fit::Wrap, 100, "ID TYPE STATUS CREATED WHY"),
            (Fit::Wrap, 58, "ID TYPE STATUS WHY"),
            (Fit::Cut, 46, "ID STATUS WHY"),
        ] {
            let drawn = draw(form(fit, width), &headers, vec![row()]);
            assert!(drawn.contains("job…fghijklm"), "{width}");
            assert_eq!(names(drawn).as_deref(), Some(expected), "{width}");
        }
    }

    #[test]
    fn colour_only_where_it_is_wanted() {
        let drawn = |color| draw(Form { color, ..form(Fit::Flow, 100) }, &["S"], vec![vec![status("failed")]]);
        assert!(!drawn(false).contains('\u{1b}') && drawn(true).contains('\u{1b}'));
    }

    #[test]
    fn escapes_in_names_do_not_reach_the_terminal() {
        assert_eq!(cell("a\u{1b}[31mb").text, "a\u{fffd}[31mb");
    }
}
