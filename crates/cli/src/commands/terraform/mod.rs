//! Owns the commands about Terraform states.
//! `commands.rs` calls them.
//! No plain state.

pub(crate) mod states;
