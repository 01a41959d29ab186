//! The reconcilers: each looks at the store, does what is due, and can be run at any time, any number of times.

use std::time::Duration;

use model::spec::Work;
use store::SealInput;
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::{Conductor, NewRunnerJob};

/// How often each reconciler looks.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub leases: Duration,
    pub logs: Duration,
    pub health: Duration,
    pub builds: Duration,
    pub workflows: Duration,
    pub schedules: Duration,
    pub summaries: Duration,
    pub cleanup: Duration,
    /// A log that has been quiet for this long is folded.
    pub seal_quiet_s: u64,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// How often objects that nothing names are looked for.
    pub sweep: Duration,
    pub keep: Keep,
    pub registry: Duration,
    /// What the registry does not need is kept for this long.
    pub registry_grace_s: u64,
}

/// How long what nobody asked to keep is kept.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// None: for ever.
    pub events_s: Option<u64>,
    pub health_checks_s: u64,
    /// Objects that no row names.
    pub orphans_s: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { events_s: Some(400 * 86_400), health_checks_s: 3600, orphans_s: 86_400 }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            leases: Duration::from_millis(500),
            logs: Duration::from_secs(2),
            health: Duration::from_secs(5),
            builds: Duration::from_secs(1),
            workflows: Duration::from_millis(250),
            schedules: Duration::from_secs(1),
            summaries: Duration::from_millis(500),
            cleanup: Duration::from_secs(60),
            sweep: Duration::from_secs(3600),
            keep: Keep::default(),
            seal_quiet_s: 60,
            segment_bytes: 4 << 20,
            registry: Duration::from_secs(60),
            registry_grace_s: 86_400,
        }
    }
}

const BATCH: u64 = 256;
/// Batches of objects that one look deletes.
const BURIALS: usize = 64;
/// Objects of a kind that one look deletes.
const ORPHANS: usize = 10_000;
/// A sealed file that nothing names after this long was given up by its runner, however slow its line is.
const ABANDONED_DAYS: i64 = 30;
const IDEMPOTENCY_DAYS: i64 = 7;
const DRAFT_DAYS: i64 = 7;
/// Sessions, links and invites that are over are kept for so long.
const SIGN_IN_DAYS: i64 = 90;

impl Conductor {
    /// Runs all reconcilers until told to stop; none waits for another.
    pub async fn run(&self, pace: Pace, stop: CancellationToken) {
        tokio::join!(
            every(pace.leases, "leases", &stop, || self.reconcile_leases()),
            every(pace.logs, "logs", &stop, || self.reconcile_logs(pace)),
            every(pace.health, "health", &stop, || self.reconcile_health()),
            every(pace.health, "component health", &stop, || self.reconcile_component_health()),
            every(pace.builds, "builds", &stop, || self.reconcile_builds()),
            every(pace.schedules, "schedules", &stop, || self.reconcile_schedules()),
            every(pace.summaries, "summaries", &stop, || self.reconcile_summaries()),
            every(pace.cleanup, "cleanup", &stop, || self.reconcile_cleanup(pace.keep)),
            every(pace.sweep, "sweep", &stop, || self.reconcile_orphans(pace.keep)),
            every(pace.registry, "registry", &stop, || self.reconcile_registry(pace)),
            self.run_workflows(pace.workflows, &stop),
        );
    }

    /// Ends leases that ran out, queued jobs that waited too long, and holds on targets that can't be held any more.
    pub async fn reconcile_leases(&self) -> Result<()> {
        self.notice_clock().await?;
        while self.store.expire_leases(self.now(), BATCH).await? == BATCH as usize {}
        for job in self.store.queue_timeouts(self.now(), BATCH).await? {
            let reason = self.waiting_reason(&job).await.ok().flatten().unwrap_or_default();
            go_on("queue timeout", self.store.end_queued(&job, &reason, self.now()).await);
        }
        self.store.release_offline(self.lease_timing(), self.now()).await?;
        Ok(())
    }

    /// Folds hot log batches into segments.
    pub async fn reconcile_logs(&self, pace: Pace) -> Result<()> {
        let input =
            SealInput { full_bytes: pace.segment_bytes, quiet_since: self.now().plus_s(-(pace.seal_quiet_s as i64)) };
        for (org, execution) in self.store.sealable(input, BATCH).await? {
            go_on("log segment", self.store.seal_log(&org, &execution, pace.segment_bytes).await);
            crash::crash_point!("server.segment_noted");
        }
        Ok(())
    }

    /// Asks runners for a health check when one is due.
    pub async fn reconcile_health(&self) -> Result<()> {
        let seen_after = self.now().plus_s(-(self.timing.silent_offline_s as i64));
        for runner in self.store.due_health_checks(seen_after, self.now(), BATCH).await? {
            let job = NewRunnerJob { work: Work::HealthCheck {}, priority: 0 };
            go_on("health check", self.submit_runner_job(&runner, job, "ferry", None).await);
        }
        Ok(())
    }

    /// Ends uploads that nobody finished, forgets blobs that no manifest needs, and deletes the objects of both: also those
    /// that a process which died has left.
    pub async fn reconcile_registry(&self, pace: Pace) -> Result<()> {
        let before = self.now().plus_s(-(pace.registry_grace_s as i64));
        while self.store.expire_uploads(before, BATCH, self.now()).await? == BATCH as usize {}
        while self.store.sweep_blobs(before, BATCH, self.now()).await? == BATCH as usize {}
        for _ in 0..BURIALS {
            let doomed = self.store.doomed(BATCH).await?;
            for (key, progress) in &doomed {
                go_on("blob", self.store.bury(key, progress.as_deref()).await);
            }
            if doomed.len() < BATCH as usize {
                break;
            }
        }
        Ok(())
    }

    /// Deletes log segments and sealed files that no row names: a crash has left them, or their install was forgotten.
    pub async fn reconcile_orphans(&self, keep: Keep) -> Result<()> {
        let abandoned = self.now().plus_s(-ABANDONED_DAYS * 86_400);
        while self.store.drop_abandoned_uploads(abandoned, BATCH).await? == BATCH {}
        let swept = self.store.sweep_orphans(self.now().plus_s(-(keep.orphans_s as i64)), ORPHANS).await?;
        if swept > 0 {
            tracing::info!(objects = swept, "deleted objects that nothing names");
        }
        Ok(())
    }

    /// Forgets what is old, and learns a signing key that another replica has made.
    pub async fn reconcile_cleanup(&self, keep: Keep) -> Result<()> {
        self.refresh_keys().await?;
        self.store.forget_old_idempotency(self.now().plus_s(-IDEMPOTENCY_DAYS * 86_400)).await?;
        self.store.prune_drafts(self.now().plus_s(-DRAFT_DAYS * 86_400)).await?;
        if let Some(events_s) = keep.events_s {
            let old = self.now().plus_s(-(events_s as i64));
            while self.store.prune_events(old, BATCH).await? == BATCH as usize {}
        }
        let old = self.now().plus_s(-(keep.health_checks_s as i64));
        while self.store.prune_health_checks(old, BATCH).await? == BATCH as usize {}
        let old = self.now().plus_s(-crate::health::HISTORY_DAYS * 86_400);
        while self.store.prune_health_transitions(old, BATCH).await? == BATCH as usize {}
        self.store.prune_sign_ins(self.now().plus_s(-SIGN_IN_DAYS * 86_400), self.now()).await?;
        while self.store.expire_logs(self.now(), BATCH).await? >= BATCH as usize {}
        while self.store.trim_rolling_logs(self.now(), BATCH as usize).await? >= BATCH as usize {}
        Ok(())
    }
}

/// Runs one reconciler on its timer.
async fn every<F>(period: Duration, name: &str, stop: &CancellationToken, look: impl Fn() -> F)
where
    F: Future<Output = Result<()>>,
{
    let mut timer = tokio::time::interval(period);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = timer.tick() => {}
        }
        if let Err(error) = look().await {
            tracing::warn!(reconciler = name, %error, "will look again");
        }
    }
}

/// One item that can't be dealt with must not keep the others waiting. Whether it could.
pub(crate) fn go_on<T, E: std::fmt::Display>(what: &str, outcome: Result<T, E>) -> bool {
    if let Err(error) = &outcome {
        tracing::warn!(what, %error, "left for the next look");
    }
    outcome.is_ok()
}
