//! Wire types of the Control API and the Runner API, their errors, and (feature `client`) the typed client.

#[cfg(feature = "client")]
pub mod client;
pub mod control;
pub mod error;
pub mod runner;
pub mod terraform;

pub use error::{ErrorBody, ErrorCode};

/// Names of HTTP headers.
pub mod headers {
    /// The org that a request is about.
    pub const ORG: &str = "x-nuon-org-id";
    /// Our own pages send it with what changes something; another site can't.
    pub const BROWSER: &str = "x-ferry-request";
    /// The last event that an answer to a page knows of.
    pub const CURSOR: &str = "x-ferry-cursor";
    pub const PAGE_NEXT: &str = "x-nuon-page-next";
    /// The workflow that a request has started.
    pub const WORKFLOW: &str = "x-nuon-install-workflow-id";
    pub const PAGE_OFFSET: &str = "x-nuon-page-offset";
    pub const PAGE_LIMIT: &str = "x-nuon-page-limit";
    /// Cursor of the log readers, in nanoseconds.
    pub const LOG_OFFSET: &str = "x-nuon-api-offset";
    pub const LOG_NEXT: &str = "x-nuon-api-next";
    pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
    pub const REQUEST_ID: &str = "x-request-id";

    pub const PROTOCOL: &str = "x-ferry-protocol";
    pub const RUNNER: &str = "x-ferry-runner";
    pub const GENERATION: &str = "x-ferry-generation";
    pub const TIME: &str = "x-ferry-time";
    pub const NONCE: &str = "x-ferry-nonce";
    pub const SIGNATURE: &str = "x-ferry-signature";
    /// Capability of one execution, beside the session's signature.
    pub const EXECUTION_TOKEN: &str = "x-ferry-execution-token";
}
