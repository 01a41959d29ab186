//! A job's ways through its states, written down as what happens and the state after it.

use anyhow::{Context as _, Result, bail};
use model::{JobId, JobType, Outcome};
use store::{EventCursor, ToValue as _};

use crate::kit::{Claim, World, on_both, variant};

/// `what=state`, or `what=!error` where it is refused. The words:
///
/// claim, start: the runner's; finish, fail, give-up, refuse: its results; renew: its lease
/// forget: it polls and does not list the execution; dead: it lists it with a dead executor
/// silence: the lease runs out; join: a new session; cancel, settle: a person
/// old-…: of the first execution
const JOURNEYS: &[(JobType, &str)] = &[
    // The plain way.
    (JobType::ActionsWorkflow, "claim=available start=in-progress start=in-progress finish=finished"),
    (JobType::ActionsWorkflow, "claim=available start=in-progress fail=failed"),
    // A claim that was never started goes back.
    (JobType::ActionsWorkflow, "claim=available forget=queued claim=available start=in-progress finish=finished"),
    (JobType::ActionsWorkflow, "claim=available dead=queued claim=available"),
    (JobType::ActionsWorkflow, "claim=available silence=queued start=!LeaseLost claim=available old-start=!LeaseLost"),
    (JobType::ActionsWorkflow, "claim=available join=queued old-start=!Fenced claim=available start=in-progress"),
    // One that was started and vanished is unknown; it is never tried again by itself.
    (JobType::ActionsWorkflow, "claim=available start=in-progress forget=unknown claim=!nothing settle=finished"),
    (JobType::ActionsWorkflow, "claim=available start=in-progress dead=unknown claim=!nothing finish=finished"),
    (JobType::ActionsWorkflow, "claim=available start=in-progress silence=unknown claim=!nothing fail=failed"),
    (JobType::ActionsWorkflow, "claim=available start=in-progress silence=unknown renew=in-progress finish=finished"),
    (JobType::ActionsWorkflow, "claim=available start=in-progress silence=unknown start=!LeaseLost renew=in-progress"),
    (
        JobType::ActionsWorkflow,
        "claim=available start=in-progress join=unknown finish=!LeaseLost renew=!lost settle=finished",
    ),
    // A person has said how it ended; what the runner reports later is kept beside, and changes nothing.
    (JobType::ActionsWorkflow, "claim=available start=in-progress silence=unknown settle=finished fail=finished"),
    (JobType::ActionsWorkflow, "claim=available start=in-progress silence=unknown settle=finished finish=finished"),
    // What only reads is tried again, three times in all; claims that went back do not count.
    (
        JobType::Noop,
        "claim=available start=in-progress silence=queued claim=available old-finish=!LeaseLost old-renew=!lost start=in-progress finish=finished",
    ),
    (
        JobType::Noop,
        "claim=available start=in-progress forget=queued claim=available start=in-progress dead=queued claim=available start=in-progress forget=failed",
    ),
    (
        JobType::Noop,
        "claim=available forget=queued claim=available forget=queued claim=available forget=queued claim=available start=in-progress forget=queued claim=available",
    ),
    (JobType::HealthCheck, "claim=available start=in-progress cancel=in-progress dead=cancelled"),
    // A cancel, at every state, once and again.
    (JobType::ActionsWorkflow, "cancel=cancelled cancel=cancelled claim=!nothing settle=!Transition"),
    (
        JobType::ActionsWorkflow,
        "claim=available cancel=cancelled cancel=cancelled start=!LeaseLost renew=!lost finish=!LeaseLost",
    ),
    (
        JobType::ActionsWorkflow,
        "claim=available start=in-progress cancel=in-progress cancel=in-progress give-up=cancelled",
    ),
    (JobType::ActionsWorkflow, "claim=available start=in-progress cancel=in-progress finish=finished cancel=finished"),
    (
        JobType::ActionsWorkflow,
        "claim=available start=in-progress silence=unknown cancel=unknown cancel=unknown settle=finished cancel=finished",
    ),
    // The first result wins.
    (
        JobType::ActionsWorkflow,
        "claim=available start=in-progress finish=finished fail=finished give-up=finished renew=!lost",
    ),
    (JobType::ActionsWorkflow, "claim=available start=in-progress fail=failed finish=failed"),
    // A runner may refuse what it has not started, and say nothing else about it.
    (
        JobType::ActionsWorkflow,
        "claim=available finish=!LeaseLost fail=!LeaseLost give-up=!LeaseLost refuse=not-attempted",
    ),
    // Only an unknown job is settled.
    (
        JobType::ActionsWorkflow,
        "settle=!Transition claim=available settle=!Transition start=in-progress settle=!Transition finish=finished settle=!Transition",
    ),
    (
        JobType::ActionsWorkflow,
        "claim=available start=in-progress dead=unknown settle=finished settle=!Transition finish=finished",
    ),
];

#[test]
fn jobs_go_the_ways_of_the_table() {
    on_both(|mut world| async move {
        for (job_type, journey) in JOURNEYS {
            Box::pin(walk(&mut world, *job_type, journey)).await.with_context(|| (*journey).to_owned())?;
        }
        Ok(())
    });
}

async fn walk(world: &mut World, job_type: JobType, journey: &str) -> Result<()> {
    let job = world.queued(job_type).await?;
    let (mut first, mut current): (Option<Claim>, Option<Claim>) = (None, None);
    let mut epochs = 0;
    for (at, step) in journey.split(' ').enumerate() {
        let (what, expected) = step.split_once('=').context("a step has an =")?;
        world.clock.advance_ms(1);
        let seen = if what == "claim" {
            current = world.take(&[]).await?.pop();
            epochs += u64::from(current.is_some());
            if first.is_none() {
                first.clone_from(&current);
            }
            match &current {
                Some(claim) if claim.job == job && claim.epoch == epochs => world.state(&job).await?.to_string(),
                Some(claim) => bail!("claimed {claim:?} instead of epoch {epochs}"),
                None => "!nothing".to_owned(),
            }
        } else {
            let (what, claim) = match what.strip_prefix("old-") {
                Some(what) => (what, first.as_ref()),
                None => (what, current.as_ref().or(first.as_ref())),
            };
            match act(world, &job, what, claim.cloned()).await? {
                Some(refusal) => refusal,
                None => world.state(&job).await?.to_string(),
            }
        };
        assert_eq!(seen, expected, "after step {at} ({step}) of: {journey}");
    }
    check_events(world, &job).await?;
    // Nothing of this job is left to disturb the next one.
    world.join().await?;
    let _ = world.store.cancel(&world.org, &job, "test", world.now()).await?;
    let _ = world.store.settle(&world.org, &job, Outcome::Failed, "", "test", world.now()).await;
    Ok(())
}

/// Makes one move; returns why it was refused, where it was.
async fn act(world: &mut World, job: &JobId, what: &str, claim: Option<Claim>) -> Result<Option<String>> {
    let (org, now) = (world.org.clone(), world.now());
    let ours = claim.as_ref().context("something was claimed");
    let outcome = match what {
        "start" => world.start(ours?).await,
        "finish" => world.report(ours?, Outcome::Finished).await.map(|_| ()),
        "fail" => world.report(ours?, Outcome::Failed).await.map(|_| ()),
        "give-up" => world.report(ours?, Outcome::Cancelled).await.map(|_| ()),
        "refuse" => world.report(ours?, Outcome::NotAttempted).await.map(|_| ()),
        "renew" => match world.renew(ours?).await {
            Ok(false) => return Ok(Some("!lost".into())),
            other => other.map(|_| ()),
        },
        "forget" => world.poll(&[], &[]).await.map(|_| ()),
        "dead" => world.poll(&[], &[(ours?, true)]).await.map(|_| ()),
        "silence" => world.silence().await.map(|_| ()),
        "cancel" => world.store.cancel(&org, job, "someone", now).await.map(|_| ()),
        "settle" => world.store.settle(&org, job, Outcome::Finished, "looked", "someone", now).await.map(|_| ()),
        "join" => {
            world.join().await?;
            Ok(())
        }
        other => bail!("there is no move `{other}`"),
    };
    Ok(outcome.err().map(|e| format!("!{}", variant(&e))))
}

/// Every change of the state has one event, and they form a chain from `queued` to where the job is.
async fn check_events(world: &World, job: &JobId) -> Result<()> {
    let id = job.to_string();
    let sql = "SELECT version FROM jobs WHERE id = $1";
    let row = world.store.db().find(sql, vec![id.to_value()]);
    let changes: u64 = row.await?.context("the job is there")?.get("version")?;
    let mut chain = Vec::new();
    // On PostgreSQL an event is read once no older transaction is open, be it another test's.
    for _ in 0..200 {
        chain.clear();
        let mut after = EventCursor::default();
        loop {
            let events = world.store.events_after(&world.org, after, &Default::default(), 500).await?;
            let Some(last) = events.last() else { break };
            after = last.cursor;
            let ours = events.into_iter().filter(|e| e.kind == "job.state" && e.subject_id == job.as_str());
            chain.extend(ours.map(|e| (e.data["from"].clone(), e.data["to"].clone())));
        }
        if chain.len() as u64 >= changes {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(chain.len() as u64, changes, "one event for each change: {chain:?}");
    assert_eq!(chain[0].1, "queued");
    assert!(chain.windows(2).all(|pair| pair[0].1 == pair[1].0), "{chain:?}");
    assert_eq!(chain.last().context("events")?.1, world.state(job).await?.as_str());
    Ok(())
}

#[test]
fn a_later_result_that_says_otherwise_is_shown_on_the_job() {
    on_both(|world| async move {
        let claim = world.running(world.job(JobType::ActionsWorkflow), &[]).await?;
        world.silence().await?;
        world
            .store
            .settle(&world.org, &claim.job, Outcome::Failed, "settled by ann: looked", "ann", world.now())
            .await?;
        assert!(world.report(&claim, Outcome::Finished).await?);
        let job = world.store.job(&world.org, &claim.job).await?;
        assert_eq!(job.state, model::JobState::Failed, "what the person said stands");
        assert_eq!(job.reason, "settled by ann: looked; but the runner reported later that it is finished");
        let told = world.store.result(&world.org, &claim.id).await?.context("the result is kept")?;
        assert_eq!(told.outcome, Outcome::Finished);
        // The same report again says nothing new.
        assert!(!world.report(&claim, Outcome::Finished).await?);
        assert_eq!(world.store.job(&world.org, &claim.job).await?.reason, job.reason);
        Ok(())
    });
}
