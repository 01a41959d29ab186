//! Owns what is kept in memory of the installs of an org, so that a list of ten thousand is filtered and counted without reading them.
//! The handlers of pages ask for it; each time it takes what is new from the database.
//! No truth of its own: it can be dropped at any time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{AppId, InstallId, OrgId, RunnerId, Timestamp};
use store::{EventCursor, KindFilter, Sighting, Summary};

use crate::AppState;
use crate::error::ApiResult;
use crate::recent::Recent;

/// Orgs that are kept.
const ORGS_MAX: usize = 64;
/// What was written so long before the newest that is known is looked at again: replicas and their clocks differ, and a transaction that
/// began earlier may be committed later.
const OVERLAP_S: i64 = 120;
/// Presence is as old as this at most; what runners do themselves is seen at once.
const SIGHTINGS: Duration = Duration::from_secs(2);
/// Summaries that are read at once.
const READ_AT_ONCE: usize = 1000;

#[derive(Clone)]
pub(crate) struct FleetCache(Recent<OrgId, Kept>);

impl Default for FleetCache {
    fn default() -> Self {
        Self(Recent::of(ORGS_MAX))
    }
}

/// An app, as a row of the fleet names it.
#[derive(Debug, Clone)]
pub(crate) struct AppHead {
    pub(crate) name: String,
    pub(crate) latest: Option<u64>,
}

/// The fleet at one moment.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    /// By name.
    pub(crate) rows: Arc<Vec<Arc<Summary>>>,
    pub(crate) runners: Arc<HashMap<RunnerId, Sighting>>,
    pub(crate) verdicts: Arc<HashMap<InstallId, String>>,
    pub(crate) apps: Arc<HashMap<AppId, AppHead>>,
}

#[derive(Default)]
struct Kept {
    rows: HashMap<InstallId, (Timestamp, Arc<Summary>)>,
    newest: Option<Timestamp>,
    verdicts_newest: Option<Timestamp>,
    sighted: Option<Instant>,
    /// The last event that the sightings know of.
    sighted_at: EventCursor,
    shown: Snapshot,
}

impl FleetCache {
    /// The fleet as it is now. Those who ask at the same time wait for one look.
    pub(crate) async fn snapshot(&self, state: &AppState, org: &OrgId) -> ApiResult<Snapshot> {
        state.conductor.refresh_summaries(org).await?;
        let slot = self.0.slot(org);
        let mut kept = slot.lock().await;
        kept.read_rows(state, org).await?;
        kept.read_verdicts(state, org).await?;
        kept.read_sightings(state, org).await?;
        let heads = state.store().app_heads(org).await?;
        let heads = heads.into_iter().map(|(id, name, latest)| (id, AppHead { name, latest }));
        kept.shown.apps = Arc::new(heads.collect());
        Ok(kept.shown.clone())
    }
}

impl Kept {
    /// Since when to look; a stamp of the future, of a clock that was set back, hides nothing.
    fn since(state: &AppState, newest: Option<Timestamp>) -> Timestamp {
        newest.map_or(Timestamp::from_micros(0), |newest| newest.min(state.conductor.now()).plus_s(-OVERLAP_S))
    }

    async fn read_rows(&mut self, state: &AppState, org: &OrgId) -> ApiResult<()> {
        let store = state.store();
        let stamps = store.summary_stamps(org, Self::since(state, self.newest)).await?;
        let mut moved = self.take(state, org, stamps).await?;
        // A forgotten install has no stamp.
        if self.rows.len() as u64 != store.count_summaries(org).await? {
            let stamps = store.summary_stamps(org, Timestamp::from_micros(0)).await?;
            let there: std::collections::HashSet<&InstallId> = stamps.iter().map(|(install, _)| install).collect();
            self.rows.retain(|install, _| there.contains(install));
            self.take(state, org, stamps).await?;
            moved = true;
        }
        if moved || self.rows.len() != self.shown.rows.len() {
            let mut rows: Vec<Arc<Summary>> = self.rows.values().map(|(_, row)| Arc::clone(row)).collect();
            rows.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
            self.shown.rows = Arc::new(rows);
        }
        Ok(())
    }

    /// Reads those whose stamp is not known. Whether there were any.
    async fn take(&mut self, state: &AppState, org: &OrgId, stamps: Vec<(InstallId, Timestamp)>) -> ApiResult<bool> {
        let is_new = |(install, at): &(InstallId, Timestamp)| self.rows.get(install).is_none_or(|known| known.0 != *at);
        let new: Vec<InstallId> = stamps.into_iter().filter(is_new).map(|(install, _)| install).collect();
        for some in new.chunks(READ_AT_ONCE) {
            for (made_at, row) in state.store().summaries(org, some).await? {
                self.newest = self.newest.max(Some(made_at));
                self.rows.insert(row.id.clone(), (made_at, Arc::new(row)));
            }
        }
        Ok(!new.is_empty())
    }

    async fn read_verdicts(&mut self, state: &AppState, org: &OrgId) -> ApiResult<()> {
        let new = state.store().install_verdicts(org, Self::since(state, self.verdicts_newest)).await?;
        let known = &self.shown.verdicts;
        if new.iter().any(|(install, verdict, _)| known.get(install) != Some(verdict)) {
            let mut all = (**known).clone();
            all.extend(new.iter().map(|(install, verdict, _)| (install.clone(), verdict.clone())));
            self.shown.verdicts = Arc::new(all);
        }
        self.verdicts_newest = self.verdicts_newest.max(new.iter().map(|(_, _, at)| *at).max());
        Ok(())
    }

    async fn read_sightings(&mut self, state: &AppState, org: &OrgId) -> ApiResult<()> {
        let of_runners = KindFilter::parse("runner")?;
        let moved = !state.store().events_after(org, self.sighted_at, &of_runners, 1).await?.is_empty();
        if moved || self.sighted.is_none_or(|at| at.elapsed() > SIGHTINGS) {
            let known = state.store().last_event(org).await?;
            let all = state.store().install_sightings(org).await?;
            self.shown.runners = Arc::new(all.into_iter().map(|it| (it.runner_id.clone(), it)).collect());
            (self.sighted, self.sighted_at) = (Some(Instant::now()), known);
        }
        Ok(())
    }
}
