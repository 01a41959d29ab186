//! Go's `Sprintf`, with the verbs that texts use, and its way of telling mistakes: `%!d(string=x)`.

use std::sync::Arc;

use crate::{
    float,
    out::{Budget, Out, Wrong},
    value::Value,
};

const MAX_WIDTH_CHARS: usize = 10_000;

#[derive(Default)]
struct Verb {
    minus: bool,
    plus: bool,
    sharp: bool,
    blank: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

pub(crate) fn sprintf(format: &str, args: &[Value], budget: &mut Budget) -> Result<Arc<str>, Wrong> {
    let mut out = budget.out();
    let mut args_left = args.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push(&rest[..at])?;
        let (mut verb, letter, after) = verb(&rest[at + 1..])?;
        // Before `v` a plus asks for the names of fields.
        verb.plus &= letter != Some('v');
        rest = after;
        match letter {
            None => out.push("%!(NOVERB)")?,
            Some('%') => out.push("%")?,
            Some(letter) => match args_left.next() {
                None => out.push(&format!("%!{letter}(MISSING)"))?,
                Some(value) => write(&verb, letter, value, &mut out, budget)?,
            },
        }
    }
    out.push(rest)?;
    let extra = args_left.as_slice();
    for (at, value) in extra.iter().enumerate() {
        out.push(if at == 0 { "%!(EXTRA " } else { ", " })?;
        match value {
            Value::Nil => out.push("<nil>")?,
            value => {
                out.push(value.type_name())?;
                out.push("=")?;
                out.push(&value.text(budget)?)?;
            }
        }
    }
    out.push(if extra.is_empty() { "" } else { ")" })?;
    Ok(out.text.into())
}

fn verb(text: &str) -> Result<(Verb, Option<char>, &str), Wrong> {
    let mut verb = Verb::default();
    let mut rest = text;
    loop {
        let flag = match rest.bytes().next() {
            Some(b'-') => &mut verb.minus,
            Some(b'+') => &mut verb.plus,
            Some(b'#') => &mut verb.sharp,
            Some(b' ') => &mut verb.blank,
            Some(b'0') => &mut verb.zero,
            _ => break,
        };
        *flag = true;
        rest = &rest[1..];
    }
    verb.width = number(&mut rest)?;
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        verb.precision = Some(number(&mut rest)?.unwrap_or(0));
    }
    let letter = rest.chars().next();
    if letter == Some('*') || letter == Some('[') {
        return Err(Wrong::hint("printf takes no `*` and no `[n]` in a verb", "write the width as a number"));
    }
    Ok((verb, letter, &rest[letter.map_or(0, char::len_utf8)..]))
}

fn number(rest: &mut &str) -> Result<Option<usize>, Wrong> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    *rest = after;
    match digits.parse() {
        _ if digits.is_empty() => Ok(None),
        Ok(n) if n <= MAX_WIDTH_CHARS => Ok(Some(n)),
        _ => Err(format!("printf pads to {MAX_WIDTH_CHARS} characters at most").into()),
    }
}

fn write(verb: &Verb, letter: char, value: &Value, out: &mut Out, budget: &mut Budget) -> Result<(), Wrong> {
    let text = match (letter, value) {
        ('T', value) => value.type_name().to_string(),
        ('v', Value::Nil) => "<nil>".into(),
        (_, Value::Nil) => return out.push(&format!("%!{letter}(<nil>)")),
        ('v' | 'f' | 'F' | 'e' | 'E' | 'g' | 'G', Value::Float(n)) => {
            return pad(verb, &signed(verb, decimal(letter, verb.precision, *n)), true, out);
        }
        ('v' | 'd', Value::Int(n) | Value::Int64(n)) => return pad(verb, &integer(verb, *n), true, out),
        ('v' | 't', Value::Bool(b)) => b.to_string(),
        ('v' | 's', Value::Str(_) | Value::List(..) | Value::Map(..)) => cut(verb, &value.text(budget)?),
        ('q', Value::Str(text)) => quote(&cut(verb, text)),
        ('q', Value::List(..) | Value::Map(..)) => quote(&value.text(budget)?),
        ('x' | 'X', Value::Str(text)) => hex(text, letter, if verb.blank { " " } else { "" }),
        ('x', Value::Int(n) | Value::Int64(n)) => radix(*n, if verb.sharp { "0x" } else { "" }, |n| format!("{n:x}")),
        ('X', Value::Int(n) | Value::Int64(n)) => radix(*n, if verb.sharp { "0X" } else { "" }, |n| format!("{n:X}")),
        ('o', Value::Int(n) | Value::Int64(n)) => radix(*n, if verb.sharp { "0" } else { "" }, |n| format!("{n:o}")),
        ('b', Value::Int(n) | Value::Int64(n)) => radix(*n, if verb.sharp { "0b" } else { "" }, |n| format!("{n:b}")),
        ('c', Value::Int(n) | Value::Int64(n)) => character(*n).to_string(),
        ('q', Value::Int(n) | Value::Int64(n)) => quote_character(character(*n)),
        ('U', Value::Int(n) | Value::Int64(n)) => format!("U+{n:04X}"),
        // Width and precision hold for what is told of the mistake, too.
        (_, value) => {
            out.push(&format!("%!{letter}({}=", value.type_name()))?;
            write(verb, 'v', value, out, budget)?;
            return out.push(")");
        }
    };
    pad(verb, &text, matches!(value, Value::Int(_) | Value::Int64(_)), out)
}

fn pad(verb: &Verb, text: &str, numeric: bool, out: &mut Out) -> Result<(), Wrong> {
    let missing = verb.width.unwrap_or(0).saturating_sub(text.chars().count());
    if verb.minus {
        out.push(text)?;
        return out.repeat(" ", missing);
    }
    if verb.zero && !(numeric && verb.precision.is_some() && !text.contains('.')) {
        let sign = if numeric && text.starts_with(['-', '+', ' ']) { 1 } else { 0 };
        out.push(&text[..sign])?;
        out.repeat("0", missing)?;
        return out.push(&text[sign..]);
    }
    out.repeat(" ", missing)?;
    out.push(text)
}

fn decimal(letter: char, precision: Option<usize>, n: f64) -> String {
    match (letter, precision) {
        ('f' | 'F', digits) => format!("{n:.*}", digits.unwrap_or(6)),
        ('e', digits) => float::scientific(n, digits.unwrap_or(6)),
        ('E', digits) => float::scientific(n, digits.unwrap_or(6)).to_uppercase(),
        ('g', None) => float::general(n),
        ('G', None) => float::general(n).to_uppercase(),
        ('g' | 'v', Some(digits)) => float::significant(n, digits),
        ('G', Some(digits)) => float::significant(n, digits).to_uppercase(),
        _ => float::plain(n),
    }
}

fn signed(verb: &Verb, text: String) -> String {
    match (verb.plus, verb.blank) {
        (true, _) if !text.starts_with(['-', '+']) => format!("+{text}"),
        (false, true) if !text.starts_with(['-', '+']) => format!(" {text}"),
        _ => text,
    }
}

fn integer(verb: &Verb, n: i64) -> String {
    let digits = match verb.precision {
        Some(0) if n == 0 => String::new(),
        precision => format!("{:0>1$}", n.unsigned_abs().to_string(), precision.unwrap_or(0)),
    };
    signed(verb, if n < 0 { format!("-{digits}") } else { digits })
}

fn radix(n: i64, prefix: &str, digits: impl Fn(u64) -> String) -> String {
    format!("{}{prefix}{}", if n < 0 { "-" } else { "" }, digits(n.unsigned_abs()))
}

fn character(n: i64) -> char {
    u32::try_from(n).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn cut(verb: &Verb, text: &str) -> String {
    match verb.precision {
        Some(chars) => text.chars().take(chars).collect(),
        None => text.into(),
    }
}

fn hex(text: &str, letter: char, between: &str) -> String {
    let digit = |byte: u8| if letter == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") };
    text.bytes().map(digit).collect::<Vec<_>>().join(between)
}

fn quote_character(c: char) -> String {
    match c {
        '\'' => "'\\''".into(),
        '"' => "'\"'".into(),
        c => format!("'{}'", quote(&c.to_string()).trim_matches('"')),
    }
}

/// A Go string literal.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\u{b}' => quoted.push_str("\\v"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{a0}' | '\u{ad}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
