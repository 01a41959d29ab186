//! The customer's store is a real Vault: `make soak PART=vault` builds it.

use std::process::{Child, Command, Stdio};

use reqwest::{Client, Method};
use runner::seal::vault::Tools;
use runner::secret_store;
use serde_json::{Value, json};
use testkit::system::{SOON, until};

use crate::registry_clients::tool;

struct Vault {
    process: Child,
    url: String,
    http: Client,
}

impl Drop for Vault {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Vault {
    async fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut command = Command::new(tool("vault", "vault-tools.sh"));
        command.args(["server", "-dev", "-dev-root-token-id=root", &format!("-dev-listen-address={address}")]);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let vault = Self { process, url: format!("http://{address}"), http: Client::new() };
        until("Vault answers", SOON, async || {
            let health = vault.http.get(format!("{}/v1/sys/health", vault.url)).send().await;
            health.map_err(|e| e.to_string())?.error_for_status().map(drop).map_err(|e| e.to_string())
        })
        .await;
        vault
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self.http.request(method, format!("{}/v1/{path}", self.url)).header("x-vault-token", "root");
        let answer = request.json(&body).send().await.unwrap().error_for_status().unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default()
    }
}

#[tokio::test]
#[ignore = "Vault takes minutes to build: make soak PART=vault"]
async fn secrets_are_read_from_a_real_vault() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut vault = Vault::start().await;
    let dir = tempfile::tempdir().unwrap();
    let policy = r#"path "secret/data/shop/*" { capabilities = ["read", "create"] }"#;
    vault.ask(Method::PUT, "sys/policies/acl/runner", json!({ "policy": policy })).await;
    let token = vault.ask(Method::POST, "auth/token/create", json!({ "policies": ["runner"] })).await;
    let token_file = dir.path().join("token");
    fs_err::write(&token_file, token["auth"]["client_token"].as_str().unwrap()).unwrap();
    let tools = Tools {
        secret_store: Some(format!("vault:{}/secret/shop", vault.url)),
        vault_token_file: Some(token_file.clone()),
        ..Tools::default()
    };
    let store = secret_store::open(&tools, dir.path(), None).unwrap();

    // Written by a person, changed, and deleted.
    assert_eq!(store.read("password").await.unwrap(), None);
    for value in ["first", "second"] {
        vault.ask(Method::POST, "secret/data/shop/password", json!({ "data": { "value": value } })).await;
        assert_eq!(store.read("password").await.unwrap(), Some(value.as_bytes().to_vec()));
    }
    vault.ask(Method::DELETE, "secret/data/shop/password", Value::Null).await;
    assert_eq!(store.read("password").await.unwrap(), None, "the newest version is deleted");
    vault.ask(Method::POST, "secret/data/shop/several", json!({ "data": { "a": "1", "b": "2" } })).await;
    let why = store.read("several").await.unwrap_err().to_string();
    assert!(why.contains("several fields"), "{why}");

    // What is made up is kept once.
    assert!(store.keep("made-up", "one").await.unwrap());
    assert!(!store.keep("made-up", "two").await.unwrap());
    assert_eq!(store.read("made-up").await.unwrap(), Some(b"one".to_vec()));

    // A failed read is never "not there".
    let elsewhere = Tools { secret_store: Some(format!("vault:{}/secret/other", vault.url)), ..tools };
    let why = secret_store::open(&elsewhere, dir.path(), None).unwrap().read("password").await.unwrap_err().to_string();
    assert!(why.contains("does not let the runner in"), "{why}");
    fs_err::write(&token_file, "wrong").unwrap();
    assert!(store.read("made-up").await.is_err());
    vault.process.kill().unwrap();
    let why = store.read("made-up").await.unwrap_err().to_string();
    assert!(why.contains("can't be reached"), "{why}");
}
