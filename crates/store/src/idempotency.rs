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
    if row.get::<String>(0)? != idem.request_digest.as_str() {
        return Err(StoreError::IdempotencyMismatch);
    }
    Ok(Some(row.get(1)?))
}

pub(crate) async fn remember(
    tx: &mut Tx<'_>,
    idem: Option<&Idempotency>,
    resource: &str,
    now: Timestamp,
) -> Result<()> {
    let Some(idem) = idem else { return Ok(()) };
    tx.exec(
        "INSERT INTO idempotency (scope, key, request_digest, resource_id, created_at) VALUES ($1, $2, $3, $4, $5)",
        params![&idem.scope, &idem.key, idem.request_digest.as_str(), resource, now],
    )
    .await?;
    Ok(())
}

impl Store {
    pub async fn forget_old_idempotency(&self, before: Timestamp) -> Result<u64> {
        self.main()
            .write(move |tx| {
                Box::pin(async move { tx.exec("DELETE FROM idempotency WHERE created_at < $1", params![before]).await })
            })
            .await
    }
}
