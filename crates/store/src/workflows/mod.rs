//! Owns workflows with their steps, the install state in versions, and schedules.
//! The conductor calls it; a change is written only at the version that was read.
//! No decision about the next step: that is `engine`.
//!
//! Workflows and their steps. What they mean is not known here: a row has what is looked for, and a body.

pub(crate) mod schedules;
pub(crate) mod state;

use std::collections::BTreeMap;

use model::{AccountId, ConfigId, InstallId, JobId, OrgId, RunnerId, StepId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::apps::change_install;
use crate::apps::inputs::{InstallInputs, SealedInputs, insert_next_inputs};
use crate::db::{Sql, Table, Tx, params, select, table};
use crate::events::notify::topic;
use crate::events::{Note, record};
use crate::idempotency::{Created, Idempotency, idempotent, remember};
use crate::pages::looks::LookChange;
use crate::pages::{looks, summaries};
use crate::workflows::state::{SealedPart, insert_parts};
use crate::{Install, Reader, Result, Store, StoreError};

table! {
    #[derive(Debug, Clone)]
    pub struct WorkflowRow from "workflows" {
        pub id: WorkflowId,
        pub org_id: OrgId,
        pub install_id: InstallId,
        pub kind: String = "type",
        pub status: String,
        pub body: Json,
        pub created_by: AccountId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
        pub started_at: Option<Timestamp>,
        pub finished_at: Option<Timestamp>,
        pub version: i64,
        /// What had happened to it when it was read.
        pub dirty: i64,
    }
}

table! {
    #[derive(Debug, Clone)]
    pub struct StepRow from "workflow_steps" {
        pub id: StepId,
        pub slot: u32,
        pub attempt: u32,
        pub name: String,
        pub status: String,
        pub locks: Option<String>,
        /// What a plan, or the sync of an image, is about: a part of the install's state.
        pub target: Option<String>,
        pub body: Json,
    }
}

/// What was given with a workflow; sealed at rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// Environment of its actions.
    #[serde(default)]
    pub env_vars: BTreeMap<String, String>,
    /// Values that must not appear in logs.
    #[serde(default)]
    pub masked_values: Vec<String>,
    /// What a runbook asks for.
    #[serde(default)]
    pub runbook_inputs: BTreeMap<String, String>,
}

impl Given {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Once it was the environment alone.
    fn read(text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text)
            .or_else(|_| serde_json::from_slice(text).map(|env_vars| Self { env_vars, ..Self::default() }))
            .map_err(|_| StoreError::corrupt("environment"))
    }
}

/// A lock that a step of another workflow holds.
#[derive(Debug, Clone)]
pub struct HeldLock {
    pub lock: String,
    pub step: String,
    pub workflow_id: WorkflowId,
    pub kind: String,
}

/// The version of the app that an install is at from now on; none: the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin(pub Option<ConfigId>);

/// A workflow that is to be written.
#[derive(Debug, Clone)]
pub struct PlannedWorkflow {
    pub row: WorkflowRow,
    pub steps: Vec<StepRow>,
    pub given: Given,
    /// Inputs that are its reason.
    pub inputs: Option<InstallInputs>,
    /// Components that are switched on or off together with it.
    pub toggles: BTreeMap<String, bool>,
}

/// The same, with what is secret sealed.
#[derive(Debug, Clone)]
pub(crate) struct SealedWorkflow {
    row: WorkflowRow,
    steps: Vec<StepRow>,
    env: Option<Vec<u8>>,
    inputs: Option<SealedInputs>,
    toggles: BTreeMap<String, bool>,
}

/// Whose plans are looked for.
#[derive(Debug, Clone)]
pub enum Target {
    Part(String),
    Components,
}

/// The next state of a workflow.
#[derive(Debug, Clone)]
pub struct WorkflowChange {
    /// As it shall be; `version` and `dirty` as they were read.
    pub row: WorkflowRow,
    /// Steps that are new or have changed.
    pub steps: Vec<StepRow>,
    /// What people shall see of plans.
    pub displays: Vec<(StepId, Json)>,
    pub parts: Vec<(String, Json)>,
    /// The install goes over to this version with it.
    pub pin: Option<Pin>,
    /// When to look again though nothing happens.
    pub due_at: Option<Timestamp>,
    /// Something that others must not do meanwhile was started, and this was the install's count before.
    pub moves: Option<i64>,
    /// Something that others wait for has ended.
    pub freed: bool,
    pub events: Vec<(&'static str, Json)>,
    /// What it tells of drift.
    pub looks: Vec<LookChange>,
    pub actor: String,
    pub now: Timestamp,
}

const DUE: Sql = Sql {
    sqlite: "UPDATE workflows SET due_at = $2 WHERE id IN (SELECT id FROM workflows WHERE due_at <= $1 ORDER BY due_at LIMIT $3) RETURNING org_id, id",
    postgres: "UPDATE workflows SET due_at = $2 WHERE id IN (SELECT id FROM workflows WHERE due_at <= $1 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING org_id, id",
};

const WAKE: &str = "UPDATE workflows SET due_at = $2, dirty = dirty + 1 WHERE install_id = $1 AND status IN ('pending', 'in-progress', 'approval-awaiting')";

fn env_place(workflow: &WorkflowId) -> String {
    format!("workflows|{workflow}|env")
}

fn display_place(step: &StepId) -> String {
    format!("workflow_steps|{step}|display")
}

/// The workflow that a step belongs to must be looked at.
pub(crate) async fn wake_step(tx: &mut Tx<'_>, step: &StepId, now: Timestamp) -> Result<()> {
    let sql = "UPDATE workflows SET due_at = $2, dirty = dirty + 1 WHERE id = (SELECT workflow_id FROM workflow_steps WHERE id = $1)";
    tx.exec_later(sql, params![step, now]).await
}

/// So must all that are open on an install.
pub(crate) async fn wake_install(tx: &mut Tx<'_>, install: &InstallId, now: Timestamp) -> Result<()> {
    tx.exec_later(WAKE, params![install, now]).await
}

/// Writes a workflow that is due at once.
pub(crate) async fn insert_workflow(tx: &mut Tx<'_>, new: &SealedWorkflow) -> Result<()> {
    let SealedWorkflow { row, steps, env, inputs, toggles } = new;
    let now = row.created_at;
    // An install that is being forgotten starts nothing any more.
    let moves = "UPDATE installs SET moves = moves + 1 WHERE id = $1";
    if tx.exec(moves, params![&row.install_id]).await? != 1 {
        return Err(StoreError::NotFound("install"));
    }
    tx.exec_later(
        "INSERT INTO workflows (id, org_id, install_id, type, status, body, created_by, created_at, updated_at, version, dirty, due_at, env) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, 1, 0, $8, $9)",
        params![&row.id, &row.org_id, &row.install_id, &row.kind, &row.status, row.body.to_string(), &row.created_by, now, env.clone()],
    )
    .await?;
    put_steps(tx, row, steps).await?;
    if let Some(inputs) = inputs {
        insert_next_inputs(tx, &row.org_id, inputs).await?;
    }
    if !toggles.is_empty() {
        let switch = |install: &mut Install| {
            install.settings.components.extend(toggles.clone());
            Ok(())
        };
        change_install(tx, &row.org_id, &row.install_id, row.created_by.as_str(), now, &switch).await?;
    }
    let data = json!({ "to": row.status, "type": row.kind, "install_id": row.install_id, "steps": steps.len() });
    let subject = ("workflow", row.id.as_str());
    let actor = row.created_by.as_str();
    record(tx, Note { org: &row.org_id, now, kind: "workflow.status", subject, actor, data }).await
}

async fn put_steps(tx: &mut Tx<'_>, row: &WorkflowRow, steps: &[StepRow]) -> Result<()> {
    for step in steps {
        tx.exec_later(
            "INSERT INTO workflow_steps (id, org_id, install_id, workflow_id, slot, attempt, name, status, locks, body, target) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO UPDATE SET status = excluded.status, locks = excluded.locks, body = excluded.body",
            params![&step.id, &row.org_id, &row.install_id, &row.id, u64::from(step.slot), u64::from(step.attempt), &step.name, &step.status, step.locks.as_ref(), step.body.to_string(), step.target.as_ref()],
        )
        .await?;
    }
    Ok(())
}

impl Reader {
    pub(crate) async fn seal_workflow(&self, planned: PlannedWorkflow) -> Result<SealedWorkflow> {
        let PlannedWorkflow { row, steps, given, inputs, toggles } = planned;
        let env = if given.is_empty() {
            None
        } else {
            Some(self.org_keys(&row.org_id).await?.seal(&env_place(&row.id), json!(given).to_string().as_bytes()))
        };
        let inputs = match inputs {
            Some(inputs) => Some(self.seal_inputs(&row.org_id, inputs).await?),
            None => None,
        };
        Ok(SealedWorkflow { row, steps, env, inputs, toggles })
    }

    /// The workflow that an install began with.
    pub async fn first_workflow(&self, org: &OrgId, install: &InstallId) -> Result<Option<WorkflowId>> {
        self.main()
            .glance((org.clone(), install.clone()), |tx, (org, install)| {
                Box::pin(async move {
                    let sql =
                        "SELECT id FROM workflows WHERE (org_id || '') = $1 AND install_id = $2 ORDER BY id LIMIT 1";
                    tx.get(sql, params![&org, &install]).await?.map(|row| row.get("id")).transpose()
                })
            })
            .await
    }

    /// Whoever advances workflows is to look.
    pub fn wake_workflows(&self, org: &OrgId) {
        self.notifier().wake(topic::workflows());
        self.notifier().wake(topic::org(org));
    }

    /// A runner's held request is answered if there is something to say.
    pub fn wake_runner(&self, runner: &RunnerId) {
        self.notifier().wake(topic::runner(runner));
    }

    pub async fn workflow(&self, org: &OrgId, id: &WorkflowId) -> Result<WorkflowRow> {
        self.main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = select!(WorkflowRow, "WHERE org_id = $1 AND id = $2");
                    WorkflowRow::from_row(
                        &tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("workflow"))?,
                    )
                })
            })
            .await
    }

    /// A workflow with every attempt at its steps, oldest first; as they were at one moment.
    pub async fn workflow_with_steps(&self, org: &OrgId, id: &WorkflowId) -> Result<(WorkflowRow, Vec<StepRow>)> {
        self.main()
            .read((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = select!(WorkflowRow, "WHERE org_id = $1 AND id = $2");
                    let row = tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("workflow"))?;
                    let steps = select!(StepRow, "WHERE workflow_id = $1 ORDER BY slot, attempt");
                    let steps = tx.query(steps, params![&id]).await?;
                    Ok((WorkflowRow::from_row(&row)?, steps.iter().map(StepRow::from_row).collect::<Result<_>>()?))
                })
            })
            .await
    }

    /// Workflows of the org or of one install, newest first.
    pub async fn workflows(
        &self,
        org: &OrgId,
        install: Option<&InstallId>,
        kind: Option<&str>,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<WorkflowRow>> {
        self.main()
            .read((org.clone(), install.cloned(), kind.map(str::to_owned), offset, limit), |tx, (org, install, kind, offset, limit)| { Box::pin(async move {
                    let rows = match install {
                        Some(install) => {
                            let sql = select!(WorkflowRow, "WHERE (org_id || '') = $1 AND install_id = $2 AND (CAST($3 AS TEXT) IS NULL OR type = $3) ORDER BY id DESC LIMIT $4 OFFSET $5");
                            tx.query(sql, params![&org, &install, kind, limit, offset]).await?
                        }
                        None => {
                            let sql = select!(WorkflowRow, "WHERE org_id = $1 AND (CAST($2 AS TEXT) IS NULL OR type = $2) ORDER BY id DESC LIMIT $3 OFFSET $4");
                            tx.query(sql, params![&org, kind, limit, offset]).await?
                        }
                    };
                    rows.iter().map(WorkflowRow::from_row).collect()
                }) })
            .await
    }

    /// The workflow of a step.
    pub async fn workflow_of_step(&self, org: &OrgId, step: &StepId) -> Result<WorkflowId> {
        self.main()
            .glance((org.clone(), step.clone()), |tx, (org, step)| {
                Box::pin(async move {
                    let sql = "SELECT workflow_id FROM workflow_steps WHERE org_id = $1 AND id = $2";
                    tx.get(sql, params![&org, &step]).await?.ok_or(StoreError::NotFound("step"))?.get("workflow_id")
                })
            })
            .await
    }

    /// When the next workflow is due.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.main()
            .glance((), |tx, ()| {
                Box::pin(async move {
                    let row = tx
                        .get("SELECT MIN(due_at) AS first_due_at FROM workflows WHERE due_at IS NOT NULL", params![])
                        .await?;
                    row.map_or(Ok(None), |row| row.get("first_due_at"))
                })
            })
            .await
    }

    /// What other workflows of an install hold, and the install's count of what was set moving.
    pub async fn held_locks(&self, install: &InstallId, except: &WorkflowId) -> Result<(i64, Vec<HeldLock>)> {
        self.main()
            .read((install.clone(), except.clone()), |tx, (install, except)| { Box::pin(async move {
                    let row = tx.get("SELECT moves FROM installs WHERE id = $1", params![&install]).await?;
                    let moves = row.ok_or(StoreError::NotFound("install"))?.get("moves")?;
                    let sql = "SELECT s.locks, s.name, s.workflow_id, w.type FROM workflow_steps s JOIN workflows w ON w.id = s.workflow_id WHERE s.install_id = $1 AND s.locks IS NOT NULL AND s.workflow_id <> $2";
                    let rows = tx.query(sql, params![&install, &except]).await?;
                    let held = rows.iter().map(|row| {
                        Ok(HeldLock { lock: row.get("locks")?, step: row.get("name")?, workflow_id: row.get("workflow_id")?, kind: row.get("type")? })
                    });
                    Ok((moves, held.collect::<Result<_>>()?))
                }) })
            .await
    }

    /// What was given with a workflow.
    pub async fn workflow_given(&self, org: &OrgId, id: &WorkflowId) -> Result<Given> {
        let sealed: Option<Vec<u8>> = self
            .main()
            .glance((org.clone(), id.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "SELECT env FROM workflows WHERE org_id = $1 AND id = $2";
                    tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("workflow"))?.get("env")
                })
            })
            .await?;
        let Some(sealed) = sealed else { return Ok(Given::default()) };
        Given::read(&self.open_sealed(org, &env_place(id), &sealed).await?)
    }

    /// Steps of an install that policies have judged, newest first, each with its workflow.
    pub async fn judged_steps(
        &self,
        org: &OrgId,
        install: &InstallId,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<(WorkflowId, StepId)>> {
        self.main()
            .read((org.clone(), install.clone(), offset, limit), |tx, (org, install, offset, limit)| { Box::pin(async move {
                    let sql = "SELECT workflow_id, id FROM workflow_steps WHERE org_id = $1 AND install_id = $2 AND judged = 1 ORDER BY id DESC LIMIT $3 OFFSET $4";
                    let rows = tx.query(sql, params![&org, &install, limit, offset]).await?;
                    rows.iter().map(|row| Ok((row.get("workflow_id")?, row.get("id")?))).collect()
                }) })
            .await
    }

    /// Plans and syncs of an install, newest first, each with its workflow: of one part of its state, or of all components.
    pub async fn steps_of_target(
        &self,
        org: &OrgId,
        install: &InstallId,
        target: Target,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<(WorkflowId, StepId)>> {
        self.main()
            .read((org.clone(), install.clone(), target, offset, limit), |tx, (org, install, target, offset, limit)| { Box::pin(async move {
                    let rows = match target {
                        Target::Part(part) => {
                            let sql = "SELECT workflow_id, id FROM workflow_steps WHERE org_id = $1 AND install_id = $2 AND target = $3 ORDER BY id DESC LIMIT $4 OFFSET $5";
                            tx.query(sql, params![&org, &install, part, limit, offset]).await?
                        }
                        Target::Components => {
                            let sql = "SELECT workflow_id, id FROM workflow_steps WHERE org_id = $1 AND install_id = $2 AND target <> 'sandbox' ORDER BY id DESC LIMIT $3 OFFSET $4";
                            tx.query(sql, params![&org, &install, limit, offset]).await?
                        }
                    };
                    rows.iter().map(|row| Ok((row.get("workflow_id")?, row.get("id")?))).collect()
                }) })
            .await
    }

    /// What people are shown of a plan.
    pub async fn step_display(&self, org: &OrgId, step: &StepId) -> Result<Option<Json>> {
        let sealed: Option<Vec<u8>> = self
            .main()
            .glance((org.clone(), step.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "SELECT display FROM workflow_steps WHERE org_id = $1 AND id = $2";
                    tx.get(sql, params![&org, &id]).await?.ok_or(StoreError::NotFound("step"))?.get("display")
                })
            })
            .await?;
        let Some(sealed) = sealed else { return Ok(None) };
        let text = self.open_sealed(org, &display_place(step), &sealed).await?;
        serde_json::from_slice(&text).map(Some).map_err(|_| StoreError::corrupt("display"))
    }

    /// The job of a step.
    pub async fn job_of_step(&self, org: &OrgId, step: &StepId) -> Result<Option<crate::Job>> {
        let job: Option<JobId> = self
            .main()
            .glance((org.clone(), step.clone()), |tx, (org, id)| {
                Box::pin(async move {
                    let sql = "SELECT id FROM jobs WHERE org_id = $1 AND step_id = $2";
                    tx.get(sql, params![&org, &id]).await?.map(|row| row.get("id")).transpose()
                })
            })
            .await?;
        match job {
            Some(job) => self.job(org, &job).await.map(Some),
            None => Ok(None),
        }
    }
}

impl Store {
    /// Makes a workflow with its steps, and the inputs that are its reason; it is due at once.
    pub async fn create_workflow(&self, planned: PlannedWorkflow, idem: Option<Idempotency>) -> Result<Created> {
        let org = planned.row.org_id.clone();
        let created = self
            .main()
            .write((self.seal_workflow(planned).await?, idem), |tx, (sealed, idem)| {
                Box::pin(async move {
                    if let Some(found) = idempotent(tx, idem.as_ref()).await? {
                        return Ok(Created { id: found, replayed: true });
                    }
                    insert_workflow(tx, sealed).await?;
                    remember(tx, idem.as_ref(), sealed.row.id.as_str(), sealed.row.created_at).await?;
                    Ok(Created { id: sealed.row.id.to_string(), replayed: false })
                })
            })
            .await?;
        self.wake_workflows(&org);
        Ok(created)
    }

    /// Takes workflows that are due; until `retry_at` nobody else looks at them, unless something happens.
    pub async fn due_workflows(
        &self,
        now: Timestamp,
        retry_at: Timestamp,
        limit: u64,
    ) -> Result<Vec<(OrgId, WorkflowId)>> {
        let due = self
            .main()
            .read(now, |tx, now| {
                Box::pin(async move {
                    let sql = "SELECT 1 FROM workflows WHERE due_at <= $1 LIMIT 1";
                    Ok(tx.get(sql, params![now]).await?.is_some())
                })
            })
            .await?;
        if !due {
            return Ok(Vec::new());
        }
        self.main()
            .write((now, retry_at, limit), |tx, (now, retry_at, limit)| {
                Box::pin(async move {
                    let rows = tx.query(DUE, params![now, retry_at, limit]).await?;
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("id")?))).collect()
                })
            })
            .await
    }

    /// After a clock was set: whatever was to be looked at some time is looked at now.
    pub async fn all_workflows_due(&self, now: Timestamp) -> Result<()> {
        self.main()
            .write(now, |tx, now| {
                Box::pin(async move {
                    let sql = "UPDATE workflows SET due_at = $1 WHERE due_at IS NOT NULL AND due_at > $1";
                    tx.exec(sql, params![now]).await.map(|_| ())
                })
            })
            .await
    }

    /// Writes the next state of a workflow, if nobody else has. False: read it again.
    pub async fn change_workflow(&self, change: WorkflowChange) -> Result<bool> {
        let keys = self.org_keys(&change.row.org_id).await?;
        let sealed =
            change.parts.iter().map(|(part, value)| SealedPart::new(&keys, &change.row.install_id, part, value));
        let sealed = sealed.collect::<Vec<_>>();
        let displays = change.displays.iter().map(|(step, display)| {
            let sealed = keys.seal(&display_place(step), display.to_string().as_bytes());
            (step.clone(), sealed, u64::from(display.get("policies").is_some()))
        });
        let displays = displays.collect::<Vec<_>>();
        let org = change.row.org_id.clone();
        let written = self
            .main()
            .write((change, sealed, displays), |tx, (change, sealed, displays)| {
                Box::pin(write_change(tx, change, sealed, displays))
            })
            .await?;
        if written {
            self.wake_workflows(&org);
        }
        Ok(written)
    }
}

async fn write_change(
    tx: &mut Tx<'_>,
    change: &WorkflowChange,
    sealed: &[SealedPart],
    displays: &[(StepId, Vec<u8>, u64)],
) -> Result<bool> {
    let WorkflowChange { row, steps, pin, due_at, moves, freed, events, looks, actor, now, .. } = change;
    // Of two replicas that start something in the same install, one finds another count.
    if let Some(moves) = moves {
        let sql = "UPDATE installs SET moves = moves + 1 WHERE id = $1 AND moves = $2";
        if tx.exec(sql, params![&row.install_id, moves]).await? != 1 {
            return Ok(false);
        }
    }
    // What happened meanwhile makes it due at once.
    let changed = tx
        .exec(
            "UPDATE workflows SET status = $3, body = $4, updated_at = $5, started_at = $6, finished_at = $7, version = version + 1, due_at = CASE WHEN dirty = $8 THEN CAST($9 AS BIGINT) ELSE CAST($5 AS BIGINT) END WHERE id = $1 AND version = $2",
            params![&row.id, row.version, &row.status, row.body.to_string(), now, row.started_at, row.finished_at, row.dirty, due_at],
        )
        .await?;
    if changed != 1 {
        return Ok(false);
    }
    put_steps(tx, row, steps).await?;
    for (step, display, judged) in displays {
        let sql = "UPDATE workflow_steps SET display = $2, judged = $3 WHERE id = $1";
        tx.exec_later(sql, params![&step, display, judged]).await?;
    }
    insert_parts(tx, &row.org_id, &row.install_id, sealed, Some(&row.id), *now).await?;
    if let Some(Pin(config)) = pin {
        let sql = "UPDATE installs SET config_id = $2, updated_at = $3, schedules_wanted = schedules_wanted + 1, summary_wanted = summary_wanted + 1 WHERE id = $1";
        tx.exec_later(sql, params![&row.install_id, config, now]).await?;
    }
    if !looks.is_empty() {
        looks::apply(tx, row, looks).await?;
        summaries::outdate(tx, &row.install_id).await?;
    }
    if *freed {
        let sql = "UPDATE workflows SET due_at = $2, dirty = dirty + 1 WHERE install_id = $1 AND id <> $3 AND status IN ('pending', 'in-progress', 'approval-awaiting')";
        tx.exec_later(sql, params![&row.install_id, now, &row.id]).await?;
    }
    for (kind, data) in events {
        let subject = ("workflow", row.id.as_str());
        record(tx, Note { org: &row.org_id, now: *now, kind, subject, actor, data: data.clone() }).await?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::Given;

    #[test]
    fn what_was_given_before_is_read_too() {
        let given = Given::read(br#"{"A":"1"}"#).expect("an environment");
        assert_eq!(given.env_vars["A"], "1");
        let text = serde_json::to_vec(&given).expect("json");
        assert_eq!(Given::read(&text).expect("the new form"), given);
        assert!(Given::read(b"1").is_err());
    }
}
