//! The control plane's signing keys: sealed with the master key, each endorsed by the one before it.

use model::Timestamp;
use model::papers::{EndorsedKey, Signatory};

use crate::crypto::random;
use crate::db::{Row, Tx, params};
use crate::{Reader, Refused, Result, Store, StoreError};

/// All keys, oldest first; the newest signs.
#[derive(Debug, Clone)]
pub struct SigningKeys {
    pub signatory: Signatory,
    pub public: Vec<EndorsedKey>,
}

impl SigningKeys {
    /// What a join command carries.
    pub fn fingerprint(&self) -> &str {
        self.signatory.fingerprint()
    }
}

pub(crate) fn place(fingerprint: &str) -> String {
    format!("signing_keys|{fingerprint}")
}

const ALL: &str =
    "SELECT fingerprint, public, master_id, wrapped, endorsed_by, signature FROM signing_keys ORDER BY position";

async fn insert(
    tx: &mut Tx<'_>,
    key: &EndorsedKey,
    fingerprint: &str,
    wrapped: &(String, Vec<u8>),
    position: u64,
    now: Timestamp,
) -> Result<()> {
    tx.exec(
        "INSERT INTO signing_keys (fingerprint, public, master_id, wrapped, endorsed_by, signature, created_at, position) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![fingerprint, &key.public, &wrapped.0, wrapped.1.clone(), key.endorsed_by.as_ref(), key.signature.as_ref(), now, position],
    )
    .await?;
    Ok(())
}

impl Reader {
    fn open_keys(&self, rows: &[Row]) -> Result<SigningKeys> {
        let public = rows
            .iter()
            .map(|row| {
                Ok(EndorsedKey {
                    public: row.get("public")?,
                    endorsed_by: row.get("endorsed_by")?,
                    signature: row.get("signature")?,
                })
            })
            .collect::<Result<_>>()?;
        let newest = rows.last().ok_or(StoreError::NotFound("signing key"))?;
        let fingerprint: String = newest.get("fingerprint")?;
        let seed = self.masters().unwrap(
            &newest.get::<String>("master_id")?,
            &place(&fingerprint),
            &newest.get::<Vec<u8>>("wrapped")?,
        )?;
        let seed: [u8; 32] = seed.try_into().map_err(|_| StoreError::corrupt("signing key"))?;
        Ok(SigningKeys { signatory: Signatory::from_seed(&seed), public })
    }
}

impl Store {
    /// The keys; the first is made when there is none.
    pub async fn signing_keys(&self, now: Timestamp) -> Result<SigningKeys> {
        let seed = random::<32>();
        let fresh = Signatory::from_seed(&seed);
        let wrapped = self.masters().wrap(&place(fresh.fingerprint()), &seed);
        let rows = self
            .main()
            .write((fresh, wrapped, now), |tx, (fresh, wrapped, now)| {
                Box::pin(async move {
                    let rows = tx.query(ALL, vec![]).await?;
                    if !rows.is_empty() {
                        return Ok(rows);
                    }
                    let first = EndorsedKey { public: fresh.public(), endorsed_by: None, signature: None };
                    insert(tx, &first, fresh.fingerprint(), wrapped, 1, *now).await?;
                    tx.query(ALL, vec![]).await
                })
            })
            .await?;
        self.open_keys(&rows)
    }

    /// Adds a key that signs from now on, endorsed by the one before.
    pub async fn rotate_signing_key(&self, now: Timestamp) -> Result<SigningKeys> {
        let old = self.signing_keys(now).await?;
        let seed = random::<32>();
        let fresh = Signatory::from_seed(&seed);
        let before = old.public.len() as u64;
        let endorsed = old.signatory.endorse(&fresh.public());
        let wrapped = self.masters().wrap(&place(fresh.fingerprint()), &seed);
        let rows = self
            .main()
            .write((fresh, endorsed, wrapped, now, before), |tx, (fresh, endorsed, wrapped, now, before)| {
                Box::pin(async move {
                    // One chain: a key endorses at most one other, whoever rotates at the same time.
                    if tx.query(ALL, vec![]).await?.len() as u64 != *before {
                        return Err(Refused::KeyRotated.into());
                    }
                    insert(tx, endorsed, fresh.fingerprint(), wrapped, before + 1, *now).await?;
                    tx.query(ALL, vec![]).await
                })
            })
            .await?;
        self.open_keys(&rows)
    }
}
