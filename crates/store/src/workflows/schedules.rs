//! What installs do by the clock. A tick is taken by whoever moves its row on; what the tick starts has a key of the tick, so
//! that it is started once, whoever dies in between.

use model::{InstallId, OrgId, Timestamp, WorkflowId};

use crate::db::{Table, params, select, table};
use crate::{Install, Reader, Result, Store};

table! {
    /// Something that an install does by the clock.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Schedule from "schedules" {
        pub org_id: OrgId,
        pub install_id: InstallId,
        /// `action` or `drift`.
        pub kind: String,
        /// Of the action or the component; empty: the sandbox.
        pub name: String,
        pub cron: String,
        /// The tick that is next.
        pub tick_at: Timestamp,
        /// When this install takes it.
        pub due_at: Timestamp,
        pub last_at: Option<Timestamp>,
        /// What became of the last tick.
        pub note: String,
        pub workflow_id: Option<WorkflowId>,
    }
}

impl Reader {
    /// Installs whose schedules do not follow from their config any more, each with the count that was seen.
    pub async fn unscheduled(&self, offset: u64, limit: u64) -> Result<Vec<(OrgId, InstallId, u64)>> {
        self.main()
            .read((offset, limit), |tx, (offset, limit)| { Box::pin(async move {
                    let sql = "SELECT org_id, id, schedules_wanted FROM installs WHERE schedules_wanted > schedules_made ORDER BY id LIMIT $1 OFFSET $2";
                    let rows = tx.query(sql, params![limit, offset]).await?;
                    rows.iter().map(|row| Ok((row.get("org_id")?, row.get("id")?, row.get("schedules_wanted")?))).collect()
                }) })
            .await
    }

    /// Ticks whose time has come.
    pub async fn due_schedules(&self, now: Timestamp, offset: u64, limit: u64) -> Result<Vec<Schedule>> {
        self.main()
            .read((now, offset, limit), |tx, (now, offset, limit)| {
                Box::pin(async move {
                    let sql = select!(
                        Schedule,
                        "WHERE due_at <= $1 ORDER BY due_at, install_id, kind, name, cron LIMIT $2 OFFSET $3"
                    );
                    tx.query(sql, params![now, limit, offset]).await?.iter().map(Schedule::from_row).collect()
                })
            })
            .await
    }

    /// What an install does by the clock.
    pub async fn schedules(&self, org: &OrgId, install: &InstallId) -> Result<Vec<Schedule>> {
        self.main()
            .read((org.clone(), install.clone()), |tx, (org, install)| {
                Box::pin(async move {
                    let sql = select!(Schedule, "WHERE org_id = $1 AND install_id = $2 ORDER BY kind, name, cron");
                    tx.query(sql, params![&org, &install]).await?.iter().map(Schedule::from_row).collect()
                })
            })
            .await
    }
}

impl Store {
    /// Writes what an install does by the clock: what is new is added, what is gone is removed, what stays keeps its next tick.
    pub async fn put_schedules(&self, install: &Install, seen: u64, wanted: Vec<Schedule>) -> Result<()> {
        self.main()
            .write((install.id.clone(), wanted, seen), |tx, (id, wanted, seen)| { Box::pin(async move {
                    // Who looked at an older config, or at an install that is gone, has nothing to say.
                    let made = "UPDATE installs SET schedules_made = $2 WHERE id = $1 AND schedules_made < $2";
                    if tx.exec(made, params![&id, seen]).await? != 1 {
                        return Ok(());
                    }
                    let sql = select!(Schedule, "WHERE install_id = $1");
                    let known: Vec<Schedule> =
                        tx.query(sql, params![&id]).await?.iter().map(Schedule::from_row).collect::<Result<_>>()?;
                    let same = |a: &Schedule, b: &Schedule| a.kind == b.kind && a.name == b.name && a.cron == b.cron;
                    for gone in known.iter().filter(|known| !wanted.iter().any(|wanted| same(known, wanted))) {
                        let sql = "DELETE FROM schedules WHERE install_id = $1 AND kind = $2 AND name = $3 AND cron = $4";
                        tx.exec_later(sql, params![&id, &gone.kind, &gone.name, &gone.cron]).await?;
                    }
                    for new in wanted.iter().filter(|wanted| !known.iter().any(|known| same(known, wanted))) {
                        let sql = "INSERT INTO schedules (install_id, kind, name, cron, org_id, tick_at, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7)";
                        let params = params![&id, &new.kind, &new.name, &new.cron, &new.org_id, new.tick_at, new.due_at];
                        tx.exec_later(sql, params).await?;
                    }
                    Ok(())
                }) })
            .await
    }

    /// Moves a schedule on from the tick that was taken. False: somebody else has.
    pub async fn take_tick(&self, taken: &Schedule, next: Schedule) -> Result<bool> {
        let tick = taken.tick_at;
        self.main()
            .write((next, tick), |tx, (next, tick)| { Box::pin(async move {
                    let sql = "UPDATE schedules SET tick_at = $6, due_at = $7, last_at = $8, note = $9, workflow_id = $10 WHERE install_id = $1 AND kind = $2 AND name = $3 AND cron = $4 AND tick_at = $5";
                    let params = params![&next.install_id, &next.kind, &next.name, &next.cron, tick, next.tick_at, next.due_at, next.last_at, &next.note, next.workflow_id.as_ref()];
                    Ok(tx.exec(sql, params).await? == 1)
                }) })
            .await
    }
}
