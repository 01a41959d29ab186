//! Blobs: files by default, an S3-compatible store by configuration. How large ones come and go: `uploads`.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};

use crate::registry::uploads::Hashes;
use crate::{Result, StoreError};

/// Where an S3-compatible store is, and who we are there. What is absent comes from the usual `AWS_*` variables.
#[derive(Clone, Default)]
pub struct S3Options {
    /// `https://…`; AWS itself when absent.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    /// Lets the endpoint be `http://…`.
    pub allow_http: Option<bool>,
}

impl std::fmt::Debug for S3Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { endpoint, region, access_key_id, .. } = self;
        write!(f, "S3Options({endpoint:?}, {region:?}, {access_key_id:?})")
    }
}

#[derive(Clone)]
pub struct Blobs {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) place: Writing,
    prefix: String,
}

/// How large blobs are written.
#[derive(Clone)]
pub(crate) enum Writing {
    /// To a file below this directory.
    Files(PathBuf, Hashes),
    /// In parts.
    Parts(Arc<dyn MultipartStore>),
}

impl Blobs {
    pub(crate) fn open(url: &str, s3: &S3Options) -> Result<Self> {
        if let Some(rest) = url.strip_prefix("s3://") {
            return Self::open_s3(rest, s3);
        }
        if url == crate::db::MEMORY {
            let store = Arc::new(object_store::memory::InMemory::new());
            return Ok(Self { place: Writing::Parts(Arc::clone(&store) as _), store, prefix: String::new() });
        }
        let dir = url.strip_prefix("file://").unwrap_or(url);
        crate::private_dir(dir.as_ref()).map_err(|e| StoreError::Config(e.to_string()))?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(dir)
            .map_err(|e| StoreError::Config(e.to_string()))?
            .with_fsync(true);
        let place = Writing::Files(PathBuf::from(dir), Hashes::default());
        Ok(Self { store: Arc::new(store), place, prefix: String::new() })
    }

    /// `bucket/prefix`.
    fn open_s3(rest: &str, options: &S3Options) -> Result<Self> {
        use object_store::aws::AmazonS3ConfigKey as Key;
        // Without a provider the HTTP client would panic; one that the program has chosen stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let mut builder = object_store::aws::AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_conditional_put(object_store::aws::S3ConditionalPut::ETagMatch);
        let given = [
            (Key::Endpoint, options.endpoint.clone()),
            (Key::Region, options.region.clone()),
            (Key::AccessKeyId, options.access_key_id.clone()),
            (Key::SecretAccessKey, options.secret_access_key.clone()),
            (Key::Client(object_store::ClientConfigKey::AllowHttp), options.allow_http.map(|allow| allow.to_string())),
        ];
        for (key, value) in given {
            if let Some(value) = value {
                builder = builder.with_config(key, value);
            }
        }
        let store = Arc::new(builder.build().map_err(|e| StoreError::Config(e.to_string()))?);
        let place = Writing::Parts(Arc::clone(&store) as _);
        let prefix = if prefix.is_empty() { String::new() } else { format!("{}/", prefix.trim_end_matches('/')) };
        Ok(Self { store, place, prefix })
    }

    pub(crate) fn path(&self, key: &str) -> Path {
        Path::from(format!("{}{key}", self.prefix))
    }

    /// Stores a blob; it is durable when this returns. Writing the same key again replaces it.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.store.put(&self.path(key), bytes.into()).await.map_err(|e| StoreError::Blob(e.to_string()))?;
        Ok(())
    }

    /// Stores a blob that nothing replaces; false where other bytes lie there. The same bytes again are no change.
    pub async fn put_once(&self, key: &str, bytes: Bytes) -> Result<bool> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&self.path(key), bytes.clone().into(), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(self.get(key).await? == bytes),
            Err(other) => Err(StoreError::Blob(other.to_string())),
        }
    }

    pub async fn get(&self, key: &str) -> Result<Bytes> {
        let fault = |e: object_store::Error| match e {
            object_store::Error::NotFound { .. } => StoreError::NotFound("blob"),
            other => StoreError::Blob(other.to_string()),
        };
        self.store.get(&self.path(key)).await.map_err(fault)?.bytes().await.map_err(fault)
    }

    /// A part of a blob.
    pub async fn get_range(&self, key: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
        match self.store.get_range(&self.path(key), range).await {
            Ok(bytes) => Ok(bytes),
            Err(object_store::Error::NotFound { .. }) => Err(StoreError::NotFound("blob")),
            Err(other) => Err(StoreError::Blob(other.to_string())),
        }
    }

    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(StoreError::Blob(e.to_string())),
        }
    }
}
