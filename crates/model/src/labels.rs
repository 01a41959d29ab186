//! Labels, and selectors that choose by them.

use std::collections::BTreeMap;
use std::fmt;

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

pub const KEY_BYTES_MAX: usize = 63;
pub const VALUE_BYTES_MAX: usize = 1024;
/// Labels of one thing.
pub const LABELS_MAX: usize = 64;
/// Terms of one selector.
pub const TERMS_MAX: usize = 32;

/// Checks the key of a label; the error says what to do.
pub fn check_key(key: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(format!("the key of a label has 1 to {KEY_BYTES_MAX} characters, this one has {}", key.len()));
    }
    if !key.chars().all(good) || !key.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        let rule = "letters, digits, `-`, `_`, `.` and `/`, and end it with a letter or a digit";
        return Err(format!("`{}` can't be the key of a label: use {rule}", key.escape_default()));
    }
    Ok(())
}

/// Checks labels as a whole.
pub fn check(labels: &Labels) -> Result<(), String> {
    if labels.len() > LABELS_MAX {
        return Err(format!("there are {} labels; at most {LABELS_MAX} are allowed", labels.len()));
    }
    for (key, value) in labels {
        check_key(key)?;
        if value.len() > VALUE_BYTES_MAX || value.chars().any(char::is_control) {
            return Err(format!("label `{key}`: a value is one line of at most {VALUE_BYTES_MAX} bytes"));
        }
    }
    Ok(())
}

/// `key=value,other!=value,key,!key`: all terms must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Is(String, String),
    /// Also where there is no such label.
    IsNot(String, String),
    Has(String),
    HasNot(String),
}

impl Selector {
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms: Vec<&str> = text.split(',').map(str::trim).filter(|term| !term.is_empty()).collect();
        if terms.len() > TERMS_MAX {
            return Err(format!("the selector has {} terms; at most {TERMS_MAX} are allowed", terms.len()));
        }
        terms.into_iter().map(Term::parse).collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|term| match term {
            Term::Is(key, value) => labels.get(key) == Some(value),
            Term::IsNot(key, value) => labels.get(key) != Some(value),
            Term::Has(key) => labels.contains_key(key),
            Term::HasNot(key) => !labels.contains_key(key),
        })
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, String> {
        let trimmed = |(key, value): (&str, &str)| (key.trim().to_owned(), value.trim().to_owned());
        let term = if let Some((key, value)) = text.split_once("!=").map(trimmed) {
            Self::IsNot(key, value)
        } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')).map(trimmed) {
            Self::Is(key, value)
        } else if let Some(key) = text.strip_prefix('!') {
            Self::HasNot(key.trim().to_owned())
        } else {
            Self::Has(text.to_owned())
        };
        let (Self::Is(key, _) | Self::IsNot(key, _) | Self::Has(key) | Self::HasNot(key)) = &term;
        check_key(key).map_err(|wrong| format!("{wrong}; write a selector like `env=prod,tier!=dev,team,!old`"))?;
        Ok(term)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, term) in self.0.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            match term {
                Term::Is(key, value) => write!(f, "{comma}{key}={value}")?,
                Term::IsNot(key, value) => write!(f, "{comma}{key}!={value}")?,
                Term::Has(key) => write!(f, "{comma}{key}")?,
                Term::HasNot(key) => write!(f, "{comma}!{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn selectors_choose() {
        let table = [
            ("", "", true),
            ("env=prod", "env=prod,tier=gold", true),
            ("env==prod", "env=prod", true),
            ("env=prod,tier=dev", "env=prod,tier=gold", false),
            ("tier!=dev", "env=prod", true),
            ("tier!=dev", "tier=dev", false),
            ("env", "env=prod", true),
            ("env", "tier=gold", false),
            ("!env", "tier=gold", true),
            ("!env", "env=prod", false),
            (" env = prod , ", "env=prod", true),
            ("env=", "env=prod", false),
            ("url=a=b", "url=a=b", true),
        ];
        for (selector, on, expected) in table {
            let parsed = Selector::parse(selector).expect(selector);
            assert_eq!(parsed.matches(&labels(on)), expected, "{selector} on {on}");
            assert_eq!(Selector::parse(&parsed.to_string()), Ok(parsed), "{selector}");
        }
        for wrong in ["=x", "a b=c", "!", "é=1", "a-=1", &"x,".repeat(TERMS_MAX + 1)] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_have_bounds() {
        assert_eq!(check(&labels("env=prod,example.com/team=a b,empty=")), Ok(()));
        for (key, value) in [("", "x"), ("a b", "x"), ("a-", "x"), ("a", "two\nlines"), ("a", &"x".repeat(1025))] {
            assert!(check(&Labels::from([(key.to_owned(), value.to_owned())])).is_err(), "{key:?}");
        }
        let many = (0..=LABELS_MAX).map(|n| (format!("k{n}"), String::new())).collect();
        assert!(check(&many).is_err());
    }
}
