//! Owns accounts, orgs, members and API tokens.
//! The server calls it to authenticate requests.
//! No rules about who may do what: roles are in `model`, and the routes name them.

pub(crate) mod accounts;
pub(crate) mod identities;
pub(crate) mod members;
pub(crate) mod sessions;
