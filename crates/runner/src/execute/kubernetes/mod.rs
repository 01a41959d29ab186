//! What the deployers of manifests and charts share: the way into a cluster, what objects would become, and whether they got there.

pub(crate) mod api;
pub(crate) mod cluster;
pub(super) mod compare;
pub(crate) mod explain;
mod look;
pub(super) mod plan;
pub(super) mod pulls;
pub(super) mod rollout;
pub(super) mod state;

/// Each component is a manager of its own to the API server: the fields that it sets are its own, and its workspace names it.
pub(super) const MANAGER_PREFIX: &str = "ferry-";
/// How long a watch lasts until it is begun anew.
pub(crate) const WATCH: std::time::Duration = std::time::Duration::from_secs(300);
/// Requests that are on their way at once.
pub(super) const AT_ONCE: usize = 16;
