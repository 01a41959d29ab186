//! Manifests, tags, and what refers to a manifest; lists of all of them, page by page.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, LINK, LOCATION};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use model::Digest;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{NewManifest, Referrer, StoreError};

use crate::auth::Caller;
use crate::error::{Answer, Code, Refusal};
use crate::names::{Repository, is_tag, org_of};
use crate::{CONTENT_DIGEST, Registry, digest_of, header, json_response, named, query};

const MANIFEST_BYTES: usize = 4 << 20;
/// Blobs and manifests that one manifest may name.
const NEEDS_MAX: usize = 4096;
const PAGE_MAX: u64 = 1000;
/// Descriptors carry annotations, so a page of them is smaller.
const REFERRERS_PAGE: u64 = 100;
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");
const FILTERS: HeaderName = HeaderName::from_static("oci-filters-applied");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    digest: String,
    size: Option<u64>,
    media_type: Option<String>,
    /// Where else the blob may lie: then the repository need not have it.
    #[serde(default)]
    urls: Option<Vec<String>>,
}

/// What we read of a manifest, of whatever kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<u64>,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    blobs: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    subject: Option<Descriptor>,
    artifact_type: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

fn invalid(text: impl Into<String>) -> Refusal {
    Refusal::new(Code::ManifestInvalid, text)
}

/// A tag, or a digest.
fn check_reference(reference: &str) -> Result<Option<Digest>, Refusal> {
    if reference.contains(':') {
        return digest_of(reference).map(Some);
    }
    if is_tag(reference) {
        return Ok(None);
    }
    let shown: String = reference.chars().take(128).collect();
    Err(Refusal::new(Code::TagInvalid, format!("`{shown}` is no tag: up to 128 letters, digits, `_`, `.` and `-`")))
}

/// Images and indexes have version 2; others of OCI may have none.
fn check_version(media_type: &str, version: Option<u64>) -> Result<(), Refusal> {
    let needs_one =
        [".image.manifest.", ".image.index.", ".distribution.manifest."].iter().any(|t| media_type.contains(t));
    match version {
        Some(2) => Ok(()),
        None if !needs_one => Ok(()),
        Some(other) => Err(invalid(format!("schemaVersion is {other}; it must be 2"))),
        None => Err(invalid("the manifest has no schemaVersion; it must be 2")),
    }
}

/// Reads a manifest: what it is, and what it needs.
fn read(
    at: &Repository,
    content_type: Option<&str>,
    body: Vec<u8>,
    now: model::Timestamp,
) -> Result<NewManifest, Refusal> {
    let document: Document =
        serde_json::from_slice(&body).map_err(|e| invalid(format!("the manifest can't be read: {e}")))?;
    let media_type = match (content_type, &document.media_type) {
        (Some(given), Some(inside)) if given != inside => {
            return Err(invalid(format!("Content-Type is `{given}`, and the manifest says `{inside}`")));
        }
        (Some(given), _) => given.to_owned(),
        (None, Some(inside)) => inside.clone(),
        (None, None) => return Err(invalid("the manifest has no media type: send Content-Type")),
    };
    if media_type.contains("distribution.manifest.v1") {
        return Err(invalid("manifests of schema 1 are not taken; push the image with a newer client"));
    }
    check_version(&media_type, document.schema_version)?;
    let mut sizes = BTreeMap::new();
    let mut digest = |d: &Descriptor| {
        let found = Digest::parse(&d.digest)
            .map_err(|why| invalid(format!("`{}` in the manifest is no digest: {why}", d.digest)))?;
        let size = d.size.ok_or_else(|| invalid(format!("the descriptor of {found} has no size")))?;
        match sizes.insert(found.clone(), size) {
            Some(other) if other != size => Err(invalid(format!("{found} has two sizes: {other} and {size}"))),
            _ => Ok(found),
        }
    };
    let (mut blobs, mut foreign, mut manifests) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let layers = document.layers.iter().chain(&document.blobs).flatten();
    for descriptor in document.config.iter().chain(layers) {
        let elsewhere = descriptor.urls.as_ref().is_some_and(|urls| !urls.is_empty());
        if elsewhere { &mut foreign } else { &mut blobs }.insert(digest(descriptor)?);
    }
    for descriptor in document.manifests.iter().flatten() {
        manifests.insert(digest(descriptor)?);
    }
    let count = blobs.len() + foreign.len() + manifests.len();
    if count > NEEDS_MAX {
        return Err(invalid(format!("the manifest names {count} blobs and manifests; at most {NEEDS_MAX}")));
    }
    let config_type = document.config.as_ref().and_then(|config| config.media_type.clone());
    let artifact_type = document.artifact_type.clone().filter(|t| !t.is_empty()).or(config_type);
    let annotations = document.annotations.as_ref().map(|all| json!(all).to_string());
    let subject = document.subject.as_ref().map(&mut digest).transpose()?;
    Ok(NewManifest {
        org_id: at.org.clone(),
        repository: at.name.clone(),
        digest: Digest::of(&body),
        media_type,
        subject,
        sizes,
        artifact_type,
        annotations,
        blobs: blobs.into_iter().collect(),
        manifests: manifests.into_iter().collect(),
        foreign: foreign.into_iter().collect(),
        tag: None,
        now,
        body,
    })
}

impl Registry {
    pub(crate) async fn get_manifest(&self, at: &Repository, reference: &str) -> Answer {
        let Some(found) = self.store().registry_manifest(&at.org, &at.name, reference).await? else {
            let text = format!("`{}` has no manifest `{reference}`", at.name);
            return Err(self.unknown(at, Code::ManifestUnknown, text).await);
        };
        // A HEAD has its body cut off further out.
        let mut response = Response::new(Body::from(found.body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, found.head.size_bytes.into());
        headers.insert(CONTENT_TYPE, header(&found.head.media_type));
        headers.insert(CONTENT_DIGEST, header(found.head.digest.as_str()));
        Ok(response)
    }

    pub(crate) async fn put_manifest(
        &self,
        at: &Repository,
        reference: &str,
        parts: &Parts,
        body: &mut Option<Body>,
    ) -> Answer {
        let wanted = check_reference(reference)?;
        let too_large = |_| invalid(format!("a manifest has at most {} MiB", MANIFEST_BYTES >> 20));
        let stalled = |_| invalid("the manifest did not come in time");
        let bytes = axum::body::to_bytes(body.take().unwrap_or_default(), MANIFEST_BYTES);
        let bytes =
            tokio::time::timeout(self.inner.settings.stall, bytes).await.map_err(stalled)?.map_err(too_large)?;
        let content_type = parts.headers.get(CONTENT_TYPE).and_then(|h| h.to_str().ok());
        let content_type = content_type.map(|text| text.split(';').next().unwrap_or_default().trim());
        let mut new = read(at, content_type.filter(|text| !text.is_empty()), bytes.into(), self.now())?;
        match wanted {
            Some(digest) if digest != new.digest => {
                let text = format!("the manifest has the digest {}, not {digest}", new.digest);
                return Err(Refusal::new(Code::DigestInvalid, text));
            }
            Some(_) => {}
            None => new.tag = Some(reference.to_owned()),
        }
        let size = new.body.len() as u64;
        if size > self.inner.usage.room(self.store(), &at.org).await? {
            return Err(self.inner.usage.exceeded());
        }
        let (digest, subject) = (new.digest.clone(), new.subject.clone());
        self.store().put_manifest(new).await?;
        self.inner.usage.add(&at.org, size);
        let mut response = StatusCode::CREATED.into_response();
        let headers = response.headers_mut();
        headers.insert(LOCATION, header(&format!("/v2/{}/manifests/{digest}", at.name)));
        headers.insert(CONTENT_DIGEST, header(digest.as_str()));
        if let Some(subject) = subject {
            headers.insert(SUBJECT, header(subject.as_str()));
        }
        Ok(response)
    }

    pub(crate) async fn delete_manifest(&self, at: &Repository, reference: &str) -> Answer {
        match self.store().delete_manifest(&at.org, &at.name, reference, self.now()).await {
            Ok(()) => {
                self.inner.usage.forget(&at.org);
                Ok(StatusCode::ACCEPTED.into_response())
            }
            Err(StoreError::NotFound(_)) => {
                let text = format!("`{}` has no manifest `{reference}`", at.name);
                Err(self.unknown(at, Code::ManifestUnknown, text).await)
            }
            Err(other) => Err(other.into()),
        }
    }

    pub(crate) async fn tags(&self, at: &Repository, parts: &Parts) -> Answer {
        let page = Page::of(parts, PAGE_MAX);
        let found = self.store().registry_tags(&at.org, &at.name, &page.last, page.limit + 1).await?;
        let mut tags = found.ok_or_else(|| Refusal::no_repository(&at.name))?;
        let next = page.cut(&mut tags, String::as_str);
        let body = json!({ "name": at.name, "tags": tags });
        Ok(page.linked(json_response(StatusCode::OK, &body), &format!("/v2/{}/tags/list", at.name), next, ""))
    }

    /// The repositories of all orgs that the caller is in.
    pub(crate) async fn catalog(&self, caller: &Caller, parts: &Parts) -> Answer {
        let page = Page::of(parts, PAGE_MAX);
        let mut grants: Vec<_> = caller.listed()?.iter().collect();
        grants.sort_by(|a, b| a.org.cmp(&b.org));
        let mut names = Vec::new();
        for grant in grants {
            // Names begin with their org, so orgs before that of the last name are done.
            if org_of(&page.last).is_some_and(|last| grant.org < last) {
                continue;
            }
            let wanted = page.limit + 1 - names.len() as u64;
            if let Some(listed) = &grant.repositories {
                let mut listed: Vec<String> = listed.iter().filter(|name| **name > page.last).cloned().collect();
                listed.sort();
                for name in listed.into_iter().take(wanted as usize) {
                    if self.store().has_repository(&grant.org, &name).await? {
                        names.push(name);
                    }
                }
            } else {
                names.extend(self.store().registry_repositories(&grant.org, &page.last, wanted).await?);
            }
            if names.len() as u64 > page.limit {
                break;
            }
        }
        let next = page.cut(&mut names, String::as_str);
        let response = json_response(StatusCode::OK, &json!({ "repositories": names }));
        Ok(page.linked(response, "/v2/_catalog", next, ""))
    }

    pub(crate) async fn referrers(&self, at: &Repository, subject: &Digest, parts: &Parts) -> Answer {
        let pairs = query(parts);
        let wanted = named(&pairs, "artifactType").filter(|text| !text.is_empty());
        let page = Page::of(parts, REFERRERS_PAGE);
        let limit = page.limit + 1;
        let mut found = self.store().referrers(&at.org, &at.name, subject, wanted, &page.last, limit).await?;
        let next = page.cut(&mut found, |referrer| referrer.head.digest.as_str());
        let manifests: Vec<Value> = found.iter().map(descriptor).collect();
        let body = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        let response = json_response(StatusCode::OK, &body);
        let filter = wanted
            .map(|text| form_urlencoded::Serializer::new(String::new()).append_pair("artifactType", text).finish());
        let path = format!("/v2/{}/referrers/{subject}", at.name);
        let mut response = page.linked(response, &path, next, filter.as_deref().unwrap_or_default());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(INDEX));
        if wanted.is_some() {
            response.headers_mut().insert(FILTERS, HeaderValue::from_static("artifactType"));
        }
        Ok(response)
    }
}

fn descriptor(referrer: &Referrer) -> Value {
    let head = &referrer.head;
    let mut out = json!({ "mediaType": head.media_type, "digest": head.digest, "size": head.size_bytes });
    if let Some(kind) = &referrer.artifact_type {
        out["artifactType"] = json!(kind);
    }
    if let Some(annotations) = referrer.annotations.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok())
    {
        out["annotations"] = annotations;
    }
    out
}

/// A page of a list: `n` entries after `last`.
struct Page {
    limit: u64,
    last: String,
}

impl Page {
    fn of(parts: &Parts, max: u64) -> Self {
        let pairs = query(parts);
        let limit = named(&pairs, "n").and_then(|n| n.parse().ok()).unwrap_or(max).min(max);
        Self { limit, last: named(&pairs, "last").unwrap_or_default().to_owned() }
    }

    /// Cuts what was read to the page; returns the last entry when more follow.
    fn cut<T>(&self, found: &mut Vec<T>, name: impl Fn(&T) -> &str) -> Option<String> {
        let more = found.len() as u64 > self.limit;
        found.truncate(self.limit as usize);
        found.last().filter(|_| more).map(|last| name(last).to_owned())
    }

    fn linked(&self, mut response: Response, path: &str, next: Option<String>, filter: &str) -> Response {
        if let Some(last) = next {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("n", &self.limit.to_string())
                .append_pair("last", &last)
                .finish();
            let filter = if filter.is_empty() { String::new() } else { format!("&{filter}") };
            response.headers_mut().insert(LINK, header(&format!("<{path}?{query}{filter}>; rel=\"next\"")));
        }
        response
    }
}
