//! Large blobs: written as their bytes arrive, in several requests and maybe by several processes, and read in pieces.
//!
//! In files an upload is the file that the blob will be: appended to, made durable at its end, and neither copied nor renamed,
//! because no blob is there before the database says so. What is there is what the file holds: after a crash the hash reads
//! again what it has not seen. In S3 it is a multipart upload; its parts, the state of the hash and the bytes that do not fill a
//! part yet are kept between requests (`pause`).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use model::Digest;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, PutPayload};
use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::SerializableState as _;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use crate::registry::blobs::Writing;
use crate::{Blobs, Refused, Result, StoreError};

/// What is read from a file at a time.
const READ_BYTES: usize = 128 << 10;
/// S3 wants 5 MiB at least, some stores that all are equal; 10,000 of them are the most.
const PART_BYTES: usize = 8 << 20;
const PARTS_MAX: usize = 10_000;
/// Hashes of uploads between two requests; what is not here is read again.
const HASHES_MAX: usize = 4096;

pub type BlobStream = BoxStream<'static, io::Result<Bytes>>;

/// The hashes of uploads that were paused by this process, with how much they have seen.
#[derive(Clone, Default)]
pub(crate) struct Hashes(Arc<Mutex<HashMap<String, (u64, Sha256)>>>);

impl Hashes {
    fn keep(&self, key: &str, size: u64, hash: Sha256) {
        let mut all = locked(&self.0);
        if all.len() < HASHES_MAX {
            all.insert(key.to_owned(), (size, hash));
        }
    }

    fn take(&self, key: &str) -> (u64, Sha256) {
        locked(&self.0).remove(key).unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault of a file; a full disk is one of its own.
fn io_fault(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::Blob(error.to_string()),
    }
}

fn store_fault(error: object_store::Error) -> StoreError {
    match error {
        object_store::Error::NotFound { .. } => StoreError::NotFound("blob"),
        other => StoreError::Blob(other.to_string()),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| StoreError::Blob(e.to_string()))?
}

/// An upload that is open: nobody else writes to it.
pub struct Writer {
    sink: Sink,
}

enum Sink {
    File(Arc<Mutex<FileSink>>),
    Parts(Arc<tokio::sync::Mutex<PartsSink>>),
}

impl Writer {
    /// Appends bytes, in order. The work goes on beside the caller, who reads the next ones meanwhile; one at a time.
    pub fn write(&self, bytes: Vec<Bytes>) -> JoinHandle<Result<()>> {
        match &self.sink {
            Sink::File(sink) => {
                let sink = Arc::clone(sink);
                tokio::task::spawn_blocking(move || locked(&sink).append(&bytes))
            }
            Sink::Parts(sink) => {
                let sink = Arc::clone(sink);
                tokio::spawn(async move { sink.lock().await.append(&bytes).await })
            }
        }
    }

    pub async fn size_bytes(&self) -> u64 {
        match &self.sink {
            Sink::File(sink) => locked(sink).size,
            Sink::Parts(sink) => sink.lock().await.kept.size,
        }
    }

    pub async fn digest(&self) -> Digest {
        let hash = match &self.sink {
            Sink::File(sink) => locked(sink).hash.clone(),
            Sink::Parts(sink) => sink.lock().await.hash.clone(),
        };
        Digest::from_hash(&hash.finalize())
    }

    /// Closes it for now. Returns what the database has to keep so that another request can go on, where there is any.
    pub async fn pause(self) -> Result<Option<String>> {
        match self.sink {
            Sink::File(sink) => {
                let sink = locked(&sink);
                sink.hashes.keep(&sink.key, sink.size, sink.hash.clone());
                Ok(None)
            }
            Sink::Parts(sink) => sink.lock().await.pause().await.map(Some),
        }
    }

    /// Makes it whole and durable: its key can be read from now on.
    pub async fn finish(&self) -> Result<()> {
        match &self.sink {
            Sink::File(sink) => {
                let sink = Arc::clone(sink);
                blocking(move || locked(&sink).finish()).await
            }
            Sink::Parts(sink) => sink.lock().await.finish().await,
        }
    }
}

struct FileSink {
    file: File,
    path: std::path::PathBuf,
    key: String,
    hashes: Hashes,
    hash: Sha256,
    size: u64,
}

impl FileSink {
    fn open(dir: &FilePath, key: &str, hashes: Hashes) -> Result<Self> {
        let path = dir.join(key);
        let open = || File::options().create(true).append(true).read(true).open(&path);
        let file = match open() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                make_dirs(path.parent().unwrap_or(dir)).and_then(|()| open()).map_err(io_fault)?
            }
            other => other.map_err(io_fault)?,
        };
        // Held by the open file: it falls with the process.
        file.try_lock().map_err(|_| Refused::UploadBusy)?;
        let size = file.metadata().map_err(io_fault)?.len();
        let (mut seen, mut hash) = hashes.take(key);
        if seen > size {
            (seen, hash) = (0, Sha256::new());
        }
        let mut buffer = vec![0; if seen < size { READ_BYTES } else { 0 }];
        while seen < size {
            let wanted = usize::try_from(size - seen).unwrap_or(READ_BYTES).min(READ_BYTES);
            file.read_exact_at(&mut buffer[..wanted], seen).map_err(io_fault)?;
            hash.update(&buffer[..wanted]);
            seen += wanted as u64;
        }
        Ok(Self { file, path, key: key.to_owned(), hashes, hash, size })
    }

    fn append(&mut self, bytes: &[Bytes]) -> Result<()> {
        for piece in bytes {
            if let Err(error) = self.file.write_all(piece) {
                // What was written of this piece is not counted.
                let _ = self.file.set_len(self.size);
                return Err(io_fault(error));
            }
            self.hash.update(piece);
            self.size += piece.len() as u64;
        }
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        self.file.sync_all().map_err(io_fault)?;
        let dir = self.path.parent().unwrap_or(&self.path);
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io_fault)
    }
}

/// Makes directories, durably.
fn make_dirs(dir: &FilePath) -> io::Result<()> {
    fs_err::create_dir_all(dir)?;
    for above in dir.ancestors().skip(1).take(2) {
        File::open(above)?.sync_all()?;
    }
    Ok(())
}

/// What is kept of a multipart upload between two requests.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Kept {
    size: u64,
    multipart: Option<String>,
    parts: Vec<String>,
    /// Bytes that do not fill a part; they lie in an object of their own.
    tail: usize,
    hash: String,
}

struct PartsSink {
    store: Arc<dyn MultipartStore>,
    objects: Arc<dyn ObjectStore>,
    path: Path,
    tails: Path,
    kept: Kept,
    buffer: Vec<u8>,
    hash: Sha256,
}

impl PartsSink {
    async fn append(&mut self, bytes: &[Bytes]) -> Result<()> {
        for piece in bytes {
            self.hash.update(piece);
            self.kept.size += piece.len() as u64;
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(PART_BYTES - self.buffer.len()));
                self.buffer.extend_from_slice(now);
                rest = later;
                if self.buffer.len() == PART_BYTES {
                    self.put_part().await?;
                }
            }
        }
        Ok(())
    }

    async fn put_part(&mut self) -> Result<()> {
        if self.kept.parts.len() == PARTS_MAX {
            return Err(StoreError::Blob(format!("a blob in S3 has at most {PARTS_MAX} parts")));
        }
        let id = match &self.kept.multipart {
            Some(id) => id.clone(),
            None => self.store.create_multipart(&self.path).await.map_err(store_fault)?,
        };
        self.kept.multipart = Some(id.clone());
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        let part = self.store.put_part(&self.path, &id, self.kept.parts.len(), payload).await.map_err(store_fault)?;
        self.kept.parts.push(part.content_id);
        Ok(())
    }

    async fn pause(&mut self) -> Result<String> {
        self.kept.tail = self.buffer.len();
        if self.kept.tail > 0 {
            let path = tail_path(&self.tails, self.kept.size);
            self.objects.put(&path, std::mem::take(&mut self.buffer).into()).await.map_err(store_fault)?;
        }
        self.kept.hash = hex::encode(self.hash.serialize());
        serde_json::to_string(&self.kept).map_err(|e| StoreError::Blob(e.to_string()))
    }

    async fn finish(&mut self) -> Result<()> {
        if self.kept.multipart.is_none() {
            let whole = std::mem::take(&mut self.buffer);
            self.objects.put(&self.path, whole.into()).await.map_err(store_fault)?;
        } else {
            if !self.buffer.is_empty() {
                self.put_part().await?;
            }
            let parts = self.kept.parts.iter().map(|p| object_store::multipart::PartId { content_id: p.clone() });
            let id = self.kept.multipart.clone().unwrap_or_default();
            self.store.complete_multipart(&self.path, &id, parts.collect()).await.map_err(store_fault)?;
        }
        Ok(())
    }
}

fn tail_path(tails: &Path, size: u64) -> Path {
    tails.clone().join(size.to_string())
}

fn tails_of(key: &str) -> String {
    format!("uploads/{}", key.rsplit('/').next().unwrap_or(key))
}

impl Blobs {
    /// Whether the database has to say who writes to an upload, and what is there of it.
    pub fn keeps_progress(&self) -> bool {
        matches!(self.place, Writing::Parts(_))
    }

    /// Opens an upload, new or paused; a second one at a time is a conflict. `progress` is what `pause` gave.
    pub async fn writer(&self, key: &str, progress: Option<&str>) -> Result<Writer> {
        match &self.place {
            Writing::Files(dir, hashes) => {
                let (dir, key, hashes) = (dir.clone(), key.to_owned(), hashes.clone());
                let sink = blocking(move || FileSink::open(&dir, &key, hashes)).await?;
                Ok(Writer { sink: Sink::File(Arc::new(Mutex::new(sink))) })
            }
            Writing::Parts(store) => {
                let (path, tails) = (self.path(key), self.path(&tails_of(key)));
                let (mut kept, mut hash, mut buffer) = (Kept::default(), Sha256::new(), Vec::new());
                if let Some(text) = progress {
                    let damaged = || StoreError::corrupt("upload");
                    kept = serde_json::from_str(text).map_err(|_| damaged())?;
                    let state = hex::decode(&kept.hash).map_err(|_| damaged())?;
                    let state = state.as_slice().try_into().map_err(|_| damaged())?;
                    hash = Sha256::deserialize(state).map_err(|_| damaged())?;
                    if kept.tail > 0 {
                        let found = self.store.get(&tail_path(&tails, kept.size)).await.map_err(store_fault)?;
                        buffer = found.bytes().await.map_err(store_fault)?.into();
                    }
                    if buffer.len() != kept.tail {
                        return Err(damaged());
                    }
                }
                let (store, objects) = (Arc::clone(store), Arc::clone(&self.store));
                let sink = PartsSink { store, objects, path, tails, kept, buffer, hash };
                Ok(Writer { sink: Sink::Parts(Arc::new(tokio::sync::Mutex::new(sink))) })
            }
        }
    }

    /// How many bytes of an upload are there.
    pub async fn upload_size(&self, key: &str, progress: Option<&str>) -> Result<u64> {
        match &self.place {
            Writing::Files(..) => Ok(self.size(key).await?.unwrap_or(0)),
            Writing::Parts(_) => {
                let kept = progress.map(serde_json::from_str::<Kept>).transpose();
                Ok(kept.map_err(|_| StoreError::corrupt("upload"))?.map_or(0, |kept| kept.size))
            }
        }
    }

    /// How many bytes a blob has; `None` when it is not there.
    pub async fn size(&self, key: &str) -> Result<Option<u64>> {
        match &self.place {
            Writing::Files(dir, _) => match tokio::fs::metadata(dir.join(key)).await {
                Ok(found) => Ok(Some(found.len())),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(io_fault(e)),
            },
            Writing::Parts(_) => match self.store.head(&self.path(key)).await {
                Ok(found) => Ok(Some(found.size)),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(e) => Err(store_fault(e)),
            },
        }
    }

    /// Removes what is left of an upload: the object, its parts, and what did not fill one.
    pub async fn remove_upload(&self, key: &str, progress: Option<&str>) -> Result<()> {
        self.delete(key).await?;
        match &self.place {
            Writing::Files(_, hashes) => {
                hashes.take(key);
            }
            Writing::Parts(store) => {
                let kept = progress.and_then(|text| serde_json::from_str::<Kept>(text).ok()).unwrap_or_default();
                if let Some(id) = kept.multipart {
                    // Parts of an upload that was completed or ended before are gone.
                    let ended = store.abort_multipart(&self.path(key), &id).await;
                    tracing::debug!(?ended, "ended a multipart upload");
                }
                self.remove_tails(key).await?;
            }
        }
        Ok(())
    }

    /// Removes what the requests of an upload have left between them.
    pub async fn remove_tails(&self, key: &str) -> Result<()> {
        if let Writing::Parts(_) = &self.place {
            let mut tails = self.store.list(Some(&self.path(&tails_of(key))));
            while let Some(tail) = tails.try_next().await.map_err(store_fault)? {
                match self.store.delete(&tail.location).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(e) => return Err(store_fault(e)),
                }
            }
        }
        Ok(())
    }

    /// A part of a blob of this size. A blob that has another size is damaged, and is not served.
    pub async fn read(&self, key: &str, size: u64, range: Range<u64>) -> Result<BlobStream> {
        match &self.place {
            Writing::Files(dir, _) => {
                let path = dir.join(key);
                let first = room_for(range.end.saturating_sub(range.start));
                let open = move || {
                    let mut file = File::open(&path).map_err(|e| match e.kind() {
                        io::ErrorKind::NotFound => StoreError::NotFound("blob"),
                        _ => io_fault(e),
                    })?;
                    check_size(size, file.metadata().map_err(io_fault)?.len())?;
                    file.seek(io::SeekFrom::Start(range.start)).map_err(io_fault)?;
                    let mut left = range.end.saturating_sub(range.start);
                    let first = read_some(&mut file, &mut left, first).map_err(io_fault)?;
                    Ok((file, left, first))
                };
                let (file, left, first) = blocking(open).await?;
                Ok(pieces(file, left, first))
            }
            Writing::Parts(_) => {
                if range.is_empty() {
                    return Ok(futures::stream::empty().boxed());
                }
                let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
                let found = self.store.get_opts(&self.path(key), options).await.map_err(store_fault)?;
                check_size(size, found.meta.size)?;
                Ok(found.into_stream().map_err(io::Error::other).boxed())
            }
        }
    }
}

fn check_size(wanted: u64, found: u64) -> Result<()> {
    if wanted == found {
        return Ok(());
    }
    Err(StoreError::Db { message: format!("a blob of {wanted} bytes has {found} in the blob store"), transient: false })
}

/// The memory for the next piece. It is made by the thread that sends it, not by one of the many that read: an allocator keeps
/// what each thread has made.
fn room_for(left: u64) -> Vec<u8> {
    Vec::with_capacity(left.min(READ_BYTES as u64) as usize)
}

fn read_some(file: &mut File, left: &mut u64, mut piece: Vec<u8>) -> io::Result<Bytes> {
    let wanted = (*left).min(READ_BYTES as u64);
    file.take(wanted).read_to_end(&mut piece)?;
    if piece.len() as u64 != wanted {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    *left -= wanted;
    Ok(piece.into())
}

/// The rest of a file. The next piece is read while the one before is sent.
fn pieces(file: File, left: u64, first: Bytes) -> BlobStream {
    type Next = JoinHandle<io::Result<(Bytes, File, u64)>>;
    let read = |mut file: File, mut left: u64| -> Option<Next> {
        let piece = room_for(left);
        let read = move || Ok((read_some(&mut file, &mut left, piece)?, file, left));
        (left > 0).then(|| tokio::task::spawn_blocking(read))
    };
    let next = read(file, left);
    let rest = futures::stream::unfold(next, move |next| async move {
        match next?.await.map_err(io::Error::other).and_then(|read| read) {
            Ok((piece, file, left)) => Some((Ok(piece), read(file, left))),
            Err(error) => Some((Err(error), None)),
        }
    });
    futures::stream::once(async move { Ok(first) }).chain(rest).boxed()
}
