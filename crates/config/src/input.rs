//! Values of inputs: whether one is what the app declares.

use serde_json::Value;

use crate::kinds::Input;

/// Whether `value` may be given for this input; the message says what is wrong with it.
pub fn check_input(input: &Input, value: &str) -> Result<(), String> {
    let kind = input.r#type.as_deref().unwrap_or("string");
    let shown = if input.sensitive { "the value".to_owned() } else { format!("`{value}`") };
    let json = || serde_json::from_str::<Value>(value);
    let good = match kind {
        "number" => value.trim().parse::<f64>().is_ok_and(f64::is_finite),
        "bool" => matches!(value, "true" | "false"),
        // As JSON, or with commas, which is what a stack's parameter gives.
        "list" => !value.trim_start().starts_with('[') || json().is_ok_and(|v| v.is_array()),
        "json" => match json() {
            Ok(_) => true,
            Err(error) => return Err(format!("{shown} is not JSON: {error}")),
        },
        _ => true,
    };
    if good { Ok(()) } else { Err(format!("{shown} is not a {kind}{}", example(kind))) }
}

fn example(kind: &str) -> &'static str {
    match kind {
        "number" => ", such as `3` or `0.5`",
        "bool" => ": write `true` or `false`",
        "list" => ", such as `[\"a\", \"b\"]` or `a,b`",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_the_type_says() {
        let input = |kind: &str| Input { r#type: Some(kind.to_owned()), ..Input::default() };
        for (kind, good, bad) in [
            ("number", vec!["3", "0.5", "-1"], vec!["three", "NaN", "inf"]),
            ("bool", vec!["true", "false"], vec!["yes", "True", "1"]),
            ("list", vec!["a,b", "[\"a\"]", "one"], vec!["[1", "[}"]),
            ("json", vec!["{}", "[1]", "\"x\""], vec!["{", "x"]),
            ("string", vec!["anything"], vec![]),
        ] {
            for value in good {
                assert_eq!(check_input(&input(kind), value), Ok(()), "{kind} {value}");
            }
            for value in bad {
                let told = check_input(&input(kind), value).expect_err("refused");
                assert!(told.contains(value), "{told}");
            }
        }
        let hidden = Input { sensitive: true, ..input("number") };
        assert!(!check_input(&hidden, "hunter2").expect_err("refused").contains("hunter2"));
    }
}
