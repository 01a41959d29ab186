//! The floor of parking: an axum handler that holds a request and does nothing else, and clients that hold it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::routing::post;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use crate::drone;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) url: String,
    pub(crate) count: usize,
    pub(crate) ca_file: Option<std::path::PathBuf>,
}

/// Serves a handler that holds every request; says where on its first line. With files: over TLS.
pub(crate) async fn serve(files: Option<(String, String)>) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new().route(
        "/x",
        post(|body: axum::body::Bytes| async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            body
        }),
    );
    println!("{address}");
    let Some((cert, key)) = files else {
        axum::serve(listener, app).await?;
        return Ok(());
    };
    let certs = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(certs, key)?;
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    axum::serve(Tls { listener, acceptor, handshakes: JoinSet::new() }, app).await?;
    Ok(())
}

/// Handshakes go on beside each other: in a row they would not keep up with ten thousand callers.
struct Tls {
    listener: TcpListener,
    acceptor: tokio_rustls::TlsAcceptor,
    handshakes: JoinSet<std::io::Result<(TlsStream<TcpStream>, std::net::SocketAddr)>>,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(done) = self.handshakes.join_next() => {
                    if let Ok(Ok(accepted)) = done {
                        return accepted;
                    }
                }
                Ok((stream, peer)) = self.listener.accept() => {
                    let handshake = self.acceptor.accept(stream);
                    self.handshakes.spawn(async move { Ok((handshake.await?, peer)) });
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Holds so many requests, each of the size of a poll.
pub(crate) async fn hold(goal: Goal) -> anyhow::Result<()> {
    let https = drone::clients(4, goal.ca_file.as_deref())?;
    let body = "x".repeat(600);
    for n in 0..goal.count {
        let request = https[n % https.len()].post(&goal.url).body(body.clone());
        tokio::spawn(async move {
            // A connection that was not taken is asked for again.
            while let Some(again) = request.try_clone() {
                if again.send().await.is_ok() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        if n % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    loop {
        println!("{}", serde_json::to_string(&crate::herd::Said::default())?);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A bare server's process, and where it listens.
pub(crate) async fn start(
    files: Option<(&std::path::Path, &std::path::Path)>,
) -> anyhow::Result<(tokio::process::Child, String)> {
    use tokio::io::AsyncBufReadExt as _;
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.arg("bare").stdout(std::process::Stdio::piped()).kill_on_drop(true);
    if let Some((cert, key)) = files {
        command.arg(cert).arg(key);
    }
    let mut child = command.spawn()?;
    let mut lines = tokio::io::BufReader::new(child.stdout.take().context("its output")?).lines();
    let address = lines.next_line().await?.context("its address")?;
    Ok((child, address))
}
