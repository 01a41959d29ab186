//! Runs of synced actions: which action of which config became which job.

use model::{ActionRunId, InstallId, JobId, OrgId, SectionId, StepId, Timestamp, WorkflowId};

use crate::db::{Table, Tx, params, select, table};
use crate::{Install, Reader, Result, StoreError};

table! {
    #[derive(Debug, Clone)]
    pub struct ActionRun from "action_runs" {
        pub id: ActionRunId,
        pub install_id: InstallId,
        pub action_id: String = "entity_id",
        /// The action's section in the config that it was run from.
        pub section_id: SectionId,
        pub job_id: JobId,
        pub trigger_type: String,
        pub created_by: String,
        pub created_at: Timestamp,
    }
}

pub(crate) async fn insert(tx: &mut Tx<'_>, org: &OrgId, run: &ActionRun) -> Result<()> {
    tx.exec_later(
        "INSERT INTO action_runs (id, org_id, install_id, entity_id, section_id, job_id, trigger_type, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        params![&run.id, org, &run.install_id, &run.action_id, &run.section_id, &run.job_id, &run.trigger_type, &run.created_by, run.created_at],
    )
    .await
}

impl Reader {
    pub async fn action_run(&self, org: &OrgId, install: &InstallId, id: &ActionRunId) -> Result<ActionRun> {
        self.main()
            .glance((org.clone(), install.clone(), id.clone()), |tx, (org, install, id)| {
                Box::pin(async move {
                    let sql = select!(ActionRun, "WHERE org_id = $1 AND install_id = $2 AND id = $3");
                    ActionRun::from_row(
                        &tx.get(sql, params![&org, &install, &id]).await?.ok_or(StoreError::NotFound("run"))?,
                    )
                })
            })
            .await
    }

    /// The run that a workflow, or one step of it, has started.
    pub async fn run_of_workflow(
        &self,
        org: &OrgId,
        install: &InstallId,
        workflow: &WorkflowId,
        step: Option<&StepId>,
    ) -> Result<Option<ActionRun>> {
        self.main()
            .glance((org.clone(), install.clone(), workflow.clone(), step.cloned()), |tx, (org, install, workflow, step)| { Box::pin(async move {
                    let sql = select!(ActionRun,
                        "WHERE org_id = $1 AND install_id = $2 AND job_id IN (SELECT j.id FROM jobs j JOIN workflow_steps s ON s.id = j.step_id WHERE s.workflow_id = $3 AND (CAST($4 AS TEXT) IS NULL OR s.id = $4)) ORDER BY id LIMIT 1"
                    );
                    let params = params![&org, &install, &workflow, step.as_ref()];
                    tx.get(sql, params).await?.as_ref().map(ActionRun::from_row).transpose()
                }) })
            .await
    }

    /// Runs on an install, newest first: of one action, or of all.
    pub async fn action_runs(
        &self,
        org: &OrgId,
        install: &InstallId,
        action: Option<&str>,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<ActionRun>> {
        self.main()
            .read((org.clone(), install.clone(), action.map(str::to_owned), offset, limit), |tx, (org, install, action, offset, limit)| { Box::pin(async move {
                    let sql = select!(ActionRun,
                        "WHERE org_id = $1 AND install_id = $2 AND (CAST($3 AS TEXT) IS NULL OR entity_id = $3) ORDER BY id DESC LIMIT $4 OFFSET $5"
                    );
                    tx.query(sql, params![&org, &install, action, limit, offset]).await?.iter().map(ActionRun::from_row).collect()
                }) })
            .await
    }

    /// The last run of every action on an install; or the last one that finished, whose outputs stand.
    pub async fn last_runs(&self, install: &Install, finished: bool) -> Result<Vec<ActionRun>> {
        let sql = if finished {
            select!(
                ActionRun,
                "WHERE org_id = $1 AND id IN (SELECT (SELECT r.id FROM action_runs r JOIN jobs j ON j.id = r.job_id WHERE r.install_id = $2 AND r.entity_id = e.id AND j.state = 'finished' ORDER BY r.id DESC LIMIT 1) FROM entities e WHERE e.app_id = $3 AND e.kind = 'action')"
            )
        } else {
            select!(
                ActionRun,
                "WHERE org_id = $1 AND id IN (SELECT (SELECT r.id FROM action_runs r WHERE r.install_id = $2 AND r.entity_id = e.id ORDER BY r.id DESC LIMIT 1) FROM entities e WHERE e.app_id = $3 AND e.kind = 'action')"
            )
        };
        let rows = self.main().query(sql, params![&install.org_id, &install.id, &install.app_id]).await?;
        rows.iter().map(ActionRun::from_row).collect()
    }
}
