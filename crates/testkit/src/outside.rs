//! What builds read from and write to outside of the system: a web server for files, and Debian's registry.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::system::{SOON, until};

/// A web server on loopback that hands out the files of a directory, and remembers what it was asked.
#[derive(Debug)]
pub struct Files {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Files {
    /// Serves until the test's process ends.
    pub fn serve(dir: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (dir, heard) = (dir.to_owned(), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let path = answer(stream, &dir).unwrap_or_else(|e| format!("? {e}"));
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(path);
            }
        });
        Self { address, asked }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The paths that someone asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(mut stream: TcpStream, dir: &Path) -> std::io::Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.len() < 64 << 10 {
        match stream.read(&mut buffer)? {
            0 => break,
            n => request.extend_from_slice(&buffer[..n]),
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let path = text.split(' ').nth(1).unwrap_or("?").to_owned();
    let (status, body) = match fs_err::read(dir.join(path.trim_start_matches('/'))) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(&body)?;
    Ok(path)
}

/// Debian's `docker-registry`, on loopback without TLS.
#[derive(Debug)]
pub struct DockerRegistry {
    process: Child,
    pub host: String,
    dir: PathBuf,
}

/// `ada:correct-horse`, as the registry reads it.
const LOGIN: &str = "ada:$2b$04$Qa9NPyw8mb6piO8Uyul5K.NrXqokUrOOVIHzA4n0Q8BZ3AYb8KS3O\n";

impl DockerRegistry {
    /// `locked` lets in nobody but `ada`, whose password is `correct-horse`.
    pub async fn start(dir: &Path, locked: bool) -> Self {
        fs_err::create_dir_all(dir).expect("a directory");
        // Free a moment ago, and nobody else is told this number.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let host = format!("127.0.0.1:{port}");
        fs_err::write(dir.join("htpasswd"), LOGIN).expect("a file");
        let auth = if locked {
            format!("auth:\n  htpasswd:\n    realm: tests\n    path: {}\n", dir.join("htpasswd").display())
        } else {
            String::new()
        };
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {host}\n{auth}",
            dir.join("data").display()
        );
        let file = dir.join("config.yml");
        fs_err::write(&file, config).expect("a file");
        let log = fs_err::File::create(dir.join("log")).expect("a log").into_parts().0;
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log)
            .spawn()
            .expect("docker-registry is needed: `scripts/apt-tools.sh` installs it");
        let registry = Self { process, host, dir: dir.to_owned() };
        until("the registry listens", SOON, async || {
            TcpStream::connect(&registry.host).map(|_| ()).map_err(|e| e.to_string())
        })
        .await;
        registry
    }

    /// Stops it, or lets it go on.
    pub fn signal(&self, signal: rustix::process::Signal) {
        crate::system::send(self.process.id() as i32, signal);
    }

    /// Where a blob is kept.
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        self.dir.join("data/docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data")
    }
}

impl DockerRegistry {
    /// What says that a repository has a blob.
    pub fn link(&self, repository: &str, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        self.dir.join("data/docker/registry/v2/repositories").join(repository).join("_layers/sha256").join(hex)
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
