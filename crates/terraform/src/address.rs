//! Resource addresses as terraform writes them.

use serde_json::Value;

/// The part behind a resource's name: `[0]`, `["key"]`, or nothing.
pub(crate) fn index(key: Option<&Value>) -> String {
    match key {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => format!("[{}]", quote(text)),
        Some(other) => format!("[{other}]"),
    }
}

/// A text in quotes, escaped as HCL wants it: a template that would begin in it is escaped too.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' | '\\' => quoted.extend(['\\', c]),
            '$' | '%' if chars.peek() == Some(&'{') => quoted.extend([c, c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The short name in `registry.terraform.io/hashicorp/aws` and in `module.a.provider["registry/hashicorp/aws"].west`.
pub(crate) fn provider_name(provider: &str) -> &str {
    let source = match provider.split_once("[\"") {
        Some((_, rest)) => rest.split('"').next().unwrap_or(rest),
        None => provider,
    };
    source.rsplit('/').next().unwrap_or(source)
}

/// An address whose index key is masked by itself: in the address it is escaped, and a mask would not find it.
pub(crate) fn masked(address: &str, key: Option<&Value>, masks: &dyn Fn(&str) -> String) -> String {
    if let Some(Value::String(key)) = key
        && let Some(base) = address.strip_suffix(&index(Some(&Value::String(key.clone()))))
    {
        return masks(base) + &index(Some(&Value::String(masks(key))));
    }
    masks(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn index_keys_are_quoted_as_terraform_does() {
        for (key, expected) in [
            (json!(null), ""),
            (json!(0), "[0]"),
            (json!("a"), r#"["a"]"#),
            (json!("a\"b\\c"), r#"["a\"b\\c"]"#),
            (json!("${x} %{y} $5"), r#"["$${x} %%{y} $5"]"#),
            (json!("l\nr\u{1}é"), "[\"l\\nr\\u0001é\"]"),
        ] {
            assert_eq!(index(Some(&key)), expected);
        }
    }

    #[test]
    fn providers_have_short_names() {
        for (source, expected) in [
            ("registry.terraform.io/hashicorp/aws", "aws"),
            ("terraform.io/builtin/terraform", "terraform"),
            ("provider[\"registry.opentofu.org/hashicorp/google\"].west", "google"),
            ("module.a.provider[\"terraform.io/builtin/terraform\"]", "terraform"),
            ("aws", "aws"),
            ("", ""),
        ] {
            assert_eq!(provider_name(source), expected);
        }
    }
}
