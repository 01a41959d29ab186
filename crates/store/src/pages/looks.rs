//! The last look for drift at each part of an install. Whatever is deployed there makes it void.

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
        /// As the step ended: `drifted`, `no-drift`, or anything that says that nobody knows.
        pub status: String,
        /// What would change, and why nothing is known.
        pub body: Json,
        pub looked_at: Timestamp,
    }
}

/// What a change of a workflow tells of drift.
#[derive(Debug, Clone)]
pub enum LookChange {
    Looked(Look),
    /// Something was deployed to this part.
    Void(String),
}

pub(crate) async fn apply(tx: &mut Tx<'_>, row: &WorkflowRow, changes: &[LookChange]) -> Result<()> {
    for change in changes {
        match change {
            LookChange::Looked(look) => {
                let sql = "INSERT INTO looks (install_id, part, org_id, workflow_id, step_id, status, body, looked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (install_id, part) DO UPDATE SET workflow_id = excluded.workflow_id, step_id = excluded.step_id, status = excluded.status, body = excluded.body, looked_at = excluded.looked_at";
                let body = look.body.to_string();
                tx.exec_later(
                    sql,
                    params![
                        &row.install_id,
                        &look.part,
                        &row.org_id,
                        &look.workflow_id,
                        &look.step_id,
                        &look.status,
                        body,
                        look.looked_at
                    ],
                )
                .await?;
            }
            LookChange::Void(part) => {
                let sql = "DELETE FROM looks WHERE install_id = $1 AND part = $2";
                tx.exec_later(sql, params![&row.install_id, part]).await?;
            }
        }
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
