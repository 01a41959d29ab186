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

/// Longest e-mail address.
pub const EMAIL_LENGTH: usize = 254;

/// Checks that something may be an e-mail address, and puts it into lower case: `a@b`, one line, no blanks.
pub fn email(text: &str) -> Result<String, String> {
    let text = text.trim();
    let good = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '<' | '>' | '"' | ',' | ';' | '(' | ')');
    let parts =
        text.rsplit_once('@').filter(|(user, host)| !user.is_empty() && !host.is_empty() && !user.contains('@'));
    if text.len() > EMAIL_LENGTH || parts.is_none() || !text.chars().all(good) {
        let shown: String = text.chars().take(80).collect();
        return Err(format!("{shown:?} is no e-mail address"));
    }
    Ok(text.to_lowercase())
}

#[cfg(test)]
mod tests {
    #[test]
    fn emails() {
        assert_eq!(super::email(" Ann@Example.COM "), Ok("ann@example.com".to_owned()));
        assert_eq!(super::email("admin@localhost"), Ok("admin@localhost".to_owned()));
        for bad in ["", "ann", "@b", "a@", "a@b@c", "a b@c", "a@b\nBcc: x@y", "<a@b>"] {
            assert!(super::email(bad).is_err(), "{bad}");
        }
    }

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
