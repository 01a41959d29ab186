//! Reads Kubernetes objects: manifests, what the API server adds to them, what would change, whether they are ready, and how well they are.
//!
//! Plans and states have the shape that the crate `terraform` reads, so that people see one kind of plan and one kind of state.
//! Nothing here does I/O or reads a clock.

mod change;
pub mod health;
mod inventory;
mod manifest;
mod object;
mod pulls;
mod status;
mod values;

pub use change::{Change, Verb, ignore, keep, normalized, plan_document, removed_since};
pub use health::{Health, Verdict, health_of, observed_health_of};
pub use inventory::{Cluster, Deployed, Entry, Inventory, InventoryError, Output};
pub use manifest::{ManifestError, parse, read_objects, read_yaml};
pub use object::{ObjectRef, is_hook, rank};
pub use pulls::PullSecret;
pub use status::{Status, status_of};
pub use values::{ValueError, escaped_value, is_overridden, is_rounded_in_files, set_values};
