//! PostgreSQL: a pool, repeatable-read transactions, and a bounded number of retries after a serialization failure.

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Transaction};
use futures::future::BoxFuture;
use tokio_postgres::IsolationLevel;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

use super::{Row, Tx, Value};
use crate::crypto::random;
use crate::error::is_serialization;
use crate::{Result, StoreError};

const ATTEMPTS: u32 = 24;
/// Longest pause between two tries.
const PAUSE_MS: u64 = 20;
/// A unique key that a concurrent transaction took is seen by the next try; one that was there before fails that one too.
const UNIQUE_ATTEMPTS: u32 = 3;

#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
}

type Tls = tokio_postgres_rustls::MakeRustlsConnect;

/// TLS with the system's root certificates; a machine that has none can still speak to a database without TLS.
fn tls() -> Tls {
    Tls::with_native_certs().map(|(tls, _)| tls).unwrap_or_else(|_| {
        let roots = rustls::RootCertStore::empty();
        Tls::new(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    })
}

type PlainConnection = tokio_postgres::Connection<
    tokio_postgres::Socket,
    <Tls as tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket>>::Stream,
>;

/// A connection of its own, outside the pool: for LISTEN.
pub(crate) async fn connect_plain(url: &str) -> Result<(tokio_postgres::Client, PlainConnection)> {
    let config: tokio_postgres::Config =
        url.parse().map_err(|e| StoreError::Config(format!("the database URL can't be read: {e}")))?;
    Ok(config.connect(tls()).await?)
}

impl Postgres {
    pub(super) async fn open(url: &str, connections: usize) -> Result<Self> {
        let config: tokio_postgres::Config =
            url.parse().map_err(|e| StoreError::Config(format!("the database URL can't be read: {e}")))?;
        let manager = Manager::from_config(config, tls(), ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .max_size(connections)
            .wait_timeout(Some(std::time::Duration::from_secs(10)))
            .create_timeout(Some(std::time::Duration::from_secs(10)))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|e| StoreError::Config(e.to_string()))?;
        drop(pool.get().await?);
        Ok(Self { pool })
    }

    pub(super) async fn write<T, F>(&self, f: F) -> Result<T>
    where
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    {
        for attempt in 1.. {
            match self.attempt(&f, false).await {
                Err(Failure { error, again }) if attempt < again => {
                    tracing::debug!(attempt, %error, "transaction is tried again");
                    tokio::time::sleep(pause(attempt)).await;
                }
                Err(failure) => return Err(failure.error),
                Ok(value) => return Ok(value),
            }
        }
        unreachable!("the loop returns")
    }

    pub(super) async fn read<T, F>(&self, f: F) -> Result<T>
    where
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    {
        self.attempt(&f, true).await.map_err(|failure| failure.error)
    }

    /// Each statement by itself, without a transaction around them.
    pub(super) async fn glance<T, F>(&self, f: F) -> Result<T>
    where
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    {
        let client = self.pool.get().await?;
        let mut tx = Tx::Postgres(PostgresTx { on: On::Client(&client), again: 0 });
        f(&mut tx).await
    }

    async fn attempt<T, F>(&self, f: &F, read_only: bool) -> Result<T, Failure>
    where
        F: for<'t, 'c> Fn(&'t mut Tx<'c>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    {
        let mut client = self.pool.get().await.map_err(|e| Failure::plain(e.into()))?;
        let transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(read_only)
            .start()
            .await
            .map_err(Failure::from)?;
        let mut tx = Tx::Postgres(PostgresTx { on: On::Transaction(&transaction), again: 0 });
        let outcome = f(&mut tx).await;
        let again = if let Tx::Postgres(PostgresTx { again, .. }) = tx { again } else { 0 };
        match outcome {
            Ok(value) => {
                transaction.commit().await.map_err(Failure::from)?;
                Ok(value)
            }
            Err(error) => {
                let _ = transaction.rollback().await;
                Err(Failure { error, again })
            }
        }
    }
}

/// Longer with every try, and random, so that transactions in each other's way get out of step.
fn pause(attempt: u32) -> std::time::Duration {
    let most_us = (1_000u64 << attempt.min(10)).min(PAUSE_MS * 1_000);
    std::time::Duration::from_micros(u64::from_be_bytes(random()) % most_us)
}

/// How often a transaction may be run when this error ends it; 0 where another run would not help.
fn attempts(error: &tokio_postgres::Error) -> u32 {
    match error.code() {
        Some(code) if is_serialization(code.code()) => ATTEMPTS,
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => UNIQUE_ATTEMPTS,
        Some(_) | None => 0,
    }
}

struct Failure {
    error: StoreError,
    again: u32,
}

impl Failure {
    fn plain(error: StoreError) -> Self {
        Self { error, again: 0 }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let again = attempts(&error);
        Self { error: error.into(), again }
    }
}

/// What statements are run on.
enum On<'c> {
    Client(&'c Client),
    Transaction(&'c Transaction<'c>),
}

pub struct PostgresTx<'c> {
    on: On<'c>,
    /// A statement failed because of another transaction: the whole may be run so often.
    again: u32,
}

/// The same call on either.
macro_rules! on {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self.on {
            On::Client(client) => client.$method($($argument),*).await,
            On::Transaction(transaction) => transaction.$method($($argument),*).await,
        }
    };
}

impl PostgresTx<'_> {
    fn note<T>(&mut self, outcome: Result<T, tokio_postgres::Error>) -> Result<T> {
        outcome.map_err(|error| {
            self.again = self.again.max(attempts(&error));
            error.into()
        })
    }

    pub(super) async fn exec(&mut self, sql: &'static str, params: Vec<Value>) -> Result<u64> {
        let prepared = on!(self.prepare_cached(sql));
        let statement = self.note(prepared)?;
        let refs: Vec<&(dyn ToSql + Sync)> = params.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
        let outcome = on!(self.execute(&statement, &refs));
        self.note(outcome)
    }

    pub(super) async fn query(&mut self, sql: &'static str, params: Vec<Value>) -> Result<Vec<Row>> {
        let prepared = on!(self.prepare_cached(sql));
        let statement = self.note(prepared)?;
        let refs: Vec<&(dyn ToSql + Sync)> = params.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
        let outcome = on!(self.query(&statement, &refs));
        self.note(outcome)?.iter().map(from_postgres).collect()
    }

    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        let outcome = on!(self.batch_execute(sql));
        self.note(outcome)
    }
}

fn from_postgres(row: &tokio_postgres::Row) -> Result<Row> {
    let mut values = Vec::with_capacity(row.len());
    for (at, column) in row.columns().iter().enumerate() {
        let ty = column.type_();
        let value = if *ty == Type::INT8 {
            row.try_get::<_, Option<i64>>(at)?.map(Value::Int)
        } else if *ty == Type::INT4 {
            row.try_get::<_, Option<i32>>(at)?.map(|n| Value::Int(n.into()))
        } else if *ty == Type::TEXT || *ty == Type::VARCHAR || *ty == Type::NAME {
            row.try_get::<_, Option<String>>(at)?.map(Value::Text)
        } else if *ty == Type::BYTEA {
            row.try_get::<_, Option<Vec<u8>>>(at)?.map(Value::Blob)
        } else if *ty == Type::BOOL {
            row.try_get::<_, Option<bool>>(at)?.map(|b| Value::Int(b.into()))
        } else {
            return Err(StoreError::db(format_args!("column `{}` has type {ty}", column.name())));
        };
        values.push(value.unwrap_or(Value::Null));
    }
    Ok(Row(values))
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Self::Int(n) if *ty == Type::BOOL => (*n != 0).to_sql(ty, out),
            Self::Int(n) => n.to_sql(ty, out),
            Self::Text(s) => s.to_sql(ty, out),
            Self::Blob(b) => b.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
