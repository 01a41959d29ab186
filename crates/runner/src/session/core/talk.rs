//! What the session's logic and its driver say to each other.

use api::runner::{Assignment, Held, PollAnswer, PollRequest, RenewAnswer, UnreadableJob};
use model::runner::RunnerSettings;
use model::{ExecutionId, Timestamp, WorkspaceId};

/// What the driver tells.
#[derive(Debug)]
pub enum Event {
    /// Time passes; also says how much disk is free.
    Tick {
        disk_free_bytes: u64,
    },
    /// `seq` is the poll's own: an answer that was overtaken by a newer poll says nothing any more.
    PollAnswered {
        seq: u64,
        nonce: String,
        answer: Box<PollAnswer>,
    },
    PollFailed {
        seq: u64,
        over: Option<Over>,
    },
    /// Papers and spec are verified and lie in the execution's directory.
    Prepared(ExecutionId),
    /// They could not be had: the claim goes back.
    NotPrepared(ExecutionId),
    /// They are wrong: nothing is spawned, and the server is told.
    Refused(ExecutionId),
    Started(ExecutionId),
    /// The server did not agree, for good.
    StartRefused(ExecutionId),
    /// No answer: ask again.
    StartFailed(ExecutionId),
    /// The executor is gone, with or without a result.
    Ended {
        id: ExecutionId,
        has_result: bool,
    },
    Renewed(Box<RenewAnswer>),
    RenewFailed {
        over: Option<Over>,
    },
    /// Log and result are in, or will never be taken.
    Delivered(ExecutionId),
    /// The customer's switch.
    Disabled(Option<Timestamp>),
    /// The workspaces whose state waits on this machine for the control plane.
    Rescues(Vec<WorkspaceId>),
    /// Finish what there is, take nothing more, then exit.
    Drain,
    /// Interrupt what there is, then exit.
    Stop,
    /// Exit at once and leave the executors to the next process.
    HandOver,
}

/// What the driver does.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Ends the held poll, if there is one, and sends this one. The driver fills in the nonce.
    Poll(Box<PollRequest>),
    Prepare {
        nonce: String,
        assignment: Box<Assignment>,
    },
    /// Tells the server that the papers were refused, then forgets.
    Refuse(ExecutionId),
    /// Tells the server that this runner does not know such jobs, then forgets.
    RefuseUnreadable(Box<UnreadableJob>),
    Start(ExecutionId),
    /// Marks it started, spawns the executor, and begins to deliver its log.
    Spawn(ExecutionId),
    Cancel {
        id: ExecutionId,
        reason: &'static str,
    },
    Renew(Vec<Held>),
    /// The leases of these are good again: their executors may go on.
    Touch(Vec<ExecutionId>),
    /// There is no more to come from this executor: deliver the rest of its log.
    Finish(ExecutionId),
    /// Removes the directory.
    Remove(ExecutionId),
    /// New settings, to be kept.
    Keep(Box<RunnerSettings>),
    /// Keys that the server offers; good only if trust leads to them.
    Learn(Vec<model::papers::EndorsedKey>),
    /// There is another list of what to observe.
    Observe(u64),
    Exit(Ending),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Asked to, and nothing is left behind.
    Done,
    /// Executors go on; the next process takes them over.
    HandedOver,
    Over(Over),
}

/// Why the control plane listens to this session no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// A newer session has taken this runner's place.
    Fenced,
    /// The vendor revoked this runner, or deleted its install.
    Revoked,
}

impl Over {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fenced => "a newer session has taken this runner's place",
            Self::Revoked => "the vendor revoked this runner, or deleted its install",
        }
    }
}

/// How an execution stands when a process finds it in the state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Running,
    WithResult,
    Dead,
    /// Prepared, and nothing was started: it goes back.
    Unstarted,
}
