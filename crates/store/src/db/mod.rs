//! One transaction type over both databases.
//!
//! `Db::write` takes a function from a transaction to a future. On SQLite the future is polled once, on the writer thread,
//! where every call of `tx` is ready at once; on PostgreSQL it is awaited, and run again after a serialization failure. So
//! inside it: await only `tx`, own everything you use, and touch nothing outside the transaction.

mod inline;
mod postgres;
mod sqlite;
mod table;
mod value;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, Either, Ready, ready};

pub use postgres::Traffic;
pub(crate) use table::{Column, Table, made_once, select, table};
pub(crate) use value::{Columned, params, text_values};
pub use value::{FromValue, Row, ToValue, Value};

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

/// An answer of a transaction: there at once on SQLite, on its way on PostgreSQL.
type Answer<'t, T> = Either<Ready<Result<T>>, BoxFuture<'t, Result<T>>>;

fn at_once<'t, T>(answer: Result<T>) -> Answer<'t, T> {
    Either::Left(ready(answer))
}

impl Tx<'_> {
    /// Runs a statement; returns how many rows it changed.
    pub fn exec(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Answer<'_, u64> {
        self.exec_sql(sql.into(), params)
    }

    fn exec_sql(&mut self, sql: Sql, params: Vec<Value>) -> Answer<'_, u64> {
        match self {
            Self::Sqlite(tx) => at_once(tx.exec(sql.sqlite, params)),
            Self::Postgres(tx) => Either::Right(Box::pin(tx.exec(sql.postgres, params))),
        }
    }

    /// Runs a statement whose count nobody needs. On PostgreSQL it travels with the next statement, or with the commit, and
    /// that is where its error shows.
    pub fn exec_later(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Answer<'_, ()> {
        self.exec_sql_later(sql.into(), params)
    }

    fn exec_sql_later(&mut self, sql: Sql, params: Vec<Value>) -> Answer<'_, ()> {
        match self {
            Self::Sqlite(tx) => at_once(tx.exec(sql.sqlite, params).map(|_| ())),
            Self::Postgres(tx) => Either::Right(Box::pin(tx.exec_later(sql.postgres, params))),
        }
    }

    pub fn query(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Answer<'_, Vec<Row>> {
        self.query_sql(sql.into(), params)
    }

    fn query_sql(&mut self, sql: Sql, params: Vec<Value>) -> Answer<'_, Vec<Row>> {
        match self {
            Self::Sqlite(tx) => at_once(tx.query(sql.sqlite, params)),
            Self::Postgres(tx) => Either::Right(Box::pin(tx.query(sql.postgres, params))),
        }
    }

    pub async fn get(&mut self, sql: impl Into<Sql>, params: Vec<Value>) -> Result<Option<Row>> {
        Ok(self.query_sql(sql.into(), params).await?.into_iter().next())
    }

    /// Several queries at once: one round trip on PostgreSQL.
    pub(crate) fn queries(&mut self, asked: Vec<(&'static str, Vec<Value>)>) -> Answer<'_, Vec<Vec<Row>>> {
        match self {
            Self::Sqlite(tx) => at_once(asked.into_iter().map(|(sql, params)| tx.query(sql, params)).collect()),
            Self::Postgres(tx) => Either::Right(Box::pin(tx.queries(asked))),
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

/// What is done in a transaction, with an input. It may be run more than once, and sees nothing but its input and the transaction: a
/// closure that captures something is not one.
pub(crate) type Run<I, T> = for<'t, 'c> fn(&'t mut Tx<'c>, &'t I) -> BoxFuture<'t, Result<T>>;

/// A transaction without the types of its input and of what it returns, so that all that runs it is compiled once.
trait Work: Send + Sync {
    fn run<'t>(&'t self, tx: &'t mut Tx<'_>) -> BoxFuture<'t, Result<()>>;
}

struct Transaction<I, T> {
    input: I,
    run: Run<I, T>,
    /// What the last run has returned.
    returned: Mutex<Option<T>>,
}

impl<I: Send + Sync, T: Send> Work for Transaction<I, T> {
    fn run<'t>(&'t self, tx: &'t mut Tx<'_>) -> BoxFuture<'t, Result<()>> {
        let run = (self.run)(tx, &self.input);
        Box::pin(async move {
            let value = run.await?;
            *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            Ok(())
        })
    }
}

impl<I, T> Transaction<I, T> {
    fn new(input: I, run: Run<I, T>) -> Arc<Self> {
        Arc::new(Self { input, run, returned: Mutex::new(None) })
    }

    fn returned(&self) -> Result<T> {
        let value = self.returned.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.ok_or_else(|| StoreError::db("the transaction was not run"))
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

    /// Runs a transaction that is committed, durably, before this returns `Ok`.
    pub fn write<I, T>(&self, input: I, run: Run<I, T>) -> Answered<'_, T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let work = Transaction::new(input, run);
        let done = self.run_write(Arc::clone(&work) as _, None);
        Box::pin(async move {
            done.await?;
            work.returned()
        })
    }

    /// As `write`. On SQLite `queued` is called as soon as the transaction stands in the writer's queue, where every later
    /// write will find what it wrote, though it is not durable yet: whoever is woken then commits with it or after it. On
    /// PostgreSQL that is after the commit.
    pub(crate) fn write_announced<'s, I, T>(
        &'s self,
        input: I,
        run: Run<I, T>,
        queued: impl FnOnce() + Send + 's,
    ) -> Answered<'s, T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let work = Transaction::new(input, run);
        let done = self.run_write(Arc::clone(&work) as _, Some(Box::new(queued)));
        Box::pin(async move {
            done.await?;
            work.returned()
        })
    }

    fn run_write<'s>(
        &'s self,
        work: Arc<dyn Work>,
        queued: Option<Box<dyn FnOnce() + Send + 's>>,
    ) -> BoxFuture<'s, Result<()>> {
        match self {
            Self::Sqlite(db) => Box::pin(db.write(work, queued)),
            Self::Inline(db) => Box::pin(async move { db.write(&*work) }),
            Self::Postgres(db) => Box::pin(async move {
                db.write(&*work).await?;
                queued.into_iter().for_each(|queued| queued());
                Ok(())
            }),
        }
    }

    /// A look at a few rows by their keys. On SQLite the calling thread does it, on one snapshot, which takes microseconds; on
    /// PostgreSQL each statement sees what is there when it is run.
    pub(crate) fn glance<I, T>(&self, input: I, run: Run<I, T>) -> Answered<'_, T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let work = Transaction::new(input, run);
        Box::pin(async move {
            self.run_glance(&*work).await?;
            work.returned()
        })
    }

    async fn run_glance(&self, work: &dyn Work) -> Result<()> {
        match self {
            Self::Sqlite(db) => db.glance(work).await,
            Self::Inline(db) => db.read(work),
            Self::Postgres(db) => db.glance(work).await,
        }
    }

    /// Runs a transaction that only reads, on a consistent snapshot.
    pub fn read<I, T>(&self, input: I, run: Run<I, T>) -> Answered<'_, T>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let work = Transaction::new(input, run);
        let done = self.run_read(Arc::clone(&work) as _);
        Box::pin(async move {
            done.await?;
            work.returned()
        })
    }

    fn run_read(&self, work: Arc<dyn Work>) -> BoxFuture<'_, Result<()>> {
        match self {
            Self::Sqlite(db) => Box::pin(db.read(work)),
            Self::Inline(db) => Box::pin(async move { db.read(&*work) }),
            Self::Postgres(db) => Box::pin(async move { db.read(&*work).await }),
        }
    }

    /// One statement that changes something; returns how many rows it changed.
    pub fn exec(&self, sql: impl Into<Sql>, params: Vec<Value>) -> Answered<'_, u64> {
        self.write((sql.into(), params), |tx, (sql, params)| Box::pin(tx.exec(*sql, params.clone())))
    }

    /// A row, or a few, by their keys: as `glance`.
    pub fn find(&self, sql: impl Into<Sql>, params: Vec<Value>) -> Answered<'_, Option<Row>> {
        self.glance((sql.into(), params), |tx, (sql, params)| Box::pin(tx.get(*sql, params.clone())))
    }

    /// All rows of one statement: as `read`.
    pub fn query(&self, sql: impl Into<Sql>, params: Vec<Value>) -> Answered<'_, Vec<Row>> {
        self.read((sql.into(), params), |tx, (sql, params)| Box::pin(tx.query(*sql, params.clone())))
    }
}

/// What a function of the store returns. It is boxed where it is made, so that callers in other crates do not compile it again.
pub(crate) type Answered<'s, T> = BoxFuture<'s, Result<T>>;

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
