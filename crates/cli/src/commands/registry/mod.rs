//! Owns the commands about builds and artifacts.
//! `commands.rs` calls them.
//! No HTTP but through the client and the registry.

pub(crate) mod artifacts;
pub(crate) mod builds;
