//! Vault's KV store, version 2. A secret lies in one entry; its value is the field `value`, or the only one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use futures::future::BoxFuture;
use model::secrets::SECRET_VALUE_BYTES_MAX;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};

use super::{SecretStore, StoreError, checked};

const FIELD: &str = "value";
const TIMEOUT: Duration = Duration::from_secs(20);
/// Tries of a request that Vault did not answer, or answered with an error of its own.
const TRIES: u32 = 3;

pub(super) struct Vault {
    http: reqwest::Client,
    /// Up to the mount.
    base: Url,
    mount: String,
    folder: String,
    token_file: PathBuf,
}

enum Answer {
    Found(Value),
    Nothing,
    /// It wants another version than the newest one.
    Taken,
}

impl Vault {
    /// `https://HOST:PORT/MOUNT/FOLDER`.
    pub(super) fn new(url: &str, token_file: Option<PathBuf>, ca_file: Option<&Path>) -> Result<Self, StoreError> {
        let bad = |why: &str| {
            StoreError::Setting(format!(
                "`vault:{url}` is no place in a Vault: {why}; write `vault:https://HOST:8200/MOUNT/FOLDER`"
            ))
        };
        let parsed = Url::parse(url).map_err(|e| bad(&e.to_string()))?;
        let path = parsed.path().trim_matches('/').to_owned();
        let (mount, folder) = path.split_once('/').unwrap_or((&path, ""));
        if mount.is_empty() || !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad("it names no mount"));
        }
        let token_file = token_file.ok_or_else(|| {
            StoreError::Setting("a Vault needs a token: start the runner with `--vault-token-file FILE`".into())
        })?;
        let mut base = parsed;
        base.set_path("");
        let http = crate::net::client(url, ca_file).map_err(|e| StoreError::Setting(crate::net::chain(&e)))?;
        Ok(Self { http, base, mount: mount.to_owned(), folder: folder.to_owned(), token_file })
    }

    fn address(&self, name: &str) -> Result<Url, StoreError> {
        let name = checked(name)?;
        let folder = if self.folder.is_empty() { String::new() } else { format!("{}/", self.folder) };
        let mut url = self.base.clone();
        url.set_path(&format!("v1/{}/data/{folder}{name}", self.mount));
        Ok(url)
    }

    /// One request, tried again where Vault is away or sealed.
    async fn ask(&self, method: Method, name: &str, body: Option<Value>) -> Result<Answer, String> {
        let url = self.address(name).map_err(|e| e.to_string())?;
        let token = fs::read_to_string(&self.token_file).map_err(|e| format!("the token of Vault: {e}"))?;
        let mut pause = Duration::from_millis(200);
        for attempt in 1.. {
            let mut request = self.http.request(method.clone(), url.clone()).timeout(TIMEOUT);
            request = request.header("x-vault-token", token.trim());
            if let Some(body) = &body {
                request = request.json(body);
            }
            let error = match answered(request).await {
                Ok((status, value)) if status.is_success() => return Ok(Answer::Found(value)),
                Ok((StatusCode::NOT_FOUND, value)) if problems(&value).is_empty() => return Ok(Answer::Nothing),
                Ok((status, value)) => {
                    let text = problems(&value);
                    if status == StatusCode::BAD_REQUEST && text.contains("check-and-set") {
                        return Ok(Answer::Taken);
                    }
                    if !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS {
                        return Err(refusal(status, &text));
                    }
                    refusal(status, &text)
                }
                Err(away) => format!("Vault can't be reached: {away}"),
            };
            if attempt >= TRIES {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause *= 4;
        }
        unreachable!("the loop ends by itself")
    }
}

async fn answered(request: reqwest::RequestBuilder) -> Result<(StatusCode, Value), String> {
    let mut answer = request.send().await.map_err(|e| crate::net::chain(&e))?;
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|e| crate::net::chain(&e))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > 8 * SECRET_VALUE_BYTES_MAX {
            return Err("its answer is too long".into());
        }
    }
    Ok((answer.status(), serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// What Vault complains about.
fn problems(value: &Value) -> String {
    let all = value["errors"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).collect::<Vec<_>>().join("; ").replace('\n', " ")
}

fn refusal(status: StatusCode, text: &str) -> String {
    match status {
        StatusCode::FORBIDDEN => format!("Vault does not let the runner in ({text}): look at the token and its policy"),
        status => format!("Vault answers {}: {text}", status.as_u16()),
    }
}

/// The value in an entry: the field `value`, or the only one.
fn value(entry: &Value) -> Result<Vec<u8>, String> {
    let fields = entry["data"]["data"].as_object().ok_or("the entry has no fields: is the mount of version 2?")?;
    let only = || if fields.len() == 1 { fields.values().next() } else { None };
    match fields.get(FIELD).or_else(only) {
        Some(Value::String(text)) => Ok(text.clone().into_bytes()),
        Some(other) if !other.is_object() && !other.is_array() && !other.is_null() => {
            Ok(other.to_string().into_bytes())
        }
        Some(_) => Err(format!("its `{FIELD}` is no text")),
        None => Err(format!("the entry has several fields, and none is `{FIELD}`")),
    }
}

impl SecretStore for Vault {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            let unreadable = |why: String| StoreError::Unreadable { place: self.place(name), why };
            match self.ask(Method::GET, name, None).await.map_err(unreadable)? {
                Answer::Found(entry) => value(&entry).map(Some).map_err(unreadable),
                Answer::Nothing | Answer::Taken => Ok(None),
            }
        })
    }

    fn keep<'a>(&'a self, name: &'a str, value: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let unwritable = |why: String| StoreError::Unwritable { place: self.place(name), why };
            // Only where there is none: two runners must not overwrite each other's.
            let body = json!({ "data": { FIELD: value }, "options": { "cas": 0 } });
            match self.ask(Method::POST, name, Some(body)).await.map_err(unwritable)? {
                Answer::Found(_) => Ok(true),
                Answer::Taken => Ok(false),
                Answer::Nothing => Err(unwritable("there is no such mount".into())),
            }
        })
    }

    fn place(&self, name: &str) -> String {
        let folder = if self.folder.is_empty() { String::new() } else { format!("{}/", self.folder) };
        format!("{}/{folder}{name} in Vault", self.mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_field_value_or_the_only_one() {
        let entry = |fields: Value| json!({ "data": { "data": fields } });
        assert_eq!(value(&entry(json!({ "value": "a", "other": "b" }))), Ok(b"a".to_vec()));
        assert_eq!(value(&entry(json!({ "password": "b" }))), Ok(b"b".to_vec()));
        assert!(value(&entry(json!({ "a": "1", "b": "2" }))).is_err());
        assert!(value(&entry(Value::Null)).is_err());
    }

    #[test]
    fn an_address_names_mount_and_folder() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let token = Some(PathBuf::from("token"));
        let vault = Vault::new("http://127.0.0.1:8200/secret/shop/prod", token.clone(), None).expect("a place");
        assert_eq!(vault.address("db").expect("url").as_str(), "http://127.0.0.1:8200/v1/secret/data/shop/prod/db");
        assert!(Vault::new("http://127.0.0.1:8200", token, None).is_err());
        assert!(Vault::new("http://127.0.0.1:8200/secret", None, None).is_err());
    }
}
