//! Wire types of the Runner API. Every request but the join is signed with the session's key.

use model::health::Observation;
use model::papers::{EndorsedKey, Signed};
use model::runner::{HeldState, RunnerKind, RunnerReport, RunnerSettings};
use model::{ExecutionId, InstallId, JobGroup, JobId, JobType, LogStreamId, OrgId, RunnerId, StepResult, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::control::wire;

wire! {
    /// Opens a new session generation, which fences the one before.
    pub struct JoinRequest {
        pub credential: String,
        /// Public half of the session's key, base64url.
        pub public_key: String,
        /// Signature of `join_proof` with that key: the caller holds the private half.
        pub proof: String,
        pub version: String,
        pub hostname: String,
    }

    /// The keys that sign orders and grants: what a runner looks at before it joins.
    pub struct KeysAnswer {
        pub keys: Vec<EndorsedKey>,
    }

    pub struct JoinAnswer {
        pub runner_id: RunnerId,
        pub name: String,
        pub kind: RunnerKind,
        pub org_id: OrgId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub install_id: Option<InstallId>,
        pub generation: u64,
        pub keys: Vec<EndorsedKey>,
        pub settings: RunnerSettings,
        pub timing: Timing,
        pub server_time: Timestamp,
    }

    /// The server's constants that a runner lives by.
    pub struct Timing {
        pub hold_s: u64,
        pub lease_s: u64,
        pub renew_s: u64,
        pub offline_s: u64,
    }

    /// An execution that the runner has a directory for.
    pub struct Held {
        pub execution_id: ExecutionId,
        pub epoch: u64,
        #[serde(default)]
        pub state: HeldState,
    }

    /// The one held request of a runner.
    pub struct PollRequest {
        /// Fresh for every poll; comes back in the grants. The same as the nonce header.
        pub nonce: String,
        /// Which process of the runner this is, counted in its state directory, and which of its polls: an older poll that
        /// arrives late, or still lies on another replica, must not speak for the runner any more.
        pub process: u64,
        pub seq: u64,
        /// How many more jobs of each group it can take.
        #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, u32>))]
        pub free: BTreeMap<JobGroup, u32>,
        /// Everything it holds: a claim that is missing goes back to the queue.
        pub held: Vec<Held>,
        /// Cancellations that it already knows of.
        #[serde(default)]
        pub cancels_known: Vec<ExecutionId>,
        pub settings_version: u64,
        /// Which list of what to observe it has; None: it observes nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub watch: Option<u64>,
        pub report: RunnerReport,
        /// Answer at once, whatever there is.
        #[serde(default)]
        pub no_wait: bool,
    }

    pub struct PollAnswer {
        #[serde(default)]
        pub jobs: Vec<Assignment>,
        /// Repeated in every answer until the result is in.
        #[serde(default)]
        pub cancels: Vec<ExecutionId>,
        /// Executions whose epoch is no longer current: interrupt them.
        #[serde(default)]
        pub lost: Vec<ExecutionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub settings: Option<RunnerSettings>,
        /// Which list of what to observe there is; 0: nothing was ever deployed.
        #[serde(default)]
        pub watch: u64,
        #[serde(default)]
        pub keys: Vec<EndorsedKey>,
        /// The server is going down: poll again soon.
        #[serde(default)]
        pub restarting: bool,
        /// Over how long to spread the return after an outage; the server knows how many there are.
        #[serde(default)]
        pub reconnect_ms: u64,
        pub server_time: Timestamp,
        /// Never on the wire: jobs of a newer server that this runner can't read.
        #[serde(skip)]
        pub unreadable: Vec<UnreadableJob>,
    }

    /// What every job of every protocol says: enough to refuse it.
    pub struct UnreadableJob {
        pub job_type: String,
        pub execution_id: ExecutionId,
        pub epoch: u64,
        pub execution_token: String,
    }

    /// A job with its papers.
    pub struct Assignment {
        pub job_id: JobId,
        pub job_type: JobType,
        pub group: JobGroup,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        pub execution_id: ExecutionId,
        pub epoch: u64,
        pub log_stream_id: LogStreamId,
        pub order: Signed,
        pub grant: Signed,
        pub execution_token: String,
        /// The exact text of the spec, when it is small; else it is fetched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub spec: Option<String>,
    }

    pub struct StartAnswer {
        pub lease_s: u64,
    }

    pub struct RenewRequest {
        pub executions: Vec<Held>,
    }

    pub struct RenewAnswer {
        pub renewed: Vec<ExecutionId>,
        pub lost: Vec<ExecutionId>,
        pub cancels: Vec<ExecutionId>,
        pub lease_s: u64,
        pub server_time: Timestamp,
    }

    pub struct ProgressRequest {
        pub epoch: u64,
        pub steps: Vec<StepResult>,
    }

    pub struct LogAnswer {
        /// The chunk that the server wants next.
        pub next_seq: u64,
    }

    pub struct ResultRequest {
        pub epoch: u64,
        pub result: model::ExecutionResult,
    }

    /// What a runner is to observe.
    pub struct WatchAnswer {
        pub version: u64,
        /// None: there is nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub watch: Option<Signed>,
    }

    /// What a runner has observed.
    pub struct HealthRequest {
        /// Of the list that it goes by.
        pub version: u64,
        pub observations: Vec<Observation>,
    }

    pub struct HealthAnswer {
        /// The next one should come in so long.
        pub again_s: u64,
    }

    pub struct ResultAnswer {
        /// False when a result was there before: the first one wins.
        pub recorded: bool,
    }
}

/// What the proof of a join signs: nothing but the word itself, with the key that it proves.
pub fn join_proof(public_key: &str) -> model::papers::RequestText<'_> {
    let nothing = "";
    model::papers::RequestText {
        method: "join",
        path_and_query: nothing,
        runner: nothing,
        generation: 0,
        time: nothing,
        nonce: public_key,
        body: b"",
    }
}
