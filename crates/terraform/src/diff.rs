//! The leaves that change between two values.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::address;
use crate::model::{AttributeChange, Limits, Shown};
use crate::show::{Show, shorten, shorten_pair};

/// A tree of marks beside a value: `true` marks everything below.
#[derive(Clone, Copy)]
pub(crate) struct Marks<'a>(Option<&'a Value>);

impl<'a> Marks<'a> {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn of(tree: &'a Value) -> Self {
        Self(Some(tree))
    }

    /// Whether everything here is marked.
    pub(crate) fn all(self) -> bool {
        self.0 == Some(&Value::Bool(true))
    }

    /// Whether the value as a whole is marked. Marks of another shape than the value's mark all of it.
    pub(crate) fn cover(self, value: Option<&Value>) -> bool {
        match (value, self.0) {
            (Some(Value::Object(_)), Some(Value::Object(_))) | (Some(Value::Array(_)), Some(Value::Array(_))) => false,
            (None, _) => self.all(),
            _ => self.any(),
        }
    }

    /// Whether anything here is marked.
    fn any(self) -> bool {
        match self.0 {
            Some(Value::Bool(marked)) => *marked,
            Some(Value::Array(items)) => items.iter().any(|item| Self::of(item).any()),
            Some(Value::Object(fields)) => fields.values().any(|field| Self::of(field).any()),
            None | Some(Value::Null | Value::Number(_) | Value::String(_)) => false,
        }
    }

    pub(crate) fn field(self, name: &str) -> Self {
        if self.all() { self } else { Self(self.0.and_then(|tree| tree.get(name))) }
    }

    pub(crate) fn item(self, index: usize) -> Self {
        if self.all() { self } else { Self(self.0.and_then(|tree| tree.get(index))) }
    }

    fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys().map(String::as_str))
    }

    fn len(self) -> usize {
        self.0.and_then(Value::as_array).map_or(0, Vec::len)
    }
}

/// A value before or after the change, and the marks that go with it.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    value: Option<&'a Value>,
    sensitive: Marks<'a>,
    unknown: Marks<'a>,
}

impl<'a> Side<'a> {
    /// A null is as good as nothing.
    pub(crate) fn new(value: &'a Value, sensitive: Marks<'a>, unknown: Marks<'a>) -> Self {
        Self { value: Some(value).filter(|value| !value.is_null()), sensitive, unknown }
    }

    fn field(self, name: &str) -> Self {
        let value = self.value.and_then(|value| value.get(name)).unwrap_or(&Value::Null);
        Self::new(value, self.sensitive.field(name), self.unknown.field(name))
    }

    fn item(self, index: usize) -> Self {
        let value = self.value.and_then(|value| value.get(index)).unwrap_or(&Value::Null);
        Self::new(value, self.sensitive.item(index), self.unknown.item(index))
    }

    /// The place of an item that this side does not have.
    fn nothing() -> Self {
        Self { value: None, sensitive: Marks::NONE, unknown: Marks::NONE }
    }

    fn len(self) -> usize {
        self.value.and_then(Value::as_array).map_or(0, Vec::len).max(self.unknown.len())
    }

    fn is_absent(self) -> bool {
        self.value.is_none() && !self.unknown.any()
    }

    fn is_hidden(self) -> bool {
        self.sensitive.cover(self.value)
    }

    fn is_same(self, other: Self) -> bool {
        let marks_same = self.sensitive.0 == other.sensitive.0 || !(self.sensitive.any() || other.sensitive.any());
        self.value == other.value && marks_same && !other.unknown.any()
    }

    fn shape(self) -> Shape {
        match self.value {
            Some(Value::Object(_)) => Shape::Object,
            Some(Value::Array(_)) => Shape::Array,
            Some(_) => Shape::Leaf,
            None if self.unknown.names().next().is_some() => Shape::Object,
            None if self.unknown.len() > 0 => Shape::Array,
            None => Shape::Absent,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Absent,
    Leaf,
    Object,
    Array,
}

/// Where in a value something is: a list that ends at the root.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Name(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(crate) fn field(&'p self, name: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Name(name) }
    }

    fn item(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    fn steps(&self) -> Vec<Step<'p>> {
        let mut steps = Vec::new();
        let mut here = *self;
        while let Some(parent) = here.parent {
            steps.push(here.step);
            here = *parent;
        }
        steps.reverse();
        steps
    }

    /// Whether this is at, below or above the place that the steps of a document lead to.
    fn meets(&self, place: &Value) -> bool {
        let Some(place) = place.as_array() else { return false };
        self.steps().iter().zip(place).all(|(step, other)| match step {
            Step::Root => true,
            Step::Name(name) => other.as_str() == Some(name),
            Step::Index(index) => other.as_u64() == Some(*index as u64),
        })
    }
}

/// A path of steps as one text: `["disk", 0, "size"]` is `disk[0].size`.
pub(crate) fn path_of_steps(steps: &Value, masks: &dyn Fn(&str) -> String) -> Option<String> {
    let mut path = String::new();
    for step in steps.as_array()? {
        match step {
            Value::String(name) => push_name(&mut path, name, masks),
            Value::Number(index) => path.push_str(&format!("[{index}]")),
            _ => break,
        }
    }
    Some(path).filter(|path| !path.is_empty())
}

fn push_name(path: &mut String, name: &str, masks: &dyn Fn(&str) -> String) {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let masked = masks(name);
    if !is_plain {
        path.push_str(&address::index(Some(&Value::String(masked))));
        return;
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&masked);
}

/// Compares values and gathers the leaves that change, up to the limit; the others are counted.
pub(crate) struct Diff<'a> {
    pub(crate) changes: Vec<AttributeChange>,
    pub(crate) omitted: u64,
    masks: &'a dyn Fn(&str) -> String,
    limits: &'a Limits,
    replace_paths: &'a [Value],
}

impl<'a> Diff<'a> {
    pub(crate) fn new(masks: &'a dyn Fn(&str) -> String, limits: &'a Limits, replace_paths: &'a [Value]) -> Self {
        Self { changes: Vec::new(), omitted: 0, masks, limits, replace_paths }
    }

    pub(crate) fn compare(&mut self, path: Path, before: Side, after: Side) {
        if before.is_absent() && after.is_absent() {
            return;
        }
        if after.unknown.all() {
            return self.leaf(path, before, after);
        }
        if before.is_hidden() || after.is_hidden() {
            if !before.is_same(after) {
                self.leaf(path, before, after);
            }
            return;
        }
        match (before.shape(), after.shape()) {
            (Shape::Object, Shape::Object | Shape::Absent) | (Shape::Absent, Shape::Object) => {
                self.fields(path, before, after);
            }
            (Shape::Array, Shape::Array | Shape::Absent) | (Shape::Absent, Shape::Array) => {
                self.items(path, before, after);
            }
            _ if before.value == after.value => {}
            _ => self.text_or_leaf(path, before, after),
        }
    }

    fn fields(&mut self, path: Path, before: Side, after: Side) {
        let mut names = BTreeSet::new();
        for side in [before, after] {
            let fields = side.value.and_then(Value::as_object);
            names.extend(fields.into_iter().flat_map(|fields| fields.keys().map(String::as_str)));
            names.extend(side.unknown.names());
        }
        if names.is_empty() && before.value != after.value {
            return self.leaf(path, before, after);
        }
        for name in names {
            self.compare(path.field(name), before.field(name), after.field(name));
        }
    }

    /// Items are compared by their place; what is added or removed in the middle does not make the rest differ.
    fn items(&mut self, path: Path, before: Side, after: Side) {
        let (old, new) = (before.len(), after.len());
        if old == 0 && new == 0 && before.value != after.value {
            return self.leaf(path, before, after);
        }
        let shorter = old.min(new);
        let (mut head, mut tail) = (0, 0);
        if old != new {
            head = (0..shorter).take_while(|i| before.item(*i).is_same(after.item(*i))).count();
            let rest = shorter - head;
            tail = (1..=rest).take_while(|i| before.item(old - i).is_same(after.item(new - i))).count();
        }
        for i in head..(old - tail).max(new - tail) {
            let was = if i < old - tail { before.item(i) } else { Side::nothing() };
            let becomes = if i < new - tail { after.item(i) } else { Side::nothing() };
            self.compare(path.item(i), was, becomes);
        }
    }

    /// Two texts that hold JSON are compared as what they hold.
    fn text_or_leaf(&mut self, path: Path, before: Side, after: Side) {
        if let (Some(old), Some(new)) = (json_in(before.value), json_in(after.value))
            && old != new
        {
            let old = Side::new(&old, Marks::NONE, Marks::NONE);
            let new = Side::new(&new, Marks::NONE, Marks::NONE);
            if old.shape() == new.shape() {
                return match old.shape() {
                    Shape::Array => self.items(path, old, new),
                    Shape::Object | Shape::Absent | Shape::Leaf => self.fields(path, old, new),
                };
            }
        }
        self.leaf(path, before, after);
    }

    fn leaf(&mut self, path: Path, before: Side, after: Side) {
        if self.changes.len() >= self.limits.attributes_per_resource {
            self.omitted += 1;
            return;
        }
        let hidden = before.is_hidden() || after.is_hidden();
        let (before, after) = (self.shown(before, hidden), self.shown(after, hidden));
        let (before, after) = shorten_pair(before, after, self.limits.value_chars);
        let replaces = self.replace_paths.iter().any(|place| path.meets(place));
        self.changes.push(AttributeChange { path: self.text_of(path), before, after, replaces });
    }

    fn text_of(&self, path: Path) -> String {
        let mut text = String::new();
        for step in path.steps() {
            match step {
                Step::Root => {}
                Step::Name(name) => push_name(&mut text, name, self.masks),
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        shorten(&text, self.limits.value_chars).0
    }

    fn shown(&self, side: Side, hidden: bool) -> Shown {
        match side.value {
            _ if side.unknown.all() => Shown::Unknown,
            None => Shown::Absent,
            Some(_) if hidden => Shown::Sensitive,
            Some(value) => Shown::Value { text: Show(self.masks).text(value, side.sensitive), cut_chars: 0 },
        }
    }
}

/// The object or array that a text holds as JSON.
fn json_in(value: Option<&Value>) -> Option<Value> {
    let text = value?.as_str()?.trim_start();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}
