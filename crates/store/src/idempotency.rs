//! Requests that are safe to repeat: a key stands for one request, and is stored with what it made, in one transaction.

use model::{AccountId, Digest, Timestamp};

use crate::db::{Tx, params};
use crate::{Result, Store, StoreError};

/// A key that makes a request safe to repeat.
#[derive(Debug, Clone)]
pub struct Idempotency {
    /// The account, so that keys of others do not matter.
    pub scope: AccountId,
    pub key: String,
    pub request_digest: Digest,
}

/// What a create returns: the id, and whether it was there from an earlier try.
#[derive(Debug, Clone)]
pub struct Created {
    pub id: String,
    pub replayed: bool,
}

pub(crate) async fn idempotent(tx: &mut Tx<'_>, idem: Option<&Idempotency>) -> Result<Option<String>> {
    let Some(idem) = idem else { return Ok(None) };
    let sql = "SELECT request_digest, resource_id FROM idempotency WHERE scope = $1 AND key = $2";
    let Some(row) = tx.get(sql, params![&idem.scope, &idem.key]).await? else { return Ok(None) };
    same_request(Some(idem), Some(row.get("request_digest")?), Some(row.get("resource_id")?))
}

/// What was made under the key before, if it was by the same request.
pub(crate) fn same_request(
    idem: Option<&Idempotency>,
    digest: Option<String>,
    made: Option<String>,
) -> Result<Option<String>> {
    match (idem, digest) {
        (Some(idem), Some(digest)) if digest != idem.request_digest.as_str() => Err(StoreError::IdempotencyMismatch),
        (Some(_), Some(_)) => Ok(made),
        (None, _) | (_, None) => Ok(None),
    }
}

pub(crate) async fn remember(
    tx: &mut Tx<'_>,
    idem: Option<&Idempotency>,
    resource: &str,
    now: Timestamp,
) -> Result<()> {
    let Some(idem) = idem else { return Ok(()) };
    tx.exec_later(
        "INSERT INTO idempotency (scope, key, request_digest, resource_id, created_at) VALUES ($1, $2, $3, $4, $5)",
        params![&idem.scope, &idem.key, idem.request_digest.as_str(), resource, now],
    )
    .await
}

impl Store {
    pub async fn forget_old_idempotency(&self, before: Timestamp) -> Result<u64> {
        self.main()
            .write(before, |tx, before| {
                Box::pin(async move { tx.exec("DELETE FROM idempotency WHERE created_at < $1", params![before]).await })
            })
            .await
    }
}
