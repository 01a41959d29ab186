//! Blobs: files by default, an S3-compatible store by configuration.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

use crate::{Result, StoreError};

#[derive(Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    prefix: String,
}

impl Blobs {
    pub(crate) fn open(url: &str) -> Result<Self> {
        if let Some(rest) = url.strip_prefix("s3://") {
            return Self::open_s3(rest);
        }
        let dir = url.strip_prefix("file://").unwrap_or(url);
        fs_err::create_dir_all(dir).map_err(|e| StoreError::Config(e.to_string()))?;
        let store = object_store::local::LocalFileSystem::new_with_prefix(dir)
            .map_err(|e| StoreError::Config(e.to_string()))?
            .with_fsync(true);
        Ok(Self { store: Arc::new(store), prefix: String::new() })
    }

    /// `bucket/prefix`; endpoint and credentials come from the usual `AWS_*` variables.
    fn open_s3(rest: &str) -> Result<Self> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let store = object_store::aws::AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_conditional_put(object_store::aws::S3ConditionalPut::ETagMatch)
            .build()
            .map_err(|e| StoreError::Config(e.to_string()))?;
        let prefix = if prefix.is_empty() { String::new() } else { format!("{}/", prefix.trim_end_matches('/')) };
        Ok(Self { store: Arc::new(store), prefix })
    }

    fn path(&self, key: &str) -> Path {
        Path::from(format!("{}{key}", self.prefix))
    }

    /// Stores a blob; it is durable when this returns. Writing the same key again replaces it.
    pub async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.store.put(&self.path(key), bytes.into()).await.map_err(|e| StoreError::Blob(e.to_string()))?;
        Ok(())
    }

    pub async fn get(&self, key: &str) -> Result<Bytes> {
        let fault = |e: object_store::Error| match e {
            object_store::Error::NotFound { .. } => StoreError::NotFound("blob"),
            other => StoreError::Blob(other.to_string()),
        };
        self.store.get(&self.path(key)).await.map_err(fault)?.bytes().await.map_err(fault)
    }

    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(StoreError::Blob(e.to_string())),
        }
    }
}
