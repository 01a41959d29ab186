//! Values as text that people may see.

use serde_json::Value;

use crate::diff::Marks;
use crate::model::Shown;

const SENSITIVE: &str = "(sensitive)";

/// Writes values as JSON, with every text masked.
pub(crate) struct Show<'a>(pub(crate) &'a dyn Fn(&str) -> String);

impl Show<'_> {
    pub(crate) fn text(&self, value: &Value, sensitive: Marks) -> String {
        self.masked(value, sensitive).to_string()
    }

    fn masked(&self, value: &Value, sensitive: Marks) -> Value {
        match value {
            _ if sensitive.cover(Some(value)) => Value::String(SENSITIVE.to_owned()),
            Value::String(text) => Value::String((self.0)(text)),
            Value::Array(items) => {
                items.iter().enumerate().map(|(i, item)| self.masked(item, sensitive.item(i))).collect()
            }
            Value::Object(fields) => {
                fields.iter().map(|(name, field)| ((self.0)(name), self.masked(field, sensitive.field(name)))).collect()
            }
            Value::Number(number) => self.number(number),
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    /// A number that a mask changes is a text from then on.
    fn number(&self, number: &serde_json::Number) -> Value {
        let text = number.to_string();
        let masked = (self.0)(&text);
        if masked == text { Value::Number(number.clone()) } else { Value::String(masked) }
    }
}

/// The first characters of a text, and how many are cut.
pub(crate) fn shorten(text: &str, chars_max: usize) -> (String, u64) {
    window(text, 0, chars_max)
}

/// Shortens both values so that where they begin to differ can be seen.
pub(crate) fn shorten_pair(before: Shown, after: Shown, chars_max: usize) -> (Shown, Shown) {
    let start = match (&before, &after) {
        (Shown::Value { text: old, .. }, Shown::Value { text: new, .. }) => {
            let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
            // What fits anyway is shown from its beginning.
            if same < chars_max / 2 { 0 } else { same - chars_max / 4 }
        }
        _ => 0,
    };
    (shorten_from(before, start, chars_max), shorten_from(after, start, chars_max))
}

fn shorten_from(shown: Shown, start: usize, chars_max: usize) -> Shown {
    match shown {
        Shown::Value { text, .. } => {
            let (text, cut_chars) = window(&text, start, chars_max);
            Shown::Value { text, cut_chars }
        }
        other => other,
    }
}

fn window(text: &str, start: usize, chars_max: usize) -> (String, u64) {
    // As many bytes as may be shown are never more characters.
    if text.len() <= chars_max {
        return (text.to_owned(), 0);
    }
    let total = text.chars().count();
    if total <= chars_max {
        return (text.to_owned(), 0);
    }
    let start = start.min(total - chars_max.min(total));
    let mut shown = String::new();
    if start > 0 {
        shown.push('…');
    }
    shown.extend(text.chars().skip(start).take(chars_max));
    if start + chars_max < total {
        shown.push('…');
    }
    (shown, (total - chars_max) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_show_where_they_differ() {
        let value = |text: &str| Shown::Value { text: text.to_owned(), cut_chars: 0 };
        let same = "x".repeat(50);
        let (before, after) = shorten_pair(value(&format!("{same}old")), value(&format!("{same}new")), 20);
        assert_eq!(before, Shown::Value { text: format!("…{}old", "x".repeat(17)), cut_chars: 33 });
        assert_eq!(after, Shown::Value { text: format!("…{}new", "x".repeat(17)), cut_chars: 33 });
        let (before, after) = shorten_pair(Shown::Absent, value(&same), 20);
        assert_eq!(before, Shown::Absent);
        assert_eq!(after, Shown::Value { text: format!("{}…", "x".repeat(20)), cut_chars: 30 });
        assert_eq!(shorten("äöü", 3), ("äöü".to_owned(), 0));
        assert_eq!(shorten("äöüß", 3), ("äöü…".to_owned(), 1));
    }
}
