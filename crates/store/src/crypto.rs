//! Encryption at rest: every org has data keys, wrapped under a master key that lies outside the database.
//!
//! A sealed value names its data key, so keys can be rotated; the row it belongs to is bound in as associated data.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use model::{OrgId, Timestamp};
use zeroize::Zeroizing;

use crate::db::{Tx, params};
use crate::{Reader, Result, Store, StoreError};

const NONCE: usize = 24;
const VERSION: u8 = 1;
/// Version and data key of a sealed value.
const HEAD: usize = 5;

type Secret = Zeroizing<[u8; 32]>;

/// The master keys: the first one wraps, all of them unwrap.
#[derive(Clone)]
pub struct MasterKeys {
    keys: Vec<(String, Secret)>,
}

impl std::fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MasterKeys({} keys)", self.keys.len())
    }
}

pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

fn encrypt(key: &Secret, aad: &str, plain: &[u8]) -> Vec<u8> {
    let nonce = random::<NONCE>();
    let sealed = XChaCha20Poly1305::new(&Key::from(**key))
        .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: aad.as_bytes() })
        .expect("encryption of a bounded buffer succeeds");
    [&nonce[..], &sealed].concat()
}

fn decrypt(key: &Secret, aad: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
    let nonce: [u8; NONCE] = nonce.try_into().ok()?;
    XChaCha20Poly1305::new(&Key::from(**key))
        .decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: aad.as_bytes() })
        .ok()
}

impl MasterKeys {
    /// Parses lines of `id:base64 of 32 bytes`; the first is the one that wraps.
    pub fn parse(text: &str) -> Result<Self> {
        let mut keys = Vec::new();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let bad = || {
                StoreError::Config(
                    "a master key is a line `ID:KEY` with 32 bytes in base64, as `openssl rand -base64 32` makes them"
                        .into(),
                )
            };
            let (id, key) = line.split_once(':').ok_or_else(bad)?;
            let key: [u8; 32] = B64.decode(key.trim()).map_err(|_| bad())?.try_into().map_err(|_| bad())?;
            keys.push((id.trim().to_owned(), Zeroizing::new(key)));
        }
        if keys.is_empty() {
            return Err(StoreError::Config("there is no master key".into()));
        }
        Ok(Self { keys })
    }

    /// Reads the file; makes it, readable by its owner alone, when it is not there yet.
    pub fn from_file(path: &Path) -> Result<Self> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        match fs_err::read_to_string(path) {
            Ok(text) => Self::parse(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let line = format!("m1:{}\n", B64.encode(random::<32>()));
                let mut options = fs_err::OpenOptions::new();
                options.write(true).create_new(true);
                options.options_mut().mode(0o600);
                let mut file = options.open(path).map_err(|e| StoreError::Config(e.to_string()))?;
                file.write_all(line.as_bytes())
                    .and_then(|()| file.sync_all())
                    .map_err(|e| StoreError::Config(e.to_string()))?;
                Self::parse(&line)
            }
            Err(e) => Err(StoreError::Config(e.to_string())),
        }
    }

    /// Keys for another purpose, one from each master key and in their order: the first one signs, all of them verify.
    pub(crate) fn derive(&self, purpose: &str) -> Vec<[u8; 32]> {
        use ring::hmac;
        let derive = |(_, key): &(String, Secret)| {
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &**key), purpose.as_bytes());
            let mut out = [0; 32];
            out.copy_from_slice(tag.as_ref());
            out
        };
        self.keys.iter().map(derive).collect()
    }

    pub(crate) fn wrap(&self, aad: &str, plain: &[u8]) -> (String, Vec<u8>) {
        let (id, key) = &self.keys[0];
        (id.clone(), encrypt(key, aad, plain))
    }

    /// Wraps anew under the first key; `None` when it already is.
    pub(crate) fn rewrap(&self, master_id: &str, aad: &str, wrapped: &[u8]) -> Result<Option<(String, Vec<u8>)>> {
        if self.keys[0].0 == master_id {
            return Ok(None);
        }
        Ok(Some(self.wrap(aad, &self.unwrap(master_id, aad, wrapped)?)))
    }

    /// A new line for the key file, to be put first.
    pub fn new_line(&self) -> String {
        let taken = |id: &str| self.keys.iter().any(|(known, _)| known == id);
        let id = (1..).map(|n| format!("m{n}")).find(|id| !taken(id)).expect("there are more numbers than keys");
        format!("{id}:{}\n", B64.encode(random::<32>()))
    }

    pub(crate) fn unwrap(&self, master_id: &str, aad: &str, wrapped: &[u8]) -> Result<Vec<u8>> {
        let (_, key) = self
            .keys
            .iter()
            .find(|(id, _)| id == master_id)
            .ok_or_else(|| StoreError::Sealed(format!("master key `{master_id}` is not configured")))?;
        decrypt(key, aad, wrapped)
            .ok_or_else(|| StoreError::Sealed(format!("master key `{master_id}` is not the one that wrapped it")))
    }
}

/// The data keys of one org.
#[derive(Clone)]
pub struct OrgKeys {
    active: u32,
    keys: Arc<BTreeMap<u32, Secret>>,
}

impl OrgKeys {
    /// Seals a value for its place (`table|row|column`).
    pub fn seal(&self, place: &str, plain: &[u8]) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.active.to_be_bytes());
        out.extend_from_slice(&encrypt(&self.keys[&self.active], place, plain));
        out
    }

    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let bad = || StoreError::Sealed(format!("`{place}` is damaged or sealed by another key"));
        let key = key_id(sealed).and_then(|id| self.keys.get(&id)).ok_or_else(bad)?;
        decrypt(key, place, &sealed[HEAD..]).ok_or_else(bad)
    }
}

/// Which data key sealed a value.
fn key_id(sealed: &[u8]) -> Option<u32> {
    let head = sealed.get(1..HEAD).filter(|_| sealed[0] == VERSION)?;
    Some(u32::from_be_bytes(head.try_into().ok()?))
}

#[derive(Default)]
pub(crate) struct KeyCache {
    orgs: Mutex<HashMap<OrgId, OrgKeys>>,
}

pub(crate) fn data_key_place(org: &OrgId, id: u32) -> String {
    format!("data_keys|{org}|{id}")
}

/// A fresh data key, wrapped; made outside the transaction that stores it.
#[derive(Debug, Clone)]
pub(crate) struct WrappedKey {
    master_id: String,
    wrapped: Vec<u8>,
}

impl MasterKeys {
    pub(crate) fn new_data_key(&self, org: &OrgId, id: u32) -> WrappedKey {
        let (master_id, wrapped) = self.wrap(&data_key_place(org, id), &random::<32>());
        WrappedKey { master_id, wrapped }
    }
}

pub(crate) async fn insert_data_key(
    tx: &mut Tx<'_>,
    org: &OrgId,
    id: u32,
    key: &WrappedKey,
    now: Timestamp,
) -> Result<()> {
    tx.exec(
        "INSERT INTO data_keys (org_id, id, master_id, wrapped, created_at) VALUES ($1, $2, $3, $4, $5)",
        params![org, i64::from(id), &key.master_id, key.wrapped.clone(), now],
    )
    .await?;
    Ok(())
}

impl Reader {
    /// The data keys of an org, from memory when they are known.
    pub async fn org_keys(&self, org: &OrgId) -> Result<OrgKeys> {
        let cached = self.key_cache().orgs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(org).cloned();
        if let Some(keys) = cached {
            return Ok(keys);
        }
        let keys = self.load_org_keys(org).await?;
        let mut cache = self.key_cache().orgs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        cache.insert(org.clone(), keys.clone());
        Ok(keys)
    }

    async fn load_org_keys(&self, org: &OrgId) -> Result<OrgKeys> {
        let _id = org.clone();
        let rows = self
            .main()
            .read(org.clone(), |tx, id| {
                Box::pin(async move {
                    tx.query("SELECT id, master_id, wrapped FROM data_keys WHERE org_id = $1 ORDER BY id", params![&id])
                        .await
                })
            })
            .await?;
        let mut keys = BTreeMap::new();
        for row in rows {
            let id = row.get::<u64>("id")? as u32;
            let plain = self.masters().unwrap(
                &row.get::<String>("master_id")?,
                &data_key_place(org, id),
                &row.get::<Vec<u8>>("wrapped")?,
            )?;
            let key: [u8; 32] = plain.try_into().map_err(|_| StoreError::corrupt("data key"))?;
            keys.insert(id, Zeroizing::new(key));
        }
        let active = *keys.keys().next_back().ok_or(StoreError::NotFound("org"))?;
        Ok(OrgKeys { active, keys: Arc::new(keys) })
    }

    /// Opens a value of an org. Another replica may have rotated the key since we last looked.
    pub(crate) async fn open_sealed(&self, org: &OrgId, place: &str, sealed: &[u8]) -> Result<Vec<u8>> {
        let mut keys = self.org_keys(org).await?;
        if key_id(sealed).is_some_and(|id| !keys.keys.contains_key(&id)) {
            self.forget_org_keys(org);
            keys = self.org_keys(org).await?;
        }
        keys.open(place, sealed)
    }

    fn forget_org_keys(&self, org: &OrgId) {
        self.key_cache().orgs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(org);
    }
}

impl Store {
    /// Adds a data key that seals from now on; older ones still open.
    pub async fn rotate_data_key(&self, org: &OrgId, now: Timestamp) -> Result<u32> {
        let next = self.load_org_keys(org).await?.active + 1;
        self.main()
            .write((org.clone(), self.masters().new_data_key(org, next), now, next), |tx, (id, key, now, next)| {
                Box::pin(async move { insert_data_key(tx, id, *next, key, *now).await })
            })
            .await?;
        self.forget_org_keys(org);
        Ok(next)
    }
}
