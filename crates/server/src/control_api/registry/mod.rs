//! Owns the routes of builds and artifacts; the OCI registry itself is a crate.
//! Clients call them.
//! No rules about when a build is made: that is the conductor.

pub(crate) mod builds;
