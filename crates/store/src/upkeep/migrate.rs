//! Brings a database's schema up to date: numbered steps, forward only, under a lock.

use model::Timestamp;

use crate::db::{Db, Sql, params};
use crate::{Result, StoreError};

/// Two sets, because the hot logs have a file of their own on SQLite.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Set {
    Main,
    Logs,
}

macro_rules! step {
    ($name:literal) => {
        Sql {
            sqlite: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
        }
    };
}

impl Set {
    fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Logs => "logs",
        }
    }

    /// Step n brings the schema from version n to n + 1. Append only.
    fn steps(self) -> Vec<Sql> {
        match self {
            Self::Main => vec![
                step!("main_0001_init"),
                step!("main_0002_growth"),
                step!("main_0003_configs"),
                step!("main_0004_registry"),
                step!("main_0005_builds"),
                step!("main_0006_hosting"),
                step!("main_0007_workflows"),
                step!("main_0008_builds"),
                step!("main_0009_schedules"),
                step!("main_0010_terraform"),
                step!("main_0011_telemetry"),
                step!("main_0012_truth"),
                step!("main_0013_leases"),
                step!("main_0014_uploads"),
                step!("main_0015_health"),
                step!("main_0016_people"),
                step!("main_0017_pages"),
            ],
            Self::Logs => vec![step!("logs_0001_init"), step!("logs_0002_keeping"), step!("logs_0003_telemetry")],
        }
    }
}

const TABLE: Sql = Sql {
    sqlite: "CREATE TABLE IF NOT EXISTS schema_versions (part TEXT NOT NULL, version INTEGER NOT NULL, applied_at INTEGER NOT NULL, PRIMARY KEY (part, version))",
    postgres: "SELECT pg_advisory_xact_lock(7035842);
        CREATE TABLE IF NOT EXISTS schema_versions (part TEXT NOT NULL, version BIGINT NOT NULL, applied_at BIGINT NOT NULL, PRIMARY KEY (part, version))",
};

pub(crate) async fn run(db: &Db, set: Set, now: Timestamp) -> Result<()> {
    // Its own transaction: the next one can lock the table, which, unlike an advisory lock, takes no snapshot before it waits.
    db.write((), |tx, ()| Box::pin(tx.batch(TABLE))).await?;
    db.write((set, now), |tx, (set, now)| {
        Box::pin(async move {
            tx.batch(Sql { sqlite: "", postgres: "LOCK TABLE schema_versions IN EXCLUSIVE MODE" }).await?;
            let row = tx
                .get(
                    "SELECT COALESCE(MAX(version), 0) AS last_version FROM schema_versions WHERE part = $1",
                    params![set.name()],
                )
                .await?
                .ok_or_else(|| StoreError::corrupt("schema version"))?;
            let found: i64 = row.get("last_version")?;
            let steps = set.steps();
            let known = steps.len() as i64;
            if found > known {
                return Err(StoreError::NewerSchema { found, known });
            }
            for (version, step) in (1i64..).zip(steps).skip(found as usize) {
                tx.batch(step).await?;
                tx.exec(
                    "INSERT INTO schema_versions (part, version, applied_at) VALUES ($1, $2, $3)",
                    params![set.name(), version, now],
                )
                .await?;
            }
            Ok(())
        })
    })
    .await
}
