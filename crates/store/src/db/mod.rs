//! One transaction type over both databases.
//!
//! `Db::write` takes a function from a transaction to a future. On SQLite the future is polled once, on the writer thread,
//! where every call of `tx` is ready at once; on PostgreSQL it is awaited, and run again after a serialization failure. So
//! inside it: await only `tx`, own everything you use, and touch nothing outside the transaction.

mod inline;
mod postgres;
mod sqlite;
mod value;

use std::path::Path;

use futures::future::BoxFuture;

pub use postgres::Traffic;
pub(crate) use value::params;
pub use value::{Row, Value};

use crate::{Result, StoreError};

/// One SQL text for both databases, or one for each where the dialects force it. Parameters are `$1`, `$2`, …
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }
}

/// An open transaction.
pub enum Tx<'c> {
    Sqlite(sqlite::SqliteTx<'c>),
    Postgres(Box<postgres::PostgresTx>),
}

impl Tx<'_> {
    /// Runs a statement; returns how many rows it changed.
    pub async fn exec(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Result<u64> {
        match self {
            Self::Sqlite(tx) => tx.exec(sql.into().sqlite, params),
            Self::Postgres(tx) => tx.exec(sql.into().postgres, params).await,
        }
    }

    /// Runs a statement whose count nobody needs. On PostgreSQL it travels with the next statement, or with the commit, and
    /// that is where its error shows.
    pub async fn exec_later(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Result<()> {
        match self {
            Self::Sqlite(tx) => tx.exec(sql.into().sqlite, params).map(|_| ()),
            Self::Postgres(tx) => tx.exec_later(sql.into().postgres, params).await,
        }
    }

    pub async fn query(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(tx) => tx.query(sql.into().sqlite, params),
            Self::Postgres(tx) => tx.query(sql.into().postgres, params).await,
        }
    }

    pub async fn get(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Result<Option<Row>> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Several queries at once: one round trip on PostgreSQL.
    pub(crate) async fn queries(&mut self, asked: Vec<(&'static str, Vec<Value>)>) -> Result<Vec<Vec<Row>>> {
        match self {
            Self::Sqlite(tx) => asked.into_iter().map(|(sql, params)| tx.query(sql, params)).collect(),
            Self::Postgres(tx) => tx.queries(asked).await,
        }
    }

    /// Whether a statement is a journey away, and several are better sent as one.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Runs several statements without parameters: migrations only.
    pub(crate) async fn batch(&mut self, sql: Sql) -> Result<()> {
        match self {
            Self::Sqlite(tx) => tx.batch(sql.sqlite),
            Self::Postgres(tx) => tx.batch(sql.postgres).await,
        }
    }
}

/// A database.
#[derive(Clone)]
pub enum Db {
    Sqlite(sqlite::Sqlite),
    Inline(inline::Inline),
    Postgres(postgres::Postgres),
}

impl Db {
    /// How much was asked of PostgreSQL so far; nothing on SQLite, which is no journey away.
    pub fn traffic(&self) -> Traffic {
        match self {
            Self::Sqlite(_) | Self::Inline(_) => Traffic::default(),
            Self::Postgres(db) => db.traffic(),
        }
    }

    /// Runs `f` in a transaction that is committed, durably, before this returns `Ok`.
    pub async fn write<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        match self {
            Self::Sqlite(db) => db.write(f, || {}).await,
            Self::Inline(db) => db.write(&f),
            Self::Postgres(db) => db.write(f).await,
        }
    }

    /// As `write`. On SQLite `queued` is called as soon as the transaction stands in the writer's queue, where every later
    /// write will find what it wrote, though it is not durable yet: whoever is woken then commits with it or after it. On
    /// PostgreSQL that is after the commit.
    pub(crate) async fn write_announced<T, F>(&self, f: F, queued: impl FnOnce() + Send) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        match self {
            Self::Sqlite(db) => db.write(f, queued).await,
            Self::Inline(db) => db.write(&f),
            Self::Postgres(db) => {
                let value = db.write(f).await?;
                queued();
                Ok(value)
            }
        }
    }

    /// A look at a few rows by their keys. On SQLite the calling thread does it, on one snapshot, which takes microseconds; on
    /// PostgreSQL each statement sees what is there when it is run.
    pub(crate) async fn glance<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        match self {
            Self::Sqlite(db) => db.glance(f).await,
            Self::Inline(db) => db.read(&f),
            Self::Postgres(db) => db.glance(f).await,
        }
    }

    /// Runs `f` on a consistent snapshot.
    pub async fn read<T, F>(&self, f: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync + 'static,
    {
        match self {
            Self::Sqlite(db) => db.read(f).await,
            Self::Inline(db) => db.read(&f),
            Self::Postgres(db) => db.read(f).await,
        }
    }
}

/// The simulator's database, and its blobs: nothing of them outlives the store.
pub(crate) const MEMORY: &str = "memory:";

/// Opens the main and the log database: two files on SQLite, one database on PostgreSQL.
pub(crate) async fn open(url: &str, pg_connections: usize) -> Result<(Db, Db)> {
    if url == MEMORY {
        return Ok((Db::Inline(inline::Inline::open()?), Db::Inline(inline::Inline::open()?)));
    }
    if let Some(dir) = url.strip_prefix("sqlite:") {
        let dir = Path::new(dir);
        crate::private_dir(dir).map_err(|e| StoreError::Config(e.to_string()))?;
        let main = Db::Sqlite(sqlite::Sqlite::open(&dir.join("ferry.db"), 4)?);
        let logs = Db::Sqlite(sqlite::Sqlite::open(&dir.join("logs.db"), 2)?);
        return Ok((main, logs));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let db = Db::Postgres(postgres::Postgres::open(url, pg_connections).await?);
        return Ok((db.clone(), db));
    }
    Err(StoreError::Config(format!("`{url}` is no database URL: use `sqlite:DIRECTORY` or `postgres://…`")))
}

pub(crate) use postgres::connect_plain;
