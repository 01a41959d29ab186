//! Numbers. Integers wrap as Go's do.

use super::{MANY, Row, int, text};
use crate::{
    out::{Budget, Wrong},
    parse::integer,
    value::Value,
};

pub(super) const TABLE: &[Row] = &[
    ("int", 1, 1, |args, _| Ok(Value::Int(to_int(&args[0])))),
    ("int64", 1, 1, |args, _| Ok(Value::Int64(to_int(&args[0])))),
    ("float64", 1, 1, |args, _| Ok(Value::Float(to_float(&args[0])))),
    ("atoi", 1, 1, |args, _| Ok(Value::Int(text(&args[0])?.parse().unwrap_or(0)))),
    ("add", 0, MANY, |args, _| Ok(Value::Int64(args.iter().fold(0, |sum, n| sum.wrapping_add(to_int(n)))))),
    ("add1", 1, 1, |args, _| Ok(Value::Int64(to_int(&args[0]).wrapping_add(1)))),
    ("sub", 2, 2, |args, _| Ok(Value::Int64(to_int(&args[0]).wrapping_sub(to_int(&args[1]))))),
    ("mul", 1, MANY, |args, _| Ok(Value::Int64(args.iter().fold(1, |product, n| product.wrapping_mul(to_int(n)))))),
    ("div", 2, 2, |args, _| Ok(Value::Int64(to_int(&args[0]).wrapping_div(divisor(&args[1])?)))),
    ("mod", 2, 2, |args, _| Ok(Value::Int64(to_int(&args[0]).wrapping_rem(divisor(&args[1])?)))),
    ("max", 1, MANY, |args, _| Ok(Value::Int64(args.iter().map(to_int).max().unwrap_or(0)))),
    ("biggest", 1, MANY, |args, _| Ok(Value::Int64(args.iter().map(to_int).max().unwrap_or(0)))),
    ("min", 1, MANY, |args, _| Ok(Value::Int64(args.iter().map(to_int).min().unwrap_or(0)))),
    ("floor", 1, 1, |args, _| Ok(Value::Float(to_float(&args[0]).floor()))),
    ("ceil", 1, 1, |args, _| Ok(Value::Float(to_float(&args[0]).ceil()))),
    ("round", 2, 3, round),
    ("until", 1, 1, |args, budget| numbers(0, int(&args[0])?, int(&args[0])?.signum(), budget)),
    ("untilStep", 3, 3, |args, budget| numbers(int(&args[0])?, int(&args[1])?, int(&args[2])?, budget)),
    ("duration", 1, 1, |args, _| Ok(Value::str(duration(&args[0])))),
];

/// As the cast that sprig uses: texts that are no number are 0.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n,
        // As the processors do that Go runs on.
        Value::Float(n) if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(n) => i64::MIN,
        Value::Float(n) => *n as i64,
        Value::Bool(b) => i64::from(*b),
        Value::Str(text) => text_to_int(text),
        Value::Nil | Value::List(..) | Value::Map(..) => 0,
    }
}

fn text_to_int(text: &str) -> i64 {
    // `7.0` is a whole number too.
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    };
    integer(whole).unwrap_or(0)
}

fn to_float(value: &Value) -> f64 {
    match value {
        Value::Float(n) => *n,
        Value::Str(text) => text.parse().ok().filter(|n: &f64| n.is_finite()).unwrap_or(0.0),
        other => to_int(other) as f64,
    }
}

fn divisor(value: &Value) -> Result<i64, Wrong> {
    match to_int(value) {
        0 => Err("division by zero".into()),
        n => Ok(n),
    }
}

fn round(args: &[Value], _: &mut Budget) -> Result<Value, Wrong> {
    let at = match args.get(2) {
        Some(Value::Float(at)) => *at,
        Some(other) => return Err(super::expected("float64", other)),
        None => 0.5,
    };
    let scale = 10f64.powi(i32::try_from(int(&args[1])?).unwrap_or(0));
    let scaled = to_float(&args[0]) * scale;
    let rounded = if scaled.fract() >= at { scaled.ceil() } else { scaled.floor() };
    Ok(Value::Float(rounded / scale))
}

fn numbers(start: i64, stop: i64, step: i64, budget: &mut Budget) -> Result<Value, Wrong> {
    let mut list = Vec::new();
    let mut next = Some(start);
    while let Some(n) = next.filter(|n| (step > 0 && *n < stop) || (step < 0 && *n > stop)) {
        budget.spend(1)?;
        list.push(Value::Int(n));
        next = n.checked_add(step);
    }
    budget.list(list)
}

/// Seconds as `1h2m3s`. Sprig takes an `int64` or a text; anything else is no time at all.
fn duration(value: &Value) -> String {
    let seconds = match value {
        Value::Int64(n) => *n,
        Value::Str(text) => text.parse().unwrap_or(0),
        _ => 0,
    };
    let sign = if seconds < 0 { "-" } else { "" };
    let n = seconds.unsigned_abs();
    match (n / 3600, n / 60 % 60, n % 60) {
        (0, 0, s) => format!("{sign}{s}s"),
        (0, m, s) => format!("{sign}{m}m{s}s"),
        (h, m, s) => format!("{sign}{h}h{m}m{s}s"),
    }
}
