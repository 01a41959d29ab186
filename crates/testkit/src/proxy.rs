//! A tiny HTTP proxy: it forwards plain requests and CONNECT tunnels, and remembers what it was asked for. Every name leads
//! to this machine, so a request for a host that does not exist can only have come through here.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Ends with the test's process.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let proxy = Self { url, seen: Arc::default() };
        let own = proxy.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream));
            }
        });
        proxy
    }

    /// The first lines of all requests.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One request, or one tunnel; none when it can't be read.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let first = head.lines().next()?.to_owned();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(first.clone());
        let mut words = first.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let authority = target.strip_prefix("http://").unwrap_or(target);
        let authority = authority.split('/').next()?;
        let port: u16 = authority.rsplit(':').next()?.parse().ok()?;
        let mut upstream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        if method == "CONNECT" {
            (&stream).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
            let back = (upstream.try_clone().ok()?, stream.try_clone().ok()?);
            std::thread::spawn(move || copy(back.0, back.1));
            copy(reader, upstream);
            return Some(());
        }
        // One request for one upstream connection: it ends with the answer.
        let path = target.splitn(4, '/').nth(3).unwrap_or_default();
        let rest = head.split_once("\r\n")?.1.replace("Connection: keep-alive\r\n", "");
        let length = header(&rest, "content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        upstream.write_all(format!("{method} /{path} HTTP/1.1\r\nConnection: close\r\n{rest}").as_bytes()).ok()?;
        upstream.write_all(&body).ok()?;
        copy(upstream, stream);
        Some(())
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().filter_map(|l| l.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
}

fn copy(mut from: impl std::io::Read, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}
