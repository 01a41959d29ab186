//! The queue as a runner sees it: a look compares lists and finds what may be claimed; one transaction writes what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::papers::Signed;
use model::runner::{HeldState, RunnerSettings};
use model::{ExecutionId, JobEvent, JobGroup, JobId, OrgId, RunnerId, Timestamp};

use crate::db::{Tx, params};
use crate::executions::{self, ExecutionRow};
use crate::jobs::{Job, job_by_id, job_with_papers, move_job};
use crate::notify::topic;
use crate::{Result, Store, StoreError};

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

impl Store {
    /// One look of a runner at the queue: its list is compared with ours, and cancellations are collected. `None` when there
    /// is something to write, or to claim: then `poll` does it. Most looks find nothing, and cost no write.
    pub async fn look(&self, input: &PollInput) -> Result<Option<PollOutput>> {
        let input = Arc::new(input.clone());
        let found = self
            .main()
            .glance(move |tx| {
                let input = Arc::clone(&input);
                Box::pin(async move { look(tx, &input).await })
            })
            .await?;
        Ok(found.is_quiet().then_some(found.output))
    }

    /// Looks, writes what follows from the runner's list, and claims jobs, by priority, then oldest first. One transaction.
    pub async fn poll(&self, input: PollInput) -> Result<PollOutput> {
        let input = Arc::new(input);
        let output = self
            .main()
            .write(move |tx| {
                let input = Arc::clone(&input);
                Box::pin(async move { act(tx, &input).await })
            })
            .await?;
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
    candidates: Vec<Candidate>,
}

impl Found {
    fn is_quiet(&self) -> bool {
        self.contradicted.is_empty() && self.candidates.is_empty()
    }
}

async fn look(tx: &mut Tx<'_>, input: &PollInput) -> Result<Found> {
    let row = tx
        .get(
            "SELECT org_id, generation, revoked_at, draining, settings, poll_process, poll_seq FROM runners WHERE id = $1",
            params![&input.runner_id],
        )
        .await?
        .ok_or(StoreError::NotFound("runner"))?;
    if row.get::<u64>(1)? != input.generation || row.get::<Option<Timestamp>>(2)?.is_some() {
        return Err(StoreError::Fenced);
    }
    // A poll that claimed something speaks for its runner from then on: one that comes later and was sent before it has
    // an old list, and would give jobs up that run.
    if input.order <= (row.get(5)?, row.get(6)?) {
        return Err(StoreError::Conflict("a newer poll of this runner took its place".into()));
    }
    let mut found = Found {
        output: PollOutput {
            org_id: row.get(0)?,
            claimed: Vec::new(),
            cancels: Vec::new(),
            lost: Vec::new(),
            settings: row.json(4)?,
            changed: Vec::new(),
        },
        draining: row.get(3)?,
        contradicted: Vec::new(),
        candidates: Vec::new(),
    };
    compare_lists(tx, input, &mut found).await?;
    if !found.draining {
        found.candidates = candidates(tx, input).await?;
    }
    Ok(found)
}

/// Compares what the runner holds with what we think it holds.
async fn compare_lists(tx: &mut Tx<'_>, input: &PollInput, found: &mut Found) -> Result<()> {
    let mut held: BTreeMap<&ExecutionId, HeldState> = input.held.iter().map(|(id, _, state)| (id, *state)).collect();
    let live = executions::live(tx, &input.runner_id).await?;
    let cancelled = if live.is_empty() { BTreeSet::new() } else { cancelled(tx, &input.runner_id).await? };
    for execution in live {
        match Verdict::of(&execution, held.remove(&execution.id), input.generation) {
            Verdict::Held if cancelled.contains(&execution.id) => found.output.cancels.push(execution.id),
            Verdict::Held | Verdict::Out => {}
            verdict @ (Verdict::HandBack | Verdict::Vanished(_) | Verdict::Gone) => {
                found.contradicted.push((execution, verdict));
            }
        }
    }
    found.output.lost.extend(held.into_keys().cloned());
    Ok(())
}

/// The live executions of a runner whose jobs are to be cancelled.
async fn cancelled(tx: &mut Tx<'_>, runner: &RunnerId) -> Result<BTreeSet<ExecutionId>> {
    let sql = "SELECT e.id FROM executions e JOIN jobs j ON j.id = e.job_id WHERE e.runner_id = $1 AND e.state IN ('pending', 'in-progress', 'unknown') AND j.cancel_at IS NOT NULL";
    tx.query(sql, params![runner]).await?.iter().map(|row| row.get(0)).collect()
}

async fn act(tx: &mut Tx<'_>, input: &PollInput) -> Result<PollOutput> {
    let mut found = look(tx, input).await?;
    if !found.contradicted.is_empty() {
        touch_runner(tx, &input.runner_id).await?;
        for (execution, verdict) in &found.contradicted {
            settle(tx, execution, verdict, &mut found.output.changed, input.now).await?;
        }
        if !found.draining {
            found.candidates = candidates(tx, input).await?;
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
    tx.exec("UPDATE runners SET generation = generation WHERE id = $1", params![runner]).await?;
    Ok(())
}

/// Notes the poll that claims: none that was sent before it is listened to from now on.
async fn take_turn(tx: &mut Tx<'_>, input: &PollInput) -> Result<()> {
    let (process, seq) = input.order;
    tx.exec(
        "UPDATE runners SET poll_process = $2, poll_seq = $3 WHERE id = $1",
        params![&input.runner_id, process, seq],
    )
    .await?;
    Ok(())
}

/// The first jobs of a group whose targets are free. A target that several wait for is offered once, so that they don't
/// hide the jobs behind them.
const CANDIDATES: &str = "SELECT id, target, priority, created_at FROM jobs j WHERE runner_id = $1 AND grp = $2 AND state = 'queued' AND (target IS NULL OR (NOT EXISTS (SELECT 1 FROM jobs h WHERE h.runner_id = j.runner_id AND h.target = j.target AND h.state IN ('available', 'in-progress', 'unknown') AND h.released = 0) AND NOT EXISTS (SELECT 1 FROM jobs q WHERE q.runner_id = j.runner_id AND q.target = j.target AND q.grp = j.grp AND q.state = 'queued' AND (q.priority > j.priority OR (q.priority = j.priority AND (q.created_at, q.id) < (j.created_at, j.id)))))) ORDER BY priority DESC, created_at, id LIMIT $3";

/// A job that may be taken, in the order of the queue.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    priority: std::cmp::Reverse<i64>,
    created_at: Timestamp,
    id: JobId,
    target: Option<String>,
}

async fn candidates(tx: &mut Tx<'_>, input: &PollInput) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    let any = "SELECT 1 FROM jobs WHERE runner_id = $1 AND grp > '' AND state = 'queued' LIMIT 1";
    if input.most() == 0 || tx.get(any, params![&input.runner_id]).await?.is_none() {
        return Ok(candidates);
    }
    for (group, slots) in input.free.iter().filter(|(_, slots)| **slots > 0) {
        let limit = (*slots as usize).min(input.most()) as u64;
        for row in tx.query(CANDIDATES, params![&input.runner_id, group.as_str(), limit]).await? {
            let priority = std::cmp::Reverse(row.get(2)?);
            candidates.push(Candidate { priority, created_at: row.get(3)?, id: row.get(0)?, target: row.get(1)? });
        }
    }
    candidates.sort();
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
    for candidate in candidates {
        if claimed.len() >= most {
            break;
        }
        if candidate.target.is_none_or(|target| targets.insert(target)) {
            claimed.push(claim_one(tx, input, claimed.len(), &candidate.id).await?);
        }
    }
    Ok(())
}

async fn claim_one(tx: &mut Tx<'_>, input: &PollInput, fresh: usize, id: &JobId) -> Result<Assigned> {
    let (mut job, order, spec) = job_with_papers(tx, id).await?;
    move_job(tx, &mut job, JobEvent::Claim, "", None, input.runner_id.as_str(), input.now).await?;
    let (execution_id, token_hash) = &input.fresh[fresh];
    executions::insert(tx, &job, execution_id, token_hash, input).await?;
    Ok(Assigned { job, execution_id: execution_id.clone(), fresh, order, spec })
}
