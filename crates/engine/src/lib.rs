//! Workflows: which steps one has ([`plan`]), and what happens to it next ([`Workflow::advance`]).
//!
//! Pure: the time, ids and what other workflows hold are arguments. What must be done outside follows from the steps that are in progress. The state of
//! a workflow is derived from its steps, so it can't say `success` in the middle.

#![warn(clippy::wildcard_enum_match_arm)]

mod advance;
pub mod health;
mod plan;
mod steps;
mod workflow;

pub use advance::{Context, Ended, Event, Held, Refused, Response, SETTLED};
pub use plan::{PlanError, Situation, plan};
pub use steps::Steps;
pub use workflow::{
    Answer, Changes, ComponentOp, Judged, Lock, OnError, Plan, Request, SandboxOp, Step, StepKind, StepStatus, Work,
    Workflow, WorkflowKind, WorkflowStatus,
};
