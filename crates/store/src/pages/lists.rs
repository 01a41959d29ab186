//! Lists of workflows and plans over all installs of an org, each by an index, so that they cost what they show.

use model::{AccountId, InstallId, OrgId, StepId, WorkflowId};

use crate::db::{Table, params, select};
use crate::workflows::WorkflowRow;
use crate::{Reader, Result};

/// Which workflows are wanted.
#[derive(Debug, Clone, Default)]
pub struct WorkflowFilter {
    pub install: Option<InstallId>,
    pub kind: Option<String>,
    /// Any of these; all where none is named.
    pub statuses: Vec<String>,
    pub actor: Option<AccountId>,
    /// Those that are older.
    pub before: Option<WorkflowId>,
}

const AWAITING: &str = "SELECT s.workflow_id, s.id FROM workflows w JOIN workflow_steps s ON s.workflow_id = w.id AND s.status = 'approval-awaiting' WHERE w.org_id = $1 AND w.status IN ('approval-awaiting', 'in-progress') ORDER BY s.id LIMIT $2";
const ANSWERED: &str = "SELECT workflow_id, id FROM workflow_steps WHERE org_id = $1 AND status IN ('approved', 'approval-denied', 'denied-skipped', 'approval-expired') AND (CAST($2 AS TEXT) IS NULL OR id < $2) ORDER BY id DESC LIMIT $3";

impl Reader {
    /// Workflows that a filter takes, newest first.
    pub async fn filtered_workflows(
        &self,
        org: &OrgId,
        filter: WorkflowFilter,
        limit: u64,
    ) -> Result<Vec<WorkflowRow>> {
        let mut found = self
            .main()
            .read((org.clone(), filter, limit), |tx, (org, f, limit)| {
                Box::pin(async move {
                    let mut rows = Vec::new();
                    let one = [None];
                    let all: Vec<Option<&String>> = f.statuses.iter().map(Some).collect();
                    for status in if all.is_empty() { &one[..] } else { &all } {
                        // The narrowest column first, so that its index is used.
                        let sql = match (&f.install, &f.actor, status) {
                            (Some(_), _, _) => select!(WorkflowRow, "WHERE (org_id || '') = $1 AND install_id = $2 AND (CAST($3 AS TEXT) IS NULL OR created_by = $3) AND (CAST($4 AS TEXT) IS NULL OR status = $4) AND (CAST($5 AS TEXT) IS NULL OR type = $5) AND (CAST($6 AS TEXT) IS NULL OR id < $6) ORDER BY id DESC LIMIT $7"),
                            (None, Some(_), _) => select!(WorkflowRow, "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR install_id = $2) AND created_by = $3 AND (CAST($4 AS TEXT) IS NULL OR status = $4) AND (CAST($5 AS TEXT) IS NULL OR type = $5) AND (CAST($6 AS TEXT) IS NULL OR id < $6) ORDER BY id DESC LIMIT $7"),
                            (None, None, Some(_)) => select!(WorkflowRow, "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR install_id = $2) AND (CAST($3 AS TEXT) IS NULL OR created_by = $3) AND status = $4 AND (CAST($5 AS TEXT) IS NULL OR type = $5) AND (CAST($6 AS TEXT) IS NULL OR id < $6) ORDER BY id DESC LIMIT $7"),
                            (None, None, None) => select!(WorkflowRow, "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR install_id = $2) AND (CAST($3 AS TEXT) IS NULL OR created_by = $3) AND (CAST($4 AS TEXT) IS NULL OR status = $4) AND (CAST($5 AS TEXT) IS NULL OR type = $5) AND (CAST($6 AS TEXT) IS NULL OR id < $6) ORDER BY id DESC LIMIT $7"),
                        };
                        let given = params![org, f.install.as_ref(), f.actor.as_ref(), *status, f.kind.as_ref(), f.before.as_ref(), limit];
                        for row in tx.query(sql, given).await? {
                            rows.push(WorkflowRow::from_row(&row)?);
                        }
                    }
                    Ok(rows)
                })
            })
            .await?;
        found.sort_by(|a, b| b.id.cmp(&a.id));
        found.truncate(limit as usize);
        Ok(found)
    }

    /// Plans that wait for an answer, those that have waited longest first.
    pub async fn awaiting_plans(&self, org: &OrgId, limit: u64) -> Result<Vec<(WorkflowId, StepId)>> {
        let rows = self.main().query(AWAITING, params![org, limit]).await?;
        rows.iter().map(|row| Ok((row.get("workflow_id")?, row.get("id")?))).collect()
    }

    /// Plans that were answered or have expired, newest first.
    pub async fn answered_plans(
        &self,
        org: &OrgId,
        before: Option<&StepId>,
        limit: u64,
    ) -> Result<Vec<(WorkflowId, StepId)>> {
        let rows = self.main().query(ANSWERED, params![org, before, limit]).await?;
        rows.iter().map(|row| Ok((row.get("workflow_id")?, row.get("id")?))).collect()
    }
}
