//! Reads JSON of others, and says what is wrong with it in our words: which field, what it must be.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

/// Why a document can't be read. The text names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// Reads a document from its bytes.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut document).map_err(|error| explained(&error))?;
    document.end().map_err(|error| Unreadable(not_json(&error)))?;
    Ok(read)
}

/// Reads a document that is JSON already.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Unreadable> {
    serde_path_to_error::deserialize(value).map_err(|error| explained(&error))
}

fn not_json(error: &serde_json::Error) -> String {
    format!("it is not JSON (line {}, column {})", error.line(), error.column())
}

fn explained(error: &serde_path_to_error::Error<serde_json::Error>) -> Unreadable {
    let (path, inner) = (error.path().to_string(), error.inner());
    if matches!(inner.classify(), Category::Syntax | Category::Eof | Category::Io) {
        return Unreadable(not_json(inner));
    }
    let text = inner.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let path = if path == "." { String::new() } else { path };
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    let among = |text: &str| {
        let names: Vec<&str> = text.split('`').skip(3).step_by(2).collect();
        if names.is_empty() { String::new() } else { format!("; use {}", names.join(", ")) }
    };
    let at = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
    Unreadable(if text.starts_with("missing field") {
        let field = quoted(text);
        let field = if path.is_empty() { field } else { format!("{path}.{field}") };
        format!("`{field}` is missing")
    } else if text.starts_with("unknown field") {
        let within = path.rsplit_once('.').map(|(within, _)| format!(" in `{within}`")).unwrap_or_default();
        format!("there is no field `{}`{within}{}", quoted(text), among(text))
    } else if text.starts_with("unknown variant") {
        format!("{at}`{}` is not allowed{}", quoted(text), among(text))
    } else if let Some((found, expected)) = text
        .strip_prefix("invalid type: ")
        .or_else(|| text.strip_prefix("invalid value: "))
        .and_then(|t| t.split_once(", expected "))
    {
        let what = if path.is_empty() { "the body".to_owned() } else { format!("`{path}`") };
        format!("{what} must be {}, not {}", kind(expected), kind(found))
    } else {
        format!("{at}{text}")
    })
}

/// Words of people for those of the reader.
fn kind(text: &str) -> &str {
    match text {
        "map" => "an object",
        "sequence" | "a sequence" => "a list",
        "unit value" | "null" => "null",
        "a map" => "an object",
        "u64" | "u32" | "i64" | "usize" => "a number",
        "a boolean" => "true or false",
        text if text.starts_with("struct ") => "an object",
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only reading it is tried")]
    struct Body {
        name: String,
        #[serde(default)]
        steps: Vec<Step>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only reading it is tried")]
    struct Step {
        timeout_s: u64,
        #[serde(default)]
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Plan,
        Apply,
    }

    #[test]
    fn the_field_is_named_in_our_words() {
        let cases = [
            (r#"{"name": 3}"#, "`name` must be a string, not integer `3`"),
            ("{}", "`name` is missing"),
            (r#"{"name": "a", "steps": [{}]}"#, "`steps[0].timeout_s` is missing"),
            (r#"{"name": "a", "stepz": []}"#, "there is no field `stepz`; use name, steps"),
            (r#"{"name": "a", "steps": {}}"#, "`steps` must be a list, not an object"),
            (
                r#"{"name": "a", "steps": [{"timeout_s": "1"}]}"#,
                "`steps[0].timeout_s` must be a number, not string \"1\"",
            ),
            (
                r#"{"name": "a", "steps": [{"timeout_s": 1, "kind": "look"}]}"#,
                "`steps[0].kind`: `look` is not allowed; use plan, apply",
            ),
            (r#"{"name""#, "it is not JSON (line 1, column 7)"),
            (r#""x""#, "the body must be an object, not string \"x\""),
            (r#"{"name": "a"} x"#, "it is not JSON (line 1, column 15)"),
        ];
        for (text, said) in cases {
            let error = from_slice::<Body>(text.as_bytes()).expect_err(text);
            assert_eq!(error.to_string(), said, "{text}");
        }
    }
}
