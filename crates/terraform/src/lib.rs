//! Reads what terraform and OpenTofu say, and makes of it what people read.
//!
//! A plan (`terraform show -json`) becomes a `Plan`: small, masked, with exact counts. A state file becomes a `State`.
//! The lines of `-json` runs go through `Progress`. `draw` gives a plan as lines of text.
//!
//! Nothing here does I/O beyond the given reader, and documents are streamed: one resource is held at a time.

mod address;
mod diagnostic;
mod diff;
mod draw;
mod keep;
mod model;
mod module;
mod plan;
mod progress;
mod reason;
mod secrets;
mod show;
mod state;
mod stateful;
mod stream;

pub use draw::{Line, Tone, draw, summary};
pub use model::{
    Action, AttributeChange, Changes, FORMAT, Limits, Omitted, OutputAction, OutputChange, Plan, ResourceChange, Shown,
};
pub use module::{InvalidModule, Module, is_module_file, is_values_file, names_given, wrong_values};
pub use plan::{PlanError, read_plan};
pub use progress::{Progress, ResourceProgress, Status};
pub use secrets::{Secrets, secrets_of_plan};
pub use state::{
    InstanceStatus, Mode, Output, State, StateError, StateHead, StateResource, read_state, read_state_head,
};
pub use stateful::holds_data;
pub use stream::ReadError;
