//! The tables that describe the format. Each table of a file is written down once, with the macro `tables!`: it gives the Rust type
//! and the description which decoding, the checks, the JSON Schemas and the documentation of the fields are driven by.

use serde_json::Value;

/// A TOML table: what it is, and which keys it may hold.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) fields: &'static [Field],
    /// Keys that several tables share.
    pub(crate) base: Option<&'static Table>,
    /// Groups of keys that stand for each other.
    pub(crate) choices: &'static [OneOf],
    /// Keys that stopped working, each with what to write instead.
    pub(crate) removed: &'static [(&'static str, &'static str)],
}

impl Table {
    pub(crate) const fn of(name: &'static str, doc: &'static str, fields: &'static [Field]) -> Table {
        Table { name, doc, fields, base: None, choices: &[], removed: &[] }
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.base.into_iter().flat_map(|base| base.fields).chain(self.fields)
    }

    /// The field that a key means: keys compare without regard to case, and some have other names.
    pub(crate) fn field(&self, key: &str) -> Option<&'static Field> {
        let exact = self.fields().find(|field| field.key == key);
        exact.or_else(|| self.fields().find(|field| field.names().any(|name| name.eq_ignore_ascii_case(key))))
    }
}

/// Keys that stand for each other.
#[derive(Debug)]
pub(crate) struct OneOf {
    pub(crate) keys: &'static [&'static str],
    pub(crate) required: bool,
    pub(crate) exclusive: bool,
}

impl OneOf {
    pub(crate) const fn exactly(keys: &'static [&'static str]) -> OneOf {
        OneOf { keys, required: true, exclusive: true }
    }

    pub(crate) const fn at_most(keys: &'static [&'static str]) -> OneOf {
        OneOf { keys, required: false, exclusive: true }
    }

    pub(crate) const fn at_least(keys: &'static [&'static str]) -> OneOf {
        OneOf { keys, required: true, exclusive: false }
    }
}

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    /// Other names of the key.
    pub(crate) aliases: &'static [&'static str],
    /// Other names under which the key holds the path of a file with the value.
    pub(crate) file_aliases: &'static [&'static str],
    pub(crate) get: Get,
    pub(crate) rendered: Rendered,
    /// The key works, and something else is better.
    pub(crate) deprecated: Option<&'static str>,
}

impl Field {
    pub(crate) const fn new(key: &'static str, doc: &'static str, field: Field) -> Field {
        Field { key, doc, ..field }
    }

    pub(crate) const fn required(mut self) -> Field {
        self.required = true;
        self
    }

    pub(crate) const fn alias(mut self, names: &'static [&'static str]) -> Field {
        self.aliases = names;
        self
    }

    /// The value may be the address of a file that holds it.
    pub(crate) const fn get(mut self) -> Field {
        self.get = Get::Anywhere;
        self
    }

    /// As `get`, and an address of the network stays as it is.
    pub(crate) const fn get_local(mut self) -> Field {
        self.get = Get::Local;
        self
    }

    pub(crate) const fn or_file_in(mut self, names: &'static [&'static str]) -> Field {
        self.file_aliases = names;
        self
    }

    pub(crate) const fn rendered(mut self) -> Field {
        self.rendered = Rendered::Yes;
        self
    }

    pub(crate) const fn page(mut self) -> Field {
        self.rendered = Rendered::Page;
        self
    }

    pub(crate) const fn deprecated(mut self, instead: &'static str) -> Field {
        self.deprecated = Some(instead);
        self
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.key].into_iter().chain(self.aliases.iter().copied()).chain(self.file_aliases.iter().copied())
    }
}

/// Whether a text may be the address of a file that holds the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Get {
    No,
    Local,
    Anywhere,
}

/// Whether templates in a text are rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendered {
    No,
    Yes,
    /// A page for people: what can't be rendered is shown as missing, and stops nothing.
    Page,
}

/// What a key may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Text; a number, boolean or date is taken as it is written.
    Text,
    Bool,
    Int {
        min: i64,
        max: i64,
    },
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// One of these texts, some of which have older names (old, new).
    Renamed(&'static [&'static str], &'static [(&'static str, &'static str)]),
    /// A Go duration.
    Duration {
        min_s: u64,
        max_s: u64,
    },
    Cron,
    /// A region of a cloud.
    Region(Cloud),
    /// A name by which other places speak of the thing.
    Name(NameRule),
    Json,
    List(&'static Shape),
    Table(&'static Table),
    Tables(&'static Table),
    /// Free keys.
    Map(&'static Shape),
    /// Free keys with text; lists and tables become JSON, which Terraform reads.
    Vars,
    /// Free keys with text; lists and tables become dotted keys, as for `helm --set`.
    HelmValues,
    /// A table of free keys, or several of them which are laid over each other.
    InputValues,
    /// A value of any kind; what is not text becomes JSON.
    Any,
    /// A component: `type` says which table it is.
    Component,
}

impl Shape {
    /// Whether it is written as one table.
    pub(crate) fn is_table(&self) -> bool {
        matches!(
            self,
            Shape::Table(_) | Shape::Map(_) | Shape::Vars | Shape::HelmValues | Shape::InputValues | Shape::Component
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cloud {
    Aws,
    Gcp,
    Azure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Lower-case letters, digits and `_`; templates can say it after a dot.
    Dotted,
    /// Any text that is not empty.
    Free,
}

const fn field(shape: Shape) -> Field {
    Field {
        key: "",
        doc: "",
        shape,
        required: false,
        aliases: &[],
        file_aliases: &[],
        get: Get::No,
        rendered: Rendered::No,
        deprecated: None,
    }
}

pub(crate) const fn text() -> Field {
    field(Shape::Text)
}

pub(crate) const fn boolean() -> Field {
    field(Shape::Bool)
}

pub(crate) const fn int(min: i64, max: i64) -> Field {
    field(Shape::Int { min, max })
}

pub(crate) const fn choice(values: &'static [&'static str]) -> Field {
    field(Shape::Choice(values))
}

pub(crate) const fn renamed(values: &'static [&'static str], old: &'static [(&'static str, &'static str)]) -> Field {
    field(Shape::Renamed(values, old))
}

/// Timeouts of all kinds: at most an hour.
pub(crate) const fn timeout() -> Field {
    duration(1, 3600)
}

pub(crate) const fn duration(min_s: u64, max_s: u64) -> Field {
    field(Shape::Duration { min_s, max_s })
}

pub(crate) const fn cron() -> Field {
    field(Shape::Cron)
}

pub(crate) const fn region(cloud: Cloud) -> Field {
    field(Shape::Region(cloud))
}

pub(crate) const fn name(rule: NameRule) -> Field {
    field(Shape::Name(rule)).required()
}

pub(crate) const fn json() -> Field {
    field(Shape::Json)
}

pub(crate) const fn texts() -> Field {
    field(Shape::List(&Shape::Text))
}

pub(crate) const fn table(table: &'static Table) -> Field {
    field(Shape::Table(table))
}

pub(crate) const fn list(table: &'static Table) -> Field {
    field(Shape::Tables(table))
}

pub(crate) const fn map() -> Field {
    field(Shape::Map(&Shape::Text))
}

pub(crate) const fn map_of(shape: &'static Shape) -> Field {
    field(Shape::Map(shape))
}

pub(crate) const fn shaped(shape: Shape) -> Field {
    field(shape)
}

/// Retries of a failed plan or apply.
pub(crate) const fn retries() -> Field {
    int(0, 20)
}

/// What is left out of the stored form: it means the same as nothing.
pub(crate) trait Absent {
    fn is_absent(&self) -> bool;
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<K, V> Absent for std::collections::BTreeMap<K, V> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for String {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for bool {
    fn is_absent(&self) -> bool {
        !self
    }
}

impl Absent for i64 {
    fn is_absent(&self) -> bool {
        *self == 0
    }
}

/// Whether a decoded value is there: neither left out, nor empty.
pub(crate) fn is_set(value: Option<&Value>) -> bool {
    match value {
        None => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

/// Field names that are words of Rust are written `r#type`.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Writes a table down: the Rust type with its fields, and `TABLE`, which describes it.
macro_rules! tables {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $(with $base:ident)? {
            $( $(#[doc = $field_doc:literal])+ $key:ident: $ty:ty = $field:expr; )*
        }
        $(one of $($choice:expr),+;)?
        $(removed $($old:literal => $instead:literal),+;)?
    )*) => { $(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $( $(#[doc = $field_doc])+ #[serde(skip_serializing_if = "crate::table::Absent::is_absent")] pub $key: $ty, )*
        }

        impl $name {
            pub(crate) const TABLE: crate::table::Table = crate::table::Table {
                name: stringify!($name),
                doc: concat!($($doc),+),
                fields: &[$(
                    crate::table::Field::new(crate::table::plain(stringify!($key)), concat!($($field_doc),+), $field),
                )*],
                base: crate::table::tables!(@base $($base)?),
                choices: &[$($($choice),+)?],
                removed: &[$($(($old, $instead)),+)?],
            };
        }
    )* };
    (@base) => { None };
    (@base $base:ident) => { Some(&$base::TABLE) };
}

pub(crate) use tables;
