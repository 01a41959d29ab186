//! Rego over what is to be deployed: Terraform plans, Kubernetes objects, images.
//!
//! Owns what a policy sees ([`Subject`]), what it may say ([`Report`]), and whether it can be read at all ([`check`]). Everything
//! fails closed: a policy that can't be read or evaluated denies, and says why. Does no I/O; a policy has no network, no clock and
//! no randomness either. The time is looked at for one thing only: to stop a policy that does not end.

mod calls;
mod check;
mod evaluate;
mod guard;
mod policy;
mod report;
mod subject;
mod unit;

pub use check::{Info, PolicyError, Syntax, check};
pub use evaluate::{Limits, evaluate};
pub use policy::{PACKAGES, Policy, PolicyKind, is_rego};
pub use report::{Report, Severity, Verdict};
pub use subject::Subject;
pub use unit::{Outcome, UnitTest, unit_tests};

/// A policy as text. Real ones have some kilobytes.
pub const POLICY_BYTES_MAX: usize = 256 << 10;
/// What is judged in one call, as JSON.
pub const INPUT_BYTES_MAX: u64 = 64 << 20;
/// A report as it leaves has no longer message.
pub const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// What one policy may say in one call.
pub const VERDICTS_MAX: usize = 500;
