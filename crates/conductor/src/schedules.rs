//! What installs do by the clock: actions with a `cron` trigger, and looks for drift.
//!
//! Which schedules an install has follows from its config and is written down, so that a look at the clock reads only what is due. A
//! tick that nobody took in time, because no server was there, is taken once when one is back, however many there were.

use engine::WorkflowKind;
use model::{Digest, Timestamp};
use store::{Idempotency, Install, Schedule, StoreError};

use crate::error::Result;
use crate::reconcile::go_on;
use crate::{Conductor, Document, NewWorkflow};

const BATCH: u64 = 64;
/// All installs have the same schedule: each takes a tick a little later, always by as much, so that they do not start together.
const SPREAD_S: u64 = 60;
/// A tick that is not taken at once is spread over no more than this part of the time to the next one.
const SPREAD_PART: u64 = 10;

/// Renews the logins with which pods pull images from the control plane's registry, long before they end.
const PULLS: &str = "pulls";
const PULLS_CRON: &str = "23 */6 * * *";

/// How much later than others an install takes a tick.
fn spread_ms(schedule: (&str, &str, &str), tick: Timestamp, next: Option<Timestamp>) -> i64 {
    let (install, kind, name) = schedule;
    let period_s = next.map_or(SPREAD_S, |next| next.since(tick).as_secs());
    let most_ms = SPREAD_S.min(period_s / SPREAD_PART) * 1000;
    let digest = Digest::of(format!("{install}|{kind}|{name}").as_bytes());
    let number = digest.hex().get(..8).and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or_default();
    (number % (most_ms + 1)) as i64
}

/// The schedule with its first tick after a moment.
fn next(schedule: Schedule, after: Timestamp) -> Option<Schedule> {
    let tick_at = config::next_tick(&schedule.cron, after)?;
    let then = config::next_tick(&schedule.cron, tick_at);
    let spread = spread_ms((schedule.install_id.as_str(), &schedule.kind, &schedule.name), tick_at, then);
    Some(Schedule { tick_at, due_at: tick_at.plus_ms(spread), ..schedule })
}

/// What an install does by the clock, by what its config says.
fn wanted(install: &Install, document: &Document, now: Timestamp) -> Vec<Schedule> {
    let config = &document.config;
    let mut found: Vec<(&str, &str, &str)> = Vec::new();
    for action in &config.actions {
        let crons = action.triggers.iter().filter(|trigger| trigger.r#type == "cron");
        found.extend(
            crons.filter_map(|trigger| Some(("action", action.name.as_str(), trigger.cron_schedule.as_deref()?))),
        );
    }
    let sandbox = config.sandbox.as_ref().and_then(|sandbox| sandbox.drift_schedule.as_deref());
    found.extend(sandbox.map(|cron| ("drift", "", cron)));
    for component in &config.components {
        let drift = component.kind.drift_schedule();
        found.extend(drift.map(|cron| ("drift", component.common.name.as_str(), cron)));
    }
    if config.components.iter().any(|component| component.kind.is_image()) {
        found.push((PULLS, "", PULLS_CRON));
    }
    found.sort_unstable();
    found.dedup();
    let new = |(kind, name, cron): (&str, &str, &str)| Schedule {
        org_id: install.org_id.clone(),
        install_id: install.id.clone(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        cron: cron.to_owned(),
        tick_at: now,
        due_at: now,
        last_at: None,
        note: String::new(),
        workflow_id: None,
    };
    found.into_iter().filter_map(|found| next(new(found), now)).collect()
}

/// How many ticks have passed, up to a bound.
fn passed(schedule: &Schedule, now: Timestamp) -> usize {
    const COUNTED: usize = 1000;
    let mut at = schedule.tick_at;
    for count in 1..COUNTED {
        match config::next_tick(&schedule.cron, at) {
            Some(tick) if tick <= now => at = tick,
            _ => return count,
        }
    }
    COUNTED
}

impl Conductor {
    /// Brings schedules up to date with configs, and takes the ticks that are due.
    pub async fn reconcile_schedules(&self) -> Result<()> {
        // What fails stays behind and is passed by: it must keep nobody else waiting.
        let mut failed = 0;
        loop {
            let behind = self.store.unscheduled(failed, BATCH).await?;
            for (org, install, seen) in &behind {
                failed += u64::from(!go_on("schedules", self.schedule(org, install.as_str(), *seen).await));
            }
            if behind.len() < BATCH as usize {
                break;
            }
        }
        let (now, mut failed) = (self.now(), 0);
        loop {
            let due = self.store.due_schedules(now, failed, BATCH).await?;
            let full = due.len() == BATCH as usize;
            for schedule in due {
                failed += u64::from(!go_on("tick", self.tick(schedule).await));
            }
            if !full {
                return Ok(());
            }
        }
    }

    async fn schedule(&self, org: &model::OrgId, install: &str, seen: u64) -> Result<()> {
        let install = self.store.install(org, install).await?;
        let document = self.document_of(&install).await?;
        let wanted = document.map(|document| wanted(&install, &document, self.now())).unwrap_or_default();
        Ok(self.store.put_schedules(&install, seen, wanted).await?)
    }

    /// Takes one tick: starts what it stands for, under the tick's own key, and moves the schedule on.
    async fn tick(&self, schedule: Schedule) -> Result<()> {
        let now = self.now();
        let install = self.store.install(&schedule.org_id, schedule.install_id.as_str()).await?;
        let (note, workflow_id) = match self.skips(&install, &schedule).await? {
            Some(reason) => (format!("skipped: {reason}"), schedule.workflow_id.clone()),
            None => match self.start_tick(&install, &schedule).await {
                Ok((id, note)) => (note, id),
                // What can't be planned will not be planned by trying again.
                Err(error) if error.is_refusal() => (format!("not started: {error}"), None),
                Err(error) => return Err(error),
            },
        };
        let missed = passed(&schedule, now) - 1;
        let note = match (missed, note.as_str()) {
            (0, _) => note,
            (missed, "") => format!("{missed} more ticks had passed while no server looked"),
            (missed, note) => format!("{note}; {missed} more ticks had passed"),
        };
        let taken = Schedule { last_at: Some(schedule.tick_at), note, workflow_id, ..schedule.clone() };
        // A schedule without another tick stays where no clock comes to.
        let never = Timestamp::from_micros(i64::MAX);
        let moved = next(taken.clone(), now).unwrap_or(Schedule { tick_at: never, due_at: never, ..taken });
        self.store.take_tick(&schedule, moved).await?;
        Ok(())
    }

    /// Why a tick is let pass.
    async fn skips(&self, install: &Install, schedule: &Schedule) -> Result<Option<String>> {
        if let Some(before) = &schedule.workflow_id {
            match self.store.workflow(&install.org_id, before).await {
                Ok(row) if row.finished_at.is_none() => {
                    return Ok(Some(format!("workflow {before}, started by the tick before, is not over")));
                }
                Ok(_) | Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if schedule.kind == "drift" {
            let part =
                if schedule.name.is_empty() { "sandbox".to_owned() } else { format!("components/{}", schedule.name) };
            let state = self.store.install_part(&install.org_id, &install.id, &part).await?;
            if state.is_none_or(|state| state["status"] != "active") {
                return Ok(Some("it is not deployed".into()));
            }
        } else if !self.store.org(&install.org_id).await?.sandbox_mode {
            let runner = self.store.runner(&install.org_id, install.runner_id.as_str()).await?;
            if runner.generation == 0 {
                return Ok(Some("the runner has never joined".into()));
            }
        }
        Ok(None)
    }

    /// The workflow that a tick starts; what renews pulls is a job alone.
    async fn start_tick(&self, install: &Install, schedule: &Schedule) -> Result<(Option<model::WorkflowId>, String)> {
        let Schedule { install_id, kind: what, name, cron, tick_at, .. } = schedule;
        let key = format!("tick|{install_id}|{what}|{name}|{cron}|{}", tick_at.micros());
        let actor = install.created_by.clone();
        let idem = Idempotency { scope: actor.clone(), request_digest: Digest::of(key.as_bytes()), key };
        if what == PULLS {
            let jobs = self.renew_pulls(install, &idem).await?;
            let note = jobs.iter().map(|job| format!("job {job}")).collect::<Vec<_>>().join(", ");
            return Ok((None, note));
        }
        let kind = match (schedule.kind.as_str(), schedule.name.as_str()) {
            ("action", name) => WorkflowKind::ActionWorkflowRun { action: name.to_owned(), trigger: "cron".to_owned() },
            (_, "") => WorkflowKind::DriftRunReprovisionSandbox,
            (_, component) => WorkflowKind::DriftRun { component: component.to_owned() },
        };
        self.start_workflow(install, NewWorkflow::new(kind), &actor, Some(idem))
            .await
            .map(|id| (Some(id), String::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        serde_json::from_value(serde_json::json!(text)).expect("a time")
    }

    #[test]
    fn a_spread_is_the_same_each_time_and_bounded() {
        let (tick, hour) = (at("2026-11-16T10:00:00Z"), at("2026-11-16T11:00:00Z"));
        let of = |install: &str| spread_ms((install, "drift", "db"), tick, Some(hour));
        assert_eq!(of("a"), of("a"));
        assert!((0..1000).all(|n| (0..=60_000).contains(&of(&n.to_string()))));
        let minute = at("2026-11-16T10:01:00Z");
        assert!((0..1000).all(|n| spread_ms((&n.to_string(), "drift", ""), tick, Some(minute)) <= 6_000));
    }

    #[test]
    fn ticks_are_of_utc() {
        assert_eq!(config::next_tick("0 3 * * *", at("2026-11-16T03:00:00Z")), Some(at("2026-11-17T03:00:00Z")));
        assert_eq!(config::next_tick("30 2 29 2 *", at("2026-11-16T03:00:00Z")), Some(at("2028-02-29T02:30:00Z")));
        assert_eq!(config::next_tick("no", at("2026-11-16T03:00:00Z")), None);
    }
}
