//! Owns the planning of builds: recipes, keys, and when a build stands.
//! Syncs, handlers and a reconciler call it.
//! No building: that is the runner.

pub(crate) mod builds;
pub(crate) mod logins;
pub(crate) mod recipes;
