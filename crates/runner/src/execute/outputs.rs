//! Reads the outputs file of a step: JSON objects (in one line or printed over several) and `key=value` lines, mixed
//! as one likes. Blank lines mean nothing. Later values win.

use model::constants::OUTPUTS_BYTES;
use serde_json::{Map, Value};

pub(super) fn parse(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    if bytes.len() as u64 > OUTPUTS_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| format!("the outputs file is not UTF-8: {e}"))?;
    let mut outputs = Map::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = || text[..text.len() - rest.len()].matches('\n').count() + 1;
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let current = rest[..end].trim();
        if current.starts_with('{') {
            let (object, used) = object(rest, &line)?;
            outputs.extend(object);
            rest = &rest[used..];
            continue;
        }
        if current.starts_with('[') {
            return Err(format!("outputs file, line {}: an array has no names; write an object", line()));
        }
        if !current.is_empty() {
            let (key, value) = current
                .split_once('=')
                .filter(|(key, _)| !key.trim().is_empty())
                .ok_or_else(|| format!("outputs file, line {}: expected a JSON object or `key=value`", line()))?;
            outputs.insert(key.trim().to_owned(), Value::String(value.to_owned()));
        }
        rest = &rest[end..];
    }
    Ok(outputs)
}

pub(super) fn too_large(size_bytes: u64) -> String {
    format!(
        "the outputs file has {size_bytes} bytes, and {OUTPUTS_BYTES} are allowed: write large things elsewhere and \
         output where they are"
    )
}

/// The object at the start of `text`, and how many bytes it takes; it must end its line.
fn object(text: &str, line: &dyn Fn() -> usize) -> Result<(Map<String, Value>, usize), String> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    let object = match stream.next() {
        Some(Ok(object)) => object,
        Some(Err(e)) => {
            return Err(format!("outputs file, line {}: not a JSON object: {e}", line() + e.line().saturating_sub(1)));
        }
        None => return Err(format!("outputs file, line {}: not a JSON object", line())),
    };
    let used = stream.byte_offset();
    let after = &text[used..];
    let end = after.find('\n').map_or(after.len(), |at| at + 1);
    if after[..end].trim().is_empty() {
        Ok((object, used + end))
    } else {
        let line = line() + text[..used].matches('\n').count();
        Err(format!("outputs file, line {line}: something follows the JSON object; one object per line"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_be_read() {
        let cases = [
            ("", json!({})),
            ("\n  \n", json!({})),
            ("a=1", json!({"a": "1"})),
            ("a=b=c\n\nd=\r\n", json!({"a": "b=c", "d": ""})),
            ("{\"a\":1}\n{\"b\":[2]}\n", json!({"a": 1, "b": [2]})),
            ("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", json!({"a": {"b": 1}})),
            ("a=1\n{\n \"a\": 2\n}\nc=3", json!({"a": 2, "c": "3"})),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text.as_bytes()).map(Value::Object), Ok(want), "{text:?}");
        }
    }

    #[test]
    fn what_can_not_says_why_and_where() {
        let cases = [
            ("a=1\n[1]", "line 2: an array"),
            ("a=1\n\nnonsense", "line 3: expected"),
            ("=x", "line 1: expected"),
            ("a=1\n{\"b\": }", "line 2: not a JSON object"),
            ("{\n\"b\": oops\n}", "line 2: not a JSON object"),
            ("{\"a\":1} {\"b\":2}", "line 1: something follows"),
        ];
        for (text, part) in cases {
            let error = parse(text.as_bytes()).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
        assert!(parse(&[b'a', b'=', 0xff]).expect_err("bytes").contains("UTF-8"));
        let large = vec![b'\n'; OUTPUTS_BYTES as usize + 1];
        assert!(parse(&large).expect_err("size").contains("are allowed"));
    }
}
