//! Keeps secret values out of logs, outputs and error texts.
//!
//! A value is found as it is, line by line, and in the forms that tools print it in: base64, hexadecimal, URL and JSON
//! escapes. Values shorter than `SECRET_BYTES_MIN` are not masked: they would blot out half of every log.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Shortest value that is masked.
pub const SECRET_BYTES_MIN: usize = model::spec::SECRET_BYTES_MIN;
const MASK: &[u8] = b"***";

/// The needles of one execution, shared by all its pipes.
#[derive(Debug)]
pub struct Masks {
    /// Sorted, for the search by prefix.
    needles: Vec<Vec<u8>>,
    longest: usize,
    first_bytes: [bool; 256],
    /// None without needles.
    finder: Option<AhoCorasick>,
}

impl Masks {
    pub fn new(secrets: &[String]) -> Self {
        let mut needles = BTreeSet::new();
        for secret in secrets {
            for value in [secret.as_str(), secret.trim()] {
                needles.extend(forms(value));
            }
            needles.extend(secret.lines().map(|line| line.trim().as_bytes().to_vec()));
        }
        let needles: Vec<Vec<u8>> = needles.into_iter().filter(|n| n.len() >= SECRET_BYTES_MIN).collect();
        let mut first_bytes = [false; 256];
        for needle in &needles {
            first_bytes[usize::from(needle[0])] = true;
        }
        let finder = (!needles.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&needles)
                .expect("the secrets of a spec are far below the automaton's limits")
        });
        Self { longest: needles.iter().map(Vec::len).max().unwrap_or(0), needles, first_bytes, finder }
    }

    /// Masks a complete text.
    pub fn mask_text(&self, text: &str) -> String {
        let mut masker = Masker::new(self);
        let mut bytes = masker.push(text.as_bytes());
        bytes.extend(masker.flush());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Masks every string in a JSON value, names included.
    pub fn mask_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.mask_text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|v| self.mask_value(v)).collect()),
            Value::Object(map) => {
                Value::Object(map.into_iter().map(|(k, v)| (self.mask_text(&k), self.mask_value(v))).collect())
            }
            // A secret of digits can be written as a number.
            Value::Number(number) => {
                let text = number.to_string();
                let masked = self.mask_text(&text);
                if masked == text { Value::Number(number) } else { Value::String(masked) }
            }
            Value::Null | Value::Bool(_) => value,
        }
    }

    /// Where the first suffix starts that could still grow into a needle.
    fn open_suffix(&self, bytes: &[u8], from: usize) -> usize {
        let earliest = from.max((bytes.len() + 1).saturating_sub(self.longest));
        (earliest..bytes.len())
            .find(|&start| {
                let suffix = &bytes[start..];
                self.first_bytes[usize::from(suffix[0])] && {
                    // Of all needles with this prefix the longest need not come first, but the shortest may be the
                    // suffix itself; so look at the first one that sorts after it.
                    let at = self.needles.partition_point(|needle| needle.as_slice() <= suffix);
                    self.needles.get(at).is_some_and(|needle| needle.starts_with(suffix))
                }
            })
            .unwrap_or(bytes.len())
    }
}

/// Masks one pipe as it streams by. Holds back only what may be the beginning of a secret.
#[derive(Debug)]
pub struct Masker<'a> {
    masks: &'a Masks,
    held: Vec<u8>,
}

impl<'a> Masker<'a> {
    pub fn new(masks: &'a Masks) -> Self {
        Self { masks, held: Vec::new() }
    }

    /// Takes bytes in, gives masked bytes out.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.settle(false)
    }

    /// The end of the pipe: gives out what was held back.
    pub fn flush(&mut self) -> Vec<u8> {
        self.settle(true)
    }

    fn settle(&mut self, end: bool) -> Vec<u8> {
        let Some(finder) = &self.masks.finder else { return std::mem::take(&mut self.held) };
        let bytes = std::mem::take(&mut self.held);
        let mut out = Vec::with_capacity(bytes.len());
        let mut done = 0;
        loop {
            // A match that starts before every open suffix can't become longer, nor can one begin before it.
            let open = if end { bytes.len() } else { self.masks.open_suffix(&bytes, done) };
            let found = finder.find(aho_corasick::Input::new(&bytes).range(done..)).filter(|m| m.start() < open);
            let Some(found) = found else {
                out.extend_from_slice(&bytes[done..open]);
                self.held = bytes[open..].to_vec();
                return out;
            };
            out.extend_from_slice(&bytes[done..found.start()]);
            out.extend_from_slice(MASK);
            done = found.end();
        }
    }
}

/// The forms in which a value may show up.
fn forms(value: &str) -> Vec<Vec<u8>> {
    if value.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let bytes = value.as_bytes();
    let mut out = vec![bytes.to_vec()];
    out.extend([STANDARD.encode(bytes), URL_SAFE.encode(bytes)].map(String::into_bytes));
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        // Inside a longer text the value can begin at each of the three places of a group; only the characters that
        // depend on nothing but the value are looked for.
        for (before, dependent) in [(0, 0), (1, 2), (2, 3)] {
            let padded = [&[0; 2][..before], bytes].concat();
            let text = engine.encode(&padded).into_bytes();
            out.push(text[dependent..padded.len() * 8 / 6].to_vec());
        }
    }
    out.extend([hex::encode(bytes), hex::encode_upper(bytes)].map(String::into_bytes));
    let url = url_encode(value);
    out.push(url.replace("%20", "+").into_bytes());
    out.push(url.to_ascii_lowercase().into_bytes());
    out.push(url.into_bytes());
    let json = serde_json::to_string(value).unwrap_or_default();
    out.push(json.trim_matches('"').as_bytes().to_vec());
    out
}

fn url_encode(text: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mask(secrets: &[&str], text: &str) -> String {
        let secrets: Vec<String> = secrets.iter().map(|s| (*s).to_owned()).collect();
        Masks::new(&secrets).mask_text(text)
    }

    #[test]
    fn a_secret_is_found_in_every_form() {
        let secret = "p@ss word/\"1\"?";
        let cases = [
            secret.to_owned(),
            STANDARD.encode(secret),
            STANDARD.encode(format!("a{secret}")),
            STANDARD.encode(format!("ab{secret}c")),
            URL_SAFE_NO_PAD.encode(format!("abc{secret}")),
            hex::encode(secret),
            hex::encode_upper(secret),
            url_encode(secret),
            url_encode(secret).replace("%20", "+"),
            serde_json::to_string(secret).expect("json"),
        ];
        for text in cases {
            let masked = mask(&[secret], &text);
            assert!(masked.contains("***") && masked.len() < text.len(), "{text} -> {masked}");
        }
        assert_eq!(mask(&["first-line\nsecond-line\n"], "x second-line y"), "x *** y");
        assert_eq!(mask(&["short"], "short"), "short");
        assert_eq!(mask(&["secret", "secretive"], "secretive secret"), "*** ***");
        let masks = Masks::new(&["hunter2222".to_owned()]);
        let value = serde_json::json!({"a": ["hunter2222", 1], "hunter2222": "x"});
        assert_eq!(masks.mask_value(value), serde_json::json!({"a": ["***", 1], "***": "x"}));
    }

    proptest! {
        #[test]
        fn cuts_change_nothing_and_no_secret_gets_through(
            secrets in proptest::collection::vec("[ab]{6,9}", 1..4),
            pieces in proptest::collection::vec("[abc]{0,12}", 0..30),
        ) {
            let masks = Masks::new(&secrets);
            let whole = pieces.concat();
            let mut masker = Masker::new(&masks);
            let mut streamed: Vec<u8> = Vec::new();
            for piece in &pieces {
                streamed.extend(masker.push(piece.as_bytes()));
            }
            streamed.extend(masker.flush());
            let streamed = String::from_utf8(streamed).expect("text");
            prop_assert_eq!(&streamed, &masks.mask_text(&whole));
            for secret in &secrets {
                prop_assert!(!streamed.contains(secret));
            }
        }
    }
}
