//! Finds the sensitive texts in a plan, so that they can be masked by value wherever else they appear.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;

use crate::diff::Marks;
use crate::plan::{PlanError, RawChange, RawResourceChange};
use crate::stream::{Each, EachEntry, Fields, read_document};

/// Shorter texts are not taken: masking them would spoil everything else.
const BYTES_MIN: usize = 6;
const COUNT_MAX: usize = 20_000;
const TOTAL_BYTES_MAX: usize = 16 << 20;

/// Sensitive texts, each once.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    pub values: Vec<String>,
    /// How many more were found than may be kept. They are not masked by value.
    pub omitted: u64,
}

/// Secrets do not get into logs by accident.
impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} secrets", self.values.len())
    }
}

/// The sensitive texts of resource changes, drift, output changes and sensitive variables of the root module.
pub fn secrets_of_plan(reader: impl Read) -> Result<Secrets, PlanError> {
    let mut reading = Reading::default();
    read_document(reader, &mut reading).map_err(PlanError::Malformed)?;
    for name in &reading.sensitive_variables {
        if let Some(value) = reading.variables.get(name) {
            reading.secrets.all_of(value);
        }
    }
    Ok(reading.secrets.finish())
}

#[derive(Default)]
pub(crate) struct Collector {
    values: BTreeSet<String>,
    bytes: usize,
    omitted: u64,
}

impl Collector {
    /// Takes all texts below the value.
    pub(crate) fn all_of(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.take(text),
            Value::Array(items) => items.iter().for_each(|item| self.all_of(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.all_of(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Takes all texts below a path. The elements of a set have no index: a path into one takes the whole set. So does a
    /// path into a text. What an object does not have holds no secret.
    pub(crate) fn at(&mut self, value: &Value, steps: &mut dyn Iterator<Item = &Value>) {
        let Some(step) = steps.next() else { return self.all_of(value) };
        match child(value, step) {
            Some(child) => self.at(child, steps),
            None if value.is_object() => {}
            None => self.all_of(value),
        }
    }

    pub(crate) fn marked(&mut self, value: &Value, marks: Marks) {
        if marks.cover(Some(value)) {
            return self.all_of(value);
        }
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| self.marked(item, marks.item(i)));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(name, field)| self.marked(field, marks.field(name)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.values.iter().for_each(|text| self.take(text));
        self.omitted += other.omitted;
    }

    fn take(&mut self, text: &str) {
        if text.len() < BYTES_MIN || self.values.contains(text) {
            return;
        }
        if self.values.len() == COUNT_MAX || self.bytes + text.len() > TOTAL_BYTES_MAX {
            self.omitted += 1;
            return;
        }
        self.bytes += text.len();
        self.values.insert(text.to_owned());
    }

    pub(crate) fn finish(self) -> Secrets {
        Secrets { values: self.values.into_iter().collect(), omitted: self.omitted }
    }
}

/// The part of a value that a step of a state's path leads to. The index of a step is wrapped in `value` and `type`, and
/// so is an attribute of dynamic type.
fn child<'v>(value: &'v Value, step: &Value) -> Option<&'v Value> {
    let key = step.get("value").unwrap_or(step);
    let direct = match key {
        Value::String(name) => value.get(name.as_str()),
        Value::Number(number) => value.get(usize::try_from(number.as_u64()?).ok()?),
        _ => None,
    };
    direct.or_else(|| {
        let wrapped = value.as_object().filter(|fields| fields.len() == 2 && fields.contains_key("type"))?;
        child(wrapped.get("value")?, step)
    })
}

#[derive(Default)]
struct Reading {
    secrets: Collector,
    /// Held until the configuration, which comes later, says which are sensitive.
    variables: BTreeMap<String, Value>,
    variable_bytes: usize,
    sensitive_variables: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Variable {
    #[serde(default)]
    value: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Configuration {
    root_module: RootModule,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RootModule {
    variables: BTreeMap<String, VariableConfiguration>,
}

#[derive(Deserialize)]
struct VariableConfiguration {
    #[serde(default)]
    sensitive: bool,
}

impl<'de> Fields<'de> for Reading {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, values: &mut A) -> Result<(), A::Error> {
        match name {
            "resource_changes" | "resource_drift" => {
                values.next_value_seed(Each::new(|raw: RawResourceChange| self.change(&raw.change)))?;
            }
            "output_changes" => values.next_value_seed(EachEntry::new(|_, change| self.change(&change)))?,
            "variables" => values.next_value_seed(EachEntry::new(|name, variable| self.variable(name, variable)))?,
            "configuration" => {
                let configuration: Configuration = values.next_value()?;
                let sensitive =
                    configuration.root_module.variables.into_iter().filter(|(_, variable)| variable.sensitive);
                self.sensitive_variables.extend(sensitive.map(|(name, _)| name));
            }
            _ => drop(values.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

impl Reading {
    fn change(&mut self, change: &RawChange) {
        self.secrets.marked(&change.before, Marks::of(&change.before_sensitive));
        self.secrets.marked(&change.after, Marks::of(&change.after_sensitive));
    }

    fn variable(&mut self, name: String, variable: Variable) {
        let bytes = variable.value.to_string().len();
        if self.variable_bytes + bytes > TOTAL_BYTES_MAX {
            self.secrets.omitted += 1;
            return;
        }
        self.variable_bytes += bytes;
        self.variables.insert(name, variable.value);
    }
}
