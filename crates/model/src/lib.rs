//! Domain types of Ferry: ids, time, names, job states and their transitions, specs, results, the two signed
//! papers of a job, and the frames a log travels in.
//!
//! This crate does no I/O, reads no clock and draws no randomness: time, ids and seeds are arguments.

pub mod build;
pub mod constants;
pub mod deploy;
pub mod digest;
pub mod env;
pub mod health;
pub mod id;
pub mod job;
pub mod job_type;
pub mod json;
pub mod kubernetes;
pub mod labels;
pub mod lines;
pub mod log;
pub mod name;
pub mod overrides;
pub mod papers;
pub mod part;
pub mod result;
pub mod role;
pub mod runner;
pub mod secrets;
pub mod spec;
pub mod terraform;
pub mod time;
pub mod trace;
pub mod waiting;

pub use digest::Digest;
pub use id::*;
pub use job::{JobEvent, JobState};
pub use job_type::{JobFacts, JobGroup, JobType, Retried};
pub use part::PartStatus;
pub use result::{ExecutionResult, JobError, Outcome, StepResult, StepStatus};
pub use role::Role;
pub use runner::RunnerKind;
pub use time::{Clock, Timestamp};
pub use trace::TraceContext;
