//! Names that people give to orgs, apps, installs and tokens.

/// Longest name.
pub const NAME_LENGTH: usize = 63;

/// Checks a name; the error says what to do.
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".into());
    }
    if name.len() > NAME_LENGTH {
        return Err(format!("the name has {} characters; at most {NAME_LENGTH} are allowed", name.len()));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if let Some(bad) = name.chars().find(|&c| !good(c)) {
        return Err(format!("the name contains {bad:?}; use letters, digits, `-`, `_`, `.` and blanks"));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || name.ends_with(' ') {
        return Err("the name must start with a letter or a digit and not end with a blank".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names() {
        for good in ["acme", "Acme Corp", "a-b_c.d", "9lives"] {
            assert_eq!(super::check(good), Ok(()), "{good}");
        }
        for bad in ["", " a", "a ", "a/b", "é", "-a", &"x".repeat(64)] {
            assert!(super::check(bad).is_err(), "{bad}");
        }
    }
}
