//! Refusals, in the form that the specification gives them.

use axum::response::{IntoResponse as _, Response};
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use store::StoreError;

pub(crate) type Answer = Result<Response, Refusal>;

/// Codes of the specification, and two of ours for what it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    Denied,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    RangeInvalid,
    SizeInvalid,
    TagInvalid,
    TooManyRequests,
    Unauthorized,
    Unsupported,
    Unavailable,
    Internal,
}

impl Code {
    fn text(self) -> (&'static str, StatusCode) {
        use StatusCode as S;
        match self {
            Self::BlobUnknown => ("BLOB_UNKNOWN", S::NOT_FOUND),
            Self::BlobUploadInvalid => ("BLOB_UPLOAD_INVALID", S::BAD_REQUEST),
            Self::BlobUploadUnknown => ("BLOB_UPLOAD_UNKNOWN", S::NOT_FOUND),
            Self::Denied => ("DENIED", S::FORBIDDEN),
            Self::DigestInvalid => ("DIGEST_INVALID", S::BAD_REQUEST),
            Self::ManifestBlobUnknown => ("MANIFEST_BLOB_UNKNOWN", S::NOT_FOUND),
            Self::ManifestInvalid => ("MANIFEST_INVALID", S::BAD_REQUEST),
            Self::ManifestUnknown => ("MANIFEST_UNKNOWN", S::NOT_FOUND),
            Self::NameInvalid => ("NAME_INVALID", S::BAD_REQUEST),
            Self::NameUnknown => ("NAME_UNKNOWN", S::NOT_FOUND),
            Self::RangeInvalid => ("BLOB_UPLOAD_INVALID", S::RANGE_NOT_SATISFIABLE),
            Self::SizeInvalid => ("SIZE_INVALID", S::BAD_REQUEST),
            Self::TagInvalid => ("TAG_INVALID", S::BAD_REQUEST),
            Self::TooManyRequests => ("TOOMANYREQUESTS", S::TOO_MANY_REQUESTS),
            Self::Unauthorized => ("UNAUTHORIZED", S::UNAUTHORIZED),
            Self::Unsupported => ("UNSUPPORTED", S::METHOD_NOT_ALLOWED),
            Self::Unavailable => ("UNAVAILABLE", S::SERVICE_UNAVAILABLE),
            Self::Internal => ("UNKNOWN", S::INTERNAL_SERVER_ERROR),
        }
    }
}

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    message: String,
    headers: Box<HeaderMap>,
    /// For the log alone.
    internal: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), headers: Box::default(), internal: None }
    }

    /// Not there, or another org's: nobody can tell which.
    pub(crate) fn no_repository(name: &str) -> Self {
        Self::new(Code::NameUnknown, format!("there is no repository `{name}`"))
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(crate) fn log(&self, parts: &Parts) {
        let (code, status) = self.code.text();
        if status.is_server_error() {
            let (method, path) = (&parts.method, parts.uri.path());
            let internal = self.internal.as_deref().unwrap_or_default();
            tracing::error!(%method, path, code, internal, message = self.message, "the registry failed");
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let (code, status) = self.code.text();
        let body = serde_json::json!({ "errors": [{ "code": code, "message": self.message }] });
        let mut response = (status, body.to_string()).into_response();
        response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().extend(*self.headers);
        response
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotFound("upload") => {
                Self::new(Code::BlobUploadUnknown, "there is no such upload: it was finished, ended, or has expired")
            }
            StoreError::NotFound("blob") => {
                let text = "the blob is in the database, and not in the blob store";
                Self { internal: Some(text.into()), ..Self::new(Code::Internal, "the blob is damaged") }
            }
            StoreError::ContentMissing(digest) => {
                Self::new(Code::ManifestBlobUnknown, format!("the manifest needs {digest}, which the repository lacks"))
            }
            StoreError::SizeMismatch { .. } => Self::new(Code::SizeInvalid, message),
            StoreError::Refused(_) => Self::new(Code::TooManyRequests, message),
            StoreError::Full => {
                let text = "the registry's disk is full; it takes nothing until there is room";
                Self { internal: Some(message), ..Self::new(Code::Unavailable, text) }
            }
            other if other.is_transient() => {
                let text = "the registry can't reach its storage right now; try again";
                Self { internal: Some(message), ..Self::new(Code::Unavailable, text) }
            }
            _ => Self { internal: Some(message), ..Self::new(Code::Internal, "something broke in the registry") },
        }
    }
}
