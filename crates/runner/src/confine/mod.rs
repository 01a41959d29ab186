//! Owns how a child is started, limited, confined and ended: the shim, cgroups, landlock, and cells for image builds.
//! Executors call it.
//! No decision about what runs.

pub mod cell;
pub mod limits;
pub mod process;
pub mod shim;
