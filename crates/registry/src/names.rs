//! Paths, names, tags and ranges. Names have slashes in them, so a path is read from its end.

use std::ops::Range;

use model::{BlobId, OrgId};

use crate::error::{Code, Refusal};

/// A repository of an org that the caller may use.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) org: OrgId,
    /// The whole name, beginning with the org.
    pub(crate) name: String,
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Base,
    Token,
    Catalog,
    Tags(String),
    Referrers(String, String),
    Manifest(String, String),
    Blob(String, String),
    Uploads(String),
    Upload(String, BlobId),
}

impl Call {
    pub(crate) fn parse(path: &str) -> Result<Self, Refusal> {
        let path = path.strip_prefix("/v2").unwrap_or(path);
        let path = path.strip_prefix('/').unwrap_or(path).replace("%3A", ":").replace("%3a", ":");
        match path.as_str() {
            "" => return Ok(Self::Base),
            "token" => return Ok(Self::Token),
            "_catalog" => return Ok(Self::Catalog),
            _ => {}
        }
        if let Some(name) = path.strip_suffix("/tags/list") {
            return Ok(Self::Tags(checked(name)?));
        }
        if let Some(name) = path.strip_suffix("/blobs/uploads").or_else(|| path.strip_suffix("/blobs/uploads/")) {
            return Ok(Self::Uploads(checked(name)?));
        }
        let no_route = || Refusal::new(Code::NameUnknown, format!("there is no route /v2/{path}"));
        let (head, last) = path.rsplit_once('/').ok_or_else(no_route)?;
        if let Some(name) = head.strip_suffix("/blobs/uploads") {
            let id = BlobId::parse(last).map_err(|_| Refusal::from(store::StoreError::NotFound("upload")))?;
            return Ok(Self::Upload(checked(name)?, id));
        }
        let (name, kind) = head.rsplit_once('/').ok_or_else(no_route)?;
        match kind {
            "manifests" => Ok(Self::Manifest(checked(name)?, last.to_owned())),
            "blobs" => Ok(Self::Blob(checked(name)?, last.to_owned())),
            "referrers" => Ok(Self::Referrers(checked(name)?, last.to_owned())),
            _ => Err(no_route()),
        }
    }

    pub(crate) fn repository(&self) -> Option<&str> {
        match self {
            Self::Base | Self::Token | Self::Catalog => None,
            Self::Tags(name)
            | Self::Referrers(name, _)
            | Self::Manifest(name, _)
            | Self::Blob(name, _)
            | Self::Uploads(name)
            | Self::Upload(name, _) => Some(name),
        }
    }
}

const NAME_BYTES: usize = 255;

/// Parts of lower-case letters and digits, joined by `/`; inside a part by `.`, `_`, `__` or any number of `-`.
pub(crate) fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |part: &str| {
        let edges = part.bytes().next().is_some_and(good) && part.bytes().next_back().is_some_and(good);
        let joints = part.split(|c: char| c.is_ascii() && good(c as u8)).filter(|joint| !joint.is_empty());
        edges && joints.into_iter().all(|j| matches!(j, "." | "_" | "__") || j.bytes().all(|b| b == b'-'))
    };
    name.len() <= NAME_BYTES && name.split('/').all(part)
}

fn checked(name: &str) -> Result<String, Refusal> {
    if is_name(name) {
        return Ok(name.to_owned());
    }
    let name: String = name.chars().take(NAME_BYTES).collect();
    let text =
        "is no name of a repository: lower-case letters and digits, with `/`, `.`, `_`, `__` or `-` between them";
    Err(Refusal::new(Code::NameInvalid, format!("`{name}` {text}")))
}

/// A letter, a digit or `_`, then up to 127 of these, `.` or `-`.
pub(crate) fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128 && tag.bytes().next().is_some_and(word) && tag.bytes().all(|b| word(b) || matches!(b, b'.' | b'-'))
}

/// The org that a name begins with.
pub(crate) fn org_of(name: &str) -> Option<OrgId> {
    let (org, rest) = name.split_once('/')?;
    OrgId::parse(org).ok().filter(|_| !rest.is_empty())
}

/// `bytes=A-B`, `bytes=A-` or `bytes=-N`, as a range; `None` for what is not understood, which means the whole.
pub(crate) fn byte_range(text: &str, size: u64) -> Result<Option<Range<u64>>, Refusal> {
    let parse = || {
        let (start, end) = text.strip_prefix("bytes=")?.split_once('-')?;
        Some(match (start, end) {
            ("", count) => {
                let count: u64 = count.parse().ok()?;
                (size.saturating_sub(count), if count == 0 { 0 } else { size })
            }
            (start, "") => (start.parse().ok()?, size),
            (start, end) => (start.parse().ok()?, end.parse::<u64>().ok()?.saturating_add(1).min(size)),
        })
    };
    match parse() {
        None => Ok(None),
        Some((start, end)) if start < end => Ok(Some(start..end)),
        Some(_) => {
            let refusal = Refusal::new(Code::RangeInvalid, format!("the blob has {size} bytes"));
            Err(refusal.with(http::header::CONTENT_RANGE, crate::header(&format!("bytes */{size}"))))
        }
    }
}

/// `A-B` of a piece of an upload: where it begins, and how long it is.
pub(crate) fn piece_range(text: &str) -> Option<(u64, u64)> {
    let (start, end) = text.strip_prefix("bytes ").unwrap_or(text).split_once('-')?;
    let end = end.split('/').next()?;
    let (start, end): (u64, u64) = (start.parse().ok()?, end.parse().ok()?);
    Some((start, end.checked_sub(start)?.checked_add(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags() {
        for name in ["a", "org1/a", "a/b/c", "a.b_c__d-e---f", "0/1"] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["", "/", "a/", "/a", "a//b", "A", "a___b", "a..b", "-a", "a-", "a b", "ä", "a/../b", &"a".repeat(256)]
        {
            assert!(!is_name(name), "{name}");
        }
        for tag in ["latest", "v1.0", "_", "A-b.C_d", &"t".repeat(128)] {
            assert!(is_tag(tag), "{tag}");
        }
        for tag in ["", ".a", "-a", "a/b", "a:b", &"t".repeat(129)] {
            assert!(!is_tag(tag), "{tag}");
        }
    }

    #[test]
    fn paths() {
        let id = BlobId::new(model::Timestamp::from_micros(1), 1);
        let text = |s: &str| s.to_owned();
        for (path, call) in [
            ("/v2", Call::Base),
            ("/v2/", Call::Base),
            ("/v2/_catalog", Call::Catalog),
            ("/v2/a/b/tags/list", Call::Tags(text("a/b"))),
            ("/v2/a/manifests/manifests/x", Call::Manifest(text("a/manifests"), text("x"))),
            ("/v2/a/blobs/sha256%3Aab", Call::Blob(text("a"), text("sha256:ab"))),
            ("/v2/a/b/blobs/uploads/", Call::Uploads(text("a/b"))),
            ("/v2/a/b/referrers/d", Call::Referrers(text("a/b"), text("d"))),
        ] {
            assert_eq!(Call::parse(path).expect(path), call, "{path}");
        }
        let upload = Call::parse(&format!("/v2/a/b/blobs/uploads/{id}")).expect("an upload");
        assert_eq!(upload, Call::Upload(text("a/b"), id));
        for path in ["/v2/x", "/v2/a/what/x", "/v2/A/tags/list", "/v2/a/../b/tags/list", "/v2/a/blobs/uploads/17"] {
            assert!(Call::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn ranges() {
        let range = |text: &str| byte_range(text, 10).map_err(|refusal| refusal.code);
        assert_eq!(range("bytes=0-3"), Ok(Some(0..4)));
        assert_eq!(range("bytes=4-"), Ok(Some(4..10)));
        assert_eq!(range("bytes=-3"), Ok(Some(7..10)));
        assert_eq!(range("bytes=-30"), Ok(Some(0..10)));
        assert_eq!(range("bytes=8-100"), Ok(Some(8..10)));
        assert_eq!(range("bytes=0-1,3-4"), Ok(None));
        assert_eq!(range("lines=0-1"), Ok(None));
        for beyond in ["bytes=10-", "bytes=10-12", "bytes=5-4", "bytes=-0"] {
            assert_eq!(range(beyond), Err(Code::RangeInvalid), "{beyond}");
        }
        assert_eq!(piece_range("0-9"), Some((0, 10)));
        assert_eq!(piece_range("5-4"), None);
        assert_eq!(piece_range("0-18446744073709551615"), None);
    }
}
