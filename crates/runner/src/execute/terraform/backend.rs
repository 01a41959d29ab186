//! Terraform's `http` backend, served to this execution's child on loopback: states are opened and sealed here, and kept by the
//! control plane under the execution's epoch. Terraform itself holds no token of ours.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use bytes::Bytes;
use crash::crash_point;
use futures::TryStreamExt as _;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use model::deploy::LockInfo;
use model::{Digest, WorkspaceId};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::super::sealed::private_dir;
use tokio::task::JoinSet;

use crate::directory::ExecutionDir;
use crate::seal::reserve;
use crate::seal::vault::{Keeper, Lock, Plain, VaultError, named, private_file};

/// What a lock may say.
const LOCK_BYTES: usize = 64 << 10;
/// Of what is read from a file at once.
const READ_BYTES: usize = 256 << 10;
/// Of a state that the disk has no room for.
const MEMORY_BYTES_MAX: usize = 512 << 20;
/// How long an address may still be taken by one that is ending.
const BIND: Duration = Duration::from_secs(10);
const USER: &str = "ferry";

type Body = BoxBody<Bytes, std::io::Error>;

/// What became of a state that Terraform wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Saved {
    Kept,
    /// Kept beside the states: the lease was lost.
    Quarantined,
    Failed(String),
}

pub(crate) struct Backend {
    shared: Arc<Shared>,
    address: String,
    password: String,
    task: JoinHandle<()>,
}

struct Shared {
    keeper: Arc<Keeper>,
    dir: PathBuf,
    authorization: String,
    count: AtomicU64,
    /// One state is written at a time; who wants to know how it ended takes this too.
    writing: tokio::sync::Mutex<()>,
    last: Mutex<Option<(Saved, Plain)>>,
    /// Why a state went through memory.
    full: Mutex<Option<String>>,
    /// The execution that it serves; None for a person.
    execution: Option<ExecutionDir>,
    /// Who had the lock when it was asked for last.
    in_the_way: Mutex<Option<LockInfo>>,
}

impl Backend {
    /// The backend of an execution.
    pub(super) async fn of_execution(keeper: Arc<Keeper>, dir: &ExecutionDir) -> std::io::Result<Self> {
        let listener = bind(&keeper.workspace).await?;
        let password = keeper.vault.derive(&format!("state-backend|{}", keeper.workspace));
        Self::begin(keeper, &private_dir(dir), listener, password, Some(dir.clone()))
    }

    /// Begins to serve. Plain states stand in `dir`, which only the runner's user may read.
    pub(crate) fn start(
        keeper: Arc<Keeper>,
        dir: &Path,
        listener: TcpListener,
        password: String,
    ) -> std::io::Result<Self> {
        Self::begin(keeper, dir, listener, password, None)
    }

    fn begin(
        keeper: Arc<Keeper>,
        dir: &Path,
        listener: TcpListener,
        password: String,
        execution: Option<ExecutionDir>,
    ) -> std::io::Result<Self> {
        let address = format!("http://{}", listener.local_addr()?);
        let authorization = format!("Basic {}", B64.encode(format!("{USER}:{password}")));
        let shared = Arc::new(Shared {
            keeper,
            dir: dir.to_owned(),
            authorization,
            count: AtomicU64::new(0),
            writing: tokio::sync::Mutex::new(()),
            last: Mutex::new(None),
            full: Mutex::new(None),
            execution,
            in_the_way: Mutex::new(None),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { shared, address, password, task })
    }

    /// What `terraform init -backend-config` reads.
    pub(crate) fn config(&self) -> String {
        let Self { address, password, .. } = self;
        format!(
            "address = \"{address}/state\"\nlock_address = \"{address}/lock\"\nlock_method = \"POST\"\nunlock_address = \"{address}/lock\"\nunlock_method = \"DELETE\"\nusername = \"{USER}\"\npassword = \"{password}\"\nretry_max = 1\n"
        )
    }

    /// How the last write ended, and what was written; waits for one that is on its way, whoever asked for it.
    pub(crate) async fn last(&self) -> Option<(Saved, Plain)> {
        let _done = self.shared.writing.lock().await;
        self.shared.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why a state went through memory, where one did.
    pub(crate) fn full(&self) -> Option<String> {
        self.shared.full.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Who holds the lock that Terraform did not get. Its own message names itself instead.
    pub(crate) fn in_the_way(&self) -> Option<String> {
        let held = self.shared.in_the_way.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let LockInfo { who, operation, created, .. } = held;
        Some(format!("the state is locked by {who} ({operation}, since {created})"))
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A plan file holds the address and the password of the backend that it was made with, and the apply uses those: so both are the
/// same for every execution on a workspace. Only one works on it at a time.
async fn bind(workspace: &WorkspaceId) -> std::io::Result<TcpListener> {
    let named = Digest::of(format!("state-backend|{workspace}").as_bytes());
    let byte = |at: usize| u8::from_str_radix(&named.hex()[2 * at..2 * at + 2], 16).unwrap_or_default();
    let ip = Ipv4Addr::new(127, 64 + byte(0) % 64, byte(1), 1 + byte(2) % 254);
    let port = 20_000 + u16::from_be_bytes([byte(3), byte(4)]) % 12_000;
    let until = tokio::time::Instant::now() + BIND;
    loop {
        match TcpListener::bind((ip, port)).await {
            Err(error) if tokio::time::Instant::now() > until => {
                let text = format!(
                    "{ip}:{port} is taken ({error}): another execution still works on this state, or a program on this machine listens there (`ss -ltnp`)"
                );
                return Err(std::io::Error::other(text));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            Ok(listener) => return Ok(listener),
        }
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // They end with the backend. A write has a task of its own, which `last` waits for.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let shared = Arc::clone(&shared);
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            let service = service_fn(|request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(answer(&shared, request).await) }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

async fn answer(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    let known =
        request.headers().get(AUTHORIZATION).is_some_and(|value| value.as_bytes() == shared.authorization.as_bytes());
    if !known {
        return text(StatusCode::UNAUTHORIZED, "this backend serves one execution");
    }
    let path = request.uri().path().to_owned();
    let answered = match (request.method().clone(), path.as_str()) {
        (Method::GET, "/state") => read(shared).await,
        (Method::POST, "/state") => return detached(shared, request).await,
        (Method::POST, "/lock") => lock(shared, request).await,
        (Method::DELETE, "/lock") => unlock(shared, request).await,
        (Method::DELETE, "/state") => Ok(text(StatusCode::CONFLICT, "states are kept: none is deleted")),
        _ => Ok(text(StatusCode::NOT_FOUND, "there is /state and /lock")),
    };
    answered.unwrap_or_else(|error| refused(&error))
}

fn refused(error: &VaultError) -> Response<Body> {
    tracing::warn!(%error, "the state backend");
    let lost = matches!(error, VaultError::Call(call) if !call.is_transient());
    let status = if lost { StatusCode::CONFLICT } else { StatusCode::INTERNAL_SERVER_ERROR };
    text(status, error.to_string())
}

async fn read(shared: &Shared) -> Result<Response<Body>, VaultError> {
    let n = shared.count.fetch_add(1, Ordering::Relaxed);
    let file = shared.dir.join(format!("read-{n}.json"));
    if shared.keeper.load(&file).await?.is_none() {
        return Ok(text(StatusCode::NOT_FOUND, ""));
    }
    let opened = tokio::fs::File::open(&file).await?;
    // Unlinked: it is gone when it was read.
    let _ = fs_err::remove_file(&file);
    let stream = tokio_util::io::ReaderStream::with_capacity(opened, READ_BYTES).map_ok(Frame::data);
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(stream)));
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Writes a state to its end, though who asked for it may be killed meanwhile.
async fn detached(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    let lock_id = request.uri().query().and_then(|query| {
        let id = query.split('&').find_map(|pair| pair.strip_prefix("ID="))?;
        Some(id.to_owned())
    });
    let n = shared.count.fetch_add(1, Ordering::Relaxed);
    let file = shared.dir.join(format!("state-{n}.json"));
    let plain = match receive(request, &file).await {
        Ok((plain, full)) => {
            if full.is_some() {
                *shared.full.lock().unwrap_or_else(PoisonError::into_inner) = full;
            }
            plain
        }
        Err(error) => {
            // Terraform writes it beside its module now: the room for that was set aside.
            shared.execution.iter().for_each(reserve::release);
            return refused(&error);
        }
    };
    let shared = Arc::clone(shared);
    let task = tokio::spawn(async move {
        let _writing = shared.writing.lock().await;
        crash_point!("executor.before_state");
        let saved = shared.keeper.save(plain.clone(), lock_id.as_deref().unwrap_or_default(), "").await;
        crash_point!("executor.state_saved");
        let (saved, response) = match saved {
            Ok(answer) if answer.quarantined => {
                let kept = "this execution lost its lease: the state is quarantined and is not the current one";
                (Saved::Quarantined, text(StatusCode::CONFLICT, kept))
            }
            Ok(_) => (Saved::Kept, text(StatusCode::OK, "")),
            Err(error) => {
                // Terraform writes it beside its module now: the room for that was set aside.
                shared.execution.iter().for_each(reserve::release);
                (Saved::Failed(error.to_string()), refused(&error))
            }
        };
        let mut last = shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, Plain::File(old))) = last.replace((saved, plain)) {
            let _ = fs_err::remove_file(old);
        }
        response
    });
    task.await.unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "the executor is going down"))
}

/// Takes a state in: into the file, or into memory where the disk does not take it. Says which disk that was.
async fn receive(request: Request<Incoming>, file: &Path) -> Result<(Plain, Option<String>), VaultError> {
    let mut body = request.into_body();
    let mut taken = Taken::new(file);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(std::io::Error::other)?;
        if let Some(data) = frame.data_ref() {
            taken.add(data)?;
        }
    }
    Ok(taken.done())
}

/// A state that is coming in.
struct Taken {
    path: PathBuf,
    file: Option<std::fs::File>,
    written: usize,
    memory: Vec<u8>,
    full: Option<String>,
}

impl Taken {
    fn new(path: &Path) -> Self {
        let (file, full) = match private_file(path) {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(named(path, &error))),
        };
        Self { path: path.to_owned(), file, written: 0, memory: Vec::new(), full }
    }

    fn add(&mut self, data: &[u8]) -> std::io::Result<()> {
        if let Some(file) = &mut self.file {
            match std::io::Write::write_all(file, data) {
                Ok(()) => {
                    self.written += data.len();
                    return Ok(());
                }
                Err(error) => self.move_to_memory(&error)?,
            }
        }
        if self.memory.len() + data.len() > MEMORY_BYTES_MAX {
            let why = self.full.clone().unwrap_or_default();
            return Err(std::io::Error::other(format!("{why}, and the state is too large to go through memory")));
        }
        self.memory.extend_from_slice(data);
        Ok(())
    }

    /// What is in the file comes along, and its room is free again.
    fn move_to_memory(&mut self, why: &std::io::Error) -> std::io::Result<()> {
        self.file = None;
        self.full = Some(named(&self.path, why));
        self.memory = fs_err::read(&self.path)?;
        self.memory.truncate(self.written);
        fs_err::remove_file(&self.path)
    }

    fn done(self) -> (Plain, Option<String>) {
        match self.file {
            Some(_) => (Plain::File(self.path), None),
            None => (Plain::Memory(self.memory.into()), self.full),
        }
    }
}

async fn lock_info(request: Request<Incoming>) -> Result<LockInfo, VaultError> {
    let body = http_body_util::Limited::new(request.into_body(), LOCK_BYTES).collect().await;
    let body = body.map_err(|_| VaultError::Bad("a lock is a small JSON document".into()))?.to_bytes();
    serde_json::from_slice(&body).map_err(|e| VaultError::Bad(format!("the lock can't be read: {e}")))
}

async fn lock(shared: &Shared, request: Request<Incoming>) -> Result<Response<Body>, VaultError> {
    let info = lock_info(request).await?;
    let taken = shared.keeper.lock(info).await?;
    crash_point!("executor.state_locked");
    *shared.in_the_way.lock().unwrap_or_else(PoisonError::into_inner) = match &taken {
        Lock::Taken => None,
        Lock::HeldBy(holder) => holder.clone(),
    };
    Ok(held(taken))
}

async fn unlock(shared: &Shared, request: Request<Incoming>) -> Result<Response<Body>, VaultError> {
    let id = lock_info(request).await?.id;
    crash_point!("executor.before_state_unlock");
    Ok(held(shared.keeper.unlock(&id).await?))
}

/// 423 with the holder, as Terraform expects it.
fn held(lock: Lock) -> Response<Body> {
    match lock {
        Lock::Taken => text(StatusCode::OK, ""),
        Lock::HeldBy(holder) => text(StatusCode::LOCKED, serde_json::to_vec(&holder).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_the_disk_does_not_take_goes_through_memory() {
        let dir = tempfile::tempdir().expect("dir");
        let mut good = Taken::new(&dir.path().join("state-0.json"));
        good.add(b"one").expect("taken");
        assert!(matches!(good.done(), (Plain::File(_), None)));
        // A disk that takes the first part, and then nothing more.
        let path = dir.path().join("state-1.json");
        let mut taken = Taken::new(&path);
        taken.add(b"one, ").expect("taken");
        taken.file = Some(std::fs::File::options().write(true).open("/dev/full").expect("/dev/full"));
        taken.add(b"two, ").expect("taken");
        taken.add(b"three").expect("taken");
        assert!(!path.exists(), "no piece of it takes room");
        let (Plain::Memory(bytes), Some(why)) = taken.done() else { panic!("it is in memory") };
        assert_eq!(bytes, "one, two, three");
        assert!(why.contains("the disk of") && why.contains("is full"), "{why}");
        let nowhere = Taken::new(&dir.path().join("gone/state-2.json"));
        assert!(matches!(nowhere.done(), (Plain::Memory(_), Some(_))));
    }
}
