//! TOML to JSON by the tables, with every problem at once and the place of each value.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::Code;
use crate::diagnostic::{Findings, Said, did_you_mean, error, warning};
use crate::get;
use crate::kinds::{COMPONENT_TYPES, ComponentCommon, TYPE, component_table};
use crate::source::Spot;
use crate::table::{Field, Get, Shape, Table};

/// Keys that nobody calls a variable, a label or a value by.
const NEVER_VARIABLES: &[&str] = &[
    "auto_approve_on_policies_passing",
    "build_timeout",
    "default_enabled",
    "deploy_timeout",
    "drift_schedule",
    "enable_kube_config",
    "max_auto_retries",
    "operation_roles",
    "skip_noops",
    "toggleable",
];

/// A decoded value, and the place of its parts. What is there and can't be used is `null`, so that nobody calls it missing.
pub(crate) type Decoded = (Value, Spot);

pub(crate) struct Decoder<'a, 'f> {
    pub(crate) findings: &'f mut Findings<'a>,
    pub(crate) file: Arc<str>,
    /// The tables around, from the outermost, each with its header.
    around: Vec<(&'static Table, String)>,
}

impl<'a, 'f> Decoder<'a, 'f> {
    pub(crate) fn new(findings: &'f mut Findings<'a>, file: &str) -> Self {
        Decoder { findings, file: file.into(), around: Vec::new() }
    }

    fn say(&mut self, said: Said, span: Range<usize>) {
        self.findings.say(said, &self.file, span);
    }

    fn spot(&self, span: Range<usize>) -> Spot {
        Spot { file: self.file.clone(), span, ..Spot::default() }
    }

    /// A component: `type` says which table it is.
    pub(crate) fn component(&mut self, toml: &DeTable, span: Range<usize>) -> Decoded {
        let found = toml.iter().find(|(key, _)| key.get_ref().eq_ignore_ascii_case("type"));
        let kind = found.and_then(|(_, value)| value.get_ref().as_str()).map(|kind| canonical(&TYPE.shape, kind));
        let table = kind.and_then(component_table).unwrap_or(&ComponentCommon::TABLE);
        self.table(toml, span, table, "")
    }

    pub(crate) fn table(&mut self, toml: &DeTable, span: Range<usize>, table: &'static Table, header: &str) -> Decoded {
        self.around.push((table, header.to_owned()));
        let component = is_component(table);
        let mut object = Map::new();
        let mut spot = self.spot(span);
        let mut unknown = Vec::new();
        for (key, value) in toml {
            let field = if component && key.get_ref().eq_ignore_ascii_case("type") {
                Some(&TYPE)
            } else {
                table.field(key.get_ref())
            };
            let Some(field) = field else {
                unknown.push((key, value));
                continue;
            };
            if object.contains_key(field.key) {
                let said = error(
                    Code::ExclusiveKeys,
                    format!("`{}` is another name of `{}`, which is there as well", key.get_ref(), field.key),
                );
                self.say(said, key.span());
                continue;
            }
            let (decoded, at) = self.field(field, key.get_ref(), value);
            self.swallowed(field, value, table);
            if let Some(instead) = field.deprecated {
                self.say(
                    warning(Code::DeprecatedKey, format!("`{}` should not be used any more", field.key)).hint(instead),
                    key.span(),
                );
            }
            object.insert(field.key.into(), decoded);
            spot.parts.push((Cow::Borrowed(field.key), at));
        }
        // Of a component whose type is unknown, any type may be meant.
        let meant = |key: &str| is_common(table) && COMPONENT_TYPES.iter().any(|kind| component_key(kind, key));
        for (key, value) in unknown {
            if !meant(key.get_ref()) && !self.findings.is_full() {
                self.unknown(key, value, table, header);
            }
        }
        self.around.pop();
        (Value::Object(object), spot)
    }

    fn unknown(&mut self, key: &Spanned<Cow<str>>, value: &Spanned<DeValue>, table: &'static Table, header: &str) {
        let name = key.get_ref().as_ref();
        if let Some((_, instead)) = table.removed.iter().find(|(old, _)| *old == name) {
            return self
                .say(error(Code::RemovedKey, format!("`{name}` is not read any more")).hint(*instead), key.span());
        }
        let here = if header.is_empty() { "this file".to_owned() } else { format!("`{header}`") };
        // A scalar does not belong where the key of the same name is a table.
        let fits = |field: &Field| {
            !matches!(field.shape, Shape::Table(_) | Shape::Tables(_))
                || value.get_ref().is_array()
                || value.get_ref().is_table()
        };
        let outer = self.around.iter().rev().skip(1).find(|(outer, _)| outer.field(name).is_some_and(fits));
        if let Some((_, above)) = outer {
            let place = if above.is_empty() { "the top of the file".to_owned() } else { format!("`{above}`") };
            let said = warning(Code::MisplacedKey, format!("`{name}` is not a key of {here}; it has no effect there"))
                .hint(format!("this key belongs above `{header}`: move it to {place}"));
            return self.say(said, key.span());
        }
        let elsewhere = || {
            let kinds = COMPONENT_TYPES.iter().filter(|kind| component_key(kind, name));
            let kinds: Vec<_> = kinds.map(|kind| format!("`{kind}`")).collect();
            (is_component(table) && !kinds.is_empty()).then(|| format!("it is a key of {}", kinds.join(", ")))
        };
        let names = table.fields().flat_map(Field::names).chain(is_component(table).then_some("type"));
        let hint = elsewhere().or_else(|| did_you_mean(name, names));
        self.say(
            warning(Code::UnknownKey, format!("`{name}` is not a key of {here}; it has no effect")).maybe_hint(hint),
            key.span(),
        );
    }

    /// Keys of the table around that stand below the header of one with free keys, and are part of it.
    fn swallowed(&mut self, field: &Field, value: &Spanned<DeValue>, table: &'static Table) {
        let free = matches!(field.shape, Shape::Map(_) | Shape::Vars | Shape::HelmValues);
        let Some(entries) = value.get_ref().as_table().filter(|_| free) else { return };
        for (key, _) in entries.iter().filter(|(key, _)| NEVER_VARIABLES.contains(&key.get_ref().as_ref())) {
            if table.field(key.get_ref()).is_some() {
                let said = warning(
                    Code::MisplacedKey,
                    format!("`{}` is part of `[{}]`; it has no other effect", key.get_ref(), field.key),
                );
                self.say(said.hint(format!("this key belongs above `[{}]`", field.key)), key.span());
            }
        }
    }

    fn field(&mut self, field: &'static Field, key: &str, value: &Spanned<DeValue>) -> Decoded {
        if field.get == Get::No {
            return self.value(&field.shape, field.key, value);
        }
        // `{ file = "path" }` says that it is a file, whatever the path looks like.
        let explicit = value.get_ref().as_table().filter(|table| table.len() == 1).and_then(|table| table.get("file"));
        let forced = explicit.is_some() || field.file_aliases.contains(&key);
        let (decoded, mut spot) = self.value(&field.shape, field.key, explicit.unwrap_or(value));
        let Value::String(text) = decoded else { return (decoded, spot) };
        match get::resolve(self.findings, &self.file, &text, field.get, forced) {
            Ok(None) => (Value::String(text), spot),
            Ok(Some((file, contents))) => {
                spot.content = Some(file);
                (Value::String(contents), spot)
            }
            Err(said) => {
                self.say(said, spot.span.clone());
                (Value::Null, spot)
            }
        }
    }

    fn value(&mut self, shape: &'static Shape, key: &str, value: &Spanned<DeValue>) -> Decoded {
        let span = value.span();
        let spot = self.spot(span.clone());
        let decoded = match (shape, value.get_ref()) {
            (Shape::Table(table), DeValue::Table(inner)) => return self.table(inner, span, table, &format!("[{key}]")),
            (Shape::Component, DeValue::Table(inner)) => return self.component(inner, span),
            (Shape::Tables(table), DeValue::Array(items)) => {
                return self.items(spot, items.iter(), |me, item| match item.get_ref() {
                    DeValue::Table(inner) => me.table(inner, item.span(), table, &format!("[[{key}]]")),
                    other => me.wrong(key, "tables", other, item.span()),
                });
            }
            (Shape::List(inner), DeValue::Array(items)) => {
                return self.items(spot, items.iter(), |me, item| me.value(inner, key, item));
            }
            (Shape::Map(inner), DeValue::Table(entries)) => {
                return self.entries(spot, entries, |me, key, value| me.value(inner, key, value));
            }
            (Shape::Vars, DeValue::Table(entries)) => {
                return self.entries(spot, entries, |me, _, value| me.plain(value));
            }
            (Shape::HelmValues, DeValue::Table(entries)) => {
                let mut flat = (Map::new(), spot);
                self.flatten("", entries, &mut flat);
                return (Value::Object(flat.0), flat.1);
            }
            (Shape::InputValues, DeValue::Table(entries)) => {
                return self.entries(spot, entries, |me, _, value| me.plain(value));
            }
            (Shape::InputValues, DeValue::Array(items)) => return self.layers(spot, items.iter()),
            (Shape::Any, _) => return self.plain(value),
            (Shape::Bool, DeValue::Boolean(bool)) => Value::Bool(*bool),
            (Shape::Int { .. }, DeValue::Integer(int)) => match integer(int) {
                Some(int) => int.into(),
                None => return self.wrong(key, "a number of 64 bits", value.get_ref(), span),
            },
            (shape, scalar) if is_text(shape) => match text(scalar) {
                Some(text) => Value::String(canonical(shape, &text).to_owned()),
                None => return self.wrong(key, "text", scalar, span),
            },
            (shape, other) => return self.wrong(key, wanted(shape), other, span),
        };
        (decoded, spot)
    }

    fn items<'t>(
        &mut self,
        mut spot: Spot,
        items: impl Iterator<Item = &'t Spanned<DeValue<'t>>>,
        mut decode: impl FnMut(&mut Self, &'t Spanned<DeValue<'t>>) -> Decoded,
    ) -> Decoded {
        let mut values = Vec::new();
        for item in items {
            let (value, at) = decode(self, item);
            values.push(value);
            spot.parts.push((Cow::Borrowed(""), at));
        }
        if values.iter().any(Value::is_null) {
            return (Value::Null, spot);
        }
        (Value::Array(values), spot)
    }

    fn entries(
        &mut self,
        mut spot: Spot,
        entries: &DeTable,
        mut decode: impl FnMut(&mut Self, &str, &Spanned<DeValue>) -> Decoded,
    ) -> Decoded {
        let mut object = Map::new();
        for (key, value) in entries {
            let (decoded, at) = decode(self, key.get_ref(), value);
            object.insert(key.get_ref().to_string(), decoded);
            spot.parts.push((Cow::Owned(key.get_ref().to_string()), at));
        }
        (Value::Object(object), spot)
    }

    /// Several tables laid over each other; a key `group` only sorts them for people.
    fn layers<'t>(&mut self, mut spot: Spot, items: impl Iterator<Item = &'t Spanned<DeValue<'t>>>) -> Decoded {
        let mut object = Map::new();
        for item in items {
            let DeValue::Table(entries) = item.get_ref() else {
                self.wrong("inputs", "tables", item.get_ref(), item.span());
                continue;
            };
            for (key, value) in entries.iter().filter(|(key, _)| key.get_ref() != "group") {
                let (decoded, at) = self.plain(value);
                object.insert(key.get_ref().to_string(), decoded);
                spot.parts.retain(|(known, _)| known != key.get_ref());
                spot.parts.push((Cow::Owned(key.get_ref().to_string()), at));
            }
        }
        (Value::Object(object), spot)
    }

    /// Text, or JSON of what is not.
    fn plain(&mut self, value: &Spanned<DeValue>) -> Decoded {
        let text = text(value.get_ref()).unwrap_or_else(|| to_json(value.get_ref()).to_string());
        (Value::String(text), self.spot(value.span()))
    }

    fn flatten(&mut self, prefix: &str, entries: &DeTable, flat: &mut (Map<String, Value>, Spot)) {
        for (key, value) in entries {
            // At the top, dots are those of `--set`; below, TOML itself has split the key.
            let name = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref().replace('.', "\\."))
            };
            self.flat_value(&name, value, flat);
        }
    }

    fn flat_value(&mut self, name: &str, value: &Spanned<DeValue>, flat: &mut (Map<String, Value>, Spot)) {
        match value.get_ref() {
            DeValue::Table(inner) => self.flatten(name, inner, flat),
            DeValue::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.flat_value(&format!("{name}[{index}]"), item, flat);
                }
            }
            scalar => {
                let (mut decoded, at) = self.plain(value);
                if scalar.is_array() {
                    decoded = "{}".into();
                }
                flat.0.insert(name.to_owned(), decoded);
                flat.1.parts.push((Cow::Owned(name.to_owned()), at));
            }
        }
    }

    fn wrong(&mut self, key: &str, wanted: &str, value: &DeValue, span: Range<usize>) -> Decoded {
        let hint = match (wanted, value) {
            ("tables", DeValue::Table(_)) => Some(format!("write `[[{key}]]`, with two brackets")),
            ("a table", DeValue::Array(_)) => Some(format!("write `[{key}]`, with one bracket")),
            ("`true` or `false`", DeValue::String(text)) if text == "true" || text == "false" => {
                Some(format!("write `{text}` without quotes"))
            }
            ("a whole number", DeValue::String(text)) if text.parse::<i64>().is_ok() => {
                Some(format!("write `{text}` without quotes"))
            }
            ("a list", DeValue::String(text)) => Some(format!("write `[\"{text}\"]`")),
            _ => None,
        };
        let said = error(Code::WrongType, format!("`{key}` must be {wanted}, not {}", kind(value))).maybe_hint(hint);
        self.say(said, span.clone());
        (Value::Null, self.spot(span))
    }
}

/// Whether components of a type have a key.
fn component_key(kind: &str, key: &str) -> bool {
    component_table(kind).is_some_and(|table| table.field(key).is_some())
}

pub(crate) fn is_component(table: &'static Table) -> bool {
    table.base.is_some_and(is_common) || is_common(table)
}

pub(crate) fn is_common(table: &'static Table) -> bool {
    table.name == ComponentCommon::TABLE.name
}

/// The name of today for one of yesterday.
pub(crate) fn canonical<'t>(shape: &Shape, text: &'t str) -> &'t str {
    let Shape::Renamed(_, old) = shape else { return text };
    old.iter().find(|(old, _)| *old == text).map_or(text, |(_, new)| *new)
}

fn is_text(shape: &Shape) -> bool {
    matches!(
        shape,
        Shape::Text
            | Shape::Choice(_)
            | Shape::Renamed(..)
            | Shape::Duration { .. }
            | Shape::Cron
            | Shape::Region(_)
            | Shape::Name(_)
            | Shape::Json
    )
}

fn wanted(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "`true` or `false`",
        Shape::Int { .. } => "a whole number",
        Shape::List(_) => "a list",
        Shape::Tables(_) => "tables",
        _ => "a table",
    }
}

fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn integer(int: &DeInteger) -> Option<i64> {
    i64::from_str_radix(int.as_str(), int.radix()).ok()
}

/// What is text, or is taken as it is written.
fn text(value: &DeValue) -> Option<String> {
    Some(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(int) => integer(int).map_or_else(|| int.to_string(), |int| int.to_string()),
        DeValue::Float(float) => float.to_string(),
        DeValue::Boolean(bool) => bool.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) | DeValue::Table(_) => return None,
    })
}

fn to_json(value: &DeValue) -> Value {
    match value {
        DeValue::Integer(int) => integer(int).map_or_else(|| int.to_string().into(), Value::from),
        DeValue::Float(float) => float.as_str().parse::<f64>().map_or_else(|_| float.to_string().into(), Value::from),
        DeValue::Boolean(bool) => (*bool).into(),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(entries) => {
            entries.iter().map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref()))).collect()
        }
        scalar => text(scalar).into(),
    }
}
