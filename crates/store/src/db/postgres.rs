//! PostgreSQL: a pool, repeatable-read transactions, and a bounded number of retries after a serialization failure.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use futures::FutureExt as _;
use futures::future::{BoxFuture, MaybeDone, maybe_done};
use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

use super::value::Columns;
use super::{Row, Tx, Value, Work};
use crate::crypto::random;
use crate::error::is_serialization;
use crate::{Result, StoreError};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// How many writes may wait to be sent.
const LATER: usize = 64;
/// Tries after a serialization failure, a few seconds in all: on a loaded machine others may be faster many times.
const ATTEMPTS: u32 = 60;
/// Longest pause between two tries.
const PAUSE_MS: u64 = 100;
/// A unique key that a concurrent transaction took is seen by the next try; one that was there before fails that one too.
const UNIQUE_ATTEMPTS: u32 = 3;

#[derive(Clone)]
pub struct Postgres {
    pool: Pool,
    traffic: Arc<Counters>,
}

/// What was asked of the database so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub statements: u64,
    /// How often an answer was waited for.
    pub trips: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    statements: AtomicU64,
    trips: AtomicU64,
}

impl Counters {
    fn count(&self, statements: u64, trips: u64) {
        self.statements.fetch_add(statements, Ordering::Relaxed);
        self.trips.fetch_add(trips, Ordering::Relaxed);
    }
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
        Ok(Self { pool, traffic: Arc::default() })
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic {
            statements: self.traffic.statements.load(Ordering::Relaxed),
            trips: self.traffic.trips.load(Ordering::Relaxed),
        }
    }

    pub(super) async fn write(&self, work: &dyn Work) -> Result<()> {
        for attempt in 1.. {
            match self.attempt(work, BEGIN).await {
                Err(Failure { error, again }) if attempt < again => {
                    tracing::debug!(attempt, %error, "transaction is tried again");
                    tokio::time::sleep(pause(attempt)).await;
                }
                Err(failure) => return Err(failure.error),
                Ok(()) => return Ok(()),
            }
        }
        unreachable!("the loop returns")
    }

    pub(super) async fn read(&self, work: &dyn Work) -> Result<()> {
        self.attempt(work, BEGIN_READ).await.map_err(|failure| failure.error)
    }

    /// Each statement by itself, without a transaction around them.
    pub(super) async fn glance(&self, work: &dyn Work) -> Result<()> {
        let client = self.pool.get().await?;
        let mut tx = Tx::Postgres(Box::new(PostgresTx::new(client, Stage::Bare, &self.traffic)));
        work.run(&mut tx).await
    }

    async fn attempt(&self, work: &dyn Work, begin: &'static str) -> Result<(), Failure> {
        let client = self.pool.get().await.map_err(|e| Failure { error: e.into(), again: 0 })?;
        let mut tx = Tx::Postgres(Box::new(PostgresTx::new(client, Stage::Unbegun(begin), &self.traffic)));
        let outcome = work.run(&mut tx).await;
        let Tx::Postgres(mut tx) = tx else { unreachable!("a transaction stays where it was begun") };
        let outcome = match outcome {
            Ok(()) => tx.commit().await,
            Err(error) => Err(error),
        };
        // What was not committed is rolled back when it is dropped.
        outcome.map_err(|error| Failure { error, again: tx.again })
    }
}

/// Longer with every try, and random, so that transactions in each other's way get out of step.
fn pause(attempt: u32) -> std::time::Duration {
    let most_us = (1_000u64 << (attempt / 2).min(10)).min(PAUSE_MS * 1_000);
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

/// How far a transaction is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is none: each statement stands for itself.
    Bare,
    /// It begins with the first statement.
    Unbegun(&'static str),
    Open,
    /// A COMMIT was sent.
    Over,
}

/// Statements on one connection, most of them in a transaction.
///
/// A round trip costs more than a statement, so those whose answers nobody needs at once travel with the next one whose answer
/// is needed: tokio-postgres sends a request when its future is first polled, and the database works on them in that order.
/// After one that fails it refuses the others of its transaction, a COMMIT among them.
pub struct PostgresTx {
    client: Client,
    stage: Stage,
    /// Writes that were not sent yet.
    later: Vec<Asked>,
    wrote: bool,
    /// A statement failed: nothing of this transaction can be kept any more.
    failed: bool,
    /// A statement failed because of another transaction: the whole may be run so often.
    again: u32,
    traffic: Arc<Counters>,
}

struct Asked {
    sql: &'static str,
    params: Vec<Value>,
}

enum Answer {
    Rows(Vec<tokio_postgres::Row>),
    Count(u64),
    Done,
}

/// What only reads can do no harm when it is run outside the transaction that it was meant for.
fn only_reads(sql: &str) -> bool {
    sql.starts_with("SELECT ")
}

impl PostgresTx {
    fn new(client: Client, stage: Stage, traffic: &Arc<Counters>) -> Self {
        let traffic = Arc::clone(traffic);
        Self { client, stage, later: Vec::new(), wrote: false, failed: false, again: 0, traffic }
    }

    fn note<T>(&mut self, outcome: Result<T, tokio_postgres::Error>) -> Result<T> {
        outcome.map_err(|error| {
            self.failed = true;
            self.again = self.again.max(attempts(&error));
            error.into()
        })
    }

    pub(super) async fn exec(&mut self, sql: &'static str, params: Vec<Value>) -> Result<u64> {
        match self.travel(vec![Asked { sql, params }], false, false).await?.pop() {
            Some(Answer::Count(count)) => Ok(count),
            Some(Answer::Rows(_) | Answer::Done) | None => Err(StoreError::db("a statement was not answered")),
        }
    }

    /// Its error, where there is one, is that of the next statement or of the commit.
    pub(super) async fn exec_later(&mut self, sql: &'static str, params: Vec<Value>) -> Result<()> {
        if self.stage == Stage::Bare {
            return self.exec(sql, params).await.map(|_| ());
        }
        self.later.push(Asked { sql, params });
        if self.later.len() >= LATER { self.travel(vec![], false, false).await.map(|_| ()) } else { Ok(()) }
    }

    pub(super) async fn query(&mut self, sql: &'static str, params: Vec<Value>) -> Result<Vec<Row>> {
        let mut answers = self.queries(vec![(sql, params)]).await?;
        answers.pop().ok_or_else(|| StoreError::db("a statement was not answered"))
    }

    /// Several at once.
    pub(super) async fn queries(&mut self, asked: Vec<(&'static str, Vec<Value>)>) -> Result<Vec<Vec<Row>>> {
        let asked = asked.into_iter().map(|(sql, params)| Asked { sql, params }).collect();
        let rows = |answer| match answer {
            Answer::Rows(rows) => {
                let columns: Columns = rows
                    .first()
                    .map_or(&[][..], tokio_postgres::Row::columns)
                    .iter()
                    .map(|c| c.name().into())
                    .collect();
                rows.iter().map(|row| from_postgres(row, &columns)).collect()
            }
            Answer::Count(_) | Answer::Done => Err(StoreError::db("a statement was not answered")),
        };
        self.travel(asked, true, false).await?.into_iter().map(rows).collect()
    }

    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.travel(vec![], false, false).await?;
        self.begin().await?;
        self.wrote = true;
        self.traffic.count(1, 1);
        let outcome = self.client.batch_execute(sql).await;
        self.note(outcome)
    }

    /// Begins, and waits for it.
    async fn begin(&mut self) -> Result<()> {
        let Stage::Unbegun(begin) = self.stage else { return Ok(()) };
        self.stage = Stage::Open;
        self.traffic.count(1, 1);
        let outcome = self.client.batch_execute(begin).await;
        self.note(outcome)
    }

    /// Sends what waits, then what is asked, and a COMMIT where it is the end; returns the answers to what is asked. The
    /// first error is the one that counts: it made the others.
    async fn travel(&mut self, asked: Vec<Asked>, rows: bool, commit: bool) -> Result<Vec<Answer>> {
        // After a BEGIN that failed a statement would stand for itself.
        if self.failed && self.stage != Stage::Bare {
            return Err(StoreError::db("a statement of this transaction has failed before"));
        }
        let later = std::mem::take(&mut self.later);
        if later.is_empty() && asked.is_empty() && !commit {
            return Ok(Vec::new());
        }
        let first_asked = later.len();
        let mut statements = Vec::with_capacity(first_asked + asked.len());
        for Asked { sql, params } in later.into_iter().chain(asked) {
            let prepared = self.client.prepare_cached(sql).await;
            statements.push((self.note(prepared)?, params));
            self.wrote |= !only_reads(sql);
        }
        // For the same reason a write does not travel with its BEGIN.
        if self.wrote {
            self.begin().await?;
        }
        let begin = if let Stage::Unbegun(begin) = self.stage { Some(begin) } else { None };
        if begin.is_some() {
            self.stage = Stage::Open;
        }
        let ends = usize::from(begin.is_some()) + usize::from(commit);
        self.traffic.count((statements.len() + ends) as u64, 1);
        let client: &tokio_postgres::Client = &self.client;
        let command = |sql| async move { client.batch_execute(sql).await.map(|()| Answer::Done) }.boxed();
        let statement = |(n, (statement, params)): (usize, (Statement, Vec<Value>))| {
            let rows = rows && n >= first_asked;
            async move {
                let refs: Vec<&(dyn ToSql + Sync)> = params.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
                if rows {
                    client.query(&statement, &refs).await.map(Answer::Rows)
                } else {
                    client.execute(&statement, &refs).await.map(Answer::Count)
                }
            }
            .boxed()
        };
        let all = begin.map(command).into_iter();
        let all = all.chain(statements.into_iter().enumerate().map(statement)).chain(commit.then(|| command("COMMIT")));
        let all: Vec<_> = all.collect();
        let wanted = all.len();
        let (sent, outcome) = in_order(all).await;
        if commit && sent == wanted {
            self.stage = Stage::Over;
        }
        let mut answers = self.note(outcome)?;
        Ok(answers.drain(usize::from(begin.is_some()) + first_asked..).collect())
    }

    /// Keeps what was written. What only read has its answers already: nothing can go wrong any more.
    async fn commit(&mut self) -> Result<()> {
        if self.failed {
            return Err(StoreError::db("a statement of this transaction has failed before"));
        }
        if self.stage == Stage::Open && !self.wrote && self.later.is_empty() {
            self.traffic.count(1, 0);
            send(&self.client, "COMMIT");
            self.stage = Stage::Over;
        }
        if self.stage == Stage::Open || !self.later.is_empty() {
            self.travel(vec![], false, true).await?;
        }
        Ok(())
    }
}

impl Drop for PostgresTx {
    /// A transaction that was not committed is rolled back before anybody else gets its connection: it failed, or its caller
    /// has gone in the middle of it.
    fn drop(&mut self) {
        if self.stage == Stage::Open {
            send(&self.client, "ROLLBACK");
        }
    }
}

/// Sends a command without waiting for the answer: one poll does it, and whoever comes next is behind it.
fn send(client: &tokio_postgres::Client, command: &'static str) {
    let mut sent = std::pin::pin!(client.batch_execute(command));
    let _ = sent.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

type Outcome<T> = Result<T, tokio_postgres::Error>;

/// Waits for all, which are polled, and so sent, in their order. One that can't even be sent (a value that does not fit its
/// column) holds up those behind it, above all a COMMIT: the database knows nothing of it. Returns how many were sent, and all
/// answers or the first error.
async fn in_order<T>(futures: Vec<BoxFuture<'_, Outcome<T>>>) -> (usize, Outcome<Vec<T>>) {
    let mut flying: Vec<_> = futures.into_iter().map(maybe_done).collect();
    let mut sent = None;
    poll_fn(|cx| {
        let (mut pending, mut at) = (false, 0);
        while let Some(one) = flying.get_mut(at) {
            pending |= one.poll_unpin(cx).is_pending();
            at += 1;
            if let MaybeDone::Done(Err(_)) = one {
                flying.truncate(at);
            }
        }
        sent.get_or_insert(at);
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let outcomes = flying.iter_mut().filter_map(|one| Pin::new(one).take_output());
    (sent.unwrap_or(0), outcomes.collect())
}

fn from_postgres(row: &tokio_postgres::Row, columns: &Columns) -> Result<Row> {
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
    Ok(Row::new(Arc::clone(columns), values))
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
