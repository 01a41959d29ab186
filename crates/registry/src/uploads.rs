//! Pushing blobs: in one request, in two, or in any number of pieces; and mounts, which move no byte.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::StreamExt as _;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName, LOCATION, RANGE};
use http::request::Parts;
use model::{BlobId, Digest};
use store::{RegistryUpload, Writer};

use crate::auth::{Action, Caller};
use crate::error::{Answer, Code, Refusal};
use crate::names::{Repository, piece_range};
use crate::{CONTENT_DIGEST, Registry, digest_of, header, named, query};

/// What is handed to the blob store at a time; the next as much is read meanwhile.
const BATCH_BYTES: usize = 256 << 10;
/// How long a request holds an upload where locks of files do not; held anew as long as bytes come.
const CLAIM_S: i64 = 120;
const CLAIM_AGAIN: Duration = Duration::from_secs(30);
/// How much of a refused body is read, so that the client gets to read the answer.
const DRAIN_BYTES: usize = 16 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(3);
const UPLOAD_ID: HeaderName = HeaderName::from_static("docker-upload-uuid");

/// An upload that this request writes to.
struct Open {
    upload: RegistryUpload,
    writer: Writer,
}

impl Registry {
    pub(crate) async fn begin_upload(
        &self,
        caller: &Caller,
        at: &Repository,
        parts: &Parts,
        body: &mut Option<Body>,
    ) -> Answer {
        let pairs = query(parts);
        if let (Some(digest), Some(from)) = (named(&pairs, "mount"), named(&pairs, "from"))
            && let Some(mounted) = self.mount(caller, at, &digest_of(digest)?, from).await?
        {
            return Ok(mounted);
        }
        let digest = named(&pairs, "digest").map(digest_of).transpose()?;
        if self.inner.usage.room(self.store(), &at.org).await? == 0 {
            return Err(self.inner.usage.exceeded());
        }
        let id = BlobId::new(self.now(), random());
        self.store().begin_upload(&at.org, &at.name, &id, self.now()).await?;
        match digest {
            Some(digest) => self.receive_last(at, &id, &digest, parts, body).await,
            None => Ok(upload_response(StatusCode::ACCEPTED, at, &id, 0)),
        }
    }

    /// `None` when there is nothing to mount: then the client uploads.
    async fn mount(
        &self,
        caller: &Caller,
        at: &Repository,
        digest: &Digest,
        from: &str,
    ) -> Result<Option<Response>, Refusal> {
        let Ok(source) = caller.may(from, Action::Pull) else { return Ok(None) };
        if source.org != at.org {
            return Ok(None);
        }
        let mounted = self.store().mount_blob(&at.org, from, &at.name, digest, self.now()).await?;
        Ok(mounted.then(|| created(at, digest)))
    }

    pub(crate) async fn upload_status(&self, at: &Repository, id: &BlobId) -> Answer {
        let upload = self.store().registry_upload(&at.org, &at.name, id).await?;
        let size = self.store().blobs().upload_size(&upload.key(), upload.progress.as_deref()).await?;
        Ok(upload_response(StatusCode::NO_CONTENT, at, id, size))
    }

    pub(crate) async fn patch_upload(
        &self,
        at: &Repository,
        id: &BlobId,
        parts: &Parts,
        body: &mut Option<Body>,
    ) -> Answer {
        let open = self.open(at, id).await?;
        let received = self.receive(&open, at, parts, body).await;
        let size = open.writer.size_bytes().await;
        self.pause(open).await?;
        received?;
        Ok(upload_response(StatusCode::ACCEPTED, at, id, size))
    }

    pub(crate) async fn put_upload(
        &self,
        at: &Repository,
        id: &BlobId,
        parts: &Parts,
        body: &mut Option<Body>,
    ) -> Answer {
        let pairs = query(parts);
        let missing = || Refusal::new(Code::DigestInvalid, "the last request of an upload names its `digest`");
        let digest = digest_of(named(&pairs, "digest").ok_or_else(missing)?)?;
        self.receive_last(at, id, &digest, parts, body).await
    }

    pub(crate) async fn cancel_upload(&self, at: &Repository, id: &BlobId) -> Answer {
        let upload = self.store().registry_upload(&at.org, &at.name, id).await?;
        self.end(&upload).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    }

    /// Opens an upload for this request alone.
    async fn open(&self, at: &Repository, id: &BlobId) -> Result<Open, Refusal> {
        let mut upload = self.store().registry_upload(&at.org, &at.name, id).await?;
        let blobs = self.store().blobs();
        if blobs.keeps_progress() {
            let now = self.now();
            upload = self.store().claim_upload(&upload, now, now.plus_s(CLAIM_S)).await?;
        }
        let writer = blobs.writer(&upload.key(), upload.progress.as_deref()).await?;
        Ok(Open { upload, writer })
    }

    async fn pause(&self, open: Open) -> Result<(), Refusal> {
        if let Some(progress) = open.writer.pause().await? {
            self.store().pause_upload(&open.upload, &progress).await?;
        }
        Ok(())
    }

    /// Ends an upload, and removes what is there of it; what can't be removed now is doomed.
    async fn end(&self, upload: &RegistryUpload) -> Result<(), Refusal> {
        self.store().cancel_upload(upload, self.now()).await?;
        self.bury(upload).await;
        Ok(())
    }

    /// Ends an upload with all that this request has brought.
    async fn discard(&self, open: Open) -> Result<(), Refusal> {
        let Open { mut upload, writer } = open;
        if let Some(progress) = writer.pause().await? {
            upload.progress = Some(progress);
        }
        self.end(&upload).await
    }

    async fn bury(&self, upload: &RegistryUpload) {
        if let Err(error) = self.store().bury(&upload.key(), upload.progress.as_deref()).await {
            tracing::warn!(upload = %upload.id, %error, "left for the sweep");
        }
    }

    /// Appends the body of a request to an upload.
    async fn receive(
        &self,
        open: &Open,
        at: &Repository,
        parts: &Parts,
        body: &mut Option<Body>,
    ) -> Result<(), Refusal> {
        let start = open.writer.size_bytes().await;
        let length = parts.headers.get(CONTENT_LENGTH).and_then(|h| h.to_str().ok()?.parse::<u64>().ok());
        if let Some(range) = parts.headers.get(CONTENT_RANGE) {
            let invalid = || Refusal::new(Code::BlobUploadInvalid, "Content-Range is not `START-END`");
            let (from, count) = range.to_str().ok().and_then(piece_range).ok_or_else(invalid)?;
            if from != start {
                let text = format!("the upload continues at byte {start}, not at {from}");
                let refusal = Refusal::new(Code::RangeInvalid, text).with(RANGE, header(&shown_range(start)));
                return Err(refusal.with(LOCATION, header(&location(at, &open.upload.id))));
            }
            if length.is_some_and(|length| length != count) {
                return Err(Refusal::new(Code::SizeInvalid, "Content-Range and Content-Length differ"));
            }
        }
        let room = self.inner.usage.room(self.store(), &at.org).await?;
        if start.saturating_add(length.unwrap_or(0)) > room {
            return Err(self.inner.usage.exceeded());
        }
        let Some(mut pieces) = body.take().map(Body::into_data_stream) else { return Ok(()) };
        let received = self.append(open, &mut pieces, room).await;
        if received.is_err() {
            // Still to be read, in part.
            *body = Some(Body::from_stream(pieces));
        }
        received
    }

    async fn append(&self, open: &Open, pieces: &mut BodyDataStream, room: u64) -> Result<(), Refusal> {
        let mut size = open.writer.size_bytes().await;
        let mut working = None;
        let mut claimed = tokio::time::Instant::now();
        loop {
            let batch = next_batch(pieces, self.inner.settings.stall).await;
            // Also when nothing more comes: who closes the upload finds no one writing to it.
            if let Some(work) = working.take() {
                finished(work).await?;
            }
            let batch = batch?;
            if batch.is_empty() {
                return Ok(());
            }
            size = batch.iter().fold(size, |sum, piece| sum.saturating_add(piece.len() as u64));
            if size > room {
                return Err(self.inner.usage.exceeded());
            }
            working = Some(open.writer.write(batch));
            if self.store().blobs().keeps_progress() && claimed.elapsed() > CLAIM_AGAIN {
                claimed = tokio::time::Instant::now();
                self.store().hold_upload(&open.upload, self.now().plus_s(CLAIM_S)).await?;
            }
        }
    }

    /// The last request of an upload: the rest of its bytes, and the digest that all of them must have.
    async fn receive_last(
        &self,
        at: &Repository,
        id: &BlobId,
        digest: &Digest,
        parts: &Parts,
        body: &mut Option<Body>,
    ) -> Answer {
        let open = self.open(at, id).await?;
        if let Err(refusal) = self.receive(&open, at, parts, body).await {
            self.pause(open).await?;
            return Err(refusal);
        }
        let (found, size) = (open.writer.digest().await, open.writer.size_bytes().await);
        if found != *digest {
            self.discard(open).await?;
            let text = format!("the {size} bytes have the digest {found}, not {digest}; the upload is ended");
            return Err(Refusal::new(Code::DigestInvalid, text));
        }
        if size > self.inner.usage.room(self.store(), &at.org).await? {
            self.discard(open).await?;
            return Err(self.inner.usage.exceeded());
        }
        open.writer.finish().await?;
        let fresh = self.store().finish_upload(&open.upload, digest, size, self.now()).await?;
        if fresh {
            self.inner.usage.add(&at.org, size);
            if open.upload.progress.is_some()
                && let Err(error) = self.store().blobs().remove_tails(&open.upload.key()).await
            {
                tracing::warn!(%error, "tails of an upload are left");
            }
        } else {
            self.bury(&open.upload).await;
        }
        Ok(created(at, digest))
    }
}

/// What is there of a body, up to a batch: waits for the first piece, and takes what has come with it.
async fn next_batch(pieces: &mut BodyDataStream, stall: Duration) -> Result<Vec<Bytes>, Refusal> {
    let stalled = |_| {
        let text = format!("nothing came for {} s", stall.as_secs());
        Refusal::new(Code::BlobUploadInvalid, text)
    };
    let broken = |_| Refusal::new(Code::BlobUploadInvalid, "the connection broke");
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while bytes < BATCH_BYTES {
        match tokio::time::timeout(stall, pieces.next()).await.map_err(stalled)? {
            Some(piece) => {
                let piece = piece.map_err(broken)?;
                bytes += piece.len();
                batch.push(piece);
            }
            None => break,
        }
    }
    Ok(batch)
}

async fn finished(work: tokio::task::JoinHandle<store::Result<()>>) -> Result<(), Refusal> {
    let outcome = work.await.map_err(|e| store::StoreError::Blob(e.to_string()))?;
    Ok(outcome?)
}

/// Reads some of a body that nobody wants.
pub(crate) async fn drain(body: Body) {
    let mut pieces = body.into_data_stream();
    let read = async {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(piece)) = pieces.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, read).await;
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u128::from_be_bytes(bytes)
}

/// What is there: both ends count, so that nothing and one byte look alike.
fn shown_range(size: u64) -> String {
    format!("0-{}", size.saturating_sub(1))
}

fn location(at: &Repository, id: &BlobId) -> String {
    format!("/v2/{}/blobs/uploads/{id}", at.name)
}

fn upload_response(status: StatusCode, at: &Repository, id: &BlobId, size: u64) -> Response {
    let mut response = status.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, header(&location(at, id)));
    headers.insert(RANGE, header(&shown_range(size)));
    headers.insert(UPLOAD_ID, header(id.as_str()));
    response
}

fn created(at: &Repository, digest: &Digest) -> Response {
    let mut response = StatusCode::CREATED.into_response();
    response.headers_mut().insert(LOCATION, header(&format!("/v2/{}/blobs/{digest}", at.name)));
    response.headers_mut().insert(CONTENT_DIGEST, header(digest.as_str()));
    response
}
