//! What orgs keep, against their quota. Sums are remembered for a moment, and what is pushed here is added to them, so that a
//! push costs no sum. Servers beside this one are seen with the next sum: a quota may be passed by what comes in meanwhile.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::OrgId;
use store::Store;

use crate::error::{Code, Refusal};

const REMEMBERED: Duration = Duration::from_secs(5);

pub(crate) struct Usage {
    quota_bytes: u64,
    orgs: Mutex<HashMap<OrgId, (u64, Instant)>>,
}

impl Usage {
    pub(crate) fn new(quota_bytes: u64) -> Self {
        Self { quota_bytes, orgs: Mutex::default() }
    }

    /// How many bytes an org may still bring.
    pub(crate) async fn room(&self, store: &Store, org: &OrgId) -> Result<u64, Refusal> {
        if self.quota_bytes == 0 {
            return Ok(u64::MAX);
        }
        let remembered = self.orgs.lock().unwrap_or_else(PoisonError::into_inner).get(org).copied();
        let used = match remembered {
            Some((used, at)) if at.elapsed() < REMEMBERED => used,
            _ => {
                let used = store.registry_usage(org).await?;
                self.orgs.lock().unwrap_or_else(PoisonError::into_inner).insert(org.clone(), (used, Instant::now()));
                used
            }
        };
        Ok(self.quota_bytes.saturating_sub(used))
    }

    pub(crate) fn add(&self, org: &OrgId, bytes: u64) {
        if let Some((used, _)) = self.orgs.lock().unwrap_or_else(PoisonError::into_inner).get_mut(org) {
            *used += bytes;
        }
    }

    /// The sum is asked for anew.
    pub(crate) fn forget(&self, org: &OrgId) {
        self.orgs.lock().unwrap_or_else(PoisonError::into_inner).remove(org);
    }

    pub(crate) fn exceeded(&self) -> Refusal {
        let mib = self.quota_bytes.div_ceil(1 << 20);
        Refusal::new(
            Code::Denied,
            format!("the org's quota of {mib} MiB in the registry is used up; delete what is not needed"),
        )
    }
}
