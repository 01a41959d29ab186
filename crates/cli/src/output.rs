//! The only place that prints: data on stdout, all else on stderr.
//!
//! A terminal gets colour and tables that wrap within its width. A pipe gets the same tables without colour, a line for each row, at
//! most 100 columns wide. `--wide` prints whole ids, exact times and all columns, a line for each row, however long. `--json` prints
//! one document. Green is good, red is bad, yellow is on its way, and every colour has a word beside it.

mod table;
mod words;

use std::io::{self, IsTerminal as _, Write as _};
use std::time::SystemTime;

use comfy_table::Table;
use model::Timestamp;
use owo_colors::{OwoColorize as _, Style};
use serde::Serialize;

use crate::args::{Color, Global};
use crate::error::{CliError, Exit};
use table::{Fit, Form};

pub(crate) use table::{Cell, Tone, brief_id, cell, dim, id, status, strong, tone};
pub(crate) use words::{bytes, clean, count, one_line, short};

/// How wide the table of a list is in a pipe.
const PIPE_WIDTH: u16 = 100;

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub json: bool,
    /// Whole ids, exact times, all columns.
    pub wide: bool,
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

impl Output {
    pub(crate) fn detect(global: &Global) -> Self {
        let json = global.json;
        let stdout_terminal = io::stdout().is_terminal();
        let stderr_terminal = io::stderr().is_terminal();
        let term = std::env::var_os("TERM");
        let dumb = term.as_ref().is_some_and(|v| v == "dumb");
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()) || dumb;
        let people = stdout_terminal && stderr_terminal && io::stdin().is_terminal();
        let colored = |terminal: bool| match global.color {
            Color::Auto => terminal && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        Self {
            json,
            wide: global.wide,
            stdout_terminal,
            stderr_terminal,
            live: people && !json && !global.plain && !dumb && term.is_some(),
            color_stdout: colored(stdout_terminal),
            color_stderr: colored(stderr_terminal),
            // A terminal that says 0 does not know its width.
            width_stdout: Table::new().width().filter(|w| *w > 0),
            width_stderr: Table::new().use_stderr().width().filter(|w| *w > 0),
        }
    }

    /// Whether a person can read a question and answer it.
    pub(crate) fn can_ask(&self) -> bool {
        self.stderr_terminal && io::stdin().is_terminal()
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
        let rows = items.iter().map(row).collect();
        self.stdout_bytes(table::draw(self.form(Stream::Stdout, Fit::Cut), headers, rows).as_bytes())
    }

    /// A table whose text is nowhere else: it is never cut.
    pub(crate) fn table(&self, headers: &[&str], rows: Vec<Vec<Cell>>) -> io::Result<()> {
        self.stdout_bytes(table::draw(self.form(Stream::Stdout, Fit::Flow), headers, rows).as_bytes())
    }

    /// A table that accompanies the data.
    pub(crate) fn side_table(&self, headers: &[&str], rows: Vec<Vec<Cell>>) {
        self.stderr_bytes(table::draw(self.form(Stream::Stderr, Fit::Flow), headers, rows).as_bytes());
    }

    /// Keys and values, one pair a line; a key without a value is left out.
    pub(crate) fn pairs(&self, pairs: Vec<(&str, Cell)>) -> io::Result<()> {
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        let rows: Vec<Vec<Cell>> = given.map(|(key, value)| vec![dim(key), value]).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let form = Form { wide: true, ..self.form(Stream::Stdout, Fit::Flow) };
        self.stdout_bytes(table::draw(form, &[], rows).as_bytes())
    }

    /// How a table is drawn; `piped` is how it fits where there is no terminal.
    fn form(&self, stream: Stream, piped: Fit) -> Form {
        let (terminal, color) = match stream {
            Stream::Stdout => (self.width_stdout, self.color_stdout),
            Stream::Stderr => (self.width_stderr, self.color_stderr),
        };
        let (fit, width) = match terminal {
            _ if self.wide => (Fit::Flow, PIPE_WIDTH),
            Some(width) => (Fit::Wrap, width),
            None => (piped, PIPE_WIDTH),
        };
        Form { fit, width: usize::from(width), color, wide: self.wide }
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

    /// A time in a table: `3 min ago`; with `--wide`, to the second.
    pub(crate) fn time(&self, time: Timestamp) -> String {
        if self.wide { words::exact(time) } else { words::relative(time, now()) }
    }

    pub(crate) fn time_or_dash(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "-".to_owned(), |t| self.time(t))
    }

    /// A time where one thing is shown: `2026-11-18 16:21:24Z (3 min ago)`.
    pub(crate) fn moment(&self, time: Timestamp) -> String {
        format!("{} ({})", words::exact(time), words::relative(time, now()))
    }

    pub(crate) fn moment_or_dash(&self, time: Option<Timestamp>) -> String {
        time.map_or_else(|| "-".to_owned(), |t| self.moment(t))
    }

    /// An id inside the text of a table.
    pub(crate) fn id(&self, id: &str) -> String {
        if self.wide { id.to_owned() } else { brief_id(id) }
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_system(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(wide: bool) -> Output {
        Output {
            json: false,
            wide,
            stdout_terminal: false,
            stderr_terminal: false,
            live: false,
            color_stdout: false,
            color_stderr: false,
            width_stdout: None,
            width_stderr: Some(72),
        }
    }

    #[test]
    fn a_pipe_gets_100_columns_and_wide_gets_everything() {
        let form = |wide, stream, piped| output(wide).form(stream, piped);
        let list = form(false, Stream::Stdout, Fit::Cut);
        assert_eq!((list.fit, list.width, list.wide), (Fit::Cut, 100, false));
        assert_eq!(form(false, Stream::Stdout, Fit::Flow).fit, Fit::Flow, "what is nowhere else is not cut");
        assert_eq!(
            (form(true, Stream::Stdout, Fit::Cut).fit, form(true, Stream::Stderr, Fit::Cut).wide),
            (Fit::Flow, true)
        );
        let terminal = form(false, Stream::Stderr, Fit::Cut);
        assert_eq!((terminal.fit, terminal.width), (Fit::Wrap, 72));
    }

    #[test]
    fn tables_say_how_long_ago_and_details_when() {
        let then = now().plus_s(-180);
        let to_the_second = words::exact(then);
        assert_eq!(output(false).time(then), "3 min ago");
        assert_eq!(output(true).time(then), to_the_second);
        assert_eq!(output(false).moment(then), format!("{to_the_second} (3 min ago)"));
        assert_eq!(output(false).moment_or_dash(None), "-");
        let id = "job0123456789abcdefghijklm";
        assert_eq!((output(false).id(id).as_str(), output(true).id(id).as_str()), ("job…fghijklm", id));
    }
}
