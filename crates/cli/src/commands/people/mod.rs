//! Owns the commands about accounts, orgs and tokens.
//! `commands.rs` calls them.
//! No HTTP but through the client.

pub(crate) mod auth;
pub(crate) mod orgs;
pub(crate) mod tokens;
