//! The registry by its bytes: what the specification says, tenancy, quotas, full disks, and whatever dies in between.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::control::{CreateOrg, CreateToken};
use futures::StreamExt as _;
use model::{Digest, Role};
use needs::needs;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use testkit::Backend;
use testkit::system::{System, until};

use crate::disk_full::Room;
use crate::{options, seconds};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A client that shows its credentials with every request.
#[derive(Clone)]
struct Hub {
    http: reqwest::Client,
    url: String,
    org: String,
    token: String,
}

impl Hub {
    fn of(system: &System) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(seconds(30)).build().unwrap();
        let (url, org) = (system.control_url.clone(), system.org.id.to_string());
        Self { http, url, org, token: system.token().into() }
    }

    fn call(&self, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with("/v2") { path.to_owned() } else { format!("/v2/{}/{path}", self.org) };
        self.http.request(method, format!("{}{url}", self.url)).basic_auth("any", Some(&self.token))
    }

    async fn get(&self, path: &str) -> Response {
        self.call(Method::GET, path).send().await.unwrap()
    }

    /// Begins an upload; says where it goes on.
    async fn begin(&self, repository: &str) -> reqwest::Result<String> {
        let answer =
            self.call(Method::POST, &format!("{repository}/blobs/uploads/")).send().await?.error_for_status()?;
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        Ok(header(&answer, "location"))
    }

    async fn push(&self, repository: &str, bytes: &[u8]) -> reqwest::Result<Response> {
        let location = self.begin(repository).await?;
        self.call(Method::PATCH, &location).body(bytes.to_vec()).send().await?.error_for_status()?;
        self.call(Method::PUT, &format!("{location}?digest={}", Digest::of(bytes))).send().await
    }

    async fn put_manifest(&self, repository: &str, reference: &str, manifest: &Value) -> reqwest::Result<Response> {
        let call = self.call(Method::PUT, &format!("{repository}/manifests/{reference}"));
        call.header("content-type", manifest["mediaType"].as_str().unwrap()).body(manifest.to_string()).send().await
    }

    /// Pushes a config, a layer, and the manifest that needs both.
    async fn push_image(&self, repository: &str, tag: &str, layer: &[u8]) -> reqwest::Result<()> {
        for bytes in [b"{}", layer] {
            self.push(repository, bytes).await?.error_for_status()?;
        }
        self.put_manifest(repository, tag, &image(layer)).await?.error_for_status()?;
        Ok(())
    }
}

fn image(layer: &[u8]) -> Value {
    let descriptor =
        |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": Digest::of(bytes), "size": bytes.len()});
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": descriptor("application/vnd.oci.image.config.v1+json", b"{}"),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
    })
}

fn header(answer: &Response, name: &str) -> String {
    answer.headers().get(name).map(|h| h.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// The status, and the code of the error.
async fn refusal(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap_or_default();
    (status, body["errors"][0]["code"].as_str().unwrap_or_default().to_owned())
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}

#[tokio::test]
async fn blobs_come_whole_in_pieces_and_by_ranges() {
    let system = System::start(options()).await;
    let hub = Hub::of(&system);
    let bytes = noise(1, 3_000_000);
    let digest = Digest::of(&bytes);
    let location = hub.begin("app").await.unwrap();
    let status = |answer: &Response| (answer.status().as_u16(), header(answer, "range"));
    assert_eq!(status(&hub.get(&location).await), (204, "0-0".into()));
    let (first, rest) = bytes.split_at(1_000_001);
    let piece = |range: &str, body: &[u8]| {
        hub.call(Method::PATCH, &location).header("content-range", range).body(body.to_vec()).send()
    };
    assert_eq!(status(&piece("0-1000000", first).await.unwrap()), (202, "0-1000000".into()));
    assert_eq!(status(&piece("0-1000000", first).await.unwrap()), (416, "0-1000000".into()), "again");
    assert_eq!(
        status(&piece("2000000-2999999", &rest[..1_000_000]).await.unwrap()),
        (416, "0-1000000".into()),
        "a gap"
    );
    assert_eq!(refusal(piece("1000001-1000009", rest).await.unwrap()).await, (400, "SIZE_INVALID".into()));
    assert_eq!(status(&hub.get(&location).await), (204, "0-1000000".into()));
    let last = hub.call(Method::PUT, &format!("{location}?digest={digest}")).body(rest.to_vec()).send().await.unwrap();
    assert_eq!(last.status(), StatusCode::CREATED);
    assert_eq!(header(&last, "docker-content-digest"), digest.as_str());
    assert_eq!(refusal(hub.get(&location).await).await, (404, "BLOB_UPLOAD_UNKNOWN".into()));
    let path = format!("app/blobs/{digest}");
    assert_eq!(hub.get(&path).await.bytes().await.unwrap(), bytes);
    let head = hub.call(Method::HEAD, &path).send().await.unwrap();
    assert_eq!(header(&head, "content-length"), "3000000");
    for (range, wanted) in
        [("bytes=5-9", 5..10), ("bytes=2999990-", 2_999_990..3_000_000), ("bytes=-7", 2_999_993..3_000_000)]
    {
        let part = hub.call(Method::GET, &path).header("range", range).send().await.unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(header(&part, "content-range"), format!("bytes {}-{}/3000000", wanted.start, wanted.end - 1));
        assert_eq!(part.bytes().await.unwrap(), bytes[wanted]);
    }
    let beyond = hub.call(Method::GET, &path).header("range", "bytes=3000000-").send().await.unwrap();
    assert_eq!((beyond.status().as_u16(), header(&beyond, "content-range")), (416, "bytes */3000000".into()));
    // In one request; twice; nothing at all; and mounted.
    for bytes in [&b"small"[..], b"small", b""] {
        let path = format!("app/blobs/uploads/?digest={}", Digest::of(bytes));
        let answer = hub.call(Method::POST, &path).body(bytes.to_vec()).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(hub.get(&format!("app/blobs/{}", Digest::of(bytes))).await.bytes().await.unwrap(), bytes);
    }
    let mount = |from: &str| format!("other/blobs/uploads/?mount={digest}&from={}/{from}", hub.org);
    assert_eq!(hub.call(Method::POST, &mount("app")).send().await.unwrap().status(), StatusCode::CREATED);
    assert_eq!(hub.call(Method::POST, &mount("none")).send().await.unwrap().status(), StatusCode::ACCEPTED);
    assert_eq!(hub.get(&format!("other/blobs/{digest}")).await.bytes().await.unwrap(), bytes);
    // What does not have its digest is refused, and is not there.
    let location = hub.begin("app").await.unwrap();
    let wrong = Digest::of(b"something else");
    let answer = hub.call(Method::PUT, &format!("{location}?digest={wrong}")).body("bytes").send().await.unwrap();
    assert_eq!(refusal(answer).await, (400, "DIGEST_INVALID".into()));
    assert_eq!(refusal(hub.get(&format!("app/blobs/{wrong}")).await).await, (404, "BLOB_UNKNOWN".into()));
    // A blob that was cut short on the disk is not served.
    let dir = system.root().join("data/blobs/registry").join(&hub.org);
    let large = fs_err::read_dir(&dir).unwrap().map(|e| e.unwrap()).find(|e| e.metadata().unwrap().len() == 3_000_000);
    std::fs::File::options().write(true).open(large.unwrap().path()).unwrap().set_len(2_999_999).unwrap();
    assert_eq!(hub.get(&path).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(hub.call(Method::HEAD, &path).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    hub.push("app", &bytes).await.unwrap().error_for_status().unwrap();
    assert!(hub.get(&path).await.bytes().await.unwrap() == bytes, "the next push makes it whole");
}

#[tokio::test]
async fn one_request_at_a_time_writes_to_an_upload() {
    let system = System::start(options()).await;
    let hub = Hub::of(&system);
    let location = hub.begin("app").await.unwrap();
    let (send, receive) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let body = futures::stream::unfold(receive, |mut r| async { r.recv().await.map(|piece| (piece, r)) });
    let slow = tokio::spawn(hub.call(Method::PATCH, &location).body(reqwest::Body::wrap_stream(body)).send());
    send.send(Ok(vec![1; 600_000])).await.unwrap();
    until("the first request writes", seconds(10), async || {
        match header(&hub.get(&location).await, "range").as_str() {
            "0-0" => Err("nothing yet".into()),
            _ => Ok(()),
        }
    })
    .await;
    let second = hub.call(Method::PATCH, &location).body("2").send().await.unwrap();
    assert_eq!(refusal(second).await, (429, "TOOMANYREQUESTS".into()));
    send.send(Ok(vec![1; 10])).await.unwrap();
    drop(send);
    assert_eq!(header(&slow.await.unwrap().unwrap(), "range"), "0-600009");
}

#[tokio::test]
async fn a_client_that_stalls_is_dropped() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let system = System::start(options().with("FERRY_LIMITS__STALL_S", 1)).await;
    let hub = Hub::of(&system);
    let location = hub.begin("app").await.unwrap();
    let (send, receive) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let body = futures::stream::unfold(receive, |mut r| async { r.recv().await.map(|piece| (piece, r)) });
    let sending = hub.call(Method::PATCH, &location).body(reqwest::Body::wrap_stream(body)).send();
    send.send(Ok(vec![1; 10])).await.unwrap();
    let answer = tokio::time::timeout(seconds(10), sending).await.expect("in time").unwrap();
    assert!(answer.text().await.unwrap().contains("nothing came for 1 s"));
    // One that asks for a blob and does not read it.
    let bytes = noise(1, 30_000_000);
    hub.push("app", &bytes).await.unwrap().error_for_status().unwrap();
    let login = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("any:{}", hub.token));
    let path = format!("/v2/{}/app/blobs/{}", hub.org, Digest::of(&bytes));
    let mut stream = tokio::net::TcpStream::connect(system.listeners().0[0]).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Basic {login}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(seconds(3)).await;
    let mut read = Vec::new();
    let _ = tokio::time::timeout(seconds(10), stream.read_to_end(&mut read)).await.expect("the server has closed it");
    assert!(read.starts_with(b"HTTP/1.1 200") && read.len() < bytes.len(), "{} bytes", read.len());
}

#[tokio::test]
async fn referrers_as_the_specification_has_them() {
    let system = System::start(options()).await;
    let hub = Hub::of(&system);
    hub.push_image("app", "v1", b"layer").await.unwrap();
    let subject = hub.get("app/manifests/v1").await;
    let subject_digest = header(&subject, "docker-content-digest");
    let subject =
        json!({"mediaType": MANIFEST, "digest": subject_digest, "size": subject.bytes().await.unwrap().len()});
    let empty = json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": Digest::of(b"{}"), "size": 2});
    let path = format!("app/referrers/{subject_digest}");
    let list = async |query: &str| {
        let answer = hub.get(&format!("{path}{query}")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(header(&answer, "content-type"), "application/vnd.oci.image.index.v1+json");
        let (filters, link) = (header(&answer, "oci-filters-applied"), header(&answer, "link"));
        let body: Value = answer.json().await.unwrap();
        assert_eq!(
            (&body["schemaVersion"], &body["mediaType"]),
            (&json!(2), &json!("application/vnd.oci.image.index.v1+json"))
        );
        (body["manifests"].as_array().unwrap().clone(), filters, link)
    };
    assert_eq!(list("").await.0, Vec::<Value>::new(), "none is a list too");
    let missing = Digest::of(b"never pushed");
    let mut made = BTreeMap::new();
    for n in 0..5 {
        let kind = if n % 2 == 0 { "application/x.sbom" } else { "application/x.signature" };
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind, "config": empty, "layers": [empty],
            "subject": subject, "annotations": {"n": n.to_string()},
        });
        let digest = Digest::of(manifest.to_string().as_bytes());
        let answer = hub.put_manifest("app", digest.as_str(), &manifest).await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(header(&answer, "oci-subject"), subject_digest);
        made.insert(digest.to_string(), (kind, n, manifest.to_string().len()));
    }
    // Without an artifact type it is that of the config; an index has only its own; a subject may be missing.
    let config = json!({"mediaType": "application/x.config", "digest": Digest::of(b"{}"), "size": 2});
    let by_config = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [], "subject": {"mediaType": MANIFEST, "digest": missing, "size": 3}});
    assert_eq!(hub.put_manifest("app", "by-config", &by_config).await.unwrap().status(), StatusCode::CREATED);
    let of_missing: Value = hub.get(&format!("app/referrers/{missing}")).await.json().await.unwrap();
    assert_eq!(of_missing["manifests"][0]["artifactType"], "application/x.config");
    let (all, filters, link) = list("").await;
    assert_eq!((all.len(), filters.as_str(), link.as_str()), (5, "", ""));
    for descriptor in &all {
        let (kind, n, size) = made[descriptor["digest"].as_str().unwrap()];
        assert_eq!(
            *descriptor,
            json!({"mediaType": MANIFEST, "digest": descriptor["digest"], "size": size, "artifactType": kind, "annotations": {"n": n.to_string()}})
        );
    }
    let (some, filters, _) = list("?artifactType=application/x.sbom").await;
    assert_eq!((some.len(), filters.as_str()), (3, "artifactType"));
    let (page, _, link) = list("?n=2").await;
    assert_eq!(page.len(), 2);
    let next = link.strip_prefix('<').and_then(|l| l.split_once(">; rel=\"next\"")).unwrap().0.to_owned();
    let rest: Value = hub.get(&next).await.json().await.unwrap();
    assert_eq!(rest["manifests"].as_array().unwrap().len(), 2);
    // A manifest that is deleted refers no more.
    let gone = all[0]["digest"].as_str().unwrap();
    assert_eq!(
        hub.call(Method::DELETE, &format!("app/manifests/{gone}")).send().await.unwrap().status(),
        StatusCode::ACCEPTED
    );
    assert_eq!(list("").await.0.len(), 4);
    assert_eq!(refusal(hub.get("app/referrers/sha256:17").await).await, (400, "DIGEST_INVALID".into()));
}

#[tokio::test]
async fn nobody_sees_another_orgs_repositories() {
    let system = System::start(options()).await;
    let hub = Hub::of(&system);
    hub.push_image("app", "v1", b"layer").await.unwrap();
    let other = system
        .client
        .create_org(&CreateOrg { name: "other".into(), use_sandbox_mode: false, simulation: None })
        .await
        .unwrap();
    let token = async |client: &api::client::Client, role| {
        let wanted = CreateToken { name: format!("{role:?}"), role, runner_id: None, expires_in_s: None };
        client.create_token(&wanted).await.unwrap().token.unwrap()
    };
    let admin = token(&system.client.with_org(Some(other.id.to_string())), Role::Admin).await;
    let reader = Hub { token: token(&system.client, Role::ReadOnly).await, ..hub.clone() };
    let writer = Hub { token: token(&system.client, Role::Operator).await, ..hub.clone() };
    let stranger = Hub { token: admin.clone(), ..hub.clone() };
    let digest = Digest::of(b"layer");
    let answers = async |hub: &Hub, name: &str| {
        let mut all = Vec::new();
        for (method, path) in [
            (Method::GET, format!("{name}/manifests/v1")),
            (Method::GET, format!("{name}/blobs/{digest}")),
            (Method::GET, format!("{name}/tags/list")),
            (Method::POST, format!("{name}/blobs/uploads/")),
            (Method::PUT, format!("{name}/manifests/v2")),
            (Method::DELETE, format!("{name}/manifests/v1")),
        ] {
            all.push(refusal(hub.call(method, &path).send().await.unwrap()).await);
        }
        all
    };
    let unknown = vec![(404, "NAME_UNKNOWN".to_owned()); 6];
    assert_eq!(answers(&stranger, "app").await, unknown, "another org's is not there");
    assert_eq!(answers(&stranger, "none").await, unknown, "like one that is not there");
    let anonymous = Hub { token: "nothing".into(), ..hub.clone() };
    assert_eq!(answers(&anonymous, "app").await, vec![(401, "UNAUTHORIZED".to_owned()); 6]);
    // Mounts do not cross orgs either; nor do blobs.
    let own = Hub { org: other.id.to_string(), token: admin, ..hub.clone() };
    let mount = format!("x/blobs/uploads/?mount={digest}&from={}/app", hub.org);
    assert_eq!(own.call(Method::POST, &mount).send().await.unwrap().status(), StatusCode::ACCEPTED);
    let refused = own.put_manifest("x", "v1", &image(b"layer")).await.unwrap();
    assert_eq!(refusal(refused).await, (404, "MANIFEST_BLOB_UNKNOWN".into()));
    own.push_image("x", "v1", b"layer").await.unwrap();
    let catalog =
        async |hub: &Hub| hub.get("/v2/_catalog").await.json::<Value>().await.unwrap()["repositories"].clone();
    assert_eq!(catalog(&own).await, json!([format!("{}/x", other.id)]));
    assert_eq!(catalog(&reader).await, json!([format!("{}/app", hub.org)]));
    // Roles.
    assert_eq!(reader.get("app/manifests/v1").await.status(), StatusCode::OK);
    let push = reader.call(Method::POST, "app/blobs/uploads/").send().await.unwrap();
    assert_eq!(refusal(push).await, (403, "DENIED".into()));
    writer.push_image("app", "v2", b"another").await.unwrap();
    // A token of the registry is good for what it was asked for.
    let token_for = async |hub: &Hub, scope: &str| {
        let answer: Value = hub.get(&format!("/v2/token?service=ferry&scope={scope}")).await.json().await.unwrap();
        answer["token"].as_str().unwrap().to_owned()
    };
    let bearer = async |token: &str, method: Method, path: &str| {
        let url = format!("{}/v2/{}/{path}", hub.url, hub.org);
        refusal(hub.http.request(method, url).bearer_auth(token).send().await.unwrap()).await
    };
    let pull = token_for(&writer, &format!("repository:{}/app:pull", hub.org)).await;
    assert_eq!(bearer(&pull, Method::GET, "app/manifests/v1").await.0, 200);
    assert_eq!(bearer(&pull, Method::GET, "b/manifests/v1").await.0, 401);
    assert_eq!(bearer(&pull, Method::POST, "app/blobs/uploads/").await.0, 401);
    let push = token_for(&reader, &format!("repository:{}/app:pull,push", hub.org)).await;
    assert_eq!(bearer(&push, Method::POST, "app/blobs/uploads/").await.0, 403);
    let foreign = token_for(&stranger, &format!("repository:{}/app:pull", hub.org)).await;
    assert_eq!(bearer(&foreign, Method::GET, "app/manifests/v1").await, (404, "NAME_UNKNOWN".into()));
    let form =
        [("grant_type", "password"), ("username", "any"), ("password", reader.token.as_str()), ("service", "ferry")];
    let form = form.map(|(k, v)| format!("{k}={v}")).join("&") + &format!("&scope=repository:{}/app:pull", hub.org);
    let posted = hub.http.post(format!("{}/v2/token", hub.url)).body(form).send().await.unwrap();
    let posted: Value = posted.json().await.unwrap();
    assert_eq!(bearer(posted["access_token"].as_str().unwrap(), Method::GET, "app/manifests/v1").await.0, 200);
    assert_eq!(anonymous.get("/v2/token").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_quota_is_kept() {
    let system = System::start(options().with("FERRY_REGISTRY__QUOTA_BYTES", 1_000_000)).await;
    let hub = Hub::of(&system);
    hub.push_image("app", "v1", &noise(1, 600_000)).await.unwrap();
    let location = hub.begin("app").await.unwrap();
    let answer = hub.call(Method::PATCH, &location).body(noise(2, 600_000)).send().await.unwrap();
    let text = answer.text().await.unwrap();
    assert!(text.contains("DENIED") && text.contains("quota of 1 MiB"), "{text}");
    // Without a length it is noticed on the way.
    let pieces = futures::stream::iter((0..60).map(|n| Ok::<_, std::io::Error>(noise(n, 10_000))));
    let call = hub.call(Method::PATCH, &location).body(reqwest::Body::wrap_stream(pieces));
    assert_eq!(refusal(call.send().await.unwrap()).await, (403, "DENIED".into()));
    hub.push("app", &noise(3, 300_000)).await.unwrap().error_for_status().unwrap();
    assert_eq!(hub.push("other", &noise(1, 600_000)).await.err().and_then(|e| e.status()), Some(StatusCode::FORBIDDEN));
    assert_eq!(hub.get("app/manifests/v1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_full_disk_is_named_and_spoils_nothing() {
    needs!(SmallDisk);
    let room = Room::new(16);
    let system = System::start(options().with("FERRY_BLOBS__URL", room.path().join("blobs").display())).await;
    let hub = Hub::of(&system);
    let layer = noise(1, 4 << 20);
    hub.push_image("app", "v1", &layer).await.unwrap();
    let large = noise(2, 14 << 20);
    let location = hub.begin("app").await.unwrap();
    let answer = hub.call(Method::PATCH, &location).body(large.clone()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text().await.unwrap().contains("disk is full"));
    assert_eq!(hub.get(&format!("app/blobs/{}", Digest::of(&layer))).await.bytes().await.unwrap(), layer);
    assert_eq!(hub.call(Method::DELETE, &location).send().await.unwrap().status(), StatusCode::NO_CONTENT);
    hub.push_image("app", "v2", &large[..6 << 20]).await.unwrap();
    assert_eq!(
        hub.get(&format!("app/blobs/{}", Digest::of(&large[..6 << 20]))).await.bytes().await.unwrap(),
        large[..6 << 20]
    );
}

/// Where an upload goes on.
async fn offset(hub: &Hub, location: &str) -> usize {
    let range = header(&hub.get(location).await, "range");
    range
        .strip_prefix("0-")
        .and_then(|end| end.parse::<usize>().ok())
        .map_or(0, |end| if end == 0 { 0 } else { end + 1 })
}

#[tokio::test]
async fn a_push_goes_on_after_the_server_was_killed() {
    let mut system = System::start(options()).await;
    let hub = Hub::of(&system);
    let bytes = Arc::new(noise(1, 20_000_000));
    let location = hub.begin("app").await.unwrap();
    let mut kills = 0;
    loop {
        let at = offset(&hub, &location).await;
        if kills == 3 {
            let rest = bytes[at..].to_vec();
            let answer = hub.call(Method::PATCH, &location).body(rest).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
            break;
        }
        let left = bytes[at..].chunks(50_000).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let slow = futures::stream::iter(left).then(async |piece| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok::<_, std::io::Error>(piece)
        });
        let sending = hub.call(Method::PATCH, &location).body(reqwest::Body::wrap_stream(slow)).send();
        let sending = tokio::spawn(sending);
        tokio::time::sleep(Duration::from_millis(400)).await;
        system.kill_server();
        assert!(sending.await.unwrap().is_err(), "the connection broke");
        system.start_server().await;
        kills += 1;
        assert!(offset(&hub, &location).await > at, "what had arrived is there");
    }
    let digest = Digest::of(&bytes);
    let answer = hub.call(Method::PUT, &format!("{location}?digest={digest}")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED, "{}", answer.text().await.unwrap());
    assert!(hub.get(&format!("app/blobs/{digest}")).await.bytes().await.unwrap() == bytes[..]);
}

/// Pushers, a sweep with hardly any grace, and a server that is killed again and again: every manifest that was acknowledged
/// is whole; and when all are deleted, nothing is left in the blob store.
async fn kills_beside_pushes(backend: Backend) {
    let options = options().on(backend).with("FERRY_REGISTRY__GRACE_S", 1).with("FERRY_REGISTRY__SWEEP_S", 1);
    let mut system = System::start(options).await;
    let hub = Hub::of(&system);
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let next = Arc::new(AtomicU64::new(1));
    let pusher = |n: u64| {
        let (hub, stop, acknowledged, next) =
            (hub.clone(), Arc::clone(&stop), Arc::clone(&acknowledged), Arc::clone(&next));
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                // Some layers are everybody's.
                let number = next.fetch_add(1, Ordering::Relaxed);
                let (seed, tag) = (if number % 3 == 0 { number % 5 } else { number + 10 }, format!("t{n}-{number}"));
                match hub.push_image("app", &tag, &noise(seed, 150_000)).await {
                    Ok(()) => drop(acknowledged.lock().unwrap().insert(tag, seed)),
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        })
    };
    let pushers: Vec<_> = (0..3).map(pusher).collect();
    for n in 0..4u64 {
        tokio::time::sleep(Duration::from_millis(900 + n * 170)).await;
        system.kill_server();
        system.start_server().await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::Relaxed);
    for pusher in pushers {
        pusher.await.unwrap();
    }
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    assert!(acknowledged.len() > 3, "{} images came through", acknowledged.len());
    tokio::time::sleep(seconds(2)).await;
    for (tag, seed) in &acknowledged {
        let answer = hub.get(&format!("app/manifests/{tag}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{tag}");
        let digest = Digest::of(&noise(*seed, 150_000));
        let layer = hub.get(&format!("app/blobs/{digest}")).await;
        assert_eq!(layer.status(), StatusCode::OK, "{tag}");
        assert_eq!(Digest::of(&layer.bytes().await.unwrap()), digest, "{tag}");
    }
    // Also those of which no answer arrived.
    let tags: Value = hub.get("app/tags/list").await.json().await.unwrap();
    for tag in tags["tags"].as_array().unwrap() {
        let manifest = hub.get(&format!("app/manifests/{}", tag.as_str().unwrap())).await;
        let digest = header(&manifest, "docker-content-digest");
        hub.call(Method::DELETE, &format!("app/manifests/{digest}")).send().await.unwrap();
    }
    let dir = system.root().join("data/blobs/registry").join(&hub.org);
    until("the blob store is empty", seconds(20), async || {
        let left = fs_err::read_dir(&dir).unwrap().count();
        if left == 0 { Ok(()) } else { Err(format!("{left} objects")) }
    })
    .await;
    eprintln!("{} images, 4 kills", acknowledged.len());
}

#[tokio::test]
async fn kills_beside_pushes_and_sweeps_lose_nothing() {
    kills_beside_pushes(Backend::Sqlite).await;
}

#[tokio::test]
async fn kills_beside_pushes_and_sweeps_lose_nothing_on_postgresql() {
    kills_beside_pushes(Backend::Postgres).await;
}

#[tokio::test]
async fn a_push_goes_on_at_another_replica() {
    let s3 = testkit::s3().await;
    let options = options()
        .on(Backend::Postgres)
        .with("FERRY_BLOBS__URL", format!("s3://{}/x", s3.bucket))
        .with("FERRY_BLOBS__S3_ENDPOINT", &s3.endpoint)
        .with("FERRY_BLOBS__S3_REGION", "eu-west-1")
        .with("FERRY_BLOBS__S3_ACCESS_KEY_ID", s3.access_key_id)
        .with("FERRY_BLOBS__S3_SECRET_ACCESS_KEY", s3.secret_access_key)
        .with("FERRY_BLOBS__S3_ALLOW_HTTP", true);
    let mut system = System::start(options).await;
    system.add_replica().await;
    let (control, _) = system.listeners();
    let first = Hub::of(&system);
    let second = Hub { url: format!("http://{}", control[1]), ..first.clone() };
    let bytes = noise(1, 20_000_000);
    let location = first.begin("app").await.unwrap();
    for (hub, range) in [(&first, 0..9_000_000), (&second, 9_000_000..9_000_100), (&first, 9_000_100..19_000_000)] {
        let text = format!("{}-{}", range.start, range.end - 1);
        let call = hub.call(Method::PATCH, &location).header("content-range", text).body(bytes[range.clone()].to_vec());
        let answer = call.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::ACCEPTED, "{}", answer.text().await.unwrap());
        assert_eq!(offset(&second, &location).await, range.end);
    }
    let digest = Digest::of(&bytes);
    let last = second.call(Method::PUT, &format!("{location}?digest={digest}")).body(bytes[19_000_000..].to_vec());
    assert_eq!(last.send().await.unwrap().status(), StatusCode::CREATED);
    let blob = format!("app/blobs/{digest}");
    assert!(first.get(&blob).await.bytes().await.unwrap() == bytes);
    let part = second.call(Method::GET, &blob).header("range", "bytes=8388600-8388620").send().await.unwrap();
    assert_eq!(part.bytes().await.unwrap(), bytes[8_388_600..8_388_621]);
    // A token of one replica is good at the other.
    let token: Value =
        first.get(&format!("/v2/token?scope=repository:{}/app:pull", first.org)).await.json().await.unwrap();
    let url = format!("{}/v2/{}/{blob}", second.url, first.org);
    let answer = first.http.get(url).bearer_auth(token["token"].as_str().unwrap()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    first.push_image("app", "v1", b"layer").await.unwrap();
    assert_eq!(second.get("app/manifests/v1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_manifest_says_what_is_true_or_is_refused() {
    let system = System::start(options()).await;
    let hub = Hub::of(&system);
    hub.push_image("app", "good", b"layer").await.unwrap();
    let good = image(b"layer");
    let cases: [(&str, Value, (u16, &str)); 6] = [
        ("/schemaVersion", json!(1), (400, "MANIFEST_INVALID")),
        ("/schemaVersion", Value::Null, (400, "MANIFEST_INVALID")),
        ("/layers/0/size", json!(6), (400, "SIZE_INVALID")),
        ("/config/size", json!(0), (400, "SIZE_INVALID")),
        ("/layers/0/size", Value::Null, (400, "MANIFEST_INVALID")),
        ("/layers/0/digest", json!("sha256:abc"), (400, "MANIFEST_INVALID")),
    ];
    for (at, value, expected) in cases {
        let mut bad = good.clone();
        *bad.pointer_mut(at).unwrap() = value;
        let (status, code) = refusal(hub.put_manifest("app", "bad", &bad).await.unwrap()).await;
        assert_eq!((status, code.as_str()), expected, "{at}");
    }
    let index = "application/vnd.oci.image.index.v1+json";
    let body = good.to_string();
    let digest = Digest::of(body.as_bytes());
    for (size, status) in [(body.len() + 1, 400), (body.len(), 201)] {
        let list = json!({"schemaVersion": 2, "mediaType": index, "manifests": [{"mediaType": MANIFEST, "digest": digest, "size": size}]});
        assert_eq!(hub.put_manifest("app", "all", &list).await.unwrap().status(), status, "{size}");
    }
}

#[tokio::test]
async fn nobody_says_where_tokens_are_but_the_server() {
    let system = System::start(options()).await;
    let call = reqwest::Client::new().get(format!("{}/v2/", system.control_url)).header("host", "evil.example");
    let answer = call.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let told = header(&answer, "www-authenticate");
    assert!(told.contains(&format!("realm=\"{}/v2/token\"", system.control_url)), "{told}");
}
