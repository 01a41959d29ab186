//! Builds, their artifacts, and the logins that sources ask for.

use model::Timestamp;
use model::build::Artifact;

use super::configs::Stamp;
use super::{Job, LogStream};

lean! {
    pub struct CreateBuild {
        required {}
        optional {
            /// Another branch, tag or commit than the config names; the tag of an image.
            git_ref: String,
            /// As the config names it: what clients of the dialect send.
            use_latest: bool,
            /// Build even where the source has not moved.
            anew: bool,
        }
    }

    /// A commit that a build was made of.
    pub struct Commit {
        required {
            sha: String,
        }
        optional {
            author_name: String,
            author_email: String,
            message: String,
        }
    }

    /// A status with what there is to say about it.
    pub struct CompositeStatus {
        required {
            status: String,
        }
        optional {
            status_human_description: String,
        }
    }

    pub struct Build {
        required {
            #[serde(flatten)]
            stamp: Stamp,
            component_id: String,
            component_name: String,
            component_config_connection_id: String,
            component_config_version: u64,
            /// `planning`, `building`, `active` or `error`.
            status: String,
        }
        optional {
            /// The same, but for a build that was cancelled: `cancelled`, where `status` is `error`.
            status_v2: Option<CompositeStatus>,
            status_description: String,
            git_ref: String,
            /// The artifact of an earlier build stands for this one's: the source has not moved.
            no_op: bool,
            same_as: String,
            checksum: String,
            vcs_connection_commit: Option<Commit>,
            /// Where it was copied from, and what was there.
            source_ref: String,
            source_digest: String,
            artifact: Option<Artifact>,
            /// Steps of the build that an earlier one had done, of how many.
            cache_hits: u64,
            cache_steps: u64,
            /// Nanoseconds, from the start of its job to its end.
            duration: i64,
            log_stream: Option<LogStream>,
            runner_job: Option<Job>,
        }
    }

    pub struct SyncArtifact {
        required {}
        optional {
            /// A build of the install's app.
            build_id: String,
            /// Or the last good build of a component, by name or id.
            component: String,
            /// `host[:port]/path` of the install's own registry; the vendor's is read directly where nothing is said.
            repository: String,
            /// That registry speaks HTTP without TLS.
            plain_http: bool,
        }
    }

    pub struct CreateSourceLogin {
        required {
            /// The beginning of the addresses that it is for, as `github.com/acme` or `registry.example.com`.
            prefix: String,
            username: String,
            password: String,
        }
        optional {
            /// It is not used after this.
            expires_at: Option<Timestamp>,
        }
    }

    pub struct SourceLogin {
        required {
            prefix: String,
            username: String,
            created_by_id: String,
            created_at: Timestamp,
        }
        optional {
            expires_at: Option<Timestamp>,
        }
    }
}
