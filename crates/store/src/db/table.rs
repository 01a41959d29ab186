//! Tables whose rows are read whole: columns, struct and decoding are one declaration.

use super::value::Columned;
use crate::Result;

/// A column: what is selected, and the name of the field that it fills.
pub(crate) struct Column {
    pub(crate) expression: &'static str,
    pub(crate) field: &'static str,
}

pub(crate) trait Table: Sized {
    const NAME: &'static str;
    const COLUMNS: &'static [Column];

    fn from_row(row: &impl Columned) -> Result<Self>;

    /// The columns, each under the name of its field.
    fn columns() -> String {
        let column = |column: &Column| match column.expression == column.field {
            true => column.field.to_owned(),
            false => format!("{} AS \"{}\"", column.expression, column.field),
        };
        Self::COLUMNS.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// `SELECT … FROM table`, and the rest of the statement.
    fn select(rest: &str) -> String {
        format!("SELECT {} FROM {} {rest}", Self::columns(), Self::NAME)
    }

    /// The columns in a join, where the table is called `alias`; `Row::of("alias_")` reads them.
    fn columns_of(alias: &str) -> String {
        let column = |column: &Column| format!("{alias}.{} AS {alias}_{}", column.expression, column.field);
        Self::COLUMNS.iter().map(column).collect::<Vec<_>>().join(", ")
    }
}

/// Declares a struct that is a row of a table. A field is read from the column of its name, or from what is given after `=`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident from $table:literal {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty $(= $expression:literal)?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        impl $crate::db::Table for $name {
            const NAME: &'static str = $table;
            const COLUMNS: &'static [$crate::db::Column] = &[$($crate::db::Column {
                expression: $crate::db::table!(@expression $field $($expression)?),
                field: stringify!($field),
            }),*];

            fn from_row(row: &impl $crate::db::Columned) -> $crate::Result<Self> {
                Ok(Self { $($field: row.column(stringify!($field))?,)* })
            }
        }
    };
    (@expression $field:ident) => { stringify!($field) };
    (@expression $field:ident $expression:literal) => { $expression };
}
pub(crate) use table;

/// The text of a statement that is put together, made once.
macro_rules! made_once {
    ($text:expr) => {{
        static TEXT: std::sync::LazyLock<&'static str> = std::sync::LazyLock::new(|| Box::leak($text.into_boxed_str()));
        *TEXT
    }};
}
pub(crate) use made_once;

/// The text of a statement that reads whole rows.
macro_rules! select {
    ($table:ty, $rest:expr) => {
        $crate::db::made_once!(<$table as $crate::db::Table>::select($rest))
    };
}
pub(crate) use select;
