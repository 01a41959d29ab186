//! Values that travel between Rust and the databases: integers, text and bytes, nothing else.

use std::sync::Arc;

use model::{Timestamp, id};

use crate::{Result, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

/// The names of a statement's columns, shared by its rows.
pub(crate) type Columns = Arc<[Box<str>]>;

/// A row, whose columns are read by name.
#[derive(Debug, Clone)]
pub struct Row {
    columns: Columns,
    values: Vec<Value>,
}

impl Row {
    pub(super) fn new(columns: Columns, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    pub fn get<T: FromValue>(&self, column: &str) -> Result<T> {
        self.under("", column)
    }

    /// The columns of one table of a join: those whose names begin with a prefix.
    pub(crate) fn of<'r>(&'r self, prefix: &'static str) -> RowOf<'r> {
        RowOf { row: self, prefix }
    }

    fn under<T: FromValue>(&self, prefix: &str, column: &str) -> Result<T> {
        let named = |name: &str| name.strip_prefix(prefix) == Some(column);
        let at = self.columns.iter().position(|name| named(name));
        let value = at.and_then(|at| self.values.get(at));
        let value = value.ok_or_else(|| StoreError::db(format_args!("a row has no column `{prefix}{column}`")))?;
        let unreadable = || StoreError::db(format_args!("column `{prefix}{column}` can't be read"));
        T::from_value(value).ok_or_else(unreadable)
    }
}

/// What a row of a join holds of one table.
#[derive(Clone, Copy)]
pub(crate) struct RowOf<'r> {
    row: &'r Row,
    prefix: &'static str,
}

/// Something whose columns are read by name.
pub(crate) trait Columned {
    fn column<T: FromValue>(&self, name: &str) -> Result<T>;
}

impl Columned for Row {
    fn column<T: FromValue>(&self, name: &str) -> Result<T> {
        self.get(name)
    }
}

impl Columned for RowOf<'_> {
    fn column<T: FromValue>(&self, name: &str) -> Result<T> {
        self.row.under(self.prefix, name)
    }
}

pub trait FromValue: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Int(n) = value { Some(*n) } else { None }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(|n| n != 0)
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(s) = value { Some(s.clone()) } else { None }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Blob(b) = value { Some(b.clone()) } else { None }
    }
}

impl FromValue for Timestamp {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(Self::from_micros)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

/// What a parameter of a statement may be. References to it are, too.
pub trait ToValue {
    fn to_value(&self) -> Value;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

impl ToValue for i64 {
    fn to_value(&self) -> Value {
        Value::Int(*self)
    }
}

impl ToValue for u64 {
    fn to_value(&self) -> Value {
        Value::Int(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl ToValue for u32 {
    fn to_value(&self) -> Value {
        Value::Int((*self).into())
    }
}

impl ToValue for bool {
    fn to_value(&self) -> Value {
        Value::Int((*self).into())
    }
}

impl ToValue for Timestamp {
    fn to_value(&self) -> Value {
        Value::Int(self.micros())
    }
}

impl ToValue for str {
    /// PostgreSQL has no NUL in text. What a runner reports may have one, and must not become impossible to store.
    fn to_value(&self) -> Value {
        Value::Text(if self.contains('\0') { self.replace('\0', "\u{FFFD}") } else { self.to_owned() })
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value {
        self.as_str().to_value()
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value {
        Value::Blob(self.clone())
    }
}

/// Documents that are kept as JSON, and read into their type with their row.
macro_rules! json_values {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::db::FromValue for $type {
            fn from_value(value: &$crate::db::Value) -> Option<Self> {
                if let $crate::db::Value::Text(text) = value { serde_json::from_str(text).ok() } else { None }
            }
        }
        impl $crate::db::ToValue for $type {
            fn to_value(&self) -> $crate::db::Value {
                serde_json::to_string(self).expect("a document of ours has names for keys").to_value()
            }
        }
    )*};
}

json_values!(
    serde_json::Value,
    crate::AppSettings,
    crate::InstallSettings,
    model::runner::RunnerSettings,
    model::runner::RunnerReport,
    model::build::BuiltFrom,
    model::build::Artifact,
    model::deploy::ApprovedPlan,
    model::deploy::SealedFile,
    model::deploy::LockInfo,
    Vec<String>,
    std::collections::BTreeMap<String, String>,
);

/// There are none before the first report.
impl FromValue for Vec<model::StepResult> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::new()),
            Value::Text(text) => serde_json::from_str(text).ok(),
            Value::Int(_) | Value::Blob(_) => None,
        }
    }
}

/// Enums that are kept by their names.
macro_rules! text_values {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::db::FromValue for $type {
            fn from_value(value: &$crate::db::Value) -> Option<Self> {
                if let $crate::db::Value::Text(text) = value { <$type>::parse(text) } else { None }
            }
        }
        impl $crate::db::ToValue for $type {
            fn to_value(&self) -> $crate::db::Value {
                $crate::db::Value::Text(self.as_str().to_owned())
            }
        }
    )*};
}
pub(crate) use text_values;

text_values!(model::JobState, model::JobType, model::JobGroup, model::Role, model::runner::RunnerKind);

impl FromValue for model::Digest {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value { Self::parse(text).ok() } else { None }
    }
}

impl ToValue for model::Digest {
    fn to_value(&self) -> Value {
        self.as_str().to_value()
    }
}

macro_rules! id_values {
    ($($name:ident),*) => {$(
        impl ToValue for id::$name {
            fn to_value(&self) -> Value {
                Value::Text(self.as_str().to_owned())
            }
        }
        impl FromValue for id::$name {
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::Text(s) = value { Self::parse(s).ok() } else { None }
            }
        }
    )*};
}
id_values!(
    OrgId,
    AccountId,
    TokenId,
    AccountSessionId,
    SavedViewId,
    InviteId,
    AppId,
    ConfigId,
    SectionId,
    ActionRunId,
    BuildId,
    WorkflowId,
    WorkspaceId,
    RevisionId,
    UploadId,
    StepId,
    VariableId,
    InputsId,
    InstallId,
    RunnerId,
    CredentialId,
    JobId,
    ExecutionId,
    LogStreamId,
    BlobId
);

/// Builds the parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::ToValue::to_value(&$value)),*] };
}
pub(crate) use params;
