//! The registry's tables, and uploads to files, to S3 and to memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use bytes::Bytes;
use futures::TryStreamExt as _;
use model::{BlobId, Digest, OrgId, Timestamp};
use store::{MasterKeys, NewManifest, RegistryUpload, S3Options, Store, StoreConfig, StoreError};

use crate::kit::{Backend, FakeClock, M1, World, new_org, on_both, unique};

const APP: &str = "o/app";

fn bytes_of(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

async fn begun(store: &Store, org: &OrgId, repository: &str, now: Timestamp) -> Result<RegistryUpload, StoreError> {
    let id = BlobId::new(now, unique());
    store.begin_upload(org, repository, &id, now).await?;
    store.registry_upload(org, repository, &id).await
}

async fn push(store: &Store, org: &OrgId, repository: &str, bytes: &[u8], now: Timestamp) -> Result<bool, StoreError> {
    let upload = begun(store, org, repository, now).await?;
    let writer = store.blobs().writer(&upload.key(), None).await?;
    writer.write(vec![Bytes::copy_from_slice(bytes)]).await.expect("a task")?;
    let digest = writer.digest().await;
    assert_eq!(digest, Digest::of(bytes));
    writer.finish().await?;
    store.finish_upload(&upload, &digest, bytes.len() as u64, now).await
}

async fn read(store: &Store, key: &str, size: u64, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
    let pieces: Vec<Bytes> = store.blobs().read(key, size, range).await?.try_collect().await?;
    Ok(pieces.concat())
}

fn manifest(org: &OrgId, repository: &str, tag: &str, blobs: &[&[u8]], now: Timestamp) -> NewManifest {
    let body = format!("{repository} {tag} {:?}", blobs.iter().map(|b| Digest::of(b)).collect::<Vec<_>>()).into_bytes();
    NewManifest {
        org_id: org.clone(),
        repository: repository.into(),
        digest: Digest::of(&body),
        media_type: "application/x".into(),
        subject: None,
        artifact_type: None,
        annotations: None,
        blobs: blobs.iter().map(|b| Digest::of(b)).collect(),
        manifests: vec![],
        foreign: vec![],
        sizes: blobs.iter().map(|b| (Digest::of(b), b.len() as u64)).collect(),
        tag: Some(tag.into()),
        now,
        body,
    }
}

/// Deletes every object that is doomed; says how many.
async fn bury_all(store: &Store) -> Result<usize, StoreError> {
    let doomed = store.doomed(1000).await?;
    for (key, progress) in &doomed {
        store.bury(key, progress.as_deref()).await?;
    }
    Ok(doomed.len())
}

impl World {
    async fn has(&self, repository: &str, bytes: &[u8]) -> Result<bool> {
        let found = self.store.registry_blob(&self.org, repository, &Digest::of(bytes), self.now()).await?;
        if let Some(blob) = &found {
            assert_eq!(read(&self.store, &blob.key, blob.size_bytes, 0..blob.size_bytes).await?, bytes);
        }
        Ok(found.is_some())
    }

    async fn sweep(&self) -> Result<usize> {
        self.store.sweep_blobs(self.now().plus_s(-100), 100, self.now()).await?;
        Ok(bury_all(&self.store).await?)
    }
}

#[test]
fn a_blob_lives_while_a_manifest_needs_it_and_its_grace_after() {
    on_both(|world| async move {
        let (s, org) = (&world.store, &world.org);
        let (kept, idle, late) = (bytes_of(1, 1000), bytes_of(2, 1000), bytes_of(3, 0));
        for bytes in [&kept, &idle, &late] {
            assert!(push(s, org, APP, bytes, world.now()).await?);
        }
        let new = manifest(org, APP, "v1", &[&kept], world.now());
        let reference = new.digest.to_string();
        s.put_manifest(new).await?;
        world.clock.advance_s(99);
        assert!(world.has(APP, &late).await?, "a look at it begins its time anew");
        assert_eq!(world.sweep().await?, 0);
        world.clock.advance_s(2);
        assert_eq!(world.sweep().await?, 1, "the idle one");
        assert!(world.has(APP, &kept).await? && !world.has(APP, &idle).await? && world.has(APP, &late).await?);
        assert_eq!(
            s.registry_usage(org).await?,
            1000 + s.registry_manifest(org, APP, "v1").await?.unwrap().head.size_bytes
        );
        world.clock.advance_s(200);
        s.delete_manifest(org, APP, &reference, world.now()).await?;
        assert!(s.registry_manifest(org, APP, "v1").await?.is_none(), "its tags go with it");
        assert_eq!(world.sweep().await?, 1, "the late one");
        world.clock.advance_s(101);
        assert_eq!(world.sweep().await?, 1);
        assert!(!world.has(APP, &kept).await?);
        assert_eq!(s.registry_usage(org).await?, 0);
        Ok(())
    });
}

#[test]
fn the_same_bytes_are_kept_once_in_an_org_and_apart_between_orgs() {
    on_both(|world| async move {
        let (s, org, now) = (&world.store, &world.org, world.now());
        let bytes = bytes_of(1, 5000);
        assert!(push(s, org, APP, &bytes, now).await?);
        assert!(!push(s, org, "o/other", &bytes, now).await?, "they are there");
        assert_eq!(bury_all(s).await?, 1, "the second copy");
        assert!(world.has(APP, &bytes).await? && world.has("o/other", &bytes).await?);
        let digest = Digest::of(&bytes);
        assert!(!world.has("o/third", &bytes).await?, "not shown there");
        assert!(s.mount_blob(org, APP, "o/third", &digest, now).await? && world.has("o/third", &bytes).await?);
        assert!(!s.mount_blob(org, "o/none", "o/fourth", &digest, now).await?);
        let other = new_org(s, &world.account, "other", now).await?;
        assert!(s.registry_blob(&other, APP, &digest, now).await?.is_none());
        assert!(!s.mount_blob(&other, APP, "o/x", &digest, now).await?);
        assert!(push(s, &other, APP, &bytes, now).await?, "another org brings its own");
        let upload = begun(s, org, APP, now).await?;
        assert!(matches!(s.registry_upload(&other, APP, &upload.id).await, Err(StoreError::NotFound("upload"))));
        assert!(matches!(s.registry_upload(org, "o/other", &upload.id).await, Err(StoreError::NotFound("upload"))));
        s.put_manifest(manifest(org, APP, "v1", &[&bytes], now)).await?;
        assert!(s.registry_manifest(&other, APP, "v1").await?.is_none());
        assert_eq!(s.registry_tags(&other, "o/other", "", 10).await?, None);
        assert_eq!(s.registry_repositories(&other, "", 10).await?, ["o/app"]);
        let refused = s.put_manifest(manifest(org, "o/empty", "v1", &[&bytes], now)).await;
        assert!(matches!(refused, Err(StoreError::ContentMissing(_))), "{refused:?}");
        assert!(!s.has_repository(org, "o/empty").await?, "a refused manifest leaves nothing");
        let refused = s.unlink_blob(org, APP, &digest).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        assert!(world.has(APP, &bytes).await?);
        s.unlink_blob(org, "o/third", &digest).await?;
        assert!(!world.has("o/third", &bytes).await?);
        Ok(())
    });
}

#[test]
fn uploads_expire() {
    on_both(|world| async move {
        let (s, org) = (&world.store, &world.org);
        let upload = begun(s, org, APP, world.now()).await?;
        let writer = s.blobs().writer(&upload.key(), None).await?;
        writer.write(vec![Bytes::from_static(b"some")]).await??;
        writer.pause().await?;
        world.clock.advance_s(50);
        assert_eq!(s.expire_uploads(world.now().plus_s(-60), 10, world.now()).await?, 0);
        world.clock.advance_s(50);
        assert_eq!(s.expire_uploads(world.now().plus_s(-60), 10, world.now()).await?, 1);
        assert_eq!(bury_all(s).await?, 1);
        assert_eq!(s.blobs().upload_size(&upload.key(), None).await?, 0);
        let refused = s.finish_upload(&upload, &Digest::of(b"some"), 4, world.now()).await;
        assert!(matches!(refused, Err(StoreError::NotFound("upload"))), "{refused:?}");
        Ok(())
    });
}

/// Pushers, deleters and a sweep without any grace, all at once: every manifest that is there at the end has all its blobs.
#[test]
fn a_sweep_beside_pushes_takes_nothing_that_is_needed() {
    on_both(|world| async move {
        let world = Arc::new(world);
        let stop = Arc::new(AtomicBool::new(false));
        let (swept, pushed) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
        let sweeper = {
            let (world, stop, swept) = (Arc::clone(&world), Arc::clone(&stop), Arc::clone(&swept));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    world.store.sweep_blobs(world.now().plus_s(1), 8, world.now()).await?;
                    swept.fetch_add(bury_all(&world.store).await? as u64, Ordering::Relaxed);
                }
                Ok::<_, StoreError>(())
            })
        };
        let pusher = |n: u64| {
            let (world, pushed) = (&world, &pushed);
            async move {
                let (s, org, now) = (&world.store, &world.org, world.now());
                for round in 0..40 {
                    let tag = format!("t{n}");
                    // Five blobs in all, so that everybody shares them.
                    let blobs = [bytes_of(round % 5, 300), bytes_of((round + n) % 5, 300)];
                    for bytes in &blobs {
                        push(s, org, APP, bytes, now).await?;
                    }
                    let new = manifest(org, APP, &tag, &[&blobs[0], &blobs[1]], now);
                    let digest = new.digest.to_string();
                    match s.put_manifest(new).await {
                        Ok(()) => pushed.fetch_add(1, Ordering::Relaxed),
                        // Swept a moment before: the client brings them again.
                        Err(StoreError::ContentMissing(_)) => continue,
                        Err(other) => return Err(other),
                    };
                    if round % 3 != 0 {
                        s.delete_manifest(org, APP, &digest, now).await?;
                    }
                }
                Ok(())
            }
        };
        for outcome in futures::future::join_all((0..4).map(pusher)).await {
            outcome?;
        }
        stop.store(true, Ordering::Relaxed);
        sweeper.await??;
        let rows = world.store.db().query("SELECT DISTINCT digest FROM registry_references", vec![]).await?;
        let all: Vec<Vec<u8>> = (0..5).map(|n| bytes_of(n, 300)).collect();
        for row in &rows {
            let digest: String = row.get("digest")?;
            let bytes = all.iter().find(|b| Digest::of(b).as_str() == digest).expect("one of the five");
            assert!(world.has(APP, bytes).await?, "{digest} is needed, and gone");
        }
        let (swept, pushed) = (swept.load(Ordering::Relaxed), pushed.load(Ordering::Relaxed));
        assert!(pushed > 0 && swept > 0 && !rows.is_empty(), "{pushed} pushed, {swept} swept, {} needed", rows.len());
        Ok(())
    });
}

/// Bytes in three requests, each of which another process could be serving.
async fn three_requests(open: impl AsyncFn() -> Result<Store, StoreError>, sizes: [usize; 3]) -> Result<()> {
    let key = format!("registry/o/{}", BlobId::new(FakeClock::START, unique()));
    let bytes = bytes_of(7, sizes.iter().sum());
    let (mut progress, mut at) = (None::<String>, 0);
    for size in sizes {
        let store = open().await?;
        assert_eq!(store.blobs().upload_size(&key, progress.as_deref()).await?, at as u64);
        let writer = store.blobs().writer(&key, progress.as_deref()).await?;
        assert_eq!(writer.size_bytes().await, at as u64);
        for piece in bytes[at..at + size].chunks(100_000) {
            writer.write(vec![Bytes::copy_from_slice(piece)]).await??;
        }
        at += size;
        progress = writer.pause().await?;
    }
    let store = open().await?;
    let writer = store.blobs().writer(&key, progress.as_deref()).await?;
    assert_eq!(writer.digest().await, Digest::of(&bytes));
    writer.finish().await?;
    let size = bytes.len() as u64;
    assert_eq!(read(&store, &key, size, 0..size).await?, bytes);
    let (a, b) = (size / 3, size / 2);
    assert_eq!(read(&store, &key, size, a..b).await?, bytes[a as usize..b as usize]);
    assert!(read(&store, &key, size + 1, 0..size + 1).await.is_err(), "a blob of another size is not served");
    store.blobs().remove_tails(&key).await?;
    store.blobs().remove_upload(&key, progress.as_deref()).await?;
    assert!(read(&store, &key, size, 0..size).await.is_err());
    Ok(())
}

const SIZES: [[usize; 3]; 3] = [[10, 0, 70], [9 << 20, 3 << 20, 5 << 20], [100, 17 << 20, 1]];

#[test]
fn an_upload_to_files_goes_on_in_another_process() {
    testkit::on(Backend::Sqlite, |place| async move {
        for sizes in SIZES {
            three_requests(async || crate::kit::open(&place).await, sizes).await?;
        }
        let store = crate::kit::open(&place).await?;
        let writer = store.blobs().writer("registry/o/one", None).await?;
        let second = store.blobs().writer("registry/o/one", None).await;
        assert!(matches!(second, Err(StoreError::Refused(_))), "one at a time");
        drop(writer);
        store.blobs().writer("registry/o/one", None).await?;
        Ok(())
    });
}

#[test]
fn an_upload_to_s3_goes_on_in_another_process() {
    testkit::on(Backend::Sqlite, |place| async move {
        let server = testkit::s3().await;
        let s3 = S3Options {
            endpoint: Some(server.endpoint.clone()),
            region: Some("eu-west-1".into()),
            access_key_id: Some(server.access_key_id.into()),
            secret_access_key: Some(server.secret_access_key.into()),
            allow_http: Some(true),
        };
        let config = StoreConfig {
            database_url: place.database_url.clone(),
            blobs_url: format!("s3://{}/some", server.bucket),
            pg_connections: 2,
            s3,
        };
        for sizes in SIZES {
            let open = async || Store::open(&config, MasterKeys::parse(M1)?, FakeClock::START).await;
            three_requests(open, sizes).await?;
        }
        Ok(())
    });
}

#[test]
fn an_upload_is_claimed_once() {
    on_both(|world| async move {
        let (s, now) = (&world.store, world.now());
        let upload = begun(s, &world.org, APP, now).await?;
        s.claim_upload(&upload, now, now.plus_s(10)).await?;
        let second = s.claim_upload(&upload, now, now.plus_s(10)).await;
        assert!(matches!(second, Err(StoreError::Refused(_))), "{second:?}");
        s.hold_upload(&upload, now.plus_s(20)).await?;
        assert!(s.claim_upload(&upload, now.plus_s(15), now.plus_s(30)).await.is_err());
        s.pause_upload(&upload, "{}").await?;
        assert_eq!(s.claim_upload(&upload, now, now.plus_s(10)).await?.progress.as_deref(), Some("{}"));
        assert!(s.claim_upload(&upload, now.plus_s(11), now.plus_s(30)).await.is_ok(), "a claim ends by itself");
        Ok(())
    });
}
