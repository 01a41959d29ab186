//! Values of a chart as `helm --set` takes them: `a.b=1,c={x,y},d[0].e=z`.

use serde_json::{Map, Number, Value};

/// Entries of a list that an index may ask for.
const INDEX_MAX: usize = 65_536;

/// Why a value can't be set.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the value `{key}` can't be set: {why}")]
pub struct ValueError {
    pub key: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The values that the pairs ask for, as one document. A pair that sets an entry of a list changes the list of the files, whose
/// later ones win over earlier ones.
pub fn set_values<'p>(
    files: &[Value],
    pairs: impl IntoIterator<Item = (&'p String, &'p String)>,
) -> Result<Value, ValueError> {
    let mut base = Value::Object(Map::new());
    for file in files {
        merge(&mut base, file);
    }
    let mut values = Value::Object(Map::new());
    for (key, text) in pairs {
        let bad = |why: &str| ValueError { key: key.clone(), why: why.to_owned() };
        for (path, value) in assignments(&format!("{key}={text}")).map_err(|why| bad(&why))? {
            put(&mut values, &base, &path, value).map_err(|why| bad(&why))?;
        }
    }
    Ok(values)
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// The pairs of one text: commas part them, a backslash takes the meaning away from what follows.
fn assignments(text: &str) -> Result<Vec<(Vec<Step>, Value)>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // The texts may be secret: no error repeats one.
        let (key, after) = until(rest, &['='])
            .ok_or("after a comma comes another `key=value`: write `\\,` for a comma that is a part of the value")?;
        let path = path(key)?;
        if let Some(list) = after.strip_prefix('{') {
            let (inner, after) = until(list, &['}']).ok_or("a list that begins with `{` needs a `}`")?;
            let mut items = Vec::new();
            let mut left = inner;
            while !left.is_empty() {
                let (item, after) = until(left, &[',']).unwrap_or((left, ""));
                items.push(typed(&plain(item)));
                left = after;
            }
            found.push((path, Value::Array(items)));
            rest = after.strip_prefix(',').unwrap_or(after);
        } else {
            let (value, after) = until(after, &[',']).unwrap_or((after, ""));
            found.push((path, typed(&plain(value))));
            rest = after;
        }
    }
    Ok(found)
}

/// A text that means itself where it is set.
pub fn escaped_value(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | ',' | '{' | '}') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What stands before the first of some characters that is not escaped, and what stands behind it.
fn until<'t>(text: &'t str, ends: &[char]) -> Option<(&'t str, &'t str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (escaped, c) {
            (false, '\\') => escaped = true,
            (false, c) if ends.contains(&c) => return Some((&text[..at], &text[at + c.len_utf8()..])),
            _ => escaped = false,
        }
    }
    None
}

fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut escaped = false;
    for c in text.chars() {
        if c == '\\' && !escaped {
            escaped = true;
            continue;
        }
        out.push(c);
        escaped = false;
    }
    out
}

fn path(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = until(rest, &['.']).map_or((rest, None), |(part, after)| (part, Some(after)));
        let (name, mut indexes) = match until(part, &['[']) {
            Some((name, _)) => (name, &part[name.len()..]),
            None => (part, ""),
        };
        if !name.is_empty() {
            steps.push(Step::Key(plain(name)));
        } else if indexes.is_empty() {
            return Err("it has an empty name".into());
        }
        while let Some(inner) = indexes.strip_prefix('[') {
            let (number, after) = inner.split_once(']').ok_or("an index that begins with `[` needs a `]`")?;
            let index = number.parse().ok().filter(|index| *index < INDEX_MAX);
            steps.push(Step::Index(index.ok_or("what stands in `[` and `]` is no index of a list")?));
            indexes = after;
        }
        match after {
            Some(after) => rest = after,
            None => return Ok(steps),
        }
    }
}

/// A text as Helm types it: truth values, whole numbers without leading zeros and `null` are what they look like.
fn typed(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        "0" => Value::Number(0.into()),
        _ => match text.parse::<i64>() {
            Ok(number) if !text.starts_with('0') => Value::Number(Number::from(number)),
            _ => Value::String(text.to_owned()),
        },
    }
}

/// Whether a text is a whole number that Helm would round if it read it from a file: there, numbers have a decimal point.
pub fn is_rounded_in_files(text: &str) -> bool {
    typed(text).as_i64().is_some_and(|number| number.unsigned_abs() >= 1_000_000)
}

/// Whether a file that comes later takes away what a pair sets, as far as it is written plainly.
pub fn is_overridden(over: &Value, key: &str) -> bool {
    let Ok(path) = path(key) else { return false };
    let mut at = over;
    for step in &path {
        at = match (step, at) {
            (Step::Key(name), Value::Object(fields)) => match fields.get(name) {
                Some(value) => value,
                None => return false,
            },
            // A list, a text, or nothing at all takes the place of what was there.
            _ => return !over.is_null(),
        };
    }
    true
}

fn put(at: &mut Value, base: &Value, path: &[Step], value: Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else {
        *at = value;
        return Ok(());
    };
    match first {
        Step::Key(name) => {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            let Some(fields) = at.as_object_mut() else { return Ok(()) };
            put(fields.entry(name.clone()).or_insert(Value::Null), &base[name.as_str()], rest, value)
        }
        Step::Index(index) => {
            if !at.is_array() {
                *at = if base.is_array() { base.clone() } else { Value::Array(Vec::new()) };
            }
            let Some(items) = at.as_array_mut() else { return Ok(()) };
            if items.len() <= *index {
                items.resize(index + 1, Value::Null);
            }
            // What stands in the list already is kept, but for what is set.
            put(&mut items[*index], &base[*index], rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(files: &[Value], pairs: &[(&str, &str)]) -> Result<Value, ValueError> {
        let pairs: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        set_values(files, pairs.iter().map(|(k, v)| (k, v)))
    }

    #[test]
    fn a_later_file_takes_away_what_a_pair_sets() {
        let over = json!({ "port": 80, "db": { "id": null }, "list": [1], "gone": null, "text": "x" });
        for key in ["port", "db.id", "db.id.low", "list[0]", "gone.all", "text.more"] {
            assert!(is_overridden(&over, key), "{key}");
        }
        for key in ["other", "db.name", "ports"] {
            assert!(!is_overridden(&over, key), "{key}");
        }
        assert!(!is_overridden(&Value::Null, "port"));
    }

    /// What `helm template --set` made of the same texts.
    #[test]
    fn pairs_mean_what_they_mean_to_helm() {
        for (key, text, values) in [
            ("a", "1", json!({ "a": 1 })),
            ("a.b", "x", json!({ "a": { "b": "x" } })),
            ("a", "true", json!({ "a": true })),
            ("a", "null", json!({ "a": null })),
            ("a", "007", json!({ "a": "007" })),
            ("a", "1.5", json!({ "a": "1.5" })),
            ("a", "", json!({ "a": "" })),
            ("a", "{x,2}", json!({ "a": ["x", 2] })),
            ("a", "x,b=y", json!({ "a": "x", "b": "y" })),
            ("a", "x\\,y", json!({ "a": "x,y" })),
            ("a\\.b", "x", json!({ "a.b": "x" })),
            ("a[1].b", "x", json!({ "a": [null, { "b": "x" }] })),
            ("a", "k=v", json!({ "a": "k=v" })),
        ] {
            assert_eq!(set(&[], &[(key, text)]), Ok(values), "{key}={text}");
        }
        let error = set(&[], &[("a", "x,hidden")]).expect_err("a pair without =");
        assert!(error.to_string().contains("`a`") && !error.to_string().contains("hidden"), "{error}");
    }

    #[test]
    fn an_escaped_text_means_itself() {
        for text in ["x,y", "{a,b}", "a\\b", "k=v", "a}", "\\,"] {
            let pair = escaped_value(text);
            assert_eq!(set(&[], &[("a", &pair)]), Ok(json!({ "a": text })), "{pair}");
        }
    }

    #[test]
    fn an_entry_of_a_list_changes_the_list_of_the_files() {
        let files = [json!({ "a": [{ "x": 1 }, { "x": 2 }] }), json!({ "b": 1 })];
        assert_eq!(set(&files, &[("a[1].x", "3")]), Ok(json!({ "a": [{ "x": 1 }, { "x": 3 }] })));
    }
}
