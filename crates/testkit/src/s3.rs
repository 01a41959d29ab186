//! An S3 server on loopback, over a directory, with real checks of signatures.

use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

/// Lives as long as the runtime that started it.
#[derive(Debug)]
pub struct S3 {
    /// `http://127.0.0.1:PORT`.
    pub endpoint: String,
    pub bucket: &'static str,
    pub access_key_id: &'static str,
    pub secret_access_key: &'static str,
    /// Where the objects lie.
    pub dir: tempfile::TempDir,
}

/// Starts a server with one bucket; call it inside a runtime.
pub async fn s3() -> S3 {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (bucket, access_key_id, secret_access_key) = ("ferry", "AKIATESTKIT", "a-secret-of-the-tests");
    fs_err::create_dir(dir.path().join(bucket)).expect("a bucket");
    let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(dir.path()).expect("a file system"));
    builder.set_auth(SimpleAuth::from_single(access_key_id, secret_access_key));
    let service = builder.build();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    S3 { endpoint, bucket, access_key_id, secret_access_key, dir }
}
