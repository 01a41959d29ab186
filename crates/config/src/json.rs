//! Configs as JSON: the form in which they are stored, and in which they arrive where there are no files.

use serde_json::{Map, Value};

use crate::decode::canonical;
use crate::kinds::{AppConfig, ComponentKind, TYPE};
use crate::layout::{ORDERED, name_of};
use crate::table::Shape;
use crate::walk::{fields, table_of};

impl AppConfig {
    /// Reads a config. Older names become today's, and lists whose order means nothing get that of the names.
    pub fn from_json(value: &Value) -> Result<AppConfig, model::json::Unreadable> {
        let mut value = without_nulls(value);
        if let Value::Object(parts) = &mut value {
            for field in AppConfig::TABLE.fields() {
                let Some(part) = parts.get_mut(field.key) else { continue };
                rename(&field.shape, part);
                if let Value::Array(things) = part
                    && !ORDERED.contains(&field.key)
                {
                    things.sort_by(|a, b| name_of(a).cmp(name_of(b)));
                }
            }
        }
        model::json::from_value(value)
    }

    /// The form that is stored, equal for configs that say the same.
    pub fn canonical_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a config is made of texts, numbers and tables with text keys")
    }

    pub fn digest(&self) -> model::Digest {
        model::Digest::of(&self.canonical_json())
    }
}

/// What can't be used is `null`; the types know nothing of it.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

fn rename(shape: &'static Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::Renamed(..), Value::String(text)) => *text = canonical(shape, text).to_owned(),
        (Shape::Table(table), Value::Object(object)) => rename_keys(fields(table), object),
        (Shape::Component, Value::Object(object)) => {
            let kind = object.entry(TYPE.key).or_insert_with(|| ComponentKind::Unknown.name().into());
            rename(&TYPE.shape, kind);
            rename_keys(fields(table_of(object)), object);
        }
        (Shape::Tables(table), Value::Array(items)) => {
            for object in items.iter_mut().filter_map(Value::as_object_mut) {
                rename_keys(fields(table), object);
            }
        }
        (Shape::List(inner), Value::Array(items)) => items.iter_mut().for_each(|item| rename(inner, item)),
        (Shape::Map(inner), Value::Object(entries)) => entries.values_mut().for_each(|entry| rename(inner, entry)),
        _ => {}
    }
}

fn rename_keys(fields: impl Iterator<Item = &'static crate::table::Field>, object: &mut Map<String, Value>) {
    for field in fields {
        if let Some(value) = object.get_mut(field.key) {
            rename(&field.shape, value);
        }
    }
}
