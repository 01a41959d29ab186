//! The queue as a runner sees it: a look compares lists and finds what may be claimed; one transaction writes what follows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::papers::Signed;
use model::runner::{HeldState, RunnerSettings};
use model::{ExecutionId, JobEvent, JobGroup, JobId, OrgId, RunnerId, Timestamp};

use crate::db::{Row, Table, Tx, Value, made_once, params};
use crate::events::notify::topic;
use crate::jobs::executions::{self, ExecutionRow};
use crate::jobs::{self, Job, job_by_id, move_job};
use crate::{Reader, Refused, Result, Store, StoreError};

/// What a poll of a runner asks for.
#[derive(Debug, Clone)]
pub struct PollInput {
    pub runner_id: RunnerId,
    pub generation: u64,
    /// The runner's process and poll; one that was sent before the last that claimed is refused.
    pub order: (u64, u64),
    pub free: BTreeMap<JobGroup, u32>,
    /// Execution, epoch, and how it stands.
    pub held: Vec<(ExecutionId, u64, HeldState)>,
    pub lease_s: u64,
    pub now: Timestamp,
    /// Ids and token hashes for what may be claimed; drawn outside the transaction. A look needs none.
    pub fresh: Vec<(ExecutionId, String)>,
}

impl PollInput {
    /// How many jobs may be claimed at most.
    pub fn most(&self) -> usize {
        self.free.values().map(|slots| *slots as usize).sum::<usize>().min(CLAIMS_PER_POLL)
    }
}

#[derive(Debug, Clone)]
pub struct PollOutput {
    pub org_id: OrgId,
    pub claimed: Vec<Assigned>,
    pub cancels: Vec<ExecutionId>,
    pub lost: Vec<ExecutionId>,
    pub settings: RunnerSettings,
    /// How often what the runner is to observe has changed.
    pub watch: u64,
    /// Jobs that went back to the queue or became unknown.
    pub changed: Vec<JobId>,
}

/// A job that was just claimed.
#[derive(Debug, Clone)]
pub struct Assigned {
    pub job: Job,
    pub execution_id: ExecutionId,
    /// Which of `fresh` it took.
    pub fresh: usize,
    pub order: Signed,
    /// Still sealed.
    pub spec: Vec<u8>,
}

/// How many jobs one poll may take.
pub const CLAIMS_PER_POLL: usize = 16;

impl Reader {
    /// One look of a runner at the queue: its list is compared with ours, and cancellations are collected. `None` when there
    /// is something to write, or to claim: then `poll` does it. Most looks find nothing, and cost no write.
    pub async fn look(&self, input: &PollInput) -> Result<Option<PollOutput>> {
        let found = self
            .main()
            .glance(Arc::new(input.clone()), |tx, input| Box::pin(async move { look(tx, input, Aim::Know).await }))
            .await?;
        Ok(found.is_quiet().then_some(found.output))
    }
}

impl Store {
    /// Looks, writes what follows from the runner's list, and claims jobs, by priority, then oldest first. One transaction.
    pub async fn poll(&self, input: PollInput) -> Result<PollOutput> {
        let output =
            self.main().write(Arc::new(input), |tx, input| Box::pin(async move { act(tx, input).await })).await?;
        let moved = output.claimed.iter().map(|a| &a.job.id).chain(&output.changed);
        moved.clone().for_each(|job| self.notifier().wake(topic::job(job)));
        if moved.count() > 0 {
            self.notifier().wake(topic::org(&output.org_id));
        }
        Ok(output)
    }
}

/// What a look finds, before anything is written.
struct Found {
    output: PollOutput,
    draining: bool,
    /// Executions of ours that the runner's list contradicts.
    contradicted: Vec<(ExecutionRow, Verdict)>,
    /// Targets of executions that the runner still has, though we have given them up: a machine that was suspended. Nothing
    /// is started beside them.
    occupied: BTreeSet<String>,
    /// There may be something to claim.
    offers: bool,
    candidates: Vec<Candidate>,
}

impl Found {
    fn is_quiet(&self) -> bool {
        self.contradicted.is_empty() && !self.offers
    }
}

/// The runner, whether anything is queued for it, and its live executions with whether they are to be cancelled: a row for
/// each of them, or one row without.
fn look_sql() -> &'static str {
    made_once!(format!(
        "SELECT r.org_id, r.generation, r.revoked_at, r.draining, r.settings, r.watch, r.poll_process, r.poll_seq, EXISTS (SELECT 1 FROM jobs q WHERE q.runner_id = r.id AND q.grp > '' AND q.state = 'queued') AS queued, j.cancel_at, CASE WHEN j.state = 'unknown' AND j.released = 1 THEN j.target END AS released_target, {} FROM runners r LEFT JOIN executions e ON e.runner_id = r.id AND e.state IN ('pending', 'in-progress', 'unknown') LEFT JOIN jobs j ON j.id = e.job_id WHERE r.id = $1 ORDER BY e.id",
        ExecutionRow::columns_of("e")
    ))
}

/// What a look is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// To know whether there is anything to do.
    Know,
    /// To do it: candidates come with their papers.
    Act,
}

async fn look(tx: &mut Tx<'_>, input: &PollInput, aim: Aim) -> Result<Found> {
    let look = params![&input.runner_id];
    // From afar, who comes to act asks for all at once.
    let (rows, offered) = if tx.is_remote() && aim == Aim::Act {
        let mut asked = vec![(look_sql(), look)];
        asked.extend(offers(input).map(|params| (with_papers(), params)));
        let mut answers = tx.queries(asked).await?.into_iter();
        (answers.next().unwrap_or_default(), Some(answers.flatten().collect::<Vec<Row>>()))
    } else {
        (tx.query(look_sql(), look).await?, None)
    };
    let row = rows.first().ok_or(StoreError::NotFound("runner"))?;
    if row.get::<Option<Timestamp>>("revoked_at")?.is_some() {
        return Err(StoreError::Revoked);
    }
    if row.get::<u64>("generation")? != input.generation {
        return Err(StoreError::Fenced);
    }
    // A poll that claimed something speaks for its runner from then on: one that comes later and was sent before it has
    // an old list, and would give jobs up that run.
    if input.order <= (row.get("poll_process")?, row.get("poll_seq")?) {
        return Err(Refused::OlderPoll.into());
    }
    let queued: bool = row.get("queued")?;
    let mut found = Found {
        output: PollOutput {
            org_id: row.get("org_id")?,
            claimed: Vec::new(),
            cancels: Vec::new(),
            lost: Vec::new(),
            settings: row.get("settings")?,
            watch: row.get("watch")?,
            changed: Vec::new(),
        },
        draining: row.get("draining")?,
        contradicted: Vec::new(),
        occupied: BTreeSet::new(),
        offers: false,
        candidates: Vec::new(),
    };
    compare_lists(input, rows, &mut found)?;
    if found.draining || !queued {
        return Ok(found);
    }
    occupied_by_lost(tx, input, &mut found).await?;
    match (offered, aim) {
        (Some(rows), _) if found.occupied.is_empty() => found.candidates = in_queue_order(&rows)?,
        (_, Aim::Act) => found.candidates = candidates(tx, input, &found.occupied).await?,
        (Some(_), Aim::Know) => {}
        // What is queued may wait for a target, or for a slot of its group. From afar, who acts finds out as cheaply.
        (None, Aim::Know) if tx.is_remote() => found.offers = input.most() > 0,
        (None, Aim::Know) => found.offers = offers_any(tx, input, &found.occupied).await?,
    }
    Ok(found)
}

/// Compares what the runner holds with what we think it holds.
fn compare_lists(input: &PollInput, rows: Vec<Row>, found: &mut Found) -> Result<()> {
    let mut held: BTreeMap<&ExecutionId, HeldState> = input.held.iter().map(|(id, _, state)| (id, *state)).collect();
    for row in rows {
        if row.get::<Option<ExecutionId>>("e_id")?.is_none() {
            continue;
        }
        let execution = ExecutionRow::from_row(&row.of("e_"))?;
        let cancelled = row.get::<Option<Timestamp>>("cancel_at")?.is_some();
        match Verdict::of(&execution, held.remove(&execution.id), input.generation) {
            Verdict::Held => {
                found.occupied.extend(row.get::<Option<String>>("released_target")?);
                if cancelled {
                    found.output.cancels.push(execution.id);
                }
            }
            Verdict::Out => {}
            verdict @ (Verdict::HandBack | Verdict::Vanished(_) | Verdict::Gone) => {
                found.contradicted.push((execution, verdict));
            }
        }
    }
    found.output.lost.extend(held.into_keys().cloned());
    Ok(())
}

/// An execution that we have given up, and that the runner still has, may be at work: its target is taken until the runner says
/// that it is gone. One with a result is gone.
async fn occupied_by_lost(tx: &mut Tx<'_>, input: &PollInput, found: &mut Found) -> Result<()> {
    let sql = "SELECT j.target FROM executions e JOIN jobs j ON j.id = e.job_id WHERE e.id = $1 AND e.runner_id = $2 AND e.result IS NULL AND j.target IS NOT NULL";
    let alive = |id: &ExecutionId| input.held.iter().any(|(held, _, state)| held == id && *state == HeldState::Alive);
    for id in found.output.lost.iter().filter(|id| alive(id)) {
        if let Some(row) = tx.get(sql, params![id, &input.runner_id]).await? {
            found.occupied.insert(row.get("target")?);
        }
    }
    // Who breaks a rule about releases wants to see that it is missed: this one would hide it.
    if crash::broken!("occupied_targets") || crash::broken!("early_release") || crash::broken!("clock_set") {
        found.occupied.clear();
    }
    Ok(())
}

async fn act(tx: &mut Tx<'_>, input: &PollInput) -> Result<PollOutput> {
    let mut found = look(tx, input, Aim::Act).await?;
    if !found.contradicted.is_empty() {
        touch_runner(tx, &input.runner_id).await?;
        for (execution, verdict) in &found.contradicted {
            settle(tx, execution, verdict, &mut found.output.changed, input.now).await?;
        }
        if !found.draining {
            found.candidates = candidates(tx, input, &found.occupied).await?;
        }
    }
    if !found.candidates.is_empty() {
        take_turn(tx, input).await?;
        claim(tx, input, found.candidates, &mut found.output.claimed).await?;
    }
    Ok(found.output)
}

/// Writes what follows from the runner's word about an execution.
async fn settle(
    tx: &mut Tx<'_>,
    execution: &ExecutionRow,
    verdict: &Verdict,
    changed: &mut Vec<JobId>,
    now: Timestamp,
) -> Result<()> {
    let mut job = job_by_id(tx, &execution.job_id).await?;
    let before = job.state;
    match verdict {
        Verdict::HandBack => {
            executions::hand_back(tx, execution, &mut job, "the runner did not keep the claim", now).await?;
        }
        Verdict::Vanished(reason) => executions::vanish(tx, execution, &mut job, reason, true, now).await?,
        Verdict::Gone => executions::release(tx, execution, &job, now).await?,
        Verdict::Held | Verdict::Out => {}
    }
    if job.state != before {
        changed.push(job.id);
    }
    Ok(())
}

/// What a runner's list says about an execution of ours.
enum Verdict {
    Held,
    /// Nothing was started, and nothing will be: it goes back.
    HandBack,
    /// Started, and not there any more.
    Vanished(&'static str),
    /// Unknown already, and certainly over.
    Gone,
    /// Unknown, of an earlier session. This one can't know: its executor may live on where that one was.
    Out,
}

impl Verdict {
    /// `there`: how the runner has it, if it has it at all.
    fn of(execution: &ExecutionRow, there: Option<HeldState>, generation: u64) -> Self {
        use HeldState::{Alive, Dead, Unstarted};
        let same = execution.generation == generation;
        match (execution.state.as_str(), there) {
            (_, Some(Alive)) => Self::Held,
            ("pending", None | Some(Dead | Unstarted)) => Self::HandBack,
            ("in-progress", Some(Unstarted)) if same => Self::HandBack,
            ("in-progress", Some(Dead | Unstarted)) => Self::Vanished("the executor died without a result"),
            ("in-progress", None) => {
                Self::Vanished("the runner lost this execution: its state directory is gone or was emptied")
            }
            (_, None | Some(Dead | Unstarted)) if same => Self::Gone,
            (_, None | Some(Dead | Unstarted)) => Self::Out,
        }
    }
}

/// Two polls of one runner at a time, or a poll and a join, do not see each other's writes on PostgreSQL; a write to the
/// same row makes one of them start over. It comes before all others, so that they wait for each other in one order.
async fn touch_runner(tx: &mut Tx<'_>, runner: &RunnerId) -> Result<()> {
    tx.exec_later("UPDATE runners SET generation = generation WHERE id = $1", params![runner]).await
}

/// Notes the poll that claims: none that was sent before it is listened to from now on.
async fn take_turn(tx: &mut Tx<'_>, input: &PollInput) -> Result<()> {
    let (process, seq) = input.order;
    tx.exec_later(
        "UPDATE runners SET poll_process = $2, poll_seq = $3 WHERE id = $1",
        params![&input.runner_id, process, seq],
    )
    .await
}

/// The first jobs of a group whose targets are free. A target that several wait for is offered once, so that they don't
/// hide the jobs behind them.
macro_rules! offered {
    () => {
        "FROM jobs j WHERE runner_id = $1 AND grp = $2 AND state = 'queued' AND (target IS NULL OR (NOT EXISTS (SELECT 1 FROM jobs h WHERE h.runner_id = j.runner_id AND h.target = j.target AND h.state IN ('available', 'in-progress', 'unknown') AND h.released = 0) AND NOT EXISTS (SELECT 1 FROM jobs q WHERE q.runner_id = j.runner_id AND q.target = j.target AND q.grp = j.grp AND q.state = 'queued' AND (q.priority > j.priority OR (q.priority = j.priority AND (q.created_at, q.id) < (j.created_at, j.id)))))) ORDER BY priority DESC, created_at, id LIMIT $3"
    };
}
const OFFERED: &str = concat!("SELECT target ", offered!());
/// With what a claim takes along.
fn with_papers() -> &'static str {
    made_once!(format!("SELECT {}, order_payload, order_key, order_signature, spec {}", Job::columns(), offered!()))
}

/// What is asked of each group with free slots.
fn offers(input: &PollInput) -> impl Iterator<Item = Vec<Value>> {
    let free = input.free.iter().filter(|(_, slots)| **slots > 0);
    free.map(|(group, slots)| {
        let limit = (*slots as usize).min(input.most()) as u64;
        params![&input.runner_id, group.as_str(), limit]
    })
}

async fn offers_any(tx: &mut Tx<'_>, input: &PollInput, occupied: &BTreeSet<String>) -> Result<bool> {
    for mut params in offers(input) {
        // A target is offered once in each group, so one more than those that are taken is enough.
        params[2] = Value::Int(1 + occupied.len() as i64);
        for row in tx.query(OFFERED, params).await? {
            if row.get::<Option<String>>("target")?.is_none_or(|target| !occupied.contains(&target)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A job that may be taken, and its papers.
type Candidate = (Job, Signed, Vec<u8>);

async fn candidates(tx: &mut Tx<'_>, input: &PollInput, occupied: &BTreeSet<String>) -> Result<Vec<Candidate>> {
    let more = occupied.len() as i64;
    let asked = offers(input).map(|mut params| {
        if let Value::Int(limit) = &mut params[2] {
            *limit += more;
        }
        (with_papers(), params)
    });
    let rows: Vec<Row> = tx.queries(asked.collect()).await?.into_iter().flatten().collect();
    let mut found = in_queue_order(&rows)?;
    found.retain(|(job, ..)| job.target.as_ref().is_none_or(|target| !occupied.contains(target)));
    Ok(found)
}

fn in_queue_order(rows: &[Row]) -> Result<Vec<Candidate>> {
    let candidate = |row: &Row| {
        let (order, spec) = jobs::papers_from(row)?;
        Ok((Job::from_row(row)?, order, spec))
    };
    let mut candidates = rows.iter().map(candidate).collect::<Result<Vec<_>>>()?;
    candidates.sort_by(|(a, ..), (b, ..)| {
        (Reverse(a.priority), a.created_at, &a.id).cmp(&(Reverse(b.priority), b.created_at, &b.id))
    });
    Ok(candidates)
}

async fn claim(
    tx: &mut Tx<'_>,
    input: &PollInput,
    candidates: Vec<Candidate>,
    claimed: &mut Vec<Assigned>,
) -> Result<()> {
    let most = input.fresh.len().min(input.most());
    let mut targets = BTreeSet::new();
    for (job, order, spec) in candidates {
        if claimed.len() >= most {
            break;
        }
        if job.target.clone().is_none_or(|target| targets.insert(target)) {
            let fresh = claimed.len();
            let (job, execution_id) = claim_one(tx, input, fresh, job).await?;
            claimed.push(Assigned { job, execution_id, fresh, order, spec });
        }
    }
    Ok(())
}

async fn claim_one(tx: &mut Tx<'_>, input: &PollInput, fresh: usize, mut job: Job) -> Result<(Job, ExecutionId)> {
    move_job(tx, &mut job, JobEvent::Claim, "", None, input.runner_id.as_str(), input.now).await?;
    let (execution_id, token_hash) = &input.fresh[fresh];
    executions::insert(tx, &job, execution_id, token_hash, input).await?;
    Ok((job, execution_id.clone()))
}
