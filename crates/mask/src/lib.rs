//! Keeps secret values out of logs, outputs and error texts.
//!
//! A value is found as it is, line by line, and in the forms that tools print it in: base64, hexadecimal, URL and JSON
//! escapes, each also as tools wrap it; of a secret that is JSON, its leaves likewise. Values shorter than `SECRET_BYTES_MIN`
//! are not masked: they would blot out half of every log.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

/// Shortest value that is masked.
const SECRET_BYTES_MIN: usize = model::spec::SECRET_BYTES_MIN;
const MASK: &[u8] = b"***";
/// Needles up to this size in all are looked for with a table that is fast and takes about half a KiB for each byte.
const FAST_BYTES: usize = 64 << 10;
/// Where tools wrap long lines of base64 and hexadecimal.
const WRAPS: [usize; 3] = [60, 64, 76];
/// Parts of secrets that say nothing, and stand in every log.
const COMMON: [&str; 14] = [
    "account",
    "client",
    "default",
    "disabled",
    "enabled",
    "enforced",
    "localhost",
    "normal",
    "password",
    "postgres",
    "private",
    "public",
    "string",
    "unknown",
];

/// Needles, shared by all pipes.
pub struct Masks {
    /// Sorted, for the search by prefix.
    needles: Vec<Vec<u8>>,
    longest: usize,
    first_bytes: [bool; 256],
    /// None without needles.
    finder: Option<AhoCorasick>,
    /// Nothing is shown.
    all: bool,
}

impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masks").field("needles", &self.needles.len()).finish_non_exhaustive()
    }
}

impl Masks {
    pub fn new(secrets: &[String]) -> Self {
        let mut needles = BTreeSet::new();
        for secret in secrets {
            let parts = secret.lines().map(str::to_owned).chain(leaves(secret)).filter(|part| {
                let part = part.trim();
                part == secret.trim() || !COMMON.contains(&part.to_ascii_lowercase().as_str())
            });
            for value in std::iter::once(secret.clone()).chain(parts) {
                needles.extend(forms(&value));
                needles.extend(forms(value.trim()));
            }
        }
        let needles: Vec<Vec<u8>> = needles.into_iter().filter(|n| n.len() >= SECRET_BYTES_MIN).collect();
        let mut first_bytes = [false; 256];
        for needle in &needles {
            first_bytes[usize::from(needle[0])] = true;
        }
        let fast = needles.iter().map(Vec::len).sum::<usize>() <= FAST_BYTES;
        let finder = (!needles.is_empty()).then(|| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .kind(fast.then_some(AhoCorasickKind::DFA))
                .build(&needles)
                .expect("the secrets of a spec are far below the automaton's limits")
        });
        Self { longest: needles.iter().map(Vec::len).max().unwrap_or(0), needles, first_bytes, finder, all: false }
    }

    /// Masks whatever is said: for who does not know the secrets.
    pub fn of_everything() -> Self {
        Self { all: true, ..Self::new(&[]) }
    }

    /// Masks a complete text.
    pub fn mask_text(&self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        self.settle(text.as_bytes(), true, &mut out);
        String::from_utf8_lossy(&out).into_owned()
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

    /// Writes what is certain to `out`, masked, and returns how many bytes that took; at the `end` it is all.
    fn settle(&self, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let Some(finder) = &self.finder else {
            let hidden = self.all && !bytes.is_empty();
            out.extend_from_slice(if hidden { MASK } else { bytes });
            return bytes.len();
        };
        let mut done = 0;
        loop {
            // A match that starts before every open suffix can't become longer, nor can one begin before it.
            let open = if end { bytes.len() } else { self.open_suffix(bytes, done) };
            let found = finder.find(aho_corasick::Input::new(bytes).range(done..)).filter(|m| m.start() < open);
            let Some(found) = found else {
                out.extend_from_slice(&bytes[done..open]);
                return open;
            };
            out.extend_from_slice(&bytes[done..found.start()]);
            out.extend_from_slice(MASK);
            done = found.end();
        }
    }
}

/// Masks one pipe as it streams by. Holds back only what may be the beginning of a secret.
#[derive(Debug, Default)]
pub struct Masker {
    held: Vec<u8>,
}

impl Masker {
    /// Takes bytes in, adds masked ones to `out`.
    pub fn push(&mut self, masks: &Masks, bytes: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let taken = masks.settle(bytes, false, out);
            self.held.extend_from_slice(&bytes[taken..]);
        } else {
            self.held.extend_from_slice(bytes);
            let taken = masks.settle(&self.held, false, out);
            self.held.drain(..taken);
        }
    }

    /// The end of the pipe: gives out what was held back.
    pub fn flush(&mut self, masks: &Masks, out: &mut Vec<u8>) {
        masks.settle(&std::mem::take(&mut self.held), true, out);
    }
}

/// What a secret that is JSON holds: its strings and its numbers.
fn leaves(secret: &str) -> Vec<String> {
    fn walk(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                out.push(text.clone());
                out.extend(text.lines().map(str::to_owned));
            }
            Value::Number(number) => out.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            Value::Object(map) => map.values().for_each(|item| walk(item, out)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    let mut out = Vec::new();
    if secret.trim_start().starts_with(['{', '[']) {
        walk(&serde_json::from_str(secret).unwrap_or_default(), &mut out);
    }
    out
}

/// The forms in which a value may show up.
fn forms(value: &str) -> Vec<Vec<u8>> {
    if value.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let bytes = value.as_bytes();
    let mut coded: Vec<Vec<u8>> = [STANDARD.encode(bytes), URL_SAFE.encode(bytes)].map(String::into_bytes).into();
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        // Inside a longer text the value can begin at each of the three places of a group; only the characters that
        // depend on nothing but the value are looked for.
        for (before, dependent) in [(0, 0), (1, 2), (2, 3)] {
            let padded = [&[0; 2][..before], bytes].concat();
            let text = engine.encode(&padded).into_bytes();
            coded.push(text[dependent..padded.len() * 8 / 6].to_vec());
        }
    }
    coded.extend([hex::encode(bytes), hex::encode_upper(bytes)].map(String::into_bytes));
    let mut out = vec![bytes.to_vec()];
    for text in &coded {
        out.extend(
            WRAPS.iter().filter(|wrap| text.len() > **wrap).flat_map(|wrap| text.chunks(*wrap).map(<[u8]>::to_vec)),
        );
    }
    out.extend(coded);
    for kept in URL_KEPT {
        let url = url_encode(value, kept);
        out.push(url.replace("%20", "+").into_bytes());
        out.push(lower_escapes(&url).into_bytes());
        out.push(url.into_bytes());
    }
    let json = serde_json::to_string(value).unwrap_or_default();
    out.push(json.trim_matches('"').as_bytes().to_vec());
    out
}

/// What tools leave as it is in an URL, besides letters and digits: nothing, what RFC 3986 says, that and slashes, and what
/// JavaScript does.
const URL_KEPT: [&str; 4] = ["", "-._~", "-._~/", "-._~!*'()"];

fn url_encode(text: &str, kept: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(b).to_string(),
            b if kept.as_bytes().contains(&b) => char::from(b).to_string(),
            _ => format!("%{b:02X}"),
        })
        .collect()
}

/// `%2F` as `%2f`.
fn lower_escapes(url: &str) -> String {
    let mut parts = url.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let (escape, rest) = part.split_at(part.len().min(2));
        out + "%" + &escape.to_ascii_lowercase() + rest
    })
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
            url_encode(secret, "-._~"),
            url_encode(secret, "-._~/"),
            lower_escapes(&url_encode(secret, "")),
            url_encode(secret, "-._~").replace("%20", "+"),
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
            let mut masker = Masker::default();
            let mut streamed: Vec<u8> = Vec::new();
            for piece in &pieces {
                masker.push(&masks, piece.as_bytes(), &mut streamed);
            }
            masker.flush(&masks, &mut streamed);
            let streamed = String::from_utf8(streamed).expect("text");
            prop_assert_eq!(&streamed, &masks.mask_text(&whole));
            for secret in &secrets {
                prop_assert!(!streamed.contains(secret));
            }
        }
    }
}
