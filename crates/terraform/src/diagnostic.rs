//! Errors and warnings as terraform reports them.

use serde_json::Value;

use crate::show::shorten;

const TEXT_CHARS: usize = 8_000;
const ONE_LINE_CHARS: usize = 1_000;

/// A diagnostic in the form of `-json`. Every field may be absent.
pub(crate) struct Diagnostic<'a>(pub(crate) &'a Value);

impl Diagnostic<'_> {
    pub(crate) fn is_error(&self) -> bool {
        self.0.get("severity").and_then(Value::as_str) != Some("warning")
    }

    /// All of it, on several lines.
    pub(crate) fn text(&self) -> String {
        let severity = if self.is_error() { "error" } else { "warning" };
        let mut text = format!("{severity}: {}", self.field("summary"));
        for line in shorten(self.field("detail"), TEXT_CHARS).0.lines() {
            text.push_str(if line.is_empty() { "\n" } else { "\n  " });
            text.push_str(line);
        }
        if let Some(place) = self.place() {
            text.push_str(&format!("\n  at {place}"));
        }
        self.push_snippet(&mut text);
        text
    }

    /// The summary, the detail and the place in one line.
    pub(crate) fn one_line(&self) -> String {
        let mut words = vec![self.field("summary")];
        if !self.field("detail").is_empty() {
            words.push(self.field("detail"));
        }
        let mut line = words.join(": ").split_whitespace().collect::<Vec<_>>().join(" ");
        line = shorten(&line, ONE_LINE_CHARS).0;
        if let Some(place) = self.file_and_line() {
            line.push_str(&format!(" ({place})"));
        }
        line
    }

    fn field(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn file_and_line(&self) -> Option<String> {
        let range = self.0.get("range")?;
        let file = range.get("filename")?.as_str()?;
        Some(format!("{file}:{}", range.pointer("/start/line")?.as_u64()?))
    }

    fn place(&self) -> Option<String> {
        let mut parts = Vec::from_iter(self.file_and_line());
        if let Some(context) = self.0.pointer("/snippet/context").and_then(Value::as_str) {
            parts.push(format!("in {context}"));
        }
        if !self.field("address").is_empty() {
            parts.push(format!("with {}", self.field("address")));
        }
        Some(parts.join(", ")).filter(|place| !place.is_empty())
    }

    fn push_snippet(&self, text: &mut String) {
        let Some(snippet) = self.0.get("snippet") else { return };
        let code = snippet.get("code").and_then(Value::as_str).unwrap_or_default();
        let first = snippet.get("start_line").and_then(Value::as_u64).unwrap_or(1);
        for (line, after_first) in shorten(code, TEXT_CHARS).0.lines().zip(0..) {
            text.push_str(&format!("\n    {}: {line}", first.saturating_add(after_first)));
        }
        for value in snippet.get("values").and_then(Value::as_array).into_iter().flatten() {
            let part = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
            let line = format!("{} {}", part("traversal"), part("statement"));
            text.push_str(&format!("\n    {}", shorten(&line, ONE_LINE_CHARS).0));
        }
    }
}
