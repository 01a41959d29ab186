//! Owns migrations, backups, the sweep of what nothing names, and the modes of files.
//! `ferry admin` and reconcilers call it.
//! No rows of its own, except the versions of the schema.

pub(crate) mod admin;
pub(crate) mod counts;
pub(crate) mod migrate;
pub(crate) mod orphans;
pub(crate) mod private;
