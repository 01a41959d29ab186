//! What a crash or a forgotten install leaves in the blob store is found, and deleted when nothing can name it any more.

use bytes::Bytes;
use model::{Timestamp, UploadId};
use store::{Orphan, piece_key};

use crate::kit::{World, on_both, unique};
use crate::logs::{append, execution};
use crate::terraform::{lock, person, state, workspace};

/// Objects bear the time of the machine: this is after all of them, the other before.
const LATER: Timestamp = Timestamp::from_micros(i64::MAX);
const EARLIER: Timestamp = Timestamp::from_micros(0);

fn keys(found: &[Orphan]) -> Vec<&str> {
    found.iter().map(|orphan| orphan.key.as_str()).collect()
}

#[test]
fn a_segment_without_a_row_is_an_orphan_unless_it_can_be_written_again() {
    on_both(|world| async move {
        let (s, org) = (&world.store, &world.org);
        let (named, hot, gone) = (execution(&world), execution(&world), execution(&world));
        for id in [&named, &hot, &gone] {
            append(&world, id, 0, 3).await?;
        }
        s.seal_log(org, &named, 1 << 20).await?;
        s.erase_log(&gone, world.now()).await?;
        // The server died after it had put these, and before it wrote their rows.
        let key = |id| format!("logs/{org}/{id}/{:012}-{:012}.zst", 0, 3);
        for id in [&hot, &gone] {
            s.blobs().put(&key(id), Bytes::from_static(b"left")).await?;
        }
        assert_eq!(s.orphans(EARLIER, 100).await?, [], "too young");
        assert_eq!(s.orphans(LATER, 100).await?, [Orphan { key: key(&gone), size_bytes: 4 }]);
        assert_eq!(s.sweep_orphans(EARLIER, 100).await?, 0);
        assert_eq!((s.sweep_orphans(LATER, 100).await?, s.sweep_orphans(LATER, 100).await?), (1, 0));
        assert!(s.blobs().size(&key(&hot)).await?.is_some() && s.blobs().size(&key(&gone)).await?.is_none());
        assert_eq!(s.verify_log(&named).await?, Ok(3));
        assert!(s.seal_log(org, &hot, 1 << 20).await.map(|size| size > 0)?);
        assert_eq!(s.verify_log(&hot).await?, Ok(3));
        Ok(())
    });
}

#[test]
fn sealed_files_of_a_forgotten_install_are_deleted() {
    on_both(|world| async move {
        let (s, org, at) = (&world.store, &world.org, workspace(&world).await?);
        let new = state(&world, &at, person(), "one", 1);
        let (upload, other) = (new.file.upload_id.clone(), UploadId::new(world.now(), unique()));
        let second_day = world.now().plus_s(2 * 86_400);
        for upload in [&upload, &other] {
            assert!(s.claim_sealed(org, &world.install, upload, second_day).await?);
            for piece in 0..new.file.pieces {
                s.blobs().put(&piece_key(org, upload, piece), Bytes::from_static(b"sealed")).await?;
            }
        }
        lock(&world, &at, "one", person()).await?;
        let pieces = new.file.pieces;
        s.write_revision(&world.org, new).await?;
        assert_eq!((s.orphans(LATER, 100).await?, s.missing_objects().await?), (vec![], vec![]), "all is named");
        // An upload that was cut off: no state, plan or result names it.
        let cut = UploadId::new(world.now(), unique());
        assert!(s.claim_sealed(org, &world.install, &cut, second_day).await?);
        s.blobs().put(&piece_key(org, &cut, 0), Bytes::from_static(b"sealed")).await?;
        // On the first day, a server of the version before may have named what it got, without a note.
        let early = UploadId::new(world.now(), unique());
        assert!(s.claim_sealed(org, &world.install, &early, world.now()).await?);
        assert_eq!(s.drop_abandoned_uploads(EARLIER, 100).await?, 0, "too young");
        assert_eq!(s.drop_abandoned_uploads(LATER, 1).await?, 1, "bounded");
        assert_eq!(s.drop_abandoned_uploads(LATER, 100).await?, 1, "`other`, and never the one of the state");
        assert_eq!(s.sweep_orphans(LATER, 100).await? as u32, 1 + pieces);
        assert!(s.sealed_is_of(&world.install, &upload).await? && s.sealed_is_of(&world.install, &early).await?);
        for upload in [&other] {
            s.claim_sealed(org, &world.install, upload, world.now()).await?;
            for piece in 0..pieces {
                s.blobs().put(&piece_key(org, upload, piece), Bytes::from_static(b"sealed")).await?;
            }
        }

        let lost = piece_key(org, &upload, 0);
        let bytes = s.blobs().get(&lost).await?;
        s.blobs().delete(&lost).await?;
        let missing = s.missing_objects().await?;
        assert!(missing.len() == 1 && missing[0].key == lost && missing[0].of.starts_with("state "), "{missing:?}");
        s.blobs().put(&lost, bytes).await?;

        let install = s.install(org, world.install.as_str()).await?;
        assert!(s.forget_install(&install, None, "ann", world.now()).await?);
        let found = s.orphans(LATER, 100).await?;
        assert_eq!(found.len() as u32, 2 * pieces, "{:?}", keys(&found));
        assert_eq!(s.sweep_orphans(LATER, 1).await?, 1, "bounded");
        while s.sweep_orphans(LATER, 1).await? > 0 {}
        assert_eq!((s.orphans(LATER, 100).await?, s.missing_objects().await?), (vec![], vec![]));
        Ok(())
    });
}

/// The events that can be read, once there is one that is not older than that: on PostgreSQL an event is read when no older
/// transaction is open, be it another test's.
async fn events(world: &World, since: Timestamp) -> anyhow::Result<Vec<store::Event>> {
    for _ in 0..500 {
        let found = world.store.latest_events(&world.org, None, &Default::default(), 100).await?;
        if found.iter().any(|event| event.time >= since) {
            return Ok(found);
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("there are no events since {since}")
}

#[test]
fn old_events_are_deleted_and_newer_ones_stay() {
    on_both(|mut world| async move {
        events(&world, EARLIER).await?;
        world.clock.advance_s(1000);
        let middle = world.now();
        world.join().await?;
        let all = events(&world, middle).await?;
        let newer: Vec<_> = all.iter().filter(|event| event.time >= middle).map(|event| event.cursor).collect();
        assert!(!newer.is_empty());
        while world.store.prune_events(middle, 1).await? > 0 {}
        let left: Vec<_> = events(&world, middle).await?.iter().map(|event| event.cursor).collect();
        assert_eq!(left, newer);
        assert_eq!(world.store.prune_events(middle, 100).await?, 0);
        Ok(())
    });
}
