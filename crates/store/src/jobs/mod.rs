//! Owns jobs, their queue, their executions with leases, and the runs of actions.
//! The conductor queues jobs; the Runner API claims, renews and completes them.
//! No write without a check of the epoch in the same transaction.
//!
//! Jobs: making them, the queue, and every change of their state. One helper, `move_job`, is the only place that writes it.

pub(crate) mod action_runs;
pub(crate) mod executions;
pub(crate) mod queue;

use std::sync::LazyLock;

use model::papers::Signed;
use model::{
    InstallId, JobEvent, JobGroup, JobId, JobState, JobType, LogStreamId, OrgId, Outcome, RunnerId, StepId, Timestamp,
    WorkflowId, constants,
};

use crate::db::{Row, Table, Tx, params, select, table};
use crate::events::notify::topic;
use crate::events::{Note, record};
use crate::idempotency::{Idempotency, idempotent, remember, same_request};
use crate::jobs::action_runs::ActionRun;
use crate::jobs::queue::Assigned;
use crate::registry::builds::{self, Build};
use crate::{Reader, Refused, Result, Revision, Store, StoreError, terraform, workflows};

table! {
    #[derive(Debug, Clone)]
    pub struct Job from "jobs" {
        pub id: JobId,
        pub org_id: OrgId,
        pub runner_id: RunnerId,
        pub install_id: Option<InstallId>,
        pub job_type: JobType = "type",
        pub group: JobGroup = "grp",
        pub operation: String,
        pub name: Option<String>,
        pub state: JobState,
        pub reason: String,
        pub error_code: Option<String>,
        pub target: Option<String>,
        pub priority: i64,
        pub epoch: u64,
        version: i64,
        pub max_executions: u64,
        pub timeout_s: u64,
        pub queue_until: Timestamp,
        pub log_stream_id: LogStreamId,
        pub cancel_at: Option<Timestamp>,
        /// An unknown job whose executor is certainly gone: its target is free again.
        pub released: bool,
        pub created_by: String,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub started_at: Option<Timestamp>,
        pub finished_at: Option<Timestamp>,
        /// The step of a workflow that it is for.
        pub step_id: Option<StepId>,
    }
}

/// A job with its order signed; the spec is sealed by the store.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: JobId,
    pub org_id: OrgId,
    pub runner_id: RunnerId,
    pub install_id: Option<InstallId>,
    pub job_type: JobType,
    pub operation: String,
    pub name: Option<String>,
    pub target: Option<String>,
    pub priority: i64,
    pub timeout_s: u64,
    pub spec: Vec<u8>,
    pub order: Signed,
    pub log_stream_id: LogStreamId,
    pub created_by: String,
    /// The run of a synced action that the job is.
    pub run: Option<ActionRun>,
    /// The build that the job makes.
    pub build: Option<Box<Build>>,
    /// The step that it is for; a second job for the same step is the first one.
    pub step_id: Option<StepId>,
    /// The earlier state that the job makes the current one again: who asked for it is noted.
    pub restores: Option<Revision>,
    pub now: Timestamp,
}

/// A job that was queued, now or by the same request before.
#[derive(Debug, Clone)]
pub struct Queued {
    pub job: Job,
    pub replayed: bool,
    /// Where it was queued; one that was queued before may stand elsewhere by now.
    pub place: Option<QueuePlace>,
}

/// Where a job stands in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    /// Who holds its target.
    pub held_by: Option<JobId>,
    /// How many stand before it, as far as they are counted.
    pub ahead: u64,
}

pub(crate) async fn job_by_id(tx: &mut Tx<'_>, id: &JobId) -> Result<Job> {
    let sql = select!(Job, "WHERE id = $1");
    Job::from_row(&tx.get(sql, params![id]).await?.ok_or(StoreError::NotFound("job"))?)
}

/// The rest of a row that a claim reads: the signed order, and the sealed spec.
pub(crate) fn papers_from(row: &Row) -> Result<(Signed, Vec<u8>)> {
    let order = Signed {
        payload: row.get("order_payload")?,
        key: row.get("order_key")?,
        signature: row.get("order_signature")?,
    };
    Ok((order, row.get("spec")?))
}

/// The error code of a job whose outcome a person has recorded.
pub const SETTLED: &str = "settled";

const MOVE: &str = "UPDATE jobs SET state = $3, reason = $4, error_code = $5, epoch = $6, started_at = $7, finished_at = $8, updated_at = $9, released = 0, version = version + 1 WHERE id = $1 AND version = $2";
/// The same with its event, for PostgreSQL. Nobody waits for the count: where no job is moved the event has no subject, and
/// that is an error (see `StoreError::moved`).
const MOVE_AND_RECORD: &str = "WITH moved AS (UPDATE jobs SET state = $3, reason = $4, error_code = $5, epoch = $6, started_at = $7, finished_at = $8, updated_at = $9, released = 0, version = version + 1 WHERE id = $1 AND version = $2 RETURNING id) INSERT INTO events (xid, org_id, time, kind, subject_type, subject_id, actor, data) VALUES (pg_current_xact_id()::text::bigint, $10, $9, 'job.state', 'job', (SELECT id FROM moved), $11, $12)";

/// Moves a job by its state machine, writes it if nobody else has, and records the event.
pub(crate) async fn move_job(
    tx: &mut Tx<'_>,
    job: &mut Job,
    event: JobEvent,
    reason: &str,
    error_code: Option<&str>,
    actor: &str,
    now: Timestamp,
) -> Result<()> {
    let from = job.state;
    let to = from.next(event)?;
    job.state = to;
    job.reason = reason.to_owned();
    job.error_code = error_code.map(str::to_owned);
    job.updated_at = now;
    match event {
        JobEvent::Claim => job.epoch += 1,
        JobEvent::Start => job.started_at = Some(now),
        JobEvent::HandBack => job.started_at = None,
        JobEvent::Vanish
        | JobEvent::Revive
        | JobEvent::Retry
        | JobEvent::Withdraw(_)
        | JobEvent::Result(_)
        | JobEvent::Settle(_) => {}
    }
    if to.is_terminal() {
        job.finished_at = Some(now);
    }
    if (to.is_terminal() || to == JobState::Unknown || event == JobEvent::Revive)
        && let Some(step) = &job.step_id
    {
        workflows::wake_step(tx, step, now).await?;
    }
    // A part whose apply nobody can judge is unknown.
    if let Some(install) = job.install_id.as_ref().filter(|_| [from, to].contains(&JobState::Unknown)) {
        crate::pages::summaries::outdate(tx, install).await?;
    }
    let data = serde_json::json!({
        "from": from, "to": to, "reason": reason, "epoch": job.epoch, "type": job.job_type,
        "install_id": job.install_id, "runner_id": job.runner_id,
    });
    let mut params =
        params![&job.id, job.version, to.as_str(), reason, error_code, job.epoch, job.started_at, job.finished_at, now];
    job.version += 1;
    job.released = false;
    if tx.is_remote() {
        params.extend(params![&job.org_id, actor, data.to_string()]);
        return tx.exec_later(MOVE_AND_RECORD, params).await;
    }
    if tx.exec(MOVE, params).await? != 1 {
        return Err(StoreError::moved());
    }
    let subject = ("job", job.id.as_str());
    record(tx, Note { org: &job.org_id, now, kind: "job.state", subject, actor, data }).await
}

#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub install: Option<InstallId>,
    pub runner: Option<RunnerId>,
    pub state: Option<JobState>,
    pub job_type: Option<JobType>,
    /// Everything but this type.
    pub without: Option<JobType>,
}

/// One text for the narrowest column that is asked for, so that its index is used: a list must not grow with what it leaves
/// out. The empty string hides the org from the planner, who could prefer it.
fn list_sql(filter: &JobFilter) -> &'static str {
    macro_rules! list {
        ($first:literal) => {{
            static TEXT: LazyLock<String> = LazyLock::new(|| {
                let first = $first;
                Job::select(&format!("WHERE {first} AND (CAST($2 AS TEXT) IS NULL OR install_id = $2) AND (CAST($3 AS TEXT) IS NULL OR runner_id = $3) AND (CAST($4 AS TEXT) IS NULL OR state = $4) AND (CAST($5 AS TEXT) IS NULL OR type = $5) AND (CAST($6 AS TEXT) IS NULL OR type <> $6) ORDER BY id DESC LIMIT $7 OFFSET $8"))
            });
            TEXT.as_str()
        }};
    }
    match filter {
        JobFilter { install: Some(_), .. } => list!("(org_id || '') = $1 AND install_id = $2"),
        JobFilter { runner: Some(_), .. } => list!("(org_id || '') = $1 AND runner_id = $3"),
        JobFilter { state: Some(_), .. } => list!("org_id = $1 AND state = $4"),
        JobFilter { .. } => list!("org_id = $1"),
    }
}

/// Places in the sealed columns of a job.
pub(crate) fn spec_place(job: &JobId) -> String {
    format!("jobs|{job}|spec")
}

impl Reader {
    pub async fn job(&self, org: &OrgId, id: &JobId) -> Result<Job> {
        self.main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let job = job_by_id(tx, id).await?;
                    if job.org_id == *org { Ok(job) } else { Err(StoreError::NotFound("job")) }
                })
            })
            .await
    }

    pub async fn job_of_log(&self, org: &OrgId, stream: &LogStreamId) -> Result<Job> {
        self.main()
            .glance((org.clone(), stream.clone()), |tx, (org, stream)| {
                Box::pin(async move {
                    let sql = select!(Job, "WHERE org_id = $1 AND log_stream_id = $2");
                    Job::from_row(
                        &tx.get(sql, params![&org, &stream]).await?.ok_or(StoreError::NotFound("log stream"))?,
                    )
                })
            })
            .await
    }

    pub async fn jobs(&self, org: &OrgId, filter: JobFilter, offset: u64, limit: u64) -> Result<Vec<Job>> {
        self.main()
            .read((org.clone(), filter, offset, limit), |tx, (org, f, offset, limit)| {
                Box::pin(async move {
                    let sql = list_sql(f);
                    let state = f.state.map(JobState::as_str);
                    let kind = f.job_type.map(JobType::as_str);
                    let without = f.without.map(JobType::as_str);
                    let (install, runner) = (f.install.as_ref(), f.runner.as_ref());
                    let rows =
                        tx.query(sql, params![&org, install, runner, state, kind, without, limit, offset]).await?;
                    rows.iter().map(Job::from_row).collect()
                })
            })
            .await
    }

    /// Targets of an install's jobs whose runner is not heard of: they may be at work still.
    pub async fn silent_targets(&self, org: &OrgId, install: &InstallId) -> Result<Vec<String>> {
        let sql = "SELECT target FROM jobs WHERE (org_id || '') = $1 AND install_id = $2 AND state = 'unknown' AND released = 0 AND target IS NOT NULL AND operation = 'apply-plan'";
        self.main().query(sql, params![org, install]).await?.iter().map(|row| row.get("target")).collect()
    }

    /// The jobs of a workflow's steps.
    pub async fn jobs_of_workflow(&self, org: &OrgId, workflow: &WorkflowId) -> Result<Vec<Job>> {
        let sql = select!(
            Job,
            "WHERE (org_id || '') = $1 AND step_id IN (SELECT id FROM workflow_steps WHERE workflow_id = $2) ORDER BY id"
        );
        self.main().query(sql, params![org, workflow]).await?.iter().map(Job::from_row).collect()
    }

    /// Targets of an install's applies and teardowns that are at work, or may be.
    pub async fn applied_targets(&self, org: &OrgId, install: &InstallId) -> Result<Vec<String>> {
        let sql = "SELECT target FROM jobs WHERE (org_id || '') = $1 AND install_id = $2 AND state IN ('available', 'in-progress', 'unknown') AND released = 0 AND target IS NOT NULL AND operation = 'apply-plan'";
        self.main().query(sql, params![org, install]).await?.iter().map(|row| row.get("target")).collect()
    }

    /// What the waiting reason needs beside the runner.
    pub async fn queue_place(&self, job: &Job) -> Result<QueuePlace> {
        self.main()
            .glance(job.clone(), |tx, job| {
                Box::pin(async move {
                    let params = params![
                        &job.runner_id,
                        job.group.as_str(),
                        job.priority,
                        job.created_at,
                        &job.id,
                        constants::QUEUE_COUNTED,
                        job.target.as_ref()
                    ];
                    let row = tx.get(PLACE, params).await?.ok_or_else(|| StoreError::corrupt("count"))?;
                    Ok(QueuePlace { held_by: row.get("held_by")?, ahead: row.get("ahead")? })
                })
            })
            .await
    }

    /// Ends queued jobs whose time in the queue is over. Returns them as they were, with the reasons they waited for.
    pub async fn queue_timeouts(&self, now: Timestamp, limit: u64) -> Result<Vec<Job>> {
        self.main()
            .read((now, limit), |tx, (now, limit)| {
                Box::pin(async move {
                    let sql = select!(Job, "WHERE state = 'queued' AND queue_until < $1 LIMIT $2");
                    tx.query(sql, params![now, limit]).await?.iter().map(Job::from_row).collect()
                })
            })
            .await
    }

    pub(crate) fn wake_for(&self, job: &Job) {
        self.notifier().wake(topic::runner(&job.runner_id));
        self.notifier().wake(topic::org(&job.org_id));
        self.notifier().wake(topic::job(&job.id));
        if job.step_id.is_some() {
            self.notifier().wake(topic::workflows());
        }
    }

    /// The spec of a job, opened.
    pub async fn spec(&self, org: &OrgId, id: &JobId) -> Result<Vec<u8>> {
        let sealed: Vec<u8> = self
            .main()
            .read((org.clone(), id.clone()), |tx, (org, job)| {
                Box::pin(async move {
                    let sql = "SELECT spec FROM jobs WHERE org_id = $1 AND id = $2";
                    tx.get(sql, params![&org, &job]).await?.ok_or(StoreError::NotFound("job"))?.get("spec")
                })
            })
            .await?;
        self.open_sealed(org, &spec_place(id), &sealed).await
    }

    /// The signed order of a job, byte for byte.
    pub async fn order(&self, org: &OrgId, id: &JobId) -> Result<Signed> {
        self.main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql =
                        "SELECT order_payload, order_key, order_signature FROM jobs WHERE org_id = $1 AND id = $2";
                    let row = tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("job"))?;
                    Ok(Signed {
                        payload: row.get("order_payload")?,
                        key: row.get("order_key")?,
                        signature: row.get("order_signature")?,
                    })
                })
            })
            .await
    }

    /// Opens the sealed spec of a job that was just claimed.
    pub async fn open_spec(&self, assigned: &Assigned) -> Result<Vec<u8>> {
        self.open_sealed(&assigned.job.org_id, &spec_place(&assigned.job.id), &assigned.spec).await
    }
}

impl Store {
    /// Queues a job; the runner is woken after the commit.
    pub async fn enqueue(&self, mut new: NewJob, idem: Option<Idempotency>) -> Result<Queued> {
        let keys = self.org_keys(&new.org_id).await?;
        new.spec = keys.seal(&spec_place(&new.id), &new.spec);
        let (runner, org) = (new.runner_id.clone(), new.org_id.clone());
        let queued = self
            .main()
            .write_announced(
                (new, idem),
                |tx, (new, idem)| Box::pin(insert_job(tx, new, idem.as_ref())),
                || self.notifier().wake(topic::queued(&runner)),
            )
            .await?;
        // Who began to look before the commit and parks only now.
        self.notifier().wake(topic::runner(&runner));
        self.notifier().wake(topic::org(&org));
        Ok(queued)
    }

    /// Cancels a job: at once while nobody has started it; otherwise the runner is told until the result is in.
    pub async fn cancel(&self, org: &OrgId, id: &JobId, actor: &str, now: Timestamp) -> Result<Job> {
        let job = self
            .main()
            .write((org.clone(), id.clone(), actor.to_owned(), now), |tx, (org, id, actor, now)| {
                Box::pin(async move {
                    let mut job = job_by_id(tx, id).await?;
                    if job.org_id != *org {
                        return Err(StoreError::NotFound("job"));
                    }
                    match job.state {
                        JobState::Queued | JobState::Claimed => {
                            let withdraw = JobEvent::Withdraw(Outcome::Cancelled);
                            let reason = "cancelled before it started";
                            move_job(tx, &mut job, withdraw, reason, Some("cancelled"), actor, *now).await?;
                            executions::end_current(tx, &job, "cancelled", reason, *now).await?;
                        }
                        JobState::Unknown if job.released => {
                            return Err(Refused::NothingToCancel(job.id).into());
                        }
                        JobState::Running | JobState::Unknown if job.cancel_at.is_none() => {
                            tx.exec_later(
                                "UPDATE jobs SET cancel_at = $2, updated_at = $2 WHERE id = $1",
                                params![&id, now],
                            )
                            .await?;
                            job.cancel_at = Some(*now);
                            let subject = ("job", job.id.as_str());
                            let data = serde_json::json!({});
                            let kind = "job.cancel-requested";
                            record(tx, Note { org, now: *now, kind, subject, actor, data }).await?;
                        }
                        // Asking twice, or too late, changes nothing.
                        JobState::Running
                        | JobState::Unknown
                        | JobState::Finished
                        | JobState::Failed
                        | JobState::TimedOut
                        | JobState::Cancelled
                        | JobState::NotAttempted => {}
                    }
                    Ok(job)
                })
            })
            .await?;
        self.wake_for(&job);
        Ok(job)
    }

    /// Records how an unknown job ended, as someone saw by looking.
    pub async fn settle(
        &self,
        org: &OrgId,
        id: &JobId,
        outcome: Outcome,
        reason: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<Job> {
        let job = self
            .main()
            .write(
                (org.clone(), id.clone(), reason.to_owned(), actor.to_owned(), outcome, now),
                |tx, (org, id, reason, actor, outcome, now)| {
                    Box::pin(async move {
                        let mut job = job_by_id(tx, id).await?;
                        if job.org_id != *org {
                            return Err(StoreError::NotFound("job"));
                        }
                        move_job(tx, &mut job, JobEvent::Settle(*outcome), reason, Some(SETTLED), actor, *now).await?;
                        executions::end_current(tx, &job, JobState::from(*outcome).as_str(), reason, *now).await?;
                        Ok(job)
                    })
                },
            )
            .await?;
        self.wake_for(&job);
        Ok(job)
    }

    pub async fn end_queued(&self, job: &Job, waited_for: &str, now: Timestamp) -> Result<()> {
        let job = self
            .main()
            .write((job.id.clone(), waited_for.to_owned(), now), |tx, (id, waited_for, now)| {
                Box::pin(async move {
                    let mut job = job_by_id(tx, id).await?;
                    if job.state == JobState::Queued && job.queue_until < *now {
                        let reason = format!("waited too long in the queue: {waited_for}");
                        let event = JobEvent::Withdraw(Outcome::TimedOut);
                        move_job(tx, &mut job, event, &reason, Some("queue_timeout"), "ferry", *now).await?;
                    }
                    Ok(job)
                })
            })
            .await?;
        self.wake_for(&job);
        Ok(())
    }

    /// Deletes health checks that ended before then, with their logs: the last one of each runner is kept with the runner.
    pub async fn prune_health_checks(&self, before: Timestamp, limit: u64) -> Result<usize> {
        let old: Vec<JobId> = self
            .main()
            .read((before, limit), |tx, (before, limit)| {
                Box::pin(async move {
                    let sql = "SELECT id FROM jobs WHERE type = $1 AND finished_at < $2 LIMIT $3";
                    tx.query(sql, params![JobType::HealthCheck, before, limit])
                        .await?
                        .iter()
                        .map(|row| row.get("id"))
                        .collect()
                })
            })
            .await?;
        for job in &old {
            for execution in self.executions_of(job).await? {
                self.delete_log(&execution.id, None).await?;
            }
        }
        self.main()
            .write(old.clone(), |tx, jobs| {
                Box::pin(async move {
                    for job in jobs {
                        tx.exec("DELETE FROM executions WHERE job_id = $1", params![job]).await?;
                        tx.exec("DELETE FROM jobs WHERE id = $1", params![job]).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        Ok(old.len())
    }
}

/// Who holds the target of a job, and how many stand before it.
macro_rules! place {
    () => {
        "(SELECT id FROM jobs WHERE runner_id = $1 AND target = $7 AND state IN ('available', 'in-progress', 'unknown') AND released = 0 LIMIT 1) AS held_by, (SELECT COUNT(*) FROM (SELECT 1 FROM jobs WHERE runner_id = $1 AND grp = $2 AND state = 'queued' AND (priority > $3 OR (priority = $3 AND (created_at, id) < ($4, $5))) LIMIT $6) waiting) AS ahead"
    };
}
const PLACE: &str = concat!("SELECT ", place!());
/// All that a new job needs to know: its place, that its runner is there, and what was queued under its key before.
const BEFORE: &str = concat!(
    "SELECT ",
    place!(),
    ", i.request_digest, i.resource_id FROM runners r LEFT JOIN idempotency i ON i.scope = $9 AND i.key = $10 WHERE r.id = $1 AND r.org_id = $8"
);

/// The job that the same request has made before, or that does the same already.
async fn known(tx: &mut Tx<'_>, new: &NewJob, idem: Option<&Idempotency>, row: Option<&Row>) -> Result<Option<Job>> {
    let found = match row {
        Some(row) => same_request(idem, row.get("request_digest")?, row.get("resource_id")?)?,
        None => idempotent(tx, idem).await?,
    };
    if let Some(found) = found {
        let id = JobId::parse(&found).map_err(|_| StoreError::corrupt("idempotency key"))?;
        return job_by_id(tx, &id).await.map(Some);
    }
    if let Some(build) = &new.build
        && let Some(id) = builds::open_job(tx, build).await?
    {
        return job_by_id(tx, &id).await.map(Some);
    }
    if let Some(step) = &new.step_id
        && let Some(row) = tx.get("SELECT id FROM jobs WHERE step_id = $1", params![step]).await?
    {
        return job_by_id(tx, &row.get("id")?).await.map(Some);
    }
    Ok(None)
}

async fn insert_job(tx: &mut Tx<'_>, new: &NewJob, idem: Option<&Idempotency>) -> Result<Queued> {
    let now = new.now;
    let (scope, key) = (idem.map(|i| &i.scope), idem.map(|i| &i.key));
    let before = params![
        &new.runner_id,
        new.job_type.group().as_str(),
        new.priority,
        now,
        &new.id,
        constants::QUEUE_COUNTED,
        new.target.as_ref(),
        &new.org_id,
        scope,
        key
    ];
    let row = tx.get(BEFORE, before).await?;
    if let Some(job) = known(tx, new, idem, row.as_ref()).await? {
        return Ok(Queued { job, replayed: true, place: None });
    }
    // It may have been cancelled since it was decided to start it.
    if let Some(step) = &new.step_id {
        let open = "SELECT 1 FROM workflow_steps WHERE id = $1 AND status = 'in-progress'";
        if tx.get(open, params![step]).await?.is_none() {
            return Err(Refused::StepEnded.into());
        }
    }
    let row = row.ok_or(StoreError::NotFound("runner"))?;
    let place = QueuePlace { held_by: row.get("held_by")?, ahead: row.get("ahead")? };
    let attempts = if new.job_type.may_be_retried(&new.operation) { JobType::ATTEMPTS } else { 1 };
    let queue_until = now.plus_s(constants::QUEUE_TIMEOUT_S as i64);
    tx.exec_later(
        "INSERT INTO jobs (id, org_id, runner_id, install_id, type, grp, operation, name, state, reason, target, priority, epoch, version, max_executions, timeout_s, queue_until, spec, order_payload, order_key, order_signature, log_stream_id, released, created_by, created_at, updated_at, step_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', '', $9, $10, 0, 1, $11, $12, $13, $14, $15, $16, $17, $18, 0, $19, $20, $20, $21)",
        params![
            &new.id,
            &new.org_id,
            &new.runner_id,
            new.install_id.as_ref(),
            new.job_type.as_str(),
            new.job_type.group().as_str(),
            &new.operation,
            new.name.as_ref(),
            new.target.as_ref(),
            new.priority,
            i64::from(attempts),
            new.timeout_s,
            queue_until,
            &new.spec,
            &new.order.payload,
            &new.order.key,
            &new.order.signature,
            &new.log_stream_id,
            &new.created_by,
            now,
            new.step_id.as_ref(),
        ],
    )
    .await?;
    let data = serde_json::json!({
        "to": "queued", "type": new.job_type, "install_id": new.install_id, "runner_id": new.runner_id, "name": new.name,
    });
    let subject = ("job", new.id.as_str());
    record(tx, Note { org: &new.org_id, now, kind: "job.state", subject, actor: &new.created_by, data }).await?;
    if let Some(run) = &new.run {
        action_runs::insert(tx, &new.org_id, run).await?;
    }
    if let Some(build) = &new.build {
        builds::insert(tx, build).await?;
    }
    if let Some(revision) = &new.restores {
        terraform::note_restore(tx, revision, new).await?;
    }
    remember(tx, idem, new.id.as_str(), now).await?;
    let job = queued(new, attempts, queue_until);
    Ok(Queued { job, replayed: false, place: Some(place) })
}

/// A job as it was just queued.
fn queued(new: &NewJob, attempts: u32, queue_until: Timestamp) -> Job {
    Job {
        id: new.id.clone(),
        org_id: new.org_id.clone(),
        runner_id: new.runner_id.clone(),
        install_id: new.install_id.clone(),
        job_type: new.job_type,
        group: new.job_type.group(),
        operation: new.operation.clone(),
        name: new.name.clone(),
        state: JobState::Queued,
        reason: String::new(),
        error_code: None,
        target: new.target.clone(),
        priority: new.priority,
        epoch: 0,
        version: 1,
        max_executions: attempts.into(),
        timeout_s: new.timeout_s,
        queue_until,
        log_stream_id: new.log_stream_id.clone(),
        cancel_at: None,
        released: false,
        created_by: new.created_by.clone(),
        created_at: new.now,
        updated_at: new.now,
        started_at: None,
        finished_at: None,
        step_id: new.step_id.clone(),
    }
}

pub(crate) async fn target_holder(tx: &mut Tx<'_>, runner: &RunnerId, target: &str) -> Result<Option<JobId>> {
    let sql = "SELECT id FROM jobs WHERE runner_id = $1 AND target = $2 AND state IN ('available', 'in-progress', 'unknown') AND released = 0 LIMIT 1";
    tx.get(sql, params![runner, target]).await?.map(|row| row.get("id")).transpose()
}
