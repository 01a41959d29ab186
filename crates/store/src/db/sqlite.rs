//! SQLite: one writer thread that commits in groups, and a small pool of readers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Waker};

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, oneshot};

use super::value::Columns;
use super::{Row, Tx, Value, Work};
use crate::{Result, StoreError};

/// Requests that may wait for the writer, and how many one commit takes along.
const QUEUE: usize = 4096;
const GROUP: usize = 256;
const STATEMENTS: usize = 128;

/// A transaction that waits for the writer, or was run and waits for the commit.
struct Request {
    work: Arc<dyn Work>,
    outcome: Result<()>,
    reply: oneshot::Sender<Result<()>>,
}

impl Request {
    /// Runs it on the connection, or refuses it with the reason why it can't be run. It may be run again. Says whether
    /// its part is to be kept.
    fn run(&mut self, connection: Result<&mut Connection>) -> bool {
        self.outcome = connection.and_then(|connection| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll_once(connection, &*self.work)))
                .unwrap_or_else(|_| Err(StoreError::db("a transaction panicked")))
        });
        self.outcome.is_ok()
    }

    /// Answers, after the commit.
    fn tell(self, commit: Result<()>) {
        // The caller may have gone; what it asked for is done all the same.
        let _ = self.reply.send(self.outcome.and(commit));
    }
}

#[derive(Clone)]
pub struct Sqlite {
    writer: mpsc::SyncSender<Request>,
    readers: Arc<Readers>,
}

struct Readers {
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Sqlite {
    pub(super) fn open(path: &Path, readers: usize) -> Result<Self> {
        // SQLite gives the files beside it the same mode when it makes them; those of an earlier crash are there already.
        crate::private_file(path, false).map_err(|e| StoreError::Config(e.to_string()))?;
        for beside in ["-wal", "-shm"].map(|end| std::path::PathBuf::from(format!("{}{end}", path.display()))) {
            if beside.exists() {
                crate::private_file(&beside, false).map_err(|e| StoreError::Config(e.to_string()))?;
            }
        }
        let connection = Connection::open(path)?;
        prepare(&connection)?;
        let (writer, requests) = mpsc::sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || write_loop(connection, &requests))
            .map_err(|e| StoreError::Config(format!("can't start the writer thread: {e}")))?;
        let mut idle = Vec::new();
        for _ in 0..readers {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(std::time::Duration::from_secs(5))?;
            keep_plans(&connection)?;
            idle.push(connection);
        }
        let permits = Arc::new(Semaphore::new(readers));
        Ok(Self { writer, readers: Arc::new(Readers { idle: Mutex::new(idle), permits }) })
    }

    pub(super) async fn write(&self, work: Arc<dyn Work>, queued: Option<Box<dyn FnOnce() + Send + '_>>) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.send(Request { work, outcome: Err(StoreError::db("the transaction was not run")), reply }).await?;
        queued.into_iter().for_each(|queued| queued());
        answer.await.map_err(|_| StoreError::db("the writer thread ended"))?
    }

    /// Queues a request; waits without blocking the runtime when the queue is full.
    async fn send(&self, mut request: Request) -> Result<()> {
        loop {
            match self.writer.try_send(request) {
                Ok(()) => return Ok(()),
                Err(mpsc::TrySendError::Full(back)) => {
                    request = back;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                Err(mpsc::TrySendError::Disconnected(_)) => return Err(StoreError::db("the writer thread ended")),
            }
        }
    }

    pub(super) async fn read(&self, work: Arc<dyn Work>) -> Result<()> {
        let readers = Arc::clone(&self.readers);
        let permit = Arc::clone(&self.readers.permits).acquire_owned().await.map_err(StoreError::db)?;
        tokio::task::spawn_blocking(move || {
            // Held until the connection is back, also when the caller has gone by then.
            let _permit = permit;
            readers.snapshot(&*work)
        })
        .await
        .map_err(StoreError::db)?
    }

    pub(super) async fn glance(&self, work: &dyn Work) -> Result<()> {
        let _permit = self.readers.permits.acquire().await.map_err(StoreError::db)?;
        self.readers.snapshot(work)
    }
}

impl Readers {
    /// Runs `f` on an idle connection; the caller has a permit.
    fn snapshot(&self, work: &dyn Work) -> Result<()> {
        let mut connection = self
            .idle
            .lock()
            .map_err(|_| StoreError::db("the reader pool is broken"))?
            .pop()
            .ok_or_else(|| StoreError::db("no reader is idle"))?;
        let outcome = snapshot(&mut connection, work);
        if let Ok(mut idle) = self.idle.lock() {
            idle.push(connection);
        }
        outcome
    }
}

fn snapshot(connection: &mut Connection, work: &dyn Work) -> Result<()> {
    command(connection, "BEGIN")?;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll_once(connection, work)))
        .unwrap_or_else(|_| Err(StoreError::db("a query panicked")));
    command(connection, "ROLLBACK")?;
    outcome
}

/// A statement about transactions, parsed once.
fn command(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn prepare(connection: &Connection) -> Result<()> {
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    keep_plans(connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // In KiB, below zero; and pages. With less, the pages of the indexes come and go with every transaction.
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    Ok(())
}

/// Statements are prepared once. Without the guarantee SQLite prepares some of them again whenever a parameter changes.
pub(super) fn keep_plans(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Drains the queue into one transaction, and answers after the commit.
fn write_loop(mut connection: Connection, requests: &mpsc::Receiver<Request>) {
    while let Ok(first) = requests.recv() {
        let mut group = vec![first];
        while group.len() < GROUP {
            let Ok(next) = requests.try_recv() else { break };
            group.push(next);
        }
        let verdicts = if run_straight(&mut connection, &mut group) {
            group.iter().map(|_| Ok(())).collect()
        } else {
            run_apart(&mut connection, &mut group)
        };
        for (request, verdict) in group.into_iter().zip(verdicts) {
            request.tell(verdict);
        }
    }
}

/// Runs a group without savepoints, which cost a copy of every page: good for as long as none that fails has written
/// something. False when nothing of it was kept.
fn run_straight(connection: &mut Connection, group: &mut [Request]) -> bool {
    if command(connection, "BEGIN IMMEDIATE").is_err() {
        return false;
    }
    for request in group {
        let before = connection.total_changes();
        let keep = request.run(Ok(connection));
        if connection.is_autocommit() || (!keep && connection.total_changes() != before) {
            rollback(connection);
            return false;
        }
    }
    let committed = command(connection, "COMMIT").is_ok();
    rollback(connection);
    committed
}

fn rollback(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ = command(connection, "ROLLBACK");
    }
}

/// Runs a group with a savepoint for each request, so that one that fails takes nothing else along.
fn run_apart(connection: &mut Connection, group: &mut [Request]) -> Vec<Result<()>> {
    let begun = command(connection, "BEGIN IMMEDIATE");
    let mut lost = begun.err().map(|e| format!("can't begin: {e}"));
    let mut errors = Vec::with_capacity(group.len());
    for request in group {
        errors.push(run_request(connection, request, &mut lost));
    }
    if lost.is_none()
        && let Err(error) = command(connection, "COMMIT")
    {
        lost = Some(format!("commit failed: {error}"));
    }
    rollback(connection);
    let verdict = |error: Option<StoreError>| match (&lost, error) {
        (Some(message), _) => Err(gone(message)),
        (None, Some(e)) => Err(e),
        (None, None) => Ok(()),
    };
    errors.into_iter().map(verdict).collect()
}

/// Runs one request of a group in a savepoint. `lost` says that the group's transaction is over: a full disk, for one, makes
/// SQLite roll all of it back, and nothing may run outside it.
fn run_request(connection: &mut Connection, request: &mut Request, lost: &mut Option<String>) -> Option<StoreError> {
    if let Some(message) = lost {
        request.run(Err(gone(message)));
        return None;
    }
    if let Err(error) = command(connection, "SAVEPOINT request") {
        request.run(Err(error.into()));
        return None;
    }
    let keep = request.run(Ok(connection));
    let undone = if keep { Ok(()) } else { command(connection, "ROLLBACK TO request") };
    let closed =
        if connection.is_autocommit() { Ok(()) } else { undone.and_then(|()| command(connection, "RELEASE request")) };
    if connection.is_autocommit() {
        *lost = Some("the transaction was rolled back by the database".into());
    }
    if let Err(error) = &closed {
        // It can't be told apart from the others any more.
        lost.get_or_insert_with(|| format!("a savepoint failed: {error}"));
    }
    closed.err().map(StoreError::from)
}

fn gone(message: &str) -> StoreError {
    // SQLite's own words.
    if message.contains("disk is full") {
        return StoreError::Full;
    }
    StoreError::Db { message: message.to_owned(), transient: true }
}

/// Polls a transaction's future: on this thread every call of `tx` is ready at once.
pub(super) fn poll_once(connection: &mut Connection, work: &dyn Work) -> Result<()> {
    let mut tx = Tx::Sqlite(SqliteTx { connection });
    let mut future = work.run(&mut tx);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(StoreError::db("a transaction awaited something other than the transaction")),
    }
}

pub struct SqliteTx<'c> {
    connection: &'c mut Connection,
}

impl SqliteTx<'_> {
    pub(super) fn exec(&mut self, sql: &'static str, params: Vec<Value>) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(&translated(sql).sql)?;
        Ok(statement.execute(rusqlite::params_from_iter(params))? as u64)
    }

    pub(super) fn query(&mut self, sql: &'static str, params: Vec<Value>) -> Result<Vec<Row>> {
        let text = translated(sql);
        let mut statement = self.connection.prepare_cached(&text.sql)?;
        let columns = Arc::clone(text.columns.get_or_init(|| statement.column_names().map(Into::into).collect()));
        let mut rows = statement.query(rusqlite::params_from_iter(params))?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(columns.len());
            for at in 0..columns.len() {
                values.push(from_sqlite(row.get_ref(at)?)?);
            }
            out.push(Row::new(Arc::clone(&columns), values));
        }
        Ok(out)
    }

    pub(super) fn batch(&mut self, sql: &str) -> Result<()> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

fn from_sqlite(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => Value::Int(n),
        ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).map_err(StoreError::db)?),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        ValueRef::Real(_) => return Err(StoreError::corrupt("number")),
    })
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(n) => ValueRef::Integer(*n),
            Self::Text(s) => ValueRef::Text(s.as_bytes()),
            Self::Blob(b) => ValueRef::Blob(b),
        }))
    }
}

/// A statement as SQLite wants it.
struct Text {
    sql: String,
    /// Known once it was prepared.
    columns: OnceLock<Columns>,
}

/// `$1` means a name to SQLite and a number to us: turned into `?1` once for every statement.
fn translated(sql: &'static str) -> &'static Text {
    static TEXTS: Mutex<Option<HashMap<(usize, usize), &'static Text>>> = Mutex::new(None);
    thread_local! {
        static LOCAL: std::cell::RefCell<HashMap<(usize, usize), &'static Text>> = std::cell::RefCell::new(HashMap::new());
    }
    let key = (sql.as_ptr() as usize, sql.len());
    LOCAL.with_borrow_mut(|local| {
        *local.entry(key).or_insert_with(|| {
            let mut texts = TEXTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // Leaked once per statement text of the program: a bounded set.
            texts
                .get_or_insert_default()
                .entry(key)
                .or_insert_with(|| Box::leak(Box::new(Text { sql: sql.replace('$', "?"), columns: OnceLock::new() })))
        })
    })
}
