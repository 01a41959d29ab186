//! The queue as a runner sees it: one transaction compares lists, collects cancellations, and claims.

use std::collections::{BTreeMap, BTreeSet};

use model::papers::Signed;
use model::runner::{HeldState, RunnerSettings};
use model::{ExecutionId, JobEvent, JobGroup, JobId, OrgId, RunnerId, Timestamp};

use crate::db::{Tx, params};
use crate::executions::{self, ExecutionRow};
use crate::jobs::{Job, job_by_id, move_job};
use crate::notify::topic;
use crate::runners::runner_by_id;
use crate::{Result, Store, StoreError};

/// What a poll of a runner asks for.
#[derive(Debug, Clone)]
pub struct PollInput {
    pub runner_id: RunnerId,
    pub generation: u64,
    /// The runner's process and poll; an older poll than the latest is refused.
    pub order: (u64, u64),
    pub free: BTreeMap<JobGroup, u32>,
    /// Execution, epoch, and how it stands.
    pub held: Vec<(ExecutionId, u64, HeldState)>,
    pub lease_s: u64,
    pub now: Timestamp,
    /// Ids and token hashes for what may be claimed; drawn outside the transaction.
    pub fresh: Vec<(ExecutionId, String)>,
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
    /// One look of a runner at the queue: its list is compared with ours, cancellations are collected, and jobs are
    /// claimed by priority, then oldest first. One transaction.
    pub async fn poll(&self, input: PollInput) -> Result<PollOutput> {
        let output = self
            .main()
            .write(move |tx| {
                let input = input.clone();
                Box::pin(async move { poll_in(tx, &input).await })
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

async fn poll_in(tx: &mut Tx<'_>, input: &PollInput) -> Result<PollOutput> {
    let runner = runner_by_id(tx, &input.runner_id).await?;
    if runner.generation != input.generation || runner.revoked_at.is_some() {
        return Err(StoreError::Fenced);
    }
    take_turn(tx, input).await?;
    let mut output = PollOutput {
        org_id: runner.org_id.clone(),
        claimed: Vec::new(),
        cancels: Vec::new(),
        lost: Vec::new(),
        settings: runner.settings.clone(),
        changed: Vec::new(),
    };
    let live = executions::live(tx, &input.runner_id).await?;
    compare_lists(tx, input, &live, &mut output).await?;
    if !runner.draining {
        claim(tx, input, &mut output).await?;
    }
    Ok(output)
}

/// Only the latest poll of a runner speaks for it: one that was overtaken has an old list, and would give jobs up that run.
async fn take_turn(tx: &mut Tx<'_>, input: &PollInput) -> Result<()> {
    let row = tx
        .get("SELECT poll_process, poll_seq FROM runners WHERE id = $1", params![&input.runner_id])
        .await?
        .ok_or(StoreError::NotFound("runner"))?;
    let latest = (row.get::<u64>(0)?, row.get::<u64>(1)?);
    if input.order < latest {
        return Err(StoreError::Conflict("a newer poll of this runner took its place".into()));
    }
    if input.order > latest {
        tx.exec(
            "UPDATE runners SET poll_process = $2, poll_seq = $3 WHERE id = $1",
            params![&input.runner_id, input.order.0, input.order.1],
        )
        .await?;
    }
    Ok(())
}

/// Compares what the runner holds with what we think it holds.
async fn compare_lists(
    tx: &mut Tx<'_>,
    input: &PollInput,
    live: &[ExecutionRow],
    output: &mut PollOutput,
) -> Result<()> {
    let held: BTreeMap<&ExecutionId, HeldState> = input.held.iter().map(|(id, _, state)| (id, *state)).collect();
    let known: BTreeSet<&ExecutionId> = live.iter().map(|e| &e.id).collect();
    output.lost.extend(held.keys().filter(|id| !known.contains(*id)).map(|id| (*id).clone()));
    let verdict = |e: &ExecutionRow| Verdict::of(e, held.get(&e.id).copied(), input.generation);
    if live.iter().any(|e| !matches!(verdict(e), Verdict::Held | Verdict::Out)) {
        touch_runner(tx, &input.runner_id).await?;
    }
    for execution in live {
        let mut job = job_by_id(tx, &execution.job_id).await?;
        let before = job.state;
        match verdict(execution) {
            Verdict::HandBack => {
                executions::hand_back(tx, execution, &mut job, "the runner did not keep the claim", input.now).await?;
            }
            Verdict::Vanished(reason) => executions::vanish(tx, execution, &mut job, reason, true, input.now).await?,
            Verdict::Gone => executions::release(tx, execution, &job, input.now).await?,
            Verdict::Held if job.cancel_at.is_some() => output.cancels.push(execution.id.clone()),
            Verdict::Held | Verdict::Out => {}
        }
        if job.state != before {
            output.changed.push(job.id);
        }
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

async fn claim(tx: &mut Tx<'_>, input: &PollInput, output: &mut PollOutput) -> Result<()> {
    let most = input.fresh.len().min(CLAIMS_PER_POLL);
    let mut candidates = Vec::new();
    for (group, slots) in input.free.iter().filter(|(_, slots)| **slots > 0) {
        let limit = (*slots as usize).min(most) as u64;
        for row in tx.query(CANDIDATES, params![&input.runner_id, group.as_str(), limit]).await? {
            let priority = std::cmp::Reverse(row.get(2)?);
            candidates.push(Candidate { priority, created_at: row.get(3)?, id: row.get(0)?, target: row.get(1)? });
        }
    }
    if candidates.is_empty() {
        return Ok(());
    }
    touch_runner(tx, &input.runner_id).await?;
    candidates.sort();
    let mut targets = BTreeSet::new();
    for candidate in candidates {
        if output.claimed.len() >= most {
            break;
        }
        if candidate.target.is_none_or(|target| targets.insert(target)) {
            let fresh = output.claimed.len();
            output.claimed.push(claim_one(tx, input, fresh, &candidate.id).await?);
        }
    }
    Ok(())
}

async fn claim_one(tx: &mut Tx<'_>, input: &PollInput, fresh: usize, id: &JobId) -> Result<Assigned> {
    let mut job = job_by_id(tx, id).await?;
    let row = tx
        .get("SELECT order_payload, order_key, order_signature, spec FROM jobs WHERE id = $1", params![id])
        .await?
        .ok_or(StoreError::NotFound("job"))?;
    let order = Signed { payload: row.get(0)?, key: row.get(1)?, signature: row.get(2)? };
    move_job(tx, &mut job, JobEvent::Claim, "", None, input.runner_id.as_str(), input.now).await?;
    let (execution_id, token_hash) = &input.fresh[fresh];
    executions::insert(tx, &job, execution_id, token_hash, input).await?;
    Ok(Assigned { job, execution_id: execution_id.clone(), fresh, order, spec: row.get(3)? })
}
