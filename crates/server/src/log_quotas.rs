//! Whether orgs may keep more of their logs. What an org has is counted now and then; what comes in meanwhile is added up here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::OrgId;
use store::{Reader, Result};

/// How long a count is good; what other replicas take in meanwhile is not in it.
const COUNT: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
pub(crate) struct LogQuotas {
    known: Arc<Mutex<HashMap<OrgId, Known>>>,
}

#[derive(Clone, Copy)]
struct Known {
    at: Instant,
    quota_bytes: Option<u64>,
    used_bytes: u64,
}

impl LogQuotas {
    /// Whether there is room for so many bytes more, which then count as taken.
    pub(crate) async fn has_room(&self, store: &Reader, org: &OrgId, bytes: u64) -> Result<bool> {
        let known = self.lock().get(org).copied().filter(|known| known.at.elapsed() < COUNT);
        let mut known = match known {
            Some(known) => known,
            None => {
                let quota_bytes = store.log_rules(org).await?.quota_bytes;
                // Who has no quota is not counted.
                let used_bytes = if quota_bytes.is_some() { store.log_usage(org).await?.size_bytes } else { 0 };
                Known { at: Instant::now(), quota_bytes, used_bytes }
            }
        };
        let room = known.quota_bytes.is_none_or(|quota| known.used_bytes + bytes < quota);
        if room {
            known.used_bytes += bytes;
        }
        self.lock().insert(org.clone(), known);
        Ok(room)
    }

    /// The rules have changed.
    pub(crate) fn forget(&self, org: &OrgId) {
        self.lock().remove(org);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<OrgId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
