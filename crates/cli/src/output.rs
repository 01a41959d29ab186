//! The only place that prints: data on stdout, all else on stderr.
//!
//! A terminal gets colour, relative times and tables cut to its width; a pipe gets plain text with absolute times; `--json`
//! gets one document. Green is good, red is bad, yellow is on its way, and every colour has a word beside it.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, SystemTime};

use comfy_table::{Attribute, ColumnConstraint, ContentArrangement, Table, presets};
use model::Timestamp;
use owo_colors::{OwoColorize as _, Style};
use serde::Serialize;

use crate::args::Color;
use crate::error::{CliError, Exit};

/// From this width on, ids are never broken.
const ID_WHOLE_WIDTH: u16 = 50;
/// Longer text is wrapped before a column is given up for it.
const WRAPPED_WIDTH: usize = 24;

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub json: bool,
    pub stdout_terminal: bool,
    pub stderr_terminal: bool,
    /// A person sits here who may be shown more than lines.
    pub live: bool,
    pub color_stdout: bool,
    pub color_stderr: bool,
    width_stdout: Option<u16>,
    width_stderr: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

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
}

impl Cell {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

pub(crate) fn cell(text: impl ToString) -> Cell {
    Cell { text: clean(&text.to_string()), tone: Tone::Plain }
}

pub(crate) fn strong(text: impl ToString) -> Cell {
    Cell { tone: Tone::Strong, ..cell(text) }
}

pub(crate) fn dim(text: impl ToString) -> Cell {
    Cell { tone: Tone::Dim, ..cell(text) }
}

/// A status in the colour of its kind.
pub(crate) fn status(text: impl ToString) -> Cell {
    let cell = cell(text);
    Cell { tone: tone(&cell.text), ..cell }
}

/// How good a status is.
pub(crate) fn tone(status: &str) -> Tone {
    match status {
        "finished" | "active" | "ok" | "success" | "approved" | "no-drift" => Tone::Good,
        "failed" | "error" | "deny" | "timed-out" | "unknown" | "offline" | "revoked" | "disabled" | "drifted"
        | "approval-denied" | "approval-expired" | "warning" => Tone::Bad,
        "in-progress" | "planning" | "building" | "available" | "queued" | "pending" | "draining" | "cancelled"
        | "approval-awaiting" | "warn" => Tone::Busy,
        "not-attempted" | "expired" | "auto-skipped" | "user-skipped" | "discarded" => Tone::Dim,
        _ => Tone::Plain,
    }
}

/// A text without what moves the cursor, on one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// `1 policy`, `2 policies`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

impl Output {
    pub(crate) fn detect(json: bool, color: Color, lines: bool) -> Self {
        let stdout_terminal = io::stdout().is_terminal();
        let stderr_terminal = io::stderr().is_terminal();
        let term = std::env::var_os("TERM");
        let dumb = term.as_ref().is_some_and(|v| v == "dumb");
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) || dumb;
        let people = stdout_terminal && stderr_terminal && io::stdin().is_terminal();
        let colored = |terminal: bool| match color {
            Color::Auto => terminal && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        Self {
            json,
            stdout_terminal,
            stderr_terminal,
            live: people && !json && !lines && !dumb && term.is_some(),
            color_stdout: colored(stdout_terminal),
            color_stderr: colored(stderr_terminal),
            // A terminal that says 0 does not know its width.
            width_stdout: Table::new().width().filter(|w| *w > 0),
            width_stderr: Table::new().use_stderr().width().filter(|w| *w > 0),
        }
    }

    /// One document on stdout.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        self.stdout_bytes(&text)
    }

    /// One line of a stream of documents.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        self.stdout_bytes(&text)
    }

    /// A list: JSON, a table, or a word on stderr that there is nothing.
    pub(crate) fn list<T: Serialize>(
        &self,
        items: &[T],
        empty: &str,
        headers: &[&str],
        row: impl Fn(&T) -> Vec<Cell>,
    ) -> io::Result<()> {
        if self.json {
            return self.json(&items);
        }
        if items.is_empty() {
            self.note(empty);
            return Ok(());
        }
        self.table(headers, items.iter().map(row).collect())
    }

    pub(crate) fn table(&self, headers: &[&str], rows: Vec<Vec<Cell>>) -> io::Result<()> {
        self.stdout_bytes(self.draw(Stream::Stdout, headers, rows).as_bytes())
    }

    /// A table that accompanies the data.
    pub(crate) fn side_table(&self, headers: &[&str], rows: Vec<Vec<Cell>>) {
        self.stderr_bytes(self.draw(Stream::Stderr, headers, rows).as_bytes());
    }

    /// Keys and values, one pair a line.
    pub(crate) fn pairs(&self, pairs: Vec<(&str, Cell)>) -> io::Result<()> {
        let rows = pairs.into_iter().map(|(key, value)| vec![dim(key), value]).collect();
        self.stdout_bytes(self.draw(Stream::Stdout, &[], rows).as_bytes())
    }

    /// A line of data.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        self.stdout_bytes(format!("{}\n", text.as_ref()).as_bytes())
    }

    pub(crate) fn heading(&self, text: &str) -> io::Result<()> {
        let text = if self.color_stdout { text.bold().to_string() } else { text.to_owned() };
        self.line(format!("\n{text}"))
    }

    /// A line of a difference: `+` is new, `-` is gone, `~` has changed.
    pub(crate) fn change(&self, sign: char, text: &str) -> io::Result<()> {
        self.signed(sign, &format!("{sign} {text}"))
    }

    /// A line in the colour of a sign.
    pub(crate) fn signed(&self, sign: char, text: &str) -> io::Result<()> {
        let line = clean(text);
        self.line(match sign {
            _ if !self.color_stdout => line,
            ' ' => line,
            '+' => line.green().to_string(),
            '-' | '!' => line.red().to_string(),
            _ => line.yellow().to_string(),
        })
    }

    /// Something for the person, not for the pipe.
    pub(crate) fn note(&self, text: &str) {
        let text = if self.color_stderr { text.dimmed().to_string() } else { text.to_owned() };
        self.stderr_bytes(format!("{text}\n").as_bytes());
    }

    pub(crate) fn success(&self, text: &str) {
        let mark = if self.color_stderr { "✓".green().to_string() } else { "ok:".to_owned() };
        self.stderr_bytes(format!("{mark} {text}\n").as_bytes());
    }

    pub(crate) fn warn(&self, text: &str) {
        self.labelled("warning", Style::new().yellow().bold(), text);
    }

    /// How something that was waited for ended, when it ended badly.
    pub(crate) fn failure(&self, text: &str) {
        self.labelled("error", Style::new().red().bold(), text);
    }

    pub(crate) fn hint(&self, text: &str) {
        self.labelled("hint", Style::new().cyan().bold(), text);
    }

    /// Below a list that was cut; programs count.
    pub(crate) fn more(&self, told: Option<String>) {
        if let Some(told) = told.filter(|_| !self.json) {
            self.hint(&told);
        }
    }

    pub(crate) fn error(&self, error: &CliError) {
        if error.exit == Exit::Done {
            return;
        }
        if self.json {
            let document = serde_json::json!({
                "error": error.message,
                "code": error.code,
                "hint": error.hint,
                "request_id": error.request_id,
                "exit_code": error.exit.code(),
            });
            return self.stderr_bytes(format!("{document}\n").as_bytes());
        }
        let mut message = clean(&error.message);
        for (label, value) in [("code", &error.code), ("request", &error.request_id)] {
            if let Some(value) = value {
                message.push_str(&format!(" [{label}: {value}]"));
            }
        }
        self.labelled("error", Style::new().red().bold(), &message);
        if let Some(hint) = &error.hint {
            self.hint(hint);
        }
    }

    fn labelled(&self, label: &str, style: Style, text: &str) {
        let label = if self.color_stderr { label.style(style).to_string() } else { label.to_owned() };
        self.stderr_bytes(format!("{label}: {text}\n").as_bytes());
    }

    pub(crate) fn stdout_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Nobody can be told when stderr is gone.
    pub(crate) fn stderr_bytes(&self, bytes: &[u8]) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(bytes).and_then(|()| stderr.flush());
    }

    /// What Ferry itself says between the lines of a log.
    pub(crate) fn system_text(&self, text: &str) {
        let text = if self.color_stderr { text.dimmed().to_string() } else { text.to_owned() };
        self.stderr_bytes(text.as_bytes());
    }

    /// "3s ago" for a person, RFC 3339 for everything else.
    pub(crate) fn time(&self, time: Timestamp) -> String {
        if self.stdout_terminal { relative(time, Timestamp::from_system(SystemTime::now())) } else { time.to_string() }
    }

    pub(crate) fn time_or_dash(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "-".to_owned(), |t| self.time(t))
    }

    /// Draws a table within the width of its stream. A header that starts with `?` may be left out for that.
    fn draw(&self, stream: Stream, headers: &[&str], mut rows: Vec<Vec<Cell>>) -> String {
        let (width, color) = match stream {
            Stream::Stdout => (self.width_stdout, self.color_stdout),
            Stream::Stderr => (self.width_stderr, self.color_stderr),
        };
        let mut headers = headers.to_vec();
        while let Some(column) = width.and_then(|width| dispensable(&headers, &rows, usize::from(width))) {
            headers.remove(column);
            for row in &mut rows {
                row.remove(column);
            }
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).force_no_tty();
        if let Some(width) = width {
            table.set_width(width);
        }
        if color {
            table.enforce_styling();
        }
        if !headers.is_empty() {
            let bold =
                |text: &&str| comfy_table::Cell::new(text.trim_start_matches('?')).add_attribute(Attribute::Bold);
            table.set_header(headers.iter().map(bold).collect::<Vec<_>>());
        }
        for row in rows {
            table.add_row(row.into_iter().map(toned).collect::<Vec<_>>());
        }
        let columns = table.column_count();
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if index + 1 == columns { 0 } else { 2 }));
            // An id in two pieces can't be copied.
            if headers.get(index) == Some(&"ID") && width.is_some_and(|width| width >= ID_WHOLE_WIDTH) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }
}

/// The column to leave out next, the last of those that may be, where the table is too wide.
fn dispensable(headers: &[&str], rows: &[Vec<Cell>], width: usize) -> Option<usize> {
    let natural = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).flat_map(|cell| cell.text.lines());
        let widest = cells.map(|line| line.chars().count()).max().unwrap_or(0);
        let whole = widest.max(headers[column].trim_start_matches('?').len());
        if headers[column] == "ID" { whole } else { whole.min(WRAPPED_WIDTH) }
    };
    let wanted: usize = (0..headers.len()).map(|column| natural(column) + 2).sum();
    if wanted <= width + 2 {
        return None;
    }
    headers.iter().rposition(|header| header.starts_with('?'))
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

/// Text of others must not steer the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

fn relative(time: Timestamp, now: Timestamp) -> String {
    if time > now {
        return format!("in {}", short(time.since(now)));
    }
    format!("{} ago", short(now.since(time)))
}

/// A duration in its largest unit, or two of them where one is too coarse.
pub(crate) fn short(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{s}s"),
        60..600 if !s.is_multiple_of(60) => format!("{}m{}s", s / 60, s % 60),
        60..3600 => format!("{}m", s / 60),
        3600..36_000 if !(s / 60).is_multiple_of(60) => format!("{}h{}m", s / 3600, s / 60 % 60),
        3600..172_800 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

/// `1.5 GiB`, `512 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for next in units {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(width: Option<u16>, color: bool) -> Output {
        Output {
            json: false,
            stdout_terminal: false,
            stderr_terminal: false,
            live: false,
            color_stdout: color,
            color_stderr: color,
            width_stdout: width,
            width_stderr: width,
        }
    }

    #[test]
    fn a_table_fits_the_width() {
        let id = "job0123456789abcdefghijklm";
        let text = "group actions is busy with another job that takes its time (4 of 4 slots taken)";
        let rows =
            || vec![vec![strong(id), status("queued"), cell(text)], vec![strong(id), status("finished"), cell("")]];
        for width in [40, 60, 100] {
            for color in [false, true] {
                let drawn = output(Some(width), color).draw(Stream::Stdout, &["ID", "STATUS", "WHY"], rows());
                for line in drawn.lines() {
                    let plain: String = strip(line);
                    assert!(plain.chars().count() <= usize::from(width), "{width}: {plain:?}");
                }
            }
        }
        let wide = output(None, false).draw(Stream::Stdout, &["ID", "STATUS", "WHY"], rows());
        assert_eq!(
            wide,
            format!("ID{:26}STATUS    WHY\n{id}  queued    {text}\n{id}  finished\n", ""),
            "a pipe gets one line for each"
        );
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
        let id = "job0123456789abcdefghijklm";
        let headers = ["ID", "?TYPE", "STATUS", "?CREATED", "WHY"];
        let row = || vec![strong(id), cell("actions-workflow"), status("queued"), dim("3s ago"), cell("no runner yet")];
        let first = |width| output(width, false).draw(Stream::Stdout, &headers, vec![row()]);
        let names = |text: String| text.lines().next().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "));
        for (width, expected) in [
            (None, "ID TYPE STATUS CREATED WHY"),
            (Some(100), "ID TYPE STATUS CREATED WHY"),
            (Some(72), "ID TYPE STATUS WHY"),
            (Some(60), "ID STATUS WHY"),
        ] {
            assert!(first(width).contains(id), "{width:?}");
            assert_eq!(names(first(width)).as_deref(), Some(expected), "{width:?}");
        }
    }

    #[test]
    fn colour_only_where_it_is_wanted() {
        let row = || vec![vec![status("failed")]];
        assert!(!output(None, false).draw(Stream::Stdout, &["S"], row()).contains('\u{1b}'));
        assert!(output(None, true).draw(Stream::Stdout, &["S"], row()).contains('\u{1b}'));
    }

    #[test]
    fn escapes_in_names_do_not_reach_the_terminal() {
        assert_eq!(cell("a\u{1b}[31mb").text, "a\u{fffd}[31mb");
    }

    #[test]
    fn durations_sizes_and_times_are_short() {
        for (ms, text) in [
            (5, "5ms"),
            (3_000, "3s"),
            (60_000, "1m"),
            (90_000, "1m30s"),
            (700_000, "11m"),
            (3_600_000, "1h"),
            (5_400_000, "1h30m"),
            (100_000_000, "27h"),
            (864_000_000, "10d"),
        ] {
            assert_eq!(short(Duration::from_millis(ms)), text);
        }
        for (count, text) in [(0, "0 B"), (1023, "1023 B"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB")] {
            assert_eq!(bytes(count), text);
        }
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        assert_eq!(relative(now.plus_s(-3), now), "3s ago");
        assert_eq!(relative(now.plus_s(120), now), "in 2m");
        assert_eq!(output(None, false).time(now), now.to_string());
    }
}
