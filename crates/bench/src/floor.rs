//! The floors: the least that the same work could cost on this machine, at this moment.

use std::time::Instant;

use axum::Router;
use axum::routing::post;

use crate::percentile;

const ROUNDS: usize = 2000;

/// One bare HTTP round trip over a connection that is open: an axum handler that does nothing.
pub(crate) async fn round_trip_ms() -> anyhow::Result<f64> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/x", listener.local_addr()?);
    let server = tokio::spawn(async move {
        let app = Router::new().route("/x", post(|body: String| async move { body }));
        let _ = axum::serve(listener, app).await;
    });
    let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build()?;
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let at = Instant::now();
        client.post(&url).body("{}").send().await?.bytes().await?;
        times.push(at.elapsed().as_secs_f64() * 1000.0);
    }
    server.abort();
    Ok(percentile(&mut times, 0.5))
}

/// One bare durable commit: SQLite, WAL, `synchronous=FULL`, one row.
pub(crate) fn commit_ms() -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let db = rusqlite::Connection::open(dir.path().join("floor.db"))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")?;
    let mut times = Vec::with_capacity(ROUNDS);
    for i in 0..ROUNDS {
        let at = Instant::now();
        db.execute("INSERT INTO t (v) VALUES (?1)", [format!("value {i}")])?;
        times.push(at.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(percentile(&mut times, 0.5))
}

/// Jobs per second of the bare group commit: four rows a job, 256 of them to a commit.
pub(crate) fn group_commit_jobs_s() -> anyhow::Result<f64> {
    let dir = tempfile::tempdir()?;
    let db = rusqlite::Connection::open(dir.path().join("floor.db"))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")?;
    let at = Instant::now();
    let (groups, group) = (200, 256);
    for i in 0..groups {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for _ in 0..group {
            db.execute_batch("SAVEPOINT request")?;
            db.prepare_cached("INSERT INTO t (v) VALUES (?1)")?.execute([format!("value {i}")])?;
            db.execute_batch("RELEASE request")?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(f64::from(groups * group) / 4.0 / at.elapsed().as_secs_f64())
}
