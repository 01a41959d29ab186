//! How often a job's life waits for PostgreSQL: a round trip costs more than the statement that makes it.

use anyhow::{Context as _, Result};
use model::{AccountId, Digest, JobGroup, JobType, Outcome};
use store::{Idempotency, Traffic};

use crate::kit::{Backend, TOKEN, World, claims, on, unique};

/// What a request cost.
async fn cost<T>(world: &World, what: &str, request: impl Future<Output = Result<T>>) -> Result<T> {
    let before = world.store.db().traffic();
    let value = request.await?;
    let after = world.store.db().traffic();
    eprintln!("{what}: {} statements, {} trips", after.statements - before.statements, after.trips - before.trips);
    Ok(value)
}

/// One life of a no-op job, as the requests of the two APIs make it.
async fn life(world: &World) -> Result<()> {
    let store = &world.store;
    cost(world, "enqueue", async {
        store.authenticate(TOKEN, world.now()).await?;
        let runner = store.runner(&world.org, world.runner.as_str()).await?;
        store.install(&world.org, runner.install_id.as_ref().context("an install")?.as_str()).await?;
        let idem = Idempotency {
            scope: AccountId::new(world.now(), 1),
            key: unique().to_string(),
            request_digest: Digest::of(b"request"),
        };
        let queued = store.enqueue(world.job(JobType::Noop), Some(idem)).await?;
        Ok(store.queue_place(&queued.job).await?)
    })
    .await?;
    let claim = cost(world, "poll", async {
        let input = world.poll_input(&[(JobGroup::Operations, 4)], &[]);
        assert!(store.look(&input).await?.is_none());
        Ok(claims(&store.poll(input).await?, world.generation).pop().context("a job")?)
    })
    .await?;
    cost(world, "start", async {
        store.execution(&world.runner, &claim.id).await?;
        Ok(world.start(&claim).await?)
    })
    .await?;
    cost(world, "result", async {
        store.execution(&world.runner, &claim.id).await?;
        Ok(world.report(&claim, Outcome::Finished).await?)
    })
    .await?;
    Ok(())
}

#[test]
fn a_life_takes_few_round_trips() {
    on(Backend::Postgres, |world| async move {
        // Connections are made and statements prepared in the first ones.
        for _ in 0..2 {
            let Traffic { statements, trips } = world.store.db().traffic();
            life(&world).await?;
            let now = world.store.db().traffic();
            eprintln!("all: {} statements, {} trips", now.statements - statements, now.trips - trips);
        }
        Ok(())
    });
}
