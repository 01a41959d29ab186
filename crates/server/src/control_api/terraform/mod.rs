//! Owns the routes of Terraform workspaces and their states.
//! Clients call them.
//! No plain state: the control plane has none.

pub(crate) mod workspaces;
