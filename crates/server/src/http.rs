//! Listeners: plain or TLS, with request ids, logs of every request, and a shutdown that ends held requests.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use api::ErrorCode;
use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::{Listener, ListenerExt as _};
use gate::Gate;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::telemetry::Spans;
use crate::{AppState, config, docs};

pub(crate) async fn bind(address: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("can't listen on {address}"))
}

pub(crate) fn tls_config(tls: &config::Tls) -> anyhow::Result<Option<Arc<rustls::ServerConfig>>> {
    if tls.cert_file.as_os_str().is_empty() {
        return Ok(None);
    }
    let cert_name = || tls.cert_file.display().to_string();
    let certs = CertificateDer::pem_file_iter(&tls.cert_file)
        .with_context(cert_name)?
        .collect::<Result<Vec<_>, _>>()
        .with_context(cert_name)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key_file).with_context(|| tls.key_file.display().to_string())?;
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(certs, key)?;
    Ok(Some(Arc::new(config)))
}

/// How long a connection is kept on which nothing happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Without a request, or with half of a head.
    pub(crate) idle: Duration,
    /// With an answer that nobody reads.
    pub(crate) stall: Duration,
}

/// Serves until told to stop; then no new connection is taken, and open requests may finish.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    tls: Option<Arc<rustls::ServerConfig>>,
    patience: Patience,
    gate: Gate,
) {
    match tls {
        None => {
            let listener = listener.tap_io(|stream| {
                let _ = stream.set_nodelay(true);
            });
            serve_on(listener, app, patience, gate).await;
        }
        Some(config) => serve_on(TlsListener::start(listener, config, gate.clone()), app, patience, gate).await,
    }
}

/// `axum::serve`, and a bound on connections that bring nothing: their other end may have gone without a word.
async fn serve_on(mut listener: impl Listener<Addr = SocketAddr>, app: Router, patience: Patience, gate: Gate) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience.idle);
    let connections = GracefulShutdown::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gate.cancelled() => break,
        };
        let connection = http.serve_connection(
            TokioIo::new(Reading::new(stream, patience.stall)),
            TowerToHyperService::new(FromPeer { app: app.clone(), peer: Peer(peer.ip()) }),
        );
        let connection = connections.watch(connection);
        gate.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke");
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) std::net::IpAddr);

/// Tells handlers who is at the other end of the connection.
#[derive(Clone)]
struct FromPeer {
    app: Router,
    peer: Peer,
}

impl<B> tower::Service<http::Request<B>> for FromPeer
where
    Router: tower::Service<http::Request<B>>,
{
    type Response = <Router as tower::Service<http::Request<B>>>::Response;
    type Error = <Router as tower::Service<http::Request<B>>>::Error;
    type Future = <Router as tower::Service<http::Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        tower::Service::poll_ready(&mut self.app, cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        tower::Service::call(&mut self.app, request)
    }
}

/// A connection whose other end must go on reading.
struct Reading<S> {
    stream: S,
    stall: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Reading<S> {
    fn new(stream: S, stall: Duration) -> Self {
        Self { stream, stall, stalled: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<std::io::Result<T>>) -> Poll<std::io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let timer = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.stall)));
        timer.as_mut().poll(cx).map(|()| Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Reading<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Reading<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.watch(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.watch(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(cx);
        this.watch(cx, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// Handshakes run beside the accept loop, so that a slow client holds up nobody.
struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    local: SocketAddr,
}

const HANDSHAKES: usize = 512;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl TlsListener {
    fn start(listener: TcpListener, config: Arc<rustls::ServerConfig>, gate: Gate) -> Self {
        let local = listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0)));
        let (send, ready) = mpsc::channel(HANDSHAKES);
        let acceptor = TlsAcceptor::from(config);
        let handshakes = gate.clone();
        gate.spawn_until_stopped(async move {
            loop {
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let (acceptor, send) = (acceptor.clone(), send.clone());
                handshakes.spawn_until_stopped(async move {
                    let _ = stream.set_nodelay(true);
                    match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => {
                            let _ = send.send((stream, peer)).await;
                        }
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
                    }
                });
            }
        });
        Self { ready, local }
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            // The accept loop has ended: wait for the shutdown.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.local)
    }
}

/// Which API a request came to, and who counts it.
#[derive(Clone)]
struct Watch {
    api: &'static str,
    metrics: Metrics,
    spans: Spans,
}

/// What is done around every request of an API.
pub(crate) fn watched(app: Router, api: &'static str, state: &AppState) -> Router {
    // Runners ask all the time, and for nothing of their own: they are counted, not traced.
    let spans = if api == "control" { state.spans.clone() } else { Spans::default() };
    let watch = Watch { api, metrics: state.metrics.clone(), spans };
    app.layer(axum::middleware::from_fn_with_state(watch, around))
}

/// Gives every request an id and a place in a trace, counts it, logs it once, and writes the bodies of errors.
async fn around(State(watch): State<Watch>, request: Request, next: Next) -> Response {
    let id = format!("req{:016x}", conductor::random_u128() as u64);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|p| p.as_str().to_owned());
    let path = route.clone().unwrap_or_else(|| request.uri().path().to_owned());
    let started = Instant::now();
    let span = watch.spans.request(&request);
    let mut response = if is_utf8(request.uri()) {
        conductor::trace::within(span.context(), next.run(request)).await
    } else {
        ApiError::invalid("the path or the query is not valid UTF-8").into_response()
    };
    let (took, status) = (started.elapsed(), response.status());
    let duration_ms = took.as_millis() as u64;
    watch.metrics.answered(watch.api, &method, route.as_deref(), status, took);
    watch.spans.answered(span, &method, route.as_deref(), status, &id);
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        if error.code.status() >= 500 {
            let internal = error.internal.as_deref().unwrap_or_default();
            tracing::error!(request_id = id, %method, path, code = error.code.as_str(), internal, "request failed");
        }
        let headers = std::mem::take(response.headers_mut());
        response = (status, axum::Json(error.body(&id))).into_response();
        response.headers_mut().extend(headers);
    } else if status == StatusCode::METHOD_NOT_ALLOWED && !response.headers().contains_key(CONTENT_TYPE) {
        let error = ApiError::new(ErrorCode::InvalidRequest, format!("{method} is not a method of this path"));
        response = (status, axum::Json(error.body(&id))).into_response();
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(api::headers::REQUEST_ID, value);
    }
    tracing::debug!(request_id = id, %method, path, status = status.as_u16(), duration_ms, "request");
    response
}

/// Whether path and query are UTF-8 once their `%XX` are decoded.
fn is_utf8(uri: &http::Uri) -> bool {
    let text = uri.path_and_query().map_or("", |p| p.as_str());
    if !text.contains('%') {
        return true;
    }
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let [first, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|b| char::from(*b).to_digit(16));
        (decoded, rest) = match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                (decoded, &tail[2..])
            }
            _ => {
                decoded.push(*first);
                (decoded, tail)
            }
        };
    }
    std::str::from_utf8(&decoded).is_ok()
}

/// What both APIs have around their routes: the documents, the bound on ordinary bodies, and a net for panics.
pub(crate) fn finish(routes: OpenApiRouter<AppState>, state: AppState) -> Router {
    let (router, document) = routes.split_for_parts();
    router
        .merge(docs::routes(document))
        .fallback(no_route)
        .layer(DefaultBodyLimit::max(state.config.limits.body_bytes))
        .layer(CatchPanicLayer::custom(docs::panicked))
        .with_state(state)
}

/// What unknown paths answer.
async fn no_route(uri: http::Uri) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("there is no route {}", uri.path())).hint("see /docs")
}
