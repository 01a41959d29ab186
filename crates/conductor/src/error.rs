//! Why a change is not made. Each room has an enum of its own reasons; no reason is made up in passing.

use config::Problem;
use model::spec::SECRET_BYTES_MIN;
use model::{BuildId, Digest, JobId, RevisionId};
use store::StoreError;

use crate::jobs::settle::SettleError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error(transparent)]
    Install(#[from] InstallError),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Settle(#[from] SettleError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    People(#[from] PeopleError),
}

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request itself is wrong.
    Invalid,
    /// What it is about is not there.
    NotFound,
    /// Whoever asks may not.
    Forbidden,
    TooLarge,
    /// The app's files have mistakes.
    InvalidConfig,
    /// Something else needs what is to go.
    HasDependents,
    /// The request is fine, and what it is about is not in a state for it.
    Conflict,
}

impl Error {
    /// Whether the answer is "no", and asking the same again changes nothing. A store that does not answer has said nothing.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Store(error) if !matches!(error, StoreError::Refused(_)))
    }

    /// Whether the same may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }

    /// Of everything but the store's errors, which have classes of their own.
    pub fn class(&self) -> Class {
        match self {
            Self::App(error) => error.class(),
            Self::Install(error) => error.class(),
            Self::Job(JobError::Spec(_) | JobError::NoArchive { .. } | JobError::OverTimeout { .. }) => Class::Invalid,
            Self::Job(JobError::NoSuchAction { .. }) => Class::NotFound,
            Self::Settle(SettleError::Outcome) => Class::Invalid,
            Self::Build(BuildError::Reference(_) | BuildError::Login(_)) => Class::Invalid,
            Self::Runner(RunnerError::TooLarge) => Class::TooLarge,
            Self::Runner(_) | Self::Log(LogError::Retention) => Class::Invalid,
            Self::People(error) => error.class(),
            Self::Workflow(WorkflowError::ApproverMay) => Class::Forbidden,
            Self::Store(_)
            | Self::Job(_)
            | Self::Settle(_)
            | Self::Build(_)
            | Self::State(_)
            | Self::Workflow(_)
            | Self::Log(_) => Class::Conflict,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::App(error) => error.hint(),
            Self::Install(error) => error.hint(),
            Self::Job(error) => error.hint(),
            Self::Settle(error) => error.hint(),
            Self::State(StateError::LockInUse { job }) => Some(format!("run `ferry jobs cancel {job}`")),
            Self::Store(_)
            | Self::Build(_)
            | Self::State(_)
            | Self::Workflow(_)
            | Self::Runner(_)
            | Self::Log(_)
            | Self::People(_) => None,
        }
    }
}

/// Of orgs, members and tokens.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    #[error("{0}")]
    Name(String),
    #[error("this token is for one org only; use a token of the account itself")]
    OneOrg,
    #[error("a simulation has no setting `{name}`; it has {known}")]
    NoSuchSetting { name: String, known: String },
    #[error("`{name}` of a simulation is at most {most}")]
    SettingTooLarge { name: String, most: u64 },
    #[error("expires_in_s must be positive")]
    Expired,
    #[error("a token for telemetry needs the role operator")]
    TelemetryToken,
    #[error("{0}")]
    Email(String),
    #[error("{provider} says that the address {email} is not verified; verify it there, then sign in again")]
    NotVerified { provider: String, email: String },
    #[error("{provider} names no e-mail address for you; it must give the scope `email`")]
    NoEmail { provider: String },
    #[error("{email} has no invite and belongs to no org here; ask an admin of the org for an invite")]
    NotInvited { email: String },
    #[error(
        "this invite is for {invited}, and you have signed in as {email}; sign in as {invited}, or ask for another invite"
    )]
    OtherInvitee { invited: String, email: String },
    #[error(
        "you are signed in as {email}, who belongs to {org} already; to accept it as somebody else, sign out first or use another browser"
    )]
    MemberAlready { email: String, org: String },
    #[error("the role of an invite is at most your own, which is {}", .0.as_str())]
    HigherRole(model::Role),
    #[error("the code that the CLI has shown to take its sign-in is wrong")]
    Challenge,
    #[error("only a person who is signed in can do this, not an API token")]
    NeedsSession,
    #[error("this token is narrower than its account; sign in, or use a token of the account itself")]
    Narrow,
    #[error("several accounts have the address {email}: {ids}; pass an id")]
    SeveralAccounts { email: String, ids: String },
}

impl PeopleError {
    fn class(&self) -> Class {
        match self {
            Self::OneOrg
            | Self::NotVerified { .. }
            | Self::NoEmail { .. }
            | Self::NotInvited { .. }
            | Self::OtherInvitee { .. }
            | Self::HigherRole(_)
            | Self::TelemetryToken
            | Self::NeedsSession
            | Self::Narrow => Class::Forbidden,
            Self::Name(_)
            | Self::NoSuchSetting { .. }
            | Self::SettingTooLarge { .. }
            | Self::Expired
            | Self::Email(_)
            | Self::Challenge
            | Self::SeveralAccounts { .. } => Class::Invalid,
            Self::MemberAlready { .. } => Class::Conflict,
        }
    }
}

/// Of apps, their versions, components and actions.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error("{0}")]
    Name(String),
    #[error("`{0}` can't be the name of a component: use lower-case letters, digits and `_`")]
    ComponentName(String),
    #[error("an action needs a name of 1 to 255 characters on one line")]
    ActionName,
    #[error("`{0}` can't be the name of a variable: use letters, digits and `_`")]
    VariableName(String),
    #[error("the archive does not match the digest in the path")]
    OtherDigest,
    #[error("`config` can't be read: {0}")]
    NotAConfig(String),
    #[error("{}", config_text(.0))]
    Config(Vec<Problem>),
    #[error("the checks of the config ended without a result")]
    CheckDied,
    #[error("an app has at most {0} each of components, actions, inputs and installs")]
    TooMany(u64),
    #[error("the local source `{0}` was not uploaded")]
    SourceNotUploaded(String),
    #[error("app `{app}` has no component `{component}`")]
    NoSuchComponent { app: String, component: String },
    #[error("app `{0}` has no active config")]
    NoActiveConfig(String),
    #[error("the app has no config yet")]
    NeverSynced,
}

impl AppError {
    fn class(&self) -> Class {
        match self {
            Self::Config(_) => Class::InvalidConfig,
            Self::NoActiveConfig(_) | Self::NeverSynced | Self::CheckDied => Class::Conflict,
            Self::Name(_)
            | Self::ComponentName(_)
            | Self::ActionName
            | Self::VariableName(_)
            | Self::OtherDigest
            | Self::NotAConfig(_)
            | Self::TooMany(_)
            | Self::SourceNotUploaded(_)
            | Self::NoSuchComponent { .. } => Class::Invalid,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Config(_) => "run `ferry apps validate DIR`: it shows each error with its file and line",
            Self::SourceNotUploaded(_) => "`ferry apps sync` packs and uploads it",
            Self::NoActiveConfig(_) | Self::NeverSynced => "sync the app first with `ferry apps sync DIR`",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// How many problems of a config are told at once.
const PROBLEMS_TOLD: usize = 20;

fn config_text(problems: &[Problem]) -> String {
    let errors: Vec<&Problem> = problems.iter().filter(|p| p.severity == config::Severity::Error).collect();
    let line = |p: &&Problem| {
        let hint = p.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}: {}{hint} [{}]", p.path, p.message, p.code.as_str())
    };
    let lines: Vec<String> = errors.iter().take(PROBLEMS_TOLD).map(line).collect();
    let count = if errors.len() == 1 { "an error".to_owned() } else { format!("{} errors", errors.len()) };
    let more = errors.len().saturating_sub(PROBLEMS_TOLD);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    format!("the config has {count}:\n{}{more}", lines.join("\n"))
}

/// Of installs, their inputs, settings and stacks.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{0}")]
    Name(String),
    #[error("{0}")]
    Labels(String),
    #[error("`{0}` is not an approval option: use prompt or approve-all")]
    ApprovalOption(String),
    #[error("`managed_by` is one line of at most {0} bytes")]
    ManagedBy(usize),
    #[error("{}", wrong.join("\n"))]
    Inputs { wrong: Vec<String>, known: Vec<String> },
    #[error("the app has no component `{0}`")]
    NoComponent(String),
    #[error("component `{0}` is not deployed in this install")]
    NotDeployed(String),
    #[error("component `{0}` takes no checks: it is a job, or its `health.enabled` is `false`")]
    NotObserved(String),
    #[error("`stale_after` is between 1s and {0}m")]
    StaleAfter(u64),
    #[error("a check has a name of at most 100 bytes, and a message of at most {0} characters")]
    CheckText(usize),
    #[error("{0}")]
    Check(engine::health::CheckError),
    #[error("component `{0}` can't be switched off: it is not `toggleable`")]
    NotToggleable(String),
    #[error("`{component}` is still needed by: {} (deployed)", dependents.join(", "))]
    SwitchOffFirst { component: String, dependents: Vec<String> },
    #[error("parts of install `{0}` are still deployed; without the install they can't be torn down")]
    StillDeployed(String),
    #[error("the install changed while the request ran; try again")]
    Busy,
    #[error("the stack was applied in `{told}`, but the install is for `{wanted}`")]
    OtherRegion { told: String, wanted: String },
    #[error("the app has no input `{0}` that the customer gives")]
    NotForCustomers(String),
    #[error("input `{name}`: the value {why}")]
    CustomerInput { name: String, why: String },
}

impl InstallError {
    fn class(&self) -> Class {
        match self {
            Self::SwitchOffFirst { .. } => Class::HasDependents,
            Self::StillDeployed(_)
            | Self::Busy
            | Self::OtherRegion { .. }
            | Self::NotDeployed(_)
            | Self::NotObserved(_)
            | Self::NotForCustomers(_)
            | Self::CustomerInput { .. } => Class::Conflict,
            Self::Name(_)
            | Self::Labels(_)
            | Self::ApprovalOption(_)
            | Self::ManagedBy(_)
            | Self::Inputs { .. }
            | Self::NoComponent(_)
            | Self::StaleAfter(_)
            | Self::CheckText(_)
            | Self::Check(_)
            | Self::NotToggleable(_) => Class::Invalid,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Inputs { known, .. } if known.is_empty() => Some("the app declares no inputs".to_owned()),
            Self::Inputs { known, .. } => Some(format!("inputs of the app: {}", known.join(", "))),
            Self::NotToggleable(_) => Some("write `toggleable = true` into its file, and sync the app".to_owned()),
            Self::SwitchOffFirst { dependents, .. } => Some(format!("switch off {} first", dependents.join(", "))),
            Self::StillDeployed(name) => Some(format!("tear it down first with `ferry installs deprovision {name}`")),
            _ => None,
        }
    }
}

/// Of jobs and actions.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("{0}")]
    Spec(String),
    #[error("step `{step}` names archive {digest}, which was not uploaded")]
    NoArchive { step: String, digest: Digest },
    #[error("`{0}` was not uploaded with the sync")]
    NotUploaded(String),
    #[error("step `{step}`: `{directory}` was not uploaded with the sync")]
    StepNotUploaded { step: String, directory: String },
    #[error("action `{action}` can't be rendered: {problem}")]
    Unrenderable { action: String, problem: String },
    #[error("`env_vars` of `{step}` can't be rendered: {problem}")]
    UnrenderableEnv { step: String, problem: String },
    #[error("{}", .0.join("; "))]
    RunbookInputs(Vec<String>),
    #[error(
        "the customer has switched ad hoc actions off on this runner: run an action of the app instead (`ferry actions run NAME`)"
    )]
    AdHocOff,
    #[error("the job's spec has {bytes} bytes; at most {most_mib} MiB are allowed")]
    TooLarge { bytes: usize, most_mib: usize },
    #[error("the job would wait {waits_s} s, longer than its timeout of {timeout_s} s")]
    OverTimeout { waits_s: u64, timeout_s: u64 },
    #[error("the job's spec can't be written")]
    Unwritable,
    #[error("the action is not part of version {version} of app `{app}`, which the install is at")]
    NoSuchAction { app: String, version: u64 },
    #[error("action `{0}` has no `manual` trigger, so nobody can start it by hand")]
    NotByHand(String),
    #[error("{0}")]
    NotStarted(String),
}

impl JobError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoArchive { .. } => "upload it first with PUT /v1/archives/{digest}",
            Self::NoSuchAction { .. } => {
                "it was removed from the app's files, or another version of it was meant: sync the app, or start it again"
            }
            Self::NotByHand(_) => "add `[[triggers]] type = \"manual\"` and sync",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Of builds, artifacts and the logins that builds use.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the app was never synced")]
    NeverSynced,
    #[error("the component is not part of the active config: sync the app first")]
    NotInConfig,
    #[error("`{0}` is not a branch, tag or commit")]
    Reference(String),
    #[error("component `{0}` has no branch, tag or version to choose")]
    NothingToChoose(String),
    #[error("component `{component}` can't be read: {why}")]
    Damaged { component: String, why: &'static str },
    #[error("build {0} of this component is still running: wait for it, or cancel it")]
    Open(BuildId),
    #[error("`{0}` belongs to another org")]
    OtherOrg(String),
    #[error("the app has no variable `{0}` for this secret: set it with `ferry apps variables set`")]
    NoVariable(String),
    #[error("the secret `{0}` has fewer than {SECRET_BYTES_MIN} characters and can't be masked in the log")]
    ShortSecret(String),
    #[error("the component has no successful build for the active config")]
    NoGoodBuild,
    #[error("build {build} has no artifact: {why}")]
    NoArtifact { build: BuildId, why: String },
    #[error("the component names no source")]
    NoSource,
    #[error("the component names no image")]
    NoImage,
    #[error("`{0}` was not uploaded with the sync")]
    NotUploaded(String),
    #[error("the build has ended already")]
    Ended,
    #[error("a draft can't be built: commit it first")]
    Draft,
    #[error("{0}")]
    Login(&'static str),
}

/// Of Terraform's states.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("revision {revision} is already the active state of {target}")]
    IsCurrent { revision: RevisionId, target: String },
    #[error(
        "revision {revision} is of lineage {lineage}, and the state of {target} of lineage {current}: one can't follow the other"
    )]
    OtherLineage { revision: RevisionId, lineage: String, target: String, current: String },
    #[error("a running job holds the lock; cancel the job, or wait until it ends")]
    LockInUse { job: JobId },
    #[error("this piece of the sealed file exists already, with other bytes")]
    OtherBytes,
}

/// Of workflows and their steps.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    #[error(transparent)]
    Refused(#[from] engine::Refused),
    #[error(transparent)]
    Plan(#[from] engine::PlanError),
    #[error("the workflow can't be read: another version of Ferry wrote it")]
    Unreadable,
    #[error("the workflow is busy: too many changed it at the same time; try again")]
    Busy,
    #[error("the spec of job {0} can't be read")]
    SpecUnreadable(JobId),
    #[error("the plan of job {0} can't be read")]
    PlanUnreadable(JobId),
    #[error("{0}")]
    NoModule(String),
    #[error("{target} can't be rendered: {place}: {problem}")]
    Unrenderable { target: String, place: String, problem: String },
    #[error("the templates of {0} give something that is not text where Terraform needs text")]
    NotText(String),
    #[error("the plan is not the one that was approved")]
    OtherPlan,
    #[error("an approver may approve or deny; this needs the role operator")]
    ApproverMay,
}

/// Of what runners bring.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("a workspace belongs to `components/NAME` or to `sandbox`")]
    Target,
    #[error("this is not the fingerprint of a key")]
    Fingerprint,
    #[error("the plan is not that of this job")]
    OtherPlan,
    #[error("the model of the plan is too large")]
    TooLarge,
    #[error("a sealed file has at most {0} pieces")]
    Pieces(u32),
}

/// Of logs.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("job {0} has not ended: cancel it first")]
    JobOpen(JobId),
    #[error("logs are kept for at least a day (86400 s); 0 keeps them forever")]
    Retention,
}
