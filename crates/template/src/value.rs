//! What a template works with: the kinds that Go's JSON gives, and the two integers of its functions.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    float,
    out::{Budget, Out, Wrong},
};

pub(crate) type Map = BTreeMap<Arc<str>, Value>;

/// Cheap to clone, never changed. Lists and maps know how deep they are, so that nothing deeper than the bound is ever built.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Nil,
    Bool(bool),
    /// A literal, a length: Go's `int`.
    Int(i64),
    /// What `int64`, `add` and their like give; only its kind differs.
    Int64(i64),
    Float(f64),
    Str(Arc<str>),
    List(Arc<Vec<Value>>, usize),
    Map(Arc<Map>, usize),
}

/// How JSON is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Json {
    /// As a list prints.
    Plain,
    /// As `toJson` writes it: `<`, `>` and `&` escaped.
    Escaped,
    /// As `toPrettyJson`.
    Pretty,
}

impl Value {
    pub(crate) fn list(items: Vec<Value>) -> Value {
        let depth = 1 + items.iter().map(Value::depth).max().unwrap_or(0);
        Value::List(Arc::new(items), depth)
    }

    pub(crate) fn map(entries: Map) -> Value {
        let depth = 1 + entries.values().map(Value::depth).max().unwrap_or(0);
        Value::Map(Arc::new(entries), depth)
    }

    pub(crate) fn str(text: impl Into<Arc<str>>) -> Value {
        Value::Str(text.into())
    }

    pub(crate) fn depth(&self) -> usize {
        match self {
            Value::List(_, depth) | Value::Map(_, depth) => *depth,
            _ => 0,
        }
    }

    /// `levels` is how many more lists and maps may lie inside each other.
    pub(crate) fn from_json(json: &serde_json::Value, levels: usize) -> Result<Value, Wrong> {
        let deeper = || levels.checked_sub(1).ok_or("the data is nested too deep");
        Ok(match json {
            serde_json::Value::Null => Value::Nil,
            serde_json::Value::Bool(b) => Value::Bool(*b),
            serde_json::Value::Number(n) => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(text) => Value::str(text.as_str()),
            serde_json::Value::Array(items) => {
                let levels = deeper()?;
                Value::list(items.iter().map(|item| Value::from_json(item, levels)).collect::<Result<_, Wrong>>()?)
            }
            serde_json::Value::Object(entries) => {
                let levels = deeper()?;
                let entry = |(key, value): (&String, _)| Ok((key.as_str().into(), Value::from_json(value, levels)?));
                Value::map(entries.iter().map(entry).collect::<Result<_, Wrong>>()?)
            }
        })
    }

    /// What `if` asks, and sprig's `empty`.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(b) => *b,
            Value::Int(n) | Value::Int64(n) => *n != 0,
            Value::Float(n) => *n != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(items, _) => !items.is_empty(),
            Value::Map(entries, _) => !entries.is_empty(),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Int64(_) => "int64",
            Value::Float(_) => "float64",
            Value::Str(_) => "string",
            Value::List(..) => "slice",
            Value::Map(..) => "map",
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "<nil>",
            Value::List(..) => "[]interface {}",
            Value::Map(..) => "map[string]interface {}",
            other => other.kind(),
        }
    }

    /// The value as text, anywhere but at the top of an action.
    pub(crate) fn text(&self, budget: &mut Budget) -> Result<Arc<str>, Wrong> {
        Ok(match self {
            Value::Str(text) => text.clone(),
            Value::Nil => "<nil>".into(),
            Value::Bool(b) => b.to_string().into(),
            Value::Int(n) | Value::Int64(n) => n.to_string().into(),
            Value::Float(n) => float::plain(*n).into(),
            Value::List(..) | Value::Map(..) => self.json(Json::Plain, budget)?.into(),
        })
    }

    pub(crate) fn json(&self, style: Json, budget: &mut Budget) -> Result<String, Wrong> {
        let mut out = budget.out();
        self.write_json(style, 0, &mut out, budget)?;
        Ok(out.text)
    }

    fn write_json(&self, style: Json, level: usize, out: &mut Out, budget: &mut Budget) -> Result<(), Wrong> {
        budget.spend(1)?;
        match self {
            Value::Nil => out.push("null"),
            Value::Bool(b) => out.push(if *b { "true" } else { "false" }),
            Value::Int(n) | Value::Int64(n) => out.push(&n.to_string()),
            Value::Float(n) if !n.is_finite() => Err("a number that is not finite has no JSON".into()),
            Value::Float(n) => out.push(&float::json(*n)),
            Value::Str(text) => write_json_string(text, style, out),
            Value::List(items, _) if items.is_empty() => out.push("[]"),
            Value::Map(entries, _) if entries.is_empty() => out.push("{}"),
            Value::List(items, _) => {
                for (at, item) in items.iter().enumerate() {
                    out.push(if at == 0 { "[" } else { "," })?;
                    new_line(style, level + 1, out)?;
                    item.write_json(style, level + 1, out, budget)?;
                }
                new_line(style, level, out)?;
                out.push("]")
            }
            Value::Map(entries, _) => {
                for (at, (key, value)) in entries.iter().enumerate() {
                    out.push(if at == 0 { "{" } else { "," })?;
                    new_line(style, level + 1, out)?;
                    write_json_string(key, style, out)?;
                    out.push(if style == Json::Pretty { ": " } else { ":" })?;
                    value.write_json(style, level + 1, out, budget)?;
                }
                new_line(style, level, out)?;
                out.push("}")
            }
        }
    }

    /// Equal in kind and content; integers of both kinds are one.
    pub(crate) fn same(&self, other: &Value, budget: &mut Budget) -> Result<bool, Wrong> {
        budget.spend(1)?;
        Ok(match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => {
                budget.spend(a.len().min(b.len()) / 256)?;
                a == b
            }
            (Value::List(a, _), Value::List(b, _)) => {
                let mut same = a.len() == b.len();
                for (a, b) in a.iter().zip(b.iter()) {
                    same = same && a.same(b, budget)?;
                }
                same
            }
            (Value::Map(a, _), Value::Map(b, _)) => {
                let mut same = a.len() == b.len();
                for ((key, a), (other, b)) in a.iter().zip(b.iter()) {
                    same = same && key == other && a.same(b, budget)?;
                }
                same
            }
            _ => false,
        })
    }
}

fn new_line(style: Json, level: usize, out: &mut Out) -> Result<(), Wrong> {
    if style != Json::Pretty {
        return Ok(());
    }
    out.push("\n")?;
    out.repeat("  ", level)
}

fn write_json_string(text: &str, style: Json, out: &mut Out) -> Result<(), Wrong> {
    out.push("\"")?;
    for c in text.chars() {
        match c {
            '"' => out.push("\\\"")?,
            '\\' => out.push("\\\\")?,
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            '\u{8}' => out.push("\\b")?,
            '\u{c}' => out.push("\\f")?,
            '<' | '>' | '&' if style != Json::Plain => out.push(&format!("\\u{:04x}", u32::from(c)))?,
            '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => out.push(&format!("\\u{:04x}", u32::from(c)))?,
            c => out.push(c.encode_utf8(&mut [0; 4]))?,
        }
    }
    out.push("\"")
}
