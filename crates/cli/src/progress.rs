//! One line on stderr that says what is being waited for. On a terminal it moves and goes away; elsewhere each new text is
//! a line of its own.

use crate::output::Output;

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const CLEAR_LINE: &str = "\r\u{1b}[2K";
/// How often the line moves.
pub(crate) const TICK_MS: u64 = 100;

#[derive(Debug)]
pub(crate) struct Progress<'a> {
    out: &'a Output,
    text: Option<String>,
    frame: usize,
}

impl<'a> Progress<'a> {
    pub(crate) const fn new(out: &'a Output) -> Self {
        Self { out, text: None, frame: 0 }
    }

    /// Shows a text; the same text again changes nothing.
    pub(crate) fn set(&mut self, text: &str) {
        if self.text.as_deref() == Some(text) {
            return;
        }
        self.text = Some(text.to_owned());
        if self.out.stderr_terminal {
            self.draw();
        } else {
            self.out.note(text);
        }
    }

    pub(crate) fn tick(&mut self) {
        if self.text.is_some() && self.out.stderr_terminal {
            self.frame = (self.frame + 1) % FRAMES.len();
            self.draw();
        }
    }

    /// Makes room for other output.
    pub(crate) fn clear(&mut self) {
        if self.text.take().is_some() && self.out.stderr_terminal {
            self.out.stderr_bytes(CLEAR_LINE.as_bytes());
        }
    }

    fn draw(&self) {
        let text = self.text.as_deref().unwrap_or_default();
        // A line that wraps could not be cleared any more.
        let width = usize::from(comfy_table::Table::new().use_stderr().width().unwrap_or(80));
        let text: String = text.chars().take(width.saturating_sub(3)).collect();
        self.out.stderr_bytes(format!("{CLEAR_LINE}{} {text}", FRAMES[self.frame]).as_bytes());
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
