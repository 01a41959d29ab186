//! What the last looks for drift at each part of an install found. A look is about the part as it was then: whatever is deployed there
//! afterwards makes it void, which its generation tells.

use model::{InstallId, OrgId, StepId, Timestamp, WorkflowId};
use serde_json::Value as Json;

use crate::db::{Table, Tx, params, select, table};
use crate::workflows::WorkflowRow;
use crate::{Reader, Result};

table! {
    #[derive(Debug, Clone)]
    pub struct Look from "looks" {
        /// `components/NAME` or `sandbox`.
        pub part: String,
        pub workflow_id: WorkflowId,
        pub step_id: StepId,
        /// `drifted` or `no-drift`; `look-failed` where none has found out.
        pub status: String,
        /// Digest of the plan, and what would change.
        pub body: Json,
        pub looked_at: Timestamp,
        /// How often the part had been changed when it was looked at.
        pub generation: u64,
        /// A later look that failed: its step, its status and why.
        pub attempt: Option<Json>,
    }
}

/// What a change of a workflow tells of drift.
#[derive(Debug, Clone)]
pub enum LookChange {
    Found(Look),
    /// A look that found nothing out: what an earlier one has found stays.
    Failed(Look),
}

pub(crate) async fn apply(tx: &mut Tx<'_>, row: &WorkflowRow, changes: &[LookChange]) -> Result<()> {
    for change in changes {
        let (look, sql) = match change {
            LookChange::Found(look) => (
                look,
                "INSERT INTO looks (install_id, part, org_id, workflow_id, step_id, status, body, looked_at, generation, attempt) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL) ON CONFLICT (install_id, part) DO UPDATE SET workflow_id = excluded.workflow_id, step_id = excluded.step_id, status = excluded.status, body = excluded.body, looked_at = excluded.looked_at, generation = excluded.generation, attempt = NULL",
            ),
            LookChange::Failed(look) => (
                look,
                "INSERT INTO looks (install_id, part, org_id, workflow_id, step_id, status, body, looked_at, generation, attempt) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $7) ON CONFLICT (install_id, part) DO UPDATE SET attempt = excluded.body",
            ),
        };
        let params = params![
            &row.install_id,
            &look.part,
            &row.org_id,
            &look.workflow_id,
            &look.step_id,
            &look.status,
            look.body.to_string(),
            look.looked_at,
            look.generation
        ];
        tx.exec_later(sql, params).await?;
    }
    Ok(())
}

impl Reader {
    pub async fn looks(&self, org: &OrgId, install: &InstallId) -> Result<Vec<Look>> {
        self.main()
            .glance((org.clone(), install.clone()), |tx, (org, install)| {
                Box::pin(async move {
                    let sql = select!(Look, "WHERE org_id = $1 AND install_id = $2 ORDER BY part");
                    tx.query(sql, params![org, install]).await?.iter().map(Look::from_row).collect()
                })
            })
            .await
    }
}
