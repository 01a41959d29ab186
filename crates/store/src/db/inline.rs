//! SQLite in memory for the simulator: one connection, no thread, no pool, so that every future is ready at once.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

use super::Work;
use super::sqlite::{keep_plans, poll_once};
use crate::{Result, StoreError};

#[derive(Clone)]
pub struct Inline {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    connection: Connection,
    /// Breaks a write to come: how many go well before it, and whether it is committed all the same.
    fault: Option<(u32, bool)>,
}

impl Inline {
    pub(super) fn open() -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_in_memory_with_flags(flags)?;
        keep_plans(&connection)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        Ok(Self { inner: Arc::new(Mutex::new(Inner { connection, fault: None })) })
    }

    /// After `good` more writes one fails: before its commit, or after it, when nobody hears of it.
    pub(crate) fn break_write(&self, good: u32, committed: bool) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).fault = Some((good, committed));
    }

    pub(super) fn write(&self, work: &dyn Work) -> Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = inner.fault.take();
        let broken = match fault {
            Some((0, committed)) => Some(committed),
            Some((good, committed)) => {
                inner.fault = Some((good - 1, committed));
                None
            }
            None => None,
        };
        let connection = &mut inner.connection;
        connection.execute_batch("BEGIN")?;
        let outcome = poll_once(connection, work);
        let commits = outcome.is_ok() && broken != Some(false);
        connection.execute_batch(if commits { "COMMIT" } else { "ROLLBACK" })?;
        match broken {
            Some(_) => Err(StoreError::Db { message: "the database went away".into(), transient: true }),
            None => outcome,
        }
    }

    pub(super) fn read(&self, work: &dyn Work) -> Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        poll_once(&mut inner.connection, work)
    }
}
