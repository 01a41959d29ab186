//! Owns the event log and the wake-ups between processes.
//! Every room records events; subscribers wait for topics.
//! No truth: a lost wake-up costs latency only.
//!
//! Events: append-only, one row for every change that someone may want to see; the audit log and the source of live streams.

pub(crate) mod notify;

use model::{InstallId, OrgId, Timestamp};
use serde_json::Value as Json;

use crate::db::{Db, Row, Sql, Tx, params};
use crate::{Reader, Refused, Result, Store, StoreError};

#[derive(Debug, Clone)]
pub struct Event {
    pub cursor: EventCursor,
    pub time: Timestamp,
    pub kind: String,
    pub subject_type: String,
    pub subject_id: String,
    pub actor: String,
    pub data: Json,
}

/// A place in an org's events. On PostgreSQL ids are given out before the commit, so the transaction's number comes first,
/// and events of transactions that could still be overtaken are not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EventCursor {
    pub xid: i64,
    pub id: i64,
}

impl std::fmt::Display for EventCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.xid, self.id)
    }
}

impl std::str::FromStr for EventCursor {
    type Err = StoreError;
    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.split_once('-').and_then(|(x, i)| Some(Self { xid: x.parse().ok()?, id: i.parse().ok()? }));
        parsed.ok_or_else(|| Refused::EventId(text.to_owned()).into())
    }
}

/// Which events are wanted: all, those of one kind (`job.state`), or of a family of kinds (`job`, `job.*`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindFilter(Option<String>);

impl KindFilter {
    pub fn parse(text: &str) -> Result<Self> {
        let family = text.trim_end_matches('*').trim_end_matches('.');
        if family.is_empty() {
            return Ok(Self::default());
        }
        let good = |c: char| c.is_ascii_lowercase() || c == '-' || c == '.';
        if family.len() > 64 || !family.chars().all(good) {
            return Err(Refused::EventKind(text.to_owned()).into());
        }
        Ok(Self(Some(family.to_owned())))
    }
}

const INSERT: Sql = Sql {
    sqlite: "INSERT INTO events (xid, org_id, time, kind, subject_type, subject_id, actor, data) VALUES (0, $1, $2, $3, $4, $5, $6, $7)",
    postgres: "INSERT INTO events (xid, org_id, time, kind, subject_type, subject_id, actor, data) VALUES (pg_current_xact_id()::text::bigint, $1, $2, $3, $4, $5, $6, $7)",
};

const AFTER: Sql = Sql {
    sqlite: "SELECT xid, id, time, kind, subject_type, subject_id, actor, data FROM events WHERE org_id = $1 AND (xid, id) > ($2, $3) AND (CAST($5 AS TEXT) IS NULL OR kind = $5 OR kind LIKE $6) ORDER BY xid, id LIMIT $4",
    postgres: "SELECT xid, id, time, kind, subject_type, subject_id, actor, data FROM events WHERE org_id = $1 AND (xid, id) > (CASE WHEN $2 >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint THEN 0 ELSE $2 END, $3) AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND (CAST($5 AS TEXT) IS NULL OR kind = $5 OR kind LIKE $6) ORDER BY xid, id LIMIT $4",
};

const LATEST: Sql = Sql {
    sqlite: "SELECT xid, id, time, kind, subject_type, subject_id, actor, data FROM events WHERE org_id = $1 AND (CAST($3 AS BIGINT) IS NULL OR (xid, id) < ($3, $4)) AND (CAST($5 AS TEXT) IS NULL OR kind = $5 OR kind LIKE $6) ORDER BY xid DESC, id DESC LIMIT $2",
    postgres: "SELECT xid, id, time, kind, subject_type, subject_id, actor, data FROM events WHERE org_id = $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND (CAST($3 AS BIGINT) IS NULL OR (xid, id) < ($3, $4)) AND (CAST($5 AS TEXT) IS NULL OR kind = $5 OR kind LIKE $6) ORDER BY xid DESC, id DESC LIMIT $2",
};

/// Which events of an audit are wanted.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    pub kind: KindFilter,
    /// About the install, or something in it.
    pub install: Option<InstallId>,
    pub actor: Option<String>,
    /// Part of the event's document, its kind or its subject, in any case.
    pub text: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub before: Option<EventCursor>,
}

const FILTERED: Sql = Sql {
    sqlite: "SELECT xid, id, time, kind, subject_type, subject_id, actor, data FROM events WHERE org_id = $1 AND (CAST($3 AS BIGINT) IS NULL OR (xid, id) < ($3, $4)) AND (CAST($5 AS TEXT) IS NULL OR kind = $5 OR kind LIKE $6) AND (CAST($7 AS TEXT) IS NULL OR subject_id = $7 OR data LIKE $8) AND (CAST($9 AS TEXT) IS NULL OR actor = $9) AND (CAST($10 AS TEXT) IS NULL OR LOWER(data) LIKE $10 ESCAPE '!' OR kind LIKE $10 ESCAPE '!' OR subject_id LIKE $10 ESCAPE '!') AND (CAST($11 AS BIGINT) IS NULL OR time >= $11) AND (CAST($12 AS BIGINT) IS NULL OR time <= $12) ORDER BY xid DESC, id DESC LIMIT $2",
    postgres: "SELECT xid, id, time, kind, subject_type, subject_id, actor, data FROM events WHERE org_id = $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND (CAST($3 AS BIGINT) IS NULL OR (xid, id) < ($3, $4)) AND (CAST($5 AS TEXT) IS NULL OR kind = $5 OR kind LIKE $6) AND (CAST($7 AS TEXT) IS NULL OR subject_id = $7 OR data LIKE $8) AND (CAST($9 AS TEXT) IS NULL OR actor = $9) AND (CAST($10 AS TEXT) IS NULL OR LOWER(data) LIKE $10 ESCAPE '!' OR kind LIKE $10 ESCAPE '!' OR subject_id LIKE $10 ESCAPE '!') AND (CAST($11 AS BIGINT) IS NULL OR time >= $11) AND (CAST($12 AS BIGINT) IS NULL OR time <= $12) ORDER BY xid DESC, id DESC LIMIT $2",
};

const LAST: Sql = Sql {
    sqlite: "SELECT xid, id FROM events WHERE org_id = $1 ORDER BY xid DESC, id DESC LIMIT 1",
    postgres: "SELECT xid, id FROM events WHERE org_id = $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY xid DESC, id DESC LIMIT 1",
};

/// A database that was restored into another cluster counts its transactions anew: what was written before comes first, and
/// so do the cursors of that time.
const OLD_CLUSTER: Sql = Sql {
    sqlite: "SELECT 1 WHERE FALSE",
    postgres: "SELECT 1 FROM (SELECT xid FROM events ORDER BY id DESC LIMIT 1) e WHERE e.xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
};

pub(crate) async fn adopt(db: &Db) -> Result<()> {
    db.write((), |tx, ()| {
        Box::pin(async move {
            if tx.get(OLD_CLUSTER, vec![]).await?.is_some() {
                tx.exec("UPDATE events SET xid = 0", vec![]).await?;
            }
            Ok(())
        })
    })
    .await
}

/// What an event says, without its place.
pub(crate) struct Note<'a> {
    pub(crate) org: &'a OrgId,
    pub(crate) now: Timestamp,
    pub(crate) kind: &'a str,
    pub(crate) subject: (&'a str, &'a str),
    pub(crate) actor: &'a str,
    pub(crate) data: Json,
}

pub(crate) async fn record(tx: &mut Tx<'_>, note: Note<'_>) -> Result<()> {
    let Note { org, now, kind, subject, actor, data } = note;
    tx.exec_later(INSERT, params![org, now, kind, subject.0, subject.1, actor, data.to_string()]).await
}

fn from_row(row: &Row) -> Result<Event> {
    Ok(Event {
        cursor: EventCursor { xid: row.get("xid")?, id: row.get("id")? },
        time: row.get("time")?,
        kind: row.get("kind")?,
        subject_type: row.get("subject_type")?,
        subject_id: row.get("subject_id")?,
        actor: row.get("actor")?,
        data: row.get("data")?,
    })
}

impl Reader {
    pub async fn events_after(
        &self,
        org: &OrgId,
        after: EventCursor,
        kind: &KindFilter,
        limit: u64,
    ) -> Result<Vec<Event>> {
        self.main()
            .read((org.clone(), kind.clone(), after, limit), |tx, (org, KindFilter(kind), after, limit)| {
                Box::pin(async move {
                    let family = kind.as_ref().map(|kind| format!("{kind}.%"));
                    let rows = tx.query(AFTER, params![&org, after.xid, after.id, limit, kind, family]).await?;
                    rows.iter().map(from_row).collect()
                })
            })
            .await
    }

    /// The latest events, or the latest before one that is known; oldest first.
    pub async fn latest_events(
        &self,
        org: &OrgId,
        before: Option<EventCursor>,
        kind: &KindFilter,
        limit: u64,
    ) -> Result<Vec<Event>> {
        self.main()
            .read((org.clone(), kind.clone(), before, limit), |tx, (org, KindFilter(kind), before, limit)| {
                Box::pin(async move {
                    let family = kind.as_ref().map(|kind| format!("{kind}.%"));
                    let (xid, id) = (before.map(|before| before.xid), before.map(|before| before.id));
                    let rows = tx.query(LATEST, params![&org, limit, xid, id, kind, family]).await?;
                    rows.iter().rev().map(from_row).collect()
                })
            })
            .await
    }

    /// Events that a filter takes, newest first.
    pub async fn filtered_events(&self, org: &OrgId, filter: EventFilter, limit: u64) -> Result<Vec<Event>> {
        let of_install = filter.install.as_ref().map(|id| format!("%\"install_id\":\"{id}\"%"));
        let family = filter.kind.0.as_ref().map(|kind| format!("{kind}.%"));
        let (xid, id) = (filter.before.map(|before| before.xid), filter.before.map(|before| before.id));
        let text = filter.text.as_deref().map(crate::apps::contains);
        let params = params![
            org,
            limit,
            xid,
            id,
            filter.kind.0.as_ref(),
            family,
            filter.install.as_ref(),
            of_install,
            filter.actor.as_ref(),
            text,
            filter.from,
            filter.to
        ];
        self.main().query(FILTERED, params).await?.iter().map(from_row).collect()
    }

    /// Where the org's events end now.
    pub async fn last_event(&self, org: &OrgId) -> Result<EventCursor> {
        self.main()
            .read(org.clone(), |tx, org| {
                Box::pin(async move {
                    match tx.get(LAST, params![&org]).await? {
                        Some(row) => Ok(EventCursor { xid: row.get("xid")?, id: row.get("id")? }),
                        None => Ok(EventCursor::default()),
                    }
                })
            })
            .await
    }
}

impl Store {
    /// Deletes the oldest events, those of before a time, at most `limit`; returns how many. Ids grow with time, so this looks at no
    /// more rows than it deletes.
    pub async fn prune_events(&self, before: Timestamp, limit: u64) -> Result<usize> {
        self.main()
            .write((before, limit), |tx, (before, limit)| {
                Box::pin(async move {
                    let rows = tx.query("SELECT id, time FROM events ORDER BY id LIMIT $1", params![limit]).await?;
                    let oldest: Vec<(i64, Timestamp)> =
                        rows.iter().map(|row| Ok((row.get("id")?, row.get("time")?))).collect::<Result<_>>()?;
                    let old = oldest.iter().take_while(|(_, time)| *time < *before);
                    let Some((last, _)) = old.clone().last() else { return Ok(0) };
                    tx.exec("DELETE FROM events WHERE id <= $1", params![*last]).await?;
                    Ok(old.count())
                })
            })
            .await
    }
}
