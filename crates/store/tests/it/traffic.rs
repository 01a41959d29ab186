//! How often a job's life waits for PostgreSQL: a round trip costs more than the statement that makes it.

use anyhow::{Context as _, Result};
use model::{AccountId, Digest, JobGroup, JobType, Outcome};
use store::{Idempotency, Traffic};

use crate::kit::{Backend, TOKEN, World, claims, on, unique};

/// What a request costs.
async fn cost<T>(world: &World, request: impl Future<Output = Result<T>>) -> Result<(Traffic, T)> {
    let before = world.store.db().traffic();
    let value = request.await?;
    let after = world.store.db().traffic();
    let traffic = Traffic { statements: after.statements - before.statements, trips: after.trips - before.trips };
    Ok((traffic, value))
}

/// One life of a no-op job, by the calls that the requests of the two APIs make.
async fn life(world: &World) -> Result<[(&'static str, Traffic); 4]> {
    let store = &world.store;
    let enqueue = async {
        store.authenticate(TOKEN, world.now()).await?;
        store.runner(&world.org, world.runner.as_str()).await?;
        let idem = Idempotency {
            scope: AccountId::new(world.now(), 1),
            key: unique().to_string(),
            request_digest: Digest::of(b"request"),
        };
        let queued = store.enqueue(world.job(JobType::Noop), Some(idem)).await?;
        assert!(queued.place.is_some(), "the waiting reason asks nothing more");
        Ok(())
    };
    let (enqueue, ()) = cost(world, enqueue).await?;
    let poll = async {
        let input = world.poll_input(&[(JobGroup::Operations, 4), (JobGroup::Actions, 4)], &[]);
        assert!(store.look(&input).await?.is_none());
        claims(&store.poll(input).await?, world.generation).pop().context("a job")
    };
    let (poll, claim) = cost(world, poll).await?;
    let (start, ()) = cost(world, async { Ok(world.start(&claim).await?) }).await?;
    let (result, _) = cost(world, async { Ok(world.report(&claim, Outcome::Finished).await?) }).await?;
    Ok([("enqueue", enqueue), ("poll", poll), ("start", start), ("result", result)])
}

#[test]
fn a_life_takes_few_round_trips() {
    on(Backend::Postgres, |world| async move {
        let at_most = [("enqueue", 8, 4), ("poll", 9, 3), ("start", 5, 2), ("result", 5, 2)];
        // In the first one the keys of the org are read.
        life(&world).await?;
        for ((request, traffic), (_, statements, trips)) in life(&world).await?.into_iter().zip(at_most) {
            let fits = traffic.statements <= statements && traffic.trips <= trips;
            assert!(fits, "{request}: {traffic:?}, at most {statements} statements in {trips} round trips");
        }
        // A look that finds nothing is one statement.
        let input = world.poll_input(&[(JobGroup::Operations, 4)], &[]);
        let (look, found) = cost(&world, async { Ok(world.store.look(&input).await?) }).await?;
        assert_eq!((look, found.is_some()), (Traffic { statements: 1, trips: 1 }, true));
        Ok(())
    });
}
