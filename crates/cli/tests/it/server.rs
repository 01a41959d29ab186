//! A server that answers as a test says, and remembers what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: String,
    /// With its query.
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

pub(crate) enum Reply {
    Json(u16, serde_json::Value),
    /// With these headers more.
    JsonWith(u16, Vec<(&'static str, String)>, serde_json::Value),
    Bytes(Vec<u8>),
    /// A stream of events that is cut after these bytes.
    Events(String),
    /// A stream of events that stays open.
    EventsOpen(String),
    /// The connection closes without an answer.
    Cut,
}

type Handler = dyn Fn(&Request, usize) -> Reply + Send + Sync;

pub(crate) struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// The handler gets the request and how many came before it.
    pub(crate) async fn start(handler: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (handler, all): (Arc<Handler>, _) = (Arc::new(handler), seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, handler.clone(), all.clone()));
            }
        });
        Self { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("lock").clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().iter().map(Request::line).collect()
    }
}

async fn serve(mut stream: TcpStream, handler: Arc<Handler>, seen: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = read(&mut stream).await else { return };
    let reply = {
        let mut seen = seen.lock().expect("lock");
        seen.push(request.clone());
        handler(&request, seen.len() - 1)
    };
    let head = |status: u16, kind: &str, more: &str| {
        format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}\r\n")
    };
    let whole = |status, kind, more: &[(&str, String)], body: &[u8]| {
        let mut lines = format!("content-length: {}\r\n", body.len());
        for (name, value) in more {
            lines.push_str(&format!("{name}: {value}\r\n"));
        }
        [head(status, kind, &lines).as_bytes(), body].concat()
    };
    let (bytes, stay) = match reply {
        Reply::Cut => return,
        Reply::Json(status, value) => (whole(status, "application/json", &[], value.to_string().as_bytes()), false),
        Reply::JsonWith(status, more, value) => {
            (whole(status, "application/json", &more, value.to_string().as_bytes()), false)
        }
        Reply::Bytes(bytes) => (whole(200, "application/octet-stream", &[], &bytes), false),
        Reply::Events(text) => {
            (chunked(&head(200, "text/event-stream", "transfer-encoding: chunked\r\n"), &text), false)
        }
        Reply::EventsOpen(text) => {
            (chunked(&head(200, "text/event-stream", "transfer-encoding: chunked\r\n"), &text), true)
        }
    };
    let _ = stream.write_all(&bytes).await;
    if stay {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let _ = stream.shutdown().await;
}

fn chunked(head: &str, text: &str) -> Vec<u8> {
    format!("{head}{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request { method, path, headers, body })
}
