//! Requests to an API server, for objects of any kind. A refusal is an error with its reason; only a 404 means "not there".

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::io::AsyncRead;
use futures::{Stream, StreamExt as _};
use http::{Method, Request};
use kube::Client;
use kube::core::{Status, WatchEvent};
use kubernetes::{Cluster, ObjectRef};
use mask::Masks;
use serde_json::{Value, json};

use super::super::action::StepFailure;

/// Tries of a request to a cluster that has not answered yet: an address may be wrong.
const TRIES: u32 = 5;
/// How long a cluster that has answered may be away or too busy. An API server that is upgraded is gone for seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Objects of one page of a list, and pages.
const PAGE: usize = 500;
const PAGES_MAX: usize = 200;

/// Why a request did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("{0}")]
    Refused(Box<Status>),
    #[error("the API server can't be reached: {0}")]
    Away(String),
}

impl ApiError {
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Refused(status) => status.code,
            Self::Away(_) => 0,
        }
    }

    /// What the server says, without the request that it repeats.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Refused(status) => status.message.clone(),
            Self::Away(_) => self.to_string(),
        }
    }

    /// Fields that the server names, each with why.
    pub(crate) fn causes(&self) -> Vec<(String, String)> {
        let Self::Refused(status) = self else { return Vec::new() };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.map(|cause| (cause.field.clone(), cause.message.clone())).collect()
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.code() == 404
    }

    /// As the failure of a step that worked on an object.
    pub(crate) fn of(&self, what: &str, address: &str) -> StepFailure {
        let (code, text) = match self {
            Self::Refused(status) if status.code == 403 && status.reason == "Forbidden" => {
                ("cluster_forbidden", format!("the runner may not {what} {address}: {}", status.message))
            }
            Self::Refused(status) if status.code == 401 => {
                ("cluster_forbidden", "the cluster does not accept the runner's credentials".to_owned())
            }
            Self::Refused(status) => {
                ("cluster_refused", format!("the cluster refused to {what} {address}: {}", status.message))
            }
            Self::Away(why) => ("cluster_away", format!("the API server can't be reached to {what} {address}: {why}")),
        };
        StepFailure::new(code, text)
    }
}

/// A kind as the server serves it.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    name: String,
    plural: String,
    pub(crate) namespaced: bool,
}

pub(crate) struct Api {
    client: Client,
    pub(crate) cluster: Cluster,
    /// Whose the fields are that we set.
    pub(crate) manager: String,
    /// What may not be seen of the texts that the cluster keeps.
    masks: Option<Arc<Masks>>,
    kinds: Mutex<BTreeMap<String, Arc<BTreeMap<String, Kind>>>>,
}

/// How an object is applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Apply {
    pub(crate) dry_run: bool,
    /// Fields that others manage are taken over.
    pub(crate) force: bool,
}

impl Api {
    pub(crate) async fn open(client: Client, server: String, manager: String) -> Result<Self, StepFailure> {
        let cluster = Cluster { uid: String::new(), server };
        let mut api = Self { client, cluster, manager, masks: None, kinds: Mutex::new(BTreeMap::new()) };
        let system = api.get_path("/api/v1/namespaces/kube-system").await;
        let system =
            system.map_err(|e| e.of("read", "Namespace/kube-system, by which a cluster is told from others,"))?;
        let Some(uid) = system.as_ref().and_then(|it| it["metadata"]["uid"].as_str()) else {
            return Err(super::cluster::failure(format!(
                "{} has no namespace kube-system: is it a Kubernetes API server?",
                api.cluster.server
            )));
        };
        api.cluster.uid = uid.to_owned();
        Ok(api)
    }

    /// The same cluster, in another name.
    pub(crate) fn as_manager(&self, manager: String) -> Self {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (client, cluster, masks) = (self.client.clone(), self.cluster.clone(), self.masks.clone());
        Self { client, cluster, manager, masks, kinds: Mutex::new(kinds) }
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Result<Value, ApiError> {
        let (begun, mut pause) = (Instant::now(), Duration::from_millis(100));
        for attempt in 1.. {
            let request = Request::builder()
                .method(method.clone())
                .uri(path)
                .header("content-type", kind)
                .header("accept", "application/json")
                .body(body.clone())
                .map_err(|e| ApiError::Away(e.to_string()))?;
            let error = match self.client.request::<Value>(request).await {
                Ok(value) => return Ok(value),
                Err(error) => error_of(error),
            };
            // Every request may be sent twice: an apply says how an object is to be, and a deletion names its uid.
            let has_answered = !self.cluster.uid.is_empty();
            let enough = match error.code() {
                0 | 429 | 503 | 504 if has_answered => begun.elapsed() >= PATIENCE,
                // A webhook that does not work is a 500, too.
                0 | 429 | 500 | 503 | 504 => attempt >= TRIES,
                _ => true,
            };
            if enough {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        unreachable!("the loop ends by itself")
    }

    /// None where there is nothing.
    pub(crate) async fn get_path(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.send(Method::GET, path, "application/json", Vec::new()).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// From now on texts are masked before anybody cuts them.
    pub(crate) fn hide(&mut self, masks: Arc<Masks>) {
        self.masks = Some(masks);
    }

    /// A text, such as a log, masked.
    pub(crate) async fn text(&self, path: &str) -> Option<String> {
        let request = Request::builder().uri(path).body(Vec::new()).ok()?;
        let text = self.client.request_text(request).await.ok()?;
        Some(self.masks.as_ref().map_or_else(|| text.clone(), |masks| masks.mask_text(&text)))
    }

    /// A text as it comes, such as a log that is followed. It is asked for once.
    pub(crate) async fn stream(&self, path: &str) -> Result<impl AsyncRead + Send + Unpin + use<>, ApiError> {
        let request = Request::builder().uri(path).body(Vec::new()).map_err(|e| ApiError::Away(e.to_string()))?;
        match self.client.request_stream(request).await {
            Ok(text) => Ok(Box::pin(text)),
            Err(kube::Error::Api(status)) => Err(ApiError::Refused(status)),
            Err(other) => Err(ApiError::Away(crate::net::chain(&other))),
        }
    }

    /// The kinds of one version of one group; empty where the server does not serve it.
    async fn kinds(&self, api_version: &str) -> Result<Arc<BTreeMap<String, Kind>>, ApiError> {
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let list = self.get_path(&root(api_version)).await?;
        let resources = list.iter().flat_map(|list| list["resources"].as_array().into_iter().flatten());
        let own = resources.filter(|resource| !resource["name"].as_str().unwrap_or("/").contains('/'));
        let found: BTreeMap<String, Kind> = own
            .filter_map(|resource| {
                let kind = resource["kind"].as_str()?.to_owned();
                let plural = resource["name"].as_str()?.to_owned();
                let namespaced = resource["namespaced"].as_bool().unwrap_or_default();
                let name = kind.clone();
                Some((kind, Kind { api_version: api_version.to_owned(), name, plural, namespaced }))
            })
            .collect();
        let found = Arc::new(found);
        if !found.is_empty() {
            self.kinds
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(api_version.to_owned(), Arc::clone(&found));
        }
        Ok(found)
    }

    /// How the server serves a kind in any version: an object outlives the version that it was created in.
    pub(crate) async fn served(&self, of: &ObjectRef) -> Result<Option<Kind>, ApiError> {
        if let Some(kind) = self.kind(of).await? {
            return Ok(Some(kind));
        }
        if of.group.is_empty() {
            return Ok(None);
        }
        let group = self.get_path(&format!("/apis/{}", of.group)).await?.unwrap_or_default();
        for version in group["versions"].as_array().into_iter().flatten() {
            let Some(api_version) = version["groupVersion"].as_str() else { continue };
            if let Some(kind) = self.kinds(api_version).await?.get(&of.kind) {
                return Ok(Some(kind.clone()));
            }
        }
        Ok(None)
    }

    /// How the server serves a kind in the version that is named; None where it does not.
    pub(crate) async fn kind(&self, of: &ObjectRef) -> Result<Option<Kind>, ApiError> {
        let (known, kind) = (self.kinds(&of.api_version()).await?, &of.kind);
        if let Some(found) = known.get(kind) {
            return Ok(Some(found.clone()));
        }
        // Its definition may be newer than what is known.
        self.forget(&of.api_version());
        Ok(self.kinds(&of.api_version()).await?.get(kind).cloned())
    }

    /// What was learned of a version is asked again.
    pub(crate) fn forget(&self, api_version: &str) {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).remove(api_version);
    }

    fn place(of: &ObjectRef, kind: &Kind) -> String {
        let root = root(&kind.api_version);
        let (plural, name) = (&kind.plural, encoded(&of.name));
        match of.namespace.as_deref().filter(|_| kind.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{plural}/{name}", encoded(namespace)),
            None => format!("{root}/{plural}/{name}"),
        }
    }

    pub(crate) async fn get(&self, of: &ObjectRef) -> Result<Option<Value>, ApiError> {
        match self.served(of).await? {
            Some(kind) => self.get_path(&Self::place(of, &kind)).await,
            None => Ok(None),
        }
    }

    /// Server-side apply under our name.
    pub(crate) async fn apply(
        &self,
        of: &ObjectRef,
        kind: &Kind,
        object: &Value,
        how: Apply,
    ) -> Result<Value, ApiError> {
        let mut path = format!(
            "{}?fieldManager={}&fieldValidation=Strict&force={}",
            Self::place(of, kind),
            self.manager,
            how.force
        );
        if how.dry_run {
            path.push_str("&dryRun=All");
        }
        // JSON is YAML.
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string().into_bytes()).await
    }

    /// Deletes an object, where it is the one with this uid. Fine where it is gone.
    pub(crate) async fn delete(&self, of: &ObjectRef, uid: &str, propagation: &str) -> Result<(), ApiError> {
        let Some(kind) = self.served(of).await? else { return Ok(()) };
        let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation });
        if !uid.is_empty() {
            options["preconditions"] = json!({ "uid": uid });
        }
        let path = Self::place(of, &kind);
        match self.send(Method::DELETE, &path, "application/json", options.to_string().into_bytes()).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_missing() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// All objects of a kind in a namespace that a query selects.
    pub(crate) async fn list(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        query: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let path = format!("{}/namespaces/{}/{plural}?limit={PAGE}{query}", root(api_version), encoded(namespace));
        let (mut all, mut next) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let mut page = self.get_path(&format!("{path}{next}")).await?.unwrap_or_default();
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={}", encoded(token)),
                None => return Ok(all),
            }
        }
        Err(ApiError::Away(format!("{path} lists more than {} objects", PAGE * PAGES_MAX)))
    }

    /// All objects of a kind in a namespace, or of the whole cluster: each is handed over once; what comes back is where a watch
    /// begins.
    pub(crate) async fn each(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        query: &str,
        mut take: impl FnMut(Value),
    ) -> Result<String, ApiError> {
        let path = format!("{}?limit={PAGE}{query}", Self::collection(kind, namespace));
        let mut next = String::new();
        for _ in 0..PAGES_MAX {
            // A kind that is not served any more is no kind without objects.
            let mut page = self.send(Method::GET, &format!("{path}{next}"), "application/json", Vec::new()).await?;
            if let Value::Array(items) = page["items"].take() {
                for mut item in items {
                    // Items of a list do not say what they are.
                    item["apiVersion"] = json!(kind.api_version);
                    item["kind"] = json!(kind.name);
                    take(item);
                }
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={}", encoded(token)),
                None => return Ok(page["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()),
            }
        }
        Err(ApiError::Away(format!("{path} lists more than {} objects", PAGE * PAGES_MAX)))
    }

    /// What happens to the objects of a kind from a version on.
    pub(crate) async fn watch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        query: &str,
        from: &str,
    ) -> Result<impl Stream<Item = Result<WatchEvent<Value>, ApiError>> + use<>, ApiError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}{query}",
            Self::collection(kind, namespace),
            super::WATCH.as_secs(),
            encoded(from)
        );
        let request = Request::builder().uri(path).body(Vec::new()).map_err(|e| ApiError::Away(e.to_string()))?;
        let stream = self.client.request_events::<Value>(request).await.map_err(error_of)?;
        Ok(stream.map(|event: Result<_, kube::Error>| event.map_err(error_of)))
    }

    fn collection(kind: &Kind, namespace: Option<&str>) -> String {
        let (root, plural) = (root(&kind.api_version), &kind.plural);
        match namespace.filter(|_| kind.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{plural}", encoded(namespace)),
            None => format!("{root}/{plural}"),
        }
    }

    /// Every kind of object that lives in namespaces: its version and its plural.
    pub(crate) async fn namespaced(&self) -> Result<Vec<(String, String)>, ApiError> {
        let mut all = Vec::new();
        for api_version in self.versions().await? {
            let kinds = self.kinds(&api_version).await?;
            let inside = kinds.values().filter(|kind| kind.namespaced);
            all.extend(inside.map(|kind| (api_version.clone(), kind.plural.clone())));
        }
        Ok(all)
    }

    async fn versions(&self) -> Result<Vec<String>, ApiError> {
        let groups = self.get_path("/apis").await?.unwrap_or_default();
        let groups = groups["groups"].as_array().into_iter().flatten();
        let versions = groups.flat_map(|group| group["versions"].as_array().into_iter().flatten());
        let mut served = vec!["v1".to_owned()];
        served.extend(versions.filter_map(|version| version["groupVersion"].as_str().map(str::to_owned)));
        Ok(served)
    }

    /// What the server is and serves, as charts ask for it: its version, and `GROUP/VERSION` with and without each kind.
    pub(crate) async fn capabilities(&self) -> Result<(String, Vec<String>), ApiError> {
        let version = self.get_path("/version").await?.unwrap_or_default();
        let mut all = Vec::new();
        for api_version in self.versions().await? {
            let kinds = self.kinds(&api_version).await?;
            all.extend(kinds.keys().map(|kind| format!("{api_version}/{kind}")));
            all.push(api_version);
        }
        Ok((version["gitVersion"].as_str().unwrap_or_default().to_owned(), all))
    }
}

fn error_of(error: kube::Error) -> ApiError {
    match error {
        kube::Error::Api(status) => ApiError::Refused(status),
        other => ApiError::Away(crate::net::chain(&other)),
    }
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

/// Names of some kinds may hold `:`, and a hostile one anything.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    // Neither this directory nor the one above.
    if matches!(out.as_str(), "." | "..") { out.replace('.', "%2E") } else { out }
}

/// A selector of labels as a query.
pub(crate) fn selector(labels: &Value) -> Option<String> {
    let labels = labels.as_object().filter(|labels| !labels.is_empty())?;
    let pairs: Vec<String> = labels
        .iter()
        .filter_map(|(name, value)| Some(format!("{}%3D{}", encoded(name), encoded(value.as_str()?))))
        .collect();
    Some(format!("&labelSelector={}", pairs.join("%2C")))
}
