//! Visits the items of a JSON document one at a time, so that none but the current one is held.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

/// Calls the function with each item of an array. A null is an empty array.
pub(crate) struct Each<T, F>(F, PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Each<T, F> {
    pub(crate) fn new(call: F) -> Self {
        Self(call, PhantomData)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item);
        }
        Ok(())
    }
}

/// Calls the function with each key and value of an object. A null is an empty object.
pub(crate) struct EachEntry<T, F>(F, PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnMut(String, T)> EachEntry<T, F> {
    pub(crate) fn new(call: F) -> Self {
        Self(call, PhantomData)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(String, T)> DeserializeSeed<'de> for EachEntry<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(String, T)> Visitor<'de> for EachEntry<T, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some((key, value)) = entries.next_entry()? {
            (self.0)(key, value);
        }
        Ok(())
    }
}

/// The fields of the outermost object: the function takes each field's value from the access, or ignores it.
pub(crate) trait Fields<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, values: &mut A) -> Result<(), A::Error>;
}

/// Why a document can't be read. What stands in the document is left out on purpose: it may be secret.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is not the JSON that is expected, at line {line}, column {column}")]
    Json { line: usize, column: usize },
    #[error("it ends too early")]
    Early,
    #[error("reading failed")]
    Io(#[source] std::io::Error),
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Io => Self::Io(error.into()),
            Category::Eof => Self::Early,
            Category::Syntax | Category::Data => Self::Json { line: error.line(), column: error.column() },
        }
    }
}

/// Reads one document whose outermost value is an object.
pub(crate) fn read_document<R: std::io::Read, F: for<'de> Fields<'de>>(
    reader: R,
    fields: &mut F,
) -> Result<(), ReadError> {
    let buffered = std::io::BufReader::with_capacity(64 << 10, reader);
    let mut deserializer = serde_json::Deserializer::from_reader(buffered);
    deserializer.deserialize_map(Document(fields))?;
    Ok(deserializer.end()?)
}

struct Document<'a, F>(&'a mut F);

impl<'de, F: Fields<'de>> Visitor<'de> for Document<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(name) = values.next_key::<String>()? {
            self.0.field(&name, &mut values)?;
        }
        Ok(())
    }
}
