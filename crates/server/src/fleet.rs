//! Owns what is kept in memory of the installs of an org, so that a list of ten thousand is filtered and counted without reading them.
//! The handlers of pages ask for it; each time it takes what is new from the database.
//! No truth of its own: it can be dropped at any time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{AppId, InstallId, OrgId, RunnerId, Timestamp};
use store::{Sighting, Summary};

use crate::AppState;
use crate::error::ApiResult;

/// Orgs that are kept; more are dropped, and read anew.
const ORGS_MAX: usize = 64;
/// What was written so long before the newest that is known is read again: replicas and their clocks differ, and a transaction that began
/// earlier may be committed later.
const OVERLAP_S: i64 = 15;
/// Presence is as old as this at most; what pages listen to tells of it when this has changed.
const SIGHTINGS: Duration = Duration::from_secs(2);
/// The apps of an org, each with its newest version.
const APPS_MAX: u64 = 1000;

#[derive(Clone, Default)]
pub(crate) struct FleetCache(Arc<Mutex<HashMap<OrgId, Arc<tokio::sync::Mutex<Kept>>>>>);

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
    rows: HashMap<InstallId, Arc<Summary>>,
    newest: Option<Timestamp>,
    verdicts_newest: Option<Timestamp>,
    sighted: Option<Instant>,
    shown: Snapshot,
}

impl FleetCache {
    fn slot(&self, org: &OrgId) -> Arc<tokio::sync::Mutex<Kept>> {
        let mut orgs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if orgs.len() >= ORGS_MAX && !orgs.contains_key(org) {
            orgs.clear();
        }
        Arc::clone(orgs.entry(org.clone()).or_default())
    }

    /// The fleet as it is now. Those who ask at the same time wait for one look.
    pub(crate) async fn snapshot(&self, state: &AppState, org: &OrgId) -> ApiResult<Snapshot> {
        let slot = self.slot(org);
        let mut kept = slot.lock().await;
        state.conductor.refresh_summaries(org).await?;
        kept.read_rows(state, org).await?;
        kept.read_verdicts(state, org).await?;
        if kept.sighted.is_none_or(|at| at.elapsed() > SIGHTINGS) {
            let all = state.store().install_sightings(org).await?;
            kept.shown.runners = Arc::new(all.into_iter().map(|it| (it.runner_id.clone(), it)).collect());
            kept.sighted = Some(Instant::now());
        }
        let mut apps = HashMap::new();
        for app in state.store().apps(org, "", 0, APPS_MAX).await? {
            let latest = state.store().active_config(org, &app.id).await?.and_then(|config| config.version);
            apps.insert(app.id, AppHead { name: app.name, latest });
        }
        kept.shown.apps = Arc::new(apps);
        Ok(kept.shown.clone())
    }
}

impl Kept {
    fn since(newest: Option<Timestamp>) -> Timestamp {
        newest.map_or(Timestamp::from_micros(0), |newest| newest.plus_s(-OVERLAP_S))
    }

    async fn read_rows(&mut self, state: &AppState, org: &OrgId) -> ApiResult<()> {
        let mut found = state.store().summaries(org, Self::since(self.newest)).await?;
        // Only a forgotten install makes them fewer.
        let unknown = found.iter().filter(|(_, row)| !self.rows.contains_key(&row.id)).count();
        if (self.rows.len() + unknown) as u64 > state.store().count_installs(org).await? {
            self.rows.clear();
            found = state.store().summaries(org, Timestamp::from_micros(0)).await?;
        }
        let mut moved = self.newest.is_none();
        for (made_at, row) in found {
            self.newest = self.newest.max(Some(made_at));
            if self.rows.get(&row.id).is_none_or(|known| **known != row) {
                self.rows.insert(row.id.clone(), Arc::new(row));
                moved = true;
            }
        }
        if moved || self.rows.len() != self.shown.rows.len() {
            let mut rows: Vec<Arc<Summary>> = self.rows.values().cloned().collect();
            rows.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
            self.shown.rows = Arc::new(rows);
        }
        Ok(())
    }

    async fn read_verdicts(&mut self, state: &AppState, org: &OrgId) -> ApiResult<()> {
        let new = state.store().install_verdicts(org, Self::since(self.verdicts_newest)).await?;
        let known = &self.shown.verdicts;
        if new.iter().any(|(install, verdict, _)| known.get(install) != Some(verdict)) {
            let mut all = (**known).clone();
            all.extend(new.iter().map(|(install, verdict, _)| (install.clone(), verdict.clone())));
            self.shown.verdicts = Arc::new(all);
        }
        self.verdicts_newest = self.verdicts_newest.max(new.iter().map(|(_, _, at)| *at).max());
        Ok(())
    }
}
