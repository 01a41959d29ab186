//! What the deployers of manifests and charts share: the way into a cluster, what objects would become, and whether they got there.

pub(super) mod api;
pub(super) mod cluster;
pub(super) mod compare;
pub(super) mod explain;
pub(super) mod plan;
pub(super) mod rollout;
pub(super) mod state;

/// Who we are to the API server: fields that we set are ours.
pub(super) const MANAGER: &str = "ferry";
/// Requests that are on their way at once.
pub(super) const AT_ONCE: usize = 16;
