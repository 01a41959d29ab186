//! Executions: leases with epochs. Every write checks the epoch in the same transaction.
//!
//! Rows are written in one order (runner, job, execution), or PostgreSQL would find deadlocks, a second for each.

use model::{
    ExecutionId, ExecutionResult, JobEvent, JobId, JobState, JobType, Outcome, RunnerId, StepResult, Timestamp,
};

use crate::db::{Row, Table, Tx, made_once, params, select, table};
use crate::events::notify::topic;
use crate::events::{Note, record};
use crate::jobs::queue::PollInput;
use crate::jobs::{Job, SETTLED, job_by_id, move_job, target_holder};
use crate::pages::summaries;
use crate::terraform::{name_uploads, uploads_in};
use crate::{Reader, Result, Store, StoreError, workflows};

table! {
    #[derive(Debug, Clone)]
    pub struct ExecutionRow from "executions" {
        pub id: ExecutionId,
        pub org_id: model::OrgId,
        pub job_id: JobId,
        pub runner_id: RunnerId,
        pub epoch: u64,
        pub generation: u64,
        pub state: String,
        pub reason: String,
        pub token_hash: String,
        pub lease_until: Timestamp,
        pub steps: Vec<StepResult>,
        /// How many log chunks it wrote, once it has said so.
        pub log_chunks: Option<u64>,
        pub created_at: Timestamp,
        pub started_at: Option<Timestamp>,
        pub finished_at: Option<Timestamp>,
        pub has_result: bool = "result IS NOT NULL",
    }
}

/// The grace of a job's type, in microseconds, as SQL.
fn grace_us() -> String {
    let of = |job_type: JobType| format!(" WHEN '{job_type}' THEN {}", job_type.facts().grace_s * 1_000_000);
    format!("(CASE jobs.type{} ELSE 0 END)", JobType::ALL.map(of).concat())
}

/// Constants of leases, from the configuration.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTiming {
    pub lease_s: u64,
    pub offline_s: u64,
}

#[derive(Debug, Clone)]
pub struct ResultWritten {
    pub job: Job,
    /// False when a result was there before.
    pub recorded: bool,
}

/// How often a starting server gives a lease more time without a renewal in between.
const EXTENSIONS_MAX: u64 = 3;

/// Executions of a runner that are not over.
pub(crate) async fn live(tx: &mut Tx<'_>, runner: &RunnerId) -> Result<Vec<ExecutionRow>> {
    let sql =
        select!(ExecutionRow, "WHERE runner_id = $1 AND state IN ('pending', 'in-progress', 'unknown') ORDER BY id");
    tx.query(sql, params![runner]).await?.iter().map(ExecutionRow::from_row).collect()
}

pub(crate) async fn by_id(tx: &mut Tx<'_>, id: &ExecutionId) -> Result<ExecutionRow> {
    let sql = select!(ExecutionRow, "WHERE id = $1");
    ExecutionRow::from_row(&tx.get(sql, params![id]).await?.ok_or(StoreError::NotFound("execution"))?)
}

pub(crate) async fn insert(
    tx: &mut Tx<'_>,
    job: &Job,
    id: &ExecutionId,
    token_hash: &str,
    input: &PollInput,
) -> Result<()> {
    tx.exec_later(
        "INSERT INTO executions (id, org_id, job_id, runner_id, epoch, generation, state, reason, token_hash, lease_until, created_at) VALUES ($1, $2, $3, $4, $5, $6, 'pending', '', $7, $8, $9)",
        params![id, &job.org_id, &job.id, &job.runner_id, job.epoch, input.generation, token_hash, input.now.plus_s(input.lease_s as i64), input.now],
    )
    .await
}

async fn set_state(tx: &mut Tx<'_>, id: &ExecutionId, state: &str, reason: &str, now: Timestamp) -> Result<()> {
    let finished = (!matches!(state, "pending" | "in-progress" | "unknown")).then_some(now);
    tx.exec_later(
        "UPDATE executions SET state = $2, reason = $3, finished_at = $4 WHERE id = $1",
        params![id, state, reason, finished],
    )
    .await
}

/// Ends the current execution of a job, where there is one.
pub(crate) async fn end_current(tx: &mut Tx<'_>, job: &Job, state: &str, reason: &str, now: Timestamp) -> Result<()> {
    tx.exec_later(
        "UPDATE executions SET state = $3, reason = $4, finished_at = $5 WHERE job_id = $1 AND epoch = $2 AND state IN ('pending', 'in-progress', 'unknown')",
        params![&job.id, job.epoch, state, reason, now],
    )
    .await
}

/// An execution of which nothing was started goes back to the queue.
pub(crate) async fn hand_back(
    tx: &mut Tx<'_>,
    execution: &ExecutionRow,
    job: &mut Job,
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    if matches!(job.state, JobState::Claimed | JobState::Running) && job.epoch == execution.epoch {
        move_job(tx, job, JobEvent::HandBack, reason, None, "ferry", now).await?;
        if job.cancel_at.is_some() {
            let (event, reason) = (JobEvent::Withdraw(Outcome::Cancelled), "cancelled before it started");
            move_job(tx, job, event, reason, Some("cancelled"), "ferry", now).await?;
        }
    }
    set_state(tx, &execution.id, "handed-back", reason, now).await
}

/// A started execution that nobody can see any more: unknown, or tried again where that can do no harm.
pub(crate) async fn vanish(
    tx: &mut Tx<'_>,
    execution: &ExecutionRow,
    job: &mut Job,
    reason: &str,
    gone: bool,
    now: Timestamp,
) -> Result<()> {
    if job.state != JobState::Running || job.epoch != execution.epoch {
        return set_state(tx, &execution.id, "failed", reason, now).await;
    }
    move_job(tx, job, JobEvent::Vanish, reason, Some("vanished"), "ferry", now).await?;
    if !job.job_type.may_be_retried(&job.operation) {
        set_state(tx, &execution.id, "unknown", reason, now).await?;
        return if gone { release(tx, execution, job, now).await } else { Ok(()) };
    }
    set_state(tx, &execution.id, "failed", reason, now).await?;
    if job.cancel_at.is_some() {
        let why = format!("cancelled; {reason}");
        return move_job(tx, job, JobEvent::Settle(Outcome::Cancelled), &why, Some("cancelled"), "ferry", now).await;
    }
    // A claim that went back was no attempt, though it raised the epoch.
    let started = "SELECT COUNT(*) AS count FROM executions WHERE job_id = $1 AND started_at IS NOT NULL";
    let row = tx.get(started, params![&job.id]).await?.ok_or_else(|| StoreError::corrupt("count"))?;
    let attempts: u64 = row.get("count")?;
    if attempts < job.max_executions {
        let why = format!("tried again, it only reads: {reason}");
        move_job(tx, job, JobEvent::Retry, &why, None, "ferry", now).await
    } else {
        let why = format!("{attempts} attempts, the last one: {reason}");
        let code = Some("attempts_exhausted");
        move_job(tx, job, JobEvent::Settle(Outcome::Failed), &why, code, "ferry", now).await
    }
}

/// The result of a job that somebody has settled meanwhile: it is kept with its execution. The outcome stays what the person said;
/// where the runner says another one, the job shows both.
async fn keep_late(
    tx: &mut Tx<'_>,
    job: &mut Job,
    execution: &ExecutionRow,
    result: &ExecutionResult,
    (steps, sealed): (String, Vec<u8>),
    now: Timestamp,
) -> Result<()> {
    let sql = "UPDATE executions SET steps = $2, result = $3, log_chunks = $4, finished_at = $5 WHERE id = $1";
    tx.exec_later(sql, params![&execution.id, steps, sealed, result.log_chunks, now]).await?;
    let said = JobState::from(result.outcome);
    if said == job.state {
        return Ok(());
    }
    let why = result.error.as_ref().map(|error| format!(" ({})", error.message)).unwrap_or_default();
    job.reason = format!("{}; but the runner reported later that it is {said}{why}", job.reason);
    job.updated_at = now;
    tx.exec_later("UPDATE jobs SET reason = $2, updated_at = $3 WHERE id = $1", params![&job.id, &job.reason, now])
        .await?;
    let data = serde_json::json!({ "settled": job.state, "reported": said, "install_id": job.install_id, "reason": job.reason });
    let subject = ("job", job.id.as_str());
    let actor = execution.runner_id.as_str();
    record(tx, Note { org: &job.org_id, now, kind: "job.contradicted", subject, actor, data }).await
}

/// The executor of an unknown job is certainly gone: others may work on its target, and no renewal revives it.
pub(crate) async fn release(tx: &mut Tx<'_>, execution: &ExecutionRow, job: &Job, now: Timestamp) -> Result<()> {
    tx.exec_later("UPDATE jobs SET released = 1 WHERE id = $1 AND state = 'unknown'", params![&job.id]).await?;
    let over = "UPDATE executions SET finished_at = $2 WHERE id = $1 AND state = 'unknown' AND finished_at IS NULL";
    tx.exec_later(over, params![&execution.id, now]).await?;
    if let Some(install) = &job.install_id {
        summaries::outdate(tx, install).await?;
    }
    match &job.step_id {
        Some(step) => workflows::wake_step(tx, step, now).await,
        None => Ok(()),
    }
}

/// Ends all executions of a runner whose session is over.
pub(crate) async fn fence_executions(tx: &mut Tx<'_>, runner: &RunnerId, reason: &str, now: Timestamp) -> Result<()> {
    for execution in live(tx, runner).await? {
        let mut job = job_by_id(tx, &execution.job_id).await?;
        match execution.state.as_str() {
            "pending" => hand_back(tx, &execution, &mut job, reason, now).await?,
            "in-progress" if crash::broken!("fenced_goes_back") => {
                hand_back(tx, &execution, &mut job, reason, now).await?
            }
            "in-progress" => vanish(tx, &execution, &mut job, reason, false, now).await?,
            _ => {}
        }
    }
    Ok(())
}

/// A runner, with the execution that it reports on, and the job of that.
struct Reported(Row);

/// What a runner's report on an execution is compared with; `None` where there is no such runner.
async fn reported(tx: &mut Tx<'_>, runner: &RunnerId, id: &ExecutionId) -> Result<Option<Reported>> {
    let sql = made_once!(format!(
        "SELECT r.generation, r.revoked_at, {}, {} FROM runners r LEFT JOIN executions e ON e.id = $2 LEFT JOIN jobs j ON j.id = e.job_id WHERE r.id = $1",
        ExecutionRow::columns_of("e"),
        Job::columns_of("j")
    ));
    Ok(tx.get(sql, params![runner, id]).await?.map(Reported))
}

impl Reported {
    /// Only the session that claimed an execution may write to it, unless a newer one has taken its place.
    fn check_session(&self, generation: u64) -> Result<()> {
        if self.0.get::<Option<Timestamp>>("revoked_at")?.is_some() {
            return Err(StoreError::Revoked);
        }
        if self.0.get::<u64>("generation")? != generation { Err(StoreError::Fenced) } else { Ok(()) }
    }

    fn execution(&self) -> Result<ExecutionRow> {
        let there = self.0.get::<Option<ExecutionId>>("e_id")?.is_some();
        if there { ExecutionRow::from_row(&self.0.of("e_")) } else { Err(StoreError::NotFound("execution")) }
    }

    fn job(&self) -> Result<Job> {
        let there = self.0.get::<Option<JobId>>("j_id")?.is_some();
        if there { Job::from_row(&self.0.of("j_")) } else { Err(StoreError::NotFound("job")) }
    }
}

async fn check_session(tx: &mut Tx<'_>, runner: &RunnerId, generation: u64) -> Result<()> {
    let row = tx
        .get("SELECT generation, revoked_at FROM runners WHERE id = $1", params![runner])
        .await?
        .ok_or(StoreError::NotFound("runner"))?;
    Reported(row).check_session(generation)
}

impl Reader {
    /// An execution by its id, for the runner that it belongs to.
    pub async fn execution(&self, runner: &RunnerId, id: &ExecutionId) -> Result<ExecutionRow> {
        self.main()
            .glance((runner.clone(), id.clone()), |tx, (runner, id)| {
                Box::pin(async move {
                    let execution = by_id(tx, id).await?;
                    if execution.runner_id == *runner { Ok(execution) } else { Err(StoreError::NotFound("execution")) }
                })
            })
            .await
    }

    pub async fn executions_of(&self, job: &JobId) -> Result<Vec<ExecutionRow>> {
        self.main()
            .glance(job.clone(), |tx, job| {
                Box::pin(async move {
                    let sql = select!(ExecutionRow, "WHERE job_id = $1 ORDER BY epoch");
                    tx.query(sql, params![&job]).await?.iter().map(ExecutionRow::from_row).collect()
                })
            })
            .await
    }

    /// The result of an execution, opened.
    pub async fn result(&self, org: &model::OrgId, id: &ExecutionId) -> Result<Option<ExecutionResult>> {
        let sealed: Option<Vec<u8>> = self
            .main()
            .read((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "SELECT result FROM executions WHERE org_id = $1 AND id = $2";
                    tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("execution"))?.get("result")
                })
            })
            .await?;
        let Some(sealed) = sealed else { return Ok(None) };
        let plain = self.open_sealed(org, &result_place(id), &sealed).await?;
        serde_json::from_slice(&plain).map(Some).map_err(StoreError::db)
    }
}

impl Store {
    /// The server's agreement that work may begin. Asking again is harmless.
    pub async fn start(
        &self,
        runner: &RunnerId,
        generation: u64,
        id: &ExecutionId,
        lease_s: u64,
        now: Timestamp,
    ) -> Result<Job> {
        let job = self
            .main()
            .write((runner.clone(), id.clone(), generation, lease_s, now), |tx, (runner, id, generation, lease_s, now)| { Box::pin(async move {
                    let reported = reported(tx, runner, id).await?.ok_or(StoreError::NotFound("runner"))?;
                    reported.check_session(*generation)?;
                    let (execution, mut job) = (reported.execution()?, reported.job()?);
                    if execution.runner_id != *runner {
                        return Err(StoreError::NotFound("execution"));
                    }
                    if job.epoch != execution.epoch || execution.generation != *generation {
                        return Err(StoreError::LeaseLost);
                    }
                    let lease_until = now.plus_s(*lease_s as i64);
                    match (job.state, execution.state.as_str()) {
                        (JobState::Running, "in-progress") => {}
                        (JobState::Claimed, "pending") => {
                            move_job(tx, &mut job, JobEvent::Start, "", None, runner.as_str(), *now).await?;
                            tx.exec_later(
                                "UPDATE executions SET state = 'in-progress', started_at = $2, lease_until = $3 WHERE id = $1",
                                params![&id, now, lease_until],
                            )
                            .await?;
                        }
                        _ => return Err(StoreError::LeaseLost),
                    }
                    Ok(job)
                }) })
            .await?;
        self.notifier().wake(topic::org(&job.org_id));
        self.notifier().wake(topic::job(&job.id));
        Ok(job)
    }

    /// Renews leases. Returns what was renewed, what is lost, and what is to be cancelled.
    pub async fn renew(
        &self,
        runner: &RunnerId,
        generation: u64,
        held: Vec<(ExecutionId, u64)>,
        lease_s: u64,
        now: Timestamp,
    ) -> Result<(Vec<ExecutionId>, Vec<ExecutionId>, Vec<ExecutionId>)> {
        let (renewed, lost, cancels, revived) = self
            .main()
            .write((runner.clone(), held, generation, lease_s, now), |tx, (runner, held, generation, lease_s, now)| {
                Box::pin(async move {
                    check_session(tx, runner, *generation).await?;
                    let (mut renewed, mut lost, mut cancels, mut revived) = (vec![], vec![], vec![], vec![]);
                    let until = now.plus_s(*lease_s as i64);
                    for (id, epoch) in held {
                        match renew_one(tx, (runner, *generation), (id, *epoch), until, *now).await? {
                            Renewal::Lost => lost.push(id.clone()),
                            Renewal::Renewed { job, was_unknown } => {
                                if job.cancel_at.is_some() {
                                    cancels.push(id.clone());
                                }
                                if was_unknown {
                                    revived.push(job);
                                }
                                renewed.push(id.clone());
                            }
                        }
                    }
                    Ok((renewed, lost, cancels, revived))
                })
            })
            .await?;
        revived.iter().for_each(|job| self.wake_for(job));
        Ok((renewed, lost, cancels))
    }

    /// Stores how far the steps are; only for show, so a stale epoch is just ignored.
    pub async fn progress(
        &self,
        runner: &RunnerId,
        id: &ExecutionId,
        epoch: u64,
        steps: Vec<StepResult>,
    ) -> Result<()> {
        self.main()
            .write((runner.clone(), id.clone(), serde_json::to_string(&steps).map_err(StoreError::db)?, epoch), |tx, (runner, id, steps, epoch)| { Box::pin(async move {
                    tx.exec(
                        "UPDATE executions SET steps = $4 WHERE id = $1 AND runner_id = $2 AND epoch = $3 AND state IN ('in-progress', 'unknown')",
                        params![&id, &runner, epoch, steps],
                    )
                    .await?;
                    Ok(())
                }) })
            .await
    }

    /// Writes the result record: once, for the current epoch; the first one wins.
    pub async fn write_result(
        &self,
        org: &model::OrgId,
        (runner, generation): (&RunnerId, u64),
        id: &ExecutionId,
        epoch: u64,
        result: &ExecutionResult,
        now: Timestamp,
    ) -> Result<ResultWritten> {
        let text = serde_json::to_vec(result).map_err(StoreError::db)?;
        let written = self
            .main()
            .write((org.clone(), runner.clone(), id.clone(), result.clone(), self.org_keys(org).await?.seal(&result_place(id), &text), serde_json::to_string(&result.steps).map_err(StoreError::db)?, generation, epoch, now), |tx, (org, runner, id, result, sealed, steps, generation, epoch, now)| { Box::pin(async move {
                    let reported = reported(tx, runner, id).await?.ok_or(StoreError::NotFound("execution"))?;
                    let execution = reported.execution()?;
                    if execution.org_id != *org || execution.runner_id != *runner {
                        return Err(StoreError::NotFound("execution"));
                    }
                    let mut job = reported.job()?;
                    if execution.has_result {
                        return Ok(ResultWritten { job, recorded: false });
                    }
                    reported.check_session(*generation)?;
                    let stale = job.epoch != *epoch || execution.epoch != *epoch || execution.generation != *generation;
                    if stale && !crash::broken!("result_epoch") {
                        return Err(StoreError::LeaseLost);
                    }
                    if job.error_code.as_deref() == Some(SETTLED) && job.state.is_terminal() {
                        keep_late(tx, &mut job, &execution, result, (steps.clone(), sealed.clone()), *now).await?;
                        name_uploads(tx, result.outputs.values().flat_map(uploads_in).collect(), *now).await?;
                        return Ok(ResultWritten { job, recorded: true });
                    }
                    let event = match (job.state, result.outcome) {
                        (JobState::Running | JobState::Unknown, outcome) => JobEvent::Result(outcome),
                        // A runner may refuse what it has not started, and nothing else.
                        (JobState::Claimed, Outcome::NotAttempted) => JobEvent::Withdraw(Outcome::NotAttempted),
                        _ => return Err(StoreError::LeaseLost),
                    };
                    let reason = result.error.as_ref().map_or("", |e| e.message.as_str());
                    let code = result.error.as_ref().map(|e| e.code.as_str());
                    move_job(tx, &mut job, event, reason, code, runner.as_str(), *now).await?;
                    tx.exec_later(
                        "UPDATE executions SET state = $2, reason = $3, steps = $4, result = $5, log_chunks = $6, finished_at = $7 WHERE id = $1",
                        params![&id, job.state.as_str(), reason, steps, sealed, result.log_chunks, now],
                    )
                    .await?;
                    note_health(tx, &job, result, *now).await?;
                    name_uploads(tx, result.outputs.values().flat_map(uploads_in).collect(), *now).await?;
                    Ok(ResultWritten { job, recorded: true })
                }) })
            .await?;
        self.wake_for(&written.job);
        Ok(written)
    }

    /// Ends leases that ran out: claims go back to the queue, started executions become unknown.
    pub async fn expire_leases(&self, now: Timestamp, limit: u64) -> Result<usize> {
        let jobs = self
            .main()
            .write((now, limit), |tx, (now, limit)| {
                Box::pin(async move {
                    let sql = select!(
                        ExecutionRow,
                        "WHERE state IN ('pending', 'in-progress') AND lease_until < $1 ORDER BY lease_until LIMIT $2"
                    );
                    let expired: Vec<ExecutionRow> = tx
                        .query(sql, params![now, limit])
                        .await?
                        .iter()
                        .map(ExecutionRow::from_row)
                        .collect::<Result<_>>()?;
                    let mut jobs = Vec::new();
                    for execution in expired {
                        let mut job = job_by_id(tx, &execution.job_id).await?;
                        let since = execution.lease_until;
                        if execution.state == "pending" {
                            let reason = "the runner took it and was not heard of again";
                            hand_back(tx, &execution, &mut job, reason, *now).await?;
                        } else {
                            let reason = format!("the lease ended at {since}: nothing was heard of the runner");
                            vanish(tx, &execution, &mut job, &reason, false, *now).await?;
                        }
                        jobs.push(job);
                    }
                    Ok(jobs)
                })
            })
            .await?;
        if !jobs.is_empty() {
            crash::crash_point!("server.leases_ended");
        }
        jobs.iter().for_each(|job| self.wake_for(job));
        Ok(jobs.len())
    }

    /// Frees the targets of unknown jobs whose executor must have ended itself by now, and wakes who may wait for one.
    pub async fn release_offline(&self, timing: LeaseTiming, now: Timestamp) -> Result<u64> {
        // An executor counts from the last answer that it got; that lies one lease before the lease's end.
        let early = if crash::broken!("early_release") { timing.offline_s + JobType::LONGEST_GRACE_S } else { 0 };
        let before = now.plus_s(early as i64 - timing.offline_s as i64);
        let released: Vec<RunnerId> = self
            .main()
            .write((now, before), |tx, (now, before)| { Box::pin(async move {
                    let sql = made_once!(format!(
                        "UPDATE jobs SET released = 1 WHERE state = 'unknown' AND released = 0 AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.job_id = jobs.id AND e.state = 'unknown' AND e.lease_until + {} >= $1) RETURNING runner_id, step_id, install_id",
                        grace_us()
                    ));
                    let rows = tx.query(sql, params![before]).await?;
                    for row in &rows {
                        if let Some(install) = row.get::<Option<model::InstallId>>("install_id")? {
                            summaries::outdate(tx, &install).await?;
                        }
                        if let Some(step) = row.get::<Option<model::StepId>>("step_id")? {
                            workflows::wake_step(tx, &step, *now).await?;
                        }
                    }
                    rows.iter().map(|row| row.get("runner_id")).collect()
                }) })
            .await?;
        released.iter().for_each(|runner| self.notifier().wake(topic::runner(runner)));
        Ok(released.len() as u64)
    }

    /// Every lease begins anew, also that of an unknown job, which holds its target: the server's clock was set, and that is
    /// nobody's fault.
    pub async fn extend_leases(&self, lease_s: u64, now: Timestamp) -> Result<u64> {
        self.extend(lease_s, now, u64::MAX >> 1).await
    }

    /// The same for a server that starts: it was away, and nobody could renew. A lease that was given more time so often
    /// without one renewal ends: a replica that dies and starts again and again must not keep the jobs of dead runners alive.
    pub async fn extend_leases_at_start(&self, lease_s: u64, now: Timestamp) -> Result<u64> {
        self.extend(lease_s, now, EXTENSIONS_MAX).await
    }

    /// One that ends later than a fresh one would was made by a clock that was set back since.
    async fn extend(&self, lease_s: u64, now: Timestamp, most: u64) -> Result<u64> {
        let until = now.plus_s(lease_s as i64);
        self.main()
            .write((most, until), |tx, (most, until)| { Box::pin(async move {
                    tx.exec(
                        "UPDATE executions SET lease_until = $1, extensions = extensions + 1 WHERE state IN ('pending', 'in-progress', 'unknown') AND (extensions < $2 OR lease_until > $1)",
                        params![until, most],
                    )
                    .await
                }) })
            .await
    }
}

fn result_place(id: &ExecutionId) -> String {
    format!("executions|{id}|result")
}

enum Renewal {
    Lost,
    Renewed { job: Box<Job>, was_unknown: bool },
}

async fn renew_one(
    tx: &mut Tx<'_>,
    (runner, generation): (&RunnerId, u64),
    (id, epoch): (&ExecutionId, u64),
    until: Timestamp,
    now: Timestamp,
) -> Result<Renewal> {
    let Some(reported) = reported(tx, runner, id).await? else { return Ok(Renewal::Lost) };
    let execution = match reported.execution() {
        Ok(e) if e.runner_id == *runner && e.generation == generation && e.epoch == epoch => e,
        Ok(_) | Err(StoreError::NotFound(_)) => return Ok(Renewal::Lost),
        Err(other) => return Err(other),
    };
    let mut job = reported.job()?;
    if job.epoch != epoch {
        return Ok(Renewal::Lost);
    }
    let was_unknown = job.state == JobState::Unknown;
    match job.state {
        JobState::Running | JobState::Claimed => {}
        // The runner itself has said that the executor is dead: this renewal was on its way before that.
        JobState::Unknown if execution.finished_at.is_some() => return Ok(Renewal::Lost),
        JobState::Unknown => {
            // Its target was free, and another has taken it: this one must stop.
            if let Some(target) = job.target.as_ref().filter(|_| job.released)
                && target_holder(tx, &job.runner_id, target).await?.is_some()
            {
                return Ok(Renewal::Lost);
            }
            move_job(tx, &mut job, JobEvent::Revive, "", None, runner.as_str(), now).await?;
        }
        JobState::Queued
        | JobState::Finished
        | JobState::Failed
        | JobState::TimedOut
        | JobState::Cancelled
        | JobState::NotAttempted => return Ok(Renewal::Lost),
    }
    tx.exec_later(
        "UPDATE executions SET lease_until = $2, extensions = 0, state = CASE WHEN state = 'unknown' THEN 'in-progress' ELSE state END, reason = '' WHERE id = $1",
        params![id, until],
    )
    .await?;
    Ok(Renewal::Renewed { job: Box::new(job), was_unknown })
}

/// The outputs of a health check are what `runners get` shows.
async fn note_health(tx: &mut Tx<'_>, job: &Job, result: &ExecutionResult, now: Timestamp) -> Result<()> {
    if job.job_type != model::JobType::HealthCheck || result.outcome != Outcome::Finished {
        return Ok(());
    }
    let outputs = serde_json::to_string(&result.outputs).map_err(StoreError::db)?;
    let sql = "UPDATE runners SET health = $2, health_at = $3 WHERE id = $1";
    tx.exec_later(sql, params![&job.runner_id, outputs, now]).await
}
