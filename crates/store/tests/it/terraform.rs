//! Terraform's workspaces: who may hold them, and which state follows which.

use anyhow::Result;
use model::deploy::{LockInfo, SealedFile};
use model::{Digest, JobType, Outcome, RevisionId, UploadId, WorkspaceId};
use serde_json::json;
use store::{Holder, Locked, NewJob, NewRevision, Revision, StoreError, Workspace};

use crate::kit::{Claim, World, new_org, on_both, unique};

fn info(id: &str) -> LockInfo {
    LockInfo {
        id: id.into(),
        operation: "OperationTypeApply".into(),
        info: String::new(),
        who: format!("who has {id}"),
        version: "1.11.4".into(),
        created: String::new(),
        path: String::new(),
    }
}

pub(crate) fn person() -> Holder {
    Holder::Person("ann@laptop".into())
}

fn holder(world: &World, claim: &Claim) -> Holder {
    Holder::Execution { runner_id: world.runner.clone(), id: claim.id.clone(), epoch: claim.epoch }
}

pub(crate) async fn workspace(world: &World) -> Result<Workspace> {
    let new = WorkspaceId::new(world.now(), unique());
    Ok(world.store.workspace_for(&world.org, &world.install, "components/db", new, world.now()).await?)
}

pub(crate) async fn lock(world: &World, at: &Workspace, id: &str, holder: Holder) -> Result<Locked, StoreError> {
    world.store.lock_workspace(&world.install, &at.id, info(id), holder, world.now()).await
}

/// A state that nobody has written yet.
pub(crate) fn state(world: &World, at: &Workspace, holder: Holder, lock_id: &str, serial: u64) -> NewRevision {
    let now = world.now();
    let file = SealedFile {
        upload_id: UploadId::new(now, unique()),
        pieces: 1,
        bytes: 100 + serial,
        digest: Digest::of(format!("state {}", unique()).as_bytes()),
    };
    NewRevision {
        id: RevisionId::new(now, unique()),
        workspace_id: at.id.clone(),
        install_id: world.install.clone(),
        holder,
        lock_id: lock_id.into(),
        lineage: "line".into(),
        serial,
        file,
        resources: json!([{ "address": "terraform_data.a" }]),
        resource_count: 1,
        outputs: None,
        note: String::new(),
        now,
    }
}

fn held_by(locked: Locked) -> Option<String> {
    match locked {
        Locked::Taken => None,
        Locked::HeldBy(lock) => Some(lock.info.id),
    }
}

async fn history(world: &World, at: &Workspace) -> Result<Vec<(u64, bool)>> {
    let all = world.store.revisions(&world.org, &at.id, 0, 100).await?;
    Ok(all.iter().map(|revision: &Revision| (revision.serial, revision.quarantined)).collect())
}

/// Events of a kind. On PostgreSQL an event is shown when no transaction that began before it is open any more, of other tests too.
async fn events(world: &World, kind: &str) -> Result<Vec<store::Event>> {
    for _ in 0..200 {
        let all = world.store.latest_events(&world.org, None, &Default::default(), 100).await?;
        let found: Vec<_> = all.into_iter().filter(|event| event.kind == kind).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("no event {kind}")
}

#[test]
fn one_at_a_time_holds_a_workspace() {
    on_both(|world| async move {
        let (s, at) = (&world.store, workspace(&world).await?);
        assert_eq!(workspace(&world).await?.id, at.id, "there is one of a part");
        assert_eq!(held_by(lock(&world, &at, "one", person()).await?), None);
        assert_eq!(held_by(lock(&world, &at, "one", person()).await?), None, "the answer was lost");
        assert_eq!(held_by(lock(&world, &at, "two", person()).await?).as_deref(), Some("one"));
        assert_eq!(held_by(s.unlock_workspace(&world.install, &at.id, "two").await?).as_deref(), Some("one"));
        assert_eq!(held_by(s.unlock_workspace(&world.install, &at.id, "one").await?), None);
        assert_eq!(held_by(s.unlock_workspace(&world.install, &at.id, "one").await?), None, "what is free stays free");
        assert_eq!(held_by(lock(&world, &at, "two", person()).await?), None);

        // A person's lock has no lease: only people free it.
        world.clock.advance_s(100_000);
        let claim = world.running(world.job(JobType::TerraformDeploy), &[]).await?;
        assert_eq!(held_by(lock(&world, &at, "three", holder(&world, &claim)).await?).as_deref(), Some("two"));
        s.force_unlock(&world.org, &at.id, "bob", world.now()).await?;
        s.force_unlock(&world.org, &at.id, "bob", world.now()).await?;
        let freed = events(&world, "terraform.unlocked").await?;
        assert_eq!((freed.len(), freed[0].actor.as_str()), (1, "bob"), "once, and by whom");
        assert_eq!(held_by(lock(&world, &at, "three", holder(&world, &claim)).await?), None);
        Ok(())
    });
}

#[test]
fn a_dead_holders_lock_is_taken_over_and_a_live_ones_is_not() {
    on_both(|world| async move {
        let (s, at) = (&world.store, workspace(&world).await?);
        let first = world.running(world.job(JobType::TerraformDeploy), &[]).await?;
        assert_eq!(held_by(lock(&world, &at, "first", holder(&world, &first)).await?), None);
        let second = world.running(world.job(JobType::TerraformDeploy), &[&first]).await?;
        let waits = lock(&world, &at, "second", holder(&world, &second)).await?;
        assert_eq!(held_by(waits).as_deref(), Some("first"));
        let refused = s.force_unlock(&world.org, &at.id, "bob", world.now()).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");

        // Nobody hears of it, and nobody knows that it is dead.
        world.silence().await?;
        let person_waits = lock(&world, &at, "person", person()).await?;
        assert_eq!(held_by(person_waits).as_deref(), Some("first"));

        // It has ended without a word about the lock.
        assert!(world.report(&first, Outcome::Failed).await?);
        assert_eq!(held_by(lock(&world, &at, "second", holder(&world, &second)).await?), None);
        let taken = events(&world, "terraform.lock-recovered").await?;
        assert_eq!(taken[0].data["lock"]["ID"], "first");
        assert!(world.report(&second, Outcome::Finished).await?);
        s.force_unlock(&world.org, &at.id, "bob", world.now()).await?;
        assert!(s.workspace(&world.org, &at.id).await?.lock().is_none());

        // Who has ended gets no lock.
        let late = lock(&world, &at, "late", holder(&world, &second)).await;
        assert!(matches!(late, Err(StoreError::LeaseLost)), "{late:?}");
        Ok(())
    });
}

#[test]
fn a_state_follows_the_one_before() {
    on_both(|world| async move {
        let (s, at) = (&world.store, workspace(&world).await?);
        let unlocked = s.write_revision(&world.org, state(&world, &at, person(), "one", 1)).await;
        assert!(matches!(unlocked, Err(StoreError::Refused(_))), "{unlocked:?}");
        lock(&world, &at, "one", person()).await?;
        let other = s.write_revision(&world.org, state(&world, &at, person(), "two", 1)).await;
        assert!(matches!(other, Err(StoreError::Refused(_))), "{other:?}");

        let first = state(&world, &at, person(), "one", 4);
        let written = s.write_revision(&world.org, first.clone()).await?;
        assert_eq!((written.author.as_str(), written.quarantined), ("ann@laptop", false));
        // Told twice, because the answer was lost.
        let again = NewRevision { id: RevisionId::new(world.now(), unique()), ..first };
        assert_eq!(s.write_revision(&world.org, again).await?.id, written.id);

        for (why, serial, lineage) in
            [("the same serial", 4, "line"), ("an earlier serial", 3, "line"), ("another lineage", 5, "other")]
        {
            let new = NewRevision { lineage: lineage.into(), ..state(&world, &at, person(), "one", serial) };
            let refused = s.write_revision(&world.org, new).await;
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{why}: {refused:?}");
        }
        let next = s.write_revision(&world.org, state(&world, &at, person(), "one", 9)).await?;
        let now = s.workspace(&world.org, &at.id).await?;
        assert_eq!(now.revision_id.as_ref(), Some(&next.id));
        assert_eq!(s.current_revision(&world.org, &now).await?.map(|revision| revision.serial), Some(9));
        assert_eq!(history(&world, &at).await?, [(9, false), (4, false)], "newest first");
        assert_eq!(s.revisions(&world.org, &at.id, 1, 1).await?[0].id, written.id, "in pages");

        // Who restores is noted with the job, in one transaction.
        let job = NewJob { restores: Some(written), created_by: "bob".into(), ..world.job(JobType::TerraformDeploy) };
        world.enqueue(job).await?;
        let noted = &events(&world, "terraform.restore").await?[0];
        assert_eq!((noted.data["serial"].as_u64(), noted.actor.as_str()), (Some(4), "bob"));
        Ok(())
    });
}

#[test]
fn what_a_stale_execution_writes_is_kept_beside() {
    on_both(|mut world| async move {
        let at = workspace(&world).await?;
        let claim = world.running(world.job(JobType::TerraformDeploy), &[]).await?;
        lock(&world, &at, "one", holder(&world, &claim)).await?;
        let good = world.store.write_revision(&world.org, state(&world, &at, holder(&world, &claim), "one", 1)).await?;
        assert_eq!((good.quarantined, good.job_id.as_ref()), (false, Some(&claim.job)));

        // Another session fences it: its executions are over.
        world.silence().await?;
        world.join().await?;
        world.clock.advance_s(100_000);
        world.store.expire_leases(world.now(), 100).await?;
        world.store.settle(&world.org, &claim.job, Outcome::Failed, "", "bob", world.now()).await?;
        let late = state(&world, &at, holder(&world, &claim), "one", 7);
        let kept = world.store.write_revision(&world.org, late).await?;
        assert_eq!((kept.quarantined, kept.job_id.as_ref()), (true, Some(&claim.job)));

        let now = world.store.workspace(&world.org, &at.id).await?;
        assert_eq!(now.revision_id, Some(good.id), "it is not the state");
        assert_eq!(history(&world, &at).await?, [(7, true), (1, false)]);
        assert_eq!(world.store.quarantined_revisions(&world.org, &at.id).await?, 1);
        assert_eq!(events(&world, "terraform.state-quarantined").await?[0].data["serial"], 7);
        Ok(())
    });
}

#[test]
fn a_workspace_of_another_org_is_not_there() {
    on_both(|world| async move {
        let (s, at) = (&world.store, workspace(&world).await?);
        lock(&world, &at, "one", person()).await?;
        let revision = s.write_revision(&world.org, state(&world, &at, person(), "one", 1)).await?;
        let other = new_org(s, &world.account, "other", world.now()).await?;
        let now = world.now();
        assert!(matches!(s.workspace(&other, &at.id).await, Err(StoreError::NotFound("workspace"))));
        assert!(matches!(s.force_unlock(&other, &at.id, "eve", now).await, Err(StoreError::NotFound("workspace"))));
        assert!(matches!(s.revision(&other, &at.id, &revision.id).await, Err(StoreError::NotFound("revision"))));
        let elsewhere =
            NewJob { org_id: other.clone(), restores: Some(revision), ..world.job(JobType::TerraformDeploy) };
        assert!(s.enqueue(elsewhere, None).await.is_err());
        assert!(s.workspaces(&other, &world.install).await?.is_empty());
        assert!(s.revisions(&other, &at.id, 0, 10).await?.is_empty());
        assert_eq!(s.quarantined_revisions(&other, &at.id).await?, 0);
        assert!(s.workspace(&world.org, &at.id).await?.lock().is_some(), "nothing was freed");

        // Nor does it answer to another install.
        let (_, install, _) = crate::kit::new_install(s, &world.account, &world.org, "second", now).await?;
        let foreign = s.lock_workspace(&install, &at.id, info("two"), person(), now).await;
        assert!(matches!(foreign, Err(StoreError::NotFound("workspace"))));
        let foreign = NewRevision { install_id: install, ..state(&world, &at, person(), "one", 2) };
        assert!(matches!(s.write_revision(&world.org, foreign).await, Err(StoreError::NotFound("workspace"))));
        Ok(())
    });
}
