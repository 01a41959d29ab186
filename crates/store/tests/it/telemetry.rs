//! Logs without an end, and logs that are passed on.

use model::log::{Body, Pipe, telemetry_log, telemetry_runner, telemetry_stream};
use store::{LogAt, LogRules};

use crate::kit::on_both;

const WRITERS: usize = 4;
const BATCHES: usize = 20;
const RECORDS: usize = 7;

/// Whoever writes at the same time: every record has a number and a time of its own, and those of one writer stay in their order.
#[test]
fn records_of_many_writers_are_in_one_order() {
    on_both(|world| async move {
        assert_eq!(telemetry_runner(&telemetry_stream(&world.runner)), world.runner);
        let writers = (0..WRITERS).map(|writer| {
            let (store, org, runner, now) = (world.store.clone(), world.org.clone(), world.runner.clone(), world.now());
            async move {
                for batch in 0..BATCHES {
                    let records = (0..RECORDS).map(|n| format!("{writer} {}", batch * RECORDS + n).into_bytes());
                    store.append_records(&org, &runner, Pipe::Logs, records.collect(), now).await?;
                }
                Ok::<_, store::StoreError>(())
            }
        });
        for outcome in futures::future::join_all(writers).await {
            outcome?;
        }
        let log = telemetry_log(&world.runner);
        let total = (WRITERS * BATCHES * RECORDS) as u64;
        let (mut chunks, mut next) = (Vec::new(), 0);
        loop {
            let block = world.store.log_block(&log, LogAt::From(next)).await?;
            let Some(last) = block.last() else { break };
            next = last.seq + 1;
            chunks.extend(block);
        }
        assert!(chunks.iter().map(|c| c.seq).eq(0..total), "{} chunks", chunks.len());
        assert!(chunks.is_sorted_by(|a, b| a.time_ns < b.time_ns), "every record has its own time");
        let mut seen = [0; WRITERS];
        for chunk in &chunks {
            let Body::Data(data) = &chunk.body else { panic!("{chunk:?}") };
            let text = String::from_utf8_lossy(data);
            let (writer, n) = text.split_once(' ').expect("two words");
            let seen = &mut seen[writer.parse::<usize>()?];
            assert_eq!(n.parse::<usize>()?, *seen);
            *seen += 1;
        }
        assert_eq!(world.store.verify_log(&log).await?, Ok(total));
        Ok(())
    });
}

/// The oldest go, blobs and all, and what is left is whole.
#[test]
fn a_log_without_an_end_loses_what_is_old() {
    on_both(|world| async move {
        let log = telemetry_log(&world.runner);
        let write = async |n: usize| {
            let records = (0..10).map(|i| format!("{n}.{i}").into_bytes()).collect();
            world.store.append_records(&world.org, &world.runner, Pipe::Metrics, records, world.now()).await
        };
        for n in 0..3 {
            write(n).await?;
            world.store.seal_log(&world.org, &log, 1).await?;
            world.clock.advance_s(3_600);
        }
        write(3).await?;
        assert_eq!(world.store.trim_rolling_logs(world.now(), 10).await?, 0, "young enough");
        world.store.set_log_rules(&world.org, LogRules { retention_s: Some(5_400), quota_bytes: None }).await?;
        assert_eq!(world.store.trim_rolling_logs(world.now(), 10).await?, 1);
        let head = world.store.log_state(&log).await?;
        assert_eq!((head.first_seq, head.next_seq), (10, 40));
        assert_eq!(world.store.log_block(&log, LogAt::From(0)).await?.first().map(|c| c.seq), Some(10));
        assert_eq!(world.store.verify_log(&log).await?, Ok(40));
        let blobs = world.place.dir.path().join("blobs/logs").join(world.org.as_str()).join(log.as_str());
        assert_eq!(fs_err::read_dir(blobs)?.count(), 2);
        // The last one too, where nobody writes any more and the org has no rule.
        world.store.seal_log(&world.org, &log, 1).await?;
        world.store.set_log_rules(&world.org, LogRules::default()).await?;
        world.clock.advance_s(29 * 86_400);
        assert_eq!(world.store.trim_rolling_logs(world.now(), 10).await?, 0);
        world.clock.advance_s(2 * 86_400);
        assert_eq!(world.store.trim_rolling_logs(world.now(), 10).await?, 3);
        assert_eq!(world.store.log_block(&log, LogAt::From(0)).await?, []);
        world.store.set_log_rules(&world.org, LogRules { retention_s: Some(5_400), quota_bytes: None }).await?;
        // A log that is as old as that is deleted as a whole; then it begins anew.
        world.clock.advance_s(86_400);
        assert_eq!(world.store.expire_logs(world.now(), 10).await?, 1);
        write(4).await?;
        assert_eq!(world.store.verify_log(&log).await?, Ok(50));
        assert_eq!(world.store.log_state(&log).await?.first_seq, 40);
        Ok(())
    });
}

/// One at a time passes a log on, and what was passed on is not passed on again.
#[test]
fn a_log_is_passed_on_by_one_at_a_time() {
    on_both(|mut world| async move {
        world.join().await?;
        let log = model::ExecutionId::new(world.now(), crate::kit::unique());
        let chunk = |seq: u64| model::log::Chunk {
            seq,
            time_ns: 1 + seq,
            pipe: Pipe::Stdout,
            step: 0,
            offset: seq,
            body: Body::Data(b"x".to_vec()),
        };
        let append = async |seq: u64| {
            let mut plain = Vec::new();
            chunk(seq).encode(&mut plain);
            let data = zstd::bulk::compress(&plain, 1)?;
            anyhow::Ok(world.store.append_log(&world.org, &log, &[chunk(seq)], data, world.now()).await?)
        };
        let waiting = async || {
            let now = world.now();
            let all = world.store.forwardable(now.plus_s(-3_600), now, 10).await?;
            anyhow::Ok(all.into_iter().find(|of| of.log == log))
        };
        append(0).await?;
        let of = waiting().await?.expect("something to pass on");
        let (now, soon) = (world.now(), world.now().plus_s(60));
        assert!(world.store.take_forwarding(&of, now, soon).await?);
        assert!(!world.store.take_forwarding(&of, now, soon).await?, "somebody is at it");
        assert!(waiting().await?.is_none());
        // Who died over it is followed by another.
        world.clock.advance_s(61);
        assert_eq!(waiting().await?.map(|of| of.from_seq), Some(0));
        world.store.forwarded(&log, 1, world.now()).await?;
        assert!(waiting().await?.is_none());
        append(1).await?;
        assert_eq!(waiting().await?.map(|of| of.from_seq), Some(1));
        world.clock.advance_s(7_200);
        assert!(waiting().await?.is_none(), "too old");
        Ok(())
    });
}
