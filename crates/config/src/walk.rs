//! Goes through a decoded config by its tables.

use serde_json::{Map, Value};

use crate::decode::is_common;
use crate::kinds::{AppConfig, ComponentCommon, TYPE, component_table};
use crate::source::escape;
use crate::table::{Field, Shape, Table};

/// Where the walk is, from the root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'p> {
    up: Option<&'p Path<'p>>,
    key: &'p str,
    index: usize,
}

impl<'p> Path<'p> {
    pub(crate) const ROOT: Path<'static> = Path { up: None, key: "", index: 0 };

    pub(crate) fn key(&'p self, key: &'p str) -> Path<'p> {
        Path { up: Some(self), key, index: 0 }
    }

    pub(crate) fn index(&'p self, index: usize) -> Path<'p> {
        Path { up: Some(self), key: "", index }
    }

    /// As a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let Some(up) = self.up else { return String::new() };
        match self.key {
            "" => format!("{}/{}", up.pointer(), self.index),
            key => format!("{}/{}", up.pointer(), escape(key)),
        }
    }
}

/// Something on the way.
pub(crate) enum Seen<'v> {
    Table(&'static Table, &'v Map<String, Value>),
    /// A value that is no table and no list, with the field that it belongs to.
    Leaf(&'static Field, &'static Shape, &'v Value),
}

pub(crate) fn walk<'v>(config: &'v Value, visit: &mut dyn FnMut(&Path, Seen<'v>)) {
    if let Value::Object(object) = config {
        table(&AppConfig::TABLE, object, &Path::ROOT, visit);
    }
}

fn table<'v>(
    table: &'static Table,
    object: &'v Map<String, Value>,
    path: &Path,
    visit: &mut dyn FnMut(&Path, Seen<'v>),
) {
    visit(path, Seen::Table(table, object));
    for field in fields(table) {
        if let Some(inner) = object.get(field.key) {
            value(field, &field.shape, inner, &path.key(field.key), visit);
        }
    }
}

/// The fields of a table, with `type` for components.
pub(crate) fn fields(table: &'static Table) -> impl Iterator<Item = &'static Field> {
    let component = table.base.is_some_and(is_common) || is_common(table);
    component.then_some(&TYPE).into_iter().chain(table.fields())
}

/// The table of a component.
pub(crate) fn table_of(component: &Map<String, Value>) -> &'static Table {
    component.get("type").and_then(Value::as_str).and_then(component_table).unwrap_or(&ComponentCommon::TABLE)
}

fn value<'v>(
    field: &'static Field,
    shape: &'static Shape,
    found: &'v Value,
    path: &Path,
    visit: &mut dyn FnMut(&Path, Seen<'v>),
) {
    match (shape, found) {
        (Shape::Table(inner), Value::Object(object)) => table(inner, object, path, visit),
        (Shape::Component, Value::Object(object)) => table(table_of(object), object, path, visit),
        (Shape::Tables(inner), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                if let Value::Object(object) = item {
                    table(inner, object, &path.index(index), visit);
                }
            }
        }
        (Shape::List(inner), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                value(field, inner, item, &path.index(index), visit);
            }
        }
        (Shape::Map(inner), Value::Object(entries)) => {
            for (key, entry) in entries {
                value(field, inner, entry, &path.key(key), visit);
            }
        }
        (Shape::Vars | Shape::HelmValues | Shape::InputValues, Value::Object(entries)) => {
            for (key, entry) in entries {
                value(field, &Shape::Text, entry, &path.key(key), visit);
            }
        }
        _ => visit(path, Seen::Leaf(field, shape, found)),
    }
}
