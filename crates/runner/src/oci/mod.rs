//! A client of OCI registries: what builds and syncs need of one, with a bound on every request, and blobs that are taken up
//! again where a connection broke.

pub mod copy;
mod credentials;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fs_err as fs;
use futures::future::BoxFuture;
use model::Digest;
use model::build::{Credentials, RegistryAccess, media};
use model::digest::Hasher;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RANGE, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::net;
use crate::patience::{Patience, Transient};

pub use credentials::stored as stored_credentials;

/// Bound of a request that carries little, and of the pause between two pieces of one that carries much.
const CALL: Duration = Duration::from_secs(30);
const STALL: Duration = Duration::from_secs(60);
const TRIES: u32 = 6;
/// Manifests, lists, tokens and errors.
const SMALL_BYTES: usize = 4 << 20;
/// A token is asked for anew after this long at the latest.
const TOKEN_S_MAX: u64 = 86_400;
/// Read of a file at a time.
const PIECE_BYTES: usize = 256 << 10;
/// However large a blob is.
const UPLOAD_MAX: Duration = Duration::from_secs(6 * 3600);
const PAGES_MAX: usize = 1000;
/// What a manifest may be.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// Why a registry could not be used.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    #[error("{registry} can't be reached: {reason}")]
    Transport { registry: String, reason: String },
    #[error("{registry} answers {status} to {what}: {reason}")]
    Refused { registry: String, what: String, status: u16, reason: String },
    #[error("{0}")]
    Bad(String),
    #[error(transparent)]
    File(#[from] std::io::Error),
}

pub type Result<T, E = OciError> = std::result::Result<T, E>;

impl Transient for OciError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Transport { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::Bad(_) | Self::File(_) => false,
        }
    }
}

impl OciError {
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}

/// Gives tokens for Ferry's own registry.
pub trait RegistryTokens: Send + Sync {
    fn token(&self) -> BoxFuture<'_, std::result::Result<RegistryAccess, String>>;
}

/// Who we are to a registry.
pub enum Auth {
    Login(Option<Credentials>),
    /// Ferry's own registry.
    RegistryTokens(Box<dyn RegistryTokens>),
}

/// One repository of a registry.
pub struct Remote {
    http: reqwest::Client,
    /// `https://host`, maybe with a path.
    base: String,
    pub name: String,
    auth: Auth,
    /// What the registry lets us in with, until when.
    header: Mutex<Option<(String, Option<Instant>)>>,
}

/// A blob, as manifests name it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
}

/// A manifest as it is, byte for byte.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub media_type: String,
    pub digest: Digest,
    pub bytes: Vec<u8>,
}

impl Manifest {
    pub fn new(media_type: &str, bytes: Vec<u8>) -> Self {
        Self { media_type: media_type.to_owned(), digest: Digest::of(&bytes), bytes }
    }

    pub fn value(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.bytes)
            .map_err(|e| OciError::Bad(format!("manifest {} is no JSON: {e}", self.digest)))
    }
}

impl Remote {
    pub fn new(base: &str, name: &str, auth: Auth, ca_file: Option<&Path>) -> Result<Self> {
        let base = base.trim_end_matches('/').to_owned();
        let http = net::registry_client(&base, ca_file).map_err(|e| OciError::Bad(net::chain(&e)))?;
        Ok(Self { http, base, name: name.to_owned(), auth, header: Mutex::new(None) })
    }

    /// The registry as people call it: its host.
    pub fn host(&self) -> &str {
        self.base.split_once("://").map_or(self.base.as_str(), |(_, host)| host)
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/v2/{}/{rest}", self.base, self.name)
    }

    fn transport(&self, error: &reqwest::Error) -> OciError {
        let mut reason = net::chain(error);
        if reason.contains("InvalidContentType") {
            reason = "it does not speak TLS; where that is meant, write `http://` before the image, or `--plain-http`"
                .into();
        }
        OciError::Transport { registry: self.host().to_owned(), reason }
    }

    fn stalled(&self) -> OciError {
        OciError::Transport { registry: self.host().to_owned(), reason: "nothing came for a minute".into() }
    }

    /// The body of an answer that is small.
    async fn small(&self, mut response: Response, what: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let piece = tokio::time::timeout(STALL, response.chunk()).await;
            let Some(piece) = piece.map_err(|_| self.stalled())?.map_err(|e| self.transport(&e))? else { break };
            bytes.extend_from_slice(&piece);
            if bytes.len() > SMALL_BYTES {
                return Err(OciError::Bad(format!("{} gives more than {SMALL_BYTES} bytes for {what}", self.host())));
            }
        }
        Ok(bytes)
    }

    fn known_header(&self) -> Option<String> {
        let header = self.header.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, until) = header.as_ref()?;
        until.is_none_or(|until| Instant::now() < until).then(|| text.clone())
    }

    fn remember(&self, text: String, life: Option<Duration>) -> String {
        let until = life.map(|life| Instant::now() + life * 4 / 5);
        *self.header.lock().unwrap_or_else(PoisonError::into_inner) = Some((text.clone(), until));
        text
    }

    /// Sends a request, signs in where the registry asks for it, and returns an answer that is no error.
    async fn send(&self, what: &str, make: &(dyn Fn() -> Result<RequestBuilder> + Sync)) -> Result<Response> {
        self.send_body(what, make, false).await
    }

    async fn send_body(
        &self,
        what: &str,
        make: &(dyn Fn() -> Result<RequestBuilder> + Sync),
        carries: bool,
    ) -> Result<Response> {
        let mut header = self.known_header();
        if let (None, Auth::RegistryTokens(_)) = (&header, &self.auth) {
            header = Some(self.sign_in("").await?);
        }
        let mut asked = false;
        loop {
            let mut request = make()?;
            if let Some(header) = &header {
                request = request.header(AUTHORIZATION, header);
            }
            // Bodies have bounds of their own; what comes before the first byte of an answer has this one.
            let bound = if carries { UPLOAD_MAX } else { STALL };
            let sent = tokio::time::timeout(bound, request.send()).await;
            let response = sent.map_err(|_| self.stalled())?.map_err(|e| self.transport(&e))?;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED && !asked {
                asked = true;
                let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|h| h.to_str().ok());
                let challenge = challenge.unwrap_or_default().to_owned();
                drop(response);
                header = Some(self.sign_in(&challenge).await?);
                continue;
            }
            if status.is_success() {
                return Ok(response);
            }
            return Err(self.refused(what, response).await);
        }
    }

    async fn refused(&self, what: &str, response: Response) -> OciError {
        let status = response.status().as_u16();
        let text = self.small(response, what).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let told = value.pointer("/errors/0/message").and_then(serde_json::Value::as_str);
        let reason: String = told.unwrap_or_else(|| text.trim()).chars().take(300).collect();
        OciError::Refused { registry: self.host().to_owned(), what: what.to_owned(), status, reason }
    }

    /// Answers a challenge; returns what to send as `Authorization`.
    async fn sign_in(&self, challenge: &str) -> Result<String> {
        let login = match &self.auth {
            Auth::RegistryTokens(pass) => {
                let access = pass.token().await.map_err(OciError::Bad)?;
                return Ok(self.remember(
                    format!("Bearer {}", access.token),
                    Some(Duration::from_secs(access.expires_in_s.min(TOKEN_S_MAX))),
                ));
            }
            Auth::Login(login) => login,
        };
        if challenge.to_ascii_lowercase().starts_with("basic") {
            let Some(login) = login else {
                return Err(OciError::Bad(format!(
                    "{} asks for a login, and none is known; `ferry sources login {0}` keeps one",
                    self.host()
                )));
            };
            return Ok(self.remember(basic(login), None));
        }
        let parameter = |name: &str| parameter(challenge, name);
        let realm = parameter("realm").filter(|realm| realm.starts_with("http"));
        let realm = realm
            .ok_or_else(|| OciError::Bad(format!("{} requires a login and doesn't say which kind", self.host())))?;
        let mut request = self.http.get(&realm).timeout(CALL);
        for name in ["service", "scope"] {
            if let Some(value) = parameter(name) {
                request = request.query(&[(name, value)]);
            }
        }
        if let Some(login) = login {
            request = request.header(AUTHORIZATION, basic(login));
        }
        let response = request.send().await.map_err(|e| self.transport(&e))?;
        if !response.status().is_success() {
            return Err(self.refused("the login", response).await);
        }
        let answer = self.small(response, "a token").await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        let text = |name: &str| answer.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
        let token = text("token").or_else(|| text("access_token"));
        let token = token.ok_or_else(|| OciError::Bad(format!("{} gave no token", self.host())))?;
        let life_s = answer.get("expires_in").and_then(serde_json::Value::as_u64).unwrap_or(60);
        Ok(self.remember(format!("Bearer {token}"), Some(Duration::from_secs(life_s.clamp(10, TOKEN_S_MAX)))))
    }

    /// Tries again what may work in a moment.
    async fn patiently<T, F: Future<Output = Result<T>>>(&self, attempt: impl FnMut() -> F) -> Result<T> {
        Patience::tries(TRIES).keep(attempt, |error| tracing::debug!(%error, "tried again")).await
    }

    /// A manifest by tag or digest. What is asked for by digest is what it names.
    pub async fn manifest(&self, reference: &str) -> Result<Manifest> {
        let what = format!("a look at {}:{reference}", self.name);
        let url = self.url(&format!("manifests/{reference}"));
        self.patiently(|| async {
            let make = || Ok(self.http.get(&url).timeout(CALL).header(ACCEPT, MANIFESTS));
            let response = self.send(&what, &make).await?;
            let kind = response.headers().get(CONTENT_TYPE).and_then(|h| h.to_str().ok());
            let media_type = kind.unwrap_or(media::MANIFEST).split(';').next().unwrap_or_default().trim().to_owned();
            let found = Manifest::new(&media_type, self.small(response, &what).await?);
            if reference.starts_with("sha256:") && found.digest.as_str() != reference {
                return Err(OciError::Bad(format!("{} gave another manifest for {reference}", self.host())));
            }
            Ok(found)
        })
        .await
    }

    /// The digest that a tag names now.
    pub async fn resolve(&self, reference: &str) -> Result<Digest> {
        Ok(self.manifest(reference).await?.digest)
    }

    pub async fn put_manifest(&self, reference: &str, manifest: &Manifest) -> Result<()> {
        let what = format!("a push of {}:{reference}", self.name);
        let url = self.url(&format!("manifests/{reference}"));
        self.patiently(|| async {
            let make = || {
                let request = self.http.put(&url).timeout(CALL).header(CONTENT_TYPE, &manifest.media_type);
                Ok(request.body(manifest.bytes.clone()))
            };
            self.send(&what, &make).await.map(drop)
        })
        .await
    }

    /// All tags.
    pub async fn tags(&self) -> Result<Vec<String>> {
        let mut tags: Vec<String> = Vec::new();
        let mut url = self.url("tags/list?n=1000");
        for _ in 0..PAGES_MAX {
            let response = self.patiently(|| async {
                let make = || Ok(self.http.get(&url).timeout(CALL));
                self.send(&format!("a list of the tags of {}", self.name), &make).await
            });
            let response = response.await?;
            let next = response.headers().get("link").and_then(|h| h.to_str().ok()).and_then(next_page);
            let page = self.small(response, "a list of tags").await?;
            let page: serde_json::Value = serde_json::from_slice(&page).unwrap_or_default();
            let found = page.get("tags").and_then(serde_json::Value::as_array).into_iter().flatten();
            tags.extend(found.filter_map(|tag| tag.as_str().map(str::to_owned)));
            match next {
                Some(next) if next.starts_with('/') => url = format!("{}{next}", self.base),
                Some(next) if next.starts_with(&self.base) => url = next,
                Some(_) => return Err(OciError::Bad(format!("{} continues its list of tags elsewhere", self.host()))),
                None => break,
            }
        }
        Ok(tags)
    }

    pub async fn has_blob(&self, digest: &Digest) -> Result<bool> {
        let url = self.url(&format!("blobs/{digest}"));
        let found = self.patiently(|| async {
            let make = || Ok(self.http.head(&url).timeout(CALL));
            self.send(&format!("a look at {digest}"), &make).await.map(drop)
        });
        match found.await {
            Ok(()) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Brings a blob into a file. What was there of it is taken up where it ends; the whole is what the digest names.
    pub async fn fetch_blob(&self, blob: &Descriptor, to: &Path) -> Result<()> {
        self.patiently(|| async { self.fetch_rest(blob, to).await }).await?;
        let (file, wanted) = (to.to_owned(), blob.clone());
        let found = tokio::task::spawn_blocking(move || hash_file(&file)).await.map_err(std::io::Error::other)??;
        if found != wanted.digest {
            let _ = fs::remove_file(to);
            return Err(OciError::Bad(format!("{} gave something else for {}", self.host(), wanted.digest)));
        }
        Ok(())
    }

    async fn fetch_rest(&self, blob: &Descriptor, to: &Path) -> Result<()> {
        let mut file = tokio::fs::OpenOptions::new().create(true).append(true).open(to).await?;
        let mut have = file.metadata().await?.len();
        if have >= blob.size && blob.size > 0 {
            return Ok(());
        }
        let url = self.url(&format!("blobs/{}", blob.digest));
        let make = || {
            let request = self.http.get(&url);
            Ok(if have > 0 { request.header(RANGE, format!("bytes={have}-")) } else { request })
        };
        let answer = self.send(&format!("a pull of {}", blob.digest), &make).await;
        if matches!(answer, Err(OciError::Refused { status: 416, .. })) {
            // What is here is not the beginning of it.
            file.set_len(0).await?;
            return Err(OciError::Transport {
                registry: self.host().to_owned(),
                reason: "the blob begins anew".into(),
            });
        }
        let mut response = answer?;
        if have > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            // It knows no ranges: from the beginning.
            file.set_len(0).await?;
            have = 0;
        }
        loop {
            let piece = tokio::time::timeout(STALL, response.chunk()).await;
            let Some(piece) = piece.map_err(|_| self.stalled())?.map_err(|e| self.transport(&e))? else { break };
            have += piece.len() as u64;
            if have > blob.size {
                return Err(OciError::Bad(format!("{} is larger than its manifest says", blob.digest)));
            }
            file.write_all(&piece).await?;
        }
        file.flush().await?;
        if have < blob.size {
            let reason = format!("{} ended after {have} of {} bytes", blob.digest, blob.size);
            return Err(OciError::Transport { registry: self.host().to_owned(), reason });
        }
        Ok(())
    }

    /// Has the registry take a blob over from another of its repositories; false where it would not.
    pub async fn mount(&self, blob: &Digest, from: &str) -> Result<bool> {
        let url = self.url("blobs/uploads/");
        let make = || {
            let request = self.http.post(&url).timeout(CALL).query(&[("mount", blob.as_str()), ("from", from)]);
            Ok(request.header(CONTENT_LENGTH, 0))
        };
        match self.send(&format!("a mount of {blob}"), &make).await {
            Ok(response) => Ok(response.status() == StatusCode::CREATED),
            Err(OciError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Brings a blob there, unless it is there.
    pub async fn push_blob(&self, blob: &Descriptor, from: &Path) -> Result<bool> {
        if self.has_blob(&blob.digest).await? {
            return Ok(false);
        }
        self.patiently(|| async { self.upload(blob, Content::File(from)).await }).await?;
        Ok(true)
    }

    pub async fn push_bytes(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor> {
        let blob =
            Descriptor { media_type: media_type.to_owned(), digest: Digest::of(bytes), size: bytes.len() as u64 };
        if !self.has_blob(&blob.digest).await? {
            self.patiently(|| async { self.upload(&blob, Content::Bytes(bytes)).await }).await?;
        }
        Ok(blob)
    }

    /// Brings a blob there from another registry: what comes in goes out, and is kept nowhere. It gets no end unless it is what the
    /// digest names. Tried once: whoever wants to take it up again where it broke keeps it in a file.
    pub async fn pass_blob(&self, blob: &Descriptor, from: &Self) -> Result<()> {
        let place = self.begin_upload(blob).await?;
        let source = from.url(&format!("blobs/{}", blob.digest));
        let pull = format!("a pull of {}", blob.digest);
        let answer = from.send(&pull, &|| Ok(from.http.get(&source))).await?;
        let broken = Arc::new(Mutex::new(None));
        let passing = Passing {
            answer,
            hasher: Hasher::default(),
            left: blob.size,
            digest: blob.digest.clone(),
            broken: Arc::clone(&broken),
        };
        let body = Mutex::new(Some(reqwest::Body::wrap_stream(futures::stream::try_unfold(passing, Passing::next))));
        let make = || {
            let body = body.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Asked to sign in in the middle of it.
            let body = body.ok_or_else(|| OciError::Transport {
                registry: self.host().to_owned(),
                reason: "the blob begins anew".into(),
            })?;
            Ok(self.put_upload(&place, blob).body(body))
        };
        let sent = self.send_body(&format!("a push of {}", blob.digest), &make, true).await.map(drop);
        let why = broken.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (sent, why) {
            (Err(_), Some(reason)) => Err(OciError::Transport { registry: from.host().to_owned(), reason }),
            (sent, _) => sent,
        }
    }

    async fn upload(&self, blob: &Descriptor, content: Content<'_>) -> Result<()> {
        let place = self.begin_upload(blob).await?;
        let make = || {
            let body = match content {
                Content::Bytes(bytes) => reqwest::Body::from(bytes.to_vec()),
                Content::File(path) => {
                    let file = tokio::fs::File::from_std(fs::File::open(path)?.into_parts().0);
                    reqwest::Body::wrap_stream(futures::stream::try_unfold(file, next_piece))
                }
            };
            Ok(self.put_upload(&place, blob).body(body))
        };
        self.send_body(&format!("a push of {}", blob.digest), &make, true).await.map(drop)
    }

    fn put_upload(&self, place: &str, blob: &Descriptor) -> RequestBuilder {
        let request = self.http.request(Method::PUT, place).header(CONTENT_LENGTH, blob.size);
        // Slower than this is as good as stalled.
        let bound = CALL + Duration::from_secs(blob.size / (128 << 10));
        request.header(CONTENT_TYPE, "application/octet-stream").timeout(bound)
    }

    /// Where the bytes of a blob go.
    async fn begin_upload(&self, blob: &Descriptor) -> Result<String> {
        let what = format!("a push of {}", blob.digest);
        let url = self.url("blobs/uploads/");
        let begin = || Ok(self.http.post(&url).timeout(CALL).header(CONTENT_LENGTH, 0));
        let begun = self.send(&what, &begin).await?;
        let place = begun.headers().get(LOCATION).and_then(|h| h.to_str().ok()).unwrap_or_default();
        let place = match place {
            path if path.starts_with('/') => {
                let origin = reqwest::Url::parse(&self.base).map(|u| u.origin().ascii_serialization());
                format!("{}{path}", origin.unwrap_or_else(|_| self.base.clone()))
            }
            whole => whole.to_owned(),
        };
        let origin = |url: &str| reqwest::Url::parse(url).ok().map(|url| url.origin());
        if origin(&place) != origin(&self.base) {
            return Err(OciError::Bad(format!("{} takes its uploads elsewhere", self.host())));
        }
        let joint = if place.contains('?') { '&' } else { '?' };
        Ok(format!("{place}{joint}digest={}", blob.digest.as_str().replace(':', "%3A")))
    }
}

/// The next piece of a file that is sent.
async fn next_piece(mut file: tokio::fs::File) -> std::io::Result<Option<(Bytes, tokio::fs::File)>> {
    let mut piece = BytesMut::with_capacity(PIECE_BYTES);
    let read = file.read_buf(&mut piece).await?;
    Ok((read > 0).then(|| (piece.freeze(), file)))
}

/// A blob between two registries.
struct Passing {
    answer: Response,
    hasher: Hasher,
    /// Bytes to come.
    left: u64,
    digest: Digest,
    /// Why it could not be passed on.
    broken: Arc<Mutex<Option<String>>>,
}

impl Passing {
    async fn next(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        let stop = |this: &Self, why: String| {
            *this.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
            Err(std::io::Error::other(why))
        };
        if self.left == 0 {
            return Ok(None);
        }
        let piece = match tokio::time::timeout(STALL, self.answer.chunk()).await {
            Err(_) => return stop(&self, "nothing came for a minute".into()),
            Ok(Err(error)) => return stop(&self, net::chain(&error)),
            Ok(Ok(None)) => {
                let why = format!("{} ended {} bytes too early", self.digest, self.left);
                return stop(&self, why);
            }
            Ok(Ok(Some(piece))) => piece,
        };
        self.hasher.update(&piece);
        match self.left.checked_sub(piece.len() as u64) {
            None => return stop(&self, format!("{} is larger than its manifest says", self.digest)),
            Some(left) => self.left = left,
        }
        if self.left == 0 && std::mem::take(&mut self.hasher).finish() != self.digest {
            let why = format!("it gave something else for {}", self.digest);
            return stop(&self, why);
        }
        Ok(Some((piece, self)))
    }
}

#[derive(Clone, Copy)]
enum Content<'a> {
    Bytes(&'a [u8]),
    File(&'a Path),
}

fn basic(login: &Credentials) -> String {
    use base64::Engine as _;
    let pair = format!("{}:{}", login.username, login.password);
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

/// A parameter of a challenge: `name="value"`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge.split_once(' ')?.1;
    while let Some((key, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim().trim_start_matches(',').trim().eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = next;
    }
    None
}

/// The address in `<…>; rel="next"`.
fn next_page(link: &str) -> Option<String> {
    let (address, rest) = link.strip_prefix('<')?.split_once('>')?;
    rest.contains("next").then(|| address.to_owned())
}

pub fn hash_file(path: &Path) -> std::io::Result<Digest> {
    use std::io::Read as _;
    let (mut file, mut hasher, mut buffer) = (fs::File::open(path)?, Hasher::default(), vec![0; 256 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// An image as people write it, apart: registry, path.
pub fn split_image(image: &str) -> (String, String) {
    const HUB: &str = "registry-1.docker.io";
    let (host, path) = match image.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path.to_owned()),
        _ => ("docker.io", image.to_owned()),
    };
    match host {
        "docker.io" | "index.docker.io" if path.contains('/') => (HUB.to_owned(), path),
        "docker.io" | "index.docker.io" => (HUB.to_owned(), format!("library/{path}")),
        host => (host.to_owned(), path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers requests one after the other: what it gives for a blob, and whether a blob came to an end.
    async fn registry(blob: &'static [u8], says: usize) -> (String, Arc<Mutex<Vec<Vec<u8>>>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let came = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&came);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut seen = Vec::new();
                let head = loop {
                    if stream.read_buf(&mut seen).await.unwrap_or(0) == 0 {
                        break None;
                    }
                    if let Some(at) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                        break Some((String::from_utf8_lossy(&seen[..at]).into_owned(), at + 4));
                    }
                };
                let Some((head, at)) = head else { continue };
                let answer = match head.split(' ').next() {
                    Some("POST") => {
                        "HTTP/1.1 202 A\r\nlocation: /up\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into()
                    }
                    Some("GET") => format!("HTTP/1.1 200 A\r\ncontent-length: {says}\r\nconnection: close\r\n\r\n"),
                    _ => {
                        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                        let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or(0);
                        let mut body = seen.split_off(at);
                        while body.len() < length && stream.read_buf(&mut body).await.unwrap_or(0) > 0 {}
                        if body.len() == length {
                            kept.lock().unwrap_or_else(PoisonError::into_inner).push(body);
                        }
                        "HTTP/1.1 201 A\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into()
                    }
                };
                let _ = stream.write_all(answer.as_bytes()).await;
                if head.starts_with("GET") {
                    let _ = stream.write_all(blob).await;
                }
                let _ = stream.shutdown().await;
            }
        });
        (url, came)
    }

    #[tokio::test]
    async fn what_passes_through_gets_no_end_unless_it_is_what_was_named() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remote = |url: &str| Remote::new(url, "it", Auth::Login(None), None).expect("a client");
        let good = Descriptor { media_type: "x".into(), digest: Digest::of(b"0123456789"), size: 10 };
        for (gives, says, told) in [
            (&b"0123456789"[..], 10, None),
            (b"9876543210", 10, Some("something else")),
            (b"01234", 5, Some("5 bytes too early")),
            (b"01234", 10, Some("")),
            (b"0123456789ab", 12, Some("larger")),
        ] {
            let (from, _) = registry(gives, says).await;
            let (to, came) = registry(b"", 0).await;
            let done = remote(&to).pass_blob(&good, &remote(&from)).await;
            let came = came.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match told {
                None => {
                    done.expect("it passes");
                    assert_eq!(came, [gives]);
                }
                Some(told) => {
                    let error = done.expect_err("it does not");
                    assert!(error.is_transient() && error.to_string().contains(told), "{error}");
                    assert!(error.to_string().contains(from.trim_start_matches("http://")), "{error}");
                    assert!(came.is_empty(), "{came:?}");
                }
            }
        }
    }

    #[test]
    fn challenges_are_read() {
        let text = r#"Bearer realm="https://auth.example/token",service="registry",scope="repository:a/b:pull,push""#;
        assert_eq!(parameter(text, "realm").as_deref(), Some("https://auth.example/token"));
        assert_eq!(parameter(text, "service").as_deref(), Some("registry"));
        assert_eq!(parameter(text, "scope").as_deref(), Some("repository:a/b:pull,push"));
        assert_eq!(parameter(text, "error"), None);
        assert_eq!(parameter("Bearer realm=x, service=y", "service").as_deref(), Some("y"));
        for odd in ["", "Bearer", "Bearer =", "Bearer realm=\"", "Bearer ,,=,\"="] {
            let _ = parameter(odd, "realm");
        }
    }

    #[test]
    fn short_names_are_those_of_docker_hub() {
        let table = [
            ("nginx", "registry-1.docker.io", "library/nginx"),
            ("grafana/grafana", "registry-1.docker.io", "grafana/grafana"),
            ("docker.io/library/nginx", "registry-1.docker.io", "library/nginx"),
            ("ghcr.io/a/b", "ghcr.io", "a/b"),
            ("127.0.0.1:5000/x", "127.0.0.1:5000", "x"),
            ("localhost/x", "localhost", "x"),
        ];
        for (image, host, path) in table {
            assert_eq!(split_image(image), (host.to_owned(), path.to_owned()), "{image}");
        }
    }
}
