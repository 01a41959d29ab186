//! Owns the commands about accounts, orgs, members and tokens.
//! `commands.rs` calls them.
//! No HTTP but through the client.

pub(crate) mod auth;
mod login;
pub(crate) mod members;
pub(crate) mod orgs;
pub(crate) mod renew;
pub(crate) mod tokens;
