//! Values that travel between Rust and the databases: integers, text and bytes, nothing else.

use model::{Timestamp, id};

use crate::{Result, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

/// A row, by position: queries name their columns.
#[derive(Debug, Clone)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    pub fn get<T: FromValue>(&self, at: usize) -> Result<T> {
        let value = self.0.get(at).ok_or_else(|| StoreError::corrupt("row"))?;
        T::from_value(value).ok_or_else(|| StoreError::db(format_args!("column {at} has an unexpected type")))
    }

    /// The first columns, and the others: a row of two joined tables.
    pub(crate) fn split(mut self, at: usize) -> (Self, Self) {
        let rest = self.0.split_off(at.min(self.0.len()));
        (self, Self(rest))
    }

    /// A column that holds JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, at: usize) -> Result<T> {
        let text: String = self.get(at)?;
        serde_json::from_str(&text).map_err(|e| StoreError::db(format_args!("column {at}: {e}")))
    }

    /// A column that may hold JSON.
    pub fn json_opt<T: serde::de::DeserializeOwned>(&self, at: usize) -> Result<Option<T>> {
        match self.get::<Option<String>>(at)? {
            None => Ok(None),
            Some(_) => self.json(at).map(Some),
        }
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

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Int(i64::from(b))
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        s.to_owned().into()
    }
}

impl From<String> for Value {
    /// PostgreSQL has no NUL in text. What a runner reports may have one, and must not become impossible to store.
    fn from(s: String) -> Self {
        Self::Text(if s.contains('\0') { s.replace('\0', "\u{FFFD}") } else { s })
    }
}

impl From<&String> for Value {
    fn from(s: &String) -> Self {
        s.as_str().into()
    }
}

impl From<Vec<u8>> for Value {
    fn from(b: Vec<u8>) -> Self {
        Self::Blob(b)
    }
}

impl From<Timestamp> for Value {
    fn from(t: Timestamp) -> Self {
        Self::Int(t.micros())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! id_values {
    ($($name:ident),*) => {$(
        impl From<&id::$name> for Value {
            fn from(id: &id::$name) -> Self {
                Self::Text(id.as_str().to_owned())
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
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Value::from($value)),*] };
}
pub(crate) use params;
