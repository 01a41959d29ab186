//! Floats as Go writes them.

/// The shortest digits that give the number back: (negative, digits, exponent of the first digit).
fn shortest(n: f64) -> (bool, String, i32) {
    let text = format!("{:e}", n.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (n.is_sign_negative(), digits.replace('.', ""), exponent.parse().unwrap_or(0))
}

fn special(n: f64) -> Option<&'static str> {
    match n {
        n if n.is_nan() => Some("NaN"),
        n if n == f64::INFINITY => Some("+Inf"),
        n if n == f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

fn exponential(negative: bool, digits: &str, exponent: i32, width: usize) -> String {
    let sign = if negative { "-" } else { "" };
    let (first, more) = digits.split_at(1);
    let point = if more.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{more}e{exponent_sign}{:0width$}", exponent.unsigned_abs())
}

/// As `%v`, but whole numbers up to 2^53 stay whole.
pub(crate) fn plain(n: f64) -> String {
    if n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0 {
        return format!("{n:.0}");
    }
    general(n)
}

/// As Go's `%g`, and as its `%v`.
pub(crate) fn general(n: f64) -> String {
    if let Some(text) = special(n) {
        return text.into();
    }
    let (negative, digits, exponent) = shortest(n);
    if n == 0.0 || (-4..6).contains(&exponent) { format!("{n}") } else { exponential(negative, &digits, exponent, 2) }
}

/// As `%e` with `digits` after the point.
pub(crate) fn scientific(n: f64, digits: usize) -> String {
    if let Some(text) = special(n) {
        return text.into();
    }
    let text = format!("{:.digits$e}", n.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    exponential(n.is_sign_negative(), &mantissa.replace('.', ""), exponent.parse().unwrap_or(0), 2)
}

/// As `%g` with a precision: that many digits, without zeros at the end.
pub(crate) fn significant(n: f64, digits: usize) -> String {
    let digits = digits.max(1);
    let text = scientific(n, digits - 1);
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    match exponent.parse::<i64>() {
        Ok(exponent) if (-4..digits as i64).contains(&exponent) => {
            let after_point = usize::try_from(digits as i64 - 1 - exponent).unwrap_or(0);
            short(&format!("{n:.after_point$}"))
        }
        _ => format!("{}e{exponent}", short(mantissa)),
    }
}

/// As `encoding/json`.
pub(crate) fn json(n: f64) -> String {
    let (negative, digits, exponent) = shortest(n);
    if n != 0.0 && !(-6..21).contains(&exponent) {
        return exponential(negative, &digits, exponent, if exponent < 0 { 1 } else { 2 });
    }
    format!("{n}")
}
