//! Go's own functions.

use std::cmp::Ordering;

use super::{MANY, Row, text};
use crate::{
    out::{Budget, Wrong},
    printf,
    value::Value,
};

pub(super) const TABLE: &[Row] = &[
    ("and", 1, MANY, last),
    ("or", 1, MANY, last),
    ("not", 1, 1, |args, _| Ok(Value::Bool(!args[0].is_true()))),
    ("eq", 2, MANY, eq),
    ("ne", 2, 2, |args, _| Ok(Value::Bool(!equal(&args[0], &args[1])?))),
    ("lt", 2, 2, |args, _| Ok(Value::Bool(order(args)?.is_lt()))),
    ("le", 2, 2, |args, _| Ok(Value::Bool(order(args)?.is_le()))),
    ("gt", 2, 2, |args, _| Ok(Value::Bool(order(args)?.is_gt()))),
    ("ge", 2, 2, |args, _| Ok(Value::Bool(order(args)?.is_ge()))),
    ("len", 1, 1, len),
    ("index", 1, MANY, index),
    ("print", 0, MANY, |args, budget| Ok(Value::str(print(args, budget)?))),
    ("println", 0, MANY, println),
    ("printf", 1, MANY, |args, budget| Ok(Value::Str(printf::sprintf(text(&args[0])?, &args[1..], budget)?))),
    ("html", 1, MANY, |args, budget| escape(args, budget, html_of)),
    ("js", 1, MANY, |args, budget| escape(args, budget, js_of)),
    ("urlquery", 1, MANY, |args, budget| escape(args, budget, query_of)),
];

/// What is left when no argument decided.
fn last(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    Ok(args[args.len() - 1].clone())
}

fn eq(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    for other in &args[1..] {
        if equal(&args[0], other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn equal(a: &Value, b: &Value) -> Result<bool, Wrong> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a) | Value::Int64(a), Value::Int(b) | Value::Int64(b)) => Ok(a == b),
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        (Value::Str(a), Value::Str(b)) => Ok(a == b),
        (Value::Nil, other) | (other, Value::Nil) => Ok(matches!(other, Value::Nil)),
        (Value::List(..), Value::List(..)) | (Value::Map(..), Value::Map(..)) => {
            Err(Wrong::hint("lists and maps can't be compared", "compare their `toJson`"))
        }
        _ => Err(incompatible(a, b)),
    }
}

fn order(args: &[Value]) -> Result<Ordering, Wrong> {
    let ordering = match (&args[0], &args[1]) {
        (Value::Int(a) | Value::Int64(a), Value::Int(b) | Value::Int64(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        (a, b) => return Err(incompatible(a, b)),
    };
    ordering.ok_or_else(|| "not a number".into())
}

fn incompatible(a: &Value, b: &Value) -> Wrong {
    let message = format!("incompatible types for comparison: {} and {}", a.kind(), b.kind());
    match (a, b) {
        (Value::Float(_), Value::Int(_) | Value::Int64(_)) | (Value::Int(_) | Value::Int64(_), Value::Float(_)) => {
            Wrong::hint(message, "numbers in the data are floats: compare with `3.0`, or with `int .x`")
        }
        (Value::Str(_), _) | (_, Value::Str(_)) => {
            Wrong::hint(message, "inputs are texts: put the other side in quotes")
        }
        _ => message.into(),
    }
}

fn len(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let len = match &args[0] {
        Value::Str(text) => text.len(),
        Value::List(items, _) => items.len(),
        Value::Map(entries, _) => entries.len(),
        Value::Nil => return Err("nothing has no length".into()),
        other => return Err(format!("a {} has no length", other.kind()).into()),
    };
    Ok(Value::Int(len as i64))
}

fn index(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let mut value = args[0].clone();
    if args.len() == 1 && matches!(value, Value::Nil) {
        return Err("index of nothing".into());
    }
    for key in &args[1..] {
        value = match (&value, key) {
            (Value::Map(entries, _), Value::Str(key)) => entries.get(key).cloned().unwrap_or(Value::Nil),
            (Value::Map(..), other) => return Err(format!("a key is a string, not a {}", other.kind()).into()),
            (Value::List(items, _), Value::Int(at) | Value::Int64(at)) => {
                match usize::try_from(*at).ok().and_then(|at| items.get(at)) {
                    Some(item) => item.clone(),
                    None => return Err(format!("index out of range: {at} (the list has {})", items.len()).into()),
                }
            }
            (Value::Str(text), Value::Int(at) | Value::Int64(at)) => {
                match usize::try_from(*at).ok().and_then(|at| text.as_bytes().get(at)) {
                    Some(byte) => Value::Int(i64::from(*byte)),
                    None => return Err(format!("index out of range: {at}").into()),
                }
            }
            (Value::List(..) | Value::Str(_), other) => return Err(super::expected("int", other)),
            (Value::Nil, _) => {
                return Err(Wrong::hint("index of nothing", "`dig` gives a default where a key is missing"));
            }
            (other, _) => return Err(format!("can't index a {}", other.kind()).into()),
        };
    }
    Ok(value)
}

/// Blanks stand between two values of which none is a text.
fn print(args: &[Value], budget: &mut Budget) -> Result<String, Wrong> {
    let mut out = budget.out();
    for (at, value) in args.iter().enumerate() {
        if at > 0 && !matches!(value, Value::Str(_)) && !matches!(args[at - 1], Value::Str(_)) {
            out.push(" ")?;
        }
        out.push(&value.text(budget)?)?;
    }
    Ok(out.text)
}

fn println(args: &[Value], budget: &mut Budget) -> Result<Value, Wrong> {
    let mut out = budget.out();
    for (at, value) in args.iter().enumerate() {
        out.push(if at > 0 { " " } else { "" })?;
        out.push(&value.text(budget)?)?;
    }
    out.push("\n")?;
    Ok(Value::str(out.text))
}

fn escape(args: &[Value], budget: &mut Budget, of: fn(char) -> Option<String>) -> Result<Value, Wrong> {
    let plain = match args {
        [Value::Nil] => "<no value>".into(),
        args => print(args, budget)?,
    };
    let mut out = budget.out();
    for c in plain.chars() {
        match of(c) {
            Some(escaped) => out.push(&escaped)?,
            None => out.push(c.encode_utf8(&mut [0; 4]))?,
        }
    }
    Ok(Value::str(out.text))
}

fn html_of(c: char) -> Option<String> {
    let name = match c {
        '"' => "&#34;",
        '\'' => "&#39;",
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '\0' => "\u{fffd}",
        _ => return None,
    };
    Some(name.into())
}

fn js_of(c: char) -> Option<String> {
    match c {
        '\\' => Some("\\\\".into()),
        '\'' => Some("\\'".into()),
        '"' => Some("\\\"".into()),
        '<' | '>' | '&' | '=' | '\0'..=' ' if c != ' ' => Some(format!("\\u{:04X}", u32::from(c))),
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => Some(format!("\\u{:04X}", u32::from(c))),
        _ => None,
    }
}

fn query_of(c: char) -> Option<String> {
    match c {
        ' ' => Some("+".into()),
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~') => None,
        c => Some(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()),
    }
}
