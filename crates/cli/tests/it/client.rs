//! `api::client`: retries, paging, live streams.

use api::ErrorCode;
use api::client::{Client, ClientError, Options, Tail};
use api::control::CreateApp;
use futures::StreamExt as _;
use model::LogStreamId;
use serde_json::{Value, json};

use crate::server::{Reply, Server};

const LOG: &str = "log0123456789abcdefghijklm";

fn client(url: &str) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new(url, Some("secret".into()), Some("org0123456789abcdefghijklm".into()), &Options::default())
        .expect("client")
}

pub(crate) fn app(name: &str) -> Value {
    json!({
        "id": "app0123456789abcdefghijklm", "org_id": "org0123456789abcdefghijklm", "name": name, "status": "active",
        "status_description": "", "created_by_id": "acc0123456789abcdefghijklm",
        "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z",
    })
}

pub(crate) fn chunk(position: u64, pipe: &str, text: &str) -> String {
    let data = json!({
        "position": position.to_string(), "execution_id": "exe0123456789abcdefghijklm", "seq": position,
        "time": "2025-01-01T00:00:00Z", "pipe": pipe, "text": text,
    });
    format!("id: {position}\nevent: chunk\ndata: {data}\n\n")
}

fn error(code: ErrorCode) -> Reply {
    Reply::Json(code.status(), json!({ "error": "no", "code": code.as_str() }))
}

#[tokio::test]
async fn a_creation_is_tried_again_under_the_same_key() {
    let server = Server::start(|_, n| match n {
        0 | 1 => Reply::Cut,
        2 => error(ErrorCode::Unavailable),
        _ => Reply::Json(201, app("shop")),
    })
    .await;
    let client = client(&server.url);
    let body = CreateApp { name: "shop".into(), display_name: String::new(), description: String::new() };
    assert_eq!(client.create_app(&body).await.expect("created").name, "shop");
    client.create_app(&body).await.expect("created");
    client.with_idempotency_key("mine").create_app(&body).await.expect("created");

    let seen = server.seen();
    let keys: Vec<&str> = seen.iter().map(|r| r.header("idempotency-key").expect("a key")).collect();
    assert_eq!(keys.len(), 6);
    assert_eq!(keys[0].len(), 32);
    assert!(keys[..4].iter().all(|k| *k == keys[0]), "{keys:?}");
    assert_ne!(keys[4], keys[0], "another creation has another key");
    assert_eq!(keys[5], "mine");
    for request in &seen {
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        assert_eq!(request.header("x-nuon-org-id"), Some("org0123456789abcdefghijklm"));
        assert_eq!(serde_json::from_slice::<CreateApp>(&request.body).expect("body"), body);
    }
}

#[tokio::test]
async fn tries_have_a_bound_and_refusals_are_final() {
    let server = Server::start(|request, _| match request.path.as_str() {
        "/v1/apps/gone" => error(ErrorCode::NotFound),
        "/v1/apps/broken" => error(ErrorCode::Internal),
        "/v1/apps/html" => Reply::Bytes(b"<html>".to_vec()),
        _ => error(ErrorCode::Unavailable),
    })
    .await;
    let client = client(&server.url);
    let table = [
        ("gone", Some(ErrorCode::NotFound), 1),
        ("broken", Some(ErrorCode::Internal), 1),
        ("busy", Some(ErrorCode::Unavailable), 4),
    ];
    let mut before = 0;
    for (name, code, tries) in table {
        assert_eq!(client.app(name).await.expect_err(name).code(), code, "{name}");
        assert_eq!(server.seen().len() - before, tries, "{name}");
        before = server.seen().len();
    }
    assert!(matches!(client.app("html").await, Err(ClientError::Decode { .. })));
}

#[tokio::test]
async fn lists_follow_their_pages() {
    let server = Server::start(|request, _| {
        let offset: usize =
            request.path.split("offset=").nth(1).and_then(|t| t.split('&').next()?.parse().ok()).unwrap_or(0);
        let count = if offset < 200 { 100 } else { 5 };
        let items: Vec<Value> = (offset..offset + count).map(|i| app(&format!("app-{i}"))).collect();
        Reply::JsonWith(200, vec![("X-Nuon-Page-Next", (offset < 200).to_string())], json!(items))
    })
    .await;
    let apps = client(&server.url).apps().await.expect("apps");
    assert_eq!(apps.len(), 205);
    assert_eq!(apps[204].name, "app-204");
    let expected: Vec<String> = [0, 100, 200].map(|o| format!("GET /v1/apps?offset={o}&limit=100")).to_vec();
    assert_eq!(server.lines(), expected);
}

#[tokio::test]
async fn a_tail_that_breaks_goes_on_where_it_broke() {
    let server = Server::start(|_, n| match n {
        0 => {
            Reply::Events(format!(": hello\n\n{}{}id: 3\nevent: chu", chunk(1, "stdout", "a"), chunk(2, "stderr", "b")))
        }
        1 => Reply::Cut,
        2 => error(ErrorCode::Unavailable),
        3 => Reply::Events(": keep-alive\n\n".into()),
        _ => Reply::EventsOpen(format!("{}event: end\ndata: {{\"status\":\"finished\"}}\n\n", chunk(3, "stdout", "c"))),
    })
    .await;
    let tail = client(&server.url).tail(&LogStreamId::parse(LOG).expect("id"), None);
    let items: Vec<String> = tail
        .map(|item| match item.expect("item") {
            Tail::Chunk(chunk) => chunk.text,
            Tail::End { status } => status,
        })
        .collect()
        .await;
    assert_eq!(items, ["a", "b", "c", "finished"], "each once, in order, and then the end");
    let ids: Vec<Option<String>> = server.seen().iter().map(|r| r.header("last-event-id").map(str::to_owned)).collect();
    let two = Some("2".to_owned());
    assert_eq!(ids, [None, two.clone(), two.clone(), two.clone(), two]);
    assert_eq!(server.lines()[4], format!("GET /v1/log-streams/{LOG}/tail?after=2"));
}

#[tokio::test]
async fn a_tail_that_is_refused_ends() {
    let server = Server::start(|_, _| error(ErrorCode::NotFound)).await;
    let items: Vec<_> = client(&server.url).tail(&LogStreamId::parse(LOG).expect("id"), None).collect().await;
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].as_ref().expect_err("refused").status(), Some(404));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_so() {
    let error = client("http://127.0.0.1:9").version().await.expect_err("nobody");
    assert!(matches!(error, ClientError::Transport { .. }));
    assert!(error.hint().is_some_and(|h| h.contains("ferry dev")), "{error}");
    for bad in ["", "nowhere", "ftp://x", "http://"] {
        assert!(matches!(Client::new(bad, None, None, &Options::default()), Err(ClientError::Setup { .. })), "{bad}");
    }
}
