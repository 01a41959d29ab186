//! How much is going on, for those who watch a control plane.

use std::collections::BTreeMap;

use crate::db::params;
use crate::{Reader, Result};

/// How much is going on, over all orgs.
#[derive(Debug, Default)]
pub struct OpenCounts {
    /// By state.
    pub jobs: BTreeMap<String, i64>,
    /// By status.
    pub workflows: BTreeMap<String, i64>,
    pub runners: i64,
}

/// The conditions of partial indexes, letter by letter: finished ones are not looked at.
const QUEUED: &str = "SELECT 'queued' AS state, COUNT(*) AS count FROM jobs WHERE state = 'queued'";
const LIVE: &str =
    "SELECT state, COUNT(*) AS count FROM jobs WHERE state IN ('available', 'in-progress', 'unknown') GROUP BY state";
const OPEN: &str = "SELECT status, COUNT(*) AS count FROM workflows WHERE status IN ('pending', 'in-progress', 'approval-awaiting') GROUP BY status";

impl Reader {
    pub async fn open_counts(&self) -> Result<OpenCounts> {
        self.main()
            .read((), |tx, ()| {
                Box::pin(async move {
                    let mut counts = OpenCounts {
                        jobs: ["queued", "available", "in-progress", "unknown"].map(|state| (state.into(), 0)).into(),
                        workflows: ["pending", "in-progress", "approval-awaiting"].map(|s| (s.into(), 0)).into(),
                        runners: 0,
                    };
                    for sql in [QUEUED, LIVE] {
                        for row in tx.query(sql, params![]).await? {
                            counts.jobs.insert(row.get("state")?, row.get("count")?);
                        }
                    }
                    for row in tx.query(OPEN, params![]).await? {
                        counts.workflows.insert(row.get("status")?, row.get("count")?);
                    }
                    let row =
                        tx.get("SELECT COUNT(*) AS count FROM runners WHERE revoked_at IS NULL", params![]).await?;
                    counts.runners = row.map_or(Ok(0), |row| row.get("count"))?;
                    Ok(counts)
                })
            })
            .await
    }
}
