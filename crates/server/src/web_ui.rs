//! Owns the dashboard's files: they are in the binary, and a browser gets them compressed.
//! Browsers ask for them, on the Control listener.
//! No data: pages ask the Control API for that. A build without the dashboard says how to build it.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use axum::Router;
use axum::extract::Path;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rust_embed::RustEmbed;

use crate::AppState;

/// What `make ui` has built; in a debug build, what lies there now.
#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Files;

/// Scripts, styles and answers come from here alone, and no text becomes a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const INDEX: &str = "index.html";

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Ferry</title><h1>The dashboard is not in this build</h1><p>Build it with <code>make ui</code>, then build <code>ferry</code> again. The CLI and the API work without it.</p><p><a href=\"/account\">Your account</a></p></html>";

/// Whether this build has the dashboard.
pub(crate) fn is_there() -> bool {
    Files::get(INDEX).is_some()
}

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/", get(page))
        .route("/o", get(page))
        .route("/o/{*path}", get(page))
        .route("/assets/{*path}", get(asset))
        .route("/favicon.svg", get(|headers: HeaderMap| async move { file("favicon.svg", &headers) }))
}

/// Every page is the same document; which one it is follows from its address.
async fn page(headers: HeaderMap) -> Response {
    if is_there() {
        return file(INDEX, &headers);
    }
    guarded(Html(NOT_BUILT).into_response())
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    file(&format!("assets/{path}"), &headers)
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "map" => "application/json",
        _ => "application/octet-stream",
    }
}

fn file(path: &str, asked: &HeaderMap) -> Response {
    let Some(found) = Files::get(path) else { return StatusCode::NOT_FOUND.into_response() };
    let hash: String = found.metadata.sha256_hash().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{hash}\"");
    // The names of assets change with what is in them.
    let cache = if path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let packed = text(ACCEPT_ENCODING).contains("gzip");
    let mut response = if text(IF_NONE_MATCH).contains(&tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = if packed { compressed(&hash, &found.data) } else { Bytes::from(found.data.into_owned()) };
        body.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(path)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if packed && response.status() == StatusCode::OK {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    guarded(response)
}

/// Compressed once; there are few files.
fn compressed(hash: &str, data: &[u8]) -> Bytes {
    static PACKED: LazyLock<Mutex<HashMap<String, Arc<Bytes>>>> = LazyLock::new(Mutex::default);
    let known = PACKED.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned();
    if let Some(known) = known {
        return Bytes::clone(&known);
    }
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packer.write_all(data).and_then(|()| packer.finish());
    let packed = Bytes::from(packed.unwrap_or_else(|_| data.to_vec()));
    PACKED.lock().unwrap_or_else(PoisonError::into_inner).insert(hash.to_owned(), Arc::new(packed.clone()));
    packed
}
