//! What the deployers of manifests and charts share: the way into a cluster, what objects would become, and whether they got there.

pub(super) mod api;
pub(super) mod cluster;
pub(super) mod compare;
pub(super) mod explain;
mod look;
pub(super) mod plan;
pub(super) mod rollout;
pub(super) mod state;

/// Each component is a manager of its own to the API server: the fields that it sets are its own, and its workspace names it.
const MANAGER_PREFIX: &str = "ferry-";
/// Requests that are on their way at once.
pub(super) const AT_ONCE: usize = 16;
