//! Why a change is refused although it is well formed: the state of things does not allow it. One variant a reason; nobody makes
//! such a text in passing.

use model::{ConfigId, JobId, Timestamp, WorkflowId};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a newer poll of this runner took its place")]
    OlderPoll,
    #[error(
        "job {0} can't be cancelled: its runner is gone. Check what the job has changed, then record its outcome with `ferry jobs settle {0}`"
    )]
    NothingToCancel(JobId),
    #[error("the step has ended already")]
    StepEnded,
    #[error("`{0}` is not the id of an event")]
    EventId(String),
    #[error("`{0}` is not a kind of event; use a kind like `job.state`, or a family like `job` or `job.*`")]
    EventKind(String),
    #[error("the batch of log chunks can't be read")]
    UnreadableBatch,
    #[error("another request writes to this upload")]
    UploadBusy,
    #[error("the org has {0} open uploads, which is the limit; finish or cancel one")]
    TooManyUploads(u64),
    #[error("manifest {0} needs this blob; delete the manifest first")]
    BlobNeeded(String),
    #[error("the login for {prefix} expired at {at}: renew it with `ferry sources login {prefix}`")]
    LoginExpired { prefix: String, at: Timestamp },
    #[error("the signing key was rotated a moment ago")]
    KeyRotated,
    #[error("the install of this runner was deleted")]
    InstallDeleted,
    #[error("the inputs were changed by someone else; try again")]
    InputsChanged,
    #[error("{kind} `{name}` is a {was} and can't become a {is}: give it another name, or retire the old one first")]
    OtherType { kind: &'static str, name: String, was: String, is: String },
    #[error("`{name}` is the name of a retired {kind}; only a new {kind} can take it")]
    RetiredName { kind: &'static str, name: String },
    #[error("{kind} `{name}` is part of the active config: remove it from the app's files and sync, then retire it")]
    InActiveConfig { kind: &'static str, name: String },
    #[error("app `{app}` still has {}", if *installs == 1 { "1 install".to_owned() } else { format!("{installs} installs") })]
    AppHasInstalls { app: String, installs: u64 },
    #[error("workflow {workflow} of install `{install}` is not over")]
    WorkflowOpen { workflow: WorkflowId, install: String },
    #[error("config {config} can't be changed: it is version {version}, and versions never change")]
    ConfigIsVersion { config: ConfigId, version: u64 },
    #[error("config {0} can't be changed: it was abandoned")]
    ConfigAbandoned(ConfigId),
    #[error("config {0} can't be changed: it is not a draft")]
    ConfigNotDraft(ConfigId),
    #[error("the state is locked by {0}, not by the one who writes it")]
    StateNotLocked(String),
    #[error(
        "the state is at serial {serial} of lineage {lineage}; serial {new_serial} of lineage {new_lineage} does not follow it"
    )]
    StateDoesNotFollow { serial: u64, lineage: String, new_serial: u64, new_lineage: String },
    #[error("a running job holds the lock; cancel the job, or wait until it ends")]
    LockInUse,
    #[error("the org needs an admin, and there is no other; make someone else an admin first")]
    LastAdmin,
    #[error("groups of provider `{provider}` give the role {}; change them there", role.as_str())]
    RoleOfGroups { provider: String, role: model::Role },
    #[error("there is an account already; sign in, or ask an admin for an invite")]
    NotTheFirst,
    #[error("{0} sign-ins wait for their codes; try again in a few minutes")]
    TooManyDevices(u64),
    #[error("the org has {0} open invites, which is the limit; revoke some with `ferry orgs revoke-invite`")]
    TooManyInvites(u64),
    #[error("the org has made {0} invites within a day, which is the limit; try again tomorrow")]
    InvitesADay(u64),
    #[error(
        "the address was invited {0} times within a day, which is the limit; pass one of the links on, or try again tomorrow"
    )]
    InvitesOfAddress(u64),
    #[error("this request created token {0} before. A token is shown only once; revoke it and create another")]
    TokenShown(String),
    #[error("you have {} saved views, which is the limit; delete one", crate::VIEWS_MAX)]
    TooManyViews,
    #[error("{0}")]
    Labels(String),
}
