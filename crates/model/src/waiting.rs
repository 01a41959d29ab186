//! Why a job waits: one function, so that CLI, API and dashboard say the same.

use std::time::Duration;

use crate::constants::QUEUE_COUNTED;
use crate::runner::{RunnerReport, RunnerSettings};
use crate::{JobGroup, JobId, Timestamp};

/// Whether a runner can be reached, as seen by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It never joined.
    Never,
    Online,
    /// Its connection closed a moment ago.
    Disconnected(Timestamp),
    Offline(Timestamp),
}

impl Presence {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "pending",
            Self::Online => "active",
            Self::Disconnected(_) | Self::Offline(_) => "offline",
        }
    }
}

/// When a runner was last heard of, and when its connection last closed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sightings {
    pub seen_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
}

impl Sightings {
    /// `server_since`: a server calls nobody offline in its first `silent_s`.
    pub fn presence(self, now: Timestamp, server_since: Timestamp, closed_s: u64, silent_s: u64) -> Presence {
        let Some(seen) = self.seen_at else { return Presence::Never };
        if let Some(closed) = self.closed_at.filter(|c| *c >= seen) {
            return if now.since(closed) >= Duration::from_secs(closed_s) {
                Presence::Offline(closed)
            } else {
                Presence::Disconnected(closed)
            };
        }
        let silent = Duration::from_secs(silent_s);
        if now.since(seen) >= silent && now.since(server_since) >= silent {
            Presence::Offline(seen)
        } else {
            Presence::Online
        }
    }
}

/// Everything that can hold a queued job back.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub now: Timestamp,
    pub group: JobGroup,
    pub presence: Presence,
    pub revoked: bool,
    pub drain_asked: bool,
    pub settings: &'a RunnerSettings,
    pub report: Option<&'a RunnerReport>,
    /// Another job holds this job's target.
    pub target_held_by: Option<(&'a JobId, &'a str)>,
    /// Jobs before this one in its group's queue.
    pub ahead: u64,
}

/// Says exactly why the job waits.
pub fn reason(s: &Situation<'_>) -> String {
    if s.revoked {
        return "the runner's credentials are revoked; make a new join command with `ferry runners join-command`"
            .into();
    }
    match s.presence {
        Presence::Never => {
            return "no runner yet: start one with the command that `ferry runners join-command` prints".into();
        }
        Presence::Offline(since) => return format!("runner offline since {since}"),
        Presence::Disconnected(since) => return format!("runner disconnected at {since}; waiting for it to come back"),
        Presence::Online => {}
    }
    if s.drain_asked {
        return "the runner is draining by request; `ferry runners resume` lets it take jobs again".into();
    }
    if let Some(report) = s.report {
        if let Some(since) = report.disabled_since {
            return format!("disabled by the customer since {since} (`ferry-runner enable` switches it on again)");
        }
        if report.draining {
            return "the runner is shutting down and takes no more jobs".into();
        }
        if report.disk_free_bytes < report.disk_floor_bytes {
            return format!(
                "too little disk on the runner: {} MiB free, {} MiB needed",
                report.disk_free_bytes >> 20,
                report.disk_floor_bytes >> 20
            );
        }
    }
    if let Some((job, target)) = s.target_held_by {
        return format!("`{target}` is held by job {job}");
    }
    let slots = s.settings.groups.get(&s.group).copied().unwrap_or(0);
    if slots == 0 {
        return format!("this runner takes no jobs of group {}", s.group);
    }
    let busy = s.report.and_then(|r| r.busy.get(&s.group)).filter(|b| !b.is_empty());
    match busy {
        Some(busy) if busy.len() as u64 >= u64::from(slots) => {
            format!("group {} is busy with job {} ({} of {slots} slots taken)", s.group, busy[0], busy.len())
        }
        Some(_) | None if s.ahead >= QUEUE_COUNTED => {
            format!("{QUEUE_COUNTED} or more jobs of group {} are ahead of it", s.group)
        }
        Some(_) | None if s.ahead > 0 => format!("{} jobs of group {} are ahead of it", s.ahead, s.group),
        Some(_) | None => "about to be taken by the runner".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::runner::RunnerKind;

    #[test]
    fn every_reason_has_its_sentence() {
        let settings = RunnerSettings::defaults(RunnerKind::Install);
        let t = Timestamp::from_micros(1_800_000_000_000_000);
        let job = JobId::new(t, 1);
        let base = Situation {
            now: t,
            group: JobGroup::Actions,
            presence: Presence::Online,
            revoked: false,
            drain_asked: false,
            settings: &settings,
            report: None,
            target_held_by: None,
            ahead: 0,
        };
        let report = RunnerReport { disk_free_bytes: 1 << 30, ..RunnerReport::default() };
        let disabled = RunnerReport { disabled_since: Some(t), ..report.clone() };
        let leaving = RunnerReport { draining: true, ..report.clone() };
        let full = RunnerReport { disk_free_bytes: 1, disk_floor_bytes: 1 << 20, ..report.clone() };
        let busy = RunnerReport { busy: BTreeMap::from([(JobGroup::Actions, vec![job.clone(); 4])]), ..report };
        let cases = [
            (Situation { presence: Presence::Never, ..base.clone() }, "no runner yet"),
            (Situation { presence: Presence::Offline(t), ..base.clone() }, "offline since 2027"),
            (Situation { presence: Presence::Disconnected(t), ..base.clone() }, "disconnected at"),
            (Situation { revoked: true, ..base.clone() }, "revoked"),
            (Situation { drain_asked: true, ..base.clone() }, "draining by request"),
            (Situation { report: Some(&disabled), ..base.clone() }, "disabled by the customer since"),
            (Situation { report: Some(&leaving), ..base.clone() }, "shutting down"),
            (Situation { report: Some(&full), ..base.clone() }, "too little disk"),
            (Situation { target_held_by: Some((&job, "db")), ..base.clone() }, "`db` is held by job"),
            (Situation { report: Some(&busy), ..base.clone() }, "busy with job"),
            (Situation { group: JobGroup::Build, ..base.clone() }, "takes no jobs of group build"),
            (Situation { ahead: 2, ..base.clone() }, "2 jobs of group"),
            (Situation { ahead: 100, ..base.clone() }, "100 or more jobs of group"),
            (base, "about to be taken"),
        ];
        for (situation, part) in cases {
            let text = reason(&situation);
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn presence_follows_the_constants() {
        let t = Timestamp::from_micros(1_800_000_000_000_000);
        let old_server = t.plus_s(-1000);
        let seen = |s: i64| Sightings { seen_at: Some(t.plus_s(-s)), closed_at: None };
        assert_eq!(Sightings::default().presence(t, old_server, 10, 40), Presence::Never);
        assert_eq!(seen(39).presence(t, old_server, 10, 40), Presence::Online);
        assert_eq!(seen(40).presence(t, old_server, 10, 40), Presence::Offline(t.plus_s(-40)));
        assert_eq!(seen(400).presence(t, t.plus_s(-39), 10, 40), Presence::Online, "a young server");
        let closed = Sightings { seen_at: Some(t.plus_s(-20)), closed_at: Some(t.plus_s(-9)) };
        assert_eq!(closed.presence(t, old_server, 10, 40), Presence::Disconnected(t.plus_s(-9)));
        let gone = Sightings { seen_at: Some(t.plus_s(-20)), closed_at: Some(t.plus_s(-10)) };
        assert_eq!(gone.presence(t, old_server, 10, 40), Presence::Offline(t.plus_s(-10)));
    }
}
