//! Owns the routes of orgs, members and API tokens.
//! Clients call them.
//! No rules: handlers parse, authorize and render.

pub(crate) mod members;
pub(crate) mod orgs;
pub(crate) mod sessions;
pub(crate) mod tokens;
