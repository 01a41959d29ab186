//! What can go wrong in the store.

use model::job::IllegalTransition;

use crate::Refused;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    #[error("`{name}` names {count} {what}s; use an id instead")]
    Ambiguous { what: &'static str, name: String, count: usize },
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("`{component}` is still needed by: {} (deployed)", dependents.join(", "))]
    HasDependents { component: String, dependents: Vec<String> },
    /// What a write was made from has changed; made from what is there now, it may succeed.
    #[error("someone else was faster: {0}")]
    Stale(&'static str),
    #[error("this idempotency key was used for another request")]
    IdempotencyMismatch,
    #[error("the execution's epoch is not current")]
    LeaseLost,
    #[error("a newer session has taken this runner's place")]
    Fenced,
    #[error("the vendor revoked this runner, or deleted its install")]
    Revoked,
    #[error("the credential is unknown or revoked")]
    CredentialRefused,
    #[error("the next chunk of the log is {next_seq}")]
    LogOutOfOrder { next_seq: u64 },
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
    #[error("the database was written by a newer Ferry (schema {found}, this one knows {known}); upgrade this server")]
    NewerSchema { found: i64, known: i64 },
    #[error("a sealed value can't be opened: {0}")]
    Sealed(String),
    #[error("{0}")]
    Config(String),
    #[error("the disk is full")]
    Full,
    /// A manifest names something that its repository does not have.
    #[error("the repository has no `{0}`")]
    ContentMissing(String),
    /// A manifest says another size than the content has.
    #[error("the manifest says that {digest} has {said} bytes; it has {has}")]
    SizeMismatch { digest: String, said: u64, has: u64 },
    /// A fault of the database; `transient` ones may pass.
    #[error("the database failed: {message}")]
    Db { message: String, transient: bool },
    #[error("the blob store failed: {0}")]
    Blob(String),
}

impl StoreError {
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Full | Self::Db { transient: true, .. } | Self::Blob(_))
    }

    pub(crate) fn db(message: impl std::fmt::Display) -> Self {
        Self::Db { message: message.to_string(), transient: false }
    }

    /// A job is not as it was read.
    pub(crate) fn moved() -> Self {
        Self::Db { message: "a job changed under our hands".into(), transient: true }
    }

    pub fn corrupt(what: &str) -> Self {
        Self::Db { message: format!("a stored {what} can't be read"), transient: false }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as C;
        let code = error.sqlite_error_code();
        if code == Some(C::DiskFull) {
            return Self::Full;
        }
        let transient = matches!(code, Some(C::DatabaseBusy | C::DatabaseLocked | C::SystemIoFailure | C::OutOfMemory));
        Self::Db { message: error.to_string(), transient }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        if error.code() == Some(&tokio_postgres::error::SqlState::DISK_FULL) {
            return Self::Full;
        }
        if error.as_db_error().is_some_and(|e| e.table() == Some("events") && e.column() == Some("subject_id")) {
            return Self::moved();
        }
        // Class 08, 53, 57: connection, resources, operator. No code at all: the connection itself broke.
        let transient = error.code().is_none_or(|c| {
            ["08", "53", "57"].iter().any(|class| c.code().starts_with(class)) || is_serialization(c.code())
        });
        let message = error.as_db_error().map_or_else(|| error.to_string(), |db| format!("{db}"));
        Self::Db { message, transient }
    }
}

pub(crate) fn is_serialization(code: &str) -> bool {
    matches!(code, "40001" | "40P01")
}

impl From<deadpool_postgres::PoolError> for StoreError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Db { message: error.to_string(), transient: true }
    }
}
