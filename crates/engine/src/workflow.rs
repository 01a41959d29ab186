//! What a workflow is made of.

use model::{StepId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use crate::steps::Steps;

/// Skipped steps that one sentence names.
const SKIPPED_NAMED: usize = 3;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub kind: WorkflowKind,
    /// Only shows what would change.
    #[serde(default)]
    pub plan_only: bool,
    /// Works with what was deployed last, whatever has been synced or set since: the way back from drift.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deployed: bool,
}

impl Request {
    /// Whether a step works with what was deployed last: drift is a difference from that, and what is torn down is just that.
    pub const fn is_about_deployed(&self, work: &Work) -> bool {
        let drift = matches!(self.kind, WorkflowKind::DriftRun { .. } | WorkflowKind::DriftRunReprovisionSandbox);
        self.deployed || drift || work.is_teardown()
    }

    /// Whether it brings a version of the app, and not what was deployed before.
    pub const fn brings_a_version(&self) -> bool {
        match self.kind {
            WorkflowKind::Provision
            | WorkflowKind::Reprovision
            | WorkflowKind::ReprovisionSandbox { .. }
            | WorkflowKind::DeployComponents { .. }
            | WorkflowKind::ManualDeploy { .. }
            | WorkflowKind::InputUpdate { .. }
            | WorkflowKind::ActionWorkflowRun { .. }
            | WorkflowKind::RunbookRun { .. }
            | WorkflowKind::SyncSecrets => !self.deployed,
            WorkflowKind::Deprovision
            | WorkflowKind::DeprovisionSandbox
            | WorkflowKind::TeardownComponent { .. }
            | WorkflowKind::TeardownComponents
            | WorkflowKind::DriftRun { .. }
            | WorkflowKind::DriftRunReprovisionSandbox => false,
        }
    }
}

/// The types of workflows; names as in the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkflowKind {
    Provision,
    Reprovision,
    ReprovisionSandbox {
        #[serde(default)]
        skip_components: bool,
    },
    Deprovision,
    DeprovisionSandbox,
    /// All components, or those that are named, in their order.
    DeployComponents {
        #[serde(default)]
        components: Vec<String>,
    },
    ManualDeploy {
        component: String,
        #[serde(default)]
        dependents: bool,
    },
    TeardownComponent {
        component: String,
        /// Those that need it go first.
        #[serde(default)]
        with_dependents: bool,
        /// It goes alone, though others need it.
        #[serde(default)]
        force: bool,
    },
    TeardownComponents,
    InputUpdate {
        inputs: Vec<String>,
    },
    ActionWorkflowRun {
        action: String,
        /// What started it: `manual` or `cron`.
        #[serde(default = "manual")]
        trigger: String,
    },
    RunbookRun {
        runbook: String,
    },
    SyncSecrets,
    DriftRun {
        component: String,
    },
    DriftRunReprovisionSandbox,
}

fn manual() -> String {
    "manual".to_owned()
}

impl WorkflowKind {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Reprovision => "reprovision",
            Self::ReprovisionSandbox { .. } => "reprovision_sandbox",
            Self::Deprovision => "deprovision",
            Self::DeprovisionSandbox => "deprovision_sandbox",
            Self::DeployComponents { .. } => "deploy_components",
            Self::ManualDeploy { .. } => "manual_deploy",
            Self::TeardownComponent { .. } => "teardown_component",
            Self::TeardownComponents => "teardown_components",
            Self::InputUpdate { .. } => "input_update",
            Self::ActionWorkflowRun { .. } => "action_workflow_run",
            Self::RunbookRun { .. } => "runbook_run",
            Self::SyncSecrets => "sync_secrets",
            Self::DriftRun { .. } => "drift_run",
            Self::DriftRunReprovisionSandbox => "drift_run_reprovision_sandbox",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxOp {
    Provision,
    Reprovision,
    Deprovision,
}

impl SandboxOp {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Reprovision => "reprovision",
            Self::Deprovision => "deprovision",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComponentOp {
    Deploy,
    Teardown,
}

impl ComponentOp {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Teardown => "teardown",
        }
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub enum Work {
    GenerateState,
    RunnerServiceAccount,
    GenerateStack,
    AwaitStack,
    UpdateStackOutputs,
    AwaitRunner,
    SandboxPlan {
        op: SandboxOp,
    },
    SandboxApply {
        op: SandboxOp,
    },
    SyncSecrets,
    /// Takes away what syncs of secrets and of images have left in a cluster.
    RemoveSecrets {
        /// The component that puts the cluster out; none: the cluster that secrets are synced to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cluster: Option<String>,
    },
    /// An action; `component` is the one whose hook it is, `trigger` what started it.
    Action {
        action: String,
        trigger: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        component: Option<String>,
    },
    /// An action or a script of a runbook, by its place there.
    Script {
        runbook: String,
        index: usize,
    },
    SyncImage {
        component: String,
    },
    ComponentPlan {
        component: String,
        op: ComponentOp,
    },
    ComponentApply {
        component: String,
        op: ComponentOp,
    },
    /// Waits until what was applied has been healthy for a while.
    VerifyHealth {
        component: String,
    },
    /// Shown and not run.
    Skipped {
        component: String,
    },
}

impl Work {
    /// The component that it is about, hooks included.
    pub fn component(&self) -> Option<&str> {
        match self {
            Self::Action { component, .. } => component.as_deref(),
            Self::SyncImage { component }
            | Self::ComponentPlan { component, .. }
            | Self::ComponentApply { component, .. }
            | Self::VerifyHealth { component }
            | Self::Skipped { component } => Some(component),
            Self::GenerateState
            | Self::RunnerServiceAccount
            | Self::GenerateStack
            | Self::AwaitStack
            | Self::UpdateStackOutputs
            | Self::AwaitRunner
            | Self::SandboxPlan { .. }
            | Self::SandboxApply { .. }
            | Self::SyncSecrets
            | Self::RemoveSecrets { .. }
            | Self::Script { .. } => None,
        }
    }

    /// The part of the install's state that it plans or changes.
    pub fn target(&self) -> String {
        self.component().map_or_else(|| "sandbox".to_owned(), |component| format!("components/{component}"))
    }

    pub const fn is_teardown(&self) -> bool {
        match self {
            Self::ComponentPlan { op, .. } | Self::ComponentApply { op, .. } => matches!(op, ComponentOp::Teardown),
            Self::SandboxPlan { op } | Self::SandboxApply { op } => matches!(op, SandboxOp::Deprovision),
            // What stays deployed needs its secrets.
            Self::RemoveSecrets { .. } => true,
            Self::GenerateState
            | Self::RunnerServiceAccount
            | Self::GenerateStack
            | Self::AwaitStack
            | Self::UpdateStackOutputs
            | Self::AwaitRunner
            | Self::SyncSecrets
            | Self::Action { .. }
            | Self::Script { .. }
            | Self::SyncImage { .. }
            | Self::VerifyHealth { .. }
            | Self::Skipped { .. } => false,
        }
    }

    pub fn is_hook_of_teardown(&self) -> bool {
        matches!(self, Self::Action { trigger, .. } if trigger.contains("teardown") || trigger.contains("deprovision"))
    }

    pub const fn is_plan(&self) -> bool {
        matches!(self, Self::SandboxPlan { .. } | Self::ComponentPlan { .. })
    }

    pub const fn is_apply(&self) -> bool {
        matches!(self, Self::SandboxApply { .. } | Self::ComponentApply { .. })
    }

    /// Begins an attempt at a part of the install: a plan, or the sync of an image.
    pub const fn is_attempt(&self) -> bool {
        self.is_plan() || matches!(self, Self::SyncImage { .. })
    }

    /// Changes what is deployed.
    pub const fn is_deploy(&self) -> bool {
        self.is_apply() || matches!(self, Self::SyncImage { .. })
    }

    /// Done as soon as its turn comes: what it says is kept up to date all the time.
    pub const fn is_instant(&self) -> bool {
        matches!(
            self,
            Self::GenerateState | Self::RunnerServiceAccount | Self::UpdateStackOutputs | Self::Skipped { .. }
        )
    }

    /// Waits for something outside; no job is carried out.
    pub const fn is_wait(&self) -> bool {
        matches!(self, Self::AwaitStack | Self::AwaitRunner | Self::GenerateStack | Self::VerifyHealth { .. })
    }

    pub const fn kind(&self) -> StepKind {
        match self {
            Self::GenerateState => StepKind::Hidden,
            Self::AwaitStack => StepKind::User,
            Self::SandboxPlan { .. } | Self::ComponentPlan { .. } => StepKind::Approval,
            Self::Skipped { .. } => StepKind::Skipped,
            Self::RunnerServiceAccount
            | Self::GenerateStack
            | Self::UpdateStackOutputs
            | Self::AwaitRunner
            | Self::SandboxApply { .. }
            | Self::SyncSecrets
            | Self::RemoveSecrets { .. }
            | Self::Action { .. }
            | Self::Script { .. }
            | Self::SyncImage { .. }
            | Self::VerifyHealth { .. }
            | Self::ComponentApply { .. } => StepKind::System,
        }
    }

    pub const fn is_retryable(&self) -> bool {
        !matches!(self, Self::GenerateStack | Self::AwaitStack | Self::UpdateStackOutputs | Self::AwaitRunner)
    }

    /// Skipping a plan skips its apply, and the hooks after it.
    pub const fn is_skippable(&self) -> bool {
        !matches!(self, Self::GenerateState | Self::AwaitStack | Self::SyncSecrets)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    System,
    User,
    Approval,
    Skipped,
    Hidden,
}

impl StepKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Approval => "approval",
            Self::Skipped => "skipped",
            Self::Hidden => "hidden",
        }
    }
}

/// What must not happen at the same time in an install.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Lock {
    /// Nothing else moves.
    Sandbox,
    /// This component, and the sandbox does not move.
    Component(String),
}

impl Lock {
    pub fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Component(one), Self::Component(other)) => one == other,
            (Self::Sandbox, _) | (_, Self::Sandbox) => true,
        }
    }
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepStatus {
    Pending,
    InProgress,
    ApprovalAwaiting,
    /// A plan that was approved.
    Approved,
    Success,
    /// There was nothing to do.
    AutoSkipped,
    UserSkipped,
    Drifted,
    NoDrift,
    Error,
    /// It was begun, and nobody can say how it ended.
    Unknown,
    ApprovalDenied,
    /// Denied, and the workflow goes on without it.
    DeniedSkipped,
    ApprovalExpired,
    Cancelled,
    NotAttempted,
    /// There is a newer attempt.
    Discarded,
}

impl StepStatus {
    pub const ALL: [Self; 17] = [
        Self::Pending,
        Self::InProgress,
        Self::ApprovalAwaiting,
        Self::Approved,
        Self::Success,
        Self::AutoSkipped,
        Self::UserSkipped,
        Self::Drifted,
        Self::NoDrift,
        Self::Error,
        Self::Unknown,
        Self::ApprovalDenied,
        Self::DeniedSkipped,
        Self::ApprovalExpired,
        Self::Cancelled,
        Self::NotAttempted,
        Self::Discarded,
    ];

    /// As it is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in-progress",
            Self::ApprovalAwaiting => "approval-awaiting",
            Self::Approved => "approved",
            Self::Success => "success",
            Self::AutoSkipped => "auto-skipped",
            Self::UserSkipped => "user-skipped",
            Self::Drifted => "drifted",
            Self::NoDrift => "no-drift",
            Self::Error => "error",
            Self::Unknown => "unknown",
            Self::ApprovalDenied => "approval-denied",
            Self::DeniedSkipped => "denied-skipped",
            Self::ApprovalExpired => "approval-expired",
            Self::Cancelled => "cancelled",
            Self::NotAttempted => "not-attempted",
            Self::Discarded => "discarded",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// What waits for the step may begin.
    pub const fn is_done(self) -> bool {
        matches!(
            self,
            Self::Approved
                | Self::Success
                | Self::AutoSkipped
                | Self::UserSkipped
                | Self::Drifted
                | Self::NoDrift
                | Self::DeniedSkipped
        )
    }

    /// People went on without it after it had failed, or instead of approving it.
    pub const fn is_skipped_failure(self) -> bool {
        matches!(self, Self::UserSkipped | Self::DeniedSkipped)
    }

    /// It ended, and not well.
    pub const fn is_failed(self) -> bool {
        matches!(
            self,
            Self::Error
                | Self::Unknown
                | Self::ApprovalDenied
                | Self::ApprovalExpired
                | Self::Cancelled
                | Self::NotAttempted
        )
    }
}

/// How many things a plan would change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub create: u64,
    pub update: u64,
    pub replace: u64,
    pub destroy: u64,
    /// Outputs that change though no resource does.
    pub outputs: u64,
    /// What exists already and comes under management.
    #[serde(default)]
    pub import: u64,
    /// What gets another address, and stays as it is.
    #[serde(default)]
    pub moved: u64,
    /// What is left in place and known no longer.
    #[serde(default)]
    pub forget: u64,
    /// What else would happen: changes that a later plan has to make, actions of providers.
    #[serde(default)]
    pub other: u64,
    /// Nothing changes there, and what is noted here does not say so yet: an apply tells what is there.
    #[serde(default)]
    pub recorded: u64,
}

impl Changes {
    pub const fn is_noop(&self) -> bool {
        let Self { create, update, replace, destroy, outputs, import, moved, forget, other, recorded } = self;
        *create + *update + *replace + *destroy + *outputs + *import + *moved + *forget + *other + *recorded == 0
    }
}

/// What a plan step has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub digest: String,
    pub changes: Changes,
    /// What it was made of: the rendered spec, and how often its target had been changed before.
    pub basis: String,
    #[serde(default)]
    pub policies: Judged,
    /// Why a person must approve it, whatever was approved beforehand: what the target is like is not certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// Resources that usually hold data and would be destroyed or replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stateful: u64,
    /// Names what it would do: two plans that would do the same to two installs have the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub contents: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How policies judged a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// How many were asked.
    pub asked: u64,
    /// How often one of them came to a verdict; where there was nothing to judge, none did.
    #[serde(default)]
    pub evaluated: u64,
    /// What they said.
    pub denied: u64,
    pub warned: u64,
}

impl Judged {
    /// All of them looked at something and had nothing to say; what they warn of is for a person.
    pub const fn is_passed(&self) -> bool {
        self.asked > 0 && self.evaluated >= self.asked && self.denied == 0 && self.warned == 0
    }
}

/// What was said about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub response: String,
    pub by: String,
    pub note: String,
    pub at: Timestamp,
    /// The plan that it is about.
    pub digest: String,
}

/// One attempt at one thing. Attempts at the same thing share a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: StepId,
    pub slot: u32,
    pub attempt: u32,
    /// Steps of one unit, such as a component with its hooks, its plan and its apply.
    pub group: u32,
    pub name: String,
    pub work: Work,
    /// Slots that must be done before.
    pub after: Vec<u32>,
    /// A plan that nothing is applied of.
    pub look_only: bool,
    pub status: StepStatus,
    /// For what it waits, or why it ended as it did.
    pub reason: String,
    /// Since when a plan waits for an answer.
    pub asked_at: Option<Timestamp>,
    pub plan: Option<Plan>,
    pub answer: Option<Answer>,
    /// How often its group may still be tried again by itself.
    pub auto_retries: u32,
    /// A plan that all policies let pass needs no person's approval.
    pub auto_approve_on_policies: bool,
    /// A person must approve it, whatever was approved beforehand: how the apply before it ended is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
    /// The role in the customer's account that it is carried out with; none where there are no roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

impl Step {
    /// Its name, and which attempt it is.
    pub fn title(&self) -> String {
        if self.attempt == 0 { self.name.clone() } else { format!("{} (retry {})", self.name, self.attempt) }
    }

    /// What it holds now.
    pub fn held(&self) -> Option<Lock> {
        if self.status == StepStatus::InProgress && !self.look_only { self.lock() } else { None }
    }

    /// What it holds while it is in progress; a look holds nothing, and waits all the same until nobody changes what it looks at.
    pub fn lock(&self) -> Option<Lock> {
        match &self.work {
            Work::SandboxPlan { .. } | Work::SandboxApply { .. } => Some(Lock::Sandbox),
            Work::ComponentPlan { component, .. }
            | Work::ComponentApply { component, .. }
            | Work::SyncImage { component } => Some(Lock::Component(component.clone())),
            Work::GenerateState
            | Work::RunnerServiceAccount
            | Work::GenerateStack
            | Work::AwaitStack
            | Work::UpdateStackOutputs
            | Work::AwaitRunner
            | Work::SyncSecrets
            | Work::RemoveSecrets { .. }
            | Work::Action { .. }
            | Work::Script { .. }
            | Work::VerifyHealth { .. }
            | Work::Skipped { .. } => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// What runs is brought to its end, nothing new begins.
    Abort,
    /// What does not need the part that failed goes on.
    Continue,
}

impl OnError {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Continue => "continue",
        }
    }
}

/// Derived from the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkflowStatus {
    Pending,
    InProgress,
    ApprovalAwaiting,
    Success,
    /// Finished, but people went on without steps that had failed or were denied.
    #[serde(rename = "warning")]
    FinishedWithSkips,
    Error,
    Cancelled,
}

impl WorkflowStatus {
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::InProgress,
        Self::ApprovalAwaiting,
        Self::Success,
        Self::FinishedWithSkips,
        Self::Error,
        Self::Cancelled,
    ];

    /// As it is stored, and as the API names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in-progress",
            Self::ApprovalAwaiting => "approval-awaiting",
            Self::Success => "success",
            Self::FinishedWithSkips => "warning",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Nothing happens any more unless a person asks for it.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Success | Self::FinishedWithSkips | Self::Error | Self::Cancelled)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    pub id: WorkflowId,
    pub request: Request,
    pub on_error: OnError,
    /// Plans need no person's approval any more: who said so.
    pub approve_all: Option<String>,
    pub cancelled_by: Option<String>,
    /// Every attempt, in the order they were made.
    pub steps: Steps,
}

impl Workflow {
    /// The newest attempt of every slot, in the order of slots.
    pub fn current(&self) -> Vec<usize> {
        let slots = self.steps.iter().map(|step| step.slot as usize + 1).max().unwrap_or_default();
        let mut current = vec![usize::MAX; slots];
        for (at, step) in self.steps.iter().enumerate() {
            current[step.slot as usize] = at;
        }
        current.retain(|at| *at != usize::MAX);
        current
    }

    pub fn status(&self) -> WorkflowStatus {
        let mut pending = false;
        let (mut running, mut awaiting, mut failed, mut begun, mut skipped) = (false, false, false, false, false);
        for at in self.current() {
            let status = self.steps[at].status;
            running |= status == StepStatus::InProgress;
            awaiting |= status == StepStatus::ApprovalAwaiting;
            failed |= status.is_failed();
            pending |= status == StepStatus::Pending;
            begun |= status != StepStatus::Pending;
            skipped |= status.is_skipped_failure();
        }
        let finished = if skipped { WorkflowStatus::FinishedWithSkips } else { WorkflowStatus::Success };
        let stopped = failed && self.on_error == OnError::Abort || self.cancelled_by.is_some();
        if running {
            WorkflowStatus::InProgress
        } else if self.cancelled_by.is_some() {
            if pending || failed { WorkflowStatus::Cancelled } else { finished }
        } else if stopped {
            WorkflowStatus::Error
        } else if awaiting {
            WorkflowStatus::ApprovalAwaiting
        } else if pending {
            if begun { WorkflowStatus::InProgress } else { WorkflowStatus::Pending }
        } else if failed {
            WorkflowStatus::Error
        } else {
            finished
        }
    }

    /// A step as people see it: in a workflow that is over (`over`), what was never begun was not attempted, and nothing waits.
    pub fn shown(&self, step: &Step, over: bool) -> StepStatus {
        let waits = matches!(step.status, StepStatus::Pending | StepStatus::ApprovalAwaiting);
        if over && waits {
            StepStatus::NotAttempted
        } else if step.status == StepStatus::DeniedSkipped {
            StepStatus::ApprovalDenied
        } else {
            step.status
        }
    }

    /// Whether people may have a step tried again.
    pub fn can_retry(&self, step: &Step) -> bool {
        let failed = matches!(
            step.status,
            StepStatus::Error
                | StepStatus::Unknown
                | StepStatus::ApprovalDenied
                | StepStatus::ApprovalExpired
                | StepStatus::Cancelled
        );
        let open = failed || step.status == StepStatus::ApprovalAwaiting;
        self.cancelled_by.is_none() && step.work.is_retryable() && open
    }

    /// Whether people may go on without a step.
    pub fn can_skip(&self, step: &Step) -> bool {
        self.can_retry(step) && step.work.is_skippable() && step.status != StepStatus::ApprovalAwaiting
    }

    /// The error that people are told first.
    pub fn failure(&self) -> Option<&Step> {
        let failed = |at: &usize| {
            let status = self.steps[*at].status;
            status.is_failed() && status != StepStatus::NotAttempted
        };
        self.current().into_iter().find(failed).map(|at| &self.steps[at])
    }

    /// Why it did not succeed, in one sentence: the first failure, or what was left out.
    pub fn trouble(&self) -> Option<String> {
        if let Some(step) = self.failure() {
            return Some(format!("{}: {}", step.title(), step.reason));
        }
        let mut skipped = Vec::new();
        for at in self.current() {
            let step = &self.steps[at];
            if step.status.is_skipped_failure() {
                skipped.push(format!("{} ({})", step.title(), step.reason));
            }
        }
        let more = skipped.len().saturating_sub(SKIPPED_NAMED);
        skipped.truncate(SKIPPED_NAMED);
        if more > 0 {
            skipped.push(format!("{more} more"));
        }
        (!skipped.is_empty()).then(|| format!("finished without {}", skipped.join(", ")))
    }
}
