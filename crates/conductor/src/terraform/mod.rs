//! Owns what is done to Terraform workspaces outside of workflows.
//! Handlers call it.
//! No plain state.

pub(crate) mod workspaces;
