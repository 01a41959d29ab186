//! Errors on the wire: a stable code, a sentence, and a hint. Each code has a page in `docs/errors`.

use serde::{Deserialize, Serialize};

/// The body of every error answer. `error`, `description` and `user_error` are what existing clients read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    pub error: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub user_error: bool,
    #[serde(default)]
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// `has_dependents`: the components that need what was to be torn down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<String>,
    #[serde(default)]
    pub request_id: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal;)*) => {
        /// Stable error codes, each with its HTTP status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)* }

        impl ErrorCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|c| c.as_str() == text)
            }
        }
    };
}

codes! {
    /// The request can't be read or breaks a rule; the description says which.
    InvalidRequest = "invalid_request", 400;
    /// The app's config has errors; the description lists them.
    InvalidConfig = "invalid_config", 400;
    /// The body is larger than this route takes.
    TooLarge = "too_large", 413;
    /// The body is not in a form that this route reads.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// No token, or one that is unknown, expired or revoked.
    Unauthenticated = "unauthenticated", 401;
    /// The token is good, and its role does not allow this.
    Forbidden = "forbidden", 403;
    /// A browser sent this from another site, or without what our own pages send.
    CrossSite = "cross_site", 403;
    /// Too many tries from one address or account.
    TooManyRequests = "too_many_requests", 429;
    /// The org is unknown to this account.
    UnknownOrg = "unknown_org", 403;
    /// The request needs to say which org it is about.
    OrgMissing = "org_missing", 400;
    /// There is no such thing, or it belongs to someone else.
    NotFound = "not_found", 404;
    /// The name is taken.
    NameTaken = "name_taken", 409;
    /// The thing is not in a state that allows this.
    Conflict = "conflict", 409;
    /// Other components need what is to be torn down; say what shall become of them.
    HasDependents = "has_dependents", 409;
    /// The same idempotency key came with another request.
    IdempotencyMismatch = "idempotency_mismatch", 409;
    /// The execution's epoch is not the current one: stop what it does.
    LeaseLost = "lease_lost", 409;
    /// A newer session has taken this runner's place.
    SessionFenced = "session_fenced", 409;
    /// The vendor revoked this runner, or deleted its install.
    RunnerRevoked = "runner_revoked", 409;
    /// Log chunks arrived out of order; the answer says which is next.
    LogOutOfOrder = "log_out_of_order", 409;
    /// The join credential is unknown or revoked.
    CredentialRefused = "credential_refused", 401;
    /// The signature of a runner's request is missing or wrong.
    BadSignature = "bad_signature", 401;
    /// The runner's clock is too far from the server's.
    ClockSkew = "clock_skew", 401;
    /// The runner speaks a protocol that this server does not.
    ProtocolUnsupported = "protocol_unsupported", 400;
    /// The server is shutting down or its database can't be reached; try again.
    Unavailable = "unavailable", 503;
    /// Something broke on the server; the request id finds it in the server's log.
    Internal = "internal", 500;
}

impl ErrorCode {
    /// Whether the same request may succeed later.
    pub const fn is_transient(self) -> bool {
        // The last two: someone updates the older side, or sets the clock. What a runner has to deliver waits for it.
        matches!(self, Self::Unavailable | Self::Internal | Self::ProtocolUnsupported | Self::ClockSkew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_and_its_page_names_it() {
        for code in ErrorCode::ALL {
            let path = format!("{}/../../docs/errors/{}.md", env!("CARGO_MANIFEST_DIR"), code.as_str());
            let page = fs_err::read_to_string(&path).unwrap_or_default();
            assert!(page.starts_with(&format!("# `{}`", code.as_str())), "docs/errors/{}.md is missing", code.as_str());
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
        }
    }
}
