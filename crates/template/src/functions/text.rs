//! Texts. Offsets are bytes, as in Go; a cut inside a character is an error.

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

use super::{MANY, Row, int, text};
use crate::{
    out::{Budget, Wrong},
    printf,
    value::{Map, Value},
};

pub(super) const TABLE: &[Row] = &[
    ("lower", 1, 1, |args, _| Ok(Value::str(text(&args[0])?.chars().map(lower).collect::<String>()))),
    ("upper", 1, 1, |args, _| Ok(Value::str(text(&args[0])?.chars().map(upper).collect::<String>()))),
    ("title", 1, 1, |args, _| words(args, upper, separates)),
    ("untitle", 1, 1, |args, _| words(args, lower, char::is_whitespace)),
    ("trim", 1, 1, |args, _| Ok(Value::str(text(&args[0])?.trim()))),
    ("trimAll", 2, 2, trim_all),
    ("trimall", 2, 2, trim_all),
    ("trimSuffix", 2, 2, |args, _| {
        Ok(Value::str(text(&args[1])?.strip_suffix(&**text(&args[0])?).unwrap_or(text(&args[1])?)))
    }),
    ("trimPrefix", 2, 2, |args, _| {
        Ok(Value::str(text(&args[1])?.strip_prefix(&**text(&args[0])?).unwrap_or(text(&args[1])?)))
    }),
    ("replace", 3, 3, replace),
    ("repeat", 2, 2, repeat),
    ("contains", 2, 2, |args, _| Ok(Value::Bool(text(&args[1])?.contains(&**text(&args[0])?)))),
    ("hasPrefix", 2, 2, |args, _| Ok(Value::Bool(text(&args[1])?.starts_with(&**text(&args[0])?)))),
    ("hasSuffix", 2, 2, |args, _| Ok(Value::Bool(text(&args[1])?.ends_with(&**text(&args[0])?)))),
    ("nospace", 1, 1, |args, _| Ok(Value::str(text(&args[0])?.split_whitespace().collect::<String>()))),
    ("quote", 0, MANY, |args, budget| quoted(args, budget, printf::quote)),
    ("squote", 0, MANY, |args, budget| quoted(args, budget, |text| format!("'{text}'"))),
    ("cat", 0, MANY, |args, budget| quoted(args, budget, str::to_string)),
    ("substr", 3, 3, substr),
    ("trunc", 2, 2, trunc),
    ("toString", 1, 1, |args, budget| Ok(Value::Str(args[0].text(budget)?))),
    ("toStrings", 1, 1, |args, budget| strings(&args[0], budget).and_then(|items| budget.list(items))),
    ("sortAlpha", 1, 1, sort_alpha),
    ("join", 2, 2, join),
    ("splitList", 2, 2, |args, budget| pieces(args, budget).and_then(|items| budget.list(items))),
    ("split", 2, 2, split),
    ("splitn", 3, 3, splitn),
    ("plural", 3, 3, |args, _| Ok(Value::Str(text(&args[usize::from(int(&args[2])? != 1)])?.clone()))),
    ("sha256sum", 1, 1, |args, _| Ok(Value::str(hex::encode(Sha256::digest(text(&args[0])?.as_bytes()))))),
    ("indent", 2, 2, |args, budget| indent(args, budget, "")),
    ("nindent", 2, 2, |args, budget| indent(args, budget, "\n")),
    ("b64enc", 1, 1, |args, _| Ok(Value::str(BASE64_STANDARD.encode(text(&args[0])?.as_bytes())))),
    ("b64dec", 1, 1, b64dec),
];

fn trim_all(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let set = text(&args[0])?;
    Ok(Value::str(text(&args[1])?.trim_matches(|c| set.contains(c))))
}

/// Each word by its first letter.
fn words(args: &[Value], first: fn(char) -> char, separates: fn(char) -> bool) -> Result<Value, Wrong> {
    let mut starts = true;
    let letter = |c: char| {
        let done = if starts { first(c) } else { c };
        starts = separates(c);
        done
    };
    Ok(Value::str(text(&args[0])?.chars().map(letter).collect::<String>()))
}

fn separates(c: char) -> bool {
    if c.is_ascii() { !c.is_ascii_alphanumeric() && c != '_' } else { c.is_whitespace() }
}

/// One letter stays one letter: `ß` is its own capital.
fn upper(c: char) -> char {
    let mut letters = c.to_uppercase();
    letters.next().filter(|_| letters.next().is_none()).unwrap_or(c)
}

fn lower(c: char) -> char {
    let mut letters = c.to_lowercase();
    letters.next().filter(|_| letters.next().is_none()).unwrap_or(c)
}

fn replace(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let (old, new, text) = (text(&args[0])?, text(&args[1])?, text(&args[2])?);
    let mut out = budget.out();
    let mut from = 0;
    for (at, found) in text.match_indices(&**old) {
        out.push(&text[from..at])?;
        out.push(new)?;
        from = at + found.len();
    }
    out.push(&text[from..])?;
    Ok(Value::str(out.text))
}

fn repeat(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let times = usize::try_from(int(&args[0])?).map_err(|_| Wrong::from("negative count"))?;
    let mut out = budget.out();
    out.repeat(text(&args[1])?, times)?;
    Ok(Value::str(out.text))
}

fn quoted(args: &[Value], budget: &mut Budget, quote: fn(&str) -> String) -> Result<Value, Wrong> {
    let mut out = budget.out();
    for (at, value) in args.iter().filter(|value| !matches!(value, Value::Nil)).enumerate() {
        out.push(if at > 0 { " " } else { "" })?;
        let plain = value.text(budget)?;
        out.push(&quote(&plain))?;
    }
    Ok(Value::str(out.text))
}

fn cut(text: &str, start: i64, end: i64) -> Result<Value, Wrong> {
    let range = usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .filter(|(start, end)| start <= end && *end <= text.len());
    let Some((start, end)) = range else {
        return Err(format!("{start} to {end} is outside of a text of {} bytes", text.len()).into());
    };
    match text.get(start..end) {
        Some(part) => Ok(Value::str(part)),
        None if start == end => Ok(Value::str("")),
        None => Err(format!("{start} to {end} cuts a character").into()),
    }
}

fn substr(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let (start, end, text) = (int(&args[0])?, int(&args[1])?, text(&args[2])?);
    let len = text.len() as i64;
    match (start, end) {
        (start, end) if start < 0 => cut(text, 0, end),
        (start, end) if end < 0 || end > len => cut(text, start, len),
        (start, end) => cut(text, start, end),
    }
}

fn trunc(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let (count, text) = (int(&args[0])?, text(&args[1])?);
    let len = text.len() as i64;
    match count {
        count if count < 0 && count.saturating_add(len) > 0 => cut(text, len + count, len),
        count if count >= 0 && len > count => cut(text, 0, count),
        _ => Ok(Value::Str(text.clone())),
    }
}

/// A list as texts, without what is nothing; anything else alone.
fn strings(value: &Value, budget: &mut Budget) -> Result<Vec<Value>, Wrong> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(items, _) => {
            budget.spend(items.len())?;
            let there = items.iter().filter(|item| !matches!(item, Value::Nil));
            there.map(|item| Ok(Value::Str(item.text(budget)?))).collect()
        }
        other => Ok(vec![Value::Str(other.text(budget)?)]),
    }
}

fn sort_alpha(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut items = strings(&args[0], budget)?;
    items.sort_by(|a, b| match (a, b) {
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        _ => std::cmp::Ordering::Equal,
    });
    budget.list(items)
}

fn join(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let separator = text(&args[0])?;
    let mut out = budget.out();
    for (at, item) in strings(&args[1], budget)?.iter().enumerate() {
        out.push(if at > 0 { separator } else { "" })?;
        out.push(text(item)?)?;
    }
    Ok(Value::str(out.text))
}

fn pieces(args: &[Value], budget: &mut Budget) -> Result<Vec<Value>, Wrong> {
    let (separator, text) = (text(&args[0])?, text(&args[1])?);
    budget.spend(text.len() / separator.len().max(1))?;
    if separator.is_empty() {
        return Ok(text.chars().map(|c| Value::str(c.encode_utf8(&mut [0; 4]) as &str)).collect());
    }
    Ok(text.split(&**separator).map(Value::str).collect())
}

fn split(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let pieces = pieces(args, budget)?;
    numbered(pieces, budget)
}

/// The last piece is the rest.
fn splitn(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let (separator, count, text) = (text(&args[0])?, int(&args[1])?, text(&args[2])?);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if separator.is_empty() {
        return Err("the separator is empty".into());
    }
    budget.spend(text.len() / separator.len())?;
    numbered(text.splitn(count, &**separator).map(Value::str).collect(), budget)
}

/// A map with the keys `_0`, `_1`, …
fn numbered(pieces: Vec<Value>, budget: &mut Budget) -> Result<Value, Wrong> {
    budget.check(Value::map(
        pieces.into_iter().enumerate().map(|(at, piece)| (format!("_{at}").into(), piece)).collect::<Map>(),
    ))
}

fn indent(args: &[Value], budget: &mut Budget, before: &str) -> Result<Value, Wrong> {
    let blanks = usize::try_from(int(&args[0])?).map_err(|_| Wrong::from("negative indent"))?;
    let mut out = budget.out();
    out.push(before)?;
    for (at, line) in text(&args[1])?.split('\n').enumerate() {
        out.push(if at > 0 { "\n" } else { "" })?;
        out.repeat(" ", blanks)?;
        out.push(line)?;
    }
    Ok(Value::str(out.text))
}

fn b64dec(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    match BASE64_STANDARD.decode(text(&args[0])?.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(decoded) => Ok(Value::str(decoded)),
        None => Err("this is not a text in base64".into()),
    }
}
